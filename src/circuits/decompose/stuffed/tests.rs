//! Matrices by hand, and laws.

use super::*;
use proptest::prelude::*;

fn lit(light: &DemandMatrix) -> Lit {
    Lit::from_cells(light.racks(), &light.entries().collect::<Vec<_>>())
}

/// The same by the book: QuickStuff in all cells that have light, then in all others; and
/// BigSlice with thresholds that halve, its searches going over all columns.
struct Twin {
    cells: Vec<Vec<u64>>,
    real: Vec<Vec<u64>>,
    column: Vec<Option<usize>>,
    threshold: u64,
}

impl Twin {
    fn of(light: &DemandMatrix, sum: u64) -> Self {
        let n = light.racks();
        let real: Vec<Vec<u64>> = (0..n).map(|i| light.row(RackId::from(i)).to_vec()).collect();
        let mut cells = real.clone();
        for empty in [false, true] {
            for (i, j) in (0..n)
                .flat_map(|i| (0..n).map(move |j| (i, j)))
                .filter(|&(i, j)| (real[i][j] == 0) == empty)
            {
                let (row, column) =
                    (cells[i].iter().sum::<u64>(), cells.iter().map(|r| r[j]).sum::<u64>());
                cells[i][j] += (sum - row).min(sum - column);
            }
        }
        // Above the largest cell of any row or column there is no perfect matching.
        let of_rows = (0..n).map(|i| (0..n).map(|j| cells[i][j]).max());
        let of_columns = (0..n).map(|j| (0..n).map(|i| cells[i][j]).max());
        let most = of_rows.chain(of_columns).flatten().min().filter(|&m| m > 0);
        Self { cells, real, column: vec![None; n], threshold: most.map_or(0, |m| 1 << m.ilog2()) }
    }

    fn row(&self, j: usize) -> Option<usize> {
        self.column.iter().position(|&c| c == Some(j))
    }

    /// Gives row `f` a column, breadth first; says whether it could.
    fn place(&mut self, f: usize) -> bool {
        let n = self.column.len();
        let (mut from, mut queue) = (vec![None; n], vec![f]);
        let mut k = 0;
        while let Some(&i) = queue.get(k) {
            k += 1;
            if let Some(mut j) =
                (0..n).find(|&j| self.cells[i][j] >= self.threshold && self.row(j).is_none())
            {
                let mut i = i;
                while let Some(before) = self.column[i].replace(j) {
                    (j, i) = (before, from[before].unwrap());
                }
                return true;
            }
            for j in (0..n).filter(|&j| self.cells[i][j] >= self.threshold) {
                if from[j].is_none() {
                    from[j] = Some(i);
                    queue.push(self.row(j).unwrap());
                }
            }
        }
        false
    }

    fn cut_power(&mut self) -> Option<(Matching, u64)> {
        let n = self.column.len();
        self.cells.iter().flatten().find(|&&c| c > 0)?;
        for i in 0..n {
            while self.column[i].is_none() && !self.place(i) {
                self.threshold /= 2;
            }
        }
        let all: Vec<_> = (0..n).map(|i| (i, self.column[i].unwrap())).collect();
        let time = all.iter().map(|&(i, j)| self.cells[i][j]).min().unwrap();
        let needed = all.iter().copied().filter(|&(i, j)| self.real[i][j] > 0);
        let matching = Matching::from_pairs(n, needed);
        for (i, j) in all {
            self.cells[i][j] -= time;
            self.real[i][j] = self.real[i][j].saturating_sub(time);
            if self.cells[i][j] < self.threshold {
                self.column[i] = None;
            }
        }
        Some((matching, time))
    }

    fn busiest_rest(&self) -> u64 {
        let n = self.column.len();
        let columns = (0..n).map(|j| self.real.iter().map(|r| r[j]).sum());
        self.real.iter().map(|r| r.iter().sum()).chain(columns).max().unwrap_or(0)
    }
}

/// The largest smallest cell of a perfect matching, by trying all.
fn brute(s: &Stuffed, i: usize, taken: u32) -> u64 {
    if i == s.n {
        return u64::MAX;
    }
    let free = (0..s.n).filter(|&j| taken & (1 << j) == 0);
    free.map(|j| s.cells[i * s.n + j].min(brute(s, i + 1, taken | 1 << j))).max().unwrap_or(0)
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    #[test]
    fn every_cut_is_the_bottleneck(r in 1usize..6, v in prop::collection::vec(prop_oneof![Just(0u64), 0..40u64], 25), more in 0u64..9) {
        let light = DemandMatrix::zero(r).map_pairs(|i, j, _| v[i.index() * 5 + j.index()]);
        for power in [false, true] {
            let mut s = Stuffed::of(&lit(&light), Some(super::super::busiest(&light) + more));
            for k in 0..r {
                prop_assert_eq!(s.cells[k * r..(k + 1) * r].iter().sum::<u64>(), s.sum);
                prop_assert_eq!((0..r).map(|i| s.cells[i * r + k]).sum::<u64>(), s.sum);
            }
            loop {
                let best = brute(&s, 0, 0);
                let Some((_, time)) = (if power { s.cut_power() } else { s.cut() }) else { break };
                // By powers of two: at least the largest one for which there is a matching.
                let least = if power { 1 << best.ilog2() } else { best };
                prop_assert!(least <= time && time <= best, "{time} is not in {least}..={best}");
            }
            prop_assert!(s.cells.iter().all(|&c| c == 0) && s.busiest_rest() == 0);
        }
    }

    #[test]
    fn many_cells_are_stuffed_as_few_are(
        r in 1usize..20, thin in 0u32..7, v in prop::collection::vec((0u32..40, any::<u64>()), 361),
        rate in prop::sample::select(vec![1, 3]),
    ) {
        let cell = |k: usize| if v[k].0 % 6 < thin { 0 } else { v[k].1 >> (20 + v[k].0) };
        let demand = DemandMatrix::zero(r).map_pairs(|i, j, _| cell(i.index() * 19 + j.index()));
        let rate = BitRate(rate * 1_000_000_000);
        let (many, few) = (Stuffed::of_demand(&demand, rate), Stuffed::of(&Lit::of(&demand, rate), None));
        prop_assert_eq!((&many.cells, &many.rest, many.sum, many.threshold), (&few.cells, &few.rest, few.sum, few.threshold));
        prop_assert_eq!((&many.extra.starts, &many.extra.list), (&few.extra.starts, &few.extra.list));
    }

    /// On all that a window may ask for: the cuts one after the other, with their circuits.
    #[test]
    fn stuffing_and_slices_are_those_by_the_book(
        r in 1usize..9, thin in 0u32..6, v in prop::collection::vec((0u32..40, any::<u64>()), 81), more in 0u64..9,
    ) {
        let cell = |k: usize| if v[k].0 % 6 < thin { 0 } else { v[k].1 >> (24 + v[k].0) };
        let light = DemandMatrix::zero(r).map_pairs(|i, j, _| cell(i.index() * 9 + j.index()));
        let sum = super::super::busiest(&light) + more;
        let (mut s, mut twin) = (Stuffed::of(&lit(&light), Some(sum)), Twin::of(&light, sum));
        prop_assert_eq!(&s.cells, &twin.cells.concat());
        loop {
            prop_assert_eq!(s.busiest_rest(), twin.busiest_rest());
            let cut = s.cut_power();
            prop_assert_eq!(&cut, &twin.cut_power());
            if cut.is_none() {
                break;
            }
            prop_assert_eq!((&s.cells, s.threshold), (&twin.cells.concat(), twin.threshold));
        }
    }
}
