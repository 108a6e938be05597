//! The coflows that the controller knows: what they asked, what has arrived, and by which way.

use std::collections::{BTreeSet, VecDeque};

use super::account::Account;
use super::closed::Closed;
use super::counter_progress::CounterProgress;
use super::histogram::Histogram;
use super::live::LiveAccounts;
use super::previous_run::{LOST, PreviousRun};
use super::record::{CoflowTotals, CoflowView, Coflows};
use super::used_ids::UsedIds;
use super::{ProgressBy, Rejected};
use crate::circuits::OpenCoflow;
use crate::coflows::RackBytes;
use crate::coflows::flows::Edge;
use crate::coflows::priority::{LAST, Priorities, PriorityChange};
use crate::demand::DemandMatrix;
use crate::ids::{CoflowId, RackId};
use crate::units::{Bytes, Span, Time};

/// The most closed coflows that wait for the counters; where the counters are not read, the oldest
/// are closed without.
const MOST_WAITING: usize = 1000;
/// The most rack pairs of all of them together, but for the last one: 40 MB.
const MOST_WAITING_PAIRS: usize = 1 << 20;
/// Readings of the counters after which a closed coflow's bytes are on them: what is not split by
/// then will never be.
const LAST_READ: u8 = 2;

/// What a new account is opened with.
#[derive(Clone, Debug)]
pub struct Opening<'a> {
    /// Its number.
    pub id: CoflowId,
    /// What people call it.
    pub name: String,
    /// Its weight.
    pub weight: u32,
    /// Bytes by rack pair.
    pub pairs: &'a [RackBytes],
    /// Lower bound of its completion time.
    pub bound: Span,
    /// What tells when bytes have arrived.
    pub progress: ProgressBy,
    /// What is said of its flows' strict priorities.
    pub priorities: &'a Priorities,
}

/// The accounts of all coflows. It keeps what is open, the last that were closed, and sums.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    /// Coflows that are open, and those that are closed and have bytes that are not split: in all
    /// others nothing will change any more.
    live: LiveAccounts,
    /// The closed ones of `live`, in the order of their ends, and how often the counters were read
    /// since each was closed.
    waiting: VecDeque<(CoflowId, u8)>,
    /// How many rack pairs these have.
    waiting_pairs: usize,
    /// Those of `live` of which bytes have arrived that are not yet told apart, by circuits and by
    /// EPS.
    news: BTreeSet<CoflowId>,
    /// Open ones whose progress is read from the ToRs' counters.
    by_counters: CounterProgress,
    /// The last of the others.
    closed: Closed,
    totals: CoflowTotals,
    /// Completion times of those that have finished.
    ccts: Histogram,
    /// All numbers that were given, those of proposals included.
    used: UsedIds,
}

/// Whether pairs are of racks that exist.
///
/// # Errors
/// The first that is not.
pub fn check_racks(
    pairs: impl IntoIterator<Item = (RackId, RackId)>,
    racks: usize,
) -> Result<(), Rejected> {
    let wrong = pairs.into_iter().find(|(from, to)| from.index().max(to.index()) >= racks);
    wrong.map_or(Ok(()), |(from, to)| {
        Err(Rejected::Invalid(format!("racks are 0 to {}, not {} -> {}", racks - 1, from.0, to.0)))
    })
}

impl Accounts {
    /// Goes on from the accounts of an earlier controller. What was open there is cancelled; gives
    /// the numbers of these coflows.
    ///
    /// # Errors
    /// There are accounts already, or racks of which the records tell do not exist.
    pub fn resume(
        &mut self,
        mut past: PreviousRun,
        now: Time,
        racks: usize,
    ) -> Result<Vec<CoflowId>, Rejected> {
        if self.used.max().is_some() {
            return Err(Rejected::Conflict(
                "coflows have begun already: records of an earlier controller come first".into(),
            ));
        }
        let all = past.closed.iter().chain(&past.open);
        check_racks(all.flat_map(|c| c.pairs.iter()).map(|p| (p.from, p.to)), racks)?;
        let lost = past.open.iter().map(|c| c.id).collect();
        for view in std::mem::take(&mut past.open) {
            past.end(CoflowView { cancelled: Some(now), why: Some(LOST.into()), ..view });
        }
        (self.closed, self.totals, self.used) = (past.closed, past.totals, past.used);
        Ok(lost)
    }

    /// Takes a number for a coflow, or for a proposal.
    ///
    /// # Errors
    /// The number was used before.
    pub fn claim(&mut self, id: CoflowId) -> Result<(), Rejected> {
        if self.used.insert(id) {
            Ok(())
        } else {
            Err(Rejected::Conflict(format!("coflow {} is known already", id.0)))
        }
    }

    /// Opens an account under a number that was claimed. Gives its bytes between racks.
    ///
    /// # Errors
    /// A rack does not exist or a pair is listed twice.
    pub fn open(&mut self, new: Opening<'_>, now: Time, racks: usize) -> Result<Bytes, Rejected> {
        let pairs = Self::pairs(new.pairs, racks)?;
        let bytes = pairs.iter().map(|p| p.bytes).sum();
        if new.progress == ProgressBy::Counters {
            self.by_counters.insert(new.id, &pairs);
        }
        let account =
            Account::new(new.name, now, new.bound, new.weight, new.priorities.into(), pairs);
        self.live.insert(new.id, account);
        Ok(bytes)
    }

    /// Claims a number and opens an account under it; nothing is claimed if it cannot be opened.
    ///
    /// # Errors
    /// Those of [`Accounts::claim`] and [`Accounts::open`].
    pub fn declare(
        &mut self,
        new: Opening<'_>,
        now: Time,
        racks: usize,
    ) -> Result<Bytes, Rejected> {
        Self::check(new.pairs, racks)?;
        self.claim(new.id)?;
        self.open(new, now, racks)
    }

    /// Whether an account can be opened with these pairs.
    ///
    /// # Errors
    /// A rack does not exist or a pair is listed twice.
    pub fn check(pairs: &[RackBytes], racks: usize) -> Result<(), Rejected> {
        Self::pairs(pairs, racks).map(drop)
    }

    fn pairs(given: &[RackBytes], racks: usize) -> Result<Vec<RackBytes>, Rejected> {
        check_racks(given.iter().map(|p| (p.from, p.to)), racks)?;
        let mut pairs: Vec<RackBytes> = given.iter().filter(|p| p.from != p.to).copied().collect();
        // A workload's are in their order already, and may be a million.
        if !pairs.is_sorted_by_key(|p| (p.from, p.to)) {
            pairs.sort_unstable_by_key(|p| (p.from, p.to));
        }
        match pairs.windows(2).find(|two| (two[0].from, two[0].to) == (two[1].from, two[1].to)) {
            Some([p, ..]) => Err(Rejected::Invalid(format!(
                "the pair {} -> {} is listed twice",
                p.from.0, p.to.0
            ))),
            _ => Ok(pairs),
        }
    }

    /// Takes note of what a sender says has arrived, cumulative by pair; pairs that were never
    /// asked are ignored.
    ///
    /// # Errors
    /// No such coflow.
    pub fn progress(&mut self, id: CoflowId, received: &[RackBytes]) -> Result<(), Rejected> {
        if !self.is_open(id) {
            // A report that comes late, of a coflow that is over.
            return if self.used.contains(id) { Ok(()) } else { Err(unknown(id)) };
        }
        let Some(a) = self.live.account_mut(id).filter(|_| !received.is_empty()) else {
            return Ok(());
        };
        self.news.insert(id);
        let mut next = 0;
        for r in received {
            // A report of all pairs in their order is read without a search.
            let is_next = next < a.pairs.len() && a.pairs.at(next).ends() == r.ends();
            let found = if is_next { Some(next) } else { a.pairs.place(r.ends()) };
            if let Some(k) = found {
                let most = r.bytes.min(a.pairs.at(k).bytes).0;
                let got = a.got_mut(k);
                got.received = got.received.max(most);
                next = k + 1;
            }
        }
        Ok(())
    }

    /// Whether a coflow is open.
    ///
    /// # Errors
    /// No such coflow, or it is closed.
    pub fn expect_open(&self, id: CoflowId) -> Result<(), Rejected> {
        match self.is_open(id) {
            true => Ok(()),
            false if self.used.contains(id) => {
                Err(Rejected::Conflict(format!("coflow {} is over", id.0)))
            }
            false => Err(unknown(id)),
        }
    }

    /// Whether a coflow is open and a client sends it.
    ///
    /// # Errors
    /// No such coflow, it is closed, or Heliostat sends it.
    pub fn expect_counted(&self, id: CoflowId) -> Result<(), Rejected> {
        self.expect_open(id)?;
        let sent_here = || {
            Rejected::Conflict(format!(
                "coflow {} is sent by Heliostat, which knows when it finishes",
                id.0
            ))
        };
        if self.by_counters.contains(id) { Ok(()) } else { Err(sent_here()) }
    }

    /// Takes note of other strict priorities of an open coflow's flows, and gives what is new of
    /// them.
    ///
    /// # Errors
    /// No such coflow, it is closed, or there is no such priority; nothing has changed then.
    pub fn prioritise(
        &mut self,
        id: CoflowId,
        change: &PriorityChange,
    ) -> Result<PriorityChange, Rejected> {
        let a = self.open_mut(id)?;
        change.wrong().map_or(Ok(()), |p| {
            Err(Rejected::Invalid(format!("no priority {p}: they are 0 (first) to {LAST}")))
        })?;
        Ok(a.said.change(change))
    }

    /// Closes an account; returns the completion time.
    ///
    /// # Errors
    /// No such coflow, or it is closed.
    pub fn finish(&mut self, id: CoflowId, at: Time) -> Result<Span, Rejected> {
        let a = self.open_mut(id)?;
        a.finished = Some(at);
        let cct = at.since(a.arrival);
        self.news.insert(id);
        self.totals.finished += 1;
        self.ccts.add(cct, 1);
        self.close(id, at);
        Ok(cct)
    }

    /// Completion times of all coflows that have finished since the start.
    pub fn completion_times(&self) -> &Histogram {
        &self.ccts
    }

    /// Forgets what a coflow still has to send; `why` if it broke.
    ///
    /// # Errors
    /// No such coflow, or it is closed.
    pub fn cancel(&mut self, id: CoflowId, why: Option<String>, now: Time) -> Result<(), Rejected> {
        let a = self.open_mut(id)?;
        (a.cancelled, a.why) = (Some(now), why);
        self.totals.cancelled += 1;
        self.close(id, now);
        Ok(())
    }

    fn close(&mut self, id: CoflowId, at: Time) {
        let Some(a) = self.live.account(id) else { return };
        self.by_counters.remove(id, &a.pairs);
        let ([_, received, _], pairs) = (a.sums(), a.pairs.len());
        self.totals.received = self.totals.received.saturating_add(received);
        self.waiting.push_back((id, 0));
        self.waiting_pairs += pairs;
        while (self.waiting.len() > MOST_WAITING
            || self.waiting_pairs > MOST_WAITING_PAIRS && self.waiting.len() > 1)
            && let Some((oldest, _)) = self.waiting.pop_front()
        {
            self.retire(oldest, at);
        }
    }

    /// Nothing of this coflow changes any more: its view is made for good.
    fn retire(&mut self, id: CoflowId, now: Time) {
        self.news.remove(&id);
        if let Some(view) = self.live.remove(id) {
            self.waiting_pairs -= view.pairs.len();
            self.closed.push(view, now);
        }
    }

    /// Whether the progress of an open coflow is read from the ToRs' counters.
    pub fn read_counters(&self) -> bool {
        !self.by_counters.is_empty()
    }

    /// The pairs of racks of which coflows that clients send wait for bytes, and of which they
    /// began with `threshold` or more. O(pairs that such coflows wait for).
    pub fn elephants_of_clients(&self, threshold: Bytes) -> BTreeSet<(RackId, RackId)> {
        let asked = |id: CoflowId, pair| {
            let pairs = &self.live.account(id)?.pairs;
            Some(pairs.at(pairs.place(pair)?).bytes)
        };
        let is_one =
            |(pair, id): &((RackId, RackId), CoflowId)| asked(*id, *pair) >= Some(threshold);
        self.by_counters.waiting().filter(is_one).map(|(pair, _)| pair).collect()
    }

    /// Whether any coflow is open.
    pub fn any_open(&self) -> bool {
        self.open_count() > 0
    }

    /// How many coflows are open.
    fn open_count(&self) -> usize {
        self.live.len() - self.waiting.len()
    }

    fn is_open(&self, id: CoflowId) -> bool {
        self.live.account(id).is_some_and(Account::open)
    }

    fn open_mut(&mut self, id: CoflowId) -> Result<&mut Account, Rejected> {
        self.expect_open(id)?;
        self.live.account_mut(id).ok_or_else(|| unknown(id))
    }

    /// Reads the ToRs' counters: `gained` says of a pair of racks how many bytes were sent since
    /// the last call, and how many of them over circuits; `held` what ToRs hold of it for a
    /// circuit. Gives bytes to coflows whose progress is
    /// not reported, the oldest of a pair first, and splits every coflow's new bytes in the
    /// proportion in which the pair's bytes went over circuits. The proportion is exact for a pair,
    /// and an estimate for coflows that share one. Returns the coflows that this finished. O(pairs
    /// that such coflows wait for, and pairs of the coflows of which there is news or that get
    /// bytes).
    pub fn count(
        &mut self,
        gained: impl Fn(RackId, RackId) -> (u64, u64),
        held: impl Fn(RackId, RackId) -> u64,
        now: Time,
    ) -> Vec<CoflowId> {
        let mut done = vec![];
        self.waiting.iter_mut().for_each(|w| w.1 += 1);
        let sent = |from, to| gained(from, to).0;
        let given = self.by_counters.give(&mut self.live, sent, held);
        for id in self.news.union(&given).copied().collect::<Vec<_>>() {
            let Some(a) = self.live.account_mut(id) else { continue };
            if self.by_counters.contains(id) && a.waiting().all(|p| p.1 == 0) {
                done.push(id);
            }
            if a.split(&gained) {
                self.news.insert(id)
            } else {
                self.news.remove(&id)
            };
        }
        let settled =
            |&(id, reads): &(CoflowId, u8)| !self.news.contains(&id) || reads >= LAST_READ;
        let (over, wait): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(settled);
        self.waiting = wait;
        over.into_iter().for_each(|(id, _)| self.retire(id, now));
        done
    }

    fn open_accounts(&self) -> impl Iterator<Item = (CoflowId, &Account)> {
        self.live.accounts().map(|(id, a)| (id, &**a)).filter(|(_, a)| a.open())
    }

    /// Whether a coflow is open and counts in [`Self::remaining`].
    pub fn is_heavy(&self, id: CoflowId, threshold: Bytes) -> bool {
        self.live.account(id).is_some_and(|a| a.open() && a.is_heavy(threshold))
    }

    /// What the open coflows still have to send, by rack pair; aggregates of a coflow that began
    /// below `threshold` are left out.
    pub fn remaining(&self, racks: usize, threshold: Bytes) -> DemandMatrix {
        let mut m = DemandMatrix::zero(racks);
        let heavy = self.open_accounts().filter(|(_, a)| a.is_heavy(threshold));
        for (p, left) in heavy.flat_map(|(_, a)| a.waiting()).filter(|(p, _)| p.bytes >= threshold)
        {
            m.add(p.from, p.to, left);
        }
        m
    }

    /// The open coflows, by id, with the same pairs as [`Self::remaining`]; those without such
    /// pairs are left out.
    pub fn open_coflows(&self, threshold: Bytes) -> Vec<OpenCoflow> {
        let coflow = |(id, a): (CoflowId, &Account)| OpenCoflow {
            id,
            arrival: a.arrival,
            weight: a.weight,
            sent: a.sums()[1].0,
            rest: a
                .waiting()
                .filter(|(p, left)| p.bytes >= threshold && *left > 0)
                .map(|(p, left)| (p.from, p.to, left))
                .collect(),
        };
        self.open_accounts().filter(|(_, a)| a.is_heavy(threshold)).map(coflow).collect()
    }

    /// Whether a coflow was taken back, or broke, as far as that is remembered.
    pub fn is_cancelled(&self, id: CoflowId) -> bool {
        let cancelled = self.live.account(id).map(|a| a.cancelled);
        cancelled.or_else(|| self.closed.get(id).map(|c| c.cancelled)).flatten().is_some()
    }

    /// The coflows of which something may change yet. Cloning them costs O(1).
    pub fn live(&self) -> &LiveAccounts {
        &self.live
    }

    /// The accounts as the API shows them. O(1) but for the closed ones, which are shared in
    /// chunks.
    pub fn views(&self) -> Coflows {
        let (live, open) = (self.live.clone(), self.open_count());
        Coflows {
            live,
            open,
            closed: self.closed.clone(),
            totals: self.totals,
            used: self.used.clone(),
        }
    }
}

fn unknown(id: CoflowId) -> Rejected {
    Rejected::NotFound(format!("coflow {}", id.0))
}

#[cfg(test)]
mod tests;
