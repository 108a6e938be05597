//! Users and their rights.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::process::{geteuid, getgid, getuid};

/// Whether the process's effective user is root (in its user namespace).
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Real user and group id.
pub fn uid_gid() -> (u32, u32) {
    (getuid().as_raw(), getgid().as_raw())
}

/// Whether the process may write to a file, or make files in a directory, with its effective
/// rights.
pub fn may_write(path: &Path) -> bool {
    accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

/// Makes a directory that all users of the machine share. One that is not root's would let its
/// owner replace what root relies on: only root makes it, and it is refused if it is another
/// user's.
///
/// # Errors
/// It cannot be made, or is not root's.
pub fn make_shared(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let refused = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    let name = directory.display();
    match fs::symlink_metadata(directory) {
        Ok(there) if there.uid() == 0 => Ok(()),
        Ok(there) => refused(format!(
            "{name} belongs to user {}, and must be root's; remove it as root",
            there.uid()
        )),
        Err(_) if is_root() => fs::create_dir_all(directory),
        Err(_) => refused(format!(
            "{name} is missing, and only root may make it: sudo install -d -m 755 {name}"
        )),
    }
}

/// The real user id as it was outside of this process's user namespace, where root of a network
/// without root is the user who started it.
pub fn user_outside() -> u32 {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    outside(&map, uid_gid().0)
}

/// The number of the user who runs this process: under sudo, of who called it.
pub fn caller() -> u32 {
    let by_sudo = std::env::var("SUDO_UID").ok().and_then(|id| id.parse().ok());
    by_sudo.filter(|_| is_root()).unwrap_or_else(user_outside)
}

/// The user id that a map of user_namespaces(7) gives one of its namespace, or the same if it has
/// none.
fn outside(map: &str, own: u32) -> u32 {
    let mut ranges = map.lines().filter_map(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<u32>);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    let outer = ranges.find_map(|(first, outer, count)| {
        outer.checked_add(own.checked_sub(first).filter(|at| *at < count)?)
    });
    outer.unwrap_or(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_known_by_their_number_outside() {
        assert_eq!(outside("         0          0 4294967295\n", 7), 7);
        assert_eq!(outside("         0       1001          1\n", 0), 1001);
        assert_eq!(outside("0 1000 1\n1 100000 65536\n", 5), 100_004);
        for no_map in ["", "x y z\n", "0 4294967295 2\n", "9 5 1\n"] {
            assert_eq!(outside(no_map, 1), 1, "{no_map:?}");
        }
    }
}
