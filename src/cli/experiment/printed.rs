//! The tables of an experiment: numbers beside the paper's, bounds, means and where times go.

use crate::cli::DocumentOutput;
use crate::cli::tables::{self, TextTable};
use crate::experiment::Paper;
use crate::experiment::claim::ClaimVerdict;
use crate::experiment::joint::WITHOUT;
use crate::experiment::live::Slower;
use crate::experiment::measure::PARTS;
use crate::experiment::report::{ExperimentReport, LiveReport, PaperFigure, name};
use crate::experiment::runs::Measure;
use crate::runtime::statistics::MeanEstimate;

/// The tables, one after another, and why some numbers differ.
pub fn text(r: &ExperimentReport, output: DocumentOutput) -> String {
    let draw = |rows: &TextTable, first| rows.drawn(output, first, 1);
    let numbers = numbers(r);
    // A row is a sentence, and stays one.
    let mut out = format!("{}\n\n{}\n", draw(&numbers, numbers.header.len()), draw(&means(r), 2));
    for (setting, about) in &r.settings {
        out += &format!("\n{}", tables::wrapped(&format!("{setting}: {about}"), 2));
    }
    if !r.versus.is_empty() {
        out += &format!(
            "\n\n`joint`, and by how much it has more than the best of the others:\n\n{}",
            draw(&versus(r), 2)
        );
    }
    let parts = parts(r);
    if !parts.rows.is_empty() {
        out += &format!(
            "\n\nBy how much `joint` has more without one of its parts:\n\n{}",
            draw(&parts, 2)
        );
    }
    if !r.bounds.is_empty() {
        out += &format!(
            "\n\nWhat no scheduler can be below: floor, the least here, and what that leaves:\n\n{}",
            draw(&bounds(r), 1)
        );
    }
    if let Some(live) = &r.live {
        let Slower { rates, times } = live.slower;
        out += &format!(
            "\n\nOn networks emulated by {}, with rates divided by {rates}, times by {times} and bytes by both; what was measured is multiplied back:\n\n{}",
            live.mechanism,
            draw(&pairs(live), 2)
        );
    }
    out +=
        &format!("\n\n{}\n{}", tables::wrapped(&r.unprinted(), 0), tables::wrapped(&counted(r), 0));
    let differ: Vec<&PaperFigure> = r.rows.iter().filter(|w| !w.why.is_empty()).collect();
    if !differ.is_empty() {
        out += "\n\nWhere it differs, what was measured:\n";
    }
    for w in differ {
        let off = w.off.map_or(String::new(), |o| format!(" ({o:+.1} points)"));
        out += &format!(
            "\n{}",
            tables::wrapped(&format!("- {}, {}{off}: {}", w.setting, w.figure, w.why), 2)
        );
    }
    let runs = r.size.repeats;
    let partial = if r.partial { ", stopped before the end" } else { "" };
    let look = if r.size.thin { ", a look" } else { "" };
    out += &format!(
        "\n\n{runs} repetitions{look}, from seed {}, {:.0} s on {} threads{partial}\n",
        r.size.seed, r.took_s, r.threads
    );
    tables::document(out, output)
}

/// How many numbers came out how.
fn counted(r: &ExperimentReport) -> String {
    let tally = r.tally();
    let all: Vec<String> = tally.iter().map(|(v, n)| format!("{n} {}", v.words())).collect();
    let chosen = r.rows.iter().filter(|w| w.verdict == ClaimVerdict::Calibrated).count();
    let of = tally.iter().map(|t| t.1).sum::<usize>();
    format!(
        "Of {of} numbers of the paper: {} ({chosen} more, by which free numbers were chosen, are not counted)",
        all.join(", ")
    )
}

fn numbers(r: &ExperimentReport) -> TextTable {
    let mut rows = TextTable::new(&[
        "setting",
        "figure",
        "paper",
        "ours",
        "95% interval",
        "verdict",
        "source",
    ]);
    for w in &r.rows {
        let number = |v: f64| format!("{v:.1}{}", w.unit);
        let ours = if w.values.is_empty() { "-".into() } else { number(w.mean) };
        let half = if w.values.is_empty() { "-".into() } else { w.interval() };
        let paper = w.paper.map_or("-".into(), |p| p.words(w.unit));
        rows.rows.push(vec![
            w.setting.into(),
            w.figure.clone(),
            paper,
            ours,
            half,
            w.verdict.words().into(),
            w.source.into(),
        ]);
    }
    rows
}

/// Floors by setting: of each measure the floor, the least that was measured, and what that leaves.
fn bounds(r: &ExperimentReport) -> TextTable {
    let measures =
        [Measure::Makespan, Measure::MeanJct, Measure::MedianJct, Measure::P95Jct, Measure::P99Jct];
    let mut rows = TextTable::new(&[
        "setting",
        "makespan",
        "mean JCT",
        "median",
        "95th percentile",
        "99th percentile",
    ]);
    for of in r.bounds.chunk_by(|a, b| a.setting == b.setting) {
        let one = |m| of.iter().find(|b| b.measure == m);
        let cell = |m| {
            one(m).map_or("-".into(), |b| {
                format!("{:.1} of {:.1}s: {:.0}%", b.floor, b.best.1, b.leaves_percent)
            })
        };
        rows.rows
            .push(std::iter::once(of[0].setting.to_owned()).chain(measures.map(cell)).collect());
    }
    rows
}

/// A ratio and half of its interval.
fn percent(e: Option<MeanEstimate>) -> String {
    let half = |e: MeanEstimate| e.half.map_or(String::new(), |h| format!(" +-{h:.1}"));
    e.map_or("-".into(), |e| format!("{:+.1}{}%", e.mean, half(e)))
}

/// `joint` beside the floor, the best published system and the best strong baseline.
fn versus(r: &ExperimentReport) -> TextTable {
    let mut rows = TextTable::new(&[
        "setting",
        "figure",
        "bound",
        "joint",
        "best published",
        "against it",
        "best strong baseline",
        "against it",
    ]);
    for v in &r.versus {
        let mut cells = vec![v.setting.to_owned(), name(v.measure).to_owned()];
        cells.extend(
            [v.floor, Some(v.joint)].map(|n| n.map_or("-".into(), |n| shown(v.measure, n))),
        );
        for b in [v.published, v.strong] {
            cells.push(
                b.map_or("-".into(), |b| format!("{} {}", b.system, shown(v.measure, b.mean))),
            );
            cells.push(percent(b.and_then(|b| b.percent)));
        }
        rows.rows.push(cells);
    }
    rows
}

/// `joint` without one of its parts.
fn parts(r: &ExperimentReport) -> TextTable {
    let names: Vec<&str> = WITHOUT.iter().map(|w| w.0).collect();
    let mut rows = TextTable::new(&[&["setting", "figure"][..], &names[..]].concat());
    for v in r.versus.iter().filter(|v| !v.without.is_empty()) {
        let of =
            |n: &&str| percent(v.without.iter().find(|b| b.system == *n).and_then(|b| b.percent));
        rows.rows.push(
            [v.setting, name(v.measure)]
                .map(str::to_owned)
                .into_iter()
                .chain(names.iter().map(of))
                .collect(),
        );
    }
    rows
}

/// The emulated network beside virtual time.
fn pairs(live: &LiveReport) -> TextTable {
    let mut rows =
        TextTable::new(&["setting", "system", "measured", "simulated", "live", "live more"]);
    for p in &live.pairs {
        let cells = [p.setting, p.system, name(p.measure)].map(str::to_owned).into_iter();
        rows.rows.push(
            cells
                .chain([
                    shown(p.measure, p.simulated),
                    shown(p.measure, p.live),
                    format!("{:+.1}%", p.more_percent),
                ])
                .collect(),
        );
    }
    rows
}

/// The paper's numbers, what no scheduler can be below beside the least that was measured, and the
/// parts of the mean completion time of each system; of `joint` by how many per cent it has more
/// without a part.
pub fn exact(r: &ExperimentReport) -> TextTable {
    let mut rows = TextTable::new(&[
        "setting",
        "figure",
        "unit",
        "paper",
        "mean",
        "half_interval",
        "runs",
        "off",
        "verdict",
        "source",
    ]);
    let number = |v: Option<f64>| v.map_or(String::new(), |v| v.to_string());
    for w in &r.rows {
        rows.rows.push(vec![
            w.setting.into(),
            w.figure.clone(),
            w.unit.trim().into(),
            w.paper.map_or(String::new(), |p| p.words("")),
            number((!w.values.is_empty()).then_some(w.mean)),
            number(if w.is_same() { Some(0.0) } else { w.half }),
            w.values.len().to_string(),
            number(w.off),
            w.verdict.words().into(),
            w.source.into(),
        ]);
    }
    for b in &r.bounds {
        let runs = b.runs.to_string();
        let row = |what: &str, value: f64, source: &str| {
            let figure = format!("{what} {}", name(b.measure));
            let [none, runs, value] = [String::new(), runs.clone(), value.to_string()];
            vec![
                b.setting.into(),
                figure,
                "s".into(),
                none.clone(),
                value,
                none.clone(),
                runs,
                none,
                what.into(),
                source.into(),
            ]
        };
        rows.rows.extend([row("floor", b.floor, ""), row("least", b.best.1, b.best.0)]);
    }
    for m in &r.measured {
        for (part, mean) in m.means.iter().filter(|v| PARTS.contains(&v.0)) {
            let none = String::new;
            rows.rows.push(vec![
                m.setting.into(),
                format!("part {}", name(*part)),
                "s".into(),
                none(),
                mean.to_string(),
                none(),
                m.runs.to_string(),
                none(),
                "part".into(),
                m.system.into(),
            ]);
        }
    }
    for v in &r.versus {
        for (b, e) in v.without.iter().filter_map(|b| Some((b, b.percent?))) {
            let [none, runs] = [String::new(), r.size.repeats.to_string()];
            rows.rows.push(vec![
                v.setting.into(),
                name(v.measure).into(),
                "%".into(),
                none.clone(),
                e.mean.to_string(),
                number(e.half),
                runs,
                none,
                "more without".into(),
                b.system.into(),
            ]);
        }
    }
    rows
}

/// What is behind the comparisons.
fn means(r: &ExperimentReport) -> TextTable {
    use Measure::{
        Computing, Crossing, Makespan, MapTime, MeanCct, MeanJct, MedianJct, OcsShare, ReduceTime,
        RouteLength, ShuffleCost,
    };
    use Measure::{CountedCost, P95Jct, P99Jct, Unfinished, Waiting};
    let shown_ones = match r.paper {
        Paper::Pushbox => {
            [Makespan, MeanJct, MedianJct, P95Jct, P99Jct, MeanCct, Crossing, Waiting, Unfinished]
        }
        Paper::Hit if r.live.is_some() => [
            Makespan,
            MeanJct,
            MapTime,
            ReduceTime,
            MeanCct,
            RouteLength,
            ShuffleCost,
            CountedCost,
            Unfinished,
        ],
        Paper::Hit => [
            Makespan,
            MeanJct,
            MapTime,
            ReduceTime,
            MeanCct,
            RouteLength,
            ShuffleCost,
            Waiting,
            Unfinished,
        ],
        Paper::Joint => [
            Makespan,
            MeanJct,
            MedianJct,
            P95Jct,
            P99Jct,
            MeanCct,
            OcsShare,
            ShuffleCost,
            Unfinished,
        ],
        _ => [
            Makespan, MeanJct, MedianJct, MeanCct, OcsShare, Crossing, Waiting, Computing,
            Unfinished,
        ],
    };
    let mut header = vec!["setting", "system"];
    header.extend(shown_ones.map(name));
    let mut rows = TextTable::new(&header);
    for m in r.measured.iter().filter(|m| m.means.iter().any(|v| v.0 == Measure::Makespan)) {
        let of =
            |which| m.means.iter().find(|v| v.0 == which).map_or("-".into(), |v| shown(which, v.1));
        let cells = shown_ones.map(of);
        rows.rows
            .push([m.setting.to_owned(), m.system.to_owned()].into_iter().chain(cells).collect());
    }
    rows
}

fn shown(m: Measure, v: f64) -> String {
    match m {
        Measure::OcsShare | Measure::Crossing | Measure::Waiting => format!("{v:.1}%"),
        Measure::Unfinished => format!("{v:.0}"),
        Measure::RouteLength => format!("{v:.2}"),
        Measure::CountedCost | Measure::Jain => format!("{v:.3}"),
        Measure::ShuffleCost => format!("{v:.1}GB"),
        _ => format!("{v:.1}s"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::experiment::Size;
    use crate::experiment::assumptions::Assumptions;
    use crate::experiment::report::MeasuredSystem;
    use crate::experiment::runs::run as run_all;

    #[test]
    fn every_output_has_every_number_of_the_paper() {
        // Stopped before it begins: all numbers of the paper, none of ours.
        let size = Size {
            seed: 1,
            repeats: 2,
            jobs_percent: 1,
            thin: false,
            free: Assumptions::default(),
        };
        let e = Paper::CoScheduler.experiment(size);
        let outcomes = run_all(&e, size, 2, &AtomicBool::new(true), &|_| {}).unwrap();
        let r = ExperimentReport::new(&e, &outcomes, 0.0, 2);
        assert!(
            r.partial
                && r.rows.len() == e.claims.len()
                && r.measured.iter().all(|m: &MeasuredSystem| m.runs == 0)
        );
        let drawn = [DocumentOutput::Table, DocumentOutput::Markdown, DocumentOutput::Latex]
            .map(|output| text(&r, output));
        for text in drawn.into_iter().chain([exact(&r).csv()]) {
            assert!(
                text.matches("not run").count() == r.rows.len() && text.contains("95.2"),
                "{text}"
            );
        }

        let back: serde_json::Value =
            serde_json::from_str(&serde_json::to_string(&r).unwrap()).unwrap();
        assert_eq!(
            (back["rows"].as_array().unwrap().len(), &back["rows"][0]["paper"]["about"]),
            (r.rows.len(), &227.0.into())
        );
    }
}
