//! The traces of Sincronia's workload generator: coflows whose flows have sizes of their own.
//!
//! ```text
//! <ports> <coflows>
//! <id> <arrival ms> <flows> <sources> <destinations> {<source> <destination> <megabytes>} a flow
//! ```
//!
//! MB = 10^6 bytes; what is below a byte or a nanosecond is cut off. Source: the README of
//! <https://github.com/sincronia-coflow/workload-generator>.

use std::collections::{BTreeMap, BTreeSet};

use super::coflow_benchmark::{
    LocalFlows, MAX_ARRIVAL_MS, MAX_BYTES, PortMapping, Sizes, Trace, TraceCoflow, does_not_fit,
    has_own_host, host_of,
};
use super::words::Words;
use super::{Folded, Taken, TraceError, Workload, lines};
use crate::coflows::{CoflowSpec, FlowSpec};
use crate::ids::CoflowId;
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};

/// A coflow of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SincroniaCoflow {
    /// Its number, as in the file.
    pub id: u64,
    /// From the beginning of the trace.
    pub arrival: Span,
    /// Source, destination and size of each flow.
    pub flows: Vec<(u64, u64, Bytes)>,
}

/// A trace as the file has it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SincroniaTrace {
    /// Number of ports, which are numbered from zero.
    pub ports: u64,
    /// The coflows, in the order of the file.
    pub coflows: Vec<SincroniaCoflow>,
}

/// What speaks against this format, by a text's first two lines.
///
/// # Errors
/// In words.
pub fn fits(text: &str) -> Result<(), String> {
    let mut lines = lines(text).map(|l| l.1.split_ascii_whitespace().collect::<Vec<_>>());
    let (head, first) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let number = |w: &&str| w.bytes().all(|b| b.is_ascii_digit());
    match head.len() == 2 && head.iter().any(number) && first.len() >= 8 && !first.iter().any(|w| w.contains(':')) {
        true => Ok(()),
        false => Err("its first line is `<ports> <coflows>`, its second a coflow of five numbers and three a flow".into()),
    }
}

/// Reads a trace. O(length of the text).
///
/// # Errors
/// The first fault, with line and column, and what is allowed there.
pub fn parse(text: &str) -> Result<SincroniaTrace, TraceError> {
    let mut lines = lines(text);
    let (n, head) = lines.next().unwrap_or((1, ""));
    let mut head = Words::new(n, head);
    let ports = head.integer("the number of ports", 1, u64::from(u32::MAX))?;
    let announced = head.integer("the number of coflows", 0, u64::from(u32::MAX))?;
    head.end()?;
    let coflows = lines
        .map(|(n, line)| coflow(&mut Words::new(n, line), ports))
        .collect::<Result<Vec<_>, _>>()?;
    if coflows.len() as u64 != announced {
        return Err(head.fault(
            1,
            format!("{announced} coflows are announced, and the file has {}", coflows.len()),
        ));
    }
    Ok(SincroniaTrace { ports, coflows })
}

fn coflow(words: &mut Words, ports: u64) -> Result<SincroniaCoflow, TraceError> {
    let id = words.integer("a coflow's number", 0, u64::MAX)?;
    let arrival = Span(decimal(words, "the arrival in milliseconds", MAX_ARRIVAL_MS)?);
    let (column, _) = words.peek();
    let most = u64::from(u32::MAX);
    let announced = words.integer("the number of flows", 1, most)?;
    let sources = words.integer("the number of sources", 1, most)?;
    let destinations = words.integer("the number of destinations", 1, most)?;
    let mut flows = vec![];
    for _ in 0..announced {
        let from = words.integer("a flow's source", 0, ports - 1)?;
        let to = words.integer("a flow's destination", 0, ports - 1)?;
        flows.push((from, to, Bytes(decimal(words, "a flow's megabytes", MAX_BYTES / 1_000_000)?)));
    }
    words.end()?;
    let count = |ports: BTreeSet<u64>| ports.len() as u64;
    let found =
        [count(flows.iter().map(|f| f.0).collect()), count(flows.iter().map(|f| f.1).collect())];
    if found != [sources, destinations] {
        let why = format!(
            "{sources} sources and {destinations} destinations are announced, and its flows have {} and {}",
            found[0], found[1]
        );
        return Err(words.fault(column, why));
    }
    Ok(SincroniaCoflow { id, arrival, flows })
}

/// A decimal number in millionths, further digits cut off.
fn decimal(words: &mut Words, what: &str, most: u64) -> Result<u64, TraceError> {
    let (column, word) = words.next();
    let (whole, part) = word.split_once('.').unwrap_or((word, "0"));
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let value = || {
        let millionths: u64 = format!("{:0<6}", &part[..part.len().min(6)]).parse().ok()?;
        whole
            .parse::<u64>()
            .ok()
            .filter(|w| *w <= most)?
            .checked_mul(1_000_000)?
            .checked_add(millionths)
    };
    let value = if digits(whole) && digits(part) { value() } else { None };
    value.ok_or_else(|| words.wrong(column, word, &format!("{what} (0 to {most})")))
}

impl SincroniaTrace {
    /// The trace over the hosts of a topology, whose ports become hosts as those of the
    /// coflow-benchmark do. O(F log F).
    ///
    /// # Errors
    /// When a rack that is needed has no host, a port has no host of its own and `mapping` folds
    /// none, or there are more flows than `mapping` allows.
    pub fn to_workload(
        &self,
        name: &str,
        topology: &Topology,
        mapping: &PortMapping,
    ) -> Result<Workload, TraceError> {
        let fault = |why: String| TraceError { line: 0, column: 0, why };
        let chosen = &self.coflows[..mapping.first.unwrap_or(usize::MAX).min(self.coflows.len())];
        let flows: u64 = chosen.iter().map(|c| c.flows.len() as u64).sum();
        if let Some(most) = mapping.most.filter(|&most| flows > most) {
            return Err(fault(format!(
                "{flows} flows in all; there is memory for {most}; take fewer coflows"
            )));
        }
        let mut taken = Taken::default();
        let far = |c: &SincroniaCoflow| {
            c.flows.iter().flat_map(|f| [f.0, f.1]).find(|&p| !has_own_host(p, topology))
        };
        if let Some((id, port)) = chosen.iter().find_map(|c| Some((c.id, far(c)?))) {
            if !mapping.fold && !topology.hosts.is_empty() {
                return Err(does_not_fit(
                    &format!("coflow {id}: port {port}"),
                    (self.ports, "ports"),
                    topology,
                ));
            }
            let by_it = |f: &&(u64, u64, Bytes)| {
                f.0 != f.1 && host_of(f.0, topology) == host_of(f.1, topology)
            };
            let local = chosen.iter().map(|c| c.flows.iter().filter(by_it).count() as u64).sum();
            let hosts = topology.hosts.len() as u64;
            taken.folded = Some(Folded {
                what: "ports".into(),
                ends: self.ports,
                hosts,
                local: (local, flows),
            });
        }
        let (mut empty, mut inside) = (0, 0);
        let mut coflows = vec![];
        for c in chosen {
            let lacks = || fault(format!("coflow {} has a port in a rack without hosts", c.id));
            let mut pairs: BTreeMap<_, Bytes> = BTreeMap::new();
            for &(from, to, bytes) in &c.flows {
                let pair = (
                    host_of(from, topology).ok_or_else(lacks)?,
                    host_of(to, topology).ok_or_else(lacks)?,
                );
                let bytes = mapping.sizes.of_flow(bytes);
                if bytes == Bytes::ZERO {
                    empty += 1;
                } else if pair.0 == pair.1 && mapping.local == LocalFlows::Drop {
                    inside += 1;
                } else {
                    let sum = pairs.entry(pair).or_default();
                    *sum = sum.saturating_add(bytes);
                }
            }
            let flows: Vec<FlowSpec> =
                pairs.into_iter().map(|((from, to), bytes)| FlowSpec { from, to, bytes }).collect();
            coflows.push(CoflowSpec::new(
                CoflowId(0),
                c.id.to_string(),
                Time::ZERO + c.arrival,
                flows,
            ));
        }
        taken.leave_out(empty, "flows without bytes");
        taken.leave_out(inside, "flows within a host (--local drop)");
        Ok(Workload { taken, ..Workload::new(name, coflows) })
    }

    /// What each destination receives of all sources together, which is what a shuffle of a job is
    /// made of.
    pub fn sums(&self) -> Trace {
        let coflow = |c: &SincroniaCoflow| {
            let mut reducers: BTreeMap<u64, Bytes> = BTreeMap::new();
            for f in &c.flows {
                let sum = reducers.entry(f.1).or_default();
                *sum = sum.saturating_add(f.2);
            }
            let mappers: BTreeSet<u64> = c.flows.iter().map(|f| f.0).collect();
            let arrival_ms = c.arrival.0 / Span::millis(1).0;
            TraceCoflow {
                id: c.id,
                arrival_ms,
                mappers: mappers.into_iter().collect(),
                reducers: reducers.into_iter().collect(),
            }
        };
        Trace { ports: self.ports, coflows: self.coflows.iter().map(coflow).collect() }
    }
}

impl Sizes {
    /// A flow of this many bytes, as this counts it.
    fn of_flow(self, bytes: Bytes) -> Bytes {
        self.part(bytes, 0, 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::BitRate;

    const TRACE: &str = "4 2\n0 35 2 1 2 0 2 5.0 0 3 2.5\n7 40.5 1 1 1 3 1 1\n";

    #[test]
    fn flows_keep_their_sizes() {
        assert_eq!(fits(TRACE), Ok(()));
        let t = Topology::uniform("t", 4, 1, BitRate::mbit(1000), BitRate::mbit(100), vec![]);
        let w = parse(TRACE).unwrap().to_workload("w", &t, &PortMapping::default()).unwrap();
        let flows: Vec<_> =
            w.coflows[0].flows.iter().map(|f| (f.from.0, f.to.0, f.bytes.0)).collect();
        assert_eq!(flows, [(0, 2, 5_000_000), (0, 3, 2_500_000)]);
        assert_eq!((w.coflows[1].name.as_str(), w.coflows[1].arrival), ("7", Time(40_500_000)));
        assert_eq!(
            parse(TRACE).unwrap().sums().coflows[0].reducers,
            [(2, Bytes(5_000_000)), (3, Bytes(2_500_000))]
        );
        assert!(fits("4 1\n1 0 1 0 1 2:1.0\n").is_err());
    }

    #[test]
    fn ports_without_a_host_of_their_own_are_folded_only_where_that_is_asked_for() {
        let t = Topology::uniform("t", 2, 1, BitRate::mbit(1000), BitRate::mbit(100), vec![]);
        let read = |fold| {
            parse(TRACE).unwrap().to_workload(
                "w",
                &t,
                &PortMapping { fold, ..PortMapping::default() },
            )
        };
        let e = read(false).unwrap_err();
        assert!(
            e.why.contains("coflow 0: port 2 has no host: 4 ports do not fit on the 2 hosts of t"),
            "{e}"
        );
        let folded = read(true).unwrap().taken.folded.unwrap();
        assert_eq!((folded.ends, folded.hosts, folded.local), (4, 2, (2, 3)));
    }

    #[test]
    fn faults_have_a_place() {
        for (text, at, says) in [
            ("4 1\n0 35 2 1 2 0 2 5.0 0 4 2.5\n", (2, 22), "a flow's destination (0 to 3)"),
            ("4 1\n0 35 2 1 2 0 2 5.0 0 3\n", (2, 23), "a flow's megabytes"),
            (
                "4 1\n0 35 2 2 2 0 2 5.0 0 3 1\n",
                (2, 6),
                "2 sources and 2 destinations are announced, and its flows have 1 and 2",
            ),
            (
                "# by hand\n\n4 3\n0 35 1 1 1 0 2 5.0\n",
                (3, 1),
                "3 coflows are announced, and the file has 1",
            ),
        ] {
            let e = parse(text).unwrap_err();
            assert!((e.line, e.column) == at && e.why.contains(says), "{text:?}: {e}");
        }
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn never_panics(s in "([0-9]{1,3}[ .\n]){0,60}\\PC{0,20}") {
            let _ = (fits(&s), parse(&s).map(|t| t.sums()));
        }
    }
}
