//! Circuits that are set by hand: they stay until they are given back, whatever the circuit scheduler decides.

use std::collections::BTreeMap;

use super::Rejected;
use crate::ids::{PlaneId, RackId};

/// All of them: no input and no output port of a plane is in two.
#[derive(Clone, Debug, Default)]
pub struct Manual {
    /// By plane and input: the output.
    circuits: BTreeMap<(PlaneId, RackId), RackId>,
}

impl Manual {
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
    pub fn connect(&mut self, plane: PlaneId, input: RackId, output: RackId, duplex: bool) -> Result<(), Rejected> {
        let wanted = [Some((input, output)), duplex.then_some((output, input))];
        for (i, o) in wanted.into_iter().flatten() {
            if let Some((_, other, _)) = self.iter().find(|&(p, other, out)| p == plane && out == o && other != i) {
                return Err(Rejected::Conflict(format!("the output port of {o} is held by hand for {other}")));
            }
        }
        self.circuits.extend(wanted.into_iter().flatten().map(|(i, o)| ((plane, i), o)));
        Ok(())
    }

    /// Gives a circuit back; on a duplex plane the one back, too.
    ///
    /// # Errors
    /// There is none from this input.
    pub fn disconnect(&mut self, plane: PlaneId, input: RackId, duplex: bool) -> Result<(), Rejected> {
        let none = || Rejected::NotFound(format!("a circuit set by hand from {input} on plane {}", plane.0));
        let output = self.circuits.remove(&(plane, input)).ok_or_else(none)?;
        if duplex {
            self.circuits.remove(&(plane, output));
        }
        Ok(())
    }
}
