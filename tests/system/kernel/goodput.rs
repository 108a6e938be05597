//! Circuits and the EPS carry what their rate allows, and never more.

use heliostat::coflows::bounds::payload_rate;
use heliostat::coflows::elephants::Admit;
use heliostat::coflows::{CoflowSpec, FlowSpec};
use heliostat::fabric::Fabric;
use heliostat::ids::{CoflowId, HostId};
use heliostat::runtime::measure::loads;
use heliostat::topology::{PortQueues, Segments};
use heliostat::units::{BitRate, Bytes, Span};

use super::support::{Bench, rate, topology};

/// Each has the machine alone.
mod alone {
    use super::*;
    use crate::kernel::support::each_mechanism_alone;

    /// One and four flows over a circuit and over the EPS.
    #[test]
    fn links_carry_their_rate() {
        each_mechanism_alone("links_carry_their_rate", |mechanism| {
            for mbit in [100, 1000, 2500] {
                let link = BitRate::mbit(mbit);
                let nominal = payload_rate(link).0 as f64;
                for (over_circuit, flows) in [(true, 1), (true, 4), (false, 1), (false, 4)] {
                    let mut b = Bench::new(
                        topology(3, link, link, Span::millis(1)),
                        mechanism,
                        Admit::Marked,
                    );
                    b.connect(&[(0, 1)]);
                    let bytes = mbit * 125_000;
                    let each = bytes / flows;
                    let took = b.send(&[vec![(0, 1, each, over_circuit); flows as usize]])[0];
                    let got = rate(each * flows, took);
                    let way = if over_circuit { "circuit" } else { "EPS" };
                    println!(
                        "{} {mbit} Mb/s {way} {flows} flows: {:.1} Mb/s, {:.2} % of nominal",
                        mechanism.name(),
                        got / 1e6,
                        got / nominal * 100.0
                    );
                    let seen = b.fabric.observe(b.clock.now()).expect("observed");
                    let crossed = seen.over_ocs.total();
                    assert!(over_circuit || crossed == 0, "{way}: {crossed} bytes crossed the OCS");
                    // What is sent before a late thread has opened the circuit goes by the EPS.
                    in_time!(
                        !over_circuit || crossed >= bytes,
                        "{} {way}: {crossed} of {bytes} bytes crossed",
                        mechanism.name()
                    );
                    assert!(got <= nominal * 1.02, "faster than the link: {got}");
                    in_time!(
                        got >= nominal * 0.5,
                        "{way} at {mbit} Mb/s with {flows} flows: {got}"
                    );
                }
            }
            Ok(())
        });
    }

    #[test]
    fn what_a_fat_tree_carries_is_measured() {
        each_mechanism_alone("what_a_fat_tree_carries_is_measured", |mechanism| {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/topologies/fat-tree-4.yaml");
            let t = heliostat::config::read_topology(
                &std::fs::read_to_string(file).expect("a shipped file"),
                file,
            )
            .expect("valid");
            let c = loads::carried(&t, BitRate::mbit(100), mechanism).expect("measured");
            println!("{}: {c:?}", mechanism.name());
            in_time!(c.flows >= 8, "{c:?}");
            assert_eq!((c.all, c.total), (c.flows == 16, BitRate::mbit(100 * c.flows as u64)));
            // The longest way crosses eight links: the hosts', their ToRs', and four between
            // switches.
            assert!((4.0..=8.0).contains(&c.links), "{c:?}");
            Ok(())
        });
    }

    /// To one rack, one flow of another rack beside four of a third one.
    #[test]
    fn racks_have_the_same_share_of_the_port_to_a_rack_where_the_topology_says_so() {
        each_mechanism_alone(
            "racks_have_the_same_share_of_the_port_to_a_rack_where_the_topology_says_so",
            |mechanism| {
                let (eps, bytes) = (BitRate::mbit(50), 2_000_000);
                let took = [PortQueues::Racks, PortQueues::One].map(|queues| {
                    let mut t = topology(3, BitRate::mbit(1000), eps, Span::millis(1));
                    t.eps.queues = queues;
                    let b = Bench::new(t, mechanism, Admit::Marked);
                    b.send(&[vec![(1, 0, bytes, false)], vec![(2, 0, 2 * bytes, false); 4]])[0]
                        .as_secs_f64()
                });
                let half = bytes as f64 * 8.0 / (payload_rate(eps).0 as f64 / 2.0);
                let [racks, one] = took.map(|t| t / half);
                println!(
                    "{}: {racks:.2} of the time at half of the port, with one queue {one:.2}",
                    mechanism.name()
                );
                // With one queue it is a fifth of the port in the mean, 2.5 times as long, and
                // chance.
                in_time!(
                    (0.9..1.15).contains(&racks),
                    "{racks:.2} of the time at half of the port"
                );
                Ok(())
            },
        );
    }

    /// From one rack, 100 kB to a second one while four flows go to a third one: half of the port
    /// is theirs.
    #[test]
    fn a_mouse_waits_for_frames_and_not_for_segments() {
        each_mechanism_alone("a_mouse_waits_for_frames_and_not_for_segments", |mechanism| {
            let (eps, bytes) = (BitRate::mbit(100), 100_000);
            let mut t = topology(3, BitRate::mbit(1000), eps, Span::millis(1));
            t.eps.segments = Segments::Frames;
            let b = Bench::new(t, mechanism, Admit::Marked);
            b.launch(&[vec![(0, 1, 10_000_000_000, false); 4]]);
            let half = bytes as f64 * 8.0 / (payload_rate(eps).0 as f64 / 2.0);
            let mut took = Vec::new();
            for id in 1..10u32 {
                // The elephants have their windows.
                let received = || {
                    b.traffic
                        .progress()
                        .iter()
                        .flat_map(|(_, pairs)| pairs)
                        .map(|p| p.bytes.0)
                        .sum::<u64>()
                };
                let (before, deadline) = (received(), b.clock.now() + Span::secs(30));
                while received() < before + 500_000 {
                    assert!(b.clock.now() < deadline, "elephants stand still");
                    std::thread::yield_now();
                }
                let flow = FlowSpec { from: HostId(0), to: HostId(2), bytes: Bytes(bytes) };
                let start = b.clock.now();
                b.traffic
                    .launch(&CoflowSpec::new(CoflowId(id), "mouse", start, vec![flow]), |_, _| {
                        false
                    });
                took.push(b.finished(1)[0].since(start).as_secs_f64() / half);
            }
            took.sort_by(f64::total_cmp);
            println!("{}: of the time at half of the port: {took:.2?}", mechanism.name());
            // Behind segments of 62 kB, in turns of 60 kB, it was 0.67 to 1.32.
            in_time!(
                took[1] > 0.85 && took[7] < 1.18,
                "of the time at half of the port: {took:.2?}"
            );
            Ok(())
        });
    }
}
