//! `--record`: what a run's machines hear and want goes to a file, for `heliostat replay`.

use std::path::PathBuf;

use super::CliError;
use crate::runtime::open;
use crate::runtime::record::{Pace, Recorder, Recording};

/// The options of a run that can be recorded.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct RecordArgs {
    /// Also writes every event and action of the controller and the scheduler to this file, for
    /// `heliostat replay`
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    record: Option<PathBuf>,
}

impl RecordArgs {
    /// Whether the run is recorded.
    pub fn is_some(&self) -> bool {
        self.record.is_some()
    }

    /// Does something that can be recorded, and ends the file whatever came of it.
    ///
    /// # Errors
    /// A file that cannot be written, or what is done fails.
    pub fn around<T>(
        &self,
        pace: Pace,
        seed: Option<u64>,
        work: impl FnOnce(Option<&Recorder>) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let Some(file) = &self.record else { return work(None) };
        let name = file.display();
        let fail = |e: std::io::Error| CliError::Failed(format!("--record {name}: {e}"));
        let recording = Recording::start(open::to_write(file, false).map_err(fail)?, pace, seed)
            .map_err(fail)?;
        let done = work(Some(&recording.recorder()));
        let written = recording.finish().map_err(fail);
        if let Ok(w) = &written {
            tracing::info!("{name}: {} lines, {} bytes recorded", w.lines, w.bytes);
            if let Some(why) = &w.lost {
                tracing::warn!("{name} ends before the run did: {why}");
            }
        }
        // Why the run failed matters more than why its recording did.
        done.and_then(|value| written.map(|_| value))
    }
}
