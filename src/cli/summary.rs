//! The sums of a run of coflows: a row each, and a column a run. Rows that say nothing of any of
//! the runs are left out.

use serde::Serialize;
use serde_json::Value;

use super::OutputFormat;
use super::tables::{TextTable, bytes, json, percent, span};
use crate::control::record::Quantiles;
use crate::runtime::jobs::report::JobsResult;
use crate::runtime::report::{RunEnd, RunResult, Summary};
use crate::units::Span;

/// What is printed of a run
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Shown {
    /// What is printed
    #[arg(help_heading = "Output", short, long, value_enum, default_value_t)]
    pub output: OutputFormat,
    /// Prints the sums alone, without a row a coflow or job; in JSON and CSV the result without its
    /// lists. --json FILE still has all. Of several runs, the sums are all that is printed
    #[arg(help_heading = "Output", long)]
    pub summary: bool,
}

/// The same for commands that do not repeat runs
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct ShownOnce {
    /// What is printed
    #[arg(help_heading = "Output", short, long, value_enum, default_value_t)]
    pub output: OutputFormat,
    /// Prints the sums alone, without a row a job; in JSON and CSV the result without its lists.
    /// --json FILE still has all
    #[arg(help_heading = "Output", long)]
    pub summary: bool,
}

impl From<ShownOnce> for Shown {
    fn from(s: ShownOnce) -> Self {
        Self { output: s.output, summary: s.summary }
    }
}

/// What was run, in a line above the sums.
pub fn caption(r: &RunResult) -> String {
    let tcp = if r.congestion == "-" { String::new() } else { format!(", TCP {}", r.congestion) };
    let seed = r.origin.seed.map_or_else(String::new, |s| format!(", seed {s}"));
    let end = ended(r.end);
    format!(
        "{} on {}, policy {}, mechanism {}{tcp}{seed}{end}",
        r.workload, r.topology, r.policy, r.mechanism
    )
}

/// That a run ended before its end, for a caption.
pub fn ended(end: RunEnd) -> &'static str {
    match end {
        RunEnd::Finished => "",
        RunEnd::Until => "; its time was over: times are of what finished",
        RunEnd::Stopped => "; interrupted: times are of what finished",
        RunEnd::Stuck => "; stuck: times are of what finished",
    }
}

/// Whether a run has anything to do with circuits.
pub fn has_circuits(s: &Summary) -> bool {
    s.stats.circuits_set > 0 || s.ocs_share > 0.0
}

/// The sums of one run, for people: one a row.
pub fn summary(s: &Summary) -> TextTable {
    of_runs(&[("", s)])
}

/// The sums of runs side by side, each under its name. A row is left out where it is empty or zero
/// in all of them: internals of a run in which nothing was wrong.
pub fn of_runs(runs: &[(&str, &Summary)]) -> TextTable {
    let header: Vec<&str> = std::iter::once("summary").chain(runs.iter().map(|r| r.0)).collect();
    let mut rows = TextTable::new(&header);
    let mut row = |name: &str, cell: &dyn Fn(&Summary) -> Option<String>| {
        let cells: Vec<Option<String>> = runs.iter().map(|r| cell(r.1)).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|c| c.unwrap_or_else(|| "-".into()));
            rows.rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
        }
    };
    let any_circuits = runs.iter().any(|r| has_circuits(r.1));
    let seen = |yes: bool, cell: String| yes.then_some(cell);
    let of = |s: &Summary| {
        if s.unfinished == 0 { String::new() } else { format!(" of {}", s.finished + s.unfinished) }
    };
    row("coflows finished", &|s| Some(format!("{}{}", s.finished, of(s))));
    row("of these with a CCT of 0", &|s| seen(s.took_no_time > 0, s.took_no_time.to_string()));
    let of_coflows =
        |s: &Summary, t: Span| Some(if s.finished == 0 { "-".into() } else { span(t) });
    row("makespan", &|s| of_coflows(s, s.makespan));
    row("average CCT", &|s| of_coflows(s, s.average_cct));
    row("median CCT", &|s| of_coflows(s, s.median_cct));
    row("p95 CCT", &|s| of_coflows(s, s.p95_cct));
    row("OCS share", &|s| seen(any_circuits, percent(s.ocs_share)));
    row("bytes received / asked", &|s| {
        Some(format!("{} / {}", bytes(s.bytes_received), bytes(s.bytes_asked)))
    });
    row("circuits set", &|s| Some(s.stats.circuits_set.to_string()));
    let any = |count: fn(&Summary) -> u64| runs.iter().any(|r| count(r.1) > 0);
    let (late, wrong) = (any(|s| s.late_packets), any(|s| s.misdelivered));
    row("packets sent back late", &|s| seen(late, s.late_packets.to_string()));
    row("packets misdelivered", &|s| seen(wrong, s.misdelivered.to_string()));
    let planes: std::collections::BTreeSet<u32> =
        runs.iter().flat_map(|r| r.1.stats.dark_by_plane.iter().map(|d| d.plane)).collect();
    let dark = |(a, b): (&Quantiles, &Quantiles)| {
        format!("{} / {}, {}", span(a.p50), span(b.p50), span(b.p99))
    };
    row("dark time asked p50 / achieved p50, p99", &|s| {
        let d = &s.stats;
        seen(
            planes.is_empty() && d.dark_achieved.count > 0,
            dark((&d.dark_asked, &d.dark_achieved)),
        )
    });
    for plane in planes {
        let of = |s: &Summary| {
            s.stats
                .dark_by_plane
                .iter()
                .find(|d| d.plane == plane)
                .map(|d| dark((&d.asked, &d.achieved)))
        };
        row(&format!("plane {plane}: dark time asked p50 / achieved p50, p99"), &of);
    }
    row("control cycle p50 / p99", &|s| {
        let c = &s.stats.cycle;
        seen(c.max > Span::ZERO, format!("{} / {}", span(c.p50), span(c.p99)))
    });
    let behind = any(|s| s.stats.late_cycles + s.stats.missed_cycles);
    let live = runs.iter().any(|r| r.1.stats.cycle.max > Span::ZERO);
    row("control cycles", &|s| seen(live || any_circuits, s.stats.cycles.to_string()));
    row("of these late / missed", &|s| {
        seen(behind, format!("{} / {}", s.stats.late_cycles, s.stats.missed_cycles))
    });
    let fallbacks = any(|s| s.stats.fallbacks);
    row("cycles decided by the fallback", &|s| seen(fallbacks, s.stats.fallbacks.to_string()));
    rows
}

/// Lists of a result, which have a row a coflow, job, task or link.
const LISTS: [&str; 6] = ["coflows", "jobs", "timeline", "explained", "decisions", "utilisation"];

/// A result that has lists.
pub trait HasLists: Serialize {
    /// The same with empty lists, which are not copied: a long run's take gigabytes.
    fn emptied(&self) -> Self;
}

impl HasLists for RunResult {
    fn emptied(&self) -> Self {
        Self {
            origin: self.origin.clone(),
            mechanism: self.mechanism.clone(),
            model: self.model.clone(),
            topology: self.topology.clone(),
            policy: self.policy.clone(),
            workload: self.workload.clone(),
            congestion: self.congestion.clone(),
            forced: self.forced,
            end: self.end,
            zero: self.zero,
            tampered: self.tampered.clone(),
            events: self.events,
            coflows: Vec::new(),
            summary: self.summary.clone(),
            utilisation: None,
            machine: self.machine.clone(),
            caveats: self.caveats.clone(),
        }
    }
}

impl HasLists for JobsResult {
    fn emptied(&self) -> Self {
        Self {
            origin: self.origin.clone(),
            mechanism: self.mechanism.clone(),
            topology: self.topology.clone(),
            policy: self.policy.clone(),
            placement: self.placement.clone(),
            workload: self.workload.clone(),
            grain: self.grain.clone(),
            forced: self.forced,
            end: self.end,
            zero: self.zero,
            tampered: self.tampered.clone(),
            events: self.events,
            jobs: Vec::new(),
            summary: self.summary.clone(),
            network: self.network.clone(),
            coflows: Vec::new(),
            timeline: Vec::new(),
            explained: Vec::new(),
            decisions: Vec::new(),
            utilisation: None,
            machine: self.machine.clone(),
            caveats: self.caveats.clone(),
        }
    }
}

/// A result without its lists.
fn without_lists(result: &impl HasLists) -> Value {
    let mut value: Value =
        serde_json::from_str(&json(&result.emptied())).expect("what was written is JSON");
    if let Some(object) = value.as_object_mut() {
        object.retain(|key, _| !LISTS.contains(&key.as_str()));
    }
    value
}

/// A result without its lists, for programs: as JSON, or as CSV with a row a number, whose key has
/// dots between its parts.
pub fn for_programs(result: &impl HasLists, output: OutputFormat) -> String {
    let value = without_lists(result);
    if output == OutputFormat::Json {
        return serde_json::to_string_pretty(&value).expect("plain data") + "\n";
    }
    let mut rows = TextTable::new(&["key", "value"]);
    flat(&mut rows, "", &value);
    rows.csv()
}

fn flat(rows: &mut TextTable, key: &str, value: &Value) {
    let inner = |k: &str| if key.is_empty() { k.to_owned() } else { format!("{key}.{k}") };
    match value {
        Value::Object(all) => all.iter().for_each(|(k, v)| flat(rows, &inner(k), v)),
        Value::Array(all) => {
            all.iter().enumerate().for_each(|(k, v)| flat(rows, &inner(&k.to_string()), v))
        }
        Value::Null => rows.rows.push(vec![key.into(), String::new()]),
        Value::String(text) => rows.rows.push(vec![key.into(), text.clone()]),
        other => rows.rows.push(vec![key.into(), other.to_string()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::record::PlaneDark;

    fn names(rows: &TextTable) -> Vec<&str> {
        rows.rows.iter().map(|r| r[0].as_str()).collect()
    }

    fn run() -> RunResult {
        let text = crate::testing::shipped("tests/results/coflows-1.json");
        serde_json::from_value(
            crate::runtime::report::form::current(serde_json::from_str(&text).unwrap()).unwrap(),
        )
        .unwrap()
    }

    #[test]
    fn rows_of_what_did_not_happen_are_left_out() {
        let mut s = run().summary;
        (s.late_packets, s.misdelivered, s.stats.late_cycles, s.stats.missed_cycles) = (0, 0, 0, 0);
        (s.stats.circuits_set, s.ocs_share, s.stats.cycle) = (0, 0.0, Quantiles::default());
        s.stats.dark_achieved = Quantiles::default();
        let packets = summary(&s);
        assert_eq!(
            names(&packets),
            [
                "coflows finished",
                "makespan",
                "average CCT",
                "median CCT",
                "p95 CCT",
                "bytes received / asked",
                "circuits set"
            ],
            "packets alone"
        );
        let lit = Summary { ocs_share: 0.25, ..s.clone() };
        assert!(names(&summary(&lit)).contains(&"OCS share"));
        let mut bad = s.clone();
        (bad.late_packets, bad.misdelivered, bad.stats.missed_cycles, bad.stats.fallbacks) =
            (1, 2, 3, 4);
        let told = summary(&bad);
        for row in [
            ["packets sent back late", "1"],
            ["packets misdelivered", "2"],
            ["of these late / missed", "0 / 3"],
        ] {
            assert!(told.rows.iter().any(|r| *r == row), "{row:?} in {told:?}");
        }
        // Beside a run in which something happened, the other says that nothing did.
        let both = of_runs(&[("a", &s), ("b", &bad)]);
        assert!(
            both.rows.contains(&vec!["packets misdelivered".into(), "0".into(), "2".into()]),
            "{both:?}"
        );
    }

    #[test]
    fn planes_of_different_dark_times_have_a_row_each() {
        let mut s = run().summary;
        let q = |ms: u64| Quantiles {
            count: 1,
            p50: Span::millis(ms),
            p99: Span::millis(ms),
            max: Span::millis(ms),
        };
        (s.stats.dark_asked, s.stats.dark_achieved) = (q(10), q(20));
        assert!(names(&summary(&s)).contains(&"dark time asked p50 / achieved p50, p99"));
        let plane = |plane, ms| PlaneDark { plane, asked: q(ms), achieved: q(ms) };
        s.stats.dark_by_plane = vec![plane(0, 10), plane(1, 20)];
        let rows = summary(&s);
        let dark: Vec<&Vec<String>> =
            rows.rows.iter().filter(|r| r[0].contains("dark time")).collect();
        assert_eq!(
            dark,
            [
                &["plane 0: dark time asked p50 / achieved p50, p99", "10ms / 10ms, 10ms"],
                &["plane 1: dark time asked p50 / achieved p50, p99", "20ms / 20ms, 20ms"]
            ]
        );
    }

    #[test]
    fn programs_get_the_result_without_its_lists() {
        let r = run();
        let value: Value = serde_json::from_str(&for_programs(&r, OutputFormat::Json)).unwrap();
        assert!(LISTS.iter().all(|l| value.get(l).is_none()), "{value}");
        let whole: Value = serde_json::from_str(&json(&r)).unwrap();
        assert_eq!(
            (&value["summary"], &value["policy"], &value["format"]),
            (&whole["summary"], &whole["policy"], &whole["format"])
        );
        let csv = for_programs(&r, OutputFormat::Csv);
        let line = format!("summary.average_cct_ns,{}\n", r.summary.average_cct.0);
        assert!(
            csv.starts_with("key,value\n")
                && csv.contains(&line)
                && csv.contains("summary.stats.cycle.p50_ns,"),
            "{csv}"
        );
    }

    #[test]
    fn a_caption_says_what_was_run() {
        let mut r = run();
        (r.workload, r.topology, r.policy, r.mechanism) =
            ("w".into(), "t".into(), "p".into(), "sim".into());
        (r.congestion, r.origin.seed) = ("-".into(), Some(7));
        assert_eq!(caption(&r), "w on t, policy p, mechanism sim, seed 7");
        (r.congestion, r.origin.seed, r.mechanism) = ("cubic".into(), None, "timed".into());
        assert_eq!(caption(&r), "w on t, policy p, mechanism timed, TCP cubic");
        r.end = RunEnd::Stopped;
        assert!(
            caption(&r).ends_with("cubic; interrupted: times are of what finished"),
            "{}",
            caption(&r)
        );
    }
}
