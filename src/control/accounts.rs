//! The coflows that the controller knows: what they asked, what has arrived, and by which way.

use std::collections::{BTreeMap, BTreeSet};

use super::record::CoflowView;
use super::{ProgressBy, Rejected};
use crate::circuits::OpenCoflow;
use crate::coflows::RackBytes;
use crate::demand::DemandMatrix;
use crate::ids::{CoflowId, RackId};
use crate::placement::codecide::Open;
use crate::units::{Bytes, Span, Time};

/// One pair of racks of one coflow.
#[derive(Clone, Debug)]
struct Pair {
    from: RackId,
    to: RackId,
    asked: u64,
    received: u64,
    /// Of `received`, what has been split between circuits and EPS already.
    split: u64,
    over_ocs: u64,
}

#[derive(Clone, Debug)]
struct Account {
    name: String,
    arrival: Time,
    bound: Span,
    weight: u32,
    progress: ProgressBy,
    /// By sender, then receiver.
    pairs: Vec<Pair>,
    /// The most that a pair asked.
    largest: u64,
    finished: Option<Time>,
    cancelled: Option<Time>,
    /// Some bytes that have arrived may not be split.
    news: bool,
}

impl Account {
    fn open(&self) -> bool {
        self.finished.is_none() && self.cancelled.is_none()
    }

    /// Whether a pair asked `threshold` or more.
    fn is_heavy(&self, threshold: Bytes) -> bool {
        self.largest >= threshold.0
    }
}

/// The accounts of all coflows.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    coflows: BTreeMap<CoflowId, Account>,
    /// Those that are open, or have bytes that are not split: in all others nothing will change any more.
    live: BTreeSet<CoflowId>,
    /// Open ones whose progress is read from the ToRs' counters.
    by_counters: usize,
}

impl Accounts {
    /// Opens an account.
    ///
    /// # Errors
    /// The id is in use, a rack does not exist or a pair stands twice.
    pub fn open(
        &mut self,
        (id, name, weight): (CoflowId, String, u32),
        pairs: &[RackBytes],
        bound: Span,
        progress: ProgressBy,
        (now, racks): (Time, usize),
    ) -> Result<Bytes, Rejected> {
        if self.coflows.contains_key(&id) {
            return Err(Rejected::Conflict(format!("coflow {} is known already", id.0)));
        }
        let mut by_pair = BTreeMap::new();
        for p in pairs {
            if p.from.index() >= racks || p.to.index() >= racks {
                return Err(Rejected::Invalid(format!("racks are 0 to {}, not {} -> {}", racks - 1, p.from.0, p.to.0)));
            }
            if p.from != p.to && by_pair.insert((p.from, p.to), p.bytes.0).is_some() {
                return Err(Rejected::Invalid(format!("the pair {} -> {} stands twice", p.from.0, p.to.0)));
            }
        }
        let pairs: Vec<Pair> =
            by_pair.into_iter().map(|((from, to), asked)| Pair { from, to, asked, received: 0, split: 0, over_ocs: 0 }).collect();
        let bytes = pairs.iter().map(|p| Bytes(p.asked)).sum();
        self.by_counters += usize::from(progress == ProgressBy::Counters);
        let largest = pairs.iter().map(|p| p.asked).max().unwrap_or(0);
        let (finished, cancelled, news) = (None, None, false);
        let account = Account { name, arrival: now, bound, weight, progress, pairs, largest, finished, cancelled, news };
        self.coflows.insert(id, account);
        self.live.insert(id);
        Ok(bytes)
    }

    /// Takes note of what a sender says has arrived, cumulative by pair; pairs that were never asked are ignored.
    ///
    /// # Errors
    /// No such coflow.
    pub fn progress(&mut self, id: CoflowId, received: &[RackBytes]) -> Result<(), Rejected> {
        let a = self.get_mut(id)?;
        a.news |= !received.is_empty();
        let mut next = 0;
        for r in received {
            // Who reports all pairs in their order is understood without a search.
            let is_next = a.pairs.get(next).is_some_and(|p| (p.from, p.to) == (r.from, r.to));
            let found = if is_next { Ok(next) } else { a.pairs.binary_search_by_key(&(r.from, r.to), |p| (p.from, p.to)) };
            if let Ok(k) = found {
                let p = &mut a.pairs[k];
                p.received = p.received.max(r.bytes.0.min(p.asked));
                next = k + 1;
            }
        }
        Ok(())
    }

    /// Whether a coflow is open.
    ///
    /// # Errors
    /// No such coflow, or it is closed.
    pub fn expect_open(&mut self, id: CoflowId) -> Result<(), Rejected> {
        self.open_mut(id).map(|_| ())
    }

    /// Closes an account; returns the completion time.
    ///
    /// # Errors
    /// No such coflow, or it is closed.
    pub fn finish(&mut self, id: CoflowId, at: Time) -> Result<Span, Rejected> {
        let a = self.open_mut(id)?;
        (a.finished, a.news) = (Some(at), true);
        for p in &mut a.pairs {
            p.received = p.asked;
        }
        let (cct, counted) = (at.since(a.arrival), a.progress == ProgressBy::Counters);
        self.by_counters -= usize::from(counted);
        Ok(cct)
    }

    /// Forgets what a coflow still has to send.
    ///
    /// # Errors
    /// No such coflow, or it is closed.
    pub fn cancel(&mut self, id: CoflowId, now: Time) -> Result<(), Rejected> {
        let a = self.open_mut(id)?;
        a.cancelled = Some(now);
        let counted = a.progress == ProgressBy::Counters;
        self.by_counters -= usize::from(counted);
        Ok(())
    }

    /// Whether the progress of an open coflow is read from the ToRs' counters.
    pub fn read_counters(&self) -> bool {
        self.by_counters > 0
    }

    /// Whether any coflow is open.
    pub fn any_open(&self) -> bool {
        self.open_accounts().next().is_some()
    }

    fn get_mut(&mut self, id: CoflowId) -> Result<&mut Account, Rejected> {
        self.coflows.get_mut(&id).ok_or_else(|| Rejected::NotFound(format!("coflow {}", id.0)))
    }

    fn open_mut(&mut self, id: CoflowId) -> Result<&mut Account, Rejected> {
        let a = self.get_mut(id)?;
        if a.open() { Ok(a) } else { Err(Rejected::Conflict(format!("coflow {} is over", id.0))) }
    }

    /// Reads the ToRs' counters: `gained` says of a pair of racks how many bytes were sent since the last call, and how many of
    /// them over circuits. Gives bytes to coflows whose progress nobody reports, the oldest of a pair first, and splits every
    /// coflow's new bytes in the proportion in which the pair's bytes went over circuits. The proportion is exact for a pair,
    /// and an estimate for coflows that share one. Returns the coflows that this finished. O(pairs of coflows of which there is news,
    /// and coflows that are open).
    pub fn count(&mut self, gained: impl Fn(RackId, RackId) -> (u64, u64)) -> Vec<CoflowId> {
        // What no coflow has been given yet.
        let mut left: BTreeMap<(RackId, RackId), u64> = BTreeMap::new();
        let mut done = vec![];
        let counted = |a: &Account| a.progress == ProgressBy::Counters && a.open();
        self.live.retain(|id| {
            let a = self.coflows.get_mut(id).expect("a live coflow has an account");
            if !(a.news || !a.open() || counted(a)) {
                return true;
            }
            if counted(a) {
                for p in &mut a.pairs {
                    let left = left.entry((p.from, p.to)).or_insert_with(|| gained(p.from, p.to).0);
                    let got = (*left).min(p.asked - p.received);
                    *left -= got;
                    p.received += got;
                }
                if a.pairs.iter().all(|p| p.received == p.asked) {
                    done.push(*id);
                }
            }
            for p in a.pairs.iter_mut().filter(|p| p.split < p.received) {
                let (s, o) = gained(p.from, p.to);
                if s > 0 {
                    let part = u128::from(p.received - p.split) * u128::from(o.min(s)) / u128::from(s);
                    p.over_ocs += part as u64;
                    p.split = p.received;
                }
            }
            a.news = a.pairs.iter().any(|p| p.split < p.received);
            a.open() || a.news
        });
        done
    }

    fn open_accounts(&self) -> impl Iterator<Item = (CoflowId, &Account)> {
        self.live.iter().map(|id| (*id, &self.coflows[id])).filter(|(_, a)| a.open())
    }

    /// Whether a coflow is open and counts in [`Self::remaining`].
    pub fn is_heavy(&self, id: CoflowId, threshold: Bytes) -> bool {
        self.coflows.get(&id).is_some_and(|a| a.open() && a.is_heavy(threshold))
    }

    /// What the open coflows still have to send, by rack pair; aggregates of a coflow that began below `threshold` are left out.
    pub fn remaining(&self, racks: usize, threshold: Bytes) -> DemandMatrix {
        let mut m = DemandMatrix::zero(racks);
        let heavy = self.open_accounts().filter(|(_, a)| a.is_heavy(threshold));
        for p in heavy.flat_map(|(_, a)| &a.pairs).filter(|p| p.asked >= threshold.0) {
            m.add(p.from, p.to, p.asked - p.received);
        }
        m
    }

    /// The open coflows, by id, with the same pairs as [`Self::remaining`]; those without such pairs are left out.
    pub fn open_coflows(&self, threshold: Bytes) -> Vec<OpenCoflow> {
        let coflow = |(id, a): (CoflowId, &Account)| OpenCoflow {
            id,
            arrival: a.arrival,
            weight: a.weight,
            sent: a.pairs.iter().fold(0, |s, p| s.saturating_add(p.received)),
            rest: a
                .pairs
                .iter()
                .filter(|p| p.asked >= threshold.0 && p.received < p.asked)
                .map(|p| (p.from, p.to, p.asked - p.received))
                .collect(),
        };
        self.open_accounts().filter(|(_, a)| a.is_heavy(threshold)).map(coflow).collect()
    }

    /// Whether a coflow was taken back, or broke.
    pub fn is_cancelled(&self, id: CoflowId) -> bool {
        self.coflows.get(&id).is_some_and(|a| a.cancelled.is_some())
    }

    /// Whether a number was ever in use.
    pub fn knows(&self, id: CoflowId) -> bool {
        self.coflows.contains_key(&id)
    }

    /// What the network still has to carry of the open coflows, by id; aggregates that began at `threshold` or above are heavy.
    pub fn to_carry(&self, threshold: Bytes) -> Vec<Open> {
        let coflow = |(id, a): (CoflowId, &Account)| {
            let left = |heavy: bool| {
                let of = a.pairs.iter().filter(move |p| (p.asked >= threshold.0) == heavy && p.received < p.asked);
                of.map(|p| RackBytes { from: p.from, to: p.to, bytes: Bytes(p.asked - p.received) }).collect()
            };
            Open { id, start: a.arrival, heavy: left(true), light: left(false) }
        };
        self.open_accounts().map(coflow).collect()
    }

    /// All accounts, by id, as the API shows them.
    pub fn views(&self) -> Vec<CoflowView> {
        self.coflows.iter().map(|(&id, a)| view(id, a)).collect()
    }
}

fn view(id: CoflowId, a: &Account) -> CoflowView {
    let sum = |f: fn(&Pair) -> u64| Bytes(a.pairs.iter().map(f).fold(0, u64::saturating_add));
    CoflowView {
        id,
        name: a.name.clone(),
        arrival: a.arrival,
        pairs: a.pairs.iter().map(|p| RackBytes { from: p.from, to: p.to, bytes: Bytes(p.asked) }).collect(),
        bytes: sum(|p| p.asked),
        received: sum(|p| p.received),
        over_ocs: sum(|p| p.over_ocs),
        finished: a.finished,
        cancelled: a.cancelled,
        cct: a.finished.map(|t| t.since(a.arrival)),
        bound: a.bound,
    }
}
