//! What the emulation needs of this kernel, tried one by one in a namespace of its own. Nothing is
//! left behind.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use pnet::datalink;
use serde::Serialize;
use socket2::{Domain, Socket, Type};

use super::missing::Module;
use super::sys;
use crate::coflows::elephants::ELEPHANT_DSCP;
use crate::msg::{self, Tcp, VethEnd};
use crate::nl::{NEW, Netlink, NetlinkRequest};
use crate::tc::{self, HtbClass, Match};
use crate::units::BitRate;
use crate::{diag, netns, switched, timed};

/// What cannot do without a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Need {
    /// Every run.
    Run,
    /// The mechanism `timed`; without it there is `netlink`.
    Timed,
    /// The mechanism `netlink`; without it there is `timed`.
    Netlink,
    /// No run; the feature only makes runs better.
    Better,
}

/// A feature and what became of trying it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Feature {
    /// Its name.
    pub name: &'static str,
    /// What needs it.
    pub need: Need,
    /// Whether the machine has it.
    pub ok: bool,
    /// What was found, or what the kernel said.
    pub found: String,
    /// What it means that it is missing, and how to get it.
    pub remedy: &'static str,
}

/// Open files of the largest shipped network: namespaces and sockets of 64 racks.
const FILES: u64 = 4096;
/// Index of the link that the queues are tried on; the other end is the next.
const LINK: u32 = 10;

/// A namespace with a pair of links.
struct Bench {
    ns: OwnedFd,
    netlink: Netlink,
}

type FeatureTrial<'a> =
    (&'static str, Need, &'static str, Box<dyn FnMut(&mut Bench) -> io::Result<String> + 'a>);

/// Tries everything. The first two entries are namespaces and links: without them, nothing else can
/// be tried and the list ends there. Takes some 50 ms.
pub fn probe() -> Vec<Feature> {
    let mut all = vec![];
    let made =
        netns::create(true).and_then(|ns| Ok(Bench { netlink: Netlink::open(ns.as_fd())?, ns }));
    let words = made
        .as_ref()
        .map(|_| "with forwarding".to_owned())
        .map_err(|e| io::Error::new(e.kind(), e.to_string()));
    all.push(feature(
        "network namespaces",
        Need::Run,
        "every node is one: CONFIG_NET_NS, and CAP_SYS_ADMIN (docker run --privileged, or --cap-add SYS_ADMIN,NET_ADMIN,NET_RAW)",
        words,
    ));
    let Ok(mut bench) = made else { return all };
    let linked = send(&mut bench, pair());
    let go_on = linked.is_ok();
    all.push(feature(
        "veth",
        Need::Run,
        "every cable is one: modprobe veth (CONFIG_VETH), and CAP_NET_ADMIN",
        linked,
    ));
    if go_on {
        all.extend(
            trials().map(|(name, need, remedy, mut tries)| {
                feature(name, need, remedy, tries(&mut bench))
            }),
        );
    }
    all
}

fn feature(
    name: &'static str,
    need: Need,
    remedy: &'static str,
    outcome: io::Result<String>,
) -> Feature {
    let ok = outcome.is_ok();
    let found = outcome.unwrap_or_else(|e| e.to_string());
    Feature { name, need, ok, found, remedy: if ok { "" } else { remedy } }
}

fn send(bench: &mut Bench, messages: Vec<NetlinkRequest>) -> io::Result<String> {
    bench.netlink.send(messages).map(|()| String::new())
}

fn pair() -> Vec<NetlinkRequest> {
    let end = |name, index| VethEnd { name, ns: None, index, mac: [2, 0, 0, 0xdd, 0, index as u8] };
    let links = msg::veth(&end("try0", LINK), &end("try1", LINK + 1));
    vec![(msg::up(1), 0), (links, NEW), (msg::up(LINK + 1), 0)]
}

/// In the order in which they can be tried.
fn trials() -> impl Iterator<Item = FeatureTrial<'static>> {
    [queues(), rules(), programs_and_sockets(), machine()].into_iter().flatten()
}

/// Queues and filters: a class wants its HTB, a leaf its class.
fn queues() -> Vec<FeatureTrial<'static>> {
    let rate = BitRate::mbit(100);
    vec![
        (
            "HTB",
            Need::Run,
            "it holds every link to its rate: modprobe sch_htb (CONFIG_NET_SCH_HTB; Debian's cloud kernels: linux-modules-extra)",
            Box::new(move |b| {
                let class = HtbClass {
                    minor: 1,
                    parent: 0,
                    rate,
                    ceil: rate,
                    burst: 100_000,
                    priority: 0,
                    turn: tc::SEGMENT_TURN,
                };
                send(b, vec![(tc::htb(LINK, 1), NEW), (class.add(LINK), NEW)])
            }),
        ),
        (
            "bfifo",
            Need::Run,
            "it bounds every queue in bytes: CONFIG_NET_SCHED (in every kernel that has tc)",
            Box::new(|b| send(b, vec![(tc::bfifo(LINK, tc::leaf(1), 100_000), NEW)])),
        ),
        (
            "TBF",
            Need::Better,
            "networks with `eps.segments: frames` and policies with `admit: wait` need it: modprobe sch_tbf (CONFIG_NET_SCH_TBF)",
            Box::new(move |b| {
                let class = HtbClass {
                    minor: 2,
                    parent: 0,
                    rate,
                    ceil: rate,
                    burst: 100_000,
                    priority: 0,
                    turn: tc::SEGMENT_TURN,
                };
                send(b, vec![(class.add(LINK), NEW), (tc::cutter(LINK, tc::leaf(2), 100_000), NEW)])
            }),
        ),
        module(Module::Netem),
        module(Module::Red),
        (
            "clsact",
            Need::Run,
            "circuits hang on its hooks: modprobe sch_ingress (CONFIG_NET_SCH_INGRESS)",
            Box::new(|b| send(b, vec![(tc::clsact(LINK), NEW)])),
        ),
        (
            "u32 and mirred",
            Need::Run,
            "they sort packets, and switch circuits where there is no BPF: modprobe cls_u32 act_mirred",
            Box::new(|b| {
                send(
                    b,
                    vec![(tc::redirect(LINK, (1, tc::FIRST_NODE), Match::ANY, LINK + 1, 0), NEW)],
                )
            }),
        ),
    ]
}

/// Routing rules, by which `netlink` lets elephants onto circuits.
fn rules() -> Vec<FeatureTrial<'static>> {
    vec![
        (
            "rules by TOS",
            Need::Netlink,
            "by them `netlink` lets elephants onto circuits: CONFIG_IP_MULTIPLE_TABLES",
            Box::new(|b| send(b, vec![(msg::rule(Some(ELEPHANT_DSCP << 2), 100, 1000), NEW)])),
        ),
        (
            "rules by a bit of the DSCP",
            Need::Better,
            "by them elephants find their circuits where `network: priority` runs over `netlink`: Linux 6.15 or newer",
            Box::new(|b| {
                send(b, vec![(msg::rule_by_bit(ELEPHANT_DSCP, 100, 1001), NEW)])?;
                switched::expect_bits(&mut b.netlink).map(|()| String::new())
            }),
        ),
    ]
}

/// Programs on links, and the sockets by which circuits are probed and queues are read.
fn programs_and_sockets() -> Vec<FeatureTrial<'static>> {
    vec![
        (
            "BPF classifiers",
            Need::Timed,
            "by them circuits change to the microsecond; without them `netlink` does it within a millisecond: run as root (CAP_BPF and \
             CAP_NET_ADMIN), CONFIG_BPF_SYSCALL, modprobe cls_bpf, Linux 5.10 or newer",
            Box::new(|_| timed::probe().map(|()| String::new())),
        ),
        (
            "INET_DIAG",
            Need::Run,
            "it shows what waits in the hosts' sockets: modprobe inet_diag tcp_diag (CONFIG_INET_DIAG)",
            Box::new(|b| {
                diag::SocketQueues::open(b.ns.as_fd())?.read(true, |_| {})?;
                Ok(String::new())
            }),
        ),
        (
            "AF_PACKET",
            Need::Run,
            "circuit probes are sent by it: modprobe af_packet (CONFIG_PACKET), and CAP_NET_RAW",
            Box::new(|b| netns::within(b.ns.as_fd(), packets)),
        ),
    ]
}

/// Congestion control, scheduling and limits of the machine.
fn machine() -> Vec<FeatureTrial<'static>> {
    vec![
        (
            "cubic",
            Need::Better,
            "policies ask for it unless they name another (`congestion:`): modprobe tcp_cubic (CONFIG_TCP_CONG_CUBIC)",
            Box::new(|b| {
                let missing = missing_congestion(b, Tcp::default().congestion);
                let list = congestion_controls().join(", ");
                missing.map_or_else(
                    || Ok(format!("available: {list}")),
                    |e| Err(io::Error::other(format!("{e}; available: {list}"))),
                )
            }),
        ),
        (
            "SCHED_FIFO",
            Need::Better,
            "without it, decisions and flips are late on a busy machine: run as root (CAP_SYS_NICE, or ulimit -r 20)",
            Box::new(|_| realtime()),
        ),
        (
            "open files",
            Need::Better,
            "a network of 64 racks needs about 4000: ulimit -Hn, or LimitNOFILE= of the service",
            Box::new(|_| match sys::raise_open_files() {
                n if n >= FILES => Ok(format!("{n} allowed")),
                n => Err(io::Error::other(format!("{n} allowed"))),
            }),
        ),
    ]
}

fn module(module: Module) -> FeatureTrial<'static> {
    let tries = move |b: &mut Bench| module.probe(&mut b.netlink, LINK).map(|()| String::new());
    (module.name(), Need::Better, module.remedy(), Box::new(tries))
}

fn packets() -> io::Result<String> {
    Socket::new(Domain::PACKET, Type::RAW, None)?;
    let links = datalink::interfaces();
    if links.iter().any(|l| l.index == LINK) {
        Ok(String::new())
    } else {
        Err(io::Error::other("the link is not listed"))
    }
}

/// On a thread of its own: the priority goes with it.
fn realtime() -> io::Result<String> {
    let granted = std::thread::spawn(|| sys::realtime(1)).join().unwrap_or(false);
    if granted { Ok(String::new()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

fn missing_congestion(bench: &Bench, name: &str) -> Option<io::Error> {
    netns::within(bench.ns.as_fd(), || try_congestion(name)).err()
}

fn try_congestion(name: &str) -> io::Result<()> {
    Socket::new(Domain::IPV4, Type::STREAM, None)?.set_tcp_congestion(name.as_bytes())
}

/// Whether hosts can use a TCP congestion control; the kernel loads its module if it may.
///
/// # Errors
/// `NotFound` when there is none of this name; else what the kernel said.
pub fn check_congestion(name: &str) -> io::Result<()> {
    let ns = netns::create(false)?;
    netns::within(ns.as_fd(), || try_congestion(name))
}

/// The TCP congestion controls that the kernel has loaded.
pub fn congestion_controls() -> Vec<String> {
    let list = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap_or_default();
    let mut names: Vec<String> = list.split_whitespace().map(str::to_owned).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::coflows::elephants::Admit;
    use crate::ids::PlaneId;
    use crate::network::EmulatedNetwork;
    use crate::topology::{Plane, StopMode, Topology};
    use crate::units::Span;
    use crate::{Clock, KernelFabric, Mechanism};

    #[test]
    fn what_is_missing_comes_with_a_remedy_and_what_is_there_without() {
        let tried = |outcome| feature("HTB", Need::Run, "modprobe sch_htb", outcome);
        let missing = tried(Err(io::Error::other("not supported")));
        assert_eq!(
            (missing.ok, missing.found.as_str(), missing.remedy),
            (false, "not supported", "modprobe sch_htb")
        );
        let there = tried(Ok("4 allowed".into()));
        assert_eq!((there.ok, there.found.as_str(), there.remedy), (true, "4 allowed", ""));
        let mut names: Vec<&str> = trials().map(|t| t.0).collect();
        assert!(trials().all(|t| !t.2.is_empty()), "a feature without a remedy");
        names.extend(["network namespaces", "veth"]);
        let of = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), of, "two features of one name");
    }

    /// What is found is what a network needs: it can be built with a mechanism if nothing that the
    /// mechanism needs is missing, and only then.
    #[test]
    fn a_network_can_be_built_just_when_nothing_that_it_needs_is_missing() {
        let found = probe();
        for (mechanism, need) in
            [(Mechanism::Timed, Need::Timed), (Mechanism::Netlink, Need::Netlink)]
        {
            let missing: Vec<&Feature> =
                found.iter().filter(|f| !f.ok && [Need::Run, need].contains(&f.need)).collect();
            // Where namespaces or links are missing, nothing else was tried.
            let promised = missing.is_empty() && found.len() > 2;
            let plane = Plane {
                id: PlaneId(0),
                rate: BitRate::mbit(10),
                delta: Span::millis(1),
                stop: StopMode::NotAllStop,
                duplex: false,
            };
            let two = Topology::uniform(
                "features",
                2,
                1,
                BitRate::mbit(10),
                BitRate::mbit(10),
                vec![plane],
            );
            let built = EmulatedNetwork::build(Arc::new(two), "heliostat:features", None)
                .map_err(|e| e.to_string());
            let built = built.and_then(|net| {
                KernelFabric::install(net, mechanism, Admit::Marked, Clock::start())
                    .map_err(|e| e.to_string())
            });
            assert_eq!(
                built.as_ref().err().is_none(),
                promised,
                "{}: {:?}; missing: {missing:?}",
                mechanism.name(),
                built.err()
            );
        }
    }

    #[test]
    fn nobody_has_a_congestion_control_of_this_name() {
        match check_congestion("no-such-thing") {
            Err(e) => assert!(
                matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied),
                "{e}"
            ),
            Ok(()) => panic!("there is one"),
        }
    }
}
