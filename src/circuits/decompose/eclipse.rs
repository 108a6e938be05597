//! Eclipse: most bytes within a window when every configuration costs its dark time.

use super::{light, sequences};
use crate::demand::DemandMatrix;
use crate::matching::bipartite;
use crate::topology::Plane;
use crate::units::{BitRate, Span};
use crate::{Ask, Decision, Matching, Scheduler, Slot, steps};

/// Inverse of the least gain over the best duration so far: durations that cannot gain that much
/// are not looked at.
const SLACK: u128 = 64;
/// The most durations that are looked at for one configuration: far more than any matrix of the
/// tests needs (fewer than 40).
const LOOKS: usize = 256;

/// Configurations within `window` that carry most of `demand`, chosen greedily: each is the
/// matching and duration that carry most for the time they take, dark time included.
///
/// The best duration is one of the cells' rests. They are bisected, and a part of them is passed
/// over where its ends prove that it holds none that is a 64th better than the best so far. The
/// paper bisects them too, but follows one side only, which may miss the best where the ratio has
/// several peaks. Without dark time no ratio grows with the duration, and the best would be the
/// shortest rest, down to a nanosecond in the end. So the longest duration whose ratio is within a
/// 64th of the best is taken, which is found by halving. When the best does not fit any more, what
/// is left of the window is filled in the same way with what fits, or with one matching, whichever
/// carries more. Where one matching for the whole window carries more than all of this, that one is
/// taken.
///
/// # Arguments
/// - `demand`: bytes by (input, output), `R x R`; `rate`: of a circuit; `delta`: dark time before
///   each configuration.
/// - `window`: the sequence ends within it, dark time included.
///
/// # Returns
/// Configurations that carry at least `1 - 1/e^((1 - delta/window) 64/65)` of the most bytes that
/// any can; `1 - 1/e^(63/64)` without dark time. Both where no more than 256 durations need to be
/// looked at for a configuration.
///
/// # Complexity
/// A maximum weight matching, O(R^3) at worst, for each duration looked at: mostly some ten a
/// configuration, never more than 256. Each configuration but the last two is held until a cell is
/// empty, so there are at most E + 2 for E cells.
///
/// # Example
/// ```
/// use heliostat_circuits::{decompose::eclipse, demand::DemandMatrix, units::{BitRate, Span}};
/// let d = DemandMatrix::from_rows(&[&[0, 80, 9], &[80, 0, 0], &[0, 0, 0]]);
/// // A byte a nanosecond: after 10 + 80 ns there is no time for the last 9 bytes.
/// assert_eq!(eclipse(&d, BitRate(8_000_000_000), Span(10), Span(100)).len(), 1);
/// assert_eq!(eclipse(&d, BitRate(8_000_000_000), Span(10), Span(109)).len(), 2);
/// ```
///
/// # Source
/// Bojja Venkatakrishnan, Alizadeh and Viswanath, *Costly circuits, submodular schedules and
/// approximate Caratheodory theorems*, SIGMETRICS 2016, algorithm 1: `1 - 1/e^(1 - delta/window)`
/// where the best duration is always found.
pub fn eclipse(demand: &DemandMatrix, rate: BitRate, delta: Span, window: Span) -> Vec<Slot> {
    let need = light(demand, rate);
    let mut plan = EclipsePlan { rest: need.clone(), slots: Vec::new(), carried: 0, room: window };
    while let Some(c) = plan.best(delta, window).filter(|c| delta + Span(c.time) <= plan.room) {
        plan.take(c, delta);
    }
    let mut fill =
        EclipsePlan { rest: plan.rest.clone(), slots: Vec::new(), carried: 0, room: plan.room };
    while let Some(c) = fill.best(delta, fill.room) {
        fill.take(c, delta);
    }
    let last = longest(&plan.rest, plan.room.saturating_sub(delta).0);
    if last.carried > fill.carried {
        plan.take(last, delta);
    } else {
        plan.carried += fill.carried;
        plan.slots.extend(fill.slots);
    }
    let one = longest(&need, window.saturating_sub(delta).0);
    if one.carried > plan.carried { vec![one.into()] } else { plan.slots }
}

/// A matching, for how long it is held, and the light that it carries meanwhile: less than 2^63, as
/// a port's cells together.
struct HeldMatching {
    carried: u128,
    time: u64,
    matching: Matching,
}

impl From<HeldMatching> for Slot {
    fn from(c: HeldMatching) -> Self {
        Self { matching: c.matching, hold: Some(Span(c.time)) }
    }
}

impl HeldMatching {
    fn cost(&self, delta: Span) -> u128 {
        u128::from(self.time.saturating_add(delta.0))
    }

    /// Whether it carries more than `other` for its time; the shorter of equal ones is the better.
    fn beats(&self, other: &Self, delta: Span) -> bool {
        let (a, b) = (self.carried * other.cost(delta), other.carried * self.cost(delta));
        a > b || (a == b && self.time < other.time)
    }
}

/// The best matching for a given duration.
fn longest(rest: &DemandMatrix, time: u64) -> HeldMatching {
    steps::count(rest.racks());
    let served = rest.map(|x| x.min(time));
    let matching = bipartite(&served, None);
    HeldMatching { carried: matching.weight(&served), time, matching }
}

/// What has been planned so far.
struct EclipsePlan {
    rest: DemandMatrix,
    slots: Vec<Slot>,
    carried: u128,
    room: Span,
}

impl EclipsePlan {
    /// The matching and duration, with the dark time before it no longer than `room`, that carry
    /// most for their time; none if that is nothing.
    fn best(&self, delta: Span, room: Span) -> Option<HeldMatching> {
        let most = room.saturating_sub(delta).0;
        let mut times: Vec<u64> =
            self.rest.entries().map(|e| e.2.min(most)).filter(|&t| t > 0).collect();
        times.sort_unstable();
        times.dedup();
        let best = if delta == Span::ZERO {
            self.longest_of_the_best(&times)
        } else {
            self.most_for_its_time(&times, delta)
        };
        best.map(|c| self.until_one_is_through(c, most))
    }

    /// With dark time, of ascending `times` the one that carries most for its time, to a 64th, with
    /// its matching.
    fn most_for_its_time(&self, times: &[u64], delta: Span) -> Option<HeldMatching> {
        let (first, last) =
            (longest(&self.rest, *times.first()?), longest(&self.rest, *times.last()?));
        let mut parts = vec![((0, first.carried), (times.len() - 1, last.carried))];
        let mut best = if last.beats(&first, delta) { last } else { first };
        let mut looks = 2;
        while let Some((low, high)) = parts.pop().filter(|_| looks < LOOKS) {
            if high.0 - low.0 < 2
                || !promises((times[low.0], low.1), (times[low.0 + 1], high.1), &best, delta)
            {
                continue;
            }
            let middle = usize::midpoint(low.0, high.0);
            let c = longest(&self.rest, times[middle]);
            looks += 1;
            parts.extend([(low, (middle, c.carried)), ((middle, c.carried), high)]);
            if c.beats(&best, delta) {
                best = c;
            }
        }
        Some(best)
    }

    /// Without dark time, of ascending `times` the longest that carries within a 64th of the most
    /// for its time, with its matching. The shortest carries most: what a matching carries grows no
    /// faster than its duration.
    fn longest_of_the_best(&self, times: &[u64]) -> Option<HeldMatching> {
        let mut best = longest(&self.rest, *times.first()?);
        let (most, shortest) = (best.carried, u128::from(best.time));
        let is_good = |c: &HeldMatching| {
            let enough = most * u128::from(c.time);
            c.carried * shortest >= enough - enough / SLACK
        };
        let (mut good, mut bad) = (0, times.len());
        while bad - good > 1 {
            let middle = usize::midpoint(good, bad);
            let c = longest(&self.rest, times[middle]);
            if is_good(&c) {
                (good, best) = (middle, c);
            } else {
                bad = middle;
            }
        }
        Some(best)
    }

    /// The choice, held at least until one of its circuits has carried its demand, or as long as
    /// may be: until then all have light, so it carries no less for its time. Without this, rests
    /// that are cut from each other could become ever shorter, down to a nanosecond.
    fn until_one_is_through(&self, c: HeldMatching, most: u64) -> HeldMatching {
        let rests = c.matching.pairs().map(|(i, j)| self.rest.get(i, j));
        let time = rests.min().unwrap_or(0).min(most);
        if time <= c.time {
            return c;
        }
        HeldMatching { carried: c.matching.len() as u128 * u128::from(time), time, ..c }
    }

    fn take(&mut self, c: HeldMatching, delta: Span) {
        for (i, j) in c.matching.pairs() {
            self.rest.set(i, j, self.rest.get(i, j).saturating_sub(c.time));
        }
        self.room = self.room.saturating_sub(delta + Span(c.time));
        self.carried += c.carried;
        if !c.matching.is_empty() {
            self.slots.push(c.into());
        }
    }
}

/// Whether a duration between two others may carry more than a 64th more for its time than the
/// best. `low` is the shorter one and what it carries, `high` the shortest between them and what
/// the longer one carries.
///
/// What a duration carries grows no faster than the duration itself, and is no more than what a
/// longer one carries: the bound is largest where both meet.
fn promises(low: (u64, u128), high: (u64, u128), best: &HeldMatching, delta: Span) -> bool {
    let meet = u128::from(low.0) * high.1 / low.1.max(1);
    let cost = meet.max(high.0.into()) + u128::from(delta.0);
    high.1.saturating_mul(best.cost(delta))
        > (best.carried + best.carried / SLACK).saturating_mul(cost)
}

/// [`eclipse()`] every interval.
pub struct Eclipse;

impl Scheduler for Eclipse {
    fn decide(&mut self, ask: &Ask) -> Decision {
        sequences(ask, |demand, plane| eclipse(demand, plane.rate, plane.delta, ask.interval))
    }
    fn plans_ahead(&self, plane: &Plane) -> bool {
        !plane.duplex
    }
}
