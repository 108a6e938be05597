//! Plays a recording again: the same events, to machines made of the same inputs, and the same
//! actions are expected.

use std::io::{self, BufRead, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::{FORMAT, JobsHead, RecordingEntry, RecordingHead};
use crate::control::record::Snapshot;
use crate::control::{self, Controller};
use crate::runtime::open;
use crate::runtime::panics::panic_text;
use crate::scheduler::record::SchedulerSnapshot as JobsSnapshot;
use crate::scheduler::{self, TaskScheduler};
use crate::topology::Topology;
use crate::units::Time;
use crate::workload::jobs::JobSpec;

/// What a recording came to when it was played again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replayed {
    /// The version of the program that recorded.
    pub version: String,
    /// `timed`, `netlink` or `sim`.
    pub mechanism: String,
    /// Where the replay ended, and why.
    pub ending: Ending,
    /// Lines that were played.
    pub lines: u64,
    /// Events and actions of the controller.
    pub controller: Counts,
    /// Events and actions of the scheduler.
    pub scheduler: Counts,
    /// The state of the controller then.
    pub snapshot: Snapshot,
    /// The state of the scheduler then, if there is one.
    pub jobs: Option<JobsSnapshot>,
}

/// How much a machine heard and wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Events that it heard.
    pub events: u64,
    /// Number of them that it did not accept.
    pub refused: u64,
    /// Actions that it wanted, all as recorded.
    pub actions: u64,
}

/// Where a replay ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Where the run did.
    Complete,
    /// At the time that was asked for.
    Asked,
    /// Where the file ends, although the run went on: its process was killed, most likely.
    /// `within_line`: in the middle of a line, which was not played.
    CutOff {
        /// Whether the last line is half there.
        within_line: bool,
    },
    /// Where the disk had become too slow for the run.
    Lost {
        /// Why, as it was recorded.
        why: String,
    },
}

/// Why a recording cannot be played to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file cannot be read.
    #[error("read the recording: {0}")]
    Io(#[from] io::Error),
    /// A line is not one of a recording.
    #[error("line {line}, column {column}: {why}")]
    Malformed {
        /// The line, from 1.
        line: u64,
        /// The column in bytes, from 1, which also stands for the line as a whole.
        column: usize,
        /// What is wrong.
        why: String,
    },
    /// A machine does not do what it did.
    #[error(
        "line {line}: the {machine} differs from column {column} on\nrecorded: {recorded}\nreplayed: {replayed}"
    )]
    Differs {
        /// The line, from 1.
        line: u64,
        /// `controller` or `scheduler`.
        machine: &'static str,
        /// The column in bytes, from 1.
        column: usize,
        /// What is in the file.
        recorded: String,
        /// What it does now.
        replayed: String,
    },
    /// A machine panicked, as it may have done when this was recorded.
    #[error("line {line}: the machine panics: {why}")]
    Panicked {
        /// The line, from 1.
        line: u64,
        /// What the panic said.
        why: String,
    },
}

/// A line as it is read: of what came out of a machine only the text counts.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecordedLine {
    Head(Box<RecordingHead>),
    Tell {
        at: Time,
        event: control::Event,
    },
    Skip {
        at: Time,
    },
    Refused {
        #[serde(rename = "why")]
        _why: IgnoredAny,
    },
    Act {
        #[serde(rename = "action")]
        _action: IgnoredAny,
    },
    Idle {},
    Jobs(Box<JobsHead>),
    JobTell {
        at: Time,
        event: scheduler::SchedulerEvent,
    },
    JobRefused {
        #[serde(rename = "why")]
        _why: IgnoredAny,
    },
    JobAct {
        #[serde(rename = "action")]
        _action: IgnoredAny,
    },
    JobIdle {},
    Lost {
        why: String,
    },
    End {
        lines: u64,
    },
}

/// Plays a recording up to its end, or up to the first event of the controller after `until`.
/// O(what the machines did).
///
/// # Errors
/// The first line that is broken, or at which a machine does something else.
pub fn replay(mut file: impl BufRead, until: Option<Time>) -> Result<Replayed, ReplayError> {
    let mut text = Vec::new();
    let mut number = 1;
    let first = file.fill_buf()?;
    if let Some(what) = open::packed(first) {
        return Err(malformed(number, what));
    }
    if !first.starts_with(b"{") {
        return Err(malformed(
            number,
            "this is no recording: it begins with its `head`, an object of JSON",
        ));
    }
    next_line(&mut file, &mut text, number)?;
    let no_head = |e| match e {
        ReplayError::Malformed { line, column, why } => ReplayError::Malformed {
            line,
            column,
            why: format!("this is no recording, which begins with its `head`: {why}"),
        },
        e => e,
    };
    let head = match parse(&text, number).map_err(no_head)? {
        RecordedLine::Head(head) => *head,
        _ => return Err(malformed(number, "a recording begins with its `head`")),
    };
    check_head(&head).map_err(|why| malformed(number, why))?;
    let mut player = guarded(number, || Ok(Player::new(head)))?;
    let ending = loop {
        text.clear();
        number += 1;
        if next_line(&mut file, &mut text, number)? == 0 {
            break Ending::CutOff { within_line: false };
        }
        let whole = text.ends_with(b"\n");
        let line = match parse(&text, number) {
            Err(_) if !whole => break Ending::CutOff { within_line: true },
            line => line?,
        };
        if until.is_some_and(
            |t| matches!(line, RecordedLine::Tell { at, .. } | RecordedLine::Skip { at } if at > t),
        ) {
            break Ending::Asked;
        }
        player.line = number;
        if let Some(ending) = guarded(number, || player.play(line, &text))? {
            break ending;
        }
    };
    guarded(number, || Ok(player.into_replayed(ending, until)))
}

/// Reads one more line; a damaged file may have one that is longer than the memory.
fn next_line(
    file: &mut impl BufRead,
    text: &mut Vec<u8>,
    number: u64,
) -> Result<usize, ReplayError> {
    let length = file.take(LONGEST + 1).read_until(b'\n', text)?;
    if length as u64 > LONGEST {
        Err(malformed(number, format!("a line of more than {LONGEST} bytes")))
    } else {
        Ok(length)
    }
}

fn malformed(line: u64, why: impl Into<String>) -> ReplayError {
    ReplayError::Malformed { line, column: 1, why: why.into() }
}

fn parse(text: &[u8], line: u64) -> Result<RecordedLine, ReplayError> {
    serde_json::from_slice(text).map_err(|e| {
        // The position is in a field of its own.
        let why = e.to_string();
        let why = why.split(" at line ").next().unwrap_or_default().to_owned();
        ReplayError::Malformed { line, column: e.column().max(1), why }
    })
}

/// Runs a step of a machine, whose panic is an error: what it heard is only known to be JSON.
fn guarded<T>(line: u64, step: impl FnOnce() -> Result<T, ReplayError>) -> Result<T, ReplayError> {
    let done = catch_unwind(AssertUnwindSafe(step));
    done.unwrap_or_else(|panic| {
        Err(ReplayError::Panicked { line, why: panic_text(&*panic).to_owned() })
    })
}

/// Bytes of the longest line that is read.
const LONGEST: u64 = 1 << 28;
/// Numbers up to which a machine takes memory: a damaged file shall not ask for more than there is.
const MOST: u32 = 1 << 20;

fn check_topology(t: &Topology) -> Result<(), String> {
    if t.hosts.iter().any(|h| h.slots > MOST) {
        return Err(format!("a host with more than {MOST} slots"));
    }
    if t.racks.is_empty() {
        return Err("a network without racks".into());
    }
    Ok(())
}

fn check_head(head: &RecordingHead) -> Result<(), String> {
    if head.format != FORMAT {
        return Err(format!("the format is {}; this version reads {FORMAT}", head.format));
    }
    check_topology(&head.topology)
}

fn check_job(job: &JobSpec) -> Result<(), String> {
    let large = job.queue > MOST || job.stages.iter().any(|s| s.tasks > MOST);
    if large { Err(format!("a job with a queue or number of tasks above {MOST}")) } else { Ok(()) }
}

/// The machines, and what they still owe.
struct Player {
    head: RecordingHead,
    controller: Controller,
    scheduler: Option<TaskScheduler>,
    /// What the event before was refused for.
    refused: [Option<String>; 2],
    counts: [Counts; 2],
    now: Time,
    /// The line that is played.
    line: u64,
}

/// The machines' places in the arrays of a [`Player`], and their names.
const MACHINES: [&str; 2] = ["controller", "scheduler"];
const CONTROLLER: usize = 0;
const SCHEDULER: usize = 1;

impl Player {
    fn new(head: RecordingHead) -> Self {
        let controller = Controller::new(
            head.topology.clone().into(),
            head.plan.policy.clone(),
            head.start,
            head.notice,
        );
        let now = head.start;
        Self {
            head,
            controller,
            scheduler: None,
            refused: [None, None],
            counts: [Counts::default(); 2],
            now,
            line: 1,
        }
    }

    /// Plays a line; returns how the recording ends, if it ends here.
    fn play(&mut self, line: RecordedLine, text: &[u8]) -> Result<Option<Ending>, ReplayError> {
        match line {
            RecordedLine::Refused { .. } => self.expect(CONTROLLER, text)?,
            RecordedLine::JobRefused { .. } => self.expect(SCHEDULER, text)?,
            RecordedLine::Tell { .. }
            | RecordedLine::Skip { .. }
            | RecordedLine::Act { .. }
            | RecordedLine::Idle {} => self.owes_nothing(CONTROLLER, text)?,
            RecordedLine::JobTell { .. }
            | RecordedLine::JobAct { .. }
            | RecordedLine::JobIdle {} => self.owes_nothing(SCHEDULER, text)?,
            RecordedLine::Head(_)
            | RecordedLine::Jobs(_)
            | RecordedLine::Lost { .. }
            | RecordedLine::End { .. } => {}
        }
        match line {
            RecordedLine::Head(_) => return Err(malformed(self.line, "a second `head`")),
            RecordedLine::Tell { at, event } => self.tell(event, at),
            RecordedLine::Skip { at } => self.skip(at),
            RecordedLine::Act { .. } | RecordedLine::Idle {} => {
                let action = self.controller.poll_action();
                self.compare(
                    CONTROLLER,
                    action.map_or(RecordingEntry::Idle {}, |action| RecordingEntry::Act { action }),
                    text,
                )?;
            }
            RecordedLine::Jobs(head) => self.begin_jobs(&head)?,
            RecordedLine::JobTell { at, event } => self.tell_jobs(event, at)?,
            RecordedLine::JobAct { .. } | RecordedLine::JobIdle {} => {
                let action = self.jobs()?.poll_action();
                self.compare(
                    SCHEDULER,
                    action.map_or(RecordingEntry::JobIdle {}, |action| RecordingEntry::JobAct {
                        action,
                    }),
                    text,
                )?;
            }
            RecordedLine::Refused { .. } | RecordedLine::JobRefused { .. } => {}
            RecordedLine::Lost { why } => return Ok(Some(Ending::Lost { why })),
            RecordedLine::End { lines } if lines + 1 != self.line => {
                return Err(malformed(
                    self.line,
                    format!(
                        "{} lines come before this one, and {lines} were written",
                        self.line - 1
                    ),
                ));
            }
            RecordedLine::End { .. } => return Ok(Some(Ending::Complete)),
        }
        Ok(None)
    }

    fn tell(&mut self, event: control::Event, at: Time) {
        self.now = self.now.max(at);
        self.counts[CONTROLLER].events += 1;
        self.refused[CONTROLLER] = self.controller.handle(event, at).err().map(|e| e.to_string());
    }

    fn skip(&mut self, at: Time) {
        self.now = self.now.max(at);
        self.counts[CONTROLLER].events += 1;
        self.controller.skip_until(at);
    }

    fn begin_jobs(&mut self, head: &JobsHead) -> Result<(), ReplayError> {
        check_topology(&head.topology).map_err(|why| malformed(self.line, why))?;
        head.foreseen.iter().try_for_each(check_job).map_err(|why| malformed(self.line, why))?;
        self.scheduler = Some(head.scheduler().map_err(|why| malformed(self.line, why))?);
        Ok(())
    }

    fn jobs(&mut self) -> Result<&mut TaskScheduler, ReplayError> {
        self.scheduler
            .as_mut()
            .ok_or_else(|| malformed(self.line, "a scheduler's line before `jobs`"))
    }

    fn tell_jobs(&mut self, event: scheduler::SchedulerEvent, at: Time) -> Result<(), ReplayError> {
        if let scheduler::SchedulerEvent::Submitted(job) = &event {
            check_job(job).map_err(|why| malformed(self.line, why))?;
        }
        let told = self.jobs()?.handle(event, at);
        self.counts[SCHEDULER].events += 1;
        self.refused[SCHEDULER] = told.err().map(|e| e.to_string());
        Ok(())
    }

    /// The recorded refusal is that of the event before.
    fn expect(&mut self, machine: usize, text: &[u8]) -> Result<(), ReplayError> {
        let replayed = match self.refused[machine].take() {
            None => return Err(self.differs(machine, text, "the event before is accepted")),
            Some(why) if machine == CONTROLLER => RecordingEntry::Refused { why },
            Some(why) => RecordingEntry::JobRefused { why },
        };
        self.counts[machine].refused += 1;
        self.same(machine, &replayed, text)
    }

    fn owes_nothing(&mut self, machine: usize, text: &[u8]) -> Result<(), ReplayError> {
        match self.refused[machine].take() {
            None => Ok(()),
            Some(why) => {
                Err(self.differs(machine, text, &format!("the event before is refused: {why}")))
            }
        }
    }

    fn compare(
        &mut self,
        machine: usize,
        replayed: RecordingEntry,
        text: &[u8],
    ) -> Result<(), ReplayError> {
        self.counts[machine].actions += u64::from(matches!(
            replayed,
            RecordingEntry::Act { .. } | RecordingEntry::JobAct { .. }
        ));
        self.same(machine, &replayed, text)
    }

    fn same(
        &self,
        machine: usize,
        replayed: &RecordingEntry,
        text: &[u8],
    ) -> Result<(), ReplayError> {
        let replayed = serde_json::to_string(replayed).map_err(io::Error::from)?;
        if replayed.as_bytes() == text.trim_ascii_end() {
            Ok(())
        } else {
            Err(self.differs(machine, text, &replayed))
        }
    }

    fn differs(&self, machine: usize, recorded: &[u8], replayed: &str) -> ReplayError {
        let recorded = String::from_utf8_lossy(recorded.trim_ascii_end());
        let same = recorded.bytes().zip(replayed.bytes()).take_while(|(a, b)| a == b).count();
        ReplayError::Differs {
            line: self.line,
            machine: MACHINES[machine],
            column: same + 1,
            recorded: around(&recorded, same),
            replayed: around(replayed, same),
        }
    }

    fn into_replayed(self, ending: Ending, until: Option<Time>) -> Replayed {
        let at = if ending == Ending::Asked { until.unwrap_or(self.now) } else { self.now };
        Replayed {
            snapshot: self.controller.snapshot(at, &self.head.mechanism),
            jobs: self.scheduler.as_ref().map(TaskScheduler::snapshot),
            version: self.head.version,
            mechanism: self.head.mechanism,
            ending,
            lines: self.line,
            controller: self.counts[CONTROLLER],
            scheduler: self.counts[SCHEDULER],
        }
    }
}

/// A text near this byte, where it is long.
fn around(text: &str, byte: usize) -> String {
    const BEFORE: usize = 60;
    const AFTER: usize = 120;
    let (from, to) = (byte.saturating_sub(BEFORE), (byte + AFTER).min(text.len()));
    let dots = |cut: bool| if cut { "..." } else { "" };
    format!(
        "{}{}{}",
        dots(from > 0),
        String::from_utf8_lossy(&text.as_bytes()[from.min(to)..to]),
        dots(to < text.len())
    )
}
