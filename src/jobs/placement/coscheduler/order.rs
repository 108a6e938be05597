//! Which task gets a free slot (Co-scheduler section IV-G, Algorithm 2): six classes, in this
//! order.

use serde::Serialize;

/// What runs in the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum SlotTask {
    /// A task that reads data blocks.
    Map,
    /// A task that a shuffle feeds.
    Reduce,
}

/// A task that could run in a free slot of some rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Map or reduce.
    pub kind: SlotTask,
    /// Whether its job is shuffle-heavy.
    pub heavy: bool,
    /// The guideline of its job has room for it in this rack: the best schedule names the rack, or
    /// for a map, data is there and [`super::maps::MapGuideline::allows`] it.
    pub guided: bool,
}

/// The classes of Algorithm 2, first to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum OfferClass {
    /// Line 4: a reduce task of a shuffle-heavy job whose best schedule names this rack.
    GuidedReduce,
    /// Line 5: a map task of a shuffle-heavy job whose data is here, on fewer than R_map racks so
    /// far.
    GuidedMap,
    /// Line 6: a reduce task of a job that is not shuffle-heavy.
    LightReduce,
    /// Line 7: a map task of a job that is not shuffle-heavy.
    LightMap,
    /// Line 8: any reduce task.
    AnyReduce,
    /// Line 9: any map task.
    AnyMap,
}

impl Offer {
    /// Its class.
    pub fn class(self) -> OfferClass {
        match (self.heavy, self.guided, self.kind) {
            (true, true, SlotTask::Reduce) => OfferClass::GuidedReduce,
            (true, true, SlotTask::Map) => OfferClass::GuidedMap,
            (false, _, SlotTask::Reduce) => OfferClass::LightReduce,
            (false, _, SlotTask::Map) => OfferClass::LightMap,
            (true, false, SlotTask::Reduce) => OfferClass::AnyReduce,
            (true, false, SlotTask::Map) => OfferClass::AnyMap,
        }
    }
}

/// The place of the offer to take: the first of the first class. The caller has chosen the user,
/// and brings that user's offers in the order of its jobs.
pub fn pick(offers: impl IntoIterator<Item = Offer>) -> Option<usize> {
    offers.into_iter().enumerate().min_by_key(|(k, o)| (o.class(), *k)).map(|(k, _)| k)
}
