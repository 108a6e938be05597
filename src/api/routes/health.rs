//! For machines that watch: metrics, liveness, readiness.

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

use crate::api::metrics as exposition;
use crate::api::problem::{Problem, Reply};
use crate::api::state::{self, App};

/// Counters in the OpenMetrics text format.
#[utoipa::path(get, path = "/metrics", operation_id = "getMetrics", tag = "health",
    responses((status = 200, body = String, content_type = "application/openmetrics-text")))]
pub async fn metrics(State(app): State<App>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], exposition::text(app.snapshot()))
}

/// Whether this process answers.
#[utoipa::path(get, path = "/livez", operation_id = "isLive", tag = "health", responses((status = 200, body = String, content_type = "text/plain")))]
pub async fn live() -> &'static str {
    "ok\n"
}

/// Whether the controller runs and has decided at least once.
#[utoipa::path(get, path = "/readyz", operation_id = "isReady", tag = "health",
    responses((status = 200, body = String, content_type = "text/plain"), (status = 503, body = Problem)))]
pub async fn ready(State(app): State<App>) -> Reply<&'static str> {
    if !app.alive() {
        return Err(state::stopped());
    }
    if app.snapshot().stats.cycles == 0 {
        return Err(Problem::new(axum::http::StatusCode::SERVICE_UNAVAILABLE, "the first cycle has not been decided"));
    }
    Ok("ok\n")
}
