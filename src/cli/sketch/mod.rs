//! A network as a drawing: its packet switches by tier, its racks of hosts, and its optical planes below them.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::plot::canvas::{self, Area, Fault, colour, text};
use crate::topology::Topology;

mod layout;
#[cfg(test)]
mod tests;

use layout::{BOX, HOST, LEFT, Layout, Line, MARGIN, NAME, PAD};

/// The most racks that are drawn: a page is a window or a wall wide, not a street.
pub const MAX_RACKS: usize = 256;

/// The drawing as SVG.
///
/// # Errors
/// A network of more than [`MAX_RACKS`] racks, or what the library says.
pub fn svg(t: &Topology) -> Result<Vec<u8>, String> {
    if t.rack_count() > MAX_RACKS {
        return Err(format!("topology {} has {} racks; at most {MAX_RACKS} are drawn", t.name, t.rack_count()));
    }
    let page = Layout::new(t);
    canvas::svg(page.size, |area| draw(&area, &page))
}

fn draw<DB: DrawingBackend>(area: &Area<DB>, page: &Layout) -> Result<(), Fault<DB>> {
    area.fill(&WHITE)?;
    let styled = |size, h| text(size).pos(Pos::new(h, VPos::Center));
    area.draw(&Text::new(page.title.clone(), (MARGIN, MARGIN + 8), styled(20, HPos::Left)))?;
    lines(area, &page.cables, &colour(0))?;
    lines(area, &page.fibres, &colour(1))?;
    for n in &page.nodes {
        let corners = [(n.x - n.width / 2, n.y - BOX / 2), (n.x + n.width / 2, n.y + BOX / 2)];
        frame(area, corners, &colour(0), 0.12)?;
        // A name that does not fit would run into its neighbours.
        if let Some(size) = (9..=13).rev().find(|&size| fits(area, &n.name, size, n.width - 4)) {
            area.draw(&Text::new(n.name.clone(), (n.x, n.y), styled(size, HPos::Center)))?;
        }
    }
    let (width, height) = page.frame;
    for (k, r) in page.racks.iter().enumerate() {
        frame(area, [(r.left, r.top), (r.left + width, r.top + height)], &BLACK, 0.04)?;
        let long = format!("rack {k}");
        let name = if fits(area, &long, 12, width - 4) { long } else { k.to_string() };
        area.draw(&Text::new(name, (r.left + width / 2, r.top + NAME / 2), styled(11, HPos::Center)))?;
        for h in 0..r.hosts as i32 {
            let step = (width - 2 * PAD + 3) / page.columns.max(1);
            let first = r.left + (width - step.min(HOST + 3) * page.columns.min(r.hosts as i32) + 3) / 2;
            let (x, y) = (first + h % page.columns * (HOST + 3), r.top + NAME + h / page.columns * (HOST + 3));
            area.draw(&Rectangle::new([(x, y), (x + HOST, y + HOST)], BLACK.mix(0.55).filled()))?;
        }
    }
    for b in &page.bars {
        frame(area, [(LEFT, b.top), (page.size.0 as i32 - MARGIN, b.top + BOX)], &colour(1), 0.18)?;
        let middle = (LEFT + page.size.0 as i32 - MARGIN) / 2;
        area.draw(&Text::new(b.text.clone(), (middle, b.top + BOX / 2), styled(13, HPos::Center)))?;
    }
    for n in &page.notes {
        let first = n.y - 8 * (n.lines.len() as i32 - 1);
        for (k, line) in n.lines.iter().enumerate() {
            area.draw(&Text::new(line.clone(), (MARGIN, first + 16 * k as i32), styled(13, HPos::Left)))?;
        }
    }
    area.present()
}

/// Whether a text is at most so wide.
fn fits<DB: DrawingBackend>(area: &Area<DB>, name: &str, size: u32, width: i32) -> bool {
    area.estimate_text_size(name, &text(size)).is_ok_and(|(w, _)| w as i32 <= width)
}

/// A box: white below its colour, so that no line shows through.
fn frame<DB: DrawingBackend>(area: &Area<DB>, corners: [(i32, i32); 2], edge: &RGBColor, shade: f64) -> Result<(), Fault<DB>> {
    area.draw(&Rectangle::new(corners, WHITE.filled()))?;
    area.draw(&Rectangle::new(corners, edge.mix(shade).filled()))?;
    area.draw(&Rectangle::new(corners, edge.mix(0.7)))
}

/// Lines, those of higher rates wider; where they are many, lighter.
fn lines<DB: DrawingBackend>(area: &Area<DB>, lines: &[Line], colour: &RGBColor) -> Result<(), Fault<DB>> {
    let least = lines.iter().map(|l| l.rate.0).min().unwrap_or(1).max(1);
    let shade = if lines.len() > 60 { 0.45 } else { 0.75 };
    for l in lines {
        let width = 1 + (l.rate.0 / least).ilog10().min(3);
        let path = if l.from.1 == l.to.1 { arc(l.from, l.to) } else { vec![l.from, l.to] };
        area.draw(&PathElement::new(path, colour.mix(shade).stroke_width(width)))?;
    }
    Ok(())
}

/// A link between two switches of a row: below their boxes, deeper the longer it is.
fn arc(from: (i32, i32), to: (i32, i32)) -> Vec<(i32, i32)> {
    let deep = ((to.0 - from.0).abs() / 8).clamp(8, 40);
    (0..=16).map(|k| (from.0 + (to.0 - from.0) * k / 16, from.1 + deep * k * (16 - k) / 64)).collect()
}
