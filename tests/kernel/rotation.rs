//! All circuits of sixteen racks rotate every 100 ms, with 10 ms in the dark: how much of the light is used?

use std::sync::Arc;
use std::time::Duration;

use heliostat::coflows::bounds::payload_rate;
use heliostat::coflows::{CoflowSpec, FlowSpec};
use heliostat::control::policy::{Policy, SchedulerKind};
use heliostat::ids::{CoflowId, HostId};
use heliostat::runtime::emulation::{Emulation, Options};
use heliostat::units::{Bytes, Span, Time};

use crate::support::{alone, each_mechanism};

#[test]
fn a_rotation_uses_its_light() {
    each_mechanism("a_rotation_uses_its_light", |mechanism| {
        let _alone = alone();
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/topologies/hybrid-16x1.yaml")).expect("shipped");
        let topology = Arc::new(heliostat::config::read_topology(&text, "hybrid-16x1.yaml").expect("valid"));
        let policy = Policy { scheduler: SchedulerKind::RoundRobin, ..Policy::default() };
        let base = std::env::temp_dir().join(format!("heliostat-test-{}", std::process::id()));
        let options = Options { name: "hst-rotation".into(), mechanism: Some(mechanism), base, attach: None };
        let e = Emulation::start(topology.clone(), policy.clone(), &options).expect("started");
        let racks = topology.rack_count() as u32;
        let flows = (0..racks).flat_map(|i| (0..racks).filter(move |&j| j != i).map(move |j| (i, j)));
        let flows = flows.map(|(i, j)| FlowSpec { from: HostId(i), to: HostId(j), bytes: Bytes(10_000_000_000) }).collect();
        e.launch(&CoflowSpec { id: CoflowId(0), name: "all to all".into(), arrival: Time::ZERO, flows });
        // One rotation to warm up, two to measure.
        let turns = u64::from(racks) - 1;
        let at_cycle = |n: u64| {
            let deadline = std::time::Instant::now() + Duration::from_secs(60);
            loop {
                let s = e.live.handle.snapshot();
                if s.stats.cycles >= n {
                    return s;
                }
                assert!(std::time::Instant::now() < deadline, "the control loop stands still");
                std::thread::park_timeout(Duration::from_millis(1));
            }
        };
        let (a, b) = (at_cycle(turns + 1), at_cycle(3 * turns + 1));
        let plane = &topology.planes[0];
        let light = Span((policy.interval.0 - plane.delta.0) * 2 * turns);
        let possible = payload_rate(plane.rate).bytes_in(light).0 * u64::from(racks);
        let carried = b.over_ocs.total() - a.over_ocs.total();
        let share = carried as f64 / possible as f64;
        let late: u64 = b.ports.iter().map(|p| p.counters.late_packets).sum();
        let wrong: u64 = b.ports.iter().map(|p| p.counters.misdelivered).sum();
        println!(
            "{} rotation of {racks} racks: {:.1} Gb/s, {:.1} % of the light used; sent back late {late} of {} packets, misdelivered {wrong}; {:?}",
            mechanism.name(),
            carried as f64 * 8.0 / (policy.interval.0 * 2 * turns) as f64,
            share * 100.0,
            b.ports.iter().map(|p| p.counters.crossed_packets).sum::<u64>(),
            b.stats
        );
        assert_eq!(wrong, 0);
        assert!(share > 0.3, "circuits carried {share} of their light");
    });
}
