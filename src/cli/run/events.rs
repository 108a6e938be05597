//! `heliostat run --events`: the controller's event log as a file that grows while the network runs.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::oneshot;

use crate::cli::CliError;
use crate::control::record::Record;

/// The thread that writes the file.
pub struct EventFile {
    path: PathBuf,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<io::Result<u64>>,
}

impl EventFile {
    /// Writes every event that is received from now on: a line of JSON each, as `simulate --events` does.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn start(path: &Path, events: Receiver<Arc<Record>>) -> Result<Self, CliError> {
        let failed = |e: io::Error| CliError::Failed(format!("{}: {e}", path.display()));
        let file = BufWriter::new(File::create(path).map_err(failed)?);
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(failed)?;
        let work = move || runtime.block_on(write(file, events, stopped));
        let thread = std::thread::Builder::new().name("events".into()).spawn(work).map_err(failed)?;
        Ok(Self { path: path.into(), stop, thread })
    }

    /// Writes what is there still, and ends.
    ///
    /// # Errors
    /// The file could not be written; or the disk was so slow that events are missing, which are counted.
    pub fn finish(self) -> Result<(), CliError> {
        let _ = self.stop.send(());
        let written = self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that wrote it has died")));
        match written {
            Ok(0) => Ok(()),
            Ok(missing) => Err(CliError::Failed(format!("{}: {missing} events are missing: the disk was too slow", self.path.display()))),
            Err(e) => Err(CliError::Failed(format!("{}: {e}", self.path.display()))),
        }
    }
}

/// Writes events until told to stop, or until there can be no more; gives the number of those that were dropped before they were read.
async fn write(mut file: impl Write, mut events: Receiver<Arc<Record>>, mut stopped: oneshot::Receiver<()>) -> io::Result<u64> {
    let mut missing = 0;
    loop {
        let event = tokio::select! {
            _ = &mut stopped => break,
            event = events.recv() => event,
        };
        match event {
            Ok(record) => line(&mut file, &record)?,
            Err(RecvError::Lagged(n)) => missing += n,
            Err(RecvError::Closed) => break,
        }
    }
    loop {
        match events.try_recv() {
            Ok(record) => line(&mut file, &record)?,
            Err(TryRecvError::Lagged(n)) => missing += n,
            Err(TryRecvError::Empty | TryRecvError::Closed) => break,
        }
    }
    file.flush()?;
    Ok(missing)
}

fn line(file: &mut impl Write, record: &Record) -> io::Result<()> {
    serde_json::to_writer(&mut *file, record)?;
    file.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::record::What;
    use crate::units::Time;

    fn record(seq: u64) -> Arc<Record> {
        Arc::new(Record { seq, at: Time(seq), what: What::PolicyChanged { name: "x".into() } })
    }

    #[test]
    fn every_event_is_a_line_and_those_that_are_missing_are_counted() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let read = || {
            let text = std::fs::read_to_string(file.path()).expect("text");
            text.lines().map(|l| serde_json::from_str::<Record>(l).expect("a record").seq).collect::<Vec<_>>()
        };
        let (events, received) = tokio::sync::broadcast::channel(4);
        (0..4).for_each(|n| drop(events.send(record(n))));
        EventFile::start(file.path(), received).expect("started").finish().expect("written");
        assert_eq!(read(), [0, 1, 2, 3]);

        let received = events.subscribe();
        (0..7).for_each(|n| drop(events.send(record(n))));
        let why = EventFile::start(file.path(), received).expect("started").finish().expect_err("three are missing").to_string();
        assert!(why.contains("3 events are missing"), "{why}");
        assert_eq!(read(), [3, 4, 5, 6]);
    }
}
