//! What the tests of the kernel share: one test at a time, skips, and further tries where a busy machine was too slow.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use heliostat::fabric::kernel::sys;

mod skip;

pub use skip::skip;

/// What a try says of times and rates. An error is tried again. Everything else that a test finds (loss, misdelivery, a leak, two
/// circuits on a port, wrong contents) is asserted: that panics at once, and no further try follows.
pub type Timing = Result<(), TooSlow>;

/// What was too slow, too late or too little, as a busy machine can make it.
#[derive(Debug)]
pub struct TooSlow(pub String);

/// How often a test may be too slow, the last time included.
pub const TRIES: u32 = 3;

/// Ends the try with a [`TooSlow`] unless a condition about times or rates holds.
#[macro_export]
macro_rules! in_time {
    ($ok:expr, $($why:tt)+) => {
        let ok: bool = $ok;
        if !ok {
            return Err($crate::tries::TooSlow(format!($($why)+)));
        }
    };
}

/// Runs a test until it is in time, [`TRIES`] times at most. Each further try is told as `RETRY name: why`.
pub fn tries(name: &str, test: impl Fn() -> Timing) {
    tries_and_tells(name, test, |why| println!("RETRY {name}: {why}"));
}

/// As [`tries`]; `tell` hears why there is a further try.
pub fn tries_and_tells(name: &str, test: impl Fn() -> Timing, tell: impl Fn(&str)) {
    for k in 1..=TRIES {
        match test() {
            Ok(()) => return,
            Err(TooSlow(why)) if k < TRIES => tell(&why),
            Err(TooSlow(why)) => panic!("{name} was too slow {TRIES} times, the last time: {why}"),
        }
    }
}

/// What a test that measures holds: the machine, against other tests of this process and of other ones of this user.
pub struct Alone {
    _threads: MutexGuard<'static, ()>,
    /// Unlocked when it is closed.
    _processes: File,
}

/// Waits until no other test measures.
pub fn alone() -> Alone {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let threads = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let file = File::options().create(true).truncate(false).write(true).open(base().with_extension("lock")).expect("a lock file");
    file.lock().expect("the lock of this user's tests");
    Alone { _threads: threads, _processes: file }
}

/// Where the tests' emulations keep their notes: in one place, so that what a killed run left goes with the next one's start.
pub fn base() -> PathBuf {
    std::env::temp_dir().join(format!("heliostat-test-{}", sys::uid_gid().0))
}
