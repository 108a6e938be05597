//! `heliostat run --events`: the controller's event log as a file that grows while the network
//! runs.

use std::io::{self, BufRead as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{oneshot, watch};

use crate::cli::{CliError, event_log};
use crate::control::record::Record;
use crate::control::{Event, LogFile, Trouble};
use crate::runtime::handle::Handle;
use crate::runtime::lines::{LineFile, LineFileChange};
use crate::runtime::open;

/// The most events that are written at once.
const BATCH: u64 = 1024;
/// Time between two tries to open the file by its name.
const AGAIN: Duration = Duration::from_secs(1);

/// The thread that writes the file.
pub struct EventFile {
    path: PathBuf,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Missing>,
}

/// Events that are not in the file.
#[derive(Clone, Debug, Default)]
struct Missing {
    /// Dropped before they were read: the disk was too slow.
    unread: u64,
    /// Refused by the disk, and why the last of them was.
    refused: u64,
    why: String,
}

impl EventFile {
    /// Writes every event of the controller from now on: a line of JSON each, as
    /// `simulate --events` does. Where the disk refuses, the failure is shown as the controller's
    /// others are, and later events are written once it takes them again. At each change of
    /// `reopen` the file is opened by its name again. What the file holds is dropped, unless the
    /// log `goes_on` behind its whole lines. Every file that was empty begins with the `head`.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn start(
        (path, goes_on): (&Path, bool),
        head: &event_log::EventLogHead,
        controller: &Handle,
        reopen: watch::Receiver<()>,
    ) -> Result<Self, CliError> {
        let tell = controller.clone();
        let tell =
            move |why| tell.notify(Event::Trouble { what: Trouble::File(LogFile::Events), why });
        Self::listen((path, goes_on), head.line(), (controller.events(), reopen), tell)
    }

    fn listen(
        (path, goes_on): (&Path, bool),
        head: String,
        (events, reopen): (Receiver<Arc<Record>>, watch::Receiver<()>),
        tell: impl FnMut(Option<String>) + Send + 'static,
    ) -> Result<Self, CliError> {
        let failed = |e: io::Error| CliError::Failed(format!("{}: {e}", path.display()));
        let length = if goes_on { whole_lines(path) } else { Ok(0) }.map_err(failed)?;
        let file = open::to_write(path, true)
            .and_then(|file| LineFile::new(path, file, length))
            .map_err(failed)?;
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(failed)?;
        let work = move || runtime.block_on(write((file, head), events, (stopped, reopen), tell));
        let thread =
            std::thread::Builder::new().name("events".into()).spawn(work).map_err(failed)?;
        Ok(Self { path: path.into(), stop, thread })
    }

    /// Whether the thread still writes.
    pub fn is_alive(&self) -> bool {
        !self.thread.is_finished()
    }

    /// Writes what is there still, and ends.
    ///
    /// # Errors
    /// Events are missing, which are counted: the disk was full, or too slow.
    pub fn finish(self) -> Result<(), CliError> {
        let _ = self.stop.send(());
        let fail = |why: String| Err(CliError::Failed(why));
        match self.thread.join() {
            Err(_) => fail(format!("{}: the thread that wrote it has died", self.path.display())),
            Ok(Missing { unread: 0, refused: 0, .. }) => Ok(()),
            Ok(Missing { unread, refused: 0, .. }) => fail(format!(
                "{}: {unread} events are missing: the disk was too slow",
                self.path.display()
            )),
            Ok(Missing { unread, refused, why }) => {
                fail(format!("{why}: {} events are missing", unread + refused))
            }
        }
    }
}

/// Writes events until told to stop, or until there can be no more; gives what is missing.
async fn write(
    (mut file, head): (LineFile, String),
    mut events: Receiver<Arc<Record>>,
    (mut stopped, mut reopen): (oneshot::Receiver<()>, watch::Receiver<()>),
    mut tell: impl FnMut(Option<String>),
) -> Missing {
    let mut missing = Missing::default();
    // The last try to open the file by its name, while that fails.
    let mut moved: Option<Instant> = None;
    let (mut batch, mut over) = (Batch::default(), false);
    loop {
        // At the end all that is there, else what is there by now.
        while over || batch.count < BATCH {
            match events.try_recv() {
                Ok(record) => batch.add(&record),
                Err(TryRecvError::Lagged(n)) => missing.unread += n,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        if moved.is_some_and(|tried| tried.elapsed() >= AGAIN) {
            moved = reopened_late(&mut file, &mut tell);
        }
        // A file says what ran even if no event follows.
        if file.length() == 0 {
            batch.lines.splice(0..0, head.bytes());
        }
        match file.append(&batch.lines, batch.count) {
            Some(LineFileChange::Broke(why)) => {
                tracing::warn!("{why}: events are missing from here on");
                missing.why.clone_from(&why);
                tell(Some(why));
            }
            Some(LineFileChange::Healed) => {
                tracing::warn!(
                    "the event log goes on: {} events are missing so far",
                    file.missing()
                );
                if moved.is_none() {
                    tell(None);
                }
            }
            None => {}
        }
        if over {
            missing.refused = file.missing();
            return missing;
        }
        batch = Batch::default();
        tokio::select! {
            _ = &mut stopped => over = true,
            Ok(()) = reopen.changed() => moved = reopened(&mut file, &mut tell),
            event = events.recv() => match event {
                Ok(record) => batch.add(&record),
                Err(RecvError::Lagged(n)) => missing.unread += n,
                Err(RecvError::Closed) => over = true,
            },
        }
    }
}

/// Bytes of the whole lines of a file, 0 if there is none: the last line may have been cut off when
/// its writer was killed.
fn whole_lines(path: &Path) -> io::Result<u64> {
    if !path.is_file() {
        return Ok(0);
    }
    let mut file = io::BufReader::new(open::to_read(path)?);
    let (mut length, mut whole, mut line) = (0, 0, vec![]);
    loop {
        line.clear();
        length += file.read_until(b'\n', &mut line)? as u64;
        match line.last() {
            None => return Ok(whole),
            Some(b'\n') => whole = length,
            Some(_) => {}
        }
    }
}

/// Goes on in the file that has the name now. Where there can be none, events go to the old one,
/// and the time of this try is returned.
fn reopened(file: &mut LineFile, tell: &mut impl FnMut(Option<String>)) -> Option<Instant> {
    let Err(why) = file.reopen() else { return goes_on(file, tell) };
    tracing::warn!("{why}: events go to the file that was open before");
    tell(Some(format!("open it again: {why}")));
    Some(Instant::now())
}

/// The same after a try that failed, whose reason has been reported.
fn reopened_late(file: &mut LineFile, tell: &mut impl FnMut(Option<String>)) -> Option<Instant> {
    if file.reopen().is_ok() { goes_on(file, tell) } else { Some(Instant::now()) }
}

fn goes_on(file: &LineFile, tell: &mut impl FnMut(Option<String>)) -> Option<Instant> {
    tracing::info!("the event log was opened again");
    // The disk of the new file may refuse lines as that of the old one did: the next line tells.
    if file.broken().is_none() {
        tell(None);
    }
    None
}

/// Lines that are written at once.
#[derive(Default)]
struct Batch {
    lines: Vec<u8>,
    count: u64,
}

impl Batch {
    fn add(&mut self, record: &Record) {
        self.lines.extend_from_slice(event_log::of_network(record).as_bytes());
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::wire;
    use crate::control::record::RecordedEvent;
    use crate::units::Time;

    fn record(seq: u64) -> Arc<Record> {
        Arc::new(Record {
            seq,
            at: Time(seq),
            what: RecordedEvent::PolicyChanged { name: "x".into() },
        })
    }

    fn head() -> String {
        "{\"event_log\":1}\n".into()
    }

    /// The numbers of the events in a file, which begins with its head.
    fn seqs(file: &Path) -> Vec<u64> {
        let text = std::fs::read_to_string(file).expect("text");
        let lines = text.strip_prefix(&head()).expect("a head");
        lines
            .lines()
            .map(|l| serde_json::from_str::<wire::Record>(l).expect("a record").seq)
            .collect()
    }

    #[test]
    fn every_event_is_a_line_and_those_that_are_missing_are_counted() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let read = || seqs(file.path());
        let (events, received) = tokio::sync::broadcast::channel(4);
        (0..4).for_each(|n| drop(events.send(record(n))));
        let start = |received| {
            EventFile::listen(
                (file.path(), false),
                head(),
                (received, watch::channel(()).1),
                |_| {},
            )
            .expect("started")
        };
        start(received).finish().expect("written");
        assert_eq!(read(), [0, 1, 2, 3]);

        let received = events.subscribe();
        (0..7).for_each(|n| drop(events.send(record(n))));
        let why = start(received).finish().expect_err("three are missing").to_string();
        assert!(why.contains("3 events are missing"), "{why}");
        assert_eq!(read(), [3, 4, 5, 6]);
    }

    #[test]
    fn a_file_that_cannot_be_opened_again_is_tried_later() {
        let dir = tempfile::tempdir().expect("a directory");
        let (inner, away) = (dir.path().join("logs"), dir.path().join("away"));
        std::fs::create_dir(&inner).expect("made");
        let (path, (events, received), (ask, asked)) =
            (inner.join("log"), tokio::sync::broadcast::channel(64), watch::channel(()));
        let (told, heard) = std::sync::mpsc::channel();
        let log = EventFile::listen((&path, false), head(), (received, asked), move |why| {
            drop(told.send(why))
        })
        .expect("started");
        std::fs::rename(&inner, &away).expect("moved");
        ask.send_replace(());
        let why = heard.recv_timeout(Duration::from_secs(60)).expect("told").expect("why not");
        assert!(why.contains("No such file"), "{why}");
        drop(events.send(record(0)));
        std::fs::create_dir(&inner).expect("made");
        // Every event is a chance to try again.
        let begun = Instant::now();
        let mut last = 0;
        while heard.try_recv().is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it is not tried again");
            last += 1;
            drop(events.send(record(last)));
            std::thread::yield_now();
            while events.len() > 32 {
                std::thread::yield_now();
            }
        }
        log.finish().expect("written");
        let (old, new) = (seqs(&away.join("log")), seqs(&path));
        assert_eq!(
            [old, new].concat(),
            (0..=last).collect::<Vec<_>>(),
            "no event is lost, and none is there twice"
        );
    }

    #[test]
    fn a_file_without_events_says_what_ran() {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, old) = (dir.path().join("log"), dir.path().join("log.1"));
        let ((_events, received), (ask, asked)) =
            (tokio::sync::broadcast::channel(4), watch::channel(()));
        let (told, heard) = std::sync::mpsc::channel();
        let log = EventFile::listen((&path, false), head(), (received, asked), move |why| {
            drop(told.send(why))
        })
        .expect("started");
        std::fs::rename(&path, &old).expect("moved");
        ask.send_replace(());
        assert_eq!(heard.recv_timeout(Duration::from_secs(60)), Ok(None), "it is opened again");
        log.finish().expect("written");
        assert_eq!(
            [old, path].map(|file| std::fs::read_to_string(file).expect("text")),
            [head(), head()]
        );
    }

    #[test]
    fn a_thread_that_dies_is_seen() {
        let dir = tempfile::tempdir().expect("a directory");
        let (inner, (_events, received), (ask, asked)) =
            (dir.path().join("logs"), tokio::sync::broadcast::channel(4), watch::channel(()));
        std::fs::create_dir(&inner).expect("made");
        let log =
            EventFile::listen((&inner.join("log"), false), head(), (received, asked), |why| {
                panic!("{why:?}")
            })
            .expect("started");
        assert!(log.is_alive());
        std::fs::rename(&inner, dir.path().join("away")).expect("moved");
        ask.send_replace(());
        let begun = Instant::now();
        while log.is_alive() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it is not seen");
            std::thread::yield_now();
        }
        assert!(log.finish().is_err_and(|e| e.to_string().contains("has died")));
    }

    #[test]
    fn a_log_goes_on_behind_its_whole_lines_if_that_is_asked() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        let line = |seq| event_log::of_network(&record(seq));
        let new = head() + &line(7);
        for (before, goes_on, after) in [
            (None, true, new.clone()),
            (Some(""), true, new.clone()),
            (Some("a\nb\n"), true, format!("a\nb\n{}", line(7))),
            (Some("a\ncut o"), true, format!("a\n{}", line(7))),
            (Some("cut o"), true, new.clone()),
            (Some("a\nb\n"), false, new),
        ] {
            let _ = std::fs::remove_file(&path);
            before.into_iter().for_each(|text| std::fs::write(&path, text).expect("written"));
            let (events, received) = tokio::sync::broadcast::channel(4);
            drop(events.send(record(7)));
            let log = EventFile::listen(
                (&path, goes_on),
                head(),
                (received, watch::channel(()).1),
                |_| {},
            )
            .expect("started");
            log.finish().expect("written");
            assert_eq!(std::fs::read_to_string(&path).expect("text"), after, "{before:?}");
        }
    }
}
