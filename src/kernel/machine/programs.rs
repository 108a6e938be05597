//! Programs that users started in our namespaces: a namespace lives as long as any runs in it. They
//! are named, and ended only if that is asked for.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::sys::ProcessHandle;
use crate::netns;
use crate::ownership::{self, FabricNote, fabric_of};

/// How long a program may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(2);

/// A process in a namespace of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceProgram {
    /// Its number.
    pub pid: u32,
    /// What the kernel calls it.
    pub command: String,
    /// The fabric.
    pub fabric: String,
    /// The node, as far as a note tells.
    pub node: Option<String>,
    /// Identity of its namespace.
    inode: u64,
}

impl std::fmt::Display for NamespaceProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = self.node.as_ref().map_or_else(String::new, |n| format!(" in {n}"));
        write!(f, "{} ({}{place})", self.pid, self.command)
    }
}

/// All processes in namespaces that carry the mark of a fabric which keeps its note in `base`,
/// whether it runs or is gone; by fabric and number. Processes of other users are seen by root
/// only.
pub fn all(base: &Path) -> Vec<NamespaceProgram> {
    let mut nodes = BTreeMap::new();
    for note in ownership::running(base) {
        nodes.extend(identities(&note));
    }
    let own = netns::identity(Path::new("/proc/self/ns/net")).ok();
    let mut fabrics: BTreeMap<u64, Option<String>> = own.map(|i| (i, None)).into_iter().collect();
    let mut found = vec![];
    for pid in pids() {
        let place = PathBuf::from(format!("/proc/{pid}/ns/net"));
        let Ok(inode) = netns::identity(&place) else { continue };
        let fabric = fabrics.entry(inode).or_insert_with(|| fabric_of(&place, base)).clone();
        let Some(fabric) = fabric.filter(|_| pid != std::process::id()) else { continue };
        let command = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        // What a process calls itself may hold anything.
        let command = command.trim_end().escape_debug().to_string();
        found.push(NamespaceProgram {
            pid,
            command,
            fabric,
            node: nodes.get(&inode).cloned(),
            inode,
        });
    }
    found.sort_by(|a, b| (&a.fabric, a.pid).cmp(&(&b.fabric, b.pid)));
    found
}

/// The processes in the nodes of the fabric that keeps its note in this directory.
pub fn of(directory: &Path) -> Vec<NamespaceProgram> {
    let (Some(base), Some(name)) =
        (directory.parent(), directory.file_name().and_then(|n| n.to_str()))
    else {
        return vec![];
    };
    all(base).into_iter().filter(|p| p.fabric == name).collect()
}

/// The nodes of a running fabric by the identity of their namespaces.
fn identities(note: &FabricNote) -> impl Iterator<Item = (u64, String)> + '_ {
    let one = |(node, fd): (&String, &i32)| {
        Some((
            netns::identity(Path::new(&format!("/proc/{}/fd/{fd}", note.pid))).ok()?,
            node.clone(),
        ))
    };
    note.nodes.iter().filter_map(one)
}

fn pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
}

/// Ends programs: asks them to, and kills those that have not ended in time. Gives those that could
/// not be ended, and why.
pub fn end(programs: &[NamespaceProgram]) -> Vec<String> {
    let mut left = vec![];
    let mut asked = vec![];
    for p in programs {
        match open(p).and_then(|process| {
            process.map_or(Ok(None), |process| process.terminate().map(|()| Some(process)))
        }) {
            Ok(process) => asked.extend(process.map(|process| (p, process))),
            Err(e) => left.push(format!("{p}: {e}")),
        }
    }
    for (p, process) in asked {
        let ended = process
            .ends_within(PATIENCE)
            .and_then(|ended| if ended { Ok(true) } else { process.kill().map(|()| false) });
        if let Err(e) =
            ended.and_then(|ended| if ended { Ok(true) } else { process.ends_within(PATIENCE) })
        {
            left.push(format!("{p}: {e}"));
        }
    }
    left
}

/// The process, if it is still the one that was found in the namespace.
fn open(p: &NamespaceProgram) -> io::Result<Option<ProcessHandle>> {
    match ProcessHandle::open(p.pid) {
        Ok(process) => {
            let there = netns::identity(Path::new(&format!("/proc/{}/ns/net", p.pid)));
            Ok(there.is_ok_and(|i| i == p.inode).then_some(process))
        }
        Err(e) if e.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(e) => Err(e),
    }
}
