//! What the simulation models have in common.

use std::collections::BTreeSet;

use super::FlowFinished;
use super::bundle::BundleRoute;
use super::crossbar::Crossbars;
use super::ledger::Ledger;
use super::links::Links;
use super::meter::Totals;
use crate::coflows::elephants::Admit;
use crate::coflows::{CoflowSpec, FlowSpec};
use crate::demand::DemandMatrix;
use crate::demand::hedera::Elephants;
use crate::ids::{CoflowId, FlowId, HostId, JobId, RackId};
use crate::units::{Bytes, Time};

/// What an engine works on but does not own.
pub struct EngineWorld<'a> {
    /// Capacities and paths.
    pub links: &'a Links,
    /// Which circuits have light.
    pub crossbars: &'a Crossbars,
    /// Which flows circuits take, and whether these have another route.
    pub admit: Admit,
    /// The books.
    pub ledger: &'a mut Ledger,
    /// Flows that have finished.
    pub done: &'a mut Vec<FlowFinished>,
    /// Coflows whose active flows all ended at once, and when; `None`: their flows go to `done` one
    /// by one.
    pub over: Option<&'a mut Vec<(CoflowId, Time)>>,
    /// The instant.
    pub now: Time,
}

impl EngineWorld<'_> {
    /// The present route of a flow.
    pub fn route(
        &self,
        hosts: (HostId, HostId),
        racks: (RackId, RackId),
        marked: bool,
    ) -> BundleRoute {
        if racks.0 == racks.1 {
            return BundleRoute::Local;
        }
        let circuit = if marked || self.admit == Admit::All {
            self.crossbars.plane(racks.0, racks.1)
        } else {
            None
        };
        let eps = || self.links.list_of(hosts).map_or(BundleRoute::Eps, BundleRoute::List);
        circuit.map_or_else(
            || if marked && self.admit == Admit::Wait { BundleRoute::Wait } else { eps() },
            BundleRoute::Ocs,
        )
    }

    /// The rack of a host.
    pub fn rack(&self, host: HostId) -> RackId {
        self.links.topology().rack_of(host)
    }

    /// Whether a new flow needs no time: it stays in its host (hosts have no loopback), or has no
    /// bytes. If so, it is finished here.
    pub fn is_free(&mut self, coflow: CoflowId, flow: usize, f: &FlowSpec) -> bool {
        let racks = (self.rack(f.from), self.rack(f.to));
        self.ledger.open(coflow);
        let free = f.from == f.to && !self.links.topology().loopback || f.bytes == Bytes::ZERO;
        if free {
            self.ledger.close(
                coflow,
                racks,
                u128::from(f.bytes.0) * super::bundle::WORK_PER_BYTE,
                0,
            );
            self.done.push(FlowFinished { coflow, flow: flow.into(), at: self.now });
        }
        free
    }
}

/// Work of one coflow in flight between two hosts.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    /// Its coflow.
    pub coflow: CoflowId,
    /// The flow, or one of several that share their rates.
    pub flow: FlowId,
    /// How many flows.
    pub flows: u32,
    /// Sender and receiver.
    pub hosts: (HostId, HostId),
    /// Work done by flows that have not ended.
    pub sent: u128,
    /// Part of it that went over circuits.
    pub over_ocs: u128,
    /// Work left of these flows.
    pub left: u128,
}

/// How active flows share the links. An engine never goes beyond `world.now`; the caller advances
/// from event to event.
pub trait Engine: Send {
    /// Starts a coflow's flows. Those that need no time finish at once.
    fn add(&mut self, coflow: &CoflowSpec, marked: &[bool], world: &mut EngineWorld);

    /// Sets the priority of `coflow`, which may arrive later, where priorities count: smaller
    /// values go first.
    fn prefer(&mut self, _coflow: CoflowId, _priority: u64, _world: &mut EngineWorld) {}

    /// `coflow`, which arrives next, belongs to this job, whose first stages may have run before.
    fn belongs(&mut self, _coflow: CoflowId, _job: JobId) {}

    /// Changes the strict priorities of flows of an active coflow, where priorities count. Ended or
    /// unknown flows are ignored.
    fn prioritise(&mut self, _coflow: CoflowId, _flows: &[(FlowId, u8)], _world: &mut EngineWorld) {
    }

    /// Work left of every flow at the last [`Engine::settle`], in any order.
    fn left(&self, each: &mut dyn FnMut(CoflowId, FlowId, u128));

    /// Cancels what a coflow still has to send. What its flows have sent counts, and they are
    /// closed in the books.
    fn cancel(&mut self, coflow: CoflowId, world: &mut EngineWorld);

    /// The capacities of links have changed.
    fn limit(&mut self, world: &mut EngineWorld);

    /// When the next event happens if circuits stay: a flow ends, or a coflow changes its queue.
    fn next_event(&self) -> Option<Time>;

    /// The next time after now at which that happens. [`Engine::next_event`] may lie in the past:
    /// an end that [`Engine::catch_up`] has finished and that waits for [`Engine::pass`].
    fn next_end(&self) -> Option<Time> {
        self.next_event()
    }

    /// When the next event happens that must be noticed at its instant. Ends of flows may be
    /// noticed later, because their instants are known afterwards as well.
    fn next_appointment(&self) -> Option<Time> {
        None
    }

    /// Whether any flow moves.
    fn is_moving(&self) -> bool;

    /// Counts the work of all flows up to now, finishes what is due (each flow at its own instant,
    /// even if that is past), and decides rates where that is necessary.
    fn pass(&mut self, world: &mut EngineWorld);

    /// The same, but rates stay until the next [`Engine::pass`] or until anything else changes
    /// them; [`Engine::next_event`] says that a pass is due. Looking at a run must not change it.
    fn catch_up(&mut self, world: &mut EngineWorld);

    /// The circuits of these rack pairs changed: their flows change their routes.
    fn reroute(&mut self, pairs: &[(RackId, RackId)], world: &mut EngineWorld);

    /// The lists of switches of these host pairs changed: their flows change their routes.
    fn steer(&mut self, pairs: &BTreeSet<(HostId, HostId)>, world: &mut EngineWorld);

    /// Brings the books up to now and changes nothing else.
    fn settle(&mut self, world: &mut EngineWorld);

    /// Adds what links have carried up to now and was not booked to `beyond`, or brings the books
    /// up to now.
    fn look(&mut self, _beyond: &mut Totals, world: &mut EngineWorld) {
        self.settle(world);
    }

    /// What is in flight at the last [`Engine::settle`].
    fn parts(&self, each: &mut dyn FnMut(InFlight));

    /// Backlog at the senders now, at most `most` of each flow; `most` must be the same at every
    /// call or grow. Calls `each(sender and receiver, units)`, perhaps several times for the same
    /// two. `books`: does [`Engine::settle`], too; otherwise at least the work over circuits is
    /// booked.
    fn backlog(
        &mut self,
        most: u128,
        _books: bool,
        each: &mut dyn FnMut((HostId, HostId), u128),
        world: &mut EngineWorld,
    ) {
        self.settle(world);
        self.parts(&mut |p| each(p.hosts, p.left.min(most)));
    }

    /// The same, at least for hosts whose racks a circuit joins.
    fn backlog_of_circuits(
        &mut self,
        most: u128,
        books: bool,
        each: &mut dyn FnMut((HostId, HostId), u128),
        world: &mut EngineWorld,
    ) {
        self.backlog(most, books, each, world);
    }

    /// The elephants since the last call, where an engine keeps them; `None`: they are counted from
    /// [`Engine::parts`]. `least`: by sender, the work that an elephant has left at least; another
    /// value than the last time starts again.
    fn elephants(&mut self, _least: &[u128], _world: &mut EngineWorld) -> Option<Elephants> {
        None
    }

    /// The same as [`Engine::backlog`], in whole bytes by rack pair, where an engine keeps it;
    /// `None`: ask [`Engine::backlog`].
    fn backlog_by_rack(
        &mut self,
        _most: u128,
        _books: bool,
        _world: &mut EngineWorld,
    ) -> Option<DemandMatrix> {
        None
    }
}
