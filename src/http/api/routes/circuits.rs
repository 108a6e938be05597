//! Circuits: all of them to see, those set by hand to change.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::body;
use crate::api::problem::{Body, ProblemDetails, Reply};
use crate::api::state::App;
use crate::api::wire;
use crate::control::Event;
use crate::control::record::CircuitState;
use crate::ids::{PlaneId, RackId};

/// The circuits with light, being set up, or promised.
#[utoipa::path(get, path = "/api/v1/circuits", operation_id = "listCircuits", tag = "circuits", responses((status = 200, body = wire::Circuits)))]
pub async fn list(State(app): State<App>) -> Json<wire::Circuits> {
    let s = app.snapshot();
    Json(wire::Circuits {
        revision: s.revision,
        now_ns: s.now.0,
        circuits: s.circuits.iter().map(Into::into).collect(),
    })
}

/// The circuit of one input port: the one with light, else the next one.
#[utoipa::path(
    get, path = "/api/v1/circuits/{plane}/{input}", operation_id = "getCircuit", tag = "circuits",
    params(("plane" = wire::PlaneRef, Path, description = "The plane"), ("input" = wire::RackRef, Path, description = "Sending rack")),
    responses((status = 200, body = wire::Circuit), (status = 404, body = ProblemDetails, description = "No such port, or it is dark"))
)]
pub async fn get(
    State(app): State<App>,
    Path((plane, input)): Path<(String, String)>,
) -> Reply<Json<wire::Circuit>> {
    let (plane, input) = (app.plane(&plane)?, app.rack(&input)?);
    let s = app.snapshot();
    let of_port = s.circuits.iter().filter(|c| c.plane == plane && c.input == input);
    let found = of_port.min_by_key(|c| (c.state != CircuitState::Up, c.up_from));
    found.map(|c| Json(c.into())).ok_or_else(|| {
        ProblemDetails::not_found(format!("plane {} input {} has no circuit", plane.0, input.0))
    })
}

/// Sets a circuit by hand; it stays until it is deleted, whatever the policy.
#[utoipa::path(
    put, path = "/api/v1/circuits/{plane}/{input}", operation_id = "setCircuit", tag = "circuits",
    params(("plane" = wire::PlaneRef, Path, description = "The plane"), ("input" = wire::RackRef, Path, description = "Sending rack")),
    request_body = wire::CircuitBody,
    responses(
        (status = 204, description = "The port is held for this circuit; it gets light with the next decision"),
        (status = 404, body = ProblemDetails, description = "No such port"),
        (status = 409, body = ProblemDetails, description = "A port is held by another circuit or faulty")
    )
)]
pub async fn put(
    State(app): State<App>,
    Path((plane, input)): Path<(String, String)>,
    body: Body<wire::CircuitBody>,
) -> Reply<StatusCode> {
    let (plane, input) = (app.plane(&plane)?, app.rack(&input)?);
    let output = output(&app, (plane, input), body.value.output.0, || "/output".into())?;
    app.tell(Event::ManualConnect { plane, input, output }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sets all circuits by hand at one instant: those that stay keep their light, all others change
/// with the next decision, and what is not in the list is given back to the policy. For controllers
/// that decide elsewhere.
#[utoipa::path(
    put, path = "/api/v1/circuits", operation_id = "replaceCircuits", tag = "circuits",
    request_body = wire::ConfigurationBody,
    responses(
        (status = 204, description = "The ports are held for these circuits; they get light with the next decision, all at once"),
        (status = 409, body = ProblemDetails, description = "Two circuits need one port, or a port is faulty; nothing is changed")
    )
)]
pub async fn replace(
    State(app): State<App>,
    body: Body<wire::ConfigurationBody>,
) -> Reply<StatusCode> {
    let circuit = |(k, c): (usize, &wire::ManualCircuit)| {
        let at = |key: &str| format!("/circuits/{k}/{key}");
        body::exists("plane", c.plane.0, app.handle.topology.planes.len(), || at("plane"))?;
        body::exists("rack", c.input.0, app.handle.topology.rack_count(), || at("input"))?;
        let (plane, input) = (PlaneId(c.plane.0), RackId(c.input.0));
        Ok((plane, input, output(&app, (plane, input), c.output.0, || at("output"))?))
    };
    let circuits = body.value.circuits.iter().enumerate().map(circuit).collect::<Reply<_>>()?;
    app.tell(Event::ManualConfiguration { circuits }).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn output(
    app: &App,
    (plane, input): (PlaneId, RackId),
    output: u32,
    at: impl Fn() -> String,
) -> Reply<RackId> {
    body::exists("rack", output, app.handle.topology.rack_count(), &at)?;
    if output == input.0 {
        return Err(ProblemDetails::value(
            at(),
            format!("plane {} does not join rack {output} with itself", plane.0),
        ));
    }
    Ok(RackId(output))
}

/// Gives a port that was set by hand back to the policy.
#[utoipa::path(
    delete, path = "/api/v1/circuits/{plane}/{input}", operation_id = "releaseCircuit", tag = "circuits",
    params(("plane" = wire::PlaneRef, Path, description = "The plane"), ("input" = wire::RackRef, Path, description = "Sending rack")),
    responses((status = 204, description = "The port is the policy's again"), (status = 404, body = ProblemDetails, description = "No such circuit set by hand"))
)]
pub async fn delete(
    State(app): State<App>,
    Path((plane, input)): Path<(String, String)>,
) -> Reply<StatusCode> {
    let (plane, input) = (app.plane(&plane)?, app.rack(&input)?);
    app.tell(Event::ManualDisconnect { plane, input }).await?;
    Ok(StatusCode::NO_CONTENT)
}
