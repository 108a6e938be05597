//! What is taken, too large or not there: one clear message, exit code 1, nothing left behind,
//! other runs unharmed.

use std::net::TcpListener;

use crate::support::*;

#[test]
fn a_second_daemon_of_the_same_name_is_refused_and_the_first_unharmed() {
    if !root("a_second_daemon_of_the_same_name_is_refused_and_the_first_unharmed") {
        return;
    }
    let _turn = together();
    let name = unique("twice");
    let mut first = Daemon::start(&name, &[]);
    // The address is taken as well, as when the same command is started twice: the message must
    // speak of the name.
    let api = first.api();
    let address = api.trim_start_matches("http://");
    let o =
        output(heliostat().arg("run").arg(topology()).args(["--name", &name, "--listen", address]));
    assert_eq!(o.status.code(), Some(1));
    assert!(
        said(&o).contains(&format!("`{name}` is running already (process {})", first.pid())),
        "{}",
        said(&o)
    );
    assert_eq!(namespaces(&name).len(), 14);
    assert!(first.exec("h0-0", &["true"]).status.success());
    assert_eq!(first.failures(), "[]");
    first.signal("INT");
    assert_eq!(first.ended(), Some(0));
    assert_nothing_left(&name);
}

#[test]
fn an_address_that_is_taken_leaves_nothing() {
    if !root("an_address_that_is_taken_leaves_nothing") {
        return;
    }
    let _turn = together();
    let name = unique("addr");
    let held = TcpListener::bind("127.0.0.1:0").expect("a free address");
    let address = held.local_addr().expect("bound").to_string();
    let o = output(
        heliostat().arg("run").arg(topology()).args(["--name", &name, "--listen", &address]),
    );
    assert_eq!(o.status.code(), Some(1));
    assert!(
        said(&o).contains(&format!("cannot listen on {address}")) && said(&o).contains("--listen"),
        "{}",
        said(&o)
    );
    assert_nothing_left(&name);
}

#[test]
fn a_strangers_namespace_is_refused_and_stays() {
    if !root("a_strangers_namespace_is_refused_and_stays") {
        return;
    }
    let _turn = together();
    let name = unique("own");
    let stranger = Stranger::new(&format!("{name}-h1-0"));
    let o = output(&mut run(&name));
    assert_eq!(o.status.code(), Some(1));
    assert!(
        said(&o).contains(&format!("the namespace `{name}-h1-0` is there and is not ours")),
        "{}",
        said(&o)
    );
    assert!(stranger.stands());
    assert_eq!(namespaces(&name).len(), 1);
    drop(stranger);
    assert_nothing_left(&name);
}

#[test]
fn a_stale_attach_file_leads_nowhere() {
    let (name, scratch) = (unique("stale"), Scratch::new("stale"));
    let nodes = ["eps", "ocs0"].map(str::to_owned).into_iter();
    let racks = (0..4).flat_map(|r| [format!("tor{r}"), format!("h{r}-0"), format!("h{r}-1")]);
    // Processes are alive under these numbers, but they are not Mininet's.
    let nodes: serde_json::Map<_, _> =
        nodes.chain(racks).map(|n| (n, std::process::id().into())).collect();
    let attach = scratch.write("stale.json", &serde_json::json!({ "nodes": nodes }).to_string());
    let o = output(run(&name).arg("--attach").arg(&attach));
    assert_eq!(o.status.code(), Some(3), "{}", said(&o));
    assert!(
        said(&o).contains(&format!("node eps (process {}) is gone", std::process::id())),
        "{}",
        said(&o)
    );
    assert_nothing_left(&name);
}

#[test]
fn a_network_beyond_the_machine_is_refused() {
    let (name, scratch) = (unique("big"), Scratch::new("big"));
    let text = std::fs::read_to_string(topology()).expect("a topology");
    let text = text
        .replace("racks: 4", "racks: 64")
        .replace("1Gb/s", "100Gb/s")
        .replace("uplink: 100Mb/s", "uplink: 10Gb/s");
    let big = scratch.write("big.yaml", &text);
    let o =
        output(heliostat().arg("run").arg(&big).args(["--name", &name, "--listen", "127.0.0.1:0"]));
    assert_eq!(o.status.code(), Some(1), "{}", said(&o));
    assert!(
        said(&o).contains("this machine carries") && said(&o).contains("--force"),
        "{}",
        said(&o)
    );
    assert_nothing_left(&name);
}

#[test]
fn a_congestion_control_that_is_not_there_is_named_with_what_is() {
    if !root("a_congestion_control_that_is_not_there_is_named_with_what_is") {
        return;
    }
    let _turn = together();
    let (name, scratch) = (unique("cc"), Scratch::new("cc"));
    let text = std::fs::read_to_string(file("policies/manual.yaml")).expect("a policy")
        + "congestion: nonesuch\n";
    let policy = scratch.write("policy.yaml", &text);
    let o = output(run(&name).arg("--policy").arg(&policy));
    assert_eq!(o.status.code(), Some(1), "{}", said(&o));
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .expect("the kernel's list");
    assert!(
        said(&o).contains("`nonesuch`")
            && available.split_whitespace().all(|a| said(&o).contains(a)),
        "{}",
        said(&o)
    );
    assert_nothing_left(&name);
}
