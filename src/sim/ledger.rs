//! The books: what was carried, by rack pair, by port and by coflow, in exact units.

use std::collections::{BTreeMap, BTreeSet};

use super::bundle::{BundleRoute, bytes};
use super::engine::InFlight;
use super::meter::Totals;
use super::table::CellTable;
use crate::coflows::RackBytes;
use crate::demand::DemandMatrix;
use crate::fabric::PortCounters;
use crate::ids::{CoflowId, RackId};
use crate::topology::Topology;
use crate::units::Bytes;

/// Payload of a full TCP segment, by which packets over circuits are estimated.
const SEGMENT: u64 = 1448;

/// A cumulative matrix in exact units, and in whole bytes, which are updated only where something
/// was added.
#[derive(Debug)]
struct CarriedBytes {
    units: CellTable<u128>,
    touched: Vec<usize>,
    is_touched: CellTable<bool>,
    bytes: DemandMatrix,
}

impl CarriedBytes {
    fn new(racks: usize) -> Self {
        Self {
            units: CellTable::new(racks),
            touched: Vec::new(),
            is_touched: CellTable::new(racks),
            bytes: DemandMatrix::zero(racks),
        }
    }

    fn add(&mut self, cell: usize, units: u128, beyond: u128) {
        if units != beyond {
            let sum = self.units.at(cell);
            *sum = *sum + units - beyond;
            if !std::mem::replace(self.is_touched.at(cell), true) {
                self.touched.push(cell);
            }
        }
    }

    fn read(&mut self) -> DemandMatrix {
        let (units, is_touched) = (&mut self.units, &mut self.is_touched);
        let fresh = self.touched.drain(..).map(|cell| {
            *is_touched.at(cell) = false;
            (cell, bytes(*units.at(cell)).0)
        });
        self.bytes.set_cells(fresh);
        self.bytes.clone()
    }
}

/// Work done by a coflow's ended flows.
#[derive(Debug, Default)]
struct EndedWork {
    open: usize,
    by_racks: BTreeMap<(RackId, RackId), u128>,
    /// Work of flows that ended since the last report, by rack pair.
    fresh: Vec<((RackId, RackId), u128)>,
    within: u128,
    /// Work between racks for which the pair of racks is not needed (any more).
    between: u128,
    over_ocs: u128,
}

impl EndedWork {
    /// Work between racks of ended flows of a coflow that has others.
    fn sum(&self) -> u128 {
        self.by_racks.values().sum::<u128>() + self.fresh.iter().map(|f| f.1).sum::<u128>()
    }
}

/// What a coflow has received so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoflowReceipt {
    /// All payload.
    pub bytes: Bytes,
    /// Part of it between racks.
    pub between_racks: Bytes,
    /// Part of it over circuits.
    pub over_ocs: Bytes,
}

impl CoflowReceipt {
    /// From work within racks, between racks, and over circuits.
    fn of(within: u128, between: u128, over_ocs: u128) -> Self {
        Self {
            bytes: bytes(within + between),
            between_racks: bytes(between),
            over_ocs: bytes(over_ocs),
        }
    }
}

/// All books.
#[derive(Debug)]
pub struct Ledger {
    racks: usize,
    /// Whether the pairs of racks of a coflow's bytes are kept, for [`Ledger::progress`].
    by_pair: bool,
    /// Bytes sent by rack pair, and over circuits, if they are counted.
    matrices: Option<[CarriedBytes; 2]>,
    /// By plane, then input.
    crossed: Vec<Vec<u128>>,
    totals: Totals,
    coflows: BTreeMap<CoflowId, EndedWork>,
    /// Coflows with active flows: few of all that ever arrived.
    open: BTreeSet<CoflowId>,
}

impl Ledger {
    /// Empty; `by_pair`: [`Ledger::progress`] will be called.
    pub fn new(topology: &Topology, by_pair: bool) -> Self {
        let racks = topology.rack_count();
        Self {
            racks,
            by_pair,
            matrices: None,
            crossed: vec![vec![0; racks]; topology.planes.len()],
            totals: Totals::new(topology),
            coflows: BTreeMap::new(),
            open: BTreeSet::new(),
        }
    }

    /// Counts bytes by rack pair from now on ([`Ledger::matrices`]); nothing must have been sent.
    pub fn count_pairs(&mut self) {
        self.matrices
            .get_or_insert_with(|| [CarriedBytes::new(self.racks), CarriedBytes::new(self.racks)]);
    }

    /// Whether bytes are counted by rack pair.
    pub fn counts_pairs(&self) -> bool {
        self.matrices.is_some()
    }

    /// Books `units` from rack to rack over this route, of which `beyond` were not wanted.
    pub fn carried(
        &mut self,
        racks: (RackId, RackId),
        route: BundleRoute,
        units: u128,
        beyond: u128,
    ) {
        let count = |total: &mut u128| *total = *total + units - beyond;
        match route {
            BundleRoute::Local => count(&mut self.totals.local),
            BundleRoute::Eps | BundleRoute::List(_) | BundleRoute::Wait => {
                count(&mut self.totals.up[racks.0.index()]);
                count(&mut self.totals.down[racks.1.index()]);
            }
            BundleRoute::Ocs(plane) => {
                count(&mut self.totals.planes[plane.index()]);
                count(&mut self.crossed[plane.index()][racks.0.index()]);
            }
        }
        if route != BundleRoute::Local {
            self.count_pair(racks, matches!(route, BundleRoute::Ocs(_)), units, beyond);
        }
    }

    /// Books work within racks, and from and to these racks over the EPS. [`Ledger::count_pair`]
    /// adds the pairs.
    pub fn carried_by_rack(
        &mut self,
        local: u128,
        up: impl Iterator<Item = (RackId, u128)>,
        down: impl Iterator<Item = (RackId, u128)>,
    ) {
        self.totals.local += local;
        up.for_each(|(rack, units)| self.totals.up[rack.index()] += units);
        down.for_each(|(rack, units)| self.totals.down[rack.index()] += units);
    }

    /// Adds work between two racks to the matrices, if these are kept.
    pub fn count_pair(
        &mut self,
        (from, to): (RackId, RackId),
        is_ocs: bool,
        units: u128,
        beyond: u128,
    ) {
        let Some([sent, over_ocs]) = &mut self.matrices else { return };
        let cell = from.index() * self.racks + to.index();
        sent.add(cell, units, beyond);
        if is_ocs {
            over_ocs.add(cell, units, beyond);
        }
    }

    /// What links have carried so far.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Adds an active flow to a coflow.
    pub fn open(&mut self, coflow: CoflowId) {
        let a = self.coflows.entry(coflow).or_default();
        a.open += 1;
        if a.open == 1 {
            self.open.insert(coflow);
        }
    }

    /// Adds this many active flows to a coflow.
    pub fn open_all(&mut self, coflow: CoflowId, flows: usize) {
        if flows > 0 {
            self.open(coflow);
            self.coflows.entry(coflow).or_default().open += flows - 1;
        }
    }

    /// Whether the pairs of racks of a coflow's bytes are kept.
    pub fn is_by_pair(&self) -> bool {
        self.by_pair
    }

    /// Closes this many flows of a coflow, with their work within racks and between racks, none of
    /// it over circuits. Not if pairs of racks are kept.
    pub fn close_all(&mut self, coflow: CoflowId, flows: usize, within: u128, between: u128) {
        debug_assert!(!self.by_pair);
        let a = self.coflows.entry(coflow).or_default();
        a.open -= flows;
        (a.within, a.between) = (a.within + within, a.between + between);
        if a.open == 0 {
            self.open.remove(&coflow);
        }
    }

    /// Closes a flow of a coflow.
    pub fn close(&mut self, coflow: CoflowId, racks: (RackId, RackId), size: u128, over_ocs: u128) {
        let a = self.coflows.entry(coflow).or_default();
        a.open -= 1;
        a.over_ocs += over_ocs;
        if racks.0 == racks.1 {
            a.within += size;
        } else if self.by_pair {
            a.fresh.push((racks, size));
        } else {
            a.between += size;
        }
        if a.open == 0 {
            self.open.remove(&coflow);
            a.between += a.sum();
            (a.by_racks, a.fresh) = (BTreeMap::new(), Vec::new());
        }
    }

    /// Coflows with active flows.
    pub fn underway(&self) -> impl Iterator<Item = CoflowId> {
        self.open.iter().copied()
    }

    /// Bytes sent by rack pair, and over circuits, if they are counted.
    pub fn matrices(&mut self) -> Option<(DemandMatrix, DemandMatrix)> {
        self.matrices.as_mut().map(|[sent, over_ocs]| (sent.read(), over_ocs.read()))
    }

    /// By plane, then rack.
    pub fn ports(&self) -> Vec<Vec<PortCounters>> {
        let port = |&units: &u128| {
            let crossed_bytes = bytes(units).0;
            PortCounters {
                crossed_packets: crossed_bytes.div_ceil(SEGMENT),
                crossed_bytes,
                ..PortCounters::default()
            }
        };
        self.crossed.iter().map(|p| p.iter().map(port).collect()).collect()
    }

    /// Bytes that these coflows, which are not done, have received by rack pair, cumulative; pairs
    /// without news are left out. `underway`: their active flows. O(F log F) for F of their flows
    /// that are active or ended since the last report.
    pub fn progress(
        &mut self,
        ids: &BTreeSet<CoflowId>,
        underway: impl Iterator<Item = ((RackId, RackId), InFlight)>,
    ) -> Vec<(CoflowId, Vec<RackBytes>)> {
        assert!(self.by_pair || ids.is_empty(), "what has arrived by pair was not kept");
        // By coflow. The parts of each come nearly in the order of rack pairs, which suits a stable
        // sort.
        let order: Vec<CoflowId> = ids.iter().copied().collect();
        let mut parts: Vec<Vec<((RackId, RackId), u128)>> = vec![Vec::new(); order.len()];
        for (racks, p) in underway.filter(|(r, _)| r.0 != r.1) {
            let k = order.binary_search(&p.coflow).expect("parts of these coflows only");
            parts[k].push((racks, p.sent));
        }
        let mut all = Vec::with_capacity(order.len());
        for (id, mut parts) in order.into_iter().zip(parts) {
            let a = self.coflows.get_mut(&id).expect("an open coflow has an account");
            for (racks, size) in a.fresh.drain(..) {
                *a.by_racks.entry(racks).or_default() += size;
                parts.push((racks, 0));
            }
            parts.sort_by_key(|p| p.0);
            let received = parts.chunk_by(|x, y| x.0 == y.0).map(|same| {
                let (from, to) = same[0].0;
                let whole = a.by_racks.get(&(from, to)).copied().unwrap_or(0);
                RackBytes { from, to, bytes: bytes(whole + same.iter().map(|p| p.1).sum::<u128>()) }
            });
            all.push((id, received.collect()));
        }
        all
    }

    /// What a coflow without active flows has received; it is forgotten then. O(log coflows).
    pub fn forget(&mut self, coflow: CoflowId) -> CoflowReceipt {
        let a = self.coflows.remove(&coflow).unwrap_or_default();
        debug_assert!(
            a.open == 0 && a.by_racks.is_empty() && a.fresh.is_empty(),
            "it has flows on their way"
        );
        CoflowReceipt::of(a.within, a.between, a.over_ocs)
    }

    /// What every coflow that was not forgotten has received.
    pub fn delivered(
        &self,
        underway: impl Iterator<Item = ((RackId, RackId), InFlight)>,
    ) -> BTreeMap<CoflowId, CoflowReceipt> {
        let mut units: BTreeMap<CoflowId, (u128, u128, u128)> = BTreeMap::new();
        for (&id, a) in &self.coflows {
            units.insert(id, (a.within, a.between + a.sum(), a.over_ocs));
        }
        for (racks, p) in underway {
            let (within, between, over) = units.entry(p.coflow).or_default();
            *(if racks.0 == racks.1 { within } else { between }) += p.sent;
            *over += p.over_ocs;
        }
        units
            .into_iter()
            .map(|(id, (within, between, over))| (id, CoflowReceipt::of(within, between, over)))
            .collect()
    }
}
