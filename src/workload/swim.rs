//! SWIM's job traces, read and written.
//!
//! ```text
//! <job> <submitted s> <gap to the previous job s> <map input bytes> <shuffle bytes> <reduce output bytes> [<input path>]
//! ```
//!
//! The fields are separated by tabs. The gap is read and not used: it repeats the times of submission. Source: the workload
//! repository of <https://github.com/SWIMProjectUCB/SWIM>. What a row does not say (tasks and their times) comes from a
//! [`super::job_model::JobModel`].

use std::fmt::Write as _;

use super::TraceError;
use super::words::Words;
use crate::units::{Bytes, Span, Time};

/// The most bytes of a field: one petabyte.
const MAX_BYTES: u64 = 1_000_000_000_000_000;
/// The latest submission, in seconds (about thirty years).
const MAX_SECONDS: u64 = 1_000_000_000;

/// What a trace says of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What people call it.
    pub name: String,
    /// When it is submitted.
    pub arrival: Time,
    /// Bytes that its map tasks read.
    pub input: Bytes,
    /// Bytes from its map tasks to its reduce tasks.
    pub shuffle: Bytes,
    /// Bytes that it writes.
    pub output: Bytes,
}

/// Whether a text's first row has the form of this format.
pub fn looks_like(text: &str) -> bool {
    let first = text.lines().find(|l| !l.trim().is_empty()).unwrap_or("");
    let fields: Vec<&str> = first.split('\t').map(str::trim).collect();
    let number = |f: &&str| !f.is_empty() && f.bytes().all(|b| b.is_ascii_digit());
    (6..=7).contains(&fields.len()) && fields[1..6].iter().all(number)
}

/// Reads a trace. O(length of the text).
///
/// # Errors
/// The first fault, with line and column, and what is allowed there.
pub fn parse(text: &str) -> Result<Vec<Row>, TraceError> {
    let lines = text.lines().enumerate().filter(|l| !l.1.trim().is_empty());
    lines.map(|(k, line)| row(&mut Words::new(k + 1, line))).collect()
}

fn row(words: &mut Words) -> Result<Row, TraceError> {
    let (column, name) = words.next();
    if name.is_empty() {
        return Err(words.wrong(column, name, "a job's name"));
    }
    let seconds = words.integer("the time of submission in seconds", 0, MAX_SECONDS)?;
    words.integer("the gap to the previous job in seconds", 0, MAX_SECONDS)?;
    let mut bytes = |what| words.integer(what, 0, MAX_BYTES).map(Bytes);
    let (input, shuffle) = (bytes("the map input in bytes")?, bytes("the shuffle in bytes")?);
    let output = bytes("the output in bytes")?;
    // A seventh field names the input.
    words.next();
    words.end()?;
    Ok(Row { name: name.into(), arrival: Time::ZERO + Span::secs(seconds), input, shuffle, output })
}

/// Rows, by arrival, as text; arrivals are cut to whole seconds, and blanks in names become underscores.
pub fn write(rows: &[Row]) -> String {
    let (mut out, mut last) = (String::new(), 0);
    for r in rows {
        let at = r.arrival.since(Time::ZERO).std().as_secs();
        let name: String = r.name.chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect();
        let gap = at.saturating_sub(last);
        let _ = writeln!(out, "{name}\t{at}\t{gap}\t{}\t{}\t{}", r.input.0, r.shuffle.0, r.output.0);
        last = at;
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rows_are_read() {
        let text = "job0\t49\t49\t740773\t2339561\t627471\n\njob1\t101\t52\t7\t0\t9\t/path/a\n";
        assert!(looks_like(text) && !looks_like("1 2 3 4 5 6") && !looks_like("a\tb\tc\td\te\tf"));
        let rows = parse(text).unwrap();
        assert_eq!((rows[0].name.as_str(), rows[0].arrival, rows[0].shuffle), ("job0", Time(49_000_000_000), Bytes(2_339_561)));
        assert_eq!((rows[1].input, rows[1].shuffle, rows[1].output), (Bytes(7), Bytes(0), Bytes(9)));
        for (text, at, says) in [
            ("j\t1\t1\t1\t1\n", (1, 10), "the output in bytes"),
            ("j\t1\t1\t1\t1\t1\tp\tx\n", (1, 15), "end of the line"),
            ("a\t0\t0\t1\t1\t1\nj\t-1\t0\t1\t1\t1\n", (2, 3), "time of submission"),
            ("j\t1\t1\t9999999999999999999\t1\t1\n", (1, 7), "map input"),
        ] {
            let e = parse(text).unwrap_err();
            assert_eq!((e.line, e.column), at, "{text:?}: {e}");
            assert!(e.why.contains(says), "{e}");
        }
    }

    #[test]
    fn the_shared_traces_are_read() {
        let Some(dir) = super::super::tests::traces("SWIM") else { return };
        for (file, jobs) in [("FB-2009_samples_24_times_1hr_0.tsv", 5894), ("FB-2010_samples_24_times_1hr_0.tsv", 24_442)] {
            let text = std::fs::read_to_string(dir.join(file)).unwrap();
            assert!(looks_like(&text));
            assert_eq!(parse(&text).unwrap().len(), jobs, "{file}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(s in "([a-z0-9]{1,3}[\t \n-]){0,40}\\PC{0,20}") {
            let _ = (looks_like(&s), parse(&s));
        }

        #[test]
        fn what_is_written_is_read_back(raw in prop::collection::vec(("[a-z]{1,5}", 0u64..9999, 0u64..1 << 49, 0u64..1 << 49), 0..9)) {
            let row = |(name, at, a, b): (String, u64, u64, u64)| {
                Row { name, arrival: Time::ZERO + Span::secs(at), input: Bytes(a), shuffle: Bytes(b), output: Bytes(a / 3) }
            };
            let mut rows: Vec<Row> = raw.into_iter().map(row).collect();
            rows.sort_by_key(|r| r.arrival);
            prop_assert_eq!(parse(&write(&rows)), Ok(rows));
        }
    }
}
