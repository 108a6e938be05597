//! [`sunflow`](super::sunflow()) as far ahead as it is needed, and no further.
//!
//! Reservations are made again whenever a coflow comes or ends, so most of what a plan to the end
//! says is never carried out. What happens before an instant depends on little beyond it. Of those
//! before it, a coflow must know only what they start within a dark time from now; beyond that its
//! own circuit would not be worth its set-up. So the last coflow is planned up to the horizon, the
//! one before it a dark time further, and so on. What starts before the horizon is then exactly
//! what a plan to the end has.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::need::{LightNeed, PortSet, highest, lowest};
use crate::units::{Span, Time};

/// A circuit that exists when a plan begins: it has light, is being set up, or ended just then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldCircuit {
    /// Its ports.
    pub ports: (u32, u32),
    /// When it has light.
    pub ready: Time,
    /// The place of the first coflow that may go on with it without a new dark time: zero for all.
    pub owner: usize,
}

/// A circuit for a pair of a coflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PairCircuit {
    /// The coflow's place in the order.
    pub place: usize,
    /// The pair's number in its [`LightNeed`].
    pub pair: u32,
    /// Its ports are its own from here.
    pub from: Time,
    /// Light.
    pub up_from: Time,
    /// Dark again; too late, perhaps, if it lies beyond the horizon.
    pub until: Time,
}

/// What [`plan`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// All circuits that begin before the horizon, coflow by coflow.
    pub circuits: Vec<PairCircuit>,
    /// Time up to which they are exact: the horizon, or the end of the first coflow if that is
    /// sooner.
    pub horizon: Time,
}

/// Begins and ends of circuits of the coflows planned so far. Ends come before begins, so that
/// ports pass on at an instant.
type CircuitEvent = (Time, bool, u32, u32);

/// Circuits for coflows in order of priority, those that begin before `at + span`: as
/// [`sunflow`](super::sunflow()) plans them.
///
/// A circuit that is `held` goes on without a new dark time, and if it is still being set up it
/// goes on being set up. To go on with a plan at its horizon, give its circuits with their owners;
/// to plan again, with owners zero.
///
/// # Complexity
/// O(C K + C log C) for C circuits within the horizon and K coflows, and R rows of bits a circuit
/// at worst.
pub fn plan(
    coflows: &[&LightNeed],
    delta: Span,
    held: &[HeldCircuit],
    at: Time,
    span: Span,
) -> Window {
    let ports = coflows.first().map_or(0, |n| n.ports());
    let mut shared = ReservedSpans {
        delta,
        at,
        starts: [vec![Vec::new(); ports], vec![Vec::new(); ports]],
        edges: Vec::new(),
    };
    let mut window = Window { circuits: Vec::new(), horizon: at + span };
    for (place, need) in coflows.iter().enumerate().filter(|(_, n)| n.pending() > 0) {
        let limit = window.horizon + delta * (coflows.len() - place) as u64;
        let mut sweep = Sweep::new((*need).clone(), place, ports);
        if let Some(end) = sweep.run(&shared, held, limit) {
            window.horizon = window.horizon.min(end);
        }
        shared.book(&sweep.need, &sweep.circuits);
        window.circuits.extend(sweep.circuits);
    }
    window.circuits.retain(|c| c.from < window.horizon);
    window
}

/// What the coflows planned so far have reserved.
struct ReservedSpans {
    delta: Span,
    at: Time,
    /// By side, then port: when circuits begin there, ascending.
    starts: [Vec<Vec<Time>>; 2],
    /// Ascending.
    edges: Vec<CircuitEvent>,
}

impl ReservedSpans {
    fn next_start(&self, side: usize, port: u32, after: Time) -> Time {
        let starts = &self.starts[side][port as usize];
        starts.get(starts.partition_point(|&s| s <= after)).copied().unwrap_or(Time::MAX)
    }

    fn book(&mut self, need: &LightNeed, circuits: &[PairCircuit]) {
        for c in circuits {
            let (i, j) = need.pair(c.pair);
            for (side, port) in [i, j].into_iter().enumerate() {
                let starts = &mut self.starts[side][port as usize];
                starts.insert(starts.partition_point(|&s| s < c.from), c.from);
            }
            self.edges.extend([(c.from, true, i, j), (c.until, false, i, j)]);
        }
        self.edges.sort();
    }
}

/// One coflow's way through time.
struct Sweep {
    need: LightNeed,
    place: usize,
    /// Free inputs and outputs.
    free: [PortSet; 2],
    ends: BinaryHeap<Reverse<(Time, u32, u32)>>,
    circuits: Vec<PairCircuit>,
    /// The next edge to pass.
    edge: usize,
    /// Circuits that ended at this instant.
    ended: Vec<(u32, u32)>,
    /// Ports that were freed, each with its next pair: how far the output lies beyond the input,
    /// both, and whether the port is the output.
    next: BinaryHeap<Reverse<(u32, u32, u32, bool)>>,
}

impl Sweep {
    fn new(need: LightNeed, place: usize, ports: usize) -> Self {
        let free = [PortSet::all(ports), PortSet::all(ports)];
        Self {
            need,
            place,
            free,
            ends: BinaryHeap::new(),
            circuits: Vec::new(),
            edge: 0,
            ended: Vec::new(),
            next: BinaryHeap::new(),
        }
    }

    /// Plans up to `limit`; returns when the coflow ends, if it does by then.
    fn run(&mut self, shared: &ReservedSpans, held: &[HeldCircuit], limit: Time) -> Option<Time> {
        self.pass(shared.at, shared);
        self.go_on(shared, held);
        let inputs: Vec<u32> = self.free[0].iter().collect();
        inputs.into_iter().for_each(|i| self.offer(i, false, 0));
        self.start(shared.at, shared, &[]);
        while self.need.pending() > 0 {
            let (own, other) =
                (self.ends.peek().map(|e| e.0.0), shared.edges.get(self.edge).map(|e| e.0));
            let t = own.into_iter().chain(other).min().filter(|&t| t < limit)?;
            self.pass(t, shared);
            self.start_freed(t, shared);
        }
        self.circuits.iter().map(|c| c.until).max()
    }

    /// Frees and takes ports at `t`.
    fn pass(&mut self, t: Time, shared: &ReservedSpans) {
        self.ended.clear();
        while let Some(&Reverse((_, i, j))) = self.ends.peek().filter(|e| e.0.0 <= t) {
            self.ends.pop();
            self.set((i, j), true);
            self.ended.push((i, j));
        }
        while let Some(&(_, begins, i, j)) = shared.edges.get(self.edge).filter(|e| e.0 <= t) {
            self.edge += 1;
            self.set((i, j), !begins);
            if !begins {
                self.ended.push((i, j));
            }
        }
    }

    fn set(&mut self, (i, j): (u32, u32), free: bool) {
        for (side, port) in [i, j].into_iter().enumerate() {
            if free {
                self.free[side].add(port);
            } else {
                self.free[side].remove(port);
            }
        }
    }

    /// Goes on with the circuits that exist.
    fn go_on(&mut self, shared: &ReservedSpans, held: &[HeldCircuit]) {
        let mine = held
            .iter()
            .filter(|h| h.owner <= self.place && self.need.find(h.ports.0, h.ports.1).is_some());
        let mut list: Vec<_> = mine.map(|h| (self.beyond(h.ports), h.ports, h.ready)).collect();
        list.sort_unstable();
        for (_, ports, ready) in list {
            self.reserve(ports, shared.at, shared.at.max(ready), shared);
        }
    }

    fn beyond(&self, (i, j): (u32, u32)) -> u32 {
        let ports = self.need.ports() as u32;
        (j + ports - i) % ports
    }

    /// Starts what can start of the pairs that have one of the ports freed now: first those that go
    /// on, then by how far the output lies beyond the input.
    fn start_freed(&mut self, t: Time, shared: &ReservedSpans) {
        let ended = std::mem::take(&mut self.ended);
        let mut again: Vec<_> = ended.iter().map(|&(i, j)| (self.beyond((i, j)), i, j)).collect();
        again.sort_unstable();
        for (_, i, j) in again {
            self.reserve((i, j), t, t, shared);
        }
        for &(i, j) in &ended {
            self.offer(i, false, 0);
            self.offer(j, true, 0);
        }
        self.start(t, shared, &ended);
        self.ended = ended;
    }

    /// Starts what can start of the pairs of the ports in `next`, but for those that ended now.
    fn start(&mut self, t: Time, shared: &ReservedSpans, ended: &[(u32, u32)]) {
        while let Some(Reverse((beyond, i, j, output))) = self.next.pop() {
            if !ended.contains(&(i, j)) {
                self.reserve((i, j), t, t + shared.delta, shared);
            }
            self.offer(if output { j } else { i }, output, beyond + 1);
        }
    }

    /// Puts a port, if it is free, into `next` with its first pair from so far beyond on that is
    /// free and needs light.
    fn offer(&mut self, port: u32, output: bool, beyond: u32) {
        if !self.free[usize::from(output)].has(port) {
            return;
        }
        let (n, other) = (self.need.ports() as u32, self.free[usize::from(!output)].words());
        let found = if output {
            // The inputs from the output downwards, and around.
            let need = self.need.column(port);
            let near =
                (beyond <= port).then(|| highest(need, other, 0, port + 1 - beyond)).flatten();
            near.or_else(|| highest(need, other, port + 1, (n + port + 1 - beyond).min(n)))
        } else {
            let need = self.need.row(port);
            let near = (port + beyond < n).then(|| lowest(need, other, port + beyond, n)).flatten();
            near.or_else(|| lowest(need, other, (port + beyond).saturating_sub(n), port))
        };
        if let Some(found) = found {
            let (i, j) = if output { (found, port) } else { (port, found) };
            self.next.push(Reverse((self.beyond((i, j)), i, j, output)));
        }
    }

    /// Reserves two free ports from `t` on, if that gives light.
    fn reserve(&mut self, (i, j): (u32, u32), t: Time, up_from: Time, shared: &ReservedSpans) {
        if !(self.free[0].has(i) && self.free[1].has(j)) {
            return;
        }
        let Some(pair) = self.need.find(i, j) else { return };
        let taken = shared.next_start(0, i, t).min(shared.next_start(1, j, t));
        let until = taken.min(up_from + self.need.rest(pair));
        if up_from >= until {
            return;
        }
        self.need.use_light(pair, until.since(up_from).0);
        self.set((i, j), false);
        self.ends.push(Reverse((until, i, j)));
        self.circuits.push(PairCircuit { place: self.place, pair, from: t, up_from, until });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    type DemandCells = Vec<(u32, u32, u64)>;
    /// Input, output, beginning and end of what coflows have reserved.
    type TakenPorts = (u32, u32, Time, Time);

    /// The plan to the end, from the definition: at every instant at which anything ends every pair
    /// of every coflow is looked at.
    fn slow(
        coflows: &[DemandCells],
        delta: Span,
        held: &[HeldCircuit],
        at: Time,
    ) -> Vec<PairCircuit> {
        let (mut taken, mut out): (Vec<TakenPorts>, Vec<PairCircuit>) = (vec![], vec![]);
        for (place, cells) in coflows.iter().enumerate() {
            let mut rest: Vec<u64> = cells.iter().map(|c| c.2).collect();
            let mut t = at;
            loop {
                let goes_on = |i, j| match held.iter().find(|h| t == at && h.ports == (i, j)) {
                    Some(h) => Some(h.ready.max(t)),
                    None => taken.iter().any(|s| (s.0, s.1, s.3) == (i, j, t)).then_some(t),
                };
                let mut may: Vec<_> = (0..cells.len())
                    .filter(|&k| rest[k] > 0)
                    .map(|k| {
                        (
                            goes_on(cells[k].0, cells[k].1).is_none(),
                            (cells[k].1 + 5 - cells[k].0) % 5,
                            k,
                        )
                    })
                    .collect();
                may.sort_unstable();
                let ups: Vec<_> = may
                    .iter()
                    .map(|m| goes_on(cells[m.2].0, cells[m.2].1).unwrap_or(t + delta))
                    .collect();
                for (&(_, _, k), up_from) in may.iter().zip(ups) {
                    let (i, j, _) = cells[k];
                    let hits = |s: &&TakenPorts| s.0 == i || s.1 == j;
                    if taken.iter().filter(hits).any(|s| s.2 <= t && t < s.3) {
                        continue;
                    }
                    let next = taken
                        .iter()
                        .filter(hits)
                        .filter(|s| s.2 > t)
                        .map(|s| s.2)
                        .min()
                        .unwrap_or(Time::MAX);
                    let until = next.min(up_from + Span(rest[k]));
                    if until > up_from {
                        rest[k] -= until.since(up_from).0;
                        taken.push((i, j, t, until));
                        out.push(PairCircuit { place, pair: k as u32, from: t, up_from, until });
                    }
                }
                match taken.iter().map(|s| s.3).filter(|&e| e > t).min() {
                    Some(next) if rest.iter().any(|&r| r > 0) => t = next,
                    _ => break,
                }
            }
        }
        out
    }

    fn cells() -> impl Strategy<Value = DemandCells> {
        let cell = (0u32..5, 0u32..5, 1u64..200);
        prop::collection::vec(cell, 0..14).prop_map(|list| {
            let pairs: BTreeSet<_> =
                list.iter().filter(|c| c.0 != c.1).map(|c| (c.0, c.1)).collect();
            pairs
                .into_iter()
                .map(|p| (p.0, p.1, list.iter().find(|c| (c.0, c.1) == p).unwrap().2))
                .collect()
        })
    }

    /// A dark time, and the circuits that exist at 100: those that are being set up have begun
    /// before.
    fn held() -> impl Strategy<Value = (Span, Vec<HeldCircuit>)> {
        let ports = (Just((0..5).collect::<Vec<u32>>()).prop_shuffle(), 0u8..32);
        (0u64..60, ports, prop::collection::vec(0u64..160, 5)).prop_map(
            |(delta, (out, mask), ready)| {
                let pairs = out
                    .into_iter()
                    .enumerate()
                    .filter(|(i, j)| *i != *j as usize && mask >> i & 1 == 1);
                let held = |(i, j): (usize, u32)| HeldCircuit {
                    ports: (i as u32, j),
                    ready: Time(ready[i].min(100 + delta)),
                    owner: 0,
                };
                (Span(delta), pairs.map(held).collect())
            },
        )
    }

    /// The circuits of a plan that exist at `t`, with their owners. Takes from `needs` what has
    /// been carried by then.
    fn carry_out(circuits: &[PairCircuit], needs: &mut [LightNeed], t: Time) -> Vec<HeldCircuit> {
        let mut stands: Vec<HeldCircuit> = Vec::new();
        for c in circuits.iter().filter(|c| c.from < t) {
            needs[c.place].use_light(c.pair, c.until.min(t).since(c.up_from).0);
            if c.until >= t {
                stands.push(HeldCircuit {
                    ports: needs[c.place].pair(c.pair),
                    ready: c.up_from,
                    owner: c.place,
                });
            }
        }
        stands
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(400))]

        #[test]
        fn what_begins_before_the_horizon_is_as_in_the_plan_to_the_end(
            coflows in prop::collection::vec(cells(), 1..6), (delta, held) in held(), span in 1u64..400,
        ) {
            let at = Time(100);
            let needs: Vec<LightNeed> = coflows.iter().map(|c| LightNeed::new(5, c)).collect();
            let w = plan(&needs.iter().collect::<Vec<_>>(), delta, &held, at, Span(span));
            let all = slow(&coflows, delta, &held, at);
            // What ends beyond the horizon is only known to end there.
            let known = |c: &PairCircuit| PairCircuit { until: c.until.min(w.horizon), ..*c };
            let mut want: Vec<_> = all.iter().filter(|c| c.from < w.horizon).map(known).collect();
            let mut got: Vec<_> = w.circuits.iter().map(known).collect();
            want.sort();
            got.sort();
            prop_assert_eq!(got, want);
            let through = |place| all.iter().filter(|c| c.place == place).map(|c| c.until).max();
            let first = (0..coflows.len()).filter_map(through).min();
            prop_assert_eq!(w.horizon, first.map_or(at + Span(span), |f| f.min(at + Span(span))));
        }

        #[test]
        fn windows_one_after_another_are_one_plan(
            coflows in prop::collection::vec(cells(), 1..6), (delta, held) in held(), span in 1u64..90,
        ) {
            let mut needs: Vec<LightNeed> = coflows.iter().map(|c| LightNeed::new(5, c)).collect();
            let all = slow(&coflows, delta, &held, Time(100));
            let first = (0..coflows.len()).filter_map(|p| all.iter().filter(|c| c.place == p).map(|c| c.until).max()).min();
            let (mut at, mut stands, mut light) = (Time(100), held, Vec::new());
            while first.is_some_and(|f| at < f) {
                let w = plan(&needs.iter().collect::<Vec<_>>(), delta, &stands, at, Span(span));
                light.extend(w.circuits.iter().map(|c| (c.place, c.pair, c.up_from, c.until.min(w.horizon))));
                stands = carry_out(&w.circuits, &mut needs, w.horizon);
                at = w.horizon;
            }
            // The same light for the same pairs, however it was cut up.
            let end = first.unwrap_or(Time(100));
            let cut = |list: Vec<(usize, u32, Time, Time)>| {
                let mut list: Vec<_> = list.into_iter().map(|l| (l.0, l.1, l.2, l.3.min(end))).filter(|l| l.2 < l.3).collect();
                list.sort_unstable();
                let mut joined: Vec<(usize, u32, Time, Time)> = Vec::new();
                for l in list {
                    match joined.last_mut() {
                        Some(k) if (k.0, k.1, k.3) == (l.0, l.1, l.2) => k.3 = l.3,
                        _ => joined.push(l),
                    }
                }
                joined
            };
            prop_assert_eq!(cut(light), cut(all.iter().map(|c| (c.place, c.pair, c.up_from, c.until)).collect()));
        }
    }
}
