//! The thread that writes a recording: drivers only put lines into a queue.

use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{FORMAT, RecordingEntry, RecordingHead};
use crate::runtime::settings::RunPlan;
use crate::topology::Topology;
use crate::units::{Span, Time};

/// The most lines that wait for the disk.
const QUEUE: usize = 1 << 14;
/// Longest time until what was written reaches the file while nothing happens.
const FLUSH_EVERY: Duration = Duration::from_millis(200);

/// What a driver does when the queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Goes on: time does not wait. The recording ends there, and says so.
    Live,
    /// Waits: virtual time does.
    Virtual,
}

/// Takes lines. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Recorder {
    lines: SyncSender<RecordingMessage>,
    pace: Pace,
    seed: Option<u64>,
    lost: Arc<AtomicBool>,
    ended: Arc<OnceLock<String>>,
    died: Arc<AtomicBool>,
}

/// Held by the thread that writes: notes its panic.
struct PanicFlag(Arc<AtomicBool>);

impl Drop for PanicFlag {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Relaxed);
        }
    }
}

enum RecordingMessage {
    Line(Box<RecordingEntry>),
    /// Nothing more will come.
    Over,
}

/// A recording under way. Dropping it ends the file as [`Recording::finish`] does.
pub struct Recording {
    recorder: Recorder,
    thread: Option<JoinHandle<io::Result<RecordingSummary>>>,
}

/// What a recording came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingSummary {
    /// Lines, the last one included.
    pub lines: u64,
    /// Bytes.
    pub bytes: u64,
    /// Why it ends before the run did.
    pub lost: Option<String>,
}

impl Recording {
    /// Starts to write to `file`. `seed` is what the run's inputs were drawn from, if they were
    /// drawn.
    ///
    /// # Errors
    /// When no thread can be had.
    pub fn start(
        file: impl Write + Send + 'static,
        pace: Pace,
        seed: Option<u64>,
    ) -> io::Result<Self> {
        let (lines, queue) = mpsc::sync_channel(QUEUE);
        let lost = Arc::new(AtomicBool::new(false));
        let ended: Arc<OnceLock<String>> = Arc::default();
        let died = Arc::<AtomicBool>::default();
        let recorder = Recorder {
            lines,
            pace,
            seed,
            lost: lost.clone(),
            ended: ended.clone(),
            died: died.clone(),
        };
        let work = move || {
            let _alarm = PanicFlag(died);
            let written = write(file, &queue, &lost);
            if let Err(e) = &written {
                tracing::warn!("the recording ends here: {e}; the run goes on");
                let _ = ended.set(e.to_string());
            }
            written
        };
        let thread = std::thread::Builder::new().name("recorder".into()).spawn(work)?;
        Ok(Self { recorder, thread: Some(thread) })
    }

    /// Where drivers put lines.
    pub fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// Ends the file. What is put after that is dropped.
    ///
    /// # Errors
    /// What the disk refused; the file then ends somewhere before.
    pub fn finish(mut self) -> io::Result<RecordingSummary> {
        self.close()
    }

    fn close(&mut self) -> io::Result<RecordingSummary> {
        let Some(thread) = self.thread.take() else { return Ok(RecordingSummary::default()) };
        // An error says that the thread has ended already, which the next line finds out, too.
        let _ = self.recorder.lines.send(RecordingMessage::Over);
        thread.join().unwrap_or_else(|_| {
            Err(io::Error::other("the thread that writes the recording has died"))
        })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

impl Recorder {
    /// Why the recording has ended before the run, if it has.
    pub fn ended(&self) -> Option<&str> {
        let slow = || self.lost.load(Relaxed).then_some("the disk is too slow for it");
        self.ended.get().map(String::as_str).or_else(slow)
    }

    /// Whether the thread that writes has panicked. One that cannot write only ends
    /// ([`Recorder::ended`]), and the run goes on.
    pub fn died(&self) -> bool {
        self.died.load(Relaxed)
    }

    /// The first line of a run. `timing`: when its first cycle begins, and the notice that its
    /// fabric needs.
    pub fn head(
        &self,
        topology: &Topology,
        plan: &RunPlan,
        timing: (Time, Span),
        mechanism: &str,
    ) -> RecordingHead {
        RecordingHead {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            mechanism: mechanism.into(),
            seed: self.seed,
            topology: topology.clone(),
            plan: plan.clone(),
            start: timing.0,
            notice: timing.1,
        }
    }

    /// Puts a line. It costs about a microsecond, and waits only in virtual time.
    pub fn put(&self, entry: RecordingEntry) {
        if self.lost.load(Relaxed) {
            return;
        }
        let line = RecordingMessage::Line(Box::new(entry));
        match self.pace {
            // Either way an error says that the file cannot be written, which `finish` tells.
            Pace::Virtual => drop(self.lines.send(line)),
            // The control thread has real-time priority, the thread that writes has none. While the
            // queue has room, the control thread never waits for it: the place of its line is its
            // own. With 16383 lines waiting it could spin at the one that is just taken out; the
            // disk is then too slow already, and the recording about to end.
            Pace::Live => {
                if let Err(TrySendError::Full(_)) = self.lines.try_send(line)
                    && !self.lost.swap(true, Relaxed)
                {
                    tracing::warn!(
                        "the disk is too slow for the recording, which ends here; the run goes on"
                    );
                }
            }
        }
    }
}

/// Counts what is written.
struct CountingWriter<W> {
    inner: W,
    bytes: u64,
}

impl<W: Write> Write for CountingWriter<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(buf)?;
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The file, line by line.
struct RecordingFile<W: Write> {
    file: BufWriter<CountingWriter<W>>,
    count: u64,
}

impl<W: Write> RecordingFile<W> {
    fn put(&mut self, entry: &RecordingEntry) -> io::Result<()> {
        serde_json::to_writer(&mut self.file, entry)?;
        self.count += 1;
        self.file.write_all(b"\n")
    }
}

fn write(
    file: impl Write,
    queue: &mpsc::Receiver<RecordingMessage>,
    lost: &AtomicBool,
) -> io::Result<RecordingSummary> {
    let mut out = RecordingFile {
        file: BufWriter::with_capacity(1 << 16, CountingWriter { inner: file, bytes: 0 }),
        count: 0,
    };
    loop {
        match queue.recv_timeout(FLUSH_EVERY) {
            Ok(RecordingMessage::Line(entry)) => out.put(&entry)?,
            Ok(RecordingMessage::Over) | Err(RecvTimeoutError::Disconnected) => break,
            // All that was put before the loss is written: the queue is empty.
            Err(RecvTimeoutError::Timeout) if lost.load(Relaxed) => break,
            Err(RecvTimeoutError::Timeout) => out.file.flush()?,
        }
    }
    let why = lost
        .load(Relaxed)
        .then(|| format!("the disk was slower than the run: {QUEUE} lines waited for it"));
    match why.clone() {
        Some(why) => out.put(&RecordingEntry::Lost { why })?,
        None => out.put(&RecordingEntry::End { lines: out.count })?,
    }
    out.file.flush()?;
    Ok(RecordingSummary { lines: out.count, bytes: out.file.get_ref().bytes, lost: why })
}
