//! `heliostat clean`: remove what killed runs left behind.

use std::path::{Path, PathBuf};

use super::stop::HOW_TO_END;
use super::{CliError, print};
use crate::kernel::ownership::{self, Cleaned};
use crate::kernel::programs::{self, NamespaceProgram};

/// Removes what a killed run left behind: only what carries Heliostat's mark and whose network is
/// not running
///
/// That is namespaces, queues and filters in Mininet's nodes, and of a network that is named, its
/// log.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only what the network of this name left
    name: Option<String>,
    /// Ends programs, too, that users started in nodes of networks that are gone; else they are
    /// named
    #[arg(long)]
    end_programs: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// The network of that name is running; something cannot be removed; or stdout cannot be written.
/// Running fabrics and other people's objects are left alone.
pub fn run(args: &Args) -> Result<(), CliError> {
    let base = ownership::base();
    if let Some(name) = args
        .name
        .as_ref()
        .filter(|name| ownership::running(&base).iter().any(|n| n.fabric == **name))
    {
        return Err(CliError::Failed(format!(
            "{name} is running, and nothing of it is removed; `heliostat stop {name}` ends it"
        )));
    }
    let Cleaned { gone, left } = ownership::clean(&base, args.name.as_deref());
    let mut lines: String = gone.iter().map(|g| format!("removed {g}\n")).collect();
    let alive = ownership::held(&base);
    let is_left = |p: &NamespaceProgram| {
        !alive.contains(&p.fabric) && args.name.as_ref().is_none_or(|n| *n == p.fabric)
    };
    let programs: Vec<NamespaceProgram> =
        programs::all(&base).into_iter().filter(is_left).collect();
    let mut left = left;
    let ended = args.name.iter().filter(|name| !alive.contains(*name));
    for file in ended.flat_map(|name| logs(&base, name)) {
        match std::fs::remove_file(&file) {
            Ok(()) => lines += &format!("removed {}\n", file.display()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => left.push(format!("{}: {e}", file.display())),
        }
    }
    if args.end_programs {
        left.extend(programs::end(&programs));
    }
    for p in &programs {
        let line = if args.end_programs { "ended program" } else { "a program runs on" };
        lines += &format!("{line} in a node of {}: {p}\n", p.fabric);
    }
    if !args.end_programs && !programs.is_empty() {
        lines += &format!("{HOW_TO_END}\n");
    }
    print(if lines.is_empty() && left.is_empty() { "nothing to remove\n" } else { &lines })?;
    if left.is_empty() {
        Ok(())
    } else {
        Err(CliError::Failed(format!("not removed: {}", left.join("; "))))
    }
}

/// The log of a network in the background, and the log before it. A name with a slash has none.
fn logs(base: &Path, name: &str) -> Vec<PathBuf> {
    if name.contains('/') {
        return vec![];
    }
    let log = ownership::log_file(base, name);
    vec![log.with_extension("log.1"), log]
}
