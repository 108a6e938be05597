//! What the planners of jobs read and print alike.

use std::path::PathBuf;

use serde::Serialize;

use super::circuits::named;
use super::racks::{self, SlotsBar};
use crate::cli::tables::{self, TextTable};
use crate::cli::{CliError, OutputFormat, print, read_topology, read_workload, write_sheet};
use crate::config;
use crate::draw::paper::PaperSize;
use crate::placement::cluster::Cluster;
use crate::placement::corral::Scenario;
use crate::placement::latency::hybrid::ShuffleModel;
use crate::units::Bytes;
use crate::workload::jobs::JobList;

/// Jobs and a cluster.
#[derive(clap::Args, Clone, Debug)]
pub struct PlanInputs {
    /// The jobs, such as workloads/jobs-8.yaml
    pub jobs: PathBuf,
    /// The network, such as topologies/hybrid-8x2.yaml: racks, hosts, slots and rates
    #[arg(long)]
    pub topology: PathBuf,
    /// Elephant threshold T_e: what two racks exchange below it does not go by a circuit
    #[arg(long, default_value = "1.125GB")]
    pub elephant: Bytes,
    /// What is printed
    #[arg(short, long, value_enum, default_value_t)]
    pub output: OutputFormat,
}

impl PlanInputs {
    /// Reads both files. Where racks are not alike, the weakest counts for all, and the log says
    /// so.
    ///
    /// # Errors
    /// Files that cannot be read or make no sense, and networks without a rack or host.
    pub fn read(&self) -> Result<(JobList, Cluster), CliError> {
        let file = self.topology.display().to_string();
        let topology = read_topology(&self.topology)?;
        let jobs =
            config::read_jobs(&read_workload(&self.jobs)?, &self.jobs.display().to_string())?;
        let cluster = Cluster::of(&topology, self.elephant);
        if cluster.racks == 0 || cluster.hosts == 0 || cluster.slots == 0 {
            return Err(CliError::Invalid(format!(
                "{file}: a planner needs racks, and a host with a slot in each"
            )));
        }
        if !Cluster::is_exact(&topology) {
            tracing::warn!(
                "{file}: racks, hosts or planes differ; planning as if all were like the weakest"
            );
        }
        Ok((jobs, cluster))
    }

    /// Prints a plan: as tables (jobs and sums), everything as JSON, or the jobs in base units as
    /// CSV.
    ///
    /// # Errors
    /// When stdout cannot be written.
    pub fn show(
        &self,
        report: &impl Serialize,
        rows: impl Fn(bool) -> TextTable,
        sums: &TextTable,
    ) -> Result<(), CliError> {
        print(&match self.output {
            OutputFormat::Table => format!("{}\n\n{}\n", rows(false).table(), sums.table()),
            OutputFormat::Json => tables::json(report),
            OutputFormat::Csv => rows(true).csv(),
        })
    }
}

/// Draws racks over time, if asked for.
///
/// # Errors
/// When the file cannot be written.
pub fn draw(
    (file, paper): (Option<&PathBuf>, &PaperSize),
    jobs: &JobList,
    bars: Vec<SlotsBar>,
    (racks, slots): (usize, u32),
) -> Result<(), CliError> {
    let names: Vec<String> = jobs.jobs.iter().map(|j| j.name.clone()).collect();
    file.map_or(Ok(()), |file| {
        write_sheet(
            &racks::chart(&names, bars, racks, slots).titled(format!("Plan: {}", jobs.name), paper),
            file,
            paper.dpi(),
        )
    })
}

/// A plan as `-o json` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct PlanReport<'a, P> {
    /// The jobs file's name.
    pub workload: &'a str,
    /// By job number.
    pub names: Vec<&'a str>,
    /// What was planned on.
    pub cluster: Cluster,
    /// The plan.
    pub plan: &'a P,
}

impl<'a, P> PlanReport<'a, P> {
    /// A report of a plan for jobs.
    pub fn new(jobs: &'a JobList, cluster: Cluster, plan: &'a P) -> Self {
        Self {
            workload: &jobs.name,
            names: jobs.jobs.iter().map(|j| j.name.as_str()).collect(),
            cluster,
            plan,
        }
    }
}

/// Reads the name of a scenario.
pub fn scenario(name: &str) -> Result<Scenario, String> {
    named(name)
}

/// Reads the name of a shuffle model.
pub fn shuffle_model(name: &str) -> Result<ShuffleModel, String> {
    named(name)
}

/// Racks as people read them: `r0-r3 r7`.
pub fn rack_list(racks: &[crate::ids::RackId]) -> String {
    let runs = racks.chunk_by(|a, b| a.0 + 1 == b.0);
    let text: Vec<String> = runs
        .map(|run| match run {
            [one] => one.to_string(),
            _ => format!("{}-{}", run[0], run[run.len() - 1]),
        })
        .collect();
    text.join(" ")
}
