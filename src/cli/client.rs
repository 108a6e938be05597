//! The daemon that a command speaks to.

use super::CliError;
use crate::api::DEFAULT_ADDRESS;
use crate::client::{Client, Error};

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

impl Where {
    /// A client of that daemon.
    ///
    /// # Errors
    /// An address that is not `http://host:port`.
    pub fn client(&self) -> Result<Client, CliError> {
        Client::new(&self.controller, self.token.clone()).map_err(|e| CliError::Usage(format!("--controller: {e}")))
    }
}

impl From<Error> for CliError {
    fn from(e: Error) -> Self {
        match e {
            Error::Address(why) => Self::Usage(why),
            Error::Unreachable(why) => Self::Unreachable(why),
            Error::TimedOut(why) => Self::TimedOut(why),
            Error::Refused(why) => Self::Failed(why),
        }
    }
}
