//! Preemptive optimal clearance: an open shop that never lets its busiest ports rest.

use super::{busiest, light, sequences};
use crate::demand::DemandMatrix;
use crate::ids::RackId;
use crate::topology::Plane;
use crate::units::{BitRate, Span};
use crate::{Ask, Decision, Matching, Scheduler, Slot, steps};

/// No row or column.
const NONE: u32 = u32::MAX;

/// Configurations that serve all of `demand`, with light in sum equal to the busiest port's: the
/// optimum when delta is 0.
///
/// A port whose rest equals the time that is left is tight: it must not rest. Each configuration
/// joins every tight port (a matching like this always exists). It keeps the circuits of the one
/// before where it can, and adds the thickest cells that are still free. It lasts until a cell is
/// empty or another port becomes tight. Nothing is stuffed, so no circuit is set for nothing.
///
/// # Arguments
/// Those of [`super::bvn()`].
///
/// # Complexity
/// At most E + 2R configurations for E cells; O(R E) each at worst for the tight ports, O(E log E)
/// for the others.
///
/// # Example
/// ```
/// use heliostat_circuits::{decompose::clearance, demand::DemandMatrix, units::{BitRate, Span}};
/// let d = DemandMatrix::from_rows(&[&[0, 3, 2], &[1, 0, 0], &[0, 2, 0]]);
/// let slots = clearance(&d, BitRate(8_000_000_000), Span::MAX); // a byte a nanosecond
/// assert_eq!(slots.iter().map(|s| s.hold.unwrap().0).sum::<u64>(), 5);
/// ```
///
/// # Source
/// T. Gonzalez and S. Sahni, *Open shop scheduling to minimize finish time*, J. ACM 23 (1976),
/// section 3; T. Inukai, *An efficient SS/TDMA time slot assignment algorithm*, IEEE Trans.
/// Communications 27 (1979).
pub fn clearance(demand: &DemandMatrix, rate: BitRate, window: Span) -> Vec<Slot> {
    let need = light(demand, rate);
    super::bvn::within(window, Shop::new(&need))
}

/// What is left to be served, and the matching of the last configuration.
struct Shop {
    n: usize,
    rest: DemandMatrix,
    rows: Vec<u64>,
    columns: Vec<u64>,
    /// Time left.
    left: u64,
    column: Vec<u32>,
    row: Vec<u32>,
}

impl Iterator for Shop {
    type Item = Slot;
    fn next(&mut self) -> Option<Slot> {
        if self.left == 0 {
            return None;
        }
        for p in 0..self.n as u32 {
            if self.rows[p as usize] == self.left && self.column[p as usize] == NONE {
                self.cover(p, false);
            }
            if self.columns[p as usize] == self.left && self.row[p as usize] == NONE {
                self.cover(p, true);
            }
        }
        self.add_free();
        Some(self.serve())
    }
}

impl Shop {
    fn new(need: &DemandMatrix) -> Self {
        let n = need.racks();
        let (mut rows, mut columns) = (vec![0; n], vec![0; n]);
        for (i, j, x) in need.entries() {
            rows[i.index()] += x;
            columns[j.index()] += x;
        }
        Self {
            n,
            rest: need.clone(),
            rows,
            columns,
            left: busiest(need),
            column: vec![NONE; n],
            row: vec![NONE; n],
        }
    }

    fn rest(&self, near: u32, far: u32, from_output: bool) -> u64 {
        let (i, j) = if from_output { (far, near) } else { (near, far) };
        self.rest.get(RackId(i), RackId(j))
    }

    /// Joins the tight port `p` (an output if `from_output`) along an alternating path. The path
    /// ends at a free port of the other side, or at a port of its own side that is not tight, which
    /// gives way. Ports of the other side that are joined stay so: what is covered stays.
    fn cover(&mut self, p: u32, from_output: bool) {
        let (own, other) =
            if from_output { (&self.row, &self.column) } else { (&self.column, &self.row) };
        let sums = if from_output { &self.columns } else { &self.rows };
        let mut from = vec![NONE; self.n];
        let mut queue = vec![p];
        let mut k = 0;
        let end = 'found: loop {
            steps::count(1);
            let near = queue[k];
            k += 1;
            for far in 0..self.n as u32 {
                if from[far as usize] != NONE
                    || own[near as usize] == far
                    || self.rest(near, far, from_output) == 0
                {
                    continue;
                }
                from[far as usize] = near;
                let mate = other[far as usize];
                if mate == NONE || sums[mate as usize] < self.left {
                    break 'found far;
                }
                queue.push(mate);
            }
            // A port without demand is never tight, and tight ports always have a path like this
            // (Hall, Mendelsohn and Dulmage).
            debug_assert!(k < queue.len(), "tight ports can be joined all at once");
        };
        let (own, other) = if from_output {
            (&mut self.row, &mut self.column)
        } else {
            (&mut self.column, &mut self.row)
        };
        let gives_way = other[end as usize];
        if gives_way != NONE {
            own[gives_way as usize] = NONE;
        }
        let mut far = end;
        loop {
            let near = from[far as usize];
            let before = std::mem::replace(&mut own[near as usize], far);
            other[far as usize] = near;
            if near == p {
                return;
            }
            far = before;
        }
    }

    /// Joins free ports, thickest cells first.
    fn add_free(&mut self) {
        steps::count(self.n);
        let free = |(i, j, _): &(RackId, RackId, u64)| {
            self.column[i.index()] == NONE && self.row[j.index()] == NONE
        };
        let mut cells: Vec<(RackId, RackId, u64)> = self.rest.entries().filter(free).collect();
        cells.sort_unstable_by(|a, b| b.2.cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1))));
        for (i, j, _) in cells {
            if self.column[i.index()] == NONE && self.row[j.index()] == NONE {
                (self.column[i.index()], self.row[j.index()]) = (j.0, i.0);
            }
        }
    }

    /// Holds the matching until a cell is empty, or a port that rests becomes tight.
    fn serve(&mut self) -> Slot {
        let mut time = self.left;
        for p in 0..self.n {
            let (i, j) = (RackId::from(p), self.column[p]);
            time = time.min(if j == NONE {
                self.left - self.rows[p]
            } else {
                self.rest.get(i, RackId(j))
            });
            if self.row[p] == NONE {
                time = time.min(self.left - self.columns[p]);
            }
        }
        let mut matching = Matching::empty(self.n);
        for i in (0..self.n).map(RackId::from) {
            let j = self.column[i.index()];
            if j == NONE {
                continue;
            }
            matching.out[i.index()] = Some(RackId(j));
            let rest = self.rest.get(i, RackId(j)) - time;
            self.rest.set(i, RackId(j), rest);
            self.rows[i.index()] -= time;
            self.columns[j as usize] -= time;
            if rest == 0 {
                (self.column[i.index()], self.row[j as usize]) = (NONE, NONE);
            }
        }
        self.left -= time;
        Slot { matching, hold: Some(Span(time)) }
    }
}

/// [`clearance()`] every interval, as far as it goes.
pub struct Clearance;

impl Scheduler for Clearance {
    fn decide(&mut self, ask: &Ask) -> Decision {
        sequences(ask, |demand, plane| clearance(demand, plane.rate, ask.interval))
    }
    fn plans_ahead(&self, plane: &Plane) -> bool {
        !plane.duplex
    }
}
