//! How jobs are scheduled: a placement policy, and how the scheduler works under it.

use serde::{Deserialize, Serialize};

use super::queues::Order;
use super::state::Settings;
use crate::placement::spec::{Kind, Spec};

/// The checked `placement` section of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobPolicy {
    /// Where data and tasks go.
    pub placement: Spec,
    /// Queues and rounds of fetching.
    pub settings: Settings,
}

impl JobPolicy {
    /// Of a kind, with its usual parameters.
    pub fn new(kind: Kind) -> Self {
        Self { placement: Spec::new(kind), settings: Settings { order: usual_order(kind), ..Settings::default() } }
    }
}

/// In which order jobs get slots under a policy, if nothing else is said.
pub fn usual_order(kind: Kind) -> Order {
    if kind == Kind::Capacity { Order::Capacity } else { Order::Fair }
}
