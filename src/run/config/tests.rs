//! Shipped files, one error each, and arbitrary text.

use proptest::prelude::*;

use super::*;
use crate::coflows::elephants::Admit;
use crate::coflows::network::{NetworkKind, Within};
use crate::coflows::orders::Aalo;
use crate::control::policy::{Estimator, SchedulerKind};
use crate::topology::{PortQueues, Segments, StopMode};
use crate::units::{BitRate, Bytes, Span};

mod documented;
mod placement;

const GOOD: &str = "name: net\nracks: 4\nhosts_per_rack: 2\nslots_per_host: 2\nnic: 1Gb/s\neps:\n  uplink: 100Mb/s\nocs:\n  - {rate: 1Gb/s, delta: 10ms, stop: all-stop, duplex: true}\n";
const POLICY: &str = "name: p\ninterval: 100ms\nlead: 5ms\nelephants: {admit: all, threshold: 1MB}\ndemand: backlog\nscheduler: edmonds\n";

fn shipped(dir: &str) -> Vec<(String, String)> {
    let dir = crate::testing::repository(dir);
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    files
        .into_iter()
        .map(|p| (p.display().to_string(), std::fs::read_to_string(&p).unwrap()))
        .collect()
}

#[test]
fn all_shipped_files_are_valid_and_fit_together() {
    let topologies: Vec<_> = shipped("topologies")
        .iter()
        .map(|(f, t)| read_topology(t, f).unwrap_or_else(|e| panic!("{e}")))
        .collect();
    let policies: Vec<_> = shipped("policies")
        .iter()
        .map(|(f, t)| read_policy(t, f).unwrap_or_else(|e| panic!("{e}")))
        .collect();
    for ((file, _), t) in shipped("topologies").iter().zip(&topologies) {
        assert!(file.ends_with(&format!("/{}.yaml", t.name)), "{file} is named {}", t.name);
    }
    for ((file, _), p) in shipped("policies").iter().zip(&policies) {
        let stem = std::path::Path::new(file).file_stem().unwrap().to_str().unwrap();
        // Names are short, so that they fit in a namespace's.
        assert!(
            stem.starts_with(&p.policy.name[..p.policy.name.len().min(8)]),
            "{file} is named {}",
            p.policy.name
        );
    }
    let names: std::collections::BTreeSet<&str> =
        policies.iter().map(|p| p.policy.name.as_str()).collect();
    assert_eq!(names.len(), policies.len(), "no name twice");
    let aalo = policies.iter().find(|p| p.policy.name == "aalo").unwrap();
    assert_eq!(
        (aalo.run.network.kind, aalo.run.network.aalo),
        (NetworkKind::Aalo, Aalo::default())
    );
    // Nothing said is the paper's.
    let bare = read_policy(
        "name: bare\ninterval: 100ms\ndemand: counters\nscheduler: eps-only\nnetwork: aalo\n",
        "bare.yaml",
    )
    .unwrap();
    assert_eq!(bare.run.network, aalo.run.network);
    assert_eq!(
        (aalo.run.network.within, aalo.run.network.aalo.sharing),
        (Within::MaxMin, crate::coflows::orders::Sharing::Weighted)
    );
    for t in &topologies {
        for p in &policies {
            let one_by_one = matches!(&t.planes[..], [q] if !q.duplex);
            assert_eq!(
                fit(t, p).is_ok(),
                p.run.network.kind != NetworkKind::Sunflow || one_by_one,
                "{} on {}",
                p.policy.name,
                t.name
            );
        }
    }
    let t = topologies.iter().find(|t| t.name == "hybrid-8x2").unwrap();
    assert_eq!((t.rack_count(), t.hosts.len(), t.hosts[0].slots), (8, 16, 2));
    assert_eq!(
        (t.hosts[0].nic, t.racks[7].uplink, t.eps.oversubscription_percent),
        (BitRate::mbit(1000), BitRate::mbit(100), 2000)
    );
    assert_eq!(
        (t.planes[0].rate, t.planes[0].delta, t.planes[0].stop),
        (BitRate::mbit(1000), Span::millis(10), StopMode::NotAllStop)
    );
}

#[test]
fn racks_may_differ_and_stand_in_any_order() {
    let text = "name: net\nracks:\n- {id: 1, hosts: 3, uplink: 50Mb/s}\n- {id: 0, nic: 2Gb/s, slots: 7}\nhosts_per_rack: 2\nnic: 1Gb/s\neps: {oversubscription: '5:1'}\n";
    let t = read_topology(text, "t").unwrap();
    assert_eq!((t.racks[0].hosts, t.racks[1].hosts), (2, 3));
    assert_eq!((t.racks[0].uplink, t.racks[1].uplink), (BitRate::mbit(800), BitRate::mbit(50)));
    assert_eq!((t.hosts[0].slots, t.hosts[2].slots, t.hosts[0].nic), (7, 1, BitRate::mbit(2000)));
    assert_eq!(t.eps.oversubscription_percent, 500);
    assert!(t.planes.is_empty());
}

/// Replaces one piece of a good file and gives the error's first lines.
fn broken(good: &str, from: &str, to: &str) -> String {
    assert!(good.contains(from), "{from}");
    let text = good.replacen(from, to, 1);
    let e = if good == GOOD {
        read_topology(&text, "f.yaml").unwrap_err()
    } else {
        read_policy(&text, "f.yaml").unwrap_err()
    };
    assert_eq!(e.problems.len(), 1, "one clear error: {e}");
    e.to_string().lines().next().unwrap().to_string() + " # " + &e.problems[0].allowed
}

#[test]
fn every_mistake_has_one_error_with_its_place() {
    let golden: Vec<String> = [
        ("racks: 4", "racks: 0"),
        ("racks: 4", "racks: 100001"),
        ("racks: 4", "racks: four"),
        ("racks: 4", "racks: [{id: 0}, {id: 0}]"),
        ("racks: 4", "racks: [{id: 0}, {id: 2}]"),
        ("racks: 4", "racks: [{id: 0, host: 2}]"),
        ("racks: 4", "racks: []"),
        ("racks: 4\n", ""),
        ("hosts_per_rack: 2\n", ""),
        ("hosts_per_rack: 2", "hosts_per_rack: 0"),
        ("hosts_per_rack: 2", "hosts_per_rack: -1"),
        ("slots_per_host: 2", "slots: 2"),
        ("name: net", "name: Net_1"),
        ("name: net", "name: net\nname: net"),
        ("nic: 1Gb/s", "nic: 1Gb"),
        ("nic: 1Gb/s", "nic: 0b/s"),
        ("nic: 1Gb/s", "nic: 1.5"),
        ("uplink: 100Mb/s", "uplink: 100Mb/s\n  oversubscription: 5"),
        ("uplink: 100Mb/s", "oversubscription: 0"),
        ("eps:\n  uplink: 100Mb/s", "eps: {}"),
        ("rate: 1Gb/s", "rate: 200Tb/s"),
        ("delta: 10ms", "delta: 1h"),
        ("stop: all-stop", "stop: some"),
        ("duplex: true", "duplex: maybe"),
        ("duplex: true", "duplex: true, x: 1"),
        ("name: net", "name: net\nframing: udp"),
        ("ocs:\n", "ocs: [\n"),
        ("name: net", "name: *net"),
    ]
    .iter()
    .map(|(a, b)| broken(GOOD, a, b))
    .chain(
        [
            ("interval: 100ms", "interval: 0s"),
            ("interval: 100ms", "interval: 5ms"),
            ("interval: 100ms\n", ""),
            ("admit: all", "admit: some"),
            ("threshold: 1MB", "threshold: 1Mb"),
            ("scheduler: edmonds", "scheduler: blossom"),
            ("scheduler: edmonds", "scheduler: edmonds\nscale: 0"),
            ("scheduler: edmonds", "scheduler: edmonds\ncongestion: 'a b'"),
            ("scheduler: edmonds", "scheduler: edmonds\nageing: 50"),
            ("demand: backlog", "demand: counters\nageing: 100"),
            ("demand: backlog", "demand: combined\nat_arrivals: true"),
            ("scheduler: edmonds", "scheduler: edmonds\nnetwork: tcp"),
            ("scheduler: edmonds", "scheduler: edmonds\nnetwork: aalo\naalo: {queues: 0}"),
            ("scheduler: edmonds", "scheduler: edmonds\nnetwork: aalo\naalo: {factor: 1}"),
            ("scheduler: edmonds", "scheduler: edmonds\nnetwork: aalo\naalo: {limit: 1}"),
            ("scheduler: edmonds", "scheduler: edmonds\naalo: {queues: 5}"),
            ("scheduler: edmonds", "scheduler: edmonds\nnetwork: varys\nwithin: max-min"),
            ("scheduler: edmonds", "scheduler: edmonds\nnetwork: varys\nwithin: greedy"),
            ("scheduler: edmonds", "scheduler: edmonds\nnetwork: priority\nwithin: sums"),
            ("scheduler: edmonds", "scheduler: eps-only\nnetwork: sunflow\nwithin: sums"),
            (
                "scheduler: edmonds",
                "scheduler: edmonds\nplacement:\n  policy: jobpacker\n  sub_batches: 0",
            ),
            (
                "scheduler: edmonds",
                "scheduler: edmonds\nplacement:\n  policy: corral\n  objective: soon",
            ),
            ("scheduler: edmonds", "scheduler: edmonds\nplacement:\n  policy: fair\n  sir: 100"),
        ]
        .iter()
        .map(|(a, b)| broken(POLICY, a, b)),
    )
    .collect();
    // A new scheduler shall not change this list.
    let schedulers = SchedulerKind::ALL.map(|k| format!("`{}`", k.name())).join(", ");
    insta::assert_snapshot!(golden.join("\n").replace(&schedulers, "<every circuit scheduler>"));
}

#[test]
fn an_error_shows_the_line_and_all_flaws_are_reported() {
    let text = GOOD.replace("nic: 1Gb/s", "nic: 0b/s").replace("delta: 10ms", "delta: 2h");
    insta::assert_snapshot!(read_topology(&text, "net.yaml").unwrap_err());
}

#[test]
fn queues_of_ports_are_read_and_kept_to_what_a_simulation_can_have() {
    let with = |racks: &str, queues: &str| {
        let text = format!(
            "name: net\nracks: {racks}\nhosts_per_rack: 1\nnic: 1Gb/s\neps: {{uplink: 1Gb/s{queues}}}\n"
        );
        read_topology(&text, "net.yaml").map(|t| t.eps.queues).map_err(|e| e.to_string())
    };
    assert_eq!(with("4096", ", queues: racks"), Ok(PortQueues::Racks));
    assert_eq!(
        (with("4097", ", queues: one"), with("4097", "")),
        (Ok(PortQueues::One), Ok(PortQueues::One))
    );
    let why = with("4097", ", queues: racks").unwrap_err();
    assert!(
        why.contains("net.yaml:5")
            && why.contains("a queue for each of 4097 racks")
            && why.contains("at most 4096 of them, or `one`"),
        "{why}"
    );
    assert!(with("4", ", queues: many").unwrap_err().contains("racks"));
}

#[test]
fn ports_of_the_eps_send_segments_whole_or_as_frames() {
    let with = |segments: &str| {
        read_topology(&GOOD.replace("  uplink:", &format!("{segments}  uplink:")), "net.yaml")
            .map(|t| t.eps.segments)
    };
    assert_eq!(
        (with("").unwrap(), with("  segments: frames\n").unwrap()),
        (Segments::Whole, Segments::Frames)
    );
    let why = with("  segments: cut\n").unwrap_err().to_string();
    assert!(["net.yaml:", "segments", "whole", "frames"].iter().all(|w| why.contains(w)), "{why}");
}

#[test]
fn fit_wants_light_within_the_interval() {
    let t = read_topology(GOOD, "t").unwrap();
    let p = |interval: &str, s: &str| {
        let mut plan =
            read_policy(&POLICY.replace("100ms", interval).replace("edmonds", s), "p").unwrap();
        plan.policy.elephant_threshold = Bytes(100_000);
        plan
    };
    assert_eq!(fit(&t, &p("16ms", "edmonds")), Ok(()));
    let e = fit(&t, &p("15ms", "edmonds")).unwrap_err();
    assert_eq!(
        e.to_string(),
        "policy p on topology net: interval: an interval of 15ms leaves no time with light on plane p0: lead 5ms and delta 10ms\n   allowed: more than 15ms"
    );
    assert_eq!(fit(&t, &p("15ms", "manual")), Ok(()));
    assert!(advice(&t, &p("100ms", "bipartite"))[0].contains("duplex"));
    assert_eq!(advice(&t, &p("100ms", "edmonds")), Vec::<String>::new());
    let under =
        |network: &str| advice(&t, &p("100ms", &format!("edmonds\nnetwork: {network}"))).join("; ");
    assert!(
        under("priority").contains("eight strict priorities")
            && under("varys").contains("an emulation has kernel TCP")
    );
    assert_eq!(under("priority\nwithin: max-min"), "", "equals share on both sides");
    assert!(advice(&t, &p("16ms", "edmonds"))[0].contains("dark for most"));
}

#[test]
fn a_threshold_that_a_backlog_hardly_reaches_is_told() {
    let t = read_topology(GOOD, "t").unwrap();
    let mut p = read_policy(POLICY, "p").unwrap();
    (p.policy.demand, p.run.buffer) = (Estimator::Backlog, Bytes(3_000_000));
    let mut told = |threshold| {
        p.policy.elephant_threshold = Bytes(threshold);
        advice(&t, &p).join("; ")
    };
    assert!(told(3_000_001).contains("no connection's backlog ever reaches the threshold"));
    assert!(told(1_000_001).contains("its circuit comes and goes"));
    assert_eq!(told(1_000_000), "");
    (p.policy.demand, p.policy.elephant_threshold) = (Estimator::Counters, Bytes(3_000_001));
    assert_eq!(
        advice(&t, &p),
        Vec::<String>::new(),
        "counters see what was sent, however little waits"
    );
}

#[test]
fn elephants_that_may_wait_for_ever_are_told() {
    let mut t = read_topology(GOOD, "t").unwrap();
    let mut p = read_policy(POLICY, "p").unwrap();
    (p.run.admit, p.policy.elephant_threshold) = (Admit::Wait, Bytes(1));
    p.policy.demand = Estimator::Backlog;
    assert!(advice(&t, &p)[0].contains("below the threshold"));
    p.policy.demand = Estimator::Declared;
    assert_eq!(advice(&t, &p), Vec::<String>::new());
    t.planes.push(t.planes[0].clone());
    assert!(advice(&t, &p)[0].contains("one OCS plane only"));
}

#[test]
fn rates_and_times_have_units_in_files() {
    let told = |text: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        let text = text.replace(from, to);
        let e = read_topology(&text, "f")
            .map(drop)
            .and_then(|()| read_policy(&text, "f").map(drop))
            .unwrap_err()
            .to_string();
        e.lines().filter(|l| !l.contains(" | ")).collect::<Vec<_>>().join("\n")
    };
    let topology = "name: net\nracks: 4\nhosts_per_rack: 2\nnic: 1Gb/s\neps: {uplink: 100Mb/s}\nocs: [{rate: 1Gb/s, delta: 10ms}]\n";
    assert_eq!(
        told(topology, "100Mb/s", "100"),
        "f:5:15: eps.uplink: 100 without a unit is not a data rate\n   allowed: a number and a unit, such as 100Mb/s; bits a second are 100b/s"
    );
    assert!(
        told(topology, "10ms", "10")
            .starts_with("f:6:28: ocs[0].delta: 10 without a unit is not a length of time")
    );
    let policy = |interval: &str| {
        read_policy(
            &format!("name: p\ninterval: {interval}\ndemand: backlog\nscheduler: edmonds\n"),
            "f",
        )
    };
    assert!(
        policy("100").unwrap_err().to_string().starts_with("f:2:11: interval: 100 without a unit")
    );
    // Zero is zero in any unit, and what counts things has none.
    read_policy(
        "name: p\ninterval: 100ms\nlead: 0\nageing: 5\ndemand: counters\nscheduler: edmonds\n",
        "f",
    )
    .unwrap();
}

#[test]
fn a_policy_survives_the_round_trip_through_its_shape() {
    let mut p = read_policy(POLICY, "p").unwrap();
    p.policy.lead = Span(1_234_567);
    let json = serde_json::to_string(&policy::RawPolicy::from(&p)).unwrap();
    assert!(json.contains(r#""interval":"100ms","lead":"1234567ns""#), "{json}");
    assert_eq!(read_policy(&json, "j").unwrap(), p);
}

#[test]
fn schemas_describe_every_key() {
    let (t, p) = (schema_topology(), schema_policy());
    for key in ["name", "racks", "hosts_per_rack", "slots_per_host", "nic", "eps", "ocs"] {
        assert!(
            t["properties"][key]["description"].is_string()
                || t["properties"][key]["$ref"].is_string(),
            "{key}"
        );
    }
    assert_eq!(p["additionalProperties"], false);
    assert_eq!(p["required"], serde_json::json!(["name", "interval", "demand", "scheduler"]));
}

#[test]
fn hostile_text_is_refused_quickly() {
    let before = on_processor();
    let mut bomb = String::from("a: &a [x, x, x, x, x, x, x, x, x]\n");
    for w in ["ab", "bc", "cd", "de", "ef", "fg", "gh", "hi", "ij"] {
        let (a, b) = w.split_at(1);
        bomb += &format!("{b}: &{b} [*{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}]\n");
    }
    let half = yaml::MAX_BYTES / 2;
    let texts = [
        bomb.clone(),
        format!("{bomb}racks: *j\nname: *j"),
        "racks: &a [*a, *a, *a]".into(),
        "&a [*a]".into(),
        "[".repeat(yaml::MAX_BYTES),
        "{a: ".repeat(half / 2),
        "- ".repeat(half),
        "? ".repeat(half),
        "a: &a ".repeat(half / 3),
        "a:\t- ".repeat(half / 2),
        (0..2000).map(|k| " ".repeat(k) + "-\n").collect(),
        "racks: ".to_string() + &"- ".repeat(half),
        "name: ".to_string() + &"x".repeat(half),
        "\"".to_string() + &"\\".repeat(half),
        "x".repeat(yaml::MAX_BYTES + 1),
        "'".into(),
        "\u{feff}".into(),
        "--- a\n--- b\n".into(),
        "%YAML 9.9\n---\n".into(),
    ];
    for t in &texts {
        assert!(read_topology(t, "t").is_err());
        assert!(read_policy(t, "t").is_err());
        let _ = yaml::keys(t, "t");
    }
    // Expanded, the first of them would be three thousand million pieces. What else runs on the
    // machine does not count.
    let took = on_processor().0 - before.0;
    assert!(took < Span::secs(20).0, "{took} ns");
}

/// How long this thread has had a processor.
fn on_processor() -> Span {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts it");
    Span(stat.split_whitespace().next().and_then(|ns| ns.parse().ok()).expect("nanoseconds"))
}

/// A good file with a few pieces cut out, doubled or replaced.
fn mutated(good: &'static str) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        ".{0,6}",
        "[\\[\\]{}:,&*!|>'\"%@` \n-]{0,6}",
        Just("0".into()),
        Just("-1".into()),
        Just("99999999999999999999".into())
    ];
    prop::collection::vec((0..good.len(), 0usize..12, piece), 1..5).prop_map(move |edits| {
        let mut bytes = good.as_bytes().to_vec();
        for (at, len, new) in edits {
            let at = at.min(bytes.len());
            let end = (at + len).min(bytes.len());
            bytes.splice(at..end, new.bytes());
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    #[test]
    fn arbitrary_text_never_panics(s in "(?s).{0,200}") {
        let _ = read_topology(&s, "t").map_err(|e| e.to_string());
        let _ = read_policy(&s, "t").map_err(|e| e.to_string());
        let _ = yaml::keys(&s, "t");
    }

    #[test]
    fn mutated_topologies_never_panic(s in mutated(GOOD)) {
        if let Err(e) = read_topology(&s, "t") {
            prop_assert!(!e.problems.is_empty());
            prop_assert!(!e.to_string().is_empty());
        }
    }

    #[test]
    fn mutated_policies_never_panic(s in mutated(POLICY)) {
        let _ = read_policy(&s, "t").map_err(|e| e.to_string());
    }
}

/// The names of a setting's values, as its schema gives them.
fn names_of<T: schemars::JsonSchema>() -> std::collections::BTreeSet<String> {
    fn collect(v: &serde_json::Value, names: &mut std::collections::BTreeSet<String>) {
        match v {
            serde_json::Value::Object(map) => {
                names.extend(map.get("const").and_then(|c| c.as_str()).map(str::to_owned));
                names.extend(
                    map.get("enum")
                        .and_then(|e| e.as_array())
                        .into_iter()
                        .flatten()
                        .filter_map(|c| c.as_str())
                        .map(str::to_owned),
                );
                map.values().for_each(|v| collect(v, names));
            }
            serde_json::Value::Array(list) => list.iter().for_each(|v| collect(v, names)),
            _ => {}
        }
    }
    let mut names = Default::default();
    collect(&schemars::schema_for!(T).to_value(), &mut names);
    names
}

#[test]
fn of_many_errors_some_are_shown_and_the_others_counted() {
    let topology = read_topology(GOOD, "t").unwrap();
    let said = |n: usize| {
        let text = format!(
            "name: w\ncoflows:\n{}",
            "  - flows: [{from: h0-0, to: h99-0, bytes: 1MB}]\n".repeat(n)
        );
        yaml::read_checked(&text, "w.yaml", |raw: workload::RawWorkload| raw.check(&topology))
            .map(drop)
            .unwrap_err()
            .to_string()
    };
    let shown = |text: &str| text.matches("w.yaml:").count();
    assert_eq!((shown(&said(4)), said(4).contains("more")), (4, false));
    assert_eq!((shown(&said(12)), said(12).lines().last()), (8, Some("and 4 more")));
    assert_eq!(said(50).lines().last(), Some("and 12 more at least"));
}

#[test]
fn a_text_is_one_document_and_every_fault_has_a_place() {
    let of = |text: &str| read_topology(text, "f.yaml").map(|t| t.name).map_err(|e| e.to_string());
    for good in [
        format!("\u{feff}{GOOD}"),
        format!("--- # here\n{GOOD}...\n# end\n"),
        format!("%YAML 1.2\n---\n{GOOD}"),
    ] {
        assert_eq!(of(&good), Ok("net".into()));
    }
    for (text, told) in [
        (format!("{GOOD}---\nname: b\n"), "f.yaml:10:1: a second document begins here"),
        (format!("# c\n---\n{GOOD}---\n"), "f.yaml:12:1: a second document begins here"),
        (format!("{GOOD}...\nname: b\n"), "f.yaml:11:1: a second document begins here"),
        (GOOD.replace("racks: 4", "racks: 4\u{1b}"), "f.yaml:2:9: a control character, U+001B"),
        (GOOD.replace("nic", "# \u{0}\nnic"), "f.yaml:5:3: a control character, U+0000"),
        (String::new(), "f.yaml:1:1: missing key `name`"),
        (GOOD.replace("racks: 4", "racks:"), "f.yaml:2:7: racks: there is no value; expected"),
    ] {
        let e = of(&text).unwrap_err();
        assert!(e.starts_with(told), "{e}");
    }
}

#[test]
fn where_one_word_is_meant_the_words_are_told_with_an_example() {
    let of = |text: &str| read_policy(text, "f.yaml").unwrap_err().to_string();
    for (from, to, place, example) in [
        (
            "scheduler: edmonds",
            "scheduler: edmonds\nnetwork: {kind: varys}",
            ":7:10: network: a mapping is here",
            "such as `network: varys`",
        ),
        (
            "scheduler: edmonds",
            "scheduler: {edmonds: {}}",
            ":6:12: scheduler: a mapping is here",
            "such as `scheduler: edmonds`",
        ),
        (
            "demand: backlog",
            "demand: [backlog]",
            ":5:9: demand: a list is here",
            "such as `demand: backlog`",
        ),
        (
            "admit: all",
            "admit: {x: y}",
            ":4:20: elephants.admit: a mapping is here",
            "such as `admit: ",
        ),
    ] {
        let e = of(&POLICY.replace(from, to));
        assert!(e.contains(place) && e.contains(example) && !e.contains("YAML tag"), "{e}");
    }
    let e = of(&POLICY.replace("edmonds", "{external: {command: [python3, mine.py]}}"));
    assert!(e.contains("such as `scheduler: external`, and what belongs to it beside that, under a key `external`"), "{e}");
    let e = of(&POLICY.replace("edmonds", "!edmonds x"));
    assert!(e.starts_with("f.yaml:") && !e.contains("YAML tag"), "{e}");
}

#[test]
fn what_cannot_be_seen_is_no_name_and_no_message_shows_it_or_all_of_a_text() {
    let flow = "flows: [{from: h0-0, to: h1-0, bytes: 6MB}]";
    let of = |name: &str, own: &str| {
        let text = format!(
            "name: {name}\ndescription: \"two\\nlines\"\ncoflows:\n  - {{name: {own}, {flow}}}\n"
        );
        check_workload_form(&text, "f").map_err(|e| e.to_string())
    };
    assert_eq!(of("chunk é 测试 🚀", "\"a b\""), Ok(()));
    for (own, what) in [
        (
            "\"evil\\e[31mRED\\e]0;owned\\a\"",
            "f:4:12: coflows[0].name: a control character, U+001B, in `evil\\u{1b}[31mRED",
        ),
        ("\"line\\nbreak\"", "a control character, U+000A, in `line\\nbreak`"),
        ("a\u{202e}b", "a character that cannot be seen, U+202E"),
        ("\"a\\u2028b\"", "U+2028"),
        ("\"\\x9b2J\"", "a control character, U+009B"),
    ] {
        let e = of("w", own).unwrap_err();
        assert!(
            e.contains(what) && !e.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{2028}']),
            "{e:?}"
        );
    }
    assert!(of("\"w\\e[2Jx\"", "a").unwrap_err().starts_with("f:1:7: name: a control character"));
    let jobs = "name: j\njobs: [{name: \"a\\tb\", maps: 4, map_time: 1s, reduces: 2, reduce_time: 1s, shuffle: 8MB}]\n";
    assert!(
        read_jobs(jobs, "f")
            .unwrap_err()
            .to_string()
            .starts_with("f:2:15: jobs[0].name: a control character, U+0009")
    );
    // A program's argument may have lines.
    let policy = POLICY
        .replace("edmonds", "external\nexternal: {command: [python3, -c, \"import x\\nx.run()\"]}");
    assert!(read_policy(&policy, "f").is_ok());
    // Of long text a message has little.
    let long = "x".repeat(1_000_000);
    for text in [
        format!("{long}: 4\n"),
        format!("name: {long}\n"),
        format!("{GOOD}{long}: 1\n"),
        GOOD.replace("racks: 4", &format!("racks: {long}")),
    ] {
        let e = read_topology(&text, "f").unwrap_err().to_string();
        assert!(e.len() < 2500, "{} bytes", e.len());
    }
    let e = read_topology(&GOOD.replace("nic: 1Gb/s", &format!("nic: 1Gb/s # {long}\nx: 1")), "f")
        .unwrap_err()
        .to_string();
    assert!(e.contains("unknown key `x`"), "{e}");
}

#[test]
fn a_rate_without_payload_is_refused() {
    for (from, to) in [
        ("uplink: 100Mb/s", "uplink: 1b/s"),
        ("nic: 1Gb/s", "nic: 1b/s"),
        ("rate: 1Gb/s", "rate: 1b/s"),
    ] {
        let e = read_topology(&GOOD.replace(from, to), "f.yaml").unwrap_err().to_string();
        assert!(
            e.contains("headers take all of 1b/s") && e.contains("allowed: 2b/s at least"),
            "{e}"
        );
    }
    assert!(read_topology(&GOOD.replace("uplink: 100Mb/s", "uplink: 2b/s"), "f.yaml").is_ok());
}

#[test]
fn a_policy_names_sixteen_ports_of_tcp() {
    let of = |elephants: &str| {
        let text = POLICY.replace("all, threshold: 1MB", elephants);
        read_policy(&text, "f.yaml").map(|p| p.run.port).map_err(|e| e.to_string())
    };
    assert_eq!(of("wait, port: 65520"), Ok(Some(65520)));
    for (wrong, allowed) in [("wait, port: 65521", "1 to 65520"), ("all, port: 7080", "only with")]
    {
        assert!(of(wrong).unwrap_err().contains(allowed), "{wrong}");
    }
}
