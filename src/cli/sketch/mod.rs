//! A network as a drawing: its packet switches by tier, its racks of hosts, and its optical planes
//! below them.

use crate::draw::{Anchor, Ink, MarkShape, Pen, Point, Sheet, colour, font};
use crate::topology::Topology;

mod layout;
#[cfg(test)]
mod tests;

use layout::{BOX, DrawnLink, HOST, LEFT, MARGIN, NAME, PAD, SketchLayout};

/// The most racks that are drawn: a page is a window or a wall wide, not a street.
pub const MAX_RACKS: usize = 256;
/// Heights of text in points: the title; notes, names of switches and texts of planes; names of
/// racks.
const SIZES: (f64, f64, f64) = (16.0, 10.5, 9.5);
/// The smallest size of a switch's name.
const SMALLEST: f64 = 6.5;

/// The drawing of a network.
///
/// # Errors
/// A network of more than [`MAX_RACKS`] racks.
pub fn sheet(t: &Topology) -> Result<Sheet, String> {
    if t.rack_count() > MAX_RACKS {
        return Err(format!(
            "topology {} has {} racks; at most {MAX_RACKS} are drawn",
            t.name,
            t.rack_count()
        ));
    }
    Ok(draw(&SketchLayout::new(t)))
}

fn draw(page: &SketchLayout) -> Sheet {
    let (title, note, name) = SIZES;
    let mut sheet = Sheet::new(page.size.0.into(), page.size.1.into());
    sheet.text(point(MARGIN, MARGIN + 8), title, Anchor::Start, page.title.as_str());
    lines(&mut sheet, &page.cables, colour(0));
    lines(&mut sheet, &page.fibres, colour(1));
    for n in &page.nodes {
        frame(
            &mut sheet,
            [(n.x - n.width / 2, n.y - BOX / 2), (n.x + n.width / 2, n.y + BOX / 2)],
            colour(0),
            0.12,
        );
        // A name that does not fit would run into its neighbours.
        if let Some(size) = font::fitting(&n.name, note, (n.width - 4).into(), SMALLEST) {
            sheet.text(point(n.x, n.y), size, Anchor::Middle, n.name.as_str());
        }
    }
    racks(&mut sheet, page, name);
    for b in &page.bars {
        frame(
            &mut sheet,
            [(LEFT, b.top), (page.size.0 as i32 - MARGIN, b.top + BOX)],
            colour(1),
            0.18,
        );
        let middle = (LEFT + page.size.0 as i32 - MARGIN) / 2;
        sheet.text(point(middle, b.top + BOX / 2), note, Anchor::Middle, b.text.as_str());
    }
    for n in &page.notes {
        let first = n.y - 8 * (n.lines.len() as i32 - 1);
        for (k, line) in n.lines.iter().enumerate() {
            sheet.text(point(MARGIN, first + 16 * k as i32), note, Anchor::Start, line.as_str());
        }
    }
    sheet
}

fn racks(sheet: &mut Sheet, page: &SketchLayout, size: f64) {
    let (width, height) = page.frame;
    for (k, r) in page.racks.iter().enumerate() {
        frame(sheet, [(r.left, r.top), (r.left + width, r.top + height)], Ink::BLACK, 0.04);
        let long = format!("r{k}");
        let name =
            if font::width(&long, size) <= f64::from(width - 4) { long } else { k.to_string() };
        sheet.text(point(r.left + width / 2, r.top + NAME / 2), size, Anchor::Middle, name);
        for h in 0..r.hosts as i32 {
            let step = (width - 2 * PAD + 3) / page.columns.max(1);
            let first =
                r.left + (width - step.min(HOST + 3) * page.columns.min(r.hosts as i32) + 3) / 2;
            let corner = point(
                first + h % page.columns * (HOST + 3),
                r.top + NAME + h / page.columns * (HOST + 3),
            );
            sheet.fill(MarkShape::Rect(corner, HOST.into(), HOST.into()), Ink::BLACK.tint(0.55));
        }
    }
}

fn point(x: i32, y: i32) -> Point {
    (x.into(), y.into())
}

/// A box of a light shade of its edge's colour, so that no line shows through.
fn frame(
    sheet: &mut Sheet,
    [(left, top), (right, bottom)]: [(i32, i32); 2],
    edge: Ink,
    shade: f32,
) {
    let shape = MarkShape::Rect(point(left, top), (right - left).into(), (bottom - top).into());
    sheet.fill(shape, edge.tint(shade)).edged(Pen::new(edge.tint(0.7), 1.0));
}

/// Lines, those of higher rates wider; where they are many, lighter.
fn lines(sheet: &mut Sheet, lines: &[DrawnLink], colour: Ink) {
    let least = lines.iter().map(|l| l.rate.0).min().unwrap_or(1).max(1);
    let ink = Ink { cover: if lines.len() > 60 { 0.45 } else { 0.75 }, ..colour };
    for l in lines {
        let width = 1 + (l.rate.0 / least).ilog10().min(3);
        let path = if l.from.1 == l.to.1 { arc(l.from, l.to) } else { vec![l.from, l.to] };
        sheet.stroke(
            MarkShape::Line(path.into_iter().map(|(x, y)| point(x, y)).collect()),
            Pen::new(ink, width.into()),
        );
    }
}

/// A link between two switches of a row: below their boxes, deeper the longer it is.
fn arc(from: (i32, i32), to: (i32, i32)) -> Vec<(i32, i32)> {
    let deep = ((to.0 - from.0).abs() / 8).clamp(8, 40);
    (0..=16)
        .map(|k| (from.0 + (to.0 - from.0) * k / 16, from.1 + deep * k * (16 - k) / 64))
        .collect()
}
