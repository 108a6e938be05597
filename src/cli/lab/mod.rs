//! `heliostat lab`: the sheet of answers of a lab, and what is not yet right in one that was filled
//! in.

mod judge;
mod spec;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use self::judge::{LabVerdict, judge};
use self::spec::{Lab, labs};
use super::log::say;
use super::tables::wrapped;
use super::{CliError, files, print};
use crate::config::yaml;

/// Exercises for a class or alone (docs/labs): a sheet for the answers, and what is not yet right
/// in it
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: LabCommand,
}

#[derive(clap::Subcommand, Clone, Debug)]
enum LabCommand {
    /// Writes a sheet with the questions of a lab, to be filled in
    Start {
        /// The lab, such as 2
        number: u32,
        /// Where to. A file that is there stays as it is [default: lab-N.yaml]
        file: Option<PathBuf>,
    },
    /// Says what is not yet right in a sheet that was filled in; exit code 1 until all answers are
    /// right
    ///
    /// It runs the lab's simulations to know what is right, and reads the results that the sheet
    /// names.
    Check {
        /// The lab, such as 2
        number: u32,
        /// The sheets, one or those of a class [default: lab-N.yaml]
        files: Vec<PathBuf>,
    },
}

/// Runs the subcommand.
///
/// # Errors
/// No such lab, files that cannot be read or written, and answers that are missing or not right.
pub fn run(args: &Args) -> Result<(), CliError> {
    match &args.what {
        LabCommand::Start { number, file } => {
            let (lab, to) = (find(*number)?, file.clone().unwrap_or_else(|| usual(*number)));
            files::write_new(&to, &sheet(&lab))?;
            say!("wrote {}: fill it in, then `heliostat lab check {number}`", to.display());
            Ok(())
        }
        LabCommand::Check { number, files } => {
            let (lab, usual) = (find(*number)?, [usual(*number)]);
            let files = if files.is_empty() { &usual[..] } else { files };
            let sheets = files
                .iter()
                .map(|f| Ok((f, read(&lab, f)?)))
                .collect::<Result<Vec<_>, CliError>>()?;
            let facts = lab.facts()?;
            let mut all_right = true;
            for (k, (file, answers)) in sheets.iter().enumerate() {
                let (text, right) =
                    checked(&lab, answers, &facts, file.parent().unwrap_or(Path::new("")));
                print(&format!("{}{}: {text}", if k > 0 { "\n" } else { "" }, file.display()))?;
                all_right &= right;
            }
            if all_right {
                Ok(())
            } else {
                Err(CliError::Failed("some answers are missing or not right yet".into()))
            }
        }
    }
}

fn usual(number: u32) -> PathBuf {
    format!("lab-{number}.yaml").into()
}

fn find(number: u32) -> Result<Lab, CliError> {
    let mut labs = labs();
    let last = labs.len();
    let at = labs.iter().position(|l| l.lab == number);
    at.map(|k| labs.swap_remove(k))
        .ok_or_else(|| CliError::Usage(format!("there is no lab {number}; allowed: 1 to {last}")))
}

/// The questions, each above a key without a value.
fn sheet(lab: &Lab) -> String {
    let head = format!(
        "# Lab {0}: {1}. Fill in what you found, then: heliostat lab check {0}\n\
         # Times are in seconds, or with a unit (690ms); shares are 0 to 1, or in per cent (50%); sizes are in MB, or with a unit.\n",
        lab.lab, lab.title
    );
    let question = |q: &spec::LabQuestion| {
        let left_out = if q.optional { " Leave it empty if you have no root." } else { "" };
        format!("\n# {}{left_out}\n{}:\n", wrapped(&q.asks, 2).replace('\n', "\n#"), q.key)
    };
    head + &lab.answers.iter().map(question).collect::<String>()
}

/// What a sheet says, by key.
fn read(lab: &Lab, file: &Path) -> Result<Map<String, Value>, CliError> {
    let name = file.display().to_string();
    let wrong = |why: String| CliError::Invalid(format!("{name}: {why}"));
    if !file.exists() {
        return Err(wrong(format!(
            "no such file; `heliostat lab start {}` writes one to fill in",
            lab.lab
        )));
    }
    let answers: Map<String, Value> = yaml::read(&files::read_text(file)?, &name)?;
    let keys: Vec<&str> = lab.answers.iter().map(|q| q.key.as_str()).collect();
    match answers.keys().find(|k| !keys.contains(&k.as_str())) {
        Some(odd) => Err(wrong(format!(
            "unknown key `{odd}`; lab {} asks for: {}",
            lab.lab,
            keys.join(", ")
        ))),
        None => Ok(answers),
    }
}

/// Where the keys begin in what is said of a sheet.
const INDENT: usize = 13;

/// What is said of a sheet, and whether it is done.
fn checked(
    lab: &Lab,
    answers: &Map<String, Value>,
    facts: &spec::LabResults,
    directory: &Path,
) -> (String, bool) {
    let (mut lines, mut right, mut open, mut left_out) = (String::new(), 0, 0, 0);
    for q in &lab.answers {
        let (word, why) =
            match judge(q, answers.get(&q.key).unwrap_or(&Value::Null), facts, directory) {
                LabVerdict::Right => {
                    right += 1;
                    ("right", String::new())
                }
                LabVerdict::NotYet(why) => {
                    open += 1;
                    ("not yet", format!(": {why}"))
                }
                LabVerdict::Missing if q.optional => {
                    left_out += 1;
                    ("left out", String::new())
                }
                LabVerdict::Missing => {
                    open += 1;
                    ("no answer", String::new())
                }
            };
        let told = wrapped(&format!("{:INDENT$}{}{why}", "", q.key), INDENT);
        lines += &format!("  {word:9}  {}\n", &told[INDENT..]);
    }
    let without = if left_out > 0 { format!(", {left_out} left out") } else { String::new() };
    (
        format!(
            "{right} of {} answers of lab {} are right{without}\n{lines}",
            lab.answers.len(),
            lab.lab
        ),
        open == 0,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lab() -> Lab {
        let text = "- lab: 1\n  title: T\n  answers:\n  - {key: a, asks: A?, is: 2, hint: Count again.}\n  \
                    - {key: b, asks: B?, is: [x, y], hint: Look.}\n  - {key: c, asks: C?, optional: true, is: {file: []}}\n";
        spec::parse(text).swap_remove(0)
    }

    #[test]
    fn a_sheet_asks_for_all_answers_and_says_what_is_open() {
        let (lab, facts) = (lab(), spec::LabResults::default());
        let told = |answers: Value| {
            let Value::Object(map) = answers else { panic!("a map") };
            checked(&lab, &map, &facts, Path::new(""))
        };
        let (text, done) = told(json!({"a": 2.01, "b": ["Y", "x"]}));
        assert!(
            done && text.starts_with("2 of 3 answers of lab 1 are right, 1 left out\n")
                && text.contains("left out   c"),
            "{text}"
        );
        let (text, done) = told(json!({"a": 3, "b": null}));
        assert!(
            !done
                && text.contains("not yet    a: 3 is too large. Count again.")
                && text.contains("no answer  b"),
            "{text}"
        );
        let empty = sheet(&lab);
        assert!(lab.answers.iter().all(|q| empty.contains(&format!("\n{}:\n", q.key))), "{empty}");
        assert!(
            yaml::read::<Map<String, Value>>(&empty, "x").unwrap().values().all(Value::is_null)
        );
    }

    #[test]
    fn a_sheet_of_another_lab_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("s.yaml");
        std::fs::write(&file, "q: 3\n").unwrap();
        assert!(
            read(&lab(), &file)
                .unwrap_err()
                .to_string()
                .contains("unknown key `q`; lab 1 asks for: a, b, c")
        );
        assert!(
            read(&lab(), &dir.path().join("none")).unwrap_err().to_string().contains("lab start 1")
        );
        assert!(find(0).unwrap_err().to_string().contains("allowed: 1 to 9"));
    }
}
