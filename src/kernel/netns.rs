//! Network namespaces without fork: a thread unshares, and keeps its namespace by a descriptor.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
            sys::setns(ns, sys::Kind::Network)?;
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
    std::thread::scope(|s| {
        s.spawn(|| enter_new(None, forward))
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The same, and the calling thread is in it from then on. `nursery` is the namespace from which it
/// is unshared: some settings are inherited from it.
///
/// # Errors
/// What the kernel refused.
pub fn enter_new(nursery: Option<BorrowedFd>, forward: bool) -> io::Result<OwnedFd> {
    if let Some(n) = nursery {
        sys::setns(n, sys::Kind::Network)?;
    }
    sys::own_network()?;
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

/// A namespace whose children get small TCP hash tables, so that listing a host's sockets costs 10
/// us, not 140 us.
///
/// # Errors
/// What the kernel refused.
pub fn nursery() -> io::Result<OwnedFd> {
    let ns = create(false)?;
    let _ = within(ns.as_fd(), || write_sysctl("ipv4/tcp_child_ehash_entries", "256"));
    Ok(ns)
}

/// Has TCP of a namespace ask its peers for congestion marks (ECN); by itself it only agrees to
/// them.
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
        let hint = if e.kind() == io::ErrorKind::ReadOnlyFilesystem {
            "; in Docker, add --security-opt systempaths=unconfined"
        } else {
            ""
        };
        io::Error::new(e.kind(), format!("write {file}: {e}{hint}"))
    })
}

fn own_path() -> PathBuf {
    PathBuf::from(format!("/proc/self/task/{}/ns/net", sys::thread_id()))
}

/// The directory of names as it was when it was opened: what others mount over it later hides no
/// name from its holder.
#[derive(Debug)]
pub struct Directory(File);

impl Directory {
    /// Opens it, and makes it what `ip netns` makes of it when it gives the first name of a boot: a
    /// shared mount. Otherwise that would mount the directory over itself later, and names that
    /// were given before could not be taken away.
    ///
    /// # Errors
    /// It cannot be made or opened.
    pub fn open() -> io::Result<Self> {
        let names = Path::new(NAMES);
        sys::make_shared(names)?;
        {
            // As iproute2 does: of two that come first, one mounts.
            let lock = File::open(names)?;
            sys::lock_within(&lock, TURN);
            if let Err(e) = sys::share_mounts(names) {
                tracing::warn!(
                    "{NAMES} cannot be made a shared mount ({e}); an `ip netns add` may hide names in it"
                );
            }
        }
        Ok(Self(
            File::options()
                .read(true)
                .custom_flags(libc::O_PATH | libc::O_DIRECTORY)
                .open(names)?,
        ))
    }

    /// The places at which a name may be: in what is seen now, and in what was opened.
    fn places(&self, name: &str) -> [PathBuf; 2] {
        [
            Path::new(NAMES).join(name),
            PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd())).join(name),
        ]
    }

    /// Takes a name of ours away: all mounts of the namespace, and the file if it carries our mark.
    /// What another program has put there stays.
    ///
    /// # Errors
    /// Something of it is left.
    pub fn take_away(&self, name: &str, inode: u64, mark: &str) -> io::Result<()> {
        let places = self.places(name);
        let is_ours = |p: &Path| identity(p).is_ok_and(|i| i == inode);
        places.iter().for_each(|p| unmount_all(p, is_ours));
        let marked = places.iter().filter(|p| mark_of(p).is_some_and(|m| m == mark));
        // The two places are one, as a rule, and the name is gone after the first.
        let gone = marked.map(|p| match std::fs::remove_file(p) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        });
        gone.collect::<io::Result<Vec<()>>>()?;
        if places.iter().any(|p| is_ours(p)) {
            Err(io::ErrorKind::ResourceBusy.into())
        } else {
            Ok(())
        }
    }
}

/// How long another program's turn at the directory of names may last.
const TURN: Duration = Duration::from_millis(500);

/// Unmounts what is mounted at a path, the last first, as long as that is ours. A directory that
/// was mounted over itself has every mount below it twice.
fn unmount_all(path: &Path, is_ours: impl Fn(&Path) -> bool) {
    while is_ours(path) && sys::unmount(path).is_ok() {}
}

/// Gives a namespace a name that `ip netns` shows; returns its identity (see [`identity`]). The
/// file under the name carries `mark`, which is seen where a process is killed between the steps of
/// giving or taking the name.
///
/// # Errors
/// `AlreadyExists` if the name is taken; else what the kernel refused.
pub fn publish(ns: BorrowedFd, name: &str, mark: &str) -> io::Result<u64> {
    let path = Path::new(NAMES).join(name);
    make_marked(&path, mark)?;
    sys::bind_mount(Path::new(&format!("/proc/self/fd/{}", ns.as_raw_fd())), &path).inspect_err(
        |_| {
            let _ = std::fs::remove_file(&path);
        },
    )?;
    identity(&path)
}

/// Makes a file with a mark, in one step where the file system can do that.
fn make_marked(path: &Path, mark: &str) -> io::Result<()> {
    use std::io::Write;
    let mut options = File::options();
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
    let is_marked = std::fs::symlink_metadata(path)
        .is_ok_and(|m| m.is_file() && (1..=LONGEST).contains(&m.len()));
    is_marked.then(|| std::fs::read_to_string(path).ok()).flatten()
}

/// Takes a name away, with every mount at it that is `ours`; the namespace goes when it is not used
/// any more.
///
/// # Errors
/// What the kernel refused.
pub fn unpublish(name: &str, ours: impl Fn(&Path) -> bool) -> io::Result<()> {
    let path = Path::new(NAMES).join(name);
    unmount_all(&path, ours);
    std::fs::remove_file(path)
}

/// Names at which namespaces are mounted and cannot be reached, and these namespaces' identities:
/// another program has mounted something over the directory or the name.
pub fn hidden() -> Vec<(String, u64)> {
    let mut found = hidden_at_once();
    if !found.is_empty() {
        // A name that was taken away between a look at the mounts and one at the name is not there
        // any more.
        let again = hidden_at_once();
        found.retain(|f| again.contains(f));
    }
    found
}

fn hidden_at_once() -> Vec<(String, u64)> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let name = |line: &str| {
        // Identity, parent, device, root, mount point: of a namespace the root is
        // `net:[4026532000]`.
        let mut words = line.split(' ').skip(3);
        let inode = words.next()?.strip_prefix("net:[")?.strip_suffix(']')?.parse::<u64>().ok()?;
        let path = Path::new(words.next()?);
        let named = path.parent() == Some(Path::new(NAMES))
            && identity(path).map_or(true, |seen| seen != inode);
        named.then(|| Some((path.file_name()?.to_string_lossy().into_owned(), inode)))?
    };
    let mut names: Vec<(String, u64)> = mounts.lines().filter_map(name).collect();
    names.sort();
    names.dedup();
    names
}

/// The identity of a namespace: its inode on nsfs.
///
/// # Errors
/// What `stat` said.
pub fn identity(path: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    Ok(std::fs::metadata(path)?.ino())
}
