//! Bars over time in rows: circuits on ports, tasks on slots, jobs on racks.

use std::path::Path;

use super::axis::{Axis, Room};
use super::chart::{BELOW, Head, Key, Look, Sample};
use super::paper::Paper;
use super::{Anchor, Ink, Pen, Shape, Sheet, font, many};
use crate::cli::CliError;

/// The colour of the lines between rows.
const LINE: Ink = Ink::new(222, 222, 222);
/// Height of a row in sizes of the text, if there is room.
const ROW: f64 = 1.5;
/// The least height of a row, in points, where there are many.
const LEAST: f64 = 2.0;
/// A page grows with its rows up to here, in points; then rows are lower than their text.
const HIGHEST: f64 = 1400.0;

/// More colours than these are not named in a legend: names are in the bars that have room.
const NAMED: usize = 24;

/// The legend of things whose colours are those of [`many`].
pub fn legend(names: &[String]) -> Vec<Key> {
    let key = |(k, name): (usize, &String)| Key { label: name.clone(), sample: Sample::Filled(many(k, names.len())) };
    names.iter().enumerate().map(key).filter(|_| names.len() <= NAMED).collect()
}

/// The smallest label of a bar, in sizes of the text.
const SMALLEST: f64 = 0.7;

/// Something that lasts.
#[derive(Clone, Debug)]
pub struct Bar {
    /// The row, and the part of a row that is above the bar: 2.5 is halfway down the third.
    pub row: f64,
    /// In rows.
    pub height: f64,
    /// In nanoseconds.
    pub from: u64,
    /// In nanoseconds.
    pub until: u64,
    /// Its colour.
    pub ink: Ink,
    /// What is written in it where it has room; nothing if empty.
    pub label: String,
    /// What an SVG viewer shows where the reader points at it.
    pub title: String,
}

/// A chart of bars in rows.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// The rows' names from above; rows without a name belong to the last one that has one.
    pub names: Vec<String>,
    /// Bars, the lowest first.
    pub bars: Vec<Bar>,
    /// Where the axis of time ends, in nanoseconds.
    pub end: u64,
    /// The legend.
    pub keys: Vec<Key>,
}

/// Where rows and times are on the page.
struct Frame {
    text: f64,
    left: f64,
    right: f64,
    top: f64,
    /// Height of a row.
    step: f64,
    time: Axis,
}

impl Rows {
    /// The chart.
    pub fn draw(&self, look: &Look) -> Sheet {
        let (paper, text) = (&look.paper, look.paper.text());
        let head = Head::new(&look.title, self.keys.clone(), paper);
        let rows = self.names.len().max(1) as f64;
        let around = head.height() + BELOW * text;
        let wanted = (ROW * text * rows + around).min(HIGHEST.max(LEAST * rows + around));
        let height = paper.height().map_or(wanted, |h| h.max(around + text));
        let step = (height - around) / rows;
        let left = self.names.iter().map(|n| font::width(n, text)).fold(0.0, f64::max) + 1.5 * text;
        let room = |right: f64| Room { length: (right - left).max(1.0), text, upright: false };
        let right = paper.width() - 1.5 * text;
        let time = Axis::time("Time", self.end.max(1) as f64, room(right));
        let frame = Frame { text, left, right, top: head.height(), step, time };
        let mut sheet = Sheet::new(paper.width(), height);
        head.draw(&mut sheet);
        frame.rows(&mut sheet, &self.names);
        self.bars.iter().for_each(|b| frame.bar(&mut sheet, b));
        sheet
    }

    /// Writes the chart to a file, in the size that needs no option.
    ///
    /// # Errors
    /// As [`super::write`].
    pub fn write(&self, title: String, file: &Path) -> Result<(), CliError> {
        let paper = Paper::default();
        let dpi = paper.dpi();
        super::write(&self.draw(&Look { title, log: false, paper }), file, dpi)
    }
}

impl Frame {
    fn x(&self, ns: u64) -> f64 {
        self.left + self.time.part(ns as f64) * (self.right - self.left)
    }

    /// The rows' names and lines, and the axis of time.
    fn rows(&self, sheet: &mut Sheet, names: &[String]) {
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
        sheet.line((self.left, bottom), (self.right, bottom), Pen::new(Ink::new(90, 90, 90), thin * 1.4));
        sheet.text(((self.left + self.right) / 2.0, bottom + 2.5 * text), text, Anchor::Middle, self.time.title.as_str());
    }

    fn bar(&self, sheet: &mut Sheet, b: &Bar) {
        let (from, until) = (self.x(b.from), self.x(b.until));
        let gap = (self.step * b.height * 0.08).min(1.0);
        let (top, high) = (self.top + self.step * b.row + gap, (self.step * b.height - 2.0 * gap).max(0.1));
        // What lasts a moment is seen all the same.
        let wide = (until - from).max(0.15);
        sheet.fill(Shape::Rect((from, top), wide, high), b.ink).says(b.title.as_str());
        // A label may be a little smaller than other text.
        let size = font::fitting(&b.label, self.text.min(high * 0.85), wide - 1.0, self.text * SMALLEST);
        if let Some(size) = size.filter(|_| !b.label.is_empty()) {
            let text = Shape::Text {
                at: ((from + until) / 2.0, top + high / 2.0),
                size,
                anchor: Anchor::Middle,
                turned: false,
                text: b.label.clone(),
            };
            sheet.fill(text, b.ink.against()).says(b.title.as_str());
        }
    }
}
