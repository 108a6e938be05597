//! Open coflows whose progress is read from the ToRs' counters, by the pairs of racks on which they
//! wait for bytes.

use std::collections::{BTreeMap, BTreeSet};

use super::live::LiveAccounts;
use crate::coflows::RackBytes;
use crate::coflows::flows::Pairs;
use crate::ids::{CoflowId, RackId};
use crate::units::Bytes;

/// Which of the coflows may be given bytes that a pair of racks sent. A cycle looks at those that
/// get some, and at no others.
#[derive(Clone, Debug, Default)]
pub struct CounterProgress {
    coflows: BTreeSet<CoflowId>,
    /// Coflows with a pair that is not whole, by that pair. One that a report made whole stays
    /// until its turn comes.
    waiting: BTreeMap<(RackId, RackId), BTreeSet<CoflowId>>,
    /// Coflows that wait for nothing: nothing between two racks was asked.
    idle: BTreeSet<CoflowId>,
}

impl CounterProgress {
    /// Takes a new coflow with these pairs. O(pairs).
    pub fn insert(&mut self, id: CoflowId, pairs: &[RackBytes]) {
        self.coflows.insert(id);
        let asked = pairs.iter().filter(|p| p.bytes > Bytes::ZERO);
        let of = asked.map(|p| self.waiting.entry((p.from, p.to)).or_default().insert(id)).count();
        if of == 0 {
            self.idle.insert(id);
        }
    }

    /// Removes a coflow, if it is one of these. O(pairs).
    pub fn remove(&mut self, id: CoflowId, pairs: &Pairs) {
        if !self.coflows.remove(&id) {
            return;
        }
        self.idle.remove(&id);
        for p in pairs {
            self.no_longer((p.from, p.to), id);
        }
    }

    /// Whether the progress of this coflow is read from the counters.
    pub fn contains(&self, id: CoflowId) -> bool {
        self.coflows.contains(&id)
    }

    /// The pairs that are not whole, each with the coflows that wait for it.
    pub fn waiting(&self) -> impl Iterator<Item = ((RackId, RackId), CoflowId)> {
        self.waiting.iter().flat_map(|(&pair, ids)| ids.iter().map(move |&id| (pair, id)))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.coflows.is_empty()
    }

    /// Gives what each pair of racks has sent to the coflows that wait for it, the oldest first.
    /// Returns those that got bytes, or wait for none. As much as ToRs hold of a pair for a circuit
    /// stays asked of it: ToRs also count what TCP sends again, so they may have counted all that
    /// was asked while the last bytes are held, and these would wait for ever. O(pairs that any
    /// coflow waits for, coflows that get bytes, and those of pairs of which bytes are held).
    pub fn give(
        &mut self,
        accounts: &mut LiveAccounts,
        sent: impl Fn(RackId, RackId) -> u64,
        held: impl Fn(RackId, RackId) -> u64,
    ) -> BTreeSet<CoflowId> {
        let mut given = self.idle.clone();
        let mut whole = vec![];
        for (&(from, to), coflows) in &self.waiting {
            let (mut left, held) = (sent(from, to), held(from, to));
            if held > 0 {
                let of = |&id: &CoflowId| {
                    let a = accounts.account(id)?;
                    a.pairs.place((from, to)).map(|k| a.left(k))
                };
                let asked: u64 = coflows.iter().filter_map(of).sum();
                left = left.min(asked.saturating_sub(held));
            }
            for &id in coflows {
                if left == 0 {
                    break;
                }
                let Some(a) = accounts.account_mut(id) else { continue };
                let Some(k) = a.pairs.place((from, to)) else { continue };
                let asked = a.pairs.at(k).bytes.0;
                let got = a.got_mut(k);
                let more = left.min(asked - got.received);
                left -= more;
                got.received += more;
                if got.received == asked {
                    whole.push(((from, to), id));
                }
                given.insert(id);
            }
        }
        whole.into_iter().for_each(|(pair, id)| self.no_longer(pair, id));
        given
    }

    fn no_longer(&mut self, pair: (RackId, RackId), id: CoflowId) {
        let Some(coflows) = self.waiting.get_mut(&pair) else { return };
        coflows.remove(&id);
        if coflows.is_empty() {
            self.waiting.remove(&pair);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ProgressBy;
    use super::super::accounts::{Accounts, Opening};
    use crate::coflows::RackBytes;
    use crate::coflows::priority::Priorities;
    use crate::ids::{CoflowId, RackId};
    use crate::units::{Bytes, Span, Time};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type PairBytes = BTreeMap<(u32, u32), u64>;

    #[derive(Clone, Debug)]
    enum ProgressStep {
        Open(PairBytes),
        Cancel(u32),
        /// A report of a coflow that is read from the counters as well.
        Report(u32, (u32, u32), u64),
        /// What pairs have sent, and what ToRs hold of them.
        Count(PairBytes, PairBytes),
    }

    fn pairs(most: usize) -> impl Strategy<Value = PairBytes> {
        prop::collection::btree_map((0..3u32, 0..3u32), 1..9u64, 0..most)
    }

    fn step() -> impl Strategy<Value = ProgressStep> {
        prop_oneof![
            3 => pairs(4).prop_map(ProgressStep::Open),
            1 => (0..8u32).prop_map(ProgressStep::Cancel),
            1 => (0..8u32, (0..3u32, 0..3u32), 0..9u64).prop_map(|(id, pair, n)| ProgressStep::Report(id, pair, n)),
            4 => (pairs(6), pairs(3)).prop_map(|(sent, held)| ProgressStep::Count(sent, held)),
        ]
    }

    /// The slow twin: each open coflow takes what its pairs still need, the oldest first, but for
    /// the last bytes that are held. Gives those that are whole then.
    fn count(
        open: &mut BTreeMap<u32, PairBytes>,
        mut sent: PairBytes,
        held: &PairBytes,
    ) -> Vec<u32> {
        for (pair, held) in held {
            let asked: u64 = open.values().filter_map(|rest| rest.get(pair)).sum();
            let sent = sent.entry(*pair).or_default();
            *sent = (*sent).min(asked.saturating_sub(*held));
        }
        for rest in open.values_mut() {
            for (pair, rest) in rest {
                let left = sent.entry(*pair).or_default();
                let got = (*left).min(*rest);
                (*left, *rest) = (*left - got, *rest - got);
            }
        }
        open.iter().filter(|(_, rest)| rest.values().all(|r| *r == 0)).map(|(id, _)| *id).collect()
    }

    fn rack_bytes(pairs: &PairBytes) -> Vec<RackBytes> {
        pairs
            .iter()
            .map(|(&(i, j), &b)| RackBytes { from: RackId(i), to: RackId(j), bytes: Bytes(b) })
            .collect()
    }

    fn open(a: &mut Accounts, id: u32, pairs: &PairBytes) {
        let new = Opening {
            id: CoflowId(id),
            name: "c".into(),
            weight: 1,
            pairs: &rack_bytes(pairs),
            bound: Span(1),
            progress: ProgressBy::Counters,
            priorities: &Priorities::default(),
        };
        a.declare(new, Time(1), 3).expect("it is new");
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        /// Bytes go to the coflows to which the twin gives them, and the same coflows end, whatever
        /// else happens to them.
        #[test]
        fn bytes_go_to_the_oldest_that_waits(steps in prop::collection::vec(step(), 0..40)) {
            let (mut a, mut plain, mut next) = (Accounts::default(), BTreeMap::<u32, PairBytes>::new(), 0);
            for s in steps {
                match s {
                    ProgressStep::Open(pairs) => {
                        open(&mut a, next, &pairs);
                        plain.insert(next, pairs.into_iter().filter(|((i, j), _)| i != j).collect());
                        next += 1;
                    }
                    ProgressStep::Cancel(id) => prop_assert_eq!(a.cancel(CoflowId(id), None, Time(2)).is_ok(), plain.remove(&id).is_some()),
                    ProgressStep::Report(id, pair, received) => {
                        let of = |p: &RackBytes| (p.from.0, p.to.0) == pair;
                        let asked = a.views().get(CoflowId(id)).and_then(|c| c.pairs.iter().find(of).map(|p| p.bytes.0));
                        let told = a.progress(CoflowId(id), &rack_bytes(&[(pair, received)].into()));
                        prop_assert_eq!(told.is_ok(), id < next);
                        if let (Some(asked), Some(rest)) = (asked, plain.get_mut(&id).and_then(|c| c.get_mut(&pair))) {
                            *rest = (*rest).min(asked.saturating_sub(received));
                        }
                    }
                    ProgressStep::Count(sent, held) => {
                        let gained = |i: RackId, j: RackId| (sent.get(&(i.0, j.0)).copied().unwrap_or(0), 0);
                        let kept = |i: RackId, j: RackId| held.get(&(i.0, j.0)).copied().unwrap_or(0);
                        let done: Vec<u32> = a.count(gained, kept, Time(3)).into_iter().map(|id| id.0).collect();
                        prop_assert_eq!(&done, &count(&mut plain, sent.clone(), &held));
                        for id in done {
                            plain.remove(&id);
                            a.finish(CoflowId(id), Time(3)).expect("it is open");
                        }
                    }
                }
                for (&id, rest) in &plain {
                    let c = a.views().get(CoflowId(id)).expect("it is open").clone();
                    prop_assert_eq!(c.bytes.0 - c.received.0, rest.values().sum::<u64>(), "{}", id);
                }
                prop_assert_eq!(a.read_counters(), !plain.is_empty());
            }
        }
    }
}
