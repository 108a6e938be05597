//! Bars over time in rows: circuits on ports, tasks on slots, jobs on racks.

use super::axis::Axis;
use super::chart::{self, ChartHead, ChartStyle, LegendKey, LegendSample};
use super::paper::PaperSize;
use super::{Anchor, Fill, Hatch, Ink, MarkShape, Pen, Sheet, font, many};

/// The colour of the lines between rows.
const LINE: Ink = Ink::new(222, 222, 222);
/// Height of a row in sizes of the text, if there is room.
const ROW: f64 = 1.5;
/// The least height of a row, in points, where there are many.
const LEAST: f64 = 2.0;
/// A page grows with its rows up to here, in points; then rows are lower than their text.
const HIGHEST: f64 = 1400.0;

/// More fills than these are not named in a legend: names are in the bars that have room.
const NAMED: usize = 24;

/// The legend of things whose fills are those of [`many`].
pub fn legend(names: &[String]) -> Vec<LegendKey> {
    let key = |(k, name): (usize, &String)| LegendKey {
        label: name.clone(),
        sample: LegendSample::Filled(many(k)),
    };
    names.iter().enumerate().map(key).filter(|_| names.len() <= NAMED).collect()
}

/// The smallest label of a bar, in sizes of the text.
const SMALLEST: f64 = 0.7;

/// Something that lasts.
#[derive(Clone, Debug)]
pub struct GanttBar {
    /// The row, and the part of a row that is above the bar: 2.5 is halfway down the third.
    pub row: f64,
    /// In rows.
    pub height: f64,
    /// In nanoseconds.
    pub from: u64,
    /// In nanoseconds.
    pub until: u64,
    /// Its colour, and the lines on it.
    pub fill: Fill,
    /// What is written in it where it has room; nothing if empty.
    pub label: String,
    /// What an SVG viewer shows where the reader points at it.
    pub title: String,
}

/// A chart of bars in rows.
#[derive(Clone, Debug, Default)]
pub struct GanttChart {
    /// The rows' names from above; rows without a name belong to the last one that has one.
    pub names: Vec<String>,
    /// Bars, the lowest first.
    pub bars: Vec<GanttBar>,
    /// Where the axis of time ends, in nanoseconds.
    pub end: u64,
    /// The legend.
    pub keys: Vec<LegendKey>,
}

/// The most of the page's width that the names of rows fill.
const NAMES: f64 = 0.4;

/// Where rows and times are on the page.
struct GanttFrame {
    text: f64,
    left: f64,
    right: f64,
    top: f64,
    /// Height of a row.
    step: f64,
    time: Axis,
}

impl GanttChart {
    /// The chart.
    pub fn draw(&self, look: &ChartStyle) -> Sheet {
        let (paper, text) = (&look.paper, look.paper.text());
        let head = ChartHead::new(&look.title, self.keys.clone(), paper);
        let rows = self.names.len().max(1) as f64;
        let end = self.end.max(1) as f64;
        let axis = |room| Axis::time("Time", end, room);
        let names: Vec<String> =
            self.names.iter().map(|n| font::shortened(n, text, paper.width() * NAMES)).collect();
        let left = names.iter().map(|n| font::width(n, text)).fold(0.0, f64::max) + 1.5 * text;
        let (right, time) = chart::across(left, paper.width(), text, &axis);
        let (title, under) = chart::below(&time.title, text, paper.width());
        let around = head.height() + under;
        let wanted = (ROW * text * rows + around).min(HIGHEST.max(LEAST * rows + around));
        let height = paper.height().map_or(wanted, |h| h.max(around + text));
        let step = (height - around) / rows;
        let frame = GanttFrame { text, left, right, top: head.height(), step, time };
        let mut sheet = Sheet::new(paper.width(), height);
        head.draw(&mut sheet);
        frame.rows(&mut sheet, &names, title);
        self.bars.iter().for_each(|b| frame.bar(&mut sheet, b));
        sheet
    }

    /// The chart with a title.
    pub fn titled(&self, title: String, paper: &PaperSize) -> Sheet {
        self.draw(&ChartStyle { title, log: false, paper: paper.clone() })
    }
}

impl GanttFrame {
    fn x(&self, ns: u64) -> f64 {
        self.left + self.time.part(ns as f64) * (self.right - self.left)
    }

    /// The rows' names and lines, and the axis of time.
    fn rows(&self, sheet: &mut Sheet, names: &[String], title: Vec<String>) {
        let (text, thin) = (self.text, self.text / 16.0);
        let bottom = self.top + self.step * names.len().max(1) as f64;
        // The lowest place at which the next name has room.
        let mut free = f64::MIN;
        for (k, name) in names.iter().enumerate() {
            let y = self.top + self.step * k as f64;
            if !name.is_empty() && (k == 0 || self.step >= text * 0.6) {
                sheet.line((self.left, y), (self.right, y), Pen::new(LINE, thin));
            }
            // The middle of the name's rows, or of the first one if they are high.
            let below = names[k + 1..].iter().take_while(|n| n.is_empty()).count() as f64 + 1.0;
            let middle = y + (self.step * below).min(self.step.max(text * 1.2)) / 2.0;
            if !name.is_empty() && middle - text * 0.55 >= free {
                sheet.text((self.left - text * 0.6, middle), text, Anchor::End, name.as_str());
                free = middle + text * 0.55;
            }
        }
        for tick in &self.time.ticks {
            let x = self.left + self.time.part(tick.at) * (self.right - self.left);
            sheet.line((x, self.top), (x, bottom), Pen::new(LINE, thin));
            sheet.text((x, bottom + text), text, Anchor::Middle, tick.label.as_str());
        }
        sheet.line(
            (self.left, bottom),
            (self.right, bottom),
            Pen::new(Ink::new(90, 90, 90), thin * 1.4),
        );
        chart::draw_below(sheet, title, text, ((self.left + self.right) / 2.0, bottom));
    }

    fn bar(&self, sheet: &mut Sheet, b: &GanttBar) {
        let (from, until) = (self.x(b.from), self.x(b.until));
        let gap = (self.step * b.height * 0.08).min(1.0);
        let (top, high) =
            (self.top + self.step * b.row + gap, (self.step * b.height - 2.0 * gap).max(0.1));
        // What lasts a moment is seen all the same.
        let wide = (until - from).max(0.15);
        sheet.area((from, top), (wide, high), b.fill, chart::apart(self.text), &b.title);
        // A label may be a little smaller than other text.
        let size =
            font::fitting(&b.label, self.text.min(high * 0.85), wide - 1.0, self.text * SMALLEST);
        if let Some(size) = size.filter(|_| !b.label.is_empty()) {
            let at = ((from + until) / 2.0, top + high / 2.0);
            if b.fill.hatch != Hatch::Plain {
                // Letters are read on the plain colour.
                let (half, tall) = (
                    (font::width(&b.label, size) / 2.0 + size * 0.15).min(wide / 2.0),
                    (size * 1.1).min(high),
                );
                sheet
                    .fill(
                        MarkShape::Rect((at.0 - half, at.1 - tall / 2.0), 2.0 * half, tall),
                        b.fill.ink,
                    )
                    .says(b.title.as_str());
            }
            let text = MarkShape::Text {
                at,
                size,
                anchor: Anchor::Middle,
                turned: false,
                text: b.label.clone(),
            };
            sheet.fill(text, b.fill.ink.against()).says(b.title.as_str());
        }
    }
}
