//! Which results make a row: those of one file under one policy; and what tells the rows apart.

use std::path::Path;

use crate::runtime::study::{Account, AnyResult, Group};

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

/// The first of policy, mechanism, topology and file that differs in all; else the policy with all else that differs at all.
fn labels(rows: &[&About]) -> Vec<String> {
    let differ = |k: usize| rows.iter().map(|r| &r[k]).collect::<std::collections::BTreeSet<_>>().len();
    if let Some(k) = (0..4).find(|&k| differ(k) == rows.len()) {
        return rows.iter().map(|r| r[k].clone()).collect();
    }
    let parts: Vec<usize> = (0..4).filter(|&k| differ(k) > 1).collect();
    rows.iter().map(|r| parts.iter().map(|&k| r[k].as_str()).collect::<Vec<_>>().join(" ")).collect()
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
    }
}
