//! What a sweep found: for each network, load and choice of options, its policies against the first
//! of the grid.

use std::path::Path;

use super::collect::result;
use super::runs::{SweepRun, SweepRunState};
use crate::cli::apart::{Grouping, RunKeys};
use crate::cli::study::{ComparedPolicies, show};
use crate::cli::{CliError, DocumentOutput};
use crate::runtime::study::{PolicyRuns, RunAccount};

/// What a run is of, by the names that the grid gives.
fn keys(run: &SweepRun, account: &RunAccount) -> RunKeys {
    let c = &run.cell;
    let base = [("policy", c.policy.as_str()), ("topology", &c.topology), ("workload", &c.load)];
    RunKeys::new(&base, c.choices().cloned().collect(), account.settings.clone())
}

/// The tables, one after another.
///
/// # Errors
/// Results that cannot be read, and runs that cannot be pooled.
pub fn of(
    runs: &[&SweepRun],
    out: &Path,
    how: &Grouping,
    output: DocumentOutput,
) -> Result<String, CliError> {
    let mut all = vec![];
    for run in runs {
        let Some(result) = result(run, out)? else { continue };
        let account = RunAccount::from(&result);
        all.push(how.pool.of(keys(run, &account), account));
    }
    // A single table says what it is of, too: the grid is not at hand where it is read.
    let scenes: Vec<String> = if how.by.is_none() { scene(runs) } else { vec![] };
    let scenes = scenes.into_iter().filter(|k| !how.pool.pool.contains(k)).collect();
    let how = Grouping { by: how.by.clone().or(Some(scenes)), ..how.clone() };
    let mut tables = vec![];
    for table in how.tables(all)? {
        let notes =
            [table.said(), missing(runs, out, &table.scene)].into_iter().filter(|n| !n.is_empty());
        let row = |(keys, runs): (RunKeys, Vec<RunAccount>)| {
            (PolicyRuns { label: keys.get("policy").to_owned(), runs }, keys)
        };
        let mut rows: Vec<(PolicyRuns, RunKeys)> = table.rows.into_iter().map(row).collect();
        if let Some(group) = rows.iter().find(|r| r.0.ambiguous().is_some()) {
            let what = format!("{} has several results of one seed and load", group.0.label);
            return Err(CliError::Usage(format!(
                "{what}; leave out what they differ in of --pool, or name it with --by"
            )));
        }
        name(&mut rows);
        tables.push(ComparedPolicies::new(rows, table.scene, notes));
    }
    Ok(show(&tables, output))
}

/// Rows of one policy are named by what else they differ in.
fn name(rows: &mut [(PolicyRuns, RunKeys)]) {
    let labels = crate::cli::apart::labels(&rows.iter().map(|r| &r.1).collect::<Vec<_>>());
    rows.iter_mut().zip(labels).for_each(|(row, label)| row.0.label = label);
}

/// Keys of tables: all of the grid but policy and seed.
fn scene(runs: &[&SweepRun]) -> Vec<String> {
    let options = runs
        .first()
        .map(|r| r.cell.choices().map(|o| o.0.clone()).collect::<Vec<_>>())
        .unwrap_or_default();
    [vec!["topology".into(), "workload".into()], options].concat()
}

/// Which policies have runs in this table that failed or are missing. The baseline is the first
/// policy that has results.
fn missing(runs: &[&SweepRun], out: &Path, scene: &[(String, String)]) -> String {
    let value = |run: &SweepRun, key: &str| match key {
        "topology" => run.cell.topology.clone(),
        "workload" => run.cell.load.clone(),
        _ => run.cell.choices().find(|o| o.0 == key).map_or(String::new(), |o| o.1.clone()),
    };
    let here = runs.iter().filter(|r| scene.iter().all(|(k, v)| value(r, k) == *v));
    let mut lacking: Vec<(&str, usize, usize)> = vec![];
    for run in here {
        let lacks = usize::from(run.state(out) != SweepRunState::Done);
        match lacking.iter_mut().find(|l| l.0 == run.cell.policy) {
            Some(l) => (l.1, l.2) = (l.1 + lacks, l.2 + 1),
            None => lacking.push((&run.cell.policy, lacks, 1)),
        }
    }
    let said = lacking
        .iter()
        .filter(|l| l.1 > 0)
        .map(|(policy, n, of)| format!("{policy}: {n} of {of} runs have no result"));
    said.collect::<Vec<_>>().join("\n")
}
