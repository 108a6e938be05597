//! Why the tasks of a job started when and where they did, for people.

use super::tables::{self, TextTable};
use super::{CliError, decisions};
use crate::api::wire::Decision;
use crate::ids::JobId;
use crate::placement::policy::Locality;
use crate::placement::why::{Moment, Refusal, Why};
use crate::runtime::jobs::report::JobsResult;
use crate::scheduler::record::{Explained, TaskRun};
use crate::workload::jobs::JobList;

/// The most jobs that are named in a message or a cell.
const NAMED: usize = 3;

/// The job of that name, or of that number.
///
/// # Errors
/// There is none; says which there are.
pub fn find(jobs: &JobList, job: &str) -> Result<JobId, CliError> {
    let by_name = jobs.jobs.iter().find(|j| j.name == job);
    let number = || job.parse::<usize>().ok().and_then(|n| jobs.jobs.get(n));
    let found = by_name.or_else(number).map(|j| j.id);
    found.ok_or_else(|| {
        let some: Vec<String> =
            jobs.jobs.iter().take(NAMED).map(|j| format!("`{}`", j.name)).collect();
        let more = if jobs.jobs.len() > NAMED { " .." } else { "" };
        let last = jobs.jobs.len().saturating_sub(1);
        CliError::Usage(format!(
            "--explain: no job `{job}`; there are {}{more}, or by number 0 to {last}",
            some.join(", ")
        ))
    })
}

/// A row an attempt of a task, in the order of their starts.
pub fn table(r: &JobsResult) -> TextTable {
    let mut rows = TextTable::new(&[
        "task",
        "started",
        "after",
        "host",
        "near",
        "because",
        "left by",
        "fetching there",
        "network busy",
        "to fetch",
        "waited for input",
        "computed",
    ]);
    for e in &r.explained {
        let ran = r.timeline.iter().find(|t| (t.task, t.attempt) == (e.task, e.attempt));
        rows.rows.push(row(r, (e, ran)));
    }
    rows
}

/// Where the policy put its tasks and which placements lost, if it says so.
pub fn decisions(r: &JobsResult) -> String {
    if r.decisions.is_empty() {
        return String::new();
    }
    let all: Vec<Decision> = r.decisions.iter().map(Into::into).collect();
    let name = |job: u32| r.jobs.get(job as usize).map_or(job.to_string(), |j| j.name.clone());
    format!("\n{}\n", decisions::table(&all, name, false).table())
}

fn row(r: &JobsResult, (e, ran): (&Explained<String>, Option<&TaskRun<String>>)) -> Vec<String> {
    let again = if e.attempt > 1 { format!(" ({})", e.attempt) } else { String::new() };
    let near = match e.near {
        Locality::Host => "host",
        Locality::Rack => "rack",
        Locality::Remote => "far",
    };
    let of = |f: &dyn Fn(&Why) -> String| e.why.as_ref().map_or("-".into(), f);
    let input = ran.and_then(|t| t.computes).map(|c| c.since(e.started));
    let computed = ran.and_then(|t| t.computes.map(|c| t.ended.since(c)));
    vec![
        format!("{}.{}{again}", e.task.stage, e.task.task),
        tables::span(e.started.since(crate::units::Time::ZERO)),
        tables::span(e.started.since(e.waited_since)),
        e.host.clone(),
        near.into(),
        of(&because),
        of(&|w| left_by(r, w)),
        of(&|w| w.inputs.to_string()),
        of(&|w| tables::span(w.transfer)),
        of(&|w| tables::bytes(w.fetches)),
        input.map_or("-".into(), tables::span),
        computed.map_or("-".into(), tables::span),
    ]
}

/// The rule by which it started.
fn because(w: &Why) -> String {
    let moment = if w.moment == Moment::Arrival { "arrival" } else { "free slot" };
    let local = w.fetches.0 == 0;
    let rule = match () {
        () if w.wild_card => "wild card",
        () if local && !w.left_by.is_empty() => "ends in time",
        () if local => "local",
        () => "room",
    };
    format!("{moment}, {rule}")
}

/// The jobs before it that left the slot to it, and why.
fn left_by(r: &JobsResult, w: &Why) -> String {
    let name =
        |job: JobId| r.jobs.get(job.index()).map_or_else(|| job.to_string(), |j| j.name.clone());
    let why = |refusal| match refusal {
        Refusal::Locality => "locality",
        Refusal::Network => "network",
        Refusal::Hinders => "too long",
    };
    let mut cells: Vec<String> = w
        .left_by
        .iter()
        .take(NAMED)
        .map(|&(job, refusal)| format!("{} ({})", name(job), why(refusal)))
        .collect();
    if w.left_by.len() > NAMED {
        cells.push(format!("{} more", w.left_by.len() - NAMED));
    }
    if cells.is_empty() { "-".into() } else { cells.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::runtime::jobs::simulate::{JobRunOptions, SimulatedJobs, simulate_with};
    use crate::scheduler::spec::JobPolicy;
    use crate::testing::shipped;
    use crate::units::{Bytes, Span};

    fn explained(policy: &str) -> JobsResult {
        let topology = config::read_topology(&shipped("topologies/hybrid-8x2.yaml"), "t").unwrap();
        let plan = config::read_policy(&shipped(policy), policy).unwrap();
        let jobs_by: JobPolicy = plan.jobs.clone().unwrap();
        let jobs = config::read_jobs(&shipped("workloads/jobs-8.yaml"), "jobs").unwrap();
        let course = JobRunOptions {
            explain: Some(find(&jobs, "sort-1").unwrap()),
            ..JobRunOptions::default()
        };
        let ask = SimulatedJobs {
            topology: &topology,
            plan: &plan,
            jobs_by: &jobs_by,
            jobs: &jobs,
            failures: &[],
            faults: &[],
            until: None,
        };
        simulate_with(&ask, &course, &mut |_| {}).unwrap()
    }

    #[test]
    fn every_start_of_the_job_has_a_row_and_pushbox_says_why() {
        for (policy, says_why) in [("policies/pushbox.yaml", true), ("policies/fair.yaml", false)] {
            let r = explained(policy);
            let job = r.jobs.iter().find(|j| j.name == "sort-1").unwrap();
            assert_eq!(r.explained.len() as u64, job.tasks, "{policy}");
            assert!(r.explained.iter().all(|e| e.task.job == job.id
                && e.why.is_some() == says_why
                && e.started >= e.waited_since));
            let rows = table(&r);
            assert_eq!(
                (rows.rows.len() as u64, rows.table().contains("arrival, ")),
                (job.tasks, says_why),
                "{}",
                rows.table()
            );
            assert_eq!(decisions(&r), "", "{policy}");
        }
    }

    #[test]
    fn joint_says_where_each_task_of_the_job_went_and_what_lost() {
        let r = explained("policies/joint.yaml");
        let job = r.jobs.iter().find(|j| j.name == "sort-1").unwrap();
        assert!(r.decisions.iter().all(|d| d.job == job.id));
        // Stages that receive are placed as wholes, maps one by one.
        let tasks = r.decisions.iter().flat_map(|d| &d.racks).map(|t| u64::from(t.tasks));
        assert_eq!(tasks.sum::<u64>(), job.tasks);
        for d in r.decisions.iter().filter(|d| d.estimate.is_some()) {
            let best = d.estimate.as_ref().unwrap();
            assert!(d.losers > 0 && d.lost.iter().all(|e| e.price >= best.price), "{d:?}");
            assert_eq!(best.price, best.slots + best.shuffle + best.others);
            // What was expected is kept: its tasks have slots on these racks.
            let started =
                r.timeline.iter().filter(|t| (t.task.job, t.task.stage) == (d.job, d.stage));
            let racks: Vec<String> = best.racks.iter().map(|t| format!("h{}-", t.rack.0)).collect();
            assert!(started.clone().count() > 0);
            assert!(started.into_iter().all(|t| racks.iter().any(|r| t.host.starts_with(r))));
        }
        let text = decisions(&r);
        assert!(text.contains("least price of") && text.contains("lost by"), "{text}");
    }

    #[test]
    fn rules_and_refusals_have_their_words() {
        let why = |wild_card, fetches, left_by| Why {
            moment: Moment::SlotChange,
            left_by,
            inputs: 3,
            wild_card,
            fetches: Bytes(fetches),
            transfer: Span(5),
            computing: Span(4),
        };
        let left = vec![(JobId(0), Refusal::Network), (JobId(1), Refusal::Hinders)];
        assert_eq!(because(&why(true, 9, vec![])), "free slot, wild card");
        assert_eq!(because(&why(false, 0, left.clone())), "free slot, ends in time");
        assert_eq!(
            (because(&why(false, 0, vec![])), because(&why(false, 1, vec![]))),
            ("free slot, local".into(), "free slot, room".into())
        );
        let r = explained("policies/fair.yaml");
        let (a, b) = (&r.jobs[0].name, &r.jobs[1].name);
        assert_eq!(left_by(&r, &why(false, 0, left)), format!("{a} (network), {b} (too long)"));
    }

    #[test]
    fn a_job_that_is_not_there_is_refused_with_those_that_are() {
        let jobs = config::read_jobs(&shipped("workloads/jobs-8.yaml"), "jobs").unwrap();
        assert_eq!(find(&jobs, "1").unwrap(), JobId(1));
        let refused = find(&jobs, "no-such-job").unwrap_err().to_string();
        assert!(
            refused.contains("no job `no-such-job`") && refused.contains(&jobs.jobs[0].name),
            "{refused}"
        );
    }
}
