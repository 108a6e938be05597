//! A set of small numbers.

/// Numbers as bits. Iteration costs one step for each number and for each 64 of the largest one.
#[derive(Debug, Default)]
pub struct BitSet {
    words: Vec<u64>,
}

impl BitSet {
    /// Adds a number.
    pub fn insert(&mut self, k: u32) {
        let word = k as usize / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (k % 64);
    }

    /// Takes a number out.
    pub fn remove(&mut self, k: u32) {
        if let Some(word) = self.words.get_mut(k as usize / 64) {
            *word &= !(1 << (k % 64));
        }
    }

    /// Whether a number is in it.
    pub fn contains(&self, k: u32) -> bool {
        self.words.get(k as usize / 64).is_some_and(|word| word >> (k % 64) & 1 == 1)
    }

    /// Calls `f` for the numbers in order; faster than [`BitSet::iter`].
    pub fn each(&self, mut f: impl FnMut(u32)) {
        for (&word, at) in self.words.iter().zip(0u32..) {
            let mut word = word;
            while word != 0 {
                f(64 * at + word.trailing_zeros());
                word &= word - 1;
            }
        }
    }

    /// Removes all numbers, calling `f` for each in order.
    pub fn drain(&mut self, f: impl FnMut(u32)) {
        self.each(f);
        self.words.fill(0);
    }

    /// The numbers, in their order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().zip(0u32..).flat_map(|(&word, at)| {
            let mut word = word;
            std::iter::from_fn(move || {
                let k = (word != 0).then(|| 64 * at + word.trailing_zeros());
                word &= word.wrapping_sub(1);
                k
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn it_is_a_set(steps in prop::collection::vec((0u32..200, any::<bool>()), 0..60)) {
            let (mut numbers, mut set) = (BitSet::default(), std::collections::BTreeSet::new());
            for (k, add) in steps {
                prop_assert_eq!(numbers.contains(k), set.contains(&k));
                if add {
                    numbers.insert(k);
                    set.insert(k);
                } else {
                    numbers.remove(k);
                    set.remove(&k);
                }
                prop_assert!(numbers.iter().eq(set.iter().copied()));
                let mut passed = Vec::new();
                numbers.each(|k| passed.push(k));
                prop_assert!(passed.into_iter().eq(set.iter().copied()));
            }
            let mut drained = Vec::new();
            numbers.drain(|k| drained.push(k));
            prop_assert!(drained.into_iter().eq(set.iter().copied()));
            prop_assert_eq!(numbers.iter().next(), None);
        }
    }
}
