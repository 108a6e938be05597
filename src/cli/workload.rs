//! `heliostat workload`: make, measure and convert workloads.

use std::path::{Path, PathBuf};

use super::tables::{self, Rows};
use super::{CliError, Output, read_text, write_text};
use crate::config;
use crate::topology::Topology;
use crate::units::{BitRate, Bytes, Span};
use crate::workload::coflow_benchmark::{Local, Mapping, Sizes, Trace, TraceCoflow};
use crate::workload::stats::{Percentiles, stats};
use crate::workload::synth::{Synth, synth};
use crate::workload::{Adjust, Workload};

/// How a workload file is read, and what is done to it
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Reading {
    /// Keeps only the first N coflows
    #[arg(long, value_name = "N")]
    pub coflows: Option<usize>,
    /// Divides the bytes of every flow; times stay [default: the policy's scale, or 1]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    pub scale: Option<u64>,
    /// Divides every arrival, so that a long trace fits a short run
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub time_scale: u64,
    /// How the flows of a trace get their sizes
    #[arg(long, value_enum, default_value_t)]
    pub sizes: Sizes,
    /// What happens to flows of a trace that stay in one host
    #[arg(long, value_enum, default_value_t)]
    pub local: Local,
}

impl Reading {
    /// What is done to the workload once it is read.
    pub fn adjust(&self) -> Adjust {
        Adjust { first: self.coflows, scale: self.scale.unwrap_or(1), time_scale: self.time_scale.max(1) }
    }

    /// Reads a file of either format over `topology`; nothing is scaled yet.
    ///
    /// # Errors
    /// A file that cannot be read or makes no sense.
    pub fn read(&self, file: &Path, topology: &Topology) -> Result<Workload, CliError> {
        let mapping = Mapping { sizes: self.sizes, local: self.local, first: self.coflows };
        Ok(config::read_workload(&read_text(file)?, &file.display().to_string(), topology, &mapping)?)
    }
}

/// Makes, measures and converts workloads
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Clone, Debug)]
enum Command {
    /// Makes a workload from a seed, with the mix of coflows that Facebook's cluster had
    Synth(SynthArgs),
    /// Prints what a workload looks like
    Stats(StatsArgs),
    /// Writes a workload in the other format, or smaller
    Convert(ConvertArgs),
}

/// The two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
enum Format {
    /// Our own
    #[default]
    Yaml,
    /// That of the coflow-benchmark, at the grain of hosts
    Trace,
}

#[derive(clap::Args, Clone, Debug)]
struct SynthArgs {
    /// Number of racks
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    racks: u32,
    /// Hosts a rack
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    hosts: u32,
    /// Number of coflows
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    coflows: u32,
    /// The same seed gives the same workload
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Mean time between two arrivals
    #[arg(long, default_value = "1s")]
    mean_gap: Span,
    /// Divides all bytes
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    scale: u64,
    #[command(flatten)]
    to: To,
}

#[derive(clap::Args, Clone, Debug)]
struct To {
    /// Format of what is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Where to [default: standard output]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

#[derive(clap::Args, Clone, Debug)]
struct StatsArgs {
    /// A workload of either format
    file: PathBuf,
    /// The network over which it is read
    #[arg(long)]
    topology: PathBuf,
    #[command(flatten)]
    reading: Reading,
    /// What is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

#[derive(clap::Args, Clone, Debug)]
struct ConvertArgs {
    /// A workload of either format
    file: PathBuf,
    /// The network over which it is read
    #[arg(long)]
    topology: PathBuf,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    to: To,
}

/// Runs the subcommand.
///
/// # Errors
/// Files that cannot be read, written or understood.
pub fn run(args: &Args) -> Result<(), CliError> {
    match &args.command {
        Command::Synth(a) => make(a),
        Command::Stats(a) => show(a),
        Command::Convert(a) => {
            let topology = topology(&a.topology)?;
            let workload = a.reading.read(&a.file, &topology)?.adjusted(&a.reading.adjust());
            write(&workload, &topology, &a.to)
        }
    }
}

fn topology(file: &Path) -> Result<Topology, CliError> {
    Ok(config::read_topology(&read_text(file)?, &file.display().to_string())?)
}

fn make(a: &SynthArgs) -> Result<(), CliError> {
    let (racks, hosts) = (a.racks as usize, a.hosts as usize);
    let trace = synth(&Synth { racks, hosts, coflows: a.coflows as usize, seed: a.seed, mean_gap: a.mean_gap });
    if a.to.format == Format::Trace && a.scale == 1 {
        return put(&trace.write(), &a.to);
    }
    let topology = Topology::uniform("synth", racks, hosts, BitRate::mbit(1000), BitRate::mbit(1000), vec![]);
    let name = format!("synth-{racks}x{hosts}-seed-{}", a.seed);
    let workload = trace.to_workload(&name, &topology, &Mapping::default()).map_err(|e| CliError::Invalid(e.why))?;
    write(&workload.adjusted(&Adjust { scale: a.scale, ..Adjust::default() }), &topology, &a.to)
}

fn write(workload: &Workload, topology: &Topology, to: &To) -> Result<(), CliError> {
    match to.format {
        Format::Yaml => put(&config::workload::write(workload, topology), to),
        Format::Trace => put(&as_trace(workload, topology)?.write(), to),
    }
}

fn put(text: &str, to: &To) -> Result<(), CliError> {
    match &to.to {
        Some(file) => write_text(file, text),
        None => {
            print!("{text}");
            Ok(())
        }
    }
}

/// A workload as a trace. The format knows only equal parts of a reducer's bytes, so every sender of a receiver must send the
/// same, but for the rounding that reading takes back.
fn as_trace(workload: &Workload, topology: &Topology) -> Result<Trace, CliError> {
    let hosts = topology.racks.iter().map(|r| r.hosts).max().unwrap_or(1);
    if topology.racks.iter().any(|r| r.hosts != hosts) {
        return Err(CliError::Invalid("a trace needs racks with equal numbers of hosts".into()));
    }
    let racks = topology.rack_count() as u64;
    let port = |h: crate::ids::HostId| {
        let host = &topology.hosts[h.index()];
        u64::from(host.index) * racks + u64::from(host.rack.0)
    };
    let mut coflows = Vec::new();
    for c in workload.coflows.iter().filter(|c| !c.flows.is_empty()) {
        let mut mappers: Vec<u64> = c.flows.iter().map(|f| port(f.from)).collect();
        mappers.sort_unstable();
        mappers.dedup();
        let mut reducers: std::collections::BTreeMap<u64, Bytes> = Default::default();
        for f in &c.flows {
            let sum = reducers.entry(port(f.to)).or_default();
            *sum = sum.saturating_add(f.bytes);
        }
        let line = TraceCoflow {
            id: u64::from(c.id.0) + 1,
            arrival_ms: c.arrival.0 / 1_000_000,
            mappers,
            reducers: reducers.into_iter().collect(),
        };
        coflows.push(line);
    }
    let trace = Trace { ports: racks * u64::from(hosts), coflows };
    let back = trace.to_workload("", topology, &Mapping::default()).map_err(|e| CliError::Invalid(e.why))?;
    let kept = workload.coflows.iter().filter(|c| !c.flows.is_empty());
    for (a, b) in kept.zip(&back.coflows) {
        let slack = a.flows.len() as u64;
        let same = a.flows.len() == b.flows.len()
            && a.flows.iter().zip(&b.flows).all(|(x, y)| (x.from, x.to) == (y.from, y.to) && x.bytes.0.abs_diff(y.bytes.0) <= slack);
        if !same {
            let why = "its receivers do not get equal parts from all its senders, and a trace can say nothing else; use --format yaml";
            return Err(CliError::Invalid(format!("coflow `{}` cannot be written: {why}", a.name)));
        }
    }
    Ok(trace)
}

fn show(a: &StatsArgs) -> Result<(), CliError> {
    let topology = topology(&a.topology)?;
    let workload = a.reading.read(&a.file, &topology)?.adjusted(&a.reading.adjust());
    let s = stats(&workload, &topology);
    let mut rows = Rows::new(&["", "min", "p50", "p90", "p99", "max"]);
    let exact = a.output == Output::Csv;
    let mut row = |name: &str, p: Percentiles, unit: bool| {
        let cell = |v: u64| if unit && !exact { tables::bytes(Bytes(v)) } else { v.to_string() };
        rows.rows.push([name.to_string()].into_iter().chain([p.min, p.p50, p.p90, p.p99, p.max].map(cell)).collect());
    };
    row("bytes a coflow", s.coflow_bytes, true);
    row("flows a coflow", s.coflow_width, false);
    row("bytes a flow", s.flow_bytes, true);
    row("bytes a coflow and rack pair", s.pair_bytes, true);
    match a.output {
        Output::Table => {
            let mut sums = Rows::new(&["workload", ""]);
            let mut sum = |name: &str, value: String| sums.rows.push(vec![name.into(), value]);
            sum("name", workload.name.clone());
            sum("coflows", s.coflows.to_string());
            sum("flows", s.flows.to_string());
            sum("bytes", tables::bytes(s.bytes));
            sum("bytes between racks", tables::bytes(s.bytes_between_racks));
            sum("first to last arrival", tables::span(s.arrivals));
            println!("{}\n\n{}", sums.table(), rows.table());
        }
        Output::Json => println!("{}", serde_json::to_string_pretty(&s).expect("figures are plain data")),
        Output::Csv => print!("{}", rows.csv()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_becomes_a_trace_and_comes_back() {
        let t = Topology::uniform("t", 4, 2, BitRate::mbit(1000), BitRate::mbit(100), vec![]);
        let trace = synth(&Synth { racks: 4, hosts: 2, coflows: 30, seed: 3, mean_gap: Span::millis(50) });
        let w = trace.to_workload("w", &t, &Mapping::default()).unwrap();
        let back = as_trace(&w, &t).unwrap().to_workload("w", &t, &Mapping::default()).unwrap();
        assert_eq!(back, w);
        let skewed = config::read_workload(
            "name: x\ncoflows: [{flows: [{from: h0-0, to: h1-0, bytes: 5MB}, {from: h2-0, to: h1-0, bytes: 1MB}]}]",
            "f",
            &t,
            &Mapping::default(),
        );
        assert!(as_trace(&skewed.unwrap(), &t).unwrap_err().to_string().contains("equal parts"));
    }
}
