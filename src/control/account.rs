//! The account of one coflow, and what snapshots show of it.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use super::coflow::CoflowView;
use crate::coflows::RackBytes;
use crate::coflows::flows::Pairs;
use crate::coflows::priority::Said;
use crate::ids::{CoflowId, RackId};
use crate::placement::advisor::PendingCoflow;
use crate::units::{Bytes, Span, Time};

/// What has arrived between two racks of one coflow, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Got {
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
    /// Bytes asked, by sender, then receiver; views share them.
    pub pairs: Pairs,
    /// By pair; empty until there is news of one, since a large coflow has a million pairs.
    got: Vec<Got>,
    /// The most that a pair asked.
    pub largest: Bytes,
    pub finished: Option<Time>,
    pub cancelled: Option<Time>,
    pub why: Option<String>,
}

impl Account {
    pub fn new(
        name: String,
        arrival: Time,
        bound: Span,
        weight: u32,
        said: Said,
        pairs: Vec<RackBytes>,
    ) -> Self {
        let largest = pairs.iter().map(|p| p.bytes).max().unwrap_or_default();
        let (pairs, got) = (pairs.into(), Vec::new());
        Self {
            name,
            arrival,
            bound,
            weight,
            said,
            pairs,
            got,
            largest,
            finished: None,
            cancelled: None,
            why: None,
        }
    }

    /// What has arrived of the pair at a place, to be changed.
    pub fn got_mut(&mut self, k: usize) -> &mut Got {
        &mut self.gots()[k]
    }

    /// Bytes that the pair at a place has still to get. O(1).
    pub fn left(&self, k: usize) -> u64 {
        self.pairs.at(k).bytes.0 - self.got.get(k).map_or(0, |got| got.received)
    }

    fn gots(&mut self) -> &mut [Got] {
        if self.got.is_empty() {
            self.got = vec![Got::default(); self.pairs.len()];
        }
        &mut self.got
    }

    /// Divides the bytes that have arrived and are not divided yet into those over circuits and
    /// those through the EPS, in the proportion in which all bytes of their pair of racks went
    /// either way. `gained(from, to)`: bytes that the pair's counters gained since they were last
    /// read, and how many of them over circuits. Where they gained nothing, counters are behind
    /// what senders report, and these bytes wait for the next reading. Returns whether any bytes
    /// wait. O(pairs).
    pub fn split(&mut self, gained: impl Fn(RackId, RackId) -> (u64, u64)) -> bool {
        let whole = self.finished.is_some();
        if self.got.is_empty() && !whole {
            return false;
        }
        let (pairs, mut left) = (self.pairs.clone(), false);
        for (p, got) in pairs.iter().zip(self.gots()) {
            if whole {
                got.received = p.bytes.0;
            }
            let fresh = got.received - got.split;
            let (sent, over_ocs) = if fresh > 0 { gained(p.from, p.to) } else { (0, 0) };
            if sent > 0 {
                got.over_ocs +=
                    (u128::from(fresh) * u128::from(over_ocs.min(sent)) / u128::from(sent)) as u64;
                got.split = got.received;
            }
            left |= got.split < got.received;
        }
        left
    }

    /// The pairs, each with the bytes that it has still to get.
    pub fn waiting(&self) -> impl Iterator<Item = (RackBytes, u64)> {
        let whole = self.finished.is_some();
        let received = move |k: usize, p: &RackBytes| {
            if whole { p.bytes.0 } else { self.got.get(k).map_or(0, |g| g.received) }
        };
        self.pairs.iter().enumerate().map(move |(k, p)| (p, p.bytes.0 - received(k, &p)))
    }

    /// Bytes asked, received, and among these over circuits, of all pairs.
    pub fn sums(&self) -> [Bytes; 3] {
        let asked = self.pairs.iter().map(|p| p.bytes).fold(Bytes::ZERO, Bytes::saturating_add);
        let sum = |of: fn(&Got) -> u64| Bytes(self.got.iter().map(of).fold(0, u64::saturating_add));
        [
            asked,
            if self.finished.is_some() { asked } else { sum(|g| g.received) },
            sum(|g| g.over_ocs),
        ]
    }

    pub fn open(&self) -> bool {
        self.finished.is_none() && self.cancelled.is_none()
    }

    /// Whether a pair asked `threshold` or more.
    pub fn is_heavy(&self, threshold: Bytes) -> bool {
        self.largest >= threshold
    }

    fn view(&self, id: CoflowId) -> CoflowView {
        let [bytes, received, over_ocs] = self.sums();
        CoflowView {
            id,
            name: self.name.clone(),
            arrival: self.arrival,
            pairs: self.pairs.clone(),
            bytes,
            received,
            over_ocs,
            finished: self.finished,
            cancelled: self.cancelled,
            why: self.why.clone(),
            cct: self.finished.map(|t| t.since(self.arrival)),
            bound: self.bound,
            priority: self.said.all,
        }
    }

    fn to_carry(&self, id: CoflowId, threshold: Bytes) -> PendingCoflow {
        let left = |heavy: bool| {
            let of = self
                .waiting()
                .filter(move |(p, left)| (p.bytes >= threshold) == heavy && *left > 0);
            of.map(|(p, left)| RackBytes { bytes: Bytes(left), ..p }).collect()
        };
        PendingCoflow { id, start: self.arrival, heavy: left(true), light: left(false) }
    }
}

/// An account with what was made of it for a snapshot. The next snapshots share that until the
/// account changes: whatever takes it by `&mut` drops what was made.
#[derive(Clone, Debug)]
pub struct SharedAccount {
    id: CoflowId,
    account: Account,
    view: OnceLock<Arc<CoflowView>>,
    /// With the threshold that it was made for.
    open: OnceLock<(Bytes, Arc<PendingCoflow>)>,
}

impl SharedAccount {
    pub fn new(id: CoflowId, account: Account) -> Self {
        Self { id, account, view: OnceLock::new(), open: OnceLock::new() }
    }

    /// It without what was made of it.
    #[cfg(test)]
    pub fn recounted(&self) -> Self {
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

    /// What the network still has to carry of it; aggregates that began at `threshold` or above are
    /// heavy. O(pairs) at the first call after a change, and with another threshold than that call
    /// had; else O(1).
    pub fn to_carry(&self, threshold: Bytes) -> Arc<PendingCoflow> {
        let make = || Arc::new(self.account.to_carry(self.id, threshold));
        let (of, open) = self.open.get_or_init(|| (threshold, make()));
        if *of == threshold { open.clone() } else { make() }
    }
}

impl Deref for SharedAccount {
    type Target = Account;

    fn deref(&self) -> &Account {
        &self.account
    }
}

impl DerefMut for SharedAccount {
    fn deref_mut(&mut self) -> &mut Account {
        self.view.take();
        self.open.take();
        &mut self.account
    }
}
