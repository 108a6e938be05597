//! Sheets as SVG text.

use std::fmt::Write as _;

use super::{Anchor, Ink, MarkShape, Pen, Sheet, SheetMark, font};

/// The whole file.
pub fn write(sheet: &Sheet) -> String {
    let (w, h) = (number(sheet.width), number(sheet.height));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}pt\" height=\"{h}pt\" viewBox=\"0 0 {w} {h}\" \
         font-family=\"'DejaVu Sans', sans-serif\">\n<rect width=\"{w}\" height=\"{h}\" fill=\"#ffffff\"/>\n"
    );
    for mark in &sheet.marks {
        one(&mut out, mark);
    }
    out + "</svg>\n"
}

fn one(out: &mut String, mark: &SheetMark) {
    let look = look(mark);
    let (element, inside) = match &mark.shape {
        MarkShape::Rect((x, y), w, h) => (
            format!(
                "rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
                number(*x),
                number(*y),
                number(*w),
                number(*h)
            ),
            None,
        ),
        MarkShape::Circle((x, y), r) => (
            format!("circle cx=\"{}\" cy=\"{}\" r=\"{}\"", number(*x), number(*y), number(*r)),
            None,
        ),
        MarkShape::Line(points) => {
            let all: Vec<String> =
                points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect();
            (format!("polyline points=\"{}\"", all.join(" ")), None)
        }
        MarkShape::Segments(lines) => {
            let one = |((ax, ay), (bx, by)): &((f64, f64), (f64, f64))| {
                format!("M{} {}L{} {}", number(*ax), number(*ay), number(*bx), number(*by))
            };
            (format!("path d=\"{}\"", lines.iter().map(one).collect::<String>()), None)
        }
        MarkShape::Text { at: (x, y), size, anchor, turned, text } => {
            // From half the height of the capitals down to the line that letters are on.
            let down = size * font::CAPITALS / 2.0;
            let (at, turn) = match turned {
                false => ((*x, y + down), String::new()),
                true => (
                    (x + down, *y),
                    format!(" transform=\"rotate(-90 {} {})\"", number(x + down), number(*y)),
                ),
            };
            let place = format!(
                "text x=\"{}\" y=\"{}\" font-size=\"{}\"",
                number(at.0),
                number(at.1),
                number(*size)
            );
            (format!("{place} text-anchor=\"{}\"{turn}", anchored(*anchor)), Some(escaped(text)))
        }
    };
    let title = if mark.title.is_empty() {
        String::new()
    } else {
        format!("<title>{}</title>", escaped(&mark.title))
    };
    let inside = title + &inside.unwrap_or_default();
    let name = element.split(' ').next().unwrap_or_default();
    let _ = match inside.is_empty() {
        true => writeln!(out, "<{element}{look}/>"),
        false => writeln!(out, "<{element}{look}>{inside}</{name}>"),
    };
}

/// The attributes of colours and lines.
fn look(mark: &SheetMark) -> String {
    let mut out = paint("fill", mark.fill);
    if let Some(Pen { ink, width, dash }) = &mark.stroke {
        out += &paint("stroke", Some(*ink));
        let _ = write!(out, " stroke-width=\"{}\" stroke-linejoin=\"round\"", number(*width));
        if !dash.is_empty() {
            let all: Vec<String> = dash.iter().map(f32::to_string).collect();
            let _ = write!(out, " stroke-dasharray=\"{}\"", all.join(" "));
        }
    }
    out
}

fn paint(what: &str, ink: Option<Ink>) -> String {
    let Some(Ink { rgb: [r, g, b], cover }) = ink else { return format!(" {what}=\"none\"") };
    let cover = if cover < 1.0 { format!(" {what}-opacity=\"{cover}\"") } else { String::new() };
    format!(" {what}=\"#{r:02x}{g:02x}{b:02x}\"{cover}")
}

fn anchored(anchor: Anchor) -> &'static str {
    match anchor {
        Anchor::Start => "start",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    }
}

/// A length with two digits, without zeros that say nothing.
fn number(x: f64) -> String {
    let text = format!("{x:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A text as XML has it, between tags or in an attribute.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
