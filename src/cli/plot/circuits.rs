//! Circuits over time: a row for every sending port, a bar for every circuit, coloured by its
//! receiving rack.

use super::input::{CircuitBar, CircuitBars};
use crate::cli::tables;
use crate::draw::chart::{LegendKey, LegendSample};
use crate::draw::gantt::{self, GanttChart};
use crate::draw::{Fill, Ink, many};
use crate::units::{Bytes, Time};

/// The colour of dark time.
const DARK: Ink = Ink::new(120, 120, 120);

/// The chart of the circuits of a file.
pub fn chart(c: &CircuitBars) -> GanttChart {
    let most = |f: fn(&CircuitBar) -> u32| c.bars.iter().map(f).max().map_or(1, |m| m + 1);
    let (planes, racks) = (most(|b| b.plane), most(|b| b.input.max(b.output)));
    let name = |row: u32| {
        if planes > 1 { format!("p{} r{}", row / racks, row % racks) } else { format!("r{row}") }
    };
    let mut keys = gantt::legend(&(0..racks).map(|r| format!("to r{r}")).collect::<Vec<_>>());
    if c.bars.iter().any(|b| b.up_from > b.setup_at) {
        keys.push(LegendKey { label: "dark".into(), sample: LegendSample::Filled(DARK.into()) });
    }
    let bars = c.bars.iter().flat_map(|b| bars(b, racks)).collect();
    GanttChart { names: (0..planes * racks).map(name).collect(), bars, end: c.end.0, keys }
}

/// The dark time and the light of a circuit.
fn bars(b: &CircuitBar, racks: u32) -> impl Iterator<Item = gantt::GanttBar> {
    let time = |t: Time| tables::span(t.since(Time::ZERO));
    let (row, pair) =
        (f64::from(b.plane * racks + b.input), format!("r{} -> r{}", b.input, b.output));
    let bar = |from: Time, until: Time, fill: Fill, label: String, title: String| {
        (until > from).then_some(gantt::GanttBar {
            row,
            height: 1.0,
            from: from.0,
            until: until.0,
            fill,
            label,
            title,
        })
    };
    let dark = format!("{pair}: dark from {} to {}", time(b.setup_at), time(b.up_from));
    let carries =
        b.bytes.map_or(String::new(), |bytes| format!(", {}", tables::bytes(Bytes(bytes))));
    let demand = b.demand.map_or(String::new(), |bytes| {
        format!(", decided for a demand of {}", tables::bytes(Bytes(bytes)))
    });
    let light = format!("{pair}: {} to {}{carries}{demand}", time(b.up_from), time(b.until));
    let fill = many(b.output as usize);
    let dark = bar(b.setup_at, b.up_from, DARK.into(), String::new(), dark);
    dark.into_iter().chain(bar(b.up_from, b.until, fill, format!("r{}", b.output), light))
}
