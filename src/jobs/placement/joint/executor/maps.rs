//! Stages that read: on which racks their tasks go.

use std::cmp::Reverse;

use super::Joint;
use crate::ids::{JobId, RackId};
use crate::placement::decision::{Afar, OpenSlots, PlacementDecision, RackTasks, Rule, most};
use crate::placement::joint::price::StageQuestion;
use crate::placement::policy::{Locality, View};
use crate::units::{Bytes, Span, Time};

/// What a task is taken to send where ways over switches are compared: what it will send is known
/// only later.
const SENDS: u64 = 1_000_000_000;

/// Maps that are to get slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Maps {
    pub job: JobId,
    pub stage: usize,
    /// How many.
    pub left: u32,
    /// Slots that are the stage's share, those that it has included. A rack is added only if half
    /// of what it would take there, or more, is within the share.
    pub share: u64,
}

/// Whether a rack has blocks of maps that wait.
fn is_near(view: &dyn View, maps: Maps, rack: usize) -> bool {
    let near = view.locality(maps.job, maps.stage, RackId::from(rack));
    near.is_some_and(|n| n < Locality::Remote)
}

impl Joint {
    /// Gives maps the free slots of their homes. How many are left.
    pub(super) fn serve_maps(&mut self, view: &dyn View, maps: Maps, free: &mut [u32]) -> u32 {
        let mut left = maps.left;
        let racks = self.spread(view, maps, free);
        if !racks.is_empty() && self.noted.keep.has(maps.job) {
            let near = free.iter().copied().enumerate().filter(|f| is_near(view, maps, f.0));
            let open = |t: RackTasks| OpenSlots { rack: t.rack, slots: t.tasks };
            let open = most(near).into_iter().map(open).collect();
            let decision = self.decision(view, (maps.job, maps.stage), Rule::Home);
            self.noted.planned(PlacementDecision { open, ..decision });
        }
        for (r, n) in racks {
            (free[r], left) = (free[r] - n, left - n);
            self.start((maps.job, maps.stage), r, n, false);
        }
        left
    }

    /// Racks for maps, and how many go there. Over a graph of switches they are chosen around one
    /// rack, if their shuffle has a lower price there; of equal racks the one around which most
    /// slots are free. O(racks log racks), over a graph O(racks^2 log racks + racks x estimate).
    fn spread(&self, view: &dyn View, maps: Maps, free: &[u32]) -> Vec<(usize, u32)> {
        let open: Vec<usize> =
            (0..free.len()).filter(|&r| free[r] > 0 && is_near(view, maps, r)).collect();
        let usual = self.around(view, maps, None, open.clone(), free);
        if !self.net.has_ways() || open.len() < 2 {
            return usual;
        }
        let slots: Vec<Vec<Time>> = view
            .topology()
            .racks
            .iter()
            .map(|r| vec![view.now(); view.slots(r.id) as usize])
            .collect();
        let room = |c: usize| {
            let far = |r: usize| (1 + self.net.between(c, r)) as u64;
            (0..free.len()).map(|r| u64::from(free[r]) * SENDS / far(r)).sum::<u64>()
        };
        let price = |racks: &[(usize, u32)]| self.price_of(view, maps, racks, &slots);
        let all = open.iter().map(|&c| {
            let racks = self.around(view, maps, Some(c), open.clone(), free);
            ((price(&racks), false, Reverse(room(c))), racks)
        });
        let usual = ((price(&usual), true, Reverse(0)), usual);
        all.chain([usual]).min_by_key(|a| a.0).map_or(vec![], |a| a.1)
    }

    /// The price of the shuffle of these maps and of those that have slots or have ended, with
    /// tasks that receive where most of its bytes are.
    fn price_of(
        &self,
        view: &dyn View,
        maps: Maps,
        racks: &[(usize, u32)],
        slots: &[Vec<Time>],
    ) -> u64 {
        let spec = view.job(maps.job);
        let ids = || view.topology().racks.iter().map(|r| r.id);
        let there = |r: RackId| {
            let old =
                view.running_in(maps.job, maps.stage, r) + view.output_in(maps.job, maps.stage, r);
            u64::from(old) * SENDS
        };
        let mut output: Vec<u64> = ids().map(there).collect();
        racks.iter().for_each(|&(r, n)| output[r] += u64::from(n) * SENDS);
        let receive = spec.edges.iter().filter(|e| e.from == maps.stage);
        let question = StageQuestion {
            net: &self.net,
            output: &output,
            tasks: receive.map(|e| spec.stages[e.to].tasks).sum(),
            free: slots,
            hosts: &ids().map(|r| view.hosts_up(r)).collect::<Vec<_>>(),
            crossing: &ids().map(|r| view.crossing(r)).collect::<Vec<_>>(),
            now: view.now(),
            behind: self.jobs.len() as u64,
        };
        question.in_proportion().map_or(u64::MAX, |p| p.price)
    }

    /// Where the stage runs already, then on the fewest racks; the nearest to a centre, if there is
    /// one.
    fn around(
        &self,
        view: &dyn View,
        Maps { job, stage, mut left, share }: Maps,
        centre: Option<usize>,
        mut open: Vec<usize>,
        free: &[u32],
    ) -> Vec<(usize, u32)> {
        let mut room = share.saturating_sub(view.counts(job, stage).running.into());
        let mut racks = Vec::new();
        while left > 0 && !open.is_empty() {
            let runs = |r: usize| view.running_in(job, stage, RackId::from(r)) > 0;
            // One that has room for all, the fullest; else the emptiest. Where the stage runs
            // already, first.
            let key = |&r: &usize| {
                (
                    centre.map_or(0, |c| self.net.between(c, r)),
                    !runs(r),
                    free[r] < left,
                    if free[r] < left { u32::MAX - free[r] } else { free[r] },
                    r,
                )
            };
            let Some(k) = (0..open.len()).min_by_key(|&k| key(&open[k])) else { break };
            let r = open.swap_remove(k);
            let n = left.min(free[r]);
            if !runs(r) && room < u64::from(n.div_ceil(2)) {
                continue;
            }
            (room, left) = (room.saturating_sub(n.into()), left - n);
            racks.push((r, n));
        }
        racks
    }

    /// Has maps that wait for slots at home start on slots that no other map wants, where reading
    /// over the network ends sooner than waiting.
    pub(super) fn send_maps_away(&mut self, view: &dyn View, waiting: &[Maps], free: &mut [u32]) {
        let racks = free.len();
        // By rack: slot time of maps that wait for it, those that go first first.
        let mut ahead = vec![0u64; racks];
        for &Maps { job, stage, left, .. } in waiting {
            if free.iter().all(|&f| f == 0) {
                return;
            }
            let spec = view.job(job);
            let Some(j) = self.jobs.get(&job) else { continue };
            let home: Vec<usize> = match j.homes.get(&stage) {
                Some((sets, _)) => sets
                    .racks()
                    .into_iter()
                    .map(RackId::index)
                    .filter(|&r| view.slots(RackId::from(r)) > 0)
                    .collect(),
                None => vec![],
            };
            let each = j.index.task(spec, stage, &self.learnt).0;
            let work = each.saturating_mul(left.into()) / home.len().max(1) as u64;
            home.iter().for_each(|&r| ahead[r] = ahead[r].saturating_add(work));
            // Until the last of them has a slot at home.
            let wait = |r: &usize| {
                let (rack, behind) =
                    (RackId::from(*r), ahead[*r] / u64::from(view.slots(RackId::from(*r))));
                let open = view
                    .released(rack, left.min(view.slots(rack)))
                    .map_or(0, |t| t.since(view.now()).0);
                behind.saturating_add(open)
            };
            let wait = home.iter().map(wait).min().unwrap_or(u64::MAX);
            let block = spec.stages[stage].input.0 / u64::from(spec.stages[stage].tasks);
            let mut left = left;
            for r in (0..racks).filter(|r| !home.contains(r)) {
                let coming = view.crossing(RackId::from(r)).0.0;
                let mut n = left.min(free[r]);
                let reads = |n: u32| {
                    let bytes = coming.saturating_add(block.saturating_mul(n.into()));
                    self.net.by_core(r, Bytes(bytes))
                };
                while n > 0 && reads(n).0 >= wait {
                    n /= 2;
                }
                if n > 0 {
                    if self.noted.keep.has(job) {
                        let afar = Some(Afar { reads: reads(n), waits: Span(wait) });
                        let decision = self.decision(view, (job, stage), Rule::FromAfar);
                        self.noted.planned(PlacementDecision { afar, ..decision });
                    }
                    (free[r], left) = (free[r] - n, left - n);
                    self.start((job, stage), r, n, true);
                }
            }
        }
    }
}
