//! Namespaces and links that are removed under a running daemon.

use std::process::Command;

use heliostat::kernel::netns;

use crate::support::*;

#[test]
fn what_is_removed_under_a_daemon_is_told_and_survived() {
    let test = "what_is_removed_under_a_daemon_is_told_and_survived";
    if !root(test) {
        return;
    }
    if Command::new("ip").arg("-V").output().is_err() {
        return skip(test, "no iproute2");
    }
    let _turn = together();
    for mechanism in ["timed", "netlink"] {
        let name = unique("gone");
        let mut d = Daemon::start(&name, &["--mechanism", mechanism]);
        assert_eq!(d.failures(), "[]");

        let lost = format!("{name}-h1-0");
        netns::unpublish(&lost, |_| true).expect("removed");
        until("the lost name shows", || d.failures().contains(&lost));
        d.until_says(&format!("{lost} was removed while in use"));
        // The name is free for others now, and what they put there is theirs.
        let stranger = Stranger::new(&lost);
        assert!(d.exec("h1-0", &["true"]).status.success(), "the node works on");

        let o = d.exec("tor1", &["ip", "link", "del", "ocs0"]);
        assert!(o.status.success(), "{}", said(&o));
        // A cable has two ends, and the kernel takes one after the other.
        for end in ["link ocs0 of tor1", "link tor1 of ocs0"] {
            until("the lost link shows", || d.failures().contains(end));
        }
        d.until_says("link ocs0 of tor1 is gone");
        let o = d.exec("h2-0", &["ip", "link", "del", "eth0"]);
        assert!(o.status.success(), "{}", said(&o));
        until("the host's link shows", || d.failures().contains("host0 of tor2"));

        // One that is made by hand in its place has its name and carries nothing: that is told, and
        // bytes for it end with the reason.
        let made = ["ip", "link", "add", "host0", "type", "veth", "peer", "name", "other"];
        assert!(d.exec("tor2", &made).status.success());
        until("the other link shows", || {
            d.failures().contains("host0 of tor2 is gone; another one has its name")
        });
        let id = d.post(&[(0, 4, 3_000_000)]);
        let ended = d.outcome(id);
        assert!(
            ended["state"] != "finished" && ended.to_string().contains("h2-0 is gone"),
            "{ended}"
        );

        let circuits = d.show("circuits");
        assert!(circuits["circuits"].is_array(), "the API goes on: {circuits}");
        assert!(!d.log().contains("panicked"), "{}", d.log());
        d.signal("INT");
        assert_eq!(d.ended(), Some(0), "{}", d.log());
        assert!(stranger.stands());
        drop(stranger);
        assert_nothing_left(&name);
    }
}
