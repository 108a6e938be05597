//! `heliostat plan latency`: the latency matrix of a job.

use std::fmt::Write as _;

use serde::Serialize;

use super::inputs::{self, PlanInputs};
use crate::cli::numbers::several;
use crate::cli::tables::{self, TextTable, span};
use crate::cli::{CliError, OutputFormat, print};
use crate::placement::cluster::Cluster;
use crate::placement::latency::corral;
use crate::placement::latency::hybrid::ShuffleModel;
use crate::placement::latency::matrix::Matrix;
use crate::units::Span;
use crate::workload::jobs::{JobList, JobSpec};

/// Prints how long a job would take, by its number of map racks (rows) and reduce racks (columns)
///
/// A * marks the feasible zone: by circuits, no parallelism given up. The last column is Corral's
/// latency for one set of racks.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    #[command(flatten)]
    inputs: PlanInputs,
    /// Which job of the file, by its name [default: the first]
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// How the time of a shuffle is estimated: figure (as the papers' matrices), printed (as their
    /// equations), bottleneck (ours)
    #[arg(long, default_value = "figure", value_parser = inputs::shuffle_model)]
    shuffle_model: ShuffleModel,
}

#[derive(Clone, Debug, Serialize)]
struct LatencyReport<'a> {
    job: &'a str,
    cluster: Cluster,
    shuffle_model: ShuffleModel,
    best: Option<(usize, usize)>,
    matrix: &'a Matrix,
    corral_ns: Vec<Span>,
}

/// Runs the subcommand.
///
/// # Errors
/// Files that cannot be read or make no sense, or a name that no job has.
pub fn run(args: &Args) -> Result<(), CliError> {
    let (jobs, cluster) = args.inputs.read()?;
    let job = choose(&jobs, args.job.as_deref())?;
    let matrix = Matrix::of(job, &cluster, args.shuffle_model);
    let corral_ns = corral::curve(job, &cluster, 0);
    let best = matrix.best().map(|c| (c.maps, c.reduces));
    print(&match args.inputs.output {
        OutputFormat::Table => table(job, &matrix, &corral_ns),
        OutputFormat::Csv => rows(&matrix).csv(),
        OutputFormat::Json => {
            let report = LatencyReport {
                job: &job.name,
                cluster,
                shuffle_model: args.shuffle_model,
                best,
                matrix: &matrix,
                corral_ns,
            };
            tables::json(&report)
        }
    })
}

fn choose<'a>(jobs: &'a JobList, name: Option<&str>) -> Result<&'a JobSpec, CliError> {
    let found = match name {
        Some(name) => jobs.jobs.iter().find(|j| j.name == name),
        None => jobs.jobs.first(),
    };
    let names: Vec<&str> = jobs.jobs.iter().take(20).map(|j| j.name.as_str()).collect();
    found.ok_or_else(|| {
        CliError::Invalid(format!(
            "no job `{}` in `{}`; its jobs begin: {}",
            name.unwrap_or(""),
            jobs.name,
            names.join(", ")
        ))
    })
}

fn rows(matrix: &Matrix) -> TextTable {
    let mut rows =
        TextTable::new(&["map_racks", "reduce_racks", "latency_ns", "circuits", "feasible"]);
    for c in &matrix.cells {
        let cells = [
            c.maps.to_string(),
            c.reduces.to_string(),
            c.latency.0.to_string(),
            c.circuits.to_string(),
            c.feasible.to_string(),
        ];
        rows.rows.push(cells.into());
    }
    rows
}

fn table(job: &JobSpec, matrix: &Matrix, corral: &[Span]) -> String {
    let cell = |m: usize, r: usize| {
        let c = matrix.at(m, r);
        format!("{}{}", span(c.latency), if c.feasible { "*" } else { " " })
    };
    let width = matrix
        .cells
        .iter()
        .map(|c| span(c.latency).len())
        .chain(corral.iter().map(|s| span(*s).len()))
        .max()
        .unwrap_or(0)
        + 3;
    let mut out = format!(
        "{}: latency by the number of racks with its maps (rows) and with its reduces (columns)\n",
        job.name
    );
    out += "*: in the feasible zone; corral: its own estimate with all tasks on that number of racks\n\n  maps";
    (1..=matrix.racks).for_each(|r| {
        let _ = write!(out, "{r:>w$} ", w = width - 1);
    });
    let _ = writeln!(out, "{:>width$}", "corral");
    for m in 1..=matrix.racks {
        let _ = write!(out, "{m:>6}");
        (1..=matrix.racks).for_each(|r| {
            let _ = write!(out, "{:>width$}", cell(m, r));
        });
        let _ = writeln!(out, "{:>width$}", span(corral[m - 1]));
    }
    if let Some(best) = matrix.best() {
        let _ = writeln!(
            out,
            "\nbest: maps on {}, reduces on {}: {}",
            several(best.maps, "rack"),
            several(best.reduces, "rack"),
            span(best.latency)
        );
    }
    out
}
