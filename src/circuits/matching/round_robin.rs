//! Round robin: a fixed rotation that is blind to demand, as a rotor switch does it.

use super::{mirrored, usable_pair};
use crate::ids::RackId;
use crate::{Ask, Decision, Matching, Scheduler, steps};

/// Joins every input `i` to output `i + shift`, with the shift growing by one each round: after
/// `R - 1` rounds every ordered pair of racks has been joined exactly once.
///
/// # Arguments
/// - `racks`: R; a single rack has no circuit.
/// - `round`: any number; rounds repeat after `R - 1`.
///
/// # Complexity
/// O(R).
///
/// # Example
/// ```
/// use heliostat_circuits::{Matching, matching::round_robin};
/// assert_eq!(round_robin(3, 1), Matching::from_pairs(3, [(0, 2), (1, 0), (2, 1)]));
/// ```
///
/// # Source
/// RotorNet (Mellette et al., SIGCOMM 2017), section 3: its switches. Its indirection (what finds
/// no circuit goes over a second rack) is not there, so that skewed demand gets no more than 1 /
/// (R - 1) of a port.
pub fn round_robin(racks: usize, round: u64) -> Matching {
    if racks < 2 {
        return Matching::empty(racks);
    }
    let shift = (round % (racks as u64 - 1)) as usize + 1;
    Matching { out: (0..racks).map(|i| Some(RackId::from((i + shift) % racks))).collect() }
}

/// The duplex rotation: a round-robin tournament (a 1-factorisation of the complete graph by the
/// circle method). Over `R - 1` rounds (R rounds, with one rack resting in each, when R is odd)
/// every pair meets exactly once. O(R).
///
/// ```
/// use heliostat_circuits::{Matching, matching::tournament};
/// assert_eq!(tournament(4, 0), Matching::from_pairs(4, [(0, 3), (3, 0), (1, 2), (2, 1)]));
/// ```
pub fn tournament(racks: usize, round: u64) -> Matching {
    if racks < 2 {
        return Matching::empty(racks);
    }
    let seats = racks + racks % 2;
    let circle = seats - 1;
    let turn = (round % circle as u64) as usize;
    // The last seat stays; the others turn around it and meet the seat opposite. An odd field
    // leaves the last seat empty.
    let mut mate = vec![None; racks];
    let seat = |k: usize| (k + turn) % circle;
    let mut meet = |a: usize, b: usize| {
        if a < racks && b < racks {
            mate[a] = Some(RackId::from(b));
            mate[b] = Some(RackId::from(a));
        }
    };
    meet(seat(0), circle);
    for k in 1..seats / 2 {
        meet(seat(k), seat(circle - k));
    }
    mirrored(mate)
}

/// Rounds until the rotation of `racks` racks repeats.
pub fn rounds(racks: usize, duplex: bool) -> u64 {
    match racks {
        0..2 => 1,
        r if duplex && r % 2 == 1 => r as u64,
        r => r as u64 - 1,
    }
}

/// One round an interval; several planes are spread evenly over the rotation. Pairs with a port
/// that is not usable rest.
pub struct RoundRobin;

impl Scheduler for RoundRobin {
    fn decide(&mut self, ask: &Ask) -> Decision {
        let racks = ask.demand.racks();
        Decision::hold(ask.planes.iter().enumerate().map(|(p, plane)| {
            let spread = rounds(racks, plane.duplex) * p as u64 / ask.planes.len() as u64;
            steps::count(1);
            let round = ask.cycle.wrapping_add(spread);
            let mut m =
                if plane.duplex { tournament(racks, round) } else { round_robin(racks, round) };
            for (i, o) in m.out.iter_mut().enumerate() {
                *o = o.filter(|&j| usable_pair(&ask.usable[p], plane.duplex, RackId::from(i), j));
            }
            m
        }))
    }
    fn rests(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ordered_pair_meets_exactly_once() {
        for racks in 0..14 {
            for (duplex, f) in
                [(false, round_robin as fn(usize, u64) -> Matching), (true, tournament)]
            {
                let mut met = vec![0; racks * racks];
                for k in 0..rounds(racks, duplex) {
                    let m = f(racks, k);
                    assert_eq!(
                        Matching::from_pairs(racks, m.pairs().map(|(i, j)| (i.index(), j.index()))),
                        m
                    );
                    for (i, j) in m.pairs() {
                        met[i.index() * racks + j.index()] += 1;
                        assert!(!duplex || m.output(j) == Some(i));
                    }
                }
                for (k, n) in met.into_iter().enumerate() {
                    assert_eq!(
                        n,
                        i32::from(k / racks != k % racks),
                        "{racks} racks, duplex {duplex}"
                    );
                }
            }
        }
    }
}
