//! A controller's network over its REST API: coflows go out by POST, word of them comes back as
//! events.
//!
//! Two threads beside the caller's: one posts and cancels, in order; one follows the events. When
//! the stream of events breaks it is resumed where it ended, and every open coflow is looked at:
//! events hurry things, the coflow's resource is the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, MutexGuard};

use super::posted_coflows::{BrokenCoflow, CoflowNews, PostedCoflows};
use super::{Client, Error, PAUSE, TRIES};
use crate::api::wire;
use crate::coflows::{CoflowRecord, CoflowSpec};
use crate::ids::{CoflowId, FlowId, JobId, RackId};
use crate::placement::advisor::{PlacementRequest, ShuffleSpec};
use crate::runtime::jobs::live::{JobsNetwork, NetworkEvent};
use crate::topology::Topology;
use crate::units::{Bytes, Span};

/// Interval at which coflows that have ended are noted: a controller remembers each for a minute.
const NOTE_EVERY: Duration = Duration::from_secs(5);

/// Time that the requests at the end of a run have left once one of them has failed.
const LAST_TRIES: Duration = Duration::from_secs(5);

/// What is to be done, in order.
enum SendOrder {
    /// A coflow; if the controller holds a proposal of this number for it, as its confirmation.
    Start(CoflowSpec, Option<u32>),
    Cancel(CoflowId),
    Prioritise(CoflowId, Vec<(FlowId, u8)>),
}

/// What the threads share.
struct RemoteShared {
    client: Arc<Client>,
    book: Mutex<PostedCoflows>,
    words: Mutex<mpsc::Sender<Result<NetworkEvent, Error>>>,
    over: AtomicBool,
    /// Part of every idempotency key: no other run has it.
    run: String,
}

/// A network over REST.
pub struct Remote {
    shared: Arc<RemoteShared>,
    orders: Option<mpsc::Sender<SendOrder>>,
    poster: Option<JoinHandle<()>>,
    words: mpsc::Receiver<Result<NetworkEvent, Error>>,
    /// Every coflow that was asked, by number.
    asked: BTreeMap<CoflowId, CoflowSpec>,
    lost: Option<Error>,
    held: HeldProposals,
}

/// What the controller holds for shuffles that have not begun, by its numbers.
#[derive(Default)]
struct HeldProposals {
    by_stage: BTreeMap<(JobId, usize), u32>,
    /// Number that is held for the coflow that is started next.
    next: Option<u32>,
    /// Number of times that was asked.
    asked: u32,
}

/// How long the controller shall hold a proposal: tasks must have started by then, or their shuffle
/// begins as any other coflow.
const HOLD: Span = Span::secs(60);

impl Remote {
    /// Follows the controller's events from now on.
    ///
    /// # Errors
    /// No controller, or no thread to be had.
    pub fn new(client: Arc<Client>) -> Result<Self, Error> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let run = format!("{:x}-{:x}", since.as_nanos(), std::process::id());
        let (tell, words) = mpsc::channel();
        let shared = RemoteShared {
            client,
            book: Mutex::default(),
            words: Mutex::new(tell),
            over: AtomicBool::new(false),
            run,
        };
        let shared = Arc::new(shared);
        // What ended before the run is of no interest.
        let before = shared.client.ended(u64::MAX)?;
        shared.book().note_ended(&before);
        let first = shared.client.events(None)?;
        let (orders, todo) = mpsc::channel();
        let (a, b) = (shared.clone(), shared.clone());
        spawn(&shared, "events", move || a.follow(first))?;
        let poster = spawn(&shared, "posts", move || b.post_all(&todo))?;
        Ok(Self {
            shared,
            orders: Some(orders),
            poster: Some(poster),
            words,
            asked: BTreeMap::new(),
            lost: None,
            held: HeldProposals::default(),
        })
    }

    /// Ends the run: nothing more is posted, and coflows on their way are cancelled once it is
    /// known how far they came. Gives what was asked and what is known of it.
    ///
    /// # Errors
    /// Why a coflow could not be cancelled, the first one of several.
    pub fn close(&mut self) -> Result<(), Error> {
        self.shared.over.store(true, Relaxed);
        drop(self.orders.take());
        if let Some(p) = self.poster.take() {
            let _ = p.join();
        }
        let held = std::mem::take(&mut self.held.by_stage).into_values();
        let open = self.shared.book().open();
        let held = held.map(|theirs| self.shared.client.take_back(theirs));
        all_in(LAST_TRIES, held.chain(open.into_iter().map(|(id, _)| self.shared.cancel(id))))
    }

    /// Notes which coflows have ended since the last time: at the end of a run, once the
    /// controller's counters have settled.
    ///
    /// # Errors
    /// No controller, or no answer.
    pub fn note_ended(&self) -> Result<(), Error> {
        self.shared.note_ended()
    }

    /// The coflows of the run as they are reported, as far as is known of them.
    pub fn coflows(&self, topology: &Topology) -> Vec<CoflowRecord> {
        let book = self.shared.book();
        let record = |c: &CoflowSpec| {
            let cct = book.of(c.id).1;
            CoflowRecord::new(c, topology, cct.map(|s| c.arrival + s), book.share(c.id))
        };
        self.asked.values().map(record).collect()
    }

    /// All bytes that receivers have counted.
    pub fn received(&self) -> Bytes {
        self.shared.book().received()
    }

    /// Why the network failed.
    pub fn lost(&self) -> Option<Error> {
        self.lost.clone()
    }

    fn order(&mut self, order: SendOrder) -> Result<(), String> {
        let sent = self.orders.as_ref().is_some_and(|o| o.send(order).is_ok());
        if sent { Ok(()) } else { Err(self.why_nobody_posts()) }
    }

    /// Why no coflow can be posted any more: what the thread that posts said before it ended.
    fn why_nobody_posts(&mut self) -> String {
        while let Ok(word) = self.words.try_recv() {
            if let Err(why) = word {
                return self.loses(why);
            }
        }
        "the thread that posts coflows has ended".into()
    }

    fn loses(&mut self, why: Error) -> String {
        self.lost.insert(why).to_string()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.shared.over.store(true, Relaxed);
    }
}

impl JobsNetwork for Remote {
    fn start(&mut self, coflow: &CoflowSpec) -> Result<(), String> {
        self.shared.book().posting(coflow.id);
        self.asked.insert(coflow.id, coflow.clone());
        let held = self.held.next.take();
        self.order(SendOrder::Start(coflow.clone(), held))
    }

    fn place(
        &mut self,
        what: (JobId, usize),
        request: &PlacementRequest,
    ) -> Result<Option<Vec<(RackId, u32)>>, String> {
        let ShuffleSpec::Open { maps, reduces, free, .. } = &request.shuffle else {
            return Ok(None);
        };
        let place = wire::PlaceRequest {
            maps: maps
                .iter()
                .map(|&(r, b)| wire::RackOutput {
                    rack: wire::RackRef(r.0),
                    bytes: wire::Amount(b.0),
                    by_task: vec![],
                })
                .collect(),
            reduces: None,
            tasks: Some(*reduces),
            slots: Some(slots(free)),
            allowed: None,
            forbidden: vec![],
            at_most: None,
            ready_ns: wire::Length(request.ready.0),
            deadline_ns: None,
            hold_ns: Some(wire::Length(HOLD.0)),
        };
        if let Some(old) = self.held.by_stage.remove(&what) {
            self.shared.client.take_back(old).map_err(|e| e.to_string())?;
        }
        self.held.asked += 1;
        let made = self.shared.propose(what, place, self.held.asked);
        let Some(made) = made.map_err(|e| e.to_string())? else { return Ok(None) };
        self.held.by_stage.insert(what, made.id);
        let racks = made.proposal.map(|h| h.proposal.chosen.racks);
        Ok(racks.map(|all| all.iter().map(|r| (RackId(r.rack), r.tasks)).collect()))
    }

    fn begins(&mut self, what: (JobId, usize)) -> Result<(), String> {
        self.held.next = self.held.by_stage.remove(&what);
        Ok(())
    }

    fn cancel(&mut self, coflow: CoflowId) -> Result<(), String> {
        self.order(SendOrder::Cancel(coflow))
    }

    fn prioritise(&mut self, coflow: CoflowId, flows: &[(FlowId, u8)]) -> Result<(), String> {
        self.order(SendOrder::Prioritise(coflow, flows.to_vec()))
    }

    /// One request. A coflow whose post is not answered has all its bytes before it.
    fn left(&mut self) -> Result<Vec<(CoflowId, FlowId, Bytes)>, String> {
        let unposted = self.shared.book().unposted();
        let answer = self.shared.client.open_flows().map_err(|e| self.loses(e))?;
        let book = self.shared.book();
        let theirs = answer.coflows.iter().filter_map(|c| Some((book.open_by(c.id)?, &c.flows)));
        let mut left: Vec<_> = theirs
            .flat_map(|(id, flows)| {
                flows.iter().map(move |f| (id, FlowId(f.flow), Bytes(f.left_bytes)))
            })
            .collect();
        let told: BTreeSet<CoflowId> = left.iter().map(|l| l.0).collect();
        for spec in
            unposted.iter().filter(|id| !told.contains(id)).filter_map(|id| self.asked.get(id))
        {
            let sent = spec
                .flows
                .iter()
                .enumerate()
                .filter(|(_, f)| f.from != f.to && f.bytes > Bytes::ZERO);
            left.extend(sent.map(|(k, f)| (spec.id, FlowId::from(k), f.bytes)));
        }
        left.sort_unstable();
        Ok(left)
    }

    fn next(&mut self, patience: Duration) -> Result<Option<NetworkEvent>, String> {
        match self.words.recv_timeout(patience) {
            Ok(Ok(word)) => Ok(Some(word)),
            Err(mpsc::RecvTimeoutError::Timeout) => Ok(None),
            Ok(Err(why)) => Err(self.loses(why)),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                Err("the threads that follow the controller have ended".into())
            }
        }
    }
}

/// Makes all requests, also after one that fails, though no more of them when that is longer ago
/// than `patience`; gives the first error.
fn all_in(
    patience: Duration,
    requests: impl Iterator<Item = Result<(), Error>>,
) -> Result<(), Error> {
    let mut failed: Option<(Error, Instant)> = None;
    for done in requests {
        if let Err(e) = done {
            failed.get_or_insert_with(|| (e, Instant::now()));
        }
        if failed.as_ref().is_some_and(|f| f.1.elapsed() > patience) {
            break;
        }
    }
    failed.map_or(Ok(()), |f| Err(f.0))
}

/// A thread whose panic ends the run.
fn spawn(
    shared: &Arc<RemoteShared>,
    name: &'static str,
    f: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, Error> {
    let alarm = PanicNotice { shared: shared.clone(), name };
    let work = move || {
        let _alarm = alarm;
        f();
    };
    std::thread::Builder::new()
        .name(name.into())
        .spawn(work)
        .map_err(|e| Error::Refused(format!("start a thread: {e}")))
}

/// Held by a thread: tells the caller's of its panic, who would wait for its words for ever.
struct PanicNotice {
    shared: Arc<RemoteShared>,
    name: &'static str,
}

impl Drop for PanicNotice {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.tell(Err(Error::Refused(format!(
                "the thread of the controller's {} has died",
                self.name
            ))));
        }
    }
}

impl RemoteShared {
    fn book(&self) -> MutexGuard<'_, PostedCoflows> {
        self.book.lock()
    }

    fn tell(&self, word: Result<NetworkEvent, Error>) {
        // The listener may have gone: then the word is not needed.
        let _ = self.words.lock().send(word);
    }

    fn post_all(&self, todo: &mpsc::Receiver<SendOrder>) {
        let mut noted = Instant::now();
        loop {
            let order = match todo.recv_timeout(NOTE_EVERY.saturating_sub(noted.elapsed())) {
                Ok(order) => Some(order),
                Err(mpsc::RecvTimeoutError::Timeout) => None,
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            };
            if self.over.load(Relaxed) {
                return;
            }
            let done = match order {
                Some(SendOrder::Start(c, None)) => self.post(&c),
                Some(SendOrder::Start(c, Some(held))) => self.confirm(&c, held),
                Some(SendOrder::Cancel(id)) => self.cancel(id),
                Some(SendOrder::Prioritise(id, flows)) => self.prioritise(id, &flows),
                None => Ok(()),
            };
            let done = done.and_then(|()| {
                let due = noted.elapsed() >= NOTE_EVERY;
                noted = if due { Instant::now() } else { noted };
                if due { self.note_ended() } else { Ok(()) }
            });
            if let Err(why) = done {
                return self.tell(Err(why));
            }
        }
    }

    /// Posts a coflow.
    fn post(&self, c: &CoflowSpec) -> Result<(), Error> {
        let body = wire::CoflowBody {
            name: Some(c.name.chars().take(64).collect()),
            pairs: vec![],
            flows: wire::Flow::of(c),
            place: None,
            send: true,
            weight: None,
            priority: c.priorities.all,
            types: wire::SwitchTier::all(&c.types),
        };
        self.posted(c.id, &self.client.declare(&body, &format!("{}-{}", self.run, c.id.0))?)
    }

    /// Notes the answer to a post. It may show a coflow that has broken by then.
    fn posted(&self, id: CoflowId, made: &wire::Coflow) -> Result<(), Error> {
        // As in `hear`: the book is held until its words are passed on.
        let mut book = self.book();
        let words = book.posted(id, made.id).map_err(|b| broke(&b))?;
        words.into_iter().for_each(|w| self.tell(Ok(w)));
        drop(book);
        if made.state == wire::CoflowState::Cancelled {
            self.hear(made.id, CoflowNews::Gone)
        } else {
            Ok(())
        }
    }

    /// Gives flows of a coflow other priorities; one that is over is no error.
    fn prioritise(&self, id: CoflowId, flows: &[(FlowId, u8)]) -> Result<(), Error> {
        let Some(theirs) = self.book().of(id).0 else { return Ok(()) };
        let flows = flows
            .iter()
            .map(|&(flow, priority)| wire::FlowPriority { flow: flow.0, priority })
            .collect();
        self.client.prioritise(theirs, &wire::CoflowChange { priority: None, flows })
    }

    /// Begins a coflow that the controller has proposed, with its flows; as any other, if it is not
    /// held any more.
    fn confirm(&self, c: &CoflowSpec, theirs: u32) -> Result<(), Error> {
        let body = wire::Confirmation {
            flows: wire::Flow::of(c),
            send: true,
            priority: c.priorities.all,
            types: wire::SwitchTier::all(&c.types),
        };
        let begun = self.client.confirm(theirs, &body)?;
        begun.map_or_else(|| self.post(c), |made| self.posted(c.id, &made))
    }

    /// Asks where the tasks of a stage shall go; nothing if they cannot be placed: then they run
    /// wherever there is room.
    fn propose(
        &self,
        (job, stage): (JobId, usize),
        place: wire::PlaceRequest,
        turn: u32,
    ) -> Result<Option<wire::Coflow>, Error> {
        let name = Some(format!("job-{}-stage-{stage}", job.0));
        let body = wire::CoflowBody {
            name,
            pairs: vec![],
            flows: vec![],
            place: Some(place),
            send: true,
            weight: None,
            priority: None,
            types: vec![],
        };
        self.client.propose(&body, &format!("{}-place-{turn}", self.run))
    }

    /// Notes which coflows have ended since the last time.
    fn note_ended(&self) -> Result<(), Error> {
        let after = self.book().ended();
        let seen = self.client.ended(after)?;
        self.book().note_ended(&seen);
        Ok(())
    }

    /// Takes a coflow back, once it is known how far it came; one that is over already is no error.
    fn cancel(&self, id: CoflowId) -> Result<(), Error> {
        let Some(theirs) = self.book().cancelled(id) else { return Ok(()) };
        let seen = self.client.coflow(theirs).map(|c| {
            let mut book = self.book();
            let flows = c.iter().flat_map(|c| c.flows.iter().flatten());
            flows
                .enumerate()
                .for_each(|(k, f)| book.partly(id, FlowId::from(k), Bytes(f.received_bytes)));
        });
        let taken = self.client.take_back(theirs);
        seen.and(taken)
    }

    /// Follows the events until the run is over or the controller is lost.
    fn follow(&self, first: impl BufRead) {
        let mut last = None;
        let mut why = self.read(first, &mut last);
        let mut tries = 1;
        while !self.over.load(Relaxed)
            && !matches!(why, Err(Error::Refused(_) | Error::Broken(_)))
            && tries <= TRIES
        {
            std::thread::sleep(PAUSE * tries);
            tries += 1;
            why = self.client.events(last).and_then(|lines| {
                self.look_at_all()?;
                let before = last;
                let end = self.read(lines, &mut last);
                tries = if last == before { tries } else { 1 };
                end
            });
        }
        if let (false, Err(why)) = (self.over.load(Relaxed), why) {
            self.tell(Err(why));
        }
    }

    /// Reads a stream of events up to its end, which is an error: it has none by itself.
    fn read(&self, lines: impl BufRead, last: &mut Option<u64>) -> Result<(), Error> {
        let mut gap = false;
        for line in lines.lines() {
            let Ok(line) = line else { break };
            if self.over.load(Relaxed) {
                return Ok(());
            }
            if let Some(id) = line.strip_prefix("id: ") {
                *last = id.parse().ok().or(*last);
            } else if let Some(name) = line.strip_prefix("event: ") {
                gap = name == "gap";
            } else if let Some(data) = line.strip_prefix("data: ") {
                if gap {
                    self.look_at_all()?;
                } else if let Ok(record) = serde_json::from_str::<wire::Record>(data) {
                    self.event(&record.what)?;
                }
            }
        }
        Err(Error::Unreachable(format!("{} has ended its stream of events", self.client.base())))
    }

    fn event(&self, what: &wire::What) -> Result<(), Error> {
        match *what {
            wire::What::FlowFinished { id, flow, received_bytes } => {
                self.hear(id, CoflowNews::Flow(FlowId(flow), Bytes(received_bytes)))
            }
            wire::What::CoflowFinished { id, cct_ns } => {
                self.hear(id, CoflowNews::Finished(Span(cct_ns)))
            }
            wire::What::CoflowCancelled { id, .. } => self.hear(id, CoflowNews::Gone),
            _ => Ok(()),
        }
    }

    fn hear(&self, theirs: u32, heard: CoflowNews) -> Result<(), Error> {
        // The book is held while its word is passed on: words keep their order.
        let mut book = self.book();
        if let Some(word) = book.hear(theirs, heard).map_err(|b| broke(&b))? {
            self.tell(Ok(word));
        }
        Ok(())
    }

    /// Looks at every open coflow: what events there were meanwhile is not known.
    fn look_at_all(&self) -> Result<(), Error> {
        let open = self.book().open();
        for (_, theirs) in open {
            let Some(c) =
                self.client.coflow(theirs)?.filter(|c| c.state != wire::CoflowState::Cancelled)
            else {
                self.hear(theirs, CoflowNews::Gone)?;
                continue;
            };
            let arrived =
                c.flows.iter().flatten().enumerate().filter(|(_, f)| f.finished_ns.is_some());
            for (k, f) in arrived {
                self.hear(theirs, CoflowNews::Flow(FlowId::from(k), Bytes(f.received_bytes)))?;
            }
            if let Some(cct) = c.cct_ns {
                self.hear(theirs, CoflowNews::Finished(Span(cct)))?;
            }
        }
        Ok(())
    }
}

/// Slots by rack, those that are free together as one entry.
fn slots(free: &[Vec<Span>]) -> Vec<wire::RackSlots> {
    let rack = |(r, times): (usize, &Vec<Span>)| {
        let mut all = wire::RackSlots { rack: wire::RackRef(r as u32), free: 0, soon: vec![] };
        for alike in times.chunk_by(|a, b| a == b) {
            match alike[0] {
                Span::ZERO => all.free = alike.len() as u32,
                Span(in_ns) => all
                    .soon
                    .push(wire::SoonFree { in_ns: wire::Length(in_ns), slots: alike.len() as u32 }),
            }
        }
        all
    };
    free.iter().enumerate().filter(|f| !f.1.is_empty()).map(rack).collect()
}

fn broke(b: &BrokenCoflow) -> Error {
    Error::Refused(format!(
        "the controller has taken coflow {} back, or its connection broke: its log says which",
        b.0.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_dies_is_told_to_who_waits_for_its_words() {
        let (tell, words) = mpsc::channel();
        let client = Arc::new(Client::new("http://127.0.0.1:1", None).unwrap());
        let (book, over, run) = (Mutex::default(), AtomicBool::new(false), String::new());
        let shared = Arc::new(RemoteShared { client, book, words: Mutex::new(tell), over, run });
        // It holds what the others need, too.
        let held = shared.clone();
        let thread = spawn(&shared, "events", move || {
            let _book = held.book();
            panic!("as it shall");
        });
        assert!(thread.unwrap().join().is_err());
        let why = Error::Refused("the thread of the controller's events has died".into());
        assert_eq!(words.try_recv().expect("told").map(drop), Err(why));
        drop(shared.book());
    }

    #[test]
    fn a_request_that_fails_keeps_none_from_being_made() {
        let mut made = vec![];
        let answers = [Ok(()), Err("first"), Ok(()), Err("second")]
            .map(|a| a.map_err(|e: &str| Error::TimedOut(e.into())));
        let requests = answers.into_iter().enumerate().map(|(k, a)| {
            made.push(k);
            a
        });
        assert_eq!(all_in(LAST_TRIES, requests), Err(Error::TimedOut("first".into())));
        assert_eq!(made, [0, 1, 2, 3]);
    }

    #[test]
    fn a_daemon_that_is_gone_is_not_asked_for_ever() {
        let mut asked = 0;
        let requests = std::iter::repeat_with(|| {
            asked += 1;
            Err(Error::Unreachable("gone".into()))
        });
        assert_eq!(all_in(Duration::ZERO, requests), Err(Error::Unreachable("gone".into())));
        assert!(asked < 1_000_000, "{asked}");
    }
}
