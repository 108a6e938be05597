//! Queues, filters, neighbours, routes and rules that another process removes or changes: they are
//! written again, and it is told.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use heliostat::control::record::{Record, RecordedEvent, Snapshot};
use heliostat::ids::{CoflowId, RackId};
use heliostat::kernel::Mechanism;
use tokio::sync::broadcast::Receiver;

use super::daemon::Daemon;
use super::faults_links::{by_backlog, carried, coflow, faulty, told};
use super::support::each_mechanism;
use crate::tries::Timing;

/// What another process does to a part of a node, how that part is listed, and how it is called.
struct Case {
    node: &'static str,
    tool: &'static str,
    does: &'static str,
    lists: &'static [(&'static str, &'static str)],
    called: &'static str,
}

const QUEUES_OF_TOR2: &[(&str, &str)] =
    &[("tc", "qdisc show dev tor2"), ("tc", "class show dev tor2"), ("tc", "filter show dev tor2")];
const QUEUES_OF_EPS0: &[(&str, &str)] =
    &[("tc", "qdisc show dev eps0"), ("tc", "class show dev eps0"), ("tc", "filter show dev eps0")];

const LINK: &[(&str, &str)] =
    &[("ip", "-d link show dev eth0"), ("ip", "neigh show dev eth0"), ("ip", "route show")];

const CASES: &[Case] = &[
    Case {
        node: "eps",
        tool: "tc",
        does: "qdisc del dev tor2 root",
        lists: QUEUES_OF_TOR2,
        called: "the queues of link tor2 of eps",
    },
    Case {
        node: "eps",
        tool: "tc",
        does: "class change dev tor2 parent 1: classid 1:1 htb rate 10gbit ceil 10gbit",
        lists: QUEUES_OF_TOR2,
        called: "the queues of link tor2 of eps",
    },
    Case {
        node: "tor1",
        tool: "tc",
        does: "qdisc replace dev eps0 root pfifo",
        lists: QUEUES_OF_EPS0,
        called: "the queues of link eps0 of tor1",
    },
    Case {
        node: "tor1",
        tool: "tc",
        does: "filter del dev eps0 prio 2",
        lists: QUEUES_OF_EPS0,
        called: "the queues of link eps0 of tor1",
    },
    Case {
        node: "h3-0",
        tool: "tc",
        does: "qdisc del dev eth0 root",
        lists: &[("tc", "qdisc show dev eth0"), ("tc", "class show dev eth0")],
        called: "the queues of link eth0 of h3-0",
    },
    Case {
        node: "tor3",
        tool: "tc",
        does: "qdisc del dev ocs0 clsact",
        lists: &[("tc", "qdisc show dev ocs0"), ("tc", "filter show dev ocs0 ingress")],
        called: "the filters of link ocs0 of tor3",
    },
    Case {
        node: "h3-0",
        tool: "ip",
        does: "route del default",
        lists: &[("ip", "route show")],
        called: "the addresses, neighbours and routes of link eth0 of h3-0",
    },
    Case {
        node: "tor2",
        tool: "ip",
        does: "neigh flush dev ocs0 nud permanent",
        lists: &[("ip", "neigh show dev ocs0")],
        called: "the addresses, neighbours and routes of link ocs0 of tor2",
    },
    Case {
        node: "h2-0",
        tool: "ip",
        does: "link set eth0 address 02:aa:bb:cc:dd:03",
        lists: LINK,
        called: "the settings of link eth0 of h2-0 (MAC address)",
    },
    Case {
        node: "h2-0",
        tool: "ip",
        does: "link set eth0 mtu 9000",
        lists: LINK,
        called: "the settings of link eth0 of h2-0 (MTU)",
    },
    Case {
        node: "tor0",
        tool: "ip",
        does: "link set ocs0 mtu 576",
        lists: &[("ip", "link show dev ocs0"), ("ip", "neigh show dev ocs0")],
        called: "the settings of link ocs0 of tor0 (MTU)",
    },
    Case {
        node: "eps",
        tool: "ip",
        does: "link set tor1 address 02:aa:bb:cc:dd:04",
        lists: &[("ip", "link show dev tor1"), ("ip", "neigh show dev tor1")],
        called: "the settings of link tor1 of eps (MAC address)",
    },
];

/// What `tc` prints of programs and shared actions changes with every writing: their numbers, their
/// holders, some of which the kernel lets go of later, and what was counted.
fn settings(d: &Daemon, case: &Case) -> Vec<String> {
    let volatile = |word: &str| word.starts_with("installed") || word.starts_with("used");
    let lines = case.lists.iter().flat_map(|(tool, args)| {
        d.tool(tool, case.node, args).lines().map(str::to_owned).collect::<Vec<_>>()
    });
    let lines = lines.filter(|l| !l.trim_start().starts_with("index "));
    let mut lines: Vec<String> = lines
        .map(|l| l.split_whitespace().filter(|w| !volatile(w)).collect::<Vec<_>>().join(" "))
        .collect();
    lines.sort();
    lines
}

fn is_written_again(mechanism: Mechanism) -> Timing {
    let d = by_backlog("wd-tamper", mechanism);
    d.cycles(2);
    assert_eq!(d.snapshot().tampered, None, "no process has touched it");
    for case in CASES {
        let (before, found) =
            (settings(&d, case), d.snapshot().tampered.as_ref().map_or(0, |t| t.found));
        let mut events = d.emulation().live.handle.events();
        d.tool(case.tool, case.node, case.does);
        let cycle = d.snapshot().stats.cycles;
        let s = d.wait(case.does, |s| s.tampered.as_ref().is_some_and(|t| t.found > found));
        assert_eq!(settings(&d, case), before, "{}: {}", case.node, case.does);
        let over = d.wait("its being over", |s| s.failures.is_empty());
        assert!(over.tampered.as_ref().is_some_and(|t| t.until >= t.from), "{:?}", over.tampered);
        is_told_once(&d, &mut events, over.tampered.as_ref().map_or(0, |t| t.found));
        heals_in_time(case.called, cycle, &s, &over)?;
    }
    let first = d.snapshot().tampered.clone().expect("told");
    assert!(first.what.starts_with(CASES[0].called), "{first:?}");
    assert_eq!(d.get("stats")["tampered"]["found"].as_u64(), Some(first.found));
    Ok(())
}

/// The events name what was found once, and the metrics count it.
fn is_told_once(d: &Daemon, events: &mut Receiver<Arc<Record>>, found: u64) {
    let told = told(events);
    assert_eq!(
        told.iter().filter(|w| matches!(w, RecordedEvent::Failed { .. })).count(),
        1,
        "{told:?}"
    );
    assert_eq!(d.metric("heliostat_damage_total"), found as f64);
}

/// What was changed before the cycle after `cycle` was seen and mended within two cycles.
fn heals_in_time(what: &str, cycle: u64, found: &Snapshot, over: &Snapshot) -> Timing {
    let [found, over] = [found, over].map(|s| s.stats.cycles - cycle);
    println!("{what}: told after {found}, over after {over} cycles");
    in_time!(found.max(over) <= 2, "{what}: told after {found}, over after {over} cycles");
    Ok(())
}

/// The crossbar of a circuit that carries is taken away: it is back before the coflow has noticed
/// much.
fn the_crossbar_comes_back(mechanism: Mechanism) -> Timing {
    let d = by_backlog("wd-bar", mechanism);
    let id = d.send(0, 1, 60_000_000);
    carried(&d, 0, 1);
    let mut events = d.emulation().live.handle.events();
    d.tool("tc", "ocs0", "qdisc del dev tor0 clsact");
    let cycle = d.snapshot().stats.cycles;
    let s = d.wait("the word of it", |s| s.tampered.is_some());
    let over = d.wait("its being over", |s| s.failures.is_empty());
    is_told_once(&d, &mut events, over.tampered.as_ref().map_or(0, |t| t.found));
    let in_time = heals_in_time("the crossbar of a port", cycle, &s, &over);
    let at = s.over_ocs.get(RackId(0), RackId(1));
    assert!(
        s.tampered.as_ref().is_some_and(|t| t.what.starts_with("the filters of link tor0 of ocs0")),
        "{:?}",
        s.tampered
    );
    let s = d.wait("its end", |s| {
        s.coflows.get(CoflowId(id as u32)).is_some_and(|c| c.finished.is_some())
    });
    assert!(s.over_ocs.get(RackId(0), RackId(1)) > at, "circuits carry on");
    let s = d.wait("its being over", |s| s.failures.is_empty() && faulty(s).is_empty());
    assert_eq!(s.ports.iter().map(|p| p.counters.misdelivered).sum::<u64>(), 0);
    in_time
}

/// What stands of a circuit is a filter and a route here: each is set again.
fn a_circuit_s_own_filter_and_route_come_back(mechanism: Mechanism) {
    if mechanism != Mechanism::Netlink {
        return;
    }
    let d = by_backlog("wd-turn", mechanism);
    d.call("PUT", "circuits/0/0", Some(&serde_json::json!({"output": 1})));
    d.wait("the circuit", |s| s.stats.probes_ok > 0);
    let lists =
        [("ocs0", "tc", "filter show dev tor0 ingress"), ("tor0", "ip", "route show table 100")];
    let held = || {
        lists.map(|(node, tool, args)| {
            d.tool(tool, node, args).lines().filter(|l| !l.contains("installed")).count()
        })
    };
    // The route is set after the circuit's first probe.
    d.wait_by("its filter and its route", || held().iter().all(|&lines| lines > 0));
    let before = held();
    let harm = [
        ("ocs0", "tc", "filter del dev tor0 ingress protocol ip prio 1 handle 800::800 u32"),
        ("tor0", "ip", "route flush table 100"),
    ];
    for (k, (node, tool, args)) in harm.into_iter().enumerate() {
        d.tool(tool, node, args);
        d.wait(args, |s| s.tampered.as_ref().is_some_and(|t| t.found > k as u64));
        // A circuit that is set again is taken apart first. What is harmed before that is over is
        // no tampering that could be told.
        d.cycles(3);
        d.wait("the circuit set again", |s| {
            s.failures.is_empty() && s.stats.probes_ok == s.stats.circuits_set
        });
        d.wait_by("it is there again", || held() == before);
    }
}

#[test]
fn what_carries_a_circuit_comes_back_by_itself() {
    each_mechanism(
        "what_carries_a_circuit_comes_back_by_itself",
        a_circuit_s_own_filter_and_route_come_back,
    );
}

/// A tool in an emulated host says to a receiver that it is the sender of a coflow.
fn a_stranger_is_not_believed(mechanism: Mechanism) {
    let d = by_backlog("wd-forge", mechanism);
    let id = d.send(0, 2, 30_000_000);
    let forged = |secret: u64, bytes: u64| {
        d.within("h1-0", || {
            let mut s = TcpStream::connect("10.2.0.2:5300")?;
            s.set_read_timeout(Some(Duration::from_secs(10)))?;
            let header = [
                &secret.to_be_bytes()[..],
                &(id as u32).to_be_bytes(),
                &0u32.to_be_bytes(),
                &bytes.to_be_bytes(),
            ]
            .concat();
            s.write_all(&header)?;
            // It hangs up at once.
            Ok(s.read(&mut [0]).map(|n| n == 0).unwrap_or(true))
        })
    };
    for (secret, bytes) in [(0, 0), (0, 5), (0, 30_000_000), (u64::MAX, 0)] {
        assert!(forged(secret, bytes));
    }
    d.wait("its end", |s| s.coflows.get(CoflowId(id as u32)).is_some_and(|c| c.closed().is_some()));
    let c = coflow(&d, id);
    assert_eq!(c["state"], "finished", "{c}");
    assert!(c["cct_ns"].as_u64() >= c["bound_ns"].as_u64(), "no network could be so fast: {c}");
}

#[test]
fn a_receiver_believes_no_stranger() {
    each_mechanism("a_receiver_believes_no_stranger", a_stranger_is_not_believed);
}

/// Few run at a time.
mod quiet {
    use super::*;
    use crate::kernel::support::each_mechanism_quiet;

    #[test]
    fn what_somebody_else_changes_is_written_again_and_told() {
        each_mechanism_quiet(
            "what_somebody_else_changes_is_written_again_and_told",
            is_written_again,
        );
    }

    #[test]
    fn a_crossbar_that_is_taken_away_comes_back() {
        each_mechanism_quiet("a_crossbar_that_is_taken_away_comes_back", the_crossbar_comes_back);
    }
}
