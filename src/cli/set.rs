//! `heliostat set`: changes what a running network does, through REST.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::client::Where;
use super::log::say;
use super::show::{host_name, host_names};
use super::{CliError, files, print};
use crate::api::wire::{LoadChange, PathChange, PathView};
use crate::client::{Client, parse};
use crate::ids::RackId;
use crate::units::BitRate;

/// Changes what a running network does: its policy, or circuits and lists of switches that are set
/// by hand
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: SetCommand,
    #[command(flatten)]
    place: Where,
}

#[derive(clap::Subcommand, Clone, Debug)]
enum SetCommand {
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
        circuits: Vec<CircuitArgument>,
    },
    /// Sets the list of switches that flows from one host to another cross; says what that changes
    Path {
        /// Sending host, such as h0-0
        from: String,
        /// Receiving host
        to: String,
        /// The switches by name, from the first host's to the last one's (`heliostat show
        /// switches`); none: the list is given back
        switches: Vec<String>,
        /// Only the flow with these TCP or UDP ports, FROM:TO; else all flows that have no list of
        /// their own
        #[arg(long, value_parser = ports, value_name = "FROM:TO")]
        ports: Option<(u16, u16)>,
        /// Says what would change, and changes nothing
        #[arg(long)]
        dry_run: bool,
    },
}

/// A circuit as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CircuitArgument {
    plane: u32,
    from: u32,
    to: u32,
}

/// Runs the subcommand.
///
/// # Errors
/// A file that makes no sense, no daemon, no answer in time, or an answer that is an error.
pub fn run(args: &Args) -> Result<(), CliError> {
    if let SetCommand::Circuit { from, to: Some(to), .. } = args.what
        && from == to
    {
        let why = format!(
            "TO: {} is the sending rack; a circuit joins two racks",
            RackId::from(to as usize)
        );
        return Err(CliError::Usage(why));
    }
    let client = &args.place.client_to_change()?;
    match &args.what {
        SetCommand::Policy { policy: file } => {
            say!("policy {} decides from the next cycle on", policy(&args.place, file)?);
            Ok(())
        }
        SetCommand::Circuit { from, to: Some(to), plane } => put(
            client,
            &format!("/api/v1/circuits/{plane}/{from}"),
            &json!({ "output": to }).to_string(),
        ),
        SetCommand::Circuit { from, to: None, plane } => {
            ask(client, "DELETE", &format!("/api/v1/circuits/{plane}/{from}"), "")
        }
        SetCommand::Circuits { circuits } => {
            let all: Vec<_> = circuits
                .iter()
                .map(|c| json!({ "plane": c.plane, "input": c.from, "output": c.to }))
                .collect();
            put(client, "/api/v1/circuits", &json!({ "circuits": all }).to_string())
        }
        SetCommand::Path { from, to, switches, ports, dry_run } => {
            let flow = ports.map(|(a, b)| format!("&fromPort={a}&toPort={b}")).unwrap_or_default();
            let path = format!("/api/v1/paths/{from}/{to}?dryRun={dry_run}{flow}");
            let text = if switches.is_empty() {
                answer(client, "DELETE", &path, "")?
            } else {
                answer(client, "PUT", &path, &json!({ "switches": switches }).to_string())?
            };
            let lines = changed(&parse(&text)?, &host_names(client)?);
            print(&lines.iter().map(|line| format!("{line}\n")).collect::<String>())
        }
    }
}

/// Has a daemon decide by a policy file from its next cycle on; gives the policy's name.
///
/// # Errors
/// A file that makes no sense, no daemon, or what it refuses.
pub fn policy(daemon: &Where, file: &Path) -> Result<String, CliError> {
    // Only what the file says: what it leaves out of that which is fixed while a network runs stays
    // as it is.
    let (plan, given) = files::read_policy_as_json(file)?;
    put(&daemon.client_to_change()?, "/api/v1/policy", &given.to_string())?;
    Ok(plan.policy.name)
}

/// A change of lists in words: the lists that are other ones, the load of the switches, the cost.
fn changed(c: &PathChange, names: &[String]) -> Vec<String> {
    let flow = |p: &PathView| {
        p.ports.map_or_else(String::new, |f| format!(" port {} to port {}", f.from, f.to))
    };
    let name = |host| host_name(names, host);
    let list = |p: &PathView| {
        format!("{} to {}{}: {}", name(p.from), name(p.to), flow(p), p.switches.join(" "))
    };
    let of = |b: Option<u64>| b.map_or_else(String::new, |b| format!(" of {}", BitRate(b)));
    let load = |s: &LoadChange| {
        format!(
            "{}: {} -> {}{}",
            s.name,
            BitRate(s.before_bps),
            BitRate(s.after_bps),
            of(s.capacity_bps)
        )
    };
    let cost = [format!("bytes x switches: {} -> {}", c.cost_before, c.cost_after)];
    c.paths.iter().map(list).chain(c.switches.iter().map(load)).chain(cost).collect()
}

fn put(client: &Client, path: &str, body: &str) -> Result<(), CliError> {
    ask(client, "PUT", path, body)
}

/// Says nothing if it was done.
fn ask(client: &Client, method: &str, path: &str, body: &str) -> Result<(), CliError> {
    answer(client, method, path, body).map(drop)
}

fn answer(client: &Client, method: &str, path: &str, body: &str) -> Result<String, CliError> {
    // Whatever policy is in force is replaced.
    let (status, text) = client.ask(method, path, &[("if-match", "*")], body)?;
    if (200..300).contains(&status) { Ok(text) } else { Err(client.refused(status, &text).into()) }
}

/// The ports of a flow as `40000:5201`.
fn ports(text: &str) -> Result<(u16, u16), String> {
    let port = |t: &str| t.parse().ok().filter(|&p: &u16| p > 0);
    let both = text.split_once(':').and_then(|(a, b)| Some((port(a)?, port(b)?)));
    both.ok_or_else(|| "write the ports of a flow as 40000:5201, each from 1 to 65535".into())
}

/// A rack as `r3`, or its number.
fn rack(text: &str) -> Result<u32, String> {
    text.strip_prefix('r').unwrap_or(text).parse().map_err(|_| "write a rack as r3".into())
}

fn circuit(text: &str) -> Result<CircuitArgument, String> {
    let bad = || "write a circuit as r0-r3, or on another plane as r0-r3@1".to_owned();
    let (racks, plane) = text.split_once('@').unwrap_or((text, "0"));
    let (from, to) = racks.split_once('-').ok_or_else(bad)?;
    let [from, to] = [rack(from).map_err(|_| bad())?, rack(to).map_err(|_| bad())?];
    if from == to {
        return Err("a circuit joins two racks".into());
    }
    Ok(CircuitArgument { plane: plane.parse().map_err(|_| bad())?, from, to })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circuit_is_written_by_its_racks() {
        assert_eq!(circuit("r0-r3"), Ok(CircuitArgument { plane: 0, from: 0, to: 3 }));
        assert_eq!(circuit("0-3@1"), Ok(CircuitArgument { plane: 1, from: 0, to: 3 }));
        for bad in [
            "",
            "r0",
            "r0-",
            "-r0",
            "r0-r1@",
            "r0-r1@x",
            "r0-r1-r2",
            "h0-r1",
            "r-r",
            "r0-r99999999999",
            "r0-r0",
        ] {
            assert!(circuit(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_ports_of_a_flow_are_two_numbers() {
        assert_eq!(ports("40000:5201"), Ok((40_000, 5201)));
        for bad in ["", ":", "1", "1:", ":1", "0:1", "1:0", "1:65536", "1:2:3", "-1:2", "a:b"] {
            assert!(ports(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_change_is_told_by_lists_loads_and_cost() {
        let text = r#"{"made":true,"cost_before":4,"cost_after":6,"paths":[{"from":0,"to":7,"ports":{"from":9,"to":5201},"switches":["a","b"],
            "by":"manual","held":false,"bytes":1,"rate_bps":2}],"switches":[{"name":"b","before_bps":0,"after_bps":1000000,"capacity_bps":null}]}"#;
        let told = changed(&serde_json::from_str(text).expect("a change"), &["h0-0".into()]);
        assert_eq!(
            told,
            ["h0-0 to 7 port 9 to port 5201: a b", "b: 0b/s -> 1Mb/s", "bytes x switches: 4 -> 6"]
        );
    }

    proptest::proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn any_text_is_a_circuit_or_an_error(text in ".*") {
            let _ = circuit(&text);
        }
    }
}
