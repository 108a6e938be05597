//! The web page in a real browser: Chromium without a window, driven by its WebDriver, on a running daemon.
//!
//! What has no browser, or no root for the network, prints `SKIP name: reason`.

#[macro_use]
#[path = "../shared/tries.rs"]
mod tries;

mod browser;
mod buttons;
mod networks;
mod page;
mod report;
#[path = "../ends/support.rs"]
#[allow(dead_code, unused_imports, reason = "shared with tests that need other parts")]
mod support;
