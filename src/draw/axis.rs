//! Axes: round ticks as far as their labels have room.

use super::font;

/// A mark on an axis and what is written there.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Its value.
    pub at: f64,
    /// The value in the axis' unit.
    pub label: String,
}

/// An axis from its first to its last value.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it shows, with its unit.
    pub title: String,
    /// The first and the last value.
    pub range: (f64, f64),
    /// Whether equal distances are equal ratios.
    pub log: bool,
    /// Its ticks, in the order of their values.
    pub ticks: Vec<Tick>,
    /// Values with a mark and no label.
    pub minor: Vec<f64>,
}

/// The room that an axis' labels have.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Length of the axis in points.
    pub length: f64,
    /// Size of the text.
    pub text: f64,
    /// Whether the axis goes upwards, so that labels are one above the other.
    pub upright: bool,
}

impl Room {
    /// Whether labels fit at places that are this far apart.
    fn fits(&self, labels: &[String], apart: f64) -> bool {
        let widest = || labels.iter().map(|l| font::width(l, self.text)).fold(0.0, f64::max);
        let needed = if self.upright { 2.6 * self.text } else { widest() + 2.0 * self.text };
        apart >= needed
    }
}

/// Units of time and their nanoseconds.
const TIMES: [(&str, f64); 7] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
    ("h", 3600e9),
    ("d", 86_400e9),
];
/// Units of size and their bytes.
const SIZES: [(&str, f64); 5] = [("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)];

impl Axis {
    /// Times from zero, in nanoseconds.
    pub fn time(what: &str, end: f64, room: Room) -> Self {
        // Seconds are read at a glance up to ten minutes, minutes up to ten hours, hours up to two
        // days.
        let from = |unit: f64| {
            if unit > 3600e9 {
                2.0 * unit
            } else if unit > 1e9 {
                10.0 * unit
            } else {
                unit
            }
        };
        let &(unit, each) = TIMES.iter().rfind(|t| from(t.1) <= end).unwrap_or(&TIMES[0]);
        Self::counted(format!("{what} ({unit})"), end, each, room)
    }

    /// Numbers of bytes from zero.
    pub fn bytes(what: &str, end: f64, room: Room) -> Self {
        let &(unit, each) = SIZES.iter().rfind(|s| s.1 <= end).unwrap_or(&SIZES[0]);
        Self::counted(format!("{what} ({unit})"), end, each, room)
    }

    /// Shares, of which the axis shows all from 0 to 100 %.
    pub fn percent(what: &str, end: f64, room: Room) -> Self {
        Self::counted(format!("{what} (%)"), end.max(1.0), 0.01, room)
    }

    /// Plain numbers from zero.
    pub fn plain(what: &str, end: f64, room: Room) -> Self {
        Self::counted(what.into(), end, 1.0, room)
    }

    /// Values from zero to `end`, told in units of `each`: the smallest round step at which labels
    /// fit.
    fn counted(title: String, end: f64, each: f64, room: Room) -> Self {
        // An axis of nothing has a length all the same.
        let end = end.max(each);
        let ticks = steps(end / each).find_map(|(step, decimals)| {
            let many = (end / each / step * (1.0 + 1e-9)).floor();
            let labels: Vec<String> =
                (0..=many as usize).map(|k| format!("{:.decimals$}", k as f64 * step)).collect();
            let fits = room.fits(&labels, room.length * step * each / end);
            fits.then(|| {
                labels
                    .into_iter()
                    .enumerate()
                    .map(|(k, label)| Tick { at: k as f64 * step * each, label })
                    .collect()
            })
        });
        Self {
            title,
            range: (0.0, end),
            log: false,
            ticks: ticks.unwrap_or_default(),
            minor: vec![],
        }
    }

    /// Times by their ratios, in nanoseconds, from a round value below the least to one above the
    /// most, a decade at least.
    pub fn log_time(what: &str, least: f64, most: f64, room: Room) -> Self {
        Self::by_ratio(what, least.max(1.0), most.max(1.0), time, room)
    }

    /// Plain numbers by their ratios.
    pub fn log_plain(what: &str, least: f64, most: f64, room: Room) -> Self {
        Self::by_ratio(what, least, most, |x| x.to_string(), room)
    }

    fn by_ratio(what: &str, least: f64, most: f64, label: fn(f64) -> String, room: Room) -> Self {
        let from = round_below(least);
        let to = round_above(most).max(from * 10.0);
        let within = |v: &f64| *v >= from * (1.0 - 1e-9) && *v <= to * (1.0 + 1e-9);
        let (first, last) = (from.log10().floor() as i32, to.log10().ceil() as i32);
        let decade = room.length / (to / from).log10();
        let at = |factors: &[f64]| -> Vec<f64> {
            // By the parser, whose powers of ten are exact.
            let of =
                |k: i32| factors.iter().map(move |f| format!("{f}e{k}").parse().unwrap_or(0.0));
            (first..=last).flat_map(of).filter(within).collect()
        };
        let all = |factors: &[f64]| {
            at(factors).into_iter().map(|at| Tick { at, label: label(at) }).collect::<Vec<_>>()
        };
        let fits = |ticks: &[Tick], apart: f64| {
            room.fits(&ticks.iter().map(|t| t.label.clone()).collect::<Vec<_>>(), apart)
        };
        // 1, 2 and 5 are nearly evenly spaced; if they have no room, every power, or every second,
        // third ... one.
        let fine = all(&[1.0, 2.0, 5.0]);
        let mut ticks = if fits(&fine, decade * 0.3) { fine } else { all(&[1.0]) };
        let every = (1..)
            .find(|n| *n as i32 > last - first || fits(&ticks, decade * *n as f64))
            .unwrap_or(1);
        if every > 1 {
            ticks = ticks.into_iter().step_by(every).collect();
        }
        // Between them marks without a label, where they do not become a grey area.
        let bare = |v: &f64| ticks.iter().all(|t| (t.at / v - 1.0).abs() > 1e-9);
        let minor: Vec<f64> =
            at(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]).into_iter().filter(bare).collect();
        let minor = if decade > 3.0 * room.text { minor } else { vec![] };
        Self { title: what.into(), range: (from, to), log: true, ticks, minor }
    }

    /// Values with their own labels, in their order; of labels that would touch, the later one is
    /// left out.
    pub fn marked(
        what: &str,
        marks: &[(f64, String)],
        range: (f64, f64),
        log: bool,
        room: Room,
    ) -> Self {
        let mut axis = Self { title: what.into(), range, log, ticks: vec![], minor: vec![] };
        let mut free = f64::NEG_INFINITY;
        for (at, label) in marks {
            let (place, half) = (axis.part(*at) * room.length, font::width(label, room.text) / 2.0);
            if place - half >= free {
                free = place + half + room.text;
                axis.ticks.push(Tick { at: *at, label: label.clone() });
            }
        }
        axis
    }

    /// The part of the axis below a value, 0 to 1; what is beyond an end is drawn there.
    pub fn part(&self, value: f64) -> f64 {
        let (from, to) = self.range;
        let part = if self.log {
            (value.max(from) / from).log10() / (to / from).log10()
        } else {
            (value - from) / (to - from)
        };
        part.clamp(0.0, 1.0)
    }
}

/// Steps of 1, 2 or 5 times a power of ten, and the decimals that tell their multiples, from a
/// hundredth of `end` on up to `end`.
fn steps(end: f64) -> impl Iterator<Item = (f64, usize)> {
    let first = (end / 100.0).log10().floor() as i32;
    (first..)
        .flat_map(|k| {
            [1.0, 2.0, 5.0].map(|f| (f * 10f64.powi(k), usize::try_from(-k).unwrap_or(0)))
        })
        .take_while(move |s| s.0 <= end)
}

/// The greatest 1, 2 or 5 times a power of ten that is not above a value; the value is positive.
fn round_below(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [5.0, 2.0, 1.0]
        .map(|f| f * power)
        .into_iter()
        .find(|v| *v <= value * (1.0 + 1e-9))
        .unwrap_or(power)
}

/// The least one that is not below it.
fn round_above(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0]
        .map(|f| f * power)
        .into_iter()
        .find(|v| *v >= value * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

/// A time of few digits with its unit; thousands of seconds are apart.
fn time(ns: f64) -> String {
    let &(unit, each) = TIMES[..4].iter().rfind(|t| t.1 <= ns * (1.0 + 1e-9)).unwrap_or(&TIMES[0]);
    let whole = format!("{:.0}", ns / each);
    let groups: Vec<&str> =
        whole.as_bytes().rchunks(3).rev().filter_map(|g| std::str::from_utf8(g).ok()).collect();
    format!("{} {unit}", groups.join("\u{a0}"))
}
