//! `heliostat sweep`: a grid of runs in virtual time, a file each. What is there is skipped, so
//! that starting again is the recovery.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use self::progress::SweepProgress;
use self::runs::{SweepRun, SweepRunState};
use super::apart::Grouping;
use super::caveats::say_unplaced;
use super::files::read_policy;
use super::interrupt::stopped_by_ctrl_c;
use super::{CliError, DocumentOutput, print, results, simulate, study, write_text};
use crate::runtime::parallel::in_parallel;

mod collect;
mod kept;
mod progress;
mod runs;
mod summary;

/// Runs a grid of topologies, policies, workloads, seeds and options in virtual time
///
/// Each run writes its result to DIR/ID.json when it has ended, as `heliostat simulate --json`
/// writes it. ID is a hash of the version and of all that the run depends on, contents of files
/// included; a run whose result is there is skipped. So a sweep that was stopped or killed goes on
/// where it was when the same command is started again. A run that fails leaves its error in
/// DIR/ID.error, and is tried again the next time.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The grid (YAML): topologies, policies, workloads or jobs, seeds, options. With --list and
    /// --collect, if left out: the one that was swept last into the directory
    #[arg(required_unless_present_any = ["list", "collect"])]
    grid: Option<PathBuf>,
    /// The directory of the results
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Runs at once [default: as many as the machine has cores]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// Only every N-th run, beginning with number K (from 0): a part for one machine of N
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
    /// Only the runs of these ids; may be given more than once
    #[arg(long, value_name = "ID")]
    only: Vec<String>,
    /// Prints the runs as JSON lines instead: what each is, whether its result is there, and the
    /// arguments that run it alone
    #[arg(long)]
    list: bool,
    /// Writes a table of what is there instead, .csv or .jsonl; runs nothing. What failed or is
    /// missing says so
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    collect: Option<PathBuf>,
    #[command(flatten)]
    grouping: Grouping,
    /// How the comparison of its policies is printed
    #[arg(short, long, value_enum, default_value_t, conflicts_with_all = ["list", "collect"])]
    output: DocumentOutput,
    /// A row for each of these
    #[arg(long, value_enum, default_value_t, requires = "collect")]
    rows: RowsOf,
}

/// Of what a table has rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum RowsOf {
    /// Runs, with their sums
    #[default]
    Runs,
    /// Coflows of all runs
    Coflows,
    /// Jobs of all runs
    Jobs,
}

/// A part of all runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shard {
    number: usize,
    of: usize,
}

impl std::str::FromStr for Shard {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || "write K/N with K from 0 to N-1, such as 0/10".to_owned();
        let (number, of) = text.split_once('/').ok_or_else(bad)?;
        let (number, of) = (number.parse().map_err(|_| bad())?, of.parse().map_err(|_| bad())?);
        if number < of { Ok(Self { number, of }) } else { Err(bad()) }
    }
}

/// Runs the subcommand.
///
/// # Errors
/// A grid that makes no sense, a directory that cannot be written, and after all others have run,
/// runs that failed.
pub fn run(args: &Args) -> Result<(), CliError> {
    let all = match &args.grid {
        Some(grid) => runs::read(grid, &args.out)?,
        None => kept::read(&args.out)?,
    };
    let mine = chosen(&all, args)?;
    if args.list {
        return print(&mine.iter().map(|r| r.line(&args.out) + "\n").collect::<String>());
    }
    if args.collect.is_none() {
        std::fs::create_dir_all(&args.out)
            .map_err(|e| CliError::Failed(format!("{}: {e}", args.out.display())))?;
    }
    let kept = args.grid.as_ref().map_or(Ok(()), |_| kept::write(&all, &args.out));
    if let Some(file) = &args.collect {
        // Results may be read where nothing may be written.
        return collect::write(file, &mine, &args.out, args.rows);
    }
    kept?;
    let policies: BTreeSet<&str> =
        mine.iter().filter(|r| !r.of_jobs).map(|r| r.cell.policy.as_str()).collect();
    let plans = policies.iter().filter_map(|p| read_policy(Path::new(p)).ok());
    say_unplaced(&plans.collect::<Vec<_>>());
    let (failed, stopped) = carry(&mine, args)?;
    if stopped {
        return Err(CliError::Failed(
            "stopped; start the same command again, and it goes on from here".into(),
        ));
    }
    if args.shard.is_none() && args.only.is_empty() {
        print(&summary::of(&mine, &args.out, &args.grouping, args.output)?)?;
    }
    if failed.is_empty() { Ok(()) } else { Err(told(&failed, mine.len())) }
}

/// The runs that are asked for.
fn chosen<'a>(all: &'a [SweepRun], args: &Args) -> Result<Vec<&'a SweepRun>, CliError> {
    if let Some(id) = args.only.iter().find(|id| all.iter().all(|r| r.id != **id)) {
        return Err(CliError::Usage(format!(
            "--only {id}: no run of this grid; --list prints their ids"
        )));
    }
    let in_shard = |k: usize| args.shard.is_none_or(|s| k % s.of == s.number);
    let asked = |r: &SweepRun| args.only.is_empty() || args.only.contains(&r.id);
    Ok(all.iter().enumerate().filter(|(k, r)| in_shard(*k) && asked(r)).map(|(_, r)| r).collect())
}

/// Runs that failed, each with why.
type FailedRuns<'a> = Vec<(&'a SweepRun, String)>;

/// Runs what is missing: what failed, and whether it was stopped before its end.
fn carry<'a>(mine: &[&'a SweepRun], args: &Args) -> Result<(FailedRuns<'a>, bool), CliError> {
    let missing: Vec<&SweepRun> =
        mine.iter().copied().filter(|r| r.state(&args.out) != SweepRunState::Done).collect();
    let (stop, progress) = (stopped_by_ctrl_c(), SweepProgress::new(missing.len(), mine.len()));
    let one = |k: usize| {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let ended = execute(missing[k], &args.out, &stop);
        progress.one_more(matches!(ended, Ok(Some(_))));
        ended
    };
    let ended = in_parallel(missing.len(), study::threads(args.threads), one);
    progress.done();
    let mut failed = FailedRuns::new();
    for (run, ended) in missing.iter().zip(ended) {
        failed.extend(ended?.map(|why| (*run, why)));
    }
    Ok((failed, stop.load(Ordering::Relaxed)))
}

/// One run: why it failed, if it did. Its result or its error is in its file then, unless it was
/// stopped.
///
/// # Errors
/// When that file cannot be written.
fn execute(run: &SweepRun, out: &Path, stop: &AtomicBool) -> Result<Option<String>, CliError> {
    let play = || simulate::quietly(&run.simulate().map_err(CliError::Usage)?, stop);
    // A fault of the program in one run shall not end the others.
    let fault =
        |_| Err(CliError::Failed("a fault of the program, which it printed on stderr".into()));
    match catch_unwind(AssertUnwindSafe(play)).unwrap_or_else(fault) {
        Ok(Some(result)) => {
            write_text(&run.result(out), &results::as_json(&result))?;
            let _ = std::fs::remove_file(run.error(out));
            Ok(None)
        }
        Ok(None) => Ok(None),
        Err(e) => {
            write_text(&run.error(out), &format!("{e}\n"))?;
            Ok(Some(e.to_string()))
        }
    }
}

fn told(failed: &FailedRuns, of: usize) -> CliError {
    /// More are in their files.
    const TOLD: usize = 5;
    let lines: String = failed
        .iter()
        .take(TOLD)
        .map(|(run, why)| format!("\n{} ({}): {why}", run.id, run.about()))
        .collect();
    let more = if failed.len() > TOLD {
        format!("\n{} more; see *.error", failed.len() - TOLD)
    } else {
        String::new()
    };
    CliError::Failed(format!("{} of {of} runs failed{lines}{more}", failed.len()))
}
