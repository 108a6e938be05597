//! Sunflow: every circuit with times of its own, coflow after coflow.

use std::collections::{BTreeMap, BTreeSet};

use crate::demand::DemandMatrix;
use crate::ids::RackId;
use crate::timetable::Reservation;
use crate::topology::Plane;
use crate::units::{Bytes, Span, Time};
use crate::{Matching, steps};

use crate::coflows::bounds;

pub mod need;
pub mod round;
mod scheduler;
pub mod window;

pub use crate::coflows::orders::{Order, OrderKey};
pub use scheduler::Sunflow;

/// What [`sunflow`] planned.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SunflowPlan {
    /// All circuits, coflow after coflow, each by time: what [`crate::PlaneDecision::Reservations`]
    /// takes.
    pub reservations: Vec<Reservation>,
    /// By coflow as given: when its last byte has been carried; the beginning for a coflow without
    /// demand.
    pub finish: Vec<Time>,
}

/// Circuits for coflows in order of priority on one not-all-stop plane.
///
/// Within a coflow a circuit that is set up stays until its demand is carried, unless a coflow
/// before it has reserved one of its ports for later. A coflow takes only port time that the
/// earlier ones leave. A circuit starts as soon as both ports are free, for longer than the dark
/// time. Where several could, one that goes on without dark time comes first, then those of the
/// smaller `output - input` (modulo R), so that equal demand rotates; the paper leaves this order
/// free.
///
/// # Arguments
/// - `coflows`: bytes by (input, output), `R x R` each, first priority first (see
///   [`shortest_first`]).
/// - `plane`: rate and delta; `current`: what is up at the beginning and need not be set up.
/// - `at`: the beginning.
///
/// # Returns
/// Reservations that pass [`crate::timetable::Timetable::check`]. One coflow alone ends
/// within twice [`bounds::circuit`], and has one circuit for each pair.
///
/// # Complexity
/// O(R^2 + C R log C) for one coflow of C circuits. A later coflow also passes the ends of all
/// circuits before it, O(R log C) each, until its end.
///
/// # Example
/// ```
/// use heliostat_circuits::{Matching, sunflow::sunflow, demand::DemandMatrix, ids::PlaneId};
/// use heliostat_circuits::{topology::{Plane, StopMode}, units::{BitRate, Span, Time}};
/// let rate = BitRate(8_000_000_000); // a byte a nanosecond
/// let plane = Plane { id: PlaneId(0), rate, delta: Span(10), stop: StopMode::NotAllStop, duplex: false };
/// let d = DemandMatrix::from_rows(&[&[0, 70, 20], &[0, 0, 30], &[0, 0, 0]]);
/// let plan = sunflow(&[&d], &plane, &Matching::empty(3), Time(0));
/// assert_eq!(plan.finish, [Time(110)]); // 0 -> 1 until 80, then 0 -> 2
/// ```
///
/// # Source
/// Huang, Sun and Ng, *Sunflow: efficient optical circuit scheduling for coflows*, CoNEXT 2016,
/// algorithm 1 and section 4.
pub fn sunflow(
    coflows: &[&DemandMatrix],
    plane: &Plane,
    current: &Matching,
    at: Time,
) -> SunflowPlan {
    let mut plan = SunflowPlan::default();
    let mut table = PortTable::new(current, at);
    for demand in coflows {
        let mut one =
            PlannedCoflow { rest: light(demand, plane), finish: at, plane, racks: demand.racks() };
        let all: BTreeSet<usize> = (0..demand.racks()).collect();
        one.start_at(at, &all, &BTreeSet::new(), &mut table, &mut plan.reservations);
        // Every end of a reservation frees two ports; nothing else lets a circuit start.
        let mut now = at;
        while let Some((t, inputs, outputs)) = table.freed_after(now) {
            now = t;
            one.start_at(t, &inputs, &outputs, &mut table, &mut plan.reservations);
            if one.rest.total() == 0 {
                break;
            }
        }
        plan.finish.push(if one.rest.total() == 0 { one.finish } else { Time::MAX });
    }
    plan
}

/// Positions of `coflows` (bytes by rack pair), shortest lower bound first, equal ones as given:
/// Sunflow's order between coflows.
pub fn shortest_first(coflows: &[&DemandMatrix], plane: &Plane) -> Vec<usize> {
    let mut order: Vec<usize> = (0..coflows.len()).collect();
    order.sort_by_key(|&k| bounds::circuit(coflows[k], plane.rate, plane.delta));
    order
}

/// Nanoseconds of light that each cell needs; at rate zero more than ever pass.
fn light(demand: &DemandMatrix, plane: &Plane) -> DemandMatrix {
    demand.map(|b| plane.rate.time_for(Bytes(b)).0)
}

struct PlannedCoflow<'a> {
    /// Light still needed.
    rest: DemandMatrix,
    finish: Time,
    plane: &'a Plane,
    racks: usize,
}

impl PlannedCoflow<'_> {
    /// Starts what can start at `t` and has one of the given ports.
    fn start_at(
        &mut self,
        t: Time,
        inputs: &BTreeSet<usize>,
        outputs: &BTreeSet<usize>,
        table: &mut PortTable,
        out: &mut Vec<Reservation>,
    ) {
        let free = |side, ports: &BTreeSet<usize>| {
            ports.iter().copied().filter(|&p| table.free_until(side, p, t).is_some()).collect()
        };
        let (inputs, outputs): (BTreeSet<usize>, BTreeSet<usize>) =
            (free(0, inputs), free(1, outputs));
        steps::count(1 + inputs.len() + outputs.len());
        let from = inputs.iter().flat_map(|&i| (0..self.racks).map(move |j| (i, j)));
        let to = outputs
            .iter()
            .flat_map(|&j| (0..self.racks).map(move |i| (i, j)))
            .filter(|(i, _)| !inputs.contains(i));
        let needed = |&(i, j): &(usize, usize)| self.rest.get(RackId::from(i), RackId::from(j)) > 0;
        let place = |(i, j)| (!table.goes_on(i, j, t), (j + self.racks - i) % self.racks, i, j);
        let mut may: Vec<_> = from.chain(to).filter(needed).map(place).collect();
        may.sort_unstable();
        for (fresh, _, i, j) in may {
            let (Some(a), Some(b)) = (table.free_until(0, i, t), table.free_until(1, j, t)) else {
                continue;
            };
            let up_from = if fresh { t + self.plane.delta } else { t };
            let (from, to) = (RackId::from(i), RackId::from(j));
            let until = a.min(b).min(up_from + Span(self.rest.get(from, to)));
            if up_from >= until {
                continue;
            }
            table.reserve(i, j, t, until);
            self.rest.set(from, to, self.rest.get(from, to) - until.since(up_from).0);
            self.finish = self.finish.max(until);
            out.push(Reservation {
                plane: self.plane.id,
                input: from,
                output: to,
                setup_at: t,
                up_from,
                until,
            });
        }
    }
}

/// The spans in which a port is taken, by their start: (end, port at the other end).
type TakenSpans = BTreeMap<Time, (Time, usize)>;

/// The paper's port reservation table.
struct PortTable {
    /// By side (inputs, outputs), then port.
    taken: [BTreeMap<usize, TakenSpans>; 2],
    /// Ends of spans, with input and output.
    ends: BTreeSet<(Time, usize, usize)>,
    current: Matching,
    at: Time,
}

impl PortTable {
    fn new(current: &Matching, at: Time) -> Self {
        Self { taken: Default::default(), ends: BTreeSet::new(), current: current.clone(), at }
    }

    /// Time until which a port that is free at `t` stays so; `None` if it is taken.
    fn free_until(&self, side: usize, port: usize, t: Time) -> Option<Time> {
        let Some(spans) = self.taken[side].get(&port) else { return Some(Time::MAX) };
        let before = spans.range(..=t).next_back();
        before
            .is_none_or(|(_, &(end, _))| end <= t)
            .then(|| spans.range(t..).next().map_or(Time::MAX, |s| *s.0))
    }

    /// Whether circuit i -> j is up just before `t`.
    fn goes_on(&self, i: usize, j: usize, t: Time) -> bool {
        if t == self.at {
            return self.current.racks() > i
                && self.current.output(RackId::from(i)) == Some(RackId::from(j));
        }
        let before = self.taken[0].get(&i).and_then(|spans| spans.range(..t).next_back());
        before.is_some_and(|(_, &span)| span == (t, j))
    }

    fn reserve(&mut self, i: usize, j: usize, from: Time, until: Time) {
        self.taken[0].entry(i).or_default().insert(from, (until, j));
        self.taken[1].entry(j).or_default().insert(from, (until, i));
        self.ends.insert((until, i, j));
    }

    /// The first instant after `t` at which ports become free, and those ports. The open end of
    /// time frees none.
    fn freed_after(&self, t: Time) -> Option<(Time, BTreeSet<usize>, BTreeSet<usize>)> {
        let after = (t, usize::MAX, usize::MAX);
        let next = self.ends.range(after..).next()?.0;
        let now = self.ends.range((next, 0, 0)..=(next, usize::MAX, usize::MAX));
        (next < Time::MAX).then(|| {
            now.fold((next, BTreeSet::new(), BTreeSet::new()), |mut all, &(_, i, j)| {
                all.1.insert(i);
                all.2.insert(j);
                all
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PlaneId;
    use crate::layout::lay_out;
    use crate::timetable::Timetable;
    use crate::topology::StopMode;
    use crate::units::BitRate;
    use crate::{Decision, PlaneDecision};
    use proptest::prelude::*;

    /// A byte a nanosecond.
    fn plane(delta: u64) -> Plane {
        Plane {
            id: PlaneId(0),
            rate: BitRate(8_000_000_000),
            delta: Span(delta),
            stop: StopMode::NotAllStop,
            duplex: false,
        }
    }

    /// A shuffle in which every map task sends 100 bytes to every reduce task.
    fn shuffle(maps: [u64; 3], reduces: [u64; 3]) -> DemandMatrix {
        DemandMatrix::zero(3).map_pairs(|i, j, _| 100 * maps[i.index()] * reduces[j.index()])
    }

    #[test]
    fn the_example_of_co_scheduler_figure_2() {
        let d = 7;
        let finish = |a: DemandMatrix, b: DemandMatrix| {
            assert_eq!(shortest_first(&[&b, &a], &plane(d)), [1, 0]);
            sunflow(&[&a, &b], &plane(d), &Matching::empty(3), Time(0)).finish
        };
        let case_1 = finish(shuffle([3; 3], [0, 2, 1]), shuffle([5; 3], [2, 0, 1]));
        assert_eq!(case_1, [Time(1200 + 2 * d), Time(2000 + 3 * d)]);
        let case_2 = finish(shuffle([3; 3], [1; 3]), shuffle([5; 3], [1; 3]));
        assert_eq!(case_2, [Time(600 + 2 * d), Time(1600 + 3 * d)]);
    }

    /// JobPacker (Figure 2): 20 map tasks of 5 units each and a reduce task in each of 4 racks; a
    /// unit takes 100 ns here.
    #[test]
    fn the_example_of_jobpacker_figure_2() {
        for (maps, time) in [([16, 2, 1, 1], 6000), ([5; 4], 1875)] {
            let d = DemandMatrix::zero(4).map_pairs(|i, _, _| 500 * maps[i.index()] / 4);
            assert_eq!(
                sunflow(&[&d], &plane(0), &Matching::empty(4), Time(0)).finish,
                [Time(time)]
            );
            assert_eq!(bounds::circuit(&d, plane(0).rate, Span::ZERO), Span(time));
        }
    }

    #[test]
    fn a_circuit_that_is_up_does_not_pay_again() {
        let up = Matching::from_pairs(3, [(0, 2)]);
        let d = DemandMatrix::from_rows(&[&[0, 50, 40], &[0, 0, 0], &[0, 0, 0]]);
        let plan = sunflow(&[&d], &plane(10), &up, Time(1000));
        let times: Vec<_> = plan
            .reservations
            .iter()
            .map(|r| (r.output.0, r.setup_at.0, r.up_from.0, r.until.0))
            .collect();
        assert_eq!(times, [(2, 1000, 1000, 1040), (1, 1040, 1050, 1100)]);
    }

    #[test]
    fn extremes() {
        let none = DemandMatrix::zero(3);
        assert_eq!(sunflow(&[&none], &plane(1), &Matching::empty(3), Time(5)).finish, [Time(5)]);
        assert_eq!(sunflow(&[], &plane(1), &Matching::empty(3), Time(5)), SunflowPlan::default());
        let huge = none.map_pairs(|_, _, _| u64::MAX);
        let dead = Plane { rate: BitRate::ZERO, ..plane(1) };
        for p in [plane(1), plane(u64::MAX), dead] {
            let plan = sunflow(&[&huge, &huge], &p, &Matching::empty(3), Time(5));
            let table: Timetable = plan.reservations.into_iter().collect();
            assert_eq!(table.check(&[p], 3), Ok(()));
            assert_eq!(plan.finish, [Time::MAX; 2]);
        }
    }

    fn any_demand() -> impl Strategy<Value = DemandMatrix> {
        prop::collection::vec(prop_oneof![2 => Just(0u64), 1 => 1u64..400], 25)
            .prop_map(|v| DemandMatrix::zero(5).map_pairs(|i, j, _| v[i.index() * 5 + j.index()]))
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn one_coflow_takes_at_most_twice_its_bound(d in any_demand(), delta in 0u64..60) {
            let p = plane(delta);
            let plan = sunflow(&[&d], &p, &Matching::empty(5), Time(100));
            let bound = bounds::circuit(&d, p.rate, p.delta);
            let took = plan.finish[0].since(Time(100));
            prop_assert!(bound <= took && took <= bound * 2, "{took} for a bound of {bound}");
            // Each pair once, for exactly its time.
            let mut served = DemandMatrix::zero(5);
            for r in &plan.reservations {
                prop_assert_eq!(served.get(r.input, r.output), 0);
                served.set(r.input, r.output, r.until.since(r.up_from).0);
            }
            prop_assert_eq!(served, d);
        }

        #[test]
        fn later_coflows_leave_earlier_ones_alone(
            ds in prop::collection::vec(any_demand(), 1..5),
            delta in 0u64..60,
            up in 0u64..9,
            since in 1u64..90,
        ) {
            let p = plane(delta);
            let current = crate::matching::round_robin(5, up);
            let all: Vec<&DemandMatrix> = ds.iter().collect();
            let plan = sunflow(&all, &p, &current, Time(100));
            for k in 0..all.len() {
                let fewer = sunflow(&all[..k], &p, &current, Time(100));
                prop_assert_eq!(&plan.finish[..k], &fewer.finish[..]);
                prop_assert_eq!(&plan.reservations[..fewer.reservations.len()], &fewer.reservations[..]);
            }
            let total: u64 = plan.reservations.iter().map(|r| r.until.since(r.up_from).0).sum();
            prop_assert_eq!(total, ds.iter().map(DemandMatrix::total).sum::<u64>());
            // On top of the circuits that are up, or being set up where others have been, it is a
            // timetable that an OCS can follow.
            let setup_at = Time(100 - since);
            let up = current.pairs().flat_map(|(input, output)| {
                let circuit = |output, setup_at, until| {
                    Reservation { plane: PlaneId(0), input, output, setup_at, up_from: setup_at + p.delta, until }
                };
                let next = |k| RackId((output.0 + k) % 5);
                let other = if next(1) == input { next(2) } else { next(1) };
                [circuit(other, Time(0), setup_at.max(Time(0) + p.delta)), circuit(output, setup_at, Time::MAX)]
            });
            let up = up.filter(|r| r.until > r.up_from);
            let decision = Decision(vec![PlaneDecision::Reservations(plan.reservations)]);
            let laid = lay_out(&up.collect(), &decision, std::slice::from_ref(&p), 5, Time(100));
            prop_assert_eq!(laid.check(&[p], 5), Ok(()));
        }
    }
}
