//! A ring: a switch a rack, each joined with the next.

use heliostat::topology::graph::{Cable, Graph, Switch, Tier};
use heliostat::units::BitRate;

/// The ring of `racks` racks with links of `rate`; three racks at least.
pub fn ring(racks: usize, rate: BitRate) -> Graph {
    let n = racks as u32;
    Graph {
        switches: (0..n)
            .map(|k| Switch { name: format!("ring{k}"), tier: Tier::Access, rate: None })
            .collect(),
        cables: (0..n).map(|k| Cable { ends: (k, (k + 1) % n), rate }).collect(),
        racks: (0..n).collect(),
    }
}
