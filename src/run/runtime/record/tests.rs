//! Simulated runs are recorded and played again; damaged files are told apart from machines that do
//! something else.

use std::io::Write;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::replay::{Counts, Ending, ReplayError, Replayed, replay};
use super::*;
use crate::coflows::{CoflowSpec, FlowSpec};
use crate::config::faults::read_fault;
use crate::control::policy::{CircuitPolicy, SchedulerKind};
use crate::control::{self, Controller};
use crate::demand::Estimator;
use crate::fabric::Fabric;
use crate::ids::{CoflowId, FlowId, HostId, RackId};
use crate::runtime::jobs::simulate::{JobRunOptions, SimulatedJobs, simulate_with};
use crate::runtime::jobs::tests::{jobs, kinds, network};
use crate::runtime::simulate::{Extras, SimOptions, Simulation, simulate_watched};
use crate::scheduler::SchedulerEvent;
use crate::sim::SimFabric;
use crate::workload::Workload;

/// A file in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(buf);
        Ok(buf.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What `run` records.
fn recorded(run: impl FnOnce(&Recorder)) -> Vec<u8> {
    let file = Memory::default();
    let recording = Recording::start(file.clone(), Pace::Virtual, Some(7)).unwrap();
    run(&recording.recorder());
    let written = recording.finish().unwrap();
    let bytes = std::mem::take(&mut *file.0.lock().unwrap());
    assert_eq!((written.bytes, written.lost), (bytes.len() as u64, None));
    assert_eq!(written.lines, bytes.iter().filter(|b| **b == b'\n').count() as u64);
    bytes
}

fn plan(scheduler: SchedulerKind, demand: Estimator) -> RunPlan {
    CircuitPolicy {
        scheduler,
        demand,
        elephant_threshold: Bytes(2_000_000),
        ..CircuitPolicy::default()
    }
    .into()
}

/// Three coflows, a second apart, and ports that break.
fn coflows(scheduler: SchedulerKind, demand: Estimator) -> Vec<u8> {
    let topology = Arc::new(network());
    let flow = |from: u32, to: u32, mb: u64| FlowSpec {
        from: HostId(from),
        to: HostId(to),
        bytes: Bytes(mb * 1_000_000),
    };
    let coflow = |k: u32| {
        CoflowSpec::new(
            CoflowId(k),
            format!("c{k}"),
            Time(u64::from(k) * 1_000_000_000),
            vec![flow(0, 2, 40), flow(3, 7, 30 + u64::from(k)), flow(4, 1, 1)],
        )
    };
    let workload = Workload::new("three", (0..3).map(coflow).collect());
    let faults = ["ocs0.in1=stuck@150ms", "r2.uplink=down@300ms+200ms"]
        .map(|f| read_fault(f, &topology).unwrap());
    recorded(|r| {
        let how = SimOptions {
            extras: Extras { faults: &faults, ..Extras::default() },
            record: Some(r),
            ..SimOptions::default()
        };
        simulate_watched(
            &topology,
            &plan(scheduler, demand),
            &workload,
            &how,
            &mut |_| {},
            &mut |_| true,
        )
        .unwrap();
    })
}

/// Six jobs, with a rack that fails and comes back.
fn jobs_of(kind: crate::placement::Kind) -> Vec<u8> {
    let (topology, jobs, policy) = (network(), jobs(), JobPolicy::new(kind));
    let at = |ms: u64| Time(ms * 1_000_000);
    let failures = [
        (at(700), SchedulerEvent::RackFailed(RackId(1))),
        (at(1500), SchedulerEvent::RackRecovered(RackId(1))),
    ];
    let plan = plan(SchedulerKind::Bipartite, Estimator::Declared);
    let ask = SimulatedJobs {
        topology: &topology,
        plan: &plan,
        jobs_by: &policy,
        jobs: &jobs,
        failures: &failures,
        faults: &[],
        until: None,
    };
    recorded(|r| {
        let course =
            JobRunOptions { remaining: Some((30, 5)), record: Some(r), ..JobRunOptions::default() };
        simulate_with(&ask, &course, &mut |_| {}).unwrap();
    })
}

fn again(file: &[u8]) -> Result<Replayed, ReplayError> {
    replay(file, None)
}

#[test]
fn simulated_runs_of_coflows_play_again() {
    for scheduler in SchedulerKind::ALL {
        for demand in [Estimator::Backlog, Estimator::Declared] {
            let r =
                again(&coflows(scheduler, demand)).unwrap_or_else(|e| panic!("{scheduler:?}: {e}"));
            assert_eq!(
                (r.ending, r.controller.refused, r.scheduler),
                (Ending::Complete, 0, Counts::default()),
                "{scheduler:?}"
            );
            assert!(
                r.controller.events > 5
                    && r.controller.actions > 5
                    && r.snapshot.coflows.iter().count() == 3,
                "{scheduler:?}"
            );
        }
    }
}

#[test]
fn priorities_that_change_under_way_play_again() {
    let (topology, id) = (Arc::new(network()), CoflowId(1));
    let flows = vec![FlowSpec { from: HostId(0), to: HostId(2), bytes: Bytes(5_000_000) }];
    let coflow = CoflowSpec::new(id, "c", Time::ZERO, flows);
    let file = recorded(|r| {
        let mut quiet = |_| ();
        let mut run = Simulation::new(
            &topology,
            &plan(SchedulerKind::EpsOnly, Estimator::Declared),
            &mut quiet,
        );
        run.record(r);
        run.arrive(&coflow).unwrap();
        run.wake().unwrap();
        run.prioritise(id, &[(FlowId(0), 1)]).unwrap();
        while run.unfinished() > 0 {
            let next = run.next_event().unwrap();
            run.advance(next).unwrap();
            run.wake().unwrap();
        }
        run.prioritise(id, &[(FlowId(0), 2)]).unwrap();
        run.wake().unwrap();
    });
    let text = String::from_utf8(file.clone()).unwrap();
    assert_eq!(text.matches(r#""action":"prioritise""#).count(), 1, "{text}");
    let r = again(&file).unwrap();
    assert_eq!(
        (r.ending, r.controller.refused),
        (Ending::Complete, 1),
        "a coflow that is over has no priorities"
    );
}

#[test]
fn simulated_runs_of_jobs_play_again() {
    for kind in kinds() {
        let r = again(&jobs_of(kind)).unwrap_or_else(|e| panic!("{kind:?}: {e}"));
        assert_eq!(r.ending, Ending::Complete, "{kind:?}");
        let jobs = r.jobs.expect("there is a scheduler");
        assert!(
            r.scheduler.actions > 50
                && jobs.counters.jobs_finished == 6
                && jobs.counters.hosts_failed > 0,
            "{kind:?}"
        );
    }
}

#[test]
fn a_replay_stops_at_the_time_asked_for_and_shows_the_state_then() {
    let file = coflows(SchedulerKind::Bipartite, Estimator::Declared);
    let at = Time(1_500_000_000);
    let r = replay(&file[..], Some(at)).unwrap();
    assert_eq!(
        (r.ending, r.snapshot.now, r.snapshot.coflows.iter().count()),
        (Ending::Asked, at, 2),
        "the third has not arrived"
    );
    let r = replay(&file[..], Some(Time::MAX)).unwrap();
    assert_eq!((r.ending, r.snapshot.coflows.iter().count()), (Ending::Complete, 3));
}

/// The file with one line changed.
fn with_line(file: &[u8], k: usize, change: impl FnOnce(&str) -> String) -> Vec<u8> {
    let mut lines: Vec<String> =
        std::str::from_utf8(file).unwrap().lines().map(str::to_owned).collect();
    lines[k] = change(&lines[k]);
    (lines.join("\n") + "\n").into_bytes()
}

fn first(file: &[u8], begins: &str) -> usize {
    std::str::from_utf8(file).unwrap().lines().position(|l| l.starts_with(begins)).unwrap()
}

#[test]
fn the_first_difference_is_shown_with_both_texts() {
    let file = coflows(SchedulerKind::Bipartite, Estimator::Declared);
    let k = first(&file, "{\"act\":{\"action\":{\"action\":\"apply\"");
    let other = with_line(&file, k, |l| l.replacen("\"plane\":0", "\"plane\":9", 1));
    let ReplayError::Differs { line, machine, recorded, replayed, .. } = again(&other).unwrap_err()
    else {
        panic!("it differs")
    };
    assert_eq!((line, machine), (k as u64 + 1, "controller"));
    assert!(
        recorded.contains("\"plane\":9") && replayed.contains("\"plane\":0"),
        "{recorded}\n{replayed}"
    );

    // An action too few: the next line is no end of them.
    let text = String::from_utf8(file.clone()).unwrap();
    let fewer: String =
        text.lines().enumerate().filter(|(n, _)| *n != k).map(|(_, l)| format!("{l}\n")).collect();
    assert!(matches!(again(fewer.as_bytes()), Err(ReplayError::Differs { .. })));

    // A refusal that was none.
    let k = first(&file, "{\"idle\"");
    let refused = with_line(&file, k, |l| format!("{{\"refused\":{{\"why\":\"no\"}}}}\n{l}"));
    let e = again(&refused).unwrap_err().to_string();
    assert!(e.contains("the event before is accepted"), "{e}");
}

#[test]
fn what_is_damaged_is_told_with_its_place() {
    let file = coflows(SchedulerKind::Edmonds, Estimator::Backlog);
    let malformed = |file: &[u8]| match again(file).unwrap_err() {
        ReplayError::Malformed { line, column, why } => (line, column, why),
        e => panic!("{e}"),
    };
    let broken =
        with_line(&file, 4, |_| "{\"tell\":{\"at\":5,\"event\":{\"event\":\"tock\"}}}".into());
    let (line, column, why) = malformed(&broken);
    assert!(
        line == 5 && column > 0 && why.contains("unknown variant `tock`"),
        "{line}:{column} {why}"
    );
    assert_eq!(malformed(b"{\"idle\":{}}\n").0, 1);
    assert_eq!(malformed(b"").0, 1);
    let other = with_line(&file, 0, |l| l.replacen("\"format\":1", "\"format\":2", 1));
    assert_eq!(malformed(&other), (1, 1, "the format is 2; this version reads 1".into()));
    let small = with_line(
        &file,
        first(&file, "{\"tell\":{\"at\":50000000,\"event\":{\"event\":\"observed\""),
        |l| l.replacen("\"racks\":4", "\"racks\":5", 1),
    );
    // The machine refuses an observation of another network, which is not what it did.
    let differs = again(&small).unwrap_err().to_string();
    assert!(
        differs.contains("does not fit the network: `sent` is a matrix of 5 racks"),
        "{differs}"
    );
}

#[test]
fn a_file_that_is_cut_off_is_played_as_far_as_it_goes() {
    let file = coflows(SchedulerKind::Bipartite, Estimator::Declared);
    let whole = again(&file).unwrap();
    let lines = file.iter().filter(|b| **b == b'\n').count() as u64;
    assert_eq!(whole.lines, lines);
    let half = again(&file[..file.len() - 5]).unwrap();
    assert_eq!((half.ending, half.lines), (Ending::CutOff { within_line: true }, lines - 1));
    let end = first(&file, "{\"end\"");
    let text = String::from_utf8(file).unwrap();
    let without: String = text.lines().take(end).map(|l| format!("{l}\n")).collect();
    assert_eq!(again(without.as_bytes()).unwrap().ending, Ending::CutOff { within_line: false });
}

/// A disk that takes nothing until it is let go.
struct Stuck(std::sync::mpsc::Receiver<()>, Memory);

impl Write for Stuck {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        let _ = self.0.recv();
        self.1.write(buf)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_slow_disk_ends_a_live_recording_and_says_so() {
    let (let_go, waits) = std::sync::mpsc::channel();
    let memory = Memory::default();
    let recording = Recording::start(Stuck(waits, memory.clone()), Pace::Live, None).unwrap();
    let recorder = recording.recorder();
    let topology = network();
    let plan = plan(SchedulerKind::Bipartite, Estimator::Declared);
    recorder.put(RecordingEntry::Head(Box::new(recorder.head(
        &topology,
        &plan,
        (Time::ZERO, Span::ZERO),
        "test",
    ))));
    // Far more than the queue and the buffer hold; nothing waits.
    (0..100_000).for_each(|k| {
        recorder.put(RecordingEntry::Tell {
            at: Time(k),
            event: control::Event::Trouble { what: control::Trouble::Names, why: None },
        })
    });
    drop(let_go);
    let written = recording.finish().unwrap();
    assert!(written.lost.is_some() && written.lines < 100_000, "{written:?}");
    let file = std::mem::take(&mut *memory.0.lock().unwrap());
    let r = again(&file).unwrap();
    assert!(matches!(r.ending, Ending::Lost { .. }), "{:?}", r.ending);
    assert_eq!(
        r.controller.events + 2,
        written.lines,
        "what was taken before is there, without a gap"
    );
}

#[test]
fn a_disk_that_fails_is_told_at_the_end() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let recording = Recording::start(Full, Pace::Virtual, None).unwrap();
    (0..50_000).for_each(|_| recording.recorder().put(RecordingEntry::Idle {}));
    assert_eq!(recording.finish().unwrap_err().kind(), std::io::ErrorKind::StorageFull);
}

#[test]
fn an_event_that_breaks_a_machine_is_told_with_its_line() {
    let file = coflows(SchedulerKind::Bipartite, Estimator::HederaRacks);
    let k = first(&file, "{\"tell\":{\"at\":50000000,\"event\":{\"event\":\"observed\"");
    // A network whose racks have hosts that are not there; the demand of hosts is worked out in the
    // first cycle.
    let broken = with_line(&file, 0, |l| l.replacen("\"first_host\":0", "\"first_host\":999", 1));
    let e = again(&broken).unwrap_err();
    assert!(matches!(e, ReplayError::Panicked { line, .. } if line == k as u64 + 1), "{e}");
}

#[test]
fn an_observation_that_did_not_fit_plays_again() {
    let topology = network();
    let file = recorded(|recorder| {
        let mut controller = Controller::new(
            topology.clone().into(),
            CircuitPolicy::default(),
            Time::ZERO,
            Span::ZERO,
        );
        let head = recorder.head(&topology, &RunPlan::default(), (Time::ZERO, Span::ZERO), "test");
        recorder.put(RecordingEntry::Head(Box::new(head)));
        let mut tell = |event: control::Event| {
            recorder.put(RecordingEntry::Tell { at: Time(5), event: event.clone() });
            controller.handle(event, Time(5)).unwrap();
            while let Some(action) = controller.poll_action() {
                recorder.put(RecordingEntry::Act { action });
            }
            recorder.put(RecordingEntry::Idle {});
        };
        tell(control::Event::Tick);
        let mut seen =
            SimFabric::new(topology.clone().into(), Default::default()).observe(Time(5)).unwrap();
        seen.ports.clear();
        tell(control::Event::Observed { result: Ok(seen) });
    });
    assert!(String::from_utf8_lossy(&file).contains("does not fit the network: ports of 0 planes"));
    assert_eq!(again(&file).unwrap().ending, Ending::Complete);
}

proptest! {
    #![proptest_config(crate::testing::drawn(300))]

    #[test]
    fn damaged_files_never_break_the_player(
        of_jobs in any::<bool>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 1..4),
    ) {
        static FILES: std::sync::OnceLock<[Vec<u8>; 2]> = std::sync::OnceLock::new();
        let files = FILES.get_or_init(|| {
            [coflows(SchedulerKind::Bipartite, Estimator::Declared), jobs_of(crate::placement::Kind::Fair)]
        });
        let mut file = files[usize::from(of_jobs)].clone();
        for (place, byte, how) in edits {
            let k = place.index(file.len());
            match how {
                0 => file[k] = byte,
                1 => drop(file.remove(k)),
                // Digits are what changes meaning and keeps the form.
                _ => file.insert(k, b'0' + byte % 10),
            }
        }
        // Whatever comes of it, it is a result.
        let _ = again(&file);
    }
}

/// A file that panics when it is written.
struct Panics;

impl std::io::Write for Panics {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        panic!("as it shall")
    }

    fn flush(&mut self) -> std::io::Result<()> {
        panic!("as it shall")
    }
}

#[test]
fn a_thread_that_dies_is_seen_and_one_that_cannot_write_is_another_matter() {
    let recording = Recording::start(Panics, Pace::Live, None).unwrap();
    let recorder = recording.recorder();
    assert!(recording.finish().unwrap_err().to_string().contains("has died"));
    assert!(recorder.died() && recorder.ended().is_none());
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let recording = Recording::start(full, Pace::Live, None).unwrap();
    let recorder = recording.recorder();
    assert!(recording.finish().is_err());
    assert!(!recorder.died() && recorder.ended().is_some());
}
