//! The flows of a coflow as groups: those of one priority between the same two hosts are served as one and end together.
//!
//! What such a group has still to send is divided among its flows in proportion to what they had when they became one. When flows get
//! other priorities their groups are dissolved, and each flow joins the group of its new priority with what it has left, to the unit.

use crate::coflows::CoflowSpec;
use crate::coflows::rates::{Demand, Group};
use crate::fabric::sim::FlowFinished;
use crate::fabric::sim::bundle::{BYTE, Route};
use crate::fabric::sim::engine::World;
use crate::ids::{CoflowId, FlowId, HostId, RackId};

/// What is known of a group beside its links: its flows end together.
#[derive(Clone, Debug)]
pub struct About {
    /// Sender and receiver.
    pub hosts: (HostId, HostId),
    /// Their racks.
    pub racks: (RackId, RackId),
    /// Whether its packets are marked.
    pub marked: bool,
    /// Which way it goes now.
    pub route: Route,
    /// The first of its flows. If there are more, all of them are in [`Groups::members`].
    pub flow: FlowId,
    /// Bytes asked, of all its flows.
    pub bytes: u64,
}

impl About {
    /// Units asked.
    pub fn size(&self) -> u128 {
        u128::from(self.bytes) * BYTE
    }
}

/// What the books hold of a group, in units.
#[derive(Clone, Copy, Debug, Default)]
pub struct Booked {
    /// What it has sent.
    pub sent: u128,
    /// Units among these that went over circuits.
    pub over_ocs: u128,
}

/// What a coflow's flows of one priority are, as groups.
pub struct Groups {
    /// What they have to send, and over which links.
    pub demand: Demand,
    /// What is known of each group.
    pub about: Vec<About>,
    /// The flows of groups with several, by group, then by number.
    pub members: Vec<Member>,
    /// By group; empty if nothing was sent.
    pub booked: Vec<Booked>,
}

/// A flow of a group with several.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// The group.
    pub group: u32,
    /// Its place in its coflow's list.
    pub flow: FlowId,
    /// Bytes asked.
    pub bytes: u64,
    /// Its part of what the group has left: the bytes that it had when the group was made, rounded up.
    pub weight: u64,
}

/// The members of a group, by number; none if it has one flow only. `members` are sorted by group. O(log members + those).
pub fn of_group(members: &[Member], group: u32) -> &[Member] {
    if members.is_empty() {
        return members;
    }
    let from = members.partition_point(|m| m.group < group);
    let n = members[from..].iter().take_while(|m| m.group == group).count();
    &members[from..from + n]
}

/// What each member of a group has of `units`, in proportion to their weights. All together have exactly that, and no member has more
/// than the bytes of its weight if the units are no more than those of all.
pub fn shares(members: &[Member], units: u128) -> impl Iterator<Item = u128> {
    let total: u128 = members.iter().map(|m| u128::from(m.weight)).sum::<u128>().max(1);
    let up_to = members.iter().scan(0, move |sum, m| {
        *sum += u128::from(m.weight);
        // Exactly units x sum / total, rounded down: sums of bytes have 64 bits.
        Some(units / total * *sum + units % total * *sum / total)
    });
    up_to.scan(0, |before, all| Some(all - std::mem::replace(before, all)))
}

/// A flow under way by itself.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// Its priority in the network, 0 first.
    pub priority: u8,
    /// Sender and receiver.
    pub hosts: (HostId, HostId),
    /// Its place in its coflow's list.
    pub flow: FlowId,
    /// Whether its packets are marked.
    pub marked: bool,
    /// Bytes asked.
    pub bytes: u64,
    /// Units that it has still to send.
    pub left: u128,
    /// Units that it has sent over circuits.
    pub over_ocs: u128,
}

impl Flow {
    fn size(&self) -> u128 {
        u128::from(self.bytes) * BYTE
    }
}

/// A coflow's flows that begin, with the priorities that `priority(flow, whether it stays in its rack)` says. Those that need no time
/// are finished here.
pub fn fresh(coflow: &CoflowSpec, marked: &[bool], world: &mut World, priority: impl Fn(usize, bool) -> u8) -> Vec<Flow> {
    let mut flows = Vec::with_capacity(coflow.flows.len());
    for (k, f) in coflow.flows.iter().enumerate() {
        if world.is_free(coflow, k) {
            continue;
        }
        let rack = |host| world.links.topology().rack_of(host);
        let (priority, marked) = (priority(k, rack(f.from) == rack(f.to)), marked.get(k).copied().unwrap_or(false));
        let left = u128::from(f.bytes.0) * BYTE;
        flows.push(Flow { priority, hosts: (f.from, f.to), flow: k.into(), marked, bytes: f.bytes.0, left, over_ocs: 0 });
    }
    flows
}

/// Groups by priority. Flows that have nothing left are finished here. O(flows log flows).
pub fn by_priority(coflow: CoflowId, mut flows: Vec<Flow>, world: &mut World) -> Vec<(u8, Groups)> {
    flows.retain(|f| {
        let over = f.left == 0;
        if over {
            let racks = (world.links.topology().rack_of(f.hosts.0), world.links.topology().rack_of(f.hosts.1));
            world.ledger.close(coflow, racks, f.size(), f.over_ocs);
            world.done.push(FlowFinished { coflow, flow: f.flow, at: world.now });
        }
        !over
    });
    flows.sort_unstable_by_key(|f| (f.priority, f.hosts, f.flow));
    flows.chunk_by(|a, b| a.priority == b.priority).map(|same| (same[0].priority, groups(same, world))).collect()
}

/// Flows of one priority by host pair.
fn groups(flows: &[Flow], world: &World) -> Groups {
    let (mut about, mut members, mut booked) = (Vec::new(), Vec::new(), Vec::new());
    let began = flows.iter().any(|f| f.left < f.size());
    about.reserve_exact(flows.chunk_by(|a, b| a.hosts == b.hosts).count());
    let group = |same: &[Flow]| {
        let Flow { hosts, flow, marked, .. } = same[0];
        let racks = (world.links.topology().rack_of(hosts.0), world.links.topology().rack_of(hosts.1));
        let route = world.route(hosts, racks, marked);
        if same.len() > 1 {
            let group = about.len() as u32;
            members.extend(same.iter().map(|f| Member { group, flow: f.flow, bytes: f.bytes, weight: f.left.div_ceil(BYTE) as u64 }));
        }
        let (left, bytes) = (same.iter().map(|f| f.left).sum(), same.iter().map(|f| f.bytes).sum());
        about.push(About { hosts, racks, marked, route, flow, bytes });
        if began {
            let sent = u128::from(bytes) * BYTE - left;
            booked.push(Booked { sent, over_ocs: same.iter().map(|f| f.over_ocs).sum() });
        }
        Group { path: world.links.path(hosts.0, hosts.1, route), left }
    };
    let demand = Demand::new(flows.chunk_by(|a, b| a.hosts == b.hosts).map(group));
    Groups { demand, about, members, booked }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against whole numbers of any length, digit by digit; and what is lost nowhere is lost in no share.
        #[test]
        fn shares_are_in_proportion_and_together_all(weights in prop::collection::vec(1u64..1 << 40, 1..9), tenths in 0u128..=10) {
            let members: Vec<Member> =
                weights.iter().enumerate().map(|(k, &weight)| Member { group: 3, flow: k.into(), bytes: weight, weight }).collect();
            let total: u128 = weights.iter().map(|&w| u128::from(w)).sum();
            let units = total * BYTE / 10 * tenths;
            let each: Vec<u128> = shares(&members, units).collect();
            prop_assert_eq!(each.iter().sum::<u128>(), units);
            for (w, share) in weights.iter().zip(&each) {
                // The fraction units / total is at most BYTE, so that this has less than 128 bits.
                let exact = u128::from(*w) * (units / total) + u128::from(*w) * (units % total) / total;
                prop_assert!(share.abs_diff(exact) <= 1 && *share <= u128::from(*w) * BYTE, "{} of {}", share, exact);
            }
        }
    }

    #[test]
    fn the_members_of_a_group_are_found() {
        let members: Vec<Member> =
            [(1, 0), (1, 4), (3, 2), (3, 5)].iter().map(|&(group, f)| Member { group, flow: FlowId(f), bytes: 1, weight: 1 }).collect();
        let found = |g| of_group(&members, g).iter().map(|m| m.flow.0).collect::<Vec<_>>();
        assert_eq!([found(0), found(1), found(2), found(3), found(4)], [vec![], vec![0, 4], vec![], vec![2, 5], vec![]]);
    }
}
