//! Sheets as PDF: a page of the sheet's size, with text that can be marked and searched.

use krilla::Document;
use krilla::color::rgb;
use krilla::geom::{Path, PathBuilder, Point, Rect, Transform};
use krilla::num::NormalizedF32;
use krilla::page::PageSettings;
use krilla::paint::{Fill, FillRule, LineJoin, Stroke, StrokeDash};
use krilla::surface::Surface;
use krilla::text::{Font, GlyphId, KrillaGlyph};

use super::{Ink, MarkShape, Pen, Sheet, SheetMark, font};

/// A circle's quarter as a cubic curve: how far its control points are from its ends, in radii.
const QUARTER: f32 = 0.552_285;

/// The whole file.
///
/// # Errors
/// What the library says.
pub fn write(sheet: &Sheet) -> Result<Vec<u8>, String> {
    let settings = PageSettings::from_wh(sheet.width as f32, sheet.height as f32)
        .ok_or("a page of no size")?;
    let font =
        Font::new(dejavu::sans::regular().to_vec().into(), 0).ok_or("the font cannot be read")?;
    let mut document = Document::new();
    let mut page = document.start_page_with(settings);
    let mut surface = page.surface();
    sheet.marks.iter().for_each(|mark| one(&mut surface, mark, &font));
    surface.finish();
    page.finish();
    document.finish().map_err(|e| format!("{e:?}"))
}

fn one(surface: &mut Surface<'_>, mark: &SheetMark, font: &Font) {
    surface.set_fill(mark.fill.map(|ink| Fill {
        paint: paint(ink),
        opacity: cover(ink),
        rule: FillRule::NonZero,
    }));
    surface.set_stroke(mark.stroke.as_ref().map(|Pen { ink, width, dash }| Stroke {
        paint: paint(*ink),
        opacity: cover(*ink),
        width: *width as f32,
        line_join: LineJoin::Round,
        dash: (!dash.is_empty()).then(|| StrokeDash { array: dash.to_vec(), offset: 0.0 }),
        ..Stroke::default()
    }));
    match path(&mark.shape) {
        Some(path) => surface.draw_path(&path),
        None => text(surface, &mark.shape, font),
    }
}

fn path(shape: &MarkShape) -> Option<Path> {
    let mut path = PathBuilder::new();
    match shape {
        MarkShape::Rect((x, y), w, h) => {
            path.push_rect(Rect::from_xywh(*x as f32, *y as f32, *w as f32, *h as f32)?)
        }
        MarkShape::Circle((x, y), r) => {
            let (x, y, r) = (*x as f32, *y as f32, *r as f32);
            let q = r * QUARTER;
            path.move_to(x + r, y);
            path.cubic_to(x + r, y + q, x + q, y + r, x, y + r);
            path.cubic_to(x - q, y + r, x - r, y + q, x - r, y);
            path.cubic_to(x - r, y - q, x - q, y - r, x, y - r);
            path.cubic_to(x + q, y - r, x + r, y - q, x + r, y);
            path.close();
        }
        MarkShape::Line(points) => {
            for (k, (x, y)) in points.iter().enumerate() {
                if k == 0 {
                    path.move_to(*x as f32, *y as f32)
                } else {
                    path.line_to(*x as f32, *y as f32)
                }
            }
        }
        MarkShape::Segments(lines) => {
            for (from, to) in lines {
                path.move_to(from.0 as f32, from.1 as f32);
                path.line_to(to.0 as f32, to.1 as f32);
            }
        }
        MarkShape::Text { .. } => return None,
    }
    path.finish()
}

fn text(surface: &mut Surface<'_>, shape: &MarkShape, font: &Font) {
    let MarkShape::Text { at, size, anchor, turned, text } = shape else { return };
    let glyph = |l: font::Letter| KrillaGlyph {
        glyph_id: GlyphId::new(l.glyph.to_u32()),
        text_range: l.bytes,
        x_advance: l.advance as f32,
        x_offset: 0.0,
        y_offset: 0.0,
        y_advance: 0.0,
        location: None,
    };
    let glyphs: Vec<KrillaGlyph> = font::letters(text).map(glyph).collect();
    let place = Transform::from_translate(at.0 as f32, at.1 as f32);
    surface.push_transform(&place);
    if *turned {
        surface.push_transform(&Transform::from_rotate(-90.0));
    }
    let from = Point::from_xy(
        -anchor.before(font::width(text, *size)) as f32,
        (size * font::CAPITALS / 2.0) as f32,
    );
    surface.draw_glyphs(from, &glyphs, font.clone(), text, *size as f32, false);
    if *turned {
        surface.pop();
    }
    surface.pop();
}

fn paint(ink: Ink) -> krilla::paint::Paint {
    let [r, g, b] = ink.rgb;
    rgb::Color::new(r, g, b).into()
}

fn cover(ink: Ink) -> NormalizedF32 {
    NormalizedF32::new(ink.cover.clamp(0.0, 1.0)).unwrap_or(NormalizedF32::ONE)
}
