//! Namespaces, and what is mounted in them.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, UnmountFlags};
pub use rustix::thread::LinkNameSpaceType as Kind;
use rustix::thread::UnshareFlags;

use super::uid_gid;

/// Opens a process's namespace file (`net`, `user`, `mnt`).
pub fn open_ns(path: &Path) -> io::Result<OwnedFd> {
    Ok(File::open(path)?.into())
}

/// Makes the calling thread a member of a namespace of the given kind.
pub fn setns(ns: BorrowedFd, kind: Kind) -> io::Result<()> {
    Ok(rustix::thread::move_into_link_name_space(ns, Some(kind))?)
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: no caller asks for a table of descriptors of its own (FILES).
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Gives the calling thread a new network namespace.
pub fn own_network() -> io::Result<()> {
    unshare(UnshareFlags::NEWNET)
}

/// Gives this process a host name of its own: other ones keep theirs.
pub fn own_host_name(name: &str) -> io::Result<()> {
    unshare(UnshareFlags::NEWUTS)?;
    Ok(rustix::system::sethostname(name.as_bytes())?)
}

/// Lays files of our own over those of the machine, for this process and its children only. Where
/// the machine has no such file, nothing is laid.
pub fn own_files(files: &[(PathBuf, &Path)]) -> io::Result<()> {
    unshare(UnshareFlags::NEWNS)?;
    // What is mounted here is seen nowhere else; what the machine mounts later is seen here.
    let from_outside = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", from_outside)?;
    files
        .iter()
        .filter(|(_, place)| place.exists())
        .try_for_each(|(file, place)| bind_mount(file, place))
}

/// Whether this process is in the machine's first user namespace (and its root is the machine's).
pub fn in_first_user_namespace() -> bool {
    // The first one maps every id to itself, in one line.
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().collect::<Vec<_>>() == ["0", "0", "4294967295"]
}

/// Gives a process without root a user namespace in which it is root, and a network namespace that
/// belongs to it. The process must have one thread.
pub fn become_namespace_root() -> io::Result<()> {
    let (uid, gid) = uid_gid();
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {gid} 1"))?;
    // So that `exec` of the same user finds this process's namespaces below /proc.
    Ok(rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)?)
}

/// Gives a file that was opened without a name (`O_TMPFILE`) its name; `AlreadyExists` if that is
/// taken.
pub fn name_file(file: &File, path: &Path) -> io::Result<()> {
    let from = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::linkat(CWD, from, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Bind-mounts `from` on `to`.
pub fn bind_mount(from: &Path, to: &Path) -> io::Result<()> {
    Ok(rustix::mount::mount_bind(from, to)?)
}

/// Unmounts lazily what is mounted last at a path.
pub fn unmount(path: &Path) -> io::Result<()> {
    Ok(rustix::mount::unmount(path, UnmountFlags::DETACH)?)
}

/// Has all mounts at and below a directory be shared, as `ip netns` wants it of its names: the
/// directory is mounted on itself first where it is no mount.
///
/// # Errors
/// What the kernel refused.
pub fn share_mounts(directory: &Path) -> io::Result<()> {
    let shared = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
    match rustix::mount::mount_change(directory, shared) {
        Err(Errno::INVAL) => {
            rustix::mount::mount_bind_recursive(directory, directory)?;
            Ok(rustix::mount::mount_change(directory, shared)?)
        }
        done => Ok(done?),
    }
}
