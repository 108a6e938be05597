//! The lines of an event log (`--events` of `run` and `simulate`): written as the API tells events, read in that form and in the older one.

use serde::{Deserialize, Serialize};

use crate::api::wire;
use crate::control::record::Record;
use crate::runtime::jobs::simulate as of_jobs;
use crate::scheduler::Action;
use crate::units::Time;

/// A line with an event of the network, newline included.
pub fn of_network(record: &Record) -> String {
    text(&wire::Record::from(record))
}

/// A line of a run of jobs, newline included.
pub fn of_jobs(line: &of_jobs::Line) -> String {
    #[derive(Serialize)]
    struct Wanted<'a> {
        at_ns: Time,
        job_action: &'a Action,
    }
    match line {
        of_jobs::Line::Network(record) => of_network(record),
        of_jobs::Line::Jobs { at, job_action } => text(&Wanted { at_ns: *at, job_action }),
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
    use crate::control::record::What;
    use crate::ids::{JobId, PlaneId, RackId};
    use crate::units::Bytes;

    #[test]
    fn both_forms_of_a_line_tell_the_same() {
        let (plane, input, output) = (PlaneId(1), RackId(2), RackId(3));
        let set = What::CircuitSet { plane, input, output, setup_at: Time(4), up_from: Time(5), until: Some(Time(6)) };
        let end = What::CircuitEnd { plane, input, up_from: Time(5), until: Time(7) };
        let cycle = What::Cycle { cycle: 8, demand: Bytes(9), ops: 1, late: false };
        for what in [set, end, cycle, What::PolicyChanged { name: "x".into() }] {
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
            record(What::Cycle { cycle: 2, demand: Bytes(3), ops: 4, late: true }),
            "{\"seq\":0,\"at_ns\":1,\"event\":\"cycle\",\"cycle\":2,\"demand_bytes\":3,\"ops\":4,\"late\":true}\n"
        );
        let line = of_jobs::Line::Jobs { at: Time(1), job_action: &Action::FinishJob(JobId(2)) };
        assert_eq!(of_jobs(&line), "{\"at_ns\":1,\"job_action\":{\"FinishJob\":2}}\n");
        assert!(is_of_jobs(&of_jobs(&line)) && is_of_jobs("{\"at\":1,\"job_action\":{\"FinishJob\":2}}"));
    }

    proptest::proptest! {
        #[test]
        fn no_line_panics(line in "\\PC*") {
            let _ = (read(&line), is_of_jobs(&line));
        }
    }
}
