//! The runs of a grid: what each is called, and the arguments that run it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, Parser as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::cli::changes::KeyChange;
use crate::cli::files::read_shipped;
use crate::cli::workload::CoflowMix;
use crate::cli::{
    Cli, CliError, Command, read_policy, read_policy_with, read_text, read_topology,
    read_topology_with, simulate,
};
use crate::config::nearest::did_you_mean;
use crate::config::shipped::Shelf;
use crate::config::sweep::{Grid, GridCell};
use crate::config::{self, Flaw, PathStep};

/// Options of `simulate` that a sweep gives itself, or that print and write.
const NOT_HERE: [&str; 15] = [
    "policy", "workload", "jobs", "seed", "set", "repeat", "threads", "json", "output", "events",
    "record", "timeline", "explain", "timing", "log",
];
/// Options of `simulate` whose values may be files.
const FILES: [&str; 2] = ["faults", "model"];
/// Bytes of the hash that make a name.
const NAME_BYTES: usize = 8;

/// One run of a grid.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SweepRun {
    /// Hash of the version and of all that the run depends on.
    pub id: String,
    /// Its place in the grid.
    #[serde(flatten)]
    pub cell: GridCell,
    /// Whether it is of jobs.
    pub of_jobs: bool,
    /// Arguments of `heliostat`, without where the result goes.
    argv: Vec<String>,
}

/// What is there of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepRunState {
    /// Its result.
    Done,
    /// Its error.
    Failed,
    /// Nothing.
    Missing,
}

impl SweepRunState {
    /// For tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Missing => "missing",
        }
    }
}

/// The runs of a grid file. Names in it are of files beside it, or of what is shipped.
///
/// # Errors
/// A grid that makes no sense, with the places of all that is wrong in it.
pub fn read(grid: &Path, out: &Path) -> Result<Vec<SweepRun>, CliError> {
    let directory = grid.parent().unwrap_or(Path::new(""));
    let text = read_text(grid)?;
    let mut contents = Contents { directory, read: BTreeMap::new() };
    let grid = config::read_grid(&text, &grid.display().to_string(), |g| flaws(g, &mut contents))?;
    if out.exists() && !out.is_dir() {
        return Err(CliError::Usage(format!("--out {}: this is no directory", out.display())));
    }
    Ok(grid.cells().into_iter().map(|cell| SweepRun::new(cell, &grid, &contents)).collect())
}

/// The hashes of what names stand for, each read once.
struct Contents<'a> {
    /// Where the names of files begin.
    directory: &'a Path,
    read: BTreeMap<(Option<Shelf>, String), [u8; 32]>,
}

impl Contents<'_> {
    /// The file beside the grid, or the name as it is.
    fn path(&self, name: &str) -> PathBuf {
        let beside = self.directory.join(name);
        if beside.exists() { beside } else { name.into() }
    }

    /// Reads what a name stands for: a file or what is shipped, or on no shelf, a file if there is
    /// one.
    fn read(
        &mut self,
        shelf: Option<Shelf>,
        name: &str,
        others: &[String],
    ) -> Result<(), CliError> {
        let path = self.path(name);
        let text = match shelf {
            _ if others.iter().any(|o| o == name) && !path.exists() => String::new(),
            Some(shelf) => read_shipped(shelf, &path, others)?,
            None if path.is_file() => read_shipped(Shelf::Workloads, &path, others)?,
            None => String::new(),
        };
        self.read.insert((shelf, name.into()), Sha256::digest(text.as_bytes()).into());
        Ok(())
    }

    fn hash(&self, shelf: Option<Shelf>, name: &str) -> [u8; 32] {
        self.read.get(&(shelf, name.to_owned())).copied().unwrap_or_default()
    }
}

/// What is wrong with the names and options of a grid. Reads all files on the way.
fn flaws(grid: &Grid, contents: &mut Contents) -> Vec<Flaw> {
    let mut flaws = vec![];
    let mixes = if grid.of_jobs { CoflowMix::of_jobs() } else { CoflowMix::names() };
    let mut names = |key: &str,
                     shelf: Shelf,
                     list: &[String],
                     others: &[String],
                     check: &dyn Fn(&Path) -> Result<(), CliError>| {
        for (k, name) in list.iter().enumerate() {
            let read =
                contents.read(Some(shelf), name, others).and_then(|()| check(&contents.path(name)));
            flaws.extend(read.err().map(|e| flaw(&[key.into(), k.into()], e.to_string(), "")));
        }
    };
    names("topologies", Shelf::Topologies, &grid.topologies, &[], &|p| read_topology(p).map(drop));
    names("policies", Shelf::Policies, &grid.policies, &[], &|p| read_policy(p).map(drop));
    names(grid.loads_key(), Shelf::Workloads, &grid.loads, &mixes, &|_| Ok(()));
    for (name, values) in &grid.options {
        for (k, value) in values.iter().enumerate() {
            if FILES.contains(&name.as_str())
                && let Err(e) = contents.read(None, value, &[])
            {
                flaws.push(flaw(
                    &["options".into(), name.as_str().into(), k.into()],
                    e.to_string(),
                    "",
                ));
            }
            flaws.extend(wrong_option(grid.of_jobs, name, k, value));
        }
    }
    for (key, values) in &grid.set {
        for (k, value) in values.iter().enumerate() {
            let at = [PathStep::from("set"), key.as_str().into(), k.into()];
            let tried = KeyChange::new(key, value)
                .map_err(CliError::Usage)
                .and_then(|c| fits(&c, grid, contents));
            flaws.extend(tried.err().map(|why| flaw(&at, why.to_string(), "")));
        }
    }
    flaws
}

/// Whether all files of a grid make sense with a change.
fn fits(change: &KeyChange, grid: &Grid, contents: &Contents) -> Result<(), CliError> {
    let change = std::slice::from_ref(change);
    grid.topologies
        .iter()
        .try_for_each(|t| read_topology_with(&contents.path(t), change).map(drop))?;
    grid.policies.iter().try_for_each(|p| read_policy_with(&contents.path(p), change).map(drop))
}

fn flaw(path: &[PathStep], message: impl Into<String>, allowed: impl Into<String>) -> Flaw {
    Flaw { path: path.to_vec(), message: message.into(), allowed: allowed.into() }
}

/// Why `simulate` does not take an option with a value.
fn wrong_option(of_jobs: bool, name: &str, k: usize, value: &str) -> Option<Flaw> {
    let at = [PathStep::from("options"), name.into()];
    let command = Cli::command();
    let options = command
        .find_subcommand("simulate")
        .expect("there is one")
        .get_opts()
        .filter_map(clap::Arg::get_long);
    let known: Vec<&str> = options.filter(|o| !NOT_HERE.contains(o)).collect();
    if !known.contains(&name) {
        let message = format!(
            "no option of simulate that a sweep can give{}",
            did_you_mean(name, known.iter().copied())
        );
        return Some(flaw(&at, message, known.join(", ")));
    }
    let load = if of_jobs { "--jobs=x" } else { "--workload=x" };
    let argv = ["heliostat", "simulate", "x", "--policy=x", load]
        .into_iter()
        .map(str::to_owned)
        .chain(option(name, value));
    let error = Cli::try_parse_from(argv).err()?.to_string();
    let message =
        error.trim_start_matches("error: ").split("\n\n").next().unwrap_or_default().to_owned();
    Some(flaw(&[&at[..], &[k.into()]].concat(), message, ""))
}

/// An option as an argument: `true` gives a switch, `false` leaves it out.
fn option(name: &str, value: &str) -> Option<String> {
    match value {
        "true" => Some(format!("--{name}")),
        "false" => None,
        _ => Some(format!("--{name}={value}")),
    }
}

impl SweepRun {
    fn new(cell: GridCell, grid: &Grid, contents: &Contents) -> Self {
        let path = |name: &str| contents.path(name).display().to_string();
        let load = if grid.of_jobs { "--jobs" } else { "--workload" };
        let mut argv: Vec<String> =
            ["simulate".into(), path(&cell.topology), "--policy".into(), path(&cell.policy)].into();
        argv.extend([load.into(), path(&cell.load), "--seed".into(), cell.seed.to_string()]);
        if grid.of_jobs {
            argv.push("--place-by-seed".into());
        }
        let value = |name: &str, value: &str| {
            if FILES.contains(&name) { path(value) } else { value.to_owned() }
        };
        argv.extend(cell.options.iter().filter_map(|(name, v)| option(name, &value(name, v))));
        argv.extend(cell.set.iter().map(|(key, value)| format!("--set={key}={value}")));
        Self { id: id(&cell, grid, contents), cell, of_jobs: grid.of_jobs, argv }
    }

    /// Where its result is, or will be.
    pub fn result(&self, out: &Path) -> PathBuf {
        out.join(format!("{}.json", self.id))
    }

    /// Where its error is, if it failed.
    pub fn error(&self, out: &Path) -> PathBuf {
        out.join(format!("{}.error", self.id))
    }

    /// What is there of it.
    pub fn state(&self, out: &Path) -> SweepRunState {
        match (self.result(out).is_file(), self.error(out).is_file()) {
            (true, _) => SweepRunState::Done,
            (false, true) => SweepRunState::Failed,
            (false, false) => SweepRunState::Missing,
        }
    }

    /// What it is, as columns of a table.
    pub fn columns(&self) -> Vec<(String, String)> {
        let load = if self.of_jobs { "jobs" } else { "workload" };
        let c = &self.cell;
        let mut all = vec![
            ("id".to_owned(), self.id.clone()),
            ("topology".into(), c.topology.clone()),
            ("policy".into(), c.policy.clone()),
        ];
        all.extend([(load.to_owned(), c.load.clone()), ("seed".into(), c.seed.to_string())]);
        all.extend(c.options.iter().map(|(name, value)| (name.replace('-', "_"), value.clone())));
        all.extend(c.set.iter().cloned());
        all
    }

    /// What it is, for people.
    pub fn about(&self) -> String {
        let all: Vec<String> = self
            .columns()
            .into_iter()
            .skip(1)
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        all.join(", ")
    }

    /// What it is, as a line of JSON, with the arguments that run it by itself.
    pub fn line(&self, out: &Path) -> String {
        let mut line = Map::new();
        line.extend(self.columns().into_iter().map(|(name, value)| (name, Value::from(value))));
        line.insert("seed".into(), self.cell.seed.into());
        line.insert("state".into(), self.state(out).word().into());
        let json = ["--json".to_owned(), self.result(out).display().to_string()];
        line.insert(
            "argv".into(),
            self.argv.iter().cloned().chain(json).collect::<Vec<_>>().into(),
        );
        Value::from(line).to_string()
    }

    /// Its arguments as `simulate` takes them.
    ///
    /// # Errors
    /// Options that do not go together.
    pub fn simulate(&self) -> Result<simulate::Args, String> {
        let cli =
            Cli::try_read_from(std::iter::once("heliostat".to_owned()).chain(self.argv.clone()))
                .map_err(|e| e.to_string())?;
        match cli.command {
            Command::Simulate(args) => Ok(args),
            other => Err(format!("{other:?} is no simulation")),
        }
    }
}

/// The name of a run: a hash of the version and of all that it depends on, each with its length, so
/// that no two texts run together.
fn id(cell: &GridCell, grid: &Grid, contents: &Contents) -> String {
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    add(env!("CARGO_PKG_VERSION").as_bytes());
    add(grid.loads_key().as_bytes());
    for (shelf, name) in [
        (Shelf::Topologies, &cell.topology),
        (Shelf::Policies, &cell.policy),
        (Shelf::Workloads, &cell.load),
    ] {
        add(name.as_bytes());
        add(&contents.hash(Some(shelf), name));
    }
    add(&cell.seed.to_le_bytes());
    for (name, value) in &cell.options {
        add(name.as_bytes());
        add(value.as_bytes());
        if FILES.contains(&name.as_str()) {
            add(&contents.hash(None, value));
        }
    }
    for (key, value) in &cell.set {
        ["set", key, value].into_iter().for_each(|text| add(text.as_bytes()));
    }
    hash.finalize().iter().take(NAME_BYTES).fold(String::new(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}
