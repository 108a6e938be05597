//! Keys of a topology or a policy that are changed for one run: `--set ocs.0.delta=50ms`.

use serde_json::{Map, Value};

use super::CliError;
use crate::config;
use crate::config::nearest::did_you_mean;
use crate::config::shipped::Shelf;

/// Keys of the files that are changed for this run
#[derive(clap::Args, Clone, Debug, Default)]
pub struct KeyChanges {
    /// Changes a key of the topology or of every policy: ocs.0.delta=50ms, interval=200ms; list
    /// items are numbers from 0. May be given several times. A key of both files has topology. or
    /// policy. before it
    #[arg(id = "set", long = "set", value_name = "KEY=VALUE", value_parser = KeyChange::parse)]
    pub all: Vec<KeyChange>,
}

/// One key and its new value.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyChange {
    /// As it was given.
    pub key: String,
    /// As it was given.
    pub text: String,
    shelf: Shelf,
    path: Vec<String>,
    value: Value,
}

/// The keys that a schema has at its top.
fn keys(schema: &serde_json::Value) -> Vec<String> {
    schema["properties"].as_object().into_iter().flatten().map(|(k, _)| k.clone()).collect()
}

impl KeyChange {
    /// Reads `KEY=VALUE`.
    ///
    /// # Errors
    /// What is wrong, and what is allowed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (key, value) =
            text.split_once('=').ok_or("KEY=VALUE is wanted, such as ocs.0.delta=50ms")?;
        Self::new(key, value)
    }

    /// A key and a value.
    ///
    /// # Errors
    /// What is wrong, and what is allowed.
    pub fn new(key: &str, text: &str) -> Result<Self, String> {
        let [topology, policy] = [keys(&config::schema_topology()), keys(&config::schema_policy())];
        let (named, path) = match key.split_once('.') {
            Some(("topology", rest)) => (Some(Shelf::Topologies), rest),
            Some(("policy", rest)) => (Some(Shelf::Policies), rest),
            _ => (None, key),
        };
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        let first = &path[0];
        let shelf = match (named, topology.contains(first), policy.contains(first)) {
            (Some(shelf), ..) => shelf,
            (None, true, true) => {
                return Err(format!(
                    "both files have `{first}`: write topology.{key} or policy.{key}"
                ));
            }
            (None, true, false) => Shelf::Topologies,
            (None, false, true) => Shelf::Policies,
            (None, false, false) => {
                let all = topology.iter().chain(&policy).map(String::as_str);
                return Err(format!(
                    "neither a topology nor a policy has `{first}`{}",
                    did_you_mean(first, all)
                ));
            }
        };
        let value =
            config::as_json(text).map_err(|e| format!("`{text}` is no value of YAML: {e}"))?;
        Ok(Self { key: key.into(), text: text.into(), shelf, path, value })
    }

    fn put(&self, at: &mut Value) -> Result<(), String> {
        let mut at = at;
        for (k, step) in self.path.iter().enumerate() {
            let parent = || {
                if k == 0 {
                    "the file".to_owned()
                } else {
                    format!("`{}`", self.path[..k].join("."))
                }
            };
            if at.is_null() {
                *at = Value::Object(Map::new());
            }
            at = match at {
                Value::Array(list) => {
                    let last = list.len().saturating_sub(1);
                    let item = step.parse::<usize>().ok().and_then(|n| list.get_mut(n));
                    item.ok_or_else(|| {
                        format!("{} has no item {step}: its items are 0 to {last}", parent())
                    })?
                }
                Value::Object(map) => map.entry(step.as_str()).or_insert(Value::Null),
                _ => return Err(format!("{} has a value of its own, and no key {step}", parent())),
            };
        }
        *at = self.value.clone();
        Ok(())
    }
}

/// A file's text with the changes that are for files of its kind; `file` is the name that errors
/// show.
///
/// # Errors
/// A path that leads nowhere in this file.
pub fn changed(
    text: String,
    file: &str,
    shelf: Shelf,
    changes: &[KeyChange],
) -> Result<String, CliError> {
    let mine: Vec<&KeyChange> = changes.iter().filter(|c| c.shelf == shelf).collect();
    // What is no YAML is reported by its own reader, with its place.
    let Some(mut value) = (!mine.is_empty()).then(|| config::as_json(&text).ok()).flatten() else {
        return Ok(text);
    };
    for change in mine {
        change.put(&mut value).map_err(|why| {
            CliError::Usage(format!("--set {}={}: in {file} {why}", change.key, change.text))
        })?;
    }
    // JSON is YAML, too.
    Ok(format!("{value:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(changes: &[&str]) -> Result<crate::topology::Topology, String> {
        let all: Vec<KeyChange> =
            changes.iter().map(|c| KeyChange::parse(c)).collect::<Result<_, _>>()?;
        let text = crate::testing::shipped("topologies/hybrid-4x2.yaml");
        let text = changed(text, "t", Shelf::Topologies, &all).map_err(|e| e.to_string())?;
        config::read_topology(&text, "t").map_err(|e| e.to_string())
    }

    #[test]
    fn keys_are_changed_added_and_checked_as_the_files_are() {
        let t = topology(&["ocs.0.delta=50ms", "racks=6", "interval=1s"]).unwrap();
        assert_eq!((t.rack_count(), t.planes[0].delta.to_string()), (6, "50ms".into()));
        assert_eq!(topology(&["topology.name=other"]).unwrap().name, "other");
        for (change, why) in [
            ("name=x", "write topology.name=x or policy.name"),
            ("ocs.1.delta=1ms", "`ocs` has no item 1: its items are 0 to 0"),
            ("racks.x=1", "`racks` has a value of its own, and no key x"),
            ("ocs.0.delat=1ms", "delta"),
            ("rakcs=3", "did you mean `racks`?"),
            ("racks", "KEY=VALUE is wanted"),
            ("racks={", "no value of YAML"),
            ("racks=0", "racks"),
        ] {
            let said = topology(&[change]).unwrap_err();
            assert!(said.contains(why.trim_end_matches("=x or policy.name")), "{change}: {said}");
        }
    }

    #[test]
    fn a_key_that_a_policy_leaves_out_is_added() {
        let change = KeyChange::parse("elephants.threshold=1MB").unwrap();
        let text = changed(
            "name: p\ninterval: 100ms\ndemand: backlog\nscheduler: edmonds\n".into(),
            "p",
            Shelf::Policies,
            &[change],
        )
        .unwrap();
        assert_eq!(config::read_policy(&text, "p").unwrap().policy.elephant_threshold.0, 1_000_000);
    }
}
