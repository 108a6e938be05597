//! What the network counted over a run of jobs, read from the controller's REST API.

use std::time::{Duration, Instant};

use super::{Client, Error, parse};
use crate::api::wire;
use crate::control::record::{Stats, Tampered};
use crate::fabric::meter::Utilisation;
use crate::runtime::report::FabricCounts;
use crate::units::{Bytes, Time};

/// How long the counters may take until they include everything.
const SETTLE: Duration = Duration::from_secs(5);

/// A controller's counters, which count from its start.
pub struct ControllerCounters {
    sent: u64,
    over_ocs: u64,
    late_packets: u64,
    misdelivered: u64,
    faulty_ports: u64,
    stats: wire::Stats,
}

impl ControllerCounters {
    /// The counters now.
    ///
    /// # Errors
    /// No daemon, or no answer.
    pub fn read(client: &Client) -> Result<Self, Error> {
        let demand: wire::Demand = parse(&client.get("/api/v1/demand")?)?;
        let ports: wire::Ports = parse(&client.get("/api/v1/ports")?)?;
        let total = |rows: &[Vec<u64>]| rows.iter().flatten().sum();
        Ok(Self {
            sent: total(&demand.sent_bytes),
            over_ocs: total(&demand.over_ocs_bytes),
            late_packets: ports.ports.iter().map(|p| p.late_packets).sum(),
            misdelivered: ports.ports.iter().map(|p| p.misdelivered_packets).sum(),
            faulty_ports: ports.ports.iter().filter(|p| p.faulty.is_some()).count() as u64,
            stats: parse(&client.get("/api/v1/stats")?)?,
        })
    }

    /// The counters once they include everything that was sent before now: after the second cycle
    /// from now.
    ///
    /// # Errors
    /// No daemon, or no answer.
    pub fn settled(client: &Client) -> Result<Self, Error> {
        let (begun, first) = (Instant::now(), Self::read(client)?);
        loop {
            let now = Self::read(client)?;
            if now.stats.cycles >= first.stats.cycles + 2 || begun.elapsed() > SETTLE {
                return Ok(now);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What was counted since `before`. Distributions cannot be taken apart: those of the control
    /// loop are the daemon's whole life.
    pub fn since(&self, before: &Self, ended: Time) -> FabricCounts {
        let mut stats = Stats::from(&self.stats);
        let old = &before.stats;
        let counters = [
            (&mut stats.cycles, old.cycles),
            (&mut stats.late_cycles, old.late_cycles),
            (&mut stats.missed_cycles, old.missed_cycles),
            (&mut stats.fallbacks, old.fallbacks),
            (&mut stats.late_answers, old.late_answers),
            (&mut stats.circuits_set, old.circuits_set),
            (&mut stats.probes_ok, old.probes_ok),
            (&mut stats.probes_wrong, old.probes_wrong),
            (&mut stats.probes_lost, old.probes_lost),
        ];
        counters.into_iter().for_each(|(now, then)| *now = now.saturating_sub(then));
        // The reason of an earlier cycle is none of this run.
        stats.first_fallback.take_if(|why| old.first_fallback.as_ref() == Some(why));
        FabricCounts {
            sent: Bytes(self.sent.saturating_sub(before.sent)),
            over_ocs: Bytes(self.over_ocs.saturating_sub(before.over_ocs)),
            sent_again: self
                .stats
                .sent_again_bytes
                .map(|n| Bytes(n.saturating_sub(old.sent_again_bytes.unwrap_or(0)))),
            late_packets: self.late_packets.saturating_sub(before.late_packets),
            misdelivered: self.misdelivered.saturating_sub(before.misdelivered),
            faulty_ports: self.faulty_ports,
            ended,
            tampered: self.stats.tampered.as_ref().filter(|t| t.until_ns > old.now_ns).map(|t| {
                Tampered {
                    from: Time(t.from_ns.saturating_sub(old.now_ns)),
                    until: Time(t.until_ns - old.now_ns),
                    what: t.what.clone(),
                    found: t.found.saturating_sub(old.tampered.as_ref().map_or(0, |t| t.found)),
                }
            }),
            stats,
        }
    }

    /// What links carried over time since these counters were read, which is its zero.
    ///
    /// # Errors
    /// No daemon, or no answer.
    pub fn utilisation_since(&self, client: &Client) -> Result<Utilisation, Error> {
        parse(&client.get(&format!("/api/v1/utilisation?from_ns={}", self.stats.now_ns))?)
    }

    /// When they were read, by the daemon's clock.
    pub fn at(&self) -> Time {
        Time(self.stats.now_ns)
    }

    /// By what circuits are carried.
    pub fn mechanism(&self) -> &str {
        &self.stats.mechanism
    }
}
