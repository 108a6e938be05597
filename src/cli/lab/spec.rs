//! The questions of the labs, and what is right: numbers, words, or figures of runs that are made
//! when answers are checked.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;

use crate::cli::{CliError, files};
use crate::config::yaml;

/// A lab.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lab {
    /// Its number.
    pub lab: u32,
    /// Its name.
    pub title: String,
    /// Files that its runs need, by name.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Runs by name: the arguments of this program.
    #[serde(default)]
    pub runs: BTreeMap<String, String>,
    /// What it asks for.
    pub answers: Vec<LabQuestion>,
}

/// A question.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabQuestion {
    /// The key of its answer in the sheet.
    pub key: String,
    /// The question in words, with the number that it has in the handout.
    pub asks: String,
    /// What is right.
    pub is: Truth,
    /// How far a number may be off, as a share of what is right.
    #[serde(default = "two_per_cent")]
    pub within: f64,
    /// What helps those whose answer is not right yet.
    #[serde(default)]
    pub hint: String,
    /// Whether it may be left out: it needs root.
    #[serde(default)]
    pub optional: bool,
}

const fn two_per_cent() -> f64 {
    0.02
}

/// What is right.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Truth {
    /// A number.
    Number(f64),
    /// These words, in any order.
    Words(Vec<String>),
    /// A figure of a run.
    Figure(LabFigure),
    /// The name of a JSON file that the student's run wrote, and what must be so in it. Of a list,
    /// the last result counts.
    File {
        /// What must be so.
        file: Vec<Condition>,
    },
}

/// A figure of a run, or its ratio to that of another run: of repeated runs, the mean of the ratios
/// of pairs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabFigure {
    /// Where it stands in the result, as a JSON pointer; times in nanoseconds are taken as seconds.
    pub at: String,
    /// The run.
    pub of: String,
    /// The run by which it is divided.
    pub over: Option<String>,
}

/// What must be so in a student's file: `at` is, or is not, this value, is between two numbers, is
/// below the figure of a run, or near it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// The place, as a JSON pointer.
    pub at: String,
    /// What stands there.
    pub is: Option<Value>,
    /// What does not stand there.
    pub not: Option<Value>,
    /// The smallest and the largest value.
    pub between: Option<[f64; 2]>,
    /// A run in which it is more.
    pub below: Option<String>,
    /// A run in which it is as much, and by which share it may be off.
    pub near: Option<(String, f64)>,
    /// What is said if it is not so.
    pub says: String,
}

/// All labs.
pub fn labs() -> Vec<Lab> {
    parse(include_str!("checks.yaml"))
}

/// Labs in a text of ours.
pub fn parse(text: &str) -> Vec<Lab> {
    yaml::read(text, "checks.yaml")
        .unwrap_or_else(|e| panic!("what is part of the program is valid: {e}"))
}

/// Results of runs by name; several of a run that is repeated.
#[derive(Debug, Default)]
pub struct LabResults(pub BTreeMap<String, Vec<Value>>);

impl LabResults {
    /// What a figure is.
    pub fn figure(&self, f: &LabFigure) -> Option<f64> {
        let of = |run: &str| {
            self.0.get(run)?.iter().map(|r| number(r, &f.at)).collect::<Option<Vec<f64>>>()
        };
        let all = of(&f.of)?;
        let over = f.over.as_ref().map_or_else(|| Some(vec![1.0; all.len()]), |run| of(run))?;
        Some(all.iter().zip(&over).map(|(a, b)| a / b).sum::<f64>() / all.len() as f64)
    }
}

/// The number at a place of a result, times in seconds and sizes in MB.
pub fn number(result: &Value, at: &str) -> Option<f64> {
    let scale = match at {
        _ if at.ends_with("_ns") => 1e9,
        _ if at.ends_with("_bytes") => 1e6,
        _ => 1.0,
    };
    Some(result.pointer(at)?.as_f64()? / scale)
}

/// The results in the text of a JSON file: one, or those of a list.
pub fn results(text: &str) -> Result<Vec<Value>, String> {
    match serde_json::from_str(text).map_err(|e| format!("this is not JSON: {e}"))? {
        Value::Array(all) => Ok(all),
        one => Ok(vec![one]),
    }
}

impl Lab {
    /// The results of its runs, each made by this program in a directory of its own.
    ///
    /// # Errors
    /// What a run said that failed.
    pub fn facts(&self) -> Result<LabResults, CliError> {
        let failed =
            |what: &str, why: String| CliError::Failed(format!("lab {}, {what}: {why}", self.lab));
        let dir =
            tempfile::tempdir().map_err(|e| failed("a directory for its runs", e.to_string()))?;
        for (name, text) in &self.files {
            files::write_text(&dir.path().join(name), text)?;
        }
        let one = |(name, line): (&String, &String)| {
            let all =
                run(line, dir.path()).map_err(|why| failed(&format!("`heliostat {line}`"), why))?;
            Ok((name.clone(), all))
        };
        self.runs.iter().map(one).collect::<Result<_, CliError>>().map(LabResults)
    }
}

/// Runs this program in a directory, and reads what it found.
fn run(line: &str, directory: &Path) -> Result<Vec<Value>, String> {
    let mut c = Command::new(std::env::current_exe().map_err(|e| e.to_string())?);
    c.args(line.split_whitespace()).current_dir(directory);
    // Results of simulations that are repeated are in files alone.
    let file = line.starts_with("simulate").then(|| directory.join("result.json"));
    match &file {
        Some(file) => c.arg("--json").arg(file),
        None => c.args(["-o", "json"]),
    };
    let o = c.output().map_err(|e| e.to_string())?;
    if !o.status.success() {
        return Err(String::from_utf8_lossy(&o.stderr).trim().to_owned());
    }
    let text = file.map_or_else(
        || Ok(String::from_utf8_lossy(&o.stdout).into_owned()),
        |f| files::read_result(&f),
    );
    results(&text.map_err(|e| e.to_string())?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn every_lab_asks_what_it_can_judge() {
        for (k, lab) in labs().iter().enumerate() {
            let name = format!("lab {}", lab.lab);
            assert_eq!(lab.lab as usize, k + 1);
            let keys: BTreeSet<&str> = lab.answers.iter().map(|q| q.key.as_str()).collect();
            assert_eq!(keys.len(), lab.answers.len(), "{name}: each key once");
            let has = |run: &String| assert!(lab.runs.contains_key(run), "{name}: no run {run}");
            for q in &lab.answers {
                match &q.is {
                    Truth::Figure(f) => {
                        [Some(&f.of), f.over.as_ref()].into_iter().flatten().for_each(has)
                    }
                    Truth::File { file } => {
                        for c in file {
                            c.below.iter().chain(c.near.iter().map(|n| &n.0)).for_each(has);
                            let asked = [
                                c.is.is_some(),
                                c.not.is_some(),
                                c.between.is_some(),
                                c.below.is_some(),
                                c.near.is_some(),
                            ];
                            assert_eq!(
                                asked.iter().filter(|a| **a).count(),
                                1,
                                "{name}, {}: {}",
                                q.key,
                                c.at
                            );
                        }
                    }
                    Truth::Number(_) | Truth::Words(_) => {}
                }
                assert!(
                    !q.hint.is_empty() || matches!(q.is, Truth::File { .. }),
                    "{name}, {}: no hint",
                    q.key
                );
            }
        }
    }

    #[test]
    fn figures_have_units_and_ratios_are_means_over_pairs() {
        let of = |ns: [u64; 2]| {
            ns.map(|n| json!({"summary": {"average_cct_ns": n, "cycles": n}})).to_vec()
        };
        let facts = LabResults(
            [
                ("a".to_owned(), of([2_000_000_000, 6_000_000_000])),
                ("b".to_owned(), of([1_000_000_000, 2_000_000_000])),
            ]
            .into(),
        );
        let figure = |at: &str, over: Option<&str>| {
            facts.figure(&LabFigure { at: at.into(), of: "a".into(), over: over.map(Into::into) })
        };
        assert_eq!(figure("/summary/average_cct_ns", None), Some(4.0));
        assert_eq!(figure("/summary/average_cct_ns", Some("b")), Some(2.5));
        assert_eq!(
            (figure("/summary/none", None), figure("/summary/cycles", Some("c"))),
            (None, None)
        );
        assert_eq!(
            number(&json!({"over_circuits_bytes": 37_000_000}), "/over_circuits_bytes"),
            Some(37.0)
        );
        assert!(
            results("{").unwrap_err().contains("not JSON") && results("[1, 2]").unwrap().len() == 2
        );
    }
}
