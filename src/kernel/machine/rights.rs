//! What this process may do to the machine's network: root's rights, or the capabilities that an
//! emulation needs of them.

use std::path::Path;

use super::sys;
use crate::netns;

/// Where the machine's fabrics keep their notes.
pub const NOTES: &str = "/run/heliostat";

/// A right of root's that a process can have by itself (capabilities(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Its number in linux/capability.h.
    bit: u32,
    /// Its name.
    pub name: &'static str,
}

/// Writes files and directories of other users.
const WRITE: Capability = Capability { bit: 1, name: "CAP_DAC_OVERRIDE" };
/// Makes links, addresses, queues and filters.
const NET: Capability = Capability { bit: 12, name: "CAP_NET_ADMIN" };
/// Sends and receives the frames that probe circuits.
const FRAMES: Capability = Capability { bit: 13, name: "CAP_NET_RAW" };
/// Enters the processes of nodes that others made.
const TRACE: Capability = Capability { bit: 19, name: "CAP_SYS_PTRACE" };
/// Makes namespaces, mounts their names, loads BPF programs.
const SYSTEM: Capability = Capability { bit: 21, name: "CAP_SYS_ADMIN" };

/// The effective capabilities of this process, a bit each; none where the kernel does not say.
fn effective() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|l| l.strip_prefix("CapEff:")).map(str::trim);
    set.and_then(|s| u64::from_str_radix(s, 16).ok()).unwrap_or(0)
}

/// Those of `needed` that are not in a set.
fn lacking(effective: u64, needed: &[Capability]) -> Vec<Capability> {
    needed.iter().filter(|c| effective >> c.bit & 1 == 0).copied().collect()
}

/// What this process lacks to build networks of the machine. A user who is not root needs the names
/// of namespaces and the notes to be writable, too.
pub fn missing() -> Vec<Capability> {
    let (names, notes) = (Path::new(netns::NAMES), Path::new(NOTES));
    let needed = if [names, notes].into_iter().all(can_write) {
        &[NET, FRAMES, SYSTEM][..]
    } else {
        &[WRITE, NET, FRAMES, SYSTEM]
    };
    lacking(effective(), needed)
}

/// What it lacks beyond that to control nodes that others made.
pub fn missing_to_attach() -> Vec<Capability> {
    lacking(effective(), &[TRACE])
}

/// The names of what root, or a user with a part of the capabilities, lacks; `None`: it has all of
/// them, or is a user without any.
pub fn missing_of_some() -> Option<String> {
    let has_some = sys::is_root() || lacking(effective(), &[NET, FRAMES, SYSTEM]).len() < 3;
    Some(missing()).filter(|m| has_some && !m.is_empty()).map(|m| names(&m))
}

/// Whether it may make a directory, or files in it if it is there.
fn can_write(directory: &Path) -> bool {
    let there = directory.ancestors().find(|d| d.exists());
    there.is_some_and(sys::may_write)
}

/// Whether it builds networks with rights of its own; others do that in a user namespace.
pub fn suffice() -> bool {
    sys::is_root() || missing().is_empty()
}

/// Whether its networks are the machine's: their namespaces have names, and their notes a place,
/// which all can find.
pub fn are_of_the_machine() -> bool {
    sys::in_first_user_namespace() && suffice()
}

/// The names of capabilities, as a list for people.
pub fn names(capabilities: &[Capability]) -> String {
    capabilities.iter().map(|c| c.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let all = [WRITE, NET, FRAMES, SYSTEM];
        assert_eq!(
            names(&lacking(0, &all)),
            "CAP_DAC_OVERRIDE, CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN"
        );
        assert_eq!(names(&lacking(1 << 12 | 1 << 1 | 1 << 19, &all)), "CAP_NET_RAW, CAP_SYS_ADMIN");
        assert_eq!(lacking(u64::MAX, &all), []);
    }

    #[test]
    fn a_directory_that_is_not_there_is_as_writable_as_the_one_above() {
        let dir = tempfile::tempdir().unwrap();
        assert!(can_write(&dir.path().join("a/b")));
    }
}
