//! The locks of fabrics' directories: what says that a fabric is running.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::read_note;
use crate::sys;

/// How long another process may take its turn.
const TURN: Duration = Duration::from_secs(10);

/// A turn at what dead fabrics left, until it is dropped. Of two that remove at once each would
/// stop at the first thing that the other has removed. One that removes a stale note holds its
/// lock, and the fabric seems to run. One that has seen a dead fabric must not meet the next of
/// that name.
pub fn turn(base: &Path) -> Option<File> {
    let directory = File::open(base).ok()?;
    if !sys::lock_within(&directory, TURN) {
        tracing::warn!("{} is locked by another process, and not waited for", base.display());
    }
    Some(directory)
}

/// How long a command that only looks may hold the lock of a fabric that runs.
pub(super) const LOOK: Duration = Duration::from_millis(200);

/// How long a lock may be held until its fabric counts as running. The process of one that runs is
/// in its note; else a command removes what is stale, which takes longer on a busy disk.
fn patience(directory: &Path) -> Duration {
    let runs = |pid: u32| Path::new("/proc").join(pid.to_string()).exists();
    if read_note(directory).is_some_and(|note| runs(note.pid)) { LOOK } else { TURN }
}

/// Makes a fabric's directory and locks it. Another process may remove it meanwhile.
pub fn make_lock(directory: &Path) -> io::Result<File> {
    use io::ErrorKind::{AlreadyExists, NotFound, WouldBlock};
    let begun = Instant::now();
    loop {
        match try_make_lock(directory) {
            Err(e)
                if matches!(e.kind(), AlreadyExists | NotFound | WouldBlock)
                    && begun.elapsed() < patience(directory) =>
            {
                std::thread::sleep(LOOK / 20)
            }
            done => return done,
        }
    }
}

fn try_make_lock(directory: &Path) -> io::Result<File> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    fs::create_dir_all(directory)?;
    // What others cannot enter they can neither lock nor read.
    if fs::metadata(directory)?.mode() & 0o7777 != 0o700 {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    }
    let lock = lock(directory)?;
    // A lock on what is gone counts nothing.
    if has_lock(directory, &lock) { Ok(lock) } else { Err(io::ErrorKind::NotFound.into()) }
}

pub fn lock(directory: &Path) -> io::Result<File> {
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
    // A file that others can open they can lock as well.
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(directory.join("lock"))?;
    if file.metadata()?.mode() & 0o7777 != 0o600 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    file.try_lock()?;
    Ok(file)
}

/// The identity of the file that is the lock of a fabric's directory now, if there is one.
pub fn lock_inode(directory: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(directory.join("lock")).map(|m| m.ino()).ok()
}

/// Whether this open file is the lock of a fabric's directory, and not one that has been removed.
pub fn has_lock(directory: &Path, lock: &File) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    lock.metadata().is_ok_and(|m| lock_inode(directory) == Some(m.ino()))
}

/// Removes a fabric's directory; the caller holds its lock. The lock goes last: from then on the
/// directory, if it is still there, is that of the next process that locks it.
pub fn remove_directory(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)?.flatten().filter(|e| e.file_name() != "lock") {
        let is_directory = entry.file_type().is_ok_and(|t| t.is_dir());
        let remove = if is_directory { fs::remove_dir_all } else { fs::remove_file };
        remove(entry.path()).or_else(unless_gone)?;
    }
    fs::remove_file(directory.join("lock")).or_else(unless_gone)?;
    match fs::remove_dir(directory) {
        Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        done => done.or_else(unless_gone),
    }
}

fn unless_gone(e: io::Error) -> io::Result<()> {
    if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) }
}

/// Whether a process holds the lock of a fabric's directory. Many may look at the same time.
pub fn is_held(directory: &Path) -> bool {
    File::open(directory.join("lock"))
        .is_ok_and(|f| matches!(f.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
}

/// The same, for longer than a command that looks or removes holds it.
pub fn stays_held(directory: &Path) -> bool {
    let begun = Instant::now();
    while is_held(directory) {
        if begun.elapsed() >= patience(directory) {
            return true;
        }
        std::thread::sleep(LOOK / 20);
    }
    false
}

/// The owner of a fabric's directory, if a process holds its lock. The lock may be any file, set
/// there by anyone: it is not waited for.
pub fn held_by(directory: &Path) -> Option<u32> {
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
        .open(directory.join("lock"))
        .ok()?;
    let held = matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock));
    Some(file.metadata().ok()?.uid()).filter(|_| held)
}
