//! Completion times over those of the first policy, by class of size: bars with 95 % intervals.

use crate::cli::apart::said;
use crate::cli::study::ComparedPolicies;
use crate::draw::axis::Axis;
use crate::draw::chart::{Chart, ChartStyle, LegendKey, LegendSample};
use crate::draw::{Fill, Ink, Pen, Sheet, many};
use crate::runtime::report::caveats::explained;
use crate::runtime::statistics::MeanEstimate;
use crate::runtime::study::{Normalised, Policy};

/// The part of a class' place that its bars fill.
const FILLED: f64 = 0.8;
/// The colour of the line at the first policy's times.
const BASE: Ink = Ink::new(60, 60, 60);

/// The bars of studies: each policy against the first one of its own table.
pub struct Bars {
    of_jobs: bool,
    /// What the others are held against: the first policy of each table, all if they differ.
    base: String,
    others: Vec<Policy>,
    /// Whether 95th percentiles are drawn; else means.
    p95: bool,
}

impl Bars {
    /// Of at least two policies that ran the same workloads.
    ///
    /// # Errors
    /// Why there is nothing to hold against each other.
    pub fn new(tables: &[ComparedPolicies], p95: bool) -> Result<Self, String> {
        let (mut bases, mut all): (Vec<String>, Vec<Policy>) = (vec![], vec![]);
        for table in tables {
            let [first, others @ ..] = &table.study.policies[..] else { continue };
            if others.is_empty() {
                return Err(format!(
                    "the results are all of {}; give those of several policies; the others are compared with the first",
                    first.policy
                ));
            }
            if let Some(apart) = others.iter().find(|p| p.normalised.is_empty()) {
                return Err(format!(
                    "{} and {} have no coflow or job in common that both finished",
                    first.policy, apart.policy
                ));
            }
            let scene =
                if tables.len() > 1 { format!(", {}", said(&table.scene)) } else { String::new() };
            let base = explained(&first.policy, &first.caveats);
            if !bases.contains(&base) {
                bases.push(base);
            }
            let named = |p: &Policy| Policy {
                policy: explained(&format!("{}{scene}", p.policy), &p.caveats),
                ..p.clone()
            };
            all.extend(others.iter().map(named));
        }
        let of_jobs = tables.iter().any(|t| t.study.of_jobs);
        if all.is_empty() {
            Err("no results".into())
        } else {
            Ok(Self { of_jobs, base: bases.join(", "), others: all, p95 })
        }
    }

    fn of(&self, n: &Normalised) -> MeanEstimate {
        if self.p95 { n.p95 } else { n.average }
    }

    /// The chart.
    pub fn draw(&self, look: &ChartStyle) -> Sheet {
        let others = &self.others;
        // The first one with most classes has them all in their order.
        let classes: Vec<&str> = others
            .iter()
            .map(|p| &p.normalised)
            .max_by_key(|n| n.len())
            .into_iter()
            .flatten()
            .map(|n| n.class)
            .collect();
        let most = others
            .iter()
            .flat_map(|p| &p.normalised)
            .map(|n| self.of(n).mean + self.of(n).half.unwrap_or(0.0))
            .fold(1.0, f64::max);
        let runs =
            |p: &Policy| if p.pairs == 1 { String::new() } else { format!(", {} runs", p.pairs) };
        let text = look.paper.text();
        let base = Pen { ink: BASE, width: text / 9.0, dash: &[4.0, 2.0] };
        let filled = |(k, p): (usize, &Policy)| LegendKey {
            label: format!("{}{}", p.policy, runs(p)),
            sample: LegendSample::Filled(many(k)),
        };
        let line = LegendKey {
            label: format!("{} = 1", self.base),
            sample: LegendSample::Line(base.clone()),
        };
        let keys = others.iter().enumerate().map(filled).chain([line]).collect();
        let (thing, things) = if self.of_jobs { ("JCT", "jobs") } else { ("CCT", "coflows") };
        let title = format!(
            "{} {thing} over that of {}",
            if self.p95 { "95th percentile of" } else { "Mean" },
            self.base
        );
        let names = |_| Axis {
            title: String::new(),
            range: (0.0, classes.len() as f64),
            log: false,
            ticks: vec![],
            minor: vec![],
        };
        // By ratios, bars begin at 1: twice as long is as high as half as long is deep.
        let lowest = |n: &Normalised| {
            (self.of(n).mean - self.of(n).half.unwrap_or(0.0)).max(self.of(n).mean / 10.0)
        };
        let least = others
            .iter()
            .flat_map(|p| &p.normalised)
            .map(lowest)
            .filter(|v| *v > 0.0)
            .fold(1.0, f64::min);
        let ratio = |room| {
            if look.log {
                Axis::log_plain(&title, least, most, room)
            } else {
                Axis::plain(&title, most * 1.05, room)
            }
        };
        let foot = if look.log { 1.0 } else { 0.0 };
        let mut chart = Chart::new(look, keys, names, ratio);
        for (c, class) in classes.iter().enumerate() {
            let each = FILLED / others.len() as f64;
            for (k, p) in others.iter().enumerate() {
                let Some(n) = p.normalised.iter().find(|n| n.class == *class) else { continue };
                let middle = c as f64 + (1.0 - FILLED) / 2.0 + each * (k as f64 + 0.5);
                bar(
                    &mut chart,
                    (middle, foot),
                    each * 0.86,
                    self.of(n),
                    many(k),
                    &format!("{}, {class}: {thing} of {} {things}", p.policy, n.count),
                );
            }
            chart.name(c as f64, c as f64 + 1.0, class);
        }
        let ends = [chart.at(0.0, 1.0), chart.at(classes.len() as f64, 1.0)];
        chart.sheet.line(ends[0], ends[1], base);
        chart.sheet
    }
}

/// A bar from its foot to its value, and its interval.
fn bar(
    chart: &mut Chart,
    (middle, foot): (f64, f64),
    wide: f64,
    value: MeanEstimate,
    fill: Fill,
    title: &str,
) {
    let (left, right) = (
        chart.at(middle - wide / 2.0, value.mean.max(foot)),
        chart.at(middle + wide / 2.0, value.mean.min(foot)),
    );
    let told = value
        .half
        .map_or(format!("{:.3}", value.mean), |half| format!("{:.3} ± {half:.3}", value.mean));
    let (thin, cap) = (chart.text / 11.0, ((right.0 - left.0) / 4.0).min(chart.text / 3.0));
    let apart = chart.text * 0.32;
    chart.sheet.area(
        left,
        (right.0 - left.0, right.1 - left.1),
        fill,
        apart,
        &format!("{title}: {told}"),
    );
    let Some(half) = value.half else { return };
    let (top, low) =
        (chart.at(middle, value.mean + half), chart.at(middle, (value.mean - half).max(0.0)));
    chart.sheet.line(top, low, Pen::new(Ink::BLACK, thin));
    for end in [top, low] {
        chart.sheet.line((end.0 - cap, end.1), (end.0 + cap, end.1), Pen::new(Ink::BLACK, thin));
    }
}
