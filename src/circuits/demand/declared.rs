//! Demand that was declared: what the posted coflows still have to send.

use super::DemandMatrix;
use crate::ids::RackId;

/// Sums remaining bytes by rack pair, stopping at `u64::MAX`; what stays in a rack is left out.
/// Linear in the pairs.
///
/// # Panics
/// If a rack's number is not below `racks`.
pub fn sum(
    racks: usize,
    remaining: impl IntoIterator<Item = (RackId, RackId, u64)>,
) -> DemandMatrix {
    let mut m = DemandMatrix::zero(racks);
    for (i, j, bytes) in remaining {
        m.add(i, j, bytes);
    }
    m
}

/// The sum of two views of the same traffic without counting anything twice: the larger cell of the
/// two. Bytes of a posted coflow that already wait at the sender are in both. O(R^2).
///
/// # Panics
/// If the matrices differ in size.
pub fn combine(a: &DemandMatrix, b: &DemandMatrix) -> DemandMatrix {
    a.with(b, u64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_combines() {
        let r = |k| RackId(k);
        let a = sum(
            3,
            [
                (r(0), r(1), 5),
                (r(0), r(1), 6),
                (r(2), r(2), 9),
                (r(1), r(0), u64::MAX),
                (r(1), r(0), 1),
            ],
        );
        assert_eq!(a, DemandMatrix::from_rows(&[&[0, 11, 0], &[u64::MAX, 0, 0], &[0, 0, 0]]));
        let b = DemandMatrix::from_rows(&[&[0, 20, 1], &[3, 0, 0], &[0, 0, 0]]);
        assert_eq!(
            combine(&a, &b),
            DemandMatrix::from_rows(&[&[0, 20, 1], &[u64::MAX, 0, 0], &[0, 0, 0]])
        );
    }
}
