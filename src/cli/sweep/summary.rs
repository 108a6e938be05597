//! What a sweep found: for each network, load and choice of options, its policies held against the first.

use std::path::Path;

use super::collect::result;
use super::runs::Run;
use crate::cli::{CliError, Output, study};
use crate::runtime::study::{Account, Group, Study};

/// What all runs of one table have in common: all but policy and seed.
fn scene(run: &Run) -> String {
    let apart = ["id", "policy", "seed"];
    let all = run.columns().into_iter().filter(|c| !apart.contains(&c.0.as_str()));
    all.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}

/// The tables, one after another.
///
/// # Errors
/// Results that cannot be read.
pub fn of(runs: &[&Run], out: &Path) -> Result<String, CliError> {
    let mut scenes: Vec<(String, Vec<Group>)> = vec![];
    for run in runs {
        let Some(result) = result(run, out)? else { continue };
        let name = scene(run);
        let at = scenes.iter().position(|s| s.0 == name).unwrap_or_else(|| {
            scenes.push((name, vec![]));
            scenes.len() - 1
        });
        let (groups, account) = (&mut scenes[at].1, Account::from(&result));
        match groups.iter_mut().find(|g| g.label == run.cell.policy) {
            Some(group) => group.runs.push(account),
            None => groups.push(Group { label: run.cell.policy.clone(), runs: vec![account] }),
        }
    }
    let table = |(name, groups): &(String, Vec<Group>)| format!("{name}\n\n{}", study::show(&Study::new(groups), Output::Table));
    Ok(scenes.iter().map(table).collect::<Vec<_>>().join("\n\n"))
}
