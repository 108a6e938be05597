//! Jobs over HTTP: the real API and controller, and a sender that delivers at once.

use std::sync::{Mutex, OnceLock};

use super::rig::{Rig, rig_with};
use super::*;
use crate::api::{CoflowSender, ServerOptions};
use crate::coflows::CoflowSpec;
use crate::control::Event;
use crate::fabric::{ReportedEnds, Shipment};
use crate::ids::{CoflowId, FlowId};
use crate::placement::Kind;
use crate::runtime::handle::Handle;
use crate::units::{Bytes, Time};

/// Delivers what it is asked to send, or does not.
#[derive(Default)]
struct Mail {
    handle: OnceLock<Handle>,
    sent: Mutex<Vec<CoflowSpec>>,
    cancelled: Mutex<Vec<CoflowId>>,
    /// Coflows from this place on never arrive.
    silent_from: Option<usize>,
    /// The coflow at this place breaks.
    breaks_at: Option<usize>,
}

impl CoflowSender for Mail {
    fn send(&self, Shipment { coflow: c, report }: Shipment<'_>) -> Result<(), String> {
        let h = self.handle.get().expect("given before anybody asks");
        let mut sent = self.sent.lock().unwrap();
        let k = sent.len();
        sent.push(c.clone());
        if self.breaks_at == Some(k) {
            h.notify(Event::CoflowCancelled { id: c.id, why: None });
        } else if self.silent_from.is_none_or(|s| k < s) {
            assert_eq!(report, ReportedEnds::Flows);
            let flows = c.flows.iter().enumerate();
            flows.for_each(|(k, f)| {
                h.notify(Event::FlowFinished { id: c.id, flow: FlowId::from(k), bytes: f.bytes })
            });
            h.notify(Event::CoflowFinished { id: c.id, at: Time(1) });
        }
        // A cycle: the run's end waits for the counters.
        h.notify(Event::Tick);
        Ok(())
    }

    fn cancel(&self, id: CoflowId) {
        self.cancelled.lock().unwrap().push(id);
    }
}

struct Bed {
    rig: Option<Rig>,
    mail: Arc<Mail>,
    client: Arc<Client>,
    topology: Arc<Topology>,
}

fn bed(mail: Mail) -> Bed {
    let mail = Arc::new(mail);
    let listen = Some(([127, 0, 0, 1], 0).into());
    let rig =
        rig_with(ServerOptions { listen, sender: Some(mail.clone()), ..ServerOptions::default() });
    mail.handle.set(rig.handle.clone()).ok().expect("once");
    let client = Client::new(&rig.server.url(), None).unwrap();
    let seen: wire::Topology = parse(&client.get("/api/v1/topology").unwrap()).unwrap();
    let topology = Arc::new(Topology::try_from(&seen).unwrap());
    Bed { rig: Some(rig), mail, client: Arc::new(client), topology }
}

/// The first jobs that are shipped, fifty times as fast.
fn few() -> JobList {
    let text = crate::testing::shipped("workloads/jobs-20.yaml");
    let mut list = config::read_jobs(&text, "j").unwrap();
    list.jobs.truncate(5);
    config::Select { time_scale: 50, ..config::Select::default() }.shrink(&mut list.jobs);
    list
}

impl Bed {
    fn play(&self, stop: &AtomicBool) -> (JobsResult, Result<(), CliError>) {
        self.play_by(Kind::Fair, stop)
    }

    fn play_by(&self, kind: Kind, stop: &AtomicBool) -> (JobsResult, Result<(), CliError>) {
        let (policy, by) =
            (CircuitPolicy { name: "p".into(), ..CircuitPolicy::default() }, JobPolicy::new(kind));
        let (elephant, jobs) = (policy.elephant_threshold, few());
        let ask = live::LiveJobs {
            topology: &self.topology,
            jobs_by: &by,
            elephant,
            jobs: &jobs,
            failures: &[],
        };
        play(&self.client, &ask, (&policy, &policy), (stop, None)).unwrap()
    }
}

/// Runs under a policy while the controller's clock goes on, as a daemon's does.
fn play_with_clock(bed: &Bed, kind: Kind) -> (JobsResult, Result<(), CliError>) {
    let ticks = bed.rig.as_ref().unwrap().handle.clone();
    let over = Arc::new(AtomicBool::new(false));
    let seen = over.clone();
    let clock = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        while !seen.load(Relaxed) {
            // Waits for its answer: a busy machine has fewer cycles, not a longer queue.
            runtime.block_on(ticks.tell(Event::Tick)).unwrap();
            std::thread::park_timeout(Duration::from_millis(20));
        }
    });
    let played = bed.play_by(kind, &AtomicBool::new(false));
    over.store(true, Relaxed);
    clock.join().unwrap();
    played
}

#[test]
fn a_daemon_whose_policy_places_no_tasks_has_them_placed_by_joint() {
    let daemon = |name: &str| read_policy(Path::new(name)).unwrap();
    let by = |policy: Option<&Path>, theirs: &str| {
        let theirs = daemon(theirs);
        let (plan, file) = chosen(policy, &theirs).unwrap();
        if policy.is_none() {
            assert_eq!(plan.policy, theirs.policy, "thresholds are the daemon's");
        }
        (plan.jobs.unwrap().placement.kind(), file)
    };
    assert_eq!(by(None, "c-through"), (Kind::Joint, "joint".into()));
    assert_eq!(by(None, "corral"), (Kind::Corral, "the daemon's policy".into()));
    assert_eq!(by(Some(Path::new("fair")), "c-through"), (Kind::Fair, "fair".into()));
}

#[test]
fn what_joint_decides_is_shown_by_the_daemon() {
    let bed = bed(Mail::default());
    let (r, ended) = bed.play_by(Kind::Joint, &AtomicBool::new(false));
    assert_eq!((ended, r.summary.finished), (Ok(()), 5));
    let all: wire::Decisions = parse(&bed.client.get("/api/v1/jobs/decisions").unwrap()).unwrap();
    let tasks = |of: &[wire::Decision]| -> u64 {
        of.iter().flat_map(|d| &d.racks).map(|t| u64::from(t.tasks)).sum()
    };
    let placed = all.decisions.iter().filter(|d| !d.again).cloned().collect::<Vec<_>>();
    assert_eq!((all.policy.as_str(), all.jobs.len()), ("joint", 5));
    assert!(tasks(&placed) >= r.jobs.iter().map(|j| j.tasks).sum::<u64>());
    let job = &r.jobs[1];
    let of = format!("/api/v1/jobs/decisions?job={}&stage=1", job.name);
    let of: wire::Decisions = parse(&bed.client.get(&of).unwrap()).unwrap();
    assert!(of.decisions.iter().all(|d| d.job == job.id.0 && d.stage == 1));
    assert!(of.decisions.iter().any(|d| d.estimate.is_some() && d.losers > 0), "{of:?}");
    let none = bed.client.get("/api/v1/jobs/decisions?job=sort-9").unwrap_err();
    assert!(none.to_string().contains("no job `sort-9` was reported"), "{none}");
}

#[test]
fn co_decided_asks_over_http_and_its_coflows_are_the_confirmed_proposals() {
    let bed = bed(Mail::default());
    let (r, ended) = play_with_clock(&bed, Kind::CoDecided);
    assert_eq!((ended, r.summary.finished, r.placement.as_str()), (Ok(()), 5, "co-decided"));
    let seen: wire::Coflows = parse(&bed.client.get("/api/v1/coflows").unwrap()).unwrap();
    let sent: Vec<u32> = bed.mail.sent.lock().unwrap().iter().map(|c| c.id.0).collect();
    let confirmed: Vec<&wire::Coflow> =
        seen.coflows.iter().filter(|c| c.name.starts_with("job-")).collect();
    assert!(
        !confirmed.is_empty()
            && confirmed
                .iter()
                .all(|c| c.state == wire::CoflowState::Finished && sent.contains(&c.id)),
        "{seen:?}"
    );
    assert!(
        seen.coflows
            .iter()
            .all(|c| !matches!(c.state, wire::CoflowState::Proposed | wire::CoflowState::Expired))
    );
    assert!(
        r.summary.bytes_planned == r.summary.bytes_received
            && bed.mail.cancelled.lock().unwrap().is_empty()
    );
}

#[test]
fn jobs_run_over_http_and_every_byte_is_accounted_for() {
    let bed = bed(Mail::default());
    let (r, ended) = play_with_clock(&bed, Kind::Fair);
    assert_eq!(ended, Ok(()));
    assert_eq!((r.summary.finished, r.summary.unfinished, r.jobs.len()), (5, 0, 5));
    let sent: Bytes = bed.mail.sent.lock().unwrap().iter().map(CoflowSpec::bytes).sum();
    assert!(
        r.summary.bytes_planned == sent && r.summary.bytes_received == sent && sent > Bytes::ZERO
    );
    assert_eq!(
        (r.mechanism.as_str(), r.grain.as_str(), r.topology.as_str()),
        ("test", "host", "net")
    );
    assert!(
        r.coflows.iter().all(|c| c.cct.is_some())
            && r.coflows.len() == bed.mail.sent.lock().unwrap().len()
    );
    // On a slow machine a reduce may have given its slot to a map, and starts again.
    let counters = r.summary.counters;
    assert_eq!(counters.starts, r.jobs.iter().map(|j| j.tasks).sum::<u64>() + counters.preempted);
    assert!(bed.mail.cancelled.lock().unwrap().is_empty());
}

#[test]
fn who_stops_cancels_what_is_on_its_way_and_keeps_what_was_done() {
    let bed = bed(Mail { silent_from: Some(0), ..Mail::default() });
    let stop = Arc::new(AtomicBool::new(false));
    let (mail, told) = (bed.mail.clone(), stop.clone());
    let waits = std::thread::spawn(move || {
        while mail.sent.lock().unwrap().is_empty() {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        told.store(true, Relaxed);
    });
    let (r, ended) = bed.play(&stop);
    waits.join().unwrap();
    assert_eq!(ended, Ok(()));
    assert!(r.summary.unfinished > 0 && r.jobs.len() == 5, "those that never came count too");
    let (sent, cancelled) = (bed.mail.sent.lock().unwrap(), bed.mail.cancelled.lock().unwrap());
    assert!(
        !cancelled.is_empty() && sent.iter().all(|c| cancelled.contains(&c.id)),
        "{cancelled:?}"
    );
}

#[test]
fn a_coflow_that_breaks_ends_the_run_and_is_named() {
    let bed = bed(Mail { breaks_at: Some(0), ..Mail::default() });
    let (r, ended) = bed.play(&AtomicBool::new(false));
    let why = ended.unwrap_err();
    assert!(why.code() == 1 && why.to_string().contains("taken coflow 0 back"), "{why}");
    assert!(r.summary.unfinished > 0);
}

#[test]
fn a_controller_that_goes_away_is_an_error_with_the_result_so_far() {
    let mut bed = bed(Mail { silent_from: Some(0), ..Mail::default() });
    let (mail, rig) = (bed.mail.clone(), bed.rig.take().unwrap());
    let ends = std::thread::spawn(move || {
        while mail.sent.lock().unwrap().is_empty() {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        drop(rig);
    });
    let (r, ended) = bed.play(&AtomicBool::new(false));
    ends.join().unwrap();
    let why = ended.unwrap_err();
    assert_eq!(why.code(), 4, "{why}");
    assert!(r.summary.unfinished > 0 && r.jobs.len() == 5);
}

#[test]
fn a_daemon_that_sends_nothing_or_has_another_network_is_refused() {
    let rig = rig_with(ServerOptions {
        listen: Some(([127, 0, 0, 1], 0).into()),
        ..ServerOptions::default()
    });
    let client = Arc::new(Client::new(&rig.server.url(), None).unwrap());
    let bed = Bed { rig: Some(rig), client, ..bed(Mail::default()) };
    let (_, ended) = bed.play(&AtomicBool::new(false));
    assert!(
        ended.clone().unwrap_err().to_string().contains("/send: this controller has no sender"),
        "{ended:?}"
    );

    let (policy, by) = (
        CircuitPolicy { name: "f-eps".into(), ..CircuitPolicy::default() },
        JobPolicy::new(Kind::FEps),
    );
    let why = fits(&bed.topology, &by, (&policy, &policy), "f-eps.yaml").unwrap_err();
    assert_eq!(why.code(), 3);
    assert!(
        why.to_string()
            .contains("meant for 4 racks with an EPS uplink of 1Gb/s each and no circuits"),
        "{why}"
    );
    assert!(why.to_string().contains("1 planes and uplinks of 100Mb/s"), "{why}");
    let meant = by.placement.network(&bed.topology);
    assert_eq!(fits(&meant, &by, (&policy, &policy), "f"), Ok(()));
}
