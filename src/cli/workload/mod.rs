//! `heliostat workload`: make, measure and convert workloads of coflows and of jobs.

use std::path::PathBuf;

use super::{CliError, print, write_text};
use crate::config::{self, Format as Source};
use crate::topology::Topology;
use crate::units::BitRate;
use crate::workload::{coflow_benchmark, coflowsim, csv, htsim, sincronia, sunflow_trace};

mod convert;
pub mod reading;
mod stats;
mod synth;

pub use reading::{JobsArgs, ModelArgs, ReadingArgs};
pub use synth::CoflowMix;

/// Makes, measures and converts workloads
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: WorkloadCommand,
}

#[derive(clap::Subcommand, Clone, Debug)]
enum WorkloadCommand {
    /// Makes coflows or jobs from a seed, with a published mix of sizes
    Synth(Box<synth::Args>),
    /// Prints what a workload or a list of jobs looks like
    Stats(Box<stats::Args>),
    /// Writes a workload or a list of jobs in another format, or smaller
    Convert(Box<convert::Args>),
}

/// The formats that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
enum WrittenFormat {
    /// Our own: coflows as coflows, jobs as jobs
    #[default]
    Yaml,
    /// Our own coflows; of jobs, every shuffle with tasks spread evenly over the hosts
    Coflows,
    /// Coflows as a trace of the coflow-benchmark, at the grain of hosts
    Trace,
    /// Coflows as htsim's flows
    Htsim,
    /// MapReduce jobs as SWIM's rows
    Swim,
}

#[derive(clap::Args, Clone, Debug)]
struct To {
    /// Format of what is written
    #[arg(long, value_enum, default_value_t)]
    format: WrittenFormat,
    /// Where to [default: standard output]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

impl To {
    /// Writes the text. Our own YAML is refused where it would be longer than what is read again.
    fn put(&self, text: &str) -> Result<(), CliError> {
        self.refuse_long(text.len() as u64, "")?;
        self.to.as_ref().map_or_else(|| print(text), |file| write_text(file, text))
    }

    /// Refuses coflows of `flows` flows in all, before they are made, if their YAML would have more
    /// bytes than Heliostat reads.
    ///
    /// # Errors
    /// How long they would be at least, and what to do.
    fn refuse_flows(&self, flows: u64) -> Result<(), CliError> {
        self.refuse_long(
            flows.saturating_mul(config::workload::SHORTEST_FLOW.len() as u64),
            " at least",
        )
    }

    fn refuse_long(&self, bytes: u64, least: &str) -> Result<(), CliError> {
        let (yaml, most) = (
            matches!(self.format, WrittenFormat::Yaml | WrittenFormat::Coflows),
            config::MAX_BYTES,
        );
        if !yaml || bytes <= most as u64 {
            return Ok(());
        }
        let why = format!(
            "this would be {bytes} bytes of YAML{least}, of which at most {most} are read again"
        );
        Err(CliError::Usage(format!(
            "{why}; write --format trace or htsim (jobs: swim), or fewer coflows or jobs"
        )))
    }
}

/// Runs the subcommand.
///
/// # Errors
/// Files that cannot be read, written or understood.
pub fn run(args: &Args) -> Result<(), CliError> {
    match &args.command {
        WorkloadCommand::Synth(a) => synth::run(a),
        WorkloadCommand::Stats(a) => stats::run(a),
        WorkloadCommand::Convert(a) => convert::run(a),
    }
}

/// A network of `racks` racks of `hosts` hosts each, for formats whose places are numbers; its
/// rates are never used.
fn plain_network(racks: usize, hosts: usize) -> Topology {
    Topology::uniform("plain", racks, hosts, BitRate::mbit(1000), BitRate::mbit(1000), vec![])
}

/// A network with a rack of one host for every port of a trace; none for other formats and for
/// texts that are no trace.
fn by_ports(text: &str, format: Source) -> Option<Topology> {
    let ports = match format {
        Source::CoflowBenchmark => coflow_benchmark::parse(text).ok()?.ports,
        Source::CoflowSim => coflowsim::parse(text).ok()?.racks,
        Source::Sunflow => sunflow_trace::parse(text).ok()?.ports,
        Source::Sincronia => sincronia::parse(text).ok()?.ports,
        // Names say nothing of how many hosts a rack has.
        Source::Csv => csv::parse(text).ok()?.hosts(),
        Source::Htsim => {
            htsim::parse(text).ok()?.iter().map(|f| f.from.max(f.to) + 1).max().unwrap_or(1)
        }
        _ => return None,
    };
    Some(plain_network(ports.min(100_000) as usize, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_that_is_not_read_again_is_refused_before_its_flows_are_made() {
        let to = |format| To { format, to: None };
        let least = config::workload::SHORTEST_FLOW.len() as u64;
        let most = config::MAX_BYTES as u64 / least;
        assert!(
            to(WrittenFormat::Yaml).refuse_flows(most).is_ok()
                && to(WrittenFormat::Htsim).refuse_flows(u64::MAX).is_ok()
        );
        let told = to(WrittenFormat::Coflows).refuse_flows(most + 1).unwrap_err().to_string();
        assert!(
            told.contains(&format!("{} bytes of YAML at least", (most + 1) * least))
                && told.contains("--format trace"),
            "{told}"
        );
        let t = plain_network(1, 2);
        let workload = "name: w\ncoflows: [{flows: [{from: h0-0, to: h0-1, bytes: 1B}]}]";
        let w = config::read_workload(workload, "f", &t, &Default::default()).unwrap();
        let line = config::workload::write(&w, &t).lines().last().map(str::len);
        assert_eq!(line.map(|n| n as u64 + 1), Some(least));
    }
}
