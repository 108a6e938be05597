//! Charts: a title, a legend, and a frame with two axes, whose margins are as wide as what is
//! written there.

use super::axis::{self, Axis, Room};
use super::paper::PaperSize;
use super::{Anchor, Fill, Ink, MarkShape, Pen, Point, Sheet, colour, font};

/// The colour of grid lines.
const GRID: Ink = Ink::new(222, 222, 222);
/// The colour of axes.
const EDGE: Ink = Ink::new(90, 90, 90);
/// Height over width, if the height is not given.
const FLAT: f64 = 0.6;
/// The height of what is below a frame with a title of one line, in sizes of the text.
const BELOW: f64 = 3.6;
/// The least height of a frame, in sizes of the text.
const LEAST: f64 = 4.0;
/// From one line of text to the next, in sizes of the text.
const LINE: f64 = 1.3;
/// Dashes of lines, so that they are told apart without colour.
const DASHES: [&[f32]; 4] = [&[], &[5.0, 2.0], &[1.5, 1.5], &[6.0, 1.5, 1.5, 1.5]];

/// An entry of a legend.
#[derive(Clone, Debug)]
pub struct LegendKey {
    /// What it is.
    pub label: String,
    /// What it looks like.
    pub sample: LegendSample,
}

/// What a thing looks like.
#[derive(Clone, Debug)]
pub enum LegendSample {
    /// A line.
    Line(Pen),
    /// A filled box.
    Filled(Fill),
}

/// The pen of line `k`.
pub fn pen(k: usize, text: f64) -> Pen {
    Pen { ink: colour(k), width: text / 6.5, dash: DASHES[k % DASHES.len()] }
}

/// The distance between the lines of a hatch.
pub(super) fn apart(text: f64) -> f64 {
    text * 0.32
}

/// The title below an axis, in lines that the page has room for, and the height of all that is
/// below the frame.
pub(super) fn below(title: &str, text: f64, width: f64) -> (Vec<String>, f64) {
    let lines = font::wrapped(title, text, width - text);
    let more = lines.len().saturating_sub(1) as f64;
    (lines, (BELOW + LINE * more) * text)
}

/// Draws the title below an axis: in the middle of the axis, unless the page ends before the title
/// does.
pub(super) fn draw_below(
    sheet: &mut Sheet,
    lines: Vec<String>,
    text: f64,
    (middle, bottom): Point,
) {
    for (k, line) in lines.into_iter().enumerate() {
        let half = font::width(&line, text) / 2.0 + text * 0.2;
        let across = middle.min(sheet.width - half).max(half);
        sheet.text((across, bottom + (2.5 + LINE * k as f64) * text), text, Anchor::Middle, line);
    }
}

/// Where an axis that begins at `left` ends, and the axis: its last label may be at its end, so
/// half of it needs room beyond. A shorter axis may have other labels.
pub(super) fn across(
    left: f64,
    width: f64,
    text: f64,
    axis: &impl Fn(Room) -> Axis,
) -> (f64, Axis) {
    let room = |right: f64| Room { length: (right - left).max(1.0), text, upright: false };
    let (mut right, mut below) = (width - text, axis(room(width - text)));
    for _ in 0..4 {
        let last = |t: &axis::Tick| {
            font::width(&t.label, text) / 2.0 - (1.0 - below.part(t.at)) * (right - left)
        };
        let fits = width - text.max(below.ticks.last().map_or(0.0, last) + text * 0.4);
        if right <= fits {
            break;
        }
        (right, below) = (fits, axis(room(fits)));
    }
    (right, below)
}

/// Everything around the data.
#[derive(Clone, Debug)]
pub struct ChartStyle {
    /// Above the chart; nothing if empty.
    pub title: String,
    /// Logarithmic axis of times.
    pub log: bool,
    /// Sizes.
    pub paper: PaperSize,
}

/// The head of a picture: its title and legend, as lines below each other.
pub struct ChartHead {
    title: Vec<String>,
    /// Rows of entries: where each begins, its lines, and its sample.
    keys: Vec<Vec<(f64, Vec<String>, LegendSample)>>,
    text: f64,
    width: f64,
}

impl ChartHead {
    /// Sets title and legend in a width.
    pub fn new(title: &str, keys: Vec<LegendKey>, paper: &PaperSize) -> Self {
        let (text, width) = (paper.text(), paper.width());
        let room = width - 2.0 * text;
        let mut rows: Vec<Vec<(f64, Vec<String>, LegendSample)>> = vec![];
        let mut free = 0.0;
        for LegendKey { label, sample } in keys {
            let lines = font::wrapped(&label, text, room - 2.6 * text);
            let wide = 2.6 * text + lines.iter().map(|l| font::width(l, text)).fold(0.0, f64::max);
            if rows.is_empty() || wide > free {
                rows.push(vec![]);
                free = room;
            }
            rows.last_mut().expect("a row was added").push((text + room - free, lines, sample));
            free -= wide + 1.4 * text;
        }
        Self { title: font::wrapped(title, Self::large(text), room), keys: rows, text, width }
    }

    /// The size of titles.
    fn large(text: f64) -> f64 {
        text * 1.15
    }

    /// In points.
    pub fn height(&self) -> f64 {
        let title = self.title.len() as f64 * Self::large(self.text) * 1.3;
        let keys: usize =
            self.keys.iter().map(|row| row.iter().map(|k| k.1.len()).max().unwrap_or(0)).sum();
        let gap =
            if keys > 0 || !self.title.is_empty() { self.text * 0.9 } else { self.text * 0.7 };
        title + keys as f64 * self.text * 1.4 + gap
    }

    /// Draws it at the top of a sheet.
    pub fn draw(&self, sheet: &mut Sheet) {
        let (text, large) = (self.text, Self::large(self.text));
        let mut y = text * 0.5;
        for line in &self.title {
            y += large * 1.3;
            sheet.text((self.width / 2.0, y - large * 0.65), large, Anchor::Middle, line.as_str());
        }
        for row in &self.keys {
            for (x, lines, sample) in row {
                let middle = y + text * 0.7;
                match sample {
                    LegendSample::Line(pen) => {
                        sheet.line((*x, middle), (x + 2.1 * text, middle), pen.clone());
                    }
                    LegendSample::Filled(fill) => {
                        let (wide, high) = (text * 1.2, text * 0.9);
                        sheet.area(
                            (x + text * 0.6, middle - high / 2.0),
                            (wide, high),
                            *fill,
                            apart(text),
                            "",
                        );
                    }
                }
                for (k, line) in lines.iter().enumerate() {
                    sheet.text(
                        (x + 2.6 * text, middle + 1.4 * text * k as f64),
                        text,
                        Anchor::Start,
                        line.as_str(),
                    );
                }
            }
            y += 1.4 * text * row.iter().map(|k| k.1.len()).max().unwrap_or(0) as f64;
        }
    }
}

/// A chart with its axes, to draw data into.
pub struct Chart {
    /// What is drawn on.
    pub sheet: Sheet,
    /// Size of the text.
    pub text: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    /// The axis below.
    pub x: Axis,
    y: Axis,
}

impl Chart {
    /// Draws everything but the data. The axes are made for the room that they have.
    pub fn new(
        look: &ChartStyle,
        keys: Vec<LegendKey>,
        x: impl Fn(Room) -> Axis,
        y: impl Fn(Room) -> Axis,
    ) -> Self {
        let (paper, text) = (&look.paper, look.paper.text());
        let head = ChartHead::new(&look.title, keys, paper);
        let width = paper.width();
        // The unit in a title is that of the values, whatever the room.
        let any = |upright| Room { length: width, text, upright };
        let (named, under) = below(&x(any(false)).title, text, width);
        let around = head.height() + under;
        // Without a height, the frame has its proportions below its head, or is higher: the title
        // of its upright axis has two lines at most. With a height, what is around the frame has
        // its room all the same.
        let beside = font::width(&y(any(true)).title, text) * 0.65;
        let height = match paper.height() {
            None => ((width - 5.0 * text) * FLAT).max(LEAST * text).max(beside) + around,
            Some(h) => h.max(around + LEAST * text),
        };
        let (top, bottom) = (head.height(), height - under);
        let y = y(Room { length: (bottom - top).max(1.0), text, upright: true });
        let labels = y.ticks.iter().map(|t| font::width(&t.label, text)).fold(0.0, f64::max);
        let name = font::wrapped(&y.title, text, bottom - top);
        let left = labels + (1.7 + LINE * name.len() as f64) * text;
        let (right, below) = across(left, width, text, &x);
        let (sheet, x) = (Sheet::new(width, height), below);
        let mut chart = Self { sheet, text, left, right, top, bottom, x, y };
        head.draw(&mut chart.sheet);
        chart.axes(named);
        for (k, line) in name.into_iter().enumerate() {
            let place = (text * (0.9 + LINE * k as f64), (top + bottom) / 2.0);
            chart.sheet.text(place, text, Anchor::Middle, line).turned();
        }
        chart
    }

    fn axes(&mut self, title: Vec<String>) {
        let (text, thin) = (self.text, self.text / 16.0);
        for PlacedTick { place, label } in self.ticks(true) {
            self.sheet.line((place, self.top), (place, self.bottom), Pen::new(GRID, thin));
            self.sheet.line(
                (place, self.bottom),
                (place, self.bottom + text * 0.3),
                Pen::new(EDGE, thin * 1.4),
            );
            self.sheet.text((place, self.bottom + text), text, Anchor::Middle, label);
        }
        for PlacedTick { place, label } in self.ticks(false) {
            self.sheet.line((self.left, place), (self.right, place), Pen::new(GRID, thin));
            self.sheet.line(
                (self.left - text * 0.3, place),
                (self.left, place),
                Pen::new(EDGE, thin * 1.4),
            );
            self.sheet.text((self.left - text * 0.6, place), text, Anchor::End, label);
        }
        for &at in &self.x.minor {
            let place = self.at(at, 0.0).0;
            self.sheet.line(
                (place, self.bottom),
                (place, self.bottom + text * 0.18),
                Pen::new(EDGE, thin),
            );
        }
        for &at in &self.y.minor {
            let place = self.at(0.0, at).1;
            self.sheet.line(
                (self.left - text * 0.18, place),
                (self.left, place),
                Pen::new(EDGE, thin),
            );
        }
        let corner = MarkShape::Line(vec![
            (self.left, self.top),
            (self.left, self.bottom),
            (self.right, self.bottom),
        ]);
        self.sheet.stroke(corner, Pen::new(EDGE, thin * 1.4));
        draw_below(&mut self.sheet, title, text, ((self.left + self.right) / 2.0, self.bottom));
    }

    /// Where the labels of an axis are.
    fn ticks(&self, across: bool) -> Vec<PlacedTick> {
        let axis = if across { &self.x } else { &self.y };
        let place = |at: f64| if across { self.at(at, 0.0).0 } else { self.at(0.0, at).1 };
        axis.ticks
            .iter()
            .map(|t| PlacedTick { place: place(t.at), label: t.label.clone() })
            .collect()
    }

    /// The place of two values.
    pub fn at(&self, x: f64, y: f64) -> Point {
        let across = self.left + self.x.part(x) * (self.right - self.left);
        (across, self.bottom - self.y.part(y) * (self.bottom - self.top))
    }

    /// Draws a line through points.
    pub fn line(&mut self, points: impl IntoIterator<Item = (f64, f64)>, pen: Pen) {
        let mut line: Vec<Point> = vec![];
        // Points that fall on each other at the precision of the file are one.
        for p in points.into_iter().map(|(x, y)| self.at(x, y)) {
            if line.last().is_none_or(|l| (l.0 - p.0).abs() + (l.1 - p.1).abs() > 0.01) {
                line.push(p);
            }
        }
        self.sheet.stroke(MarkShape::Line(line), pen);
    }

    /// Draws a value with its interval: a mark, and a line of `half` above and below it with caps.
    pub fn whisker(&mut self, x: f64, value: f64, half: f64, pen: &Pen) {
        let (place, wide) = (self.at(x, value), self.text / 4.0);
        let thin = Pen { ink: pen.ink, width: self.text / 11.0, dash: &[] };
        let mark = Pen { ink: pen.ink, width: self.text / 2.0, dash: &[] };
        self.sheet.line((place.0 - wide, place.1), (place.0 + wide, place.1), mark);
        if half > 0.0 {
            let ends = [self.at(x, value + half), self.at(x, (value - half).max(0.0))];
            self.sheet.line(ends[0], ends[1], thin.clone());
            for end in ends {
                self.sheet.line((end.0 - wide, end.1), (end.0 + wide, end.1), thin.clone());
            }
        }
    }

    /// Names a part of an axis without ticks and title, in as many lines as it needs; the text
    /// shrinks until the longest word has room.
    pub fn name(&mut self, from: f64, to: f64, label: &str) {
        let (left, right) = (self.at(from, 0.0).0, self.at(to, 0.0).0);
        let room = right - left - self.text * 0.5;
        let longest = label.split(' ').map(|word| font::width(word, self.text)).fold(0.0, f64::max);
        let mut size = self.text * (room / longest.max(room)).max(0.1);
        let lines = |size: f64| font::wrapped(label, size, room * 1.001);
        // All lines are above the end of the page.
        while size > 0.5
            && size * LINE * (lines(size).len() as f64 + 0.2) > self.sheet.height - self.bottom
        {
            size *= 0.95;
        }
        for (k, line) in lines(size).into_iter().enumerate() {
            let y = self.bottom + size * (1.0 + LINE * k as f64);
            self.sheet.text(((left + right) / 2.0, y), size, Anchor::Middle, line);
        }
    }
}

/// A label at its place.
struct PlacedTick {
    place: f64,
    label: String,
}
