//! The locks of fabrics' directories: what says that a fabric is running.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a command that only looks may hold a lock.
const LOOK: Duration = Duration::from_millis(200);

/// Makes a fabric's directory and locks it. Its last owner may take it away meanwhile: a lock on
/// what is gone counts nothing.
pub fn make_lock(directory: &Path) -> io::Result<File> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let begun = Instant::now();
    loop {
        fs::create_dir_all(directory)?;
        // What others cannot enter they can neither lock nor read.
        if fs::metadata(directory)?.mode() & 0o7777 != 0o700 {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
        }
        match lock(directory) {
            Ok(held) if has_lock(directory, &held) => return Ok(held),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && begun.elapsed() < LOOK => {
                std::thread::sleep(LOOK / 20)
            }
            Err(e) => return Err(e),
        }
    }
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

/// Whether this open file is the lock of a fabric's directory, and not one that has been removed.
pub fn has_lock(directory: &Path, lock: &File) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let there = fs::metadata(directory.join("lock")).map(|m| m.ino());
    there.is_ok_and(|i| lock.metadata().is_ok_and(|m| m.ino() == i))
}

/// Removes a fabric's directory; the caller holds its lock. The lock goes last: from then on the
/// directory, if it is still there, is that of the next process that locks it.
pub fn remove_directory(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)?.flatten().filter(|e| e.file_name() != "lock") {
        let path = entry.path();
        let gone = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        gone.or_else(unless_gone)?;
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
