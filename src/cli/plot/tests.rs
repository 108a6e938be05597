//! Charts of small files: what they show, that both formats are sound, and that no input panics.

use proptest::prelude::*;

use super::input::CircuitBar;
use super::*;
use crate::circuits::SetBy;
use crate::control::policy::{CircuitPolicy, Estimator, SchedulerKind};
use crate::ids::PlaneId;
use crate::runtime::simulate::simulate;
use crate::topology::{Plane, StopMode, Topology};
use crate::units::{BitRate, Span};
use crate::workload::Adjust;
use crate::workload::coflow_benchmark::PortMapping;
use crate::workload::synth::{Synth, synth};
use std::sync::Arc;

const RESULT: &str = r#"{"policy": "c-through", "topology": "t", "workload": "w", "mechanism": "sim",
 "coflows": [{"cct": 1500000000}, {"cct": 20000000}, {"cct": null}],
 "jobs": [{"jct": 7000000000}], "utilisation": {"bucket": 1000, "until": 1500, "links": [{"name": "r0.up", "rate": 8000, "bytes": [1, 0]}]}}"#;
const RESULT_OF_COFLOWS: &str = r#"{"format": 2, "origin": {"version": "0.1.0", "seed": SEED}, "mechanism": "sim", "topology": "hybrid-8x2",
 "policy": "POLICY", "workload": "shuffle-8", "congestion": "-", "forced": false, "end": "finished", "events": 50,
 "coflows": [{"id": 0, "name": "c", "flows": 1, "bytes": 9, "longest_flow_bytes": 9, "between_racks_bytes": 9,
 "ocs_share": 0.0, "arrival_ns": 0, "finished_ns": CCT, "cct_ns": CCT, "bound_ns": 1}], "summary": {"finished": 14,
 "unfinished": 0, "makespan_ns": 44580136168, "average_cct_ns": 18533945315, "p95_cct_ns": 38331146280, "ocs_share": 0.0,
 "asked_bytes": 2934850000, "received_bytes": 2934850000, "on_wire_bytes": 2934850000, "late_packets": 0,
 "misdelivered": 0, "ended_ns": 44580136168, "stats": {"cycles": 446, "late_cycles": 0, "missed_cycles": 0,
 "circuits_set": 0, "poll": {"count": 0, "p50_ns": 0, "p99_ns": 0, "max_ns": 0}, "decide": {"count": 0, "p50_ns": 0,
 "p99_ns": 0, "max_ns": 0}, "apply": {"count": 0, "p50_ns": 0, "p99_ns": 0, "max_ns": 0}, "cycle": {"count": 0,
 "p50_ns": 0, "p99_ns": 0, "max_ns": 0}, "dark_asked": {"count": 0, "p50_ns": 0, "p99_ns": 0, "max_ns": 0},
 "dark_achieved": {"count": 0, "p50_ns": 0, "p99_ns": 0, "max_ns": 0}, "probes_ok": 0, "probes_wrong": 0,
 "probes_lost": 0}}}"#;
const LOG: &str = r#"{"seq":0,"at":0,"event":"cycle","cycle":0,"demand":5000,"ops":4,"late":false}
{"seq":1,"at":0,"event":"circuit-set","plane":0,"input":0,"output":2,"setup_at":0,"up_from":10,"until":null}
{"seq":2,"at":90,"event":"circuit-end","plane":0,"input":0,"up_from":10,"until":95}
{"seq":3,"at":90,"event":"circuit-set","plane":0,"input":0,"output":1,"setup_at":95,"up_from":105,"until":250}
{"seq":4,"at":200,"event":"cycle","cycle":1,"demand":7000,"ops":0,"late":false}
"#;
const PLAN: &str = r#"{"circuits": [{"plane": 1, "from": 0, "to": 3, "setup_at_ns": 0, "up_from_ns": 5, "until_ns": 30}]}"#;

/// A file of one run.
fn one(text: &str, file: &str) -> Result<PlotInput, String> {
    input::read(text, file, &Pool::default()).map(|mut all| all.remove(0))
}

fn sheet(kind: ChartKind, texts: &[&str], look: &ChartStyle) -> Result<Sheet, String> {
    let inputs: Vec<PlotInput> =
        texts.iter().map(|t| one(t, "f.json")).collect::<Result<_, _>>()?;
    let names = (0..inputs.len()).map(|k| format!("line {k}")).collect();
    Ok(ChartData::of(kind, &inputs, names, &[])?.draw(look))
}

fn svg(kind: ChartKind, texts: &[&str], log: bool) -> Result<String, String> {
    let look = ChartStyle { title: "A & B".into(), log, paper: PaperSize::default() };
    sheet(kind, texts, &look).map(|s| s.svg())
}

#[test]
fn files_are_told_apart_and_read() {
    let r = one(RESULT, "f").unwrap();
    assert_eq!(r.holds(), "coflows, jobs, utilisation");
    assert_eq!(r.ccts.unwrap().iter().flatten().count(), 2);
    let l = one(LOG, "f").unwrap();
    let bars: Vec<_> = l
        .circuits
        .as_ref()
        .unwrap()
        .bars
        .iter()
        .map(|b| (b.output, b.up_from.0, b.until.0))
        .collect();
    assert_eq!((l.holds().as_str(), bars), ("circuits, demand", vec![(2, 10, 95), (1, 105, 200)]));
    // A run of jobs writes the task scheduler's lines among them, and begins with one.
    let of_jobs = r#"{"at":0,"job_action":{"StartShuffle":{"job":0}}}"#;
    let mixed =
        format!("{of_jobs}\n{}", LOG.replace("\n{\"seq\":3", &format!("\n{of_jobs}\n{{\"seq\":3")));
    assert_eq!(mixed.lines().count(), 7);
    assert_eq!(one(&mixed, "f").unwrap().circuits, l.circuits);
    let p = one(PLAN, "f").unwrap().circuits.unwrap().bars[0];
    assert_eq!((p.plane, p.setup_at.0, p.up_from.0, p.until.0, p.output), (1, 0, 5, 30, 3));
    assert!(one("[1,\nx", "f").unwrap_err().starts_with("f:2:1: this is not JSON"));
    assert!(
        one(&format!("{LOG}\nx"), "f")
            .unwrap_err()
            .starts_with("f:7:1: not a line of an event log")
    );
}

#[test]
fn charts_show_their_data() {
    for log in [false, true] {
        let cdf = svg(ChartKind::Cct, &[RESULT, RESULT], log).unwrap();
        for text in [
            "A &amp; B",
            "Coflow completion time",
            "Share of coflows (%)",
            "line 0: median 20ms, p95 1.5s, 1 of 3 unfinished",
        ] {
            assert!(cdf.contains(text), "{text} in {cdf}");
        }
    }
    assert!(svg(ChartKind::Jct, &[RESULT], true).unwrap().contains("median 7s"));
    let light = svg(ChartKind::Utilisation, &[LOG, RESULT], false).unwrap();
    assert!(
        light.contains("line 0: OCS ports with light")
            && light.contains("line 1: EPS uplinks")
            && !light.contains("busiest")
    );
    assert!(svg(ChartKind::Demand, &[LOG], false).unwrap().contains("Demand (kB)"));
    let gantt = svg(ChartKind::Circuits, &[LOG], false).unwrap();
    assert!(
        gantt.contains(">r0<")
            && gantt.contains("to r2")
            && gantt.contains("r0 -&gt; r2: dark from 0ns to 10ns")
    );
    assert!(svg(ChartKind::Circuits, &[PLAN], false).unwrap().contains("p1 r0"));
}

/// At the sizes of a column, a page and the screen.
#[test]
fn no_text_is_cut_or_covered_in_any_chart() {
    let jobs = RESULT.replace(
        "\"jobs\": [{",
        "\"timeline\": [TASK], \"jobs\": [{\"name\": \"a-long-name-of-a-job\", ",
    );
    let task = r#"{"job": 0, "stage": 0, "task": 1, "attempt": 1, "host": "h10-0", "slot": 0, "near": "host",
        "started_ns": 0, "computes_ns": 5, "ended_ns": 1000, "finished": true}"#;
    let jobs = jobs.replace("TASK", task);
    for size in [
        "--width 3.3in --font-size 8",
        "--width 7in --font-size 10",
        "",
        "--width 84mm --height 30mm --font-size 7",
    ] {
        #[derive(clap::Parser)]
        struct Args {
            #[command(flatten)]
            paper: PaperSize,
        }
        let args = <Args as clap::Parser>::try_parse_from(format!("x {size}").split_whitespace())
            .expect("a size");
        for (kind, texts) in [
            (ChartKind::Cct, vec![RESULT; 4]),
            (ChartKind::Jct, vec![RESULT]),
            (ChartKind::Utilisation, vec![LOG, RESULT]),
            (ChartKind::Demand, vec![LOG; 2]),
            (ChartKind::Circuits, vec![LOG]),
            (ChartKind::Circuits, vec![PLAN]),
            (ChartKind::Timeline, vec![&jobs]),
        ] {
            for log in [false, true] {
                let look = ChartStyle {
                    title: "Coflow completion times: c-through, shuffle-8, hybrid-8x2".into(),
                    log,
                    paper: args.paper.clone(),
                };
                let sheet = sheet(kind, &texts, &look).unwrap();
                assert_eq!(sheet.legible(), Ok(()), "{kind:?} at {size:?}");
            }
        }
    }
    assert!(
        svg(ChartKind::Timeline, &[&jobs], false)
            .unwrap()
            .contains("a-long-name-of-a-job stage 0 task 1: computed 995ns")
    );
}

#[test]
fn bars_are_ratios_with_their_intervals() {
    let result = |policy: &str, seed: u64, cct: u64| {
        let text = RESULT_OF_COFLOWS
            .replace("POLICY", policy)
            .replace("SEED", &seed.to_string())
            .replace("CCT", &cct.to_string());
        results::parse(&text, Path::new("f")).expect("a result")
    };
    let file = Path::new("f");
    let run = |policy: &'static str, ccts: [u64; 2]| {
        [result(policy, 1, ccts[0]), result(policy, 2, ccts[1])].concat()
    };
    let read = |all: &[Vec<crate::runtime::study::AnyResult>]| {
        all.iter().map(|r| (file, r.clone())).collect::<Vec<_>>()
    };
    let (aalo, varys) = (run("aalo", [100, 200]), run("varys", [50, 120]));
    let study =
        groups::studies(&read(&[aalo.clone(), varys]), &Grouping::default(), &[], None).unwrap();
    let look = ChartStyle { title: String::new(), log: false, paper: PaperSize::default() };
    let chart = normalised::Bars::new(&study, false).unwrap().draw(&look);
    // Half, and six tenths: 0.55 with an interval by Student's t of one degree of freedom.
    let text = chart.svg();
    for part in [
        "varys, all: CCT of 2 coflows: 0.550 ± 0.635",
        "aalo = 1",
        "Mean CCT over that of aalo",
        "varys, 2 runs",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(chart.legible(), Ok(()));
    let alone = normalised::Bars::new(
        &groups::studies(&read(&[aalo]), &Grouping::default(), &[], None).unwrap(),
        false,
    );
    assert!(alone.err().is_some_and(|e| e.contains("all of aalo")));
}

#[test]
fn what_is_not_there_is_said() {
    let e = svg(ChartKind::Circuits, &[RESULT], false).unwrap_err();
    assert!(e.contains("no circuits") && e.contains("it has: coflows, jobs, utilisation"), "{e}");
    let named = |link: &str| {
        ChartData::of(
            ChartKind::Utilisation,
            &[one(RESULT, "f").unwrap()],
            vec!["x".into()],
            &[link.to_owned()],
        )
    };
    assert!(
        named("r0.up").is_ok() && named("r7.up").err().unwrap().contains("f: no link r7.up in it")
    );
    assert!(one(&RESULT.replace("8000", "-1"), "f").unwrap_err().starts_with("f: utilisation: "));
    assert!(
        svg(ChartKind::Cct, &[LOG], false).is_err()
            && svg(ChartKind::Circuits, &[LOG, LOG], false).is_err()
    );
    let empty = r#"{"coflows": [], "jobs": [], "circuits": []}"#;
    for kind in [ChartKind::Cct, ChartKind::Jct, ChartKind::Circuits, ChartKind::Utilisation] {
        assert!(svg(kind, &[empty], false).is_ok() && svg(kind, &[empty], true).is_ok());
    }
}

#[test]
fn labels_are_what_differs() {
    let result = |policy: &str| {
        one(&RESULT.replace("c-through", policy), &format!("dir/{policy}-1.json")).unwrap()
    };
    let of = |a: &str, b: &str| labels(&[result(a), result(b)], &[]).unwrap();
    assert_eq!(of("a", "b"), ["a", "b"]);
    assert_eq!(of("a", "a"), ["a-1", "a-1"]);
    assert_eq!(
        title(ChartKind::Cct, &[result("a"), result("b")]),
        "Coflow completion times: w, t, sim"
    );
    assert!(labels(&[result("a")], &["x".into(), "y".into()]).is_err());
    // A name that is policy and workload at once is said once; light is not called utilisation.
    assert_eq!(title(ChartKind::Jct, &[result("w")]), "Job completion times: w, t, sim");
    let (log, both) = (one(LOG, "f").unwrap(), svg(ChartKind::Utilisation, &[LOG], false).unwrap());
    assert!(title(ChartKind::Utilisation, &[log]).starts_with("OCS ports with light: "));
    assert!(both.contains("OCS ports with light (%)") && !both.contains("Utilisation"), "{both}");
    assert!(svg(ChartKind::Utilisation, &[RESULT], false).unwrap().contains("Utilisation (%)"));
}

#[test]
fn a_logarithmic_axis_is_drawn_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let file = dir.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }
    let plot = |words: &[&str]| {
        let to = dir.path().join("to.svg");
        let all = ["plot"].iter().chain(words).copied().chain(["--to", to.to_str().unwrap()]);
        run(&<Line as clap::Parser>::try_parse_from(all).unwrap().args)
            .map(|()| std::fs::read_to_string(&to).unwrap())
    };
    let of = |policy: &str, cct: &str| {
        RESULT_OF_COFLOWS.replace("SEED", "1").replace("POLICY", policy).replace("CCT", cct)
    };
    let files =
        [write("a.json", &of("slow", "1000000000")), write("b.json", &of("fast", "20000000"))];
    let drawn = |more: &[&str]| {
        plot(&[&[files[0].as_str(), files[1].as_str(), "--kind", "normalised"], more].concat())
            .unwrap()
    };
    // A fiftieth is told apart from nothing.
    assert!(drawn(&["--log-scale"]).contains(">0.02<") && !drawn(&[]).contains(">0.02<"));
    let refused =
        plot(&[&write("log.jsonl", LOG), "--kind", "circuits", "--log-scale"]).unwrap_err();
    assert!(refused.to_string().contains("--log-scale is of completion times"), "{refused}");
}

proptest! {
    #![proptest_config(crate::testing::drawn(60))]
    #[test]
    fn times_of_any_size_are_drawn(ccts in prop::collection::vec(prop::option::of(any::<u64>()), 0..6), log: bool) {
        let list: Vec<String> = ccts.iter().map(|c| format!("{{\"cct\": {}}}", c.map_or("null".into(), |c| c.to_string()))).collect();
        let text = format!("{{\"coflows\": [{}]}}", list.join(","));
        prop_assert_eq!(svg(ChartKind::Cct, &[&text], log).err(), None);
    }

    #[test]
    fn mutated_logs_never_panic(edits in prop::collection::vec((0..LOG.len(), 0usize..4, "[0-9\\-]{0,3}"), 1..4)) {
        let mut bytes = LOG.as_bytes().to_vec();
        for (at, len, new) in edits {
            let at = at.min(bytes.len());
            let end = (at + len).min(bytes.len());
            bytes.splice(at..end, new.bytes());
        }
        let _ = svg(ChartKind::Utilisation, &[&String::from_utf8_lossy(&bytes)], false);
    }
}

/// What the event log of a run says of its circuits is a timetable, whichever scheduler wrote it.
/// On a plane no port has two circuits, nor one that is lit while another is set up there. So is
/// the chart of it.
#[test]
fn an_event_log_says_when_each_circuit_ends() {
    let plane = Plane {
        id: PlaneId(0),
        rate: BitRate::mbit(1000),
        delta: Span::millis(10),
        stop: StopMode::NotAllStop,
        duplex: false,
    };
    let t = Arc::new(Topology::uniform(
        "t",
        5,
        1,
        BitRate::mbit(1000),
        BitRate::mbit(100),
        vec![plane],
    ));
    let trace =
        synth(&Synth { racks: 5, hosts: 1, coflows: 12, seed: 3, mean_gap: Span::millis(200) });
    let w = trace
        .to_workload("w", &t, &PortMapping::default())
        .unwrap()
        .adjusted(&Adjust { scale: 10, ..Adjust::default() });
    for scheduler in SchedulerKind::ALL {
        let policy =
            CircuitPolicy { scheduler, demand: Estimator::Combined, ..CircuitPolicy::default() };
        let mut log = String::new();
        let mut write = |r| log += &(serde_json::to_string(&r).unwrap() + "\n");
        simulate(&t, &policy.into(), &w, None, &mut write).unwrap();
        let bars = one(&log, "f").unwrap().circuits.unwrap().bars;
        assert_eq!(
            bars.is_empty(),
            scheduler.build().set_by() != SetBy::Scheduler,
            "{scheduler:?}"
        );
        for port in [|b: &CircuitBar| b.input, |b: &CircuitBar| b.output] {
            let mut held: Vec<_> = bars.iter().map(|b| (port(b), b.setup_at, b.until)).collect();
            held.sort_unstable();
            let twice = held.windows(2).find(|p| p[0].0 == p[1].0 && p[0].2 > p[1].1);
            assert_eq!(twice, None, "{scheduler:?}: a port has two circuits at once");
        }
    }
}

#[test]
fn repeated_runs_of_a_policy_are_one_line() {
    let run = |policy: &str, seed: u32| {
        RESULT.replace("c-through", policy).replace("\"w\"", &format!("\"mix-seed-{seed}\""))
    };
    let list = format!("[{}, {}, {}]", run("aalo", 1), run("varys", 1), run("aalo", 2));
    let inputs = input::read(&list, "f", &Pool::default()).unwrap();
    let told: Vec<(&str, usize, usize)> = inputs
        .iter()
        .map(|i| (i.about[0].as_str(), i.runs, i.ccts.as_ref().map_or(0, Vec::len)))
        .collect();
    assert_eq!(told, [("aalo", 2, 6), ("varys", 1, 3)]);
    assert_eq!(labels(&inputs, &[]).unwrap(), ["aalo, 2 runs", "varys"]);
    assert!(
        inputs[0].utilisation.is_none() && inputs[1].utilisation.is_some(),
        "what is told over time is told of one run"
    );
}
