//! `heliostat run --detach`: the network runs in the background, without a terminal.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use super::{CliError, LOOK};
use crate::cli::{log, print};
use crate::kernel::ownership::{self, FabricNote, Owned};
use crate::kernel::sys;
use crate::runtime::open;

/// Bytes of the longest log of a start that failed.
const MOST: u64 = 1 << 26;
/// The option of the process that runs in the background.
const FLAG: &str = "--detached";

/// Starts this very command again in the background, and returns when its network is up.
///
/// # Errors
/// It does not come up; what it said goes to stderr.
pub fn start(name: &str) -> Result<(), CliError> {
    let base = ownership::base();
    Owned::free(&base, name).map_err(|e| CliError::Failed(e.to_string()))?;
    let log = ownership::log_file(&base, name);
    let mut child = spawn(&base, &log)
        .map_err(|e| CliError::Failed(format!("run {name} in the background: {e}")))?;
    match wait(&base, name, &mut child) {
        Ok(Ok(note)) => {
            // What would be on the terminal without --detach, such as that rates are too high.
            let said = open::text(&log, MOST).unwrap_or_default();
            said.lines()
                .filter(|l| l.contains(" WARN "))
                .for_each(|l| log::write(&format!("{l}\n")));
            print(&format!(
                "{name} is up; API at {}; heliostat logs {name}, heliostat stop {name}\n",
                note.api.unwrap_or_default()
            ))
        }
        Ok(Err(status)) => ended(name, status, &log),
        Err(e) => Err(CliError::Failed(format!("run {name} in the background: {e}"))),
    }
}

/// The same command line, in a session of its own, its output in the log. An earlier log stays
/// beside it as `NAME.log.1`.
fn spawn(base: &Path, log: &Path) -> io::Result<Child> {
    ownership::make_base(base)?;
    match fs::rename(log, log.with_extension("log.1")) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let out = File::create_new(log)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1)).arg(FLAG);
    command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
    sys::own_session(&mut command).spawn()
}

/// Waits until the network is up, or its process has ended.
fn wait(base: &Path, name: &str, child: &mut Child) -> io::Result<Result<FabricNote, ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Err(status));
        }
        if let Some(note) =
            ownership::running(base).into_iter().find(|n| n.fabric == name && n.api.is_some())
        {
            return Ok(Ok(note));
        }
        std::thread::sleep(LOOK);
    }
}

/// Tells of a run that has ended: a short workload, or a network that could not be built.
fn ended(name: &str, status: ExitStatus, log: &Path) -> Result<(), CliError> {
    let said = open::text(log, MOST).unwrap_or_default();
    if status.success() {
        return print(&said);
    }
    log::write(&said);
    Err(CliError::of_code(status.code(), format!("{name} did not come up; what it said is above")))
}
