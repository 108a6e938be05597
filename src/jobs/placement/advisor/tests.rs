//! Estimates by hand and against slow twins; decisions against every placement, and their laws.

use super::table::{PortSpans, Want, first_fit};
use super::*;
use crate::circuits::timetable::Timetable;
use crate::ids::PlaneId;
use crate::placement::cluster::Cluster;
use crate::placement::coscheduler::decide::{ScheduleQuestion, coflow, decide as on_idle};
use crate::placement::coscheduler::network::{CoflowForecaster as _, Idle, RackTransfer};
use crate::placement::coscheduler::reduces::widths;
use crate::topology::{Framing, Plane, StopMode};
use crate::units::BitRate;
use proptest::prelude::*;

/// A byte a nanosecond.
const FAST: BitRate = BitRate(8_000_000_000);

/// Circuits at a byte a nanosecond, dark for 10 ns; a core that is a hundred times slower.
fn network(racks: usize, planes: usize) -> Topology {
    let plane = |k| Plane {
        id: PlaneId::from(k),
        rate: FAST,
        delta: Span(10),
        stop: StopMode::NotAllStop,
        duplex: false,
    };
    let wide = BitRate(FAST.0 * 1000);
    let mut t = Topology::uniform(
        "t",
        racks,
        1,
        wide,
        BitRate(FAST.0 / 100),
        (0..planes).map(plane).collect(),
    );
    t.framing = Framing::None;
    t
}

fn pair(from: u32, to: u32, bytes: u64) -> RackBytes {
    RackBytes { from: RackId(from), to: RackId(to), bytes: Bytes(bytes) }
}

fn open(id: u32, heavy: &[RackBytes]) -> Arc<PendingCoflow> {
    Arc::new(PendingCoflow {
        id: CoflowId(id),
        start: Time::ZERO,
        heavy: heavy.to_vec(),
        light: vec![],
    })
}

fn ask(pairs: &[RackBytes]) -> PlacementRequest {
    PlacementRequest {
        shuffle: ShuffleSpec::Pairs(pairs.to_vec()),
        ready: Span::ZERO,
        deadline: None,
    }
}

/// (input, output, set-up, until) of the circuits of a shuffle of these pairs, and its completion
/// time.
fn estimate(
    t: &Topology,
    s: &NetworkState,
    pairs: &[RackBytes],
) -> (Vec<(u32, u32, u64, u64)>, u64) {
    let p = decide(t, s, &ask(pairs)).unwrap();
    (
        p.circuits.iter().map(|r| (r.input.0, r.output.0, r.setup_at.0, r.until.0)).collect(),
        p.chosen.cct.0,
    )
}

#[test]
fn a_shuffle_waits_for_shorter_coflows_and_not_for_longer_ones() {
    let t = network(4, 1);
    let mut s = NetworkState::idle(&t, Bytes(1));
    assert_eq!(estimate(&t, &s, &[pair(0, 1, 100)]), (vec![(0, 1, 0, 110)], 110));
    s.coflows = vec![open(1, &[pair(0, 2, 50)]), open(2, &[pair(3, 1, 500)])];
    // Port 0 sends 50 bytes first; the 500 bytes into port 1 come after us, 110 ns and then the
    // wait.
    let p = decide(&t, &s, &ask(&[pair(0, 1, 100)])).unwrap();
    assert_eq!(
        (p.circuits[0].setup_at, p.chosen.cct, p.chosen.others),
        (Time(60), Span(170), Span(110))
    );
    assert_eq!(p.chosen.score, Span(280));
    // One that begins when the short one is over does not wait for it.
    let later = PlacementRequest { ready: Span(80), ..ask(&[pair(0, 1, 100)]) };
    assert_eq!(decide(&t, &s, &later).unwrap().chosen.cct, Span(110));
}

#[test]
fn a_circuit_that_is_up_goes_on_without_dark_time() {
    let t = network(3, 1);
    let mut s = NetworkState { from: Time(40), ..NetworkState::idle(&t, Bytes(1)) };
    s.up[0] = Matching::from_pairs(3, [(0, 2)]);
    let expected = vec![(0, 2, 40, 90), (0, 1, 90, 130)];
    assert_eq!(estimate(&t, &s, &[pair(0, 1, 30), pair(0, 2, 50)]), (expected, 130));
    // An open coflow ends on the very circuit that we need.
    s.coflows = vec![open(1, &[pair(0, 2, 20)])];
    assert_eq!(estimate(&t, &s, &[pair(0, 2, 50)]), (vec![(0, 2, 60, 110)], 110));
}

#[test]
fn the_core_is_shared_and_taken_where_it_is_faster() {
    let t = network(3, 1);
    let mut s = NetworkState::idle(&t, Bytes(20));
    // Below T_e: 10 bytes at a hundredth of a byte a nanosecond.
    assert_eq!(estimate(&t, &s, &[pair(0, 1, 10)]), (vec![], 1000));
    // Beside a pair of 4 bytes and one of 1000, of which 10 pass meanwhile.
    let light = vec![pair(0, 2, 4), pair(2, 1, 1000)];
    s.coflows = vec![Arc::new(PendingCoflow { light, ..(*open(1, &[])).clone() })];
    assert_eq!(estimate(&t, &s, &[pair(0, 1, 10)]), (vec![], 2000));
    s.coflows = vec![open(1, &[pair(0, 2, 19)])];
    let fast = Topology {
        racks: network(3, 1)
            .racks
            .into_iter()
            .map(|r| crate::topology::Rack { uplink: FAST, ..r })
            .collect(),
        ..t
    };
    assert_eq!(
        estimate(&fast, &s, &[pair(0, 1, 20)]),
        (vec![], 39),
        "20 bytes beside 19 are sooner there than in the dark"
    );
    let none = NetworkState { circuits: false, ..NetworkState::idle(&fast, Bytes(1)) };
    assert_eq!(estimate(&fast, &none, &[pair(0, 1, 20)]), (vec![], 20));
    let mut broken = NetworkState::idle(&fast, Bytes(1));
    broken.usable[0].output[1] = false;
    assert_eq!(estimate(&fast, &broken, &[pair(0, 1, 20), pair(0, 0, 99)]), (vec![], 20));
}

#[test]
fn a_controller_that_knows_its_circuits_places_elsewhere() {
    // The example of the documentation: rack 2 is as free as rack 3, and its receiving port is not.
    let t = network(4, 1);
    let mut s = NetworkState::idle(&t, Bytes(10));
    s.coflows = vec![open(1, &[pair(3, 2, 90)])];
    let maps = vec![(RackId(0), Bytes(100))];
    let free = vec![vec![], vec![], vec![Span(0)], vec![Span(0)]];
    let shuffle = ShuffleSpec::Open {
        maps,
        by_task: vec![],
        reduces: 1,
        free: free.clone(),
        at_most: None,
        waves: false,
    };
    let request = PlacementRequest { shuffle, ready: Span::ZERO, deadline: None };
    let p = decide(&t, &s, &request).unwrap();
    // Rack 2 is not free before 100: that is enough to know.
    let out = Excluded {
        origin: PlacementOrigin::Slots,
        racks: vec![(RackId(2), 1)],
        start: Time::ZERO,
        late: false,
        least: Span(210),
    };
    assert_eq!(
        (p.excluded[0].why(&p.chosen), p.losers, p.excluded),
        ("not estimated: its score is 100ns more at least".into(), vec![], vec![out])
    );
    let p = decide_slowly(&t, &s, &request).unwrap();
    assert_eq!(
        (p.chosen.racks, p.chosen.cct, p.chosen.others),
        (vec![(RackId(3), 1)], Span(110), Span(0))
    );
    assert_eq!(
        (p.losers[0].origin, p.losers[0].cct, &p.losers[0].racks),
        (PlacementOrigin::Slots, Span(210), &vec![(RackId(2), 1)])
    );
    let c = Cluster::of(&t, Bytes(10));
    let q = ScheduleQuestion {
        cluster: &c,
        maps: &[(RackId(0), Bytes(100))],
        reduces: 1,
        widths: &[1],
        free: &free,
    };
    assert_eq!(
        on_idle(&q, &Idle(&c)).unwrap().best().racks,
        [(RackId(2), 1)],
        "on an idle network they are alike"
    );
}

#[test]
fn what_does_not_fit_is_said() {
    let t = network(3, 1);
    let s = NetworkState::idle(&t, Bytes(10));
    let ask = |reduces, free: &[usize], at_most, waves| {
        let free = free.iter().map(|&n| vec![Span::ZERO; n]).collect();
        let shuffle = ShuffleSpec::Open {
            maps: vec![(RackId(0), Bytes(100))],
            by_task: vec![],
            reduces,
            free,
            at_most,
            waves,
        };
        decide(&t, &s, &PlacementRequest { shuffle, ready: Span::ZERO, deadline: None })
    };
    assert_eq!(ask(5, &[2, 2, 0], None, false), Err(NoPlacement::Slots { tasks: 5, slots: 4 }));
    assert_eq!(ask(3, &[2, 2, 0], Some(1), false), Err(NoPlacement::Slots { tasks: 3, slots: 2 }));
    assert_eq!(ask(1, &[0, 0, 0], None, true), Err(NoPlacement::Slots { tasks: 1, slots: 0 }));
    assert!(ask(4, &[2, 2, 0], None, false).is_ok() && ask(5, &[2, 2, 0], None, true).is_ok());
    assert_eq!(ask(9, &[2, 2, 0], Some(3), true), Err(NoPlacement::Slots { tasks: 9, slots: 6 }));
}

#[test]
fn on_an_idle_cluster_of_the_papers_size_it_is_co_schedulers_choice() {
    let c = Cluster::co_scheduler();
    let plane = Plane {
        id: PlaneId(0),
        rate: c.ocs,
        delta: c.delta,
        stop: StopMode::NotAllStop,
        duplex: false,
    };
    // A core so slow that nothing is sooner there: Co-scheduler sends every elephant over circuits.
    let mut t =
        Topology::uniform("t", c.racks, c.hosts as usize, c.nic, BitRate::mbit(100), vec![plane]);
    t.framing = Framing::None;
    let s = NetworkState::idle(&t, c.elephant);
    for (racks, gb, reduces) in [(2, 10, 10), (4, 60, 40), (8, 82, 80)] {
        let maps: Vec<(RackId, Bytes)> =
            (0..racks).map(|r| (RackId(r), Bytes(gb * 1_000_000_000 / u64::from(racks)))).collect();
        // The racks of the maps are full.
        let free: Vec<Vec<Span>> = (0..c.racks as u32)
            .map(|r| if r < racks { vec![] } else { vec![Span::ZERO; 200] })
            .collect();
        let q = ScheduleQuestion {
            cluster: &c,
            maps: &maps,
            reduces,
            widths: &widths(&maps, reduces, &c),
            free: &free,
        };
        let own = on_idle(&q, &Idle(&c)).unwrap();
        let shuffle =
            ShuffleSpec::Open { maps, by_task: vec![], reduces, free, at_most: None, waves: true };
        let p = decide(&t, &s, &PlacementRequest { shuffle, ready: Span::ZERO, deadline: None })
            .unwrap();
        assert_eq!(
            (p.chosen.origin, &p.chosen.racks),
            (PlacementOrigin::Slots, &own.best().racks),
            "{gb} GB from {racks} racks"
        );
        assert!(p.chosen.cct >= own.best().cct && p.chosen.others == Span::ZERO);
    }
}

#[test]
fn circuits_of_one_coflow_follow_each_other() {
    let t = network(4, 1);
    let mut s = NetworkState::idle(&t, Bytes(1));
    s.coflows = vec![open(1, &[pair(0, 1, 40), pair(0, 2, 40)])];
    // 50 ns each on port 0, and then ours.
    assert_eq!(estimate(&t, &s, &[pair(0, 3, 200)]), (vec![(0, 3, 100, 310)], 310));
}

/// The first instant from which a circuit fits, looked for one by one.
fn slow_fit(
    base: &PortSpans,
    own: &PortSpans,
    up: &Matching,
    from: Time,
    w: &Want,
    rank: usize,
) -> Option<(Time, Time)> {
    let free = |t: u64| {
        [(0, w.input), (1, w.output)].iter().all(|&(side, rack)| {
            let port = (w.plane.id, side, rack);
            !base.is_taken(port, Time(t), rank) && !own.is_taken(port, Time(t), usize::MAX)
        })
    };
    (w.start.max(from).0..10_000).find_map(|t| {
        // Without dark time only where the very circuit was there until now: our tables hold no
        // other circuits of this pair.
        let dark =
            if t == from.0 && up.output(w.input) == Some(w.output) { 0 } else { w.plane.delta.0 };
        let until = t + dark + w.light.0;
        (t..until).all(free).then_some((Time(t), Time(until)))
    })
}

/// Racks, open coflows, map output and slots; small numbers.
type ShuffleCase = (Vec<(u32, u32, u64)>, Vec<u64>, Vec<Vec<u64>>);

fn case(racks: u32, slots: usize) -> impl Strategy<Value = ShuffleCase> {
    // Some sizes and times are alike, so that placements are as good as others.
    let coflows = prop::collection::vec(
        (0..racks, 0..racks, prop_oneof![1 => Just(100u64), 2 => 20u64..400]),
        0..6,
    );
    let maps =
        prop::collection::vec(prop_oneof![Just(0u64), Just(100u64), 40..400u64], 1..racks as usize);
    let instant = prop_oneof![1 => Just(0u64), 1 => Just(100u64), 2 => 0u64..300];
    let free = prop::collection::vec(prop::collection::vec(instant, 0..=slots), racks as usize);
    (coflows, maps, free)
}

fn build(
    t: &Topology,
    (coflows, maps, free): &ShuffleCase,
    reduces: u32,
) -> (NetworkState, PlacementRequest) {
    let mut s = NetworkState::idle(t, Bytes(20));
    let one = |(k, &(i, j, b)): (usize, &(u32, u32, u64))| open(k as u32, &[pair(i, j, b)]);
    s.coflows = coflows.iter().filter(|c| c.0 != c.1).enumerate().map(one).collect();
    let maps = maps
        .iter()
        .enumerate()
        .filter(|m| *m.1 > 0)
        .map(|(r, &b)| (RackId::from(r), Bytes(b)))
        .collect();
    let sorted = |f: &Vec<u64>| {
        let mut f: Vec<Span> = f.iter().map(|&t| Span(t)).collect();
        f.sort_unstable();
        f
    };
    let free = free.iter().map(sorted).collect();
    let shuffle =
        ShuffleSpec::Open { maps, by_task: vec![], reduces, free, at_most: None, waves: false };
    (s, PlacementRequest { shuffle, ready: Span::ZERO, deadline: None })
}

/// Every way to put tasks on racks, slots observed.
fn placements(free: &[Vec<Span>], tasks: u32) -> Vec<Vec<(RackId, u32)>> {
    let Some(last) = free.len().checked_sub(1) else {
        return if tasks == 0 { vec![vec![]] } else { vec![] };
    };
    let with = |n: u32| {
        placements(&free[..last], tasks - n).into_iter().map(move |mut p| {
            p.extend((n > 0).then_some((RackId::from(last), n)));
            p
        })
    };
    (0..=tasks.min(free[last].len() as u32)).flat_map(with).collect()
}

/// A network in any state: faults, circuits that are up, coflows that begin later and have light
/// pairs.
#[derive(Clone, Debug)]
struct GeneratedState {
    planes: Vec<(bool, u64, u64)>,
    up: Vec<(u32, u32)>,
    broken: Vec<u32>,
    light: Vec<(u32, u32, u64)>,
    heavy: Vec<(u32, u32, u64)>,
    starts: Vec<u64>,
    from: u64,
    uplink: u64,
}

prop_compose! {
    fn state(racks: u32)(
        planes in prop::collection::vec((any::<bool>(), 1u64..4, 0u64..30), 0..3),
        up in prop::collection::vec((0..racks, 0..racks), 0..4),
        broken in prop::collection::vec(0..racks, 0..2),
        light in prop::collection::vec((0..racks, 0..racks, 1u64..20), 0..4),
        heavy in prop::collection::vec((0..racks, 0..racks, 20u64..200), 0..8),
        starts in prop::collection::vec(0u64..300, 6),
        from in 0u64..50,
        uplink in 1u64..100,
    ) -> GeneratedState {
        GeneratedState { planes, up, broken, light, heavy, starts, from, uplink }
    }
}

fn dress(
    racks: usize,
    state: &GeneratedState,
    case: &ShuffleCase,
    reduces: u32,
) -> (Topology, NetworkState, PlacementRequest) {
    let mut t = network(racks, state.planes.len());
    for (p, &(duplex, rate, delta)) in t.planes.iter_mut().zip(&state.planes) {
        (p.duplex, p.rate, p.delta) = (duplex, BitRate(FAST.0 * rate), Span(delta));
    }
    t.racks.iter_mut().for_each(|r| r.uplink = BitRate(FAST.0 * state.uplink / 100));
    let (mut s, request) = build(&t, case, reduces);
    (s.now, s.from) = (Time(7), Time(7 + state.from));
    for &(i, j) in &state.up {
        let free =
            |m: &Matching| i != j && m.output(RackId(i)).is_none() && m.input(RackId(j)).is_none();
        if let Some(m) = s.up.iter_mut().find(|m| free(m)) {
            m.connect(RackId(i), RackId(j));
        }
    }
    state.broken.iter().zip(&mut s.usable).for_each(|(&r, u)| u.input[r as usize] = false);
    for (c, &start) in s.coflows.iter_mut().zip(&state.starts) {
        Arc::make_mut(c).start = Time(start);
    }
    if let Some(c) = s.coflows.first_mut().map(Arc::make_mut) {
        let pairs = |all: &[(u32, u32, u64)]| {
            all.iter().filter(|l| l.0 != l.1).map(|&(i, j, b)| pair(i, j, b)).collect::<Vec<_>>()
        };
        (c.light, c.heavy) = (pairs(&state.light), [c.heavy.clone(), pairs(&state.heavy)].concat());
    }
    (t, s, request)
}

proptest! {
    #![proptest_config(crate::testing::drawn(512))]
    #[test]
    fn the_answer_is_that_of_the_slow_twin(
        (c, state, reduces) in (case(8, 4), state(8), 1u32..14),
        (at_most, deadline, waves) in (prop::option::of(1u32..4), prop::option::of(0u64..4000), any::<bool>()),
    ) {
        let (t, s, mut request) = dress(8, &state, &c, reduces);
        if let ShuffleSpec::Open { at_most: most, waves: w, .. } = &mut request.shuffle { (*most, *w) = (at_most, waves); }
        request.deadline = deadline.map(Span);
        let (fast, slow) = match (decide(&t, &s, &request), decide_slowly(&t, &s, &request)) {
            (Ok(fast), Ok(slow)) => (fast, slow),
            (fast, slow) => {
                prop_assert_eq!(fast, slow);
                return Ok(());
            }
        };
        prop_assert_eq!((&fast.chosen, &fast.pairs, &fast.circuits), (&slow.chosen, &slow.pairs, &slow.circuits));
        prop_assert_eq!(fast.losers.len() + fast.excluded.len(), slow.losers.len());
        prop_assert!(fast.losers.iter().all(|l| slow.losers.contains(l)) && fast.losers.is_sorted_by(|a, b| a.key() < b.key()));
        for e in &fast.excluded {
            let judged = slow.losers.iter().find(|l| l.racks == e.racks).unwrap();
            prop_assert!((!judged.on_time, judged.score) >= (e.late, e.least), "{e:?} is {judged:?}");
            prop_assert!((e.late, e.least) > (!fast.chosen.on_time, fast.chosen.score));
        }
    }

    #[test]
    fn nothing_is_estimated_below_its_least(
        (c, state, start) in (case(6, 3), state(6), 0u64..400),
        bytes in prop::collection::btree_map((0u32..6, 0u32..6), 1u64..400, 1..12),
    ) {
        let (t, s, _) = dress(6, &state, &c, 1);
        let moved = bytes.iter().map(|(&(i, j), &b)| RackTransfer { from: RackId(i), to: RackId(j), bytes: Bytes(b) });
        let moved: Vec<RackTransfer> = moved.collect();
        let busy = Occupancy::new(&t, &s);
        let (least, e) = (busy.least(&moved, Time(start)), busy.estimate(&moved, Time(start)));
        prop_assert!(least.cct <= e.cct && least.others <= e.others, "{least:?} {e:?}");
        prop_assert!(busy.table.is_sound());
    }
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    #[test]
    fn the_first_fit_is_the_first(
        taken in prop::collection::vec((0u32..3, 0u32..3, 0u64..200, 1u64..60, 0usize..4), 0..12),
        (i, j, light, start, from, rank, is_up) in (0u32..3, 0u32..3, 1u64..80, 0u64..150, 0u64..100, 0usize..5, any::<bool>()),
    ) {
        prop_assume!(i != j);
        let t = network(3, 1);
        let (mut base, none) = (PortSpans::new(1, 3), PortSpans::new(1, 3));
        let plane = &t.planes[0];
        let mut up = Matching::empty(3);
        if is_up { up.connect(RackId(i), RackId(j)); }
        for (a, b, at, long, rank) in taken {
            let want = Want { plane, input: RackId(a), output: RackId(b), light: Span(long), start: Time(at) };
            let busy = |side, rack| (at..at + long).any(|t| base.is_taken((PlaneId(0), side, RackId(rack)), Time(t), usize::MAX));
            if a != b && (a, b) != (i, j) && !busy(0, a) && !busy(1, b) {
                let r = Reservation {
                    plane: PlaneId(0), input: RackId(a), output: RackId(b), setup_at: Time(at), up_from: Time(at), until: Time(at + long),
                };
                base.take(&want, &r, rank);
            }
        }
        let want = Want { plane, input: RackId(i), output: RackId(j), light: Span(light), start: Time(start) };
        let fast = first_fit(&base, &none, &up, Time(from), &want, rank).map(|r| (r.setup_at, r.until));
        prop_assert_eq!(fast, slow_fit(&base, &none, &up, Time(from), &want, rank));
    }

    #[test]
    fn the_best_of_few_placements_is_the_best_of_all(c in case(4, 3), reduces in 1u32..5) {
        let t = network(4, 1);
        let (s, request) = build(&t, &c, reduces);
        let ShuffleSpec::Open { maps, free, .. } = &request.shuffle else { unreachable!() };
        let busy = Occupancy::new(&t, &s);
        let score = |mut racks: Vec<(RackId, u32)>| {
            racks.sort_by_key(|&(r, n)| (std::cmp::Reverse(n), r));
            let start = racks.iter().map(|&(r, n)| free[r.index()][n as usize - 1]).max().unwrap();
            let e = busy.estimate(&coflow(maps, &racks), Time::ZERO + start);
            start + e.cct + e.others
        };
        match (decide(&t, &s, &request), placements(free, reduces)) {
            (Err(_), all) => prop_assert!(all.is_empty()),
            (Ok(p), all) => {
                prop_assert_eq!(p.losers.len() + p.excluded.len() + 1, all.len());
                prop_assert_eq!(p.chosen.score, all.into_iter().map(score).min().unwrap());
            }
        }
    }

    #[test]
    fn laws_of_every_answer(
        c in case(8, 4), reduces in 1u32..14, planes in 0usize..3,
        (at_most, deadline) in (prop::option::of(1u32..4), prop::option::of(0u64..2000)),
    ) {
        let t = network(8, planes);
        let (s, mut request) = build(&t, &c, reduces);
        if let ShuffleSpec::Open { at_most: most, .. } = &mut request.shuffle { *most = at_most; }
        request.deadline = deadline.map(Span);
        let ShuffleSpec::Open { maps, free, .. } = &request.shuffle else { unreachable!() };
        let answer = decide(&t, &s, &request);
        prop_assert_eq!(&answer, &decide(&t, &s, &request), "the same question, the same answer");
        let slots: usize = free.iter().map(|f| f.len().min(at_most.unwrap_or(u32::MAX) as usize)).sum();
        prop_assert_eq!(answer.is_ok(), slots >= reduces as usize);
        let Ok(p) = answer else { return Ok(()) };
        for c in std::iter::once(&p.chosen).chain(&p.losers) {
            prop_assert_eq!(c.racks.iter().map(|r| r.1).sum::<u32>(), reduces);
            for &(r, n) in &c.racks {
                prop_assert!(n <= at_most.unwrap_or(u32::MAX) && free[r.index()][n as usize - 1] <= c.start.since(Time::ZERO));
            }
            prop_assert!(c.cct >= c.bound && c.key() >= p.chosen.key());
            prop_assert_eq!(c.on_time, deadline.is_none_or(|d| c.finish() <= Time(d)));
        }
        // No port twice: among its own circuits, and beside those of the coflows before it.
        let table: Timetable = p.circuits.iter().copied().collect();
        prop_assert_eq!(table.check(&t.planes, 8), Ok(()));
        let busy = Occupancy::new(&t, &s);
        let riding: Vec<RackBytes> =
            p.pairs.iter().filter(|w| w.bytes >= s.threshold).map(|w| pair(w.from.0, w.to.0, w.bytes.0)).collect();
        let bound = busy.bound_of(&riding);
        for r in &p.circuits {
            for (side, rack) in [(0, r.input), (1, r.output)] {
                prop_assert!((r.setup_at.0..r.until.0).all(|t| !busy.is_taken((r.plane, side, rack), Time(t), bound)));
            }
        }
        // Every byte goes one way.
        let moved: u64 = p.pairs.iter().map(|w| w.bytes.0).sum();
        let asked: u64 = coflow(maps, &p.chosen.racks).iter().filter(|x| x.from != x.to).map(|x| x.bytes.0).sum();
        prop_assert_eq!(moved, asked);
        prop_assert_eq!(p.circuits.len(), p.pairs.iter().filter(|w| w.ocs).count());
    }

    #[test]
    fn an_idle_network_gets_co_schedulers_own_choice(
        racks in 1usize..4, each in 1u64..40, reduces in 12u32..40, free in prop::collection::vec(prop::collection::vec(0u64..900, 20), 10),
    ) {
        // Maps on racks of their own, each with as much.
        let t = network(14, 1);
        let maps: Vec<(RackId, Bytes)> = (10..10 + racks).map(|r| (RackId::from(r), Bytes(each * 100))).collect();
        let c: ShuffleCase = (vec![], vec![], free.into_iter().chain(vec![vec![]; 4]).collect());
        let (s, mut request) = build(&t, &c, reduces);
        if let ShuffleSpec::Open { maps: m, .. } = &mut request.shuffle { m.clone_from(&maps); }
        let ShuffleSpec::Open { free, .. } = &request.shuffle else { unreachable!() };
        let cluster = Cluster::of(&t, s.threshold);
        let q = ScheduleQuestion { cluster: &cluster, maps: &maps, reduces, widths: &widths(&maps, reduces, &cluster), free };
        let own = on_idle(&q, &Idle(&cluster)).unwrap();
        let busy = Occupancy::new(&t, &s);
        let sorted = |r: &Vec<(RackId, u32)>| {
            let mut r = r.clone();
            r.sort_by_key(|&(r, n)| (std::cmp::Reverse(n), r));
            r
        };
        let cct = |r: &Vec<(RackId, u32)>| busy.completion(&coflow(&maps, &sorted(r)), Span::ZERO);
        let ours = decide(&t, &s, &request).unwrap().chosen;
        let its = own.best().start + cct(&own.best().racks);
        prop_assert!(ours.finish().since(Time::ZERO) <= its);
        // Where T(C) is reached it is the same choice, unless a placement that Co-scheduler does
        // not consider ends sooner.
        prop_assume!(own.candidates.iter().all(|c| cct(&c.racks) == c.cct));
        let same = (ours.origin, &ours.racks) == (PlacementOrigin::Slots, &sorted(&own.best().racks));
        prop_assert!(same || ours.origin != PlacementOrigin::Slots && ours.finish().since(Time::ZERO) < its, "{ours:?} for {:?}", own.best());
    }
}
