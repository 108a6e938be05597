//! htsim's flow files, read and written: each flow, or all flows of one instant, as a coflow.
//!
//! Two forms are in use, and the first line tells them apart.
//!
//! ```text
//! <source> <destination> <bytes> <start ns>                  # -flowfile: <https://github.com/TritonNetworking/opera-sim>
//!
//! Nodes <n>                                                  # connection matrix: <https://github.com/Broadcom/csg-htsim>
//! Connections <m>
//! <source>-><destination> [id <k>] start <ps> size <bytes> [prio <p>]
//! ```
//!
//! Headers come in any order; `Triggers 0` and `Failures 0` may be among them. Nodes are numbered
//! from zero. Triggers (flows that wait for others) and failures are refused: a coflow has a time
//! of arrival.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::coflow_benchmark::{LocalFlows, PortMapping, does_not_fit};
use super::words::Words;
use super::{Folded, Taken, TraceError, Workload, lines};
use crate::coflows::{CoflowSpec, FlowSpec};
use crate::ids::{CoflowId, HostId};
use crate::topology::Topology;
use crate::units::{Bytes, Time};

/// The most bytes of one flow: one petabyte.
const MAX_BYTES: u64 = 1_000_000_000_000_000;
/// The latest start, in nanoseconds (about thirty years).
const MAX_START: u64 = 1_000_000_000_000_000_000;
/// The greatest number of a node.
const MAX_NODE: u64 = 100_000_000;

/// One line of a flow file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtsimFlow {
    /// Sending node.
    pub from: u64,
    /// Receiving node.
    pub to: u64,
    /// Payload.
    pub bytes: Bytes,
    /// When it starts.
    pub start: Time,
}

/// Which flows make a coflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum CoflowGrouping {
    /// Every flow is one
    #[default]
    Flow,
    /// Flows that start at the same instant are one
    Start,
}

/// The headers of a connection matrix. Of the last two there may be none.
const HEADERS: [&str; 4] = ["Nodes", "Connections", "Triggers", "Failures"];

fn is_matrix(text: &str) -> bool {
    let first = lines(text).next().and_then(|l| l.1.split_ascii_whitespace().next()).unwrap_or("");
    HEADERS.contains(&first) || first.contains("->")
}

/// What speaks against this format, by a text's first line; a fault in one of its numbers does not.
///
/// # Errors
/// In words.
pub fn fits(text: &str) -> Result<(), String> {
    let words: Vec<&str> =
        lines(text).next().map_or("", |l| l.1).split_ascii_whitespace().collect();
    let numbers = words.iter().filter(|w| w.bytes().all(|b| b.is_ascii_digit())).count();
    let fits = is_matrix(text) || words.len() == 4 && numbers >= 3;
    if fits {
        Ok(())
    } else {
        Err("a flow is four whole numbers, or the headers `Nodes` and `Connections` come first"
            .into())
    }
}

/// Reads a flow file. O(length of the text).
///
/// # Errors
/// The first fault, with line and column, and what is allowed there.
pub fn parse(text: &str) -> Result<Vec<HtsimFlow>, TraceError> {
    let mut lines = lines(text).map(|(n, l)| Words::new(n, l)).peekable();
    if !is_matrix(text) {
        return lines.map(|mut w| plain(&mut w)).collect();
    }
    // In any order, each once.
    let mut found = [None; HEADERS.len()];
    while let Some(words) = lines.next_if(|w| w.clone().next().1.starts_with(char::is_uppercase)) {
        header(words, &mut found)?;
    }
    let end = Words::new(text.lines().count().max(1), "");
    let here = lines.peek().cloned().unwrap_or(end);
    let (column, word) = here.clone().next();
    let needed = |k: usize| {
        let missing = || here.wrong(column, word, &format!("`{}` and a number", HEADERS[k]));
        found[k].ok_or_else(missing)
    };
    let ((_, nodes), (line, announced)) = (needed(0)?, needed(1)?);
    let flows: Vec<HtsimFlow> =
        lines.map(|mut w| connection(&mut w, nodes)).collect::<Result<_, _>>()?;
    if flows.len() as u64 != announced {
        let why = format!(
            "the header announces {announced} connections, but the file has {}",
            flows.len()
        );
        return Err(TraceError { line, column: 1, why });
    }
    Ok(flows)
}

/// Reads a header into its place among those found: its line and its number.
fn header(
    mut words: Words,
    found: &mut [Option<(usize, u64)>; HEADERS.len()],
) -> Result<(), TraceError> {
    let (column, word) = words.next();
    let Some(k) = HEADERS.iter().position(|h| *h == word) else {
        let what =
            "`Nodes`, `Connections`, `Triggers 0`, `Failures 0`, or a connection such as 3->17";
        return Err(words.wrong(column, word, what));
    };
    if found[k].is_some() {
        return Err(words.fault(column, format!("a second `{word}`")));
    }
    let (at, _) = words.peek();
    let most = [MAX_NODE, u64::from(u32::MAX), u64::MAX, u64::MAX][k];
    let number = words.integer(&format!("the number of {}", word.to_lowercase()), 0, most)?;
    words.end()?;
    if k >= 2 && number > 0 {
        return Err(words.fault(
            at,
            format!("{} are not supported: only `{word} 0` is read", word.to_lowercase()),
        ));
    }
    found[k] = Some((words.line(), number));
    Ok(())
}

fn plain(words: &mut Words) -> Result<HtsimFlow, TraceError> {
    let from = words.integer("the source's number", 0, MAX_NODE)?;
    let to = words.integer("the destination's number", 0, MAX_NODE)?;
    let bytes = Bytes(words.integer("the bytes", 0, MAX_BYTES)?);
    let start = Time(words.integer("the start in nanoseconds", 0, MAX_START)?);
    words.end()?;
    Ok(HtsimFlow { from, to, bytes, start })
}

fn connection(words: &mut Words, nodes: u64) -> Result<HtsimFlow, TraceError> {
    let (column, word) = words.next();
    let what = "a connection such as 3->17";
    let (from, to) = word.split_once("->").ok_or_else(|| {
        let note = if matches!(word, "trigger" | "failure") {
            "triggers and failures are not supported; "
        } else {
            ""
        };
        words.wrong(column, word, &format!("{note}{what}"))
    })?;
    let last = nodes.saturating_sub(1);
    let node = |text: &str, at, which| {
        words.integer_in(at, text, &format!("the {which}'s number (0 to {last})"), 0, last)
    };
    let from = node(from, column, "source")?;
    let to_column = column + word.chars().count() - to.chars().count();
    let to = node(to, to_column, "destination")?;
    let (mut bytes, mut start) = (None, None);
    let end = loop {
        let (column, key) = words.next();
        match key {
            "" => break column,
            "id" | "prio" => drop(words.integer(&format!("the value of {key}"), 0, u64::MAX)?),
            "size" => bytes = Some(Bytes(words.integer("the size in bytes", 0, MAX_BYTES)?)),
            "start" => start = Some(picoseconds(words)?),
            _ => {
                return Err(words.wrong(
                    column,
                    key,
                    "id, start, size or prio (triggers are not supported)",
                ));
            }
        }
    };
    let missing = |key: &str| words.wrong(end, "", &format!("`{key}` and a number"));
    let (bytes, start) =
        (bytes.ok_or_else(|| missing("size"))?, start.ok_or_else(|| missing("start"))?);
    Ok(HtsimFlow { from, to, bytes, start })
}

/// A start in picoseconds, cut to nanoseconds; decimals are allowed and dropped.
fn picoseconds(words: &mut Words) -> Result<Time, TraceError> {
    let (column, word) = words.next();
    let (whole, part) = word.split_once('.').unwrap_or((word, ""));
    if !part.bytes().all(|b| b.is_ascii_digit()) {
        return Err(words.wrong(column, word, "the start in picoseconds"));
    }
    words
        .integer_in(column, whole, "the start in picoseconds", 0, u64::MAX)
        .map(|ps| Time(ps / 1000))
}

/// The flows over the hosts of a topology: node n is host n, where hosts are counted rack by rack;
/// if nodes are folded, host n mod H. Flows without bytes are left out. O(F log F).
///
/// # Errors
/// When the topology has no host, or none for a node and `mapping` folds none.
pub fn to_workload(
    name: &str,
    flows: &[HtsimFlow],
    topology: &Topology,
    mapping: &PortMapping,
) -> Result<Workload, TraceError> {
    let PortMapping { group, local, .. } = *mapping;
    let hosts = topology.hosts.len() as u64;
    if hosts == 0 {
        return Err(TraceError { line: 0, column: 0, why: "the topology has no host".into() });
    }
    let host = |n: u64| HostId((n % hosts) as u32);
    let mut taken = Taken::default();
    if let Some((k, node)) = flows
        .iter()
        .enumerate()
        .find_map(|(k, f)| Some((k, [f.from, f.to].into_iter().find(|&n| n >= hosts)?)))
    {
        let ends = flows.iter().flat_map(|f| [f.from, f.to]).max().unwrap_or(0) + 1;
        if !mapping.fold {
            return Err(does_not_fit(&format!("flow {k}: node {node}"), (ends, "nodes"), topology));
        }
        let by_it =
            flows.iter().filter(|f| f.from != f.to && host(f.from) == host(f.to)).count() as u64;
        taken.folded =
            Some(Folded { what: "nodes".into(), ends, hosts, local: (by_it, flows.len() as u64) });
    }
    let (mut empty, mut inside) = (0, 0);
    let mut coflows: BTreeMap<(Time, usize), BTreeMap<(HostId, HostId), Bytes>> = BTreeMap::new();
    for (k, f) in flows.iter().enumerate() {
        let (from, to) = (host(f.from), host(f.to));
        if f.bytes == Bytes::ZERO {
            empty += 1;
            continue;
        }
        if from == to && local == LocalFlows::Drop {
            inside += 1;
            continue;
        }
        let key = (f.start, if group == CoflowGrouping::Flow { k } else { 0 });
        let sum = coflows.entry(key).or_default().entry((from, to)).or_default();
        *sum = sum.saturating_add(f.bytes);
    }
    let spec = |((arrival, k), pairs): ((Time, usize), BTreeMap<_, _>)| {
        let flows =
            pairs.into_iter().map(|((from, to), bytes)| FlowSpec { from, to, bytes }).collect();
        let name = if group == CoflowGrouping::Flow {
            format!("flow-{k}")
        } else {
            format!("at-{}ns", arrival.0)
        };
        CoflowSpec::new(CoflowId(0), name, arrival, flows)
    };
    taken.leave_out(empty, "flows without bytes");
    taken.leave_out(inside, "flows within a host (--local drop)");
    Ok(Workload { taken, ..Workload::new(name, coflows.into_iter().map(spec).collect()) })
}

/// All flows of a workload in the first form, by arrival. Which flows belong together is lost, but
/// for their start.
pub fn write(workload: &Workload) -> String {
    let mut out = String::new();
    for c in &workload.coflows {
        for f in &c.flows {
            let _ = writeln!(out, "{} {} {} {}", f.from.0, f.to.0, f.bytes.0, c.arrival.0);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::BitRate;

    fn by_start() -> PortMapping {
        PortMapping { group: CoflowGrouping::Start, ..PortMapping::default() }
    }

    fn topology() -> Topology {
        Topology::uniform("t", 4, 2, BitRate::mbit(1000), BitRate::mbit(100), vec![])
    }

    #[test]
    fn both_forms_are_read() {
        let a = parse("0 3 1500 20\n2 1 7 3").unwrap();
        let text = "Nodes 8\nConnections 2\n0->3 id 1 start 20000 size 1500\n2->1 start 3000.5 size 7 prio 2\n";
        assert!(
            fits(text).is_ok()
                && fits("0 3 1500 20\n").is_ok()
                && fits("3 1\n1 0 1 0 1 1:1").is_err()
        );
        assert_eq!(parse(text).unwrap(), a);
        let w = to_workload("w", &a, &topology(), &PortMapping::default()).unwrap();
        let got: Vec<_> = w
            .coflows
            .iter()
            .map(|c| (c.name.as_str(), c.arrival.0, c.flows.at(0).from.0, c.flows.at(0).to.0))
            .collect();
        assert_eq!(got, [("flow-1", 3, 2, 1), ("flow-0", 20, 0, 3)]);
    }

    #[test]
    fn flows_of_one_instant_can_be_a_coflow_and_nodes_fold() {
        let flows = parse("0 9 5 10\n8 1 6 10\n1 1 7 11\n").unwrap();
        let folding = PortMapping {
            group: CoflowGrouping::Start,
            local: LocalFlows::Drop,
            fold: true,
            ..PortMapping::default()
        };
        let w = to_workload("w", &flows, &topology(), &folding).unwrap();
        assert_eq!(w.coflows.len(), 1);
        assert_eq!(
            w.coflows[0].flows.to_vec(),
            [FlowSpec { from: HostId(0), to: HostId(1), bytes: Bytes(11) }]
        );
    }

    #[test]
    fn faults_are_placed() {
        for (text, at, says) in [
            ("1 2 3", (1, 6), "the start in nanoseconds"),
            ("1 2 3 4 5", (1, 9), "end of the line"),
            ("Nodes x", (1, 7), "number of nodes"),
            ("Nodes 4\n", (1, 1), "`Connections` and a number"),
            ("Nodes 4\nConnections 2\n0->1 start 0 size 1\n", (2, 1), "announces 2"),
            (
                "Nodes 4\nConnections 1\n0->4 start 0 size 1\n",
                (3, 4),
                "destination's number (0 to 3)",
            ),
            (
                "Nodes 4\nConnections 1\n0->3 start 0 trigger 1\n",
                (3, 14),
                "triggers are not supported",
            ),
            ("Nodes 4\nConnections 1\ntrigger id 1 oneshot\n", (3, 1), "not supported"),
            ("Nodes 4\nConnections 1\n0->3 start 0\n", (3, 13), "`size` and a number"),
        ] {
            let e = parse(text).unwrap_err();
            assert_eq!((e.line, e.column), at, "{text:?}: {e}");
            assert!(e.why.contains(says), "{text:?}: {e}");
        }
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn never_panics(s in "(Nodes |Connections |[0-9]{1,2}|->|start |size |[ \n.]){0,30}\\PC{0,9}") {
            let _ = (fits(&s), parse(&s).map(|f| to_workload("w", &f, &topology(), &PortMapping::default())));
        }

        #[test]
        fn what_is_written_is_read_back(raw in prop::collection::vec((0u64..8, 0u64..8, 1u64..1 << 40, 0u64..1 << 40), 0..20)) {
            let flow = |&(from, to, b, at): &_| HtsimFlow { from, to, bytes: Bytes(b), start: Time(at) };
            let flows: Vec<HtsimFlow> = raw.iter().map(flow).collect();
            let w = to_workload("w", &flows, &topology(), &by_start()).unwrap();
            prop_assert_eq!(w.bytes().0, flows.iter().map(|f| f.bytes.0).sum::<u64>());
            let back = to_workload("w", &parse(&write(&w)).unwrap(), &topology(), &by_start()).unwrap();
            prop_assert_eq!(back, w);
        }
    }
}
