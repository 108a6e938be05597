//! Strict priorities of single flows, as switches with queues by DSCP have.

use std::collections::BTreeMap;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::ids::FlowId;

/// The last of the priorities that a flow can be given; 0 goes first.
pub const LAST: u8 = 7;
/// The priority of flows of which nothing is said: some can be put before them, and some behind.
pub const PLAIN: u8 = 4;
/// Flows within a rack of which nothing is said go behind all others: they take what others leave
/// of their hosts' interfaces.
///
/// Source: Tian et al., *PushBox*, section 4 (a reserved lowest priority for transfers within
/// racks).
pub const WITHIN_RACK: u8 = LAST + 1;

/// What is said of the priorities of a coflow's flows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Priorities {
    /// Priority of all its flows between racks; [`PLAIN`] if nothing is said.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub all: Option<u8>,
    /// By flow, those of which something is said; shorter than the list of flows if the rest is
    /// silent.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub flows: Vec<Option<u8>>,
}

impl Priorities {
    /// Whether nothing is said.
    pub fn is_plain(&self) -> bool {
        self.all.is_none() && self.flows.is_empty()
    }

    /// The priority of a flow: its own, else [`WITHIN_RACK`] if it stays in its rack, else its
    /// coflow's, else [`PLAIN`].
    pub fn of(&self, flow: usize, within_rack: bool) -> u8 {
        let other = if within_rack { WITHIN_RACK } else { self.all.unwrap_or(PLAIN) };
        self.flows.get(flow).copied().flatten().unwrap_or(other)
    }
}

/// The DSCP that packets of this priority carry: class selector CS7 for 0, CS6 for 1, and so on;
/// [`WITHIN_RACK`] shares CS0 with the last.
///
/// Source: RFC 2474, section 4.2.2 (class selector codepoints: the larger one is served no worse).
pub fn dscp(priority: u8) -> u8 {
    (LAST - priority.min(LAST)) << 3
}

/// Other priorities for flows of a coflow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct PriorityChange {
    /// Priority of its flows between racks that have none of their own; `None`: as before.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub all: Option<u8>,
    /// Priorities of single flows, by number: their own from now on.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub flows: Vec<(FlowId, u8)>,
}

impl PriorityChange {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.all.is_none() && self.flows.is_empty()
    }

    /// The first priority in it that does not exist.
    pub fn wrong(&self) -> Option<u8> {
        self.all.iter().chain(self.flows.iter().map(|(_, p)| p)).copied().find(|&p| p > LAST)
    }
}

/// What has been said of the priorities of a coflow so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Priority of all its flows between racks.
    pub all: Option<u8>,
    /// Priorities of single flows.
    flows: BTreeMap<FlowId, u8>,
}

impl Said {
    /// Takes note of a change, and gives what is new of it. O(changes log flows).
    pub fn change(&mut self, change: &PriorityChange) -> PriorityChange {
        let all = change.all.filter(|&p| self.all.replace(p) != Some(p));
        let flows = change
            .flows
            .iter()
            .copied()
            .filter(|&(flow, p)| self.flows.insert(flow, p) != Some(p))
            .collect();
        PriorityChange { all, flows }
    }

    /// All that has been said, as one change. O(flows).
    pub fn whole(&self) -> PriorityChange {
        PriorityChange {
            all: self.all,
            flows: self.flows.iter().map(|(&flow, &p)| (flow, p)).collect(),
        }
    }
}

impl From<&Priorities> for Said {
    fn from(p: &Priorities) -> Self {
        let own = p.flows.iter().enumerate().filter_map(|(k, p)| Some((FlowId::from(k), (*p)?)));
        Self { all: p.all, flows: own.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_again_is_no_change() {
        let mut said = Said::from(&Priorities { all: None, flows: vec![None, Some(3)] });
        let change = PriorityChange { all: Some(2), flows: vec![(FlowId(0), 1), (FlowId(1), 3)] };
        assert_eq!(
            said.change(&change),
            PriorityChange { all: Some(2), flows: vec![(FlowId(0), 1)] }
        );
        assert!(said.change(&change).is_empty());
        assert_eq!(
            [said.change(&PriorityChange { all: Some(0), flows: vec![] }).all, said.all],
            [Some(0), Some(0)]
        );
        assert_eq!(
            (change.wrong(), PriorityChange { all: Some(8), flows: vec![] }.wrong()),
            (None, Some(8))
        );
        assert_eq!(PriorityChange { all: None, flows: vec![(FlowId(2), 9)] }.wrong(), Some(9));
    }

    #[test]
    fn a_flow_s_own_word_comes_first() {
        let p = Priorities { all: Some(2), flows: vec![None, Some(7)] };
        assert_eq!(
            [p.of(0, false), p.of(1, false), p.of(1, true), p.of(0, true), p.of(9, false)],
            [2, 7, 7, WITHIN_RACK, 2]
        );
        assert_eq!(
            (Priorities::default().of(0, false), Priorities::default().is_plain(), p.is_plain()),
            (PLAIN, true, false)
        );
    }
}
