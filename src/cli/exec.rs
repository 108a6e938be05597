//! `heliostat exec`: run a command in the namespace of a node.

use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use super::CliError;
use crate::fabric::kernel::ownership::{self, Note};
use crate::fabric::kernel::sys;

/// Run a command in a host's (or switch's) network namespace: `heliostat exec h3-1 -- iperf3 -s`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The node: h3-1 (host 1 of rack 3), tor3, eps, ocs0.
    node: String,
    /// The fabric, if several are running.
    #[arg(long)]
    name: Option<String>,
    /// The command and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<std::ffi::OsString>,
}

/// Runs the subcommand; does not return when the command could be started.
///
/// # Errors
/// No such fabric or node, or a namespace that cannot be entered.
pub fn run(args: &Args) -> Result<(), CliError> {
    let note = choose(ownership::running(&ownership::base()), args.name.as_deref())?;
    if note.nodes.is_empty() {
        return Err(CliError::Failed(format!("the fabric {} is still being built; try again", note.fabric)));
    }
    let fd = note.nodes.get(&args.node).ok_or_else(|| {
        let some: Vec<&str> = note.nodes.keys().map(String::as_str).take(8).collect();
        CliError::Invalid(format!("no node {} in {} (nodes: {} ...)", args.node, note.fabric, some.join(", ")))
    })?;
    let enter = || -> std::io::Result<()> {
        let process = PathBuf::from(format!("/proc/{}", note.pid));
        let ns = sys::open_ns(&process.join(format!("fd/{fd}")))?;
        if !sys::is_root() {
            sys::setns(sys::open_ns(&process.join("ns/user"))?.as_fd(), libc::CLONE_NEWUSER)?;
        }
        sys::setns(ns.as_fd(), libc::CLONE_NEWNET)
    };
    enter().map_err(|e| CliError::Failed(format!("enter {} of {}: {e}", args.node, note.fabric)))?;
    let e = std::process::Command::new(&args.command[0]).args(&args.command[1..]).exec();
    Err(CliError::Failed(format!("{}: {e}", args.command[0].to_string_lossy())))
}

/// The fabric that was meant: the only one, or the one of that name.
fn choose(running: Vec<Note>, name: Option<&str>) -> Result<Note, CliError> {
    let names: Vec<String> = running.iter().map(|n| n.fabric.clone()).collect();
    let mut fit = running.into_iter().filter(|n| name.is_none_or(|w| w == n.fabric));
    match (fit.next(), fit.next()) {
        (Some(one), None) => Ok(one),
        (None, _) if names.is_empty() => Err(CliError::Failed("no fabric is running; start one with `heliostat run TOPOLOGY.yaml`".into())),
        (None, _) => Err(CliError::Invalid(format!("no fabric {} is running (running: {})", name.unwrap_or(""), names.join(", ")))),
        (Some(_), Some(_)) => Err(CliError::Invalid(format!("several fabrics are running ({}); choose one with --name", names.join(", ")))),
    }
}
