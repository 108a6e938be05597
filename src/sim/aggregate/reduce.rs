//! Sums and minima of f64 lists in eight independent accumulators: additions in one chain wait for
//! each other.

const LANES: usize = 8;

/// Folds `each` of the pairs of two lists of one length in eight accumulators, and then joins
/// these. The order of the additions depends on the length alone.
fn fold<const N: usize>(
    a: &[f64],
    b: &[f64],
    zero: f64,
    each: impl Fn(f64, f64) -> [f64; N],
    join: impl Fn(f64, f64) -> f64,
) -> [f64; N] {
    let mut lanes = [[zero; LANES]; N];
    let ((a, last_a), (b, last_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        let values: [[f64; N]; LANES] = std::array::from_fn(|lane| each(a[lane], b[lane]));
        for k in 0..N {
            for lane in 0..LANES {
                lanes[k][lane] = join(lanes[k][lane], values[lane][k]);
            }
        }
    }
    for (&a, &b) in last_a.iter().zip(last_b) {
        for (lanes, value) in lanes.iter_mut().zip(each(a, b)) {
            lanes[0] = join(lanes[0], value);
        }
    }
    lanes.map(|lanes| lanes.into_iter().reduce(&join).unwrap_or(zero))
}

/// Sums of `each` over the pairs of two lists of one length.
pub fn sums<const N: usize>(a: &[f64], b: &[f64], each: impl Fn(f64, f64) -> [f64; N]) -> [f64; N] {
    fold(a, b, 0.0, each, |a, b| a + b)
}

/// Sum of a list.
pub fn sum(list: &[f64]) -> f64 {
    let [all] = sums(list, list, |a, _| [a]);
    all
}

/// Minimum of `each` over the pairs of two lists of one length; infinite if they are empty.
pub fn least(a: &[f64], b: &[f64], each: impl Fn(f64, f64) -> f64) -> f64 {
    let [least] = fold(a, b, f64::INFINITY, |a, b| [each(a, b)], |a, b| if b < a { b } else { a });
    least
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn as_one_after_another(list in prop::collection::vec((-1000i32..1000, 1i32..9), 0..50)) {
            let (a, b): (Vec<f64>, Vec<f64>) = list.into_iter().map(|(a, b)| (f64::from(a), f64::from(b))).unzip();
            prop_assert_eq!(sum(&a), a.iter().sum::<f64>());
            prop_assert_eq!(sums(&a, &b, |a, b| [a, 2.0 * b]), [sum(&a), 2.0 * sum(&b)]);
            prop_assert_eq!(least(&a, &b, |a, b| a / b), a.iter().zip(&b).map(|(a, b)| a / b).fold(f64::INFINITY, f64::min));
        }
    }
}
