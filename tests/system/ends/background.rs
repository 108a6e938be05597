//! Networks in the background: started, listed, spoken to, read and stopped by name.

use crate::support::*;

/// What a command said on stdout, if it went well.
fn told(args: &[&str]) -> String {
    let o = output(heliostat().args(args));
    assert!(o.status.success(), "{args:?}: {}", said(&o));
    String::from_utf8_lossy(&o.stdout).into_owned()
}

/// Stops its network when the test ends early.
struct Stops(String);

impl Drop for Stops {
    fn drop(&mut self) {
        if note(&self.0).exists() {
            let _ = output(heliostat().args(["stop", &self.0]));
        }
        for log in ["log", "log.1"] {
            let _ = std::fs::remove_file(note(&self.0).with_extension(log));
        }
    }
}

#[test]
fn a_policy_file_that_is_written_again_decides_and_a_bad_one_changes_nothing() {
    if !root("a_policy_file_that_is_written_again_decides_and_a_bad_one_changes_nothing") {
        return;
    }
    let _turn = together();
    let (name, dir) = (unique("watch"), Scratch::new("watched"));
    let o = output(run(&name).args(["--watch", "--policy", "round-robin"]));
    assert!(
        !o.status.success() && said(&o).contains("a shipped policy never changes"),
        "{}",
        said(&o)
    );
    assert_nothing_left(&name);
    let text = std::fs::read_to_string(file("policies/round-robin.yaml")).expect("a policy");
    let own = dir.write("own.yaml", &text);
    let d = Daemon::start(&name, &["--watch", "--policy", own.to_str().expect("a path")]);
    let decides = || d.show("policy").to_string();
    dir.write("own.yaml", &text.replace("name: round-robin", "name: second"));
    d.until_says("the policy `second` decides from now on");
    assert!(decides().contains("second"), "{}", decides());
    dir.write("own.yaml", &text.replace("scheduler: round-robin", "scheduler: nonesuch"));
    d.until_says("own.yaml was written again, and changes nothing");
    dir.write("own.yaml", &format!("{text}scale: 7\n"));
    d.until_says("`scale` was fixed when this run started");
    assert!(decides().contains("second"), "{}", decides());
    // An editor may take the file away before it writes a new one.
    std::fs::remove_file(&own).expect("it is there");
    dir.write("own.yaml", &text.replace("name: round-robin", "name: third"));
    d.until_says("the policy `third` decides from now on");
}

#[test]
fn a_network_in_the_background_is_found_by_its_name() {
    let test = "a_network_in_the_background_is_found_by_its_name";
    if !root(test) {
        return;
    }
    let _turn = together();
    let name = unique("back");
    let stops = Stops(name.clone());
    let o = output(run(&name).args(["--detach", "--policy", "round-robin"]));
    assert!(o.status.success(), "{}", said(&o));
    let line = String::from_utf8_lossy(&o.stdout).into_owned();
    assert!(line.starts_with(&format!("{name} is up; API at http://127.0.0.1:")), "{line}");

    // It is up when the command returns, in a row of its own.
    let all: serde_json::Value = serde_json::from_str(&told(&["ps", "-o", "json"])).expect("JSON");
    let row = all
        .as_array()
        .expect("a list")
        .iter()
        .find(|n| n["name"] == *name)
        .expect("its row")
        .clone();
    assert_eq!((&row["racks"], &row["hosts"]), (&4.into(), &8.into()), "{row}");
    assert!(line.contains(row["api"].as_str().expect("an address")), "{row}");
    assert!(told(&["ps"]).contains(&name));

    // Commands reach it by its name.
    assert!(
        told(&["show", "topology", "--name", &name]).contains("racks"),
        "{}",
        told(&["show", "topology", "--name", &name])
    );
    assert_eq!(told(&["exec", "--name", &name, "h0-0", "echo", "-n", "--all", "x"]), "--all x");
    // The command has the node's name, and the machine keeps its own.
    let machine = output(std::process::Command::new("uname").arg("-n")).stdout;
    assert_eq!(told(&["exec", "--name", &name, "h3-1", "uname", "-n"]), "h3-1\n");
    assert_eq!(output(std::process::Command::new("uname").arg("-n")).stdout, machine);
    assert_eq!(
        output(heliostat().args(["exec", "--name", &name, "h0-0", "sh", "-c", "exit 7"]))
            .status
            .code(),
        Some(7)
    );
    let shell =
        output(heliostat().args(["exec", "--name", &name, "h0-0"]).env("SHELL", "/usr/bin/env"));
    assert!(
        String::from_utf8_lossy(&shell.stdout).contains(&format!("PS1=[h0-0 of {name}] $ ")),
        "{shell:?}"
    );

    // Within a host 127.0.0.1 is the host's own, and the daemon is reached all the same.
    let within = ["exec", "--name", &name, "h0-0", env!("CARGO_BIN_EXE_heliostat")];
    for words in [
        &["show", "topology", "--name", &name][..],
        &["show", "circuits", "--name", &name],
        &["ps"],
    ] {
        let o = output(heliostat().args(within).args(words));
        assert!(o.status.success() && !o.stdout.is_empty(), "{words:?}: {}", said(&o));
    }

    // One shipped policy after another, whatever they leave to the run; what was fixed at its start
    // is told.
    for policy in ["c-through", "helios", "eps-only", "round-robin"] {
        let o = output(heliostat().args(["set", "--name", &name, "policy", policy]));
        let fixed = policy == "c-through";
        assert!(
            o.status.success() != fixed && said(&o).contains("`buffer` was fixed") == fixed,
            "{policy}: {}",
            said(&o)
        );
    }

    // Policy and circuits are set by hand.
    told(&["set", "--name", &name, "policy", "manual"]);
    assert!(told(&["show", "policy", "--name", &name]).contains("manual"));
    told(&["set", "--name", &name, "circuits", "r0-r3", "r1-r2"]);
    let circuits = || told(&["show", "circuits", "-o", "csv", "--name", &name]);
    until("both circuits are up", || circuits().matches("up").count() >= 2);
    told(&["set", "--name", &name, "circuit", "r0"]);
    until("one circuit is up", || circuits().lines().count() == 2);
    let o = output(heliostat().args(["set", "--name", &name, "circuit", "r0", "r9"]));
    assert!(
        o.status.code() == Some(1) && said(&o).contains("no rack 9: they are 0 to 3"),
        "{}",
        said(&o)
    );

    // A second one of the name is refused, and the first keeps its log.
    let o = output(run(&name).arg("--detach"));
    assert!(!o.status.success() && said(&o).contains("is running already"), "{}", said(&o));
    let log = told(&["logs", &name]);
    assert!(
        log.contains("is up") && log.lines().any(|l| l.starts_with("20") && l.contains("Z ")),
        "lines of the log have times: {log}"
    );

    let mut follower = heliostat()
        .args(["logs", "--follow", &name])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("started");
    assert_eq!(told(&["stop", &name]), format!("stopped {name}\n"));
    assert_nothing_left(&name);
    // Who follows reads to the end; the log outlives its network.
    let mut followed = String::new();
    std::io::Read::read_to_string(&mut follower.stdout.take().expect("piped"), &mut followed)
        .expect("read");
    assert!(
        follower.wait().expect("our child").success() && followed.contains("stopping"),
        "{followed}"
    );
    assert_eq!(told(&["logs", &name]), followed);
    assert!(!told(&["ps"]).contains(&name));
    // Until it is removed by its name.
    let log = note(&name).with_extension("log");
    assert!(log.is_file(), "{}", log.display());
    assert_eq!(told(&["clean", &name]), format!("removed {}\n", log.display()));
    assert!(!log.exists() && told(&["clean", &name]) == "nothing to remove\n");
    drop(stops);
}

#[test]
fn a_network_that_does_not_come_up_says_why() {
    let test = "a_network_that_does_not_come_up_says_why";
    if !root(test) {
        return;
    }
    let _turn = together();
    let name = unique("down");
    let _stops = Stops(name.clone());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut c = heliostat();
    c.arg("run").arg(topology()).args([
        "--detach",
        "--name",
        &name,
        "--listen",
        &taken.local_addr().expect("bound").to_string(),
    ]);
    let o = output(&mut c);
    assert_eq!(o.status.code(), Some(1));
    assert!(
        said(&o).contains("choose another address with --listen")
            && said(&o).contains("did not come up"),
        "{}",
        said(&o)
    );
    assert_nothing_left(&name);

    // A workload that is over at once is no failure, and its result is printed.
    let mut c = run(&name);
    c.arg("--detach").arg("--workload").arg(file("workloads/shuffle-4.yaml"));
    let o = output(&mut c);
    assert!(o.status.success(), "{}", said(&o));
    until("the workload is over", || !note(&name).exists());
    assert!(told(&["logs", &name]).contains("makespan"), "{}", told(&["logs", &name]));
    assert_nothing_left(&name);
}
