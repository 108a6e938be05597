//! The ports of an OCS over time, as an SVG chart: one row an input port, dark time hatched, light coloured by output.

use std::fmt::Write as _;

use crate::circuits::clearing::Clearing;
use crate::cli::tables;
use crate::units::Span;

const LEFT: f64 = 90.0;
const WIDTH: f64 = 1000.0;
const TOP: f64 = 30.0;
const ROW: f64 = 18.0;

/// The chart of a clearing on `planes` planes of `racks` racks.
pub fn ports(c: &Clearing, racks: usize, planes: u32) -> String {
    let end = c.circuits.iter().map(|(r, _)| r.until.0).max().unwrap_or(0).max(c.completion.map_or(0, |s| s.0)).max(1);
    let x = |t: u64| LEFT + WIDTH * t as f64 / end as f64;
    let y = |plane: u32, rack: u32| TOP + ROW * (f64::from(plane) * (racks as f64 + 1.0) + f64::from(rack));
    let height = y(planes, 0) + 20.0;
    let mut s = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{height}\" viewBox=\"0 0 {w} {height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n<defs><pattern id=\"dark\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><rect width=\"4\" height=\"4\" fill=\"#ddd\"/><rect width=\"1.5\" height=\"4\" fill=\"#777\"/>\
         </pattern></defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        w = LEFT + WIDTH + 20.0,
    );
    for plane in 0..planes {
        for rack in 0..racks as u32 {
            let name = if planes > 1 { format!("p{plane} rack {rack}") } else { format!("rack {rack}") };
            let _ = writeln!(s, "<text x=\"4\" y=\"{}\">{name}</text>", y(plane, rack) + 12.0);
        }
    }
    for (r, bytes) in &c.circuits {
        let top = y(r.plane.0, r.input.0) + 1.0;
        let mut bar = |from: u64, to: u64, fill: &str, title: &str| {
            let _ = writeln!(
                s,
                "<rect x=\"{:.2}\" y=\"{top}\" width=\"{:.2}\" height=\"{}\" fill=\"{fill}\"><title>{title}</title></rect>",
                x(from),
                x(to) - x(from),
                ROW - 2.0
            );
        };
        let span = |a: u64, b: u64| format!("{} to {}", tables::span(Span(a)), tables::span(Span(b)));
        if r.up_from > r.setup_at {
            bar(r.setup_at.0, r.up_from.0, "url(#dark)", &format!("dark {}", span(r.setup_at.0, r.up_from.0)));
        }
        let what = format!("{} -&gt; {}, {}, {}", r.input.0, r.output.0, span(r.up_from.0, r.until.0), tables::bytes(*bytes));
        // The golden angle keeps neighbouring numbers apart.
        let hue = (f64::from(r.output.0) * 137.508) % 360.0;
        bar(r.up_from.0, r.until.0, &format!("hsl({hue:.0},60%,70%)"), &what);
        if x(r.until.0) - x(r.up_from.0) > 14.0 {
            let _ = writeln!(s, "<text x=\"{:.2}\" y=\"{}\">{}</text>", x(r.up_from.0) + 3.0, top + 12.0, r.output.0);
        }
    }
    for k in 0..=10 {
        let t = (u128::from(end) * k / 10) as u64;
        let _ = writeln!(
            s,
            "<line x1=\"{0:.2}\" x2=\"{0:.2}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#0003\"/><text x=\"{0:.2}\" y=\"18\" \
             text-anchor=\"middle\">{3}</text>",
            x(t),
            TOP - 6.0,
            height - 20.0,
            tables::span(Span(t))
        );
    }
    s + "</svg>\n"
}
