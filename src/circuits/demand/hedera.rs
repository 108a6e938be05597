//! Hedera's natural demand: what the elephants would send were only the hosts' links the limit.
//!
//! What a flow sends over a slow network says little of what it would send over a fast one. Hedera
//! (Al-Fares et al., NSDI 2010, section 4.2) takes only *which* large flows there are between
//! hosts, and shares the hosts' links among them max-min fairly
//! ([`natural()`](super::natural::natural)). Helios adds the shares up by pair of racks, drops the
//! mice, and schedules circuits on the sums.

use std::collections::BTreeMap;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::DemandMatrix;
use super::natural::NaturalDemand;
use crate::ids::{HostId, RackId};
use crate::topology::Topology;
use crate::units::{BitRate, Span};

/// A flow between two hosts, as its sender counts it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct HostFlow {
    /// Sender.
    pub from: HostId,
    /// Receiver.
    pub to: HostId,
    /// Tells it from all others of its two hosts.
    pub id: u64,
    /// Several flows that are counted as one; the bytes are those of all of them.
    pub flows: u32,
    /// Bytes that it sent since it began.
    pub sent: u64,
    /// Bytes that wait at the sender.
    pub waits: u64,
}

/// Elephants: how many each two hosts have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "ListedElephants", into = "ListedElephants"))]
pub struct Elephants {
    /// By sender and receiver, as if each host were a rack.
    counts: DemandMatrix,
}

/// The most elephants between two hosts: more than fit in memory, and few enough that they are
/// added up without a look.
const MOST: u64 = 1 << 32;

impl Elephants {
    /// As many by sender (row) and receiver (column), `H x H` for H hosts, 2^32 at most. What stays
    /// in its host is dropped.
    ///
    /// # Panics
    /// If there are not H^2 numbers.
    pub fn from_cells(hosts: usize, counts: Vec<u64>) -> Self {
        debug_assert!(counts.iter().all(|&n| n <= MOST), "flows that fit in memory");
        Self { counts: DemandMatrix::from_cells(hosts, counts) }
    }

    /// Number of hosts.
    pub fn hosts(&self) -> usize {
        self.counts.racks()
    }

    /// Sender, receiver and how many, of all that have some, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (HostId, HostId, u64)> + '_ {
        self.counts.entries().map(|(from, to, n)| (HostId(from.0), HostId(to.0), n))
    }
}

/// Elephants as a file has them.
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
struct ListedElephants {
    hosts: usize,
    /// Sender, receiver and how many.
    pairs: Vec<(HostId, HostId, u64)>,
}

impl From<Elephants> for ListedElephants {
    fn from(elephants: Elephants) -> Self {
        Self { hosts: elephants.hosts(), pairs: elephants.iter().collect() }
    }
}

impl TryFrom<ListedElephants> for Elephants {
    type Error = String;

    fn try_from(ListedElephants { hosts, pairs }: ListedElephants) -> Result<Self, String> {
        let is_one = |&&(from, to, n): &&(HostId, HostId, u64)| {
            from != to && from.index().max(to.index()) < hosts && (1..=MOST).contains(&n)
        };
        if let Some((from, to, n)) = pairs.iter().find(|p| !is_one(p)) {
            return Err(format!(
                "{n} large flows from {from} to {to}: there must be 1 to {MOST}, between two of {hosts} hosts"
            ));
        }
        let mut counts = DemandMatrix::zero(hosts);
        counts.set_all(pairs.into_iter().map(|(from, to, n)| (RackId(from.0), RackId(to.0), n)));
        Ok(Self { counts })
    }
}

/// Counters of flows: what each has sent since the last interval.
#[derive(Clone, Debug, Default)]
pub struct FlowMeter {
    /// What flows had sent, of those with so little left that it may decide next time.
    last: BTreeMap<(HostId, HostId, u64), u64>,
    /// Whether there was an interval before: else all that a flow has sent may be long ago.
    begun: bool,
}

impl FlowMeter {
    /// Whether no flow is known.
    pub fn rests(&self) -> bool {
        self.last.is_empty()
    }

    /// The elephants of an interval. A flow is one if what it sent in the interval and what waits
    /// now make a tenth of its sender's link. O(F) for F flows that come in the order of their
    /// hosts, and O(log F) for each of which little waits.
    pub fn elephants(
        &mut self,
        flows: &[HostFlow],
        topology: &Topology,
        interval: Span,
    ) -> Elephants {
        let (mut found, mut now) = (Vec::new(), BTreeMap::new());
        let tenths = tenths(topology, interval);
        for f in flows.iter().filter(|f| f.from != f.to) {
            let (several, tenth) = (u64::from(f.flows.max(1)), tenths[f.from.index()]);
            let mut bytes = f.waits;
            // One that has more waiting than its link can carry until the next time, and a tenth,
            // is an elephant then, too.
            if bytes / several < tenth.saturating_mul(11) {
                let key = (f.from, f.to, f.id);
                let before =
                    self.last.get(&key).copied().unwrap_or(if self.begun { 0 } else { f.sent });
                // What several flows have sent grows and shrinks as they come and go.
                bytes = bytes.saturating_add(f.sent.saturating_sub(before));
                now.insert(key, f.sent);
            }
            if bytes / several >= tenth {
                found.push((RackId(f.from.0), RackId(f.to.0), several));
            }
        }
        (self.last, self.begun) = (now, true);
        found.sort();
        found.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            kept.2 += if same { next.2 } else { 0 };
            same
        });
        let mut counts = DemandMatrix::zero(topology.hosts.len());
        counts.set_all(found);
        Elephants { counts }
    }
}

/// By host: Hedera's threshold, in bytes. O(hosts).
pub fn tenths(topology: &Topology, interval: Span) -> Vec<u64> {
    topology.hosts.iter().map(|h| tenth(h.nic, interval)).collect()
}

/// Hedera's threshold: a tenth of a host's link over an interval.
fn tenth(nic: BitRate, interval: Span) -> u64 {
    (nic.bytes_in(interval).0 / 10).max(1)
}

/// The natural demand of an interval between racks, in bytes: the shares of the elephants between
/// hosts, added up. Flows within a rack take their share of the hosts' links. Mice have no demand.
///
/// # Arguments
/// - `elephants`: how many each two hosts have.
/// - `topology`: the hosts and their links; `interval`: its length.
/// - `shares`: what is remembered of the last interval; it changes no answer.
///
/// # Panics
/// If they are not of as many hosts as the topology has.
pub fn between_hosts(
    elephants: &Elephants,
    topology: &Topology,
    interval: Span,
    shares: &mut NaturalDemand,
) -> DemandMatrix {
    let link: Vec<u64> = topology.hosts.iter().map(|h| h.nic.bytes_in(interval).0).collect();
    let shares = shares.natural(&elephants.counts, &link, &link);
    if link.len() == topology.rack_count() && topology.hosts.iter().all(|h| h.rack.0 == h.id.0) {
        return shares.clone();
    }
    let mut demand = DemandMatrix::zero(topology.rack_count());
    let rack = |host: RackId| topology.rack_of(HostId(host.0));
    shares.entries().for_each(|(from, to, bytes)| demand.add(rack(from), rack(to), bytes));
    demand
}

/// The same by pairs of racks alone, for which the ToRs' counters are enough: ours, and coarser.
///
/// A pair is an elephant if the bytes it sent and those that wait make a tenth of a host's link
/// over the interval. Elephants share the sum of a rack's host links in each direction, one flow a
/// pair, however many it has. All other pairs keep what they have, and do not press on the
/// elephants.
///
/// # Arguments
/// - `sent`: bytes of the last interval, `R x R`; `backlog`: bytes that wait now, `R x R`.
/// - `topology`, `interval`, `shares`: as in [`between_hosts`].
///
/// # Panics
/// If the matrices and the topology differ in size.
pub fn between_racks(
    sent: &DemandMatrix,
    backlog: &DemandMatrix,
    topology: &Topology,
    interval: Span,
    shares: &mut NaturalDemand,
) -> DemandMatrix {
    let racks = topology.rack_count();
    assert!(sent.racks() == racks && backlog.racks() == racks, "matrices of one network");
    let capacity: Vec<u64> =
        topology.racks.iter().map(|r| topology.rack_nic(r.id).bytes_in(interval).0).collect();
    let slowest = |r: RackId| topology.hosts_of(r).iter().map(|h| h.nic).min().unwrap_or_default();
    let tenths: Vec<u64> = topology.racks.iter().map(|r| tenth(slowest(r.id), interval)).collect();
    let mut wants = sent.with(backlog, u64::saturating_add);
    let mut elephants = DemandMatrix::zero(racks);
    elephants.set_all(
        wants.entries().filter(|&(i, _, b)| b >= tenths[i.index()]).map(|(i, j, _)| (i, j, 1)),
    );
    let shares = shares.natural(&elephants, &capacity, &capacity);
    wants.set_all(elephants.entries().map(|(i, j, _)| (i, j, shares.get(i, j))));
    wants
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Racks of two hosts each, whose links carry 1 MB in 100 ms.
    fn network(racks: usize) -> Topology {
        Topology::uniform("t", racks, 2, BitRate::mbit(80), BitRate::mbit(8), vec![])
    }

    fn flow(from: u32, to: u32, id: u64, sent: u64, waits: u64) -> HostFlow {
        HostFlow { from: HostId(from), to: HostId(to), id, flows: 1, sent, waits }
    }

    fn estimate(flows: &[HostFlow], t: &Topology) -> DemandMatrix {
        let mut meter = FlowMeter::default();
        between_hosts(
            &meter.elephants(flows, t, Span::millis(100)),
            t,
            Span::millis(100),
            &mut NaturalDemand::default(),
        )
    }

    #[test]
    fn flows_between_hosts_add_up_by_rack() {
        // One flow to rack 1 and four to rack 2: its first host has three flows, of a third of a
        // link each, its second one two halves.
        let one = flow(0, 2, 0, 0, 500_000);
        let four = [(0, 4), (0, 5), (1, 4), (1, 5)].map(|(from, to)| flow(from, to, 1, 0, 500_000));
        let found = estimate(&[&[one][..], &four].concat(), &network(3));
        assert_eq!(found.row(RackId(0)), [0, 333_333, 2 * 333_333 + 1_000_000]);
        // By pairs of racks the four are one flow, and weigh as much as the other.
        let backlog = DemandMatrix::from_rows(&[&[0, 500_000, 2_000_000], &[0; 3], &[0; 3]]);
        let racks = between_racks(
            &DemandMatrix::zero(3),
            &backlog,
            &network(3),
            Span::millis(100),
            &mut NaturalDemand::default(),
        );
        assert_eq!(racks.row(RackId(0)), [0, 1_000_000, 1_000_000]);
    }

    #[test]
    fn two_racks_exchange_what_their_hosts_links_allow() {
        // Three flows of one host's link to two hosts, two of one pair; one flow back; one within
        // the sending rack presses on the link.
        let flows = [
            flow(0, 2, 0, 0, 200_000),
            flow(0, 2, 1, 0, 200_000),
            flow(0, 3, 2, 0, 200_000),
            flow(2, 0, 3, 0, 200_000),
        ];
        assert_eq!(
            estimate(&flows, &network(2)),
            DemandMatrix::from_rows(&[&[0, 999_999], &[1_000_000, 0]])
        );
        let local = flow(0, 1, 4, 0, 200_000);
        assert_eq!(
            estimate(&[&flows[..], &[local]].concat(), &network(2)),
            DemandMatrix::from_rows(&[&[0, 750_000], &[1_000_000, 0]])
        );
    }

    #[test]
    fn a_flow_is_an_elephant_by_what_it_sends_in_an_interval_and_what_waits() {
        let (t, mut meter) = (network(2), FlowMeter::default());
        let mut counts = |flows: &[HostFlow]| {
            meter.elephants(flows, &t, Span::millis(100)).iter().collect::<Vec<_>>()
        };
        let pair = |from, to, flows| (HostId(from), HostId(to), flows);
        assert_eq!(counts(&[flow(0, 2, 0, 9_000_000, 99_999)]), [], "what it sent may be long ago");
        assert_eq!(
            counts(&[flow(0, 2, 0, 9_060_000, 39_999), flow(1, 2, 1, 100_000, 0)]),
            [pair(1, 2, 1)]
        );
        assert_eq!(
            counts(&[flow(0, 2, 0, 9_120_000, 40_000), flow(1, 2, 1, 100_000, 99_999)]),
            [pair(0, 2, 1)]
        );
        // Two flows that are counted as one: a tenth each.
        let both = |sent| HostFlow { flows: 2, ..flow(0, 3, 2, sent, 0) };
        assert_eq!(counts(&[both(199_999)]), []);
        assert_eq!(counts(&[both(399_999)]), [pair(0, 3, 2)]);
        assert_eq!(
            counts(&[flow(0, 0, 9, 1_000_000, 1_000_000)]),
            [],
            "what stays in its host needs no link"
        );
        // One with more waiting than the link carries in an interval is not remembered, and still
        // an elephant when all of that is sent.
        assert_eq!(
            counts(&[flow(0, 2, 3, 5_000_000, 1_100_000), flow(0, 2, 4, 0, 100_000)]),
            [pair(0, 2, 2)]
        );
        assert_eq!(
            counts(&[flow(0, 2, 3, 6_100_000, 0), flow(0, 2, 4, 0, 99_999)]),
            [pair(0, 2, 1)]
        );
        assert_eq!(counts(&[flow(0, 2, 3, 6_100_000, 0)]), []);
        assert!(!meter.rests());
    }

    #[test]
    fn elephants_of_a_file_are_between_its_hosts() {
        let read = |file: &str| serde_json::from_str::<Elephants>(file);
        let file = r#"{"hosts":3,"pairs":[[0,2,4],[2,1,1]]}"#;
        let elephants = read(file).unwrap();
        assert_eq!(elephants, Elephants::from_cells(3, vec![0, 0, 4, 0, 0, 0, 0, 1, 0]));
        assert_eq!(serde_json::to_string(&elephants).unwrap(), file);
        for bad in ["[0,3,1]", "[4,0,1]", "[1,1,1]", "[0,1,0]", "[0,1,4294967297]"] {
            let why =
                read(&format!(r#"{{"hosts":3,"pairs":[[0,1,1],{bad}]}}"#)).unwrap_err().to_string();
            assert!(
                why.contains("there must be 1 to 4294967296, between two of 3 hosts"),
                "{bad}: {why}"
            );
        }
    }

    #[test]
    fn mice_do_not_press_on_elephants_between_racks() {
        // A rack's links carry 2 MB.
        let sent =
            DemandMatrix::from_rows(&[&[0, 100_000, 20_000], &[3_000, 0, 0], &[0, 99_999, 0]]);
        let backlog = DemandMatrix::from_rows(&[&[0, 0, 80_000], &[0, 0, 0], &[0, 0, 0]]);
        let found = between_racks(
            &sent,
            &backlog,
            &network(3),
            Span::millis(100),
            &mut NaturalDemand::default(),
        );
        assert_eq!(
            found,
            DemandMatrix::from_rows(&[&[0, 1_000_000, 1_000_000], &[3_000, 0, 0], &[0, 99_999, 0]])
        );
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn no_host_sends_or_receives_more_than_its_link(raw in prop::collection::vec((0..6u32, 0..6u32, 1..4u32, 0..400_000u64), 0..20)) {
            let t = network(3);
            let flows = raw.iter().zip(0..).map(|(&(from, to, flows, waits), id)| HostFlow { flows, ..flow(from, to, id, 0, waits) });
            let flows: Vec<HostFlow> = flows.collect();
            let found = estimate(&flows, &t);
            // With one host a pair of racks, the sum is of those that have an elephant there.
            for (i, j, bytes) in found.entries() {
                let between = |f: &&HostFlow| (t.rack_of(f.from), t.rack_of(f.to)) == (i, j) && f.waits / u64::from(f.flows) >= 100_000;
                prop_assert!(flows.iter().any(|f| between(&f)), "{i} -> {j} has no elephant and {bytes} bytes");
            }
            for r in 0..3 {
                let (row, column) = (found.row(RackId(r)), (0..3).map(|i| found.get(RackId(i), RackId(r))));
                prop_assert!(row.iter().sum::<u64>() <= 2_000_000 && column.sum::<u64>() <= 2_000_000);
            }
        }

        #[test]
        fn extremes_do_not_panic(cells in prop::collection::vec(any::<u64>(), 9), capacity: u64) {
            let m = DemandMatrix::zero(3).map_pairs(|i, j, _| cells[i.index() * 3 + j.index()]);
            let t = Topology::uniform("t", 3, 1, BitRate(capacity), BitRate::mbit(8), vec![]);
            between_racks(&m, &m, &t, Span::secs(capacity % 1000), &mut NaturalDemand::default());
            let flows = [HostFlow { flows: cells[0] as u32, ..flow(0, 2, 0, cells[1], cells[2]) }];
            let elephants = FlowMeter::default().elephants(&flows, &t, Span::secs(capacity % 1000));
            between_hosts(&elephants, &t, Span::secs(capacity % 1000), &mut NaturalDemand::default());
        }
    }
}
