//! Shuffles that are to be placed: what the controller proposes, and its confirmation.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::coflows::{Content, MAX_BYTES, check, parse_id, view};
use crate::api::problem::{Body, Problem, Reply};
use crate::api::state::App;
use crate::api::wire::{self, CoflowState, Place};
use crate::coflows::{CoflowSpec, RackBytes, bounds};
use crate::control::record::Snapshot;
use crate::control::{Event, ProgressBy};
use crate::ids::{CoflowId, RackId};
use crate::placement::codecide::{self, Proposal, Request, Shuffle};
use crate::runtime::posted;
use crate::units::{Bytes, Span, Time};

/// How long a proposal is held unless said otherwise.
const HOLD: Span = Span::secs(10);
/// The shortest and the longest hold.
const HOLDS: (Span, Span) = (Span::millis(1), Span::secs(600));
/// The most reduce tasks, and slots, of a request.
const MAX_TASKS: u32 = 100_000;
/// The longest time from now that a request may name: a week.
const MAX_AHEAD: Span = Span::secs(604_800);

/// Begins a coflow that was proposed: with the bytes between racks as proposed, or with the flows that are given. Asking again changes
/// nothing.
#[utoipa::path(post, path = "/api/v1/coflows/{id}/confirm", operation_id = "confirmCoflow", tag = "coflows",
    params(("id" = u32, Path, description = "Its number")), request_body = Option<wire::Confirmation>,
    responses(
        (status = 200, body = wire::Coflow, description = "It has begun, or had before"),
        (status = 404, body = Problem), (status = 409, body = Problem, description = "It was never a proposal, or nobody here sends"),
        (status = 410, body = Problem, description = "It was not confirmed in time"),
        (status = 413, body = Problem), (status = 415, body = Problem), (status = 422, body = Problem)
    ))]
pub async fn confirm(State(app): State<App>, Path(id): Path<String>, body: Option<Body<wire::Confirmation>>) -> Reply<Json<wire::Coflow>> {
    let id = parse_id(&id)?;
    let asked = body.map(|b| b.value).unwrap_or_default();
    let _turn = app.ledger.lock().await;
    let Some(there) = view(&app, id) else { return Err(Problem::not_found(format!("coflow {} does not exist", id.0))) };
    if there.proposal.is_none() {
        return Err(Problem::new(StatusCode::CONFLICT, format!("coflow {} was declared, not proposed: there is nothing to confirm", id.0)));
    }
    if !matches!(there.state, CoflowState::Proposed | CoflowState::Expired) {
        return Ok(Json(there));
    }
    let send = there.send || asked.send;
    let content = content(&app, &there, asked.flows, send)?;
    begin(&app, id, there, content, send).await?;
    view(&app, id).map(Json).ok_or_else(|| Problem::not_found(format!("coflow {} was taken back", id.0)))
}

/// What a confirmed coflow is made of.
fn content(app: &App, there: &wire::Coflow, flows: Vec<wire::Flow>, send: bool) -> Reply<Content> {
    if flows.is_empty() && !send {
        return Ok(Content { pairs: there.pairs.iter().map(Into::into).collect(), flows: vec![] });
    }
    let pairs = if flows.is_empty() { there.pairs.clone() } else { vec![] };
    check(app, &wire::CoflowBody { name: None, pairs, flows, place: None, send, weight: None })
}

async fn begin(app: &App, id: CoflowId, there: wire::Coflow, content: Content, send: bool) -> Reply<()> {
    let (topology, watched) = (&app.handle.topology, !content.flows.is_empty());
    let flows = if watched { content.flows } else { posted::spread(topology, &content.pairs) };
    let spec =
        CoflowSpec { id, name: there.name, arrival: Time::ZERO, weight: CoflowSpec::plain_weight(), priorities: Default::default(), flows };
    let bound = if watched { bounds::hybrid(&spec, topology) } else { Span(there.bound_ns) };
    let progress = if send { ProgressBy::Sender } else { ProgressBy::Counters };
    app.tell(Event::CoflowConfirmed { id, pairs: content.pairs, bound, progress }).await?;
    if let Some(sender) = app.sender.as_ref().filter(|_| send)
        && let Err(why) = sender.send(&spec, watched)
    {
        app.tell(Event::CoflowCancelled { id }).await?;
        return Err(Problem::new(StatusCode::CONFLICT, why));
    }
    Ok(())
}

/// A proposal, and what it was computed from.
pub(super) struct Draft {
    pub proposal: Proposal,
    pub snapshot: Arc<Snapshot>,
}

impl Draft {
    /// Whether the network is still what it was computed from, but for bytes that have passed meanwhile.
    pub fn holds(&self, app: &App) -> bool {
        self.snapshot.standing.is_like(&app.snapshot().standing)
    }
}

/// What is asked by a body.
pub(super) fn question(app: &App, body: &wire::CoflowBody, pairs: &[RackBytes]) -> Reply<Arc<Request>> {
    let asked = match &body.place {
        Some(place) => request(app, place)?,
        None => Request { shuffle: Shuffle::Pairs(pairs.to_vec()), ready: Span::ZERO, deadline: None },
    };
    Ok(Arc::new(asked))
}

/// What the controller would do now; computed where it keeps no other request waiting.
pub(super) async fn propose(app: &App, question: &Arc<Request>) -> Reply<Draft> {
    let (snapshot, topology, question) = (app.snapshot(), app.handle.topology.clone(), question.clone());
    let work = move || codecide::decide(&topology, &snapshot.standing, &question).map(|proposal| Draft { proposal, snapshot });
    let found = tokio::task::spawn_blocking(work).await;
    let found = found.map_err(|_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the computation of the proposal broke"))?;
    found.map_err(|e| Problem::value("/place/tasks", e.to_string()))
}

/// Has the controller hold a proposal.
pub(super) async fn hold(app: &App, id: CoflowId, name: String, body: &wire::CoflowBody, draft: Draft) -> Reply<()> {
    let hold = body.place.as_ref().and_then(|p| p.hold_ns).map_or(HOLD, Span);
    let (weight, expires) = (body.weight.unwrap_or(1), app.snapshot().standing.now + hold);
    app.tell(Event::CoflowProposed { id, name, proposal: Arc::new(draft.proposal), weight, expires, send: body.send }).await
}

/// The question of a body, checked.
fn request(app: &App, place: &Place) -> Reply<Request> {
    let maps = maps(app, place)?;
    ahead("ready_ns", Some(place.ready_ns))?;
    ahead("deadline_ns", place.deadline_ns)?;
    let hold = place.hold_ns.map_or(HOLD, Span);
    if !(HOLDS.0..=HOLDS.1).contains(&hold) {
        return Err(Problem::value("/place/hold_ns", format!("{} to {}", HOLDS.0.0, HOLDS.1.0)));
    }
    let shuffle = match (&place.reduces, place.tasks) {
        (Some(_), Some(_)) => return Err(Problem::value("/place/tasks", "the tasks stand in `reduces` already: leave one of the two out")),
        (None, None) => {
            return Err(Problem::value("/place", "where the reduce tasks stand (`reduces`), or how many are to be placed (`tasks`)"));
        }
        (Some(reduces), None) => Shuffle::Placed { maps, reduces: placed(app, place, reduces)? },
        (None, Some(tasks)) => open(app, place, maps, tasks)?,
    };
    Ok(Request { shuffle, ready: Span(place.ready_ns), deadline: place.deadline_ns.map(Span) })
}

fn ahead(key: &str, ns: Option<u64>) -> Reply<()> {
    let fits = ns.is_none_or(|n| n <= MAX_AHEAD.0);
    if fits { Ok(()) } else { Err(Problem::value(format!("/place/{key}"), format!("at most {}", MAX_AHEAD.0))) }
}

/// A rack of a list in which each stands once.
fn rack(app: &App, rack: u32, pointer: String, seen: &mut BTreeSet<u32>) -> Reply<RackId> {
    let racks = app.handle.topology.rack_count();
    if rack as usize >= racks {
        return Err(Problem::value(pointer, format!("no rack {rack}: they are 0 to {}", racks - 1)));
    }
    if !seen.insert(rack) {
        return Err(Problem::value(pointer, format!("rack {rack} stands twice")));
    }
    Ok(RackId(rack))
}

fn maps(app: &App, place: &Place) -> Reply<Vec<(RackId, Bytes)>> {
    if place.maps.is_empty() {
        return Err(Problem::value("/place/maps", "a shuffle has at least one sending rack"));
    }
    let (mut seen, mut total) = (BTreeSet::new(), 0u64);
    let one = |(k, m): (usize, &wire::RackOutput)| {
        let at = rack(app, m.rack, format!("/place/maps/{k}/rack"), &mut seen)?;
        total = total.saturating_add(m.bytes);
        let fits = m.bytes > 0 && total <= MAX_BYTES;
        let wrong = || Problem::value(format!("/place/maps/{k}/bytes"), format!("1 to {MAX_BYTES} bytes, all racks together"));
        if fits { Ok((at, Bytes(m.bytes))) } else { Err(wrong()) }
    };
    place.maps.iter().enumerate().map(one).collect()
}

fn placed(app: &App, place: &Place, reduces: &[wire::RackTasks]) -> Reply<Vec<(RackId, u32)>> {
    for (given, key) in [
        (place.slots.is_some(), "slots"),
        (place.allowed.is_some(), "allowed"),
        (!place.forbidden.is_empty(), "forbidden"),
        (place.at_most.is_some(), "at_most"),
    ] {
        if given {
            return Err(Problem::value(format!("/place/{key}"), "says nothing of tasks that stand somewhere: only with `tasks`"));
        }
    }
    if reduces.is_empty() {
        return Err(Problem::value("/place/reduces", "a shuffle has at least one reduce task"));
    }
    let (mut seen, mut total) = (BTreeSet::new(), 0u32);
    let one = |(k, r): (usize, &wire::RackTasks)| {
        let at = rack(app, r.rack, format!("/place/reduces/{k}/rack"), &mut seen)?;
        total = total.saturating_add(r.tasks);
        let wrong = || Problem::value(format!("/place/reduces/{k}/tasks"), format!("1 to {MAX_TASKS} tasks, all racks together"));
        if r.tasks > 0 && total <= MAX_TASKS { Ok((at, r.tasks)) } else { Err(wrong()) }
    };
    reduces.iter().enumerate().map(one).collect()
}

fn open(app: &App, place: &Place, maps: Vec<(RackId, Bytes)>, reduces: u32) -> Reply<Shuffle> {
    if !(1..=MAX_TASKS).contains(&reduces) {
        return Err(Problem::value("/place/tasks", format!("1 to {MAX_TASKS} reduce tasks")));
    }
    if place.at_most == Some(0) {
        return Err(Problem::value("/place/at_most", "1 at least"));
    }
    let mut free = match &place.slots {
        Some(slots) => given(app, slots)?,
        None => {
            let t = &app.handle.topology;
            let of = |r: RackId| t.hosts_of(r).iter().map(|h| h.slots).sum::<u32>();
            t.racks.iter().map(|r| vec![Span::ZERO; of(r.id) as usize]).collect()
        }
    };
    let named = |racks: &[u32], key: &str| -> Reply<BTreeSet<RackId>> {
        let mut seen = BTreeSet::new();
        let one = |(k, &r): (usize, &u32)| rack(app, r, format!("/place/{key}/{k}"), &mut seen);
        racks.iter().enumerate().map(one).collect()
    };
    let allowed = place.allowed.as_ref().map(|a| named(a, "allowed")).transpose()?;
    let forbidden = named(&place.forbidden, "forbidden")?;
    for (r, f) in free.iter_mut().enumerate() {
        let r = RackId::from(r);
        if forbidden.contains(&r) || allowed.as_ref().is_some_and(|a| !a.contains(&r)) {
            f.clear();
        }
    }
    Ok(Shuffle::Open { maps, reduces, free, at_most: place.at_most, waves: false })
}

/// By rack: when each slot is free, from now.
fn given(app: &App, slots: &[wire::RackSlots]) -> Reply<Vec<Vec<Span>>> {
    let mut free = vec![vec![]; app.handle.topology.rack_count()];
    let (mut seen, mut total) = (BTreeSet::new(), 0u32);
    for (k, s) in slots.iter().enumerate() {
        let at = rack(app, s.rack, format!("/place/slots/{k}/rack"), &mut seen)?;
        let mut times = vec![(0, s.free, format!("/place/slots/{k}/free"))];
        for (n, soon) in s.soon.iter().enumerate() {
            ahead(&format!("slots/{k}/soon/{n}/in_ns"), Some(soon.in_ns))?;
            times.push((soon.in_ns, soon.slots, format!("/place/slots/{k}/soon/{n}/slots")));
        }
        for (ns, count, pointer) in times {
            total = total.saturating_add(count);
            if total > MAX_TASKS {
                return Err(Problem::value(pointer, format!("at most {MAX_TASKS} slots, all racks together")));
            }
            free[at.index()].extend(std::iter::repeat_n(Span(ns), count as usize));
        }
        free[at.index()].sort_unstable();
    }
    Ok(free)
}
