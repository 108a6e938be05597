//! The file that `mininet/hybrid.py` leaves: which process is which node.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{CliError, read_text};
use crate::fabric::kernel::layout::NodeId;
use crate::topology::Topology;

#[derive(Deserialize)]
struct AttachFile {
    nodes: BTreeMap<String, u32>,
}

/// Where Mininet's networks are announced.
const DIRECTORY: &str = "/run/heliostat/attach";

/// Reads the nodes' processes; `what` is a network's name or a file.
///
/// # Errors
/// When there is no such file, it does not name every node of the topology, or a process is gone.
pub fn read(what: &str, topology: &Topology) -> Result<BTreeMap<String, u32>, CliError> {
    let file = if what.contains('/') { PathBuf::from(what) } else { Path::new(DIRECTORY).join(format!("{what}.json")) };
    let text = read_text(&file).map_err(|e| CliError::Invalid(format!("{e}; is mininet/hybrid.py running?")))?;
    let found: AttachFile = serde_json::from_str(&text).map_err(|e| CliError::Invalid(format!("{}: {e}", file.display())))?;
    for node in NodeId::all(topology) {
        let name = node.name(topology);
        match found.nodes.get(&name) {
            None => return Err(CliError::Invalid(format!("{}: no node {name}; was it made from this topology?", file.display()))),
            Some(pid) if !is_mininets(&name, *pid) => {
                return Err(CliError::Invalid(format!(
                    "{}: process {pid} is not Mininet's node {name}; the file is stale, start mininet/hybrid.py again",
                    file.display()
                )));
            }
            Some(_) => {}
        }
    }
    Ok(found.nodes)
}

/// Whether a process is Mininet's shell of the node of this name, which says so in its arguments: a stale file must never lead
/// into a stranger's namespace.
fn is_mininets(name: &str, pid: u32) -> bool {
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mark = format!("mininet:{name}");
    arguments.split(|&b| b == 0).any(|a| a == mark.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_not_mininets_is_not_taken_for_it() {
        assert!(!is_mininets("tor0", std::process::id()));
        assert!(!is_mininets("tor0", u32::MAX));
    }

    #[test]
    fn mininets_shells_are_known_by_their_arguments() {
        let run = |name: &str| std::process::Command::new("sh").args(["-c", "read x", name]).stdin(std::process::Stdio::piped()).spawn();
        let Ok(mut shell) = run("mininet:tor0") else { return println!("SKIP mininets_shells_are_known_by_their_arguments: no sh") };
        // Until exec() is done, /proc shows this process's own arguments.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !is_mininets("tor0", shell.id()) && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        let seen = [is_mininets("tor0", shell.id()), is_mininets("tor", shell.id()), is_mininets("tor1", shell.id())];
        drop(shell.stdin.take());
        shell.wait().expect("the shell ends");
        assert_eq!(seen, [true, false, false]);
    }
}
