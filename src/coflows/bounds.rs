//! Lower bounds of a coflow's completion time.

use super::CoflowSpec;
use crate::demand::DemandMatrix;
use crate::topology::Topology;
use crate::units::{BitRate, Bytes, Span};

/// Payload share of the wire: 1448 bytes of TCP payload (timestamps on) in a frame of 1514 bytes as `tc` counts it.
pub const PAYLOAD: (u64, u64) = (1448, 1514);

/// The rate at which payload can pass a link of `rate`.
pub fn payload_rate(rate: BitRate) -> BitRate {
    BitRate((u128::from(rate.0) * u128::from(PAYLOAD.0) / u128::from(PAYLOAD.1)) as u64)
}

/// No schedule on this network finishes `coflow` sooner: every host must pass its bytes through its NIC, and every rack its
/// bytes through its EPS uplink and all its circuits together, delta not counted because a circuit may already be up.
///
/// O(flows + R). Flows within one host count nothing.
pub fn hybrid(coflow: &CoflowSpec, topology: &Topology) -> Span {
    let (mut host_out, mut host_in) = (vec![0u64; topology.hosts.len()], vec![0u64; topology.hosts.len()]);
    let (mut rack_out, mut rack_in) = (vec![0u64; topology.rack_count()], vec![0u64; topology.rack_count()]);
    for f in coflow.flows.iter().filter(|f| f.from != f.to) {
        host_out[f.from.index()] = host_out[f.from.index()].saturating_add(f.bytes.0);
        host_in[f.to.index()] = host_in[f.to.index()].saturating_add(f.bytes.0);
        let (a, b) = (topology.rack_of(f.from), topology.rack_of(f.to));
        if a != b {
            rack_out[a.index()] = rack_out[a.index()].saturating_add(f.bytes.0);
            rack_in[b.index()] = rack_in[b.index()].saturating_add(f.bytes.0);
        }
    }
    let hosts = topology.hosts.iter().map(|h| payload_rate(h.nic).time_for(Bytes(host_out[h.id.index()].max(host_in[h.id.index()]))));
    let racks = topology.racks.iter().map(|r| {
        let rate = BitRate(r.uplink.0.saturating_add(topology.ocs_rate().0));
        payload_rate(rate).time_for(Bytes(rack_out[r.id.index()].max(rack_in[r.id.index()])))
    });
    hosts.chain(racks).max().unwrap_or(Span::ZERO)
}

/// The circuit bound of Sunflow and Co-scheduler: T(C) = max over ports of the sum of `C_ij / rate + delta` over the port's
/// non-empty pairs. O(R^2).
pub fn circuit(demand: &DemandMatrix, rate: BitRate, delta: Span) -> Span {
    let mut rows = vec![Span::ZERO; demand.racks()];
    let mut cols = vec![Span::ZERO; demand.racks()];
    for (i, j, b) in demand.entries() {
        let t = rate.time_for(Bytes(b)) + delta;
        rows[i.index()] += t;
        cols[j.index()] += t;
    }
    rows.into_iter().chain(cols).max().unwrap_or(Span::ZERO)
}
