//! Hedera's demand estimation: sources raise their flows, overbooked destinations cut theirs, until nothing changes.

/// Hedera's demand estimation on any set of flows.
///
/// # Arguments
/// - `flows`: source, destination and number of flows of each pair that has any, in the order of sources (all flows of a pair get the
///   same).
/// - `out`, `into`: what each end can send and receive, in bytes; equally many, and all ends of flows are among them.
///
/// # Returns
/// Bytes by pair, in the same order: the sum over its flows, rounded down a flow. No end sends more than `out` or receives more than
/// `into`.
///
/// # Complexity
/// O(N + P), and O(N + P) a round, for N ends and P pairs at ends at which something changed in the round before (O(N + P log P) where
/// pairs have several flows); as many rounds as destinations are cut one after the other, O(N) at most.
///
/// # Source
/// Hedera, NSDI 2010, figures 7 and 8.
pub fn natural(flows: impl Iterator<Item = Pair>, out: &[u64], into: &[u64]) -> Vec<Pair> {
    assert_eq!(out.len(), into.len(), "each end sends and receives");
    let mut e = Estimate::new(out.len(), flows);
    e.settle(out, into);
    e.pairs().collect()
}

/// What was asked last, and the answer: mostly the same pairs have large flows in the next interval.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    flows: Vec<Pair>,
    /// What is asked now.
    next: Vec<Pair>,
    /// What ends could send and receive.
    ends: [Vec<u64>; 2],
    bytes: Vec<Pair>,
}

impl Shares {
    /// [`natural()`], at once where it is what was asked last.
    pub fn natural(&mut self, flows: impl Iterator<Item = Pair>, out: &[u64], into: &[u64]) -> &[Pair] {
        self.next.clear();
        self.next.extend(flows);
        if self.next != self.flows || self.ends != [out, into] {
            self.bytes = natural(self.next.iter().copied(), out, into);
            self.ends = [out.to_vec(), into.to_vec()];
            std::mem::swap(&mut self.flows, &mut self.next);
        }
        &self.bytes
    }
}

/// Source, destination, and a number of flows or bytes.
pub type Pair = (usize, usize, u64);

/// The flows of a pair.
struct Flows {
    from: usize,
    to: usize,
    /// How many.
    count: u64,
    /// Bytes of each.
    each: u64,
    /// Its destination has cut it; its source raises it no more ("converged").
    cut: bool,
    /// The last round in which [`Flows::each`] was written, and what it was before that round.
    round: usize,
    before: u64,
}

impl Flows {
    fn bytes(&self) -> u128 {
        u128::from(self.count) * u128::from(self.each)
    }
}

/// A flow of an overbooked destination in the order in which it is cut: bytes of each, how many, source, and the place of its pair.
type Booked = (u64, u64, usize, usize);

/// Pairs that have flows, by source.
///
/// A round goes over the ends at which something has changed since their last turn: all others would do again what they did then.
struct Estimate {
    pairs: Vec<Flows>,
    /// By source, where its pairs begin; last their number.
    rows: Vec<usize>,
    /// Places of pairs, by destination, and where those of each destination begin; last their number.
    by_destination: Vec<usize>,
    columns: Vec<usize>,
    /// By source: one of its flows was cut since it raised the others.
    to_raise: Vec<bool>,
    /// By destination: one of its flows was raised since it cut them.
    to_limit: Vec<bool>,
    /// By source: bytes of its flows that are cut, and how many are not.
    used: Vec<u128>,
    open: Vec<u128>,
    /// By destination: bytes of all its flows.
    booked_at: Vec<u128>,
    /// Whether every pair has one flow.
    single: bool,
    /// Pairs whose bytes were written in this round.
    written: Vec<usize>,
    /// Room for the flows of one destination.
    booked: Vec<Booked>,
}

impl Estimate {
    /// `flows`: source, destination and number, which is not zero, in the order of sources.
    fn new(ends: usize, flows: impl Iterator<Item = Pair>) -> Self {
        let pair = |(from, to, count)| Flows { from, to, count, each: 0, cut: false, round: 0, before: 0 };
        let mut pairs: Vec<Flows> = Vec::new();
        flows.for_each(|f| pairs.push(pair(f)));
        let mut open = vec![0; ends];
        pairs.iter().for_each(|p| open[p.from] += u128::from(p.count));
        let rows = (0..=ends).map(|i| pairs.partition_point(|p| p.from < i)).collect();
        // A counting sort: first how many pairs each destination has, then where its pairs end, then, from the last pair on, their places.
        let mut columns = vec![0; ends + 1];
        pairs.iter().for_each(|p| columns[p.to] += 1);
        let mut end = 0;
        for column in &mut columns {
            end += *column;
            *column = end;
        }
        let mut by_destination = vec![0; pairs.len()];
        for (k, p) in pairs.iter().enumerate().rev() {
            columns[p.to] -= 1;
            by_destination[columns[p.to]] = k;
        }
        let (to_raise, to_limit) = (vec![true; ends], vec![false; ends]);
        Self {
            single: pairs.iter().all(|p| p.count == 1),
            pairs,
            rows,
            by_destination,
            columns,
            to_raise,
            to_limit,
            used: vec![0; ends],
            open,
            booked_at: vec![0; ends],
            written: Vec::new(),
            booked: Vec::new(),
        }
    }

    /// Raises and cuts until nothing changes.
    fn settle(&mut self, out: &[u64], into: &[u64]) {
        for round in 1..=4 * out.len() + 4 {
            self.written.clear();
            for (i, &capacity) in out.iter().enumerate() {
                if std::mem::take(&mut self.to_raise[i]) {
                    self.raise(i, capacity, round);
                }
            }
            for (j, &capacity) in into.iter().enumerate() {
                if std::mem::take(&mut self.to_limit[j]) {
                    self.limit(j, capacity, round);
                }
            }
            if self.written.iter().all(|&k| self.pairs[k].each == self.pairs[k].before) {
                break;
            }
        }
    }

    /// Bytes by pair.
    fn pairs(&self) -> impl Iterator<Item = Pair> + '_ {
        self.pairs.iter().map(|p| (p.from, p.to, p.each.saturating_mul(p.count)))
    }

    /// Gives each flow of pair `k` `each` bytes.
    fn give(&mut self, k: usize, each: u64, round: usize) {
        let p = &mut self.pairs[k];
        if p.round != round {
            (p.round, p.before) = (round, p.each);
            self.written.push(k);
        }
        let before = p.bytes();
        p.each = each;
        let booked = &mut self.booked_at[p.to];
        *booked = *booked + p.bytes() - before;
        if p.cut {
            let used = &mut self.used[p.from];
            *used = *used + p.bytes() - before;
        }
    }

    /// The flows of pair `k` are cut to `each` bytes.
    fn cut(&mut self, k: usize, each: u64, round: usize) {
        let p = &mut self.pairs[k];
        let from = p.from;
        self.to_raise[from] = true;
        if !std::mem::replace(&mut p.cut, true) {
            self.used[from] += p.bytes();
            self.open[from] -= u128::from(p.count);
        }
        self.give(k, each, round);
    }

    /// Shares what the cut flows leave of the source's capacity equally among the others.
    fn raise(&mut self, i: usize, capacity: u64, round: usize) {
        if self.open[i] == 0 {
            return;
        }
        let share = share(u128::from(capacity).saturating_sub(self.used[i]), self.open[i]);
        for k in self.rows[i]..self.rows[i + 1] {
            let p = &self.pairs[k];
            if !p.cut && p.each != share {
                self.to_limit[p.to] = true;
                self.give(k, share, round);
            }
        }
    }

    /// Cuts the flows of an overbooked destination to the largest equal share at which all fit.
    fn limit(&mut self, j: usize, capacity: u64, round: usize) {
        if self.booked_at[j] <= capacity.into() {
            return;
        }
        let mut booked = std::mem::take(&mut self.booked);
        let (column, pairs) = (&self.by_destination[self.columns[j]..self.columns[j + 1]], &self.pairs);
        booked.clear();
        booked.extend(column.iter().map(|&k| (pairs[k].each, pairs[k].count, pairs[k].from, k)));
        self.cut_to_fit(&mut booked, capacity.into(), round);
        self.booked = booked;
    }

    /// As [`Estimate::one_by_one`], which needs the flows in their order, but most of them without an order.
    fn cut_to_fit(&mut self, booked: &mut [Booked], capacity: u128, round: usize) {
        let (mut left, mut count) = (capacity, booked.iter().map(|b| u128::from(b.1)).sum::<u128>());
        let mut first = 0;
        // What is below an equal share stays, and leaves the others no less each: so what is below the share of these stays as well.
        loop {
            let (share, before) = (share(left, count.max(1)), first);
            for k in before..booked.len() {
                let (each, of, ..) = booked[k];
                if each < share {
                    left -= u128::from(of) * u128::from(each);
                    count -= u128::from(of);
                    booked.swap(k, first);
                    first += 1;
                }
            }
            if first == before {
                break;
            }
        }
        let large = &mut booked[first..];
        // Of the others all get the share, and the last as many bytes more as division leaves, one each, if they asked for that.
        let whole = share(left, count.max(1));
        let ones = (left - u128::from(whole) * count) as usize;
        if !self.single {
            return self.one_by_one(large, left, count, round);
        }
        let same = large.len() - ones;
        if ones > 0 && large.select_nth_unstable(same).1.0 == whole {
            return self.one_by_one(large, left, count, round);
        }
        for (at, &mut (each, .., k)) in large.iter_mut().enumerate() {
            let share = whole + u64::from(at >= same);
            if !(self.pairs[k].cut && each == share) {
                self.cut(k, share, round);
            }
        }
    }

    /// Cuts flows to an equal share, the smallest first.
    fn one_by_one(&mut self, booked: &mut [Booked], mut left: u128, mut count: u128, round: usize) {
        booked.sort_unstable();
        for &mut (each, of, _, k) in booked {
            let share = share(left, count);
            if each >= share && !(self.pairs[k].cut && each == share) {
                self.cut(k, share, round);
            }
            left -= u128::from(of) * u128::from(each.min(share));
            count -= u128::from(of);
        }
    }
}

/// An equal share of bytes, rounded down; it fits 64 bits. Division of 64 bits is several times as fast as that of 128.
fn share(bytes: u128, among: u128) -> u64 {
    match (u64::try_from(bytes), u64::try_from(among)) {
        (Ok(bytes), Ok(among)) => bytes / among,
        _ => (bytes / among) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The pairs of a square of numbers that are not zero.
    fn pairs(rows: &[Vec<u64>]) -> Vec<Pair> {
        let cells = rows.iter().enumerate().flat_map(|(i, row)| row.iter().enumerate().map(move |(j, &n)| (i, j, n)));
        cells.filter(|c| c.2 > 0).collect()
    }

    #[test]
    fn the_papers_example() {
        // Figure 8: four hosts; the number of flows a pair, then the demand of each pair in thirds of a link.
        let flows = [[0, 1, 1, 1], [2, 0, 1, 0], [1, 0, 0, 1], [0, 2, 0, 0]].map(Vec::from);
        let thirds = [[0, 1, 1, 1], [2, 0, 1, 0], [1, 0, 0, 2], [0, 2, 0, 0]].map(|r| r.map(|x| x * 1_000_000).to_vec());
        assert_eq!(natural(pairs(&flows).into_iter(), &[3_000_000; 4], &[3_000_000; 4]), pairs(&thirds));
    }

    /// The same by the book: all cells of the matrix in every round.
    fn twin(flows: &[Vec<u64>], out: &[u64], into: &[u64]) -> Vec<Vec<u64>> {
        let n = flows.len();
        let (mut each, mut cut) = (vec![vec![0u64; n]; n], vec![vec![false; n]; n]);
        for _ in 0..4 * n + 4 {
            let before = each.clone();
            for i in 0..n {
                let used: u64 = (0..n).filter(|&j| cut[i][j]).map(|j| flows[i][j] * each[i][j]).sum();
                let count: u64 = (0..n).filter(|&j| !cut[i][j]).map(|j| flows[i][j]).sum();
                let Some(share) = out[i].saturating_sub(used).checked_div(count) else { continue };
                (0..n).filter(|&j| flows[i][j] > 0 && !cut[i][j]).for_each(|j| each[i][j] = share);
            }
            for j in 0..n {
                let mut from: Vec<(u64, u64, usize)> = (0..n).map(|i| (each[i][j], flows[i][j], i)).filter(|f| f.1 > 0).collect();
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
        #[test]
        fn with_one_flow_a_pair_it_is_the_slow_one(
            ends in 1usize..12, counts in prop::collection::vec(0u64..2, 121), out in prop::collection::vec(0u64..200, 12),
            into in prop::collection::vec(0u64..100, 12), picks in prop::collection::vec(0u8..10, 0..9),
        ) {
            let flows: Vec<Vec<u64>> = (0..ends).map(|i| (0..ends).map(|j| counts[i * 11 + j]).collect()).collect();
            let mut found = vec![vec![0; ends]; ends];
            let mut shares = Shares::default();
            for pick in picks {
                let some = || pairs(&flows).into_iter().enumerate().filter(|(k, _)| pick >> (k % 3) & 1 == 0).map(|(_, f)| f);
                let into = if pick < 8 { &into[..ends] } else { &out[..ends] };
                prop_assert_eq!(shares.natural(some(), &out[..ends], into), natural(some(), &out[..ends], into));
            }
            natural(pairs(&flows).into_iter(), &out[..ends], &into[..ends]).iter().for_each(|&(i, j, bytes)| found[i][j] = bytes);
            prop_assert_eq!(found, twin(&flows, &out[..ends], &into[..ends]));
        }

        #[test]
        fn nothing_is_overbooked_and_no_flow_could_have_more(
            racks in 1usize..7, counts in prop::collection::vec(0u64..4, 49), out in prop::collection::vec(capacity(), 7),
            into in prop::collection::vec(capacity(), 7),
        ) {
            let cell = |i: usize, j: usize| if i == j { 0 } else { counts[i * 7 + j] };
            let flows: Vec<Vec<u64>> = (0..racks).map(|i| (0..racks).map(|j| cell(i, j)).collect()).collect();
            let d = natural(pairs(&flows).into_iter(), &out[..racks], &into[..racks]);
            let mut found = vec![vec![0; racks]; racks];
            d.iter().for_each(|&(i, j, bytes)| found[i][j] = bytes);
            prop_assert_eq!(&found, &twin(&flows, &out[..racks], &into[..racks]));
            let row = |i: usize| found[i].iter().sum::<u64>();
            let column = |j: usize| found.iter().map(|r| r[j]).sum::<u64>();
            for i in 0..racks {
                prop_assert!(row(i) <= out[i] && column(i) <= into[i]);
            }
            // Rounding leaves less than one byte a flow at an end, and what one end leaves the other may pass on.
            let slack = 64 * 49;
            for (i, j, _) in pairs(&flows) {
                let (full_out, full_in) = (row(i) + slack >= out[i], column(j) + slack >= into[j]);
                prop_assert!(full_out || full_in, "{i} -> {j} could have more: {d:?}");
            }
        }

        #[test]
        fn extremes_do_not_panic(cells in prop::collection::vec(any::<u64>(), 9), capacity: u64) {
            let flows = cells.chunks(3).map(<[u64]>::to_vec).collect::<Vec<_>>();
            let d = natural(pairs(&flows).into_iter(), &[capacity; 3], &[capacity; 3]);
            prop_assert!(d.iter().all(|p| p.2 <= capacity));
        }
    }
}
