//! A queue for every destination rack at a ToR's port to the EPS, as the ports of an emulation have.
//!
//! A port with one queue shares its rate among flows. A port with a queue for every destination rack serves these queues in turn: each
//! has the same part of the rate, and what one does not need goes to the others; only within a queue do flows have equal rates. So each
//! queue is a link of its own, which its flows cross, and what these links carry follows from what the flows can use.
//!
//! That is found in rounds. In each, flows are filled max-min fairly over all links; then the queues of a port share its rate max-min
//! fairly, of which each wants what its flows use, or as much as it can get if it holds flows back. A queue that holds none back may still
//! grow to the level of the others, for it may get more when flows elsewhere get less. Rounds end when no level changes by more than a
//! thousandth. Then no port is above its rate: what is too much by that thousandth is taken back.
//!
//! Source: the hierarchical scheduling of `tor_eps_port` (HTB classes of one priority and equal assured rates, served by deficit round
//! robin: Shreedhar and Varghese, SIGCOMM 1995).

use super::maxmin::{Changes, MaxMin};

/// The most rounds of one refilling.
const ROUNDS: usize = 64;

/// After these rounds levels go half of the way only: ports whose flows meet elsewhere may otherwise outdo each other in turn for ever.
const DIRECT: usize = 6;

/// The queues of all ports.
#[derive(Debug)]
pub struct Queues {
    /// Number of ports, and of queues of each.
    racks: usize,
    /// The link of the first port, and the link of its first queue.
    ports: u32,
    first: u32,
}

impl Queues {
    /// Queues whose links begin at `first`: those of the first rack's port, the link `ports`, to every rack, then those of the next one.
    pub fn new(racks: usize, ports: u32, first: u32) -> Self {
        Self { racks, ports, first }
    }

    /// Brings the rates up to date, and says what changed. The result depends on the flows there are, and not on how they came about.
    /// O([`ROUNDS`] x (a filling of all links + racks^2 log racks)): 1 to 6 rounds on up to 16 racks, 5.7 on average on 64 busy ones.
    pub fn refill(&self, shares: &mut MaxMin, capacity: &[u64]) -> Changes {
        let busy: Vec<(u64, Vec<u32>)> = (0..self.racks as u32)
            .map(|a| {
                let queues = self.first + a * self.racks as u32..self.first + (a + 1) * self.racks as u32;
                (capacity[(self.ports + a) as usize], queues.filter(|&q| shares.flows(q) > 0).collect::<Vec<_>>())
            })
            .filter(|(_, queues)| !queues.is_empty())
            .collect();
        let mut levels: Vec<u64> = busy.iter().map(|(rate, queues)| rate / queues.len() as u64).collect();
        for round in 0..ROUNDS {
            for ((_, queues), &level) in busy.iter().zip(&levels) {
                queues.iter().for_each(|&q| shares.resize(q, level));
            }
            shares.fill();
            let mut settled = true;
            for ((rate, queues), level) in busy.iter().zip(&mut levels) {
                let wants = queues.iter().map(|&q| if shares.holds(q) { u64::MAX } else { shares.used(q) }).collect();
                let now = water_level(*rate, wants).unwrap_or(*level);
                settled &= now.abs_diff(*level) <= *level / 1000;
                *level = if round < DIRECT { now } else { level.midpoint(now) };
            }
            if settled {
                break;
            }
        }
        // All is read before the first change, which undoes a filling.
        let used: Vec<Vec<u64>> = busy.iter().map(|(_, queues)| queues.iter().map(|&q| shares.used(q)).collect()).collect();
        if busy.iter().zip(&used).any(|((rate, _), used)| used.iter().sum::<u64>() > *rate) {
            for ((rate, queues), used) in busy.iter().zip(used) {
                let level = water_level(*rate, used.clone()).unwrap_or(u64::MAX);
                queues.iter().zip(used).for_each(|(&q, used)| shares.resize(q, used.min(level)));
            }
            shares.fill();
        }
        shares.changes()
    }
}

/// The most that a port of this rate gives to any queue, in bits per second, if its queues want `wants` and have the same part each; none
/// if all get what they want. O(n log n).
fn water_level(rate: u64, mut wants: Vec<u64>) -> Option<u64> {
    wants.sort_unstable();
    let mut left = rate;
    for (k, &want) in wants.iter().enumerate() {
        let share = left / (wants.len() - k) as u64;
        if want > share {
            return Some(share);
        }
        left -= want;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::coflows::network::{Network, NetworkKind};
    use crate::coflows::rates::Path;
    use crate::coflows::{CoflowSpec, FlowSpec};
    use crate::fabric::sim::faults::{Broken, Which};
    use crate::fabric::sim::{Settings, SimFabric};
    use crate::ids::{CoflowId, HostId, RackId};
    use crate::topology::{Framing, PortQueues, Topology};
    use crate::units::{BitRate, Bytes, Time};
    use proptest::prelude::*;

    /// Hosts of each rack.
    const HOSTS: u32 = 2;

    /// Racks of two hosts: all interfaces up, all down, the racks' links from the EPS, their ports to it, and their queues.
    struct Net {
        racks: u32,
        capacity: Vec<u64>,
        queues: Queues,
        shares: MaxMin,
        /// From, to, number of flows.
        users: Vec<(u32, u32, u32)>,
    }

    impl Net {
        /// Interfaces of these rates, `down` to each rack and `up` from each.
        fn new(nics: &[u64], down: &[u64], up: &[u64]) -> Self {
            let racks = up.len() as u32;
            let hosts = racks * HOSTS;
            let queues = up.iter().flat_map(|&c| std::iter::repeat_n(c, up.len()));
            let capacity: Vec<u64> = nics.iter().chain(nics).chain(down).chain(up).copied().chain(queues).collect();
            let first = 2 * hosts + 2 * racks;
            let queues = Queues::new(up.len(), 2 * hosts + racks, first);
            Self { racks, shares: MaxMin::new(capacity.clone()), capacity, queues, users: Vec::new() }
        }

        fn queue(&self, a: u32, b: u32) -> u32 {
            let hosts = self.racks * HOSTS;
            2 * hosts + 2 * self.racks + a / HOSTS * self.racks + b / HOSTS
        }

        fn path(&self, a: u32, b: u32) -> Path {
            let hosts = self.racks * HOSTS;
            let far = a / HOSTS != b / HOSTS;
            let links = [a, hosts + b, 2 * hosts + b / HOSTS, self.queue(a, b)];
            Path::new(&links[..if far { 4 } else { 2 }])
        }

        /// User `k` is these flows now.
        fn set(&mut self, k: usize, user: (u32, u32, u32)) {
            self.users.resize(self.users.len().max(k + 1), (0, 1, 0));
            self.users[k] = user;
            let path = self.path(user.0, user.1);
            self.shares.set(k as u32, path, user.2);
        }

        fn rates(&mut self) -> Vec<u64> {
            self.queues.refill(&mut self.shares, &self.capacity);
            (0..self.users.len() as u32).map(|k| self.shares.rate(k)).collect()
        }

        /// Every flow is held back by a link that is full, on which no flow is faster; or by its queue, where that has as much as any queue
        /// of its port, which is full. All but for a hundredth.
        fn holds(&mut self) -> Result<(), TestCaseError> {
            let rates = self.rates();
            let ports = 2 * self.racks * HOSTS + self.racks;
            let nearly = |a: u64, b: u64| a + b / 100 + 64 >= b;
            // By link: number and rate of the flows of every user.
            let on = |l: u32| -> Vec<(u64, u64)> {
                let all = self.users.iter().zip(&rates).filter(|(u, _)| u.2 > 0 && self.path(u.0, u.1).links().contains(&l));
                all.map(|(u, &rate)| (u.2.into(), rate)).collect()
            };
            let used = |l: u32| on(l).iter().map(|(flows, rate)| flows * rate).sum::<u64>();
            for l in 0..ports {
                prop_assert!(used(l) <= self.capacity[l as usize], "link {} carries {}", l, used(l));
            }
            let of_port = |a: u32| (0..self.racks).map(|b| self.queue(a * HOSTS, b * HOSTS)).collect::<Vec<_>>().into_iter();
            for a in 0..self.racks {
                let all: u64 = of_port(a).map(&used).sum();
                prop_assert!(all <= self.capacity[(ports + a) as usize], "port {} carries {}", a, all);
            }
            for (&(from, to, flows), &rate) in self.users.iter().zip(&rates).filter(|u| u.0.2 > 0) {
                let fastest = |l: u32| on(l).iter().map(|f| f.1).max().unwrap_or(0);
                let holds = |l: u32| {
                    let full = if l < ports {
                        nearly(used(l), self.capacity[l as usize])
                    } else {
                        let a = from / HOSTS;
                        let all: u64 = of_port(a).map(&used).sum();
                        let most = of_port(a).map(&used).max().unwrap_or(0);
                        nearly(all, self.capacity[(ports + a) as usize]) && nearly(used(l), most)
                    };
                    full && nearly(rate, fastest(l))
                };
                let by = self.path(from, to).links().iter().any(|&l| holds(l));
                prop_assert!(by, "nothing holds back {} flows from {} to {} of {}: {:?} {:?}", flows, from, to, rate, self.users, rates);
            }
            Ok(())
        }
    }

    #[test]
    fn racks_have_the_same_share_and_their_flows_share_that() {
        let mut net = Net::new(&[10_000; 6], &[10_000; 3], &[900; 3]);
        net.set(0, (0, 2, 1));
        net.set(1, (0, 4, 9));
        assert_eq!(net.rates(), [450, 50], "one flow to a rack of its own has as much as nine to another one");
        net.set(2, (1, 3, 2));
        assert_eq!(net.rates(), [150, 50, 150], "from whichever host of the rack");
        net.set(0, (0, 2, 0));
        net.set(2, (1, 3, 0));
        assert_eq!(net.rates(), [0, 100, 0], "a queue that is alone has all");
    }

    #[test]
    fn what_a_queue_does_not_need_goes_to_the_others() {
        // The second rack's link from the EPS carries 200.
        let mut net = Net::new(&[10_000; 6], &[10_000, 200, 10_000], &[900; 3]);
        net.set(0, (0, 2, 4));
        net.set(1, (0, 4, 1));
        assert_eq!(net.rates(), [50, 700]);
        // Another rack's flow takes half of that, as one of eight equals does.
        net.set(2, (5, 3, 4));
        assert_eq!(net.rates(), [25, 800, 25]);
    }

    #[test]
    fn a_simulation_has_the_queues_that_its_topology_says_and_their_port_may_break() {
        let ends = |queues, kind, percent| {
            let mut t = Topology::uniform("t", 3, 2, BitRate(10_000_000), BitRate(800_000), vec![]);
            (t.framing, t.eps.queues) = (Framing::None, queues);
            let network = Network { kind, ..Network::default() };
            let settings = Settings { circuits: false, network, may_fail: true, ..Settings::default() };
            let mut f = SimFabric::new(Arc::new(t), settings);
            let flow = |to, k: u32| FlowSpec { from: HostId(k % 2), to: HostId(to), bytes: Bytes(1000) };
            let flows = std::iter::once(flow(2, 0)).chain((0..3).map(|k| flow(4, k))).collect();
            f.strike(&Broken::Links { which: Which::Uplink(RackId(0)), percent }, true, Time(0));
            f.add_flows(&CoflowSpec::new(CoflowId(0), "c", Time(0), flows), &[false; 4], Time(0));
            let done = f.advance(Time(1_000_000_000_000));
            let at = |k: u32| done.iter().find(|d| d.flow.0 == k).expect("it ends").at.0 / 1_000_000;
            [at(0), at(1)]
        };
        use NetworkKind::{Fifo, MaxMin};
        // 8000 bits at half of 800 kb/s. The three others have a sixth of it each for 20 ms, then a third.
        assert_eq!(ends(PortQueues::Racks, MaxMin, 100), [20, 40]);
        assert_eq!(ends(PortQueues::One, MaxMin, 100), [40, 40]);
        assert_eq!(ends(PortQueues::Racks, MaxMin, 50), [40, 80]);
        assert_eq!(ends(PortQueues::Racks, Fifo, 100), ends(PortQueues::One, Fifo, 100), "an order of coflows has no queues");
    }

    #[test]
    fn a_level_is_that_of_equal_parts_of_what_the_small_leave() {
        assert_eq!(water_level(90, vec![10, u64::MAX, 20]), Some(60));
        assert_eq!(water_level(90, vec![50, 50, 20]), Some(35));
        assert_eq!((water_level(90, vec![30, 30, 30]), water_level(90, vec![])), (None, None));
        assert_eq!(water_level(91, vec![50, 50, 50]), Some(30));
    }

    proptest! {
        #[test]
        fn every_flow_is_held_back_by_what_it_shares_fairly(
            nics in prop::collection::vec(100_000u64..1_000_000, 6),
            down in prop::collection::vec(50_000u64..1_000_000, 3),
            up in prop::collection::vec(50_000u64..1_000_000, 3),
            steps in prop::collection::vec((0usize..10, (0u32..6, 0u32..6, 0u32..6), any::<bool>()), 1..30),
        ) {
            let mut net = Net::new(&nics, &down, &up);
            for (k, user, look) in steps {
                net.set(k, user);
                if look {
                    net.holds()?;
                }
            }
            net.holds()?;
            // The same flows at once are the same.
            let mut fresh = Net::new(&nics, &down, &up);
            net.users.iter().enumerate().for_each(|(k, &u)| fresh.set(k, u));
            prop_assert_eq!(fresh.rates(), net.rates());
        }
    }
}
