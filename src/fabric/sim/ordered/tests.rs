//! Shares that are kept up to date are held to the same engine deciding everything anew at every event, which the laws of the model
//! hold to a slow twin.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::coflows::FlowSpec;
use crate::coflows::network::NetworkKind::{Aalo, FairPerCoflow, Fifo, Priority, Sincronia, Varys};
use crate::fabric::Fabric;
use crate::fabric::sim::{FlowFinished, Settings, SimFabric};
use crate::topology::Topology;
use crate::units::BitRate;

/// What a run does: a coflow comes, or one is taken back.
type Step = (u64, Vec<(u32, u32, u64)>, Option<u8>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Sizes of few kinds, so that flows end together.
    let bytes = prop_oneof![Just(1_000_000u64), Just(500_000), 1u64..3_000_000];
    let flow = (0u32..6, 0u32..6, bytes);
    let gap = prop_oneof![Just(0u64), 0u64..10_000_000, 0u64..60_000_000];
    prop::collection::vec((gap, prop::collection::vec(flow, 0..14), prop::option::weighted(0.1, 0u8..12)), 1..12)
}

fn network() -> impl Strategy<Value = Network> {
    let kinds = prop::sample::select(vec![FairPerCoflow, Fifo, Varys, Aalo, Sincronia, Priority]);
    let aalo = orders::Aalo { queues: 4, first: Bytes(200_000), factor: 3, sharing: Sharing::Strict };
    kinds.prop_map(move |kind| Network { kind, aalo, ..Network::default() })
}

/// Every finish, and what was sent from rack to rack at every step.
fn play(t: &Arc<Topology>, network: Network, steps: &[Step], anew: bool) -> (Vec<FlowFinished>, Vec<Vec<u64>>) {
    let mut f = SimFabric::new(t.clone(), Settings { circuits: false, network, ..Settings::default() });
    let mut engine = Ordered::new(network, f.links.capacity(), true);
    assert!(engine.backfill.is_some() && f.links.two_sided());
    engine.backfill.take_if(|_| anew);
    f.engine = Box::new(engine);
    let (mut now, mut sent, mut done) = (Time::ZERO, Vec::new(), Vec::new());
    for (k, (gap, flows, gone)) in steps.iter().enumerate() {
        now = Time(now.0 + gap);
        let flows = flows.iter().map(|&(a, b, n)| FlowSpec { from: HostId(a), to: HostId(b), bytes: Bytes(n) }).collect();
        let id = CoflowId::from(k);
        let (name, priorities) = (String::new(), Default::default());
        f.add_flows(&CoflowSpec { id, name, arrival: now, weight: 1, priorities, flows }, &[], now);
        gone.inspect(|&g| f.cancel(CoflowId(g.into()), now));
        done.extend(f.advance(now));
        sent.push(f.observe(now).unwrap().sent.cells().to_vec());
    }
    done.extend(f.advance(Time(1 << 50)));
    done.sort();
    (done, sent)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn what_is_kept_up_to_date_is_what_is_decided_anew(s in steps(), network in network(), hosts in 1usize..3, slow in prop::option::of(1u64..900)) {
        let mut t = Topology::uniform("t", 6 / hosts, hosts, BitRate::mbit(1000), BitRate::mbit(2000), vec![]);
        slow.inspect(|&mbit| t.hosts[1].nic = BitRate::mbit(mbit));
        let t = Arc::new(t);
        prop_assert_eq!(play(&t, network, &s, false), play(&t, network, &s, true));
    }
}
