//! Circuits that are set by hand: they stay until they are given back, whatever the circuit
//! scheduler decides.

use std::collections::BTreeMap;

use super::Rejected;
use crate::ids::{PlaneId, RackId};

/// All of them: no input and no output port of a plane is in two.
#[derive(Clone, Debug, Default)]
pub struct ManualCircuits {
    /// By plane and input: the output.
    circuits: BTreeMap<(PlaneId, RackId), RackId>,
}

impl ManualCircuits {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.circuits.is_empty()
    }

    /// Where the circuit from this input goes, if there is one.
    pub fn output(&self, plane: PlaneId, input: RackId) -> Option<RackId> {
        self.circuits.get(&(plane, input)).copied()
    }

    /// Every circuit: plane, input, output.
    pub fn iter(&self) -> impl Iterator<Item = (PlaneId, RackId, RackId)> + '_ {
        self.circuits.iter().map(|(&(plane, input), &output)| (plane, input, output))
    }

    /// Sets a circuit, instead of the one that its input had; on a duplex plane the one back, too.
    ///
    /// # Errors
    /// The output is held for another input; nothing is changed then.
    pub fn connect(
        &mut self,
        plane: PlaneId,
        input: RackId,
        output: RackId,
        duplex: bool,
    ) -> Result<(), Rejected> {
        let mut then = self.clone();
        if then.circuits.contains_key(&(plane, input)) {
            then.disconnect(plane, input, duplex)?;
        }
        then.add(plane, input, output, duplex)?;
        *self = then;
        Ok(())
    }

    /// Sets these circuits and no others: plane, input, output, and whether the plane is duplex.
    ///
    /// # Errors
    /// Two of them need one port; nothing is changed then.
    pub fn replace(
        &mut self,
        all: impl IntoIterator<Item = (PlaneId, RackId, RackId, bool)>,
    ) -> Result<(), Rejected> {
        let mut then = Self::default();
        all.into_iter().try_for_each(|(plane, input, output, duplex)| {
            then.add(plane, input, output, duplex)
        })?;
        *self = then;
        Ok(())
    }

    fn add(
        &mut self,
        plane: PlaneId,
        input: RackId,
        output: RackId,
        duplex: bool,
    ) -> Result<(), Rejected> {
        let wanted = [Some((input, output)), duplex.then_some((output, input))];
        for (i, o) in wanted.into_iter().flatten() {
            if let Some(other) = self.output(plane, i).filter(|&other| other != o) {
                return Err(Rejected::Conflict(format!(
                    "the input port of {i} is held by hand for {other}"
                )));
            }
            if let Some((_, other, _)) =
                self.iter().find(|&(p, other, out)| p == plane && out == o && other != i)
            {
                return Err(Rejected::Conflict(format!(
                    "the output port of {o} is held by hand for {other}"
                )));
            }
        }
        self.circuits.extend(wanted.into_iter().flatten().map(|(i, o)| ((plane, i), o)));
        Ok(())
    }

    /// Gives a circuit back; on a duplex plane the one back, too.
    ///
    /// # Errors
    /// There is none from this input.
    pub fn disconnect(
        &mut self,
        plane: PlaneId,
        input: RackId,
        duplex: bool,
    ) -> Result<(), Rejected> {
        let none = || {
            Rejected::NotFound(format!("a circuit set by hand from {input} on plane {}", plane.0))
        };
        let output = self.circuits.remove(&(plane, input)).ok_or_else(none)?;
        if duplex {
            self.circuits.remove(&(plane, output));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const P: PlaneId = PlaneId(0);

    fn held(m: &ManualCircuits) -> Vec<(u32, u32)> {
        m.iter().map(|(_, i, o)| (i.0, o.0)).collect()
    }

    #[test]
    fn a_new_circuit_takes_the_place_of_both_ways_of_the_old_one() {
        let mut m = ManualCircuits::default();
        m.connect(P, RackId(0), RackId(1), true).unwrap();
        m.connect(P, RackId(0), RackId(2), true).unwrap();
        assert_eq!(held(&m), [(0, 2), (2, 0)]);
        m.connect(P, RackId(3), RackId(1), true).unwrap();
        let refused = m.connect(P, RackId(0), RackId(1), true).unwrap_err().to_string();
        assert!(refused.contains("the output port of r1 is held by hand for r3"), "{refused}");
        assert_eq!(
            held(&m),
            [(0, 2), (1, 3), (2, 0), (3, 1)],
            "what was refused changed something"
        );
    }

    #[test]
    fn a_configuration_is_taken_whole_or_not_at_all() {
        let mut m = ManualCircuits::default();
        m.connect(P, RackId(0), RackId(1), false).unwrap();
        let of = |pairs: &[(u32, u32)]| {
            pairs.iter().map(|&(i, o)| (P, RackId(i), RackId(o), false)).collect::<Vec<_>>()
        };
        m.replace(of(&[(1, 2), (2, 0)])).unwrap();
        assert_eq!(held(&m), [(1, 2), (2, 0)]);
        for clash in [&[(0, 1), (2, 1)][..], &[(0, 1), (0, 2)]] {
            assert!(m.replace(of(clash)).is_err(), "{clash:?}");
            assert_eq!(held(&m), [(1, 2), (2, 0)]);
        }
        m.replace([]).unwrap();
        assert!(m.is_empty());
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        /// Whatever is asked for, no port is in two circuits, and on a duplex plane every circuit
        /// has its way back.
        #[test]
        fn no_port_is_in_two_circuits(asked in proptest::collection::vec((0_u32..5, 0_u32..5, any::<bool>()), 0..20), duplex: bool) {
            let mut m = ManualCircuits::default();
            for (i, o, on) in asked.into_iter().filter(|a| a.0 != a.1) {
                let _ = if on { m.connect(P, RackId(i), RackId(o), duplex) } else { m.disconnect(P, RackId(i), duplex) };
                let pairs = held(&m);
                let outputs: BTreeSet<u32> = pairs.iter().map(|p| p.1).collect();
                prop_assert_eq!(outputs.len(), pairs.len());
                prop_assert!(!duplex || pairs.iter().all(|&(i, o)| pairs.contains(&(o, i))), "{:?}", pairs);
            }
        }
    }
}
