use std::cell::Cell;

use proptest::prelude::*;

use super::super::*;
use crate::ids::{CoflowId, PlaneId};
use crate::topology::StopMode;

thread_local! {
    /// Steps that are left to this thread's scheduler, while there is a bound.
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Takes steps from those that are left. What takes too many ends here, even if it would never end
/// by itself.
pub(super) fn add(steps: u64) {
    if let Some(left) = LEFT.get() {
        LEFT.set(Some(left.checked_sub(steps).expect("more steps than docs/circuits.md allows")));
    }
}

/// The table of docs/circuits.md: the most steps for one decision on one plane with circuits one
/// way; those of a matching of duplex circuits. `r` ports, `e` cells with demand.
fn bound(kind: SchedulerKind, r: u64, e: u64) -> [u64; 2] {
    use SchedulerKind as K;
    let log = u64::from(e.max(1).ilog2()) + 2;
    let (best, pairs) = (2 * r * r + 25 * r, 8 * r * r + 30 * r);
    let most = 2 * r * (2 * (r.isqrt() + 1) + 3);
    let cuts = e + 2 * r;
    match kind {
        K::External | K::Manual | K::EpsOnly => [0, 0],
        K::RoundRobin => [1, 1],
        K::Greedy | K::Islip => [2 * r * r, r],
        K::Edmonds => [pairs; 2],
        K::Bipartite | K::Hold => [best, pairs],
        K::BMatching => [2 * r * r + r, pairs],
        K::HopcroftKarp => [most, pairs],
        K::Bottleneck => [(r * r + r) * log + most, pairs * log],
        K::Bvn | K::BvnBottleneck => [cuts * (r * r + r), pairs],
        K::BirkhoffPlus => [cuts * (r * r + 14 * r), pairs],
        K::Tms => [cuts * (r * r + r) + 129 * r, pairs],
        K::Solstice => [cuts * (r * r + r) + 128 * r, pairs],
        K::Eclipse => [(e + 4) * 256 * (r * r + 18 * r), pairs],
        // Of each coflow as many instants as all coflows have cells: here half of each cell is one
        // coflow's, half another's.
        K::Sunflow | K::SunflowSebf | K::SunflowFifo | K::SunflowLas | K::SunflowWeighted => {
            [2 * (2 * e + 1) * (2 * r + 1), pairs]
        }
        // `clearance`, and a scheduler without a row of its own.
        _ => [cuts * (2 * r * r + r), pairs],
    }
}

/// A network of two planes of circuits one way and one of duplex circuits.
struct PlanesSetting {
    rate: BitRate,
    delta: Span,
    window: Span,
    stop: StopMode,
}

/// Asks a scheduler twice, the second time with what the first has set up, within its steps.
fn check(kind: SchedulerKind, demand: &DemandMatrix, set: &PlanesSetting) {
    let r = demand.racks();
    let plane = |id| Plane {
        id: PlaneId(id),
        rate: set.rate,
        delta: set.delta,
        stop: set.stop,
        duplex: id == 2,
    };
    let (planes, usable) = ([0, 1, 2].map(plane), [(); 3].map(|()| Usable::all(r)));
    let rest: Vec<_> =
        demand.entries().map(|(i, j, b)| (i, j, b / 2)).filter(|c| c.2 > 0).collect();
    let coflows = [OpenCoflow { id: CoflowId(0), arrival: Time(7), weight: 2, sent: 9, rest }];
    let mut current =
        [0, 1, 2].map(|k| if k < 2 { matching::round_robin(r, k) } else { Matching::empty(r) });
    let [one_way, duplex] = bound(kind, r as u64, demand.entries().count() as u64);
    let mut scheduler = kind.build();
    for cycle in 0..2 {
        let (at, eps) = (Time(5), BitRate::ZERO);
        let ask = Ask {
            demand,
            current: &current,
            planes: &planes,
            usable: &usable,
            at,
            interval: set.window,
            cycle,
            eps,
            coflows: &coflows,
        };
        LEFT.set(Some(2 * one_way + duplex));
        let decision = scheduler.decide(&ask);
        LEFT.set(None);
        for (decided, up) in decision.0.into_iter().zip(&mut current) {
            if let PlaneDecision::Sequence(slots) = decided {
                *up = slots[0].matching.clone();
            }
        }
    }
}

fn every_scheduler(demand: &DemandMatrix, set: &PlanesSetting) {
    for kind in SchedulerKind::ALL {
        let kept = std::panic::catch_unwind(|| check(kind, demand, set));
        assert!(
            kept.is_ok(),
            "{} at {}, dark for {}, window {}: {demand:?}",
            kind.name(),
            set.rate,
            set.delta,
            set.window
        );
    }
}

/// Numbers without order, the same every time.
fn noise(i: usize, j: usize) -> u64 {
    ((i * 41 + j + 1) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
}

/// Matrices of `r` racks with as few as no and as many as all cells, and with all ratios between
/// cells.
fn shapes(r: usize) -> Vec<DemandMatrix> {
    let fibonacci = |k: usize| (0..k % 80).fold((1u64, 1u64), |(a, b), _| (b, a + b)).0;
    let cells: [&dyn Fn(usize, usize) -> u64; 14] = [
        &|_, _| 0,
        &|i, j| if (i, j) == (0, 1) { 1 } else { 1 << 62 },
        &|_, _| 1,
        &|_, _| 1 << 40,
        &|_, _| u64::MAX,
        &|i, j| if i == 0 { noise(i, j) >> 20 } else { 0 },
        &|i, j| if j == 0 { noise(i, j) >> 20 } else { 0 },
        &|i, j| if j == (i + 1) % r { noise(i, j) >> 30 } else { 0 },
        &|i, j| noise(i, j) >> 24,
        &|i, j| if noise(j, i) % r as u64 > 4 { 0 } else { noise(i, j) >> 24 },
        &|i, j| 1 << ((i * 7 + j * 3) % 63),
        &|i, j| if (i, j) == (1, 0) { 1 << 40 } else { 1 + noise(i, j) % 20 },
        &|i, j| {
            if (i * 5 + j * 3) % 7 < 3 { 2 + noise(i, j) % 17 } else { (noise(i, j) >> 34) * 100 }
        },
        &|i, j| fibonacci(i * r + j),
    ];
    cells.map(|f| DemandMatrix::zero(r).map_pairs(|i, j, _| f(i.index(), j.index()))).into()
}

const HOUR: Span = Span(3_600_000_000_000);

#[test]
fn every_scheduler_keeps_to_its_steps_on_every_shape() {
    for demand in [2, 3, 6].into_iter().flat_map(shapes) {
        for rate in [1, 8_000_000_000, 400_000_000_000].map(BitRate) {
            for delta in [Span::ZERO, Span(1), Span::micros(1), Span::millis(10), HOUR] {
                for window in [Span(1), Span::micros(1), Span::millis(100), Span::MAX] {
                    every_scheduler(
                        &demand,
                        &PlanesSetting { rate, delta, window, stop: StopMode::NotAllStop },
                    );
                }
            }
        }
    }
}

/// Larger networks: every scheduler where a plan for the whole demand has few configurations, those
/// of an interval on every shape.
#[test]
fn every_scheduler_keeps_to_its_steps_in_larger_networks() {
    for (r, delta) in [(17, Span::ZERO), (17, Span(1)), (64, Span::micros(20))] {
        for demand in shapes(r) {
            let sparse = r < 20 || demand.entries().count() < 6 * r;
            let window = if sparse { Span::MAX } else { Span::millis(1) };
            every_scheduler(
                &demand,
                &PlanesSetting {
                    rate: BitRate(8_000_000_000),
                    delta,
                    window,
                    stop: StopMode::AllStop,
                },
            );
        }
    }
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    #[test]
    fn every_scheduler_keeps_to_its_steps(
        r in 1usize..9, v in prop::collection::vec(prop_oneof![Just(0u64), 1u64..9, 0u64..1 << 30, Just(1 << 62), any::<u64>()], 64),
        rate in prop_oneof![1u64..9, Just(8_000_000_000), 1u64..400_000_000_000], delta in prop_oneof![0u64..3, 0..HOUR.0],
        window in prop_oneof![0u64..3, 0u64..1_000_000, any::<u64>()], all_stop: bool,
    ) {
        let demand = DemandMatrix::zero(r).map_pairs(|i, j, _| v[i.index() * 8 + j.index()]);
        let stop = if all_stop { StopMode::AllStop } else { StopMode::NotAllStop };
        every_scheduler(&demand, &PlanesSetting { rate: BitRate(rate), delta: Span(delta), window: Span(window), stop });
    }
}
