//! `heliostat plan hit`: where Hit-scheduler would run a job's tasks, and which switches its flows
//! would cross.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

use super::lists;
use crate::cli::tables::{self, TextTable};
use crate::cli::{CliError, OutputFormat, print, read_topology, read_workload, write_sheet};
use crate::config;
use crate::draw;
use crate::ids::HostId;
use crate::paths::{List, MAX_UNIT, Switches, Units};
use crate::placement::hit::plan::{HitPlan, HitPlanOptions, plan};
use crate::placement::hit::wave::{Ends, Grading, How, MAX_ROUNDS};
use crate::topology::Topology;
use crate::topology::graph::Tier;
use crate::units::Bytes;
use crate::workload::jobs::{JobList, JobSpec};

/// Plans jobs as Hit-scheduler does: hosts of tasks and lists of switches together, each job on an
/// empty cluster
///
/// `-o table` has a row a job, and with --job the tasks of that one, each with the grades of its
/// best hosts, and its flows. `-o json` has everything: what every host would save for every task,
/// the hosts, and the list of every flow. Costs are bytes times the switches that they cross, each
/// with its cost. Flows of jobs with `types` cross switches of these tiers where the network has
/// lists of this kind.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The jobs, such as workloads/jobs-8.yaml
    jobs: PathBuf,
    /// The network, such as topologies/fat-tree-4.yaml
    #[arg(long)]
    topology: PathBuf,
    /// Shows the tasks and flows of the job of this name only
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Which tasks move at once: reduces and maps in turns, or both at once as the paper prints it
    #[arg(long, value_enum, default_value_t = Ends::Alternate)]
    ends: Ends,
    /// By what hosts rank tasks: by what is saved there, or by how many flows have their cheapest
    /// way there as Algorithm 1 prints it
    #[arg(long, value_enum, default_value_t = Grading::Utility)]
    grades: Grading,
    /// The most rounds of turns, 1 to 10
    #[arg(long, default_value_t = MAX_ROUNDS, value_parser = clap::value_parser!(u32).range(1..=10))]
    rounds: u32,
    /// What a byte costs an access, an aggregation and a core switch that it crosses, 0 to 1000000
    /// each, such as 1,5,9; the `units` of a policy file
    #[arg(long, value_name = "ACCESS,AGGREGATION,CORE", default_value = "1,1,1", value_parser = units)]
    units: Units,
    /// Draws the assignment that it begins with
    #[arg(long, default_value_t = 1, value_parser = crate::cli::numbers::whole)]
    seed: u64,
    /// Draws the network into this file: tasks on their hosts, links by what the planned flows
    /// send, and what each host would save each task (.svg, .png or .pdf)
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// What is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

/// One job's plan, as `-o json` prints it.
#[derive(Serialize)]
struct HitJobPlan<'a> {
    name: &'a str,
    plan: HitPlan,
}

/// All plans, as `-o json` prints them.
#[derive(Serialize)]
struct HitPlanReport<'a> {
    workload: &'a str,
    topology: &'a str,
    /// All of them, by number.
    switches: Vec<&'a str>,
    /// All of them, in the order in which `saved` has them.
    hosts: Vec<String>,
    jobs: Vec<HitJobPlan<'a>>,
}

/// Costs of switches by tier, as 1,5,9.
fn units(text: &str) -> Result<Units, String> {
    let all: Option<Vec<u32>> =
        text.split(',').map(|n| n.trim().parse().ok().filter(|&n| n <= MAX_UNIT)).collect();
    match all.as_deref() {
        Some(&[access, aggregation, core]) => Ok(Units { access, aggregation, core }),
        _ => Err(format!(
            "write the costs of an access, an aggregation and a core switch as 1,5,9, each from 0 to {MAX_UNIT}"
        )),
    }
}

/// Runs the subcommand.
///
/// # Errors
/// Files that cannot be read or make no sense, a job that does not exist, and a network with fewer
/// than two slots.
pub fn run(args: &Args) -> Result<(), CliError> {
    let file = args.topology.display().to_string();
    let topology = read_topology(&args.topology)?;
    let (text, name) = (read_workload(&args.jobs)?, args.jobs.display().to_string());
    let jobs = config::read_jobs(&text, &name)?;
    config::check_types(&jobs, &topology, &text, &name)?;
    let net = Switches::new(&topology, args.units);
    let chosen = choose(&jobs, args.job.as_deref())?;
    let how = How { ends: args.ends, grades: args.grades, rounds: args.rounds };
    let options = HitPlanOptions { how, seed: args.seed, matrix: true };
    let slots: Vec<u32> = topology.hosts.iter().map(|h| h.slots).collect();
    let planned = |job: &&'_ JobSpec| {
        plan(job, &topology, &net, slots.clone(), options)
            .map_err(|e| CliError::Invalid(format!("{file}: {e}")))
    };
    let plans: Vec<HitPlan> = chosen.iter().map(planned).collect::<Result<_, _>>()?;
    let pairs = || chosen.iter().copied().zip(&plans);
    if let Some(file) = &args.svg {
        write_sheet(
            &lists::picture(&topology, &net, &pairs().collect::<Vec<_>>()),
            file,
            draw::TWO_A_POINT,
        )?;
    }
    print(&match (args.output, args.job.is_some()) {
        (OutputFormat::Table, false) => format!("{}\n", summary(pairs(), &net, false).table()),
        (OutputFormat::Csv, false) => summary(pairs(), &net, true).csv(),
        (OutputFormat::Table, true) => {
            let (job, plan) = pairs().next().expect("the job was found");
            let (tasks, flows) =
                (tasks(job, plan, &topology, &net), flows(plan, &topology, &net, false));
            format!(
                "{}\n\n{}\n\n{}\n",
                tasks.table(),
                flows.table(),
                summary(pairs(), &net, false).table()
            )
        }
        (OutputFormat::Csv, true) => flows(&plans[0], &topology, &net, true).csv(),
        (OutputFormat::Json, _) => {
            let switches = (0..net.len() as u32).map(|s| net.name(s)).collect();
            let hosts = topology.hosts.iter().map(|h| topology.host_name(h.id)).collect();
            let names: Vec<&str> = chosen.iter().map(|j| j.name.as_str()).collect();
            let jobs_of = names
                .into_iter()
                .zip(plans)
                .map(|(name, plan)| HitJobPlan { name, plan })
                .collect();
            let report = HitPlanReport {
                workload: &jobs.name,
                topology: &topology.name,
                switches,
                hosts,
                jobs: jobs_of,
            };
            let mut report = serde_json::to_value(&report).expect("a plan is plain data");
            name_all(&mut report, &topology, &net);
            tables::json(&report)
        }
    })
}

/// Writes names in the places of the numbers of hosts and switches.
fn name_all(report: &mut Value, topology: &Topology, net: &Switches) {
    let host =
        |n: &Value| n.as_u64().map_or(Value::Null, |n| topology.host_name(HostId(n as u32)).into());
    let switch = |n: &Value| n.as_u64().map_or(Value::Null, |n| net.name(n as u32).into());
    for plan in report["jobs"].as_array_mut().into_iter().flatten().map(|job| &mut job["plan"]) {
        for (list, keys) in [("tasks", ["first", "host"]), ("flows", ["from", "to"])] {
            for item in plan[list].as_array_mut().into_iter().flatten() {
                keys.iter().for_each(|key| item[*key] = host(&item[*key]));
            }
        }
        for flow in plan["flows"].as_array_mut().into_iter().flatten() {
            flow["list"] = flow["list"].as_array().into_iter().flatten().map(switch).collect();
        }
    }
}

fn choose<'a>(jobs: &'a JobList, name: Option<&str>) -> Result<Vec<&'a JobSpec>, CliError> {
    let Some(name) = name else { return Ok(jobs.jobs.iter().collect()) };
    let found = jobs.jobs.iter().find(|j| j.name == name);
    found.map(|j| vec![j]).ok_or_else(|| {
        let known: Vec<&str> = jobs.jobs.iter().take(8).map(|j| j.name.as_str()).collect();
        let more = if jobs.jobs.len() > 8 { ", ..." } else { "" };
        CliError::Invalid(format!(
            "no job is called `{name}`; there are {}{more}",
            known.join(", ")
        ))
    })
}

/// Bytes that cross a host's border, and the mean number of switches that each of them crosses.
fn crossing(plan: &HitPlan, net: &Switches) -> (u128, f64) {
    let bytes: u128 = plan.flows.iter().map(|f| u128::from(f.bytes)).sum();
    let switches = |list: &List| list.0.iter().filter(|&&s| net.tier(s) != Tier::Server).count();
    let crossed: u128 =
        plan.flows.iter().map(|f| u128::from(f.bytes) * switches(&f.list) as u128).sum();
    (bytes, crossed as f64 / bytes.max(1) as f64)
}

fn summary<'a>(
    plans: impl Iterator<Item = (&'a JobSpec, &'a HitPlan)>,
    net: &Switches,
    exact: bool,
) -> TextTable {
    let people = [
        "job",
        "shuffle",
        "cost at random",
        "cost",
        "saved",
        "rounds",
        "flows",
        "switches a byte",
        "saturated",
    ];
    let programs = [
        "job",
        "shuffle_bytes",
        "cost_before",
        "cost",
        "saved_percent",
        "rounds",
        "flows",
        "switches_a_byte",
        "saturated",
    ];
    let plans: Vec<(&JobSpec, &HitPlan)> = plans.collect();
    let typed = plans.iter().any(|(job, _)| job.edges.iter().any(|e| !e.types.are_free()));
    let mut names = if exact { programs } else { people }.to_vec();
    names.extend(typed.then_some(if exact { "types_unmet" } else { "types not met" }));
    let mut rows = TextTable::new(&names);
    for (job, plan) in plans {
        let saved = 100.0 - 100.0 * plan.after as f64 / plan.before.max(1) as f64;
        let cost = |c: u128| {
            if exact {
                c.to_string()
            } else {
                Bytes(u64::try_from(c).unwrap_or(u64::MAX)).to_string()
            }
        };
        let shuffle = job.shuffle_bytes();
        rows.rows.push(vec![
            job.name.clone(),
            if exact { shuffle.0.to_string() } else { shuffle.to_string() },
            cost(plan.before),
            cost(plan.after),
            if exact { format!("{saved:.3}") } else { format!("{saved:.1} %") },
            plan.rounds.to_string(),
            plan.flows.len().to_string(),
            format!("{:.2}", crossing(plan, net).1),
            plan.lists.saturated.to_string(),
        ]);
        rows.rows
            .last_mut()
            .into_iter()
            .filter(|_| typed)
            .for_each(|row| row.push(plan.lists.unmet.to_string()));
    }
    rows
}

/// How many hosts a row of the preference matrix shows for people; JSON has all.
const BEST: usize = 4;

/// What is saved, as people read it; a cost more is negative.
fn saving(v: i128) -> String {
    let size = Bytes(u64::try_from(v.unsigned_abs()).unwrap_or(u64::MAX));
    if v < 0 { format!("-{size}") } else { size.to_string() }
}

/// A task's row of the preference matrix: its best grades, each with the hosts that have it, those
/// of one switch together. Hosts without a slot are no candidates.
fn best(row: &[i128], topology: &Topology, net: &Switches) -> String {
    let mut grades: BTreeMap<(std::cmp::Reverse<i128>, u32), Vec<HostId>> = BTreeMap::new();
    for h in topology.hosts.iter().filter(|h| h.slots > 0) {
        grades
            .entry((std::cmp::Reverse(row[h.id.index()]), net.stands(h.id)))
            .or_default()
            .push(h.id);
    }
    let name = |hosts: &[HostId]| match hosts {
        [one] => topology.host_name(*one),
        [first, .., last] => {
            format!("{}..{}", topology.host_name(*first), topology.host_name(*last))
        }
        [] => String::new(),
    };
    let in_a_row = |hosts: Vec<HostId>| -> Vec<Vec<HostId>> {
        hosts.chunk_by(|a, b| a.0 + 1 == b.0).map(<[HostId]>::to_vec).collect()
    };
    let all = grades
        .into_iter()
        .flat_map(|((saved, _), hosts)| in_a_row(hosts).into_iter().map(move |run| (saved.0, run)));
    all.take(BEST)
        .map(|(saved, run)| format!("{} {}", name(&run), saving(saved)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A task's row of the matrix, if it is in the first wave of a shuffle.
fn row_of(plan: &HitPlan, stage: usize, task: u32) -> Option<&Vec<i128>> {
    plan.grades.iter().find(|g| g.stage == stage)?.saved.get(task as usize)
}

fn tasks(job: &JobSpec, plan: &HitPlan, topology: &Topology, net: &Switches) -> TextTable {
    let mut rows =
        TextTable::new(&["task", "at random", "host", "would save there", "would save most at"]);
    for t in &plan.tasks {
        let row = row_of(plan, t.stage, t.task);
        rows.rows.push(vec![
            format!("{} {}", job.stages[t.stage].name, t.task),
            topology.host_name(t.first),
            topology.host_name(t.host),
            row.map_or("-".into(), |row| saving(row[t.host.index()])),
            row.map_or("-".into(), |row| best(row, topology, net)),
        ]);
    }
    rows
}

fn flows(plan: &HitPlan, topology: &Topology, net: &Switches, exact: bool) -> TextTable {
    let mut rows = TextTable::new(&["from", "to", "bytes", "switches"]);
    for f in &plan.flows {
        rows.rows.push(vec![
            topology.host_name(f.from),
            topology.host_name(f.to),
            if exact { f.bytes.to_string() } else { Bytes(f.bytes).to_string() },
            net.names(&f.list).join(" "),
        ]);
    }
    rows
}

#[cfg(test)]
mod tests;
