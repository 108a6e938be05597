//! `heliostat plan circuits`: a demand matrix through a circuit scheduler.

use std::path::PathBuf;

use serde::Serialize;

use crate::circuits::clearing::{Clearing, ClearingOptions, Failed, clear};
use crate::cli::files::read_bytes;
use crate::cli::plot::circuits;
use crate::cli::plot::input::{CircuitBar, CircuitBars};
use crate::cli::tables::{self, TextTable};
use crate::cli::{CliError, OutputFormat, print, write_sheet};
use crate::coflows::bounds;
use crate::config::matrix;
use crate::control::policy::SchedulerKind;
use crate::demand::DemandMatrix;
use crate::draw;
use crate::draw::paper::PaperSize;
use crate::ids::PlaneId;
use crate::topology::{Plane, StopMode};
use crate::units::{BitRate, Bytes, Span, Time};

/// Plans circuits for a demand matrix: the timetable, its completion time, the lower bound and
/// their ratio
///
/// Algorithms that plan ahead (bvn, solstice, eclipse, sunflow and their kin) are asked once for
/// the whole matrix, all others again and again until the demand has been carried. So are those
/// that plan ahead on duplex planes, and sunflow on all-stop ones. All ports are dark at first.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Bytes by sending and receiving rack: CSV, JSON, or the binary .dm form (docs/circuits.md)
    #[arg(long, value_name = "FILE")]
    matrix: PathBuf,
    /// The circuit scheduler, by its name in a policy
    #[arg(long, value_name = "NAME", value_parser = scheduler)]
    algorithm: SchedulerKind,
    /// Reconfiguration delay
    #[arg(long, default_value = "10ms")]
    delta: Span,
    /// Rate of a circuit
    #[arg(long, default_value = "100Gb/s", value_parser = rate)]
    rate: BitRate,
    /// Equal optical planes: circuits that a port may have at once
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    planes: u32,
    /// A rack's rate on the electrical network beside the circuits; 0b/s for none
    #[arg(long, default_value = "0b/s")]
    eps: BitRate,
    /// Which ports go dark when some change
    #[arg(long, default_value = "not-all-stop", value_parser = stop_mode)]
    stop_mode: StopMode,
    /// A circuit comes in both directions
    #[arg(long)]
    duplex: bool,
    /// Time from one decision to the next [default: 100ms; algorithms that plan ahead decide once,
    /// and tms takes the busiest port's time]
    #[arg(long)]
    interval: Option<Span>,
    /// What is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    /// Draws the ports over time into this file (.svg, .png or .pdf)
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    paper: PaperSize,
}

/// A name as a policy file has it.
pub(super) fn named<T: serde::de::DeserializeOwned>(name: &str) -> Result<T, String> {
    let e = match serde_json::from_value(serde_json::Value::String(name.into())) {
        Ok(value) => return Ok(value),
        Err(e) => e.to_string(),
    };
    Err(e.replace("unknown variant ", "unknown name ").replace(", expected one of ", "; allowed: "))
}

fn scheduler(name: &str) -> Result<SchedulerKind, String> {
    named(name)
}

fn stop_mode(name: &str) -> Result<StopMode, String> {
    named(name)
}

fn rate(text: &str) -> Result<BitRate, String> {
    let rate: BitRate = text.parse().map_err(|e| format!("{e}"))?;
    if rate == BitRate::ZERO { Err("a circuit needs a rate above zero".into()) } else { Ok(rate) }
}

/// A plan as `-o json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct CircuitsPlanReport {
    algorithm: SchedulerKind,
    racks: usize,
    demand_bytes: Bytes,
    planes: u32,
    rate_bps: BitRate,
    delta_ns: Span,
    eps_bps: BitRate,
    stop_mode: StopMode,
    duplex: bool,
    decisions: usize,
    /// Absent when the algorithm never gets through.
    completion_ns: Option<Span>,
    lower_bound_ns: Span,
    ratio: Option<f64>,
    over_circuits_bytes: Bytes,
    over_eps_bytes: Bytes,
    left_bytes: Bytes,
    circuits: Vec<PlannedCircuit>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct PlannedCircuit {
    plane: u32,
    from: u32,
    to: u32,
    setup_at_ns: u64,
    up_from_ns: u64,
    until_ns: u64,
    bytes: Bytes,
}

/// Runs the subcommand.
///
/// # Errors
/// A matrix that cannot be read, or a file that cannot be written.
pub fn run(args: &Args) -> Result<(), CliError> {
    let file = args.matrix.display().to_string();
    let content = read_bytes(&args.matrix, matrix::MAX_BYTES)?;
    let demand = matrix::read(&content, &file)?;
    let clearing = plan(args, &demand)?;
    let report = report(args, &demand, &clearing);
    if let Some(file) = &args.svg {
        write_sheet(
            &picture(&report).titled(format!("Circuits: {}", name(&report)), &args.paper),
            file,
            args.paper.dpi(),
        )?;
    }
    print(&render(&report, args.output))
}

fn plane(args: &Args, id: u32) -> Plane {
    Plane {
        id: PlaneId(id),
        rate: args.rate,
        delta: args.delta,
        stop: args.stop_mode,
        duplex: args.duplex,
    }
}

fn plan(args: &Args, demand: &DemandMatrix) -> Result<Clearing, CliError> {
    let planes: Vec<Plane> = (0..args.planes).map(|id| plane(args, id)).collect();
    let own = match args.algorithm {
        // Its period is cut to the demand: else all of it, however little, is spread over the whole
        // interval.
        SchedulerKind::Tms => {
            bounds::circuits(demand, &plane(args, 0), args.planes.into(), BitRate(0))
        }
        other if other.build().plans_ahead(&plane(args, 0)) => Span::MAX,
        _ => Span::millis(100),
    };
    let interval = args.interval.unwrap_or(own).max(Span(1));
    let setting = ClearingOptions { planes: &planes, eps: args.eps, interval };
    clear(&mut *args.algorithm.build(), demand, &setting).map_err(|e| match e {
        Failed::Clash(clash) => CliError::Failed(format!("{}: {clash}", args.algorithm.name())),
        endless => CliError::Usage(format!(
            "{}: {endless}; a longer --interval needs fewer",
            args.algorithm.name()
        )),
    })
}

fn report(args: &Args, demand: &DemandMatrix, c: &Clearing) -> CircuitsPlanReport {
    let bound = bounds::circuits(demand, &plane(args, 0), args.planes.into(), args.eps);
    let circuit = |(r, bytes): &(crate::circuits::timetable::Reservation, Bytes)| PlannedCircuit {
        plane: r.plane.0,
        from: r.input.0,
        to: r.output.0,
        setup_at_ns: r.setup_at.0,
        up_from_ns: r.up_from.0,
        until_ns: r.until.0,
        bytes: *bytes,
    };
    CircuitsPlanReport {
        algorithm: args.algorithm,
        racks: demand.racks(),
        demand_bytes: Bytes(demand.total()),
        planes: args.planes,
        rate_bps: args.rate,
        delta_ns: args.delta,
        eps_bps: args.eps,
        stop_mode: args.stop_mode,
        duplex: args.duplex,
        decisions: c.decisions,
        completion_ns: c.completion,
        lower_bound_ns: bound,
        ratio: c.completion.and_then(|t| tables::ratio(t, bound)),
        over_circuits_bytes: c.circuits.iter().map(|x| x.1).sum(),
        over_eps_bytes: c.over_eps,
        left_bytes: c.left,
        circuits: c.circuits.iter().map(circuit).collect(),
    }
}

/// The algorithm's name, as policy files have it.
fn name(r: &CircuitsPlanReport) -> String {
    let name = serde_json::to_value(r.algorithm).expect("a name");
    name.as_str().unwrap_or_default().into()
}

/// The ports over time.
fn picture(r: &CircuitsPlanReport) -> draw::gantt::GanttChart {
    let bar = |c: &PlannedCircuit| CircuitBar {
        plane: c.plane,
        input: c.from,
        setup_at: Time(c.setup_at_ns),
        up_from: Time(c.up_from_ns),
        until: Time(c.until_ns),
        output: c.to,
        bytes: Some(c.bytes.0),
        demand: None,
    };
    let bars: Vec<CircuitBar> = r.circuits.iter().map(bar).collect();
    let end = bars
        .iter()
        .map(|b| b.until)
        .max()
        .unwrap_or(Time::ZERO)
        .max(Time(r.completion_ns.map_or(0, |s| s.0)));
    circuits::chart(&CircuitBars { bars, end })
}

fn render(r: &CircuitsPlanReport, output: OutputFormat) -> String {
    match output {
        OutputFormat::Table => format!("{}\n\n{}\n", listed(r, false).table(), sums(r).table()),
        OutputFormat::Json => tables::json(r),
        OutputFormat::Csv => listed(r, true).csv(),
    }
}

fn listed(r: &CircuitsPlanReport, exact: bool) -> TextTable {
    let people = ["plane", "from", "to", "set up at", "up from", "until", "carries"];
    let programs = ["plane", "from", "to", "setup_at_ns", "up_from_ns", "until_ns", "bytes"];
    let mut rows = TextTable::new(if exact { &programs } else { &people });
    for c in &r.circuits {
        let time = |t: u64| tables::length(exact, t);
        let bytes = if exact { c.bytes.0.to_string() } else { tables::bytes(c.bytes) };
        let [a, b, e] = [c.setup_at_ns, c.up_from_ns, c.until_ns].map(time);
        rows.rows.push(vec![
            c.plane.to_string(),
            c.from.to_string(),
            c.to.to_string(),
            a,
            b,
            e,
            bytes,
        ]);
    }
    rows
}

fn sums(r: &CircuitsPlanReport) -> TextTable {
    let mut rows = TextTable::new(&["summary", ""]);
    let mut row = |name: &str, value: String| rows.rows.push(vec![name.into(), value]);
    row("algorithm", name(r));
    row("racks", r.racks.to_string());
    row("demand", tables::bytes(r.demand_bytes));
    row("over circuits", tables::bytes(r.over_circuits_bytes));
    if r.eps_bps > BitRate::ZERO {
        row("over the EPS", tables::bytes(r.over_eps_bytes));
    }
    row("circuits set", r.circuits.len().to_string());
    row("decisions", r.decisions.to_string());
    row(
        "completion time",
        r.completion_ns
            .map_or(format!("never: {} are left", tables::bytes(r.left_bytes)), tables::span),
    );
    row("lower bound", tables::span(r.lower_bound_ns));
    row("completion / bound", r.ratio.map_or("-".into(), |x| format!("{x:.3}")));
    rows
}

#[cfg(test)]
mod tests;
