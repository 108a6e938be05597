//! The beginning of a coflow when things go wrong meanwhile: it breaks before the answer, or the
//! controller is late.

use std::sync::{Mutex, OnceLock};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use serde_json::json;
use tokio::sync::watch;

use super::*;
use crate::api::CoflowSender;
use crate::api::listeners::Listeners;
use crate::api::problem::{Body, ProblemDetails};
use crate::api::routes::{coflows, proposals};
use crate::api::state::{App, FIRST_POSTED};
use crate::api::wire::{self, CoflowState};
use crate::control::record::RecordedEvent;
use crate::control::{Action, ProgressBy};
use crate::fabric::Shipment;
use crate::ids::CoflowId;
use crate::placement::advisor::{self, ShuffleSpec};
use crate::runtime::handle::Command;
use crate::units::Bytes;

/// Breaks every coflow while it is asked to send it.
#[derive(Default)]
struct Breaks(OnceLock<Handle>);

impl CoflowSender for Breaks {
    fn send(&self, what: Shipment<'_>) -> Result<(), String> {
        let handle = self.0.get().expect("given before anybody asks").clone();
        let (id, told) = (what.coflow.id, std::thread::spawn);
        // The controller has taken it before this returns, as when a connection breaks at once.
        told(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(handle.tell(Event::CoflowCancelled { id, why: None }))
        })
        .join()
        .unwrap()
        .unwrap();
        Ok(())
    }
}

#[test]
fn the_answer_shows_what_was_declared_though_it_broke_before() {
    let breaks = Arc::new(Breaks::default());
    let r = rig_with(ServerOptions {
        listen: Some(([127, 0, 0, 1], 0).into()),
        sender: Some(breaks.clone()),
        ..ServerOptions::default()
    });
    breaks.0.set(r.handle.clone()).ok().expect("once");
    let flows = json!({"name": "sort", "send": true, "flows": [{"from": 0, "to": 2, "bytes": 5}]});
    let shown = |a: &ApiAnswer| {
        let c: wire::Coflow =
            serde_json::from_str(&a.text).unwrap_or_else(|e| panic!("{e}: {a:?}"));
        assert_eq!(
            (c.name.as_str(), c.state, c.asked_bytes, c.cct_ns),
            ("sort", CoflowState::Cancelled, 5, None),
            "{a:?}"
        );
        a.status
    };
    assert_eq!(shown(&r.send("POST", "/api/v1/coflows", &flows)), 201);
    assert_eq!(
        (
            shown(&r.send("PUT", "/api/v1/coflows/3", &flows)),
            shown(&r.send("PUT", "/api/v1/coflows/3", &flows))
        ),
        (201, 200)
    );
    let key = [("content-type", "application/json"), ("idempotency-key", "k")];
    let post = || r.call("POST", "/api/v1/coflows", &key, flows.to_string().as_bytes());
    let (first, again) = (post(), post());
    assert_eq!((shown(&first), shown(&again), first.text == again.text), (201, 201, true));
    // A proposal that breaks as soon as it is confirmed.
    let place = json!({"name": "sort", "place": {"maps": [{"rack": 0, "bytes": 5}], "reduces": [{"rack": 1, "tasks": 1}]}});
    let made = r.send("POST", "/api/v1/coflows", &place);
    let confirm =
        || r.send("POST", &format!("{}/confirm", made.header("location")), &json!({"send": true}));
    assert_eq!(shown(&confirm()), 200);
    assert_eq!(confirm().problem(410).1, format!("coflow {} was taken back", made.json()["id"]));
}

/// Notes what it is asked to send, and to stop sending.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) sent: Mutex<Vec<CoflowId>>,
    pub(super) stopped: Mutex<Vec<CoflowId>>,
}

impl CoflowSender for Notes {
    fn send(&self, what: Shipment<'_>) -> Result<(), String> {
        self.sent.lock().unwrap().push(what.coflow.id);
        Ok(())
    }

    fn cancel(&self, id: CoflowId) {
        self.stopped.lock().unwrap().push(id);
    }
}

/// A controller that is driven by hand, and an application before it that soon loses patience.
pub(super) struct LateController {
    pub(super) controller: Controller,
    pub(super) ends: HandlePeer,
    pub(super) app: App,
    pub(super) notes: Arc<Notes>,
    _stop: watch::Sender<bool>,
}

pub(super) fn late() -> LateController {
    let topology = Arc::new(network());
    let policy = CircuitPolicy { scheduler: SchedulerKind::Manual, ..CircuitPolicy::default() };
    let controller =
        Controller::new(topology.clone(), policy.clone(), Time(Span::millis(100).0), Span::ZERO);
    let (handle, ends) =
        Handle::new(topology, Arc::new(policy.into()), controller.snapshot(Time::ZERO, "test"), 0);
    let (notes, (stop, stopping)) = (Arc::new(Notes::default()), watch::channel(false));
    let sender: Option<Arc<dyn CoflowSender>> = Some(notes.clone());
    let patience = Duration::from_millis(1);
    let (log, ledger, policy_turn) = Default::default();
    let doors = Arc::new(Listeners::default());
    let (board, journal, door, run) =
        (Default::default(), None, doors.unix.clone(), Default::default());
    let app = App {
        handle,
        log,
        sender,
        ledger,
        policy_turn,
        door,
        doors,
        board,
        patience,
        journal,
        run,
        stopping,
    };
    LateController { controller, ends, app, notes, _stop: stop }
}

impl LateController {
    /// The controller takes all that it was sent so far; gives its answers.
    pub(super) fn wakes(&mut self) -> Vec<bool> {
        std::iter::from_fn(|| self.ends.commands.try_recv().ok())
            .collect::<Vec<_>>()
            .into_iter()
            .map(|c| self.takes(c))
            .collect()
    }

    /// The controller takes a command, shows what it did, and answers.
    pub(super) fn takes(&mut self, command: Command) -> bool {
        let answer = self.controller.handle(command.event, Time(1));
        let taken = answer.is_ok();
        self.ends.snapshot.send_replace(Arc::new(self.controller.snapshot(Time(1), "test")));
        if let Some(reply) = command.reply {
            let _ = reply.send(answer);
        }
        taken
    }

    /// What the controller made of coflows, and forgets of it.
    pub(super) fn said(&mut self) -> Vec<&'static str> {
        let logged = std::iter::from_fn(|| self.controller.poll_action());
        let said = logged.filter_map(|a| match a {
            Action::Log { record } => Some(match record.what {
                RecordedEvent::CoflowProposed { .. } => "proposed",
                RecordedEvent::CoflowArrived { .. } => "arrived",
                RecordedEvent::CoflowCancelled { .. } => "cancelled",
                _ => "else",
            }),
            _ => None,
        });
        said.collect()
    }

    async fn post(&self, body: wire::CoflowBody) -> Result<u16, ProblemDetails> {
        let raw = serde_json::to_vec(&body).unwrap().into();
        let how = axum::extract::Query::try_from_uri(&"http://x/".parse().unwrap()).unwrap();
        coflows::post(State(self.app.clone()), Ok(how), HeaderMap::new(), Body { value: body, raw })
            .await
            .map(|a| a.status().as_u16())
    }

    async fn delete(&self, id: u32) -> Result<StatusCode, ProblemDetails> {
        coflows::delete(State(self.app.clone()), Path(id.to_string())).await
    }

    async fn confirm(&self, id: u32) -> Result<CoflowState, ProblemDetails> {
        let body = wire::Confirmation { send: true, ..Default::default() };
        let body = Body { value: body, raw: axum::body::Bytes::new() };
        proposals::confirm(State(self.app.clone()), Path(id.to_string()), Some(body))
            .await
            .map(|c| c.0.state)
    }
}

#[tokio::test]
async fn a_coflow_that_the_controller_takes_late_is_taken_back() {
    let mut l = late();
    let pairs = [wire::RackPair { from: 0, to: 1, bytes: 9 }];
    let pairs = pairs.iter().map(Into::into).collect();
    let body = wire::CoflowBody {
        name: None,
        pairs,
        flows: vec![],
        place: None,
        send: true,
        weight: None,
        priority: None,
        types: vec![],
    };
    assert_eq!(l.post(body).await.unwrap_err().status, 503);
    assert_eq!((l.wakes(), l.said()), (vec![true, true], vec!["arrived", "cancelled"]));
    assert!(l.notes.sent.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_coflow_is_taken_back_after_it_was_sent() {
    let mut l = late();
    let turn = l.app.ledger.clone().lock_owned().await;
    let app = l.app.clone();
    let mut deleted = std::pin::pin!(coflows::delete(State(app), Path("7".into())));
    assert!(futures_util::poll!(&mut deleted).is_pending());
    assert!(
        l.wakes().is_empty(),
        "another request makes a coflow, and sends it before the controller hears of this one"
    );
    drop(turn);
    assert!(futures_util::poll!(&mut deleted).is_pending());
    assert_eq!(l.wakes(), [false], "there is no coflow 7");
    assert_eq!(deleted.await.unwrap_err().status, 404);
}

/// A daemon whose own workload has numbers up to a million and more.
struct BusyDaemon;

impl CoflowSender for BusyDaemon {
    fn send(&self, _: Shipment<'_>) -> Result<(), String> {
        Ok(())
    }

    fn last_own(&self) -> Option<CoflowId> {
        Some(CoflowId(FIRST_POSTED + 5))
    }
}

#[test]
fn numbers_of_the_daemon_s_own_workload_are_not_for_clients() {
    let r = rig_with(ServerOptions {
        listen: Some(([127, 0, 0, 1], 0).into()),
        sender: Some(Arc::new(BusyDaemon)),
        ..ServerOptions::default()
    });
    let body = json!({"pairs": [{"from": 0, "to": 1, "bytes": 5}]});
    let put = |id: u32| r.send("PUT", &format!("/api/v1/coflows/{id}"), &body);
    assert!(
        put(0).problem(409).1.contains("workload")
            && put(FIRST_POSTED + 5).problem(409).1.contains("workload")
    );
    assert_eq!(r.send("POST", "/api/v1/coflows", &body).json()["id"], FIRST_POSTED + 6);
    assert_eq!((put(FIRST_POSTED + 6).status, put(FIRST_POSTED + 7).status), (200, 201));
}

#[tokio::test]
async fn a_confirmation_that_the_controller_takes_late_leaves_no_coflow_without_a_sender() {
    let mut l = late();
    let shuffle =
        ShuffleSpec::Placed { maps: vec![(RackId(0), Bytes(9))], reduces: vec![(RackId(1), 1)] };
    let request = advisor::PlacementRequest { shuffle, ready: Span::ZERO, deadline: None };
    let proposal =
        advisor::decide(&l.app.handle.topology, &l.app.snapshot().standing(), &request).unwrap();
    let (id, proposal, expires) = (CoflowId(7), Arc::new(proposal), Time(1_000_000));
    l.app.handle.notify(Event::CoflowProposed {
        id,
        name: "p".into(),
        proposal,
        weight: 1,
        expires,
        send: false,
    });
    assert_eq!((l.wakes(), l.said()), (vec![true], vec!["proposed"]));
    // Twice, before the controller has looked: neither may be taken without its bytes being sent.
    assert_eq!(
        (l.confirm(7).await.unwrap_err().status, l.confirm(7).await.unwrap_err().status),
        (503, 503)
    );
    assert_eq!(
        (l.wakes(), l.said()),
        (vec![true, true, false, false], vec!["arrived", "cancelled"])
    );
    assert!(l.notes.sent.lock().unwrap().is_empty());
    assert_eq!(l.confirm(7).await.unwrap_err().status, 410, "a request that is repeated is told");
    assert_eq!(l.app.snapshot().coflows.open, 0);
}

#[tokio::test]
async fn a_coflow_that_is_taken_back_late_is_not_sent_any_more() {
    let mut l = late();
    let arrival = |k| Event::CoflowArrived {
        id: CoflowId(k),
        name: "c".into(),
        pairs: vec![],
        bound: Span(1),
        progress: ProgressBy::Sender,
        weight: 1,
        priorities: Default::default(),
    };
    [7, 8].into_iter().for_each(|k| l.app.handle.notify(arrival(k)));
    l.app.handle.notify(Event::CoflowFinished { id: CoflowId(8), at: Time(1) });
    assert_eq!(l.wakes(), [true; 3]);
    assert_eq!(l.delete(7).await.unwrap_err().status, 503);
    let stopped = |l: &LateController| std::mem::take(&mut *l.notes.stopped.lock().unwrap());
    assert_eq!(
        stopped(&l),
        [CoflowId(7)],
        "the controller takes it later, and nothing tells the sender then"
    );
    assert_eq!(l.wakes(), [true]);
    // Another one before the controller has answered, and one of a coflow that has finished.
    for (id, stops) in [(7, vec![CoflowId(7)]), (8, vec![]), (9, vec![])] {
        let app = l.app.clone();
        let app = App { patience: Duration::from_secs(60), ..app };
        let mut deleted = std::pin::pin!(coflows::delete(State(app), Path(id.to_string())));
        assert!(futures_util::poll!(&mut deleted).is_pending());
        assert_eq!(l.wakes(), [false]);
        let status = deleted.await.map_or_else(|p| p.status, |done| done.as_u16());
        assert_eq!(
            status,
            [204, 409, 404][id as usize - 7],
            "one that was taken back is taken back"
        );
        assert_eq!(stopped(&l), stops, "coflow {id}");
    }
}
