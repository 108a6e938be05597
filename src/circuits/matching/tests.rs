//! The exact matchings against brute force, slow twins and their own duals.

use proptest::prelude::*;

use super::*;
use crate::ids::PlaneId;
use crate::topology::Plane;
use crate::units::{BitRate, Span, Time};
use crate::{PlaneDecision, Scheduler, Slot};

fn demand(racks: usize, mut f: impl FnMut(usize, usize) -> u64) -> DemandMatrix {
    DemandMatrix::zero(racks).map_pairs(|i, j, _| f(i.index(), j.index()))
}

/// By trying all partial matchings, input after input.
fn brute_bipartite(d: &DemandMatrix, i: usize, taken: u32) -> u128 {
    if i == d.racks() {
        return 0;
    }
    let free = (0..d.racks()).filter(|&j| taken & (1 << j) == 0 && j != i);
    let joined = free
        .map(|j| u128::from(d.row(RackId::from(i))[j]) + brute_bipartite(d, i + 1, taken | 1 << j))
        .max();
    joined.unwrap_or(0).max(brute_bipartite(d, i + 1, taken))
}

/// By trying all sets of pairs, rack after rack.
fn brute_general(d: &DemandMatrix, i: usize, taken: u32) -> u128 {
    if i >= d.racks() {
        return 0;
    }
    let alone = brute_general(d, i + 1, taken);
    if taken & (1 << i) != 0 {
        return alone;
    }
    let pair = |j: usize| {
        u128::from(d.get(RackId::from(i), RackId::from(j)))
            + u128::from(d.get(RackId::from(j), RackId::from(i)))
    };
    let mates = (i + 1..d.racks()).filter(|&j| taken & (1 << j) == 0);
    mates.map(|j| pair(j) + brute_general(d, i + 1, taken | 1 << j)).max().unwrap_or(0).max(alone)
}

/// No port twice, no rack with itself, no pair without demand.
fn lawful(m: &Matching, d: &DemandMatrix) {
    assert_eq!(&Matching::from_pairs(d.racks(), m.pairs().map(|(i, j)| (i.index(), j.index()))), m);
    assert!(m.pairs().all(|(i, j)| d.get(i, j) > 0), "{m:?} joins a pair without demand");
}

fn lawful_pairs(m: &Matching, d: &DemandMatrix) {
    lawful(m, &d.map_pairs(|i, j, x| x | d.get(j, i)));
    assert!(m.pairs().all(|(i, j)| m.output(j) == Some(i)), "{m:?} is not in pairs");
}

fn check_bipartite(d: &DemandMatrix) {
    let m = bipartite(d, None);
    lawful(&m, d);
    let best = brute_bipartite(d, 0, 0);
    assert_eq!(m.weight(d), best, "{d:?}");
    let p = num::one_way::<i128>(d, None, &num::Scale::new(d.racks(), u128::MAX >> 12, false));
    certify_sparse(d.racks(), &p, best as i128);
}

fn check_general(d: &DemandMatrix) {
    let m = edmonds(d, None);
    lawful_pairs(&m, d);
    assert_eq!(m.weight(d), brute_general(d, 0, 0), "{d:?}");
}

/// All `racks x racks` matrices over `0..base`; `step` takes every step-th of them.
fn all_matrices(racks: usize, base: u64, step: usize) -> impl Iterator<Item = DemandMatrix> {
    let cells = (racks * racks - racks) as u32;
    (0..base.pow(cells)).step_by(step).map(move |mut code| {
        demand(racks, |_, _| {
            let x = code % base;
            code /= base;
            x
        })
    })
}

#[test]
fn bipartite_equals_brute_force_on_all_small_matrices() {
    (0..3)
        .flat_map(|r| all_matrices(r, 4, 1))
        .chain(all_matrices(3, 4, 1))
        .for_each(|d| check_bipartite(&d));
    // All over {0,1,2} would be 531 441; every 7th of them and every 211th over {0,1,2,3}: steps
    // prime to the bases.
    all_matrices(4, 3, 7).chain(all_matrices(4, 4, 211)).for_each(|d| check_bipartite(&d));
}

/// All symmetric weights of a graph of `n` vertices over `0..base`.
fn all_graphs(n: usize, base: u64, step: usize) -> impl Iterator<Item = DemandMatrix> {
    (0..base.pow((n * (n - 1) / 2) as u32)).step_by(step).map(move |mut code| {
        demand(n, |i, j| {
            let x = if i < j { code % base } else { 0 };
            code /= if i < j { base } else { 1 };
            x
        })
    })
}

#[test]
fn edmonds_equals_brute_force_on_all_small_graphs() {
    (2..5).flat_map(|n| all_graphs(n, 4, 1)).for_each(|d| check_general(&d));
    all_graphs(5, 3, 1).chain(all_graphs(5, 4, 31)).for_each(|d| check_general(&d));
    all_graphs(6, 2, 1).chain(all_graphs(6, 3, 397)).for_each(|d| check_general(&d));
}

/// There are 4^20 matrices of five racks over {0,1,2,3}; these are drawn evenly from them.
#[test]
fn five_racks_drawn_from_all() {
    let mut state = 1u64;
    for _ in 0..1500 {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        let mut code = state >> 20;
        let d = demand(5, |_, _| {
            code = code.rotate_right(2);
            code & 3
        });
        check_bipartite(&d);
        check_general(&d);
    }
}

#[test]
fn one_rack_and_a_thousand() {
    let r = 1024;
    let incast = demand(r, |i, j| if j == 7 { 1 << 40 | i as u64 } else { 0 });
    let shifted = demand(r, |i, j| if j == (i + 3) % r { u64::MAX - i as u64 } else { 0 });
    assert_eq!(bipartite(&incast, None), Matching::from_pairs(r, [(r - 1, 7)]));
    assert_eq!(edmonds(&incast, None), Matching::from_pairs(r, [(r - 1, 7), (7, r - 1)]));
    assert_eq!(bipartite(&shifted, None), round_robin(r, 2));
    assert_eq!(edmonds(&shifted, None).len(), r);
    let one = DemandMatrix::zero(1);
    assert!(
        bipartite(&one, None).is_empty()
            && edmonds(&one, None).is_empty()
            && greedy(&one).is_empty()
    );
    assert!(
        b_matching(&one, 9, &[Matching::empty(1)])[0].is_empty()
            && islip(&one, &mut Pointers::default()).is_empty()
    );
}

#[test]
#[ignore = "minutes in a release build: every 4 x 4 matrix over {0,1,2,3} and 5 x 5 over {0,1}, every graph of 6 racks over {0,1,2}"]
fn exhaustive() {
    all_matrices(4, 4, 1).for_each(|d| check_bipartite(&d));
    all_matrices(5, 2, 1).for_each(|d| check_bipartite(&d));
    all_graphs(6, 3, 1).for_each(|d| check_general(&d));
}

#[test]
fn extremes() {
    for r in [0, 1, 2, 7] {
        assert!(bipartite(&DemandMatrix::zero(r), None).is_empty());
        assert!(edmonds(&DemandMatrix::zero(r), None).is_empty());
        assert!(greedy(&DemandMatrix::zero(r)).is_empty());
    }
    for big in [u64::MAX, u64::MAX - 1, 1 << 63] {
        for r in 2..7 {
            let d = demand(r, |i, j| big - (i * r + j) as u64);
            check_bipartite(&d);
            check_general(&d);
            let keep = Matching::from_pairs(r, [(0, 1)]);
            assert_eq!(bipartite(&d, Some(&keep)).weight(&d), brute_bipartite(&d, 0, 0));
            assert_eq!(edmonds(&d, Some(&keep)).weight(&d), brute_general(&d, 0, 0));
        }
    }
    let all_equal = demand(9, |_, _| 5);
    assert_eq!((bipartite(&all_equal, None).len(), edmonds(&all_equal, None).len()), (9, 8));
    let incast = demand(8, |i, j| if j == 3 { 10 + i as u64 } else { 0 });
    assert_eq!(bipartite(&incast, None), Matching::from_pairs(8, [(7, 3)]));
    assert_eq!(edmonds(&incast, None), Matching::from_pairs(8, [(7, 3), (3, 7)]));
    let idle = demand(8, |i, j| if i < 4 && j >= 6 { 1 } else { 0 });
    check_bipartite(&idle);
    check_general(&idle);
}

#[test]
fn equal_weight_keeps_the_circuits_that_are_up() {
    let d = demand(8, |_, _| 7);
    for shift in 1..8 {
        let up = round_robin(8, shift);
        assert_eq!(bipartite(&d, Some(&up)), up);
        let up = tournament(8, shift);
        assert_eq!(edmonds(&d, Some(&up)), up);
    }
    let better = DemandMatrix::from_rows(&[&[0, 10, 11], &[0, 0, 0], &[0, 0, 0]]);
    assert_eq!(
        bipartite(&better, Some(&Matching::from_pairs(3, [(0, 1)]))),
        Matching::from_pairs(3, [(0, 2)])
    );
}

/// The sparse solver's own optimality conditions, and the dense solver's value.
fn certify_sparse(r: usize, p: &[i128], value: i128) {
    let a = sparse::solve(&sparse::SparseRows::of(r, p));
    let mut taken = vec![false; r];
    for i in 0..r {
        assert!(a.u[i] >= 0 && a.v[i] >= 0);
        for j in 0..r {
            assert!(p[i * r + j] == 0 || a.u[i] + a.v[j] >= p[i * r + j]);
        }
        if a.column[i] == assignment::NONE {
            assert_eq!(a.u[i], 0);
        } else {
            let j = a.column[i] as usize;
            assert!(!std::mem::replace(&mut taken[j], true));
            assert_eq!(a.u[i] + a.v[j], p[i * r + j]);
        }
    }
    assert!((0..r).all(|j| taken[j] || a.v[j] == 0));
    assert_eq!(a.u.iter().chain(&a.v).sum::<i128>(), value);
}

/// A matrix in which a slow general search needs many and nested blossoms: few distinct weights,
/// odd cycles.
fn any_demand(max_racks: usize) -> impl Strategy<Value = DemandMatrix> {
    (
        1..=max_racks,
        prop_oneof![Just(2u64), Just(4), Just(12), Just(1 << 40), Just(u64::MAX)],
        0u32..4,
    )
        .prop_flat_map(|(r, top, thin)| {
            let cell = if thin == 0 {
                (0..top).boxed()
            } else {
                prop_oneof![thin => Just(0), 1 => 0..top].boxed()
            };
            prop::collection::vec(cell, r * r).prop_map(move |v| demand(r, |i, j| v[i * r + j]))
        })
}

/// The general solver from the trivial start: no matching, every dual at the largest weight.
fn from_nothing(d: &DemandMatrix) -> u128 {
    let mut w = Vec::<i128>::new();
    symmetric::both_ways(d, None, &num::Scale::new(d.racks(), u128::MAX >> 12, false), &mut w);
    best_of(d.racks(), &w)
}

/// The largest sum of symmetric weights, by the general solver from the trivial start.
fn best_of(r: usize, w: &[i128]) -> u128 {
    let y = vec![w.iter().copied().max().unwrap_or(0); r];
    let table = blossom::WeightTable(r, w);
    let mut m = blossom::BlossomState::new(r, &table, y, vec![blossom::NONE; r]);
    m.run();
    m.certify();
    (0..r)
        .filter(|&i| (m.mate[i] as usize) < i)
        .map(|i| w[i * r + m.mate[i] as usize] as u128)
        .sum()
}

proptest! {
    #![proptest_config(crate::testing::drawn(300))]

    #[test]
    fn bipartite_is_certified_by_its_duals(d in any_demand(14)) {
        let r = d.racks();
        let scale = num::Scale::new(r, u128::MAX >> 12, false);
        let p = num::one_way::<i128>(&d, None, &scale);
        let a = assignment::solve(r, &p);
        for i in 0..r {
            for j in 0..r {
                prop_assert!(a.u[i] + a.v[j] >= p[i * r + j]);
            }
            prop_assert_eq!(a.u[i] + a.v[a.column[i] as usize], p[i * r + a.column[i] as usize]);
        }
        let bound: i128 = a.u.iter().chain(&a.v).sum();
        let m = bipartite(&d, None);
        lawful(&m, &d);
        prop_assert_eq!(m.weight(&d) as i128, bound);
        certify_sparse(r, &p, bound);
        prop_assert!(2 * greedy(&d).weight(&d) >= m.weight(&d));
        lawful(&greedy(&d), &d);
    }

    #[test]
    fn edmonds_is_certified_by_its_duals_and_equals_the_slow_start(d in any_demand(24)) {
        let r = d.racks();
        let scale = num::Scale::new(r, u128::MAX >> 12, false);
        let mut w = Vec::<i128>::new();
symmetric::both_ways(&d, None, &scale, &mut w);
        let rows = sparse::SparseRows::of(r, &w);
        for a in [assignment::solve(r, &w), sparse::solve(&rows)] {
            let table = blossom::WeightTable(r, &w);
            let mut one = edmonds::begin(&table, &a);
            one.run();
            one.certify();
            let mut other = edmonds::begin(&rows, &a);
            other.run();
            other.certify();
            prop_assert_eq!(one.mate, other.mate);
        }
        let m = edmonds(&d, None);
        lawful_pairs(&m, &d);
        prop_assert_eq!(m.weight(&d), from_nothing(&d));
        prop_assert!(2 * greedy_pairs(&d).weight(&d) >= m.weight(&d));
        lawful_pairs(&greedy_pairs(&d), &d);
    }

    #[test]
    fn what_is_kept_never_costs_weight(d in any_demand(10), shift in 0u64..20) {
        let up = round_robin(d.racks(), shift);
        prop_assert_eq!(bipartite(&d, Some(&up)).weight(&d), bipartite(&d, None).weight(&d));
        prop_assert_eq!(edmonds(&d, Some(&up)).weight(&d), edmonds(&d, None).weight(&d));
        let best = bipartite(&d, None);
        prop_assert_eq!(bipartite(&d, Some(&best)), best);
        let best = edmonds(&d, None);
        prop_assert_eq!(edmonds(&d, Some(&best)), best);
    }

    /// Circuits that are up count in pairs, too, each direction once.
    #[test]
    fn as_many_circuits_are_kept_as_can_be(d in any_demand(14), shift in 0u64..20, both: bool) {
        let r = d.racks();
        let up = if both { tournament(r, shift) } else { round_robin(r, shift) };
        let scale = num::Scale::new(r, u128::MAX >> 16, true);
        let mut w = Vec::<i128>::new();
symmetric::both_ways(&d, Some(&up), &scale, &mut w);
        let value = |m: &Matching| m.pairs().filter(|(i, j)| i < j).map(|(i, j)| w[i.index() * r + j.index()] as u128).sum::<u128>();
        prop_assert_eq!(value(&edmonds(&d, Some(&up))), best_of(r, &w));
        prop_assert_eq!(value(&edmonds_from(&mut Prices::default(), &d, Some(&up))), best_of(r, &w));
    }

    /// Few weights, in sizes in which free columns are given away after few rows, and with circuits
    /// to keep.
    #[test]
    fn ties_are_solved_exactly(r in 2usize..70, top in 1u64..4, least in 0u64..2, seed: u64, shift in 0u64..70) {
        let cell = |i: usize, j: usize| (seed ^ (i * 71 + j) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        let d = demand(r, |i, j| least + cell(i, j) % top);
        let value = |keep: Option<&Matching>| {
            let scale = num::Scale::new(r, 1 << 20, keep.is_some());
            let p = num::one_way::<i128>(&d, keep, &scale);
            let a = assignment::solve(r, &p);
            (p, a.u.iter().chain(&a.v).sum::<i128>())
        };
        for keep in [None, Some(round_robin(r, shift)), Some(bipartite(&d, None))] {
            let m = bipartite(&d, keep.as_ref());
            lawful(&m, &d);
            let (p, best) = value(keep.as_ref());
            prop_assert_eq!(m.pairs().map(|(i, j)| p[i.index() * r + j.index()]).sum::<i128>(), best);
        }
    }

    #[test]
    fn a_warm_start_finds_the_same_weight(list in prop::collection::vec(any_demand(12), 1..6), racks in 1usize..13, rest in 0u64..2) {
        let (mut prices, mut pairs) = (Prices::default(), Prices::default());
        let mut up = Matching::empty(racks);
        for d in list {
            let d = demand(racks, |i, j| if i.max(j) < d.racks() { d.row(RackId::from(i))[j] } else { rest });
            let m = bipartite_from(&mut prices, &d, Some(&up));
            lawful(&m, &d);
            prop_assert_eq!(m.weight(&d), bipartite(&d, None).weight(&d));
            up = m;
            let m = edmonds_from(&mut pairs, &d, None);
            lawful_pairs(&m, &d);
            prop_assert_eq!(m.weight(&d), edmonds(&d, None).weight(&d));
        }
    }

    /// Large enough for whole vectors, with few distinct weights and with many.
    #[test]
    fn the_vector_solver_equals_the_plain_one(
        r in 15usize..40, top in prop_oneof![Just(3u64), Just(1 << 40), Just(1 << 44)], seed: u64, drift in 0u64..3, spare in 1u32..8,
    ) {
        let cell = |i: usize, j: usize, s: u64| (seed ^ s).wrapping_add((i * 41 + j) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        let d = demand(r, |i, j| cell(i, j, 0) % top);
        let plain = |d: &DemandMatrix| {
            let a = assignment::solve(r, &num::one_way::<i128>(d, None, &num::Scale::new(r, u128::MAX >> 12, false)));
            a.u.iter().chain(&a.v).sum::<i128>() as u128
        };
        let up = round_robin(r, seed);
        prop_assert_eq!(bipartite(&d, None).weight(&d), plain(&d));
        prop_assert_eq!(bipartite(&d, Some(&up)).weight(&d), plain(&d));
        let mut prices = Prices::default();
        bipartite_from(&mut prices, &d, Some(&up));
        let next = d.map_pairs(|i, j, x| x + cell(i.index(), j.index(), 1) % (drift + 1));
        prop_assert_eq!(bipartite_from(&mut prices, &next, None).weight(&next), plain(&next));
        let mut w = Vec::<i64>::new();
symmetric::both_ways(&d, None, &num::Scale::new(r, 1 << 42, false), &mut w);
        let weights = dense::Weights::new(r, &w, (0, spare), &[]);
        let table = blossom::WeightTable(r, &w);
        let mut solver = dense::Dense::default();
        solver.cold(&weights);
        let mut m = edmonds::begin(&table, &solver.assignment(&weights));
        m.run();
        m.certify();
    }
}

fn plane(p: usize, duplex: bool) -> Plane {
    Plane {
        id: PlaneId::from(p),
        rate: BitRate::mbit(1000),
        delta: Span::millis(10),
        stop: StopMode::NotAllStop,
        duplex,
    }
}

fn matchings(d: Decision) -> Vec<Matching> {
    let held = |decided| match decided {
        PlaneDecision::Sequence(mut slots) => match slots.pop() {
            Some(Slot { matching, hold: None }) if slots.is_empty() => matching,
            other => panic!("{other:?}"),
        },
        PlaneDecision::Reservations(list) => {
            panic!("a periodic scheduler holds one matching: {list:?}")
        }
    };
    d.0.into_iter().map(held).collect()
}

#[test]
fn a_second_plane_takes_what_the_first_leaves() {
    let r = 3;
    // 90 ms at 1 Gb/s carry 11.25 MB.
    let d = DemandMatrix::from_rows(&[&[0, 20_000_000, 12_000_000], &[0; 3], &[0; 3]]);
    let planes = [plane(0, false), plane(1, false)];
    let usable = [Usable::all(r), Usable::all(r)];
    let current = [Matching::empty(r), Matching::empty(r)];
    let ask = Ask {
        demand: &d,
        current: &current,
        planes: &planes,
        usable: &usable,
        at: Time(0),
        interval: Span::millis(100),
        cycle: 0,
        eps: BitRate::ZERO,
        coflows: &[],
    };
    let m = matchings(Bipartite::default().decide(&ask));
    assert_eq!(m, [Matching::from_pairs(r, [(0, 1)]), Matching::from_pairs(r, [(0, 2)])]);
}
