//! The lines of an event log (`--events` of `run` and `simulate`): written as the API tells events,
//! read in that form and in the older one.

use serde::{Deserialize, Serialize};

use crate::api::wire;
use crate::control::record::Record;
use crate::runtime::jobs::simulate as of_jobs;
use crate::runtime::report::{ResultNames, ResultOrigin};
use crate::scheduler::SchedulerAction;
use crate::units::Time;

/// The format of event logs that this version writes, and the latest that it reads.
const FORMAT: u32 = 1;

/// By which clock a log's times are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogClock {
    /// A simulation's, which begins with the run.
    Virtual,
    /// The daemon's, which begins with it; a live result says in `zero_ns` when its own zero was by
    /// this clock.
    Live,
}

/// The first line of an event log: what ran. Logs of older versions have none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLogHead {
    /// The log's format.
    event_log: u32,
    /// Heliostat's version, as results have it.
    pub version: String,
    /// Whose times the log has.
    pub clock: LogClock,
    /// `timed`, `netlink` or `sim`.
    pub mechanism: String,
    /// Name of the topology.
    pub topology: String,
    /// Name of the policy.
    pub policy: String,
    /// Name of the workload; absent where the network waits for what others send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// What was drawn, was drawn from this; absent of live runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// When the log begins, in UTC (RFC 3339); of simulations only if asked for, as results have
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
}

impl EventLogHead {
    /// Of a run that comes from `origin`.
    pub fn new(clock: LogClock, origin: &ResultOrigin, of: ResultNames<'_>) -> Self {
        Self {
            event_log: FORMAT,
            version: origin.version.clone(),
            clock,
            mechanism: of.mechanism.into(),
            topology: of.topology.into(),
            policy: of.policy.into(),
            workload: (!of.workload.is_empty()).then(|| of.workload.into()),
            seed: origin.seed,
            started_at: origin.started_at.clone(),
        }
    }

    /// The line, newline included.
    pub fn line(&self) -> String {
        text(self)
    }

    /// Reads a line as a head; `None` if it is another line.
    ///
    /// # Errors
    /// A log of a later format.
    pub fn read(line: &str) -> Result<Option<Self>, String> {
        #[derive(Deserialize)]
        struct Any {
            event_log: u32,
        }
        match serde_json::from_str::<Any>(line) {
            Ok(Any { event_log }) if event_log > FORMAT => Err(format!(
                "an event log of format {event_log}; this version of heliostat reads formats up to {FORMAT}"
            )),
            Ok(_) => serde_json::from_str(line)
                .map(Some)
                .map_err(|e| format!("the first line of an event log: {e}")),
            Err(_) => Ok(None),
        }
    }
}

/// A line with an event of the network, newline included.
pub fn of_network(record: &Record) -> String {
    text(&wire::Record::from(record))
}

/// A line of a run of jobs, newline included.
pub fn of_jobs(line: &of_jobs::EventLogLine) -> String {
    #[derive(Serialize)]
    struct Wanted<'a> {
        at_ns: Time,
        job_action: &'a SchedulerAction,
    }
    match line {
        of_jobs::EventLogLine::Network(record) => of_network(record),
        of_jobs::EventLogLine::Jobs { at, job_action } => text(&Wanted { at_ns: *at, job_action }),
    }
}

fn text(line: &impl Serialize) -> String {
    serde_json::to_string(line).expect("a line is plain data") + "\n"
}

/// Reads a line of the network.
///
/// # Errors
/// The line is of neither form.
pub fn read(line: &str) -> serde_json::Result<wire::Record> {
    serde_json::from_str(line).or_else(|e| {
        // Older logs were written as recordings are, with keys that name no unit.
        serde_json::from_str::<Record>(line).map(|r| wire::Record::from(&r)).map_err(|_| e)
    })
}

/// Whether a line is the task scheduler's, of which nothing is drawn.
pub fn is_of_jobs(line: &str) -> bool {
    #[derive(Deserialize)]
    struct Line {
        #[serde(rename = "job_action")]
        _action: serde::de::IgnoredAny,
    }
    serde_json::from_str::<Line>(line).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::record::RecordedEvent;
    use crate::ids::{JobId, PlaneId, RackId};
    use crate::units::Bytes;

    #[test]
    fn both_forms_of_a_line_tell_the_same() {
        let (plane, input, output) = (PlaneId(1), RackId(2), RackId(3));
        let set = RecordedEvent::CircuitSet {
            plane,
            input,
            output,
            setup_at: Time(4),
            up_from: Time(5),
            until: Some(Time(6)),
            demand: Some(Bytes(1)),
        };
        let end = RecordedEvent::CircuitEnd { plane, input, up_from: Time(5), until: Time(7) };
        let cycle = RecordedEvent::Cycle { cycle: 8, demand: Bytes(9), ops: 1, late: false };
        for what in [set, end, cycle, RecordedEvent::PolicyChanged { name: "x".into() }] {
            let record = Record { seq: 0, at: Time(3), what };
            for line in [serde_json::to_string(&record).unwrap(), of_network(&record)] {
                assert_eq!(read(&line).unwrap(), wire::Record::from(&record), "{line}");
            }
        }
    }

    #[test]
    fn every_time_and_size_of_a_line_has_its_unit() {
        let record = |what| of_network(&Record { seq: 0, at: Time(1), what });
        assert_eq!(
            record(RecordedEvent::Cycle { cycle: 2, demand: Bytes(3), ops: 4, late: true }),
            "{\"seq\":0,\"at_ns\":1,\"event\":\"cycle\",\"cycle\":2,\"demand_bytes\":3,\"ops\":4,\"late\":true}\n"
        );
        let line = of_jobs::EventLogLine::Jobs {
            at: Time(1),
            job_action: &SchedulerAction::FinishJob(JobId(2)),
        };
        assert_eq!(of_jobs(&line), "{\"at_ns\":1,\"job_action\":{\"FinishJob\":2}}\n");
        assert!(
            is_of_jobs(&of_jobs(&line))
                && is_of_jobs("{\"at\":1,\"job_action\":{\"FinishJob\":2}}")
        );
    }

    #[test]
    fn a_head_says_what_ran_and_later_formats_are_refused() {
        let origin = ResultOrigin { seed: Some(7), ..ResultOrigin::default() };
        let of = |workload| ResultNames { mechanism: "sim", topology: "t", policy: "p", workload };
        let head = EventLogHead::new(LogClock::Virtual, &origin, of("w"));
        let line = head.line();
        assert!(
            line.starts_with("{\"event_log\":1,\"version\":\"")
                && line.contains("\"clock\":\"virtual\"")
                && line.contains("\"seed\":7"),
            "{line}"
        );
        assert_eq!(EventLogHead::read(&line), Ok(Some(head)));
        assert_eq!(EventLogHead::new(LogClock::Live, &origin, of("")).workload, None);
        assert_eq!(
            EventLogHead::read(&of_network(&Record {
                seq: 0,
                at: Time(3),
                what: RecordedEvent::PolicyChanged { name: "x".into() }
            })),
            Ok(None)
        );
        assert!(
            EventLogHead::read("{\"event_log\":2,\"new\":1}")
                .unwrap_err()
                .contains("reads formats up to 1")
        );
        assert!(EventLogHead::read("{\"event_log\":1}").unwrap_err().contains("missing field"));
    }

    proptest::proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn no_line_panics(line in "\\PC*") {
            let _ = (read(&line), is_of_jobs(&line), EventLogHead::read(&line));
        }
    }
}
