//! The coflow-benchmark's trace format, read and written.
//!
//! ```text
//! <ports> <coflows>
//! <id> <arrival ms> <mappers> <port>... <reducers> <port>:<megabytes>...
//! ```
//!
//! MB = 10^6 bytes. A reducer's megabytes come in equal parts from its coflow's mappers. Source:
//! the README of <https://github.com/coflow/coflow-benchmark>.

use std::fmt::Write as _;

use super::htsim::CoflowGrouping;
use super::words::Words;
use super::{Folded, Taken, TraceError, Workload, lines};
use crate::coflows::{CoflowSpec, FlowSpec};
use crate::ids::{CoflowId, HostId, RackId};
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};

/// A megabyte of this format.
pub const MB: u64 = 1_000_000;
/// The most bytes of one reducer: one petabyte.
pub(super) const MAX_BYTES: u64 = 1_000_000_000_000_000;
/// The latest arrival, in milliseconds (about thirty years).
pub(super) const MAX_ARRIVAL_MS: u64 = 1_000_000_000_000;

/// A trace as the file has it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Trace {
    /// Number of ports, P; ports are numbered from zero.
    pub ports: u64,
    /// The coflows, in the order of the file.
    pub coflows: Vec<TraceCoflow>,
}

/// One line of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceCoflow {
    /// Its number, as in the file.
    pub id: u64,
    /// Milliseconds from the beginning.
    pub arrival_ms: u64,
    /// The sending ports.
    pub mappers: Vec<u64>,
    /// The receiving ports, and the bytes that each receives from all mappers together.
    pub reducers: Vec<(u64, Bytes)>,
}

/// How a reducer's bytes become flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Sizes {
    /// Each mapper sends `min(ceil(bytes / mappers), what remains)`: the flows sum up to the
    /// reducer's bytes.
    #[default]
    Exact,
    /// Whole megabytes a flow, rounded up, one at least, as other simulators count.
    CeilMb,
}

impl Sizes {
    /// What the `k`th of `n` mappers sends of a reducer's bytes.
    pub(super) fn part(self, bytes: Bytes, k: u64, n: u64) -> Bytes {
        match self {
            Self::Exact => {
                let each = bytes.0.div_ceil(n);
                Bytes(each.min(bytes.0.saturating_sub(each.saturating_mul(k))))
            }
            Self::CeilMb => Bytes(bytes.0.div_ceil(MB).div_ceil(n).max(1) * MB),
        }
    }
}

/// What happens to flows whose two ports fall on one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum LocalFlows {
    /// They stay in the coflow and take no time.
    #[default]
    Free,
    /// They are left out.
    Drop,
    /// They cross their host's interface, out and in; simulations only
    Ports,
}

/// How the ports of a trace become hosts: port p is host (p / R) mod H of rack p mod R, where H is
/// that rack's number of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PortMapping {
    /// How flows get their sizes.
    pub sizes: Sizes,
    /// What happens to flows within a host.
    pub local: LocalFlows,
    /// Only the first coflows of the file.
    pub first: Option<usize>,
    /// Whether ends that the network has not fall on hosts that it has; else they are an error.
    pub fold: bool,
    /// Which flows of an htsim file make a coflow.
    pub group: CoflowGrouping,
    /// The most flows for which there is memory, if that is known.
    pub most: Option<u64>,
}

/// What speaks against this format, by a text's first two lines: of a trace with a fault in one of
/// them the other is enough.
///
/// # Errors
/// In words.
pub fn fits(text: &str) -> Result<(), String> {
    let mut lines = lines(text).map(|l| l.1.split_ascii_whitespace().collect::<Vec<_>>());
    let (head, first) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let number = |w: &&str| w.bytes().all(|b| b.is_ascii_digit());
    let numbers = head.iter().take(2).filter(|w| number(w)).count();
    // Where a key and its value are, it is YAML.
    let is_head =
        !head.iter().any(|w| w.contains(':')) && (numbers == 2 || head.len() == 2 && numbers == 1);
    let is_coflow = first.len() >= 5
        && first.last().is_some_and(|w| w.contains(':'))
        && first.iter().filter(|w| number(w)).count() >= 4;
    if is_head || is_coflow {
        Ok(())
    } else {
        Err("its first line is `<ports> <coflows>`, two whole numbers".into())
    }
}

/// Reads a trace. O(length of the text).
///
/// # Errors
/// The first fault, with line and column, and what is allowed there.
pub fn parse(text: &str) -> Result<Trace, TraceError> {
    let mut lines = lines(text);
    let (first, head) = lines.next().unwrap_or((1, ""));
    let mut head = Words::new(first, head);
    let ports = head.integer("the number of ports", 1, u64::from(u32::MAX))?;
    let announced = head.integer("the number of coflows", 0, u64::from(u32::MAX))?;
    head.end()?;
    let mut trace = Trace { ports, coflows: Vec::new() };
    let mut last = first;
    for (n, line) in lines {
        last = n;
        let mut words = Words::new(n, line);
        if trace.coflows.len() as u64 == announced {
            return Err(words.fault(
                1,
                format!("the first line announces {announced} coflows, and here is one more"),
            ));
        }
        trace.coflows.push(coflow(&mut words, ports)?);
    }
    if (trace.coflows.len() as u64) < announced {
        let why = format!(
            "the first line announces {announced} coflows, but the file has {}",
            trace.coflows.len()
        );
        return Err(Words::new(last, "").fault(1, why));
    }
    Ok(trace)
}

fn coflow(words: &mut Words, ports: u64) -> Result<TraceCoflow, TraceError> {
    let id = words.integer("a coflow's number", 0, u64::MAX)?;
    let arrival_ms = words.integer("the arrival in milliseconds", 0, MAX_ARRIVAL_MS)?;
    let mut mappers = Vec::new();
    for _ in 0..words.integer("the number of mappers", 1, u64::from(u32::MAX))? {
        mappers.push(words.integer("a mapper's port", 0, ports - 1)?);
    }
    let mut reducers = Vec::new();
    for _ in 0..words.integer("the number of reducers", 1, u64::from(u32::MAX))? {
        reducers.push(reducer(words, ports)?);
    }
    words.end()?;
    Ok(TraceCoflow { id, arrival_ms, mappers, reducers })
}

fn reducer(words: &mut Words, ports: u64) -> Result<(u64, Bytes), TraceError> {
    let (column, word) = words.next();
    let what = "a reducer as port:megabytes, such as 17:2.5,";
    let (port, size) = word.split_once(':').ok_or_else(|| words.wrong(column, word, what))?;
    let port = words.integer_in(
        column,
        port,
        &format!("a reducer's port (0 to {})", ports - 1),
        0,
        ports - 1,
    )?;
    let bytes = megabytes(size).ok_or_else(|| {
        let at = column + word.chars().count() - size.chars().count();
        words.wrong(at, size, "megabytes (at most six decimals, at most 1e9)")
    })?;
    Ok((port, bytes))
}

/// Decimal megabytes as bytes.
pub(super) fn megabytes(text: &str) -> Option<Bytes> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 6 {
        return None;
    }
    let micro: u64 = format!("{part:0<6}").parse().ok()?;
    let bytes = whole.parse::<u64>().ok()?.checked_mul(MB)?.checked_add(micro)?;
    (bytes <= MAX_BYTES).then_some(Bytes(bytes))
}

impl Trace {
    /// The trace as text; [`parse`] reads the same trace back.
    pub fn write(&self) -> String {
        let mut s = format!("{} {}\n", self.ports, self.coflows.len());
        for c in &self.coflows {
            let _ = write!(s, "{} {} {}", c.id, c.arrival_ms, c.mappers.len());
            for m in &c.mappers {
                let _ = write!(s, " {m}");
            }
            let _ = write!(s, " {}", c.reducers.len());
            for (port, b) in &c.reducers {
                let part = format!("{:06}", b.0 % MB);
                let part = part.trim_end_matches('0');
                let _ =
                    write!(s, " {port}:{}.{}", b.0 / MB, if part.is_empty() { "0" } else { part });
            }
            s.push('\n');
        }
        s
    }

    /// The trace over the hosts of a topology. Flows of one coflow between the same two hosts
    /// become one flow. O(F) in the number of pairs of a mapper and a reducer.
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
        let host = |port| host_of(port, topology);
        let chosen = &self.coflows[..mapping.first.unwrap_or(usize::MAX).min(self.coflows.len())];
        let mut taken = Taken::default();
        let own = |port| has_own_host(port, topology);
        if let Some((coflow, port)) =
            chosen.iter().find_map(|c| Some((c.id, c.ports().find(|&p| !own(p))?)))
        {
            let hosts = topology.hosts.len() as u64;
            if !mapping.fold && hosts > 0 {
                return Err(does_not_fit(
                    &format!("coflow {coflow}: port {port}"),
                    (self.ports, "ports"),
                    topology,
                ));
            }
            let (mut local, mut all) = (0, 0);
            for c in chosen {
                all += c.most_flows();
                local += c.local_by(&host);
            }
            taken.folded =
                Some(Folded { what: "ports".into(), ends: self.ports, hosts, local: (local, all) });
        }
        let (mut empty, mut inside) = (0, 0);
        for c in chosen {
            let (zero, some): (Vec<_>, Vec<&(u64, Bytes)>) = c
                .reducers
                .iter()
                .partition(|r| r.1 == Bytes::ZERO && mapping.sizes == Sizes::Exact);
            empty += (zero.len() * c.mappers.len()) as u64;
            if mapping.local == LocalFlows::Drop {
                let within =
                    |to: u64| c.mappers.iter().filter(|&&m| host(m) == host(to)).count() as u64;
                inside += some.into_iter().map(|r: &(u64, Bytes)| within(r.0)).sum::<u64>();
            }
        }
        taken.leave_out(empty, "flows without bytes");
        taken.leave_out(inside, "flows within a host (--local drop)");
        // Ports of one host are one: no coflow has more flows than there are pairs of hosts.
        let pairs = (topology.hosts.len() as u64).saturating_pow(2);
        let flows = chosen.iter().map(|c| c.most_flows().min(pairs)).fold(0, u64::saturating_add);
        let (mut coflows, mut kept) = (Vec::new(), 0u64);
        for c in chosen {
            // A shuffle is a list for a moment, and then its two sides.
            let own = c.most_flows().min(pairs);
            if let Some(most) = mapping.most.filter(|&most| kept.saturating_add(own) > most) {
                let why = format!(
                    "{} coflows of {flows} flows in all; there is memory for {most}; take fewer coflows or ports",
                    chosen.len()
                );
                return Err(TraceError { line: 0, column: 0, why });
            }
            let flows = c.flows(mapping, &host).ok_or_else(|| {
                let why = format!("coflow {} has a port in a rack without hosts", c.id);
                TraceError { line: 0, column: 0, why }
            })?;
            let arrival = Time::ZERO + Span::millis(c.arrival_ms.min(MAX_ARRIVAL_MS));
            let coflow = CoflowSpec::new(CoflowId(0), c.id.to_string(), arrival, flows);
            kept += coflow.flows.kept() as u64;
            coflows.push(coflow);
        }
        Ok(Workload { taken, ..Workload::new(name, coflows) })
    }
}

/// What is said where an end of a file has no host.
pub(super) fn does_not_fit(
    which: &str,
    (ends, what): (u64, &str),
    topology: &Topology,
) -> TraceError {
    let (hosts, name) = (topology.hosts.len(), &topology.name);
    let why =
        format!("{which} has no host: {ends} {what} do not fit on the {hosts} hosts of {name}");
    TraceError {
        line: 0,
        column: 0,
        why: format!(
            "{why}; allowed: a network with more hosts, or --fold, with which several fall on one host"
        ),
    }
}

/// The host that a port is; `None` if its rack has none.
pub(super) fn host_of(port: u64, topology: &Topology) -> Option<HostId> {
    let racks = topology.rack_count() as u64;
    let hosts = topology.hosts_of(RackId((port.checked_rem(racks)?) as u32));
    let k = (port / racks).checked_rem(hosts.len() as u64)?;
    Some(hosts[k as usize].id)
}

/// Whether no other port is this port's host: the first H ports of a rack of H hosts.
pub(super) fn has_own_host(port: u64, topology: &Topology) -> bool {
    let racks = topology.rack_count() as u64;
    port.checked_rem(racks)
        .is_some_and(|r| port / racks < topology.hosts_of(RackId(r as u32)).len() as u64)
}

impl TraceCoflow {
    /// All its ports, as often as they stand there.
    fn ports(&self) -> impl Iterator<Item = u64> {
        self.mappers.iter().copied().chain(self.reducers.iter().map(|r| r.0))
    }

    /// Flows between two ports that fall on one host. O(mappers x reducers).
    fn local_by(&self, host: &impl Fn(u64) -> Option<HostId>) -> u64 {
        let with = |to: u64| {
            self.mappers.iter().filter(|&&m| m != to && host(m) == host(to)).count() as u64
        };
        self.reducers.iter().map(|r| with(r.0)).sum()
    }

    /// The most flows that it may be: one for each mapper and reducer.
    pub fn most_flows(&self) -> u64 {
        self.mappers.len() as u64 * self.reducers.len() as u64
    }

    /// The flows by host pair, in the order of the pairs; `None` if a port has no host. O(mappers x
    /// reducers).
    fn flows(
        &self,
        mapping: &PortMapping,
        host: &impl Fn(u64) -> Option<HostId>,
    ) -> Option<Vec<FlowSpec>> {
        let n = self.mappers.len() as u64;
        let mut mappers = (0..)
            .zip(&self.mappers)
            .map(|(k, &m)| Some((host(m)?, k)))
            .collect::<Option<Vec<(HostId, u64)>>>()?;
        let mut reducers = self
            .reducers
            .iter()
            .map(|&(port, bytes)| Some((host(port)?, bytes)))
            .collect::<Option<Vec<_>>>()?;
        mappers.sort_unstable();
        reducers.sort_unstable();
        let senders = || mappers.chunk_by(|a, b| a.0 == b.0);
        let receivers = || reducers.chunk_by(|a, b| a.0 == b.0);
        let mut flows = Vec::with_capacity(senders().count() * receivers().count());
        for own in senders() {
            for asked in receivers() {
                let (from, to) = (own[0].0, asked[0].0);
                let parts =
                    asked.iter().flat_map(|r| own.iter().map(|m| mapping.sizes.part(r.1, m.1, n)));
                let bytes = parts.fold(Bytes::ZERO, Bytes::saturating_add);
                if bytes > Bytes::ZERO && (from != to || mapping.local != LocalFlows::Drop) {
                    flows.push(FlowSpec { from, to, bytes });
                }
            }
        }
        flows.shrink_to_fit();
        Some(flows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;
    use proptest::prelude::*;

    fn topology(racks: usize, hosts: usize) -> Topology {
        Topology::uniform("t", racks, hosts, BitRate::mbit(1000), BitRate::mbit(100), vec![])
    }

    #[test]
    fn reads_the_format_and_splits_exactly() {
        let t = parse("6 1\n7 1500 3 0 1 2 2 3:1.0 4:0.5\n").unwrap();
        assert_eq!(t.coflows[0].reducers, [(3, Bytes(MB)), (4, Bytes(MB / 2))]);
        let w = t.to_workload("w", &topology(6, 1), &PortMapping::default()).unwrap();
        let sizes: Vec<_> =
            w.coflows[0].flows.iter().map(|f| (f.from.0, f.to.0, f.bytes.0)).collect();
        assert_eq!(
            sizes,
            [
                (0, 3, 333_334),
                (0, 4, 166_667),
                (1, 3, 333_334),
                (1, 4, 166_667),
                (2, 3, 333_332),
                (2, 4, 166_666)
            ]
        );
        assert_eq!((w.coflows[0].arrival, w.coflows[0].name.as_str()), (Time(1_500_000_000), "7"));
        let ceil = PortMapping { sizes: Sizes::CeilMb, ..PortMapping::default() };
        let w = t.to_workload("w", &topology(6, 1), &ceil).unwrap();
        assert_eq!(w.coflows[0].flows.iter().map(|f| f.bytes.0).collect::<Vec<_>>(), [MB; 6]);
    }

    #[test]
    fn more_flows_than_there_is_memory_for_are_not_made() {
        let t = parse("6 2\n7 1500 3 0 1 2 2 3:1.0 4:0.5\n8 1600 1 0 1 3:1.0\n").unwrap();
        let of = |first, most| {
            t.to_workload(
                "w",
                &topology(6, 1),
                &PortMapping { first, most: Some(most), ..PortMapping::default() },
            )
        };
        assert!(of(None, 7).is_ok() && of(Some(1), 6).is_ok());
        let told = of(None, 6).unwrap_err().why;
        assert_eq!(
            told,
            "2 coflows of 7 flows in all; there is memory for 6; take fewer coflows or ports"
        );
    }

    #[test]
    fn ports_fold_onto_racks_and_hosts() {
        // Two racks of two hosts: ports 0 and 4 are h0-0, 1 is h1-0, 2 is h0-1, 3 is h1-1.
        let t = parse("5 1\n1 0 3 0 4 2 2 0:3.0 3:3.0\n").unwrap();
        let fold = PortMapping { fold: true, ..PortMapping::default() };
        let w = t.to_workload("w", &topology(2, 2), &fold).unwrap();
        let flows: Vec<_> =
            w.coflows[0].flows.iter().map(|f| (f.from.0, f.to.0, f.bytes.0 / MB)).collect();
        assert_eq!(flows, [(0, 0, 2), (0, 3, 2), (1, 0, 1), (1, 3, 1)]);
        let drop = PortMapping { local: LocalFlows::Drop, ..fold };
        assert_eq!(t.to_workload("w", &topology(2, 2), &drop).unwrap().coflows[0].flows.len(), 3);
        assert!(t.to_workload("w", &topology(2, 0), &drop).is_err());
        assert!(t.to_workload("w", &topology(0, 0), &drop).is_err());
    }

    #[test]
    fn faults_are_placed() {
        for (text, at, says) in [
            ("", (1, 1), "number of ports"),
            ("3 x", (1, 3), "number of coflows"),
            ("3 1", (1, 1), "announces 1"),
            ("3 0\n1 0 1 0 1 1:1\n", (2, 1), "one more"),
            ("3 1\n1 0 1 3 1 1:1\n", (2, 7), "0 to 2"),
            ("3 1\n1 0 1 0 1 1\n", (2, 11), "port:megabytes"),
            ("3 1\n1 0 1 0 1 1:1.1234567\n", (2, 13), "six decimals"),
            ("3 1\n1 0 1 0 1 1:9999999999\n", (2, 13), "1e9"),
            ("3 1\n1 0 1 0 1 1:1 9\n", (2, 15), "end of the line"),
            ("3 1\n1 0 2 0 1 1:1\n", (2, 11), "number of reducers"),
            ("3 1\n1 0 4000000000 0\n", (2, 17), "line ends"),
            ("3 1\n1 -5 1 0 1 1:1\n", (2, 3), "arrival"),
        ] {
            let e = parse(text).unwrap_err();
            assert_eq!((e.line, e.column), at, "{text:?}: {e}");
            assert!(e.to_string().contains(says), "{text:?}: {e}");
        }
    }

    /// Arrival, mappers, reducers.
    fn line() -> impl Strategy<Value = (u64, Vec<u64>, Vec<(u64, u64)>)> {
        let ports = || prop::collection::vec(0u64..40, 1..9);
        (0u64..9999, ports(), prop::collection::vec((0u64..40, 0u64..1 << 40), 1..9))
    }

    /// Flow after flow, as the format defines it: what every mapper sends of what is left of a
    /// reducer's bytes.
    fn one_by_one(
        c: &TraceCoflow,
        mapping: &PortMapping,
        host: &impl Fn(u64) -> HostId,
    ) -> Vec<FlowSpec> {
        let mut pairs = std::collections::BTreeMap::new();
        for &(port, bytes) in &c.reducers {
            let n = c.mappers.len() as u64;
            let (each, mut left) = match mapping.sizes {
                Sizes::Exact => (bytes.0.div_ceil(n), bytes.0),
                Sizes::CeilMb => (bytes.0.div_ceil(MB).div_ceil(n).max(1) * MB, u64::MAX),
            };
            for (from, to) in c.mappers.iter().map(|&m| (host(m), host(port))) {
                let part = each.min(left);
                left -= part;
                if part > 0 && (from != to || mapping.local != LocalFlows::Drop) {
                    *pairs.entry((from, to)).or_insert(0) += part;
                }
            }
        }
        pairs.into_iter().map(|((from, to), b)| FlowSpec { from, to, bytes: Bytes(b) }).collect()
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn flows_are_those_made_one_by_one(
            mappers in prop::collection::vec(0u64..12, 1..9),
            reducers in prop::collection::vec((0u64..12, prop_oneof![0u64..30, 0u64..1 << 40]), 1..9),
            hosts in 1u64..12, ceil: bool, drop: bool,
        ) {
            let reducers = reducers.into_iter().map(|(p, b)| (p, Bytes(b))).collect();
            let c = TraceCoflow { id: 1, arrival_ms: 0, mappers, reducers };
            let (sizes, local) = (if ceil { Sizes::CeilMb } else { Sizes::Exact }, if drop { LocalFlows::Drop } else { LocalFlows::Free });
            let (mapping, host) = (PortMapping { sizes, local, ..PortMapping::default() }, |p: u64| HostId((p % hosts) as u32));
            prop_assert_eq!(c.flows(&mapping, &|p| Some(host(p))), Some(one_by_one(&c, &mapping, &host)));
        }

        #[test]
        fn never_panics(s in "([0-9]{1,3}[ :.\n]){0,40}\\PC{0,20}") {
            let _ = parse(&s).map(|t| t.to_workload("w", &topology(2, 1), &PortMapping::default()));
        }

        #[test]
        fn a_trace_survives_the_round_trip_and_keeps_its_bytes(
            ports in 1u64..40,
            lines in prop::collection::vec(line(), 0..8),
            racks in 1usize..6, hosts in 1usize..4,
        ) {
            let coflows = lines.into_iter().enumerate().map(|(k, (arrival_ms, m, r))| TraceCoflow {
                id: k as u64,
                arrival_ms,
                mappers: m.into_iter().map(|p| p % ports).collect(),
                reducers: r.into_iter().map(|(p, b)| (p % ports, Bytes(b))).collect(),
            }).collect();
            let trace = Trace { ports, coflows };
            prop_assert_eq!(parse(&trace.write()), Ok(trace.clone()));
            let own = |p: u64| p / (racks as u64) < hosts as u64;
            let fits = trace.coflows.iter().all(|c| c.ports().all(own));
            let plain = trace.to_workload("w", &topology(racks, hosts), &PortMapping::default());
            prop_assert_eq!(plain.is_ok(), fits);
            let w = trace.to_workload("w", &topology(racks, hosts), &PortMapping { fold: true, ..PortMapping::default() }).unwrap();
            prop_assert_eq!(w.taken.folded.is_none(), fits);
            let bytes: u64 = trace.coflows.iter().flat_map(|c| &c.reducers).map(|r| r.1.0).sum();
            prop_assert_eq!(w.bytes(), Bytes(bytes));
            prop_assert!(w.coflows.is_sorted_by_key(|c| (c.arrival, c.id)));
        }
    }
}
