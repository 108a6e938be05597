//! A browser and what tests ask of it. A condition is waited for inside the page, with a deadline,
//! so no test sleeps.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use fantoccini::wd::{Capabilities, TimeoutConfiguration};
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::support::DEADLINE;

/// The most starts of a driver that has no port.
const STARTS: u32 = 5;

/// A tab of Chromium. Dropping it ends the browser, then its driver.
pub struct Browser {
    runtime: Runtime,
    client: Client,
    driver: Driver,
}

/// A WebDriver of Chromium. It ends with the value, and so does what it and its browsers keep in
/// files.
struct Driver {
    process: Child,
    /// Where it answers.
    url: String,
    _files: TempDir,
}

/// What a test needs that some machines lack.
pub fn missing() -> Option<&'static str> {
    let there = |tool: &str| {
        Command::new(tool)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok()
    };
    if !there("chromedriver") {
        return Some("chromedriver is not installed (Debian: chromium-driver)");
    }
    (!there("chromium")).then_some("chromium is not installed")
}

impl Driver {
    /// Starts a driver. One that ends before it has a port is started again: it looks for a port
    /// that is free for IPv4 and IPv6, and another process may be faster. What it said is printed.
    fn start() -> Self {
        let more = |said| println!("chromedriver has ended: {said}");
        (0..STARTS).find_map(|_| Self::once().map_err(more).ok()).expect("chromedriver has a port")
    }

    /// A driver that has a port, or what it said before it ended.
    fn once() -> Result<Self, String> {
        // Chromium leaves the directory of its singleton's socket behind.
        let files = tempfile::tempdir().expect("a directory");
        let errors = files.path().join("errors");
        let mut c = Command::new("chromedriver");
        c.arg("--port=0")
            .env("TMPDIR", files.path())
            .stdout(Stdio::piped())
            .stderr(File::create(&errors).expect("a file"));
        let mut process = c.spawn().expect("chromedriver");
        let (mut lines, mut said) = (
            BufReader::new(process.stdout.take().expect("piped")).lines().map_while(Result::ok),
            String::new(),
        );
        let port = lines.find_map(|l| {
            said += &l;
            l.split_once("successfully on port ").map(|(_, p)| p.trim_end_matches('.').to_owned())
        });
        let Some(port) = port else {
            let status = process.wait().expect("our child");
            return Err(format!(
                "{status}: {said} {}",
                std::fs::read_to_string(&errors).unwrap_or_default()
            ));
        };
        // What it says later must go somewhere.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Self { process, url: format!("http://127.0.0.1:{port}"), _files: files })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Browser {
    /// Starts a browser with a window of this size and opens an address.
    pub fn open(address: &str, width: u32, height: u32) -> Self {
        Self::with(address, width, height, json!({}))
    }

    /// Starts a browser that shows a page as a phone does, whose windows may be narrower than a
    /// desktop's.
    pub fn phone(address: &str, width: u32, height: u32) -> Self {
        let metrics = json!({"width": width, "height": height, "pixelRatio": 1, "touch": true});
        Self::with(address, width, height, json!({"mobileEmulation": {"deviceMetrics": metrics}}))
    }

    fn with(address: &str, width: u32, height: u32, mut options: Value) -> Self {
        let driver = Driver::start();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let size = format!("--window-size={width},{height}");
        let mut wants = Capabilities::new();
        // In a container the sandbox of the browser has no namespaces of its own, and /dev/shm is
        // small.
        let args = json!([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            size
        ]);
        options["args"] = args;
        wants.insert("goog:chromeOptions".into(), options);
        wants.insert("goog:loggingPrefs".into(), json!({"browser": "ALL"}));
        let client = runtime.block_on(async {
            let client = ClientBuilder::new(HttpConnector::new())
                .capabilities(wants)
                .connect(&driver.url)
                .await
                .expect("a session");
            client
                .update_timeouts(TimeoutConfiguration::new(Some(DEADLINE), Some(DEADLINE), None))
                .await
                .expect("timeouts");
            client.goto(address).await.expect("the page loads");
            client
        });
        Self { runtime, client, driver }
    }

    /// The value of an expression of JavaScript.
    pub fn value(&self, expression: &str) -> Value {
        self.runtime
            .block_on(self.client.execute(&format!("return {expression}"), vec![]))
            .unwrap_or_else(|e| panic!("{expression}: {e}"))
    }

    pub fn text(&self, selector: &str) -> String {
        let shown = self.value(&format!("document.querySelector({selector:?})?.textContent"));
        shown.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression of JavaScript is true.
    pub fn until(&self, condition: &str) {
        let script = format!(
            "const done = arguments[arguments.length - 1];
             const look = () => {{ let ok = false; try {{ ok = Boolean({condition}) }} catch {{}} ok ? done(true) : setTimeout(look, 30) }};
             look();"
        );
        if let Err(e) = self.runtime.block_on(self.client.execute_async(&script, vec![])) {
            panic!(
                "waited too long until {condition}: {e}; the page says: {}; its log: {:?}",
                self.text("body"),
                self.errors()
            );
        }
    }

    /// Waits until an element is there and its text has `part`.
    pub fn until_says(&self, selector: &str, part: &str) {
        self.until(&format!("document.querySelector({selector:?}).textContent.includes({part:?})"));
    }

    /// A click of the mouse, which fails where something covers the element.
    pub fn click(&self, selector: &str) {
        self.until(&format!("document.querySelector({selector:?}).getClientRects().length"));
        let clicked = async { self.client.find(Locator::Css(selector)).await?.click().await };
        self.runtime.block_on(clicked).unwrap_or_else(|e| panic!("click {selector}: {e}"));
    }

    /// Types into the element that has the focus, or another one.
    pub fn keys(&self, selector: &str, keys: &str) {
        let typed = async { self.client.find(Locator::Css(selector)).await?.send_keys(keys).await };
        self.runtime.block_on(typed).unwrap_or_else(|e| panic!("type into {selector}: {e}"));
    }

    /// Puts a text or a choice into a field, as a user who replaces what was there.
    pub fn fill(&self, selector: &str, text: &str) {
        self.value(&format!(
            "(() => {{ const f = document.querySelector({selector:?}); f.value = {text:?};
             for (const e of ['input', 'change']) f.dispatchEvent(new Event(e, {{ bubbles: true }})); }})()"
        ));
    }

    /// Errors that the page's console has had since this was last asked; those of requests that
    /// failed are not the page's.
    pub fn errors(&self) -> Vec<String> {
        let session = self
            .runtime
            .block_on(self.client.session_id())
            .expect("a session")
            .expect("an open one");
        let mut answer = ureq::post(format!("{}/session/{session}/se/log", self.driver.url))
            .send_json(json!({"type": "browser"}))
            .expect("the log");
        let log: Value = answer.body_mut().read_json().expect("JSON");
        let all = log["value"].as_array().cloned().unwrap_or_default();
        let errors = all.iter().filter(|e| e["level"] == "SEVERE" && e["source"] != "network");
        errors.map(|e| e["message"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.runtime.block_on(self.client.clone().close());
    }
}
