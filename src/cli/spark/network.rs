//! The network of an application: `heliostat run` in a process of its own, which ends with this
//! one, or one that was up before and stays up.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{LOOK, SparkRun, program};
use crate::api::wire;
use crate::cli::{CliError, files, log};
use crate::client::{self, Client, TIMEOUT};
use crate::kernel::ownership::{self, FabricNote};
use crate::kernel::programs;
use crate::kernel::sys::{self, ProcessHandle};
use crate::runtime::open;

/// Bytes of the longest log of a start that failed.
const MOST: u64 = 1 << 26;
/// How long a network may take to go.
const GOING: Duration = Duration::from_secs(15);

/// A network that is up.
pub struct SparkNetwork {
    /// The process that ends with the application.
    child: Option<Child>,
    note: FabricNote,
    /// Bytes between racks that ToRs counted before the application began, and bytes over circuits
    /// among them.
    before: (u64, u64),
}

/// A client of a network's API.
pub fn client(note: &FabricNote) -> Client {
    let socket = ownership::socket(&ownership::base(), note);
    Client::of_socket(socket, note.api.as_deref().unwrap_or_default(), None, TIMEOUT)
}

impl SparkNetwork {
    /// Builds it, and returns when it is up.
    ///
    /// # Errors
    /// It does not come up; what it said goes to stderr.
    pub fn start(plan: &SparkRun<'_>, logs: &Path) -> Result<Self, CliError> {
        let log = logs.join("network.log");
        let out = open::to_write(&log, false).map_err(|e| files::failed(&log, &e))?;
        let mut command = Command::new(program());
        command.arg("run").args(&plan.args.topology).arg("--policy").arg(&plan.args.policy);
        command.args(["--name", &plan.place.name, "--listen", "127.0.0.1:0"]);
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
                    format!("{} did not come up; what it said is above", plan.place.name),
                ));
            }
            let up = |n: &FabricNote| {
                n.fabric == plan.place.name && n.pid == child.id() && n.api.is_some()
            };
            if let Some(note) = ownership::running(&base).into_iter().find(up) {
                return Ok(Self { child: Some(child), note, before: (0, 0) });
            }
            std::thread::sleep(LOOK);
        }
    }

    /// One that is up already, and stays up.
    ///
    /// # Errors
    /// It does not answer.
    pub fn up(note: FabricNote) -> Result<Self, CliError> {
        let before = counted(&note)?;
        Ok(Self { child: None, note, before })
    }

    /// A client of its API.
    pub fn client(&self) -> Client {
        client(&self.note)
    }

    /// Bytes between racks that ToRs have counted since the application began, other traffic
    /// included, and bytes over circuits among them; if the network still answers.
    pub fn carried(&self) -> Option<(u64, u64)> {
        let (sent, over_ocs) = counted(&self.note).ok()?;
        Some((sent.saturating_sub(self.before.0), over_ocs.saturating_sub(self.before.1)))
    }

    /// Ends what runs in its hosts, and then the network, if it was made for the application;
    /// nothing is left.
    ///
    /// # Errors
    /// What could not be ended.
    pub fn end(self) -> Result<(), CliError> {
        let Some(mut child) = self.child else { return Ok(()) };
        let base = ownership::base();
        let programs: Vec<_> =
            programs::all(&base).into_iter().filter(|p| p.fabric == self.note.fabric).collect();
        let mut left = programs::end(&programs);
        let died = child.try_wait().ok().flatten();
        if let Some(status) = died {
            // It was killed, or broke: what it built is still there.
            log::write(&format!(
                "heliostat: the network ended before the application did ({status})\n"
            ));
            left.extend(ownership::clean(&base, Some(&self.note.fabric)).left);
        } else {
            let failed = |e: io::Error| CliError::Failed(format!("end the network: {e}"));
            let process = ProcessHandle::open(child.id()).map_err(failed)?;
            process.terminate().map_err(failed)?;
            if !process.ends_within(GOING).map_err(failed)? {
                left.push(format!("{} (process {}) does not end", self.note.fabric, child.id()));
            } else {
                let _ = child.wait();
            }
        }
        if left.is_empty() {
            Ok(())
        } else {
            Err(CliError::Failed(format!("not ended: {}", left.join("; "))))
        }
    }
}

/// Bytes between racks that ToRs have counted, and bytes over circuits among them.
fn counted(note: &FabricNote) -> Result<(u64, u64), CliError> {
    let demand: wire::Demand = client::parse(&self::client(note).get("/api/v1/demand")?)?;
    let sum = |m: &[Vec<u64>]| m.iter().flatten().sum();
    Ok((sum(&demand.sent_bytes), sum(&demand.over_ocs_bytes)))
}
