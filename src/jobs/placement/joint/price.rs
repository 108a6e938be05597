//! The estimate: when a shuffle ends if its tasks go to these racks, and what it costs other
//! shuffles.

use crate::ids::RackId;
use crate::placement::decision::{Estimate, Limits, most};
use crate::topology::Topology;
use crate::topology::graph::Routes;
use crate::units::{BitRate, Bytes, Span, Time};

/// The network as an estimate sees it: racks with a port to the core and one to the circuits, each
/// way, and hosts with interfaces.
#[derive(Clone, Debug, Default)]
pub struct EstimatedNetwork {
    /// One circuit, and all that a rack can hold at once, payload; none: no circuits.
    circuit: BitRate,
    circuits: BitRate,
    /// Dark time before a circuit.
    dark: Span,
    /// Pairs below this never wait for a circuit.
    threshold: Bytes,
    /// By rack: its link to the core.
    core: Vec<BitRate>,
    /// By rack: the interface of one host.
    nic: Vec<BitRate>,
    /// Between racks, if a graph of switches joins them.
    ways: Option<DefaultWays>,
}

/// The default ways between racks through a graph of switches.
#[derive(Clone, Debug)]
struct DefaultWays {
    /// By part, which is a direction of a cable or a switch: what it carries.
    rates: Vec<BitRate>,
    /// By rack that sends, and rack that receives: how many switches lie between them, that of a
    /// rack alone none.
    switches: Vec<Vec<usize>>,
    /// By the same: the parts of limited rate that lie between them.
    parts: Vec<Vec<Vec<usize>>>,
}

impl DefaultWays {
    /// O(racks^2 x length x degree).
    fn new(t: &Topology) -> Option<Self> {
        let graph = t.eps.graph()?;
        let routes = Routes::new(graph);
        let racks = || t.racks.iter().map(|r| r.id);
        let cables = graph.cables.iter().flat_map(|c| [c.rate; 2]);
        let rates = cables.chain(graph.switches.iter().map(|s| s.rate.unwrap_or_default()));
        let rates: Vec<BitRate> = rates.map(|r| t.payload(r)).collect();
        let part = |switch: u32| 2 * graph.cables.len() + switch as usize;
        let parts = |a: RackId, b: RackId| -> Vec<usize> {
            let hops = routes.way(a, b);
            let first = (!hops.is_empty()).then(|| part(routes.switch_of(a)));
            let all = hops
                .iter()
                .flat_map(|h| [2 * h.cable as usize + usize::from(h.forward), part(h.to)]);
            first.into_iter().chain(all).filter(|&k| rates[k] > BitRate::ZERO).collect()
        };
        let parts = racks().map(|a| racks().map(|b| parts(a, b)).collect()).collect();
        let switches = |a, b| routes.between(a, b).unwrap_or(usize::MAX);
        let switches = racks().map(|a| racks().map(|b| switches(a, b)).collect()).collect();
        Some(Self { rates, switches, parts })
    }
}

impl EstimatedNetwork {
    /// Of a network; pairs below `threshold` take the core. O(hosts).
    pub fn new(t: &Topology, threshold: Bytes) -> Self {
        let share = |rate: BitRate| {
            BitRate(
                (u128::from(rate.0) * u128::from(100 - t.eps.background_percent.min(100)) / 100)
                    as u64,
            )
        };
        Self {
            circuit: t.payload(t.planes.iter().map(|p| p.rate).max().unwrap_or(BitRate::ZERO)),
            circuits: t.payload(t.ocs_rate()),
            dark: t.planes.iter().map(|p| p.delta).max().unwrap_or(Span::ZERO),
            threshold,
            core: t.racks.iter().map(|r| t.payload(share(r.uplink))).collect(),
            nic: t
                .racks
                .iter()
                .map(|r| {
                    t.payload(t.hosts_of(r.id).iter().map(|h| h.nic).min().unwrap_or(BitRate::ZERO))
                })
                .collect(),
            ways: DefaultWays::new(t),
        }
    }

    /// Whether a graph of switches joins the racks.
    pub fn has_ways(&self) -> bool {
        self.ways.is_some()
    }

    /// How many more switches bytes cross from a rack of a graph of switches to another than they
    /// do within a rack; elsewhere all racks are equally near.
    pub fn between(&self, a: usize, b: usize) -> usize {
        self.ways.as_ref().map_or(0, |w| w.switches[a][b])
    }

    /// The number of racks over which `maps` tasks go best that send `bytes` to `reduces` others,
    /// while `behind` shuffles wait: on few racks fewer bytes cross between racks, on many each
    /// rack's port to the core sends fewer. `slots` is what a rack has. O(racks).
    pub fn width(&self, maps: u32, reduces: u32, bytes: Bytes, slots: u64, behind: u64) -> usize {
        let racks = self.core.len() as u64;
        let price = |w: u64| {
            // Racks that receive; of those that do both, each keeps its part.
            let v = w.max(u64::from(reduces).div_ceil(slots.max(1))).min(reduces.into()).max(1);
            let part = |own: u64, other: u64| {
                let kept = if own <= other { bytes.0 / own / other } else { 0 };
                bytes.0 / own - kept
            };
            let time = |bytes: u64| u128::from(self.by_core(0, Bytes(bytes)).0);
            let crossing = bytes.0 - bytes.0 / w.max(v);
            time(part(w, v).max(part(v, w)))
                + time(crossing) * u128::from(behind) / self.ports() as u128
        };
        (1..=racks.min(maps.into())).min_by_key(|&w| price(w)).map_or(1, |w| w as usize)
    }

    /// Cables and switches of the graph, each direction of a cable; without a graph, the racks'
    /// ports to the core. One at least.
    fn ports(&self) -> usize {
        self.ways.as_ref().map_or(2 * self.core.len(), |w| w.rates.len()).max(1)
    }

    /// The time of bytes through a rack's port to the core.
    pub fn by_core(&self, rack: usize, bytes: Bytes) -> Span {
        self.core[rack].time_for(bytes)
    }
}

/// Largest number of placements for which all are tried.
const FEW: u64 = 64;

/// Ways to spread tasks over racks; one more than [`FEW`] or more, if they are more than that.
fn ways(tasks: u32, racks: usize) -> u64 {
    let more = |ways: u64, k: u64| (ways.saturating_mul(u64::from(tasks) + k) / k).min(FEW * 64);
    (1..racks as u64).fold(1, more)
}

/// A stage whose tasks are to be placed.
#[derive(Clone, Debug)]
pub struct StageQuestion<'a> {
    /// The network.
    pub net: &'a EstimatedNetwork,
    /// By rack: bytes that wait there for the stage.
    pub output: &'a [u64],
    /// Tasks to place.
    pub tasks: u32,
    /// By rack: when each of its slots will be free, ascending; those that are promised to others
    /// are not among them.
    pub free: &'a [Vec<Time>],
    /// By rack: hosts that are up.
    pub hosts: &'a [u32],
    /// By rack: bytes on their way into it and out of it.
    pub crossing: &'a [(Bytes, Bytes)],
    /// Now.
    pub now: Time,
    /// How many shuffles wait behind this one, in all.
    pub behind: u64,
}

/// A placement and what it brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PricedPlacement {
    /// Tasks by rack.
    pub tasks: Vec<u32>,
    /// When they all have slots.
    pub start: Time,
    /// When their shuffle ends.
    pub finish: Time,
    /// What limits their shuffle.
    pub limits: Limits,
    /// How long others wait for it, in all, ns.
    pub others: u64,
    /// What decides, smallest first: from now to the end, and what others wait for it.
    pub price: u64,
}

impl PricedPlacement {
    /// The same as it is shown to those who ask, from `now` on.
    pub fn shown(&self, now: Time) -> Estimate {
        Estimate {
            racks: most(self.tasks.iter().copied().enumerate()),
            slots: self.start.since(now),
            shuffle: self.finish.since(self.start),
            limits: self.limits,
            others: Span(self.others),
            price: Span(self.price),
        }
    }
}

/// Nanoseconds of ports, by side (out, in) and rack.
type PortTimes = [Vec<u64>; 2];

impl StageQuestion<'_> {
    /// The placement with the least price; of equal ones the first that is found. `None` if there
    /// are fewer slots than tasks.
    ///
    /// O(log W x W x S) for W racks and S racks that send: each number of racks is tried with the
    /// racks that have most of the output, and with those that have slots soonest.
    pub fn best(&self) -> Option<PricedPlacement> {
        self.judge(drop)
    }

    /// The same; `lost` is given all others.
    pub fn judge(&self, mut lost: impl FnMut(PricedPlacement)) -> Option<PricedPlacement> {
        let mut best: Option<PricedPlacement> = None;
        for mut p in self.candidates().into_iter().filter_map(|tasks| self.estimate(tasks)) {
            if let Some(b) = &mut best {
                if p.price < b.price {
                    std::mem::swap(b, &mut p);
                }
                lost(p);
            } else {
                best = Some(p);
            }
        }
        best
    }

    /// What is there soonest, where most of the output is.
    pub fn nearest(&self) -> Option<PricedPlacement> {
        self.estimate(self.filled(&self.local(), |r| self.free[r].len() as u32))
    }

    /// In proportion to the output.
    pub fn in_proportion(&self) -> Option<PricedPlacement> {
        self.estimate(self.proportional(&self.local()))
    }

    /// The racks, those with most of the output first.
    fn local(&self) -> Vec<usize> {
        let mut local: Vec<usize> = (0..self.free.len()).collect();
        local.sort_by_key(|&r| (std::cmp::Reverse(self.output[r]), r));
        local
    }

    /// Placements worth an estimate.
    pub fn candidates(&self) -> Vec<Vec<u32>> {
        let racks = self.free.len();
        let mut found: Vec<Vec<u32>> = Vec::new();
        let mut keep = |tasks: Vec<u32>| {
            if tasks.iter().sum::<u32>() == self.tasks && !found.contains(&tasks) {
                found.push(tasks);
            }
        };
        let local = self.local();
        // What is free now, where most of the output is; and what is free soonest, wherever.
        keep(self.filled(&local, |r| self.free[r].partition_point(|&t| t <= self.now) as u32));
        keep(self.soonest());
        keep(self.proportional(&local));
        let mut width = 1;
        while width <= racks && width <= self.tasks as usize {
            let each = self.tasks.div_ceil(width as u32);
            keep(self.even(&local, width, each));
            let mut order = local.clone();
            let ready =
                |r: usize| self.free[r].get(each as usize - 1).copied().unwrap_or(Time::MAX);
            order.sort_by_key(|&r| ready(r));
            keep(self.even(&order, width, each));
            order.sort_by_key(|&r| (ready(r).max(self.now) + self.net.port(self.crossing[r].0), r));
            keep(self.even(&order, width, each));
            width += (width / 3).max(1);
        }
        if ways(self.tasks, racks) <= FEW {
            self.every(&mut vec![0; racks], 0, self.tasks, &mut keep);
        }
        found
    }

    /// Every placement of `left` tasks on the racks from `r` on.
    fn every(&self, tasks: &mut [u32], r: usize, left: u32, keep: &mut impl FnMut(Vec<u32>)) {
        if r == tasks.len() {
            return if left == 0 {
                keep(tasks.to_vec())
            };
        }
        for n in 0..=left.min(self.free[r].len() as u32) {
            tasks[r] = n;
            self.every(tasks, r + 1, left - n, keep);
        }
        tasks[r] = 0;
    }

    /// As many as `room` says on each rack in this order, until none are left.
    fn filled(&self, order: &[usize], room: impl Fn(usize) -> u32) -> Vec<u32> {
        let (mut tasks, mut left) = (vec![0; self.free.len()], self.tasks);
        for &r in order {
            tasks[r] = room(r).min(left);
            left -= tasks[r];
        }
        tasks
    }

    fn even(&self, order: &[usize], width: usize, each: u32) -> Vec<u32> {
        self.filled(&order[..width], |r| each.min(self.free[r].len() as u32))
    }

    fn soonest(&self) -> Vec<u32> {
        let mut all: Vec<(Time, usize)> = self
            .free
            .iter()
            .enumerate()
            .flat_map(|(r, f)| f.iter().map(move |&t| (t.max(self.now), r)))
            .collect();
        let n = (self.tasks as usize).min(all.len());
        if n < all.len() && n > 0 {
            all.select_nth_unstable(n - 1);
        }
        let mut tasks = vec![0; self.free.len()];
        all[..n].iter().for_each(|&(_, r)| tasks[r] += 1);
        tasks
    }

    /// In proportion to the output, what rounding leaves where most of it is.
    fn proportional(&self, local: &[usize]) -> Vec<u32> {
        let all: u128 = self.output.iter().map(|&b| u128::from(b)).sum::<u128>().max(1);
        let room = |r: usize| self.free[r].len() as u32;
        let share = |r: usize| {
            ((u128::from(self.tasks) * u128::from(self.output[r]) / all) as u32).min(room(r))
        };
        let mut tasks: Vec<u32> = (0..self.free.len()).map(share).collect();
        let mut left = self.tasks - tasks.iter().sum::<u32>();
        for &r in local {
            let more = left.min(room(r) - tasks[r]).min(self.tasks.div_ceil(8));
            (tasks[r], left) = (tasks[r] + more, left - more);
        }
        tasks
    }

    /// When a placement ends, and its price; `None` where a rack has fewer slots. O(racks that send
    /// x racks that receive).
    pub fn estimate(&self, tasks: Vec<u32>) -> Option<PricedPlacement> {
        let mut start = self.now;
        for (r, &n) in tasks.iter().enumerate().filter(|t| *t.1 > 0) {
            start = start.max(*self.free[r].get(n as usize - 1)?);
        }
        let (limits, taken) = self.shuffle(&tasks);
        let finish = start + limits.longest();
        // A second of a port makes those behind wait for a second, each for one port of all.
        let others = u128::from(taken) * u128::from(self.behind) / self.net.ports() as u128;
        let price = u128::from(finish.since(self.now).0) + others;
        let small = |n: u128| u64::try_from(n).unwrap_or(u64::MAX);
        let (others, price) = (small(others), small(price));
        Some(PricedPlacement { tasks, start, finish, limits, others, price })
    }

    /// What limits the shuffle, and the time of all ports that it takes. Each pair of racks goes
    /// the way that is sooner.
    fn shuffle(&self, tasks: &[u32]) -> (Limits, u64) {
        let net = self.net;
        let none = || -> PortTimes { [vec![0; tasks.len()], vec![0; tasks.len()]] };
        let (mut circuits, mut core) = (none(), none());
        let mut parts = vec![0u64; net.ways.as_ref().map_or(0, |w| w.rates.len())];
        let mut limits = Limits::default();
        let all: u32 = tasks.iter().sum();
        for (a, &out) in self.output.iter().enumerate().filter(|o| *o.1 > 0) {
            for (b, &n) in tasks.iter().enumerate().filter(|t| *t.1 > 0 && t.0 != a) {
                let bytes =
                    Bytes((u128::from(out) * u128::from(n) / u128::from(all.max(1))) as u64);
                let by_core = net.core[a].min(net.core[b]).time_for(bytes);
                let by_circuit = if net.circuit == BitRate::ZERO {
                    Span::MAX
                } else {
                    net.circuit.time_for(bytes) + net.dark
                };
                let rides = bytes >= net.threshold && by_circuit < by_core;
                let (ports, each) = match rides {
                    true => (&mut circuits, net.circuits.time_for(bytes).0 + net.dark.0),
                    false => (&mut core, by_core.0),
                };
                limits.circuit_pairs += u32::from(rides);
                let carried =
                    if rides { &mut limits.circuit_bytes } else { &mut limits.core_bytes };
                *carried += bytes;
                limits.pair = limits.pair.max(if rides { by_circuit } else { by_core });
                ports[0][a] = ports[0][a].saturating_add(each);
                ports[1][b] = ports[1][b].saturating_add(each);
                if let Some(w) = net.ways.as_ref().filter(|_| !rides) {
                    w.parts[a][b].iter().for_each(|&k| {
                        parts[k] = parts[k].saturating_add(w.rates[k].time_for(bytes).0)
                    });
                }
            }
        }
        limits.interfaces = Span(self.interfaces(tasks, all));
        // A byte takes time of each cable and switch on its way.
        let mut taken = 0u64;
        for &own in &parts {
            limits.switches = limits.switches.max(Span(own));
            taken = taken.saturating_add(own);
        }
        let has_circuits = net.circuit > BitRate::ZERO;
        for (ports, others, counts) in
            [(&circuits, has_circuits, true), (&core, !has_circuits, parts.is_empty())]
        {
            for (side, port) in ports.iter().enumerate() {
                for (r, &own) in port.iter().enumerate().filter(|p| *p.1 > 0) {
                    let (into, out) = self.crossing[r];
                    let busy = if others {
                        net.port_of(r, if side == 0 { out } else { into })
                    } else {
                        Span::ZERO
                    };
                    limits.port = limits.port.max(Span(own.saturating_add(busy.0)));
                    taken = taken.saturating_add(if counts { own } else { 0 });
                }
            }
        }
        (limits, taken)
    }

    /// What the hosts' interfaces need: those that have the output, and those that receive it.
    fn interfaces(&self, tasks: &[u32], all: u32) -> u64 {
        let total: u128 = self.output.iter().map(|&b| u128::from(b)).sum();
        let mut end = 0;
        for (r, &n) in tasks.iter().enumerate() {
            let hosts = u64::from(self.hosts[r].max(1));
            let time = |bytes: u128, busy: u64| {
                let each = Bytes(
                    u64::try_from(bytes / u128::from(busy.clamp(1, hosts))).unwrap_or(u64::MAX),
                );
                if self.net.nic[r] == BitRate::ZERO { 0 } else { self.net.nic[r].time_for(each).0 }
            };
            // Of what stays in the rack, one host's part stays on the host.
            let own = u128::from(self.output[r]) * u128::from(n) / u128::from(all.max(1));
            let home = own / u128::from(hosts);
            end = end.max(time(
                (total * u128::from(n) / u128::from(all.max(1))).saturating_sub(home),
                n.into(),
            ));
            end = end.max(time(u128::from(self.output[r]).saturating_sub(home), hosts));
        }
        end
    }
}

impl EstimatedNetwork {
    /// The time of bytes through the faster of a rack's ports.
    fn port_of(&self, rack: usize, bytes: Bytes) -> Span {
        self.circuits.max(self.core[rack]).time_for(bytes)
    }

    /// The same of any rack.
    fn port(&self, bytes: Bytes) -> Span {
        self.circuits.max(self.core.first().copied().unwrap_or(BitRate::ZERO)).time_for(bytes)
    }
}
