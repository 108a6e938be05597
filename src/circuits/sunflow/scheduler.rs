//! Sunflow as a circuit scheduler of the control loop.

use super::{Order, sunflow};
use crate::demand::DemandMatrix;
use crate::ids::RackId;
use crate::matching::{bipartite, edmonds, usable_pair};
use crate::timetable::Reservation;
use crate::topology::{Plane, StopMode};
use crate::units::Span;
use crate::{Ask, Decision, Matching, OpenCoflow, PlaneDecision, Scheduler};

/// [`sunflow()`] every interval over the coflows that an [`Ask`] shows, in an [`Order`]; demand
/// that belongs to no coflow comes last, as one more. Circuits that would begin after the interval
/// are left to the next decision.
///
/// Circuits with times of their own need a plane on which one port's change leaves the others
/// alone: duplex and all-stop planes get one maximum weight matching for the interval instead.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sunflow {
    /// The order between coflows.
    pub order: Order,
}

impl Scheduler for Sunflow {
    fn decide(&mut self, ask: &Ask) -> Decision {
        let racks = ask.demand.racks();
        let mut left: Vec<(Option<&OpenCoflow>, DemandMatrix)> = by_coflow(ask);
        let nothing = Matching::empty(racks);
        let end = ask.at + ask.interval;
        let mut one = |(p, plane): (usize, &Plane)| {
            let current = ask.current.get(p).unwrap_or(&nothing);
            let usable = |i, j| usable_pair(&ask.usable[p], plane.duplex, i, j);
            let (decided, light) = if plane.ports_turn_alone() {
                let list = self.circuits(&left, ask, (plane, current), usable);
                let light = list
                    .iter()
                    .map(|r| (r.input, r.output, r.until.min(end).since(r.up_from)))
                    .collect();
                (PlaneDecision::Reservations(list), light)
            } else {
                let next = matching(&left, (plane, current), usable);
                let light = light(&next, (plane, current), usable, ask.interval);
                (PlaneDecision::hold(next), light)
            };
            carry(&mut left, &light, plane);
            decided
        };
        Decision(ask.planes.iter().enumerate().map(&mut one).collect())
    }
    fn plans_ahead(&self, plane: &Plane) -> bool {
        plane.ports_turn_alone()
    }
}

impl Sunflow {
    /// The circuits of a plane that begin within the interval.
    fn circuits(
        &self,
        left: &[(Option<&OpenCoflow>, DemandMatrix)],
        ask: &Ask,
        (plane, current): (&Plane, &Matching),
        usable: impl Fn(RackId, RackId) -> bool,
    ) -> Vec<Reservation> {
        let usable = |m: &DemandMatrix| m.map_pairs(|i, j, d| if usable(i, j) { d } else { 0 });
        let (none, known): (Vec<_>, Vec<_>) = left.iter().partition(|(c, _)| c.is_none());
        let known = known.into_iter().filter_map(|(c, m)| Some(((*c)?, usable(m)))).collect();
        let mut ordered: Vec<DemandMatrix> =
            self.order.sort(known, plane).into_iter().map(|(_, m)| m).collect();
        ordered.extend(none.into_iter().map(|(_, m)| usable(m)));
        let mut list =
            sunflow(&ordered.iter().collect::<Vec<_>>(), plane, current, ask.at).reservations;
        list.retain(|r| r.setup_at < ask.at + ask.interval);
        list
    }
}

/// The matching of a plane that is duplex or all-stop: of the most demand.
fn matching(
    left: &[(Option<&OpenCoflow>, DemandMatrix)],
    (plane, current): (&Plane, &Matching),
    usable: impl Fn(RackId, RackId) -> bool,
) -> Matching {
    let racks = current.racks();
    let sum = left.iter().fold(DemandMatrix::zero(racks), |sum, (_, m)| {
        sum.map_pairs(|i, j, d| d.saturating_add(m.get(i, j)))
    });
    let total = sum.map_pairs(|i, j, d| if usable(i, j) { d } else { 0 });
    if plane.duplex { edmonds(&total, Some(current)) } else { bipartite(&total, Some(current)) }
}

/// How long each circuit of a matching has light within the interval: those that stay do not blink,
/// unless all go dark together. What is up between ports that may not be used (set by hand) is not
/// this scheduler's, and changes nothing.
fn light(
    next: &Matching,
    (plane, current): (&Plane, &Matching),
    usable: impl Fn(RackId, RackId) -> bool,
    interval: Span,
) -> Vec<(RackId, RackId, Span)> {
    let own = current.pairs().filter(|&(i, j)| usable(i, j));
    let dark = plane.stop == StopMode::AllStop && !own.eq(next.pairs());
    let lit = |(i, j)| {
        if !dark && current.output(i) == Some(j) {
            interval
        } else {
            interval.saturating_sub(plane.delta)
        }
    };
    next.pairs().map(|(i, j)| (i, j, lit((i, j)))).collect()
}

/// Takes what a plane's circuits carry in their light from the demand.
fn carry(
    left: &mut [(Option<&OpenCoflow>, DemandMatrix)],
    light: &[(RackId, RackId, Span)],
    plane: &Plane,
) {
    for &(i, j, light) in light {
        let mut carried = plane.rate.bytes_in(light).0;
        for (_, m) in &mut *left {
            let part = m.get(i, j).min(carried);
            m.set(i, j, m.get(i, j) - part);
            carried -= part;
        }
    }
}

/// The demand as the coflows that it is of, none with more than there is demand, and what belongs
/// to none. Coflows with no demand left are left out.
fn by_coflow<'a>(ask: &Ask<'a>) -> Vec<(Option<&'a OpenCoflow>, DemandMatrix)> {
    let racks = ask.demand.racks();
    let mut unknown = ask.demand.clone();
    let mut out = Vec::new();
    for c in ask.coflows {
        // Most of hundreds may have nothing for circuits: a matrix for each of them would be nearly
        // all the work.
        if c.rest.iter().all(|&(i, j, bytes)| bytes.min(unknown.get(i, j)) == 0) {
            continue;
        }
        let mut own = DemandMatrix::zero(racks);
        for &(i, j, bytes) in &c.rest {
            let part = bytes.min(unknown.get(i, j));
            own.set(i, j, part);
            unknown.set(i, j, unknown.get(i, j) - part);
        }
        out.push((Some(c), own));
    }
    out.push((None, unknown));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Usable;
    use crate::ids::{CoflowId, PlaneId};
    use crate::units::{BitRate, Time};

    /// Two coflows that want the same circuit: the order alone says which is first.
    #[test]
    fn the_order_decides_who_is_first() {
        let pair = |b| vec![(RackId(0), RackId(1), b), (RackId(0), RackId(2), b)];
        let coflow = |id, arrival, weight, sent, rest| OpenCoflow {
            id: CoflowId(id),
            arrival: Time(arrival),
            weight,
            sent,
            rest,
        };
        let coflows =
            [coflow(0, 2, 1, 9, vec![(RackId(0), RackId(1), 100)]), coflow(1, 1, 8, 5, pair(300))];
        let d = DemandMatrix::from_rows(&[&[0, 400, 300], &[0, 0, 0], &[0, 7, 0]]);
        let planes = [Plane {
            id: PlaneId(0),
            rate: BitRate(8_000_000_000),
            delta: Span(10),
            stop: StopMode::NotAllStop,
            duplex: false,
        }];
        let (current, usable) = ([Matching::empty(3)], [Usable::all(3)]);
        let (at, interval, eps) = (Time(0), Span(10_000), BitRate::ZERO);
        let ask = Ask {
            demand: &d,
            current: &current,
            planes: &planes,
            usable: &usable,
            at,
            interval,
            cycle: 0,
            eps,
            coflows: &coflows,
        };
        let first = |order| {
            let Decision(by_plane) = (Sunflow { order }).decide(&ask);
            let [PlaneDecision::Reservations(list)] = &by_plane[..] else { unreachable!() };
            let light = |i: u32| {
                list.iter()
                    .filter(|r| r.input == RackId(i))
                    .map(|r| r.until.since(r.up_from).0)
                    .sum::<u64>()
            };
            assert_eq!(
                (light(0), light(2)),
                (700, 7),
                "everything is served, what belongs to no coflow too"
            );
            list[0].until.since(list[0].up_from).0
        };
        assert_eq!([Order::Shortest, Order::Sebf].map(first), [100; 2]);
        assert_eq!([Order::Fifo, Order::Las, Order::Weighted].map(first), [300; 3]);
        // Coflows that have nothing for circuits change nothing.
        let idle =
            [coflow(8, 0, 9, 0, vec![]), coflow(9, 0, 9, 0, vec![(RackId(1), RackId(0), 5)])];
        let more: Vec<OpenCoflow> = idle.into_iter().chain(coflows.iter().cloned()).collect();
        let idle = Ask {
            demand: &d,
            current: &current,
            planes: &planes,
            usable: &usable,
            at,
            interval,
            cycle: 0,
            eps,
            coflows: &more,
        };
        assert_eq!(Sunflow::default().decide(&idle), Sunflow::default().decide(&ask));
    }
}
