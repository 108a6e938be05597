//! Sheets as pixels.

use skrifa::outline::OutlinePen;
use tiny_skia::{
    FillRule, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, StrokeDash, Transform,
};

use super::{Ink, MarkShape, Pen, Sheet, SheetMark, font};

/// 1.4 GB of memory: 4 bytes a pixel while it is drawn, and 3 while it is written.
const MOST_PIXELS: f64 = 200e6;

/// The whole file.
///
/// # Errors
/// Too many pixels.
pub fn write(sheet: &Sheet, dpi: f64) -> Result<Vec<u8>, String> {
    let scale = dpi / 72.0;
    let (width, height) =
        ((sheet.width * scale).round().max(1.0), (sheet.height * scale).round().max(1.0));
    if width * height > MOST_PIXELS {
        return Err(format!(
            "a picture of {width:.0} x {height:.0} pixels is too large; write an SVG or PDF file, or make it smaller"
        ));
    }
    let mut page =
        Pixmap::new(width as u32, height as u32).ok_or("no memory for the picture's pixels")?;
    page.fill(tiny_skia::Color::WHITE);
    let scale = Transform::from_scale(scale as f32, scale as f32);
    sheet.marks.iter().for_each(|mark| one(&mut page, mark, scale));
    encoded(&page, dpi).map_err(|e| e.to_string())
}

fn one(page: &mut Pixmap, mark: &SheetMark, scale: Transform) {
    if let MarkShape::Text { .. } = mark.shape {
        return text(page, mark, scale);
    }
    let Some(path) = path(&mark.shape) else { return };
    if let Some(ink) = mark.fill {
        page.fill_path(&path, &paint(ink), FillRule::Winding, scale, None);
    }
    if let Some(Pen { ink, width, dash }) = &mark.stroke {
        let dash = if dash.is_empty() { None } else { StrokeDash::new(dash.to_vec(), 0.0) };
        let stroke =
            Stroke { width: *width as f32, line_join: LineJoin::Round, dash, ..Stroke::default() };
        page.stroke_path(&path, &paint(*ink), &stroke, scale, None);
    }
}

fn path(shape: &MarkShape) -> Option<Path> {
    match shape {
        MarkShape::Rect((x, y), w, h) => {
            Rect::from_xywh(*x as f32, *y as f32, *w as f32, *h as f32).map(PathBuilder::from_rect)
        }
        MarkShape::Circle((x, y), r) => PathBuilder::from_circle(*x as f32, *y as f32, *r as f32),
        MarkShape::Line(points) => {
            let mut path = PathBuilder::new();
            for (k, (x, y)) in points.iter().enumerate() {
                if k == 0 {
                    path.move_to(*x as f32, *y as f32)
                } else {
                    path.line_to(*x as f32, *y as f32)
                }
            }
            path.finish()
        }
        MarkShape::Segments(lines) => {
            let mut path = PathBuilder::new();
            for (from, to) in lines {
                path.move_to(from.0 as f32, from.1 as f32);
                path.line_to(to.0 as f32, to.1 as f32);
            }
            path.finish()
        }
        MarkShape::Text { .. } => None,
    }
}

/// Letter by letter, at places between pixels too.
fn text(page: &mut Pixmap, mark: &SheetMark, scale: Transform) {
    let (MarkShape::Text { at, size, anchor, turned, text }, Some(ink)) = (&mark.shape, mark.fill)
    else {
        return;
    };
    let place = scale.pre_translate(at.0 as f32, at.1 as f32);
    let place = if *turned { place.pre_rotate(-90.0) } else { place };
    let mut x = -anchor.before(font::width(text, *size));
    for letter in font::letters(text) {
        let mut outline = Outline(PathBuilder::new());
        font::outline(letter.glyph, *size, &mut outline);
        if let Some(path) = outline.0.finish() {
            let place = place.pre_translate(x as f32, (size * font::CAPITALS / 2.0) as f32);
            page.fill_path(&path, &paint(ink), FillRule::Winding, place, None);
        }
        x += letter.advance * size;
    }
}

fn paint(ink: Ink) -> Paint<'static> {
    let mut paint = Paint::default();
    let [r, g, b] = ink.rgb;
    paint.set_color_rgba8(r, g, b, (ink.cover * 255.0).round() as u8);
    paint.anti_alias = true;
    paint
}

/// Outlines of letters, which count upwards, as a path, which counts downwards.
struct Outline(PathBuilder);

impl OutlinePen for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.0.move_to(x, -y);
    }
    fn line_to(&mut self, x: f32, y: f32) {
        self.0.line_to(x, -y);
    }
    fn quad_to(&mut self, cx: f32, cy: f32, x: f32, y: f32) {
        self.0.quad_to(cx, -cy, x, -y);
    }
    fn curve_to(&mut self, ax: f32, ay: f32, bx: f32, by: f32, x: f32, y: f32) {
        self.0.cubic_to(ax, -ay, bx, -by, x, -y);
    }
    fn close(&mut self) {
        self.0.close();
    }
}

fn encoded(page: &Pixmap, dpi: f64) -> Result<Vec<u8>, png::EncodingError> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, page.width(), page.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let a_metre = (dpi / 0.0254).round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: a_metre,
        yppu: a_metre,
        unit: png::Unit::Meter,
    }));
    let mut writer = encoder.write_header()?;
    // The page is white below everything, so nothing is left to see through.
    let rgb: Vec<u8> = page.pixels().iter().flat_map(|p| [p.red(), p.green(), p.blue()]).collect();
    writer.write_image_data(&rgb)?;
    writer.finish()?;
    Ok(out)
}
