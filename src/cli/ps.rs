//! `heliostat ps`: the networks that run on this machine.

use std::time::Duration;

use indicatif::FormattedDuration;

use super::tables::Rows;
use super::{CliError, Output, origin, print};
use crate::fabric::kernel::ownership::{self, Note};

/// Lists the networks of this user that run on this machine.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How they are printed.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

/// Runs the subcommand.
///
/// # Errors
/// When stdout cannot be written.
pub fn run(args: &Args) -> Result<(), CliError> {
    let notes = ownership::running(&ownership::base());
    match args.output {
        Output::Json => print(&exact(&notes).json()),
        Output::Csv => print(&exact(&notes).csv()),
        Output::Table if notes.is_empty() => print("no network is running\n"),
        Output::Table => print(&(table(&notes).table() + "\n")),
    }
}

/// For programs: a row a network.
fn exact(notes: &[Note]) -> Rows {
    rows(notes, ["name", "process", "started_at", "racks", "hosts", "mechanism", "api"], |n| origin::at_ms(n.started_ms))
}

/// For people.
fn table(notes: &[Note]) -> Rows {
    let age = |n: &Note| Duration::from_millis(ownership::now_ms().saturating_sub(n.started_ms));
    rows(notes, ["name", "process", "up for", "racks", "hosts", "mechanism", "API"], |n| FormattedDuration(age(n)).to_string())
}

fn rows(notes: &[Note], header: [&str; 7], since: impl Fn(&Note) -> String) -> Rows {
    let mut rows = Rows::new(&header);
    for n in notes {
        let count = |prefix: &str| n.nodes.keys().filter(|node| is_numbered(node, prefix)).count().to_string();
        let api = n.api.as_deref().unwrap_or("-");
        rows.rows
            .push([&n.fabric, &*n.pid.to_string(), &since(n), &count("tor"), &count("h"), &n.mechanism, api].map(str::to_owned).to_vec());
    }
    rows
}

/// Whether a node's name is this prefix and a number: `tor3`, `h3-1`.
fn is_numbered(node: &str, prefix: &str) -> bool {
    node.strip_prefix(prefix).is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()))
}
