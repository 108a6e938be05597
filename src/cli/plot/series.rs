//! Quantities over time as steps: utilisation, demand.

use super::input::{CircuitBar, CircuitBars, PlotInput, Points};
use crate::cli::tables;
use crate::draw::Sheet;
use crate::draw::axis::Axis;
use crate::draw::chart::{Chart, ChartStyle, LegendKey, LegendSample, pen};
use crate::fabric::meter::{Carried, Utilisation};
use crate::units::{Span, Time};

/// Number of means that are drawn of a line that changes often.
const WINDOWS: u64 = 100;

/// Lines with their names.
pub struct LineChart {
    /// The label of the upright axis.
    pub axis: String,
    /// Whether values are shares of one; else bytes.
    pub percent: bool,
    /// Name and points, each of which holds until the next.
    pub lines: Vec<(String, Points)>,
}

/// Whether this is a plane over which nothing went: a line at zero says nothing.
fn is_idle_plane(l: &Carried) -> bool {
    l.name.starts_with("ocs") && l.bytes.iter().all(|&b| b == 0)
}

/// Of several files, two lines each: all uplinks, and all planes if anything went over them.
fn sums(u: &Utilisation) -> Vec<(String, Points)> {
    let all =
        |of: fn(&str) -> bool| u.links.iter().filter(|l| of(&l.name)).collect::<Vec<&Carried>>();
    let kinds = [
        ("EPS uplinks", all(|n| n.ends_with(".up"))),
        ("OCS planes", all(|n| n.starts_with("ocs"))),
    ];
    kinds
        .into_iter()
        .filter(|k| !k.1.iter().all(|l| is_idle_plane(l)))
        .map(|(name, links)| (name.into(), points(u, &links)))
        .collect()
}

/// The lines of a file: what its links carried of what they can carry, those of `chosen` if any
/// are, else the sums by kind of link; and the share of OCS ports with light. `prefix` comes before
/// each name; it is empty if the file is the only one.
pub fn utilisation(
    input: &PlotInput,
    chosen: &[String],
    prefix: &str,
) -> Option<Vec<(String, Points)>> {
    let own = input.utilisation.iter().flat_map(|u| match (chosen.is_empty(), prefix.is_empty()) {
        (false, _) => named(u, chosen),
        (true, true) => by_kind(u),
        (true, false) => sums(u),
    });
    let own = own.map(|(name, points)| (format!("{prefix}{name}"), points));
    let light = input.circuits.as_ref().filter(|_| chosen.is_empty()).map(|c| {
        let window = Span(c.end.0.div_ceil(WINDOWS).max(1));
        (
            format!("{prefix}OCS ports with light (mean of {})", tables::span(window)),
            means(&light(c), c.end, window),
        )
    });
    let all: Vec<_> = own.chain(light).collect();
    (!all.is_empty()).then_some(all)
}

/// All uplinks together, the busiest of them in each bucket, all that goes within racks, and every
/// plane over which something went.
fn by_kind(u: &Utilisation) -> Vec<(String, Points)> {
    let up: Vec<&Carried> = u.links.iter().filter(|l| l.name.ends_with(".up")).collect();
    let shares: Vec<Points> = up.iter().map(|l| points(u, &[l])).collect();
    let busiest = |k: usize| shares.iter().map(|s| s[k].1).fold(0.0, f64::max);
    let most = points(u, &up).iter().enumerate().map(|(k, p)| (p.0, busiest(k))).collect();
    let mut all =
        vec![("EPS, all uplinks".into(), points(u, &up)), ("EPS, busiest uplink".into(), most)];
    let plane = |l: &Carried| {
        if l.name.starts_with("ocs") { Some(format!("OCS plane {}", &l.name[3..])) } else { None }
    };
    all.extend(
        u.links
            .iter()
            .filter(|l| !is_idle_plane(l))
            .filter_map(|l| Some((plane(l)?, points(u, &[l])))),
    );
    all.extend(
        u.links
            .iter()
            .filter(|l| l.name == "local")
            .map(|l| ("within racks".into(), points(u, &[l]))),
    );
    all
}

/// Single links.
fn named(u: &Utilisation, chosen: &[String]) -> Vec<(String, Points)> {
    let find = |name: &String| {
        u.links.iter().find(|l| l.name == *name).map(|l| (name.clone(), points(u, &[l])))
    };
    chosen.iter().filter_map(find).collect()
}

/// By bucket: the share of what these links together can carry.
fn points(u: &Utilisation, links: &[&Carried]) -> Points {
    let rate: f64 = links.iter().map(|l| l.rate.0 as f64).sum();
    let buckets = u.links.iter().map(|l| l.bytes.len()).max().unwrap_or(0);
    let from = |k: usize| Time(u.bucket.0.saturating_mul(k as u64).min(u.until.0));
    let share = |k: usize| {
        let bytes: f64 = links.iter().map(|l| l.bytes.get(k).copied().unwrap_or(0) as f64).sum();
        let can = rate / 8.0 * from(k + 1).since(from(k)).as_secs_f64();
        if can > 0.0 { bytes / can } else { 0.0 }
    };
    let mut all: Points = (0..buckets).map(|k| (from(k), share(k))).collect();
    all.push((u.until, all.last().map_or(0.0, |p| p.1)));
    all
}

/// The share of ports with light, of all ports up to the greatest one that is ever used. O(n log
/// n).
fn light(c: &CircuitBars) -> Points {
    let greatest =
        |f: fn(&CircuitBar) -> u32| c.bars.iter().map(f).max().map_or(0, |m| m as usize + 1);
    let ports = (greatest(|b| b.plane) * greatest(|b| b.input.max(b.output))).max(1);
    let mut changes: Vec<(Time, i32)> =
        c.bars.iter().flat_map(|b| [(b.up_from, 1), (b.until, -1)]).collect();
    changes.sort_unstable();
    let (mut points, mut lit) = (vec![(Time::ZERO, 0.0)], 0);
    for (k, &(at, change)) in changes.iter().enumerate() {
        lit += change;
        if changes.get(k + 1).is_none_or(|next| next.0 > at) {
            points.push((at, f64::from(lit) / ports as f64));
        }
    }
    points.push((c.end, points.last().map_or(0.0, |p| p.1)));
    points
}

/// The mean of a step line over each window of time; each point is at the beginning of its window.
/// O(points + windows).
fn means(steps: &Points, end: Time, window: Span) -> Points {
    let (mut out, mut k, mut from) = (Points::new(), 0, Time::ZERO);
    while from < end {
        let until = (from + window).min(end);
        let (mut area, mut at) = (0.0, from);
        while at < until {
            while steps.get(k + 1).is_some_and(|next| next.0 <= at) {
                k += 1;
            }
            let next = steps.get(k + 1).map_or(until, |s| s.0).min(until);
            area += steps[k].1 * next.since(at).0 as f64;
            at = next;
        }
        out.push((from, area / until.since(from).0 as f64));
        from = until;
    }
    out.push((end, out.last().map_or(0.0, |p| p.1)));
    out
}

impl LineChart {
    /// The chart.
    pub fn draw(&self, look: &ChartStyle) -> Sheet {
        let ends = self.lines.iter().flat_map(|l| l.1.last());
        let end = ends.map(|p| p.0.0 as f64).fold(1.0, f64::max);
        let highest = self.lines.iter().flat_map(|l| l.1.iter().map(|p| p.1)).fold(0.0, f64::max);
        let pens = |k| pen(k, look.paper.text());
        // A line without a name is what the title and the axis say.
        let named = self.lines.iter().enumerate().filter(|(_, l)| !l.0.is_empty());
        let keys = named
            .map(|(k, l)| LegendKey { label: l.0.clone(), sample: LegendSample::Line(pens(k)) });
        let value = |room| match self.percent {
            true => Axis::percent(&self.axis, highest.max(1.0) * 1.02, room),
            false => Axis::bytes(&self.axis, highest.max(1.0) * 1.05, room),
        };
        let mut chart =
            Chart::new(look, keys.collect(), |room| Axis::time("Time", end, room), value);
        for (k, (_, points)) in self.lines.iter().enumerate() {
            let mut steps: Vec<(f64, f64)> = Vec::with_capacity(points.len() * 2);
            for &(at, v) in points {
                steps.extend(steps.last().map(|l| (at.0 as f64, l.1)));
                steps.push((at.0 as f64, v));
            }
            chart.line(steps, pens(k));
        }
        chart.sheet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::NANOS;

    #[test]
    fn light_is_counted_by_ports() {
        let bar = |input, output, up, until| CircuitBar {
            plane: 0,
            input,
            setup_at: Time(up),
            up_from: Time(up),
            until: Time(until),
            output,
            bytes: None,
            demand: None,
        };
        let c = CircuitBars {
            bars: vec![bar(0, 1, 10, 30), bar(1, 3, 10, 20), bar(2, 0, 20, 40)],
            end: Time(50),
        };
        let want = [(0, 0.0), (10, 0.5), (20, 0.5), (30, 0.25), (40, 0.0), (50, 0.0)];
        assert_eq!(light(&c), want.map(|(t, v)| (Time(t), v)));
        let want = [(0, 0.25), (20, 0.375), (40, 0.0), (50, 0.0)];
        assert_eq!(means(&light(&c), c.end, Span(20)), want.map(|(t, v)| (Time(t), v)));
        assert_eq!(means(&light(&CircuitBars::default()), Time(0), Span(1)), [(Time(0), 0.0)]);
        assert_eq!(light(&CircuitBars::default()), [(Time(0), 0.0), (Time(0), 0.0)]);
    }

    #[test]
    fn shares_are_of_what_links_can_carry() {
        let link = |name: &str, rate, bytes: [u64; 2]| Carried {
            name: name.into(),
            rate: crate::units::BitRate(rate),
            bytes: bytes.into(),
        };
        // A second, and half of one.
        let links = vec![
            link("r0.up", 8, [1, 0]),
            link("r0.down", 8, [1, 1]),
            link("r1.up", 24, [1, 1]),
            link("ocs0", 80, [5, 5]),
        ];
        let u = Utilisation { bucket: Span(NANOS), until: Time(NANOS * 3 / 2), links };
        let line = |a, b| vec![(Time(0), a), (Time(NANOS), b), (Time(NANOS * 3 / 2), b)];
        let third = 1.0 / 3.0;
        let all = vec![
            ("EPS, all uplinks".into(), line(0.5, 0.5)),
            ("EPS, busiest uplink".into(), line(1.0, 2.0 * third)),
            ("OCS plane 0".into(), line(0.5, 1.0)),
        ];
        assert_eq!(by_kind(&u), all);
        let mut dark = u.clone();
        dark.links[3].bytes = vec![0, 0];
        assert_eq!(
            (by_kind(&dark), sums(&dark).len(), sums(&u).len()),
            (all[..2].to_vec(), 1, 2),
            "a plane that carried nothing"
        );
        let input = PlotInput { utilisation: Some(u), ..PlotInput::default() };
        assert_eq!(
            utilisation(&input, &["r0.down".into()], "a: "),
            Some(vec![("a: r0.down".into(), line(1.0, 2.0))])
        );
        assert_eq!(
            (
                utilisation(&input, &["r9.up".into()], ""),
                utilisation(&PlotInput::default(), &[], "")
            ),
            (None, None)
        );
    }
}
