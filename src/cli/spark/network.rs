//! The network of an application: `heliostat run` in a process of its own, which ends with this
//! one.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{LOOK, Plan, program};
use crate::cli::{CliError, files, log};
use crate::client::{Client, TIMEOUT};
use crate::kernel::ownership::{self, Note};
use crate::kernel::programs;
use crate::kernel::sys::{self, Process};
use crate::runtime::open;

/// Bytes of the longest log of a start that failed.
const MOST: u64 = 1 << 26;
/// How long a network may take to go.
const GOING: Duration = Duration::from_secs(15);

/// A network that is up.
pub struct Network {
    child: Child,
    note: Note,
}

impl Network {
    /// Builds it, and returns when it is up.
    ///
    /// # Errors
    /// It does not come up; what it said goes to stderr.
    pub fn start(topology: &Path, plan: &Plan<'_>, logs: &Path) -> Result<Self, CliError> {
        let log = logs.join("network.log");
        let out = open::to_write(&log, false).map_err(|e| files::failed(&log, &e))?;
        let mut command = Command::new(program());
        command.arg("run").arg(topology).arg("--policy").arg(&plan.args.policy);
        command.args(["--name", plan.name, "--listen", "127.0.0.1:0"]);
        for change in &plan.args.changes.all {
            command.args(["--set", &format!("{}={}", change.key, change.text)]);
        }
        if !plan.circuits {
            command.args(["--set", "policy.scheduler=eps-only"]);
        }
        let failed = |e: io::Error| CliError::Failed(format!("start the network: {e}"));
        command.stdin(Stdio::null()).stdout(out.try_clone().map_err(failed)?).stderr(out);
        let mut child =
            sys::ends_with_parent(sys::own_session(&mut command)).spawn().map_err(failed)?;
        let base = ownership::base();
        loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                log::write(&open::text(&log, MOST).unwrap_or_default());
                return Err(CliError::of_code(
                    status.code(),
                    format!("{} did not come up; what it said is above", plan.name),
                ));
            }
            let up = |n: &Note| n.fabric == plan.name && n.pid == child.id() && n.api.is_some();
            if let Some(note) = ownership::running(&base).into_iter().find(up) {
                return Ok(Self { child, note });
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The answer of its API.
    ///
    /// # Errors
    /// It does not answer.
    pub fn get(&self, path: &str) -> Result<String, CliError> {
        let socket = ownership::socket(&ownership::base(), &self.note);
        Ok(Client::of_socket(socket, self.note.api.as_deref().unwrap_or_default(), None, TIMEOUT)
            .get(path)?)
    }

    /// Ends what runs in its hosts, and then the network; nothing is left.
    ///
    /// # Errors
    /// What could not be ended.
    pub fn end(mut self) -> Result<(), CliError> {
        let base = ownership::base();
        let programs: Vec<_> =
            programs::all(&base).into_iter().filter(|p| p.fabric == self.note.fabric).collect();
        let mut left = programs::end(&programs);
        let died = self.child.try_wait().ok().flatten();
        if let Some(status) = died {
            // It was killed, or broke: what it built is still there.
            log::write(&format!(
                "heliostat: the network ended before the application did ({status})\n"
            ));
            left.extend(ownership::clean(&base, Some(&self.note.fabric)).left);
        } else {
            let failed = |e: io::Error| CliError::Failed(format!("end the network: {e}"));
            let process = Process::open(self.child.id()).map_err(failed)?;
            process.terminate().map_err(failed)?;
            if !process.ends_within(GOING).map_err(failed)? {
                left.push(format!(
                    "{} (process {}) does not end",
                    self.note.fabric,
                    self.child.id()
                ));
            } else {
                let _ = self.child.wait();
            }
        }
        if left.is_empty() {
            Ok(())
        } else {
            Err(CliError::Failed(format!("not ended: {}", left.join("; "))))
        }
    }
}
