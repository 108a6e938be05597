//! JSON, with what is wrong reported as for YAML: with line, column and the path of the
//! key, in plain words.

use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::error::{ConfigError, FileProblem};
use super::yaml;

/// Reads a value. `file` is the name that errors show, and `allowed` what they say is allowed.
///
/// # Errors
/// What is wrong, and where.
pub fn read<T: DeserializeOwned>(text: &str, file: &str, allowed: &str) -> Result<T, ConfigError> {
    let mut inner = serde_json::Deserializer::from_str(text);
    let mut track = serde_path_to_error::Track::new();
    let result = T::deserialize(serde_path_to_error::Deserializer::new(&mut inner, &mut track))
        .and_then(|v| inner.end().map(|()| v));
    result.map_err(|e| {
        let (line, column) = (e.line(), e.column().max(1));
        let source = yaml::source_line(text, line);
        let message =
            if text.trim().is_empty() { "there is nothing in it".into() } else { words(&e) };
        let path = if e.classify() == Category::Data { yaml::steps(&track.path()) } else { vec![] };
        ConfigError {
            file: file.into(),
            problems: vec![FileProblem {
                line,
                column,
                path,
                message,
                allowed: allowed.into(),
                source,
            }],
        }
    })
}

/// An error in plain words, without its place.
pub fn words(e: &serde_json::Error) -> String {
    let text = e.to_string();
    let text = text.rsplit_once(" at line ").map_or(&*text, |t| t.0);
    match e.classify() {
        Category::Eof => "the text ends before its JSON does".into(),
        Category::Syntax => match text {
            "trailing characters" => "more text behind the end of its JSON".into(),
            "expected value" | "expected ident" => "this is not JSON: no value begins so".into(),
            other => format!("this is not JSON: {other}"),
        },
        _ => objects(&yaml::plain(text)),
    }
}

/// A Rust type's name means nothing to people.
fn objects(text: &str) -> String {
    match text.split_once("expected struct ") {
        Some((before, after)) => {
            format!(
                "{before}expected an object{}",
                after.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_')
            )
        }
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Inner {
        #[allow(dead_code, reason = "only its type counts")]
        n: u64,
    }

    #[derive(Debug, serde::Deserialize)]
    struct Outer {
        #[allow(dead_code, reason = "only its type counts")]
        list: Vec<Inner>,
    }

    #[test]
    fn an_error_says_line_key_and_what_is_allowed() {
        let of = |text: &str| read::<Outer>(text, "f.json", "this").unwrap_err().to_string();
        assert_eq!(
            of("{\"list\": [{\"n\": 1},\n {\"n\": \"x\"}]}"),
            "f.json:2:10: list[1].n: invalid type: string \"x\", expected a whole number\n 2 |  {\"n\": \"x\"}]}\n   |          ^\n   allowed: this"
        );
        assert!(
            of("{\"list\": [{}]}").contains("list[0]: missing key `n`"),
            "{}",
            of("{\"list\": [{}]}")
        );
        assert!(
            of("{\"list\": [7]}").contains("invalid type: integer `7`, expected an object\n"),
            "{}",
            of("{\"list\": [7]}")
        );
        assert!(
            of("{\"list\": 7}")
                .contains("list: invalid type: integer `7`, expected a list such as [a, b]")
        );
        assert!(
            of("{\"list\": [").starts_with("f.json:1:10: the text ends before its JSON does"),
            "{}",
            of("{\"list\": [")
        );
        assert!(
            of("nonsense").starts_with("f.json:1:2: this is not JSON: no value begins so"),
            "{}",
            of("nonsense")
        );
        assert!(of("{\"list\": []} x").contains("more text behind the end of its JSON"));
    }
}
