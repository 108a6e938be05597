//! What one coflow still has to send, laid out so that each rule finds what it asks for without
//! looking at every flow.

use super::{FreeCapacity, Path};
use crate::units::NANOS;

mod amounts;
mod layout;
mod levels;
mod loads;
mod words;

pub use levels::{CoflowLevels, Deltas, LevelsScratch};

use amounts::Amounts;
use layout::GroupLayout;
use loads::DemandLoads;
use words::{LinkWord, SenderCell, bit};

/// Bytes of a coflow from one host to another: its flows between the same two hosts count as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostGroup {
    /// Its links.
    pub path: Path,
    /// What it still has to send: bits per second times nanoseconds, as [`Demand::bits`] rounds up
    /// to bits. Zero: done.
    pub left: u128,
}

/// A sender.
#[derive(Clone, Debug)]
struct SenderRow {
    up: u32,
    /// How many of its groups are live.
    live: u32,
}

/// The groups of a coflow.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    /// By group: what it still has to send.
    left: Amounts,
    /// Which group is between which interfaces.
    layout: GroupLayout,
    /// By group: all its links; empty if no group has others than its two interfaces.
    paths: Vec<Path>,
    rows: Vec<SenderRow>,
    /// Rows by their senders' interfaces.
    ups: Vec<LinkWord>,
    /// Columns by their receivers' interfaces.
    downs: Vec<LinkWord>,
    /// By row, then as in `downs`: which of its groups have something to send.
    to: Vec<u64>,
    /// By column, then as in `ups`: which senders have something to send to this receiver.
    from: Vec<u64>,
    live: usize,
    /// Links in use, and the ranges of their groups in `members`; empty until they are asked for.
    links: Vec<(u32, u32, u32)>,
    members: Vec<u32>,
    /// What links have to carry, at the last [`Demand::weigh`].
    loads: DemandLoads,
}

impl Demand {
    /// From groups in the order of their senders' and then their receivers' interfaces, each pair
    /// once. O(groups + senders x receivers / 64).
    ///
    /// # Panics
    /// If they are in another order.
    pub fn new(groups: impl IntoIterator<Item = HostGroup>) -> Self {
        let groups = groups.into_iter();
        let many = groups.size_hint().1.unwrap_or(0);
        let (mut left, mut ends, mut paths) =
            (Amounts::with_capacity(many), Vec::with_capacity(many), Vec::new());
        for HostGroup { path, left: units } in groups {
            let plain = path.links().len() == 2;
            if !plain && paths.is_empty() {
                paths = ends.iter().map(|e: &[u32; 2]| Path::new(e)).collect();
            }
            if !plain || !paths.is_empty() {
                paths.push(path);
            }
            left.push(units);
            ends.push([path.up(), path.down()]);
        }
        left.shrink_to_fit();
        assert!(ends.is_sorted_by(|a, b| a < b), "groups in order, each pair once");
        let downs = LinkWord::of(ends.iter().map(|e| e[1]));
        let mut demand = Self {
            left,
            paths,
            rows: ends
                .chunk_by(|a, b| a[0] == b[0])
                .map(|same| SenderRow { up: same[0][0], live: 0 })
                .collect(),
            ups: LinkWord::of(ends.iter().map(|e| e[0])),
            layout: GroupLayout::of(ends, &downs),
            downs,
            ..Self::default()
        };
        demand.open_all();
        demand
    }

    /// Finds out which groups have something to send.
    fn open_all(&mut self) {
        let columns: u32 = self.downs.iter().map(|w| w.all.count_ones()).sum();
        self.to = vec![0; self.rows.len() * self.downs.len()];
        self.from = vec![0; columns as usize * self.ups.len()];
        let mut row = 0;
        for g in 0..self.groups() as u32 {
            let ends = self.ends(g);
            row += usize::from(self.rows[row].up != ends[0]);
            if self.left(g) > 0 {
                let place = LinkWord::place(&self.downs, ends[1] / 64).expect("it is one of them");
                self.open(row, place, ends);
            }
        }
    }

    /// The group of this row and this word of receivers, between these interfaces, has something to
    /// send.
    fn open(&mut self, row: usize, place: usize, [up, down]: [u32; 2]) {
        self.live += 1;
        self.rows[row].live += 1;
        self.to[row * self.downs.len() + place] |= bit(down);
        let receiver = &mut self.downs[place];
        receiver.live |= bit(down);
        let (column, sender) = (
            receiver.number(bit(down)) as usize,
            LinkWord::place(&self.ups, up / 64).expect("it is one of them"),
        );
        self.ups[sender].live |= bit(up);
        self.from[column * self.ups.len() + sender] |= bit(up);
    }

    /// How many groups there are, those that are done included.
    pub fn groups(&self) -> usize {
        self.layout.groups()
    }

    /// What a group still has to send.
    pub fn left(&self, group: u32) -> u128 {
        self.left.of(group)
    }

    /// Whether no path has more links than the two interfaces.
    pub fn is_plain(&self) -> bool {
        self.paths.is_empty()
    }

    /// The links of a group.
    pub fn path(&self, group: u32) -> Path {
        if self.is_plain() { Path::new(&self.ends(group)) } else { self.paths[group as usize] }
    }

    /// A group gives back a rate.
    pub fn give(&self, group: u32, rate: u64, free: &mut FreeCapacity) {
        self.ends(group).iter().for_each(|&l| free.give_link(l, rate));
        if !self.is_plain() {
            self.paths[group as usize].links()[2..].iter().for_each(|&l| free.give_link(l, rate));
        }
    }

    /// A group takes a rate.
    pub fn take(&self, group: u32, rate: u64, free: &mut FreeCapacity) {
        self.ends(group).iter().for_each(|&l| free.take_link(l, rate));
        if !self.is_plain() {
            self.paths[group as usize].links()[2..].iter().for_each(|&l| free.take_link(l, rate));
        }
    }

    /// Every live group takes the rate that `rate(group)` says. O(groups).
    pub fn take_all(&self, free: &mut FreeCapacity, mut rate: impl FnMut(u32) -> u64) {
        if !self.is_plain() {
            return self.live_groups(|g| self.take(g, rate(g), free));
        }
        for (r, row) in self.rows.iter().enumerate().filter(|r| r.1.live > 0) {
            let mut sum = 0;
            self.each_cell(r, |receivers, cell, live| {
                let left = free.cells(receivers.index);
                cell.each(live, |k, g| {
                    let rate = rate(g);
                    sum += rate;
                    left[k] -= rate;
                });
            });
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
        Self::whole_bits(self.left.of(group))
    }

    /// Units in whole bits, rounded up.
    pub fn whole_bits(units: u128) -> u64 {
        let up = units + u128::from(NANOS - 1);
        // Of the factors 2^9 and 5^9 of a second's nanoseconds the first is a shift; then 64 bits
        // nearly always do.
        match u64::try_from(up >> 9) {
            Ok(small) => small / (NANOS >> 9),
            Err(_) => u64::try_from(up / u128::from(NANOS)).unwrap_or(u64::MAX),
        }
    }

    /// Up to `n` groups are about to send something: [`Demand::sent`] of many takes less time after
    /// this.
    pub fn expect(&mut self, n: usize) {
        self.loads.expect(n);
    }

    /// A group sent `units` (or all that it had left). Returns what it did not need of them, or
    /// `None` if it goes on.
    #[inline]
    pub fn sent(&mut self, group: u32, units: u128) -> Option<u128> {
        if self.loads.counts(group) {
            self.loads.note(group, self.bits(group));
        }
        let left = self.left.take(group, units);
        if units < left {
            return None;
        }
        if left > 0 {
            self.close(self.ends(group));
        }
        Some(units - left)
    }

    /// The group between these interfaces is done.
    fn close(&mut self, [up, down]: [u32; 2]) {
        self.live -= 1;
        let place = |words, link| LinkWord::place(words, link / 64).expect("it is one of them");
        let (from, to) = (place(&self.ups, up), place(&self.downs, down));
        let sender = &mut self.ups[from];
        let row = sender.number(bit(up)) as usize;
        self.to[row * self.downs.len() + to] &= !bit(down);
        self.rows[row].live -= 1;
        sender.live &= !(u64::from(self.rows[row].live == 0) << (up % 64));
        let (width, receiver) = (self.ups.len(), &mut self.downs[to]);
        let column = receiver.number(bit(down)) as usize;
        let senders = &mut self.from[column * width..(column + 1) * width];
        senders[from] &= !bit(up);
        receiver.live &= !(u64::from(senders.iter().all(|&w| w == 0)) << (down % 64));
    }

    /// Calls `each(receivers, groups, which of them are live)` for the words of receivers of a row.
    fn each_cell(&self, row: usize, mut each: impl FnMut(&LinkWord, SenderCell, u64)) {
        let own = &self.to[row * self.downs.len()..(row + 1) * self.downs.len()];
        self.downs
            .iter()
            .zip(own)
            .enumerate()
            .for_each(|(place, (w, &live))| each(w, self.cell(row, place), live));
    }

    /// Of the sender at an interface the first live group that `pick(word, its receivers with live
    /// groups, as bits)` picks by its bit, and its receiver's interface; zero: none of this word.
    #[inline]
    pub fn first_in_row(
        &self,
        up: u32,
        mut pick: impl FnMut(u32, u64) -> u64,
    ) -> Option<(u32, u32)> {
        let (row, width) = (LinkWord::find(&self.ups, up)? as usize, self.downs.len());
        for (place, (receivers, &live)) in
            self.downs.iter().zip(&self.to[row * width..(row + 1) * width]).enumerate()
        {
            let bit = pick(receivers.index, live);
            if bit != 0 {
                return Some((
                    64 * receivers.index + bit.trailing_zeros(),
                    self.cell(row, place).number(bit),
                ));
            }
        }
        None
    }

    /// The same of the receiver at an interface, with its sender's interface.
    #[inline]
    pub fn first_in_column(
        &self,
        down: u32,
        mut pick: impl FnMut(u32, u64) -> u64,
    ) -> Option<(u32, u32)> {
        let (column, width) = (LinkWord::find(&self.downs, down)? as usize, self.ups.len());
        for (senders, &live) in
            self.ups.iter().zip(&self.from[column * width..(column + 1) * width])
        {
            let bit = pick(senders.index, live);
            if bit != 0 {
                let cell = self
                    .cell(senders.number(bit) as usize, LinkWord::place(&self.downs, down / 64)?);
                return Some((
                    64 * senders.index + bit.trailing_zeros(),
                    cell.number(words::bit(down)),
                ));
            }
        }
        None
    }

    /// Sender's and receiver's interface of a group.
    #[inline]
    pub fn ends(&self, group: u32) -> [u32; 2] {
        self.layout.ends(group)
    }

    /// The groups of a row to the receivers of the word at a place in `downs`.
    #[inline]
    fn cell(&self, row: usize, place: usize) -> SenderCell {
        self.layout.cell(row, place, &self.downs)
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
        debug_assert_eq!(self.ends(group), [path.up(), path.down()]);
        if self.is_plain() {
            self.paths = (0..self.groups() as u32).map(|g| Path::new(&self.ends(g))).collect();
        }
        self.paths[group as usize] = path;
        self.links.clear();
        self.loads.forget();
    }

    /// Calls `each(group, interfaces)` for the live groups that may have room, in their order:
    /// those of a sender whose interface has nothing left, and those whose receiver's has not, are
    /// passed over. `each` may take from `free`.
    pub fn open_groups(
        &self,
        free: &mut FreeCapacity,
        mut each: impl FnMut(&mut FreeCapacity, u32, [u32; 2]),
    ) {
        if self.downs.iter().all(|w| w.live & free.open(w.index) == 0) {
            return;
        }
        for senders in &self.ups {
            for row in senders.numbers(senders.live & free.open(senders.index)) {
                let (up, from) = (self.rows[row as usize].up, row as usize * self.downs.len());
                'row: for (place, receivers) in self.downs.iter().enumerate() {
                    let mut may = self.to[from + place] & free.open(receivers.index);
                    while may != 0 {
                        let bit = may & may.wrapping_neg();
                        may ^= bit;
                        let down = 64 * receivers.index + bit.trailing_zeros();
                        each(free, self.cell(row as usize, place).number(bit), [up, down]);
                        if free.left(up) == 0 {
                            break 'row;
                        }
                    }
                }
            }
        }
    }

    /// Calls `each(group)` for the live groups, in their order.
    pub fn live_groups(&self, mut each: impl FnMut(u32)) {
        for row in (0..self.rows.len()).filter(|&row| self.rows[row].live > 0) {
            self.each_cell(row, |_, cell, live| cell.each(live, |_, g| each(g)));
        }
    }

    /// The links in use, by number, each with the bits that it has to carry, at the last
    /// [`Demand::weigh`].
    pub fn loads(&self) -> impl Iterator<Item = (u32, u64)> + Clone + '_ {
        self.loads.iter()
    }

    /// The groups that cross a link, those that are done included. Needs [`Demand::index`]. O(log
    /// links).
    pub fn members(&self, link: u32) -> &[u32] {
        let Ok(place) = self.links.binary_search_by_key(&link, |l| l.0) else { return &[] };
        let (_, a, b) = self.links[place];
        &self.members[a as usize..b as usize]
    }

    /// Makes [`Demand::loads`] right for what is left now. O(groups that have sent something since
    /// the last time), or O(groups) if those are many.
    pub fn weigh(&mut self) {
        if self.loads.are_kept() {
            let mut loads = std::mem::take(&mut self.loads);
            loads.renew(|g| (self.bits(g), self.sides(g)));
            self.loads = loads;
            return;
        }
        if self.is_plain() {
            // Senders' interfaces come before receivers', as a rule: then the place of either is
            // its number.
            let apart =
                self.ups.last().zip(self.downs.first()).is_some_and(|(u, d)| u.last() < d.first());
            self.loads.set(self.plain_loads(), if apart { self.groups() } else { 0 });
            return;
        }
        self.index();
        let load = |&(l, a, b): &(u32, u32, u32)| {
            (
                l,
                self.members[a as usize..b as usize]
                    .iter()
                    .map(|&g| self.bits(g))
                    .fold(0, u64::saturating_add),
            )
        };
        self.loads.set(self.links.iter().map(load).collect(), 0);
    }

    /// The places of a group's interfaces among all in use, where senders' come before receivers'.
    fn sides(&self, group: u32) -> [usize; 2] {
        let [up, down] = self.ends(group);
        let of = |words: &[LinkWord], link: u32| {
            let word = &words[LinkWord::place(words, link / 64).expect("it is one of them")];
            word.number(bit(link)) as usize
        };
        [of(&self.ups, up), self.rows.len() + of(&self.downs, down)]
    }

    /// The same where there are no links but interfaces.
    fn plain_loads(&self) -> Vec<(u32, u64)> {
        let mut into = vec![0u64; 64 * self.downs.len()];
        let mut loads = Vec::with_capacity(self.rows.len() + into.len());
        for (r, row) in self.rows.iter().enumerate() {
            let (mut sum, mut words) = (0u64, into.chunks_mut(64));
            self.each_cell(r, |_, cell, live| {
                let into = words.next().expect("as many as words of receivers");
                cell.each(live, |k, g| {
                    let bits = self.bits(g);
                    sum = sum.saturating_add(bits);
                    into[k] = into[k].saturating_add(bits);
                });
            });
            loads.push((row.up, sum));
        }
        for (w, cells) in self.downs.iter().zip(into.chunks(64)) {
            loads.extend(
                (0..64)
                    .filter(|k| w.all >> k & 1 == 1)
                    .map(|k| (64 * w.index + k, cells[k as usize])),
            );
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
