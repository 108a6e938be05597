//! The optical planes of the model: their programs, and which circuits have light.

use super::faults::{PortFault, Side};
use crate::fabric::{OpResult, SLOTS_PER_PORT};
use crate::ids::{PlaneId, RackId};
use crate::plan::{self, Op, Programmed, Rules};
use crate::topology::Topology;
use crate::units::{Span, Time};

/// All planes.
#[derive(Debug)]
pub struct Crossbars {
    /// What they are programmed to do.
    pub programmed: Programmed,
    /// By plane, then input: the output where its light comes out.
    up: Vec<Vec<Option<RackId>>>,
    /// When a circuit next gets or loses its light.
    next_edge: Option<Time>,
    faults: Vec<Bad>,
}

/// A broken port; for one that is stuck, the port with which it stays connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bad {
    plane: PlaneId,
    side: Side,
    rack: RackId,
    how: PortFault,
    with: Option<RackId>,
}

impl Crossbars {
    /// All planes dark.
    pub fn new(topology: &Topology) -> Self {
        let programmed =
            Programmed { timetable: Default::default(), slots_per_port: SLOTS_PER_PORT };
        Self {
            programmed,
            up: vec![vec![None; topology.rack_count()]; topology.planes.len()],
            next_edge: None,
            faults: vec![],
        }
    }

    /// When a circuit next gets or loses its light.
    pub fn next_edge(&self) -> Option<Time> {
        self.next_edge
    }

    /// The first plane on which `from` has light to `to`.
    pub fn plane(&self, from: RackId, to: RackId) -> Option<PlaneId> {
        self.up.iter().position(|p| p[from.index()] == Some(to)).map(PlaneId::from)
    }

    /// Whether this circuit has light.
    pub fn is_up(&self, plane: PlaneId, input: RackId, output: RackId) -> bool {
        self.up[plane.index()][input.index()] == Some(output)
    }

    /// Pairs of racks with a lit circuit, plane by plane.
    pub fn joined(&self) -> impl Iterator<Item = (RackId, RackId)> + '_ {
        self.up
            .iter()
            .flat_map(|p| p.iter().enumerate().filter_map(|(i, o)| Some((RackId::from(i), (*o)?))))
    }

    /// Where a frame sent into `input` comes out.
    pub fn comes_out(&self, plane: PlaneId, input: RackId) -> Option<RackId> {
        let mine = |f: &&Bad| (f.plane, f.side, f.rack) == (plane, Side::Input, input);
        match self.faults.iter().filter(mine).find(|f| f.how == PortFault::Stuck) {
            Some(stuck) => stuck.with.filter(|&j| self.joins(plane, input, j)),
            None => self.up[plane.index()][input.index()],
        }
    }

    /// A port breaks or works again. [`Crossbars::refresh`] must follow.
    pub fn strike(
        &mut self,
        (plane, side, rack): (PlaneId, Side, RackId),
        how: PortFault,
        begins: bool,
    ) {
        if !begins {
            if let Some(k) = self
                .faults
                .iter()
                .position(|f| (f.plane, f.side, f.rack, f.how) == (plane, side, rack, how))
            {
                self.faults.remove(k);
            }
            return;
        }
        let up = &self.up[plane.index()];
        let with = match side {
            Side::Input => up[rack.index()],
            Side::Output => up.iter().position(|&o| o == Some(rack)).map(RackId::from),
        };
        self.faults.push(Bad { plane, side, rack, how, with });
    }

    /// Whether light passes these two ports.
    fn joins(&self, plane: PlaneId, input: RackId, output: RackId) -> bool {
        self.faults.iter().filter(|f| f.plane == plane).all(|f| {
            let other = match f.side {
                Side::Input if f.rack == input => output,
                Side::Output if f.rack == output => input,
                _ => return true,
            };
            match f.how {
                PortFault::Dark => false,
                PortFault::Stuck => f.with == Some(other),
                PortFault::Slow(_) | PortFault::Deaf => true,
            }
        })
    }

    /// By how much light comes later than asked.
    fn late(&self, plane: PlaneId, input: RackId) -> Span {
        let slow =
            self.faults.iter().filter(|f| (f.plane, f.side, f.rack) == (plane, Side::Input, input));
        slow.map(|f| if let PortFault::Slow(by) = f.how { by } else { Span::ZERO })
            .max()
            .unwrap_or(Span::ZERO)
    }

    fn hears(&self, (plane, input): (PlaneId, RackId)) -> bool {
        !self.faults.iter().any(|f| {
            (f.plane, f.side, f.rack, f.how) == (plane, Side::Input, input, PortFault::Deaf)
        })
    }

    /// Brings the lit circuits up to `now`; returns the rack pairs whose circuits have changed,
    /// each once, in order. O(planes x R + reservations).
    pub fn refresh(&mut self, now: Time) -> Vec<(RackId, RackId)> {
        self.programmed.timetable.forget_before(now);
        let mut up: Vec<Vec<Option<RackId>>> =
            self.up.iter().map(|p| vec![None; p.len()]).collect();
        self.next_edge = None;
        for r in self.programmed.timetable.iter() {
            let up_from = r.up_from + self.late(r.plane, r.input);
            if up_from <= now && now < r.until && self.joins(r.plane, r.input, r.output) {
                up[r.plane.index()][r.input.index()] = Some(r.output);
            }
            let edge = if up_from > now { up_from.min(r.until) } else { r.until };
            if edge < Time::MAX {
                self.next_edge = Some(self.next_edge.map_or(edge, |e| e.min(edge)));
            }
        }
        let mut changed = std::collections::BTreeSet::new();
        for (old, new) in self.up.iter().zip(&up) {
            for (i, (a, b)) in old.iter().zip(new).enumerate().filter(|(_, (a, b))| a != b) {
                changed.extend([a, b].into_iter().flatten().map(|&j| (RackId::from(i), j)));
            }
        }
        self.up = up;
        changed.into_iter().collect()
    }

    /// Carries out operations in order, each as [`plan::apply`] says, without a guard time: light
    /// goes out at once. A deaf port ignores its operation and acknowledges it. O(operations x
    /// reservations of a plane).
    pub fn apply(&mut self, ops: &[Op], topology: &Topology, now: Time) -> Vec<OpResult> {
        let rules =
            Rules { planes: &topology.planes, racks: topology.rack_count(), guard: Span::ZERO };
        let each = |&op: &Op| {
            let lost = !self.hears(op.port());
            let outcome = if lost {
                Ok(now)
            } else {
                plan::apply(&mut self.programmed, &op, &rules, now).map(|_| now)
            };
            OpResult { op, outcome }
        };
        ops.iter().map(each).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuits::timetable::Reservation;
    use crate::plan::OpError;
    use crate::topology::{Plane, StopMode};
    use crate::units::BitRate;

    fn res(i: u32, j: u32, s: u64, u: u64, e: u64) -> Reservation {
        Reservation {
            plane: PlaneId(0),
            input: RackId(i),
            output: RackId(j),
            setup_at: Time(s),
            up_from: Time(u),
            until: Time(e),
        }
    }

    #[test]
    fn light_follows_the_timetable_and_unsound_operations_are_refused_one_by_one() {
        let plane = Plane {
            id: PlaneId(0),
            rate: BitRate(8),
            delta: Span(10),
            stop: StopMode::NotAllStop,
            duplex: false,
        };
        let t = Topology::uniform("t", 3, 1, BitRate(8), BitRate(8), vec![plane]);
        let mut x = Crossbars::new(&t);
        let ops = [res(0, 1, 0, 10, 50), res(2, 1, 40, 50, 90), res(1, 0, 0, 10, u64::MAX)]
            .map(Op::Reserve);
        let ok: Vec<_> = x.apply(&ops, &t, Time(0)).iter().map(|r| r.outcome.is_ok()).collect();
        assert_eq!(ok, [true, false, true]);
        assert_eq!((x.refresh(Time(0)), x.next_edge()), (vec![], Some(Time(10))));
        assert_eq!(
            (x.refresh(Time(10)), x.next_edge()),
            (vec![(RackId(0), RackId(1)), (RackId(1), RackId(0))], Some(Time(50)))
        );
        assert!(x.is_up(PlaneId(0), RackId(0), RackId(1)));
        assert_eq!((x.refresh(Time(50)), x.next_edge()), (vec![(RackId(0), RackId(1))], None));
        let many: Vec<_> = (0..8)
            .map(|k| Op::Reserve(res(2, 1, 100 + 20 * k, 110 + 20 * k, 115 + 20 * k)))
            .collect();
        assert!(x.apply(&many, &t, Time(50)).iter().all(|r| r.outcome.is_ok()));
        let more = x.apply(&[Op::Reserve(res(2, 1, 300, 310, 320))], &t, Time(50));
        assert_eq!(
            more[0].outcome,
            Err(OpError::Full { plane: PlaneId(0), input: RackId(2), slots: 8 })
        );
    }
}
