//! Stages that receive: where they go, which slots they are promised, and how many of their tasks
//! may receive at once.

use super::{Joint, PromisedSlots, SOONEST};
use crate::ids::{JobId, RackId};
use crate::placement::decision::{MOST_LOST, PlacementDecision, Rule};
use crate::placement::joint::index::bytes_into;
use crate::placement::joint::price::{PricedPlacement, StageQuestion};
use crate::placement::policy::View;
use crate::units::{Bytes, Span, Time};

/// So many tasks receive at once for each host of a rack: PushBox's m.
const FEEDS: u64 = 3;
/// Slots that are left free while the interfaces are busy are offered again after this time at the
/// soonest.
const PAUSE: Span = Span::millis(20);
/// Where interfaces are busy, a promise is kept for this long before the stage is placed again.
const AGAIN: Span = Span::secs(1);

impl Joint {
    /// Gives a stage whose input is ready the slots that it was promised; places it first, if need
    /// be. Where a promise was not kept, slots that are free now come first: what was waited for
    /// may wait for this stage.
    pub(super) fn serve_reduces(
        &mut self,
        view: &dyn View,
        key: (JobId, usize),
        small: bool,
        free: &mut [u32],
    ) {
        let pending = view.counts(key.0, key.1).pending;
        let kept = self
            .promises
            .get(&key)
            .is_some_and(|p| p.until >= view.now() && (1..=pending).contains(&p.left.iter().sum()));
        if !kept {
            let broken = self.promises.remove(&key).is_some_and(|p| p.left.iter().any(|&n| n > 0));
            let now = if broken { self.place(view, key, pending, free, true) } else { None };
            if let Some((p, lost)) = now.or_else(|| self.place(view, key, pending, free, false)) {
                if self.noted.keep.has(key.0) {
                    self.note(view, key, broken, (&p, lost));
                }
                let until = p.start + p.start.since(view.now()).max(SOONEST);
                let holds = p.limits.is_lit();
                self.promises.insert(
                    key,
                    PromisedSlots { left: p.tasks, by: p.start, until, holds, begun: false },
                );
            }
        }
        let Some(p) = self.promises.get(&key) else { return };
        let now: Vec<(usize, u32)> = p
            .left
            .iter()
            .zip(&*free)
            .map(|(l, f)| *l.min(f))
            .enumerate()
            .filter(|n| n.1 > 0)
            .collect();
        // What is sent over circuits waits for these; elsewhere small jobs are through before it
        // matters.
        let spec = view.job(key.0);
        let all = bytes_into(spec, key.1).0;
        let fetch = if p.holds || small && !self.by_host {
            0
        } else {
            all / u64::from(spec.stages[key.1].tasks)
        };
        for (r, wanted) in now {
            let n = self.fed(view, r, wanted, (fetch, all));
            if let Some(p) = self.promises.get_mut(&key).filter(|_| n < wanted) {
                p.until = p.until.max(view.now() + AGAIN);
            }
            free[r] -= n;
            self.plan.promised[r] += n;
            // Their blocks, if they have some, count for less than their shuffle.
            self.start(key, r, n, true);
        }
    }

    /// How many of `wanted` tasks that receive `fetch` bytes each may start on a rack: as many as
    /// its interfaces can feed with what is on its way there before. More would hold slots while
    /// they wait. Where a task has to wait, no later one goes before it, but those of a shuffle of
    /// fewer bytes in `all`, if it is known what is on its way to whom.
    fn fed(&mut self, view: &dyn View, r: usize, wanted: u32, (fetch, all): (u64, u64)) -> u32 {
        if fetch == 0 || self.plan.full[r] <= all {
            return if fetch == 0 { wanted } else { 0 };
        }
        let rack = RackId::from(r);
        let most = fetch.saturating_mul(FEEDS * u64::from(view.hosts_up(rack)));
        let coming = self.coming(view, rack, all).saturating_add(self.plan.fetched[r]);
        let n = wanted.min(u32::try_from(most.saturating_sub(coming) / fetch).unwrap_or(u32::MAX));
        self.plan.fetched[r] = self.plan.fetched[r].saturating_add(fetch.saturating_mul(n.into()));
        if n < wanted {
            self.plan.full[r] = if self.by_host { all } else { 0 };
            let until = self.net.by_core(r, Bytes((coming + fetch).saturating_sub(most)));
            self.alarm.by(view.now() + until.max(PAUSE));
        }
        n
    }

    /// Bytes on their way into a rack that go before those of a shuffle of this many.
    fn coming(&self, view: &dyn View, rack: RackId, all: u64) -> u64 {
        if !self.by_host {
            return view.crossing(rack).0.0;
        }
        let inputs = view.topology().hosts_of(rack).iter().flat_map(|h| view.inputs(h.id));
        inputs.filter(|i| i.coflow.0 <= all).map(|i| i.left.0).sum()
    }

    /// Keeps why a stage goes where it does.
    fn note(
        &mut self,
        view: &dyn View,
        key: (JobId, usize),
        again: bool,
        (placed, mut lost): (&PricedPlacement, Vec<PricedPlacement>),
    ) {
        let (now, losers) = (view.now(), lost.len() as u32);
        lost.sort_by_key(|p| p.price);
        lost.truncate(MOST_LOST);
        let rule = if self.options.no_estimate { Rule::FreeSlots } else { Rule::LeastPrice };
        let estimate = placed.shown(now);
        self.noted.made(PlacementDecision {
            again,
            racks: estimate.racks.clone(),
            estimate: Some(estimate),
            losers,
            lost: lost.iter().map(|p| p.shown(now)).collect(),
            ..self.decision(view, key, rule)
        });
    }

    /// Where the pending tasks of a stage go, as far as the cluster has slots for them, or has some
    /// free now; and the placements that lost, if somebody asks.
    fn place(
        &mut self,
        view: &dyn View,
        (job, stage): (JobId, usize),
        pending: u32,
        free: &[u32],
        now_only: bool,
    ) -> Option<(PricedPlacement, Vec<PricedPlacement>)> {
        let now_only = now_only || self.options.no_estimate;
        let (spec, now) = (view.job(job), view.now());
        let racks = view.topology().racks.iter().map(|r| r.id);
        let each =
            self.jobs.get(&job).map_or(Span::ZERO, |j| j.index.task(spec, stage, &self.learnt));
        if self.plan.releases.is_empty() {
            self.plan.releases = racks
                .clone()
                .map(|r| view.releases(r).into_iter().map(|t| t.max(now)).collect())
                .collect();
        }
        let slots = |r: RackId| {
            let mut all = self.slots(view, r, free[r.index()], each);
            all.retain(|&t| !now_only || t <= now);
            all
        };
        let free: Vec<Vec<Time>> = racks.clone().map(slots).collect();
        let all: usize = free.iter().map(Vec::len).sum();
        if all == 0 {
            return None;
        }
        let output = |r: RackId| {
            let of = |e: &crate::workload::jobs::EdgeSpec| {
                let from = &spec.stages[e.from];
                u128::from(e.bytes.0) * u128::from(view.output_in(job, e.from, r))
                    / u128::from(from.tasks.max(1))
            };
            spec.edges_into(stage).map(of).sum::<u128>().min(u128::from(u64::MAX)) as u64
        };
        let question = StageQuestion {
            net: &self.net,
            output: &racks.clone().map(output).collect::<Vec<_>>(),
            tasks: pending.min(u32::try_from(all).unwrap_or(u32::MAX)),
            free: &free,
            hosts: &racks.clone().map(|r| view.hosts_up(r)).collect::<Vec<_>>(),
            crossing: &racks.map(|r| view.crossing(r)).collect::<Vec<_>>(),
            now,
            behind: self.jobs.values().filter(|j| j.started).count() as u64,
        };
        let mut lost = Vec::new();
        let placed = match (self.options.no_estimate, self.noted.keep.has(job)) {
            (true, _) => question.nearest(),
            (_, true) => question.judge(|p| lost.push(p)),
            (_, false) => question.best(),
        };
        Some((placed?, lost))
    }

    /// When each slot of a rack will be free, but for those that are promised or planned for other
    /// tasks, which are taken for a while: `free` slots are neither. O(slots + promises).
    fn slots(&self, view: &dyn View, rack: RackId, free: u32, each: Span) -> Vec<Time> {
        let r = rack.index();
        let promised: u32 = self.promises.values().map(|p| p.left[r]).sum();
        let planned = (view.free(rack) - free).saturating_sub(self.plan.promised[r]);
        let mut all = self.plan.releases[r].clone();
        let taken = ((promised + planned) as usize).min(all.len());
        all[..taken].iter_mut().for_each(|t| *t += each);
        // Two ascending runs, which this sort merges.
        all.sort();
        all
    }
}
