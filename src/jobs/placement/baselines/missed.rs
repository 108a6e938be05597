//! Delay scheduling as Yarn's capacity scheduler has it: by offers that a job has missed, not by
//! time.
//!
//! Every host asks for work once a heartbeat, and each such question is an offer to the job that is
//! next. A job that is offered a host without its data declines, until it has declined often enough
//! (`LeafQueue.canAssign` and `RegularContainerAllocator` in Hadoop):
//! - for a host in the rack of a block, more than `limit` offers
//!   (`yarn.scheduler.capacity.node-locality-delay`, 40), or as many as there are hosts if these
//!   are fewer;
//! - for any host, more than the number of its waiting tasks times the share of the hosts on which
//!   it has asked for slots. A job of few tasks hardly waits, one of very many waits for as many
//!   offers as there are hosts.
//!
//! Here every host with a free slot makes an offer a second, and a job that is asked after slots
//! have become free has one more offer. While no host has a free slot nothing is missed. A job that
//! starts a task on a block's host or in its rack counts from zero again, and so does one whose
//! last waiting task starts; one that starts far away does not. Hosts that are asked for are
//! estimated as three a waiting task, as blocks have replicas.

use std::collections::BTreeMap;

use crate::ids::JobId;
use crate::placement::policy::{Locality, OfferAlarm, Offers, View};
use crate::units::{NANOS, Span, Time};

/// Yarn's limit.
pub const YARN: u32 = 40;

/// Time between two offers of one host, `yarn.resourcemanager.nodemanagers.heartbeat-interval-ms`.
const HEARTBEAT: Span = Span::secs(1);

/// Jobs that have missed offers.
#[derive(Clone, Debug)]
pub struct Missed {
    limit: u32,
    jobs: BTreeMap<JobId, MissedOffers>,
    alarm: OfferAlarm,
}

/// Offers that a job has missed.
#[derive(Clone, Copy, Debug)]
struct MissedOffers {
    /// In heartbeats of one host, in nanoseconds.
    missed: u64,
    /// What the cluster had offered by then.
    seen: Offers,
}

impl Missed {
    /// `limit` offers until a job may run in the rack of a block.
    pub fn new(limit: u32) -> Self {
        Self { limit, jobs: BTreeMap::new(), alarm: OfferAlarm::default() }
    }

    /// Whether a stage may take a slot now that is `near` to one of its blocks; if not, its job has
    /// missed an offer. O(log jobs).
    pub fn may(&mut self, view: &dyn View, (job, stage): (JobId, usize), near: Locality) -> bool {
        if near == Locality::Host {
            return true;
        }
        let hosts = view.topology().hosts.len() as u64;
        let cluster =
            OfferCounts { hosts, open: view.hosts_open(), offers: view.offers(), now: view.now() };
        self.declines(cluster, job, near, view.counts(job, stage).pending.into()).is_none_or(
            |again| {
                self.alarm.by(again);
                false
            },
        )
    }

    /// Counts an offer; when the job may be asked again if it declines.
    fn declines(
        &mut self,
        c: OfferCounts,
        job: JobId,
        near: Locality,
        waiting: u64,
    ) -> Option<Time> {
        let count =
            self.jobs.entry(job).or_insert(MissedOffers { missed: HEARTBEAT.0, seen: c.offers });
        let idle = u64::try_from(c.offers.idle - count.seen.idle).unwrap_or(u64::MAX);
        let asked = if c.offers.freed > count.seen.freed { HEARTBEAT.0 } else { 0 };
        count.missed = count.missed.saturating_add(idle).saturating_add(asked);
        count.seen = c.offers;
        let anywhere = c.anywhere(waiting);
        let least = if near == Locality::Rack {
            anywhere.min(c.hosts.min(self.limit.into()) * NANOS)
        } else {
            anywhere
        };
        // The next heartbeat of the cluster is as good as an offer: from there on the job may run.
        let wanted = (least + 1).checked_sub(count.missed).filter(|&w| w > 0)?;
        Some(c.now + Span(wanted.div_ceil(u64::from(c.open.max(1)))))
    }

    /// A job has started a task; `near` says how near to its block.
    pub fn begin_again(&mut self, job: JobId, near: Locality) {
        if near != Locality::Remote {
            self.jobs.remove(&job);
        }
    }

    /// A job has nothing that waits for slots.
    pub fn forget(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }

    /// When the first job has missed enough.
    pub fn wake_at(&self) -> Option<Time> {
        self.alarm.at()
    }

    /// The wake-up has come.
    pub fn woken(&mut self, now: Time) {
        self.alarm.woken(now);
    }
}

/// What the count depends on.
#[derive(Clone, Copy, Debug)]
struct OfferCounts {
    hosts: u64,
    /// Hosts with a free slot.
    open: u32,
    /// What they have offered since the beginning.
    offers: Offers,
    now: Time,
}

impl OfferCounts {
    /// After how many missed offers a job runs its tasks anywhere, by the number of its tasks that
    /// wait for slots. An offer counts as 1e9: each host sends one heartbeat a second, so that
    /// nanoseconds times hosts with a free slot are offers.
    fn anywhere(&self, waiting: u64) -> u64 {
        let asked = (waiting * 3).min(self.hosts);
        (u128::from(waiting) * u128::from(asked) * u128::from(NANOS)
            / u128::from(self.hosts.max(1)))
        .min(u128::from(self.hosts * NANOS)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = NANOS;

    /// A cluster that has had as many hosts with a free slot since the beginning.
    fn at(now: u64, open: u32) -> OfferCounts {
        OfferCounts {
            hosts: 210,
            open,
            offers: Offers { idle: u128::from(now) * u128::from(open), freed: 0 },
            now: Time(now),
        }
    }

    #[test]
    fn forty_offers_of_an_idle_cluster_of_210_hosts_are_a_fifth_of_a_second() {
        let mut m = Missed::new(YARN);
        let again = m.declines(at(0, 210), JobId(0), Locality::Rack, 1000).unwrap();
        // The first offer counts, then 210 a second.
        assert!(m.declines(at(again.0 - 1, 210), JobId(0), Locality::Rack, 1000).is_some());
        assert_eq!(
            (again.0 / 1_000_000, m.declines(at(again.0, 210), JobId(0), Locality::Rack, 1000)),
            (185, None)
        );
        assert!(
            m.declines(at(0, 210), JobId(1), Locality::Remote, 1000).unwrap().0 > SECOND * 99 / 100,
            "a second for anywhere"
        );
    }

    #[test]
    fn a_busy_cluster_has_fewer_offers_and_each_slot_that_becomes_free_is_one() {
        let mut m = Missed::new(3);
        let freed =
            |slots: u64| OfferCounts { offers: Offers { idle: 0, freed: slots }, ..at(slots, 0) };
        let later = |m: &mut Missed, slots| {
            m.declines(freed(slots), JobId(0), Locality::Rack, 1000).is_some()
        };
        // No host has a free slot between these offers.
        assert_eq!([1, 2, 3, 4].map(|t| later(&mut m, t)), [true, true, true, false]);
        m.begin_again(JobId(0), Locality::Remote);
        assert!(!later(&mut m, 5), "a start far away keeps the count");
        m.begin_again(JobId(0), Locality::Rack);
        assert!(later(&mut m, 6), "one in the rack does not");
        assert!(
            [6, 6, 6, 6].map(|t| later(&mut m, t)).iter().all(|d| *d),
            "asked again about the same slots, it has missed no more"
        );
    }

    #[test]
    fn while_no_host_has_a_free_slot_nothing_is_missed() {
        let mut m = Missed::new(YARN);
        // Ten hosts are open for a millisecond and then none for half a minute, until one slot
        // becomes free.
        assert!(m.declines(at(0, 10), JobId(0), Locality::Remote, 1000).is_some());
        let full = OfferCounts {
            hosts: 210,
            open: 1,
            offers: Offers { idle: 10_000_000, freed: 1 },
            now: Time(30 * SECOND),
        };
        assert!(m.declines(full, JobId(0), Locality::Remote, 1000).is_some(), "two offers of 210");
        assert_eq!(m.jobs[&JobId(0)].missed, 2 * SECOND + 10_000_000);
    }

    #[test]
    fn a_job_of_few_tasks_hardly_waits_and_one_of_many_waits_for_every_host_once() {
        let c = at(0, 1);
        assert_eq!(
            [1, 10, 70, 100, 210, 5000].map(|n| c.anywhere(n) / 10_000_000),
            [1, 142, 7000, 10_000, 21_000, 21_000]
        );
        let mut m = Missed::new(YARN);
        assert_eq!(
            m.declines(c, JobId(0), Locality::Remote, 5),
            None,
            "5 x 15 of 210 hosts are less than one offer"
        );
        assert!(m.declines(c, JobId(1), Locality::Remote, 10).is_some());
        assert_eq!(
            m.declines(at(0, 1), JobId(2), Locality::Rack, 5),
            None,
            "what may run anywhere may run in a rack"
        );
    }
}
