//! Birkhoff-von Neumann: the preemptive optimum where reconfiguration costs nothing.

use super::sequences;
use super::stuffed::Stuffed;
use crate::demand::DemandMatrix;
use crate::topology::Plane;
use crate::units::{BitRate, Span};
use crate::{Ask, Decision, Matching, Scheduler, Slot};

/// Configurations that serve all of `demand`, with light in sum equal to the busiest port's: no
/// schedule is faster when delta is 0.
///
/// The matrix is stuffed to equal sums and cut along any perfect matching, for as long as all its
/// cells last. Circuits that serve no demand any more are left out. [`bvn_bottleneck`] needs far
/// fewer configurations.
///
/// # Arguments
/// - `demand`: bytes by (input, output), `R x R`; `rate`: of a circuit.
/// - `window`: no more configurations once their light fills it; [`Span::MAX`] for the whole
///   demand.
///
/// # Complexity
/// At most R^2 - 2R + 2 configurations; O(R^2) for every circuit that changes between them.
///
/// # Example
/// ```
/// use heliostat_circuits::{decompose::bvn, demand::DemandMatrix, units::{BitRate, Span}};
/// let d = DemandMatrix::from_rows(&[&[0, 3, 2], &[1, 0, 0], &[0, 2, 0]]);
/// let slots = bvn(&d, BitRate(8_000_000_000), Span::MAX); // a byte a nanosecond
/// assert_eq!(slots.iter().map(|s| s.hold.unwrap().0).sum::<u64>(), 5);
/// ```
///
/// # Source
/// G. Birkhoff, *Tres observaciones sobre el algebra lineal* (1946); C.-S. Chang et al., *On
/// service guarantees for input buffered crossbar switches* (IWQoS 1999).
pub fn bvn(demand: &DemandMatrix, rate: BitRate, window: Span) -> Vec<Slot> {
    within(window, slices(Stuffed::of_demand(demand, rate), Stuffed::cut_any))
}

/// [`bvn()`] with the thickest configurations first: each cut is along the perfect matching whose
/// smallest cell is largest.
///
/// The arguments, the result's sum and the limit are those of [`bvn()`]; most of the demand is
/// served by far fewer configurations.
///
/// # Source
/// Liu et al., *Scheduling techniques for hybrid circuit/packet networks* (CoNEXT 2015), section 3.
pub fn bvn_bottleneck(demand: &DemandMatrix, rate: BitRate, window: Span) -> Vec<Slot> {
    within(window, slices(Stuffed::of_demand(demand, rate), Stuffed::cut))
}

/// Cuts until nothing is left; configurations that serve no demand are left out.
pub(super) fn slices(
    mut s: Stuffed,
    mut cut: impl FnMut(&mut Stuffed) -> Option<(Matching, u64)>,
) -> impl Iterator<Item = Slot> {
    let cuts = std::iter::from_fn(move || cut(&mut s));
    cuts.filter(|(m, _)| !m.is_empty())
        .map(|(matching, time)| Slot { matching, hold: Some(Span(time)) })
}

/// No more configurations than begin while those before have not filled `window` with light.
pub(super) fn within(window: Span, slots: impl Iterator<Item = Slot>) -> Vec<Slot> {
    let mut filled = 0u64;
    slots
        .take_while(|s| {
            let begins = filled < window.0;
            filled = filled.saturating_add(s.hold.unwrap_or_default().0);
            begins
        })
        .collect()
}

/// [`bvn()`] every interval, as far as it goes.
pub struct Bvn;

impl Scheduler for Bvn {
    fn decide(&mut self, ask: &Ask) -> Decision {
        sequences(ask, |demand, plane| bvn(demand, plane.rate, ask.interval))
    }
    fn plans_ahead(&self, plane: &Plane) -> bool {
        !plane.duplex
    }
}

/// [`bvn_bottleneck()`] every interval, as far as it goes.
pub struct BvnBottleneck;

impl Scheduler for BvnBottleneck {
    fn decide(&mut self, ask: &Ask) -> Decision {
        sequences(ask, |demand, plane| bvn_bottleneck(demand, plane.rate, ask.interval))
    }
    fn plans_ahead(&self, plane: &Plane) -> bool {
        !plane.duplex
    }
}
