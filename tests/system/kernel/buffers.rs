//! What demand counts, live: bytes that no socket has taken yet, and flows between hosts.

use heliostat::coflows::elephants::Admit;
use heliostat::coflows::{CoflowSpec, FlowSpec};
use heliostat::control::policy::{CircuitPolicy, Estimator, SchedulerKind};
use heliostat::fabric::SEND_BUFFER;
use heliostat::ids::{CoflowId, HostId, PlaneId, RackId};
use heliostat::kernel::Mechanism;
use heliostat::runtime::settings::{RunPlan, RunSettings};
use heliostat::topology::{Plane, StopMode, Topology};
use heliostat::units::{BitRate, Bytes, Span, Time};

use super::daemon::Daemon;
use super::support::each_mechanism;

/// Four racks of two hosts on an OCS as fast as their interfaces, all packets admitted to circuits.
fn daemon(name: &str, policy: CircuitPolicy, buffer: Bytes, mechanism: Mechanism) -> Daemon {
    let (nic, delta) = (BitRate::mbit(400), Span::millis(10));
    let plane =
        Plane { id: PlaneId(0), rate: nic, delta, stop: StopMode::NotAllStop, duplex: false };
    let topology = Topology::uniform("test", 4, 2, nic, BitRate::mbit(40), vec![plane]);
    let run = RunSettings { admit: Admit::All, buffer, ..RunSettings::default() };
    Daemon::start(
        name,
        topology,
        RunPlan {
            policy: CircuitPolicy { elephant_threshold: Bytes(0), ..policy },
            run,
            jobs: None,
        },
        mechanism,
    )
}

fn launch(d: &Daemon, id: u32, flows: &[(u32, u32, u64)]) {
    let flow = |&(from, to, mb): &(u32, u32, u64)| FlowSpec {
        from: HostId(from),
        to: HostId(to),
        bytes: Bytes(mb * 1_000_000),
    };
    d.emulation().launch(&CoflowSpec::new(
        CoflowId(id),
        format!("c{id}"),
        Time::ZERO,
        flows.iter().map(flow).collect(),
    ));
}

#[test]
fn with_large_buffers_what_waits_decides_and_not_the_number_of_flows() {
    each_mechanism(
        "with_large_buffers_what_waits_decides_and_not_the_number_of_flows",
        |mechanism| {
            // 300 MB in one flow from a rack, 40 MB in four from the same: what has come of the one
            // when the four are through.
            let run = |name: &str, buffer| {
                let policy = CircuitPolicy {
                    scheduler: SchedulerKind::Edmonds,
                    demand: Estimator::Backlog,
                    ..CircuitPolicy::default()
                };
                let d = daemon(name, policy, buffer, mechanism);
                launch(&d, 1, &[(0, 2, 300)]);
                launch(&d, 2, &[(0, 4, 10), (0, 5, 10), (1, 4, 10), (1, 5, 10)]);
                let number = |id: u64, key: &str| {
                    d.call("GET", &format!("coflows/{id}"), None).1[key].as_u64()
                };
                d.wait_by("the end of the four", || number(2, "cct_ns").is_some());
                let received = number(1, "received_bytes").expect("bytes");
                d.wait_by("the end of the one", || number(1, "cct_ns").is_some());
                let cct = [2, 1].map(|id| number(id, "cct_ns").expect("it ended") as f64 / 1e9);
                println!(
                    "{} buffer {buffer}: four {:.2} s, one {:.2} s, of which {received} bytes by the end of the four",
                    mechanism.name(),
                    cct[0],
                    cct[1]
                );
                received
            };
            let (small, large) =
                (run("buf-sock", SEND_BUFFER), run("buf-full", Bytes(100_000_000)));
            // Circuits go to the four while they have more than one socket waiting; to the one
            // until it has 40 MB left.
            assert!(
                small < 150_000_000 && large > 200_000_000,
                "{small} with what sockets hold, {large} with large buffers"
            );
        },
    );
}

#[test]
fn hedera_sees_every_connection_between_hosts() {
    each_mechanism("hedera_sees_every_connection_between_hosts", |mechanism| {
        let policy = CircuitPolicy {
            scheduler: SchedulerKind::Bipartite,
            demand: Estimator::Hedera,
            ..CircuitPolicy::default()
        };
        let d = daemon("buf-hedera", policy, SEND_BUFFER, mechanism);
        launch(&d, 1, &[(0, 2, 200), (0, 4, 200), (0, 5, 200), (1, 4, 200), (1, 5, 200)]);
        // An interface carries 5 MB in 100 ms: the first host's is shared by three flows, the
        // second one's by two.
        let shares = (1_666_666, 2 * 1_666_666 + 5_000_000);
        d.wait("the natural demand of five flows", |s| {
            (s.demand.get(RackId(0), RackId(1)), s.demand.get(RackId(0), RackId(2))) == shares
        });
        d.wait("the circuit of the larger one", |s| {
            s.circuits.iter().any(|c| (c.input, c.output) == (RackId(0), RackId(2)))
        });
    });
}
