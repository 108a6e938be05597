//! Racks over time, as an SVG chart: a row a rack, as high as its slots; a job is a colour.

use std::fmt::Write as _;

use crate::cli::svg::escaped;
use crate::cli::tables;
use crate::units::Span;

const LEFT: f64 = 70.0;
const WIDTH: f64 = 1000.0;
const TOP: f64 = 30.0;
const ROW: f64 = 26.0;

/// Slots of a rack that one job holds for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Which rack.
    pub rack: usize,
    /// How many of its slots.
    pub slots: u32,
    /// In nanoseconds.
    pub from: u64,
    /// In nanoseconds.
    pub until: u64,
    /// The job's number, which is its colour.
    pub job: u32,
    /// Text that is shown where the reader points at it.
    pub title: String,
}

/// Consecutive slots of a bar.
struct Piece<'a> {
    bar: &'a Bar,
    first: usize,
    count: usize,
}

/// Gives bars slots of their racks, first free slots first: bars that never hold more slots than there are always find them.
fn pieces(bars: &[Bar], racks: usize, slots: u32) -> Vec<Piece<'_>> {
    let mut free = vec![vec![0u64; slots as usize]; racks];
    let mut out = vec![];
    for bar in bars {
        let mut left = bar.slots;
        for (k, slot) in free[bar.rack].iter_mut().enumerate() {
            if left == 0 || *slot > bar.from {
                continue;
            }
            (*slot, left) = (bar.until, left - 1);
            match out.last_mut() {
                Some(Piece { bar: last, first, count }) if std::ptr::eq(*last, bar) && *first + *count == k => *count += 1,
                _ => out.push(Piece { bar, first: k, count: 1 }),
            }
        }
    }
    out
}

/// The chart of `racks` racks of `slots` slots.
pub fn chart(mut bars: Vec<Bar>, racks: usize, slots: u32) -> String {
    bars.sort_by_key(|b| (b.from, b.rack));
    let end = bars.iter().map(|b| b.until).max().unwrap_or(0).max(1);
    let x = |t: u64| LEFT + WIDTH * t as f64 / end as f64;
    let (w, height) = (LEFT + WIDTH + 20.0, TOP + ROW * racks as f64 + 20.0);
    let mut s = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{height}\" viewBox=\"0 0 {w} {height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for rack in 0..racks {
        let y = TOP + ROW * rack as f64;
        let _ = writeln!(s, "<text x=\"4\" y=\"{:.1}\">rack {rack}</text>", y + ROW / 2.0 + 4.0);
        let _ = writeln!(s, "<line x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y}\" y2=\"{y}\" stroke=\"#0002\"/>", LEFT + WIDTH);
    }
    let high = (ROW - 2.0) / f64::from(slots.max(1));
    for Piece { bar, first, count } in pieces(&bars, racks, slots) {
        // The golden angle keeps neighbouring numbers apart.
        let hue = (f64::from(bar.job) * 137.508) % 360.0;
        let _ = writeln!(
            s,
            "<rect x=\"{:.2}\" y=\"{:.3}\" width=\"{:.2}\" height=\"{:.3}\" fill=\"hsl({hue:.0},60%,70%)\"><title>{}</title></rect>",
            x(bar.from),
            TOP + ROW * bar.rack as f64 + 1.0 + high * first as f64,
            x(bar.until) - x(bar.from),
            high * count as f64,
            escaped(&bar.title)
        );
    }
    for k in 0..=10u64 {
        let t = (u128::from(end) * u128::from(k) / 10) as u64;
        let label = tables::span(Span(t));
        let _ = writeln!(s, "<text x=\"{:.1}\" y=\"18\" text-anchor=\"middle\">{label}</text>", x(t));
    }
    s + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_gets_all_its_slots_and_none_twice() {
        let bar = |slots, from, until, job| Bar { rack: 0, slots, from, until, job, title: "a<b".into() };
        let bars = [bar(2, 0, 10, 0), bar(1, 0, 5, 1), bar(2, 5, 9, 2), bar(4, 10, 12, 3)];
        let p = pieces(&bars, 1, 4);
        let of = |job| p.iter().filter(|p| p.bar.job == job).map(|p| (p.first, p.count)).collect::<Vec<_>>();
        assert_eq!((of(0), of(1), of(2), of(3)), (vec![(0, 2)], vec![(2, 1)], vec![(2, 2)], vec![(0, 4)]));
        let svg = chart(bars.to_vec(), 1, 4);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && svg.contains("a&lt;b") && svg.matches("<title>").count() == 4);
    }
}
