//! The web page in a real browser: Chromium without a window, driven by its WebDriver, on a running
//! daemon.
//!
//! What has no browser, or no root for the network, prints `SKIP name: reason`.

mod browser;
mod buttons;
mod looks;
mod networks;
mod report;
mod views;
