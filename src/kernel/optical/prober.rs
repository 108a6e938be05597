//! Circuit probes: frames sent into a newly connected input prove that light comes out at the right
//! output.
//!
//! Around the instant at which a circuit should get its light, its ToR sends a short train of
//! frames (EtherType 0x88b5) into its OCS port. The first frame that comes out at the right ToR
//! proves the circuit and gives its time. One that comes out elsewhere, or none within
//! [`PROBE_PATIENCE`] of the first that was sent, is a failure; the controller repeats this probe
//! before it blames a port. Time in which this machine stood still does not count, because a blamed
//! port stays out of use. Circuits that are shorter than the patience are not judged. The interval
//! of the frames limits how well the dark time is known: to some 100 us on an idle machine.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use pnet::datalink::{
    self, Channel, ChannelType, DataLinkReceiver, DataLinkSender, NetworkInterface,
};
use pnet::util::MacAddr;

use super::parker::Parker;
use crate::bpf::programs::PROBE_ETHERTYPE;
use crate::fabric::{PROBE_PATIENCE, ProbeReport, ProbeRequest};
use crate::ids::{PlaneId, RackId};
use crate::network::EmulatedNetwork;
use crate::units::{Span, Time};
use crate::{Clock, netns, sys};

/// Time before the circuit should have light at which the train begins.
const EARLY: Span = Span::micros(40);
/// Time between two frames of a train.
const GRAIN: Span = Span::micros(30);
/// The most time between two looks that counts as waiting for a frame.
const LOOK: Span = Span::millis(1);
/// How long a train waits for its circuit's light: the kernel may be busy with other networks.
const LIGHT_PATIENCE: Span = Span::millis(250);
const MAGIC: [u8; 8] = *b"heliost\x01";
const LENGTH: usize = 46;

struct ProbePort {
    sender: Box<dyn DataLinkSender>,
    receiver: Box<dyn DataLinkReceiver>,
}

/// Whether a frame that is sent into an input now may get lost in the dark without being counted as
/// data. `timed` counts IP packets only; with `netlink` everything counts, and a train waits until
/// its circuit was switched.
pub type MaySend = Arc<dyn Fn(&ProbeRequest) -> bool + Send + Sync>;

/// Asks the probing thread; dropping this ends the thread.
pub struct Prober {
    requests: Arc<Requests>,
    thread: JoinHandle<()>,
}

/// Requests to the thread. It has real-time priority, so it is woken by a flag and not by a
/// channel.
#[derive(Default)]
struct Requests {
    parker: Parker,
    asked: Mutex<Vec<ProbeRequest>>,
    over: AtomicBool,
}

impl Requests {
    fn add(&self, r: ProbeRequest) {
        self.asked.lock().push(r);
        self.parker.wake();
    }

    fn end(&self) {
        self.over.store(true, Release);
        self.parker.wake();
    }

    /// Waits for requests, at most for `patience`, and takes all of them; `None`: the thread ends.
    fn wait(&self, patience: Duration) -> Option<Vec<ProbeRequest>> {
        self.parker.wait(patience);
        let taken = std::mem::take(&mut *self.asked.lock());
        (!self.over.load(Acquire)).then_some(taken)
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.requests.end();
    }
}

impl Prober {
    /// Opens a channel on every ToR's OCS ports and starts the thread. `report` is called on it for
    /// every probe.
    ///
    /// # Errors
    /// When a channel cannot be opened.
    pub fn start(
        net: &EmulatedNetwork,
        clock: Clock,
        may_send: MaySend,
        report: impl Fn(ProbeReport) + Send + 'static,
    ) -> io::Result<Self> {
        let mut ports = BTreeMap::new();
        for (r, tor) in net.tors.iter().enumerate() {
            let links = &tor.ocs;
            let opened = netns::within(tor.node.ns.as_fd(), || {
                let open = |&l| {
                    frames(l, PROBE_ETHERTYPE)
                        .map(|(sender, receiver)| ProbePort { sender, receiver })
                };
                links.iter().map(open).collect::<io::Result<Vec<_>>>()
            })?;
            ports.extend(
                opened
                    .into_iter()
                    .enumerate()
                    .map(|(p, port)| ((PlaneId::from(p), RackId::from(r)), port)),
            );
        }
        let requests = Arc::new(Requests::default());
        let asked = requests.clone();
        let thread = std::thread::Builder::new().name("prober".into()).spawn(move || {
            // Frames that leave late make circuits look late: ask to be served first.
            sys::realtime(5);
            ProberLoop { ports, clock, may_send, waiting: vec![], report: Box::new(report) }
                .run(&asked);
        })?;
        Ok(Self { requests, thread })
    }

    /// Whether the thread still sends probes.
    pub fn is_alive(&self) -> bool {
        !self.thread.is_finished()
    }

    /// Probes a circuit.
    pub fn request(&self, r: ProbeRequest) {
        self.requests.add(r);
    }
}

/// A socket for frames of one type on a link of this thread's namespace.
///
/// # Errors
/// What the kernel refused.
pub(crate) fn frames(
    index: u32,
    ethertype: u16,
) -> io::Result<(Box<dyn DataLinkSender>, Box<dyn DataLinkReceiver>)> {
    // Only `index` and `mac` are looked at; the address is where frames of a Layer 3 channel go.
    let interface = NetworkInterface {
        name: String::new(),
        description: String::new(),
        index,
        mac: Some(MacAddr::broadcast()),
        ips: vec![],
        flags: 0,
    };
    let config = datalink::Config {
        channel_type: ChannelType::Layer3(ethertype),
        read_timeout: Some(Duration::ZERO),
        promiscuous: false,
        ..datalink::Config::default()
    };
    match datalink::channel(&interface, config)? {
        Channel::Ethernet(sender, receiver) => Ok((sender, receiver)),
        _ => Err(io::Error::other("no channel for frames")),
    }
}

/// A probe that is not done.
struct PendingProbe {
    request: ProbeRequest,
    /// When its frames were last looked for.
    looked: Option<Time>,
    /// How long no frame could be sent since it was due, and how long no frame has come out.
    dark: Span,
    sent: Span,
}

impl PendingProbe {
    fn new(request: ProbeRequest) -> Self {
        Self { request, looked: None, dark: Span::ZERO, sent: Span::ZERO }
    }

    /// Notes that no frame has come out by now; `may_send`: frames were sent. True if the probe is
    /// given up.
    fn is_given_up(&mut self, now: Time, may_send: bool) -> bool {
        let before = self.looked.replace(now).unwrap_or(self.request.at);
        let waited = if may_send { &mut self.sent } else { &mut self.dark };
        *waited = Span(waited.0 + now.since(before).min(LOOK).0);
        self.sent > PROBE_PATIENCE || self.dark > LIGHT_PATIENCE
    }
}

struct ProberLoop {
    ports: BTreeMap<(PlaneId, RackId), ProbePort>,
    clock: Clock,
    may_send: MaySend,
    waiting: Vec<PendingProbe>,
    report: Box<dyn Fn(ProbeReport) + Send>,
}

impl ProberLoop {
    fn run(&mut self, requests: &Requests) {
        loop {
            let next = self.waiting.iter().map(|w| w.request.at.saturating_sub(EARLY)).min();
            let pause = next.map_or(Duration::from_secs(3600), |t| t.since(self.clock.now()).std());
            let Some(asked) = requests.wait(pause) else { return };
            self.waiting.extend(asked.into_iter().map(PendingProbe::new));
            self.round();
        }
    }

    /// Sends and receives until every due circuit is proved or given up.
    fn round(&mut self) {
        loop {
            let now = self.clock.now();
            let (mut due, later): (Vec<PendingProbe>, Vec<PendingProbe>) =
                std::mem::take(&mut self.waiting)
                    .into_iter()
                    .partition(|w| w.request.at.saturating_sub(EARLY) <= now);
            self.waiting = later;
            if due.is_empty() {
                return;
            }
            due.iter().for_each(|w| self.send(&w.request));
            due.retain(|w| match self.receive(&w.request) {
                Some(seen) => {
                    self.settle(&w.request, Some((w.request.output, seen)));
                    false
                }
                None => true,
            });
            let now = self.clock.now();
            let given_up: Vec<PendingProbe> =
                due.extract_if(.., |w| w.is_given_up(now, (self.may_send)(&w.request))).collect();
            self.give_up(&given_up);
            self.waiting.append(&mut due);
            // Frames are carried by kernel threads of ordinary priority, on the processor that sent
            // them: a train that never paused would keep its own frames from arriving.
            self.clock.sleep_until(now + GRAIN);
        }
    }

    fn settle(&self, r: &ProbeRequest, arrived: Option<(RackId, Time)>) {
        let dark = arrived.map(|(_, t)| t.since(r.dark_from));
        (self.report)(ProbeReport {
            plane: r.plane,
            input: r.input,
            output: r.output,
            at: r.at,
            arrived,
            dark,
        });
    }

    fn send(&mut self, r: &ProbeRequest) {
        if let Some(port) = self.ports.get_mut(&(r.plane, r.input)).filter(|_| (self.may_send)(r)) {
            let _ = port.sender.send_to(&frame(r), None);
        }
    }

    fn receive(&mut self, r: &ProbeRequest) -> Option<Time> {
        let (clock, want) = (self.clock, frame(r));
        let port = self.ports.get_mut(&(r.plane, r.output))?;
        // Frames of older trains may still lie here.
        while let Ok(got) = port.receiver.next() {
            if got.get(..LENGTH) == Some(&want[..]) {
                return Some(clock.now());
            }
        }
        None
    }

    /// Looks at all other outputs for the frames of failed probes.
    fn give_up(&mut self, probes: &[PendingProbe]) {
        if probes.is_empty() {
            return;
        }
        let mut found = BTreeMap::new();
        for (&(_, rack), port) in &mut self.ports {
            while let Ok(got) = port.receiver.next() {
                if let Some(f) = got.get(..LENGTH) {
                    found.entry(f.to_vec()).or_insert(rack);
                }
            }
        }
        let now = self.clock.now();
        for w in probes {
            self.settle(&w.request, found.get(&frame(&w.request)[..]).map(|&rack| (rack, now)));
        }
    }
}

/// The payload of a probe: the sender, and the circuit.
fn frame(r: &ProbeRequest) -> [u8; LENGTH] {
    let mut f = [0; LENGTH];
    f[..8].copy_from_slice(&MAGIC);
    f[8..12].copy_from_slice(&r.plane.0.to_be_bytes());
    f[12..16].copy_from_slice(&r.input.0.to_be_bytes());
    f[16..20].copy_from_slice(&r.output.0.to_be_bytes());
    f[20..28].copy_from_slice(&r.at.0.to_be_bytes());
    f
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_stood_still_blames_no_port() {
        let request = ProbeRequest {
            plane: PlaneId(0),
            input: RackId(0),
            output: RackId(1),
            at: Time(0),
            dark_from: Time(0),
        };
        let mut w = PendingProbe::new(request);
        let mut at = |us: u64, may_send| w.is_given_up(Time(us * 1000), may_send);
        // A second in which nothing runs is a millisecond.
        assert!(!at(0, true) && !at(1_000_000, true) && !at(2_000_000, true));
        // The kernel is late, and then 30 ms are over, of which two were before.
        assert!((1..=200).all(|ms| !at(2_000_000 + 1000 * ms, false)));
        assert_eq!((1..).take_while(|k| !at(2_200_000 + 100 * k, true)).count(), 280);
        let mut w = PendingProbe::new(request);
        assert_eq!(
            (1..).take_while(|&ms| !w.is_given_up(Time(ms * 1_000_000), false)).count(),
            250
        );
    }

    #[test]
    fn the_thread_gets_what_is_asked_in_order_and_hears_of_the_end() {
        let requests = Requests::default();
        let request = |n| ProbeRequest {
            plane: PlaneId(0),
            input: RackId(n),
            output: RackId(1),
            at: Time(0),
            dark_from: Time(0),
        };
        assert_eq!(requests.wait(Duration::ZERO), Some(vec![]), "nothing is asked");
        (0..3).for_each(|n| requests.add(request(n)));
        assert_eq!(requests.wait(Duration::from_secs(60)), Some((0..3).map(request).collect()));
        let requests = Arc::new(requests);
        let asked = requests.clone();
        let thread =
            std::thread::spawn(move || while asked.wait(Duration::from_secs(60)).is_some() {});
        requests.add(request(3));
        requests.end();
        thread.join().expect("it ends");
    }
}
