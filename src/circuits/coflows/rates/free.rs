//! What links have left.

use super::Path;

/// By link: capacity that no flow has been given yet, in bits per second; and as a set of bits
/// which links have any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeCapacity {
    left: Vec<u64>,
    open: Vec<u64>,
}

impl FreeCapacity {
    /// Links with all of these capacities left.
    pub fn new(capacity: &[u64]) -> Self {
        let mut f = Self { left: capacity.to_vec(), open: vec![0; capacity.len().div_ceil(64)] };
        for (l, &c) in capacity.iter().enumerate() {
            f.open[l / 64] |= u64::from(c > 0) << (l % 64);
        }
        f
    }

    /// Number of links.
    pub fn links(&self) -> usize {
        self.left.len()
    }

    /// What a link has left.
    pub fn left(&self, link: u32) -> u64 {
        self.left[link as usize]
    }

    /// Sets what a link has left.
    pub fn set(&mut self, link: u32, left: u64) {
        self.left[link as usize] = left;
        let (word, bit) = (&mut self.open[link as usize / 64], 1 << (link % 64));
        *word = if left > 0 { *word | bit } else { *word & !bit };
    }

    /// The links `64 * word ..` that have something left, as bits.
    pub fn open(&self, word: u32) -> u64 {
        self.open[word as usize]
    }

    /// What the links `64 * word ..` have left. [`FreeCapacity::refresh`] must follow before
    /// [`FreeCapacity::open`] is asked.
    pub fn cells(&mut self, word: u32) -> &mut [u64] {
        let from = 64 * word as usize;
        let to = self.left.len().min(from + 64);
        &mut self.left[from..to]
    }

    /// Finds out again which of the links `64 * word ..` have something left.
    pub fn refresh(&mut self, word: u32) {
        let bits = self.cells(word).iter().enumerate().map(|(k, &left)| u64::from(left > 0) << k);
        self.open[word as usize] = bits.fold(0, |a, b| a | b);
    }

    /// The most that a flow over `path` can still be given.
    pub fn room(&self, path: &Path) -> u64 {
        path.links().iter().map(|&l| self.left[l as usize]).min().unwrap_or(0)
    }

    /// Gives a flow over `path` a rate, at most its [`FreeCapacity::room`].
    pub fn take(&mut self, path: &Path, rate: u64) {
        for &l in path.links() {
            self.take_link(l, rate);
        }
    }

    /// Gives away a part of one link.
    pub fn take_link(&mut self, link: u32, rate: u64) {
        let left = &mut self.left[link as usize];
        *left -= rate;
        self.open[link as usize / 64] &= !(u64::from(*left == 0) << (link % 64));
    }

    /// Takes a rate back.
    pub fn give(&mut self, path: &Path, rate: u64) {
        for &l in path.links() {
            self.give_link(l, rate);
        }
    }

    /// Takes a part of one link back.
    pub fn give_link(&mut self, link: u32, rate: u64) {
        let left = &mut self.left[link as usize];
        *left += rate;
        self.open[link as usize / 64] |= u64::from(*left > 0) << (link % 64);
    }
}
