//! `heliostat completions`: what a shell completes.

use clap::CommandFactory;

use super::{Cli, CliError, print};

/// Prints the completions of a shell, for its own place: heliostat completions bash > /etc/bash_completion.d/heliostat
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The shell
    shell: clap_complete::Shell,
}

/// Runs the subcommand.
///
/// # Errors
/// When stdout cannot be written.
pub fn run(args: &Args) -> Result<(), CliError> {
    let mut out = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "heliostat", &mut out);
    print(&String::from_utf8_lossy(&out))
}
