//! A running daemon, and what it must not leave behind.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use heliostat::kernel::{netns, ownership, sys};

pub use crate::tries::{Timing, alone, quick, skip, together, tries};

/// Whether a test that needs root can run; else says that it is skipped.
pub fn root(test: &str) -> bool {
    let ok = sys::is_root() && sys::in_first_user_namespace();
    if !ok {
        skip(test, "needs root");
    }
    ok
}

/// How long anything may take on a slow and busy machine before it counts as stuck.
pub const DEADLINE: Duration = Duration::from_secs(180);

/// Waits until a condition holds.
pub fn until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < end, "waited too long until {what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// A name that no other test has, of this process or another.
pub fn unique(test: &str) -> String {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    format!("hx-{test}-{}-{}", std::process::id(), GIVEN.fetch_add(1, Ordering::Relaxed))
}

/// A file of the repository.
pub fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The smallest shipped network.
pub fn topology() -> PathBuf {
    file("topologies/hybrid-4x2.yaml")
}

pub fn heliostat() -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_heliostat"));
    c.env_remove("HELIOSTAT_LOG")
        .env_remove("HELIOSTAT_CONTROLLER")
        .env_remove("HELIOSTAT_TOKEN")
        .stdin(Stdio::null());
    c
}

/// `heliostat run` on any free address.
pub fn run(name: &str) -> Command {
    let mut c = heliostat();
    c.arg("run").arg(topology()).args(["--name", name, "--listen", "127.0.0.1:0"]);
    c
}

/// What a program wrote to stderr.
pub fn said(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

pub fn output(c: &mut Command) -> Output {
    c.output().expect("the program starts")
}

/// A program that runs until it is told to stop, at the latest when this is dropped.
pub struct Daemon {
    child: Child,
    log: Arc<Mutex<String>>,
    name: String,
}

impl Daemon {
    pub fn spawn(name: &str, c: &mut Command) -> Self {
        Self::spawn_read(name, c, |_| true)
    }

    /// A program whose stderr is read as long as its lines are wanted, and closed at the first that
    /// is not.
    pub fn spawn_read(
        name: &str,
        c: &mut Command,
        wanted: impl Fn(&str) -> bool + Send + 'static,
    ) -> Self {
        let mut child =
            c.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let log = Arc::new(Mutex::new(String::new()));
        let (lines, kept) = (BufReader::new(child.stderr.take().expect("piped")), log.clone());
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok).take_while(|l| wanted(l)) {
                kept.lock().expect("no panic while writing").push_str(&(line + "\n"));
            }
        });
        Self { child, log, name: name.into() }
    }

    /// A network whose stderr goes elsewhere; it is up when this returns.
    pub fn start_unread(name: &str, c: &mut Command, stderr: impl Into<Stdio>) -> Self {
        let child = c.stdout(Stdio::null()).stderr(stderr).spawn().expect("the program starts");
        let d = Self { child, log: Arc::default(), name: name.into() };
        until("it is up", || d.noted().is_some());
        d
    }

    /// Where its API listens, as its note says.
    fn noted(&self) -> Option<String> {
        let notes = ownership::running(Path::new("/run/heliostat"));
        notes.into_iter().find(|n| n.fabric == self.name).and_then(|n| n.api)
    }

    /// Starts `heliostat run` and waits until it is up.
    pub fn start(name: &str, more: &[&str]) -> Self {
        let d = Self::spawn(name, run(name).args(more));
        d.until_says("is up");
        d
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        self.log.lock().expect("no panic while writing").clone()
    }

    pub fn until_says(&self, what: &str) {
        let end = Instant::now() + DEADLINE;
        while !self.log().contains(what) {
            assert!(Instant::now() < end, "{} never said {what:?}: {}", self.name, self.log());
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// Where its API listens, as its note or its log says.
    pub fn api(&self) -> String {
        if let Some(api) = self.noted() {
            return api;
        }
        self.until_says("API at ");
        let log = self.log();
        log.split_once("API at ")
            .and_then(|(_, r)| r.split_whitespace().next())
            .expect("an address")
            .to_owned()
    }

    /// What `heliostat show` gives as JSON.
    pub fn show(&self, what: &str) -> serde_json::Value {
        let o = output(heliostat().args(["show", what, "-o", "json", "--controller", &self.api()]));
        assert!(o.status.success(), "show {what}: {}; its log: {}", said(&o), self.log());
        serde_json::from_slice(&o.stdout).expect("JSON")
    }

    /// The failures that the API shows, as one text.
    pub fn failures(&self) -> String {
        self.show("stats")["failures"].to_string()
    }

    /// A request to its API, with a body if there is one; the status and the answer.
    pub fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<&serde_json::Value>,
    ) -> (u16, serde_json::Value) {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(DEADLINE))
            .build()
            .into();
        let request =
            ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.api()));
        let text = body.map(ToString::to_string).unwrap_or_default();
        let request =
            request.header("content-type", "application/json").body(text).expect("a request");
        let mut answer = agent.run(request).expect("an answer");
        let text = answer.body_mut().read_to_string().expect("text");
        (
            answer.status().as_u16(),
            serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text)),
        )
    }

    /// Has a coflow of flows between hosts sent; its number.
    pub fn post(&self, flows: &[(u32, u32, u64)]) -> u64 {
        let flows: Vec<_> = flows
            .iter()
            .map(|(from, to, bytes)| serde_json::json!({"from": from, "to": to, "bytes": bytes}))
            .collect();
        let (status, made) = self.call(
            "POST",
            "/api/v1/coflows",
            Some(&serde_json::json!({"send": true, "flows": flows})),
        );
        assert_eq!(status, 201, "{made}");
        made["id"].as_u64().expect("a number")
    }

    /// Waits until a coflow is over; what became of it.
    pub fn outcome(&self, id: u64) -> serde_json::Value {
        let found = std::cell::RefCell::new(serde_json::Value::Null);
        until("the coflow is over", || {
            *found.borrow_mut() = self.call("GET", &format!("/api/v1/coflows/{id}"), None).1;
            ["finished", "cancelled"]
                .contains(&found.borrow()["state"].as_str().unwrap_or_default())
        });
        found.into_inner()
    }

    pub fn exec(&self, node: &str, command: &[&str]) -> Output {
        output(heliostat().args(["exec", "--name", &self.name, node, "--"]).args(command))
    }

    pub fn signal(&self, signal: &str) {
        kill(self.pid(), signal);
    }

    /// Waits for its end; its exit code, `None` after a signal that it did not take.
    pub fn ended(&mut self) -> Option<i32> {
        let end = Instant::now() + DEADLINE;
        loop {
            match self.child.try_wait().expect("our child") {
                Some(status) => return status.code(),
                None => assert!(Instant::now() < end, "{} does not end: {}", self.name, self.log()),
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // It shall take its network down, unless that is what does not work.
            kill(self.pid(), "TERM");
            let end = Instant::now() + DEADLINE / 4;
            while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
                std::thread::park_timeout(Duration::from_millis(20));
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("{} said: {}", self.name, self.log());
        }
    }
}

/// Sends a signal to one process that this test started.
pub fn kill(pid: u32, signal: &str) {
    let s = Command::new("sh")
        .args(["-c", "kill -s \"$0\" \"$1\"", signal, &pid.to_string()])
        .status()
        .expect("sh");
    assert!(s.success(), "kill -s {signal} {pid}");
}

/// The names of a fabric's namespaces.
pub fn namespaces(name: &str) -> Vec<String> {
    let prefix = format!("{name}-");
    let names = std::fs::read_dir(netns::NAMES).into_iter().flatten().flatten();
    let mut v: Vec<String> = names
        .filter_map(|e| e.file_name().into_string().ok())
        .filter(|n| n.starts_with(&prefix))
        .collect();
    v.sort();
    v
}

/// Where root's fabrics keep their notes.
pub fn note(name: &str) -> PathBuf {
    Path::new("/run/heliostat").join(name)
}

pub fn assert_nothing_left(name: &str) {
    assert_eq!(namespaces(name), Vec::<String>::new(), "namespaces left behind");
    assert!(!note(name).exists(), "notes left behind");
}

/// Somebody else's namespace, taken away at the end of the test.
pub struct Stranger {
    name: String,
    inode: u64,
}

impl Stranger {
    pub fn new(name: &str) -> Self {
        use std::os::fd::AsFd;
        let ns = netns::create(false).expect("a namespace");
        drop(netns::Directory::open().expect("a directory of names"));
        let inode = netns::publish(ns.as_fd(), name, "").expect("a free name");
        Self { name: name.into(), inode }
    }

    pub fn stands(&self) -> bool {
        netns::identity(&Path::new(netns::NAMES).join(&self.name)).is_ok_and(|i| i == self.inode)
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        if self.stands() {
            let _ = netns::unpublish(&self.name, |_| true);
        }
    }
}

/// A directory of its own for a test, taken away at its end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(test: &str) -> Self {
        let d = std::env::temp_dir().join(unique(test));
        std::fs::create_dir_all(&d).expect("a directory");
        Self(d)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.0.join(name);
        std::fs::write(&file, text).expect("a file");
        file
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
