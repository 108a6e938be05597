//! The REST API as the command line asks it.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use super::CliError;
use crate::api::DEFAULT_ADDRESS;
use crate::api::problem::Problem;

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The daemon's stream of events says something every 15 s at least.
const SILENCE: Duration = Duration::from_secs(25);

/// Where the daemon is
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Where {
    /// The daemon's address
    #[arg(long, value_name = "URL", env = "HELIOSTAT_CONTROLLER", default_value_t = format!("http://{DEFAULT_ADDRESS}"))]
    pub controller: String,
    /// Its token, if it wants one
    #[arg(long, env = "HELIOSTAT_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
}

/// Asks one daemon.
pub struct Client {
    base: String,
    token: Option<String>,
    agent: ureq::Agent,
}

impl Client {
    /// A client of the daemon that the arguments name.
    ///
    /// # Errors
    /// An address that is not `http://host:port`.
    pub fn new(place: &Where) -> Result<Self, CliError> {
        let base = place.controller.trim_end_matches('/').to_string();
        if !base.strip_prefix("http://").is_some_and(|host| !host.is_empty() && !host.contains(['/', ' '])) {
            return Err(CliError::Usage(format!("--controller {base}: write it as http://host:port")));
        }
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(TIMEOUT)).proxy(None);
        Ok(Self { base, token: place.token.clone(), agent: config.build().into() })
    }

    /// The daemon's address.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The body of an answer to GET, such as of `/api/v1/circuits`.
    ///
    /// # Errors
    /// No daemon, no answer in time, or an answer that is an error.
    pub fn get(&self, path: &str) -> Result<String, CliError> {
        let (status, text) = self.ask("GET", path, &[], "")?;
        if (200..300).contains(&status) { Ok(text) } else { Err(self.refused(status, &text)) }
    }

    /// One request with a JSON body (none if it is empty): the answer's status and body, whatever the status is.
    ///
    /// # Errors
    /// No daemon, or no answer in time.
    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Result<(u16, String), CliError> {
        let request = self.request(method, path).header("content-type", "application/json");
        let request = headers.iter().fold(request, |r, (k, v)| r.header(*k, *v)).body(body.to_owned());
        let request = request.map_err(|e| CliError::Usage(format!("{}{path}: {e}", self.base)))?;
        let mut response = self.agent.run(request).map_err(|e| self.lost(&e))?;
        let text = response.body_mut().with_config().limit(1 << 30).read_to_string().map_err(|e| self.lost(&e))?;
        Ok((response.status().as_u16(), text))
    }

    /// The lines of a stream of server-sent events, from after event `last`, or from now on. Reading fails when the daemon is silent for
    /// longer than its keep-alive allows.
    ///
    /// # Errors
    /// No daemon, no answer in time, or an answer that is an error.
    pub fn events(&self, last: Option<u64>) -> Result<impl BufRead + use<>, CliError> {
        let request = self.request("GET", "/api/v1/events").header("accept", "text/event-stream");
        let request = last.iter().fold(request, |r, l| r.header("last-event-id", l.to_string())).body(());
        let request = request.map_err(|e| CliError::Usage(format!("{}: {e}", self.base)))?;
        let config = self.agent.configure_request(request).timeout_global(None);
        let request = config.timeout_recv_response(Some(TIMEOUT)).timeout_per_read(Some(SILENCE)).build();
        let mut response = self.agent.run(request).map_err(|e| self.lost(&e))?;
        let status = response.status();
        if status.is_success() {
            return Ok(BufReader::new(response.into_body().into_reader()));
        }
        let text = response.body_mut().read_to_string().map_err(|e| self.lost(&e))?;
        Err(self.refused(status.as_u16(), &text))
    }

    fn request(&self, method: &str, path: &str) -> ureq::http::request::Builder {
        let request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.base));
        self.token.iter().fold(request, |r, t| r.header("authorization", format!("Bearer {t}")))
    }

    /// What an answer with an error says.
    pub fn refused(&self, status: u16, text: &str) -> CliError {
        let said = serde_json::from_str::<Problem>(text).map_or_else(
            |_| format!("status {status}"),
            |p| p.pointer.map_or_else(|| p.detail.to_string(), |at| format!("{at}: {}", p.detail)),
        );
        CliError::Failed(format!("{}: {said}", self.base))
    }

    fn lost(&self, e: &ureq::Error) -> CliError {
        match e {
            ureq::Error::Timeout(_) => CliError::TimedOut(format!("{} did not answer within {} s", self.base, TIMEOUT.as_secs())),
            e => CliError::Unreachable(format!("no daemon answers at {}: {e}; start one with `heliostat run TOPOLOGY`", self.base)),
        }
    }
}
