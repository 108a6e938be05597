//! Flows as comma-separated values, whose first line names the columns.
//!
//! ```text
//! src,dst,bytes,start,coflow
//! h0-0,h4-1,20MB,0.5,shuffle
//! 3,17,1000000,5ms,shuffle-2
//! r1,r4,1000000,0,
//! ```
//!
//! Columns come in any order; `start` and `coflow` may be left out. Ends are hosts by name or by
//! number (counted rack by rack, from 0), or racks by name, whose flows go to their hosts in turn.
//! A start is in seconds unless it has a unit, or its column has (`start_ns`). Semicolons or tabs
//! may be there instead of commas. A cell between quotes may have them inside.

use std::collections::BTreeMap;

use super::coflow_benchmark::{LocalFlows, PortMapping, does_not_fit};
use super::htsim::CoflowGrouping;
use super::{Folded, Taken, TraceError, Workload, lines};
use crate::coflows::{CoflowSpec, FlowSpec};
use crate::ids::{CoflowId, HostId, RackId};
use crate::text;
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};

/// Names of columns, in lower case: what they hold, by the place in [`Columns`].
const NAMES: [&[&str]; 5] = [
    &["src", "source", "from", "sender"],
    &["dst", "dest", "destination", "to", "receiver"],
    &["bytes", "size", "size_bytes"],
    &["start", "time", "arrival", "start_time"],
    &["coflow", "coflow_id", "job"],
];
/// Endings of the column of starts, and their nanoseconds.
const UNITS: [(&str, f64); 4] = [("_ns", 1.0), ("_us", 1e3), ("_ms", 1e6), ("_s", 1e9)];
/// The latest start, in nanoseconds (about thirty years).
const MAX_START: f64 = 1e18;

/// Where the columns of a file are.
#[derive(Clone, Debug, Default, PartialEq)]
struct Columns {
    /// Between two cells.
    between: char,
    /// Number of cells in each line.
    count: usize,
    /// By [`NAMES`].
    at: [Option<usize>; NAMES.len()],
    /// Nanoseconds of a start without a unit.
    unit: f64,
    /// Names of columns that are not read.
    others: Vec<String>,
}

/// One end of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FlowEnd {
    /// A host by its number.
    Number(u64),
    /// A host or a rack by its name.
    Name(String),
}

/// One line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CsvRow {
    line: usize,
    /// Source and destination, with their columns in the line.
    ends: [(FlowEnd, usize); 2],
    bytes: Bytes,
    start: Time,
    /// Its coflow; empty if it has none.
    coflow: String,
}

/// Flows of a file, not yet over a network.
#[derive(Clone, Debug, PartialEq)]
pub struct CsvFlows {
    rows: Vec<CsvRow>,
    others: Vec<String>,
}

/// What may be between two cells.
const BETWEEN: [char; 3] = [',', ';', '\t'];

/// The cells of a line without what is around them, each with its column in characters; the column
/// of a quote that is not closed, or not followed by the end of its cell.
fn cells(line: &str, between: char) -> Result<Vec<(usize, String)>, usize> {
    let mut chars = line.chars().zip(1..).peekable();
    let mut all = vec![];
    loop {
        while chars.next_if(|(c, _)| c.is_whitespace() && *c != between).is_some() {}
        let at = chars.peek().map_or(line.chars().count() + 1, |c| c.1);
        let mut cell = String::new();
        if chars.next_if(|c| c.0 == '"').is_some() {
            loop {
                match chars.next().ok_or(at)?.0 {
                    '"' if chars.next_if(|c| c.0 == '"').is_none() => break,
                    c => cell.push(c),
                }
            }
            while chars.next_if(|(c, _)| c.is_whitespace() && *c != between).is_some() {}
            if chars.peek().is_some_and(|c| c.0 != between) {
                return Err(at);
            }
        }
        while let Some((c, _)) = chars.next_if(|c| c.0 != between) {
            cell.push(c);
        }
        all.push((at, cell.trim().to_owned()));
        if chars.next().is_none() {
            return Ok(all);
        }
    }
}

impl Columns {
    /// By a file's first line; `None` if it does not name those that must be there.
    fn of(header: &str) -> Option<Self> {
        let by = |between| cells(header, between).ok().map(|cells| Self::named(between, cells));
        BETWEEN.into_iter().filter_map(by).find(|it| it.at[..3].iter().all(Option::is_some))
    }

    fn named(between: char, cells: Vec<(usize, String)>) -> Self {
        let mut it = Self { between, count: cells.len(), unit: 1e9, ..Self::default() };
        for (k, (_, cell)) in cells.into_iter().enumerate() {
            let name = cell.to_lowercase();
            let unit = UNITS
                .iter()
                .find(|u| name.ends_with(u.0) && NAMES[3].contains(&name.trim_end_matches(u.0)));
            let name = unit.map_or(name.as_str(), |u| name.trim_end_matches(u.0));
            match NAMES.iter().position(|names| names.contains(&name)) {
                Some(column) if it.at[column].is_none() => {
                    it.at[column] = Some(k);
                    it.unit = unit.map_or(it.unit, |u| u.1);
                }
                _ => it.others.push(cell),
            }
        }
        it
    }
}

/// What speaks against this format, by a text's first line.
///
/// # Errors
/// In words.
pub fn fits(text: &str) -> Result<(), String> {
    let columns = Columns::of(lines(text).next().map_or("", |l| l.1));
    columns.map(|_| ()).ok_or_else(|| {
        "its first line names columns: src, dst, bytes, and if wanted start, coflow".into()
    })
}

/// Reads a file. O(length of the text).
///
/// # Errors
/// The first fault, with line and column, and what is allowed there.
pub fn parse(text: &str) -> Result<CsvFlows, TraceError> {
    let mut lines = lines(text);
    let (head, header) = lines.next().unwrap_or((1, ""));
    let columns = Columns::of(header).ok_or_else(|| TraceError {
        line: head,
        column: 1,
        why: fits(header).err().unwrap_or_default(),
    })?;
    let rows = lines.map(|(n, line)| row(n, line, &columns)).collect::<Result<_, _>>()?;
    Ok(CsvFlows { rows, others: columns.others })
}

fn row(line: usize, text: &str, columns: &Columns) -> Result<CsvRow, TraceError> {
    let wrong = |column, why| TraceError { line, column, why };
    let cells = cells(text, columns.between).map_err(|column| {
        wrong(column, "a cell that begins with a quote must end with one".into())
    })?;
    if cells.len() != columns.count {
        let (column, n) = (cells.last().map_or(1, |c| c.0), cells.len());
        let why = format!(
            "cells: {n} here, {} in the first line; allowed: as many, and quotes around a cell with `{}` inside",
            columns.count,
            columns.between.escape_default()
        );
        return Err(wrong(column, why));
    }
    let fault = |(column, found): (usize, &str), what: &str| {
        let found = if found.is_empty() {
            "nothing".to_owned()
        } else {
            format!("`{}`", text::told(found))
        };
        wrong(column, format!("{what} must be here, but found {found}"))
    };
    let cell = |k: usize| columns.at[k].map(|at| (cells[at].0, cells[at].1.as_str()));
    let needed = |k: usize, what: &str| {
        cell(k).filter(|c| !c.1.is_empty()).ok_or_else(|| fault(cell(k).unwrap_or((1, "")), what))
    };
    let place = |k: usize| -> Result<(FlowEnd, usize), TraceError> {
        let (at, text) = needed(k, "a host by name or number, or a rack by name")?;
        Ok((text.parse().map_or_else(|_| FlowEnd::Name(text.into()), FlowEnd::Number), at))
    };
    let size = needed(2, "bytes, such as 1000000 or 20MB")?;
    let bytes = size.1.parse::<u64>().map(Bytes).or_else(|_| size.1.parse::<Bytes>());
    let bytes = bytes.map_err(|_| fault(size, "bytes, such as 1000000 or 20MB"))?;
    let start = match cell(3) {
        None => Time::ZERO,
        Some(c) => {
            let plain =
                c.1.parse::<f64>()
                    .ok()
                    .map(|v| v * columns.unit)
                    .filter(|ns| (0.0..=MAX_START).contains(ns));
            let with_unit =
                || c.1.parse::<Span>().ok().map(|s| s.0 as f64).filter(|ns| *ns <= MAX_START);
            let ns = plain
                .or_else(with_unit)
                .ok_or_else(|| fault(c, "a start, such as 0.5 (seconds) or 5ms,"))?;
            Time(ns.round() as u64)
        }
    };
    let coflow = cell(4).map_or(String::new(), |c| c.1.into());
    Ok(CsvRow { line, ends: [place(0)?, place(1)?], bytes, start, coflow })
}

impl CsvFlows {
    /// The least number of hosts that the numbers in it need.
    pub fn hosts(&self) -> u64 {
        let number = |e: &(FlowEnd, usize)| {
            if let FlowEnd::Number(n) = e.0 { n.saturating_add(1) } else { 0 }
        };
        self.rows.iter().flat_map(|r| &r.ends).map(number).max().unwrap_or(0)
    }

    /// The flows over the hosts of a topology. What has no coflow of its own is grouped as htsim's
    /// flows are. Flows without bytes are left out. O(F log F).
    ///
    /// # Errors
    /// Ends that the topology has not, unless numbers are folded; flows of one coflow that start at
    /// different times.
    pub fn to_workload(
        &self,
        name: &str,
        topology: &Topology,
        mapping: &PortMapping,
    ) -> Result<Workload, TraceError> {
        let hosts = topology.hosts.len() as u64;
        let mut taken = Taken::default();
        let needed = self.hosts();
        if needed > hosts {
            let over = |r: &&CsvRow| {
                r.ends.iter().any(|e| matches!(e.0, FlowEnd::Number(n) if n >= hosts))
            };
            let line = self.rows.iter().find(over).map_or(0, |r| r.line);
            if !mapping.fold || hosts == 0 {
                return Err(TraceError {
                    line,
                    column: 1,
                    ..does_not_fit("a host of this flow", (needed, "hosts"), topology)
                });
            }
        }
        let mut turns = BTreeMap::new();
        let mut by_folding = 0;
        let mut coflows: BTreeMap<usize, (Time, String, Vec<FlowSpec>)> = BTreeMap::new();
        let mut known: BTreeMap<(String, Time), usize> = BTreeMap::new();
        let (mut empty, mut inside) = (0, 0);
        for (k, r) in self.rows.iter().enumerate() {
            let mut host = |(end, column): &(FlowEnd, usize)| match end {
                FlowEnd::Number(n) => Ok(HostId((n % hosts) as u32)),
                FlowEnd::Name(name) => {
                    named(name, topology, &mut turns).ok_or_else(|| TraceError {
                        line: r.line,
                        column: *column,
                        why: format!(
                            "{} has no host or rack `{}`; allowed: h0-0, r0 or a number",
                            topology.name,
                            text::told(name)
                        ),
                    })
                }
            };
            let (from, to) = (host(&r.ends[0])?, host(&r.ends[1])?);
            by_folding += u64::from(from == to && r.ends[0].0 != r.ends[1].0);
            if r.bytes == Bytes::ZERO {
                empty += 1;
                continue;
            }
            if from == to && mapping.local == LocalFlows::Drop {
                inside += 1;
                continue;
            }
            let key = match (r.coflow.is_empty(), mapping.group) {
                (false, _) => (r.coflow.clone(), Time::ZERO),
                (true, CoflowGrouping::Flow) => (format!("flow-{k}"), Time::ZERO),
                (true, CoflowGrouping::Start) => (format!("at-{}ns", r.start.0), r.start),
            };
            let at = *known.entry(key.clone()).or_insert(k);
            let (start, _, flows) = coflows.entry(at).or_insert_with(|| (r.start, key.0, vec![]));
            if *start != r.start {
                let why = format!(
                    "flows of one coflow start together: `{}` starts at {} here, and at {} in line {}; allowed: one start, or no coflow",
                    text::told(&r.coflow),
                    r.start.since(Time::ZERO),
                    start.since(Time::ZERO),
                    self.rows[at].line
                );
                return Err(TraceError { line: r.line, column: 1, why });
            }
            flows.push(FlowSpec { from, to, bytes: r.bytes });
        }
        if needed > hosts {
            taken.folded = Some(Folded {
                what: "hosts".into(),
                ends: needed,
                hosts,
                local: (by_folding, self.rows.len() as u64),
            });
        }
        taken.leave_out(empty, "flows without bytes");
        taken.leave_out(inside, "flows within a host (--local drop)");
        taken.leave_out(self.others.len() as u64, &format!("columns ({})", self.others.join(", ")));
        let spec = |(arrival, name, flows): (Time, String, Vec<FlowSpec>)| {
            CoflowSpec::new(CoflowId(0), name, arrival, flows)
        };
        Ok(Workload { taken, ..Workload::new(name, coflows.into_values().map(spec).collect()) })
    }
}

/// A host by its name, or the next one of a rack.
fn named(name: &str, topology: &Topology, turns: &mut BTreeMap<RackId, usize>) -> Option<HostId> {
    if let Some(host) = topology.host_by_name(name) {
        return Some(host);
    }
    let rack = name
        .strip_prefix('r')?
        .parse()
        .ok()
        .filter(|&r: &u32| (r as usize) < topology.rack_count())?;
    let hosts = topology.hosts_of(RackId(rack));
    let turn = turns.entry(RackId(rack)).or_default();
    let host = hosts.get(*turn % hosts.len().max(1)).map(|h| h.id);
    *turn += 1;
    host
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;
    use proptest::prelude::*;

    const FILE: &str = "bytes, dst ,src,proto,start_ms,coflow\n20MB,h1-1,h0-0,tcp,500,shuffle\n5,3,0,udp,500,shuffle\n\n7,r3,r1,,2s,\n7,r3,r1,,2s,\n";

    fn topology() -> Topology {
        Topology::uniform("t", 4, 2, BitRate::mbit(1000), BitRate::mbit(100), vec![])
    }

    fn read(text: &str) -> Result<Workload, TraceError> {
        parse(text)?.to_workload("w", &topology(), &PortMapping::default())
    }

    #[test]
    fn columns_come_in_any_order_and_ends_by_name_or_number() {
        let w = read(FILE).unwrap();
        let told: Vec<_> = w
            .coflows
            .iter()
            .map(|c| (c.name.clone(), c.arrival.0, c.flows.iter().collect::<Vec<_>>()))
            .collect();
        let flow =
            |from, to, bytes| FlowSpec { from: HostId(from), to: HostId(to), bytes: Bytes(bytes) };
        assert_eq!(
            told[0],
            ("shuffle".into(), 500_000_000, vec![flow(0, 3, 20_000_000), flow(0, 3, 5)])
        );
        assert_eq!(told[1], ("flow-2".into(), 2_000_000_000, vec![flow(2, 6, 7)]));
        assert_eq!(
            told[2],
            ("flow-3".into(), 2_000_000_000, vec![flow(3, 7, 7)]),
            "hosts of a rack in turn"
        );
        assert_eq!(w.taken.left_out[0].to_string(), "1 columns (proto) left out");
    }

    #[test]
    fn cells_may_be_quoted_and_separated_by_semicolons_or_tabs() {
        let read = |text: &str| {
            let w = read(text).unwrap();
            let of = |c: &CoflowSpec| (c.name.clone(), c.flows.iter().next().unwrap().bytes.0);
            w.coflows.iter().map(of).collect::<Vec<_>>()
        };
        let quoted = "\"src\",dst,bytes,coflow\n0, \"h1-0\" ,\"5\",\"a, \"\"b\"\"\"\n";
        assert_eq!(read(quoted), [("a, \"b\"".into(), 5)]);
        assert_eq!(read("src;dst;bytes;coflow\n0;2;5;a,b\n"), [("a,b".into(), 5)]);
        assert_eq!(read("src\tdst\tbytes\tcoflow\n0\t2\t5\ta b\n0\t2\t6\t\n").len(), 2);
    }

    #[test]
    fn faults_have_their_place() {
        let head = "src,dst,bytes,start,coflow\n";
        for (line, at, why) in [
            ("h0-0,h1-0", (2, 6), "cells: 2 here, 5 in the first line"),
            ("h0-0,h1-0,10,000,1,a", (2, 20), "cells: 6 here, 5 in the first line"),
            ("h0-0,h1-0,\"10,000\",1,a", (2, 11), "found `10,000`"),
            ("h0-0,h1-0,\"5,1,a", (2, 11), "that begins with a quote must end with one"),
            ("h0-0,h1-0,\"5\"0,1,a", (2, 11), "that begins with a quote must end with one"),
            (
                "h0-0,h1-0,,1,",
                (2, 11),
                "bytes, such as 1000000 or 20MB must be here, but found nothing",
            ),
            ("h0-0,h1-0,x,1,", (2, 11), "found `x`"),
            ("h0-0,h9-0,5,1,", (2, 6), "no host or rack `h9-0`"),
            (",h1-0,5,1,", (2, 1), "a host by name or number"),
            ("0,99,5,1,", (2, 1), "100 hosts do not fit on the 8 hosts"),
            ("0,1,5,-1,", (2, 7), "a start, such as 0.5"),
            (
                "0,1,5,,",
                (2, 7),
                "a start, such as 0.5 (seconds) or 5ms, must be here, but found nothing",
            ),
            ("0,1,5,1,a\n0,2,5,2,a", (3, 1), "`a` starts at 2s here, and at 1s in line 2"),
        ] {
            let e = read(&format!("{head}{line}\n")).unwrap_err();
            assert_eq!((e.line, e.column), at, "{line}: {}", e.why);
            assert!(e.why.contains(why), "{line}: {}", e.why);
        }
        assert!(fits("src,dst,size\n").is_ok() && fits("Source,Destination,Bytes").is_ok());
        assert!(fits("1,2,3").is_err() && fits("src dst bytes").is_err() && fits("").is_err());
        assert_eq!(read("src,dst\n0,1\n").map_err(|e| (e.line, e.column)), Err((1, 1)));
    }

    #[test]
    fn numbers_are_folded_where_it_is_asked_for() {
        let flows = parse("src,dst,bytes\n0,8,5\n1,10,5\n").unwrap();
        let w = flows
            .to_workload("w", &topology(), &PortMapping { fold: true, ..PortMapping::default() })
            .unwrap();
        assert_eq!(w.taken.folded.map(|f| (f.ends, f.hosts, f.local)), Some((11, 8, (1, 2))));
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn never_panics(s in "(src,|dst,|bytes,|start|[hr0-9]{1,3}|[-,.\n\"]){0,60}\\PC{0,20}") {
            let _ = (fits(&s), read(&s), read(&format!("src,dst,bytes,start,coflow\n{s}")));
        }
    }
}
