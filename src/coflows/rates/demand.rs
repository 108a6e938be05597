//! What one coflow still has to send, laid out so that each rule finds what it asks for without looking at every flow.

use super::{Free, Path};
use crate::units::NANOS;

/// Bytes of a coflow from one host to another: its flows between the same two hosts count as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its links.
    pub path: Path,
    /// What it still has to send: bits per second times nanoseconds, as [`Demand::bits`] rounds up to bits. Zero: done.
    pub left: u128,
}

/// A set of numbered things, groups or senders, by their link: those among 64 neighbouring links.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// The links are `64 * index ..`.
    pub index: u32,
    /// Number of the thing of the lowest bit of `all`.
    base: u32,
    /// Where there is one.
    all: u64,
    /// Where there is one that has something to send.
    pub live: u64,
}

impl Word {
    /// Adds a thing to a list of words in the order of links.
    fn push(words: &mut Vec<Self>, link: u32, number: u32, live: bool) {
        if words.last().is_none_or(|w| w.index != link / 64) {
            words.push(Self { index: link / 64, base: number, all: 0, live: 0 });
        }
        let word = words.last_mut().expect("just pushed");
        word.all |= 1 << (link % 64);
        word.live |= u64::from(live) << (link % 64);
    }

    /// The number of the thing at this bit, which must be one of all.
    pub fn number(&self, bit: u64) -> u32 {
        self.base + (self.all & (bit - 1)).count_ones()
    }

    /// The thing of this link in a list of words, if it is there and has something to send.
    fn find(words: &[Self], link: u32) -> Option<u32> {
        let bit = 1 << (link % 64);
        words.iter().find(|w| w.index == link / 64).filter(|w| w.live & bit != 0).map(|w| w.number(bit))
    }

    /// The numbers of the things at these bits.
    fn numbers(self, mut bits: u64) -> impl Iterator<Item = u32> {
        std::iter::from_fn(move || {
            let bit = bits & bits.wrapping_neg();
            bits ^= bit;
            (bit != 0).then(|| self.number(bit))
        })
    }

    /// Calls `each(link in the word, number)` for all that have something to send.
    fn each_live(self, mut each: impl FnMut(usize, u32)) {
        let (mut all, mut number) = (self.all, self.base);
        while all != 0 {
            let k = all.trailing_zeros();
            if self.live >> k & 1 == 1 {
                each(k as usize, number);
            }
            all &= all - 1;
            number += 1;
        }
    }
}

/// The groups of one sender.
#[derive(Clone, Debug)]
struct Row {
    up: u32,
    words: std::ops::Range<usize>,
    live: u32,
}

/// The groups of a coflow.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    /// By group: what it still has to send.
    left: Vec<u128>,
    /// By group: its sender's and its receiver's interface.
    ends: Vec<[u32; 2]>,
    /// By group: all its links; empty if no group has others than its two interfaces.
    paths: Vec<Path>,
    rows: Vec<Row>,
    /// Groups by their receivers' interfaces, row after row.
    words: Vec<Word>,
    /// Rows by their senders' interfaces.
    ups: Vec<Word>,
    /// Columns by their receivers' interfaces.
    downs: Vec<Word>,
    /// By column, then as in `ups`: which senders have something to send to this receiver.
    columns: Vec<u64>,
    live: usize,
    /// Links in use, and the ranges of their groups in `members`; empty until they are asked for.
    links: Vec<(u32, u32, u32)>,
    members: Vec<u32>,
    /// By link in use: bits to carry, as of the last [`Demand::weigh`].
    loads: Vec<(u32, u64)>,
    /// Whether they are right for what is left now.
    weighed: bool,
}

impl Demand {
    /// From groups in the order of their senders' and then their receivers' interfaces, each pair once. O(groups).
    ///
    /// # Panics
    /// If they are in another order.
    pub fn new(groups: &[Group]) -> Self {
        let (mut rows, mut words): (Vec<Row>, Vec<Word>) = (Vec::new(), Vec::new());
        for (g, group) in groups.iter().enumerate() {
            let (up, down) = (group.path.up(), group.path.down());
            assert!(g == 0 || (groups[g - 1].path.up(), groups[g - 1].path.down()) < (up, down), "groups in order, each pair once");
            if rows.last().is_none_or(|r| r.up != up) {
                rows.push(Row { up, words: words.len()..words.len(), live: 0 });
            }
            let row = rows.last_mut().expect("just pushed");
            let mut own = words.split_off(row.words.start);
            Word::push(&mut own, down, g as u32, group.left > 0);
            words.append(&mut own);
            row.words.end = words.len();
            row.live += u32::from(group.left > 0);
        }
        let mut ups = Vec::new();
        rows.iter().enumerate().for_each(|(r, row)| Word::push(&mut ups, row.up, r as u32, row.live > 0));
        let live = groups.iter().filter(|g| g.left > 0).count();
        let (downs, columns) = columns(groups, &ups);
        let left = groups.iter().map(|g| g.left).collect();
        let ends = groups.iter().map(|g| [g.path.up(), g.path.down()]).collect();
        let plain = groups.iter().all(|g| g.path.links().len() == 2);
        let paths = if plain { vec![] } else { groups.iter().map(|g| g.path).collect() };
        let (links, members, loads) = (Vec::new(), Vec::new(), Vec::new());
        Self { left, ends, paths, rows, words, ups, downs, columns, live, links, members, loads, weighed: false }
    }

    /// How many groups there are, those that are done included.
    pub fn groups(&self) -> usize {
        self.left.len()
    }

    /// What a group still has to send.
    pub fn left(&self, group: u32) -> u128 {
        self.left[group as usize]
    }

    /// Whether no path has more links than the two interfaces.
    pub fn is_plain(&self) -> bool {
        self.paths.is_empty()
    }

    /// The links of a group.
    pub fn path(&self, group: u32) -> Path {
        if self.is_plain() { Path::new(&self.ends[group as usize]) } else { self.paths[group as usize] }
    }

    /// A group gives back a rate.
    pub fn give(&self, group: u32, rate: u64, free: &mut Free) {
        self.ends[group as usize].iter().for_each(|&l| free.give_link(l, rate));
        if !self.is_plain() {
            self.paths[group as usize].links()[2..].iter().for_each(|&l| free.give_link(l, rate));
        }
    }

    /// A group takes a rate.
    pub fn take(&self, group: u32, rate: u64, free: &mut Free) {
        self.ends[group as usize].iter().for_each(|&l| free.take_link(l, rate));
        if !self.is_plain() {
            self.paths[group as usize].links()[2..].iter().for_each(|&l| free.take_link(l, rate));
        }
    }

    /// Every live group takes the rate that `rate(group)` says. O(groups).
    pub fn take_all(&self, free: &mut Free, mut rate: impl FnMut(u32) -> u64) {
        if !self.is_plain() {
            return self.live_groups(|g| self.take(g, rate(g), free));
        }
        for row in self.rows.iter().filter(|r| r.live > 0) {
            let mut sum = 0;
            for word in &self.words[row.words.clone()] {
                let cells = free.cells(word.index);
                word.each_live(|k, g| {
                    let rate = rate(g);
                    sum += rate;
                    cells[k] -= rate;
                });
            }
            free.take_link(row.up, sum);
        }
        self.downs.iter().for_each(|w| free.refresh(w.index));
    }

    /// How many have something to send.
    pub fn live(&self) -> usize {
        self.live
    }

    /// What a group still has to send, in whole bits, rounded up.
    pub fn bits(&self, group: u32) -> u64 {
        let up = self.left[group as usize] + u128::from(NANOS - 1);
        // Of the factors 2^9 and 5^9 of a second's nanoseconds the first is a shift; then 64 bits nearly always do.
        match u64::try_from(up >> 9) {
            Ok(small) => small / (NANOS >> 9),
            Err(_) => u64::try_from(up / u128::from(NANOS)).unwrap_or(u64::MAX),
        }
    }

    /// A group sent `units` (or all that it had left). Returns what it did not need of them, or `None` if it goes on.
    #[inline]
    pub fn sent(&mut self, group: u32, units: u128) -> Option<u128> {
        let left = &mut self.left[group as usize];
        self.weighed = false;
        if units < *left {
            *left -= units;
            return None;
        }
        let beyond = units - *left;
        if std::mem::take(left) > 0 {
            self.close(self.ends[group as usize]);
        }
        Some(beyond)
    }

    /// The group between these interfaces is done.
    fn close(&mut self, [up, down]: [u32; 2]) {
        self.live -= 1;
        let bit = |link: u32| 1u64 << (link % 64);
        let place = self.ups.iter().position(|w| w.index == up / 64).expect("it is there");
        let sender = &mut self.ups[place];
        let row = &mut self.rows[sender.number(bit(up)) as usize];
        row.live -= 1;
        sender.live &= !(u64::from(row.live == 0) << (up % 64));
        let word = self.words[row.words.clone()].iter_mut().find(|w| w.index == down / 64).expect("it is there");
        word.live &= !bit(down);
        let (width, receiver) = (self.ups.len(), self.downs.iter_mut().find(|w| w.index == down / 64).expect("it is there"));
        let column = receiver.number(bit(down)) as usize;
        let senders = &mut self.columns[column * width..(column + 1) * width];
        senders[place] &= !bit(up);
        receiver.live &= !(u64::from(senders.iter().all(|&w| w == 0)) << (down % 64));
    }

    /// The live groups of the sender at this interface: their receivers, by word. Empty if it has none.
    pub fn row(&self, up: u32) -> &[Word] {
        Word::find(&self.ups, up).map_or(&[], |r| &self.words[self.rows[r as usize].words.clone()])
    }

    /// The senders with live groups to the receiver at this interface, as (word, bits).
    pub fn column(&self, down: u32) -> impl Iterator<Item = (u32, u64)> + '_ {
        let width = self.ups.len();
        let own = Word::find(&self.downs, down).map_or(&[][..], |c| &self.columns[c as usize * width..(c as usize + 1) * width]);
        self.ups.iter().zip(own).map(|(w, &bits)| (w.index, bits))
    }

    /// The live group between these interfaces.
    pub fn between(&self, up: u32, down: u32) -> Option<u32> {
        Word::find(self.row(up), down)
    }

    /// Sender's and receiver's interface of a group.
    pub fn ends(&self, group: u32) -> [u32; 2] {
        self.ends[group as usize]
    }

    /// Calls `each` for every interface with live groups.
    pub fn live_ends(&self, mut each: impl FnMut(u32)) {
        for w in self.ups.iter().chain(&self.downs) {
            let mut bits = w.live;
            while bits != 0 {
                each(64 * w.index + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }

    /// A group goes over other links from now on; its interfaces stay.
    pub fn reroute(&mut self, group: u32, path: Path) {
        debug_assert_eq!(self.ends[group as usize], [path.up(), path.down()]);
        if self.is_plain() {
            self.paths = self.ends.iter().map(|e| Path::new(e)).collect();
        }
        self.paths[group as usize] = path;
        self.links.clear();
        self.weighed = false;
    }

    /// Calls `each(group, interfaces)` for the live groups that may have room, in their order: those of a sender whose interface has
    /// nothing left, and those whose receiver's has not, are passed over. `each` may take from `free`.
    pub fn open_groups(&self, free: &mut Free, mut each: impl FnMut(&mut Free, u32, [u32; 2])) {
        if self.downs.iter().all(|w| w.live & free.open(w.index) == 0) {
            return;
        }
        for senders in &self.ups {
            for row in senders.numbers(senders.live & free.open(senders.index)) {
                let row = &self.rows[row as usize];
                'row: for word in &self.words[row.words.clone()] {
                    let mut may = word.live & free.open(word.index);
                    while may != 0 {
                        let bit = may & may.wrapping_neg();
                        may ^= bit;
                        let down = 64 * word.index + bit.trailing_zeros();
                        each(free, word.number(bit), [row.up, down]);
                        if free.left(row.up) == 0 {
                            break 'row;
                        }
                    }
                }
            }
        }
    }

    /// Calls `each(group)` for the live groups, in their order.
    pub fn live_groups(&self, mut each: impl FnMut(u32)) {
        for word in self.words.iter().filter(|w| w.live != 0) {
            word.each_live(|_, g| each(g));
        }
    }

    /// The links in use, by number, each with the bits that it has to carry, as of the last [`Demand::weigh`].
    pub fn loads(&self) -> impl Iterator<Item = (u32, u64)> + Clone + '_ {
        self.loads.iter().copied()
    }

    /// The groups that cross a link, those that are done included. Needs [`Demand::index`]. O(log links).
    pub fn members(&self, link: u32) -> &[u32] {
        let Ok(place) = self.links.binary_search_by_key(&link, |l| l.0) else { return &[] };
        let (_, a, b) = self.links[place];
        &self.members[a as usize..b as usize]
    }

    /// Makes [`Demand::loads`] right for what is left now. O(groups), or O(1) if nothing was sent since the last time.
    pub fn weigh(&mut self) {
        if std::mem::replace(&mut self.weighed, true) {
            return;
        }
        if self.is_plain() {
            self.loads = self.plain_loads();
            return;
        }
        self.index();
        let load = |&(l, a, b): &(u32, u32, u32)| {
            (l, self.members[a as usize..b as usize].iter().map(|&g| self.bits(g)).fold(0, u64::saturating_add))
        };
        self.loads = self.links.iter().map(load).collect();
    }

    /// The same where there are no links but interfaces.
    fn plain_loads(&self) -> Vec<(u32, u64)> {
        let mut into = vec![0u64; 64 * self.downs.len()];
        let mut loads = Vec::with_capacity(self.rows.len() + into.len());
        for row in &self.rows {
            let (mut sum, mut place) = (0u64, 0);
            for w in &self.words[row.words.clone()] {
                while self.downs[place].index != w.index {
                    place += 1;
                }
                let cells = &mut into[64 * place..64 * (place + 1)];
                w.each_live(|k, g| {
                    let bits = self.bits(g);
                    sum = sum.saturating_add(bits);
                    cells[k] = cells[k].saturating_add(bits);
                });
            }
            loads.push((row.up, sum));
        }
        for (w, cells) in self.downs.iter().zip(into.chunks(64)) {
            loads.extend((0..64).filter(|k| w.all >> k & 1 == 1).map(|k| (64 * w.index + k, cells[k as usize])));
        }
        loads.sort_unstable_by_key(|l| l.0);
        loads
    }

    /// Makes [`Demand::members`] ready. O(groups log links) if a path has changed, else O(1).
    pub fn index(&mut self) {
        if !self.links.is_empty() {
            return;
        }
        let crossed: Vec<Path> = (0..self.groups() as u32).map(|g| self.path(g)).collect();
        let mut links: Vec<u32> = crossed.iter().flat_map(|p| p.links().iter().copied()).collect();
        links.sort_unstable();
        let mut at = 0;
        for same in links.chunk_by(|a, b| a == b) {
            self.links.push((same[0], at, at));
            at += same.len() as u32;
        }
        self.members = vec![0; at as usize];
        for (g, path) in crossed.iter().enumerate() {
            for l in path.links() {
                let k = self.links.binary_search_by_key(l, |e| e.0).expect("listed above");
                let end = &mut self.links[k].2;
                self.members[*end as usize] = g as u32;
                *end += 1;
            }
        }
    }
}

/// The receivers of groups in their order, and by receiver the live senders, as bits in the order of `ups`.
fn columns(groups: &[Group], ups: &[Word]) -> (Vec<Word>, Vec<u64>) {
    let mut receivers: Vec<u32> = groups.iter().map(|g| g.path.down()).collect();
    receivers.sort_unstable();
    receivers.dedup();
    let mut downs = Vec::new();
    receivers.iter().enumerate().for_each(|(k, &l)| Word::push(&mut downs, l, k as u32, false));
    let (mut columns, width, mut place) = (vec![0u64; receivers.len() * ups.len()], ups.len(), 0);
    for g in groups.iter().filter(|g| g.left > 0) {
        let (up, down) = (g.path.up(), g.path.down());
        while ups[place].index != up / 64 {
            place += 1;
        }
        let receiver = downs.iter_mut().find(|w| w.index == down / 64).expect("listed above");
        receiver.live |= 1 << (down % 64);
        columns[receiver.number(1 << (down % 64)) as usize * width + place] |= 1 << (up % 64);
    }
    (downs, columns)
}
