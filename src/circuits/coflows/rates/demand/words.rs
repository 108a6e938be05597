//! Senders, receivers and groups as bits, those of 64 neighbouring links in a word.

/// A set of numbered things, senders or receivers, by their link: those among 64 neighbouring
/// links.
#[derive(Clone, Copy, Debug)]
pub struct LinkWord {
    /// The links are `64 * index ..`.
    pub index: u32,
    /// Number of the thing of the lowest bit of `all`.
    pub base: u32,
    /// Links that have a thing, a bit each.
    pub all: u64,
    /// Links whose thing has live groups, a bit each.
    pub live: u64,
}

impl LinkWord {
    /// One thing for every link of these, numbered in the order of links; none has live groups.
    /// O(links given + the largest of them).
    pub fn of(links: impl Iterator<Item = u32>) -> Vec<Self> {
        let mut marks: Vec<u64> = Vec::new();
        for link in links {
            let index = link as usize / 64;
            if marks.len() <= index {
                marks.resize(index + 1, 0);
            }
            marks[index] |= bit(link);
        }
        let word = |base: &mut u32, (index, all): (u32, u64)| {
            let from = *base;
            *base += all.count_ones();
            Some(Self { index, base: from, all, live: 0 })
        };
        (0u32..).zip(marks).scan(0, word).filter(|w| w.all != 0).collect()
    }

    /// The lowest link that has a thing.
    pub fn first(&self) -> u32 {
        64 * self.index + self.all.trailing_zeros()
    }

    /// The highest link that has a thing.
    pub fn last(&self) -> u32 {
        64 * self.index + 63 - self.all.leading_zeros()
    }

    /// The number of the thing at this bit, which must be one of all.
    pub fn number(&self, bit: u64) -> u32 {
        self.base + (self.all & (bit - 1)).count_ones()
    }

    /// Where the word of this index is in a list.
    pub fn place(words: &[Self], index: u32) -> Option<usize> {
        // Links are neighbours as a rule: then no index is left out.
        let likely = index.checked_sub(words.first()?.index)? as usize;
        let is_there = words.get(likely).is_some_and(|w| w.index == index);
        if is_there { Some(likely) } else { words.iter().position(|w| w.index == index) }
    }

    /// The number of the thing of this link in a list of words, if it is there and has live groups.
    pub fn find(words: &[Self], link: u32) -> Option<u32> {
        let word = &words[Self::place(words, link / 64)?];
        (word.live & bit(link) != 0).then(|| word.number(bit(link)))
    }

    /// The numbers of the things at these bits.
    pub fn numbers(self, mut bits: u64) -> impl Iterator<Item = u32> {
        std::iter::from_fn(move || {
            let bit = bits & bits.wrapping_neg();
            bits ^= bit;
            (bit != 0).then(|| self.number(bit))
        })
    }
}

/// The bit of a link in its word.
pub fn bit(link: u32) -> u64 {
    1 << (link % 64)
}

/// The groups of a sender to the receivers of a word.
#[derive(Clone, Copy, Debug, Default)]
pub struct SenderCell {
    /// Their receivers.
    pub all: u64,
    /// Number of the first of them.
    pub base: u32,
}

impl SenderCell {
    /// The number of the group to the receiver at this bit, which must be one of all.
    pub fn number(&self, bit: u64) -> u32 {
        self.base + (self.all & (bit - 1)).count_ones()
    }

    /// Calls `each(receiver in the word, number)` for those of `live`.
    pub fn each(self, live: u64, mut each: impl FnMut(usize, u32)) {
        if live == 0 {
            return;
        }
        let (mut all, mut number) = (self.all, self.base);
        while all != 0 {
            let k = all.trailing_zeros();
            if live >> k & 1 == 1 {
                each(k as usize, number);
            }
            all &= all - 1;
            number += 1;
        }
    }
}
