//! `heliostat clean`: remove what killed runs left behind.

use super::CliError;
use crate::fabric::kernel::ownership;

/// Remove what a killed run left behind: namespaces, and queues and filters in Mininet's nodes; only what carries Heliostat's
/// mark and whose fabric is not running.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the subcommand.
///
/// # Errors
/// None today; running fabrics and other people's objects are left alone.
pub fn run(_: &Args) -> Result<(), CliError> {
    let gone = ownership::clean(&ownership::base());
    for g in &gone {
        println!("removed {g}");
    }
    if gone.is_empty() {
        println!("nothing to remove");
    }
    Ok(())
}
