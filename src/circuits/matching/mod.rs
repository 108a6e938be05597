//! Matchings of a demand matrix: one algorithm a file, each a pure function, and the [`Scheduler`]s that wrap them.

use super::{Ask, Decision, Matching, Scheduler};

/// Maximum weight matching of a general graph.
pub struct Edmonds;
/// Maximum weight bipartite matching.
pub struct Bipartite;
/// Heaviest first.
pub struct Greedy;
/// Rotation.
pub struct RoundRobin;
/// Hysteresis.
pub struct Hold;
/// Set by hand.
pub struct Manual;
/// None.
pub struct EpsOnly;

macro_rules! stub {
    ($t:ident, $n:literal) => {
        impl Scheduler for $t {
            fn name(&self) -> &'static str {
                $n
            }
            fn decide(&mut self, ask: &Ask) -> Decision {
                Decision::hold(ask.planes.iter().map(|_| Matching::empty(ask.demand.racks())))
            }
        }
    };
}
stub!(Edmonds, "edmonds");
stub!(Bipartite, "bipartite");
stub!(Greedy, "greedy");
stub!(RoundRobin, "round-robin");
stub!(Hold, "hold");
stub!(Manual, "manual");
stub!(EpsOnly, "eps-only");
