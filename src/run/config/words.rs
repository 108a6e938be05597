//! What libraries say of YAML and JSON, in words for people who write them.

use schemars::JsonSchema;
use serde_json::Value;

use super::error::PathStep;
use super::nearest::nearest;
use crate::text;

/// Serde's sentences in plain words; foreign text in them is cut.
pub fn plain(message: &str) -> String {
    let message = message
        .replace("unknown field ", "unknown key ")
        .replace("missing field ", "missing key ")
        .replace("duplicate field ", "duplicate key ")
        .replace("unknown variant ", "unknown value ")
        .replace(", expected one of ", "; allowed: ")
        .replace("expected struct RawWorkload", "expected a mapping of keys to values")
        .replace("expected struct RawJobs", "expected a mapping of keys to values")
        .replace("expected u8", "expected a whole number from 0 to 255")
        .replace("expected u16", "expected a whole number from 0 to 65535")
        .replace("expected u32", "expected a whole number")
        .replace("expected u64", "expected a whole number")
        .replace("expected unit variant", "expected one word")
        .replace("expected a sequence", "expected a list such as [a, b]")
        .replace("invalid type: unit value,", "there is no value;")
        .replace("EOF while parsing a value", "there is nothing in it")
        .replace("repetition limit exceeded", "aliases stand for too many values")
        .replace("recursion limit exceeded", "it is nested too deeply");
    text::told(&suggest(&message).unwrap_or(message))
}

/// An unknown key or value with what was probably meant, if one of those that are allowed is like
/// it.
fn suggest(message: &str) -> Option<String> {
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let unknown = message.starts_with("unknown key ") || message.starts_with("unknown value ");
    let (name, allowed) = names.split_first().filter(|_| unknown)?;
    let meant = nearest(name, allowed.iter().copied())?;
    let (before, after) = message.split_once(&format!("`{name}`"))?;
    let after = after.trim_start_matches([';', ',']);
    Some(format!("{before}`{name}`, did you mean `{meant}`?{after}"))
}

/// What the YAML library says where one word is meant and a mapping or a list is there.
pub fn is_no_word(message: &str) -> bool {
    message.contains("a YAML tag starting with")
}

/// What is wrong then, and what is allowed, with an example: `document` has the shape `R`.
pub fn one_word<R: JsonSchema>(document: &Value, path: &[PathStep]) -> (String, String) {
    let schema = schemars::schema_for!(R).to_value();
    let found = path.iter().try_fold(document, |v, step| match step {
        PathStep::Key(k) => v.get(k),
        PathStep::Index(i) => v.get(i),
    });
    let choices = choices(&schema, path);
    let inner: Vec<&str> = match found {
        Some(Value::Object(map)) => {
            map.iter().flat_map(|(k, v)| [Some(k.as_str()), v.as_str()]).flatten().collect()
        }
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    };
    let meant = inner.iter().find(|w| choices.iter().any(|c| c == *w)).copied();
    let key = path
        .iter()
        .rev()
        .find_map(|s| if let PathStep::Key(k) = s { Some(k.as_str()) } else { None })
        .unwrap_or("key");
    let is =
        if matches!(found, Some(Value::Array(_))) { "a list is here" } else { "a mapping is here" };
    let Some(example) = meant.or(choices.first().map(String::as_str)) else {
        return (format!("{is}, and one word is meant"), "one word".into());
    };
    // What belongs to a choice stands beside it, under its name.
    let beside = meant.filter(|m| *m != key && schema["properties"].get(m).is_some());
    let beside = beside.map_or(String::new(), |m| {
        format!(", and what belongs to it beside that, under a key `{m}`")
    });
    (
        format!("{is}, and one word is meant"),
        format!("{}; such as `{key}: {example}`{beside}", choices.join(", ")),
    )
}

/// The words that a schema has for a place.
fn choices(schema: &Value, path: &[PathStep]) -> Vec<String> {
    let mut nodes = vec![schema];
    for step in path {
        nodes = nodes.into_iter().flat_map(|n| all_of(schema, n, 0)).collect();
        nodes = match step {
            PathStep::Key(k) => nodes.iter().filter_map(|n| n["properties"].get(k)).collect(),
            PathStep::Index(_) => nodes.iter().filter_map(|n| n.get("items")).collect(),
        };
    }
    let mut words = vec![];
    for node in nodes.into_iter().flat_map(|n| all_of(schema, n, 0)) {
        let listed = node["enum"].as_array().into_iter().flatten().chain(node.get("const"));
        for word in listed.filter_map(Value::as_str) {
            if !words.iter().any(|w| w == word) {
                words.push(word.to_owned());
            }
        }
    }
    words
}

/// A node and those that it refers to or chooses among.
fn all_of<'a>(schema: &'a Value, node: &'a Value, depth: usize) -> Vec<&'a Value> {
    let mut all = vec![node];
    if depth > 8 {
        return all;
    }
    let referred = node["$ref"].as_str().and_then(|r| schema.pointer(r.strip_prefix('#')?));
    let parts =
        ["oneOf", "anyOf", "allOf"].iter().flat_map(|k| node[*k].as_array().into_iter().flatten());
    for inner in referred.into_iter().chain(parts) {
        all.extend(all_of(schema, inner, depth + 1));
    }
    all
}
