//! What tells runs apart: one rule for comparisons, sweeps, charts and reports.
//!
//! Runs that differ in anything but their seed are never pooled unless that is asked for. What
//! differs makes tables of their own, or is part of the name of a row or a line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::CliError;
use crate::config::nearest::did_you_mean;
use crate::runtime::study::RunAccount;

/// Keys of the policy that say who decides: not what else policies differ in.
const DECIDES: [&str; 2] = ["scheduler", "external."];
/// More keys than these are not tried in names.
const TRIED: usize = 12;

/// Which runs are pooled
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Pool {
    /// Takes runs that differ in these as repetitions of one: workload, topology, mechanism, or
    /// options such as scale [default: runs that differ in their seed alone]
    #[arg(long, value_name = "KEY,..", value_delimiter = ',')]
    pub pool: Vec<String>,
}

/// Which runs make a table, and which are pooled
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Grouping {
    /// Makes a table for each value of these: topology, workload, or options such as scale; `none`
    /// makes one table of all [default: those in which runs differ]
    #[arg(long, value_name = "KEY,..", value_delimiter = ',')]
    pub by: Option<Vec<String>>,
    /// What is pooled.
    #[command(flatten)]
    pub pool: Pool,
}

/// What a run is of, the most telling first, and its policy.
#[derive(Clone, Debug, Default)]
pub struct RunKeys {
    /// Policy, placement, mechanism, topology, workload, file, as far as they are known.
    base: Vec<(String, String)>,
    options: BTreeMap<String, String>,
    settings: BTreeMap<String, String>,
    /// Keys that it had, and that are pooled.
    pooled: Vec<String>,
}

impl PartialEq for RunKeys {
    /// Whether two runs differ in what is not pooled.
    fn eq(&self, other: &Self) -> bool {
        (&self.base, &self.options, &self.settings)
            == (&other.base, &other.options, &other.settings)
    }
}

impl Eq for RunKeys {}

impl RunKeys {
    /// Of what results have in their head; empty texts say nothing.
    pub fn new(
        base: &[(&str, &str)],
        options: BTreeMap<String, String>,
        settings: BTreeMap<String, String>,
    ) -> Self {
        let base = base
            .iter()
            .filter(|b| !b.1.is_empty())
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        Self { base, options, settings, pooled: vec![] }
    }

    /// Of a run in a file.
    pub fn of(a: &RunAccount, file: &str) -> Self {
        let placement = a.placement.as_deref().unwrap_or("");
        let base = [
            ("policy", a.policy.as_str()),
            ("placement", placement),
            ("mechanism", &a.mechanism),
            ("topology", &a.topology),
            ("workload", &a.workload),
            ("file", file),
        ];
        Self::new(&base, a.options.clone(), a.settings.clone())
    }

    /// The same in another file.
    #[must_use]
    pub fn in_file(mut self, file: &str) -> Self {
        self.base.retain(|b| b.0 != "file");
        self.base.push(("file".into(), file.into()));
        self
    }

    /// The same without some of its keys.
    #[must_use]
    pub fn without(mut self, keys: &[String]) -> Self {
        self.pooled.extend(
            keys.iter().filter(|k| self.scene().any(|s| s == *k)).cloned().collect::<Vec<_>>(),
        );
        self.base.retain(|b| !keys.contains(&b.0));
        self.options.retain(|k, _| !keys.contains(k));
        self
    }

    /// A value; empty if it has none.
    pub fn get(&self, key: &str) -> &str {
        let base = self.base.iter().find(|b| b.0 == key).map(|b| b.1.as_str());
        base.or(self.options.get(key).map(String::as_str)).unwrap_or("")
    }

    /// Options that its results depend on, but for those that are pooled.
    pub fn options(&self) -> &BTreeMap<String, String> {
        &self.options
    }

    /// The names of what runs may be pooled by, or a table made of.
    fn scene(&self) -> impl Iterator<Item = &str> {
        let base = self
            .base
            .iter()
            .map(|b| b.0.as_str())
            .filter(|k| ["mechanism", "topology", "workload", "file"].contains(k));
        base.chain(self.options.keys().chain(&self.pooled).map(String::as_str))
    }
}

impl Pool {
    /// A run with what it is of, which notes what it has of the keys that are pooled: what two rows
    /// compare is of the same topology or option. Files say where results are, not what they are
    /// of.
    pub fn of(&self, keys: RunKeys, mut run: RunAccount) -> (RunKeys, RunAccount) {
        let pooled = self.pool.iter().filter(|k| *k != "file");
        run.pooled = pooled.map(|k| keys.get(k).to_owned()).collect();
        (keys, run)
    }

    /// Whether all its keys are those of some runs.
    ///
    /// # Errors
    /// The first that is not, and which there are.
    pub fn check<'a>(
        &self,
        runs: impl Iterator<Item = &'a RunKeys> + Clone,
    ) -> Result<(), CliError> {
        known("--pool", &self.pool, runs)
    }
}

fn known<'a>(
    option: &str,
    keys: &[String],
    runs: impl Iterator<Item = &'a RunKeys>,
) -> Result<(), CliError> {
    let all: BTreeSet<&str> = runs.flat_map(RunKeys::scene).collect();
    let unknown = keys.iter().find(|k| !all.contains(k.as_str()));
    let list = || all.iter().copied().collect::<Vec<_>>().join(", ");
    let why = |k: &String| {
        format!(
            "{option} {k}: these runs have no such key{}; there are {}",
            did_you_mean(k, all.iter().copied()),
            list()
        )
    };
    unknown.map_or(Ok(()), |k| Err(CliError::Usage(why(k))))
}

/// A table: what all its runs have in common and those of others have not, and its rows.
#[derive(Clone, Debug)]
pub struct RunsTable<T> {
    /// By key.
    pub scene: Vec<(String, String)>,
    /// Rows, with the runs of each.
    pub rows: Vec<(RunKeys, Vec<T>)>,
    /// What was pooled, with all its values.
    pub pooled: Vec<(String, Vec<String>)>,
}

impl Grouping {
    /// Runs as tables of rows, all in the order in which they first come.
    ///
    /// # Errors
    /// Keys that the runs do not have.
    pub fn tables<T>(&self, runs: Vec<(RunKeys, T)>) -> Result<Vec<RunsTable<T>>, CliError> {
        self.pool.check(runs.iter().map(|r| &r.0))?;
        let given = self
            .by
            .as_ref()
            .map(|by| by.iter().filter(|k| *k != "none").cloned().collect::<Vec<_>>());
        given.as_ref().map_or(Ok(()), |by| known("--by", by, runs.iter().map(|r| &r.0)))?;
        let by = given.clone().unwrap_or_else(|| {
            let all: Vec<&RunKeys> = runs.iter().map(|r| &r.0).collect();
            let apart = |k: &String| {
                !["mechanism", "file"].contains(&k.as_str()) && !self.pool.pool.contains(k)
            };
            scenes(&all).into_iter().filter(apart).collect()
        });
        // Rows that would stand alone are meant to be compared with each other.
        let dry = self.split(runs.iter().map(|r| (r.0.clone(), ())).collect(), &by);
        let alone = given.is_none() && dry.iter().all(|t| t.rows.len() == 1);
        Ok(self.split(runs, if alone { &[] } else { &by }))
    }

    fn split<T>(&self, runs: Vec<(RunKeys, T)>, by: &[String]) -> Vec<RunsTable<T>> {
        let mut tables: Vec<RunsTable<T>> = vec![];
        for (keys, run) in runs {
            let scene: Vec<(String, String)> =
                by.iter().map(|k| (k.clone(), keys.get(k).to_owned())).collect();
            let at = tables.iter().position(|t| t.scene == scene).unwrap_or_else(|| {
                let pooled = self.pool.pool.iter().map(|k| (k.clone(), vec![])).collect();
                tables.push(RunsTable { scene, rows: vec![], pooled });
                tables.len() - 1
            });
            for (key, values) in &mut tables[at].pooled {
                let value = keys.get(key).to_owned();
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            let keys = keys.without(&self.pool.pool);
            match tables[at].rows.iter_mut().find(|r| r.0 == keys) {
                Some(row) => row.1.push(run),
                None => tables[at].rows.push((keys, vec![run])),
            }
        }
        tables
    }
}

impl<T> RunsTable<T> {
    /// What its runs have in common, for the line above it; empty of the only table.
    pub fn caption(&self) -> String {
        said(&self.scene)
    }

    /// What was pooled, for the line below it; empty if nothing was.
    pub fn said(&self) -> String {
        let all = self
            .pooled
            .iter()
            .filter(|p| p.1.len() > 1)
            .map(|(k, v)| format!("Pooled over {k}: {}.", v.join(", ")));
        all.collect::<Vec<_>>().join("\n")
    }
}

/// Keys with their values, for people.
pub fn said(scene: &[(String, String)]) -> String {
    scene.iter().map(|(k, v)| part(k, v)).collect::<Vec<_>>().join(", ")
}

fn part(key: &str, value: &str) -> String {
    if value.is_empty() { format!("no {key}") } else { format!("{key} {value}") }
}

/// Keys, but for the policy's own, in which runs differ.
pub fn scenes(all: &[&RunKeys]) -> Vec<String> {
    let mut names: Vec<&str> = vec![];
    all.iter().flat_map(|k| k.scene()).for_each(|k| {
        if !names.contains(&k) {
            names.push(k);
        }
    });
    names.retain(|k| all.iter().any(|r| r.get(k) != all[0].get(k)));
    names.into_iter().map(str::to_owned).collect()
}

/// The names of files: those before their endings, or if two have the same, whole paths.
pub fn files(all: &[&Path]) -> Vec<String> {
    let stem = |f: &&Path| {
        f.file_stem().map_or_else(|| f.display().to_string(), |s| s.to_string_lossy().into_owned())
    };
    let stems: Vec<String> = all.iter().map(stem).collect();
    let distinct = |names: &[String]| {
        names.iter().collect::<BTreeSet<_>>().len() == all.iter().collect::<BTreeSet<_>>().len()
    };
    if distinct(&stems) { stems } else { all.iter().map(|f| f.display().to_string()).collect() }
}

/// The names of rows: who decides and what was run, as far as rows differ in it, and the fewest of
/// their other keys that together tell all apart, the most telling first; all that differ, if none
/// do.
pub fn labels(rows: &[&RunKeys]) -> Vec<String> {
    let Some(first) = rows.first() else { return vec![] };
    type Candidate = (String, Vec<String>);
    let candidate = |key: &str, of: &dyn Fn(&RunKeys) -> String| -> Option<Candidate> {
        let values: Vec<String> = rows.iter().map(|r| of(r)).collect();
        values.iter().any(|v| *v != values[0]).then(|| (key.to_owned(), values))
    };
    let base = |key: &'static str| candidate(key, &|r| r.get(key).to_owned());
    let options: BTreeSet<&String> = rows.iter().flat_map(|r| r.options.keys()).collect();
    let mut candidates: Vec<Candidate> =
        ["policy", "placement", "mechanism", "topology", "workload"]
            .into_iter()
            .filter_map(base)
            .chain(options.iter().filter_map(|k| candidate(k, &|r| part(k, r.get(k)))))
            .collect();
    // A name without one of these would call all that differs the work of the others.
    let always = (1_usize << candidates.len().min(TRIED)) - 1;
    // What policies of one name differ in.
    let same = |a: &RunKeys, b: &RunKeys| a.get("policy") == b.get("policy");
    let settings: BTreeSet<&String> = rows.iter().flat_map(|r| r.settings.keys()).collect();
    let split = |k: &&String| {
        let differ =
            |a: &RunKeys, b: &RunKeys| same(a, b) && a.settings.get(*k) != b.settings.get(*k);
        !options.contains(k) && rows.iter().any(|a| rows.iter().any(|b| differ(a, b)))
    };
    let value = |r: &RunKeys, k: &str| part(k, r.settings.get(k).map_or("", String::as_str));
    let split = settings.into_iter().filter(split);
    candidates.extend(split.filter_map(|k| candidate(k, &|r| value(r, k))));
    candidates.extend(base("file"));
    candidates.truncate(TRIED);
    let choices = (1..1_usize << candidates.len()).filter(|c| c & always == always);
    let name = |choice: usize, row: usize| {
        let chosen = candidates.iter().enumerate().filter(|(k, _)| choice & (1 << k) != 0);
        let mut parts: Vec<&str> = vec![];
        chosen.map(|(_, c)| c.1[row].as_str()).filter(|v| !v.is_empty()).for_each(|v| {
            // A policy that places tasks often has its placement's name.
            if !parts.contains(&v) {
                parts.push(v);
            }
        });
        parts.join(" ")
    };
    let all = |choice: usize| (0..rows.len()).map(|row| name(choice, row)).collect::<Vec<String>>();
    let apart = |labels: &Vec<String>| {
        labels.iter().collect::<BTreeSet<_>>().len() == rows.len()
            && labels.iter().all(|l| !l.is_empty())
    };
    let mut by_size: Vec<usize> = choices.collect();
    by_size.sort_by_key(|c| c.count_ones());
    let found = by_size.into_iter().map(all).find(apart);
    let fallback = || {
        let head =
            ["policy", "mechanism", "topology", "file"].map(|k| first.get(k)).map(str::to_owned);
        let head = head.into_iter().filter(|v| !v.is_empty()).collect::<Vec<_>>();
        let common = if rows.len() == 1 {
            head.first().cloned().unwrap_or_default()
        } else {
            head.join(" ")
        };
        (0..rows.len())
            .map(|row| {
                Some(name(usize::MAX, row))
                    .filter(|n| !n.is_empty())
                    .unwrap_or_else(|| common.clone())
            })
            .collect()
    };
    found.unwrap_or_else(fallback)
}

/// What else policies differ in than who decides, a line; empty if in nothing. `rows`: their names
/// and keys.
pub fn differences(rows: &[(String, &RunKeys)]) -> Vec<(String, Vec<(String, String)>)> {
    let keys: BTreeSet<&String> = rows.iter().flat_map(|r| r.1.settings.keys()).collect();
    let decides = |k: &str| DECIDES.iter().any(|d| k == *d || d.ends_with('.') && k.starts_with(d));
    // Results of older versions do not say what their policy was.
    let known = rows.iter().all(|r| !r.1.settings.is_empty());
    let value = |r: &RunKeys, k: &String| r.settings.get(k).cloned().unwrap_or_else(|| "-".into());
    let differ = |k: &&String| {
        known && !decides(k) && rows.iter().any(|r| value(r.1, k) != value(rows[0].1, k))
    };
    let of = |k: &String| {
        (k.clone(), rows.iter().map(|(name, r)| (name.clone(), value(r, k))).collect())
    };
    keys.into_iter().filter(differ).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str, options: &[(&str, &str)], settings: &[(&str, &str)]) -> RunKeys {
        let parts: Vec<&str> = text.split(' ').collect();
        let names = ["policy", "mechanism", "topology", "workload", "file"];
        let base: Vec<(&str, &str)> = names.into_iter().zip(parts).collect();
        let map = |all: &[(&str, &str)]| {
            all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
        };
        RunKeys::new(&base, map(options), map(settings))
    }

    fn named(rows: &[RunKeys]) -> Vec<String> {
        labels(&rows.iter().collect::<Vec<_>>())
    }

    #[test]
    fn rows_are_named_by_what_tells_them_apart() {
        let of = |rows: &[&str]| named(&rows.iter().map(|r| keys(r, &[], &[])).collect::<Vec<_>>());
        assert_eq!(of(&["aalo sim net w a", "varys sim net w b"]), ["aalo", "varys"]);
        assert_eq!(of(&["aalo sim net w a", "aalo timed net w b"]), ["sim", "timed"]);
        assert_eq!(
            of(&["aalo sim net w a", "varys sim net w a", "aalo sim net w b"]),
            ["aalo a", "varys a", "aalo b"]
        );
        assert_eq!(
            of(&["aalo timed net w a", "varys timed net w a", "aalo sim net w b"]),
            ["aalo timed", "varys timed", "aalo sim"]
        );
        assert_eq!(
            of(&["aalo sim net w a", "aalo sim net w a"]),
            ["aalo sim net a", "aalo sim net a"]
        );
        assert_eq!(of(&["aalo sim net w a"]), ["aalo"]);
        // The policies alone would tell them apart, and hide the rest.
        assert_eq!(of(&["aalo sim net v a", "varys sim net w b"]), ["aalo v", "varys w"]);
        assert_eq!(of(&["aalo sim net v a", "aalo sim net w a"]), ["v", "w"]);
        let with = |scale| keys("aalo sim net w a", &[("scale", scale)], &[]);
        assert_eq!(named(&[with("10"), with("100")]), ["scale 10", "scale 100"]);
        // Two policies of one name.
        let lead = |lead| keys("aalo sim net w a", &[], &[("lead", lead), ("scheduler", "x")]);
        assert_eq!(named(&[lead("5ms"), lead("20ms")]), ["lead 5ms", "lead 20ms"]);
    }

    #[test]
    fn files_of_one_name_are_named_by_their_paths() {
        let of = |all: &[&str]| files(&all.iter().map(Path::new).collect::<Vec<_>>());
        assert_eq!(of(&["a/x.json", "b/y.json"]), ["x", "y"]);
        assert_eq!(of(&["a/x.json", "b/x.json"]), ["a/x.json", "b/x.json"]);
        // One and the same file is one, whatever it holds.
        assert_eq!(of(&["a/x.json", "a/x.json"]), ["x", "x"]);
    }

    #[test]
    fn loads_that_differ_are_tables_and_never_pooled_unasked() {
        let mut runs = vec![];
        for scale in ["10", "100"] {
            for policy in ["helios", "c-through"] {
                for seed in 0..3 {
                    runs.push((
                        keys(&format!("{policy} sim net w d"), &[("scale", scale)], &[]),
                        seed,
                    ));
                }
            }
        }
        let shape = |g: &Grouping| {
            let tables = g.tables(runs.clone()).unwrap();
            tables
                .iter()
                .map(|t| {
                    (
                        t.caption(),
                        t.rows
                            .iter()
                            .map(|r| (r.0.get("policy").to_owned(), r.1.len()))
                            .collect::<Vec<_>>(),
                    )
                })
                .collect::<Vec<_>>()
        };
        let rows = |n| vec![("helios".to_owned(), n), ("c-through".into(), n)];
        assert_eq!(
            shape(&Grouping::default()),
            [("scale 10".into(), rows(3)), ("scale 100".into(), rows(3))]
        );
        let pooled = Grouping { pool: Pool { pool: vec!["scale".into()] }, ..Grouping::default() };
        assert_eq!(shape(&pooled), [(String::new(), rows(6))]);
        assert_eq!(pooled.tables(runs.clone()).unwrap()[0].said(), "Pooled over scale: 10, 100.");
        let one = Grouping { by: Some(vec!["none".into()]), ..Grouping::default() };
        assert_eq!(shape(&one)[0].1.len(), 4);
        let wrong = Grouping { by: Some(vec!["scales".into()]), ..Grouping::default() };
        let told = wrong.tables(runs).unwrap_err().to_string();
        assert!(told.contains("--by scales") && told.contains("did you mean `scale`?"), "{told}");
        // Two networks under one policy are compared with each other.
        let nets = ["a", "b"].map(|net| (keys(&format!("p sim {net} w f"), &[], &[]), 0));
        assert_eq!(Grouping::default().tables(nets.to_vec()).unwrap().len(), 1);
    }

    #[test]
    fn what_policies_differ_in_besides_their_scheduler_is_listed() {
        let row = |name: &str, lead: &str, scheduler: &str| {
            (
                name.to_owned(),
                keys(
                    "x",
                    &[],
                    &[("lead", lead), ("scheduler", scheduler), ("external.command", scheduler)],
                ),
            )
        };
        let [a, b] = [row("a", "5ms", "edmonds"), row("b", "20ms", "external")];
        let of = |rows: &[&(String, RunKeys)]| {
            differences(&rows.iter().map(|r| (r.0.clone(), &r.1)).collect::<Vec<_>>())
        };
        let pair = |n: &str, v: &str| (n.to_owned(), v.to_owned());
        assert_eq!(of(&[&a, &b]), [("lead".to_owned(), vec![pair("a", "5ms"), pair("b", "20ms")])]);
        assert_eq!(of(&[&a, &row("c", "5ms", "x")]), []);
        assert_eq!(
            of(&[&a, &("old".into(), RunKeys::default())]),
            [],
            "an old result does not say"
        );
    }
}
