//! How many cases the tests by proptest draw.

use proptest::test_runner::Config;

/// `cases` cases where proptest itself draws 256, its default. `PROPTEST_CASES` changes both in the same ratio: `scripts/test` draws a
/// quarter, a night's run ten times as many.
pub fn drawn(cases: u32) -> Config {
    let of_256 = Config::default();
    let cases = (u64::from(cases) * u64::from(of_256.cases)).div_ceil(256);
    Config { cases: u32::try_from(cases).unwrap_or(u32::MAX), ..of_256 }
}
