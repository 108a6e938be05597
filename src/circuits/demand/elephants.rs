//! The elephant filter: a circuit is for heavy traffic only.

use super::DemandMatrix;
use crate::units::Bytes;

/// The cells of at least `threshold`; all others become zero (the papers' T_e, 1.125 GB). O(R^2).
pub fn filter(demand: &DemandMatrix, threshold: Bytes) -> DemandMatrix {
    demand.with(demand, |b, _| if b < threshold.0 { 0 } else { b })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_elephants_pass() {
        let d = DemandMatrix::from_rows(&[&[0, 9, 10], &[11, 0, 0], &[0, 0, 0]]);
        assert_eq!(
            filter(&d, Bytes(10)),
            DemandMatrix::from_rows(&[&[0, 0, 10], &[11, 0, 0], &[0, 0, 0]])
        );
        assert_eq!(filter(&d, Bytes(0)), d);
    }
}
