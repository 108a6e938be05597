//! `heliostat plot`: charts of results, as SVG or PNG, without a network or a font of the system.
//!
//! Text is measured, and drawn in PNG files, with DejaVu Sans, which is compiled in; SVG files name `sans-serif`, so that the viewer
//! takes its own.

use std::path::{Path, PathBuf};

use plotters::prelude::*;

use super::{CliError, read_result, results, write_bytes};
use input::Input;

pub(super) mod canvas;
mod cdf;
mod gantt;
pub(super) mod input;
mod lines;

/// Draws results as charts: completion times, utilisation, circuits
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Results (run --json, simulate --json, -o json; of several runs, one line a policy), directories that `heliostat sweep` filled,
    /// event logs (run --events, simulate --events) or plans (plan circuits -o json); several results are laid over each other
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// What is drawn [default: cct of results, circuits of event logs and plans]
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Where to; the name ends in .svg or .png
    #[arg(long, value_name = "FILE", default_value = "plot.svg")]
    to: PathBuf,
    /// Names of the files' lines, in their order [default: what tells them apart]
    #[arg(long, value_name = "TEXT")]
    label: Vec<String>,
    /// Title [default: the kind, and what all files have in common]
    #[arg(long)]
    title: Option<String>,
    /// Of utilisation: single links, by their names in the result, such as r3.up, r3.down, ocs0, local [default: sums by kind of link]
    #[arg(long, value_name = "NAME")]
    link: Vec<String>,
    /// Logarithmic axis of times
    #[arg(long)]
    log_scale: bool,
    /// Width and height in pixels
    #[arg(long, default_value = "1000x600", value_parser = size)]
    size: (u32, u32),
}

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Share of the coflows that are finished within a time
    Cct,
    /// Share of the jobs that are finished within a time
    Jct,
    /// What links carried of what they can carry, from results of simulations; shares of OCS ports with light, from event logs and plans
    Utilisation,
    /// Demand that the controller saw, from event logs
    Demand,
    /// Circuits over time: sending and receiving racks
    Circuits,
}

/// Everything but the data.
pub struct Look {
    /// Above the chart.
    pub title: String,
    /// Logarithmic axis of times.
    pub log: bool,
}

fn size(text: &str) -> Result<(u32, u32), String> {
    let (w, h) = text.split_once('x').ok_or("write width x height, such as 1000x600")?;
    let side = |s: &str| s.parse().ok().filter(|n| (200..=10_000).contains(n));
    side(w).zip(side(h)).ok_or_else(|| "each side is 200 to 10000 pixels".into())
}

/// Runs the subcommand.
///
/// # Errors
/// Files that cannot be read, hold nothing of the kind that is asked for, or cannot be written.
pub fn run(a: &Args) -> Result<(), CliError> {
    let mut inputs = Vec::new();
    for file in &a.files {
        inputs.extend(read(file)?);
    }
    let kind = a.kind.unwrap_or(if inputs[0].ccts.is_some() { Kind::Cct } else { Kind::Circuits });
    let png = match a.to.extension().and_then(|e| e.to_str()) {
        Some("png") => true,
        Some("svg") => false,
        _ => return Err(CliError::Usage(format!("--to {}: the name must end in .svg or .png", a.to.display()))),
    };
    let labels = labels(&inputs, &a.label)?;
    let look = Look { title: a.title.clone().unwrap_or_else(|| title(kind, &inputs)), log: a.log_scale };
    let chart = Chart::of(kind, inputs, labels, &a.link).map_err(CliError::Invalid)?;
    let bytes =
        if png { canvas::png(a.size, |area| chart.draw(&area, &look)) } else { canvas::svg(a.size, |area| chart.draw(&area, &look)) };
    write_bytes(&a.to, &bytes.map_err(CliError::Failed)?)
}

/// A file's inputs; of a directory of results, one a policy.
fn read(file: &Path) -> Result<Vec<Input>, CliError> {
    let of = |file: &Path| input::read(&read_result(file)?, &file.display().to_string()).map_err(CliError::Invalid);
    if !file.is_dir() {
        return of(file);
    }
    let all: Vec<Vec<Input>> = results::files_in(file)?.iter().map(|f| of(f)).collect::<Result<_, _>>()?;
    let mut pools = input::pooled(all.into_iter().flatten().collect());
    pools.iter_mut().for_each(|p| p.file = file.display().to_string());
    if pools.is_empty() { Err(CliError::Invalid(format!("{}: no results (*.json) in this directory", file.display()))) } else { Ok(pools) }
}

/// A chart with its data.
enum Chart {
    Cdf(cdf::Cdf),
    Lines(lines::Lines),
    Gantt(gantt::Gantt),
}

impl Chart {
    fn of(kind: Kind, mut inputs: Vec<Input>, labels: Vec<String>, links: &[String]) -> Result<Self, String> {
        let lacks = |i: &Input, what: &str| format!("{}: no {what} in it; it has: {}", i.file, i.holds());
        let named = inputs.iter().zip(labels);
        match kind {
            Kind::Cct => {
                let all = named.map(|(i, l)| i.ccts.clone().map(|c| (l, c)).ok_or_else(|| lacks(i, "coflows")));
                Ok(Self::Cdf(cdf::Cdf::new("coflow completion time", "coflows", all.collect::<Result<_, _>>()?)))
            }
            Kind::Jct => {
                let all = named.map(|(i, l)| i.jcts.clone().map(|c| (l, c)).ok_or_else(|| lacks(i, "jobs")));
                Ok(Self::Cdf(cdf::Cdf::new("job completion time", "jobs", all.collect::<Result<_, _>>()?)))
            }
            Kind::Utilisation => {
                let unknown = |i: &Input| i.utilisation.as_ref().and_then(|u| links.iter().find(|n| u.links.iter().all(|l| l.name != **n)));
                let what = |i: &Input| unknown(i).map_or("utilisation or circuits".into(), |name| format!("link {name}"));
                let of = |i: &Input, l: &str| if unknown(i).is_some() { None } else { lines::utilisation(i, links, l) };
                let all = named.map(|(i, l)| of(i, &l).ok_or_else(|| lacks(i, &what(i))));
                let all = all.collect::<Result<Vec<_>, _>>()?.concat();
                Ok(Self::Lines(lines::Lines { axis: "share in use".into(), percent: true, lines: all }))
            }
            Kind::Demand => {
                let all = named.map(|(i, l)| i.demand.clone().map(|d| (l, d)).ok_or_else(|| lacks(i, "event log")));
                Ok(Self::Lines(lines::Lines { axis: "demand".into(), percent: false, lines: all.collect::<Result<_, _>>()? }))
            }
            Kind::Circuits if inputs.len() > 1 => Err("circuits are drawn of one file".into()),
            Kind::Circuits => {
                let lacking = lacks(&inputs[0], "circuits (give the event log of run or simulate --events, or plan circuits -o json)");
                inputs.remove(0).circuits.map(|c| Self::Gantt(gantt::Gantt(c))).ok_or(lacking)
            }
        }
    }

    fn draw<DB: DrawingBackend>(&self, area: &canvas::Area<DB>, look: &Look) -> Result<(), canvas::Fault<DB>> {
        match self {
            Self::Cdf(c) => c.draw(area, look),
            Self::Lines(c) => c.draw(area, look),
            Self::Gantt(c) => c.draw(area, look),
        }
    }
}

/// What tells the files apart: the first of their policy, topology, workload, mechanism that differs in all; else their names.
pub(super) fn labels(inputs: &[Input], given: &[String]) -> Result<Vec<String>, CliError> {
    if !given.is_empty() {
        let fits = given.len() == inputs.len();
        return if fits { Ok(given.to_vec()) } else { Err(CliError::Usage("as many --label as files, please".into())) };
    }
    let of = |k: usize| inputs.iter().map(|i| i.about.get(k).cloned().unwrap_or_default()).collect::<Vec<String>>();
    let distinct = |v: &Vec<String>| v.iter().all(|x| !x.is_empty() && v.iter().filter(|y| *y == x).count() == 1);
    let names = (0..input::ABOUT.len()).map(of).find(distinct).unwrap_or_else(|| inputs.iter().map(stem).collect());
    let told = |(name, input): (String, &Input)| if input.runs > 1 { format!("{name}, {} runs", input.runs) } else { name };
    Ok(names.into_iter().zip(inputs).map(told).collect())
}

fn stem(i: &Input) -> String {
    PathBuf::from(&i.file).file_stem().map_or(i.file.clone(), |s| s.to_string_lossy().into_owned())
}

fn title(kind: Kind, inputs: &[Input]) -> String {
    let what = match kind {
        Kind::Cct => "Coflow completion times",
        Kind::Jct => "Job completion times",
        Kind::Utilisation => "Utilisation",
        Kind::Demand => "Demand",
        Kind::Circuits => "Circuits",
    };
    let first = &inputs[0].about;
    let common = (0..first.len()).filter(|&k| !first[k].is_empty() && inputs.iter().all(|i| i.about.get(k) == Some(&first[k])));
    let common: Vec<&str> = common.map(|k| first[k].as_str()).collect();
    match (&common[..], inputs) {
        ([], [only]) => format!("{what}: {}", stem(only)),
        ([], _) => what.into(),
        _ => format!("{what}: {}", common.join(", ")),
    }
}

#[cfg(test)]
mod tests;
