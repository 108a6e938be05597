//! Pages, fonts and colours: what all charts share.

use std::sync::Once;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

use crate::cli::tables;
use crate::units::Span;

/// A page to draw on.
pub type Area<DB> = DrawingArea<DB, Shift>;
/// Why a page was not drawn.
pub type Fault<DB> = DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>;

/// Okabe and Ito's colours, which people with any colour vision tell apart.
const PALETTE: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

/// The colour of line `k`.
pub fn colour(k: usize) -> RGBColor {
    PALETTE[k % PALETTE.len()]
}

/// The colour of rack `k`: the golden angle keeps neighbouring numbers apart.
pub fn rack_colour(k: u32) -> HSLColor {
    HSLColor((f64::from(k) * 0.381_966).fract(), 0.55, if k.is_multiple_of(2) { 0.66 } else { 0.78 })
}

/// Text of a size in pixels.
pub fn text(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&BLACK)
}

/// A time on an axis, from seconds.
pub fn seconds(s: f64) -> String {
    let ns = (s.max(0.0) * 1e9).round() as u64;
    if ns == 0 { "0s".into() } else { tables::span(Span(ns)) }
}

fn fonts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // It fails only for bytes that are no font.
        let _ = register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular());
    });
}

/// Draws a page as SVG.
///
/// # Errors
/// What the library says.
pub fn svg<'a, F>(size: (u32, u32), draw: F) -> Result<Vec<u8>, String>
where
    F: for<'b> FnOnce(Area<SVGBackend<'b>>) -> Result<(), Fault<SVGBackend<'b>>> + 'a,
{
    fonts();
    let mut out = String::new();
    let area = SVGBackend::with_string(&mut out, size).into_drawing_area();
    draw(area).map_err(|e| e.to_string())?;
    Ok(out.into_bytes())
}

/// Draws a page as PNG.
///
/// # Errors
/// What the libraries say.
pub fn png<F>(size: (u32, u32), draw: F) -> Result<Vec<u8>, String>
where
    F: for<'b> FnOnce(Area<BitMapBackend<'b>>) -> Result<(), Fault<BitMapBackend<'b>>>,
{
    fonts();
    let mut pixels = vec![255u8; size.0 as usize * size.1 as usize * 3];
    let area = BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area();
    draw(area).map_err(|e| e.to_string())?;
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, size.0, size.1);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(|e| e.to_string())?;
    writer.write_image_data(&pixels).map_err(|e| e.to_string())?;
    writer.finish().map_err(|e| e.to_string())?;
    Ok(out)
}
