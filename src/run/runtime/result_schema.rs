//! The JSON Schema of result files.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::report::RunResult;
use super::report::form::FORMAT;
use crate::runtime::jobs::report::JobsResult;

/// What quantities are in results: whole numbers of base units, where other files have them with
/// their unit.
const QUANTITIES: [(&str, &str); 3] = [
    ("Bytes", "An amount of data in bytes."),
    ("BitRate", "A rate in bits per second."),
    ("Span", "A length of time in nanoseconds."),
];

/// The schema of what `--json` writes: a run of coflows, a run of jobs, or a list of either.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let [run, jobs] =
        [generator.subschema_for::<RunResult>(), generator.subschema_for::<JobsResult>()];
    let mut definitions = generator.take_definitions(true);
    for (name, about) in QUANTITIES {
        definitions
            .insert(name.into(), json!({"description": about, "type": "integer", "minimum": 0}));
    }
    let format = json!({"const": FORMAT, "description": "The number of the form; results without one are of older versions."});
    let baseline = json!({"allOf": [run], "description": "The same run without circuits, by `run --baseline`."});
    let coflows = json!({"allOf": [run], "properties": {"format": format, "baseline": baseline}, "required": ["format"]});
    let jobs = json!({"allOf": [jobs], "properties": {"format": format}, "required": ["format"]});
    definitions.extend([("Coflows".into(), coflows), ("Jobs".into(), jobs)]);
    let one = json!([{"$ref": "#/$defs/Coflows"}, {"$ref": "#/$defs/Jobs"}]);
    let list = json!({"type": "array", "items": {"anyOf": one}, "description": "Of several policies or repetitions."});
    let mut kinds = one.as_array().cloned().unwrap_or_default();
    kinds.push(list);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Result",
        "description": "Everything that runs measured. Times and lengths of time end in _ns, amounts of data in _bytes, rates in _bps.",
        "anyOf": kinds,
        "$defs": definitions,
    })
}
