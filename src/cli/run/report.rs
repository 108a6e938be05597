//! What a run of one policy prints and writes.

use std::path::Path;

use super::Args;
use crate::cli::{CliError, OutputFormat, outcome, print, tables, write_text};
use crate::runtime::report::RunResult;

/// Prints the last of the results, or both where the first is of circuits off, and writes them.
///
/// # Errors
/// When they cannot be written.
pub fn report(args: &Args, results: &[RunResult]) -> Result<(), CliError> {
    let last = results.last().expect("at least one run");
    match (results, args.shown.output) {
        ([off, on], OutputFormat::Table) => {
            print(&outcome::with_baseline(off, on, args.shown.summary))?
        }
        _ => print(&outcome::run_result(last, args.shown))?,
    }
    if let Some(file) = &args.json {
        write_results(file, results)?;
    }
    Ok(())
}

/// One run is an object; with a baseline, the baseline stands beside it.
fn write_results(file: &Path, results: &[RunResult]) -> Result<(), CliError> {
    #[derive(serde::Serialize)]
    struct WithBaseline<'a> {
        #[serde(flatten)]
        on: &'a RunResult,
        baseline: &'a RunResult,
    }
    write_text(
        file,
        &match results {
            [baseline, on] => tables::json(&WithBaseline { on, baseline }),
            _ => tables::json(results.last().expect("at least one run")),
        },
    )
}
