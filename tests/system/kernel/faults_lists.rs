//! News of the kernel that find no room, and lists that change while the kernel makes them: nothing
//! is missed, and control goes on.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use heliostat::control::record::{RecordedEvent, Snapshot};
use heliostat::ids::CoflowId;
use heliostat::kernel::Mechanism;
use heliostat::units::Bytes;

use super::daemon::Daemon;
use super::faults_links::{by_backlog, carried, found_in_time, told};
use crate::tries::Timing;

/// Runs many commands of `ip` in a node, in one process.
fn batch(d: &Daemon, node: &str, lines: &str) -> Output {
    let mut c = Command::new("ip");
    c.args(["-n", &format!("{}-{node}", d.name), "-force", "-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = c.spawn().expect("iproute2");
    child.stdin.take().expect("piped").write_all(lines.as_bytes()).expect("written");
    child.wait_with_output().expect("its end")
}

/// News that found no room in sockets of a node.
fn dropped(d: &Daemon, node: &str) -> u64 {
    let list = d.within(node, || std::fs::read_to_string("/proc/thread-self/net/netlink"));
    list.lines().filter_map(|l| l.split_whitespace().nth(8)?.parse::<u64>().ok()).sum()
}

fn found(s: &Snapshot) -> u64 {
    s.tampered.as_ref().map_or(0, |t| t.found)
}

/// Far more changes at once than the queue of news holds, and among them one that matters.
fn news_that_find_no_room(mechanism: Mechanism) -> Timing {
    const CHANGES: u32 = 3000;
    let d = by_backlog("fl-news", mechanism);
    let id = d.send(3, 1, 60_000_000);
    carried(&d, 3, 1);
    let mut events = d.emulation().live.handle.events();
    let address = |k: u32| format!("10.99.{}.{}", k / 250, k % 250 + 1);
    let all = |verb: &str, end: &str| {
        (0..CHANGES)
            .map(|k| format!("neigh {verb} {} dev eth0{end}\n", address(k)))
            .collect::<String>()
    };
    let lines = all("add", " lladdr 02:00:00:00:00:01 nud permanent")
        + "route del default\n"
        + &all("del", "");
    let before = dropped(&d, "h3-0");
    let o = batch(&d, "h3-0", &lines);
    let cycle = d.snapshot().stats.cycles;
    assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
    let s = d.wait("the word of it", |s| found(s) > 0);
    assert!(dropped(&d, "h3-0") > before, "there was room for all news");
    assert!(d.tool("ip", "h3-0", "route show").contains("default"), "written again");
    let end = d.wait("its end", |s| {
        s.coflows.get(CoflowId(id as u32)).is_some_and(|c| c.finished.is_some())
            && s.failures.is_empty()
    });
    assert_eq!(
        (found(&end), end.coflows.get(CoflowId(id as u32)).map(|c| c.received)),
        (1, Some(Bytes(60_000_000)))
    );
    assert_eq!(
        told(&mut events).iter().filter(|w| matches!(w, RecordedEvent::Failed { .. })).count(),
        1,
        "told once"
    );
    found_in_time("a change among news that found no room", cycle, &s)?;
    Ok(())
}

/// Two hundred links of another process's in a ToR, and others that come and go all the time: dumps
/// of its links are interrupted.
fn lists_that_change(mechanism: Mechanism) -> Timing {
    let d = by_backlog("fl-dump", mechanism);
    let standing: String =
        (0..100).map(|k| format!("link add x{k} type veth peer name y{k}\n")).collect();
    assert!(batch(&d, "tor0", &standing).status.success());
    let id = d.send(0, 1, 60_000_000);
    let over = AtomicBool::new(false);
    let interrupted = std::thread::scope(|s| {
        s.spawn(|| {
            let turn = "link add z0 type veth peer name z1\nlink del z0\n".repeat(50);
            while !over.load(Relaxed) {
                assert!(batch(&d, "tor0", &turn).status.success());
            }
        });
        let mut interrupted = 0;
        d.wait_by("its end", || {
            let o = Command::new("ip")
                .args(["-n", "fl-dump-tor0", "link", "show"])
                .output()
                .expect("iproute2");
            interrupted += usize::from(String::from_utf8_lossy(&o.stderr).contains("interrupted"));
            let s = d.snapshot();
            interrupted > 0
                && s.coflows.get(CoflowId(id as u32)).is_some_and(|c| c.closed().is_some())
        });
        over.store(true, Relaxed);
        interrupted
    });
    println!("{}: {interrupted} dumps of `ip` were interrupted", mechanism.name());
    let s = d.wait("its being over", |s| s.failures.is_empty());
    assert_eq!(s.coflows.get(CoflowId(id as u32)).map(|c| c.received), Some(Bytes(60_000_000)));
    assert_eq!(
        s.tampered.as_ref().map(|t| &t.what).filter(|w| !w.contains("cannot be compared")),
        None,
        "nothing of ours was changed"
    );
    d.tool("tc", "tor0", "qdisc del dev eps0 root");
    let cycle = d.snapshot().stats.cycles;
    let s = d.wait("the next change", |s| {
        s.tampered.as_ref().is_some_and(|t| t.until > Default::default()) && s.stats.cycles > cycle
    });
    d.wait("its being over", |s| s.failures.is_empty());
    found_in_time("a change of a node whose lists change all the time", cycle, &s)?;
    Ok(())
}

/// Few run at a time.
mod quiet {
    use super::*;
    use crate::kernel::support::each_mechanism_quiet;

    #[test]
    fn what_is_changed_while_news_find_no_room_is_found_and_told_once() {
        each_mechanism_quiet(
            "what_is_changed_while_news_find_no_room_is_found_and_told_once",
            news_that_find_no_room,
        );
    }

    #[test]
    fn lists_that_change_while_they_are_read_do_not_stop_control() {
        each_mechanism_quiet(
            "lists_that_change_while_they_are_read_do_not_stop_control",
            lists_that_change,
        );
    }
}
