//! The account of one coflow, and what snapshots show of it.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use super::coflow::CoflowView;
use crate::coflows::RackBytes;
use crate::coflows::priority::Said;
use crate::ids::{CoflowId, RackId};
use crate::placement::codecide::Open;
use crate::units::{Bytes, Span, Time};

/// One pair of racks of one coflow.
#[derive(Clone, Debug)]
pub struct Pair {
    pub from: RackId,
    pub to: RackId,
    pub asked: u64,
    pub received: u64,
    /// Part of `received` that has been split between circuits and EPS already.
    pub split: u64,
    pub over_ocs: u64,
}

/// What is known of one coflow.
#[derive(Clone, Debug)]
pub struct Account {
    pub name: String,
    pub arrival: Time,
    pub bound: Span,
    pub weight: u32,
    /// What was said of its flows' strict priorities.
    pub said: Said,
    /// By sender, then receiver.
    pub pairs: Vec<Pair>,
    /// The most that a pair asked.
    pub largest: u64,
    pub finished: Option<Time>,
    pub cancelled: Option<Time>,
    pub why: Option<String>,
}

impl Account {
    pub fn open(&self) -> bool {
        self.finished.is_none() && self.cancelled.is_none()
    }

    /// Whether a pair asked `threshold` or more.
    pub fn is_heavy(&self, threshold: Bytes) -> bool {
        self.largest >= threshold.0
    }

    fn view(&self, id: CoflowId) -> CoflowView {
        let sum = |f: fn(&Pair) -> u64| Bytes(self.pairs.iter().map(f).fold(0, u64::saturating_add));
        CoflowView {
            id,
            name: self.name.clone(),
            arrival: self.arrival,
            pairs: self.pairs.iter().map(|p| RackBytes { from: p.from, to: p.to, bytes: Bytes(p.asked) }).collect(),
            bytes: sum(|p| p.asked),
            received: sum(|p| p.received),
            over_ocs: sum(|p| p.over_ocs),
            finished: self.finished,
            cancelled: self.cancelled,
            why: self.why.clone(),
            cct: self.finished.map(|t| t.since(self.arrival)),
            bound: self.bound,
            priority: self.said.all,
        }
    }

    fn to_carry(&self, id: CoflowId, threshold: Bytes) -> Open {
        let left = |heavy: bool| {
            let of = self.pairs.iter().filter(move |p| (p.asked >= threshold.0) == heavy && p.received < p.asked);
            of.map(|p| RackBytes { from: p.from, to: p.to, bytes: Bytes(p.asked - p.received) }).collect()
        };
        Open { id, start: self.arrival, heavy: left(true), light: left(false) }
    }
}

/// An account with what was made of it for a snapshot. The next snapshots share that until the account changes: whatever takes it by
/// `&mut` drops what was made.
#[derive(Clone, Debug)]
pub struct Kept {
    id: CoflowId,
    account: Account,
    view: OnceLock<Arc<CoflowView>>,
    /// With the threshold that it was made for.
    open: OnceLock<(Bytes, Arc<Open>)>,
}

impl Kept {
    pub fn new(id: CoflowId, account: Account) -> Self {
        Self { id, account, view: OnceLock::new(), open: OnceLock::new() }
    }

    /// It without what was made of it.
    #[cfg(test)]
    pub fn anew(&self) -> Self {
        Self::new(self.id, self.account.clone())
    }

    /// It as the API shows it. O(1) if it has not changed since the last call, else O(pairs).
    pub fn view(&self) -> &CoflowView {
        self.made()
    }

    /// The same, to be kept when the account is not.
    pub fn shared_view(&self) -> Arc<CoflowView> {
        self.made().clone()
    }

    fn made(&self) -> &Arc<CoflowView> {
        self.view.get_or_init(|| Arc::new(self.account.view(self.id)))
    }

    /// What the network still has to carry of it; aggregates that began at `threshold` or above are heavy. O(pairs) at the first
    /// call after a change, and with another threshold than that call had; else O(1).
    pub fn to_carry(&self, threshold: Bytes) -> Arc<Open> {
        let make = || Arc::new(self.account.to_carry(self.id, threshold));
        let (of, open) = self.open.get_or_init(|| (threshold, make()));
        if *of == threshold { open.clone() } else { make() }
    }
}

impl Deref for Kept {
    type Target = Account;

    fn deref(&self) -> &Account {
        &self.account
    }
}

impl DerefMut for Kept {
    fn deref_mut(&mut self) -> &mut Account {
        self.view.take();
        self.open.take();
        &mut self.account
    }
}
