//! Max-min fair shares of groups of flows, by progressive filling.
//!
//! A group is a number of flows from one rack to another. They all have the same rate, and what they take of the links between the racks
//! is that rate times their number. Their senders are a *team*: each has a fixed part of what its team sends, and so do receivers. So an
//! interface gives each group its host's part of what the group sends.
//!
//! Links are filled in the order of level and number: the first of a group's links holds it back. So the level of a link follows from the
//! rates of those of its groups that links before it hold back, and a change is followed up from link to link: a link is looked at again
//! when a group of it has another rate, and looked at until none has. That is the same as filling everything anew, since a link is right
//! once those before it are; links of low levels come first for that reason. Seldom do more than a few links change.
//!
//! Groups whose flows cross the same links between racks form a *trunk*. Groups of a trunk that one of these links holds back are
//! *together*: they have the same rate, and the trunk has one sum of their flows and, for each host, one sum of what its interface carries
//! of them. So a new rate costs as much for a hundred groups as for one. A group that an interface holds back is *alone*: it has a rate of
//! its own.
//!
//! Source: Bertsekas and Gallager, Data Networks, 2nd edition, section 6.5.2.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::coflows::rates::Path;
use crate::maxmin::Changes;

mod looks;
mod side;

use side::{Side, add};

/// No link, and no trunk.
const NOWHERE: u32 = u32::MAX;

/// An interface whose load is below this part of its capacity (both in bit/s) holds no group back, so its level need not be computed. It
/// is a little less than 1 because a load is a running sum of floats, which may be a little too small.
const FULL: f64 = 1.0 - 1e-6;

/// A level that is a whole number is not to be rounded down.
const ROUNDING: f64 = 1e-14;

/// How many levels [`Shares::refill`] computes one by one, as a multiple of the number of links, before it fills all links anew: that
/// bounds its steps.
const PATIENCE: usize = 4;

/// Hosts of one rack that send for a coflow, or that receive.
#[derive(Debug)]
struct Team {
    side: u32,
    /// By host of the rack: which part of all that the team sends is the host's.
    parts: Vec<f64>,
}

/// When a link is filled: by level, then by number.
type Turn = (u64, u32);

/// The turn of what nothing holds back yet.
const NEVER: Turn = (u64::MAX, NOWHERE);

/// The rate of a flow that is held back in this turn; 0 if nothing holds it back yet.
fn rate(turn: Turn) -> f64 {
    if turn == NEVER { 0.0 } else { turn.0 as f64 }
}

/// A group.
#[derive(Clone, Copy, Debug)]
struct Group {
    flows: u32,
    trunk: u32,
    /// Whether an interface holds it back, or nothing else could; and its place in its trunk's list of those.
    is_alone: bool,
    place: u32,
    /// If it is alone: its places in its sides' lists of those.
    places: [u32; 2],
    /// Those that send and those that receive.
    teams: [u32; 2],
    /// If it is alone: what holds it back, and when.
    turn: Turn,
    /// Its bottleneck as of the last [`Shares::refill`].
    told: u32,
}

impl Default for Group {
    fn default() -> Self {
        Self { flows: 0, trunk: NOWHERE, is_alone: false, place: 0, places: [0; 2], teams: [NOWHERE; 2], turn: NEVER, told: NOWHERE }
    }
}

/// Groups that share all links but interfaces.
#[derive(Debug)]
struct Trunk {
    links: Path,
    sides: [u32; 2],
    /// Groups that are together, and those that are alone.
    groups: [Vec<u32>; 2],
    /// Flows of the groups that are together.
    flows: u64,
    /// By end and host: what its interface has to carry of these, by rate of a flow; and of how many of the groups.
    takes: [Vec<f64>; 2],
    counts: [Vec<u32>; 2],
    /// Its places in the lists of its sides, if it has any.
    places: [u32; 2],
    /// What holds these back, and when.
    turn: Turn,
}

#[derive(Clone, Debug, Default)]
struct Link {
    capacity: u64,
    /// The rate of the flows that it holds back.
    level: Option<u64>,
    /// Its level as of the last filling.
    told: Option<u64>,
    /// Trunks that cross it.
    trunks: Vec<u32>,
    /// What it carries, in bit/s; not known of interfaces, whose [`Side`] has it.
    load: u128,
    /// Whether it has to be looked at.
    is_open: bool,
}

/// What crosses a link: a group that is alone, or a trunk's groups that are together.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Crossing {
    Group(u32),
    Trunk(u32),
}

/// Links and groups.
#[derive(Debug)]
pub struct Shares {
    links: Vec<Link>,
    groups: Vec<Group>,
    teams: Vec<Team>,
    free_teams: Vec<u32>,
    trunks: Vec<Trunk>,
    /// Only looked up, never gone through.
    by_links: HashMap<(Path, [u32; 2]), u32>,
    /// Racks' hosts that send, and then those that receive.
    sides: Vec<Side>,
    /// By interface: its side, and its place there.
    at: Vec<(u32, u32)>,
    /// Links that have to be looked at, by level.
    open: BinaryHeap<Reverse<Turn>>,
    /// Links and groups that may have changed since the last filling.
    leveled: Vec<u32>,
    turned: Vec<u32>,
    /// Of the link between racks that is looked at: what crosses it, when other links hold that back, and its flows.
    crossings: Vec<(Crossing, Turn, u64)>,
    /// Since the last look: teams and how much more their groups send (or receive), in bit/s; and sides with other loads.
    carries: Vec<(u32, f64)>,
    stirred: Vec<u32>,
    /// Kept for their memory.
    held: Vec<Crossing>,
    risen: Vec<u32>,
}

impl Shares {
    /// No groups. `sides`: for each rack that sends, and then for each that receives, which links are its hosts' interfaces.
    pub fn new(capacity: &[u64], sides: Vec<Vec<u32>>) -> Self {
        let mut at = vec![(0, 0); sides.iter().flatten().max().map_or(0, |&l| l as usize + 1)];
        for (side, links) in (0..).zip(&sides) {
            (0..).zip(links).for_each(|(k, &l)| at[l as usize] = (side, k));
        }
        let mut shares = Self {
            links: capacity.iter().map(|&capacity| Link { capacity, ..Link::default() }).collect(),
            groups: Vec::new(),
            teams: Vec::new(),
            free_teams: Vec::new(),
            trunks: Vec::new(),
            by_links: HashMap::new(),
            sides: sides.into_iter().map(Side::new).collect(),
            at,
            open: BinaryHeap::new(),
            leveled: Vec::new(),
            turned: Vec::new(),
            crossings: Vec::new(),
            carries: Vec::new(),
            stirred: Vec::new(),
            held: Vec::new(),
            risen: Vec::new(),
        };
        (0..shares.at.len() as u32).for_each(|l| shares.bound(l));
        shares
    }

    /// Above which load an interface has to be looked at: any if it holds groups back, else one with which it might; never if it will be.
    fn bound(&mut self, link: u32) {
        if let Some(&(side, host)) = self.at.get(link as usize) {
            self.sides[side as usize].bounds[host as usize] = match &self.links[link as usize] {
                Link { is_open: true, .. } => f64::INFINITY,
                Link { level: Some(_), .. } => f64::NEG_INFINITY,
                Link { capacity, .. } => *capacity as f64 * FULL,
            };
        }
    }

    /// Links have these capacities from now on, by link and in bit/s. O(links).
    pub fn limit(&mut self, capacity: &[u64]) {
        for (l, &capacity) in (0..).zip(capacity) {
            if std::mem::replace(&mut self.links[l as usize].capacity, capacity) != capacity {
                self.open(l);
            }
        }
    }

    /// Hosts of a side, each with its interface and with what it sends (or receives) of all that they do; returns the team's number.
    /// O(hosts of the rack).
    pub fn team(&mut self, side: u32, hosts: &[(u32, u128)]) -> u32 {
        let all: u128 = hosts.iter().map(|h| h.1).sum();
        let mut parts = vec![0.0; self.sides[side as usize].links.len()];
        hosts.iter().for_each(|&(link, bytes)| parts[self.at[link as usize].1 as usize] = bytes as f64 / all as f64);
        let number = self.free_teams.pop().unwrap_or(self.teams.len() as u32);
        let team = Team { side, parts };
        match self.teams.get_mut(number as usize) {
            Some(old) => *old = team,
            None => self.teams.push(team),
        }
        number
    }

    /// A team without groups is no more.
    pub fn disband(&mut self, team: u32) {
        self.free_teams.push(team);
    }

    /// A group that has no flows yet is between these teams.
    pub fn join(&mut self, group: u32, teams: [u32; 2]) {
        if self.groups.len() <= group as usize {
            self.groups.resize(group as usize + 1, Group::default());
        }
        self.groups[group as usize] = Group { teams, ..Group::default() };
    }

    /// The link that holds a group back, as of the last [`Shares::refill`].
    pub fn bottleneck(&self, group: u32) -> Option<u32> {
        self.groups.get(group as usize).map(|g| g.told).filter(|&l| l != NOWHERE)
    }

    /// The rate of each flow that this link holds back, as of the last [`Shares::refill`]; zero if it holds none back.
    pub fn level(&self, link: u32) -> u64 {
        self.links[link as usize].level.unwrap_or(0)
    }

    /// From now on a group has this many flows over `path`; none takes it away. It must have teams. O(hosts of its racks).
    pub fn set(&mut self, group: u32, path: Path, flows: u32) {
        let g = self.groups[group as usize];
        if g.flows > 0 {
            self.leave(group);
        }
        if flows > 0 {
            self.enter(group, path, flows);
        }
    }

    fn leave(&mut self, group: u32) {
        self.change(group, self.turn_of(group), NEVER);
        self.open_stirred();
        self.take_out(group);
        let teams = self.groups[group as usize].teams;
        self.groups[group as usize] = Group { teams, ..Group::default() };
    }

    fn enter(&mut self, group: u32, path: Path, flows: u32) {
        let between = path.links().split_at(path.links().len().min(2)).1;
        let teams = self.groups[group as usize].teams;
        let sides = teams.map(|t| self.teams[t as usize].side);
        let new = self.trunks.len() as u32;
        let trunk = *self.by_links.entry((Path::new(between), sides)).or_insert(new);
        if trunk == new {
            between.iter().for_each(|&l| self.links[l as usize].trunks.push(new));
            let hosts = sides.map(|side| self.sides[side as usize].links.len());
            let (takes, counts) = (hosts.map(|n| vec![0.0; n]), hosts.map(|n| vec![0; n]));
            let (links, groups, places) = (Path::new(between), Default::default(), [0; 2]);
            self.trunks.push(Trunk { links, sides, groups, flows: 0, takes, counts, places, turn: NEVER });
        }
        // Interfaces are all that can hold it back.
        let is_alone = between.is_empty();
        let g = &mut self.groups[group as usize];
        (g.flows, g.trunk) = (flows, trunk);
        self.put(group, is_alone);
        if is_alone {
            for team in teams {
                let team = &self.teams[team as usize];
                let links = self.sides[team.side as usize].links.iter().zip(&team.parts).filter(|(_, p)| **p > 0.0);
                for l in links.map(|(&l, _)| l).collect::<Vec<u32>>() {
                    self.open(l);
                }
            }
        }
        let turn = self.turn_of(group);
        self.change(group, NEVER, turn);
        between.iter().for_each(|&l| self.open(l));
        self.open_stirred();
    }

    /// What holds a group back, and when.
    fn turn_of(&self, group: u32) -> Turn {
        let g = &self.groups[group as usize];
        if g.is_alone { g.turn } else { self.trunks[g.trunk as usize].turn }
    }

    /// A crossing is held back in this turn; returns in which it was.
    fn turn(&mut self, crossing: Crossing, turn: Turn) -> Turn {
        let (old, sides, places) = match crossing {
            Crossing::Group(k) => {
                let g = &mut self.groups[k as usize];
                (&mut g.turn, self.trunks[g.trunk as usize].sides, g.places)
            }
            Crossing::Trunk(t) => {
                let t = &mut self.trunks[t as usize];
                (&mut t.turn, t.sides, t.places)
            }
        };
        let old = std::mem::replace(old, turn);
        if old != turn {
            sides.into_iter().zip(places).for_each(|(side, place)| self.sides[side as usize].turn(place, turn));
        }
        old
    }

    /// Puts a group among those of its trunk that are alone, or together. Nothing holds it back yet if it is alone.
    fn put(&mut self, group: u32, is_alone: bool) {
        let g = &mut self.groups[group as usize];
        let trunk = &mut self.trunks[g.trunk as usize];
        let list = &mut trunk.groups[usize::from(is_alone)];
        (g.is_alone, g.place, g.turn) = (is_alone, list.len() as u32, NEVER);
        list.push(group);
        let is_first = !is_alone && trunk.flows == 0;
        if !is_alone {
            trunk.flows += u64::from(g.flows);
        }
        for (end, (&side, &team)) in trunk.sides.iter().zip(&g.teams).enumerate() {
            let (side, parts) = (&mut self.sides[side as usize], &self.teams[team as usize].parts);
            if is_alone {
                g.places[end] = side.push(Crossing::Group(group));
                side.takes(g.places[end], parts, g.flows.into());
                continue;
            }
            if is_first {
                trunk.places[end] = side.push(Crossing::Trunk(g.trunk));
                side.turn(trunk.places[end], trunk.turn);
            }
            add(&mut trunk.takes[end], parts, g.flows.into());
            trunk.counts[end].iter_mut().zip(parts).for_each(|(count, part)| *count += u32::from(*part > 0.0));
            side.takes(trunk.places[end], &trunk.takes[end], 1.0);
        }
    }

    /// Takes a group out from among these.
    fn take_out(&mut self, group: u32) {
        let g = self.groups[group as usize];
        let trunk = &mut self.trunks[g.trunk as usize];
        let list = &mut trunk.groups[usize::from(g.is_alone)];
        list.swap_remove(g.place as usize);
        if let Some(&other) = list.get(g.place as usize) {
            self.groups[other as usize].place = g.place;
        }
        if !g.is_alone {
            trunk.flows -= u64::from(g.flows);
            for (end, team) in g.teams.into_iter().enumerate() {
                let parts = &self.teams[team as usize].parts;
                add(&mut trunk.takes[end], parts, -f64::from(g.flows));
                for ((takes, count), part) in trunk.takes[end].iter_mut().zip(&mut trunk.counts[end]).zip(parts) {
                    *count -= u32::from(*part > 0.0);
                    // Nothing is left of rounding where there are no groups.
                    *takes = if *count == 0 { 0.0 } else { takes.max(f64::MIN_POSITIVE) };
                }
                self.sides[trunk.sides[end] as usize].takes(trunk.places[end], &trunk.takes[end], 1.0);
            }
        }
        let (sides, places) = (trunk.sides, if g.is_alone { g.places } else { trunk.places });
        if g.is_alone || trunk.flows == 0 {
            for (end, (side, place)) in sides.into_iter().zip(places).enumerate() {
                match self.sides[side as usize].take_out(place) {
                    Some(Crossing::Group(k)) => self.groups[k as usize].places[end] = place,
                    Some(Crossing::Trunk(t)) => self.trunks[t as usize].places[end] = place,
                    None => {}
                }
            }
        }
        if !g.is_alone && self.trunks[g.trunk as usize].flows == 0 {
            self.trunks[g.trunk as usize].turn = NEVER;
        }
    }

    /// Brings the rates up to date; says what changed. O(links that change x groups of a link x hosts of a rack); at worst, O(links squared
    /// x groups of a link squared).
    pub fn refill(&mut self) -> Changes {
        self.refill_within(PATIENCE * self.links.len())
    }

    /// As [`Shares::refill`], but computes at most `looks` levels one by one; if that does not suffice, it fills all links anew. Both ways
    /// have the same result, so tests choose a small number to compare them.
    pub fn refill_within(&mut self, mut looks: usize) -> Changes {
        while let Some(Reverse((_, link))) = self.open.pop() {
            if !std::mem::take(&mut self.links[link as usize].is_open) {
                continue;
            }
            if looks == 0 {
                self.fill();
                break;
            }
            looks -= 1;
            let level = self.find_level(link);
            self.hold(link, level);
            self.open_stirred();
            self.bound(link);
        }
        self.changes()
    }

    /// What is not as it was told last.
    fn changes(&mut self) -> Changes {
        let mut levels = std::mem::take(&mut self.leveled);
        levels.sort_unstable();
        levels.dedup();
        levels.retain(|&l| {
            let link = &mut self.links[l as usize];
            std::mem::replace(&mut link.told, link.level) != link.level
        });
        let mut moved = std::mem::take(&mut self.turned);
        moved.sort_unstable();
        moved.dedup();
        moved.retain(|&k| {
            let is_there = self.groups[k as usize].flows > 0;
            let now = if is_there { self.turn_of(k).1 } else { NOWHERE };
            std::mem::replace(&mut self.groups[k as usize].told, now) != now && is_there
        });
        Changes { levels, moved }
    }

    /// Fills all links with all groups growing at first.
    fn fill(&mut self) {
        self.open.clear();
        for t in (0..self.trunks.len() as u32).filter(|&t| self.trunks[t as usize].flows > 0).collect::<Vec<u32>>() {
            self.turn(Crossing::Trunk(t), NEVER);
        }
        for k in 0..self.groups.len() as u32 {
            if self.groups[k as usize].flows > 0 {
                if self.groups[k as usize].is_alone {
                    self.turn(Crossing::Group(k), NEVER);
                    if !self.trunks[self.groups[k as usize].trunk as usize].links.links().is_empty() {
                        self.take_out(k);
                        self.put(k, false);
                    }
                }
                self.turned.push(k);
            }
        }
        self.sides.iter_mut().for_each(|s| s.loads.fill(0.0));
        for (l, link) in (0..).zip(&mut self.links) {
            (link.level, link.load, link.is_open) = (None, 0, false);
            self.leveled.push(l);
        }
        let shares = (0..self.links.len() as u32).filter_map(|l| Some(Reverse((self.find_level(l)?, l))));
        let mut heap: BinaryHeap<Reverse<Turn>> = shares.collect();
        // Shares only grow while others are filled, so an entry that is still right when it comes out is the smallest.
        while let Some(Reverse((level, l))) = heap.pop() {
            match self.find_level(l) {
                Some(now) if now == level => self.hold(l, Some(level)),
                now => heap.extend(now.map(|now| Reverse((now, l)))),
            }
        }
        self.open_stirred();
        self.open.clear();
        self.links.iter_mut().for_each(|l| l.is_open = false);
        (0..self.at.len() as u32).for_each(|l| self.bound(l));
    }
}
