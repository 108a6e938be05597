//! Runs that are not what their name says: what is said of them, and when a command fails for it.

use std::path::Path;

use super::CliError;
use super::log::say;
use crate::runtime::report::caveats::{Caveat, CaveatKind, disqualifies};
use crate::runtime::settings::RunPlan;
use crate::workload::Taken;

/// Whether a run counts in which a scheduler's fallback decided
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Allow {
    /// Accepts a run in which the program of the policy ended, could not be reached or answered
    /// wrongly, so that the fallback decided in its place; results are marked. Else the command
    /// fails
    #[arg(long)]
    pub allow_fallback: bool,
}

impl Allow {
    /// Refuses a run of another scheduler than its policy names. `run`: what it is called.
    ///
    /// # Errors
    /// Why it is none of that policy.
    pub fn accept(self, run: &str, caveats: &[Caveat]) -> Result<(), CliError> {
        let refused = disqualifies(caveats).filter(|_| !self.allow_fallback);
        let why = |c: &Caveat| {
            format!(
                "{run} did not decide for itself: {c}; to accept the run, marked, give --allow-fallback"
            )
        };
        refused.map_or(Ok(()), |c| Err(CliError::Failed(why(c))))
    }
}

/// What became of a file when it was read, if it was more than that.
pub fn said_of(taken: &Taken) -> impl Iterator<Item = String> {
    let folded = taken.folded.iter().map(ToString::to_string);
    let left_out = taken.left_out.iter().map(ToString::to_string);
    let jobs = taken.from_jobs.iter().map(|n| {
        format!("{n} jobs: only their shuffles are run, as coflows, with tasks spread evenly")
    });
    let fewer = taken.fewer.iter().map(ToString::to_string);
    folded.chain(left_out).chain(jobs).chain(fewer)
}

/// Says it.
pub fn say_taken(file: &Path, taken: &Taken) {
    said_of(taken).for_each(|what| say!("note: {}: {what}", file.display()));
}

/// Says which policies place no task, since their workload has coflows alone.
pub fn say_unplaced<'a>(plans: impl IntoIterator<Item = &'a RunPlan>) {
    unplaced(plans).for_each(|what| say!("note: {what}"));
}

/// The same as texts.
pub fn unplaced<'a>(plans: impl IntoIterator<Item = &'a RunPlan>) -> impl Iterator<Item = String> {
    plans.into_iter().filter(|plan| plan.jobs.is_some()).map(|plan| {
        format!(
            "{}: its placement has no part in this run: coflows have no tasks to place",
            plan.policy.name
        )
    })
}

/// What became of a file, by the caveats of a result that was made of it.
pub fn say_caveats_of_input(file: &Path, caveats: &[Caveat]) {
    for c in caveats.iter().filter(|c| {
        matches!(c.kind, CaveatKind::Folded | CaveatKind::LeftOut | CaveatKind::JobsAsCoflows)
    }) {
        say!("note: {}: {c}", file.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caveat(kind: CaveatKind) -> Caveat {
        Caveat {
            kind,
            count: 3,
            what: "3 of 3 cycles by the fallback".into(),
            why: Some("x.py: has ended".into()),
        }
    }

    #[test]
    fn a_run_of_the_fallback_is_refused_unless_it_is_allowed() {
        let (broken, late) =
            (vec![caveat(CaveatKind::Fallback)], vec![caveat(CaveatKind::LateAnswers)]);
        let no = Allow::default().accept("mine", &broken).unwrap_err();
        assert_eq!(no.code(), 1);
        assert_eq!(
            no.to_string(),
            "mine did not decide for itself: 3 of 3 cycles by the fallback: x.py: has ended; to accept the run, marked, give --allow-fallback"
        );
        assert_eq!(Allow { allow_fallback: true }.accept("mine", &broken), Ok(()));
        assert_eq!(
            (Allow::default().accept("mine", &late), Allow::default().accept("mine", &[])),
            (Ok(()), Ok(()))
        );
    }
}
