//! Hedera's demand estimation: sources raise their flows, overbooked destinations cut theirs, until
//! nothing changes.
//!
//! All flows of a source that no destination has cut have the same share of its link, and those
//! that a destination has cut have the same share of its link. So there are two levels, of the
//! sources and of the destinations, and a flow has the smaller one of its two ends. Levels of
//! sources only rise and those of destinations only fall, each to where its link is full.

use std::borrow::Cow;
use std::ops::Div;

use multiversion::multiversion;

use super::DemandMatrix;
use crate::ids::RackId;

/// Hedera's demand estimation on any set of flows.
///
/// # Arguments
/// - `flows`: how many flows each source (row) has to each destination (column), `N x N`; all flows
///   of a pair get the same.
/// - `out`, `into`: what each end can send and receive, in bytes.
///
/// # Returns
/// Bytes by source and destination: the sum over the flows of the pair, rounded down a flow. No end
/// sends more than `out` or receives more than `into`.
///
/// # Panics
/// If the ends of `flows`, `out` and `into` are not equally many.
///
/// # Complexity
/// O(N^2) at most, or O(N + P) for P pairs that are few. A round goes over the pairs of each end at
/// which something has changed in the round before. It does so several times: once more than its
/// flows have limits below its level, at most. Where most ends have flows to most others, it takes
/// several pairs at a time. There are as many rounds as destinations are cut one after the other,
/// O(N) at most.
///
/// # Source
/// Hedera, NSDI 2010, figures 7 and 8.
pub fn natural(flows: &DemandMatrix, out: &[u64], into: &[u64]) -> DemandMatrix {
    NaturalDemand::default().natural(flows, out, into).clone()
}

/// What was asked last, and the answer: mostly the same pairs have large flows in the next
/// interval.
#[derive(Clone, Debug, Default)]
pub struct NaturalDemand {
    flows: DemandMatrix,
    /// What ends could send and receive.
    ends: [Vec<u64>; 2],
    bytes: DemandMatrix,
}

impl NaturalDemand {
    /// [`natural()`], at once where it is what was asked last.
    pub fn natural(&mut self, flows: &DemandMatrix, out: &[u64], into: &[u64]) -> &DemandMatrix {
        let ends = flows.racks();
        assert!(out.len() == ends && into.len() == ends, "each end sends and receives");
        if self.flows != *flows || self.ends != [out, into] {
            let dense = ends > 0
                && flows.cells.few().is_none()
                && flows.cells().iter().filter(|&&n| n > 0).count() * DENSE >= ends * ends;
            let most = out.iter().chain(into).max().copied().unwrap_or(0);
            // Sums of flows' shares then fit in 64 bits.
            self.bytes = if u128::from(flows.total()) * u128::from(most.max(1)) < 1 << 63 {
                settle::<u64>(flows, out, into, dense)
            } else {
                settle::<u128>(flows, out, into, dense)
            };
            self.ends = [out.to_vec(), into.to_vec()];
            self.flows = flows.clone();
        }
        &self.bytes
    }
}

/// Source, destination, and a number of flows or bytes.
type PairAmount = (RackId, RackId, u64);

/// Bytes, or a number of flows.
trait Amount: Copy + Ord + From<u64> + Div<Output = Self> {
    const ZERO: Self;
    const MAX: Self;

    fn less(self, other: Self) -> Self;

    /// The bytes of some flows that have as many each; no end has more than fit.
    fn of(self, flows: u64) -> u64;

    /// The same numbers.
    fn all(counts: &[u64]) -> Cow<'_, [Self]>;

    /// Appends the bytes of the flows of one source to each destination, by what a flow of the
    /// source and one to the destination has.
    fn give(counts: &[u64], share: Self, cut: &[Self], bytes: &mut Vec<u64>);

    fn sum(counts: &[Self]) -> Self;

    /// Of flows (`counts`) with limits: the bytes of those whose limit is less than `at`, and how
    /// many others there are.
    fn split(counts: &[Self], limits: &[Self], at: Self) -> (Self, Self);
}

macro_rules! amount {
    ($t:ty, $all:expr, $give:path, $split:path) => {
        impl Amount for $t {
            const ZERO: Self = 0;
            const MAX: Self = Self::MAX;
            fn less(self, other: Self) -> Self {
                self.saturating_sub(other)
            }
            fn of(self, flows: u64) -> u64 {
                u64::try_from(self.saturating_mul(flows.into())).unwrap_or(u64::MAX)
            }
            fn all(counts: &[u64]) -> Cow<'_, [Self]> {
                $all(counts)
            }
            fn give(counts: &[u64], share: Self, cut: &[Self], bytes: &mut Vec<u64>) {
                $give(counts, share, cut, bytes);
            }
            fn sum(counts: &[Self]) -> Self {
                counts.iter().sum()
            }
            fn split(counts: &[Self], limits: &[Self], at: Self) -> (Self, Self) {
                $split(counts, limits, at)
            }
        }
    };
}
amount!(u64, Cow::Borrowed, give, split);
amount!(u128, |counts: &[u64]| counts.iter().map(|&n| n.into()).collect(), plain_give, plain_split);

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn give(counts: &[u64], share: u64, cut: &[u64], bytes: &mut Vec<u64>) {
    let before = bytes.len();
    bytes.resize(before + counts.len(), 0);
    let (bytes, cut) = (&mut bytes[before..][..counts.len()], &cut[..counts.len()]);
    for k in 0..counts.len() {
        // Without flows there may be no limit.
        bytes[k] = share.min(cut[k]).wrapping_mul(counts[k]);
    }
}

fn plain_give(counts: &[u64], share: u128, cut: &[u128], bytes: &mut Vec<u64>) {
    bytes.extend(counts.iter().zip(cut).map(|(&n, &cut)| share.min(cut).of(n)));
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn split(counts: &[u64], limits: &[u64], at: u64) -> (u64, u64) {
    let (limits, mut used, mut open) = (&limits[..counts.len()], 0, 0);
    for k in 0..counts.len() {
        let below = limits[k] < at;
        used += if below { counts[k] * limits[k] } else { 0 };
        open += if below { 0 } else { counts[k] };
    }
    (used, open)
}

fn plain_split(counts: &[u128], limits: &[u128], at: u128) -> (u128, u128) {
    let add = |(used, open): (u128, u128), (&n, &limit): (&u128, &u128)| {
        if limit < at {
            (used.saturating_add(n.saturating_mul(limit)), open)
        } else {
            (used, open + n)
        }
    };
    counts.iter().zip(limits).fold((0, 0), add)
}

/// The flows of each end of one side, sources or destinations.
struct SideFlows<'a, T: Clone> {
    /// Where those of each end begin; last their number.
    starts: Vec<usize>,
    counts: Cow<'a, [T]>,
    /// The sum of each end's.
    sums: Vec<T>,
    /// The other ends of the same. Empty, if each end has a count for all others, most of which are
    /// not zero.
    others: Vec<u32>,
}

impl<'a, T: Amount> SideFlows<'a, T> {
    /// By own end and all others.
    fn dense(ends: usize, counts: Cow<'a, [T]>) -> Self {
        let sums = counts.chunks_exact(ends).map(T::sum).collect();
        Self { starts: (0..=ends).map(|k| k * ends).collect(), counts, sums, others: Vec::new() }
    }

    /// `pairs`: own end, other end and how many flows.
    fn sparse(ends: usize, pairs: impl Iterator<Item = PairAmount> + Clone) -> Self {
        // A counting sort: first how many pairs each end has, then where its pairs begin.
        let mut starts = vec![0; ends + 1];
        pairs.clone().for_each(|p| starts[p.0.index() + 1] += 1);
        (0..ends).for_each(|k| starts[k + 1] += starts[k]);
        let (mut next, all) = (starts.clone(), starts[ends]);
        let (mut counts, mut others) = (vec![T::ZERO; all], vec![0; all]);
        for (own, other, count) in pairs {
            let place = &mut next[own.index()];
            (counts[*place], others[*place]) = (count.into(), other.0);
            *place += 1;
        }
        let sums = (0..ends).map(|k| T::sum(&counts[starts[k]..starts[k + 1]])).collect();
        Self { starts, counts: counts.into(), sums, others }
    }

    fn own(&self, k: usize) -> std::ops::Range<usize> {
        self.starts[k]..self.starts[k + 1]
    }

    /// What all flows of an end have, if no other end limits them. `None`: it has no flows.
    fn even(&self, k: usize, capacity: T) -> Option<T> {
        if self.sums[k] == T::ZERO { None } else { Some(capacity / self.sums[k]) }
    }

    /// The level of an end: the most that each of its flows may have beside its own limit, by its
    /// other end, so that all fit. The search begins at a level that is not too high. `None`: all
    /// fit with their limits. `room` is for their limits.
    fn level(&self, k: usize, limits: &[T], capacity: T, from: T, room: &mut Vec<T>) -> Option<T> {
        let own = self.own(k);
        let limits = if self.others.is_empty() {
            limits
        } else {
            room.clear();
            room.extend(self.others[own.clone()].iter().map(|&k| limits[k as usize]));
            room
        };
        let mut at = from;
        loop {
            let (used, open) = T::split(&self.counts[own.clone()], limits, at);
            if open == T::ZERO {
                return None;
            }
            let next = capacity.less(used) / open;
            if next <= at {
                return Some(at);
            }
            at = next;
        }
    }

    /// Marks the other ends of an end's flows.
    fn mark(&self, k: usize, marks: &mut [bool]) {
        if self.others.is_empty() {
            marks.fill(true);
        } else {
            self.others[self.own(k)].iter().for_each(|&k| marks[k as usize] = true);
        }
    }
}

/// One pair in this many of all that there could be: from then on, sides have counts for all other
/// ends.
const DENSE: usize = 8;

/// Rows as columns, tile by tile, so that a tile stays in the nearest cache.
fn turned(rows: &[u64], n: usize) -> Vec<u64> {
    const TILE: usize = 8;
    let mut columns = vec![0; n * n];
    for top in (0..n).step_by(TILE) {
        for left in (0..n).step_by(TILE) {
            for j in left..(left + TILE).min(n) {
                for i in top..(top + TILE).min(n) {
                    columns[j * n + i] = rows[i * n + j];
                }
            }
        }
    }
    columns
}

/// Raises and cuts until nothing changes; `dense`: sides have counts for all other ends.
fn settle<T: Amount>(flows: &DemandMatrix, out: &[u64], into: &[u64], dense: bool) -> DemandMatrix {
    let ends = out.len();
    if !dense {
        let pairs: Vec<PairAmount> = flows.entries().collect();
        let sources = SideFlows::sparse(ends, pairs.iter().copied());
        let (share, cut) = levels::<T>(
            &sources,
            &SideFlows::sparse(ends, pairs.iter().map(|&(i, j, n)| (j, i, n))),
            out,
            into,
        );
        let mut bytes = DemandMatrix::zero(ends);
        bytes.set_all(
            pairs
                .iter()
                .map(|&(i, j, flows)| (i, j, share[i.index()].min(cut[j.index()]).of(flows))),
        );
        return bytes;
    }
    let (rows, columns) = (flows.cells(), turned(flows.cells(), ends));
    let (share, cut) = levels::<T>(
        &SideFlows::dense(ends, T::all(rows)),
        &SideFlows::dense(ends, T::all(&columns)),
        out,
        into,
    );
    let mut bytes = Vec::with_capacity(ends * ends);
    rows.chunks_exact(ends)
        .zip(&share)
        .for_each(|(row, &share)| T::give(row, share, &cut, &mut bytes));
    DemandMatrix::from_cells(ends, bytes)
}

/// The levels of the sources and of the destinations.
fn levels<T: Amount>(
    sources: &SideFlows<T>,
    destinations: &SideFlows<T>,
    out: &[u64],
    into: &[u64],
) -> (Vec<T>, Vec<T>) {
    let ends = out.len();
    // No destination has cut anything yet.
    let mut share: Vec<T> =
        (0..ends).map(|i| sources.even(i, out[i].into()).unwrap_or(T::MAX)).collect();
    let mut cut = vec![T::MAX; ends];
    // Ends at which something has changed since their last turn: all others would do again what
    // they did then.
    let (mut to_raise, mut to_limit) = (vec![false; ends], vec![true; ends]);
    let mut room = Vec::new();
    for _ in 0..4 * ends + 4 {
        for i in 0..ends {
            if std::mem::take(&mut to_raise[i]) {
                let new =
                    sources.level(i, &cut, out[i].into(), share[i], &mut room).unwrap_or(T::MAX);
                if new != share[i] {
                    share[i] = new;
                    sources.mark(i, &mut to_limit);
                }
            }
        }
        let mut changed = false;
        for j in 0..ends {
            if std::mem::take(&mut to_limit[j]) {
                let even = destinations.even(j, into[j].into());
                let new = even
                    .and_then(|even| destinations.level(j, &share, into[j].into(), even, &mut room))
                    .unwrap_or(T::MAX);
                if new < cut[j] {
                    (cut[j], changed) = (new, true);
                    destinations.mark(j, &mut to_raise);
                }
            }
        }
        if !changed {
            break;
        }
    }
    (share, cut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matrix(rows: &[Vec<u64>]) -> DemandMatrix {
        DemandMatrix::from_rows(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    #[test]
    fn the_papers_example() {
        // Figure 8: four hosts; the number of flows a pair, then the demand of each pair in thirds
        // of a link.
        let flows = [[0, 1, 1, 1], [2, 0, 1, 0], [1, 0, 0, 1], [0, 2, 0, 0]].map(Vec::from);
        let thirds = [[0, 1, 1, 1], [2, 0, 1, 0], [1, 0, 0, 2], [0, 2, 0, 0]]
            .map(|r| r.map(|x| x * 1_000_000).to_vec());
        assert_eq!(natural(&matrix(&flows), &[3_000_000; 4], &[3_000_000; 4]), matrix(&thirds));
    }

    /// The same by the book: all cells of the matrix in every round.
    fn twin(flows: &[Vec<u64>], out: &[u64], into: &[u64]) -> Vec<Vec<u64>> {
        let n = flows.len();
        let (mut each, mut cut) = (vec![vec![0u64; n]; n], vec![vec![false; n]; n]);
        for _ in 0..4 * n + 4 {
            let before = each.clone();
            for i in 0..n {
                let used: u64 =
                    (0..n).filter(|&j| cut[i][j]).map(|j| flows[i][j] * each[i][j]).sum();
                let count: u64 = (0..n).filter(|&j| !cut[i][j]).map(|j| flows[i][j]).sum();
                let Some(share) = out[i].saturating_sub(used).checked_div(count) else { continue };
                (0..n).filter(|&j| flows[i][j] > 0 && !cut[i][j]).for_each(|j| each[i][j] = share);
            }
            for j in 0..n {
                let mut from: Vec<(u64, u64, usize)> =
                    (0..n).map(|i| (each[i][j], flows[i][j], i)).filter(|f| f.1 > 0).collect();
                if from.iter().map(|&(d, n, _)| d * n).sum::<u64>() <= into[j] {
                    continue;
                }
                from.sort_unstable();
                let (mut left, mut count) = (into[j], from.iter().map(|f| f.1).sum::<u64>());
                for (d, n, i) in from {
                    let share = left / count;
                    if d >= share {
                        (each[i][j], cut[i][j]) = (share, true);
                    }
                    left -= each[i][j] * n;
                    count -= n;
                }
            }
            if each == before {
                break;
            }
        }
        (0..n).map(|i| (0..n).map(|j| each[i][j] * flows[i][j]).collect()).collect()
    }

    /// What an end can carry: nothing, a few bytes or many.
    fn capacity() -> impl Strategy<Value = u64> {
        prop_oneof![1 => Just(0u64), 1 => 0u64..100, 4 => 0u64..1 << 40]
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn it_is_the_slow_one_but_for_rounding(
            ends in 1usize..12, most in 1u64..4, counts in prop::collection::vec(0u64..12, 121),
            (out, into) in (prop::collection::vec(0u64..200, 12), prop::collection::vec(0u64..100, 12)),
            picks in prop::collection::vec(0u8..10, 0..9),
        ) {
            let count = |i: usize, j: usize| if i == j || counts[i * 11 + j] < 6 { 0 } else { counts[i * 11 + j] % most + 1 };
            let flows: Vec<Vec<u64>> = (0..ends).map(|i| (0..ends).map(|j| count(i, j)).collect()).collect();
            let [out, into] = [out, into].map(|c| c[..ends].iter().map(|c| c * 1_000_000).collect::<Vec<_>>());
            let mut shares = NaturalDemand::default();
            for pick in picks {
                let some = matrix(&flows).map_pairs(|i, j, n| if pick >> ((i.0 + j.0) % 3) & 1 == 0 { n } else { 0 });
                let into = if pick < 8 { &into } else { &out };
                prop_assert_eq!(shares.natural(&some, &out, into), &natural(&some, &out, into));
            }
            let flows_of = matrix(&flows);
            let found = natural(&flows_of, &out, &into);
            for dense in [false, true] {
                prop_assert_eq!(&settle::<u64>(&flows_of, &out, &into, dense), &found);
                prop_assert_eq!(&settle::<u128>(&flows_of, &out, &into, dense), &found);
            }
            let slow = twin(&flows, &out, &into);
            for (i, j, _) in flows_of.entries() {
                let bytes = found.get(i, j);
                prop_assert!(bytes.abs_diff(slow[i.index()][j.index()]) < 1000, "{i} -> {j}: {bytes}");
            }
        }

        #[test]
        fn nothing_is_overbooked_and_no_flow_could_have_more(
            racks in 1usize..7, counts in prop::collection::vec(0u64..4, 49), out in prop::collection::vec(capacity(), 7),
            into in prop::collection::vec(capacity(), 7),
        ) {
            let cell = |i: usize, j: usize| if i == j { 0 } else { counts[i * 7 + j] };
            let flows: Vec<Vec<u64>> = (0..racks).map(|i| (0..racks).map(|j| cell(i, j)).collect()).collect();
            let found = natural(&matrix(&flows), &out[..racks], &into[..racks]);
            let row = |i: usize| found.row(RackId::from(i)).iter().sum::<u64>();
            let column = |j: usize| (0..racks).map(|i| found.get(RackId::from(i), RackId::from(j))).sum::<u64>();
            for i in 0..racks {
                prop_assert!(row(i) <= out[i] && column(i) <= into[i]);
            }
            // Rounding leaves less than one byte a flow at an end, and what one end leaves the
            // other may pass on.
            let slack = 64 * 49;
            for (i, j, _) in matrix(&flows).entries() {
                let (i, j) = (i.index(), j.index());
                let (full_out, full_in) = (row(i) + slack >= out[i], column(j) + slack >= into[j]);
                prop_assert!(full_out || full_in, "{i} -> {j} could have more: {found:?}");
            }
        }

        #[test]
        fn extremes_do_not_panic(cells in prop::collection::vec(any::<u64>(), 9), capacity: u64) {
            let found = natural(&DemandMatrix::from_cells(3, cells), &[capacity; 3], &[capacity; 3]);
            prop_assert!(found.entries().all(|p| p.2 <= capacity));
        }
    }
}
