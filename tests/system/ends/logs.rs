//! A log that cannot be written, and one that no program reads: control goes on, and what is
//! missing is told.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::process::Command;

use heliostat::kernel::netns;

use super::faults::on_a_small_disk;
use crate::support::*;

/// Has the control thread warn of something, and looks whether control goes on afterwards.
fn warns(d: &Daemon, name: &str, host: &str) -> String {
    let lost = format!("{name}-{host}");
    netns::unpublish(&lost, |_| true).expect("removed");
    until("the lost name shows", || d.failures().contains(&lost));
    assert_eq!(d.call("GET", "/livez", None).0, 200);
    let cycles = || d.show("stats")["cycles"].as_u64();
    let from = cycles();
    until("two cycles", || cycles() > from.map(|n| n + 2));
    format!("{lost} was removed while in use")
}

fn ends(d: &mut Daemon, name: &str) {
    d.signal("TERM");
    assert_eq!(d.ended(), Some(0), "{}", d.log());
    assert_nothing_left(name);
}

#[test]
fn a_log_whose_reader_is_gone_does_not_end_control() {
    if !root("a_log_whose_reader_is_gone_does_not_end_control") {
        return;
    }
    let _turn = together();
    let name = unique("head");
    // As `2>&1 | head` reads.
    let mut d = Daemon::spawn_read(&name, &mut run(&name), |line| !line.contains("is up"));
    d.until_says("API at");
    warns(&d, &name, "h1-0");
    ends(&mut d, &name);
}

#[test]
fn a_full_disk_under_the_log_does_not_end_control_and_what_is_missing_is_counted() {
    if !root("a_full_disk_under_the_log_does_not_end_control_and_what_is_missing_is_counted") {
        return;
    }
    let _turn = together();
    let (name, scratch) = (unique("fulllog"), Scratch::new("fulllog"));
    let disk = scratch.0.to_str().expect("a path");
    let inner = on_a_small_disk(disk, 64 << 10, &name, &[]);
    let words: Vec<String> = inner.get_args().map(|a| a.to_string_lossy().into_owned()).collect();
    let script = words[3].replace(
        r#"exec "$@""#,
        r#"{ head -c 64K /dev/zero > "$D/fill"; exec "$@" 2>> "$D/log"; }"#,
    );
    let mut c = Command::new("unshare");
    c.args(&words[..3]).arg(script).args(&words[4..]).env("D", disk).env_remove("HELIOSTAT_LOG");
    let mut d = Daemon::start_unread(&name, &mut c, std::process::Stdio::null());
    warns(&d, &name, "h1-0");
    let seen = std::path::PathBuf::from(format!("/proc/{}/root{disk}", d.pid()));
    let log = || std::fs::read_to_string(seen.join("log")).expect("the log");
    assert_eq!(log(), "");
    std::fs::remove_file(seen.join("fill")).expect("room");
    let told = warns(&d, &name, "h2-0");
    until("the log goes on", || log().contains(&told));
    // What it said of its start, where to stop it, and of the first name.
    let log = log();
    let first = log.lines().next().expect("a line");
    let (begin, why) =
        first.split_once(" lines of the log are missing here: ").expect("what is missing");
    assert_eq!(why, "No space left on device (os error 28)");
    assert!(
        begin.strip_prefix("heliostat: ").is_some_and(|n| n.parse::<u64>().is_ok_and(|n| n >= 3)),
        "{first}"
    );
    ends(&mut d, &name);
}

/// A pipe that is full.
fn full() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    // What a pipe holds unless it is told otherwise (pipe(7)).
    writer.write_all(&[b'\n'; 64 << 10]).expect("room");
    (reader, writer)
}

#[test]
fn a_log_that_is_not_read_holds_no_thread_up() {
    if !root("a_log_that_is_not_read_holds_no_thread_up") {
        return;
    }
    let _turn = together();
    let name = unique("unread");
    for is_read_later in [true, false] {
        let (mut reader, writer) = full();
        let mut d = Daemon::start_unread(&name, &mut run(&name), writer);
        let told = warns(&d, &name, "h1-0");
        let id = d.post(&[(0, 2, 100_000)]);
        assert_eq!(d.outcome(id)["state"], "finished");
        if !is_read_later {
            ends(&mut d, &name);
            continue;
        }
        let read = std::thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text).expect("text")
        });
        ends(&mut d, &name);
        let text = read.join().expect("read");
        let text = text.trim_start();
        // Nothing is missing, and all is in its order.
        let found = ["built in", "is up; stop it with", &told, "stopping; ask again"]
            .map(|t| text.find(t).unwrap_or_else(|| panic!("{t}: {text}")));
        assert!(found.is_sorted() && !text.contains("are missing"), "{text}");
    }
}

#[test]
fn the_exit_code_is_the_same_without_a_reader_of_stderr() {
    let unread = |args: &[&str]| {
        let (_, writer) = std::io::pipe().expect("a pipe");
        heliostat()
            .args(args)
            .stdout(std::process::Stdio::null())
            .stderr(writer)
            .status()
            .expect("the program starts")
            .code()
    };
    let scratch = Scratch::new("readers");
    let copy = scratch.0.join("own.yaml");
    // The first says where it wrote, the others why they did not do what was asked.
    assert_eq!(unread(&["copy", "hybrid-4x2", copy.to_str().expect("a path")]), Some(0));
    assert_eq!(
        unread(&[
            "simulate",
            "hybrid-4x2",
            "--policy",
            "no-such-policy",
            "--workload",
            "shuffle-4"
        ]),
        Some(3)
    );
    assert_eq!(unread(&["show", "circuits", "--controller", "http://127.0.0.1:1"]), Some(4));
}

#[test]
fn errors_of_usage_and_all_others_begin_alike() {
    for (words, code, why) in [
        (&["simulate", "x", "--polcy", "y"][..], 2, "unexpected argument '--polcy' found"),
        (&["simulate", "hybrid-4x2", "--policy", "c-through"], 2, "required arguments"),
        (&["check", "/no/such/file.yaml"], 3, "/no/such/file.yaml"),
    ] {
        let o = output(heliostat().args(words));
        assert_eq!(o.status.code(), Some(code), "{words:?}: {}", said(&o));
        let first = said(&o).lines().next().unwrap_or_default().to_owned();
        assert!(
            first.starts_with("heliostat: ") && said(&o).contains(why),
            "{words:?}: {}",
            said(&o)
        );
        assert!(!said(&o).contains("error:"), "{words:?}: {}", said(&o));
    }
    for (words, code) in [(&["--help"][..], 0), (&["--version"], 0), (&[], 2)] {
        let o = output(heliostat().args(words));
        let all = said(&o) + &String::from_utf8_lossy(&o.stdout);
        assert_eq!(o.status.code(), Some(code), "{words:?}: {all}");
        assert!(!all.contains("heliostat: ") && !all.is_empty(), "{words:?}: {all}");
    }
}
