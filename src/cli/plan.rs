//! `heliostat plan`: what an algorithm would do, without a network.

use super::CliError;

pub mod circuits;
pub mod co_scheduler;
pub mod corral;
pub mod hit;
mod inputs;
pub mod jobpacker;
pub mod latency;
mod lists;
mod matrix;
mod racks;
#[cfg(test)]
mod tests;

/// Plans on paper: shows what an algorithm makes of its input, without a network
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: PlanCommand,
}

#[derive(clap::Subcommand, Clone, Debug)]
enum PlanCommand {
    Circuits(circuits::Args),
    Corral(corral::Args),
    Jobpacker(jobpacker::Args),
    CoScheduler(co_scheduler::Args),
    Hit(hit::Args),
    Latency(latency::Args),
}

/// Runs the subcommand.
///
/// # Errors
/// Why it did not do what was asked.
pub fn run(args: &Args) -> Result<(), CliError> {
    match &args.what {
        PlanCommand::Circuits(a) => circuits::run(a),
        PlanCommand::Corral(a) => corral::run(a),
        PlanCommand::Jobpacker(a) => jobpacker::run(a),
        PlanCommand::CoScheduler(a) => co_scheduler::run(a),
        PlanCommand::Hit(a) => hit::run(a),
        PlanCommand::Latency(a) => latency::run(a),
    }
}
