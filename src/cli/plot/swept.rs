//! A figure over a key in which runs differ, such as mean CCT over delta: a line a policy, with 95
//! % intervals.

use std::path::Path;

use crate::cli::CliError;
use crate::cli::apart::{Grouping, Pool, RunKeys, files, said, scenes};
use crate::cli::compare::groups;
use crate::cli::study::ComparedPolicies;
use crate::config::nearest::did_you_mean;
use crate::draw::axis::{Axis, Room};
use crate::draw::chart::{Chart, ChartStyle, LegendKey, LegendSample, pen};
use crate::draw::{Pen, Sheet};
use crate::runtime::report::caveats::explained;
use crate::runtime::statistics::MeanEstimate;
use crate::runtime::study::{AnyResult, FigureUnit, Measured, RunAccount};
use crate::units::{BitRate, Bytes, NANOS, Span};

/// Values further apart than this, the least above zero, stand on an axis of ratios.
const WIDE: f64 = 20.0;
/// What the ends of the axis leave free beside the outermost values, as a part of it.
const BESIDE: f64 = 0.05;

/// The chart's data.
#[derive(Debug)]
pub struct Swept {
    key: String,
    /// The swept values, as numbers and as they were given.
    marks: Vec<(f64, String)>,
    figure: String,
    unit: FigureUnit,
    /// Name and points of each line.
    lines: Vec<(String, Vec<(f64, MeanEstimate)>)>,
}

/// A value as a number, of whatever unit.
fn number(text: &str) -> Option<f64> {
    let plain = text.parse::<f64>().ok().filter(|v| v.is_finite());
    let span = || text.parse::<Span>().ok().map(|s| s.0 as f64);
    let rate = || text.parse::<BitRate>().ok().map(|r| r.0 as f64);
    let bytes = || text.parse::<Bytes>().ok().map(|b| b.0 as f64);
    plain.or_else(span).or_else(rate).or_else(bytes)
}

/// The key that is swept: the one that is asked for, or the only one whose values are numbers.
fn swept(all: &[RunKeys], differ: &[String], asked: Option<&str>) -> Result<String, String> {
    let list = |keys: &[&str]| if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
    let names: Vec<&str> = differ.iter().map(String::as_str).collect();
    if let Some(key) = asked {
        let why = || {
            format!(
                "--x {key}: these runs do not differ in it{}; they differ in: {}",
                did_you_mean(key, names.clone()),
                list(&names)
            )
        };
        return names.contains(&key).then(|| key.to_owned()).ok_or_else(why);
    }
    let numbers: Vec<&str> = names
        .iter()
        .copied()
        .filter(|key| all.iter().all(|k| number(k.get(key)).is_some()))
        .collect();
    match numbers[..] {
        [only] => Ok(only.to_owned()),
        [] => Err(format!(
            "these runs differ in no key whose values are numbers; they differ in: {}",
            list(&names)
        )),
        _ => Err(format!(
            "these runs differ in several keys: {}; name one of them with --x",
            list(&numbers)
        )),
    }
}

impl Swept {
    /// Of results that differ in the key `x`, or in one key only if none is named; `figure` is that
    /// of a comparison, the average completion time if none is named. `labels` are names of
    /// policies.
    ///
    /// # Errors
    /// Results that do not differ in such a key, or have no such figure.
    pub fn new(
        read: &[(&Path, Vec<AnyResult>)],
        pool: &Pool,
        labels: &[String],
        (x, figure): (Option<&str>, Option<&str>),
    ) -> Result<Self, CliError> {
        let names = files(&read.iter().map(|r| r.0).collect::<Vec<_>>());
        let each = read.iter().zip(&names).flat_map(|((_, results), name)| {
            results.iter().map(|r| RunKeys::of(&RunAccount::from(r), name))
        });
        let all: Vec<RunKeys> = each.map(|k| k.without(&pool.pool)).collect();
        let differ: Vec<String> = scenes(&all.iter().collect::<Vec<_>>())
            .into_iter()
            .filter(|k| k != "file" && k != "mechanism")
            .collect();
        let key = swept(&all, &differ, x).map_err(CliError::Usage)?;
        let how = Grouping { by: Some(differ), pool: pool.clone() };
        Self::of(&groups::studies(read, &how, labels, None)?, key, figure).map_err(CliError::Usage)
    }

    fn of(tables: &[ComparedPolicies], key: String, figure: Option<&str>) -> Result<Self, String> {
        let policies = || tables.iter().flat_map(|t| &t.study.policies);
        let known: Vec<&Measured> =
            policies().next().map(|p| p.figures.iter().collect()).unwrap_or_default();
        let wanted = match figure {
            None => known.iter().find(|f| f.name.starts_with("average")),
            Some(name) => known.iter().find(|f| f.name.eq_ignore_ascii_case(name)),
        };
        let names = known.iter().map(|f| f.name).collect::<Vec<_>>().join(", ");
        let wanted = wanted
            .ok_or_else(|| format!("--figure {}: there are {names}", figure.unwrap_or_default()))?;
        let (mut marks, mut lines) = (vec![], Vec::<(String, Vec<(f64, MeanEstimate)>)>::new());
        for table in tables {
            let (here, rest): (Vec<_>, Vec<_>) =
                table.scene.iter().cloned().partition(|(k, _)| *k == key);
            let text = here.into_iter().map(|(_, v)| v).next().filter(|v| !v.is_empty());
            let text = text.ok_or_else(|| format!("some of these runs have no {key}"))?;
            // What is no number stands at its place in the order of the runs.
            let at = match marks.iter().find(|m: &&(f64, String)| m.1 == text) {
                Some(mark) => mark.0,
                None => number(&text).unwrap_or(marks.len() as f64),
            };
            if marks.iter().all(|m| m.1 != text) {
                marks.push((at, text));
            }
            for p in &table.study.policies {
                let scene =
                    if rest.is_empty() { String::new() } else { format!(", {}", said(&rest)) };
                let name = explained(&format!("{}{scene}", p.policy), &p.caveats);
                let Some(value) = p.figures.iter().find(|f| f.name == wanted.name) else {
                    continue;
                };
                match lines.iter_mut().find(|l| l.0 == name) {
                    Some(line) => line.1.push((at, value.estimate)),
                    None => lines.push((name, vec![(at, value.estimate)])),
                }
            }
        }
        marks.sort_by(|a, b| a.0.total_cmp(&b.0));
        lines.iter_mut().for_each(|l| l.1.sort_by(|a, b| a.0.total_cmp(&b.0)));
        Ok(Self { key, marks, figure: wanted.name.into(), unit: wanted.unit, lines })
    }

    /// What is drawn, for the title.
    pub fn title(&self) -> String {
        let mut figure = self.figure.clone();
        figure[..1].make_ascii_uppercase();
        format!("{figure} over {}", self.key)
    }

    /// The chart.
    pub fn draw(&self, look: &ChartStyle) -> Sheet {
        let (least, most) = (self.marks[0].0, self.marks[self.marks.len() - 1].0);
        let log = least > 0.0 && most / least >= WIDE;
        let margin = if log {
            (most / least).powf(BESIDE)
        } else {
            ((most - least) * BESIDE).max(f64::MIN_POSITIVE)
        };
        let range =
            if log { (least / margin, most * margin) } else { (least - margin, most + margin) };
        let scale = match self.unit {
            FigureUnit::Seconds => NANOS as f64,
            FigureUnit::Gigabytes => 1e9,
            FigureUnit::Share | FigureUnit::Count => 1.0,
        };
        let ends = |e: &MeanEstimate| (e.mean + e.half.unwrap_or(0.0)) * scale;
        let highest =
            self.lines.iter().flat_map(|l| &l.1).map(|p| ends(&p.1)).fold(0.0, f64::max) * 1.05;
        let value = |room: Room| match self.unit {
            FigureUnit::Seconds => Axis::time(&self.figure, highest, room),
            FigureUnit::Gigabytes => Axis::bytes(&self.figure, highest, room),
            FigureUnit::Share => Axis::percent(&self.figure, highest, room),
            FigureUnit::Count => Axis::plain(&self.figure, highest, room),
        };
        let pens: Vec<Pen> = (0..self.lines.len()).map(|k| pen(k, look.paper.text())).collect();
        let keys = self
            .lines
            .iter()
            .zip(&pens)
            .map(|(l, pen)| LegendKey {
                label: l.0.clone(),
                sample: LegendSample::Line(pen.clone()),
            })
            .collect();
        let mut chart = Chart::new(
            look,
            keys,
            |room| Axis::marked(&self.key, &self.marks, range, log, room),
            value,
        );
        for ((_, points), pen) in self.lines.iter().zip(&pens) {
            chart.line(points.iter().map(|(at, e)| (*at, e.mean * scale)), pen.clone());
            for (at, e) in points {
                chart.whisker(*at, e.mean * scale, e.half.unwrap_or(0.0) * scale, pen);
            }
        }
        chart.sheet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_unit_are_numbers_and_names_are_none() {
        let all = ["10", "0.5", "50ms", "100Gb/s", "2MB"].map(number);
        assert_eq!(all, [Some(10.0), Some(0.5), Some(50e6), Some(100e9), Some(2e6)]);
        assert_eq!(["facebook", "", "inf", "NaN"].map(number), [None; 4]);
    }

    #[test]
    fn the_key_is_the_only_one_of_numbers_or_the_one_that_is_named() {
        let run = |scale: &str, delta: &str| {
            let options = [("scale", scale), ("ocs.0.delta", delta)]
                .map(|(k, v)| (k.to_owned(), v.to_owned()));
            RunKeys::new(
                &[("policy", "p"), ("workload", if scale == "1" { "a" } else { "b" })],
                options.into(),
                Default::default(),
            )
        };
        let of = |all: &[RunKeys], asked| {
            let differ = scenes(&all.iter().collect::<Vec<_>>());
            swept(all, &differ, asked)
        };
        let both = [run("1", "1ms"), run("2", "5ms")];
        assert_eq!(of(&[run("1", "1ms"), run("1", "5ms")], None).as_deref(), Ok("ocs.0.delta"));
        assert!(
            of(&both, None)
                .unwrap_err()
                .contains("several keys: ocs.0.delta, scale; name one of them with --x")
        );
        assert_eq!(of(&both, Some("scale")).as_deref(), Ok("scale"));
        assert_eq!(of(&both, Some("workload")).as_deref(), Ok("workload"));
        assert!(
            of(&both, Some("delta"))
                .unwrap_err()
                .contains("differ in: workload, ocs.0.delta, scale")
        );
        assert!(of(&[run("1", "1ms")], None).unwrap_err().contains("differ in: none"));
    }
}
