//! The ways of flows through a network of several switches: to see, and to set by hand.

use std::num::NonZeroU16;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api::problem::{Body, ProblemDetails, Reply};
use crate::api::state::App;
use crate::api::wire;
use crate::control::Event;
use crate::control::record::Snapshot;
use crate::control::routes::{Paths, PathsView};
use crate::paths::List;
use crate::plan::paths::{PathEnds, Ports};

/// What is listed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PathsQuery {
    /// Whether pairs of hosts are listed with their switches; else `paths` is empty.
    #[serde(default = "yes")]
    #[param(inline)]
    pairs: bool,
}

fn yes() -> bool {
    true
}

/// The lists of switches that flows take, the load and capacity of every switch, and the counters
/// of its ports.
#[utoipa::path(get, path = "/api/v1/paths", operation_id = "listPaths", tag = "paths", params(PathsQuery),
    responses((status = 200, body = wire::Paths),
        (status = 404, body = ProblemDetails, description = "The packet network is one switch")))]
pub async fn list(
    State(app): State<App>,
    listed: Result<Query<PathsQuery>, QueryRejection>,
) -> Reply<Json<wire::Paths>> {
    let Query(listed) = listed.map_err(|e| ProblemDetails::query(&e))?;
    let s = app.snapshot();
    Ok(Json(wire::Paths::new(
        &*view(&s)?,
        s.switches.as_deref(),
        (s.revision, s.now.0),
        listed.pairs,
    )))
}

/// Which flow a list is for, and whether the change is only tried.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct PathsChange {
    /// The TCP or UDP port from which the one flow comes that the list is for; `toPort` must be
    /// given with it. Without both the list is that of all flows that have none of their own.
    #[param(inline, value_type = Option<u16>, minimum = 1)]
    pub from_port: Option<NonZeroU16>,
    /// The port to which that flow goes.
    #[param(inline, value_type = Option<u16>, minimum = 1)]
    pub to_port: Option<NonZeroU16>,
    /// Whether to say only what would come of it, and change nothing.
    #[serde(default)]
    #[param(inline)]
    pub dry_run: bool,
}

impl PathsChange {
    fn read(query: Result<Query<Self>, QueryRejection>) -> Reply<(Option<Ports>, bool)> {
        let Query(c) = query.map_err(|e| ProblemDetails::query(&e))?;
        let ports = match (c.from_port, c.to_port) {
            (Some(from), Some(to)) => Some(Ports { from: from.get(), to: to.get() }),
            (None, None) => None,
            _ => {
                return Err(ProblemDetails::bad(
                    "a flow has two ports: give fromPort and toPort, or neither",
                ));
            }
        };
        Ok((ports, c.dry_run))
    }
}

/// Sets the list of all flows from one host to another by hand, or of one of them; it stays until
/// it is deleted, whatever the policy. Answers with what that changes.
#[utoipa::path(put, path = "/api/v1/paths/{from}/{to}", operation_id = "setPath", tag = "paths",
    params(("from" = wire::HostRef, Path, description = "The host where flows begin"), ("to" = wire::HostRef, Path, description = "The host where they end"), PathsChange),
    request_body = wire::PathBody,
    responses(
        (status = 200, body = wire::PathChange),
        (status = 404, body = ProblemDetails, description = "No such host, or the packet network is one switch"),
        (status = 409, body = ProblemDetails, description = "A switch on the list has no room for the pair's flows, or they have other types"),
        (status = 422, body = ProblemDetails, description = "The list holds together not at all, or not these hosts")
    ))]
pub async fn put(
    State(app): State<App>,
    Path((from, to)): Path<(String, String)>,
    change: Result<Query<PathsChange>, QueryRejection>,
    body: Body<wire::PathBody>,
) -> Reply<Json<wire::PathChange>> {
    let (ports, dry_run) = PathsChange::read(change)?;
    let (from, to) = (app.host(&from)?, app.host(&to)?);
    let before = view(&app.snapshot())?;
    let number = |(k, name): (usize, &String)| {
        let found = before.switches.iter().position(|s| s.name == *name).map(|k| k as u32);
        found.ok_or_else(|| {
            ProblemDetails::value(
                format!("/switches/{k}"),
                format!("no switch `{name}`: see GET /api/v1/paths"),
            )
        })
    };
    let list = List(body.value.switches.iter().enumerate().map(number).collect::<Reply<_>>()?);
    if dry_run {
        return what_if(&app, &before, |p| p.set(PathEnds { from, to, ports }, list.clone()));
    }
    app.tell(Event::ManualList { from, to, ports, list }).await?;
    Ok(Json(wire::PathChange::new(&before, &*view(&app.snapshot())?, true)))
}

/// Gives a list that was set by hand back to the policy; the flow of a list of its own takes its
/// pair's again. Answers with what that changes.
#[utoipa::path(delete, path = "/api/v1/paths/{from}/{to}", operation_id = "releasePath", tag = "paths",
    params(("from" = wire::HostRef, Path, description = "The host where flows begin"), ("to" = wire::HostRef, Path, description = "The host where they end"), PathsChange),
    responses((status = 200, body = wire::PathChange),
        (status = 404, body = ProblemDetails, description = "No such list set by hand")))]
pub async fn delete(
    State(app): State<App>,
    Path((from, to)): Path<(String, String)>,
    change: Result<Query<PathsChange>, QueryRejection>,
) -> Reply<Json<wire::PathChange>> {
    let (ports, dry_run) = PathsChange::read(change)?;
    let (from, to) = (app.host(&from)?, app.host(&to)?);
    let before = view(&app.snapshot())?;
    if dry_run {
        return what_if(&app, &before, |p| p.unset(PathEnds { from, to, ports }));
    }
    app.tell(Event::ManualListEnds { from, to, ports }).await?;
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

fn one_switch() -> ProblemDetails {
    ProblemDetails::not_found(
        "the packet network of this topology is one switch: there are no paths to choose",
    )
}
