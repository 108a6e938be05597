//! What the network is and carries: topology, ports, demand, counters.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api::problem::{ProblemDetails, Reply};
use crate::api::state::App;
use crate::api::wire;
use crate::control::Event;
use crate::units::Time;

/// The network; it never changes.
#[utoipa::path(get, path = "/api/v1/topology", operation_id = "getTopology", tag = "network", responses((status = 200, body = wire::Topology)))]
pub async fn topology(State(app): State<App>) -> Json<wire::Topology> {
    Json((&*app.handle.topology).into())
}

/// The ports of the OCS with their counters and faults.
#[utoipa::path(get, path = "/api/v1/ports", operation_id = "listPorts", tag = "network", responses((status = 200, body = wire::Ports)))]
pub async fn ports(State(app): State<App>) -> Json<wire::Ports> {
    let s = app.snapshot();
    let (at, links) = app.handle.uplinks();
    Json(wire::Ports {
        revision: s.revision,
        now_ns: s.now.0,
        ports: s.ports.iter().map(Into::into).collect(),
        uplinks_at_ns: at.0,
        uplinks: links
            .iter()
            .map(|l| wire::Uplink { up_bytes: l.up, down_bytes: l.down })
            .collect(),
    })
}

/// The queues by strict priority of every port of the packet network, with their counters: of
/// hosts, ToRs and packet switches.
#[utoipa::path(get, path = "/api/v1/queues", operation_id = "listQueues", tag = "network", responses((status = 200, body = wire::Queues)))]
pub async fn queues(State(app): State<App>) -> Json<wire::Queues> {
    Json((&*app.snapshot()).into())
}

/// Says that a faulty port was mended: it is used again.
#[utoipa::path(
    delete, path = "/api/v1/ports/{plane}/{rack}/fault", operation_id = "repairPort", tag = "network",
    params(("plane" = wire::PlaneRef, Path, description = "The plane"), ("rack" = wire::RackRef, Path, description = "Whose port")),
    responses((status = 204, description = "The port is used again"), (status = 404, body = ProblemDetails, description = "No such port, or it has no fault"),
        (status = 409, body = ProblemDetails, description = "It is down, and used again when it is up"))
)]
pub async fn repair(
    State(app): State<App>,
    Path((plane, rack)): Path<(String, String)>,
) -> Reply<StatusCode> {
    let (plane, rack) = (app.plane(&plane)?, app.rack(&rack)?);
    app.tell(Event::PortRepaired { plane, rack }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Demand as the last decision saw it, and the counters of traffic between racks.
#[utoipa::path(get, path = "/api/v1/demand", operation_id = "getDemand", tag = "network", responses((status = 200, body = wire::Demand)))]
pub async fn demand(State(app): State<App>) -> Json<wire::Demand> {
    Json((&*app.snapshot()).into())
}

/// Which part of the run.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LinksQuery {
    /// Where it begins, by the daemon's clock. `from_ns` of the answer is the same, or later: no
    /// link is counted before the controller starts.
    #[serde(default)]
    #[param(inline)]
    from_ns: wire::Length,
}

/// What links to the EPS and planes carried over time, in at most 256 buckets.
#[utoipa::path(get, path = "/api/v1/utilisation", operation_id = "getUtilisation", tag = "network", params(LinksQuery),
    responses((status = 200, body = wire::Utilisation)))]
pub async fn utilisation(
    State(app): State<App>,
    part: Result<Query<LinksQuery>, QueryRejection>,
) -> Reply<Json<wire::Utilisation>> {
    let Query(part) = part.map_err(|e| ProblemDetails::query(&e))?;
    Ok(Json(app.handle.utilisation(Time(part.from_ns.0)).into()))
}

/// What is wanted beside the counters.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct CountersQuery {
    /// With `ranges`: durations counted by ranges. The differences of two answers are what lies
    /// between them.
    #[serde(default)]
    ranges: bool,
}

/// Counters of the control loop, and what failed and is being retried.
#[utoipa::path(get, path = "/api/v1/stats", operation_id = "getStats", tag = "network", params(CountersQuery),
    responses((status = 200, body = wire::Stats)))]
pub async fn stats(
    State(app): State<App>,
    beside: Result<Query<CountersQuery>, QueryRejection>,
) -> Reply<Json<wire::Stats>> {
    let Query(beside) = beside.map_err(|e| ProblemDetails::query(&e))?;
    let (s, sent_again_bytes) =
        (app.snapshot(), app.sender.as_ref().and_then(|s| s.sent_again()).map(|b| b.0));
    let ranges = beside.ranges.then(|| (&s.histograms).into());
    let name = app.run.name.clone().unwrap_or_else(|| app.handle.topology.name.clone());
    Ok(Json(wire::Stats {
        name,
        started_at: app.run.started_at.clone(),
        sent_again_bytes,
        ranges,
        ..(&*s).into()
    }))
}
