//! What a service manager hears of a daemon (`sd_notify(3)`).

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use crate::support::*;

/// Waits for one message of a daemon.
fn hears(socket: &UnixDatagram) -> String {
    let mut message = [0; 256];
    let n = socket.recv(&mut message).expect("a message in time");
    String::from_utf8_lossy(&message[..n]).trim_end().to_owned()
}

#[test]
fn a_service_manager_hears_that_a_network_is_up_under_control_and_about_to_end() {
    let test = "a_service_manager_hears_that_a_network_is_up_under_control_and_about_to_end";
    if !root(test) {
        return;
    }
    let (_alone, name, scratch) = (alone(), unique("notify"), Scratch::new("notify"));
    let path = scratch.0.join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
    let (begun, watchdog) = (Instant::now(), Duration::from_millis(400));
    let mut d = Daemon::spawn(&name, run(&name).env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", watchdog.as_micros().to_string()));
    assert_eq!(hears(&socket), "READY=1");
    assert_eq!(d.call("GET", "/livez", None).0, 200, "it answers once it has said so");
    for _ in 0..3 {
        assert_eq!(hears(&socket), "WATCHDOG=1");
    }
    assert!(begun.elapsed() >= 3 * watchdog / 2, "more often than every half of the time");
    d.signal("TERM");
    let last = loop {
        let message = hears(&socket);
        if message != "WATCHDOG=1" {
            break message;
        }
    };
    assert_eq!((last.as_str(), d.ended()), ("STOPPING=1", Some(0)), "{}", d.log());
    assert_nothing_left(&name);
}
