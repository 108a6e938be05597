//! A daemon that serves for a long time: many coflows, posted and finished over REST.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::Client;
use crate::api::{CoflowSender, ServerOptions, wire};
use crate::control::{Event, closed};
use crate::fabric::Shipment;
use crate::rig::rig_with;
use crate::runtime::handle::Handle;

/// Delivers at once.
#[derive(Default)]
struct Delivers(OnceLock<Handle>);

impl CoflowSender for Delivers {
    fn send(&self, what: Shipment<'_>) -> Result<(), String> {
        let handle = self.0.get().expect("given before anybody asks");
        handle.notify(Event::CoflowFinished { id: what.coflow.id, at: handle.snapshot().now });
        Ok(())
    }
}

/// What was measured while some coflows were posted and finished.
struct PostingCost {
    posted: u64,
    posts: Vec<Duration>,
    cycles: Vec<Duration>,
    /// Resident memory of this process, client and controller together, in kB.
    memory: u64,
    kept: usize,
}

fn quantile(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

/// Resident memory in kB; 4 kB a page.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4
}

/// Posts `parts` times `n` coflows, a hundred between two cycles, and follows what ended. Checks
/// that none is lost.
fn post_and_finish(parts: u64, n: u64) -> Vec<PostingCost> {
    let delivers = Arc::new(Delivers::default());
    let listen = Some(([127, 0, 0, 1], 0).into());
    let rig = rig_with(ServerOptions {
        listen,
        sender: Some(delivers.clone()),
        ..ServerOptions::default()
    });
    delivers.0.set(rig.handle.clone()).ok().expect("once");
    let client = Client::new(&rig.server.url(), None).unwrap();
    let pairs = (0..12)
        .map(|k| wire::RackPair { from: k / 3, to: (k / 3 + 1 + k % 3) % 4, bytes: 1_000_000 })
        .map(|p| (&p).into())
        .collect();
    let body = wire::CoflowBody {
        name: Some("many".into()),
        pairs,
        flows: vec![],
        place: None,
        send: true,
        weight: None,
        priority: None,
        types: vec![],
    };
    let (mut ended, mut seen, mut all) = (0, 0, vec![]);
    for part in 0..parts {
        let (mut posts, mut cycles) = (vec![], vec![]);
        for k in 0..n {
            let begun = Instant::now();
            let made = client.declare(&body, &format!("{part}-{k}")).unwrap();
            posts.push(begun.elapsed());
            assert!(
                matches!(made.state, wire::CoflowState::Active | wire::CoflowState::Finished)
                    && made.asked_bytes == 12_000_000
            );
            if k % 100 == 99 {
                let begun = Instant::now();
                rig.tick();
                cycles.push(begun.elapsed());
            }
        }
        // The counters show nothing of these bytes: they are waited for through two cycles.
        (0..2).for_each(|_| rig.tick());
        let new = client.ended(ended).unwrap();
        (ended, seen) = (new.ended, seen + new.coflows.len() as u64);
        posts.sort_unstable();
        cycles.sort_unstable();
        let kept = rig.handle.snapshot().coflows.iter().count();
        all.push(PostingCost { posted: (part + 1) * n, posts, cycles, memory: memory(), kept });
    }
    let stats: wire::Stats = super::parse(&client.get("/api/v1/stats").unwrap()).unwrap();
    assert_eq!((stats.coflows_finished, stats.coflows_cancelled), (parts * n, 0));
    assert_eq!(
        (stats.coflows_received_bytes, ended, seen),
        (parts * n * 12_000_000, parts * n, parts * n),
        "each was seen once"
    );
    all
}

#[test]
fn a_client_that_has_given_up_asks_nothing_and_does_not_wait() {
    // Connections are made and never answered: each request would wait for its time limit.
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let client = Client::new(&format!("http://{}", silent.local_addr().unwrap()), None).unwrap();
    client.give_up("the API's thread has died");
    client.give_up("another reason");
    let broken = || super::Error::Broken("the API's thread has died".into());
    let mut asked = std::cell::Cell::new(0);
    let told = super::again(|| {
        asked.set(asked.get() + 1);
        client.get("/api/v1/stats")
    });
    assert_eq!((told, *asked.get_mut()), (Err(broken()), 1));
    assert_eq!(client.events(None).err(), Some(broken()));
    silent.set_nonblocking(true).unwrap();
    assert_eq!(
        silent.accept().map(|_| ()).map_err(|e| e.kind()),
        Err(std::io::ErrorKind::WouldBlock),
        "no connection was made"
    );
}

#[test]
fn a_socket_carries_requests_one_after_the_other_and_their_time_limit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("api.sock");
    let of_socket =
        |patience| Client::of_socket(path.clone(), "http://127.0.0.1:1", None, patience);
    let client = of_socket(super::TIMEOUT);
    let nobody = client.get("/livez").unwrap_err().to_string();
    assert!(nobody.starts_with("no daemon answers at http://127.0.0.1:1: "), "{nobody}");
    let rig = rig_with(ServerOptions {
        socket: Some(path.clone()),
        token: Some("0123456789abcdef".into()),
        ..ServerOptions::default()
    });
    for _ in 0..3 {
        assert_eq!(client.get("/livez").unwrap(), "ok\n");
        assert!(client.get("/api/v1/topology").unwrap().len() > 100);
        assert!(client.get("/nothing").is_err());
    }
    drop(rig);
    assert!(matches!(client.get("/livez"), Err(super::Error::Unreachable(_))));
    // One that takes the question and says nothing.
    let _silent = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let late = of_socket(std::time::Duration::from_millis(20)).get("/livez");
    assert!(matches!(late, Err(super::Error::TimedOut(_))), "{late:?}");
}

#[test]
fn only_tasks_without_room_have_no_proposal() {
    let rig = rig_with(ServerOptions {
        listen: Some(([127, 0, 0, 1], 0).into()),
        ..ServerOptions::default()
    });
    let client = Client::new(&rig.server.url(), None).unwrap();
    let ask = |tasks: u32, free: u32| {
        let place = wire::PlaceRequest {
            maps: vec![wire::RackOutput {
                rack: wire::RackRef(0),
                bytes: wire::Amount(1_000_000),
                by_task: vec![],
            }],
            reduces: None,
            tasks: Some(tasks),
            slots: Some(vec![wire::RackSlots { rack: wire::RackRef(1), free, soon: vec![] }]),
            allowed: None,
            forbidden: vec![],
            at_most: None,
            ready_ns: wire::Length(0),
            deadline_ns: None,
            hold_ns: None,
        };
        let body = wire::CoflowBody {
            place: Some(place),
            name: None,
            pairs: vec![],
            flows: vec![],
            send: false,
            weight: None,
            priority: None,
            types: vec![],
        };
        client.propose(&body, &format!("{tasks}-{free}")).map(|made| made.is_some())
    };
    assert_eq!((ask(2, 2), ask(3, 2)), (Ok(true), Ok(false)));
    let why = ask(2, 100_001).unwrap_err();
    assert!(matches!(&why, super::Error::Refused(why) if why.contains("/place/slots")), "{why}");
}

#[test]
fn each_of_many_coflows_is_seen_to_end() {
    let all = post_and_finish(3, 300);
    assert!(all.iter().all(|p| p.kept as u64 == p.posted), "young ones are kept");
}

/// `cargo test --release --lib client::tests -- --ignored --nocapture`:
/// docs/reliability-measured.md has its table.
#[test]
#[ignore = "takes minutes"]
fn a_hundred_thousand_coflows_cost_at_the_end_what_they_cost_at_the_start() {
    let all = post_and_finish(10, 10_000);
    println!(
        "| coflows | kept | memory | POST p50 | POST p99 | cycle p50 | cycle p99 |\n|---|---|---|---|---|---|---|"
    );
    for p in &all {
        let (memory, us) = (p.memory / 1000, |d: Duration| d.as_micros());
        let [a, b] = [50, 99].map(|q| us(quantile(&p.posts, q)));
        let [c, d] = [50, 99].map(|q| us(quantile(&p.cycles, q)));
        println!("| {} | {} | {memory} MB | {a} us | {b} us | {c} us | {d} us |", p.posted, p.kept);
    }
    // The store is full after the first 16,384.
    let (start, end) = (&all[2], &all[9]);
    assert!(end.kept <= closed::MOST + 1100, "{}", end.kept);
    assert!(
        end.memory < start.memory + start.memory / 10,
        "{} kB at the end, {} kB at the start",
        end.memory,
        start.memory
    );
    for (what, of) in
        [("posts", (|p| &p.posts) as fn(&PostingCost) -> &Vec<Duration>), ("cycles", |p| &p.cycles)]
    {
        for percent in [50, 99] {
            let (first, last) = (quantile(of(&all[0]), percent), quantile(of(end), percent));
            assert!(
                last < first * 2,
                "{percent} % of all {what} took up to {last:?} at the end, {first:?} at the start"
            );
        }
    }
}
