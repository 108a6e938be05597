//! What the network schedulers of the model have in common.

use std::collections::BTreeSet;

use super::FlowFinished;
use super::bundle::Route;
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

/// What an engine works with: it owns none of it.
pub struct World<'a> {
    /// Capacities and paths.
    pub links: &'a Links,
    /// Which circuits have light.
    pub crossbars: &'a Crossbars,
    /// Which flows circuits take, and whether those have another way.
    pub admit: Admit,
    /// The books.
    pub ledger: &'a mut Ledger,
    /// Flows that have finished.
    pub done: &'a mut Vec<FlowFinished>,
    /// Coflows of which all flows that have not finished do so, and when; `None`: each of them goes to `done`.
    pub over: Option<&'a mut Vec<(CoflowId, Time)>>,
    /// The instant.
    pub now: Time,
}

impl World<'_> {
    /// The way that a flow goes now.
    pub fn route(&self, hosts: (HostId, HostId), racks: (RackId, RackId), marked: bool) -> Route {
        if racks.0 == racks.1 {
            return Route::Local;
        }
        let circuit = if marked || self.admit == Admit::All { self.crossbars.plane(racks.0, racks.1) } else { None };
        let eps = || self.links.list_of(hosts).map_or(Route::Eps, Route::List);
        circuit.map_or_else(|| if marked && self.admit == Admit::Wait { Route::Wait } else { eps() }, Route::Ocs)
    }

    /// The rack of a host.
    pub fn rack(&self, host: HostId) -> RackId {
        self.links.topology().rack_of(host)
    }

    /// Whether a flow, which begins, needs no time: it stays in its host (and those have no loopback), or has no bytes. It is then finished
    /// here.
    pub fn is_free(&mut self, coflow: CoflowId, flow: usize, f: &FlowSpec) -> bool {
        let racks = (self.rack(f.from), self.rack(f.to));
        self.ledger.open(coflow);
        let free = f.from == f.to && !self.links.topology().loopback || f.bytes == Bytes::ZERO;
        if free {
            self.ledger.close(coflow, racks, u128::from(f.bytes.0) * super::bundle::WORK_PER_BYTE, 0);
            self.done.push(FlowFinished { coflow, flow: flow.into(), at: self.now });
        }
        free
    }
}

/// Bytes of one coflow that are on their way between two hosts, in units.
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
    /// What has arrived of flows that are not finished.
    pub sent: u128,
    /// Units among these that went over circuits.
    pub over_ocs: u128,
    /// What their flows still have to send.
    pub left: u128,
}

/// How flows that are under way share the links. An engine never goes beyond `world.now`; the caller goes from event to event.
pub trait Engine: Send {
    /// Starts a coflow's flows. Those that are free of time finish at once.
    fn add(&mut self, coflow: &CoflowSpec, marked: &[bool], world: &mut World);

    /// From now on `coflow`, which may come later, goes before those of larger `priority` where priorities count.
    fn prefer(&mut self, _coflow: CoflowId, _priority: u64, _world: &mut World) {}

    /// `coflow`, which comes next, is one of a job's, of which the first stages may have been on their way before.
    fn belongs(&mut self, _coflow: CoflowId, _job: JobId) {}

    /// Flows of a coflow on its way have other strict priorities from now on, where priorities count; those that have ended, or that
    /// it does not have, are passed over.
    fn prioritise(&mut self, _coflow: CoflowId, _flows: &[(FlowId, u8)], _world: &mut World) {}

    /// Units that every flow has still to send as of the last [`Engine::settle`], in any order.
    fn left(&self, each: &mut dyn FnMut(CoflowId, FlowId, u128));

    /// Takes back what a coflow still has to send. What its flows have sent counts, and they are closed in the books.
    fn cancel(&mut self, coflow: CoflowId, world: &mut World);

    /// Links have other capacities from now on.
    fn limit(&mut self, world: &mut World);

    /// When something will happen by itself if circuits stay: a flow finishes, or a coflow changes its queue.
    fn next_event(&self) -> Option<Time>;

    /// The next time after now at which that happens. [`Engine::next_event`] may lie in the past: an end that [`Engine::catch_up`] has
    /// finished, and that waits for [`Engine::pass`].
    fn next_end(&self) -> Option<Time> {
        self.next_event()
    }

    /// When something will happen that must be noticed then, and not a while later; the ends of flows need not be, whose instants are
    /// known afterwards as well.
    fn next_appointment(&self) -> Option<Time> {
        None
    }

    /// Whether any flow moves.
    fn is_moving(&self) -> bool;

    /// Does the work of all flows up to now, finishes what is due, each flow at its instant even if that is past, and decides rates anew
    /// where that is called for.
    fn pass(&mut self, world: &mut World);

    /// The same, but rates stay until the next [`Engine::pass`], or until anything else changes them; [`Engine::next_event`] says that a
    /// pass is due. Observing must not change what happens.
    fn catch_up(&mut self, world: &mut World);

    /// The circuits of these rack pairs changed: their flows change over.
    fn reroute(&mut self, pairs: &[(RackId, RackId)], world: &mut World);

    /// The lists of switches of these host pairs changed: their flows change over.
    fn steer(&mut self, pairs: &BTreeSet<(HostId, HostId)>, world: &mut World);

    /// Brings the books up to now without changing anything else.
    fn settle(&mut self, world: &mut World);

    /// Adds to `beyond` what links have carried up to now and the books do not hold, or brings the books up to now.
    fn look(&mut self, _beyond: &mut Totals, world: &mut World) {
        self.settle(world);
    }

    /// What is under way, as of the last [`Engine::settle`].
    fn parts(&self, each: &mut dyn FnMut(InFlight));

    /// Passes units that wait at the senders now, of each flow at most `most`, which must be the same at every call or grow: `each(sender
    /// and receiver, units)`, perhaps several times for the same two. `books`: [`Engine::settle`], too; otherwise at least what circuits
    /// carried is booked.
    fn backlog(&mut self, most: u128, _books: bool, each: &mut dyn FnMut((HostId, HostId), u128), world: &mut World) {
        self.settle(world);
        self.parts(&mut |p| each(p.hosts, p.left.min(most)));
    }

    /// The same, at least of hosts whose racks a circuit joins.
    fn backlog_of_circuits(&mut self, most: u128, books: bool, each: &mut dyn FnMut((HostId, HostId), u128), world: &mut World) {
        self.backlog(most, books, each, world);
    }

    /// The elephants since this was last asked, where an engine keeps them; `None`: they are counted from [`Engine::parts`]. `least`: by
    /// sender, what an elephant has left at least, in units; the same at every call, or it is the first call again.
    fn elephants(&mut self, _least: &[u128], _world: &mut World) -> Option<Elephants> {
        None
    }

    /// As [`Engine::backlog`], in whole bytes by rack pair at once, where an engine keeps it so; `None`: ask [`Engine::backlog`].
    fn backlog_by_rack(&mut self, _most: u128, _books: bool, _world: &mut World) -> Option<DemandMatrix> {
        None
    }
}
