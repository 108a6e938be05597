//! What is known of the coflows that a run has posted: under which number the controller has them,
//! and what has arrived.
//!
//! Word comes by two ways, events and the coflow's own resource, in any order and more than once;
//! each thing is passed on once. Events may name a coflow before the answer to its POST has told to
//! which of our coflows it belongs.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::wire;
use crate::ids::{CoflowId, FlowId};
use crate::runtime::jobs::live::NetworkEvent;
use crate::units::{Bytes, Span};

/// What was heard of a coflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoflowNews {
    /// A flow has arrived, with these bytes.
    Flow(FlowId, Bytes),
    /// The coflow has arrived, after this time.
    Finished(Span),
    /// The controller has it no more.
    Gone,
}

/// A coflow of ours broke, and its bytes will not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenCoflow(pub CoflowId);

/// The book. Our own numbers are [`CoflowId`]s, the controller's plain integers.
#[derive(Debug, Default)]
pub struct PostedCoflows {
    ours: BTreeMap<u32, CoflowId>,
    theirs: BTreeMap<CoflowId, u32>,
    /// Neither finished nor cancelled.
    open: BTreeSet<CoflowId>,
    /// Posts that are not answered.
    posting: BTreeSet<CoflowId>,
    /// Words of coflows that are not known yet, while a post is not answered.
    early: Vec<(u32, CoflowNews)>,
    received: BTreeMap<(CoflowId, FlowId), Bytes>,
    ccts: BTreeMap<CoflowId, Span>,
    /// By coflow whose end was looked up: the share of its bytes that went over circuits, and the
    /// completion time.
    looked_up: BTreeMap<CoflowId, (f64, Option<Span>)>,
    /// How many endings of all the controller's coflows were looked at.
    ended: u64,
}

impl PostedCoflows {
    /// A coflow is about to be posted.
    pub fn posting(&mut self, id: CoflowId) {
        self.posting.insert(id);
        self.open.insert(id);
    }

    /// A coflow was posted, and has this number; what was heard of it meanwhile follows.
    ///
    /// # Errors
    /// It broke already.
    pub fn posted(&mut self, id: CoflowId, theirs: u32) -> Result<Vec<NetworkEvent>, BrokenCoflow> {
        self.posting.remove(&id);
        self.ours.insert(theirs, id);
        self.theirs.insert(id, theirs);
        let early = std::mem::take(&mut self.early);
        let (now, later) = early.into_iter().partition(|e| e.0 == theirs);
        self.early = if self.posting.is_empty() { Vec::new() } else { later };
        let heard: Vec<(u32, CoflowNews)> = now;
        heard.into_iter().map(|(n, h)| self.hear(n, h)).filter_map(Result::transpose).collect()
    }

    /// Something was heard; what of it is new and ours is to be passed on.
    ///
    /// # Errors
    /// A coflow of ours broke.
    pub fn hear(
        &mut self,
        theirs: u32,
        heard: CoflowNews,
    ) -> Result<Option<NetworkEvent>, BrokenCoflow> {
        let Some(&id) = self.ours.get(&theirs) else {
            if !self.posting.is_empty() {
                self.early.push((theirs, heard));
            }
            return Ok(None);
        };
        Ok(match heard {
            CoflowNews::Flow(flow, bytes) => self
                .received
                .insert((id, flow), bytes)
                .is_none()
                .then_some(NetworkEvent::Flow(id, flow)),
            CoflowNews::Finished(cct) => self.ccts.insert(id, cct).is_none().then(|| {
                self.open.remove(&id);
                NetworkEvent::Coflow(id)
            }),
            CoflowNews::Gone if self.open.remove(&id) => return Err(BrokenCoflow(id)),
            CoflowNews::Gone => None,
        })
    }

    /// A coflow is not wanted any more; its number, if it was posted and is open.
    pub fn cancelled(&mut self, id: CoflowId) -> Option<u32> {
        if self.open.remove(&id) { self.theirs.get(&id).copied() } else { None }
    }

    /// The open coflows that were posted, with the controller's numbers.
    pub fn open(&self) -> Vec<(CoflowId, u32)> {
        self.open.iter().filter_map(|id| Some((*id, *self.theirs.get(id)?))).collect()
    }

    /// The open coflows whose post is not answered.
    pub fn unposted(&self) -> Vec<CoflowId> {
        self.open.iter().filter(|id| !self.theirs.contains_key(id)).copied().collect()
    }

    /// Our number of a coflow of the controller's that is open.
    pub fn open_by(&self, theirs: u32) -> Option<CoflowId> {
        self.ours.get(&theirs).filter(|id| self.open.contains(id)).copied()
    }

    /// Notes what a flow has received so far, when its coflow is cancelled.
    pub fn partly(&mut self, id: CoflowId, flow: FlowId, bytes: Bytes) {
        self.received.entry((id, flow)).or_insert(bytes);
    }

    /// All bytes that receivers have counted.
    pub fn received(&self) -> Bytes {
        self.received.values().copied().sum()
    }

    /// The controller's number of a coflow, and its completion time if it has arrived.
    pub fn of(&self, id: CoflowId) -> (Option<u32>, Option<Span>) {
        // A run ends with its last task, and word of the last coflow may not have come yet.
        let cct = self.ccts.get(&id).copied().or_else(|| self.looked_up.get(&id)?.1);
        (self.theirs.get(&id).copied(), cct)
    }

    /// How many endings have been noted.
    pub fn ended(&self) -> u64 {
        self.ended
    }

    /// Notes coflows that have ended, ours among them: the controller forgets them some time after.
    pub fn note_ended(&mut self, seen: &wire::Coflows) {
        self.ended = seen.ended;
        for c in &seen.coflows {
            let Some(&id) = self.ours.get(&c.id) else { continue };
            let share = c.over_ocs_bytes as f64 / c.asked_bytes.max(1) as f64;
            // Not in `ccts`: the word of its end is still to be passed on if it has not come.
            self.looked_up.insert(id, (share, c.cct_ns.map(Span)));
        }
    }

    /// The share of a coflow's bytes that went over circuits, if it has ended.
    pub fn share(&self, id: CoflowId) -> f64 {
        self.looked_up.get(&id).map_or(0.0, |c| c.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: fn(u32) -> CoflowNews = |k| CoflowNews::Flow(FlowId(k), Bytes(10));

    #[test]
    fn each_thing_is_passed_on_once_whichever_way_it_comes() {
        let mut b = PostedCoflows::default();
        b.posting(CoflowId(0));
        assert_eq!(b.posted(CoflowId(0), 70), Ok(vec![]));
        assert_eq!(b.hear(70, FLOW(1)), Ok(Some(NetworkEvent::Flow(CoflowId(0), FlowId(1)))));
        assert_eq!(
            (b.hear(70, FLOW(1)), b.hear(71, FLOW(1))),
            (Ok(None), Ok(None)),
            "again, and somebody else's"
        );
        assert_eq!(
            b.hear(70, CoflowNews::Finished(Span(5))),
            Ok(Some(NetworkEvent::Coflow(CoflowId(0))))
        );
        assert_eq!(
            (b.hear(70, CoflowNews::Finished(Span(5))), b.hear(70, CoflowNews::Gone)),
            (Ok(None), Ok(None))
        );
        assert_eq!(
            (b.received(), b.of(CoflowId(0)), b.open()),
            (Bytes(10), (Some(70), Some(Span(5))), vec![])
        );
    }

    #[test]
    fn an_end_that_was_looked_up_is_still_told() {
        let mut b = PostedCoflows::default();
        b.posting(CoflowId(0));
        b.posted(CoflowId(0), 70).unwrap();
        let text = r#"{"revision": 1, "now_ns": 1, "ended": 9, "coflows": [{"id": 70, "name": "c", "state": "finished", "arrival_ns": 0,
            "pairs": [], "asked_bytes": 8, "received_bytes": 8, "over_ocs_bytes": 2, "finished_ns": 7, "cct_ns": 7, "bound_ns": 1}]}"#;
        b.note_ended(&serde_json::from_str(text).unwrap());
        assert_eq!(
            (b.ended(), b.share(CoflowId(0)), b.of(CoflowId(0)).1),
            (9, 0.25, Some(Span(7)))
        );
        assert_eq!(
            b.hear(70, CoflowNews::Finished(Span(7))),
            Ok(Some(NetworkEvent::Coflow(CoflowId(0))))
        );
    }

    #[test]
    fn word_may_come_before_the_answer() {
        let mut b = PostedCoflows::default();
        b.posting(CoflowId(0));
        b.posting(CoflowId(1));
        assert_eq!(b.hear(81, FLOW(0)), Ok(None));
        assert_eq!(b.hear(80, FLOW(2)), Ok(None));
        assert_eq!(b.hear(81, CoflowNews::Finished(Span(1))), Ok(None));
        assert_eq!(b.posted(CoflowId(0), 80), Ok(vec![NetworkEvent::Flow(CoflowId(0), FlowId(2))]));
        assert_eq!(
            b.posted(CoflowId(1), 81),
            Ok(vec![NetworkEvent::Flow(CoflowId(1), FlowId(0)), NetworkEvent::Coflow(CoflowId(1))])
        );
        assert!(b.early.is_empty() && b.open() == [(CoflowId(0), 80)]);
        b.hear(99, FLOW(0)).unwrap();
        assert!(
            b.early.is_empty(),
            "with nothing on the way to be answered, it is somebody else's"
        );
    }

    #[test]
    fn what_is_cancelled_may_go_and_what_is_not_may_not() {
        let mut b = PostedCoflows::default();
        for k in 0..2 {
            b.posting(CoflowId(k));
            b.posted(CoflowId(k), 70 + k).unwrap();
        }
        assert_eq!(
            (b.cancelled(CoflowId(0)), b.cancelled(CoflowId(0)), b.cancelled(CoflowId(9))),
            (Some(70), None, None)
        );
        assert_eq!(
            (b.hear(70, CoflowNews::Gone), b.hear(71, CoflowNews::Gone)),
            (Ok(None), Err(BrokenCoflow(CoflowId(1))))
        );
        b.partly(CoflowId(1), FlowId(0), Bytes(3));
        assert_eq!(b.received(), Bytes(3));
    }
}
