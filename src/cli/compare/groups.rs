//! Which results make a row, and which rows a table.

use std::collections::BTreeSet;
use std::path::Path;

use crate::cli::CliError;
use crate::cli::apart::{Grouping, RunKeys, RunsTable, files, labels};
use crate::cli::study::ComparedPolicies;
use crate::runtime::study::{AnyResult, PolicyRuns, RunAccount};

/// The tables of some files, rows in the order of the files and of the runs in them.
///
/// # Errors
/// Keys that no run has.
pub fn tables(
    read: &[(&Path, Vec<AnyResult>)],
    how: &Grouping,
) -> Result<Vec<RunsTable<RunAccount>>, CliError> {
    let names = files(&read.iter().map(|r| r.0).collect::<Vec<_>>());
    let all = read.iter().zip(&names).flat_map(|((_, results), name)| {
        results.iter().map(RunAccount::from).map(move |a| how.pool.of(RunKeys::of(&a, name), a))
    });
    how.tables(all.collect())
}

/// The rows of a table with their names.
pub fn rows(table: RunsTable<RunAccount>) -> Vec<(PolicyRuns, RunKeys)> {
    let names = labels(&table.rows.iter().map(|r| &r.0).collect::<Vec<_>>());
    names
        .into_iter()
        .zip(table.rows)
        .map(|(label, (keys, runs))| (PolicyRuns { label, runs }, keys))
        .collect()
}

/// In each table all rows against the first, or the one that is named. `names` are those of the
/// rows, in their order, if there are any.
///
/// # Errors
/// Another number of names, no row of the name, results that cannot be told apart or of coflows and
/// of jobs together, or rows without a run of the first one's workloads.
pub fn studies(
    read: &[(&Path, Vec<AnyResult>)],
    how: &Grouping,
    names: &[String],
    against: Option<&str>,
) -> Result<Vec<ComparedPolicies>, CliError> {
    let of_jobs: BTreeSet<bool> =
        read.iter().flat_map(|(_, all)| all).map(|r| matches!(r, AnyResult::Jobs(_))).collect();
    if of_jobs.len() > 1 {
        return Err(CliError::Invalid(
            "some of these results are of jobs, others of coflows".into(),
        ));
    }
    let mut named: Vec<Named> = vec![];
    for table in tables(read, how)? {
        let head =
            RunsTable { scene: table.scene.clone(), rows: vec![], pooled: table.pooled.clone() };
        named.push((head, rows(table)));
    }
    let all: usize = named.iter().map(|t| t.1.len()).sum();
    // One name for a row of each table, or for each row of all.
    let each = named.iter().all(|t| t.1.len() == names.len());
    if !names.is_empty() && !each && names.len() != all {
        return Err(CliError::Usage(format!(
            "{} --label for {all} rows; give one each",
            names.len()
        )));
    }
    let labels = names.iter().cycle();
    if !names.is_empty() {
        named
            .iter_mut()
            .flat_map(|t| &mut t.1)
            .zip(labels)
            .for_each(|(row, name)| row.0.label.clone_from(name));
    }
    if let Some(name) = against {
        first(&mut named, name)?;
    }
    named.into_iter().map(|(head, rows)| study(&head, rows, how)).collect()
}

/// The head of a table, and its rows.
type Named = (RunsTable<()>, Vec<(PolicyRuns, RunKeys)>);

/// Brings the row of that name to the top of each table that has it.
fn first(tables: &mut [Named], name: &str) -> Result<(), CliError> {
    let mut found = false;
    for (_, rows) in tables.iter_mut() {
        if let Some(at) = rows.iter().position(|r| r.0.label == name) {
            rows[..=at].rotate_right(1);
            found = true;
        }
    }
    let rows = || {
        tables.iter().flat_map(|t| &t.1).map(|r| r.0.label.as_str()).collect::<Vec<_>>().join(", ")
    };
    let why = || {
        CliError::Usage(format!(
            "--against {name}: there is no row of this name; there are {}",
            rows()
        ))
    };
    if found { Ok(()) } else { Err(why()) }
}

fn study(
    head: &RunsTable<()>,
    rows: Vec<(PolicyRuns, RunKeys)>,
    how: &Grouping,
) -> Result<ComparedPolicies, CliError> {
    if let Some((group, seed)) = rows.iter().find_map(|(g, _)| Some((g, g.ambiguous()?))) {
        let what = format!("{} has several results of seed {seed} and one load", group.label);
        let hint = if how.pool.pool.is_empty() {
            "what else they differ in is not in them; give the files of one kind, or see `heliostat sweep --collect`"
        } else {
            "they cannot be pooled"
        };
        return Err(CliError::Invalid(format!("{what}: {hint}")));
    }
    let compared = ComparedPolicies::new(
        rows,
        head.scene.clone(),
        Some(head.said()).filter(|s| !s.is_empty()),
    );
    if let Some(alone) = compared.study.policies.iter().find(|p| p.pairs == 0) {
        let what = if compared.study.of_jobs { "jobs" } else { "coflows" };
        let of =
            if head.scene.is_empty() { String::new() } else { format!("{}: ", head.caption()) };
        let first = &compared.study.policies[0].policy;
        return Err(CliError::Invalid(format!(
            "{of}{} has no run of the same {what} as {first}",
            alone.policy
        )));
    }
    Ok(compared)
}
