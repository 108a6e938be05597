//! The flows of a coflow, or its bytes by pair of racks: a list, or a shuffle that is known by its
//! two sides.

use std::collections::BTreeMap;
use std::sync::Arc;

#[cfg(feature = "serde")]
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

/// A list of edges. A shuffle takes memory for its senders and receivers only, and gives out its
/// edges one by one; its clones share it.
#[derive(Clone, PartialEq, Eq)]
pub struct Edges<E: Edge>(EdgesForm<E>);

/// Lists that are shuffles are always kept as such, so that equal ones are equal here.
#[derive(Clone, PartialEq, Eq)]
enum EdgesForm<E: Edge> {
    List(Arc<[E]>),
    Shuffle(Arc<Shuffle<E::End>>),
}

impl<E: Edge> Default for Edges<E> {
    fn default() -> Self {
        Vec::new().into()
    }
}

/// Every one of m senders to every one of r receivers, in the order of the senders' numbers and
/// then of the receivers'; or all of these but from an end to itself. Most senders send a receiver
/// the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shuffle<N> {
    /// The senders, each once.
    from: Vec<N>,
    /// The receivers, each once, with the bytes that most senders send to each.
    to: Vec<(N, Bytes)>,
    /// Edges of other bytes, by their place.
    others: Vec<(u32, Bytes)>,
    /// Where nothing is sent from an end to itself: the place of each sender's first edge, and how
    /// many edges there are. Else empty.
    starts: Vec<u32>,
}

impl<N: Copy + Ord> Shuffle<N> {
    /// A list as a shuffle, if that takes at most half of the memory. O(edges).
    fn of<E: Edge<End = N>>(list: &[E]) -> Option<Self> {
        let (from, to) = (|e: &E| e.ends().0, |e: &E| e.ends().1);
        u32::try_from(list.len()).ok().filter(|&n| n > 0)?;
        let rows: Vec<&[E]> = list.chunk_by(|a, b| from(a) == from(b)).collect();
        // Who is missing in the first row can only be its own sender.
        let mut names: Vec<N> = rows.iter().take(2).flat_map(|row| row.iter().map(to)).collect();
        names.sort_unstable();
        names.dedup();
        let is_whole = rows.iter().all(|row| row.len() == names.len());
        let ascends = rows.is_sorted_by(|a, b| from(&a[0]) < from(&b[0]));
        let is_row = |row: &[E]| {
            let own = from(&row[0]);
            row.iter().map(to).eq(names.iter().copied().filter(|&name| is_whole || name != own))
        };
        if !ascends || !rows.iter().all(|row| is_row(row)) {
            return None;
        }
        let mut shuffle = Self {
            from: rows.iter().map(|row| from(&row[0])).collect(),
            to: names.into_iter().map(|name| (name, Bytes::ZERO)).collect(),
            others: Vec::new(),
            starts: Vec::new(),
        };
        if !is_whole {
            let ends = rows
                .iter()
                .scan(0, |end, row| Some(std::mem::replace(end, *end + row.len() as u32)));
            shuffle.starts = ends.chain([list.len() as u32]).collect();
        }
        // What two of three rows have is what most have, where few are different.
        let some: Vec<usize> = [0, rows.len() / 2, rows.len() - 1].into();
        for j in 0..shuffle.to.len() {
            let [a, b, c] =
                [0, 1, 2].map(|k| shuffle.place_of(some[k], j).map(|place| list[place].bytes()));
            shuffle.to[j].1 =
                (if a.is_some() && a == c { a } else { b.or(a).or(c) }).unwrap_or_default();
        }
        let sides = size_of_val(&shuffle.from[..])
            + size_of_val(&shuffle.to[..])
            + size_of_val(&shuffle.starts[..]);
        let room = (size_of_val(list) / 2).saturating_sub(sides) / size_of::<(u32, Bytes)>();
        let cells = ShuffleCells { shuffle: &shuffle, next: (0, 0) };
        let other = |(k, (e, (_, j))): (usize, (&E, (usize, usize)))| {
            (e.bytes() != shuffle.to[j].1).then_some((k as u32, e.bytes()))
        };
        let others: Vec<_> =
            list.iter().zip(cells).enumerate().filter_map(other).take(room + 1).collect();
        (others.len() <= room && room > 0).then_some(Self { others, ..shuffle })
    }

    /// How many edges it has.
    fn edges(&self) -> usize {
        self.starts.last().map_or(self.from.len() * self.to.len(), |&n| n as usize)
    }

    /// The receiver to which a sender sends nothing, since that is itself.
    fn itself(&self, i: usize) -> Option<usize> {
        if self.starts.is_empty() {
            None
        } else {
            self.to.binary_search_by_key(&self.from[i], |r| r.0).ok()
        }
    }

    /// The place of the edge from a sender to a receiver.
    fn place_of(&self, i: usize, j: usize) -> Option<usize> {
        let start = self.starts.get(i).map_or(i * self.to.len(), |&start| start as usize);
        match self.itself(i) {
            Some(own) if own == j => None,
            Some(own) => Some(start + j - usize::from(own < j)),
            None => Some(start + j),
        }
    }

    /// Sender and receiver of the edge at a place.
    fn cell(&self, k: usize) -> (usize, usize) {
        if self.starts.is_empty() {
            return (k / self.to.len(), k % self.to.len());
        }
        let i = self.starts.partition_point(|&start| start as usize <= k) - 1;
        let j = k - self.starts[i] as usize;
        (i, j + usize::from(self.itself(i).is_some_and(|own| own <= j)))
    }

    /// What each end sends, and what each receives.
    fn sums(&self) -> [Vec<(N, u128)>; 2] {
        let most = |j: usize| u128::from(self.to[j].1.0);
        let all: u128 = (0..self.to.len()).map(most).sum();
        let holes: Vec<Option<usize>> = (0..self.from.len()).map(|i| self.itself(i)).collect();
        let mut out: Vec<(N, u128)> = self
            .from
            .iter()
            .zip(&holes)
            .map(|(&n, hole)| (n, all - hole.map_or(0, most)))
            .collect();
        let mut into: Vec<(N, u128)> =
            self.to.iter().map(|r| (r.0, u128::from(r.1.0) * self.from.len() as u128)).collect();
        holes.into_iter().flatten().for_each(|j| into[j].1 -= most(j));
        for &(k, Bytes(bytes)) in &self.others {
            let (i, j) = self.cell(k as usize);
            for sum in [&mut out[i].1, &mut into[j].1] {
                *sum = *sum + u128::from(bytes) - most(j);
            }
        }
        [out, into]
    }

    /// The bytes of the edge at a place. O(log edges of other bytes), and O(log ends) where ends do
    /// not send to themselves.
    pub fn bytes(&self, k: usize) -> Bytes {
        let other = self.others.binary_search_by_key(&k, |o| o.0 as usize);
        other.map_or_else(|_| self.to[self.cell(k).1].1, |o| self.others[o].1)
    }
}

/// Senders and receivers of all edges of a shuffle, in their order.
struct ShuffleCells<'a, N> {
    shuffle: &'a Shuffle<N>,
    next: (usize, usize),
}

impl<N: Copy + Ord> Iterator for ShuffleCells<'_, N> {
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        let s = self.shuffle;
        loop {
            let (i, j) = self.next;
            let from = s.from.get(i)?;
            self.next = if j + 1 < s.to.len() { (i, j + 1) } else { (i + 1, 0) };
            if s.starts.is_empty() || s.to[j].0 != *from {
                return Some((i, j));
            }
        }
    }
}

impl<E: Edge> Edges<E> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            EdgesForm::List(list) => list.len(),
            EdgesForm::Shuffle(s) => s.edges(),
        }
    }

    /// How many edges, senders and receivers it keeps: all edges of a list, and of a shuffle its
    /// two sides and the edges of other bytes.
    pub fn kept(&self) -> usize {
        match &self.0 {
            EdgesForm::List(list) => list.len(),
            EdgesForm::Shuffle(s) => s.from.len() + s.to.len() + s.others.len() + s.starts.len(),
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
            EdgesForm::List(list) => list[k],
            EdgesForm::Shuffle(s) => {
                let (i, j) = s.cell(k);
                E::new(s.from[i], s.to[j].0, s.bytes(k))
            }
        }
    }

    /// Where the edge between two ends is, in a list that is in the order of its ends. O(log
    /// edges).
    pub fn place(&self, ends: (E::End, E::End)) -> Option<usize> {
        match &self.0 {
            EdgesForm::List(list) => list.binary_search_by_key(&ends, E::ends).ok(),
            EdgesForm::Shuffle(s) => {
                let (i, j) = (
                    s.from.binary_search(&ends.0).ok()?,
                    s.to.binary_search_by_key(&ends.1, |r| r.0).ok()?,
                );
                s.place_of(i, j)
            }
        }
    }

    /// All of them, in their order.
    pub fn iter(&self) -> Iter<'_, E> {
        Iter { edges: self, next: 0, place: (0, 0), others: 0 }
    }

    /// All but those at the places `out`, which ascend, each with its place.
    pub fn beside<'a>(&'a self, out: &'a [u32]) -> impl Iterator<Item = (usize, E)> + 'a {
        let mut out = out.iter().peekable();
        self.iter().enumerate().filter(move |e| out.next_if(|&&k| k as usize == e.0).is_none())
    }

    /// What each end sends, and what each receives, in the order of ends. O(ends + edges of other
    /// bytes) of a shuffle, and O(edges log edges) of a list.
    pub fn sums(&self) -> [Vec<(E::End, u128)>; 2] {
        match &self.0 {
            EdgesForm::List(list) => [false, true].map(|receives| {
                let mut sums = BTreeMap::new();
                for e in list.iter() {
                    let (from, to) = e.ends();
                    *sums.entry(if receives { to } else { from }).or_insert(0) +=
                        u128::from(e.bytes().0);
                }
                sums.into_iter().collect()
            }),
            EdgesForm::Shuffle(s) => s.sums(),
        }
    }

    /// The bytes of all of them. As fast as [`Edges::sums`].
    pub fn bytes(&self) -> Bytes {
        let sum = match &self.0 {
            EdgesForm::List(list) => list.iter().map(|e| u128::from(e.bytes().0)).sum(),
            EdgesForm::Shuffle(s) => s.sums()[0].iter().map(|x| x.1).sum::<u128>(),
        };
        Bytes(u64::try_from(sum).unwrap_or(u64::MAX))
    }

    /// The bytes of the largest one; zero if there are none. O(ends + edges of other bytes) of a
    /// shuffle, and O(edges) of a list.
    pub fn largest(&self) -> Bytes {
        match &self.0 {
            EdgesForm::List(list) => list.iter().map(E::bytes).max().unwrap_or_default(),
            // What most senders send to a receiver, one of them does.
            EdgesForm::Shuffle(s) => {
                s.to.iter()
                    .map(|r| r.1)
                    .chain(s.others.iter().map(|o| o.1))
                    .max()
                    .unwrap_or_default()
            }
        }
    }

    /// Places of edges without bytes, in order. O(edges), and O(ends + edges of other bytes) of a
    /// shuffle that has none.
    pub fn empty(&self) -> Vec<u32> {
        if let EdgesForm::Shuffle(s) = &self.0
            && s.to
                .iter()
                .map(|r| r.1)
                .chain(s.others.iter().map(|o| o.1))
                .all(|bytes| bytes > Bytes::ZERO)
        {
            return vec![];
        }
        self.iter().zip(0..).filter(|(e, _)| e.bytes() == Bytes::ZERO).map(|(_, k)| k).collect()
    }

    /// The edges whose two ends have the same key, each with its place, in their order. O((ends +
    /// edges found) log ends) of a shuffle, and O(edges) of a list.
    pub fn inside<K: Ord>(&self, key: impl Fn(E::End) -> K) -> Vec<(usize, E)> {
        match &self.0 {
            EdgesForm::List(list) => {
                let is_inside = |e: &E| key(e.ends().0) == key(e.ends().1);
                list.iter().copied().enumerate().filter(|(_, e)| is_inside(e)).collect()
            }
            EdgesForm::Shuffle(s) => {
                let mut by_key: Vec<(K, usize)> =
                    s.to.iter().enumerate().map(|(j, r)| (key(r.0), j)).collect();
                by_key.sort_unstable();
                let mut found = Vec::new();
                for (i, &from) in s.from.iter().enumerate() {
                    let own = key(from);
                    let same = by_key[by_key.partition_point(|x| x.0 < own)..]
                        .iter()
                        .take_while(|x| x.0 == own);
                    let places = same.filter_map(|&(_, j)| s.place_of(i, j).map(|k| (k, j)));
                    found.extend(places.map(|(k, j)| (k, E::new(from, s.to[j].0, s.bytes(k)))));
                }
                found
            }
        }
    }

    /// Them as a shuffle, if they are kept as one and go from every sender to every receiver: edge
    /// `r x i + j` is from sender i to receiver j.
    pub fn as_shuffle(&self) -> Option<&Arc<Shuffle<E::End>>> {
        match &self.0 {
            EdgesForm::Shuffle(s) if s.starts.is_empty() => Some(s),
            _ => None,
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
            Some(shuffle) => EdgesForm::Shuffle(Arc::new(shuffle)),
            None => EdgesForm::List(list.into()),
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

#[cfg(feature = "serde")]
impl<E: Edge + Serialize> Serialize for Edges<E> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(self)
    }
}

#[cfg(feature = "serde")]
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
            EdgesForm::List(list) => *list.get(k)?,
            EdgesForm::Shuffle(s) => {
                let mut cells = ShuffleCells { shuffle: s, next: self.place };
                let (i, j) = cells.next()?;
                self.place = cells.next;
                let (from, (to, most)) = (s.from[i], s.to[j]);
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
        assert_eq!(
            (s.from.len(), s.to.len(), s.others.len(), flows.len(), flows.kept()),
            (40, 30, 30, 1200, 100)
        );
        assert_eq!((flows.at(31), flows.at(39 * 30 + 2)), (flow(2, 3, 100), flow(78, 6, 201)));
        // The odd one may be the first or in the middle, too.
        for odd in [0, 20] {
            let flows = Flows::from(shuffle(40, 30, |i, _| u64::from(7 + u32::from(i == odd))));
            assert_eq!(flows.as_shuffle().unwrap().others.len(), 30);
        }
    }

    #[test]
    fn a_shuffle_may_be_without_flows_from_a_host_to_itself() {
        let all = (0..12).flat_map(|i| {
            (6..20).filter(move |&j| i != j).map(move |j| flow(i, j, 5 + u64::from(j)))
        });
        let list: Vec<FlowSpec> = all.collect();
        let flows = Flows::from(list.clone());
        assert_eq!(
            (flows.len(), flows.kept(), flows.as_shuffle().is_none()),
            (12 * 14 - 6, 12 + 14 + 13, true)
        );
        assert!(
            flows.iter().eq(list.iter().copied())
                && list.iter().enumerate().all(|(k, &f)| flows.at(k) == f)
        );
        assert_eq!(
            [(6, 6), (6, 7), (11, 12), (5, 5)].map(|(a, b)| flows.place((HostId(a), HostId(b)))),
            [None, Some(84), Some(154), None]
        );
        // The same without one more flow is a list.
        assert_eq!(Flows::from(list[1..].to_vec()).kept(), list.len() - 1);
    }

    #[test]
    fn other_lists_stay_lists() {
        let is_list = |list: Vec<FlowSpec>| Flows::from(list).as_shuffle().is_none();
        let square = || shuffle(20, 20, |_, _| 5);
        assert!(
            is_list(vec![])
                && is_list(vec![flow(0, 1, 2)])
                && is_list(shuffle(9, 9, |i, j| u64::from(10 * i + j)))
        );
        assert!(is_list(square().into_iter().skip(1).collect()), "one is missing");
        assert!(is_list(square().into_iter().rev().collect()), "in another order");
        assert!(is_list(
            square()
                .into_iter()
                .enumerate()
                .map(|(k, f)| flow(f.from.0, f.to.0 + u32::from(k == 399), 5))
                .collect()
        ));
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn what_goes_in_comes_out(
            (m, r) in (1u32..9, 1u32..9),
            odd in prop::collection::vec((0usize..81, 0u64..3), 0..4),
            (gone, swapped) in (prop::option::of(0usize..81), prop::option::of(0usize..80)),
            without_itself: bool,
        ) {
            let mut list = shuffle(m, r, |_, j| u64::from(j % 3));
            if without_itself {
                list.retain(|f| f.from != f.to);
                prop_assume!(!list.is_empty());
            }
            let n = list.len();
            odd.into_iter().for_each(|(k, bytes)| list[k % n].bytes = Bytes(bytes));
            if let Some(k) = swapped.filter(|_| n > 1) {
                list.swap(k % (n - 1), k % (n - 1) + 1);
            }
            if let Some(k) = gone {
                list.remove(k % n);
            }
            let flows = Flows::from(list.clone());
            let all = Edges(EdgesForm::List(list.clone().into()));
            prop_assert_eq!((flows.sums(), flows.bytes(), flows.largest()), (all.sums(), all.bytes(), all.largest()));
            prop_assert_eq!(flows.empty(), all.empty());
            prop_assert_eq!((flows.inside(|h| h), flows.inside(|h| h.0 / 4)), (all.inside(|h| h), all.inside(|h| h.0 / 4)));
            prop_assert_eq!((flows.to_vec(), flows.len(), flows.iter().len()), (list.clone(), list.len(), list.len()));
            prop_assert!(list.iter().enumerate().all(|(k, &f)| flows.at(k) == f));
            if list.is_sorted_by_key(Edge::ends) {
                prop_assert!(list.iter().enumerate().all(|(k, f)| flows.place(f.ends()) == Some(k)));
                prop_assert_eq!(flows.place((HostId(1), HostId(0))), None);
                prop_assert!(!without_itself || flows.place((HostId(0), HostId(0))).is_none());
            }
            let text = serde_json::to_string(&flows).unwrap();
            prop_assert_eq!(&text, &serde_json::to_string(&list).unwrap());
            prop_assert_eq!(serde_json::from_str::<Flows>(&text).unwrap(), flows);
        }
    }
}
