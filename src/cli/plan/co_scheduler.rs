//! `heliostat plan co-scheduler`: Co-scheduler's guidelines and best schedules for a list of jobs.

use std::path::PathBuf;

use super::inputs::{PlanInputs, PlanReport, draw, rack_list};
use super::jobpacker::{bars, start};
use crate::cli::CliError;
use crate::cli::tables::{TextTable, length, span};
use crate::draw::paper::PaperSize;
use crate::placement::coscheduler::schedule::{JobForecast, schedule};
use crate::units::Span;
use crate::workload::jobs::JobList;

/// Plans jobs as Co-scheduler does: racks of the data, the maps and the reduces, on a network
/// without other traffic
///
/// Jobs are taken by arrival, on the slots that those before them leave. `-o json` has every
/// schedule that was considered.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    #[command(flatten)]
    inputs: PlanInputs,
    /// Draws the racks of the data
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
    let plan = schedule(&jobs.jobs, &cluster, args.seed);
    let crowded = plan.jobs.iter().filter(|p| p.heavy && !p.data.sets.disjoint).count();
    if crowded > 0 {
        tracing::warn!(
            "{crowded} jobs want more racks than three disjoint sets of replicas have; theirs overlap as little as they can"
        );
    }
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

fn rows(jobs: &JobList, plan: &JobForecast, exact: bool) -> TextTable {
    let people = [
        "job",
        "heavy",
        "data width",
        "maps on",
        "reduces on",
        "considered",
        "CCT",
        "start",
        "finish",
    ];
    let programs = [
        "job",
        "heavy",
        "data_width",
        "map_racks",
        "reduce_racks",
        "considered",
        "cct_ns",
        "start_ns",
        "finish_ns",
    ];
    let mut rows = TextTable::new(if exact { &programs } else { &people });
    for p in &plan.jobs {
        let time = |t: u64| length(exact, t);
        let job = &jobs.jobs[p.job.index()];
        let on = |blocks: bool| {
            let stages =
                p.stages.iter().filter(|s| (job.edges_into(s.stage).count() == 0) == blocks);
            let mut racks: Vec<_> = stages.flat_map(|s| s.racks()).collect();
            racks.sort_unstable();
            racks.dedup();
            rack_list(&racks)
        };
        rows.rows.push(vec![
            job.name.clone(),
            if p.heavy { "yes".into() } else { "no".into() },
            p.data.width.to_string(),
            on(true),
            on(false),
            p.decisions.iter().flatten().map(|d| d.candidates.len()).sum::<usize>().to_string(),
            time(p.stages.iter().map(|s| s.shuffle).fold(Span::ZERO, |a, b| a + b).0),
            time(start(&p.stages).0),
            time(p.finish.0),
        ]);
    }
    rows
}

fn sums(plan: &JobForecast) -> TextTable {
    let mut rows = TextTable::new(&["summary", ""]);
    let mut row = |name: &str, value: String| rows.rows.push(vec![name.into(), value]);
    row("jobs", plan.jobs.len().to_string());
    row("shuffle-heavy", plan.jobs.iter().filter(|p| p.heavy).count().to_string());
    row(
        "by a best schedule",
        plan.jobs.iter().filter(|p| p.decisions.iter().any(Option::is_some)).count().to_string(),
    );
    row("makespan", span(plan.makespan));
    row("mean completion", span(Span(plan.mean_completion_ns as u64)));
    rows
}
