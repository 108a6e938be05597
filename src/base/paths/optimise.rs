//! Hit-scheduler's Algorithm 1 with both ends fixed: one flow after another gets the cheapest list
//! that the others leave room for.

use super::searches::Searches;
use super::{List, SwitchRates, Switches};
use crate::ids::HostId;
use crate::topology::types::Types;

/// A flow between two hosts, and the list that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutedFlow {
    /// Where it begins.
    pub from: HostId,
    /// Where it ends.
    pub to: HostId,
    /// What it sends in all: its weight in costs.
    pub bytes: u64,
    /// What it takes of every switch, in bits a second.
    pub rate: u64,
    /// The list that it has, counted in the load; empty: none yet.
    pub list: List,
    /// The tiers that its list must have; empty: any.
    pub types: Types,
}

/// What an optimisation did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct OptimiseOutcome {
    /// Flows that have another list than before.
    pub changed: usize,
    /// Flows that fit nowhere: they have the list that goes least beyond a capacity.
    pub saturated: usize,
    /// Flows between whose hosts there is no way: they have the list that they had.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub cut: usize,
    /// Flows with types between whose hosts no list has them: they have the list that they would
    /// have without types.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "crate::units::is_zero"))]
    pub unmet: usize,
    /// Bytes times unit costs, summed over all flows, before.
    pub before: u128,
    /// The same afterwards.
    pub after: u128,
}

/// What a set of flows costs: bytes times the unit costs of their lists, summed. O(flows x length).
pub fn cost<'a>(net: &Switches, flows: impl IntoIterator<Item = &'a RoutedFlow>) -> u128 {
    flows.into_iter().map(|f| u128::from(f.bytes) * u128::from(net.cost(&f.list))).sum()
}

/// Gives every flow its cheapest list, the largest first (then by their ends): its own part is
/// taken off the load, the best list is looked for, and its part is added again. A list that is as
/// good as the best stays, so that no flow moves for nothing. A flow that fits nowhere has the list
/// that goes least beyond the capacities; its own, if none is better. Types are binding: a flow
/// that has some gets a list of others only where none has them.
///
/// `load` must hold the flows' lists, besides what else there is. O(flows x (switches + links)) in
/// a layered network; where nothing limits what switches carry, one search serves all flows that
/// end at the same switch.
///
/// Source: Algorithm 1 in section 5.1, lines 2 to 10; a flow that no list can take is not treated
/// there, nor one between whose hosts there is no way.
pub fn optimise(
    net: &Switches,
    load: &mut SwitchRates,
    flows: &mut [RoutedFlow],
) -> OptimiseOutcome {
    let mut outcome = OptimiseOutcome { before: cost(net, &*flows), ..OptimiseOutcome::default() };
    let mut order: Vec<usize> = (0..flows.len()).collect();
    order.sort_by_key(|&k| (std::cmp::Reverse(flows[k].bytes), flows[k].from, flows[k].to, k));
    let mut searches = Searches::default();
    for k in order {
        let f = &mut flows[k];
        load.give_back(&f.list, f.rate);
        let ends = (f.from, f.to);
        let of_types = searches.of_types(net, load, ends, f.rate, &f.types);
        let unmet = of_types.is_none() && !f.types.are_free();
        let Some((list, weight)) = of_types
            .or_else(|| if unmet { searches.cheapest(net, load, ends, f.rate) } else { None })
        else {
            load.take(&f.list, f.rate);
            outcome.cut += 1;
            continue;
        };
        outcome.unmet += usize::from(unmet);
        let has_types = |list: &List| unmet || net.check_types(list, &f.types).is_ok();
        let stays = net.check(&f.list, ends).is_ok() && has_types(&f.list) && {
            let beyond: u128 =
                f.list.0.iter().map(|&s| u128::from(load.beyond(net, s, f.rate))).sum();
            // Equal lists spread the load only when a flow gets its first one.
            (beyond, net.cost(&f.list)) <= (weight.beyond, weight.cost)
        };
        if !stays {
            outcome.changed += usize::from(f.list != list);
            f.list = list;
        }
        outcome.saturated += usize::from(load.check(net, &f.list, f.rate).is_err());
        load.take(&f.list, f.rate);
    }
    outcome.after = cost(net, &*flows);
    outcome
}
