//! What links have to carry, brought up to date by what has changed.

/// By link in use: bits to carry. They are counted again where that takes less than to note what
/// changes.
#[derive(Clone, Debug, Default)]
pub struct DemandLoads {
    /// By link.
    of: Vec<(u32, u64)>,
    /// Whether they are right but for `changed`.
    kept: bool,
    /// Groups that have sent something since, with the bits that count for them in `of`.
    changed: Vec<(u32, u64)>,
    /// By group, a bit each: whether it is among those.
    is_changed: Vec<u64>,
    /// The most of them that are noted; zero: none, any change makes all out of date.
    most: usize,
}

impl DemandLoads {
    /// The links by number, each with its bits.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> + Clone + '_ {
        self.of.iter().copied()
    }

    /// Whether a change of this group must be noted.
    #[inline]
    pub fn counts(&self, group: u32) -> bool {
        self.kept
            && (self.most == 0 || self.is_changed[group as usize / 64] >> (group % 64) & 1 == 0)
    }

    /// A group that counts with these bits will have fewer.
    pub fn note(&mut self, group: u32, bits: u64) {
        if self.changed.len() >= self.most {
            return self.forget();
        }
        self.is_changed[group as usize / 64] |= 1 << (group % 64);
        self.changed.push((group, bits));
    }

    /// Up to `n` groups are about to change. Nothing is noted of them if they are too many.
    pub fn expect(&mut self, n: usize) {
        if self.kept && self.changed.len() + n > self.most {
            self.forget();
        }
    }

    /// The bits are out of date: all groups must be counted again.
    pub fn forget(&mut self) {
        self.kept = false;
        self.changed.clear();
    }

    /// Whether the bits are right once the noted groups are counted again.
    pub fn are_kept(&self) -> bool {
        self.kept
    }

    /// Takes the bits of all links, which were counted this instant. Up to an eighth of `groups`
    /// groups that change are noted from here on, since counting only those again is cheaper than
    /// counting all; with zero, any change makes the bits out of date.
    pub fn set(&mut self, of: Vec<(u32, u64)>, groups: usize) {
        // A sum that is cut off cannot be reduced.
        self.most = if of.iter().all(|l| l.1 < u64::MAX) { groups / 8 } else { 0 };
        (self.of, self.kept) = (of, true);
        self.changed.clear();
        self.is_changed.clear();
        self.is_changed.resize(groups.div_ceil(64), 0);
    }

    /// Counts what has changed: `now(group)` says its bits and the places of its two links.
    pub fn renew(&mut self, now: impl Fn(u32) -> (u64, [usize; 2])) {
        for (group, before) in self.changed.drain(..) {
            self.is_changed[group as usize / 64] &= !(1 << (group % 64));
            let (bits, places) = now(group);
            places.into_iter().for_each(|k| self.of[k].1 -= before - bits);
        }
    }
}
