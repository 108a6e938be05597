//! Without root: a user namespace where there are some, a clear message where there are none.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::process::Command;

use heliostat::kernel::sys;

use crate::support::*;

/// The user `nobody` of most systems, without rights.
const NOBODY: u32 = 65534;

/// The binary as an ordinary user, who keeps its notes in `scratch`.
fn as_nobody(c: &mut Command, scratch: &Scratch) {
    c.env("XDG_RUNTIME_DIR", &scratch.0).current_dir("/");
    if sys::is_root() {
        chown(&scratch.0, Some(NOBODY), Some(NOBODY)).expect("root may");
        c.uid(NOBODY).gid(NOBODY);
    }
}

/// Whether an ordinary user may have user namespaces, and may run what was built.
fn user_namespaces(test: &str, scratch: &Scratch) -> bool {
    let mut c = Command::new("unshare");
    c.args(["--user", "--net", "--map-root-user", env!("CARGO_BIN_EXE_heliostat"), "--version"]);
    as_nobody(&mut c, scratch);
    let ok = c.output().is_ok_and(|o| o.status.success());
    if !ok {
        println!("SKIP {test}: an ordinary user has no user namespaces here");
    }
    ok
}

#[test]
fn without_root_a_workload_runs_in_a_user_namespace() {
    let test = "without_root_a_workload_runs_in_a_user_namespace";
    let _turn = together();
    let (name, scratch) = (unique("user"), Scratch::new("user"));
    if !user_namespaces(test, &scratch) {
        return;
    }
    let json = scratch.0.join("run.json");
    let mut c = run(&name);
    c.arg("--workload").arg(file("workloads/shuffle-4.yaml")).args([
        "--coflows",
        "3",
        "--scale",
        "10",
        "--mechanism",
        "auto",
    ]);
    c.arg("--json").arg(&json);
    as_nobody(&mut c, &scratch);
    let o = output(&mut c);
    assert!(o.status.success(), "{}", said(&o));
    let result: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&json).expect("the result")).expect("JSON");
    assert_eq!(
        (&result["mechanism"], &result["summary"]["finished"]),
        (&"netlink".into(), &3.into()),
        "{result}"
    );
    assert_eq!(
        std::fs::read_dir(scratch.0.join("heliostat")).expect("the notes' place").count(),
        0,
        "notes left behind"
    );
}

#[test]
fn without_root_others_reach_the_daemon_from_outside() {
    let test = "without_root_others_reach_the_daemon_from_outside";
    let _turn = together();
    let (name, scratch) = (unique("reach"), Scratch::new("reach"));
    if !user_namespaces(test, &scratch) {
        return;
    }
    let mut c = run(&name);
    as_nobody(&mut c, &scratch);
    let mut d = Daemon::spawn(&name, &mut c);
    d.until_says("is up");
    d.until_says("mechanism netlink");
    assert_eq!(d.show("topology")["name"], "hybrid-4x2", "the API is outside of the namespace");
    let mut exec = heliostat();
    exec.args([
        "exec",
        "--name",
        &name,
        "h0-0",
        "--",
        "bash",
        "-c",
        "cat /proc/net/dev && : < /dev/tcp/10.1.0.2/5300",
    ]);
    as_nobody(&mut exec, &scratch);
    let o = output(&mut exec);
    assert!(
        o.status.success() && String::from_utf8_lossy(&o.stdout).contains("eth0"),
        "{}",
        said(&o)
    );
    // From within a host, too, where 127.0.0.1 is the host's own.
    let inside = |words: &[&str]| {
        let mut exec = heliostat();
        exec.args(["exec", "--name", &name, "h0-0", "--", env!("CARGO_BIN_EXE_heliostat")])
            .args(words);
        as_nobody(&mut exec, &scratch);
        let o = output(&mut exec);
        assert!(o.status.success() && !said(&o).contains("WARN"), "{words:?}: {}", said(&o));
        String::from_utf8_lossy(&o.stdout).into_owned()
    };
    assert!(inside(&["show", "topology", "--name", &name]).contains("hybrid-4x2"));
    assert!(inside(&["ps"]).contains("running"));
    assert!(
        inside(&["exec", "--name", &name, "h1-0", "--", "hostname"]).contains("h1-0"),
        "and another host"
    );
    d.signal("TERM");
    assert_eq!(d.ended(), Some(0), "{}", d.log());
    assert!(!scratch.0.join("heliostat").join(&name).exists());
}

#[test]
fn without_root_a_killed_daemon_is_cleaned_up_after() {
    let test = "without_root_a_killed_daemon_is_cleaned_up_after";
    let _turn = together();
    let (name, scratch) = (unique("ukill"), Scratch::new("ukill"));
    if !user_namespaces(test, &scratch) {
        return;
    }
    let mut c = run(&name);
    as_nobody(&mut c, &scratch);
    let mut d = Daemon::spawn(&name, &mut c);
    d.until_says("is up");
    d.signal("KILL");
    assert_eq!(d.ended(), None);
    let left = scratch.0.join("heliostat").join(&name);
    assert!(left.exists(), "what was killed cannot have tidied up");
    let mut clean = heliostat();
    as_nobody(clean.arg("clean"), &scratch);
    let o = output(&mut clean);
    // Nothing but its own note: the namespaces went with the process.
    assert_eq!(
        String::from_utf8_lossy(&o.stdout),
        format!("removed {}\n", left.display()),
        "{}",
        said(&o)
    );
    assert!(!left.exists());
}

/// Runs a command as an ordinary user of a user namespace that may have no more of them. Only the
/// limit of a namespace of its own is lowered, never the machine's: the shell refuses to write
/// unless it is in another one.
fn without_namespaces(scratch: &Scratch, command: &[&str]) -> Command {
    const SCRIPT: &str = r#"
        [ "$(readlink /proc/self/ns/user)" != "$0" ] || exit 99
        echo 1 > /proc/sys/user/max_user_namespaces || exit 99
        exec unshare --user --map-user=1000 "$@""#;
    let outside = std::fs::read_link("/proc/self/ns/user").expect("this process's own");
    let mut c = Command::new("unshare");
    c.args(["--user", "--map-root-user", "sh", "-c", SCRIPT]).arg(outside).args(command);
    as_nobody(&mut c, scratch);
    c
}

#[test]
fn with_neither_root_nor_user_namespaces_it_says_so() {
    let test = "with_neither_root_nor_user_namespaces_it_says_so";
    let (name, scratch) = (unique("none"), Scratch::new("none"));
    if !user_namespaces(test, &scratch) {
        return;
    }
    if output(&mut without_namespaces(&scratch, &["true"])).status.code() != Some(0) {
        return println!("SKIP {test}: user namespaces cannot be nested here");
    }
    let limit = || {
        std::fs::read_to_string("/proc/sys/user/max_user_namespaces").expect("the machine's limit")
    };
    let before = limit();
    let binary = env!("CARGO_BIN_EXE_heliostat");
    let file = topology();
    let o = output(&mut without_namespaces(
        &scratch,
        &[binary, "run", &file.to_string_lossy(), "--name", &name, "--listen", "127.0.0.1:0"],
    ));
    assert_eq!(o.status.code(), Some(1), "{}", said(&o));
    assert!(
        said(&o).contains("neither root nor allowed to make a user namespace")
            && said(&o).contains("sudo"),
        "{}",
        said(&o)
    );
    let o = output(&mut without_namespaces(&scratch, &[binary, "doctor"]));
    assert_eq!(o.status.code(), Some(1), "{}", said(&o));
    assert!(
        String::from_utf8_lossy(&o.stdout).contains("MISSING")
            && said(&o).contains("nothing can run here"),
        "{}",
        said(&o)
    );
    assert_eq!(limit(), before);
}

/// As root with no other rights than those that the service's unit leaves.
#[test]
fn the_capabilities_of_the_service_are_enough_for_a_run() {
    let test = "the_capabilities_of_the_service_are_enough_for_a_run";
    if !root(test) {
        return;
    }
    let _turn = together();
    let unit = std::fs::read_to_string(file("docs/heliostat@.service")).expect("the unit");
    let left = unit
        .lines()
        .find_map(|l| l.strip_prefix("CapabilityBoundingSet="))
        .expect("its capabilities");
    let set = left
        .split(' ')
        .map(|c| format!(",+{}", c.trim_start_matches("CAP_").to_lowercase()))
        .collect::<String>();
    for mechanism in ["timed", "netlink"] {
        let (name, scratch) = (unique("caps"), Scratch::new("caps"));
        let (journal, json) = (scratch.0.join("journal"), scratch.0.join("run.json"));
        let inner = |more: &[&str]| {
            let mut c = Command::new("setpriv");
            c.args(["--no-new-privs", "--inh-caps=-all", &format!("--bounding-set=-all{set}")]);
            c.arg(env!("CARGO_BIN_EXE_heliostat")).arg("run").arg(topology()).args([
                "--name",
                &name,
                "--listen",
                "127.0.0.1:0",
            ]);
            c.args(["--mechanism", mechanism]).args(more).stdin(std::process::Stdio::null());
            c
        };
        let workload = file("workloads/shuffle-4.yaml");
        let args = [
            "--workload",
            workload.to_str().expect("a path"),
            "--coflows",
            "2",
            "--scale",
            "10",
            "--json",
        ];
        let o = output(inner(&args).arg(&json));
        assert!(o.status.success(), "{}", said(&o));
        let result: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&json).expect("the result")).expect("JSON");
        assert_eq!(
            (&result["mechanism"], &result["summary"]["finished"]),
            (&mechanism.into(), &2.into()),
            "{result}"
        );
        let mut d = Daemon::spawn(&name, inner(&["--journal"]).arg(&journal));
        d.until_says("is up");
        assert!(d.exec("h0-0", &["bash", "-c", ": < /dev/tcp/10.1.0.2/5300"]).status.success());
        d.signal("TERM");
        assert_eq!(d.ended(), Some(0), "{}", d.log());
        assert_nothing_left(&name);
    }
}

/// What a user who is not root needs to run networks, by the names that setpriv knows.
const ENOUGH: [&str; 4] = ["dac_override", "net_admin", "net_raw", "sys_admin"];

/// Directories that all users of the machine share, which only root makes.
fn shared_directories() {
    for directory in ["/run/heliostat", "/run/netns"] {
        std::fs::create_dir_all(directory).expect("root makes it");
    }
}

/// `heliostat run` as an ordinary user with some of root's capabilities and no right to get others.
fn with_capabilities(name: &str, capabilities: &[&str], more: &[&str]) -> Command {
    let set = capabilities.iter().map(|c| format!(",+{c}")).collect::<String>();
    let mut c = Command::new("setpriv");
    c.args([
        format!("--reuid={NOBODY}"),
        format!("--regid={NOBODY}"),
        "--clear-groups".into(),
        "--no-new-privs".into(),
    ]);
    c.args([
        format!("--inh-caps=-all{set}"),
        format!("--ambient-caps=-all{set}"),
        format!("--bounding-set=-all{set}"),
    ]);
    c.arg(env!("CARGO_BIN_EXE_heliostat"))
        .arg("run")
        .arg(topology())
        .args(["--name", name, "--listen", "127.0.0.1:0"])
        .args(more);
    c.stdin(std::process::Stdio::null());
    c
}

/// Whether the user may run what was built at all.
fn may_run(test: &str) -> bool {
    let ok = Command::new(env!("CARGO_BIN_EXE_heliostat"))
        .arg("--version")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .is_ok();
    if !ok {
        println!("SKIP {test}: another user may not run {}", env!("CARGO_BIN_EXE_heliostat"));
    }
    ok
}

#[test]
fn a_policy_s_program_runs_as_the_user_who_called_sudo() {
    let test = "a_policy_s_program_runs_as_the_user_who_called_sudo";
    if !root(test) {
        return;
    }
    let scratch = Scratch::new("sudo");
    chown(&scratch.0, Some(NOBODY), Some(NOBODY)).expect("root may");
    let says = "[sh, -c, 'echo $(id -u) $USER ${HOME-none} $(grep CapEff: /proc/self/status | cut -f 2) > who']";
    let own = |privileges: &str| {
        let text = format!(
            "name: own\ninterval: 50ms\nelephants: {{admit: all}}\ndemand: backlog\nscheduler: external\n\
             external: {{command: {says}, privileges: {privileges}}}\n"
        );
        let policy = scratch.write(&format!("{privileges}.yaml"), &text);
        let mut c = heliostat();
        c.args(["simulate", "hybrid-4x2", "--workload", "shuffle-4", "--policy"]).arg(policy);
        let id = NOBODY.to_string();
        let o = output(c.envs([
            ("SUDO_UID", id.as_str()),
            ("SUDO_GID", &id),
            ("SUDO_USER", "nobody"),
            ("USER", "root"),
        ]));
        assert!(!o.status.success(), "it says nothing, and ends: {}", said(&o));
        let who = std::fs::read_to_string(scratch.0.join("who")).unwrap_or_default();
        std::fs::remove_file(scratch.0.join("who")).unwrap_or_else(|e| panic!("{e}: {}", said(&o)));
        who.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(own("drop"), [&NOBODY.to_string(), "nobody", "none", "0000000000000000"]);
    let kept = own("keep");
    assert!(kept[..2] == ["0", "root"] && kept[3] != "0000000000000000", "{kept:?}");
}

#[test]
fn a_user_with_the_capabilities_runs_a_network_of_the_machine_without_root() {
    let test = "a_user_with_the_capabilities_runs_a_network_of_the_machine_without_root";
    if !root(test) || !may_run(test) {
        return;
    }
    let _turn = together();
    shared_directories();
    for mechanism in ["timed", "netlink"] {
        let name = unique("ambient");
        let mut d = Daemon::spawn(
            &name,
            &mut with_capabilities(&name, &ENOUGH, &["--mechanism", mechanism]),
        );
        d.until_says("is up");
        d.until_says(&format!("mechanism {mechanism}"));
        assert!(namespaces(&name).contains(&format!("{name}-h0-0")), "its namespaces have names");
        let outcome = d.outcome(d.post(&[(0, 2, 2_000_000), (4, 6, 2_000_000)]));
        assert_eq!(outcome["state"], "finished", "{outcome}");
        assert!(
            d.exec("h0-0", &["bash", "-c", ": < /dev/tcp/10.1.0.2/5300"]).status.success(),
            "root finds it"
        );
        // Without real-time priority a cycle may be late, and is done again.
        until("nothing is wrong", || d.failures() == "[]");
        d.signal("TERM");
        assert_eq!(d.ended(), Some(0), "{}", d.log());
        assert_nothing_left(&name);
    }
}

#[test]
fn capabilities_that_are_missing_are_named() {
    let test = "capabilities_that_are_missing_are_named";
    if !root(test) || !may_run(test) {
        return;
    }
    let _turn = together();
    shared_directories();
    let name = unique("lacking");
    for missing in ENOUGH {
        let others: Vec<&str> = ENOUGH.into_iter().filter(|c| *c != missing).collect();
        let o = output(&mut with_capabilities(&name, &others, &[]));
        let named = format!("this process lacks CAP_{}: ", missing.to_uppercase());
        assert!(
            o.status.code() == Some(1) && said(&o).contains(&named),
            "without {missing}: {}",
            said(&o)
        );
    }
    let o = output(&mut with_capabilities(&name, &ENOUGH, &["--attach", "nothing"]));
    assert!(said(&o).contains("this process lacks CAP_SYS_PTRACE"), "{}", said(&o));
    // Root that was left too few.
    let left = || {
        let mut c = Command::new("setpriv");
        c.args([
            "--no-new-privs",
            "--inh-caps=-all",
            "--bounding-set=-all,+net_admin,+net_raw",
            env!("CARGO_BIN_EXE_heliostat"),
        ]);
        c
    };
    let o = output(left().arg("run").arg(topology()).args([
        "--name",
        &name,
        "--listen",
        "127.0.0.1:0",
    ]));
    assert!(
        o.status.code() == Some(1) && said(&o).contains("this process lacks CAP_SYS_ADMIN: "),
        "{}",
        said(&o)
    );
    let o = output(left().args(["doctor", "--no-measure"]));
    assert!(
        o.status.code() == Some(1)
            && String::from_utf8_lossy(&o.stdout).contains("this process lacks CAP_SYS_ADMIN"),
        "{o:?}"
    );
    assert_nothing_left(&name);
}

#[test]
fn a_user_with_the_capabilities_does_not_come_to_own_what_root_relies_on() {
    let test = "a_user_with_the_capabilities_does_not_come_to_own_what_root_relies_on";
    if !root(test) || !may_run(test) {
        return;
    }
    let _turn = together();
    let name = unique("owner");
    // A machine on which root has run nothing yet, seen by this process alone.
    let fresh = |then: &str| {
        let mut c = Command::new("unshare");
        c.args([
            "--mount",
            "sh",
            "-euc",
            &format!("mount -t tmpfs none /run; {then}; exec timeout 60 \"$@\""),
            "sh",
        ]);
        let inner = with_capabilities(&name, &ENOUGH, &[]);
        output(c.arg(inner.get_program()).args(inner.get_args()))
    };
    let o = fresh("true");
    assert!(
        o.status.code() == Some(1)
            && said(&o).contains("/run/heliostat is missing, and only root may make it"),
        "{}",
        said(&o)
    );
    let o = fresh(&format!("install -d /run/netns; install -d -o {NOBODY} /run/heliostat"));
    assert!(
        o.status.code() == Some(1)
            && said(&o).contains("/run/heliostat belongs to user 65534, and must be root's"),
        "{}",
        said(&o)
    );
    let o = fresh("install -d /run/heliostat");
    assert!(
        o.status.code() == Some(1) && said(&o).contains("/run/netns is missing"),
        "{}",
        said(&o)
    );
}

#[test]
fn a_network_of_root_is_changed_by_another_user_only_by_its_name() {
    let test = "a_network_of_root_is_changed_by_another_user_only_by_its_name";
    if !root(test) {
        return;
    }
    let _turn = together();
    // A machine with this network alone, which root started, as its service does.
    let script = r#"
        mount -t tmpfs none /run
        ip link set lo up
        heliostat=$1 name=$2
        "$heliostat" run hybrid-4x2 --policy manual --name "$name" --detach
        for change in "set circuit r0 r2" "stop"; do
            code=0
            SUDO_UID=1001 "$heliostat" $change || code=$?
            test "$code" = 2
        done
        SUDO_UID=1001 "$heliostat" set circuit r0 r2 --name "$name"
        "$heliostat" set circuit r0
        # A user without a network reads root's at the default address, and changes it by its name.
        as_nobody() { XDG_RUNTIME_DIR= setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
        for change in "set policy helios" "set circuit r0 r2" "traffic bulk h0-0:h1-0"; do
            code=0
            as_nobody "$heliostat" $change || code=$?
            test "$code" = 2
        done
        as_nobody "$heliostat" show stats
        as_nobody "$heliostat" set circuit r0 r2 --name "$name"
        as_nobody "$heliostat" traffic bulk h0-0:h1-0 --bytes 100kB --name "$name"
        code=0
        as_nobody "$heliostat" set circuit r0 --name other || code=$?
        test "$code" = 2
        SUDO_UID=1001 "$heliostat" stop "$name"
        # Nothing runs: one code.
        for change in "set policy helios" "show stats" "exec h0-0 true" "stop"; do
            code=0
            "$heliostat" $change || code=$?
            test "$code" = 4
            code=0
            as_nobody "$heliostat" $change || code=$?
            test "$code" = 4
        done"#;
    let mut c = Command::new("unshare");
    c.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    c.args(["timeout", "60", "sh", "-euc", script, "sh", env!("CARGO_BIN_EXE_heliostat")]);
    let name = unique("service");
    let o = output(c.arg(&name).env_remove("SUDO_UID").env_remove("HELIOSTAT_CONTROLLER"));
    assert!(o.status.success(), "{}", said(&o));
    let why = format!("the only network that runs, {name}, was started by root; if you mean it");
    assert_eq!(said(&o).matches(&why).count(), 2, "{}", said(&o));
    let there = format!("{name} at http://127.0.0.1:7447");
    let asked = format!("if you mean {there}, give its name: --name {name}\n");
    assert_eq!(said(&o).matches(&asked).count(), 3, "{}", said(&o));
    let read = format!("no network of this user runs; this is {there}\n");
    assert_eq!(said(&o).matches(&read).count(), 1, "{}", said(&o));
}

#[test]
fn the_doctor_says_what_a_run_will_use() {
    let _turn = together();
    let o = output(heliostat().args(["doctor", "--no-measure", "-o", "json"]));
    let report: serde_json::Value = serde_json::from_slice(&o.stdout).expect("JSON");
    assert_eq!(
        o.status.code(),
        Some(if report["mechanism"].is_null() { 1 } else { 0 }),
        "{}",
        said(&o)
    );
    assert!(
        report["features"].as_array().is_some_and(|f| f.iter().any(|f| f["name"] == "rights")),
        "{report}"
    );
    assert!(
        report["capacity"].is_null() && report["looks"].as_array().is_some_and(Vec::is_empty),
        "{report}"
    );
}
