//! Bodies of coflows and of placement requests, checked against the network: what is wrong is
//! reported with a JSON pointer.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api::problem::{ProblemDetails, Reply};
use crate::api::state::App;
use crate::api::wire::{self, PlaceRequest};
use crate::coflows::priority::{LAST, Priorities, PriorityChange};
use crate::coflows::{FlowSpec, RackBytes};
use crate::ids::{FlowId, RackId};
use crate::paths::types::possible;
use crate::placement::advisor::{PlacementRequest, ShuffleSpec};
use crate::text;
use crate::topology::Topology;
use crate::topology::types::Types;
use crate::units::{Bytes, Span};

/// Whether a change is only tried.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DryRun {
    /// Whether to say only what would come of it, and change nothing.
    #[serde(default)]
    #[param(inline)]
    pub dry_run: bool,
}

/// The longest name, in characters.
const MAX_NAME: usize = 64;
/// The most bytes of one coflow: an exabyte.
const MAX_BYTES: u64 = 1_000_000_000_000_000_000;
/// The most flows of one coflow: each has a connection of its own.
const MAX_FLOWS: usize = 10_000;
/// The most reduce tasks, and slots, of a request.
const MAX_TASKS: u32 = 100_000;
/// The most numbers of bytes by map rack and reduce task.
const MAX_READS: usize = 20_000;
/// The longest time from now that a request may name: a week.
const MAX_AHEAD: Span = Span::secs(604_800);
/// How long a proposal is held unless said otherwise.
const HOLD: Span = Span::secs(10);
/// The shortest and the longest hold.
const HOLDS: (Span, Span) = (Span::millis(1), Span::secs(600));

/// What a coflow is made of.
#[derive(Debug)]
pub(super) struct Content {
    pub pairs: Vec<RackBytes>,
    /// The flows between hosts; empty where only the pairs are known.
    pub flows: Vec<FlowSpec>,
    /// What is said of the flows' strict priorities.
    pub priorities: Priorities,
    /// The tiers of the switches that the flows must cross, in their order; empty: any.
    pub types: Types,
}

/// Refuses a strict priority that does not exist.
fn exists_priority(priority: Option<u8>, pointer: impl FnOnce() -> String) -> Reply<()> {
    let wrong = priority.filter(|&p| p > LAST);
    wrong.map_or(Ok(()), |p| {
        Err(ProblemDetails::value(
            pointer(),
            format!("no priority {p}: they are 0 (first) to {LAST}"),
        ))
    })
}

/// The change of a coflow of which `flows` flows are sent here.
pub(super) fn change(body: &wire::CoflowChange, flows: usize) -> Reply<PriorityChange> {
    if body.priority.is_none() && body.flows.is_empty() {
        return Err(ProblemDetails::value("", "what shall change: `priority`, `flows` or both"));
    }
    exists_priority(body.priority, || "/priority".into())?;
    let mut seen = BTreeSet::new();
    for (k, f) in body.flows.iter().enumerate() {
        exists_priority(Some(f.priority), || format!("/flows/{k}/priority"))?;
        exists("flow", f.flow, flows, || format!("/flows/{k}/flow"))?;
        if !seen.insert(f.flow) {
            return Err(ProblemDetails::value(
                format!("/flows/{k}/flow"),
                format!("flow {} is listed twice", f.flow),
            ));
        }
    }
    Ok(PriorityChange {
        all: body.priority,
        flows: body.flows.iter().map(|f| (FlowId(f.flow), f.priority)).collect(),
    })
}

/// Whether the body makes sense on this network.
pub(super) fn check(app: &App, body: &wire::CoflowBody) -> Reply<Content> {
    if body.send && app.sender.is_none() {
        let mut p = ProblemDetails::new(
            StatusCode::CONFLICT,
            "this controller has no sender, so `send` cannot be true: leave it out, and send the bytes by yourself",
        );
        p.pointer = Some("/send".into());
        return Err(p);
    }
    let bad_name =
        |n: &String| n.is_empty() || n.chars().count() > MAX_NAME || n.chars().any(text::is_hidden);
    if body.name.as_ref().is_some_and(bad_name) {
        let which = "none of them a control character, or one that turns text or breaks lines";
        return Err(ProblemDetails::value(
            "/name",
            format!("a name has 1 to {MAX_NAME} characters, {which}"),
        ));
    }
    if body.weight == Some(0) {
        return Err(ProblemDetails::value("/weight", "a weight is 1 at least"));
    }
    exists_priority(body.priority, || "/priority".into())?;
    if body.place.is_some() {
        let given = [("pairs", body.pairs.is_empty()), ("flows", body.flows.is_empty())]
            .into_iter()
            .find(|g| !g.1);
        let both = |key: &str| {
            ProblemDetails::value(
                format!("/{key}"),
                "what is sent follows from `place`: leave one of the two out",
            )
        };
        if body.priority.is_some() {
            return Err(ProblemDetails::value(
                "/priority",
                "of a shuffle that is to be placed, the priority is said when it is confirmed",
            ));
        }
        if !body.types.is_empty() {
            return Err(ProblemDetails::value(
                "/types",
                "of a shuffle that is to be placed, the types are said when it is confirmed",
            ));
        }
        let none = Content {
            pairs: vec![],
            flows: vec![],
            priorities: Priorities::default(),
            types: Types::default(),
        };
        return given.map_or(Ok(none), |g| Err(both(g.0)));
    }
    let topology = &app.handle.topology;
    match (body.pairs.is_empty(), body.flows.is_empty()) {
        (true, true) => Err(ProblemDetails::value(
            "/pairs",
            "a coflow has at least one pair of racks, or one of `flows`",
        )),
        (false, false) => {
            Err(ProblemDetails::value("/pairs", "pairs follow from `flows`: give one of the two"))
        }
        (false, true) => {
            let pairs = check_pairs(&body.pairs, topology.rack_count())?;
            if !body.types.is_empty() {
                return Err(ProblemDetails::value(
                    "/types",
                    "types are of flows between hosts: give `flows` instead of `pairs`",
                ));
            }
            Ok(Content {
                pairs,
                flows: vec![],
                priorities: Priorities { all: body.priority, flows: vec![] },
                types: Types::default(),
            })
        }
        (true, false) => {
            let flows = check_flows(&body.flows, topology)?;
            let pairs = RackBytes::of(flows.iter().copied(), topology);
            let own = body.flows.iter().map(|f| f.priority);
            let own = if own.clone().any(|p| p.is_some()) { own.collect() } else { vec![] };
            let types = check_types(&body.types, topology)?;
            Ok(Content {
                pairs,
                flows,
                priorities: Priorities { all: body.priority, flows: own },
                types,
            })
        }
    }
}

/// The types of a coflow's flows, which some two hosts of the network must have.
fn check_types(types: &[wire::SwitchTier], topology: &Topology) -> Reply<Types> {
    let types = Types(types.iter().map(|&t| t.into()).collect());
    possible(topology, &types)
        .map_err(|(what, allowed)| ProblemDetails::value("/types", format!("{what}: {allowed}")))?;
    Ok(types)
}

fn check_pairs(pairs: &[wire::PairBody], racks: usize) -> Reply<Vec<RackBytes>> {
    let (mut seen, mut total) = (BTreeSet::new(), 0u64);
    for (k, p) in pairs.iter().enumerate() {
        exists("rack", p.from.0, racks, || format!("/pairs/{k}/from"))?;
        exists("rack", p.to.0, racks, || format!("/pairs/{k}/to"))?;
        if p.from == p.to {
            return Err(ProblemDetails::value(
                format!("/pairs/{k}/to"),
                "a rack's own traffic does not leave it",
            ));
        }
        if !seen.insert((p.from, p.to)) {
            return Err(ProblemDetails::value(
                format!("/pairs/{k}"),
                format!("the pair {} -> {} is listed twice", p.from.0, p.to.0),
            ));
        }
        add_bytes("pairs", k, p.bytes.0, &mut total)?;
    }
    Ok(pairs.iter().map(Into::into).collect())
}

fn check_flows(flows: &[wire::Flow], topology: &Topology) -> Reply<Vec<FlowSpec>> {
    if flows.len() > MAX_FLOWS {
        return Err(ProblemDetails::value(
            "/flows",
            format!("{} flows: at most {MAX_FLOWS}", flows.len()),
        ));
    }
    let (mut total, mut all) = (0, Vec::with_capacity(flows.len()));
    for (k, f) in flows.iter().enumerate() {
        let host = |h: wire::HostRef, key| {
            h.find(topology).map_err(|why| ProblemDetails::value(format!("/flows/{k}/{key}"), why))
        };
        let (from, to) = (host(f.from, "from")?, host(f.to, "to")?);
        if from == to {
            return Err(ProblemDetails::value(
                format!("/flows/{k}/to"),
                "a host's own bytes do not leave it",
            ));
        }
        exists_priority(f.priority, || format!("/flows/{k}/priority"))?;
        add_bytes("flows", k, f.bytes.0, &mut total)?;
        all.push(FlowSpec { from, to, bytes: Bytes(f.bytes.0) });
    }
    Ok(all)
}

/// Whether the network has a rack, a plane or another thing (`what`) of this number: they are 0 to
/// `n - 1`.
pub(super) fn exists(
    what: &str,
    number: u32,
    n: usize,
    pointer: impl FnOnce() -> String,
) -> Reply<()> {
    let known = (number as usize) < n;
    let those = || match (n.checked_sub(1), what) {
        (None, _) => "there is none".into(),
        (Some(last), "rack") => format!("they are 0 to {last}, or r0 to r{last}"),
        (Some(last), _) => format!("they are 0 to {last}"),
    };
    if known {
        Ok(())
    } else {
        Err(ProblemDetails::value(pointer(), format!("no {what} {number}: {}", those())))
    }
}

fn add_bytes(list: &str, k: usize, bytes: u64, total: &mut u64) -> Reply<()> {
    *total = total.saturating_add(bytes);
    if bytes == 0 || *total > MAX_BYTES {
        return Err(ProblemDetails::value(
            format!("/{list}/{k}/bytes"),
            format!("1 to {MAX_BYTES} bytes, all {list} together"),
        ));
    }
    Ok(())
}

/// How long the proposal of a request is held.
pub(super) fn hold(place: Option<&PlaceRequest>) -> Span {
    place.and_then(|p| p.hold_ns).map_or(HOLD, |l| Span(l.0))
}

/// The placement request of a body.
pub(super) fn request(app: &App, place: &PlaceRequest) -> Reply<PlacementRequest> {
    let maps = maps(app, place)?;
    ahead("ready_ns", Some(place.ready_ns))?;
    ahead("deadline_ns", place.deadline_ns)?;
    let hold = hold(Some(place));
    if !(HOLDS.0..=HOLDS.1).contains(&hold) {
        return Err(ProblemDetails::value(
            "/place/hold_ns",
            format!("{} to {} (in ns: {} to {})", HOLDS.0, HOLDS.1, HOLDS.0.0, HOLDS.1.0),
        ));
    }
    let shuffle = match (&place.reduces, place.tasks) {
        (Some(_), Some(_)) => {
            return Err(ProblemDetails::value(
                "/place/tasks",
                "`reduces` has the tasks already: leave one of the two out",
            ));
        }
        (None, None) => {
            return Err(ProblemDetails::value(
                "/place",
                "where the reduce tasks are (`reduces`), or how many are to be placed (`tasks`)",
            ));
        }
        (Some(reduces), None) => {
            ShuffleSpec::Placed { maps, reduces: placed(app, place, reduces)? }
        }
        (None, Some(tasks)) => open(app, place, maps, tasks)?,
    };
    Ok(PlacementRequest {
        shuffle,
        ready: Span(place.ready_ns.0),
        deadline: place.deadline_ns.map(|l| Span(l.0)),
    })
}

fn ahead(key: &str, ns: Option<wire::Length>) -> Reply<()> {
    let fits = ns.is_none_or(|n| n.0 <= MAX_AHEAD.0);
    if fits {
        Ok(())
    } else {
        Err(ProblemDetails::value(
            format!("/place/{key}"),
            format!("at most {MAX_AHEAD} (in ns: {})", MAX_AHEAD.0),
        ))
    }
}

/// A rack of a list that has each once.
fn rack(
    app: &App,
    wire::RackRef(rack): wire::RackRef,
    pointer: String,
    seen: &mut BTreeSet<u32>,
) -> Reply<RackId> {
    exists("rack", rack, app.handle.topology.rack_count(), || pointer.clone())?;
    if !seen.insert(rack) {
        return Err(ProblemDetails::value(pointer, format!("rack {rack} is listed twice")));
    }
    Ok(RackId(rack))
}

fn maps(app: &App, place: &PlaceRequest) -> Reply<Vec<(RackId, Bytes)>> {
    if place.maps.is_empty() {
        return Err(ProblemDetails::value(
            "/place/maps",
            "a shuffle has at least one sending rack",
        ));
    }
    let (mut seen, mut total) = (BTreeSet::new(), 0u64);
    let one = |(k, m): (usize, &wire::RackOutput)| {
        let at = rack(app, m.rack, format!("/place/maps/{k}/rack"), &mut seen)?;
        total = total.saturating_add(m.bytes.0);
        let fits = m.bytes.0 > 0 && total <= MAX_BYTES;
        let wrong = || {
            ProblemDetails::value(
                format!("/place/maps/{k}/bytes"),
                format!("1 to {MAX_BYTES} bytes, all racks together"),
            )
        };
        if fits { Ok((at, Bytes(m.bytes.0))) } else { Err(wrong()) }
    };
    place.maps.iter().enumerate().map(one).collect()
}

fn placed(
    app: &App,
    place: &PlaceRequest,
    reduces: &[wire::PlacedTasks],
) -> Reply<Vec<(RackId, u32)>> {
    for (given, key) in [
        (place.slots.is_some(), "slots"),
        (place.allowed.is_some(), "allowed"),
        (!place.forbidden.is_empty(), "forbidden"),
        (place.at_most.is_some(), "at_most"),
        (place.maps.iter().any(|m| !m.by_task.is_empty()), "maps"),
    ] {
        if given {
            return Err(ProblemDetails::value(
                format!("/place/{key}"),
                "is for tasks that are to be placed: only with `tasks`",
            ));
        }
    }
    if reduces.is_empty() {
        return Err(ProblemDetails::value(
            "/place/reduces",
            "a shuffle has at least one reduce task",
        ));
    }
    let (mut seen, mut total) = (BTreeSet::new(), 0u32);
    let one = |(k, r): (usize, &wire::PlacedTasks)| {
        let at = rack(app, r.rack, format!("/place/reduces/{k}/rack"), &mut seen)?;
        total = total.saturating_add(r.tasks);
        let wrong = || {
            ProblemDetails::value(
                format!("/place/reduces/{k}/tasks"),
                format!("1 to {MAX_TASKS} tasks, all racks together"),
            )
        };
        if r.tasks > 0 && total <= MAX_TASKS { Ok((at, r.tasks)) } else { Err(wrong()) }
    };
    reduces.iter().enumerate().map(one).collect()
}

fn open(
    app: &App,
    place: &PlaceRequest,
    maps: Vec<(RackId, Bytes)>,
    reduces: u32,
) -> Reply<ShuffleSpec> {
    if !(1..=MAX_TASKS).contains(&reduces) {
        return Err(ProblemDetails::value(
            "/place/tasks",
            format!("1 to {MAX_TASKS} reduce tasks"),
        ));
    }
    if place.at_most == Some(0) {
        return Err(ProblemDetails::value("/place/at_most", "1 at least"));
    }
    let mut free = match &place.slots {
        Some(slots) => given(app, slots)?,
        None => {
            let t = &app.handle.topology;
            let of = |r: RackId| t.hosts_of(r).iter().map(|h| h.slots).sum::<u32>();
            t.racks.iter().map(|r| vec![Span::ZERO; of(r.id) as usize]).collect()
        }
    };
    let named = |racks: &[wire::RackRef], key: &str| -> Reply<BTreeSet<RackId>> {
        let mut seen = BTreeSet::new();
        let one =
            |(k, &r): (usize, &wire::RackRef)| rack(app, r, format!("/place/{key}/{k}"), &mut seen);
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
    let by_task = by_task(place, reduces)?;
    Ok(ShuffleSpec::Open { maps, by_task, reduces, free, at_most: place.at_most, waves: false })
}

/// For each map rack: what every reduce task reads of it; empty if all read the same.
fn by_task(place: &PlaceRequest, tasks: u32) -> Reply<Vec<Vec<Bytes>>> {
    let wrong =
        |k: usize, why: String| ProblemDetails::value(format!("/place/maps/{k}/by_task"), why);
    if place.maps.iter().all(|m| m.by_task.is_empty()) {
        return Ok(vec![]);
    }
    let most = MAX_READS / place.maps.len();
    let one = |(k, m): (usize, &wire::RackOutput)| {
        let n = m.by_task.len();
        if n != tasks as usize {
            return Err(wrong(
                k,
                format!("{n} numbers: one for each of the {tasks} tasks, in every rack"),
            ));
        }
        if n > most {
            return Err(wrong(k, format!("{n} numbers: at most {MAX_READS}, all racks together")));
        }
        let sum = m.by_task.iter().map(|b| b.0).fold(0, u64::saturating_add);
        if sum != m.bytes.0 {
            return Err(wrong(
                k,
                format!("{sum} bytes in all: they must be the rack's {}", m.bytes.0),
            ));
        }
        Ok(m.by_task.iter().map(|b| Bytes(b.0)).collect())
    };
    place.maps.iter().enumerate().map(one).collect()
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
            times.push((soon.in_ns.0, soon.slots, format!("/place/slots/{k}/soon/{n}/slots")));
        }
        for (ns, count, pointer) in times {
            total = total.saturating_add(count);
            if total > MAX_TASKS {
                return Err(ProblemDetails::value(
                    pointer,
                    format!("at most {MAX_TASKS} slots, all racks together"),
                ));
            }
            free[at.index()].extend(std::iter::repeat_n(Span(ns), count as usize));
        }
        free[at.index()].sort_unstable();
    }
    Ok(free)
}
