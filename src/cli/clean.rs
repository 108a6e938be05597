//! `heliostat clean`: remove what killed runs left behind.

use super::{CliError, print};
use crate::fabric::kernel::ownership;

/// Removes what a killed run left behind: only what carries Heliostat's mark and whose network is not running
///
/// That is namespaces, and queues and filters in Mininet's nodes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only what the network of this name left
    name: Option<String>,
}

/// Runs the subcommand.
///
/// # Errors
/// The network of that name is running; or stdout cannot be written. Running fabrics and other people's objects are left alone.
pub fn run(args: &Args) -> Result<(), CliError> {
    let base = ownership::base();
    if let Some(name) = args.name.as_ref().filter(|name| ownership::running(&base).iter().any(|n| n.fabric == **name)) {
        return Err(CliError::Failed(format!("{name} is running, and nothing of it is removed; `heliostat stop {name}` ends it")));
    }
    let gone = ownership::clean(&base, args.name.as_deref());
    let lines: String = gone.iter().map(|g| format!("removed {g}\n")).collect();
    print(if gone.is_empty() { "nothing to remove\n" } else { &lines })
}
