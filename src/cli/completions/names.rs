//! The names that change: running networks, their nodes, and what is shipped with this program.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};

use crate::cli::copy;
use crate::cli::running;
use crate::cli::workload::CoflowMix;
use crate::config::shipped::Shelf;

/// What an argument names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionKind {
    /// A network that runs on this machine.
    Network,
    /// A node of the network.
    Node,
    /// A host of it.
    Host,
    /// A rack of it.
    Rack,
    /// A packet switch of it.
    Switch,
    /// Two hosts, `h0-0:h3-1`.
    Pair,
    /// A circuit, `r0-r3`.
    Circuit,
    /// A port of a rack, `r0-ocs1`, or a node.
    Place,
    /// A file, or the name of a shipped one.
    File(Option<Shelf>),
    /// The name of a shipped file.
    Shipped,
}

/// What an argument of a command names; `None`: what it is called never changes.
pub fn of(command: &str, argument: &str) -> Option<CompletionKind> {
    Some(match (command.strip_prefix("heliostat ")?, argument) {
        // The name that a new network gets.
        ("run", "name") => return None,
        ("copy", "name") => CompletionKind::Shipped,
        (_, "name") => CompletionKind::Network,
        ("exec", "node") => CompletionKind::Node,
        ("capture", "place") => CompletionKind::Place,
        (_, "pairs") => CompletionKind::Pair,
        ("set circuits", "circuits") => CompletionKind::Circuit,
        ("set circuit", "from" | "to") => CompletionKind::Rack,
        ("set path", "from" | "to") => CompletionKind::Host,
        ("set path", "switches") => CompletionKind::Switch,
        (_, "topology") => CompletionKind::File(Some(Shelf::Topologies)),
        (_, "policy") => CompletionKind::File(Some(Shelf::Policies)),
        (_, "workload" | "jobs")
        | ("run", "schedule")
        | ("workload stats" | "workload convert", "file") => {
            CompletionKind::File(Some(Shelf::Workloads))
        }
        ("check", "files") => CompletionKind::File(None),
        _ => return None,
    })
}

impl ValueCompleter for CompletionKind {
    fn complete(&self, word: &OsStr) -> Vec<CompletionCandidate> {
        let text = word.to_string_lossy();
        let line = CommandLine::asked();
        let begins = |names: Vec<String>| {
            names.into_iter().filter(|n| n.starts_with(&*text)).map(CompletionCandidate::new)
        };
        let mut all: Vec<_> = match self {
            Self::Network => {
                begins(running::everywhere().into_iter().map(|n| n.fabric).collect()).collect()
            }
            Self::Pair => begins(pairs(&text, &line)).collect(),
            Self::File(shelf) => begins(shipped(*shelf)).collect(),
            Self::Shipped => {
                begins([shipped(None), vec![copy::EXTERNAL.into()]].concat()).collect()
            }
            Self::Node | Self::Host | Self::Rack | Self::Switch | Self::Circuit | Self::Place => {
                begins(self.among(&line.nodes())).collect()
            }
        };
        if matches!(self, Self::File(_)) {
            all.extend(PathCompleter::any().complete(word));
        }
        all
    }
}

impl CompletionKind {
    /// The names of this kind in a network with these nodes.
    fn among(self, nodes: &BTreeSet<String>) -> Vec<String> {
        let racks: Vec<&str> =
            nodes.iter().filter_map(|n| n.strip_prefix("tor")).filter(|n| is_number(n)).collect();
        let kept = |keep: fn(&str) -> bool| nodes.iter().filter(|n| keep(n)).cloned().collect();
        match self {
            Self::Rack => racks.iter().map(|r| format!("r{r}")).collect(),
            Self::Circuit => {
                let to = |a: &str| {
                    racks
                        .iter()
                        .filter(|&&b| b != a)
                        .map(|b| format!("r{a}-r{b}"))
                        .collect::<Vec<_>>()
                };
                racks.iter().flat_map(|a| to(a)).collect()
            }
            Self::Host => kept(is_host),
            Self::Switch => kept(|n| !is_host(n) && !is_plane(n)),
            Self::Place => {
                let ports = |r: &str| {
                    let planes = nodes.iter().filter(|n| is_plane(n)).map(String::as_str);
                    planes.chain(["eps"]).map(|p| format!("r{r}-{p}")).collect::<Vec<_>>()
                };
                racks.iter().flat_map(|r| ports(r)).chain(nodes.iter().cloned()).collect()
            }
            _ => nodes.iter().cloned().collect(),
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_host(node: &str) -> bool {
    node.strip_prefix('h')
        .and_then(|n| n.split_once('-'))
        .is_some_and(|(rack, host)| is_number(rack) && is_number(host))
}

fn is_plane(node: &str) -> bool {
    node.strip_prefix("ocs").is_some_and(is_number)
}

/// Shipped names of a kind, and the mixes that are drawn where a workload is meant.
fn shipped(shelf: Option<Shelf>) -> Vec<String> {
    let shelves = shelf.map_or(Shelf::ALL.to_vec(), |s| vec![s]);
    let mixes = CoflowMix::described()
        .into_iter()
        .map(|(name, _)| name)
        .filter(|_| shelf == Some(Shelf::Workloads));
    shelves.into_iter().flat_map(Shelf::files).map(|f| f.name.to_owned()).chain(mixes).collect()
}

/// Pairs that go on from what is written; bash gives a colon as a word of its own, and what stands
/// behind it as the next one.
fn pairs(text: &str, line: &CommandLine) -> Vec<String> {
    let hosts = CompletionKind::Host.among(&line.nodes());
    if line.before.as_deref().is_some_and(|b| b == ":" || is_host(b)) {
        return hosts;
    }
    match text.split_once(':') {
        Some((from, _)) => hosts.iter().map(|h| format!("{from}:{h}")).collect(),
        None => hosts.iter().map(|h| format!("{h}:")).collect(),
    }
}

/// The command line that a shell asks about.
#[derive(Debug, Default)]
struct CommandLine {
    /// The network that its `--name` says.
    name: Option<String>,
    /// The word before that which is completed.
    before: Option<String>,
}

impl CommandLine {
    /// That of this process: behind `--` stand the words, and the environment may say which of them
    /// is completed.
    fn asked() -> Self {
        let words: Vec<String> = std::env::args_os()
            .map(|w| w.to_string_lossy().into_owned())
            .skip_while(|w| w != "--")
            .skip(1)
            .collect();
        let at = std::env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|i| i.parse().ok());
        Self::of(&words, at.unwrap_or(words.len().saturating_sub(1)))
    }

    fn of(words: &[String], at: usize) -> Self {
        let after = |(i, word): (usize, &String)| match word.strip_prefix("--name")? {
            // Bash makes three words of `--name=x`.
            "" if words.get(i + 1).is_some_and(|w| w == "=") => words.get(i + 2).cloned(),
            "" => words.get(i + 1).cloned(),
            given => given.strip_prefix('=').map(str::to_owned),
        };
        let before = at.checked_sub(1).and_then(|i| words.get(i)).cloned();
        Self { name: words.iter().enumerate().find_map(after), before }
    }

    /// The nodes of the network that is meant, or of all that may be.
    fn nodes(&self) -> BTreeSet<String> {
        let meant = running::everywhere()
            .into_iter()
            .filter(|n| self.name.as_ref().is_none_or(|w| *w == n.fabric));
        meant.flat_map(|n| n.nodes.into_keys()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nodes_of_a_network_give_hosts_racks_ports_and_circuits() {
        let nodes = ["eps", "h0-0", "h0-1", "h1-0", "ocs0", "tor0", "tor1", "agg0"]
            .map(str::to_owned)
            .into();
        let among = |kind: CompletionKind| kind.among(&nodes).join(" ");
        assert_eq!(among(CompletionKind::Node), "agg0 eps h0-0 h0-1 h1-0 ocs0 tor0 tor1");
        assert_eq!(among(CompletionKind::Host), "h0-0 h0-1 h1-0");
        assert_eq!(among(CompletionKind::Rack), "r0 r1");
        assert_eq!(among(CompletionKind::Circuit), "r0-r1 r1-r0");
        assert_eq!(among(CompletionKind::Switch), "agg0 eps tor0 tor1");
        assert!(among(CompletionKind::Place).starts_with("r0-ocs0 r0-eps r1-ocs0 r1-eps agg0 eps"));
    }

    #[test]
    fn the_line_says_the_network_and_what_stands_before() {
        let of = |text: &str| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            let line = CommandLine::of(&words, words.len() - 1);
            (line.name.unwrap_or_default(), line.before.unwrap_or_default())
        };
        assert_eq!(of("heliostat exec --name a h"), ("a".into(), "a".into()));
        assert_eq!(of("heliostat exec --name=a h"), ("a".into(), "--name=a".into()));
        assert_eq!(of("heliostat exec --name = a h"), ("a".into(), "a".into()));
        assert_eq!(of("heliostat traffic bulk h0-0 : h"), (String::new(), ":".into()));
        assert_eq!(of("heliostat --names"), (String::new(), "heliostat".into()));
    }
}
