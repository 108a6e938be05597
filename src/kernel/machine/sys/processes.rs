//! Processes: children, their groups, and what a command is given before it runs.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open,
    pidfd_send_signal, set_parent_process_death_signal, setsid, waitid,
};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};

fn number(pid: u32) -> io::Result<Pid> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// Whether a child of ours has ended. It stays, with its number, until it is waited for.
pub fn child_has_ended(child: u32) -> io::Result<bool> {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(waitid(WaitId::Pid(number(child)?), look)?.is_some())
}

/// Kills all of the process group that a child of ours leads, which must not have been waited for
/// yet: its number is its own until then.
pub fn kill_group(leader: u32) -> io::Result<()> {
    let leader = number(leader)?;
    if leader.is_init() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(kill_process_group(leader, Signal::KILL)?)
}

/// A process, whatever process its number is given to once it has ended.
pub struct ProcessHandle(OwnedFd);

impl ProcessHandle {
    /// The process that has this number now.
    pub fn open(pid: u32) -> io::Result<Self> {
        Ok(Self(pidfd_open(number(pid)?, PidfdFlags::empty())?))
    }

    /// Waits for its end; says whether it came in time.
    pub fn ends_within(&self, patience: Duration) -> io::Result<bool> {
        let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
        Ok(poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&patience))? > 0)
    }

    /// Asks it to end (SIGTERM).
    pub fn terminate(&self) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.0, Signal::TERM)?)
    }

    /// Ends it (SIGKILL).
    pub fn kill(&self) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.0, Signal::KILL)?)
    }
}

/// Gives a command a session of its own when it is started: no terminal's end is its end.
pub fn own_session(command: &mut Command) -> &mut Command {
    // SAFETY: what runs between fork and exec is one call into the kernel, which takes nothing.
    unsafe { command.pre_exec(|| Ok(setsid().map(drop)?)) }
}

/// Asks a command to end (SIGTERM) when the thread that starts it does.
pub fn ends_with_parent(command: &mut Command) -> &mut Command {
    let ask = || Ok(set_parent_process_death_signal(Some(Signal::TERM))?);
    // SAFETY: what runs between fork and exec is one call into the kernel, which takes integers.
    unsafe { command.pre_exec(ask) }
}

/// Has a command run without any capability, now and in all that it starts, and none comes back by
/// a set-user-ID program.
pub fn without_capabilities(command: &mut Command) {
    let drop_all = || {
        set_no_new_privs(true)?;
        let none = CapabilitySet::empty();
        let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
        Ok(set_capabilities(None, sets)?)
    };
    // SAFETY: between fork and exec: calls into the kernel only, which take integers, and memory
    // that outlives them.
    unsafe { command.pre_exec(drop_all) };
}
