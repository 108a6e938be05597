//! Jobs of a task scheduler that works on this network: it tells, viewers read.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api::problem::{Body, ProblemDetails, Reply};
use crate::api::state::App;
use crate::api::wire;
use crate::units::Time;

/// Which samples.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct Since {
    /// Only samples after this time, in nanoseconds since the daemon's start.
    #[serde(default)]
    #[param(inline)]
    after: wire::Length,
}

/// The jobs of a task scheduler, and who held slots over the last minutes: of several at once, of
/// the one that came first, until its jobs are finished or it has been silent for two seconds.
#[utoipa::path(get, path = "/api/v1/jobs", operation_id = "listJobs", tag = "jobs", params(Since),
    responses((status = 200, body = wire::Jobs)))]
pub async fn list(
    State(app): State<App>,
    since: Result<Query<Since>, QueryRejection>,
) -> Reply<Json<wire::Jobs>> {
    let Query(since) = since.map_err(|e| ProblemDetails::query(&e))?;
    Ok(Json(app.board.show(Time(since.after.0), app.snapshot().now)))
}

/// Which decisions.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DecisionsQuery {
    /// Only those about the job of this name or number.
    job: Option<String>,
    /// Only those about this stage, a number from 0 on.
    stage: Option<u32>,
}

/// Where the task scheduler whose jobs are shown put tasks, and why: what it expected of that, and
/// what of the placements that lost. Only some placement policies say it (`joint`), and the newest
/// 4096 decisions are kept.
#[utoipa::path(get, path = "/api/v1/jobs/decisions", operation_id = "listDecisions", tag = "jobs", params(DecisionsQuery),
    responses((status = 200, body = wire::Decisions), (status = 404, description = "No such job")))]
pub async fn decisions(
    State(app): State<App>,
    about: Result<Query<DecisionsQuery>, QueryRejection>,
) -> Reply<Json<wire::Decisions>> {
    let Query(about) = about.map_err(|e| ProblemDetails::query(&e))?;
    let found = app.board.decisions(about.job.as_deref(), about.stage, app.snapshot().now);
    found.map(Json).map_err(|why| ProblemDetails::new(StatusCode::NOT_FOUND, why))
}

/// Takes in what a task scheduler says of its jobs. The daemon only shows it.
#[utoipa::path(put, path = "/api/v1/jobs", operation_id = "reportJobs", tag = "jobs", request_body = wire::JobsReport,
    responses((status = 204, description = "Taken in")))]
pub async fn report(State(app): State<App>, body: Body<wire::JobsReport>) -> Reply<StatusCode> {
    let taken = app.board.take(body.value, app.snapshot().now);
    taken
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|why| ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, why))
}
