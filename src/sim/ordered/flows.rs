//! The flows of a coflow as groups: flows of one priority between the same two hosts are served as
//! one, and end together.
//!
//! The work left of a group is divided among its flows in proportion to what they had when the
//! group was formed. When flows change their priorities, their groups are dissolved, and each flow
//! joins the group of its new priority with exactly the work it has left.

use super::roster::{GroupFacts, Roster};
use crate::FlowFinished;
use crate::bundle::WORK_PER_BYTE;
use crate::coflows::rates::{Demand, HostGroup};
use crate::coflows::{CoflowSpec, FlowSpec};
use crate::engine::EngineWorld;
use crate::ids::{CoflowId, FlowId, HostId};

/// What was booked of a group, as work.
#[derive(Clone, Copy, Debug, Default)]
pub struct Booked {
    /// Work done.
    pub sent: u128,
    /// Part of it that went over circuits.
    pub over_ocs: u128,
}

/// The flows of a coflow that have one priority, as groups.
pub struct MergedFlows {
    /// Their work, and the links that they cross.
    pub demand: Demand,
    /// The other facts about each group.
    pub roster: Roster,
    /// The flows of groups with several flows, by group, then by number.
    pub members: Vec<GroupMember>,
    /// By group; empty if nothing was sent.
    pub booked: Vec<Booked>,
}

/// One of several flows in a group.
#[derive(Clone, Copy, Debug)]
pub struct GroupMember {
    /// The group.
    pub group: u32,
    /// Its number in its coflow.
    pub flow: FlowId,
    /// Bytes asked.
    pub bytes: u64,
    /// Its weight in the group: the bytes that it had left when the group was formed, rounded up.
    pub weight: u64,
}

/// The members of a group, in order; none if it has one flow only. `members` are sorted by group.
/// O(log members + those).
pub fn of_group(members: &[GroupMember], group: u32) -> &[GroupMember] {
    if members.is_empty() {
        return members;
    }
    let from = members.partition_point(|m| m.group < group);
    let n = members[from..].iter().take_while(|m| m.group == group).count();
    &members[from..from + n]
}

/// Divides `units` among the members of a group in proportion to their weights. The parts add up
/// exactly. No part exceeds the bytes of its member's weight, if `units` does not exceed those of
/// all.
pub fn shares(members: &[GroupMember], units: u128) -> impl Iterator<Item = u128> {
    let total: u128 = members.iter().map(|m| u128::from(m.weight)).sum::<u128>().max(1);
    let up_to = members.iter().scan(0, move |sum, m| {
        *sum += u128::from(m.weight);
        // Exactly units x sum / total, rounded down: sums of bytes fit in 64 bits.
        Some(units / total * *sum + units % total * *sum / total)
    });
    up_to.scan(0, |before, all| Some(all - std::mem::replace(before, all)))
}

/// One active flow by itself.
#[derive(Clone, Copy, Debug)]
pub struct OrderedFlow {
    /// Its priority in the network, 0 first.
    pub priority: u8,
    /// Sender and receiver.
    pub hosts: (HostId, HostId),
    /// Its number in its coflow.
    pub flow: FlowId,
    /// Whether its packets are marked.
    pub marked: bool,
    /// Bytes asked.
    pub bytes: u64,
    /// Work left.
    pub left: u128,
    /// Work done over circuits.
    pub over_ocs: u128,
}

impl OrderedFlow {
    fn size(&self) -> u128 {
        u128::from(self.bytes) * WORK_PER_BYTE
    }
}

/// Groups of a new coflow's flows, by the priorities that `priority(flow, whether it stays in its
/// rack)` gives. Flows that need no time are finished here. O(flows log flows), or O(flows) if all
/// have one priority and are in the order of their hosts.
pub fn fresh(
    coflow: &CoflowSpec,
    marked: &[bool],
    world: &mut EngineWorld,
    priority: impl Fn(usize, bool) -> u8,
) -> Vec<(u8, MergedFlows)> {
    let is_local = |f: &FlowSpec, world: &EngineWorld| world.rack(f.from) == world.rack(f.to);
    let (mut free, mut first, mut before, mut is_plain) = (Vec::new(), None, None, true);
    for (k, f) in coflow.flows.iter().enumerate() {
        if world.is_free(coflow.id, k, &f) {
            free.push(k as u32);
            continue;
        }
        let own = priority(k, is_local(&f, world));
        is_plain &= *first.get_or_insert(own) == own
            && before.replace((f.from, f.to)).is_none_or(|b| b < (f.from, f.to));
    }
    let is_marked = |k: usize| marked.get(k).copied().unwrap_or(false);
    match first {
        None => vec![],
        Some(all) if is_plain => vec![(all, plain(coflow, is_marked, &free, world))],
        Some(_) => {
            let flow = |(k, f): (usize, FlowSpec)| {
                let (priority, left) =
                    (priority(k, is_local(&f, world)), u128::from(f.bytes.0) * WORK_PER_BYTE);
                OrderedFlow {
                    priority,
                    hosts: (f.from, f.to),
                    flow: k.into(),
                    marked: is_marked(k),
                    bytes: f.bytes.0,
                    left,
                    over_ocs: 0,
                }
            };
            let flows = coflow.flows.beside(&free).map(flow).collect();
            by_priority(coflow.id, flows, world)
        }
    }
}

/// Groups of one flow each, if flows are in the order of their hosts and have one priority. In a
/// shuffle, the groups at the indices `free` are done. Nothing is allocated but the result.
fn plain(
    coflow: &CoflowSpec,
    marked: impl Fn(usize) -> bool,
    free: &[u32],
    world: &EngineWorld,
) -> MergedFlows {
    let topology = world.links.shared_topology();
    let (mut roster, left_out, mut done) = match coflow.flows.as_shuffle() {
        Some(shuffle) => (Roster::of(topology, shuffle.clone()), &[][..], free.iter().peekable()),
        None => (Roster::new(topology), free, [].iter().peekable()),
    };
    let group = |(g, (k, f)): (u32, (usize, FlowSpec))| {
        let (hosts, racks) = ((f.from, f.to), (world.rack(f.from), world.rack(f.to)));
        let route = world.route(hosts, racks, marked(k));
        roster.push(
            g,
            &GroupFacts {
                hosts,
                racks,
                marked: marked(k),
                route,
                flow: k.into(),
                bytes: f.bytes.0,
            },
        );
        let is_done = done.next_if(|&&place| place as usize == k).is_some();
        HostGroup {
            path: world.links.path(f.from, f.to, route),
            left: if is_done { 0 } else { u128::from(f.bytes.0) * WORK_PER_BYTE },
        }
    };
    let demand = Demand::new((0..).zip(coflow.flows.beside(left_out)).map(group));
    MergedFlows { demand, roster, members: Vec::new(), booked: Vec::new() }
}

/// Groups by priority. Flows without work left are finished here. O(flows log flows).
pub fn by_priority(
    coflow: CoflowId,
    mut flows: Vec<OrderedFlow>,
    world: &mut EngineWorld,
) -> Vec<(u8, MergedFlows)> {
    flows.retain(|f| {
        let over = f.left == 0;
        if over {
            let racks = (world.rack(f.hosts.0), world.rack(f.hosts.1));
            world.ledger.close(coflow, racks, f.size(), f.over_ocs);
            world.done.push(FlowFinished { coflow, flow: f.flow, at: world.now });
        }
        !over
    });
    flows.sort_unstable_by_key(|f| (f.priority, f.hosts, f.flow));
    flows
        .chunk_by(|a, b| a.priority == b.priority)
        .map(|same| (same[0].priority, groups(same, world)))
        .collect()
}

/// Flows of one priority by host pair.
fn groups(flows: &[OrderedFlow], world: &EngineWorld) -> MergedFlows {
    let (mut roster, mut members, mut booked) =
        (Roster::new(world.links.shared_topology()), Vec::new(), Vec::new());
    let began = flows.iter().any(|f| f.left < f.size());
    let group = |(group, same): (u32, &[OrderedFlow])| {
        let OrderedFlow { hosts, flow, marked, .. } = same[0];
        let racks = (world.rack(hosts.0), world.rack(hosts.1));
        let route = world.route(hosts, racks, marked);
        if same.len() > 1 {
            members.extend(same.iter().map(|f| GroupMember {
                group,
                flow: f.flow,
                bytes: f.bytes,
                weight: f.left.div_ceil(WORK_PER_BYTE) as u64,
            }));
        }
        let (left, bytes) = (same.iter().map(|f| f.left).sum(), same.iter().map(|f| f.bytes).sum());
        roster.push(group, &GroupFacts { hosts, racks, marked, route, flow, bytes });
        if began {
            let sent = u128::from(bytes) * WORK_PER_BYTE - left;
            booked.push(Booked { sent, over_ocs: same.iter().map(|f| f.over_ocs).sum() });
        }
        HostGroup { path: world.links.path(hosts.0, hosts.1, route), left }
    };
    let demand = Demand::new((0..).zip(flows.chunk_by(|a, b| a.hosts == b.hosts)).map(group));
    MergedFlows { demand, roster, members, booked }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        /// Against whole numbers of any length, digit by digit; and what is lost nowhere is lost in
        /// no share.
        #[test]
        fn shares_are_in_proportion_and_together_all(weights in prop::collection::vec(1u64..1 << 40, 1..9), tenths in 0u128..=10) {
            let members: Vec<GroupMember> =
                weights.iter().enumerate().map(|(k, &weight)| GroupMember { group: 3, flow: k.into(), bytes: weight, weight }).collect();
            let total: u128 = weights.iter().map(|&w| u128::from(w)).sum();
            let units = total * WORK_PER_BYTE / 10 * tenths;
            let each: Vec<u128> = shares(&members, units).collect();
            prop_assert_eq!(each.iter().sum::<u128>(), units);
            for (w, share) in weights.iter().zip(&each) {
                // The fraction units / total is at most BYTE, so this fits in 128 bits.
                let exact = u128::from(*w) * (units / total) + u128::from(*w) * (units % total) / total;
                prop_assert!(share.abs_diff(exact) <= 1 && *share <= u128::from(*w) * WORK_PER_BYTE, "{} of {}", share, exact);
            }
        }
    }

    #[test]
    fn the_members_of_a_group_are_found() {
        let members: Vec<GroupMember> = [(1, 0), (1, 4), (3, 2), (3, 5)]
            .iter()
            .map(|&(group, f)| GroupMember { group, flow: FlowId(f), bytes: 1, weight: 1 })
            .collect();
        let found = |g| of_group(&members, g).iter().map(|m| m.flow.0).collect::<Vec<_>>();
        assert_eq!(
            [found(0), found(1), found(2), found(3), found(4)],
            [vec![], vec![0, 4], vec![], vec![2, 5], vec![]]
        );
    }
}
