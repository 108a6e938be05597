//! The words of a line with their columns: what every reader of a trace is made of.

use super::TraceError;
use crate::text;

/// The words of one line with their columns.
#[derive(Clone)]
pub(super) struct Words<'a> {
    line: usize,
    text: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    /// Line `line` (from one).
    pub fn new(line: usize, text: &'a str) -> Self {
        Self { line, text, at: 0 }
    }

    /// The line's number.
    pub fn line(&self) -> usize {
        self.line
    }

    /// A fault at a column of this line.
    pub fn fault(&self, column: usize, why: String) -> TraceError {
        TraceError { line: self.line, column, why }
    }

    /// The column of a byte position, in characters from one.
    fn column(&self, byte: usize) -> usize {
        self.text[..byte].chars().count() + 1
    }

    /// The next word and its column; an empty word at the end of the line.
    pub fn next(&mut self) -> (usize, &'a str) {
        let rest = &self.text[self.at..];
        let start = self.at + rest.find(|c: char| !c.is_ascii_whitespace()).unwrap_or(rest.len());
        let rest = &self.text[start..];
        let end = start + rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
        self.at = end;
        (self.column(start), &self.text[start..end])
    }

    /// The next word and its column, which stays the next.
    pub fn peek(&mut self) -> (usize, &'a str) {
        let at = self.at;
        let next = self.next();
        self.at = at;
        next
    }

    /// A fault that says what must be here.
    pub fn wrong(&self, column: usize, word: &str, what: &str) -> TraceError {
        let found = if word.is_empty() {
            "the line ends".into()
        } else {
            format!("found `{}`", text::shown(word))
        };
        self.fault(column, format!("{what} must be here, but {found}"))
    }

    /// The next word as a whole number.
    pub fn integer(&mut self, what: &str, min: u64, max: u64) -> Result<u64, TraceError> {
        let (column, word) = self.next();
        self.integer_in(column, word, &format!("{what} ({min} to {max})"), min, max)
    }

    /// A word as a whole number.
    pub fn integer_in(
        &self,
        column: usize,
        word: &str,
        what: &str,
        min: u64,
        max: u64,
    ) -> Result<u64, TraceError> {
        let digits = word.bytes().all(|b| b.is_ascii_digit());
        let value = word.parse().ok().filter(|v| digits && (min..=max).contains(v));
        value.ok_or_else(|| self.wrong(column, word, what))
    }

    /// Proves that nothing is left.
    pub fn end(&mut self) -> Result<(), TraceError> {
        let (column, word) = self.next();
        if word.is_empty() { Ok(()) } else { Err(self.wrong(column, word, "the end of the line")) }
    }

    /// Whether no word is left.
    pub fn is_done(&self) -> bool {
        self.text[self.at..].trim_ascii().is_empty()
    }
}
