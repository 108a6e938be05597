//! What a scheduler makes of one matrix from beginning to end: decision after decision, laid out in
//! one timetable, until all is carried.
//!
//! The same steps as in the control loop ([`Scheduler::decide`], [`lay_out`],
//! [`Timetable::check`]), with demand that is known and circuits that carry exactly their rate.

use super::layout::lay_out;
use super::timetable::{Clash, Reservation, Timetable};
use super::{Ask, Matching, Scheduler, SetBy, Usable};
use crate::coflows::bounds;
use crate::demand::DemandMatrix;
use crate::topology::Plane;
use crate::units::{BitRate, Bytes, Span, Time};

/// Decisions per rack after which demand that does not become less is given up: a rotation passes
/// every pair in fewer. As many dark times must have passed as well, since intervals may be far
/// shorter.
const IDLE: usize = 2;
/// The most decisions for one matrix: each takes microseconds in a small network, and milliseconds
/// in one of a thousand racks.
pub const MOST_DECISIONS: u64 = 10_000_000;

/// Why a matrix is not cleared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// The scheduler made a timetable that no OCS can follow.
    #[error(transparent)]
    Clash(#[from] Clash),
    /// It would take too many decisions.
    #[error(
        "{demand} take at least {takes}, which is {decisions} decisions, one every {interval}; allowed: {MOST_DECISIONS} decisions"
    )]
    Endless {
        /// All bytes of the matrix.
        demand: Bytes,
        /// No scheduler is sooner through.
        takes: Span,
        /// How many decisions are made by then.
        decisions: u64,
        /// From one decision to the next.
        interval: Span,
    },
    /// The scheduler took too many decisions.
    #[error("{left} are left after {MOST_DECISIONS} decisions, {at} after the beginning")]
    TooSlow {
        /// What has not been carried.
        left: Bytes,
        /// Time that has passed.
        at: Span,
    },
}

/// How a matrix is cleared.
pub struct ClearingOptions<'a> {
    /// The planes, all alike: rate, delta, stop mode, duplex.
    pub planes: &'a [Plane],
    /// A rack's rate on the electrical network, each way; zero if circuits must carry everything.
    pub eps: BitRate,
    /// From one decision to the next; [`Span::MAX`] for one decision in all.
    pub interval: Span,
}

/// A cleared matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clearing {
    /// Every circuit, and the bytes that it carries; none beyond the completion.
    pub circuits: Vec<(Reservation, Bytes)>,
    /// How many times the scheduler was asked.
    pub decisions: usize,
    /// When the last byte has been carried; `None` when the scheduler never gets there.
    pub completion: Option<Span>,
    /// What the electrical network carries beside.
    pub over_eps: Bytes,
    /// What is never carried.
    pub left: Bytes,
}

/// Clears `demand` (bytes, `R x R`) with `scheduler` from time zero on, all ports dark at first.
///
/// The electrical network, if there is one, works from the beginning on what no circuit will carry.
/// As in Solstice, the matrix is done as soon as every rack's rest, both ways, fits into the time
/// that has passed.
///
/// # Errors
/// A timetable that no OCS can follow, or more than [`MOST_DECISIONS`]; if that is certain, before
/// the first one.
///
/// # Complexity
/// That of the scheduler, and O(R^2 + n log n) a decision for n circuits in all.
pub fn clear(
    scheduler: &mut dyn Scheduler,
    demand: &DemandMatrix,
    setting: &ClearingOptions,
) -> Result<Clearing, Failed> {
    ends(scheduler, demand, setting)?;
    let racks = demand.racks();
    let usable = vec![Usable::all(racks); setting.planes.len()];
    let (mut left, mut table, mut at) = (demand.clone(), Timetable::default(), Time::ZERO);
    let mut out = Clearing {
        circuits: vec![],
        decisions: 0,
        completion: None,
        over_eps: Bytes::ZERO,
        left: Bytes::ZERO,
    };
    let dark = setting.planes.iter().map(|p| p.delta).max().unwrap_or_default() * IDLE as u64;
    let (mut last, mut idle, mut begun) = (Time::ZERO, 0, at);
    while left.total() > 0 && at < Time::MAX && (idle <= IDLE * racks || at.since(begun) <= dark) {
        if out.decisions as u64 >= MOST_DECISIONS {
            return Err(Failed::TooSlow { left: Bytes(left.total()), at: at.since(Time::ZERO) });
        }
        let current: Vec<Matching> =
            setting.planes.iter().map(|p| table.matching_at(p.id, racks, at)).collect();
        let ask = Ask {
            demand: &left,
            current: &current,
            planes: setting.planes,
            usable: &usable,
            at,
            interval: setting.interval,
            cycle: out.decisions as u64,
            eps: setting.eps,
            coflows: &[],
        };
        let decision = scheduler.decide(&ask);
        table = lay_out(&table, &decision, setting.planes, racks, at);
        table.check(setting.planes, racks)?;
        table.check_all_stop(setting.planes)?;
        let before = left.clone();
        let end = at + setting.interval;
        last = last.max(carry(&table, setting.planes, at, end, &mut left, &mut out.circuits));
        out.decisions += 1;
        at = end;
        (idle, begun) = if left == before { (idle + 1, begun) } else { (0, at) };
        table.forget_before(at);
        if eps_time(&left, setting.eps) <= at.since(Time::ZERO) {
            break;
        }
    }
    let rest = eps_time(&left, setting.eps);
    let through = rest < Span::MAX;
    out.completion = through.then(|| last.since(Time::ZERO).max(rest));
    let sum = Bytes(left.total());
    (out.over_eps, out.left) = if through { (sum, Bytes::ZERO) } else { (Bytes::ZERO, sum) };
    tidy(&mut out.circuits, out.completion.map_or(at, |c| Time::ZERO + c));
    Ok(out)
}

/// Whether a matrix can be through within [`MOST_DECISIONS`], by a scheduler that sets circuits.
/// Another one is given up when it carries nothing.
fn ends(
    scheduler: &dyn Scheduler,
    demand: &DemandMatrix,
    setting: &ClearingOptions,
) -> Result<(), Failed> {
    let Some(plane) = setting.planes.first().filter(|_| scheduler.set_by() == SetBy::Scheduler)
    else {
        return Ok(());
    };
    let (takes, interval) = (
        bounds::circuits(demand, plane, setting.planes.len() as u64, setting.eps),
        setting.interval,
    );
    let decisions = takes.0 / interval.0.max(1);
    if decisions <= MOST_DECISIONS {
        Ok(())
    } else {
        Err(Failed::Endless { demand: Bytes(demand.total()), takes, decisions, interval })
    }
}

/// The time that the electrical network needs for the busiest port's rest; `Span::MAX` if it never
/// gets there.
fn eps_time(left: &DemandMatrix, eps: BitRate) -> Span {
    let mut columns = vec![0u64; left.racks()];
    let mut most = 0u64;
    for row in left.cells().chunks_exact(left.racks().max(1)) {
        most = most.max(row.iter().fold(0, |a, &b| a.saturating_add(b)));
        columns.iter_mut().zip(row).for_each(|(c, b)| *c = c.saturating_add(*b));
    }
    eps.time_for(Bytes(columns.into_iter().fold(most, u64::max)))
}

/// Takes from `left` what the table's circuits carry within `at..end`; returns when the last byte
/// has been carried.
fn carry(
    table: &Timetable,
    planes: &[Plane],
    at: Time,
    end: Time,
    left: &mut DemandMatrix,
    out: &mut Vec<(Reservation, Bytes)>,
) -> Time {
    // By pair and time: circuits of one pair on several planes share its bytes in the order in
    // which they get light. Those that this decision cut off at `at` are among them, for their new
    // end.
    let mut lit: Vec<Reservation> =
        table.iter().filter(|r| r.until >= at && r.setup_at < end).copied().collect();
    lit.sort_by_key(|r| (r.input, r.output, r.up_from, r.plane));
    let mut last = Time::ZERO;
    for same in lit.chunk_by(|a, b| (a.input, a.output) == (b.input, b.output)) {
        let need = left.get(same[0].input, same[0].output);
        let mut carried = vec![0u64; same.len()];
        let mut rest = need;
        let mut times: Vec<Time> = same
            .iter()
            .flat_map(|r| [r.up_from.max(at), r.until.min(end)])
            .filter(|&t| t >= at && t <= end)
            .collect();
        times.sort_unstable();
        times.dedup();
        for w in times.windows(2) {
            let up: Vec<usize> = (0..same.len())
                .filter(|&k| same[k].up_from <= w[0] && w[0] < same[k].until)
                .collect();
            let rate = up
                .iter()
                .map(|&k| planes[same[k].plane.index()].rate.0)
                .fold(0, u64::saturating_add);
            if rest == 0 || rate == 0 {
                continue;
            }
            let needs = BitRate(rate).time_for(Bytes(rest));
            let took = needs.min(w[1].since(w[0]));
            for &k in &up {
                let part = planes[same[k].plane.index()].rate.bytes_in(took).0.min(rest);
                carried[k] += part;
                rest -= part;
            }
            // Shares that were rounded down: less than a byte a circuit.
            if took == needs {
                carried[up[0]] += rest;
                rest = 0;
            }
            last = last.max(w[0] + took);
        }
        left.set(same[0].input, same[0].output, rest);
        out.extend(same.iter().zip(carried).map(|(r, b)| (*r, Bytes(b))));
    }
    last
}

/// A circuit that stayed over several decisions is one circuit, and none is left up when all is
/// carried at `end`.
fn tidy(circuits: &mut Vec<(Reservation, Bytes)>, end: Time) {
    circuits.retain(|(r, _)| r.up_from < end);
    circuits.iter_mut().for_each(|(r, _)| r.until = r.until.min(end));
    circuits.sort_by_key(|(r, _)| (r.plane, r.input, r.setup_at, r.up_from));
    circuits.dedup_by(|next, one| {
        let same = (one.0.plane, one.0.input, one.0.output, one.0.setup_at)
            == (next.0.plane, next.0.input, next.0.output, next.0.setup_at);
        if same {
            one.1 = one.1.saturating_add(next.1);
            one.0.until = next.0.until;
        }
        same
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decompose::Solstice;
    use crate::ids::PlaneId;
    use crate::matching::{Bipartite, EpsOnly, RoundRobin};
    use crate::topology::StopMode;
    use proptest::prelude::*;

    /// A byte a nanosecond.
    fn planes(n: u32, delta: u64) -> Vec<Plane> {
        let plane = |id| Plane {
            id: PlaneId(id),
            rate: BitRate(8_000_000_000),
            delta: Span(delta),
            stop: StopMode::NotAllStop,
            duplex: false,
        };
        (0..n).map(plane).collect()
    }

    #[test]
    fn one_matrix_by_hand() {
        let d = DemandMatrix::from_rows(&[&[0, 70, 20], &[0, 0, 30], &[0, 0, 0]]);
        let p = planes(1, 10);
        let setting = ClearingOptions { planes: &p, eps: BitRate::ZERO, interval: Span(50) };
        // 0 -> 1 and 1 -> 2 for 40 ns; 0 -> 1 goes on and ends at 80; 0 -> 2 from 100 to 130.
        let c = clear(&mut Bipartite::default(), &d, &setting).unwrap();
        assert_eq!((c.completion, c.decisions, c.left), (Some(Span(130)), 3, Bytes(0)));
        let times: Vec<_> = c
            .circuits
            .iter()
            .map(|(r, b)| (r.input.0, r.output.0, r.setup_at.0, r.until.0, b.0))
            .collect();
        assert_eq!(times, [(0, 1, 0, 100, 70), (0, 2, 100, 130, 20), (1, 2, 0, 50, 30)]);
    }

    #[test]
    fn what_is_never_carried_is_said() {
        let d = DemandMatrix::from_rows(&[&[0, 70], &[0, 0]]);
        let p = planes(1, 10);
        let never = clear(
            &mut EpsOnly,
            &d,
            &ClearingOptions { planes: &p, eps: BitRate::ZERO, interval: Span(50) },
        )
        .unwrap();
        assert_eq!((never.completion, never.left, never.circuits.len()), (None, Bytes(70), 0));
        let eps = clear(
            &mut EpsOnly,
            &d,
            &ClearingOptions { planes: &p, eps: BitRate(800_000_000), interval: Span(50) },
        )
        .unwrap();
        assert_eq!((eps.completion, eps.over_eps), (Some(Span(700)), Bytes(70)));
        let dark = clear(
            &mut Bipartite::default(),
            &d,
            &ClearingOptions { planes: &p, eps: BitRate::ZERO, interval: Span(10) },
        )
        .unwrap();
        assert_eq!(
            dark.completion,
            Some(Span(80)),
            "a circuit that goes on being set up gets light"
        );
        let short = clear(
            &mut Bipartite::default(),
            &d,
            &ClearingOptions { planes: &p, eps: BitRate::ZERO, interval: Span(1) },
        )
        .unwrap();
        assert_eq!(
            (short.completion, short.decisions),
            (Some(Span(80)), 80),
            "however many decisions that takes"
        );
    }

    #[test]
    fn decisions_without_end_are_refused() {
        let d = DemandMatrix::from_rows(&[&[0, 1 << 40], &[0, 0]]);
        let slow = [Plane { rate: BitRate(1000), ..planes(1, 10)[0].clone() }];
        let refused = |planes: &[Plane], interval| {
            clear(
                &mut Bipartite::default(),
                &d,
                &ClearingOptions { planes, eps: BitRate::ZERO, interval },
            )
            .unwrap_err()
            .to_string()
        };
        let told = "1.1TB take at least 8796093022.208s, which is 87960930222 decisions, one every 100ms; allowed: 10000000 decisions";
        assert_eq!(refused(&slow, Span::millis(100)), told);
        // An hour of dark time alone, a nanosecond after another.
        assert!(refused(&planes(1, 3_600_000_000_000), Span(1)).contains("decisions"));
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn all_bytes_are_accounted_for(
            v in prop::collection::vec(prop_oneof![Just(0u64), 0u64..500], 16), n in 1u32..4, delta in 0u64..30, eps in 0u64..3,
        ) {
            let d = DemandMatrix::zero(4).map_pairs(|i, j, _| v[i.index() * 4 + j.index()]);
            let p = planes(n, delta);
            let eps = BitRate(eps * 100_000_000);
            let all: [(Box<dyn Scheduler>, Span); 3] =
                [(Box::new(Bipartite::default()), Span(60)), (Box::new(RoundRobin), Span(60)), (Box::new(Solstice), Span::MAX)];
            for (mut s, interval) in all {
                let c = clear(&mut *s, &d, &ClearingOptions { planes: &p, eps, interval }).unwrap();
                let by_circuit: u64 = c.circuits.iter().map(|x| x.1.0).sum();
                prop_assert_eq!(by_circuit + c.over_eps.0 + c.left.0, d.total());
                prop_assert_eq!(c.left.0, 0);
                let table: Timetable = c.circuits.iter().map(|x| x.0).collect();
                prop_assert_eq!(table.check(&p, 4), Ok(()));
                for (r, b) in &c.circuits {
                    prop_assert!(b.0 <= r.until.since(r.up_from).0 + u64::from(n), "{r:?} carries {b}");
                }
            }
        }
    }
}
