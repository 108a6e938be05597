//! What waits in the hosts' sockets, sampled by a thread of its own.
//!
//! Listing sockets takes each hash bucket's lock with softirqs off, and on letting go the kernel may carry packets for some
//! milliseconds in the caller's name. On a machine full of traffic that made the control cycle's poll last 80 ms; here it makes
//! a sample older instead.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::diag::SocketQueues;
use super::network::Network;
use crate::demand::{DemandMatrix, HostFlow};
use crate::ids::HostId;
use crate::topology::Topology;
use crate::topology::addresses::{host_of_ip, rack_of_ip};

/// Shortest time between two samples.
const PAUSE: Duration = Duration::from_millis(20);
/// Shortest time between two samples as a multiple of the time that a sample takes: at most a twentieth of a processor.
const TIMES: u32 = 20;

type Newest = Arc<Mutex<Result<Sample, String>>>;

/// What waits in the hosts' sockets.
struct Sample {
    /// Bytes by rack pair.
    racks: DemandMatrix,
    /// All connections, once they were asked for.
    flows: Vec<HostFlow>,
}

/// The sampling thread; dropping it ends the thread.
pub struct Backlog {
    newest: Newest,
    /// Whether connections are told one by one.
    singly: Arc<AtomicBool>,
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
        let newest: Newest = Arc::new(Mutex::new(sample(&topology, &mut hosts, false)));
        let (stop, stopped) = mpsc::channel();
        let singly = Arc::new(AtomicBool::new(false));
        let (put, asked) = (newest.clone(), singly.clone());
        let thread = std::thread::Builder::new().name("backlog".into()).spawn(move || {
            let mut pause = PAUSE;
            // Nothing is ever sent: the other end goes when the thread shall end.
            while stopped.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Timeout) {
                let begun = Instant::now();
                let seen = sample(&topology, &mut hosts, asked.load(Relaxed));
                *put.lock() = seen;
                pause = PAUSE.max(begun.elapsed() * TIMES).min(Duration::from_secs(1));
            }
        })?;
        Ok(Self { newest, singly, stop: Some(stop), thread: Some(thread) })
    }

    /// Whether the thread still takes samples.
    pub fn is_alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|t| !t.is_finished())
    }

    /// What waits by rack pair in the newest sample, `R x R` bytes.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn newest(&self) -> io::Result<DemandMatrix> {
        self.newest.lock().as_ref().map(|s| s.racks.clone()).map_err(|e| io::Error::other(e.clone()))
    }

    /// All connections of the newest sample. Samples have them from the first call on.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn flows(&self) -> io::Result<Vec<HostFlow>> {
        self.singly.store(true, Relaxed);
        self.newest.lock().as_ref().map(|s| s.flows.clone()).map_err(|e| io::Error::other(e.clone()))
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

fn sample(topology: &Topology, hosts: &mut [SocketQueues], singly: bool) -> Result<Sample, String> {
    let mut seen = Sample { racks: DemandMatrix::zero(topology.rack_count()), flows: Vec::new() };
    for (from, q) in (0..).map(HostId).zip(hosts) {
        q.read(singly, |c| {
            if let Some(to) = rack_of_ip(topology, c.to) {
                seen.racks.add(topology.rack_of(from), to, c.waits);
            }
            if let Some(to) = host_of_ip(topology, c.to).filter(|_| singly) {
                seen.flows.push(HostFlow { from, to, id: c.cookie, flows: 1, sent: c.acknowledged, waits: c.waits });
            }
        })
        .map_err(|e| format!("{}: {e}", topology.host_name(from)))?;
    }
    Ok(seen)
}
