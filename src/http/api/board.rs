//! What a task scheduler that works on this network says of its jobs, for viewers: the daemon
//! itself knows coflows only.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use super::wire::{Decision, Decisions, Job, JobName, Jobs, JobsReport, SlotsHeld, SlotsSample};
use crate::units::{Span, Time};

/// The most samples that are remembered: ten minutes of a scheduler that reports four times a
/// second.
const SAMPLES: usize = 2400;
/// The most jobs of a sample: those that hold most slots.
const HOLDERS: usize = 64;
/// The most decisions that are remembered: the newest.
const DECISIONS: usize = 4096;
/// The most jobs that are remembered.
const JOBS: usize = 100_000;
/// The longest name, in bytes.
const NAME: usize = 256;

/// The most runs of schedulers that are remembered.
const RUNS: usize = 4;
/// A run that has reported nothing for as long gives its place to another one that reports.
const SILENT: Span = Span::secs(2);

/// The jobs of the schedulers that work on this network. One of them is shown: the one that came
/// first, while it reports and has a job that is not finished; otherwise the next one that reports.
/// A report has only what has changed, so each run keeps what it said.
#[derive(Clone, Default)]
pub struct Board(Arc<Mutex<BoardState>>);

#[derive(Default)]
struct BoardState {
    shown: SchedulerRun,
    others: Vec<SchedulerRun>,
}

/// What a run of a scheduler has said.
#[derive(Default)]
struct SchedulerRun {
    run: u64,
    /// When it reported last; `None`: no scheduler has.
    heard: Option<Time>,
    workload: String,
    policy: String,
    slots: u64,
    jobs: BTreeMap<u32, Job>,
    samples: VecDeque<SlotsSample>,
    decisions: VecDeque<Decision>,
}

impl BoardState {
    /// What a run that reports has said. It becomes the one that is shown if that one is silent or
    /// at its end; of more than [`RUNS`] the one is forgotten that has been silent for longest.
    /// O(runs + jobs).
    fn reporting(&mut self, run: u64, now: Time) -> &mut SchedulerRun {
        if self.shown.run == run {
            return &mut self.shown;
        }
        let at = self.others.iter().position(|o| o.run == run).unwrap_or_else(|| {
            if self.others.len() + 1 == RUNS {
                let longest = (0..self.others.len()).min_by_key(|&k| self.others[k].heard);
                self.others.swap_remove(longest.unwrap_or(0));
            }
            self.others.push(SchedulerRun { run, ..SchedulerRun::default() });
            self.others.len() - 1
        });
        let is_open = self.shown.jobs.values().any(|j| j.finished_ns.is_none());
        if is_open && self.shown.heard.is_some_and(|heard| now < heard + SILENT) {
            return &mut self.others[at];
        }
        std::mem::swap(&mut self.shown, &mut self.others[at]);
        self.others.retain(|o| o.heard.is_some());
        &mut self.shown
    }
}

impl Board {
    /// Takes a report in, which is of `now` by the daemon's clock. Jobs of a number from [`JOBS`]
    /// on are left out. O(jobs).
    ///
    /// # Errors
    /// Why it is refused as a whole: a name or a list that is too long.
    pub fn take(&self, report: JobsReport, now: Time) -> Result<(), String> {
        let names = [&report.workload, &report.policy]
            .into_iter()
            .chain(report.jobs.iter().map(|j| &j.name));
        if let Some(name) = names.map(String::len).find(|n| *n > NAME) {
            return Err(format!("a name has {name} bytes; at most {NAME} are kept"));
        }
        if let Some((d, flaw)) = report.decisions.iter().find_map(|d| Some((d, d.flaw()?))) {
            let Decision { job, stage, .. } = d;
            return Err(format!("a decision about stage {stage} of job {job} {flaw}"));
        }
        let mut state = self.0.lock();
        let b = state.reporting(report.run, now);
        b.heard = Some(now);
        (b.workload, b.policy, b.slots) = (report.workload, report.policy, report.slots);
        // The scheduler's clock has another zero.
        let own = |at: u64| now.0.saturating_sub(report.now_ns.saturating_sub(at));
        let slots = |held: &Job| SlotsHeld {
            job: held.id,
            computing: held.computing,
            waiting: held.waiting,
        };
        for j in report.jobs.into_iter().filter(|j| (j.id as usize) < JOBS) {
            let (started_ns, finished_ns) = (j.started_ns.map(own), j.finished_ns.map(own));
            b.jobs
                .insert(j.id, Job { arrival_ns: own(j.arrival_ns), started_ns, finished_ns, ..j });
        }
        let all = |s: &SlotsHeld| s.computing.saturating_add(s.waiting);
        let mut held: Vec<SlotsHeld> = b.jobs.values().map(slots).filter(|s| all(s) > 0).collect();
        if held.len() > HOLDERS {
            held.sort_by_key(|s| std::cmp::Reverse(all(s)));
            held.truncate(HOLDERS);
            held.sort_by_key(|s| s.job);
        }
        let decided = report.decisions.into_iter();
        b.decisions.extend(decided.map(|d| Decision { at_ns: own(d.at_ns), ..d }));
        let beyond = b.decisions.len().saturating_sub(DECISIONS);
        b.decisions.drain(..beyond);
        b.samples.push_back(SlotsSample { at_ns: now.0, held });
        if b.samples.len() > SAMPLES {
            b.samples.pop_front();
        }
        Ok(())
    }

    /// Decisions about the job of this name or number, or about all, and about this stage or all.
    /// O(jobs + decisions).
    ///
    /// # Errors
    /// No job has this name or number.
    pub fn decisions(
        &self,
        job: Option<&str>,
        stage: Option<u32>,
        now: Time,
    ) -> Result<Decisions, String> {
        let b = &self.0.lock().shown;
        let found = |job: &str| {
            let by_name = b.jobs.values().find(|j| j.name == job);
            let by_number = || job.parse().ok().and_then(|n: u32| b.jobs.get(&n));
            let found = by_name.or_else(by_number);
            found.map(|j| j.id).ok_or_else(|| format!("no job `{job}` was reported"))
        };
        let job = job.map(found).transpose()?;
        let wanted = |d: &&Decision| {
            job.is_none_or(|j| d.job == j) && stage.is_none_or(|stage| d.stage == stage)
        };
        let decisions: Vec<Decision> = b.decisions.iter().filter(wanted).cloned().collect();
        let about: BTreeSet<u32> = decisions.iter().map(|d| d.job).collect();
        let jobs = about.into_iter().filter_map(|id| b.jobs.get(&id));
        Ok(Decisions {
            now_ns: now.0,
            run: b.run,
            policy: b.policy.clone(),
            jobs: jobs.map(|j| JobName { id: j.id, name: j.name.clone() }).collect(),
            decisions,
        })
    }

    /// All jobs, and the samples after a time. O(jobs + samples).
    pub fn show(&self, after: Time, now: Time) -> Jobs {
        let b = &self.0.lock().shown;
        let first = b.samples.partition_point(|s| s.at_ns <= after.0);
        Jobs {
            now_ns: now.0,
            run: b.run,
            workload: b.workload.clone(),
            policy: b.policy.clone(),
            slots: b.slots,
            jobs: b.jobs.values().cloned().collect(),
            samples: b.samples.range(first..).cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::wire::{PlacedBy, RackTasks};

    fn job(id: u32, computing: u64, waiting: u64) -> Job {
        let (queue, tasks, tasks_finished) = (0, 9, 1);
        let (arrival_ns, started_ns, finished_ns) = (100, Some(150), None);
        Job {
            id,
            name: format!("j{id}"),
            queue,
            tasks,
            tasks_finished,
            computing,
            waiting,
            arrival_ns,
            started_ns,
            finished_ns,
        }
    }

    fn report(run: u64, now_ns: u64, jobs: Vec<Job>) -> JobsReport {
        let (workload, policy) = ("w".into(), "p".into());
        JobsReport { run, now_ns, workload, policy, slots: 8, jobs, decisions: vec![] }
    }

    fn decision(job: u32, stage: u32, at_ns: u64) -> Decision {
        let (racks, open, lost) = (vec![RackTasks { rack: 1, tasks: 2 }], vec![], vec![]);
        Decision {
            job,
            stage,
            at_ns,
            turn: None,
            rule: PlacedBy::Home,
            again: false,
            racks,
            open,
            afar: None,
            estimate: None,
            losers: 0,
            lost,
        }
    }

    #[test]
    fn decisions_are_found_by_job_and_stage_and_the_oldest_are_forgotten() {
        let b = Board::default();
        let told = |decisions| JobsReport {
            decisions,
            ..report(1, 200, vec![job(0, 1, 0), job(1, 1, 0)])
        };
        let made = vec![decision(0, 0, 100), decision(1, 0, 150), decision(1, 1, 190)];
        b.take(told(made), Time(10_000)).unwrap();
        let found = |job, stage| {
            let all = b.decisions(job, stage, Time(10_000)).unwrap();
            all.decisions.iter().map(|d| (d.job, d.stage, d.at_ns)).collect::<Vec<_>>()
        };
        // By the daemon's clock.
        let all = [(0, 0, 9_900), (1, 0, 9_950), (1, 1, 9_990)];
        assert_eq!((found(None, None), found(Some("j1"), None)), (all.into(), all[1..].into()));
        assert_eq!((found(Some("1"), Some(1)), found(None, Some(2))), (all[2..].into(), vec![]));
        let names = b.decisions(Some("0"), None, Time(10_000)).unwrap().jobs;
        assert_eq!(names, [JobName { id: 0, name: "j0".into() }]);
        let unknown = b.decisions(Some("j9"), None, Time(0)).unwrap_err();
        assert_eq!(unknown, "no job `j9` was reported");

        let wide =
            Decision { racks: vec![RackTasks { rack: 0, tasks: 1 }; 33], ..decision(0, 0, 0) };
        let refused = b.take(told(vec![wide]), Time(0)).unwrap_err();
        assert!(refused.contains("names more than 32 racks"), "{refused}");
        let none = Decision { racks: vec![RackTasks { rack: 0, tasks: 0 }], ..decision(0, 0, 0) };
        let refused = b.take(told(vec![none]), Time(0)).unwrap_err();
        assert!(refused.ends_with("allowed: at least 1 task"), "{refused}");
        for _ in 0..=DECISIONS / 100 {
            b.take(told(vec![decision(0, 3, 200); 100]), Time(10_000)).unwrap();
        }
        assert_eq!(found(None, None), vec![(0, 3, 10_000); DECISIONS]);
    }

    #[test]
    fn times_are_the_daemons_and_what_is_not_said_again_stays() {
        let b = Board::default();
        assert_eq!(b.show(Time(0), Time(5)).jobs, []);
        b.take(report(1, 200, vec![job(0, 2, 1), job(1, 0, 0)]), Time(10_000)).unwrap();
        b.take(report(1, 300, vec![job(1, 3, 0)]), Time(10_100)).unwrap();
        let all = b.show(Time(0), Time(10_150));
        let times: Vec<_> =
            all.jobs.iter().map(|j| (j.id, j.computing, j.arrival_ns, j.started_ns)).collect();
        assert_eq!(times, [(0, 2, 9_900, Some(9_950)), (1, 3, 9_900, Some(9_950))]);
        let held: Vec<Vec<_>> = all
            .samples
            .iter()
            .map(|s| s.held.iter().map(|h| (h.job, h.computing, h.waiting)).collect())
            .collect();
        assert_eq!(held, [vec![(0, 2, 1)], vec![(0, 2, 1), (1, 3, 0)]]);
        assert_eq!(b.show(Time(10_000), Time(10_150)).samples, all.samples[1..]);
    }

    #[test]
    fn of_several_runs_the_first_is_shown_until_it_is_silent_and_none_loses_what_it_said() {
        let (b, ms) = (Board::default(), |at: u64| Time(at * 1_000_000));
        let shown = |at| {
            let all = b.show(Time(0), ms(at));
            (all.run, all.jobs.iter().map(|j| j.id).collect::<Vec<_>>(), all.samples.len())
        };
        // In turns, each with what has changed.
        for (k, run) in [1, 2, 1, 2, 1].into_iter().enumerate() {
            b.take(report(run, 0, vec![job(k as u32, 1, 0)]), ms(100 * k as u64 + 1)).unwrap();
        }
        assert_eq!(shown(500), (1, vec![0, 2, 4], 3));
        b.take(report(2, 0, vec![]), ms(2400)).unwrap();
        assert_eq!(shown(2400).0, 1);
        b.take(report(2, 0, vec![job(5, 0, 1)]), ms(2401)).unwrap();
        assert_eq!(shown(2401), (2, vec![1, 3, 5], 4));
        b.take(report(1, 0, vec![]), ms(9000)).unwrap();
        assert_eq!(shown(9000), (1, vec![0, 2, 4], 4));
        // The one that has been silent for longest is forgotten: run 2.
        for run in 3..6 {
            b.take(report(run, 0, vec![job(9, 1, 0)]), ms(9000 + run)).unwrap();
        }
        b.take(report(2, 0, vec![]), ms(20_000)).unwrap();
        assert_eq!(shown(20_000), (2, vec![], 1));
        // One whose jobs are all finished gives way at once.
        let ended = Job { finished_ns: Some(200), ..job(0, 0, 0) };
        b.take(report(2, 200, vec![ended]), ms(20_100)).unwrap();
        b.take(report(6, 0, vec![job(7, 1, 0)]), ms(20_101)).unwrap();
        assert_eq!(shown(20_101), (6, vec![7], 1));
    }

    #[test]
    fn what_a_client_says_is_bounded() {
        let b = Board::default();
        let long = Job { name: "n".repeat(NAME + 1), ..job(0, 1, 0) };
        assert!(b.take(report(1, 0, vec![long]), Time(1)).unwrap_err().contains("257 bytes"));
        assert_eq!(
            b.show(Time(0), Time(1)).workload,
            "",
            "nothing of a report that is refused is kept"
        );
        b.take(report(1, 0, vec![job(JOBS as u32, 1, 0)]), Time(1)).unwrap();
        assert_eq!(b.show(Time(0), Time(1)).jobs, []);
        let many = (0..100).map(|k| job(k, u64::from(k) + 1, u64::MAX - 200)).collect();
        b.take(report(1, 0, many), Time(2)).unwrap();
        let held: Vec<u32> =
            b.show(Time(1), Time(2)).samples[0].held.iter().map(|h| h.job).collect();
        assert_eq!(held, (36..100).collect::<Vec<u32>>());
    }

    #[test]
    fn the_oldest_samples_are_forgotten() {
        let b = Board::default();
        (0..SAMPLES as u64 + 5).for_each(|k| b.take(report(1, k, vec![]), Time(k)).unwrap());
        let all = b.show(Time(0), Time(0));
        assert_eq!((all.samples.len(), all.samples[0].at_ns), (SAMPLES, 5));
    }
}
