//! A placement policy outside of Heliostat: a program says which task gets a free slot.
//!
//! The scheduler asks with [`OfferQuestion`] where it would ask another policy with
//! [`Placement::offer`], and takes [`OfferAnswer`]; how they reach the program is the runtime's
//! business. All else (where data goes, when a stage may have slots) is as under the fallback,
//! which also decides where the program does not.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Kind;
use super::offers::{OfferAnswer, OfferQuestion, ReadyJob, ReadyStage, Shuffled, Start};
use super::policy::{
    Block, FetchStart, Locality, OfferAlarm, Pick, Placement, StageCounts, TaskAt, Unanswered,
    View, startable,
};
use super::registry::Spec;
use super::spec::{BadOption, Common, PolicyOptions};
use crate::circuits::external::{NoAnswer, Privileges, ProgramAt, check_environment};
use crate::ids::{JobId, RackId};
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time, exact};
use crate::workload::jobs::JobSpec;

/// The policies that can stand in for a program: they keep no plans of their own.
pub const FALLBACKS: [Kind; 3] = [Kind::Fair, Kind::Capacity, Kind::Delay];
/// An offer is made again after this time at the soonest: a program that asks for less does not
/// hold up the run.
const SOONEST: Span = Span::millis(1);
/// The longest time that a live run waits for an answer.
const LONGEST: Span = Span::secs(10);

/// Options of the policy `external`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExternalOptions {
    /// The program that decides which task starts where.
    pub external: ProgramOptions,
}

/// A program that decides about slots: it takes questions and gives answers, as JSON. One of
/// `command` and `url` names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgramOptions {
    /// The program and its arguments; it runs in the directory of the policy's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub command: Option<Vec<String>>,
    /// Where a program that runs already takes questions by HTTP, such as http://127.0.0.1:8000/.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Time for an answer in a live run, 10 s at most; 100 ms if left out.
    #[serde(default = "within", serialize_with = "exact")]
    pub within: Span,
    /// Decides where the program gives no answer in time, or a wrong one: fair, capacity or delay;
    /// fair if left out.
    #[serde(default = "fair")]
    pub fallback: Kind,
    /// Variables of Heliostat's environment that it gets beside PATH, HOME, USER, LOGNAME, LANG,
    /// LC_*, TZ and TMPDIR.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<String>,
    /// What it may do on the machine: `drop`, nothing that takes root or a capability, or `keep`,
    /// all that Heliostat may; drop if left out.
    #[serde(default, skip_serializing_if = "Privileges::are_dropped")]
    pub privileges: Privileges,
    /// Where it is started: the directory of the policy's file; `None`: where this process is.
    #[serde(skip)]
    pub directory: Option<PathBuf>,
}

fn within() -> Span {
    Span::millis(100)
}

fn fair() -> Kind {
    Kind::Fair
}

impl Default for ProgramOptions {
    fn default() -> Self {
        Self {
            command: None,
            url: None,
            within: within(),
            fallback: fair(),
            environment: vec![],
            privileges: Privileges::Drop,
            directory: None,
        }
    }
}

impl ProgramOptions {
    /// Where the program is.
    ///
    /// # Errors
    /// What is wrong with what the file says of it, and what is allowed.
    pub fn at(&self) -> Result<ProgramAt, (String, &'static str)> {
        ProgramAt::new(self.command.as_deref(), self.url.as_deref())
    }
}

impl PolicyOptions for ExternalOptions {
    fn check(&self) -> Vec<BadOption> {
        let ProgramOptions { within, fallback, .. } = &self.external;
        let bad = |message: &str, allowed: &str| BadOption {
            key: "external".into(),
            message: message.into(),
            allowed: allowed.into(),
        };
        let mut all = vec![];
        // The usual options are those of a policy that is not this one.
        if *self != Self::default()
            && let Err((message, allowed)) = self.external.at()
        {
            all.push(bad(&message, allowed));
        }
        if let Err((message, allowed)) = check_environment(&self.external.environment) {
            all.push(bad(&message, allowed));
        }
        if *within == Span::ZERO || *within > LONGEST {
            all.push(bad(&format!("`within` of {within}"), "above zero, 10 s at most"));
        }
        if !FALLBACKS.contains(fallback) {
            let names = FALLBACKS.map(Kind::name).join(", ");
            all.push(bad(
                &format!(
                    "`fallback: {}` keeps plans that a program does not follow",
                    fallback.name()
                ),
                &names,
            ));
        }
        all
    }

    fn build(&self, common: &Common, elephant: Bytes) -> Box<dyn Placement> {
        let fallback = Spec { common: common.clone(), ..Spec::new(self.external.fallback) };
        Box::new(ExternalPlacement {
            fallback: fallback.build(elephant),
            asked: None,
            to_ask: None,
            answer: None,
            questions: 0,
            alarm: OfferAlarm::default(),
            fallbacks: 0,
            late_answers: 0,
            first_fallback: None,
        })
    }
}

/// The offer of a slot of a rack. O(racks (ready stages + 1) + hosts of the rack x ready stages).
fn question(view: &dyn View, rack: RackId, offer: u64) -> OfferQuestion {
    let racks = || view.topology().racks.iter().map(|r| r.id);
    let hosts = view.topology().hosts_of(rack).iter().filter(|h| view.is_up(h.id));
    OfferQuestion {
        offer,
        at_ns: view.now(),
        rack,
        hosts: hosts.map(|h| (h.id, view.free_on(h.id))).collect(),
        free: racks().map(|r| view.free(r)).collect(),
        shuffling_into: racks().map(|r| view.shuffling_into(r)).collect(),
        ready: view
            .ready()
            .map(|job| ready_job(view, job, rack))
            .filter(|j| !j.stages.is_empty())
            .collect(),
    }
}

fn ready_job(view: &dyn View, job: JobId, rack: RackId) -> ReadyJob {
    let JobSpec { name, queue, arrival, .. } = view.job(job);
    let stages = startable(view, job).map(|stage| ready_stage(view, (job, stage), rack)).collect();
    ReadyJob { job, name: name.clone(), queue: *queue, arrival_ns: *arrival, stages }
}

fn ready_stage(view: &dyn View, (job, stage): (JobId, usize), rack: RackId) -> ReadyStage {
    let by_rack = |of: &dyn Fn(RackId) -> u32| -> Vec<(RackId, u32)> {
        view.topology().racks.iter().map(|r| (r.id, of(r.id))).filter(|n| n.1 > 0).collect()
    };
    let StageCounts { pending, running, finished, .. } = view.counts(job, stage);
    let edges = view.job(job).edges_into(stage);
    let inputs = edges.map(|e| Shuffled {
        from: e.from,
        bytes: e.bytes,
        output_in: by_rack(&|r| view.output_in(job, e.from, r)),
    });
    ReadyStage {
        stage,
        pending,
        running,
        finished,
        near: view.locality(job, stage, rack).unwrap_or(Locality::Remote),
        running_in: by_rack(&|r| view.running_in(job, stage, r)),
        inputs: inputs.collect(),
    }
}

/// The pick that an answer is.
///
/// # Errors
/// What cannot start, and why.
fn pick(answer: &OfferAnswer, view: &dyn View) -> Result<Option<Pick>, String> {
    let Some(Start { job, stage, host, task }) = answer.start else { return Ok(None) };
    if !view.ready().any(|j| j == job) || !startable(view, job).any(|s| s == stage) {
        return Err(format!("no task of stage {stage} of job {} may start now", job.0));
    }
    let hosts = view.topology().hosts.len();
    if let Some(h) = host.filter(|h| h.index() >= hosts || view.free_on(*h) == 0) {
        let why = if h.index() >= hosts {
            format!("there are {hosts}")
        } else {
            "it has no free slot".into()
        };
        return Err(format!("no task can start on host {}: {why}", h.0));
    }
    let pending = |k: u32| view.tasks(job, stage).nth(k as usize) == Some(TaskAt::Pending);
    if let Some(k) = task.filter(|k| !pending(*k)) {
        return Err(format!("task {k} of stage {stage} of job {} does not wait for a slot", job.0));
    }
    Ok(Some(Pick { job, stage, host, task }))
}

/// The policy. An offer is put off until the program has answered: [`Placement::take_question`],
/// [`Placement::advised`].
struct ExternalPlacement {
    fallback: Box<dyn Placement>,
    /// The rack of the offer that is being asked about.
    asked: Option<RackId>,
    /// What is asked, until the scheduler has taken it.
    to_ask: Option<OfferQuestion>,
    /// What came of it, for the offer when it is made again.
    answer: Option<Result<OfferAnswer, NoAnswer>>,
    questions: u64,
    alarm: OfferAlarm,
    fallbacks: u64,
    late_answers: u64,
    first_fallback: Option<String>,
}

impl ExternalPlacement {
    fn ask(&mut self, view: &dyn View, rack: RackId) {
        let question = question(view, rack, self.questions);
        if !question.ready.is_empty() {
            self.questions += 1;
            (self.asked, self.to_ask) = (Some(rack), Some(question));
        }
    }

    fn decide(
        &mut self,
        view: &dyn View,
        rack: RackId,
        answer: Result<OfferAnswer, NoAnswer>,
    ) -> Option<Pick> {
        match answer.and_then(|a| Ok((pick(&a, view)?, a.again_at_ns))) {
            Ok((pick, again)) => {
                again
                    .filter(|_| pick.is_none())
                    .into_iter()
                    .for_each(|t| self.alarm.by(t.max(view.now() + SOONEST)));
                pick
            }
            Err(why) => {
                let late = &mut self.late_answers;
                why.count(&mut self.fallbacks, late, &mut self.first_fallback);
                self.fallback.offer(view, rack)
            }
        }
    }
}

impl Placement for ExternalPlacement {
    fn name(&self) -> &'static str {
        Kind::External.name()
    }

    fn plan(&mut self, topology: &Topology, jobs: &[JobSpec]) -> Result<(), String> {
        self.fallback.plan(topology, jobs)
    }

    fn place_data(&mut self, view: &dyn View, job: JobId) -> Vec<Vec<Block>> {
        self.fallback.place_data(view, job)
    }

    fn slowstart(&self, view: &dyn View, job: JobId) -> u32 {
        self.fallback.slowstart(view, job)
    }

    fn offer(&mut self, view: &dyn View, rack: RackId) -> Option<Pick> {
        match (self.asked.take_if(|r| *r == rack), self.answer.take()) {
            (Some(_), Some(answer)) => self.decide(view, rack, answer),
            _ => {
                self.ask(view, rack);
                None
            }
        }
    }

    fn take_question(&mut self) -> Option<OfferQuestion> {
        self.to_ask.take()
    }

    fn advised(&mut self, answer: Result<OfferAnswer, NoAnswer>) {
        self.answer = Some(answer);
    }

    fn unanswered(&self) -> Unanswered<'_> {
        Unanswered {
            offers: self.fallbacks,
            late: self.late_answers,
            first: self.first_fallback.as_deref(),
        }
    }

    fn wake_at(&self) -> Option<Time> {
        self.alarm.at().into_iter().chain(self.fallback.wake_at()).min()
    }

    fn woken(&mut self, now: Time) {
        self.alarm.woken(now);
        self.fallback.woken(now);
    }

    fn shuffle(&mut self, view: &dyn View, job: JobId, stage: usize) -> FetchStart {
        self.fallback.shuffle(view, job, stage)
    }

    fn submitted(&mut self, view: &dyn View, job: JobId) {
        self.fallback.submitted(view, job);
    }

    fn started(&mut self, view: &dyn View, pick: Pick, rack: RackId, near: Locality) {
        self.fallback.started(view, pick, rack, near);
    }

    fn stage_finished(&mut self, view: &dyn View, job: JobId, stage: usize) {
        self.fallback.stage_finished(view, job, stage);
    }

    fn cluster_changed(&mut self, view: &dyn View) {
        self.fallback.cluster_changed(view);
    }
}
