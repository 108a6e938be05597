//! The port timetable of an estimate: which circuits coflows take, first come first served in their
//! order of priority.

use crate::circuits::Matching;
use crate::circuits::timetable::Reservation;
use crate::ids::{PlaneId, RackId};
use crate::topology::Plane;
use crate::units::{Span, Time};

/// A port that is taken.
#[derive(Clone, Copy, Debug)]
struct TakenPort {
    from: Time,
    until: Time,
    /// The port at the other end.
    peer: usize,
    /// Rank of its coflow in the order.
    rank: usize,
}

/// Spans in which the ports of all planes are taken. On one port they never overlap, so they are in
/// order by both ends.
#[derive(Clone, Debug)]
pub(super) struct PortSpans {
    racks: usize,
    /// By plane, side (inputs, outputs) and rack.
    ports: Vec<Vec<TakenPort>>,
}

/// What a circuit is wanted for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Want<'a> {
    pub plane: &'a Plane,
    pub input: RackId,
    pub output: RackId,
    /// How long it must carry.
    pub light: Span,
    /// Earliest time at which it may begin.
    pub start: Time,
}

impl PortSpans {
    /// Every port is free.
    pub fn new(planes: usize, racks: usize) -> Self {
        Self { racks, ports: vec![Vec::new(); planes * 2 * racks] }
    }

    fn port(&self, plane: PlaneId, side: usize, rack: RackId) -> usize {
        (plane.index() * 2 + side) * self.racks + rack.index()
    }

    /// The ports that a circuit holds, each with the rack at its other end; a duplex one holds both
    /// of both racks.
    fn held(&self, w: &Want) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (p, i, j) = (w.plane.id, w.input, w.output);
        let own = [(self.port(p, 0, i), j.index()), (self.port(p, 1, j), i.index())];
        let back = [(self.port(p, 0, j), i.index()), (self.port(p, 1, i), j.index())];
        let n = if w.plane.duplex { 4 } else { 2 };
        own.into_iter().chain(back).take(n)
    }

    /// The spans of a port that end after `t`.
    fn after(&self, port: usize, t: Time) -> &[TakenPort] {
        let list = &self.ports[port];
        &list[list.partition_point(|s| s.until <= t)..]
    }

    /// Whether a circuit of a coflow before `rank` ends just at `t`.
    fn ends_at(&self, w: &Want, t: Time, rank: usize) -> bool {
        let list = &self.ports[self.port(w.plane.id, 0, w.input)];
        let k = list.partition_point(|s| s.until < t);
        list.get(k).is_some_and(|s| s.until == t && s.peer == w.output.index() && s.rank < rank)
    }

    /// When a port (side, rack) of all planes together has been free for `long` since `from`,
    /// beside coflows before `rank`. O(spans).
    pub fn free_for(
        &self,
        (side, rack): (usize, RackId),
        from: Time,
        long: Span,
        rank: usize,
    ) -> Time {
        let planes = self.ports.len() / (2 * self.racks).max(1);
        let lists =
            || (0..planes).map(|p| self.after((p * 2 + side) * self.racks + rack.index(), from));
        if planes == 1 {
            let (mut t, mut left) = (from, long);
            for s in lists().flatten().filter(|s| s.rank < rank) {
                let gap = s.from.since(t);
                if gap >= left {
                    break;
                }
                (t, left) = (s.until, left.saturating_sub(gap));
            }
            return t + left;
        }
        // Ends before beginnings, so that no more are taken than there are planes.
        let edges = |s: &TakenPort| [(s.from.max(from), true), (s.until, false)];
        let mut all: Vec<(Time, bool)> =
            lists().flatten().filter(|s| s.rank < rank).flat_map(edges).collect();
        all.sort_unstable();
        let (mut t, mut left, mut free) = (from, u128::from(long.0), planes as u64);
        for (at, begins) in all {
            let gone = u128::from(at.since(t).0) * u128::from(free);
            if gone >= left {
                break;
            }
            (t, left) = (at, left - gone);
            free = if begins { free - 1 } else { free + 1 };
        }
        let rest = left.div_ceil(u128::from(free.max(1)));
        t + Span(u64::try_from(rest).unwrap_or(u64::MAX))
    }

    /// Whether a port (plane, side, rack) is taken at `t` by a coflow before `rank`.
    #[cfg(test)]
    pub fn is_taken(
        &self,
        (plane, side, rack): (PlaneId, usize, RackId),
        t: Time,
        rank: usize,
    ) -> bool {
        self.ports[self.port(plane, side, rack)]
            .iter()
            .any(|s| s.from <= t && t < s.until && s.rank < rank)
    }

    /// Whether no port is taken twice.
    #[cfg(test)]
    pub fn is_sound(&self) -> bool {
        self.ports.iter().all(|p| p.windows(2).all(|w| w[0].until <= w[1].from))
    }

    /// Takes the ports of a reservation for a coflow.
    pub fn take(&mut self, w: &Want, r: &Reservation, rank: usize) {
        for (port, peer) in self.held(w) {
            let list = &mut self.ports[port];
            let k = list.partition_point(|s| s.from < r.setup_at);
            list.insert(k, TakenPort { from: r.setup_at, until: r.until, peer, rank });
        }
    }
}

/// A port's spans, walked through once while time goes on.
#[derive(Clone, Copy)]
struct SpanWalk<'a> {
    rest: &'a [TakenPort],
    rank: usize,
}

impl SpanWalk<'_> {
    /// Nothing if the port is free between two instants, which never go back. Else the end of the
    /// first span of coflows before the rank that is in the way and leaves at least `long` behind
    /// it.
    fn in_the_way(&mut self, from: Time, until: Time, long: Span) -> Option<Time> {
        while let Some((first, rest)) = self.rest.split_first()
            && first.until <= from
        {
            self.rest = rest;
        }
        let mut own = self.rest.iter().filter(|s| s.rank < self.rank);
        let mut free = own.next().filter(|s| s.from < until)?.until;
        for s in own {
            if s.from.since(free) >= long {
                break;
            }
            free = s.until;
        }
        Some(free)
    }
}

/// The first span that a circuit can have between those of coflows before `rank`, and `own` of its
/// own coflow: no other circuit is cut short. One that goes on pays no dark time. Nothing if there
/// is none before the end of time. O(log spans + spans that are in the way).
pub(super) fn first_fit(
    base: &PortSpans,
    own: &PortSpans,
    up: &Matching,
    from: Time,
    w: &Want,
    rank: usize,
) -> Option<Reservation> {
    let mut setup_at = w.start.max(from);
    let mut walks = [SpanWalk { rest: &[], rank }; 8];
    let mut ports = 0;
    for (k, (port, _)) in base.held(w).enumerate() {
        walks[2 * k].rest = base.after(port, setup_at);
        walks[2 * k + 1] = SpanWalk { rest: own.after(port, setup_at), rank: usize::MAX };
        ports = k + 1;
    }
    loop {
        let is_up = setup_at == from
            && up.racks() > w.input.index()
            && up.output(w.input) == Some(w.output);
        let goes_on =
            is_up || base.ends_at(w, setup_at, rank) || own.ends_at(w, setup_at, usize::MAX);
        let up_from = if goes_on { setup_at } else { setup_at + w.plane.delta };
        let until = up_from + w.light;
        if until == Time::MAX {
            return None;
        }
        match walks[..2 * ports]
            .iter_mut()
            .filter_map(|p| p.in_the_way(setup_at, until, w.light))
            .max()
        {
            Some(later) => setup_at = later,
            None => {
                return Some(Reservation {
                    plane: w.plane.id,
                    input: w.input,
                    output: w.output,
                    setup_at,
                    up_from,
                    until,
                });
            }
        }
    }
}
