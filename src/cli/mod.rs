//! The command line: one file a subcommand. Data goes to stdout, everything else to stderr.
//!
//! A new subcommand is a file with `Args` and `run(&Args)`, its `pub mod`, and its line in
//! `commands!` below.

use std::io::{self, Write as _};

pub use files::{
    can_draw, can_write, read_policy, read_policy_with, read_result, read_text, read_topology,
    read_topology_with, read_workload, write_bytes, write_sheet, write_text,
};

use crate::config::ConfigError;
use crate::kernel::sys::closed;
use crate::text;

pub mod apart;
pub mod attach;
pub mod capture;
pub mod caveats;
mod changes;
pub mod check;
pub mod clean;
pub mod client;
pub mod compare;
pub mod completions;
pub mod copy;
pub mod decisions;
pub mod doctor;
mod event_log;
pub mod exec;
pub mod experiment;
pub mod explain;
pub mod files;
mod given;
pub mod interrupt;
pub mod jobs;
pub mod lab;
pub mod limits;
pub mod list;
pub mod log;
pub mod logs;
mod machine;
pub mod man;
pub mod memory;
mod numbers;
pub mod origin;
pub mod outcome;
pub mod plan;
pub mod plot;
pub mod progress;
pub mod ps;
pub mod record;
pub mod replay;
pub mod report;
pub mod results;
mod rows;
pub mod run;
pub mod running;
pub mod schedule;
pub mod set;
pub mod show;
pub mod simulate;
mod sketch;
pub mod spark;
pub mod stop;
pub mod study;
pub mod summary;
pub mod sweep;
mod swept;
pub mod tables;
pub mod timeline;
pub mod traffic;
pub mod user_namespace;
pub mod workload;

/// Names the subcommands: the variant of [`Command`] and its module.
macro_rules! commands {
    ($($variant:ident => $module:ident),* $(,)?) => {
        /// The subcommands.
        #[derive(clap::Subcommand, Debug)]
        #[allow(clippy::large_enum_variant, reason = "there is one, and it is made once")]
        #[allow(missing_docs, reason = "each module says what its subcommand does")]
        pub enum Command {
            $($variant($module::Args)),*
        }

        impl Command {
            /// Runs the subcommand.
            ///
            /// # Errors
            /// Why it did not do what was asked.
            pub fn run(&self) -> Result<(), CliError> {
                match self {
                    $(Self::$variant(args) => $module::run(args)),*
                }
            }
        }
    };
}

impl Command {
    /// Whether this process is one that was put in the background.
    pub fn is_in_the_background(&self) -> bool {
        matches!(self, Self::Run(args) if args.detached)
    }
}

commands! {
    Run => run,
    Schedule => schedule,
    Ps => ps,
    Stop => stop,
    Logs => logs,
    Exec => exec,
    Capture => capture,
    Traffic => traffic,
    Spark => spark,
    Show => show,
    Set => set,
    Check => check,
    Simulate => simulate,
    Replay => replay,
    Compare => compare,
    Sweep => sweep,
    Plan => plan,
    Experiment => experiment,
    Workload => workload,
    Plot => plot,
    Report => report,
    Doctor => doctor,
    Clean => clean,
    List => list,
    Copy => copy,
    Lab => lab,
    Completions => completions,
    Man => man,
}

/// SDN controller and optical-circuit-switch manager for hybrid networks
///
/// Exit codes: 0 done, 1 failed, 2 wrong usage, 3 invalid input, 4 daemon unreachable, 5 timed out.
///
/// HELIOSTAT_MEMORY in the environment is the memory that runs may take, such as 8GB, whatever is
/// free.
#[derive(clap::Parser, Debug)]
#[command(name = "heliostat", version)]
pub struct Cli {
    /// What goes to the log on stderr: error, warn, info, debug, trace, or a filter such as
    /// heliostat_run=debug [default: $HELIOSTAT_LOG, or info]
    #[arg(long, global = true, value_name = "FILTER")]
    pub log: Option<String>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Why a command ends without having done what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CliError {
    /// It was tried and failed.
    #[error("{0}")]
    Failed(String),
    /// The arguments do not go together, in a way that the parser cannot see.
    #[error("{0}")]
    Usage(String),
    /// An input makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// No daemon answers.
    #[error("{0}")]
    Unreachable(String),
    /// It took too long.
    #[error("{0}")]
    TimedOut(String),
    /// A program could not be started, and the exit code of shells for that: 127 there is none, 126
    /// it may not be run.
    #[error("{0}")]
    NotStarted(String, u8),
}

impl From<ConfigError> for CliError {
    fn from(e: ConfigError) -> Self {
        Self::Invalid(e.to_string())
    }
}

impl CliError {
    /// What another process of this program ended with.
    pub fn of_code(code: Option<i32>, why: String) -> Self {
        match code {
            Some(2) => Self::Usage(why),
            Some(3) => Self::Invalid(why),
            Some(4) => Self::Unreachable(why),
            Some(5) => Self::TimedOut(why),
            _ => Self::Failed(why),
        }
    }

    /// The exit code: 1 failed, 2 usage, 3 invalid input, 4 daemon unreachable, 5 timed out, 126
    /// and 127 of `exec`.
    pub fn code(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Invalid(_) => 3,
            Self::Unreachable(_) => 4,
            Self::TimedOut(_) => 5,
            Self::NotStarted(_, code) => *code,
        }
    }
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum OutputFormat {
    /// For people.
    #[default]
    Table,
    /// Everything, for programs.
    Json,
    /// The table's rows, for spreadsheets.
    Csv,
}

/// How tables are printed that may go into a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum DocumentOutput {
    /// For people
    #[default]
    Table,
    /// Everything, for programs
    Json,
    /// Exact numbers, for spreadsheets
    Csv,
    /// The tables, for documents in Markdown
    Markdown,
    /// The tables, for papers; what else is said is a comment
    Latex,
}

impl From<OutputFormat> for DocumentOutput {
    fn from(o: OutputFormat) -> Self {
        match o {
            OutputFormat::Table => Self::Table,
            OutputFormat::Json => Self::Json,
            OutputFormat::Csv => Self::Csv,
        }
    }
}

/// Writes to stdout, with codes for what would move a terminal's cursor in it. A reader that has
/// gone away (`| head`) has seen enough: that is no error.
///
/// # Errors
/// When stdout cannot be written.
pub fn print(text: &str) -> Result<(), CliError> {
    write_stdout(&text::printed(text))
}

/// The same of what is ours alone, such as what clears the terminal.
fn write_stdout(text: &str) -> Result<(), CliError> {
    if closed::stdout_was_closed() && !text.is_empty() {
        return Err(CliError::Failed("stdout: it is closed".into()));
    }
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::Failed(format!("stdout: {}", crate::runtime::open::plain(&e))))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    mod parsers;

    use clap::{CommandFactory, Parser};

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        for bad in [
            &["heliostat"][..],
            &["heliostat", "show"],
            &["heliostat", "show", "x"],
            &["heliostat", "check", "--schema", "x"],
        ] {
            assert_eq!(Cli::try_parse_from(bad).unwrap_err().exit_code(), 2, "{bad:?}");
        }
    }
}
