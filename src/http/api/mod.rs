//! REST over a [`Handle`](crate::runtime::handle::Handle) to the controller, under `/api/v1`, with
//! `/metrics`, `/livez`, `/readyz`, `/openapi.json` and its page `/docs`; at `/` a page that shows
//! the network live ([`page`]). It never touches a fabric.
//!
//! Every answer comes from the newest snapshot and does not wait; changes are events that the
//! controller takes or refuses. Errors are RFC 9457 problems. GET never changes anything. The
//! server listens on a loopback address, on any other only with a bearer token, and on a unix
//! socket of mode 0600.
//!
//! The server runs on one thread of its own, so that it starts and stops from code that is not
//! async and never takes a turn of the traffic's runtime.

use std::time::Duration;

mod board;
mod listeners;
pub mod metrics;
pub mod openapi;
pub mod page;
pub mod problem;
mod routes;
mod server;
pub mod state;
pub mod wire;

pub use server::{ServeError, Server, ServerOptions, reserve, serve, serve_on};
pub use state::{CoflowSender, RunIdentity};

/// Where the API listens unless told otherwise.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:7447";
/// The largest body that is read.
pub const MAX_BODY: usize = 4 << 20;
/// How long a client may take for its headers, and for its body.
pub const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the controller may take for its answer.
pub const CONTROLLER_TIMEOUT: Duration = Duration::from_secs(5);
/// Paths at which every request is let in: they say nothing about the network.
const UNGUARDED: [&str; 2] = ["/livez", "/readyz"];

#[cfg(test)]
mod tests;
