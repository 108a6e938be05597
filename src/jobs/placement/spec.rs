//! Parameters of placement policies: those that all have, and what the options of one are.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::policy::{FlowGranularity, JobOrder, Placement, ReduceStart};
use crate::paths::Units;
use crate::topology::Topology;
use crate::units::{Bytes, Span};

/// Parameters that every policy is given; some have no use for some of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Common {
    /// Per cent of the tasks before that must have finished before a stage gets slots.
    pub slowstart: u32,
    /// Where data goes is drawn from this.
    pub seed: u64,
    /// Delay scheduling: how long a job waits for a slot on a host of its blocks, and then for one
    /// in their rack.
    pub wait: (Span, Span),
    /// Delay scheduling as Yarn has it, instead of by time: how many offers a job misses before it
    /// may run in the rack of a block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<u32>,
    /// Longest time for which a shuffle is held back until more reduce tasks have slots.
    pub patience: Span,
    /// Per cent of a guideline's hosts that may be down; if more are, the guideline is dropped.
    pub lost_percent: u32,
}

impl Default for Common {
    /// A slowstart of 5 per cent as in Hadoop, waits of three seconds each; guidelines are dropped
    /// when most of their hosts are down.
    fn default() -> Self {
        let wait = (Span::secs(3), Span::secs(3));
        Self {
            slowstart: 5,
            seed: 1,
            wait,
            missed: None,
            patience: Span::secs(30),
            lost_percent: 50,
        }
    }
}

/// What a policy file may say of one placement policy beside [`Common`], and how the policy is made
/// of it. The fields are keys of the `placement` section; those that are left out have their
/// default.
pub trait PolicyOptions: Default + Serialize + DeserializeOwned + JsonSchema {
    /// The slowstart of a file that gives none, in per cent.
    const SLOWSTART: u32 = 5;
    /// The order of jobs of a file that gives none.
    const ORDER: JobOrder = JobOrder::Fair;
    /// When reduce tasks get slots, in a file that does not say it.
    const REDUCES: ReduceStart = ReduceStart::AllPlaced;
    /// Whose flows there are, in a file that does not say it. A policy that needs
    /// [`FlowGranularity::Task`] has no other.
    const FLOWS: FlowGranularity = FlowGranularity::Host;
    /// Whether delay scheduling may count offers under this policy.
    const COUNTS_OFFERS: bool = false;
    /// The offers that it counts in a file that says nothing of waits.
    const MISSED: Option<u32> = None;
    /// It thinks of hosts: flows between racks as wholes would say nothing of it.
    const BY_HOST: bool = false;

    /// Values that make no sense.
    fn check(&self) -> Vec<BadOption> {
        vec![]
    }

    /// The network that the policy is meant for.
    fn network(&self, topology: &Topology) -> Topology {
        topology.clone()
    }

    /// What the policy takes a byte to cost at the switches that it crosses.
    fn units(&self) -> Units {
        Units::default()
    }

    /// The policy; `elephant` is the threshold T_e of the circuits' policy.
    fn build(&self, common: &Common, elephant: Bytes) -> Box<dyn Placement>;
}

/// An option that cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadOption {
    /// Its key.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What is allowed; empty if the message says it.
    pub allowed: String,
}

/// The flaw of a number that is not in a range; none if it is.
pub fn outside(key: &str, value: u64, (low, high): (u64, u64)) -> Option<BadOption> {
    let bad = || BadOption {
        key: key.into(),
        message: format!("`{key}` of {value}"),
        allowed: format!("{low} to {high}"),
    };
    (!(low..=high).contains(&value)).then(bad)
}

/// Options from the values of their keys.
///
/// # Errors
/// A key that the options do not have, or values that make no sense.
pub fn read<O: PolicyOptions>(values: Map<String, Value>) -> Result<O, Vec<BadOption>> {
    let bad = |e: serde_path_to_error::Error<serde_json::Error>| BadOption {
        key: e.path().to_string(),
        message: e.inner().to_string(),
        allowed: String::new(),
    };
    let options: O =
        serde_path_to_error::deserialize(Value::Object(values)).map_err(|e| vec![bad(e)])?;
    let flaws = options.check();
    if flaws.is_empty() { Ok(options) } else { Err(flaws) }
}

/// The keys of options that are not as usual, with their values.
pub fn written<O: PolicyOptions>(options: &O) -> Map<String, Value> {
    let values = |o: &O| match serde_json::to_value(o) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    };
    let usual = values(&O::default());
    values(options).into_iter().filter(|(key, v)| usual.get(key) != Some(v)).collect()
}

/// The keys of options, each with its JSON Schema, which refers to no other.
pub fn schema<O: PolicyOptions>() -> Map<String, Value> {
    let settings =
        schemars::generate::SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<O>().to_value();
    match schema.get_mut("properties").map(Value::take) {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    }
}
