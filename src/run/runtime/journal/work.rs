//! The thread that writes a journal.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::broadcast::{Receiver, Sender};
use tokio::sync::{mpsc, oneshot};

use super::file::{self, EVENTS, IdempotencyKey, JournalHead, JournalLine, JournalMark, KEYS, put};
use super::{AGAIN, JournalRequest, JournalStatus, WAITING};
use crate::control::record::{CoflowTotals, Record, RecordedEvent, Snapshot};
use crate::control::{Event, LogFile, Trouble};
use crate::ids::CoflowId;
use crate::runtime::handle::Handle;
use crate::runtime::lines::LineFile;
use crate::runtime::open;
use crate::topology::Topology;
use crate::units::{Bytes, Time};

/// What the thread keeps.
pub(super) struct JournalThread {
    pub directory: PathBuf,
    pub topology: Arc<Topology>,
    pub controller: Handle,
    pub file: LineFile,
    pub mark: File,
    /// The directory, locked.
    pub lock: File,
    /// The last events and keys, with which a file that is written again begins.
    pub events: VecDeque<Arc<Record>>,
    pub keys: VecDeque<IdempotencyKey>,
    /// Coflows that have begun and are not in the file, and when they began.
    pub begun: BTreeMap<CoflowId, Time>,
    /// Coflows whose end is in the file, those of earlier daemons included.
    pub ended: u64,
    /// Number of the next event.
    pub next: u64,
    pub refused: RefusedLines,
    /// Events that no file will have.
    pub missing: u64,
    /// What those that watch see of all this.
    pub written: Arc<JournalStatus>,
    /// The least size from which on the file is written again, and the one from which on it is
    /// next.
    pub limit: (u64, u64),
}

/// What the disk has not taken.
#[derive(Default)]
pub(super) struct RefusedLines {
    lines: Vec<u8>,
    /// Events among them, and among those that were dropped.
    events: u64,
    /// Lines were dropped: only a file that is written again has all.
    pub holed: bool,
    /// When it was last tried.
    tried: Option<Instant>,
    /// What was said of it.
    why: Option<String>,
}

/// What a turn of the thread heard.
#[derive(Default)]
struct JournalNews {
    events: Vec<Arc<Record>>,
    keys: Vec<IdempotencyKey>,
    /// Requests to be answered once all of this is in the file.
    waiting: Vec<oneshot::Sender<()>>,
    /// Events that were dropped before they were read.
    lost: u64,
    /// Nothing more will come.
    over: bool,
}

impl JournalNews {
    fn event(&mut self, event: Result<Arc<Record>, RecvError>) {
        match event {
            Ok(record) => self.events.push(record),
            Err(RecvError::Lagged(n)) => self.lost += n,
            Err(RecvError::Closed) => self.over = true,
        }
    }

    fn ask(&mut self, ask: JournalRequest) {
        match ask {
            JournalRequest::Commit(done) => self.waiting.push(done),
            JournalRequest::Key(key) => self.keys.push(key),
            JournalRequest::End => self.over = true,
        }
    }

    /// Takes all that has been sent by now. Requests come first: the events that they caused were
    /// sent before them, and are read after.
    fn all(
        &mut self,
        asks: &mut mpsc::UnboundedReceiver<JournalRequest>,
        events: &mut Receiver<Arc<Record>>,
    ) {
        while let Ok(ask) = asks.try_recv() {
            self.ask(ask);
        }
        loop {
            match events.try_recv() {
                Ok(record) => self.event(Ok(record)),
                Err(TryRecvError::Lagged(n)) => self.event(Err(RecvError::Lagged(n))),
                Err(TryRecvError::Closed) => return self.event(Err(RecvError::Closed)),
                Err(TryRecvError::Empty) => return,
            }
        }
    }
}

/// Writes until it is asked to end; gives the number of events that are not in the file. `told`
/// gets the events that are.
pub(super) async fn run(
    mut work: JournalThread,
    mut events: Receiver<Arc<Record>>,
    mut asks: mpsc::UnboundedReceiver<JournalRequest>,
    told: Sender<Arc<Record>>,
) -> u64 {
    let mut snapshots = work.controller.watch();
    loop {
        let mut heard = JournalNews::default();
        tokio::select! {
            event = events.recv() => heard.event(event),
            Some(ask) = asks.recv() => heard.ask(ask),
            // An error says that the controller has ended: what it told is written, and an end
            // follows.
            Ok(()) = snapshots.changed() => {}
        }
        heard.all(&mut asks, &mut events);
        // Read after the events: it shows what the requests in `heard.waiting` have changed.
        let snapshot = snapshots.borrow_and_update().clone();
        work.write(&heard, &snapshot);
        heard.events.into_iter().for_each(|r| drop(told.send(r)));
        for done in heard.waiting {
            // The client may have given up.
            let _ = done.send(());
        }
        if heard.over {
            return work.missing + work.refused.events;
        }
    }
}

impl JournalThread {
    fn write(&mut self, heard: &JournalNews, snapshot: &Snapshot) {
        self.look();
        let mut lines = vec![];
        for key in &heard.keys {
            put(&mut lines, &JournalLine::Key(key.clone()));
            file::keep(&mut self.keys, key.clone(), KEYS);
        }
        for record in &heard.events {
            put(&mut lines, &JournalLine::Event(record.clone()));
            self.next = record.seq + 1;
            if let RecordedEvent::CoflowArrived { id, .. } = record.what {
                self.begun.insert(id, record.at);
            }
            file::keep(&mut self.events, record.clone(), EVENTS);
        }
        self.missing += heard.lost;
        self.refused.holed |= heard.lost > 0;
        self.coflows(&mut lines, snapshot);
        self.append(&lines, heard.events.len() as u64, (snapshot, heard.over));
        self.written.bytes.store(self.file.length(), Relaxed);
        self.written.missing.store(self.missing, Relaxed);
        let id = snapshot.coflows.used.max().max(self.begun.last_key_value().map(|b| *b.0));
        let mark = JournalMark {
            seq: self.next,
            id,
            at: self.events.back().map_or(snapshot.now, |r| r.at.max(snapshot.now)),
        };
        if let Err(e) = mark.write(&self.mark) {
            self.say(Some(e.to_string()));
        }
    }

    /// Where other programs have taken away what was written, all that is remembered is written
    /// again.
    fn look(&mut self) {
        if self.refused.holed {
            return;
        }
        let path = file::path(&self.directory);
        if let Some(what) = self.file.meddled() {
            self.say(Some(format!("{}: {what}", path.display())));
            // It is tried at once.
            (self.refused.holed, self.refused.tried) = (true, None);
        } else if self.is_held() && !file::is_mark(&self.mark, &self.directory) {
            match file::mark(&self.directory) {
                Ok(mark) => self.mark = mark,
                Err(e) => self.say(Some(self.unheld(&e))),
            }
        }
    }

    /// Whether the directory is the one that was locked.
    fn is_held(&self) -> bool {
        self.directory.canonicalize().is_ok_and(|d| open::stands_at(&self.lock, &d))
    }

    fn unheld(&self, e: &TryLockError) -> String {
        let directory = self.directory.display();
        match e {
            TryLockError::WouldBlock => format!("{directory}: another daemon writes this journal"),
            TryLockError::Error(e) => format!("{directory}: {e}"),
        }
    }

    /// Coflows that have begun, and those that have ended, as the snapshot shows them for good.
    fn coflows(&mut self, lines: &mut Vec<u8>, snapshot: &Snapshot) {
        let coflows = &snapshot.coflows;
        let (shown, later) =
            std::mem::take(&mut self.begun).into_iter().partition(|b| b.1 <= snapshot.now);
        let shown: BTreeMap<CoflowId, Time> = shown;
        self.begun = later;
        for id in shown.into_keys() {
            // One that was open by then and is not live has ended.
            coflows
                .live
                .get(id)
                .into_iter()
                .for_each(|c| put(lines, &JournalLine::Open(c.clone())));
        }
        coflows
            .closed
            .after(self.ended)
            .for_each(|view| put(lines, &JournalLine::Ended(view.clone())));
        self.ended = coflows.closed.total();
    }

    /// Appends lines, and what was refused before; on a disk that refuses, once a second, and once
    /// more when all is `over`.
    fn append(&mut self, lines: &[u8], events: u64, (snapshot, over): (&Snapshot, bool)) {
        let r = &mut self.refused;
        r.lines.extend(lines);
        r.events += events;
        r.holed |= r.lines.len() > WAITING && r.why.is_some();
        if r.holed {
            r.lines.clear();
        }
        let rests = !over && r.why.is_some() && r.tried.is_some_and(|t| t.elapsed() < AGAIN);
        if rests || r.lines.is_empty() && !r.holed {
            return;
        }
        r.tried = Some(Instant::now());
        let written = if r.holed {
            self.rewrite(snapshot)
        } else {
            self.file.append(&r.lines, r.events);
            self.file.broken().map_or(Ok(()), |why| Err(why.to_owned()))
        };
        if written.is_ok() {
            (self.refused.lines, self.refused.events) = (vec![], 0);
        }
        self.say(written.err());
        if self.file.length() >= self.limit.1
            && let Err(why) = self.rewrite(snapshot)
        {
            tracing::warn!("{why}: the journal grows beyond {} bytes", self.limit.1);
            self.limit.1 += self.limit.0;
        }
    }

    /// Writes the file again, with what is remembered now.
    pub fn rewrite(&mut self, snapshot: &Snapshot) -> Result<(), String> {
        let path = file::path(&self.directory);
        let lines = self.whole(snapshot);
        let length = lines.len() as u64;
        self.hold().map_err(|e| self.unheld(&e))?;
        let new =
            file::replace(&self.directory, &lines).and_then(|f| LineFile::new(&path, f, length));
        self.file = new.map_err(|e| format!("{}: {e}", path.display()))?;
        self.limit.1 = self.limit.0.max(2 * length);
        // Of events that the disk refused, only the last EVENTS are in the new file.
        self.missing += self.refused.events.saturating_sub(EVENTS as u64);
        (self.refused.lines, self.refused.events, self.refused.holed) = (vec![], 0, false);
        Ok(())
    }

    /// Makes the directory again, if it was taken away, and keeps others out of it.
    fn hold(&mut self) -> Result<(), TryLockError> {
        if !self.is_held() {
            self.lock = file::hold(&self.directory)?;
        }
        if !file::is_mark(&self.mark, &self.directory) {
            self.mark = file::mark(&self.directory)?;
        }
        Ok(())
    }

    fn whole(&self, snapshot: &Snapshot) -> Vec<u8> {
        let coflows = &snapshot.coflows;
        // The ends of these follow, and are counted then.
        let waiting = coflows.live.iter().filter(|c| c.closed().is_some());
        let totals = waiting.fold(coflows.totals, |t, c| CoflowTotals {
            finished: t.finished - u64::from(c.finished.is_some()),
            cancelled: t.cancelled - u64::from(c.cancelled.is_some()),
            received: Bytes(t.received.0.saturating_sub(c.received.0)),
        });
        let forgotten = coflows.closed.total() - coflows.closed.len() as u64;
        let head = JournalHead::new(
            &self.topology,
            (self.next, snapshot.now),
            coflows.used.clone(),
            totals,
            forgotten,
        );
        let mut lines = vec![];
        put(&mut lines, &JournalLine::Head(Box::new(head)));
        coflows.closed.iter().for_each(|c| put(&mut lines, &JournalLine::Kept(c.clone())));
        self.keys.iter().for_each(|k| put(&mut lines, &JournalLine::Key(k.clone())));
        coflows.live.iter().for_each(|c| put(&mut lines, &JournalLine::Open(c.clone())));
        // What events after the snapshot did is not in the lines above.
        let event = |r: &Arc<Record>| {
            if r.at > snapshot.now {
                JournalLine::Event(r.clone())
            } else {
                JournalLine::Seen(r.clone())
            }
        };
        self.events.iter().for_each(|r| put(&mut lines, &event(r)));
        lines
    }

    /// What the disk says, once: in the log, in the events and in the failures that are shown.
    pub fn say(&mut self, why: Option<String>) {
        if self.refused.why.is_some() == why.is_some() {
            return;
        }
        match &why {
            Some(why) => tracing::warn!(
                "{why}: control goes on; the journal is written again as soon as that can be"
            ),
            None => {
                tracing::warn!("the journal is written again: {} events are missing", self.missing)
            }
        }
        self.controller
            .notify(Event::Trouble { what: Trouble::File(LogFile::Journal), why: why.clone() });
        self.refused.why = why;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{arrival, network, tell};
    use super::super::{Journal, Journaled};
    use super::*;
    use crate::control::Controller;
    use crate::control::policy::CircuitPolicy;
    use crate::runtime::handle::HandlePeer;
    use crate::units::Span;

    type JournaledController = (Controller, HandlePeer, Time);

    /// The controller hears an event, and the thread what it tells.
    fn turn(
        work: &mut JournalThread,
        running: &mut JournaledController,
        heard: &mut Receiver<Arc<Record>>,
        event: Event,
    ) {
        running.2 += Span::millis(1);
        tell(running, event);
        let events = std::iter::from_fn(|| heard.try_recv().ok()).collect();
        let snapshot = work.controller.snapshot();
        work.write(&JournalNews { events, ..JournalNews::default() }, &snapshot);
    }

    /// What the thread has told the controller of the disk.
    fn told(running: &JournaledController) -> Vec<Option<String>> {
        let why = |e| if let Event::Trouble { why, .. } = e { why } else { panic!("{e:?}") };
        std::iter::from_fn(|| running.1.commands.try_recv().ok()).map(|c| why(c.event)).collect()
    }

    /// Few lines are kept and appended when there is room; after many, what is remembered is
    /// written again.
    #[test]
    fn a_full_disk_is_told_once_and_what_is_remembered_is_there_when_there_is_room() {
        for many in [0, EVENTS as u64 + 100] {
            let dir = tempfile::tempdir().unwrap();
            let controller =
                Controller::new(network(), CircuitPolicy::default(), Time::ZERO, Span::ZERO);
            let (handle, ends) = Handle::new(
                network(),
                Arc::new(CircuitPolicy::default().into()),
                controller.snapshot(Time::ZERO, "test"),
                0,
            );
            let mut work = Journal::open(dir.path(), network()).unwrap().work(&handle).unwrap();
            let (mut heard, mut running) = (handle.events(), (controller, ends, Time::ZERO));
            let real = (
                std::mem::replace(&mut work.file, LineFile::full()),
                std::mem::replace(&mut work.directory, "/proc/none".into()),
            );
            (0..3).for_each(|id| turn(&mut work, &mut running, &mut heard, arrival(id)));
            for _ in 0..many {
                turn(
                    &mut work,
                    &mut running,
                    &mut heard,
                    Event::Fault { what: "x".repeat(300), over: false },
                );
            }
            let said = told(&running);
            assert!(
                said.len() == 1 && said[0].as_ref().is_some_and(|w| w.contains("No space left")),
                "{said:?}"
            );
            (work.file, work.directory, work.refused.tried) = (real.0, real.1, None);
            turn(&mut work, &mut running, &mut heard, arrival(3));
            assert_eq!(told(&running), [None]);
            let missing = work.missing;
            drop(work);
            let journal = Journal::open(dir.path(), network()).unwrap();
            let past = &journal.found().past;
            assert_eq!((past.seq, past.open.len()), (many + 4, 4));
            assert_eq!(
                missing,
                (many + 4).saturating_sub(EVENTS as u64),
                "events that are in no file are counted"
            );
        }
    }

    #[test]
    fn an_answer_is_not_waited_for_without_the_thread() {
        let (ask, asks) = mpsc::unbounded_channel();
        drop(asks);
        let journal = Journaled {
            events: [].into(),
            keys: [].into(),
            told: Arc::default(),
            ask,
            written: Arc::default(),
        };
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(journal.commit());
    }
}
