//! The port timetable: every circuit that is up or promised, as reservations of an input and an
//! output port.
//!
//! [`Timetable::check`] proves three things, on each plane. An input joins at most one output at a
//! time. An output is joined by at most one input. A port that changes is dark for delta.

#[cfg(feature = "serde")]
use serde::{Deserialize, Deserializer, Serialize};

use super::Matching;
use crate::ids::{PlaneId, RackId};
use crate::topology::{Plane, StopMode};
use crate::units::{Span, Time};

/// A circuit with its times. Before `up_from` (and from `until` on) it carries nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Reservation {
    /// The optical plane.
    pub plane: PlaneId,
    /// The input port: the rack that sends.
    pub input: RackId,
    /// The output port: the rack that receives.
    pub output: RackId,
    /// The mirrors begin to move: both ports are dark from here to `up_from`.
    pub setup_at: Time,
    /// Light.
    pub up_from: Time,
    /// Dark again; [`Time::MAX`] for an open end.
    pub until: Time,
}

impl Reservation {
    /// Whether the circuit carries data at `t`.
    pub fn is_up(&self, t: Time) -> bool {
        self.up_from <= t && t < self.until
    }

    /// The rack whose port the circuit holds on this side.
    fn rack(&self, side: Side) -> RackId {
        match side {
            Side::Input => self.input,
            Side::Output => self.output,
        }
    }

    /// What makes the reservation impossible by itself.
    fn flaw(&self, planes: &[Plane], racks: usize) -> Option<Impossible> {
        match planes.get(self.plane.index()) {
            None => Some(Impossible::Plane),
            Some(_) if self.input.index() >= racks || self.output.index() >= racks => {
                Some(Impossible::Rack)
            }
            Some(_) if self.input == self.output => Some(Impossible::Itself),
            Some(_) if self.setup_at > self.up_from || self.up_from >= self.until => {
                Some(Impossible::Times)
            }
            Some(p)
                if self.setup_at != self.up_from && self.up_from.since(self.setup_at) < p.delta =>
            {
                Some(Impossible::Delta)
            }
            Some(_) => None,
        }
    }

    /// Whether the port that this circuit and a `later` one hold cannot serve both. Between the
    /// same two ports no mirror moves: only their light may not overlap. Else the later one's
    /// set-up (delta at least) must begin when this one has ended.
    fn clashes(&self, later: &Self, delta: Span) -> bool {
        if (self.input, self.output) == (later.input, later.output) {
            return self.until > later.up_from;
        }
        self.until > later.setup_at || later.up_from.since(self.until) < delta
    }
}

impl std::fmt::Display for Reservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { input, output, setup_at, up_from, until, .. } = self;
        write!(f, "{input} -> {output} (set up at {setup_at}, light from {up_from}")?;
        if *until == Time::MAX { f.write_str(")") } else { write!(f, " until {until})") }
    }
}

/// A side of an OCS: a circuit joins an input port to an output port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Side {
    /// Where racks send.
    Input,
    /// Where racks receive.
    Output,
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Input => "input",
            Self::Output => "output",
        })
    }
}

/// Why a reservation is impossible whatever else is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Impossible {
    /// The network has no plane of this number.
    #[error("no such plane")]
    Plane,
    /// The network has no rack of this number.
    #[error("no such rack")]
    Rack,
    /// Input and output belong to one rack.
    #[error("a rack with itself")]
    Itself,
    /// A circuit is set up, then has light, then ends.
    #[error("times out of order")]
    Times,
    /// The plane's dark time is longer than the time from set-up to light.
    #[error("set up in less than delta")]
    Delta,
}

/// Why a timetable is not one that an OCS could follow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Clash {
    /// Two circuits hold one port at once, or follow each other without a reconfiguration between.
    #[error("{plane}: {side} port of {rack} is held by two circuits: {a} and {b}")]
    Port {
        /// The plane.
        plane: PlaneId,
        /// Which of the rack's two ports on this plane.
        side: Side,
        /// The port's rack.
        rack: RackId,
        /// The earlier circuit.
        a: Box<Reservation>,
        /// The later circuit.
        b: Box<Reservation>,
    },
    /// A circuit has light while another is set up, on a plane on which all ports go dark together.
    #[error("{plane} is all-stop, and has light on {lit} while {dark} is set up")]
    Light {
        /// The plane.
        plane: PlaneId,
        /// The circuit with light.
        lit: Box<Reservation>,
        /// The circuit that is set up.
        dark: Box<Reservation>,
    },
    /// Times out of order, a rack with itself, less than delta to set up, or an unknown plane or
    /// rack.
    #[error("impossible reservation {0}: {1}")]
    Impossible(Box<Reservation>, Impossible),
}

/// All reservations of all planes, ordered by plane, input and time.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Timetable {
    list: Vec<Reservation>,
}

#[cfg(feature = "serde")]
impl<'de> Deserialize<'de> for Timetable {
    /// A file may have them in any order.
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Vec::<Reservation>::deserialize(d).map(Self::from_iter)
    }
}

impl FromIterator<Reservation> for Timetable {
    fn from_iter<I: IntoIterator<Item = Reservation>>(it: I) -> Self {
        let mut list: Vec<_> = it.into_iter().collect();
        list.sort_by_key(|r| (r.plane, r.input, r.up_from, r.output));
        Self { list }
    }
}

/// What goes from port to port ([`Timetable::ports`]).
pub struct TimetablePorts<'a> {
    rest: &'a [Reservation],
}

impl<'a> TimetablePorts<'a> {
    /// The reservations of an input port, by time. It must not come before the last one that was
    /// asked for.
    pub fn port(&mut self, plane: PlaneId, input: RackId) -> &'a [Reservation] {
        let skip = self.rest.iter().take_while(|r| (r.plane, r.input) < (plane, input)).count();
        self.rest = &self.rest[skip..];
        let own = self.rest.iter().take_while(|r| (r.plane, r.input) == (plane, input)).count();
        &self.rest[..own]
    }
}

impl Timetable {
    /// Every reservation, by plane, input and time.
    pub fn iter(&self) -> impl Iterator<Item = &Reservation> {
        self.list.iter()
    }

    /// Number of reservations.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether nothing is reserved.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The reservations of one input port, by time.
    pub fn port(&self, plane: PlaneId, input: RackId) -> &[Reservation] {
        let a = self.list.partition_point(|r| (r.plane, r.input) < (plane, input));
        // A port has few of them.
        let own =
            self.list[a..].iter().take_while(|r| (r.plane, r.input) == (plane, input)).count();
        &self.list[a..a + own]
    }

    /// The same for ports in ascending order: O(reservations) for all of them.
    pub fn ports(&self) -> TimetablePorts<'_> {
        TimetablePorts { rest: &self.list }
    }

    /// What a plane joins at `t`: circuits with light, and those being set up.
    pub fn matching_at(&self, plane: PlaneId, racks: usize, t: Time) -> Matching {
        let mut m = Matching::empty(racks);
        // As `Matching::connect`, which would look through all inputs for each output.
        let mut taken = vec![false; racks];
        for r in self
            .list
            .iter()
            .filter(|r| r.plane == plane && r.setup_at <= t && t < r.until && r.input != r.output)
        {
            let (input, output) = (&mut m.out[r.input.index()], &mut taken[r.output.index()]);
            if input.is_none() && !*output {
                (*input, *output) = (Some(r.output), true);
            }
        }
        m
    }

    /// Proves that a circuit can be held beside those of its plane that end after `now`: both of
    /// its ports are free for it. A circuit with the same ports and start is this one and does not
    /// count. O(reservations of the plane).
    ///
    /// If every other pair of circuits is free of clashes, then so is the timetable with this one.
    /// It can only clash with the circuit before it and the one behind it on each port, or these
    /// with each other.
    ///
    /// # Errors
    /// The [`Clash`] that [`Self::check`] would find first.
    pub fn check_one(
        &self,
        r: &Reservation,
        planes: &[Plane],
        racks: usize,
        now: Time,
    ) -> Result<(), Clash> {
        if let Some(why) = r.flaw(planes, racks) {
            return Err(Clash::Impossible(Box::new(*r), why));
        }
        let delta = planes[r.plane.index()].delta;
        for side in [Side::Input, Side::Output] {
            let key =
                |o: &Reservation| (o.up_from, if side == Side::Input { o.output } else { o.input });
            let list = if side == Side::Input {
                self.port(r.plane, r.input)
            } else {
                self.on_plane(r.plane)
            };
            let this =
                |o: &Reservation| (o.input, o.output, o.up_from) == (r.input, r.output, r.up_from);
            let (mut before, mut behind): (Option<&Reservation>, Option<&Reservation>) =
                (None, None);
            for o in
                list.iter().filter(|o| o.rack(side) == r.rack(side) && o.until > now && !this(o))
            {
                if key(o) < key(r) {
                    before = before.filter(|b| key(b) > key(o)).or(Some(o));
                } else {
                    behind = behind.filter(|b| key(b) < key(o)).or(Some(o));
                }
            }
            let pairs = [before.map(|b| (b, r)), behind.map(|b| (r, b))];
            if let Some((a, b)) = pairs.into_iter().flatten().find(|(a, b)| a.clashes(b, delta)) {
                return Err(Clash::Port {
                    plane: r.plane,
                    side,
                    rack: r.rack(side),
                    a: Box::new(*a),
                    b: Box::new(*b),
                });
            }
        }
        Ok(())
    }

    fn on_plane(&self, plane: PlaneId) -> &[Reservation] {
        let a = self.list.partition_point(|r| r.plane < plane);
        let b = self.list.partition_point(|r| r.plane <= plane);
        &self.list[a..b]
    }

    /// Where a reservation belongs: before those that start when it does at its ports.
    fn place(&self, r: &Reservation) -> usize {
        let key = |r: &Reservation| (r.plane, r.input, r.up_from, r.output);
        self.list.partition_point(|o| key(o) < key(r))
    }

    /// Where the first equal one is, if there is one. O(log n), and those that start when it does
    /// at its ports.
    fn find(&self, r: &Reservation) -> Option<usize> {
        let key = |r: &Reservation| (r.plane, r.input, r.up_from, r.output);
        let first = self.place(r);
        let same = self.list[first..].iter().take_while(|o| key(o) == key(r));
        same.zip(first..).find(|(o, _)| *o == r).map(|(_, k)| k)
    }

    /// Adds a reservation; equal ones are kept side by side. O(n) at most.
    pub fn insert(&mut self, r: Reservation) {
        self.list.insert(self.place(&r), r);
    }

    /// Takes a reservation out; does nothing if it is not there. O(n) at most.
    pub fn remove(&mut self, r: &Reservation) {
        if let Some(k) = self.find(r) {
            self.list.remove(k);
        }
    }

    /// Gives a reservation another end, as if it was taken out and added so; does nothing if it is
    /// not there. O(log n).
    pub fn end(&mut self, r: &Reservation, until: Time) {
        if let Some(k) = self.find(r) {
            let first = self.place(r);
            self.list[first..=k].rotate_right(1);
            self.list[first].until = until;
        }
    }

    /// Drops what ended at or before `t`.
    pub fn forget_before(&mut self, t: Time) {
        self.list.retain(|r| r.until > t);
    }

    /// Proves that an OCS with these planes could follow this timetable: O(n log n).
    ///
    /// A port may be held by consecutive circuits only if the later one's set-up (delta at least)
    /// begins when the earlier one has ended. Between the same two ports a circuit may go on after
    /// any gap, or none.
    ///
    /// # Errors
    /// The first [`Clash`] by plane and port.
    pub fn check(&self, planes: &[Plane], racks: usize) -> Result<(), Clash> {
        let mut by_output: Vec<(PlaneId, RackId, Time, u32)> = Vec::with_capacity(self.list.len());
        for (r, k) in self.list.iter().zip(0..) {
            if let Some(why) = r.flaw(planes, racks) {
                return Err(Clash::Impossible(Box::new(*r), why));
            }
            by_output.push((r.plane, r.output, r.up_from, k));
        }
        let clash = |a: &Reservation, b: &Reservation| a.clashes(b, planes[a.plane.index()].delta);
        for w in self.list.windows(2) {
            if (w[0].plane, w[0].input) == (w[1].plane, w[1].input) && clash(&w[0], &w[1]) {
                return Err(Clash::Port {
                    plane: w[0].plane,
                    side: Side::Input,
                    rack: w[0].input,
                    a: Box::new(w[0]),
                    b: Box::new(w[1]),
                });
            }
        }
        // The list goes by input.
        by_output.sort_unstable();
        for w in by_output.windows(2) {
            let (plane, rack) = (w[0].0, w[0].1);
            let (a, b) = (&self.list[w[0].3 as usize], &self.list[w[1].3 as usize]);
            if (plane, rack) == (w[1].0, w[1].1) && clash(a, b) {
                return Err(Clash::Port {
                    plane,
                    side: Side::Output,
                    rack,
                    a: Box::new(*a),
                    b: Box::new(*b),
                });
            }
        }
        Ok(())
    }

    /// Proves that on all-stop planes no circuit has light while another is set up: O(n log n).
    /// [`Self::check`] does not ask for this, as it must also hold for the circuits in a fabric
    /// between two operations.
    ///
    /// # Errors
    /// The first [`Clash::Light`] by plane.
    pub fn check_all_stop(&self, planes: &[Plane]) -> Result<(), Clash> {
        for plane in planes.iter().filter(|p| p.stop == StopMode::AllStop) {
            let own = || self.list.iter().filter(|r| r.plane == plane.id);
            let mut dark: Vec<&Reservation> = own().filter(|r| r.setup_at < r.up_from).collect();
            dark.sort_by_key(|r| (r.up_from, r.setup_at));
            for lit in own() {
                // Of the set-ups that end after its light begins, some may begin before its light
                // ends.
                let later = &dark[dark.partition_point(|d| d.up_from <= lit.up_from)..];
                if let Some(&dark) = later.iter().take_while(|d| d.setup_at < lit.until).next() {
                    return Err(Clash::Light {
                        plane: plane.id,
                        lit: Box::new(*lit),
                        dark: Box::new(*dark),
                    });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;
    use proptest::prelude::*;

    fn plane() -> Plane {
        Plane {
            id: PlaneId(0),
            rate: BitRate::mbit(1000),
            delta: Span(10),
            stop: StopMode::NotAllStop,
            duplex: false,
        }
    }

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

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn it_is_a_sorted_list(steps in prop::collection::vec((0u32..3, 0u32..3, 0u64..3, 5u64..8, 0u8..3), 0..40)) {
            let (mut table, mut list) = (Timetable::default(), Vec::<Reservation>::new());
            let key = |r: &Reservation| (r.plane, r.input, r.up_from, r.output);
            for (i, j, up, until, what) in steps {
                let r = res(i, j, up, up, until);
                let add = |list: &mut Vec<Reservation>, r: Reservation| {
                    let at = list.iter().position(|o| key(o) >= key(&r)).unwrap_or(list.len());
                    list.insert(at, r);
                };
                let there = list.iter().position(|o| *o == r);
                match what {
                    0 => {
                        table.insert(r);
                        add(&mut list, r);
                    }
                    1 => {
                        table.remove(&r);
                        there.map(|k| list.remove(k));
                    }
                    _ => {
                        table.end(&r, Time(9));
                        there.map(|k| list.remove(k)).into_iter().for_each(|r| add(&mut list, Reservation { until: Time(9), ..r }));
                    }
                }
                prop_assert!(table.iter().eq(&list));
                for input in (0..3).map(RackId) {
                    prop_assert!(table.port(PlaneId(0), input).iter().eq(list.iter().filter(|r| r.input == input)));
                }
            }
        }
    }

    #[test]
    fn check_finds_two_circuits_on_one_port() {
        let p = [plane()];
        for bad in [
            [res(0, 1, 0, 10, 50), res(0, 2, 40, 50, 90)],
            [res(0, 1, 0, 10, 50), res(2, 1, 50, 55, 90)],
            [res(0, 1, 0, 10, 50), res(2, 1, 45, 60, 90)],
        ] {
            assert!(Timetable::from_iter(bad).check(&p, 3).is_err(), "{bad:?}");
        }
        assert!(Timetable::from_iter([res(0, 0, 0, 10, 20)]).check(&p, 3).is_err());
        assert!(Timetable::from_iter([res(0, 7, 0, 10, 20)]).check(&p, 3).is_err());
        assert_eq!(
            Timetable::from_iter([res(0, 1, 0, 10, 50), res(2, 1, 50, 60, 90)]).check(&p, 3),
            Ok(())
        );
    }
}
