//! A thread that dies ends the run, whatever kind of run it is: at once, with exit code 1 and the reason, and nothing is left.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::*;

/// A library for `LD_PRELOAD`: the clock, or the wait for files that can be read, fails one time in the thread of one name, once a file is
/// there. The standard library, or the runtime of the thread, panics then.
const DEATH: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int dead;

static int fails(const char *call) {
    const char *thread = getenv("DIES"), *when = getenv("DIES_WHEN"), *by = getenv("DIES_BY");
    char name[16] = "";
    if (dead || !thread || !when || !by || strcmp(by, call) != 0 || prctl(PR_GET_NAME, name) != 0 || strcmp(name, thread) != 0)
        return 0;
    if (access(when, F_OK) != 0)
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

/// Compiles the library.
fn death(scratch: &Scratch) -> PathBuf {
    let (source, library) = (scratch.write("dies.c", DEATH), scratch.0.join("dies.so"));
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
    let mut d = Daemon::spawn(&name, run(&name).args(args).env("LD_PRELOAD", library).envs(dying));
    d.until_says("API at ");
    std::fs::write(&when, "").expect("a file");
    assert_eq!(d.ended(), Some(1), "{thread} under {args:?}: {}", d.log());
    d.until_says(why);
    let told = |l: &str| l.starts_with("heliostat: ") && l.contains(why);
    assert!(d.log().lines().last().is_some_and(told), "the reason is the last word: {}", d.log());
    assert_nothing_left(&name);
}

#[test]
fn a_thread_that_dies_ends_every_kind_of_run_and_nothing_is_left() {
    let test = "a_thread_that_dies_ends_every_kind_of_run_and_nothing_is_left";
    if !root(test) {
        return;
    }
    let _alone = alone();
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
        ("stalls", "the thread that looks for bytes which wait in vain has died"),
        ("events", "the thread that wrote it has died"),
        ("recorder", "the thread that writes the recording has died"),
        ("journal", "the thread that writes the journal has died"),
    ] {
        dies(&library, &scratch, thread, &["--events", &events, "--record", &record, "--journal", &journal], why);
    }
    let (workload, jobs) = (file("workloads/shuffle-4.yaml"), file("workloads/jobs-20.yaml"));
    let corral = ["--policy", "corral", "--schedule", jobs.to_str().expect("a path")];
    for (thread, why) in [controller, keeper, api] {
        dies(&library, &scratch, thread, &["--workload", workload.to_str().expect("a path")], why);
        dies(&library, &scratch, thread, &corral, why);
    }
}
