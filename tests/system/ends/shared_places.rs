//! What other programs do to places that all share: `/run/netns`, `/run/heliostat`, the nodes
//! themselves. A network ends without a trace, or says what is left.

use std::process::{Command, Output};

use crate::support::*;

/// Runs a network in a mount namespace of its own, has `meddles` do something while it is up, ends
/// it by SIGTERM, and prints what `then` prints. The script's exit code is the network's.
fn meddled(name: &str, meddles: &str, then: &str) -> Output {
    let script = format!(
        r#"mount -t tmpfs none /run
"$0" run "$1" --name {name} --listen 127.0.0.1:0 2>/run/log &
p=$!
for k in $(seq 600); do grep -q "is up" /run/log && break; sleep 0.05; done
grep -q "is up" /run/log || {{ cat /run/log; exit 99; }}
{meddles}
kill -TERM $p
wait $p; code=$?
{then}
cat /run/log >&2
exit $code"#
    );
    let mut c = Command::new("unshare");
    c.args([
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        &script,
        env!("CARGO_BIN_EXE_heliostat"),
    ])
    .arg(topology());
    output(c.env_remove("HELIOSTAT_LOG").env_remove("HELIOSTAT_TOKEN"))
}

/// What is left of a network.
fn left(name: &str) -> String {
    format!(
        "ls /run/netns; ls /run/heliostat; grep /run/netns/{name} /proc/self/mountinfo; \"$0\" clean {name}"
    )
}

#[test]
fn names_go_whatever_other_programs_do_to_their_directory() {
    let test = "names_go_whatever_other_programs_do_to_their_directory";
    if !root(test) {
        return;
    }
    if Command::new("ip").arg("-V").output().is_err() {
        return skip(test, "no iproute2");
    }
    let _turn = together();
    let name = unique("shared");
    for (meddles, stays) in [
        ("ip netns add stranger", "stranger\n"),
        ("mount --bind /run/netns /run/netns", ""),
        ("mount --rbind /run/netns /run/netns; mount --make-rprivate /run/netns", ""),
        ("ip netns add stranger; ip netns delete stranger; umount -l /run/netns", ""),
        ("mount -t tmpfs none /run/netns", ""),
    ] {
        let o = meddled(&name, meddles, &left(&name));
        let told = String::from_utf8_lossy(&o.stdout).into_owned();
        assert_eq!(o.status.code(), Some(0), "{meddles}: {told}{}", said(&o));
        assert!(told.starts_with(stays) && !told.contains(&name), "{meddles}: {told}");
        assert!(told.ends_with("nothing to remove\n"), "{meddles}: {told}");
    }
}

#[test]
fn a_name_that_cannot_be_taken_away_is_an_error_and_clean_takes_it_when_it_can() {
    let test = "a_name_that_cannot_be_taken_away_is_an_error_and_clean_takes_it_when_it_can";
    if !root(test) {
        return;
    }
    let _turn = together();
    let name = unique("covered");
    let covered = format!("{name}-h1-0");
    // Something of another program lies over one name.
    let meddles = format!("touch /run/other; mount --bind /run/other /run/netns/{covered}");
    let then = format!(
        "\"$0\" clean {name}; echo $?; umount /run/netns/{covered}; \"$0\" clean {name}; echo $?; ls /run/netns"
    );
    let o = meddled(&name, &meddles, &then);
    let told = String::from_utf8_lossy(&o.stdout).into_owned();
    assert_eq!(o.status.code(), Some(1), "{told}{}", said(&o));
    assert!(
        said(&o).contains(&format!("left behind: namespace {covered}: another program")),
        "{}",
        said(&o)
    );
    assert!(
        said(&o).contains(&format!("not removed: namespace {covered}: another program")),
        "{}",
        said(&o)
    );
    assert_eq!(told, format!("1\nremoved namespace {covered}\nremoved /run/heliostat/{name}\n0\n"));
}

#[test]
fn a_note_that_was_removed_is_told_and_another_network_s_note_is_left_alone() {
    let test = "a_note_that_was_removed_is_told_and_another_network_s_note_is_left_alone";
    if !root(test) {
        return;
    }
    let _turn = together();
    let name = unique("noted");
    let meddles = format!(
        "rm -rf /run/heliostat/{name}; mkdir /run/heliostat/{name}; touch /run/heliostat/{name}/lock
for k in $(seq 600); do grep -q \"find the namespaces by name: /run/heliostat/{name}\" /run/log && break; sleep 0.05; done"
    );
    let o = meddled(&name, &meddles, "ls /run/netns; ls /run/heliostat");
    assert_eq!(o.status.code(), Some(0), "{}", said(&o));
    assert!(
        said(&o).contains(&format!("/run/heliostat/{name} was removed while in use")),
        "{}",
        said(&o)
    );
    assert_eq!(
        String::from_utf8_lossy(&o.stdout),
        format!("{name}\n"),
        "only the other's directory"
    );
}

/// A program that runs until it is ended.
fn sleeper(d: &Daemon, node: &str) -> u32 {
    let o = d.exec(node, &["sh", "-c", "sleep 3000 >/dev/null 2>&1 & echo $!"]);
    String::from_utf8_lossy(&o.stdout).trim().parse().expect("a number")
}

fn told(args: &[&str]) -> String {
    String::from_utf8_lossy(&output(heliostat().args(args)).stdout).into_owned()
}

fn runs(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|c| c == "sleep\n")
}

#[test]
fn programs_in_nodes_are_named_and_ended_if_that_is_asked_for() {
    if !root("programs_in_nodes_are_named_and_ended_if_that_is_asked_for") {
        return;
    }
    let _turn = together();
    let name = unique("inside");
    // Stopped, ended by a signal, and killed.
    for end in ["stop", "TERM", "KILL"] {
        let mut d = Daemon::start(&name, &[]);
        let pids = [sleeper(&d, "h1-0"), sleeper(&d, "tor2")];
        let shown = told(&["ps"]);
        assert!(pids.iter().all(|p| shown.contains(&p.to_string())), "{shown}");
        match end {
            "stop" => {
                let said = told(&["stop", &name]);
                let named = |p: u32, node: &str| said.contains(&format!("{p} (sleep in {node})"));
                assert!(
                    named(pids[0], "h1-0")
                        && named(pids[1], "tor2")
                        && said.contains("--end-programs"),
                    "{said}"
                );
            }
            signal => d.signal(signal),
        }
        d.ended();
        if end == "TERM" {
            assert!(d.log().contains(&format!("{} (sleep in h1-0)", pids[0])), "{}", d.log());
        }
        assert!(pids.iter().all(|p| runs(*p)), "they are the user's");
        let gone = told(&["ps", "-o", "json"]);
        let gone: serde_json::Value = serde_json::from_str(&gone).expect("JSON");
        let row = gone
            .as_array()
            .expect("rows")
            .iter()
            .find(|r| r["name"] == *name)
            .expect("a row")
            .clone();
        assert!(
            row["state"] == "gone" && row["programs"].to_string().contains(&pids[0].to_string()),
            "{row}"
        );
        let said = told(&["clean", &name]);
        assert!(said.contains(&format!("in a node of {name}: {} (sleep)", pids[0])), "{said}");
        assert!(pids.iter().all(|p| runs(*p)));
        let said = told(&["clean", "--end-programs", &name]);
        assert!(
            said.contains(&format!("ended program in a node of {name}: {}", pids[1])),
            "{said}"
        );
        until("they have ended", || !pids.iter().any(|p| runs(*p)));
        assert_eq!(told(&["clean", &name]), "nothing to remove\n");
        assert_nothing_left(&name);
    }
    // And at once.
    let d = Daemon::start(&name, &[]);
    let pid = sleeper(&d, "h0-0");
    assert!(
        told(&["stop", "--end-programs", &name])
            .contains(&format!("ended programs in its nodes: {pid} (sleep in h0-0)"))
    );
    until("it has ended", || !runs(pid));
}

#[test]
fn hosts_find_themselves_and_each_other_by_name_and_the_machine_keeps_its_files() {
    let test = "hosts_find_themselves_and_each_other_by_name_and_the_machine_keeps_its_files";
    if !root(test) {
        return;
    }
    if Command::new("getent").arg("--version").output().is_err() {
        return skip(test, "no getent");
    }
    let _turn = together();
    let name = unique("names");
    let files = || ["/etc/hosts", "/etc/resolv.conf"].map(|f| std::fs::read_to_string(f).ok());
    let before = files();
    let mut d = Daemon::start(&name, &[]);
    let finds = |node: &str, other: &str| {
        String::from_utf8_lossy(&d.exec(node, &["getent", "hosts", other]).stdout).into_owned()
    };
    for (node, other, address) in [
        ("h0-0", "h3-1", "10.3.0.3"),
        ("h0-0", "h0-0", "10.0.0.2"),
        ("h2-1", "localhost", "127.0.0.1"),
        ("tor1", "tor1", "127.0.0.1"),
    ] {
        assert!(finds(node, other).starts_with(address), "{node} {other}: {}", finds(node, other));
    }
    let begun = std::time::Instant::now();
    assert_eq!(finds("h0-0", "no-such-name.example"), "", "there is no name server");
    assert!(begun.elapsed() < std::time::Duration::from_secs(4), "and none is waited for");
    assert_eq!(files(), before);
    d.signal("TERM");
    assert_eq!(d.ended(), Some(0));
    assert_nothing_left(&name);
}

#[test]
fn signals_that_would_kill_end_a_network_as_others_do() {
    if !root("signals_that_would_kill_end_a_network_as_others_do") {
        return;
    }
    let _turn = together();
    for signal in ["USR2", "ALRM", "VTALRM", "PROF", "IO", "RTMIN+3"] {
        let name = unique("signal");
        let mut d = Daemon::start(&name, &[]);
        // It goes on when a file has reached the limit of size.
        d.signal("XFSZ");
        assert_eq!(d.failures(), "[]");
        d.signal(signal);
        assert_eq!(d.ended(), Some(0), "{signal}: {}", d.log());
        assert_nothing_left(&name);
    }
}

#[test]
fn ps_says_what_a_network_does_and_stop_what_it_waits_for() {
    if !root("ps_says_what_a_network_does_and_stop_what_it_waits_for") {
        return;
    }
    let _turn = together();
    let name = unique("state");
    let mut d = Daemon::start(&name, &["--policy", "round-robin"]);
    let row = || {
        let all: serde_json::Value =
            serde_json::from_str(&told(&["ps", "-o", "json"])).expect("JSON");
        all.as_array().expect("rows").iter().find(|r| r["name"] == *name).expect("its row").clone()
    };
    assert_eq!(
        (&row()["state"], &row()["policy"]),
        (&"running".into(), &"round-robin".into()),
        "{}",
        row()
    );
    assert!(
        output(heliostat().args(["set", "--name", &name, "policy", "eps-only"])).status.success()
    );
    assert_eq!(row()["policy"], "eps-only");
    d.signal("STOP");
    assert!(row()["state"].as_str().is_some_and(|s| s.starts_with("does not answer")), "{}", row());
    let o = output(heliostat().args(["stop", "--timeout", "3s", &name]));
    assert_eq!(o.status.code(), Some(5), "{}", said(&o));
    assert!(
        said(&o).contains(&format!("waiting for {name}"))
            && said(&o).contains("has not begun to take"),
        "{}",
        said(&o)
    );
    d.signal("CONT");
    assert_eq!(d.ended(), Some(0));
    assert_nothing_left(&name);
    // One that hangs for good.
    let name = unique("killed");
    let mut d = Daemon::start(&name, &["--policy", "round-robin"]);
    d.signal("STOP");
    assert_eq!(told(&["stop", "--kill", &name]), format!("killed {name}\n"));
    assert_eq!(d.ended(), None, "it was killed");
    assert_nothing_left(&name);
}
