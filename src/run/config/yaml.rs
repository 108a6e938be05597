//! The one place that calls the YAML library.
//!
//! Hostile text is refused quickly. That is texts over [`MAX_BYTES`]; brackets nested deeper than
//! [`MAX_DEPTH`], in which the library's scanner is quadratic; and alias bombs: the library follows
//! at most 100 aliases an event, and raw shapes are shallow, so a bomb has nowhere to unfold.

use schemars::JsonSchema;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};

use super::bare;
use super::error::{ConfigError, FileProblem, Flaw, PathStep, show_path};
use super::seen;
use super::words;
pub use super::words::plain;

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
    let fail = |p: FileProblem| ConfigError { file: file.into(), problems: vec![p] };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    guard(text).map_err(|p| fail(*p))?;
    let mut track = serde_path_to_error::Track::new();
    let inner = serde_yaml::Deserializer::from_str(text);
    let tracked = serde_path_to_error::Deserializer::new(inner, &mut track);
    T::deserialize(tracked).map_err(|e| {
        let path = steps(&track.path());
        fail(problem(text, &e, path))
    })
}

/// Reads a raw shape and checks its meaning; flaws are found again in the text, for their line and
/// column.
///
/// # Errors
/// What is wrong: one problem of form, or every problem of meaning.
pub fn read_checked<R: DeserializeOwned + JsonSchema, T>(
    text: &str,
    file: &str,
    check: impl FnOnce(R) -> Result<T, Vec<Flaw>>,
) -> Result<T, ConfigError> {
    let raw = read(text, file).map_err(|e| with_choices::<R>(text, e))?;
    let document = read(text, file)?;
    let flaws = [seen::flaws(&document), bare::flaws::<R>(&document)].concat();
    if flaws.is_empty() { check(raw) } else { Err(flaws) }
        .map_err(|flaws| placed(text, file, flaws))
}

/// Where the library finds no word, what is allowed.
fn with_choices<R: JsonSchema>(text: &str, mut e: ConfigError) -> ConfigError {
    for p in e.problems.iter_mut().filter(|p| words::is_no_word(&p.message)) {
        let document = serde_yaml::from_str(text).unwrap_or_default();
        (p.message, p.allowed) = words::one_word::<R>(&document, &p.path);
        // The library places it at the document.
        (p.line, p.column) = locate(text, &p.path).unwrap_or((p.line, p.column));
        p.source = source_line(text, p.line);
    }
    e
}

/// Flaws at their places in a text.
pub fn placed(text: &str, file: &str, flaws: Vec<Flaw>) -> ConfigError {
    let mut problems: Vec<FileProblem> =
        flaws.into_iter().take(MAX_FLAWS).map(|f| place(text, f)).collect();
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
fn guard(text: &str) -> Result<(), Box<FileProblem>> {
    let at = |line, column, message: String, allowed: String| {
        let source = source_line(text, line);
        Box::new(FileProblem { line, column, path: vec![], message, allowed, source })
    };
    if let Some((line, column, c)) = hidden(text) {
        let what = format!("a control character, U+{:04X}", u32::from(c));
        return Err(at(line, column, what, "none but tabs and ends of lines".into()));
    }
    if let Some(line) = second_document(text) {
        return Err(at(
            line,
            1,
            "a second document begins here".into(),
            "one document in a file".into(),
        ));
    }
    if text.len() > MAX_BYTES {
        return Err(at(
            0,
            0,
            format!("the file has {} bytes", text.len()),
            format!("at most {MAX_BYTES} bytes"),
        ));
    }
    // Brackets in comments and strings count too: telling them apart would be a second YAML
    // scanner, with its own holes.
    let mut depth = 0usize;
    let limit = || format!("at most {MAX_DEPTH} levels");
    for (n, line) in text.lines().enumerate() {
        // A block within a block within a block: `- - - x`, `? ? ? x`.
        if line
            .split(' ')
            .take_while(|w| matches!(*w, "" | "-" | "?" | ":"))
            .filter(|w| !w.is_empty())
            .count()
            > MAX_DEPTH
        {
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

/// The first control character that is no white space, where it is. A byte order mark begins a text
/// that has one.
fn hidden(text: &str) -> Option<(usize, usize, char)> {
    let is = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r');
    let (n, line) = text.lines().enumerate().find(|(_, line)| line.contains(is))?;
    line.chars().enumerate().find(|(_, c)| is(*c)).map(|(k, c)| (n + 1, k + 1, c))
}

/// The line on which a second document begins. A line of `---` or `...` is nothing else, within
/// quotes or not.
fn second_document(text: &str) -> Option<usize> {
    let marks = |line: &str, mark: &str| {
        line.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
    };
    let (mut begun, mut ended) = (false, false);
    for (n, line) in text.lines().enumerate() {
        let blank = line.trim().is_empty() || line.trim_start().starts_with('#');
        match () {
            () if marks(line, "---") && (begun || ended) => return Some(n + 1),
            () if marks(line, "...") => ended = begun,
            () if ended && !blank => return Some(n + 1),
            () if marks(line, "---") => begun = true,
            () => begun |= !blank && !line.starts_with('%'),
        }
    }
    None
}

pub(super) fn source_line(text: &str, line: usize) -> String {
    line.checked_sub(1).and_then(|n| text.lines().nth(n)).unwrap_or("").trim_end().into()
}

/// A path that serde has gone.
pub fn steps(path: &serde_path_to_error::Path) -> Vec<PathStep> {
    use serde_path_to_error::Segment;
    let step = |s: &Segment| match s {
        Segment::Seq { index } => Some(PathStep::Index(*index)),
        Segment::Map { key } => Some(PathStep::Key(key.clone())),
        Segment::Enum { .. } | Segment::Unknown => None,
    };
    path.iter().filter_map(step).collect()
}

/// The library's error as ours: its text without the path and the place that it adds.
fn problem(text: &str, e: &serde_yaml::Error, path: Vec<PathStep>) -> FileProblem {
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
        let full: Vec<PathStep> = path.iter().cloned().chain([key.into()]).collect();
        let second = Seek(&full, 1).deserialize(serde_yaml::Deserializer::from_str(text)).err();
        place = second.and_then(|e| e.location()).map(|l| (l.line(), l.column())).or(place);
    }
    // What has no place is of the file as a whole.
    let (line, column) = place.unwrap_or((1, 1));
    FileProblem {
        line,
        column,
        path,
        source: source_line(text, line),
        message: library(&message),
        allowed: String::new(),
    }
}

/// The library's words; those that [`with_choices`] replaces stay.
fn library(message: &str) -> String {
    if words::is_no_word(message) { message.into() } else { plain(message) }
}

/// Finds a flaw's place by reading the text again along its path.
fn place(text: &str, flaw: Flaw) -> FileProblem {
    // A flaw about an absent key is shown at the nearest mapping that is there.
    let (line, column) =
        (0..=flaw.path.len()).rev().find_map(|n| locate(text, &flaw.path[..n])).unwrap_or((0, 0));
    let source = source_line(text, line);
    FileProblem {
        line,
        column,
        path: flaw.path,
        message: flaw.message,
        allowed: flaw.allowed,
        source,
    }
}

/// Line and column of the value at `path`, or of its key where the value is a block below the key.
///
/// The library shows positions only in its errors; so a reader that fails on purpose at the end of
/// the path learns them.
pub fn locate(text: &str, path: &[PathStep]) -> Option<(usize, usize)> {
    let error = Seek(path, 0).deserialize(serde_yaml::Deserializer::from_str(text)).err()?;
    error.location().map(|l| (l.line(), l.column()))
}

/// The path that is left to go, and how many times its last key is passed by.
struct Seek<'a>(&'a [PathStep], usize);

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
        let Some((PathStep::Index(i), rest)) = self.0.split_first() else {
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
            let matches = matches!(step, PathStep::Key(k) if *k == key);
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
