//! Keeps the network as it was built: finds what another process removed, disabled or changed,
//! writes it again where possible, and reports it.
//!
//! A thread compares every node's kernel with what was read when the network had been built.
//! Notifications (netlink's multicast groups) say which node to compare next, so that most changes
//! are found within `TICK`. But the comparison decides, and every node is compared in turn even
//! without notifications. That costs a twentieth of a processor at most: `BUDGET` of each `TICK` or
//! one node, then a pause of `TIMES` as long as that took. A round over all nodes begins every
//! `ROUND` at the soonest. Dumps of large ToRs take milliseconds, which the control cycle cannot
//! spare.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use parking_lot::Mutex;

use super::watched::{KernelDiff, RequiredLink, WatchedNode};
use crate::fabric::{Cut, Damage};
use crate::ids::{HostId, PlaneId, RackId};
use crate::inventory::Mutable;
use crate::network::{EmulatedNetwork, Node};
use crate::packet::PacketSwitch;
use crate::pulse::Pulse;
use crate::switcher::SwitcherHandle;
use crate::{netns, sys, wire};

/// Time between two looks at the notifications.
const TICK: Duration = Duration::from_millis(20);
/// What comparing may take of each tick; at least one node is compared.
const BUDGET: Duration = Duration::from_millis(1);
/// A pause lasts this many times as long as the comparison before it.
const TIMES: u32 = 20;
/// Between the beginnings of two rounds, at least.
const ROUND: Duration = Duration::from_secs(1);

/// Groups of changes: links, neighbours, traffic control, addresses, routes, rules.
const GROUPS: [u32; 6] = [1, 3, 4, 5, 7, 8];

/// What is wrong now, by node, and what was wrong and mended since the last call.
#[derive(Debug, Default)]
struct NodeDamage {
    standing: Vec<Vec<Damage>>,
    mended: Vec<Damage>,
}

/// The comparing thread; dropping this ends it.
pub struct DriftMonitor {
    found: Arc<Mutex<NodeDamage>>,
    pulse: Pulse,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl DriftMonitor {
    /// Reads what is there now, which must be all that was written, and starts the thread. It takes
    /// the nodes' logs. `switcher` knows which filters and routes come and go with circuits, and
    /// writes them again.
    ///
    /// # Errors
    /// When a node cannot be read, or no socket or thread be had.
    pub fn start(net: &mut EmulatedNetwork, switcher: Option<SwitcherHandle>) -> io::Result<Self> {
        let roles = roles(net, switcher.as_ref());
        let mut nodes: Vec<(&mut Node, (Vec<RequiredLink>, Mutable))> =
            net.nodes_mut().zip(roles).collect();
        // The kernel's answers are half of the time that a network takes to build.
        let nodes = sys::by_processors(
            &mut nodes,
            |(node, (ties, mutable)): &mut (&mut Node, (Vec<RequiredLink>, Mutable))| {
                let news = listen(node)?;
                Ok(Watched {
                    news,
                    stale: false,
                    node: WatchedNode::new(node, std::mem::take(ties), *mutable)?,
                })
            },
        )?;
        let found = Arc::new(Mutex::new(NodeDamage {
            standing: vec![vec![]; nodes.len()],
            mended: vec![],
        }));
        let (stop, stopped) = mpsc::channel();
        let pulse = Pulse::default();
        let beats = pulse.clone();
        pulse.beat();
        let mut work = GuardWork {
            nodes,
            switcher,
            found: found.clone(),
            next: 0,
            begun: Instant::now(),
            spent: Duration::ZERO,
            rests: Instant::now(),
            buffer: vec![0; 16 << 10],
        };
        let thread = std::thread::Builder::new().name("keeper".into()).spawn(move || {
            // Nothing is ever sent: the other end is dropped to end the thread.
            while stopped.recv_timeout(TICK) == Err(mpsc::RecvTimeoutError::Timeout) {
                beats.beat();
                work.tick();
            }
        })?;
        Ok(Self { found, pulse, stop: Some(stop), thread: Some(thread) })
    }

    /// The thread's pulse.
    pub fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }

    /// Whether the thread still compares.
    pub fn is_alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|t| !t.is_finished())
    }

    /// What is not as it was built, and what was mended since the last call.
    pub fn damage(&self) -> Vec<Damage> {
        let mut found = self.found.lock();
        let mended = std::mem::take(&mut found.mended);
        found.standing.iter().flatten().cloned().chain(mended).collect()
    }
}

impl Drop for DriftMonitor {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(t) = self.thread.take() {
            let _ = t.join();
        }
    }
}

struct Watched {
    news: Socket,
    /// Notifications came since the node was last compared.
    stale: bool,
    node: WatchedNode,
}

/// The thread's work.
struct GuardWork {
    nodes: Vec<Watched>,
    switcher: Option<SwitcherHandle>,
    found: Arc<Mutex<NodeDamage>>,
    /// The next node of this round.
    next: usize,
    /// When this round began, and what it has taken.
    begun: Instant,
    spent: Duration,
    /// The round pauses until then.
    rests: Instant,
    buffer: Vec<u8>,
}

impl GuardWork {
    fn tick(&mut self) {
        let start = Instant::now();
        for k in 0..self.nodes.len() {
            self.nodes[k].stale |= heard(&self.nodes[k].news, &mut self.buffer);
            if self.nodes[k].stale {
                self.compare(k);
            }
        }
        if self.next == self.nodes.len() && self.begun.elapsed() >= ROUND {
            (self.next, self.begun, self.spent) = (0, start, Duration::ZERO);
        }
        let resumed = Instant::now();
        if resumed < self.rests {
            return;
        }
        while self.next < self.nodes.len() {
            self.compare(self.next);
            self.next += 1;
            if self.next == self.nodes.len() {
                let spent = self.spent + resumed.elapsed();
                tracing::debug!(
                    "compared {} nodes: {spent:.1?} of work in {:.1?}",
                    self.next,
                    self.begun.elapsed()
                );
            } else if start.elapsed() >= BUDGET {
                self.spent += resumed.elapsed();
                break;
            }
        }
        self.rests = resumed + resumed.elapsed() * TIMES;
    }

    fn compare(&mut self, k: usize) {
        let w = &mut self.nodes[k];
        w.stale = false;
        let KernelDiff { standing, mended } = w.node.compare(self.switcher.as_ref());
        let mut found = self.found.lock();
        found.standing[k] = standing;
        found.mended.extend(mended);
    }
}

/// A socket for notifications of changes in a node.
fn listen(node: &Node) -> io::Result<Socket> {
    netns::within(node.ns.as_fd(), || {
        let mut s = Socket::new(NETLINK_ROUTE)?;
        s.bind(&SocketAddr::new(0, 0))?;
        GROUPS.iter().try_for_each(|&g| s.add_membership(g))?;
        Ok(s)
    })
}

/// Reads all notifications; true if another process changed anything. An overrun queue counts as a
/// change.
fn heard(news: &Socket, buffer: &mut [u8]) -> bool {
    let mut any = false;
    loop {
        match news.recv(&mut &mut *buffer, libc::MSG_DONTWAIT) {
            Ok(n) => {
                any |= wire::senders(&buffer[..n.min(buffer.len())]).any(|port| !is_ours(port))
            }
            Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => any = true,
            Err(_) => return any,
        }
    }
}

/// Whether a netlink socket is one of ours, by its number: the kernel gives a process's first
/// socket in a namespace the number of the process, and negative numbers to others. A number may
/// belong to another process as well; its changes are found in the next round.
fn is_ours(port: u32) -> bool {
    port == std::process::id() || (port as i32) < 0
}

/// The links of a packet switch.
fn switch_ties(s: &PacketSwitch) -> Vec<RequiredLink> {
    let cable = |link: u32| s.cables.iter().find(|c| c.1 == link).map(|&(c, _)| c as u32);
    let tie = |(link, name)| RequiredLink { link, name, port: None, cut: None, cable: cable(link) };
    s.named_links().into_iter().map(tie).collect()
}

/// By node, in the order of [`EmulatedNetwork::nodes`]: its required links, and what comes and goes
/// there with circuits.
fn roles(
    net: &EmulatedNetwork,
    switcher: Option<&SwitcherHandle>,
) -> Vec<(Vec<RequiredLink>, Mutable)> {
    let plain = |(link, name): (u32, String)| RequiredLink {
        link,
        name,
        port: None,
        cut: None,
        cable: None,
    };
    let (crossbar, admission) = match switcher {
        Some(t) if t.has_routes() => (Mutable::Crossbar, Mutable::Admission),
        Some(t) if t.has_crossbars() => (Mutable::Crossbar, Mutable::Nothing),
        _ => (Mutable::Nothing, Mutable::Nothing),
    };
    let mut all: Vec<(Vec<RequiredLink>, Mutable)> =
        net.eps.iter().map(|s| (switch_ties(s), Mutable::Nothing)).collect();
    for (p, core) in net.ocs.iter().enumerate() {
        let port = |(r, &link): (usize, &u32)| RequiredLink {
            port: Some((PlaneId::from(p), RackId::from(r))),
            ..plain((link, format!("tor{r}")))
        };
        all.push((core.ports.iter().enumerate().map(port).collect(), crossbar));
    }
    for (r, tor) in net.tors.iter().enumerate() {
        let rack = RackId::from(r);
        let mut ties =
            vec![RequiredLink { cut: Some(Cut::Rack(rack)), ..plain((tor.eps, "eps0".into())) }];
        ties.extend(tor.ocs.iter().enumerate().map(|(p, &l)| RequiredLink {
            port: Some((PlaneId::from(p), rack)),
            ..plain((l, format!("ocs{p}")))
        }));
        ties.extend(tor.hosts.iter().enumerate().map(|(k, &l)| plain((l, format!("host{k}")))));
        all.push((ties, admission));
    }
    let host = |(k, h): (usize, &crate::network::HostNode)| RequiredLink {
        cut: Some(Cut::Host(HostId::from(k))),
        ..plain((h.eth, "eth0".into()))
    };
    all.extend(net.hosts.iter().enumerate().map(|h| (vec![host(h)], Mutable::Nothing)));
    all
}
