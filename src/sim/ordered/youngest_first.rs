//! Youngest first: the coflow that arrived last is served before all others.

use super::disciplines::Discipline;
use super::active::ActiveCoflow;

/// Coflows in the reverse order of their arrival.
pub struct YoungestFirst;

impl Discipline for YoungestFirst {
    fn order(&self, coflows: &mut Vec<ActiveCoflow>, _: &[u64]) {
        coflows.reverse();
    }
}
