//! Strict priorities of single flows, as switches with queues by DSCP have.

use serde::{Deserialize, Serialize};

/// The last of the priorities that a flow can be given; 0 goes first.
pub const LAST: u8 = 7;
/// The priority of flows of which nothing is said: some can be put before them, and some behind.
pub const PLAIN: u8 = 4;
/// Flows within a rack of which nothing is said go behind all others: they take what others leave of their hosts' interfaces.
///
/// Source: Tian et al., *PushBox*, section 4 (a reserved lowest priority for transfers within racks).
pub const WITHIN_RACK: u8 = LAST + 1;

/// What is said of the priorities of a coflow's flows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Priorities {
    /// Of all its flows between racks; [`PLAIN`] if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<u8>,
    /// By flow, those of which something is said; shorter than the list of flows if the rest is silent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<Option<u8>>,
}

impl Priorities {
    /// Whether nothing is said.
    pub fn is_plain(&self) -> bool {
        self.all.is_none() && self.flows.is_empty()
    }

    /// The priority of a flow: its own, else [`WITHIN_RACK`] if it stays in its rack, else its coflow's, else [`PLAIN`].
    pub fn of(&self, flow: usize, within_rack: bool) -> u8 {
        let other = if within_rack { WITHIN_RACK } else { self.all.unwrap_or(PLAIN) };
        self.flows.get(flow).copied().flatten().unwrap_or(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_s_own_word_comes_first() {
        let p = Priorities { all: Some(2), flows: vec![None, Some(7)] };
        assert_eq!([p.of(0, false), p.of(1, false), p.of(1, true), p.of(0, true), p.of(9, false)], [2, 7, 7, WITHIN_RACK, 2]);
        assert_eq!((Priorities::default().of(0, false), Priorities::default().is_plain(), p.is_plain()), (PLAIN, true, false));
    }
}
