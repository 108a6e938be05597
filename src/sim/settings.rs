//! What a simulated fabric is made for.

use crate::coflows::elephants::Admit;
use crate::coflows::network::Network;
use crate::fabric::SEND_BUFFER;
use crate::units::{Bytes, Span};

/// What a [`SimFabric`](super::SimFabric) is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which flows of a rack pair its circuit takes, and whether those have another way.
    pub admit: Admit,
    /// Whether circuits may be set.
    pub circuits: bool,
    /// How coflows share the links.
    pub network: Network,
    /// The most bytes of one flow that count as backlog: what a sender's buffer holds.
    pub buffer: Bytes,
    /// Whether links may fail ([`SimFabric::strike`](super::SimFabric::strike)).
    pub may_fail: bool,
    /// What links carry over time is kept, at first in buckets of this length ([`SimFabric::utilisation`](super::SimFabric::utilisation)).
    pub bucket: Option<Span>,
    /// Whether observations tell what was sent ([`Observation`](crate::fabric::Observation)); where nothing reads that, zeros are
    /// cheaper. Ports are always counted.
    pub counters: bool,
    /// Whether observations tell what waits of all pairs of racks; else of those with a circuit at least.
    pub backlog: bool,
    /// Whether it is asked how far coflows are by pair of racks ([`SimFabric::progress`](super::SimFabric::progress)); else that is not
    /// kept.
    pub progress: bool,
    /// Coflows that end as wholes are told as such ([`SimFabric::take_over`](super::SimFabric::take_over)), where no link has a delay; else
    /// flow by flow.
    pub wholes: bool,
    /// What ends of flows leave is shared anew at multiples of this, or sooner when anything else happens; zero: at once, which is exact.
    /// Flows end at their instants whatever it is. `network: sunflow` knows none.
    pub resolution: Span,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            admit: Admit::Marked,
            circuits: true,
            network: Network::default(),
            buffer: SEND_BUFFER,
            may_fail: false,
            bucket: None,
            counters: true,
            backlog: true,
            progress: true,
            wholes: false,
            resolution: Span::ZERO,
        }
    }
}
