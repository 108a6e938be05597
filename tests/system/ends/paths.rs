//! Mistakes in lists of switches and in graphs, as the command line tells of them.

use crate::support::*;

/// Four leaves below two spines, of which the first carries little.
const LEAVES: &str = "name: leaves
racks: 4
hosts_per_rack: 1
nic: 100Mb/s
eps:
  uplink: 100Mb/s
  graph:
    switches: [{name: l0}, {name: l1}, {name: l2}, {name: l3}, {name: s0, rate: 10Mb/s}, {name: s1}]
    links:
      - {from: l0, to: s0, rate: 100Mb/s}
      - {from: l1, to: s0, rate: 100Mb/s}
      - {from: l2, to: s0, rate: 100Mb/s}
      - {from: l3, to: s0, rate: 100Mb/s}
      - {from: l0, to: s1, rate: 100Mb/s}
      - {from: l1, to: s1, rate: 100Mb/s}
      - {from: l2, to: s1, rate: 100Mb/s}
      - {from: l3, to: s1, rate: 100Mb/s}
    racks: [l0, l1, l2, l3]
";

#[test]
fn a_wrong_list_is_refused_with_one_error_and_changes_nothing() {
    let test = "a_wrong_list_is_refused_with_one_error_and_changes_nothing";
    if !root(test) {
        return;
    }
    let _turn = together();
    let (name, scratch) = (unique("lists"), Scratch::new("lists"));
    let file = scratch.0.join("leaves.yaml");
    std::fs::write(&file, LEAVES).expect("written");
    let d = Daemon::spawn(
        &name,
        heliostat().arg("run").arg(&file).args(["--name", &name, "--listen", "127.0.0.1:0"]),
    );
    d.until_says("is up");
    let api = d.api();
    let shown = || d.show("paths")["paths"].to_string();
    let set = |list: &[&str]| {
        output(
            heliostat()
                .args(["set", "path", "h0-0", "h3-0"])
                .args(list)
                .args(["--controller", &api]),
        )
    };
    let refused = |list: &[&str], why: &str| {
        for more in [&[][..], &["--dry-run"]] {
            let before = shown();
            let o = set(&[list, more].concat());
            assert!(!o.status.success() && o.stdout.is_empty(), "{list:?}");
            assert_eq!(said(&o).matches(why).count(), 1, "{list:?}: {}", said(&o));
            assert_eq!(said(&o).trim().lines().count(), 1, "{}", said(&o));
            assert_eq!(shown(), before, "{list:?}");
        }
    };
    for (list, why) in [
        (&["l0", "l3"][..], "no link joins l0 and l3"),
        (&["l0", "s1", "l0", "s1", "l3"], "switch l0 is in the list twice"),
        (&["l0", "s1", "l1", "s0", "l3"], "the list goes up to s0 after it went down"),
        (&["l0", "s9", "l3"], "`s9`"),
        (&["l0", "s1", "l2"], "the last switch of the list is l2"),
    ] {
        refused(list, why);
    }
    d.post(&[(0, 3, 10_000_000_000)]);
    refused(&["l0", "s0", "l3"], "s0 carries 0b/s of 10Mb/s");
    let o = set(&["l0", "s1", "l3"]);
    assert!(o.status.success(), "{}", said(&o));
}

#[test]
fn a_graph_without_a_way_between_racks_is_refused_by_every_command() {
    let scratch = Scratch::new("cut");
    let file = scratch.0.join("cut.yaml");
    // The last leaf has no links.
    let cut: String =
        LEAVES.lines().filter(|l| !l.contains("from: l3")).map(|l| format!("{l}\n")).collect();
    std::fs::write(&file, cut).expect("written");
    let jobs = crate::support::file("workloads/jobs-8.yaml");
    let hit = crate::support::file("policies/hit.yaml");
    let (file, jobs, hit) =
        (file.to_str().expect("text"), jobs.to_str().expect("text"), hit.to_str().expect("text"));
    for args in [
        &["check", file][..],
        &["simulate", file, "--policy", hit, "--jobs", jobs],
        &["plan", "hit", jobs, "--topology", file],
    ] {
        let o = output(heliostat().args(args));
        let text = said(&o) + &String::from_utf8_lossy(&o.stdout);
        assert!(!o.status.success(), "{args:?}");
        assert_eq!(
            text.matches("there is no way from switch `l0` to `l3`, and both have racks").count(),
            1,
            "{args:?}: {text}"
        );
    }
}
