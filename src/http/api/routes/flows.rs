//! The flows on their way, written while they are read.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::api::problem::{ProblemDetails, Reply};
use crate::api::state::App;
use crate::api::wire;
use crate::ids::{CoflowId, FlowId};
use crate::units;

/// Which flows.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct FlowsQuery {
    /// Those that have not arrived: no others are listed.
    #[serde(default)]
    #[param(inline)]
    #[allow(dead_code, reason = "it has one value")]
    state: FlowState,
}

/// How far a flow is.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowState {
    /// It has not arrived.
    #[default]
    Open,
}

/// What the flows that Heliostat sends have still to send, by coflow, then flow: one request for
/// all that a scheduler decides by.
#[utoipa::path(get, path = "/api/v1/flows", operation_id = "listFlows", tag = "coflows", params(FlowsQuery),
    responses((status = 200, body = wire::OpenFlows)))]
pub async fn list(
    State(app): State<App>,
    filter: Result<Query<FlowsQuery>, QueryRejection>,
) -> Reply<Response> {
    filter.map_err(|e| ProblemDetails::query(&e))?;
    let left = app.sender.as_ref().map(|s| s.left()).unwrap_or_default();
    let begin = format!("{{\"now_ns\":{},\"coflows\":[", app.snapshot().now.0);
    let coflows = left
        .into_iter()
        .enumerate()
        .map(|(k, c)| [if k == 0 { "" } else { "," }, &json(&c)].concat());
    let pieces = std::iter::once(begin).chain(coflows).chain(["]}".to_owned()]);
    let body = Body::from_stream(stream::iter(pieces.map(|p| Ok::<_, Infallible>(Bytes::from(p)))));
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(([kind], body).into_response())
}

fn json((id, flows): &(CoflowId, Vec<(FlowId, units::Bytes)>)) -> String {
    let flows = flows
        .iter()
        .map(|&(flow, left)| wire::FlowLeft { flow: flow.0, left_bytes: left.0 })
        .collect();
    serde_json::to_string(&wire::CoflowLeft { id: id.0, flows }).unwrap_or_default()
}
