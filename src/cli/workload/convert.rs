//! `heliostat workload convert`: a workload in another format, or smaller.

use std::path::PathBuf;

use super::reading::{JobsArgs, ReadingArgs, Source, source};
use super::{To, WrittenFormat};
use crate::cli::{CliError, read_topology};
use crate::config;
use crate::topology::Topology;
use crate::units::Bytes;
use crate::workload::coflow_benchmark::{PortMapping, Trace, TraceCoflow};
use crate::workload::jobs::{JobList, JobSpec};
use crate::workload::swim::SwimJob;
use crate::workload::{Workload, htsim, spread, swim};

#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// A workload in any format: our own coflows or jobs, a coflow-benchmark trace, CoflowSim
    /// classes, CSV or htsim flows, SWIM rows, TPC-H queries, an event log of Spark
    file: PathBuf,
    /// The network over which coflows are read and written; a trace can do without
    #[arg(long)]
    topology: Option<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
    #[command(flatten)]
    to: To,
    #[command(flatten)]
    jobs: JobsArgs,
}

pub fn run(a: &Args) -> Result<(), CliError> {
    match source(&a.file, a.topology.as_ref(), &a.reading, &a.jobs)? {
        Source::Coflows(workload, topology) => coflows(&workload, &topology, &a.to),
        Source::Jobs(list) => {
            let topology = a.topology.as_ref().map(|t| read_topology(t)).transpose()?;
            jobs(&list, topology.as_ref(), a.jobs.seed, &a.to)
        }
    }
}

/// Writes coflows.
pub fn coflows(workload: &Workload, topology: &Topology, to: &To) -> Result<(), CliError> {
    let text = match to.format {
        WrittenFormat::Yaml | WrittenFormat::Coflows => config::workload::write(workload, topology),
        WrittenFormat::Trace => as_trace(workload, topology)?.write(),
        WrittenFormat::Htsim => htsim::write(workload),
        WrittenFormat::Swim => {
            return Err(CliError::Usage("coflows have no tasks; SWIM's rows are for jobs".into()));
        }
    };
    to.put(&text)
}

/// Writes jobs; as coflows they need a network.
pub fn jobs(
    list: &JobList,
    topology: Option<&Topology>,
    seed: u64,
    to: &To,
) -> Result<(), CliError> {
    match to.format {
        WrittenFormat::Yaml => to.put(&config::jobs::write(list)),
        WrittenFormat::Swim => {
            let rows = list.jobs.iter().map(row).collect::<Result<Vec<_>, _>>();
            to.put(&swim::write(&rows.map_err(CliError::Invalid)?))
        }
        WrittenFormat::Coflows | WrittenFormat::Trace | WrittenFormat::Htsim => {
            let need =
                || CliError::Usage("jobs become coflows only on a network: --topology FILE".into());
            let topology = topology.ok_or_else(need)?;
            let workload =
                spread::spread(list, topology.hosts.len(), seed).map_err(CliError::Invalid)?;
            coflows(&workload, topology, to)
        }
    }
}

/// A MapReduce as a row of SWIM, which knows no tasks.
fn row(j: &JobSpec) -> Result<SwimJob, String> {
    if j.stages.len() > 2 || j.edges.len() + 1 != j.stages.len() {
        return Err(format!(
            "job `{}` is no MapReduce, and a SWIM row can say nothing else; use --format yaml",
            j.name
        ));
    }
    let output = j.stages.last().map_or(Bytes::ZERO, |s| s.output);
    Ok(SwimJob {
        name: j.name.clone(),
        arrival: j.arrival,
        input: j.input_bytes(),
        shuffle: j.shuffle_bytes(),
        output,
    })
}

/// A workload as a trace. The format knows only equal parts of a reducer's bytes, so every sender
/// of a receiver must send the same, but for the rounding that reading takes back.
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
    let back = trace
        .to_workload("", topology, &PortMapping::default())
        .map_err(|e| CliError::Invalid(e.why))?;
    let kept = workload.coflows.iter().filter(|c| !c.flows.is_empty());
    for (a, b) in kept.zip(&back.coflows) {
        let slack = a.flows.len() as u64;
        let same = a.flows.len() == b.flows.len()
            && a.flows.iter().zip(&b.flows).all(|(x, y)| {
                (x.from, x.to) == (y.from, y.to) && x.bytes.0.abs_diff(y.bytes.0) <= slack
            });
        if !same {
            let why = "its receivers do not get equal parts from all its senders, and a trace can say nothing else; use --format yaml";
            return Err(CliError::Invalid(format!("coflow `{}` cannot be written: {why}", a.name)));
        }
    }
    Ok(trace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{BitRate, Span};
    use crate::workload::synth::{Synth, synth};

    #[test]
    fn a_workload_becomes_a_trace_and_comes_back() {
        let t = Topology::uniform("t", 4, 2, BitRate::mbit(1000), BitRate::mbit(100), vec![]);
        let trace =
            synth(&Synth { racks: 4, hosts: 2, coflows: 30, seed: 3, mean_gap: Span::millis(50) });
        let w = trace.to_workload("w", &t, &PortMapping::default()).unwrap();
        let back = as_trace(&w, &t).unwrap().to_workload("w", &t, &PortMapping::default()).unwrap();
        assert_eq!(back, w);
        let skewed = config::read_workload(
            "name: x\ncoflows: [{flows: [{from: h0-0, to: h1-0, bytes: 5MB}, {from: h2-0, to: h1-0, bytes: 1MB}]}]",
            "f",
            &t,
            &PortMapping::default(),
        );
        assert!(as_trace(&skewed.unwrap(), &t).unwrap_err().to_string().contains("equal parts"));
    }
}
