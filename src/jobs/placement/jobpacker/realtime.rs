//! JobPacker's real-time rules (section 4.4): which task gets a container that has become free in a
//! rack.

use crate::units::Bytes;

/// An ad-hoc job with more input than this is taken as shuffle-heavy (figure 7).
pub const HEAVY_INPUT: Bytes = Bytes(1_000_000_000);

/// Whether an ad-hoc job is taken as shuffle-heavy.
pub fn ad_hoc_heavy(input: Bytes) -> bool {
    input > HEAVY_INPUT
}

/// Chooses, for one container of a rack whose own sequence has nothing to run, among ad-hoc jobs: a
/// place in `ad_hoc`.
///
/// `heavy_running`: tasks of a shuffle-heavy job run in this rack. `ad_hoc`: the ad-hoc jobs with a
/// task to run, highest priority first, each with whether it is taken as shuffle-heavy. While a
/// heavy job runs here, a light one is preferred, so that the rack sends large shuffles to few
/// others; else a heavy one. O(ad-hoc jobs).
pub fn choose(heavy_running: bool, ad_hoc: &[bool]) -> Option<usize> {
    let wanted = ad_hoc.iter().position(|&heavy| heavy != heavy_running);
    wanted.or(if ad_hoc.is_empty() { None } else { Some(0) })
}
