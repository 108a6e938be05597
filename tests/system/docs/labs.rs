//! The labs check themselves: the sheet that a handout shows filled in is right, and each wrong
//! answer is found.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use super::blocks::{blocks, is_there, prepare};
use super::{documents, text};
use crate::skip::skip;

fn check(lab: u32, sheets: &[String], at: &Path) -> Output {
    let mut c = Command::new(env!("CARGO_BIN_EXE_heliostat"));
    c.args(["lab", "check", &lab.to_string()])
        .args(sheets)
        .current_dir(at)
        .output()
        .expect("the program starts")
}

/// The sheet that a handout shows filled in.
fn filled_in(handout: &str) -> String {
    let text = text(handout);
    let section = text
        .split("\n## Check your answers\n")
        .nth(1)
        .unwrap_or_else(|| panic!("{handout}: no section to check answers"));
    section
        .split("```yaml\n")
        .nth(1)
        .and_then(|s| s.split("```").next())
        .unwrap_or_else(|| panic!("{handout}: no sheet"))
        .to_owned()
}

fn handout(lab: u32) -> String {
    let all = documents();
    let found = all.iter().find(|d| d.starts_with(&format!("docs/labs/{lab}-")));
    found.unwrap_or_else(|| panic!("no handout of lab {lab}")).clone()
}

/// Checks the sheet of a handout, and one for each answer in which that one is wrong.
fn run(lab: u32) {
    let handout = handout(lab);
    let scratch = tempfile::tempdir().expect("a directory");
    // What writes results that the sheet names.
    let writers: Vec<_> =
        blocks(&handout).into_iter().filter(|b| b.commands.contains("--json own-")).collect();
    if !writers.is_empty() && !is_there("python3") {
        return skip(&handout, "python3 is not installed");
    }
    prepare(scratch.path(), &writers.iter().collect::<Vec<_>>());
    let path = format!(
        "{}:{}",
        scratch.path().join(".bin").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    for b in &writers {
        let o = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &b.commands])
            .current_dir(scratch.path())
            .env("PATH", &path)
            .output();
        assert!(o.as_ref().is_ok_and(|o| o.status.success()), "{handout}: {o:?}");
    }
    let sheet = filled_in(&handout);
    let write = |name: String, text: &str| {
        fs::write(scratch.path().join(&name), text).expect("a file");
        name
    };
    let good = check(lab, &[write("good.yaml".into(), &sheet)], scratch.path());
    assert!(
        good.status.success(),
        "{handout}: {}{}",
        String::from_utf8_lossy(&good.stdout),
        String::from_utf8_lossy(&good.stderr)
    );
    // An answer is a line, and so is an empty one.
    let lines: Vec<&str> = sheet.lines().collect();
    let given: Vec<usize> = (0..lines.len()).filter(|&k| !lines[k].ends_with(':')).collect();
    let wrong = |k: usize| {
        let key = lines[k].split(':').next().expect("a key");
        let changed: Vec<String> = (0..lines.len())
            .map(|j| if j == k { format!("{key}: 98765") } else { lines[j].into() })
            .collect();
        write(format!("wrong-{key}.yaml"), &changed.join("\n"))
    };
    let sheets: Vec<String> = given.iter().map(|&k| wrong(k)).collect();
    let o = check(lab, &sheets, scratch.path());
    let said = String::from_utf8_lossy(&o.stdout);
    assert_eq!(o.status.code(), Some(1), "{handout}: {said}");
    let of_sheets: Vec<&str> = said.split("\n\n").collect();
    assert_eq!(of_sheets.len(), given.len(), "{said}");
    for (said, &k) in of_sheets.iter().zip(&given) {
        let key = lines[k].split(':').next().expect("a key");
        assert!(
            said.contains(&format!("  not yet    {key}: ")) && said.matches("not yet").count() == 1,
            "{handout}: {said}"
        );
    }
}

macro_rules! labs {
    ($($name:ident => $number:literal),* $(,)?) => {
        $(#[test] fn $name() { run($number); })*
        const ALL: &[u32] = &[$($number),*];
    };
}

labs! {
    lab_1 => 1, lab_2 => 2, lab_3 => 3, lab_4 => 4, lab_5 => 5, lab_6 => 6, lab_7 => 7, lab_8 => 8, lab_9 => 9,
}

#[test]
fn every_handout_is_checked() {
    let handouts = documents()
        .into_iter()
        .filter(|d| d.starts_with("docs/labs/") && !d.ends_with("README.md"))
        .count();
    assert_eq!(handouts, ALL.len());
}

#[test]
fn a_sheet_begins_empty_and_is_not_written_over() {
    let dir = tempfile::tempdir().expect("a directory");
    let start = || {
        Command::new(env!("CARGO_BIN_EXE_heliostat"))
            .args(["lab", "start", "4"])
            .current_dir(dir.path())
            .output()
            .expect("runs")
    };
    assert!(start().status.success());
    let o = check(4, &[], dir.path());
    let said = String::from_utf8_lossy(&o.stdout);
    assert!(
        o.status.code() == Some(1)
            && said.contains("0 of 8 answers of lab 4 are right")
            && said.matches("no answer").count() == 8,
        "{said}"
    );
    assert!(String::from_utf8_lossy(&start().stderr).contains("exists already"));
}
