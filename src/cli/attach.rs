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
            Some(pid) if !crate::fabric::kernel::sys::alive(*pid) => {
                return Err(CliError::Invalid(format!("{}: node {name} (process {pid}) is gone", file.display())));
            }
            Some(_) => {}
        }
    }
    Ok(found.nodes)
}
