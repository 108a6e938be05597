//! The `placement` section of policy files: how jobs are scheduled.

use std::collections::BTreeSet;
use std::fmt;

use schemars::{JsonSchema, Schema};
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::error::Flaws;
use super::yaml::plain;
use crate::paths::Units;
use crate::placement::external::ProgramOptions;
use crate::placement::policy::{FlowGranularity, ReduceStart};
use crate::placement::registry::Spec;
use crate::placement::spec::{BadOption, Common};
use crate::placement::{Kind, Policy};
use crate::scheduler::queues::JobOrder;
use crate::scheduler::spec::JobPolicy;
use crate::scheduler::state::{Grain, SchedulerSettings};
use crate::units::{Span, exact_or_null};

/// The most queues with a weight of their own.
const MAX_QUEUES: usize = 10_000;

/// How jobs are scheduled: what every policy is given, and options of the policy itself.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(transform = add_options)]
pub struct RawPlacement {
    /// Which tasks go where.
    policy: Kind,
    /// Which job is next: one order for all queues, or a list of them from queue 0 on, the last of
    /// which holds for queues beyond it; the policy's own order if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    order: Option<RawOrder>,
    /// Weights of the queues from queue 0 on; a queue beyond them has 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    weights: Vec<u32>,
    /// Per cent of a stage's tasks that must have finished before tasks of the next get slots, 0 to
    /// 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 100))]
    slowstart: Option<u32>,
    /// When tasks that wait for those before them get slots: all-placed, when all of those have
    /// slots or have ended; ramp-up, as in Yarn, before them in a growing number. The policy's own
    /// if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reduces: Option<ReduceStart>,
    /// A waiting reduce task fetches again when this share of the map tasks, in per cent, has
    /// finished since; 1 to 100; 20 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    fetch: Option<u32>,
    /// Whose flows there are: host, tasks of a stage that start to fetch at one instant on one host
    /// share them; task, each has its own. Task under pushbox, which has no other, else host, if
    /// left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    flows: Option<FlowGranularity>,
    /// Where data goes is drawn from this; 1 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    /// Delay scheduling: how long, or for how many offers, a job waits for a slot near its data;
    /// the policy's own if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wait: Option<RawWait>,
    /// The longest time that a shuffle is held back until more reduce tasks have slots; 30 s if
    /// left out.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "exact_or_null")]
    patience: Option<Span>,
    /// A guideline is dropped when more than this share of its hosts, in per cent, is down; 0 to
    /// 100; 50 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 100))]
    lost: Option<u32>,
    /// The policy's own options.
    #[serde(flatten)]
    #[schemars(skip)]
    options: Map<String, Value>,
}

/// Says in the schema which options each policy has, and that there are no others.
fn add_options(schema: &mut Schema) {
    let one = |kind: &Kind| {
        let mut properties = kind.schema();
        properties.insert("policy".into(), json!({"const": kind.name()}));
        json!({"title": kind.name(), "properties": properties})
    };
    schema.insert("oneOf".into(), Kind::ALL.iter().map(one).collect());
    schema.insert("unevaluatedProperties".into(), false.into());
}

/// One order for all queues, or one a queue.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
enum RawOrder {
    /// One order for all queues; under `fifo` and `srpt` they are served as one.
    All(JobOrder),
    /// An order for each queue, from queue 0 on.
    Each(Vec<JobOrder>),
}

/// Read by hand, so that errors have their places and say what is allowed.
impl<'de> Deserialize<'de> for RawOrder {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = RawOrder;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("fifo, fair, capacity or srpt, or a list of these")
            }
            fn visit_str<E: serde::de::Error>(self, v: &str) -> Result<RawOrder, E> {
                JobOrder::deserialize(serde::de::value::StrDeserializer::new(v)).map(RawOrder::All)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<RawOrder, A::Error> {
                let mut all = Vec::new();
                while let Some(order) = seq.next_element()? {
                    all.push(order);
                }
                Ok(RawOrder::Each(all))
            }
        }
        d.deserialize_any(Reader)
    }
}

/// The value of an option: options have numbers, texts and switches, so that a file cannot unfold
/// here.
struct Scalar(Value);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Scalar;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a text, true or false")
            }
            fn visit_bool<E>(self, v: bool) -> Result<Scalar, E> {
                Ok(Scalar(v.into()))
            }
            fn visit_i64<E>(self, v: i64) -> Result<Scalar, E> {
                Ok(Scalar(v.into()))
            }
            fn visit_u64<E>(self, v: u64) -> Result<Scalar, E> {
                Ok(Scalar(v.into()))
            }
            fn visit_f64<E>(self, v: f64) -> Result<Scalar, E> {
                Ok(Scalar(v.into()))
            }
            fn visit_str<E>(self, v: &str) -> Result<Scalar, E> {
                Ok(Scalar(v.into()))
            }
            fn visit_unit<E>(self) -> Result<Scalar, E> {
                Ok(Scalar(Value::Null))
            }
        }
        d.deserialize_any(Reader)
    }
}

/// Read by hand: which keys there are depends on the policy, which may be anywhere in the section,
/// and serde's own `flatten` would lose the places of errors.
impl<'de> Deserialize<'de> for RawPlacement {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = RawPlacement;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping of keys to values")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawPlacement, A::Error> {
                let mut policy = None;
                let mut raw = RawPlacement::of(Kind::Fair);
                let mut seen = BTreeSet::new();
                while let Some(key) = map.next_key::<String>()? {
                    if !seen.insert(key.clone()) {
                        return Err(A::Error::custom(format!("duplicate field `{key}`")));
                    }
                    match &*key {
                        "policy" => policy = Some(map.next_value()?),
                        "order" => raw.order = map.next_value()?,
                        "weights" => raw.weights = map.next_value()?,
                        "slowstart" => raw.slowstart = map.next_value()?,
                        "reduces" => raw.reduces = map.next_value()?,
                        "fetch" => raw.fetch = map.next_value()?,
                        "flows" => raw.flows = map.next_value()?,
                        "seed" => raw.seed = map.next_value()?,
                        "wait" => raw.wait = map.next_value()?,
                        "patience" => raw.patience = map.next_value()?,
                        "lost" => raw.lost = map.next_value()?,
                        "external" => {
                            let program = map.next_value::<Option<ProgramOptions>>()?;
                            raw.options.extend(
                                program.map(|p| (key, serde_json::to_value(p).unwrap_or_default())),
                            );
                        }
                        "units" => {
                            let units = map.next_value::<Option<Units>>()?;
                            raw.options.extend(
                                units.map(|u| (key, serde_json::to_value(u).unwrap_or_default())),
                            );
                        }
                        // Null is a key that is left out, as among the others.
                        _ => match map.next_value::<Scalar>()?.0 {
                            Value::Null => {}
                            value => drop(raw.options.insert(key, value)),
                        },
                    }
                }
                Ok(RawPlacement {
                    policy: policy.ok_or_else(|| A::Error::missing_field("policy"))?,
                    ..raw
                })
            }
        }
        d.deserialize_map(Reader)
    }
}

/// How long a job waits for a slot near its data: `host` and `rack`, or `missed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct RawWait {
    /// Time for a slot on a host that holds a block.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "exact_or_null")]
    host: Option<Span>,
    /// Time after that for a slot in the rack of a block.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "exact_or_null")]
    rack: Option<Span>,
    /// Offers that it misses before it takes a slot in the rack of a block, as in Yarn.
    #[serde(skip_serializing_if = "Option::is_none")]
    missed: Option<u32>,
}

impl RawPlacement {
    /// A section that says no more than its policy.
    fn of(policy: Kind) -> Self {
        let (order, weights, options) = (None, vec![], Map::new());
        let (slowstart, reduces, fetch, flows, seed, lost) = (None, None, None, None, None, None);
        Self {
            policy,
            order,
            weights,
            slowstart,
            reduces,
            fetch,
            flows,
            seed,
            wait: None,
            patience: None,
            lost,
            options,
        }
    }

    /// The checked section; what makes no sense goes to `flaws`.
    pub(super) fn check(&self, flaws: &mut Flaws) -> JobPolicy {
        let policy = self.check_options(flaws);
        let decides = self.decides(policy.as_ref());
        let usual = Spec::new(decides);
        let at = |key: &str| vec!["placement".into(), key.into()];
        let slowstart = self.slowstart.unwrap_or(usual.common.slowstart);
        flaws.unless(
            slowstart <= 100,
            at("slowstart"),
            format!("a slowstart of {slowstart} %"),
            "0 to 100",
        );
        let fetch_percent = self.fetch.unwrap_or(SchedulerSettings::default().fetch_percent);
        flaws.unless(
            (1..=100).contains(&fetch_percent),
            at("fetch"),
            format!("a fetch of {fetch_percent} %"),
            "1 to 100",
        );
        let many = self.weights.len() <= MAX_QUEUES
            && self.weights.iter().all(|&w| (1..=1_000_000).contains(&w));
        flaws.unless(
            many,
            at("weights"),
            "weights that no queue can have",
            format!("1 to 1000000 each, of at most {MAX_QUEUES} queues"),
        );
        let lost_percent = self.lost.unwrap_or(usual.common.lost_percent);
        flaws.unless(
            lost_percent <= 100,
            at("lost"),
            format!("a loss of {lost_percent} %"),
            "0 to 100",
        );
        let (wait, missed) = self.check_wait(decides, flaws);
        let common = Common {
            slowstart,
            seed: self.seed.unwrap_or(usual.common.seed),
            wait,
            missed,
            patience: self.patience.unwrap_or(usual.common.patience),
            lost_percent,
        };
        let named = self.policy != Kind::External || self.options.contains_key("external");
        flaws.unless(
            named,
            at("policy"),
            "`external` is missing",
            "`policy: external` together with `external: {command: [...]}` or `external: {url: ...}`",
        );
        let policy = policy.unwrap_or(usual.policy);
        let (order, orders) = match &self.order {
            None => (decides.order(), vec![]),
            Some(RawOrder::All(one)) => (*one, vec![]),
            Some(RawOrder::Each(each)) => (each.last().copied().unwrap_or_default(), each.clone()),
        };
        let counts = !matches!(&self.order, Some(RawOrder::Each(each)) if !(1..=MAX_QUEUES).contains(&each.len()));
        flaws.unless(
            counts,
            at("order"),
            "orders of no queue, or of too many",
            format!("a word, or a list of 1 to {MAX_QUEUES}"),
        );
        let reduces = self.reduces.unwrap_or(decides.reduces());
        let flows = self.flows.unwrap_or(decides.flows());
        flaws.unless(
            flows == FlowGranularity::Task || decides.flows() == FlowGranularity::Host,
            at("flows"),
            "flows of hosts under this policy",
            "task",
        );
        JobPolicy {
            placement: Spec { policy, common },
            settings: SchedulerSettings {
                order,
                orders,
                weights: self.weights.clone(),
                reduces,
                fetch_percent,
                flows,
                grain: Grain::Host,
            },
        }
    }

    /// The policy whose ways hold where the file says nothing: for a program, that of its fallback.
    fn decides(&self, policy: Option<&Policy>) -> Kind {
        match policy {
            Some(Policy::External(program)) => program.external.fallback,
            _ => self.policy,
        }
    }

    /// How long jobs wait for slots near their data, or for how many offers.
    fn check_wait(&self, decides: Kind, flaws: &mut Flaws) -> ((Span, Span), Option<u32>) {
        let at = || vec!["placement".into(), "wait".into()];
        let usual = Spec::new(decides).common;
        match self.wait {
            None => (usual.wait, usual.missed),
            Some(RawWait { host: Some(host), rack: Some(rack), missed: None }) => {
                ((host, rack), None)
            }
            Some(RawWait { host: None, rack: None, missed: Some(n) }) => {
                let counting: Vec<&str> =
                    Kind::ALL.iter().filter(|k| k.counts_offers()).map(|k| k.name()).collect();
                let only = format!(
                    "`host` and `rack`; `missed` only with `policy: {}`",
                    counting.join("`, `")
                );
                flaws.unless(
                    decides.counts_offers(),
                    at(),
                    "this placement policy counts no offers",
                    only,
                );
                (usual.wait, Some(n))
            }
            Some(_) => {
                flaws.add(
                    at(),
                    "a wait by time and by offers, or by half of the times",
                    "`host` and `rack`, or `missed`",
                );
                (usual.wait, usual.missed)
            }
        }
    }

    /// The policy with its options. First those go out that only other policies have, or none.
    fn check_options(&self, flaws: &mut Flaws) -> Option<Policy> {
        let own = self.policy.schema();
        let (own, strange): (Map<_, _>, Map<_, _>) =
            self.options.clone().into_iter().partition(|(key, _)| own.contains_key(key));
        for key in strange.keys() {
            let path = vec!["placement".into(), key.as_str().into()];
            let of: Vec<&str> = Kind::ALL
                .iter()
                .filter(|k| k.schema().contains_key(key))
                .map(|k| k.name())
                .collect();
            if of.is_empty() {
                flaws.add(
                    path,
                    format!("unknown key `{key}`"),
                    format!("`{}`", self.keys().join("`, `")),
                );
            } else {
                let only = format!("only with `policy: {}`", of.join("`, `"));
                flaws.add(path, format!("`{key}` says nothing under this placement policy"), only);
            }
        }
        let read = Policy::read(self.policy, own);
        let flaw = |bad: BadOption| {
            flaws.add(
                vec!["placement".into(), bad.key.as_str().into()],
                plain(&bad.message),
                bad.allowed,
            )
        };
        read.map_err(|bad| bad.into_iter().for_each(flaw)).ok()
    }

    /// The keys of a section of this policy.
    fn keys(&self) -> Vec<String> {
        let common = schemars::schema_for!(Self).to_value();
        let common = common["properties"].as_object().cloned().unwrap_or_default();
        common.into_iter().chain(self.policy.schema()).map(|(key, _)| key).collect()
    }
}

impl From<&JobPolicy> for RawPlacement {
    fn from(p: &JobPolicy) -> Self {
        let common = &p.placement.common;
        Self {
            policy: p.placement.kind(),
            order: Some(match &p.settings.orders[..] {
                [] => RawOrder::All(p.settings.order),
                each => RawOrder::Each(each.to_vec()),
            }),
            weights: p.settings.weights.clone(),
            slowstart: Some(common.slowstart),
            reduces: Some(p.settings.reduces),
            fetch: Some(p.settings.fetch_percent),
            flows: Some(p.settings.flows).filter(|f| *f != p.placement.kind().flows()),
            seed: Some(common.seed),
            wait: Some(match common.missed {
                Some(n) => RawWait { missed: Some(n), ..RawWait::default() },
                None => {
                    RawWait { host: Some(common.wait.0), rack: Some(common.wait.1), missed: None }
                }
            }),
            patience: Some(common.patience),
            lost: Some(common.lost_percent),
            options: p.placement.policy.written(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::read_policy;
    use crate::paths::Units;

    /// A policy of Hit-scheduler with these costs of switches.
    fn hit(units: &str) -> String {
        format!(
            "name: x\ninterval: 100ms\nscheduler: eps-only\ndemand: declared\npaths: hit\nplacement:\n  policy: hit\n  units: {units}\n"
        )
    }

    #[test]
    fn costs_of_switches_are_read_and_are_those_of_tasks_and_lists() {
        let plan = read_policy(&hit("{access: 1, aggregation: 5, core: 9}"), "f").unwrap();
        let units = Units { access: 1, aggregation: 5, core: 9 };
        assert_eq!(
            (plan.policy.units, plan.jobs.unwrap().placement.policy.units()),
            (units, units)
        );
        let some = read_policy(&hit("{core: 9}"), "f").unwrap();
        assert_eq!(some.policy.units, Units { core: 9, ..Units::default() });
        for (bad, why) in [
            ("{access: 1000001}", "0 to 1000000"),
            ("{edge: 1}", "edge"),
            ("3", "3"),
            ("{core: -1}", "-1"),
        ] {
            let e = read_policy(&hit(bad), "f").unwrap_err().to_string();
            assert!(e.starts_with("f:8:") && e.contains(why), "{e}");
        }
    }
}
