//! Circuits and the EPS carry what their rate allows, and never more.

use heliostat::coflows::bounds::payload_rate;
use heliostat::coflows::elephants::Admit;
use heliostat::fabric::Fabric;
use heliostat::runtime::measure::loads;
use heliostat::units::{BitRate, Span};

use crate::support::{Bench, each_mechanism, rate, topology};

/// One and four flows over a circuit and over the EPS.
#[test]
fn links_carry_their_rate() {
    each_mechanism("links_carry_their_rate", |mechanism| {
        for mbit in [100, 1000, 2500] {
            let link = BitRate::mbit(mbit);
            let nominal = payload_rate(link).0 as f64;
            for (over_circuit, flows) in [(true, 1), (true, 4), (false, 1), (false, 4)] {
                let mut b = Bench::new(topology(3, link, link, Span::millis(1)), mechanism, Admit::Marked);
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
                in_time!(!over_circuit || crossed >= bytes, "{} {way}: {crossed} of {bytes} bytes crossed", mechanism.name());
                assert!(got <= nominal * 1.02, "faster than the link: {got}");
                in_time!(got >= nominal * 0.5, "{way} at {mbit} Mb/s with {flows} flows: {got}");
            }
        }
        Ok(())
    });
}

#[test]
fn what_a_fat_tree_carries_is_measured() {
    each_mechanism("what_a_fat_tree_carries_is_measured", |mechanism| {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/topologies/fat-tree-4.yaml");
        let t = heliostat::config::read_topology(&std::fs::read_to_string(file).expect("a shipped file"), file).expect("valid");
        let c = loads::carried(&t, BitRate::mbit(100), mechanism).expect("measured");
        println!("{}: {c:?}", mechanism.name());
        in_time!(c.flows >= 8, "{c:?}");
        assert_eq!((c.all, c.total), (c.flows == 16, BitRate::mbit(100 * c.flows as u64)));
        // The longest way crosses eight links: the hosts', their ToRs', and four between switches.
        assert!((4.0..=8.0).contains(&c.links), "{c:?}");
        Ok(())
    });
}
