//! The binary: parse arguments, start the log, call the library, turn an error into an exit code.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use heliostat::cli::{Cli, CliError};
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match start_log(cli.log.as_deref()).and_then(|()| cli.command.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("heliostat: {e}");
            ExitCode::from(e.code())
        }
    }
}

/// Log lines go to stderr, so that stdout has data only.
fn start_log(filter: Option<&str>) -> Result<(), CliError> {
    let from_env = std::env::var("HELIOSTAT_LOG").ok();
    let filter = filter.or(from_env.as_deref()).unwrap_or("info");
    let filter = EnvFilter::try_new(filter).map_err(|e| CliError::Usage(format!("--log {filter}: {e}")))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .without_time()
        .init();
    Ok(())
}
