//! PushBox's laws, at every offer of random runs: the limit of tasks that fetch, wild cards,
//! yields, and what each ablation changes.

use super::drawn::Drawn;
use super::laws::{Case, case};
use super::*;
use crate::placement::network::Needs;
use crate::placement::policy::{Block, Locality, Pick, ReduceStart, TaskAt, View, startable};
use crate::placement::pushbox::concurrency::HostLoad;
use crate::placement::pushbox::estimate::Misjudged;
use crate::placement::pushbox::{PushBox, PushBoxOptions, Yields};
use crate::placement::spec::Common;
use crate::placement::why::{Moment, Refusal};
use crate::topology::Host;
use crate::units::BitRate;
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// PushBox, and PushBox with one part left out, asked the same.
struct Checked {
    options: PushBoxOptions,
    slowstart: u32,
    policy: PushBox,
    /// Picks beyond the limit, local ones after a yield, jobs that were passed over, and drawn
    /// tasks that were not the largest.
    seen: Arc<[AtomicU32; 4]>,
}

/// What the policy is about to decide about a pick, by the view alone.
struct PickFacts {
    fetches: bool,
    inputs: u32,
    limit: u32,
    smallest: Option<Bytes>,
    coflow: Bytes,
    transfer: u128,
    computing: u128,
    is_first: bool,
}

fn facts(view: &dyn View, o: &PushBoxOptions, pick: Pick) -> PickFacts {
    let host = pick.host.expect("PushBox names its hosts");
    assert!(view.free_on(host) > 0 && view.may_start(pick.job, pick.stage));
    let task = pick.task.or_else(|| view.nearest(pick.job, pick.stage, host).map(|n| n.0)).unwrap();
    let BitRate(rate) = view.receive_rate(host);
    let counting = || view.inputs(host).filter(|i| i.is_coming || !view.is_ahead(i.job, i.stage));
    let left: u64 = counting().map(|i| i.left.0).sum();
    PickFacts {
        fetches: view.input_from_afar(pick.job, pick.stage, task, host) > Bytes(0),
        inputs: counting().count() as u32,
        limit: HostLoad::of(view, host, o, Misjudged { factor: 1, seed: 0 }).limit,
        smallest: counting().map(|i| view.coflow_size(i.job, i.stage)).min(),
        coflow: view.coflow_size(pick.job, pick.stage),
        transfer: (u128::from(left) * 8_000_000_000).div_ceil(rate.into()),
        computing: view.computing_time(pick.job, pick.stage, task).0.into(),
        is_first: view.ready().next() == Some(pick.job),
    }
}

impl Checked {
    fn new(options: PushBoxOptions, slowstart: u32) -> Self {
        let common = Common { slowstart, wait: (Span(20), Span(20)), ..Common::default() };
        Self { options, slowstart, policy: PushBox::new(options, &common), seen: Arc::default() }
    }

    fn saw(&self, what: usize, n: u32) {
        self.seen[what].fetch_add(n, Relaxed);
    }

    fn keeps_its_laws(&self, view: &dyn View, pick: Pick) {
        let (o, f) = (self.options, facts(view, &self.options, pick));
        let slack = u128::from(o.hinder_slack.0);
        assert!(f.limit >= 1 && f.limit <= o.input_tasks);
        if f.fetches && f.inputs >= f.limit {
            self.saw(0, 1);
            assert!(
                !o.no_wild_card
                    && !view.order(pick.job).is_by_arrival()
                    && f.smallest.is_some_and(|s| f.coflow < s)
            );
            assert!(o.most_input_tasks.is_none_or(|most| f.inputs < most));
        }
        if !f.fetches && !f.is_first {
            self.saw(1, 1);
            let why = self.policy.why().expect("it says why");
            let yielded = match why.moment {
                _ if o.yields == Yields::Any => true,
                Moment::Arrival => f.inputs >= f.limit,
                _ => why.left_by.iter().any(|l| l.1 == Refusal::Network),
            };
            assert!(
                o.no_hinder || !yielded || f.computing < f.transfer + slack,
                "{pick:?} overtakes and hinders"
            );
        }
    }

    /// The same question to PushBox as it is now, with other options.
    fn ablated(
        &self,
        view: &dyn View,
        rack: RackId,
        change: impl Fn(&mut PushBoxOptions),
    ) -> Option<Pick> {
        let mut other = self.policy.clone();
        change(other.options_mut());
        other.offer(view, rack)
    }

    /// Whichever jobs are passed over, the same task is picked, for the same reasons, and the same
    /// jobs wait for their data.
    fn walks_agree(&self, view: &dyn View, rack: RackId, pick: Option<Pick>, after: &PushBox) {
        for asked in [1, usize::MAX] {
            let mut other = self.policy.clone();
            assert_eq!(other.offer_asking(view, rack, asked), pick, "{asked} asked");
            assert_eq!(
                (other.wake_at(), asked == 1 || other.why() == after.why()),
                (after.wake_at(), true)
            );
        }
        let all: Vec<JobId> = view.ready().collect();
        let least = |j: JobId| {
            (0..view.job(j).stages.len()).map(|s| view.coflow_size(j, s)).filter(|b| b.0 > 0).min()
        };
        for bound in all.iter().filter_map(|&j| least(j)).chain([Bytes(0), Bytes(u64::MAX)]) {
            let mut rest = all.iter();
            let some: Vec<JobId> = view.ready_below(bound).collect();
            assert!(some.iter().all(|j| rest.any(|k| k == j)), "{some:?} in the order of {all:?}");
            self.saw(2, (all.len() - some.len()) as u32);
            for &job in all.iter().filter(|j| !some.contains(j)) {
                for (stage, k) in startable(view, job)
                    .flat_map(|s| view.tasks(job, s).enumerate().map(move |t| (s, t)))
                {
                    let must =
                        |h: &Host| view.input_from_afar(job, stage, k.0 as u32, h.id) > Bytes(0);
                    let pending = k.1 == TaskAt::Pending;
                    assert!(
                        !pending || view.topology().hosts.iter().all(must),
                        "{job:?} is passed over"
                    );
                    assert!(view.coflow_size(job, stage) >= bound);
                }
            }
        }
    }

    /// Each part left out changes only what it is about.
    fn ablations_do_what_they_say(&self, view: &dyn View, rack: RackId, pick: Option<Pick>) {
        assert_eq!(self.ablated(view, rack, |o| o.global_priority = !o.global_priority), pick);
        let lax = self.ablated(view, rack, |o| o.no_hinder = true);
        if lax != pick {
            let f = facts(
                view,
                &self.options,
                lax.expect("who is refused less has something to start"),
            );
            assert!(
                !f.fetches && f.computing >= f.transfer + u128::from(self.options.hinder_slack.0)
            );
        }
        let tame = self.ablated(view, rack, |o| o.no_wild_card = true);
        if tame != pick {
            let f = facts(view, &self.options, pick.expect("who is refused more has nothing else"));
            assert!(f.fetches && f.inputs >= f.limit);
        }
        let narrow = self.ablated(view, rack, |o| o.input_tasks = u32::MAX);
        if narrow != pick {
            // With room nobody yields, so that local tasks may hinder.
            let f = facts(
                view,
                &self.options,
                narrow.expect("a host with room refuses no task that fetches"),
            );
            assert!((f.fetches || self.options.yields == Yields::Network) && f.inputs >= f.limit);
        }
        // Which task is drawn changes nothing else: it takes the place of the largest.
        for seed in 0..2 {
            let [mut draws, mut takes] = [self.policy.clone(), self.policy.clone()];
            draws.draw_tasks(Some(seed));
            takes.draw_tasks(None);
            let drawn = draws.offer(view, rack);
            assert_eq!(drawn, takes.offer(&Drawn(view, seed), rack), "seed {seed}");
            self.saw(3, u32::from(drawn != takes.offer(view, rack)));
        }
    }
}

impl Placement for Checked {
    fn name(&self) -> &'static str {
        "checked"
    }
    fn place_data(&mut self, view: &dyn View, job: JobId) -> Vec<Vec<Block>> {
        self.policy.place_data(view, job)
    }
    fn slowstart(&self, _: &dyn View, _: JobId) -> u32 {
        self.slowstart
    }
    fn needs(&mut self, topology: &Topology) -> Needs {
        self.policy.needs(topology)
    }
    fn submitted(&mut self, view: &dyn View, job: JobId) {
        self.policy.submitted(view, job);
    }
    fn arrived(&mut self, view: &dyn View, job: JobId, stage: usize) {
        self.policy.arrived(view, job, stage);
    }
    fn offer(&mut self, view: &dyn View, rack: RackId) -> Option<Pick> {
        let before = self.policy.clone();
        let pick = self.policy.offer(view, rack);
        let after = std::mem::replace(&mut self.policy, before);
        self.walks_agree(view, rack, pick, &after);
        self.ablations_do_what_they_say(view, rack, pick);
        self.policy = after;
        pick.into_iter().for_each(|p| self.keeps_its_laws(view, p));
        pick
    }
    fn prioritise(&mut self, view: &dyn View, hosts: &[HostId]) -> Vec<(CoflowId, FlowId, u8)> {
        let told = self.policy.prioritise(view, hosts);
        let mut other = self.policy.clone();
        let o = other.options_mut();
        (o.no_hinder, o.no_wild_card, o.random_task) = (true, true, true);
        assert_eq!(other.prioritise(view, hosts), told);
        if !self.options.global_priority {
            hosts.iter().for_each(|&h| ranks_go_by_size(view, h, &told));
        }
        told
    }
    fn wake_at(&self) -> Option<Time> {
        self.policy.wake_at()
    }
    fn woken(&mut self, now: Time) {
        self.policy.woken(now);
    }
    fn started(&mut self, view: &dyn View, pick: Pick, rack: RackId, near: Locality) {
        self.policy.started(view, pick, rack, near);
    }
    fn stage_finished(&mut self, view: &dyn View, job: JobId, stage: usize) {
        self.policy.stage_finished(view, job, stage);
    }
}

/// Of two flows into a host for tasks of one queue's first jobs, the one of the smaller coflow does
/// not go later; behind a FIFO queue's head all go last.
fn ranks_go_by_size(view: &dyn View, host: HostId, told: &[(CoflowId, FlowId, u8)]) {
    let flows: Vec<_> = view.flows_into(host).filter(|f| f.counts).collect();
    let rank = |f: &crate::placement::network::FlowAt| {
        told.iter().find(|t| (t.0, t.1) == (f.coflow, f.flow)).map(|t| t.2)
    };
    for a in &flows {
        let behind = view.order(a.job).is_by_arrival() && view.head(a.job) != Some(a.job);
        assert!(rank(a).is_none_or(|r| (r == 7) == behind), "{a:?}");
        for b in &flows {
            let (Some(x), Some(y)) = (rank(a), rank(b)) else { continue };
            let smaller = view.coflow_size(a.job, a.stage) < view.coflow_size(b.job, b.stage);
            assert!(!smaller || x == 7 || x <= y, "{a:?} {b:?}");
            let same_task = (a.job, a.stage, a.task) == (b.job, b.stage, b.task);
            assert!(!same_task || x == y);
        }
    }
}

fn options() -> impl Strategy<Value = PushBoxOptions> {
    let limits = (
        1u32..4,
        prop::option::of(1u32..6),
        0u64..30,
        prop::sample::select(vec![Yields::Network, Yields::Any]),
    );
    (limits, any::<[bool; 4]>()).prop_map(
        |(
            (input_tasks, most_input_tasks, slack, yields),
            [global_priority, random_task, no_hinder, no_wild_card],
        )| PushBoxOptions {
            yields,
            input_tasks,
            most_input_tasks,
            sample: Span(5),
            hinder_slack: Span(slack),
            global_priority,
            random_task,
            no_hinder,
            no_wild_card,
            ..PushBoxOptions::default()
        },
    )
}

fn run(c: &Case, o: PushBoxOptions, fails: bool, reduces: ReduceStart) -> SchedulerWorld {
    let t = network(c.network.0, c.network.1, c.network.2);
    let settings = SchedulerSettings {
        order: c.order,
        weights: vec![2],
        fetch_percent: c.fetch,
        reduces,
        ..SchedulerSettings::default()
    };
    let mut w = SchedulerWorld::with(&t, settings, Box::new(Checked::new(o, c.slowstart)));
    w.submit(c.jobs.clone());
    if fails {
        c.fail(&t, &mut w);
    }
    w
}

proptest! {
    #![proptest_config(crate::testing::drawn(150))]

    /// Every offer keeps the laws (see [`Checked`]), and every job ends.
    #[test]
    fn every_offer_keeps_the_laws(c in case(), o in options(), fails in any::<bool>(), ramps in any::<bool>()) {
        let mut w = run(&c, o, fails, if ramps { ReduceStart::RampUp } else { ReduceStart::AllPlaced });
        w.run(Time::MAX);
        prop_assert!(w.s.snapshot().jobs.iter().all(|j| j.finished.is_some()));
        w.s.state().net.check();
    }

    /// Without wild cards no host ever has more than m tasks that fetch. (Where a host fails,
    /// reduces wait for maps that run again, and do not count.)
    #[test]
    fn without_wild_cards_hosts_have_m_tasks_that_fetch(c in case(), m in 1u32..4) {
        let o = PushBoxOptions { input_tasks: m, no_wild_card: true, ..PushBoxOptions::default() };
        let mut w = run(&c, o, false, ReduceStart::AllPlaced);
        while let Some(next) = w.next() {
            w.run(next);
            for h in &w.topology.hosts {
                let inputs = w.s.state().inputs(h.id).count();
                prop_assert!(inputs <= m as usize, "{inputs} on {} at {}", h.id, w.now);
            }
        }
    }
}

/// The laws say something: in a few crowded runs there are wild cards, tasks that overtake, jobs
/// that are passed over, and drawn tasks.
#[test]
fn what_the_laws_are_about_happens() {
    let mut most = 0;
    let mut seen = [0; 4];
    for seed in 0..6u64 {
        let t = network(2, 1, 6);
        let jobs = (0..5)
            .map(|k| map_reduce(k * 7 + seed, (4, 3 + k), (4, 40), 4000 / (k + 1) + seed))
            .collect();
        let policy = Checked::new(PushBoxOptions::default(), 100);
        let saw = policy.seen.clone();
        let mut w = SchedulerWorld::with(&t, SchedulerSettings::default(), Box::new(policy));
        w.submit(jobs);
        while let Some(next) = w.next() {
            w.run(next);
            most = most
                .max(t.hosts.iter().map(|h| w.s.state().inputs(h.id).count()).max().unwrap_or(0));
        }
        seen.iter_mut().zip(&*saw).for_each(|(all, n)| *all += n.load(Relaxed));
    }
    assert!(most > 3 && seen.iter().all(|&n| n > 0), "{most} {seen:?}");
}

/// A job may be over at the instant in which it came to wait, while another one of that instant
/// still waits.
#[test]
fn jobs_that_take_no_time_are_forgotten_before_the_next_offer() {
    let mut w = SchedulerWorld::new(
        &network(1, 1, 1),
        JobOrder::Fifo,
        Box::new(Checked::new(PushBoxOptions::default(), 100)),
    );
    let job = || JobSpec {
        stages: vec![stage("s", 1, 0, 0)],
        edges: vec![],
        ..map_reduce(0, (1, 0), (1, 0), 0)
    };
    w.submit(vec![job(), job(), job()]);
    w.run(Time::MAX);
    assert_eq!(w.ends(), [Some(0); 3]);
}
