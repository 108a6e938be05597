//! No circuits: the electrical network alone, the baseline of every comparison.

use super::none;
use crate::{Ask, Decision, Scheduler, SetBy};

/// Never sets a circuit.
pub struct EpsOnly;

impl Scheduler for EpsOnly {
    fn decide(&mut self, ask: &Ask) -> Decision {
        none(ask)
    }
    fn set_by(&self) -> SetBy {
        SetBy::NoCircuits
    }
}
