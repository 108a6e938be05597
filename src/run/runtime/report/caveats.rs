//! What a reader must know of a run before its figures are compared: why it is not, or not wholly,
//! what its name says.
//!
//! The list is derived here and nowhere else. It stands in the result, and whatever shows a result
//! shows it: tables, comparisons, charts, reports, the rows of sweeps.

use serde::{Deserialize, Serialize};

use super::{RunEnd, RunMachine, RunResult};
use crate::control::record::{Stats, Tampered};
use crate::scheduler::record::SchedulerCounters;
use crate::units::Span;
use crate::workload::Taken;

/// One reason why a run is not what its name says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Caveat {
    /// Which kind of reason.
    pub kind: CaveatKind,
    /// How many things it is about: cycles, coflows, faults, records.
    pub count: u64,
    /// What, in a few words.
    pub what: String,
    /// The first cause, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Kinds of reasons, the gravest first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Kind")]
pub enum CaveatKind {
    /// The scheduler that the policy names did not decide: a program that ended or answered
    /// wrongly, or most answers were late.
    Fallback,
    /// Some answers of a program were late, and the fallback decided.
    LateAnswers,
    /// Nothing could move any more.
    Stuck,
    /// The run was stopped.
    Interrupted,
    /// The time that the run was given was over.
    Until,
    /// Something did not finish though the run ended by itself.
    Unfinished,
    /// The network asks for more than this machine carries.
    Forced,
    /// Another process changed the network.
    Tampered,
    /// Other programs, or the host of a virtual machine, took the processors.
    BusyMachine,
    /// The control loop skipped cycles.
    MissedCycles,
    /// Packets came out at a wrong rack.
    Misdelivered,
    /// Something was broken on purpose.
    Faults,
    /// Ports of circuit switches were found to be faulty, and not used any more.
    FaultyPorts,
    /// The file names more ends than the network has.
    Folded,
    /// The reader of the workload left records out.
    LeftOut,
    /// Jobs were read where coflows are run: their shuffles alone, with tasks spread evenly.
    JobsAsCoflows,
}

impl CaveatKind {
    /// Its word in files.
    pub fn word(self) -> String {
        serde_json::to_value(self)
            .ok()
            .and_then(|v| v.as_str().map(str::to_owned))
            .unwrap_or_default()
    }
}

impl std::fmt::Display for Caveat {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.what)?;
        self.why.iter().try_for_each(|why| write!(f, ": {why}"))
    }
}

/// What a run was given that its result does not hold otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// What became of the workload's file when it was read.
    pub taken: Taken,
    /// Faults that were asked for.
    pub faults: u64,
}

impl RunResult {
    /// The same with its caveats, which depend on all else that the result holds.
    #[must_use]
    pub fn judged(mut self, given: &Given) -> Self {
        let s = &self.summary;
        let lost = self.coflows.iter().find_map(|c| c.lost.clone());
        let facts = CaveatFacts {
            what: "coflows",
            ends: (self.end, s.finished, s.unfinished, lost),
            stats: &s.stats,
            offers: None,
            live: self.zero.is_some(),
            forced: self.forced,
            tampered: self.tampered.as_ref(),
            misdelivered: s.misdelivered,
            faulty_ports: s.faulty_ports,
            machine: self.machine.as_ref(),
            given,
        };
        self.caveats = facts.caveats();
        self
    }
}

/// What caveats are derived from.
pub struct CaveatFacts<'a> {
    /// What the run is of.
    pub what: &'static str,
    /// Why it ended, how many have finished and have not, and why the first was lost.
    pub ends: (RunEnd, usize, usize, Option<String>),
    /// Counters of the control loop.
    pub stats: &'a Stats,
    /// Of jobs: the scheduler's counters, and why the fallback decided first.
    pub offers: Option<(&'a SchedulerCounters, Option<&'a str>)>,
    /// Whether time passed by itself.
    pub live: bool,
    /// Whether the network asks for more than the machine carries.
    pub forced: bool,
    /// Changes of the network by others.
    pub tampered: Option<&'a Tampered>,
    /// Packets that came out at a wrong rack.
    pub misdelivered: u64,
    /// Ports that were found faulty.
    pub faulty_ports: u64,
    /// What the machine did.
    pub machine: Option<&'a RunMachine>,
    /// What the run was given.
    pub given: &'a Given,
}

impl CaveatFacts<'_> {
    /// By kind, the gravest first.
    pub fn caveats(&self) -> Vec<Caveat> {
        let mut all: Vec<Caveat> = vec![];
        all.extend(self.circuits());
        all.extend(self.placement());
        all.extend(self.end());
        let mut add = |kind, count: u64, what: String, why: Option<String>| {
            all.push(Caveat { kind, count, what, why })
        };
        if self.forced {
            add(
                CaveatKind::Forced,
                1,
                "run with --force: this machine does not carry these rates".into(),
                None,
            );
        }
        if let Some(t) = self.tampered {
            let [from, until] = [t.from, t.until].map(|at| Span(at.0));
            // What lasts since before the run was not found in it.
            let when = match t.found {
                0 => format!("before this began, and it lasted until {until}"),
                n => format!("from {from} until {until}, {}; first", times(n)),
            };
            let what = format!("the network was tampered with {when}");
            add(CaveatKind::Tampered, t.found.max(1), what, Some(t.what.clone()));
        }
        if let Some(busy) = self.machine.and_then(RunMachine::busy) {
            add(CaveatKind::BusyMachine, 1, busy, None);
        }
        let s = self.stats;
        if s.missed_cycles > 0 {
            let of = s.cycles.saturating_add(s.missed_cycles);
            add(
                CaveatKind::MissedCycles,
                s.missed_cycles,
                format!("{} of {of} cycles were missed", s.missed_cycles),
                None,
            );
        }
        if self.misdelivered > 0 {
            add(
                CaveatKind::Misdelivered,
                self.misdelivered,
                format!("{} packets came out at a wrong rack", self.misdelivered),
                None,
            );
        }
        if self.given.faults > 0 {
            add(
                CaveatKind::Faults,
                self.given.faults,
                format!("with {} on purpose", several(self.given.faults, "fault")),
                None,
            );
        }
        if self.faulty_ports > 0 {
            add(
                CaveatKind::FaultyPorts,
                self.faulty_ports,
                format!("{} found faulty", several(self.faulty_ports, "port")),
                None,
            );
        }
        let taken = &self.given.taken;
        if let Some(f) = &taken.folded {
            add(CaveatKind::Folded, f.ends, f.to_string(), None);
        }
        for left in &taken.left_out {
            add(CaveatKind::LeftOut, left.count, left.to_string(), None);
        }
        if let Some(jobs) = taken.from_jobs {
            let what =
                format!("shuffles of {} as coflows, tasks spread evenly", several(jobs, "job"));
            add(CaveatKind::JobsAsCoflows, jobs, what, None);
        }
        all
    }

    /// Whether what was only late counts as a fallback: in virtual time an answer is waited for,
    /// and a policy of whose decisions most are another's is not the one that it is called.
    fn kind(&self, fallbacks: u64, late: u64, of: u64) -> CaveatKind {
        let most = fallbacks.saturating_mul(2) > of;
        if fallbacks > late || !self.live || most {
            CaveatKind::Fallback
        } else {
            CaveatKind::LateAnswers
        }
    }

    fn circuits(&self) -> Option<Caveat> {
        let s = self.stats;
        let kind = self.kind(s.fallbacks, s.late_answers, s.cycles);
        let what = format!("{} of {} cycles by the fallback", s.fallbacks, s.cycles);
        (s.fallbacks > 0).then(|| Caveat {
            kind,
            count: s.fallbacks,
            what,
            why: s.first_fallback.clone(),
        })
    }

    fn placement(&self) -> Option<Caveat> {
        let (c, first) = self.offers?;
        let kind = self.kind(c.fallbacks, c.late_answers, c.starts);
        let what = format!("{} of slots by the fallback", several(c.fallbacks, "offer"));
        (c.fallbacks > 0).then(|| Caveat {
            kind,
            count: c.fallbacks,
            what,
            why: first.map(str::to_owned),
        })
    }

    fn end(&self) -> Option<Caveat> {
        let (end, finished, unfinished, lost) = &self.ends;
        let rest = format!("{unfinished} of {} {} unfinished", finished + unfinished, self.what);
        let (kind, what) = match end {
            RunEnd::Stuck => (CaveatKind::Stuck, format!("stuck, {rest}")),
            RunEnd::Stopped => (CaveatKind::Interrupted, format!("interrupted, {rest}")),
            RunEnd::Until => (CaveatKind::Until, format!("ended by --until, {rest}")),
            RunEnd::Finished if *unfinished > 0 => (CaveatKind::Unfinished, rest),
            RunEnd::Finished => return None,
        };
        Some(Caveat { kind, count: *unfinished as u64, what, why: lost.clone() })
    }
}

fn times(n: u64) -> String {
    if n == 1 { "once".into() } else { format!("{n} times") }
}

fn several(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// The first caveat with which a run must not pass as one of its policy.
pub fn disqualifies(caveats: &[Caveat]) -> Option<&Caveat> {
    caveats.iter().find(|c| c.kind == CaveatKind::Fallback)
}

/// The caveats of several runs together, each once: kinds of which there are several say in how
/// many of the runs, and what the first is. O(caveats^2), and they are few.
pub fn of_several(runs: &[&[Caveat]]) -> Vec<Caveat> {
    let mut found: Vec<Caveat> = vec![];
    for c in runs.iter().flat_map(|all| all.iter()) {
        match found.iter_mut().find(|f| f.kind == c.kind) {
            Some(first) => first.count = first.count.saturating_add(c.count),
            None => found.push(c.clone()),
        }
    }
    found.sort_by_key(|c| c.kind);
    let told = |c: Caveat| {
        let having =
            |is: &dyn Fn(&Caveat) -> bool| runs.iter().filter(|r| r.iter().any(is)).count();
        let (same, kind) =
            (having(&|x| x.kind == c.kind && x.what == c.what), having(&|x| x.kind == c.kind));
        if same == runs.len() {
            c
        } else {
            Caveat { what: format!("{kind} of {} runs, the first: {}", runs.len(), c.what), ..c }
        }
    };
    if let [only] = runs { only.to_vec() } else { found.into_iter().map(told).collect() }
}

/// Caveats as people read them, a line each.
pub fn lines(caveats: &[Caveat]) -> String {
    caveats.iter().map(|c| format!("(!) {c}\n")).collect()
}

/// The words of their kinds, each once, with semicolons between: a cell of a table for programs.
pub fn kinds(caveats: &[Caveat]) -> String {
    let all: std::collections::BTreeSet<CaveatKind> = caveats.iter().map(|c| c.kind).collect();
    all.into_iter().map(CaveatKind::word).collect::<Vec<_>>().join(";")
}

/// What stands behind the name of a run that has caveats.
pub const MARK: &str = " (!)";

/// The name of a run, marked if it has caveats.
pub fn marked(name: &str, caveats: &[Caveat]) -> String {
    if caveats.is_empty() { name.into() } else { format!("{name}{MARK}") }
}

/// The name of a run with what its caveats are, for legends.
pub fn explained(name: &str, caveats: &[Caveat]) -> String {
    let all: Vec<&str> = caveats.iter().map(|c| c.what.as_str()).collect();
    if all.is_empty() { name.into() } else { format!("{name} (! {})", all.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Time;

    fn run() -> RunResult {
        let text = crate::testing::shipped("tests/results/coflows-1.json");
        let value = super::super::form::current(serde_json::from_str(&text).unwrap()).unwrap();
        serde_json::from_value(value).unwrap()
    }

    fn kinds_of(r: RunResult) -> Vec<CaveatKind> {
        r.judged(&Given::default()).caveats.iter().map(|c| c.kind).collect()
    }

    #[test]
    fn late_answers_are_a_fallback_where_most_are_late_or_time_stands_still() {
        let of = |live: bool, fallbacks, late_answers| {
            let mut r = run();
            (r.zero, r.summary.stats.cycles) = (live.then_some(Time::ZERO), 10);
            (r.summary.stats.fallbacks, r.summary.stats.late_answers) = (fallbacks, late_answers);
            kinds_of(r)
        };
        assert_eq!(of(true, 0, 0), []);
        assert_eq!(
            (of(true, 5, 5), of(true, 6, 6)),
            (vec![CaveatKind::LateAnswers], vec![CaveatKind::Fallback])
        );
        assert_eq!(
            (of(true, 1, 0), of(true, 5, 4)),
            (vec![CaveatKind::Fallback], vec![CaveatKind::Fallback])
        );
        assert_eq!(of(false, 1, 1), [CaveatKind::Fallback]);
    }

    #[test]
    fn damage_from_before_a_run_is_not_told_as_found_in_it() {
        let told = |found| {
            let (until, what) = (Time(1_900_000_000), "ocs0 is down".into());
            let mut r = run();
            r.tampered = Some(Tampered { from: Time(0), until, what, found });
            lines(&r.judged(&Given::default()).caveats)
        };
        let before =
            "(!) the network was tampered with before this began, and it lasted until 1.9s";
        assert_eq!(told(0), format!("{before}: ocs0 is down\n"));
        assert!(
            told(2).contains("tampered with from 0ns until 1.9s, 2 times; first: ocs0 is down")
        );
    }

    #[test]
    fn all_that_speaks_against_a_run_is_listed_the_gravest_first() {
        let mut r = run();
        assert_eq!(kinds_of(r.clone()), []);
        (r.forced, r.end, r.summary.unfinished) = (true, RunEnd::Until, 2);
        r.summary.stats.missed_cycles = 3;
        (r.summary.misdelivered, r.summary.faulty_ports) = (1, 2);
        let mut given = Given { faults: 1, ..Given::default() };
        given.taken.leave_out(4, "flows without bytes");
        let told = r.judged(&given).caveats;
        let want = [
            CaveatKind::Until,
            CaveatKind::Forced,
            CaveatKind::MissedCycles,
            CaveatKind::Misdelivered,
            CaveatKind::Faults,
            CaveatKind::FaultyPorts,
            CaveatKind::LeftOut,
        ];
        assert_eq!(told.iter().map(|c| c.kind).collect::<Vec<_>>(), want);
        assert_eq!(
            kinds(&told),
            "until;forced;missed-cycles;misdelivered;faults;faulty-ports;left-out"
        );
        assert!(
            lines(&told).contains("(!) with 1 fault on purpose\n(!) 2 ports found faulty\n(!) 4 flows without bytes left out\n"),
            "{}",
            lines(&told)
        );
        assert_eq!(disqualifies(&told), None);
    }

    #[test]
    fn several_runs_say_in_how_many_of_them() {
        let caveat = |kind, what: &str| Caveat { kind, count: 2, what: what.into(), why: None };
        let (a, b) = (
            vec![
                caveat(CaveatKind::Fallback, "2 of 5 cycles by the fallback"),
                caveat(CaveatKind::Folded, "x"),
            ],
            vec![caveat(CaveatKind::Folded, "x")],
        );
        let told = of_several(&[&a, &b, &b]);
        let said: Vec<(u64, String)> = told.iter().map(|c| (c.count, c.to_string())).collect();
        assert_eq!(
            said,
            [
                (2, "1 of 3 runs, the first: 2 of 5 cycles by the fallback".to_owned()),
                (6, "x".to_owned())
            ]
        );
        assert_eq!((of_several(&[&a]), of_several(&[&[], &[]])), (a.clone(), vec![]));
        assert_eq!((marked("p", &a), marked("p", &[])), ("p (!)".into(), "p".into()));
        assert_eq!(explained("p", &a), "p (! 2 of 5 cycles by the fallback; x)");
    }
}
