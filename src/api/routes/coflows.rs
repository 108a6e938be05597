//! Coflows: declared by POST (we choose the id) or PUT (the client does), watched, and taken back.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tokio::sync::MutexGuard;
use utoipa::IntoParams;

use super::proposals::{self, Draft};
use crate::api::problem::{Body, Problem, Reply};
use crate::api::state::{App, Kept, Ledger};
use crate::api::wire::{self, CoflowState};
use crate::coflows::{CoflowSpec, FlowSpec, RackBytes, bounds};
use crate::control::record::PromiseState;
use crate::control::{Event, ProgressBy};
use crate::demand::DemandMatrix;
use crate::ids::CoflowId;
use crate::runtime::posted;
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};

/// The longest name.
const MAX_NAME: usize = 64;
/// The most bytes of one coflow: an exabyte.
pub(super) const MAX_BYTES: u64 = 1_000_000_000_000_000_000;
/// The most flows of one coflow: each has a connection of its own.
const MAX_FLOWS: usize = 10_000;
/// How often a proposal is computed before its turn.
const TRIES: u32 = 3;
/// Ids that clients choose are below this, so that there is always room above them for ours.
const MAX_CHOSEN: u32 = 1 << 31;

/// Which coflows.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// Only those in this state.
    #[param(inline)]
    state: Option<CoflowState>,
}

/// All coflows, by id.
#[utoipa::path(get, path = "/api/v1/coflows", operation_id = "listCoflows", tag = "coflows", params(Filter),
    responses((status = 200, body = wire::Coflows), (status = 400, body = Problem)))]
pub async fn list(
    State(app): State<App>,
    filter: Result<Query<Filter>, axum::extract::rejection::QueryRejection>,
) -> Reply<Json<wire::Coflows>> {
    let Query(filter) = filter.map_err(|e| Problem::bad(e.body_text()))?;
    let s = app.snapshot();
    let promised = s.proposals.iter().filter(|p| p.state != PromiseState::Confirmed).map(wire::Coflow::from);
    let all = s.coflows.iter().map(wire::Coflow::from).chain(promised);
    let mut coflows: Vec<_> = all.filter(|c| filter.state.is_none_or(|f| f == c.state)).collect();
    coflows.sort_by_key(|c| c.id);
    Ok(Json(wire::Coflows { revision: s.revision, now_ns: s.now.0, coflows }))
}

/// One coflow with its progress, and of one that is sent here that of its flows.
#[utoipa::path(get, path = "/api/v1/coflows/{id}", operation_id = "getCoflow", tag = "coflows", params(("id" = u32, Path, description = "Its number")),
    responses((status = 200, body = wire::Coflow), (status = 404, body = Problem)))]
pub async fn get(State(app): State<App>, Path(id): Path<String>) -> Reply<Json<wire::Coflow>> {
    let id = parse_id(&id)?;
    view(&app, id).map(Json).ok_or_else(|| no_coflow(id.0))
}

/// What a POST does.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct How {
    /// Only says what would be proposed, and changes nothing.
    #[serde(default)]
    #[param(inline)]
    dry_run: bool,
}

/// Declares a coflow, or with `place` has one proposed; its id is the next one free. With an `Idempotency-Key`, asking again makes no
/// second one.
#[utoipa::path(post, path = "/api/v1/coflows", operation_id = "createCoflow", tag = "coflows", request_body = wire::CoflowBody,
    params(How, ("Idempotency-Key" = Option<String>, Header, description = "1 to 128 characters of the client's choice")),
    responses(
        (status = 200, body = wire::Proposal, description = "With `dryRun=true`: what would be proposed"),
        (status = 201, body = wire::Coflow, description = "Declared, or proposed", headers(("Location" = String, description = "Where it is"))),
        (status = 400, body = Problem), (status = 409, body = Problem, description = "`send` is asked, and nobody here sends"),
        (status = 413, body = Problem), (status = 415, body = Problem), (status = 422, body = Problem)
    ))]
pub async fn post(
    State(app): State<App>,
    how: Result<Query<How>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
    body: Body<wire::CoflowBody>,
) -> Reply<Response> {
    let Query(how) = how.map_err(|e| Problem::bad(e.body_text()))?;
    let key = idempotency_key(&headers)?;
    if how.dry_run {
        let content = check(&app, &body.value)?;
        let draft = proposals::propose(&app, &proposals::question(&app, &body.value, &content.pairs)?).await?;
        return Ok(Json(wire::Proposal::new(&draft.proposal, draft.snapshot.standing.now)).into_response());
    }
    let (mut ledger, content, draft) = match turn(&app, key.as_deref(), &body).await? {
        Turn::Replayed(response) => return Ok(response),
        Turn::New(ledger, content, draft) => (ledger, content, draft),
    };
    let id = ledger.next_id(&app.snapshot()).ok_or_else(|| Problem::new(StatusCode::CONFLICT, "all coflow ids are used up"))?;
    match draft {
        Some(draft) => proposals::hold(&app, id, name(&body.value, id), &body.value, draft).await?,
        None => declare(&app, id, &body.value, content).await?,
    }
    if let Some(key) = key {
        ledger.keep(key, Kept { body: body.raw, id });
    }
    Ok(created(&app, id))
}

/// The right to make a coflow, with the proposal that it shall be; or what became of the same request before.
enum Turn<'a> {
    Replayed(Response),
    New(MutexGuard<'a, Ledger>, Content, Option<Draft>),
}

/// Waits for its turn. A proposal is computed before, while others have theirs; again if the network is another one by then; and after
/// [`TRIES`] times while it has the turn, when nobody else can reserve anything.
async fn turn<'a>(app: &'a App, key: Option<&str>, body: &Body<wire::CoflowBody>) -> Reply<Turn<'a>> {
    let ledger = app.ledger.lock().await;
    if let Some(response) = replayed(app, &ledger, key, body)? {
        return Ok(Turn::Replayed(response));
    }
    let content = check(app, &body.value)?;
    if body.value.place.is_none() {
        return Ok(Turn::New(ledger, content, None));
    }
    drop(ledger);
    let question = proposals::question(app, &body.value, &content.pairs)?;
    for _ in 0..TRIES {
        let draft = proposals::propose(app, &question).await?;
        let ledger = app.ledger.lock().await;
        if let Some(response) = replayed(app, &ledger, key, body)? {
            return Ok(Turn::Replayed(response));
        }
        if draft.holds(app) {
            return Ok(Turn::New(ledger, content, Some(draft)));
        }
    }
    let ledger = app.ledger.lock().await;
    if let Some(response) = replayed(app, &ledger, key, body)? {
        return Ok(Turn::Replayed(response));
    }
    let draft = proposals::propose(app, &question).await?;
    Ok(Turn::New(ledger, content, Some(draft)))
}

/// What became of a request with this key, if there was one.
fn replayed(app: &App, ledger: &Ledger, key: Option<&str>, body: &Body<wire::CoflowBody>) -> Reply<Option<Response>> {
    let Some(kept) = key.and_then(|k| ledger.kept(k)) else { return Ok(None) };
    if kept.body != body.raw {
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "this Idempotency-Key came with another body before"));
    }
    if view(app, kept.id).is_none() {
        let why = format!("the coflow {} that came of this Idempotency-Key is gone: deleted, or finished long ago", kept.id.0);
        return Err(Problem::new(StatusCode::GONE, why));
    }
    let mut response = created(app, kept.id);
    response.headers_mut().insert(HeaderName::from_static("idempotency-replayed"), HeaderValue::from_static("true"));
    Ok(Some(response))
}

/// Declares a coflow under an id that the client chooses; the same again changes nothing.
#[utoipa::path(put, path = "/api/v1/coflows/{id}", operation_id = "putCoflow", tag = "coflows", request_body = wire::CoflowBody,
    params(("id" = u32, Path, description = "Its number, below 2^31")),
    responses(
        (status = 200, body = wire::Coflow, description = "It was there already"),
        (status = 201, body = wire::Coflow, description = "Declared", headers(("Location" = String, description = "Where it is"))),
        (status = 400, body = Problem), (status = 409, body = Problem, description = "The id is in use"),
        (status = 413, body = Problem), (status = 415, body = Problem), (status = 422, body = Problem)
    ))]
pub async fn put(State(app): State<App>, Path(id): Path<String>, body: Body<wire::CoflowBody>) -> Reply<Response> {
    let id = parse_id(&id)?;
    if id.0 >= MAX_CHOSEN {
        return Err(Problem::bad(format!("the id must be below {MAX_CHOSEN}")));
    }
    if body.value.place.is_some() {
        return Err(Problem::value("/place", "a placement is proposed by POST"));
    }
    let mut ledger: MutexGuard<'_, Ledger> = app.ledger.lock().await;
    let content = check(&app, &body.value)?;
    if let Some(there) = view(&app, id) {
        let mut asked: Vec<wire::Pair> = content.pairs.iter().map(Into::into).collect();
        asked.sort_by_key(|p| (p.from, p.to));
        let flow = |f: &wire::FlowView| wire::Flow { from: f.from, to: f.to, bytes: f.bytes };
        let other_flows =
            |f: &Vec<wire::FlowView>| !body.value.flows.is_empty() && !f.iter().map(flow).eq(body.value.flows.iter().copied());
        let same = there.pairs == asked && there.name == name(&body.value, id) && !there.flows.as_ref().is_some_and(other_flows);
        let detail = format!("coflow {} is known already, and is another one", id.0);
        return if same { Ok(Json(there).into_response()) } else { Err(Problem::new(StatusCode::CONFLICT, detail)) };
    }
    declare(&app, id, &body.value, content).await?;
    ledger.took(id);
    Ok(created(&app, id))
}

/// Takes a coflow back: what it has not sent is not scheduled any more, and what is sent here is broken off.
#[utoipa::path(delete, path = "/api/v1/coflows/{id}", operation_id = "cancelCoflow", tag = "coflows", params(("id" = u32, Path, description = "Its number")),
    responses((status = 204, description = "Taken back"), (status = 404, body = Problem), (status = 409, body = Problem, description = "It is over")))]
pub async fn delete(State(app): State<App>, Path(id): Path<String>) -> Reply<StatusCode> {
    let id = parse_id(&id)?;
    app.tell(Event::CoflowCancelled { id }).await?;
    if let Some(sender) = &app.sender {
        sender.cancel(id);
    }
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn parse_id(text: &str) -> Reply<CoflowId> {
    text.parse().map(CoflowId).map_err(|_| no_coflow(text))
}

fn no_coflow(id: impl std::fmt::Display) -> Problem {
    Problem::not_found(format!("coflow {id} does not exist"))
}

/// A coflow, or a proposal.
pub(super) fn view(app: &App, id: CoflowId) -> Option<wire::Coflow> {
    let s = app.snapshot();
    let promise = s.proposals.iter().find(|p| p.id == id);
    let Some(c) = s.coflows.iter().find(|c| c.id == id) else {
        return promise.filter(|p| p.state != PromiseState::Confirmed).map(Into::into);
    };
    let flows = app.sender.as_ref().and_then(|s| s.flows(id));
    Some(wire::Coflow { proposal: promise.map(Into::into), flows: flows.map(|f| f.iter().map(Into::into).collect()), ..c.into() })
}

fn name(body: &wire::CoflowBody, id: CoflowId) -> String {
    body.name.clone().unwrap_or_else(|| format!("coflow-{}", id.0))
}

fn created(app: &App, id: CoflowId) -> Response {
    let location = format!("/api/v1/coflows/{}", id.0);
    let head = (StatusCode::CREATED, [(header::LOCATION, location)]);
    // It may have been cancelled between: then there is nothing to show but its place.
    match view(app, id) {
        Some(coflow) => (head.0, head.1, Json(coflow)).into_response(),
        None => head.into_response(),
    }
}

fn idempotency_key(headers: &HeaderMap) -> Reply<Option<String>> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let text = value.to_str().ok().filter(|t| (1..=128).contains(&t.len()));
    text.map(|t| Some(t.to_string())).ok_or_else(|| Problem::bad("an Idempotency-Key has 1 to 128 visible ASCII characters"))
}

/// What a coflow is made of.
pub(super) struct Content {
    pub pairs: Vec<RackBytes>,
    /// Empty: only the pairs are known.
    pub flows: Vec<FlowSpec>,
}

/// Whether the body makes sense on this network.
pub(super) fn check(app: &App, body: &wire::CoflowBody) -> Reply<Content> {
    if body.send && app.sender.is_none() {
        let mut p = Problem::new(StatusCode::CONFLICT, "nobody sends for the API here: leave `send` out, and send by yourself");
        p.pointer = Some("/send".into());
        return Err(p);
    }
    let bad_name = |n: &String| n.is_empty() || n.chars().count() > MAX_NAME || n.chars().any(char::is_control);
    if body.name.as_ref().is_some_and(bad_name) {
        return Err(Problem::value("/name", format!("a name has 1 to {MAX_NAME} characters, none of them a control character")));
    }
    if body.weight == Some(0) {
        return Err(Problem::value("/weight", "a weight is 1 at least"));
    }
    if body.place.is_some() {
        let given = [("pairs", body.pairs.is_empty()), ("flows", body.flows.is_empty())].into_iter().find(|g| !g.1);
        let both = |key: &str| Problem::value(format!("/{key}"), "what is sent follows from `place`: leave one of the two out");
        return given.map_or(Ok(Content { pairs: vec![], flows: vec![] }), |g| Err(both(g.0)));
    }
    let topology = &app.handle.topology;
    match (body.pairs.is_empty(), body.flows.is_empty()) {
        (true, true) => Err(Problem::value("/pairs", "a coflow has at least one pair of racks, or one of `flows`")),
        (false, false) => Err(Problem::value("/pairs", "pairs follow from `flows`: give one of the two")),
        (false, true) => Ok(Content { pairs: check_pairs(&body.pairs, topology.rack_count())?, flows: vec![] }),
        (true, false) => {
            let flows = check_flows(&body.flows, topology)?;
            let matrix = CoflowSpec {
                id: CoflowId(0),
                name: String::new(),
                arrival: Time::ZERO,
                weight: 1,
                priorities: Default::default(),
                flows: flows.clone(),
            }
            .matrix(topology);
            let pairs = matrix.entries().map(|(from, to, b)| RackBytes { from, to, bytes: Bytes(b) }).collect();
            Ok(Content { pairs, flows })
        }
    }
}

fn check_pairs(pairs: &[wire::Pair], racks: usize) -> Reply<Vec<RackBytes>> {
    let (mut seen, mut total) = (BTreeSet::new(), 0u64);
    for (k, p) in pairs.iter().enumerate() {
        check_ends(("pairs", "rack"), k, (p.from, p.to), racks)?;
        if p.from == p.to {
            return Err(Problem::value(format!("/pairs/{k}/to"), "a rack's own traffic does not leave it"));
        }
        if !seen.insert((p.from, p.to)) {
            return Err(Problem::value(format!("/pairs/{k}"), format!("the pair {} -> {} stands twice", p.from, p.to)));
        }
        add_bytes("pairs", k, p.bytes, &mut total)?;
    }
    Ok(pairs.iter().map(Into::into).collect())
}

fn check_flows(flows: &[wire::Flow], topology: &Topology) -> Reply<Vec<FlowSpec>> {
    if flows.len() > MAX_FLOWS {
        return Err(Problem::value("/flows", format!("{} flows: at most {MAX_FLOWS}", flows.len())));
    }
    let mut total = 0;
    for (k, f) in flows.iter().enumerate() {
        check_ends(("flows", "host"), k, (f.from, f.to), topology.hosts.len())?;
        if f.from == f.to {
            return Err(Problem::value(format!("/flows/{k}/to"), "a host's own bytes do not leave it"));
        }
        add_bytes("flows", k, f.bytes, &mut total)?;
    }
    Ok(flows.iter().map(Into::into).collect())
}

fn check_ends((list, what): (&str, &str), k: usize, (from, to): (u32, u32), n: usize) -> Reply<()> {
    for (end, key) in [(from, "from"), (to, "to")] {
        if end as usize >= n {
            return Err(Problem::value(format!("/{list}/{k}/{key}"), format!("no {what} {end}: they are 0 to {}", n - 1)));
        }
    }
    Ok(())
}

fn add_bytes(list: &str, k: usize, bytes: u64, total: &mut u64) -> Reply<()> {
    *total = total.saturating_add(bytes);
    if bytes == 0 || *total > MAX_BYTES {
        return Err(Problem::value(format!("/{list}/{k}/bytes"), format!("1 to {MAX_BYTES} bytes, all {list} together")));
    }
    Ok(())
}

/// Tells the controller, and whoever sends.
async fn declare(app: &App, id: CoflowId, body: &wire::CoflowBody, content: Content) -> Reply<()> {
    let sender = app.sender.as_ref().filter(|_| body.send);
    let progress = if sender.is_some() { ProgressBy::Sender } else { ProgressBy::Counters };
    let (topology, watched) = (&app.handle.topology, !content.flows.is_empty());
    let (name, weight) = (name(body, id), body.weight.unwrap_or(CoflowSpec::plain_weight()));
    let flows = if watched { content.flows } else { posted::spread(topology, &content.pairs) };
    let spec = CoflowSpec { id, name: name.clone(), arrival: Time::ZERO, weight, priorities: Default::default(), flows };
    let bound = if watched { bounds::hybrid(&spec, topology) } else { bound(&content.pairs, topology) };
    let taken = app.tell(Event::CoflowArrived { id, name, pairs: content.pairs, bound, progress, weight }).await;
    if taken.as_ref().is_err_and(|p| p.status == StatusCode::SERVICE_UNAVAILABLE.as_u16()) {
        // A controller that is only late would still take it, and nobody would send it: whoever asks again gets another one.
        app.handle.notify(Event::CoflowCancelled { id });
    }
    taken?;
    if let Some(sender) = sender
        && let Err(why) = sender.send(&spec, watched)
    {
        app.tell(Event::CoflowCancelled { id }).await?;
        return Err(Problem::new(StatusCode::CONFLICT, why));
    }
    Ok(())
}

fn bound(pairs: &[RackBytes], topology: &Topology) -> Span {
    let mut m = DemandMatrix::zero(topology.rack_count());
    for p in pairs {
        m.add(p.from, p.to, p.bytes.0);
    }
    bounds::hybrid_racks(&m, topology)
}
