//! The tasks of a job that get slots at once, and the hosts that suit them best.

use std::collections::{BTreeMap, BTreeSet};

use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::matching::Preferences;
use super::votes::{TaskFlow, votes};
use crate::ids::HostId;
use crate::paths::search::PathSearch;
use crate::paths::types::TypedSearch;
use crate::paths::{SwitchRates, Switches};
use crate::topology::types::Types;

/// On which side of the shuffle a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShuffleSide {
    /// It sends.
    Map,
    /// It receives.
    Reduce,
}

/// Bytes from one task of a wave to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskPair {
    /// The number of the task that sends.
    pub from: u32,
    /// The number of the task that receives.
    pub to: u32,
    /// Number of bytes.
    pub bytes: u64,
    /// What it takes of every switch on its list, in bits a second.
    pub rate: u64,
}

/// The tasks of a job that get slots at once.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Wave {
    /// By task: its side.
    pub side: Vec<ShuffleSide>,
    /// By task: its host, if it has one that cannot change.
    pub fixed: Vec<Option<HostId>>,
    /// What the tasks send to each other.
    pub pairs: Vec<TaskPair>,
    /// By host: slots that the tasks without a host may have.
    pub places: Vec<u32>,
}

/// Which tasks move at once.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Ends {
    /// Reduces with the maps where they are, then maps with the reduces where they are, as long as
    /// that saves something.
    #[default]
    Alternate,
    /// Both at once, a single time, as section 5 prints it: each grades hosts by where the others
    /// were before.
    Both,
}

/// By what hosts rank tasks.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Grading {
    /// By what is saved if the task runs there, as the paper's text says.
    #[default]
    Utility,
    /// By how many of the task's flows have their cheapest way there, as its Algorithm 1 prints it;
    /// then by what is saved.
    Count,
}

/// The most rounds of [`Ends::Alternate`].
pub const MAX_ROUNDS: u32 = 10;

/// How a wave is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    /// Which tasks move at once.
    pub ends: Ends,
    /// By what hosts rank tasks.
    pub grades: Grading,
    /// The most rounds of [`Ends::Alternate`].
    pub rounds: u32,
}

impl Default for How {
    fn default() -> Self {
        Self { ends: Ends::default(), grades: Grading::default(), rounds: MAX_ROUNDS }
    }
}

/// Where the tasks of a wave go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedWave {
    /// The host of each task.
    pub hosts: Vec<HostId>,
    /// Rounds that saved something.
    pub rounds: u32,
    /// The cost of the assignment that it began with, in bytes times unit costs.
    pub before: u128,
    /// Its own.
    pub after: u128,
}

/// What a byte costs from any switch with hosts to any other, by the rate of its flow.
#[derive(Clone, Debug)]
pub struct Distances {
    /// By host: its switch's place in the tables.
    place: Vec<usize>,
    /// The rates, rounded up to powers of two, in their order.
    rates: Vec<u64>,
    /// By rate: by place of the receiver, then of the sender, the unit costs between them.
    tables: Vec<Vec<Vec<u64>>>,
    /// Whether no switch has a limit: one table is enough then.
    limitless: bool,
}

impl Distances {
    /// The distances for the rates of `pairs` besides `load`: of lists on which the flow fits, if
    /// there are any, else of those that go least beyond a capacity. Rates are rounded up to powers
    /// of two. O(switches with hosts x (switches + links)) a rate.
    ///
    /// # Panics
    /// Where there is no way between two hosts: a topology that was read has none.
    pub fn new(net: &Switches, load: &SwitchRates, hosts: usize, pairs: &[TaskPair]) -> Self {
        Self::of_types(net, load, hosts, pairs, &Types::default())
    }

    /// The same over lists of these types; between two hosts without one, more than any list costs.
    /// O(switches with hosts x (types x (switches + links) + switches with hosts x types x degree))
    /// a rate.
    ///
    /// # Panics
    /// Without types, as [`Distances::new`] does.
    pub fn of_types(
        net: &Switches,
        load: &SwitchRates,
        hosts: usize,
        pairs: &[TaskPair],
        types: &Types,
    ) -> Self {
        let mut numbers: BTreeMap<u32, usize> = BTreeMap::new();
        let mut stands = vec![];
        let place = (0..hosts).map(|h| {
            let s = net.stands(HostId::from(h));
            *numbers.entry(s).or_insert_with(|| {
                stands.push(s);
                stands.len() - 1
            })
        });
        let place = place.collect();
        let limitless = net.is_limitless();
        let rates: BTreeSet<u64> = pairs.iter().map(|p| class(p.rate, limitless)).collect();
        let table = |&rate: &u64| {
            let rows = stands.iter().map(|&to| {
                if !types.are_free() {
                    let search = TypedSearch::new(net, load, to, rate, types);
                    let cost = |&from: &u32| {
                        search.way(net, load, from).map_or(net.beyond_cost(), |way| way.1.cost)
                    };
                    return stands.iter().map(cost).collect();
                }
                let search = PathSearch::new(net, load, to, rate);
                stands
                    .iter()
                    .map(|&from| search.weight(from).expect("a way between hosts").cost)
                    .collect()
            });
            rows.collect()
        };
        Self {
            place,
            tables: rates.iter().map(table).collect(),
            rates: rates.into_iter().collect(),
            limitless,
        }
    }

    /// The number of the table for this rate.
    fn number(&self, rate: u64) -> usize {
        let class = class(rate, self.limitless);
        self.rates.binary_search(&class).expect("the distances were made for this rate")
    }

    /// What a byte of a flow of this rate costs from one host to another.
    pub fn between(&self, from: HostId, to: HostId, rate: u64) -> u64 {
        if from == to {
            0
        } else {
            self.tables[self.number(rate)][self.place[to.index()]][self.place[from.index()]]
        }
    }
}

fn class(rate: u64, limitless: bool) -> u64 {
    if limitless { 0 } else { rate.checked_next_power_of_two().unwrap_or(u64::MAX) }
}

impl Wave {
    /// Bytes that a task sends and receives, by task.
    pub fn bytes(&self) -> Vec<u64> {
        let mut bytes = vec![0u64; self.side.len()];
        for p in &self.pairs {
            for end in [p.from, p.to] {
                bytes[end as usize] = bytes[end as usize].saturating_add(p.bytes);
            }
        }
        bytes
    }

    /// What an assignment costs, in bytes times unit costs: every pair by its cheapest list.
    /// O(pairs).
    pub fn cost(&self, distances: &Distances, hosts: &[HostId]) -> u128 {
        let of = |p: &TaskPair| {
            u128::from(p.bytes)
                * u128::from(distances.between(
                    hosts[p.from as usize],
                    hosts[p.to as usize],
                    p.rate,
                ))
        };
        self.pairs.iter().map(of).sum()
    }

    /// Tasks without a host on hosts with free places, evenly at random from the seed.
    ///
    /// # Errors
    /// How many tasks have no place, if the places are too few.
    pub fn at_random(&self, seed: u64) -> Result<Vec<HostId>, usize> {
        let mut free: Vec<HostId> = self
            .places
            .iter()
            .enumerate()
            .flat_map(|(h, &n)| std::iter::repeat_n(HostId::from(h), n as usize))
            .collect();
        free.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        let open = self.fixed.iter().filter(|f| f.is_none()).count();
        if open > free.len() {
            return Err(open - free.len());
        }
        let mut next = free.into_iter();
        Ok(self
            .fixed
            .iter()
            .map(|f| f.unwrap_or_else(|| next.next().expect("as many places as tasks")))
            .collect())
    }
}

/// What is saved if each of `movers` (numbers of tasks) runs on each host while all other tasks
/// stay where `hosts` says. It is by mover, then host, in bytes times unit costs, every pair by its
/// cheapest list before and after. O(pairs + movers x (switches with hosts^2 + hosts)).
///
/// Source: the utility of equations (9) and (10) in section 5; read literally it counts the first
/// segment of a list only, which is the same for every host, so whole lists are compared here.
pub fn utilities(
    wave: &Wave,
    distances: &Distances,
    hosts: &[HostId],
    movers: &[u32],
) -> Vec<Vec<i128>> {
    let mut rows: Vec<Option<usize>> = vec![None; hosts.len()];
    movers.iter().enumerate().for_each(|(k, &t)| rows[t as usize] = Some(k));
    // By mover: its pairs, and whether it sends.
    let mut own: Vec<Vec<(&TaskPair, bool)>> = vec![vec![]; movers.len()];
    for p in &wave.pairs {
        for (task, sends) in [(p.from, true), (p.to, false)] {
            if let Some(row) = rows[task as usize] {
                own[row].push((p, sends));
            }
        }
    }
    let switches = distances.place.iter().max().map_or(0, |m| m + 1);
    // By rate, direction and switch: what peers there weigh. By host: what peers on it save a task
    // that joins them.
    let mut peers = vec![0u128; distances.rates.len() * 2 * switches];
    let mut beside = vec![0i128; distances.place.len()];
    let mut row = |(&task, pairs): (&u32, &Vec<(&TaskPair, bool)>)| {
        let mut touched = vec![];
        for &(p, sends) in pairs {
            let host = hosts[if sends { p.to } else { p.from } as usize].index();
            let (number, place) = (distances.number(p.rate), distances.place[host]);
            let cell = (number * 2 + usize::from(sends)) * switches + place;
            if peers[cell] == 0 && p.bytes > 0 {
                touched.push(cell);
            }
            peers[cell] += u128::from(p.bytes);
            beside[host] +=
                (u128::from(p.bytes) * u128::from(distances.tables[number][place][place])) as i128;
        }
        let mut at = vec![0i128; switches];
        for cell in touched {
            let (bytes, peer, table) = (
                std::mem::take(&mut peers[cell]),
                cell % switches,
                &distances.tables[cell / switches / 2],
            );
            let sends = cell / switches % 2 == 1;
            for (place, cost) in at.iter_mut().enumerate() {
                let units = if sends { table[peer][place] } else { table[place][peer] };
                *cost += (bytes * u128::from(units)) as i128;
            }
        }
        let cost = |h: usize| at[distances.place[h]] - beside[h];
        let now = cost(hosts[task as usize].index());
        let saved = (0..beside.len()).map(|h| now - cost(h)).collect();
        pairs.iter().for_each(|&(p, sends)| {
            beside[hosts[if sends { p.to } else { p.from } as usize].index()] = 0
        });
        saved
    };
    movers.iter().zip(&own).map(&mut row).collect()
}

/// Places the tasks of a wave that have no host, from an assignment of all to begin with (such as
/// [`Wave::at_random`]): hosts with free places are graded by [`utilities`], and a stable matching
/// assigns them. The best assignment that was seen is returned, and never one that costs more than
/// the first under [`Ends::Alternate`]. O(rounds x (pairs + tasks x hosts x log hosts)).
///
/// Source: section 5.3, the initial wave. Tasks of both sides that move at once swap places rather
/// than meet (the printed form, `Both`), so by default the sides take turns.
pub fn place(wave: &Wave, distances: &Distances, start: Vec<HostId>, how: How) -> PlacedWave {
    let before = wave.cost(distances, &start);
    let mut best = PlacedWave { hosts: start, rounds: 0, before, after: before };
    let moved =
        |hosts: &[HostId], sides: &[ShuffleSide]| moved(wave, distances, hosts, sides, how.grades);
    if how.ends == Ends::Both {
        let hosts = moved(&best.hosts, &[ShuffleSide::Map, ShuffleSide::Reduce]);
        return PlacedWave { after: wave.cost(distances, &hosts), hosts, rounds: 1, before };
    }
    while best.rounds < how.rounds {
        let reduces = moved(&best.hosts, &[ShuffleSide::Reduce]);
        let hosts = moved(&reduces, &[ShuffleSide::Map]);
        let after = wave.cost(distances, &hosts);
        if after >= best.after {
            break;
        }
        best = PlacedWave { hosts, rounds: best.rounds + 1, before, after };
    }
    best
}

/// One matching of the tasks of these sides that have no host of their own.
fn moved(
    wave: &Wave,
    distances: &Distances,
    hosts: &[HostId],
    sides: &[ShuffleSide],
    grades: Grading,
) -> Vec<HostId> {
    let free = |t: u32| wave.fixed[t as usize].is_none();
    let moves = |t: u32| free(t) && sides.contains(&wave.side[t as usize]);
    let tasks = || 0..wave.side.len() as u32;
    let movers: Vec<u32> = tasks().filter(|&t| moves(t)).collect();
    let mut places = wave.places.clone();
    for t in tasks().filter(|&t| free(t) && !moves(t)) {
        places[hosts[t as usize].index()] -= 1;
    }
    let counts = if grades == Grading::Count {
        let flows: Vec<TaskFlow> = wave
            .pairs
            .iter()
            .map(|p| TaskFlow { from: p.from, to: p.to, bytes: p.bytes })
            .collect();
        votes(
            &flows,
            |k, a, b| distances.between(a, b, wave.pairs[k].rate),
            hosts,
            &movers,
            &places,
        )
    } else {
        vec![]
    };
    let (utility, all) = (utilities(wave, distances, hosts, &movers), wave.bytes());
    let bytes = movers.iter().map(|&t| all[t as usize]).collect();
    let mut then = hosts.to_vec();
    for (t, host) in movers.iter().zip(Preferences { utility, bytes, places, counts }.matching()) {
        // As many places as tasks are free: the tasks themselves held them.
        then[*t as usize] = host.map_or(then[*t as usize], HostId::from);
    }
    then
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::Units;
    use crate::topology::graph::Graph;
    use crate::topology::{Core, Topology};
    use crate::units::BitRate;
    use proptest::prelude::*;

    /// The case study of section 2.3: two access switches of two hosts each below one root.
    fn case_study() -> (Switches, Topology) {
        let mut t = Topology::uniform("t", 2, 2, BitRate(100), BitRate(100), vec![]);
        t.eps.core = Core::Graph(Box::new(Graph::hierarchy(2, 2, 1, BitRate(100), None)));
        (Switches::new(&t, Units::default()), t)
    }

    /// M1, M2, R1, R2: the first job shuffles 34 GB, the second 10 GB.
    fn jobs(fixed: [Option<u32>; 4], places: [u32; 4]) -> Wave {
        let pair = |from, to, bytes| TaskPair { from, to, bytes, rate: 1 };
        Wave {
            side: vec![
                ShuffleSide::Map,
                ShuffleSide::Map,
                ShuffleSide::Reduce,
                ShuffleSide::Reduce,
            ],
            fixed: fixed.map(|h| h.map(HostId)).to_vec(),
            pairs: vec![pair(0, 2, 34), pair(1, 3, 10)],
            places: places.to_vec(),
        }
    }

    fn distances(net: &Switches, hosts: usize, wave: &Wave) -> Distances {
        Distances::new(net, &SwitchRates::new(net), hosts, &wave.pairs)
    }

    #[test]
    fn the_papers_case_study_costs_112_64_and_with_both_slots_free_44() {
        let (net, _) = case_study();
        // Hosts S1 to S4 are 0 to 3; R1 on S4 and R2 on S2 to begin with.
        let start = [0, 0, 3, 1].map(HostId).to_vec();
        for (places, after, then) in
            [([0, 1, 0, 1], 64, Some([0, 0, 1, 3])), ([0, 2, 2, 2], 44, Some([0, 0, 1, 1]))]
        {
            let wave = jobs([Some(0), Some(0), None, None], places);
            let d = distances(&net, 4, &wave);
            let placed = place(&wave, &d, start.clone(), How::default());
            assert_eq!((placed.before, placed.after), (112, after));
            assert_eq!(Some(placed.hosts), then.map(|h| h.map(HostId).to_vec()));
        }
        let wave = jobs([Some(0), Some(0), None, None], [0, 1, 0, 1]);
        let u = utilities(&wave, &distances(&net, 4, &wave), &start, &[2, 3]);
        assert_eq!((u[0][1], u[0][3], u[1][1], u[1][3]), (68, 0, 0, -20));
    }

    /// All four tasks free, two slots a host: what becomes of all 204 assignments to begin with.
    #[test]
    fn rounds_from_every_assignment_of_the_case_study() {
        let (net, _) = case_study();
        let wave = jobs([None; 4], [2; 4]);
        let d = distances(&net, 4, &wave);
        let mut ends: BTreeMap<(bool, u128), u32> = BTreeMap::new();
        for k in 0..256u32 {
            let start: Vec<HostId> = (0..4).map(|i| HostId(k >> (2 * i) & 3)).collect();
            if (0..4).any(|h| start.iter().filter(|s| s.0 == h).count() > 2) {
                continue;
            }
            for (both, ends_how) in [(false, Ends::Alternate), (true, Ends::Both)] {
                *ends
                    .entry((
                        both,
                        place(&wave, &d, start.clone(), How { ends: ends_how, ..How::default() })
                            .after,
                    ))
                    .or_default() += 1;
            }
        }
        let of = |both: bool| {
            ends.iter().filter(|e| e.0.0 == both).map(|e| (e.0.1, *e.1)).collect::<Vec<_>>()
        };
        assert_eq!(of(false), [(0, 168), (44, 36)]);
        let letter = of(true);
        assert_eq!((letter[0], letter.last().unwrap().0), ((0, 12), 132));
        assert_eq!(letter.iter().map(|e| e.1).sum::<u32>(), 204);
    }

    fn any_wave() -> impl Strategy<Value = (Wave, u64)> {
        let pairs = prop::collection::vec((0u32..4, 4u32..8, 0u64..50, 1u64..20), 0..14);
        (
            pairs,
            prop::collection::vec(0u32..3, 16),
            prop::collection::vec(prop::option::weighted(0.2, 0u32..16), 8),
            any::<u64>(),
        )
            .prop_map(|(pairs, places, fixed, seed)| {
                let side = (0..8)
                    .map(|t| if t < 4 { ShuffleSide::Map } else { ShuffleSide::Reduce })
                    .collect();
                let pairs = pairs
                    .into_iter()
                    .map(|(from, to, bytes, rate)| TaskPair { from, to, bytes, rate })
                    .collect();
                let mut places = places;
                places[3] += 8;
                (
                    Wave {
                        side,
                        fixed: fixed.into_iter().map(|h| h.map(HostId)).collect(),
                        pairs,
                        places,
                    },
                    seed,
                )
            })
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(96))]

        /// A utility is the difference of two whole costs; no host has more tasks than places;
        /// turns never cost more; fixed tasks stay.
        #[test]
        fn utilities_are_differences_of_costs((wave, seed) in any_wave(), limit in prop::option::of(10u64..40), rounds in 1u32..4) {
            let mut t = Topology::uniform("t", 8, 2, BitRate(100), BitRate(100), vec![]);
            t.eps.core = Core::Graph(Box::new(Graph::fat_tree(4, BitRate(100), limit.map(BitRate))));
            let net = Switches::new(&t, Units { access: 1, aggregation: 2, core: 3 });
            let d = distances(&net, 16, &wave);
            let start = wave.at_random(seed).unwrap();
            let movers: Vec<u32> = (4..8).collect();
            let u = utilities(&wave, &d, &start, &movers);
            let now = wave.cost(&d, &start) as i128;
            for (k, &task) in movers.iter().enumerate() {
                for (h, &saved) in u[k].iter().enumerate() {
                    let mut then = start.clone();
                    then[task as usize] = HostId::from(h);
                    prop_assert_eq!(saved, now - wave.cost(&d, &then) as i128);
                }
            }
            let grades = [Grading::Utility, Grading::Count];
            for (ends, grades) in [Ends::Alternate, Ends::Both].into_iter().flat_map(|e| grades.map(move |g| (e, g))) {
                let placed = place(&wave, &d, start.clone(), How { ends, grades, rounds });
                prop_assert!(ends == Ends::Both || placed.rounds <= rounds);
                prop_assert_eq!(placed.after, wave.cost(&d, &placed.hosts));
                prop_assert!(ends == Ends::Both || placed.after <= placed.before);
                for (task, fixed) in wave.fixed.iter().enumerate() {
                    prop_assert!(fixed.is_none_or(|h| h == placed.hosts[task]));
                }
                for h in 0..16 {
                    let on = (0..8).filter(|&t| wave.fixed[t].is_none() && placed.hosts[t] == HostId::from(h)).count();
                    prop_assert!(on <= wave.places[h] as usize);
                }
            }
        }
    }
}
