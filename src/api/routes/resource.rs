//! A coflow as a resource: its number, its name, how it is shown.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::api::problem::{Problem, Reply};
use crate::api::state::App;
use crate::api::wire;
use crate::control::record::PromiseState;
use crate::ids::CoflowId;

/// The coflow number of a path; 404 for what is not a number.
pub(super) fn parse_id(text: &str) -> Reply<CoflowId> {
    text.parse().map(CoflowId).map_err(|_| no_coflow(text))
}

/// 404 for a coflow that never was.
pub(super) fn no_coflow(id: impl std::fmt::Display) -> Problem {
    Problem::not_found(format!("coflow {id} does not exist"))
}

/// A coflow, or a proposal, as the newest snapshot has it, with the progress of its flows where it is sent here.
pub(super) fn view(app: &App, id: CoflowId) -> Option<wire::Coflow> {
    let s = app.snapshot();
    let promise = s.proposals.iter().find(|p| p.id == id);
    let Some(c) = s.coflows.iter().find(|c| c.id == id) else {
        return promise.filter(|p| p.state != PromiseState::Confirmed).map(Into::into);
    };
    let flows = app.sender.as_ref().and_then(|s| s.flows(id));
    Some(wire::Coflow { proposal: promise.map(Into::into), flows: flows.map(|f| f.iter().map(Into::into).collect()), ..c.into() })
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
