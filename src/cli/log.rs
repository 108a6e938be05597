//! What commands say on stderr: the lines of the log, and notes beside them. None of it can harm
//! what a command does.
//!
//! A reader of stderr may be gone, a disk under it may be full, and a pipe that no program reads is
//! full one day. Where text cannot be written the command goes on. Most commands write at once. One
//! that controls a network has a thread that writes for all its others, since each of them would
//! wait for a reader that does not read: the control loop at real-time priority, too. It also
//! writes what stands beside the log (progress, errors, panics), in the order in which it was said,
//! and says where lines are missing. `tracing-appender` has the lines of the log only, and says
//! nothing of losses.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use tracing_subscriber::EnvFilter;

use super::CliError;
use crate::runtime::queue;
use crate::text;

/// Bytes that wait for stderr at most: some thousand lines.
const ROOM: usize = 1 << 20;
/// How long the end waits for a reader that reads nothing.
const PATIENCE: Duration = Duration::from_secs(2);

/// What writes, once it does.
static LINES: OnceLock<LineQueue> = OnceLock::new();

/// Like `eprintln!`, but for a stderr that cannot be written: then nothing happens.
macro_rules! say {
    ($($text:tt)*) => { $crate::cli::log::write(&format!("{}\n", format_args!($($text)*))) };
}
pub(crate) use say;

/// Whether the environment asks for plain text (no-color.org).
pub fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
}

/// Starts the log, whose lines go to stderr, so that stdout has data only. Those of a process in
/// the background have times, in UTC.
///
/// # Errors
/// The filter makes no sense.
pub fn start(filter: Option<&str>, in_the_background: bool) -> Result<(), CliError> {
    let from_env = std::env::var("HELIOSTAT_LOG").ok();
    let filter = filter.or(from_env.as_deref()).unwrap_or("info");
    let filter =
        EnvFilter::try_new(filter).map_err(|e| CliError::Usage(format!("--log {filter}: {e}")))?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Stderr)
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal() && !no_color())
        .with_target(false);
    // A log in the background is read later; a terminal and the journal of systemd have times of
    // their own.
    if in_the_background {
        lines.init()
    } else {
        lines.without_time().init()
    }
    Ok(())
}

/// From here on a thread of its own writes what all others say, panics included, and no other waits
/// for stderr. [`flush`] must come before the end. Must not be called before a user namespace is
/// entered, which a process with two threads cannot.
///
/// # Errors
/// No thread can be had.
pub fn in_background() -> Result<(), CliError> {
    if LINES.get().is_some() {
        return Ok(());
    }
    let lines = io::stderr()
        .as_fd()
        .try_clone_to_owned()
        .and_then(|fd| LineQueue::start(File::from(fd), ROOM));
    // Only the main thread gets here, so there is none yet.
    let _ = LINES.set(lines.map_err(|e| CliError::Failed(format!("start the log: {e}")))?);
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        say!("thread '{}' {panic}", thread.name().unwrap_or("<unnamed>"));
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            say!("{trace}");
        }
        // These may be the last words of the process.
        flush();
    }));
    Ok(())
}

/// Writes a text, with codes for what would move a terminal's cursor. What cannot be written is
/// counted where a thread writes, and else dropped.
pub fn write(text: &str) {
    let text = &text::printed(text);
    match LINES.get() {
        Some(lines) => lines.put(text.as_bytes()),
        None => drop(io::stderr().write_all(text.as_bytes())),
    }
}

/// Says why a command ends, with the last line that it says: what threads log that have not heard
/// of it is dropped.
pub fn end(why: &CliError) {
    let text = text::lines_escaped(&format!("heliostat: {why}\n")).into_owned();
    match LINES.get() {
        Some(lines) => lines.put_last(text.as_bytes()),
        None => write(&text),
    }
}

/// Waits until all that was said is written, as long as some of it still is; for the end of the
/// process.
pub fn flush() {
    if let Some(lines) = LINES.get() {
        lines.flush(PATIENCE);
    }
}

/// Whether the thread that writes has died.
pub fn died() -> bool {
    LINES.get().is_some_and(|l| l.thread.is_finished())
}

/// The log's end of stderr.
struct Stderr;

impl Write for Stderr {
    /// Takes a whole line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match LINES.get() {
            Some(lines) => lines.put(line),
            None => drop(io::stderr().write_all(line)),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum LogMessage {
    Line {
        text: Vec<u8>,
        /// Lines before it that found no room.
        missing: u64,
        /// Whether none is written behind it.
        last: bool,
    },
    /// All before it is written when the other end hears of it.
    Flush { missing: u64, done: mpsc::Sender<()> },
}

/// Lines on their way to a file.
struct LineQueue {
    queue: queue::QueueSender<LogMessage>,
    /// Bytes that wait.
    waiting: Arc<AtomicUsize>,
    room: usize,
    /// Lines that found no room since the last that did.
    missing: AtomicU64,
    thread: JoinHandle<()>,
}

impl LineQueue {
    fn start(file: impl Write + Send + 'static, room: usize) -> io::Result<Self> {
        let ((queue, lines), waiting) = (queue::queue(), Arc::<AtomicUsize>::default());
        let written = waiting.clone();
        let work = move || {
            let mut out = Out { file, missing: 0, why: String::new(), cut: false };
            let mut ended = false;
            while let Ok(message) = lines.recv() {
                match message {
                    LogMessage::Line { text, missing, last } => {
                        if !ended {
                            out.line(&text, missing);
                        }
                        ended |= last;
                        written.fetch_sub(text.len(), Relaxed);
                    }
                    LogMessage::Flush { missing, done } => {
                        out.tell(missing);
                        let _ = done.send(());
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("log".into()).spawn(work)?;
        Ok(Self { queue, waiting, room, missing: AtomicU64::new(0), thread })
    }

    /// Puts lines, and waits for nothing. Where there is no room they are dropped.
    fn put(&self, text: &[u8]) {
        self.take(text, false);
    }

    /// The same with the last line: lines that are put later are not written.
    fn put_last(&self, text: &[u8]) {
        self.take(text, true);
    }

    fn take(&self, text: &[u8], last: bool) {
        let before = self.waiting.fetch_add(text.len(), Relaxed);
        if before + text.len() > self.room {
            self.waiting.fetch_sub(text.len(), Relaxed);
            self.missing.fetch_add(1, Relaxed);
            return;
        }
        // Without a reader of the queue there is no log any more.
        let _ = self.queue.send(LogMessage::Line {
            text: text.to_vec(),
            missing: self.missing.swap(0, Relaxed),
            last,
        });
    }

    /// Waits until all is written, or until nothing was written for as long as `patience`.
    fn flush(&self, patience: Duration) {
        let (done, heard) = mpsc::channel();
        if self
            .queue
            .send(LogMessage::Flush { missing: self.missing.swap(0, Relaxed), done })
            .is_err()
        {
            return;
        }
        let mut waiting = self.waiting.load(Relaxed);
        while heard.recv_timeout(patience) == Err(mpsc::RecvTimeoutError::Timeout) {
            let before = std::mem::replace(&mut waiting, self.waiting.load(Relaxed));
            if waiting >= before {
                return;
            }
        }
    }
}

/// A file of lines that says where lines are missing.
struct Out<W> {
    file: W,
    /// Lines that are missing since the last that was written.
    missing: u64,
    /// Why the last of them could not be written.
    why: String,
    /// Whether a line was cut off by an error.
    cut: bool,
}

impl<W: Write> Out<W> {
    /// Writes lines, of which `missing` before them never came.
    fn line(&mut self, text: &[u8], missing: u64) {
        if !self.tell(missing) || !self.whole(text) {
            self.missing += 1;
        }
    }

    /// Tells how many lines are missing, if there are any; false when that cannot be written
    /// either.
    fn tell(&mut self, more: u64) -> bool {
        if more > 0 {
            self.missing += more;
            self.why = "stderr was not read".into();
        }
        if self.missing == 0 {
            return true;
        }
        let (begin, lines) =
            (if self.cut { "\n" } else { "" }, if self.missing == 1 { "line" } else { "lines" });
        let are = if self.missing == 1 { "is" } else { "are" };
        let note = format!(
            "{begin}heliostat: {} {lines} of the log {are} missing here: {}\n",
            self.missing, self.why
        );
        let told = self.whole(note.as_bytes());
        if told {
            (self.missing, self.cut) = (0, false);
        }
        told
    }

    fn whole(&mut self, mut text: &[u8]) -> bool {
        let whole = text.len();
        while !text.is_empty() {
            match self.file.write(text) {
                Ok(n) if n > 0 => text = &text[n..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                failed => {
                    self.why =
                        failed.map_or_else(|e| e.to_string(), |_| "no byte was taken".into());
                    self.cut |= text.len() < whole;
                    return false;
                }
            }
        }
        true
    }
}

impl fmt::Debug for LineQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use parking_lot::Mutex;

    use super::*;

    /// A file that takes, for each write, as many bytes as it is set to, or fails.
    struct FakeFile {
        takes: Receiver<Result<usize, io::ErrorKind>>,
        text: Arc<Mutex<String>>,
    }

    impl Write for FakeFile {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // All, once it is set to nothing more.
            let n = self
                .takes
                .recv()
                .unwrap_or(Ok(usize::MAX))
                .map_err(io::Error::from)?
                .min(bytes.len());
            self.text.lock().push_str(std::str::from_utf8(&bytes[..n]).expect("text"));
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn lines(room: usize) -> (LineQueue, Sender<Result<usize, io::ErrorKind>>, Arc<Mutex<String>>) {
        let ((tell, takes), text) = (channel(), Arc::<Mutex<String>>::default());
        (
            LineQueue::start(FakeFile { takes, text: text.clone() }, room).expect("a thread"),
            tell,
            text,
        )
    }

    const ALL: Result<usize, io::ErrorKind> = Ok(usize::MAX);
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_file_that_takes_nothing_costs_lines_which_are_counted_where_they_are_missing() {
        let (log, tell, text) = lines(12);
        for line in ["one\n", "two\n", "three\n", "four\n"] {
            log.put(line.as_bytes());
        }
        // There is room for eight bytes of the first two, and not for the others.
        log.flush(Duration::from_millis(1));
        assert_eq!(*text.lock(), "");
        (0..3).for_each(|_| tell.send(ALL).expect("a reader"));
        log.flush(LONG);
        log.put(b"five\n");
        drop(tell);
        log.flush(LONG);
        assert_eq!(
            *text.lock(),
            "one\ntwo\nheliostat: 2 lines of the log are missing here: stderr was not read\nfive\n"
        );
        assert_eq!(log.waiting.load(Relaxed), 0);
    }

    #[test]
    fn nothing_is_written_behind_the_last_line() {
        let (log, tell, text) = lines(ROOM);
        drop(tell);
        log.put(b"one\n");
        log.put_last(b"why it ends\n");
        log.put(b"from a thread that has not heard of it\n");
        log.flush(LONG);
        assert_eq!((&**text.lock(), log.waiting.load(Relaxed)), ("one\nwhy it ends\n", 0));
    }

    #[test]
    fn a_full_disk_costs_lines_and_the_next_begins_at_its_own_line() {
        let (log, tell, text) = lines(ROOM);
        let full = Err(io::ErrorKind::StorageFull);
        // The first is cut off, and no note of it can be written before the third.
        [Ok(2), full, full, ALL].into_iter().for_each(|t| tell.send(t).expect("a reader"));
        drop(tell);
        for line in ["one\n", "two\n", "three\n"] {
            log.put(line.as_bytes());
        }
        log.flush(LONG);
        assert_eq!(
            *text.lock(),
            "on\nheliostat: 2 lines of the log are missing here: no storage space\nthree\n"
        );
    }
}
