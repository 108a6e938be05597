//! Every parser of what people and other programs write, fed with good texts that were spoiled:
//! none may panic, whatever comes.
//!
//! A test run tries some hundred spoiled texts a parser; `HELIOSTAT_FUZZ=100000` tries that many,
//! and prints what became of them. The texts are drawn from a seed, `HELIOSTAT_FUZZ_SEED`, and a
//! text that makes a parser panic is printed whole.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::api::wire;
use crate::circuits::external::Advice;
use crate::cli::{event_log, jobs, plot, results};
use crate::config::{self, JobsReading, faults, matrix, shipped};
use crate::kernel::attached::Processes;
use crate::placement::offers;
use crate::runtime::record::replay;
use crate::topology::Topology;
use crate::units::{BitRate, Bytes, Span};
use crate::workload::coflow_benchmark::PortMapping;

/// Whether a parser takes a text.
type Takes = Box<dyn Fn(&[u8]) -> bool>;

/// A parser: its name, texts that it takes, and whether it takes one.
struct Target {
    name: &'static str,
    good: Vec<String>,
    takes: Takes,
}

/// One that reads text.
fn text(name: &'static str, good: &[&str], takes: impl Fn(&str) -> bool + 'static) -> Target {
    let takes = move |bytes: &[u8]| takes(&String::from_utf8_lossy(bytes));
    Target { name, good: good.iter().map(|s| (*s).to_owned()).collect(), takes: Box::new(takes) }
}

/// One that reads a body or an answer of JSON.
fn json<T: serde::de::DeserializeOwned>(name: &'static str, good: &[&str]) -> Target {
    text(name, good, |s| serde_json::from_str::<T>(s).is_ok())
}

fn network() -> Topology {
    config::read_topology(shipped("hybrid-4x2"), "t").expect("it is shipped")
}

fn shipped(name: &str) -> &'static str {
    shipped::find(name).expect("it is shipped").text
}

fn files() -> Vec<Target> {
    let topologies = ["hybrid-4x2", "geni-10", "fat-tree-4", "bcube-64"].map(shipped);
    let policies = ["c-through", "pushbox", "hit", "co-scheduler", "sunflow"].map(shipped);
    let (t, u, v) = (network(), network(), network());
    // A spoiled number may ask for more flows than there is memory for: that is refused.
    let mapping = PortMapping { most: Some(10_000), ..PortMapping::default() };
    let traces = [
        "4 2\n1 0 2 1 2 1 3:20\n2 100 1 0 2 1:5 3:10\n",
        "1\t0\t1\t1\t0#2:1.0\n2\t5\t2\t1\t0,1#3:4.5\n",
        "4 2\n0 35 2 1 2 0 2 5.0 0 3 2.5\n7 40.5 1 1 1 3 1 1\n",
        "Nodes 4\nConnections 2\n0->1 id 1 start 0 size 5000\n2->3 id 2 start 9000000 size 700\n",
    ];
    let workload = move |s: &str| config::read_workload(s, "w", &t, &mapping).is_ok();
    let swim = "job0\t0\t0\t1000000\t2000000\t500000\njob1\t13\t13\t9000000\t80000000\t4\n";
    let any_jobs = |s: &str| config::read_any_jobs(s, "j", &JobsReading::default()).is_ok();
    let grid = "topologies: [hybrid-4x2]\npolicies: [varys, aalo]\nworkloads: [shuffle-4]\nseeds: [1-3]\noptions: {scale: [1, 2]}\n";
    let faults_of =
        "r2.uplink=50%@10s+5s\n# a port\nocs0.in3=stuck@2s\nh3-1.nic=down@2s\nr1.tor=down@1s\n";
    let dense = "0,5,2\n1,0,0\n9,9,0\n";
    vec![
        text("topologies", &topologies, |s| config::read_topology(s, "t").is_ok()),
        text("policies", &policies, |s| config::read_policy(s, "p").is_ok()),
        text("policies as JSON", &policies, |s| config::as_json(s).is_ok()),
        text(
            "workloads and traces of coflows",
            &[&[shipped("shuffle-4")], &traces[..]].concat(),
            workload,
        ),
        text("jobs and traces of jobs", &[shipped("jobs-8"), shipped("dag-8"), swim], any_jobs),
        text("grids of sweeps", &[grid], |s| config::read_grid(s, "g", |_| vec![]).is_ok()),
        text("scenarios of faults", &[faults_of], move |s| faults::read_faults(s, "f", &u).is_ok()),
        text(
            "--fault",
            &faults_of.lines().filter(|l| !l.starts_with('#')).collect::<Vec<_>>(),
            move |s| faults::read_fault(s, &v).is_ok(),
        ),
        text("--fail", &["h3-1@10s", "r2@10s+30s"], |s| jobs::failure(s, &network()).is_ok()),
        text("matrices", &[dense], |s| matrix::read(s.as_bytes(), "m.csv").is_ok()),
        text("bytes", &["4kB", "1.5 GB", "80B"], |s| s.parse::<Bytes>().is_ok()),
        text("rates", &["10Gb/s", "2.5 Mb/s"], |s| s.parse::<BitRate>().is_ok()),
        text("times", &["10ms", "1.5 s", "3us"], |s| s.parse::<Span>().is_ok()),
    ]
}

/// What earlier runs and other programs write.
fn records() -> Vec<Target> {
    let file = |path: &str| crate::testing::shipped(&format!("tests/{path}"));
    let [coflows, of_jobs] = ["results/coflows-1.json", "results/jobs-1.json"].map(file);
    let recordings =
        ["recorded/simulated-helios-stuck-port.jsonl", "recorded/simulated-jobs-rack-fails.jsonl"]
            .map(file);
    let lines = "{\"seq\":3,\"at_ns\":100,\"event\":\"cycle\",\"cycle\":1,\"demand_bytes\":10,\"ops\":2,\"late\":false}\n";
    let results = [&*coflows, &*of_jobs];
    let recordings = recordings.each_ref().map(|r| &**r);
    vec![
        text("results", &results, |s| results::parse(s, Path::new("r.json")).is_ok()),
        text("what is plotted", &[&results[..], &[lines]].concat(), |s| {
            plot::input::read(s, "r.json", &crate::cli::apart::Pool::default()).is_ok()
        }),
        text("lines of event logs", &[lines], |s| event_log::read(s).is_ok()),
        Target {
            name: "recordings",
            good: recordings.iter().map(|s| (*s).to_owned()).collect(),
            takes: Box::new(|bytes| replay::replay(bytes, None).is_ok()),
        },
        text("nodes of Mininet", &[&nodes()], |s| Processes::parse(s).is_ok()),
    ]
}

fn nodes() -> String {
    let t = network();
    let hosts: Vec<String> =
        t.hosts.iter().map(|h| format!("\"h{}-{}\":{}", h.rack.0, h.index, 100 + h.id.0)).collect();
    format!("{{\"nodes\":{{{}}}}}", hosts.join(","))
}

/// Bodies of requests, and answers of programs that decide.
fn spoken() -> Vec<Target> {
    let place = "{\"name\":\"a\",\"place\":{\"maps\":[{\"rack\":0,\"bytes\":5}],\"tasks\":2,\"slots\":[{\"rack\":1,\"free\":3,\"soon\":[]}]}}";
    let flows = "{\"send\":true,\"flows\":[{\"from\":0,\"to\":3,\"bytes\":100000,\"priority\":2}],\"weight\":3,\"priority\":1}";
    vec![
        json::<wire::CoflowBody>(
            "coflows over the API",
            &["{\"name\":\"a\",\"pairs\":[{\"from\":0,\"to\":1,\"bytes\":5}]}", flows, place],
        ),
        json::<wire::CoflowChange>(
            "changes of coflows",
            &["{\"priority\":3}", "{\"flows\":[{\"flow\":0,\"priority\":1}]}"],
        ),
        json::<wire::CircuitBody>("circuits over the API", &["{\"output\":2}"]),
        json::<wire::ConfigurationBody>(
            "configurations",
            &["{\"circuits\":[{\"plane\":0,\"input\":1,\"output\":2}]}"],
        ),
        json::<wire::PathBody>("lists of switches", &["{\"switches\":[\"edge0\",\"core1\"]}"]),
        json::<Advice>(
            "programs that set circuits",
            &["{\"cycle\":4,\"planes\":[[{\"pairs\":[[0,1],[2,3]],\"hold_ns\":null}]]}"],
        ),
        json::<offers::OfferAnswer>(
            "programs that place tasks",
            &[
                "{\"offer\":3,\"start\":{\"job\":1,\"stage\":0}}",
                "{\"offer\":4,\"start\":null,\"again_at_ns\":7}",
            ],
        ),
    ]
}

/// Pieces that parsers like least.
const PIECES: &[&str] = &[
    "-1",
    "0",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "NaN",
    "0.1",
    "\u{0}",
    "\u{feff}",
    "é",
    "𐏿",
    "\n",
    "\r\n",
    "\t",
    " ",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "'",
    "&a ",
    "*a",
    "<<: ",
    "!!int ",
    "|\n",
    ">",
    "#",
    "%",
    "@",
    "- ",
    "? ",
    "~",
    "null",
    "true",
    "{}",
    "[]",
    "s",
    "ns",
    "GB",
    "Gb/s",
    "->",
    "+",
    "=",
    "r0",
    "h0-0",
    "99999999999999999999999999999999999999999",
];

/// A good text with one to six changes: pieces put in, bytes cut out or flipped, parts doubled or
/// moved, lines exchanged, numbers replaced.
fn spoiled(good: &str, rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = good.as_bytes().to_vec();
    for _ in 0..rng.random_range(1..=6) {
        let at = rng.random_range(0..=bytes.len());
        let end = (at + rng.random_range(0..=24)).min(bytes.len());
        match rng.random_range(0..7) {
            0 => drop(bytes.splice(at..at, PIECES.choose(rng).expect("some").bytes())),
            1 => drop(bytes.drain(at..end)),
            2 => drop(bytes.splice(at..end, PIECES.choose(rng).expect("some").bytes())),
            3 => {
                let part = bytes[at..end].to_vec();
                let to = rng.random_range(0..=bytes.len());
                bytes.splice(to..to, part);
            }
            4 => bytes[at..end.min(at + 1)]
                .iter_mut()
                .for_each(|b| *b ^= 1 << rng.random_range(0..8)),
            5 => {
                let mut lines: Vec<Vec<u8>> =
                    bytes.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
                let (a, b) = (rng.random_range(0..lines.len()), rng.random_range(0..lines.len()));
                lines.swap(a, b);
                bytes = lines.join(&b'\n');
            }
            _ => {
                let is_digit = |b: &u8| b.is_ascii_digit();
                if let Some(from) = bytes.iter().skip(at).position(is_digit).map(|k| at + k) {
                    let long = bytes[from..].iter().take_while(|b| is_digit(b)).count();
                    let number =
                        [0u64, 1, 2, 255, 65_536, u64::from(u32::MAX), i64::MAX as u64, u64::MAX]
                            .choose(rng)
                            .expect("some")
                            .to_string();
                    bytes.splice(from..from + long, number.into_bytes());
                }
            }
        }
    }
    bytes
}

/// Tries `runs` spoiled texts; says how many were taken.
fn attack(target: &Target, runs: usize, seed: u64) -> usize {
    for good in &target.good {
        assert!((target.takes)(good.as_bytes()), "{}: a good text is refused: {good}", target.name);
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut taken = 0;
    for k in 0..runs {
        let bytes = spoiled(target.good.choose(&mut rng).expect("some"), &mut rng);
        match catch_unwind(AssertUnwindSafe(|| (target.takes)(&bytes))) {
            Ok(took) => taken += usize::from(took),
            Err(_) => panic!(
                "{}: text {k} of seed {seed} makes it panic: {:?}",
                target.name,
                String::from_utf8_lossy(&bytes)
            ),
        }
    }
    taken
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable)
        .ok()
        .map(|v| v.parse().unwrap_or_else(|_| panic!("{variable}={v}: a whole number")))
}

#[cfg(test)]
fn attack_all(targets: &[Target]) {
    let (runs, seed) = (number("HELIOSTAT_FUZZ"), number("HELIOSTAT_FUZZ_SEED").unwrap_or(0));
    for t in targets {
        // Long texts take longer to read.
        let long = t.good.iter().map(String::len).max().unwrap_or(0);
        let n = runs.map_or((2_000_000 / long.max(4_000)).max(40), |n| n as usize);
        let taken = attack(t, n, seed);
        println!("{}: {n} spoiled texts, {taken} taken, {} refused, no panic", t.name, n - taken);
        assert!(
            runs.is_none() || taken > 0 && taken < n,
            "{}: all spoiled texts had the same fate",
            t.name
        );
    }
}

#[test]
fn no_spoiled_file_makes_its_parser_panic() {
    attack_all(&files());
}

#[test]
fn no_spoiled_record_makes_its_parser_panic() {
    attack_all(&records());
}

#[test]
fn no_spoiled_message_makes_its_parser_panic() {
    attack_all(&spoken());
}
