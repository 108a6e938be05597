//! The journal's files: what a line says, and what is read of them after a restart.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, TryLockError};
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::coflows::flows::Pairs;
use crate::control::closed::Closed;
use crate::control::previous_run::PreviousRun;
use crate::control::record::{CoflowTotals, CoflowView, Record, RecordedEvent};
use crate::control::used_ids::UsedIds;
use crate::ids::CoflowId;
use crate::runtime::open;
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
/// The largest numbers that clients may have seen. It is written in place, which a full disk does
/// not refuse.
const MARK: &str = "mark.json";
/// Every mark has this length, so that a shorter one leaves nothing of the one before.
const MARK_BYTES: usize = 96;
/// How a line begins that has a checksum; eight digits follow, and the rest of the line, which they
/// are of. Lines of older programs have none.
const SEAL: &[u8] = b"{\"crc\":\"";
/// What stands between the digits and the rest.
const SEALED: &[u8] = b"\",";
/// Bytes of the longest line that is read.
const LONGEST: u64 = 1 << 26;

/// A line of the journal. Those up to the first `event`, `ended` or `open` were written at once,
/// and say what was known then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JournalLine {
    /// The first line.
    Head(Box<JournalHead>),
    /// A coflow that had ended, and is counted in the head.
    Kept(CoflowView),
    /// An event whose effects are in the lines before it.
    Seen(Arc<Record>),
    /// A request that made a coflow.
    Key(IdempotencyKey),
    /// A coflow has begun.
    Open(CoflowView),
    /// A coflow has ended, and nothing of it changes any more.
    Ended(CoflowView),
    /// An event.
    Event(Arc<Record>),
}

/// The first line: what the others add to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct JournalHead {
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
pub struct IdempotencyKey {
    /// The key.
    pub key: String,
    /// Hash of the request's body.
    pub digest: String,
    /// The coflow.
    pub id: CoflowId,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JournalMark {
    /// Number of the next event.
    pub seq: u64,
    /// The largest number of a coflow.
    pub id: Option<CoflowId>,
    pub at: Time,
}

impl JournalMark {
    pub fn write(self, file: &File) -> io::Result<()> {
        let text = sealed(&serde_json::to_vec(&self)?);
        let text = String::from_utf8_lossy(&text);
        file.write_all_at(format!("{text:<width$}\n", width = MARK_BYTES - 1).as_bytes(), 0)
    }

    /// What was written; `None` if it is damaged.
    fn read(file: &File) -> io::Result<Option<Self>> {
        let mut text = vec![];
        file.take(2 * MARK_BYTES as u64).read_to_end(&mut text)?;
        // A daemon that was killed before it wrote the first one has answered no request.
        if text.is_empty() {
            return Ok(Some(Self::default()));
        }
        Ok(unsealed(text.trim_ascii_end()).ok().and_then(|text| serde_json::from_slice(&text).ok()))
    }
}

/// An object of JSON with its checksum.
fn sealed(object: &[u8]) -> Vec<u8> {
    let rest = object.get(1..).unwrap_or_default();
    let digits = format!("{:08x}", crc32fast::hash(rest));
    [SEAL, digits.as_bytes(), SEALED, rest].concat()
}

/// An object without its checksum, if it has one.
///
/// # Errors
/// The checksum is of another text.
fn unsealed(text: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    let Some(sealed) = text.strip_prefix(SEAL) else { return Ok(text.into()) };
    let parts = sealed
        .split_at_checked(8)
        .and_then(|(digits, rest)| Some((digits, rest.strip_prefix(SEALED)?)));
    match parts {
        Some((digits, rest)) if digits == format!("{:08x}", crc32fast::hash(rest)).as_bytes() => {
            Ok([b"{", rest].concat().into())
        }
        _ => Err("its checksum is of another text".into()),
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
pub struct JournalContents {
    /// For the controller.
    pub past: PreviousRun,
    /// What the run's clock had reached.
    pub at: Time,
    /// The last events, in order.
    pub events: VecDeque<Arc<Record>>,
    /// The last keys, in order.
    pub keys: VecDeque<IdempotencyKey>,
    /// Bytes of a record that was cut off when the daemon was killed, and are dropped.
    pub torn: u64,
    /// Lines that are damaged, each a record that is lost: its number and the column, from 1, and
    /// why.
    pub damaged: Vec<(usize, usize, String)>,
    /// Whether the mark is damaged, so that numbers may be given again which only it knew.
    pub unmarked: bool,
    /// Coflows that have begun and not ended.
    open: BTreeMap<CoflowId, CoflowView>,
    /// Coflows whose end is known from an event alone.
    over: BTreeMap<CoflowId, (Time, RecordedEvent)>,
}

impl JournalContents {
    fn take(&mut self, line: JournalLine) {
        match line {
            JournalLine::Head(h) => {
                let JournalHead { seq, at, used, totals, forgotten, .. } = *h;
                self.past = PreviousRun {
                    seq,
                    used,
                    totals,
                    closed: Closed::after_forgotten(forgotten),
                    open: vec![],
                };
                self.at = at;
            }
            JournalLine::Kept(view) => {
                let at = view.closed().unwrap_or(self.at);
                self.past.keep(view, at);
            }
            JournalLine::Seen(record) => self.remember(record),
            JournalLine::Key(key) => {
                // The id was given again, so the coflow of the earlier key was refused.
                self.keys.retain(|k| k.id != key.id);
                keep(&mut self.keys, key, KEYS);
            }
            JournalLine::Open(view) => {
                self.past.used.insert(view.id);
                self.open.insert(view.id, view);
            }
            JournalLine::Ended(view) => {
                self.open.remove(&view.id);
                self.over.remove(&view.id);
                self.past.end(view);
            }
            JournalLine::Event(record) => {
                self.event(&record);
                self.remember(record);
            }
        }
    }

    /// The largest numbers that are known.
    fn mark(&self) -> JournalMark {
        JournalMark { seq: self.past.seq, id: self.past.used.max(), at: self.at }
    }

    fn remember(&mut self, record: Arc<Record>) {
        self.past.seq = self.past.seq.max(record.seq + 1);
        self.at = self.at.max(record.at);
        keep(&mut self.events, record, EVENTS);
    }

    fn event(&mut self, record: &Record) {
        match record.what {
            RecordedEvent::CoflowProposed { id, .. } => drop(self.past.used.insert(id)),
            RecordedEvent::CoflowArrived { id, bytes } => {
                self.past.used.insert(id);
                self.open.entry(id).or_insert_with(|| unknown(id, bytes, record.at));
            }
            RecordedEvent::CoflowFinished { id, .. }
            | RecordedEvent::CoflowCancelled { id, .. }
                if self.open.contains_key(&id) =>
            {
                self.over.insert(id, (record.at, record.what.clone()));
            }
            _ => {}
        }
    }

    /// All lines were taken: what is left open had not ended, and the numbers are at least those of
    /// the mark.
    fn finish(&mut self, mark: JournalMark) {
        // A key is written before its coflow is made.
        let used = &self.past.used;
        self.keys.retain(|k| used.contains(k.id));
        for (id, view) in std::mem::take(&mut self.open) {
            let view = match self.over.remove(&id) {
                Some((_, RecordedEvent::CoflowFinished { cct, .. })) => CoflowView {
                    finished: Some(view.arrival + cct),
                    cct: Some(cct),
                    received: view.bytes,
                    ..view
                },
                Some((at, RecordedEvent::CoflowCancelled { why, .. })) => {
                    CoflowView { cancelled: Some(at), why, ..view }
                }
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

/// A coflow of which only the beginning is known.
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
    /// The directory, locked. No removal of a file in it lets another daemon in.
    pub lock: File,
    pub file: File,
    /// Bytes of whole lines.
    pub length: u64,
    pub mark: File,
    pub found: JournalContents,
}

/// Opens a journal, or begins one; no other process can then.
pub(super) fn open(directory: &Path, topology: &Topology) -> Result<Opened, JournalError> {
    let at = |name: &str| {
        let path = directory.join(name);
        (path.clone(), move |why| JournalError::Io { file: path.clone(), why })
    };
    let lock = hold(directory).map_err(|e| not_held(directory, e))?;
    let ((mark_path, mark_fails), (path, fails)) = (at(MARK), at(NAME));
    let mark_file = mark(directory).map_err(|e| not_held(&mark_path, e))?;
    let mark = JournalMark::read(&mark_file).map_err(&mark_fails)?;
    remove_unfinished(directory);
    let file = open::own(&path).map_err(&fails)?;
    let (mut found, length) = read(BufReader::new(&file), &path, topology)?;
    found.torn = file.metadata().map_err(&fails)?.len() - length;
    found.unmarked = mark.is_none();
    found.finish(mark.unwrap_or_default());
    // Room for it is taken now.
    found.mark().write(&mark_file).map_err(&mark_fails)?;
    Ok(Opened { lock, file, length, mark: mark_file, found })
}

/// How long a lock may be held by another process before it counts as another daemon's.
const PATIENCE: Duration = Duration::from_millis(500);

/// Makes a directory, if there is none, and locks it: what is in it may be removed meanwhile, and
/// no other daemon gets in.
pub(super) fn hold(directory: &Path) -> Result<File, TryLockError> {
    let failed = TryLockError::Error;
    std::fs::create_dir_all(directory).map_err(failed)?;
    let lock = open::directory(directory).map_err(failed)?;
    match patient(&lock) {
        // Some file systems lock files only: that of the mark is left then.
        Err(TryLockError::Error(_)) | Ok(()) => Ok(lock),
        held => held.map(|()| lock),
    }
}

/// Locks a file. Another process that this one is just starting holds all its locks, too, until it
/// runs a program of its own.
fn patient(file: &File) -> Result<(), TryLockError> {
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                std::thread::park_timeout(PATIENCE / 50)
            }
            held => return held,
        }
    }
}

/// Opens the mark, and locks it, as older programs do.
pub(super) fn mark(directory: &Path) -> Result<File, TryLockError> {
    let file = open::own(&directory.join(MARK)).map_err(TryLockError::Error)?;
    patient(&file)?;
    Ok(file)
}

/// Whether the mark that is held is the one in the directory.
pub(super) fn is_mark(held: &File, directory: &Path) -> bool {
    open::stands_at(held, &directory.join(MARK))
}

fn not_held(path: &Path, e: TryLockError) -> JournalError {
    match e {
        TryLockError::WouldBlock => JournalError::Held(
            path.parent().filter(|_| path.ends_with(MARK)).unwrap_or(path).into(),
        ),
        TryLockError::Error(why) => JournalError::Io { file: path.into(), why },
    }
}

/// Reads all whole lines; gives what they say and their length. The last line may have been cut
/// off. One that is damaged is one record that is lost; where no line makes sense the file is no
/// journal.
fn read(
    mut lines: impl BufRead,
    file: &Path,
    topology: &Topology,
) -> Result<(JournalContents, u64), JournalError> {
    let (mut found, mut length, mut text, mut good) = (JournalContents::default(), 0, vec![], 0);
    let fails = |why| JournalError::Io { file: file.into(), why };
    for number in 1.. {
        text.clear();
        (&mut lines).take(LONGEST).read_until(b'\n', &mut text).map_err(fails)?;
        // The end of a line is written last: one that a kill cut off has none.
        if !text.ends_with(b"\n") {
            break;
        }
        length += text.len() as u64;
        let parts = parts(&text);
        // The end of a line is damaged where another begins within it.
        found
            .damaged
            .extend((parts.len() > 1).then(|| {
                (number, parts[0].len() + 1, "the end of a record is damaged".to_owned())
            }));
        for part in parts {
            match parse(part).and_then(|line| check(good, line, file, topology)) {
                Ok(line) => {
                    found.take(line);
                    good += 1;
                }
                Err(JournalFlaw::Line(column, why)) => found.damaged.push((number, column, why)),
                Err(JournalFlaw::Journal(e)) => return Err(e),
            }
        }
    }
    match found.damaged.first() {
        Some((line, column, why)) if good == 0 => Err(JournalError::Bad {
            file: file.into(),
            line: *line,
            column: *column,
            why: why.clone(),
        }),
        _ => Ok((found, length)),
    }
}

/// A line in as many parts as begin with a checksum.
fn parts(text: &[u8]) -> Vec<&[u8]> {
    let mut begins: Vec<usize> = text
        .windows(SEAL.len())
        .enumerate()
        .filter(|(_, w)| *w == SEAL)
        .map(|(at, _)| at)
        .collect();
    if begins.len() < 2 {
        return vec![text.trim_ascii_end()];
    }
    begins[0] = 0;
    let ends = begins.iter().skip(1).map(|at| at - 1).chain([text.len() - 1]);
    begins.iter().zip(ends).map(|(&from, to)| &text[from..to.max(from)]).collect()
}

/// What is wrong with a line, and at which column; or with the journal as a whole.
enum JournalFlaw {
    Line(usize, String),
    Journal(JournalError),
}

fn parse(text: &[u8]) -> Result<JournalLine, JournalFlaw> {
    let object = unsealed(text).map_err(|why| JournalFlaw::Line(1, why))?;
    serde_json::from_slice(&object).map_err(|e| JournalFlaw::Line(e.column(), words(&e)))
}

/// The parser's words without its own place, which is that in the line.
fn words(e: &serde_json::Error) -> String {
    let text = e.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(words, _)| words.into())
}

/// Whether the first line that makes sense, and only that, is the head of this network's journal. A
/// head that is lost takes sums over all coflows with it.
fn check(
    good: usize,
    line: JournalLine,
    file: &Path,
    topology: &Topology,
) -> Result<JournalLine, JournalFlaw> {
    match &line {
        JournalLine::Head(_) if good > 0 => {
            Err(JournalFlaw::Line(1, "a head that is not the first line".into()))
        }
        JournalLine::Head(h) if h.format != FORMAT => {
            let why = format!("its form is {}; this program writes and reads {FORMAT}", h.format);
            Err(JournalFlaw::Journal(JournalError::Bad {
                file: file.into(),
                line: 1,
                column: 1,
                why,
            }))
        }
        JournalLine::Head(h) if h.racks != topology.rack_count() => {
            Err(JournalFlaw::Journal(JournalError::OtherNetwork {
                file: file.into(),
                name: h.topology.clone(),
                racks: h.racks,
                this: topology.name.clone(),
                here: topology.rack_count(),
            }))
        }
        _ => Ok(line),
    }
}

impl JournalHead {
    /// The head of a journal that begins now.
    pub fn new(
        topology: &Topology,
        (seq, at): (u64, Time),
        used: UsedIds,
        totals: CoflowTotals,
        forgotten: u64,
    ) -> Self {
        Self {
            format: FORMAT,
            topology: topology.name.clone(),
            racks: topology.rack_count(),
            seq,
            at,
            used,
            totals,
            forgotten,
        }
    }
}

/// Removes journals that a daemon was killed over before they were in place. Nothing depends on
/// them.
fn remove_unfinished(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Replaces the journal by one of these lines; a process that is killed
/// leaves the one or the other.
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
pub(super) fn put(lines: &mut Vec<u8>, line: &JournalLine) {
    // No line is a map with odd keys.
    lines.extend(sealed(&serde_json::to_vec(line).unwrap_or_default()));
    lines.push(b'\n');
}
