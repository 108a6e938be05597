//! What a service manager hears of a daemon (`sd_notify(3)`).

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use crate::support::*;

/// The socket of a service manager, and what a daemon says there.
struct Manager {
    socket: UnixDatagram,
    scratch: Scratch,
}

impl Manager {
    const WATCHDOG: Duration = Duration::from_millis(400);

    fn new() -> Self {
        let scratch = Scratch::new("notify");
        let socket = UnixDatagram::bind(scratch.0.join("notify")).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
        Self { socket, scratch }
    }

    /// Starts a daemon that is to tell it.
    fn starts(&self, name: &str, more: &[&str]) -> Daemon {
        let mut c = run(name);
        c.args(more)
            .env("NOTIFY_SOCKET", self.scratch.0.join("notify"))
            .env("WATCHDOG_USEC", Self::WATCHDOG.as_micros().to_string());
        Daemon::spawn(name, &mut c)
    }

    /// Waits for one message.
    fn hears(&self) -> String {
        let mut message = [0; 256];
        let n = self.socket.recv(&mut message).expect("a message in time");
        String::from_utf8_lossy(&message[..n]).trim_end().to_owned()
    }

    /// The next message that is not about the watchdog.
    fn hears_more(&self) -> String {
        std::iter::repeat_with(|| self.hears()).find(|m| m != "WATCHDOG=1").expect("messages go on")
    }
}

#[test]
fn a_service_manager_hears_that_a_network_is_up_under_control_and_about_to_end() {
    let test = "a_service_manager_hears_that_a_network_is_up_under_control_and_about_to_end";
    if !root(test) {
        return;
    }
    let (_turn, name, manager, begun) =
        (together(), unique("notify"), Manager::new(), Instant::now());
    let mut d = manager.starts(&name, &[]);
    assert_eq!(manager.hears(), "READY=1");
    assert_eq!(d.call("GET", "/livez", None).0, 200, "it answers once it has said so");
    for _ in 0..3 {
        assert_eq!(manager.hears(), "WATCHDOG=1");
    }
    assert!(begun.elapsed() >= 3 * Manager::WATCHDOG / 2, "more often than every half of the time");
    d.signal("TERM");
    assert_eq!((manager.hears_more().as_str(), d.ended()), ("STOPPING=1", Some(0)), "{}", d.log());
    assert_nothing_left(&name);
}

#[test]
fn a_service_manager_hears_of_a_run_of_jobs_too() {
    let test = "a_service_manager_hears_of_a_run_of_jobs_too";
    if !root(test) {
        return;
    }
    let (_turn, name, manager) = (together(), unique("notifyjobs"), Manager::new());
    let (policy, jobs) = (file("policies/co-decided.yaml"), file("workloads/jobs-20.yaml"));
    let [policy, jobs] = [&policy, &jobs].map(|p| p.to_str().expect("a path"));
    let mut d = manager.starts(
        &name,
        &["--policy", policy, "--schedule", jobs, "--scale", "20", "--time-scale", "20"],
    );
    assert_eq!(
        (manager.hears_more().as_str(), manager.hears_more().as_str(), d.ended()),
        ("READY=1", "STOPPING=1", Some(0)),
        "{}",
        d.log()
    );
    assert_nothing_left(&name);
}
