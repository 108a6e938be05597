//! Circuits by hand only.

use super::none;
use crate::{Ask, Decision, Scheduler, SetBy};

/// Sets nothing by itself: the controller keeps the circuits that were set over the API, and their
/// ports are not offered to any scheduler.
pub struct Manual;

impl Scheduler for Manual {
    fn decide(&mut self, ask: &Ask) -> Decision {
        none(ask)
    }
    fn set_by(&self) -> SetBy {
        SetBy::Hand
    }
}
