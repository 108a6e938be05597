//! Network namespaces without fork: a thread unshares, and keeps its namespace by a descriptor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use super::sys;

/// Where `ip netns` looks for names.
pub const NAMES: &str = "/run/netns";

/// Runs `f` on a fresh thread inside the namespace. Sockets that it returns stay there.
///
/// # Errors
/// When the namespace cannot be entered, or what `f` says.
pub fn within<T: Send>(ns: BorrowedFd, f: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|s| {
        s.spawn(|| {
            sys::setns(ns, libc::CLONE_NEWNET)?;
            f()
        })
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Makes a namespace and prepares it: no IPv6, no reverse path filter, and forwarding for a switch.
///
/// # Errors
/// What the kernel refused.
pub fn create(forward: bool) -> io::Result<OwnedFd> {
    std::thread::scope(|s| s.spawn(|| enter_new(None, forward)).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

/// The same, and the calling thread is in it from then on. `nursery` is the namespace from which it is unshared: some settings are
/// inherited from it.
///
/// # Errors
/// What the kernel refused.
pub fn enter_new(nursery: Option<BorrowedFd>, forward: bool) -> io::Result<OwnedFd> {
    if let Some(n) = nursery {
        sys::setns(n, libc::CLONE_NEWNET)?;
    }
    sys::unshare(libc::CLONE_NEWNET)?;
    // Old kernels and hardened ones may lack a key: only forwarding is vital.
    for key in ["ipv6/conf/all/disable_ipv6", "ipv6/conf/default/disable_ipv6"] {
        let _ = write_sysctl(key, "1");
    }
    for key in ["ipv4/conf/all/rp_filter", "ipv4/conf/default/rp_filter"] {
        let _ = write_sysctl(key, "0");
    }
    if forward {
        write_sysctl("ipv4/ip_forward", "1")?;
    }
    sys::open_ns(&own_path())
}

/// A namespace whose children get small TCP hash tables, so that listing a host's sockets costs 10 us, not 140 us.
///
/// # Errors
/// What the kernel refused.
pub fn nursery() -> io::Result<OwnedFd> {
    let ns = create(false)?;
    let _ = within(ns.as_fd(), || write_sysctl("ipv4/tcp_child_ehash_entries", "256"));
    Ok(ns)
}

/// Has TCP of a namespace ask its peers for congestion marks (ECN); by itself it only agrees to them.
///
/// # Errors
/// What the kernel refused.
pub fn ask_for_marks(ns: BorrowedFd) -> io::Result<()> {
    within(ns, || write_sysctl("ipv4/tcp_ecn", "1"))
}

/// Writes `/proc/sys/net/KEY` of the calling thread's namespace.
fn write_sysctl(key: &str, value: &str) -> io::Result<()> {
    let file = format!("/proc/sys/net/{key}");
    std::fs::write(&file, value).map_err(|e| {
        let hint =
            if e.kind() == io::ErrorKind::ReadOnlyFilesystem { "; in Docker, add --security-opt systempaths=unconfined" } else { "" };
        io::Error::new(e.kind(), format!("write {file}: {e}{hint}"))
    })
}

fn own_path() -> PathBuf {
    PathBuf::from(format!("/proc/self/task/{}/ns/net", sys::thread_id()))
}

/// Gives a namespace a name that `ip netns` shows; returns its identity (see [`identity`]). The file under the name carries `mark`, which
/// is seen where a process is killed between the steps of giving or taking the name.
///
/// # Errors
/// `AlreadyExists` if the name is taken; else what the kernel refused.
pub fn publish(ns: BorrowedFd, name: &str, mark: &str) -> io::Result<u64> {
    use std::os::fd::AsRawFd;
    sys::make_shared(Path::new(NAMES))?;
    let path = Path::new(NAMES).join(name);
    make_marked(&path, mark)?;
    sys::bind_mount(Path::new(&format!("/proc/self/fd/{}", ns.as_raw_fd())), &path).inspect_err(|_| {
        let _ = std::fs::remove_file(&path);
    })?;
    identity(&path)
}

/// Makes a file with a mark, in one step where the file system can do that.
fn make_marked(path: &Path, mark: &str) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::File::options();
    options.write(true).mode(0o644);
    match options.clone().custom_flags(libc::O_TMPFILE).open(NAMES) {
        Ok(mut file) => file.write_all(mark.as_bytes()).and_then(|()| sys::name_file(&file, path)),
        Err(e) if matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {
            options.create_new(true).open(path)?.write_all(mark.as_bytes())
        }
        Err(e) => Err(e),
    }
}

/// The mark of a name that leads to no namespace, if the file has one.
pub fn mark_of(path: &Path) -> Option<String> {
    const LONGEST: u64 = 4096;
    // A name that leads to a namespace is a file without a length.
    let is_marked = std::fs::symlink_metadata(path).is_ok_and(|m| m.is_file() && (1..=LONGEST).contains(&m.len()));
    is_marked.then(|| std::fs::read_to_string(path).ok()).flatten()
}

/// Takes a name away; the namespace goes when it is not used any more.
///
/// # Errors
/// What the kernel refused.
pub fn unpublish(name: &str) -> io::Result<()> {
    let path = Path::new(NAMES).join(name);
    let _ = sys::unmount(&path);
    std::fs::remove_file(path)
}

/// The identity of a namespace: its inode on nsfs.
///
/// # Errors
/// What `stat` said.
pub fn identity(path: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    Ok(std::fs::metadata(path)?.ino())
}
