//! `heliostat set`: changes what a running network does, through REST.

use std::path::PathBuf;

use serde_json::json;

use super::client::Where;
use super::{CliError, read_policy};
use crate::client::Client;
use crate::config::policy::RawPolicy;

/// Changes what a running network does: its policy, or circuits that are set by hand
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    place: Where,
}

#[derive(clap::Subcommand, Clone, Debug)]
enum What {
    /// Decides by another policy from the next cycle on
    Policy {
        /// A policy file (YAML), or the name of a shipped policy
        #[arg(value_name = "FILE|NAME")]
        policy: PathBuf,
    },
    /// Sets a circuit by hand: it stays until it is given back, whatever the policy decides
    Circuit {
        /// Sending rack: r0, or 0
        #[arg(value_parser = rack)]
        from: u32,
        /// Receiving rack; none: the circuit from FROM is given back to the policy
        #[arg(value_parser = rack)]
        to: Option<u32>,
        /// The OCS plane
        #[arg(long, default_value_t = 0)]
        plane: u32,
    },
    /// Sets all circuits by hand at one instant: those that are not named are given back
    Circuits {
        /// FROM-TO, such as r0-r3, or FROM-TO@PLANE; none: all are given back
        #[arg(value_parser = circuit, value_name = "FROM-TO[@PLANE]")]
        circuits: Vec<Circuit>,
    },
}

/// A circuit as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Circuit {
    plane: u32,
    from: u32,
    to: u32,
}

/// Runs the subcommand.
///
/// # Errors
/// A file that makes no sense, no daemon, no answer in time, or an answer that is an error.
pub fn run(args: &Args) -> Result<(), CliError> {
    let client = args.place.client()?;
    match &args.what {
        What::Policy { policy } => {
            let body = serde_json::to_string(&RawPolicy::from(&read_policy(policy)?)).expect("a policy is plain data");
            put(&client, "/api/v1/policy", &body)
        }
        What::Circuit { from, to: Some(to), plane } => {
            put(&client, &format!("/api/v1/circuits/{plane}/{from}"), &json!({ "output": to }).to_string())
        }
        What::Circuit { from, to: None, plane } => ask(&client, "DELETE", &format!("/api/v1/circuits/{plane}/{from}"), ""),
        What::Circuits { circuits } => {
            let all: Vec<_> = circuits.iter().map(|c| json!({ "plane": c.plane, "input": c.from, "output": c.to })).collect();
            put(&client, "/api/v1/circuits", &json!({ "circuits": all }).to_string())
        }
    }
}

fn put(client: &Client, path: &str, body: &str) -> Result<(), CliError> {
    ask(client, "PUT", path, body)
}

/// Says nothing if it was done.
fn ask(client: &Client, method: &str, path: &str, body: &str) -> Result<(), CliError> {
    // Whatever policy is in force is replaced.
    let (status, text) = client.ask(method, path, &[("if-match", "*")], body)?;
    if (200..300).contains(&status) { Ok(()) } else { Err(client.refused(status, &text).into()) }
}

/// A rack as `r3`, or its number.
fn rack(text: &str) -> Result<u32, String> {
    text.strip_prefix('r').unwrap_or(text).parse().map_err(|_| "write a rack as r3".into())
}

fn circuit(text: &str) -> Result<Circuit, String> {
    let bad = || "write a circuit as r0-r3, or on another plane as r0-r3@1".to_owned();
    let (racks, plane) = text.split_once('@').unwrap_or((text, "0"));
    let (from, to) = racks.split_once('-').ok_or_else(bad)?;
    let [from, to] = [rack(from).map_err(|_| bad())?, rack(to).map_err(|_| bad())?];
    Ok(Circuit { plane: plane.parse().map_err(|_| bad())?, from, to })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circuit_is_written_by_its_racks() {
        assert_eq!(circuit("r0-r3"), Ok(Circuit { plane: 0, from: 0, to: 3 }));
        assert_eq!(circuit("0-3@1"), Ok(Circuit { plane: 1, from: 0, to: 3 }));
        for bad in ["", "r0", "r0-", "-r0", "r0-r1@", "r0-r1@x", "r0-r1-r2", "h0-r1", "r-r", "r0-r99999999999"] {
            assert!(circuit(bad).is_err(), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_circuit_or_an_error(text in ".*") {
            let _ = circuit(&text);
        }
    }
}
