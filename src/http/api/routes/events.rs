//! The event log as server-sent events that resume.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::api::problem::{ProblemDetails, Reply};
use crate::api::state::App;
use crate::api::wire;

/// What a client wants of the event log.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventsQuery {
    /// Names of events, with commas between them.
    types: Option<String>,
}

impl EventsQuery {
    /// The names; all if none are given.
    fn names(self) -> Result<Vec<&'static str>, ProblemDetails> {
        let Some(types) = self.types else { return Ok(wire::What::NAMES.to_vec()) };
        let find = |name: &str| {
            let known = || {
                ProblemDetails::bad(format!(
                    "types: no event is called `{name}`: {}",
                    wire::What::NAMES.join(", ")
                ))
            };
            wire::What::NAMES.into_iter().find(|n| *n == name).ok_or_else(known)
        };
        types.split(',').map(|name| find(name.trim())).collect()
    }
}

/// The event log from now on, or from after `Last-Event-ID`. `types` leaves out all others, which
/// count as received. An event's id is its number, dense from zero. Where events were forgotten
/// (4096 are kept), an event `gap` without an id says how many. Where the daemon ends, the last one
/// is `end`, without an id: `{"at_ns":...}`.
#[utoipa::path(get, path = "/api/v1/events", operation_id = "streamEvents", tag = "events",
    params(("types" = Option<String>, Query, description = "Names of events (`event`), with commas between them: only these"),
        ("Last-Event-ID" = Option<u64>, Header, description = "The last event that the client has")),
    responses((status = 200, content_type = "text/event-stream", body = wire::Record), (status = 503, body = ProblemDetails, description = "Too many follow the events already")))]
pub async fn stream(
    State(app): State<App>,
    wanted: Result<Query<EventsQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Reply<Sse<impl Stream<Item = Result<Event, Infallible>>>> {
    let Query(wanted) = wanted.map_err(|e| ProblemDetails::query(&e))?;
    let types = wanted.names()?;
    let newest = app.log.newest();
    let last = match headers.get("last-event-id") {
        None => *newest.borrow(),
        Some(v) => {
            let id = v.to_str().ok().and_then(|t| t.parse::<u64>().ok());
            let id =
                id.ok_or_else(|| ProblemDetails::bad("Last-Event-ID is the number of an event"))?;
            // A number from before a restart: what came since is all there is.
            newest.borrow().map(|n| n.min(id))
        }
    };
    let room = app.door.stream()?;
    let reader = EventReader {
        _room: room,
        stopping: app.stopping.clone(),
        app,
        newest,
        last,
        types,
        ready: VecDeque::new(),
        ended: false,
    };
    let events = stream::unfold(reader, |mut r| async move { r.next().await.map(|e| (Ok(e), r)) });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

/// One client's place in the log.
struct EventReader {
    _room: OwnedSemaphorePermit,
    app: App,
    newest: watch::Receiver<Option<u64>>,
    stopping: watch::Receiver<bool>,
    last: Option<u64>,
    types: Vec<&'static str>,
    ready: VecDeque<Event>,
    ended: bool,
}

impl EventReader {
    /// The next event; once the server stops, what is left, then `end`, then `None`.
    async fn next(&mut self) -> Option<Event> {
        loop {
            // Seen before the log is read, so that nothing that happened before the stop is left
            // out.
            let stopping = *self.stopping.borrow();
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            // Seen before the log is read: what is appended between wakes us at once.
            self.newest.borrow_and_update();
            if let Some(line) = self.app.log.next(self.last) {
                let seq = line.record.seq;
                let due = self.last.map_or(seq, |l| l + 1);
                if seq > due {
                    self.ready.push_back(
                        Event::default().event("gap").data(format!("{{\"missed\":{}}}", seq - due)),
                    );
                }
                self.last = Some(seq);
                let (name, data) = line.sent();
                if self.types.contains(&name) {
                    self.ready
                        .push_back(Event::default().id(seq.to_string()).event(name).data(data));
                }
                continue;
            }
            if stopping {
                let at = self.app.snapshot().now;
                let end = || Event::default().event("end").data(format!("{{\"at_ns\":{}}}", at.0));
                return (!std::mem::replace(&mut self.ended, true)).then(end);
            }
            tokio::select! {
                r = self.newest.changed() => r.ok()?,
                _ = self.stopping.changed() => {}
            }
        }
    }
}
