//! Shuffles that are to be placed: what the controller proposes, and its confirmation.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::body::{self, Content, check};
use super::launch;
use super::resource::{missing, parse_id, view};
use crate::api::problem::{Body, ProblemDetails, Reply};
use crate::api::state::App;
use crate::api::wire::{self, CoflowState};
use crate::coflows::RackBytes;
use crate::coflows::priority::Priorities;
use crate::control::record::Snapshot;
use crate::placement::advisor::{self, PlacementRequest, Proposal, ShuffleSpec};
use crate::topology::types::Types;
use crate::units::Span;

/// Begins a coflow that was proposed: with the bytes between racks as proposed, or with the flows
/// that are given. Asking again changes nothing.
#[utoipa::path(post, path = "/api/v1/coflows/{id}/confirm", operation_id = "confirmCoflow", tag = "coflows",
    params(("id" = u32, Path, description = "Its number")), request_body = Option<wire::Confirmation>,
    responses(
        (status = 200, body = wire::Coflow, description = "It has begun, or had before"),
        (status = 409, body = ProblemDetails, description = "It was never a proposal, or this daemon sends nothing"),
        (status = 410, body = ProblemDetails, description = "It was not confirmed in time, or was taken back")
    ))]
pub async fn confirm(
    State(app): State<App>,
    Path(id): Path<String>,
    body: Option<Body<wire::Confirmation>>,
) -> Reply<Json<wire::Coflow>> {
    let id = parse_id(&id)?;
    let asked = body.map(|b| b.value).unwrap_or_default();
    let _turn = app.ledger.lock().await;
    let there = view(&app, id).ok_or_else(|| missing(&app, id))?;
    if there.proposal.is_none() {
        return Err(ProblemDetails::new(
            StatusCode::CONFLICT,
            format!("coflow {} was declared, not proposed: there is nothing to confirm", id.0),
        ));
    }
    match there.state {
        CoflowState::Proposed | CoflowState::Expired => {}
        CoflowState::Active | CoflowState::Finished => return Ok(Json(there)),
        CoflowState::Cancelled => {
            return Err(ProblemDetails::new(
                StatusCode::GONE,
                format!("coflow {} was taken back", id.0),
            ));
        }
    }
    let send = there.send || asked.send;
    let content = content(&app, &there, (asked.flows, asked.priority, asked.types), send)?;
    launch::confirm(&app, &there, content, send).await.map(Json)
}

/// What a confirmed coflow is made of.
fn content(
    app: &App,
    there: &wire::Coflow,
    (flows, priority, types): (Vec<wire::Flow>, Option<u8>, Vec<wire::SwitchTier>),
    send: bool,
) -> Reply<Content> {
    if flows.is_empty() && !send && priority.is_none() && types.is_empty() {
        let pairs = there.pairs.iter().map(Into::into).collect();
        return Ok(Content {
            pairs,
            flows: vec![],
            priorities: Priorities::default(),
            types: Types::default(),
        });
    }
    let pairs =
        if flows.is_empty() { there.pairs.iter().map(Into::into).collect() } else { vec![] };
    check(
        app,
        &wire::CoflowBody {
            name: None,
            pairs,
            flows,
            place: None,
            send,
            weight: None,
            priority,
            types,
        },
    )
}

/// A proposal, and what it was computed from.
pub(super) struct ProposalDraft {
    pub proposal: Proposal,
    pub snapshot: Arc<Snapshot>,
}

impl ProposalDraft {
    /// Whether the network is still what it was computed from, but for bytes that have passed
    /// meanwhile.
    pub fn holds(&self, app: &App) -> bool {
        self.snapshot.standing().is_like(&app.snapshot().standing())
    }
}

/// What is asked by a body.
pub(super) fn question(
    app: &App,
    what: &wire::CoflowBody,
    pairs: &[RackBytes],
) -> Reply<Arc<PlacementRequest>> {
    let asked = match &what.place {
        Some(place) => body::request(app, place)?,
        None => PlacementRequest {
            shuffle: ShuffleSpec::Pairs(pairs.to_vec()),
            ready: Span::ZERO,
            deadline: None,
        },
    };
    Ok(Arc::new(asked))
}

/// What the controller would do now; computed where it keeps no other request waiting.
pub(super) async fn propose(app: &App, question: &Arc<PlacementRequest>) -> Reply<ProposalDraft> {
    let (snapshot, topology, question) =
        (app.snapshot(), app.handle.topology.clone(), question.clone());
    let work = move || {
        advisor::decide(&topology, &snapshot.standing(), &question)
            .map(|proposal| ProposalDraft { proposal, snapshot })
    };
    let found = tokio::task::spawn_blocking(work).await;
    let found = found.map_err(|_| {
        ProblemDetails::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the computation of the proposal broke",
        )
    })?;
    found.map_err(|e| ProblemDetails::value("/place/tasks", e.to_string()))
}
