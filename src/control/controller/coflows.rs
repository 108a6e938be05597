//! Coflows beside their arrival and end: proposals, and other strict priorities under way.

use super::Controller;
use crate::accounts::{Accounts, Opening, check_racks};
use crate::coflows::RackBytes;
use crate::coflows::priority::{Priorities, PriorityChange};
use crate::ids::CoflowId;
use crate::previous_run::{LOST, PreviousRun};
use crate::record::{ProposalView, RecordedEvent};
use crate::units::{Bytes, Span, Time};
use crate::{Action, ProgressBy, Rejected};

impl Controller {
    /// Goes on from the records of an earlier controller: its open coflows are lost, and the
    /// numbers of events go on.
    ///
    /// # Errors
    /// This controller has begun already, or it is of another network.
    pub(super) fn resumed(&mut self, past: PreviousRun, now: Time) -> Result<(), Rejected> {
        if self.seq > 0 {
            return Err(Rejected::Conflict("the controller has begun already".into()));
        }
        let seq = past.seq;
        let lost = self.accounts.resume(past, now, self.topology.rack_count())?;
        self.seq = seq;
        lost.into_iter().for_each(|id| {
            self.log(now, RecordedEvent::CoflowCancelled { id, why: Some(LOST.into()) })
        });
        Ok(())
    }

    /// A coflow is proposed.
    ///
    /// # Errors
    /// What cannot be accepted; the state is then as before.
    pub(super) fn proposed(&mut self, promise: ProposalView, now: Time) -> Result<(), Rejected> {
        let (id, finish, expires) = (promise.id, promise.proposal.chosen.finish(), promise.expires);
        check_racks(
            promise.proposal.pairs.iter().map(|w| (w.from, w.to)),
            self.topology.rack_count(),
        )?;
        self.promises.expect_room(&promise, now)?;
        self.accounts.claim(id)?;
        self.promises.hold(promise);
        self.log(now, RecordedEvent::CoflowProposed { id, finish, expires });
        Ok(())
    }

    /// A coflow that was proposed begins.
    ///
    /// # Errors
    /// What cannot be accepted; the state is then as before.
    pub(super) fn confirmed(
        &mut self,
        id: CoflowId,
        (pairs, priorities): (&[RackBytes], &Priorities),
        (bound, progress): (Span, ProgressBy),
        now: Time,
    ) -> Result<(), Rejected> {
        let racks = self.topology.rack_count();
        Accounts::check(pairs, racks)?;
        let Some(p) = self.promises.confirm(id, now)? else {
            let gone = Rejected::Gone(format!("coflow {} was taken back", id.0));
            return if self.accounts.is_cancelled(id) { Err(gone) } else { Ok(()) };
        };
        let new = Opening {
            id,
            name: p.name.clone(),
            weight: p.weight.max(1),
            pairs,
            bound,
            progress,
            priorities,
        };
        let bytes = self.accounts.open(new, now, racks)?;
        self.has_arrived(id, bytes, now);
        Ok(())
    }

    /// Logs an arrival, and has a decision made for it where the policy wants that and there are
    /// circuits to decide about.
    pub(super) fn has_arrived(&mut self, id: CoflowId, bytes: Bytes, now: Time) {
        self.log(now, RecordedEvent::CoflowArrived { id, bytes });
        if self.policy.at_arrivals && self.follows(id) && self.decides_circuits() {
            self.arrived.get_or_insert(now);
        }
    }

    /// Flows of an open coflow get other strict priorities. What is as it was is neither logged nor
    /// asked for.
    ///
    /// # Errors
    /// What cannot be accepted; the state is then as before.
    pub(super) fn prioritised(
        &mut self,
        id: CoflowId,
        change: &PriorityChange,
        now: Time,
    ) -> Result<(), Rejected> {
        let change = self.accounts.prioritise(id, change)?;
        if !change.is_empty() {
            self.log(
                now,
                RecordedEvent::CoflowPrioritised {
                    id,
                    priority: change.all,
                    flows: change.flows.len(),
                },
            );
            self.actions.push_back(Action::Prioritise { id, change });
        }
        Ok(())
    }
}
