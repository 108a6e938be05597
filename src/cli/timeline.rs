//! Tasks on their slots over time: a row a slot, coloured by job, pale while a task waits for its
//! input.

use std::collections::BTreeMap;
use std::path::Path;

use super::{CliError, tables, write_sheet};
use crate::draw::chart::{LegendKey, LegendSample};
use crate::draw::gantt::{self, GanttBar, GanttChart};
use crate::draw::paper::PaperSize;
use crate::draw::{Fill, Ink, many};
use crate::runtime::jobs::report::JobsResult;
use crate::scheduler::record::TaskRun;
use crate::topology::Topology;
use crate::units::Time;

/// The colour of work that was given up.
const LOST: Ink = Ink::new(40, 40, 40);
/// How much of a job's colour is left while a task waits.
const PALE: f32 = 0.3;

/// The tasks of a run of jobs.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// The jobs' names, by number.
    pub jobs: Vec<String>,
    /// Every attempt of a task.
    pub tasks: Vec<TaskRun<String>>,
}

impl From<&JobsResult> for Timeline {
    fn from(r: &JobsResult) -> Self {
        Self { jobs: r.jobs.iter().map(|j| j.name.clone()).collect(), tasks: r.timeline.clone() }
    }
}

/// Draws the tasks of a run on all slots of its network.
///
/// # Errors
/// As [`write_sheet`].
pub fn write(r: &JobsResult, topology: &Topology, file: &Path) -> Result<(), CliError> {
    let paper = PaperSize::default();
    let chart = Timeline::from(r).chart(Some(topology));
    write_sheet(
        &chart.titled(format!("Tasks: {}, {}", r.workload, r.placement), &paper),
        file,
        paper.dpi(),
    )
}

impl Timeline {
    /// The chart: of all slots of a topology, or of those that tasks held.
    pub fn chart(&self, topology: Option<&Topology>) -> GanttChart {
        let slots = topology.map_or_else(|| self.held(), all);
        let rows: BTreeMap<(&str, u32), usize> = slots
            .iter()
            .enumerate()
            .map(|(row, (host, slot))| ((host.as_str(), *slot), row))
            .collect();
        let name = |k: usize| {
            if k > 0 && slots[k - 1].0 == slots[k].0 { String::new() } else { slots[k].0.clone() }
        };
        let bars = self
            .tasks
            .iter()
            .filter_map(|t| Some((t, *rows.get(&(t.host.as_str(), t.slot))?)))
            .flat_map(|(t, row)| self.bars(t, row));
        let mut keys = gantt::legend(&self.jobs);
        keys.push(LegendKey {
            label: "pale: waiting for input".into(),
            sample: LegendSample::Filled(Ink::new(110, 110, 110).tint(PALE).into()),
        });
        if self.tasks.iter().any(|t| !t.finished) {
            keys.push(LegendKey {
                label: "given up".into(),
                sample: LegendSample::Filled(LOST.into()),
            });
        }
        let end = self.tasks.iter().map(|t| t.ended.0).max().unwrap_or(0);
        GanttChart { names: (0..slots.len()).map(name).collect(), bars: bars.collect(), end, keys }
    }

    /// The slots that tasks held, hosts in the order of the numbers in their names.
    fn held(&self) -> Vec<(String, u32)> {
        let numbers = |name: &str| -> Vec<u64> {
            name.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect()
        };
        let mut all: Vec<_> =
            self.tasks.iter().map(|t| (numbers(&t.host), t.host.clone(), t.slot)).collect();
        all.sort();
        all.dedup();
        all.into_iter().map(|(_, host, slot)| (host, slot)).collect()
    }

    /// The time for which an attempt waited for its input, and that for which it computed.
    fn bars(&self, t: &TaskRun<String>, row: usize) -> impl Iterator<Item = GanttBar> {
        let job = t.task.job.index();
        let name = self.jobs.get(job).map_or("?", String::as_str);
        let colour = many(job);
        let bar = |from: Time, until: Time, fill: Fill, label: &str, what: &str| {
            let title = format!(
                "{name} stage {} task {}: {what} {}",
                t.task.stage,
                t.task.task,
                tables::span(until.since(from))
            );
            let (row, label) = (row as f64, label.to_owned());
            (until > from).then_some(GanttBar {
                row,
                height: 1.0,
                from: from.0,
                until: until.0,
                fill,
                label,
                title,
            })
        };
        let computes = t.computes.unwrap_or(t.ended);
        let waited = bar(t.started, computes, colour.tint(PALE), "", "waited");
        let (fill, what) =
            if t.finished { (colour, "computed") } else { (LOST.into(), "was given up after") };
        waited.into_iter().chain(bar(computes, t.ended, fill, name, what))
    }
}

/// All slots of a topology.
fn all(t: &Topology) -> Vec<(String, u32)> {
    t.hosts.iter().flat_map(|h| (0..h.slots).map(|slot| (t.host_name(h.id), slot))).collect()
}
