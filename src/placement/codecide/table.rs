//! The port timetable of an estimate: which circuits coflows take, first come first served in their order of priority.

use crate::circuits::Matching;
use crate::circuits::timetable::Reservation;
use crate::ids::{PlaneId, RackId};
use crate::topology::Plane;
use crate::units::{Span, Time};

/// A port that is taken.
#[derive(Clone, Copy, Debug)]
struct Taken {
    from: Time,
    until: Time,
    /// The port at the other end.
    peer: usize,
    /// Whose: the place of the coflow in the order.
    rank: usize,
}

/// Spans in which the ports of all planes are taken. On one port they never overlap, so they are in order by both ends.
#[derive(Clone, Debug)]
pub(super) struct Table {
    racks: usize,
    /// By plane, side (inputs, outputs) and rack.
    ports: Vec<Vec<Taken>>,
}

/// What a circuit is wanted for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Want<'a> {
    pub plane: &'a Plane,
    pub input: RackId,
    pub output: RackId,
    /// How long it must carry.
    pub light: Span,
    /// Not before.
    pub start: Time,
}

impl Table {
    /// Every port is free.
    pub fn new(planes: usize, racks: usize) -> Self {
        Self { racks, ports: vec![Vec::new(); planes * 2 * racks] }
    }

    fn port(&self, plane: PlaneId, side: usize, rack: RackId) -> usize {
        (plane.index() * 2 + side) * self.racks + rack.index()
    }

    /// The ports that a circuit holds; a duplex one holds both of both racks.
    fn held(&self, w: &Want) -> impl Iterator<Item = (usize, usize)> {
        let (p, i, j) = (w.plane.id, w.input, w.output);
        let own = [(self.port(p, 0, i), j.index()), (self.port(p, 1, j), i.index())];
        let back = [(self.port(p, 0, j), i.index()), (self.port(p, 1, i), j.index())];
        own.into_iter().chain(back.into_iter().filter(|_| w.plane.duplex))
    }

    /// The end of the first span of coflows before `rank` that is in the way of a port between two instants.
    fn in_the_way(&self, port: usize, (from, until): (Time, Time), rank: usize) -> Option<Time> {
        let list = &self.ports[port];
        let first = list.partition_point(|s| s.until <= from);
        list[first..].iter().take_while(|s| s.from < until).find(|s| s.rank < rank).map(|s| s.until)
    }

    /// Whether a circuit of a coflow before `rank` ends just at `t`.
    fn ends_at(&self, w: &Want, t: Time, rank: usize) -> bool {
        let list = &self.ports[self.port(w.plane.id, 0, w.input)];
        let k = list.partition_point(|s| s.until < t);
        list.get(k).is_some_and(|s| s.until == t && s.peer == w.output.index() && s.rank < rank)
    }

    /// Whether a port (plane, side, rack) is taken at `t` by a coflow before `rank`.
    #[cfg(test)]
    pub fn is_taken(&self, (plane, side, rack): (PlaneId, usize, RackId), t: Time, rank: usize) -> bool {
        self.ports[self.port(plane, side, rack)].iter().any(|s| s.from <= t && t < s.until && s.rank < rank)
    }

    /// Takes the ports of a reservation for a coflow.
    pub fn take(&mut self, w: &Want, r: &Reservation, rank: usize) {
        for (port, peer) in self.held(w).collect::<Vec<_>>() {
            let list = &mut self.ports[port];
            let k = list.partition_point(|s| s.from < r.setup_at);
            list.insert(k, Taken { from: r.setup_at, until: r.until, peer, rank });
        }
    }
}

/// The first span that a circuit can have between those of coflows before `rank`, and `own` of its own coflow: nobody is cut short. One
/// that goes on pays no dark time. Nothing if there is none before the end of time. O(spans) at worst, O(log spans) where ports are
/// free soon.
pub(super) fn first_fit(base: &Table, own: &Table, up: &Matching, from: Time, w: &Want, rank: usize) -> Option<Reservation> {
    let mut setup_at = w.start.max(from);
    loop {
        let is_up = setup_at == from && up.racks() > w.input.index() && up.output(w.input) == Some(w.output);
        let goes_on = base.ends_at(w, setup_at, rank) || own.ends_at(w, setup_at, usize::MAX) || is_up;
        let up_from = if goes_on { setup_at } else { setup_at + w.plane.delta };
        let until = up_from + w.light;
        if until == Time::MAX {
            return None;
        }
        let span = (setup_at, until);
        let blocked = |(port, _)| base.in_the_way(port, span, rank).max(own.in_the_way(port, span, usize::MAX));
        match base.held(w).filter_map(blocked).max() {
            Some(later) => setup_at = later,
            None => return Some(Reservation { plane: w.plane.id, input: w.input, output: w.output, setup_at, up_from, until }),
        }
    }
}
