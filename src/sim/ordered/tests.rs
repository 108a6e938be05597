//! A network scheduler is one type: the example of docs/extending.md.

use super::youngest_first::YoungestFirst;
use super::*;
use crate::coflows::FlowSpec;
use crate::topology::Topology;
use crate::units::{BitRate, Span};
use crate::{SimFabric, SimSettings};

/// Two coflows of a megabyte each over one link of 80 Mb/s, the second 10 ms after the first.
fn ends(discipline: Option<Box<dyn Discipline>>) -> Vec<(u32, Time)> {
    let rate = BitRate::mbit(80);
    let topology = std::sync::Arc::new(Topology::uniform("t", 2, 1, rate, rate, vec![]));
    let network =
        Network { kind: crate::coflows::network::NetworkKind::Fifo, ..Network::default() };
    let mut f = SimFabric::new(topology, SimSettings { network, ..SimSettings::default() });
    if let Some(discipline) = discipline {
        f.engine = Box::new(Ordered::under(discipline, f.links.capacity()));
    }
    let mut ended = vec![];
    for (k, at) in [(0, Time::ZERO), (1, Time::ZERO + Span::millis(10))] {
        ended.extend(f.advance(at));
        let flow = FlowSpec { from: HostId(0), to: HostId(1), bytes: Bytes(1_000_000) };
        let coflow = CoflowSpec::new(CoflowId(k), "", at, vec![flow]);
        f.add_flows(&coflow, &[], at);
    }
    ended.extend(f.advance(Time::ZERO + Span::secs(1)));
    ended.into_iter().map(|e| (e.coflow.0, e.at)).collect()
}

#[test]
fn the_youngest_goes_first_and_the_older_one_goes_on_behind_it() {
    let first_come = ends(None);
    let alone = first_come[0].1.since(Time::ZERO);
    assert_eq!(first_come, [(0, Time::ZERO + alone), (1, Time::ZERO + alone * 2)]);
    let youngest_first = ends(Some(Box::new(YoungestFirst)));
    assert_eq!(
        youngest_first,
        [(1, Time::ZERO + Span::millis(10) + alone), (0, Time::ZERO + alone * 2)]
    );
}

/// Aalo's queues one after another, so that the order tells in which one a coflow is.
fn strict() -> Aalo {
    Aalo { sharing: orders::Sharing::Strict, ..Aalo::default() }
}

/// A job's first stage of 20 MB ends; its second one of 5 MB comes, and 1 ms later 5 MB of another
/// job. Gives the ends of the last two.
fn second_stage(jobs: bool, decide: Decide) -> [Time; 2] {
    let rate = BitRate::mbit(80);
    let topology = std::sync::Arc::new(Topology::uniform("t", 2, 1, rate, rate, vec![]));
    let (kind, within) =
        (crate::coflows::network::NetworkKind::Aalo, crate::coflows::network::Within::MaxMin);
    let network = Network { kind, decide, within, aalo: strict(), ..Network::default() };
    let mut f = SimFabric::new(topology, SimSettings { network, ..SimSettings::default() });
    let mut ends = [Time::ZERO; 3];
    for (k, at, mb, job) in [(0, 0, 20, 7), (1, 3_000, 5, 7), (2, 3_001, 5, 8)] {
        let at = Time::ZERO + Span::millis(at);
        f.advance(at).iter().for_each(|e| ends[e.coflow.index()] = e.at);
        let flow = FlowSpec { from: HostId(0), to: HostId(1), bytes: Bytes(mb * 1_000_000) };
        let coflow = CoflowSpec::new(CoflowId(k), "", at, vec![flow]);
        if jobs {
            f.belongs(coflow.id, JobId(job));
        }
        f.add_flows(&coflow, &[], at);
    }
    f.advance(Time::ZERO + Span::secs(9)).iter().for_each(|e| ends[e.coflow.index()] = e.at);
    assert!(
        ends[0] > Time::ZERO && ends[0] < Time::ZERO + Span::millis(3_000),
        "the first stage is over before: {}",
        ends[0]
    );
    [ends[1], ends[2]]
}

#[test]
fn a_stage_begins_in_the_queue_where_those_before_it_have_left_its_job() {
    for decide in [Decide::FlowEnds, Decide::CoflowEvents] {
        let [stage, other] = second_stage(false, decide);
        assert!(stage < other, "{decide:?}: as coflows of their own, the first to come goes first");
        let [stage, other] = second_stage(true, decide);
        assert!(other < stage, "{decide:?}: 20 MB of its job lie behind the stage");
        // Both take the link as long as before: the other one has it from its arrival on.
        assert!(
            other < Time::ZERO + Span::millis(3_600) && stage > Time::ZERO + Span::millis(4_000),
            "{decide:?}: {other}, {stage}"
        );
    }
}

#[test]
fn stages_that_are_on_their_way_together_add_up() {
    // Two coflows of a job over links of their own, 9 MB each: together they leave the first queue
    // sooner than each alone, and then a coflow of another job, which came later, goes first.
    let ends = |jobs: bool| {
        let rate = BitRate::mbit(80);
        let topology = std::sync::Arc::new(Topology::uniform("t", 4, 1, rate, rate, vec![]));
        let network = Network {
            kind: crate::coflows::network::NetworkKind::Aalo,
            aalo: strict(),
            ..Network::default()
        };
        let mut f = SimFabric::new(topology, SimSettings { network, ..SimSettings::default() });
        for (k, at, (from, to), mb, job) in
            [(0, 0, (0, 1), 9, 7), (1, 0, (2, 3), 9, 7), (2, 700, (0, 1), 9, 8)]
        {
            let at = Time::ZERO + Span::millis(at);
            f.advance(at);
            let flow =
                FlowSpec { from: HostId(from), to: HostId(to), bytes: Bytes(mb * 1_000_000) };
            let coflow = CoflowSpec::new(CoflowId(k), "", at, vec![flow]);
            if jobs {
                f.belongs(coflow.id, JobId(job));
            }
            f.add_flows(&coflow, &[], at);
        }
        let mut order: Vec<u32> =
            f.advance(Time::ZERO + Span::secs(9)).iter().map(|e| e.coflow.0).collect();
        order.retain(|&k| k != 1);
        order
    };
    assert_eq!((ends(false), ends(true)), (vec![0, 2], vec![2, 0]));
}
