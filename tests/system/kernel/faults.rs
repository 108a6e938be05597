//! Broken OCS ports under a running emulation: found by probes, left alone, used again when mended.

use heliostat::control::policy::{CircuitPolicy, SchedulerKind};
use heliostat::control::record::{Record, RecordedEvent, Snapshot};
use heliostat::kernel::Mechanism;
use heliostat::units::{BitRate, Span};
use serde_json::json;
use tokio::sync::broadcast;

use super::daemon::Daemon;
use super::support::topology;
use crate::tries::Timing;

fn faulty(s: &Snapshot) -> Vec<u32> {
    s.ports.iter().filter(|p| p.faulty.is_some()).map(|p| p.rack.0).collect()
}

fn uses(s: &Snapshot, rack: u32) -> bool {
    s.circuits.iter().any(|c| c.input.0 == rack || c.output.0 == rack)
}

fn told(events: &mut broadcast::Receiver<std::sync::Arc<Record>>) -> Vec<RecordedEvent> {
    std::iter::from_fn(|| events.try_recv().ok()).map(|r| r.what.clone()).collect()
}

/// Breaks the port of `rack` under a rotation, sees it found and avoided while the others go on,
/// mends it, and sees it used again. A probe that comes too late counts as lost: other ports may be
/// blamed where the machine is too slow.
fn break_and_mend(
    mechanism: Mechanism,
    name: &str,
    rack: u32,
    damage: &str,
    mend: &str,
    finding: &str,
) -> Timing {
    let policy = CircuitPolicy {
        scheduler: SchedulerKind::RoundRobin,
        name: "round-robin".into(),
        ..CircuitPolicy::default()
    };
    let d = Daemon::start(
        name,
        topology(4, BitRate::mbit(1000), BitRate::mbit(100), Span::millis(10)),
        policy,
        mechanism,
    );
    let mut events = d.emulation().live.handle.events();
    let s = d.wait("a whole rotation", |s| s.stats.probes_ok >= 12);
    assert_eq!(s.stats.probes_wrong, 0, "{:?}", s.stats);
    in_time!(
        faulty(&s).is_empty() && s.stats.probes_lost == 0,
        "ports {:?} blamed, {} probes lost",
        faulty(&s),
        s.stats.probes_lost
    );
    d.tool("tc", "ocs0", damage);
    d.wait("the fault", |s| faulty(s).contains(&rack));
    let before = d.cycles(3);
    let after = d.cycles(6);
    assert!(
        faulty(&after).contains(&rack) && !uses(&after, rack),
        "{:?}, {:?}",
        faulty(&after),
        after.circuits
    );
    in_time!(faulty(&after) == [rack], "other ports are blamed too: {:?}", faulty(&after));
    in_time!(
        after.stats.probes_ok >= before.stats.probes_ok + 3,
        "the probes of the others take too long: {:?}",
        after.stats
    );
    let port = d.get("ports")["ports"][rack as usize].clone();
    assert!(port["faulty"].as_str().unwrap_or_default().contains(finding), "{port}");
    assert!(
        told(&mut events)
            .iter()
            .any(|w| matches!(w, RecordedEvent::PortFaulty { rack: r, .. } if r.0 == rack))
    );
    // Traffic to and from the rack goes over the EPS.
    let body = json!({"send": true, "pairs": [{"from": rack, "to": 0, "bytes": 200_000}, {"from": 0, "to": rack, "bytes": 200_000}]});
    assert_eq!(d.call("POST", "coflows", Some(&body)).0, 201);
    d.wait("the coflow", |s| s.coflows.iter().all(|c| c.finished.is_some()));
    d.tool("tc", "ocs0", mend);
    assert_eq!(d.call("DELETE", &format!("ports/0/{rack}/fault"), None).0, 204);
    assert_eq!(d.call("DELETE", &format!("ports/0/{rack}/fault"), None).0, 404);
    d.wait("its use", |s| uses(s, rack));
    let s = d.cycles(8);
    in_time!(faulty(&s).is_empty(), "ports {:?} are blamed after the repair", faulty(&s));
    assert!(
        told(&mut events)
            .iter()
            .any(|w| matches!(w, RecordedEvent::PortRepaired { rack: r, .. } if r.0 == rack))
    );
    println!("{} {name}: {:?}", mechanism.name(), d.snapshot().stats);
    Ok(())
}

/// Few run at a time.
mod quiet {
    use super::*;
    use crate::kernel::support::each_mechanism_quiet;

    #[test]
    fn a_dark_port_is_found_and_mended() {
        each_mechanism_quiet("a_dark_port_is_found_and_mended", |mechanism| {
            let damage = "filter add dev tor1 egress protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev lo";
            break_and_mend(
                mechanism,
                "hst-dark",
                1,
                damage,
                "filter del dev tor1 egress",
                "never came out",
            )
        });
    }

    #[test]
    fn a_misaligned_mirror_is_found_and_mended() {
        each_mechanism_quiet("a_misaligned_mirror_is_found_and_mended", |mechanism| {
            let damage = "filter add dev tor1 egress protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev tor3";
            break_and_mend(
                mechanism,
                "hst-mirror",
                1,
                damage,
                "filter del dev tor1 egress",
                "came out at r3",
            )
        });
    }
}
