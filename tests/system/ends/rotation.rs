//! The event log of a daemon is moved away under load, and opened again at SIGUSR1, as logrotate
//! does.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde_json::Value;

use crate::support::*;

/// The numbers of the events in a file, in its order.
fn numbers(file: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(file).expect("an event log");
    let lines: Vec<Value> =
        text.lines().map(|l| serde_json::from_str(l).expect("whole lines")).collect();
    let heads = lines
        .iter()
        .take_while(|l| l["event_log"] == 1 && l["clock"] == "live" && l["started_at"].is_string())
        .count();
    assert_eq!(heads, 1, "each file begins with one line that says what ran");
    lines.iter().skip(heads).map(|l| l["seq"].as_u64().expect("a number")).collect()
}

/// Whether a file is there and has more bytes than these.
fn has(file: &Path, bytes: u64) -> bool {
    std::fs::metadata(file).is_ok_and(|m| m.len() > bytes)
}

/// Posts coflows that end at once, until told to stop; how many.
fn load(d: &Daemon, over: &AtomicBool) -> usize {
    let mut posted = 0;
    while !over.load(Relaxed) {
        d.post(&[(0, 2, 1000), (2, 4, 1000)]);
        posted += 1;
    }
    posted
}

/// The files, oldest first, hold every event once.
fn are_whole(files: &[PathBuf], posted: usize) {
    let all: Vec<u64> = files.iter().flat_map(|f| numbers(f)).collect();
    assert!(
        all.windows(2).all(|w| w[1] == w[0] + 1),
        "an event is missing, or there twice: {all:?}"
    );
    let texts =
        files.iter().map(|f| std::fs::read_to_string(f).expect("an event log")).collect::<String>();
    assert_eq!(
        texts.matches("\"event\":\"coflow-arrived\"").count(),
        posted,
        "{} events",
        all.len()
    );
    println!("{} events of {posted} coflows in {} files", all.len(), files.len());
}

#[test]
fn an_event_log_that_is_rotated_under_load_has_every_event_once() {
    let test = "an_event_log_that_is_rotated_under_load_has_every_event_once";
    if !root(test) {
        return;
    }
    let _turn = together();
    let (name, scratch) = (unique("rotate"), Scratch::new("rotate"));
    let log = scratch.0.join("events.jsonl");
    let moved = |k: usize| scratch.0.join(format!("events.jsonl.{k}"));
    let mut d =
        Daemon::start(&name, &["--policy", "c-through", "--events", log.to_str().expect("a path")]);
    let over = AtomicBool::new(false);
    const TIMES: usize = 8;
    let posted = std::thread::scope(|s| {
        let loads = s.spawn(|| load(&d, &over));
        for k in 0..TIMES {
            until("there are events", || has(&log, 4096));
            std::fs::rename(&log, moved(k)).expect("moved");
            d.signal("USR1");
            until("the log is opened again", || log.exists());
        }
        // Without need, it goes on in the same file.
        d.signal("USR1");
        over.store(true, Relaxed);
        loads.join().expect("no panic")
    });
    d.signal("TERM");
    assert_eq!(d.ended(), Some(0), "{}", d.log());
    assert_nothing_left(&name);
    are_whole(&(0..TIMES).map(moved).chain([log.clone()]).collect::<Vec<_>>(), posted);
}

#[test]
fn an_event_log_that_cannot_be_opened_again_goes_on_in_its_old_file_and_is_told() {
    let test = "an_event_log_that_cannot_be_opened_again_goes_on_in_its_old_file_and_is_told";
    if !root(test) {
        return;
    }
    let _turn = together();
    let (name, scratch) = (unique("reopen"), Scratch::new("reopen"));
    let (place, away) = (scratch.0.join("logs"), scratch.0.join("away"));
    std::fs::create_dir(&place).expect("a directory");
    let log = place.join("events.jsonl");
    let mut d = Daemon::start(&name, &["--events", log.to_str().expect("a path")]);
    std::fs::rename(&place, &away).expect("moved");
    d.signal("USR1");
    until("it is told", || d.failures().contains("open it again"));
    let id = d.post(&[(0, 2, 1000)]);
    d.outcome(id);
    std::fs::create_dir(&place).expect("a directory");
    d.signal("USR1");
    until("no failure is shown", || d.failures() == "[]");
    d.outcome(d.post(&[(0, 2, 1000)]));
    d.signal("TERM");
    assert_eq!(d.ended(), Some(0), "{}", d.log());
    are_whole(&[away.join("events.jsonl"), log], 2);
}

/// With the configuration that we ship, for a log at another place.
#[test]
fn logrotate_rotates_by_the_shipped_configuration() {
    let test = "logrotate_rotates_by_the_shipped_configuration";
    if !root(test) {
        return;
    }
    let Ok(rotate) = Command::new("logrotate").arg("--version").output() else {
        return println!("SKIP {test}: logrotate is not installed");
    };
    assert!(rotate.status.success(), "{}", said(&rotate));
    let _turn = together();
    let (name, scratch) = (unique("logrotate"), Scratch::new("logrotate"));
    let logs = scratch.0.join("lab");
    std::fs::create_dir(&logs).expect("made");
    let log = logs.join("lab.events.jsonl");
    let mut d = Daemon::start(&name, &["--events", log.to_str().expect("a path")]);
    let shipped =
        std::fs::read_to_string(file("docs/heliostat.logrotate")).expect("the configuration");
    let signal = "systemctl kill --kill-who=main --signal=USR1 'heliostat@*.service'";
    assert!(
        shipped.contains("/var/log/heliostat/*/*.events.jsonl") && shipped.contains(signal),
        "{shipped}"
    );
    let own = shipped
        .replace("/var/log/heliostat", scratch.0.to_str().expect("a path"))
        .replace(signal, &format!("kill -USR1 {}", d.pid()));
    let (own, state) = (scratch.write("logrotate.conf", &own), scratch.0.join("state"));
    for k in 1..=2 {
        until("there are events", || has(&log, 0));
        d.outcome(d.post(&[(0, 2, 1000)]));
        let o =
            output(Command::new("logrotate").arg("--force").arg("--state").arg(&state).arg(&own));
        assert!(o.status.success(), "{k}: {}", said(&o));
        until("the log is opened again", || log.exists());
        d.outcome(d.post(&[(0, 2, 1000)]));
    }
    d.signal("TERM");
    assert_eq!(d.ended(), Some(0), "{}", d.log());
    let first = logs.join("lab.events.jsonl.2.gz");
    assert!(
        output(Command::new("gunzip").arg(&first)).status.success(),
        "the last but one is compressed"
    );
    are_whole(&[first.with_extension(""), logs.join("lab.events.jsonl.1"), log], 4);
}
