//! Coflows that were proposed: held for a time, then confirmed, taken back or forgotten.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Rejected;
use super::record::{ProposalState, ProposalView};
use crate::coflows::RackBytes;
use crate::ids::CoflowId;
use crate::placement::advisor::PendingCoflow;
use crate::units::{Bytes, Time};

/// The most that are held at once.
const MAX_HELD: usize = 1000;
/// The most that are remembered, those held left out.
const MAX_KEPT: usize = 1000;

/// All promises, by id.
#[derive(Clone, Debug, Default)]
pub struct Proposals {
    all: BTreeMap<CoflowId, Arc<ProposalView>>,
}

fn gone(p: &ProposalView) -> Rejected {
    Rejected::Gone(format!(
        "the proposal {} was held until {} ns and not confirmed: ask for another one",
        p.id.0, p.expires.0
    ))
}

impl Proposals {
    /// Whether a proposal can be held from `now` on.
    ///
    /// # Errors
    /// Its time is over, or too many are held.
    pub fn expect_room(&mut self, promise: &ProposalView, now: Time) -> Result<(), Rejected> {
        self.expire(now);
        if promise.expires <= now {
            return Err(gone(promise));
        }
        if self.held(now).count() >= MAX_HELD {
            return Err(Rejected::Conflict(format!(
                "{MAX_HELD} proposals are held already: confirm them or take them back"
            )));
        }
        Ok(())
    }

    /// Holds a proposal for which there is room, under a number that is not in use.
    pub fn hold(&mut self, promise: ProposalView) {
        while self.all.len() >= MAX_HELD + MAX_KEPT {
            let Some(oldest) =
                self.all.values().filter(|p| p.state != ProposalState::Held).map(|p| p.id).next()
            else {
                break;
            };
            self.all.remove(&oldest);
        }
        self.all.insert(promise.id, Arc::new(promise));
    }

    /// Confirms a proposal; nothing if it was confirmed before.
    ///
    /// # Errors
    /// There is none, or its time is over.
    pub fn confirm(&mut self, id: CoflowId, now: Time) -> Result<Option<&ProposalView>, Rejected> {
        self.expire(now);
        let p = self
            .all
            .get_mut(&id)
            .ok_or_else(|| Rejected::NotFound(format!("proposal {}", id.0)))?;
        match p.state {
            ProposalState::Expired => Err(gone(p)),
            ProposalState::Confirmed => Ok(None),
            ProposalState::Held => {
                Arc::make_mut(p).state = ProposalState::Confirmed;
                Ok(Some(p))
            }
        }
    }

    /// Takes a proposal back that has not been confirmed; says whether there was one.
    ///
    /// # Errors
    /// Its time is over.
    pub fn cancel(&mut self, id: CoflowId, now: Time) -> Result<bool, Rejected> {
        self.expire(now);
        match self.all.get(&id).map(|p| (p.state, p)) {
            Some((ProposalState::Expired, p)) => Err(gone(p)),
            Some((ProposalState::Held, _)) => Ok(self.all.remove(&id).is_some()),
            Some((ProposalState::Confirmed, _)) | None => Ok(false),
        }
    }

    fn expire(&mut self, now: Time) {
        for p in
            self.all.values_mut().filter(|p| p.state == ProposalState::Held && p.expires <= now)
        {
            Arc::make_mut(p).state = ProposalState::Expired;
        }
    }

    /// Promises that are held, as what the network has promised to carry.
    pub fn held(&self, now: Time) -> impl Iterator<Item = Arc<PendingCoflow>> + '_ {
        let held =
            self.all.values().filter(move |p| p.state == ProposalState::Held && p.expires > now);
        held.map(|p| {
            let pairs = |ocs: bool| {
                let of =
                    p.proposal.pairs.iter().filter(move |w| w.ocs == ocs && w.bytes > Bytes::ZERO);
                of.map(|w| RackBytes { from: w.from, to: w.to, bytes: w.bytes }).collect()
            };
            Arc::new(PendingCoflow {
                id: p.id,
                start: p.proposal.chosen.start,
                heavy: pairs(true),
                light: pairs(false),
            })
        })
    }

    /// All promises that are remembered, by id, as they are at `now`.
    pub fn views(&self, now: Time) -> Vec<Arc<ProposalView>> {
        let shown = |p: &Arc<ProposalView>| match p.state {
            ProposalState::Held if p.expires <= now => {
                Arc::new(ProposalView { state: ProposalState::Expired, ..(**p).clone() })
            }
            _ => p.clone(),
        };
        self.all.values().map(shown).collect()
    }
}
