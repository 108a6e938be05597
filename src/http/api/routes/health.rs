//! For machines that watch: metrics, liveness, readiness.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;

use super::conditional::preferred;
use crate::api::metrics as exposition;
use crate::api::problem::{ProblemDetails, Reply};
use crate::api::state::App;
use crate::control::Trouble;

/// Counters in the OpenMetrics text format, or in Prometheus' older one if `Accept` asks for that.
#[utoipa::path(get, path = "/metrics", operation_id = "getMetrics", tag = "health",
    responses((status = 200, body = String, content_type = "application/openmetrics-text"),
        (status = 406, body = ProblemDetails, description = "`Accept` takes neither application/openmetrics-text nor text/plain")))]
pub async fn metrics(State(app): State<App>, headers: HeaderMap) -> Reply<impl IntoResponse> {
    const OPEN: &str = "application/openmetrics-text";
    let forms = [(OPEN, "1.0.0"), ("text/plain", "0.0.4")];
    let Some(form) = preferred(&headers, &forms.map(|f| f.0)) else {
        let detail = "metrics come as application/openmetrics-text or text/plain, and `Accept` takes neither";
        return Err(ProblemDetails::new(StatusCode::NOT_ACCEPTABLE, detail));
    };
    let (kind, version) = forms[form];
    let text = exposition::text(app.snapshot(), app.doors, app.journal);
    let text = if kind == OPEN { text } else { exposition::older(&text) };
    let kind = format!("{kind}; version={version}; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, kind), (header::VARY, "accept".into())], text))
}

/// Whether this process works: it answers, and its controller still decides.
#[utoipa::path(get, path = "/livez", operation_id = "isLive", tag = "health",
    responses((status = 200, body = String, content_type = "text/plain"), (status = 503, body = ProblemDetails)))]
pub async fn live(State(app): State<App>) -> Reply<&'static str> {
    app.handle
        .ended()
        .or_else(|| app.handle.hangs())
        .map_or(Ok("ok\n"), |why| Err(ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, why)))
}

/// Whether the controller runs, has decided at least once, and could do so in the last cycle: it
/// saw the network, and what it decided could be carried out; and no coflow's bytes are stuck.
/// Single ports and links that fail do not count: the rest is under control.
#[utoipa::path(get, path = "/readyz", operation_id = "isReady", tag = "health",
    responses((status = 200, body = String, content_type = "text/plain"), (status = 503, body = ProblemDetails)))]
pub async fn ready(State(app): State<App>) -> Reply<&'static str> {
    if let Some(why) = app.handle.ended().or_else(|| app.handle.hangs()) {
        return Err(ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, why));
    }
    if app.snapshot().stats.cycles == 0 {
        return Err(ProblemDetails::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the first cycle has not been decided",
        ));
    }
    let vital = [Trouble::Observe, Trouble::Follow, Trouble::Plan];
    let is_vital = |what: &Trouble| vital.contains(what) || matches!(what, Trouble::Carry(_));
    match app.snapshot().failures.iter().find(|f| is_vital(&f.trouble)) {
        Some(f) => Err(ProblemDetails::new(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{}: {}", f.trouble, f.why),
        )),
        None => Ok("ok\n"),
    }
}
