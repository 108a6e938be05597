//! One policy on a network in virtual time, with what it is to carry: what single runs, comparisons
//! and sweeps have in common.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Args;
use crate::cli::log::say;
use crate::cli::{CliError, explain, jobs, limits, origin, read_policy_with};
use crate::config;
use crate::control::record::Record;
use crate::runtime::jobs::report::JobsResult;
use crate::runtime::jobs::simulate::{self as of_jobs, JobRunOptions, SimulatedJobs};
use crate::runtime::record::Recorder;
use crate::runtime::report::{ResultOrigin, RunEnd, RunResult};
use crate::runtime::rows::RowSink;
use crate::runtime::settings::RunPlan;
use crate::runtime::simulate::{
    Extras, Progress, SimOptions, bucket, simulate_alone, simulate_watched,
};
use crate::runtime::study::AnyResult;
use crate::scheduler::SchedulerEvent;
use crate::scheduler::spec::JobPolicy;
use crate::scheduler::state::{Grain, rack_level};
use crate::sim::faults::Fault;
use crate::topology::Topology;
use crate::units::{Span, Time};
use crate::workload::{Adjust, Workload};

/// A run that is ready, but for its seed.
pub struct ReadyRun<'a> {
    args: &'a Args,
    /// The network.
    pub topology: &'a Arc<Topology>,
    /// The policy.
    pub plan: RunPlan,
    /// What it is to carry.
    pub load: RunLoad<'a>,
    faults: Vec<Fault>,
    /// Where results come from, but for the seed.
    origin: ResultOrigin,
}

/// What else hears of a run of jobs.
#[derive(Clone, Copy, Default)]
pub struct JobsListeners<'a> {
    /// Is told how far it is.
    pub watch: Option<&'a dyn Fn(of_jobs::JobsProgress)>,
    /// Takes what both machines hear and want.
    pub record: Option<&'a Recorder>,
    /// Takes what ends.
    pub rows: Option<RowSink<'a>>,
}

/// What is to be carried.
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum RunLoad<'a> {
    /// A workload.
    Coflows {
        /// A file or a name.
        what: &'a Path,
    },
    /// Jobs.
    Jobs {
        /// A file or a name.
        what: &'a Path,
        /// How they are scheduled.
        by: JobPolicy,
        /// Which hosts fail.
        failures: Vec<(Time, SchedulerEvent)>,
    },
}

impl<'a> ReadyRun<'a> {
    /// Reads a policy and all that goes with it.
    ///
    /// # Errors
    /// Files that cannot be read or make no sense, by themselves or together.
    pub fn new(
        args: &'a Args,
        topology: &'a Arc<Topology>,
        policy: &Path,
    ) -> Result<Self, CliError> {
        let plan = read_policy_with(policy, &args.changes.all)?;
        limits::fits_into_memory(topology, &plan, config::SimulationLoad::default())?;
        let faults = args.read_faults(topology, &plan)?;
        args.check_resolution(&plan)?;
        let load = match (&args.jobs, &args.workload) {
            (Some(what), _) => {
                let by = jobs::scheduling(&plan, &policy.display().to_string())?;
                RunLoad::Jobs { what, by, failures: args.tuning.failures(topology)? }
            }
            (None, Some(what)) => RunLoad::Coflows { what },
            (None, None) => return Err(CliError::Usage("either --workload or --jobs".into())),
        };
        match &load {
            RunLoad::Jobs { by, .. }
                if args.how.grain(topology, by.placement.kind())? == Grain::Rack =>
            {
                config::fit(&rack_level(topology), &plan)?;
            }
            _ => config::fit(topology, &plan)?,
        }
        let origin = origin::of(
            Some(&args.topology),
            Some(policy),
            args.jobs.as_deref().or(args.workload.as_deref()),
        );
        let origin = if args.timing { origin::here_and_now(&origin) } else { origin };
        let (options, settings) = (args.given.clone(), config::settings(&plan));
        let origin = ResultOrigin {
            options,
            settings,
            resolution: Some(args.resolution()).filter(|&r| r > Span::ZERO),
            ..origin
        };
        Ok(Self { args, topology, plan, load, faults, origin })
    }

    fn origin(&self, seed: u64) -> ResultOrigin {
        ResultOrigin { seed: Some(seed), ..self.origin.clone() }
    }

    /// The run with a seed, without a word; `None` if it was stopped.
    ///
    /// # Errors
    /// Files that cannot be read or make no sense, and runs that fail; which seed.
    pub fn quietly(&self, seed: u64, stop: &AtomicBool) -> Result<Option<AnyResult>, CliError> {
        let (end, result) = match &self.load {
            RunLoad::Coflows { .. } => {
                let workload = self.workload(seed)?;
                let result = self.coflows(seed, &workload, (None, None), &mut |_| (), &mut |_| {
                    !stop.load(Ordering::Relaxed)
                });
                let result = result.map_err(|e| CliError::Failed(format!("seed {seed}: {e}")))?;
                (result.end, AnyResult::Coflows(Box::new(result)))
            }
            RunLoad::Jobs { .. } => {
                let result = self.jobs(seed, stop, JobsListeners::default(), &mut |_| ())?;
                (result.end, AnyResult::Jobs(Box::new(result)))
            }
        };
        Ok((end != RunEnd::Stopped).then_some(result))
    }

    /// The coflows of a seed.
    ///
    /// # Errors
    /// A file that cannot be read or makes no sense.
    pub fn workload(&self, seed: u64) -> Result<Workload, CliError> {
        let (RunLoad::Coflows { what } | RunLoad::Jobs { what, .. }) = &self.load;
        let reading = &self.args.reading;
        let adjust =
            Adjust { scale: reading.scale.unwrap_or(self.plan.run.scale), ..reading.adjust() };
        Ok(reading.draw(what, self.topology, seed)?.adjusted(&adjust))
    }

    /// Carries a workload that was drawn from `seed`. `watch` ends the run by saying no.
    ///
    /// # Errors
    /// A run that fails, or that would not end in a time worth waiting for.
    pub fn coflows(
        &self,
        seed: u64,
        workload: &Workload,
        (record, rows): (Option<&Recorder>, Option<RowSink>),
        write: &mut dyn FnMut(Record),
        watch: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<RunResult, CliError> {
        let Self { args, topology, plan, faults, .. } = self;
        if !args.alone {
            limits::ends_in_time(topology, plan, workload, args.until())?;
        }
        let _held = limits::promise(topology, plan, limits::flows(workload))?;
        let result = if args.alone {
            simulate_alone(topology, plan, workload, watch)
        } else {
            let bucket = Some(args.bucket.unwrap_or_else(|| bucket(topology, workload)));
            let extras =
                Extras { faults, bucket, resolution: args.resolution(), ..Extras::default() };
            let how = SimOptions { until: args.until(), extras, record, rows };
            simulate_watched(topology, plan, workload, &how, &mut |r| write(r), watch)
        };
        result
            .map(|r| RunResult { origin: self.origin(seed), ..r })
            .map_err(|e| CliError::Failed(e.to_string()))
    }

    /// The run whose jobs, tasks and errors of foresight are drawn from `seed`. Of a repetition,
    /// data is placed by a seed of its own.
    ///
    /// # Errors
    /// Files that cannot be read or make no sense, and a run that fails.
    pub fn jobs(
        &self,
        seed: u64,
        stop: &AtomicBool,
        JobsListeners { watch, record, rows }: JobsListeners,
        write: &mut dyn FnMut(of_jobs::EventLogLine),
    ) -> Result<JobsResult, CliError> {
        let Self { args, topology, plan, faults, load, .. } = self;
        let RunLoad::Jobs { what, by, failures } = load else {
            return Err(CliError::Usage("no --jobs".into()));
        };
        let errors = args.wrong.errors(seed);
        let (list, foreseen) =
            errors.apply(&args.tuning.read(what, (plan, topology), &args.reading, seed)?);
        let may_last = limits::jobs_end_in_time(topology, plan, &list, args.until())?;
        // A run among many says nothing.
        may_last.filter(|_| watch.is_some()).into_iter().for_each(|why| say!("note: {why}"));
        let load = if rows.is_some() { limits::jobs_alone(&list) } else { limits::tasks(&list) };
        let _held = limits::promise(topology, plan, load)?;
        let remaining = (errors.remaining_percent > 0).then_some((errors.remaining_percent, seed));
        let bucket = Some(args.bucket.unwrap_or_else(|| of_jobs::bucket(topology, &list)));
        let explain = args.explain.as_ref().map(|job| explain::find(&list, job)).transpose()?;
        let course = JobRunOptions {
            foreseen: Some(&foreseen),
            remaining,
            stop: Some(stop),
            bucket,
            resolution: args.resolution(),
            watch,
            record,
            explain,
            rows,
            writes: args.write_output,
        };
        let mut jobs_by = by.clone();
        jobs_by.settings.grain = args.how.grain(topology, jobs_by.placement.kind())?;
        let first = if args.place_by_seed { 1 } else { args.seed };
        jobs_by.placement.common.seed =
            jobs_by.placement.common.seed.wrapping_add(seed.wrapping_sub(first));
        let ask = SimulatedJobs {
            topology,
            plan,
            jobs_by: &jobs_by,
            jobs: &list,
            failures,
            faults,
            until: args.until(),
        };
        let result = of_jobs::simulate_with(&ask, &course, write).map_err(CliError::Failed)?;
        Ok(JobsResult { origin: self.origin(seed), ..result })
    }
}
