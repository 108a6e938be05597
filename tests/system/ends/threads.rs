//! A thread that dies ends the run, whatever kind of run it is: at once, with exit code 1 and the
//! reason, and nothing is left.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::*;

/// A library for `LD_PRELOAD`: the clock, or the wait for files that can be read, fails one time in
/// the thread of one name, once a file is there. The standard library, or the runtime of the
/// thread, panics then. A clock that is read by a function in `LOCKS` does not fail: no panic can
/// happen there otherwise, and it would leave a lock of all threads closed.
const DEATH: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const struct { unsigned long from, size; } locks[] = { LOCKS };
static int dead;

static int first(struct dl_phdr_info *program, size_t size, void *base) {
    *(unsigned long *)base = program->dlpi_addr;
    return 1;
}

static int locking(void) {
    void *frames[64];
    unsigned long base;
    dl_iterate_phdr(first, &base);
    for (int k = backtrace(frames, 64) - 1; k >= 0; k--)
        for (size_t l = 0; l < sizeof locks / sizeof *locks; l++)
            if ((unsigned long)frames[k] - base - locks[l].from < locks[l].size)
                return 1;
    return 0;
}

static int fails(const char *call) {
    const char *thread = getenv("DIES"), *when = getenv("DIES_WHEN"), *by = getenv("DIES_BY");
    char name[16] = "";
    if (dead || !thread || !when || !by || strcmp(by, call) != 0 || prctl(PR_GET_NAME, name) != 0 || strcmp(name, thread) != 0)
        return 0;
    if (access(when, F_OK) != 0 || locking())
        return 0;
    dead = 1;
    errno = EINVAL;
    return 1;
}

int clock_gettime(clockid_t id, struct timespec *to) {
    return fails("clock") ? -1 : (int)syscall(SYS_clock_gettime, id, to);
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout) {
    return fails("wait") ? -1 : (int)syscall(SYS_epoll_pwait, epoll, events, most, timeout, NULL, 8);
}
"#;

/// Where the program's functions that keep locks are: first bytes and lengths.
fn locks() -> String {
    let o = output(Command::new("nm").args([
        "--print-size",
        "--defined-only",
        env!("CARGO_BIN_EXE_heliostat"),
    ]));
    assert!(o.status.success(), "{}", said(&o));
    let functions = String::from_utf8_lossy(&o.stdout);
    let found: Vec<String> = functions
        .lines()
        .filter(|l| l.contains("parking_lot"))
        .filter_map(|l| {
            let (from, rest) = l.split_once(' ')?;
            let (size, rest) = rest.split_once(' ')?;
            rest.starts_with(['t', 'T']).then(|| format!("{{0x{from}, 0x{size}}}"))
        })
        .collect();
    assert!(!found.is_empty(), "{functions}");
    found.join(", ")
}

/// Compiles the library.
fn death(scratch: &Scratch) -> PathBuf {
    let source = scratch.write("dies.c", &DEATH.replace("LOCKS", &locks()));
    let library = scratch.0.join("dies.so");
    let o = output(Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source));
    assert!(o.status.success(), "{}", said(&o));
    library
}

/// A run in which a thread dies once the network is up.
fn dies(library: &Path, scratch: &Scratch, thread: &str, args: &[&str], why: &str) {
    let (name, when) = (unique(thread), scratch.0.join(format!("{thread}{}", args.len())));
    // The API's thread reads the clock in its connections, too, which may die without it.
    let by = if thread == "api" { "wait" } else { "clock" };
    let dying = [("DIES", thread), ("DIES_BY", by), ("DIES_WHEN", when.to_str().expect("a path"))];
    // A thread is not dead before it has told of all its functions, which may take seconds on a
    // busy machine.
    let quick = ("RUST_BACKTRACE", "0");
    let mut d = Daemon::spawn(
        &name,
        run(&name).args(args).env("LD_PRELOAD", library).envs(dying).envs([quick]),
    );
    d.until_says("API at ");
    std::fs::write(&when, "").expect("a file");
    assert_eq!(d.ended(), Some(1), "{thread} under {args:?}: {}", d.log());
    let told = |l: &str| l.starts_with("heliostat: ") && l.contains(why);
    // Its end may be seen before its last words are read.
    until("the reason is the last word", || d.log().lines().last().is_some_and(told));
    assert_nothing_left(&name);
}

#[test]
fn a_thread_that_dies_ends_every_kind_of_run_and_nothing_is_left() {
    let test = "a_thread_that_dies_ends_every_kind_of_run_and_nothing_is_left";
    if !root(test) {
        return;
    }
    let _turn = together();
    let scratch = Scratch::new("dies");
    let library = death(&scratch);
    let path = |name: &str| scratch.0.join(name).to_str().expect("a path").to_owned();
    let (events, record, journal) = (path("events"), path("record"), path("journal"));
    let controller = ("controller", "the controller's thread died: ");
    let keeper = ("keeper", "the thread that compares the network with what was built has died");
    let api = ("api", "the API's thread has died");
    for (thread, why) in [
        controller,
        keeper,
        api,
        ("backlog", "the thread that reads what waits in the hosts' sockets has died"),
        ("stalls", "the thread that looks for bytes that are stuck has died"),
        ("events", "the thread that wrote it has died"),
        ("recorder", "the thread that writes the recording has died"),
        ("journal", "the thread that writes the journal has died"),
    ] {
        dies(
            &library,
            &scratch,
            thread,
            &["--events", &events, "--record", &record, "--journal", &journal],
            why,
        );
    }
    let (workload, jobs) = (file("workloads/shuffle-4.yaml"), file("workloads/jobs-20.yaml"));
    let corral = ["--policy", "corral", "--schedule", jobs.to_str().expect("a path")];
    for (thread, why) in [controller, keeper, api] {
        dies(&library, &scratch, thread, &["--workload", workload.to_str().expect("a path")], why);
        dies(&library, &scratch, thread, &corral, why);
    }
}

/// Holds one thread of a process by ptrace, as if it hung, until its stdin ends.
const HOLDS: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
pid, name = int(sys.argv[1]), sys.argv[2]
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
tasks = f"/proc/{pid}/task"
tid = next(int(t) for t in os.listdir(tasks) if open(f"{tasks}/{t}/comm").read().strip() == name)
assert libc.ptrace(0x4206, tid, None, None) == 0 and libc.ptrace(0x4207, tid, None, None) == 0
print("held", flush=True)
sys.stdin.read()
"#;

#[test]
fn a_thread_that_hangs_is_told_and_does_not_hold_the_end_up() {
    let test = "a_thread_that_hangs_is_told_and_does_not_hold_the_end_up";
    if !root(test) {
        return;
    }
    if Command::new("python3").arg("-V").output().is_err() {
        return skip(test, "no python3");
    }
    let _turn = together();
    for (thread, who) in [
        ("controller", "the controller hangs"),
        ("keeper", "the thread that compares the network with what was built hangs"),
        ("stalls", "the thread that looks for bytes that are stuck hangs"),
    ] {
        let name = unique(thread);
        let mut d = Daemon::start(&name, &[]);
        assert_eq!(d.call("GET", "/livez", None).0, 200);
        let mut holds = Command::new("python3");
        let holds = holds
            .args(["-c", HOLDS, &d.pid().to_string(), thread])
            .stdin(std::process::Stdio::piped());
        let mut held = holds.stdout(std::process::Stdio::piped()).spawn().expect("started");
        let mut word = String::new();
        let mut says = std::io::BufReader::new(held.stdout.take().expect("piped"));
        std::io::BufRead::read_line(&mut says, &mut word).expect("read");
        assert_eq!(word, "held\n");
        until("it shows", || d.call("GET", "/livez", None).0 == 503);
        for path in ["/livez", "/readyz"] {
            let (status, told) = d.call("GET", path, None);
            assert!(status == 503 && told.to_string().contains(who), "{path}: {status} {told}");
        }
        d.signal("TERM");
        // The process ends with the one that holds it.
        until("its network is gone", || !note(&name).exists() && namespaces(&name).is_empty());
        drop(held.stdin.take());
        assert!(held.wait().expect("our child").success());
        assert_eq!(d.ended(), Some(1), "{}", d.log());
        assert_nothing_left(&name);
    }
}
