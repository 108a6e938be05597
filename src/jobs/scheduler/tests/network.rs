//! The books of the network against the world's own: flows, bytes left, inputs, rates.

use super::laws::{Case, case};
use super::*;
use crate::placement::network::Needs;
use crate::placement::policy::{Block, Pick, View};
use crate::scheduler::stage::Doing;
use proptest::prelude::*;

/// Fair, with an eye on the network.
struct Watching {
    needs: Needs,
    under: Fair,
}

impl Placement for Watching {
    fn name(&self) -> &'static str {
        "watching"
    }
    fn place_data(&mut self, view: &dyn View, job: JobId) -> Vec<Vec<Block>> {
        self.under.place_data(view, job)
    }
    fn slowstart(&self, view: &dyn View, job: JobId) -> u32 {
        self.under.slowstart(view, job)
    }
    fn offer(&mut self, view: &dyn View, rack: RackId) -> Option<Pick> {
        self.under.offer(view, rack)
    }
    fn needs(&mut self, _: &Topology) -> Needs {
        self.needs
    }
}

fn watching(
    t: &Arc<Topology>,
    settings: SchedulerSettings,
    slowstart: u32,
    (by_task, rack_local): (bool, bool),
) -> SchedulerWorld {
    let needs = Needs {
        network: true,
        flows_by_task: by_task,
        rack_local,
        sample: Span(0),
        ema_percent: 25,
    };
    SchedulerWorld::with(
        t,
        settings,
        Box::new(Watching { needs, under: Fair::new("fair", slowstart, 7) }),
    )
}

fn settings(c: &Case) -> SchedulerSettings {
    SchedulerSettings {
        order: c.order,
        weights: vec![2],
        fetch_percent: c.fetch,
        ..SchedulerSettings::default()
    }
}

/// What the world knows of flows on their way is what the books say, host by host and task by task.
fn compare(w: &SchedulerWorld) -> Result<(), TestCaseError> {
    let state = w.s.state();
    state.net.check();
    let left = |f: &FlowOnItsWay| f.ends.since(w.now).0;
    for h in &w.topology.hosts {
        let flows = |into| -> Vec<_> {
            let own = if into { state.flows_into(h.id) } else { state.flows_out_of(h.id) };
            own.map(|f| ((f.coflow, f.flow), f.left)).collect()
        };
        let own = |into| -> Vec<_> {
            let at =
                w.flying.iter().filter(|(_, f)| if into { f.to == h.id } else { f.from == h.id });
            at.map(|(&k, f)| (k, Bytes(left(f)))).collect()
        };
        prop_assert_eq!((flows(true), flows(false)), (own(true), own(false)));
        for i in state.inputs(h.id) {
            let task = state.stage(i.job, i.stage).tasks[i.task as usize];
            prop_assert_eq!((task.doing, task.host), (Doing::Fetching, h.id));
        }
        prop_assert_eq!(state.inputs_left(h.id), state.inputs(h.id).map(|i| i.left).sum::<Bytes>());
    }
    Ok(())
}

/// Runs step by step, comparing at every instant; the books are empty at the end.
fn watch(c: &Case, how: (bool, bool), failures: bool) -> Result<SchedulerWorld, TestCaseError> {
    let t = network(c.network.0, c.network.1, c.network.2);
    let mut w = watching(&t, settings(c), c.slowstart, how);
    w.submit(c.jobs.clone());
    if failures {
        c.fail(&t, &mut w);
    }
    while let Some(next) = w.next() {
        w.run(next);
        // Word of what was given up does not reach the scheduler.
        if w.s.state().now == w.now {
            compare(&w)?;
        }
    }
    prop_assert!(w.s.snapshot().jobs.iter().all(|j| j.finished.is_some()));
    prop_assert!(w.s.state().net.is_idle());
    prop_assert!(w.topology.hosts.iter().all(|h| w.s.state().inputs(h.id).next().is_none()));
    Ok(w)
}

proptest! {
    #![proptest_config(crate::testing::drawn(80))]

    /// With flows by task or by host, with racks that count as local or not, with failures or
    /// without.
    #[test]
    fn the_books_are_what_is_on_the_way(c in case(), by_task in any::<bool>(), rack_local in any::<bool>(), fails in any::<bool>()) {
        watch(&c, (by_task, rack_local), fails)?;
    }

    /// Flows by task move the same bytes as flows by host, and one task waits for each.
    #[test]
    fn flows_by_task_carry_the_same_bytes(c in case()) {
        let (shared, own) = (watch(&c, (false, false), false)?, watch(&c, (true, false), false)?);
        let moved = |w: &SchedulerWorld| w.s.snapshot().jobs.iter().map(|j| j.shuffle_bytes).collect::<Vec<_>>();
        prop_assert_eq!(moved(&shared), moved(&own));
        for (w, by_task) in [(&shared, false), (&own, true)] {
            let all = w.done.len() as u64;
            prop_assert_eq!(all, w.s.snapshot().jobs.iter().map(|j| j.tasks).sum::<u64>(), "{}", by_task);
        }
    }
}

/// Two reduce tasks on one host, one of three quarters: their own flows, and what the books say of
/// them at every moment.
#[test]
fn inputs_by_hand() {
    // Three hosts of two slots, one a rack. Four maps of 10, one block each; then two reduces with
    // shares 1 : 3 of 400 bytes.
    let t = network(3, 1, 2);
    let mut job = map_reduce(0, (4, 10), (2, 5), 400);
    job.stages[0].input = Bytes(0);
    job.edges[0].shares = Some(vec![1, 3]);
    let mut w = watching(&t, SchedulerSettings::default(), 100, (true, false));
    w.submit(vec![job]);
    w.run(Time(10));
    let s = w.s.state();
    // Maps ran on hosts 0, 1, 2, 0; the reduces are on hosts 1 and 2 or wherever Fair took them.
    let at: Vec<HostId> = (0..2).map(|k| s.stage(JobId(0), 1).tasks[k].host).collect();
    let far = |k: usize| s.input_from_afar(JobId(0), 1, k as u32, at[k]).0;
    assert_eq!([0, 1].map(|k| s.input_of(JobId(0), 1, k)), [Bytes(100), Bytes(300)]);
    for (k, &host) in at.iter().enumerate() {
        let here: Vec<(u32, u64)> =
            s.inputs(host).filter(|i| i.task == k as u32).map(|i| (i.task, i.left.0)).collect();
        assert_eq!(here, [(k as u32, far(k))]);
    }
    let coming: u64 =
        w.topology.hosts.iter().flat_map(|h| s.flows_into(h.id)).map(|f| f.left.0).sum();
    assert_eq!((s.coflow_size(JobId(0), 1), coming), (Bytes(400), far(0) + far(1)));
    // The world sends a byte a nanosecond on every flow; the rates begin at the NIC's 8 bit/s and
    // are of one sample by a quarter.
    w.run(Time(10_000));
    let rate = w.s.state().receive_rate(at[1]).0;
    assert!(rate > 1_000_000_000, "{rate}");
}
