//! The control loop on a network of many switches: how long a cycle takes, and how long a coflow
//! that comes or goes, whose flows get their lists under `hit`: `cargo bench --bench control`. One
//! line a case: median, 99 of 100, and the longest.

use std::sync::Arc;
use std::time::{Duration, Instant};

use heliostat::coflows::{CoflowSpec, FlowSpec, RackBytes, bounds};
use heliostat::config;
use heliostat::control::{Action, Controller, Event};
use heliostat::fabric::Fabric;
use heliostat::ids::{CoflowId, HostId};
use heliostat::sim::{SimFabric, SimSettings};
use heliostat::topology::Topology;
use heliostat::units::{Bytes, Span, Time};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Flows of a coflow, between random hosts.
const FLOWS: usize = 50;

/// A controller under `policies/hit.yaml`, and a network that does what it asks for in no time.
struct Loop {
    topology: Arc<Topology>,
    controller: Controller,
    fabric: SimFabric,
    now: Time,
    random: ChaCha8Rng,
}

impl Loop {
    fn new(topology: &str) -> Self {
        let read = |file: String| {
            std::fs::read_to_string(format!("{}/{file}", env!("CARGO_MANIFEST_DIR")))
                .expect("a shipped file")
        };
        let topology = Arc::new(
            config::read_topology(&read(format!("topologies/{topology}.yaml")), topology)
                .expect("valid"),
        );
        let plan = config::read_policy(&read("policies/hit.yaml".into()), "hit").expect("valid");
        let settings = SimSettings { circuits: false, ..SimSettings::default() };
        let fabric = SimFabric::new(topology.clone(), settings);
        let controller =
            Controller::new(topology.clone(), plan.policy, Time(1_000_000), Span::ZERO);
        Self { topology, controller, fabric, now: Time::ZERO, random: ChaCha8Rng::seed_from_u64(1) }
    }

    fn coflow(&mut self, id: usize) -> CoflowSpec {
        let hosts = self.topology.hosts.len() as u32;
        let mut flow = || {
            let from = self.random.random_range(0..hosts);
            let to = (from + self.random.random_range(1..hosts)) % hosts;
            FlowSpec { from: HostId(from), to: HostId(to), bytes: Bytes(5_000_000) }
        };
        let flows = (0..FLOWS).map(|_| flow()).collect();
        CoflowSpec::new(CoflowId::from(id), format!("c{id}"), self.now, flows)
    }

    fn begin(&mut self, id: usize) -> Duration {
        let coflow = self.coflow(id);
        let (pairs, bound) =
            (RackBytes::of(&coflow.flows, &self.topology), bounds::hybrid(&coflow, &self.topology));
        let start = Instant::now();
        self.controller.handle(Event::arrival(&coflow, pairs, bound), self.now).expect("taken");
        self.controller
            .handle(
                Event::CoflowFlows {
                    id: coflow.id,
                    flows: coflow.flows.to_vec(),
                    types: Default::default(),
                },
                self.now,
            )
            .expect("taken");
        self.act(start.elapsed())
    }

    fn end(&mut self, id: usize) -> Duration {
        let start = Instant::now();
        self.controller
            .handle(Event::CoflowFinished { id: CoflowId::from(id), at: self.now }, self.now)
            .expect("taken");
        self.act(start.elapsed())
    }

    fn cycle(&mut self) -> Duration {
        self.now = self.controller.poll_timeout().map_or(self.now, |wake| wake.at.max(self.now));
        let start = Instant::now();
        self.controller.handle(Event::Tick, self.now).expect("taken");
        self.act(start.elapsed())
    }

    /// Does what the controller wants; gives `spent` and what the controller itself takes for it.
    fn act(&mut self, mut spent: Duration) -> Duration {
        let next = |c: &mut Controller, spent: &mut Duration| {
            let start = Instant::now();
            let action = c.poll_action();
            *spent += start.elapsed();
            action
        };
        while let Some(action) = next(&mut self.controller, &mut spent) {
            let answer = match action {
                Action::Observe => Event::Observed { result: self.fabric.observe(self.now) },
                Action::Apply { ops } => {
                    Event::Applied { results: self.fabric.apply(&ops, self.now) }
                }
                Action::Steer { ops } => {
                    Event::Steered { results: self.fabric.steer(&ops, self.now) }
                }
                _ => continue,
            };
            let start = Instant::now();
            self.controller.handle(answer, self.now).expect("taken");
            spent += start.elapsed();
        }
        spent
    }
}

fn line(topology: &str, flows: usize, what: &str, mut took: Vec<Duration>) {
    took.sort();
    let at = |percent: usize| took[(took.len() * percent / 100).min(took.len() - 1)];
    println!(
        "{topology:<12} {flows:>6} flows  {what:<22} {:>10.1?} {:>10.1?} {:>10.1?}",
        at(50),
        at(99),
        took[took.len() - 1]
    );
}

fn main() {
    println!("{:<42} {:>10} {:>10} {:>10}", "", "median", "99 of 100", "longest");
    for (topology, flows, cycles) in [
        ("tree-64", 100, 1000),
        ("tree-64", 1000, 1000),
        ("tree-64", 10_000, 200),
        ("tree-512", 10_000, 100),
    ] {
        let (mut l, open) = (Loop::new(topology), flows / FLOWS);
        for id in 0..open {
            l.begin(id);
        }
        let (mut plain, mut begins, mut ends) = (vec![], vec![], vec![]);
        for k in 0..cycles {
            plain.push(l.cycle());
            ends.push(l.end(k));
            begins.push(l.begin(open + k));
        }
        line(topology, flows, "a cycle", plain);
        line(topology, flows, "a coflow of 50 begins", begins);
        line(topology, flows, "a coflow of 50 ends", ends);
    }
}
