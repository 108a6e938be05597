use super::*;
use crate::coflows::CoflowSpec;
use crate::coflows::priority::{PLAIN, WITHIN_RACK};
use crate::ids::HostId;
use crate::units::BitRate;
use std::sync::mpsc;

fn shared() -> (SharedTable, mpsc::Receiver<TrafficEvent>) {
    let t = Topology::uniform("t", 2, 2, BitRate(8), BitRate(8), vec![]);
    let (tx, rx) = mpsc::channel();
    (SharedTable::new(Arc::new(t), Clock::start(), 7, Box::new(move |e| tx.send(e).unwrap())), rx)
}

fn coflow(id: u32, flows: &[(u32, u32, u64)]) -> CoflowSpec {
    let flow =
        |&(a, b, n): &(u32, u32, u64)| FlowSpec { from: HostId(a), to: HostId(b), bytes: Bytes(n) };
    CoflowSpec::new(CoflowId(id), "c", Time::ZERO, flows.iter().map(flow).collect())
}

/// Opens a coflow whose senders wait for ever; says whether it was finished at once.
fn open(s: &SharedTable, coflow: &CoflowSpec, report: ReportedEnds) -> bool {
    let coming = OnItsWay::new(Shipment { coflow, report }, &s.topology);
    let n = coming.to_send().count();
    s.open(coflow.id, coming, || {
        (0..n).map(|_| tokio::spawn(std::future::pending::<()>()).abort_handle()).collect()
    })
}

#[tokio::test]
async fn flows_keep_their_places_and_end_before_their_coflow() {
    let (s, events) = shared();
    let c = coflow(7, &[(0, 0, 5), (0, 2, 9), (1, 3, 0), (1, 3, 4), (0, 1, 3)]);
    assert!(!open(&s, &c, ReportedEnds::Flows));
    let ends = |s: &SharedTable| {
        s.flows(CoflowId(7)).unwrap().iter().map(|f| f.finished.is_some()).collect::<Vec<_>>()
    };
    assert_eq!(
        ends(&s),
        [true, false, true, false, false],
        "what sends nothing is finished at once"
    );
    for (flow, bytes) in [(3, 4), (1, 9), (4, 3)] {
        s.get(CoflowId(7))
            .unwrap()
            .begin(FlowId(flow), Bytes(bytes))
            .unwrap()
            .store(bytes, Relaxed);
        let sums = s.progress()[0].1.clone();
        assert_eq!(
            sums.iter().map(|p| (p.from.0, p.to.0)).collect::<Vec<_>>(),
            [(0, 0), (0, 1)],
            "by rack pair"
        );
        s.done(CoflowId(7), FlowId(flow));
    }
    let said: Vec<_> = events.try_iter().collect();
    let flow = |e: &TrafficEvent| match e {
        TrafficEvent::FlowFinished { flow, bytes, .. } => Some((flow.0, bytes.0)),
        _ => None,
    };
    assert_eq!(
        said.iter().map(flow).collect::<Vec<_>>(),
        [Some((3, 4)), Some((1, 9)), Some((4, 3)), None]
    );
    assert!(matches!(said[3], TrafficEvent::Finished { coflow: CoflowId(7), .. }));
    assert!(s.get(CoflowId(7)).is_none() && ends(&s) == [true; 5], "finished, and remembered");
    assert_eq!(s.flows(CoflowId(8)), None);
}

#[tokio::test]
async fn a_flow_s_own_priority_stays_when_its_coflow_s_changes() {
    let (s, _events) = shared();
    let c = coflow(3, &[(0, 2, 9), (1, 3, 4), (0, 1, 5)]);
    open(&s, &c, ReportedEnds::Flows);
    let give = |all: Option<u8>, flows: &[(u32, u8)]| {
        let flows = flows.iter().map(|&(f, p)| (FlowId(f), p)).collect();
        s.prioritise(CoflowId(3), &PriorityChange { all, flows }, Service::Strict).unwrap();
        s.flows(CoflowId(3)).unwrap().iter().map(|f| f.priority).collect::<Vec<_>>()
    };
    assert_eq!(give(None, &[]), [PLAIN, PLAIN, WITHIN_RACK]);
    assert_eq!(give(Some(2), &[(1, 5)]), [2, 5, WITHIN_RACK]);
    assert_eq!(give(Some(0), &[(9, 1)]), [0, 5, WITHIN_RACK], "there is no flow 9");
    assert_eq!(give(None, &[(2, 3)]), [0, 5, 3]);
    assert!(
        s.prioritise(CoflowId(4), &PriorityChange { all: Some(1), flows: vec![] }, Service::Strict)
            .is_ok(),
        "it is forgotten"
    );
    s.get(CoflowId(3)).unwrap().begin(FlowId(0), Bytes(9)).unwrap().store(4, Relaxed);
    s.done(CoflowId(3), FlowId(1));
    assert_eq!(s.left(), [(CoflowId(3), vec![(FlowId(0), Bytes(5)), (FlowId(2), Bytes(5))])]);
}

#[tokio::test]
async fn priorities_given_before_a_coflow_is_entered_hold_once_it_is() {
    let (s, _events) = shared();
    let give = |id: u32, all: Option<u8>, flows: &[(u32, u8)]| {
        let flows = flows.iter().map(|&(f, p)| (FlowId(f), p)).collect();
        s.prioritise(CoflowId(id), &PriorityChange { all, flows }, Service::Strict).unwrap();
    };
    let priorities =
        |id| s.flows(CoflowId(id)).unwrap().iter().map(|f| f.priority).collect::<Vec<_>>();
    give(3, Some(6), &[(1, 5)]);
    give(3, Some(2), &[(2, 3)]);
    give(5, Some(1), &[]);
    open(&s, &coflow(3, &[(0, 2, 9), (1, 3, 4), (0, 1, 5)]), ReportedEnds::Flows);
    assert_eq!(priorities(3), [2, 5, 3]);
    give(3, Some(0), &[]);
    assert_eq!(priorities(3), [0, 5, 3], "what was said of single flows stays said");
    // Cancelled or over, it is forgotten.
    s.cancel(CoflowId(5));
    open(&s, &coflow(5, &[(0, 2, 9)]), ReportedEnds::Flows);
    assert_eq!(priorities(5), [PLAIN]);
    s.done(CoflowId(5), FlowId(0));
}

#[tokio::test]
async fn what_is_cancelled_stops_its_senders_and_is_not_heard_of_again() {
    let (s, events) = shared();
    let c = coflow(1, &[(0, 2, 9), (1, 3, 4)]);
    open(&s, &c, ReportedEnds::Flows);
    let held = s.get(CoflowId(1)).unwrap();
    assert!(s.cancel(CoflowId(1)) && !s.cancel(CoflowId(1)));
    tokio::task::yield_now().await;
    assert!(held.senders.iter().all(AbortHandle::is_finished));
    s.done(CoflowId(1), FlowId(0));
    s.failed(CoflowId(1), "broken".into());
    assert_eq!((events.try_iter().count(), s.progress().len(), s.flows(CoflowId(1))), (0, 0, None));
}

#[tokio::test]
async fn a_flow_is_received_once_and_in_its_size() {
    let (s, events) = shared();
    let c = coflow(1, &[(0, 2, 9), (1, 1, 4)]);
    open(&s, &c, ReportedEnds::Coflow);
    let held = s.get(CoflowId(1)).unwrap();
    for (flow, bytes) in [(0, 0), (0, 8), (1, 4), (2, 9)] {
        assert!(held.begin(FlowId(flow), Bytes(bytes)).is_none(), "flow {flow} of {bytes} bytes");
    }
    assert!(held.begin(FlowId(0), Bytes(9)).is_some() && held.begin(FlowId(0), Bytes(9)).is_none());
    (0..2).for_each(|_| s.done(CoflowId(1), FlowId(0)));
    assert_eq!(events.try_iter().count(), 1);
}

#[tokio::test]
async fn what_needs_who_is_cut_off_breaks_then_and_ever_after() {
    let (s, events) = shared();
    // Two racks of two hosts.
    open(&s, &coflow(1, &[(0, 2, 9)]), ReportedEnds::Coflow);
    open(&s, &coflow(2, &[(2, 3, 9)]), ReportedEnds::Coflow);
    s.cut_off([(Cut::Host(HostId(1)), "h".into())]);
    assert_eq!(events.try_iter().count(), 0);
    s.cut_off([(Cut::Rack(RackId(1)), "gone".into()), (Cut::Host(HostId(1)), "h".into())]);
    let broke = |id| TrafficEvent::Failed { coflow: CoflowId(id), why: "gone".into() };
    assert_eq!(
        events.try_iter().collect::<Vec<_>>(),
        [broke(1)],
        "within its rack the other goes on"
    );
    open(&s, &coflow(3, &[(3, 0, 1)]), ReportedEnds::Coflow);
    s.break_if_cut(CoflowId(3));
    assert_eq!(events.try_iter().collect::<Vec<_>>(), [broke(3)]);
    // A sender that found no route does not hide the cause.
    open(&s, &coflow(4, &[(3, 0, 1)]), ReportedEnds::Coflow);
    s.failed(CoflowId(4), "no route".into());
    assert_eq!(events.try_iter().collect::<Vec<_>>(), [broke(4)]);
}

#[tokio::test]
async fn only_the_last_are_remembered() {
    let (s, _events) = shared();
    for id in 0..=KEPT as u32 {
        assert!(open(&s, &coflow(id, &[(0, 0, 1)]), ReportedEnds::Coflow));
    }
    assert!(s.flows(CoflowId(0)).is_none() && s.flows(CoflowId(1)).is_some());
    let large = vec![(0, 0, 1); KEPT_FLOWS / 2];
    for id in 2000..2003 {
        open(&s, &coflow(id, &large), ReportedEnds::Coflow);
    }
    assert!(
        s.flows(CoflowId(KEPT as u32)).is_none()
            && s.flows(CoflowId(2000)).is_none()
            && s.flows(CoflowId(2001)).is_some()
    );
}
