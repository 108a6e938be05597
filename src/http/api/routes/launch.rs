//! The beginning of a coflow: the controller hears of it, its bytes are sent if that was asked, and
//! it is shown.

use std::sync::Arc;

use axum::http::StatusCode;

use super::body::{self, Content};
use super::resource::{name, view};
use crate::api::problem::{ProblemDetails, Reply};
use crate::api::state::App;
use crate::api::wire::{self, CoflowState};
use crate::coflows::{CoflowSpec, FlowSpec, RackBytes, bounds};
use crate::control::record::{ProposalState, ProposalView};
use crate::control::{Event, ProgressBy};
use crate::demand::DemandMatrix;
use crate::fabric::{ReportedEnds, Shipment};
use crate::ids::CoflowId;
use crate::placement::advisor::Proposal;
use crate::runtime::api_sender;
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};

/// Declares a coflow of this content, and has it sent if the body asks for that. Gives the coflow
/// as it is then: the answer shows what was declared also when the coflow is over by then.
pub(super) async fn declare(
    app: &App,
    id: CoflowId,
    body: &wire::CoflowBody,
    content: Content,
) -> Reply<wire::Coflow> {
    let weight = body.weight.unwrap_or(CoflowSpec::plain_weight());
    let (spec, report) = to_send(app, (id, name(body, id), weight), &content);
    let bound = bound(&app.handle.topology, &spec, &content);
    let (name, progress) = (spec.name.clone(), reported(body.send));
    let begun = begun(app, &spec, &content.pairs, bound);
    let event = Event::CoflowArrived {
        id,
        name,
        pairs: content.pairs,
        bound,
        progress,
        weight,
        priorities: content.priorities,
    };
    launch(app, (event, begun), Shipment { coflow: &spec, report }, body.send).await
}

/// Begins a coflow that was proposed and is held as `there`, with this content.
pub(super) async fn confirm(
    app: &App,
    there: &wire::Coflow,
    content: Content,
    send: bool,
) -> Reply<wire::Coflow> {
    let id = CoflowId(there.id);
    let (spec, report) =
        to_send(app, (id, there.name.clone(), CoflowSpec::plain_weight()), &content);
    // The bound of a proposal is that of its pairs, also of those with nothing to carry.
    let bound = if content.flows.is_empty() {
        Span(there.bound_ns)
    } else {
        bound(&app.handle.topology, &spec, &content)
    };
    let begun = wire::Coflow {
        proposal: there.proposal.clone(),
        ..begun(app, &spec, &content.pairs, bound)
    };
    let (progress, priorities) = (reported(send), content.priorities);
    let event = Event::CoflowConfirmed { id, pairs: content.pairs, bound, progress, priorities };
    launch(app, (event, begun), Shipment { coflow: &spec, report }, send).await
}

/// Has the controller hold a proposal.
pub(super) async fn hold(
    app: &App,
    id: CoflowId,
    body: &wire::CoflowBody,
    proposal: Arc<Proposal>,
) -> Reply<wire::Coflow> {
    let proposed = app.snapshot().now;
    let (name, weight, expires, send) = (
        name(body, id),
        body.weight.unwrap_or(1),
        proposed + body::hold(body.place.as_ref()),
        body.send,
    );
    let held = ProposalView {
        id,
        name: name.clone(),
        weight,
        proposed,
        expires,
        state: ProposalState::Held,
        send,
        proposal: proposal.clone(),
    };
    tell(app, id, Event::CoflowProposed { id, name, proposal, weight, expires, send }).await?;
    Ok(view(app, id).unwrap_or_else(|| (&held).into()))
}

/// Tells the controller that a coflow begins, and then its sender. The coflow is shown as it is
/// afterwards, or as it has `begun` if it is forgotten by then.
async fn launch(
    app: &App,
    (event, begun): (Event, wire::Coflow),
    what: Shipment<'_>,
    send: bool,
) -> Reply<wire::Coflow> {
    let id = what.coflow.id;
    tell(app, id, event).await?;
    if app.handle.topology.eps.graph().is_some() {
        // Lists are chosen before the first byte is sent. A coflow that is over by then needs none.
        let _ = app
            .tell(Event::CoflowFlows {
                id,
                flows: what.coflow.flows.to_vec(),
                types: what.coflow.types.clone(),
            })
            .await;
    }
    if let Some(sender) = app.sender.as_ref().filter(|_| send)
        && let Err(why) = sender.send(what)
    {
        // It may be over already: then there is nothing to take back.
        let _ = app.tell(Event::CoflowCancelled { id, why: Some(why.clone()) }).await;
        return Err(ProblemDetails::new(StatusCode::CONFLICT, why));
    }
    Ok(view(app, id).unwrap_or(begun))
}

/// Tells the controller of a coflow. A controller that does not answer in time may still take the
/// event later; its coflow would then wait for bytes that are never sent, so it is taken back in
/// the same order.
async fn tell(app: &App, id: CoflowId, event: Event) -> Reply<()> {
    let taken = app.tell(event).await;
    if taken.as_ref().is_err_and(|p| p.status == StatusCode::SERVICE_UNAVAILABLE.as_u16()) {
        app.handle.notify(Event::CoflowCancelled { id, why: None });
    }
    taken
}

/// The flows of a coflow, those given or its pairs spread over hosts, and what its sender reports
/// of them.
fn to_send(
    app: &App,
    (id, name, weight): (CoflowId, String, u32),
    content: &Content,
) -> (CoflowSpec, ReportedEnds) {
    let given = !content.flows.is_empty();
    let flows: Vec<FlowSpec> = if given {
        content.flows.clone()
    } else {
        api_sender::spread(&app.handle.topology, &content.pairs)
    };
    let (types, priorities) = (content.types.clone(), content.priorities.clone());
    let spec =
        CoflowSpec { weight, types, priorities, ..CoflowSpec::new(id, name, Time::ZERO, flows) };
    (spec, if given { ReportedEnds::Flows } else { ReportedEnds::Coflow })
}

/// What tells how far the coflow is.
fn reported(send: bool) -> ProgressBy {
    if send { ProgressBy::Sender } else { ProgressBy::Counters }
}

/// Lower bound of the completion time: from the flows where they are given, else from the pairs.
fn bound(topology: &Topology, spec: &CoflowSpec, content: &Content) -> Span {
    if !content.flows.is_empty() {
        return bounds::hybrid(spec, topology);
    }
    let mut m = DemandMatrix::zero(topology.rack_count());
    content.pairs.iter().for_each(|p| m.add(p.from, p.to, p.bytes.0));
    bounds::hybrid_racks(&m, topology)
}

/// A coflow of which nothing has arrived.
fn begun(app: &App, spec: &CoflowSpec, pairs: &[RackBytes], bound: Span) -> wire::Coflow {
    let mut pairs: Vec<wire::RackPair> = pairs.iter().map(Into::into).collect();
    pairs.sort_by_key(|p| (p.from, p.to));
    wire::Coflow {
        id: spec.id.0,
        name: spec.name.clone(),
        state: CoflowState::Active,
        arrival_ns: app.snapshot().now.0,
        asked_bytes: pairs.iter().map(|p| Bytes(p.bytes)).sum::<Bytes>().0,
        pairs,
        received_bytes: 0,
        over_ocs_bytes: 0,
        finished_ns: None,
        why: None,
        cct_ns: None,
        bound_ns: bound.0,
        priority: spec.priorities.all,
        proposal: None,
        send: false,
        flows: None,
    }
}
