//! Graphs as files have them, and each mistake with its place.

use crate::config::{fit, read_policy, read_topology};
use crate::topology::graph::Tier;
use crate::units::BitRate;

fn text(racks: usize, graph: &str) -> String {
    format!(
        "name: net\nracks: {racks}\nhosts_per_rack: 2\nnic: 1Gb/s\neps:\n  uplink: 2Gb/s\n  graph: {graph}\n"
    )
}

#[test]
fn shapes_and_lists_are_read() {
    let of = |racks, graph: &str| {
        read_topology(&text(racks, graph), "t")
            .unwrap_or_else(|e| panic!("{e}"))
            .eps
            .graph()
            .unwrap()
            .clone()
    };
    let g = of(8, "{fat-tree: {k: 4, rate: 1Gb/s, switch: 4Gb/s}}");
    assert_eq!(
        (g.switches.len(), g.cables.len(), g.switches[0].rate),
        (20, 32, Some(BitRate::mbit(4000)))
    );
    assert_eq!(of(3, "{leaf-spine: {spines: 2, rate: 1Gb/s}}").cables.len(), 6);
    assert_eq!(of(5, "{tree: {levels: [{join: 2, uplink: 3Gb/s}]}}").switches.len(), 4);
    let g = of(4, "{hierarchy: {depth: 3, fan: 2, copies: 2, rate: 1Gb/s}}");
    assert_eq!((g.switches.len(), g.cables.len(), g.switches[6].tier), (10, 16, Tier::Aggregation));
    assert_eq!(of(4, "{vl2: {da: 4, di: 4, rate: 1Gb/s}}").switches.len(), 10);
    let one = text(4, "{bcube: {n: 2, k: 1, rate: 1Gb/s}}")
        .replace("hosts_per_rack: 2", "hosts_per_rack: 1");
    let g = read_topology(&one, "t").unwrap().eps.graph().cloned().unwrap();
    assert_eq!((g.switches.len(), g.cables.len(), g.switches[0].tier), (8, 8, Tier::Server));
    let g = of(
        2,
        "{switches: [{name: a, tier: access}, {name: b, tier: core}], links: [{from: a, to: b, rate: 1Gb/s}], racks: [a, a]}",
    );
    assert_eq!((g.switches[0].tier, g.switches[1].tier), (Tier::Access, Tier::Core));
    let g = of(
        3,
        "{switches: [{name: a}, {name: b, rate: 5Gb/s}], links: [{from: a, to: b, rate: 7Gb/s}], racks: [a, b, a]}",
    );
    assert_eq!(
        (g.racks, g.cables[0].rate, g.switches[1].rate),
        (vec![0, 1, 0], BitRate::mbit(7000), Some(BitRate::mbit(5000)))
    );
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let two = "switches: [{name: a}, {name: b}]";
    for (graph, place, what) in [
        ("{}".to_owned(), "{}", "0 shapes"),
        ("{fat-tree: {k: 3, rate: 1Gb/s}}".into(), "3, rate", "3 ports"),
        ("{fat-tree: {k: 4, rate: 1Gb/s}}".into(), "4, rate", "has 8 racks, not 2"),
        ("{fat-tree: {k: 2, rate: 0b/s}}".into(), "0b/s", "a rate of 0b/s"),
        ("{leaf-spine: {spines: 0, rate: 1Gb/s}}".into(), "0, rate", "no spines"),
        ("{leaf-spine: {spines: 5000, rate: 1Gb/s}}".into(), "{leaf", "5002 switches"),
        ("{tree: {levels: []}}".into(), "[]", "no levels"),
        ("{tree: {levels: [{join: 0, uplink: 1Gb/s}]}}".into(), "0, uplink", "0 is out of range"),
        ("{hierarchy: {depth: 4, fan: 2, rate: 1Gb/s}}".into(), "4, fan", "a depth of 4"),
        ("{hierarchy: {depth: 3, fan: 2, rate: 1Gb/s}}".into(), "2, rate", "has 4 racks, not 2"),
        ("{vl2: {da: 3, di: 2, rate: 1Gb/s}}".into(), "3, di", "`da` of 3"),
        ("{vl2: {da: 4, di: 4, rate: 1Gb/s}}".into(), "4, di", "VL2(4, 4) has 4 racks, not 2"),
        ("{bcube: {n: 2, k: 4, rate: 1Gb/s}}".into(), "4, rate", "a highest level of 4"),
        ("{bcube: {n: 2, k: 1, rate: 1Gb/s}}".into(), "2, k", "has 4 servers, not 2 racks"),
        (
            format!("{{{}, racks: [a, a]}}", two.replace("name: a", "name: a, tier: core")),
            "[{name",
            "1 of 2 switches have a tier",
        ),
        (format!("{{{two}, racks: [a, b]}}"), "{switches", "no way from switch `a` to `b`"),
        (format!("{{{two}, racks: [a]}}"), "[a]", "1 entries"),
        (format!("{{{two}, racks: [a, c]}}"), "c]", "no switch is called `c`"),
        (
            format!("{{{two}, links: [{{from: a, to: a, rate: 1Gb/s}}], racks: [a, a]}}"),
            "a, rate",
            "to itself",
        ),
        ("{switches: [{name: a}, {name: a}], racks: [a, a]}".into(), "a}]", "`a` is listed twice"),
    ] {
        let e = read_topology(&text(2, &graph), "f.yaml").unwrap_err();
        assert_eq!(e.problems.len(), 1, "{graph}: {e}");
        let p = &e.problems[0];
        assert!(p.message.contains(what), "{graph}: {e}");
        let (line, start) = (text(2, &graph), p.column - 1);
        assert!(
            p.line == 7 && line.lines().nth(6).unwrap()[start..].starts_with(place),
            "{graph}: {e}"
        );
    }
    let hosts =
        read_topology(&text(4, "{bcube: {n: 2, k: 1, rate: 1Gb/s}}"), "f").unwrap_err().to_string();
    assert!(
        hosts.contains("the servers of this graph relay, and a rack has 2 hosts")
            && hosts.contains("one host a rack"),
        "{hosts}"
    );
    let both = text(2, "{leaf-spine: {spines: 1, rate: 1Gb/s}}") + "  core: 1Gb/s\n";
    assert!(read_topology(&both, "f").unwrap_err().to_string().contains("besides `graph`"));
    // Twelve switches in a row: too far from end to end.
    let row: Vec<String> = (0..13).map(|k| format!("{{name: s{k}}}")).collect();
    let links: Vec<String> =
        (0..12).map(|k| format!("{{from: s{k}, to: s{}, rate: 1Gb/s}}", k + 1)).collect();
    let far = format!(
        "{{switches: [{}], links: [{}], racks: [s0, s12]}}",
        row.join(", "),
        links.join(", ")
    );
    assert!(
        read_topology(&text(2, &far), "f").unwrap_err().to_string().contains("crosses 12 links")
    );
}

#[test]
fn any_policy_fits() {
    let t = read_topology(&text(2, "{leaf-spine: {spines: 1, rate: 1Gb/s}}"), "t").unwrap();
    let p = "name: p\ninterval: 100ms\nlead: 5ms\nelephants: {admit: all, threshold: 1MB}\ndemand: backlog\nscheduler: edmonds\n";
    assert_eq!(fit(&t, &read_policy(p, "p").unwrap()), Ok(()));
}
