//! Empirical distribution functions of completion times, several in one chart.

use super::input::CompletionTimes;
use crate::cli::tables;
use crate::draw::Sheet;
use crate::draw::axis::Axis;
use crate::draw::chart::{Chart, ChartStyle, LegendKey, LegendSample, pen};
use crate::runtime::spans::percentile;
use crate::units::Span;

/// Distributions with their names.
pub struct Cdf {
    axis: &'static str,
    things: &'static str,
    lines: Vec<CdfCurve>,
}

struct CdfCurve {
    name: String,
    /// Finished ones, sorted, in nanoseconds.
    times: Vec<f64>,
    /// Finished or not.
    all: usize,
}

impl Cdf {
    /// Lines of times by name; what never finished keeps a line below 100 %.
    pub fn new(
        axis: &'static str,
        things: &'static str,
        all: Vec<(String, CompletionTimes)>,
    ) -> Self {
        let line = |(name, times): (String, CompletionTimes)| {
            let mut done: Vec<Span> = times.iter().flatten().copied().collect();
            done.sort_unstable();
            let mut name = format!(
                "{name}: median {}, p95 {}",
                tables::span(percentile(&done, 50)),
                tables::span(percentile(&done, 95))
            );
            if done.len() < times.len() {
                name += &format!(", {} of {} unfinished", times.len() - done.len(), times.len());
            }
            CdfCurve { name, times: done.iter().map(|s| s.0 as f64).collect(), all: times.len() }
        };
        Self { axis, things, lines: all.into_iter().map(line).collect() }
    }

    /// Steps of one line, drawn on to `end`.
    fn steps(line: &CdfCurve, start: f64, end: f64) -> Vec<(f64, f64)> {
        let mut points = vec![(start, 0.0)];
        let mut share = 0.0;
        for (k, &x) in line.times.iter().enumerate() {
            points.push((x.max(start), share));
            share = (k + 1) as f64 / line.all as f64;
            points.push((x.max(start), share));
        }
        points.push((end, share));
        points
    }

    /// The chart.
    pub fn draw(&self, look: &ChartStyle) -> Sheet {
        let all = || self.lines.iter().flat_map(|l| l.times.iter().copied()).filter(|t| *t > 0.0);
        let most = all().fold(0.0, f64::max).max(1.0);
        let least = all().fold(most, f64::min);
        let pens = |k| pen(k, look.paper.text());
        let keys = self
            .lines
            .iter()
            .enumerate()
            .map(|(k, l)| LegendKey { label: l.name.clone(), sample: LegendSample::Line(pens(k)) });
        let time = |room| {
            if look.log {
                Axis::log_time(self.axis, least, most, room)
            } else {
                Axis::time(self.axis, most * 1.03, room)
            }
        };
        let share = |room| Axis::percent(&format!("Share of {}", self.things), 1.02, room);
        let mut chart = Chart::new(look, keys.collect(), time, share);
        let (start, end) = chart.x.range;
        for (k, line) in self.lines.iter().enumerate() {
            chart.line(Self::steps(line, start, end), pens(k));
        }
        chart.sheet
    }
}
