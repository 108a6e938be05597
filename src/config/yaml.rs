//! The one place that calls the YAML library.
//!
//! Hostile text is refused quickly: texts over [`MAX_BYTES`], brackets nested deeper than [`MAX_DEPTH`] (the library's
//! scanner is quadratic in them), and alias bombs (the library follows at most 100 aliases an event, and raw shapes are
//! shallow, so a bomb has nowhere to unfold).

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::bare;
use super::error::{ConfigError, Flaw, Problem, Step, show_path};
use super::nearest::nearest;

/// The longest text that is read.
pub const MAX_BYTES: usize = 4_000_000;
/// The deepest nesting that is read.
pub const MAX_DEPTH: usize = 64;
/// Flaws beyond this many in one file are not kept.
pub(super) const MAX_FLAWS: usize = 20;

/// Reads a value from YAML (or JSON, which YAML contains). `file` is the name that errors show.
///
/// # Errors
/// What is wrong, with line, column and the path of the key.
pub fn read<T: DeserializeOwned>(text: &str, file: &str) -> Result<T, ConfigError> {
    let fail = |p: Problem| ConfigError { file: file.into(), problems: vec![p] };
    guard(text).map_err(|p| fail(*p))?;
    let mut track = serde_path_to_error::Track::new();
    let inner = serde_yaml::Deserializer::from_str(text);
    let tracked = serde_path_to_error::Deserializer::new(inner, &mut track);
    T::deserialize(tracked).map_err(|e| {
        let path = steps(&track.path());
        fail(problem(text, &e, path))
    })
}

/// Reads a raw shape and checks its meaning; flaws are found again in the text, for their line and column.
///
/// # Errors
/// What is wrong: one problem of form, or every problem of meaning.
pub fn read_checked<R: DeserializeOwned + JsonSchema, T>(
    text: &str,
    file: &str,
    check: impl FnOnce(R) -> Result<T, Vec<Flaw>>,
) -> Result<T, ConfigError> {
    let raw = read(text, file)?;
    let bare = bare::flaws::<R>(&read(text, file)?);
    if bare.is_empty() { check(raw) } else { Err(bare) }.map_err(|flaws| placed(text, file, flaws))
}

/// Flaws at their places in a text.
pub fn placed(text: &str, file: &str, flaws: Vec<Flaw>) -> ConfigError {
    let mut problems: Vec<Problem> = flaws.into_iter().take(MAX_FLAWS).map(|f| place(text, f)).collect();
    problems.sort_by_key(|p| (p.line, p.column));
    ConfigError { file: file.into(), problems }
}

/// The keys of the document's mapping, in order: what tells a topology from a policy.
///
/// # Errors
/// When the text is not one mapping.
pub fn keys(text: &str, file: &str) -> Result<Vec<String>, ConfigError> {
    struct Keys(Vec<String>);
    impl<'de> serde::Deserialize<'de> for Keys {
        fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            struct V;
            impl<'de> Visitor<'de> for V {
                type Value = Keys;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("a mapping of keys to values")
                }
                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                    let mut keys = Vec::new();
                    while let Some((k, IgnoredAny)) = map.next_entry::<String, _>()? {
                        keys.push(k);
                    }
                    Ok(Keys(keys))
                }
            }
            d.deserialize_map(V)
        }
    }
    read::<Keys>(text, file).map(|k| k.0)
}

/// Refuses what would take long to refuse later.
fn guard(text: &str) -> Result<(), Box<Problem>> {
    let at = |line, column, message: String, allowed: String| {
        let source = source_line(text, line);
        Box::new(Problem { line, column, path: vec![], message, allowed, source })
    };
    if text.len() > MAX_BYTES {
        return Err(at(0, 0, format!("the file has {} bytes", text.len()), format!("at most {MAX_BYTES} bytes")));
    }
    // Brackets in comments and strings count too: telling them apart would be a second YAML scanner, with its own holes.
    let mut depth = 0usize;
    let limit = || format!("at most {MAX_DEPTH} levels");
    for (n, line) in text.lines().enumerate() {
        // A block within a block within a block: `- - - x`, `? ? ? x`.
        if line.split(' ').take_while(|w| matches!(*w, "" | "-" | "?" | ":")).filter(|w| !w.is_empty()).count() > MAX_DEPTH {
            return Err(at(n + 1, 1, "lists are nested too deeply".into(), limit()));
        }
        for (k, c) in line.chars().enumerate() {
            match c {
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > MAX_DEPTH {
                return Err(at(n + 1, k + 1, "brackets are nested too deeply".into(), limit()));
            }
        }
    }
    Ok(())
}

pub(super) fn source_line(text: &str, line: usize) -> String {
    line.checked_sub(1).and_then(|n| text.lines().nth(n)).unwrap_or("").trim_end().into()
}

/// A path that serde has gone.
pub fn steps(path: &serde_path_to_error::Path) -> Vec<Step> {
    use serde_path_to_error::Segment;
    let step = |s: &Segment| match s {
        Segment::Seq { index } => Some(Step::Index(*index)),
        Segment::Map { key } => Some(Step::Key(key.clone())),
        Segment::Enum { .. } | Segment::Unknown => None,
    };
    path.iter().filter_map(step).collect()
}

/// The library's error as ours: its text without the path and the place that it adds.
fn problem(text: &str, e: &serde_yaml::Error, path: Vec<Step>) -> Problem {
    let mut place = e.location().map(|l| (l.line(), l.column()));
    let mut message = e.to_string();
    if let Some(k) = message.rfind(" at line ") {
        message.truncate(k);
    }
    for n in (1..=path.len()).rev() {
        if let Some(rest) = message.strip_prefix(&format!("{}: ", show_path(&path[..n]))) {
            message = rest.into();
            break;
        }
    }
    // The library places a doubled key at its mapping; people look for its second appearance.
    if let Some(key) = message.strip_prefix("duplicate field `").and_then(|m| m.split('`').next()) {
        let full: Vec<Step> = path.iter().cloned().chain([key.into()]).collect();
        let second = Seek(&full, 1).deserialize(serde_yaml::Deserializer::from_str(text)).err();
        place = second.and_then(|e| e.location()).map(|l| (l.line(), l.column())).or(place);
    }
    let (line, column) = place.unwrap_or((0, 0));
    Problem { line, column, path, source: source_line(text, line), message: plain(&message), allowed: String::new() }
}

/// Serde's sentences in words for people who write YAML and JSON.
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
        .replace("expected a sequence", "expected a list such as [a, b]");
    suggest(&message).unwrap_or(message)
}

/// An unknown key or value with what was probably meant, if one of those that are allowed is like it.
fn suggest(message: &str) -> Option<String> {
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let unknown = message.starts_with("unknown key ") || message.starts_with("unknown value ");
    let (name, allowed) = names.split_first().filter(|_| unknown)?;
    let meant = nearest(name, allowed.iter().copied())?;
    let (before, after) = message.split_once(&format!("`{name}`"))?;
    let after = after.trim_start_matches([';', ',']);
    Some(format!("{before}`{name}`, did you mean `{meant}`?{after}"))
}

/// Finds a flaw's place by reading the text again along its path.
fn place(text: &str, flaw: Flaw) -> Problem {
    // A flaw about an absent key is shown at the nearest mapping that is there.
    let (line, column) = (0..=flaw.path.len()).rev().find_map(|n| locate(text, &flaw.path[..n])).unwrap_or((0, 0));
    let source = source_line(text, line);
    Problem { line, column, path: flaw.path, message: flaw.message, allowed: flaw.allowed, source }
}

/// Line and column of the value at `path`, or of its key where the value is a block below the key.
///
/// The library shows positions only in its errors; so a reader that fails on purpose at the end of the path learns them.
pub fn locate(text: &str, path: &[Step]) -> Option<(usize, usize)> {
    let error = Seek(path, 0).deserialize(serde_yaml::Deserializer::from_str(text)).err()?;
    error.location().map(|l| (l.line(), l.column()))
}

/// The path that is left to go, and how many times its last key is passed by.
struct Seek<'a>(&'a [Step], usize);

impl Seek<'_> {
    /// A scalar: the goal, if the path ends here.
    fn scalar<E: serde::de::Error>(&self) -> Result<(), E> {
        if self.0.is_empty() { Err(E::custom("here")) } else { Ok(()) }
    }
}

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seek<'_> {
    type Value = ();
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("anything")
    }
    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        self.scalar()
    }
    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        self.scalar()
    }
    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<(), E> {
        self.scalar()
    }
    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        self.scalar()
    }
    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        self.scalar()
    }
    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.scalar()
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Some((Step::Index(i), rest)) = self.0.split_first() else {
            return if self.0.is_empty() { Err(A::Error::custom("here")) } else { drain_seq(seq) };
        };
        for _ in 0..*i {
            if seq.next_element::<IgnoredAny>()?.is_none() {
                return Ok(());
            }
        }
        seq.next_element_seed(Seek(rest, self.1))?;
        drain_seq(seq)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some((step, rest)) = self.0.split_first() else {
            return Err(A::Error::custom("here"));
        };
        let mut skip = self.1;
        while let Some(key) = map.next_key::<String>()? {
            let matches = matches!(step, Step::Key(k) if *k == key);
            if matches && (skip == 0 || !rest.is_empty()) {
                map.next_value_seed(Seek(rest, skip))?;
            } else {
                skip -= usize::from(matches);
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

fn drain_seq<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<(), A::Error> {
    while seq.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}
