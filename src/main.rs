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
    Run(cli::run::Args),
    Exec(cli::exec::Args),
    Clean(cli::clean::Args),
    Simulate(cli::simulate::Args),
    Compare(cli::compare::Args),
    Workload(cli::workload::Args),
}

fn main() -> ExitCode {
    let level = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "heliostat=info".into());
    tracing_subscriber::fmt().with_env_filter(level).with_writer(std::io::stderr).with_target(false).without_time().init();
    let result = match Cli::parse().command {
        Command::Run(a) => cli::run::run(&a),
        Command::Exec(a) => cli::exec::run(&a),
        Command::Clean(a) => cli::clean::run(&a),
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
