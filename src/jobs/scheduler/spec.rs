//! How jobs are scheduled: a placement policy, and how the scheduler works under it.

use serde::{Deserialize, Serialize};

use super::state::SchedulerSettings;
use crate::placement::Kind;
use crate::placement::registry::Spec;

/// The checked `placement` section of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobPolicy {
    /// Where data and tasks go.
    pub placement: Spec,
    /// Queues and rounds of fetching.
    pub settings: SchedulerSettings,
}

impl JobPolicy {
    /// A policy of a kind, with its usual parameters.
    pub fn new(kind: Kind) -> Self {
        Self {
            placement: Spec::new(kind),
            settings: SchedulerSettings {
                order: kind.order(),
                reduces: kind.reduces(),
                ..SchedulerSettings::default()
            },
        }
    }
}
