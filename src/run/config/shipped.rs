//! The topologies, policies and workloads that are part of the program: `build.rs` puts them into
//! it.

use super::nearest::did_you_mean;

include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// The kinds of shipped files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shelf {
    /// Networks.
    Topologies,
    /// How circuits are decided, coflows are served and tasks are placed.
    Policies,
    /// Coflows and jobs.
    Workloads,
}

/// A shipped file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// Its name without `.yaml`; no two have the same, of whatever kind.
    pub name: &'static str,
    /// Its contents.
    pub text: &'static str,
}

impl Shelf {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Topologies, Self::Policies, Self::Workloads];

    /// Its files, by name.
    pub fn files(self) -> impl Iterator<Item = Shipped> {
        let all = match self {
            Self::Topologies => TOPOLOGIES,
            Self::Policies => POLICIES,
            Self::Workloads => WORKLOADS,
        };
        all.iter().map(|&(name, text)| Shipped { name, text })
    }

    /// The file of a name.
    pub fn find(self, name: &str) -> Option<Shipped> {
        self.files().find(|f| f.name == name)
    }

    /// What one of its files is.
    pub const fn one(self) -> &'static str {
        match self {
            Self::Topologies => "topology",
            Self::Policies => "policy",
            Self::Workloads => "workload",
        }
    }

    /// What many of its files are.
    pub const fn many(self) -> &'static str {
        match self {
            Self::Topologies => "topologies",
            Self::Policies => "policies",
            Self::Workloads => "workloads",
        }
    }

    /// Why `name` is none of them, nor one of `others` (which are not files), and what they are.
    pub fn unknown(self, name: &str, others: &[String]) -> String {
        let all: Vec<&str> =
            self.files().map(|f| f.name).chain(others.iter().map(String::as_str)).collect();
        let (one, many) = (self.one(), self.many());
        format!(
            "no such file, and no {one} of that name is shipped{}\n   {many}: {}",
            did_you_mean(name, all.iter().copied()),
            all.join(", ")
        )
    }
}

/// The file of a name, of whatever kind.
pub fn find(name: &str) -> Option<Shipped> {
    Shelf::ALL.into_iter().find_map(|shelf| shelf.find(name))
}

impl Shipped {
    /// The first sentence of the comment with which it begins.
    pub fn about(self) -> String {
        let comment: Vec<&str> =
            self.text.lines().map_while(|l| l.strip_prefix('#')).map(str::trim).collect();
        let text = comment.join(" ");
        let end = text.find(". ").unwrap_or(text.trim_end_matches(['.', ':']).len());
        text[..end].into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, JobsReading};

    #[test]
    fn every_shipped_file_is_valid_says_what_it_is_and_has_a_name_of_its_own() {
        let mut names = std::collections::BTreeSet::new();
        for file in Shelf::ALL.into_iter().flat_map(Shelf::files) {
            assert!(names.insert(file.name), "{} twice", file.name);
            assert!(
                file.about().len() > 20 && !file.about().ends_with('.'),
                "{}: {}",
                file.name,
                file.about()
            );
        }
        let count = |shelf: Shelf| shelf.files().count();
        for (shelf, directory) in
            Shelf::ALL.into_iter().zip(["topologies", "policies", "workloads"])
        {
            let there = std::fs::read_dir(crate::testing::repository(directory)).unwrap().count();
            assert_eq!(count(shelf), there, "{directory}");
        }
        Shelf::Topologies
            .files()
            .for_each(|f| drop(config::read_topology(f.text, f.name).unwrap()));
        Shelf::Policies.files().for_each(|f| drop(config::read_policy(f.text, f.name).unwrap()));
        for f in Shelf::Workloads.files() {
            let jobs = config::read_any_jobs(f.text, f.name, &JobsReading::default());
            jobs.map(drop).or_else(|_| config::check_workload_form(f.text, f.name)).unwrap();
        }
    }

    #[test]
    fn an_unknown_name_is_told_with_all_that_there_are() {
        let told = Shelf::Policies.unknown("varis", &[]);
        assert!(
            told.contains("did you mean `varys`?") && told.contains("policies: aalo, c-through"),
            "{told}"
        );
        let told = Shelf::Workloads.unknown("facebok", &["facebook".into()]);
        assert!(
            told.contains("did you mean `facebook`?") && told.contains("shuffle-8, facebook"),
            "{told}"
        );
        assert_eq!(
            Shelf::Topologies.find("hybrid-8x2").map(|f| f.text),
            Some(include_str!("../../../topologies/hybrid-8x2.yaml"))
        );
    }
}
