//! Jobs on the racks of a running daemon: real tasks' slots, real bytes, over REST.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::*;

/// A daemon on eight racks under a policy.
fn eight_racks(name: &str, policy: &str) -> Daemon {
    let mut c = heliostat();
    c.arg("run").arg(file("topologies/hybrid-8x2.yaml")).arg("--policy").arg(file(policy));
    let d = Daemon::spawn(name, c.args(["--name", name, "--listen", "127.0.0.1:0"]));
    d.until_says("is up");
    d
}

fn schedule(d: &Daemon, policy: &str) -> std::process::Command {
    let mut c = heliostat();
    c.arg("schedule")
        .args(["--controller", &d.api()])
        .arg("--workload")
        .arg(file("workloads/jobs-20.yaml"));
    c.arg("--policy").arg(file(policy));
    c
}

fn json(file: &std::path::Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).expect("the result was written")).expect("JSON")
}

fn number(v: &Value) -> u64 {
    v.as_u64().unwrap_or_else(|| panic!("no number: {v}"))
}

/// Packets, aggregated ones of up to 64 kB each, that hosts' own queues have dropped since the
/// network was built.
fn dropped_by_hosts(d: &Daemon) -> u64 {
    let of = |rack: usize, k: usize| {
        let shown =
            d.exec(&format!("h{rack}-{k}"), &["tc", "-s", "-j", "qdisc", "show", "dev", "eth0"]);
        let queues: Value = serde_json::from_slice(&shown.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}", said(&shown)));
        let drops = queues
            .as_array()
            .expect("queues")
            .iter()
            .filter(|q| q["kind"] == "bfifo")
            .map(|q| number(&q["drops"]));
        drops.sum::<u64>()
    };
    (0..8).flat_map(|rack| [of(rack, 0), of(rack, 1)]).sum()
}

/// Every task of every job ran once, on one slot at a time, and what the plan asked is what sockets
/// received. `dropped`: what hosts' own queues dropped meanwhile ([`dropped_by_hosts`]), where that
/// is known.
fn holds(r: &Value, jobs: usize, dropped: Option<u64>) {
    let s = &r["summary"];
    assert_eq!((number(&s["finished"]), number(&s["unfinished"])), (jobs as u64, 0), "{s}");
    let timeline = r["timeline"].as_array().expect("a timeline");
    let task = |t: &Value| (number(&t["job"]), number(&t["stage"]), number(&t["task"]));
    let once: BTreeSet<_> = timeline.iter().map(task).collect();
    let tasks: u64 = r["jobs"].as_array().expect("jobs").iter().map(|j| number(&j["tasks"])).sum();
    assert_eq!((once.len() as u64, timeline.len() as u64), (tasks, tasks), "every task once");
    let mut slots: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for t in timeline {
        assert_eq!(t["finished"], true, "{t}");
        slots
            .entry((t["host"].as_str(), number(&t["slot"])))
            .or_default()
            .push((number(&t["started_ns"]), number(&t["ended_ns"])));
    }
    for (slot, held) in &mut slots {
        held.sort_unstable();
        assert!(held.windows(2).all(|w| w[0].1 <= w[1].0), "slot {slot:?} is held twice: {held:?}");
    }
    let hosts: BTreeSet<_> = slots.keys().map(|k| k.0.expect("a name")).collect();
    assert!(
        hosts.len() <= 16 && slots.keys().all(|k| k.1 < 2),
        "two slots on each of sixteen hosts: {hosts:?}"
    );

    let (planned, received) = (number(&s["planned_bytes"]), number(&s["received_bytes"]));
    let coflows = r["coflows"].as_array().expect("coflows");
    assert!(planned > 0 && planned == received, "planned {planned}, received {received}");
    assert_eq!(coflows.iter().map(|c| number(&c["bytes"])).sum::<u64>(), planned);
    assert!(
        coflows.iter().all(|c| number(&c["cct_ns"]) >= number(&c["bound_ns"]) * 9 / 10),
        "nothing is faster than light"
    );
    // On the wire is what the plan asks to cross racks, and what TCP sent of it again: the ToRs'
    // counters and the senders' own.
    let n = &r["network"];
    let (crossing, wire, again) = (
        number(&s["between_racks_bytes"]),
        number(&n["on_wire_bytes"]),
        number(&n["sent_again_bytes"]),
    );
    let (expected, off) = (crossing + again, wire.abs_diff(crossing + again));
    println!(
        "{crossing} bytes cross racks, {again} were sent again, the ToRs counted {wire}: {off} off"
    );
    // Each flow says 16 bytes first, and a segment that is as short as headers alone is not
    // counted. TCP counts as sent again also what the sending host's own full queue drops, before a
    // ToR sees it. `netlink` counts the frames that leave the ToRs' queues: not those that were
    // dropped there and sent again, but handshakes.
    let flows: u64 = coflows.iter().map(|c| number(&c["flows"])).sum();
    let (least, most) = match r["mechanism"].as_str() {
        Some("timed") => (
            crossing.max(dropped.map_or(0, |n| expected.saturating_sub(65_536 * n))) - 64 * flows,
            expected + 64 * flows,
        ),
        _ => (crossing, expected + expected / 500),
    };
    let told = format!(
        "{crossing} + {again} bytes, the ToRs counted {wire}; {flows} flows; hosts dropped {dropped:?} packets"
    );
    assert!((least..=most).contains(&wire), "{told}");
    assert_eq!(number(&r["network"]["misdelivered"]), 0);
    assert_eq!(number(&s["counters"]["violations"]), 0);
    // Over time it is the same bytes.
    let links = r["utilisation"]["links"].as_array().expect("what links carried");
    let counted = |l: &&Value| {
        ["up", "ocs"].iter().any(|kind| {
            l["name"].as_str().is_some_and(|n| n.ends_with(kind) || n.starts_with(kind))
        })
    };
    let buckets =
        links.iter().filter(counted).flat_map(|l| l["bytes"].as_array().expect("buckets"));
    // Uplinks are counted behind their queues: without what those drop, with the longer headers of
    // handshakes and of losses.
    let carried = buckets.map(number).sum::<u64>();
    let least = if r["mechanism"] == "timed" { crossing } else { crossing - crossing / 500 };
    assert!(
        (least..=wire + wire / 200 + 64 * flows).contains(&carried),
        "uplinks and planes carried {carried} over time; {told}"
    );
    let bucket = number(&r["utilisation"]["bucket_ns"]) as f64;
    for l in links {
        let most = number(&l["rate_bps"]) as f64 * bucket / 8e9;
        // A shaper lets go a few milliseconds of its rate at once, and a counter that is read late
        // has bytes of the next bucket.
        let shares: Vec<f64> = l["bytes"]
            .as_array()
            .expect("buckets")
            .iter()
            .map(|b| number(b) as f64 / most)
            .collect();
        assert!(
            shares.windows(5).all(|w| w.iter().sum::<f64>() < 5.5),
            "{} carried more than it can: {shares:?}",
            l["name"]
        );
    }
}

fn twenty_jobs() -> Timing {
    let (name, scratch) = (unique("jobs"), Scratch::new("jobs"));
    let (result, timeline) = (scratch.0.join("live.json"), scratch.0.join("tasks.svg"));
    let mut d = eight_racks(&name, "policies/co-scheduler.yaml");
    let mut c = schedule(&d, "policies/co-scheduler.yaml");
    let o = output(c.arg("--json").arg(&result).arg("--timeline").arg(&timeline));
    assert!(o.status.success(), "{}; the daemon: {}", said(&o), d.log());
    let r = json(&result);
    let first = dropped_by_hosts(&d);
    holds(&r, 20, Some(first));
    crate::schema::Schema::of_results().fits(&result);
    assert!(
        String::from_utf8_lossy(&o.stdout).contains("JCT average") && said(&o).contains("20 jobs;")
    );
    assert!(std::fs::read_to_string(&timeline).expect("a chart").contains("sort-1 stage 1"));
    assert_eq!(
        d.show("coflows")["coflows"].as_array().map(Vec::len),
        r["coflows"].as_array().map(Vec::len),
        "the daemon knows them all"
    );
    let active = d.show("coflows")["coflows"]
        .as_array()
        .expect("coflows")
        .iter()
        .filter(|c| c["state"] == "active")
        .count();
    assert_eq!(active, 0);

    // Again on the same daemon, shorter, under another policy of placement.
    let o = output(
        schedule(&d, "policies/corral.yaml")
            .args(["--first", "8", "--time-scale", "2", "--scale", "4", "--json"])
            .arg(&result),
    );
    assert!(o.status.success(), "{}", said(&o));
    holds(&json(&result), 8, Some(dropped_by_hosts(&d) - first));
    assert_eq!(json(&result)["placement"], "corral");
    d.signal("INT");
    assert_eq!(d.ended(), Some(0), "{}", d.log());
    assert_nothing_left(&name);
    in_time!(r["summary"]["ocs_share"].as_f64() > Some(0.05), "{}", r["summary"]);
    Ok(())
}

#[test]
fn a_schedule_that_is_interrupted_cancels_its_coflows_and_tells_what_it_has() {
    let test = "a_schedule_that_is_interrupted_cancels_its_coflows_and_tells_what_it_has";
    if !root(test) {
        return;
    }
    let _turn = together();
    let (name, scratch) = (unique("jcut"), Scratch::new("jcut"));
    let result = scratch.0.join("live.json");
    let mut d = eight_racks(&name, "policies/fair.yaml");
    let mut s = Daemon::spawn(&name, schedule(&d, "policies/fair.yaml").arg("--json").arg(&result));
    let active = || {
        d.show("coflows")["coflows"]
            .as_array()
            .expect("coflows")
            .iter()
            .filter(|c| c["state"] == "active")
            .count()
    };
    until("coflows are on their way", || active() > 2);
    s.signal("INT");
    assert_eq!(s.ended(), Some(1), "{}", s.log());
    s.until_says("interrupted");
    let r = json(&result);
    assert!(
        number(&r["summary"]["unfinished"]) > 0 && r["jobs"].as_array().map(Vec::len) == Some(20),
        "{}",
        r["summary"]
    );
    assert_eq!(active(), 0, "what was on its way is cancelled");

    // A policy that is meant for another network says so.
    let o = output(&mut schedule(&d, "policies/f-eps.yaml"));
    assert_eq!(o.status.code(), Some(3), "{}", said(&o));
    assert!(
        said(&o).contains("meant for 8 racks with an EPS uplink of 1Gb/s each and no circuits"),
        "{}",
        said(&o)
    );
    // A daemon that ends in the middle of a run is missed.
    let mut s = Daemon::spawn(&name, schedule(&d, "policies/fair.yaml").arg("--json").arg(&result));
    until("coflows are on their way again", || active() > 2);
    d.signal("TERM");
    assert_eq!(s.ended(), Some(4), "{}", s.log());
    assert!(number(&json(&result)["summary"]["unfinished"]) > 0);
    assert_eq!(d.ended(), Some(0), "{}", d.log());
    assert_nothing_left(&name);
}

#[test]
fn run_schedules_jobs_by_itself() {
    let test = "run_schedules_jobs_by_itself";
    if !root(test) {
        return;
    }
    let _turn = together();
    for (policy, prioritises) in [("fair", false), ("pushbox", true)] {
        let (name, scratch) = (unique("jself"), Scratch::new("jself"));
        let (result, recording) = (scratch.0.join("live.json"), scratch.0.join("run.rec"));
        let mut c = heliostat();
        c.arg("run")
            .arg(file("topologies/hybrid-8x2.yaml"))
            .arg("--policy")
            .arg(file(&format!("policies/{policy}.yaml")));
        c.args([
            "--name",
            &name,
            "--listen",
            "127.0.0.1:0",
            "--first",
            "4",
            "--scale",
            "4",
            "--time-scale",
            "2",
        ]);
        c.arg("--json").arg(&result).arg("--record").arg(&recording);
        let o = output(c.arg("--schedule").arg(file("workloads/jobs-20.yaml")));
        assert!(o.status.success(), "{policy}: {}", said(&o));
        holds(&json(&result), 4, None);
        // The controller heard of the priorities that the policy gave to flows.
        let heard = std::fs::read_to_string(&recording).expect("a recording");
        let given = heard
            .lines()
            .filter(|l| l.contains("\"coflow_arrived\"") && l.contains("\"priorities\":{\"flows\""))
            .count();
        assert_eq!(
            given > 0,
            prioritises,
            "{policy}: {given} coflows arrived with priorities of their flows"
        );
        assert_nothing_left(&name);
    }
}

/// What fails below: a rack for some seconds, and a host for good.
const FAILING: [&str; 4] = ["--fail", "r0@2s+4s", "--fail", "h5-1@3s"];

/// When the scheduler heard that hosts had failed, which was to be at a time: then it ended what
/// ran there.
fn failed_at(timeline: &[Value], hosts: &[&str], planned: u64) -> u64 {
    let ended = timeline
        .iter()
        .filter(|t| t["finished"] == false && hosts.iter().any(|h| t["host"] == *h))
        .map(|t| number(&t["ended_ns"]));
    let heard = ended.filter(|at| (planned..planned + 4_000_000_000).contains(at)).min();
    // Nothing ran there: half a second is much for it to hear of it.
    heard.unwrap_or(planned + 500_000_000)
}

/// Every task finished at least once, on slots that are held once at a time, and nothing started on
/// the rack while it was down.
fn holds_with_failures(r: &Value) {
    let s = &r["summary"];
    assert_eq!(
        (number(&s["finished"]), number(&s["unfinished"]), number(&s["counters"]["hosts_failed"])),
        (20, 0, 3),
        "{s}"
    );
    assert_eq!(number(&s["counters"]["violations"]), 0, "{s}");
    let timeline = r["timeline"].as_array().expect("a timeline");
    let done: BTreeSet<_> = timeline
        .iter()
        .filter(|t| t["finished"] == true)
        .map(|t| [&t["job"], &t["stage"], &t["task"]].map(number))
        .collect();
    let jobs = r["jobs"].as_array().expect("jobs");
    assert_eq!(
        done.len() as u64,
        jobs.iter().map(|j| number(&j["tasks"])).sum::<u64>(),
        "every task"
    );
    let reruns: u64 = jobs.iter().map(|j| number(&j["reruns"])).sum();
    assert!(
        reruns > 0 && timeline.len() as u64 == done.len() as u64 + reruns,
        "{reruns} started again"
    );
    let rack_failed = failed_at(timeline, &["h0-0", "h0-1"], 2_000_000_000);
    let mut slots: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for t in timeline {
        let (host, from, until) =
            (t["host"].as_str().expect("a name"), number(&t["started_ns"]), number(&t["ended_ns"]));
        slots.entry((host, number(&t["slot"]))).or_default().push((from, until));
        let down = if host == "h5-1" {
            failed_at(timeline, &[host], 3_000_000_000)..u64::MAX
        } else {
            rack_failed..6_000_000_000
        };
        assert!(
            !["h0-0", "h0-1", "h5-1"].contains(&host) || !down.contains(&from),
            "{t} started on a host that was down"
        );
    }
    for (slot, held) in &mut slots {
        held.sort_unstable();
        assert!(held.windows(2).all(|w| w[0].1 <= w[1].0), "slot {slot:?} is held twice: {held:?}");
    }
}

fn hosts_and_racks_fail() -> Timing {
    let (name, scratch) = (unique("jfail"), Scratch::new("jfail"));
    let (live, sim) = (scratch.0.join("live.json"), scratch.0.join("sim.json"));
    let mut d = eight_racks(&name, "policies/corral.yaml");
    let o = output(schedule(&d, "policies/corral.yaml").args(FAILING).arg("--json").arg(&live));
    assert!(o.status.success(), "{}; the daemon: {}", said(&o), d.log());
    let mut c = heliostat();
    c.arg("simulate")
        .arg(file("topologies/hybrid-8x2.yaml"))
        .arg("--policy")
        .arg(file("policies/corral.yaml"));
    let o = output(
        c.arg("--jobs").arg(file("workloads/jobs-20.yaml")).args(FAILING).arg("--json").arg(&sim),
    );
    assert!(o.status.success(), "{}", said(&o));
    let (live, sim) = (json(&live), json(&sim));
    holds_with_failures(&live);
    holds_with_failures(&sim);

    // Coflows of what failed were cancelled; all others arrived to the last byte.
    let shown = d.show("coflows");
    let states: Vec<&str> = shown["coflows"]
        .as_array()
        .expect("coflows")
        .iter()
        .filter_map(|c| c["state"].as_str())
        .collect();
    assert!(!states.contains(&"active") && states.contains(&"finished"), "{states:?}");
    let s = &live["summary"];
    let coflows = live["coflows"].as_array().expect("coflows");
    let arrived: u64 =
        coflows.iter().filter(|c| c["cct_ns"].is_u64()).map(|c| number(&c["bytes"])).sum();
    let (planned, received) = (number(&s["planned_bytes"]), number(&s["received_bytes"]));
    assert!(
        (arrived..=planned).contains(&received),
        "{arrived} of coflows that arrived, {received} in all, {planned} planned"
    );
    // The same scheduler, told the same: jobs end alike.
    let mean = |r: &Value| number(&r["summary"]["average_jct_ns"]) as f64;
    let ratio = mean(&live) / mean(&sim);
    println!(
        "mean JCT live over simulated: {ratio:.3}; {} and {}",
        live["summary"]["guidelines_dropped"], sim["summary"]["guidelines_dropped"]
    );
    let dropped = |r: &Value| r["summary"]["guidelines_dropped"].as_array().map_or(0, Vec::len);
    assert!(
        dropped(&live) > 0 && dropped(&sim) > 0,
        "jobs planned on the rack that failed drop their guideline"
    );
    d.signal("INT");
    assert_eq!(d.ended(), Some(0), "{}", d.log());
    assert_nothing_left(&name);
    in_time!((0.5..2.0).contains(&ratio), "mean JCT live over simulated: {ratio}");
    Ok(())
}

/// Each has the machine alone.
mod alone {
    use super::*;

    #[test]
    fn twenty_jobs_run_on_eight_racks_of_a_daemon() {
        let test = "twenty_jobs_run_on_eight_racks_of_a_daemon";
        if !root(test) {
            return;
        }
        let _turn = alone();
        tries(test, twenty_jobs);
    }

    #[test]
    fn hosts_and_racks_fail_live_as_they_do_in_virtual_time() {
        let test = "hosts_and_racks_fail_live_as_they_do_in_virtual_time";
        if !root(test) {
            return;
        }
        let _turn = alone();
        tries(test, hosts_and_racks_fail);
    }
}
