//! The flows of a coflow, or its bytes by pair of racks: a list, or a shuffle that is known by its two sides.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{FlowSpec, RackBytes};
use crate::ids::{HostId, RackId};
use crate::units::Bytes;

/// Bytes from one end to another.
pub trait Edge: Copy + Eq + std::fmt::Debug {
    /// What sends and receives.
    type End: Copy + Ord + std::fmt::Debug;

    /// Sender, receiver and bytes as one.
    fn new(from: Self::End, to: Self::End, bytes: Bytes) -> Self;

    /// Sender and receiver.
    fn ends(&self) -> (Self::End, Self::End);

    /// The bytes.
    fn bytes(&self) -> Bytes;
}

/// Implements [`Edge`] for a struct of `from`, `to` and `bytes`.
macro_rules! edge {
    ($edge:ident, $end:ident) => {
        impl Edge for $edge {
            type End = $end;

            fn new(from: $end, to: $end, bytes: Bytes) -> Self {
                Self { from, to, bytes }
            }

            fn ends(&self) -> ($end, $end) {
                (self.from, self.to)
            }

            fn bytes(&self) -> Bytes {
                self.bytes
            }
        }
    };
}

edge!(FlowSpec, HostId);
edge!(RackBytes, RackId);

/// The flows of a coflow, in their order.
pub type Flows = Edges<FlowSpec>;
/// A coflow's bytes by pair of racks.
pub type Pairs = Edges<RackBytes>;

/// A list of edges. A shuffle takes memory for its senders and receivers only, and gives out its edges one by one; its clones share it.
#[derive(Clone, PartialEq, Eq)]
pub struct Edges<E: Edge>(Kind<E>);

/// Lists that are shuffles are always kept as such, so that equal ones are equal here.
#[derive(Clone, PartialEq, Eq)]
enum Kind<E: Edge> {
    List(Arc<[E]>),
    Shuffle(Arc<Shuffle<E::End>>),
}

impl<E: Edge> Default for Edges<E> {
    fn default() -> Self {
        Vec::new().into()
    }
}

/// Every one of m senders to every one of r receivers: edge `r x i + j` is from sender i to receiver j, both in the order of their numbers.
/// Most senders send a receiver the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shuffle<N> {
    /// The senders, each once.
    pub from: Vec<N>,
    /// The receivers, each once, with the bytes that most senders send to each.
    pub to: Vec<(N, Bytes)>,
    /// Edges of other bytes, by their place.
    pub others: Vec<(u32, Bytes)>,
}

impl<N: Copy + Ord> Shuffle<N> {
    /// A list as a shuffle, if that takes at most half of the memory. O(edges).
    fn of<E: Edge<End = N>>(list: &[E]) -> Option<Self> {
        let (from, to) = (|e: &E| e.ends().0, |e: &E| e.ends().1);
        let first = from(list.first()?);
        let width = list.iter().take_while(|e| from(e) == first).count();
        let rows = list.chunks_exact(width);
        let (senders, names): (Vec<N>, &[E]) = (rows.clone().map(|row| from(&row[0])).collect(), &list[..width]);
        let ascends = senders.is_sorted_by(|a, b| a < b) && names.is_sorted_by(|a, b| to(a) < to(b));
        let is_row = |row: &[E]| row.iter().zip(names).all(|(e, name)| e.ends() == (from(&row[0]), to(name)));
        if !rows.remainder().is_empty() || !ascends || u32::try_from(list.len()).is_err() || !rows.clone().all(is_row) {
            return None;
        }
        // What two of three rows have is what most have, where few are different.
        let [a, b, c] = [0, senders.len() / 2, senders.len() - 1].map(|row| &list[row * width..][..width]);
        let most = |j: usize| if a[j].bytes() == c[j].bytes() { a[j].bytes() } else { b[j].bytes() };
        let receivers: Vec<(N, Bytes)> = names.iter().enumerate().map(|(j, e)| (to(e), most(j))).collect();
        let sides = size_of_val(senders.as_slice()) + size_of_val(receivers.as_slice());
        let room = (size_of_val(list) / 2).saturating_sub(sides) / size_of::<(u32, Bytes)>();
        let other = |(k, (e, most)): (usize, (&E, &(N, Bytes)))| (e.bytes() != most.1).then_some((k as u32, e.bytes()));
        let others: Vec<_> = list.iter().zip(receivers.iter().cycle()).enumerate().filter_map(other).take(room + 1).collect();
        (others.len() <= room && room > 0).then_some(Self { from: senders, to: receivers, others })
    }

    /// How many edges it has.
    pub fn edges(&self) -> usize {
        self.from.len() * self.to.len()
    }

    /// The bytes of the edge at a place. O(log others).
    pub fn bytes(&self, k: usize) -> Bytes {
        let other = self.others.binary_search_by_key(&k, |o| o.0 as usize);
        other.map_or_else(|_| self.to[k % self.to.len()].1, |o| self.others[o].1)
    }
}

impl<E: Edge> Edges<E> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Kind::List(list) => list.len(),
            Kind::Shuffle(s) => s.edges(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The edge at a place. O(1), or O(log edges of other bytes) in a shuffle.
    ///
    /// # Panics
    /// If there is none.
    pub fn at(&self, k: usize) -> E {
        match &self.0 {
            Kind::List(list) => list[k],
            Kind::Shuffle(s) => E::new(s.from[k / s.to.len()], s.to[k % s.to.len()].0, s.bytes(k)),
        }
    }

    /// Where the edge between two ends is, in a list that is in the order of its ends. O(log edges).
    pub fn place(&self, ends: (E::End, E::End)) -> Option<usize> {
        match &self.0 {
            Kind::List(list) => list.binary_search_by_key(&ends, E::ends).ok(),
            Kind::Shuffle(s) => {
                let (i, j) = (s.from.binary_search(&ends.0).ok()?, s.to.binary_search_by_key(&ends.1, |r| r.0).ok()?);
                Some(i * s.to.len() + j)
            }
        }
    }

    /// All of them, in their order.
    pub fn iter(&self) -> Iter<'_, E> {
        Iter { edges: self, next: 0, place: (0, 0), others: 0 }
    }

    /// Them as a shuffle, if they are kept as one.
    pub fn as_shuffle(&self) -> Option<&Arc<Shuffle<E::End>>> {
        match &self.0 {
            Kind::List(_) => None,
            Kind::Shuffle(s) => Some(s),
        }
    }

    /// Them as a list. O(edges).
    pub fn to_vec(&self) -> Vec<E> {
        self.iter().collect()
    }
}

impl<E: Edge> From<Vec<E>> for Edges<E> {
    fn from(list: Vec<E>) -> Self {
        Self(match Shuffle::of(&list) {
            Some(shuffle) => Kind::Shuffle(Arc::new(shuffle)),
            None => Kind::List(list.into()),
        })
    }
}

impl<E: Edge> FromIterator<E> for Edges<E> {
    fn from_iter<I: IntoIterator<Item = E>>(edges: I) -> Self {
        edges.into_iter().collect::<Vec<_>>().into()
    }
}

impl<E: Edge> std::fmt::Debug for Edges<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl<E: Edge + Serialize> Serialize for Edges<E> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(self)
    }
}

impl<'de, E: Edge + Deserialize<'de>> Deserialize<'de> for Edges<E> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Vec::deserialize(d).map(Self::from)
    }
}

impl<'a, E: Edge> IntoIterator for &'a Edges<E> {
    type Item = E;
    type IntoIter = Iter<'a, E>;

    fn into_iter(self) -> Iter<'a, E> {
        self.iter()
    }
}

/// Edges in their order.
#[derive(Clone, Debug)]
pub struct Iter<'a, E: Edge> {
    edges: &'a Edges<E>,
    next: usize,
    /// Sender and receiver of the next one in a shuffle.
    place: (usize, usize),
    /// How many edges of other bytes are before it.
    others: usize,
}

impl<E: Edge> Iterator for Iter<'_, E> {
    type Item = E;

    fn next(&mut self) -> Option<E> {
        let k = self.next;
        let edge = match &self.edges.0 {
            Kind::List(list) => *list.get(k)?,
            Kind::Shuffle(s) => {
                let (i, j) = self.place;
                let (from, (to, most)) = (*s.from.get(i)?, s.to[j]);
                self.place = if j + 1 < s.to.len() { (i, j + 1) } else { (i + 1, 0) };
                let other = s.others.get(self.others).filter(|o| o.0 as usize == k);
                self.others += usize::from(other.is_some());
                E::new(from, to, other.map_or(most, |o| o.1))
            }
        };
        self.next += 1;
        Some(edge)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.edges.len() - self.next;
        (left, Some(left))
    }
}

impl<E: Edge> ExactSizeIterator for Iter<'_, E> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flow(from: u32, to: u32, bytes: u64) -> FlowSpec {
        FlowSpec { from: HostId(from), to: HostId(to), bytes: Bytes(bytes) }
    }

    fn shuffle(m: u32, r: u32, bytes: impl Fn(u32, u32) -> u64) -> Vec<FlowSpec> {
        (0..m * r).map(|k| flow(2 * (k / r), 3 * (k % r), bytes(k / r, k % r))).collect()
    }

    #[test]
    fn a_shuffle_takes_memory_for_its_sides() {
        // The last sender has what did not divide.
        let flows = Flows::from(shuffle(40, 30, |i, j| u64::from(100 * j + u32::from(i == 39))));
        let s = flows.as_shuffle().unwrap();
        assert_eq!((s.from.len(), s.to.len(), s.others.len(), flows.len()), (40, 30, 30, 1200));
        assert_eq!((flows.at(31), flows.at(39 * 30 + 2)), (flow(2, 3, 100), flow(78, 6, 201)));
        // The odd one may be the first or in the middle, too.
        for odd in [0, 20] {
            let flows = Flows::from(shuffle(40, 30, |i, _| u64::from(7 + u32::from(i == odd))));
            assert_eq!(flows.as_shuffle().unwrap().others.len(), 30);
        }
    }

    #[test]
    fn other_lists_stay_lists() {
        let is_list = |list: Vec<FlowSpec>| Flows::from(list).as_shuffle().is_none();
        let square = || shuffle(20, 20, |_, _| 5);
        assert!(is_list(vec![]) && is_list(vec![flow(0, 1, 2)]) && is_list(shuffle(9, 9, |i, j| u64::from(10 * i + j))));
        assert!(is_list(square().into_iter().skip(1).collect()), "one is missing");
        assert!(is_list(square().into_iter().rev().collect()), "in another order");
        assert!(is_list(square().into_iter().enumerate().map(|(k, f)| flow(f.from.0, f.to.0 + u32::from(k == 399), 5)).collect()));
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            (m, r) in (1u32..9, 1u32..9),
            odd in prop::collection::vec((0usize..81, 0u64..3), 0..4),
            (gone, swapped) in (prop::option::of(0usize..81), prop::option::of(0usize..80)),
        ) {
            let mut list = shuffle(m, r, |_, j| u64::from(j % 3));
            let n = list.len();
            odd.into_iter().for_each(|(k, bytes)| list[k % n].bytes = Bytes(bytes));
            if let Some(k) = swapped.filter(|_| n > 1) {
                list.swap(k % (n - 1), k % (n - 1) + 1);
            }
            if let Some(k) = gone {
                list.remove(k % n);
            }
            let flows = Flows::from(list.clone());
            prop_assert_eq!((flows.to_vec(), flows.len(), flows.iter().len()), (list.clone(), list.len(), list.len()));
            prop_assert!(list.iter().enumerate().all(|(k, &f)| flows.at(k) == f));
            if list.is_sorted_by_key(Edge::ends) {
                prop_assert!(list.iter().enumerate().all(|(k, f)| flows.place(f.ends()) == Some(k)));
                prop_assert_eq!(flows.place((HostId(1), HostId(0))), None);
            }
            let text = serde_json::to_string(&flows).unwrap();
            prop_assert_eq!(&text, &serde_json::to_string(&list).unwrap());
            prop_assert_eq!(serde_json::from_str::<Flows>(&text).unwrap(), flows);
        }
    }
}
