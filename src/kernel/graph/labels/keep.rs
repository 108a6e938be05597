//! Comparing the programs' arrays with what was written into them: another process of root may
//! write into them too.

use std::ops::Range;
use std::sync::atomic::Ordering::{Relaxed, Release};

use super::{Labels, write};
use crate::bpf::switches::{self, FLOWS, HOPS};
use crate::fabric::Damage;
use crate::ids::HostId;
use crate::plan::paths::PathEnds;

/// Cells of pairs, and as many cells of paths, that one call compares, in well below a millisecond:
/// in one call all of a network of up to 256 hosts in up to 64 racks.
const CELLS: usize = 1 << 16;

/// Where the next call goes on.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeepCursor {
    pair: usize,
    path: u32,
}

impl Labels {
    /// Compares the arrays with what was written into them, and writes again what differs. Networks
    /// whose arrays are larger than `CELLS` take several calls for a round.
    pub fn keep(&mut self) -> Vec<Damage> {
        let mut wrong = self.keep_paths();
        wrong.extend(self.keep_pairs());
        wrong.extend(self.keep_flows());
        let told = |what| Damage {
            what: format!("{what} was changed in the programs' array, and has been written again"),
            ..Damage::default()
        };
        wrong.into_iter().map(told).collect()
    }

    /// Records of paths; those of numbers that no path has are not read by any program.
    fn keep_paths(&mut self) -> Vec<String> {
        let mut wrong = vec![];
        let round = self.book.held.range(self.compared.path..).take(CELLS / HOPS);
        let mut last = None;
        for (&number, held) in round {
            last = Some(number);
            let cell = |k: usize| self.arrays.paths.cell(number as usize, k).load(Relaxed);
            if (0..HOPS).any(|k| cell(k) != held.record.get(k).map_or(0, |e| e.cell())) {
                write(&self.arrays, number, &held.record);
                wrong.push(format!("path {number}"));
            }
        }
        self.compared.path = last.map_or(0, |n| n + 1);
        wrong
    }

    fn keep_pairs(&mut self) -> Vec<String> {
        let window = next(&mut self.compared.pair, self.arrays.pairs.len());
        let mut given = self.given.range(window.clone()).peekable();
        let mut wrong = vec![];
        for at in window {
            let right = given.next_if(|(place, _)| **place == at).map_or(0, |(_, cell)| *cell);
            let cell = self.arrays.pairs.cell(at, 0);
            if cell.load(Relaxed) != right {
                cell.store(right, Release);
                wrong.push(self.pair_at(at));
            }
        }
        wrong
    }

    /// Cells of sets that pairs have; the others are not read by any program.
    fn keep_flows(&self) -> Vec<String> {
        let mut wrong = vec![];
        for (&hosts, (set, flows)) in &self.sets.by_pair {
            let mut right = [0; FLOWS];
            for (&ports, &k) in flows {
                let number = self.numbers.get(&PathEnds { ports: Some(ports), ..hosts.into() });
                right[k] = number.map_or(0, |&n| switches::flow_cell(ports, n));
            }
            for (k, right) in right.into_iter().enumerate() {
                let cell = self.arrays.flows.cell(*set, k);
                if cell.load(Relaxed) != right {
                    cell.store(right, Release);
                    wrong.push(format!(
                        "the path of a flow from {} to {}",
                        self.host(hosts.0),
                        self.host(hosts.1)
                    ));
                }
            }
        }
        wrong
    }

    fn host(&self, id: HostId) -> String {
        let (rack, k) = self.places[id.index()];
        format!("h{rack}-{k}")
    }

    /// What a cell of `pairs` is about, in words.
    fn pair_at(&self, at: usize) -> String {
        let (all, each) = (self.arrays.racks * self.arrays.places, self.arrays.places);
        let name = |place: usize| format!("h{}-{}", place / each, place % each);
        format!("the path from {} to {}", name(at / all), name(at % all))
    }
}

/// The places that are compared now of `all`; where that ends is where the next call begins.
fn next(place: &mut usize, all: usize) -> Range<usize> {
    let from = *place;
    let to = (from + CELLS).min(all);
    *place = if to == all { 0 } else { to };
    from..to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_its_turn() {
        let mut place = 0;
        let turns: Vec<Range<usize>> = (0..4).map(|_| next(&mut place, 2 * CELLS + 5)).collect();
        assert_eq!(turns, [0..CELLS, CELLS..2 * CELLS, 2 * CELLS..2 * CELLS + 5, 0..CELLS]);
        assert_eq!(next(&mut 0, 9), 0..9);
    }
}
