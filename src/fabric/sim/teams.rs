//! Max-min fair shares of groups of flows, by progressive filling.
//!
//! A group is a number of flows from one rack to another. They all have the same rate, and what they take of the links between the racks
//! is that rate times their number. Their senders are a *team*: each has a fixed part of what its team sends, and so do receivers. So an
//! interface gives each group its host's part of what the group sends.
//!
//! Groups over the same links between racks are a *trunk*: when one of these links is full, it holds back all of them that still grow.
//! Most interfaces are never full, so only those are filled that would otherwise have to carry more than they can: these are *tight*.
//! Which they are is found by filling without them first, and seldom changes from one time to the next.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::coflows::rates::Path;
use crate::fabric::sim::maxmin::Changes;

/// No link, and no trunk.
const NOWHERE: u32 = u32::MAX;

/// An interface may seem to carry more than it can by this part of it: so much comes from rounding.
const SLACK: f64 = 1e-9;

/// Interfaces that carry this part of what they can may be tight next time.
const NEAR: f64 = 0.5;

/// Of interfaces that have less to carry than this part of what they had at first, rounding has left that.
const NOTHING: f64 = 1e-9;

/// Hosts of one rack that send for a coflow, or that receive.
#[derive(Debug)]
struct Team {
    side: u32,
    /// By host of the rack: which part of all that the team sends is the host's.
    parts: Vec<f64>,
}

/// A group.
#[derive(Clone, Copy, Debug)]
struct Group {
    flows: u32,
    trunk: u32,
    /// Its place in its trunk's list.
    place: u32,
    /// Those that send and those that receive.
    teams: [u32; 2],
    /// The interface that holds it back by itself.
    held_by: u32,
    /// Its bottleneck as of the last [`Shares::refill`].
    link: u32,
}

impl Default for Group {
    fn default() -> Self {
        Self { flows: 0, trunk: NOWHERE, place: 0, teams: [NOWHERE; 2], held_by: NOWHERE, link: NOWHERE }
    }
}

/// Groups that share all links but interfaces.
#[derive(Debug)]
struct Trunk {
    links: Path,
    sides: [u32; 2],
    groups: Vec<u32>,
    /// Where interfaces have held back some of them: those that still grow, or did when a link held them back.
    live: Vec<u32>,
    /// All flows, and those that still grow.
    flows: u64,
    growing: u64,
    /// By end and host: what its interface has to carry of them, by rate of a flow.
    takes: [Vec<f64>; 2],
    /// The same of those groups that still grow, or did when a link held them back.
    left: [Vec<f64>; 2],
    held_by: u32,
    /// The same, as of the last filling.
    told: u32,
    /// Tight interfaces that it crosses, by their place.
    tight: Vec<u32>,
}

impl Trunk {
    /// 0 if this is the side of its senders, 1 if it is that of its receivers.
    fn end(&self, side: u32) -> usize {
        usize::from(self.sides[0] != side)
    }
}

#[derive(Clone, Debug, Default)]
struct Link {
    left: u64,
    growing: u64,
    level: Option<u64>,
    /// Its level as of the last filling.
    told: Option<u64>,
    trunks: Vec<u32>,
}

/// A tight interface while links are filled.
#[derive(Debug, Default)]
struct Tight {
    link: u32,
    left: f64,
    /// What growing groups take, by rate of a flow, and what they did at first.
    growing: f64,
    all: f64,
}

impl Tight {
    /// Groups that take this much are held back.
    fn hold(&mut self, takes: f64, rate: u64) {
        self.growing -= takes;
        self.left -= takes * rate as f64;
    }
}

/// A level that is a whole number is not to be rounded down.
const ROUNDING: f64 = 1e-14;

/// When a link is filled: by level, then by number.
type Turn = (u64, u32);

/// Links and groups.
#[derive(Debug)]
pub struct Shares {
    capacity: Vec<u64>,
    links: Vec<Link>,
    /// Links that trunks cross.
    between: Vec<u32>,
    groups: Vec<Group>,
    teams: Vec<Team>,
    free_teams: Vec<u32>,
    trunks: Vec<Trunk>,
    /// Only looked up, never gone through.
    by_links: HashMap<(Path, [u32; 2]), u32>,
    /// By side: the links that are its hosts' interfaces, and its trunks.
    sides: Vec<Vec<u32>>,
    crossed: Vec<Vec<u32>>,
    /// By interface: its side, and its place there.
    at: Vec<(u32, u32)>,
    /// Interfaces that are tight.
    tight: Vec<Tight>,
    /// By interface: its place among those.
    place: Vec<Option<u32>>,
    /// Groups that an interface holds back, and those of the last filling.
    held: Vec<u32>,
    before: Vec<u32>,
    /// Groups that have come or go another way since then.
    fresh: Vec<u32>,
    /// By side and host: what their interfaces carry, as of the last filling.
    loads: Vec<Vec<f64>>,
    /// By end and host, kept for their memory: what groups take that an interface holds back.
    takes: [Vec<f64>; 2],
}

impl Shares {
    /// No groups. `sides`: for each rack that sends, and then for each that receives, which links are its hosts' interfaces.
    pub fn new(capacity: &[u64], sides: Vec<Vec<u32>>) -> Self {
        let mut at = vec![(0, 0); sides.iter().flatten().max().map_or(0, |&l| l as usize + 1)];
        for (side, links) in (0..).zip(&sides) {
            (0..).zip(links).for_each(|(k, &l)| at[l as usize] = (side, k));
        }
        Self {
            capacity: capacity.to_vec(),
            links: vec![Link::default(); capacity.len()],
            between: Vec::new(),
            groups: Vec::new(),
            teams: Vec::new(),
            free_teams: Vec::new(),
            trunks: Vec::new(),
            by_links: HashMap::new(),
            crossed: vec![Vec::new(); sides.len()],
            tight: Vec::new(),
            place: vec![None; at.len()],
            held: Vec::new(),
            before: Vec::new(),
            fresh: Vec::new(),
            takes: Default::default(),
            loads: sides.iter().map(|links| vec![0.0; links.len()]).collect(),
            sides,
            at,
        }
    }

    /// Links have these capacities from now on.
    pub fn limit(&mut self, capacity: &[u64]) {
        self.capacity.copy_from_slice(capacity);
    }

    /// Hosts of a side, each with its interface and with what it sends (or receives) of all that they do; returns the team's number.
    /// O(hosts of the rack).
    pub fn team(&mut self, side: u32, hosts: &[(u32, u128)]) -> u32 {
        let all: u128 = hosts.iter().map(|h| h.1).sum();
        let mut parts = vec![0.0; self.sides[side as usize].len()];
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
        self.groups.get(group as usize).map(|g| g.link).filter(|&l| l != NOWHERE)
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
        let g = self.groups[group as usize];
        let trunk = &mut self.trunks[g.trunk as usize];
        trunk.groups.swap_remove(g.place as usize);
        if let Some(&other) = trunk.groups.get(g.place as usize) {
            self.groups[other as usize].place = g.place;
        }
        trunk.flows -= u64::from(g.flows);
        for (takes, team) in trunk.takes.iter_mut().zip(g.teams) {
            match trunk.flows {
                // Nothing is left of rounding where there are no groups.
                0 => takes.fill(0.0),
                _ => add(takes, &self.teams[team as usize].parts, -f64::from(g.flows)),
            }
        }
        self.groups[group as usize] = Group { teams: g.teams, ..Group::default() };
    }

    fn enter(&mut self, group: u32, path: Path, flows: u32) {
        let between = path.links().split_at(path.links().len().min(2)).1;
        let g = &mut self.groups[group as usize];
        let sides = g.teams.map(|t| self.teams[t as usize].side);
        let links = Path::new(between);
        let new = self.trunks.len() as u32;
        g.trunk = *self.by_links.entry((links, sides)).or_insert(new);
        g.flows = flows;
        if g.trunk == new {
            for &l in between {
                let trunks = &mut self.links[l as usize].trunks;
                if trunks.is_empty() {
                    self.between.push(l);
                }
                trunks.push(new);
            }
            sides.iter().for_each(|&side| self.crossed[side as usize].push(new));
            let takes = sides.map(|side| vec![0.0; self.sides[side as usize].len()]);
            let left = takes.clone();
            let (groups, live, tight) = (Vec::new(), Vec::new(), Vec::new());
            let (held_by, told) = (NOWHERE, NOWHERE);
            self.trunks.push(Trunk { links, sides, groups, live, flows: 0, growing: 0, takes, left, held_by, told, tight });
        }
        let trunk = &mut self.trunks[g.trunk as usize];
        g.place = trunk.groups.len() as u32;
        trunk.groups.push(group);
        trunk.flows += u64::from(flows);
        for (takes, &team) in trunk.takes.iter_mut().zip(&g.teams) {
            add(takes, &self.teams[team as usize].parts, f64::from(flows));
        }
        // Nothing else holds them back.
        if between.is_empty() {
            for (&side, team) in sides.iter().zip(self.groups[group as usize].teams) {
                for (k, &l) in self.sides[side as usize].clone().iter().enumerate() {
                    if self.teams[team as usize].parts[k] > 0.0 {
                        self.tighten(l);
                    }
                }
            }
        }
        self.fresh.push(group);
    }

    /// Brings the rates up to date; says what changed. O(trunks x hosts of a rack + links between racks x log of these + tight interfaces x
    /// (trunks of a rack + groups that they hold back)), as often as another interface is found to be tight.
    pub fn refill(&mut self) -> Changes {
        std::mem::swap(&mut self.held, &mut self.before);
        self.before.iter().for_each(|&k| self.groups[k as usize].held_by = NOWHERE);
        let mut levels: Vec<u32> = self.tight.iter().map(|t| t.link).collect();
        loop {
            self.fill();
            if !self.find_tight() {
                break;
            }
        }
        levels.extend(self.tight.iter().map(|t| t.link).chain(self.between.iter().copied()));
        levels.sort_unstable();
        levels.dedup();
        levels.retain(|&l| {
            let link = &mut self.links[l as usize];
            std::mem::replace(&mut link.told, link.level) != link.level
        });
        self.tight.iter().for_each(|t| self.place[t.link as usize] = None);
        let mut tight = std::mem::take(&mut self.tight);
        tight.retain(|t| self.links[t.link as usize].level.is_some() || self.load(t.link) > NEAR);
        (0..).zip(&tight).for_each(|(k, t)| self.place[t.link as usize] = Some(k));
        self.tight = tight;
        Changes { levels, moved: self.moved() }
    }

    /// What an interface carries, as a part of what it can, as of the last look for tight ones.
    fn load(&self, link: u32) -> f64 {
        let (side, host) = self.at[link as usize];
        self.loads[side as usize][host as usize] / self.capacity[link as usize] as f64
    }

    /// An interface is tight from the next filling on.
    fn tighten(&mut self, link: u32) {
        if self.place[link as usize].is_none() {
            self.place[link as usize] = Some(self.tight.len() as u32);
            self.tight.push(Tight { link, ..Tight::default() });
        }
    }

    /// Groups whose bottleneck changed, by number.
    fn moved(&mut self) -> Vec<u32> {
        let mut moved = Vec::new();
        let single: Vec<u32> = self.before.drain(..).chain(self.held.iter().copied()).chain(self.fresh.drain(..)).collect();
        let single: Vec<(u32, u32)> = single.into_iter().map(|k| (k, self.groups[k as usize].trunk)).collect();
        let groups = &mut self.groups;
        let mut look = |k: u32, held_by: u32| {
            let g = &mut groups[k as usize];
            let now = if g.held_by != NOWHERE { g.held_by } else { held_by };
            if g.flows > 0 && g.link != now {
                g.link = now;
                moved.push(k);
            }
        };
        for t in self.trunks.iter_mut().filter(|t| t.flows > 0) {
            if std::mem::replace(&mut t.told, t.held_by) != t.held_by {
                t.groups.iter().for_each(|&k| look(k, t.held_by));
            }
        }
        for (k, trunk) in single {
            look(k, self.trunks.get(trunk as usize).map_or(NOWHERE, |t| t.held_by));
        }
        moved.sort_unstable();
        moved
    }

    /// Fills all links with all groups growing at first.
    fn fill(&mut self) {
        self.held.drain(..).for_each(|k| self.groups[k as usize].held_by = NOWHERE);
        for &l in &self.between {
            let link = &mut self.links[l as usize];
            (link.left, link.growing, link.level) = (self.capacity[l as usize], 0, None);
        }
        for t in &mut self.trunks {
            (t.growing, t.held_by) = (t.flows, NOWHERE);
            t.tight.clear();
            if t.flows > 0 {
                t.left.clone_from(&t.takes);
                t.links.links().iter().for_each(|&l| self.links[l as usize].growing += t.flows);
            }
        }
        self.loads.iter_mut().for_each(|l| l.fill(0.0));
        (0..self.tight.len()).for_each(|k| self.begin(k));
        let all = self.between.iter().copied().chain(self.tight.iter().map(|t| t.link));
        let mut heap: BinaryHeap<Reverse<Turn>> = all.filter_map(|l| Some(Reverse((self.share(l)?, l)))).collect();
        // Shares only grow while others are filled, so an entry that is still right when it comes out is the smallest.
        while let Some(Reverse((level, l))) = heap.pop() {
            match self.share(l) {
                Some(now) if now == level => match self.tight_at(l) {
                    Some(k) => self.fill_interface(k, level),
                    None => self.fill_link(l, level),
                },
                now => heap.extend(now.map(|now| Reverse((now, l)))),
            }
        }
    }

    /// The place of a link among tight interfaces.
    fn tight_at(&self, link: u32) -> Option<usize> {
        self.place.get(link as usize).copied().flatten().map(|k| k as usize)
    }

    /// The level of a link if no other one came first; `None` if no flow over it grows.
    fn share(&self, link: u32) -> Option<u64> {
        let Some(k) = self.tight_at(link) else {
            let link = &self.links[link as usize];
            return link.left.checked_div(link.growing);
        };
        let t = &self.tight[k];
        (t.growing > t.all * NOTHING).then(|| (t.left.max(0.0) / t.growing * (1.0 + ROUNDING)) as u64)
    }

    /// Sums up what a tight interface has to carry.
    fn begin(&mut self, k: usize) {
        let link = self.tight[k].link;
        let (side, host) = self.at[link as usize];
        self.links[link as usize].level = None;
        let mut all = 0.0;
        for &t in &self.crossed[side as usize] {
            let trunk = &mut self.trunks[t as usize];
            let takes = trunk.takes[trunk.end(side)][host as usize];
            if trunk.flows > 0 && takes > 0.0 {
                trunk.tight.push(k as u32);
                all += takes;
            }
        }
        self.tight[k] = Tight { link, left: self.capacity[link as usize] as f64, growing: all, all };
    }

    /// A link between racks is full: the growing groups of its trunks keep this rate.
    fn fill_link(&mut self, link: u32, level: u64) {
        self.links[link as usize].level = Some(level);
        for k in 0..self.links[link as usize].trunks.len() {
            let t = self.links[link as usize].trunks[k] as usize;
            let trunk = &mut self.trunks[t];
            if trunk.held_by != NOWHERE || trunk.growing == 0 {
                continue;
            }
            trunk.held_by = link;
            for &l in trunk.links.links() {
                let link = &mut self.links[l as usize];
                link.growing -= trunk.growing;
                link.left -= trunk.growing * level;
            }
            for k in trunk.tight.drain(..) {
                let tight = &mut self.tight[k as usize];
                let (side, host) = self.at[tight.link as usize];
                tight.hold(trunk.left[usize::from(trunk.sides[0] != side)][host as usize], level);
            }
            (0..2).for_each(|end| add(&mut self.loads[trunk.sides[end] as usize], &trunk.left[end], level as f64));
        }
    }

    /// An interface is full: its groups that grow keep this rate.
    fn fill_interface(&mut self, k: usize, level: u64) {
        let link = self.tight[k].link;
        let (side, host) = self.at[link as usize];
        self.links[link as usize].level = Some(level);
        // Whatever rounding has left.
        self.tight[k].all = f64::INFINITY;
        for &t in &self.crossed[side as usize] {
            let trunk = &mut self.trunks[t as usize];
            let end = trunk.end(side);
            let there = trunk.left[end][host as usize] > trunk.takes[end][host as usize] * NOTHING;
            if trunk.held_by != NOWHERE || trunk.growing == 0 || !there {
                continue;
            }
            if trunk.growing == trunk.flows {
                trunk.live.clone_from(&trunk.groups);
            }
            let (mut flows, takes) = (0, &mut self.takes);
            (0..2).for_each(|end| {
                takes[end].clear();
                takes[end].resize(trunk.takes[end].len(), 0.0);
            });
            trunk.live.retain(|&number| {
                let g = &mut self.groups[number as usize];
                let stays = self.teams[g.teams[end] as usize].parts[host as usize] == 0.0;
                if !stays {
                    g.held_by = link;
                    self.held.push(number);
                    flows += u64::from(g.flows);
                    for (takes, &team) in takes.iter_mut().zip(&g.teams) {
                        add(takes, &self.teams[team as usize].parts, f64::from(g.flows));
                    }
                }
                stays
            });
            trunk.growing -= flows;
            for &l in trunk.links.links() {
                let link = &mut self.links[l as usize];
                link.growing -= flows;
                link.left -= flows * level;
            }
            for ((left, side), takes) in trunk.left.iter_mut().zip(trunk.sides).zip(takes.iter()) {
                add(left, takes, -1.0);
                add(&mut self.loads[side as usize], takes, level as f64);
            }
            for &k in &trunk.tight {
                let tight = &mut self.tight[k as usize];
                let (side, host) = self.at[tight.link as usize];
                tight.hold(takes[usize::from(trunk.sides[0] != side)][host as usize], level);
            }
        }
    }

    /// Finds interfaces that would have to carry more than they can, which are tight from now on. Says whether there are any.
    fn find_tight(&mut self) -> bool {
        for t in self.trunks.iter().filter(|t| t.held_by == NOWHERE && t.growing > 0) {
            for ((&side, left), takes) in t.sides.iter().zip(&t.left).zip(&t.takes) {
                for ((load, left), takes) in self.loads[side as usize].iter_mut().zip(left).zip(takes) {
                    if *left > takes * NOTHING {
                        *load = f64::INFINITY;
                    }
                }
            }
        }
        let exceeds = |&l: &u32| self.load(l) > 1.0 + SLACK && self.place[l as usize].is_none();
        if !self.sides.iter().flatten().any(exceeds) {
            return false;
        }
        // Those that are near do not cost another filling then.
        let near: Vec<u32> = self.sides.iter().flatten().copied().filter(|&l| self.load(l) > NEAR).collect();
        near.into_iter().for_each(|l| self.tighten(l));
        true
    }
}

/// Adds `b`, times a factor, to `a`.
fn add(a: &mut [f64], b: &[f64], times: f64) {
    for (a, b) in a.iter_mut().zip(b) {
        *a += b * times;
    }
}
