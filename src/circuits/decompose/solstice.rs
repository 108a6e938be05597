//! Solstice: few long configurations, and the rest over the electrical network.

use super::sequences;
use super::stuffed::Stuffed;
use crate::demand::DemandMatrix;
use crate::topology::Plane;
use crate::units::{BitRate, Span};
use crate::{Ask, Decision, Scheduler, Slot};

/// Configurations that leave of `demand` no more than the electrical network carries meanwhile.
///
/// The matrix is stuffed to equal sums (QuickStuff), then cut along perfect matchings whose cells
/// are all at least a threshold (BigSlice). The threshold is a power of two that halves whenever
/// there is no such matching. Each lasts as long as all its cells do. It ends when every rack's
/// rest, both ways, fits into the electrical network in the time of the configurations so far, dark
/// time included.
///
/// # Arguments
/// - `demand`: bytes by (input, output), `R x R`; `rate`: of a circuit; `delta`: dark time before
///   each configuration.
/// - `eps`: a rack's rate on the electrical network; zero if the circuits must serve everything.
/// - `window`: no more configurations once they fill it, dark time included; [`Span::MAX`] for no
///   limit.
///
/// # Complexity
/// O(R^2) for every circuit that changes from one configuration to the next.
///
/// # Example
/// ```
/// use heliostat_circuits::{decompose::solstice, demand::DemandMatrix, units::{BitRate, Span}};
/// let d = DemandMatrix::from_rows(&[&[0, 90, 1], &[90, 0, 0], &[1, 0, 0]]);
/// // A byte a nanosecond by circuit, a tenth of that electrically: the two mice need no circuit.
/// let slots = solstice(&d, BitRate(8_000_000_000), Span(10), BitRate(800_000_000), Span::MAX);
/// assert_eq!(slots.len(), 1);
/// assert_eq!(slots[0].hold, Some(Span(90)));
/// ```
///
/// # Source
/// Liu et al., *Scheduling techniques for hybrid circuit/packet networks*, CoNEXT 2015, algorithms
/// 1 and 2.
pub fn solstice(
    demand: &DemandMatrix,
    rate: BitRate,
    delta: Span,
    eps: BitRate,
    window: Span,
) -> Vec<Slot> {
    let mut s = Stuffed::of_demand(demand, rate);
    let (mut slots, mut elapsed) = (Vec::new(), Span::ZERO);
    while elapsed < window && !fits(s.busiest_rest(), rate, eps, elapsed) {
        let Some((matching, time)) = s.cut_power() else { break };
        if !matching.is_empty() {
            slots.push(Slot { matching, hold: Some(Span(time)) });
            elapsed += delta + Span(time);
        }
    }
    slots
}

/// Whether the busiest port's rest (light at `rate`) passes the electrical network within
/// `elapsed`.
fn fits(rest: u64, rate: BitRate, eps: BitRate, elapsed: Span) -> bool {
    u128::from(rest) * u128::from(rate.0) <= u128::from(eps.0) * u128::from(elapsed.0)
}

/// [`solstice()`] every interval, as far as it goes; what the electrical network carries meanwhile
/// gets no circuit.
pub struct Solstice;

impl Scheduler for Solstice {
    fn decide(&mut self, ask: &Ask) -> Decision {
        sequences(ask, |demand, plane| {
            solstice(demand, plane.rate, plane.delta, ask.eps, ask.interval)
        })
    }
    fn plans_ahead(&self, plane: &Plane) -> bool {
        !plane.duplex
    }
}
