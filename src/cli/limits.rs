//! What a run takes, said before it begins: memory that the machine does not have, and more cycles
//! than are worth waiting for.

use super::CliError;
use super::memory::{self, Available, MemoryPromise};
use crate::circuits::SetBy;
use crate::coflows::{CoflowSpec, bounds};
use crate::config::{self, SimulationLoad};
use crate::runtime::jobs::simulate as jobs;
use crate::runtime::settings::RunPlan;
use crate::runtime::simulate::least;
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};
use crate::workload::Workload;
use crate::workload::jobs::{JobList, JobSpec};

/// The most control cycles of a run that ends only with its last coflow: at some 100 ns for a cycle
/// that changes nothing, minutes.
const CYCLES: u64 = 1_000_000_000;
/// A run that takes less is never refused: most machines can swap as much, and the estimate is a
/// rough one.
const SMALL: Bytes = Bytes(200_000_000);
/// A flow while it is read and written: twice itself while a list of them grows, and a line of
/// text.
const READ: u64 = 100;

/// What there is to carry of coflows.
pub fn flows(workload: &Workload) -> SimulationLoad {
    let add = |l: SimulationLoad, c: &CoflowSpec| {
        let own = c.flows.len() as u64;
        SimulationLoad {
            flows: l.flows + own,
            largest: l.largest.max(own),
            kept: l.kept + c.flows.kept() as u64,
            ..l
        }
    };
    workload.coflows.iter().fold(SimulationLoad::default(), add)
}

/// What there is to carry of jobs.
pub fn tasks(list: &JobList) -> SimulationLoad {
    SimulationLoad {
        tasks: list.jobs.iter().map(JobSpec::tasks).fold(0, u64::saturating_add),
        ..SimulationLoad::default()
    }
}

/// The same where nothing is kept of tasks that have ended: a job takes as much as two or three
/// tasks that are kept.
pub fn jobs_alone(list: &JobList) -> SimulationLoad {
    SimulationLoad {
        tasks: (list.jobs.len() as u64).saturating_mul(3),
        ..SimulationLoad::default()
    }
}

/// Whether this machine has the memory that a run on a network takes.
///
/// # Errors
/// How much it would take and for what, and how much there is, if that is less.
pub fn fits_into_memory(
    topology: &Topology,
    plan: &RunPlan,
    load: SimulationLoad,
) -> Result<(), CliError> {
    let Some(free) = memory::available()? else { return Ok(()) };
    let needed = config::memory(topology, plan, load);
    if fits(free, needed) {
        Ok(())
    } else {
        Err(CliError::Invalid(too_large((topology, load), needed, free)))
    }
}

/// What a run on a network takes of memory, and what there is.
fn too_large(
    (topology, load): (&Topology, SimulationLoad),
    needed: Bytes,
    free: Available,
) -> String {
    let carried = [(load.flows, "flows"), (load.tasks, "tasks")];
    let carried: String =
        carried.iter().filter(|c| c.0 > 0).map(|(n, what)| format!(" with {n} {what}")).collect();
    let what = format!(
        "a run on {} racks{carried} takes about {} of memory",
        topology.rack_count(),
        tell(needed)
    );
    let gigabytes = needed.0.div_ceil(1_000_000_000);
    let there = format!(
        "{} are {}; HELIOSTAT_MEMORY={gigabytes}GB in the environment has it run",
        tell(free.bytes),
        free.from
    );
    format!("topology {}: {what}; {there}", topology.name)
}

/// Whether a run whose memory is estimated as this fits into what there is.
fn fits(free: Available, needed: Bytes) -> bool {
    needed <= free.bytes.max(SMALL)
}

/// [`fits_into_memory`], and waits until runs of other threads leave as much. What comes is to be
/// held while the run goes on.
///
/// # Errors
/// As [`fits_into_memory`].
pub fn promise(
    topology: &Topology,
    plan: &RunPlan,
    load: SimulationLoad,
) -> Result<Option<MemoryPromise>, CliError> {
    fits_into_memory(topology, plan, load)?;
    Ok(memory::available()?
        .map(|free| memory::promise(config::memory(topology, plan, load), free.bytes)))
}

/// The most flows that can be read, if that is known.
///
/// # Errors
/// As [`memory::available`].
pub fn most_flows() -> Result<Option<u64>, CliError> {
    Ok(memory::available()?.map(|free| free.bytes.0 / READ))
}

fn tell(b: Bytes) -> String {
    super::tables::bytes(b)
}

/// Whether there are circuits to decide about; without them cycles cost next to nothing.
fn decides(topology: &Topology, plan: &RunPlan) -> bool {
    !topology.planes.is_empty() && plan.policy.scheduler.build().set_by() != SetBy::NoCircuits
}

/// Whether a run ends within virtual time, and in a number of control cycles that can be waited
/// for.
///
/// # Errors
/// Which coflow lasts longest, and how long or how many cycles that is, if it is too long.
pub fn ends_in_time(
    topology: &Topology,
    plan: &RunPlan,
    workload: &Workload,
    until: Option<Time>,
) -> Result<(), CliError> {
    let Some((end, coflow)) = last(topology, workload) else { return Ok(()) };
    let Some(why) = too_long((topology, plan), until.unwrap_or(Time::MAX).min(end)) else {
        return Ok(());
    };
    Err(CliError::Invalid(format!(
        "workload {}: {} {why}, or an end by --until",
        workload.name, coflow.name
    )))
}

/// Whether the clock of a live run, which counts 584 years, sees the end of its workload.
///
/// # Errors
/// Which coflow ends later.
pub fn ends_live(topology: &Topology, workload: &Workload) -> Result<(), CliError> {
    let Some((_, coflow)) = last(topology, workload).filter(|l| l.0 == Time::MAX) else {
        return Ok(());
    };
    Err(CliError::Invalid(format!("workload {}: {} {}", workload.name, coflow.name, beyond_time())))
}

/// The coflow that ends last, and when that is at the soonest.
fn last<'a>(topology: &Topology, workload: &'a Workload) -> Option<(Time, &'a CoflowSpec)> {
    let end = |c: &CoflowSpec| Time(c.arrival.0.saturating_add(bounds::hybrid(c, topology).0));
    workload.coflows.iter().map(|c| (end(c), c)).max_by_key(|(t, c)| (*t, std::cmp::Reverse(c.id)))
}

fn beyond_time() -> String {
    format!("does not end within virtual time; allowed: {} after the start", Span::MAX)
}

/// Why a run that ends at `last` at the soonest is too long, and what is allowed; nothing if it is
/// not.
fn too_long((topology, plan): (&Topology, &RunPlan), last: Time) -> Option<String> {
    let (interval, lasts) = (plan.policy.interval, Span(last.0));
    if last == Time::MAX {
        return Some(beyond_time());
    }
    let cycles = last.0 / interval.0.max(1);
    let many = || {
        format!(
            "ends {lasts} after the start at the soonest, which is {cycles} control cycles of {interval}; allowed: {CYCLES}"
        )
    };
    (decides(topology, plan) && cycles > CYCLES).then(many)
}

/// Whether a run of jobs ends within virtual time, and in a number of control cycles that can be
/// waited for. Each job counts with its arrival and its tasks, and all together share the slots of
/// the network. Returns a sentence if the run may be too long should all shuffles cross racks.
///
/// # Errors
/// How long it is, if it is too long in any case.
pub fn jobs_end_in_time(
    topology: &Topology,
    plan: &RunPlan,
    list: &JobList,
    until: Option<Time>,
) -> Result<Option<String>, CliError> {
    let until = until.unwrap_or(Time::MAX);
    if let Some(why) =
        too_long((topology, plan), until.min(Time::ZERO + jobs::least(topology, list)))
    {
        return Err(CliError::Invalid(format!(
            "jobs {}: the last {why}, or an end by --until",
            list.name
        )));
    }
    let bytes =
        list.jobs.iter().map(JobSpec::shuffle_bytes).fold(Bytes::ZERO, Bytes::saturating_add);
    let why = too_long((topology, plan), until.min(Time::ZERO + least(topology, bytes)));
    Ok(why.map(|why| {
        format!(
            "jobs {}: if all shuffles cross racks, the last {why}, or an end by --until",
            list.name
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coflows::elephants::Admit;
    use crate::coflows::network::{NetworkKind, Within};
    use crate::coflows::{CoflowSpec, FlowSpec};
    use crate::control::policy::{CircuitPolicy, SchedulerKind};
    use crate::ids::{CoflowId, HostId};
    use crate::topology::{Plane, PortQueues, StopMode};
    use crate::units::BitRate;

    fn network(racks: usize) -> Topology {
        let plane = Plane {
            id: 0_usize.into(),
            rate: BitRate::mbit(1000),
            delta: Span::millis(1),
            stop: StopMode::NotAllStop,
            duplex: false,
        };
        Topology::uniform("t", racks, 1, BitRate::mbit(1000), BitRate::mbit(100), vec![plane])
    }

    fn plan(scheduler: SchedulerKind) -> RunPlan {
        RunPlan::from(CircuitPolicy { scheduler, ..CircuitPolicy::default() })
    }

    #[test]
    fn memory_grows_with_the_square_of_the_racks_and_with_what_is_carried() {
        let (circuits, none) = (plan(SchedulerKind::Edmonds), plan(SchedulerKind::EpsOnly));
        let (small, large) = (network(1000), network(65_536));
        let nothing = SimulationLoad::default();
        assert_eq!(
            (config::memory(&small, &circuits, nothing), config::memory(&small, &none, nothing)),
            (Bytes(126_000_000), Bytes(236_000_000))
        );
        assert_eq!(
            config::memory(
                &small,
                &none,
                SimulationLoad { flows: 10, tasks: 100, ..SimulationLoad::default() }
            ),
            Bytes(236_051_500)
        );
        let mut queued = network(1000);
        queued.eps.queues = PortQueues::Racks;
        assert_eq!(
            config::memory(&queued, &circuits, nothing),
            Bytes(126_000_000 + 2 * 190_000_000)
        );
        let free = |bytes| Available { bytes: Bytes(bytes), from: "free" };
        // (bytes that a run takes, bytes that are free, whether it is run)
        for (needed, there, runs) in [
            (199_000_000, 0, true),
            (300_000_000, 299_000_000, false),
            (300_000_000, 300_000_000, true),
        ] {
            assert_eq!(fits(free(there), Bytes(needed)), runs, "{needed} of {there}");
        }
        let needed = config::memory(&large, &circuits, nothing);
        let told = too_large((&large, nothing), needed, free(8_000_000_000));
        let words = "topology t: a run on 65536 racks takes about 412.3GB of memory; 8GB are free; HELIOSTAT_MEMORY=413GB in the environment";
        assert!(told.starts_with(words), "{told}");
        let many = SimulationLoad { flows: 1 << 40, ..SimulationLoad::default() };
        let told = too_large((&small, many), config::memory(&small, &none, many), free(0));
        assert!(told.contains("1000 racks with 1099511627776 flows takes about"), "{told}");
    }

    /// What docs/results/memory-estimates.csv has as measured: (racks, circuits, flows, megabytes).
    #[test]
    fn what_was_measured_is_within_a_factor_of_two() {
        let measured = [
            (500, true, 1, 74),
            (1000, true, 1, 154),
            (2000, true, 1, 503),
            (500, false, 1, 84),
            (1000, false, 1, 200),
            (2000, false, 1, 768),
            (2500, false, 1, 50),
            (65_536, false, 1, 376),
            (150, false, 197_396, 66),
            (300, false, 560_440, 145),
            (600, false, 1_923_601, 420),
        ];
        for (racks, circuits, flows, megabytes) in measured {
            let by = plan(if circuits { SchedulerKind::Edmonds } else { SchedulerKind::EpsOnly });
            let told = config::memory(
                &network(racks),
                &by,
                SimulationLoad { flows, ..SimulationLoad::default() },
            )
            .0 / 1_000_000;
            assert!(
                told * 2 >= megabytes && told <= megabytes * 2,
                "{racks} racks, {flows} flows: {told} MB, measured {megabytes}"
            );
        }
        // By sums: senders and receivers of all coflows, and the flows of the largest one.
        for (racks, kept, largest, megabytes) in
            [(600, 39_168, 309_690, 63), (1200, 74_799, 1_230_984, 112)]
        {
            let mut by = plan(SchedulerKind::EpsOnly);
            (by.run.network.kind, by.run.network.within) = (NetworkKind::Varys, Within::Sums);
            let told = config::memory(
                &network(racks),
                &by,
                SimulationLoad { flows: 1 << 40, largest, kept, tasks: 0 },
            )
            .0 / 1_000_000;
            assert!(
                told * 2 >= megabytes && told <= megabytes * 2,
                "{racks} racks by sums: {told} MB, measured {megabytes}"
            );
        }
        // 100,000 jobs of which nothing is kept when they have ended.
        let kept = config::memory(
            &network(400),
            &plan(SchedulerKind::EpsOnly),
            SimulationLoad { tasks: 300_000, ..SimulationLoad::default() },
        )
        .0 / 1_000_000;
        assert!(kept * 2 >= 269 && kept <= 269 * 2, "100,000 jobs: {kept} MB, measured 269");
        // Racks whose uplinks and circuits are as wide as the interface of their host.
        for (racks, admit, megabytes) in [
            (500, Admit::All, 98),
            (1000, Admit::All, 271),
            (500, Admit::Marked, 153),
            (1000, Admit::Marked, 490),
            (500, Admit::Wait, 50),
            (1000, Admit::Wait, 77),
        ] {
            let (mut wide, mut by) = (network(racks), plan(SchedulerKind::Edmonds));
            wide.racks.iter_mut().for_each(|r| r.uplink = BitRate::mbit(1000));
            by.run.admit = admit;
            let told = config::memory(
                &wide,
                &by,
                SimulationLoad { flows: 1, ..SimulationLoad::default() },
            )
            .0 / 1_000_000;
            assert!(
                told * 2 >= megabytes && told <= megabytes * 2,
                "{racks} racks, {admit:?}: {told} MB, measured {megabytes}"
            );
        }
    }

    #[test]
    fn a_run_of_centuries_is_refused_unless_it_is_cut_or_nothing_is_decided() {
        let flow = FlowSpec { from: HostId(0), to: HostId(1), bytes: Bytes(1) };
        let w = Workload::new(
            "w",
            vec![CoflowSpec::new(CoflowId(0), "late", Time(i64::MAX as u64), vec![flow])],
        );
        let (t, p) = (network(2), plan(SchedulerKind::Edmonds));
        let told = ends_in_time(&t, &p, &w, None).unwrap_err().to_string();
        assert!(
            told.contains("workload w: late ends")
                && told.contains("92233720368 control cycles of 100ms; allowed: 1000000000, or"),
            "{told}"
        );
        assert!(ends_in_time(&t, &p, &w, Some(Time(1_000_000_000))).is_ok());
        assert!(ends_in_time(&t, &plan(SchedulerKind::EpsOnly), &w, None).is_ok());
    }

    #[test]
    fn what_ends_after_virtual_time_is_refused_under_every_policy() {
        let flow = FlowSpec { from: HostId(0), to: HostId(1), bytes: Bytes(900_000_000_000_000) };
        let w =
            Workload::new("w", vec![CoflowSpec::new(CoflowId(0), "slow", Time::ZERO, vec![flow])]);
        let t = Topology::uniform("t", 2, 1, BitRate(1), BitRate(1), vec![]);
        let told =
            ends_in_time(&t, &plan(SchedulerKind::EpsOnly), &w, None).unwrap_err().to_string();
        assert!(
            told.contains("workload w: slow does not end within virtual time")
                && told.contains("or an end by --until"),
            "{told}"
        );
        assert!(ends_in_time(&t, &plan(SchedulerKind::EpsOnly), &w, Some(Time(9))).is_ok());
    }

    #[test]
    fn jobs_that_may_never_end_are_told_and_those_that_cannot_are_refused() {
        let jobs = |time: &str, shuffle: &str| {
            let text = format!(
                "name: j\njobs: [{{maps: 1, map_time: {time}, reduces: 1, reduce_time: 1s, shuffle: {shuffle}}}]\n"
            );
            config::read_jobs(&text, "f").unwrap()
        };
        let (mut t, p) = (network(2), plan(SchedulerKind::Edmonds));
        assert_eq!(jobs_end_in_time(&t, &p, &jobs("1h", "1GB"), None).unwrap(), None);
        let told =
            jobs_end_in_time(&t, &p, &jobs("1000000000s", "1GB"), None).unwrap_err().to_string();
        assert!(
            told.contains("jobs j: the last ends") && told.contains("control cycles of 100ms"),
            "{told}"
        );
        assert_eq!(
            jobs_end_in_time(&t, &p, &jobs("1000000000s", "1GB"), Some(Time(9))).unwrap(),
            None
        );
        t.racks.iter_mut().for_each(|r| r.uplink = BitRate(1));
        t.planes.clear();
        let told = jobs_end_in_time(&t, &p, &jobs("1s", "900TB"), None).unwrap();
        assert!(told.is_some_and(|t| t.contains("if all shuffles cross racks")));
    }
}
