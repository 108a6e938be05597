//! Whether this process was started without a standard output.
//!
//! Rust's runtime opens `/dev/null` in its place before `main`, and what is printed is lost without
//! an error. So it is looked before that.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    // SAFETY: integers only; nothing of Rust's runtime is used, which is not there yet.
    CLOSED.store(unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } < 0, Relaxed);
}

// SAFETY: what stands in this section is called before `main`, and may be.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Whether there was none.
pub fn stdout_was_closed() -> bool {
    CLOSED.load(Relaxed)
}
