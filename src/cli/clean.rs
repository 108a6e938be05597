//! `heliostat clean`: remove what killed runs left behind.

use super::{CliError, print};
use crate::fabric::kernel::ownership;

/// Removes what a killed run left behind: only what carries Heliostat's mark and whose network is not running
///
/// That is namespaces, and queues and filters in Mininet's nodes.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the subcommand.
///
/// # Errors
/// When stdout cannot be written. Running fabrics and other people's objects are left alone.
pub fn run(_: &Args) -> Result<(), CliError> {
    let gone = ownership::clean(&ownership::base());
    let lines: String = gone.iter().map(|g| format!("removed {g}\n")).collect();
    print(if gone.is_empty() { "nothing to remove\n" } else { &lines })
}
