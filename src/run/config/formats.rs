//! Workloads in any format: told apart by how they begin, read into the same types.

use super::{ConfigError, jobs, workload, yaml};
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};
use crate::workload::coflow_benchmark::{self, PortMapping, Trace};
use crate::workload::job_model::{JobModel, SwimJob};
use crate::workload::jobs::{JobList, JobSpec, TaskTimes};
use crate::workload::{
    TraceError, Workload, coflowsim, csv, decima, htsim, sincronia, spark_log, sunflow_trace, swim,
    trace_jobs,
};
use rand::SeedableRng;
use rand::seq::index;
use rand_chacha::ChaCha8Rng;

/// The formats in which workloads come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Our own coflows.
    Coflows,
    /// A trace of the coflow-benchmark.
    CoflowBenchmark,
    /// CoflowSim's classes and seed.
    CoflowSim,
    /// Flows as comma-separated values with named columns.
    Csv,
    /// htsim's flows.
    Htsim,
    /// Sunflow's form of the coflow-benchmark.
    Sunflow,
    /// The flows of Sincronia's generator.
    Sincronia,
    /// Our own jobs.
    Jobs,
    /// SWIM's rows.
    Swim,
    /// Decima's TPC-H queries.
    Decima,
    /// An event log of Spark.
    Spark,
}

impl Format {
    /// Whether it holds jobs, not coflows.
    pub fn is_jobs(self) -> bool {
        matches!(self, Self::Jobs | Self::Swim | Self::Decima | Self::Spark)
    }

    /// What people call it; `None` for our own.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Coflows | Self::Jobs => None,
            Self::CoflowBenchmark => Some("coflow-benchmark"),
            Self::CoflowSim => Some("CoflowSim"),
            Self::Csv => Some("CSV"),
            Self::Htsim => Some("htsim"),
            Self::Sunflow => Some("Sunflow"),
            Self::Sincronia => Some("Sincronia"),
            Self::Swim => Some("SWIM"),
            Self::Decima => Some("Decima"),
            Self::Spark => Some("Spark"),
        }
    }
}

/// Says what speaks against a format in a text.
type Fits = fn(&str) -> Result<(), String>;

/// The formats of others, and what speaks against each of them in a text: it is of the first
/// against which nothing does.
const FOREIGN: [(Format, Fits); 9] = [
    (Format::Swim, swim::fits),
    (Format::CoflowSim, coflowsim::fits),
    (Format::Csv, csv::fits),
    (Format::Htsim, htsim::fits),
    (Format::Sunflow, sunflow_trace::fits),
    (Format::Sincronia, sincronia::fits),
    (Format::CoflowBenchmark, coflow_benchmark::fits),
    (Format::Decima, decima::fits),
    (Format::Spark, spark_log::fits),
];

/// The format of a text, by its beginning; a text of no known form counts as our own coflows
/// ([`of_no_format`]).
pub fn format_of(text: &str) -> Format {
    if let Some(f) = FOREIGN.iter().find(|f| f.1(text).is_ok()) {
        return f.0;
    }
    let is_jobs = yaml::keys(text, "")
        .is_ok_and(|keys| keys.iter().any(|k| k == "jobs") && !keys.iter().any(|k| k == "coflows"));
    if is_jobs { Format::Jobs } else { Format::Coflows }
}

/// Of a text of no format: what speaks against each. `None` for a mapping of keys to values, whose
/// error is about its keys.
pub fn of_no_format(text: &str, file: &str) -> Option<ConfigError> {
    if FOREIGN.iter().any(|f| f.1(text).is_ok()) {
        return None;
    }
    let mut lines = text.lines().map(str::trim).enumerate();
    let first = lines.find(|(_, l)| !l.is_empty() && !l.starts_with('#') && !l.starts_with("---"));
    let may_be = first.is_some_and(|(_, l)| {
        l.contains(':') || l.starts_with(['{', '[', '"', '\'', '?', '!', '&', '%'])
    });
    // A line with a colon may be a text all the same.
    let is_text =
        |e: &ConfigError| e.problems.iter().any(|p| p.message.starts_with("invalid type: string"));
    if may_be && !yaml::keys(text, file).is_err_and(|e| is_text(&e)) {
        return None;
    }
    let against = FOREIGN
        .iter()
        .filter_map(|(f, fits)| Some(format!("\n     {}: {}", f.name()?, fits(text).err()?)));
    let own = "our own YAML or JSON: a mapping of keys to values, such as `coflows` or `jobs`";
    let allowed = [own.to_owned()].into_iter().chain(against).collect::<String>();
    let Some((line, _)) = first else {
        return Some(ConfigError::at(text, file, (1, 1), "there is nothing in it", allowed));
    };
    Some(ConfigError::at(
        text,
        file,
        (line + 1, 1),
        "this begins like no format that is read",
        allowed,
    ))
}

/// An error of a trace says as what it was read.
fn place<T>(
    text: &str,
    file: &str,
    format: Format,
    result: Result<T, TraceError>,
) -> Result<T, ConfigError> {
    let read_as = |why: String| {
        format.name().map_or(why.clone(), |name| format!("{why} (read in the format of {name})"))
    };
    result.map_err(|e| ConfigError::at(text, file, (e.line, e.column), read_as(e.why), ""))
}

fn base(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// A text of jobs where coflows are wanted.
fn no_coflows(text: &str, file: &str) -> ConfigError {
    let why = "these are jobs, and coflows are wanted here";
    ConfigError::at(
        text,
        file,
        (1, 1),
        why,
        "a workload of coflows; `heliostat workload convert --format coflows` makes one of jobs",
    )
}

/// Reads coflows in any format: our own YAML, or another whose ports become hosts by `mapping`.
/// `file` is the name that errors show, and the name of a workload that has none of its own.
///
/// # Errors
/// What is wrong with the text, where, and what is allowed.
pub fn read_workload(
    text: &str,
    file: &str,
    topology: &Topology,
    mapping: &PortMapping,
) -> Result<Workload, ConfigError> {
    let from_trace = |t: Trace| t.to_workload(base(file), topology, mapping);
    let format = format_of(text);
    let read = match format {
        Format::Coflows => {
            of_no_format(text, file).map_or(Ok(()), Err)?;
            return yaml::read_checked(text, file, |raw: workload::RawWorkload| {
                raw.check(topology)
            });
        }
        Format::CoflowBenchmark => coflow_benchmark::parse(text).and_then(from_trace),
        Format::CoflowSim => {
            coflowsim::parse(text).map(|c| coflowsim::draw(&c)).and_then(from_trace)
        }
        Format::Sunflow => sunflow_trace::parse(text).and_then(from_trace),
        Format::Sincronia => {
            sincronia::parse(text).and_then(|t| t.to_workload(base(file), topology, mapping))
        }
        Format::Csv => {
            csv::parse(text).and_then(|flows| flows.to_workload(base(file), topology, mapping))
        }
        Format::Htsim => htsim::parse(text).and_then(|flows| {
            let flows = &flows[..flows.len().min(mapping.first.unwrap_or(usize::MAX))];
            htsim::to_workload(base(file), flows, topology, mapping)
        }),
        Format::Jobs | Format::Swim | Format::Decima | Format::Spark => {
            return Err(no_coflows(text, file));
        }
    };
    place(text, file, format, read)
}

/// Checks the form of a workload of coflows without a topology: whether its places exist stays
/// open.
///
/// # Errors
/// What is wrong with the text, where, and what is allowed.
pub fn check_workload_form(text: &str, file: &str) -> Result<(), ConfigError> {
    let format = format_of(text);
    let read = match format {
        Format::Coflows => {
            of_no_format(text, file).map_or(Ok(()), Err)?;
            return yaml::read_checked(text, file, |_: workload::RawWorkload| Ok(()));
        }
        Format::CoflowBenchmark => coflow_benchmark::parse(text).map(drop),
        Format::CoflowSim => coflowsim::parse(text).map(drop),
        Format::Sunflow => sunflow_trace::parse(text).map(drop),
        Format::Sincronia => sincronia::parse(text).map(drop),
        Format::Csv => csv::parse(text).map(drop),
        Format::Htsim => htsim::parse(text).map(drop),
        Format::Jobs | Format::Swim | Format::Decima | Format::Spark => {
            return Err(no_coflows(text, file));
        }
    };
    place(text, file, format, read)
}

/// How jobs are read from formats that say less than ours, and which of them are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct JobsReading {
    /// Turns rows into tasks.
    pub model: JobModel,
    /// Turns measured queries into jobs.
    pub queries: decima::QueryOptions,
    /// Which jobs are kept, and how they are shrunk.
    pub select: Select,
    /// Decides what is drawn.
    pub seed: u64,
}

/// Which jobs are kept, and what is done to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Select {
    /// Least bytes that a job must shuffle to be kept.
    pub min_shuffle: Bytes,
    /// Then the number of jobs that are kept, drawn evenly, in their order.
    pub sample: Option<usize>,
    /// Then the number of jobs that are kept, from the first.
    pub first: Option<usize>,
    /// Whether all arrive at once.
    pub batch: bool,
    /// Divides all bytes, rounded up; tasks and times stay.
    pub scale: u64,
    /// Divides arrivals and the times of tasks.
    pub time_scale: u64,
}

impl Default for Select {
    fn default() -> Self {
        Self {
            min_shuffle: Bytes::ZERO,
            sample: None,
            first: None,
            batch: false,
            scale: 1,
            time_scale: 1,
        }
    }
}

impl Select {
    /// The things that are kept of `all`, in their order; `shuffle` says what one shuffles, and the
    /// seed draws the sample.
    pub fn keep<T>(&self, all: Vec<T>, shuffle: impl Fn(&T) -> Bytes, seed: u64) -> Vec<T> {
        let mut kept: Vec<T> = all.into_iter().filter(|x| shuffle(x) >= self.min_shuffle).collect();
        if let Some(n) = self.sample.filter(|n| *n < kept.len()) {
            let mut chosen =
                index::sample(&mut ChaCha8Rng::seed_from_u64(seed), kept.len(), n).into_vec();
            chosen.sort_unstable();
            let mut next = chosen.into_iter().peekable();
            let all = kept.into_iter().enumerate();
            kept = all.filter(|(k, _)| next.next_if_eq(k).is_some()).map(|x| x.1).collect();
        }
        kept.truncate(self.first.unwrap_or(usize::MAX));
        kept
    }

    /// The jobs of a list that are kept, as they are kept.
    pub fn of(&self, list: JobList, seed: u64) -> JobList {
        let mut list = JobList::new(list.name, self.keep(list.jobs, JobSpec::shuffle_bytes, seed));
        self.shrink(&mut list.jobs);
        list
    }

    /// What is done to the jobs that are kept.
    pub fn shrink(&self, jobs: &mut [JobSpec]) {
        let bytes = |b: &mut Bytes| *b = Bytes(b.0.div_ceil(self.scale.max(1)));
        let span = |s: &mut Span| s.0 /= self.time_scale.max(1);
        for j in jobs {
            j.arrival =
                if self.batch { Time::ZERO } else { Time(j.arrival.0 / self.time_scale.max(1)) };
            j.edges.iter_mut().for_each(|e| bytes(&mut e.bytes));
            for s in &mut j.stages {
                bytes(&mut s.input);
                bytes(&mut s.output);
                match &mut s.times {
                    TaskTimes::Even(t) => span(t),
                    TaskTimes::Each(all) => all.iter_mut().for_each(span),
                }
            }
        }
    }
}

/// Reads jobs in any format: our own YAML, SWIM's rows, Decima's queries, Spark's event logs, or a
/// trace of coflows, each of which is the shuffle of a job. `file` is the name that errors show,
/// and the name of a list that has none of its own.
///
/// # Errors
/// What is wrong with the text, where, and what is allowed.
pub fn read_any_jobs(text: &str, file: &str, how: &JobsReading) -> Result<JobList, ConfigError> {
    let select = &how.select;
    let of_trace = |trace: Trace| {
        let list = trace_jobs::to_jobs(base(file), &trace, &how.model, how.seed);
        JobList::new(list.name, select.keep(list.jobs, JobSpec::shuffle_bytes, how.seed))
    };
    let format = format_of(text);
    let placed = |trace: Result<Trace, TraceError>| place(text, file, format, trace);
    let mut list = match format {
        Format::Swim => {
            let rows = select.keep(
                place(text, file, format, swim::parse(text))?,
                |r: &SwimJob| r.shuffle,
                how.seed,
            );
            how.model.jobs(base(file), &rows, how.seed)
        }
        Format::Decima => {
            let queries = place(text, file, format, decima::parse(text))?;
            let list = decima::to_jobs(base(file), &queries, &how.queries);
            JobList::new(list.name, select.keep(list.jobs, JobSpec::shuffle_bytes, how.seed))
        }
        Format::Spark => {
            let list =
                spark_log::to_jobs(base(file), &place(text, file, format, spark_log::parse(text))?);
            JobList::new(list.name, select.keep(list.jobs, JobSpec::shuffle_bytes, how.seed))
        }
        Format::CoflowBenchmark => of_trace(placed(coflow_benchmark::parse(text))?),
        Format::Sunflow => of_trace(placed(sunflow_trace::parse(text))?),
        Format::Sincronia => of_trace(placed(sincronia::parse(text).map(|t| t.sums()))?),
        Format::CoflowSim => of_trace(placed(coflowsim::parse(text).map(|c| coflowsim::draw(&c)))?),
        Format::Htsim | Format::Csv => {
            let why = format!(
                "these are flows in the format of {}, and jobs are wanted here",
                format.name().unwrap_or_default()
            );
            return Err(ConfigError::at(
                text,
                file,
                (1, 1),
                why,
                "jobs of our own, rows of SWIM, queries of Decima, a log of Spark, or a trace of coflows",
            ));
        }
        Format::Coflows | Format::Jobs => {
            of_no_format(text, file).map_or(Ok(()), Err)?;
            let list: JobList = yaml::read_checked(text, file, jobs::RawJobs::check)?;
            JobList::new(list.name, select.keep(list.jobs, JobSpec::shuffle_bytes, how.seed))
        }
    };
    select.shrink(&mut list.jobs);
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;

    const SWIM: &str =
        "a\t1\t1\t5\t0\t7\nb\t4\t3\t5\t900\t7\nc\t10\t6\t5\t950\t7\nd\t20\t10\t5\t100\t7\n";

    #[test]
    fn formats_are_told_apart() {
        for (text, format) in [
            ("name: x\ncoflows: []", Format::Coflows),
            ("name: x\njobs: []", Format::Jobs),
            ("{\"name\": \"x\", \"jobs\": []}", Format::Jobs),
            ("3 1\n1 0 1 0 1 1:2.0\n", Format::CoflowBenchmark),
            ("0 1 50 7\n", Format::Htsim),
            ("# mine\nsrc,dst,bytes,start\n0,1,50,7\n", Format::Csv),
            ("# by a script\nConnections 1\nNodes 8\n0->5 start 0 size 4\n", Format::Htsim),
            ("# ports coflows\n\n4 1\n1 0 1 0 1 2:1.0\n", Format::CoflowBenchmark),
            ("1\t0\t1\t1\t0#2:1.0\n", Format::Sunflow),
            ("4 1\n0 35 2 1 2 0 2 5.0 0 3 2.5\n", Format::Sincronia),
            // A fault in the first line leaves the format.
            ("4 x\n1 0 1 0 1 2:1.0\n", Format::CoflowBenchmark),
            ("four 1 x\n1 0 1 0 1 2:1.0\n", Format::CoflowBenchmark),
            ("0 1 5O 7\n", Format::Htsim),
            ("a\t1\t1\t5\tx\t7\n", Format::Swim),
            ("racks: 4\n1 0 1 0 1 2: 3\n", Format::Coflows),
            ("Nodes 3\nConnections 0\n", Format::Htsim),
            ("SEBF CUSTOM 1 1 1 1 1 1 1 1 1", Format::CoflowSim),
            (SWIM, Format::Swim),
            ("[{\"size\": \"2g\", \"stages\": [{\"num_tasks\": 1, \"first_wave\"", Format::Decima),
            ("{\"Event\":\"SparkListenerLogStart\",\"Spark Version\":\"4.3.0\"}\n", Format::Spark),
            ("", Format::Coflows),
        ] {
            assert_eq!(format_of(text), format, "{text}");
        }
    }

    #[test]
    fn coflows_of_every_format_are_read() {
        let t = Topology::uniform("t", 4, 2, BitRate::mbit(1000), BitRate::mbit(100), vec![]);
        let read = |text| read_workload(text, "dir/f", &t, &PortMapping::default());
        let sunflow = "# of Sunflow\n1\t0\t1\t1\t0#2:1.0\n2\t5\t2\t1\t0,1#3:4.0\n";
        for (text, coflows) in [
            (sunflow, 2),
            ("4 1\n0 35 2 1 2 0 2 5.0 0 3 2.5\n", 1),
            ("0 1 50 7\n2 2 8 9\n", 2),
            ("3 1\n1 0 1 0 1 1:2.0\n", 1),
            ("CUSTOM 1 1 4 1 9 1 8 5 13", 5),
        ] {
            let w = read(text).unwrap();
            assert_eq!((w.coflows.len(), w.name.as_str()), (coflows, "f"), "{text}");
            assert_eq!(check_workload_form(text, "f"), Ok(()));
        }
        assert!(read(SWIM).unwrap_err().to_string().starts_with("dir/f:1:1: these are jobs"));
        for text in ["", "# nothing\n", "a\t1\t1\t5\t7\n", "hello\n"] {
            let e = read(text).unwrap_err().to_string();
            assert!(
                !e.contains("struct") && e.contains("SWIM: a row has six to nine fields"),
                "{text:?}: {e}"
            );
        }
        assert!(read("0 1 50 x\n").unwrap_err().to_string().starts_with("dir/f:1:"));
        assert!(
            check_workload_form("CUSTOM 1 1 4 1 9 1 3 5 13", "f")
                .unwrap_err()
                .to_string()
                .starts_with("f:1:20: ")
        );
    }

    #[test]
    fn an_error_says_as_what_a_text_was_read_or_what_speaks_against_each_format() {
        let of = |text: &str| check_workload_form(text, "f").unwrap_err().to_string();
        for (text, told) in [
            (
                "Nodes 8\nConnections 1\nTriggers 1\n0->5 start 0 size 4\n",
                "f:3:10: triggers are not supported",
            ),
            ("Nodes 8\nNodes 8\n", "f:2:1: a second `Nodes`"),
            (
                "Connections 1\n0->5 start 0 size 4\n",
                "f:2:1: `Nodes` and a number must be here, but found `0->5`",
            ),
            (
                "Nodes 8\nConnections 2\nFailures 0\n\n0->5 start 0 size 4\n",
                "f:2:1: the header announces 2 connections",
            ),
            ("# c\n4 one\n1 0 1 0 1 2:1.0\n", "f:2:3: the number of coflows"),
            ("src,dst,bytes\n1,2,x\n", "f:2:5: bytes, such as 1000000"),
        ] {
            let e = of(text);
            assert!(e.starts_with(told) && e.contains("(read in the format of "), "{e}");
        }
        for text in ["a,b,bytes\n1,2,3\n", "# nothing\n", "a b:c d\n", "jobA\tx\n"] {
            let e = of(text);
            let names = FOREIGN.iter().filter_map(|f| f.0.name());
            assert!(names.clone().all(|n| e.contains(&format!("     {n}: "))), "{text:?}: {e}");
            assert!(
                read_any_jobs(text, "f", &JobsReading::default())
                    .unwrap_err()
                    .to_string()
                    .contains("our own YAML or JSON")
            );
        }
        let long = format!("{}\n", "x y ".repeat(100_000));
        assert!(of(&long).len() < 2000, "{}", of(&long).len());
        assert!(
            read_any_jobs("0 1 50 7\n", "f", &JobsReading::default())
                .unwrap_err()
                .to_string()
                .contains("flows in the format of htsim")
        );
    }

    #[test]
    fn jobs_are_selected_and_shrunk() {
        let names = |select| {
            let how = JobsReading { select, seed: 1, ..JobsReading::default() };
            read_any_jobs(SWIM, "f", &how)
                .unwrap()
                .jobs
                .into_iter()
                .map(|j| j.name)
                .collect::<Vec<_>>()
        };
        let all = Select::default();
        assert_eq!(names(all), ["a", "b", "c", "d"]);
        assert_eq!(names(Select { min_shuffle: Bytes(500), ..all }), ["b", "c"]);
        assert_eq!(names(Select { first: Some(3), ..all }), ["a", "b", "c"]);
        let two = names(Select { sample: Some(2), ..all });
        assert!(two.len() == 2 && two.is_sorted(), "{two:?}");
        let how = JobsReading {
            select: Select { scale: 10, time_scale: 4, ..all },
            seed: 1,
            ..JobsReading::default()
        };
        let j = &read_any_jobs(SWIM, "f", &how).unwrap().jobs[2];
        assert_eq!(
            (j.arrival, j.shuffle_bytes(), j.input_bytes()),
            (Time(2_500_000_000), Bytes(95), Bytes(1))
        );
        assert_eq!(j.stages[0].times.longest(), Span(250_000_025));
        let how = JobsReading { select: Select { batch: true, ..all }, ..how };
        assert!(
            read_any_jobs(SWIM, "f", &how).unwrap().jobs.iter().all(|j| j.arrival == Time::ZERO)
        );
        let traced = read_any_jobs(
            "3 2\n1 5 1 0 2 1:2.0 2:6.0\n2 9 1 0 1 1:1.0\n",
            "dir/t",
            &JobsReading::default(),
        )
        .unwrap();
        let shares: Vec<_> =
            traced.jobs.iter().map(|j| j.edges[0].shares.clone().unwrap()).collect();
        assert_eq!(
            (traced.name.as_str(), shares),
            ("t", vec![vec![1, 3], vec![1]]),
            "coflows as jobs"
        );
        assert!(
            read_any_jobs("a\t1\t1\t5\t0\t7\nb\tx\n", "f", &how)
                .unwrap_err()
                .to_string()
                .starts_with("f:2:3: ")
        );
    }
}
