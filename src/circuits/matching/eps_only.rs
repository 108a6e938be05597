//! No circuits: the electrical network alone, the baseline of every comparison.

use super::none;
use crate::circuits::{Ask, Decision, Scheduler};

/// Never sets a circuit.
pub struct EpsOnly;

impl Scheduler for EpsOnly {
    fn name(&self) -> &'static str {
        "eps-only"
    }
    fn decide(&mut self, ask: &Ask) -> Decision {
        none(ask)
    }
}
