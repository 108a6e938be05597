//! Sunflow's form of the coflow-benchmark's trace.
//!
//! ```text
//! <id> <arrival ms> <mappers> <reducers> <port>,..#<port>:<megabytes>,..
//! ```
//!
//! Five fields between tabs, no first line. MB = 10^6 bytes; a reducer's megabytes come in equal
//! parts from its coflow's mappers. There are as many ports as the largest number of one asks for.
//! Source: `trace/fbtrace-1hr.txt` and its reader, `src/trafficGen.cc`, of
//! <https://github.com/sunnyxhuang/sunflow>. That one cuts decimals off; they are read here.

use super::coflow_benchmark::{MAX_ARRIVAL_MS, Trace, TraceCoflow, megabytes};
use super::words::Words;
use super::{TraceError, lines};

/// The greatest number of a port.
const MAX_PORT: u64 = 99_999;

/// What speaks against this format, by a text's first line.
///
/// # Errors
/// In words.
pub fn fits(text: &str) -> Result<(), String> {
    let first = lines(text).next().map_or("", |l| l.1);
    let words: Vec<&str> = first.split_ascii_whitespace().collect();
    match words[..] {
        [.., last] if words.len() == 5 && last.contains('#') && last.contains(':') => Ok(()),
        _ => Err("a coflow is five fields between tabs, the last such as 0,3#7:2.5".into()),
    }
}

/// Reads a trace. O(length of the text).
///
/// # Errors
/// The first fault, with line and column, and what is allowed there.
pub fn parse(text: &str) -> Result<Trace, TraceError> {
    let coflows = lines(text)
        .map(|(n, line)| coflow(&mut Words::new(n, line)))
        .collect::<Result<Vec<_>, _>>()?;
    let used =
        |c: &TraceCoflow| c.mappers.iter().copied().chain(c.reducers.iter().map(|r| r.0)).max();
    let ports = coflows.iter().filter_map(used).max().map_or(1, |p| p + 1);
    Ok(Trace { ports, coflows })
}

fn coflow(words: &mut Words) -> Result<TraceCoflow, TraceError> {
    let id = words.integer("a coflow's number", 0, u64::MAX)?;
    let arrival_ms = words.integer("the arrival in milliseconds", 0, MAX_ARRIVAL_MS)?;
    let senders = words.integer("the number of mappers", 1, u64::from(u32::MAX))?;
    let receivers = words.integer("the number of reducers", 1, u64::from(u32::MAX))?;
    let (column, word) = words.next();
    let what = "the ports of mappers, #, and reducers as port:megabytes, such as 0,3#7:2.5,";
    let (from, to) = word.split_once('#').ok_or_else(|| words.wrong(column, word, what))?;
    words.end()?;
    let (mut at, mut mappers, mut reducers) = (column, vec![], vec![]);
    for port in from.split(',') {
        mappers.push(words.integer_in(
            at,
            port,
            &format!("a mapper's port (0 to {MAX_PORT})"),
            0,
            MAX_PORT,
        )?);
        at += port.chars().count() + 1;
    }
    for reducer in to.split(',') {
        let (port, size) = reducer.split_once(':').ok_or_else(|| {
            words.wrong(at, reducer, "a reducer as port:megabytes, such as 7:2.5,")
        })?;
        let port = words.integer_in(
            at,
            port,
            &format!("a reducer's port (0 to {MAX_PORT})"),
            0,
            MAX_PORT,
        )?;
        let bytes = megabytes(size).ok_or_else(|| {
            words.wrong(at, size, "megabytes (at most six decimals, at most 1e9)")
        })?;
        reducers.push((port, bytes));
        at += reducer.chars().count() + 1;
    }
    for (announced, found, who) in
        [(senders, mappers.len(), "mappers"), (receivers, reducers.len(), "reducers")]
    {
        if announced != found as u64 {
            return Err(words
                .fault(column, format!("{announced} {who} are announced, and here are {found}")));
        }
    }
    Ok(TraceCoflow { id, arrival_ms, mappers, reducers })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::Bytes;

    #[test]
    fn coflows_are_read_and_faults_have_a_place() {
        let text = "# by hand\n1\t0\t1\t1\t0#2:1.0\n2\t5\t2\t1\t0,1#3:4.5\n";
        assert_eq!(fits(text), Ok(()));
        let t = parse(text).unwrap();
        assert_eq!((t.ports, t.coflows.len(), t.coflows[1].arrival_ms), (4, 2, 5));
        assert_eq!(
            (&t.coflows[1].mappers[..], &t.coflows[1].reducers[..]),
            (&[0, 1][..], &[(3, Bytes(4_500_000))][..])
        );
        for (text, at, says) in [
            ("1\t0\t1\t1\t0,1#2:1.0\n", (1, 9), "1 mappers are announced, and here are 2"),
            ("1\t0\t1\t2\t0#2:1.0,3\n", (1, 17), "a reducer as port:megabytes"),
            ("1\t0\t1\t1\tx#2:1.0\n", (1, 9), "a mapper's port"),
            ("1\t0\t1\t1\t0#2:1.0\n\n2\t1\t1\t1\t0:2\n", (3, 9), "the ports of mappers, #"),
        ] {
            let e = parse(text).unwrap_err();
            assert!((e.line, e.column) == at && e.why.contains(says), "{text:?}: {e}");
        }
        assert!(fits("4 1\n1 0 1 0 1 2:1.0\n").is_err());
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn never_panics(s in "([0-9]{1,3}[\t,#:.\n]){0,40}\\PC{0,20}") {
            let _ = (fits(&s), parse(&s));
        }
    }
}
