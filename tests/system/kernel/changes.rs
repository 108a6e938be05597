//! A thousand changes of lists under TCP: what was sent off arrives, to the packet, and throughput
//! stays what it was.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use heliostat::coflows::elephants::Admit;
use heliostat::fabric::Fabric;
use heliostat::ids::HostId;
use heliostat::kernel::{Clock, Mechanism, netns};
use heliostat::paths::{List, Switches, Units};
use heliostat::plan::paths::Steer;
use heliostat::topology::addresses::host_ip;
use heliostat::topology::graph::Graph;
use heliostat::units::{BitRate, Span};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::lists::{lists, on, settled};
use super::support::{Bench, rate};

/// What a sender writes at once, and how long it then rests: 40 Mb/s of payload. Four flows, and
/// the acknowledgements of four, may meet on a link of 200 Mb/s, so that no queue ever fills.
const PIECE: usize = 5000;
const REST: Span = Span::millis(1);
const LINK: BitRate = BitRate::mbit(200);
const CHANGES: usize = 1000;

/// One TCP connection from each host to the one eight further.
struct Load {
    clock: Clock,
    stop: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
    /// By flow: bytes that were sent, and bytes that were received.
    flows: Vec<(JoinHandle<u64>, JoinHandle<u64>)>,
}

impl Load {
    fn start(b: &Bench, pairs: &[(HostId, HostId)]) -> Self {
        let (stop, received) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut load = Self { clock: b.clock, stop, received, flows: vec![] };
        load.flows = pairs.iter().map(|&pair| load.flow(b, pair)).collect();
        load
    }

    fn flow(&self, b: &Bench, (from, to): (HostId, HostId)) -> (JoinHandle<u64>, JoinHandle<u64>) {
        let t = &b.fabric.network().topology;
        let at = (host_ip(t, to), 7777);
        let listener = inside(b, to, || TcpListener::bind(at));
        let mut sender = inside(b, from, || TcpStream::connect(at));
        let mut receiver = listener.accept().expect("a connection").0;
        receiver.set_read_timeout(Some(Duration::from_secs(20))).expect("a deadline");
        sender.set_nodelay(true).expect("an option of TCP");
        let (clock, stop, received) = (self.clock, self.stop.clone(), self.received.clone());
        let sending = std::thread::spawn(move || {
            let mut sent = 0;
            while !stop.load(Relaxed) {
                sender.write_all(&[7; PIECE]).expect("sent");
                sent += PIECE as u64;
                clock.sleep_until(clock.now() + REST);
            }
            sent
        });
        let receiving = std::thread::spawn(move || {
            let (mut room, mut all) = ([0; 65_536], 0);
            loop {
                let n = receiver.read(&mut room).expect("it arrives") as u64;
                if n == 0 {
                    break all;
                }
                all += n;
                received.fetch_add(n, Relaxed);
            }
        });
        (sending, receiving)
    }

    /// Bits a second that arrive while `work` is done.
    fn meanwhile(&self, work: impl FnOnce()) -> f64 {
        let (before, begun) = (self.received.load(Relaxed), self.clock.now());
        work();
        rate(self.received.load(Relaxed) - before, self.clock.now().since(begun))
    }

    /// Ends all flows, and gives the bytes that were sent and received.
    fn end(self) -> (u64, u64) {
        self.stop.store(true, Relaxed);
        let both = self.flows.into_iter().map(|(sent, received)| {
            (sent.join().expect("sent"), received.join().expect("received"))
        });
        both.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    }
}

fn inside<T: Send>(b: &Bench, host: HostId, f: impl FnOnce() -> std::io::Result<T> + Send) -> T {
    let net = b.fabric.network();
    netns::within(net.namespace(&net.topology.host_name(host)).expect("a host"), f)
        .expect("done in the host's namespace")
}

/// Packets that all hosts have received and sent at their interfaces, whatever carries them.
fn packets(b: &Bench) -> (u64, u64) {
    let host = |host| {
        let text = inside(b, host, || std::fs::read_to_string("/proc/thread-self/net/dev"));
        let line = text
            .lines()
            .find_map(|l| l.trim().strip_prefix("eth0:"))
            .expect("the host's interface");
        let column: Vec<u64> =
            line.split_whitespace().map(|n| n.parse().expect("a number")).collect();
        (column[1], column[9])
    };
    let hosts = (0..b.fabric.network().topology.hosts.len() as u32).map(|h| host(HostId(h)));
    hosts.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
}

/// Packets that the switches' ports have dropped because their queues were full.
fn dropped(b: &mut Bench) -> u64 {
    b.fabric.switches().expect("counters").iter().flat_map(|s| &s.ports).map(|p| p.drops).sum()
}

/// Sums of the TCP counters of all hosts, by their names in Linux.
fn tcp<const N: usize>(b: &Bench, names: [&str; N]) -> [u64; N] {
    let mut sums = [0; N];
    for host in 0..b.fabric.network().topology.hosts.len() as u32 {
        let read = |file: &str| {
            inside(b, HostId(host), || {
                std::fs::read_to_string(format!("/proc/thread-self/net/{file}"))
            })
        };
        let text = read("netstat") + &read("snmp");
        // Each line of names has one of values below it.
        let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
        for pair in lines.chunks_exact(2) {
            for (name, value) in pair[0].iter().zip(&pair[1]) {
                if let Some(k) = names.iter().position(|n| n == name) {
                    sums[k] += value.parse::<u64>().expect("a number");
                }
            }
        }
    }
    sums
}

/// Each has the machine alone.
mod alone {
    use super::*;
    use crate::kernel::support::each_mechanism_alone;

    #[test]
    fn a_thousand_changes_under_load_lose_nothing() {
        each_mechanism_alone("a_thousand_changes_under_load_lose_nothing", |mechanism| {
            let t = on(Graph::fat_tree(4, LINK, None), 2, LINK, 0);
            let (net, graph) =
                (Switches::new(&t, Units::default()), t.eps.graph().expect("a graph").clone());
            let mut b = Bench::new(t, mechanism, Admit::Marked);
            let pairs: Vec<(HostId, HostId)> =
                (0..16).map(|h| (HostId(h), HostId((h + 8) % 16))).collect();
            let all: Vec<Vec<List>> =
                pairs.iter().map(|&(from, to)| lists(&net, &graph, from, to)).collect();
            let (clock, second, at_first) = (b.clock, Span::secs(1), packets(&b));
            let load = Load::start(&b, &pairs);
            let rest = || clock.sleep_until(clock.now() + second);
            rest();
            let before = load.meanwhile(rest);
            let (mut random, mut took) = (ChaCha8Rng::seed_from_u64(7), vec![]);
            let during = load.meanwhile(|| {
                for _ in 0..CHANGES {
                    let k = random.random_range(0..16);
                    let (from, to) = pairs[k];
                    let begun = clock.now();
                    let list = all[k].choose(&mut random).cloned();
                    b.fabric
                        .steer(&[Steer { from, to, ports: None, list }], begun)
                        .remove(0)
                        .outcome
                        .expect("steered");
                    took.push(clock.now().since(begun));
                    clock.sleep_until(clock.now() + Span::micros(500));
                }
            });
            let after = load.meanwhile(rest);
            let (sent, received) = load.end();
            took.sort();
            let (name, mbit) =
                (mechanism.name(), [before, during, after].map(|r| (r / 1e6).round()));
            println!(
                "{name}: {CHANGES} changes, one in {} (median), {} (99 %), {} (all)",
                took[500], took[990], took[999]
            );
            println!("{name}: Mb/s before, during and after: {mbit:?}");
            assert_eq!(sent, received);
            let deadline = Instant::now() + Duration::from_secs(20);
            let (arrived, left, full) = loop {
                let (now, full) = (packets(&b), dropped(&mut b));
                let (arrived, left) = (now.0 - at_first.0, now.1 - at_first.1);
                if arrived + full == left {
                    break (arrived, left, full);
                }
                let missing = format!(
                    "{left} packets left the hosts, {arrived} arrived, and full queues of switches dropped {full}"
                );
                assert!(arrived + full < left && Instant::now() < deadline, "{missing}");
                clock.sleep_until(clock.now() + Span::millis(5));
            };
            println!(
                "{name}: {left} packets left the hosts, {arrived} arrived, full queues dropped {full}"
            );
            let counters =
                ["TCPOFOQueue", "TCPSACKReorder", "TCPTSReorder", "TCPDSACKRecv", "RetransSegs"];
            let [late, by_sack, by_time, doubled, again] = tcp(&b, counters);
            println!(
                "{name}: TCP: {late} packets ahead of their turn, reordering seen {by_sack} + {by_time} times, {again} sent again, {doubled} twice"
            );
            if mechanism == Mechanism::Timed {
                let l = settled(&mut b);
                println!("{name}: {l:?}");
                assert_eq!((l.admitted, l.strays), (l.delivered + l.dropped, 0), "{l:?}");
                in_time!(l.dropped == 0, "{l:?}");
                assert!(l.admitted > 0);
            }
            // Senders that a busy machine held up may meet in a queue after all.
            in_time!(full == 0, "full queues dropped {full} packets");
            in_time!(during > before * 0.9, "{mbit:?}");
            Ok(())
        });
    }
}
