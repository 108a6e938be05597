//! A value for each pair of racks: in a dense array, or, for many racks, only for the pairs that
//! were used.

use std::collections::HashMap;

use crate::demand::MOST_SIDE_BY_SIDE;

/// Number of racks up to which the array is dense: fewer in tests, whose networks are small.
const SIDE_BY_SIDE: usize = if cfg!(test) { 5 } else { MOST_SIDE_BY_SIDE };

/// Values by cell, row by row. It takes no memory before the first is used.
#[derive(Debug)]
pub struct CellTable<T> {
    racks: usize,
    all: Vec<T>,
    /// For look-ups only; it is never iterated.
    some: HashMap<usize, T>,
}

impl<T: Clone + Default> CellTable<T> {
    /// The default value for every pair of `racks` racks.
    pub fn new(racks: usize) -> Self {
        Self { racks, all: Vec::new(), some: HashMap::new() }
    }

    /// The value of a cell.
    #[inline]
    pub fn at(&mut self, cell: usize) -> &mut T {
        if self.racks > SIDE_BY_SIDE {
            return self.some.entry(cell).or_default();
        }
        if self.all.is_empty() {
            self.all = vec![T::default(); self.racks * self.racks];
        }
        &mut self.all[cell]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn it_is_a_list(racks in 1usize..9, adds in prop::collection::vec((0usize..81, 0u32..9), 0..30)) {
            let (mut table, mut list) = (CellTable::<u32>::new(racks), vec![0; racks * racks]);
            for (cell, by) in adds.into_iter().map(|(cell, by)| (cell % (racks * racks), by)) {
                *table.at(cell) += by;
                list[cell] += by;
                prop_assert_eq!(*table.at(cell), list[cell]);
            }
        }
    }
}
