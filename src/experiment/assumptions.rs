//! Numbers that decide a result and that a paper does not print.
//!
//! [`Paper::calibrated`] chooses them so that, for each, one printed figure about baselines only is
//! met. That figure's row is [marked](super::claim::ClaimVerdict::Calibrated) and counts as no
//! agreement; all other rows are predictions. All of them are options, so that anyone can sweep
//! them.

use serde::{Deserialize, Serialize};

use super::Paper;
use crate::units::{Bytes, Span};
use crate::workload::job_model::JobModel;

/// The free numbers; `None`: that of the calibration, and where there is none, that of the
/// [model](JobModel) or the paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assumptions {
    /// Bytes a second that a task processes, map or reduce.
    pub task_rate: Option<Bytes>,
    /// The same on the paper's other cluster: Corral's testbed, JobPacker's GENI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub testbed_rate: Option<Bytes>,
    /// Time in which the jobs of an online setting arrive, in thousandths of the paper's.
    pub window_permille: Option<u32>,
    /// The most bytes of a task that is cut from a port of the trace of coflows; zero: a port is a
    /// task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port_block: Option<Bytes>,
    /// Length of the windows of which a repetition of the trace of coflows is put together; zero:
    /// each has the whole trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_window: Option<Span>,
    /// PNA's threshold, in per cent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_min: Option<u32>,
}

impl Assumptions {
    /// None of them.
    const NONE: Self = Self {
        task_rate: None,
        testbed_rate: None,
        window_permille: None,
        port_block: None,
        trace_window: None,
        p_min: None,
    };

    /// These, and where there are none, others.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            task_rate: self.task_rate.or(other.task_rate),
            testbed_rate: self.testbed_rate.or(other.testbed_rate),
            window_permille: self.window_permille.or(other.window_permille),
            port_block: self.port_block.or(other.port_block),
            trace_window: self.trace_window.or(other.trace_window),
            p_min: self.p_min.or(other.p_min),
        }
    }

    /// Those of the paper's testbed: its rate, and the printed time of arrivals.
    #[must_use]
    pub fn on_testbed(self) -> Self {
        Self { task_rate: self.testbed_rate, window_permille: None, ..self }
    }

    /// The window in which jobs arrive.
    pub fn window(self, paper: Span) -> Span {
        Span(
            (u128::from(paper.0) * u128::from(self.window_permille.unwrap_or(1000)) / 1000)
                .min(u128::from(u64::MAX)) as u64,
        )
    }

    /// The model of tasks with this rate.
    pub fn model(self, base: JobModel) -> JobModel {
        let (map_rate, reduce_rate) =
            (self.task_rate.unwrap_or(base.map_rate), self.task_rate.unwrap_or(base.reduce_rate));
        JobModel {
            map_rate,
            reduce_rate,
            port_block: self.port_block.unwrap_or(base.port_block),
            ..base
        }
    }

    /// For people: what was taken, and where from if it was not asked for.
    pub fn words(self) -> String {
        let rate = self.task_rate.map(|r| format!("tasks process {r} a second"));
        let testbed = self.testbed_rate.map(|r| format!("on the testbed {r}"));
        let window = self
            .window_permille
            .map(|p| format!("jobs arrive within {}.{} % of the paper's time", p / 10, p % 10));
        let p_min =
            self.p_min.map(|p| format!("PNA starts no task with a probability below {p} %"));
        let port = self.port_block.map(|b| {
            if b == Bytes::ZERO {
                "a port is a task".into()
            } else {
                format!("ports are cut at {b}")
            }
        });
        let trace = self.trace_window.map(|w| match w {
            Span::ZERO => "each repetition has the whole trace".into(),
            _ => format!("repetitions are put together of windows of {w}"),
        });
        let all: Vec<String> =
            [rate, testbed, window, port, trace, p_min].into_iter().flatten().collect();
        if all.is_empty() { "none".into() } else { all.join(", ") }
    }
}

/// What was chosen for the numbers that a paper leaves out, and by which printed figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Calibration {
    /// The choice.
    pub free: Assumptions,
    /// The printed figure that it was chosen by.
    pub why: &'static str,
}

/// JobPacker's, and Co-scheduler's too: the same authors, cluster, jobs' origin and log of task
/// times, 1000 jobs in 90 minutes.
const HYBRID: Assumptions = Assumptions {
    task_rate: Some(Bytes(24_000_000)),
    testbed_rate: Some(Bytes(3_100_000_000)),
    window_permille: Some(35),
    ..Assumptions::NONE
};

/// The same for jobs that are drawn from published percentiles.
const LOG_NORMAL: Assumptions = Assumptions {
    task_rate: Some(Bytes(31_000_000)),
    testbed_rate: Some(Bytes(3_100_000_000)),
    window_permille: Some(33),
    ..Assumptions::NONE
};

impl Paper {
    /// What was chosen for the numbers that the paper leaves out; `traced`: with jobs of SWIM's
    /// traces.
    pub fn calibrated(self, traced: bool) -> Calibration {
        let hybrid = if traced { HYBRID } else { LOG_NORMAL };
        match self {
            Self::Jobpacker => Calibration {
                free: hybrid,
                why: "the rate by F-EPS against F-Hybrid in a batch, the window by the same two online (figures 8a, 10a)",
            },
            Self::CoScheduler => Calibration {
                free: Assumptions { testbed_rate: None, ..hybrid },
                why: "both numbers are JobPacker's; none was chosen by this paper's figures",
            },
            Self::Hit => Calibration {
                free: Assumptions::default(),
                why: "no rate of tasks and no threshold of PNA bring PNA as far from Capacity as figures 6a and 8a imply; the usual ones stay",
            },
            Self::Pushbox => Calibration {
                free: Assumptions {
                    task_rate: Some(Bytes(150_000_000)),
                    port_block: Some(Bytes(1_000_000_000)),
                    trace_window: Some(Span::secs(300)),
                    ..Assumptions::NONE
                },
                why: "a port by the block of section 6.2, the windows so that repetitions differ, the rate by NEAT against Hadoop in one Fair queue (implied by figure 9a); none from 50 MB to 3 GB a second brings \
                      ShuffleWatcher before Hadoop",
            },
            Self::Joint => Calibration {
                free: Assumptions::default(),
                why: "each setting has what its paper's evaluation has",
            },
            Self::Corral => Calibration {
                free: Assumptions {
                    task_rate: Some(Bytes(6_500_000)),
                    testbed_rate: Some(Bytes(6_100_000)),
                    ..Assumptions::default()
                },
                why: "the rate by Yarn-CS with Varys against Yarn-CS in the simulated cluster (figure 14), the testbed's by the mean completion time \
                      of Yarn-CS (section 6.5)",
            },
        }
    }
}
