//! A thread that dies ends the run, whatever kind of run it is: at once, with exit code 1 and the reason, and nothing is left.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::*;

/// A library for `LD_PRELOAD`: the clock fails one time in the thread of one name, once a file is there. The standard library panics then.
const DEATH: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int dead;

int clock_gettime(clockid_t id, struct timespec *to) {
    const char *thread = getenv("DIES"), *when = getenv("DIES_WHEN");
    char name[16] = "";
    if (!dead && thread && when && prctl(PR_GET_NAME, name) == 0 && strcmp(name, thread) == 0 && access(when, F_OK) == 0) {
        dead = 1;
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_clock_gettime, id, to);
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
    let mut d = Daemon::spawn(&name, run(&name).args(args).env("LD_PRELOAD", library).env("DIES", thread).env("DIES_WHEN", &when));
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
