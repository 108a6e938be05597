//! Empirical distribution functions of completion times, several in one chart.

use plotters::prelude::*;

use super::Look;
use super::canvas::{Area, Fault, colour, seconds, text};
use super::input::Times;
use crate::cli::tables;
use crate::runtime::report::percentile;
use crate::units::Span;

/// Distributions with their names.
pub struct Cdf {
    axis: &'static str,
    things: &'static str,
    lines: Vec<Line>,
}

struct Line {
    name: String,
    /// Finished ones, sorted, in seconds.
    seconds: Vec<f64>,
    /// Finished or not.
    all: usize,
}

impl Cdf {
    /// Lines of times by name; what never finished keeps a line below 100 %.
    pub fn new(axis: &'static str, things: &'static str, all: Vec<(String, Times)>) -> Self {
        let line = |(name, times): (String, Times)| {
            let mut done: Vec<Span> = times.iter().flatten().copied().collect();
            done.sort_unstable();
            let mut name = format!("{name}: median {}, p95 {}", tables::span(percentile(&done, 50)), tables::span(percentile(&done, 95)));
            if done.len() < times.len() {
                name += &format!(", {} of {} unfinished", times.len() - done.len(), times.len());
            }
            Line { name, seconds: done.iter().map(|s| s.as_secs_f64()).collect(), all: times.len() }
        };
        Self { axis, things, lines: all.into_iter().map(line).collect() }
    }

    /// Steps of one line, drawn on to `end`.
    fn steps(line: &Line, start: f64, end: f64) -> Vec<(f64, f64)> {
        let mut points = vec![(start, 0.0)];
        let mut share = 0.0;
        for (k, &x) in line.seconds.iter().enumerate() {
            points.push((x.max(start), share));
            share = (k + 1) as f64 / line.all as f64;
            points.push((x.max(start), share));
        }
        points.push((end, share));
        points
    }

    pub fn draw<DB: DrawingBackend>(&self, area: &Area<DB>, look: &Look) -> Result<(), Fault<DB>> {
        let all = || self.lines.iter().flat_map(|l| l.seconds.iter().copied()).filter(|s| *s > 0.0);
        let most = all().fold(0.0, f64::max).max(1e-9);
        let least = all().fold(most, f64::min);
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(area);
        chart.caption(&look.title, text(20)).margin(16).x_label_area_size(48).y_label_area_size(64);
        let steps = |start: f64, end: f64| self.lines.iter().map(move |l| Self::steps(l, start, end)).collect::<Vec<_>>();
        // The two axes are different types to the library.
        macro_rules! finish {
            ($chart:expr, $start:expr, $end:expr) => {{
                let mut chart = $chart;
                let y = format!("share of {}", self.things);
                let mut mesh = chart.configure_mesh();
                mesh.x_desc(self.axis).y_desc(y).label_style(text(14)).axis_desc_style(text(15));
                mesh.max_light_lines(2).light_line_style(BLACK.mix(0.05)).bold_line_style(BLACK.mix(0.15));
                mesh.x_label_formatter(&|s| seconds(*s)).y_label_formatter(&|s| format!("{:.0}%", s * 100.0)).draw()?;
                for (k, points) in steps($start, $end).into_iter().enumerate() {
                    let style = colour(k).stroke_width(2);
                    let drawn = chart.draw_series(LineSeries::new(points, style))?.label(self.lines[k].name.clone());
                    drawn.legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], style));
                }
                let mut legend = chart.configure_series_labels();
                legend.position(SeriesLabelPosition::LowerRight).margin(12).legend_area_size(30);
                legend.background_style(WHITE.mix(0.9)).border_style(BLACK.mix(0.3)).label_font(text(14)).draw()?;
            }};
        }
        if look.log {
            let (start, end) = (10f64.powf(least.log10().floor()), 10f64.powf(most.log10().ceil()).max(least * 10.0));
            finish!(chart.build_cartesian_2d((start..end).log_scale(), 0.0..1.02)?, start, end);
        } else {
            finish!(chart.build_cartesian_2d(0.0..most * 1.05, 0.0..1.02)?, 0.0, most * 1.05);
        }
        area.present()
    }
}
