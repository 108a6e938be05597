//! Flows whose lists must have given tiers.

use std::collections::{BTreeMap, BTreeSet};

use super::{HostPair, Paths, Web};
use crate::Rejected;
use crate::ids::CoflowId;
use crate::paths::choose::PathPolicy;
use crate::paths::optimise::RoutedFlow;
use crate::paths::searches::Searches;
use crate::paths::types::possible;
use crate::paths::{List, SwitchRates};
use crate::topology::types::Types;

impl Paths {
    /// Whether lists of these types exist in this network.
    ///
    /// # Errors
    /// Why no two hosts have one, and what there is.
    pub(super) fn expect_possible(&self, types: &Types) -> Result<(), Rejected> {
        if types.are_free() || self.of_types().flatten().any(|f| f.types == *types) {
            return Ok(());
        }
        let told = |(what, allowed): (String, String)| {
            Rejected::Invalid(format!("{what}; allowed: {allowed}"))
        };
        possible(&self.topology, types).map_err(told)
    }

    /// The types of a pair of hosts: those of the open coflow with the lowest number that has any.
    fn types_of(&self, pair: HostPair) -> Types {
        let own = |flows: &Vec<RoutedFlow>| {
            flows
                .binary_search_by_key(&pair, |f| (f.from, f.to))
                .ok()
                .map(|k| flows[k].types.clone())
        };
        self.of_types().find_map(own).unwrap_or_default()
    }

    /// Gives these pairs of hosts the types that they have now; one whose types are others than
    /// before gets its list again. O(pairs x coflows with types x log flows).
    pub(super) fn retype(&mut self, pairs: impl IntoIterator<Item = HostPair>) {
        for pair in pairs {
            let types = self.types_of(pair);
            if let Some(all) = self.flows.get_mut(&pair).filter(|all| all.types != types) {
                (all.types, all.list) = (types, List::default());
            }
        }
    }

    /// Finds lists for pairs of hosts whose flows have types and no list yet, under every policy
    /// but `hit`, which finds its own. Flows between two hosts that no list of these types joins
    /// get the list that they would have without types.
    pub(super) fn decide_types(&mut self, web: &Web) {
        if self.policy == PathPolicy::Hit {
            return;
        }
        let (mut searches, load) = (Searches::default(), SwitchRates::new(&web.net));
        for f in self.flows.values_mut().filter(|f| f.list.0.is_empty() && !f.types.are_free()) {
            let found = searches.of_types(&web.net, &load, (f.from, f.to), 0, &f.types);
            f.list = found.map(|f| f.0).unwrap_or_default();
        }
    }

    /// Pairs of hosts of an open coflow with types whose lists have others.
    pub fn unmet_of(&self, id: CoflowId) -> usize {
        let (Some(web), Some(own)) = (&self.web, self.coflows.get(&id)) else { return 0 };
        own.iter().filter(|f| self.is_unmet(web, f)).count()
    }

    /// The same of all open coflows, each pair once.
    pub(super) fn unmet(&self, web: &Web) -> BTreeSet<HostPair> {
        let of_coflows = self
            .of_types()
            .flatten()
            .chain(self.flows.values().filter(|_| self.coflows.is_empty()));
        of_coflows.filter(|f| self.is_unmet(web, f)).map(|f| (f.from, f.to)).collect()
    }

    fn is_unmet(&self, web: &Web, f: &RoutedFlow) -> bool {
        !f.types.are_free()
            && web.net.check_types(&self.list_of(web, (f.from, f.to)), &f.types).is_err()
    }

    /// The flows of the open coflows with types.
    fn of_types(&self) -> impl Iterator<Item = &Vec<RoutedFlow>> {
        self.with_types.iter().filter_map(|id| self.coflows.get(id))
    }

    /// The types of pairs of hosts that have any.
    pub(super) fn typed(&self) -> BTreeMap<HostPair, &Types> {
        self.flows
            .iter()
            .filter(|f| !f.1.types.are_free())
            .map(|(&pair, f)| (pair, &f.types))
            .collect()
    }
}
