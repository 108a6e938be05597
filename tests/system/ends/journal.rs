//! `--journal`: what clients were told is found again after a kill at any instant.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::*;

/// Kills of [`clients_find_the_outcome_of_what_they_posted_after_a_kill_at_any_instant`], unless
/// HELIOSTAT_KILLS says otherwise.
const KILLS: u64 = 50;

/// What clients remember across restarts.
#[derive(Default)]
struct Clients {
    /// By key: the number of its coflow.
    answered: BTreeMap<String, u64>,
    /// Numbers of the events that were read, in order.
    events: Vec<u64>,
    /// Keys that were sent and not answered.
    open: Vec<String>,
}

fn body(name: &str, bytes: u64) -> Value {
    json!({"name": name, "send": true, "flows": [{"from": 0, "to": 2, "bytes": bytes}]})
}

/// Posts a coflow under a key; its number and whether the daemon had made it before. `None` if it
/// is gone before it answers.
fn post(api: &str, key: &str) -> Option<(u64, bool)> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(20)))
        .build()
        .into();
    let request =
        ureq::http::Request::builder().method("POST").uri(format!("{api}/api/v1/coflows"));
    let request = request.header("content-type", "application/json").header("idempotency-key", key);
    let bytes = if key.ends_with('0') { 20_000_000 } else { 20_000 };
    let mut answer =
        agent.run(request.body(body(key, bytes).to_string()).expect("a request")).ok()?;
    let replayed = answer.headers().contains_key("idempotency-replayed");
    let text = answer.body_mut().read_to_string().ok()?;
    assert_eq!(answer.status(), 201, "{text}");
    Some((serde_json::from_str::<Value>(&text).ok()?["id"].as_u64()?, replayed))
}

/// Follows the events from after `last` on until the daemon is gone, or `enough`; gives their
/// numbers.
fn follow(api: &str, last: Option<u64>, enough: impl Fn(u64) -> bool) -> Vec<u64> {
    let mut numbers = vec![];
    let Ok(mut stream) = TcpStream::connect(api.trim_start_matches("http://")) else {
        return numbers;
    };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
    let last = last.map(|n| format!("Last-Event-ID: {n}\r\n")).unwrap_or_default();
    if stream
        .write_all(
            format!("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n{last}\r\n").as_bytes(),
        )
        .is_err()
    {
        return numbers;
    }
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        assert_ne!(line, "event: gap", "events are missing after {last}");
        // The data line ends an event: one that is cut off before is not read.
        if let Some(data) = line.strip_prefix("data: ")
            && let Ok(event) = serde_json::from_str::<Value>(data)
        {
            let n = event["seq"].as_u64().expect("a number");
            numbers.push(n);
            if enough(n) {
                break;
            }
        }
    }
    numbers
}

/// A small generator: the instants of the kills are the same in every run.
fn draw(seed: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
    x ^= x >> 29;
    x.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
}

/// One life of the daemon: two clients post, one follows the events, and it is killed.
fn life(d: &mut Daemon, clients: &mut Clients, round: u64) {
    let (api, over) = (d.api(), AtomicBool::new(false));
    let last = clients.events.last().copied();
    let (read, answers) = std::thread::scope(|s| {
        let reader = s.spawn(|| follow(&api, last, |_| false));
        let writers: Vec<_> = (0..2)
            .map(|w| {
                let (api, over) = (&api, &over);
                s.spawn(move || {
                    let mut all = vec![];
                    for n in 0.. {
                        if over.load(Relaxed) {
                            break;
                        }
                        let key = format!("{round}-{w}-{n}");
                        let answer = post(api, &key);
                        let gone = answer.is_none();
                        all.push((key, answer));
                        if gone {
                            break;
                        }
                    }
                    all
                })
            })
            .collect();
        let begun = Instant::now();
        until("the instant of the kill", || {
            begun.elapsed() >= Duration::from_micros(draw(round) % 400_000)
        });
        d.signal("KILL");
        over.store(true, Relaxed);
        let answers: Vec<_> =
            writers.into_iter().flat_map(|w| w.join().expect("a client")).collect();
        (reader.join().expect("a reader"), answers)
    });
    assert_eq!(d.ended(), None);
    clients.events.extend(read);
    for (key, answer) in answers {
        match answer {
            Some((id, replayed)) => {
                assert!(!replayed, "{key} is new");
                assert!(!clients.answered.values().any(|&n| n == id), "{id} was given before");
                clients.answered.insert(key, id);
            }
            None => clients.open.push(key),
        }
    }
}

/// What clients of earlier lives ask the next one.
fn ask_again(d: &Daemon, clients: &mut Clients) {
    let api = d.api();
    let mut newest: Vec<(&String, u64)> =
        clients.answered.iter().map(|(key, &id)| (key, id)).collect();
    newest.sort_by_key(|c| std::cmp::Reverse(c.1));
    for (key, id) in newest.into_iter().take(40) {
        let (status, c) = d.call("GET", &format!("/api/v1/coflows/{id}"), None);
        let lost =
            c["state"] == "cancelled" && c["why"].as_str().is_some_and(|w| w.starts_with("lost: "));
        assert!(status == 200 && (c["state"] == "finished" || lost), "{key}: {c}");
        assert!(lost || c["received_bytes"] == c["asked_bytes"], "{c}");
        assert_eq!(post(&api, key), Some((id, true)), "the same request makes no second coflow");
    }
    // Those that were not answered were made or not; asked again, each is there once.
    for key in std::mem::take(&mut clients.open) {
        let (id, _) = post(&api, &key).expect("an answer");
        assert!(!clients.answered.values().any(|&n| n == id), "{id} was given before");
        clients.answered.insert(key, id);
    }
    // Every request made one coflow, and there are no others. Of those that have ended, the daemon
    // need not know more than the last: in the order of their ends, in which the newest numbers are
    // not all the last.
    let (status, all) = d.call("GET", "/api/v1/coflows", None);
    assert_eq!(status, 200, "{all}");
    let there: BTreeSet<u64> = all["coflows"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|c| c["id"].as_u64())
        .collect();
    let made: BTreeSet<u64> = clients.answered.values().copied().collect();
    assert!(there.is_subset(&made), "{:?}", there.difference(&made));
    let last: BTreeSet<u64> =
        made.iter().rev().take(heliostat::control::closed::KEPT * 9 / 10).copied().collect();
    assert!(last.is_subset(&there), "{:?}", last.difference(&there));
}

fn kills() -> u64 {
    std::env::var("HELIOSTAT_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(if quick() {
        KILLS / 4
    } else {
        KILLS
    })
}

#[test]
fn clients_find_the_outcome_of_what_they_posted_after_a_kill_at_any_instant() {
    let test = "clients_find_the_outcome_of_what_they_posted_after_a_kill_at_any_instant";
    if !root(test) {
        return;
    }
    let _turn = together();
    let (name, scratch) = (unique("life"), Scratch::new("life"));
    let journal = scratch.0.to_str().expect("a path").to_owned();
    let mut clients = Clients::default();
    for round in 0..kills() {
        let mut d = Daemon::start(&name, &["--journal", &journal]);
        ask_again(&d, &mut clients);
        life(&mut d, &mut clients, round);
    }
    let mut d = Daemon::start(&name, &["--journal", &journal]);
    ask_again(&d, &mut clients);
    let last = clients.events.last().copied().expect("events were read");
    clients.events.extend(follow(&d.api(), Some(last), |n| n > last + 5));
    let gaps: Vec<_> = clients.events.windows(2).filter(|w| w[1] != w[0] + 1).collect();
    assert!(gaps.is_empty(), "every event once and in order: {gaps:?}");
    let size: u64 = std::fs::read_dir(Path::new(&journal))
        .expect("it")
        .flatten()
        .filter_map(|f| f.metadata().ok())
        .map(|m| m.len())
        .sum();
    println!(
        "{} kills, {} coflows, {} events, {size} bytes",
        kills(),
        clients.answered.len(),
        clients.events.len()
    );
    d.signal("TERM");
    assert_eq!(d.ended(), Some(0), "{}", d.log());
    assert_nothing_left(&name);
}

#[test]
fn a_journal_has_one_daemon_and_one_network_and_says_what_was_cut_off() {
    let test = "a_journal_has_one_daemon_and_one_network_and_says_what_was_cut_off";
    if !root(test) {
        return;
    }
    let _turn = together();
    let (name, scratch) = (unique("one"), Scratch::new("one"));
    let journal = scratch.0.to_str().expect("a path");
    let mut first = Daemon::start(&name, &["--journal", journal]);
    let o = output(run(&format!("{name}-b")).args(["--journal", journal]));
    assert!(
        o.status.code() == Some(1) && said(&o).contains("another daemon writes this journal"),
        "{}",
        said(&o)
    );
    first.signal("KILL");
    assert_eq!(first.ended(), None);
    let file = scratch.0.join("journal.jsonl");
    let whole = std::fs::read_to_string(&file).expect("the journal");
    std::fs::write(&file, whole.clone() + r#"{"event":{"seq":"#).expect("written");
    let mut second = Daemon::start(&name, &["--journal", journal]);
    assert!(
        second.log().contains(
            "the last record was cut off when the daemon ended; its 16 bytes are dropped"
        ),
        "{}",
        second.log()
    );
    second.signal("TERM");
    assert_eq!(second.ended(), Some(0), "{}", second.log());
    std::fs::write(&file, whole.replacen("\"head\"", "\"tail\"", 1)).expect("written");
    let mut third = Daemon::start(&name, &["--journal", journal]);
    assert!(third.log().contains("line 1, column 1 of the journal is damaged"), "{}", third.log());
    third.signal("TERM");
    assert_eq!(third.ended(), Some(0), "{}", third.log());
    std::fs::write(&file, "racks: 4\nhosts: 2\n").expect("written");
    let o = output(run(&name).args(["--journal", journal]));
    assert!(
        o.status.code() == Some(3) && said(&o).contains("journal.jsonl: line 1, column "),
        "{}",
        said(&o)
    );
    std::fs::write(&file, whole).expect("written");
    let mut larger = heliostat();
    larger.args([
        "run",
        "hybrid-8x2",
        "--listen",
        "127.0.0.1:0",
        "--journal",
        journal,
        "--name",
        &name,
    ]);
    let o = output(&mut larger);
    assert!(
        o.status.code() == Some(3) && said(&o).contains("of network `hybrid-4x2` with 4 racks"),
        "{}",
        said(&o)
    );
    assert_nothing_left(&name);
}
