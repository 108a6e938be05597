//! A sign of life: a thread that has not given it for seconds hangs, though it is alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::sys;
use crate::units::Span;

/// Silence after which a thread is taken for one that hangs. All that have a pulse give it several
/// times a second where nothing holds them up, and reading a large network takes a second at most.
pub const HANGS: Span = Span::secs(5);
/// The thread has not begun.
const NEVER: u64 = u64::MAX;

/// The pulse of a thread, shared with those who feel it.
#[derive(Clone, Debug)]
pub struct Pulse(Arc<AtomicU64>);

impl Default for Pulse {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(NEVER)))
    }
}

impl Pulse {
    /// The thread has come round.
    pub fn beat(&self) {
        self.beat_at(sys::monotonic());
    }

    /// It had come round at this time of the kernel's clock.
    pub fn beat_at(&self, time: u64) {
        self.0.store(time, Relaxed);
    }

    /// How long it has not come round, if that is so long that it hangs.
    pub fn hangs(&self) -> Option<Span> {
        let last = self.0.load(Relaxed);
        let silent = Span(sys::monotonic().saturating_sub(last));
        (last != NEVER && silent > HANGS).then_some(silent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_begun_and_does_not_come_round_hangs() {
        let p = Pulse::default();
        assert_eq!(p.hangs(), None);
        p.beat();
        assert_eq!(p.clone().hangs(), None);
        p.beat_at(sys::monotonic() - HANGS.0 - 1);
        assert!(p.hangs().is_some());
    }
}
