//! The orders of Sunflow: which coflow reserves its circuits first.

use std::cmp::Ordering;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::coflows::{OpenCoflow, bounds};
use crate::demand::DemandMatrix;
use crate::topology::Plane;
use crate::units::{Span, Time};

/// Which coflow reserves its circuits first; of equal ones that of the smaller id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Order {
    /// Shortest lower bound first, dark time counted: Sunflow's own, section 4.2.
    #[default]
    Shortest,
    /// Smallest effective bottleneck first: the busiest port's bytes, dark time not counted (Varys,
    /// SIGCOMM 2014).
    Sebf,
    /// First come, first served.
    Fifo,
    /// Least attained service first: fewest bytes sent so far (Aalo, SIGCOMM 2015). Knows no sizes.
    Las,
    /// Shortest lower bound over weight first.
    Weighted,
}

impl Order {
    /// Sorts coflows, each with what it still has to send (bytes, `R x R`), first priority first.
    /// O(C R^2 + C log C).
    pub fn sort<'a>(
        self,
        coflows: Vec<(&'a OpenCoflow, DemandMatrix)>,
        plane: &Plane,
    ) -> Vec<(&'a OpenCoflow, DemandMatrix)> {
        let key = |c: &OpenCoflow, m: &DemandMatrix| {
            let bound = |delta| bounds::circuit(m, plane.rate, delta);
            self.key(&bound, plane.delta, c.sent, c.arrival, c.weight)
        };
        let mut all: Vec<_> = coflows.into_iter().map(|(c, m)| (key(c, &m), c, m)).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.id.cmp(&b.1.id)));
        all.into_iter().map(|(_, c, m)| (c, m)).collect()
    }

    /// What a coflow is sorted by, smallest first: `bound` gives the bound of what is left under a
    /// dark time, `sent` are the bytes that have arrived.
    pub fn key(
        self,
        bound: &dyn Fn(Span) -> Span,
        delta: Span,
        sent: u64,
        arrival: Time,
        weight: u32,
    ) -> OrderKey {
        match self {
            Self::Shortest => OrderKey { size: bound(delta).0, weight: 1, arrival: Time::ZERO },
            Self::Weighted => {
                OrderKey { size: bound(delta).0, weight: weight.max(1), arrival: Time::ZERO }
            }
            Self::Sebf => OrderKey { size: bound(Span::ZERO).0, weight: 1, arrival: Time::ZERO },
            Self::Fifo => OrderKey { size: 0, weight: 1, arrival },
            Self::Las => OrderKey { size: sent, weight: 1, arrival },
        }
    }
}

/// What a coflow is sorted by: its size over its weight, then its arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderKey {
    size: u64,
    weight: u32,
    arrival: Time,
}

impl Ord for OrderKey {
    /// a / b < c / d is a d < c b.
    fn cmp(&self, other: &Self) -> Ordering {
        let (x, y) = (
            u128::from(self.size) * u128::from(other.weight),
            u128::from(other.size) * u128::from(self.weight),
        );
        x.cmp(&y).then(self.arrival.cmp(&other.arrival))
    }
}

impl PartialOrd for OrderKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CoflowId, PlaneId, RackId};
    use crate::topology::StopMode;
    use crate::units::BitRate;

    #[test]
    fn each_order_by_hand() {
        // A byte a nanosecond, 10 ns in the dark.
        let plane = Plane {
            id: PlaneId(0),
            rate: BitRate(8_000_000_000),
            delta: Span(10),
            stop: StopMode::NotAllStop,
            duplex: false,
        };
        let coflow = |id, arrival, weight, sent, rest: &[(u32, u32, u64)]| OpenCoflow {
            id: CoflowId(id),
            arrival: Time(arrival),
            weight,
            sent,
            rest: rest.iter().map(|&(i, j, b)| (RackId(i), RackId(j), b)).collect(),
        };
        let all = [
            // Bound 50, bottleneck 30: many small pairs.
            coflow(0, 3, 1, 50, &[(0, 1, 15), (0, 2, 15)]),
            // Bound 45, bottleneck 35.
            coflow(1, 2, 1, 60, &[(1, 2, 35)]),
            // Bound 110, bottleneck 100; three times the weight.
            coflow(2, 1, 3, 0, &[(2, 0, 100)]),
        ];
        let matrix = |c: &OpenCoflow| crate::demand::declared::sum(3, c.rest.iter().copied());
        let order = |o: Order| -> Vec<u32> {
            o.sort(all.iter().map(|c| (c, matrix(c))).collect(), &plane)
                .into_iter()
                .map(|(c, _)| c.id.0)
                .collect()
        };
        assert_eq!(order(Order::Shortest), [1, 0, 2]);
        assert_eq!(order(Order::Sebf), [0, 1, 2]);
        assert_eq!(order(Order::Fifo), [2, 1, 0]);
        assert_eq!(order(Order::Las), [2, 0, 1]);
        assert_eq!(order(Order::Weighted), [2, 1, 0]);
    }
}
