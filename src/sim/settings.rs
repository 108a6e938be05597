//! Settings of a simulated fabric.

use crate::coflows::elephants::Admit;
use crate::coflows::network::Network;
use crate::fabric::SEND_BUFFER;
use crate::units::{Bytes, Span};

/// Settings of a [`SimFabric`](super::SimFabric).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimSettings {
    /// Which flows of a rack pair its circuit takes, and whether these have another route.
    pub admit: Admit,
    /// Whether circuits may be set.
    pub circuits: bool,
    /// How coflows share the links.
    pub network: Network,
    /// The most bytes of one flow that count as backlog: what a sender's buffer holds.
    pub buffer: Bytes,
    /// Whether links may fail ([`SimFabric::strike`](super::SimFabric::strike)).
    pub may_fail: bool,
    /// Length of the first buckets in which the bytes of links are kept
    /// ([`SimFabric::utilisation`](super::SimFabric::utilisation)); `None`: they are not kept.
    pub bucket: Option<Span>,
    /// Whether observations have the bytes sent ([`Observation`](crate::fabric::Observation)). If
    /// nothing reads them, zeros are cheaper. Ports are always counted.
    pub counters: bool,
    /// Whether observations have the backlog of all pairs of racks; else at least of those with a
    /// circuit.
    pub backlog: bool,
    /// Whether [`SimFabric::progress`](super::SimFabric::progress) will be called; else bytes by
    /// pair of racks are not kept.
    pub progress: bool,
    /// Whether coflows that end as wholes are returned as wholes
    /// ([`SimFabric::take_over`](super::SimFabric::take_over)), if no link has a delay; else flow
    /// by flow.
    pub wholes: bool,
    /// After the end of a flow, bandwidth is shared again at multiples of this, or when anything
    /// else happens before; zero: at once, which is exact. Flows end at their own instants in any
    /// case. `network: sunflow` ignores it.
    pub resolution: Span,
}

impl Default for SimSettings {
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
