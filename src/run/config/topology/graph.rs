//! The `eps.graph` of a topology file: switches and links, or one of the usual shapes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Flaws, PathStep};
use crate::coflows::rates::MAX_HOPS;
use crate::topology::graph::{Cable, Graph, Level, MAX_SWITCHES, Routes, Switch, Tier};
use crate::units::BitRate;

/// The most links of a graph.
pub const MAX_CABLES: usize = 1_000_000;

/// Lists the shapes: what each is, its field, its key in topology files, and its parameters.
macro_rules! shapes {
    ($($(#[$doc:meta])* $field:ident = $key:literal => $shape:ty),* $(,)?) => {
        /// The network behind the racks' uplinks: one of the shapes, or `switches`, `links` and
        /// `racks`.
        #[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct RawGraph {
            $($(#[$doc])* #[serde(rename = $key)] $field: Option<$shape>,)*
            /// The switches.
            #[serde(default)]
            switches: Vec<RawSwitch>,
            /// The links between them.
            #[serde(default)]
            links: Vec<RawCable>,
            /// By rack, in the order of their numbers: the name of the switch that its uplink leads
            /// to.
            #[serde(default)]
            racks: Vec<String>,
        }

        impl RawGraph {
            /// The keys of all shapes.
            pub(super) const SHAPES: &[&str] = &[$($key),*];

            /// The shapes that are given.
            fn shapes(&self) -> Vec<&dyn GraphShape> {
                let all = [$(self.$field.as_ref().map(|s| s as &dyn GraphShape)),*];
                all.into_iter().flatten().collect()
            }
        }
    };
}

// A new shape is a function of `topology::Graph`, its parameters and its line here, its row in
// docs/topology.md, and the same shape in mininet/shapes.py.
shapes! {
    /// Al-Fares' fat tree; rack r is at edge switch r.
    fat_tree = "fat-tree" => RawFatTree,
    /// A leaf a rack, each joined with every spine.
    leaf_spine = "leaf-spine" => RawLeafSpine,
    /// A tree of switches.
    tree = "tree" => RawTree,
    /// A tree by depth and fan-out, with `copies` of every switch above the access tier; rack r is
    /// joined to access switch r.
    hierarchy = "hierarchy" => RawHierarchy,
    /// VL2; rack r is at ToR r.
    vl2 = "vl2" => RawVl2,
    /// BCube; server r is rack r, of one host.
    bcube = "bcube" => RawBCube,
}

/// Parameters of a usual network of switches.
trait GraphShape {
    /// The network of `racks` racks; `None` once the flaws are noted.
    fn check(&self, racks: usize, flaws: &mut Flaws) -> Option<Graph>;
}

/// k pods of k/2 edge and k/2 aggregation switches, and (k/2)^2 core switches.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawFatTree {
    /// Ports of a switch; even. There are k * k / 2 racks.
    #[schemars(range(min = 2, max = 56))]
    k: u32,
    /// Rate of every link, each direction.
    rate: BitRate,
    /// What every switch carries in all; all that comes if left out.
    switch: Option<BitRate>,
}

/// Two tiers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawLeafSpine {
    /// Number of spines.
    #[schemars(range(min = 1, max = 4095))]
    spines: u32,
    /// Rate of every link, each direction.
    rate: BitRate,
    /// What every switch carries in all; all that comes if left out.
    switch: Option<BitRate>,
}

/// Levels of switches below one root.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawTree {
    /// The levels, from the racks upwards.
    #[schemars(length(min = 1))]
    levels: Vec<RawLevel>,
    /// What every switch carries in all; all that comes if left out.
    switch: Option<BitRate>,
}

/// Tiers of switches, each joining `fan` of the tier below. There are `fan^(depth - 1)` racks, for
/// `fan` hosts each.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawHierarchy {
    /// Tiers of switches.
    #[schemars(range(min = 1, max = 3))]
    depth: u32,
    /// How many switches of the tier below, or hosts, each joins.
    #[schemars(range(min = 2, max = 64))]
    fan: u32,
    /// How many there are of every switch above the access tier; 1 if left out.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 16))]
    copies: u32,
    /// Rate of every link, each direction.
    rate: BitRate,
    /// What every switch carries in all; all that comes if left out.
    switch: Option<BitRate>,
}

fn one() -> u32 {
    1
}

/// `da * di / 4` ToRs, `di` aggregation and `da / 2` intermediate switches.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawVl2 {
    /// Ports of an aggregation switch; even.
    #[schemars(range(min = 2, max = 128))]
    da: u32,
    /// Ports of an intermediate switch; even, and `da * di` a multiple of 4.
    #[schemars(range(min = 2, max = 128))]
    di: u32,
    /// Rate of every link, each direction.
    rate: BitRate,
    /// What every switch carries in all; all that comes if left out.
    switch: Option<BitRate>,
}

/// `n^(k + 1)` servers that relay, and `n^k` switches on each of k + 1 levels.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawBCube {
    /// Ports of a switch.
    #[schemars(range(min = 2, max = 64))]
    n: u32,
    /// The highest level; a server has k + 1 ports.
    #[schemars(range(max = 3))]
    k: u32,
    /// Rate of every link, each direction; a server's `nic` is k + 1 times that.
    rate: BitRate,
    /// What every switch carries in all; all that comes if left out.
    switch: Option<BitRate>,
}

/// A level of a tree.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawLevel {
    /// How many racks, or switches of the level below, a switch joins.
    #[schemars(range(min = 1, max = 100_000))]
    join: u32,
    /// Rate of each switch's link to the level above, each direction.
    uplink: BitRate,
}

/// A switch.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawSwitch {
    /// Its name.
    name: String,
    /// Its place between hosts and core; by the distance to the nearest rack if no switch of the
    /// graph says one.
    tier: Option<Tier>,
    /// What it carries in all; all that comes if left out.
    rate: Option<BitRate>,
}

/// A link between two switches.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawCable {
    /// The switch at one end.
    from: String,
    /// The switch at the other.
    to: String,
    /// Rate, each direction.
    rate: BitRate,
}

fn at(steps: impl IntoIterator<Item = PathStep>) -> Vec<PathStep> {
    ["eps".into(), "graph".into()].into_iter().chain(steps).collect()
}

impl RawGraph {
    /// The checked graph of `racks` racks; `None` once its flaws are noted.
    pub(super) fn check(&self, racks: usize, flaws: &mut Flaws) -> Option<Graph> {
        let before = flaws.0.len();
        let shapes = self.shapes();
        let listed = !(self.switches.is_empty() && self.links.is_empty() && self.racks.is_empty());
        let said = shapes.len() + usize::from(listed);
        let rule = format!(
            "one of `{}`, or `switches` with `links` and `racks`",
            Self::SHAPES.join("`, `")
        );
        flaws.unless(said == 1, at([]), format!("{said} shapes are given"), rule);
        if flaws.0.len() > before {
            return None;
        }
        let graph = match shapes.first() {
            Some(shape) => shape.check(racks, flaws),
            None => self.listed(racks, flaws),
        }?;
        routable(&graph, flaws);
        (flaws.0.len() == before).then_some(graph)
    }

    fn listed(&self, racks: usize, flaws: &mut Flaws) -> Option<Graph> {
        let before = flaws.0.len();
        small(self.switches.len(), self.links.len(), flaws);
        let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
        for (k, s) in self.switches.iter().enumerate() {
            let path = |key: &str| at(["switches".into(), k.into(), key.into()]);
            if numbers.insert(&s.name, k as u32).is_some() {
                flaws.add(
                    path("name"),
                    format!("switch `{}` is listed twice", s.name),
                    "each name once",
                );
            }
            if let Some(rate) = s.rate {
                flaws.rate(rate, path("rate"));
            }
        }
        let find = |name: &str, path: Vec<PathStep>, flaws: &mut Flaws| {
            let found = numbers.get(name).copied();
            let known: Vec<&str> = self.switches.iter().take(8).map(|s| s.name.as_str()).collect();
            let more = if self.switches.len() > 8 { ", ..." } else { "" };
            flaws.unless(
                found.is_some(),
                path,
                format!("no switch is called `{name}`"),
                format!("{}{more}", known.join(", ")),
            );
            found
        };
        let mut cables = Vec::with_capacity(self.links.len());
        for (k, l) in self.links.iter().enumerate() {
            let path = |key: &str| at(["links".into(), k.into(), key.into()]);
            flaws.rate(l.rate, path("rate"));
            flaws.unless(
                l.from != l.to,
                path("to"),
                format!("a link from `{}` to itself", l.from),
                "two switches",
            );
            if let (Some(a), Some(b)) =
                (find(&l.from, path("from"), flaws), find(&l.to, path("to"), flaws))
            {
                cables.push(Cable { ends: (a, b), rate: l.rate });
            }
        }
        let n = self.racks.len();
        flaws.unless(
            n == racks,
            at(["racks".into()]),
            format!("{n} entries"),
            format!("one of each of the {racks} racks"),
        );
        let stand = self.racks.iter().enumerate();
        let racks = stand
            .filter_map(|(k, name)| find(name, at(["racks".into(), k.into()]), flaws))
            .collect();
        let tiers = self.switches.iter().filter(|s| s.tier.is_some()).count();
        let every = tiers == 0 || tiers == self.switches.len();
        flaws.unless(
            every,
            at(["switches".into()]),
            format!("{tiers} of {} switches have a tier", self.switches.len()),
            "all or none",
        );
        let switch = |s: &RawSwitch| Switch {
            name: s.name.clone(),
            tier: s.tier.unwrap_or(Tier::Access),
            rate: s.rate,
        };
        let switches = self.switches.iter().map(switch).collect();
        (flaws.0.len() == before).then(|| {
            let mut graph = Graph { switches, cables, racks };
            if tiers == 0 {
                graph.tiers_by_distance();
            }
            graph
        })
    }
}

impl GraphShape for RawFatTree {
    fn check(&self, racks: usize, flaws: &mut Flaws) -> Option<Graph> {
        let (before, path) = (flaws.0.len(), |key: &str| at(["fat-tree".into(), key.into()]));
        let (k, even) = (self.k, self.k.is_multiple_of(2));
        flaws.unless(
            even && (2..=56).contains(&k),
            path("k"),
            format!("switches of {k} ports"),
            "an even number from 2 to 56",
        );
        rates(&[(self.rate, "rate")], self.switch, &path, flaws);
        if flaws.0.len() == before {
            let n = (k * k / 2) as usize;
            flaws.unless(
                n == racks,
                path("k"),
                format!("a fat tree of k = {k} has {n} racks, not {racks}"),
                "racks = k * k / 2",
            );
        }
        (flaws.0.len() == before).then(|| Graph::fat_tree(k, self.rate, self.switch))
    }
}

impl GraphShape for RawLeafSpine {
    fn check(&self, racks: usize, flaws: &mut Flaws) -> Option<Graph> {
        let (before, path) = (flaws.0.len(), |key: &str| at(["leaf-spine".into(), key.into()]));
        flaws.unless(self.spines > 0, path("spines"), "no spines", "1 or more");
        rates(&[(self.rate, "rate")], self.switch, &path, flaws);
        small(
            racks.saturating_add(self.spines as usize),
            racks.saturating_mul(self.spines as usize),
            flaws,
        );
        (flaws.0.len() == before)
            .then(|| Graph::leaf_spine(racks, self.spines, self.rate, self.switch))
    }
}

impl GraphShape for RawTree {
    fn check(&self, racks: usize, flaws: &mut Flaws) -> Option<Graph> {
        let before = flaws.0.len();
        flaws.unless(
            !self.levels.is_empty(),
            at(["tree".into(), "levels".into()]),
            "no levels",
            "one or more",
        );
        let (mut width, mut switches) = (racks, 1usize);
        for (n, l) in self.levels.iter().enumerate() {
            let path = |key: &str| at(["tree".into(), "levels".into(), n.into(), key.into()]);
            flaws.range(l.join, super::MAX_RACKS as u32, path("join"));
            flaws.rate(l.uplink, path("uplink"));
            width = width.div_ceil(l.join.max(1) as usize);
            switches = switches.saturating_add(width);
        }
        rates(&[], self.switch, &|key| at(["tree".into(), key.into()]), flaws);
        small(switches, switches, flaws);
        let levels: Vec<Level> =
            self.levels.iter().map(|l| Level { join: l.join, uplink: l.uplink }).collect();
        (flaws.0.len() == before).then(|| Graph::tree(racks, &levels, self.switch))
    }
}

impl GraphShape for RawHierarchy {
    fn check(&self, racks: usize, flaws: &mut Flaws) -> Option<Graph> {
        let (before, path) = (flaws.0.len(), |key: &str| at(["hierarchy".into(), key.into()]));
        flaws.unless(
            (1..=3).contains(&self.depth),
            path("depth"),
            format!("a depth of {}", self.depth),
            "1 to 3",
        );
        flaws.unless(
            (2..=64).contains(&self.fan),
            path("fan"),
            format!("a fan-out of {}", self.fan),
            "2 to 64",
        );
        flaws.unless(
            (1..=16).contains(&self.copies),
            path("copies"),
            format!("{} copies", self.copies),
            "1 to 16",
        );
        rates(&[(self.rate, "rate")], self.switch, &path, flaws);
        if flaws.0.len() == before {
            let n = self.fan.pow(self.depth - 1) as usize;
            let rule = "racks = fan^(depth - 1)";
            flaws.unless(
                n == racks,
                path("fan"),
                format!(
                    "a tree of depth {} and fan-out {} has {n} racks, not {racks}",
                    self.depth, self.fan
                ),
                rule,
            );
            let (upper, copies) = ((n - 1) / (self.fan as usize - 1), self.copies as usize);
            small(n + upper * copies, (n + upper * copies) * copies, flaws);
        }
        (flaws.0.len() == before)
            .then(|| Graph::hierarchy(self.depth, self.fan, self.copies, self.rate, self.switch))
    }
}

impl GraphShape for RawVl2 {
    fn check(&self, racks: usize, flaws: &mut Flaws) -> Option<Graph> {
        let (before, path) = (flaws.0.len(), |key: &str| at(["vl2".into(), key.into()]));
        for (n, key) in [(self.da, "da"), (self.di, "di")] {
            let good = n.is_multiple_of(2) && (2..=128).contains(&n);
            flaws.unless(
                good,
                path(key),
                format!("`{key}` of {n}"),
                "an even number from 2 to 128",
            );
        }
        rates(&[(self.rate, "rate")], self.switch, &path, flaws);
        if flaws.0.len() == before {
            let n = (self.da * self.di / 4) as usize;
            flaws.unless(
                n == racks,
                path("da"),
                format!("VL2({}, {}) has {n} racks, not {racks}", self.da, self.di),
                "racks = da * di / 4",
            );
        }
        (flaws.0.len() == before).then(|| Graph::vl2(self.da, self.di, self.rate, self.switch))
    }
}

impl GraphShape for RawBCube {
    fn check(&self, racks: usize, flaws: &mut Flaws) -> Option<Graph> {
        let (before, path) = (flaws.0.len(), |key: &str| at(["bcube".into(), key.into()]));
        flaws.unless(
            (2..=64).contains(&self.n),
            path("n"),
            format!("switches of {} ports", self.n),
            "2 to 64",
        );
        flaws.unless(self.k <= 3, path("k"), format!("a highest level of {}", self.k), "0 to 3");
        rates(&[(self.rate, "rate")], self.switch, &path, flaws);
        if flaws.0.len() == before {
            let (n, k) = (u64::from(self.n), self.k);
            let servers = n.pow(k + 1);
            let rule = "racks = n^(k + 1), each of one host";
            flaws.unless(
                servers == racks as u64,
                path("n"),
                format!("BCube({n}, {k}) has {servers} servers, not {racks} racks"),
                rule,
            );
            let cables = servers * u64::from(k + 1);
            small((servers + u64::from(k + 1) * n.pow(k)) as usize, cables as usize, flaws);
        }
        (flaws.0.len() == before).then(|| Graph::bcube(self.n, self.k, self.rate, self.switch))
    }
}

fn rates(
    list: &[(BitRate, &str)],
    switch: Option<BitRate>,
    path: &dyn Fn(&str) -> Vec<PathStep>,
    flaws: &mut Flaws,
) {
    for (rate, key) in list.iter().copied().chain(switch.map(|s| (s, "switch"))) {
        flaws.rate(rate, path(key));
    }
}

fn small(switches: usize, cables: usize, flaws: &mut Flaws) {
    flaws.unless(
        switches <= MAX_SWITCHES,
        at([]),
        format!("{switches} switches"),
        format!("at most {MAX_SWITCHES}"),
    );
    flaws.unless(
        cables <= MAX_CABLES,
        at([]),
        format!("{cables} links"),
        format!("at most {MAX_CABLES}"),
    );
}

/// Every rack reaches every other one, over no more links and switches of limited rate than a
/// flow's path can hold.
fn routable(graph: &Graph, flaws: &mut Flaws) {
    let name = |s: u32| graph.switches[s as usize].name.clone();
    match Routes::new(graph).longest() {
        Err((a, b)) => {
            let what = format!(
                "there is no way from switch `{}` to `{}`, and both have racks",
                name(a),
                name(b)
            );
            flaws.add(at([]), what, "a way between every two racks");
        }
        Ok(cables) => {
            let limited = graph.switches.iter().any(|s| s.rate.is_some());
            let crossed = cables + if limited { cables + 1 } else { 0 };
            let most = MAX_HOPS - 4;
            let what = format!(
                "the longest way crosses {cables} links, which with their switches' rates is {crossed}"
            );
            flaws.unless(
                crossed <= most,
                at([]),
                what,
                format!("at most {most} links and switches with a rate"),
            );
        }
    }
}

#[cfg(test)]
mod tests;
