//! `heliostat ps`: the networks that run on this machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use indicatif::FormattedDuration;

use super::stop::HOW_TO_END;
use super::tables::TextTable;
use super::{CliError, OutputFormat, origin, print, running};
use crate::client::{Client, Error};
use crate::kernel::ownership::{self, FabricNote};
use crate::kernel::programs::{self, NamespaceProgram};

/// Lists the networks of this user that run on this machine, and programs that outlived theirs.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How they are printed.
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

/// Runs the subcommand.
///
/// # Errors
/// When stdout cannot be written.
pub fn run(args: &Args) -> Result<(), CliError> {
    let base = ownership::base();
    let mut networks: Vec<ListedNetwork> = ownership::running(&base)
        .into_iter()
        .map(|note| ListedNetwork::look(&base, note))
        .collect();
    let mut programs = programs::all(&base);
    for n in &mut networks {
        n.programs = programs.extract_if(.., |p| p.fabric == n.note.fabric).collect();
    }
    match args.output {
        OutputFormat::Json => print(&exact(&networks, &programs).json()),
        OutputFormat::Csv => print(&exact(&networks, &programs).csv()),
        OutputFormat::Table => {
            let none = networks.is_empty().then(|| running::NONE.to_owned() + "\n");
            print(&(none.unwrap_or_else(|| table(&networks).table() + "\n") + &outlived(&programs)))
        }
    }
}

/// A network that runs.
struct ListedNetwork {
    note: FabricNote,
    /// What it does: `running`, `starting`, `stopping`; or why it does not answer.
    state: String,
    /// The policy in force, as far as it answers.
    policy: String,
    programs: Vec<NamespaceProgram>,
}

impl ListedNetwork {
    fn look(base: &Path, note: FabricNote) -> Self {
        let (mut state, mut policy) = (note.state.clone(), note.policy.clone());
        // Networks of `experiment` have no API.
        if let Some(api) = note.api.as_deref().filter(|_| state == "running") {
            let client = Client::of_socket(ownership::socket(base, &note), api, None, ANSWER);
            match client.ask("GET", "/livez", &[], "") {
                Ok((200, _)) => {}
                Ok((_, body)) => state = format!("hangs: {}", detail(&body)),
                Err(Error::TimedOut(_)) => {
                    state = format!("does not answer within {} s", ANSWER.as_secs())
                }
                Err(e) => state = format!("does not answer: {e}"),
            }
            let named = client.get("/api/v1/policy").ok();
            let named =
                named.and_then(|body| serde_json::from_str::<serde_json::Value>(&body).ok());
            policy = named.and_then(|p| Some(p["name"].as_str()?.to_owned())).unwrap_or(policy);
        }
        Self { note, state, policy, programs: vec![] }
    }
}

/// What a problem's body says.
fn detail(body: &str) -> String {
    let problem: Option<serde_json::Value> = serde_json::from_str(body).ok();
    problem
        .and_then(|p| Some(p["detail"].as_str()?.to_owned()))
        .unwrap_or_else(|| "its state is not well".into())
}

/// How long a network has for an answer.
const ANSWER: Duration = Duration::from_secs(1);

/// Programs in nodes of networks that are gone, in words.
fn outlived(programs: &[NamespaceProgram]) -> String {
    if programs.is_empty() {
        return String::new();
    }
    let line = |p: &NamespaceProgram| {
        format!("a program runs on in a node of {}, which is gone: {p}\n", p.fabric)
    };
    programs.iter().map(line).collect::<String>() + HOW_TO_END + "\n"
}

const HEADER: [&str; 11] = [
    "name",
    "state",
    "process",
    "started_at",
    "racks",
    "hosts",
    "mechanism",
    "policy",
    "workload",
    "programs",
    "api",
];

/// For programs: a row a network, with the numbers of the processes that users run in its nodes;
/// then networks that are gone and in whose nodes some run on.
fn exact(networks: &[ListedNetwork], outlived: &[NamespaceProgram]) -> TextTable {
    let mut rows = rows(networks, HEADER, |n| origin::at_ms(n.started_ms));
    let mut gone: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    outlived.iter().for_each(|p| gone.entry(&p.fabric).or_default().push(p.pid.to_string()));
    for (name, pids) in gone {
        let pids = pids.join(" ");
        let row = HEADER.map(|h| match h {
            "name" => name,
            "state" => "gone",
            "programs" => &pids,
            _ => "",
        });
        rows.rows.push(row.map(str::to_owned).to_vec());
    }
    rows
}

/// For people.
fn table(networks: &[ListedNetwork]) -> TextTable {
    let age =
        |n: &FabricNote| Duration::from_millis(ownership::now_ms().saturating_sub(n.started_ms));
    let header = [
        "name",
        "state",
        "process",
        "up for",
        "racks",
        "hosts",
        "mechanism",
        "policy",
        "workload",
        "programs",
        "API",
    ];
    rows(networks, header, |n| FormattedDuration(age(n)).to_string())
}

fn rows(
    networks: &[ListedNetwork],
    header: [&str; 11],
    since: impl Fn(&FabricNote) -> String,
) -> TextTable {
    let mut rows = TextTable::new(&header);
    for ListedNetwork { note: n, state, policy, programs } in networks {
        let count = |prefix: &str| {
            n.nodes.keys().filter(|node| is_numbered(node, prefix)).count().to_string()
        };
        let or_none = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        let pids = programs.iter().map(|p| p.pid.to_string()).collect::<Vec<_>>().join(" ");
        let (process, api) = (n.pid.to_string(), n.api.clone().unwrap_or_default());
        let network = [
            n.fabric.clone(),
            state.clone(),
            process,
            since(n),
            count("tor"),
            count("h"),
            n.mechanism.clone(),
        ];
        rows.rows.push(
            network
                .into_iter()
                .chain([policy, &n.workload, &pids, &api].map(|t| or_none(t)))
                .collect(),
        );
    }
    rows
}

/// Whether a node's name is this prefix and a number: `tor3`, `h3-1`.
fn is_numbered(node: &str, prefix: &str) -> bool {
    node.strip_prefix(prefix).is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()))
}
