//! Tasks on their slots over time, as an SVG chart: one row a slot, coloured by job, pale while a task waits for its input.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::svg::escaped;
use super::tables;
use crate::runtime::jobs::report::JobsResult;
use crate::topology::Topology;
use crate::units::Time;

const LEFT: f64 = 70.0;
const WIDTH: f64 = 1100.0;
const TOP: f64 = 30.0;
/// The chart is never higher than this; with many slots the rows are thin.
const HEIGHT: f64 = 3000.0;

/// The chart of a run on `topology`.
pub fn svg(r: &JobsResult, topology: &Topology) -> String {
    let end = r.timeline.iter().map(|t| t.ended.0).max().unwrap_or(0).max(1);
    let mut rows: BTreeMap<(String, u32), f64> = BTreeMap::new();
    let slots: u32 = topology.hosts.iter().map(|h| h.slots).sum();
    let step = (HEIGHT / f64::from(slots.max(1))).min(14.0);
    for h in &topology.hosts {
        for s in 0..h.slots {
            rows.insert((topology.host_name(h.id), s), TOP + step * rows.len() as f64);
        }
    }
    let x = |t: Time| LEFT + WIDTH * t.0 as f64 / end as f64;
    let (w, height) = (LEFT + WIDTH + 20.0, TOP + step * f64::from(slots) + 10.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{height:.0}\" viewBox=\"0 0 {w} {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"10\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for h in topology.hosts.iter().filter(|h| step >= 9.0 || h.index == 0) {
        let name = topology.host_name(h.id);
        let y = rows.get(&(name.clone(), 0)).unwrap_or(&TOP) + 9.0;
        let _ = writeln!(out, "<text x=\"4\" y=\"{y:.1}\">{name}</text>");
    }
    for t in &r.timeline {
        let Some(&y) = rows.get(&(t.host.clone(), t.slot)) else { continue };
        let job = r.jobs.get(t.task.job.index()).map_or("?", |j| j.name.as_str());
        // The golden angle keeps neighbouring numbers apart.
        let hue = (f64::from(t.task.job.0) * 137.508) % 360.0;
        let mut bar = |a: Time, b: Time, fill: String, what: &str| {
            let took = tables::span(b.since(a));
            let title = format!("{} stage {} task {}: {what} {took}", escaped(job), t.task.stage, t.task.task);
            let (left, wide) = (x(a), (x(b) - x(a)).max(0.2));
            let _ = writeln!(
                out,
                "<rect x=\"{left:.2}\" y=\"{y:.2}\" width=\"{wide:.2}\" height=\"{:.2}\" fill=\"{fill}\"><title>{title}</title></rect>",
                (step - 0.6).max(0.4)
            );
        };
        let computes = t.computes.unwrap_or(t.ended);
        if computes > t.started {
            bar(t.started, computes, format!("hsl({hue:.0},45%,85%)"), "waited");
        }
        if t.ended > computes {
            let fill = if t.finished { format!("hsl({hue:.0},60%,{}%)", if t.task.stage == 0 { 60 } else { 45 }) } else { "#000".into() };
            bar(computes, t.ended, fill, if t.finished { "computed" } else { "was given up after" });
        }
    }
    for k in 0..=10 {
        let t = Time((u128::from(end) * k / 10) as u64);
        let label = tables::span(t.since(Time::ZERO));
        let _ = writeln!(out, "<text x=\"{:.1}\" y=\"18\" text-anchor=\"middle\">{label}</text>", x(t));
    }
    out + "</svg>\n"
}
