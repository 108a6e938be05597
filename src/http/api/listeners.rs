//! The two ways in, TCP and the unix socket: each has limits of its own, so that the clients of one
//! never lock out those of the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::http::{Method, StatusCode};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::{ProblemDetails, Reply};
use crate::control::histogram::Histogram;
use crate::units::Span;

/// What one way in admits at once.
#[derive(Clone, Copy, Debug)]
pub struct ListenerLimits {
    /// Connections; more wait.
    pub connections: usize,
    /// Event streams; more are refused. The other connections are for requests that end.
    pub streams: usize,
}

/// Over TCP.
pub const TCP: ListenerLimits = ListenerLimits { connections: 512, streams: 384 };
/// Over the unix socket.
pub const UNIX: ListenerLimits = ListenerLimits { connections: 128, streams: 96 };

/// A way in, and what was counted at it.
pub struct Listener {
    /// `tcp` or `unix`.
    pub name: &'static str,
    /// What it admits.
    pub limits: ListenerLimits,
    /// Room for further connections.
    pub slots: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    refused: AtomicU64,
    /// Times until requests were answered, from when their head was read: those that change
    /// nothing, and the others.
    answered: Mutex<[Histogram; 2]>,
}

impl Listener {
    fn new(name: &'static str, limits: ListenerLimits) -> Self {
        let room = |n| Arc::new(Semaphore::new(n));
        let (slots, streams) = (room(limits.connections), room(limits.streams));
        Self {
            name,
            limits,
            slots,
            streams,
            refused: AtomicU64::new(0),
            answered: Mutex::default(),
        }
    }

    /// Takes room for an event stream.
    ///
    /// # Errors
    /// 503 where all is taken; that is counted.
    pub fn stream(&self) -> Reply<OwnedSemaphorePermit> {
        self.streams.clone().try_acquire_owned().map_err(|_| {
            self.refused.fetch_add(1, Relaxed);
            let (most, name) = (self.limits.streams, self.name);
            ProblemDetails::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("{most} clients over {name} follow the events already"),
            )
        })
    }

    /// Counts a request that was answered.
    pub fn answered(&self, method: &Method, took: Span) {
        self.answered.lock()[usize::from(!method.is_safe())].add(took, 1);
    }

    /// Connections that are open now.
    pub fn open(&self) -> u64 {
        (self.limits.connections - self.slots.available_permits()) as u64
    }

    /// Event streams that are open now.
    pub fn streaming(&self) -> u64 {
        (self.limits.streams - self.streams.available_permits()) as u64
    }

    /// Event streams that were refused since the start.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Times until requests were answered: those that change nothing (`read`), and the others
    /// (`change`).
    pub fn times(&self) -> [(&'static str, Histogram); 2] {
        let [read, change] = self.answered.lock().clone();
        [("read", read), ("change", change)]
    }
}

/// Both ways in.
pub struct Listeners {
    /// TCP.
    pub tcp: Arc<Listener>,
    /// The unix socket.
    pub unix: Arc<Listener>,
}

impl Default for Listeners {
    fn default() -> Self {
        Self {
            tcp: Arc::new(Listener::new("tcp", TCP)),
            unix: Arc::new(Listener::new("unix", UNIX)),
        }
    }
}

impl Listeners {
    /// Both, to go over.
    pub fn all(&self) -> [&Listener; 2] {
        [&self.tcp, &self.unix]
    }
}
