//! How files of coflows and jobs are read: the options, and what becomes of them.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::synth::CoflowMix;
use crate::cli::caveats::say_taken;
use crate::cli::files::read_shipped;
use crate::cli::{CliError, limits, read_topology, read_workload};
use crate::config::shipped::Shelf;
use crate::config::{self, JobsReading, Select};
use crate::topology::Topology;
use crate::units::{Bytes, Span};
use crate::workload::coflow_benchmark::{LocalFlows, PortMapping, Sizes};
use crate::workload::htsim::CoflowGrouping;
use crate::workload::job_model::{JobModel, Preset};
use crate::workload::jobs::JobList;
use crate::workload::{Adjust, Workload, decima, spread};

/// How a workload file is read, and what is done to it
#[derive(clap::Args, Clone, Debug, Default)]
pub struct ReadingArgs {
    /// Keeps only the first N coflows
    #[arg(help_heading = "Workload", long, value_name = "N")]
    pub coflows: Option<usize>,
    /// Divides the bytes of every flow; times stay [default: the policy's scale, or 1]
    #[arg(help_heading = "Workload", long, value_name = "K", value_parser = crate::cli::numbers::positive)]
    pub scale: Option<u64>,
    /// Divides every arrival, and the times of jobs' tasks, so that a long trace fits a short run
    #[arg(help_heading = "Workload", long, value_name = "K", default_value_t = 1, value_parser = crate::cli::numbers::positive)]
    pub time_scale: u64,
    /// How the flows of a trace get their sizes
    #[arg(help_heading = "Workload", long, value_enum, default_value_t)]
    pub sizes: Sizes,
    /// What happens to flows of a trace that stay in one host
    #[arg(help_heading = "Workload", long, value_enum, default_value_t)]
    pub local: LocalFlows,
    /// Lets ports or nodes of a trace that the network has no host for fall on hosts that it has.
    /// Port p on host (p / R) mod H of rack p mod R, node n on host n mod H. Results say so; else
    /// it is an error
    #[arg(help_heading = "Workload", long)]
    pub fold: bool,
    /// Which flows of an htsim file, or of a CSV file without a column coflow, make a coflow
    #[arg(help_heading = "Workload", long, value_enum, default_value_t)]
    pub group: CoflowGrouping,
}

impl ReadingArgs {
    /// What is done to the workload once it is read.
    pub fn adjust(&self) -> Adjust {
        Adjust {
            first: self.coflows,
            scale: self.scale.unwrap_or(1),
            time_scale: self.time_scale.max(1),
        }
    }

    /// Reads a file of any format over `topology`; nothing is scaled yet.
    ///
    /// # Errors
    /// A file that cannot be read or makes no sense.
    pub fn read(&self, file: &Path, topology: &Topology) -> Result<Workload, CliError> {
        self.parse(&read_workload(file)?, file, topology)
    }

    /// What is sent with one seed: a file of coflows over `topology`, a file of jobs spread over
    /// it, or a mix drawn over it, with `coflows` coflows or jobs (50 by default). Nothing is
    /// scaled yet.
    ///
    /// # Errors
    /// A file that cannot be read or makes no sense.
    pub fn draw(&self, what: &Path, topology: &Topology, seed: u64) -> Result<Workload, CliError> {
        if let Some(mix) = CoflowMix::named(what) {
            return mix.draw(topology, self.coflows.unwrap_or(50), seed);
        }
        let text = read_shipped(Shelf::Workloads, what, &CoflowMix::names())?;
        if !config::format_of(&text).is_jobs() {
            return self.parse(&text, what, topology);
        }
        let how = JobsReading {
            seed,
            queries: decima::QueryOptions { seed, ..Default::default() },
            ..Default::default()
        };
        let list = config::read_any_jobs(&text, &what.display().to_string(), &how)?;
        spread::spread(&list, topology.hosts.len(), seed).map_err(CliError::Invalid)
    }

    /// Whether another seed gives [`Self::draw`] something else.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn depends_on_seed(&self, what: &Path) -> Result<bool, CliError> {
        Ok(CoflowMix::named(what).is_some()
            || config::format_of(&read_shipped(Shelf::Workloads, what, &CoflowMix::names())?)
                .is_jobs())
    }

    /// [`Self::read`] of a text that is there already.
    ///
    /// # Errors
    /// A text that makes no sense.
    pub fn parse(
        &self,
        text: &str,
        file: &Path,
        topology: &Topology,
    ) -> Result<Workload, CliError> {
        let (first, most) = (self.coflows, limits::most_flows()?);
        let mapping = PortMapping {
            sizes: self.sizes,
            local: self.local,
            first,
            group: self.group,
            fold: self.fold,
            most,
        };
        Ok(config::read_workload(text, &file.display().to_string(), topology, &mapping)?)
    }
}

/// The model of tasks: how bytes become jobs
#[derive(clap::Args, Clone, Debug, Default)]
pub struct ModelArgs {
    /// default, jobpacker, co-scheduler, corral, puma, pushbox, or a YAML file with any of the keys
    /// block, map_rate, reduce_rate, setup, reduce_bytes, reduce_share, port_block, max_tasks,
    /// noise, recurring, queues
    #[arg(help_heading = "Model of tasks", long, value_name = "NAME|FILE")]
    pub model: Option<String>,
    /// Bytes that a map task reads
    #[arg(help_heading = "Model of tasks", long)]
    pub block: Option<Bytes>,
    /// Bytes a second that a map task processes
    #[arg(help_heading = "Model of tasks", long)]
    pub map_rate: Option<Bytes>,
    /// Bytes a second that a reduce task processes
    #[arg(help_heading = "Model of tasks", long)]
    pub reduce_rate: Option<Bytes>,
    /// Time that every task takes besides
    #[arg(help_heading = "Model of tasks", long)]
    pub setup: Option<Span>,
    /// Bytes of shuffle for every reduce task
    #[arg(help_heading = "Model of tasks", long, conflicts_with = "reduce_share")]
    pub reduce_bytes: Option<Bytes>,
    /// Reduce tasks in per cent of the blocks of the input or the shuffle, whichever has more
    #[arg(help_heading = "Model of tasks", long, value_name = "PERCENT")]
    pub reduce_share: Option<u32>,
    /// The most bytes of a task of a trace of coflows, whose ports are cut into tasks; 0B: a port
    /// is a task
    #[arg(help_heading = "Model of tasks", long, value_name = "SIZE")]
    pub port_block: Option<Bytes>,
    /// The most tasks of a stage
    #[arg(help_heading = "Model of tasks", long, value_name = "N")]
    pub max_tasks: Option<u32>,
    /// How far the time of a task may be off
    #[arg(help_heading = "Model of tasks", long, value_name = "PERCENT")]
    pub noise: Option<u32>,
    /// Share of recurring jobs
    #[arg(help_heading = "Model of tasks", long, value_name = "PERCENT")]
    pub recurring: Option<u32>,
    /// Number of queues among which the jobs are spread
    #[arg(help_heading = "Model of tasks", long, value_name = "N")]
    pub queues: Option<u32>,
}

impl ModelArgs {
    /// Which options were given.
    pub fn given(&self) -> [(&'static str, bool); 12] {
        [
            ("--model", self.model.is_some()),
            ("--block", self.block.is_some()),
            ("--map-rate", self.map_rate.is_some()),
            ("--reduce-rate", self.reduce_rate.is_some()),
            ("--setup", self.setup.is_some()),
            ("--reduce-bytes", self.reduce_bytes.is_some()),
            ("--reduce-share", self.reduce_share.is_some()),
            ("--port-block", self.port_block.is_some()),
            ("--max-tasks", self.max_tasks.is_some()),
            ("--noise", self.noise.is_some()),
            ("--recurring", self.recurring.is_some()),
            ("--queues", self.queues.is_some()),
        ]
    }

    /// The model: the one that is named (else `fallback`), with what is said beside it.
    ///
    /// # Errors
    /// An unknown name, a file that makes no sense, or a parameter out of range.
    pub fn model(&self, fallback: Preset) -> Result<JobModel, CliError> {
        let mut m = match &self.model {
            None => fallback.model(),
            Some(name) => match Preset::from_str(name, false) {
                Ok(preset) => preset.model(),
                Err(_) if Path::new(name).is_file() => {
                    config::read_job_model(&read_workload(Path::new(name))?, name)?
                }
                Err(_) => {
                    let names: Vec<_> = Preset::value_variants()
                        .iter()
                        .filter_map(|p| Some(p.to_possible_value()?.get_name().to_owned()))
                        .collect();
                    return Err(CliError::Usage(format!(
                        "--model {name}: no such model or file; models: {}",
                        names.join(", ")
                    )));
                }
            },
        };
        let set = |to: &mut u32, value: Option<u32>| *to = value.unwrap_or(*to);
        let set_bytes = |to: &mut Bytes, value: Option<Bytes>| *to = value.unwrap_or(*to);
        set_bytes(&mut m.block, self.block);
        set_bytes(&mut m.map_rate, self.map_rate);
        set_bytes(&mut m.reduce_rate, self.reduce_rate);
        if let Some(bytes) = self.reduce_bytes {
            (m.reduce_bytes, m.reduce_share) = (bytes, 0);
        }
        set(&mut m.reduce_share, self.reduce_share);
        set_bytes(&mut m.port_block, self.port_block);
        set(&mut m.max_tasks, self.max_tasks);
        set(&mut m.noise, self.noise);
        set(&mut m.recurring, self.recurring);
        set(&mut m.queues, self.queues);
        m.setup = self.setup.unwrap_or(m.setup);
        m.check().map_err(|(_, why)| CliError::Usage(why))?;
        Ok(m)
    }
}

/// Mean time between two arrivals of TPC-H queries.
pub const MEAN_GAP: Span = Span::secs(25);
/// Executors with which the times of TPC-H queries were measured.
pub const EXECUTORS: u32 = 50;
/// What a stage of a TPC-H query passes on, in per cent.
pub const SELECTIVITY: u32 = 50;

/// Which jobs of a file are kept
#[derive(clap::Args, Clone, Debug, Default)]
pub struct JobsArgs {
    /// How bytes become tasks.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Decides whatever is drawn: the same seed gives the same jobs
    #[arg(help_heading = "Jobs", long, default_value_t = 1, value_parser = crate::cli::numbers::whole)]
    pub seed: u64,
    /// Keeps only jobs that shuffle at least this
    #[arg(help_heading = "Jobs", long, value_name = "BYTES")]
    pub min_shuffle: Option<Bytes>,
    /// Then keeps N of them, drawn evenly
    #[arg(help_heading = "Jobs", long, value_name = "N")]
    pub sample: Option<usize>,
    /// Then keeps the first N; of TPC-H queries, draws N
    #[arg(help_heading = "Jobs", long, value_name = "N")]
    pub jobs: Option<usize>,
    /// All jobs arrive at once
    #[arg(help_heading = "Jobs", long)]
    pub batch: bool,
    /// TPC-H queries: mean time between two arrivals
    #[arg(help_heading = "Jobs", long, default_value_t = MEAN_GAP)]
    pub mean_gap: Span,
    /// TPC-H queries: times are those of the greatest measured number of executors up to N, or else
    /// of the smallest
    #[arg(help_heading = "Jobs", long, value_name = "N", default_value_t = EXECUTORS)]
    pub executors: u32,
    /// TPC-H queries: what a stage passes on of what it received
    #[arg(help_heading = "Jobs", long, value_name = "PERCENT", default_value_t = SELECTIVITY, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub selectivity: u32,
}

impl JobsArgs {
    /// What the options say, with the scales of `reading`.
    ///
    /// # Errors
    /// A model that makes no sense.
    pub fn how(&self, reading: &ReadingArgs) -> Result<JobsReading, CliError> {
        let model = self.model.model(Preset::Default)?;
        let queries = decima::QueryOptions {
            jobs: self.jobs,
            mean_gap: self.mean_gap,
            executors: self.executors,
            selectivity: self.selectivity,
            recurring: model.recurring,
            queues: model.queues,
            seed: self.seed,
        };
        let select = Select {
            min_shuffle: self.min_shuffle.unwrap_or_default(),
            sample: self.sample,
            first: self.jobs,
            batch: self.batch,
            scale: reading.scale.unwrap_or(1),
            time_scale: reading.time_scale.max(1),
        };
        Ok(JobsReading { model, queries, select, seed: self.seed })
    }
}

/// A file in any format.
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum Source {
    /// Coflows, and the network over which they were read.
    Coflows(Workload, Topology),
    /// Jobs, which know no network.
    Jobs(JobList),
}

/// Reads and shrinks a file of any format. Coflows of a trace need no topology: each of its ports
/// then is a rack of one host.
///
/// # Errors
/// Files that cannot be read or make no sense, and our own coflows without a topology.
pub fn source(
    file: &Path,
    topology: Option<&PathBuf>,
    reading: &ReadingArgs,
    jobs: &JobsArgs,
) -> Result<Source, CliError> {
    let text = read_workload(file)?;
    let format = config::format_of(&text);
    if format.is_jobs() {
        let list = config::read_any_jobs(&text, &file.display().to_string(), &jobs.how(reading)?)?;
        return Ok(Source::Jobs(list));
    }
    let topology = match topology {
        Some(t) => read_topology(t)?,
        None => by_ports(&text, file, format)?.ok_or_else(|| {
            CliError::Usage(format!(
                "{} names racks and hosts; say of which network: --topology FILE",
                file.display()
            ))
        })?,
    };
    let workload = reading.parse(&text, file, &topology)?.adjusted(&reading.adjust());
    say_taken(file, &workload.taken);
    Ok(Source::Coflows(workload, topology))
}

/// A network for a trace, which must have no fault; none for our own coflows.
fn by_ports(text: &str, file: &Path, format: config::Format) -> Result<Option<Topology>, CliError> {
    config::check_workload_form(text, &file.display().to_string())?;
    Ok(super::by_ports(text, format))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;

    #[test]
    fn mixes_are_drawn_and_files_of_coflows_are_not() {
        let t = Topology::uniform("t", 4, 2, BitRate::mbit(1000), BitRate::mbit(100), vec![]);
        let reading = ReadingArgs { coflows: Some(6), ..ReadingArgs::default() };
        for mix in [
            "facebook",
            "coflowsim",
            "web-search",
            "data-mining",
            "jobpacker",
            "co-scheduler",
            "corral-w1",
            "corral-w2",
            "corral-w3",
            "pushbox-w2",
            "facebook-jobs",
        ] {
            let draw = |seed| reading.draw(Path::new(mix), &t, seed).unwrap();
            assert!(
                !draw(1).coflows.is_empty() && draw(1).name == format!("{mix}-seed-1"),
                "{mix}"
            );
            assert_ne!(draw(1).coflows, draw(2).coflows, "{mix}");
            assert_eq!(reading.depends_on_seed(Path::new(mix)), Ok(true));
        }
        let shipped = |file: &str| crate::testing::repository("workloads").join(file);
        assert_eq!(reading.depends_on_seed(&shipped("shuffle-4.yaml")), Ok(false));
        assert_eq!(reading.depends_on_seed(&shipped("dag-8.yaml")), Ok(true));
        // The graphs of dag-8 have 12 shuffles between stages, and one MapReduce.
        assert_eq!(reading.draw(&shipped("dag-8.yaml"), &t, 1).unwrap().coflows.len(), 13);
        assert!(reading.draw(Path::new("no-such-file"), &t, 1).is_err());
    }

    #[test]
    fn a_model_is_named_and_then_changed() {
        let args = ModelArgs {
            model: Some("co-scheduler".into()),
            reduce_bytes: Some(Bytes(5)),
            noise: Some(7),
            ..ModelArgs::default()
        };
        let m = args.model(Preset::Default).unwrap();
        assert_eq!(
            (m.block, m.queues, m.reduce_share, m.reduce_bytes, m.noise),
            (Bytes(256_000_000), 20, 0, Bytes(5), 7)
        );
        assert_eq!(ModelArgs::default().model(Preset::Corral), Ok(Preset::Corral.model()));
        let wrong = |args: ModelArgs| args.model(Preset::Default).unwrap_err().to_string();
        assert!(
            wrong(ModelArgs { model: Some("hadoop".into()), ..ModelArgs::default() })
                .contains("models: default, jobpacker")
        );
        assert!(
            wrong(ModelArgs { recurring: Some(101), ..ModelArgs::default() }).contains("0 to 100")
        );
        let file = config::read_job_model("block: 64MB\nnoise: 10\n", "m").unwrap();
        assert_eq!(
            (file.block, file.noise, file.map_rate),
            (Bytes(64_000_000), 10, JobModel::default().map_rate)
        );
        let e = config::read_job_model("block: 64MB\nnoise: 101\n", "m").unwrap_err().to_string();
        assert!(e.starts_with("m:2:8: noise: "), "{e}");
    }
}
