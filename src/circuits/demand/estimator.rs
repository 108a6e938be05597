//! The one front before all estimators: chosen by name in a policy, fed once an interval.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::counters::Counters;
use super::hedera::{self, Elephants, FlowMeter, HostFlow};
use super::natural::NaturalDemand;
use super::{DemandMatrix, declared};
use crate::topology::Topology;
use crate::units::Span;

/// What an estimator sees each interval. All matrices are `R x R`.
pub struct Inputs<'a> {
    /// Cumulative bytes sent by rack pair.
    pub sent: &'a DemandMatrix,
    /// Bytes waiting at the senders now.
    pub backlog: &'a DemandMatrix,
    /// Bytes that the posted coflows still have to send.
    pub declared: &'a DemandMatrix,
    /// Flows between hosts, where the fabric tells them.
    pub flows: Option<&'a [HostFlow]>,
    /// How many of them are large, where the fabric tells that.
    pub elephants: Option<&'a Elephants>,
    /// Length of the interval.
    pub interval: Span,
    /// The network.
    pub topology: &'a Topology,
}

/// Where demand comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Estimator {
    /// Bytes that the ToRs counted in the last interval, aged where the policy says so.
    Counters,
    /// Bytes that wait at the senders, as in c-Through; `sockets` is another name, for live they
    /// are read from the hosts' sockets.
    #[cfg_attr(feature = "serde", serde(alias = "sockets"))]
    Backlog,
    /// Hedera's natural demand of the large flows between hosts, as in Helios.
    Hedera,
    /// The same by pairs of racks, one flow each, from the ToRs' counters.
    HederaRacks,
    /// What the coflows that were posted still have to send.
    Declared,
    /// The larger of declared and backlog, rack pair by rack pair: nothing is counted twice.
    Combined,
}

impl Estimator {
    /// Whether what racks sent is read: by it, or by the accounts of coflows, which it reads.
    /// Hedera's demand reads flows between hosts instead, which every simulation tells.
    pub fn reads_counters(self) -> bool {
        !matches!(self, Self::Backlog | Self::Hedera)
    }

    /// Whether it reads what waits at all senders. Hedera's demand does so only where flows are not
    /// told, which every simulation does.
    pub fn reads_backlog(self) -> bool {
        matches!(self, Self::Backlog | Self::HederaRacks | Self::Combined)
    }

    /// Whether it reads flows between hosts.
    pub fn reads_flows(self) -> bool {
        self == Self::Hedera
    }

    /// Whether it reads what the posted coflows still have to send.
    pub fn reads_coflows(self) -> bool {
        matches!(self, Self::Declared | Self::Combined)
    }
}

/// An estimator with its memory: a state machine that is fed one [`Inputs`] an interval.
#[derive(Clone, Debug)]
pub struct EstimatorState {
    kind: Estimator,
    counters: Counters,
    meter: FlowMeter,
    shares: NaturalDemand,
}

impl EstimatorState {
    /// A fresh one for `racks` racks; `ageing` percent of what the counters gave stay with each
    /// update.
    pub fn new(kind: Estimator, ageing: u8, racks: usize) -> Self {
        Self {
            kind,
            counters: Counters::new(racks, ageing),
            meter: FlowMeter::default(),
            shares: NaturalDemand::default(),
        }
    }

    /// Estimates in another way from the next update on. What was counted so far stays: the first
    /// interval is not the whole history.
    pub fn switch_to(&mut self, kind: Estimator, ageing: u8) {
        self.kind = kind;
        self.counters.keep(ageing);
        self.meter = FlowMeter::default();
    }

    /// Whether nothing fades any more: while the counters do not change, updates with the same
    /// inputs give the same and change nothing. O(R^2).
    pub fn rests(&self) -> bool {
        self.counters.rests() && self.meter.rests()
    }

    /// The bytes wanted in the next interval, `R x R`. O(R^2), for Hedera's O(R^2) a round of its
    /// few.
    pub fn update(&mut self, inputs: &Inputs) -> DemandMatrix {
        let metered =
            inputs.flows.filter(|_| self.kind == Estimator::Hedera && inputs.elephants.is_none());
        let metered =
            metered.map(|flows| self.meter.elephants(flows, inputs.topology, inputs.interval));
        match (self.kind, inputs.elephants.or(metered.as_ref())) {
            (Estimator::Counters, _) => return self.counters.update(inputs.sent),
            (Estimator::Hedera, Some(elephants)) => {
                self.counters.pass(inputs.sent);
                return hedera::between_hosts(
                    elephants,
                    inputs.topology,
                    inputs.interval,
                    &mut self.shares,
                );
            }
            // Recordings of versions that did not record flows have none.
            (Estimator::Hedera | Estimator::HederaRacks, _) => {
                let gained = self.counters.update(inputs.sent);
                return hedera::between_racks(
                    &gained,
                    inputs.backlog,
                    inputs.topology,
                    inputs.interval,
                    &mut self.shares,
                );
            }
            // The other estimators do not read what was gained, but one that follows them may.
            (Estimator::Backlog | Estimator::Declared | Estimator::Combined, _) => {
                self.counters.pass(inputs.sent)
            }
        }
        match self.kind {
            Estimator::Combined => declared::combine(inputs.declared, inputs.backlog),
            Estimator::Declared => inputs.declared.clone(),
            _ => inputs.backlog.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::HostId;
    use crate::units::BitRate;

    #[test]
    fn another_kind_goes_on_from_what_was_counted() {
        let topology = Topology::uniform("t", 2, 1, BitRate::mbit(80), BitRate::mbit(8), vec![]);
        let of = |b| DemandMatrix::from_rows(&[&[0, b], &[0, 0]]);
        let none = DemandMatrix::zero(2);
        let mut e = EstimatorState::new(Estimator::Backlog, 0, 2);
        let sees = |e: &mut EstimatorState, sent| {
            let inputs = Inputs {
                sent: &of(sent),
                backlog: &none,
                declared: &none,
                flows: None,
                elephants: None,
                interval: Span::millis(100),
                topology: &topology,
            };
            e.update(&inputs)
        };
        assert_eq!(sees(&mut e, 5_000_000), of(0));
        e.switch_to(Estimator::Counters, 0);
        assert_eq!(sees(&mut e, 5_000_300), of(300));
        e.switch_to(Estimator::Counters, 75);
        assert_eq!(sees(&mut e, 5_000_400), of(250), "three quarters of 300 and one of 100");
    }

    #[test]
    fn each_kind_reads_its_own_input() {
        let topology = Topology::uniform("t", 2, 1, BitRate::mbit(80), BitRate::mbit(8), vec![]);
        let of = |b| DemandMatrix::from_rows(&[&[0, b], &[0, 0]]);
        let (sent, backlog, declared) = (of(200_000), of(30), of(20));
        let elephant =
            |id| HostFlow { from: HostId(0), to: HostId(1), id, flows: 1, sent: 0, waits: 100_000 };
        let flows = [elephant(0), elephant(1)];
        let inputs = Inputs {
            sent: &sent,
            backlog: &backlog,
            declared: &declared,
            flows: Some(&flows),
            elephants: None,
            interval: Span::millis(100),
            topology: &topology,
        };
        let found = |kind| {
            let mut e = EstimatorState::new(kind, 0, 2);
            let first = e.update(&inputs);
            (first, e.update(&inputs))
        };
        assert_eq!(found(Estimator::Counters), (of(200_000), of(0)));
        assert_eq!(found(Estimator::Backlog), (of(30), of(30)));
        // Elephants have the whole host link, 80 Mb/s for 100 ms. What the racks sent was in the
        // first interval alone.
        assert_eq!(found(Estimator::Hedera), (of(1_000_000), of(1_000_000)));
        assert_eq!(found(Estimator::HederaRacks), (of(1_000_000), of(30)));
        assert_eq!(found(Estimator::Declared), (of(20), of(20)));
        assert_eq!(found(Estimator::Combined), (of(30), of(30)));
    }
}
