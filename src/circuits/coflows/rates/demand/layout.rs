//! Which group is between which two interfaces.

use super::words::{LinkWord, SenderCell, bit};

/// Groups by their interfaces, in the order of senders, then receivers.
#[derive(Clone, Debug)]
pub enum GroupLayout {
    /// Any groups: the interfaces of each; and its groups by row, then by word of receivers.
    Each { ends: Vec<[u32; 2]>, cells: Vec<SenderCell> },
    /// Every sender has a group to every receiver: only their interfaces need be known.
    Grid { ups: Vec<u32>, downs: Vec<u32> },
}

impl Default for GroupLayout {
    fn default() -> Self {
        Self::Grid { ups: Vec::new(), downs: Vec::new() }
    }
}

impl GroupLayout {
    /// Of groups between these interfaces, which are in their order, each pair once. O(groups).
    pub fn of(ends: Vec<[u32; 2]>, downs: &[LinkWord]) -> Self {
        let rows = || ends.chunk_by(|a, b| a[0] == b[0]);
        let columns: u32 = downs.iter().map(|w| w.all.count_ones()).sum();
        if rows().count() * columns as usize == ends.len() {
            return Self::Grid {
                ups: rows().map(|same| same[0][0]).collect(),
                downs: ends.iter().take(columns as usize).map(|e| e[1]).collect(),
            };
        }
        let mut cells = vec![SenderCell::default(); rows().count() * downs.len()];
        let mut group = 0;
        for (row, same) in rows().enumerate() {
            for [_, down] in same {
                let cell = &mut cells[row * downs.len()
                    + LinkWord::place(downs, down / 64).expect("it is one of them")];
                if cell.all == 0 {
                    cell.base = group;
                }
                cell.all |= bit(*down);
                group += 1;
            }
        }
        Self::Each { ends, cells }
    }

    /// How many groups there are.
    pub fn groups(&self) -> usize {
        match self {
            Self::Each { ends, .. } => ends.len(),
            Self::Grid { ups, downs } => ups.len() * downs.len(),
        }
    }

    /// Sender's and receiver's interface of a group.
    #[inline]
    pub fn ends(&self, group: u32) -> [u32; 2] {
        match self {
            Self::Each { ends, .. } => ends[group as usize],
            Self::Grid { ups, downs } => {
                let columns = downs.len() as u32;
                [ups[(group / columns) as usize], downs[(group % columns) as usize]]
            }
        }
    }

    /// The groups of a row to the receivers of a word, which is the `place`th of them.
    #[inline]
    pub fn cell(&self, row: usize, place: usize, words: &[LinkWord]) -> SenderCell {
        match self {
            Self::Each { cells, .. } => cells[row * words.len() + place],
            Self::Grid { downs, .. } => SenderCell {
                all: words[place].all,
                base: (row * downs.len()) as u32 + words[place].base,
            },
        }
    }
}
