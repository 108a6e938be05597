//! The file that `mininet/hybrid.py` leaves: which process is which node.

use std::path::{Path, PathBuf};

use super::{CliError, read_text};
use crate::kernel::attached::{DIRECTORY, Processes};
use crate::kernel::layout::NodeId;
use crate::topology::Topology;

/// Reads the nodes' processes; `what` is a network's name or a file.
///
/// # Errors
/// When there is no such file, it does not name every node of the topology, or a node is gone.
pub fn read(what: &str, topology: &Topology) -> Result<Processes, CliError> {
    let file = if what.contains('/') {
        PathBuf::from(what)
    } else {
        Path::new(DIRECTORY).join(format!("{what}.json"))
    };
    let text = read_text(&file)
        .map_err(|e| CliError::Invalid(format!("{e}; is mininet/hybrid.py running?")))?;
    let found = Processes::parse(&text)
        .map_err(|e| CliError::Invalid(format!("{}: {e}", file.display())))?;
    if let Some(node) =
        NodeId::all(topology).into_iter().map(|n| n.name(topology)).find(|n| !found.names(n))
    {
        return Err(CliError::Invalid(format!(
            "{}: no node {node}; was it made from this topology?",
            file.display()
        )));
    }
    match found.lost() {
        Some((node, pid)) => Err(CliError::Invalid(format!(
            "{}: node {node} (process {pid}) is gone",
            file.display()
        ))),
        None => Ok(found),
    }
}
