//! The coflows of which something may change yet, shared by the controller and its snapshots.

use std::sync::Arc;

use rpds::RedBlackTreeMapSync;
use serde::{Serialize, Serializer};

use super::account::{Account, SharedAccount};
use super::coflow::CoflowView;
use crate::ids::CoflowId;
use crate::placement::advisor::PendingCoflow;
use crate::units::Bytes;

/// Accounts by number. Cloning costs O(1): the two share all that neither changes, and a change
/// copies one account and O(log n) links to others. What a snapshot shows of an account is made
/// when it is first asked for, by the thread that asks.
#[derive(Clone, Debug, Default)]
pub struct LiveAccounts(RedBlackTreeMapSync<CoflowId, SharedAccount>);

impl LiveAccounts {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.size()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their numbers. Costs nothing but the walk.
    pub fn ids(&self) -> impl Iterator<Item = CoflowId> + '_ {
        self.0.keys().copied()
    }

    /// All of them as the API shows them, by id.
    pub fn iter(&self) -> impl Iterator<Item = &CoflowView> {
        self.0.values().map(SharedAccount::view)
    }

    /// The coflow of this number as the API shows it. O(log n), and its pairs at the first call
    /// after a change.
    pub fn get(&self, id: CoflowId) -> Option<&CoflowView> {
        self.0.get(&id).map(SharedAccount::view)
    }

    /// What the network still has to carry of the open ones, by id; aggregates that began at
    /// `threshold` or above are heavy. O(n, and the pairs of those that have changed).
    pub fn to_carry(&self, threshold: Bytes) -> Vec<Arc<PendingCoflow>> {
        self.0.values().filter(|a| a.open()).map(|a| a.to_carry(threshold)).collect()
    }

    /// The account of this number.
    pub(super) fn account(&self, id: CoflowId) -> Option<&Account> {
        self.0.get(&id).map(|k| &**k)
    }

    /// The same, to be changed. O(log n), and its pairs if a snapshot shares it.
    pub(super) fn account_mut(&mut self, id: CoflowId) -> Option<&mut Account> {
        self.0.get_mut(&id).map(|k| &mut **k)
    }

    /// All accounts, by id.
    pub(super) fn accounts(&self) -> impl Iterator<Item = (CoflowId, &SharedAccount)> {
        self.0.iter().map(|(id, a)| (*id, a))
    }

    pub(super) fn insert(&mut self, id: CoflowId, account: Account) {
        self.0.insert_mut(id, SharedAccount::new(id, account));
    }

    /// Removes an account; what the API shows of it is made for good.
    pub(super) fn remove(&mut self, id: CoflowId) -> Option<Arc<CoflowView>> {
        let view = self.0.get(&id).map(SharedAccount::shared_view);
        self.0.remove_mut(&id);
        view
    }
}

impl PartialEq for LiveAccounts {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Serialize for LiveAccounts {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter())
    }
}
