//! The font: how wide a text is, and the outlines of its letters.

use std::ops::Range;
use std::sync::LazyLock;

use skrifa::instance::{LocationRef, Size};
use skrifa::outline::{DrawSettings, OutlinePen};
use skrifa::{FontRef, GlyphId, MetadataProvider};

/// The height of capitals and digits, in sizes of the text.
pub const CAPITALS: f64 = 0.729;

static FONT: LazyLock<FontRef<'static>> =
    LazyLock::new(|| FontRef::new(dejavu::sans::regular()).expect("a font is compiled in"));

/// A letter of a text.
pub struct Letter {
    /// Its bytes in the text.
    pub bytes: Range<usize>,
    /// Its picture in the font.
    pub glyph: GlyphId,
    /// How far right the next letter begins, in sizes of the text.
    pub advance: f64,
}

/// The letters of a text. What the font lacks is drawn as its empty box.
pub fn letters(text: &str) -> impl Iterator<Item = Letter> {
    let (map, metrics) =
        (FONT.charmap(), FONT.glyph_metrics(Size::new(1.0), LocationRef::default()));
    text.char_indices().map(move |(at, c)| {
        let glyph = map.map(c).unwrap_or(GlyphId::NOTDEF);
        let advance = f64::from(metrics.advance_width(glyph).unwrap_or(0.5));
        Letter { bytes: at..at + c.len_utf8(), glyph, advance }
    })
}

/// How wide a text is at a size.
pub fn width(text: &str, size: f64) -> f64 {
    letters(text).map(|l| l.advance).sum::<f64>() * size
}

/// The largest size up to `size` at which a text is at most `room` wide; none below `least`.
pub fn fitting(text: &str, size: f64, room: f64, least: f64) -> Option<f64> {
    let fits = size.min(room / width(text, 1.0).max(f64::MIN_POSITIVE));
    (fits >= least).then_some(fits)
}

/// The text, or as much of its beginning as has room before dots.
pub fn shortened(text: &str, size: f64, room: f64) -> String {
    const DOTS: &str = "…";
    if width(text, size) <= room {
        return text.into();
    }
    let mut wide = width(DOTS, size);
    let fits = letters(text).take_while(|l| {
        wide += l.advance * size;
        wide <= room
    });
    let end = fits.last().map_or(0, |l| l.bytes.end);
    format!("{}{DOTS}", &text[..end])
}

/// Draws a letter at a size; upwards is positive.
pub fn outline(glyph: GlyphId, size: f64, pen: &mut impl OutlinePen) {
    if let Some(outline) = FONT.outline_glyphs().get(glyph) {
        // It fails only for broken fonts.
        let _ = outline
            .draw(DrawSettings::unhinted(Size::new(size as f32), LocationRef::default()), pen);
    }
}

/// A text in lines that are at most `room` wide, broken at spaces; a word that is wider is broken
/// where it must be.
pub fn wrapped(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), size) <= room => {
                *line += &format!(" {word}")
            }
            _ => lines.push(word.into()),
        }
        while let Some((head, tail)) = lines.last().and_then(|l| broken(l, size, room)) {
            lines.pop();
            lines.extend([head, tail]);
        }
    }
    lines
}

/// A word that is too wide, as what fits and the rest; `None` if it fits or has one letter.
fn broken(word: &str, size: f64, room: f64) -> Option<(String, String)> {
    let mut wide = 0.0;
    let too_far = letters(word).find(|l| {
        wide += l.advance * size;
        l.bytes.start > 0 && wide > room
    })?;
    let (head, tail) = word.split_at(too_far.bytes.start);
    Some((head.into(), tail.into()))
}
