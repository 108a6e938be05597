//! `heliostat experiment --list`: which evaluations there are.

use clap::ValueEnum as _;

use crate::cli::tables::wrapped;
use crate::experiment::assumptions::Assumptions;
use crate::experiment::setting::ExperimentSetting;
use crate::experiment::{Paper, Size};

/// All evaluations; of one, its settings and systems.
pub fn listed(paper: Option<Paper>) -> String {
    paper.map_or_else(
        || Paper::value_variants().iter().map(|&p| about(p)).collect::<Vec<_>>().join("\n"),
        settings,
    )
}

/// As much as the names of settings need.
fn size() -> Size {
    Size { seed: 1, repeats: 1, jobs_percent: 1, thin: false, free: Assumptions::default() }
}

/// A paragraph: name and paper, what it shows, how much it is and how long it takes.
fn about(paper: Paper) -> String {
    let value = paper.to_possible_value();
    let name = value.as_ref().map_or("", |v| v.get_name());
    let title =
        value.as_ref().and_then(|v| v.get_help()).map(ToString::to_string).unwrap_or_default();
    let e = paper.experiment(size());
    let minutes = paper.quick_minutes();
    let time = if minutes < 1.0 {
        format!("{:.0} s", minutes * 60.0)
    } else {
        format!("{minutes:.0} min")
    };
    let amount = format!(
        "{} settings, {} numbers; --quick ({} repetitions) takes some {time} of a processor, else {} repetitions",
        e.settings.len(),
        e.claims.len(),
        paper.repeats(true),
        paper.repeats(false)
    );
    format!("{name:14}{title}\n{}\n{}\n", indented(paper.shows()), indented(&amount))
}

fn indented(text: &str) -> String {
    wrapped(&format!("{:13} {text}", ""), 14)
}

/// The settings of an evaluation and their systems, as `--only` and `--system` take them.
fn settings(paper: Paper) -> String {
    let systems =
        |s: &ExperimentSetting| s.systems.iter().map(|y| y.name).collect::<Vec<_>>().join(", ");
    let lines = paper
        .experiment(size())
        .settings
        .iter()
        .map(|s| wrapped(&format!("{}: {}", s.name, systems(s)), 2) + "\n")
        .collect::<String>();
    format!("SETTING (--only): SYSTEMS (--system)\n{lines}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_evaluation_says_what_it_is_and_its_names_are_taken() {
        let all = listed(None);
        for p in Paper::value_variants() {
            let value = p.to_possible_value().unwrap();
            assert!(
                all.contains(&format!("\n{:14}", value.get_name()))
                    || all.starts_with(value.get_name()),
                "{all}"
            );
            // The names that are listed select all.
            let mut e = p.experiment(size());
            let (before, names) = (
                e.settings.len(),
                e.settings.iter().map(|s| s.name.to_owned()).collect::<Vec<_>>(),
            );
            e.only(&names, &[]).unwrap();
            assert_eq!(e.settings.len(), before);
            let told = listed(Some(*p));
            assert!(names.iter().all(|n| told.contains(&format!("\n{n}: "))), "{told}");
        }
        assert!(
            all.contains("Corral (SIGCOMM 2015), section 6")
                && all.contains("--quick (3 repetitions) takes some 2 s"),
            "{all}"
        );
        assert!(all.lines().all(|l| l.chars().count() <= 100), "{all}");
    }
}
