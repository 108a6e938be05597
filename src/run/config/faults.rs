//! Faults as people write them: `r2.uplink=down@10s+5s`, `ocs0.in3=stuck@2s`.

use crate::ids::{PlaneId, RackId};
use crate::sim::faults::{BrokenPart, Fault, PortFault, Side, Which};
use crate::topology::Topology;
use crate::units::{Span, Time};

/// How a fault is written.
pub const GRAMMAR: &str = "WHAT=STATE@TIME[+LENGTH], such as h3-1.nic=down@2s, r2.uplink=50%@10s+5s, r2.tor=down@1s, \
     eps=down@1s+100ms, spine0=down@1s, leaf1/spine0=50%@1s, ocs0.in3=stuck@2s, ocs0.out3=dark@2s+5s, ocs0.in3=slow20ms@0s, ocs0.in3=deaf@1s";

/// Reads one fault.
///
/// # Errors
/// What is wrong, and what is allowed.
pub fn read_fault(text: &str, topology: &Topology) -> Result<Fault, String> {
    let text = text.trim();
    let bad = |why: String| format!("`{text}`: {why}; write {GRAMMAR}");
    let (body, when) = text.rsplit_once('@').ok_or_else(|| bad("no time".into()))?;
    let (what, state) = body.split_once('=').ok_or_else(|| bad("no state".into()))?;
    let (at, long) = when.split_once('+').map_or((when, None), |(a, l)| (a, Some(l)));
    let span = |t: &str| t.parse::<Span>().map_err(|e| bad(e.to_string()));
    let at = Time::ZERO + span(at)?;
    let until = long.map(span).transpose()?.map(|l| at + l);
    let what = match what.strip_prefix("ocs") {
        Some(port) => port_fault(port, state, topology),
        None => links(what, state, topology),
    };
    Ok(Fault { text: text.into(), at, until, what: what.map_err(bad)? })
}

/// A scenario: one fault a line; empty lines and those that begin with `#` say nothing.
///
/// # Errors
/// The first line that is no fault.
pub fn read_faults(text: &str, file: &str, topology: &Topology) -> Result<Vec<Fault>, String> {
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.trim().is_empty() && !l.trim().starts_with('#'));
    lines
        .map(|(n, l)| read_fault(l, topology).map_err(|e| format!("{file}:{}: {e}", n + 1)))
        .collect()
}

fn rack(text: &str, topology: &Topology) -> Option<RackId> {
    let number = text.parse().ok().map(RackId)?;
    (number.index() < topology.rack_count()).then_some(number)
}

fn links(what: &str, state: &str, topology: &Topology) -> Result<BrokenPart, String> {
    let percent = match state {
        "down" => Some(0),
        other => other.strip_suffix('%').and_then(|p| p.parse().ok()).filter(|p| *p < 100),
    };
    let percent =
        percent.ok_or_else(|| format!("links are `down` or carry 0% to 99%, not `{state}`"))?;
    let racks = || format!("racks are r0 to r{}", topology.rack_count().saturating_sub(1));
    let which = match (what, what.split_once('.')) {
        ("eps", _) => Which::Eps,
        ("core", _) if topology.eps.core_rate().is_some() => Which::Core,
        ("core", _) => return Err("this topology has no `eps.core`".into()),
        (pod, None) if pod.starts_with("pod") => {
            let pods = topology
                .eps
                .pods()
                .map_or(0, |p| topology.rack_count().div_ceil(p.racks.max(1) as usize));
            let number = pod[3..].parse().ok().filter(|n: &u32| (*n as usize) < pods);
            Which::Pod(number.ok_or_else(|| format!("this topology has {pods} pods"))?)
        }
        (_, Some((host, "nic"))) => {
            Which::Nic(topology.host_by_name(host).ok_or_else(|| format!("no host {host}"))?)
        }
        (_, Some((r, "uplink"))) => {
            Which::Uplink(r.strip_prefix('r').and_then(|r| rack(r, topology)).ok_or_else(racks)?)
        }
        (_, Some((r, "tor"))) => {
            Which::Tor(r.strip_prefix('r').and_then(|r| rack(r, topology)).ok_or_else(racks)?)
        }
        _ => in_graph(what, topology)?,
    };
    Ok(BrokenPart::Links { which, percent })
}

/// A switch of the EPS graph by its name, or the cables between two as `leaf0/spine1`.
fn in_graph(what: &str, topology: &Topology) -> Result<Which, String> {
    let Some(graph) = topology.eps.graph() else { return Err(format!("nothing is called {what}")) };
    let find = |name: &str| graph.switches.iter().position(|s| s.name == name).map(|k| k as u32);
    let names =
        || graph.switches.iter().take(8).map(|s| s.name.as_str()).collect::<Vec<_>>().join(", ");
    let more = if graph.switches.len() > 8 { ", .." } else { "" };
    let known = |name: &str| {
        find(name)
            .ok_or_else(|| format!("nothing is called {name}; switches are {}{more}", names()))
    };
    let Some((a, b)) = what.split_once('/') else { return known(what).map(Which::Switch) };
    let (from, to) = (known(a)?, known(b)?);
    let joined = graph.cables.iter().any(|c| c.ends == (from, to) || c.ends == (to, from));
    if joined { Ok(Which::Cables(from, to)) } else { Err(format!("no link joins {a} and {b}")) }
}

fn port_fault(port: &str, state: &str, topology: &Topology) -> Result<BrokenPart, String> {
    let planes = topology.planes.len();
    let (plane, port) = port.split_once('.').ok_or("no port")?;
    let plane = plane
        .parse()
        .ok()
        .map(PlaneId)
        .filter(|p| p.index() < planes)
        .ok_or_else(|| format!("this topology has {planes} planes"))?;
    let (side, number) = match (port.strip_prefix("in"), port.strip_prefix("out")) {
        (Some(n), _) => (Side::Input, n),
        (_, Some(n)) => (Side::Output, n),
        _ => return Err(format!("a port is in0 or out0, not {port}")),
    };
    let rack = rack(number, topology)
        .ok_or_else(|| format!("ports are 0 to {}", topology.rack_count().saturating_sub(1)))?;
    let how = match (state, side) {
        ("stuck", _) => PortFault::Stuck,
        ("dark", _) => PortFault::Dark,
        ("deaf", Side::Input) => PortFault::Deaf,
        (slow, Side::Input) if slow.starts_with("slow") => {
            PortFault::Slow(slow[4..].parse().map_err(|e| format!("{e}"))?)
        }
        _ => {
            return Err(format!(
                "inputs are stuck, dark, slow or deaf, outputs stuck or dark, not `{state}`"
            ));
        }
    };
    Ok(BrokenPart::Port { plane, side, rack, how })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::HostId;
    use crate::topology::{Plane, StopMode};
    use crate::units::BitRate;

    fn topology() -> Topology {
        let plane = Plane {
            id: PlaneId(0),
            rate: BitRate(8),
            delta: Span(1),
            stop: StopMode::NotAllStop,
            duplex: false,
        };
        Topology::uniform("t", 4, 2, BitRate(8), BitRate(8), vec![plane])
    }

    #[test]
    fn every_fault_by_name() {
        let t = topology();
        let what = |text: &str| read_fault(text, &t).unwrap().what;
        let links = |which, percent| BrokenPart::Links { which, percent };
        assert_eq!(what("h1-1.nic=down@2s"), links(Which::Nic(HostId(3)), 0));
        assert_eq!(what("r3.uplink=25%@1ms"), links(Which::Uplink(RackId(3)), 25));
        assert_eq!(what("r0.tor=down@1s"), links(Which::Tor(RackId(0)), 0));
        assert_eq!(what("eps=0%@1s"), links(Which::Eps, 0));
        let port = |side, how| BrokenPart::Port { plane: PlaneId(0), side, rack: RackId(3), how };
        assert_eq!(what("ocs0.in3=stuck@2s+5s"), port(Side::Input, PortFault::Stuck));
        assert_eq!(what("ocs0.out3=dark@2s"), port(Side::Output, PortFault::Dark));
        assert_eq!(
            what("ocs0.in3=slow20ms@2s"),
            port(Side::Input, PortFault::Slow(Span::millis(20)))
        );
        assert_eq!(what("ocs0.in3=deaf@2s"), port(Side::Input, PortFault::Deaf));
        let f = read_fault("ocs0.in3=deaf@2s+500ms", &t).unwrap();
        assert_eq!((f.at, f.until), (Time(2_000_000_000), Some(Time(2_500_000_000))));
        let mut with_graph = t.clone();
        let graph = crate::topology::graph::Graph::leaf_spine(4, 2, BitRate(8), None);
        with_graph.eps.core = crate::topology::Core::Graph(Box::new(graph));
        let which = |text: &str| read_fault(text, &with_graph).map(|f| f.what);
        assert_eq!(which("spine1=down@1s"), Ok(links(Which::Switch(5), 0)));
        assert_eq!(which("spine0/leaf3=30%@1s"), Ok(links(Which::Cables(4, 3), 30)));
        assert!(
            which("leaf0/leaf1=down@1s").unwrap_err().contains("no link joins leaf0 and leaf1")
        );
        assert!(
            which("leaf0/hub=down@1s")
                .unwrap_err()
                .contains("nothing is called hub; switches are leaf0, leaf1")
        );
        let list = read_faults("# a comment\n\neps=down@1s\n r1.tor=down@2s\n", "f", &t).unwrap();
        assert_eq!(list.len(), 2);
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        let t = topology();
        for (text, why) in [
            ("", "no time"),
            ("eps@1s", "no state"),
            ("eps=down@soon", "soon"),
            ("eps=200%@1s", "0% to 99%"),
            ("r4.uplink=down@1s", "r0 to r3"),
            ("h9-9.nic=down@1s", "no host h9-9"),
            ("core=down@1s", "no `eps.core`"),
            ("pod0=down@1s", "0 pods"),
            ("fan=down@1s", "nothing is called fan"),
            ("ocs1.in0=dark@1s", "1 planes"),
            ("ocs0.in4=dark@1s", "0 to 3"),
            ("ocs0.mid0=dark@1s", "in0 or out0"),
            ("ocs0.out0=deaf@1s", "outputs stuck or dark"),
            ("ocs0.in0=slow@1s", "slow"),
        ] {
            let told = read_fault(text, &t).unwrap_err();
            assert!(told.contains(why) && told.contains(GRAMMAR), "{text}: {told}");
        }
        assert!(read_faults("\nx\n", "f.txt", &t).unwrap_err().starts_with("f.txt:2: `x`"));
    }
}
