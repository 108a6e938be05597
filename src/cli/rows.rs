//! Results whose lists are written row by row as things end (`--rows DIR`), and read again as one
//! result.
//!
//! The directory has a file for each list, one JSON object a line as in a result's list, in the
//! order of the ends; and `result.json`, the rest of the result, which is written last.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::files::{failed, read_result};
use super::{CliError, tables, write_text};
use crate::runtime::open;
use crate::runtime::rows::ResultRow;

/// What is written last.
const REST: &str = "result.json";
/// Lists that are sorted by id in a result.
const BY_ID: [&str; 2] = ["coflows", "jobs"];
/// The list that goes by its ends there, too.
const BY_END: &str = "timeline";

fn file_of(list: &str) -> String {
    format!("{list}.jsonl")
}

/// Writes the rows of a run into a directory.
pub struct RowsWriter<'a> {
    directory: &'a Path,
    coflows: RowsFile,
    /// Lists of a run of jobs.
    jobs: Option<[RowsFile; 2]>,
    /// What could not be written.
    failed: Cell<Option<CliError>>,
    /// Ends the run, of which no more can be written.
    stop: &'a AtomicBool,
}

/// A file that is written line by line.
struct RowsFile {
    path: PathBuf,
    file: RefCell<BufWriter<File>>,
}

impl RowsFile {
    fn create(directory: &Path, list: &str) -> Result<Self, CliError> {
        let path = directory.join(file_of(list));
        let file = open::to_write(&path, false).map_err(|e| failed(&path, &e))?;
        Ok(Self { path, file: RefCell::new(BufWriter::with_capacity(1 << 16, file)) })
    }

    fn put(&self, row: &impl Serialize) -> Result<(), CliError> {
        let line = serde_json::to_string(row).expect("a row is plain data") + "\n";
        self.file.borrow_mut().write_all(line.as_bytes()).map_err(|e| failed(&self.path, &e))
    }

    fn end(&self) -> Result<(), CliError> {
        let mut file = self.file.borrow_mut();
        file.flush().and_then(|()| file.get_ref().sync_all()).map_err(|e| failed(&self.path, &e))
    }
}

impl<'a> RowsWriter<'a> {
    /// Begins a run's rows, of coflows or of jobs; those of an earlier run in this directory are
    /// gone then. `stop` is set if they cannot be written on.
    ///
    /// # Errors
    /// What cannot be written.
    pub fn create(
        directory: &'a Path,
        of_jobs: bool,
        stop: &'a AtomicBool,
    ) -> Result<Self, CliError> {
        std::fs::create_dir_all(directory).map_err(|e| failed(directory, &e))?;
        for old in
            [REST.to_owned(), file_of(BY_ID[1]), file_of(BY_END)].map(|name| directory.join(name))
        {
            match std::fs::remove_file(&old) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(failed(&old, &e)),
                _ => {}
            }
        }
        let [coflows, jobs] = BY_ID
            .map(|list| (list == BY_ID[0] || of_jobs).then(|| RowsFile::create(directory, list)));
        let coflows = coflows.expect("every run has coflows")?;
        let jobs = jobs
            .map(|jobs| Ok::<_, CliError>([jobs?, RowsFile::create(directory, BY_END)?]))
            .transpose()?;
        Ok(Self { directory, coflows, jobs, failed: Cell::new(None), stop })
    }

    /// Takes a row.
    pub fn put(&self, row: ResultRow) {
        let put = match (row, &self.jobs) {
            (ResultRow::Coflow(c), _) => self.coflows.put(c),
            (ResultRow::Job(j), Some([jobs, _])) => jobs.put(j),
            (ResultRow::Task(t), Some([_, tasks])) => tasks.put(t),
            (ResultRow::Job(_) | ResultRow::Task(_), None) => Ok(()),
        };
        if let Err(e) = put {
            // The first error says why; all later ones follow from it.
            let first = self.failed.take().unwrap_or(e);
            self.failed.set(Some(first));
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Writes the rest of the result.
    ///
    /// # Errors
    /// What could not be written, of the rows or of this.
    pub fn end(self, result: &impl Serialize) -> Result<(), CliError> {
        self.failed.take().map_or(Ok(()), Err)?;
        self.coflows.end()?;
        self.jobs.iter().flatten().try_for_each(RowsFile::end)?;
        write_text(&self.directory.join(REST), &tables::json(result))
    }
}

/// A result or an event log as text; of a directory with the rows of a run, one result.
///
/// # Errors
/// What cannot be read, and rows that are no whole result.
pub fn text(file: &Path) -> Result<String, CliError> {
    if are_in(file) { read(file) } else { read_result(file) }
}

/// Whether a directory holds the rows of a run.
pub fn are_in(directory: &Path) -> bool {
    directory.join(file_of(BY_ID[0])).is_file()
}

/// The rows in a directory and the rest of their result as the text of one result.
fn read(directory: &Path) -> Result<String, CliError> {
    let rest = directory.join(REST);
    if !rest.is_file() {
        let why = format!("the run has not ended: there is no {REST} beside its rows");
        return Err(CliError::Invalid(format!("{}: {why}", directory.display())));
    }
    let bad = |why: String| CliError::Invalid(format!("{}: {why}", rest.display()));
    let mut head: Map<String, Value> = serde_json::from_str(&read_result(&rest)?)
        .map_err(|e| bad(crate::config::json::words(&e)))?;
    let mut lists = String::new();
    for list in BY_ID.into_iter().chain([BY_END]) {
        head.remove(list);
        let path = directory.join(file_of(list));
        if path.is_file() {
            let rows = rows(&read_result(&path)?, list != BY_END).map_err(|(line, why)| {
                CliError::Invalid(format!(
                    "{}:{line}: {why}; allowed: a row of a result's list `{list}`",
                    path.display()
                ))
            })?;
            lists += &format!(",\"{list}\":[{rows}]");
        }
    }
    let head = serde_json::to_string(&head).expect("what was read is JSON");
    let open = head.strip_suffix('}').unwrap_or(&head);
    // A list needs no comma before it where nothing is before it.
    let lists = if open == "{" { lists.trim_start_matches(',') } else { &lists };
    Ok(format!("{open}{lists}}}\n"))
}

/// Lines as the elements of a list, sorted by id if asked for.
fn rows(text: &str, by_id: bool) -> Result<String, (usize, String)> {
    #[derive(Deserialize)]
    struct Peek {
        #[serde(default)]
        id: u64,
    }
    let mut all: Vec<(u64, &str)> = Vec::new();
    for (k, line) in text.lines().enumerate().filter(|l| !l.1.trim().is_empty()) {
        let peek: Peek =
            serde_json::from_str(line).map_err(|e| (k + 1, crate::config::json::words(&e)))?;
        all.push((peek.id, line));
    }
    if by_id {
        all.sort_by_key(|row| row.0);
    }
    Ok(all.iter().map(|row| row.1).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::results;
    use crate::config;
    use crate::control::policy::{CircuitPolicy, SchedulerKind};
    use crate::placement::Kind;
    use crate::runtime::jobs::report::JobsResult;
    use crate::runtime::jobs::simulate::{JobRunOptions, SimulatedJobs, simulate_with};
    use crate::runtime::study::AnyResult;
    use crate::scheduler::spec::JobPolicy;
    use crate::testing::shipped;
    use proptest::prelude::*;

    fn simulated(rows: Option<&dyn Fn(ResultRow)>) -> JobsResult {
        let policy =
            CircuitPolicy { scheduler: SchedulerKind::Bipartite, ..CircuitPolicy::default() };
        let topology =
            config::read_topology(&shipped("topologies/hybrid-4x2.yaml"), "t").expect("a network");
        let mut jobs = config::read_jobs(&shipped("workloads/jobs-8.yaml"), "jobs").expect("jobs");
        jobs.jobs.truncate(6);
        let jobs_by = JobPolicy::new(Kind::Fair);
        let ask = SimulatedJobs {
            topology: &topology,
            plan: &policy.into(),
            jobs_by: &jobs_by,
            jobs: &jobs,
            failures: &[],
            faults: &[],
            until: None,
        };
        simulate_with(&ask, &JobRunOptions { rows, ..JobRunOptions::default() }, &mut |_| {})
            .expect("a run")
    }

    fn write(directory: &Path) -> Result<(), CliError> {
        let stop = AtomicBool::new(false);
        let writer = RowsWriter::create(directory, true, &stop)?;
        let result = simulated(Some(&|row| writer.put(row)));
        writer.end(&result)
    }

    #[test]
    fn a_directory_of_rows_is_read_as_the_result() {
        let directory = tempfile::tempdir().expect("a directory");
        let directory = directory.path();
        // A second run takes the place of the first.
        (0..2).for_each(|_| write(directory).expect("rows"));
        match &results::read(directory).expect("a result")[..] {
            [AnyResult::Jobs(r)] => assert_eq!(**r, simulated(None)),
            other => panic!("{} results", other.len()),
        }
        assert_eq!(results::files_in(directory).expect("one"), [directory]);
    }

    #[test]
    fn what_is_no_whole_result_is_refused_with_its_place() {
        let directory = tempfile::tempdir().expect("a directory");
        let directory = directory.path();
        write(directory).expect("rows");
        let refused = || results::read(directory).expect_err("no result").to_string();
        let jobs = directory.join("jobs.jsonl");
        let text = std::fs::read_to_string(&jobs).expect("rows");
        let cut = text.rsplit_once(',').expect("an object").0;
        std::fs::write(&jobs, cut).expect("written");
        let told = refused();
        assert!(told.contains("jobs.jsonl:6: the text ends before its JSON does; allowed: a row of a result's list `jobs`"), "{told}");
        std::fs::write(&jobs, text.replacen("\"tasks\":", "\"tsaks\":", 1)).expect("written");
        assert!(refused().contains("tasks"), "{}", refused());
        std::fs::remove_file(directory.join(REST)).expect("it was there");
        assert!(
            refused().contains("the run has not ended: there is no result.json beside its rows"),
            "{}",
            refused()
        );
    }

    #[test]
    fn a_disk_that_is_full_ends_the_run_and_is_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let stop = AtomicBool::new(false);
        let mut writer = RowsWriter::create(directory.path(), true, &stop).expect("a directory");
        let full = File::options().write(true).open("/dev/full").expect("a device");
        writer.coflows.file = RefCell::new(BufWriter::with_capacity(1, full));
        let result = simulated(Some(&|row| writer.put(row)));
        assert!(stop.load(Ordering::Relaxed));
        let told = writer.end(&result).expect_err("it is full").to_string();
        assert!(
            told.contains("coflows.jsonl: No space left on device")
                && !directory.path().join(REST).exists(),
            "{told}"
        );
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn no_text_panics(text in "(\\PC|\n){0,40}", by_id in any::<bool>()) {
            let _ = rows(&text, by_id);
        }
    }
}
