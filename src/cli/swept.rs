//! What a sweep has left in its directory, for commands that read results: the list of its runs, in
//! the order of its grid.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::CliError;
use super::files::unread;
use super::log::say;
use crate::runtime::open;

/// Bytes of the longest list that is read.
pub const MOST: u64 = 1 << 30;

/// The file of the list, a line of JSON for each run.
pub const LIST: &str = "runs.jsonl";

/// The files of the results that the sweep which ran last in a directory has left there, in the
/// order of its grid; `None` where none ran. Says how many of its runs have left none.
///
/// # Errors
/// A list of runs that cannot be read or makes no sense.
pub fn results(directory: &Path) -> Result<Option<Vec<PathBuf>>, CliError> {
    #[derive(Deserialize)]
    struct Run {
        id: String,
    }
    let file = directory.join(LIST);
    if !file.is_file() {
        return Ok(None);
    }
    let text = open::text(&file, MOST).map_err(|e| unread(&file, &e))?;
    let run = |(k, line)| {
        serde_json::from_str(line)
            .map_err(|e| CliError::Invalid(format!("{}:{}: {e}", file.display(), k + 1)))
    };
    let runs: Vec<Run> = text.lines().enumerate().map(run).collect::<Result<_, _>>()?;
    let of = |r: &Run| directory.join(format!("{}.json", r.id));
    let done: Vec<PathBuf> = runs.iter().map(of).filter(|f| f.is_file()).collect();
    let lacking = runs.len() - done.len();
    if lacking > 0 {
        say!(
            "note: {}: {lacking} of {} runs of its sweep have failed or are missing, and are left out",
            directory.display(),
            runs.len()
        );
    }
    Ok(Some(done))
}
