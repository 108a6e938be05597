//! The ways of flows through a network of several switches: to see, and to set by hand.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};

use super::body::Trial;
use crate::api::problem::{Body, Problem, Reply};
use crate::api::state::App;
use crate::api::wire;
use crate::control::Event;
use crate::control::paths::{Paths, PathsView};
use crate::control::record::Snapshot;
use crate::paths::List;

/// The lists of switches that flows take, the load and capacity of every switch, and the counters of its ports.
#[utoipa::path(get, path = "/api/v1/paths", operation_id = "listPaths", tag = "paths",
    responses((status = 200, body = wire::Paths), (status = 404, body = Problem, description = "The packet network is one switch")))]
pub async fn list(State(app): State<App>) -> Reply<Json<wire::Paths>> {
    let s = app.snapshot();
    Ok(Json(wire::Paths::new(&*view(&s)?, s.switches.as_deref(), (s.revision, s.now.0))))
}

/// Sets the list of all flows from one host to another by hand; it stays until it is deleted, whatever the policy. Answers with what
/// that changes.
#[utoipa::path(put, path = "/api/v1/paths/{from}/{to}", operation_id = "setPath", tag = "paths",
    params(("from" = u32, Path, description = "The host where flows begin"), ("to" = u32, Path, description = "The host where they end"), Trial),
    request_body = wire::PathBody,
    responses(
        (status = 200, body = wire::PathChange), (status = 400, body = Problem),
        (status = 404, body = Problem, description = "No such host, or the packet network is one switch"),
        (status = 409, body = Problem, description = "A switch on the list has no room for the pair's flows"),
        (status = 415, body = Problem), (status = 422, body = Problem, description = "The list holds together not at all, or not these hosts")
    ))]
pub async fn put(
    State(app): State<App>,
    Path((from, to)): Path<(String, String)>,
    trial: Result<Query<Trial>, QueryRejection>,
    body: Body<wire::PathBody>,
) -> Reply<Json<wire::PathChange>> {
    let Query(Trial { dry_run }) = trial.map_err(|e| Problem::bad(e.body_text()))?;
    let (from, to) = (app.host(&from)?, app.host(&to)?);
    let before = view(&app.snapshot())?;
    let number = |(k, name): (usize, &String)| {
        let found = before.switches.iter().position(|s| s.name == *name).map(|k| k as u32);
        found.ok_or_else(|| Problem::value(format!("/switches/{k}"), format!("no switch `{name}`: see GET /api/v1/paths")))
    };
    let list = List(body.value.switches.iter().enumerate().map(number).collect::<Reply<_>>()?);
    if dry_run {
        return what_if(&app, &before, |p| p.set((from, to), list.clone()));
    }
    app.tell(Event::ManualList { from, to, list }).await?;
    Ok(Json(wire::PathChange::new(&before, &*view(&app.snapshot())?, true)))
}

/// Gives the list of a pair of hosts that was set by hand back to the policy. Answers with what that changes.
#[utoipa::path(delete, path = "/api/v1/paths/{from}/{to}", operation_id = "releasePath", tag = "paths",
    params(("from" = u32, Path, description = "The host where flows begin"), ("to" = u32, Path, description = "The host where they end"), Trial),
    responses((status = 200, body = wire::PathChange), (status = 400, body = Problem),
        (status = 404, body = Problem, description = "No such list set by hand")))]
pub async fn delete(
    State(app): State<App>,
    Path((from, to)): Path<(String, String)>,
    trial: Result<Query<Trial>, QueryRejection>,
) -> Reply<Json<wire::PathChange>> {
    let Query(Trial { dry_run }) = trial.map_err(|e| Problem::bad(e.body_text()))?;
    let (from, to) = (app.host(&from)?, app.host(&to)?);
    let before = view(&app.snapshot())?;
    if dry_run {
        return what_if(&app, &before, |p| p.unset((from, to)));
    }
    app.tell(Event::ManualListEnds { from, to }).await?;
    Ok(Json(wire::PathChange::new(&before, &*view(&app.snapshot())?, true)))
}

/// What a change would do to what is shown: it is made on a copy.
fn what_if(
    app: &App,
    before: &PathsView,
    change: impl FnOnce(&mut Paths) -> Result<(), crate::control::Rejected>,
) -> Reply<Json<wire::PathChange>> {
    let mut copy = Paths::of(app.handle.topology.clone(), before);
    change(&mut copy)?;
    copy.decide();
    let after = copy.view().ok_or_else(one_switch)?;
    Ok(Json(wire::PathChange::new(before, &after, false)))
}

fn view(s: &Snapshot) -> Reply<Arc<PathsView>> {
    s.paths.clone().ok_or_else(one_switch)
}

fn one_switch() -> Problem {
    Problem::not_found("the packet network of this topology is one switch: there are no paths to choose")
}
