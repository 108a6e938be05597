//! What this machine can really emulate: beyond it, circuits would be slower than they claim to
//! be.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::ids::RackId;
use crate::topology::Topology;
use crate::topology::graph::Routes;
use crate::units::BitRate;

/// What a machine carries, all circuits together, when every rack sends at its circuit's rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capacity {
    /// Rate of all circuits together, with circuits of 1 Gb/s and more.
    #[serde(rename = "fast_bps", alias = "fast")]
    pub fast: BitRate,
    /// The same with circuits of 250 Mb/s and more.
    #[serde(rename = "middle_bps", alias = "middle")]
    pub middle: BitRate,
    /// The same with slower circuits, whose segments are small.
    #[serde(rename = "slow_bps", alias = "slow")]
    pub slow: BitRate,
    /// Whether it was measured on this machine by `heliostat doctor`; else it is taken from the
    /// table.
    pub measured: bool,
}

/// The note that `doctor` leaves.
const FILE: &str = "machine.json";

impl Capacity {
    /// From the table that was measured on 2 cores (Xeon, KVM): 20, 15 and 6.4 Gb/s, in proportion
    /// to the cores.
    pub fn assumed(cores: u64) -> Self {
        let per_core = |mbit: u64| BitRate::mbit(mbit * cores.max(1) / 2);
        Self {
            fast: per_core(20_000),
            middle: per_core(15_000),
            slow: per_core(6_400),
            measured: false,
        }
    }

    /// What `doctor` measured here, or else what is assumed of a machine with as many cores.
    pub fn of_this_machine(base: &Path) -> Self {
        let noted = fs::read(base.join(FILE)).ok().and_then(|t| serde_json::from_slice(&t).ok());
        noted.unwrap_or_else(|| {
            Self::assumed(std::thread::available_parallelism().map_or(1, |n| n.get() as u64))
        })
    }

    /// Leaves a note for later runs.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn note(&self, base: &Path) -> std::io::Result<()> {
        fs::create_dir_all(base)?;
        fs::write(base.join(FILE), serde_json::to_vec_pretty(self).map_err(std::io::Error::other)?)
    }

    /// Why this network is too much, if it is: racks times what each sends over its circuits and
    /// the EPS.
    pub fn exceeded_by(&self, topology: &Topology) -> Option<String> {
        let NetworkLoad { circuit, sum, work, can } = self.asked(topology);
        (self.at_once(topology) == 0).then(|| {
            let how = if self.measured {
                "measured by doctor"
            } else {
                "assumed for its cores; `heliostat doctor` measures it"
            };
            let graph = if work > sum { ", as much work as over one switch" } else { "" };
            format!(
                "{} racks at {circuit} can ask for {} at once{graph}, and this machine carries \
                 {can} ({how})",
                topology.rack_count(),
                BitRate(work)
            )
        })
    }

    /// How many networks like this one the machine carries at the same time, all of whose racks
    /// send at once.
    pub fn at_once(&self, topology: &Topology) -> u64 {
        let NetworkLoad { work, can, .. } = self.asked(topology);
        // A tenth of slack: the table's rows are where circuits still had all their rate.
        (can.0 + can.0 / 10) / work.max(1)
    }

    fn asked(&self, topology: &Topology) -> NetworkLoad {
        let circuit =
            topology.planes.iter().map(|p| p.rate).max().unwrap_or_else(|| {
                topology.racks.iter().map(|r| r.uplink).max().unwrap_or_default()
            });
        let can = match circuit.0 / 1_000_000 {
            1000.. => self.fast,
            250.. => self.middle,
            _ => self.slow,
        };
        let sum: u64 = topology
            .racks
            .iter()
            .map(|r| (topology.ocs_rate().0 + r.uplink.0).min(topology.rack_nic(r.id).0))
            .sum();
        // Measured over four links: between two hosts over an OCS.
        let work = (u128::from(sum) * u128::from(400 + cables_percent(topology)) / 400) as u64;
        NetworkLoad { circuit, sum, work, can }
    }
}

/// What a network can ask of a machine.
struct NetworkLoad {
    /// Rate of its fastest circuit.
    circuit: BitRate,
    /// What all racks send together, in bits per second.
    sum: u64,
    /// The same as if it all went over a single switch.
    work: u64,
    /// What the machine carries of that.
    can: BitRate,
}

/// The mean number of links between switches of a graph that the default ways of all pairs of racks
/// cross, in hundredths.
fn cables_percent(topology: &Topology) -> u64 {
    let Some(graph) = topology.eps.graph() else { return 0 };
    let (routes, racks) = (Routes::new(graph), topology.rack_count());
    let pairs = (0..racks).flat_map(|a| {
        (0..racks).filter(move |&b| a != b).map(move |b| (RackId::from(a), RackId::from(b)))
    });
    let (sum, n) = pairs
        .fold((0, 0), |(sum, n), (a, b)| (sum + routes.between(a, b).unwrap_or(0) as u64, n + 1));
    100 * sum / n.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PlaneId;
    use crate::topology::graph::Graph;
    use crate::topology::{Core, Plane, StopMode};
    use crate::units::Span;

    #[test]
    fn the_shipped_sizes_fit_two_cores() {
        let net = |racks, ocs: u64| {
            let plane = Plane {
                id: PlaneId(0),
                rate: BitRate::mbit(ocs),
                delta: Span::millis(10),
                stop: StopMode::NotAllStop,
                duplex: false,
            };
            Topology::uniform(
                "t",
                racks,
                1,
                BitRate::mbit(ocs),
                BitRate::mbit(ocs / 10),
                vec![plane],
            )
        };
        let c = Capacity::assumed(2);
        assert_eq!(c.exceeded_by(&net(16, 1000)), None);
        // A rack sends what its host can, 1 Gb/s. A run refuses what is more than 22 Gb/s.
        assert_eq!((c.at_once(&net(4, 1000)), c.at_once(&net(22, 1000))), (5, 1));
        assert!(c.at_once(&net(23, 1000)) == 0 && c.exceeded_by(&net(23, 1000)).is_some());
        assert_eq!(c.exceeded_by(&net(64, 100)), None);
        assert!(c.exceeded_by(&net(64, 1000)).is_some());
        assert!(c.exceeded_by(&net(16, 10_000)).is_some());
    }

    #[test]
    fn longer_ways_are_more_work() {
        let mut t = Topology::uniform("t", 8, 1, BitRate::mbit(2000), BitRate::mbit(2000), vec![]);
        let c = Capacity::assumed(2);
        assert_eq!((cables_percent(&t), c.exceeded_by(&t)), (0, None));
        t.eps.core = Core::Graph(Box::new(Graph::fat_tree(4, BitRate::mbit(1000), None)));
        // Of seven other racks one is two links away, six are four.
        assert_eq!(cables_percent(&t), 371);
        assert!(
            c.exceeded_by(&t).is_some_and(|why| why.contains("30.84Gb/s")),
            "{:?}",
            c.exceeded_by(&t)
        );
    }
}
