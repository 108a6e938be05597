//! `heliostat stop`: ends networks that run on this machine.

use std::path::Path;

use super::{CliError, print, running};
use crate::fabric::kernel::ownership::{self, Note};
use crate::fabric::kernel::sys::Process;
use crate::units::Span;

/// Ends a running network, and waits until nothing of it is left.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The network, if several are running.
    #[arg(conflicts_with = "all")]
    name: Option<String>,
    /// Ends all networks of this user.
    #[arg(long)]
    all: bool,
    /// How long to wait for each.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    timeout: Span,
}

/// Runs the subcommand.
///
/// # Errors
/// No such network, one that cannot be told, or that does not end in time.
pub fn run(args: &Args) -> Result<(), CliError> {
    let base = ownership::base();
    let notes = if args.all { ownership::running(&base) } else { vec![running::choose(args.name.as_deref())?] };
    if notes.is_empty() {
        return print("no network is running\n");
    }
    // All are told before the first is waited for.
    let told: Vec<_> = notes.iter().map(|note| Ok((note, tell(&base, note)?))).collect::<Result<_, CliError>>()?;
    for (note, process) in told {
        let ended = process.map_or(Ok(true), |p| p.ends_within(args.timeout.std())).map_err(|e| failed(note, &e))?;
        if !ended {
            let (name, hint) = (&note.fabric, "stop it once more to end it at once");
            return Err(CliError::TimedOut(format!("{name} (process {}) did not end within {}; {hint}", note.pid, args.timeout)));
        }
        print(&format!("stopped {}\n", note.fabric))?;
    }
    Ok(())
}

/// Tells a network's process to end; `None` if it has ended by itself.
fn tell(base: &Path, note: &Note) -> Result<Option<Process>, CliError> {
    let process = Process::open(note.pid).map_err(|e| failed(note, &e))?;
    // Its number may have gone to another process before it was opened: then the network does not run any more.
    let runs = ownership::running(base).iter().any(|n| (&n.fabric, n.pid) == (&note.fabric, note.pid));
    if !runs {
        return Ok(None);
    }
    process.terminate().map_err(|e| failed(note, &e))?;
    Ok(Some(process))
}

fn failed(note: &Note, why: &std::io::Error) -> CliError {
    CliError::Failed(format!("stop {} (process {}): {why}", note.fabric, note.pid))
}
