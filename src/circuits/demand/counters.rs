//! Demand from cumulative byte counters, with ageing.

use super::DemandMatrix;

/// Turns cumulative counters into bytes an interval: a state machine fed once an interval.
#[derive(Clone, Debug)]
pub struct Counters {
    last: DemandMatrix,
    aged: DemandMatrix,
    /// Whether that is known to be zero, so that it need not be looked through.
    blank: bool,
    /// How much of the old estimate stays, in percent.
    keep: u8,
}

impl Counters {
    /// Counters of `racks` racks, with nothing counted so far. `keep` percent (at most 100) of the
    /// old estimate stay with each update, the rest is what was counted since: 0 forgets at once,
    /// 75 is an exponentially weighted mean of weight 1/4.
    pub fn new(racks: usize, keep: u8) -> Self {
        Self {
            last: DemandMatrix::zero(racks),
            aged: DemandMatrix::zero(racks),
            blank: true,
            keep: keep.min(100),
        }
    }

    /// Ages in another way from the next update on.
    pub fn keep(&mut self, percent: u8) {
        self.keep = percent.min(100);
    }

    /// Whether the last estimate was of nothing. O(R^2).
    pub fn rests(&self) -> bool {
        self.blank || self.aged.is_zero()
    }

    /// [`Counters::update`] without an estimate, so that a later switch to counters does not take
    /// all bytes since the start for those of one interval. Without ageing it costs one copy;
    /// ageing that is set later begins with nothing.
    pub fn pass(&mut self, sent: &DemandMatrix) {
        if self.keep > 0 {
            self.update(sent);
        } else {
            self.last.clone_from(sent);
            if !std::mem::replace(&mut self.blank, true) {
                self.aged.clear();
            }
        }
    }

    /// Takes the counters' present state and gives the bytes an interval. A counter that went back
    /// (its ToR was built again) counts from zero. O(R^2).
    ///
    /// # Panics
    /// If `sent` is of another network: it has another number of racks.
    pub fn update(&mut self, sent: &DemandMatrix) -> DemandMatrix {
        assert_eq!(sent.racks(), self.last.racks(), "counters of one network");
        // A counter that went back counts from zero.
        let gained =
            sent.with(&self.last, |now, before| if now >= before { now - before } else { now });
        let keep = u128::from(self.keep);
        let mean = |gained: u64, aged: u64| {
            ((u128::from(gained) * (100 - keep) + u128::from(aged) * keep) / 100) as u64
        };
        self.blank = false;
        self.aged = if keep == 0 { gained } else { gained.with(&self.aged, mean) };
        self.last = sent.clone();
        self.aged.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(bytes: u64) -> DemandMatrix {
        DemandMatrix::from_rows(&[&[0, bytes], &[0, 0]])
    }

    #[test]
    fn without_ageing_it_is_the_difference() {
        let mut c = Counters::new(2, 0);
        assert_eq!(c.update(&of(100)), of(100));
        assert_eq!(c.update(&of(150)), of(50));
        assert_eq!(c.update(&of(150)), of(0));
        assert_eq!(c.update(&of(20)), of(20), "built again");
    }

    #[test]
    fn with_ageing_it_fades() {
        let mut c = Counters::new(2, 75);
        let seen: Vec<_> = [400, 400, 400, 800].into_iter().map(|s| c.update(&of(s))).collect();
        assert_eq!(seen, [of(100), of(75), of(56), of(142)]);
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn an_estimate_lies_between_what_was_counted(steps in prop::collection::vec(0u64..1 << 60, 1..10), keep: u8) {
            let mut c = Counters::new(2, keep);
            let mut sum = 0;
            for s in &steps {
                sum += s % (1 << 56);
                let found = c.update(&of(sum)).total();
                prop_assert!(found <= steps.iter().map(|s| s % (1 << 56)).max().unwrap());
            }
        }
    }
}
