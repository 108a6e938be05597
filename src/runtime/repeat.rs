//! Repetitions: work in parallel whose results do not depend on the threads, and means with their 95 % intervals.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;

/// Runs `one` for every seed from `first` on, `n` of them, on at most `threads` threads. The order of the results is that of the seeds,
/// whatever the threads did.
///
/// # Errors
/// The error of the smallest seed that failed.
pub fn repeat<T: Send, E: Send>(first: u64, n: usize, threads: usize, one: impl Fn(u64) -> Result<T, E> + Sync) -> Result<Vec<T>, E> {
    in_parallel(n, threads, |k| one(first.wrapping_add(k as u64))).into_iter().collect()
}

/// `one` of every number below `n`, on at most `threads` threads that take the next number when they are free. The order of the
/// results is that of the numbers.
pub fn in_parallel<T: Send>(n: usize, threads: usize, one: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<T>>> = (0..n).map(|_| Mutex::new(None)).collect();
    thread::scope(|s| {
        for _ in 0..threads.clamp(1, n.max(1)) {
            s.spawn(|| {
                loop {
                    let k = next.fetch_add(1, Ordering::Relaxed);
                    let Some(slot) = done.get(k) else { break };
                    let result = one(k);
                    *slot.lock() = Some(result);
                }
            });
        }
    });
    let taken = |m: Mutex<Option<_>>| m.into_inner();
    done.into_iter().map(|m| taken(m).expect("every number was done")).collect()
}

/// Half the width of the 95 % confidence interval of the mean; none of fewer than two values.
pub fn half_interval(values: &[f64]) -> Option<f64> {
    /// Student's t at 97.5 % by degrees of freedom, from 1.
    const T: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101,
        2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    let freedom = values.len().checked_sub(1).filter(|f| *f > 0)?;
    // Between the degrees of the usual tables, the next smaller one: a little too wide, never too narrow.
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
        // Five values with mean 10 and standard deviation 1.5811: t(4) = 2.776, 2.776 * 1.5811 / sqrt(5) = 1.963.
        let half = half_interval(&[8.0, 9.0, 10.0, 11.0, 12.0]).unwrap();
        assert!((half - 1.963).abs() < 0.001, "{half}");
        assert_eq!((half_interval(&[3.0]), half_interval(&[]), half_interval(&[2.0, 2.0])), (None, None, Some(0.0)));
        let many: Vec<f64> = (0..200).map(|k| f64::from(k % 2)).collect();
        assert!((half_interval(&many).unwrap() - 1.98 * 0.501_255 / 200f64.sqrt()).abs() < 1e-5);
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let one = |seed| Ok::<_, String>(seed * 3);
        let want: Vec<u64> = (5..25).map(|s| s * 3).collect();
        for threads in [0, 1, 2, 7, 100] {
            assert_eq!(repeat(5, 20, threads, one), Ok(want.clone()));
        }
        assert_eq!(repeat(5, 0, 2, one), Ok(vec![]));
        let odd = |seed: u64| if seed % 2 == 1 { Err(seed.to_string()) } else { Ok(seed) };
        assert_eq!(repeat(2, 9, 3, odd), Err("3".to_string()));
    }
}
