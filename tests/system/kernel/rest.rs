//! The API over a running emulation: coflows sent and watched, circuits by hand, policies replaced
//! under way, fabrics side by side.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;

use heliostat::coflows::elephants::Admit;
use heliostat::control::policy::{CircuitPolicy, Estimator, SchedulerKind};
use heliostat::control::record::RecordedEvent;
use heliostat::ids::{CoflowId, RackId};
use heliostat::kernel::network::EmulatedNetwork;
use heliostat::kernel::{Clock, KernelFabric, Mechanism, Serving};
use heliostat::runtime::settings::{RunPlan, RunSettings};
use heliostat::units::{BitRate, Bytes, Span};
use serde_json::{Value, json};

use super::daemon::Daemon;
use super::support::{each_mechanism, topology};

fn daemon(name: &str, policy: RunPlan, mechanism: Mechanism) -> Daemon {
    Daemon::start(
        name,
        topology(3, BitRate::mbit(1000), BitRate::mbit(100), Span::millis(10)),
        policy,
        mechanism,
    )
}

fn policy(scheduler: SchedulerKind, admit: Admit) -> RunPlan {
    let policy = CircuitPolicy { scheduler, name: "test".into(), ..CircuitPolicy::default() };
    RunPlan { policy, run: RunSettings { admit, ..RunSettings::default() }, jobs: None }
}

fn post(d: &Daemon, from: u32, to: u32, bytes: u64, send: bool) -> CoflowId {
    let (status, made) = d.call(
        "POST",
        "coflows",
        Some(&json!({"send": send, "pairs": [{"from": from, "to": to, "bytes": bytes}]})),
    );
    assert_eq!(status, 201, "{made}");
    CoflowId(made["id"].as_u64().expect("an id") as u32)
}

/// Waits for a coflow's end and two more cycles, so that all is counted.
fn finished(d: &Daemon, id: CoflowId) -> Value {
    d.wait("the coflow's end", |s| s.coflows.iter().any(|c| c.id == id && c.finished.is_some()));
    d.cycles(2);
    d.get(&format!("coflows/{}", id.0))
}

/// Sends `bytes` bytes by sockets of the test's own, opened in the hosts' namespaces.
fn send_by_hand(d: &Daemon, from: u32, to: u32, bytes: usize) {
    let address = (Ipv4Addr::new(10, to as u8, 0, 2), 5001);
    let listener = d.within(&format!("h{to}-0"), || TcpListener::bind(address));
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut all = vec![];
        stream.read_to_end(&mut all).expect("all bytes");
        all.len()
    });
    let mut stream = d.within(&format!("h{from}-0"), || TcpStream::connect(address));
    stream.write_all(&vec![7; bytes]).expect("sent");
    drop(stream);
    assert_eq!(receiver.join().expect("received"), bytes);
}

/// Sends `bytes` bytes from this TCP port, as a server that is asked for them.
fn serve_by_hand(d: &Daemon, (from, port): (u32, u16), to: u32, bytes: usize) {
    let address = (Ipv4Addr::new(10, from as u8, 0, 2), port);
    let listener = d.within(&format!("h{from}-0"), || TcpListener::bind(address));
    let sender = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.write_all(&vec![7; bytes]).expect("sent");
    });
    let mut stream = d.within(&format!("h{to}-0"), || TcpStream::connect(address));
    stream.set_read_timeout(Some(crate::support::DEADLINE)).expect("set");
    let mut all = vec![];
    stream.read_to_end(&mut all).expect("all bytes");
    assert_eq!(all.len(), bytes);
    sender.join().expect("sent");
}

/// The first port of programs that mark no packet.
const PORT: u16 = 7080;

#[test]
fn what_a_client_declared_and_sends_from_the_policys_ports_waits_for_its_circuit() {
    let test = "what_a_client_declared_and_sends_from_the_policys_ports_waits_for_its_circuit";
    each_mechanism(test, |mechanism| {
        let plan = RunPlan {
            policy: CircuitPolicy {
                elephant_threshold: Bytes(1_000_000),
                demand: Estimator::Declared,
                ..policy(SchedulerKind::Bipartite, Admit::Wait).policy
            },
            run: RunSettings { admit: Admit::Wait, port: Some(PORT), ..RunSettings::default() },
            jobs: None,
        };
        if mechanism == Mechanism::Netlink {
            let t = topology(2, BitRate::mbit(100), BitRate::mbit(10), Span::ZERO);
            let net =
                EmulatedNetwork::build(Arc::new(t), "heliostat:hst-port", None).expect("built");
            let serving = Serving { port: plan.run.port, ..Admit::Wait.into() };
            let refused = KernelFabric::install(net, mechanism, serving, Clock::start());
            let why = refused.err().map(|e| e.to_string()).unwrap_or_default();
            return assert!(why.contains("`elephants.port` needs the mechanism `timed`"), "{why}");
        }
        let d = daemon("hst-port", plan, mechanism);
        // What was counted meanwhile, in all and over circuits, from the first rack to another.
        let counted = |to: u32, during: &dyn Fn()| {
            let pair = (RackId(0), RackId(to));
            let seen = || {
                let s = d.cycles(2);
                [&s.sent, &s.over_ocs].map(|m| m.get(pair.0, pair.1))
            };
            let before = seen();
            during();
            let after = seen();
            [after[0] - before[0], after[1] - before[1]]
        };
        // Nothing is declared.
        let [sent, over] = counted(1, &|| serve_by_hand(&d, (0, PORT), 1, 300_000));
        assert!(sent >= 300_000 && over == 0, "{sent} {over}");

        let pairs = json!([{"from": 0, "to": 1, "bytes": 30_000_000}, {"from": 0, "to": 2, "bytes": 500_000}]);
        let (status, made) = d.call("POST", "coflows", Some(&json!({"pairs": pairs})));
        assert_eq!(status, 201, "{made}");
        let path = format!("coflows/{}", made["id"]);
        // Below the threshold, and from a port that is not the policy's.
        let [sent, over] = counted(2, &|| serve_by_hand(&d, (0, PORT), 2, 300_000));
        assert!(sent >= 300_000 && over == 0, "{sent} {over}");
        let [sent, over] = counted(1, &|| serve_by_hand(&d, (0, PORT + 16), 1, 300_000));
        assert!(sent >= 300_000 && over == 0, "{sent} {over}");
        // An elephant; the last of the ports is one of them.
        for port in [PORT, PORT + 15] {
            let [sent, over] = counted(1, &|| serve_by_hand(&d, (0, port), 1, 10_000_000));
            println!("port {port}: {over} of {sent} bytes over the circuit");
            assert!(over >= 10_000_000 && sent - over < 100_000, "{sent} {over}");
        }
        assert_eq!(d.get(&path)["state"], "active");
        assert_eq!(d.call("POST", &format!("{path}/finish"), None).0, 200);
        // It is over: nothing of it waits any more.
        let [sent, over] = counted(1, &|| serve_by_hand(&d, (0, PORT), 1, 300_000));
        assert!(sent >= 300_000 && over == 0, "{sent} {over}");

        // Another coflow, of which nothing comes, keeps no port from what waits. And more comes
        // than was declared.
        let declare = |to: u32, bytes: u64| {
            let pairs = json!([{"from": 0, "to": to, "bytes": bytes}]);
            d.call("POST", "coflows", Some(&json!({"pairs": pairs}))).1["id"].clone()
        };
        let (rival, small) = (declare(2, 100_000_000), declare(1, 2_000_000));
        serve_by_hand(&d, (0, PORT), 1, 3_000_000);
        d.wait_by("the end of the coflow", || {
            d.get(&format!("coflows/{small}"))["state"] == "finished"
        });
        assert_eq!(d.get(&format!("coflows/{rival}"))["state"], "active");
    });
}

#[test]
fn flows_posted_are_counted_one_by_one_and_cancelling_stops_them() {
    each_mechanism("flows_posted_are_counted_one_by_one_and_cancelling_stops_them", |mechanism| {
        let d = daemon("hst-flows", policy(SchedulerKind::Bipartite, Admit::Marked), mechanism);
        let mut events = d.emulation().live.handle.events();
        let sizes = [2_000_000, 300_000, 1, 70_001];
        let flows: Vec<Value> = sizes
            .iter()
            .enumerate()
            .map(|(k, b)| json!({"from": k % 3, "to": (k + 1) % 3, "bytes": b}))
            .collect();
        let (status, made) =
            d.call("POST", "coflows", Some(&json!({"send": true, "flows": flows})));
        assert_eq!(status, 201, "{made}");
        let id = CoflowId(made["id"].as_u64().expect("an id") as u32);
        let c = finished(&d, id);
        let seen = c["flows"].as_array().expect("its flows");
        assert!(
            seen.iter()
                .zip(sizes)
                .all(|(f, b)| f["received_bytes"] == b && f["finished_ns"].as_u64() > Some(0)),
            "{c}"
        );
        let mut told = vec![0; sizes.len()];
        while let Ok(e) = events.try_recv() {
            if let RecordedEvent::FlowFinished { flow, bytes, .. } = e.what {
                told[flow.index()] += bytes.0;
            }
        }
        assert_eq!(told, sizes, "every flow is told once, with what its receiver counted");

        let long =
            json!({"send": true, "flows": [{"from": 0, "to": 1, "bytes": 100_000_000_000u64}]});
        let (_, made) = d.call("POST", "coflows", Some(&long));
        let path = format!("coflows/{}", made["id"]);
        let received = || d.get(&path)["flows"][0]["received_bytes"].as_u64().expect("bytes");
        let begun = d.snapshot().sent.total();
        d.wait("bytes", |s| s.sent.total() > begun + 4_000_000);
        assert!(received() > 0);
        assert_eq!(d.call("DELETE", &path, None).0, 204);
        // What waits at the ToR still goes out; then nothing more comes.
        let mut before = d.cycles(3).sent.total();
        d.wait_by("the end of its bytes", || {
            let now = d.cycles(3).sent.total();
            now - std::mem::replace(&mut before, now) < 10_000
        });
    });
}

/// Few run at a time.
mod quiet {
    use super::*;
    use crate::kernel::support::each_mechanism_quiet;

    #[test]
    fn coflows_posted_are_sent_or_watched() {
        each_mechanism_quiet("coflows_posted_are_sent_or_watched", |mechanism| {
            let d = daemon("hst-rest", policy(SchedulerKind::Bipartite, Admit::All), mechanism);
            let sent = post(&d, 0, 1, 40_000_000, true);
            let s = d.wait("progress", |s| s.coflows.iter().any(|c| c.received > Bytes(0)));
            let seen = s.coflows.get(sent).expect("it is shown").finished;
            let c = finished(&d, sent);
            assert_eq!(
                (&c["state"], &c["received_bytes"]),
                (&json!("finished"), &json!(40_000_000)),
                "{c}"
            );
            assert!(c["cct_ns"].as_u64() >= c["bound_ns"].as_u64(), "{c}");
            in_time!(seen.is_none(), "the first bytes were seen after the last ones had come");
            in_time!(
                c["over_ocs_bytes"].as_u64() > Some(20_000_000),
                "most bytes should go over the OCS: {c}"
            );

            let watched = post(&d, 1, 2, 3_000_000, false);
            send_by_hand(&d, 1, 2, 1_000_000);
            d.cycles(2);
            let half = d.get(&format!("coflows/{}", watched.0));
            let received = half["received_bytes"].as_u64().expect("bytes");
            assert!(
                half["state"] == "active" && (1_000_000..2_000_000).contains(&received),
                "{half}"
            );
            send_by_hand(&d, 1, 2, 2_000_000);
            let c = finished(&d, watched);
            assert!(c["received_bytes"] == json!(3_000_000) && c["cct_ns"].is_u64(), "{c}");
            println!("{}: {c}", mechanism.name());
            Ok(())
        });
    }

    #[test]
    fn circuits_by_hand_and_another_policy_under_way() {
        each_mechanism_quiet("circuits_by_hand_and_another_policy_under_way", |mechanism| {
            let d = daemon("hst-hand", policy(SchedulerKind::Manual, Admit::Marked), mechanism);
            let over_ocs = |from, to| {
                let c = finished(&d, post(&d, from, to, 2_000_000, true));
                c["over_ocs_bytes"].as_u64().expect("bytes")
            };
            assert_eq!(over_ocs(0, 2), 0);
            assert_eq!(d.call("PUT", "circuits/0/0", Some(&json!({"output": 2}))).0, 204);
            d.wait("light", |s| s.ports[0].sends_to.is_some());
            let most = over_ocs(0, 2);
            assert_eq!(d.call("DELETE", "circuits/0/0", None).0, 204);
            d.wait("darkness", |s| s.circuits.is_empty());
            assert_eq!(over_ocs(0, 2), 0);

            // Another scheduler while it runs; but not what was fixed at the start.
            let mut p = d.get("policy");
            p["scheduler"] = json!("bipartite");
            assert_eq!(d.call("PUT", "policy", Some(&p)).0, 200);
            let c = finished(&d, post(&d, 1, 2, 40_000_000, true));
            p["elephants"]["admit"] = json!("all");
            let (status, problem) = d.call("PUT", "policy", Some(&p));
            assert!(
                status == 409
                    && problem["detail"].as_str().unwrap_or_default().contains("start another run"),
                "{problem}"
            );
            assert_eq!(d.get("policy")["elephants"]["admit"], json!("marked"));
            in_time!(most > 1_900_000, "of 2 MB, {most} bytes took the circuit");
            in_time!(
                c["over_ocs_bytes"].as_u64() > Some(20_000_000),
                "most bytes should go over the OCS: {c}"
            );
            Ok(())
        });
    }

    #[test]
    fn two_fabrics_side_by_side_do_not_meet() {
        each_mechanism_quiet("two_fabrics_side_by_side_do_not_meet", |mechanism| {
            let a = daemon("hst-left", policy(SchedulerKind::RoundRobin, Admit::Marked), mechanism);
            let b = daemon("hst-right", policy(SchedulerKind::Manual, Admit::Marked), mechanism);
            assert_eq!(b.call("PUT", "circuits/0/1", Some(&json!({"output": 0}))).0, 204);
            b.wait("light", |s| s.ports[1].sends_to.is_some());
            let (x, y) = (post(&a, 0, 1, 20_000_000, true), post(&b, 1, 0, 20_000_000, true));
            let (x, y) = (finished(&a, x), finished(&b, y));
            assert_eq!(
                (&x["received_bytes"], &y["received_bytes"]),
                (&json!(20_000_000), &json!(20_000_000))
            );
            for (d, from, to) in [(&a, 0, 1), (&b, 1, 0)] {
                let s = d.snapshot();
                for (i, j, bytes) in s.sent.entries() {
                    let data = (i.0, j.0) == (from, to);
                    assert!(
                        if data { bytes >= 20_000_000 } else { bytes < 2_000_000 },
                        "{}: {i} -> {j} sent {bytes}",
                        d.name
                    );
                }
                assert_eq!(s.coflows.iter().count(), 1);
                assert_eq!(s.ports.iter().map(|p| p.counters.misdelivered).sum::<u64>(), 0);
            }
            drop(a);
            // The other one does not notice.
            let again = finished(&b, post(&b, 1, 0, 2_000_000, true));
            in_time!(
                y["over_ocs_bytes"].as_u64() > Some(19_000_000),
                "most bytes should take its own circuit: {y}"
            );
            in_time!(
                again["over_ocs_bytes"].as_u64() > Some(1_900_000),
                "most bytes should take its own circuit: {again}"
            );
            Ok(())
        });
    }
}
