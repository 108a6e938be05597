//! Circuits by hand only.

use super::none;
use crate::circuits::{Ask, Decision, Scheduler};

/// Sets nothing by itself: the controller keeps the circuits that were set over the API, and their ports are not offered
/// to any scheduler.
pub struct Manual;

impl Scheduler for Manual {
    fn name(&self) -> &'static str {
        "manual"
    }
    fn decide(&mut self, ask: &Ask) -> Decision {
        none(ask)
    }
}
