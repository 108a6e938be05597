//! The command line: one file a subcommand. Data goes to stdout, everything else to stderr.

use std::path::Path;

use crate::config::ConfigError;

pub mod attach;
pub mod clean;
pub mod compare;
pub mod exec;
pub mod run;
pub mod simulate;
pub mod tables;
pub mod user_namespace;
pub mod workload;

/// Why a command ends without having done what was asked.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// It was tried and failed.
    #[error("{0}")]
    Failed(String),
    /// An input makes no sense.
    #[error("{0}")]
    Invalid(String),
}

impl From<ConfigError> for CliError {
    fn from(e: ConfigError) -> Self {
        Self::Invalid(e.to_string())
    }
}

impl CliError {
    /// The exit code: 1 failed, 3 invalid input.
    pub fn code(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Invalid(_) => 3,
        }
    }
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Table,
    /// Everything, for programs.
    Json,
    /// The table's rows, for spreadsheets.
    Csv,
}

/// A file as text.
///
/// # Errors
/// When it cannot be read, or is not UTF-8.
pub fn read_text(file: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(file).map_err(|e| CliError::Invalid(format!("{}: {e}", file.display())))
}

/// Writes a file.
///
/// # Errors
/// When it cannot be written.
pub fn write_text(file: &Path, text: &str) -> Result<(), CliError> {
    std::fs::write(file, text).map_err(|e| CliError::Failed(format!("{}: {e}", file.display())))
}
