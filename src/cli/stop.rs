//! `heliostat stop`: ends networks that run on this machine.

use std::path::Path;

use super::log::say;
use super::{CliError, print, running};
use crate::kernel::ownership::{self, FabricNote};
use crate::kernel::programs::{self, NamespaceProgram};
use crate::kernel::sys::ProcessHandle;
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
    /// Ends its process at once, whatever it does, and removes what it leaves. It writes no
    /// results.
    #[arg(long)]
    kill: bool,
    /// Ends the programs that run in its nodes as well: those that were started by `exec`, by `ip
    /// netns exec`, or by these. Else they are named, and run on in a network without links.
    #[arg(long)]
    end_programs: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// No such network, one that cannot be asked to end, or that does not end in time.
pub fn run(args: &Args) -> Result<(), CliError> {
    let base = ownership::base();
    let notes = if args.all {
        ownership::running(&base)
    } else {
        vec![running::choose_to_change(args.name.as_deref())?]
    };
    if notes.is_empty() {
        return print(&format!("{}\n", running::NONE));
    }
    let (programs, waits) =
        (programs::all(&base), std::time::Duration::from_secs(2).min(args.timeout.std()));
    // All are asked before the first is waited for.
    let told: Vec<_> = notes
        .iter()
        .map(|note| Ok((note, tell(&base, note, args.kill)?)))
        .collect::<Result<_, CliError>>()?;
    for (note, process) in told {
        let ends = |within| {
            process
                .as_ref()
                .map_or(Ok(true), |p| p.ends_within(within))
                .map_err(|e| failed(note, &e))
        };
        let mut ended = ends(waits)?;
        if !ended {
            say!(
                "waiting for {} (process {}), which {}",
                note.fabric,
                note.pid,
                doing(&base, note)
            );
            ended = ends(args.timeout.std() - waits)?;
        }
        if !ended {
            let (name, does) = (&note.fabric, doing(&base, note));
            let hint = format!("`heliostat stop {name} --kill` ends it at once");
            return Err(CliError::TimedOut(format!(
                "{name} (process {}) did not end within {}: it {does}; {hint}",
                note.pid, args.timeout
            )));
        }
        let own: Vec<NamespaceProgram> =
            programs.iter().filter(|p| p.fabric == note.fabric).cloned().collect();
        print(&format!("{} {}\n", if args.kill { "killed" } else { "stopped" }, note.fabric))?;
        let left =
            if args.kill { ownership::clean(&base, Some(&note.fabric)).left } else { vec![] };
        if !left.is_empty() {
            return Err(CliError::Failed(format!("not removed: {}", left.join("; "))));
        }
        outlived(&own, args.end_programs)?;
    }
    Ok(())
}

/// Ends the programs that ran in the nodes of a network that is gone, or names those that run on.
fn outlived(programs: &[NamespaceProgram], end: bool) -> Result<(), CliError> {
    if programs.is_empty() {
        return Ok(());
    }
    let list =
        |p: &[NamespaceProgram]| p.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if end {
        let left = programs::end(programs);
        print(&format!("ended programs in its nodes: {}\n", list(programs)))?;
        return if left.is_empty() {
            Ok(())
        } else {
            Err(CliError::Failed(format!("programs that run on: {}", left.join("; "))))
        };
    }
    let on: Vec<NamespaceProgram> = programs::all(&ownership::base())
        .into_iter()
        .filter(|p| programs.iter().any(|q| q.pid == p.pid))
        .collect();
    let named: Vec<NamespaceProgram> =
        programs.iter().filter(|p| on.iter().any(|q| q.pid == p.pid)).cloned().collect();
    if named.is_empty() {
        Ok(())
    } else {
        print(&format!("programs run on in its nodes: {}; {HOW_TO_END}\n", list(&named)))
    }
}

/// What ends programs of a network that is gone.
pub const HOW_TO_END: &str = "`heliostat clean --end-programs` ends them";

/// What a network that was asked to end does.
fn doing(base: &Path, note: &FabricNote) -> &'static str {
    let state = ownership::running(base)
        .into_iter()
        .find(|n| (&n.fabric, n.pid) == (&note.fabric, note.pid))
        .map(|n| n.state);
    match state.as_deref() {
        Some("stopping") => "takes its network down",
        Some("starting") => "is still being built",
        Some(_) => "has not begun to take its network down: it may write results, or hang",
        None => "has taken its network down, and writes what is left to write",
    }
}

/// Tells a network's process to end, or kills it; `None` if it has ended already.
fn tell(base: &Path, note: &FabricNote, kill: bool) -> Result<Option<ProcessHandle>, CliError> {
    let process = ProcessHandle::open(note.pid).map_err(|e| failed(note, &e))?;
    // Its number may have gone to another process before it was opened: then the network does not
    // run any more.
    let runs =
        ownership::running(base).iter().any(|n| (&n.fabric, n.pid) == (&note.fabric, note.pid));
    if !runs {
        return Ok(None);
    }
    let told = if kill { process.kill() } else { process.terminate() };
    told.map_err(|e| failed(note, &e))?;
    Ok(Some(process))
}

fn failed(note: &FabricNote, why: &std::io::Error) -> CliError {
    CliError::Failed(format!("stop {} (process {}): {why}", note.fabric, note.pid))
}
