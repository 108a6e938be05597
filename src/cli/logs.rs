//! `heliostat logs`: what a network wrote that runs without a terminal.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::{CliError, files, print, running};
use crate::kernel::ownership::{self, FabricNote};
use crate::runtime::open;

/// Prints the log of a network that runs detached, or has run so.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The network, if several are running.
    name: Option<String>,
    /// Prints what is added, until the network ends.
    #[arg(short, long)]
    follow: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// No such network, or one whose log is on a terminal.
pub fn run(args: &Args) -> Result<(), CliError> {
    let base = ownership::base();
    let (file, runs) = find(&base, args.name.as_deref())?;
    let failed = |e: std::io::Error| files::failed(&file, &e);
    let mut log = open::to_read(&file).map_err(failed)?;
    loop {
        // Whether it runs is asked first: what it writes before it ends is read then.
        let last = !args.follow
            || !runs
                .as_ref()
                .is_some_and(|n| ownership::running(&base).iter().any(|r| r.pid == n.pid));
        let mut text = vec![];
        log.read_to_end(&mut text).map_err(failed)?;
        print(&String::from_utf8_lossy(&text))?;
        if last {
            return Ok(());
        }
        std::thread::sleep(super::run::LOOK);
    }
}

/// The log's file, and the network if it runs.
fn find(base: &Path, name: Option<&str>) -> Result<(PathBuf, Option<FabricNote>), CliError> {
    let kept = name.map(|n| ownership::log_file(base, n)).filter(|f| f.is_file());
    match (running::choose(name), kept) {
        (Ok(note), _) => {
            // Its error output, wherever that goes.
            let file =
                fs::read_link(format!("/proc/{}/fd/2", note.pid)).ok().filter(|f| f.is_file());
            let elsewhere = || {
                CliError::Failed(format!(
                    "{} was not started with --detach: its log is where it was started",
                    note.fabric
                ))
            };
            Ok((file.ok_or_else(elsewhere)?, Some(note)))
        }
        (Err(_), Some(file)) => Ok((file, None)),
        (Err(e), None) => Err(e),
    }
}
