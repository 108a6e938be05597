//! The cluster as planners see it: equal racks, and five rates.
//!
//! The papers' models speak of racks that are all alike. Which racks are busy, and with what, is
//! said elsewhere (slot calendars, release times); here is only what never changes.

use serde::Serialize;

use crate::topology::Topology;
use crate::units::{BitRate, Bytes, Span};

/// Elephant threshold T_e of JobPacker and Co-scheduler: what is smaller never waits for a circuit.
pub const ELEPHANT: Bytes = Bytes(1_125_000_000);

/// Equal racks of equal hosts, behind an electrical core and an optical circuit switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cluster {
    /// Number of racks, R.
    pub racks: usize,
    /// Hosts a rack.
    pub hosts: u32,
    /// Tasks that a host runs at once.
    pub slots: u32,
    /// A host's network interface, each direction.
    #[serde(rename = "nic_bps")]
    pub nic: BitRate,
    /// A rack's link to the electrical core, each direction (BW_EPS).
    #[serde(rename = "core_bps")]
    pub core: BitRate,
    /// Rate of one circuit (BW_OCS); zero: there are no circuits.
    #[serde(rename = "ocs_bps")]
    pub ocs: BitRate,
    /// Circuits that a rack holds at once in each direction: planes, or wavelengths (W). At least
    /// one where `ocs` is not zero.
    pub circuits: u32,
    /// Reconfiguration delay.
    #[serde(rename = "delta_ns")]
    pub delta: Span,
    /// Elephant threshold T_e.
    #[serde(rename = "elephant_bytes")]
    pub elephant: Bytes,
}

impl Cluster {
    /// The cluster of a network, with an elephant threshold. Where racks, hosts or planes differ,
    /// the weakest counts for all (see [`Cluster::is_exact`]): a plan then never counts on what is
    /// not there. O(hosts).
    pub fn of(network: &Topology, elephant: Bytes) -> Self {
        Self {
            racks: network.rack_count(),
            hosts: network.racks.iter().map(|r| r.hosts).min().unwrap_or(0),
            slots: network.hosts.iter().map(|h| h.slots).min().unwrap_or(0),
            nic: network.hosts.iter().map(|h| h.nic).min().unwrap_or(BitRate::ZERO),
            core: network
                .racks
                .iter()
                .map(|r| foreground(network, r.uplink))
                .min()
                .unwrap_or(BitRate::ZERO),
            ocs: network.planes.iter().map(|p| p.rate).min().unwrap_or(BitRate::ZERO),
            circuits: network.planes.len() as u32,
            delta: network.planes.iter().map(|p| p.delta).max().unwrap_or(Span::ZERO),
            elephant,
        }
    }

    /// Whether a network's racks, hosts and planes are all alike, so that [`Cluster::of`] leaves
    /// nothing out.
    pub fn is_exact(network: &Topology) -> bool {
        let racks = network
            .racks
            .windows(2)
            .all(|w| (w[0].hosts, w[0].uplink) == (w[1].hosts, w[1].uplink));
        let hosts =
            network.hosts.windows(2).all(|w| (w[0].slots, w[0].nic) == (w[1].slots, w[1].nic));
        racks
            && hosts
            && network.planes.windows(2).all(|w| (w[0].rate, w[0].delta) == (w[1].rate, w[1].delta))
    }

    /// JobPacker's simulated cluster (section 5.1.2): 20 racks x 30 servers x 20 slots.
    pub fn jobpacker() -> Self {
        let core = BitRate::mbit(30_000);
        Self { racks: 20, hosts: 30, slots: 20, core, ..Self::co_scheduler() }
    }

    /// Co-scheduler's simulated cluster (section V-A): 60 racks x 10 servers x 20 slots.
    pub fn co_scheduler() -> Self {
        let (nic, core, ocs) =
            (BitRate::mbit(10_000), BitRate::mbit(10_000), BitRate::mbit(100_000));
        Self {
            racks: 60,
            hosts: 10,
            slots: 20,
            nic,
            core,
            ocs,
            circuits: 1,
            delta: Span::millis(10),
            elephant: ELEPHANT,
        }
    }

    /// Corral's simulated cluster (section 6.6): 50 racks x 40 machines x 20 slots, 1 Gb/s NICs,
    /// 5:1, no circuits.
    pub fn corral() -> Self {
        let (nic, core) = (BitRate::mbit(1_000), BitRate::mbit(8_000));
        Self {
            racks: 50,
            hosts: 40,
            slots: 20,
            nic,
            core,
            ocs: BitRate::ZERO,
            circuits: 0,
            delta: Span::ZERO,
            elephant: ELEPHANT,
        }
    }

    /// Tasks that a rack runs at once, k; never zero.
    pub fn rack_slots(&self) -> u32 {
        self.hosts.saturating_mul(self.slots).max(1)
    }

    /// All the network interfaces of a rack.
    pub fn rack_nic(&self) -> BitRate {
        BitRate(self.nic.0.saturating_mul(u64::from(self.hosts)))
    }

    /// Rounds in which `tasks` tasks run on `racks` racks: Corral's w(r) (section 4.3).
    ///
    /// # Panics
    /// If `racks` is zero.
    pub fn waves(&self, tasks: u32, racks: usize) -> u64 {
        u64::from(tasks).div_ceil(racks as u64 * u64::from(self.rack_slots()))
    }

    /// Whether there are circuits at all.
    pub fn has_circuits(&self) -> bool {
        self.ocs > BitRate::ZERO && self.circuits > 0
    }
}

/// What background traffic leaves of a link into the core.
fn foreground(network: &Topology, uplink: BitRate) -> BitRate {
    BitRate(
        (u128::from(uplink.0) * u128::from(100 - network.eps.background_percent.min(100)) / 100)
            as u64,
    )
}

/// The time of `bytes * part / whole` at `rate`, rounded up; `Span::MAX` at rate zero.
pub(crate) fn share_time(rate: BitRate, bytes: Bytes, part: u64, whole: u64) -> Span {
    let bits = (u128::from(bytes.0) * 8).saturating_mul(u128::from(part));
    if bits == 0 {
        return Span::ZERO;
    }
    let per_second = u128::from(rate.0) * u128::from(whole);
    if per_second == 0 {
        return Span::MAX;
    }
    let ns = bits
        .checked_mul(u128::from(crate::units::NANOS))
        .map_or(u128::MAX, |b| b.div_ceil(per_second));
    Span(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PlaneId;
    use crate::topology::{Plane, StopMode};

    fn plane(rate: u64) -> Plane {
        Plane {
            id: PlaneId(0),
            rate: BitRate::mbit(rate),
            delta: Span::millis(3),
            stop: StopMode::NotAllStop,
            duplex: false,
        }
    }

    #[test]
    fn a_network_becomes_a_cluster_and_the_weakest_part_stands_for_all() {
        let mut t = Topology::uniform(
            "t",
            3,
            4,
            BitRate::mbit(10),
            BitRate::mbit(20),
            vec![plane(100), plane(50)],
        );
        let c = Cluster::of(&t, Bytes(7));
        assert_eq!((c.racks, c.hosts, c.slots, c.rack_slots(), c.circuits), (3, 4, 1, 4, 2));
        assert_eq!(
            (c.nic, c.core, c.ocs, c.delta),
            (BitRate::mbit(10), BitRate::mbit(20), BitRate::mbit(50), Span::millis(3))
        );
        assert!(!Cluster::is_exact(&t));
        t.eps.background_percent = 25;
        assert_eq!(
            Cluster::of(&t, Bytes(7)).core,
            BitRate::mbit(15),
            "a planner has what background traffic leaves"
        );
        t.eps.background_percent = 0;
        t.planes.pop();
        assert!(Cluster::is_exact(&t) && Cluster::of(&t, Bytes(7)).has_circuits());
        t.push_rack(2, 8, BitRate::mbit(5), BitRate::mbit(20));
        let c = Cluster::of(&t, Bytes(7));
        assert_eq!(
            (Cluster::is_exact(&t), c.hosts, c.slots, c.nic),
            (false, 2, 1, BitRate::mbit(5))
        );
    }

    #[test]
    fn waves_count_whole_rounds() {
        let c = Cluster::jobpacker();
        let waves: Vec<u64> = (1..=7).map(|r| c.waves(3472, r)).collect();
        assert_eq!((c.rack_slots(), waves), (600, vec![6, 3, 2, 2, 2, 1, 1]));
    }

    #[test]
    fn a_share_of_bytes_takes_a_share_of_the_time_and_nothing_overflows() {
        let gbit = BitRate::mbit(1000);
        assert_eq!(share_time(gbit, Bytes(125), 1, 1), Span(1000));
        assert_eq!(share_time(gbit, Bytes(125), 2, 3), Span(667));
        assert_eq!(
            (share_time(gbit, Bytes(9), 0, 3), share_time(BitRate::ZERO, Bytes(9), 1, 3)),
            (Span::ZERO, Span::MAX)
        );
        assert_eq!(share_time(BitRate(1), Bytes(u64::MAX), u64::MAX, 1), Span::MAX);
    }
}
