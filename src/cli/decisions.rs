//! Where a placement policy put tasks, and why, for people and for programs: a row a decision, and
//! below it one for each placement that lost.

use super::numbers::several;
use super::tables::{self, TextTable};
use crate::api::wire::{Decision, Estimate, OrderedBy, PlacedBy, RackTasks};
use crate::units::{Bytes, Span, Time};

/// The most racks that are named in a cell for people.
const NAMED: usize = 6;

const PEOPLE: [&str; 12] = [
    "job",
    "stage",
    "decided",
    "turn",
    "because",
    "tasks",
    "slots after",
    "shuffle",
    "limited by",
    "by circuit",
    "others wait",
    "price",
];
const PROGRAMS: [&str; 26] = [
    "job",
    "stage",
    "at_ns",
    "place",
    "of",
    "ordered_by",
    "value_ns",
    "rule",
    "again",
    "lost",
    "losers",
    "racks",
    "open_slots",
    "reads_ns",
    "waits_ns",
    "slots_ns",
    "shuffle_ns",
    "pair_ns",
    "port_ns",
    "interfaces_ns",
    "switches_ns",
    "circuit_pairs",
    "circuit_bytes",
    "core_bytes",
    "others_ns",
    "price_ns",
];

/// The rows; `name` says what a job is called.
pub fn table(all: &[Decision], name: impl Fn(u32) -> String, exact: bool) -> TextTable {
    let mut rows = TextTable::new(if exact { &PROGRAMS } else { &PEOPLE });
    for d in all {
        let make = if exact { for_programs } else { for_people };
        rows.rows.push(make(d, &name(d.job), (d.estimate.as_ref(), false)));
        rows.rows.extend(d.lost.iter().map(|e| make(d, &name(d.job), (Some(e), true))));
    }
    rows
}

fn for_people(d: &Decision, job: &str, (e, lost): (Option<&Estimate>, bool)) -> Vec<String> {
    let span = |ns: u64| tables::span(Span(ns));
    let of = |show: &dyn Fn(&Estimate) -> String| e.map_or("-".into(), show);
    let mut cells = if lost {
        let more = e
            .zip(d.estimate.as_ref())
            .map_or(0, |(e, best)| e.price_ns.saturating_sub(best.price_ns));
        let empty = String::new;
        vec![empty(), empty(), empty(), empty(), format!("lost by {}", span(more))]
    } else {
        let by = |t| match t {
            OrderedBy::Guard => "waited too long",
            OrderedBy::Path => "path",
            OrderedBy::Work => "work",
            OrderedBy::Arrival => "arrival",
        };
        let turn = d.turn.map_or("-".into(), |t| {
            format!("{} of {}, {} {}", t.place, t.of, by(t.by), span(t.value_ns))
        });
        let at = tables::span(Time(d.at_ns).since(Time::ZERO));
        vec![job.into(), d.stage.to_string(), at, turn, because(d)]
    };
    let racks = e.filter(|_| lost).map_or(&d.racks, |e| &e.racks);
    let named: Vec<(u32, u32)> = racks.iter().map(|t| (t.rack, t.tasks)).collect();
    cells.extend([
        some(&named),
        of(&|e| span(e.slots_ns)),
        of(&|e| span(e.shuffle_ns)),
        of(&|e| limit(e).into()),
        of(&|e| match e.limits.circuit_pairs {
            0 => "-".into(),
            n => {
                let bytes = tables::bytes(Bytes(e.limits.circuit_bytes));
                format!("{bytes} in {}", several(n as usize, "pair"))
            }
        }),
        of(&|e| span(e.others_ns)),
        of(&|e| span(e.price_ns)),
    ]);
    cells
}

fn because(d: &Decision) -> String {
    let why = match (d.rule, d.afar) {
        (PlacedBy::FromAfar, Some(a)) => {
            let (reads, waits) = (tables::span(Span(a.reads_ns)), tables::span(Span(a.waits_ns)));
            format!("reads from afar in {reads}, at home in {waits}")
        }
        (PlacedBy::FromAfar, None) => "reads from afar".into(),
        (PlacedBy::Home, _) => {
            let open: Vec<(u32, u32)> = d.open.iter().map(|o| (o.rack, o.slots)).collect();
            format!("home; free: {}", some(&open))
        }
        (PlacedBy::LeastPrice, _) => format!("least price of {}", d.losers + 1),
        (PlacedBy::FreeSlots, _) => "free slots".into(),
    };
    if d.again { format!("{why}; placed again") } else { why }
}

/// What takes longest of a shuffle.
fn limit(e: &Estimate) -> &'static str {
    let l = &e.limits;
    let all = [
        (l.switches_ns, "switches"),
        (l.interfaces_ns, "hosts"),
        (l.port_ns, "ports"),
        (l.pair_ns, "pair"),
    ];
    let (longest, name) = all.into_iter().max_by_key(|a| a.0).unwrap_or_default();
    if longest == 0 { "-" } else { name }
}

/// Some racks with a number each.
fn some(racks: &[(u32, u32)]) -> String {
    let mut named: Vec<String> =
        racks.iter().take(NAMED).map(|(rack, n)| format!("r{rack}: {n}")).collect();
    if racks.len() > NAMED {
        named.push("..".into());
    }
    if named.is_empty() { "-".into() } else { named.join(", ") }
}

fn for_programs(d: &Decision, job: &str, (e, lost): (Option<&Estimate>, bool)) -> Vec<String> {
    fn or_empty(value: Option<impl ToString>) -> String {
        value.map_or_else(String::new, |v| v.to_string())
    }
    let racks: &[RackTasks] = e.filter(|_| lost).map_or(&d.racks, |e| &e.racks);
    let pairs = |all: Vec<(u32, u32)>| {
        all.iter().map(|(rack, n)| format!("{rack}:{n}")).collect::<Vec<_>>().join(" ")
    };
    let l = e.map(|e| e.limits);
    vec![
        job.into(),
        d.stage.to_string(),
        d.at_ns.to_string(),
        or_empty(d.turn.map(|t| t.place)),
        or_empty(d.turn.map(|t| t.of)),
        or_empty(d.turn.map(|t| tables::word(&t.by))),
        or_empty(d.turn.map(|t| t.value_ns)),
        tables::word(&d.rule),
        d.again.to_string(),
        lost.to_string(),
        d.losers.to_string(),
        pairs(racks.iter().map(|t| (t.rack, t.tasks)).collect()),
        pairs(d.open.iter().map(|o| (o.rack, o.slots)).collect()),
        or_empty(d.afar.map(|a| a.reads_ns)),
        or_empty(d.afar.map(|a| a.waits_ns)),
        or_empty(e.map(|e| e.slots_ns)),
        or_empty(e.map(|e| e.shuffle_ns)),
        or_empty(l.map(|l| l.pair_ns)),
        or_empty(l.map(|l| l.port_ns)),
        or_empty(l.map(|l| l.interfaces_ns)),
        or_empty(l.map(|l| l.switches_ns)),
        or_empty(l.map(|l| l.circuit_pairs)),
        or_empty(l.map(|l| l.circuit_bytes)),
        or_empty(l.map(|l| l.core_bytes)),
        or_empty(e.map(|e| e.others_ns)),
        or_empty(e.map(|e| e.price_ns)),
    ]
}
