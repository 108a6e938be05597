//! What a simulation takes, said before it begins: memory that the machine does not have, and more cycles than are worth waiting for.

use super::CliError;
use crate::circuits::SetBy;
use crate::coflows::bounds;
use crate::config;
use crate::runtime::settings::RunPlan;
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};
use crate::workload::Workload;

/// The most control cycles of a run that ends only with its last coflow: at some 100 ns for a cycle that changes nothing, minutes.
const CYCLES: u64 = 1_000_000_000;

/// Whether this machine has the memory that the simulation of a network takes.
///
/// # Errors
/// It has not: how much it would take, and how much there is.
pub fn fits_into_memory(topology: &Topology, plan: &RunPlan) -> Result<(), CliError> {
    let Some(free) = available() else { return Ok(()) };
    let needed = config::memory(topology, plan);
    if needed <= free {
        return Ok(());
    }
    let racks = topology.rack_count();
    let why = format!(
        "a simulation of {racks} racks takes about {} of memory, for matrices of all pairs; available: {}",
        tell(needed),
        tell(free)
    );
    Err(CliError::Invalid(format!("topology {}: {why}", topology.name)))
}

/// What can be had without swapping, by the kernel's estimate.
fn available() -> Option<Bytes> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kilobytes = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    Some(Bytes(kilobytes.saturating_mul(1024)))
}

fn tell(b: Bytes) -> String {
    super::tables::bytes(b)
}

/// Whether a run ends in a number of control cycles that can be waited for.
///
/// # Errors
/// It does not: which coflow lasts longest, and how many cycles that is.
pub fn ends_in_time(topology: &Topology, plan: &RunPlan, workload: &Workload, until: Option<Time>) -> Result<(), CliError> {
    // Without circuits no cycle decides anything, and all of them are skipped at once.
    if plan.policy.scheduler.build().set_by() == SetBy::NoCircuits {
        return Ok(());
    }
    let interval = plan.policy.interval;
    let most = Time(interval.0.saturating_mul(CYCLES));
    let end = |c: &crate::coflows::CoflowSpec| Time(c.arrival.0.saturating_add(bounds::hybrid(c, topology).0));
    let longest = workload.coflows.iter().map(|c| (end(c), c)).max_by_key(|(t, c)| (*t, std::cmp::Reverse(c.id)));
    let Some((last, coflow)) = longest.filter(|(t, _)| until.unwrap_or(Time::MAX).min(*t) > most) else { return Ok(()) };
    let (lasts, cycles) = (Span(last.0), last.0 / interval.0.max(1));
    let why = format!("{} ends {lasts} after the start at the soonest, which is {cycles} control cycles of {interval}", coflow.name);
    Err(CliError::Invalid(format!("workload {}: {why}; allowed: {CYCLES}, or an end by --until", workload.name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coflows::{CoflowSpec, FlowSpec};
    use crate::control::policy::{CircuitPolicy, SchedulerKind};
    use crate::ids::{CoflowId, HostId};
    use crate::topology::{Plane, StopMode};
    use crate::units::BitRate;

    fn network(racks: usize) -> Topology {
        let plane =
            Plane { id: 0_usize.into(), rate: BitRate::mbit(1000), delta: Span::millis(1), stop: StopMode::NotAllStop, duplex: false };
        Topology::uniform("t", racks, 1, BitRate::mbit(1000), BitRate::mbit(100), vec![plane])
    }

    fn plan(scheduler: SchedulerKind) -> RunPlan {
        RunPlan::from(CircuitPolicy { scheduler, ..CircuitPolicy::default() })
    }

    #[test]
    fn memory_grows_with_the_square_of_the_racks() {
        let (circuits, none) = (plan(SchedulerKind::Edmonds), plan(SchedulerKind::EpsOnly));
        let (small, large) = (network(1000), network(65_536));
        assert_eq!((config::memory(&small, &circuits), config::memory(&small, &none)), (Bytes(96_000_000), Bytes(56_000_000)));
        assert!(fits_into_memory(&small, &circuits).is_ok());
        let told = fits_into_memory(&large, &circuits).unwrap_err().to_string();
        assert!(told.contains("65536 racks takes about 412.3GB of memory"), "{told}");
    }

    #[test]
    fn a_run_of_centuries_is_refused_unless_it_is_cut_or_nothing_is_decided() {
        let flow = FlowSpec { from: HostId(0), to: HostId(1), bytes: Bytes(1) };
        let (id, name, priorities, flows) = (CoflowId(0), "late".to_owned(), Default::default(), vec![flow]);
        let w = Workload::new("w", vec![CoflowSpec { id, name, arrival: Time(i64::MAX as u64), weight: 1, priorities, flows }]);
        let (t, p) = (network(2), plan(SchedulerKind::Edmonds));
        let told = ends_in_time(&t, &p, &w, None).unwrap_err().to_string();
        assert!(told.contains("workload w: late ends") && told.contains("92233720368 control cycles of 100ms"), "{told}");
        assert!(ends_in_time(&t, &p, &w, Some(Time(1_000_000_000))).is_ok());
        assert!(ends_in_time(&t, &plan(SchedulerKind::EpsOnly), &w, None).is_ok());
    }
}
