//! How much input data each rack holds, read from a run's event log.

use crate::runtime::jobs::simulate::EventLogLine;
use crate::scheduler::SchedulerAction;
use crate::topology::Topology;
use crate::units::Bytes;
use crate::workload::jobs::JobList;

/// Data by rack, all replicas counted.
pub struct Stored<'a> {
    topology: &'a Topology,
    jobs: &'a JobList,
    held: Vec<Bytes>,
}

impl<'a> Stored<'a> {
    /// Nothing is stored yet.
    pub fn new(topology: &'a Topology, jobs: &'a JobList) -> Self {
        Self { topology, jobs, held: vec![Bytes::ZERO; topology.rack_count()] }
    }

    /// Takes a line of the event log.
    pub fn hear(&mut self, line: &EventLogLine) {
        let EventLogLine::Jobs { job_action: SchedulerAction::PlaceData { job, blocks }, .. } =
            line
        else {
            return;
        };
        for (stage, of_stage) in self.jobs.jobs[job.index()].stages.iter().zip(blocks) {
            let size = Bytes(stage.input.0 / u64::from(stage.tasks));
            of_stage
                .iter()
                .flatten()
                .for_each(|&host| self.held[self.topology.rack_of(host).index()] += size);
        }
    }

    /// The standard deviation of what racks hold, in per cent of the mean (Corral, section 6.2);
    /// none where nothing is stored.
    pub fn spread(&self) -> Option<f64> {
        let n = self.held.len() as f64;
        let mean = self.held.iter().map(|b| b.0 as f64).sum::<f64>() / n;
        let variance = self.held.iter().map(|b| (b.0 as f64 - mean).powi(2)).sum::<f64>() / n;
        (mean > 0.0).then(|| 100.0 * variance.sqrt() / mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{HostId, JobId};
    use crate::units::{BitRate, Span, Time};
    use crate::workload::jobs::{JobSpec, StageSpec, TaskTimes};

    #[test]
    fn every_replica_counts_in_its_rack() {
        let t = Topology::uniform("t", 2, 2, BitRate(8), BitRate(8), vec![]);
        let stage = |tasks, input| StageSpec {
            name: "s".into(),
            tasks,
            times: TaskTimes::Even(Span(1)),
            input,
            output: Bytes::ZERO,
            streams: false,
        };
        let job =
            JobSpec::map_reduce("j", Time(0), stage(2, Bytes(20)), stage(1, Bytes::ZERO), Bytes(1));
        let jobs = JobList::new("l", vec![job]);
        let mut s = Stored::new(&t, &jobs);
        assert_eq!(s.spread(), None);
        let blocks = vec![vec![vec![HostId(0), HostId(2), HostId(3)], vec![HostId(1)]], vec![]];
        s.hear(&EventLogLine::Jobs {
            at: Time(0),
            job_action: &SchedulerAction::PlaceData { job: JobId(0), blocks },
        });
        assert_eq!((s.held.clone(), s.spread()), (vec![Bytes(20), Bytes(20)], Some(0.0)));
        let blocks = vec![vec![vec![HostId(0)], vec![HostId(1)]], vec![]];
        s.hear(&EventLogLine::Jobs {
            at: Time(0),
            job_action: &SchedulerAction::PlaceData { job: JobId(0), blocks },
        });
        assert!(
            (s.spread().unwrap() - 100.0 / 3.0).abs() < 1e-9,
            "40 and 20: ten either way of thirty"
        );
    }
}
