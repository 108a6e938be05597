//! Cells of the arrays that the BPF programs read, changed by another process of root: they are
//! written again, and it is told.

use std::process::Command;

use heliostat::control::policy::{CircuitPolicy, SchedulerKind};
use heliostat::control::record::{RecordedEvent, Snapshot};
use heliostat::ids::{CoflowId, RackId};
use heliostat::kernel::Mechanism;
use heliostat::paths::choose::PathPolicy;
use heliostat::topology::graph::Graph;
use heliostat::units::{BitRate, Bytes, Span};

use super::daemon::Daemon;
use super::faults_links::{by_backlog, carried, told};
use super::lists::on;
use crate::tries::Timing;

/// Prints what a 64-bit cell of a map holds, which is named by its number; writes another value
/// into it if there is one.
const POKE: &str = r#"
import ctypes, mmap, os, struct, sys
number, offset, *value = (int(a) for a in sys.argv[1:])
libc = ctypes.CDLL(None, use_errno=True)
attr = ctypes.create_string_buffer(struct.pack("=III", number, 0, 0).ljust(128, b"\0"), 128)
fd = libc.syscall(321, 14, attr, 128)
assert fd >= 0, os.strerror(ctypes.get_errno())
page = offset // mmap.PAGESIZE * mmap.PAGESIZE
cells = mmap.mmap(fd, mmap.PAGESIZE, offset=page)
print(*struct.unpack_from("=Q", cells, offset - page))
if value:
    struct.pack_into("=Q", cells, offset - page, value[0])
"#;

/// A map of this process: its number and how it is laid out.
struct Map {
    number: u64,
    /// Bytes of an entry.
    width: usize,
    entries: usize,
}

/// The maps of this process, as every process of root sees them.
fn maps() -> Vec<Map> {
    let files = std::fs::read_dir("/proc/self/fdinfo").expect("this process's own").flatten();
    let map = |text: String| {
        let field = |key: &str| {
            text.lines()
                .find_map(|l| l.strip_prefix(key)?.strip_prefix(':')?.trim().parse::<u64>().ok())
        };
        Some(Map {
            number: field("map_id")?,
            width: field("value_size")? as usize,
            entries: field("max_entries")? as usize,
        })
    };
    files.filter_map(|f| map(std::fs::read_to_string(f.path()).ok()?)).collect()
}

/// The one map of this layout.
fn map(width: usize, entries: impl Fn(usize) -> bool) -> Map {
    let mut found: Vec<Map> =
        maps().into_iter().filter(|m| m.width == width && entries(m.entries)).collect();
    found.sort_by_key(|m| m.number);
    found.dedup_by_key(|m| m.number);
    assert_eq!(found.len(), 1, "maps with entries of {width} bytes");
    found.remove(0)
}

impl Map {
    /// Has another process read a cell, and write another value if there is one; gives what it
    /// held.
    fn cell(&self, (entry, cell): (usize, usize), value: Option<u64>) -> u64 {
        let place = [self.number, (entry * self.width + cell * 8) as u64];
        let args = place.into_iter().chain(value).map(|n| n.to_string());
        let o = Command::new("python3").args(["-c", POKE]).args(args).output().expect("python3");
        assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
        String::from_utf8_lossy(&o.stdout).trim().parse().expect("a number")
    }
}

/// What was changed is told once in events and counters within two cycles, and is in the cell no
/// more. What is right there may be another value by then.
fn is_told_and_mended(
    d: &Daemon,
    map: &Map,
    (entry, cell, value): (usize, usize, u64),
    words: &str,
) -> Timing {
    let mut events = d.emulation().live.handle.events();
    let before = d.snapshot();
    let found = |s: &Snapshot| s.tampered.as_ref().map_or(0, |t| t.found);
    assert_ne!(map.cell((entry, cell), Some(value)), value, "nothing was changed");
    let (changed, cycle) = (d.emulation().clock.now(), d.snapshot().stats.cycles);
    d.wait(words, |s| found(s) > found(&before));
    let after = d.wait("its being over", |s| s.failures.is_empty() && s.stats.cycles > cycle + 2);
    assert_eq!(found(&after) - found(&before), 1);
    assert_ne!(map.cell((entry, cell), None), value, "it was not written again");
    let named =
        |w: &RecordedEvent| matches!(w, RecordedEvent::Failed { why, .. } if why.contains(words));
    assert_eq!(told(&mut events).iter().filter(|w| named(w)).count(), 1);
    assert!(d.metric("heliostat_damage_total") >= 1.0);
    // By the controller's own clock: this thread may hear of it later. The second cycle ends three
    // intervals after a change at most.
    let took = after.tampered.as_ref().map_or(Span::ZERO, |t| t.until.since(changed));
    in_time!(took <= Span(3 * after.policy.interval.0), "found after {took}");
    Ok(())
}

/// A circuit that carries loses its end in the array: it is dark until the next cycle, and the
/// coflow is whole.
fn a_cell_of_a_port(mechanism: Mechanism) -> Timing {
    if mechanism != Mechanism::Timed {
        return Ok(());
    }
    const SLOT: usize = 24;
    let d = by_backlog("fl-cell", mechanism);
    let id = d.send(0, 1, 60_000_000);
    carried(&d, 0, 1);
    let map = map(SLOT * heliostat::fabric::SLOTS_PER_PORT, |n| n == 4);
    is_told_and_mended(
        &d,
        &map,
        (0, 0, 1),
        "of r0's port on plane 0 was changed in the programs' array",
    )?;
    let s = d.wait("its end", |s| {
        s.coflows.get(CoflowId(id as u32)).is_some_and(|c| c.finished.is_some())
    });
    assert_eq!(s.coflows.get(CoflowId(id as u32)).map(|c| c.received), Some(Bytes(60_000_000)));
    assert!(s.over_ocs.get(RackId(0), RackId(1)) > 0);
    Ok(())
}

/// The record of a path, and the number of a pair's path, while the pair sends.
fn cells_of_paths(mechanism: Mechanism) -> Timing {
    if mechanism != Mechanism::Timed {
        return Ok(());
    }
    const RECORD: usize = 16 * 8;
    // Eight racks of two hosts.
    const PAIRS: usize = 16 * 16;
    let t = on(Graph::fat_tree(4, BitRate::mbit(100), None), 2, BitRate::mbit(100), 0);
    let policy = CircuitPolicy {
        scheduler: SchedulerKind::EpsOnly,
        paths: PathPolicy::Hit,
        ..CircuitPolicy::default()
    };
    let d = Daemon::start("fl-path", t, policy, mechanism);
    let id = d.send(0, 7, 40_000_000);
    d.wait("a list", |s| s.paths.as_ref().is_some_and(|p| p.pairs.iter().any(|p| p.held)));
    // The default path from rack 0 to rack 1: its number is 0 * R + 1.
    let records = map(RECORD, |n| n > PAIRS && n != 4096);
    is_told_and_mended(&d, &records, (1, 0, 0), "path 1 was changed in the programs' array")?;
    let pairs = map(8, |n| n == PAIRS);
    is_told_and_mended(
        &d,
        &pairs,
        (14, 0, 3),
        "the path from h0-0 to h7-0 was changed in the programs' array",
    )?;
    is_told_and_mended(
        &d,
        &pairs,
        (2 * 16 + 4, 0, 3),
        "the path from h1-0 to h2-0 was changed in the programs' array",
    )?;
    let s = d.wait("its end", |s| {
        s.coflows.get(CoflowId(id as u32)).is_some_and(|c| c.closed().is_some())
    });
    assert_eq!(s.coflows.get(CoflowId(id as u32)).map(|c| c.received), Some(Bytes(40_000_000)));
    Ok(())
}

/// Each has the machine alone: maps of the kernel are looked for in the whole process.
mod alone {
    use super::*;
    use crate::kernel::support::each_mechanism_alone;

    #[test]
    fn a_cell_of_a_port_s_array_that_is_changed_is_written_again_and_told() {
        each_mechanism_alone(
            "a_cell_of_a_port_s_array_that_is_changed_is_written_again_and_told",
            a_cell_of_a_port,
        );
    }

    #[test]
    fn a_cell_of_a_path_s_array_that_is_changed_is_written_again_and_told() {
        each_mechanism_alone(
            "a_cell_of_a_path_s_array_that_is_changed_is_written_again_and_told",
            cells_of_paths,
        );
    }
}
