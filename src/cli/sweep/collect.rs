//! One table of all results of a sweep.

use std::path::Path;

use super::RowsOf;
use super::runs::{SweepRun, SweepRunState};
use crate::cli::log::say;
use crate::cli::tables::{self, TextTable};
use crate::cli::{CliError, can_write, jobs, read_text, results, write_text};
use crate::runtime::report::RunEnd;
use crate::runtime::report::caveats::kinds;
use crate::runtime::study::{AnyResult, Figure, FigureUnit, RunAccount};

/// Writes the table to a file: CSV or JSON lines by its name.
///
/// # Errors
/// Another name, results that cannot be read, and a file that cannot be written.
pub fn write(file: &Path, runs: &[&SweepRun], out: &Path, of: RowsOf) -> Result<(), CliError> {
    let text: fn(&TextTable) -> String = match file.extension().and_then(|e| e.to_str()) {
        Some("csv") => TextTable::csv,
        Some("jsonl") => TextTable::json_lines,
        _ => {
            return Err(CliError::Usage(format!(
                "--collect {}: the name must end in .csv or .jsonl",
                file.display()
            )));
        }
    };
    can_write([file])?;
    let rows = match of {
        RowsOf::Runs => by_run(runs, out)?,
        RowsOf::Coflows | RowsOf::Jobs => within(runs, out, of)?,
    };
    write_text(file, &text(&rows))?;
    let count = |state: SweepRunState| runs.iter().filter(|r| r.state(out) == state).count();
    let (failed, missing) = (count(SweepRunState::Failed), count(SweepRunState::Missing));
    say!(
        "{}: {} rows of {} runs; {failed} failed, {missing} missing",
        file.display(),
        rows.rows.len(),
        runs.len()
    );
    Ok(())
}

/// The result of a run, if it is there.
///
/// # Errors
/// A file that is no result.
pub fn result(run: &SweepRun, out: &Path) -> Result<Option<AnyResult>, CliError> {
    if run.state(out) != SweepRunState::Done {
        return Ok(None);
    }
    Ok(results::read(&run.result(out))?.into_iter().next())
}

/// A row a run: what it is, what became of it, and its sums.
fn by_run(runs: &[&SweepRun], out: &Path) -> Result<TextTable, CliError> {
    let mut figures: Vec<String> = vec![];
    let mut rows = vec![];
    for run in runs {
        let state = run.state(out);
        let error = if state == SweepRunState::Failed {
            read_text(&run.error(out)).unwrap_or_default()
        } else {
            String::new()
        };
        let mut row: Vec<String> = run
            .columns()
            .into_iter()
            .map(|c| c.1)
            .chain([state.word().into(), error.trim().into()])
            .collect();
        if let Some(result) = result(run, out)? {
            let account = RunAccount::from(&result);
            row.push(end(&result));
            row.extend(account.figures().iter().map(value));
            row.extend([fallbacks(&result).to_string(), kinds(result.caveats())]);
            figures = account.figures().iter().map(|f| f.key.to_owned()).collect();
        }
        rows.push(row);
    }
    let about: Vec<String> =
        runs.first().map(|r| r.columns().into_iter().map(|c| c.0).collect()).unwrap_or_default();
    let header = [
        about,
        ["state", "error", "end"].map(str::to_owned).to_vec(),
        figures,
        ["fallbacks", "caveats"].map(str::to_owned).to_vec(),
    ]
    .concat();
    rows.iter_mut().for_each(|row| row.resize(header.len(), String::new()));
    Ok(TextTable { header, rows })
}

fn end(result: &AnyResult) -> String {
    let end: RunEnd = match result {
        AnyResult::Coflows(r) => r.end,
        AnyResult::Jobs(r) => r.end,
    };
    tables::word(&end)
}

/// Decisions that a fallback made: about circuits, and of jobs about slots.
fn fallbacks(result: &AnyResult) -> u64 {
    match result {
        AnyResult::Coflows(r) => r.summary.stats.fallbacks,
        AnyResult::Jobs(r) => {
            r.network.stats.fallbacks.saturating_add(r.summary.counters.fallbacks)
        }
    }
}

/// A figure in its base unit. Whole nanoseconds and bytes come back from their floating point
/// unless there are more than 2^53 of them.
fn value(f: &Figure) -> String {
    match f.unit {
        FigureUnit::Seconds | FigureUnit::Gigabytes => format!("{:.0}", f.value * 1e9),
        FigureUnit::Count => format!("{:.0}", f.value),
        FigureUnit::Share => format!("{:.6}", f.value),
    }
}

/// A row a coflow or a job, of all runs whose results are there.
fn within(runs: &[&SweepRun], out: &Path, of: RowsOf) -> Result<TextTable, CliError> {
    let mut all = TextTable::default();
    for run in runs {
        let Some(result) = result(run, out)? else { continue };
        let inner = match (&result, of) {
            (AnyResult::Jobs(r), RowsOf::Jobs) => jobs::exact(r),
            (AnyResult::Jobs(r), _) => tables::coflows_exact(&r.coflows),
            (AnyResult::Coflows(_), RowsOf::Jobs) => {
                return Err(CliError::Usage("--rows jobs: this grid runs coflows".into()));
            }
            (AnyResult::Coflows(r), _) => tables::coflows_exact(&r.coflows),
        };
        let (names, values): (Vec<String>, Vec<String>) = run.columns().into_iter().unzip();
        all.header = [names, inner.header].concat();
        all.rows.extend(inner.rows.into_iter().map(|row| [values.clone(), row].concat()));
    }
    Ok(all)
}
