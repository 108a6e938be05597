//! What all requests share.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::http::StatusCode;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::board::Board;
use super::listeners::{Listener, Listeners};
use super::problem::{ProblemDetails, Reply};
use super::wire::{self, Named as _};
use crate::control::Event;
use crate::control::record::{Record, Snapshot};
use crate::fabric::{FlowProgress, Shipment};
use crate::ids::{CoflowId, FlowId, HostId, PlaneId, RackId};
use crate::runtime::api_sender::ApiSender;
use crate::runtime::handle::Handle;
use crate::runtime::journal::{self, IdempotencyKey, Journaled};
use crate::units::Bytes;

/// How many events `/api/v1/events` can go back.
pub const RING: usize = journal::EVENTS;
/// How many `Idempotency-Key`s are remembered.
const KEYS: usize = journal::KEYS;

/// Sends the bytes of coflows that are posted with `send: true`; given by the code that runs
/// traffic on the fabric.
pub trait CoflowSender: Send + Sync {
    /// Starts sending; the sender then reports [`Event::CoflowProgress`] and
    /// [`Event::CoflowFinished`] itself, and before that [`Event::FlowFinished`] of every flow if
    /// the report is of flows.
    ///
    /// # Errors
    /// Why it cannot, in words for the client.
    fn send(&self, what: Shipment<'_>) -> Result<(), String>;

    /// Stops sending a coflow that was cancelled.
    fn cancel(&self, _id: CoflowId) {}

    /// How far the flows of a coflow are, in their order; nothing of a coflow that it did not send,
    /// or has forgotten.
    fn flows(&self, _id: CoflowId) -> Option<Vec<FlowProgress>> {
        None
    }

    /// What the flows on their way have still to send, by coflow, then flow.
    fn left(&self) -> Vec<(CoflowId, Vec<(FlowId, Bytes)>)> {
        vec![]
    }

    /// Payload between racks that TCP has sent again since the start, if it is counted.
    fn sent_again(&self) -> Option<Bytes> {
        None
    }

    /// The largest number of a coflow of the daemon's own workload, while it runs one: numbers up
    /// to there are not for clients.
    fn last_own(&self) -> Option<CoflowId> {
        None
    }
}

impl CoflowSender for ApiSender {
    fn send(&self, what: Shipment<'_>) -> Result<(), String> {
        self.send(what);
        Ok(())
    }

    fn cancel(&self, id: CoflowId) {
        self.cancel(id);
    }

    fn flows(&self, id: CoflowId) -> Option<Vec<FlowProgress>> {
        self.flows(id)
    }

    fn left(&self) -> Vec<(CoflowId, Vec<(FlowId, Bytes)>)> {
        self.left()
    }

    fn sent_again(&self) -> Option<Bytes> {
        Some(self.sent_again())
    }

    fn last_own(&self) -> Option<CoflowId> {
        self.last_own()
    }
}

/// A connection's place among those that are open at once; also held by a request that goes on when
/// its client has hung up, so that their number has a bound.
pub type ConnectionSlot = Arc<OwnedSemaphorePermit>;

/// What a run is called, and when it began.
#[derive(Clone, Debug, Default)]
pub struct RunIdentity {
    /// Its name: that of the topology, or of `run --name`.
    pub name: Option<String>,
    /// The instant of which `_ns` counts, as ISO 8601 in UTC.
    pub started_at: Option<String>,
}

/// What all requests share; cheap to clone.
#[derive(Clone)]
pub struct App {
    /// The controller.
    pub handle: Handle,
    /// The last events.
    pub log: Arc<RecentEvents>,
    /// What sends coflows, if this daemon does.
    pub sender: Option<Arc<dyn CoflowSender>>,
    /// Held while a coflow is made, so that ids and keys are given once.
    pub ledger: Arc<tokio::sync::Mutex<GivenIds>>,
    /// Held while the policy is compared and replaced.
    pub policy_turn: Arc<tokio::sync::Mutex<()>>,
    /// The way by which the requests of this clone come.
    pub door: Arc<Listener>,
    /// All ways in.
    pub doors: Arc<Listeners>,
    /// What a task scheduler says of its jobs.
    pub board: Board,
    /// How long the controller may take for an answer.
    pub patience: Duration,
    /// The daemon's records on disk, if it keeps them.
    pub journal: Option<Journaled>,
    /// What this run is called, and when it began.
    pub run: Arc<RunIdentity>,
    /// True once the server stops: open streams end.
    pub stopping: watch::Receiver<bool>,
}

impl App {
    /// The newest snapshot.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.handle.snapshot()
    }

    /// The largest number of a coflow of the daemon's own workload ([`CoflowSender::last_own`]).
    pub fn last_own(&self) -> Option<CoflowId> {
        self.sender.as_ref().and_then(|s| s.last_own())
    }

    /// Tells the controller, and waits for its answer, but not for ever.
    pub async fn tell(&self, event: Event) -> Reply<()> {
        match tokio::time::timeout(self.patience, self.handle.tell(event)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(rejected)) => Err(rejected.into()),
            Err(_) => Err(ProblemDetails::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the controller does not answer",
            )),
        }
    }

    /// The plane of a path.
    pub fn plane(&self, text: &str) -> Reply<PlaneId> {
        let n = self.handle.topology.planes.len();
        let found = wire::PlaneRef::text(text).ok().filter(|k| (k.0 as usize) < n);
        found.map(|k| PlaneId(k.0)).ok_or_else(|| {
            ProblemDetails::not_found(format!("no plane `{text}`: {}", up_to(n, "plane")))
        })
    }

    /// The host of a path, by name or number.
    pub fn host(&self, text: &str) -> Reply<HostId> {
        let n = self.handle.topology.hosts.len();
        let found = wire::HostRef::text(text).ok().and_then(|h| h.find(&self.handle.topology).ok());
        found.ok_or_else(|| {
            ProblemDetails::not_found(format!(
                "no host `{text}`: they have names such as h0-0, or {}",
                up_to(n, "host")
            ))
        })
    }

    /// The rack of a path.
    pub fn rack(&self, text: &str) -> Reply<RackId> {
        let n = self.handle.topology.rack_count();
        let found = wire::RackRef::text(text).ok().filter(|k| (k.0 as usize) < n);
        let those = || format!("they have names such as r0, or {}", up_to(n, "rack"));
        found
            .map(|k| RackId(k.0))
            .ok_or_else(|| ProblemDetails::not_found(format!("no rack `{text}`: {}", those())))
    }
}

fn up_to(n: usize, what: &str) -> String {
    if n == 0 { format!("there is no {what}") } else { format!("they are 0 to {}", n - 1) }
}

/// An event, and what its readers are sent: written once for all of them.
pub struct StreamedEvent {
    /// The event.
    pub record: Arc<Record>,
    sent: OnceLock<(&'static str, String)>,
}

impl StreamedEvent {
    /// Its name and its JSON as the stream has them. O(1) but for the first reader.
    pub fn sent(&self) -> (&'static str, &str) {
        let (name, data) = self.sent.get_or_init(|| {
            let record = wire::Record::from(&*self.record);
            (record.what.name(), serde_json::to_string(&record).unwrap_or_default())
        });
        (name, data)
    }
}

/// The last [`RING`] events.
pub struct RecentEvents {
    ring: Mutex<VecDeque<Arc<StreamedEvent>>>,
    newest: watch::Sender<Option<u64>>,
}

impl Default for RecentEvents {
    fn default() -> Self {
        Self { ring: Mutex::new(VecDeque::with_capacity(RING)), newest: watch::channel(None).0 }
    }
}

impl RecentEvents {
    /// Appends.
    pub fn push(&self, record: Arc<Record>) {
        let seq = record.seq;
        {
            let mut ring = self.ring.lock();
            if ring.len() == RING {
                ring.pop_front();
            }
            ring.push_back(Arc::new(StreamedEvent { record, sent: OnceLock::new() }));
        }
        self.newest.send_replace(Some(seq));
    }

    /// The number of the newest event, to watch.
    pub fn newest(&self) -> watch::Receiver<Option<u64>> {
        self.newest.subscribe()
    }

    /// The first event after number `after` (`None`: the first of all) that is still remembered.
    pub fn next(&self, after: Option<u64>) -> Option<Arc<StreamedEvent>> {
        let ring = self.ring.lock();
        let k = ring.partition_point(|r| after.is_some_and(|a| r.record.seq <= a));
        ring.get(k).cloned()
    }
}

/// The first number that is given to a coflow that is posted: a daemon's own workload has smaller
/// ones, unless its file says otherwise.
pub const FIRST_POSTED: u32 = 1 << 20;

/// Which ids and idempotency keys have been given.
#[derive(Default)]
pub struct GivenIds {
    last_id: Option<CoflowId>,
    /// By key: the hash of its body, since the body itself may have megabytes, and the coflow that
    /// it made.
    keys: BTreeMap<String, (String, CoflowId)>,
    order: VecDeque<String>,
}

impl GivenIds {
    /// A coflow id above all that are known, all that were given and the `own` ones of the daemon's
    /// workload; `None` when they are used up.
    pub fn next_id(&mut self, known: &Snapshot, own: Option<CoflowId>) -> Option<CoflowId> {
        let top = known
            .coflows
            .used
            .max()
            .max(self.last_id)
            .max(own)
            .map_or(FIRST_POSTED - 1, |id| id.0.max(FIRST_POSTED - 1));
        self.last_id = Some(CoflowId(top.checked_add(1)?));
        self.last_id
    }

    /// Notes that a client chose this id.
    pub fn took(&mut self, id: CoflowId) {
        self.last_id = self.last_id.max(Some(id));
    }

    /// The coflow that the request with this key made, and whether its body was this one.
    pub fn kept(&self, key: &str, body: &[u8]) -> Option<(CoflowId, bool)> {
        self.keys.get(key).map(|(kept, id)| (*id, *kept == digest(body)))
    }

    /// Remembers a key, also one that an earlier daemon was given.
    pub fn remember(&mut self, IdempotencyKey { key, digest, id }: IdempotencyKey) {
        if self.keys.insert(key.clone(), (digest, id)).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > KEYS
            && let Some(old) = self.order.pop_front()
        {
            self.keys.remove(&old);
        }
    }
}

/// The key of a request for a coflow: with the hash of its body.
pub fn key(key: String, body: &[u8], id: CoflowId) -> IdempotencyKey {
    IdempotencyKey { key, digest: digest(body), id }
}

/// The same in every process, so that a key means the same after a restart.
fn digest(body: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(body).iter().map(|b| format!("{b:02x}")).collect()
}
