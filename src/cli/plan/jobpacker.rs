//! `heliostat plan jobpacker`: JobPacker's offline schedule.

use std::path::PathBuf;

use super::inputs::{self, PlanInputs, PlanReport, draw, rack_list};
use super::racks::SlotsBar;
use crate::cli::CliError;
use crate::cli::tables::{TextTable, length, span};
use crate::draw::paper::PaperSize;
use crate::placement::corral::Scenario;
use crate::placement::jobpacker::{JobPackerPlan, JobPackerPlanOptions, StagePlan, plan};
use crate::placement::latency::hybrid::ShuffleModel;
use crate::units::{Span, Time};
use crate::workload::jobs::JobList;

/// Plans jobs as JobPacker's offline scheduler does: widths, racks, and each rack's sequence
///
/// All jobs of the file are planned, recurring or not. `-o json` has the sequence of every rack.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    #[command(flatten)]
    inputs: PlanInputs,
    /// All jobs at once (batch), or at their arrivals (online)
    #[arg(long, default_value = "batch", value_parser = inputs::scenario)]
    scenario: Scenario,
    /// How the time of a shuffle is estimated: figure (as the paper's matrix), printed (as its
    /// equation), bottleneck (ours)
    #[arg(long, default_value = "figure", value_parser = inputs::shuffle_model)]
    shuffle_model: ShuffleModel,
    /// Sub-batches of a batch, B
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    sub_batches: u32,
    /// Containers reserved beyond the estimate
    #[arg(long, default_value_t = 0, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=1000))]
    over_provisioning: u32,
    /// Leaves out pairs of widths that would cut elephants into mice, where there are others; the
    /// paper tries all feasible ones
    #[arg(long)]
    keep_elephants: bool,
    /// Draws the order of the sub-batches
    #[arg(long, default_value_t = 0, value_parser = crate::cli::numbers::whole)]
    seed: u64,
    /// Draws the slots over time into this file (.svg, .png or .pdf)
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    paper: PaperSize,
}

/// Runs the subcommand.
///
/// # Errors
/// Files that cannot be read, make no sense, or cannot be written.
pub fn run(args: &Args) -> Result<(), CliError> {
    let (jobs, cluster) = args.inputs.read()?;
    let options = JobPackerPlanOptions {
        scenario: args.scenario,
        shuffle_model: args.shuffle_model,
        sub_batches: args.sub_batches,
        over_provisioning_percent: args.over_provisioning,
        keep_elephants: args.keep_elephants,
        seed: args.seed,
    };
    let plan = plan(&jobs.jobs, &cluster, options);
    let stages = plan.jobs.iter().flat_map(|p| p.stages.iter().map(|s| (p.job.0, s)));
    draw(
        (args.svg.as_ref(), &args.paper),
        &jobs,
        bars(&jobs, stages),
        (cluster.racks, cluster.rack_slots()),
    )?;
    args.inputs.show(
        &PlanReport::new(&jobs, cluster, &plan),
        |exact| rows(&jobs, &plan, exact),
        &sums(&plan),
    )
}

/// The slots that stages hold.
pub fn bars<'a>(
    jobs: &JobList,
    stages: impl Iterator<Item = (u32, &'a StagePlan)>,
) -> Vec<SlotsBar> {
    let mut out = vec![];
    for (job, stage) in stages {
        let spec = &jobs.jobs[job as usize];
        for g in &stage.groups {
            let title = format!(
                "{} {}: {} tasks, {} to {}",
                spec.name, spec.stages[stage.stage].name, g.tasks, g.from, g.until
            );
            out.push(SlotsBar {
                rack: g.rack.index(),
                slots: g.containers,
                from: g.from.0,
                until: g.until.0,
                job,
                title,
            });
        }
    }
    out
}

/// When the first of some stages' groups begins.
pub fn start(stages: &[StagePlan]) -> Time {
    stages.iter().flat_map(|s| &s.groups).map(|g| g.from).min().unwrap_or(Time::ZERO)
}

fn rows(jobs: &JobList, plan: &JobPackerPlan, exact: bool) -> TextTable {
    let people =
        ["job", "map width", "reduce width", "data on racks", "shuffles", "start", "finish"];
    let programs =
        ["job", "map_width", "reduce_width", "data_racks", "shuffle_ns", "start_ns", "finish_ns"];
    let mut rows = TextTable::new(if exact { &programs } else { &people });
    for p in &plan.jobs {
        let time = |t: u64| length(exact, t);
        let none = || if exact { String::new() } else { "-".into() };
        let shuffles = p.stages.iter().map(|s| s.shuffle).fold(Span::ZERO, |a, b| a + b);
        rows.rows.push(vec![
            jobs.jobs[p.job.index()].name.clone(),
            p.pair.map_or_else(none, |w| w.0.to_string()),
            p.pair.map_or_else(none, |w| w.1.to_string()),
            rack_list(&p.data),
            time(shuffles.0),
            time(start(&p.stages).0),
            time(p.finish.0),
        ]);
    }
    rows
}

fn sums(plan: &JobPackerPlan) -> TextTable {
    let mut rows = TextTable::new(&["summary", ""]);
    let mut row = |name: &str, value: String| rows.rows.push(vec![name.into(), value]);
    row("jobs", plan.jobs.len().to_string());
    row("shuffle-heavy", plan.jobs.iter().filter(|p| p.pair.is_some()).count().to_string());
    row("makespan", span(plan.makespan));
    row("mean completion", span(Span(plan.mean_completion_ns as u64)));
    rows
}
