//! Circuits: all of them to see, those set by hand to change.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::body;
use crate::api::problem::{Body, Problem, Reply};
use crate::api::state::App;
use crate::api::wire;
use crate::control::Event;
use crate::control::record::CircuitState;
use crate::ids::{PlaneId, RackId};

/// The circuits with light, being set up, or promised.
#[utoipa::path(get, path = "/api/v1/circuits", operation_id = "listCircuits", tag = "circuits", responses((status = 200, body = wire::Circuits)))]
pub async fn list(State(app): State<App>) -> Json<wire::Circuits> {
    let s = app.snapshot();
    Json(wire::Circuits { revision: s.revision, now_ns: s.now.0, circuits: s.circuits.iter().map(Into::into).collect() })
}

/// The circuit of one input port: the one with light, else the next one.
#[utoipa::path(
    get, path = "/api/v1/circuits/{plane}/{input}", operation_id = "getCircuit", tag = "circuits",
    params(("plane" = u32, Path, description = "The plane"), ("input" = u32, Path, description = "Sending rack")),
    responses((status = 200, body = wire::Circuit), (status = 404, body = Problem, description = "No such port, or it is dark"))
)]
pub async fn get(State(app): State<App>, Path((plane, input)): Path<(String, String)>) -> Reply<Json<wire::Circuit>> {
    let (plane, input) = (app.plane(&plane)?, app.rack(&input)?);
    let s = app.snapshot();
    let of_port = s.circuits.iter().filter(|c| c.plane == plane && c.input == input);
    let found = of_port.min_by_key(|c| (c.state != CircuitState::Up, c.up_from));
    found.map(|c| Json(c.into())).ok_or_else(|| Problem::not_found(format!("plane {} input {} has no circuit", plane.0, input.0)))
}

/// Sets a circuit by hand; it stays until it is deleted, whatever the policy.
#[utoipa::path(
    put, path = "/api/v1/circuits/{plane}/{input}", operation_id = "setCircuit", tag = "circuits",
    params(("plane" = u32, Path, description = "The plane"), ("input" = u32, Path, description = "Sending rack")),
    request_body = wire::CircuitBody,
    responses(
        (status = 204, description = "The port is held for this circuit; it gets light with the next decision"),
        (status = 404, body = Problem, description = "No such port"),
        (status = 409, body = Problem, description = "A port is held by another circuit or faulty"),
        (status = 415, body = Problem), (status = 422, body = Problem)
    )
)]
pub async fn put(State(app): State<App>, Path((plane, input)): Path<(String, String)>, body: Body<wire::CircuitBody>) -> Reply<StatusCode> {
    let (plane, input) = (app.plane(&plane)?, app.rack(&input)?);
    let output = output(&app, plane, input, body.value.output)?;
    app.tell(Event::ManualConnect { plane, input, output }).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn output(app: &App, plane: PlaneId, input: RackId, output: u32) -> Reply<RackId> {
    body::exists("rack", output, app.handle.topology.rack_count(), || "/output".into())?;
    if output == input.0 {
        return Err(Problem::value("/output", format!("plane {} does not join rack {output} with itself", plane.0)));
    }
    Ok(RackId(output))
}

/// Gives a port that was set by hand back to the policy.
#[utoipa::path(
    delete, path = "/api/v1/circuits/{plane}/{input}", operation_id = "releaseCircuit", tag = "circuits",
    params(("plane" = u32, Path, description = "The plane"), ("input" = u32, Path, description = "Sending rack")),
    responses((status = 204, description = "The port is the policy's again"), (status = 404, body = Problem, description = "No such circuit set by hand"))
)]
pub async fn delete(State(app): State<App>, Path((plane, input)): Path<(String, String)>) -> Reply<StatusCode> {
    let (plane, input) = (app.plane(&plane)?, app.rack(&input)?);
    app.tell(Event::ManualDisconnect { plane, input }).await?;
    Ok(StatusCode::NO_CONTENT)
}
