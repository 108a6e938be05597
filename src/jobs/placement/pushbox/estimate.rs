//! How long the network of a host will be busy, and whether racks count as local.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::ids::{HostId, JobId};
use crate::placement::network::TaskInput;
use crate::placement::policy::View;
use crate::topology::Topology;
use crate::units::{BitRate, Bytes, Span};
use crate::workload::draws::{ONE, log2_fixed, times_power};

/// Whether what comes from the same rack is as good as local.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RackLocal {
    /// Where the network between racks carries less than their hosts, as in section 4 of the paper.
    Auto,
    /// Yes.
    Always,
    /// No.
    Never,
}

impl RackLocal {
    /// Whether it holds for a network. O(switches + cables).
    pub fn holds(self, t: &Topology) -> bool {
        match self {
            Self::Auto => is_oversubscribed(t),
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// Whether the network between racks carries less than their hosts can send. Causes are narrow
/// uplinks, pods, a core with a limit, or a graph whose access switches have less to the switches
/// above them than to the racks. Section 4.
fn is_oversubscribed(t: &Topology) -> bool {
    let narrow = |g: &crate::topology::graph::Graph| {
        let mut room = vec![(0u64, 0u64); g.switches.len()];
        for c in &g.cables {
            [c.ends.0, c.ends.1].into_iter().for_each(|s| room[s as usize].0 += c.rate.0);
        }
        g.racks.iter().zip(&t.racks).for_each(|(&s, r)| room[s as usize].1 += r.uplink.0);
        room.iter().any(|&(up, down)| down > up)
    };
    let one_switch = |g: &crate::topology::graph::Graph| g.switches.len() == 1;
    let limited = t.eps.pods().is_some() || t.eps.core_rate().is_some();
    t.eps.oversubscription_percent > 100
        || limited
        || t.eps.graph().is_some_and(|g| !one_switch(g) && narrow(g))
}

/// Errors of foresight: what a task receives is taken to be f^(2u - 1) times as much as it is, u
/// drawn evenly from 0 to 1 for each task. Section 7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misjudged {
    /// f; 1 is no error.
    pub factor: u32,
    /// What is drawn depends on it and the task only.
    pub seed: u64,
}

impl Misjudged {
    /// What is taken for the bytes of a task.
    pub fn bytes(self, (job, stage, task): (JobId, usize, u32), bytes: Bytes) -> Bytes {
        if self.factor <= 1 {
            return bytes;
        }
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(u64::from(job.0) << 32 | (stage as u64) << 24 | u64::from(task));
        Bytes(times_power(bytes.0, self.power(rng.random_range(-ONE..=ONE))))
    }

    /// The power of two that is f to a power, both with 32 fractional bits.
    fn power(self, of: i64) -> i64 {
        ((i128::from(log2_fixed(self.factor.into())) * i128::from(of)) >> 32) as i64
    }
}

/// The tasks on a host that have input to come. Those that hold slots while nothing is on its way
/// to them and tasks before them wait for slots (`reduces: ramp-up`) do not count: they would keep
/// the tasks out for which they wait. O(tasks that receive there).
pub fn counting(view: &dyn View, host: HostId) -> impl Iterator<Item = TaskInput> {
    view.inputs(host).filter(|i| i.is_coming || !view.is_ahead(i.job, i.stage))
}

/// How long the tasks on a host have still to receive, at the rate at which the host has received
/// of late: the paper's `dataTransferTime`. O(inputs on the host).
pub fn transfer_time(view: &dyn View, host: HostId, wrong: Misjudged) -> Span {
    let judged = |i: TaskInput| wrong.bytes((i.job, i.stage, i.task), i.left);
    let left = counting(view, host).fold(Bytes::ZERO, |sum, i| sum.saturating_add(judged(i)));
    time_of(left, view.receive_rate(host))
}

/// How long bytes take at a rate, rounded up.
fn time_of(bytes: Bytes, rate: BitRate) -> Span {
    let ns = (u128::from(bytes.0) * 8_000_000_000).div_ceil(u128::from(rate.0.max(1)));
    Span(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::graph::Graph;
    use crate::topology::{Core, Pods};

    #[test]
    fn bytes_take_their_time_rounded_up() {
        assert_eq!(time_of(Bytes(125), BitRate(1000)), Span::secs(1));
        assert_eq!(time_of(Bytes(1), BitRate(3)), Span(2_666_666_667));
        assert_eq!(time_of(Bytes(0), BitRate(0)), Span::ZERO);
    }

    #[test]
    fn errors_are_factors_between_f_and_its_inverse_and_their_own_for_each_task() {
        let wrong = Misjudged { factor: 4, seed: 7 };
        let whole = 1_000_000_000u64;
        let at = |of| times_power(whole, wrong.power(of));
        // 4 to the powers of -1, -1/2, 0, 1/2 and 1, but for the last digit of a power that is cut
        // off.
        let exact = [whole / 4, whole / 2, whole, whole * 2, whole * 4];
        for (of, exact) in [-ONE, -ONE / 2, 0, ONE / 2, ONE].into_iter().zip(exact) {
            assert!(at(of).abs_diff(exact) <= 1, "{of}: {} for {exact}", at(of));
        }
        let drawn: Vec<u64> =
            (0..400).map(|k| wrong.bytes((JobId(1), 1, k), Bytes(whole)).0).collect();
        assert_eq!(
            drawn[3],
            wrong.bytes((JobId(1), 1, 3), Bytes(whole)).0,
            "a task's error is drawn once"
        );
        assert!(drawn.iter().all(|b| (whole / 4 - 1..=whole * 4).contains(b)));
        let less = drawn.iter().filter(|&&b| b < whole).count();
        assert!((150..=250).contains(&less), "half of them are taken for less: {less} of 400");
        assert_eq!(Misjudged { factor: 1, seed: 7 }.bytes((JobId(1), 1, 3), Bytes(9)), Bytes(9));
    }

    #[test]
    fn racks_count_as_local_where_the_network_between_them_is_narrow() {
        let g = BitRate::mbit(1000);
        let wide = |hosts| Topology::uniform("t", 4, hosts, g, g, vec![]);
        assert!(!RackLocal::Auto.holds(&wide(1)) && RackLocal::Auto.holds(&wide(2)));
        assert!(RackLocal::Always.holds(&wide(1)) && !RackLocal::Never.holds(&wide(2)));
        let with = |core| {
            let mut t = wide(1);
            t.eps.core = core;
            RackLocal::Auto.holds(&t)
        };
        assert!(
            with(Core::Pods(Pods { racks: 2, uplink: g }, None))
                && with(Core::Flat(Some(g)))
                && !with(Core::Flat(None))
        );
        // Leaves of one rack each and two spines: twice up what comes from below; with links of a
        // third, less.
        let spines = |rate| Core::Graph(Box::new(Graph::leaf_spine(4, 2, rate, None)));
        assert!(!with(spines(g)) && with(spines(BitRate::mbit(333))));
    }
}
