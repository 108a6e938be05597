//! Minimum allocation for desired duration: the flows of a coflow end together.

use super::{Demand, FreeCapacity, Rates, Remainder};

/// The link on which the coflow takes longest with what is left: (bits, capacity left). `None` if
/// it has nothing to send. A link without capacity is the slowest of all. Needs [`Demand::weigh`].
/// O(links).
pub fn bottleneck(demand: &Demand, capacity: impl Fn(u32) -> u64) -> Option<(u64, u64)> {
    let loads = demand.loads().filter(|x| x.1 > 0).map(|(l, bits)| (bits, capacity(l)));
    // a.0 / a.1 < b.0 / b.1, and the first of equals.
    loads.reduce(|a, b| {
        if u128::from(a.0) * u128::from(b.1) < u128::from(b.0) * u128::from(a.1) { b } else { a }
    })
}

/// Gives the coflow's groups rates in the proportion of what they still have to send, so that all
/// would end when the slowest link has carried its part, and takes them from `free`. A coflow that
/// has a link without room gets nothing. Returns the group that ends last.
///
/// Rates are rounded down to bits per second, so the ends differ by that much. Needs
/// [`Demand::weigh`]. O(groups).
///
/// Source: Chowdhury et al., *Efficient coflow scheduling with Varys*, SIGCOMM 2014, section 5.3.1
/// and pseudocode 1 (`allocBandwidth`), with the slowest link taken from what earlier coflows
/// leave.
pub fn madd(demand: &Demand, free: &mut FreeCapacity, rates: &mut Rates) -> Option<Remainder> {
    let (bits, room) = bottleneck(demand, |l| free.left(l)).filter(|b| b.1 > 0)?;
    // bits <= 2^64 and room < 2^63: a fixed point fraction, so that no group needs a division.
    in_proportion(demand, (u128::from(room) << 64) / u128::from(bits), free, rates)
}

/// Gives every group `share` / 2^64 bits per second for every bit that it still has to send,
/// rounded down. Returns the one that ends last. O(groups).
pub fn in_proportion(
    demand: &Demand,
    share: u128,
    free: &mut FreeCapacity,
    rates: &mut Rates,
) -> Option<Remainder> {
    let (small, mut last) = (u64::try_from(share).ok(), None);
    demand.take_all(free, |g| {
        let units = demand.left(g);
        let bits = u128::from(Demand::whole_bits(units));
        let rate =
            small.map_or_else(|| bits.saturating_mul(share), |share| bits * u128::from(share));
        let rate = (rate >> 64) as u64;
        rates.add(g, rate);
        let own = Remainder { units, rate };
        if rate > 0 && last.is_none_or(|last: Remainder| last.is_sooner(&own)) {
            last = Some(own);
        }
        rate
    });
    last
}
