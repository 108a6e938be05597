//! How long the network of a host will be busy, and whether racks count as local.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::HostId;
use crate::placement::policy::View;
use crate::topology::Topology;
use crate::units::{BitRate, Bytes, Span};

/// Whether what comes from the same rack is as good as local.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RackLocal {
    /// Where the network between racks carries less than their hosts.
    #[default]
    Auto,
    /// Yes.
    Always,
    /// No.
    Never,
}

impl RackLocal {
    /// For a network. O(switches + cables).
    pub fn holds(self, t: &Topology) -> bool {
        match self {
            Self::Auto => is_oversubscribed(t),
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// Whether the network between racks carries less than their hosts can send: narrow uplinks, pods, a core with a limit, or a graph whose
/// access switches have less to the switches above them than to the racks. Section 4.
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
    t.eps.oversubscription_percent > 100 || limited || t.eps.graph().is_some_and(|g| !one_switch(g) && narrow(g))
}

/// How long the tasks on a host have still to receive, at the rate at which the host has received of late: the paper's
/// `dataTransferTime`. O(1).
pub fn transfer_time(view: &dyn View, host: HostId) -> Span {
    time_of(view.inputs_left(host), view.receive_rate(host))
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
        assert!(with(Core::Pods(Pods { racks: 2, uplink: g }, None)) && with(Core::Flat(Some(g))) && !with(Core::Flat(None)));
        // Leaves of one rack each and two spines: twice up what comes from below; with links of a third, less.
        let spines = |rate| Core::Graph(Box::new(Graph::leaf_spine(4, 2, rate, None)));
        assert!(!with(spines(g)) && with(spines(BitRate::mbit(333))));
    }
}
