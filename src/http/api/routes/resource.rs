//! A coflow as a resource: its number, its name, how it is shown.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::api::problem::{ProblemDetails, Reply};
use crate::api::state::App;
use crate::api::wire;
use crate::control::record::ProposalState;
use crate::ids::CoflowId;
use crate::text;

/// The coflow number of a path; 404 for what is not a number that a coflow may have.
pub(super) fn parse_id(text: &str) -> Reply<CoflowId> {
    id_of(text).ok_or_else(|| {
        ProblemDetails::not_found(format!(
            "coflow {} does not exist: {NUMBER} to {}",
            text::shown(text),
            u32::MAX
        ))
    })
}

/// What a coflow is called by in a path.
const NUMBER: &str = "a coflow's id is a whole number from 0";

/// A number as it is written once: no sign, and no zero before it.
fn id_of(text: &str) -> Option<CoflowId> {
    text.parse().ok().filter(|n: &u32| n.to_string() == text).map(CoflowId)
}

/// A number under which a client makes a coflow, below `most`; 400 for another.
pub(super) fn chosen_id(text: &str, most: u32) -> Reply<CoflowId> {
    let bad = || {
        ProblemDetails::bad(format!(
            "{} cannot be a coflow's id: {NUMBER} to {}",
            text::shown(text),
            most - 1
        ))
    };
    id_of(text).filter(|id| id.0 < most).ok_or_else(bad)
}

/// What becomes of coflows that are over: see [`crate::control::closed`].
pub(super) const FORGOTTEN: &str = "its proposal was taken back, or it ended long ago; shown are the last 1000 that ended, and others for 60 s after their end";

/// 410 for a coflow that is not remembered any more, 404 for one that never was.
pub(super) fn missing(app: &App, id: CoflowId) -> ProblemDetails {
    let was = app.snapshot().coflows.used.contains(id);
    if was {
        ProblemDetails::new(StatusCode::GONE, format!("coflow {} is gone: {FORGOTTEN}", id.0))
    } else {
        no_coflow(id.0)
    }
}

fn no_coflow(id: impl std::fmt::Display) -> ProblemDetails {
    ProblemDetails::not_found(format!("coflow {id} does not exist"))
}

/// A coflow, or a proposal, as the newest snapshot has it, with the progress of its flows where it
/// is sent here.
pub(super) fn view(app: &App, id: CoflowId) -> Option<wire::Coflow> {
    let s = app.snapshot();
    let promise = s.proposals.binary_search_by_key(&id, |p| p.id).ok().map(|k| &*s.proposals[k]);
    let Some(c) = s.coflows.get(id) else {
        return promise.filter(|p| p.state != ProposalState::Confirmed).map(Into::into);
    };
    Some(wire::Coflow { proposal: promise.map(Into::into), flows: flows_of(app, id), ..c.into() })
}

/// The flows of a coflow that is sent here.
pub(super) fn flows_of(app: &App, id: CoflowId) -> Option<Vec<wire::FlowView>> {
    app.sender.as_ref()?.flows(id).map(|f| f.iter().map(Into::into).collect())
}

/// The name of a coflow: that of its body, or one made of its number.
pub(super) fn name(body: &wire::CoflowBody, id: CoflowId) -> String {
    body.name.clone().unwrap_or_else(|| format!("coflow-{}", id.0))
}

/// The answer to a request that made a coflow: 201, where it is, and what it is.
pub(super) fn created(coflow: wire::Coflow) -> Response {
    let location = format!("/api/v1/coflows/{}", coflow.id);
    (StatusCode::CREATED, [(header::LOCATION, location)], Json(coflow)).into_response()
}
