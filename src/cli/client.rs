//! The REST API as the command line asks it.

use std::time::Duration;

use super::CliError;
use crate::api::DEFAULT_ADDRESS;
use crate::api::problem::Problem;

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(10);

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

    /// The body of an answer to GET, such as of `/api/v1/circuits`.
    ///
    /// # Errors
    /// No daemon, no answer in time, or an answer that is an error.
    pub fn get(&self, path: &str) -> Result<String, CliError> {
        let mut request = self.agent.get(format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let mut response = request.call().map_err(|e| self.lost(&e))?;
        let status = response.status();
        let text = response.body_mut().with_config().limit(1 << 30).read_to_string().map_err(|e| self.lost(&e))?;
        if status.is_success() {
            return Ok(text);
        }
        let said = serde_json::from_str::<Problem>(&text).map_or_else(|_| status.to_string(), |p| p.detail.into());
        Err(CliError::Failed(format!("{}: {said}", self.base)))
    }

    fn lost(&self, e: &ureq::Error) -> CliError {
        match e {
            ureq::Error::Timeout(_) => CliError::TimedOut(format!("{} did not answer within {} s", self.base, TIMEOUT.as_secs())),
            e => CliError::Unreachable(format!("no daemon answers at {}: {e}; start one with `heliostat run TOPOLOGY`", self.base)),
        }
    }
}
