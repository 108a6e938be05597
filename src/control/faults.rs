//! What circuit probes prove about ports: which are faulty, and why.
//!
//! A probe tries a pair of ports, an input and an output; when it fails, either may be the cause. A
//! circuit counts as failed when two of its probes in a row have failed. On a busy machine a single
//! one may be late, and to give up a good port for that is worse than to find a broken one some
//! milliseconds later. The smallest number of ports that explains the failed circuits is blamed,
//! greedily. First comes the port that most of them share; among equals the one that is their input
//! more often, then the one of the smallest number. So a broken output costs its own port in the
//! end, not those of all that probed it: blame moves as soon as a second circuit to it has failed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{PlaneId, RackId};

/// Number of failed probes in a row that make a circuit a failed one.
const IN_A_ROW: u32 = 2;

/// A port of a plane: the input and the output of one rack.
pub type PlanePort = (PlaneId, RackId);

#[derive(Clone, Debug)]
struct Failing {
    times: u32,
    why: String,
}

/// What became of the blame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlameChanges {
    /// Faulty from now on, and why.
    pub faulty: Vec<(PlanePort, String)>,
    /// Ports that are not blamed any more.
    pub cleared: Vec<PlanePort>,
}

/// What probes found so far.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// By plane, input and output: circuits whose last probe failed.
    failing: BTreeMap<(PlaneId, RackId, RackId), Failing>,
    faulty: BTreeMap<PlanePort, String>,
    /// Ports that carry nothing, as the fabric says, and why.
    down: BTreeMap<PlanePort, String>,
}

impl Faults {
    /// Ports that are faulty or carry nothing, each once.
    pub fn ports(&self) -> impl Iterator<Item = PlanePort> + '_ {
        self.faulty.keys().chain(self.down.keys().filter(|p| !self.faulty.contains_key(p))).copied()
    }

    /// Why a port is faulty.
    pub fn why(&self, port: PlanePort) -> Option<&str> {
        self.why_down(port).or_else(|| self.faulty.get(&port).map(String::as_str))
    }

    /// Why a port carries nothing, as the fabric says.
    pub fn why_down(&self, port: PlanePort) -> Option<&str> {
        self.down.get(&port).map(String::as_str)
    }

    /// The fabric says which ports carry nothing. What probes found at those that do again is
    /// forgotten.
    pub fn down(&mut self, down: BTreeMap<PlanePort, String>) -> BlameChanges {
        if self.down == down {
            return BlameChanges::default();
        }
        let had: BTreeSet<PlanePort> = self.ports().collect();
        let up: BTreeSet<PlanePort> =
            self.down.keys().filter(|p| !down.contains_key(p)).copied().collect();
        self.down = down;
        self.failing.retain(|&(p, i, o), _| !up.contains(&(p, i)) && !up.contains(&(p, o)));
        self.blame();
        let has: BTreeSet<PlanePort> = self.ports().collect();
        let why = |p: &PlanePort| (*p, self.why(*p).unwrap_or_default().to_owned());
        BlameChanges {
            faulty: has.difference(&had).map(why).collect(),
            cleared: had.difference(&has).copied().collect(),
        }
    }

    /// A probe from `input` came out at `output` as it should.
    pub fn passed(&mut self, plane: PlaneId, input: RackId, output: RackId) -> BlameChanges {
        match self.failing.remove(&(plane, input, output)) {
            Some(f) if f.times >= IN_A_ROW => self.blame(),
            _ => BlameChanges::default(),
        }
    }

    /// A probe from `input` did not come out at `output`. `None`: it should be repeated before a
    /// port is blamed.
    pub fn failed(
        &mut self,
        plane: PlaneId,
        input: RackId,
        output: RackId,
        why: String,
    ) -> Option<BlameChanges> {
        let f = self
            .failing
            .entry((plane, input, output))
            .or_insert(Failing { times: 0, why: String::new() });
        f.times = f.times.saturating_add(1);
        f.why = why;
        (f.times >= IN_A_ROW).then(|| self.blame())
    }

    /// Forgets what was found at a port; `None` if it is not faulty. Ports blamed for the same
    /// circuits may be cleared with it.
    pub fn repaired(&mut self, (plane, rack): PlanePort) -> Option<BlameChanges> {
        self.faulty.get(&(plane, rack))?;
        self.failing.retain(|&(p, i, o), _| p != plane || (i != rack && o != rack));
        Some(self.blame())
    }

    /// Finds again which ports are to blame: O(F^2) for F failed circuits.
    fn blame(&mut self) -> BlameChanges {
        let failed = self.failing.iter().filter(|f| f.1.times >= IN_A_ROW);
        let mut left: Vec<((PlaneId, RackId, RackId), &str)> =
            failed.map(|(&k, f)| (k, f.why.as_str())).collect();
        let mut now: BTreeMap<PlanePort, String> = BTreeMap::new();
        while !left.is_empty() {
            let mut shares: BTreeMap<PlanePort, (usize, usize)> = BTreeMap::new();
            for &((p, i, o), _) in &left {
                let input = shares.entry((p, i)).or_default();
                *input = (input.0 + 1, input.1 + 1);
                shares.entry((p, o)).or_default().0 += 1;
            }
            let (&port, _) = shares
                .iter()
                .max_by_key(|(port, share)| (**share, Reverse(**port)))
                .expect("a circuit has two ports");
            let explained = |&((p, i, o), _): &((PlaneId, RackId, RackId), &str)| {
                p == port.0 && (i == port.1 || o == port.1)
            };
            let words: Vec<&str> = left.iter().filter(|c| explained(c)).map(|c| c.1).collect();
            now.insert(port, words.join("; "));
            left.retain(|c| !explained(c));
        }
        let had: BTreeSet<PlanePort> = self.faulty.keys().copied().collect();
        let faulty = now
            .iter()
            .filter(|(k, _)| !had.contains(k))
            .map(|(k, why)| (*k, why.clone()))
            .collect();
        let cleared = had.into_iter().filter(|k| !now.contains_key(k)).collect();
        self.faulty = now;
        BlameChanges { faulty, cleared }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fail(f: &mut Faults, i: u32, o: u32) -> Option<BlameChanges> {
        f.failed(PlaneId(0), RackId(i), RackId(o), format!("{i} to {o}"))
    }

    fn ports(f: &Faults) -> Vec<u32> {
        f.ports().map(|p| p.1.0).collect()
    }

    fn twice(f: &mut Faults, i: u32, o: u32) -> BlameChanges {
        assert_eq!(fail(f, i, o), None);
        fail(f, i, o).expect("enough in a row")
    }

    #[test]
    fn one_failure_blames_nobody_and_a_success_between_forgives() {
        let mut f = Faults::default();
        assert_eq!(fail(&mut f, 0, 1), None);
        f.passed(PlaneId(0), RackId(0), RackId(1));
        assert_eq!(fail(&mut f, 0, 1), None);
        assert!(ports(&f).is_empty());
        assert_eq!(
            fail(&mut f, 0, 1).unwrap().faulty,
            [((PlaneId(0), RackId(0)), "0 to 1".to_owned())]
        );
        assert_eq!(f.passed(PlaneId(0), RackId(0), RackId(1)).cleared, [(PlaneId(0), RackId(0))]);
        assert!(ports(&f).is_empty());
    }

    #[test]
    fn a_port_that_is_down_is_faulty_until_it_is_up_and_what_probes_found_there_is_forgotten() {
        let mut f = Faults::default();
        let (zero, one) = ((PlaneId(0), RackId(0)), (PlaneId(0), RackId(1)));
        let down = || BTreeMap::from([(zero, "gone".to_owned())]);
        assert_eq!(
            f.down(down()),
            BlameChanges { faulty: vec![(zero, "gone".into())], cleared: vec![] }
        );
        assert_eq!((f.down(down()), f.why(zero)), (BlameChanges::default(), Some("gone")));
        twice(&mut f, 0, 1);
        twice(&mut f, 1, 2);
        twice(&mut f, 1, 3);
        assert_eq!(f.ports().collect::<BTreeSet<_>>(), BTreeSet::from([zero, one]));
        assert_eq!(f.down(BTreeMap::new()), BlameChanges { faulty: vec![], cleared: vec![zero] });
        assert_eq!((ports(&f), f.repaired(zero)), (vec![1], None));
    }

    #[test]
    fn blame_moves_to_the_port_that_all_share() {
        let mut f = Faults::default();
        twice(&mut f, 0, 2);
        assert_eq!(ports(&f), [0], "as good a guess as any");
        let c = twice(&mut f, 1, 2);
        assert_eq!((c.faulty.len(), c.cleared), (1, vec![(PlaneId(0), RackId(0))]));
        assert_eq!((ports(&f), f.why((PlaneId(0), RackId(2)))), (vec![2], Some("0 to 2; 1 to 2")));
    }

    #[test]
    fn two_broken_inputs_are_found_behind_one_output() {
        let mut f = Faults::default();
        twice(&mut f, 0, 2);
        twice(&mut f, 1, 2);
        assert_eq!(ports(&f), [2]);
        twice(&mut f, 0, 3);
        assert_eq!(ports(&f), [0, 1]);
    }

    #[test]
    fn a_repair_forgets() {
        let mut f = Faults::default();
        assert_eq!(f.repaired((PlaneId(0), RackId(0))), None);
        twice(&mut f, 0, 2);
        assert_eq!(f.repaired((PlaneId(0), RackId(2))), None, "not the one that is blamed");
        assert_eq!(f.repaired((PlaneId(0), RackId(0))).unwrap().cleared, [(PlaneId(0), RackId(0))]);
        assert_eq!(
            (ports(&f), fail(&mut f, 0, 2)),
            (Vec::<u32>::new(), None),
            "it starts from nothing"
        );
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        /// Whatever fails, each failed circuit has a blamed end, and each blamed port a failed
        /// circuit; changes tell the truth.
        #[test]
        fn blame_explains_all_failures_and_no_more(events in prop::collection::vec((0..2u32, 0..4u32, 0..4u32, 0..4u8), 1..60)) {
            let mut f = Faults::default();
            let mut told = BTreeSet::new();
            let mut row: BTreeMap<(u32, u32, u32), u32> = BTreeMap::new();
            for (p, i, o, kind) in events.into_iter().filter(|e| e.1 != e.2) {
                let (plane, input, output) = (PlaneId(p), RackId(i), RackId(o));
                let c = match kind {
                    0 => { row.remove(&(p, i, o)); f.passed(plane, input, output) }
                    1 => match f.repaired((plane, input)) {
                        Some(c) => { row.retain(|&(q, a, b), _| q != p || (a != i && b != i)); c }
                        None => BlameChanges::default(),
                    },
                    _ => { *row.entry((p, i, o)).or_default() += 1; f.failed(plane, input, output, "w".into()).unwrap_or_default() }
                };
                for (port, _) in c.faulty { prop_assert!(told.insert(port)); }
                for port in c.cleared { prop_assert!(told.remove(&port)); }
                prop_assert_eq!(&told, &f.ports().collect::<BTreeSet<_>>());
                let failed: Vec<_> = row.iter().filter(|r| *r.1 >= 2).map(|r| *r.0).collect();
                let touches = |port: &PlanePort, c: &(u32, u32, u32)| port.0.0 == c.0 && (port.1.0 == c.1 || port.1.0 == c.2);
                for c in &failed { prop_assert!(told.iter().any(|t| touches(t, c))); }
                for t in &told { prop_assert!(failed.iter().any(|c| touches(t, c))); }
            }
        }
    }
}
