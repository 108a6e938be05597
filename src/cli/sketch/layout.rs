//! Where everything of a drawn network is, in pixels.

use std::collections::BTreeMap;

use crate::topology::graph::{Graph, Tier};
use crate::topology::links::LinkSpec;
use crate::topology::{Core, Topology};
use crate::units::{BitRate, Span};

/// The margin in which rows are named.
pub const LEFT: i32 = 210;
/// The other margins.
pub const MARGIN: i32 = 24;
/// Above the highest row.
const TOP: i32 = 84;
/// From one row of switches to the next, at least; on wide pages more, so that links stay steep
/// enough to be told apart.
const ROW: i32 = 120;
const HIGHEST_ROW: i32 = 260;
/// Height of a switch.
pub const BOX: i32 = 24;
/// Side of a host, and the space to the next.
pub const HOST: i32 = 11;
const SPACE: i32 = 3;
/// Within a rack's frame, and its name above the hosts.
pub const PAD: i32 = 7;
pub const NAME: i32 = 18;
/// From the racks to the first plane, and from plane to plane.
const PLANE: i32 = 64;
const PLANES: i32 = 40;
/// The narrowest page.
const NARROWEST: i32 = 900;

/// A switch: the middle of its box and its name.
pub struct SwitchBox {
    pub x: i32,
    pub y: i32,
    /// Width of its box.
    pub width: i32,
    pub name: String,
}

/// A link between two points.
pub struct DrawnLink {
    pub from: (i32, i32),
    pub to: (i32, i32),
    pub rate: BitRate,
}

/// A frame with hosts.
pub struct RackFrame {
    pub left: i32,
    pub top: i32,
    pub hosts: u32,
}

/// An optical plane: a bar below the racks.
pub struct PlaneBar {
    pub top: i32,
    pub text: String,
}

/// Text in the margin: the height of its middle, and its lines.
pub struct MarginNote {
    pub y: i32,
    pub lines: Vec<String>,
}

/// A page.
pub struct SketchLayout {
    pub size: (u32, u32),
    /// From one row of switches to the next.
    row: i32,
    pub title: String,
    pub nodes: Vec<SwitchBox>,
    /// Of the packet network.
    pub cables: Vec<DrawnLink>,
    /// To optical planes.
    pub fibres: Vec<DrawnLink>,
    pub racks: Vec<RackFrame>,
    /// Width and height of every rack's frame, and the number of hosts side by side.
    pub frame: (i32, i32),
    pub columns: i32,
    pub bars: Vec<PlaneBar>,
    pub notes: Vec<MarginNote>,
}

/// A row of switches, and for each, the name and those of the rows before (or racks) that it is
/// joined with.
struct SwitchRow {
    label: String,
    switches: Vec<(u32, String)>,
}

/// Links between rows as numbers of switches; racks are not among them.
struct SwitchRows {
    /// From the racks upwards.
    rows: Vec<SwitchRow>,
    cables: Vec<(u32, u32, BitRate, LinkSpec)>,
    /// By rack: its switch.
    stands: Vec<u32>,
    /// Whether racks are switches themselves (BCube), so that they have no uplinks of their own.
    relay: bool,
}

impl SketchLayout {
    /// The page of a network.
    pub fn new(t: &Topology) -> Self {
        let switches = SwitchRows::of(t);
        let most = t.racks.iter().map(|r| r.hosts as i32).max().unwrap_or(1);
        let columns =
            if most <= 4 { most } else { (1..).find(|c| c * c * 2 >= most * 3).unwrap_or(most) };
        let rows_of_hosts = (most + columns - 1) / columns;
        let frame = (
            columns * (HOST + SPACE) - SPACE + 2 * PAD,
            NAME + rows_of_hosts * (HOST + SPACE) - SPACE + PAD,
        );
        let racks = t.rack_count() as i32;
        let frame = (frame.0.max(24), frame.1);
        let cell = (frame.0 + 10).max((NARROWEST - LEFT - MARGIN) / racks.max(1));
        let width = LEFT + cell * racks + MARGIN;
        let row = (width / 9).clamp(ROW, HIGHEST_ROW);
        let top = TOP + row * switches.rows.len() as i32;
        let left = |r: usize| LEFT + cell * r as i32 + (cell - frame.0) / 2;
        let mut page = Self {
            size: (width as u32, 0),
            row,
            title: title(t),
            nodes: vec![],
            cables: vec![],
            fibres: vec![],
            racks: t
                .racks
                .iter()
                .map(|r| RackFrame { left: left(r.id.index()), top, hosts: r.hosts })
                .collect(),
            frame,
            columns,
            bars: vec![],
            notes: vec![],
        };
        page.place(&switches, t, cell);
        page.planes(t, cell);
        let lowest = page.bars.last().map_or(top + frame.1, |b| b.top + BOX);
        page.size.1 = (lowest + MARGIN) as u32;
        page
    }

    /// The middle of a rack's frame.
    fn middle(&self, rack: usize) -> i32 {
        self.racks[rack].left + self.frame.0 / 2
    }

    /// The switches, row by row from the racks upwards: each over the middle of what it joins
    /// below, as far as neighbours let it.
    fn place(&mut self, s: &SwitchRows, t: &Topology, cell: i32) {
        let mut at: BTreeMap<u32, (i32, i32)> = BTreeMap::new();
        if s.relay {
            at.extend(
                s.stands
                    .iter()
                    .enumerate()
                    .map(|(r, &k)| (k, (self.middle(r), self.racks[r].top + BOX / 2))),
            );
        }
        let width = cell * t.rack_count() as i32;
        for (k, row) in s.rows.iter().enumerate() {
            let y = TOP + self.row * (s.rows.len() - 1 - k) as i32 + BOX / 2;
            let mut order: Vec<(i64, u32, &str)> = row
                .switches
                .iter()
                .map(|(n, name)| (self.over(*n, s, &at), *n, name.as_str()))
                .collect();
            order.sort_unstable();
            let each = width / order.len().max(1) as i32;
            for (place, (_, number, name)) in order.into_iter().enumerate() {
                let x = LEFT + width * (2 * place as i32 + 1) / (2 * row.switches.len() as i32);
                let wide =
                    if s.is_one() { width } else { (name.len() as i32 * 8 + 16).min(each - 6) };
                self.nodes.push(SwitchBox { x, y, width: wide.max(8), name: name.into() });
                at.insert(number, (x, y));
            }
            self.notes.push(MarginNote { y, lines: vec![row.label.clone()] });
        }
        self.join(s, t, &at);
    }

    /// The mean place of what a switch joins and has one.
    fn over(&self, switch: u32, s: &SwitchRows, at: &BTreeMap<u32, (i32, i32)>) -> i64 {
        let racks = s
            .stands
            .iter()
            .enumerate()
            .filter(|(_, stand)| **stand == switch)
            .map(|(r, _)| i64::from(self.middle(r)));
        let ends = s
            .cables
            .iter()
            .filter_map(|&(a, b, ..)| (a == switch).then_some(b).or((b == switch).then_some(a)));
        let all: Vec<i64> =
            racks.chain(ends.filter_map(|e| at.get(&e)).map(|p| i64::from(p.0))).collect();
        all.iter().sum::<i64>() / (all.len() as i64).max(1)
    }

    /// Links between switches, uplinks, and what the margin says of them.
    fn join(&mut self, s: &SwitchRows, t: &Topology, at: &BTreeMap<u32, (i32, i32)>) {
        // By the height below their upper end: how many links of a rate there are, and what else
        // they do.
        let mut bands: BTreeMap<i32, BTreeMap<(BitRate, String), usize>> = BTreeMap::new();
        for &(a, b, rate, spec) in &s.cables {
            let (mut from, mut to) = (at[&a], at[&b]);
            if from.1 < to.1 {
                std::mem::swap(&mut from, &mut to);
            }
            let upper = to.1 + BOX / 2;
            let line = DrawnLink {
                from: (from.0, (from.1 - BOX / 2).max(upper)),
                to: (to.0, upper),
                rate,
            };
            *bands
                .entry(upper + (self.row - BOX) / 2)
                .or_default()
                .entry((rate, also(&spec)))
                .or_default() += 1;
            self.cables.push(line);
        }
        if !s.relay {
            for (r, stand) in s.stands.iter().enumerate() {
                let to = at[stand];
                let line = DrawnLink {
                    from: (self.middle(r), self.racks[r].top),
                    to: (to.0, to.1 + BOX / 2),
                    rate: t.racks[r].uplink,
                };
                // One wide switch is reached straight up.
                let line = if s.is_one() {
                    DrawnLink { to: (line.from.0, line.to.1), ..line }
                } else {
                    line
                };
                *bands
                    .entry(line.to.1 + (self.row - BOX) / 2)
                    .or_default()
                    .entry((line.rate, also(&t.links.uplink)))
                    .or_default() += 1;
                self.cables.push(line);
            }
        }
        self.notes.extend(bands.into_iter().map(|(y, kinds)| MarginNote {
            y,
            lines: kinds.into_iter().flat_map(links).collect(),
        }));
        let nics: BTreeMap<(BitRate, String), usize> =
            t.hosts.iter().fold(BTreeMap::new(), |mut all, h| {
                *all.entry((h.nic, also(&t.links.nic))).or_default() += 1;
                all
            });
        let of = |((rate, also), n): ((BitRate, String), usize)| {
            std::iter::once(format!("{n} hosts, NICs of {rate}")).chain(says(also))
        };
        let y = self.racks.first().map_or(0, |r| r.top) + self.frame.1 / 2;
        self.notes.push(MarginNote { y, lines: nics.into_iter().flat_map(of).collect() });
    }

    fn planes(&mut self, t: &Topology, cell: i32) {
        let bottom = self.racks.first().map_or(0, |r| r.top) + self.frame.1;
        let many = t.planes.len() as i32;
        let step =
            if many > 1 { (self.frame.0.min(cell) - 8).max(1) / (many - 1).max(1) } else { 0 }
                .min(8);
        for (p, plane) in t.planes.iter().enumerate() {
            let top = bottom + PLANE + PLANES * p as i32;
            let aside = step * p as i32 - step * (many - 1) / 2;
            let lines = (0..t.rack_count()).map(|r| {
                let x = self.middle(r) + aside;
                DrawnLink { from: (x, bottom), to: (x, top), rate: plane.rate }
            });
            self.fibres.extend(lines.collect::<Vec<_>>());
            self.bars.push(PlaneBar { top, text: format!("OCS {p}") });
            let lines = vec![format!("circuits of {}, {} dark", plane.rate, plane.delta)];
            self.notes.push(MarginNote {
                y: top + BOX / 2,
                lines: lines.into_iter().chain(says(also(&t.links.ocs))).collect(),
            });
        }
    }
}

fn title(t: &Topology) -> String {
    let switches = t.eps.graph().map_or(String::new(), |g| {
        let own = g.switches.iter().filter(|s| s.tier != Tier::Server).count();
        format!(", {own} packet switches, {} links between them", g.cables.len())
    });
    let planes = match t.planes.len() {
        0 => String::new(),
        1 => ", an optical plane".into(),
        n => format!(", {n} optical planes"),
    };
    format!("{}: {} racks, {} hosts{switches}{planes}", t.name, t.rack_count(), t.hosts.len())
}

fn links(((rate, also), n): ((BitRate, String), usize)) -> impl Iterator<Item = String> {
    let links = if n == 1 { "link" } else { "links" };
    std::iter::once(format!("{n} {links} of {rate}")).chain(says(also))
}

/// A line of its own for what links do beside their rates, if they do.
fn says(also: String) -> Option<String> {
    (!also.is_empty()).then_some(also)
}

/// What links do beside their rates.
fn also(spec: &LinkSpec) -> String {
    let buffer = spec.buffer.map(|b| format!("buffer {b}"));
    let ecn = spec.ecn.map(|b| format!("ecn {b}"));
    let delay = (spec.delay > Span::ZERO).then(|| format!("delay {}", spec.delay));
    let loss = (spec.loss.0 > 0).then(|| format!("loss {}", spec.loss));
    [buffer, ecn, delay, loss].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

impl SwitchRows {
    fn of(t: &Topology) -> Self {
        let (racks, plain) = (t.rack_count(), LinkSpec::default());
        match &t.eps.core {
            Core::Graph(g) => Self::graph(g, t),
            Core::Flat(rate) => {
                let row =
                    SwitchRow { label: String::new(), switches: vec![(0, core("EPS", *rate))] };
                Self { rows: vec![row], cables: vec![], stands: vec![0; racks], relay: false }
            }
            Core::Pods(pods, rate) => {
                let of = |r: usize| r as u32 / pods.racks.max(1);
                let n = of(racks.saturating_sub(1)) + 1;
                let tier = SwitchRow {
                    label: "pods".into(),
                    switches: (0..n).map(|p| (p, format!("pod{p}"))).collect(),
                };
                let top =
                    SwitchRow { label: String::new(), switches: vec![(n, core("core", *rate))] };
                let cables = (0..n).map(|p| (p, n, pods.uplink, plain)).collect();
                Self {
                    rows: vec![tier, top],
                    cables,
                    stands: (0..racks).map(of).collect(),
                    relay: false,
                }
            }
        }
    }

    /// Whether there is one switch only: it is drawn as wide as the page.
    fn is_one(&self) -> bool {
        self.rows.len() == 1 && self.rows[0].switches.len() == 1
    }

    fn graph(g: &Graph, t: &Topology) -> Self {
        let relay = g.racks.iter().all(|&s| g.switches[s as usize].tier == Tier::Server);
        let mut rows: BTreeMap<(Tier, usize), Vec<(u32, String)>> = BTreeMap::new();
        for (k, s) in
            g.switches.iter().enumerate().filter(|(_, s)| !(relay && s.tier == Tier::Server))
        {
            let name = s.rate.map_or(s.name.clone(), |rate| format!("{} ({rate})", s.name));
            rows.entry((s.tier, level(g, k as u32))).or_default().push((k as u32, name));
        }
        let levels = rows.keys().filter(|k| k.0 == Tier::Access).count();
        let label = |(tier, level): (Tier, usize)| match tier {
            Tier::Access if levels > 1 => format!("level {level}"),
            Tier::Server => "servers".into(),
            Tier::Access => "access".into(),
            Tier::Aggregation => "aggregation".into(),
            Tier::Core => "core".into(),
        };
        let rows = rows
            .into_iter()
            .map(|(key, switches)| SwitchRow { label: label(key), switches })
            .collect();
        let cables =
            g.cables.iter().map(|c| (c.ends.0, c.ends.1, c.rate, t.links.cable(g, c))).collect();
        Self { rows, cables, stands: g.racks.clone(), relay }
    }
}

/// A switch's level among those of its servers (BCube): its place among the switches of the first
/// server, by number; 0 where no servers relay.
fn level(g: &Graph, switch: u32) -> usize {
    let far = |of: u32| {
        g.cables.iter().filter_map(move |c| {
            (c.ends.0 == of).then_some(c.ends.1).or((c.ends.1 == of).then_some(c.ends.0))
        })
    };
    let server = far(switch).find(|&s| g.switches[s as usize].tier == Tier::Server);
    server.map_or(0, |server| far(server).filter(|&s| s < switch).count())
}

fn core(name: &str, rate: Option<BitRate>) -> String {
    rate.map_or(name.into(), |rate| format!("{name} ({rate} in all)"))
}
