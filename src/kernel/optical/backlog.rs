//! Backlog in the hosts' sockets, sampled by a thread of its own.
//!
//! Listing sockets takes the lock of each hash bucket with softirqs off. When it is released, the
//! kernel may carry packets for some milliseconds on the caller's time. On a machine full of
//! traffic, that made the poll of the control cycle last 80 ms; here it makes a sample older
//! instead. A sample is taken shortly before it is expected to be asked for. Samples every 20 ms
//! were too old for traffic that had begun 30 ms before a control cycle: in some runs it got its
//! circuit one interval later.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::demand::{DemandMatrix, HostFlow};
use crate::diag::SocketQueues;
use crate::ids::HostId;
use crate::network::EmulatedNetwork;
use crate::pulse::Pulse;
use crate::topology::Topology;
use crate::topology::addresses::{host_of_ip, rack_of_ip};

/// Time between two samples while the next request cannot be predicted.
const PAUSE: Duration = Duration::from_millis(20);
/// How long before the next request a sample should be ready.
const AHEAD: Duration = Duration::from_millis(5);
/// Requests that are closer together count as one.
const ONE_QUESTION: Duration = Duration::from_millis(1);
/// Shortest time between two samples as a multiple of the time that a sample takes: at most a
/// twentieth of a processor.
const TIMES: u32 = 20;

type Newest = Arc<Mutex<Result<BacklogSample, String>>>;

/// Times of the requests.
#[derive(Clone, Copy, Debug, Default)]
struct Questions {
    last: Option<Instant>,
    /// Time between the last two.
    every: Option<Duration>,
}

impl Questions {
    /// Notes a request.
    fn note(&mut self, now: Instant) {
        let gap = self.last.map(|last| now.duration_since(last));
        if gap.is_none_or(|gap| gap >= ONE_QUESTION) {
            (self.last, self.every) = (Some(now), gap);
        }
    }

    /// Pause before the next sample, if the last one took `took`: so that it is ready right before
    /// the next request, or [`PAUSE`] if that time is past or unknown. At least [`TIMES`] as long
    /// as the last sample took, and at most a second.
    fn pause(&self, now: Instant, took: Duration) -> Duration {
        let begin = || {
            (self.last? + self.every?).checked_sub(AHEAD + 2 * took)?.checked_duration_since(now)
        };
        begin().unwrap_or(PAUSE).max(took * TIMES).min(Duration::from_secs(1))
    }
}

/// A sample.
struct BacklogSample {
    /// Bytes by rack pair.
    racks: DemandMatrix,
    /// All connections, once they were asked for.
    flows: Vec<HostFlow>,
}

/// The sampling thread; dropping it ends the thread.
pub struct Backlog {
    newest: Newest,
    questions: Arc<Mutex<Questions>>,
    /// Whether samples have the single connections.
    singly: Arc<AtomicBool>,
    pulse: Pulse,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Backlog {
    /// Opens a socket in every host and starts the thread.
    ///
    /// # Errors
    /// When the kernel cannot list sockets, or no thread can be had.
    pub fn start(net: &EmulatedNetwork) -> io::Result<Self> {
        let topology = net.topology.clone();
        let mut hosts: Vec<SocketQueues> = net
            .hosts
            .iter()
            .map(|h| SocketQueues::open(h.node.ns.as_fd()))
            .collect::<io::Result<_>>()?;
        let newest: Newest = Arc::new(Mutex::new(sample(&topology, &mut hosts, false)));
        let (stop, stopped) = mpsc::channel();
        let (singly, questions) =
            (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Questions::default())));
        let pulse = Pulse::default();
        let beats = pulse.clone();
        pulse.beat();
        let (put, asked, noted) = (newest.clone(), singly.clone(), questions.clone());
        let thread = std::thread::Builder::new().name("backlog".into()).spawn(move || {
            let mut pause = PAUSE;
            // Nothing is ever sent: the other end is dropped to end the thread.
            while stopped.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Timeout) {
                beats.beat();
                let begun = Instant::now();
                let seen = sample(&topology, &mut hosts, asked.load(Relaxed));
                *put.lock() = seen;
                let now = Instant::now();
                pause = noted.lock().pause(now, now.duration_since(begun));
            }
        })?;
        Ok(Self { newest, questions, singly, pulse, stop: Some(stop), thread: Some(thread) })
    }

    /// The thread's pulse.
    pub fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }

    /// Whether the thread still takes samples.
    pub fn is_alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|t| !t.is_finished())
    }

    /// Backlog by rack pair in the newest sample, `R x R` bytes.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn newest(&self) -> io::Result<DemandMatrix> {
        self.questions.lock().note(Instant::now());
        self.newest
            .lock()
            .as_ref()
            .map(|s| s.racks.clone())
            .map_err(|e| io::Error::other(e.clone()))
    }

    /// All connections of the newest sample. Samples have them from the first call on.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn flows(&self) -> io::Result<Vec<HostFlow>> {
        self.singly.store(true, Relaxed);
        self.newest
            .lock()
            .as_ref()
            .map(|s| s.flows.clone())
            .map_err(|e| io::Error::other(e.clone()))
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

fn sample(
    topology: &Topology,
    hosts: &mut [SocketQueues],
    singly: bool,
) -> Result<BacklogSample, String> {
    let mut seen =
        BacklogSample { racks: DemandMatrix::zero(topology.rack_count()), flows: Vec::new() };
    for (from, q) in (0..).map(HostId).zip(hosts) {
        q.read(singly, |c| {
            if let Some(to) = rack_of_ip(topology, c.to) {
                seen.racks.add(topology.rack_of(from), to, c.waits);
            }
            if let Some(to) = host_of_ip(topology, c.to).filter(|_| singly) {
                seen.flows.push(HostFlow {
                    from,
                    to,
                    id: c.cookie,
                    flows: 1,
                    sent: c.acknowledged,
                    waits: c.waits,
                });
            }
        })
        .map_err(|e| format!("{}: {e}", topology.host_name(from)))?;
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_there_shortly_before_it_is_asked_for() {
        let (start, ms) = (Instant::now(), Duration::from_millis);
        let mut q = Questions::default();
        assert_eq!(q.pause(start, ms(0)), PAUSE, "nothing is known");
        q.note(start);
        assert_eq!(q.pause(start, ms(0)), PAUSE, "one question tells nothing");
        q.note(start + ms(100));
        q.note(start + ms(100) + Duration::from_micros(10));
        // The next one is expected at 200 ms.
        let at = |now, took| q.pause(start + ms(now), ms(took));
        assert_eq!((at(110, 0), at(110, 2)), (ms(85), ms(81)));
        assert_eq!(at(110, 5), ms(100), "at most a twentieth of a processor");
        assert_eq!(
            (at(197, 0), at(1000, 0)),
            (PAUSE, PAUSE),
            "a question that is near or did not come"
        );
        assert_eq!(at(110, 60), Duration::from_secs(1));
    }
}
