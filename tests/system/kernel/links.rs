//! What links do beside their rates: queues are as long as the topology says; delay, loss and marks
//! where the kernel has them.

use std::os::fd::AsFd;

use heliostat::coflows::elephants::Admit;
use heliostat::fabric::Fabric;
use heliostat::ids::RackId;
use heliostat::kernel::missing::{Module, lacks};
use heliostat::kernel::nl::Netlink;
use heliostat::kernel::{Mechanism, tc};
use heliostat::topology::Topology;
use heliostat::topology::graph::{Graph, Level, Tier};
use heliostat::topology::links::{Loss, index};
use heliostat::units::{BitRate, Bytes, Span};

use super::lists::on;
use super::support::{Bench, topology};

const LINK: BitRate = BitRate::mbit(20);
/// Of all links but the one in question.
const WIDE: BitRate = BitRate::mbit(1000);

/// A network whose uplinks are the narrowest links.
fn narrow_uplinks() -> Topology {
    let mut t = topology(3, WIDE, LINK, Span::millis(1));
    t.hosts.iter_mut().for_each(|h| h.nic = WIDE);
    t
}

/// What a port of a node has held at most, dropped and sent in a second of TCP.
#[derive(Debug, Default)]
struct Seen {
    most: u32,
    drops: u32,
    packets: u32,
}

/// Has eight flows from host 0 go on, one half to each of two hosts, and looks at a port of `node`
/// for a second.
fn watch(b: &Bench, to: [u32; 2], (node, link): (&str, u32)) -> Seen {
    let flow = |k: usize| (0, to[k % 2], 1_000_000_000, false);
    b.launch(&[(0..8).map(flow).collect()]);
    let mut nl = Netlink::open(b.fabric.network().namespace(node).expect("a node").as_fd())
        .expect("a socket");
    let (mut seen, end) = (Seen::default(), b.clock.now() + Span::secs(1));
    while b.clock.now() < end {
        let c = tc::link_counters(&mut nl).expect("counters")[&link];
        seen = Seen { most: seen.most.max(c.backlog), drops: c.drops, packets: c.packets };
        b.clock.sleep_until(b.clock.now() + Span::micros(200));
    }
    seen
}

/// A queue is filled by TCP up to its limit and never beyond: a queue of short packets stands
/// beside it, with an acknowledgement or two.
fn is_filled(seen: &Seen, limit: u64) -> bool {
    println!("a buffer of {limit} B: {seen:?}");
    assert!(u64::from(seen.most) <= limit + 1514, "more than the buffer of {limit}: {seen:?}");
    u64::from(seen.most) > limit * 3 / 4 && seen.drops > 0
}

/// Whether the kernel has what the links of a topology need; else what it lacks is told by its key.
fn has(name: &str, t: &Topology, key: &str, module: Module) -> bool {
    let missing = lacks(t).expect("a namespace");
    match missing.first() {
        None => true,
        Some(lack) => {
            assert_eq!(
                (lack.kind, lack.key, lack.module, missing.len()),
                ("uplink", key, module, 1)
            );
            // Not one of the things that every test of the kernel needs.
            println!("SKIP {name}: {lack}");
            false
        }
    }
}

/// Few run at a time.
mod quiet {
    use super::*;
    use crate::kernel::support::each_mechanism_quiet;

    /// Runs a test over a network with a key that only some kernels know.
    fn where_there_is(
        key: &str,
        module: Module,
        change: impl Fn(&mut Topology),
        test: impl Fn(Topology, Mechanism),
    ) {
        let name = format!("links with {key}");
        each_mechanism_quiet(&name, |mechanism| {
            let mut t = narrow_uplinks();
            change(&mut t);
            if has(&name, &t, key, module) {
                test(t, mechanism);
            }
            Ok(())
        });
    }

    #[test]
    fn an_uplink_holds_what_its_buffer_says() {
        each_mechanism_quiet("an_uplink_holds_what_its_buffer_says", |mechanism| {
            for limit in [20_000, 200_000] {
                let mut t = narrow_uplinks();
                t.links.uplink.buffer = Some(Bytes(limit));
                let mut b = Bench::new(t, mechanism, Admit::Marked);
                let link = b.fabric.network().tors[0].eps;
                let seen = watch(&b, [1, 2], ("tor0", link));
                in_time!(is_filled(&seen, limit), "{}: {limit} B: {seen:?}", mechanism.name());
                // One queue for all racks, and bytes are counted by rack all the same. How TCP
                // shares a short queue is left to chance.
                let sent = b.fabric.observe(b.clock.now()).expect("observed").sent;
                let to = [1, 2].map(|r| sent.get(RackId(0), RackId(r)));
                assert!(
                    to.iter().all(|&n| n > 0) && to.iter().sum::<u64>() > 1_000_000,
                    "{}: {sent:?}",
                    mechanism.name()
                );
            }
            Ok(())
        });
    }

    #[test]
    fn tiers_of_a_graph_have_buffers_of_their_own() {
        each_mechanism_quiet("tiers_of_a_graph_have_buffers_of_their_own", |mechanism| {
            let levels = [2, 2].map(|join| Level { join, uplink: LINK });
            let mut t = on(Graph::tree(8, &levels, None), 1, WIDE, 0);
            t.links.cables[index(Tier::Aggregation)].buffer = Some(Bytes(30_000));
            t.links.cables[index(Tier::Core)].buffer = Some(Bytes(120_000));
            // Host 0 is at switch 0, whose way up is a link to an aggregation switch; from there on
            // all goes at the same rate.
            let b = Bench::new(t, mechanism, Admit::Marked);
            let first = &b.fabric.network().eps[0];
            let up = first.cables[0].1;
            let seen = watch(&b, [2, 3], ("sw0", up));
            in_time!(is_filled(&seen, 30_000), "{}: {seen:?}", mechanism.name());
            Ok(())
        });
    }

    #[test]
    fn a_circuit_s_queue_holds_what_its_buffer_says() {
        each_mechanism_quiet("a_circuit_s_queue_holds_what_its_buffer_says", |mechanism| {
            let mut t = topology(2, LINK, LINK, Span::millis(1));
            t.hosts.iter_mut().for_each(|h| h.nic = WIDE);
            t.links.ocs.buffer = Some(Bytes(40_000));
            let mut b = Bench::new(t, mechanism, Admit::All);
            b.connect(&[(0, 1)]);
            let link = b.fabric.network().tors[0].ocs[0];
            let seen = watch(&b, [1, 1], ("tor0", link));
            in_time!(is_filled(&seen, 40_000), "{}: {seen:?}", mechanism.name());
            Ok(())
        });
    }

    #[test]
    fn what_a_link_delays_arrives_that_much_later() {
        let delay = Span::millis(50);
        where_there_is(
            "delay",
            Module::Netem,
            |t| t.links.uplink.delay = delay,
            |t, mechanism| {
                let b = Bench::new(t, mechanism, Admit::Marked);
                // Two uplinks each way: the connection's first two packets, and the bytes.
                let took = b.send(&[vec![(0, 1, 1000, false)]])[0];
                println!("{}: 1 kB over two links of {delay} took {took}", mechanism.name());
                assert!(took >= delay * 6, "{took}");
                assert!(took < delay * 6 + Span::millis(250), "{took}");
            },
        );
    }

    #[test]
    fn what_a_link_loses_is_its_share() {
        where_there_is(
            "loss",
            Module::Netem,
            |t| {
                (t.links.uplink.loss, t.links.uplink.buffer) =
                    (Loss(20_000), Some(Bytes(1_000_000)))
            },
            |t, mechanism| {
                let b = Bench::new(t, mechanism, Admit::Marked);
                let link = b.fabric.network().tors[0].eps;
                let seen = watch(&b, [1, 2], ("tor0", link));
                let share = f64::from(seen.drops) / f64::from(seen.drops + seen.packets);
                println!(
                    "{}: of {} packets {:.2} % were lost",
                    mechanism.name(),
                    seen.packets + seen.drops,
                    share * 100.0
                );
                assert!(seen.packets > 300 && (0.005..0.05).contains(&share), "{seen:?}");
            },
        );
    }

    #[test]
    fn a_queue_that_marks_drops_nothing() {
        let of = |ecn: Option<u64>| {
            move |t: &mut Topology| {
                (t.links.uplink.ecn, t.links.uplink.buffer) = (ecn.map(Bytes), Some(Bytes(300_000)))
            }
        };
        where_there_is("ecn", Module::Red, of(Some(30_000)), |t, mechanism| {
            let port = |t: Topology| {
                let b = Bench::new(t, mechanism, Admit::Marked);
                let link = b.fabric.network().tors[0].eps;
                watch(&b, [1, 2], ("tor0", link))
            };
            let marked = port(t.clone());
            let mut plain = t;
            of(None)(&mut plain);
            let plain = port(plain);
            println!("{}: marks {marked:?}, none {plain:?}", mechanism.name());
            assert!(
                marked.drops == 0 && plain.drops > 0 && marked.most < plain.most,
                "marks {marked:?}, none {plain:?}"
            );
        });
    }
}
