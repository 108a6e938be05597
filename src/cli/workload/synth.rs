//! `heliostat workload synth`: coflows or jobs from a seed.

use std::path::Path;
use std::sync::LazyLock;

use clap::ValueEnum;
use clap::builder::PossibleValue;

use super::convert;
use super::reading::ModelArgs;
use super::{To, WrittenFormat, plain_network};
use crate::cli::{CliError, limits};
use crate::topology::Topology;
use crate::units::{BitRate, Span};
use crate::workload::coflow_benchmark::{PortMapping, Trace, TraceCoflow};
use crate::workload::coflowsim::{self, Custom};
use crate::workload::flow_sizes::{FlowSizes, RandomFlows, flows};
use crate::workload::jobs::JobList;
use crate::workload::spread::spread;
use crate::workload::synth::{Synth, synth};
use crate::workload::synth_jobs::{Mix as Jobs, SynthJobs, synth_jobs};
use crate::workload::{Adjust, Workload};

#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Mix of sizes
    #[arg(long, value_enum, default_value_t)]
    mix: CoflowMix,
    /// Number of racks: coflows, and jobs that are written as coflows
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    racks: Option<u32>,
    /// Hosts a rack
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    hosts: u32,
    /// Number of coflows
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    coflows: Option<u32>,
    /// Number of jobs
    #[arg(long, conflicts_with = "coflows", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    jobs: Option<u32>,
    /// The same seed gives the same workload
    #[arg(long, default_value_t = 1, value_parser = crate::cli::numbers::whole)]
    seed: u64,
    /// Mean time between two arrivals; 0s: all at once (CoflowSim's always are)
    #[arg(long, default_value = "1s")]
    mean_gap: Span,
    /// Divides all bytes
    #[arg(long, default_value_t = 1, value_parser = crate::cli::numbers::positive)]
    scale: u64,
    #[command(flatten)]
    to: To,
    #[command(flatten)]
    model: ModelArgs,
}

/// Published mixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CoflowMix {
    /// The four classes of Facebook's cluster as Varys counts them.
    #[default]
    Facebook,
    /// CoflowSim's own four classes, drawn as CoflowSim draws them.
    Coflowsim,
    /// Flows one by one.
    Flows(FlowSizes),
    /// Jobs.
    Jobs(Jobs),
}

impl ValueEnum for CoflowMix {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<CoflowMix>> = LazyLock::new(|| {
            let jobs = Jobs::value_variants().iter().copied().map(CoflowMix::Jobs);
            let flows = [FlowSizes::WebSearch, FlowSizes::DataMining].map(CoflowMix::Flows);
            [CoflowMix::Facebook, CoflowMix::Coflowsim]
                .into_iter()
                .chain(flows)
                .chain(jobs)
                .collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::Facebook => PossibleValue::new("facebook").help(
                "Coflows: the four classes of Facebook's cluster as Varys counts them (52% short and narrow, 16% long, 15% wide, 17% both)",
            ),
            Self::Coflowsim => PossibleValue::new("coflowsim")
                .help("Coflows: CoflowSim's own four classes (41%, 29%, 9%, 21%), drawn as CoflowSim draws them"),
            Self::Flows(FlowSizes::WebSearch) => PossibleValue::new("web-search")
                .help("Flows one by one between any two hosts, in the sizes of DCTCP's web search (mean 1.7 MB)"),
            Self::Flows(FlowSizes::DataMining) => PossibleValue::new("data-mining")
                .help("Flows one by one between any two hosts, in the sizes of VL2's data mining (mean 12.7 MB, half below 1.1 kB)"),
            Self::Jobs(jobs) => {
                let value = jobs.to_possible_value()?;
                let about = value.get_help().map(|h| format!("Jobs: {h}")).unwrap_or_default();
                value.help(about)
            }
        })
    }
}

/// Single flows of a named mix together send at this share, in per cent, of what all hosts can, or
/// all racks if that is less.
const LOAD: u64 = 30;

/// That rate: of the hosts' interfaces together, or of the racks' uplinks and circuits.
fn load(topology: &Topology) -> BitRate {
    let hosts: u64 = topology.hosts.iter().map(|h| h.nic.0).sum();
    let circuits: u64 = topology.planes.iter().map(|p| p.rate.0).sum();
    let racks: u64 = topology
        .racks
        .iter()
        .map(|r| r.uplink.0.saturating_add(circuits))
        .fold(0, u64::saturating_add);
    BitRate((u128::from(hosts.min(racks)) * u128::from(LOAD) / 100).max(1) as u64)
}

impl CoflowMix {
    /// The mix of that name, unless there is a file of that name.
    pub fn named(name: &Path) -> Option<Self> {
        let mix = Self::from_str(name.to_str()?, false).ok()?;
        (!name.exists()).then_some(mix)
    }

    /// Its coflows over a network: `n` of them, or those of `n` jobs; arrivals a second apart in
    /// the mean, of single flows so that they load the network by 30 %.
    ///
    /// # Errors
    /// A network without hosts, or more than fits into memory.
    pub fn draw(self, topology: &Topology, n: usize, seed: u64) -> Result<Workload, CliError> {
        let name = format!("{}-seed-{seed}", self.name());
        let mean_gap = Span::secs(1);
        if let Some(mix) = self.jobs() {
            let list = synth_jobs(&SynthJobs {
                mix,
                model: mix.preset().model(),
                jobs: n,
                seed,
                mean_gap,
            });
            return spread(&JobList { name, ..list }, topology.hosts.len(), seed)
                .map_err(CliError::Invalid);
        }
        if let Self::Flows(sizes) = self {
            let ask = RandomFlows {
                sizes,
                hosts: topology.hosts.len(),
                flows: n,
                seed,
                mean_gap: sizes.gap(load(topology)),
            };
            return Ok(flows(&name, &ask));
        }
        let (racks, hosts) =
            (topology.rack_count(), topology.hosts.len().div_ceil(topology.rack_count().max(1)));
        let trace = match self {
            Self::Facebook => synth(&Synth { racks, hosts, coflows: n, seed, mean_gap }),
            _ => coflowsim_trace((racks * hosts) as u64, n as u64, seed)?,
        };
        to_workload(&trace, &name, topology)
    }

    /// Its `n` jobs as jobs, with the mix's own model of tasks as far as `model` does not say
    /// otherwise; arrivals a second apart in the mean.
    ///
    /// # Errors
    /// A mix of coflows, or a model that makes no sense.
    pub fn draw_jobs(self, model: &ModelArgs, n: usize, seed: u64) -> Result<JobList, CliError> {
        let name = self.name();
        let coflows = || {
            CliError::Usage(format!(
                "{name} is a mix of coflows, for --workload; of jobs there are {}",
                Self::of_jobs().join(", ")
            ))
        };
        let mix = self.jobs().ok_or_else(coflows)?;
        let list = synth_jobs(&SynthJobs {
            mix,
            model: model.model(mix.preset())?,
            jobs: n,
            seed,
            mean_gap: Span::secs(1),
        });
        Ok(JobList { name: format!("{name}-seed-{seed}"), ..list })
    }

    /// The names of all mixes.
    pub fn names() -> Vec<String> {
        Self::value_variants().iter().map(|m| m.name()).collect()
    }

    /// The names of all mixes, and what each is.
    pub fn described() -> Vec<(String, String)> {
        let about = |m: &Self| {
            m.to_possible_value()
                .and_then(|v| v.get_help().map(ToString::to_string))
                .unwrap_or_default()
        };
        Self::value_variants().iter().map(|m| (m.name(), about(m))).collect()
    }

    /// The names of the mixes of jobs.
    pub fn of_jobs() -> Vec<String> {
        Self::value_variants().iter().filter(|m| m.jobs().is_some()).map(|m| m.name()).collect()
    }

    fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |v| v.get_name().to_owned())
    }

    fn jobs(self) -> Option<Jobs> {
        if let Self::Jobs(jobs) = self { Some(jobs) } else { None }
    }
}

pub fn run(a: &Args) -> Result<(), CliError> {
    let need = |what: &str| CliError::Usage(format!("this mix needs {what}"));
    let (racks, hosts) = (a.racks.map(|r| r as usize), a.hosts as usize);
    if let Some(mix) = a.mix.jobs() {
        let model = a.model.model(mix.preset())?;
        let jobs = a.jobs.ok_or_else(|| need("--jobs N"))? as usize;
        let mut list =
            synth_jobs(&SynthJobs { mix, model, jobs, seed: a.seed, mean_gap: a.mean_gap });
        crate::config::Select { scale: a.scale, ..Default::default() }.shrink(&mut list.jobs);
        let network = racks.map(|r| plain_network(r, hosts));
        return convert::jobs(&list, network.as_ref(), a.seed, &a.to);
    }
    let racks = racks.ok_or_else(|| need("--racks R"))?;
    let coflows = a.coflows.ok_or_else(|| need("--coflows N"))?;
    if let CoflowMix::Flows(sizes) = a.mix {
        let (topology, n) = (plain_network(racks, hosts), coflows as usize);
        let ask = RandomFlows {
            sizes,
            hosts: topology.hosts.len(),
            flows: n,
            seed: a.seed,
            mean_gap: a.mean_gap,
        };
        a.to.refuse_flows(n as u64)?;
        let workload = flows(&format!("synth-{racks}x{hosts}-seed-{}", a.seed), &ask);
        return convert::coflows(
            &workload.adjusted(&Adjust { scale: a.scale, ..Adjust::default() }),
            &topology,
            &a.to,
        );
    }
    let trace = trace(a, racks, hosts, coflows)?;
    if a.to.format == WrittenFormat::Trace && a.scale == 1 {
        return a.to.put(&trace.write());
    }
    a.to.refuse_flows(trace.coflows.iter().map(TraceCoflow::most_flows).sum())?;
    let topology = plain_network(racks, hosts);
    let name = format!("synth-{racks}x{hosts}-seed-{}", a.seed);
    let workload = to_workload(&trace, &name, &topology)?;
    convert::coflows(
        &workload.adjusted(&Adjust { scale: a.scale, ..Adjust::default() }),
        &topology,
        &a.to,
    )
}

/// The coflows of a trace, if there is memory for their flows. It was drawn over as many ports as
/// the racks have hosts; where some racks have fewer, ports share hosts, and results say so.
fn to_workload(trace: &Trace, name: &str, topology: &Topology) -> Result<Workload, CliError> {
    let mapping = PortMapping { most: limits::most_flows()?, fold: true, ..PortMapping::default() };
    trace.to_workload(name, topology, &mapping).map_err(|e| CliError::Invalid(e.why))
}

fn trace(a: &Args, racks: usize, hosts: usize, coflows: u32) -> Result<Trace, CliError> {
    if a.mix == CoflowMix::Facebook {
        return Ok(synth(&Synth {
            racks,
            hosts,
            coflows: coflows as usize,
            seed: a.seed,
            mean_gap: a.mean_gap,
        }));
    }
    coflowsim_trace((racks * hosts) as u64, coflows.into(), a.seed)
}

fn coflowsim_trace(ports: u64, coflows: u64, seed: u64) -> Result<Trace, CliError> {
    let seed = i64::try_from(seed).ok().filter(|s| *s <= i64::from(i32::MAX));
    let seed =
        seed.ok_or_else(|| CliError::Usage(format!("CoflowSim takes seeds of 0 to {}", i32::MAX)))?;
    if coflows.saturating_mul(ports * ports) > 500_000_000 {
        return Err(CliError::Usage("that number of coflows over that number of hosts does not fit into memory; ask for fewer".into()));
    }
    Ok(coflowsim::draw(&Custom::facebook(ports, coflows, seed)))
}
