//! The daemon that a command speaks to.

use std::path::PathBuf;

use super::running::{self, Meant};
use super::{CliError, files};
use crate::client::{Client, Error, TIMEOUT};

/// Where the daemon is
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Where {
    /// The daemon's address [default: $HELIOSTAT_CONTROLLER, or that of this user's network on this
    /// machine; to read only, also that of another user, or http://127.0.0.1:7447]
    #[arg(long, value_name = "URL", global = true)]
    pub controller: Option<String>,
    /// The network, if several are running on this machine; it goes before $HELIOSTAT_CONTROLLER
    #[arg(long, conflicts_with = "controller", global = true)]
    pub name: Option<String>,
    /// Its token, if it wants one
    #[arg(long, env = "HELIOSTAT_TOKEN", hide_env_values = true, global = true)]
    pub token: Option<String>,
    /// A file with the token, which goes before --token
    #[arg(long, value_name = "FILE", global = true)]
    pub token_file: Option<PathBuf>,
}

impl Where {
    /// A client of that daemon, for a command that only reads. Says on stderr whose network it is,
    /// if it is another user's.
    ///
    /// # Errors
    /// An address that is not `http://host:port`; several networks run, none has the name, or it is
    /// still being built.
    pub fn client(&self) -> Result<Client, CliError> {
        self.client_of(running::meant)
    }

    /// The same for a command that changes something.
    ///
    /// # Errors
    /// As [`Where::client`], and a network of another user that is neither named nor given by its
    /// address.
    pub fn client_to_change(&self) -> Result<Client, CliError> {
        self.client_of(running::meant_to_change)
    }

    fn client_of(
        &self,
        meant: fn(Option<&str>) -> Result<Meant, CliError>,
    ) -> Result<Client, CliError> {
        let token = files::token(self.token_file.as_deref(), self.token.as_deref())?;
        let given = self
            .controller
            .clone()
            .or_else(|| running::controller().filter(|_| self.name.is_none()));
        let address =
            match given.map_or_else(|| meant(self.name.as_deref()), |u| Ok(Meant::At(u)))? {
                Meant::Own(note) => {
                    let (socket, api) = (running::socket(&note), running::api(&note)?);
                    return Ok(Client::of_socket(socket, api, token, TIMEOUT));
                }
                Meant::At(url) => url,
            };
        Client::new(&address, token).map_err(|e| CliError::Usage(format!("--controller: {e}")))
    }
}

impl From<Error> for CliError {
    fn from(e: Error) -> Self {
        match e {
            Error::Address(why) => Self::Usage(why),
            Error::Unreachable(why) => Self::Unreachable(why),
            Error::TimedOut(why) => Self::TimedOut(why),
            Error::Refused(why) | Error::Broken(why) => Self::Failed(why),
        }
    }
}
