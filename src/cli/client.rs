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
    /// The daemon's address [default: $HELIOSTAT_CONTROLLER, or http://127.0.0.1:7447]
    #[arg(long, value_name = "URL")]
    pub controller: Option<String>,
    /// The file that holds its token, if it wants one [default: the token in $HELIOSTAT_TOKEN]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<std::path::PathBuf>,
}

/// Asks one daemon.
pub struct Client {
    base: String,
    token: Option<String>,
    agent: ureq::Agent,
}

impl Client {
    /// A client of the daemon that the arguments, the environment or the default name.
    ///
    /// # Errors
    /// An address that is not `http://...`, or a token file that cannot be read.
    pub fn new(place: &Where) -> Result<Self, CliError> {
        let env = |name| std::env::var(name).ok().filter(|v| !v.is_empty());
        let base = place.controller.clone().or_else(|| env("HELIOSTAT_CONTROLLER")).unwrap_or_else(|| format!("http://{DEFAULT_ADDRESS}"));
        let base = base.trim_end_matches('/').to_string();
        if !base.strip_prefix("http://").is_some_and(|host| !host.is_empty() && !host.contains(['/', ' '])) {
            return Err(CliError::Usage(format!("--controller {base}: write it as http://host:port")));
        }
        let token = match &place.token_file {
            Some(file) => Some(super::read_text(file)?.trim().to_string()),
            None => env("HELIOSTAT_TOKEN"),
        };
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(TIMEOUT)).proxy(None);
        Ok(Self { base, token, agent: config.build().into() })
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
