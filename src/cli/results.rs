//! Results of runs, read from the files that `--json` wrote: one, a list of them, or a directory
//! that `sweep` or `--rows` filled.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::log::say;
use super::{CliError, rows, swept, tables};
use crate::config::{ConfigError, json};
use crate::runtime::jobs::report::JobsResult;
use crate::runtime::report::RunResult;
use crate::runtime::report::caveats::Given;
use crate::runtime::report::form::{self, FORMAT};
use crate::runtime::study::AnyResult;

/// The results in a file, in their order. Of a directory: that of its rows, those of the sweep that
/// ran last in it, in the order of its grid, or those of its files that end in `.json`, by name.
///
/// # Errors
/// What cannot be read or is no result.
pub fn read(file: &Path) -> Result<Vec<AnyResult>, CliError> {
    if !file.is_dir() {
        return parse(&rows::text(file)?, file);
    }
    let all: Vec<Vec<AnyResult>> = files_in(file)?
        .iter()
        .map(|f| parse(&rows::text(f)?, f))
        .collect::<Result<_, CliError>>()?;
    if all.is_empty() {
        return Err(CliError::Invalid(format!(
            "{}: no results (*.json) in this directory",
            file.display()
        )));
    }
    Ok(all.into_iter().flatten().collect())
}

/// The results in a directory: the directory itself, if it has the rows of one; of a sweep, those
/// of its list, in its order; else all, by name.
///
/// # Errors
/// When it cannot be read.
pub fn files_in(directory: &Path) -> Result<Vec<PathBuf>, CliError> {
    if rows::are_in(directory) {
        return Ok(vec![directory.into()]);
    }
    if let Some(listed) = swept::results(directory)? {
        let others = json_in(directory)?.into_iter().filter(|f| !listed.contains(f)).count();
        if others > 0 {
            let of = "are of other grids than the one that was swept last, and left out";
            say!("note: {}: {others} results {of}", directory.display());
        }
        return Ok(listed);
    }
    json_in(directory)
}

/// Files whose names end in `.json`, by name.
fn json_in(directory: &Path) -> Result<Vec<PathBuf>, CliError> {
    let fail = |e: std::io::Error| CliError::Invalid(format!("{}: {e}", directory.display()));
    let entries =
        std::fs::read_dir(directory).map_err(fail)?.collect::<Result<Vec<_>, _>>().map_err(fail)?;
    let mut files: Vec<PathBuf> = entries.into_iter().map(|e| e.path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "json"));
    files.sort();
    Ok(files)
}

/// The results in a text; `file` is the name that errors show.
///
/// # Errors
/// Why it is no result.
pub fn parse(text: &str, file: &Path) -> Result<Vec<AnyResult>, CliError> {
    /// What tells the kinds of results apart: only jobs have `jobs`.
    #[derive(Deserialize)]
    struct Peek {
        format: Option<u64>,
        jobs: Option<IgnoredAny>,
    }
    if is_event_log(text) {
        return Err(CliError::Invalid(format!(
            "{}: this is an event log; a result is what --json writes",
            file.display()
        )));
    }
    let name = file.display().to_string();
    let list = text.trim_start().starts_with('[');
    let peeks = read_all::<Peek>(text, &name, list)?;
    let jobs: Vec<bool> = peeks.iter().map(|p| p.jobs.is_some()).collect();
    let is_new = peeks.iter().all(|p| p.format == Some(FORMAT));
    let text = if is_new { text.into() } else { upgraded(text, file)? };
    // What stands where in a text of today's form says nothing of the file.
    let placed = |mut e: ConfigError| {
        e.problems.iter_mut().filter(|_| !is_new).for_each(|p| p.line = 0);
        CliError::from(e)
    };
    match (jobs.contains(&true), jobs.contains(&false)) {
        (true, true) => Err(CliError::Invalid(format!(
            "{}: some of its results are of jobs, others of coflows",
            file.display()
        ))),
        (true, false) => {
            let all = read_all::<JobsResult>(&text, &name, list).map_err(placed)?.into_iter();
            Ok(all
                .map(|r| if r.caveats.is_empty() { r.judged(&Given::default()) } else { r })
                .map(Box::new)
                .map(AnyResult::Jobs)
                .collect())
        }
        _ => {
            let all = read_all::<RunResult>(&text, &name, list).map_err(placed)?.into_iter();
            // Results of older versions have no list of caveats, but most of what it is derived
            // from.
            Ok(all
                .map(|r| if r.caveats.is_empty() { r.judged(&Given::default()) } else { r })
                .map(Box::new)
                .map(AnyResult::Coflows)
                .collect())
        }
    }
}

/// Results of another form as text of today's.
fn upgraded(text: &str, file: &Path) -> Result<Cow<'static, str>, CliError> {
    let results = serde_json::from_str(text).map_err(|e| json::words(&e)).and_then(form::current);
    results
        .map(|r| r.to_string().into())
        .map_err(|why| CliError::Invalid(format!("{}: {why}", file.display())))
}

/// What is allowed where a result is read.
const ALLOWED: &str = "a result that `run`, `schedule` or `simulate` wrote with --json; its form: heliostat check --schema result";

/// One value, or a list of them.
fn read_all<T: DeserializeOwned>(
    text: &str,
    file: &str,
    list: bool,
) -> Result<Vec<T>, ConfigError> {
    if list {
        json::read(text, file, ALLOWED)
    } else {
        json::read(text, file, ALLOWED).map(|one| vec![one])
    }
}

/// Whether a text is JSON line by line.
fn is_event_log(text: &str) -> bool {
    let mut lines = text.lines().filter(|l| !l.trim().is_empty());
    let whole =
        |line: Option<&str>| line.is_some_and(|l| serde_json::from_str::<IgnoredAny>(l).is_ok());
    whole(lines.next()) && whole(lines.next())
}

/// A result as it is written to a file.
pub fn as_json(result: &AnyResult) -> String {
    tables::json(result)
}

/// Several results as a list, one after another.
pub fn list_json(results: &[&AnyResult]) -> String {
    let all: Vec<String> = results.iter().map(|r| as_json(r).trim_end().to_owned()).collect();
    format!("[{}]\n", all.join(",\n"))
}
