//! Which hosts the flows of a wave vote for: the grades that Hit-scheduler's Algorithm 1 counts.

use std::collections::BTreeSet;

use crate::ids::HostId;

/// A flow between two tasks, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The task that sends.
    pub from: u32,
    /// The task that receives.
    pub to: u32,
    /// Number of bytes.
    pub bytes: u64,
}

/// By mover, then host: how many of its flows have their cheapest way there. Flows vote in the order of their bytes, the largest first;
/// `cost` says what a byte of a flow, by its number, costs from one host to another; `places` are slots of hosts that movers may have.
/// Of equally cheap hosts a flow takes one that its task has votes for already, then the one with the most room, then the lowest. A
/// host that as many tasks have votes for as it has places gets no votes of others. A task that does not move stays where `hosts` says.
/// O(pairs x hosts); where both tasks of a pair move, O(pairs x hosts^2).
///
/// Source: Algorithm 1, lines 5, 11 and 12 in section 5.1. In a symmetric network all hosts tie there, and every flow would vote for the
/// first; so hosts fill up here (equation (8)).
pub fn votes(
    flows: &[Flow],
    cost: impl Fn(usize, HostId, HostId) -> u64,
    hosts: &[HostId],
    movers: &[u32],
    places: &[u32],
) -> Vec<Vec<u32>> {
    let mut rows: Vec<Option<usize>> = vec![None; hosts.len()];
    movers.iter().enumerate().for_each(|(k, &t)| rows[t as usize] = Some(k));
    let mut poll = Poll { count: vec![vec![0; places.len()]; movers.len()], tasks: vec![BTreeSet::new(); places.len()], places };
    let mut order: Vec<usize> = (0..flows.len()).filter(|&k| flows[k].bytes > 0).collect();
    order.sort_by_key(|&k| (std::cmp::Reverse(flows[k].bytes), flows[k].from, flows[k].to));
    for flow in order {
        let p = flows[flow];
        let ends = [p.from, p.to];
        let rows = ends.map(|t| rows[t as usize]);
        if rows == [None, None] {
            continue;
        }
        let [from, to] = [0, 1].map(|k| match rows[k] {
            None => vec![hosts[ends[k] as usize].index()],
            Some(row) => (0..places.len()).filter(|&h| poll.has_room(row, h)).collect(),
        });
        let both = rows[0].is_some() && rows[1].is_some();
        let fit = |a: usize, b: usize| a != b || !both || poll.has_room_for_both([rows[0], rows[1]], a);
        let pairs = from.iter().flat_map(|&a| to.iter().map(move |&b| (a, b))).filter(|&(a, b)| fit(a, b));
        let cost = |a: usize, b: usize| cost(flow, HostId::from(a), HostId::from(b));
        let best = pairs.min_by_key(|&(a, b)| (cost(a, b), poll.likes(rows[0], a), poll.likes(rows[1], b), a, b));
        if let Some((a, b)) = best {
            [(rows[0], a), (rows[1], b)].into_iter().for_each(|(row, h)| poll.vote(row, h));
        }
    }
    poll.count
}

/// Votes so far.
struct Poll<'a> {
    count: Vec<Vec<u32>>,
    /// By host: movers that have votes for it.
    tasks: Vec<BTreeSet<usize>>,
    places: &'a [u32],
}

impl Poll<'_> {
    fn room(&self, host: usize) -> usize {
        (self.places[host] as usize).saturating_sub(self.tasks[host].len())
    }

    fn has_room(&self, row: usize, host: usize) -> bool {
        self.tasks[host].contains(&row) || self.room(host) > 0
    }

    /// Whether both movers of a pair may be on one host.
    fn has_room_for_both(&self, rows: [Option<usize>; 2], host: usize) -> bool {
        let new = rows.iter().flatten().filter(|r| !self.tasks[host].contains(r)).count();
        new <= self.room(host)
    }

    /// The order of equally cheap hosts: those that have the task's votes, then those with the most room.
    fn likes(&self, row: Option<usize>, host: usize) -> (bool, std::cmp::Reverse<usize>) {
        let own = row.is_none_or(|r| self.tasks[host].contains(&r));
        (!own, std::cmp::Reverse(self.room(host)))
    }

    fn vote(&mut self, row: Option<usize>, host: usize) {
        if let Some(r) = row {
            self.count[r][host] += 1;
            self.tasks[host].insert(r);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two access switches of two hosts each below one root; maps 0 and 1 are on host 0.
    fn vote(pairs: &[(u32, u32, u64)], places: &[u32], movers: &[u32]) -> Vec<Vec<u32>> {
        let flows: Vec<Flow> = pairs.iter().map(|&(from, to, bytes)| Flow { from, to, bytes }).collect();
        let cost = |_, a: HostId, b: HostId| match () {
            () if a == b => 0,
            () if a.0 / 2 == b.0 / 2 => 1,
            () => 3,
        };
        votes(&flows, cost, &[0, 0, 3, 1].map(HostId), movers, places)
    }

    #[test]
    fn flows_vote_for_the_nearest_host_with_room_the_largest_first() {
        // The case study: one free slot on hosts 1 and 3. The larger shuffle takes the near one.
        assert_eq!(vote(&[(0, 2, 34), (1, 3, 10)], &[0, 1, 0, 1], &[2, 3]), [[0, 1, 0, 0], [0, 0, 0, 1]]);
        // Two flows of one task agree, and a second place beside it goes to the other task.
        assert_eq!(vote(&[(0, 2, 5), (1, 2, 5), (1, 3, 1)], &[0, 2, 2, 2], &[2, 3]), [[0, 2, 0, 0], [0, 1, 0, 0]]);
    }

    #[test]
    fn where_both_ends_move_they_meet_on_one_host() {
        let all = vote(&[(0, 2, 34), (1, 3, 10)], &[2, 2, 2, 2], &[0, 1, 2, 3]);
        assert_eq!(all, [[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]]);
        assert_eq!(vote(&[(0, 2, 0)], &[2; 4], &[0, 2]), [[0; 4]; 2], "a flow of no bytes has no vote");
    }
}
