//! Bytes that the network carried of a run's coflows, noted when they end: a controller forgets
//! them after a while.

use std::collections::BTreeMap;

use crate::control::record::{CoflowView, Coflows};
use crate::ids::CoflowId;
use crate::units::Bytes;

/// Bytes carried of coflows that have ended.
#[derive(Debug, Default)]
pub struct DeliveredBytes {
    /// Number of ends that were seen.
    seen: u64,
    ended: BTreeMap<CoflowId, CoflowDelivery>,
}

/// Bytes carried of a coflow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CoflowDelivery {
    /// Payload between racks that was received.
    pub received: Bytes,
    /// Share of the bytes asked between racks that went over circuits, 0..=1.
    pub ocs_share: f64,
}

impl From<&CoflowView> for CoflowDelivery {
    fn from(v: &CoflowView) -> Self {
        Self { received: v.received, ocs_share: v.over_ocs.0 as f64 / v.bytes.0.max(1) as f64 }
    }
}

impl DeliveredBytes {
    /// Notes what has ended since the last call. Returns the cancelled coflows, each with the
    /// reason if it broke. None is missed if it is called before [`crate::control::closed::MOST`]
    /// more have ended. O(those that ended).
    pub fn look(&mut self, coflows: &Coflows) -> Vec<(CoflowId, Option<String>)> {
        let new = || coflows.closed.after(self.seen);
        let cancelled =
            new().filter(|v| v.cancelled.is_some()).map(|v| (v.id, v.why.clone())).collect();
        self.ended.extend(new().map(|v| (v.id, v.into())));
        self.seen = coflows.closed.total();
        cancelled
    }

    /// Bytes carried of a coflow: as noted if it has ended, else `now`. Zero for one that never
    /// arrived.
    pub fn of(&self, id: CoflowId, now: &Coflows) -> CoflowDelivery {
        self.ended.get(&id).copied().or_else(|| now.get(id).map(Into::into)).unwrap_or_default()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::coflows::RackBytes;
    use crate::control::policy::CircuitPolicy;
    use crate::control::{Action, Controller, Event, ProgressBy, closed};
    use crate::fabric::Fabric;
    use crate::ids::RackId;
    use crate::sim::{SimFabric, SimSettings};
    use crate::topology::Topology;
    use crate::units::{BitRate, Span, Time};

    fn topology() -> Arc<Topology> {
        Arc::new(Topology::uniform("t", 2, 1, BitRate::mbit(1), BitRate::mbit(1), vec![]))
    }

    /// A controller of two racks.
    pub(in crate::runtime) fn controller() -> Controller {
        Controller::new(topology(), CircuitPolicy::default(), Time::ZERO, Span::ZERO)
    }

    /// A coflow of `k + 1` bytes arrives.
    pub(in crate::runtime) fn arrives(c: &mut Controller, k: u32, now: Time) {
        let pairs =
            vec![RackBytes { from: RackId(0), to: RackId(1), bytes: Bytes(u64::from(k) + 1) }];
        let (id, name, bound, progress, weight) =
            (CoflowId(k), String::new(), Span::ZERO, ProgressBy::Sender, 1);
        c.handle(
            Event::CoflowArrived {
                id,
                name,
                pairs,
                bound,
                progress,
                weight,
                priorities: Default::default(),
            },
            now,
        )
        .unwrap();
    }

    /// One cycle over a fabric that carries nothing.
    pub(in crate::runtime) fn cycle(c: &mut Controller, now: Time) {
        let mut fabric = SimFabric::new(topology(), SimSettings::default());
        c.handle(Event::Tick, now).unwrap();
        while let Some(action) = c.poll_action() {
            if action == Action::Observe {
                c.handle(Event::Observed { result: fabric.observe(now) }, now).unwrap();
            }
        }
    }

    #[test]
    fn none_of_many_coflows_is_lost_though_the_controller_forgets() {
        let (mut c, mut carried, n) = (controller(), DeliveredBytes::default(), 50_000);
        for k in 0..n {
            let (id, now) = (CoflowId(k), Time(u64::from(k)));
            arrives(&mut c, k, now);
            c.handle(Event::CoflowFinished { id, at: now }, now).unwrap();
            while c.poll_action().is_some() {}
            if k % 5000 == 0 {
                assert_eq!(carried.look(&c.snapshot(now, "t").coflows), []);
            }
        }
        let end = c.snapshot(Time(u64::from(n)), "t").coflows;
        carried.look(&end);
        assert!(end.iter().count() < closed::MOST + 2000 && end.totals.finished == u64::from(n));
        assert!((0..n).all(|k| carried.of(CoflowId(k), &end).received == Bytes(u64::from(k) + 1)));
        assert_eq!(carried.of(CoflowId(n), &end), CoflowDelivery::default());
    }
}
