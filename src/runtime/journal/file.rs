//! The journal's files: what a line says, and what is read of them after a restart.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::coflows::flows::Pairs;
use crate::control::closed::Closed;
use crate::control::past::Past;
use crate::control::record::{CoflowTotals, CoflowView, Record, What};
use crate::control::used::UsedIds;
use crate::ids::CoflowId;
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};

/// How many events are kept for readers that come back.
pub const EVENTS: usize = 4096;
/// How many `Idempotency-Key`s are kept.
pub const KEYS: usize = 1024;
/// The form of the file.
const FORMAT: u32 = 1;
const NAME: &str = "journal.jsonl";
/// How the names of journals begin that are being written.
const UNFINISHED: &str = ".journal-";
/// The largest numbers that clients may have seen. It is written in place, which a full disk does not refuse.
const MARK: &str = "mark.json";
/// Every mark has this length, so that a shorter one leaves nothing of the one before.
const MARK_BYTES: usize = 96;

/// A line of the journal. Those up to the first `event`, `ended` or `open` were written at once, and say what was known then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// The first line.
    Head(Box<Head>),
    /// A coflow that had ended, and is counted in the head.
    Kept(CoflowView),
    /// An event whose effects are in the lines before it.
    Seen(Arc<Record>),
    /// A request that made a coflow.
    Key(Key),
    /// A coflow has begun.
    Open(CoflowView),
    /// A coflow has ended, and nothing of it changes any more.
    Ended(CoflowView),
    /// An event.
    Event(Arc<Record>),
}

/// The first line: what the others add to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Head {
    pub format: u32,
    /// The network's name, for people, and its number of racks.
    pub topology: String,
    pub racks: usize,
    /// Number of the next event.
    pub seq: u64,
    /// The run's clock.
    pub at: Time,
    pub used: UsedIds,
    pub totals: CoflowTotals,
    /// Coflows that ended and are not remembered.
    pub forgotten: u64,
}

/// An `Idempotency-Key`, and the coflow that came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The key.
    pub key: String,
    /// Hash of the request's body.
    pub digest: String,
    /// The coflow.
    pub id: CoflowId,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// Number of the next event.
    pub seq: u64,
    /// The largest number of a coflow.
    pub id: Option<CoflowId>,
    pub at: Time,
}

impl Mark {
    pub fn write(self, file: &File) -> io::Result<()> {
        let text = serde_json::to_string(&self)?;
        file.write_all_at(format!("{text:<width$}\n", width = MARK_BYTES - 1).as_bytes(), 0)
    }

    fn read(file: &mut File) -> io::Result<Self> {
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // A daemon that was killed before it wrote the first one has answered no request.
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be read or written.
    #[error("{}: {why}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        why: io::Error,
    },
    /// Two daemons cannot share one.
    #[error("{}: another daemon writes this journal", .0.display())]
    Held(PathBuf),
    /// It is not what a daemon wrote.
    #[error("{}: line {line}, column {column}: {why}; move the directory away to begin a new journal", .file.display())]
    Bad {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong.
        why: String,
    },
    /// Numbers of racks would mean something else.
    #[error("{}: the journal is of network `{name}` with {racks} racks, not of `{this}` with {here}; allowed: a directory for each network", .file.display())]
    OtherNetwork {
        /// The file.
        file: PathBuf,
        /// Whose it is.
        name: String,
        /// Its racks.
        racks: usize,
        /// The network that is to be run.
        this: String,
        /// Its racks.
        here: usize,
    },
}

/// What was found in a journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// For the controller.
    pub past: Past,
    /// What the run's clock had reached.
    pub at: Time,
    /// The last events, in order.
    pub events: VecDeque<Arc<Record>>,
    /// The last keys, in order.
    pub keys: VecDeque<Key>,
    /// Bytes of a record that was cut off when the daemon was killed, and are dropped.
    pub torn: u64,
    /// Coflows that have begun and not ended.
    open: BTreeMap<CoflowId, CoflowView>,
    /// Coflows whose end is known from an event alone.
    over: BTreeMap<CoflowId, (Time, What)>,
}

impl Found {
    fn take(&mut self, line: Line) {
        match line {
            Line::Head(h) => {
                let Head { seq, at, used, totals, forgotten, .. } = *h;
                self.past = Past { seq, used, totals, closed: Closed::after_forgotten(forgotten), open: vec![] };
                self.at = at;
            }
            Line::Kept(view) => {
                let at = view.closed().unwrap_or(self.at);
                self.past.keep(view, at);
            }
            Line::Seen(record) => self.remember(record),
            Line::Key(key) => {
                // The id was given again, so the coflow of the earlier key was refused.
                self.keys.retain(|k| k.id != key.id);
                keep(&mut self.keys, key, KEYS);
            }
            Line::Open(view) => {
                self.past.used.insert(view.id);
                self.open.insert(view.id, view);
            }
            Line::Ended(view) => {
                self.open.remove(&view.id);
                self.over.remove(&view.id);
                self.past.end(view);
            }
            Line::Event(record) => {
                self.event(&record);
                self.remember(record);
            }
        }
    }

    fn remember(&mut self, record: Arc<Record>) {
        self.past.seq = self.past.seq.max(record.seq + 1);
        self.at = self.at.max(record.at);
        keep(&mut self.events, record, EVENTS);
    }

    fn event(&mut self, record: &Record) {
        match record.what {
            What::CoflowProposed { id, .. } => drop(self.past.used.insert(id)),
            What::CoflowArrived { id, bytes } => {
                self.past.used.insert(id);
                self.open.entry(id).or_insert_with(|| unknown(id, bytes, record.at));
            }
            What::CoflowFinished { id, .. } | What::CoflowCancelled { id, .. } if self.open.contains_key(&id) => {
                self.over.insert(id, (record.at, record.what.clone()));
            }
            _ => {}
        }
    }

    /// All lines were taken: what is left open had not ended, and the numbers are at least those of the mark.
    fn finish(&mut self, mark: Mark) {
        // A key is written before its coflow is made.
        let used = &self.past.used;
        self.keys.retain(|k| used.contains(k.id));
        for (id, view) in std::mem::take(&mut self.open) {
            let view = match self.over.remove(&id) {
                Some((_, What::CoflowFinished { cct, .. })) => {
                    CoflowView { finished: Some(view.arrival + cct), cct: Some(cct), received: view.bytes, ..view }
                }
                Some((at, What::CoflowCancelled { why, .. })) => CoflowView { cancelled: Some(at), why, ..view },
                _ => view,
            };
            if view.closed().is_some() {
                self.past.end(view);
            } else {
                self.past.open.push(view);
            }
        }
        self.past.seq = self.past.seq.max(mark.seq);
        self.at = self.at.max(mark.at);
        mark.id.into_iter().for_each(|id| self.past.used.fill(id));
    }
}

pub(super) fn keep<T>(list: &mut VecDeque<T>, item: T, most: usize) {
    if list.len() == most {
        list.pop_front();
    }
    list.push_back(item);
}

/// A coflow of which only its beginning was told.
fn unknown(id: CoflowId, bytes: Bytes, arrival: Time) -> CoflowView {
    let (name, none) = (format!("coflow-{}", id.0), Bytes::ZERO);
    let (pairs, bound) = (Pairs::default(), Span::ZERO);
    CoflowView {
        id,
        name,
        arrival,
        pairs,
        bytes,
        received: none,
        over_ocs: none,
        finished: None,
        cancelled: None,
        why: None,
        cct: None,
        bound,
        priority: None,
    }
}

/// A journal's files, open and read.
pub(super) struct Opened {
    pub file: File,
    /// Bytes of whole lines.
    pub length: u64,
    pub mark: File,
    pub found: Found,
}

/// Opens a journal, or begins one; no other process can then.
pub(super) fn open(directory: &Path, topology: &Topology) -> Result<Opened, JournalError> {
    let at = |name: &str| {
        let path = directory.join(name);
        (path.clone(), move |why| JournalError::Io { file: path.clone(), why })
    };
    std::fs::create_dir_all(directory).map_err(|why| JournalError::Io { file: directory.into(), why })?;
    let ((mark_path, mark_fails), (path, fails)) = (at(MARK), at(NAME));
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    let mut mark_file = options.open(&mark_path).map_err(&mark_fails)?;
    mark_file.try_lock().map_err(|_| JournalError::Held(directory.into()))?;
    let mark = Mark::read(&mut mark_file).map_err(&mark_fails)?;
    remove_unfinished(directory);
    let mut file = options.open(&path).map_err(&fails)?;
    let mut bytes = vec![];
    file.read_to_end(&mut bytes).map_err(&fails)?;
    let (mut found, length) = read(&bytes, &path, topology)?;
    found.finish(mark);
    // Room for it is taken now.
    mark.write(&mark_file).map_err(&mark_fails)?;
    Ok(Opened { file, length, mark: mark_file, found })
}

/// Reads all whole lines; gives what they say and their length. The last line may have been cut off.
fn read(bytes: &[u8], file: &Path, topology: &Topology) -> Result<(Found, u64), JournalError> {
    let (mut found, mut length) = (Found::default(), 0);
    for (k, text) in bytes.split_inclusive(|&b| b == b'\n').enumerate() {
        // The end of a line is written last: one that a kill cut off has none.
        if !text.ends_with(b"\n") {
            found.torn = text.len() as u64;
            break;
        }
        let bad = |e: serde_json::Error| JournalError::Bad { file: file.into(), line: k + 1, column: e.column(), why: words(&e) };
        let line = serde_json::from_slice::<Line>(text).map_err(bad)?;
        check(k, &line, file, topology)?;
        found.take(line);
        length += text.len();
    }
    Ok((found, length as u64))
}

/// The parser's words without its own place, which is that in the line.
fn words(e: &serde_json::Error) -> String {
    let text = e.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(words, _)| words.into())
}

/// Whether the first line, and only that, is the head of this network's journal.
fn check(k: usize, line: &Line, file: &Path, topology: &Topology) -> Result<(), JournalError> {
    let bad = |why: &str| Err(JournalError::Bad { file: file.into(), line: k + 1, column: 1, why: why.into() });
    match line {
        Line::Head(h) if k == 0 && h.format != FORMAT => bad(&format!("its form is {}; this program writes and reads {FORMAT}", h.format)),
        Line::Head(h) if k == 0 && h.racks != topology.rack_count() => Err(JournalError::OtherNetwork {
            file: file.into(),
            name: h.topology.clone(),
            racks: h.racks,
            this: topology.name.clone(),
            here: topology.rack_count(),
        }),
        Line::Head(_) if k == 0 => Ok(()),
        Line::Head(_) => bad("a head that is not the first line"),
        _ if k == 0 => bad("the first line is no head of a journal"),
        _ => Ok(()),
    }
}

impl Head {
    /// The head of a journal that begins now.
    pub fn new(topology: &Topology, (seq, at): (u64, Time), used: UsedIds, totals: CoflowTotals, forgotten: u64) -> Self {
        Self { format: FORMAT, topology: topology.name.clone(), racks: topology.rack_count(), seq, at, used, totals, forgotten }
    }
}

/// Removes journals that a daemon was killed over before they were in place. Nothing depends on them.
fn remove_unfinished(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Puts a journal of these lines in the place of the one that is there; a process that is killed leaves the one or the other.
pub(super) fn replace(directory: &Path, lines: &[u8]) -> io::Result<File> {
    let mut new = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(directory)?;
    new.write_all(lines)?;
    new.as_file().sync_all()?;
    new.persist(directory.join(NAME)).map_err(|e| e.error)
}

/// The journal's path, for messages.
pub(super) fn path(directory: &Path) -> PathBuf {
    directory.join(NAME)
}

/// Appends a line.
pub(super) fn put(lines: &mut Vec<u8>, line: &Line) {
    // Writing into memory cannot fail, and no line is a map with odd keys.
    let _ = serde_json::to_writer(&mut *lines, line);
    lines.push(b'\n');
}
