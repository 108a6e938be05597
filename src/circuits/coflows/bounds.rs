//! Lower bounds of a coflow's completion time.

use super::{CoflowSpec, FlowSpec};
use crate::demand::DemandMatrix;
use crate::topology::{PAYLOAD, Plane, Topology};
use crate::units::{BitRate, Bytes, Span};

/// The rate at which payload of TCP can pass a link of `rate`.
pub fn payload_rate(rate: BitRate) -> BitRate {
    BitRate((u128::from(rate.0) * u128::from(PAYLOAD.0) / u128::from(PAYLOAD.1)) as u64)
}

/// No schedule on this network finishes `coflow` sooner. Every host must pass its bytes through its
/// NIC, and every rack its bytes through its EPS uplink and all its circuits together. Delta is not
/// counted, because a circuit may already be up.
///
/// O(flows + R), and O(ends + flows within racks + R) of a shuffle. Flows within one host count
/// nothing, unless hosts have a loopback.
pub fn hybrid(coflow: &CoflowSpec, topology: &Topology) -> Span {
    let mut of_hosts = [vec![0u128; topology.hosts.len()], vec![0; topology.hosts.len()]];
    let mut of_racks = [vec![0u128; topology.rack_count()], vec![0; topology.rack_count()]];
    for ((hosts, racks), sums) in of_hosts.iter_mut().zip(&mut of_racks).zip(coflow.flows.sums()) {
        for (host, bytes) in sums {
            hosts[host.index()] += bytes;
            racks[topology.rack_of(host).index()] += bytes;
        }
    }
    for (_, f) in coflow.flows.inside(|h| topology.rack_of(h)) {
        let ends = [f.from, f.to];
        let (rack, bytes) = (topology.rack_of(f.from).index(), u128::from(f.bytes.0));
        of_racks.iter_mut().for_each(|side| side[rack] -= bytes);
        if f.from == f.to && !topology.loopback {
            of_hosts.iter_mut().zip(ends).for_each(|(side, host)| side[host.index()] -= bytes);
        }
    }
    let whole = |all: Vec<u128>| {
        all.into_iter().map(|bytes| u64::try_from(bytes).unwrap_or(u64::MAX)).collect::<Vec<u64>>()
    };
    let ([host_out, host_in], [rack_out, rack_in]) = (of_hosts.map(whole), of_racks.map(whole));
    let hosts = topology.hosts.iter().map(|h| {
        topology.payload(h.nic).time_for(Bytes(host_out[h.id.index()].max(host_in[h.id.index()])))
    });
    hosts.chain([racks_bound(&rack_out, &rack_in, topology)]).max().unwrap_or(Span::ZERO)
}

/// The same where flows within a rack neither slow others nor are slowed by them, as under Sunflow:
/// what its flows between racks take, or the longest within one alone. O(flows + R).
pub fn locals_apart(coflow: &CoflowSpec, topology: &Topology) -> Span {
    let is_local = |f: &FlowSpec| topology.rack_of(f.from) == topology.rack_of(f.to);
    let of = |flows: Vec<FlowSpec>| {
        hybrid(&CoflowSpec { flows: flows.into(), ..coflow.clone() }, topology)
    };
    let between = of(coflow.flows.iter().filter(|f| !is_local(f)).collect());
    let alone = coflow.flows.iter().filter(is_local).map(|f| of(vec![f])).max();
    between.max(alone.unwrap_or(Span::ZERO))
}

/// The same for bytes that are known by rack pair only: no schedule on this network moves `demand`
/// sooner, whichever hosts send and receive it. A rack also passes no more than all its NICs
/// together. O(R^2).
pub fn hybrid_racks(demand: &DemandMatrix, topology: &Topology) -> Span {
    let (mut out, mut into) = (vec![0u64; demand.racks()], vec![0u64; demand.racks()]);
    for (i, j, b) in demand.entries() {
        out[i.index()] = out[i.index()].saturating_add(b);
        into[j.index()] = into[j.index()].saturating_add(b);
    }
    let nics = topology.racks.iter().map(|r| {
        topology
            .payload(topology.rack_nic(r.id))
            .time_for(Bytes(out[r.id.index()].max(into[r.id.index()])))
    });
    nics.chain([racks_bound(&out, &into, topology)]).max().unwrap_or(Span::ZERO)
}

/// Every rack must pass what it sends and what it receives through its EPS uplink and all its
/// circuits together.
fn racks_bound(out: &[u64], into: &[u64], topology: &Topology) -> Span {
    let racks = topology.racks.iter().map(|r| {
        let rate = BitRate(r.uplink.0.saturating_add(topology.ocs_rate().0));
        topology.payload(rate).time_for(Bytes(out[r.id.index()].max(into[r.id.index()])))
    });
    racks.max().unwrap_or(Span::ZERO)
}

/// The circuit bound of Sunflow and Co-scheduler: T(C) = max over ports of the sum of `C_ij /
/// rate + delta` over the port's non-empty pairs. O(R^2).
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

/// No schedule of circuits on `planes` equal planes and an electrical network of `eps` a rack moves
/// `demand` sooner, all ports dark at first.
///
/// Without the electrical network: the larger of T(C) ([`circuit`]) shared by the planes, and the
/// longest pair on all planes at once. A duplex circuit carries both ways, so a pair counts with
/// its larger direction. With it, dark time may be hidden: every port's bytes over all its rates.
/// O(R^2).
pub fn circuits(demand: &DemandMatrix, plane: &Plane, planes: u64, eps: BitRate) -> Span {
    let both = |i, j, b: u64| if plane.duplex { b.max(demand.get(j, i)) } else { b };
    let pairs = demand.map_pairs(both);
    let rate = BitRate(plane.rate.0.saturating_mul(planes));
    if eps > BitRate::ZERO || planes == 0 {
        let all = BitRate(rate.0.saturating_add(eps.0));
        return circuit(demand, all, Span::ZERO).saturating_sub(Span(demand.racks() as u64));
    }
    let shared = Span(circuit(&pairs, plane.rate, plane.delta).0.div_ceil(planes));
    let longest = demand.entries().map(|(_, _, b)| rate.time_for(Bytes(b)) + plane.delta).max();
    shared.max(longest.unwrap_or(Span::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coflows::FlowSpec;
    use crate::ids::{CoflowId, HostId, PlaneId};
    use crate::topology::StopMode;
    use crate::units::Time;
    use proptest::prelude::*;

    fn network() -> Topology {
        let plane = Plane {
            id: PlaneId(0),
            rate: BitRate::mbit(1000),
            delta: Span::ZERO,
            stop: StopMode::NotAllStop,
            duplex: false,
        };
        Topology::uniform("t", 3, 2, BitRate::mbit(1000), BitRate::mbit(100), vec![plane])
    }

    #[test]
    fn a_rack_passes_its_uplink_and_its_circuits() {
        // 1.1 Gb/s on the wire; 1448 bytes of payload take 1514 bytes.
        let m = DemandMatrix::from_rows(&[&[0, 1448, 0], &[0, 0, 0], &[0, 1448, 0]]);
        let wire_bits = 2 * 1514 * 8;
        let exact = Span(wire_bits * 1_000_000_000u64 / 1_100_000_000);
        let got = hybrid_racks(&m, &network());
        assert!(got >= exact && got.0 - exact.0 <= 1, "{got:?} against {exact:?}");
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn knowing_the_hosts_only_raises_the_bound(flows in prop::collection::vec((0u32..6, 0u32..6, 0u64..1 << 40), 0..20)) {
            let t = network();
            let flows = flows.into_iter().map(|(a, b, n)| FlowSpec { from: HostId(a), to: HostId(b), bytes: Bytes(n) }).collect();
            let c = CoflowSpec::new(CoflowId(0), "", Time::ZERO, flows);
            prop_assert!(hybrid_racks(&c.matrix(&t), &t) <= hybrid(&c, &t) + Span(1));
        }
    }
}
