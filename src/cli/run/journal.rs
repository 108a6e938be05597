//! `heliostat run --journal`: the daemon's records, opened before the network is built and closed
//! after its end.

use std::path::Path;
use std::sync::Arc;

use crate::cli::CliError;
use crate::runtime::emulation::Emulation;
use crate::runtime::journal::{Journal, JournalError, Writing};
use crate::topology::Topology;

/// Damaged lines that are reported one by one.
const SHOWN: usize = 5;

/// Opens the journal in a directory, and says what it holds.
///
/// # Errors
/// It cannot be used.
pub fn open(directory: &Path, topology: &Arc<Topology>) -> Result<Journal, CliError> {
    let journal = Journal::open(directory, topology.clone()).map_err(refused)?;
    let (found, name) = (journal.found(), directory.display());
    if found.torn > 0 {
        tracing::warn!(
            "{name}: the last record was cut off when the daemon ended; its {} bytes are dropped",
            found.torn
        );
    }
    for (line, column, why) in found.damaged.iter().take(SHOWN) {
        tracing::warn!(
            "{name}: line {line}, column {column} of the journal is damaged, and what it says is lost: {why}"
        );
    }
    if let Some(more) = found.damaged.len().checked_sub(SHOWN + 1) {
        tracing::warn!("{name}: {} more lines are damaged", more + 1);
    }
    if found.unmarked {
        tracing::warn!(
            "{name}: mark.json is damaged: numbers of coflows go on behind those in the journal"
        );
    }
    if found.past.seq > 0 {
        let (ended, lost) = (found.past.closed.total(), found.past.open.len());
        tracing::info!(
            "{name}: {ended} coflows had ended, {lost} had not and are lost; events go on at {}",
            found.past.seq
        );
    }
    Ok(journal)
}

/// Starts to write it.
///
/// # Errors
/// It cannot be written, or no thread be had.
pub fn start(journal: Journal, e: &Emulation) -> Result<Writing, CliError> {
    let events = e.live.first_events.lock().take().unwrap_or_else(|| e.live.handle.events());
    journal.start(&e.live.handle, events).map_err(refused)
}

/// Waits for the last record.
///
/// # Errors
/// Events are missing.
pub fn finish(writing: Writing) -> Result<(), CliError> {
    match writing.finish() {
        Ok(0) => Ok(()),
        Ok(missing) => Err(CliError::Failed(format!(
            "the journal lacks {missing} events: the disk was full, or too slow"
        ))),
        Err(why) => Err(CliError::Failed(why)),
    }
}

fn refused(e: JournalError) -> CliError {
    let text = format!("--journal {e}");
    match e {
        JournalError::Io { .. } | JournalError::Held(_) => CliError::Failed(text),
        JournalError::Bad { .. } | JournalError::OtherNetwork { .. } => CliError::Invalid(text),
    }
}
