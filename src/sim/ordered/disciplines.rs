//! The network schedulers that serve coflows one after another: one trait, and one type for each.

use super::active::ActiveCoflow;
use crate::coflows::CoflowSpec;
use crate::coflows::network::{Network, NetworkKind, Within};
use crate::coflows::orders::{self, Aalo, Sharing};
use crate::coflows::rates::{self, Demand, FreeCapacity, Rates, Remainder};

/// The rules of a network scheduler. The defaults are those of FIFO: coflows in the order of their
/// arrival, each takes greedily what the ones before it leave.
pub trait Discipline: Send {
    /// Whether rates are decided for whole coflows, when a coflow arrives or ends
    /// ([`Discipline::base`]). When a flow ends, only the bandwidth that the coflows leave is
    /// shared again.
    fn by_coflow(&self) -> bool {
        false
    }

    /// Whether the end of a coflow may change the order of the others.
    fn end_reorders(&self) -> bool {
        self.by_coflow()
    }

    /// Sorts coflows, given in the order of their arrival, into the order in which they are served.
    fn order(&self, coflows: &mut Vec<ActiveCoflow>, capacity: &[u64]) {
        let _ = (coflows, capacity);
    }

    /// Gives base rates to all coflows, in order, if it decides by coflow. Returns what ends last
    /// of each.
    fn base(
        &self,
        demands: &[&Demand],
        free: &mut FreeCapacity,
        rates: &mut [Rates],
    ) -> Vec<Option<Remainder>> {
        let _ = (free, rates);
        vec![None; demands.len()]
    }

    /// Whether the flows of a coflow share its bandwidth max-min fairly; else flow after flow takes
    /// all that its links have.
    fn is_fair_within(&self) -> bool {
        false
    }

    /// Whether flows of equal priority share equally, whatever the sizes of their coflows.
    fn equals_share(&self) -> bool {
        false
    }

    /// The queues through which coflows move by what they have sent, if there are any.
    fn queues(&self) -> Option<&Aalo> {
        None
    }

    /// The queues, if they share the links by weight: then every coflow depends on all others.
    fn weighted(&self) -> Option<&Aalo> {
        self.queues().filter(|a| a.sharing == Sharing::Weighted)
    }

    /// Whether flows have priorities in the network, which may change while the flows run.
    fn has_priorities(&self) -> bool {
        false
    }

    /// The priority of a flow in the network, 0 first; `is_local`: it stays in its rack.
    fn priority(&self, coflow: &CoflowSpec, flow: usize, is_local: bool) -> u8 {
        let _ = (coflow, flow, is_local);
        0
    }
}

/// The rules of a network scheduler. Max-min and Sunflow have models of their own, and never come
/// here.
pub fn discipline(network: &Network) -> Box<dyn Discipline> {
    let fair = network.within == Within::MaxMin;
    match network.kind {
        NetworkKind::FairPerCoflow => Box::new(EqualProgress),
        NetworkKind::Varys => Box::new(Varys),
        NetworkKind::Sincronia => Box::new(Sincronia),
        NetworkKind::Aalo => Box::new(AaloQueues { fair, aalo: network.aalo }),
        NetworkKind::Priority => Box::new(StrictPriorities { fair }),
        NetworkKind::Fifo => Box::new(Fifo { fair }),
        NetworkKind::MaxMin | NetworkKind::Sunflow => Box::new(Fifo { fair: false }),
    }
}

/// Serves coflows in the order of their arrival.
struct Fifo {
    fair: bool,
}

impl Discipline for Fifo {
    fn is_fair_within(&self) -> bool {
        self.fair
    }
}

/// All coflows progress at the same pace.
struct EqualProgress;

impl Discipline for EqualProgress {
    fn by_coflow(&self) -> bool {
        true
    }
    fn order(&self, coflows: &mut Vec<ActiveCoflow>, _: &[u64]) {
        coflows.iter_mut().for_each(|c| c.demand.weigh());
    }
    fn base(
        &self,
        demands: &[&Demand],
        free: &mut FreeCapacity,
        rates: &mut [Rates],
    ) -> Vec<Option<Remainder>> {
        rates::equal_progress(demands, free, rates)
    }
}

/// Smallest effective bottleneck first, each as fast as its bottleneck allows.
struct Varys;

impl Discipline for Varys {
    fn by_coflow(&self) -> bool {
        true
    }
    fn order(&self, coflows: &mut Vec<ActiveCoflow>, capacity: &[u64]) {
        order_by(coflows, |demands, _| orders::sebf(demands, capacity));
    }
    fn base(
        &self,
        demands: &[&Demand],
        free: &mut FreeCapacity,
        rates: &mut [Rates],
    ) -> Vec<Option<Remainder>> {
        demands.iter().zip(rates).map(|(d, r)| rates::madd(d, free, r)).collect()
    }
}

/// Bottleneck, select, scale, iterate.
struct Sincronia;

impl Discipline for Sincronia {
    fn end_reorders(&self) -> bool {
        true
    }
    fn order(&self, coflows: &mut Vec<ActiveCoflow>, capacity: &[u64]) {
        order_by(coflows, |demands, weights| orders::bssi(demands, weights, capacity));
    }
}

/// Aalo: coflows that have sent little first.
struct AaloQueues {
    fair: bool,
    aalo: Aalo,
}

impl Discipline for AaloQueues {
    fn order(&self, coflows: &mut Vec<ActiveCoflow>, _: &[u64]) {
        coflows.sort_by_key(|c| c.queue);
    }
    fn is_fair_within(&self) -> bool {
        self.fair
    }
    fn queues(&self) -> Option<&Aalo> {
        Some(&self.aalo)
    }
}

/// Strict priorities of flows and coflows.
struct StrictPriorities {
    fair: bool,
}

impl Discipline for StrictPriorities {
    fn order(&self, coflows: &mut Vec<ActiveCoflow>, _: &[u64]) {
        coflows.sort_by_key(|c| c.priority);
    }
    fn is_fair_within(&self) -> bool {
        self.fair
    }
    fn equals_share(&self) -> bool {
        self.fair
    }
    fn has_priorities(&self) -> bool {
        true
    }
    fn priority(&self, coflow: &CoflowSpec, flow: usize, is_local: bool) -> u8 {
        coflow.priorities.of(flow, is_local)
    }
}

/// Sorts coflows by a function of their demands and weights.
fn order_by(coflows: &mut Vec<ActiveCoflow>, order: impl FnOnce(&[&Demand], &[u32]) -> Vec<usize>) {
    for c in coflows.iter_mut() {
        c.demand.weigh();
    }
    let demands: Vec<&Demand> = coflows.iter().map(|c| &c.demand).collect();
    let weights: Vec<u32> = coflows.iter().map(|c| c.weight).collect();
    let order = order(&demands, &weights);
    let mut old: Vec<Option<ActiveCoflow>> =
        std::mem::take(coflows).into_iter().map(Some).collect();
    *coflows = order.into_iter().filter_map(|c| old[c].take()).collect();
}
