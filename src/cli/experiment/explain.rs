//! `heliostat experiment --explain ROW`: where the time of both sides of a comparison goes, and
//! what decides it.

use super::tables::{self, Rows};
use crate::experiment::Experiment;
use crate::experiment::claim::{Claim, Side};
use crate::experiment::report::{Report, Row, figure, name};
use crate::experiment::runs::Measure;

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
    let sides: Vec<Side> = kept.iter().flat_map(sides).collect();
    e.settings.iter_mut().for_each(|s| {
        s.systems.retain(|y| sides.iter().any(|k| (k.setting, k.system) == (s.name, y.name)))
    });
    e.settings.retain(|s| !s.systems.is_empty());
    e.claims = kept;
    Ok(())
}

/// The sides of a claim.
fn sides(c: &Claim) -> Vec<Side> {
    let beyond = c.beyond.map(|(a, b)| [a, b]);
    std::iter::once(c.of).chain(c.against).chain(beyond.into_iter().flatten()).collect()
}

/// Parts of a mean completion time, and what each rests on that a paper may leave open.
const PARTS: [(Measure, &str); 5] = [
    (
        Measure::FirstSlot,
        "how many slots there are, in which order jobs get them, and how long tasks compute (--task-rate)",
    ),
    (
        Measure::Maps,
        "how long map tasks compute (--task-rate, --port-block), and how near their blocks they run",
    ),
    (
        Measure::LastSlot,
        "how many slots reduce tasks hold while they wait (slowstart, reduces, flows)",
    ),
    (
        Measure::LastInput,
        "how much of the shuffle is left when the last map ends, and how the network shares",
    ),
    (
        Measure::LastComputing,
        "how long reduce tasks compute (--task-rate, --port-block): no placement changes it",
    ),
];

/// The rows that were asked for, each with its breakdown.
pub fn text(r: &Report, claims: &[Claim]) -> String {
    r.rows.iter().zip(claims).map(|(row, c)| one(r, row, c)).collect::<Vec<_>>().join("\n\n")
}

fn one(r: &Report, row: &Row, c: &Claim) -> String {
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
    let of = |s: &Side, m: Measure| {
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
    let mut rows = Rows::new(&header.iter().map(String::as_str).collect::<Vec<_>>());
    let cell = |v: Option<f64>| v.map_or("-".into(), |v| format!("{v:.2}"));
    for m in PARTS.map(|p| p.0).into_iter().chain([
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
fn decides(sides: &[Side], of: impl Fn(&Side, Measure) -> Option<f64>) -> Option<String> {
    let differ = PARTS
        .into_iter()
        .filter_map(|(m, rests)| Some((m, of(&sides[0], m)? - of(&sides[1], m)?, rests)));
    let (part, more, rests) = differ.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    let most = PARTS
        .into_iter()
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
