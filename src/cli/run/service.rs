//! What a service manager hears of a network: that it is up, that its control goes on, and that it ends (`sd_notify(3)`).

use std::time::{Duration, Instant};

use sd_notify::NotifyState;

use crate::units::Time;

/// The service manager that started this process; without one it costs nothing.
pub struct Manager {
    /// Time within which it wants to hear that the network is under control, if it does.
    patience: Option<Duration>,
    /// When it heard so last, and the time of the snapshot that showed it.
    heard: (Instant, Time),
}

impl Manager {
    /// Tells it that the network is up.
    pub fn up(now: Time) -> Self {
        say(&[NotifyState::Ready]);
        Self { patience: sd_notify::watchdog_enabled(), heard: (Instant::now(), now) }
    }

    /// Tells it that the network is under control, where it wants to hear that, if the control loop has shown its state since it was told
    /// last. `now` is the time of the newest snapshot: a loop that hangs makes no others.
    pub fn look(&mut self, now: Time) {
        let at = Instant::now();
        if self.wants(at, now) {
            say(&[NotifyState::Watchdog]);
            self.heard = (at, now);
        }
    }

    /// Whether it is to hear of a snapshot of `now`: after half of its time, so that a message may be late.
    fn wants(&self, at: Instant, now: Time) -> bool {
        self.patience.is_some_and(|p| at.duration_since(self.heard.0) >= p / 2) && now > self.heard.1
    }

    /// Tells it that the network is about to be taken down.
    pub fn ends(&self) {
        say(&[NotifyState::Stopping]);
    }
}

/// A message that does not arrive changes nothing for the network.
fn say(what: &[NotifyState]) {
    if let Err(e) = sd_notify::notify(what) {
        tracing::warn!("the service manager cannot be told: {e}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_hangs_is_not_said_to_be_well() {
        let begun = Instant::now();
        let it = Manager { patience: Some(Duration::from_secs(30)), heard: (begun, Time(7)) };
        let after = |s| begun + Duration::from_secs(s);
        assert!(it.wants(after(15), Time(8)) && !it.wants(after(14), Time(8)));
        assert!(!it.wants(after(1000), Time(7)), "the same snapshot");
        assert!(!Manager { patience: None, ..it }.wants(after(1000), Time(8)), "it does not want to hear");
    }
}
