//! Which results make a row: those of one file under one policy; and what tells the rows apart.

use std::collections::BTreeSet;
use std::path::Path;

use crate::cli::CliError;
use crate::runtime::study::{Account, AnyResult, Group, Study};

/// What a row is of, the most telling first: policy, mechanism, topology, file.
type About = [String; 4];

/// The rows of some files, in the order of the files and of the policies in them.
pub fn of(read: &[(&Path, Vec<AnyResult>)]) -> Vec<Group> {
    let mut rows: Vec<(About, Vec<Account>)> = vec![];
    for (file, results) in read {
        let stem = file.file_stem().map_or_else(|| file.display().to_string(), |s| s.to_string_lossy().into_owned());
        let begin = rows.len();
        for account in results.iter().map(Account::from) {
            let about = [&account.policy, &account.mechanism, &account.topology, &stem].map(Clone::clone);
            match rows[begin..].iter_mut().find(|r| r.0 == about) {
                Some(row) => row.1.push(account),
                None => rows.push((about, vec![account])),
            }
        }
    }
    let labels = labels(&rows.iter().map(|r| &r.0).collect::<Vec<_>>());
    labels.into_iter().zip(rows).map(|(label, (_, runs))| Group { label, runs }).collect()
}

/// All rows held against the first, or the one that is named. `names` are theirs, in their order, if there are any.
///
/// # Errors
/// Another number of names, no row of the name, results that cannot be told apart or of coflows and of jobs together, or rows without a run
/// of the first one's workloads.
pub fn study(read: &[(&Path, Vec<AnyResult>)], names: &[String], against: Option<&str>) -> Result<Study, CliError> {
    let mut groups = of(read);
    if !names.is_empty() && names.len() != groups.len() {
        return Err(CliError::Usage(format!("{} --label for {} rows; give one each", names.len(), groups.len())));
    }
    groups.iter_mut().zip(names).for_each(|(g, name)| g.label.clone_from(name));
    if let Some(name) = against {
        let rows = || groups.iter().map(|g| g.label.as_str()).collect::<Vec<_>>().join(", ");
        let at = groups.iter().position(|g| g.label == name);
        let at = at.ok_or_else(|| CliError::Usage(format!("--against {name}: there is no row of this name; there are {}", rows())))?;
        groups[..=at].rotate_right(1);
    }
    if let Some((group, seed)) = groups.iter().find_map(|g| Some((g, g.ambiguous()?))) {
        let what = format!("{} has several results of seed {seed} and one load", group.label);
        let hint = "results do not hold the options that tell them apart; give the files of one option, or see `heliostat sweep --collect`";
        return Err(CliError::Invalid(format!("{what}: {hint}")));
    }
    let of_jobs: BTreeSet<bool> = groups.iter().flat_map(|g| &g.runs).map(|r| r.of_jobs).collect();
    if of_jobs.len() > 1 {
        return Err(CliError::Invalid("some of these results are of jobs, others of coflows".into()));
    }
    let study = Study::new(&groups);
    if let Some(alone) = study.policies.iter().find(|p| p.pairs == 0) {
        let what = if study.of_jobs { "jobs" } else { "coflows" };
        return Err(CliError::Invalid(format!("{} has no run of the same {what} as {}", alone.policy, study.policies[0].policy)));
    }
    Ok(study)
}

/// The fewest of policy, mechanism, topology and file that together tell all rows apart, the most telling first; all of them if none do.
fn labels(rows: &[&About]) -> Vec<String> {
    let mut choices: Vec<u8> = (1..16).collect();
    choices.sort_by_key(|choice| choice.count_ones());
    let label = |choice: u8, row: &About| {
        let parts = row.iter().enumerate().filter(|(k, _)| choice & (1 << k) != 0);
        parts.map(|(_, part)| part.as_str()).collect::<Vec<_>>().join(" ")
    };
    let all = |choice: u8| rows.iter().map(|row| label(choice, row)).collect::<Vec<_>>();
    let apart = |labels: &Vec<String>| labels.iter().collect::<BTreeSet<_>>().len() == rows.len();
    choices.into_iter().map(all).find(apart).unwrap_or_else(|| all(15))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_named_by_what_tells_them_apart() {
        let row = |text: &str| -> About { text.split(' ').map(str::to_owned).collect::<Vec<_>>().try_into().unwrap() };
        let of = |rows: &[&str]| labels(&rows.iter().map(|r| row(r)).collect::<Vec<_>>().iter().collect::<Vec<_>>());
        assert_eq!(of(&["aalo sim net a", "varys sim net b"]), ["aalo", "varys"]);
        assert_eq!(of(&["aalo sim net a", "aalo timed net b"]), ["sim", "timed"]);
        assert_eq!(of(&["aalo sim net a", "varys sim net a", "aalo sim net b"]), ["aalo a", "varys a", "aalo b"]);
        assert_eq!(of(&["aalo timed net a", "varys timed net a", "aalo sim net b"]), ["aalo timed", "varys timed", "aalo sim"]);
        assert_eq!(of(&["aalo sim net a", "aalo sim net a"]), ["aalo sim net a", "aalo sim net a"]);
    }
}
