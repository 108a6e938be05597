//! How much longer a running task takes, from what a node reports of it.

use crate::units::Span;

/// Progress is counted in millionths.
pub const WHOLE: u64 = 1_000_000;

/// T_rem = t_elapsed (1 - P) / P (Co-scheduler, equation 12): a task goes on as fast as it went. `progress` in millionths; one that
/// has made none may take for ever, one that is done takes no time.
pub fn remaining(elapsed: Span, progress: u64) -> Span {
    match progress.min(WHOLE) {
        0 => Span::MAX,
        p => Span(u64::try_from(u128::from(elapsed.0) * u128::from(WHOLE - p) / u128::from(p)).unwrap_or(u64::MAX)),
    }
}

/// The progress of a task that has run for `elapsed` of `total`, in millionths, rounded down.
pub fn progress(elapsed: Span, total: Span) -> u64 {
    match total.0 {
        0 => WHOLE,
        t => (u128::from(elapsed.0.min(t)) * u128::from(WHOLE) / u128::from(t)) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_third_done_takes_twice_as_long_again() {
        assert_eq!(remaining(Span::secs(10), WHOLE / 4), Span::secs(30));
        assert_eq!((remaining(Span(7), 0), remaining(Span(7), WHOLE), remaining(Span(7), 2 * WHOLE)), (Span::MAX, Span::ZERO, Span::ZERO));
        assert_eq!((progress(Span(1), Span(0)), progress(Span(9), Span(6))), (WHOLE, WHOLE));
    }

    proptest! {
        /// At a constant rate the estimate is right but for the rounding of the progress.
        #[test]
        fn a_constant_rate_is_foretold(total in 1_000_000u64..1 << 40, part in 1u64..1000) {
            let elapsed = total / 1000 * part;
            let guess = remaining(Span(elapsed), progress(Span(elapsed), Span(total))).0 as f64;
            let truth = (total - elapsed) as f64;
            // A millionth less progress of a thousandth: one in a thousand.
            prop_assert!((guess - truth).abs() <= total as f64 * 0.0011 / part as f64 + 2.0, "{} {}", guess, truth);
        }
    }
}
