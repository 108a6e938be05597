//! How long a shuffle takes: what a network says of it.

use crate::ids::RackId;
use crate::units::{Bytes, Span};

use super::super::cluster::Cluster;

/// Bytes of one coflow from rack to rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RackTransfer {
    /// The sending rack.
    pub from: RackId,
    /// The receiving rack; the same as `from` for bytes that do not leave it.
    pub to: RackId,
    /// Number of bytes.
    pub bytes: Bytes,
}

/// Something that can say how long a coflow will take.
///
/// The paper's answer is [`Idle`]. A controller may answer from the circuits and coflows that it
/// has.
pub trait CoflowForecaster {
    /// The completion time of a coflow, counted from `start`, when it may begin; `start` counts
    /// from now. Each pair of racks is given at most once.
    fn completion(&self, coflow: &[RackTransfer], start: Span) -> Span;
}

/// A network without any other coflow: the lower bound T(C), eq. (1), (2) and (15).
///
/// Pairs that reach T_e go by circuits, all others by the electrical core at the same time; bytes
/// that stay in a rack take no time. With W circuits a port, a port's sum is divided by W but is
/// not below its longest pair.
#[derive(Clone, Copy, Debug)]
pub struct Idle<'a>(pub &'a Cluster);

/// What one port of a rack has to carry.
#[derive(Clone, Copy, Default)]
struct PortLoad {
    light: u64,
    heavy: u64,
    circuits: u64,
    longest: u64,
}

impl PortLoad {
    fn carry(&mut self, bytes: u64, heavy: bool) {
        if !heavy {
            self.light = self.light.saturating_add(bytes);
            return;
        }
        self.heavy = self.heavy.saturating_add(bytes);
        self.circuits += 1;
        self.longest = self.longest.max(bytes);
    }

    fn time(&self, c: &Cluster) -> Span {
        let light = c.core.time_for(Bytes(self.light));
        if self.circuits == 0 {
            return light;
        }
        let sum = c.ocs.time_for(Bytes(self.heavy)) + c.delta * self.circuits;
        let shared = Span(sum.0.div_ceil(u64::from(c.circuits)));
        light.max(shared).max(c.ocs.time_for(Bytes(self.longest)) + c.delta)
    }
}

impl CoflowForecaster for Idle<'_> {
    /// O(transfers + R).
    fn completion(&self, coflow: &[RackTransfer], _: Span) -> Span {
        let ports = coflow.iter().map(|t| t.from.index().max(t.to.index()) + 1).max().unwrap_or(0);
        let (mut out, mut into) =
            (vec![PortLoad::default(); ports], vec![PortLoad::default(); ports]);
        for t in coflow.iter().filter(|t| t.from != t.to) {
            let heavy = self.0.has_circuits() && t.bytes >= self.0.elephant;
            out[t.from.index()].carry(t.bytes.0, heavy);
            into[t.to.index()].carry(t.bytes.0, heavy);
        }
        out.iter().chain(&into).map(|p| p.time(self.0)).max().unwrap_or(Span::ZERO)
    }
}
