//! What can be drawn of a file: a result, an event log, or a plan of circuits.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize as _;
use serde_json::Value;

use crate::api::wire::What;
use crate::cli::apart::{Pool, RunKeys};
use crate::cli::event_log;
use crate::cli::results;
use crate::cli::timeline::Timeline;
use crate::config::json;
use crate::fabric::meter::Utilisation;
use crate::runtime::report::caveats::{Caveat, of_several};
use crate::runtime::report::form;
use crate::runtime::study::without_seed;
use crate::units::{Span, Time};

/// The keys of a result that tell it from others, the most telling first.
pub const ABOUT: [&str; 5] = ["policy", "placement", "workload", "topology", "mechanism"];

/// Completion times; `None` for what never finished.
pub type CompletionTimes = Vec<Option<Span>>;
/// A line of points by time.
pub type Points = Vec<(Time, f64)>;

/// A circuit in a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CircuitBar {
    /// Its plane.
    pub plane: u32,
    /// Sending rack.
    pub input: u32,
    /// When its dark time begins; equal to `up_from` where the file does not say.
    pub setup_at: Time,
    /// Light.
    pub up_from: Time,
    /// Its end.
    pub until: Time,
    /// Receiving rack.
    pub output: u32,
    /// What it carries, where the file says it.
    pub bytes: Option<u64>,
    /// Demand of its pair when it was decided, where the file says it.
    pub demand: Option<u64>,
}

/// Circuits and the time that the file covers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CircuitBars {
    /// By plane, input and time.
    pub bars: Vec<CircuitBar>,
    /// End of the file's time.
    pub end: Time,
}

/// A file that was read.
#[derive(Clone, Debug, Default)]
pub struct PlotInput {
    /// Its name.
    pub file: String,
    /// How many runs it is of.
    pub runs: usize,
    /// Values of [`ABOUT`], as far as it has them.
    pub about: Vec<String>,
    /// What tells it from others, but for its file.
    pub keys: RunKeys,
    /// By run: why it is not what its name says.
    pub caveats: Vec<Vec<Caveat>>,
    /// What the run was drawn from, if the file says it.
    pub seed: Option<u64>,
    /// Of a live result: its zero by the daemon's clock, which is that of its event log.
    pub zero: Option<Time>,
    /// Completion times of its coflows.
    pub ccts: Option<CompletionTimes>,
    /// Completion times of its jobs.
    pub jcts: Option<CompletionTimes>,
    /// Its circuits.
    pub circuits: Option<CircuitBars>,
    /// Bytes that the controller saw.
    pub demand: Option<Points>,
    /// What its links carried over time.
    pub utilisation: Option<Utilisation>,
    /// Its tasks on their slots.
    pub timeline: Option<Timeline>,
}

impl PlotInput {
    /// Whether another input differs in its seed alone, and in what is pooled, and has the same
    /// things.
    pub fn is_like(&self, other: &Self) -> bool {
        self.keys == other.keys && self.ccts.is_some() == other.ccts.is_some()
    }

    /// Why its runs are not what their name says.
    pub fn caveats(&self) -> Vec<Caveat> {
        of_several(&self.caveats.iter().map(|c| &c[..]).collect::<Vec<_>>())
    }

    /// Takes another run's times in.
    pub fn take(&mut self, other: Self) {
        for (mine, theirs) in [(&mut self.ccts, other.ccts), (&mut self.jcts, other.jcts)] {
            if let Some(mine) = mine {
                mine.extend(theirs.unwrap_or_default());
            }
        }
        // Only one run can be drawn over time.
        (self.circuits, self.demand, self.utilisation, self.timeline) = (None, None, None, None);
        self.runs += other.runs;
        self.caveats.extend(other.caveats);
    }

    /// Whether it is an event log.
    pub fn is_log(&self) -> bool {
        self.demand.is_some() && self.runs == 0
    }

    /// Whether an event log is this result's: it has a head that names the same run, or no head and
    /// the same name.
    pub fn owns(&self, log: &Self) -> bool {
        if self.is_log() || !log.is_log() || self.runs != 1 || self.demand.is_some() {
            return false;
        }
        let same = |(mine, theirs): (&String, &String)| {
            mine.is_empty() || theirs.is_empty() || mine == theirs
        };
        let name = |i: &Self| Path::new(&i.file).with_extension("");
        match log.about.is_empty() {
            true => name(self) == name(log),
            false => self.about.iter().zip(&log.about).all(same) && self.seed == log.seed,
        }
    }

    /// Takes in what its event log has, by its own clock.
    pub fn join(&mut self, log: Self) {
        let zero = self.zero.unwrap_or_default();
        let own = |at: Time| Time(at.since(zero).0);
        self.circuits = log.circuits.map(|c| {
            let moved = |b: CircuitBar| CircuitBar {
                setup_at: own(b.setup_at),
                up_from: own(b.up_from),
                until: own(b.until),
                ..b
            };
            let bars = c.bars.into_iter().filter(|b| b.until > zero).map(moved).collect();
            CircuitBars { bars, end: own(c.end) }
        });
        self.demand = log
            .demand
            .map(|d| d.into_iter().filter(|p| p.0 >= zero).map(|p| (own(p.0), p.1)).collect());
    }

    /// What it has, for errors.
    pub fn holds(&self) -> String {
        let all = [
            ("coflows", self.ccts.is_some()),
            ("jobs", self.jcts.is_some()),
            ("circuits", self.circuits.is_some()),
            ("demand", self.demand.is_some()),
            ("utilisation", self.utilisation.is_some()),
            ("a timeline of tasks", self.timeline.is_some()),
        ];
        let has: Vec<&str> = all.iter().filter(|a| a.1).map(|a| a.0).collect();
        if has.is_empty() { "nothing that can be drawn".into() } else { has.join(", ") }
    }
}

/// Reads a file of any of the kinds. Of a list of results, runs that differ in their seed alone, or
/// in what is pooled, become one input, whose times are those of all.
///
/// # Errors
/// What it is not.
pub fn read(text: &str, file: &str, pool: &Pool) -> Result<Vec<PlotInput>, String> {
    let first = text.lines().find(|l| !l.trim().is_empty()).unwrap_or("");
    let headed =
        event_log::EventLogHead::read(first).map_err(|why| format!("{file}: {why}"))?.is_some();
    let is_log = headed || event_log::is_of_jobs(first) || event_log::read(first).is_ok();
    let inputs = if is_log { vec![log(text, file)?] } else { whole(text, file, pool)? };
    Ok(inputs.into_iter().map(|i| PlotInput { file: file.into(), ..i }).collect())
}

/// Results with their event logs, where both are among `all`: of several logs that may be a
/// result's, that of its name, else the first. `of`: the input of an item.
pub fn paired<T>(mut all: Vec<T>, of: impl Fn(&mut T) -> &mut PlotInput) -> Vec<T> {
    let mut inputs: Vec<PlotInput> = all.iter_mut().map(|item| of(item).clone()).collect();
    let name = |i: &PlotInput| Path::new(&i.file).with_extension("");
    let mut joined = vec![];
    for k in (0..all.len()).filter(|&k| inputs[k].is_log()).collect::<Vec<_>>() {
        let log = inputs[k].clone();
        let owners: Vec<usize> = (0..all.len()).filter(|&r| inputs[r].owns(&log)).collect();
        let Some(&owner) =
            owners.iter().find(|&&r| name(&inputs[r]) == name(&log)).or(owners.first())
        else {
            continue;
        };
        // A result that has its log owns no other one.
        inputs[owner].join(log);
        *of(&mut all[owner]) = inputs[owner].clone();
        joined.push(k);
    }
    all.into_iter().enumerate().filter(|(k, _)| !joined.contains(k)).map(|(_, item)| item).collect()
}

/// Runs that differ in their seed alone, or in what is pooled, as one, in the order in which they
/// first appear.
pub fn pooled(all: Vec<PlotInput>, pool: &Pool) -> Vec<PlotInput> {
    let mut pools: Vec<PlotInput> = vec![];
    for mut input in all {
        // The workload's name may end with the seed that it was drawn from.
        if let Some(workload) = input.about.get_mut(2) {
            *workload = without_seed(workload).to_owned();
        }
        input.keys = input.keys.without(&pool.pool);
        match pools.iter_mut().find(|p| p.is_like(&input)) {
            Some(pool) => pool.take(input),
            None => pools.push(input),
        }
    }
    pools
}

fn log(text: &str, file: &str) -> Result<PlotInput, String> {
    let (mut circuits, mut demand, mut head) = (CircuitBars::default(), Points::new(), None);
    // By plane, input and start: the places of circuits.
    let mut places: std::collections::BTreeMap<(u32, u32, Time), usize> = Default::default();
    for (k, line) in text.lines().enumerate().filter(|l| !l.1.trim().is_empty()) {
        let record = match event_log::read(line) {
            Ok(record) => record,
            Err(_) if event_log::is_of_jobs(line) => continue,
            // Logs that were moved away while they grew begin with a head each.
            Err(_) if event_log::EventLogHead::read(line).is_ok_and(|h| h.is_some()) => {
                head = head.or(event_log::EventLogHead::read(line).ok().flatten());
                continue;
            }
            Err(e) => {
                return Err(format!(
                    "{file}:{}:{}: not a line of an event log: {e}",
                    k + 1,
                    e.column()
                ));
            }
        };
        let at = Time(record.at_ns);
        circuits.end = circuits.end.max(at);
        match record.what {
            What::Cycle { demand_bytes, .. } => demand.push((at, demand_bytes as f64)),
            What::CircuitSet {
                plane,
                input,
                output,
                setup_at_ns,
                up_from_ns,
                until_ns,
                demand_bytes: demand,
            } => {
                let (setup_at, up_from, until) =
                    (Time(setup_at_ns), Time(up_from_ns), until_ns.map_or(Time::MAX, Time));
                places.insert((plane, input, up_from), circuits.bars.len());
                circuits.bars.push(CircuitBar {
                    plane,
                    input,
                    setup_at,
                    up_from,
                    until,
                    output,
                    bytes: None,
                    demand,
                });
            }
            What::CircuitEnd { plane, input, up_from_ns, until_ns } => {
                if let Some(&b) = places.get(&(plane, input, Time(up_from_ns))) {
                    circuits.bars[b].until = Time(until_ns);
                }
            }
            _ => {}
        }
    }
    for b in &mut circuits.bars {
        b.until = b.until.min(circuits.end);
    }
    circuits.bars.retain(|b| b.until > b.up_from);
    circuits.bars.sort_unstable();
    let seed = head.as_ref().and_then(|h| h.seed);
    let about = head.map_or_else(Vec::new, |h| {
        vec![h.policy, String::new(), h.workload.unwrap_or_default(), h.topology, h.mechanism]
    });
    Ok(PlotInput {
        about,
        seed,
        circuits: Some(circuits),
        demand: Some(demand),
        ..PlotInput::default()
    })
}

fn whole(text: &str, file: &str, pool: &Pool) -> Result<Vec<PlotInput>, String> {
    let read = json::read(
        text,
        file,
        "a result, an event log, or a plan of circuits (`plan circuits -o json`)",
    )
    .map_err(|e| e.to_string())?;
    let today = form::current(read).map_err(|why| format!("{file}: {why}"))?;
    match today {
        Value::Array(all) => {
            Ok(pooled(all.iter().map(|v| one(v, file)).collect::<Result<_, _>>()?, pool))
        }
        value => Ok(vec![one(&value, file)?]),
    }
}

fn one(value: &Value, file: &str) -> Result<PlotInput, String> {
    let text_of = |key: &str| value[key].as_str().unwrap_or("").to_owned();
    let times = |list: &str, key: &str| {
        let all = value[list].as_array()?;
        Some(all.iter().map(|x| x[key].as_u64().map(Span)).collect())
    };
    let map = |key: &str| BTreeMap::deserialize(&value["origin"][key]).unwrap_or_default();
    let [policy, placement, workload, topology, mechanism] = ABOUT.map(text_of);
    let base = [
        ("policy", policy.as_str()),
        ("placement", &placement),
        ("mechanism", &mechanism),
        ("topology", &topology),
        ("workload", without_seed(&workload)),
    ];
    Ok(PlotInput {
        about: ABOUT.iter().map(|k| text_of(k)).collect(),
        keys: RunKeys::new(&base, map("options"), map("settings")),
        caveats: vec![caveats(value)],
        ccts: times("coflows", "cct_ns"),
        jcts: times("jobs", "jct_ns"),
        circuits: plan(value),
        runs: 1,
        seed: value["origin"]["seed"].as_u64(),
        zero: value["zero_ns"].as_u64().map(Time),
        utilisation: part(value, "utilisation").map_err(|e| format!("{file}: {e}"))?,
        timeline: timeline(value).map_err(|e| format!("{file}: {e}"))?,
        ..PlotInput::default()
    })
}

/// Why a run is not what its name says. Results of older versions do not tell: most of it is in
/// their other keys.
fn caveats(value: &Value) -> Vec<Caveat> {
    match value.get("caveats") {
        Some(told) => Vec::deserialize(told).unwrap_or_default(),
        None if value.get("summary").is_none() => vec![],
        None => {
            let read = results::parse(&value.to_string(), Path::new("result")).ok();
            read.iter().flatten().flat_map(|r| r.caveats().to_vec()).collect()
        }
    }
}

/// The circuits of `plan circuits -o json`.
fn plan(value: &Value) -> Option<CircuitBars> {
    let bar = |c: &Value| {
        let rack = |key: &str| c[key].as_u64().and_then(|v| u32::try_from(v).ok());
        let time = |key: &str| c[key].as_u64().map(Time);
        let (setup_at, up_from, until) =
            (time("setup_at_ns")?, time("up_from_ns")?, time("until_ns")?);
        let (plane, input, output) = (rack("plane")?, rack("from")?, rack("to")?);
        Some(CircuitBar {
            plane,
            input,
            setup_at,
            up_from,
            until,
            output,
            bytes: c["bytes"].as_u64(),
            demand: None,
        })
    };
    let mut bars =
        value["circuits"].as_array()?.iter().map(bar).collect::<Option<Vec<CircuitBar>>>()?;
    bars.sort_unstable();
    let end = bars.iter().map(|b| b.until).max().unwrap_or(Time::ZERO);
    Some(CircuitBars { bars, end })
}

/// The tasks of a run of jobs.
fn timeline(value: &Value) -> Result<Option<Timeline>, String> {
    let names = value["jobs"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|j| j["name"].as_str().unwrap_or("?").to_owned());
    Ok(part(value, "timeline")?.map(|tasks| Timeline { jobs: names.collect(), tasks }))
}

/// A part of a result, if it has one.
fn part<T: serde::de::DeserializeOwned>(value: &Value, key: &str) -> Result<Option<T>, String> {
    match value.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(found) => T::deserialize(found).map(Some).map_err(|e| format!("{key}: {e}")),
    }
}
