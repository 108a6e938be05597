//! Youngest first: the coflow that arrived last is served before all others.

use super::active::ActiveCoflow;
use super::disciplines::Discipline;

/// Coflows in the reverse order of their arrival.
pub struct YoungestFirst;

impl Discipline for YoungestFirst {
    fn order(&self, coflows: &mut Vec<ActiveCoflow>, _: &[u64]) {
        coflows.reverse();
    }
}
