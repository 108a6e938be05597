//! How long a new transfer will take over one link, and how much longer others take because of it,
//! by how the network serves them.
//!
//! All is in bytes that the link carries until a transfer has ended; over the link's rate this is
//! its completion time. A new transfer has s bytes, and shares the link with others that have sent
//! a_i and have s_i left. Of coflows, t_i is the total size, smallest first:
//!
//! | served by | until the new one is through | how much later the others are, together |
//! |---|---|---|
//! | arrival (FCFS) | s + sum s_i | 0 |
//! | equal shares | s + sum min(s_i, s) | sum min(s_i, s) |
//! | least sent first (LAS) | s + sum min(s_i, max(s - a_i, 0)) | sum min(s, a_i + s_i) |
//! | least left first (SRPT) | s + sum of s_i <= s | s for each s_i > s |
//! | smallest coflow first (TCF) | s + sum of s_i of t_i <= t | s for each t_i > t |
//!
//! Source: derived from the definition in Munir et al., "Network scheduling aware task placement in
//! datacenters" (NEAT), CoNEXT 2016, that a completion time is the bytes transmitted on the link
//! until then over its rate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the network serves transfers, as NEAT assumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Predict {
    /// Coflows by their total size, the smallest first.
    #[default]
    Tcf,
    /// Transfers by what they have left, the least first.
    Srpt,
    /// All transfers in equal shares.
    Fair,
    /// Transfers in the order in which they came.
    Fcfs,
    /// Transfers by what they have sent, the least first.
    Las,
}

/// A transfer on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkTransfer {
    /// What it has sent.
    pub sent: u64,
    /// What it has left; of a new one, all.
    pub left: u64,
    /// The size of its coflow.
    pub total: u64,
}

/// What a new transfer comes to, in bytes that the link carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes until its end.
    pub own: u128,
    /// By how much others are later, together.
    pub others: u128,
}

impl Cost {
    /// By how much the sum of all completion times grows.
    pub fn sum(self) -> u128 {
        self.own + self.others
    }
}

/// The cost of a new transfer beside those on a link. O(transfers).
pub fn cost(by: Predict, new: LinkTransfer, others: &[LinkTransfer]) -> Cost {
    let (s, wide) = (new.left, |b: u64| u128::from(b));
    let mut all = Cost { own: wide(s), others: 0 };
    for o in others.iter().filter(|o| o.left > 0) {
        let (before, later) = match by {
            Predict::Fcfs => (o.left, 0),
            Predict::Fair => (o.left.min(s), o.left.min(s)),
            Predict::Las => {
                (o.left.min(s.saturating_sub(o.sent)), s.min(o.sent.saturating_add(o.left)))
            }
            Predict::Srpt if o.left <= s => (o.left, 0),
            Predict::Tcf if o.total <= new.total => (o.left, 0),
            Predict::Srpt | Predict::Tcf => (0, s),
        };
        (all.own, all.others) = (all.own + wide(before), all.others + wide(later));
    }
    all
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::coflows::network::{Network, NetworkKind};
    use crate::coflows::{CoflowSpec, FlowSpec};
    use crate::ids::{CoflowId, HostId};
    use crate::sim::{SimFabric, SimSettings};
    use crate::topology::{Framing, Topology};
    use crate::units::{BitRate, Bytes, Time};

    /// Bytes that take one microsecond at 840 Mb/s, and k microseconds where k transfers, up to
    /// eight, share that.
    const UNIT: u64 = 105;
    const MICRO: u64 = 1000;

    /// Times at which transfers end that all begin at zero, and one that comes at `at`, as the
    /// simulator replays them; the last is the new one.
    fn replay(kind: NetworkKind, sizes: &[u64], new: Option<(u64, u64)>) -> (Vec<u64>, Vec<u64>) {
        let rate = BitRate::mbit(840);
        let mut t = Topology::uniform("t", 2, 1, rate, rate, vec![]);
        t.framing = Framing::None;
        let network = Network { kind, ..Network::default() };
        let mut f = SimFabric::new(
            Arc::new(t),
            SimSettings { circuits: false, network, ..SimSettings::default() },
        );
        let coflow = |k: usize, at: u64, bytes: u64| {
            CoflowSpec::new(
                CoflowId(k as u32),
                "",
                Time(at),
                vec![FlowSpec { from: HostId(0), to: HostId(1), bytes: Bytes(bytes) }],
            )
        };
        sizes.iter().enumerate().for_each(|(k, &b)| f.add_flows(&coflow(k, 0, b), &[], Time(0)));
        let mut done = f.advance(Time(new.map_or(0, |n| n.0)));
        let mut left = vec![0; sizes.len()];
        if let Some((at, bytes)) = new {
            f.left(Time(at)).into_iter().for_each(|(c, _, b)| left[c.index()] = b.0);
            f.add_flows(&coflow(sizes.len(), at, bytes), &[], Time(at));
        }
        done.extend(f.advance(Time(1 << 60)));
        let mut ends = vec![0; sizes.len() + usize::from(new.is_some())];
        done.iter().for_each(|d| ends[d.coflow.index()] = d.at.0);
        (ends, left)
    }

    /// Least sent first as a fluid, in small steps of level: what each has sent when it ends, by
    /// events.
    fn las(others: &[LinkTransfer], new: Option<u64>) -> Vec<f64> {
        let mut all: Vec<(f64, f64)> =
            others.iter().map(|o| (o.sent as f64, (o.sent + o.left) as f64)).collect();
        all.extend(new.map(|s| (0.0, s as f64)));
        let (mut carried, mut ends) = (0.0, vec![0.0; all.len()]);
        loop {
            let open: Vec<usize> = (0..all.len()).filter(|&k| all[k].0 < all[k].1 - 1e-9).collect();
            let Some(level) = open.iter().map(|&k| all[k].0).min_by(f64::total_cmp) else {
                return ends;
            };
            let lowest: Vec<usize> =
                open.iter().copied().filter(|&k| all[k].0 <= level + 1e-9).collect();
            let stop = open
                .iter()
                .map(|&k| if lowest.contains(&k) { all[k].1 } else { all[k].0 })
                .min_by(f64::total_cmp)
                .unwrap();
            carried += (stop - level) * lowest.len() as f64;
            for &k in &lowest {
                all[k].0 = stop;
                if stop >= all[k].1 - 1e-9 {
                    ends[k] = carried;
                }
            }
        }
    }

    #[test]
    fn the_table_by_an_example() {
        let link = [(0, 4, 9), (3, 2, 5), (1, 8, 20)].map(|(sent, left, total)| LinkTransfer {
            sent,
            left,
            total,
        });
        let new = LinkTransfer { sent: 0, left: 5, total: 6 };
        let of = |by| {
            let c = cost(by, new, &link);
            (c.own, c.others)
        };
        use Predict::{Fair, Fcfs, Las, Srpt, Tcf};
        assert_eq!(
            [of(Fcfs), of(Fair), of(Las), of(Srpt), of(Tcf)],
            [(19, 0), (16, 11), (15, 14), (11, 5), (7, 10)]
        );
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        /// The prediction is the simulator's completion time to the nanosecond, and the growth is
        /// that of all others together.
        #[test]
        fn a_prediction_is_what_a_link_does(
            sizes in prop::collection::vec(1u64..400, 1..8),
            size in 1u64..400,
            at in 0u64..3,
            which in prop::sample::select(vec![Predict::Fair, Predict::Fcfs, Predict::Tcf]),
        ) {
            let kind = match which {
                Predict::Fair => NetworkKind::MaxMin,
                Predict::Fcfs => NetworkKind::Fifo,
                _ => NetworkKind::Priority,
            };
            // Any number of equal shares has sent whole bytes by then, if no transfer has ended.
            let more = if which == Predict::Fair { 1680 } else { 0 };
            let (sizes, bytes): (Vec<u64>, _) = (sizes.iter().map(|s| (s + more) * UNIT).collect(), size * UNIT);
            let at = at * 840 * MICRO;
            let (with, left) = replay(kind, &sizes, Some((at, bytes)));
            let (without, _) = replay(kind, &sizes, None);
            let link = sizes.iter().zip(&left).map(|(&t, &left)| LinkTransfer { sent: t - left, left, total: t });
            let link: Vec<LinkTransfer> = link.collect();
            let c = cost(which, LinkTransfer { sent: 0, left: bytes, total: bytes }, &link);
            let time = |b: u128| b as u64 / UNIT * MICRO;
            prop_assert_eq!(with[sizes.len()] - at, time(c.own));
            let later: u64 = without.iter().zip(&with).map(|(a, b)| b - a).sum();
            prop_assert_eq!(later, time(c.others));
        }

        /// Least sent first against a fluid; least left first is smallest coflow first where each
        /// is its own.
        #[test]
        fn the_other_rows_are_replays_too(link in prop::collection::vec((0u64..50, 1u64..50), 1..6), s in 1u64..60) {
            let link: Vec<LinkTransfer> = link.into_iter().map(|(sent, left)| LinkTransfer { sent, left, total: left }).collect();
            let new = LinkTransfer { sent: 0, left: s, total: s };
            let (with, without) = (las(&link, Some(s)), las(&link, None));
            let c = cost(Predict::Las, new, &link);
            prop_assert!((with[link.len()] - c.own as f64).abs() < 1e-6, "{} {:?}", with[link.len()], c);
            let later: f64 = without.iter().zip(&with).map(|(a, b)| b - a).sum();
            prop_assert!((later - c.others as f64).abs() < 1e-6, "{} {:?}", later, c);
            prop_assert_eq!(cost(Predict::Srpt, new, &link), cost(Predict::Tcf, new, &link));
        }
    }
}
