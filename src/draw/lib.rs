//! Everything that Heliostat draws: charts, timelines and networks are marks on a [`Sheet`], which
//! is written as SVG, PNG or PDF.
//!
//! Lengths are points, 72 to the inch, from the upper left corner. Text is measured, and drawn in
//! PNG and PDF files, with DejaVu Sans, which is compiled in; SVG files name it first and then the
//! viewer's own sans-serif, which is narrower on most systems.
#![forbid(unsafe_code)]

use std::path::Path;

pub mod axis;
pub mod chart;
pub mod font;
pub mod gantt;
mod ink;
pub mod paper;
mod pdf;
mod png;
mod svg;
#[cfg(test)]
mod tests;

#[cfg(test)]
#[path = "../testing.rs"]
mod testing;

pub use ink::{Fill, Hatch, Ink, colour, many};

/// Pixels an inch of PNG files of networks, which are drawn as wide as they need: two a point.
pub const TWO_A_POINT: f64 = 144.0;

/// A place on a sheet.
pub type Point = (f64, f64);

/// How a line is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Pen {
    /// Its colour.
    pub ink: Ink,
    /// In points.
    pub width: f64,
    /// Lengths of dashes and gaps in turn; a full line if there are none.
    pub dash: &'static [f32],
}

impl Pen {
    /// A full line.
    pub fn new(ink: Ink, width: f64) -> Self {
        Self { ink, width, dash: &[] }
    }
}

/// Which part of a text is at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its left end.
    Start,
    /// Its middle.
    Middle,
    /// Its right end.
    End,
}

impl Anchor {
    /// How far left of its place a text of this width begins.
    fn before(self, width: f64) -> f64 {
        match self {
            Self::Start => 0.0,
            Self::Middle => width / 2.0,
            Self::End => width,
        }
    }
}

/// What a mark is.
#[derive(Clone, Debug, PartialEq)]
pub enum MarkShape {
    /// A rectangle: its upper left corner, width and height.
    Rect(Point, f64, f64),
    /// A circle: its middle and radius.
    Circle(Point, f64),
    /// A line through points.
    Line(Vec<Point>),
    /// Lines that each have two ends.
    Segments(Vec<(Point, Point)>),
    /// A text: its place, which is halfway up its capitals.
    Text {
        /// Where it is.
        at: Point,
        /// The height of its line.
        size: f64,
        /// Which part of the text is at `at`.
        anchor: Anchor,
        /// Whether it is read from below upwards.
        turned: bool,
        /// What it says.
        text: String,
    },
}

/// A mark on a sheet.
#[derive(Clone, Debug, PartialEq)]
pub struct SheetMark {
    shape: MarkShape,
    fill: Option<Ink>,
    stroke: Option<Pen>,
    title: String,
}

impl SheetMark {
    /// Draws the edge of what is filled.
    pub fn edged(&mut self, pen: Pen) -> &mut Self {
        self.stroke = Some(pen);
        self
    }

    /// What an SVG viewer shows where the reader points at it.
    pub fn says(&mut self, title: impl Into<String>) -> &mut Self {
        self.title = title.into();
        self
    }

    /// A text that is read from below upwards.
    pub fn turned(&mut self) {
        if let MarkShape::Text { turned, .. } = &mut self.shape {
            *turned = true;
        }
    }
}

/// A page with its marks, the lowest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// In points.
    pub width: f64,
    /// In points.
    pub height: f64,
    marks: Vec<SheetMark>,
}

impl Sheet {
    /// An empty white page.
    pub fn new(width: f64, height: f64) -> Self {
        Self { width, height, marks: vec![] }
    }

    /// Adds a filled shape.
    pub fn fill(&mut self, shape: MarkShape, ink: Ink) -> &mut SheetMark {
        self.add(SheetMark { shape, fill: Some(ink), stroke: None, title: String::new() })
    }

    /// Adds a rectangle with the lines of its fill, which are `apart` from each other; both say the
    /// same where the reader points at them.
    pub fn area(&mut self, (x, y): Point, (w, h): (f64, f64), fill: Fill, apart: f64, title: &str) {
        self.fill(MarkShape::Rect((x, y), w, h), fill.ink).says(title);
        let lines = hatched((x, y), (w, h), fill.hatch, apart);
        if !lines.is_empty() {
            self.stroke(MarkShape::Segments(lines), Pen::new(fill.lines(), apart * 0.2))
                .says(title);
        }
    }

    /// Adds a line or an edge.
    pub fn stroke(&mut self, shape: MarkShape, pen: Pen) -> &mut SheetMark {
        self.add(SheetMark { shape, fill: None, stroke: Some(pen), title: String::new() })
    }

    /// Adds a line between two points.
    pub fn line(&mut self, from: Point, to: Point, pen: Pen) -> &mut SheetMark {
        self.stroke(MarkShape::Line(vec![from, to]), pen)
    }

    /// Adds a text in black.
    pub fn text(
        &mut self,
        at: Point,
        size: f64,
        anchor: Anchor,
        text: impl Into<String>,
    ) -> &mut SheetMark {
        self.fill(
            MarkShape::Text { at, size, anchor, turned: false, text: text.into() },
            Ink::BLACK,
        )
    }

    fn add(&mut self, mark: SheetMark) -> &mut SheetMark {
        self.marks.push(mark);
        self.marks.last_mut().expect("one was added")
    }

    /// As SVG.
    pub fn svg(&self) -> String {
        svg::write(self)
    }

    /// The texts on the page, each with the corners of the box that it fills.
    fn texts(&self) -> Vec<(&str, [f64; 4])> {
        let of = |m: &SheetMark| match &m.shape {
            MarkShape::Text { at: (x, y), size, anchor, turned, .. } => {
                let (width, half) = (font::width(m.text_of(), *size), font::CAPITALS * size / 2.0);
                let from = -anchor.before(width);
                let flat = [x + from, y - half, x + from + width, y + half];
                let upright = [x - half, y - from - width, x + half, y - from];
                Some(if *turned { upright } else { flat })
            }
            _ => None,
        };
        self.marks.iter().filter_map(|m| Some((m.text_of(), of(m)?))).collect()
    }
}

impl SheetMark {
    fn text_of(&self) -> &str {
        if let MarkShape::Text { text, .. } = &self.shape { text } else { "" }
    }
}

/// The lines of a hatch that are in a rectangle, at the same places on the page whatever the
/// rectangle is.
fn hatched((x, y): Point, (w, h): (f64, f64), hatch: Hatch, apart: f64) -> Vec<(Point, Point)> {
    let (right, low) = (x + w, y + h);
    let between = |from: f64, to: f64| {
        ((from / apart).ceil() as i64..=(to / apart).floor() as i64).map(move |k| k as f64 * apart)
    };
    // Sloping lines have sums, or differences, of their coordinates in common.
    let slope = apart * std::f64::consts::SQRT_2;
    let sloping = |from: f64, to: f64| {
        ((from / slope).ceil() as i64..=(to / slope).floor() as i64).map(move |k| k as f64 * slope)
    };
    let rising = || {
        sloping(x + y, right + low)
            .map(|c| (c - low, c - y))
            .map(|(a, b)| (a.max(x), b.min(right), a + low))
            .map(|(a, b, c)| ((a, c - a), (b, c - b)))
    };
    let falling = || {
        sloping(y - right, low - x)
            .map(|c| (x.max(y - c), right.min(low - c), c))
            .map(|(a, b, c)| ((a, a + c), (b, b + c)))
    };
    match hatch {
        Hatch::Plain => vec![],
        Hatch::Rising => rising().collect(),
        Hatch::Falling => falling().collect(),
        Hatch::Crossed => rising().chain(falling()).collect(),
        Hatch::Level => between(y, low).map(|c| ((x, c), (right, c))).collect(),
        Hatch::Upright => between(x, right).map(|c| ((c, y), (c, low))).collect(),
    }
}

/// The kinds of files that a sheet is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureFormat {
    /// Scalable vector graphics.
    Svg,
    /// Pixels.
    Png,
    /// A page of a document.
    Pdf,
}

impl PictureFormat {
    /// By the ending of a file's name.
    ///
    /// # Errors
    /// Another ending.
    pub fn of(file: &Path) -> Result<Self, String> {
        match file.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("svg") => Ok(Self::Svg),
            Some("png") => Ok(Self::Png),
            Some("pdf") => Ok(Self::Pdf),
            _ => {
                Err(format!("{}: the name of a picture ends in .svg, .png or .pdf", file.display()))
            }
        }
    }
}

impl Sheet {
    /// The bytes of a file of this format; `dpi` is the number of pixels an inch of a PNG file.
    ///
    /// # Errors
    /// A picture of too many pixels.
    pub fn bytes(&self, format: PictureFormat, dpi: f64) -> Result<Vec<u8>, String> {
        match format {
            PictureFormat::Svg => Ok(self.svg().into_bytes()),
            PictureFormat::Png => png::write(self, dpi),
            PictureFormat::Pdf => pdf::write(self),
        }
    }

    /// Whether all texts are on the page and none covers a part of another.
    ///
    /// # Errors
    /// The first text that is not legible.
    pub fn legible(&self) -> Result<(), String> {
        let texts = self.texts();
        let outside =
            |b: &[f64; 4]| b[0] < 0.0 || b[1] < 0.0 || b[2] > self.width || b[3] > self.height;
        if let Some((text, b)) = texts.iter().find(|t| outside(&t.1)) {
            return Err(format!("{text:?} is cut: {b:?} on {} x {}", self.width, self.height));
        }
        for (k, (one, a)) in texts.iter().enumerate() {
            let over = |b: &[f64; 4]| a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
            if let Some((other, b)) = texts[k + 1..].iter().find(|t| over(&t.1)) {
                return Err(format!("{one:?} {a:?} covers {other:?} {b:?}"));
            }
        }
        Ok(())
    }
}
