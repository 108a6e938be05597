//! The list of runs that a sweep leaves in its directory, so that tables can be made of it without
//! the grid and its files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::runs::SweepRun;
use crate::cli::files::unread;
use crate::cli::swept::{LIST, MOST};
use crate::cli::{CliError, write_text};
use crate::runtime::open;

/// The list: a line of JSON for each run.
fn list(out: &Path) -> PathBuf {
    out.join(LIST)
}

/// Writes the list, if it is not there already: each of many shards and single runs comes by.
///
/// # Errors
/// When it cannot be written.
pub fn write(runs: &[SweepRun], out: &Path) -> Result<(), CliError> {
    let mut text = String::new();
    for run in runs {
        let line = serde_json::to_string(run).map_err(|e| CliError::Failed(e.to_string()))?;
        let _ = writeln!(text, "{line}");
    }
    let file = list(out);
    if open::text(&file, MOST).is_ok_and(|there| there == text) {
        Ok(())
    } else {
        write_text(&file, &text)
    }
}

/// The runs of the sweep that ran last in a directory.
///
/// # Errors
/// A directory without a list, and lines that are no runs.
pub fn read(out: &Path) -> Result<Vec<SweepRun>, CliError> {
    let file = list(out);
    let lacks = |e| {
        CliError::Invalid(format!(
            "{}; only `heliostat sweep` writes it: name the grid, too",
            unread(&file, &e)
        ))
    };
    let text = open::text(&file, MOST).map_err(lacks)?;
    let run = |(k, line)| {
        serde_json::from_str(line)
            .map_err(|e| CliError::Invalid(format!("{}:{}: {e}", file.display(), k + 1)))
    };
    text.lines().enumerate().map(run).collect()
}
