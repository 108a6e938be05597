//! A plan of tasks and lists of switches as a picture: hosts at the bottom with their tasks,
//! switches above by tier, links as wide as what the planned flows send over them.

use std::collections::BTreeMap;

use super::matrix::Matrices;
use crate::cli::tables;
use crate::draw::{Anchor, Ink, MarkShape, Pen, Point, Sheet, colour, font};
use crate::paths::Switches;
use crate::placement::hit::plan::HitPlan;
use crate::topology::Topology;
use crate::topology::graph::Tier;
use crate::units::Bytes;
use crate::workload::jobs::JobSpec;

/// Distance between two hosts, and between two tiers.
const STEP: (f64, f64) = (22.0, 110.0);
const LEFT: f64 = 30.0;
const TOP: f64 = 40.0;
/// Height of a task's line; tasks are drawn below their host, one under the other.
const TASK: f64 = 11.0;
/// The widest link.
const WIDEST: f64 = 9.0;
/// Size of text in points, and the least to which a switch's name shrinks to fit into its box.
const TEXT: (f64, f64) = (9.0, 6.0);
/// The height of a switch, and its greatest width.
const BOX: (f64, f64) = (16.0, 56.0);
/// The colour of links that carry nothing, and of hosts and the edges of switches.
const GREYS: (Ink, Ink) = (Ink::new(204, 204, 204), Ink::new(51, 51, 51));

/// The colour of a task: blue for those that send, orange for those that receive.
fn shade(receives: bool) -> Ink {
    if receives { colour(4) } else { colour(0) }
}

/// Where hosts and switches are drawn.
struct Places {
    hosts: Vec<Point>,
    switches: Vec<Point>,
    bottom: f64,
    width: f64,
}

impl Places {
    /// Hosts in a row by number; switches of a height evenly in the row above, those of racks over
    /// their hosts. A server that relays is its host. O(hosts + switches log switches).
    fn new(topology: &Topology, net: &Switches) -> Self {
        let n = topology.hosts.len();
        let relays = (0..net.len() as u32).any(|s| net.tier(s) == Tier::Server);
        let top =
            (0..net.len() as u32).map(|s| net.height(s)).max().unwrap_or(0) + u32::from(!relays);
        let bottom = TOP + STEP.1 * f64::from(top);
        let width = STEP.0 * (n.max(12) as f64 - 1.0);
        let hosts: Vec<Point> =
            (0..n).map(|h| (LEFT + width * (h as f64 + 0.5) / n.max(1) as f64, bottom)).collect();
        let mut switches = vec![(LEFT, bottom); net.len()];
        for level in 0..=top {
            let own: Vec<u32> = (0..net.len() as u32).filter(|&s| net.height(s) == level).collect();
            for (k, &s) in own.iter().enumerate() {
                let below: Vec<f64> = topology
                    .hosts
                    .iter()
                    .filter(|h| net.stands(h.id) == s)
                    .map(|h| hosts[h.id.index()].0)
                    .collect();
                let even = LEFT + width * (k as f64 + 0.5) / own.len() as f64;
                let x = if below.is_empty() {
                    even
                } else {
                    below.iter().sum::<f64>() / below.len() as f64
                };
                switches[s as usize] =
                    (x, bottom - STEP.1 * (f64::from(level) + f64::from(u32::from(!relays))));
            }
        }
        Self { hosts, switches, bottom, width: width + 2.0 * LEFT }
    }
}

/// Bytes over each link of the planned flows: between two switches by number, lower first, and at
/// each host.
type LinkLoads = (BTreeMap<(u32, u32), u128>, BTreeMap<usize, u128>);

fn loads(net: &Switches, plans: &[&HitPlan]) -> LinkLoads {
    let (mut links, mut hosts) = (BTreeMap::new(), BTreeMap::new());
    for f in plans.iter().flat_map(|p| &p.flows) {
        let own = |h| Some(net.stands(h)).filter(|&s| net.tier(s) == Tier::Server);
        let whole: Vec<u32> =
            own(f.from).into_iter().chain(f.list.0.iter().copied()).chain(own(f.to)).collect();
        for pair in whole.windows(2) {
            *links.entry((pair[0].min(pair[1]), pair[0].max(pair[1]))).or_default() +=
                u128::from(f.bytes);
        }
        for host in [f.from, f.to] {
            *hosts.entry(host.index()).or_default() += u128::from(f.bytes);
        }
    }
    (links, hosts)
}

/// The picture of the plans of some jobs on a network.
pub fn picture(topology: &Topology, net: &Switches, plans: &[(&JobSpec, &HitPlan)]) -> Sheet {
    let places = Places::new(topology, net);
    let mut by_host: Tasks = BTreeMap::new();
    for (job, plan) in plans {
        for t in &plan.tasks {
            let receives = job.edges_into(t.stage).next().is_some();
            by_host
                .entry(t.host.index())
                .or_default()
                .push((receives, format!("{} {} {}", job.name, job.stages[t.stage].name, t.task)));
        }
    }
    let tasks = by_host.values().map(Vec::len).max().unwrap_or(0) as f64;
    let (matrices, below) = (Matrices::new(topology, plans), places.bottom + 20.0 + TASK * tasks);
    let width = places.width.max(matrices.width() + 2.0 * LEFT);
    let mut sheet = Sheet::new(width, below + matrices.height() + 20.0);
    links(
        &mut sheet,
        topology,
        net,
        &places,
        &loads(net, &plans.iter().map(|p| p.1).collect::<Vec<_>>()),
    );
    switches(&mut sheet, net, &places);
    hosts(&mut sheet, topology, &places, &by_host);
    let columns: Vec<f64> = places.hosts.iter().map(|p| p.0).collect();
    let column = columns.get(1).map_or(STEP.0, |x| x - columns[0]);
    matrices.draw(&mut sheet, LEFT, below, (&columns, column));
    let title = format!(
        "{}: tasks that send blue, that receive orange; links by planned bytes",
        topology.name
    );
    sheet.text((LEFT, 14.0), TEXT.0, Anchor::Start, title);
    sheet
}

/// By host: its tasks, whether each receives a shuffle and what it is called.
type Tasks = BTreeMap<usize, Vec<(bool, String)>>;

/// Links between switches, then those of hosts, as wide as what they carry.
fn links(
    sheet: &mut Sheet,
    topology: &Topology,
    net: &Switches,
    places: &Places,
    (between, of_hosts): &LinkLoads,
) {
    let most = between.values().chain(of_hosts.values()).copied().max().unwrap_or(0).max(1);
    let mut line = |(a, b): (Point, Point), bytes: u128, what: &str| {
        let pen = match bytes {
            0 => Pen::new(GREYS.0, 0.5),
            _ => Pen::new(colour(1), 1.0 + (WIDEST - 1.0) * bytes as f64 / most as f64),
        };
        sheet.line(a, b, pen).says(format!(
            "{what}: {}",
            tables::bytes(Bytes(u64::try_from(bytes).unwrap_or(u64::MAX)))
        ));
    };
    for (a, b) in net.links() {
        let what = format!("{} - {}", net.name(a), net.name(b));
        line(
            (places.switches[a as usize], places.switches[b as usize]),
            between.get(&(a, b)).copied().unwrap_or(0),
            &what,
        );
    }
    for h in &topology.hosts {
        let at = net.stands(h.id);
        if net.tier(at) != Tier::Server {
            let ends = (places.hosts[h.id.index()], places.switches[at as usize]);
            line(
                ends,
                of_hosts.get(&h.id.index()).copied().unwrap_or(0),
                &format!("{} - {}", topology.host_name(h.id), net.name(at)),
            );
        }
    }
}

/// Switches as boxes with their names, where they have room; servers that relay are drawn as hosts.
fn switches(sheet: &mut Sheet, net: &Switches, places: &Places) {
    for switch in (0..net.len() as u32).filter(|&s| net.tier(s) != Tier::Server) {
        let (x, y) = places.switches[switch as usize];
        let beside = places
            .switches
            .iter()
            .filter(|p| p.1 == y && p.0 != x)
            .map(|p| (p.0 - x).abs())
            .fold(f64::INFINITY, f64::min);
        let wide = (beside - 4.0).clamp(6.0, BOX.1);
        let shape = MarkShape::Rect((x - wide / 2.0, y - BOX.0 / 2.0), wide, BOX.0);
        sheet.fill(shape, Ink::WHITE).edged(Pen::new(GREYS.1, 1.0)).says(net.name(switch));
        if let Some(size) = font::fitting(net.name(switch), TEXT.0, wide - 3.0, TEXT.1) {
            sheet.text((x, y), size, Anchor::Middle, net.name(switch)).says(net.name(switch));
        }
    }
}

/// Hosts as squares above their tasks.
fn hosts(sheet: &mut Sheet, topology: &Topology, places: &Places, by_host: &Tasks) {
    for h in &topology.hosts {
        let (x, y) = places.hosts[h.id.index()];
        sheet
            .fill(MarkShape::Rect((x - 4.0, y - 4.0), 8.0, 8.0), GREYS.1)
            .says(topology.host_name(h.id));
        for (k, (receives, what)) in by_host.get(&h.id.index()).into_iter().flatten().enumerate() {
            let corner = (x - 4.5, y + 10.0 + TASK * k as f64);
            sheet.fill(MarkShape::Rect(corner, 9.0, 9.0), shade(*receives)).says(what.as_str());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::Units;
    use crate::placement::hit::plan::{HitPlanOptions, plan};

    #[test]
    fn every_task_switch_and_link_is_drawn() {
        for (file, links) in [("fat-tree-4", 32 + 16), ("bcube-64", 128)] {
            let path = format!("topologies/{file}.yaml");
            let t = crate::config::read_topology(&std::fs::read_to_string(&path).unwrap(), &path)
                .unwrap();
            let text = "name: x\njobs: [{name: 'a<b', maps: 6, map_time: 1s, shuffle: 60MB, reduces: 2, reduce_time: 1s}]";
            let jobs = crate::config::read_jobs(text, "f").unwrap();
            let net = Switches::new(&t, Units::default());
            let p = plan(
                &jobs.jobs[0],
                &t,
                &net,
                t.hosts.iter().map(|h| h.slots).collect(),
                HitPlanOptions::default(),
            )
            .unwrap();
            let svg = picture(&t, &net, &[(&jobs.jobs[0], &p)]).svg();
            let count = |what: &str| svg.matches(what).count();
            assert_eq!(count("<polyline "), links, "{file}");
            assert_eq!((count("#0072b2"), count("#e69f00"), count("a&lt;b")), (6, 2, 8));
            let switches = (0..net.len() as u32).filter(|&s| net.tier(s) != Tier::Server).count();
            assert_eq!(count("stroke=\"#333333\""), switches);
            let crosses = p.flows.iter().any(|f| !f.list.0.is_empty());
            assert_eq!(svg.contains("#d55e00"), crosses, "{file}: {:?}", p.flows);
            assert!(!svg.contains("NaN") && svg.ends_with("</svg>\n"));
        }
    }

    #[test]
    fn the_matrix_is_below_the_hosts_and_frames_where_tasks_go() {
        let path = "topologies/tree-64.yaml";
        let mut t =
            crate::config::read_topology(&std::fs::read_to_string(path).unwrap(), path).unwrap();
        t.hosts[5].slots = 0;
        let text = "name: x\njobs: [{name: one, maps: 6, map_time: 1s, shuffle: 60MB, reduces: 2, reduce_time: 1s}]";
        let jobs = crate::config::read_jobs(text, "f").unwrap();
        let net = Switches::new(&t, Units::default());
        let options = HitPlanOptions { matrix: true, ..HitPlanOptions::default() };
        let p = plan(&jobs.jobs[0], &t, &net, t.hosts.iter().map(|h| h.slots).collect(), options)
            .unwrap();
        let sheet = picture(&t, &net, &[(&jobs.jobs[0], &p)]);
        let svg = sheet.svg();
        assert_eq!(svg.matches("goes here").count(), 8);
        assert!(p.grades.len() == 2 && svg.matches("h1-1: no slot").count() == 8);
        for words in ["one, reduce by host", "one, map by host", " as planned", "saves ", "more"] {
            assert!(svg.contains(words), "{words}");
        }
        sheet.legible().unwrap();
        // A picture of many jobs says what it leaves out.
        let many = vec![(&jobs.jobs[0], &p); 300];
        assert!(picture(&t, &net, &many).svg().contains("--job draws one job"));
    }
}
