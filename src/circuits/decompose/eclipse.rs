//! Eclipse: most bytes within a window when every configuration costs its dark time.

use super::{light, sequences};
use crate::circuits::matching::bipartite;
use crate::circuits::{Ask, Decision, Scheduler, Slot};
use crate::demand::DemandMatrix;
use crate::units::{BitRate, Span};

/// How many durations are tried for each configuration.
const TRIED: usize = 16;

/// Configurations within `window` that carry most of `demand`, chosen greedily: each is the matching and duration that carry
/// most for the time they take, dark time included. Where one matching for the whole window carries more than all of them, it is
/// that.
///
/// The best duration is one of the cells' rests (or the whole room). All of them are tried when there are at most 16, else 16
/// spread evenly over their order; the paper bisects them, which misses a best one as well when the ratio has several peaks.
///
/// # Arguments
/// - `demand`: bytes by (input, output), `R x R`; `rate`: of a circuit; `delta`: dark time before each configuration.
/// - `window`: the sequence ends within it, dark time included.
///
/// # Complexity
/// 16 maximum weight matchings for each of k configurations: O(16 k R^3) at worst.
///
/// # Example
/// ```
/// use heliostat::{circuits::decompose::eclipse, demand::DemandMatrix, units::{BitRate, Span}};
/// let d = DemandMatrix::from_rows(&[&[0, 80, 9], &[80, 0, 0], &[0, 0, 0]]);
/// // A byte a nanosecond: after 10 + 80 ns there is no time for the last 9 bytes.
/// assert_eq!(eclipse(&d, BitRate(8_000_000_000), Span(10), Span(100)).len(), 1);
/// assert_eq!(eclipse(&d, BitRate(8_000_000_000), Span(10), Span(109)).len(), 2);
/// ```
///
/// # Source
/// Bojja Venkatakrishnan, Alizadeh and Viswanath, *Costly circuits, submodular schedules and approximate Caratheodory
/// theorems*, SIGMETRICS 2016, algorithm 1: within 1 - 1/e^(1-delta/window) of the best.
pub fn eclipse(demand: &DemandMatrix, rate: BitRate, delta: Span, window: Span) -> Vec<Slot> {
    let need = light(demand, rate);
    let (slots, carried) = greedily(&need, delta, window);
    let whole = window.saturating_sub(delta);
    let served = need.map(|x| x.min(whole.0));
    let matching = bipartite(&served, None);
    if matching.weight(&served) > carried { vec![Slot { matching, hold: Some(whole) }] } else { slots }
}

/// Algorithm 1: the configurations, and the light that they carry.
fn greedily(need: &DemandMatrix, delta: Span, window: Span) -> (Vec<Slot>, u128) {
    let mut rest = need.clone();
    let (mut slots, mut room, mut sum) = (Vec::new(), window, 0);
    while room > delta {
        let most = room.saturating_sub(delta).0;
        let tried = durations(&rest, most).into_iter().map(|time| {
            let carried = rest.map(|x| x.min(time));
            let matching = bipartite(&carried, None);
            (matching.weight(&carried), time, matching)
        });
        // The best carried / (time + delta); of equal ones the shorter. A matching carries less than 2^63: no overflow.
        let cost = |time: u64| u128::from(time.saturating_add(delta.0));
        let best = tried.reduce(|a, b| if b.0 * cost(a.1) > a.0 * cost(b.1) { b } else { a });
        let Some((carried, time, matching)) = best else { break };
        if carried == 0 {
            break;
        }
        for (i, j) in matching.pairs() {
            rest.set(i, j, rest.get(i, j).saturating_sub(time));
        }
        slots.push(Slot { matching, hold: Some(Span(time)) });
        sum += carried;
        room = room.saturating_sub(delta + Span(time));
    }
    (slots, sum)
}

/// The durations worth trying, shortest first: the cells' rests, none longer than `most`.
fn durations(rest: &DemandMatrix, most: u64) -> Vec<u64> {
    let mut all: Vec<u64> = rest.entries().map(|e| e.2.min(most)).collect();
    all.sort_unstable();
    all.dedup();
    if all.len() > TRIED {
        all = (0..TRIED).map(|k| all[k * (all.len() - 1) / (TRIED - 1)]).collect();
    }
    all
}

/// [`eclipse()`] every interval.
pub struct Eclipse;

impl Scheduler for Eclipse {
    fn name(&self) -> &'static str {
        "eclipse"
    }
    fn decide(&mut self, ask: &Ask) -> Decision {
        sequences(ask, |demand, plane| eclipse(demand, plane.rate, plane.delta, ask.interval))
    }
}
