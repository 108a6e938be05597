//! Signals: asked to stop, a run takes everything down; killed, the next start or `clean` does.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::support::*;

/// The network works, seen from inside a host: its peer's receiver takes a connection.
const CONNECT: [&str; 3] = ["bash", "-c", ": < /dev/tcp/10.1.0.2/5300"];

#[test]
fn a_daemon_stops_at_a_signal_and_leaves_nothing() {
    let test = "a_daemon_stops_at_a_signal_and_leaves_nothing";
    if !root(test) {
        return;
    }
    let _turn = together();
    for mechanism in ["timed", "netlink"] {
        for signal in ["INT", "TERM", "QUIT"] {
            let name = unique("stop");
            let mut d = Daemon::start(&name, &["--mechanism", mechanism]);
            assert!(note(&name).join("state.json").exists());
            // 8 hosts, 4 ToRs, the EPS and an OCS.
            assert_eq!(namespaces(&name).len(), 14);
            let o = d.exec("h0-0", &["cat", "/proc/net/dev"]);
            assert!(
                o.status.success() && String::from_utf8_lossy(&o.stdout).contains("eth0"),
                "{}",
                said(&o)
            );
            let o = d.exec("h0-0", &CONNECT);
            assert!(o.status.success(), "h0-0 cannot reach h1-0: {}", said(&o));
            d.signal(signal);
            assert_eq!(d.ended(), Some(0), "{}", d.log());
            assert_nothing_left(&name);
        }
    }
}

#[test]
fn several_who_clean_at_once_are_not_in_each_others_way() {
    if !root("several_who_clean_at_once_are_not_in_each_others_way") {
        return;
    }
    let _turn = together();
    for _ in 0..5 {
        let name = unique("cleaners");
        let mut d = Daemon::start(&name, &[]);
        d.signal("KILL");
        d.ended();
        let clean = |_| {
            heliostat()
                .args(["clean", &name])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("it starts")
        };
        let all: Vec<std::process::Child> = (0..4).map(clean).collect();
        for one in all {
            let o = one.wait_with_output().expect("our child");
            assert!(o.status.success(), "{}", said(&o));
        }
        assert_nothing_left(&name);
    }
}

#[test]
fn a_clean_is_not_in_the_way_of_what_starts_and_stops() {
    if !root("a_clean_is_not_in_the_way_of_what_starts_and_stops") {
        return;
    }
    let _turn = together();
    let name = unique("beside");
    let (over, begun) = (AtomicBool::new(false), Instant::now());
    std::thread::scope(|all| {
        let clean = || {
            while !over.load(Relaxed) && begun.elapsed() < Duration::from_secs(120) {
                let o = heliostat().args(["clean", &name]).output().expect("it starts");
                let refused = said(&o).contains(" is running, and nothing of it is removed");
                assert!(o.status.success() || refused, "{}", said(&o));
            }
        };
        let cleaners = [all.spawn(clean), all.spawn(clean)];
        for signal in ["TERM", "KILL", "KILL"].into_iter().cycle().take(12) {
            let mut d = Daemon::start(&name, &[]);
            d.signal(signal);
            let ended = d.ended();
            assert!(signal == "KILL" || ended == Some(0), "{}", d.log());
        }
        over.store(true, Relaxed);
        cleaners.into_iter().for_each(|c| c.join().expect("no clean failed"));
    });
    let o = heliostat().args(["clean", &name]).output().expect("it starts");
    assert!(o.status.success(), "{}", said(&o));
    assert_nothing_left(&name);
}

#[test]
fn a_second_signal_ends_a_daemon_at_once_and_leaves_nothing() {
    let test = "a_second_signal_ends_a_daemon_at_once_and_leaves_nothing";
    if !root(test) {
        return;
    }
    let _turn = together();
    let name = unique("twice");
    let mut d = Daemon::start(&name, &[]);
    // A request whose body does not come keeps a stop waiting for some seconds.
    let mut client = TcpStream::connect(d.api().trim_start_matches("http://")).expect("connected");
    let head = "Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n";
    client.write_all(format!("POST /api/v1/coflows HTTP/1.1\r\n{head}").as_bytes()).expect("asked");
    client.read_exact(&mut [0; 12]).expect("it waits for the body");
    d.signal("TERM");
    d.until_says("stopping");
    d.signal("INT");
    assert_eq!(d.ended(), Some(1), "{}", d.log());
    assert!(d.log().contains("stopped at once; nothing of it is left"), "{}", d.log());
    assert_nothing_left(&name);
}

/// Clients that hold connections over TCP and the unix socket, follow the events or ask for long
/// answers, and read nothing.
fn stops_before_a_crowd() -> Timing {
    let name = unique("crowd");
    let mut d = Daemon::start(&name, &[]);
    let address = d.api().trim_start_matches("http://").to_owned();
    let ask = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes();
    let paths = ["/api/v1/events", "/api/v1/coflows", "/openapi.json"];
    let over_tcp = |k: usize| {
        let mut client = TcpStream::connect(&address).expect("connected");
        client.write_all(&ask(paths[k % paths.len()])).expect("asked");
        client
    };
    let over_unix = |_| {
        let mut client = UnixStream::connect(note(&name).join("api.sock")).expect("connected");
        client.write_all(&ask("/api/v1/events")).expect("asked");
        client
    };
    let crowd: (Vec<_>, Vec<_>) =
        ((0..500).map(over_tcp).collect(), (0..100).map(over_unix).collect());
    let begun = Instant::now();
    d.signal("TERM");
    assert_eq!(d.ended(), Some(0), "{}", d.log());
    let took = begun.elapsed();
    println!(
        "a daemon before {} clients that do not read ended {took:.2?} after SIGTERM",
        crowd.0.len() + crowd.1.len()
    );
    assert_nothing_left(&name);
    in_time!(took <= Duration::from_secs(4), "it took {took:.1?} to end");
    Ok(())
}

/// What a run of `shuffle-4` wrote with `--json` that is interrupted once a coflow is on its way.
/// It ends with code 1 and says `says`.
fn interrupted(name: &str, options: &[&str], says: &str) -> serde_json::Value {
    let scratch = Scratch::new(name);
    let json = scratch.0.join("run.json");
    let mut c = run(name);
    c.arg("--workload")
        .arg(file("workloads/shuffle-4.yaml"))
        .args(options)
        .arg("--json")
        .arg(&json);
    let mut d = Daemon::spawn(name, &mut c);
    d.api();
    until("a coflow is on its way", || {
        d.show("coflows")["coflows"].as_array().is_some_and(|c| !c.is_empty())
    });
    d.signal("INT");
    assert_eq!(d.ended(), Some(1), "{}", d.log());
    d.until_says(says);
    assert_nothing_left(name);
    serde_json::from_slice(&std::fs::read(&json).expect("the result was written")).expect("JSON")
}

#[test]
fn a_run_that_is_interrupted_tells_what_it_has() {
    let test = "a_run_that_is_interrupted_tells_what_it_has";
    if !root(test) {
        return;
    }
    let _turn = together();
    let result = interrupted(&unique("cut"), &[], "interrupted");
    assert!(result["summary"]["unfinished"].as_u64().is_some_and(|n| n > 0), "{result}");
    assert_eq!(result["coflows"].as_array().map(Vec::len), Some(7));
}

/// Ctrl-C in the first of the two runs of `--baseline`: the result is of the run with circuits off,
/// and says so.
#[test]
fn a_baseline_that_is_interrupted_says_which_of_the_two_runs_it_tells_of() {
    let test = "a_baseline_that_is_interrupted_says_which_of_the_two_runs_it_tells_of";
    if !root(test) {
        return;
    }
    let _turn = together();
    let says = "interrupted in the run with circuits off, which --baseline makes first";
    let result = interrupted(&unique("base"), &["--baseline"], says);
    assert_eq!(
        (&result["policy"], &result["end"], result.get("baseline")),
        (&"eps-only".into(), &"stopped".into(), None)
    );
}

#[test]
fn what_a_killed_daemon_left_goes_with_clean_or_the_next_start() {
    let test = "what_a_killed_daemon_left_goes_with_clean_or_the_next_start";
    if !root(test) {
        return;
    }
    let _turn = together();
    let name = unique("kill");
    let (alike, mut other) =
        (Stranger::new(&format!("{name}-h9-9")), Daemon::start(&format!("{name}-o"), &[]));
    let with_other = || namespaces(&format!("{name}-o")).len();
    let kill_one = || {
        let mut d = Daemon::start(&name, &[]);
        d.signal("KILL");
        assert_eq!(d.ended(), None);
        assert_eq!(
            namespaces(&name).len(),
            14 + with_other() + 1,
            "what was killed cannot have tidied up"
        );
    };
    kill_one();
    // Of other names, nothing is removed; a network that runs is left alone, and said to run.
    let o = output(heliostat().args(["clean", &format!("{name}-none")]));
    assert!(o.status.success() && o.stdout == b"nothing to remove\n", "{}", said(&o));
    let o = output(heliostat().args(["clean", &format!("{name}-o")]));
    assert!(o.status.code() == Some(1) && said(&o).contains("is running"), "{}", said(&o));
    assert_eq!((namespaces(&name).len(), with_other()), (29, 14));
    let o = output(heliostat().args(["clean", &name]));
    assert!(o.status.success(), "{}", said(&o));
    let told = String::from_utf8_lossy(&o.stdout).into_owned();
    assert!(told.contains(&format!("namespace {name}-h0-0")) && !told.contains("h9-9"), "{told}");
    assert!(!told.contains(&format!("{name}-o-")), "{told}");
    assert_eq!(
        (namespaces(&name).len(), with_other()),
        (15, 14),
        "too much or too little was removed"
    );
    assert!(!note(&name).exists());

    kill_one();
    // As if it had been killed between two steps of its end: the name is there, and leads nowhere.
    let half = format!("{name}-h0-0");
    let path = std::path::Path::new(heliostat::kernel::netns::NAMES).join(&half);
    assert!(
        std::process::Command::new("umount")
            .arg("--lazy")
            .arg(&path)
            .status()
            .is_ok_and(|s| s.success())
    );
    assert!(path.is_file());
    let mut d = Daemon::start(&name, &[]);
    assert!(d.log().contains("removed 14 namespaces"), "{}", d.log());
    assert!(d.exec("h0-0", &CONNECT).status.success());
    d.signal("TERM");
    assert_eq!(d.ended(), Some(0), "{}", d.log());
    assert_eq!(namespaces(&name).len(), 15);
    assert!(alike.stands());
    assert!(other.exec("h0-0", &CONNECT).status.success(), "the other fabric was harmed");
    other.signal("INT");
    assert_eq!(other.ended(), Some(0), "{}", other.log());
    drop(alike);
    assert_nothing_left(&name);
}

/// Few run at a time.
mod quiet {
    use super::*;

    #[test]
    fn a_stop_takes_four_seconds_at_most_whatever_clients_do() {
        let test = "a_stop_takes_four_seconds_at_most_whatever_clients_do";
        if !root(test) {
            return;
        }
        let _turn = together();
        tries(test, stops_before_a_crowd);
    }
}
