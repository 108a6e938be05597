//! Links that go down or are removed under traffic: what needs them goes another way or is lost
//! with a reason, all else goes on.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use heliostat::coflows::{CoflowSpec, FlowSpec};
use heliostat::control::policy::{CircuitPolicy, SchedulerKind};
use heliostat::control::record::{Record, RecordedEvent, Snapshot};
use heliostat::demand::Estimator;
use heliostat::ids::{CoflowId, HostId, RackId};
use heliostat::kernel::Mechanism;
use heliostat::paths::choose::PathPolicy;
use heliostat::runtime::report::RunEnd;
use heliostat::topology::graph::Graph;
use heliostat::units::{BitRate, Bytes, Span, Time};
use heliostat::workload::Workload;
use serde_json::Value;
use tokio::sync::broadcast::Receiver;

use super::daemon::Daemon;
use super::lists::on;
use super::support::{each_mechanism, topology};
use crate::tries::Timing;

/// Circuits to where bytes wait, an OCS of 1 Gb/s and an EPS of 200 Mb/s.
pub fn by_backlog(name: &str, mechanism: Mechanism) -> Daemon {
    let policy = CircuitPolicy {
        scheduler: SchedulerKind::Edmonds,
        demand: Estimator::Backlog,
        ..CircuitPolicy::default()
    };
    Daemon::start(
        name,
        topology(4, BitRate::mbit(1000), BitRate::mbit(200), Span::millis(10)),
        policy,
        mechanism,
    )
}

pub fn faulty(s: &Snapshot) -> Vec<u32> {
    s.ports.iter().filter(|p| p.faulty.is_some()).map(|p| p.rack.0).collect()
}

pub fn told(events: &mut Receiver<Arc<Record>>) -> Vec<RecordedEvent> {
    std::iter::from_fn(|| events.try_recv().ok()).map(|r| r.what.clone()).collect()
}

/// Waits until a circuit from the first rack to the second carries bytes.
pub fn carried(d: &Daemon, from: u32, to: u32) {
    d.wait("a circuit that carries", |s| {
        let up = s.circuits.iter().any(|c| (c.input.0, c.output.0) == (from, to));
        up && s.over_ocs.get(RackId(from), RackId(to)) > 1_000_000
    });
}

pub fn coflow(d: &Daemon, id: u64) -> Value {
    d.get(&format!("coflows/{id}"))
}

/// What happened before the cycle after `cycle` shows within two cycles.
pub fn found_in_time(what: &str, cycle: u64, shown: &Snapshot) -> Timing {
    let late = shown.stats.cycles - cycle;
    println!("{what}: seen after {late} cycles");
    in_time!(late <= 2, "{what}: seen after {late} cycles");
    Ok(())
}

/// Takes a link down under a circuit that carries a coflow: the coflow ends over the EPS, and the
/// port is used again when its link is up.
fn takes_another_way(mechanism: Mechanism, name: &str, node: &str, link: &str) -> Timing {
    let d = by_backlog(name, mechanism);
    let mut events = d.emulation().live.handle.events();
    let id = d.send(0, 1, 60_000_000);
    carried(&d, 0, 1);
    d.tool("ip", node, &format!("link set {link} down"));
    let cycle = d.snapshot().stats.cycles;
    let s = d.wait("the fault", |s| faulty(s).contains(&0));
    found_in_time(&format!("link {link} of {node} down"), cycle, &s)?;
    assert!(
        s.failures.iter().any(|f| f.why.contains(&format!("link {link} of {node} is down"))),
        "{:?}",
        s.failures
    );
    let s = d.wait("the rest over the EPS", |s| {
        s.coflows.get(CoflowId(id as u32)).is_some_and(|c| c.finished.is_some())
    });
    assert_eq!(s.coflows.get(CoflowId(id as u32)).map(|c| c.received), Some(Bytes(60_000_000)));
    assert!(faulty(&s).contains(&0) && d.ready() == 200);
    d.tool("ip", node, &format!("link set {link} up"));
    let cycle = d.snapshot().stats.cycles;
    let s = d.wait("the repair", |s| !faulty(s).contains(&0));
    // Both ends are looked at, one after the other.
    let late = s.stats.cycles - cycle;
    println!("link {link} of {node} up: seen after {late} cycles");
    in_time!(late <= 4, "link {link} of {node} up: seen after {late} cycles");
    assert!(s.failures.is_empty(), "{:?}", s.failures);
    d.send(0, 1, 60_000_000);
    let before = s.over_ocs.get(RackId(0), RackId(1));
    d.wait("its use", |s| s.over_ocs.get(RackId(0), RackId(1)) > before + 1_000_000);
    let told = told(&mut events);
    let count = |of: fn(&RecordedEvent) -> bool| told.iter().filter(|w| of(w)).count();
    assert_eq!(
        count(|w| matches!(w, RecordedEvent::PortFaulty { rack, .. } if rack.0 == 0)),
        1,
        "{told:?}"
    );
    assert_eq!(count(|w| matches!(w, RecordedEvent::PortRepaired { rack, .. } if rack.0 == 0)), 1);
    let named = told
        .iter()
        .filter(|w| matches!(w, RecordedEvent::Failed { why, .. } if why.contains("is down")))
        .count();
    assert!((1..=2).contains(&named), "once, or once for each end: {named}");
    d.wait("the second coflow", |s| s.coflows.open == 0);
    Ok(())
}

/// Takes a link between two switches down under a flow that crosses it: the flow takes another
/// list, and all of it arrives.
fn leaves_a_link_of_the_graph(mechanism: Mechanism) -> Timing {
    let t = on(Graph::fat_tree(4, BitRate::mbit(100), None), 1, BitRate::mbit(100), 0);
    let graph = t.eps.graph().expect("a graph").clone();
    let policy = CircuitPolicy {
        scheduler: SchedulerKind::EpsOnly,
        paths: PathPolicy::Hit,
        ..CircuitPolicy::default()
    };
    let d = Daemon::start("wd-cable", t, policy, mechanism);
    let id = d.send(0, 7, 40_000_000);
    let list =
        |s: &Snapshot| s.paths.as_ref()?.pairs.first().filter(|p| p.held).map(|p| p.list.0.clone());
    let s = d.wait("a list", |s| list(s).is_some());
    let before = list(&s).expect("waited for");
    let (a, b) = (before[1], before[2]);
    let cable =
        graph.cables.iter().position(|c| [(a, b), (b, a)].contains(&c.ends)).expect("a link");
    d.tool("ip", &format!("sw{a}"), &format!("link set cable{cable} down"));
    let cycle = d.snapshot().stats.cycles;
    let leaves = |list: &[u32]| list.windows(2).all(|w| ![[a, b], [b, a]].contains(&[w[0], w[1]]));
    let s = d.wait("another list", |s| list(s).is_some_and(|l| leaves(&l)));
    found_in_time("a link of the graph down, and another list", cycle, &s)?;
    let shown = d.get("paths");
    assert_eq!(shown["links_down"].as_array().map(Vec::len), Some(1), "{shown}");
    let s = d.wait("the whole coflow", |s| {
        s.coflows.get(CoflowId(id as u32)).is_some_and(|c| c.finished.is_some())
    });
    assert_eq!(s.coflows.get(CoflowId(id as u32)).map(|c| c.received), Some(Bytes(40_000_000)));
    assert!(!s.failures.is_empty() && d.ready() == 200);
    d.tool("ip", &format!("sw{a}"), &format!("link set cable{cable} up"));
    d.wait("the repair", |s| {
        s.failures.is_empty() && s.paths.as_ref().is_some_and(|p| p.apart.is_empty())
    });
    d.send(0, 7, 1_000_000);
    d.wait("the second coflow", |s| s.coflows.open == 0);
    Ok(())
}

/// A mirror goes dark while its circuit is up: nothing is down and nothing of ours has changed, but
/// nothing crosses.
fn is_probed_again(mechanism: Mechanism) {
    let d = by_backlog("wd-mirror", mechanism);
    let id = d.send(0, 1, 60_000_000);
    carried(&d, 0, 1);
    d.tool("tc", "ocs0", "filter add dev tor1 egress protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev lo");
    let s = d.wait("the fault", |s| !faulty(s).is_empty());
    assert!(faulty(&s).iter().all(|&r| r <= 1), "{:?}", faulty(&s));
    d.wait("the rest over the EPS", |s| {
        s.coflows.get(CoflowId(id as u32)).is_some_and(|c| c.finished.is_some())
    });
}

#[test]
fn a_circuit_that_goes_dark_while_it_is_up_is_probed_again_and_left() {
    each_mechanism(
        "a_circuit_that_goes_dark_while_it_is_up_is_probed_again_and_left",
        is_probed_again,
    );
}

/// One host's link is removed: its coflows are lost with the reason, those of others go on under
/// control.
fn others_go_on(mechanism: Mechanism) {
    let d = by_backlog("wd-host", mechanism);
    let mut events = d.emulation().live.handle.events();
    let (lost, other) = (d.send(0, 1, 200_000_000), d.send(2, 3, 60_000_000));
    carried(&d, 0, 1);
    d.tool("ip", "h0-0", "link del eth0");
    d.wait("the loss", |s| {
        s.coflows.get(CoflowId(lost as u32)).is_some_and(|c| c.cancelled.is_some())
    });
    let c = coflow(&d, lost);
    assert_eq!(
        (c["state"].as_str(), c["why"].as_str()),
        (
            Some("cancelled"),
            Some("link eth0 of h0-0 is gone; only a restart of the network repairs it")
        ),
        "{c}"
    );
    let why = |w: &RecordedEvent| {
        if let RecordedEvent::CoflowCancelled { why, .. } = w { why.clone() } else { None }
    };
    assert_eq!(
        told(&mut events).iter().find_map(why).as_deref(),
        Some("link eth0 of h0-0 is gone; only a restart of the network repairs it")
    );
    d.wait("the other", |s| {
        s.coflows.get(CoflowId(other as u32)).is_some_and(|c| c.finished.is_some())
    });
    let again = d.send(1, 0, 1_000);
    d.wait("the same for what comes later", |s| {
        s.coflows.get(CoflowId(again as u32)).is_some_and(|c| c.cancelled.is_some())
    });
    let before = d.snapshot();
    let after = d.cycles(3);
    let attempts = |s: &Snapshot| {
        s.failures.iter().find(|f| f.why.contains("link eth0 of h0-0 is gone")).map(|f| f.attempts)
    };
    assert!(attempts(&after) > attempts(&before), "{:?} {:?}", before.failures, after.failures);
    assert_eq!(d.ready(), 200);
}

#[test]
fn a_host_s_link_that_is_removed_costs_its_coflows_and_no_others() {
    each_mechanism("a_host_s_link_that_is_removed_costs_its_coflows_and_no_others", others_go_on);
}

/// A ToR's link to the OCS is removed under a circuit: its coflow goes on over the EPS, circuits of
/// others go on.
fn goes_on_over_the_eps(mechanism: Mechanism) {
    let d = by_backlog("wd-port", mechanism);
    let (first, second) = (d.send(0, 1, 30_000_000), d.send(2, 3, 60_000_000));
    carried(&d, 0, 1);
    d.tool("ip", "tor0", "link del ocs0");
    d.wait("the fault", |s| faulty(s) == [0]);
    for id in [first, second] {
        d.wait("its end", |s| {
            s.coflows.get(CoflowId(id as u32)).is_some_and(|c| c.finished.is_some())
        });
    }
    let before = d.snapshot();
    let third = d.send(2, 3, 60_000_000);
    let s = d.wait("circuits of others", |s| {
        s.over_ocs.get(RackId(2), RackId(3)) > before.over_ocs.get(RackId(2), RackId(3)) + 1_000_000
    });
    assert!(
        faulty(&s) == [0] && !s.circuits.iter().any(|c| c.input.0 == 0 || c.output.0 == 0),
        "{:?}",
        s.circuits
    );
    assert!(s.sent.total() >= before.sent.total(), "counters never go back");
    d.wait("its end", |s| {
        s.coflows.get(CoflowId(third as u32)).is_some_and(|c| c.finished.is_some())
    });
}

#[test]
fn a_port_s_link_that_is_removed_costs_circuits_of_its_rack_only() {
    each_mechanism(
        "a_port_s_link_that_is_removed_costs_circuits_of_its_rack_only",
        goes_on_over_the_eps,
    );
}

/// A run whose host has lost its link ends: with what could finish, and the reason of the rest.
fn ends(mechanism: Mechanism) {
    let d = by_backlog("wd-run", mechanism);
    let flow = |id: u32, from: u32, to: u32, bytes: u64| {
        CoflowSpec::new(
            CoflowId(id),
            format!("c{id}"),
            Time::ZERO,
            vec![FlowSpec { from: HostId(from), to: HostId(to), bytes: Bytes(bytes) }],
        )
    };
    let workload = Workload::new("w", vec![flow(0, 0, 1, 500_000_000), flow(1, 2, 3, 20_000_000)]);
    let stop = AtomicBool::new(false);
    let result = std::thread::scope(|s| {
        let run = s.spawn(|| d.emulation().run(&workload, &stop, |_| {}));
        carried(&d, 0, 1);
        d.tool("ip", "h0-0", "link del eth0");
        run.join().expect("a result")
    });
    assert_eq!(
        (result.end, result.summary.finished, result.summary.unfinished),
        (RunEnd::Finished, 1, 1)
    );
    assert_eq!(
        result.coflows[0].lost.as_deref(),
        Some("link eth0 of h0-0 is gone; only a restart of the network repairs it")
    );
    let tampered = result.tampered.expect("the result is flagged");
    assert!(tampered.from <= tampered.until && tampered.found >= 2, "{tampered:?}");
}

#[test]
fn a_run_that_has_lost_a_host_ends_and_says_so() {
    each_mechanism("a_run_that_has_lost_a_host_ends_and_says_so", ends);
}

/// Few run at a time.
mod quiet {
    use super::*;
    use crate::kernel::support::each_mechanism_quiet;

    #[test]
    fn a_circuit_whose_tor_s_link_goes_down_is_left_and_used_again() {
        each_mechanism_quiet("a_circuit_whose_tor_s_link_goes_down_is_left_and_used_again", |m| {
            takes_another_way(m, "wd-down", "tor0", "ocs0")
        });
    }

    #[test]
    fn a_circuit_whose_ocs_port_goes_down_is_left_and_used_again() {
        each_mechanism_quiet("a_circuit_whose_ocs_port_goes_down_is_left_and_used_again", |m| {
            takes_another_way(m, "wd-dark", "ocs0", "tor0")
        });
    }

    #[test]
    fn a_flow_leaves_a_link_between_switches_that_goes_down() {
        each_mechanism_quiet(
            "a_flow_leaves_a_link_between_switches_that_goes_down",
            leaves_a_link_of_the_graph,
        );
    }
}
