//! Packets that go nowhere and nothing that says why: what waits in vain is told by name, within
//! seconds, whatever stops it.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Duration;

use heliostat::kernel::{netns, sys};
use serde_json::json;

use crate::support::*;

/// What stops packets without a word, where, and what undoes it. Nothing that Heliostat wrote is
/// changed by it.
const WAYS: [(&str, &str, &str); 4] = [
    ("tor0", "echo 0 > /proc/sys/net/ipv4/ip_forward", "echo 1 > /proc/sys/net/ipv4/ip_forward"),
    ("eps", "ip rule add pref 5 to 10.2.0.0/16 blackhole", "ip rule del pref 5"),
    (
        "tor2",
        "ip route add blackhole 10.2.0.2/32 metric 0 table 77; ip rule add pref 6 lookup 77",
        "ip rule del pref 6",
    ),
    ("h2-0", "ip route add blackhole 10.0.0.2/32", "ip route del blackhole 10.0.0.2/32"),
];

/// What the stream of events has told so far.
fn events(d: &Daemon) -> String {
    let agent: ureq::Agent =
        ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(2))).build().into();
    let Ok(answer) =
        agent.get(format!("{}/api/v1/events", d.api())).header("last-event-id", "0").call()
    else {
        return String::new();
    };
    let mut text = vec![];
    // The stream does not end; what came within the time is what was told.
    let _ = answer.into_body().into_reader().read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn bytes_that_wait_in_vain_are_told_by_name_and_so_is_that_they_move_again() {
    if !root("bytes_that_wait_in_vain_are_told_by_name_and_so_is_that_they_move_again") {
        return;
    }
    let _turn = together();
    let name = unique("silent");
    let mut d = Daemon::start(&name, &["--policy", "eps-only"]);
    for (node, does, undoes) in WAYS {
        let o = d.exec(node, &["sh", "-ec", does]);
        assert!(o.status.success(), "{node}: {does}: {}", said(&o));
        // Host 4 is h2-0; between the other racks all is well.
        let id = d.post(&[(0, 4, 3_000_000), (3, 7, 3_000_000)]);
        let told = format!("carry coflow {id}");
        until("it shows", || d.failures().contains(&told));
        let failures = d.failures();
        assert!(
            failures.contains("flow h0-0 -> h2-0: ") && failures.contains("nothing has moved for "),
            "{node}: {does}: {failures}"
        );
        let (status, ready) = d.call("GET", "/readyz", None);
        assert!(status == 503 && ready.to_string().contains("h0-0 -> h2-0"), "{status} {ready}");
        assert_eq!(d.call("GET", "/livez", None).0, 200);
        d.until_says(&told);
        assert!(d.exec(node, &["sh", "-ec", undoes]).status.success(), "{node}: {undoes}");
        assert_eq!(d.outcome(id)["state"], "finished", "{node}: {does}");
        until("it is over", || !d.failures().contains(&told));
        until("it is ready", || d.call("GET", "/readyz", None).0 == 200);
    }
    let all = events(&d);
    assert_eq!(all.matches("event: recovered").count(), WAYS.len(), "{all}");
    d.signal("TERM");
    assert_eq!(d.ended(), Some(0));
    assert_nothing_left(&name);
}

#[test]
fn a_graph_of_switches_that_goes_dark_is_told_too() {
    if !root("a_graph_of_switches_that_goes_dark_is_told_too") {
        return;
    }
    let _turn = together();
    let (name, tree) = (unique("dark"), file("topologies/fat-tree-4.yaml"));
    for mechanism in ["timed", "netlink"] {
        let mut c = heliostat();
        c.arg("run").arg(&tree).args([
            "--name",
            &name,
            "--listen",
            "127.0.0.1:0",
            "--policy",
            "eps-only",
            "--mechanism",
            mechanism,
        ]);
        let mut d = Daemon::spawn(&name, &mut c);
        d.until_says("is up");
        // The last ToR forwards nothing.
        assert!(
            d.exec("tor7", &["sh", "-c", "echo 0 > /proc/sys/net/ipv4/ip_forward"])
                .status
                .success()
        );
        let last = d.show("topology")["hosts"].as_array().map_or(15, |h| h.len() as u32 - 1);
        let id = d.post(&[(0, last, 2_000_000)]);
        until("it shows", || d.failures().contains(&format!("carry coflow {id}")));
        assert!(d.failures().contains("flow h0-0 -> h7-"), "{}", d.failures());
        d.signal("TERM");
        assert_eq!(d.ended(), Some(0));
        assert_nothing_left(&name);
    }
}

#[test]
fn a_run_s_patience_ends_and_says_what_is_lost() {
    if !root("a_run_s_patience_ends_and_says_what_is_lost") {
        return;
    }
    let _turn = together();
    let (name, scratch) = (unique("patience"), Scratch::new("patience"));
    let text = "name: two\ncoflows:\n  - {name: a, flows: [{from: h0-0, to: h2-0, bytes: 60MB}]}\n  - {name: b, flows: [{from: h1-0, to: h3-0, bytes: 5MB}]}\n";
    let workload = scratch.write("w.yaml", text);
    let args = [
        "--policy",
        "eps-only",
        "--patience",
        "6s",
        "--workload",
        workload.to_str().expect("a path"),
    ];
    let mut d = Daemon::spawn(&name, run(&name).args(args));
    d.until_says("API at ");
    until("it sends", || d.show("coflows").to_string().contains("\"name\":\"a\""));
    assert!(
        d.exec("tor2", &["sh", "-c", "echo 0 > /proc/sys/net/ipv4/ip_forward"]).status.success()
    );
    assert_eq!(d.ended(), Some(1), "{}", d.log());
    assert!(
        d.log().contains("1 coflow did not finish") && d.log().contains("flow h0-0 -> h2-0: "),
        "{}",
        d.log()
    );
    assert_nothing_left(&name);
}

#[test]
fn what_waits_for_its_circuit_is_no_stall_and_light_that_carries_nothing_is() {
    if !root("what_waits_for_its_circuit_is_no_stall_and_light_that_carries_nothing_is") {
        return;
    }
    let _turn = together();
    let (name, scratch) = (unique("waits"), Scratch::new("waits"));
    let policy = "name: by-hand\ninterval: 100ms\nelephants: {admit: wait, threshold: 1MB}\ndemand: counters\nscheduler: manual\n";
    let policy = scratch.write("p.yaml", policy);
    let mut d =
        Daemon::start(&name, &["--policy", policy.to_str().expect("a path"), "--patience", "6s"]);
    let id = d.post(&[(0, 4, 20_000_000)]);
    let begun = std::time::Instant::now();
    until("it has waited for long", || {
        assert_eq!(d.failures(), "[]", "it waits for a circuit that no request has set");
        begun.elapsed() > Duration::from_secs(9)
    });
    let o = output(heliostat().args(["set", "--name", &name, "circuit", "r0", "r2"]));
    assert!(o.status.success(), "{}", said(&o));
    assert_eq!(d.outcome(id)["state"], "finished");
    // The circuit stands, and the receiver's ToR forwards nothing.
    assert!(
        d.exec("tor2", &["sh", "-c", "echo 0 > /proc/sys/net/ipv4/ip_forward"]).status.success()
    );
    let id = d.post(&[(0, 4, 20_000_000)]);
    assert_eq!(d.outcome(id)["state"], "cancelled");
    assert!(
        d.outcome(id)["why"].as_str().is_some_and(|w| w.contains("h0-0 -> h2-0")),
        "{}",
        d.outcome(id)
    );
    d.signal("TERM");
    assert_eq!(d.ended(), Some(0));
    assert_nothing_left(&name);
}

#[test]
fn bytes_of_other_programs_are_watched_where_a_coflow_was_declared() {
    if !root("bytes_of_other_programs_are_watched_where_a_coflow_was_declared") {
        return;
    }
    let _turn = together();
    let name = unique("declared");
    let mut d = Daemon::start(&name, &["--policy", "eps-only"]);
    let inside = |node: &str| {
        sys::open_ns(&Path::new(netns::NAMES).join(format!("{name}-{node}")))
            .expect("its namespace")
    };
    let (from, to) = (inside("h0-0"), inside("h2-0"));
    let listener = netns::within(to.as_fd(), || TcpListener::bind("0.0.0.0:7000")).expect("a port");
    let sender =
        netns::within(from.as_fd(), || TcpStream::connect("10.2.0.2:7000")).expect("connected");
    let (receiver, _) = listener.accept().expect("accepted");
    let declared = json!({"flows": [{"from": 0, "to": 4, "bytes": 500_000_000}]});
    let (status, made) = d.call("POST", "/api/v1/coflows", Some(&declared));
    assert_eq!(status, 201, "{made}");
    let told = format!("carry coflow {}", made["id"]);
    sender.set_nonblocking(true).expect("set");
    // The receiver does not read: what waits in the sender is no fault of the network.
    let begun = std::time::Instant::now();
    until("it has not been read for long", || {
        let _ = (&sender).write(&vec![0; 1 << 20]);
        assert_eq!(d.failures(), "[]");
        begun.elapsed() > Duration::from_secs(8)
    });
    let reads = || (&receiver).read(&mut vec![0; 1 << 20]);
    receiver.set_nonblocking(true).expect("set");
    let drains = || while reads().is_ok_and(|n| n > 0) {};
    drains();
    until("it flows again", || {
        drains();
        (&sender).write(&[0; 1000]).is_ok()
    });
    assert!(
        d.exec("eps", &["sh", "-c", "echo 0 > /proc/sys/net/ipv4/ip_forward"]).status.success()
    );
    until("it shows", || {
        drains();
        let _ = (&sender).write(&[0; 1000]);
        d.failures().contains(&told)
    });
    assert!(d.failures().contains("connection h0-0 -> h2-0: "), "{}", d.failures());
    assert!(
        d.exec("eps", &["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]).status.success()
    );
    until("it moves", || {
        drains();
        !d.failures().contains(&told)
    });
    d.signal("TERM");
    assert_eq!(d.ended(), Some(0));
    assert_nothing_left(&name);
}
