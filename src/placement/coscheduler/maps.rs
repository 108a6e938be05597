//! Which racks a job's maps may run on (Co-scheduler section IV-E.1): any R_map of those that hold its data, whichever are free
//! first.

use serde::Serialize;

use crate::ids::RackId;

use super::data::DataGuideline;

/// A job's map guideline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MapGuideline {
    /// R_map.
    pub width: usize,
    /// Racks with its data, in ascending order.
    pub data: Vec<RackId>,
}

impl MapGuideline {
    /// From where the data lies.
    pub fn of(data: &DataGuideline) -> Self {
        Self { width: data.width, data: data.sets.racks() }
    }

    /// Whether a map may run in `rack` when maps of the job already run or ran in the racks `used` (Algorithm 2, line 5).
    pub fn allows(&self, rack: RackId, used: &[RackId]) -> bool {
        self.data.binary_search(&rack).is_ok() && (used.contains(&rack) || used.len() < self.width)
    }
}
