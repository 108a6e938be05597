//! What is wrong with a file, where, and what is allowed.

use std::fmt;

use crate::text;

/// One step of a path through a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// Into a mapping, by key.
    Key(String),
    /// Into a sequence, by position from zero.
    Index(usize),
}

impl From<&str> for PathStep {
    fn from(s: &str) -> Self {
        Self::Key(s.into())
    }
}
impl From<usize> for PathStep {
    fn from(i: usize) -> Self {
        Self::Index(i)
    }
}

/// A path as people read it: `ocs[0].rate`; empty for the document itself.
pub fn show_path(path: &[PathStep]) -> String {
    let mut s = String::new();
    for step in path {
        match step {
            PathStep::Key(k) if s.is_empty() => s.push_str(&text::shown(k)),
            PathStep::Key(k) => {
                s.push('.');
                s.push_str(&text::shown(k));
            }
            PathStep::Index(i) => s.push_str(&format!("[{i}]")),
        }
    }
    s
}

/// A path as a JSON pointer (RFC 6901): `/ocs/0/rate`; empty for the document itself.
pub fn pointer(path: &[PathStep]) -> String {
    let part = |step: &PathStep| match step {
        PathStep::Key(k) => format!("/{}", k.replace('~', "~0").replace('/', "~1")),
        PathStep::Index(i) => format!("/{i}"),
    };
    path.iter().map(part).collect()
}

/// A value that is well formed and makes no sense. Knows its path, not its place in a text, so that
/// the same check serves YAML files and JSON requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The place in the document.
    pub path: Vec<PathStep>,
    /// What is wrong.
    pub message: String,
    /// What is allowed.
    pub allowed: String,
}

impl Flaw {
    /// The flaw's place as a JSON pointer.
    pub fn pointer(&self) -> String {
        pointer(&self.path)
    }
}

/// Collects flaws while a raw shape is checked.
#[derive(Default)]
pub(super) struct Flaws(pub Vec<Flaw>);

impl Flaws {
    /// Notes a flaw.
    pub fn add(
        &mut self,
        path: Vec<PathStep>,
        message: impl Into<String>,
        allowed: impl Into<String>,
    ) {
        self.0.push(Flaw { path, message: message.into(), allowed: allowed.into() });
    }

    /// Notes a flaw unless `ok`.
    pub fn unless(
        &mut self,
        ok: bool,
        path: Vec<PathStep>,
        message: impl Into<String>,
        allowed: impl Into<String>,
    ) {
        if !ok {
            self.add(path, message, allowed);
        }
    }

    /// The value, if nothing was noted.
    pub fn done<T>(self, value: impl FnOnce() -> T) -> Result<T, Vec<Flaw>> {
        if self.0.is_empty() { Ok(value()) } else { Err(self.0) }
    }
}

/// One thing that is wrong in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    /// Line, from 1; 0 when the problem is not at one place.
    pub line: usize,
    /// Column in characters, from 1; 0 when the problem is not at one place.
    pub column: usize,
    /// The path of the key.
    pub path: Vec<PathStep>,
    /// What is wrong.
    pub message: String,
    /// What is allowed; empty if the message says it.
    pub allowed: String,
    /// The line itself, for showing.
    pub source: String,
}

/// A file that cannot be used, and everything known to be wrong with it (never empty).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file's name as given.
    pub file: String,
    /// What is wrong, in the order of the text.
    pub problems: Vec<FileProblem>,
}

/// Characters of a line that is shown whole; of a longer one, how many are shown before its fault,
/// and behind.
const EXCERPT: usize = 200;
const AROUND: usize = 40;
/// Errors of one file that are shown; of the others only their number.
const SHOWN: usize = 8;

impl std::error::Error for ConfigError {}

impl ConfigError {
    /// One problem at a line and column (from 1) of `text`.
    pub fn at(
        text: &str,
        file: &str,
        (line, column): (usize, usize),
        message: impl Into<String>,
        allowed: impl Into<String>,
    ) -> Self {
        let source = super::yaml::source_line(text, line);
        let problem = FileProblem {
            line,
            column,
            path: vec![],
            message: message.into(),
            allowed: allowed.into(),
            source,
        };
        Self { file: file.into(), problems: vec![problem] }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, p) in self.problems.iter().take(SHOWN).enumerate() {
            if k > 0 {
                writeln!(f)?;
            }
            p.show(&self.file, f)?;
        }
        match self.problems.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more if self.problems.len() < super::yaml::MAX_FLAWS => write!(f, "\nand {more} more"),
            more => write!(f, "\nand {more} more at least"),
        }
    }
}

impl FileProblem {
    /// `file:line:col: path: message`, then the line with a caret, then what is allowed.
    fn show(&self, file: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::escaped(file))?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        if !file.is_empty() {
            f.write_str(": ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", show_path(&self.path))?;
        }
        f.write_str(&text::told(&self.message))?;
        if self.line > 0 {
            let (margin, (source, pad)) = (self.line.to_string().len(), self.excerpt());
            write!(f, "\n {} | {source}\n {:margin$} | {pad}^", self.line, "")?;
        }
        if !self.allowed.is_empty() {
            write!(f, "\n   allowed: {}", text::lines_escaped(&self.allowed))?;
        }
        Ok(())
    }

    /// The line, or of a long one what is around the column; and what goes before the caret. Tabs
    /// stay tabs, so that it is in its place.
    fn excerpt(&self) -> (String, String) {
        let (length, column) = (self.source.chars().count(), self.column.saturating_sub(1));
        let (from, most) = if length <= EXCERPT {
            (0, length)
        } else {
            (column.saturating_sub(AROUND), 2 * AROUND)
        };
        let part = |from: usize, most: usize| {
            self.source.chars().skip(from).take(most).collect::<String>()
        };
        let shown = |text: &str| {
            text.split('\t').map(|t| text::escaped(t).into_owned()).collect::<Vec<_>>().join("\t")
        };
        let before = shown(&part(from, column - from.min(column)));
        let [begin, end] = [from > 0, from + most < length].map(|cut| if cut { ".." } else { "" });
        let pad = begin
            .chars()
            .chain(before.chars())
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        (format!("{begin}{}{end}", shown(&part(from, most))), pad)
    }
}
