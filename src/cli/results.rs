//! Results of runs, read from the files that `--json` wrote: one, a list of them, or a directory that `sweep` filled.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::{CliError, read_result, tables};
use crate::runtime::report::form::{self, FORMAT};
use crate::runtime::study::{Account, AnyResult};

/// The results in a file, in their order; in a directory, those of its files that end in `.json`, by policy and topology.
///
/// # Errors
/// What cannot be read or is no result.
pub fn read(file: &Path) -> Result<Vec<AnyResult>, CliError> {
    if !file.is_dir() {
        return parse(&read_result(file)?, file);
    }
    let all: Vec<Vec<AnyResult>> = files_in(file)?.iter().map(|f| parse(&read_result(f)?, f)).collect::<Result<_, CliError>>()?;
    if all.is_empty() {
        return Err(CliError::Invalid(format!("{}: no results (*.json) in this directory", file.display())));
    }
    let mut all: Vec<AnyResult> = all.into_iter().flatten().collect();
    // Files of a sweep are named by hashes.
    all.sort_by_cached_key(|r| {
        let about = Account::from(r);
        (about.policy, about.topology)
    });
    Ok(all)
}

/// The results in a directory, by name.
///
/// # Errors
/// When it cannot be read.
pub fn files_in(directory: &Path) -> Result<Vec<PathBuf>, CliError> {
    let fail = |e: std::io::Error| CliError::Invalid(format!("{}: {e}", directory.display()));
    let entries = std::fs::read_dir(directory).map_err(fail)?.collect::<Result<Vec<_>, _>>().map_err(fail)?;
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
    let bad = |e: serde_json::Error| CliError::Invalid(format!("{}: {}", file.display(), why(text, &e)));
    fn read<T: DeserializeOwned>(text: &str, list: bool) -> serde_json::Result<Vec<T>> {
        if list { serde_json::from_str(text) } else { serde_json::from_str(text).map(|one| vec![one]) }
    }
    let list = text.trim_start().starts_with('[');
    let peeks = read::<Peek>(text, list).map_err(bad)?;
    let jobs: Vec<bool> = peeks.iter().map(|p| p.jobs.is_some()).collect();
    let text = if peeks.iter().all(|p| p.format == Some(FORMAT)) { text.into() } else { upgraded(text, file)? };
    let text: &str = &text;
    match (jobs.contains(&true), jobs.contains(&false)) {
        (true, true) => Err(CliError::Invalid(format!("{}: some of its results are of jobs, others of coflows", file.display()))),
        (true, false) => Ok(read(text, list).map_err(bad)?.into_iter().map(|r| AnyResult::Jobs(Box::new(r))).collect()),
        _ => Ok(read(text, list).map_err(bad)?.into_iter().map(|r| AnyResult::Coflows(Box::new(r))).collect()),
    }
}

/// Results of another form as text of today's.
fn upgraded(text: &str, file: &Path) -> Result<Cow<'static, str>, CliError> {
    let results = serde_json::from_str(text).map_err(|e| e.to_string()).and_then(form::current);
    results.map(|r| r.to_string().into()).map_err(|why| CliError::Invalid(format!("{}: {why}", file.display())))
}

/// What is wrong with a text that is no result; the parser's own words end with line and column.
fn why(text: &str, e: &serde_json::Error) -> String {
    let mut lines = text.lines().filter(|l| !l.trim().is_empty());
    let whole = |line: Option<&str>| line.is_some_and(|l| serde_json::from_str::<IgnoredAny>(l).is_ok());
    if whole(lines.next()) && whole(lines.next()) {
        return "this is an event log; a result is what --json writes".into();
    }
    let e = e.to_string().replace("struct Peek", "a result that `run`, `schedule` or `simulate` wrote with --json");
    format!("not the result of a run: {e}")
}

/// A result as it is written to a file.
pub fn json(result: &AnyResult) -> String {
    tables::json(result)
}

/// Several results as a list, one after another.
pub fn list_json(results: &[&AnyResult]) -> String {
    let all: Vec<String> = results.iter().map(|r| json(r).trim_end().to_owned()).collect();
    format!("[{}]\n", all.join(",\n"))
}
