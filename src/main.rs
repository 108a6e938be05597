//! The binary: parse arguments, call the library, turn an error into an exit code.

use std::process::ExitCode;

use clap::Parser;
use heliostat::cli;

/// SDN controller and optical-circuit-switch manager for hybrid networks
#[derive(Parser)]
#[command(name = "heliostat", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Simulate(cli::simulate::Args),
    Compare(cli::compare::Args),
    Workload(cli::workload::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Simulate(a) => cli::simulate::run(&a),
        Command::Compare(a) => cli::compare::run(&a),
        Command::Workload(a) => cli::workload::run(&a),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("heliostat: {e}");
            ExitCode::from(e.code())
        }
    }
}
