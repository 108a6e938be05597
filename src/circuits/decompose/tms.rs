//! Traffic matrix scheduling: each pair's share of a period, in proportion to its demand.

use super::bvn::slices;
use super::stuffed::Stuffed;
use super::{busiest, sequences};
use crate::circuits::{Ask, Decision, Scheduler, Slot, steps};
use crate::demand::DemandMatrix;
use crate::ids::RackId;
use crate::units::Span;

/// A whole port, in the fixed-point numbers of the scaling.
const WHOLE: u64 = 1 << 40;
/// Rounds of the scaling: enough for three digits on all but degenerate matrices.
const ROUNDS: usize = 64;

/// Configurations of one period: Sinkhorn's scaling makes the demand doubly stochastic, Birkhoff-von Neumann cuts it into
/// configurations, and the thickest of them share the period in proportion.
///
/// As many configurations are kept as carry most: each costs its dark time, and leaves a smaller share unserved. Demand without
/// a perfect matching on its cells cannot be made doubly stochastic; what is missing is stuffed and sent nowhere.
///
/// # Arguments
/// - `demand`: bytes by (input, output), `R x R`; only proportions matter.
/// - `delta`: dark time before each configuration; `period`: the sequence fits it, dark time included.
///
/// # Complexity
/// O(R^2) a round of the scaling, then that of [`super::bvn()`].
///
/// # Example
/// ```
/// use heliostat::{circuits::decompose::tms, demand::DemandMatrix, units::Span};
/// let d = DemandMatrix::from_rows(&[&[0, 5, 5], &[5, 0, 5], &[5, 5, 0]]);
/// let holds: Vec<_> = tms(&d, Span(10), Span(1_020)).into_iter().map(|s| s.hold.unwrap()).collect();
/// assert_eq!(holds, [Span(500), Span(500)]);
/// ```
///
/// # Source
/// Porter et al., *Integrating microsecond circuit switching into the data center* (Mordia), SIGCOMM 2013, section 4; R. Sinkhorn
/// and P. Knopp, Pacific J. Math. 21 (1967).
pub fn tms(demand: &DemandMatrix, delta: Span, period: Span) -> Vec<Slot> {
    let shares = scale(demand);
    if busiest(&shares) == 0 {
        return Vec::new();
    }
    let room = |k: usize| u128::from(period.saturating_sub(delta * k as u64).0);
    // Shares shrink and dark time adds up, so the first configuration that does not pay is followed by none that does.
    let (mut slots, mut sum, mut carried) = (Vec::new(), 0u128, 0u128);
    for s in slices(Stuffed::of(&shares, WHOLE), Stuffed::cut) {
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

/// Sinkhorn and Knopp in integers: rows and columns are scaled to [`WHOLE`] in turn, and in the end none is above it.
fn scale(demand: &DemandMatrix) -> DemandMatrix {
    let n = demand.racks();
    let largest = u128::from(demand.cells().iter().copied().max().unwrap_or(0).max(1));
    // A cell with demand never quite disappears.
    let fixed = |x: u128| u64::try_from(x).unwrap_or(WHOLE).clamp(1, WHOLE);
    let mut m = demand.map(|b| if b == 0 { 0 } else { fixed(u128::from(b) * u128::from(WHOLE) / largest) });
    let sums = |m: &DemandMatrix| {
        steps::count(n);
        let (mut rows, mut columns) = (vec![0u128; n], vec![0u128; n]);
        for (i, j, x) in m.entries() {
            rows[i.index()] += u128::from(x);
            columns[j.index()] += u128::from(x);
        }
        (rows, columns)
    };
    let whole = u128::from(WHOLE);
    for _ in 0..ROUNDS {
        let rows = sums(&m).0;
        m = m.map_pairs(|i, _, x| if x == 0 { 0 } else { fixed(u128::from(x) * whole / rows[i.index()]) });
        let columns = sums(&m).1;
        m = m.map_pairs(|_, j, x| if x == 0 { 0 } else { fixed(u128::from(x) * whole / columns[j.index()]) });
    }
    let (rows, columns) = sums(&m);
    let over = |i: RackId, j: RackId| rows[i.index()].max(columns[j.index()]).max(whole);
    m.map_pairs(|i, j, x| (u128::from(x) * whole / over(i, j)) as u64)
}

/// [`tms()`] with the interval as its period.
pub struct Tms;

impl Scheduler for Tms {
    fn decide(&mut self, ask: &Ask) -> Decision {
        sequences(ask, |demand, plane| tms(demand, plane.delta, ask.interval))
    }
}
