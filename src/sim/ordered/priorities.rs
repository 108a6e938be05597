//! Flows of a coflow that change their strict priorities while they run.

use std::collections::{BTreeMap, BTreeSet};

use super::Ordered;
use super::active::ActiveCoflow;
use super::flows;
use crate::engine::EngineWorld;
use crate::ids::{CoflowId, FlowId};

impl Ordered {
    /// Changes the priorities of flows of a coflow. True if any flow has another priority now. Only
    /// priorities that flows leave or join are grouped again, and none if all flows of one priority
    /// move to one that is not used. O(flows of the coflow log those).
    pub fn move_flows(
        &mut self,
        coflow: CoflowId,
        wanted: &BTreeMap<FlowId, u8>,
        world: &mut EngineWorld,
    ) -> bool {
        let own: Vec<usize> =
            (0..self.coflows.len()).filter(|&k| self.coflows[k].id == coflow).collect();
        let goals: Vec<BTreeSet<u8>> =
            own.iter().map(|&k| goals(&self.coflows[k], wanted)).collect();
        let stays = |k: usize, goals: &BTreeSet<u8>| {
            goals.len() == 1 && goals.contains(&self.coflows[k].priority.0)
        };
        if own.iter().zip(&goals).all(|(&k, g)| stays(k, g)) {
            return false;
        }
        let all: BTreeSet<u8> = goals.iter().flatten().copied().collect();
        if goals.iter().all(|g| g.len() == 1) && all.len() == own.len() {
            own.iter()
                .zip(&goals)
                .for_each(|(&k, g)| self.coflows[k].priority.0 = *g.first().expect("it has one"));
            return true;
        }
        // Priorities that flows leave or join.
        let moving = own.iter().zip(&goals).filter(|&(&k, g)| !stays(k, g));
        let touched: BTreeSet<u8> = moving
            .flat_map(|(&k, g)| g.iter().copied().chain([self.coflows[k].priority.0]))
            .collect();
        let (mut flows, mut about) = (Vec::new(), None);
        for c in
            self.coflows.iter_mut().filter(|c| c.id == coflow && touched.contains(&c.priority.0))
        {
            c.settle(world, &mut self.free);
            c.stop(&mut self.free);
            c.book_all(world);
            c.loosen(&mut flows);
            about = Some(c.own());
        }
        self.coflows.retain(|c| c.id != coflow || !touched.contains(&c.priority.0));
        flows
            .iter_mut()
            .for_each(|f| f.priority = wanted.get(&f.flow).copied().unwrap_or(f.priority));
        if let Some(own) = about {
            let flows = flows::by_priority(own.id, flows, world);
            self.enter(own, flows, world);
        }
        true
    }
}

/// The new priorities of a coflow's flows.
fn goals(c: &ActiveCoflow, wanted: &BTreeMap<FlowId, u8>) -> BTreeSet<u8> {
    let mut goals = BTreeSet::new();
    c.flow_ids(&mut |f| {
        goals.insert(wanted.get(&f).copied().unwrap_or(c.priority.0));
    });
    goals
}
