//! No link carries more than it can, between any two looks.

use super::*;

/// Between two looks no cable and no limited switch of the graph carried more than it can.
fn graph_within_capacity(t: &Topology, dt: Span, eps: &DemandMatrix) -> Result<(), TestCaseError> {
    let Some(graph) = t.eps.graph() else { return Ok(()) };
    let routes = crate::topology::graph::Routes::new(graph);
    let carries = |rate: BitRate| {
        BitRate(t.payload(rate).0 / 2).bytes_in(dt).0 + 2 * eps.cells().len() as u64
    };
    let (mut cables, mut switches) =
        (BTreeMap::<(u32, bool), u64>::new(), BTreeMap::<u32, u64>::new());
    for (from, to, bytes) in eps.entries() {
        *switches.entry(routes.switch_of(from)).or_default() += bytes;
        for h in routes.way(from, to) {
            *cables.entry((h.cable, h.forward)).or_default() += bytes;
            *switches.entry(h.to).or_default() += bytes;
        }
    }
    prop_assert!(
        cables.iter().all(|(c, &bytes)| bytes <= carries(graph.cables[c.0 as usize].rate))
    );
    prop_assert!(
        switches.iter().all(|(&s, &bytes)| graph.switches[s as usize]
            .rate
            .is_none_or(|r| bytes <= carries(r)))
    );
    Ok(())
}

/// Between two looks no pod's link and no core carried more than it can.
fn tree_within_capacity(t: &Topology, dt: Span, eps: &DemandMatrix) -> Result<(), TestCaseError> {
    let Some(pods) = t.eps.pods() else { return Ok(()) };
    let carries = |rate: BitRate| {
        BitRate(t.payload(rate).0 / 2).bytes_in(dt).0 + 2 * eps.cells().len() as u64
    };
    let pod = |r: RackId| r.0 / pods.racks;
    let across = || eps.entries().filter(|e| pod(e.0) != pod(e.1));
    prop_assert!(across().map(|e| e.2).sum::<u64>() <= carries(t.eps.core_rate().unwrap()));
    for p in 0..4 {
        prop_assert!(
            across().filter(|e| pod(e.0) == p).map(|e| e.2).sum::<u64>() <= carries(pods.uplink)
        );
        prop_assert!(
            across().filter(|e| pod(e.1) == p).map(|e| e.2).sum::<u64>() <= carries(pods.uplink)
        );
    }
    Ok(())
}

/// Between two looks no rack sent or received more than its uplink and its port could carry.
pub(super) fn within_capacity(
    t: &Topology,
    a: &Observation,
    b: &Observation,
) -> Result<(), TestCaseError> {
    let dt = b.at.since(a.at);
    let (sent, ocs) = (b.sent.since(&a.sent), b.over_ocs.since(&a.over_ocs));
    tree_within_capacity(t, dt, &sent.since(&ocs))?;
    graph_within_capacity(t, dt, &sent.since(&ocs))?;
    for r in &t.racks {
        // One byte a cell may have been begun before.
        let slack = t.rack_count() as u64;
        let out: u64 =
            sent.row(r.id).iter().sum::<u64>().saturating_sub(ocs.row(r.id).iter().sum::<u64>());
        prop_assert!(out <= bounds::payload_rate(r.uplink).bytes_in(dt).0 + 2 * slack);
        let into = |m: &DemandMatrix| t.racks.iter().map(|s| m.get(s.id, r.id)).sum::<u64>();
        prop_assert!(
            into(&sent).saturating_sub(into(&ocs))
                <= bounds::payload_rate(r.uplink).bytes_in(dt).0 + 2 * slack
        );
        let port = bounds::payload_rate(t.planes[0].rate).bytes_in(dt).0 + slack;
        prop_assert!(ocs.row(r.id).iter().sum::<u64>() <= port && into(&ocs) <= port);
    }
    Ok(())
}
