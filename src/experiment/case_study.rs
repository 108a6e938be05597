//! The case study by which Hit-scheduler's paper explains itself (ICPP 2018, section 2.3).

use crate::ids::HostId;
use crate::paths::{SwitchRates, Switches, Units};
use crate::placement::hit::wave::{Distances, How, ShuffleSide, TaskPair, Wave, place};
use crate::topology::Topology;

/// Cost of the case study, in GB x switches: as its figure 3 gives it, with R1 on S4 and R2 on S2,
/// and as Hit places the two reduces where `places` are free. `None`: two tasks find no slots.
///
/// Source: section 2.3.
pub fn costs(topology: &Topology, places: [u32; 4]) -> Option<(f64, f64)> {
    let pair = |from, to, bytes| TaskPair { from, to, bytes, rate: 1 };
    let (maps, reduces) = (HostId(0), [HostId(3), HostId(1)]);
    let wave = Wave {
        side: vec![ShuffleSide::Map, ShuffleSide::Map, ShuffleSide::Reduce, ShuffleSide::Reduce],
        fixed: vec![Some(maps), Some(maps), None, None],
        pairs: vec![pair(0, 2, 34), pair(1, 3, 10)],
        places: places.to_vec(),
    };
    let net = Switches::new(topology, Units::default());
    let distances =
        Distances::new(&net, &SwitchRates::new(&net), topology.hosts.len(), &wave.pairs);
    wave.at_random(1).ok()?;
    let placed = place(&wave, &distances, vec![maps, maps, reduces[0], reduces[1]], How::default());
    Some((placed.before as f64, placed.after as f64))
}
