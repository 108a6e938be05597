//! `heliostat plot`: charts of results, as SVG, PNG or PDF, without a network or a font of the
//! system.

use std::path::{Path, PathBuf};

use super::apart::{self, Grouping, Pool, RunKeys};
use super::compare::groups;
use super::log::say;
use super::{CliError, can_draw, print, results, rows, write_sheet};
use crate::draw::Sheet;
use crate::draw::chart::ChartStyle;
use crate::draw::gantt::GanttChart;
use crate::draw::paper::PaperSize;
use crate::runtime::report::caveats::explained;
use crate::runtime::study::AnyResult;
use input::PlotInput;

mod cdf;
pub(super) mod circuits;
pub(super) mod input;
mod normalised;
mod series;
mod swept;

/// Draws results as charts: completion times, utilisation, circuits
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Results (run --json, simulate --json, -o json; of several runs, one line a policy),
    /// directories that `heliostat sweep` filled, event logs (run --events, simulate --events) or
    /// plans (plan circuits -o json). Several results are laid over each other
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// What is drawn [default: cct of results, circuits of event logs and plans]
    #[arg(long, value_enum)]
    kind: Option<ChartKind>,
    /// Where to; the name ends in .svg, .png or .pdf, or is `-`: stdout, as SVG
    #[arg(long, value_name = "FILE", default_value = "plot.svg")]
    to: PathBuf,
    /// Names of the files' lines, in their order [default: what tells them apart]
    #[arg(long, value_name = "TEXT")]
    label: Vec<String>,
    /// Title; none if empty [default: the kind, and what all files have in common]
    #[arg(long)]
    title: Option<String>,
    /// Of utilisation: single links, by their names in the result, such as r3.up, r3.down, ocs0,
    /// local [default: sums by kind of link]
    #[arg(long, value_name = "NAME")]
    link: Vec<String>,
    /// Of sweep: the key along the axis, such as scale or ocs.0.delta [default: the only one whose
    /// values are numbers]
    #[arg(long, value_name = "KEY")]
    x: Option<String>,
    /// Of sweep: the figure, by its name in comparisons, such as "p95 CCT" [default: average CCT,
    /// or average JCT]
    #[arg(long, value_name = "NAME")]
    figure: Option<String>,
    /// Logarithmic axis of times (cct, jct), or of ratios (normalised)
    #[arg(long)]
    log_scale: bool,
    #[command(flatten)]
    pool: Pool,
    #[command(flatten)]
    paper: PaperSize,
}

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ChartKind {
    /// Share of the coflows that are finished within a time
    Cct,
    /// Share of the jobs that are finished within a time
    Jct,
    /// Mean completion times over those of the first policy, by class of size, with 95 % intervals
    /// of repeated runs
    Normalised,
    /// The same of 95th percentiles
    NormalisedP95,
    /// What links carried of what they can carry, from results; shares of OCS ports with light,
    /// from event logs and plans
    Utilisation,
    /// Demand that the controller saw, from event logs
    Demand,
    /// Circuits over time: sending and receiving racks
    Circuits,
    /// Tasks of jobs on their slots over time
    Timeline,
    /// A figure of comparisons over a key in which runs differ (--x, --figure), a line a policy,
    /// with 95 % intervals
    Sweep,
}

/// Runs the subcommand.
///
/// # Errors
/// Files that cannot be read, hold nothing of the kind that is asked for, or cannot be written.
pub fn run(a: &Args) -> Result<(), CliError> {
    if a.to != Path::new("-") {
        can_draw(&a.to)?;
    }
    if a.kind == Some(ChartKind::Sweep) {
        if a.log_scale {
            return Err(CliError::Usage(
                "--log-scale is not of --kind sweep, whose axis follows its values".into(),
            ));
        }
        let read = all_results(&a.files)?;
        let swept =
            swept::Swept::new(&read, &a.pool, &a.label, (a.x.as_deref(), a.figure.as_deref()))?;
        let look = ChartStyle {
            title: a.title.clone().unwrap_or_else(|| swept.title()),
            log: false,
            paper: a.paper.clone(),
        };
        return write(a, &swept.draw(&look));
    }
    if a.x.is_some() || a.figure.is_some() {
        return Err(CliError::Usage("--x and --figure are of --kind sweep".into()));
    }
    let mut inputs = Vec::new();
    for file in &a.files {
        inputs.extend(read(file, &a.pool)?);
    }
    a.pool.check(inputs.iter().map(|i| &i.keys))?;
    let inputs = input::paired(inputs, |i| i);
    let kind = a.kind.unwrap_or(if inputs[0].ccts.is_some() {
        ChartKind::Cct
    } else {
        ChartKind::Circuits
    });
    if a.log_scale
        && !matches!(
            kind,
            ChartKind::Cct | ChartKind::Jct | ChartKind::Normalised | ChartKind::NormalisedP95
        )
    {
        return Err(CliError::Usage(
            "--log-scale is of completion times: --kind cct, jct, normalised or normalised-p95"
                .into(),
        ));
    }
    let title = a.title.clone().unwrap_or_else(|| title(kind, &inputs));
    let chart = match kind {
        ChartKind::Normalised | ChartKind::NormalisedP95 => {
            ChartData::Bars(bars(a, kind == ChartKind::NormalisedP95)?)
        }
        _ => ChartData::of(kind, &inputs, labels(&inputs, &a.label)?, &a.link)
            .map_err(CliError::Invalid)?,
    };
    let look = ChartStyle { title, log: a.log_scale, paper: a.paper.clone() };
    write(a, &chart.draw(&look))
}

fn write(a: &Args, sheet: &Sheet) -> Result<(), CliError> {
    if a.to == Path::new("-") {
        return print(&sheet.svg());
    }
    write_sheet(sheet, &a.to, a.paper.dpi())?;
    say!("wrote {}", a.to.display());
    Ok(())
}

fn all_results(files: &[PathBuf]) -> Result<Vec<(&Path, Vec<AnyResult>)>, CliError> {
    files.iter().map(|f| Ok((f.as_path(), results::read(f)?))).collect()
}

/// All results held against the first policy's of their table, as `compare` does.
fn bars(a: &Args, p95: bool) -> Result<normalised::Bars, CliError> {
    let read = all_results(&a.files)?;
    let how = Grouping { by: None, pool: a.pool.clone() };
    normalised::Bars::new(&groups::studies(&read, &how, &a.label, None)?, p95)
        .map_err(CliError::Invalid)
}

/// A file's inputs; of a directory of results, one for all that differ in their seed alone.
fn read(file: &Path, pool: &Pool) -> Result<Vec<PlotInput>, CliError> {
    let of = |file: &Path| {
        input::read(&rows::text(file)?, &file.display().to_string(), pool)
            .map_err(CliError::Invalid)
    };
    if !file.is_dir() {
        return of(file);
    }
    let all: Vec<Vec<PlotInput>> =
        results::files_in(file)?.iter().map(|f| of(f)).collect::<Result<_, _>>()?;
    let all: Vec<PlotInput> = all.into_iter().flatten().collect();
    let mut pools = input::pooled(all, pool);
    pools.iter_mut().for_each(|p| p.file = file.display().to_string());
    if pools.is_empty() {
        Err(CliError::Invalid(format!("{}: no results (*.json) in this directory", file.display())))
    } else {
        Ok(pools)
    }
}

/// A chart with its data.
enum ChartData {
    Cdf(cdf::Cdf),
    Lines(series::LineChart),
    Rows(GanttChart),
    Bars(normalised::Bars),
}

impl ChartData {
    fn of(
        kind: ChartKind,
        inputs: &[PlotInput],
        labels: Vec<String>,
        links: &[String],
    ) -> Result<Self, String> {
        let lacks = |i: &PlotInput, what: &str| {
            format!("{}: no {what} in it; it has: {}", i.file, i.holds())
        };
        let named = inputs.iter().zip(labels);
        let only = |what: &str| {
            if let [one] = inputs { Ok(one) } else { Err(format!("{what} are drawn of one file")) }
        };
        match kind {
            // Those that are drawn of comparisons are drawn above.
            ChartKind::Cct
            | ChartKind::Normalised
            | ChartKind::NormalisedP95
            | ChartKind::Sweep => {
                let all = named.map(|(i, l)| {
                    i.ccts.clone().map(|c| (l, c)).ok_or_else(|| lacks(i, "coflows"))
                });
                Ok(Self::Cdf(cdf::Cdf::new(
                    "Coflow completion time",
                    "coflows",
                    all.collect::<Result<_, _>>()?,
                )))
            }
            ChartKind::Jct => {
                let all = named
                    .map(|(i, l)| i.jcts.clone().map(|c| (l, c)).ok_or_else(|| lacks(i, "jobs")));
                Ok(Self::Cdf(cdf::Cdf::new(
                    "Job completion time",
                    "jobs",
                    all.collect::<Result<_, _>>()?,
                )))
            }
            ChartKind::Utilisation => {
                let unknown = |i: &PlotInput| {
                    i.utilisation
                        .as_ref()
                        .and_then(|u| links.iter().find(|n| u.links.iter().all(|l| l.name != **n)))
                };
                let what = |i: &PlotInput| {
                    unknown(i)
                        .map_or("utilisation or circuits".into(), |name| format!("link {name}"))
                };
                // A name before the lines of the only file would say what its title says.
                let prefix = |label: String| {
                    if inputs.len() > 1 { format!("{label}: ") } else { String::new() }
                };
                let of = |i: &PlotInput, l: String| {
                    if unknown(i).is_some() {
                        None
                    } else {
                        series::utilisation(i, links, &prefix(l))
                    }
                };
                let all = named.map(|(i, l)| of(i, l).ok_or_else(|| lacks(i, &what(i))));
                let all = all.collect::<Result<Vec<_>, _>>()?.concat();
                // An event log tells which ports had light, and not what they carried.
                let carried = inputs.iter().any(|i| i.utilisation.is_some());
                let axis = if carried { "Utilisation" } else { "OCS ports with light" };
                Ok(Self::Lines(series::LineChart { axis: axis.into(), percent: true, lines: all }))
            }
            ChartKind::Demand => {
                let named =
                    named.map(|(i, l)| (i, if inputs.len() > 1 { l } else { String::new() }));
                let all = named.map(|(i, l)| {
                    i.demand.clone().map(|d| (l, d)).ok_or_else(|| lacks(i, "event log"))
                });
                Ok(Self::Lines(series::LineChart {
                    axis: "Demand".into(),
                    percent: false,
                    lines: all.collect::<Result<_, _>>()?,
                }))
            }
            ChartKind::Circuits => {
                let input = only("circuits")?;
                let what = "circuits (give the event log of run or simulate --events, or plan circuits -o json)";
                input
                    .circuits
                    .as_ref()
                    .map(|c| Self::Rows(circuits::chart(c)))
                    .ok_or_else(|| lacks(input, what))
            }
            ChartKind::Timeline => {
                let input = only("tasks")?;
                let lacking = || {
                    lacks(
                        input,
                        "timeline of tasks (give the result of run --schedule, schedule or simulate --jobs)",
                    )
                };
                input.timeline.as_ref().map(|t| Self::Rows(t.chart(None))).ok_or_else(lacking)
            }
        }
    }

    fn draw(&self, look: &ChartStyle) -> Sheet {
        match self {
            Self::Cdf(c) => c.draw(look),
            Self::Lines(c) => c.draw(look),
            Self::Rows(c) => c.draw(look),
            Self::Bars(c) => c.draw(look),
        }
    }
}

/// What tells lines apart, as rows of comparisons are named; with the caveats of their runs.
pub(super) fn labels(inputs: &[PlotInput], given: &[String]) -> Result<Vec<String>, CliError> {
    if !given.is_empty() {
        let fits = given.len() == inputs.len();
        let marked =
            given.iter().zip(inputs).map(|(name, input)| explained(name, &input.caveats()));
        return if fits {
            Ok(marked.collect())
        } else {
            Err(CliError::Usage("as many --label as lines, please".into()))
        };
    }
    let files = apart::files(&inputs.iter().map(|i| Path::new(&i.file)).collect::<Vec<_>>());
    let keys: Vec<RunKeys> =
        inputs.iter().zip(&files).map(|(i, file)| i.keys.clone().in_file(file)).collect();
    let names = apart::labels(&keys.iter().collect::<Vec<_>>());
    let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
    let names = if distinct.len() == names.len() { names } else { files };
    let told = |(name, input): (String, &PlotInput)| {
        let runs = if input.runs > 1 { format!("{name}, {} runs", input.runs) } else { name };
        explained(&runs, &input.caveats())
    };
    Ok(names.into_iter().zip(inputs).map(told).collect())
}

fn stem(i: &PlotInput) -> String {
    PathBuf::from(&i.file).file_stem().map_or(i.file.clone(), |s| s.to_string_lossy().into_owned())
}

fn title(kind: ChartKind, inputs: &[PlotInput]) -> String {
    let what = match kind {
        ChartKind::Cct => "Coflow completion times",
        ChartKind::Jct => "Job completion times",
        ChartKind::Normalised | ChartKind::NormalisedP95 => "Normalised completion times",
        ChartKind::Utilisation if inputs.iter().all(|i| i.utilisation.is_none()) => {
            "OCS ports with light"
        }
        ChartKind::Utilisation => "Utilisation",
        ChartKind::Demand => "Demand",
        ChartKind::Circuits => "Circuits",
        ChartKind::Timeline => "Tasks",
        ChartKind::Sweep => "Sweep",
    };
    let first = &inputs[0].about;
    let common = (0..first.len()).filter(|&k| {
        !first[k].is_empty() && inputs.iter().all(|i| i.about.get(k) == Some(&first[k]))
    });
    // The policy that places tasks may be the one that sets circuits.
    let mut common: Vec<&str> = common.map(|k| first[k].as_str()).collect();
    let mut seen = std::collections::BTreeSet::new();
    common.retain(|part| seen.insert(*part));
    let text = match (&common[..], inputs) {
        ([], [only]) => format!("{what}: {}", stem(only)),
        ([], _) => what.into(),
        _ => format!("{what}: {}", common.join(", ")),
    };
    // What has no legend says in its title what its run is not.
    let bare = matches!(
        kind,
        ChartKind::Utilisation | ChartKind::Demand | ChartKind::Circuits | ChartKind::Timeline
    );
    match inputs {
        [only] if bare => explained(&text, &only.caveats()),
        _ => text,
    }
}

#[cfg(test)]
mod tests;
