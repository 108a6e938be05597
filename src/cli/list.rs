//! `heliostat list`: the shipped topologies, policies and workloads.

use super::tables::TextTable;
use super::workload::CoflowMix;
use super::{CliError, OutputFormat, print};
use crate::config::shipped::Shelf;

/// Lists the topologies, policies and workloads that can be given by name
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Only these
    #[arg(value_enum)]
    kind: Option<ShippedKind>,
    /// What is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

/// What is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ShippedKind {
    /// Networks
    Topologies,
    /// How circuits are decided and tasks are placed
    Policies,
    /// Coflows, jobs, and mixes that are drawn from a seed
    Workloads,
}

impl ShippedKind {
    const fn shelf(self) -> Shelf {
        match self {
            Self::Topologies => Shelf::Topologies,
            Self::Policies => Shelf::Policies,
            Self::Workloads => Shelf::Workloads,
        }
    }
}

/// Runs the subcommand.
///
/// # Errors
/// When stdout cannot be written.
pub fn run(args: &Args) -> Result<(), CliError> {
    let shelves = args.kind.map_or(Shelf::ALL.to_vec(), |k| vec![k.shelf()]);
    print(&listed(&shelves, args.output))
}

fn listed(shelves: &[Shelf], output: OutputFormat) -> String {
    let all = shelves.iter().map(|&shelf| (shelf, entries(shelf)));
    match output {
        OutputFormat::Table => {
            all.map(|(shelf, list)| plain(shelf, &list)).collect::<Vec<_>>().join("\n")
        }
        OutputFormat::Csv | OutputFormat::Json => {
            let mut rows = TextTable::new(&["kind", "name", "about"]);
            rows.rows = all
                .flat_map(|(shelf, list)| {
                    list.into_iter().map(move |(n, a)| vec![shelf.one().into(), n, a])
                })
                .collect();
            if output == OutputFormat::Csv { rows.csv() } else { rows.json() }
        }
    }
}

/// Names with what they are; of workloads, also the mixes, which are drawn.
fn entries(shelf: Shelf) -> Vec<(String, String)> {
    let files = shelf.files().map(|f| (f.name.to_owned(), f.about()));
    let mixes = CoflowMix::described().into_iter().filter(|_| shelf == Shelf::Workloads);
    files
        .chain(mixes.map(|(name, about)| (name, format!("Drawn from the seed. {about}"))))
        .collect()
}

/// One line each, as long as it is: no terminal is asked how wide it is, so that `grep` finds whole
/// lines.
fn plain(shelf: Shelf, list: &[(String, String)]) -> String {
    let width = list.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: String =
        list.iter().map(|(name, about)| format!("  {name:width$}  {about}\n")).collect();
    format!("{}\n{lines}", shelf.many())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_line() {
        let all = listed(&Shelf::ALL, OutputFormat::Table);
        for line in ["topologies\n  bcube-64 ", "\n  hybrid-8x2 ", "\n  varys ", "\n  facebook "] {
            assert!(all.contains(line), "{line:?} in {all}");
        }
        assert!(
            all.contains(" The demo's network: 8 racks of 2 hosts")
                && all.contains(" Drawn from the seed. Coflows: the four")
        );
        let csv = listed(&[Shelf::Policies], OutputFormat::Csv);
        assert!(!csv.contains("topology") && csv.contains("policy,varys,"));
        let json: serde_json::Value =
            serde_json::from_str(&listed(&[Shelf::Workloads], OutputFormat::Json)).unwrap();
        assert!(
            json.as_array()
                .unwrap()
                .iter()
                .any(|w| w["name"] == "shuffle-8" && w["kind"] == "workload")
        );
    }
}
