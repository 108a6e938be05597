//! What a live run shows of itself while it runs.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::cli::log::say;
use crate::control::record::{CircuitState, Snapshot};

/// Live progress on stderr: a bar and three lines on a terminal, a line every two seconds
/// elsewhere.
pub struct LiveProgress {
    name: String,
    total: usize,
    bars: Option<(MultiProgress, ProgressBar, [ProgressBar; 3])>,
    last: Option<(u64, u64, u64)>,
    printed: Instant,
}

impl LiveProgress {
    /// Of a run of `total` coflows under a policy of this name.
    pub fn new(name: &str, total: usize) -> Self {
        let bars = std::io::stderr().is_terminal().then(|| {
            let all = MultiProgress::new();
            let style =
                ProgressStyle::with_template("{prefix} [{elapsed}] {bar:30} {pos}/{len} coflows")
                    .expect("a valid template");
            let bar = all
                .add(ProgressBar::new(total as u64).with_style(style).with_prefix(name.to_owned()));
            let line =
                || {
                    all.add(ProgressBar::new(0).with_style(
                        ProgressStyle::with_template("  {msg}").expect("a valid template"),
                    ))
                };
            let lines = [line(), line(), line()];
            (all, bar, lines)
        });
        Self { name: name.into(), total, bars, last: None, printed: Instant::now() }
    }

    /// Shows a state.
    pub fn show(&mut self, s: &Snapshot) {
        let done = s.coflows.totals.finished;
        let (sent, ocs) = (s.sent.total(), s.over_ocs.total());
        let (t0, sent0, ocs0) = self.last.unwrap_or((s.now.0, sent, ocs));
        let seconds = s.now.0.saturating_sub(t0) as f64 / 1e9;
        let rate = |b: u64| if seconds > 0.0 { b as f64 * 8.0 / seconds / 1e9 } else { 0.0 };
        let (over_ocs, over_eps) =
            (rate(ocs - ocs0), rate((sent - sent0).saturating_sub(ocs - ocs0)));
        let up: Vec<String> = s
            .circuits
            .iter()
            .filter(|c| c.state == CircuitState::Up)
            .map(|c| format!("r{}→r{}", c.input.0, c.output.0))
            .collect();
        let up =
            if up.is_empty() { "no circuits".into() } else { format!("circuits {}", up.join(" ")) };
        let rates = format!(
            "OCS {over_ocs:.2} Gb/s, EPS {over_eps:.2} Gb/s; {} sent back late",
            s.ports.iter().map(|p| p.counters.late_packets).sum::<u64>()
        );
        let demand = format!(
            "demand {}, waiting {}",
            crate::units::Bytes(s.demand.total()),
            crate::units::Bytes(s.backlog.total())
        );
        match &self.bars {
            Some((_, bar, [a, b, c])) => {
                bar.set_position(done);
                a.set_message(rates);
                b.set_message(demand);
                c.set_message(up);
            }
            None if self.printed.elapsed() >= Duration::from_secs(2) => {
                self.printed = Instant::now();
                say!("{}: {done}/{} coflows; {rates}; {demand}; {up}", self.name, self.total);
            }
            None => {}
        }
        self.last = Some((s.now.0, sent, ocs));
    }

    /// Takes the bar away.
    pub fn done(&mut self) {
        if let Some((all, ..)) = self.bars.take() {
            let _ = all.clear();
        }
    }
}
