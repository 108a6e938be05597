//! A network that is up with its API, event log and journal: how it starts, and how it ends.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use super::events::EventFile;
use super::{Args, CheckedRun, journal};
use crate::api;
use crate::cli::client::Where;
use crate::cli::event_log::{EventLogHead, LogClock};
use crate::cli::{CliError, log, origin};
use crate::coflows::network::Service;
use crate::kernel::ownership::Owned;
use crate::kernel::rights;
use crate::runtime::api_sender::ApiSender;
use crate::runtime::emulation::{Emulation, StartError};
use crate::runtime::journal::Writing;
use crate::runtime::record::Recorder;
use crate::runtime::report::{ResultNames, ResultOrigin};
use crate::runtime::settings::RunPlan;

pub fn no_api(e: api::ServeError) -> CliError {
    match e {
        api::ServeError::NeedsToken(a) => {
            CliError::Usage(format!("{e}: --token-file FILE, or --listen 127.0.0.1:{}", a.port()))
        }
        api::ServeError::WeakToken | api::ServeError::SameToken => CliError::Usage(e.to_string()),
        e => CliError::Failed(format!("{e}; choose another address with --listen")),
    }
}

/// Starts an emulation and its API.
pub fn start(args: &Args, plan: &CheckedRun, run: &RunPlan) -> Result<RunningNetwork, CliError> {
    let begun = Instant::now();
    let o = &plan.options;
    let owned = Owned::take(&o.base, &o.name).map_err(|e| explain(&e.into()))?;
    let socket = owned.socket();
    let records = args.journal.as_ref().map(|d| journal::open(d, &plan.topology)).transpose()?;
    let begins =
        (plan.recorder.clone(), records.as_ref().map(|j| (j.found().past.clone(), j.found().at)));
    let e = Emulation::resume(owned, plan.topology.clone(), run.clone(), o, begins)
        .map_err(|e| explain(&e))?;
    let took = begun.elapsed();
    let workload = plan.workload.as_ref().map_or("", |w| w.name.as_str());
    let of = ResultNames {
        mechanism: e.mechanism.name(),
        topology: &plan.topology.name,
        policy: &run.policy.name,
        workload,
    };
    let head =
        EventLogHead::new(LogClock::Live, &origin::here_and_now(&ResultOrigin::default()), of);
    let log = |file: &PathBuf| {
        EventFile::start(
            (file, args.journal.is_some()),
            &head,
            &e.live.handle,
            plan.reopen.subscribe(),
        )
    };
    let events = args.events.as_ref().map(log).transpose()?;
    let records = records.map(|j| journal::start(j, &e)).transpose()?;
    let (sender, journal): (Arc<dyn api::CoflowSender>, _) =
        (Arc::new(ApiSender::new(&e)), records.as_ref().map(|r| r.journal.clone()));
    let of = api::RunIdentity {
        name: Some(plan.options.name.clone()),
        started_at: Some(origin::epoch(e.clock.now())),
    };
    let options = api::ServerOptions {
        socket: Some(socket),
        sender: Some(sender),
        journal,
        run: of,
        ..plan.api.clone()
    };
    let listener = plan.listener.as_ref().map(TcpListener::try_clone).transpose();
    let listener = listener.map_err(|e| CliError::Failed(format!("serve the API: {e}")))?;
    let server = api::serve_on(e.live.handle.clone(), options, listener).map_err(no_api)?;
    let url = server.url();
    let jobs = args
        .schedule
        .as_ref()
        .and_then(|f| f.file_stem())
        .map(|n| n.to_string_lossy().into_owned());
    e.announce(&url, jobs.as_deref().unwrap_or(workload))
        .map_err(|e| CliError::Failed(format!("write the fabric's note: {e}")))?;
    let (racks, name, mechanism) =
        (plan.topology.rack_count(), &plan.options.name, e.mechanism.name());
    let served = if run.run.network.kind.service() == Service::Strict {
        ", strict priorities at every port"
    } else {
        ""
    };
    tracing::info!(
        "{name}: {racks} racks, mechanism {mechanism}{served}, built in {took:.0?}; API at {url}"
    );
    Ok(RunningNetwork { e, server, events, records, recorder: plan.recorder.clone() })
}

/// A network that is up, its API, and its event log.
pub struct RunningNetwork {
    pub e: Emulation,
    pub server: api::Server,
    events: Option<EventFile>,
    records: Option<Writing>,
    recorder: Option<Recorder>,
}

impl RunningNetwork {
    /// Why it cannot go on, if that is so.
    pub fn lost(&self) -> Option<String> {
        let dead = || {
            let threads = [
                (self.server.is_alive(), "the API's thread"),
                (
                    self.records.as_ref().is_none_or(Writing::is_alive),
                    "the thread that writes the journal",
                ),
                (
                    self.events.as_ref().is_none_or(EventFile::is_alive),
                    "the thread that writes the event log",
                ),
                (
                    !self.recorder.as_ref().is_some_and(Recorder::died),
                    "the thread that writes the recording",
                ),
                (!log::died(), "the thread that writes the log"),
            ];
            threads.into_iter().find(|t| !t.0).map(|t| format!("{} has died", t.1))
        };
        self.e.lost().or_else(dead)
    }

    /// Where commands reach it.
    pub fn place(&self, plan: &CheckedRun) -> Where {
        Where {
            controller: Some(self.server.url()),
            name: None,
            token: plan.api.token.clone(),
            token_file: None,
        }
    }

    /// Takes it down.
    pub fn end(self) -> Result<(), CliError> {
        self.server.stop();
        let left = self.e.end();
        let records = self.records.map_or(Ok(()), journal::finish);
        self.events.map_or(Ok(()), EventFile::finish).and(records)?;
        if left.is_empty() {
            Ok(())
        } else {
            Err(CliError::Failed(format!("left behind: {}", left.join("; "))))
        }
    }
}

pub fn explain(e: &StartError) -> CliError {
    let hint = match e {
        StartError::Kernel(_, io)
            if io.kind() == std::io::ErrorKind::PermissionDenied && !rights::suffice() =>
        {
            "; run as root, or where user namespaces are allowed"
        }
        StartError::Kernel(..) => "; `heliostat doctor` says what this kernel lacks",
        _ => "",
    };
    CliError::Failed(format!("{e}{hint}"))
}
