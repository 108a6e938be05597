//! Grids of runs: topologies x policies x workloads or jobs x seeds x options.
//!
//! ```yaml
//! topologies: hybrid-8x2              # one, or a list
//! policies: [c-through, varys, aalo]
//! workloads: [facebook]               # or jobs: [jobpacker]
//! seeds: 1-10                         # or a list
//! options: {coflows: 50, scale: [1, 10]}
//! set: {ocs.0.delta: [1ms, 10ms]}     # keys of the topology or the policy
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::ConfigError;
use super::error::{Flaw, Flaws, PathStep};
use super::yaml;

/// The most runs of one grid.
pub const MAX_RUNS: usize = 1_000_000;

/// A grid as it is written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Heliostat sweep")]
pub struct RawGrid {
    /// Networks: files beside this one, or names of shipped ones.
    topologies: Many,
    /// Policies: files beside this one, or names of shipped ones. The first is what the others are
    /// held against.
    policies: Many,
    /// Workloads: files beside this one, names of shipped ones, or mixes.
    workloads: Option<Many>,
    /// Jobs instead of workloads.
    jobs: Option<Many>,
    /// Seeds, such as 7, [1, 5, 9] or 1-10; 1 if left out.
    #[serde(default = "first_seed")]
    seeds: Many,
    /// Options of `heliostat simulate` without their dashes, each with a value or a list of them.
    #[serde(default)]
    options: BTreeMap<String, Many>,
    /// Keys of the topology or the policies that are changed, such as ocs.0.delta, each with a
    /// value or a list of them.
    #[serde(default)]
    set: BTreeMap<String, Many>,
}

/// One value or a list of them, each as text.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "serde_json::Value")]
struct Many(Vec<String>);

fn first_seed() -> Many {
    Many(vec!["1".into()])
}

impl<'de> Deserialize<'de> for Many {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Many;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a value or a list of values")
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Many, E> {
                Ok(Many(vec![v.into()]))
            }
            fn visit_bool<E: de::Error>(self, v: bool) -> Result<Many, E> {
                Ok(Many(vec![v.to_string()]))
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<Many, E> {
                Ok(Many(vec![v.to_string()]))
            }
            fn visit_i64<E: de::Error>(self, v: i64) -> Result<Many, E> {
                Ok(Many(vec![v.to_string()]))
            }
            fn visit_f64<E: de::Error>(self, v: f64) -> Result<Many, E> {
                Ok(Many(vec![v.to_string()]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Many, A::Error> {
                let mut all = Vec::new();
                while let Some(Many(one)) = seq.next_element()? {
                    all.extend(one);
                }
                Ok(Many(all))
            }
        }
        d.deserialize_any(V)
    }
}

/// A grid: every combination of what its lists hold is a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Networks.
    pub topologies: Vec<String>,
    /// Policies; the first is what the others are held against.
    pub policies: Vec<String>,
    /// Whether `loads` are jobs; else workloads of coflows.
    pub of_jobs: bool,
    /// What is carried.
    pub loads: Vec<String>,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// Options of `simulate` with their values, by name.
    pub options: Vec<(String, Vec<String>)>,
    /// Keys of the topology or the policy with their values, by name.
    pub set: Vec<(String, Vec<String>)>,
}

/// One run of a grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GridCell {
    /// Its network.
    pub topology: String,
    /// Its policy.
    pub policy: String,
    /// What it carries.
    pub load: String,
    /// Its seed.
    pub seed: u64,
    /// Options of `simulate` and their values.
    pub options: Vec<(String, String)>,
    /// Keys of the topology or the policy and their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<(String, String)>,
}

impl GridCell {
    /// Options and changed keys, by which its run differs from others of its topology, policy, load
    /// and seed.
    pub fn choices(&self) -> impl Iterator<Item = &(String, String)> {
        self.options.iter().chain(&self.set)
    }
}

/// Every combination of the values of some names.
fn combined(lists: &[(String, Vec<String>)]) -> Vec<Vec<(String, String)>> {
    lists.iter().fold(vec![vec![]], |all, (name, values)| {
        let with = |c: &Vec<_>| {
            values
                .iter()
                .map(|v| [c.clone(), vec![(name.clone(), v.clone())]].concat())
                .collect::<Vec<_>>()
        };
        all.iter().flat_map(with).collect()
    })
}

impl Grid {
    /// The key of `loads` in the file.
    pub const fn loads_key(&self) -> &'static str {
        if self.of_jobs { "jobs" } else { "workloads" }
    }

    /// Every run: policies of one seed stand together, then seeds, so that the first part of the
    /// list can be compared, too.
    pub fn cells(&self) -> Vec<GridCell> {
        let (all_options, all_set) = (combined(&self.options), combined(&self.set));
        let scenes: Vec<_> =
            all_options.iter().flat_map(|o| all_set.iter().map(move |s| (o, s))).collect();
        let mut cells = Vec::new();
        for topology in &self.topologies {
            for load in &self.loads {
                for &(options, set) in &scenes {
                    for &seed in &self.seeds {
                        cells.extend(self.policies.iter().map(|policy| GridCell {
                            topology: topology.clone(),
                            policy: policy.clone(),
                            load: load.clone(),
                            seed,
                            options: options.clone(),
                            set: set.clone(),
                        }));
                    }
                }
            }
        }
        cells
    }

    /// How many runs it has; none if they are beyond counting.
    fn count(&self) -> Option<usize> {
        let lists =
            [self.topologies.len(), self.policies.len(), self.loads.len(), self.seeds.len()];
        lists
            .into_iter()
            .chain(self.options.iter().chain(&self.set).map(|o| o.1.len()))
            .try_fold(1usize, usize::checked_mul)
    }
}

/// Reads a grid's text; `file` is the name that errors show. `also` says what is wrong with its
/// names and options.
///
/// # Errors
/// What is wrong with the text, where, and what is allowed.
pub fn read_grid(
    text: &str,
    file: &str,
    also: impl FnOnce(&Grid) -> Vec<Flaw>,
) -> Result<Grid, ConfigError> {
    yaml::read_checked(text, file, |raw: RawGrid| {
        let grid = raw.check()?;
        let flaws = also(&grid);
        if flaws.is_empty() { Ok(grid) } else { Err(flaws) }
    })
}

impl RawGrid {
    fn check(self) -> Result<Grid, Vec<Flaw>> {
        let mut flaws = Flaws::default();
        let (of_jobs, loads) = match (self.workloads, self.jobs) {
            (Some(w), None) => (false, w.0),
            (None, Some(j)) => (true, j.0),
            (None, None) => {
                flaws.add(vec![], "nothing is carried", "workloads, or jobs");
                (false, vec![String::new()])
            }
            (Some(w), Some(_)) => {
                flaws.add(
                    vec!["jobs".into()],
                    "there are workloads already",
                    "either workloads or jobs; a grid each",
                );
                (false, w.0)
            }
        };
        let seeds = self.seeds.0.iter().enumerate().flat_map(|(k, text)| {
            let read = seeds(text);
            let path = vec![PathStep::from("seeds"), k.into()];
            flaws.unless(
                read.is_some(),
                path,
                format!("`{text}` is no seed"),
                "a whole number, or a range such as 1-10",
            );
            read.unwrap_or_default()
        });
        let seeds: Vec<u64> = seeds.collect();
        let [options, set] = [self.options, self.set]
            .map(|all| all.into_iter().map(|(k, v)| (k, v.0)).collect::<Vec<_>>());
        let grid = Grid {
            topologies: self.topologies.0,
            policies: self.policies.0,
            of_jobs,
            loads,
            seeds,
            options,
            set,
        };
        let lists = [
            ("topologies", &grid.topologies),
            ("policies", &grid.policies),
            (grid.loads_key(), &grid.loads),
        ];
        for (key, list) in lists {
            once(&mut flaws, &[key.into()], list);
        }
        once(&mut flaws, &["seeds".into()], &grid.seeds);
        for (name, values) in &grid.options {
            once(&mut flaws, &["options".into(), name.as_str().into()], values);
        }
        for (name, values) in &grid.set {
            once(&mut flaws, &["set".into(), name.as_str().into()], values);
        }
        let few = grid.count().is_some_and(|n| n <= MAX_RUNS);
        flaws.unless(few, vec![], "too many combinations", format!("at most {MAX_RUNS} runs"));
        flaws.done(|| grid)
    }
}

/// A list has something in it, and nothing twice.
fn once<T: Ord + fmt::Display>(flaws: &mut Flaws, path: &[PathStep], list: &[T]) {
    flaws.unless(!list.is_empty(), path.to_vec(), "an empty list", "at least one value");
    let mut seen = BTreeSet::new();
    for (k, value) in list.iter().enumerate() {
        let at = [path, &[k.into()]].concat();
        flaws.unless(
            seen.insert(value),
            at,
            format!("{value} stands in the list already"),
            "each value once",
        );
    }
}

/// A seed, or a range of them with both its ends.
fn seeds(text: &str) -> Option<Vec<u64>> {
    let number = |t: &str| t.trim().parse::<u64>().ok();
    if let Some(one) = number(text) {
        return Some(vec![one]);
    }
    let (first, last) = text.split_once('-')?;
    let (first, last) = (number(first)?, number(last)?);
    let few = first <= last && last - first < MAX_RUNS as u64;
    few.then(|| (first..=last).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: &str = "topologies: net\npolicies: [a, b]\nworkloads: [w]\nseeds: [1-3, 7]\noptions: {coflows: 5, scale: [1, 10]}\n";

    fn read(text: &str) -> Result<Grid, String> {
        read_grid(text, "g", |_| vec![]).map_err(|e| e.to_string())
    }

    #[test]
    fn every_combination_is_a_run() {
        let grid = read(GRID).unwrap();
        assert_eq!(
            (grid.seeds.clone(), grid.of_jobs, grid.loads_key()),
            (vec![1, 2, 3, 7], false, "workloads")
        );
        let cells = grid.cells();
        assert_eq!((cells.len(), Some(cells.len())), (2 * 4 * 2, grid.count()));
        assert_eq!(
            (cells[0].policy.as_str(), cells[1].policy.as_str(), cells[1].seed, cells[2].seed),
            ("a", "b", 1, 2)
        );
        let options = |k: usize| {
            cells[k].options.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            (options(0), options(15)),
            ("coflows=5 scale=1".into(), "coflows=5 scale=10".into())
        );
        assert_eq!(read("{topologies: t, policies: p, jobs: j}").unwrap().seeds, [1]);
    }

    #[test]
    fn what_makes_no_sense_has_its_line_and_column() {
        for (from, to, told) in [
            ("seeds: [1-3, 7]", "seeds: [1-3, x]", "g:4:14: seeds[1]: `x` is no seed"),
            ("seeds: [1-3, 7]", "seeds: 3-1", "g:4:8: seeds[0]: `3-1` is no seed"),
            ("seeds: [1-3, 7]", "seeds: [1-3, 2]", "seeds[3]: 2 stands in the list already"),
            ("policies: [a, b]", "policies: []", "g:2:11: policies: an empty list"),
            (
                "policies: [a, b]",
                "policies: [a, b, a]",
                "g:2:18: policies[2]: a stands in the list already",
            ),
            (
                "workloads: [w]",
                "workloads: {w: 1}",
                "g:3:12: workloads: invalid type: map, expected a value or a list of values",
            ),
            ("workloads: [w]\n", "", "nothing is carried"),
            (
                "workloads: [w]",
                "workloads: [w]\njobs: [j]",
                "g:4:7: jobs: there are workloads already",
            ),
            ("seeds: [1-3, 7]", "seeds: [1-1000000, 0]", "too many combinations"),
            ("policies", "policy", "unknown key `policy`"),
        ] {
            let e = read(&GRID.replace(from, to)).unwrap_err();
            assert!(e.contains(told), "{told} in {e}");
        }
    }
}
