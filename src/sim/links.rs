//! The links of the model, and the links that a flow crosses.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::bundle::BundleRoute;
use super::faults::Which;
use super::queues::Queues;
use crate::coflows::rates::{MAX_HOPS, Path};
use crate::ids::{HostId, RackId};
use crate::paths::List;
use crate::topology::graph::{Graph, Hop, Routes, Switch};
use crate::topology::{Core, Host, PortQueues, Rack, Topology};
use crate::units::{BitRate, Span};

/// Links in this order: every host's interface up and down, every rack's EPS uplink up and down,
/// every circuit, every pod's link to the core up and down, the core switch. Then every cable of
/// the EPS graph in both directions, the graph's switches of limited rate, and a link without
/// capacity. Last the queues of the racks' ports to the EPS, and those of the EPS's ports to the
/// racks, if each port has one for every rack.
#[derive(Debug)]
pub struct Links {
    topology: Arc<Topology>,
    /// Payload in bits a second that links carry without faults (`whole`) and now (`capacity`).
    whole: Vec<u64>,
    capacity: Vec<u64>,
    /// By rack: its uplink carries as much as all its hosts' interfaces, so it never limits a flow
    /// and is left out of paths.
    wide: Vec<bool>,
    /// By rack: what its hosts' interfaces carry together. A circuit that carries as much as those
    /// of one of its racks is left out of paths, too.
    nics: Vec<u64>,
    /// Whether links may fail: then none is left out.
    may_fail: bool,
    /// The first pod's link, and the number of pods.
    pods: (u32, u32),
    /// A link without capacity, for flows that wait.
    nowhere: u32,
    /// If ports between racks and the EPS have a queue for every rack: the first queue of the first
    /// rack. Each is a link, which flows cross instead of the uplink.
    queues: Option<u32>,
    /// The EPS graph.
    graph: Option<GraphRoutes>,
    /// By pair of hosts whose flows do not take their racks' default route: the number of the
    /// change, and the route.
    lists: BTreeMap<(HostId, HostId), (u32, Vec<Hop>)>,
    /// Number of changes.
    changes: u32,
}

/// Routes through the EPS graph, as links.
#[derive(Debug)]
struct GraphRoutes {
    routes: Routes,
    /// The first cable's link in one direction; the link in the other direction is the next one.
    cables: u32,
    /// By switch: its link, if its rate is limited.
    switches: Vec<Option<u32>>,
}

impl GraphRoutes {
    /// Appends the graph's links to `capacity`.
    fn new(graph: &Graph, eps: impl Fn(BitRate) -> u64, capacity: &mut Vec<u64>) -> Self {
        let cables = capacity.len() as u32;
        capacity.extend(graph.cables.iter().flat_map(|c| [eps(c.rate); 2]));
        let limited = |s: &Switch| {
            s.rate.map(|rate| {
                capacity.push(eps(rate));
                (capacity.len() - 1) as u32
            })
        };
        Self {
            cables,
            switches: graph.switches.iter().map(limited).collect(),
            routes: Routes::new(graph),
        }
    }

    /// Calls `push` for every link of a route that begins at a rack.
    fn links(&self, from: RackId, way: &[Hop], mut push: impl FnMut(u32)) {
        self.switches[self.routes.switch_of(from) as usize].into_iter().for_each(&mut push);
        for hop in way {
            push(self.cables + 2 * hop.cable + u32::from(!hop.forward));
            self.switches[hop.to as usize].into_iter().for_each(&mut push);
        }
    }
}

impl Links {
    /// The links of `topology`. Behind the interfaces, the EPS has what background traffic leaves,
    /// rounded down.
    ///
    /// Without `circuits`, all traffic of a rack's only host crosses the uplink too: interface and
    /// uplink are one link, as wide as the narrower one. `may_fail`: every link is kept apart, and
    /// none is left out of paths. `queues`: ports to the EPS have the queues that the topology
    /// says; else one each.
    pub fn new(topology: Arc<Topology>, circuits: bool, may_fail: bool, queues: bool) -> Self {
        let t = &topology;
        let queues = queues && t.eps.queues == PortQueues::Racks;
        let eps = |rate: BitRate| {
            (u128::from(t.payload(rate).0) * u128::from(100 - t.eps.background_percent.min(100))
                / 100) as u64
        };
        let alone = |r: &Rack| r.hosts == 1 && !circuits && !may_fail && !queues;
        let nic = |h: &Host| {
            let (rack, nic) = (&t.racks[h.rack.index()], t.payload(h.nic).0);
            if alone(rack) { nic.min(eps(rack.uplink)) } else { nic }
        };
        let nics = || t.hosts.iter().map(nic);
        let uplinks = || t.racks.iter().map(|r| eps(r.uplink));
        let circuits =
            t.planes.iter().flat_map(|p| std::iter::repeat_n(t.payload(p.rate).0, t.rack_count()));
        let mut capacity: Vec<u64> =
            nics().chain(nics()).chain(uplinks()).chain(uplinks()).chain(circuits).collect();
        let pods = t.eps.pods().map_or(0, |p| t.rack_count().div_ceil(p.racks.max(1) as usize));
        let pod = capacity.len() as u32;
        capacity
            .extend(t.eps.pods().iter().flat_map(|p| std::iter::repeat_n(eps(p.uplink), 2 * pods)));
        capacity.extend(t.eps.core_rate().map(eps));
        let all = |r: &Rack| {
            t.hosts_of(r.id).iter().map(|h| t.payload(h.nic).0).fold(0, u64::saturating_add)
        };
        let wide =
            t.racks.iter().map(|r| !may_fail && (alone(r) || all(r) <= eps(r.uplink))).collect();
        let nics = t.racks.iter().map(all).collect();
        let graph = t.eps.graph().map(|g| GraphRoutes::new(g, eps, &mut capacity));
        let nowhere = capacity.len() as u32;
        capacity.push(0);
        let first = nowhere + 1;
        if queues {
            let each =
                || t.racks.iter().flat_map(|r| std::iter::repeat_n(eps(r.uplink), t.rack_count()));
            capacity.extend(each().chain(each()));
        }
        Self {
            queues: queues.then_some(first),
            whole: capacity.clone(),
            capacity,
            wide,
            nics,
            may_fail,
            pods: (pod, pods as u32),
            nowhere,
            graph,
            lists: BTreeMap::new(),
            changes: 0,
            topology,
        }
    }

    /// The network.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The network, shared.
    pub fn shared_topology(&self) -> Arc<Topology> {
        self.topology.clone()
    }

    /// By link: bits of payload per second.
    pub fn capacity(&self) -> &[u64] {
        &self.capacity
    }

    /// The queues of the ports between racks and the EPS, if each port has one for every rack.
    pub fn queues(&self) -> Option<Queues> {
        let racks = self.topology.rack_count();
        self.queues.map(|first| Queues::new(racks, 2 * self.topology.hosts.len() as u32, first))
    }

    /// Payload of a rack's link to the EPS without faults, in bits a second.
    pub fn uplink(&self, rack: RackId) -> u64 {
        self.whole[2 * self.topology.hosts.len() + rack.index()]
    }

    /// Sets the faults; earlier ones end. O(links + faults x links that fail together).
    pub fn suffer(&mut self, faults: &[(Which, u32)]) {
        self.capacity.copy_from_slice(&self.whole);
        for &(which, percent) in faults {
            for l in self.of(which) {
                let left = u128::from(self.whole[l]) * u128::from(percent) / 100;
                self.capacity[l] = self.capacity[l].min(left as u64);
            }
        }
    }

    /// The links that fail together.
    fn of(&self, which: Which) -> Vec<usize> {
        let (hosts, racks) = (self.topology.hosts.len(), self.topology.rack_count());
        let both = |list: Vec<usize>, first: usize, n: usize| {
            list.into_iter().flat_map(|k| [first + k, first + n + k]).collect()
        };
        let uplinks = |list: Vec<usize>| both(list, 2 * hosts, racks);
        match which {
            Which::Nic(h) => both(vec![h.index()], 0, hosts),
            Which::Tor(r) => {
                both(self.topology.hosts_of(r).iter().map(|h| h.id.index()).collect(), 0, hosts)
            }
            Which::Uplink(r) => uplinks(vec![r.index()]),
            Which::Pod(p) => {
                uplinks((0..racks).filter(|&r| self.pod(RackId::from(r)) == Some(p)).collect())
            }
            Which::Eps => uplinks((0..racks).collect()),
            Which::Cables(a, b) => self.cables(|ends| ends == (a, b) || ends == (b, a)),
            Which::Switch(s) => {
                let stands = |r: &usize| self.graph().is_some_and(|g| g.racks[*r] == s);
                let own = self.cables(|ends| ends.0 == s || ends.1 == s);
                uplinks((0..racks).filter(stands).collect()).into_iter().chain(own).collect()
            }
            Which::Core => self
                .topology
                .eps
                .core_rate()
                .map(|_| (self.pods.0 + 2 * self.pods.1) as usize)
                .into_iter()
                .collect(),
        }
    }

    fn graph(&self) -> Option<&Graph> {
        self.topology.eps.graph()
    }

    /// The links, in both directions, of the cables whose ends `which` accepts.
    fn cables(&self, which: impl Fn((u32, u32)) -> bool) -> Vec<usize> {
        let first = self.graph.as_ref().map_or(0, |w| w.cables as usize);
        let all = self.graph().into_iter().flat_map(|g| g.cables.iter().enumerate());
        all.filter(|(_, c)| which(c.ends))
            .flat_map(|(k, _)| [first + 2 * k, first + 2 * k + 1])
            .collect()
    }

    /// Whether every path over the EPS, and over a circuit if there are `circuits`, is its two
    /// interfaces only.
    pub fn two_sided(&self, circuits: bool) -> bool {
        let mut nics = self.nics.clone();
        nics.sort_unstable_by(|a, b| b.cmp(a));
        // The narrower end of a circuit is at most the second widest rack.
        let needed = nics.get(1).copied().unwrap_or(0);
        let planes = self
            .topology
            .planes
            .iter()
            .all(|p| !circuits || self.topology.payload(p.rate).0 >= needed);
        self.wide.iter().all(|&w| w) && self.topology.eps.core == Core::Flat(None) && planes
    }

    fn pod(&self, rack: RackId) -> Option<u32> {
        self.topology.eps.pods().map(|p| rack.0 / p.racks.max(1))
    }

    /// Number of the change that gave two hosts a list of their own.
    pub fn list_of(&self, hosts: (HostId, HostId)) -> Option<u32> {
        self.lists.get(&hosts).map(|l| l.0)
    }

    /// Sets the list of flows between two hosts; `None`: their racks' default route. The list must
    /// be connected. Returns whether the route has changed.
    ///
    /// # Errors
    /// How many links the route has, and how many a flow may cross, if those are too many.
    pub fn steer(
        &mut self,
        hosts: (HostId, HostId),
        list: Option<&List>,
    ) -> Result<bool, (usize, usize)> {
        let Some(ways) = &self.graph else { return Ok(false) };
        let racks = (self.topology.rack_of(hosts.0), self.topology.rack_of(hosts.1));
        let way = list
            .and_then(|l| ways.routes.along(&l.0, racks.0, racks.1))
            .filter(|w| *w != ways.routes.way(racks.0, racks.1));
        let Some(way) = way else { return Ok(self.lists.remove(&hosts).is_some()) };
        if self.lists.get(&hosts).is_some_and(|l| l.1 == way) {
            return Ok(false);
        }
        // Besides the graph: two interfaces and two uplinks.
        let mut links = 4;
        ways.links(racks.0, &way, |_| links += 1);
        if links > MAX_HOPS {
            return Err((links, MAX_HOPS));
        }
        self.changes += 1;
        self.lists.insert(hosts, (self.changes, way));
        Ok(true)
    }

    /// Delay of a packet on this route, apart from what rates take. Circuits add none.
    pub fn delay(&self, from: HostId, to: HostId, route: BundleRoute) -> Span {
        let specs = &self.topology.links;
        let (a, b) = (self.topology.rack_of(from), self.topology.rack_of(to));
        let cables = |way: &[Hop]| {
            let graph = self.graph().expect("a way leads through a graph");
            let delays =
                way.iter().map(|h| specs.cable(graph, &graph.cables[h.cable as usize]).delay.0);
            Span(delays.sum())
        };
        let behind = match (route, &self.graph) {
            (BundleRoute::Local | BundleRoute::Wait | BundleRoute::Ocs(_), _) => Span::ZERO,
            (_, None) => specs.uplink.delay * 2,
            (_, Some(ways)) => {
                let own = self.lists.get(&(from, to)).filter(|_| route != BundleRoute::Eps);
                specs.uplink.delay * 2
                    + own.map_or_else(|| cables(&ways.routes.way(a, b)), |(_, way)| cables(way))
            }
        };
        if from == to { Span::ZERO } else { specs.nic.delay * 2 + behind }
    }

    /// The links of a flow on this route.
    pub fn path(&self, from: HostId, to: HostId, route: BundleRoute) -> Path {
        let (hosts, racks) = (self.topology.hosts.len() as u32, self.topology.rack_count() as u32);
        let (a, b) = (self.topology.rack_of(from), self.topology.rack_of(to));
        let (mut list, mut n) = ([0; MAX_HOPS], 2);
        (list[0], list[1]) = (from.0, hosts + to.0);
        let mut push = |link| {
            list[n] = link;
            n += 1;
        };
        match route {
            BundleRoute::Local => {}
            BundleRoute::Wait => push(self.nowhere),
            BundleRoute::Ocs(plane) => {
                let circuit = 2 * hosts + (2 + plane.0) * racks + a.0;
                if self.may_fail
                    || self.whole[circuit as usize] < self.nics[a.index()].min(self.nics[b.index()])
                {
                    push(circuit);
                }
            }
            BundleRoute::Eps | BundleRoute::List(_) => {
                if !self.wide[a.index()] {
                    push(self.queues.map_or(2 * hosts + a.0, |first| first + a.0 * racks + b.0));
                }
                if !self.wide[b.index()] {
                    push(self.queues.map_or(2 * hosts + racks + b.0, |first| {
                        first + (racks + b.0) * racks + a.0
                    }));
                }
                let (p, q) = (self.pod(a), self.pod(b));
                if let (Some(p), Some(q)) = (p, q)
                    && p != q
                {
                    push(self.pods.0 + p);
                    push(self.pods.0 + self.pods.1 + q);
                }
                if let Some(ways) = &self.graph {
                    match self.lists.get(&(from, to)).filter(|_| route != BundleRoute::Eps) {
                        Some((_, way)) => ways.links(a, way, &mut push),
                        None => ways.links(a, &ways.routes.way(a, b), &mut push),
                    }
                }
                // Without pods all racks are at the core.
                if self.topology.eps.core_rate().is_some() && (p.is_none() || p != q) {
                    push(self.pods.0 + 2 * self.pods.1);
                }
            }
        }
        Path::new(&list[..n])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Pods;

    #[test]
    fn a_flow_crosses_what_lies_between() {
        // Five racks of two hosts in pods of two; half of every link behind the interfaces is
        // taken.
        let mut t = Topology::uniform("t", 5, 2, BitRate(1000), BitRate(500), vec![]);
        t.framing = crate::topology::Framing::None;
        t.eps.background_percent = 50;
        t.eps.core = Core::Pods(Pods { racks: 2, uplink: BitRate(300) }, Some(BitRate(700)));
        let l = Links::new(Arc::new(t.clone()), true, false, true);
        let path = |a, b, route| l.path(HostId(a), HostId(b), route).links().to_vec();
        assert_eq!(path(0, 1, BundleRoute::Local), [0, 11]);
        assert_eq!(path(0, 2, BundleRoute::Eps), [0, 12, 20, 26], "within a pod");
        assert_eq!(
            path(2, 8, BundleRoute::Eps),
            [2, 18, 21, 29, 30, 35, 36],
            "from the first pod to the third over the core"
        );
        let rates: Vec<u64> =
            [0, 20, 29, 30, 35, 36].iter().map(|&k| l.capacity()[k as usize]).collect();
        assert_eq!((rates, l.capacity().len()), (vec![1000, 250, 250, 150, 150, 350], 38));
        t.eps = crate::topology::Eps {
            core: Core::Flat(Some(BitRate(700))),
            ..crate::topology::Eps::flat(100)
        };
        t.racks.iter_mut().for_each(|r| r.uplink = BitRate(2000));
        let l = Links::new(Arc::new(t.clone()), true, false, true);
        assert_eq!(
            l.path(HostId(0), HostId(2), BundleRoute::Eps).links(),
            [0, 12, 30],
            "wide uplinks are left out, the core is not"
        );
        assert!(!l.two_sided(false));
        let mut l = Links::new(Arc::new(t), false, true, true);
        assert_eq!(
            l.path(HostId(0), HostId(2), BundleRoute::Eps).links(),
            [0, 12, 20, 26, 30],
            "they might fail"
        );
        l.suffer(&[
            (Which::Tor(RackId(1)), 0),
            (Which::Uplink(RackId(0)), 50),
            (Which::Core, 10),
            (Which::Nic(HostId(2)), 40),
        ]);
        let now: Vec<u64> =
            [0, 2, 3, 12, 13, 20, 25, 21, 30].iter().map(|&k| l.capacity()[k]).collect();
        assert_eq!(now, [1000, 0, 0, 0, 0, 1000, 1000, 2000, 70], "the worst of what holds");
        l.suffer(&[(Which::Eps, 0)]);
        assert_eq!((l.capacity()[2], (20..30).map(|k| l.capacity()[k]).sum::<u64>()), (1000, 0));
    }

    #[test]
    fn a_flow_crosses_the_queue_of_its_rack_instead_of_the_uplink() {
        let mut t = Topology::uniform("t", 3, 2, BitRate(1000), BitRate(500), vec![]);
        t.framing = crate::topology::Framing::None;
        t.eps.queues = PortQueues::Racks;
        let path = |l: &Links, a, b, route| l.path(HostId(a), HostId(b), route).links().to_vec();
        let l = Links::new(Arc::new(t.clone()), false, false, true);
        // Behind six interfaces up and six down come three uplinks up, three down, a link for flows
        // that wait, and nine queues of either.
        assert_eq!(
            (path(&l, 2, 5, BundleRoute::Eps), path(&l, 5, 0, BundleRoute::Eps)),
            (vec![2, 11, 24, 35], vec![5, 6, 25, 30])
        );
        assert_eq!(path(&l, 2, 3, BundleRoute::Local), [2, 9]);
        assert_eq!(
            (l.capacity().len(), l.capacity()[24], l.capacity()[35], l.queues().is_some()),
            (37, 500, 500, true)
        );
        let l = Links::new(Arc::new(t.clone()), false, false, false);
        assert_eq!(
            (path(&l, 2, 5, BundleRoute::Eps), l.capacity().len(), l.queues().is_some()),
            (vec![2, 11, 13, 17], 19, false)
        );
        // An uplink that is never the tightest link has no queues either.
        t.racks.iter_mut().for_each(|r| r.uplink = BitRate(2000));
        assert_eq!(
            path(&Links::new(Arc::new(t), false, false, true), 2, 5, BundleRoute::Eps),
            [2, 11]
        );
    }

    #[test]
    fn a_circuit_as_wide_as_the_interfaces_of_either_rack_is_left_out() {
        let plane = |id, rate| crate::topology::Plane {
            id: crate::ids::PlaneId(id),
            rate: BitRate(rate),
            delta: crate::units::Span(1),
            stop: crate::topology::StopMode::NotAllStop,
            duplex: false,
        };
        let mut t = Topology::uniform(
            "t",
            2,
            2,
            BitRate(1000),
            BitRate(500),
            vec![plane(0, 1999), plane(1, 2000)],
        );
        t.push_rack(1, 2, BitRate(1000), BitRate(500));
        let t = Arc::new(t);
        let links = |a, b, plane, may_fail| {
            let l = Links::new(t.clone(), true, may_fail, true);
            l.path(HostId(a), HostId(b), BundleRoute::Ocs(crate::ids::PlaneId(plane))).links().len()
        };
        assert_eq!([links(0, 2, 0, false), links(0, 2, 1, false), links(0, 2, 1, true)], [3, 2, 3]);
        assert_eq!(
            [links(0, 4, 0, false), links(4, 0, 0, false)],
            [2, 2],
            "the third rack has one host"
        );
    }

    #[test]
    fn a_graph_adds_its_cables_and_its_limited_switches() {
        let mut t = Topology::uniform("t", 4, 2, BitRate(1000), BitRate(500), vec![]);
        t.framing = crate::topology::Framing::None;
        t.eps.background_percent = 50;
        let mut g = Graph::leaf_spine(4, 1, BitRate(300), None);
        g.switches[4].rate = Some(BitRate(700));
        t.eps.core = Core::Graph(Box::new(g));
        let l = Links::new(Arc::new(t), false, false, true);
        // Four links of NICs and uplinks each; then 24.. the cables, and 32 the spine.
        assert_eq!(
            l.path(HostId(0), HostId(7), BundleRoute::Eps).links(),
            [0, 15, 16, 23, 24, 32, 31]
        );
        assert_eq!(l.path(HostId(0), HostId(1), BundleRoute::Local).links(), [0, 9]);
        assert_eq!(l.list_of((HostId(0), HostId(7))), None);
        // Cable k joins leaf k and the spine, which is switch 4.
        assert_eq!(
            (l.of(Which::Cables(4, 2)), l.of(Which::Cables(0, 1)), l.of(Which::Switch(1))),
            (vec![28, 29], vec![], vec![17, 21, 26, 27])
        );
        assert_eq!(l.of(Which::Switch(4)), (24..32).collect::<Vec<_>>());
        assert_eq!(
            (&l.capacity()[24..], l.two_sided(false)),
            (&[150, 150, 150, 150, 150, 150, 150, 150, 350, 0][..], false)
        );
    }

    #[test]
    fn a_list_takes_its_own_cables_and_only_those() {
        let mut t = Topology::uniform("t", 4, 2, BitRate(1000), BitRate(500), vec![]);
        t.eps.core = Core::Graph(Box::new(Graph::leaf_spine(4, 2, BitRate(300), None)));
        let mut l = Links::new(Arc::new(t), false, false, true);
        let hosts = (HostId(0), HostId(7));
        let default = l.path(hosts.0, hosts.1, BundleRoute::Eps);
        // Cables 2 k and 2 k + 1 join leaf k with the spines 4 and 5; their links begin at 24.
        let over =
            |spine: u32| vec![0, 15, 16, 23, 24 + 2 * (spine - 4), 24 + 2 * (6 + spine - 4) + 1];
        let own = if default.links() == over(4) { 4 } else { 5 };
        assert_eq!(default.links(), over(own));
        assert_eq!(
            (l.steer(hosts, Some(&List(vec![0, own, 3]))), l.list_of(hosts)),
            (Ok(false), None),
            "that is the default way"
        );
        let other = List(vec![0, 9 - own, 3]);
        assert_eq!(
            (l.steer(hosts, Some(&other)), l.steer(hosts, Some(&other)), l.list_of(hosts)),
            (Ok(true), Ok(false), Some(1))
        );
        assert_eq!(l.path(hosts.0, hosts.1, BundleRoute::List(1)).links(), over(9 - own));
        assert_eq!(l.path(hosts.0, hosts.1, BundleRoute::Eps), default);
        assert_eq!(
            (l.steer(hosts, None), l.steer(hosts, None), l.list_of(hosts)),
            (Ok(true), Ok(false), None)
        );
    }

    #[test]
    fn the_uplink_of_a_rack_of_one_host_is_its_interface() {
        let mut t = Topology::uniform("t", 3, 1, BitRate(1000), BitRate(500), vec![]);
        t.framing = crate::topology::Framing::None;
        t.push_rack(2, 1, BitRate(1000), BitRate(500));
        let (one, four) = (
            Links::new(Arc::new(t.clone()), false, false, true),
            Links::new(Arc::new(t), true, false, true),
        );
        assert_eq!((one.capacity()[0], four.capacity()[0], one.capacity()[3]), (500, 1000, 1000));
        assert_eq!(one.path(HostId(0), HostId(1), BundleRoute::Eps).links(), [0, 6]);
        assert_eq!(one.path(HostId(0), HostId(3), BundleRoute::Eps).links(), [0, 8, 17]);
        assert_eq!(four.path(HostId(0), HostId(1), BundleRoute::Eps).links(), [0, 6, 10, 15]);
    }
}
