//! Which racks a job's maps may run on (Co-scheduler section IV-E.1): any R_map of those that hold
//! its data, whichever are free first.

use serde::Serialize;

use crate::ids::{RackId, by_name};

use super::data::DataGuideline;

/// A job's map guideline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MapGuideline {
    /// R_map.
    pub width: usize,
    /// Racks with its data, in ascending order.
    #[serde(serialize_with = "by_name::list")]
    pub data: Vec<RackId>,
    /// The sets of racks each of which holds all of it.
    #[serde(serialize_with = "by_name::lists")]
    pub sets: [Vec<RackId>; 3],
}

impl MapGuideline {
    /// The guideline that follows from where the data lies.
    pub fn of(data: &DataGuideline) -> Self {
        Self { width: data.width, data: data.sets.racks(), sets: data.sets.sets.clone() }
    }

    /// The racks on which further maps may run, if they keep to one set: then each finds its data
    /// in its rack, on R_map racks.
    pub fn open<'a>(&'a self, used: &'a [RackId]) -> impl Iterator<Item = RackId> + 'a {
        let more = used.len() < self.width;
        let mine = move |set: &&Vec<RackId>| used.first().is_none_or(|first| set.contains(first));
        let fresh = self
            .sets
            .iter()
            .filter(mine)
            .flatten()
            .copied()
            .filter(move |r| more && !used.contains(r));
        used.iter().copied().chain(fresh)
    }

    /// Whether a map may run in `rack` when maps of the job already run or ran in the racks `used`
    /// (Algorithm 2, line 5).
    pub fn allows(&self, rack: RackId, used: &[RackId]) -> bool {
        self.data.binary_search(&rack).is_ok() && (used.contains(&rack) || used.len() < self.width)
    }
}
