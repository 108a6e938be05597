//! An emulation with its API, as `heliostat run` starts it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use heliostat::api;
use heliostat::control::record::Snapshot;
use heliostat::kernel::{Mechanism, netns, sys};
use heliostat::runtime::api_sender::ApiSender;
use heliostat::runtime::emulation::{Emulation, EmulationOptions};
use heliostat::runtime::settings::RunPlan;
use heliostat::topology::Topology;
use serde_json::Value;

use super::support::emulation;
use crate::support::DEADLINE;
use crate::tries::base;

/// A running fabric. Dropping it proves that nothing is left behind.
pub struct Daemon {
    pub name: String,
    pub base: PathBuf,
    running: Option<(Emulation, api::Server)>,
    agent: ureq::Agent,
}

impl Daemon {
    pub fn start(
        name: &str,
        topology: Topology,
        plan: impl Into<RunPlan>,
        mechanism: Mechanism,
    ) -> Self {
        let base = base();
        let options = EmulationOptions {
            name: name.into(),
            mechanism: Some(mechanism),
            base: base.clone(),
            attach: None,
            patience: None,
        };
        let e = emulation(Arc::new(topology), plan.into(), &options);
        let sender: Arc<dyn api::CoflowSender> = Arc::new(ApiSender::new(&e));
        let listen = Some(([127, 0, 0, 1], 0).into());
        let server = api::serve(
            e.live.handle.clone(),
            api::ServerOptions { listen, sender: Some(sender), ..Default::default() },
        )
        .expect("served");
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(DEADLINE))
            .build()
            .into();
        Self { name: name.into(), base, running: Some((e, server)), agent }
    }

    pub fn emulation(&self) -> &Emulation {
        &self.running.as_ref().expect("running").0
    }

    /// Where its API listens.
    pub fn url(&self) -> String {
        self.running.as_ref().expect("running").1.url()
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.emulation().live.handle.snapshot()
    }

    /// One request: the status and the body.
    pub fn call(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let url = format!("{}/api/v1/{path}", self.running.as_ref().expect("running").1.url());
        let request =
            ureq::http::Request::builder().method(method).uri(url).header("if-match", "*");
        let text = body.map(Value::to_string).unwrap_or_default();
        let request =
            request.header("content-type", "application/json").body(text).expect("a request");
        let mut answer = self.agent.run(request).expect("an answer");
        let body = answer.body_mut().read_to_string().expect("text");
        (answer.status().as_u16(), serde_json::from_str(&body).unwrap_or(Value::Null))
    }

    pub fn get(&self, path: &str) -> Value {
        let (status, body) = self.call("GET", path, None);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Waits for a snapshot, a minute at most.
    pub fn wait(&self, what: &str, mut good: impl FnMut(&Snapshot) -> bool) -> Arc<Snapshot> {
        let mut snapshots = self.emulation().live.handle.watch();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let found = runtime.block_on(async {
            let wait = snapshots.wait_for(|s| good(s));
            tokio::time::timeout(DEADLINE, wait).await.map(|s| s.expect("it runs").clone())
        });
        found.unwrap_or_else(|_| {
            let s = self.snapshot();
            panic!(
                "{}: {what} did not happen: {:?} {:?} {:?} {:?}",
                self.name, s.stats, s.failures, s.ports, s.circuits
            )
        })
    }

    /// Waits until a condition holds that asks by itself, a minute at most.
    pub fn wait_by(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let end = Instant::now() + DEADLINE;
        while !condition() {
            assert!(Instant::now() < end, "{}: {what} did not happen", self.name);
        }
    }

    /// Waits for `n` more cycles.
    pub fn cycles(&self, n: u64) -> Arc<Snapshot> {
        let before = self.snapshot().stats.cycles;
        self.wait("cycles", |s| s.stats.cycles >= before + n)
    }

    /// Runs `ip` or `tc` in one of the fabric's namespaces; gives what it printed.
    pub fn tool(&self, tool: &str, node: &str, args: &str) -> String {
        let mut c = Command::new(tool);
        c.args(["-n", &format!("{}-{node}", self.name)]).args(args.split(' '));
        let out = c.output().expect("iproute2");
        assert!(out.status.success(), "{tool} {args}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    /// Has bytes sent from the first rack to the second; gives the coflow's number.
    pub fn send(&self, from: u32, to: u32, bytes: u64) -> u64 {
        let body =
            serde_json::json!({"send": true, "pairs": [{"from": from, "to": to, "bytes": bytes}]});
        let (status, made) = self.call("POST", "coflows", Some(&body));
        assert_eq!(status, 201, "{made}");
        made["id"].as_u64().expect("a number")
    }

    /// What `/readyz` answers.
    pub fn ready(&self) -> u16 {
        let url = format!("{}/readyz", self.url());
        self.agent.get(url).call().expect("an answer").status().as_u16()
    }

    /// A value of `/metrics`: the sum of what has this name.
    pub fn metric(&self, name: &str) -> f64 {
        let text = self
            .agent
            .get(format!("{}/metrics", self.url()))
            .call()
            .expect("an answer")
            .body_mut()
            .read_to_string()
            .expect("text");
        let values = text
            .lines()
            .filter(|l| l.split(['{', ' ']).next() == Some(name))
            .filter_map(|l| l.rsplit(' ').next()?.parse::<f64>().ok());
        values.sum()
    }

    /// Runs something inside a node's namespace, found by its name as people do.
    pub fn within<T: Send>(&self, node: &str, f: impl FnOnce() -> io::Result<T> + Send) -> T {
        let path = Path::new(netns::NAMES).join(format!("{}-{node}", self.name));
        let ns = sys::open_ns(&path).expect("a published namespace");
        netns::within(std::os::fd::AsFd::as_fd(&ns), f).expect("inside")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.running.take());
        if std::thread::panicking() {
            return;
        }
        let ours = format!("{}-", self.name);
        let names = std::fs::read_dir(netns::NAMES).into_iter().flatten().flatten();
        assert_eq!(
            names.filter(|f| f.file_name().to_string_lossy().starts_with(&ours)).count(),
            0,
            "namespaces left behind"
        );
        assert!(!self.base.join(&self.name).exists(), "notes left behind");
    }
}
