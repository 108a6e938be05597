//! Circuits over time: a row for every sending port, a bar for every circuit, coloured by its receiving rack.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::Look;
use super::canvas::{Area, Fault, rack_colour, seconds, text};
use super::input::{Bar, Circuits};
use crate::units::{NANOS, Time};

/// The circuits of one file.
pub struct Gantt(pub Circuits);

impl Gantt {
    /// The rows, from above: every rack of every plane, up to the greatest number in use.
    fn rows(&self) -> (u32, u32) {
        let most = |f: fn(&Bar) -> u32| self.0.bars.iter().map(f).max().map_or(1, |m| m + 1);
        (most(|b| b.plane), most(|b| b.input.max(b.output)))
    }

    pub fn draw<DB: DrawingBackend>(&self, area: &Area<DB>, look: &Look) -> Result<(), Fault<DB>> {
        let (planes, racks) = self.rows();
        let rows = planes * racks;
        let time = |t: Time| t.0 as f64 / NANOS as f64;
        let (end, all) = (time(self.0.end).max(1e-9), f64::from(rows));
        // Row 0 is at the top.
        let top = |b: &Bar| all - f64::from(b.plane * racks + b.input);
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(area);
        chart.caption(&look.title, text(20)).margin(16).x_label_area_size(48).y_label_area_size(96);
        let mut chart = chart.build_cartesian_2d(0.0..end, 0.0..all)?;
        let mut mesh = chart.configure_mesh();
        let dark = self.0.bars.iter().any(|b| b.up_from > b.setup_at);
        mesh.x_desc(if dark { "time (colour and number: receiving rack; grey: dark)" } else { "time (colour and number: receiving rack)" });
        mesh.label_style(text(14)).axis_desc_style(text(15));
        mesh.disable_y_mesh().y_labels(0).max_light_lines(2).light_line_style(BLACK.mix(0.05)).bold_line_style(BLACK.mix(0.15));
        mesh.x_label_formatter(&|s| seconds(*s)).draw()?;
        for b in &self.0.bars {
            let y = (top(b) - 0.08, top(b) - 0.92);
            let bar = |from: Time, to: Time, style| Rectangle::new([(time(from), y.0), (time(to), y.1)], style);
            chart.draw_series([bar(b.setup_at, b.up_from, BLACK.mix(0.25).filled())])?;
            chart.draw_series([bar(b.up_from, b.until, rack_colour(b.output).filled())])?;
        }
        self.numbers(&mut chart, area, rows, racks)?;
        area.present()
    }

    /// The rows' names, and the receiving rack in every bar with room for it.
    fn numbers<DB: DrawingBackend>(&self, chart: &mut Chart<'_, DB>, area: &Area<DB>, rows: u32, racks: u32) -> Result<(), Fault<DB>> {
        let plot = chart.plotting_area();
        let at = |x: f64, y: f64| plot.map_coordinate(&(x, y));
        let height = (at(0.0, 0.0).1 - at(0.0, 1.0).1).max(1) as u32;
        // Of many rows only some have room for their name.
        let (size, every) = ((height * 7 / 10).clamp(9, 14), 11u32.div_ceil(height));
        let style = |h, size| text(size).pos(Pos::new(h, VPos::Center));
        for row in (0..rows).step_by(every as usize) {
            let rack = row % racks;
            let name = if rows > racks { format!("p{} rack {rack}", row / racks) } else { format!("rack {rack}") };
            let (x, y) = at(0.0, f64::from(rows - row) - 0.5);
            area.draw(&Text::new(name, (x - 8, y), style(HPos::Right, size)))?;
        }
        for b in self.0.bars.iter().filter(|_| height >= 10) {
            let (from, to) = (b.up_from.0 as f64 / NANOS as f64, b.until.0 as f64 / NANOS as f64);
            let y = f64::from(rows - b.plane * racks - b.input) - 0.5;
            let (left, right) = (at(from, y), at(to, y));
            let name = b.output.to_string();
            if right.0 - left.0 > 4 + size as i32 * name.len() as i32 {
                area.draw(&Text::new(name, ((left.0 + right.0) / 2, left.1), style(HPos::Center, size)))?;
            }
        }
        Ok(())
    }
}

/// The chart of this file's drawing.
type Chart<'a, DB> = ChartContext<'a, DB, Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>>;
