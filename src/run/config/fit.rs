//! Whether a policy can work on a network.

use super::error::{ConfigError, FileProblem, Flaw, PathStep};
use crate::circuits::SetBy;
use crate::coflows::elephants::Admit;
use crate::coflows::network::{Network, NetworkKind, Service, Within};
use crate::control::policy::Estimator;
use crate::demand::MOST_SIDE_BY_SIDE;
use crate::runtime::settings::RunPlan;
use crate::sim::{Model, NoSums};
use crate::topology::links::Loss;
use crate::topology::{Core, Framing, StopMode, Topology};
use crate::units::Bytes;

/// Checks a policy against a network: a circuit must get light within the interval in which it was
/// decided.
///
/// # Errors
/// When the lead and a plane's reconfiguration delay fill the whole interval. The problem has no
/// place in a file, since it lies between two.
pub fn fit(topology: &Topology, plan: &RunPlan) -> Result<(), ConfigError> {
    let flaws = unfit(topology, plan);
    let policy = &plan.policy;
    if flaws.is_empty() {
        return Ok(());
    }
    let problem = |f: Flaw| FileProblem {
        line: 0,
        column: 0,
        path: f.path,
        message: f.message,
        allowed: f.allowed,
        source: String::new(),
    };
    let file = format!("policy {} on topology {}", policy.name, topology.name);
    Err(ConfigError { file, problems: flaws.into_iter().map(problem).collect() })
}

/// What [`fit`] finds, as flaws of the policy; none if they fit.
pub fn unfit(topology: &Topology, plan: &RunPlan) -> Vec<Flaw> {
    let policy = &plan.policy;
    if plan.run.network.kind == NetworkKind::Sunflow {
        return reserves(topology).into_iter().collect();
    }
    if let Some(flaw) = sums(topology, plan) {
        return vec![flaw];
    }
    // Circuits that the scheduler does not set are not changed by the clock.
    if policy.scheduler.build().set_by() != SetBy::Scheduler {
        return vec![];
    }
    let slow = topology.planes.iter().filter(|p| p.delta + policy.lead >= policy.interval);
    let flaw = |p: &crate::topology::Plane| Flaw {
        path: vec![PathStep::Key("interval".into())],
        message: format!(
            "an interval of {} leaves no time with light on plane {}: lead {} and delta {}",
            policy.interval, p.id, policy.lead, p.delta
        ),
        allowed: format!("more than {}", p.delta + policy.lead),
    };
    slow.map(flaw).collect()
}

/// Circuits with times of their own need one plane on which a port's change leaves the others
/// alone.
fn reserves(topology: &Topology) -> Option<Flaw> {
    let one = |p: &crate::topology::Plane| !p.duplex && p.stop == StopMode::NotAllStop;
    (!matches!(&topology.planes[..], [p] if one(p))).then(|| Flaw {
        path: vec![PathStep::Key("network".into())],
        message: format!("sunflow reserves circuits one by one, and topology {} has other planes than that needs", topology.name),
        allowed: "one OCS plane, `duplex: false`, `stop: not-all-stop`; for other planes there is `scheduler: sunflow` under another \
                  `network`, which decides in every interval"
            .into(),
    })
}

/// What a simulation has to carry, as far as its memory depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimulationLoad {
    /// Flows of all coflows.
    pub flows: u64,
    /// Flows of the coflow that has most.
    pub largest: u64,
    /// Senders, receivers and single flows by which all coflows are known
    /// ([`crate::coflows::flows::Edges::kept`]).
    pub kept: u64,
    /// Tasks of all jobs.
    pub tasks: u64,
}

/// The model that simulates a policy on a network.
///
/// # Errors
/// `within: sums`, where something tells the flows of a coflow apart.
pub fn model(topology: &Topology, plan: &RunPlan) -> Result<Model, NoSums> {
    let circuits = plan.policy.scheduler.build().set_by() != SetBy::NoCircuits;
    Model::of(topology, plan.run.network, plan.run.admit, circuits)
}

/// Coflows are known by their sums only where nothing tells their flows apart.
fn sums(topology: &Topology, plan: &RunPlan) -> Option<Flaw> {
    let message = match model(topology, plan).err()? {
        NoSums::Circuits => {
            "circuits tell the flows of a coflow apart, and `sums` knows senders and receivers only"
                .into()
        }
        NoSums::Limits => {
            format!(
                "`sums` knows what hosts send and receive, and topology {} has other limits than their interfaces",
                topology.name
            )
        }
    };
    let allowed = "`sums` with `scheduler: eps-only` on a network whose uplinks carry what the hosts of their rack can send (or with one \
                   host a rack), without `pods`, `core` and `graph`"
        .into();
    Some(Flaw { path: vec![PathStep::Key("within".into())], message, allowed })
}

/// What a simulation takes of memory, about. Matrices of all pairs of racks are seven without
/// circuits (none of more than 1,024 racks) and twelve with. Then come what the model keeps
/// ([`Model::bytes`]) and what is kept of each flow and task. Where coflows are known by their
/// sums, that is of each sender and receiver of a coflow, and of the flows of the largest one,
/// which are a list while it comes. docs/memory.md has what was measured.
pub fn memory(topology: &Topology, plan: &RunPlan, load: SimulationLoad) -> Bytes {
    const PROGRAM: u64 = 30_000_000;
    const CELL: u64 = 8;
    const RACK: u64 = 5_000;
    const FLOW: u64 = 150;
    const LISTED: u64 = 50;
    const SIDE: u64 = 100;
    const TASK: u64 = 500;
    let (racks, hosts) = (topology.rack_count() as u64, topology.hosts.len() as u64);
    let model = model(topology, plan).ok();
    let (matrices, rows) = match plan.policy.scheduler.build().set_by() {
        SetBy::NoCircuits if racks <= MOST_SIDE_BY_SIDE as u64 => (7, 0),
        // Matrices of more racks hold only the pairs that have flows: what is left is kept by rack.
        SetBy::NoCircuits => (0, racks),
        _ => (12, 0),
    };
    let by_sums = model.is_some_and(Model::knows_sums);
    let (listed, sides, flows) =
        if by_sums { (load.largest, load.kept, 0) } else { (0, 0, load.flows) };
    let by_flow = [(flows, FLOW), (listed, LISTED), (sides, SIDE), (load.tasks, TASK)];
    let by_racks = [
        (racks.saturating_mul(racks), CELL * matrices),
        (rows, RACK),
        (model.map_or(0, |m| m.bytes(hosts, racks)), 1),
    ];
    let kept = by_racks.iter().chain(&by_flow);
    Bytes(kept.fold(PROGRAM, |sum, (n, bytes)| sum.saturating_add(n.saturating_mul(*bytes))))
}

/// What [`memory`] says of a network goes without saying below this.
const MUCH: Bytes = Bytes(1_000_000_000);

/// What is allowed and probably not meant, one sentence each.
pub fn advice(topology: &Topology, plan: &RunPlan) -> Vec<String> {
    let policy = &plan.policy;
    let mut out = Vec::new();
    let needed = memory(topology, plan, SimulationLoad::default());
    if needed > MUCH {
        let (racks, gigabytes) = (topology.rack_count(), needed.0.div_ceil(MUCH.0));
        out.push(format!(
            "a simulation of the {racks} racks of topology {} takes about {gigabytes} GB of memory",
            topology.name
        ));
    }
    let scheduler = policy.scheduler.build();
    let wants = scheduler.set_by() != SetBy::NoCircuits;
    if wants && topology.planes.is_empty() {
        out.push(format!(
            "policy {} schedules circuits, and topology {} has no OCS plane",
            policy.name, topology.name
        ));
    }
    if topology.framing == Framing::None {
        out.push(format!(
            "topology {} counts payload only (`framing: none`): an emulation's packets have headers all the same",
            topology.name
        ));
    }
    if !matches!(topology.eps.core, Core::Flat(None) | Core::Graph(_)) {
        let name = &topology.name;
        out.push(format!(
            "what topology {name} has behind the uplinks exists in simulations only; an emulation's EPS is one switch or a graph"
        ));
    }
    if topology.eps.background_percent > 0 {
        out.push(format!(
            "the background traffic of topology {} exists in simulations only",
            topology.name
        ));
    }
    let left_out: Vec<&str> = [
        ("buffer", topology.links.all().any(|l| l.buffer.is_some())),
        ("ecn", topology.links.all().any(|l| l.ecn.is_some())),
        ("loss", topology.links.all().any(|l| l.loss > Loss::default())),
    ]
    .into_iter()
    .filter_map(|(key, given)| given.then_some(key))
    .collect();
    if !left_out.is_empty() {
        let (keys, exist) =
            (left_out.join("`, `"), if left_out.len() == 1 { "exists" } else { "exist" });
        out.push(format!(
            "`{keys}` of the links of topology {} {exist} in emulations only: a simulation counts their rate and delay",
            topology.name
        ));
    }
    let name = &policy.name;
    match plan.run.network.kind.service() {
        // An emulation's ports do what `within: max-min` says.
        Service::Strict if plan.run.network.within == Within::MaxMin => {}
        Service::Strict => out.push(format!(
            "policy {name}: ports of an emulation serve eight strict priorities, and flows of one priority share them as TCP does; a \
             simulation sends the smallest coflow first among equals (`within: max-min`: they share)"
        )),
        Service::Fifo if plan.run.network == Network::default() => {}
        Service::Fifo => out
            .push(format!("policy {name} shares the packet network by its own rule, which simulations obey: an emulation has kernel TCP")),
    }
    if plan.run.admit == Admit::Wait && topology.planes.len() > 1 {
        out.push(format!("policy {}: elephants wait for circuits, which an emulation can do on one OCS plane only", policy.name));
    }
    if plan.run.admit == Admit::Wait
        && policy.elephant_threshold > Bytes(0)
        && policy.demand != Estimator::Declared
    {
        out.push(format!(
            "policy {}: elephants wait for circuits, and what is left of one below the threshold never gets any: `demand: declared` gives it one",
            policy.name
        ));
    }
    if wants
        && policy.demand == Estimator::Backlog
        && policy.elephant_threshold.0.saturating_mul(3) > plan.run.buffer.0
    {
        let (threshold, buffer) = (policy.elephant_threshold, plan.run.buffer);
        out.push(if threshold > buffer {
            format!("policy {name}: no connection's backlog ever reaches the threshold of {threshold}: `buffer` holds {buffer}")
        } else {
            format!(
                "policy {name}: one connection's backlog is at most the `buffer` of {buffer} and often half of it: near a threshold of \
                 {threshold} its circuit comes and goes; a third of the buffer and less is safe, or `demand: counters`"
            )
        });
    }
    for p in &topology.planes {
        out.extend(scheduler.advice(p));
        if wants && policy.interval < p.delta * 2 {
            out.push(format!(
                "plane {} is dark for most of an interval of {}: delta is {}",
                p.id, policy.interval, p.delta
            ));
        }
    }
    out
}
