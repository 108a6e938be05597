//! `heliostat plan`: what an algorithm would do, without a network.

use super::CliError;

pub mod circuits;
mod gantt;

/// Plans on paper: shows what an algorithm makes of its input, without a network
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Clone, Debug)]
enum What {
    Circuits(circuits::Args),
}

/// Runs the subcommand.
///
/// # Errors
/// Why it did not do what was asked.
pub fn run(args: &Args) -> Result<(), CliError> {
    match &args.what {
        What::Circuits(a) => circuits::run(a),
    }
}
