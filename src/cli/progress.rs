//! How far a run in virtual time is, on stderr: a line that changes on a terminal, and a last line
//! on any.

use std::cell::Cell;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::log::say;
use super::numbers::several;
use crate::runtime::report::RunEnd;
use crate::units::Time;

/// A shorter run does not say what it took.
const WORTH_TELLING: Duration = Duration::from_secs(1);

/// Measures a run and tells how far it is.
pub struct RunClock {
    bar: ProgressBar,
    began: Instant,
    events: Cell<u64>,
}

impl RunClock {
    /// From now on.
    pub fn start() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_style(ProgressStyle::with_template("{spinner} {msg}").expect("a valid template"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, began: Instant::now(), events: Cell::new(0) }
    }

    /// The run is at `now` after `events` events; `rest` says what else there is to say.
    pub fn show(&self, now: Time, events: u64, rest: &str) {
        self.events.set(events);
        if !self.bar.is_hidden() {
            let rate = events as f64 / self.began.elapsed().as_secs_f64().max(1e-3);
            self.bar.set_message(format!(
                "{:.1} s simulated, {rate:.0} events/s, {rest}",
                now.0 as f64 / 1e9
            ));
        }
    }

    /// The run is over: says what it took, and why it ended if not all is finished.
    pub fn stop(self, end: RunEnd) -> Duration {
        let (took, events) = (self.began.elapsed(), self.events.get());
        self.bar.finish_and_clear();
        match end {
            RunEnd::Finished => {}
            RunEnd::Until => say!("the time is over: the result is that of the run so far"),
            RunEnd::Stopped => say!("stopped: the result is that of the run so far"),
            RunEnd::Stuck => say!("nothing moves any more: the result is that of the run so far"),
        }
        if took >= WORTH_TELLING {
            let seconds = took.as_secs_f64();
            say!(
                "{} in {seconds:.2} s, {:.0} events/s",
                several(events as usize, "event"),
                events as f64 / seconds
            );
        }
        took
    }
}
