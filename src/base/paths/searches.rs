//! Searches that are kept for several flows.

use std::collections::BTreeMap;

use super::search::{self, PathSearch, Weight};
use super::types::{self, TypedSearch};
use super::{List, SwitchRates, Switches};
use crate::ids::HostId;
use crate::topology::types::Types;

/// Searches that hold as long as the load on switches does not count: in a network without limits,
/// whatever flows take. By the switch where they end, and their types if they have any.
#[derive(Clone, Debug, Default)]
pub struct Searches {
    free: BTreeMap<u32, PathSearch>,
    typed: BTreeMap<(u32, Types), TypedSearch>,
}

impl Searches {
    /// What [`search::cheapest`] gives, for flows of one network. O(length x degree) where nothing
    /// limits, but for the first flow to a switch.
    pub fn cheapest(
        &mut self,
        net: &Switches,
        load: &SwitchRates,
        (from, to): (HostId, HostId),
        rate: u64,
    ) -> Option<(List, Weight)> {
        if from == to || !net.is_limitless() {
            return search::cheapest(net, load, (from, to), rate);
        }
        let to = net.stands(to);
        search::found(
            net,
            load,
            self.free.entry(to).or_insert_with(|| PathSearch::new(net, load, to, rate)),
            net.stands(from),
        )
    }

    /// What [`types::cheapest`] gives, for flows of one network; what [`Self::cheapest`] gives for
    /// a flow without types.
    pub fn of_types(
        &mut self,
        net: &Switches,
        load: &SwitchRates,
        ends: (HostId, HostId),
        rate: u64,
        types: &Types,
    ) -> Option<(List, Weight)> {
        if types.are_free() {
            return self.cheapest(net, load, ends, rate);
        }
        if ends.0 == ends.1 || !net.is_limitless() {
            return types::cheapest(net, load, ends, rate, types);
        }
        let (from, to) = (net.stands(ends.0), net.stands(ends.1));
        let kept = self
            .typed
            .entry((to, types.clone()))
            .or_insert_with(|| TypedSearch::new(net, load, to, rate, types));
        types::found(net, load, kept, from)
    }
}
