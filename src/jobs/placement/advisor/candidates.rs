//! Placements worth an estimate.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::assign::Skewed;
use super::{NetworkState, NoPlacement, Occupancy, PlacementOrigin, PlacementRequest, ShuffleSpec};
use crate::coflows::RackBytes;
use crate::ids::RackId;
use crate::placement::cluster::Cluster;
use crate::placement::coscheduler::decide::coflow;
use crate::placement::coscheduler::explore::explore;
use crate::placement::coscheduler::reduces::{heavy_racks, spread, widths};
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};

/// Largest number of placements of a shuffle for which all are tried.
const FEW: u64 = 256;

/// A placement, how it was found, and when its slots are free.
pub(super) type FoundPlacement = (PlacementOrigin, Vec<(RackId, u32)>, Time);

/// What is asked, in short.
struct RequestSummary<'a> {
    standing: &'a NetworkState,
    busy: &'a Occupancy<'a>,
    cluster: Cluster,
    maps: &'a [(RackId, Bytes)],
    by_task: &'a [Vec<Bytes>],
    /// Map output by rack.
    local: Vec<u64>,
    /// By rack: a circuit from one of the map racks is up; nothing if there is none at all.
    lit: Option<Vec<bool>>,
    tasks: u32,
    free: Vec<&'a [Span]>,
    at_most: u32,
    waves: bool,
    ready: Span,
    seen: BTreeSet<Vec<(RackId, u32)>>,
    found: Vec<FoundPlacement>,
}

/// Every candidate once; at least one.
pub(super) fn all(
    topology: &Topology,
    standing: &NetworkState,
    busy: &Occupancy,
    request: &PlacementRequest,
) -> Result<Vec<FoundPlacement>, NoPlacement> {
    let ShuffleSpec::Open { maps, by_task, reduces, free, at_most, waves } = &request.shuffle
    else {
        return Ok(vec![]);
    };
    let at_most = at_most.unwrap_or(u32::MAX);
    let free: Vec<&[Span]> = free.iter().map(|f| &f[..f.len().min(at_most as usize)]).collect();
    let slots: u64 = free.iter().map(|f| f.len() as u64).sum();
    let waves = *waves && slots < u64::from(*reduces);
    let most = if waves {
        free.iter().filter(|f| !f.is_empty()).count() as u64 * u64::from(at_most)
    } else {
        slots
    };
    if most < u64::from(*reduces) || *reduces == 0 {
        return Err(NoPlacement::Slots { tasks: *reduces, slots: most });
    }
    let mut cluster = Cluster::of(topology, standing.threshold);
    cluster.circuits *= u32::from(standing.circuits);
    let mut asked = RequestSummary {
        standing,
        busy,
        cluster,
        maps,
        by_task,
        local: local(maps, topology.rack_count()),
        lit: lit(maps, standing, topology.rack_count()),
        tasks: *reduces,
        free,
        at_most,
        waves,
        ready: request.ready,
        seen: BTreeSet::new(),
        found: vec![],
    };
    asked.search();
    Ok(asked.found)
}

impl RequestSummary<'_> {
    fn search(&mut self) {
        let worth = if self.cluster.has_circuits() {
            widths(self.maps, self.tasks, &self.cluster)
        } else {
            vec![]
        };
        let smallest = heavy_racks(self.maps, self.tasks, &self.cluster).iter().map(|m| m.1).min();
        for width in &worth {
            if let Some(d) = smallest.and_then(|s| spread(s, self.tasks, *width, &self.cluster)) {
                self.with(&d, PlacementOrigin::Slots);
            }
        }
        if self.found.is_empty() {
            self.evenly();
        }
        self.soonest();
        self.near();
        self.any();
    }

    /// Where tasks read unequal parts: each where it moves few bytes, as far as there are slots.
    fn near(&mut self) {
        if self.by_task.is_empty() || self.waves {
            return;
        }
        let slots = self.free.iter().enumerate().map(|(r, f)| (RackId::from(r), f.len() as u32));
        let slots: Vec<_> = slots.filter(|s| s.1 > 0).collect();
        let mut tasks = vec![0u32; self.free.len()];
        let found = Skewed { maps: self.maps, by_task: self.by_task }.assign(&slots);
        found.into_iter().for_each(|r| tasks[r.index()] += 1);
        let racks =
            tasks.into_iter().enumerate().filter(|t| t.1 > 0).map(|(r, n)| (RackId::from(r), n));
        self.add(PlacementOrigin::Near, racks.collect());
    }

    /// Placements with `d` tasks a rack, largest first; ExploreSchedule's own is found as `origin`.
    fn with(&mut self, d: &[u32], origin: PlacementOrigin) {
        let Some(first) =
            explore(d, &self.free, self.cluster.circuits.max(1), |r| self.local[r.index()])
        else {
            return;
        };
        let start = first.start;
        self.add(origin, first.racks);
        let bound = self.bound(d);
        let free: Vec<Time> =
            (0..self.free.len()).map(|r| self.busy.receiver_free(RackId::from(r), bound)).collect();
        self.pick(d, PlacementOrigin::Ports, |_, t, r| {
            Some((self.standing.now + t).max(free[r]).0)
        });
        let soon = |t: Span| (t <= start).then_some(());
        if self.lit.is_some() {
            let dark = |s: &Self, r: usize| s.lit.as_ref().is_none_or(|l| !l[r]);
            self.pick(d, PlacementOrigin::Circuits, |s, t, r| {
                soon(t).map(|()| u64::from(dark(s, r)))
            });
        }
        self.pick(d, PlacementOrigin::Local, |s, t, r| soon(t).map(|()| u64::MAX - s.local[r]));
    }

    /// T(C) of the shuffle if no rack of it holds maps: the place in the order that it can hope
    /// for.
    fn bound(&self, d: &[u32]) -> Span {
        let elsewhere: Vec<(RackId, u32)> =
            d.iter().enumerate().map(|(k, &n)| (RackId::from(k), n)).collect();
        let pairs: Vec<RackBytes> = coflow(self.maps, &elsewhere)
            .into_iter()
            .filter(|t| t.bytes >= self.standing.threshold && t.bytes > Bytes::ZERO)
            .map(|t| RackBytes { from: t.from, to: t.to, bytes: t.bytes })
            .collect();
        self.busy.bound_of(&pairs)
    }

    /// For each d, largest first, the rack of the smallest key (by when it has d slots, and its
    /// number), each rack once.
    fn pick(
        &mut self,
        d: &[u32],
        origin: PlacementOrigin,
        key: impl Fn(&Self, Span, usize) -> Option<u64>,
    ) {
        let mut racks: Vec<(RackId, u32)> = Vec::with_capacity(d.len());
        let mut taken = vec![false; self.free.len()];
        for alike in d.chunk_by(|a, b| a == b) {
            let time = |r: usize| self.time(RackId::from(r), alike[0]);
            let open = (0..self.free.len()).filter(|&r| !taken[r]);
            let mut order: Vec<_> =
                open.filter_map(|r| time(r).and_then(|t| Some((key(self, t, r)?, t, r)))).collect();
            order.sort_unstable();
            if order.len() < alike.len() {
                return;
            }
            for (&(_, _, r), &n) in order.iter().zip(alike) {
                taken[r] = true;
                racks.push((RackId::from(r), n));
            }
        }
        self.add(origin, racks);
    }

    /// Even shares on one rack, two, four and so on, and on all.
    fn evenly(&mut self) {
        let racks = self.free.iter().filter(|f| !f.is_empty()).count().min(self.tasks as usize);
        let powers =
            std::iter::successors(Some(1usize), |w| Some(w * 2)).take_while(|&w| w < racks);
        for width in powers.chain([racks]).collect::<Vec<_>>() {
            let share = |k: usize| {
                self.tasks / width as u32 + u32::from((k as u32) < self.tasks % width as u32)
            };
            let d: Vec<u32> = (0..width).map(share).collect();
            self.with(&d, PlacementOrigin::Even);
        }
    }

    /// The slots that are free first, whatever racks they are in; in waves, as many on every slot.
    fn soonest(&mut self) {
        let mut tasks = vec![0u32; self.free.len()];
        let slots: usize = self.free.iter().map(|f| f.len()).sum();
        let mut left = self.tasks;
        while left as usize > slots {
            for (f, own) in self.free.iter().zip(&mut tasks) {
                let more = (f.len() as u32).min(self.at_most - *own).min(left);
                (*own, left) = (*own + more, left - more);
            }
        }
        // What a whole round is too much for: slot after slot.
        while left > 0 {
            let mut used = vec![0usize; self.free.len()];
            let next = |r: usize, k: usize| self.free[r].get(k).map(|&t| Reverse((t, r)));
            let mut heap: BinaryHeap<_> = (0..self.free.len()).filter_map(|r| next(r, 0)).collect();
            while let Some(Reverse((_, r))) = heap.pop().filter(|_| left > 0) {
                if tasks[r] < self.at_most {
                    (tasks[r], left) = (tasks[r] + 1, left - 1);
                    used[r] += 1;
                    heap.extend(next(r, used[r]));
                }
            }
        }
        let racks =
            tasks.into_iter().enumerate().filter(|t| t.1 > 0).map(|(r, n)| (RackId::from(r), n));
        self.add(PlacementOrigin::Soonest, racks.collect());
    }

    /// Every placement, where there are few.
    fn any(&mut self) {
        let racks: Vec<usize> =
            (0..self.free.len()).filter(|&r| !self.free[r].is_empty()).collect();
        if count(self.tasks, racks.len()) > FEW {
            return;
        }
        let mut tasks = vec![0u32; racks.len()];
        self.fill(&racks, &mut tasks, 0, self.tasks);
    }

    fn fill(&mut self, racks: &[usize], tasks: &mut [u32], k: usize, left: u32) {
        if k + 1 == racks.len() {
            tasks[k] = left;
            let all =
                racks.iter().zip(&*tasks).filter(|t| *t.1 > 0).map(|(&r, &n)| (RackId::from(r), n));
            return self.add(PlacementOrigin::Any, all.collect());
        }
        for n in 0..=left {
            tasks[k] = n;
            self.fill(racks, tasks, k + 1, left - n);
        }
    }

    /// When a rack has slots for `n` tasks, from now; in waves, when all its slots are free.
    fn time(&self, rack: RackId, n: u32) -> Option<Span> {
        let f = self.free[rack.index()];
        let all = if self.waves { f.last().filter(|_| n <= self.at_most) } else { None };
        f.get((n as usize).checked_sub(1)?).or(all).copied()
    }

    /// Keeps a placement that is possible and new, with the racks of most tasks first: what
    /// rounding leaves, the last rack takes.
    fn add(&mut self, origin: PlacementOrigin, mut racks: Vec<(RackId, u32)>) {
        racks.sort_unstable_by_key(|&(r, n)| (Reverse(n), r));
        let times: Option<Vec<Span>> = racks.iter().map(|&(r, n)| self.time(r, n)).collect();
        let Some(start) = times.and_then(|t| t.into_iter().max()) else { return };
        if self.seen.insert(racks.clone()) {
            self.found.push((origin, racks, self.standing.now + start.max(self.ready)));
        }
    }
}

/// Map output by rack.
fn local(maps: &[(RackId, Bytes)], racks: usize) -> Vec<u64> {
    let mut local = vec![0; racks];
    maps.iter().for_each(|m| local[m.0.index()] = m.1.0);
    local
}

/// By rack: whether a circuit from one of the map racks is up; nothing if none leaves them.
fn lit(maps: &[(RackId, Bytes)], standing: &NetworkState, racks: usize) -> Option<Vec<bool>> {
    let ends = |m: &(RackId, Bytes)| {
        standing
            .up
            .iter()
            .filter(|u| u.racks() > m.0.index())
            .filter_map(|u| u.output(m.0))
            .collect::<Vec<_>>()
    };
    let mut lit = vec![false; racks];
    maps.iter().flat_map(ends).for_each(|r| lit[r.index()] = true);
    lit.contains(&true).then_some(lit)
}

/// Ways to spread tasks over racks, no more than just above [`FEW`].
fn count(tasks: u32, racks: usize) -> u64 {
    let mut ways = 1u64;
    for k in 1..racks as u64 {
        ways = ways.saturating_mul(u64::from(tasks) + k) / k;
        if ways > FEW {
            return ways;
        }
    }
    ways
}
