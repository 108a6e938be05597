//! The size of a picture and of the text in it.

/// Points an inch.
const INCH: f64 = 72.0;
/// Pixels an inch, where a length is given in pixels.
const CSS: f64 = 96.0;
/// The dots an inch that journals ask for.
const PRINT: f64 = 300.0;

/// A length on paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Length {
    points: f64,
    /// Whether it was given in pixels.
    pixels: bool,
}

impl std::str::FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [
            ("in", INCH),
            ("mm", INCH / 25.4),
            ("cm", INCH / 2.54),
            ("pt", 1.0),
            ("px", INCH / CSS),
        ];
        let unit = units.iter().find_map(|(unit, points)| {
            Some((text.strip_suffix(unit)?.trim().parse::<f64>().ok()?, *points, *unit))
        });
        let (value, each, unit) = unit.ok_or(
            "a length is a number with in, mm, cm, pt or px, such as 3.3in, 84mm or 600px",
        )?;
        let points = value * each;
        if !(INCH..=100.0 * INCH).contains(&points) {
            return Err("a picture is 1 in to 100 in wide and high".into());
        }
        Ok(Self { points, pixels: unit == "px" })
    }
}

/// Sizes of a picture.
#[derive(clap::Args, Clone, Debug)]
pub struct PaperSize {
    /// Width, in in, mm, cm, pt or px, such as 3.3in for a column of a paper
    #[arg(help_heading = "Size", long, value_name = "LENGTH", default_value = "7in")]
    width: Length,
    /// Height [default: what the picture needs]
    #[arg(help_heading = "Size", long, value_name = "LENGTH")]
    height: Option<Length>,
    /// Size of the text in points
    #[arg(help_heading = "Size", long, value_name = "POINTS", default_value = "9", value_parser = points)]
    font_size: f64,
    /// Pixels an inch of a PNG file [default: 300; 96 if the width is given in px, so that they are
    /// the file's]
    #[arg(help_heading = "Size", long, value_parser = clap::value_parser!(u32).range(36..=2400))]
    dpi: Option<u32>,
}

impl Default for PaperSize {
    fn default() -> Self {
        Self {
            width: Length { points: 7.0 * INCH, pixels: false },
            height: None,
            font_size: 9.0,
            dpi: None,
        }
    }
}

fn points(text: &str) -> Result<f64, String> {
    let size = text.trim_end_matches("pt").parse::<f64>().ok().filter(|s| (4.0..=40.0).contains(s));
    size.ok_or_else(|| "a number of points from 4 to 40".into())
}

impl PaperSize {
    /// In points.
    pub fn width(&self) -> f64 {
        self.width.points
    }

    /// In points, if it was given.
    pub fn height(&self) -> Option<f64> {
        self.height.map(|h| h.points)
    }

    /// The size of the text in points.
    pub fn text(&self) -> f64 {
        self.font_size
    }

    /// Pixels an inch.
    pub fn dpi(&self) -> f64 {
        self.dpi.map_or(if self.width.pixels { CSS } else { PRINT }, f64::from)
    }
}
