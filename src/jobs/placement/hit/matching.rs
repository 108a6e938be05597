//! A stable matching of tasks to hosts with several places each: Hit-scheduler's Algorithm 2.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

/// How much every task wants every host, and every host every task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preferences {
    /// By task, then host: what is saved if the task runs there, in bytes times unit costs; it may
    /// be negative.
    pub utility: Vec<Vec<i128>>,
    /// By task: its bytes; of tasks that a host wants alike, those with more bytes come first, then
    /// those of lower number.
    pub bytes: Vec<u64>,
    /// By host: how many tasks it takes.
    pub places: Vec<u32>,
    /// By task, then host: by how many flows a host was graded for the task, which then counts
    /// first for the host; empty: not at all.
    pub counts: Vec<Vec<u32>>,
}

/// The place of a task on a host's list; the smallest is the best.
type HostRank = (Reverse<u32>, Reverse<i128>, Reverse<u64>, usize);

impl Preferences {
    /// The place of `task` on the list of `host`.
    fn rank(&self, host: usize, task: usize) -> HostRank {
        let count = self.counts.get(task).map_or(0, |row| row[host]);
        (Reverse(count), Reverse(self.utility[task][host]), Reverse(self.bytes[task]), task)
    }

    /// The hosts with places, the one on top that a task wants most: by utility, then number. Few
    /// of them are ever asked.
    fn list(&self, task: usize) -> BinaryHeap<(i128, Reverse<u32>)> {
        let hosts = (0..self.places.len() as u32).filter(|&h| self.places[h as usize] > 0);
        hosts.map(|h| (self.utility[task][h as usize], Reverse(h))).collect::<Vec<_>>().into()
    }

    /// Assigns every task to a host, none to more than it has places for, so that no task and host
    /// would both rather have each other: deferred acceptance, in which tasks propose. By task the
    /// host's number; `None` only if all places together are fewer than the tasks. Of all stable
    /// assignments it is the best one for every task, whatever the order of the proposals. O(tasks
    /// x hosts x log hosts), and where few tasks are refused O(tasks x hosts).
    ///
    /// Source: Algorithm 2 in section 5.2, after Gale and Shapley. What the printed form leaves
    /// open is decided so. A host looks at all tasks that are assigned to it, and drops the worst
    /// on its own list while it has too many. From then on it refuses every task at or below the
    /// best that it has dropped.
    ///
    /// ```
    /// use heliostat_jobs::placement::hit::matching::Preferences;
    ///
    /// // The paper's case study (section 2.3): both reduce tasks want host 1, which has one place; the first saves more there.
    /// let preferences = Preferences { utility: vec![vec![0, 68], vec![-20, 0]], bytes: vec![34, 10], places: vec![1, 1], counts: vec![] };
    /// assert_eq!(preferences.matching(), [Some(1), Some(0)]);
    /// ```
    pub fn matching(&self) -> Vec<Option<usize>> {
        let mut lists: Vec<_> = (0..self.utility.len()).map(|t| self.list(t)).collect();
        // By host: the tasks that it holds, worst last, and the best that it has dropped.
        let mut held: Vec<BTreeSet<HostRank>> = vec![BTreeSet::new(); self.places.len()];
        let mut dropped: Vec<Option<HostRank>> = vec![None; self.places.len()];
        let mut free: VecDeque<usize> = (0..self.utility.len()).collect();
        while let Some(task) = free.pop_front() {
            while let Some((_, Reverse(host))) = lists[task].pop() {
                let host = host as usize;
                let rank = self.rank(host, task);
                if dropped[host].is_some_and(|d| rank >= d) {
                    continue;
                }
                held[host].insert(rank);
                if held[host].len() > self.places[host] as usize {
                    let worst =
                        held[host].pop_last().expect("it holds more tasks than it has places");
                    dropped[host] = Some(dropped[host].map_or(worst, |d| d.min(worst)));
                    if worst.3 == task {
                        continue;
                    }
                    free.push_back(worst.3);
                }
                break;
            }
        }
        let mut hosts = vec![None; self.utility.len()];
        for (h, tasks) in held.iter().enumerate() {
            tasks.iter().for_each(|r| hosts[r.3] = Some(h));
        }
        hosts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whether some task and host would both rather have each other, or a task is left out though
    /// there is room.
    fn blocking(p: &Preferences, hosts: &[Option<usize>]) -> Option<(usize, usize)> {
        let pairs = (0..hosts.len()).flat_map(|t| (0..p.places.len()).map(move |h| (t, h)));
        let mut pairs = pairs.filter(|&(_, h)| p.places[h] > 0);
        pairs.find(|&(t, h)| {
            let better = |own: usize| {
                (std::cmp::Reverse(p.utility[t][h]), h)
                    < (std::cmp::Reverse(p.utility[t][own]), own)
            };
            if !hosts[t].is_none_or(better) {
                return false;
            }
            let mut others = (0..hosts.len()).filter(|&o| hosts[o] == Some(h));
            let full = others.clone().count() >= p.places[h] as usize;
            !full || others.any(|o| p.rank(h, t) < p.rank(h, o))
        })
    }

    /// The slow twin for one common matrix without ties: the best pair of all is matched, and so
    /// on.
    fn best_first(p: &Preferences) -> Vec<Option<usize>> {
        let mut pairs: Vec<(i128, usize, usize)> = (0..p.utility.len())
            .flat_map(|t| (0..p.places.len()).map(move |h| (-p.utility[t][h], t, h)))
            .collect();
        pairs.sort_unstable();
        let (mut hosts, mut room) = (vec![None; p.utility.len()], p.places.clone());
        for (_, t, h) in pairs {
            if hosts[t].is_none() && room[h] > 0 {
                hosts[t] = Some(h);
                room[h] -= 1;
            }
        }
        hosts
    }

    fn preferences(
        values: impl Strategy<Value = i128> + Clone,
    ) -> impl Strategy<Value = Preferences> {
        (1usize..6, 1usize..5).prop_flat_map(move |(tasks, hosts)| {
            let row = prop::collection::vec(values.clone(), hosts);
            let rows = prop::collection::vec(row, tasks);
            (rows, prop::collection::vec(0u64..3, tasks), prop::collection::vec(0u32..4, hosts))
                .prop_map(|(utility, bytes, places)| Preferences {
                    utility,
                    bytes,
                    places,
                    counts: vec![],
                })
        })
    }

    /// All assignments within the places, every task somewhere as far as they go.
    fn all(p: &Preferences) -> Vec<Vec<Option<usize>>> {
        let mut open = vec![vec![]];
        for _ in 0..p.utility.len() {
            let hosts = || std::iter::once(None).chain((0..p.places.len()).map(Some));
            open = open
                .iter()
                .flat_map(|a: &Vec<Option<usize>>| {
                    hosts().map(move |h| [a.as_slice(), &[h]].concat())
                })
                .collect();
            open.retain(|a| {
                (0..p.places.len())
                    .all(|h| a.iter().filter(|x| **x == Some(h)).count() <= p.places[h] as usize)
            });
        }
        open
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        /// Against all assignments: it is stable, and every task has the best host that it has in
        /// any stable one.
        #[test]
        fn it_is_stable_and_the_best_for_every_task(p in preferences(-3i128..4)) {
            let found = p.matching();
            prop_assert_eq!(blocking(&p, &found), None);
            let room: usize = p.places.iter().map(|&n| n as usize).sum();
            prop_assert_eq!(found.iter().flatten().count(), found.len().min(room));
            for other in all(&p).into_iter().filter(|a| blocking(&p, a).is_none()) {
                for (t, (own, its)) in found.iter().zip(&other).enumerate() {
                    let place = |h: Option<usize>| h.map_or((1, std::cmp::Reverse(0), 0), |h| (0, std::cmp::Reverse(p.utility[t][h]), h));
                    prop_assert!(place(*own) <= place(*its), "task {} has {:?} and could have {:?}", t, own, its);
                }
            }
        }

        /// One common matrix in which no two cells are alike: the best pair first.
        #[test]
        fn without_ties_the_best_pairs_come_first(
            p in preferences(0i128..1),
            order in Just((0..30i128).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let mut p = p;
            let mut next = order.into_iter();
            p.utility.iter_mut().flatten().for_each(|u| *u = next.next().expect("5 x 4 cells at most"));
            prop_assert_eq!(p.matching(), best_first(&p));
        }
    }
}
