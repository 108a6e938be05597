use super::homes::Homes;
use super::index::FittedLine;
use super::price::{EstimatedNetwork, StageQuestion};
use crate::coflows::bounds::hybrid_racks;
use crate::demand::DemandMatrix;
use crate::ids::{PlaneId, RackId};
use crate::topology::graph::{Graph, Level};
use crate::topology::{Core, Framing, Plane, StopMode, Topology};
use crate::units::{BitRate, Bytes, Span, Time};
use proptest::prelude::*;

/// Racks of two hosts of one slot, a byte a nanosecond each; a core of a quarter of that, and a
/// circuit of two.
fn network(racks: usize, circuits: bool) -> Topology {
    let plane = Plane {
        id: PlaneId(0),
        rate: BitRate(16_000_000_000),
        delta: Span(10),
        stop: StopMode::NotAllStop,
        duplex: false,
    };
    let (nic, core) = (BitRate(8_000_000_000), BitRate(2_000_000_000));
    let mut t =
        Topology::uniform("t", 0, 0, nic, core, if circuits { vec![plane] } else { vec![] });
    (0..racks).for_each(|_| t.push_rack(2, 1, nic, core));
    t.framing = Framing::None;
    t
}

/// The same racks, two to a switch, and one switch above: every link is that of a rack.
fn tree(racks: usize) -> Topology {
    let mut t = network(racks, false);
    let level = |join| Level { join, uplink: t.racks[0].uplink };
    t.eps.core = Core::Graph(Box::new(Graph::tree(racks, &[level(1), level(2)], None)));
    t
}

#[derive(Debug)]
struct EstimateCase {
    net: EstimatedNetwork,
    output: Vec<u64>,
    tasks: u32,
    free: Vec<Vec<Time>>,
    crossing: Vec<(Bytes, Bytes)>,
    behind: u64,
}

impl EstimateCase {
    fn question<'a>(&'a self, hosts: &'a [u32]) -> StageQuestion<'a> {
        let Self { net, output, tasks, free, crossing, behind } = self;
        StageQuestion {
            net,
            output,
            tasks: *tasks,
            free,
            hosts,
            crossing,
            now: Time(100),
            behind: *behind,
        }
    }
}

fn case() -> impl Strategy<Value = (EstimateCase, Topology)> {
    let rack = (0u64..4000, prop::collection::vec(100u64..900, 0..4), 0u64..2000, 0u64..2000);
    (prop::collection::vec(rack, 2..4), 0..3, 1u32..6, 0u64..4, prop_oneof![Just(0u64), Just(300)])
        .prop_map(|(racks, shape, tasks, behind, threshold)| {
            let t = if shape == 2 { tree(racks.len()) } else { network(racks.len(), shape == 1) };
            let free = |f: &[u64]| {
                let mut all: Vec<Time> = f.iter().map(|&t| Time(t)).collect();
                all.sort_unstable();
                all
            };
            let case = EstimateCase {
                net: EstimatedNetwork::new(&t, Bytes(threshold)),
                output: racks.iter().map(|r| r.0).collect(),
                tasks,
                free: racks.iter().map(|r| free(&r.1)).collect(),
                crossing: racks.iter().map(|r| (Bytes(r.2), Bytes(r.3))).collect(),
                behind,
            };
            (case, t)
        })
}

/// Every way to put `left` tasks on the racks.
fn every(free: &[Vec<Time>], left: u32) -> Vec<Vec<u32>> {
    let Some((first, others)) = free.split_first() else {
        return if left == 0 { vec![vec![]] } else { vec![] };
    };
    let with =
        |n: u32| every(others, left - n).into_iter().map(move |rest| [vec![n], rest].concat());
    (0..=left.min(first.len() as u32)).flat_map(with).collect()
}

proptest! {
    #![proptest_config(crate::testing::drawn(400))]

    /// Where there are few placements, the best is that of all; and none is promised to end before
    /// the network's lower bound.
    #[test]
    fn the_best_of_few_placements_is_found_and_none_is_below_its_bound((c, t) in case()) {
        let hosts = vec![2; c.free.len()];
        let q = c.question(&hosts);
        let all: Vec<_> = every(&c.free, c.tasks).into_iter().filter_map(|tasks| q.estimate(tasks)).collect();
        let least = all.iter().map(|p| p.price).min();
        prop_assert_eq!(q.best().map(|p| p.price), least);
        for p in all {
            let mut demand = DemandMatrix::zero(c.free.len());
            for (a, &out) in c.output.iter().enumerate() {
                for (b, &n) in p.tasks.iter().enumerate().filter(|b| b.0 != a) {
                    let bytes = u128::from(out) * u128::from(n) / u128::from(c.tasks);
                    demand.set(RackId::from(a), RackId::from(b), bytes as u64);
                }
            }
            prop_assert!(p.finish.since(p.start) >= hybrid_racks(&demand, &t), "{:?}", p);
            prop_assert!(p.start >= Time(100) && p.price >= p.finish.since(Time(100)).0);
        }
    }

    /// Where times grow with bytes along a line, each is known; elsewhere the mean is, and no time
    /// grows faster than its bytes.
    #[test]
    fn times_are_learnt_by_bytes(
        (base, slope) in (0u64..5_000_000, 0u64..50),
        tasks in prop::collection::vec((1u32..9, 1u64..1_000_000), 2..9),
        other in 1u64..1_000_000,
        drawn in prop::collection::vec((1u32..9, 1u64..1_000_000, 1u64..1_000_000), 1..9),
    ) {
        // Kilobytes and microseconds.
        let time = |kb: u64| Span((base + slope * kb) * 1000);
        let mut line = FittedLine::default();
        tasks.iter().for_each(|&(n, kb)| line.note(n, kb * 1000, time(kb)));
        let apart = tasks.iter().any(|t| t.1 != tasks[0].1);
        let near = |a: Span, b: Span| a.0.abs_diff(b.0) <= 20_000_000 + b.0 / 1000;
        if apart {
            prop_assert!(near(line.at(other * 1000), time(other)), "{:?} for {:?}", line.at(other * 1000), time(other));
        }
        prop_assert!(near(line.at(tasks[0].1 * 1000), time(tasks[0].1)));

        let mut any = FittedLine::default();
        drawn.iter().for_each(|&(n, kb, us)| any.note(n, kb * 1000, Span(us * 1000)));
        let sum = |of: fn(&(u32, u64, u64)) -> u64| drawn.iter().map(|d| u64::from(d.0) * of(d)).sum::<u64>();
        let (n, x, y) = (sum(|_| 1), sum(|d| d.1), sum(|d| d.2));
        let (least, most) = (any.at(x / n * 1000 / 2).0, any.at(x / n * 2000).0);
        prop_assert!(least <= most && most / 1000 <= 2 * (y / n) + 100, "{least} {most} {}", y / n);
    }

    /// A job's homes have room for its tasks each, are of usable racks, and share none while there
    /// are enough; work that leaves is gone.
    #[test]
    fn homes_have_room_and_are_apart(
        slots in prop::collection::vec(0u32..5, 1..12),
        jobs in prop::collection::vec((1u32..9, 1u64..1000), 1..9),
    ) {
        let mut homes = Homes::new(slots.len());
        let idle = format!("{homes:?}");
        let usable = slots.iter().filter(|&&s| s > 0).count();
        let mut all = vec![];
        for (tasks, work) in jobs {
            let Some(sets) = homes.choose(tasks, work, &slots, 1) else {
                prop_assert_eq!(usable, 0);
                continue;
            };
            for set in &sets.sets {
                let room: u32 = set.iter().map(|r| slots[r.index()]).sum();
                prop_assert!(room >= tasks || set.len() == usable);
                prop_assert!(set.iter().all(|r| slots[r.index()] > 0) && set.windows(2).all(|w| w[0] < w[1]));
            }
            let racks: usize = sets.sets.iter().map(Vec::len).sum();
            prop_assert_eq!(sets.disjoint, sets.racks().len() == racks, "{:?}", sets);
            all.push((sets, work));
        }
        all.iter().for_each(|(sets, work)| homes.leave(sets, *work));
        prop_assert_eq!(format!("{homes:?}"), idle);
    }
}

#[test]
fn a_shuffle_stays_where_its_maps_are_unless_slots_there_come_late() {
    // 2000 bytes in rack 0, two reduces. There at once: 500 from each host to the other. Elsewhere
    // by circuit: 10 + 1000.
    let t = network(3, true);
    let net = EstimatedNetwork::new(&t, Bytes(0));
    let place = |at: u64| {
        let free = [vec![Time(at); 2], vec![Time(0); 2], vec![Time(0); 2]];
        let crossing = [(Bytes(0), Bytes(0)); 3];
        let q = StageQuestion {
            net: &net,
            output: &[2000, 0, 0],
            tasks: 2,
            free: &free,
            hosts: &[2; 3],
            crossing: &crossing,
            now: Time(0),
            behind: 0,
        };
        q.best().unwrap()
    };
    let home = place(0);
    assert_eq!((home.tasks, home.start, home.finish), (vec![2, 0, 0], Time(0), Time(500)));
    // One reduce at home and one away would need its slot at home; both away wait for none, and on
    // one rack need one circuit.
    let away = place(5000);
    assert_eq!((away.tasks[0], away.start, away.finish), (0, Time(0), Time(1010)));
}

#[test]
fn each_pair_goes_the_way_that_is_sooner() {
    let t = network(2, true);
    let at = |threshold: u64, bytes: u64| {
        let net = EstimatedNetwork::new(&t, Bytes(threshold));
        let (free, crossing) = ([vec![], vec![Time(0)]], [(Bytes(0), Bytes(0)); 2]);
        let q = StageQuestion {
            net: &net,
            output: &[bytes, 0],
            tasks: 1,
            free: &free,
            hosts: &[2; 2],
            crossing: &crossing,
            now: Time(0),
            behind: 0,
        };
        q.best().unwrap().finish.0
    };
    // By the core 4 ns a byte; by a circuit 10 + 1 / 2, but one host takes no more than a byte a
    // nanosecond; from the threshold on.
    assert_eq!([at(0, 1), at(0, 2), at(0, 3), at(0, 100)], [4, 8, 12, 100]);
    assert_eq!((at(0, 4), at(5, 4)), (12, 16));
}

#[test]
fn cables_that_pairs_share_and_switches_on_the_way_count() {
    let t = tree(4);
    let net = EstimatedNetwork::new(&t, Bytes(0));
    assert_eq!([0, 1, 2, 3].map(|r| net.between(0, r)), [0, 2, 4, 4]);
    let case = |free: [usize; 4]| EstimateCase {
        net: net.clone(),
        output: vec![1000, 1000, 0, 0],
        tasks: 2,
        free: free.map(|n| vec![Time(100); n]).to_vec(),
        crossing: vec![(Bytes(0), Bytes(0)); 4],
        behind: 0,
    };
    let best = |free| case(free).question(&[2; 4]).best().unwrap();
    // The switch above racks 0 and 1 sends 2000 bytes, a quarter each nanosecond.
    assert_eq!(best([0, 0, 1, 1]).finish, Time(8100));
    assert_eq!(
        (best([0, 2, 2, 2]).tasks, best([0, 2, 2, 2]).finish),
        (vec![0, 2, 0, 0], Time(4100))
    );
    // With others behind it, the bytes' links decide between placements that end at the same time.
    let price = |tasks: [u32; 4]| {
        let c = EstimateCase { output: vec![1000, 0, 0, 0], behind: 10, ..case([0, 2, 2, 2]) };
        c.question(&[2; 4]).estimate(tasks.to_vec()).unwrap().price
    };
    assert!(price([0, 2, 0, 0]) < price([0, 0, 2, 0]));
}

#[test]
fn data_goes_over_more_racks_where_its_output_must_leave_them() {
    let net = EstimatedNetwork::new(&network(4, false), Bytes(0));
    let width = |maps, reduces, behind| net.width(maps, reduces, Bytes(960), 2, behind);
    // Both reduces have room where the maps are: nothing crosses.
    assert_eq!(width(8, 2, 0), 1);
    // Four need two racks. One rack sends 480 bytes, two 240 each, three 213, four 180.
    assert_eq!(width(8, 4, 0), 4);
    // Over four racks 720 bytes cross instead of 480, and many wait for that.
    assert_eq!(width(8, 4, 100), 2);
    // No wider than there are maps.
    assert_eq!((width(2, 8, 0), width(1, 8, 0)), (2, 1));
}
