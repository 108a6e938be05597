//! The cells of a matrix: all of them side by side; or, of many racks, only those that are not
//! zero, as long as these are few.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

#[cfg(feature = "serde")]
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Matrices of up to this number of racks have all cells side by side: 8 MB at most.
pub const MOST_SIDE_BY_SIDE: usize = 1024;

/// The same here: fewer in tests, whose networks are small.
const SIDE_BY_SIDE: usize = if cfg!(test) { 5 } else { MOST_SIDE_BY_SIDE };

/// Where fewer cells than one in this many are not zero, a list of them takes less memory than all.
const FEW: usize = 16;

/// The cells of a square matrix, by row and column.
#[derive(Clone, Debug)]
pub(super) enum Cells {
    /// All of them.
    All(Arc<Vec<u64>>),
    /// Those that are not zero.
    Few(Arc<Few>),
}

/// The cells that are not zero, of a matrix of many racks.
#[derive(Debug)]
pub(super) struct Few {
    racks: usize,
    some: BTreeMap<usize, u64>,
    /// All of them, once that was asked for.
    all: OnceLock<Vec<u64>>,
}

impl Clone for Few {
    fn clone(&self) -> Self {
        Self { racks: self.racks, some: self.some.clone(), all: OnceLock::new() }
    }
}

impl Few {
    fn all(&self) -> Vec<u64> {
        let mut all = vec![0; self.racks * self.racks];
        self.some.iter().for_each(|(&at, &bytes)| all[at] = bytes);
        all
    }
}

impl Cells {
    /// All zero.
    pub fn zero(racks: usize) -> Self {
        if racks > SIDE_BY_SIDE {
            Self::Few(Arc::new(Few { racks, some: BTreeMap::new(), all: OnceLock::new() }))
        } else {
            Self::All(Arc::new(vec![0; racks * racks]))
        }
    }

    /// How many there are, those that are zero included.
    pub fn count(&self) -> usize {
        match self {
            Self::All(cells) => cells.len(),
            Self::Few(few) => few.racks * few.racks,
        }
    }

    /// One of them.
    pub fn get(&self, at: usize) -> u64 {
        match self {
            Self::All(cells) => cells[at],
            Self::Few(few) => {
                assert!(at < few.racks * few.racks, "a cell of the matrix");
                few.some.get(&at).copied().unwrap_or(0)
            }
        }
    }

    /// Sets some of them.
    pub fn set(&mut self, entries: impl IntoIterator<Item = (usize, u64)>) {
        let mut entries = entries.into_iter();
        if let Self::Few(few) = self {
            let few = Arc::make_mut(few);
            few.all = OnceLock::new();
            let most = few.racks * few.racks / FEW;
            for (at, bytes) in entries.by_ref() {
                assert!(at < few.racks * few.racks, "a cell of the matrix");
                if bytes == 0 {
                    few.some.remove(&at)
                } else {
                    few.some.insert(at, bytes)
                };
                if few.some.len() > most {
                    break;
                }
            }
            if few.some.len() <= most {
                return;
            }
            *self = Self::All(Arc::new(few.all()));
        }
        let Self::All(cells) = self else { return };
        let cells = Arc::make_mut(cells);
        entries.for_each(|(at, bytes)| cells[at] = bytes);
    }

    /// All of them side by side. Of many racks they are put there when this is first asked for.
    pub fn all(&self) -> &[u64] {
        match self {
            Self::All(cells) => cells,
            Self::Few(few) => few.all.get_or_init(|| few.all()),
        }
    }

    /// Those of them that are kept as a list, if they are: all others are zero.
    pub fn few(&self) -> Option<&BTreeMap<usize, u64>> {
        match self {
            Self::All(_) => None,
            Self::Few(few) => Some(&few.some),
        }
    }
}

impl Default for Cells {
    fn default() -> Self {
        Self::zero(0)
    }
}

impl PartialEq for Cells {
    fn eq(&self, other: &Self) -> bool {
        match (self.few(), other.few()) {
            // Copies share their cells until one of them changes. Shared cells are equal, and none
            // needs to be compared.
            (None, None) => std::ptr::eq(self.all(), other.all()) || self.all() == other.all(),
            (Some(a), Some(b)) => a == b && self.count() == other.count(),
            (Some(few), None) => other.is(few, self.count()),
            (None, Some(few)) => self.is(few, other.count()),
        }
    }
}

impl Eq for Cells {}

impl Cells {
    /// Whether those that are not zero are these.
    fn is(&self, few: &BTreeMap<usize, u64>, count: usize) -> bool {
        let some = self.all().iter().copied().enumerate().filter(|c| c.1 > 0);
        self.count() == count && some.eq(few.iter().map(|(&at, &bytes)| (at, bytes)))
    }
}

#[cfg(feature = "serde")]
impl Serialize for Cells {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq((0..self.count()).map(|at| self.get(at)))
    }
}

#[cfg(feature = "serde")]
impl<'de> Deserialize<'de> for Cells {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self::All(Arc::new(Vec::deserialize(from)?)))
    }
}

#[cfg(test)]
mod tests {
    use crate::demand::DemandMatrix;
    use crate::ids::RackId;
    use proptest::prelude::*;

    /// Sets cells one by one or all at once; and the same on a list of all.
    fn both(racks: usize, sets: &[(usize, usize, u64)], at_once: bool) -> (DemandMatrix, Vec<u64>) {
        let (mut m, mut list) = (DemandMatrix::zero(racks), vec![0; racks * racks]);
        let sets: Vec<_> = sets.iter().map(|&(i, j, b)| (i % racks, j % racks, b)).collect();
        sets.iter().filter(|s| s.0 != s.1).for_each(|&(i, j, b)| list[i * racks + j] = b);
        let mut entries = sets.into_iter().map(|(i, j, b)| (RackId::from(i), RackId::from(j), b));
        if at_once {
            m.set_all(entries)
        } else {
            entries.by_ref().for_each(|(i, j, b)| m.set(i, j, b))
        }
        (m, list)
    }

    fn sets() -> impl Strategy<Value = Vec<(usize, usize, u64)>> {
        prop::collection::vec(
            (0usize..12, 0usize..12, prop_oneof![2 => Just(0u64), 4 => 1u64..9, 1 => any::<u64>()]),
            0..20,
        )
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn entries_are_the_same_one_by_one_and_all_in_one_go(
            racks in 1usize..40,
            zeros in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        ) {
            let mut cells: Vec<u64> = (0..racks * racks).map(|k| if k / racks == k % racks { 0 } else { k as u64 }).collect();
            zeros.iter().for_each(|z| *z.get_mut(&mut cells) = 0);
            let matrix = DemandMatrix::from_cells(racks, cells.clone());
            let some = cells.iter().enumerate().filter(|c| *c.1 > 0);
            let some: Vec<_> = some.map(|(k, &bytes)| (RackId::from(k / racks), RackId::from(k % racks), bytes)).collect();
            let mut entries = matrix.entries();
            let one_by_one: Vec<_> = std::iter::from_fn(|| entries.next()).collect();
            let mut in_one_go = Vec::new();
            matrix.entries().for_each(|e| in_one_go.push(e));
            prop_assert_eq!((&one_by_one, &in_one_go), (&some, &some));
        }

        /// Up to five racks all cells are kept, of more a list of few, then all once they are many.
        #[test]
        fn a_list_of_few_is_the_list_of_all(racks in 1usize..12, a in sets(), b in sets(), at_once: bool, look: bool) {
            let ((a, all_a), (b, all_b)) = (both(racks, &a, at_once), both(racks, &b, !at_once));
            if look {
                prop_assert_eq!(a.cells(), &all_a[..]);
            }
            for (k, &bytes) in all_a.iter().enumerate() {
                prop_assert_eq!(a.get(RackId::from(k / racks), RackId::from(k % racks)), bytes);
            }
            let some = all_a.iter().enumerate().filter(|c| *c.1 > 0);
            let some: Vec<_> = some.map(|(k, &bytes)| (RackId::from(k / racks), RackId::from(k % racks), bytes)).collect();
            prop_assert_eq!(a.entries().collect::<Vec<_>>(), some);
            prop_assert_eq!(a.is_zero(), all_a.iter().all(|&c| c == 0));
            prop_assert_eq!(a.total(), all_a.iter().fold(0u64, |sum, &c| sum.saturating_add(c)));
            prop_assert_eq!(a.cell_count(), all_a.len());
            prop_assert_eq!(a == b, all_a == all_b);
            let whole = |list: &[u64]| DemandMatrix::from_cells(racks, list.to_vec());
            prop_assert_eq!(&a, &whole(&all_a));
            prop_assert_eq!(whole(&all_a) == b, all_a == all_b);
            let since: Vec<u64> = all_a.iter().zip(&all_b).map(|(a, b)| a.saturating_sub(*b)).collect();
            prop_assert_eq!(a.since(&b), whole(&since));
            prop_assert_eq!(a.map(|c| c / 2), whole(&all_a.iter().map(|c| c / 2).collect::<Vec<_>>()));
            let text = serde_json::to_string(&a).unwrap();
            prop_assert_eq!(&text, &serde_json::to_string(&whole(&all_a)).unwrap());
            prop_assert_eq!(serde_json::from_str::<DemandMatrix>(&text).unwrap(), a.clone());
            let mut c = a.clone();
            c.clear();
            prop_assert!(c.is_zero() && c == DemandMatrix::zero(racks) && a == whole(&all_a));
        }
    }
}
