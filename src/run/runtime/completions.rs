//! Tracks how the coflows of a workload's run end, from events of the traffic and of the
//! controller.

use std::collections::{BTreeMap, BTreeSet};

use super::delivered::{CoflowDelivery, DeliveredBytes};
use crate::control::record::Coflows;
use crate::ids::CoflowId;
use crate::kernel::traffic::TrafficEvent;
use crate::units::Time;

/// Why a coflow is lost that was cancelled over the API.
const TAKEN_BACK: &str = "it was taken back";

/// Ends of a workload's coflows. Events of other coflows, such as those posted over the API, are
/// ignored; of two events about one coflow the first counts.
#[derive(Debug, Default)]
pub struct Completions {
    /// Coflows without an end.
    open: BTreeSet<CoflowId>,
    finished: BTreeMap<CoflowId, Time>,
    broke: BTreeMap<CoflowId, String>,
    carried: DeliveredBytes,
}

impl Completions {
    /// Nothing has ended.
    pub fn new(coflows: impl IntoIterator<Item = CoflowId>) -> Self {
        Self { open: coflows.into_iter().collect(), ..Self::default() }
    }

    /// Whether all have ended.
    pub fn are_all(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes an event of the traffic.
    pub fn hear(&mut self, word: TrafficEvent) {
        match word {
            TrafficEvent::Finished { coflow, at } if self.open.remove(&coflow) => {
                self.finished.insert(coflow, at);
            }
            TrafficEvent::Failed { coflow, why } => self.breaks(coflow, why),
            TrafficEvent::Finished { .. } | TrafficEvent::FlowFinished { .. } => {}
        }
    }

    /// A coflow ends without having finished.
    pub fn breaks(&mut self, coflow: CoflowId, why: String) {
        if self.open.remove(&coflow) {
            self.broke.insert(coflow, why);
        }
    }

    /// Takes what the controller shows: bytes carried of coflows that have ended, and coflows that
    /// were cancelled, of which the traffic says nothing. To be called as often as
    /// [`DeliveredBytes::look`].
    pub fn look(&mut self, coflows: &Coflows) {
        for (coflow, why) in self.carried.look(coflows) {
            self.breaks(coflow, why.unwrap_or_else(|| TAKEN_BACK.into()));
        }
    }

    /// When a coflow finished.
    pub fn finished(&self, coflow: CoflowId) -> Option<Time> {
        self.finished.get(&coflow).copied()
    }

    /// Why a coflow has ended without having finished.
    pub fn lost(&self, coflow: CoflowId) -> Option<String> {
        self.broke.get(&coflow).cloned()
    }

    /// Bytes carried of a coflow ([`DeliveredBytes::of`]).
    pub fn carried(&self, coflow: CoflowId, now: &Coflows) -> CoflowDelivery {
        self.carried.of(coflow, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Event;
    use crate::runtime::delivered::tests::{arrives, controller, cycle};

    fn finished(coflow: u32) -> TrafficEvent {
        TrafficEvent::Finished { coflow: CoflowId(coflow), at: Time(5) }
    }

    #[test]
    fn coflows_of_others_end_no_run() {
        let mut ends = Completions::new([CoflowId(0), CoflowId(1)]);
        ends.hear(finished(1 << 20));
        ends.hear(TrafficEvent::Failed { coflow: CoflowId(7), why: "reset".into() });
        ends.hear(finished(0));
        ends.hear(finished(0));
        assert!(
            !ends.are_all()
                && ends.finished(CoflowId(1 << 20)).is_none()
                && ends.lost(CoflowId(7)).is_none()
        );
        ends.hear(TrafficEvent::Failed { coflow: CoflowId(1), why: "reset".into() });
        assert!(ends.are_all());
        assert_eq!(
            (ends.finished(CoflowId(0)), ends.lost(CoflowId(1)).as_deref()),
            (Some(Time(5)), Some("reset"))
        );
    }

    #[test]
    fn a_coflow_that_is_taken_back_ends() {
        let (mut c, mut ends) =
            (controller(), Completions::new([CoflowId(0), CoflowId(1), CoflowId(2)]));
        let now = Time(3);
        (0..4).for_each(|k| arrives(&mut c, k, now));
        ends.look(&c.snapshot(now, "t").coflows);
        assert!(!ends.are_all());
        for (id, why) in [(0, None), (1, Some("reset".to_owned())), (3, None)] {
            c.handle(Event::CoflowCancelled { id: CoflowId(id), why }, now).unwrap();
        }
        ends.hear(finished(2));
        // Coflows that have ended are closed once the counters have been read again.
        let later = |k: u64| Time(k * 1_000_000_000);
        (1..5).for_each(|k| cycle(&mut c, later(k)));
        ends.look(&c.snapshot(later(5), "t").coflows);
        // Its last byte still arrived.
        ends.hear(finished(0));
        assert!(ends.are_all());
        let lost = [0, 1, 2, 3].map(|k| ends.lost(CoflowId(k)));
        assert_eq!(lost, [Some(TAKEN_BACK.into()), Some("reset".into()), None, None]);
        assert_eq!((ends.finished(CoflowId(0)), ends.finished(CoflowId(2))), (None, Some(Time(5))));
    }
}
