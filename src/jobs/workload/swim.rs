//! SWIM's job traces, read and written.
//!
//! ```text
//! <job> <submitted s> <gap to the previous job s> <map input bytes> <shuffle bytes> <reduce output bytes> [<path> ..]
//! ```
//!
//! The fields are separated by tabs. The gap is read and not used: it repeats the times of
//! submission. Source: the workload repository of <https://github.com/SWIMProjectUCB/SWIM>. What a
//! row does not say (tasks and their times) comes from a [`super::job_model::JobModel`].

use std::fmt::Write as _;

use super::words::Words;
use super::{TraceError, lines};
use crate::text;
use crate::units::{Bytes, Span, Time};

/// The most bytes of a field: one petabyte.
const MAX_BYTES: u64 = 1_000_000_000_000_000;
/// The latest submission, in seconds (about thirty years).
const MAX_SECONDS: u64 = 1_000_000_000;

/// What a trace says of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwimJob {
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

/// What speaks against this format, by a text's first row; a fault in one of its numbers does not.
///
/// # Errors
/// In words.
pub fn fits(text: &str) -> Result<(), String> {
    let first = lines(text).next().map_or("", |l| l.1);
    let fields: Vec<&str> = first.split('\t').map(str::trim).collect();
    let number = |f: &&&str| !f.is_empty() && f.bytes().all(|b| b.is_ascii_digit());
    match fields.get(1..6) {
        Some(numbers) if fields.len() <= 9 && numbers.iter().filter(number).count() >= 3 => Ok(()),
        _ => Err("a row has six to nine fields between tabs, the second to the sixth of them whole numbers".into()),
    }
}

/// Reads a trace. O(length of the text).
///
/// # Errors
/// The first fault, with line and column, and what is allowed there.
pub fn parse(text: &str) -> Result<Vec<SwimJob>, TraceError> {
    lines(text).map(|(n, line)| row(&mut Words::new(n, line))).collect()
}

fn row(words: &mut Words) -> Result<SwimJob, TraceError> {
    let (column, name) = words.next();
    if name.is_empty() {
        return Err(words.wrong(column, name, "a job's name"));
    }
    if let Some(why) = text::flaw_of_name(name) {
        return Err(words.fault(column, why));
    }
    let seconds = words.integer("the time of submission in seconds", 0, MAX_SECONDS)?;
    words.integer("the gap to the previous job in seconds", 0, MAX_SECONDS)?;
    let mut bytes = |what| words.integer(what, 0, MAX_BYTES).map(Bytes);
    let (input, shuffle) = (bytes("the map input in bytes")?, bytes("the shuffle in bytes")?);
    let output = bytes("the output in bytes")?;
    // Where it read and wrote, and what some traces have behind that.
    for _ in 0..3 {
        words.next();
    }
    words.end()?;
    Ok(SwimJob {
        name: name.into(),
        arrival: Time::ZERO + Span::secs(seconds),
        input,
        shuffle,
        output,
    })
}

/// Rows, by arrival, as text; arrivals are cut to whole seconds, and blanks in names become
/// underscores.
pub fn write(rows: &[SwimJob]) -> String {
    let (mut out, mut last) = (String::new(), 0);
    for r in rows {
        let at = r.arrival.since(Time::ZERO).std().as_secs();
        let name: String =
            r.name.chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect();
        let gap = at.saturating_sub(last);
        let _ =
            writeln!(out, "{name}\t{at}\t{gap}\t{}\t{}\t{}", r.input.0, r.shuffle.0, r.output.0);
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
        assert!(
            fits(text).is_ok() && fits("1 2 3 4 5 6").is_err() && fits("a\tb\tc\td\te\tf").is_err()
        );
        // Published with six, seven, eight and nine fields.
        for ends in ["", "\t/in/a", "\t/in/a\t/out/a", "\t/in/a\t\t"] {
            let text = format!("# head\n\njobA\t5\t5\t2000000\t500000\t900000{ends}\n");
            assert!(fits(&text).is_ok(), "{text:?}");
            assert_eq!(parse(&text).unwrap()[0].output, Bytes(900_000), "{text:?}");
        }
        assert!(fits("j\t1\tx\t1\t1\t1").is_ok(), "a fault in a number leaves the format");
        let rows = parse(text).unwrap();
        assert_eq!(
            (rows[0].name.as_str(), rows[0].arrival, rows[0].shuffle),
            ("job0", Time(49_000_000_000), Bytes(2_339_561))
        );
        assert_eq!(
            (rows[1].input, rows[1].shuffle, rows[1].output),
            (Bytes(7), Bytes(0), Bytes(9))
        );
        for (text, at, says) in [
            ("j\t1\t1\t1\t1\n", (1, 10), "the output in bytes"),
            ("j\t1\t1\t1\t1\t1\tp\tx\ty\tz\n", (1, 19), "end of the line"),
            ("j\u{202e}k\t1\t1\t1\t1\t1\n", (1, 1), "cannot be seen, U+202E"),
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
        let Some(dir) = crate::testing::traces("SWIM") else { return };
        for (file, jobs) in [
            ("FB-2009_samples_24_times_1hr_0.tsv", 5894),
            ("FB-2010_samples_24_times_1hr_0.tsv", 24_442),
        ] {
            let text = std::fs::read_to_string(dir.join(file)).unwrap();
            assert!(fits(&text).is_ok());
            assert_eq!(parse(&text).unwrap().len(), jobs, "{file}");
        }
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn never_panics(s in "([a-z0-9]{1,3}[\t \n-]){0,40}\\PC{0,20}") {
            let _ = (fits(&s), parse(&s));
        }

        #[test]
        fn what_is_written_is_read_back(raw in prop::collection::vec(("[a-z]{1,5}", 0u64..9999, 0u64..1 << 49, 0u64..1 << 49), 0..9)) {
            let row = |(name, at, a, b): (String, u64, u64, u64)| {
                SwimJob { name, arrival: Time::ZERO + Span::secs(at), input: Bytes(a), shuffle: Bytes(b), output: Bytes(a / 3) }
            };
            let mut rows: Vec<SwimJob> = raw.into_iter().map(row).collect();
            rows.sort_by_key(|r| r.arrival);
            prop_assert_eq!(parse(&write(&rows)), Ok(rows));
        }
    }
}
