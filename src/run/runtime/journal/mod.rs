//! A daemon's records on disk: its event log, and what became of coflows. After a restart, also
//! after a kill, another one goes on from them.
//!
//! A thread appends a line for every event, and one with all of a coflow when it begins and when it
//! has ended. Readers of the event stream hear of an event, and clients are answered that a coflow
//! was made, once that is in the file: what was answered is found again. The control loop never
//! waits for the disk.
//!
//! One file holds all. When it reaches [`SIZE`], or twice its length after the last time if that is
//! more, it is written again with what is remembered by then, beside the old one, and takes its
//! place. A disk that is full is reported as a failure; what it refuses is kept in memory and
//! written when there is room again. The largest numbers that were given are in a small file that
//! is written in place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{broadcast, mpsc, oneshot};

use super::handle::Handle;
use super::lines::LineFile;
use crate::control::record::Record;
use crate::topology::Topology;

mod file;
#[cfg(test)]
mod tests;
mod work;

pub use file::{EVENTS, IdempotencyKey, JournalContents, JournalError, KEYS};
use work::{JournalThread, RefusedLines};

/// Bytes from which on the file is written again.
pub const SIZE: u64 = 64 << 20;
/// Bytes of lines that wait for a full disk. Beyond that they are dropped, and the file is written
/// again when there is room.
const WAITING: usize = 1 << 20;
/// Time between two tries to write a file again on a full disk.
const AGAIN: Duration = Duration::from_secs(1);

/// A journal that is open and has been read; no other process can open it.
pub struct Journal {
    directory: PathBuf,
    files: file::Opened,
    topology: Arc<Topology>,
    size: u64,
}

impl Journal {
    /// Opens the journal in a directory, which is made if there is none, and reads what is there.
    ///
    /// # Errors
    /// It cannot be read, is not one, is of another network, or another daemon has it.
    pub fn open(directory: &Path, topology: Arc<Topology>) -> Result<Self, JournalError> {
        let files = file::open(directory, &topology)?;
        Ok(Self { directory: directory.into(), files, topology, size: SIZE })
    }

    /// What was found.
    pub fn found(&self) -> &JournalContents {
        &self.files.found
    }

    /// Starts the thread that writes. `events` are all events of the controller since it
    /// began.
    ///
    /// # Errors
    /// When the file cannot be cut after its last whole line, or no thread be had.
    pub fn start(
        self,
        controller: &Handle,
        events: broadcast::Receiver<Arc<Record>>,
    ) -> Result<Writing, JournalError> {
        let path = file::path(&self.directory);
        let fails = |why| JournalError::Io { file: path.clone(), why };
        let work = self.work(controller)?;
        let (told, tellings) = broadcast::channel(EVENTS);
        let (ask, asks) = mpsc::unbounded_channel();
        let journal = Journaled {
            events: work.events.iter().cloned().collect(),
            keys: work.keys.iter().cloned().collect(),
            told: Arc::new(Mutex::new(Some(tellings))),
            ask,
            written: work.written.clone(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(fails)?;
        let body = move || runtime.block_on(work::run(work, events, asks, told));
        let thread =
            std::thread::Builder::new().name("journal".into()).spawn(body).map_err(fails)?;
        Ok(Writing { journal, thread })
    }

    /// What the thread begins with. A file that is empty gets its head.
    fn work(self, controller: &Handle) -> Result<JournalThread, JournalError> {
        let path = file::path(&self.directory);
        let found = self.files.found;
        let file = LineFile::new(&path, self.files.file, self.files.length)
            .map_err(|why| JournalError::Io { file: path, why })?;
        let mut work = JournalThread {
            ended: found.past.closed.total(),
            next: found.past.seq,
            directory: self.directory,
            topology: self.topology,
            controller: controller.clone(),
            mark: self.files.mark,
            lock: self.files.lock,
            events: found.events,
            keys: found.keys,
            begun: BTreeMap::new(),
            refused: RefusedLines::default(),
            missing: 0,
            written: Arc::new(JournalStatus {
                lost: found.past.open.len() as u64,
                ..JournalStatus::default()
            }),
            limit: (self.size, self.size),
            file,
        };
        if work.file.length() == 0 {
            let written = work.rewrite(&controller.snapshot());
            // Lines may only follow a head.
            work.refused.holed = written.is_err();
            work.say(written.err());
        }
        work.written.bytes.store(work.file.length(), Relaxed);
        Ok(work)
    }
}

/// A journal that is being written.
pub struct Writing {
    /// How the API speaks to it.
    pub journal: Journaled,
    thread: JoinHandle<u64>,
}

impl Writing {
    /// Whether the thread still writes.
    pub fn is_alive(&self) -> bool {
        !self.thread.is_finished()
    }

    /// Writes what is there still, once the controller has ended; gives the number of events that
    /// are not in the file.
    ///
    /// # Errors
    /// The thread has died.
    pub fn finish(self) -> Result<u64, String> {
        // An error says that the thread has ended already, which the next line finds out, too.
        let _ = self.journal.ask.send(JournalRequest::End);
        self.thread.join().map_err(|_| "the thread that writes the journal has died".into())
    }
}

/// What the API needs of a journal. Cheap to clone.
#[derive(Clone)]
pub struct Journaled {
    /// The last events of earlier daemons.
    pub events: Arc<[Arc<Record>]>,
    /// The last keys that they were given.
    pub keys: Arc<[IdempotencyKey]>,
    told: Arc<Mutex<Option<broadcast::Receiver<Arc<Record>>>>>,
    ask: mpsc::UnboundedSender<JournalRequest>,
    /// What the thread has written.
    pub written: Arc<JournalStatus>,
}

/// What a journal has come to, for those that watch.
#[derive(Debug, Default)]
pub struct JournalStatus {
    /// Size of the file.
    pub bytes: AtomicU64,
    /// Events that no file will have.
    pub missing: AtomicU64,
    /// Coflows that were open when the daemon before this one ended.
    pub lost: u64,
}

enum JournalRequest {
    /// Says when all that the controller has told is in the file, or refused by the disk.
    Commit(oneshot::Sender<()>),
    Key(IdempotencyKey),
    /// Nothing more will come.
    End,
}

impl Journaled {
    /// Events that are in the file, from the first of this daemon on; for one reader.
    pub fn told(&self) -> Option<broadcast::Receiver<Arc<Record>>> {
        self.told.lock().take()
    }

    /// Waits until what the controller has told is in the file, or the disk has refused it.
    pub async fn commit(&self) {
        let (done, wait) = oneshot::channel();
        // Without the thread the daemon ends, and says so.
        if self.ask.send(JournalRequest::Commit(done)).is_ok() {
            let _ = wait.await;
        }
    }

    /// Keeps a request's key.
    pub fn keep(&self, key: IdempotencyKey) {
        let _ = self.ask.send(JournalRequest::Key(key));
    }
}
