//! The memory that may be taken, and what runs that go on at once have been promised of it.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use parking_lot::{Condvar, Mutex};

use super::CliError;
use crate::units::Bytes;

/// The environment variable that says how much memory may be taken, whatever is free.
const VARIABLE: &str = "HELIOSTAT_MEMORY";

/// An amount of memory, and where it is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Available {
    /// The amount.
    pub bytes: Bytes,
    /// Where it is from, as the end of a sentence: `free on this machine`.
    pub from: &'static str,
}

/// What may be taken in all: `$HELIOSTAT_MEMORY`, else what was free when this was first asked, by
/// the kernel's estimate or within the limit of the control group; `None` where the kernel does not
/// say.
///
/// # Errors
/// A value of the variable that is no amount.
pub fn available() -> Result<Option<Available>, CliError> {
    static FREE: LazyLock<Option<Available>> = LazyLock::new(|| free(Path::new("/")));
    let Some(text) = std::env::var_os(VARIABLE) else { return Ok(*FREE) };
    let text = text.to_string_lossy();
    let bytes = text.parse().map_err(|e| CliError::Usage(format!("{VARIABLE}: {e}")))?;
    Ok(Some(Available { bytes, from: "allowed by $HELIOSTAT_MEMORY" }))
}

/// The least of what the kernel and the control groups leave, by the files below `root`.
fn free(root: &Path) -> Option<Available> {
    let machine = meminfo(root).map(|bytes| Available { bytes, from: "free on this machine" });
    let groups = groups(root).into_iter().filter_map(|g| left(&g));
    let groups = groups.map(|bytes| Available { bytes, from: "left in this control group" });
    machine.into_iter().chain(groups).min_by_key(|a| a.bytes)
}

/// What can be had without swapping.
fn meminfo(root: &Path) -> Option<Bytes> {
    let text = std::fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(kilobytes.saturating_mul(1024)))
}

/// The directories of this process's control groups that may limit memory, and of those around
/// them.
fn groups(root: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut out = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let mount = match controllers {
            "" => root.join("sys/fs/cgroup"),
            some if some.split(',').any(|c| c == "memory") => root.join("sys/fs/cgroup/memory"),
            _ => continue,
        };
        let own = mount.join(path.trim_start_matches('/'));
        out.extend(own.ancestors().take_while(|a| a.starts_with(&mount)).map(Path::to_path_buf));
    }
    out
}

/// What a control group's limit leaves, if it has one: pages of files and kernel tables that can be
/// dropped can be had as well.
fn left(group: &Path) -> Option<Bytes> {
    let number = |names: [&str; 2]| {
        names
            .iter()
            .find_map(|n| std::fs::read_to_string(group.join(n)).ok()?.trim().parse::<u64>().ok())
    };
    let most = number(["memory.max", "memory.limit_in_bytes"])?;
    let used = number(["memory.current", "memory.usage_in_bytes"])?;
    let stat = std::fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let field =
        |name: &str| stat.lines().find_map(|l| l.strip_prefix(name)?.trim().parse::<u64>().ok());
    let kind = |name: &str| {
        field(&format!("total_{name} ")).or_else(|| field(&format!("{name} "))).unwrap_or(0)
    };
    let idle = ["inactive_file", "active_file", "slab_reclaimable"]
        .into_iter()
        .map(kind)
        .fold(0, u64::saturating_add);
    Some(Bytes(most.saturating_sub(used.saturating_sub(idle))))
}

/// Memory that runs have been promised, in all.
struct MemoryLedger {
    promised: Mutex<u64>,
    freed: Condvar,
}

static LEDGER: MemoryLedger = MemoryLedger::new();

/// Memory that a run has been promised until this is dropped, in bytes.
pub struct MemoryPromise(u64, &'static MemoryLedger);

/// Promises memory to a run, of `most` in all. Waits while runs of other threads have too much of
/// it; a run alone never waits.
pub fn promise(need: Bytes, most: Bytes) -> MemoryPromise {
    LEDGER.promise(need, most)
}

impl MemoryLedger {
    const fn new() -> Self {
        Self { promised: Mutex::new(0), freed: Condvar::new() }
    }

    /// Whether a run must wait for others.
    fn is_short(promised: u64, need: Bytes, most: Bytes) -> bool {
        promised > 0 && promised.saturating_add(need.0) > most.0
    }

    fn promise(&'static self, need: Bytes, most: Bytes) -> MemoryPromise {
        let mut promised = self.promised.lock();
        self.freed.wait_while(&mut promised, |p| Self::is_short(*p, need, most));
        let taken = need.0.min(u64::MAX - *promised);
        *promised += taken;
        MemoryPromise(taken, self)
    }
}

impl Drop for MemoryPromise {
    fn drop(&mut self) {
        *self.1.promised.lock() -= self.0;
        self.1.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, file: &str, text: &str) {
        let file = root.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    #[test]
    fn the_tightest_limit_counts() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        assert_eq!(free(root), None);
        put(root, "proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n");
        assert_eq!(
            free(root),
            Some(Available { bytes: Bytes(8_192_000), from: "free on this machine" })
        );
        // Version 2: the group itself has no limit, and the one around it has.
        put(root, "proc/self/cgroup", "0::/outer/inner\n");
        put(root, "sys/fs/cgroup/outer/inner/memory.max", "max\n");
        put(root, "sys/fs/cgroup/outer/memory.max", "5000000\n");
        put(root, "sys/fs/cgroup/outer/memory.current", "3000000\n");
        put(
            root,
            "sys/fs/cgroup/outer/memory.stat",
            "anon 1\nactive_file 300000\ninactive_file 600000\nslab_reclaimable 100000\n",
        );
        assert_eq!(
            free(root),
            Some(Available { bytes: Bytes(3_000_000), from: "left in this control group" })
        );
        // Version 1, in which a limit that is none is a large number.
        put(root, "proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/b\n");
        put(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        put(root, "sys/fs/cgroup/memory/memory.usage_in_bytes", "77\n");
        put(root, "sys/fs/cgroup/memory/b/memory.limit_in_bytes", "2000\n");
        put(root, "sys/fs/cgroup/memory/b/memory.usage_in_bytes", "2500\n");
        assert_eq!(free(root).map(|a| a.bytes), Some(Bytes(0)));
    }

    #[test]
    fn runs_wait_for_each_other_only_where_there_is_too_little() {
        static OWN: MemoryLedger = MemoryLedger::new();
        let short = |promised, need| MemoryLedger::is_short(promised, Bytes(need), Bytes(100));
        assert_eq!((short(60, 40), short(60, 41), short(0, u64::MAX)), (false, true, false));
        let first = OWN.promise(Bytes(60), Bytes(100));
        drop(OWN.promise(Bytes(40), Bytes(100)));
        let second = std::thread::spawn(|| drop(OWN.promise(Bytes(70), Bytes(100))));
        drop(first);
        second.join().unwrap();
        // More than there is in all goes on alone.
        drop(OWN.promise(Bytes(u64::MAX), Bytes(100)));
        assert_eq!(*OWN.promised.lock(), 0);
    }
}
