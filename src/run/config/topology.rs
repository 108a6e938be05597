//! Topology files: the raw shape, and its check.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, SeqAccess, Visitor, value::SeqAccessDeserializer};
use serde::{Deserialize, Deserializer};

use super::error::{Flaw, Flaws, PathStep};
use super::{is_name, name_rule};
use crate::coflows::bounds::payload_rate;
use crate::ids::PlaneId;
use crate::topology::graph::Tier;
use crate::topology::{Core, Eps, Framing, Plane, Pods, PortQueues, Segments, StopMode, Topology};
use crate::units::{BitRate, Span};

mod graph;
mod links;

use graph::RawGraph;
use links::RawLinks;

/// The keys of the shapes of switches.
#[cfg(test)]
pub(super) fn shapes() -> &'static [&'static str] {
    RawGraph::SHAPES
}

/// The most letters of a network's name, which stands in names of namespaces.
const LONGEST_NAME: usize = 12;
/// The most racks of a file. (An emulation takes at most [`crate::topology::addresses::MAX_RACKS`]
/// of them.)
pub const MAX_RACKS: usize = 100_000;
/// The most racks of a network whose ports have a queue for each: a simulation keeps two for each
/// pair of racks. These take 3 GB.
pub const MAX_QUEUES: usize = 4096;
/// The most hosts of one rack.
pub const MAX_HOSTS_PER_RACK: u32 = 10_000;
/// The most hosts of one network.
pub const MAX_HOSTS: u64 = 4_000_000;
/// The most task slots of a host.
pub const MAX_SLOTS: u32 = 10_000;
/// The most optical planes.
pub const MAX_PLANES: usize = 64;
/// The fastest link: 100 Tb/s.
pub const MAX_RATE: BitRate = BitRate(100_000_000_000_000);
/// A reconfiguration delay is shorter than this.
pub const MAX_DELTA: Span = Span::secs(3600);

/// A hybrid network: racks of hosts, joined by one electrical packet switch (EPS) and any number of
/// optical circuit switches (OCS).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Heliostat topology")]
pub struct RawTopology {
    /// Names the network, and the namespaces of its emulation: 1 to 12 of a-z, 0-9 and -, beginning
    /// with a letter.
    #[schemars(regex(pattern = "^[a-z][a-z0-9-]{0,11}$"))]
    name: String,
    /// The number of racks, or a list with one entry a rack where they differ.
    racks: RawRacks,
    /// Hosts of each rack that does not say otherwise.
    #[schemars(range(min = 1, max = 10_000))]
    hosts_per_rack: Option<u32>,
    /// Tasks that a host runs at once; 1 if left out.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 10_000))]
    slots_per_host: u32,
    /// Rate of a host's network interface, each direction.
    nic: BitRate,
    /// The electrical packet switch.
    eps: RawEps,
    /// The optical planes, in the order of their ids; none for a purely electrical network.
    #[serde(default)]
    #[schemars(length(max = 64))]
    ocs: Vec<RawPlane>,
    /// What links do beside their rates; each kind that is left out has its rate and nothing else.
    #[serde(default)]
    links: RawLinks,
    /// What rates count: `tcp`, what is on the wire, headers included, or `none`, payload only; tcp
    /// if left out.
    #[serde(default)]
    framing: Framing,
}

/// A number of equal racks, or a list.
#[derive(Clone, Debug, JsonSchema)]
#[serde(untagged)]
enum RawRacks {
    /// A number of equal racks.
    Count(#[schemars(range(min = 1, max = 100_000))] u32),
    /// One entry a rack.
    List(Vec<RawRack>),
}

/// A rack of the list; what it leaves out is as in the topology's own keys.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawRack {
    /// Its number, from zero; its position in the list if left out.
    id: Option<u32>,
    /// Its number of hosts.
    #[schemars(range(min = 1, max = 10_000))]
    hosts: Option<u32>,
    /// Tasks that each of its hosts runs at once.
    #[schemars(range(min = 1, max = 10_000))]
    slots: Option<u32>,
    /// Rate of its hosts' network interfaces.
    nic: Option<BitRate>,
    /// Rate of its port to the EPS.
    uplink: Option<BitRate>,
}

/// The electrical packet switch: say one of the two.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawEps {
    /// Rate of each rack's port to the EPS, each direction.
    uplink: Option<BitRate>,
    /// The sum of a rack's NICs divided by its uplink: `5` or `"5:1"`.
    oversubscription: Option<Ratio>,
    /// Per cent of every uplink, and of every link behind it, that other traffic takes all the
    /// time, in a simulation; 0 if left out.
    #[serde(default)]
    #[schemars(range(max = 99))]
    background: u32,
    /// A tier of switches between the ToRs and the core, in a simulation.
    pods: Option<RawPods>,
    /// What the core switch carries in all, in a simulation; all that comes if left out.
    core: Option<BitRate>,
    /// Any network of switches, in a simulation, instead of `pods` and `core`.
    graph: Option<RawGraph>,
    /// How the ports between a rack and the EPS share their rate, in an emulation and in a
    /// simulation under `network: max-min`. It is `one` queue for all flows, or one for each of the
    /// `racks` that they go to or come from; one if left out.
    #[serde(default)]
    queues: PortQueues,
    /// What the ports of the EPS make of segments of up to 64 kB, in an emulation: they send them
    /// `whole`, or as `frames`; whole if left out.
    #[serde(default)]
    segments: Segments,
}

/// A tier of switches: traffic within a pod does not leave it.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawPods {
    /// Racks of a pod, in the order of their numbers; the last pod may have fewer.
    #[schemars(range(min = 1, max = 100_000))]
    racks: u32,
    /// Rate of each pod's link to the core, each direction.
    uplink: BitRate,
}

/// An optical circuit switch with one input and one output port a rack.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawPlane {
    /// Rate of a circuit.
    rate: BitRate,
    /// Reconfiguration delay: how long a port that changes carries nothing; under an hour.
    delta: Span,
    /// Which ports go dark when some change.
    #[serde(default)]
    stop: StopMode,
    /// Whether circuits come in pairs i -> j and j -> i, as in c-Through.
    #[serde(default)]
    duplex: bool,
}

fn one() -> u32 {
    1
}

impl<'de> Deserialize<'de> for RawRacks {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = RawRacks;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of racks or a list of racks")
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<RawRacks, E> {
                u32::try_from(v)
                    .map(RawRacks::Count)
                    .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(v), &self))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<RawRacks, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(RawRacks::List)
            }
        }
        d.deserialize_any(V)
    }
}

/// A ratio in hundredths: written `5`, `2.5` or `"5:1"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ratio(u64);

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = Ratio;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a ratio such as 5, 2.5 or \"5:1\"")
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<Ratio, E> {
                Ok(Ratio(v.saturating_mul(100)))
            }
            fn visit_f64<E: de::Error>(self, v: f64) -> Result<Ratio, E> {
                // Saturates; the range is checked later.
                if v >= 0.0 {
                    Ok(Ratio((v * 100.0).round() as u64))
                } else {
                    Err(E::invalid_value(de::Unexpected::Float(v), &self))
                }
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Ratio, E> {
                let first = v.trim().strip_suffix(":1").unwrap_or("");
                let number: Option<f64> =
                    first.parse().ok().filter(|_| first.starts_with(|c: char| c.is_ascii_digit()));
                match number {
                    Some(x) => self.visit_f64(x),
                    None => Err(E::invalid_value(de::Unexpected::Str(v), &self)),
                }
            }
        }
        d.deserialize_any(V)
    }
}

impl JsonSchema for Ratio {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Ratio".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "a ratio such as 5, 2.5 or \"5:1\"",
            "oneOf": [
                {"type": "number", "minimum": 0.01, "maximum": 10000},
                {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?:1$"}
            ]
        })
    }
}

/// A rack with everything filled in.
struct RackPlan {
    hosts: u32,
    slots: u32,
    nic: BitRate,
    uplink: BitRate,
}

impl RawTopology {
    /// The checked network.
    ///
    /// # Errors
    /// Every value that makes no sense.
    pub fn check(self) -> Result<Topology, Vec<Flaw>> {
        let mut flaws = Flaws::default();
        let name = is_name(&self.name, LONGEST_NAME);
        flaws.unless(
            name,
            vec!["name".into()],
            format!("`{}` is not a name", self.name),
            name_rule(LONGEST_NAME),
        );
        flaws.rate(self.nic, vec!["nic".into()]);
        flaws.range(self.slots_per_host, MAX_SLOTS, vec!["slots_per_host".into()]);
        if let Some(n) = self.hosts_per_rack {
            flaws.range(n, MAX_HOSTS_PER_RACK, vec!["hosts_per_rack".into()]);
        }
        let percent = self.check_eps(&mut flaws);
        let planes = self.check_planes(&mut flaws);
        let racks = self.check_racks(&mut flaws);
        // Without its racks a graph cannot be judged.
        let graph = if flaws.0.is_empty() {
            self.eps.graph.as_ref().and_then(|g| g.check(racks.len(), &mut flaws))
        } else {
            None
        };
        if graph.as_ref().is_some_and(|g| g.switches.iter().any(|s| s.tier == Tier::Server)) {
            let many = racks.iter().find(|r| r.hosts != 1).map_or(1, |r| r.hosts);
            let path = vec!["eps".into(), "graph".into()];
            flaws.unless(
                many == 1,
                path,
                format!("the servers of this graph relay, and a rack has {many} hosts"),
                "one host a rack",
            );
        }
        let (many, queues) = (racks.len(), self.eps.queues);
        let path = vec!["eps".into(), "queues".into()];
        let few = queues == PortQueues::One || many <= MAX_QUEUES;
        flaws.unless(
            few,
            path,
            format!("a queue for each of {many} racks"),
            format!("`racks` with at most {MAX_QUEUES} of them, or `one`"),
        );
        let links = self.links.check(graph.is_some(), !planes.is_empty(), &mut flaws);
        let total: u64 = racks.iter().map(|r| u64::from(r.hosts)).sum();
        flaws.unless(
            total <= MAX_HOSTS,
            vec!["racks".into()],
            format!("{total} hosts in all"),
            format!("at most {MAX_HOSTS}"),
        );
        flaws.done(|| {
            let mut t = Topology {
                name: self.name,
                racks: vec![],
                hosts: vec![],
                eps: Eps {
                    background_percent: u64::from(self.eps.background),
                    queues: self.eps.queues,
                    segments: self.eps.segments,
                    core: match (graph, self.eps.pods) {
                        (Some(graph), _) => Core::Graph(Box::new(graph)),
                        (None, Some(p)) => {
                            Core::Pods(Pods { racks: p.racks, uplink: p.uplink }, self.eps.core)
                        }
                        (None, None) => Core::Flat(self.eps.core),
                    },
                    ..Eps::flat(100)
                },
                planes,
                links: Box::new(links),
                framing: self.framing,
                loopback: false,
            };
            for r in racks {
                t.push_rack(r.hosts as usize, r.slots, r.nic, r.uplink);
            }
            t.eps.oversubscription_percent =
                percent.unwrap_or_else(|| t.oversubscription_percent());
            t
        })
    }

    fn check_eps(&self, flaws: &mut Flaws) -> Option<u64> {
        let at = |k: &str| vec!["eps".into(), k.into()];
        let taken = self.eps.background;
        flaws.unless(
            taken <= 99,
            at("background"),
            format!("{taken} per cent of background traffic"),
            "0 to 99",
        );
        if let Some(p) = self.eps.pods {
            flaws.range(
                p.racks,
                MAX_RACKS as u32,
                vec!["eps".into(), "pods".into(), "racks".into()],
            );
            flaws.rate(p.uplink, vec!["eps".into(), "pods".into(), "uplink".into()]);
        }
        if let Some(core) = self.eps.core {
            flaws.rate(core, at("core"));
        }
        let tiers = self.eps.pods.is_some() || self.eps.core.is_some();
        flaws.unless(
            !tiers || self.eps.graph.is_none(),
            at("graph"),
            "`pods` or `core` besides `graph`",
            "one of the two",
        );
        match (self.eps.uplink, self.eps.oversubscription) {
            (Some(u), None) => flaws.rate(u, at("uplink")),
            (None, Some(Ratio(p))) => {
                flaws.unless(
                    (1..=1_000_000).contains(&p),
                    at("oversubscription"),
                    "an impossible ratio",
                    "0.01 to 10000",
                );
                return Some(p);
            }
            (Some(_), Some(_)) => flaws.add(
                vec!["eps".into()],
                "both `uplink` and `oversubscription` are given",
                "one of the two",
            ),
            (None, None) => flaws.add(
                vec!["eps".into()],
                "neither `uplink` nor `oversubscription` is given",
                "one of the two",
            ),
        }
        None
    }

    fn check_planes(&self, flaws: &mut Flaws) -> Vec<Plane> {
        let n = self.ocs.len();
        flaws.unless(
            n <= MAX_PLANES,
            vec!["ocs".into()],
            format!("{n} planes"),
            format!("at most {MAX_PLANES}"),
        );
        let mut planes = Vec::with_capacity(n);
        for (k, p) in self.ocs.iter().enumerate() {
            let at = |key: &str| vec!["ocs".into(), k.into(), key.into()];
            flaws.rate(p.rate, at("rate"));
            flaws.unless(
                p.delta < MAX_DELTA,
                at("delta"),
                format!("a delay of {}", p.delta),
                "0ns to under 1 h",
            );
            planes.push(Plane {
                id: PlaneId::from(k),
                rate: p.rate,
                delta: p.delta,
                stop: p.stop,
                duplex: p.duplex,
            });
        }
        planes
    }

    fn check_racks(&self, flaws: &mut Flaws) -> Vec<RackPlan> {
        let blank = RawRack { id: None, hosts: None, slots: None, nic: None, uplink: None };
        match &self.racks {
            RawRacks::Count(n) => {
                flaws.unless(
                    (1..=MAX_RACKS).contains(&(*n as usize)),
                    vec!["racks".into()],
                    format!("{n} racks"),
                    rack_rule(),
                );
                if self.hosts_per_rack.is_none() {
                    flaws.add(
                        vec![],
                        "missing key `hosts_per_rack`",
                        format!("1 to {MAX_HOSTS_PER_RACK}"),
                    );
                }
                let n = (*n as usize).min(MAX_RACKS);
                (0..n).map_while(|_| self.rack(&blank, &["racks".into()], flaws)).collect()
            }
            RawRacks::List(list) => {
                let n = list.len();
                flaws.unless(
                    (1..=MAX_RACKS).contains(&n),
                    vec!["racks".into()],
                    format!("{n} racks"),
                    rack_rule(),
                );
                let order = order(list, flaws);
                order
                    .into_iter()
                    .filter_map(|k| self.rack(&list[k], &["racks".into(), k.into()], flaws))
                    .collect()
            }
        }
    }

    /// One rack; `None` once its flaw is noted.
    fn rack(&self, raw: &RawRack, path: &[PathStep], flaws: &mut Flaws) -> Option<RackPlan> {
        let at = |key: &str| path.iter().cloned().chain([key.into()]).collect::<Vec<PathStep>>();
        let before = flaws.0.len();
        if let Some(n) = raw.hosts {
            flaws.range(n, MAX_HOSTS_PER_RACK, at("hosts"));
        } else if self.hosts_per_rack.is_none() && raw.id.is_some() {
            flaws.add(
                path.to_vec(),
                "neither `hosts` here nor `hosts_per_rack` above",
                "one of the two",
            );
        }
        if let Some(n) = raw.slots {
            flaws.range(n, MAX_SLOTS, at("slots"));
        }
        for (rate, key) in [(raw.nic, "nic"), (raw.uplink, "uplink")] {
            if let Some(r) = rate {
                flaws.rate(r, at(key));
            }
        }
        let (hosts, nic) = (raw.hosts.or(self.hosts_per_rack)?, raw.nic.unwrap_or(self.nic));
        let uplink = raw.uplink.or(self.eps.uplink).or_else(|| {
            let percent = self.eps.oversubscription?.0.max(1);
            let bits = u128::from(nic.0) * u128::from(hosts) * 100 / u128::from(percent);
            Some(BitRate(u64::try_from(bits).unwrap_or(u64::MAX)))
        })?;
        if flaws.0.is_empty() && (uplink == BitRate::ZERO || uplink > MAX_RATE) {
            flaws.add(
                vec!["eps".into()],
                format!("the ratio gives an uplink of {uplink}"),
                rate_rule(),
            );
        }
        (flaws.0.len() == before).then_some(RackPlan {
            hosts,
            slots: raw.slots.unwrap_or(self.slots_per_host),
            nic,
            uplink,
        })
    }
}

/// The list's positions in the order of the racks' ids, which must be 0..n, each once.
fn order(list: &[RawRack], flaws: &mut Flaws) -> Vec<usize> {
    let mut of_id: Vec<Option<usize>> = vec![None; list.len()];
    for (k, raw) in list.iter().enumerate() {
        let id = raw.id.map_or(k, |i| i as usize);
        let at = || vec!["racks".into(), k.into(), "id".into()];
        let last = list.len() - 1;
        match of_id.get_mut(id) {
            None => flaws.add(
                at(),
                format!("rack id {id} leaves a gap in a list of {} racks", list.len()),
                format!("0 to {last}"),
            ),
            Some(Some(other)) => flaws.add(
                at(),
                format!("rack id {id} is used twice: also racks[{other}]"),
                "each id once",
            ),
            Some(free) => *free = Some(k),
        }
    }
    of_id.into_iter().flatten().collect()
}

fn rack_rule() -> String {
    format!("1 to {MAX_RACKS} racks")
}

fn rate_rule() -> String {
    format!("above zero, at most {MAX_RATE}")
}

impl Flaws {
    fn rate(&mut self, rate: BitRate, path: Vec<PathStep>) {
        if rate > BitRate::ZERO && payload_rate(rate) == BitRate::ZERO {
            let why = format!("headers take all of {rate}: nothing is left for payload");
            return self.add(path, why, "2b/s at least");
        }
        self.unless(
            rate > BitRate::ZERO && rate <= MAX_RATE,
            path,
            format!("a rate of {rate}"),
            rate_rule(),
        );
    }

    fn range(&mut self, n: u32, max: u32, path: Vec<PathStep>) {
        self.unless(
            (1..=max).contains(&n),
            path,
            format!("{n} is out of range"),
            format!("1 to {max}"),
        );
    }
}
