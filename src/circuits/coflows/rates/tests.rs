//! Hand-worked examples of every rule, its slow twin, and the laws that all keep.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::units::NANOS;

/// From (sender, receiver, bits), each pair once in any order. Senders are the links 0..4,
/// receivers 4..8; 8 and 9 are two cores that the flows of sender 3 and to receiver 3 cross, if
/// `cores`.
fn demand(list: &[(u32, u32, u64)], cores: bool) -> Demand {
    let mut by = BTreeMap::new();
    list.iter().for_each(|&(a, b, bits)| *by.entry((a, b)).or_insert(0) += bits);
    let group = |(&(a, b), &bits): (&(u32, u32), &u64)| {
        let mut links = vec![a, 4 + b];
        links.extend((cores && a == 3).then_some(8));
        links.extend((cores && b == 3).then_some(9));
        HostGroup { path: Path::new(&links), left: u128::from(bits) * u128::from(NANOS) }
    };
    let mut d = Demand::new(by.iter().map(group));
    d.weigh();
    d.index();
    d
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    /// Loads that are brought up to date are those that are counted again.
    #[test]
    fn loads_follow_what_is_sent(
        bits in prop::collection::btree_map((0u32..9, 0u32..9), 0u64..1 << 40, 1..81),
        sent in prop::collection::vec(prop::collection::vec((0usize..81, 0u32..80), 0..12), 1..4),
    ) {
        let left = |bits: u64| u128::from(bits) * u128::from(NANOS);
        let group = |((a, b), bits): ((u32, u32), u64)| HostGroup { path: Path::new(&[a, 9 + b]), left: left(bits) };
        let mut d = Demand::new(bits.into_iter().map(group));
        d.weigh();
        for step in sent {
            for (k, power) in step {
                d.sent((k % d.groups()) as u32, 1 << power);
            }
            d.weigh();
            let groups = (0..d.groups() as u32).map(|g| HostGroup { path: d.path(g), left: d.left(g) });
            let mut other = Demand::new(groups.collect::<Vec<_>>());
            other.weigh();
            prop_assert!(d.loads().eq(other.loads()));
        }
    }
}

fn given(d: &Demand, r: &Rates) -> Vec<(u32, u32, u64)> {
    let groups = (0..d.groups() as u32).map(|g| (d.path(g).up(), d.path(g).down() - 4, r.of(g)));
    groups.filter(|x| x.2 > 0).collect()
}

fn alone(
    d: &Demand,
    capacity: &[u64],
    rule: fn(&Demand, &mut FreeCapacity, &mut Rates),
) -> Vec<(u32, u32, u64)> {
    let (mut free, mut rates) = (FreeCapacity::new(capacity), Rates::new(d.groups()));
    rule(d, &mut free, &mut rates);
    given(d, &rates)
}

fn fair(d: &Demand, free: &mut FreeCapacity, rates: &mut Rates) {
    max_min(&[d], free, std::slice::from_mut(rates));
}

/// [`madd()`], held to looking for the group that ends last.
fn together(d: &Demand, free: &mut FreeCapacity, rates: &mut Rates) {
    let last = madd(d, free, rates);
    assert_eq!(last.and_then(|l| l.time()), latest(d, rates));
}

/// [`equal_progress()`], held to the same.
fn equally(demands: &[&Demand], free: &mut FreeCapacity, rates: &mut [Rates]) {
    let last = equal_progress(demands, free, rates);
    for ((d, r), last) in demands.iter().zip(rates).zip(last) {
        assert_eq!(last.and_then(|l| l.time()), latest(d, r));
    }
}

/// Nanoseconds until the last group with a rate ends.
fn latest(d: &Demand, rates: &Rates) -> Option<u64> {
    rates.running().map(|(g, rate)| d.left(g).div_ceil(u128::from(rate)) as u64).max()
}

#[test]
fn one_coflow_by_hand_under_each_rule() {
    // Sender 0 has 30 for receiver 0 and 10 for receiver 1; sender 1 has 20 for receiver 0. Links
    // of 100: receiver 0 with 50 bits is the slowest and takes half a second.
    let d = demand(&[(0, 0, 30), (0, 1, 10), (1, 0, 20)], false);
    let cap = [100; 10];
    assert_eq!(bottleneck(&d, |_| 100), Some((50, 100)));
    assert_eq!(
        alone(&d, &cap, together),
        [(0, 0, 60), (0, 1, 20), (1, 0, 40)],
        "all end after half a second"
    );
    assert_eq!(
        alone(&d, &cap, greedy),
        [(0, 0, 100)],
        "the first fills both its links, and the others wait for them"
    );
    assert_eq!(alone(&d, &cap, fair), [(0, 0, 50), (0, 1, 50), (1, 0, 50)]);
    let mut closed = cap;
    closed[1] = 0;
    assert_eq!(alone(&d, &closed, together), [], "one group cannot move, so none does");
    assert_eq!(alone(&d, &closed, fair), [(0, 0, 50), (0, 1, 50)]);
}

#[test]
fn what_madd_leaves_is_filled_in_order() {
    let (a, b) =
        (demand(&[(0, 0, 40), (1, 0, 10)], false), demand(&[(1, 1, 10), (2, 0, 10)], false));
    let (mut free, mut rates) = (FreeCapacity::new(&[100; 10]), [Rates::new(2), Rates::new(2)]);
    together(&a, &mut free, &mut rates[0]);
    together(&b, &mut free, &mut rates[1]);
    assert_eq!(given(&a, &rates[0]), [(0, 0, 80), (1, 0, 20)]);
    assert_eq!(
        given(&b, &rates[1]),
        [],
        "receiver 0 is full, and the second coflow waits as a whole"
    );
    greedy(&a, &mut free, &mut rates[0]);
    greedy(&b, &mut free, &mut rates[1]);
    assert_eq!(given(&b, &rates[1]), [(1, 1, 80)], "but sender 1 has room");
}

#[test]
fn coflows_share_a_link_not_flows() {
    // Three flows against one on receiver 0: by flow 25 each, by coflow one half each. The second
    // coflow has twice as much for receiver 1, which is its busiest link: its 25 on receiver 0 are
    // half its pace.
    let (many, one) =
        (demand(&[(0, 0, 10), (1, 0, 10), (2, 0, 10)], false), demand(&[(3, 0, 30)], false));
    let both = |a: &Demand, b: &Demand, rule: fn(&[&Demand], &mut FreeCapacity, &mut [Rates])| {
        let (mut free, mut rates) =
            (FreeCapacity::new(&[100; 10]), [Rates::new(a.groups()), Rates::new(b.groups())]);
        rule(&[a, b], &mut free, &mut rates);
        rates.map(|r| r.total())
    };
    assert_eq!(both(&many, &one, max_min), [75, 25]);
    let [a, b] = both(&many, &one, equally);
    assert!(
        (47..=50).contains(&a) && (49..=50).contains(&b),
        "{a} and {b}: half each but for rounding down"
    );
    let skewed = demand(&[(3, 0, 10), (2, 1, 20)], false);
    let [a, b] = both(&many, &skewed, equally);
    // x for the first and x / 2 for the second on receiver 0: x = 66; then the second goes no
    // further, as it is held there.
    assert!((62..=66).contains(&a) && (96..=99).contains(&b), "{a} and {b}");
}

/// Progressive filling as the book has it: every round looks at everything.
fn twin_max_min(demands: &[&Demand], capacity: &[u64]) -> Vec<Vec<u64>> {
    let mut rate: Vec<Vec<Option<u64>>> = demands
        .iter()
        .map(|d| (0..d.groups() as u32).map(|g| (d.left(g) == 0).then_some(0)).collect())
        .collect();
    let all: Vec<(usize, u32)> = demands
        .iter()
        .enumerate()
        .flat_map(|(c, d)| (0..d.groups() as u32).map(move |g| (c, g)))
        .collect();
    // A flow with a dead link never starts.
    for &(c, g) in &all {
        if demands[c].path(g).links().iter().any(|&l| capacity[l as usize] == 0) {
            rate[c][g as usize] = Some(0);
        }
    }
    loop {
        let on =
            |l: u32| all.iter().filter(move |&&(c, g)| demands[c].path(g).links().contains(&l));
        let share = |l: u32| {
            let used: u64 = on(l).filter_map(|&(c, g)| rate[c][g as usize]).sum();
            let growing = on(l).filter(|&&(c, g)| rate[c][g as usize].is_none()).count() as u64;
            (capacity[l as usize] - used).checked_div(growing)
        };
        let Some((s, l)) = (0..capacity.len() as u32).filter_map(|l| Some((share(l)?, l))).min()
        else {
            break;
        };
        let held: Vec<_> = on(l).copied().filter(|&(c, g)| rate[c][g as usize].is_none()).collect();
        held.into_iter().for_each(|(c, g)| rate[c][g as usize] = Some(s));
    }
    rate.into_iter().map(|r| r.into_iter().map(Option::unwrap_or_default).collect()).collect()
}

/// One flow after another, looking at all links each time.
fn twin_greedy(d: &Demand, left: &mut [u64]) -> Vec<u64> {
    let one = |g| {
        let path = d.path(g);
        let room = if d.left(g) == 0 {
            0
        } else {
            path.links().iter().map(|&l| left[l as usize]).min().unwrap()
        };
        path.links().iter().for_each(|&l| left[l as usize] -= room);
        room
    };
    (0..d.groups() as u32).map(one).collect()
}

/// By link, what these rates use.
fn used(demands: &[&Demand], rates: &[Rates], links: usize) -> Vec<u64> {
    let mut used = vec![0; links];
    for (d, r) in demands.iter().zip(rates) {
        r.running()
            .for_each(|(g, rate)| d.path(g).links().iter().for_each(|&l| used[l as usize] += rate));
    }
    used
}

fn any_demand() -> impl Strategy<Value = (Vec<(u32, u32, u64)>, bool)> {
    (prop::collection::vec((0u32..4, 0u32..4, 0u64..1 << 30), 0..9), any::<bool>())
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    #[test]
    fn every_rule_keeps_the_capacities_and_max_min_and_greedy_are_their_twins(
        lists in prop::collection::vec(any_demand(), 1..5),
        capacity in prop::collection::vec(prop_oneof![1 => Just(0u64), 4 => 1u64..1000, 2 => Just(1_000_000_000u64)], 10),
    ) {
        let owned: Vec<Demand> = lists.iter().map(|(l, cores)| demand(l, *cores)).collect();
        let demands: Vec<&Demand> = owned.iter().collect();
        let none = || demands.iter().map(|d| Rates::new(d.groups())).collect::<Vec<_>>();
        let settle = |free: &FreeCapacity, rates: &[Rates]| {
            let used = used(&demands, rates, 10);
            (0..10).all(|l| free.left(l) + used[l as usize] == capacity[l as usize])
        };

        let (mut free, mut rates) = (FreeCapacity::new(&capacity), none());
        max_min(&demands, &mut free, &mut rates);
        prop_assert!(settle(&free, &rates));
        let twin = twin_max_min(&demands, &capacity);
        for (c, d) in demands.iter().enumerate() {
            prop_assert_eq!((0..d.groups() as u32).map(|g| rates[c].of(g)).collect::<Vec<_>>(), &twin[c][..]);
        }

        let (mut free, mut rates, mut left) = (FreeCapacity::new(&capacity), none(), capacity.clone());
        for (c, d) in demands.iter().enumerate() {
            greedy(d, &mut free, &mut rates[c]);
            let twin = twin_greedy(d, &mut left);
            prop_assert_eq!((0..d.groups() as u32).map(|g| rates[c].of(g)).collect::<Vec<_>>(), twin);
        }
        prop_assert!(settle(&free, &rates));
        // Work-conserving: every group that could still send crosses a full link.
        let full = |p: &Path| p.links().iter().any(|&l| free.left(l) == 0);
        prop_assert!(demands.iter().all(|d| (0..d.groups() as u32).all(|g| d.left(g) == 0 || full(&d.path(g)))));
        // What is taken back is there again, to the bit.
        for (c, d) in demands.iter().enumerate() {
            rates[c].give_back(d, &mut free);
        }
        prop_assert_eq!(free, FreeCapacity::new(&capacity));

        let (mut free, mut rates) = (FreeCapacity::new(&capacity), none());
        demands.iter().zip(&mut rates).for_each(|(d, r)| together(d, &mut free, r));
        prop_assert!(settle(&free, &rates));
        let (mut free, mut rates) = (FreeCapacity::new(&capacity), none());
        equally(&demands, &mut free, &mut rates);
        prop_assert!(settle(&free, &rates));
    }

    #[test]
    fn madd_ends_all_groups_together_and_no_sooner_than_the_bottleneck((list, cores) in any_demand()) {
        let d = demand(&list, cores);
        let (mut free, mut rates) = (FreeCapacity::new(&[1 << 40; 10]), Rates::new(d.groups()));
        together(&d, &mut free, &mut rates);
        if let Some((bits, room)) = bottleneck(&d, |_| 1 << 40) {
            for (g, rate) in rates.running() {
                // bits / rate seconds, against the bottleneck's bits / room, rounded down by one
                // bit per second at most.
                let (own, exact) = (u128::from(d.bits(g)), u128::from(d.bits(g)) * u128::from(room) / u128::from(bits));
                prop_assert!(u128::from(rate) <= exact && exact - u128::from(rate) <= 1, "{own} bits at {rate}, not {exact}");
            }
        }
    }

    #[test]
    fn equal_progress_leaves_no_coflow_without_a_full_link(lists in prop::collection::vec(any_demand(), 1..5)) {
        let owned: Vec<Demand> = lists.iter().map(|(l, cores)| demand(l, *cores)).collect();
        let demands: Vec<&Demand> = owned.iter().collect();
        let mut rates: Vec<Rates> = demands.iter().map(|d| Rates::new(d.groups())).collect();
        let mut free = FreeCapacity::new(&[1_000_000_000; 10]);
        equally(&demands, &mut free, &mut rates);
        for d in demands.iter().filter(|d| d.live() > 0) {
            // But for the rounding of every group and of the weights.
            let fullest = d.loads().filter(|l| l.1 > 0).map(|(l, _)| free.left(l)).min().unwrap();
            prop_assert!(fullest < 100, "{fullest} b/s are left on every link of a coflow");
        }
    }

    #[test]
    fn groups_that_are_done_are_passed_over((list, cores) in any_demand(), done in prop::collection::vec(0usize..9, 0..5)) {
        let mut d = demand(&list, cores);
        for k in done {
            if k < d.groups() {
                let left = d.left(k as u32);
                prop_assert_eq!(d.sent(k as u32, left + 7), Some(7));
            }
        }
        prop_assert_eq!(d.live(), (0..d.groups() as u32).filter(|&g| d.left(g) > 0).count());
        let mut seen = vec![];
        d.live_groups(|g| seen.push(g));
        prop_assert_eq!(&seen, &(0..d.groups() as u32).filter(|&g| d.left(g) > 0).collect::<Vec<_>>());
        let mut open = vec![];
        d.open_groups(&mut FreeCapacity::new(&[1; 10]), |_, g, _| open.push(g));
        prop_assert_eq!(open, seen);
    }
}

/// What picks one of a word's links, given as bits.
type PickLink<'a> = dyn FnMut(u32, u64) -> u64 + 'a;

/// Interfaces with gaps between them: neighbours, some further on, and one far away.
fn interface() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0u32..70, 2 => 190u32..200, 1 => Just(4000u32)]
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    /// Against a list of the groups that have something to send.
    #[test]
    fn rows_columns_and_pairs_are_those_of_a_list(
        pairs in prop::collection::btree_map((interface(), interface()), any::<bool>(), 0..60),
        ends in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let list: Vec<((u32, u32), u128)> = pairs.iter().map(|(&(a, b), &live)| ((a, 5000 + b), u128::from(live))).collect();
        let mut d = Demand::new(list.iter().map(|&((a, b), left)| HostGroup { path: Path::new(&[a, b]), left }));
        let mut live: Vec<bool> = list.iter().map(|g| g.1 > 0).collect();
        for end in ends.iter().filter(|_| !list.is_empty()) {
            let g = end.index(list.len());
            d.sent(g as u32, 1);
            live[g] = false;
        }
        let seen = |line: &dyn Fn(&mut PickLink) -> Option<(u32, u32)>| -> Vec<u32> {
            let mut all = vec![];
            let none = line(&mut |word, bits| {
                all.extend((0..64).filter(|k| bits >> k & 1 == 1).map(|k| 64 * word + k));
                0
            });
            assert_eq!(none, None);
            all
        };
        for &((a, b), _) in &list {
            let pairs = || list.iter().zip(&live).filter(|g| *g.1).map(|(g, _)| g.0);
            prop_assert_eq!(seen(&|pick| d.first_in_row(a, pick)), pairs().filter(|g| g.0 == a).map(|g| g.1).collect::<Vec<_>>());
            prop_assert_eq!(seen(&|pick| d.first_in_column(b, pick)), pairs().filter(|g| g.1 == b).map(|g| g.0).collect::<Vec<_>>());
            for &((_, other), _) in &list {
                let found = list.iter().position(|g| g.0 == (a, other)).filter(|&g| live[g]).map(|g| g as u32);
                let at = |link: u32| move |word: u32, bits: u64| if word == link / 64 { bits & 1 << (link % 64) } else { 0 };
                prop_assert_eq!(d.first_in_row(a, at(other)), found.map(|g| (other, g)));
                prop_assert_eq!(d.first_in_column(other, at(a)), found.map(|g| (a, g)));
            }
        }
        let mut all = Vec::new();
        d.live_groups(|g| all.push(g));
        prop_assert_eq!(all, (0..list.len() as u32).filter(|&g| live[g as usize]).collect::<Vec<_>>());
    }
}
