//! Route of a pair's flows, and its effect on the books. It never matters for rates: both routes
//! cross the same two links.

use crate::bundle::BundleRoute;
use crate::ids::RackId;

/// The route of a pair's flows.
pub trait Ways: Default + Send {
    /// What a flow keeps from its beginning, to tell later how much of it went over circuits.
    type Mark: Copy + Ord + Send;

    /// Whether circuits may change routes.
    const CIRCUITS: bool;

    /// The present route.
    fn route(&self, racks: (RackId, RackId)) -> BundleRoute;

    /// Flows take another route from this service of their pair on.
    fn change(&mut self, route: BundleRoute, service: u128);

    /// The mark of a flow that begins at this service.
    fn mark(&self, service: u128) -> Self::Mark;

    /// Work over circuits up to this service, for a flow with this mark.
    fn over_ocs(&self, mark: Self::Mark, service: u128) -> u128;
}

/// No circuits.
#[derive(Default)]
pub struct Fixed;

impl Ways for Fixed {
    type Mark = ();
    const CIRCUITS: bool = false;

    /// Flows within a rack do not cross its uplink.
    fn route(&self, racks: (RackId, RackId)) -> BundleRoute {
        if racks.0 == racks.1 { BundleRoute::Local } else { BundleRoute::Eps }
    }

    fn change(&mut self, _route: BundleRoute, _service: u128) {}

    fn mark(&self, _service: u128) -> Self::Mark {}

    fn over_ocs(&self, _mark: Self::Mark, _service: u128) -> u128 {
        0
    }
}

/// Circuits come and go.
#[derive(Default)]
pub struct Changing {
    route: Option<BundleRoute>,
    /// Service over circuits up to `since`, the service at the last change.
    over_ocs: u128,
    since: u128,
}

impl Changing {
    /// Service over circuits up to this service.
    fn service_over_ocs(&self, service: u128) -> u128 {
        let since =
            if matches!(self.route, Some(BundleRoute::Ocs(_))) { service - self.since } else { 0 };
        self.over_ocs + since
    }
}

impl Ways for Changing {
    /// Service over circuits when the flow began.
    type Mark = u128;
    const CIRCUITS: bool = true;

    fn route(&self, racks: (RackId, RackId)) -> BundleRoute {
        self.route.unwrap_or_else(|| Fixed.route(racks))
    }

    fn change(&mut self, route: BundleRoute, service: u128) {
        (self.over_ocs, self.since) = (self.service_over_ocs(service), service);
        self.route = Some(route);
    }

    fn mark(&self, service: u128) -> u128 {
        self.service_over_ocs(service)
    }

    fn over_ocs(&self, mark: u128, service: u128) -> u128 {
        self.service_over_ocs(service) - mark
    }
}
