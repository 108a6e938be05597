//! Units by group, in half of the memory where that is enough.

/// Units by number: in 64 bits each as long as all fit, which at a nanosecond's grain is up to 2.3
/// GB of a flow.
#[derive(Clone, Debug)]
pub enum Amounts {
    /// Every amount is below 2^64.
    Narrow(Vec<u64>),
    /// At least one amount is not.
    Wide(Vec<u128>),
}

impl Default for Amounts {
    fn default() -> Self {
        Self::Narrow(Vec::new())
    }
}

impl Amounts {
    /// No amounts. Memory for `n` of them is taken at once, so that a list of millions is not
    /// copied while it grows.
    pub fn with_capacity(n: usize) -> Self {
        Self::Narrow(Vec::with_capacity(n))
    }

    /// Appends the amount of the next number.
    pub fn push(&mut self, units: u128) {
        match (&mut *self, u64::try_from(units)) {
            (Self::Narrow(all), Ok(units)) => all.push(units),
            (Self::Wide(all), _) => all.push(units),
            (Self::Narrow(all), Err(_)) => {
                let mut wide = Vec::with_capacity(all.capacity());
                wide.extend(all.iter().map(|&u| u128::from(u)).chain([units]));
                *self = Self::Wide(wide);
            }
        }
    }

    /// Gives back memory that was taken for more amounts than came.
    pub fn shrink_to_fit(&mut self) {
        match self {
            Self::Narrow(all) => all.shrink_to_fit(),
            Self::Wide(all) => all.shrink_to_fit(),
        }
    }

    /// The units of a number.
    #[inline]
    pub fn of(&self, k: u32) -> u128 {
        match self {
            Self::Narrow(all) => all[k as usize].into(),
            Self::Wide(all) => all[k as usize],
        }
    }

    /// Takes `units` away from a number, at most all that it has. Returns the units that it had
    /// before.
    #[inline]
    pub fn take(&mut self, k: u32, units: u128) -> u128 {
        match self {
            Self::Narrow(all) => {
                let one = &mut all[k as usize];
                let had = *one;
                *one = had.saturating_sub(u64::try_from(units).unwrap_or(u64::MAX));
                had.into()
            }
            Self::Wide(all) => {
                let one = &mut all[k as usize];
                std::mem::replace(one, one.saturating_sub(units))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn they_are_a_plain_list(
            units in prop::collection::vec((0u32..129).prop_flat_map(|bits| 0..=u128::MAX.checked_shr(128 - bits).unwrap_or(0)), 1..9),
            taken in prop::collection::vec((0usize..9, 0u32..129), 0..9),
        ) {
            let (mut all, mut plain) = (Amounts::with_capacity(2), units.clone());
            units.iter().for_each(|&u| all.push(u));
            prop_assert_eq!(matches!(all, Amounts::Narrow(_)), units.iter().all(|&u| u <= u64::MAX.into()));
            for (k, bits) in taken {
                let (k, units) = (k % plain.len(), u128::MAX.checked_shr(128 - bits).unwrap_or(0));
                prop_assert_eq!(all.take(k as u32, units), plain[k]);
                plain[k] = plain[k].saturating_sub(units);
            }
            prop_assert!(plain.iter().enumerate().all(|(k, &u)| all.of(k as u32) == u));
        }
    }
}
