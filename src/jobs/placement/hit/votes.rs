//! Which hosts the flows of a wave vote for: the grades that Hit-scheduler's Algorithm 1 counts.

use std::collections::BTreeSet;

use crate::ids::HostId;

/// A flow between two tasks, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskFlow {
    /// The task that sends.
    pub from: u32,
    /// The task that receives.
    pub to: u32,
    /// Number of bytes.
    pub bytes: u64,
}

/// By mover, then host: how many of its flows have their cheapest way there. Flows vote in the
/// order of their bytes, the largest first. `cost` says what a byte of a flow, by its number, costs
/// from one host to another. `places` are slots of hosts that movers may have. Of equally cheap
/// hosts a flow takes one that its task has votes for already, then the one with the most room,
/// then the lowest. A host that as many tasks have votes for as it has places gets no votes of
/// others. A task that does not move stays where `hosts` says. O(pairs x hosts); where both tasks
/// of a pair move, O(pairs x hosts^2).
///
/// Source: Algorithm 1, lines 5, 11 and 12 in section 5.1. In a symmetric network all hosts tie
/// there, and every flow would vote for the first; so hosts fill up here (equation (8)).
pub fn votes(
    flows: &[TaskFlow],
    cost: impl Fn(usize, HostId, HostId) -> u64,
    hosts: &[HostId],
    movers: &[u32],
    places: &[u32],
) -> Vec<Vec<u32>> {
    let mut rows: Vec<Option<usize>> = vec![None; hosts.len()];
    movers.iter().enumerate().for_each(|(k, &t)| rows[t as usize] = Some(k));
    let mut poll = Poll {
        count: vec![vec![0; places.len()]; movers.len()],
        tasks: vec![BTreeSet::new(); places.len()],
        places,
    };
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
        let fit =
            |a: usize, b: usize| a != b || !both || poll.has_room_for_both([rows[0], rows[1]], a);
        let pairs =
            from.iter().flat_map(|&a| to.iter().map(move |&b| (a, b))).filter(|&(a, b)| fit(a, b));
        let cost = |a: usize, b: usize| cost(flow, HostId::from(a), HostId::from(b));
        let best = pairs.min_by_key(|&(a, b)| {
            (cost(a, b), poll.likes(rows[0], a), poll.likes(rows[1], b), a, b)
        });
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

    /// The order of equally cheap hosts: those that have the task's votes, then those with the most
    /// room.
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
    use crate::paths::{List, SwitchRates, Switches, Units, search};
    use crate::topology::graph::Graph;
    use crate::topology::{Core, Topology};
    use crate::units::BitRate;
    use proptest::prelude::*;

    /// Two access switches of two hosts each below one root; maps 0 and 1 are on host 0.
    fn vote(pairs: &[(u32, u32, u64)], places: &[u32], movers: &[u32]) -> Vec<Vec<u32>> {
        let flows: Vec<TaskFlow> =
            pairs.iter().map(|&(from, to, bytes)| TaskFlow { from, to, bytes }).collect();
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
        assert_eq!(
            vote(&[(0, 2, 34), (1, 3, 10)], &[0, 1, 0, 1], &[2, 3]),
            [[0, 1, 0, 0], [0, 0, 0, 1]]
        );
        // Two flows of one task agree, and a second place beside it goes to the other task.
        assert_eq!(
            vote(&[(0, 2, 5), (1, 2, 5), (1, 3, 1)], &[0, 2, 2, 2], &[2, 3]),
            [[0, 2, 0, 0], [0, 1, 0, 0]]
        );
    }

    /// Every list between two hosts that a flow may take, found by walking every simple way.
    fn lists(net: &Switches, ends: (HostId, HostId)) -> Vec<List> {
        let (mut open, mut all) = (vec![vec![net.stands(ends.0)]], vec![]);
        if ends.0 == ends.1 {
            return vec![List::default()];
        }
        let links: Vec<(u32, u32)> = net.links().flat_map(|(a, b)| [(a, b), (b, a)]).collect();
        while let Some(way) = open.pop() {
            let list = List(way.clone());
            all.extend((net.check(&list, ends) == Ok(())).then_some(list));
            let at = *way.last().unwrap();
            let next = links.iter().filter(|l| l.0 == at && !way.contains(&l.1));
            open.extend(next.map(|l| [way.as_slice(), &[l.1]].concat()));
        }
        all
    }

    /// The votes by definition: every flow looks at every (host, list, host), and who votes for
    /// which host is counted again each time.
    fn slowly(
        net: &Switches,
        flows: &[TaskFlow],
        hosts: &[HostId],
        movers: &[u32],
        places: &[u32],
    ) -> Vec<Vec<u32>> {
        let mut count = vec![vec![0u32; places.len()]; movers.len()];
        let mut order: Vec<&TaskFlow> = flows.iter().filter(|f| f.bytes > 0).collect();
        order.sort_by_key(|f| (std::cmp::Reverse(f.bytes), f.from, f.to));
        for f in order {
            let row = |t: u32| movers.iter().position(|&m| m == t);
            let (from, to) = (row(f.from), row(f.to));
            if from.is_none() && to.is_none() {
                continue;
            }
            let voters = |h: usize, with: &[Option<usize>]| {
                (0..movers.len()).filter(|&r| count[r][h] > 0 || with.contains(&Some(r))).count()
            };
            let mine = |r: Option<usize>, h: usize| r.is_none_or(|r| count[r][h] > 0);
            let room = |h: usize| (places[h] as usize).saturating_sub(voters(h, &[]));
            let stays =
                |t: u32, r: Option<usize>, h: usize| r.is_some() || hosts[t as usize].index() == h;
            let may =
                |r: Option<usize>, h: usize| mine(r, h) || voters(h, &[r]) <= places[h] as usize;
            let mut best = None;
            for (a, b) in (0..places.len()).flat_map(|a| (0..places.len()).map(move |b| (a, b))) {
                let both = a != b || from.is_none() || to.is_none() || {
                    let new = [from, to].into_iter().filter(|&r| !mine(r, a)).count();
                    new == 0 || voters(a, &[from, to]) <= places[a] as usize
                };
                if !both
                    || !stays(f.from, from, a)
                    || !stays(f.to, to, b)
                    || !may(from, a)
                    || !may(to, b)
                {
                    continue;
                }
                for list in lists(net, (HostId::from(a), HostId::from(b))) {
                    let tie = |r, h: usize| (!mine(r, h), std::cmp::Reverse(room(h)));
                    let key = (net.cost(&list), tie(from, a), tie(to, b), a, b);
                    if best.as_ref().is_none_or(|k| key < *k) {
                        best = Some(key);
                    }
                }
            }
            if let Some((.., a, b)) = best {
                [(from, a), (to, b)]
                    .into_iter()
                    .for_each(|(r, h)| r.into_iter().for_each(|r| count[r][h] += 1));
            }
        }
        count
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(200))]

        /// Lines 5, 11 and 12 of Algorithm 1 over a tree with two copies of each switch above four
        /// access switches.
        #[test]
        fn votes_are_those_of_every_host_list_and_host(
            flows in prop::collection::vec((0u32..3, 3u32..6, 0u64..6), 0..9),
            places in prop::collection::vec(0u32..3, 4),
            hosts in prop::collection::vec(0u32..4, 6),
            moves in prop::collection::vec(any::<bool>(), 6),
            units in (0u32..4, 0u32..4, 0u32..4),
        ) {
            let mut t = Topology::uniform("t", 4, 1, BitRate(100), BitRate(100), vec![]);
            t.eps.core = Core::Graph(Box::new(Graph::hierarchy(3, 2, 2, BitRate(100), None)));
            let net = Switches::new(&t, Units { access: units.0, aggregation: units.1, core: units.2 });
            let flows: Vec<TaskFlow> = flows.into_iter().map(|(from, to, bytes)| TaskFlow { from, to, bytes }).collect();
            let hosts: Vec<HostId> = hosts.into_iter().map(HostId).collect();
            let movers: Vec<u32> = (0..6).filter(|&k| moves[k as usize]).collect();
            let cheapest = |_, a, b| lists(&net, (a, b)).iter().map(|l| net.cost(l)).min().unwrap();
            prop_assert_eq!(votes(&flows, cheapest, &hosts, &movers, &places), slowly(&net, &flows, &hosts, &movers, &places));
            let load = SwitchRates::new(&net);
            let far = |_, a: HostId, b: HostId| if a == b { 0 } else { search::cheapest(&net, &load, (a, b), 0).unwrap().1.cost };
            prop_assert_eq!(votes(&flows, far, &hosts, &movers, &places), slowly(&net, &flows, &hosts, &movers, &places));
        }
    }

    #[test]
    fn where_both_ends_move_they_meet_on_one_host() {
        let all = vote(&[(0, 2, 34), (1, 3, 10)], &[2, 2, 2, 2], &[0, 1, 2, 3]);
        assert_eq!(all, [[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]]);
        assert_eq!(
            vote(&[(0, 2, 0)], &[2; 4], &[0, 2]),
            [[0; 4]; 2],
            "a flow of no bytes has no vote"
        );
    }
}
