//! `heliostat workload stats`: counts and percentiles.

use std::path::PathBuf;

use super::reading::{JobsArgs, ReadingArgs, Source, source};
use crate::cli::tables::{self, TextTable};
use crate::cli::{CliError, OutputFormat, print};
use crate::units::{Bytes, Span};
use crate::workload::job_stats::job_stats;
use crate::workload::stats::{Percentiles, stats};

#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// A workload in any format: our own coflows or jobs, a coflow-benchmark trace, CoflowSim
    /// classes, CSV or htsim flows, SWIM rows, TPC-H queries
    file: PathBuf,
    /// The network over which coflows are read; a trace can do without
    #[arg(long)]
    topology: Option<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
    /// What is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    jobs: JobsArgs,
}

/// What a number counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StatsUnit {
    Count,
    Bytes,
    Time,
}

pub fn run(a: &Args) -> Result<(), CliError> {
    let mut sums = TextTable::new(&["workload", ""]);
    let mut sum = |name: &str, value: String| sums.rows.push(vec![name.into(), value]);
    let (percentiles, json) = match source(&a.file, a.topology.as_ref(), &a.reading, &a.jobs)? {
        Source::Coflows(workload, topology) => {
            let s = stats(&workload, &topology);
            sum("name", workload.name.clone());
            sum("coflows", s.coflows.to_string());
            sum("flows", s.flows.to_string());
            sum("bytes", tables::bytes(s.bytes));
            sum("bytes between racks", tables::bytes(s.bytes_between_racks));
            sum("first to last arrival", tables::span(s.arrivals));
            for class in s.classes {
                let of = |part: f64, whole: f64| tables::percent(part / whole.max(1.0));
                let (n, bytes) = (
                    of(class.coflows as f64, s.coflows as f64),
                    of(class.bytes.0 as f64, s.bytes.0 as f64),
                );
                sum(&format!("{}: coflows, bytes", class.name), format!("{n}, {bytes}"));
            }
            let rows = vec![
                ("bytes a coflow", s.coflow_bytes, StatsUnit::Bytes),
                ("flows a coflow", s.coflow_width, StatsUnit::Count),
                ("bytes a flow", s.flow_bytes, StatsUnit::Bytes),
                ("bytes a coflow and rack pair", s.pair_bytes, StatsUnit::Bytes),
            ];
            (rows, tables::json(&s))
        }
        Source::Jobs(list) => {
            let s = job_stats(&list);
            sum("name", list.name.clone());
            sum("jobs (recurring)", format!("{} ({})", s.jobs, s.recurring));
            sum("queues", s.queues.to_string());
            sum("tasks", s.tasks.to_string());
            sum(
                "input / shuffle / output",
                [s.input, s.shuffle, s.output].map(tables::bytes).join(" / "),
            );
            sum("slot time", tables::span(s.work));
            sum("first to last arrival", tables::span(s.arrivals));
            let rows = vec![
                ("stages a job", s.stages, StatsUnit::Count),
                ("tasks a job", s.job_tasks, StatsUnit::Count),
                ("input a job", s.job_input, StatsUnit::Bytes),
                ("shuffle a job", s.job_shuffle, StatsUnit::Bytes),
                ("output a job", s.job_output, StatsUnit::Bytes),
                ("longest task of a stage", s.task_time, StatsUnit::Time),
                ("shortest run of a job", s.shortest, StatsUnit::Time),
            ];
            (rows, tables::json(&s))
        }
    };
    let rows = table(&percentiles, a.output == OutputFormat::Csv);
    match a.output {
        OutputFormat::Table => print(&format!("{}\n\n{}\n", sums.table(), rows.table())),
        OutputFormat::Json => print(&json),
        OutputFormat::Csv => print(&rows.csv()),
    }
}

fn table(percentiles: &[(&str, Percentiles, StatsUnit)], exact: bool) -> TextTable {
    let mut rows = TextTable::new(&["", "min", "p5", "p50", "p90", "p95", "p99", "max"]);
    for (name, p, unit) in percentiles {
        let cell = |v: u64| match unit {
            StatsUnit::Bytes if !exact => tables::bytes(Bytes(v)),
            StatsUnit::Time if !exact => tables::span(Span(v)),
            _ => v.to_string(),
        };
        let cells = [p.min, p.p5, p.p50, p.p90, p.p95, p.p99, p.max].map(cell);
        rows.rows.push([(*name).to_string()].into_iter().chain(cells).collect());
    }
    rows
}
