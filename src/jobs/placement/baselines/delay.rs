//! Delay scheduling: a job that could only run far from its data lets others go first for a while.
//!
//! Zaharia et al., "Delay scheduling", EuroSys 2010, section 3.4 and figure 5: when a slot is free,
//! the jobs are asked in their order. One with a task whose block is on the host takes it. One with
//! a block in the rack takes it if the job has been skipped for W1 already; one without takes it
//! after W1 + W2. Else it is skipped, and the next job is asked. A job that has started a task
//! nearer than it was allowed to starts waiting again. Yarn counts offers instead of time
//! ([`missed`](super::missed)); so, and with queues of capacity, this is what Corral's authors call
//! Yarn-CS.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::missed::{Missed, YARN};
use crate::ids::{JobId, RackId};
use crate::placement::hdfs;
use crate::placement::policy::{
    Block, JobOrder, Locality, OfferAlarm, Pick, Placement, ReduceStart, View, first_of,
};
use crate::placement::spec::{Common, PolicyOptions};
use crate::units::{Bytes, Span, Time};

/// Options of the policy `delay`: none of its own; `wait` is every policy's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayOptions {}

impl PolicyOptions for DelayOptions {
    const COUNTS_OFFERS: bool = true;

    fn build(&self, common: &Common, _: Bytes) -> Box<dyn Placement> {
        Box::new(Delay::new("delay", Waits::of(common), common.slowstart, common.seed))
    }
}

/// Options of the policy `capacity`: none of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CapacityOptions {}

impl PolicyOptions for CapacityOptions {
    const ORDER: JobOrder = JobOrder::Capacity;
    const REDUCES: ReduceStart = ReduceStart::RampUp;
    const COUNTS_OFFERS: bool = true;
    const MISSED: Option<u32> = Some(YARN);

    fn build(&self, common: &Common, _: Bytes) -> Box<dyn Placement> {
        Box::new(Delay::new("capacity", Waits::of(common), common.slowstart, common.seed))
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Delay {
    name: &'static str,
    slowstart: u32,
    seed: u64,
    waits: Waits,
}

impl Delay {
    /// Under a name; `slowstart` in per cent, `seed` for the placement of data.
    pub fn new(name: &'static str, waits: Waits, slowstart: u32, seed: u64) -> Self {
        Self { name, slowstart, seed, waits }
    }
}

/// Jobs that have been skipped. Other policies use it too, for locality within their racks.
#[derive(Clone, Debug)]
pub enum Waits {
    /// They wait by time.
    Times(SkippedJobs),
    /// They wait by offers, as in Yarn.
    Offers(Missed),
}

impl Waits {
    /// As a policy's parameters have it.
    pub fn of(common: &Common) -> Self {
        match common.missed {
            Some(limit) => Self::Offers(Missed::new(limit)),
            None => Self::by_time(common.wait.0, common.wait.1),
        }
    }

    /// `host` until a job may run in the rack of its block, `rack` longer until it may run
    /// anywhere.
    pub fn by_time(host: Span, rack: Span) -> Self {
        Self::Times(SkippedJobs::new(host, rack))
    }

    /// Whether a stage may take a slot now that is `near` to one of its blocks; if not, its job has
    /// been skipped. O(log jobs).
    pub fn may(&mut self, view: &dyn View, (job, stage): (JobId, usize), near: Locality) -> bool {
        match self {
            Self::Times(w) => w.may(view.now(), job, near),
            Self::Offers(w) => w.may(view, (job, stage), near),
        }
    }

    /// A job has started a task, `near` its block: it waits again, or no longer if that was the
    /// last. Nothing changes where the stage reads no blocks.
    pub fn started(&mut self, view: &dyn View, pick: Pick, near: Locality) {
        if view.blocks(pick.job, pick.stage).is_empty() {
            return;
        }
        let last = view.counts(pick.job, pick.stage).pending == 0;
        match self {
            Self::Times(w) if last => drop(w.since.remove(&pick.job)),
            Self::Times(w) => w.begin_again(view.now(), pick.job, near),
            Self::Offers(w) if last => w.forget(pick.job),
            Self::Offers(w) => w.begin_again(pick.job, near),
        }
    }

    /// When the first wait ends.
    pub fn wake_at(&self) -> Option<Time> {
        match self {
            Self::Times(w) => w.alarm.at(),
            Self::Offers(w) => w.wake_at(),
        }
    }

    /// The wake-up has come: a job that is skipped again will set the next one.
    pub fn woken(&mut self, now: Time) {
        match self {
            Self::Times(w) => w.alarm.woken(now),
            Self::Offers(w) => w.woken(now),
        }
    }
}

/// Jobs that have been skipped, and since when.
#[derive(Clone, Debug)]
pub struct SkippedJobs {
    host: Span,
    rack: Span,
    since: BTreeMap<JobId, Skipped>,
    alarm: OfferAlarm,
}

#[derive(Clone, Copy, Debug)]
struct Skipped {
    since: Time,
    /// The farthest that the job may run now.
    level: Locality,
}

impl SkippedJobs {
    fn new(host: Span, rack: Span) -> Self {
        Self { host, rack, since: BTreeMap::new(), alarm: OfferAlarm::default() }
    }

    fn may(&mut self, now: Time, job: JobId, near: Locality) -> bool {
        if near == Locality::Host {
            return true;
        }
        let first = Skipped {
            since: now,
            level: if self.host == Span::ZERO { self.after_host() } else { Locality::Host },
        };
        let s = self.since.entry(job).or_insert(first);
        // A job climbs one level a wait, and waits again on each.
        while s.level < near {
            let wait = if s.level == Locality::Host { self.host } else { self.rack };
            if now < s.since + wait {
                self.alarm.by(s.since + wait);
                return false;
            }
            s.since += wait;
            s.level = if s.level == Locality::Host && self.rack > Span::ZERO {
                Locality::Rack
            } else {
                Locality::Remote
            };
        }
        true
    }

    fn after_host(&self) -> Locality {
        if self.rack == Span::ZERO { Locality::Remote } else { Locality::Rack }
    }

    /// A job has started a task, `near` its block: it waits again, at that level.
    fn begin_again(&mut self, now: Time, job: JobId, near: Locality) {
        if near == Locality::Host {
            self.since.remove(&job);
        } else if let Some(s) = self.since.get_mut(&job) {
            (s.level, s.since) = (near, now);
        }
    }
}

impl Placement for Delay {
    fn name(&self) -> &'static str {
        self.name
    }

    fn place_data(&mut self, view: &dyn View, job: JobId) -> Vec<Vec<Block>> {
        hdfs::blocks(view, job, self.seed)
    }

    fn slowstart(&self, _: &dyn View, _: JobId) -> u32 {
        self.slowstart
    }

    fn offer(&mut self, view: &dyn View, rack: RackId) -> Option<Pick> {
        let waits = &mut self.waits;
        first_of(view, |job, s| {
            view.locality(job, s, rack).is_some_and(|near| waits.may(view, (job, s), near))
        })
    }

    fn wake_at(&self) -> Option<Time> {
        self.waits.wake_at()
    }

    fn woken(&mut self, now: Time) {
        self.waits.woken(now);
    }

    fn started(&mut self, view: &dyn View, pick: Pick, _: RackId, near: Locality) {
        self.waits.started(view, pick, near);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_climbs_from_host_to_rack_to_anywhere() {
        let mut w = SkippedJobs::new(Span(10), Span(20));
        let j = JobId(0);
        assert!(w.may(Time(100), j, Locality::Host));
        assert!(!w.may(Time(100), j, Locality::Rack) && w.alarm.at() == Some(Time(110)));
        assert!(!w.may(Time(109), j, Locality::Rack));
        w.alarm.woken(Time(110));
        assert!(w.may(Time(110), j, Locality::Rack) && !w.may(Time(110), j, Locality::Remote));
        assert_eq!(w.alarm.at(), Some(Time(130)));
        assert!(!w.may(Time(129), j, Locality::Remote) && w.may(Time(130), j, Locality::Remote));
        // A start in the rack brings it back to that level; one on the host, to the beginning.
        w.begin_again(Time(140), j, Locality::Rack);
        assert!(w.may(Time(141), j, Locality::Rack) && !w.may(Time(141), j, Locality::Remote));
        w.begin_again(Time(150), j, Locality::Host);
        assert!(!w.may(Time(150), j, Locality::Rack));
    }

    #[test]
    fn without_waits_nobody_waits() {
        let mut w = SkippedJobs::new(Span(0), Span(0));
        assert!(w.may(Time(1), JobId(0), Locality::Remote));
        let mut w = SkippedJobs::new(Span(0), Span(5));
        assert!(
            w.may(Time(1), JobId(0), Locality::Rack) && !w.may(Time(1), JobId(0), Locality::Remote)
        );
    }
}
