//! How far a sweep is, on stderr: a bar on a terminal, a line every few seconds elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;

use crate::cli::log::say;

/// Between two lines where there is no terminal.
const EVERY: Duration = Duration::from_secs(10);

/// Counts runs that have ended.
pub struct SweepProgress {
    bar: ProgressBar,
    began: Instant,
    state: Mutex<EndedRuns>,
}

struct EndedRuns {
    runs: usize,
    failed: usize,
    told: Instant,
}

impl SweepProgress {
    /// `missing` runs are to be done, of `all`.
    pub fn new(missing: usize, all: usize) -> Self {
        let bar = ProgressBar::new(missing as u64);
        bar.set_style(
            ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {eta} to go{msg}")
                .expect("a valid template"),
        );
        if missing < all {
            say!("{} of {all} runs are there already", all - missing);
        }
        let began = Instant::now();
        Self { bar, began, state: Mutex::new(EndedRuns { runs: 0, failed: 0, told: began }) }
    }

    /// One more has ended.
    pub fn one_more(&self, failed: bool) {
        let mut state = self.state.lock();
        state.runs += 1;
        state.failed += usize::from(failed);
        let failures =
            if state.failed == 0 { String::new() } else { format!(", {} failed", state.failed) };
        if self.bar.is_hidden() {
            if state.told.elapsed() >= EVERY {
                state.told = Instant::now();
                say!(
                    "{}/{} runs, {} to go{failures}",
                    state.runs,
                    self.total(),
                    self.left(state.runs)
                );
            }
        } else {
            self.bar.set_message(failures);
        }
        self.bar.inc(1);
    }

    fn total(&self) -> usize {
        self.bar.length().unwrap_or(0) as usize
    }

    /// The time that the rest takes at the pace so far.
    fn left(&self, runs: usize) -> String {
        let each = self.began.elapsed().as_secs_f64() / runs as f64;
        format!("{:.0} s", each * self.total().saturating_sub(runs) as f64)
    }

    /// All have ended, or were stopped.
    pub fn done(self) {
        self.bar.finish_and_clear();
        let runs = self.state.into_inner().runs;
        if runs > 0 {
            say!("{runs} runs in {:.1} s", self.began.elapsed().as_secs_f64());
        }
    }
}
