//! How a thread of real-time priority is woken by threads of less: a flag, and the thread's own
//! parking place, at which it sleeps.
//!
//! The channels of the standard library are not for that. A reader that wakes by its timer while a
//! writer is half-way through spins until the writer goes on. At real-time priority on the writer's
//! processor that is when the kernel throttles the reader, nearly a second later. Here nothing is
//! half-way: neither side ever waits for the other.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Wakes one thread.
#[derive(Clone, Default)]
pub struct Parker(Arc<ParkerState>);

#[derive(Default)]
struct ParkerState {
    rung: AtomicBool,
    /// Who waits, from the first time on.
    sleeper: OnceLock<Thread>,
}

impl Parker {
    /// Wakes the thread now, or the next time that it would wait. O(1).
    pub fn wake(&self) {
        self.0.rung.store(true, Release);
        // A thread that has not waited yet looks at the flag before it does.
        if let Some(sleeper) = self.0.sleeper.get() {
            sleeper.unpark();
        }
    }

    /// Waits until the parker has been rung since the last time, at most for `patience`; says
    /// whether it has. For one thread only.
    pub fn wait(&self, patience: Duration) -> bool {
        self.0.sleeper.get_or_init(thread::current);
        let until = Instant::now() + patience;
        loop {
            if self.0.rung.swap(false, Acquire) {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            // May return early; the flag tells why.
            thread::park_timeout(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys;
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;

    const DEADLINE: Duration = Duration::from_secs(60);

    #[test]
    fn what_is_rung_before_and_while_the_thread_waits_wakes_it_once() {
        let parker = Parker::default();
        assert!(!parker.wait(Duration::ZERO));
        parker.wake();
        parker.wake();
        assert!(parker.wait(DEADLINE) && !parker.wait(Duration::ZERO));
        let far = Parker::default();
        let ringer = far.clone();
        let sleeper = thread::spawn(move || far.wait(DEADLINE));
        ringer.wake();
        assert!(sleeper.join().expect("no panic"), "whether it waited already or not");
    }

    #[test]
    fn no_ring_is_lost() {
        let (parker, heard) = (Parker::default(), Arc::new(AtomicU64::new(0)));
        let (other, hears) = (parker.clone(), heard.clone());
        let sleeper = thread::spawn(move || {
            while hears.load(Relaxed) < 10_000 {
                assert!(other.wait(DEADLINE), "a ring is lost");
                hears.fetch_add(1, Relaxed);
            }
        });
        for n in 1..=10_000 {
            parker.wake();
            while heard.load(Relaxed) < n && !sleeper.is_finished() {
                thread::yield_now();
            }
        }
        sleeper.join().expect("no panic");
    }

    /// A thread of real-time priority that wakes by its timer, and one of none that rings now and
    /// then, on one processor. Now and then the first takes it from the second in the middle of a
    /// call. A channel of the standard library then spins for 0.95 s.
    #[test]
    fn a_thread_of_priority_never_spins_behind_one_of_none() {
        const TURNS: usize = 100_000;
        let parker = Parker::default();
        let (other, over) = (parker.clone(), Arc::new(AtomicBool::new(false)));
        let ended = over.clone();
        let sleeper = thread::spawn(move || {
            let alone = sys::pin(0) && sys::realtime(20);
            let turn = || {
                let begun = sys::thread_time();
                other.wait(Duration::from_micros(10));
                sys::thread_time() - begun
            };
            let worst = if alone { (0..TURNS).map(|_| turn()).max() } else { None };
            ended.store(true, Relaxed);
            worst
        });
        let ringer = thread::spawn(move || {
            sys::pin(0);
            // Of up to 33 us, so that rings and the other's timer meet at all places.
            let mut pause = 1u64;
            while !over.load(Relaxed) {
                parker.wake();
                pause = pause.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let until = Instant::now() + Duration::from_nanos(pause >> 49);
                while Instant::now() < until {}
            }
        });
        let worst = sleeper.join().expect("no panic");
        ringer.join().expect("no panic");
        match worst {
            None if std::env::var_os("REQUIRE_KERNEL").is_some_and(|v| v == "1")
                && sys::uid_gid().0 == 0 =>
            {
                panic!("no real-time priority, and REQUIRE_KERNEL=1 forbids to skip it")
            }
            None => println!(
                "SKIP a_thread_of_priority_never_spins_behind_one_of_none: no real-time priority"
            ),
            Some(worst) => assert!(
                worst < Duration::from_millis(100),
                "{worst:?} of the processor in one turn"
            ),
        }
    }
}
