//! ExploreSchedule: which racks have room for a job's reduces soonest (Co-scheduler section IV-F,
//! Algorithm 1).

use crate::ids::RackId;
use crate::units::Span;

/// How long a running task will still take (eq. 12): t_elapsed (1 - P) / P, where P is `done` of
/// `all`. Nothing while nothing is done.
pub fn remaining(elapsed: Span, done: u64, all: u64) -> Option<Span> {
    let left = u128::from(elapsed.0) * u128::from(all.saturating_sub(done));
    (done > 0).then(|| Span(u64::try_from(left / u128::from(done)).unwrap_or(u64::MAX)))
}

/// Where the reduces go, and when all of them have their slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReduceRacks {
    /// r_i with its d_i, in the order of D.
    pub racks: Vec<(RackId, u32)>,
    /// t_max, from now.
    pub start: Span,
}

/// When `tasks` slots of a rack are free, from the sorted times from now at which each of its slots
/// is. Nothing if it has fewer.
fn ready(free: &[Span], tasks: u32) -> Option<Span> {
    free.get((tasks as usize).checked_sub(1)?).copied()
}

/// ExploreSchedule: for each d_i, largest first, the rack that has d_i slots free soonest, each
/// rack once. No other choice of racks has a smaller t_max. Ties break by rack.
///
/// `free[r]` are the times from now at which the slots of rack r become free, sorted; empty for a
/// rack that must not be used. Where no rack at all has d_i slots, the tasks run there in waves,
/// and a rack is ready when all its slots are. Nothing if there are fewer racks than entries in
/// `tasks`.
///
/// With `wavelengths` W above one, the paper relaxes the choice to the W racks that are free
/// soonest. Of these we take the rack for which `local` is greatest: the job's own map output,
/// which then stays where it is. O(R log R) for each different d_i, of which a guideline has at
/// most three.
///
/// # Panics
/// If `tasks` is not in descending order.
pub fn explore(
    tasks: &[u32],
    free: &[impl AsRef<[Span]>],
    wavelengths: u32,
    local: impl Fn(RackId) -> u64,
) -> Option<ReduceRacks> {
    assert!(tasks.is_sorted_by(|a, b| a >= b), "D is sorted in descending order");
    let mut selected = vec![false; free.len()];
    let mut chosen = ReduceRacks { racks: vec![], start: Span::ZERO };
    for alike in tasks.chunk_by(|a, b| a == b) {
        let mut by_time = ranked(alike[0], free, &selected);
        for &d in alike {
            let top = (wavelengths.max(1) as usize).min(by_time.len());
            // The last of the greatest would win; reversed, it is the first.
            let at = (0..top).rev().max_by_key(|&k| local(RackId::from(by_time[k].1)))?;
            let (t, r) = by_time.remove(at)?;
            selected[r] = true;
            chosen.racks.push((RackId::from(r), d));
            chosen.start = chosen.start.max(t);
        }
    }
    Some(chosen)
}

/// (T_R, rack) of all racks that are left, soonest first.
fn ranked(
    d: u32,
    free: &[impl AsRef<[Span]>],
    selected: &[bool],
) -> std::collections::VecDeque<(Span, usize)> {
    let waves = free.iter().all(|f| f.as_ref().len() < d as usize);
    let time = |f: &[Span]| if waves { f.last().copied() } else { ready(f, d) };
    let mut all: Vec<(Span, usize)> = free
        .iter()
        .enumerate()
        .filter(|(r, _)| !selected[*r])
        .filter_map(|(r, f)| Some((time(f.as_ref())?, r)))
        .collect();
    all.sort_unstable();
    all.into()
}
