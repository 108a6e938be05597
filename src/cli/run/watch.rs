//! `heliostat run --watch`: a policy file that is written again decides from then on.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::cli::client::Where;
use crate::cli::{CliError, set};

/// What tells two states of a file apart: inode, size, and when it was written, in seconds and
/// nanoseconds.
type FileStamp = (u64, u64, i64, i64);

/// A policy file, looked at again and again.
pub struct PolicyFile {
    file: PathBuf,
    /// Its state when it was taken, or refused.
    taken: Option<FileStamp>,
    /// Its state at the last look.
    seen: Option<FileStamp>,
}

impl PolicyFile {
    /// Watches a file from its present state on.
    ///
    /// # Errors
    /// It is no file, such as the name of a shipped policy.
    pub fn new(file: &Path) -> Result<Self, CliError> {
        let now = state(file);
        let none = || {
            CliError::Usage(format!(
                "--watch: there is no file {}; a shipped policy never changes",
                file.display()
            ))
        };
        now.is_some().then(|| Self { file: file.into(), taken: now, seen: now }).ok_or_else(none)
    }

    /// Takes the file if it was written again, and has not changed since the last look: it may be
    /// half written. One that is missing, makes no sense or changes what was fixed at the start
    /// changes nothing, which is said once.
    pub fn look(&mut self, daemon: &Where) {
        let now = state(&self.file);
        let holds = std::mem::replace(&mut self.seen, now) == now;
        if now.is_none() || !holds || now == self.taken {
            return;
        }
        self.taken = now;
        let file = self.file.display();
        match set::policy(daemon, &self.file) {
            Ok(name) => {
                tracing::info!("{file} was written again: the policy `{name}` decides from now on")
            }
            Err(e) => tracing::error!("{file} was written again, and changes nothing: {e}"),
        }
    }
}

fn state(file: &Path) -> Option<FileStamp> {
    let m = std::fs::metadata(file).ok()?;
    Some((m.ino(), m.size(), m.mtime(), m.mtime_nsec()))
}
