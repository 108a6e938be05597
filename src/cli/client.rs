//! The daemon that a command speaks to.

use std::path::PathBuf;

use super::log::say;
use super::{CliError, files, running};
use crate::api::DEFAULT_ADDRESS;
use crate::client::{Client, Error, TIMEOUT, parse};

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
    /// if it is not this user's.
    ///
    /// # Errors
    /// An address that is not `http://host:port`; several networks run, none has the name, or it is
    /// still being built.
    pub fn client(&self) -> Result<Client, CliError> {
        self.client_of(false)
    }

    /// The same for a command that changes something.
    ///
    /// # Errors
    /// As [`Where::client`], and a network of another user that is neither named nor given by its
    /// address.
    pub fn client_to_change(&self) -> Result<Client, CliError> {
        self.client_of(true)
    }

    fn client_of(&self, changes: bool) -> Result<Client, CliError> {
        let token = files::token(self.token_file.as_deref(), self.token.as_deref())?;
        let name = self.name.as_deref();
        let at = |url: &str| {
            Client::new(url, token.clone())
                .map_err(|e| CliError::Usage(format!("--controller: {e}")))
        };
        let given = self.controller.clone();
        if let Some(url) = given.or_else(|| running::controller().filter(|_| name.is_none())) {
            return at(&url);
        }
        if !running::is_own(name)? {
            return at_default(at(&format!("http://{DEFAULT_ADDRESS}"))?, name, changes);
        }
        let choose = if changes { running::choose_to_change } else { running::choose };
        let note = choose(name)?;
        if let Some(who) = running::owner(&note).filter(|_| !changes) {
            say!("the network {} was started by {who}", note.fabric);
        }
        Ok(Client::of_socket(running::socket(&note), running::api(&note)?, token, TIMEOUT))
    }
}

/// What listens at the default address: a network of root, of another user, or of a container. It
/// is changed only by its name.
fn at_default(client: Client, name: Option<&str>, changes: bool) -> Result<Client, CliError> {
    let is = match client.get("/api/v1/stats") {
        Ok(text) => {
            let stats: serde_json::Value = parse(&text)?;
            stats["name"].as_str().unwrap_or_default().to_owned()
        }
        Err(Error::Unreachable(_)) if changes || name.is_some() => {
            let elsewhere = "one elsewhere is found by its address: --controller";
            return Err(CliError::Unreachable(format!("{}; {elsewhere}", running::NONE)));
        }
        // Whatever is read fails as well, with its reason.
        Err(_) if !changes => return Ok(client),
        Err(e) => return Err(e.into()),
    };
    let there = format!("{is} at http://{DEFAULT_ADDRESS}");
    match name {
        Some(name) if name == is => Ok(client),
        Some(name) => {
            Err(CliError::Usage(format!("no network {name} of this user runs; there is {there}")))
        }
        None if changes => Err(CliError::Usage(format!(
            "no network of this user runs; if you mean {there}, give its name: --name {is}"
        ))),
        None => {
            say!("no network of this user runs; this is {there}");
            Ok(client)
        }
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
