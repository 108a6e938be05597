//! What waits in the hosts' sockets, sampled by a thread of its own.
//!
//! Listing sockets takes each hash bucket's lock with softirqs off, and on letting go the kernel may carry packets for some
//! milliseconds in the caller's name. On a machine full of traffic that made the control cycle's poll last 80 ms; here it makes
//! a sample older instead.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::diag::SocketQueues;
use super::network::Network;
use crate::demand::DemandMatrix;
use crate::ids::HostId;
use crate::topology::Topology;
use crate::topology::addresses::rack_of_ip;

/// Shortest time between two samples.
const PAUSE: Duration = Duration::from_millis(20);
/// Shortest time between two samples as a multiple of the time that a sample takes: at most a twentieth of a processor.
const TIMES: u32 = 20;

type Newest = Arc<Mutex<Result<DemandMatrix, String>>>;

/// The sampling thread; dropping it ends the thread.
pub struct Backlog {
    newest: Newest,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Backlog {
    /// Opens a socket in every host and starts the thread.
    ///
    /// # Errors
    /// When the kernel cannot list sockets, or no thread can be had.
    pub fn start(net: &Network) -> io::Result<Self> {
        let topology = net.topology.clone();
        let mut hosts: Vec<SocketQueues> = net.hosts.iter().map(|h| SocketQueues::open(h.node.ns.as_fd())).collect::<io::Result<_>>()?;
        let newest: Newest = Arc::new(Mutex::new(sample(&topology, &mut hosts)));
        let (stop, stopped) = mpsc::channel();
        let put = newest.clone();
        let thread = std::thread::Builder::new().name("backlog".into()).spawn(move || {
            let mut pause = PAUSE;
            // Nothing is ever sent: the other end goes when the thread shall end.
            while stopped.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Timeout) {
                let begun = Instant::now();
                let seen = sample(&topology, &mut hosts);
                *put.lock() = seen;
                pause = PAUSE.max(begun.elapsed() * TIMES).min(Duration::from_secs(1));
            }
        })?;
        Ok(Self { newest, stop: Some(stop), thread: Some(thread) })
    }

    /// Whether the thread still takes samples.
    pub fn is_alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|t| !t.is_finished())
    }

    /// The newest sample, `R x R` bytes.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn newest(&self) -> io::Result<DemandMatrix> {
        self.newest.lock().clone().map_err(io::Error::other)
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(t) = self.thread.take() {
            let _ = t.join();
        }
    }
}

fn sample(topology: &Topology, hosts: &mut [SocketQueues]) -> Result<DemandMatrix, String> {
    let mut m = DemandMatrix::zero(topology.rack_count());
    for (k, q) in hosts.iter_mut().enumerate() {
        let from = topology.rack_of(HostId::from(k));
        q.read(|to, bytes| {
            if let Some(to) = rack_of_ip(topology, to) {
                m.add(from, to, bytes);
            }
        })
        .map_err(|e| format!("{}: {e}", topology.host_name(HostId::from(k))))?;
    }
    Ok(m)
}
