//! Traffic matrix scheduling: each pair's share of a period, in proportion to its demand.

use super::bvn::slices;
use super::stuffed::Stuffed;
use super::{Lit, sequences};
use crate::demand::DemandMatrix;
use crate::ids::RackId;
use crate::units::Span;
use crate::{Ask, Decision, Scheduler, Slot, steps};

/// A whole port, in the fixed-point numbers of the scaling.
const WHOLE: u64 = 1 << 40;
/// Rounds of the scaling: enough for three digits on all but degenerate matrices.
const ROUNDS: usize = 64;

/// Configurations of one period: Sinkhorn's scaling makes the demand doubly stochastic,
/// Birkhoff-von Neumann cuts it into configurations, and the thickest of them share the period in
/// proportion.
///
/// As many configurations are kept as carry most: each costs its dark time, and leaves a smaller
/// share unserved. Demand without a perfect matching on its cells cannot be made doubly stochastic;
/// what is missing is stuffed and sent nowhere.
///
/// # Arguments
/// - `demand`: bytes by (input, output), `R x R`; only proportions matter.
/// - `delta`: dark time before each configuration; `period`: the sequence fits it, dark time
///   included.
///
/// # Complexity
/// O(R + E) a round of the scaling for E cells with demand, then that of [`super::bvn()`].
///
/// # Example
/// ```
/// use heliostat_circuits::{decompose::tms, demand::DemandMatrix, units::Span};
/// let d = DemandMatrix::from_rows(&[&[0, 5, 5], &[5, 0, 5], &[5, 5, 0]]);
/// let holds: Vec<_> = tms(&d, Span(10), Span(1_020)).into_iter().map(|s| s.hold.unwrap()).collect();
/// assert_eq!(holds, [Span(500), Span(500)]);
/// ```
///
/// # Source
/// Porter et al., *Integrating microsecond circuit switching into the data center* (Mordia),
/// SIGCOMM 2013, section 4; R. Sinkhorn and P. Knopp, Pacific J. Math. 21 (1967).
pub fn tms(demand: &DemandMatrix, delta: Span, period: Span) -> Vec<Slot> {
    let shares = scale(demand);
    if shares.is_empty() {
        return Vec::new();
    }
    let room = |k: usize| u128::from(period.saturating_sub(delta * k as u64).0);
    // Shares shrink and dark time adds up, so the first configuration that does not pay is followed
    // by none that does.
    let (mut slots, mut sum, mut carried) = (Vec::new(), 0u128, 0u128);
    for s in
        slices(Stuffed::of(&Lit::from_cells(demand.racks(), &shares), Some(WHOLE)), Stuffed::cut)
    {
        let more = sum + u128::from(s.hold.unwrap_or_default().0);
        // At most 2^40 * 2^64: no overflow.
        if more * room(slots.len() + 1) <= carried {
            break;
        }
        slots.push(s);
        sum = more;
        carried = sum * room(slots.len());
    }
    let count = slots.len();
    for s in &mut slots {
        s.hold = s.hold.map(|h| Span((u128::from(h.0) * room(count) / sum) as u64));
    }
    slots.retain(|s| s.hold > Some(Span::ZERO));
    slots
}

/// A cell: row, column and share.
type CellShare = (RackId, RackId, u64);

/// Sinkhorn and Knopp in integers: rows and columns are scaled to [`WHOLE`] in turn, and in the end
/// none is above it.
fn scale(demand: &DemandMatrix) -> Vec<CellShare> {
    let n = demand.racks();
    let mut cells: Vec<CellShare> = demand.entries().collect();
    let largest = u128::from(cells.iter().map(|c| c.2).max().unwrap_or(1));
    // A cell with demand never quite disappears.
    cells
        .iter_mut()
        .for_each(|c| c.2 = ((u128::from(c.2) * u128::from(WHOLE) / largest) as u64).max(1));
    let (row, column) = (|c: &CellShare| c.0.index(), |c: &CellShare| c.1.index());
    for _ in 0..ROUNDS {
        // Where a round changes nothing, all later ones do not either.
        let changed = [to_whole(&mut cells, n, row), to_whole(&mut cells, n, column)];
        if changed == [false, false] {
            break;
        }
    }
    let (rows, columns) = (sums(&cells, n, row), sums(&cells, n, column));
    let over = |c: &CellShare| rows[row(c)].max(columns[column(c)]).max(WHOLE);
    let all = cells.iter().map(|c| (c.0, c.1, portion(c.2, over(c), inverse(over(c)))));
    all.filter(|c| c.2 > 0).collect()
}

/// The sums of rows or columns, whichever `of` gives the number of: at most 2^40 for each of R
/// cells.
fn sums(cells: &[CellShare], n: usize, of: impl Fn(&CellShare) -> usize) -> Vec<u64> {
    steps::count(n);
    let mut sums = vec![0; n];
    cells.iter().for_each(|c| sums[of(c)] += c.2);
    sums
}

/// Scales rows or columns to [`WHOLE`]; says whether that changed a cell.
fn to_whole(cells: &mut [CellShare], n: usize, of: impl Fn(&CellShare) -> usize) -> bool {
    let sums: Vec<(u64, f64)> =
        sums(cells, n, &of).into_iter().map(|sum| (sum, inverse(sum))).collect();
    let mut changed = false;
    for c in cells {
        let (sum, inverse) = sums[of(c)];
        let share = portion(c.2, sum, inverse).max(1);
        changed |= share != c.2;
        c.2 = share;
    }
    changed
}

/// What [`portion`] multiplies with.
fn inverse(sum: u64) -> f64 {
    WHOLE as f64 / sum as f64
}

/// `x * WHOLE / sum`, rounded down, of `x <= sum < 2^62`. A division of 128 bits takes several
/// times as long.
fn portion(x: u64, sum: u64, inverse: f64) -> u64 {
    // Less than 1 off: it is at most 2^40, and each of four roundings leaves 53 bits. So what is
    // left has room in 64 bits, signed, and two comparisons mend it.
    let near = (x.cast_signed() as f64 * inverse) as i64;
    let left =
        x.wrapping_mul(WHOLE).wrapping_sub(near.cast_unsigned().wrapping_mul(sum)).cast_signed();
    (near + i64::from(left >= sum.cast_signed()) - i64::from(left < 0)).cast_unsigned()
}

/// [`tms()`] with the interval as its period.
pub struct Tms;

impl Scheduler for Tms {
    fn decide(&mut self, ask: &Ask) -> Decision {
        sequences(ask, |demand, plane| tms(demand, plane.delta, ask.interval))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same by the book: the whole matrix in all rounds, divided in 128 bits.
    fn twin(demand: &DemandMatrix) -> DemandMatrix {
        let n = demand.racks();
        let whole = u128::from(WHOLE);
        let largest = u128::from(demand.cells().iter().copied().max().unwrap_or(0).max(1));
        let fixed = |x: u128| u64::try_from(x).unwrap_or(WHOLE).clamp(1, WHOLE);
        let mut m = demand.map(|b| if b == 0 { 0 } else { fixed(u128::from(b) * whole / largest) });
        let sums = |m: &DemandMatrix| {
            let (mut rows, mut columns) = (vec![0u128; n], vec![0u128; n]);
            for (i, j, x) in m.entries() {
                rows[i.index()] += u128::from(x);
                columns[j.index()] += u128::from(x);
            }
            (rows, columns)
        };
        for _ in 0..ROUNDS {
            let rows = sums(&m).0;
            m = m.map_pairs(|i, _, x| {
                if x == 0 { 0 } else { fixed(u128::from(x) * whole / rows[i.index()]) }
            });
            let columns = sums(&m).1;
            m = m.map_pairs(|_, j, x| {
                if x == 0 { 0 } else { fixed(u128::from(x) * whole / columns[j.index()]) }
            });
        }
        let (rows, columns) = sums(&m);
        m.map_pairs(|i, j, x| {
            (u128::from(x) * whole / rows[i.index()].max(columns[j.index()]).max(whole)) as u64
        })
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn scaling_is_that_by_the_book(
            r in 1usize..7, v in prop::collection::vec((0u32..6, any::<u64>()), 36), thin in 1u32..7, top in 0u32..60,
        ) {
            let cell = |k: usize| if v[k].0 < thin { v[k].1 >> top } else { 0 };
            let d = DemandMatrix::zero(r).map_pairs(|i, j, _| cell(i.index() * 6 + j.index()));
            prop_assert_eq!(scale(&d), twin(&d).entries().collect::<Vec<_>>());
        }

        #[test]
        fn a_portion_is_exact(a: u64, b: u64, top in 2u32..63) {
            let (x, sum) = ((a >> top).min(b >> top), (a >> top).max(b >> top).max(1));
            prop_assert_eq!(u128::from(portion(x, sum, inverse(sum))), u128::from(x) * u128::from(WHOLE) / u128::from(sum));
            prop_assert_eq!(portion(sum, sum, inverse(sum)), WHOLE);
        }
    }
}
