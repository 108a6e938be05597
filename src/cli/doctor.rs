//! `heliostat doctor`: what this kernel lacks, and what this machine can really carry.

use std::process::{Command, Stdio};

use serde::Serialize;

use super::log::say;
use super::tables::{self, TextTable};
use super::{CliError, print, user_namespace};
use crate::config;
use crate::config::shipped::Shelf;
use crate::kernel::features::{self, Feature, Need};
use crate::kernel::msg::Tcp;
use crate::kernel::scale::Capacity;
use crate::kernel::{Mechanism, ownership, rights, sys};
use crate::runtime::measure::loads::{self, CarriedFlows};
use crate::runtime::measure::switches::{self, Built, Goodput, ListChangeTimes};
use crate::runtime::measure::{self, CircuitLook};
use crate::runtime::report::MOST_OF_OTHERS;
use crate::topology::Topology;
use crate::units::{BitRate, Span};

mod machine;

/// Tries what an emulation needs of this kernel, and measures the rates and sizes that this machine
/// can really carry
///
/// What was measured on an otherwise idle machine is left for `run`, which refuses networks that
/// ask for more. Takes about half a minute.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only tries the kernel's features
    #[arg(long)]
    no_measure: bool,
    /// Also measures networks of packet switches: goodput through one, three and five of them,
    /// processor time, building the shipped ones and what they carry, changes of lists. Two minutes
    /// more
    #[arg(long, conflicts_with = "no_measure")]
    switches: bool,
    /// How the result is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: DoctorOutput,
}

/// How the result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
enum DoctorOutput {
    /// For people
    #[default]
    Table,
    /// Everything, for programs
    Json,
    /// What was measured, as tables for documents
    Markdown,
}

/// How long the search for the limits may take.
const SEARCH: Span = Span::secs(20);

/// What the doctor found.
#[derive(Debug, Serialize)]
struct DoctorReport {
    features: Vec<Feature>,
    /// What `run` will use; `None` if nothing can run.
    mechanism: Option<&'static str>,
    looks: Vec<CircuitLook>,
    capacity: Option<Capacity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    switches: Option<SwitchMeasures>,
    remarks: Vec<String>,
}

/// What was measured of networks of packet switches.
#[derive(Debug, Serialize)]
struct SwitchMeasures {
    goodput: Vec<Goodput>,
    built: Vec<Built>,
    carried: Vec<CarriedFlows>,
    changes: ListChangeTimes,
}

/// Runs the subcommand.
///
/// # Errors
/// When nothing can run here, or measuring fails half-way.
pub fn run(args: &Args) -> Result<(), CliError> {
    // Before a user namespace is entered: there, every user is root.
    let base = ownership::base();
    let mininet = mininet();
    let mut report = DoctorReport {
        features: vec![rights()],
        mechanism: None,
        looks: vec![],
        capacity: None,
        switches: None,
        remarks: vec![],
    };
    if report.features[0].ok {
        report.features.extend(features::probe());
    }
    report.features.push(mininet);
    report.mechanism = mechanism(&report.features).map(Mechanism::name);
    if args.output == DoctorOutput::Table {
        print(&format!(
            "{}\n\n{}\n\n{}\n",
            machine::line(),
            features_table(&report.features),
            verdict(&report)
        ))?;
    }
    let result = match mechanism(&report.features) {
        None => Err(CliError::Failed("nothing can run here: see what is missing above".into())),
        Some(_) if args.no_measure => Ok(()),
        Some(m) => measured(&mut report, m, &base, args.output).and_then(|()| {
            if args.switches { through_switches(&mut report, m, args.output) } else { Ok(()) }
        }),
    };
    if args.output == DoctorOutput::Json {
        print(&tables::json(&report))?;
    }
    result
}

/// Root or its capabilities, or else a user namespace, which is entered.
fn rights() -> Feature {
    let (ok, found, remedy) = if let Some(missing) = rights::missing_of_some() {
        (false, format!("this process lacks {missing}"), user_namespace::GIVE)
    } else if sys::is_root() {
        (true, "root".to_owned(), "")
    } else if rights::suffice() {
        (true, "not root; the capabilities for it".to_owned(), "")
    } else {
        match sys::become_namespace_root() {
            Ok(()) => (true, "not root; a user namespace".into(), ""),
            Err(e) => {
                (false, format!("not root, and no user namespace: {e}"), user_namespace::REMEDY)
            }
        }
    };
    Feature { name: "rights", need: Need::Run, ok, found, remedy }
}

fn mininet() -> Feature {
    let has = |python: &str| {
        let mut c = Command::new(python);
        c.args(["-c", "import mininet.net"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        c.status().is_ok_and(|s| s.success())
    };
    let ok = ["python3", "/usr/bin/python3"].into_iter().any(has);
    let found = if ok { String::new() } else { "python3 cannot import it".into() };
    let remedy = if ok { "" } else { "only mininet/hybrid.py needs it: apt install mininet" };
    Feature { name: "Mininet", need: Need::Better, ok, found, remedy }
}

/// What `run` will use.
fn mechanism(features: &[Feature]) -> Option<Mechanism> {
    let has = |need: Need| features.iter().filter(|f| f.need == need).all(|f| f.ok);
    match () {
        () if !has(Need::Run) => None,
        () if has(Need::Timed) => Some(Mechanism::Timed),
        () => has(Need::Netlink).then_some(Mechanism::Netlink),
    }
}

fn features_table(features: &[Feature]) -> String {
    let state = |f: &Feature| match (f.ok, f.need) {
        (true, _) => "ok",
        (false, Need::Run) => "MISSING",
        (false, _) => "missing",
    };
    let wide = features.iter().map(|f| f.name.len()).max().unwrap_or(0);
    let line = |f: &Feature| {
        let mut l = format!("{:wide$}  {:7}  {}", f.name, state(f), f.found);
        if !f.ok {
            l += &format!("\n{:wide$}           {}", "", f.remedy);
        }
        l.trim_end().to_owned()
    };
    let lines: Vec<String> = features.iter().map(line).collect();
    format!(
        "What a run needs of this machine (MISSING: nothing runs; missing: something less works)\n{}",
        lines.join("\n")
    )
}

fn verdict(report: &DoctorReport) -> String {
    match report.mechanism {
        Some(m) => format!("`heliostat run` will carry circuits by `{m}`."),
        None => "`heliostat run` cannot work here.".into(),
    }
}

/// Measures, prints the table, and leaves the note for `run`.
fn measured(
    report: &mut DoctorReport,
    m: Mechanism,
    base: &std::path::Path,
    output: DoctorOutput,
) -> Result<(), CliError> {
    for other in ownership::running(base) {
        report.remarks.push(format!(
            "the fabric {} is running: what it takes is missing from what was measured",
            other.fabric
        ));
    }
    let before = measure::others(Span::millis(400));
    let Tcp { congestion, .. } = Tcp::default();
    if report.features.iter().any(|f| f.name == congestion && !f.ok) {
        return Err(CliError::Failed(format!(
            "cannot measure without the congestion control {congestion}"
        )));
    }
    let failed = |e: std::io::Error| CliError::Failed(format!("measuring failed: {e}"));
    let tell = |l: &CircuitLook| {
        if output != DoctorOutput::Json {
            say!("{} racks at {}: the worst carried {:.1} %", l.racks, l.rate, l.worst * 100.0);
        }
    };
    let first = measure::look(4, BitRate::mbit(2500), m).map_err(failed)?;
    tell(&first);
    report.looks.push(first);
    let looks = &mut report.looks;
    let capacity = measure::capacity(m, SEARCH, |l| {
        tell(l);
        looks.push(l.clone());
    })
    .map_err(failed)?;
    let busy = before.max(measure::others(Span::millis(400)));
    let idle = busy < MOST_OF_OTHERS;
    if !idle {
        report.remarks.push(format!(
            "other programs take {:.0} % of the processors: what was measured is what they leave, and is not kept for `run`",
            busy * 100.0
        ));
    }
    if let Some(text) = output.text() {
        let looks = format!("{LOOKS}\n{}", text(&looks_table(&report.looks)));
        print(&format!(
            "\n{looks}\n\n{}\n\n{}\n",
            text(&capacity_table(&capacity)),
            fits(&capacity)
        ))?;
        report.remarks.iter().try_for_each(|r| print(&format!("{r}\n")))?;
    }
    if idle {
        capacity.note(base).map_err(|e| {
            CliError::Failed(format!("leave the result in {}: {e}", base.display()))
        })?;
    }
    report.capacity = Some(capacity);
    Ok(())
}

/// Rates of links that flows go through.
const RATES: [BitRate; 3] = [BitRate::mbit(10), BitRate::mbit(100), BitRate::mbit(1000)];
/// Rates of flows that networks carry.
const FLOWS: [BitRate; 2] = [BitRate::mbit(1000), BitRate::mbit(100)];
/// Larger networks take many seconds to build.
const MOST_LINKS: usize = 700;

impl DoctorOutput {
    /// How tables are written; not at all in JSON.
    fn text(self) -> Option<fn(&TextTable) -> String> {
        match self {
            Self::Table => Some(TextTable::table),
            Self::Markdown => Some(TextTable::markdown),
            Self::Json => None,
        }
    }
}

/// Measures networks of packet switches, and prints the tables.
fn through_switches(
    report: &mut DoctorReport,
    m: Mechanism,
    output: DoctorOutput,
) -> Result<(), CliError> {
    let failed =
        |e: std::io::Error| CliError::Failed(format!("measuring networks of switches failed: {e}"));
    let goodput = RATES
        .iter()
        .map(|&rate| switches::goodput(rate, m))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?
        .concat();
    let shipped = Shelf::Topologies
        .files()
        .map(|f| config::read_topology(f.text, f.name))
        .collect::<Result<Vec<_>, _>>()?;
    let few =
        |t: &&Topology| t.eps.graph().is_some_and(|g| g.cables.len() + t.hosts.len() <= MOST_LINKS);
    let built = shipped
        .iter()
        .filter(few)
        .map(|t| switches::build(t, m))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    let mut carried = vec![];
    for t in shipped.iter().filter(few) {
        for rate in FLOWS {
            let found = loads::carried(t, rate, m).map_err(failed)?;
            if output != DoctorOutput::Json {
                say!("{}: {} flows of {rate} had their rate", t.name, found.flows);
            }
            carried.push(found);
        }
    }
    let found =
        SwitchMeasures { goodput, built, carried, changes: switches::changes(m).map_err(failed)? };
    if let Some(text) = output.text() {
        let asks = |b: &Built| {
            shipped
                .iter()
                .find(|t| t.name == b.network)
                .and_then(|t| report.capacity.as_ref()?.exceeded_by(t))
        };
        print(&format!("\n{}\n", switches_tables(&found, asks, text)))?;
    }
    report.switches = Some(found);
    Ok(())
}

fn switches_tables(
    s: &SwitchMeasures,
    too_much: impl Fn(&Built) -> Option<String>,
    text: fn(&TextTable) -> String,
) -> String {
    let processors = |p: Option<f64>| p.map_or("-".into(), |p| format!("{p:.3}"));
    let mut flows = TextTable::new(&[
        "links of",
        "switches",
        "of what the rate allows",
        "processors a Gb/s and link",
    ]);
    for g in &s.goodput {
        flows.rows.push(vec![
            g.rate.to_string(),
            g.switches.to_string(),
            format!("{:.1} %", g.share * 100.0),
            processors(g.processors),
        ]);
    }
    let mut built = TextTable::new(&[
        "network",
        "nodes",
        "links",
        "built in",
        "a link",
        "gone in",
        "a link",
        "all racks at once",
    ]);
    for b in &s.built {
        let each = |t: Span| Span(t.0 / b.links.max(1) as u64);
        let fits = if too_much(b).is_none() { "at full rate" } else { "slower than their links" };
        let times = [b.up, each(b.up), b.gone, each(b.gone)].map(tables::span);
        built.rows.push(
            [
                vec![b.network.clone(), b.nodes.to_string(), b.links.to_string()],
                times.to_vec(),
                vec![fits.into()],
            ]
            .concat(),
        );
    }
    let mut carried = TextTable::new(&[
        "network",
        "flows of",
        "at once",
        "in all",
        "links a flow",
        "processors a Gb/s and link",
    ]);
    for c in &s.carried {
        let at_once = if c.all { format!("{} (all hosts)", c.flows) } else { c.flows.to_string() };
        let (links, work) = (format!("{:.2}", c.links), processors(c.processors));
        carried.rows.push(vec![
            c.network.clone(),
            c.rate.to_string(),
            at_once,
            c.total.to_string(),
            links,
            work,
        ]);
    }
    let ListChangeTimes { median, p99 } = s.changes;
    let (median, p99) = (tables::span(median), tables::span(p99));
    let [flows, built, carried] = [flows, built, carried].map(|rows| text(&rows));
    format!(
        "{flows}\n\n{built}\n\n{carried}\n\na change of a list of five switches: half take at most {median}, 99 of 100 {p99}"
    )
}

/// What the table of looks is of.
const LOOKS: &str = "Measured: all racks send at once, and a scale is carried if each has its rate. In the order of the search; a scale that just fails\n\
                     is looked at once more.";

fn looks_table(looks: &[CircuitLook]) -> TextTable {
    let mut rows = TextTable::new(&[
        "racks",
        "circuits of",
        "all racks together",
        "average rack",
        "worst rack",
        "carried",
    ]);
    for l in looks {
        rows.rows.push(vec![
            l.racks.to_string(),
            l.rate.to_string(),
            l.total.to_string(),
            format!("{:.1} %", l.average * 100.0),
            format!("{:.1} %", l.worst * 100.0),
            if l.honest() { "yes" } else { "no" }.into(),
        ]);
    }
    rows
}

/// Which shipped networks this machine carries at full rate.
fn fits(c: &Capacity) -> String {
    let shipped =
        Shelf::Topologies.files().filter_map(|f| config::read_topology(f.text, f.name).ok());
    let (too_large, fit): (Vec<_>, Vec<_>) = shipped.partition(|t| c.exceeded_by(t).is_some());
    let names = |all: &[Topology]| {
        if all.is_empty() {
            "none".into()
        } else {
            all.iter().map(|t| &*t.name).collect::<Vec<_>>().join(", ")
        }
    };
    let lines = [
        ("Shipped topologies at full rate", &fit),
        ("Only slower than their links (--force)", &too_large),
    ];
    let lines = lines.map(|(what, all)| tables::wrapped(&format!("{what}: {}", names(all)), 2));
    format!("{}\n{}", lines.join("\n"), together(c))
}

/// The network of four racks that labs and the tutorial use.
const FOUR_RACKS: &str = "hybrid-4x2";

/// How many networks of four racks run at the same time, such as those of a class on one server.
fn together(c: &Capacity) -> String {
    let file = Shelf::Topologies.find(FOUR_RACKS).expect("it is shipped");
    let topology = config::read_topology(file.text, file.name).expect("what is shipped is valid");
    format!(
        "Networks of 4 racks ({FOUR_RACKS}) at full rate at the same time: {}",
        c.at_once(&topology)
    )
}

fn capacity_table(c: &Capacity) -> TextTable {
    let mut rows = TextTable::new(&["circuits of", "this machine carries at once"]);
    for (of, total) in
        [("1 Gb/s and more", c.fast), ("250 Mb/s and more", c.middle), ("less", c.slow)]
    {
        rows.rows.push(vec![of.into(), total.to_string()]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feature(need: Need, ok: bool) -> Feature {
        Feature { name: "f", need, ok, found: "why".into(), remedy: if ok { "" } else { "how" } }
    }

    #[test]
    fn the_mechanism_is_the_best_that_has_all_it_needs() {
        let all = |run, timed, netlink, better| {
            mechanism(&[
                feature(Need::Run, run),
                feature(Need::Timed, timed),
                feature(Need::Netlink, netlink),
                feature(Need::Better, better),
            ])
        };
        assert_eq!(all(true, true, true, true), Some(Mechanism::Timed));
        assert_eq!(all(true, true, false, false), Some(Mechanism::Timed));
        assert_eq!(all(true, false, true, false), Some(Mechanism::Netlink));
        assert_eq!(all(true, false, false, true), None);
        assert_eq!(all(false, true, true, true), None);
    }

    #[test]
    fn what_is_missing_is_told_with_its_remedy() {
        let text = features_table(&[feature(Need::Run, false), feature(Need::Better, true)]);
        assert!(
            text.starts_with("What a run needs of this machine")
                && text.ends_with("\nf  MISSING  why\n            how\nf  ok       why"),
            "{text}"
        );
    }

    #[test]
    fn shipped_networks_are_told_by_what_the_machine_carries() {
        let all = |rate: u64| Capacity {
            fast: BitRate(rate),
            middle: BitRate(rate),
            slow: BitRate(rate),
            measured: true,
        };
        let (none, every) = (fits(&all(1)), fits(&all(1 << 50)));
        assert!(none.contains("at full rate: none") && none.contains("hybrid-64x1"), "{none}");
        assert!(every.contains("hybrid-8x2") && every.contains("(--force): none\n"), "{every}");
        // Of 4 racks with 1 Gb/s by circuits and 100 Mb/s by the EPS each.
        let told = |gbit: u64| fits(&all(gbit * 1_000_000_000));
        assert!(
            told(4).ends_with("at the same time: 1") && told(3).ends_with("at the same time: 0")
        );
        assert!(
            told(20).ends_with("(hybrid-4x2) at full rate at the same time: 5"),
            "{}",
            told(20)
        );
    }

    #[test]
    fn the_first_line_is_of_the_machine() {
        let line = machine::line();
        assert!(
            line.starts_with("Heliostat ")
                && line.contains("; Linux ")
                && line.contains(" of memory"),
            "{line}"
        );
    }
}
