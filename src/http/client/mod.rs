//! A client of the REST API of a controller that runs elsewhere: requests, the stream of events,
//! retries, and a whole network for a task scheduler ([`remote::Remote`]).
//!
//! A request that makes something carries an idempotency key, so that it can be repeated when its
//! answer is lost. Events hurry things; the resources are the truth.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use socket::Socket;
use ureq::unversioned::resolver::DefaultResolver;

use crate::api::problem::ProblemDetails;
use crate::text;

pub mod board;
mod coflows;
pub mod counters;
mod posted_coflows;
pub mod remote;
mod socket;
#[cfg(test)]
mod tests;

/// How long a request may take.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// The daemon's stream of events says something every 15 s at least.
const SILENCE: Duration = Duration::from_secs(25);
/// Number of times that a request or a stream that breaks is tried, each time a little later.
const TRIES: u32 = 4;
/// Time before the second try; before the third it is twice as long, and so on.
const PAUSE: Duration = Duration::from_millis(150);

/// Why a daemon could not be asked, or what it refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The address, or what was to be sent, is not HTTP.
    #[error("{0}")]
    Address(String),
    /// No daemon answers.
    #[error("{0}")]
    Unreachable(String),
    /// The daemon answers too late.
    #[error("{0}")]
    TimedOut(String),
    /// The daemon refused, or its answer makes no sense.
    #[error("{0}")]
    Refused(String),
    /// The daemon is known to have broken ([`Client::give_up`]).
    #[error("{0}")]
    Broken(String),
}

/// Asks one daemon.
pub struct Client {
    base: String,
    token: Option<String>,
    agent: ureq::Agent,
    patience: Duration,
    /// Why nothing is asked any more.
    broken: OnceLock<String>,
}

impl Client {
    /// A client of the daemon at this address, such as `http://127.0.0.1:7447`, with its token if
    /// it wants one.
    ///
    /// # Errors
    /// An address that is not `http://host:port`.
    pub fn new(address: &str, token: Option<String>) -> Result<Self, Error> {
        let base = address.trim_end_matches('/').to_string();
        if !base
            .strip_prefix("http://")
            .is_some_and(|host| !host.is_empty() && !host.contains(['/', ' ']))
        {
            return Err(Error::Address(format!(
                "{base} is no address of a daemon: write it as http://host:port"
            )));
        }
        Ok(Self {
            base,
            token,
            agent: config(TIMEOUT).into(),
            patience: TIMEOUT,
            broken: OnceLock::new(),
        })
    }

    /// A client of a daemon of this machine by its unix socket, within `patience` for each answer.
    /// `address`, a number and a port, is its name in messages.
    pub fn of_socket(
        socket: PathBuf,
        address: &str,
        token: Option<String>,
        patience: Duration,
    ) -> Self {
        let agent =
            ureq::Agent::with_parts(config(patience), Socket(socket), DefaultResolver::default());
        Self { base: address.into(), token, agent, patience, broken: OnceLock::new() }
    }

    /// The daemon's address.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// From now on every request fails at once, and is not tried again. This is for a caller that
    /// knows that the daemon has broken, and need not wait for an answer that does not come. The
    /// first reason stays. A request that is under way is not cut off.
    pub fn give_up(&self, why: &str) {
        self.broken.get_or_init(|| why.to_owned());
    }

    /// Nothing, while the daemon may be asked.
    fn may_ask(&self) -> Result<(), Error> {
        self.broken.get().map_or(Ok(()), |why| Err(Error::Broken(why.clone())))
    }

    /// The body of an answer to GET, such as of `/api/v1/circuits`.
    ///
    /// # Errors
    /// No daemon, no answer in time, or an answer that is an error.
    pub fn get(&self, path: &str) -> Result<String, Error> {
        let (status, text) = self.ask("GET", path, &[], "")?;
        if (200..300).contains(&status) { Ok(text) } else { Err(self.refused(status, &text)) }
    }

    /// One request with a JSON body (none if it is empty): the answer's status and body, whatever
    /// the status is.
    ///
    /// # Errors
    /// No daemon, or no answer in time.
    pub fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<(u16, String), Error> {
        self.may_ask()?;
        let request = self.request(method, path).header("content-type", "application/json");
        let request =
            headers.iter().fold(request, |r, (k, v)| r.header(*k, *v)).body(body.to_owned());
        let request = request.map_err(|e| Error::Address(format!("{}{path}: {e}", self.base)))?;
        let mut response = self.agent.run(request).map_err(|e| self.lost(&e))?;
        let text = response
            .body_mut()
            .with_config()
            .limit(1 << 30)
            .read_to_string()
            .map_err(|e| self.lost(&e))?;
        Ok((response.status().as_u16(), text))
    }

    /// The lines of a stream of server-sent events, from after event `last`, or from now on.
    /// Reading fails when the daemon is silent for longer than its keep-alive allows.
    ///
    /// # Errors
    /// No daemon, no answer in time, or an answer that is an error.
    pub fn events(&self, last: Option<u64>) -> Result<impl BufRead + use<>, Error> {
        self.may_ask()?;
        let request = self.request("GET", "/api/v1/events").header("accept", "text/event-stream");
        let request =
            last.iter().fold(request, |r, l| r.header("last-event-id", l.to_string())).body(());
        let request = request.map_err(|e| Error::Address(format!("{}: {e}", self.base)))?;
        let config = self.agent.configure_request(request).timeout_global(None);
        let request =
            config.timeout_recv_response(Some(TIMEOUT)).timeout_per_read(Some(SILENCE)).build();
        let mut response = self.agent.run(request).map_err(|e| self.lost(&e))?;
        let status = response.status();
        if status.is_success() {
            return Ok(BufReader::new(response.into_body().into_reader()));
        }
        let text = response.body_mut().read_to_string().map_err(|e| self.lost(&e))?;
        Err(self.refused(status.as_u16(), &text))
    }

    fn request(&self, method: &str, path: &str) -> ureq::http::request::Builder {
        let request =
            ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.base));
        self.token.iter().fold(request, |r, t| r.header("authorization", format!("Bearer {t}")))
    }

    /// What an answer with an error says. A controller that does not answer its API is as good as a
    /// daemon that does not answer us.
    pub fn refused(&self, status: u16, answer: &str) -> Error {
        let said = serde_json::from_str::<ProblemDetails>(answer).map_or_else(
            |_| format!("status {status}"),
            |p| p.pointer.map_or_else(|| p.detail.to_string(), |at| format!("{at}: {}", p.detail)),
        );
        let why = format!("{}: {}", self.base, text::told(&said));
        if status == 503 { Error::Unreachable(why) } else { Error::Refused(why) }
    }

    fn lost(&self, e: &ureq::Error) -> Error {
        match e {
            ureq::Error::Timeout(_) => {
                Error::TimedOut(format!("{} did not answer within {:?}", self.base, self.patience))
            }
            e => Error::Unreachable(format!(
                "no daemon answers at {}: {e}; start one with `heliostat run TOPOLOGY`",
                self.base
            )),
        }
    }
}

fn config(patience: Duration) -> ureq::config::Config {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(patience))
        .proxy(None)
        .build()
}

/// Reads an answer.
///
/// # Errors
/// It is not what this version's API says.
pub fn parse<T: serde::de::DeserializeOwned>(answer: &str) -> Result<T, Error> {
    serde_json::from_str(answer).map_err(|e| {
        Error::Refused(format!("the daemon's answer is not one of this version's: {e}"))
    })
}

/// Asks again if there was no answer; what was refused stays refused. For requests that can be
/// repeated.
///
/// # Errors
/// Those of the last time.
pub fn again<T>(ask: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    let mut tries = 1;
    loop {
        match ask() {
            Err(Error::Unreachable(_) | Error::TimedOut(_)) if tries < TRIES => {
                std::thread::sleep(PAUSE * tries)
            }
            answer => return answer,
        }
        tries += 1;
    }
}
