//! What the tests of the kernel share: which run beside others, and further tries where a busy
//! machine was too slow.

use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use heliostat::kernel::sys;

pub use crate::skip::skip;

/// What a try says of times and rates. An error is tried again. Everything else that a test finds
/// (loss, misdelivery, a leak, two circuits on a port, wrong contents) is asserted: that panics at
/// once, and no further try follows.
pub type Timing = Result<(), TooSlow>;

/// What was too slow, too late or too little, as a busy machine can make it.
#[derive(Debug)]
pub struct TooSlow(pub String);

/// How often a test may be too slow, the last time included. Tries of which another machine took
/// its part do not count.
pub const TRIES: u32 = 3;

/// The most tries of all.
pub const MOST: u32 = 9;

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

/// Runs a test until it is in time, [`TRIES`] times at most; [`MOST`] times where the machine's
/// host takes processors away meanwhile. Each further try is told as `RETRY name: why`.
pub fn tries(name: &str, test: impl Fn() -> Timing) {
    tries_and_tells(name, test, |why| println!("RETRY {name}: {why}"));
}

/// As [`tries`]; `tell` hears why there is a further try.
pub fn tries_and_tells(name: &str, test: impl Fn() -> Timing, tell: impl Fn(&str)) {
    let mut own = 0;
    for k in 1.. {
        let (begun, before) = (Instant::now(), stolen());
        let Err(TooSlow(why)) = test() else { return };
        let (took, taken) = (begun.elapsed(), stolen().saturating_sub(before));
        let robbed =
            is_robbed(taken, took, std::thread::available_parallelism().map_or(1, usize::from));
        own += u32::from(!robbed);
        let why = if robbed {
            format!("{why}; this machine's host took {taken:.1?} of {took:.1?}")
        } else {
            why
        };
        assert!(own < TRIES && k < MOST, "{name} was too slow {k} times, the last time: {why}");
        tell(&why);
    }
}

/// Whether the host of a virtual machine took so much of its processors' time that rates and times
/// say nothing: a twentieth. What a millisecond shows is chance.
pub fn is_robbed(taken: Duration, took: Duration, processors: usize) -> bool {
    taken >= Duration::from_millis(100) && taken * 20 >= took * processors as u32
}

/// What the machine's host has taken of all processors since it started, which Linux counts in
/// hundredths of a second.
fn stolen() -> Duration {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let hundredths =
        stat.lines().next().and_then(|all| all.split_whitespace().nth(8)?.parse().ok());
    Duration::from_millis(10 * hundredths.unwrap_or(0))
}

/// Whether tests shall take less time and look at less, as `scripts/test` asks for before each
/// commit.
pub fn quick() -> bool {
    std::env::var_os("HELIOSTAT_QUICK").is_some_and(|v| v == "1")
}

/// What a test holds while it uses the network: its place among the tests of all processes of this
/// user.
pub struct Turn {
    /// Unlocked when it is closed.
    _file: File,
}

impl Turn {
    fn file() -> File {
        File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(base().with_extension("lock"))
            .expect("a lock file")
    }
}

/// For a test of facts: waits until no test measures. Other tests of facts run beside it.
pub fn together() -> Turn {
    let file = Turn::file();
    file.lock_shared().expect("the lock of this user's tests");
    Turn { _file: file }
}

/// For a test that measures, or that is a load for others: waits until no other test runs.
pub fn alone() -> Turn {
    let file = Turn::file();
    file.lock().expect("the lock of this user's tests");
    Turn { _file: file }
}

/// Where the tests' emulations keep their notes: in one place, so that what a killed run left goes
/// with the next one's start.
pub fn base() -> PathBuf {
    std::env::temp_dir().join(format!("heliostat-test-{}", sys::uid_gid().0))
}
