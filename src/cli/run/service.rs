//! What a service manager hears of a network: that it is up, that its control goes on, and that it
//! ends (`sd_notify(3)`).

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use sd_notify::NotifyState;

use crate::runtime::handle::Handle;
use crate::units::Time;

/// Tells the service manager that started this process of a network, until it is dropped: that is
/// before the network is taken down. Nothing happens where there is none.
pub struct ServiceManager {
    /// The thread that reports that the network is under control, where that is wanted; it ends
    /// when nothing can be sent to it.
    watchdog: Option<(Sender<()>, JoinHandle<()>)>,
}

impl ServiceManager {
    /// Tells that the network is up.
    pub fn up(handle: &Handle) -> Self {
        say(NotifyState::Ready);
        let watchdog = sd_notify::watchdog_enabled().map(|patience| {
            let (over, end) = channel();
            let handle = handle.clone();
            // Half of the time: a message may be late.
            let tell = move || {
                tell(patience / 2, &end, || handle.snapshot().now, || say(NotifyState::Watchdog))
            };
            (over, std::thread::spawn(tell))
        });
        Self { watchdog }
    }
}

impl Drop for ServiceManager {
    fn drop(&mut self) {
        say(NotifyState::Stopping);
        if let Some((over, thread)) = self.watchdog.take() {
            drop(over);
            // It has told its panic already.
            let _ = thread.join();
        }
    }
}

/// Says once a `period` that the network is under control, if the control loop has shown its state
/// since then. `shown` is the time of the newest snapshot; a loop that hangs makes no others. Ends
/// when the other side of `end` is gone.
fn tell(period: Duration, end: &Receiver<()>, shown: impl Fn() -> Time, mut say: impl FnMut()) {
    let mut heard = shown();
    while end.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
        let now = shown();
        if now > heard {
            say();
            heard = now;
        }
    }
}

/// A message that does not arrive changes nothing for the network.
fn say(what: NotifyState) {
    if let Err(e) = sd_notify::notify(&[what]) {
        tracing::warn!("the service manager cannot be reached: {e}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_loop_that_hangs_is_not_said_to_be_well() {
        let (over, end) = channel();
        let (over, looks, said) = (Cell::new(Some(over)), Cell::new(0), Cell::new(0));
        // It hangs at the fourth look.
        let shown = || {
            looks.set(looks.get() + 1);
            if looks.get() == 10 {
                drop(over.take());
            }
            Time(looks.get().min(4))
        };
        tell(Duration::from_millis(1), &end, shown, || said.set(said.get() + 1));
        assert_eq!((looks.get(), said.get()), (10, 3));
    }
}
