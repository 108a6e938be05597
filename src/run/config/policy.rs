//! Policy files: the raw shape, and its check. The same shape as JSON is the body of `PUT
//! /api/v1/policy`.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::{Flaw, Flaws};
use super::placement::RawPlacement;
use super::{is_name, name_rule};
use crate::circuits::SetBy;
use crate::circuits::external::{Privileges, ProgramAt, check_environment};
use crate::coflows::elephants::Admit;
use crate::coflows::network::{Decide, Guard, Network, NetworkKind, Within};
use crate::coflows::orders::{Aalo, Order, Sharing};
use crate::control::policy::{CircuitPolicy, Estimator, PathPolicy, SchedulerKind};
use crate::fabric::{PORTS, SEND_BUFFER};
use crate::runtime::settings::{ProgramSpec, RunPlan, RunSettings};
use crate::units::{Bytes, Span, exact, exact_or_null};

/// The shortest interval.
pub const MIN_INTERVAL: Span = Span::micros(10);
/// The longest interval.
pub const MAX_INTERVAL: Span = Span::secs(3600);
/// The lead of a policy that gives none, unless half its interval is shorter.
pub const DEFAULT_LEAD: Span = Span::millis(5);
/// The most letters of a policy's name.
const LONGEST_NAME: usize = 32;
/// The largest factor by which a workload is scaled down.
pub const MAX_SCALE: u64 = 1_000_000_000;

/// How the controller decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Heliostat policy")]
pub struct RawPolicy {
    /// Its name in results: 1 to 32 of a-z, 0-9 and -, beginning with a letter.
    #[schemars(regex(pattern = "^[a-z][a-z0-9-]{0,31}$"))]
    name: String,
    /// Reconfiguration interval: one decision each; 10 us to 1 h.
    #[serde(serialize_with = "exact")]
    interval: Span,
    /// From the beginning of a cycle to the instant at which its decision takes effect; shorter
    /// than the interval. 5 ms or half the interval, the shorter of the two, if left out.
    #[serde(default, serialize_with = "exact_or_null", skip_serializing_if = "Option::is_none")]
    lead: Option<Span>,
    /// Whether a decision is also made when a coflow arrives, beside the one of each interval; only
    /// with demand: declared; false if left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    at_arrivals: bool,
    /// Which traffic may use circuits.
    #[serde(default)]
    elephants: RawElephants,
    /// Where demand comes from.
    demand: Estimator,
    /// How much of the counters' old estimate stays with each interval, in percent, under
    /// `counters` and `hedera-racks`; 0 if left out.
    #[serde(default)]
    #[schemars(range(max = 99))]
    ageing: u8,
    /// The circuit scheduler.
    scheduler: SchedulerKind,
    /// The program that decides under scheduler: external.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    external: Option<RawExternal>,
    /// How coflows share the packet network in a simulation; max-min if left out. An emulation has
    /// TCP, and under priority ports that serve flows by their strict priority.
    #[serde(default)]
    network: NetworkKind,
    /// How the flows of one coflow share what its place in the order leaves it, under fifo, aalo
    /// and priority; max-min under aalo if left out, else greedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within: Option<Within>,
    /// The queues of network: aalo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    aalo: Option<RawAalo>,
    /// When rates change in a simulation that serves coflows one after another; flow-ends if left
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decide: Option<Decide>,
    /// Keeps coflows from waiting for ever in a simulation that serves them one after another; they
    /// may if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    starvation: Option<RawGuard>,
    /// Which coflow reserves its circuits first under network: sunflow; shortest if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    order: Option<Order>,
    /// Sizes and rates of the workload are divided by this, times stay; 1 if left out.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    scale: u64,
    /// The most bytes of one flow that count as backlog; 2 MiB, what a socket holds, if left out.
    #[serde(default = "socket", serialize_with = "exact")]
    buffer: Bytes,
    /// TCP congestion control of the generated traffic, by its name in the kernel; cubic if left
    /// out.
    #[serde(default = "cubic")]
    #[schemars(regex(pattern = "^[a-z0-9_]{1,15}$"))]
    congestion: String,
    /// TCP's shortest retransmission timeout on the hosts of an emulation, 1 ms to 1 s; 200 ms if
    /// left out.
    #[serde(default = "rto_min", serialize_with = "exact")]
    rto_min: Span,
    /// Whether newly connected circuits are probed with a frame; true if left out.
    #[serde(default = "yes")]
    probes: bool,
    /// Which lists of switches the flows of coflows take, in a network of several switches; ecmp if
    /// left out.
    #[serde(default, skip_serializing_if = "PathPolicy::is_ecmp")]
    paths: PathPolicy,
    /// Draws the switches of paths: vlb; 1 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    paths_seed: Option<u64>,
    /// How jobs are scheduled; needed for runs of jobs only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    placement: Option<RawPlacement>,
}

/// The last TCP port that can be the first of those that a policy names.
const LAST_PORT: u16 = u16::MAX - PORTS + 1;

/// Which traffic may use circuits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawElephants {
    /// Which packets a ToR admits to a circuit; marked if left out.
    #[serde(default)]
    admit: Admit,
    /// A rack-to-rack aggregate of one coflow below this is never marked, and demand below it never
    /// gets a circuit; 0 if left out.
    #[serde(default, serialize_with = "exact")]
    threshold: Bytes,
    /// The first of 16 TCP ports of programs that mark no packet, as Apache Spark's block managers.
    /// In an emulation, what they send counts as marked while a coflow that its sender declared has
    /// an aggregate of the threshold or more between its racks. None if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
}

/// A program that decides about circuits: it takes questions and gives answers, as JSON. One of
/// `command` and `url` names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawExternal {
    /// The program and its arguments; it runs in the directory of the policy's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    command: Option<Vec<String>>,
    /// Where a program that runs already takes questions by HTTP, such as http://127.0.0.1:8000/.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// Time for an answer in a live run, half of the lead at most; a quarter of the lead if left
    /// out.
    #[serde(default, serialize_with = "exact_or_null", skip_serializing_if = "Option::is_none")]
    within: Option<Span>,
    /// Decides where the program gives no answer in time, or a wrong one; the circuits stay as they
    /// are if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fallback: Option<SchedulerKind>,
    /// Variables of Heliostat's environment that it gets beside PATH, HOME, USER, LOGNAME, LANG,
    /// LC_*, TZ and TMPDIR.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    environment: Vec<String>,
    /// What it may do on the machine: `drop`, nothing that takes root or a capability, or `keep`,
    /// all that Heliostat may; drop if left out.
    #[serde(default, skip_serializing_if = "Privileges::are_dropped")]
    privileges: Privileges,
}

impl RawExternal {
    fn check(&self, lead: Span, flaws: &mut Flaws) -> Option<ProgramSpec> {
        let within = self.within.unwrap_or(Span(lead.0 / 4));
        let path = |key: &str| vec!["external".into(), key.into()];
        let most = Span(lead.0 / 2);
        let fits = self.within.is_none() || (within > Span::ZERO && within <= most);
        flaws.unless(
            fits,
            path("within"),
            format!("`within` of {within}"),
            format!("above zero, and half of the lead at most: {most}"),
        );
        let decides = self.fallback != Some(SchedulerKind::External);
        flaws.unless(
            decides,
            path("fallback"),
            "a program cannot stand in for itself",
            "another scheduler",
        );
        if let Err((message, allowed)) = check_environment(&self.environment) {
            flaws.unless(false, path("environment"), message, allowed);
        }
        let at = ProgramAt::new(self.command.as_deref(), self.url.as_deref());
        let key = if self.url.is_some() { "url" } else { "command" };
        match at {
            Ok(at) => Some(ProgramSpec {
                at,
                within,
                environment: self.environment.clone(),
                privileges: self.privileges,
                directory: None,
            }),
            Err((message, allowed)) => {
                flaws.unless(false, path(key), message, allowed);
                None
            }
        }
    }
}

/// Coflows go in their order for a time, then all flows share for a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawGuard {
    /// For this time coflows go in their order; above zero.
    #[serde(serialize_with = "exact")]
    every: Span,
    /// For this time all flows share; above zero.
    #[serde(serialize_with = "exact")]
    share: Span,
}

/// Aalo's queues. What is left out is as in the paper.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct RawAalo {
    /// How many; 10 if left out.
    #[schemars(range(min = 1, max = 64))]
    queues: u32,
    /// What a coflow may send before it leaves the first queue; 10 MB if left out.
    #[serde(serialize_with = "exact")]
    first: Bytes,
    /// How much further each later queue reaches; 10 if left out.
    #[schemars(range(min = 2, max = 1_000_000))]
    factor: u64,
    /// How the queues share the links; weighted if left out.
    sharing: Sharing,
    /// Interval at which the coordinator moves coflows to their queues; 10 ms if left out, 0 s is
    /// at once.
    #[serde(serialize_with = "exact")]
    interval: Span,
}

impl From<Aalo> for RawAalo {
    fn from(a: Aalo) -> Self {
        Self {
            queues: a.queues,
            first: a.first,
            factor: a.factor,
            sharing: a.sharing,
            interval: a.interval,
        }
    }
}

impl Default for RawAalo {
    fn default() -> Self {
        Aalo::default().into()
    }
}

impl RawAalo {
    fn check(self, flaws: &mut Flaws) -> Aalo {
        let mut whole = |ok: bool, key: &str, message: String, allowed: &str| {
            flaws.unless(ok, vec!["aalo".into(), key.into()], message, allowed.to_owned());
        };
        whole(
            (1..=64).contains(&self.queues),
            "queues",
            format!("{} queues", self.queues),
            "1 to 64",
        );
        whole(
            self.first > Bytes::ZERO,
            "first",
            format!("a first queue of {}", self.first),
            "above zero",
        );
        whole(
            (2..=1_000_000).contains(&self.factor),
            "factor",
            format!("a factor of {}", self.factor),
            "2 to 1000000",
        );
        Aalo {
            queues: self.queues,
            first: self.first,
            factor: self.factor,
            sharing: self.sharing,
            interval: self.interval,
        }
    }
}

fn one() -> u64 {
    1
}
fn socket() -> Bytes {
    SEND_BUFFER
}
fn cubic() -> String {
    RunSettings::default().congestion
}
fn rto_min() -> Span {
    RunSettings::default().rto_min
}
fn yes() -> bool {
    true
}

impl From<&RunPlan> for RawPolicy {
    fn from(plan: &RunPlan) -> Self {
        let (p, run) = (&plan.policy, &plan.run);
        let kind = run.network.kind;
        Self {
            name: p.name.clone(),
            interval: p.interval,
            lead: Some(p.lead),
            at_arrivals: p.at_arrivals,
            elephants: RawElephants {
                admit: run.admit,
                threshold: p.elephant_threshold,
                port: run.port,
            },
            demand: p.demand,
            ageing: p.ageing,
            scheduler: p.scheduler,
            external: run.program.as_ref().filter(|_| p.scheduler == SchedulerKind::External).map(
                |program| {
                    let (command, url) = match program.at.clone() {
                        ProgramAt::Command(command) => (Some(command), None),
                        ProgramAt::Url(url) => (None, Some(url)),
                    };
                    RawExternal {
                        command,
                        url,
                        within: Some(program.within),
                        fallback: p.fallback,
                        environment: program.environment.clone(),
                        privileges: program.privileges,
                    }
                },
            ),
            network: kind,
            within: kind.has_within(run.network.within).then_some(run.network.within),
            aalo: (kind == NetworkKind::Aalo).then(|| run.network.aalo.into()),
            decide: (run.network.decide != Decide::default()).then_some(run.network.decide),
            starvation: run.network.starvation.map(|g| RawGuard { every: g.every, share: g.share }),
            order: (kind == NetworkKind::Sunflow).then_some(run.network.order),
            scale: run.scale,
            buffer: run.buffer,
            congestion: run.congestion.clone(),
            rto_min: run.rto_min,
            probes: p.probes,
            paths: p.paths,
            paths_seed: (p.paths == PathPolicy::Vlb).then_some(p.paths_seed),
            placement: plan.jobs.as_ref().map(RawPlacement::from),
        }
    }
}

/// The keys of a policy file that `wanted` would change and that were fixed when the run `current`
/// started, as `elephants.admit`: all that is not of a [`CircuitPolicy`].
pub fn fixed_keys(wanted: &RunPlan, current: &RunPlan) -> Vec<String> {
    let mut keys = vec![];
    differing(&as_file(wanted), &as_file(&current.under(wanted.policy.clone())), "", &mut keys);
    keys
}

/// All keys of a policy but its name, joined by dots, with their values as a file has them: also
/// those that a file leaves out.
pub fn settings(plan: &RunPlan) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    flat(&as_file(plan), "", &mut all);
    all.remove("name");
    all
}

fn flat(value: &Value, path: &str, into: &mut BTreeMap<String, String>) {
    let mut put = |text: String| drop(into.insert(path.to_owned(), text));
    match value {
        Value::Null => {}
        Value::String(text) => put(text.clone()),
        Value::Object(map) => {
            for (key, value) in map {
                flat(
                    value,
                    &if path.is_empty() { key.clone() } else { format!("{path}.{key}") },
                    into,
                );
            }
        }
        other => put(other.to_string()),
    }
}

fn as_file(plan: &RunPlan) -> Value {
    serde_json::to_value(RawPolicy::from(plan)).unwrap_or_default()
}

/// The keys that may change while a network runs: those of a [`CircuitPolicy`].
const FREE: [&[&str]; 12] = [
    &["name"],
    &["interval"],
    &["lead"],
    &["at_arrivals"],
    &["elephants", "threshold"],
    &["demand"],
    &["ageing"],
    &["scheduler"],
    &["external", "fallback"],
    &["probes"],
    &["paths"],
    &["paths_seed"],
];

/// Takes a key out of a JSON object.
fn leave_out(v: &mut Value, path: &[&str]) {
    match path {
        [] => {}
        [key] => drop(v.as_object_mut().and_then(|map| map.remove(*key))),
        [key, rest @ ..] => v.get_mut(*key).into_iter().for_each(|inner| leave_out(inner, rest)),
    }
}

/// Puts what is not given, and what is given as null, to the values of `kept`.
fn fill(given: &mut Value, kept: Value) {
    match (given, kept) {
        (Value::Object(given), Value::Object(kept)) => {
            for (key, value) in kept {
                fill(given.entry(key).or_insert(Value::Null), value);
            }
        }
        (given @ Value::Null, kept) => *given = kept,
        _ => {}
    }
}

/// The paths at which two JSON values differ, keys joined by dots.
fn differing(a: &Value, b: &Value, path: &str, into: &mut Vec<String>) {
    let (Value::Object(x), Value::Object(y)) = (a, b) else {
        if a != b {
            into.push(path.to_owned());
        }
        return;
    };
    let keys: BTreeSet<&String> = x.keys().chain(y.keys()).collect();
    for key in keys {
        let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        differing(
            x.get(key).unwrap_or(&Value::Null),
            y.get(key).unwrap_or(&Value::Null),
            &inner,
            into,
        );
    }
}

impl RawPolicy {
    /// This policy for a run that goes on: keys that cannot change while it does, and that are not
    /// among those `given`, keep what is in force in `current`.
    #[must_use]
    pub fn keeping(self, mut given: Value, current: &RunPlan) -> Self {
        // `external` stands in a file only under that scheduler.
        let mut kept = as_file(
            &current.under(CircuitPolicy { scheduler: self.scheduler, ..current.policy.clone() }),
        );
        FREE.iter().for_each(|path| leave_out(&mut kept, path));
        // What belongs to another network, policy or program than is given says nothing of it; that
        // it is another is refused later.
        let other = |path: &str| {
            given.pointer(path).is_some_and(|v| !v.is_null() && Some(v) != kept.pointer(path))
        };
        let (network, placement) = (other("/network"), other("/placement/policy"));
        let program = other("/external/command") || other("/external/url");
        let strange = [
            (network, &["within", "aalo", "decide", "starvation", "order"][..]),
            (placement, &["placement"]),
        ];
        for key in strange.into_iter().filter(|s| s.0).flat_map(|s| s.1) {
            leave_out(&mut kept, &[key]);
        }
        if program {
            leave_out(&mut kept, &["external", "command"]);
            leave_out(&mut kept, &["external", "url"]);
        }
        fill(&mut given, kept);
        // What was read and what is in force can be read together; if not, the policy is judged as
        // it was given.
        serde_json::from_value(given).unwrap_or(self)
    }

    /// What the file says, checked.
    ///
    /// # Errors
    /// Every value that makes no sense.
    pub fn check(self) -> Result<RunPlan, Vec<Flaw>> {
        let mut flaws = Flaws::default();
        let name = is_name(&self.name, LONGEST_NAME);
        flaws.unless(
            name,
            vec!["name".into()],
            format!("`{}` is not a name", self.name),
            name_rule(LONGEST_NAME),
        );
        let fits = (MIN_INTERVAL..=MAX_INTERVAL).contains(&self.interval);
        let range = format!("{MIN_INTERVAL} to 1h");
        flaws.unless(
            fits,
            vec!["interval".into()],
            format!("an interval of {}", self.interval),
            range,
        );
        let lead = self.lead.unwrap_or(DEFAULT_LEAD.min(Span(self.interval.0 / 2)));
        if fits && lead >= self.interval {
            let message =
                format!("a lead of {lead} does not fit in an interval of {}", self.interval);
            flaws.add(vec!["lead".into()], message, "less than `interval`");
        }
        flaws.unless(
            !self.at_arrivals || self.demand == Estimator::Declared,
            vec!["at_arrivals".into()],
            "this demand is not what coflows declare",
            "only with `demand: declared`",
        );
        let counts =
            self.ageing == 0 || matches!(self.demand, Estimator::Counters | Estimator::HederaRacks);
        flaws.unless(
            counts,
            vec!["ageing".into()],
            "this demand does not age",
            "only with `demand: counters` or `hedera-racks`",
        );
        flaws.unless(
            self.ageing < 100,
            vec!["ageing".into()],
            format!("an ageing of {} percent", self.ageing),
            "0 to 99",
        );
        let scales = (1..=MAX_SCALE).contains(&self.scale);
        flaws.unless(
            scales,
            vec!["scale".into()],
            format!("a scale of {}", self.scale),
            format!("1 to {MAX_SCALE}"),
        );
        let small = format!("a buffer of {}", self.buffer);
        flaws.unless(
            self.buffer >= SEND_BUFFER,
            vec!["buffer".into()],
            small,
            "2 MiB (2097152 B), what a socket holds, or more",
        );
        let c = self.congestion.as_bytes();
        let named = (1..=15).contains(&c.len())
            && c.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'_');
        let message = format!("`{}` is not the name of a congestion control", self.congestion);
        flaws.unless(
            named,
            vec!["congestion".into()],
            message,
            "1 to 15 of a-z, 0-9 and _, such as cubic, reno or dctcp",
        );
        let timeout = (Span::millis(1)..=Span::millis(1000)).contains(&self.rto_min);
        flaws.unless(
            timeout,
            vec!["rto_min".into()],
            format!("a timeout of {}", self.rto_min),
            "1ms to 1s",
        );
        let drawn = self.paths_seed.is_none() || self.paths == PathPolicy::Vlb;
        flaws.unless(
            drawn,
            vec!["paths_seed".into()],
            "`paths_seed` says nothing under this `paths`",
            "only with `paths: vlb`",
        );
        let port = vec!["elephants".into(), "port".into()];
        flaws.unless(
            self.elephants.port.is_none() || self.elephants.admit != Admit::All,
            port.clone(),
            "`port` says nothing where all packets are admitted",
            "only with `admit: marked` or `wait`",
        );
        flaws.unless(
            self.elephants.port.is_none_or(|p| (1..=LAST_PORT).contains(&p)),
            port,
            "16 ports from here are no ports",
            format!("1 to {LAST_PORT}"),
        );
        let outside = self.scheduler == SchedulerKind::External;
        let message = if outside {
            "`external` is missing"
        } else {
            "`external` says nothing under this scheduler"
        };
        let both = "`scheduler: external` together with `external: {command: [...]}` or `external: {url: ...}`";
        flaws.unless(outside == self.external.is_some(), vec!["external".into()], message, both);
        let program = self.external.as_ref().and_then(|e| e.check(lead, &mut flaws));
        let jobs = self.placement.as_ref().map(|p| p.check(&mut flaws));
        let network = self.check_network(&mut flaws);
        flaws.done(|| RunPlan {
            policy: CircuitPolicy {
                name: self.name,
                interval: self.interval,
                lead,
                at_arrivals: self.at_arrivals,
                elephant_threshold: self.elephants.threshold,
                demand: self.demand,
                ageing: self.ageing,
                scheduler: self.scheduler,
                fallback: self.external.and_then(|e| e.fallback),
                probes: self.probes,
                paths: self.paths,
                paths_seed: self.paths_seed.unwrap_or(1),
                units: jobs.as_ref().map(|jobs| jobs.placement.policy.units()).unwrap_or_default(),
            },
            run: RunSettings {
                admit: self.elephants.admit,
                port: self.elephants.port,
                network,
                scale: self.scale,
                congestion: self.congestion,
                rto_min: self.rto_min,
                buffer: self.buffer,
                program,
            },
            jobs,
        })
    }

    fn check_network(&self, flaws: &mut Flaws) -> Network {
        let kind = self.network;
        let aalo = self.aalo.map_or_else(Aalo::default, |a| a.check(flaws));
        let only = |ok: bool, key: &str, allowed: &str, flaws: &mut Flaws| {
            flaws.unless(
                ok,
                vec![key.into()],
                format!("`{key}` says nothing under this network scheduler"),
                allowed.to_owned(),
            );
        };
        only(
            self.aalo.is_none() || kind == NetworkKind::Aalo,
            "aalo",
            "only with `network: aalo`",
            flaws,
        );
        let fits = self.within.is_none_or(|within| kind.has_within(within));
        let forms = "`greedy` or `max-min` with `network: fifo`, `aalo` or `priority`; `sums` with any but `priority` and `sunflow`";
        only(fits, "within", forms, flaws);
        let ordered = "only with `network: fair-per-coflow`, `fifo`, `varys`, `aalo`, `sincronia` or `priority`";
        only(self.decide.is_none() || kind.has_order(), "decide", ordered, flaws);
        // Greedily, a flow may get a bit a second that rounding left, and keep that for ever.
        let within = self.within.unwrap_or(if kind == NetworkKind::Aalo {
            Within::MaxMin
        } else {
            Within::Greedy
        });
        let shares = within != Within::Sums
            && matches!(kind, NetworkKind::Varys | NetworkKind::FairPerCoflow)
            || within == Within::MaxMin;
        if self.decide == Some(Decide::CoflowEvents) && kind.has_order() && !shares {
            let message = "rates that are given greedily cannot wait for coflows".to_owned();
            flaws.add(
                vec!["decide".into()],
                message,
                "`coflow-events` only with `varys`, `fair-per-coflow` or `within: max-min`, and not with `within: sums`",
            );
        }
        only(
            self.starvation.is_none() || kind.may_starve(),
            "starvation",
            "only with another `network` than `max-min`",
            flaws,
        );
        for (key, span) in
            self.starvation.iter().flat_map(|g| [("every", g.every), ("share", g.share)])
        {
            flaws.unless(
                span > Span::ZERO,
                vec!["starvation".into(), key.into()],
                format!("`{key}` of {span}"),
                "above zero".to_owned(),
            );
        }
        only(
            self.order.is_none() || kind == NetworkKind::Sunflow,
            "order",
            "only with `network: sunflow`",
            flaws,
        );
        if kind == NetworkKind::Sunflow && self.scheduler.build().set_by() != SetBy::NoCircuits {
            let message = "`network: sunflow` reserves all circuits itself".to_owned();
            flaws.add(vec!["scheduler".into()], message, "`scheduler: eps-only` beside it");
        }
        let starvation = self.starvation.map(|g| Guard { every: g.every, share: g.share });
        let decide = self.decide.unwrap_or_default();
        Network { kind, within, aalo, order: self.order.unwrap_or_default(), decide, starvation }
    }
}
