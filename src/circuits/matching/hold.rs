//! Hold: hysteresis, so that a circuit moves only when the move pays for its dark time.

use super::{bipartite, edmonds, one_way, plane_by_plane};
use crate::demand::DemandMatrix;
use crate::ids::RackId;
use crate::topology::{Plane, StopMode};
use crate::units::Span;
use crate::{Ask, Decision, Matching, Scheduler};

/// The matching that carries most bytes within the next interval, the dark time of every change
/// counted.
///
/// A circuit that is up carries at most `rate x interval`, a new one at most `rate x (interval -
/// delta)`, and neither more than its demand. These are the weights of a maximum weight matching
/// (of pairs, on a duplex plane). So a change is made if and only if the bytes that it gains are
/// more than those that its dark time costs. On an all-stop plane every circuit pays, so the best
/// change as a whole is weighed against no change at all, which wins when they are equal.
///
/// # Arguments
/// - `demand`: bytes by (input, output), `R x R`.
/// - `current`: what is up now; it wins all ties.
/// - `plane`: rate, delta, stop mode, duplex.
/// - `interval`: until the next decision.
///
/// # Complexity
/// That of [`bipartite()`], O(R^3).
///
/// # Source
/// Ours: a reconfiguration must pay for its dark time, by the measure that Eclipse (Venkatakrishnan
/// et al., SIGMETRICS 2016) has for configurations.
pub fn hold(demand: &DemandMatrix, current: &Matching, plane: &Plane, interval: Span) -> Matching {
    let stays = plane.rate.bytes_in(interval).0;
    let moves = plane.rate.bytes_in(interval.saturating_sub(plane.delta)).0;
    let all_stop = plane.stop == StopMode::AllStop;
    let up = |i: RackId, j: RackId| {
        current.output(i) == Some(j) && (!plane.duplex || current.output(j) == Some(i))
    };
    let carried =
        demand.map_pairs(|i, j, d| d.min(if up(i, j) && !all_stop { stays } else { moves }));
    let best = if plane.duplex {
        edmonds(&carried, Some(current))
    } else {
        bipartite(&carried, Some(current))
    };
    if all_stop && current.weight(&demand.map(|d| d.min(stays))) >= best.weight(&carried) {
        return current.clone();
    }
    best
}

/// [`hold()`] every interval, plane after plane.
pub struct DarkTimeAware;

impl Scheduler for DarkTimeAware {
    fn decide(&mut self, ask: &Ask) -> Decision {
        plane_by_plane(ask, false, |p, demand| {
            let mut current =
                ask.current.get(p).cloned().unwrap_or_else(|| Matching::empty(demand.racks()));
            for (i, o) in current.out.iter_mut().enumerate() {
                *o = o.filter(|&j| {
                    super::usable_pair(&ask.usable[p], ask.planes[p].duplex, RackId::from(i), j)
                });
            }
            hold(demand, &current, &ask.planes[p], ask.interval)
        })
    }
    fn advice(&self, plane: &Plane) -> Option<String> {
        one_way(plane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PlaneId;
    use crate::units::BitRate;

    fn plane(stop: StopMode, duplex: bool) -> Plane {
        // One byte a nanosecond.
        Plane { id: PlaneId(0), rate: BitRate(8_000_000_000), delta: Span(10), stop, duplex }
    }

    #[test]
    fn a_change_must_gain_more_than_its_dark_time_costs() {
        let current = Matching::from_pairs(3, [(0, 1)]);
        let other = Matching::from_pairs(3, [(0, 2)]);
        let p = plane(StopMode::NotAllStop, false);
        // In 100 ns the old circuit carries 90 of its bytes; a new one has light for 90 ns.
        let d = DemandMatrix::from_rows(&[&[0, 90, 500], &[0, 0, 0], &[0, 0, 0]]);
        assert_eq!(hold(&d, &current, &p, Span(100)), current);
        let d = DemandMatrix::from_rows(&[&[0, 89, 500], &[0, 0, 0], &[0, 0, 0]]);
        assert_eq!(hold(&d, &current, &p, Span(100)), other);
        // No time left after the dark time: nothing can be gained.
        assert_eq!(hold(&d, &current, &p, Span(10)), current);
    }

    #[test]
    fn on_an_all_stop_plane_everything_is_weighed_against_nothing() {
        let current = Matching::from_pairs(4, [(0, 1)]);
        let p = plane(StopMode::AllStop, false);
        // The addition of 2 -> 3 with 10 bytes costs the old circuit 10 bytes of its 100.
        let d = |x| DemandMatrix::from_rows(&[&[0, 100, 0, 0], &[0; 4], &[0, 0, 0, x], &[0; 4]]);
        assert_eq!(hold(&d(10), &current, &p, Span(100)), current);
        assert_eq!(hold(&d(11), &current, &p, Span(100)).len(), 2);
    }

    #[test]
    fn a_duplex_plane_holds_pairs() {
        let current = Matching::from_pairs(3, [(0, 1), (1, 0)]);
        let d = DemandMatrix::from_rows(&[&[0, 40, 60], &[40, 0, 0], &[20, 0, 0]]);
        assert_eq!(hold(&d, &current, &plane(StopMode::NotAllStop, true), Span(100)), current);
        let d = DemandMatrix::from_rows(&[&[0, 40, 60], &[40, 0, 0], &[21, 0, 0]]);
        assert_eq!(
            hold(&d, &current, &plane(StopMode::NotAllStop, true), Span(100)).output(RackId(0)),
            Some(RackId(2))
        );
    }
}
