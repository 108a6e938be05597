use std::sync::Arc;

use super::*;

fn stalls(patience: Option<u64>) -> Stalls {
    let t = Topology::uniform("t", 4, 2, BitRate::mbit(1000), BitRate::mbit(100), vec![]);
    Stalls::new(Arc::new(t), patience.map(Span::secs))
}

/// A flow of coflow `c` from host `from` to host `to`; `moved` bytes have arrived.
fn flow(c: u32, (from, to): (u32, u32), moved: u64) -> WaitingBytes {
    WaitingBytes {
        key: StallKey::Flow(CoflowId(c), FlowId(from * 100 + to)),
        coflow: CoflowId(c),
        ends: (HostId(from), HostId(to)),
        waits: Bytes(3_000_000),
        moved: (moved, 0),
        priority: 0,
        hold: Hold::No,
    }
}

const DARK: fn(RackId, RackId, Time, Time) -> Span = |_, _, _, _| Span::ZERO;

fn at(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

/// Looks twice a second, from `from` to `to` (ms), at what `all` gives; every word with its time.
fn looks(
    s: &mut Stalls,
    (from, to): (u64, u64),
    all: impl Fn(u64) -> Vec<WaitingBytes>,
) -> Vec<(u64, StallNews)> {
    let one = |ms: u64| {
        s.look(at(ms), &all(ms), DARK).into_iter().map(move |w| (ms, w)).collect::<Vec<_>>()
    };
    (from..to).step_by(500).flat_map(one).collect()
}

#[test]
fn what_does_not_move_is_told_by_name_again_when_it_has_lasted_twice_as_long_and_when_it_moves() {
    let mut s = stalls(None);
    let told = looks(&mut s, (0, 14_000), |_| vec![flow(7, (0, 5), 9)]);
    let times: Vec<u64> = told.iter().map(|t| t.0).collect();
    assert_eq!(times, [5500, 11_000], "{told:?}");
    let why = "flow h0-0 -> h2-1: 3MB of it have not arrived, and nothing has moved for 5 s";
    assert_eq!(told[0].1, StallNews::Stalled(CoflowId(7), why.into()));
    assert_eq!(
        looks(&mut s, (14_000, 15_000), |_| vec![flow(7, (0, 5), 10)]),
        [(14_000, StallNews::Moves(CoflowId(7)))]
    );
    // And the end of a coflow is an end of its silence.
    looks(&mut s, (15_000, 22_000), |_| vec![flow(7, (0, 5), 10)]);
    assert_eq!(
        looks(&mut s, (22_000, 23_000), |_| vec![]),
        [(22_000, StallNews::Moves(CoflowId(7)))]
    );
}

#[test]
fn what_moves_is_never_told_however_slow_it_is() {
    let mut s = stalls(Some(1));
    assert_eq!(looks(&mut s, (0, 60_000), |ms| vec![flow(1, (0, 5), ms / 4000)]), []);
}

#[test]
fn many_flows_and_slow_links_take_their_turns() {
    let (s, one) = (stalls(None), SILENCE.0);
    assert!(s.bears(1).0 < one + 100_000_000 && s.bears(500).0 > one + 9_000_000_000);
    let slow = Topology::uniform("t", 2, 1, BitRate::mbit(1), BitRate(64_000), vec![]);
    assert!(Stalls::new(Arc::new(slow), None).bears(1) > Span::secs(20));
}

#[test]
fn a_run_s_patience_ends_what_has_stalled_and_no_sooner_than_it_has() {
    for (patience, ends) in [(2, 5500), (10, 10_000)] {
        let told = looks(&mut stalls(Some(patience)), (0, 12_000), |_| vec![flow(3, (0, 2), 0)]);
        let first = told.iter().find(|t| matches!(t.1, StallNews::Overdue(..))).expect("overdue");
        assert_eq!(first.0, ends, "{told:?}");
    }
}

#[test]
fn elephants_that_have_no_way_but_a_circuit_wait_for_its_light() {
    let held = || vec![WaitingBytes { hold: Hold::Circuit, ..flow(1, (0, 2), 0) }];
    let mut s = stalls(Some(1));
    assert_eq!(looks(&mut s, (0, 100_000), |_| held()), [], "in the dark");
    // Light for a tenth of the time, as in a rotation.
    let lit = |_, _, from: Time, to: Time| Span(to.since(from).0 / 10);
    let words: Vec<_> = (0..40).map(|k| s.look(at(100_000 + k * 500), &held(), lit)).collect();
    let first = words.iter().position(|w| !w.is_empty()).expect("told");
    assert!((19..24).contains(&first), "after a second of light: {first}");
}

#[test]
fn what_waits_behind_a_better_priority_that_moves_is_no_stall_elsewhere_it_is() {
    let last = |c, ends| WaitingBytes { priority: 5, ..flow(c, ends, 0) };
    let first = |ends, ms| WaitingBytes { priority: 1, ..flow(9, ends, ms) };
    // Of hosts 0, 1 of rack 0 and 2, 3 of rack 1: the same uplink, the same receiver; then other
    // racks.
    for (ends, told) in [((1, 4), 0), ((5, 2), 0), ((4, 6), 1)] {
        let words =
            looks(&mut stalls(None), (0, 7000), |ms| vec![last(1, (0, 2)), first(ends, ms)]);
        assert_eq!(words.len(), told, "{ends:?}: {words:?}");
    }
    let words = looks(&mut stalls(None), (0, 7000), |_| vec![last(1, (0, 2)), first((0, 3), 0)]);
    assert_eq!(words.len(), 2, "neither moves: {words:?}");
}

#[test]
fn a_receiver_that_does_not_read_is_no_fault_of_the_network() {
    let held = |hold| {
        vec![WaitingBytes { hold, key: StallKey::Connection(HostId(0), 77), ..flow(1, (0, 2), 4) }]
    };
    let mut s = stalls(None);
    assert_eq!(looks(&mut s, (0, 30_000), |_| held(Hold::Reader)), []);
    let told = looks(&mut s, (30_000, 36_500), |_| held(Hold::No));
    assert!(
        matches!(&told[..], [(_, StallNews::Stalled(_, why))] if why.starts_with("connection h0-0 -> h1-0: 3MB wait")),
        "{told:?}"
    );
}

#[test]
fn a_machine_that_slept_has_not_waited() {
    let mut s = stalls(None);
    let all = [flow(1, (0, 2), 0)];
    let words: Vec<_> = [0, 500, 3_600_000, 3_600_500]
        .map(|ms| s.look(at(ms), &all, DARK))
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(words, []);
}
