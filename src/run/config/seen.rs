//! Text in files that cannot be seen as itself: what moves a terminal's cursor, turns the direction
//! of text or breaks its line.

use serde_json::Value;

use super::error::{Flaw, PathStep};
use crate::text;

/// Keys whose text may have several lines: it is for readers, or a program's.
const OF_LINES: [&str; 3] = ["description", "command", "about"];

/// The texts of a document that no name may be, keys included.
pub fn flaws(document: &Value) -> Vec<Flaw> {
    let mut flaws = vec![];
    walk(document, false, &mut vec![], &mut flaws);
    flaws
}

fn walk(value: &Value, of_lines: bool, path: &mut Vec<PathStep>, flaws: &mut Vec<Flaw>) {
    let flaw = |t: &str, of_lines: bool| {
        let whole = if of_lines { t.replace(['\n', '\t'], " ") } else { t.to_owned() };
        text::flaw_of_name(&whole)
    };
    let add = |message: Option<String>, path: &[PathStep], flaws: &mut Vec<Flaw>| {
        flaws.extend(message.map(|message| Flaw {
            path: path.to_vec(),
            message,
            allowed: text::VISIBLE.into(),
        }));
    };
    match value {
        Value::String(t) => add(flaw(t, of_lines), path, flaws),
        Value::Object(map) => {
            for (key, inner) in map {
                path.push(key.as_str().into());
                add(flaw(key, false), path, flaws);
                walk(inner, of_lines || OF_LINES.contains(&key.as_str()), path, flaws);
                path.pop();
            }
        }
        Value::Array(all) => {
            for (k, inner) in all.iter().enumerate() {
                path.push(k.into());
                walk(inner, of_lines, path, flaws);
                path.pop();
            }
        }
        _ => {}
    }
}
