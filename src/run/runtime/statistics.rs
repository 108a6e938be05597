//! Means of repeated measurements, their 95 % intervals, and differences between pairs of them.

use serde::Serialize;

/// A mean, and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeanEstimate {
    /// The mean; zero of nothing.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval by Student's t; none of fewer than two
    /// values.
    pub half: Option<f64>,
}

impl MeanEstimate {
    /// Of some values.
    pub fn of(values: &[f64]) -> Self {
        Self { mean: mean(values), half: half_interval(values) }
    }

    /// Whether the interval holds zero: the sign of the mean is then not known.
    pub fn is_unclear(self) -> bool {
        self.half.is_some_and(|half| self.mean.abs() <= half)
    }
}

/// How values differ from others that were measured under the same conditions, pair by pair.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Paired {
    /// The number of pairs.
    pub pairs: usize,
    /// Value less base, in the unit of both.
    pub difference: MeanEstimate,
    /// The same in per cent of the base, of the pairs whose base is not zero; none if there is no
    /// such pair.
    pub percent: Option<MeanEstimate>,
}

impl Paired {
    /// Of pairs of a value and its base.
    pub fn of(pairs: &[(f64, f64)]) -> Self {
        let difference: Vec<f64> = pairs.iter().map(|(value, base)| value - base).collect();
        let percent: Vec<f64> = pairs
            .iter()
            .filter(|p| p.1 != 0.0)
            .map(|(value, base)| 100.0 * (value / base - 1.0))
            .collect();
        let (pairs, difference) = (pairs.len(), MeanEstimate::of(&difference));
        Self {
            pairs,
            difference,
            percent: (!percent.is_empty()).then(|| MeanEstimate::of(&percent)),
        }
    }
}

/// Half the width of the 95 % confidence interval of the mean; none of fewer than two values.
fn half_interval(values: &[f64]) -> Option<f64> {
    /// Student's t at 97.5 % by degrees of freedom, from 1.
    const T: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    let freedom = values.len().checked_sub(1).filter(|f| *f > 0)?;
    // Between the degrees of the usual tables, the next smaller one: a little too wide, never too
    // narrow.
    let t = match freedom {
        1..=30 => T[freedom - 1],
        31..=39 => 2.042,
        40..=59 => 2.021,
        60..=119 => 2.000,
        _ => 1.980,
    };
    let mean = mean(values);
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / freedom as f64;
    Some(t * (variance / values.len() as f64).sqrt())
}

/// The mean; zero of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_students() {
        // Five values with mean 10 and standard deviation 1.5811: t(4) = 2.776, 2.776 * 1.5811 /
        // sqrt(5) = 1.963.
        let half = half_interval(&[8.0, 9.0, 10.0, 11.0, 12.0]).unwrap();
        assert!((half - 1.963).abs() < 0.001, "{half}");
        assert_eq!(
            (half_interval(&[3.0]), half_interval(&[]), half_interval(&[2.0, 2.0])),
            (None, None, Some(0.0))
        );
        let many: Vec<f64> = (0..200).map(|k| f64::from(k % 2)).collect();
        assert!((half_interval(&many).unwrap() - 1.98 * 0.501_255 / 200f64.sqrt()).abs() < 1e-5);
    }

    #[test]
    fn pairs_tell_what_two_means_do_not() {
        // The means' own intervals overlap widely; within each pair the value is one more than its
        // base.
        let far_apart = [(11.0, 10.0), (21.0, 20.0), (41.0, 40.0)];
        let p = Paired::of(&far_apart);
        assert_eq!((p.pairs, p.difference), (3, MeanEstimate { mean: 1.0, half: Some(0.0) }));
        assert!(
            !p.difference.is_unclear()
                && (p.percent.unwrap().mean - (10.0 + 5.0 + 2.5) / 3.0).abs() < 1e-9
        );
        assert!(Paired::of(&[(1.0, 2.0), (3.0, 2.0), (2.0, 2.0)]).difference.is_unclear());
        assert_eq!(Paired::of(&[(1.0, 0.0)]).percent, None);
    }
}
