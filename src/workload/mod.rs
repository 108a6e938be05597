//! What is run: coflows today, jobs with tasks and data blocks beside them.

use serde::{Deserialize, Serialize};

use crate::coflows::CoflowSpec;

/// A list of coflows, by arrival.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Workload {
    /// What people call it.
    pub name: String,
    /// In the order of arrival, ids dense from zero.
    pub coflows: Vec<CoflowSpec>,
}
