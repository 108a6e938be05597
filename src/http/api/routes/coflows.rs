//! Coflows: declared by POST (we choose the id) or PUT (the client does), watched, and taken back.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio::sync::MutexGuard;

use super::body::{self, Content, DryRun, check};
use super::launch;
use super::proposals::{self, ProposalDraft};
use super::resource::{FORGOTTEN, chosen_id, created, missing, name, parse_id, view};
use crate::api::problem::{Body, ProblemDetails, Reply};
use crate::api::state::{self, App, GivenIds};
use crate::api::wire::{self, CoflowState};
use crate::control::Event;

/// How often a proposal is computed before its turn.
const TRIES: u32 = 3;
/// Ids that clients choose are below this, so that there is always room above them for ours.
const MAX_CHOSEN: u32 = 1 << 31;

/// One coflow with its progress, and of one that is sent here that of its flows.
#[utoipa::path(get, path = "/api/v1/coflows/{id}", operation_id = "getCoflow", tag = "coflows", params(("id" = u32, Path, description = "Its number")),
    responses((status = 200, body = wire::Coflow), (status = 410, body = ProblemDetails, description = "It is over and forgotten, or its proposal was taken back")))]
pub async fn get(State(app): State<App>, Path(id): Path<String>) -> Reply<Json<wire::Coflow>> {
    let id = parse_id(&id)?;
    view(&app, id).map(Json).ok_or_else(|| missing(&app, id))
}

/// Declares a coflow, or with `place` has one proposed; its id is the next one free. With an
/// `Idempotency-Key`, asking again makes no second one.
#[utoipa::path(post, path = "/api/v1/coflows", operation_id = "createCoflow", tag = "coflows", request_body = wire::CoflowBody,
    params(DryRun, ("Idempotency-Key" = Option<String>, Header, description = "1 to 128 characters of the client's choice")),
    responses(
        (status = 200, body = wire::Proposal, description = "With `dryRun=true`: what would be proposed"),
        (status = 201, body = wire::Coflow, description = "Declared, or proposed", headers(("Location" = String, description = "Where it is"))),
        (status = 409, body = ProblemDetails, description = "`send` is asked, and this daemon sends nothing")
    ))]
pub async fn post(
    State(app): State<App>,
    trial: Result<Query<DryRun>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
    body: Body<wire::CoflowBody>,
) -> Reply<Response> {
    let Query(DryRun { dry_run }) = trial.map_err(|e| ProblemDetails::query(&e))?;
    let key = idempotency_key(&headers)?;
    if dry_run {
        let content = check(&app, &body.value)?;
        let draft =
            proposals::propose(&app, &proposals::question(&app, &body.value, &content.pairs)?)
                .await?;
        return Ok(Json(wire::Proposal::new(&draft.proposal, draft.snapshot.now)).into_response());
    }
    let (mut ledger, content, draft) = match turn(&app, key.as_deref(), &body).await? {
        CoflowCreation::Replayed(response) => return Ok(response),
        CoflowCreation::New(ledger, content, draft) => (ledger, content, draft),
    };
    let id = ledger
        .next_id(&app.snapshot(), app.last_own())
        .ok_or_else(|| ProblemDetails::new(StatusCode::CONFLICT, "all coflow ids are used up"))?;
    // First the key: after a kill a key whose coflow was not made counts for nothing, and a coflow
    // whose key is unknown could be made twice.
    let kept = key.map(|key| state::key(key, &body.raw, id));
    kept.iter().for_each(|k| app.journal.iter().for_each(|j| j.keep(k.clone())));
    let made = match draft {
        Some(draft) => launch::hold(&app, id, &body.value, Arc::new(draft.proposal)).await?,
        None => launch::declare(&app, id, &body.value, content).await?,
    };
    kept.into_iter().for_each(|k| ledger.remember(k));
    Ok(created(made))
}

/// The right to make a coflow, with the proposal that it shall be; or what became of the same
/// request before.
enum CoflowCreation<'a> {
    Replayed(Response),
    New(MutexGuard<'a, GivenIds>, Content, Option<ProposalDraft>),
}

/// Waits for its turn. A proposal is computed before, while others have theirs; again if the
/// network is another one by then; and after [`TRIES`] times while it has the turn, when no other
/// request can reserve anything.
async fn turn<'a>(
    app: &'a App,
    key: Option<&str>,
    body: &Body<wire::CoflowBody>,
) -> Reply<CoflowCreation<'a>> {
    let ledger = app.ledger.lock().await;
    if let Some(response) = replayed(app, &ledger, key, body)? {
        return Ok(CoflowCreation::Replayed(response));
    }
    let content = check(app, &body.value)?;
    if body.value.place.is_none() {
        return Ok(CoflowCreation::New(ledger, content, None));
    }
    drop(ledger);
    let question = proposals::question(app, &body.value, &content.pairs)?;
    for _ in 0..TRIES {
        let draft = proposals::propose(app, &question).await?;
        let ledger = app.ledger.lock().await;
        if let Some(response) = replayed(app, &ledger, key, body)? {
            return Ok(CoflowCreation::Replayed(response));
        }
        if draft.holds(app) {
            return Ok(CoflowCreation::New(ledger, content, Some(draft)));
        }
    }
    let ledger = app.ledger.lock().await;
    if let Some(response) = replayed(app, &ledger, key, body)? {
        return Ok(CoflowCreation::Replayed(response));
    }
    let draft = proposals::propose(app, &question).await?;
    Ok(CoflowCreation::New(ledger, content, Some(draft)))
}

/// What became of a request with this key, if there was one.
fn replayed(
    app: &App,
    ledger: &GivenIds,
    key: Option<&str>,
    body: &Body<wire::CoflowBody>,
) -> Reply<Option<Response>> {
    let Some((id, same)) = key.and_then(|k| ledger.kept(k, &body.raw)) else { return Ok(None) };
    if !same {
        return Err(ProblemDetails::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "this Idempotency-Key came with another body before",
        ));
    }
    let Some(coflow) = view(app, id) else {
        let why =
            format!("the coflow {} that came of this Idempotency-Key is gone: {FORGOTTEN}", id.0);
        return Err(ProblemDetails::new(StatusCode::GONE, why));
    };
    let mut response = created(coflow);
    response
        .headers_mut()
        .insert(HeaderName::from_static("idempotency-replayed"), HeaderValue::from_static("true"));
    Ok(Some(response))
}

/// Declares a coflow under an id that the client chooses; the same again changes nothing.
#[utoipa::path(put, path = "/api/v1/coflows/{id}", operation_id = "putCoflow", tag = "coflows", request_body = wire::CoflowBody,
    params(("id" = u32, Path, description = "Its number, below 2^31")),
    responses(
        (status = 200, body = wire::Coflow, description = "It was there already"),
        (status = 201, body = wire::Coflow, description = "Declared", headers(("Location" = String, description = "Where it is"))),
        (status = 409, body = ProblemDetails, description = "The id is in use, or is for the workload that the daemon runs")
    ))]
pub async fn put(
    State(app): State<App>,
    Path(id): Path<String>,
    body: Body<wire::CoflowBody>,
) -> Reply<Response> {
    let id = chosen_id(&id, MAX_CHOSEN)?;
    if body.value.place.is_some() {
        return Err(ProblemDetails::value("/place", "a placement is proposed by POST"));
    }
    let mut ledger: MutexGuard<'_, GivenIds> = app.ledger.lock().await;
    let content = check(&app, &body.value)?;
    if let Some(there) = view(&app, id) {
        let mut asked: Vec<wire::RackPair> = content.pairs.iter().map(Into::into).collect();
        asked.sort_by_key(|p| (p.from, p.to));
        // Priorities may have changed since.
        let asked_flows = content.flows.iter().map(|f| (f.from.0, f.to.0, f.bytes.0));
        let other_flows = |f: &Vec<wire::FlowView>| {
            !content.flows.is_empty()
                && !f.iter().map(|f| (f.from, f.to, f.bytes)).eq(asked_flows.clone())
        };
        let same = there.pairs == asked
            && there.name == name(&body.value, id)
            && !there.flows.as_ref().is_some_and(other_flows);
        let detail = format!("coflow {} is known already, and is another one", id.0);
        return if same {
            Ok(Json(there).into_response())
        } else {
            Err(ProblemDetails::new(StatusCode::CONFLICT, detail))
        };
    }
    if let Some(last) = app.last_own().filter(|&last| id <= last) {
        let detail =
            format!("the numbers up to {} are for the workload that this daemon runs", last.0);
        return Err(ProblemDetails::new(StatusCode::CONFLICT, detail));
    }
    let made = launch::declare(&app, id, &body.value, content).await?;
    ledger.took(id);
    Ok(created(made))
}

/// Gives flows of a coflow other strict priorities, which count where the policy says `network:
/// priority`. What they send from now on has them; the same again changes nothing.
#[utoipa::path(patch, path = "/api/v1/coflows/{id}", operation_id = "changeCoflow", tag = "coflows", request_body = wire::CoflowChange,
    params(("id" = u32, Path, description = "Its number")),
    responses(
        (status = 200, body = wire::Coflow, description = "As it is now"),
        (status = 409, body = ProblemDetails, description = "It has not begun, or is over, or its flows are not sent here"),
        (status = 410, body = ProblemDetails, description = "It is over and forgotten")
    ))]
pub async fn patch(
    State(app): State<App>,
    Path(id): Path<String>,
    body: Body<wire::CoflowChange>,
) -> Reply<Json<wire::Coflow>> {
    let id = parse_id(&id)?;
    // A coflow that is being made is sent before it is changed.
    let _turn = app.ledger.lock().await;
    let there = view(&app, id).ok_or_else(|| missing(&app, id))?;
    if matches!(there.state, CoflowState::Proposed | CoflowState::Expired) {
        let detail = format!(
            "coflow {} is proposed and has not begun: say its priority when it is confirmed",
            id.0
        );
        return Err(ProblemDetails::new(StatusCode::CONFLICT, detail));
    }
    if there.flows.is_none() && !body.value.flows.is_empty() {
        let detail =
            format!("no flow of coflow {} is sent here: its sender marks its packets", id.0);
        return Err(ProblemDetails::new(StatusCode::CONFLICT, detail));
    }
    let change = body::change(&body.value, there.flows.as_ref().map_or(0, Vec::len))?;
    app.tell(Event::CoflowPrioritised { id, change }).await?;
    Ok(Json(view(&app, id).unwrap_or(there)))
}

/// Takes a coflow back: what it has not sent is not scheduled any more, and what is sent here is
/// broken off.
#[utoipa::path(delete, path = "/api/v1/coflows/{id}", operation_id = "cancelCoflow", tag = "coflows", params(("id" = u32, Path, description = "Its number")),
    responses((status = 204, description = "Taken back"), (status = 409, body = ProblemDetails, description = "It is over"),
        (status = 410, body = ProblemDetails, description = "Its proposal was not confirmed in time")))]
pub async fn delete(State(app): State<App>, Path(id): Path<String>) -> Reply<StatusCode> {
    let id = parse_id(&id)?;
    // A coflow that is being made is sent before it is taken back.
    let _turn = app.ledger.lock().await;
    let taken = app.tell(Event::CoflowCancelled { id, why: None }).await;
    // The controller takes it later, and tells no sender then.
    let later = taken.as_ref().is_err_and(|p| p.status == StatusCode::SERVICE_UNAVAILABLE.as_u16());
    let cancelled =
        taken.is_ok() || view(&app, id).is_some_and(|c| c.state == CoflowState::Cancelled);
    if let Some(sender) = app.sender.as_ref().filter(|_| cancelled || later) {
        sender.cancel(id);
    }
    // One that was taken back before is taken back.
    if cancelled { Ok(StatusCode::NO_CONTENT) } else { taken.map(|()| StatusCode::NO_CONTENT) }
}

/// Finishes a coflow that the client sends: all of it has arrived, whatever the counters have seen,
/// and counts as received. Counters alone finish a coflow only when they have seen all the bytes
/// that were asked, of which a client may know no more than an estimate. Asking again changes
/// nothing.
#[utoipa::path(post, path = "/api/v1/coflows/{id}/finish", operation_id = "finishCoflow", tag = "coflows",
    params(("id" = u32, Path, description = "Its number")),
    responses(
        (status = 200, body = wire::Coflow, description = "It has finished, or had before"),
        (status = 409, body = ProblemDetails, description = "It was never confirmed, or this daemon sends it"),
        (status = 410, body = ProblemDetails, description = "It was taken back, or is over and forgotten")
    ))]
pub async fn finish(State(app): State<App>, Path(id): Path<String>) -> Reply<Json<wire::Coflow>> {
    let id = parse_id(&id)?;
    // A coflow that is being made is there before it finishes.
    let _turn = app.ledger.lock().await;
    let there = view(&app, id).ok_or_else(|| missing(&app, id))?;
    match there.state {
        CoflowState::Active => {}
        CoflowState::Finished => return Ok(Json(there)),
        CoflowState::Cancelled => {
            return Err(ProblemDetails::new(
                StatusCode::GONE,
                format!("coflow {} was taken back", id.0),
            ));
        }
        CoflowState::Proposed | CoflowState::Expired => {
            return Err(ProblemDetails::new(
                StatusCode::CONFLICT,
                format!("coflow {} is proposed, and was never confirmed", id.0),
            ));
        }
    }
    let told = app.tell(Event::CoflowEnded { id }).await;
    match view(&app, id) {
        // The counters may have finished it meanwhile.
        Some(over) if over.state == CoflowState::Finished => Ok(Json(over)),
        now => told.map(|()| Json(now.unwrap_or(there))),
    }
}

fn idempotency_key(headers: &HeaderMap) -> Reply<Option<String>> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let text = value.to_str().ok().filter(|t| (1..=128).contains(&t.len()));
    text.map(|t| Some(t.to_string())).ok_or_else(|| {
        ProblemDetails::bad("an Idempotency-Key has 1 to 128 visible ASCII characters")
    })
}
