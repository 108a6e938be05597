//! Work in parallel whose results do not depend on the threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;

/// `one` of every number below `n`, on at most `threads` threads that take the next number when
/// they are free. The order of the results is that of the numbers.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let want: Vec<usize> = (0..20).map(|k| k * 3).collect();
        for threads in [0, 1, 2, 7, 100] {
            assert_eq!(in_parallel(20, threads, |k| k * 3), want);
        }
        assert_eq!(in_parallel(0, 2, |k| k), Vec::<usize>::new());
    }
}
