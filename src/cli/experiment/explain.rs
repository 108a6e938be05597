//! `heliostat experiment --explain ROW`: where the time of both sides of a comparison goes, and
//! what decides it.

use super::tables::{self, TextTable};
use crate::experiment::Experiment;
use crate::experiment::claim::{Claim, ClaimSide};
use crate::experiment::measure::{Measure, PARTS};
use crate::experiment::report::{ExperimentReport, PaperFigure, figure, name};

/// Leaves of an evaluation only what the rows need whose setting and figure, with a comma between,
/// contain this text.
///
/// # Errors
/// No row, and what rows there are.
pub fn only(e: &mut Experiment, text: &str) -> Result<(), String> {
    let title = |c: &Claim| format!("{}, {}", c.of.setting, figure(c));
    let wanted = text.to_lowercase();
    let kept: Vec<Claim> =
        e.claims.iter().filter(|c| title(c).to_lowercase().contains(&wanted)).copied().collect();
    if kept.is_empty() {
        let all: Vec<String> = e.claims.iter().map(title).collect();
        return Err(format!(
            "no row has `{text}`; allowed: a part of one of these:\n{}",
            all.join("\n")
        ));
    }
    let sides: Vec<ClaimSide> = kept.iter().flat_map(sides).collect();
    e.settings.iter_mut().for_each(|s| {
        s.systems.retain(|y| sides.iter().any(|k| (k.setting, k.system) == (s.name, y.name)))
    });
    e.settings.retain(|s| !s.systems.is_empty());
    e.claims = kept;
    Ok(())
}

/// The sides of a claim.
fn sides(c: &Claim) -> Vec<ClaimSide> {
    let beyond = c.beyond.map(|(a, b)| [a, b]);
    std::iter::once(c.of).chain(c.against).chain(beyond.into_iter().flatten()).collect()
}

/// What each of the [`PARTS`] of a mean completion time rests on that a paper may leave open.
const RESTS: [&str; 5] = [
    "how many slots there are, in which order jobs get them, and how long tasks compute (--task-rate)",
    "how long map tasks compute (--task-rate, --port-block), and how near their blocks they run",
    "how many slots reduce tasks hold while they wait (slowstart, reduces, flows)",
    "how much of the shuffle is left when the last map ends, and how the network shares",
    "how long reduce tasks compute (--task-rate, --port-block): no placement changes it",
];

/// The rows that were asked for, each with its breakdown.
pub fn text(r: &ExperimentReport, claims: &[Claim]) -> String {
    r.rows.iter().zip(claims).map(|(row, c)| one(r, row, c)).collect::<Vec<_>>().join("\n\n")
}

fn one(r: &ExperimentReport, row: &PaperFigure, c: &Claim) -> String {
    let printed = row.paper.map_or("nothing".into(), |p| p.words(row.unit));
    let ours = if row.values.is_empty() {
        "-".into()
    } else {
        format!("{:.1}{} ({})", row.mean, row.unit, row.interval())
    };
    let mut out = format!(
        "{}, {}\npaper ({}): {printed}; ours: {ours}: {}\n",
        row.setting,
        row.figure,
        row.source,
        row.verdict.words()
    );
    let sides = sides(c);
    let of = |s: &ClaimSide, m: Measure| {
        let measured =
            r.measured.iter().find(|x| (x.setting, x.system) == (s.setting, s.system))?;
        measured.means.iter().find(|v| v.0 == m).map(|v| v.1)
    };
    let mut header = vec!["mean JCT, s".to_owned()];
    header.extend(sides.iter().map(|s| {
        if s.setting == c.of.setting {
            s.system.into()
        } else {
            format!("{} ({})", s.system, s.setting)
        }
    }));
    let mut rows = TextTable::new(&header.iter().map(String::as_str).collect::<Vec<_>>());
    let cell = |v: Option<f64>| v.map_or("-".into(), |v| format!("{v:.2}"));
    for m in PARTS.into_iter().chain([
        Measure::MeanJct,
        Measure::MeanCct,
        Measure::Waiting,
        Measure::Sending,
    ]) {
        let label = match m {
            Measure::MeanJct => "all of it".into(),
            Measure::MeanCct => "mean CCT, s".into(),
            Measure::Waiting => "slot time spent waiting, %".into(),
            _ => name(m).to_owned(),
        };
        rows.rows
            .push(std::iter::once(label).chain(sides.iter().map(|s| cell(of(s, m)))).collect());
    }
    out += &format!("\n{}\n", rows.folded(1, 1));
    let bound = r.bounds.iter().find(|b| b.setting == row.setting && b.measure == c.measure);
    let floor = bound.map(|b| {
        format!(
            "no scheduler has a {} below {:.2} s; the least here, {:.2} s of {}, leaves {:.0} %",
            name(b.measure),
            b.floor,
            b.best.1,
            b.best.0,
            b.leaves_percent
        )
    });
    let decides = (sides.len() > 1).then(|| decides(&sides, of)).flatten();
    let assumed = c.untold.map(|u| format!("open: {u}"));
    for line in floor.into_iter().chain(decides).chain(assumed).chain([r.unprinted()]) {
        out += &format!("\n{}", tables::wrapped(&format!("- {line}"), 2));
    }
    out
}

/// The part in which two sides differ most, and what it rests on.
fn decides(sides: &[ClaimSide], of: impl Fn(&ClaimSide, Measure) -> Option<f64>) -> Option<String> {
    let differ = PARTS
        .into_iter()
        .zip(RESTS)
        .filter_map(|(m, rests)| Some((m, of(&sides[0], m)? - of(&sides[1], m)?, rests)));
    let (part, more, rests) = differ.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    let most = PARTS
        .into_iter()
        .zip(RESTS)
        .filter_map(|(m, rests)| Some((m, of(&sides[0], m)?, rests)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let way = if more < 0.0 { "less" } else { "more" };
    let (a, b) = (sides[0].system, sides[1].system);
    let first = format!(
        "{a} and {b} differ most in the time `{}`: {:.2} s {way}; it rests on {rests}",
        name(part),
        more.abs()
    );
    let second = format!("most of {a}'s time is `{}`, which rests on {}", name(most.0), most.2);
    Some(format!("{first}; {second}"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::experiment::assumptions::Assumptions;
    use crate::experiment::runs::run;
    use crate::experiment::{Paper, Size};

    fn experiment() -> (Experiment, Size) {
        let free = Assumptions::default();
        let size = Size { seed: 1, repeats: 2, jobs_percent: 2, thin: true, free };
        (Paper::Pushbox.experiment(size), size)
    }

    #[test]
    fn a_row_is_explained_by_the_part_in_which_its_sides_differ_most() {
        let (mut e, size) = experiment();
        only(&mut e, "w1, MEAN jct less, pushbox vs hadoop").unwrap();
        assert_eq!((e.claims.len(), e.settings.len(), e.settings[0].systems.len()), (1, 1, 2));
        let outcomes = run(&e, size, 1, &AtomicBool::new(false), &|_| {}).unwrap();
        let mut r = ExperimentReport::new(&e, &outcomes, 0.0, 1);
        let of = |r: &ExperimentReport, y: usize, m| {
            r.measured[y].means.iter().find(|v| v.0 == m).unwrap().1
        };
        for y in 0..2 {
            let all: f64 = PARTS.into_iter().map(|m| of(&r, y, m)).sum();
            let jct = of(&r, y, Measure::MeanJct);
            assert!(jct > 0.0 && (all - jct).abs() < 1e-6 * jct, "{all} of {jct}");
        }
        for (k, part) in PARTS.into_iter().enumerate() {
            let slower = r.measured[1].means.iter_mut().find(|v| v.0 == part).unwrap();
            slower.1 += 1000.0;
            let told = text(&r, &e.claims).replace("\n  ", " ");
            let differs = format!("differ most in the time `{}`", name(part));
            assert!(told.contains(&differs) && told.contains(RESTS[k]), "{told}");
            r.measured[1].means.iter_mut().find(|v| v.0 == part).unwrap().1 -= 1000.0;
        }
    }

    #[test]
    fn a_row_that_is_not_there_is_answered_with_those_that_are() {
        let (mut e, _) = experiment();
        let wrong = only(&mut e, "FIFO, makespan of the moon").unwrap_err();
        assert!(wrong.contains("`FIFO, makespan of the moon`"), "{wrong}");
        assert!(wrong.contains("\nW1, mean JCT less, PushBox vs Hadoop"), "{wrong}");
    }
}
