//! Which lists of switches the flows of coflows take: decided when a coflow begins and when one
//! ends, or set by hand.
//!
//! All flows between two hosts take one list, but for those that were given one by hand, each for
//! itself. A pair of hosts between which no coflow sends takes the network's default way, unless
//! its list was set by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::Rejected;
use crate::coflows::FlowSpec;
use crate::ids::{CoflowId, HostId};
use crate::paths::choose::{PathPolicy, default_list, load_of, rates, shortest, valiant};
use crate::paths::optimise::{RoutedFlow, cost, optimise};
use crate::paths::{List, ListError, SwitchRates, Switches, Units};
use crate::plan::paths::{Lists, PathEnds, PathError, Ports, Steer, SteerResult, check, diff};
use crate::topology::Topology;
use crate::topology::graph::{Routes, Tier};
use crate::topology::types::Types;
use crate::units::{BitRate, Bytes};

mod typed;

/// A pair of hosts, from and to.
type HostPair = (HostId, HostId);

/// What decided a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DecidedBy {
    /// The network: the pair of hosts has the default way of its racks.
    Default,
    /// The policy's `paths`.
    Policy,
    /// An operator.
    Manual,
}

/// The way between two hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairView {
    /// Where it begins.
    pub from: HostId,
    /// Where it ends.
    pub to: HostId,
    /// The flow that takes it, if it is not that of the whole pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<Ports>,
    /// The switches on it, by number.
    pub list: List,
    /// What decided it.
    pub by: DecidedBy,
    /// Whether the fabric holds it.
    pub held: bool,
    /// What open coflows send over it, in all.
    pub bytes: Bytes,
    /// What they take of each switch.
    pub rate: BitRate,
    /// The tiers that the list must have; empty: any.
    #[serde(default, skip_serializing_if = "Types::are_free")]
    pub types: Types,
    /// Whether an open coflow sends over it whose types the list has not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unmet: bool,
}

/// A switch and what it carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchView {
    /// What people call it.
    pub name: String,
    /// Its place between hosts and core.
    pub tier: Tier,
    /// What open coflows take of it.
    pub load: BitRate,
    /// What it carries at most; `None`: all that comes.
    pub capacity: Option<BitRate>,
    /// Pairs of hosts whose flows cross it.
    pub pairs: u32,
}

/// The paths of a network of several switches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathsView {
    /// How they are decided.
    pub policy: PathPolicy,
    /// Draws the switches of `vlb`.
    pub seed: u64,
    /// By pair of hosts: between which coflows send, or whose list was set by hand.
    pub pairs: Vec<PairView>,
    /// The switches, by number.
    pub switches: Vec<SwitchView>,
    /// Pairs of switches whose link is down, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<(u32, u32)>,
    /// What a byte costs a switch that it crosses.
    #[serde(default, skip_serializing_if = "Units::is_usual")]
    pub units: Units,
    /// Bytes of all open coflows times the costs of the switches that they cross.
    pub cost: u64,
}

/// What a decision did to the paths of active flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// Flows that no list has room for.
    pub saturated: usize,
    /// Bytes times switches, before.
    pub before: u64,
    /// Bytes times switches, afterwards.
    pub after: u64,
}

/// The switches of a network, and the flows that cross them.
#[derive(Clone)]
struct Web {
    /// The network when all is well.
    whole: Arc<Switches>,
    /// The network now: switches that have failed carry nothing, and links that are down join
    /// nothing.
    net: Arc<Switches>,
    routes: Arc<Routes>,
}

/// Decides the paths of flows. Without a graph of switches it knows nothing and does nothing.
pub struct Paths {
    topology: Arc<Topology>,
    web: Option<Web>,
    policy: PathPolicy,
    seed: u64,
    units: Units,
    coflows: BTreeMap<CoflowId, Vec<RoutedFlow>>,
    /// Of them, those with types.
    with_types: BTreeSet<CoflowId>,
    /// Flows of open coflows by ends; their lists are those that the policy chose, empty for the
    /// default way.
    flows: BTreeMap<HostPair, RoutedFlow>,
    manual: BTreeMap<PathEnds, List>,
    /// Switches that have failed.
    failed: BTreeSet<u32>,
    /// Pairs of switches whose link is down, of several at least one: which of them a list takes is
    /// the fabric's choice.
    apart: BTreeSet<(u32, u32)>,
    /// What the fabric holds.
    held: Lists,
    /// What the fabric was asked for and has not answered.
    asked: Vec<Steer>,
    /// Whether the last answer had a refusal in it.
    refused: bool,
    view: OnceLock<Arc<PathsView>>,
}

impl Paths {
    /// Paths of a network in which nothing is sent.
    pub fn new(topology: Arc<Topology>, policy: PathPolicy, seed: u64) -> Self {
        let web = topology.eps.graph().map(|graph| {
            let net = Arc::new(Switches::new(&topology, Units::default()));
            Web { whole: net.clone(), net, routes: Arc::new(Routes::new(graph)) }
        });
        let (coflows, with_types, flows, manual) = Default::default();
        let (failed, apart, held, view) = Default::default();
        let units = Units::default();
        Self {
            topology,
            web,
            policy,
            seed,
            units,
            coflows,
            with_types,
            flows,
            manual,
            failed,
            apart,
            held,
            asked: vec![],
            refused: false,
            view,
        }
    }

    /// The same with other costs of switches.
    #[must_use]
    pub fn priced(mut self, units: Units) -> Self {
        self.price(units);
        self
    }

    /// What a byte costs each switch from the next decision on. O(switches + links) if that is
    /// news.
    pub fn price(&mut self, units: Units) {
        if units != self.units {
            self.units = units;
            if let Some(web) = &mut self.web {
                web.whole = Arc::new(Switches::new(&self.topology, units));
            }
            self.renew();
        }
    }

    /// Whether the network has several switches.
    pub fn is_known(&self) -> bool {
        self.web.is_some()
    }

    /// Whether all flows take their default ways and shall do so.
    pub fn rests(&self) -> bool {
        self.policy.is_ecmp()
            && self.manual.is_empty()
            && self.held.0.is_empty()
            && self.with_types.is_empty()
    }

    /// Whether the fabric refused something that is still wanted.
    pub fn is_refused(&self) -> bool {
        self.refused
    }

    /// Another policy decides from now on.
    pub fn switch_to(&mut self, policy: PathPolicy, seed: u64) {
        self.flows.values_mut().for_each(|f| f.list = List::default());
        (self.policy, self.seed) = (policy, seed);
        self.view.take();
    }

    /// A coflow begins, whose lists must have these types if there are any; what it sends within a
    /// host is left out. O(flows log flows).
    ///
    /// # Errors
    /// A host that does not exist, or types that no list has; nothing is changed then.
    pub fn begin(
        &mut self,
        id: CoflowId,
        given: &[FlowSpec],
        types: &Types,
    ) -> Result<(), Rejected> {
        let hosts = self.topology.hosts.len();
        if let Some(wrong) = given.iter().flat_map(|f| [f.from, f.to]).find(|h| h.index() >= hosts)
        {
            return Err(Rejected::Invalid(format!(
                "hosts are 0 to {}, not {}",
                hosts - 1,
                wrong.0
            )));
        }
        self.expect_possible(types)?;
        let mut sums: BTreeMap<HostPair, u64> = BTreeMap::new();
        for f in given.iter().filter(|f| f.from != f.to && f.bytes > Bytes::ZERO) {
            let sum = sums.entry((f.from, f.to)).or_default();
            *sum = sum.saturating_add(f.bytes.0);
        }
        let list: Vec<(HostId, HostId, u64)> =
            sums.into_iter().map(|((a, b), n)| (a, b, n)).collect();
        let rates = rates(&list, |h| self.topology.hosts[h.index()].nic.0);
        let flow = |(&(from, to, bytes), rate)| RoutedFlow {
            from,
            to,
            bytes,
            rate,
            list: List::default(),
            types: types.clone(),
        };
        let own: Vec<RoutedFlow> = list.iter().zip(rates).map(flow).collect();
        for f in &own {
            let all = self.flows.entry((f.from, f.to)).or_insert(RoutedFlow {
                bytes: 0,
                rate: 0,
                types: Types::default(),
                ..f.clone()
            });
            (all.bytes, all.rate) =
                (all.bytes.saturating_add(f.bytes), all.rate.saturating_add(f.rate));
        }
        let pairs: Vec<HostPair> =
            own.iter().filter(|f| !f.types.are_free()).map(|f| (f.from, f.to)).collect();
        let old = self.coflows.insert(id, own);
        self.with_types.remove(&id);
        if !pairs.is_empty() {
            self.with_types.insert(id);
        }
        self.take_off(old.unwrap_or_default());
        self.retype(pairs);
        self.view.take();
        Ok(())
    }

    /// Ends a coflow, or takes it back. Returns whether it was known.
    pub fn end(&mut self, id: CoflowId) -> bool {
        let Some(own) = self.coflows.remove(&id) else { return false };
        self.with_types.remove(&id);
        self.take_off(own);
        self.view.take();
        true
    }

    fn take_off(&mut self, own: Vec<RoutedFlow>) {
        for f in own {
            let ends = (f.from, f.to);
            let Some(all) = self.flows.get_mut(&ends) else { continue };
            (all.bytes, all.rate) =
                (all.bytes.saturating_sub(f.bytes), all.rate.saturating_sub(f.rate));
            if all.bytes == 0 {
                self.flows.remove(&ends);
            } else if !f.types.are_free() {
                self.retype([ends]);
            }
        }
    }

    /// A pair of hosts, or one of its flows, gets a list by hand, which no decision changes. How
    /// much a single flow sends is not known: it counts as part of its pair.
    ///
    /// # Errors
    /// Why no flow could take it, or not beside the others; nothing is changed then.
    pub fn set(&mut self, ends: PathEnds, list: List) -> Result<(), Rejected> {
        let web = self.web()?;
        let invalid = |e: PathError| Rejected::Invalid(e.to_string());
        check(&Steer::new(ends, Some(list.clone())), &web.whole).map_err(invalid)?;
        if let Some(f) = self.flows.get(&ends.hosts()) {
            web.whole
                .check_types(&list, &f.types)
                .map_err(|e| Rejected::Conflict(e.to_string()))?;
        }
        if !web.net.holds(&list) {
            return Err(Rejected::Conflict("a link of the list is down".into()));
        }
        if let Some(f) = self.flows.get(&ends.hosts()).filter(|_| ends.ports.is_none()) {
            let others =
                self.effective(web).filter(|o| (o.from, o.to) != ends.hosts()).collect::<Vec<_>>();
            let load = load_of(&web.net, &others);
            let what_if = |e: ListError| {
                Rejected::Conflict(format!(
                    "{e}; with it {}",
                    told_load(&web.net, &load, &list, f.rate)
                ))
            };
            load.check(&web.net, &list, f.rate).map_err(what_if)?;
        }
        self.manual.insert(ends, list);
        self.view.take();
        Ok(())
    }

    /// A list that was set by hand is given back.
    ///
    /// # Errors
    /// None was set by hand for this pair, or this flow.
    pub fn unset(&mut self, ends: PathEnds) -> Result<(), Rejected> {
        self.web()?;
        if self.manual.remove(&ends).is_none() {
            return Err(Rejected::NotFound(format!("a list set by hand {}", self.told(ends))));
        }
        self.view.take();
        Ok(())
    }

    /// A switch has failed, or is `well` again. Under `hit` its flows take others from the next
    /// decision on.
    ///
    /// # Errors
    /// There is no such switch.
    pub fn fault(&mut self, switch: u32, well: bool) -> Result<(), Rejected> {
        let n = self.web()?.net.len();
        if switch as usize >= n {
            return Err(Rejected::NotFound(format!("switch {switch} (switches: 0 to {})", n - 1)));
        }
        if well {
            self.failed.remove(&switch);
        } else {
            self.failed.insert(switch);
        }
        self.renew();
        Ok(())
    }

    /// Only these links between switches are down from now on, by number. Under `hit` flows take
    /// others from the next decision on. Returns whether that is news. O(links), or O(those)
    /// without news.
    pub fn down(&mut self, cables: impl Iterator<Item = u32>) -> bool {
        let Some(graph) = self.topology.eps.graph() else { return false };
        let apart = cables
            .filter_map(|c| graph.cables.get(c as usize))
            .map(|c| (c.ends.0.min(c.ends.1), c.ends.0.max(c.ends.1)))
            .collect();
        if apart == self.apart {
            return false;
        }
        self.apart = apart;
        self.renew();
        true
    }

    /// Makes the network what it is now.
    fn renew(&mut self) {
        if let Some(web) = &mut self.web {
            web.net = Arc::new(web.whole.without(&self.failed, &self.apart));
        }
        self.view.take();
    }

    fn web(&self) -> Result<&Web, Rejected> {
        let none = || {
            Rejected::Invalid(
                "the packet network of this topology is one switch: there are no paths to choose"
                    .into(),
            )
        };
        self.web.as_ref().ok_or_else(none)
    }

    /// Gives the active flows their lists. Under `hit` all of them are looked at, under others
    /// those that have none.
    pub fn decide(&mut self) -> Option<Decided> {
        let web = self.web.clone()?;
        let before = self.cost(&web);
        let mut saturated = 0;
        self.decide_types(&web);
        match self.policy {
            PathPolicy::Ecmp => {}
            PathPolicy::Shortest | PathPolicy::Vlb => {
                let (vlb, seed) = (self.policy == PathPolicy::Vlb, self.seed);
                for f in self.flows.values_mut().filter(|f| f.list.0.is_empty()) {
                    let ends = (f.from, f.to);
                    let found =
                        if vlb { valiant(&web.net, ends, seed) } else { shortest(&web.net, ends) };
                    f.list = found.unwrap_or_default();
                }
            }
            PathPolicy::Hit => saturated = self.optimise(&web),
        }
        self.view.take();
        Some(Decided { saturated, before, after: self.cost(&web) })
    }

    /// Algorithm 1 over all flows but those whose lists were set by hand. Returns how many found no
    /// list with room, or no way while links are down.
    fn optimise(&mut self, web: &Web) -> usize {
        let by_hand: Vec<RoutedFlow> = self.effective(web).filter(|f| self.is_by_hand(f)).collect();
        let mut own: Vec<RoutedFlow> =
            self.flows.values().filter(|f| !self.is_by_hand(f)).cloned().collect();
        own.iter_mut().filter(|f| !web.net.holds(&f.list)).for_each(|f| f.list = List::default());
        let mut load = load_of(&web.net, own.iter().chain(&by_hand));
        let done = optimise(&web.net, &mut load, &mut own);
        for f in own {
            self.flows.insert((f.from, f.to), f);
        }
        done.saturated + done.cut
    }

    fn is_by_hand(&self, f: &RoutedFlow) -> bool {
        self.manual.contains_key(&PathEnds::pair(f.from, f.to))
    }

    /// What the fabric should hold: lists that were set by hand, and those of active flows.
    fn wanted(&self) -> Lists {
        let chosen = self
            .flows
            .iter()
            .filter(|f| !f.1.list.0.is_empty())
            .map(|(&pair, f)| (pair.into(), f.list.clone()));
        let mut all: BTreeMap<PathEnds, List> = chosen.collect();
        all.extend(self.answers());
        all.extend(self.manual.iter().map(|(ends, list)| (*ends, list.clone())));
        Lists(all)
    }

    /// Lists for what goes back to the senders of active flows, such as acknowledgements, where its
    /// default way crosses a link that is down. O(flows x (switches + links)) while one is.
    fn answers(&self) -> BTreeMap<PathEnds, List> {
        let cut = self.policy == PathPolicy::Hit && !self.apart.is_empty();
        let Some(web) = self.web.as_ref().filter(|_| cut) else { return BTreeMap::new() };
        let back = self
            .flows
            .keys()
            .map(|&(from, to)| (to, from))
            .filter(|pair| !self.flows.contains_key(pair));
        let broken = back.filter(|&pair| !web.net.holds(&self.default_list(web, pair)));
        broken.filter_map(|pair| Some((pair.into(), shortest(&web.net, pair)?))).collect()
    }

    /// The changes that the fabric must make now; none while it has not answered the last ones.
    pub fn ops(&mut self) -> Vec<Steer> {
        if !self.asked.is_empty() || self.web.is_none() {
            return vec![];
        }
        self.asked = diff(&self.wanted(), &self.held);
        self.asked.clone()
    }

    /// Whether the fabric was asked for changes, and has not answered.
    pub fn is_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    /// What became of the changes that were asked for. Returns why the first that was refused was.
    /// An answer to others is none.
    pub fn answered(&mut self, results: Vec<SteerResult>) -> Option<String> {
        let asked = std::mem::take(&mut self.asked);
        if !results.iter().map(|r| &r.op).eq(&asked) {
            self.refused = true;
            return Some("the fabric answered to other changes than it was asked for".into());
        }
        let mut why = None;
        for SteerResult { op, outcome } in results {
            match outcome {
                Ok(_) => drop(self.held.follow(&op)),
                Err(e) => drop(why.get_or_insert_with(|| format!("{}: {e}", self.told(op.ends())))),
            }
        }
        self.refused = why.is_some();
        self.view.take();
        why
    }

    /// The network's default way between two hosts.
    fn default_list(&self, web: &Web, (from, to): HostPair) -> List {
        let (a, b) = (self.topology.rack_of(from), self.topology.rack_of(to));
        default_list(&web.net, &web.routes, (a, b), (from, to))
    }

    /// The active flows with the lists that they take.
    fn effective<'a>(&'a self, web: &'a Web) -> impl Iterator<Item = RoutedFlow> + 'a {
        self.flows
            .iter()
            .map(|(&pair, f)| RoutedFlow { list: self.list_of(web, pair), ..f.clone() })
    }

    /// The list that all flows between two hosts take.
    fn list_of(&self, web: &Web, pair: HostPair) -> List {
        let chosen = || self.flows.get(&pair).map(|f| &f.list).filter(|l| !l.0.is_empty());
        self.manual
            .get(&pair.into())
            .or_else(chosen)
            .cloned()
            .unwrap_or_else(|| self.default_list(web, pair))
    }

    fn cost(&self, web: &Web) -> u64 {
        let flows: Vec<RoutedFlow> = self.effective(web).collect();
        u64::try_from(cost(&web.net, &flows)).unwrap_or(u64::MAX)
    }

    /// A pair of hosts, or a flow between them, in words.
    fn told(&self, PathEnds { from, to, ports }: PathEnds) -> String {
        let flow = ports.map_or_else(String::new, |p| {
            format!(" of the flow from port {} to port {}", p.from, p.to)
        });
        let name = |h: HostId| {
            if h.index() < self.topology.hosts.len() {
                self.topology.host_name(h)
            } else {
                format!("host {}", h.0)
            }
        };
        format!("from {} to {}{flow}", name(from), name(to))
    }

    /// What the API shows; `None` without a graph of switches. Made once a change: O(pairs x
    /// length).
    pub fn view(&self) -> Option<Arc<PathsView>> {
        let web = self.web.as_ref()?;
        Some(self.view.get_or_init(|| Arc::new(self.make_view(web))).clone())
    }

    fn make_view(&self, web: &Web) -> PathsView {
        let idle = self
            .manual
            .iter()
            .filter(|m| m.0.ports.is_none() && !self.flows.contains_key(&m.0.hosts()));
        let idle = idle.map(|(e, list)| RoutedFlow {
            from: e.from,
            to: e.to,
            bytes: 0,
            rate: 0,
            list: list.clone(),
            types: Types::default(),
        });
        let mut flows: Vec<RoutedFlow> = self.effective(web).chain(idle).collect();
        flows.sort_by_key(|f| (f.from, f.to));
        let load = load_of(&web.net, &flows);
        let mut crossing = vec![0u32; web.net.len()];
        flows.iter().flat_map(|f| &f.list.0).for_each(|&s| crossing[s as usize] += 1);
        let (typed, unmet) = (self.typed(), self.unmet(web));
        let pair = |f: &RoutedFlow| {
            let chosen = self.flows.get(&(f.from, f.to)).is_some_and(|f| !f.list.0.is_empty());
            let by = match (self.is_by_hand(f), chosen) {
                (true, _) => DecidedBy::Manual,
                (false, true) => DecidedBy::Policy,
                (false, false) => DecidedBy::Default,
            };
            let held = match self.held.of(f.from, f.to) {
                Some(list) => *list == f.list,
                None => by == DecidedBy::Default,
            };
            let (bytes, rate) = (Bytes(f.bytes), BitRate(f.rate));
            let pair = (f.from, f.to);
            let (types, unmet) =
                (typed.get(&pair).copied().cloned().unwrap_or_default(), unmet.contains(&pair));
            PairView {
                from: f.from,
                to: f.to,
                ports: None,
                list: f.list.clone(),
                by,
                held,
                bytes,
                rate,
                types,
                unmet,
            }
        };
        let single =
            self.manual.iter().filter(|m| m.0.ports.is_some()).map(|(&ends, list)| PairView {
                from: ends.from,
                to: ends.to,
                ports: ends.ports,
                list: list.clone(),
                by: DecidedBy::Manual,
                held: self.held.at(ends) == Some(list),
                bytes: Bytes::ZERO,
                rate: BitRate(0),
                types: Types::default(),
                unmet: false,
            });
        let mut pairs: Vec<PairView> = flows.iter().map(pair).chain(single).collect();
        pairs.sort_by_key(|p| (p.from, p.to, p.ports));
        let switch = |s: u32| SwitchView {
            name: web.net.name(s).to_owned(),
            tier: web.net.tier(s),
            load: BitRate(load.of(s)),
            capacity: web.net.capacity(s).map(BitRate),
            pairs: crossing[s as usize],
        };
        PathsView {
            policy: self.policy,
            seed: self.seed,
            pairs,
            switches: (0..web.net.len() as u32).map(switch).collect(),
            apart: self.apart.iter().copied().collect(),
            units: self.units,
            cost: self.cost(web),
        }
    }

    /// The state that a view shows, to try things on it: its coflows are one.
    pub fn of(topology: Arc<Topology>, view: &PathsView) -> Self {
        let mut paths = Self::new(topology, view.policy, view.seed).priced(view.units);
        if let Some(web) = &paths.web {
            let fails = |s: &u32| {
                view.switches[*s as usize].capacity == Some(BitRate::ZERO)
                    && web.whole.capacity(*s) != Some(0)
            };
            paths.failed = (0..view.switches.len() as u32).filter(fails).collect();
        }
        paths.apart = view.apart.iter().copied().collect();
        paths.renew();
        for p in &view.pairs {
            let (ends, chosen) =
                (PathEnds { from: p.from, to: p.to, ports: p.ports }, p.by == DecidedBy::Policy);
            if p.by == DecidedBy::Manual {
                paths.manual.insert(ends, p.list.clone());
            }
            let list = if chosen { p.list.clone() } else { List::default() };
            if p.bytes > Bytes::ZERO {
                paths.flows.insert(
                    ends.hosts(),
                    RoutedFlow {
                        from: p.from,
                        to: p.to,
                        bytes: p.bytes.0,
                        rate: p.rate.0,
                        list,
                        types: p.types.clone(),
                    },
                );
            }
            if p.held && p.by != DecidedBy::Default {
                paths.held.0.insert(ends, p.list.clone());
            }
        }
        paths
    }
}

/// What every switch of a list would carry with a flow of `rate` more, against what it can, in
/// words.
fn told_load(net: &Switches, load: &SwitchRates, list: &List, rate: u64) -> String {
    let of = |s: u32| net.capacity(s).map_or("any load".into(), |c| BitRate(c).to_string());
    let one = |&s: &u32| {
        format!(
            "{} would carry {} of {}",
            net.name(s),
            BitRate(load.of(s).saturating_add(rate)),
            of(s)
        )
    };
    list.0.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
