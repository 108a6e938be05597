//! Our own workload files.
//!
//! ```yaml
//! name: example
//! coflows:
//!   - name: sort
//!     arrival: 0ms
//!     weight: 2
//!     priority: 1
//!     shuffle: {from: [r0, r1], to: [r4], bytes: 100MB}   # one, or a list
//!   - arrival: 250ms
//!     flows:
//!       - {from: h0-0, to: h3-1, bytes: 25MB}
//! ```
//!
//! A place is a rack (`r0`: all its hosts) or a host (`h3-1`). A shuffle spreads its bytes evenly
//! over all pairs of a sending and another, receiving host; what does not divide goes to the first
//! pairs, one byte each.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};

use super::error::{Flaw, PathStep};
use crate::coflows::priority::{LAST, Priorities};
use crate::coflows::{CoflowSpec, FlowSpec};
use crate::ids::{CoflowId, HostId};
use crate::paths::types::possible;
use crate::topology::Topology;
use crate::topology::types::Types;
use crate::units::{Bytes, Quantity as _, Span, Time};
use crate::workload::Workload;

/// The most flows of one workload file.
const MAX_FLOWS: usize = 5_000_000;

/// No flow is written shorter.
pub const SHORTEST_FLOW: &str = "      - {from: h0-0, to: h0-0, bytes: 1B}\n";

/// A workload file as it is written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawWorkload {
    /// What people call it.
    name: String,
    /// What it is for.
    #[serde(default)]
    #[expect(dead_code, reason = "for the reader of the file")]
    description: String,
    /// The coflows, in any order.
    coflows: Vec<CoflowEntry>,
}

/// A coflow: its flows and its shuffles together.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CoflowEntry {
    /// What people call it; its place in the file if it has no name.
    name: Option<String>,
    /// When its flows start, from the beginning of the run.
    #[serde(default)]
    arrival: Span,
    /// Under `scheduler: sunflow-weighted`, of two alike the one of twice the weight may take twice
    /// as long to be next. 1 at least.
    #[serde(default = "CoflowSpec::plain_weight")]
    #[schemars(range(min = 1))]
    weight: u32,
    /// Strict priority of its flows between racks under `network: priority`: 0 goes first; 4 if
    /// left out. Those within a rack go last.
    #[schemars(range(max = 7))]
    priority: Option<u8>,
    /// The tiers of the switches that its flows must cross, in their order, such as [access,
    /// aggregation, core, aggregation, access]; any if left out.
    types: Option<Types>,
    /// Single flows.
    #[serde(default)]
    flows: Vec<FlowEntry>,
    /// A shuffle, or a list of shuffles.
    #[serde(default, deserialize_with = "one_or_many")]
    #[schemars(with = "OneOrMany")]
    shuffle: Vec<ShuffleEntry>,
}

/// Bytes from a host to a host.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FlowEntry {
    /// Sender, such as `h0-0`.
    from: String,
    /// Receiver, such as `h3-1`.
    to: String,
    /// Payload.
    bytes: Bytes,
    /// Its own strict priority, 0 to 7, within a rack too; the coflow's if left out.
    #[schemars(range(max = 7))]
    priority: Option<u8>,
}

/// Bytes from all hosts of some places to all hosts of others.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ShuffleEntry {
    /// Senders: racks such as `r0`, hosts such as `h3-1`.
    from: Vec<String>,
    /// Receivers.
    to: Vec<String>,
    /// Payload of all its flows together.
    bytes: Bytes,
    /// The strict priority of its flows, 0 to 7, within a rack too; the coflow's if left out.
    #[schemars(range(max = 7))]
    priority: Option<u8>,
}

/// Only for the schema: what `one_or_many` takes.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum OneOrMany {
    One(ShuffleEntry),
    Many(Vec<ShuffleEntry>),
}

fn one_or_many<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<ShuffleEntry>, D::Error> {
    struct V;
    impl<'de> Visitor<'de> for V {
        type Value = Vec<ShuffleEntry>;
        fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
            f.write_str("a shuffle {from, to, bytes} or a list of them")
        }
        fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            ShuffleEntry::deserialize(de::value::MapAccessDeserializer::new(map)).map(|s| vec![s])
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut all = Vec::new();
            while let Some(s) = seq.next_element()? {
                all.push(s);
            }
            Ok(all)
        }
    }
    d.deserialize_any(V)
}

impl RawWorkload {
    /// The workload over the hosts of `topology`. O(F log F) in the number of flows.
    ///
    /// # Errors
    /// The first thing of each coflow that makes no sense on this topology.
    pub fn check(self, topology: &Topology) -> Result<Workload, Vec<Flaw>> {
        let mut coflows = Vec::with_capacity(self.coflows.len());
        let (mut flows, mut flaws) = (0, Vec::new());
        for (k, c) in self.coflows.into_iter().enumerate() {
            match coflow(c, k, topology, &["coflows".into(), k.into()], MAX_FLOWS - flows) {
                Ok(spec) => {
                    flows += spec.flows.len();
                    coflows.push(spec);
                }
                Err(flaw) => flaws.push(flaw),
            }
        }
        if flaws.is_empty() { Ok(Workload::new(self.name, coflows)) } else { Err(flaws) }
    }
}

fn flaw(path: Vec<PathStep>, message: impl Into<String>, allowed: impl Into<String>) -> Flaw {
    Flaw { path, message: message.into(), allowed: allowed.into() }
}

fn too_many(at: &[PathStep]) -> Flaw {
    flaw(at.to_vec(), "too many flows", format!("at most {MAX_FLOWS} in a workload"))
}

/// Bytes by sender, receiver and priority.
type BytesByPair = BTreeMap<(HostId, HostId, Option<u8>), Bytes>;

/// Refuses a priority that does not exist; `at` leads to the flow or coflow that has it.
fn priority(p: Option<u8>, at: &[PathStep]) -> Result<(), Flaw> {
    match p {
        Some(p) if p > LAST => Err(flaw(
            [at, &["priority".into()]].concat(),
            format!("no priority {p}"),
            format!("0 (first) to {LAST}"),
        )),
        _ => Ok(()),
    }
}

fn coflow(
    c: CoflowEntry,
    k: usize,
    topology: &Topology,
    at: &[PathStep],
    room: usize,
) -> Result<CoflowSpec, Flaw> {
    let mut pairs = BytesByPair::new();
    if c.flows.is_empty() && c.shuffle.is_empty() {
        return Err(flaw(at.to_vec(), "a coflow without flows", "`flows`, `shuffle`, or both"));
    }
    if c.weight == 0 {
        return Err(flaw(
            [at, &["weight".into()]].concat(),
            "a coflow of no weight",
            "1 to 4294967295",
        ));
    }
    priority(c.priority, at)?;
    for (i, f) in c.flows.iter().enumerate() {
        let step = |key: &str| [at, &["flows".into(), i.into(), key.into()]].concat();
        let host = |name: &str, key: &str| {
            topology.host_by_name(name).ok_or_else(|| no_host(name, topology, step(key)))
        };
        let pair = (host(&f.from, "from")?, host(&f.to, "to")?, f.priority);
        priority(f.priority, &[at, &["flows".into(), i.into()]].concat())?;
        if f.bytes == Bytes::ZERO {
            return Err(flaw(step("bytes"), "a flow of no bytes", "at least 1"));
        }
        let sum = pairs.entry(pair).or_default();
        *sum = sum.saturating_add(f.bytes);
    }
    let many = c.shuffle.len() > 1;
    for (i, s) in c.shuffle.iter().enumerate() {
        let mut step = [at, &["shuffle".into()]].concat();
        step.extend(many.then_some(PathStep::Index(i)));
        shuffle(s, topology, &step, room, &mut pairs)?;
    }
    let own = pairs.keys().map(|p| p.2);
    let priorities = Priorities {
        all: c.priority,
        flows: if own.clone().any(|p| p.is_some()) { own.collect() } else { Vec::new() },
    };
    let flows: Vec<_> =
        pairs.into_iter().map(|((from, to, _), bytes)| FlowSpec { from, to, bytes }).collect();
    if flows.len() > room {
        return Err(too_many(at));
    }
    let types = c.types.unwrap_or_default();
    if let Err((what, allowed)) = possible(topology, &types) {
        return Err(flaw([at, &["types".into()]].concat(), what, allowed));
    }
    let name = c.name.unwrap_or_else(|| format!("coflow-{k}"));
    Ok(CoflowSpec {
        id: CoflowId(0),
        name,
        arrival: Time::ZERO + c.arrival,
        weight: c.weight,
        types,
        priorities,
        flows: flows.into(),
    })
}

fn shuffle(
    s: &ShuffleEntry,
    t: &Topology,
    at: &[PathStep],
    room: usize,
    pairs: &mut BytesByPair,
) -> Result<(), Flaw> {
    priority(s.priority, at)?;
    let hosts = |places: &[String], key: &str| {
        let mut all = std::collections::BTreeSet::new();
        for (i, p) in places.iter().enumerate() {
            let no_such = || no_place(p, t, [at, &[key.into(), i.into()]].concat());
            all.extend(place(p, t).ok_or_else(no_such)?);
        }
        Ok(all)
    };
    let (from, to) = (hosts(&s.from, "from")?, hosts(&s.to, "to")?);
    if from.len().saturating_mul(to.len()) > room {
        return Err(too_many(at));
    }
    let all = || from.iter().flat_map(|&a| to.iter().map(move |&b| (a, b))).filter(|p| p.0 != p.1);
    let n = all().count() as u64;
    if n == 0 {
        return Err(flaw(
            at.to_vec(),
            "a shuffle within one host, or of none",
            "a sending and another, receiving host",
        ));
    }
    for (k, (from, to)) in (0u64..).zip(all()) {
        let part = Bytes(s.bytes.0 / n + u64::from(k < s.bytes.0 % n));
        if part > Bytes::ZERO {
            let sum = pairs.entry((from, to, s.priority)).or_default();
            *sum = sum.saturating_add(part);
        }
    }
    Ok(())
}

fn place(name: &str, t: &Topology) -> Option<Vec<HostId>> {
    if let Some(host) = t.host_by_name(name) {
        return Some(vec![host]);
    }
    let digits = name.strip_prefix('r').filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?;
    let rack = t.racks.get(digits.parse::<usize>().ok()?)?;
    Some(t.hosts_of(rack.id).iter().map(|h| h.id).collect())
}

fn no_host(name: &str, t: &Topology, at: Vec<PathStep>) -> Flaw {
    let last = t.hosts.last().map_or(String::new(), |h| t.host_name(h.id));
    flaw(at, format!("`{name}` is not a host of topology {}", t.name), format!("h0-0 to {last}"))
}

fn no_place(name: &str, t: &Topology, at: Vec<PathStep>) -> Flaw {
    let last = t.racks.len().saturating_sub(1);
    let message = format!("`{name}` is neither a rack nor a host of topology {}", t.name);
    flaw(at, message, format!("racks r0 to r{last}, or hosts such as h0-0"))
}

/// The workload as a file that [`super::read_workload`] reads back over the same topology: one flow
/// a line.
pub fn write(workload: &Workload, topology: &Topology) -> String {
    let quote = |s: &str| serde_json::to_string(s).expect("a string is JSON, and JSON is YAML");
    let mut out = format!(
        "name: {}\ncoflows:{}\n",
        quote(&workload.name),
        if workload.coflows.is_empty() { " []" } else { "" }
    );
    for c in &workload.coflows {
        let _ = writeln!(
            out,
            "  - name: {}\n    arrival: {}",
            quote(&c.name),
            Span(c.arrival.0).exact()
        );
        if c.weight != CoflowSpec::plain_weight() {
            let _ = writeln!(out, "    weight: {}", c.weight);
        }
        if let Some(p) = c.priorities.all {
            let _ = writeln!(out, "    priority: {p}");
        }
        if !c.types.are_free() {
            let _ = writeln!(out, "    types: [{}]", c.types);
        }
        let _ = writeln!(out, "    flows:");
        for (k, f) in c.flows.iter().enumerate() {
            let (from, to) = (topology.host_name(f.from), topology.host_name(f.to));
            let own = c
                .priorities
                .flows
                .get(k)
                .copied()
                .flatten()
                .map_or(String::new(), |p| format!(", priority: {p}"));
            let _ = writeln!(
                out,
                "      - {{from: {from}, to: {to}, bytes: {}{own}}}",
                f.bytes.exact()
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigError, read_workload};
    use crate::units::BitRate;
    use proptest::prelude::*;

    fn parse(text: &str, file: &str, t: &Topology) -> Result<Workload, ConfigError> {
        read_workload(text, file, t, &Default::default())
    }

    fn topology() -> Topology {
        Topology::uniform("t", 4, 2, BitRate::mbit(1000), BitRate::mbit(100), vec![])
    }

    #[test]
    fn flows_and_shuffles_are_read_and_sum_up() {
        let text = "name: x\ncoflows:\n  - arrival: 5ms\n    shuffle: {from: [r0, h1-1], to: [r2], bytes: 20}\n  - name: first\n    weight: 3\n    flows: [{from: h0-0, to: h3-1, bytes: 25MB}]\n    shuffle:\n      - {from: [r0], to: [r0], bytes: 3}\n      - {from: [h0-0], to: [h3-1], bytes: 1}\n";
        let w = parse(text, "f", &topology()).unwrap();
        assert_eq!(w.coflows[0].name, "first");
        let first: Vec<_> =
            w.coflows[0].flows.iter().map(|f| (f.from.0, f.to.0, f.bytes.0)).collect();
        assert_eq!(first, [(0, 1, 2), (0, 7, 25_000_001), (1, 0, 1)]);
        let second: Vec<_> =
            w.coflows[1].flows.iter().map(|f| (f.from.0, f.to.0, f.bytes.0)).collect();
        assert_eq!(second, [(0, 4, 4), (0, 5, 4), (1, 4, 3), (1, 5, 3), (3, 4, 3), (3, 5, 3)]);
        assert_eq!((w.coflows[0].weight, w.coflows[1].weight), (3, 1));
        assert_eq!(
            (w.coflows[1].arrival, w.coflows[1].name.as_str()),
            (Time(5_000_000), "coflow-0")
        );
    }

    #[test]
    fn faults_name_file_line_column_and_key() {
        let head = "name: x\ncoflows:\n";
        for (rest, start) in [
            (
                "  - flows: [{from: h0-0, to: h9-1, bytes: 1}]\n",
                "f:3:30: coflows[0].flows[0].to: `h9-1` is not a host",
            ),
            (
                "  - flows: [{from: h0-0, to: h1-1, bytes: 0}]\n",
                "f:3:43: coflows[0].flows[0].bytes: ",
            ),
            (
                "  - flows: [{from: h0-0, to: h1-1, bytes: 1XB}]\n",
                "f:3:43: coflows[0].flows[0].bytes: `1XB` is not",
            ),
            (
                "  - flow: []\n",
                "f:3:5: coflows[0].flow: unknown key `flow`, did you mean `flows`? allowed:",
            ),
            (
                "  - shuffle: {from: [r0], to: [r4], bytes: 1}\n",
                "f:3:32: coflows[0].shuffle.to[0]: `r4` is neither",
            ),
            (
                "  - shuffle: {from: [h0-0], to: [h0-0], bytes: 1}\n",
                "f:3:14: coflows[0].shuffle: a shuffle within",
            ),
            ("  - shuffle: 3\n", "f:3:14: coflows[0].shuffle: invalid type"),
            (
                "  - weight: 0\n    flows: [{from: h0-0, to: h1-1, bytes: 1}]\n",
                "f:3:13: coflows[0].weight: a coflow of no weight",
            ),
            (
                "  - priority: 8\n    flows: [{from: h0-0, to: h1-1, bytes: 1}]\n",
                "f:3:15: coflows[0].priority: no priority 8",
            ),
            (
                "  - flows: [{from: h0-0, to: h1-1, bytes: 1, priority: 9}]\n",
                "f:3:56: coflows[0].flows[0].priority: no priority 9",
            ),
            (
                "  - shuffle: {from: [r0], to: [r1], bytes: 1, priority: 8}\n",
                "f:3:57: coflows[0].shuffle.priority: no priority 8",
            ),
            ("  - name: n\n", "f:3:5: coflows[0]: a coflow without"),
        ] {
            let e = parse(&format!("{head}{rest}"), "f", &topology()).unwrap_err().to_string();
            assert!(e.starts_with(start), "{e}\nnot {start}");
        }
    }

    #[test]
    fn shipped_workloads_are_valid() {
        for (racks, name, text) in [
            (8, "shuffle-8", include_str!("../../../workloads/shuffle-8.yaml")),
            (4, "shuffle-4", include_str!("../../../workloads/shuffle-4.yaml")),
        ] {
            let t =
                Topology::uniform("t", racks, 2, BitRate::mbit(1000), BitRate::mbit(100), vec![]);
            let w = parse(text, name, &t).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(w.name, name);
            assert!(
                w.coflows.iter().any(|c| c.bytes() < Bytes(1_000_000))
                    && w.coflows.iter().any(|c| c.bytes() > Bytes(100_000_000))
            );
        }
    }

    #[test]
    fn a_bomb_is_refused() {
        let mut bomb = String::from("a: &a [x,x,x,x,x,x,x,x,x]\n");
        for k in 1..30u8 {
            let (new, old) = ((b'a' + k % 26) as char, (b'a' + (k - 1) % 26) as char);
            bomb.push_str(&format!("{new}{k}: &{new} [*{old},*{old},*{old},*{old},*{old},*{old},*{old},*{old},*{old}]\n"));
        }
        assert!(parse(&bomb, "f", &topology()).is_err());
        assert!(parse(&format!("name: {}", "[".repeat(100_000)), "f", &topology()).is_err());
        let big = Topology::uniform("t", 250, 40, BitRate::mbit(1), BitRate::mbit(1), vec![]);
        let racks = (0..250).map(|k| format!("r{k}")).collect::<Vec<_>>().join(",");
        let e = parse(
            &format!(
                "name: x\ncoflows:\n- shuffle: {{from: [{racks}], to: [{racks}], bytes: 1GB}}\n"
            ),
            "f",
            &big,
        );
        assert!(e.unwrap_err().to_string().contains("at most 5000000"));
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn never_panics(s in "(name|coflows|flows|shuffle|from|to|h0-0|r1|9MB|[-:{}\\[\\], \n&*a])(\\PC{0,3}| |\n  ){0,12}") {
            let _ = parse(&s, "f", &topology());
        }

        #[test]
        fn what_is_written_is_read_back(
            name in "[ -~äß\u{1f600}]{0,12}",
            raw in prop::collection::vec(
                (
                    (0u64..1 << 50, 1u32..),
                    prop::option::of(0u8..8),
                    prop::collection::btree_map((0u32..8, 0u32..8, prop::option::of(0u8..8)), 1u64..1 << 45, 1..6),
                ),
                0..5,
            ),
        ) {
            let said = |flows: &BTreeMap<(u32, u32, Option<u8>), u64>| flows.keys().any(|f| f.2.is_some());
            let coflows = raw.into_iter().map(|((at, weight), all, flows)| CoflowSpec {
                id: CoflowId(0),
                name: name.clone(),
                arrival: Time(at),
                weight,
                types: Default::default(),
                priorities: Priorities { all, flows: if said(&flows) { flows.keys().map(|f| f.2).collect() } else { vec![] } },
                flows: flows.into_iter().map(|((a, b, _), n)| FlowSpec { from: HostId(a), to: HostId(b), bytes: Bytes(n) }).collect(),
            }).collect();
            let w = Workload::new(name, coflows);
            prop_assert_eq!(parse(&write(&w, &topology()), "f", &topology()), Ok(w));
        }

        #[test]
        fn a_shuffle_sums_exactly(bytes in 1u64..1 << 50, from in prop::collection::btree_set(0u32..4, 1..4), to in 0u32..4) {
            let from: Vec<_> = from.iter().map(|r| format!("r{r}")).collect();
            let text = format!("name: x\ncoflows: [{{shuffle: {{from: [{}], to: [r{to}], bytes: {bytes}}}}}]", from.join(","));
            let w = parse(&text, "f", &topology()).unwrap();
            prop_assert_eq!(w.bytes(), Bytes(bytes));
            let sizes = w.coflows[0].flows.iter().map(|f| f.bytes.0);
            prop_assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
        }
    }
}
