//! Random draws in integer arithmetic, so that one seed gives one workload on every machine.
//!
//! Logarithms and powers of two are in fixed point with 32 fractional bits.

use rand::Rng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::units::Span;

/// 1 with 32 fractional bits.
pub(crate) const ONE: i64 = 1 << 32;

/// An exponentially distributed gap: -ln(u) times the mean, u uniform in (0, 1].
pub(super) fn exponential(rng: &mut ChaCha8Rng, mean: Span) -> Span {
    // -ln(u) = ln 2 * (32 - log2(x)) with u = x / 2^32, in fixed point with 32 fractional bits.
    const LN2: u128 = 2_977_044_472;
    let x = rng.random_range(1..=1u64 << 32);
    let bits = (32u64 << 32) - log2_fixed(x);
    let factor = (u128::from(bits) * LN2) >> 32;
    let ns = (factor * u128::from(mean.0)) >> 32;
    Span(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// log2(x) with 32 fractional bits, for 1 <= x < 2^63, by repeated squaring.
pub(crate) fn log2_fixed(x: u64) -> u64 {
    let whole = x.ilog2();
    // y in [1, 2) with 62 fractional bits.
    let mut y = u128::from(x) << (62 - whole);
    let mut log = u64::from(whole);
    for _ in 0..32 {
        y = (y * y) >> 62;
        let two = y >> 63 == 1;
        log = log << 1 | u64::from(two);
        y >>= u32::from(two);
    }
    log
}

/// `base * 2^power`, the power with 32 fractional bits; not above `u64::MAX`.
pub(crate) fn times_power(base: u64, power: i64) -> u64 {
    let (whole, part) = (power.div_euclid(ONE), power.rem_euclid(ONE));
    // 2^part in [1, 2) with 62 fractional bits: the product of 2^(1/2), 2^(1/4) .. by the bits of
    // the part.
    let (mut factor, mut root) = (1u128 << 62, 1u128 << 63);
    for bit in (0..32).rev() {
        root = (root << 62).isqrt();
        if part >> bit & 1 == 1 {
            factor = (factor * root) >> 62;
        }
    }
    let product = (u128::from(base) * factor) >> 62;
    let shifted = match u32::try_from(whole) {
        Ok(left) if left >= product.leading_zeros() => u128::MAX,
        Ok(left) => product << left,
        Err(_) => product.checked_shr(u32::try_from(-whole).unwrap_or(u32::MAX)).unwrap_or(0),
    };
    u64::try_from(shifted).unwrap_or(u64::MAX)
}

/// The standard normal's quantiles at 64/128, 65/128 .. 127/128 and 1023/1024, in millionths.
const NORMAL: [i64; 65] = [
    0, 19584, 39176, 58783, 78412, 98072, 117770, 137513, 157311, 177170, 197099, 217107, 237202,
    257394, 277690, 298102, 318639, 339312, 360130, 381105, 402250, 423576, 445097, 466825, 488776,
    510966, 533410, 556126, 579132, 602449, 626099, 650104, 674490, 699283, 724514, 750215, 776422,
    803173, 830511, 858484, 887147, 916557, 946782, 977898, 1009990, 1043158, 1077516, 1113194,
    1150349, 1189164, 1229859, 1272699, 1318011, 1366204, 1417797, 1473468, 1534121, 1601009,
    1675940, 1761670, 1862732, 1987428, 2153875, 2417559, 3097269,
];
/// The standard normal's 95th percentile, in millionths.
pub(super) const NORMAL_95: i64 = 1_644_854;

/// The standard normal's quantile at `u / 2^32`, in millionths: linear between 128 steps, cut off
/// at 3.1 on either side.
pub(super) fn normal(u: u32) -> i64 {
    let above = u >= 1 << 31;
    // Distance from the middle, in 2^-25 of a step of 1/128.
    let far = if above { u - (1 << 31) } else { (1u32 << 31) - u };
    let (step, part) = ((far >> 25) as usize, i64::from(far & ((1 << 25) - 1)));
    let (low, high) = (NORMAL[step], NORMAL[(step + 1).min(64)]);
    let z = low + (((high - low) * part) >> 25);
    if above { z } else { -z }
}

/// `n` numbers below 2^32, one in each of `n` equal parts, in a random order: their percentiles are
/// close to even for every seed.
pub(super) fn strata(rng: &mut ChaCha8Rng, n: usize) -> Vec<u32> {
    let width = |k: usize| ((k as u64) << 32) / n as u64;
    let mut all: Vec<u32> =
        (0..n).map(|k| rng.random_range(width(k)..width(k + 1).max(width(k) + 1)) as u32).collect();
    all.shuffle(rng);
    all
}

/// A number whose logarithm is even between those of `low` and `high`, at `u / 2^32` of the way.
pub(super) fn log_uniform(low: u64, high: u64, u: u32) -> u64 {
    let (low, high) = (low.max(1), high.max(low.max(1)));
    let range = (log2_fixed(high) - log2_fixed(low)) as u128;
    times_power(low, ((range * u128::from(u)) >> 32) as i64).clamp(low, high)
}

/// A log-normal distribution by its median and its 95th percentile; below the median it may have
/// its own 5th.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogNormal {
    /// 5th percentile; none: as far below the median as the 95th is above it.
    pub p5: Option<u64>,
    /// Median.
    pub p50: u64,
    /// 95th percentile.
    pub p95: u64,
}

impl LogNormal {
    /// The value at `u / 2^32`.
    pub fn at(&self, u: u32) -> u64 {
        let z = normal(u);
        let log = |x: u64| log2_fixed(x.max(1)) as i64;
        let up = log(self.p95) - log(self.p50);
        let down = self.p5.map_or(up, |p5| log(self.p50) - log(p5));
        let range = if z < 0 { down } else { up };
        times_power(self.p50, (i128::from(range) * i128::from(z) / i128::from(NORMAL_95)) as i64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn logarithms_are_right() {
        for x in [1u64, 2, 3, 10, 12_345, 1 << 31, (1 << 32) - 1, 1 << 32] {
            assert!(
                (log2_fixed(x) as f64 / (1u64 << 32) as f64 - (x as f64).log2()).abs() < 1e-8,
                "{x}"
            );
        }
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mean =
            (0..20_000).map(|_| exponential(&mut rng, Span::millis(10)).0).sum::<u64>() / 20_000;
        assert!((9_800_000..10_200_000).contains(&mean), "{mean}");
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn powers_are_right(base in 1u64..1 << 40, power in -60.0f64..20.0) {
            let got = times_power(base, (power * ONE as f64) as i64) as f64;
            let want = base as f64 * power.exp2();
            prop_assert!((got - want).abs() <= want * 1e-6 + 1.0, "{got} {want}");
        }

        #[test]
        fn extremes_do_not_overflow(base: u64, power: i64, u: u32, low: u32, high: u32) {
            let _ = times_power(base, power);
            let x = log_uniform(low.into(), high.into(), u);
            prop_assert!(x >= u64::from(low.max(1)) && x <= u64::from(high.max(low).max(1)));
            let d = LogNormal { p5: Some(u64::from(low.min(high))), p50: high.into(), p95: u64::from(high) * 7 };
            prop_assert!(d.at(u) <= d.at(u32::MAX));
        }
    }

    #[test]
    fn the_normal_has_its_quantiles() {
        let at = |p: f64| normal((p * 4_294_967_296.0) as u32) as f64 / 1e6;
        for (p, z) in [
            (0.5, 0.0),
            (0.95, 1.6449),
            (0.05, -1.6449),
            (0.8413, 1.0),
            (0.99, 2.3263),
            (0.01, -2.3263),
        ] {
            assert!((at(p) - z).abs() < 0.03, "{p}: {}", at(p));
        }
        assert!(
            (0..=1000u32).map(|k| normal((u32::MAX / 1000) * k)).collect::<Vec<_>>().is_sorted()
        );
    }

    #[test]
    fn a_log_normal_has_its_percentiles() {
        let d = LogNormal { p5: Some(100), p50: 2_500, p95: 82_000 };
        let at = |p: u64| d.at((p << 32).div_ceil(100) as u32);
        assert!(
            at(5).abs_diff(100) <= 2
                && at(50).abs_diff(2500) <= 2
                && at(95).abs_diff(82_000) < 1_000,
            "{} {} {}",
            at(5),
            at(50),
            at(95)
        );
        let s = strata(&mut ChaCha8Rng::seed_from_u64(1), 100);
        let mut sorted = s.clone();
        sorted.sort_unstable();
        assert!(
            sorted.iter().enumerate().all(|(k, u)| (u64::from(*u) * 100) >> 32 == k as u64)
                && s != sorted
        );
        assert!(strata(&mut ChaCha8Rng::seed_from_u64(1), 0).is_empty());
    }
}
