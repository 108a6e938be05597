//! A run of coflows as it is printed: its coflows, its sums, and what a reader must know before they are believed.

use super::Output;
use super::sums::{self, Shown};
use super::tables::{Rows, bytes, coflows_exact, json, percent, ratio, span};
use crate::control::record::Tampered;
use crate::runtime::report::RunResult;
use crate::units::Span;

/// A run as `run` and `simulate` print it.
///
/// Table: the coflows, then what was run and the sums. JSON: the whole [`RunResult`]. CSV: the coflows in base units (bytes, nanoseconds),
/// so that nothing is lost. With `--summary`, all but the coflows.
pub fn run_result(result: &RunResult, shown: Shown) -> String {
    let about = || format!("{}\n{}\n{}", sums::caption(result), sums::summary(&result.summary).table(), remarks(result));
    match (shown.output, shown.summary) {
        (Output::Table, false) => format!("{}\n\n{}", coflows(result).table(), about()),
        (Output::Table, true) => about(),
        (Output::Json, false) => json(result),
        (Output::Csv, false) => coflows_exact(&result.coflows).csv(),
        (output, true) => sums::for_programs(result, output),
    }
}

/// What a reader must know before the figures are believed: coflows that were lost, and a network that another process changed.
fn remarks(result: &RunResult) -> String {
    let lost = result.coflows.iter().filter_map(|c| Some(format!("\n{} was lost: {}\n", c.name, c.lost.as_ref()?)));
    lost.chain([tampered(result.tampered.as_ref()), first_fallback(result.summary.stats.first_fallback.as_ref())]).collect()
}

/// Why a program did not decide, where it did not.
pub fn first_fallback(why: Option<&String>) -> String {
    why.map_or(String::new(), |why| format!("\nthe fallback decided, the first time since: {why}\n"))
}

/// That another process changed the network under a run, if it did.
pub fn tampered(tampered: Option<&Tampered>) -> String {
    tampered.map_or(String::new(), |t| {
        let (from, until) = (span(Span(t.from.0)), span(Span(t.until.0)));
        format!("\nthe network was tampered with, from {from} until {until}, {} times; first: {}\n", t.found, t.what)
    })
}

/// A run beside the same workload with circuits off, for people; of coflows nothing if only sums are wanted.
pub fn with_baseline(off: &RunResult, on: &RunResult, summary: bool) -> String {
    let mut rows = coflows(on);
    rows.header.extend(["circuits off", "speed-up"].map(Into::into));
    for (row, (a, b)) in rows.rows.iter_mut().zip(on.coflows.iter().zip(&off.coflows)) {
        row.push(b.cct.map_or("unfinished".into(), span));
        let gain = a.cct.zip(b.cct).and_then(|(a, b)| ratio(b, a));
        row.push(gain.map_or("-".into(), |g| format!("{g:.2}x")));
    }
    let coflows = if summary { String::new() } else { format!("{}\n\n", rows.table()) };
    let sums = sums::of_runs(&[("with circuits", &on.summary), ("circuits off", &off.summary)]);
    format!("{coflows}{}\n{}\n{}{}", sums::caption(on), sums.table(), remarks(on), remarks(off))
}

/// The coflows of a run, for people. Where no circuit was set, none has a share over circuits.
pub fn coflows(result: &RunResult) -> Rows {
    let lit = sums::has_circuits(&result.summary);
    let mut rows = Rows::new(&["coflow", "flows", "bytes", "OCS share", "CCT", "bound", "CCT/bound"]);
    rows.header.retain(|column| lit || column != "OCS share");
    for c in &result.coflows {
        let mut row = vec![c.name.clone(), c.flows.to_string(), bytes(c.bytes)];
        row.extend(lit.then(|| percent(c.ocs_share)));
        row.push(c.cct.map_or(if c.lost.is_some() { "lost" } else { "unfinished" }.into(), span));
        row.push(span(c.bound));
        row.push(c.cct.and_then(|cct| ratio(cct, c.bound)).map_or("-".into(), |r| format!("{r:.2}")));
        rows.rows.push(row);
    }
    rows
}
