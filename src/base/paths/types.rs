//! Lists whose switches must have given tiers, in their order: what a flow's policy may demand.
//!
//! Source: section 3.2 of the paper: a policy p has a list of switches and their types, and is
//! satisfied if the type of every switch of the list is the one at its place. The search for such
//! lists is ours.

use std::collections::BTreeSet;

use super::search::{Weight, own_weights, strip};
use super::{List, ListError, SwitchRates, Switches, Units};
use crate::ids::HostId;
use crate::topology::Topology;
use crate::topology::graph::Tier;
use crate::topology::types::Types;

/// The most switches that one search for a list looks at beyond the shortest walk's. Where every
/// walk of the given tiers that is left crosses a switch twice, to look at all of them could take
/// for ever.
const MAX_STEPS: u32 = 100_000;

impl Switches {
    /// Whether the switches of a list have these tiers; a list within a host has no switches and
    /// every types. O(length).
    ///
    /// # Errors
    /// The first switch of another tier; else how many switches there are, and should be.
    pub fn check_types(&self, list: &List, types: &Types) -> Result<(), ListError> {
        if types.are_free() || list.0.is_empty() {
            return Ok(());
        }
        for (k, (&s, &wanted)) in list.0.iter().zip(&types.0).enumerate() {
            if self.tier(s) != wanted {
                return Err(ListError::WrongTier {
                    place: k + 1,
                    switch: self.name(s).into(),
                    tier: self.tier(s),
                    wanted,
                });
            }
        }
        let (given, wanted) = (list.0.len(), types.0.len());
        if given == wanted {
            Ok(())
        } else {
            Err(ListError::WrongLength { given, types: types.clone() })
        }
    }

    /// Whether a list of these types leads from any host to another. O(switches with hosts x (types
    /// x (switches + links) + those)).
    pub fn any_has(&self, types: &Types) -> bool {
        if types.are_free() {
            return true;
        }
        let mut stands = self.stands.clone();
        stands.sort_unstable();
        let several =
            |s: u32| stands.partition_point(|&t| t <= s) - stands.partition_point(|&t| t < s) > 1;
        let mut each = stands.clone();
        each.dedup();
        let load = SwitchRates::new(self);
        each.iter().any(|&to| {
            let search = TypedSearch::new(self, &load, to, 0, types);
            each.iter()
                .any(|&from| (from != to || several(to)) && search.way(self, &load, from).is_some())
        })
    }

    /// The types of the cheapest lists from the first host to others, in words.
    fn usual_types(&self) -> String {
        let load = SwitchRates::new(self);
        let lists = (1..self.hosts())
            .filter_map(|h| super::search::cheapest(self, &load, (HostId(0), HostId::from(h)), 0));
        let all: BTreeSet<(usize, Types)> = lists
            .map(|l| (l.0.0.len(), Types(l.0.0.iter().map(|&s| self.tier(s)).collect())))
            .collect();
        all.iter().map(|t| format!("[{}]", t.1)).collect::<Vec<_>>().join(" or ")
    }

    /// More than any list costs a byte.
    pub fn beyond_cost(&self) -> u64 {
        1 + self.units.iter().map(|&u| u64::from(u)).sum::<u64>()
    }
}

/// The best walks of given tiers to one switch.
#[derive(Clone, Debug)]
pub struct TypedSearch {
    /// The tiers, those of the hosts' own nodes included where servers relay.
    tiers: Vec<Tier>,
    /// By switch: its own weight for this flow.
    own: Vec<Weight>,
    /// By place in the list and switch: of the best walk on from it that only goes down.
    down: Vec<Vec<Weight>>,
    /// By place in the list and switch: of the best walk on from it; in a network without layers
    /// the only one that counts.
    up: Vec<Vec<Weight>>,
}

impl TypedSearch {
    /// All best walks to the switch `to` for a flow of `rate` b/s besides `load`, over switches of
    /// these tiers. In a layered network they go up, and then down. A switch that carries nothing
    /// at all is on none. O(types x (switches + links)).
    pub fn new(net: &Switches, load: &SwitchRates, to: u32, rate: u64, types: &Types) -> Self {
        let own_node = (net.tier(to) == Tier::Server).then_some(Tier::Server);
        let tiers: Vec<Tier> =
            own_node.into_iter().chain(types.0.iter().copied()).chain(own_node).collect();
        let none = vec![vec![Weight::NONE; net.len()]; tiers.len()];
        let mut search =
            Self { own: own_weights(net, load, rate), down: none.clone(), up: none, tiers };
        let Some(last) = search.tiers.len().checked_sub(1) else { return search };
        if search.may_be(net, last, to) {
            search.down[last][to as usize] = Weight::default();
            search.up[last][to as usize] = Weight::default();
        }
        for place in (0..last).rev() {
            for s in 0..net.len() as u32 {
                if search.may_be(net, place, s) {
                    (search.down[place][s as usize], search.up[place][s as usize]) =
                        search.from(net, place, s);
                }
            }
        }
        search
    }

    /// Of the best walks on from a switch at this place: of those that only go down, and of all.
    fn from(&self, net: &Switches, place: usize, s: u32) -> (Weight, Weight) {
        let by =
            |t: u32, rest: &[Vec<Weight>]| self.own[t as usize].plus(rest[place + 1][t as usize]);
        let falls = |t: u32| net.layered && net.height[t as usize] < net.height[s as usize];
        let step = |(down, up): (Weight, Weight), &t: &u32| {
            let on = if falls(t) { by(t, &self.down) } else { by(t, &self.up) };
            (if falls(t) { down.min(on) } else { down }, up.min(on))
        };
        net.neighbours[s as usize].iter().fold((Weight::NONE, Weight::NONE), step)
    }

    /// Whether a switch may be at a place of the list.
    fn may_be(&self, net: &Switches, place: usize, s: u32) -> bool {
        net.tier(s) == self.tiers[place] && net.capacity(s) != Some(0)
    }

    /// The best list's switches from a switch, both ends included, none twice, and its weight. Of
    /// equal ones it takes at every switch the next one with the most room left, then the one of
    /// the lowest number. `None`: there is no such list. O(types x degree) where no walk of the
    /// best weight crosses a switch twice; else it looks at others, 100,000 switches at most.
    pub fn way(&self, net: &Switches, load: &SwitchRates, from: u32) -> Option<(Vec<u32>, Weight)> {
        if self.tiers.is_empty()
            || !self.may_be(net, 0, from)
            || self.up[0][from as usize] == Weight::NONE
        {
            return None;
        }
        let (mut best, mut steps) = (None, MAX_STEPS);
        self.go_on(
            net,
            load,
            (&mut vec![from], true, self.own[from as usize]),
            &mut best,
            &mut steps,
        );
        best
    }

    /// Looks at all ways on from the last switch of `way` that can be better than `best`.
    fn go_on(
        &self,
        net: &Switches,
        load: &SwitchRates,
        (way, may_rise, so_far): (&mut Vec<u32>, bool, Weight),
        best: &mut Option<(Vec<u32>, Weight)>,
        steps: &mut u32,
    ) {
        if way.len() == self.tiers.len() {
            *best = Some((way.clone(), so_far));
            return;
        }
        let at = way[way.len() - 1];
        let rises = |t: u32| net.height[t as usize] > net.height[at as usize];
        let on = |t: u32| {
            let rest = if net.layered && !rises(t) { &self.down } else { &self.up };
            self.own[t as usize].plus(rest[way.len()][t as usize])
        };
        let open = net.neighbours[at as usize].iter().copied();
        let open =
            open.filter(|&t| !way.contains(&t) && (may_rise || !rises(t)) && on(t) != Weight::NONE);
        let mut next: Vec<(Weight, u64, u32)> =
            open.map(|t| (so_far.plus(on(t)), u64::MAX - load.residual(net, t), t)).collect();
        next.sort_unstable();
        for (bound, _, t) in next {
            if best.as_ref().is_some_and(|b| bound >= b.1) || *steps == 0 {
                return;
            }
            *steps -= 1;
            let may_rise = may_rise && (!net.layered || rises(t));
            way.push(t);
            self.go_on(net, load, (way, may_rise, so_far.plus(self.own[t as usize])), best, steps);
            way.pop();
        }
    }
}

/// The best list of these types from one host to another for a flow of `rate` b/s besides `load`,
/// and its weight: simple, and of switches that carry anything at all. Empty within a host. `None`:
/// there is no such list. The cost of [`TypedSearch::new`] and [`TypedSearch::way`].
///
/// ```
/// use heliostat_base::ids::HostId;
/// use heliostat_base::paths::{SwitchRates, Switches, Units, types::cheapest};
/// use heliostat_base::topology::{Core, Topology, graph::{Graph, Tier}, types::Types};
/// use heliostat_base::units::BitRate;
///
/// // Racks 0 and 1 are in one pod, whose two aggregation switches have spines of their own.
/// let mut t = Topology::uniform("t", 8, 1, BitRate(1), BitRate(1), vec![]);
/// t.eps.core = Core::Graph(Box::new(Graph::fat_tree(4, BitRate(1), None)));
/// let net = Switches::new(&t, Units::default());
/// use Tier::{Access, Aggregation, Core as Top};
/// let far = Types(vec![Access, Aggregation, Top, Aggregation, Access]);
/// let found = |to| cheapest(&net, &SwitchRates::new(&net), (HostId(0), HostId(to)), 0, &far);
/// assert_eq!(found(7).unwrap().0.0.len(), 5);
/// assert_eq!(found(1), None, "from a core one aggregation switch leads down to a pod: the list would cross it twice");
/// ```
pub fn cheapest(
    net: &Switches,
    load: &SwitchRates,
    (from, to): (HostId, HostId),
    rate: u64,
    types: &Types,
) -> Option<(List, Weight)> {
    if from == to {
        return Some((List::default(), Weight::default()));
    }
    let (from, to) = (net.stands(from), net.stands(to));
    found(net, load, &TypedSearch::new(net, load, to, rate, types), from)
}

/// Whether any two hosts of a topology have a list of these types, which must be of a number that
/// makes sense; all have without types.
///
/// # Errors
/// What is wrong, and what types the cheapest lists have. O(hosts^2) in the racks.
pub fn possible(topology: &Topology, types: &Types) -> Result<(), (String, String)> {
    let name = &topology.name;
    types.check()?;
    if types.are_free() {
        return Ok(());
    }
    if topology.eps.graph().is_none() {
        let allowed = "no `types`, or a topology with a graph of switches".into();
        return Err((
            format!("types of lists, and the packet network of topology {name} is one switch"),
            allowed,
        ));
    }
    let net = Switches::new(topology, Units::default());
    if net.any_has(types) {
        return Ok(());
    }
    Err((
        format!("no two hosts of topology {name} have a list of the types [{types}]"),
        format!("such as {}", net.usual_types()),
    ))
}

/// A search's answer for flows that begin at a switch.
pub(super) fn found(
    net: &Switches,
    load: &SwitchRates,
    search: &TypedSearch,
    from: u32,
) -> Option<(List, Weight)> {
    let (way, weight) = search.way(net, load, from)?;
    Some((strip(net, way), weight))
}

#[cfg(test)]
mod tests;
