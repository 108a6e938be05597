//! Laws of the decompositions.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::Matching;

/// A byte a nanosecond.
const RATE: BitRate = BitRate(8_000_000_000);

fn any_demand() -> impl Strategy<Value = DemandMatrix> {
    (1usize..7, 0u32..4, prop_oneof![Just(4u64), Just(1000), Just(1 << 40), Just(u64::MAX)])
        .prop_flat_map(|(r, thin, top)| {
            let cell = if thin == 0 {
                (0..top).boxed()
            } else {
                prop_oneof![thin => Just(0), 1 => 0..top].boxed()
            };
            prop::collection::vec(cell, r * r).prop_map(move |v| {
                DemandMatrix::zero(r).map_pairs(|i, j, _| v[i.index() * r + j.index()])
            })
        })
}

fn lawful(slots: &[Slot], demand: &DemandMatrix) {
    for s in slots {
        assert!(s.hold.unwrap() > Span::ZERO);
        let again = Matching::from_pairs(
            demand.racks(),
            s.matching.pairs().map(|(i, j)| (i.index(), j.index())),
        );
        assert_eq!(again, s.matching);
        assert!(
            s.matching.pairs().all(|(i, j)| demand.get(i, j) > 0),
            "a circuit without demand: {s:?}"
        );
    }
}

/// What of `light` the slots leave.
fn left(light: &DemandMatrix, slots: &[Slot]) -> DemandMatrix {
    let mut rest = light.clone();
    for s in slots {
        for (i, j) in s.matching.pairs() {
            rest.set(i, j, rest.get(i, j).saturating_sub(s.hold.unwrap().0));
        }
    }
    rest
}

fn total(slots: &[Slot]) -> u64 {
    slots.iter().map(|s| s.hold.unwrap().0).sum()
}

/// What a third rack could carry besides, of what `slots` leave of `light`: Eclipse++'s setting, by
/// its greedy rule. A byte leaves its rack on a circuit that has time left and lands on one that
/// comes no earlier; its way of two circuits takes as much of each.
fn by_a_third_rack(light: &DemandMatrix, slots: &[Slot]) -> u64 {
    let racks = light.racks();
    let mut rest = light.clone();
    // By slot and pair of racks: time that direct traffic leaves.
    let mut idle: Vec<DemandMatrix> = Vec::new();
    for s in slots {
        let mut free = DemandMatrix::zero(racks);
        for (i, j) in s.matching.pairs() {
            let (hold, want) = (s.hold.unwrap().0, rest.get(i, j));
            rest.set(i, j, want.saturating_sub(hold));
            free.set(i, j, hold - hold.min(want));
        }
        idle.push(free);
    }
    let mut carried = 0;
    // The longest first, as the largest gains.
    let mut left: Vec<_> = rest.entries().filter(|e| e.2 > 0).collect();
    left.sort_by_key(|e| std::cmp::Reverse(e.2));
    for (i, j, mut want) in left {
        for (first, second) in (0..slots.len()).flat_map(|a| (a..slots.len()).map(move |b| (a, b)))
        {
            let Some((_, k)) = slots[first].matching.pairs().find(|p| p.0 == i && p.1 != j) else {
                continue;
            };
            let through = want.min(idle[first].get(i, k)).min(idle[second].get(k, j));
            for (slot, a, b) in [(first, i, k), (second, k, j)] {
                let had = idle[slot].get(a, b);
                idle[slot].set(a, b, had - through);
            }
            (carried, want) = (carried + through, want - through);
        }
    }
    carried
}

/// What Eclipse++ could add to Eclipse on drawn matrices of 16 racks; `--show-output` prints it for
/// `docs/fidelity-measured.md`.
#[test]
fn a_third_rack_carries_little_of_what_eclipse_leaves() {
    use rand::{Rng, SeedableRng};
    let (delta, racks) = (Span(20_000), 16);
    for (receivers, window) in [(3, 2_000_000), (6, 2_000_000), (6, 500_000), (15, 2_000_000)] {
        let (mut direct, mut more, mut all) = (0u64, 0u64, 0u64);
        let mut points = Vec::new();
        for seed in 1..=20 {
            let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
            let mut light = DemandMatrix::zero(racks);
            for i in 0..racks {
                for k in 1..=receivers {
                    // 0.2 to 20 MB at 100 Gb/s, log-even.
                    let ns = 16_000.0 * 100f64.powf(rng.random_range(0.0..1.0));
                    light.set(i.into(), ((i + k * 15 / receivers) % racks).into(), ns as u64);
                }
            }
            let slots = eclipse(&light, RATE, delta, Span(window));
            let (carried, third) =
                (light.total() - left(&light, &slots).total(), by_a_third_rack(&light, &slots));
            (direct, more, all) = (direct + carried, more + third, all + light.total());
            points.push(100.0 * third as f64 / light.total() as f64);
        }
        let percent = |n: u64| 100.0 * n as f64 / all as f64;
        let most = points.iter().copied().fold(0.0, f64::max);
        println!(
            "{receivers} receivers, {window} ns: Eclipse {:.1} %, a third rack {:.2} % more, at most {most:.2}",
            percent(direct),
            percent(more)
        );
        assert!(more < all / 1000 && direct + more <= all);
    }
}

/// The most light that any configurations carry within `window`, by trying all matchings of three
/// racks and all whole durations.
fn most_within(
    rest: &DemandMatrix,
    delta: u64,
    window: u64,
    known: &mut BTreeMap<(Vec<u64>, u64), u64>,
) -> u64 {
    if let Some(&most) = known.get(&(rest.cells().to_vec(), window)) {
        return most;
    }
    let mut most = 0;
    let all: [&[(usize, usize)]; 5] = [
        &[(0, 1), (1, 2), (2, 0)],
        &[(0, 2), (1, 0), (2, 1)],
        &[(0, 1), (1, 0)],
        &[(0, 2), (2, 0)],
        &[(1, 2), (2, 1)],
    ];
    for pairs in all {
        let matching = Matching::from_pairs(3, pairs.iter().copied());
        for time in 1..=window.saturating_sub(delta) {
            let next = left(rest, &[Slot { matching: matching.clone(), hold: Some(Span(time)) }]);
            most = most.max(
                rest.total() - next.total()
                    + most_within(&next, delta, window - delta - time, known),
            );
        }
    }
    known.insert((rest.cells().to_vec(), window), most);
    most
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    #[test]
    fn stuffing_is_doubly_stochastic_and_only_adds(d in any_demand(), more in 0u64..100) {
        let need = light(&d, RATE);
        let sum = busiest(&need) + more;
        let mut s = stuffed::Stuffed::of(&Lit::of(&d, RATE), Some(sum));
        let (mut taken, mut last) = (0, u64::MAX);
        while let Some((_, time)) = s.cut() {
            prop_assert!(time > 0 && time <= last);
            taken += time;
            last = time;
        }
        prop_assert_eq!(taken, sum);
        prop_assert_eq!(s.busiest_rest(), 0);
    }

    #[test]
    fn whole_decompositions_serve_everything_in_the_busiest_ports_time(d in any_demand(), window in 0u64..3000) {
        let need = light(&d, RATE);
        let cells = d.entries().count();
        for (name, f) in [("bvn", bvn as fn(&_, _, _) -> _), ("bottleneck", bvn_bottleneck), ("plus", birkhoff_plus), ("clearance", clearance)] {
            let slots = f(&d, RATE, Span::MAX);
            lawful(&slots, &d);
            prop_assert_eq!(left(&need, &slots).total(), 0, "{}", name);
            prop_assert_eq!(total(&slots), busiest(&need), "{}", name);
            let most = if name == "clearance" { cells + 2 * d.racks() } else { d.racks() * d.racks() };
            prop_assert!(slots.len() <= most, "{} has {} configurations", name, slots.len());
            // A window takes the first of them, and no more than fill it.
            let some = f(&d, RATE, Span(window));
            prop_assert_eq!(&slots[..some.len()], &some[..]);
            prop_assert!(some.len() == slots.len() || total(&some) >= window);
            prop_assert!(some.is_empty() || total(&some[..some.len() - 1]) < window);
        }
    }

    #[test]
    fn solstice_serves_everything_that_the_packet_network_does_not(d in any_demand(), delta in 0u64..50, share in 0u64..11) {
        let eps = BitRate(RATE.0 * share / 100);
        let slots = solstice(&d, RATE, Span(delta), eps, Span::MAX);
        lawful(&slots, &d);
        let need = light(&d, RATE);
        let rest = left(&need, &slots);
        let elapsed = u128::from(total(&slots)) + u128::from(delta) * slots.len() as u128;
        prop_assert!(u128::from(busiest(&rest)) * 100 <= elapsed * u128::from(share));
        prop_assert!(total(&slots) <= busiest(&need));
        // The thresholds, powers of two, never rise, and no configuration is shorter than its own.
        prop_assert!(slots.windows(2).all(|w| w[0].hold.unwrap().0.ilog2() >= w[1].hold.unwrap().0.ilog2()));
    }

    #[test]
    fn eclipse_keeps_to_its_window_and_beats_one_matching(d in any_demand(), delta in 0u64..50, window in 0u64..5000) {
        let slots = eclipse(&d, RATE, Span(delta), Span(window));
        lawful(&slots, &d);
        prop_assert!(total(&slots) + delta * slots.len() as u64 <= window);
        prop_assert!(slots.len() <= d.entries().count() + 2, "each but the last two ends with a cell");
        let need = light(&d, RATE);
        let sum = |m: &DemandMatrix| m.entries().map(|e| u128::from(e.2)).sum::<u128>();
        let carried = sum(&need) - sum(&left(&need, &slots));
        let room = window.saturating_sub(delta);
        let one = crate::matching::bipartite(&need.map(|x| x.min(room)), None).weight(&need.map(|x| x.min(room)));
        prop_assert!(carried >= one, "{carried} against {one}");
    }

    #[test]
    fn eclipse_is_within_its_bound_of_the_best(
        v in prop::collection::vec(prop_oneof![Just(0u64), 0u64..6], 9), delta in 0u64..4, window in 1u64..8,
    ) {
        let d = DemandMatrix::zero(3).map_pairs(|i, j, _| v[i.index() * 3 + j.index()]);
        let carried = d.total() - left(&d, &eclipse(&d, RATE, Span(delta), Span(window))).total();
        let best = most_within(&d, delta, window, &mut Default::default());
        let slack = if delta == 0 { 63.0 / 64.0 } else { 64.0 / 65.0 };
        let share = 1.0 - (-(1.0 - delta as f64 / window as f64).max(0.0) * slack).exp();
        prop_assert!(carried <= best && carried as f64 >= share * best as f64, "{carried} of {best} for {d:?}");
    }

    #[test]
    fn tms_keeps_to_its_period(d in any_demand(), delta in 0u64..50, period in 0u64..5000) {
        let slots = tms(&d, Span(delta), Span(period));
        lawful(&slots, &d);
        prop_assert!(total(&slots) + delta * slots.len() as u64 <= period);
        prop_assert!(d.total() == 0 || period <= delta + d.racks() as u64 * 40 || !slots.is_empty());
    }
}

/// Cells of a few nanoseconds beside long ones: without dark time nothing speaks against short
/// configurations but their number.
#[test]
fn eclipse_without_dark_time_takes_few_configurations_at_every_scale() {
    for scale in [1, 100, 10_000, 1_000_000, 1_000_000_000] {
        let d = DemandMatrix::zero(6).map_pairs(|i, j, _| {
            let k = (i.index() * 5 + j.index() * 3) as u64 % 7;
            if k < 3 { k + 2 } else { (k * k + 1) * scale }
        });
        let slots = eclipse(&d, RATE, Span::ZERO, Span(busiest(&d) * 3));
        lawful(&slots, &d);
        assert_eq!(
            left(&d, &slots).total(),
            0,
            "three times the busiest port's time is enough for everything"
        );
        assert!(slots.len() <= 60, "{} configurations at {scale}", slots.len());
    }
}

/// JobPacker (Figure 2): 20 map tasks of 5 units each and a reduce task in each of 4 racks; a unit
/// takes 100 ns here.
#[test]
fn the_example_of_jobpacker_figure_2() {
    for (maps, time) in [([16, 2, 1, 1], 6000), ([5; 4], 1875)] {
        let d = DemandMatrix::zero(4).map_pairs(|i, _, _| 500 * maps[i.index()] / 4);
        for f in [bvn, bvn_bottleneck, birkhoff_plus, clearance] {
            assert_eq!(total(&f(&d, RATE, Span::MAX)), time);
        }
    }
}

/// Sums of few permutations plus noise: what Birkhoff+ is for.
#[test]
fn birkhoff_plus_and_the_bottleneck_need_fewer_configurations_than_plain_birkhoff() {
    let (mut plain, mut bottleneck, mut plus) = (0, 0, 0);
    for seed in 0..20u64 {
        let mut d = DemandMatrix::zero(10);
        for k in 0..6u64 {
            let shift = 1 + (seed * 7 + k * k) % 9;
            (0..10u64).for_each(|i| {
                d.add(
                    RackId(i as u32),
                    RackId(((i + shift) % 10) as u32),
                    (k + 1) * 100 + (i * seed + k) % 17,
                )
            });
        }
        let carries_nine_tenths = |slots: Vec<Slot>| {
            let goal = total(&slots) * 9 / 10;
            let mut sum = 0;
            slots.iter().take_while(|s| (sum < goal, sum += s.hold.unwrap().0).0).count()
        };
        plain += carries_nine_tenths(bvn(&d, RATE, Span::MAX));
        bottleneck += carries_nine_tenths(bvn_bottleneck(&d, RATE, Span::MAX));
        plus += carries_nine_tenths(birkhoff_plus(&d, RATE, Span::MAX));
    }
    println!("configurations for nine tenths: plain {plain}, bottleneck {bottleneck}, plus {plus}");
    assert!(
        plus < plain && bottleneck < plain,
        "plain {plain}, bottleneck {bottleneck}, plus {plus}"
    );
}
