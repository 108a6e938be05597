//! The best of all candidates, estimating as few of them as is safe.

use super::assign::Skewed;
use super::estimate::ShuffleEstimate;
use super::least::Least;
use super::{
    Candidate, Excluded, NetworkState, NoPlacement, Occupancy, PlacementOrigin, PlacementRequest,
    Proposal, ShuffleSpec, candidates,
};
use crate::coflows::RackBytes;
use crate::ids::RackId;
use crate::placement::coscheduler::decide::coflow;
use crate::placement::coscheduler::network::RackTransfer;
use crate::topology::Topology;
use crate::units::{Span, Time};

/// What decides first: not on time, and the score.
type DraftCost = (bool, Span);

/// A candidate with the least that it can cost.
struct DraftCandidate {
    origin: PlacementOrigin,
    racks: Vec<(RackId, u32)>,
    start: Time,
    least: DraftCost,
}

/// The best placement of a shuffle on the present network: the one with the smallest score among
/// those that meet the deadline, if any does. Ties go to fewer racks, then to the order of
/// [`PlacementOrigin`], then by rack.
///
/// Candidates are estimated in the order of a bound on their cost, until the bound is beyond the
/// best cost that was found; an estimate is given up when it is. So the best is the best of all, as
/// [`decide_slowly`] finds it.
///
/// O(C P log S + K (P + R) + E P log S) for C open coflows, K candidates of P pairs each of which E
/// are estimated, and S spans a port. Where tasks read unequal parts, each candidate costs
/// O(tasks (log tasks + maps + racks)) more.
///
/// # Errors
/// When the tasks cannot be placed.
///
/// # Source
/// The candidates of Co-scheduler's Algorithm 1 (section IV-F) and ours; the network's side after
/// Sunflow (CoNEXT 2016), section 4.
pub fn decide(
    topology: &Topology,
    standing: &NetworkState,
    request: &PlacementRequest,
) -> Result<Proposal, NoPlacement> {
    let search = CandidateSearch { standing, request, busy: &Occupancy::new(topology, standing) };
    let mut drafts = search.drafts(topology, |s, moved, start| {
        let least = s.busy.least(moved, start);
        s.cost(start, least)
    })?;
    drafts.sort_by_key(|d| d.least);
    let (mut best, mut judged, mut excluded): (
        Option<(Candidate, ShuffleEstimate)>,
        Vec<Candidate>,
        Vec<Excluded>,
    ) = (None, vec![], vec![]);
    for d in drafts {
        let limit = best.as_ref().map(|(c, _)| (!c.on_time, c.score));
        match search.judge(d, limit) {
            Err(out) => excluded.push(out),
            Ok(new) => match &best {
                Some(old) if old.0.key() <= new.0.key() => judged.push(new.0),
                _ => judged.extend(best.replace(new).map(|old| old.0)),
            },
        }
    }
    excluded.sort_by(|a, b| {
        (a.late, a.least, a.origin, &a.racks).cmp(&(b.late, b.least, b.origin, &b.racks))
    });
    Ok(search.answer(best, judged, excluded))
}

/// The slow twin of [`decide`]: every candidate is estimated. The winner is the same, and nothing
/// is excluded. For tests and measurements.
///
/// # Errors
/// As [`decide`].
pub fn decide_slowly(
    topology: &Topology,
    standing: &NetworkState,
    request: &PlacementRequest,
) -> Result<Proposal, NoPlacement> {
    let search = CandidateSearch { standing, request, busy: &Occupancy::new(topology, standing) };
    let drafts = search.drafts(topology, |_, _, _| (false, Span::ZERO))?;
    let mut all: Vec<(Candidate, ShuffleEstimate)> =
        drafts.into_iter().filter_map(|d| search.judge(d, None).ok()).collect();
    all.sort_by(|a, b| a.0.key().cmp(&b.0.key()));
    let losers = all.split_off(all.len().min(1));
    Ok(search.answer(all.pop(), losers.into_iter().map(|l| l.0).collect(), vec![]))
}

struct CandidateSearch<'a> {
    standing: &'a NetworkState,
    request: &'a PlacementRequest,
    busy: &'a Occupancy<'a>,
}

impl CandidateSearch<'_> {
    /// All candidates, each with what `least` says of it; at least one.
    fn drafts(
        &self,
        topology: &Topology,
        least: impl Fn(&Self, &[RackTransfer], Time) -> DraftCost,
    ) -> Result<Vec<DraftCandidate>, NoPlacement> {
        let found = match &self.request.shuffle {
            ShuffleSpec::Pairs(_) => {
                vec![(PlacementOrigin::Given, vec![], self.standing.now + self.request.ready)]
            }
            ShuffleSpec::Placed { reduces, .. } => {
                vec![(
                    PlacementOrigin::Given,
                    reduces.clone(),
                    self.standing.now + self.request.ready,
                )]
            }
            ShuffleSpec::Open { .. } => {
                candidates::all(topology, self.standing, self.busy, self.request)?
            }
        };
        let alone = found.len() == 1;
        let draft = |(origin, racks, start): candidates::FoundPlacement| {
            let least =
                if alone { (false, Span::ZERO) } else { least(self, &self.moved(&racks), start) };
            DraftCandidate { origin, racks, start, least }
        };
        Ok(found.into_iter().map(draft).collect())
    }

    /// The bytes of a placement.
    fn moved(&self, racks: &[(RackId, u32)]) -> Vec<RackTransfer> {
        match &self.request.shuffle {
            ShuffleSpec::Pairs(pairs) => transfers(pairs),
            ShuffleSpec::Open { maps, by_task, .. } if !by_task.is_empty() => {
                Skewed { maps, by_task }.coflow(racks)
            }
            ShuffleSpec::Placed { maps, .. } | ShuffleSpec::Open { maps, .. } => {
                coflow(maps, racks)
            }
        }
    }

    /// By reduce task: its rack, where tasks differ.
    fn tasks(&self, racks: &[(RackId, u32)]) -> Vec<RackId> {
        match &self.request.shuffle {
            ShuffleSpec::Open { maps, by_task, .. } => Skewed { maps, by_task }.assign(racks),
            ShuffleSpec::Pairs(_) | ShuffleSpec::Placed { .. } => vec![],
        }
    }

    fn cost(&self, start: Time, c: Least) -> DraftCost {
        let finish = start + c.cct;
        (!self.on_time(finish), finish.since(self.standing.now) + c.others)
    }

    fn on_time(&self, finish: Time) -> bool {
        self.request.deadline.is_none_or(|d| finish <= self.standing.now + d)
    }

    /// Its estimate; or nothing but a bound if that is beyond `limit`.
    fn judge(
        &self,
        d: DraftCandidate,
        limit: Option<DraftCost>,
    ) -> Result<(Candidate, ShuffleEstimate), Excluded> {
        let beyond = |least: DraftCost| limit.is_some_and(|l| least > l);
        let go_on = |cct, others| {
            let least = self.cost(d.start, Least { cct, others });
            if beyond(least) { Err(least) } else { Ok(()) }
        };
        let found = if beyond(d.least) {
            Err(d.least)
        } else {
            self.busy.estimate_while(&self.moved(&d.racks), d.start, go_on)
        };
        match found {
            Err((late, least)) => {
                Err(Excluded { origin: d.origin, racks: d.racks, start: d.start, late, least })
            }
            Ok(e) => {
                let (late, score) = self.cost(d.start, Least { cct: e.cct, others: e.others });
                let DraftCandidate { origin, racks, start, .. } = d;
                Ok((
                    Candidate {
                        origin,
                        racks,
                        start,
                        cct: e.cct,
                        bound: e.bound,
                        others: e.others,
                        on_time: !late,
                        score,
                    },
                    e,
                ))
            }
        }
    }

    fn answer(
        &self,
        best: Option<(Candidate, ShuffleEstimate)>,
        mut losers: Vec<Candidate>,
        excluded: Vec<Excluded>,
    ) -> Proposal {
        let (chosen, e) = best.expect("the first candidate is never given up");
        losers.sort_by(|a, b| a.key().cmp(&b.key()));
        let tasks = self.tasks(&chosen.racks);
        Proposal { chosen, tasks, pairs: e.pairs, circuits: e.circuits, losers, excluded }
    }
}

fn transfers(pairs: &[RackBytes]) -> Vec<RackTransfer> {
    pairs.iter().map(|p| RackTransfer { from: p.from, to: p.to, bytes: p.bytes }).collect()
}
