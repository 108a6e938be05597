//! `heliostat exec`: run a command in the namespace of a node.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::{CliError, running};
use crate::kernel::ownership::FabricNote;
use crate::kernel::sys;
use crate::runtime::open;

/// Runs a command in a host's (or switch's) network namespace: heliostat exec h3-1 iperf3 -s
///
/// The command sees the node's name as the name of its machine, and finds all hosts by their names:
/// /etc/hosts and /etc/resolv.conf are the network's own. There is no name server.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The network, if several are running; before NODE
    #[arg(long)]
    name: Option<String>,
    /// The node: h3-1 (host 1 of rack 3), tor3, eps, ocs0
    node: String,
    /// The command and its arguments [default: a shell]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Runs the subcommand; does not return when the command could be started.
///
/// # Errors
/// No such network or node, or a namespace that cannot be entered.
pub fn run(args: &Args) -> Result<(), CliError> {
    let note = running::choose_to_change(args.name.as_deref())?;
    running::enter(&note, &args.node)?;
    if let Err(e) = sys::own_host_name(&args.node) {
        // The command runs all the same.
        tracing::debug!("the host name stays that of the machine: {e}");
    }
    if let Err(e) = running::name_hosts(&note, &args.node) {
        tracing::warn!("hosts have no names here: {e}");
    }
    let mut command = command(args, &note);
    let e = command.exec();
    let program = command.get_program().display().to_string();
    let (why, code) = match e.kind() {
        std::io::ErrorKind::NotFound if !program.contains('/') => {
            ("not installed on this machine".to_owned(), 127)
        }
        std::io::ErrorKind::NotFound => (open::plain(&e), 127),
        _ => (open::plain(&e), 126),
    };
    Err(CliError::NotStarted(format!("{program}: {why}"), code))
}

/// The command; a shell, whose prompt says where it is, if none was given. What comes of a command
/// is the exit code.
fn command(args: &Args, note: &FabricNote) -> Command {
    if let [program, rest @ ..] = &args.command[..] {
        let mut c = Command::new(program);
        c.args(rest);
        return c;
    }
    let mut shell = Command::new(std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into()));
    let prompt = format!("{} of {}", args.node, note.fabric);
    // bash sets PS1 from its own files, and runs PROMPT_COMMAND after them.
    shell
        .env("PS1", format!("[{prompt}] $ "))
        .env("PROMPT_COMMAND", format!("PS1='[{prompt}] \\w \\$ '"));
    shell
}
