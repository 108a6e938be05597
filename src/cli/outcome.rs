//! A run of coflows as it is printed: its coflows, its sums, and what a reader must know before
//! they are believed.

use super::summary::{self, Shown};
use super::tables::{TextTable, bytes, coflows_exact, json, percent, ratio, span};
use super::{OutputFormat, study};
use crate::runtime::report::RunResult;
use crate::runtime::report::caveats::{Caveat, lines};

/// A run as `run` and `simulate` print it.
///
/// Table: the coflows, then what was run and the sums. JSON: the whole [`RunResult`]. CSV: the
/// coflows in base units (bytes, nanoseconds), so that nothing is lost. With `--summary`, all but
/// the coflows.
pub fn run_result(result: &RunResult, shown: Shown) -> String {
    let about = || {
        format!(
            "{}\n{}\n{}",
            summary::caption(result),
            summary::summary(&result.summary).table(),
            remarks(result)
        )
    };
    match (shown.output, shown.summary) {
        (OutputFormat::Table, false) => format!("{}\n\n{}", coflows(result).table(), about()),
        (OutputFormat::Table, true) => about(),
        (OutputFormat::Json, false) => json(result),
        (OutputFormat::Csv, false) => coflows_exact(&result.coflows).csv(),
        (output, true) => summary::for_programs(result, output),
    }
}

/// What a reader must know before the figures are believed: coflows that were lost, and a network
/// that another process changed.
fn remarks(result: &RunResult) -> String {
    let lost = result
        .coflows
        .iter()
        .filter_map(|c| Some(format!("\n{} was lost: {}\n", c.name, c.lost.as_ref()?)));
    lost.chain([caveats(&result.caveats)]).collect()
}

/// Why a run is not what its name says, below its table.
pub fn caveats(all: &[Caveat]) -> String {
    if all.is_empty() { String::new() } else { format!("\n{}", lines(all)) }
}

/// A run beside the same workload with circuits off, for people; of coflows nothing if only sums
/// are wanted.
pub fn with_baseline(off: &RunResult, on: &RunResult, summary: bool) -> String {
    let mut rows = coflows(on);
    rows.header.extend(["circuits off", "speed-up"].map(Into::into));
    for (row, (a, b)) in rows.rows.iter_mut().zip(on.coflows.iter().zip(&off.coflows)) {
        row.push(b.cct.map_or("unfinished".into(), span));
        let gain = a.cct.zip(b.cct).and_then(|(a, b)| ratio(b, a));
        row.push(gain.map_or("-".into(), |g| format!("{g:.2}x")));
    }
    let coflows = if summary { String::new() } else { format!("{}\n\n", rows.table()) };
    let sums = summary::of_runs(&[("with circuits", &on.summary), ("circuits off", &off.summary)]);
    let both: String =
        study::caveat_lines(&[("with circuits", &on.caveats), ("circuits off", &off.caveats)]);
    let both = if both.is_empty() { both } else { format!("\n{both}") };
    let lost = |r: &RunResult| remarks(&RunResult { caveats: vec![], ..r.clone() });
    format!("{coflows}{}\n{}\n{}{}{both}", summary::caption(on), sums.table(), lost(on), lost(off))
}

/// The coflows of a run, for people. Where no circuit was set, none has a share over circuits.
pub fn coflows(result: &RunResult) -> TextTable {
    let lit = summary::has_circuits(&result.summary);
    let mut rows =
        TextTable::new(&["coflow", "flows", "bytes", "OCS share", "CCT", "bound", "CCT/bound"]);
    rows.header.retain(|column| lit || column != "OCS share");
    for c in &result.coflows {
        let mut row = vec![c.name.clone(), c.flows.to_string(), bytes(c.bytes)];
        row.extend(lit.then(|| percent(c.ocs_share)));
        row.push(c.cct.map_or(if c.lost.is_some() { "lost" } else { "unfinished" }.into(), span));
        row.push(span(c.bound));
        row.push(
            c.cct.and_then(|cct| ratio(cct, c.bound)).map_or("-".into(), |r| format!("{r:.2}")),
        );
        rows.rows.push(row);
    }
    rows
}
