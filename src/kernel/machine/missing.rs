//! Link features that a topology asks for and that this kernel does not have.

use std::fmt;
use std::io;
use std::os::fd::AsFd;

use crate::msg::{self, VethEnd};
use crate::netns;
use crate::nl::{NEW, Netlink};
use crate::tc::{self, HtbClass};
use crate::topology::Topology;
use crate::topology::links::{LinkSpec, Loss};
use crate::units::{BitRate, Span};

/// A queue that is a module of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Module {
    /// Delays and loses packets.
    Netem,
    /// Marks packets.
    Red,
}

impl Module {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Netem => "netem",
            Self::Red => "RED",
        }
    }

    /// What needs it, and how to get it.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Netem => {
                "links with `delay` or `loss` need it: modprobe sch_netem (CONFIG_NET_SCH_NETEM)"
            }
            Self::Red => "links with `ecn` need it: modprobe sch_red (CONFIG_NET_SCH_RED)",
        }
    }

    /// Tries it on a link that has an HTB.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn probe(self, nl: &mut Netlink, link: u32) -> io::Result<()> {
        let (minor, rate) = (0x10 + self as u16, BitRate::mbit(100));
        let class = HtbClass {
            minor,
            parent: 0,
            rate,
            ceil: rate,
            burst: 100_000,
            priority: 0,
            turn: tc::SEGMENT_TURN,
        };
        let queue = match self {
            Self::Netem => tc::netem(link, tc::leaf(minor), Span::millis(1), Loss(1)),
            Self::Red => tc::red(link, tc::leaf(minor), 100_000, 30_000),
        };
        nl.send(vec![(class.add(link), NEW), (queue, NEW)])
    }
}

/// A key of a topology file that this kernel cannot do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingFeature {
    /// The kind of link, as topology files call it. Links of a graph may have the key by `graph`.
    pub kind: &'static str,
    /// The key.
    pub key: &'static str,
    /// What is missing.
    pub module: Module,
    /// What the kernel said.
    pub said: String,
}

impl fmt::Display for MissingFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { module, said, .. } = self;
        write!(f, "this kernel has no {} ({said}); {}", module.name(), module.remedy())
    }
}

/// The features that links of a topology ask for and this kernel does not have. A buffer alone
/// needs no trial.
///
/// # Errors
/// When no namespace can be made to try it in.
pub fn lacks(topology: &Topology) -> io::Result<Vec<MissingFeature>> {
    let links = &topology.links;
    let [_, access, aggregation, core] = &links.cables;
    let kinds = [
        ("nic", &links.nic),
        ("uplink", &links.uplink),
        ("access", access),
        ("aggregation", aggregation),
        ("core", core),
    ];
    let asked: Vec<_> = kinds
        .into_iter()
        .flat_map(|(kind, spec)| keys(spec).map(move |(key, module)| (kind, key, module)))
        .collect();
    if asked.is_empty() {
        return Ok(vec![]);
    }
    let said = |module: Module| try_out(module).map(|e| e.map(|e| e.to_string()));
    let [netem, red] = [said(Module::Netem)?, said(Module::Red)?];
    let lack = |(kind, key, module)| {
        let said = if module == Module::Netem { &netem } else { &red };
        said.as_ref().map(|said| MissingFeature { kind, key, module, said: said.clone() })
    };
    Ok(asked.into_iter().filter_map(lack).collect())
}

/// The keys of a kind of link that need a module.
fn keys(spec: &LinkSpec) -> impl Iterator<Item = (&'static str, Module)> + use<> {
    let delay = (spec.delay > Span::ZERO).then_some(("delay", Module::Netem));
    let loss = (spec.loss > Loss::default()).then_some(("loss", Module::Netem));
    [delay, loss, spec.ecn.map(|_| ("ecn", Module::Red))].into_iter().flatten()
}

/// The kernel's error for a module, from a trial in a namespace of its own.
fn try_out(module: Module) -> io::Result<Option<io::Error>> {
    const LINK: u32 = 10;
    let ns = netns::create(false)?;
    let mut nl = Netlink::open(ns.as_fd())?;
    let end = |name, index| VethEnd { name, ns: None, index, mac: [2, 0, 0, 0xdd, 0, index as u8] };
    nl.send(vec![
        (msg::veth(&end("try0", LINK), &end("try1", LINK + 1)), NEW),
        (tc::htb(LINK, 1), NEW),
    ])?;
    Ok(module.probe(&mut nl, LINK).err())
}
