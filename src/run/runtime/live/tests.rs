//! The control loop over fabrics that die, and under more commands than it can take in time.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::*;
use crate::coflows::RackBytes;
use crate::control::ProgressBy;
use crate::control::policy::CircuitPolicy;
use crate::demand::HostFlow;
use crate::fabric::{FabricError, Observation, OpResult};
use crate::ids::{CoflowId, PlaneId, RackId};
use crate::plan::Op;
use crate::sim::{SimFabric, SimSettings};
use crate::topology::{Plane, StopMode};
use crate::units::{BitRate, Bytes};

const INTERVAL: Span = Span::millis(10);

fn network() -> Arc<Topology> {
    let plane = Plane {
        id: PlaneId(0),
        rate: BitRate::mbit(1000),
        delta: Span::millis(1),
        stop: StopMode::NotAllStop,
        duplex: false,
    };
    Arc::new(Topology::uniform("t", 4, 1, BitRate::mbit(1000), BitRate::mbit(100), vec![plane]))
}

fn policy() -> CircuitPolicy {
    CircuitPolicy {
        interval: INTERVAL,
        lead: Span::millis(2),
        probes: false,
        ..CircuitPolicy::default()
    }
}

/// Says what a function gives.
struct Says<F>(F);

impl<F: FnMut() -> Vec<Event> + Send> Carrier for Says<F> {
    fn feed(&mut self) -> Vec<Event> {
        (self.0)()
    }
}

/// The model, with threads that die.
struct Mortal {
    inner: SimFabric,
    /// The observation that panics.
    panics_at: Option<u32>,
    /// Observations until one of its own threads is dead.
    dies_after: Option<u32>,
    seen: u32,
}

impl Fabric for Mortal {
    fn observe(&mut self, now: Time) -> Result<Observation, FabricError> {
        self.seen += 1;
        assert!(self.panics_at.is_none_or(|n| self.seen < n), "the world has ended");
        self.inner.observe(now)
    }

    fn flows(&mut self) -> Result<Vec<HostFlow>, FabricError> {
        self.inner.flows()
    }

    fn apply(&mut self, ops: &[Op], now: Time) -> Vec<OpResult> {
        self.inner.apply(ops, now)
    }

    fn notice(&self) -> Span {
        self.inner.notice()
    }

    fn mechanism(&self) -> &'static str {
        self.inner.mechanism()
    }

    fn lost(&self) -> Option<String> {
        self.dies_after
            .filter(|&n| self.seen >= n)
            .map(|_| "the thread that moves mirrors has died".into())
    }
}

fn live(panics_at: Option<u32>, dies_after: Option<u32>, feed: Feed) -> LiveController<Mortal> {
    let fabric = Mortal {
        inner: SimFabric::new(network(), SimSettings::default()),
        panics_at,
        dies_after,
        seen: 0,
    };
    LiveController::over(
        fabric,
        network(),
        (policy().into(), None, None),
        Clock::start(),
        feed,
        |_, _| Ok(None),
    )
    .unwrap()
}

fn waits_for_the_end(live: &LiveController<Mortal>) -> String {
    let deadline = Instant::now() + Duration::from_secs(20);
    while live.is_alive() {
        assert!(Instant::now() < deadline, "the thread is dead, and nothing says so");
        std::thread::yield_now();
    }
    live.lost().expect("not alive")
}

#[test]
fn a_control_thread_that_dies_is_noticed_and_says_why() {
    let quiet = || -> Feed { Box::new(Says(Vec::new)) };
    let deaths = [
        (live(Some(3), None, quiet()), "the controller's thread died: the world has ended"),
        (
            live(None, None, Box::new(Says(|| panic!("no more {}", "news")))),
            "the controller's thread died: no more news",
        ),
        (live(None, Some(3), quiet()), "the thread that moves mirrors has died"),
    ];
    for (live, why) in deaths {
        assert_eq!(waits_for_the_end(&live), why);
        let told = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(live.handle.tell(Event::Tick));
        assert_eq!(told, Err(Rejected::Stopped), "{why}");
    }
}

#[test]
fn a_control_thread_that_is_stopped_gives_its_fabric_back() {
    let live = live(None, None, Box::new(Says(Vec::new)));
    assert!(live.is_alive());
    let handle = live.handle.clone();
    assert!(live.stop().is_some());
    assert_eq!(handle.ended().as_deref(), Some("the controller has stopped"));
}

#[test]
fn a_control_thread_that_hangs_does_not_hold_the_end_up() {
    let ((go_on, hangs), (begins, begun)) = (mpsc::channel::<()>(), mpsc::channel());
    let feed = move || -> Vec<Event> {
        let _ = begins.send(());
        let _ = hangs.recv();
        vec![]
    };
    let live = live(None, None, Box::new(Says(feed)));
    begun.recv().expect("its first cycle");
    let begun = Instant::now();
    assert!(!live.end(), "it waits for a word that does not come");
    assert!((ENDING..ENDING * 4).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    drop(go_on);
    assert!(self::live(None, None, Box::new(Says(Vec::new))).end());
}

/// Every look at this clock takes 5 us.
struct SlowClock(Cell<u64>);

impl LoopClock for SlowClock {
    fn now(&self) -> Time {
        self.0.set(self.0.get() + 5_000);
        Time(self.0.get())
    }
}

/// A loop whose first cycle begins an interval after the start, and a handle to it.
fn control(policy: CircuitPolicy) -> (ControlLoop<SimFabric, SlowClock>, Handle) {
    let fabric = SimFabric::new(network(), SimSettings::default());
    let controller =
        Controller::new(network(), policy.clone(), Time::ZERO + INTERVAL, fabric.notice());
    let (handle, ends) =
        Handle::new(network(), Arc::new(policy.into()), controller.snapshot(Time::ZERO, "sim"), 0);
    (
        ControlLoop::new(
            (controller, fabric),
            SlowClock(Cell::new(0)),
            (Box::new(Says(Vec::new)), None),
            ends,
        ),
        handle,
    )
}

fn arrival(id: u32) -> Event {
    let pairs = vec![RackBytes { from: RackId(0), to: RackId(1), bytes: Bytes(1000) }];
    Event::CoflowArrived {
        id: CoflowId(id),
        name: String::new(),
        pairs,
        bound: Span::ZERO,
        progress: ProgressBy::Sender,
        weight: 1,
        priorities: Default::default(),
    }
}

#[test]
fn cycles_keep_their_deadlines_under_a_flood() {
    let (mut control, handle) = control(policy());
    let mut asked: Vec<_> = (0..2_000).map(|id| (id, handle.ask(arrival(id)).unwrap())).collect();
    for _ in 0..18_000 {
        handle.notify(Event::Trouble { what: crate::control::Trouble::Names, why: None });
    }
    // With the flood in the queue: it takes 20,000 looks at the clock and more, which are ten
    // cycles.
    let (mut steps, mut answers) = (0, 0);
    while handle.snapshot().stats.cycles < 10 {
        control.step().unwrap();
        steps += 1;
        let s = handle.snapshot();
        asked.retain_mut(|(id, reply)| match reply.try_recv() {
            Ok(answer) => {
                answers += 1;
                assert!(
                    answer == Ok(()) && s.coflows.iter().any(|c| c.id.0 == *id),
                    "coflow {id} is answered before it is shown"
                );
                false
            }
            Err(_) => true,
        });
    }
    let stats = &handle.snapshot().stats;
    assert_eq!((stats.missed_cycles, stats.late_cycles, answers), (0, 0, 2_000));
    assert!(steps < 200, "{steps} snapshots at most for 20,000 commands and 10 cycles");
}

#[test]
fn commands_are_answered_even_where_cycles_take_longer_than_their_interval() {
    let (mut control, handle) = control(CircuitPolicy { interval: Span::micros(20), ..policy() });
    control.driver.host.clock.0.set(INTERVAL.0);
    let mut asked: Vec<_> = (0..200).map(|id| handle.ask(arrival(id)).unwrap()).collect();
    for _ in 0..100 {
        control.step().unwrap();
    }
    asked.retain_mut(|reply| reply.try_recv().is_err());
    assert!(asked.is_empty(), "{} are not answered", asked.len());
    assert!(handle.snapshot().stats.missed_cycles > 0, "it is too slow");
}

#[test]
fn a_loop_without_handles_ends() {
    let (mut control, handle) = control(policy());
    drop(handle);
    assert!(control.step().is_err(), "an abandoned queue is no tick");
}
