//! The queue of a controller's commands: many writers of no priority, and a reader that may have
//! one.
//!
//! The channels of the standard library are not for that. A reader that wakes by its timer while a
//! writer is half-way through spins until the writer goes on. At real-time priority on the writer's
//! processor that is when the kernel throttles the reader, nearly a second later. Here both take a
//! lock, at which the reader sleeps.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{RecvError, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

struct SharedQueue<T> {
    state: Mutex<QueueState<T>>,
    news: Condvar,
}

struct QueueState<T> {
    items: VecDeque<T>,
    /// Whether there is a writer.
    written: bool,
    /// Whether there is a reader.
    read: bool,
}

/// All writers together. A writer that comes or goes tells the reader nothing, and takes no lock.
/// Each request of the API has several for a moment, and a reader of real-time priority that is
/// woken takes the processor from it.
struct Writers<T>(Arc<SharedQueue<T>>);

/// Where items are put.
pub struct QueueSender<T>(Arc<Writers<T>>);

/// Where they come out, in the same order.
pub struct QueueReceiver<T>(Arc<SharedQueue<T>>);

/// A queue without a bound.
pub fn queue<T>() -> (QueueSender<T>, QueueReceiver<T>) {
    let state = Mutex::new(QueueState { items: VecDeque::new(), written: true, read: true });
    let shared = Arc::new(SharedQueue { state, news: Condvar::new() });
    (QueueSender(Arc::new(Writers(shared.clone()))), QueueReceiver(shared))
}

impl<T> QueueSender<T> {
    /// Puts an item. O(1).
    ///
    /// # Errors
    /// The item, when there is no reader any more.
    pub fn send(&self, item: T) -> Result<(), T> {
        let shared = &self.0.0;
        let mut state = shared.state.lock();
        if !state.read {
            return Err(item);
        }
        state.items.push_back(item);
        drop(state);
        shared.news.notify_one();
        Ok(())
    }
}

impl<T> Clone for QueueSender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Drop for Writers<T> {
    fn drop(&mut self) {
        self.0.state.lock().written = false;
        self.0.news.notify_one();
    }
}

impl<T> QueueReceiver<T> {
    /// Takes the next item, if there is one.
    ///
    /// # Errors
    /// There is none, now or for ever.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        let mut state = self.0.state.lock();
        let none = if state.written { TryRecvError::Empty } else { TryRecvError::Disconnected };
        state.items.pop_front().ok_or(none)
    }

    /// Waits for the next item.
    ///
    /// # Errors
    /// There will be none: all writers are gone.
    pub fn recv(&self) -> Result<T, RecvError> {
        self.wait(None).map_err(|_| RecvError)
    }

    /// Waits for the next item, but not for longer than `patience`.
    ///
    /// # Errors
    /// There was none in time, or there will be none.
    pub fn recv_timeout(&self, patience: Duration) -> Result<T, RecvTimeoutError> {
        self.wait(Some(Instant::now() + patience))
    }

    fn wait(&self, until: Option<Instant>) -> Result<T, RecvTimeoutError> {
        let mut state = self.0.state.lock();
        loop {
            match (state.items.pop_front(), state.written, until) {
                (Some(item), ..) => return Ok(item),
                (None, false, _) => return Err(RecvTimeoutError::Disconnected),
                (None, _, None) => self.0.news.wait(&mut state),
                (None, _, Some(until)) => {
                    // An item that came with the last instant counts.
                    if self.0.news.wait_until(&mut state, until).timed_out()
                        && state.items.is_empty()
                        && state.written
                    {
                        return Err(RecvTimeoutError::Timeout);
                    }
                }
            }
        }
    }
}

impl<T> Drop for QueueReceiver<T> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.read = false;
        // Who waits for an answer to an item hears that there will be none. That may take this lock
        // again.
        let items = std::mem::take(&mut state.items);
        drop(state);
        drop(items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_item_of_every_writer_comes_out_once_and_in_its_order() {
        const EACH: usize = 10_000;
        let (sender, receiver) = queue();
        let writers: Vec<_> = (0..4).map(|w| (w, sender.clone())).collect();
        drop(sender);
        let mut next = [0; 4];
        std::thread::scope(|s| {
            for (w, sender) in writers {
                s.spawn(move || (0..EACH).for_each(|k| sender.send((w, k)).expect("a reader")));
            }
            loop {
                match receiver.recv_timeout(Duration::from_secs(60)) {
                    Ok((w, k)) => {
                        assert_eq!(k, next[w], "writer {w}");
                        next[w] += 1;
                    }
                    Err(why) => break assert_eq!(why, RecvTimeoutError::Disconnected),
                }
            }
        });
        assert_eq!(
            (next, receiver.recv(), receiver.try_recv()),
            ([EACH; 4], Err(RecvError), Err(TryRecvError::Disconnected))
        );
    }

    #[test]
    fn an_end_is_seen_from_both_sides() {
        let (sender, receiver) = queue();
        assert!(receiver.try_recv().is_err_and(|why| why == TryRecvError::Empty));
        assert!(
            receiver
                .recv_timeout(Duration::ZERO)
                .is_err_and(|why| why == RecvTimeoutError::Timeout)
        );
        // Items that hold what waits for an answer are dropped with the reader.
        let (answer, waits) = std::sync::mpsc::channel::<()>();
        assert!(sender.send(answer.clone()).is_ok());
        assert!(receiver.try_recv().is_ok() && sender.send(answer).is_ok());
        drop(receiver);
        assert_eq!(waits.recv(), Err(RecvError));
        assert!(sender.send(std::sync::mpsc::channel().0).is_err());
    }

    /// How often a thread has gone to sleep, once it sleeps.
    fn sleeps(thread: &Path) -> u64 {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let status =
                std::fs::read_to_string(thread.join("status")).expect("the status of a thread");
            let line =
                |name| status.lines().find_map(|l| l.strip_prefix(name)).expect("its line").trim();
            if line("State:").starts_with('S') {
                return line("voluntary_ctxt_switches:").parse().expect("a number");
            }
            assert!(Instant::now() < until, "it never sleeps");
            std::thread::yield_now();
        }
    }

    #[test]
    fn writers_that_come_and_go_do_not_wake_the_reader() {
        let (sender, receiver) = queue();
        let (name, names) = std::sync::mpsc::channel();
        std::thread::scope(|s| {
            let reader = s.spawn(move || {
                name.send(std::fs::read_link("/proc/thread-self").expect("its name"))
                    .expect("the test waits");
                receiver.recv()
            });
            let reading = Path::new("/proc").join(names.recv().expect("the reader begins"));
            let before = sleeps(&reading);
            (0..10_000).for_each(|_| drop(sender.clone()));
            let after = sleeps(&reading);
            sender.send(7).expect("a reader");
            assert_eq!((reader.join().expect("no panic"), after), (Ok(7), before));
        });
    }
}
