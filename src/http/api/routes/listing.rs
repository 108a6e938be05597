//! The list of coflows, written while it is read: a client that does not read holds an index and
//! one piece, not the whole answer.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use utoipa::IntoParams;

use super::resource::flows_of;
use crate::api::problem::{ProblemDetails, Reply};
use crate::api::state::App;
use crate::api::wire::{self, CoflowState};
use crate::control::record::{CoflowView, ProposalState, Snapshot};
use crate::ids::CoflowId;

/// Bytes from which a piece of the answer is sent.
const PIECE: usize = 16 << 10;

/// Which coflows.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct CoflowsQuery {
    /// Only those in this state.
    #[param(inline)]
    state: Option<CoflowState>,
    /// Only those of this name.
    name: Option<String>,
    /// Only those that have ended since `ended` of an earlier answer was this.
    #[serde(rename = "endedAfter")]
    ended_after: Option<u64>,
    /// Only those with larger ids: where an earlier answer ended.
    after: Option<u32>,
    /// At most this many, 1 or more; `more` says whether there are others.
    #[param(minimum = 1)]
    limit: Option<u32>,
    /// With the flows of coflows that are sent here and have at most this many.
    flows: Option<usize>,
}

impl CoflowsQuery {
    /// Whether it wants the coflow of this id, state and name.
    fn admits(&self, (id, state, name): (u32, CoflowState, &str)) -> bool {
        self.state.is_none_or(|s| s == state)
            && self.name.as_ref().is_none_or(|n| n == name)
            && self.after.is_none_or(|a| id > a)
    }
}

/// Where a coflow is in a snapshot.
#[derive(Clone, Copy)]
enum ListedCoflow {
    Live(CoflowId),
    Closed(u32),
    Proposed(u32),
}

/// The coflow at a place.
fn at(s: &Snapshot, place: ListedCoflow) -> Option<wire::Coflow> {
    match place {
        ListedCoflow::Live(id) => s.coflows.live.get(id).map(wire::Coflow::from),
        ListedCoflow::Closed(k) => s.coflows.closed.nth(k as usize).map(wire::Coflow::from),
        ListedCoflow::Proposed(k) => s.proposals.get(k as usize).map(|p| (&**p).into()),
    }
}

/// What a filter asks of the coflow at a place. Nothing is copied: thousands that have ended may be
/// remembered, and a viewer may want the open ones each second.
fn key(s: &Snapshot, place: ListedCoflow) -> Option<(u32, CoflowState, &str)> {
    fn of(c: &CoflowView) -> (u32, CoflowState, &str) {
        (c.id.0, c.into(), &c.name)
    }
    match place {
        ListedCoflow::Live(id) => s.coflows.live.get(id).map(of),
        ListedCoflow::Closed(k) => s.coflows.closed.nth(k as usize).map(of),
        ListedCoflow::Proposed(k) => {
            s.proposals.get(k as usize).map(|p| (p.id.0, p.state.into(), &*p.name))
        }
    }
}

/// The places of the coflows that a filter admits, by id. O(n log n) for n that are remembered.
fn places(s: &Snapshot, filter: &CoflowsQuery) -> Vec<(u32, ListedCoflow)> {
    let closed = s.coflows.closed.len() as u32;
    let all: Box<dyn Iterator<Item = ListedCoflow> + '_> = match filter.ended_after {
        Some(n) => {
            Box::new((s.coflows.closed.first_after(n) as u32..closed).map(ListedCoflow::Closed))
        }
        None => {
            let open = |&k: &u32| s.proposals[k as usize].state != ProposalState::Confirmed;
            let proposed = (0..s.proposals.len() as u32).filter(open).map(ListedCoflow::Proposed);
            Box::new(
                s.coflows
                    .live
                    .iter()
                    .map(|c| ListedCoflow::Live(c.id))
                    .chain((0..closed).map(ListedCoflow::Closed))
                    .chain(proposed),
            )
        }
    };
    let mut found: Vec<(u32, ListedCoflow)> =
        all.filter_map(|p| key(s, p).filter(|k| filter.admits(*k)).map(|k| (k.0, p))).collect();
    found.sort_by_key(|f| f.0);
    found
}

/// All coflows that are open, those that ended lately, and proposals; by id.
#[utoipa::path(get, path = "/api/v1/coflows", operation_id = "listCoflows", tag = "coflows", params(CoflowsQuery),
    responses((status = 200, body = wire::Coflows)))]
pub async fn list(
    State(app): State<App>,
    filter: Result<Query<CoflowsQuery>, QueryRejection>,
) -> Reply<Response> {
    let Query(filter) = filter.map_err(|e| ProblemDetails::query(&e))?;
    if filter.limit == Some(0) {
        return Err(ProblemDetails::bad(
            "limit is how many coflows to list at most; allowed: 1 or more",
        ));
    }
    let s = app.snapshot();
    let mut places = places(&s, &filter);
    let most = filter.limit.map_or(places.len(), |l| l as usize);
    let more = places.len() > most;
    places.truncate(most);
    let head = wire::Coflows {
        revision: s.revision,
        now_ns: s.now.0,
        ended: s.coflows.closed.total(),
        more,
        coflows: vec![],
    };
    Ok(answer(app, s, head, places, filter.flows))
}

/// A coflow with its flows, if they are asked for and not more than that.
fn with_flows(app: &App, c: wire::Coflow, most: Option<usize>) -> wire::Coflow {
    let flows = most.and_then(|most| flows_of(app, CoflowId(c.id)).filter(|f| f.len() <= most));
    wire::Coflow { flows, ..c }
}

/// The JSON of `head` with the coflows at these places, piece by piece.
fn answer(
    app: App,
    s: Arc<Snapshot>,
    head: wire::Coflows,
    places: Vec<(u32, ListedCoflow)>,
    flows: Option<usize>,
) -> Response {
    let mut text = serde_json::to_string(&head).unwrap_or_default();
    // The list is the last field, and empty.
    let end = text.split_off(text.len().saturating_sub("]}".len()));
    let first = places.first().map(|p| p.0);
    let rest = (text, places.into_iter(), Some(end));
    let pieces = stream::unfold(rest, move |(mut text, mut places, end)| {
        let (app, s) = (app.clone(), s.clone());
        async move {
            let mut end = Some(end?);
            while text.len() < PIECE {
                let Some((id, place)) = places.next() else {
                    text.push_str(&end.take().unwrap_or_default());
                    break;
                };
                let comma = if Some(id) == first { "" } else { "," };
                let coflow = at(&s, place).map(|c| with_flows(&app, c, flows));
                let coflow =
                    coflow.and_then(|c| serde_json::to_string(&c).ok()).unwrap_or_default();
                text.push_str(comma);
                text.push_str(&coflow);
            }
            Some((Ok::<_, Infallible>(Bytes::from(text)), (String::new(), places, end)))
        }
    });
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    ([kind], Body::from_stream(pieces)).into_response()
}
