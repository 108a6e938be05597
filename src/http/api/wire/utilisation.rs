//! What links carried over time.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::fabric::meter;
use crate::units::Time;

/// What links carried over time, in buckets of equal length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Utilisation {
    /// The instant, by the daemon's clock, from which the times below are counted.
    pub from_ns: u64,
    /// Length of every bucket but the last; the first begins at zero.
    pub bucket_ns: u64,
    /// Where the last one ends.
    pub until_ns: u64,
    /// Every rack's link to the EPS, up and down (`r0.up`, `r0.down`), and every plane with all its
    /// ports together (`ocs0`).
    pub links: Vec<LinkLoad>,
}

/// What one link, or all ports of a plane, carried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkLoad {
    /// Its name.
    pub name: String,
    /// What it can carry, in bits of payload per second.
    pub rate_bps: u64,
    /// Payload by bucket.
    pub bytes: Vec<u64>,
}

impl From<(Time, meter::Utilisation)> for Utilisation {
    fn from((from, u): (Time, meter::Utilisation)) -> Self {
        let link =
            |l: meter::Carried| LinkLoad { name: l.name, rate_bps: l.rate.0, bytes: l.bytes };
        Self {
            from_ns: from.0,
            bucket_ns: u.bucket.0,
            until_ns: u.until.0,
            links: u.links.into_iter().map(link).collect(),
        }
    }
}
