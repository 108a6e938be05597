//! The networks that run on this machine, for the commands that speak to one.

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use super::CliError;
use crate::fabric::kernel::ownership::{self, Note};
use crate::fabric::kernel::{rights, sys};

/// The running network that was meant: the only one, or the one of that name.
///
/// # Errors
/// None runs, several do and no name says which, or none has that name.
pub fn choose(name: Option<&str>) -> Result<Note, CliError> {
    one_of(ownership::running(&ownership::base()), name)
}

/// Whether any network runs on this machine.
pub fn any() -> bool {
    !ownership::running(&ownership::base()).is_empty()
}

/// The only one of these notes, or the one of that name.
fn one_of(running: Vec<Note>, name: Option<&str>) -> Result<Note, CliError> {
    let names: Vec<String> = running.iter().map(|n| n.fabric.clone()).collect();
    let mut fit = running.into_iter().filter(|n| name.is_none_or(|w| w == n.fabric));
    match (fit.next(), fit.next()) {
        (Some(one), None) => Ok(one),
        (None, _) if names.is_empty() => Err(CliError::Failed("no network is running; start one with `heliostat run TOPOLOGY`".into())),
        (None, _) => Err(CliError::Invalid(format!("no network {} is running (running: {})", name.unwrap_or(""), names.join(", ")))),
        (Some(_), Some(_)) => {
            Err(CliError::Invalid(format!("several networks are running ({}); choose one with --name", names.join(", "))))
        }
    }
}

/// Where the network's API listens.
///
/// # Errors
/// It is still being built.
pub fn api(note: &Note) -> Result<&str, CliError> {
    note.api.as_deref().ok_or_else(|| still_built(note))
}

/// Moves this thread into the network namespace of a node.
///
/// # Errors
/// No such node, or a namespace that cannot be entered.
pub fn enter(note: &Note, node: &str) -> Result<(), CliError> {
    if note.nodes.is_empty() {
        return Err(still_built(note));
    }
    let fd = note.nodes.get(node).ok_or_else(|| {
        let some: Vec<&str> = note.nodes.keys().map(String::as_str).take(8).collect();
        CliError::Invalid(format!("no node {node} in {} (nodes: {} ...)", note.fabric, some.join(", ")))
    })?;
    let enter = || -> io::Result<()> {
        let process = PathBuf::from(format!("/proc/{}", note.pid));
        let ns = sys::open_ns(&process.join(format!("fd/{fd}")))?;
        if !rights::suffice() {
            sys::setns(sys::open_ns(&process.join("ns/user"))?.as_fd(), libc::CLONE_NEWUSER)?;
        }
        sys::setns(ns.as_fd(), libc::CLONE_NEWNET)
    };
    enter().map_err(|e| CliError::Failed(format!("enter {node} of {}: {e}", note.fabric)))
}

fn still_built(note: &Note) -> CliError {
    CliError::Failed(format!("the network {} is still being built; try again", note.fabric))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(names: &[&str]) -> Vec<Note> {
        names.iter().map(|n| Note::starting(n)).collect()
    }

    #[test]
    fn the_only_network_needs_no_name_and_of_several_one_is_named() {
        let chosen = |names: &[&str], name| one_of(notes(names), name).map(|n| n.fabric).map_err(|e| e.to_string());
        assert_eq!(chosen(&["a"], None), Ok("a".into()));
        assert_eq!(chosen(&["a", "b"], Some("b")), Ok("b".into()));
        assert_eq!(chosen(&["a", "b"], None), Err("several networks are running (a, b); choose one with --name".into()));
        assert_eq!(chosen(&["a", "b"], Some("c")), Err("no network c is running (running: a, b)".into()));
        assert_eq!(chosen(&[], Some("c")), Err("no network is running; start one with `heliostat run TOPOLOGY`".into()));
    }
}
