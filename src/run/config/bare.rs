//! Bare numbers where a rate or a time is meant: `uplink: 100` would be 100 bits a second. Files
//! must say the unit; zero needs none.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde_json::Value;

use super::error::{Flaw, PathStep};

/// The bare numbers of a document that has the shape `R`, at keys whose values are rates or times.
pub fn flaws<R: JsonSchema>(document: &Value) -> Vec<Flaw> {
    let schema = schemars::schema_for!(R).to_value();
    let mut keys = UnitKeys::default();
    keys.collect(&schema);
    let mut flaws = vec![];
    keys.walk(document, &mut vec![], &mut flaws);
    flaws
}

/// The keys of rates and of times; a key that is a plain number somewhere else is neither.
#[derive(Default)]
struct UnitKeys {
    rates: BTreeSet<String>,
    times: BTreeSet<String>,
    numbers: BTreeSet<String>,
}

impl UnitKeys {
    fn collect(&mut self, schema: &Value) {
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            let text = property.to_string();
            let of = |name: &str| text.contains(&format!("\"#/$defs/{name}\""));
            let into = match () {
                () if of("BitRate") => &mut self.rates,
                () if of("Span") => &mut self.times,
                () if text.contains("\"integer\"") => &mut self.numbers,
                () => continue,
            };
            into.insert(key.clone());
        }
        match schema {
            Value::Object(map) => map.values().for_each(|v| self.collect(v)),
            Value::Array(all) => all.iter().for_each(|v| self.collect(v)),
            _ => {}
        }
    }

    fn walk(&self, value: &Value, path: &mut Vec<PathStep>, flaws: &mut Vec<Flaw>) {
        match value {
            Value::Object(map) => {
                for (key, inner) in map {
                    path.push(key.as_str().into());
                    match inner {
                        Value::Number(n) if n.as_u64() != Some(0) => {
                            flaws.extend(self.flaw(key, n, path))
                        }
                        _ => self.walk(inner, path, flaws),
                    }
                    path.pop();
                }
            }
            Value::Array(all) => {
                for (k, inner) in all.iter().enumerate() {
                    path.push(k.into());
                    self.walk(inner, path, flaws);
                    path.pop();
                }
            }
            _ => {}
        }
    }

    fn flaw(&self, key: &str, number: &serde_json::Number, path: &[PathStep]) -> Option<Flaw> {
        let (what, examples) = match () {
            () if self.numbers.contains(key) => return None,
            () if self.rates.contains(key) => (
                "a data rate",
                format!("a number and a unit, such as {number}Mb/s; bits a second are {number}b/s"),
            ),
            () if self.times.contains(key) => (
                "a length of time",
                format!("a number and a unit, such as {number}ms; nanoseconds are {number}ns"),
            ),
            () => return None,
        };
        Some(Flaw {
            path: path.to_vec(),
            message: format!("{number} without a unit is not {what}"),
            allowed: examples,
        })
    }
}
