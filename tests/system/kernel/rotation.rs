//! All circuits of sixteen racks rotate over three permutations every 100 ms, with 10 ms in the
//! dark: how much of the light is used?

use heliostat::coflows::bounds::payload_rate;
use heliostat::coflows::elephants::Admit;
use heliostat::fabric::Fabric;
use heliostat::kernel::msg::Tcp;
use heliostat::kernel::network::EmulatedNetwork;
use heliostat::kernel::{Clock, KernelFabric, Mechanism};
use heliostat::units::{BitRate, Span};

use super::flips::{Rotation, lateness};
use super::support::{Bench, each_mechanism, rate};
use crate::tries::Timing;

/// Without a circuit nothing moves; with one, all of it goes over the OCS.
#[test]
fn elephants_wait_for_their_circuit() {
    each_mechanism("elephants_wait_for_their_circuit", |mechanism| {
        let small =
            super::support::topology(2, BitRate::mbit(1000), BitRate::mbit(100), Span::millis(10));
        let mut b = Bench::new(small, mechanism, Admit::Wait);
        let bytes = 20_000_000;
        b.launch(&[vec![(0, 1, bytes, true)]]);
        let deadline = b.clock.now() + Span::secs(10);
        let mut seen = b.fabric.observe(b.clock.now()).expect("observed");
        while seen.backlog.total() == 0 {
            assert!(b.clock.now() < deadline, "the sender waits for nothing");
            seen = b.fabric.observe(b.clock.now()).expect("observed");
        }
        assert_eq!(seen.over_ocs.total(), 0);
        let received: u64 =
            b.traffic.progress().iter().flat_map(|(_, pairs)| pairs).map(|p| p.bytes.0).sum();
        assert_eq!(received, 0, "over the EPS");
        b.connect(&[(0, 1)]);
        b.finished(1);
        let over_ocs = b.fabric.observe(b.clock.now()).expect("observed").over_ocs.total();
        assert!(over_ocs >= bytes, "{over_ocs} of {bytes} over the OCS");
    });
}

#[test]
fn waiting_needs_one_plane() {
    each_mechanism("waiting_needs_one_plane", |mechanism| {
        let mut two =
            super::support::topology(2, BitRate::mbit(100), BitRate::mbit(100), Span::millis(10));
        two.planes.push(heliostat::topology::Plane {
            id: heliostat::ids::PlaneId(1),
            ..two.planes[0].clone()
        });
        let net = EmulatedNetwork::build(two.into(), "heliostat:test", Some(Tcp::default()))
            .expect("network");
        let refused = KernelFabric::install(net, mechanism, Admit::Wait, Clock::start())
            .err()
            .expect("refused")
            .to_string();
        assert!(refused.contains("one OCS plane"), "{refused}");
    });
}

/// All send to their three next racks all the time.
fn rotate(mechanism: Mechanism, admit: Admit) -> Timing {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/topologies/hybrid-16x1.yaml"
    ))
    .expect("shipped");
    let topology = heliostat::config::read_topology(&text, "hybrid-16x1.yaml").expect("valid");
    let (racks, plane) = (topology.rack_count() as u32, topology.planes[0].clone());
    let standing = Bench::standing_circuits_carry(topology.clone(), mechanism, admit);
    let mut b = Bench::new(topology, mechanism, admit);
    let flows = (0..racks)
        .flat_map(|i| (1..4).map(move |s| (i, (i + s) % racks, 10_000_000_000, true)))
        .collect();
    b.launch(&[flows]);
    let turns = (0..racks).map(|i| (i, (1..4).map(|s| (i + s) % racks).collect())).collect();
    let period = Span::millis(100);
    let rotation =
        Rotation { first: b.clock.now() + period * 3, period, delta: plane.delta, turns };
    // Half a second to warm up, then three to measure.
    let (warm, n) = (6, 30);
    rotation.write(&mut b, 0..warm + 2)?;
    rotation.wait(&b, warm);
    let received = |b: &Bench| {
        b.traffic.progress().iter().flat_map(|(_, pairs)| pairs).map(|p| p.bytes.0).sum::<u64>()
    };
    let received_before = received(&b);
    let before = b.fabric.observe(b.clock.now()).expect("observed").over_ocs.total();
    rotation.write(&mut b, warm + 2..warm + n)?;
    rotation.wait(&b, warm + n);
    let seen = b.fabric.observe(b.clock.now()).expect("observed");
    let light = Span((period.0 - plane.delta.0) * n);
    let possible = payload_rate(plane.rate).bytes_in(light).0 * u64::from(racks);
    let carried = seen.over_ocs.total() - before;
    let in_all = rate(received(&b) - received_before, period * n) / f64::from(racks) / 1e6;
    let share = carried as f64 / possible as f64;
    let beside = rate(carried, light) / standing;
    let sum = |f: fn(&heliostat::fabric::PortCounters) -> u64| {
        seen.ports.iter().flatten().map(f).sum::<u64>()
    };
    let (late, wrong) = (sum(|p| p.late_packets), sum(|p| p.misdelivered));
    println!(
        "{} rotation of {racks} racks ({admit:?}): {:.1} Gb/s, {:.1} % of the light used, {:.1} % of what circuits that stay carry; {in_all:.0} Mb/s a rack received over both networks; sent back late {late} of {} packets, misdelivered {wrong}{}",
        mechanism.name(),
        carried as f64 * 8.0 / (period.0 * n) as f64,
        share * 100.0,
        beside * 100.0,
        sum(|p| p.crossed_packets),
        lateness(&b),
    );
    assert_eq!(wrong, 0, "packets came out at another rack");
    in_time!(beside > 0.3, "circuits carried {beside} of what they do when they stay");
    Ok(())
}

/// Each has the machine alone.
mod alone {
    use super::*;
    use crate::kernel::support::each_mechanism_alone;

    #[test]
    fn a_rotation_uses_its_light() {
        each_mechanism_alone("a_rotation_uses_its_light", |mechanism| {
            rotate(mechanism, Admit::Marked)
        });
    }

    #[test]
    fn a_rotation_whose_packets_wait_uses_its_light() {
        each_mechanism_alone("a_rotation_whose_packets_wait_uses_its_light", |mechanism| {
            rotate(mechanism, Admit::Wait)
        });
    }
}
