//! How many bytes of a shuffle go from which task to which: exact, and summed without looking at
//! every pair.
//!
//! `bytes` of M senders and N receivers are spread evenly over the M N pairs; what does not divide
//! goes to the first pairs in the order of sender, then receiver, one byte each. So the sender m <
//! `full` gives every receiver one byte more, and the sender `full` gives one more to the first
//! `part` receivers. A set of senders is summed up by three numbers ([`Senders`]), a set of
//! receivers by two ([`Receivers`]), and the bytes between two sets by one formula; over all pairs
//! they add up to `bytes`.
//!
//! Where receivers have shares of their own, each gets its bytes evenly from all senders, and what
//! does not divide by M from the first one.

use std::sync::Arc;

/// The spread of one shuffle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShuffleSpread {
    base: u64,
    full: u32,
    part: u32,
    /// By receiver, where they differ: bytes from each sender, and more from the first.
    own: Option<Arc<[(u64, u64)]>>,
}

/// A set of senders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Senders {
    count: u64,
    below_full: u64,
    has_part: u64,
    has_first: u64,
}

/// A set of receivers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receivers {
    count: u64,
    below_part: u64,
    each: u64,
    more: u64,
}

impl ShuffleSpread {
    /// A spread of `bytes` over `senders` x `receivers` pairs, both at least one.
    pub fn new(bytes: u64, senders: u32, receivers: u32) -> Self {
        let pairs = u64::from(senders) * u64::from(receivers);
        let more = bytes % pairs;
        let n = u64::from(receivers);
        Self { base: bytes / pairs, full: (more / n) as u32, part: (more % n) as u32, own: None }
    }

    /// A spread of these bytes by receiver, each from at least one sender. O(receivers).
    pub fn by_receiver(bytes: &[u64], senders: u32) -> Self {
        let m = u64::from(senders);
        Self {
            base: 0,
            full: 0,
            part: 0,
            own: Some(bytes.iter().map(|b| (b / m, b % m)).collect()),
        }
    }

    /// Adds sender `m` to a set.
    pub fn send(&self, set: &mut Senders, m: u32) {
        set.count += 1;
        set.below_full += u64::from(m < self.full);
        set.has_part += u64::from(m == self.full);
        set.has_first += u64::from(m == 0);
    }

    /// Adds receiver `n` to a set.
    pub fn receive(&self, set: &mut Receivers, n: u32) {
        set.count += 1;
        set.below_part += u64::from(n < self.part);
        if let Some((each, more)) = self.own.as_ref().map(|own| own[n as usize]) {
            set.each += each;
            set.more += more;
        }
    }

    /// All bytes that receiver `n` gets from `senders` senders. O(1).
    pub fn all_to(&self, senders: u32, n: u32) -> u64 {
        let (mut from, mut to) = (Senders::default(), Receivers::default());
        let (count, has) = (u64::from(senders), |m: u32| u64::from(m < senders));
        (from.count, from.below_full, from.has_part, from.has_first) =
            (count, u64::from(self.full.min(senders)), has(self.full), has(0));
        self.receive(&mut to, n);
        self.between(&from, &to)
    }

    /// Bytes from a set to a set.
    pub fn between(&self, from: &Senders, to: &Receivers) -> u64 {
        let even = from.count * to.count * self.base
            + from.below_full * to.count
            + from.has_part * to.below_part;
        even + from.count * to.each + from.has_first * to.more
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;
    use crate::workload::jobs::EdgeSpec;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        /// Any partition of the senders and the receivers adds up to every byte, and equals the sum
        /// over single pairs.
        #[test]
        fn sets_add_up_to_every_byte(bytes in 0u64..5000, m in 1u32..9, n in 1u32..9, cut in any::<u16>(),
                                     shares in prop::option::of(prop::collection::vec(0u64..40, 8))) {
            let shares = shares.map(|s| [&s[..n as usize - 1], &[1]].concat());
            let edge = EdgeSpec { shares, ..EdgeSpec::even(0, 1, Bytes(bytes)) };
            let own = edge.by_receiver();
            let s = own.as_ref().map_or_else(|| ShuffleSpread::new(bytes, m, n), |b| ShuffleSpread::by_receiver(b, m));
            let pair = |i, j| {
                let (mut a, mut b) = (Senders::default(), Receivers::default());
                s.send(&mut a, i);
                s.receive(&mut b, j);
                s.between(&a, &b)
            };
            let all: Vec<u64> = (0..m).flat_map(|i| (0..n).map(move |j| (i, j))).map(|(i, j)| pair(i, j)).collect();
            prop_assert_eq!(all.iter().sum::<u64>(), bytes);
            match &own {
                None => prop_assert!(all.iter().max().unwrap() - all.iter().min().unwrap() <= 1),
                Some(own) => for j in 0..n {
                    let to: Vec<u64> = (0..m).map(|i| pair(i, j)).collect();
                    prop_assert_eq!(to.iter().sum::<u64>(), own[j as usize]);
                    prop_assert!(to.iter().max().unwrap() - to.iter().min().unwrap() < u64::from(m));
                }
            }
            for j in 0..n {
                prop_assert_eq!(s.all_to(m, j), (0..m).map(|i| pair(i, j)).sum::<u64>());
            }
            let side = |k: u32, of: u32| (cut >> ((k + of) % 16)) & 1 == 1;
            for (a, b) in [(true, true), (true, false), (false, true), (false, false)] {
                let (mut from, mut to, mut sum) = (Senders::default(), Receivers::default(), 0);
                (0..m).filter(|&i| side(i, 0) == a).for_each(|i| s.send(&mut from, i));
                (0..n).filter(|&j| side(j, 7) == b).for_each(|j| s.receive(&mut to, j));
                for i in (0..m).filter(|&i| side(i, 0) == a) {
                    sum += (0..n).filter(|&j| side(j, 7) == b).map(|j| pair(i, j)).sum::<u64>();
                }
                prop_assert_eq!(s.between(&from, &to), sum);
            }
        }
    }
}
