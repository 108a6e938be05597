//! `heliostat plan corral`: which racks each job gets, and when.

use std::path::PathBuf;

use super::inputs::{self, PlanInputs, PlanReport, draw, rack_list};
use super::racks::SlotsBar;
use crate::cli::CliError;
use crate::cli::tables::{TextTable, length, percent, span};
use crate::draw::paper::PaperSize;
use crate::placement::corral::{
    CorralPlan, CorralPlanOptions, Provisioning, Scenario, WideningRule, plan,
};
use crate::units::Span;
use crate::workload::jobs::JobList;

/// Plans jobs on whole racks as Corral does, and says how far the plan is from a lower bound
///
/// All jobs of the file are planned, recurring or not.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    #[command(flatten)]
    inputs: PlanInputs,
    /// All jobs at once and the makespan counts (batch), or at their arrivals and the mean
    /// completion time counts (online)
    #[arg(long, default_value = "batch", value_parser = inputs::scenario)]
    scenario: Scenario,
    /// Price of uneven input data, in hundredths of the paper's choice; 0 for none
    #[arg(long, default_value_t = 100, value_name = "PERCENT")]
    imbalance: u64,
    /// Which allocations of racks are laid out
    #[arg(long, value_enum, default_value_t)]
    provisioning: Provisioning,
    /// Draws the racks over time into this file (.svg, .png or .pdf)
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
    let options = CorralPlanOptions {
        scenario: args.scenario,
        imbalance_percent: args.imbalance,
        provisioning: args.provisioning,
    };
    let plan = plan(&jobs.jobs, &cluster, options);
    draw((args.svg.as_ref(), &args.paper), &jobs, bars(&jobs, &plan), (cluster.racks, 1))?;
    args.inputs.show(
        &PlanReport::new(&jobs, cluster, &plan),
        |exact| rows(&jobs, &plan, exact),
        &sums(&plan),
    )
}

fn bars(jobs: &JobList, plan: &CorralPlan) -> Vec<SlotsBar> {
    let of = |p: &crate::placement::corral::CorralJob, rack: usize| SlotsBar {
        rack,
        slots: 1,
        from: p.start.0,
        until: p.finish.0,
        job: p.job.0,
        title: format!("{}, {} to {}", jobs.jobs[p.job.index()].name, p.start, p.finish),
    };
    plan.jobs.iter().flat_map(|p| p.racks.iter().map(move |r| of(p, r.index()))).collect()
}

fn rows(jobs: &JobList, plan: &CorralPlan, exact: bool) -> TextTable {
    let (people, programs) = (
        ["job", "priority", "width", "racks", "start", "finish"],
        ["job", "priority", "width", "racks", "start_ns", "finish_ns"],
    );
    let mut rows = TextTable::new(if exact { &programs } else { &people });
    for p in &plan.jobs {
        let time = |t: u64| length(exact, t);
        let name = jobs.jobs[p.job.index()].name.clone();
        let (width, racks) = (p.racks.len().to_string(), rack_list(&p.racks));
        rows.rows.push(vec![
            name,
            p.priority.to_string(),
            width,
            racks,
            time(p.start.0),
            time(p.finish.0),
        ]);
    }
    rows
}

fn sums(plan: &CorralPlan) -> TextTable {
    let mut rows = TextTable::new(&["summary", ""]);
    let mut row = |name: &str, value: String| rows.rows.push(vec![name.into(), value]);
    row("jobs", plan.jobs.len().to_string());
    row("makespan", span(plan.makespan));
    row("mean completion", span(Span(plan.mean_completion_ns as u64)));
    let of = if plan.scenario == Scenario::Batch { "makespan" } else { "mean completion" };
    row(&format!("lower bound ({of})"), span(Span(plan.bound_ns as u64)));
    row("gap to the bound", percent(plan.gap));
    row("allocations laid out", plan.laid_out.to_string());
    let rule = match plan.rule {
        WideningRule::Longest => "the longest job gets the next rack",
        WideningRule::Gain => "who gains most gets the next racks",
    };
    row("found by", rule.into());
    rows
}
