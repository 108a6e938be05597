//! Queues shared fairly: examples, laws on drawn networks, and the slow twin on all small ones.

use std::sync::Arc;

use proptest::prelude::*;

use super::{QueueSolver, Queues, TOLERANCE, twin, water_level};
use crate::coflows::network::{Network, NetworkKind};
use crate::coflows::rates::Path;
use crate::coflows::{CoflowSpec, FlowSpec};
use crate::faults::{BrokenPart, Which};
use crate::ids::{CoflowId, HostId, RackId};
use crate::topology::{Framing, PortQueues, Topology};
use crate::units::{BitRate, Bytes, Time};
use crate::{SimFabric, SimSettings};

/// Hosts of each rack.
const HOSTS: u32 = 2;
/// A millionth of a full link may be left, or a bit.
const FINE: u32 = 20;

/// A number of flows from a host to a host.
type HostFlows = (u32, u32, u32);

/// Racks of two hosts: all interfaces up, all down, the racks' ports to the EPS, the EPS's ports to
/// them, and the queues of both.
struct SmallNetwork {
    racks: u32,
    capacity: Vec<u64>,
    queues: Queues,
    shares: QueueSolver,
    users: Vec<HostFlows>,
}

impl SmallNetwork {
    /// Interfaces of these rates, `down` to each rack and `up` from each. A full link may leave one
    /// part of two to the power of `exact`.
    fn new(nics: &[u64], down: &[u64], up: &[u64], exact: u32) -> Self {
        let racks = up.len() as u32;
        let hosts = racks * HOSTS;
        let of_queues = up.iter().chain(down).flat_map(|&c| std::iter::repeat_n(c, up.len()));
        let capacity: Vec<u64> =
            nics.iter().chain(nics).chain(up).chain(down).copied().chain(of_queues).collect();
        let queues = Queues::new(up.len(), 2 * hosts, 2 * hosts + 2 * racks);
        Self {
            racks,
            shares: QueueSolver::within(&capacity, queues, exact),
            capacity,
            queues,
            users: Vec::new(),
        }
    }

    fn path(&self, a: u32, b: u32) -> Path {
        let hosts = self.racks * HOSTS;
        let (from, to) = (a / HOSTS, b / HOSTS);
        let queue = |port: u32, rack| 2 * hosts + 2 * self.racks + port * self.racks + rack;
        let links = [a, hosts + b, queue(from, to), queue(self.racks + to, from)];
        Path::new(&links[..if from == to { 2 } else { 4 }])
    }

    /// Sets user `k` to these flows.
    fn set(&mut self, k: usize, user: HostFlows) {
        self.users.resize(self.users.len().max(k + 1), (0, 1, 0));
        self.users[k] = user;
        let path = self.path(user.0, user.1);
        self.shares.set(k as u32, path, user.2);
    }

    fn rates(&mut self) -> Vec<u64> {
        self.shares.refill();
        (0..self.users.len() as u32).map(|k| self.shares.rate(k)).collect()
    }

    fn twin(&self, start: twin::RoundStart) -> Option<Vec<u64>> {
        let users: Vec<_> = self.users.iter().map(|u| (self.path(u.0, u.1), u.2)).collect();
        twin::rates(&self.capacity, self.queues, &users, start)
    }

    /// Every flow is limited by a full link on which no flow is faster, or by its queue, if that
    /// has as much as any queue of its port and the port is full. All within one part of two to the
    /// power of `exact`, and a bit a flow.
    fn holds(&mut self, exact: u32) -> Result<(), TestCaseError> {
        let rates = self.rates();
        let ports = 2 * self.racks * HOSTS;
        let queues = ports + 2 * self.racks;
        // By link: the rates of its flows, and the fastest of them.
        let mut used = vec![0; self.capacity.len()];
        let mut fastest = used.clone();
        let mut rounding = 2 * u64::from(self.racks) + 2;
        for (u, &rate) in self.users.iter().zip(&rates).filter(|(u, _)| u.2 > 0) {
            rounding += u64::from(u.2);
            for &l in self.path(u.0, u.1).links() {
                used[l as usize] += u64::from(u.2) * rate;
                fastest[l as usize] = rate.max(fastest[l as usize]);
                if l >= queues {
                    used[(ports + (l - queues) / self.racks) as usize] += u64::from(u.2) * rate;
                }
            }
        }
        let nearly = |a: u64, b: u64| a + (b >> exact) + rounding >= b;
        for (l, (used, capacity)) in
            used.iter().zip(&self.capacity).enumerate().take(queues as usize)
        {
            prop_assert!(used <= capacity, "link {} carries {} of {}", l, used, capacity);
        }
        for (k, (&(from, to, flows), &rate)) in
            self.users.iter().zip(&rates).enumerate().filter(|(_, u)| u.0.2 > 0)
        {
            let holds = |l: u32| {
                let full = if l < queues {
                    nearly(used[l as usize], self.capacity[l as usize])
                } else {
                    let a = (l - queues) / self.racks;
                    let port = (ports + a) as usize;
                    let most = (0..self.racks)
                        .map(|b| used[(queues + a * self.racks + b) as usize])
                        .max()
                        .unwrap_or(0);
                    nearly(used[port], self.capacity[port]) && nearly(used[l as usize], most)
                };
                full && rate == fastest[l as usize]
            };
            let by = self.shares.bottleneck(k as u32).expect("a flow has a bottleneck");
            prop_assert!(
                self.path(from, to).links().contains(&by) && holds(by),
                "{} does not hold back {} flows from {} to {} of {}: {:?} {:?}",
                by,
                flows,
                from,
                to,
                rate,
                self.users,
                rates
            );
            prop_assert_eq!(self.shares.level(by), rate);
        }
        Ok(())
    }
}

#[test]
fn racks_have_the_same_share_and_their_flows_share_that() {
    let mut net = SmallNetwork::new(&[10_000; 6], &[10_000; 3], &[900; 3], FINE);
    net.set(0, (0, 2, 1));
    net.set(1, (0, 4, 9));
    assert_eq!(
        net.rates(),
        [450, 50],
        "one flow to a rack of its own has as much as nine to another one"
    );
    net.set(2, (1, 3, 2));
    assert_eq!(net.rates(), [150, 50, 150], "from whichever host of the rack");
    net.set(0, (0, 2, 0));
    net.set(2, (1, 3, 0));
    assert_eq!(net.rates(), [0, 100, 0], "a queue that is alone has all");
}

#[test]
fn what_a_queue_does_not_need_goes_to_the_others() {
    // The second rack's link from the EPS carries 200.
    let mut net = SmallNetwork::new(&[10_000; 6], &[10_000, 200, 10_000], &[900; 3], FINE);
    net.set(0, (0, 2, 4));
    net.set(1, (0, 4, 1));
    assert_eq!(net.rates(), [50, 700]);
    // Another rack's only flow takes half of that, which four others share.
    net.set(2, (5, 3, 1));
    assert_eq!(net.rates(), [25, 800, 100]);
}

#[test]
fn racks_that_send_to_one_rack_have_the_same_share_of_its_port() {
    let mut net = SmallNetwork::new(&[10_000; 8], &[900; 4], &[10_000; 4], FINE);
    net.set(0, (2, 0, 1));
    net.set(1, (4, 0, 5));
    net.set(2, (5, 1, 4));
    assert_eq!(
        net.rates(),
        [450, 50, 50],
        "one flow of a rack of its own has as much as nine of another one"
    );
    net.set(3, (6, 1, 3));
    assert_eq!(net.rates(), [300, 33, 33, 100]);
    net.set(0, (2, 0, 0));
    net.set(3, (6, 1, 0));
    assert_eq!(net.rates(), [0, 100, 100, 0], "a queue that is alone has all");
}

/// The example of [`super`], in which the two flows from rack 0 to host 4 may have 45 to 60
/// together.
fn worked_example() -> SmallNetwork {
    let mut net = SmallNetwork::new(
        &[9000, 9000, 9000, 9000, 90, 9000, 90, 9000],
        &[90_000; 4],
        &[90; 4],
        FINE,
    );
    net.users = vec![(0, 4, 2), (0, 6, 1), (2, 4, 1), (2, 6, 2)];
    net
}

#[test]
fn where_more_than_one_sharing_is_fair_the_twin_knows_the_least_and_the_most_and_history_decides() {
    let net = worked_example();
    let (low, high) = (net.twin(twin::RoundStart::Low), net.twin(twin::RoundStart::High));
    assert_eq!((low, high), (Some(vec![22, 45, 45, 22]), Some(vec![30, 30, 30, 30])));
    let after = |order: [usize; 4]| {
        let mut net = worked_example();
        let users = std::mem::take(&mut net.users);
        for k in order {
            net.set(k, users[k]);
            net.rates();
        }
        net.holds(FINE).expect("it is fair");
        net.rates()
    };
    let each = [after([0, 1, 2, 3]), after([0, 3, 1, 2]), after([1, 2, 0, 3])];
    assert_eq!(
        each,
        [after([0, 1, 2, 3]), after([0, 3, 1, 2]), after([1, 2, 0, 3])],
        "the same calls give the same"
    );
    assert!(
        each.iter().all(|r| (22..=30).contains(&r[0]) && (30..=46).contains(&r[1])),
        "{each:?}"
    );
}

#[test]
fn all_small_networks_are_shared_as_the_twin_shares_them_where_that_is_the_only_way() {
    // From two racks to hosts of two others, 0 to 2 flows a pair, interfaces down and ports of 60
    // or 90.
    let (mut all, mut unique) = (0, 0);
    let rate = |bit: u32, of: u32| if of >> bit & 1 == 1 { 90_000_000 } else { 60_000_000 };
    for (rates, counts) in (0..16u32).flat_map(|r| (0..81u32).map(move |c| (r, c))) {
        let wide = 1_000_000_000;
        let nics = [wide, wide, wide, wide, rate(0, rates), wide, rate(1, rates), wide];
        let mut net = SmallNetwork::new(
            &nics,
            &[wide; 4],
            &[rate(2, rates), rate(3, rates), wide, wide],
            FINE,
        );
        for (k, (from, to)) in [(0, 4), (0, 6), (2, 4), (2, 6)].into_iter().enumerate() {
            net.set(k, (from, to, counts / 3u32.pow(k as u32) % 3));
        }
        net.holds(FINE).unwrap_or_else(|e| panic!("{e}"));
        let (low, high) = (
            net.twin(twin::RoundStart::Low).expect("at rest"),
            net.twin(twin::RoundStart::High).expect("at rest"),
        );
        let near = |a: &[u64], b: &[u64]| a.iter().zip(b).all(|(a, b)| a.abs_diff(*b) <= 100);
        all += 1;
        if near(&low, &high) {
            unique += 1;
            let got = net.rates();
            assert!(near(&got, &low), "{:?}: {got:?} for {low:?}", net.users);
        }
    }
    assert!(
        all == 1296 && unique > 1200 && unique < all,
        "{unique} of {all} networks have one fair sharing"
    );
}

#[test]
fn a_simulation_has_the_queues_that_its_topology_says_and_their_port_may_break() {
    let ends = |queues, kind, percent| {
        let mut t = Topology::uniform("t", 3, 2, BitRate(10_000_000), BitRate(800_000), vec![]);
        (t.framing, t.eps.queues) = (Framing::None, queues);
        let network = Network { kind, ..Network::default() };
        let settings =
            SimSettings { circuits: false, network, may_fail: true, ..SimSettings::default() };
        let mut f = SimFabric::new(Arc::new(t), settings);
        let flow =
            |to, k: u32| FlowSpec { from: HostId(k % 2), to: HostId(to), bytes: Bytes(1000) };
        let flows = std::iter::once(flow(2, 0)).chain((0..3).map(|k| flow(4, k))).collect();
        f.strike(&BrokenPart::Links { which: Which::Uplink(RackId(0)), percent }, true, Time(0));
        f.add_flows(&CoflowSpec::new(CoflowId(0), "c", Time(0), flows), &[false; 4], Time(0));
        let done = f.advance(Time(1_000_000_000_000));
        let at = |k: u32| done.iter().find(|d| d.flow.0 == k).expect("it ends").at.0 / 1_000_000;
        [at(0), at(1)]
    };
    use NetworkKind::{Fifo, MaxMin};
    // 8000 bits at half of 800 kb/s. The three others have a sixth of it each for 20 ms, then a
    // third.
    assert_eq!(ends(PortQueues::Racks, MaxMin, 100), [20, 40]);
    assert_eq!(ends(PortQueues::One, MaxMin, 100), [40, 40]);
    assert_eq!(ends(PortQueues::Racks, MaxMin, 50), [40, 80]);
    assert_eq!(
        ends(PortQueues::Racks, Fifo, 100),
        ends(PortQueues::One, Fifo, 100),
        "an order of coflows has no queues"
    );
}

#[test]
fn a_level_is_that_of_equal_parts_of_what_the_small_leave() {
    let level =
        |rate, wants: &[u64]| water_level(rate, &mut wants.iter().map(|&w| (w, 1)).collect());
    assert_eq!(level(90, &[10, u64::MAX, 20]), Some(60));
    assert_eq!(level(90, &[50, 50, 20]), Some(35));
    assert_eq!((level(90, &[30, 30, 30]), level(90, &[])), (None, None));
    assert_eq!(level(91, &[50, 50, 50]), Some(30));
    assert_eq!(water_level(100, &mut vec![(30, 2), (10, 4)]), None);
    assert_eq!(water_level(99, &mut vec![(30, 2), (10, 4)]), Some(29));
}

fn rates_of(n: usize) -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(
        prop_oneof![1 => Just(300_000_000u64), 3 => 50_000_000u64..1_000_000_000],
        n,
    )
}

fn steps(hosts: u32) -> impl Strategy<Value = Vec<(usize, HostFlows, u8)>> {
    prop::collection::vec((0usize..24, (0..hosts, 0..hosts, 0u32..6), 0u8..20), 1..80)
}

proptest! {
    #![proptest_config(crate::testing::drawn(512))]

    /// Flows arrive, end and change, rates are shared again after some of these, and links change
    /// their capacities. Where links on a cycle need many steps to agree, one may leave more.
    #[test]
    fn every_flow_is_held_back_by_what_it_shares_fairly(
        (nics, down, up) in (rates_of(10), rates_of(5), rates_of(5)),
        steps in steps(10),
    ) {
        let mut net = SmallNetwork::new(&nics, &down, &up, TOLERANCE);
        for (k, user, what) in steps {
            net.set(k, user);
            match what {
                0 => {
                    net.capacity.iter_mut().for_each(|c| *c = *c / 2 + 25_000_000);
                    let capacity = net.capacity.clone();
                    net.shares.limit(&capacity);
                    net.holds(TOLERANCE - 5)?;
                }
                1..10 => net.holds(TOLERANCE - 5)?,
                _ => {}
            }
        }
        net.holds(TOLERANCE - 5)?;
    }

    /// With wide interfaces, pairs of racks are like single flows. With wide ports to the racks and
    /// one sending rack, queues depend on nothing else.
    #[test]
    fn what_can_be_shared_in_one_way_only_is_shared_as_the_twin_does(
        (down, up) in (rates_of(5), rates_of(5)),
        steps in steps(10),
        nics in rates_of(10),
        one in any::<bool>(),
    ) {
        let mut wide = vec![100_000_000_000; 10];
        let mut net = if one {
            wide[HOSTS as usize..].copy_from_slice(&nics[HOSTS as usize..]);
            SmallNetwork::new(&wide, &[100_000_000_000; 5], &up, FINE)
        } else {
            SmallNetwork::new(&wide, &down, &up, FINE)
        };
        for (k, (from, to, flows), what) in steps {
            net.set(k, if one { (from % HOSTS, to.max(HOSTS), flows) } else { (from, to, flows) });
            if what < 5 {
                net.rates();
            }
        }
        let (got, want) = (net.rates(), net.twin(twin::RoundStart::Low).expect("it comes to rest"));
        for (got, want) in got.iter().zip(&want) {
            prop_assert!(got.abs_diff(*want) <= 20_000 + (want >> 14), "{:?} for {:?}", got, want);
        }
    }
}
