//! What a machine does to a daemon under traffic: it is stopped, loses its processors, its disk,
//! its descriptors or its memory. It carries on or is cleaned up after, what was lost is counted,
//! and each is told once.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::*;

/// A coflow that takes about three seconds over circuits and EPS: from every rack to the next, by
/// two hosts each.
fn ring() -> Vec<(u32, u32, u64)> {
    (0..8).map(|h| (h, (h + 2) % 8, 40_000_000)).collect()
}

const RING_BYTES: u64 = 8 * 40_000_000;

/// Waits until bytes of a coflow have arrived.
fn moves(d: &Daemon, id: u64) {
    until("bytes arrive", || {
        d.call("GET", &format!("/api/v1/coflows/{id}"), None).1["received_bytes"].as_u64()
            > Some(5_000_000)
    });
}

/// All of it has arrived, and nothing elsewhere.
fn whole(d: &Daemon, id: u64) -> Value {
    let c = d.outcome(id);
    assert_eq!(
        (c["state"].as_str(), c["received_bytes"].as_u64()),
        (Some("finished"), Some(RING_BYTES)),
        "{c}"
    );
    for f in c["flows"].as_array().expect("its flows") {
        assert_eq!(f["received_bytes"], f["bytes"], "{c}");
    }
    let ports = d.show("ports");
    assert!(
        ports["ports"]
            .as_array()
            .expect("ports")
            .iter()
            .all(|p| p["misdelivered_packets"].as_u64() == Some(0)),
        "{ports}"
    );
    c
}

/// Cycles go on, and nothing is wrong any more once the nodes have been compared again, which is
/// not done in every cycle.
fn is_well(d: &Daemon) {
    let cycles = || d.show("stats")["cycles"].as_u64().expect("a number");
    let from = cycles();
    until("two cycles", || cycles() > from + 2);
    until("nothing is wrong", || d.failures() == "[]");
}

fn ends(d: &mut Daemon, name: &str, code: i32) {
    d.signal("TERM");
    assert_eq!(d.ended(), Some(code), "{}", d.log());
    assert_nothing_left(name);
}

fn passes(time: Duration) {
    let begun = Instant::now();
    until("the time is over", || begun.elapsed() >= time);
}

#[test]
fn a_daemon_that_is_stopped_for_two_seconds_loses_no_byte() {
    let test = "a_daemon_that_is_stopped_for_two_seconds_loses_no_byte";
    if !root(test) {
        return;
    }
    let _turn = together();
    for mechanism in ["timed", "netlink"] {
        let name = unique("halt");
        let mut d = Daemon::start(&name, &["--policy", "c-through", "--mechanism", mechanism]);
        let id = d.post(&ring());
        moves(&d, id);
        let missed = d.show("stats")["missed_cycles"].as_u64();
        d.signal("STOP");
        passes(Duration::from_secs(2));
        d.signal("CONT");
        let c = whole(&d, id);
        is_well(&d);
        let stats = d.show("stats");
        assert!(
            stats["missed_cycles"].as_u64() >= missed.map(|n| n + 15),
            "missed cycles are counted: {stats}"
        );
        println!("{mechanism}: {} ns, {} bytes sent again", c["cct_ns"], stats["sent_again_bytes"]);
        ends(&mut d, &name, 0);
    }
}

/// Processes at real-time priority that never rest, one on each processor. The kernel ends each
/// after a second of it, whatever else happens. They are started at real-time priority, too: one
/// that waited behind another would begin when that has ended.
fn thieves() -> Command {
    const SCRIPT: &str = r#"
for processor in $(seq "$0"); do
    prlimit --rttime=1000000:1000000 taskset -c $((processor - 1)) chrt -f 50 sh -c 'while :; do :; done' & all="$all $!"
done
for thief in $all; do wait "$thief"; [ $? -eq 137 ] || exit 1; done"#;
    let mut c = Command::new("chrt");
    c.args([
        "-f",
        "60",
        "sh",
        "-c",
        SCRIPT,
        &std::thread::available_parallelism().map_or(1, usize::from).to_string(),
    ]);
    c
}

/// `heliostat run` with a disk of `bytes` bytes mounted at the directory `place`, in a mount
/// namespace of its own: the test can fill that disk and harms no other process.
pub fn on_a_small_disk(place: &str, bytes: u32, name: &str, args: &[&str]) -> Command {
    const SCRIPT: &str = r#"mount -t tmpfs -o size="$0" none "$1" && shift && exec "$@""#;
    let mut c = Command::new("unshare");
    c.args([
        "--mount",
        "sh",
        "-c",
        SCRIPT,
        &bytes.to_string(),
        place,
        env!("CARGO_BIN_EXE_heliostat"),
        "run",
    ]);
    c.arg(topology()).args(["--name", name, "--listen", "127.0.0.1:0"]).args(args);
    c.env_remove("HELIOSTAT_LOG").env_remove("HELIOSTAT_TOKEN").stdin(Stdio::null());
    c
}

#[test]
fn a_full_disk_stops_the_logs_and_not_the_control_and_what_is_missing_is_counted() {
    let test = "a_full_disk_stops_the_logs_and_not_the_control_and_what_is_missing_is_counted";
    if !root(test) {
        return;
    }
    let _turn = together();
    let (name, scratch) = (unique("full"), Scratch::new("full"));
    let disk = scratch.0.to_str().expect("a path");
    let (events, record) = (format!("{disk}/run.events"), format!("{disk}/run.rec"));
    let args = ["--policy", "c-through", "--events", &events, "--record", &record];
    let mut d = Daemon::spawn(&name, &mut on_a_small_disk(disk, 256 << 10, &name, &args));
    d.until_says("is up");
    d.until_says("run.events: No space left on device");
    d.until_says("the recording ends here: No space left on device");
    until("both failures are shown", || {
        let f = d.failures();
        f.contains("write the event log") && f.contains("write the recording")
    });
    assert!(
        d.call("GET", "/metrics", None)
            .1
            .as_str()
            .is_some_and(|m| m.contains("heliostat_failures 2"))
    );
    let id = d.post(&ring());
    whole(&d, id);
    // The disk as the daemon sees it. There is room again when the recording goes.
    let seen = std::path::PathBuf::from(format!("/proc/{}/root{disk}", d.pid()));
    let lines = || std::fs::read_to_string(seen.join("run.events")).expect("the event log");
    std::fs::File::options()
        .write(true)
        .open(seen.join("run.rec"))
        .and_then(|f| f.set_len(0))
        .expect("room");
    d.until_says("the event log goes on");
    until("the failure is over", || !d.failures().contains("write the event log"));
    let before = lines().len();
    until("it grows", || lines().len() > before);
    let seqs: Vec<u64> = lines()
        .lines()
        .skip(1)
        .map(|l| {
            serde_json::from_str::<Value>(l)
                .expect("whole lines")
                .get("seq")
                .and_then(Value::as_u64)
                .expect("a number")
        })
        .collect();
    let gaps: Vec<&[u64]> = seqs.windows(2).filter(|w| w[1] != w[0] + 1).collect();
    assert!(!gaps.is_empty() && gaps.iter().all(|w| w[1] > w[0] + 1), "{gaps:?}");
    ends(&mut d, &name, 1);
    assert_eq!(
        d.log().matches("events are missing from here on").count(),
        gaps.len(),
        "told once each time: {}",
        d.log()
    );
    assert!(d.log().contains("events are missing\n"), "{}", d.log());
}

#[test]
fn a_disk_that_is_full_at_the_end_costs_the_result_and_not_the_older_one() {
    let test = "a_disk_that_is_full_at_the_end_costs_the_result_and_not_the_older_one";
    if !root(test) {
        return;
    }
    let _turn = together();
    let (name, scratch) = (unique("json"), Scratch::new("json"));
    let disk = scratch.0.to_str().expect("a path");
    let json = format!("{disk}/run.json");
    let workload = file("workloads/shuffle-4.yaml");
    let args = [
        "--workload",
        workload.to_str().expect("a path"),
        "--coflows",
        "2",
        "--scale",
        "10",
        "--json",
        &json,
    ];
    // The mount ends with the process, so what is left of it is printed by the shell that began it.
    let inner = on_a_small_disk(disk, 8 << 10, &name, &args);
    let words: Vec<String> = inner.get_args().map(|a| a.to_string_lossy().into_owned()).collect();
    let script = words[3].replace(
        r#"exec "$@""#,
        r#"{ echo older > "$D/run.json"; head -c 8192 /dev/zero > "$D/fill"; "$@"; echo "rc $?"; cat "$D/run.json"; ls -A "$D"; }"#,
    );
    let mut c = Command::new("unshare");
    c.args(&words[..3]).arg(script).args(&words[4..]).env("D", disk).stdin(Stdio::null());
    let o = output(&mut c);
    let said_out = String::from_utf8_lossy(&o.stdout).into_owned();
    assert!(said_out.contains("rc 1\nolder\nfill\nrun.json\n"), "{said_out} {}", said(&o));
    assert!(said(&o).contains("run.json: No space left on device"), "{}", said(&o));
    assert_nothing_left(&name);
}

/// Sets a soft limit of a running daemon.
fn limit(d: &Daemon, what: &str) {
    let o = output(Command::new("prlimit").args(["--pid", &d.pid().to_string(), what]));
    assert!(o.status.success(), "{}", said(&o));
}

#[test]
fn descriptors_that_run_out_cost_the_coflows_that_need_more_and_no_others() {
    let test = "descriptors_that_run_out_cost_the_coflows_that_need_more_and_no_others";
    if !root(test) {
        return;
    }
    let _turn = together();
    let name = unique("nofile");
    let mut d = Daemon::start(&name, &["--policy", "c-through"]);
    let id = d.post(&ring());
    moves(&d, id);
    let used = std::fs::read_dir(format!("/proc/{}/fd", d.pid())).expect("our child").count();
    // Numbers below the limit that are free are few.
    limit(&d, &format!("--nofile={}:", used + 8));
    let many: Vec<(u32, u32, u64)> = (0..400).map(|k| (k % 2, 2 + k % 2, 1_000_000)).collect();
    let lost = d.outcome(d.post(&many));
    assert_eq!(lost["state"], "cancelled", "{lost}");
    assert!(lost["why"].as_str().is_some_and(|w| w.contains("Too many open files")), "{lost}");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", d.pid())).expect("our child");
    let hard = limits
        .lines()
        .find_map(|l| l.strip_prefix("Max open files")?.split_whitespace().nth(1))
        .expect("a limit");
    limit(&d, &format!("--nofile={hard}:"));
    whole(&d, id);
    let next = d.post(&ring());
    whole(&d, next);
    is_well(&d);
    assert!(
        d.log().matches("broke: ").count() == 1
            && d.log().matches("cannot accept connections").count() <= 9,
        "{}",
        d.log()
    );
    ends(&mut d, &name, 0);
}

#[test]
fn memory_that_runs_out_costs_the_coflows_that_need_more_and_no_others() {
    let test = "memory_that_runs_out_costs_the_coflows_that_need_more_and_no_others";
    if !root(test) {
        return;
    }
    let _turn = together();
    let name = unique("memory");
    let mut d = Daemon::start(&name, &["--policy", "c-through"]);
    let id = d.post(&ring());
    moves(&d, id);
    let status = std::fs::read_to_string(format!("/proc/{}/status", d.pid())).expect("our child");
    let size = status
        .lines()
        .find_map(|l| l.strip_prefix("VmSize:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok())
        .expect("its size");
    // Room for what is small. Every receiver asks for 4 MB of addresses.
    let room = size * 1024 + (48 << 20);
    limit(&d, &format!("--as={room}:"));
    let many: Vec<(u32, u32, u64)> = (0..200).map(|k| (k % 2, 2 + k % 2, 1_000_000)).collect();
    let lost = d.outcome(d.post(&many));
    assert_eq!(lost["state"], "cancelled", "{lost}");
    assert!(lost["why"].as_str().is_some_and(|w| w.contains("out of memory")), "{lost}");
    limit(&d, "--as=unlimited:");
    whole(&d, id);
    let next = d.post(&ring());
    whole(&d, next);
    is_well(&d);
    ends(&mut d, &name, 0);
}

#[test]
fn too_little_memory_to_start_with_leaves_nothing_that_clean_does_not_remove() {
    let test = "too_little_memory_to_start_with_leaves_nothing_that_clean_does_not_remove";
    if !root(test) {
        return;
    }
    let _turn = together();
    let name = unique("little");
    for megabytes in [30, 60, 100, 150] {
        let inner = run(&name);
        let mut c = Command::new("prlimit");
        c.arg(format!("--as={}", megabytes << 20))
            .arg("timeout")
            .arg("3")
            .arg(inner.get_program())
            .args(inner.get_args());
        let o = output(c.stdin(Stdio::null()));
        println!("{megabytes} MB: {:?}, {}", o.status, said(&o).lines().last().unwrap_or_default());
        assert!(output(heliostat().args(["clean", &name])).status.success());
        assert_nothing_left(&name);
    }
    let mut d = Daemon::start(&name, &[]);
    ends(&mut d, &name, 0);
}

/// Each has the machine alone.
mod alone {
    use super::*;

    #[test]
    fn a_machine_that_takes_its_processors_away_for_a_second_costs_time_and_no_byte() {
        let test = "a_machine_that_takes_its_processors_away_for_a_second_costs_time_and_no_byte";
        if !root(test) {
            return;
        }
        if !Command::new("chrt")
            .args(["-f", "1", "true"])
            .output()
            .is_ok_and(|o| o.status.success())
        {
            return skip(test, "no real-time priorities here");
        }
        let _turn = alone();
        let name = unique("thief");
        let mut d = Daemon::start(&name, &["--policy", "c-through"]);
        let id = d.post(&ring());
        moves(&d, id);
        let count = |s: &Value| {
            s["late_cycles"].as_u64().unwrap_or(0) + s["missed_cycles"].as_u64().unwrap_or(0)
        };
        let before = count(&d.show("stats"));
        let o = thieves().output().expect("util-linux");
        assert!(o.status.success(), "the kernel ended them: {o:?}");
        whole(&d, id);
        is_well(&d);
        let stats = d.show("stats");
        assert!(count(&stats) > before, "cycles that were late or missed are counted: {stats}");
        println!("{} late and missed cycles", count(&stats) - before);
        ends(&mut d, &name, 0);
    }
}
