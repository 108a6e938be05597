//! The names of hosts as programs in nodes look them up: the text of `/etc/hosts` and
//! `/etc/resolv.conf`.

use crate::topology::Topology;
use crate::topology::addresses::host_ip;

/// `/etc/hosts` of all nodes: every host by its name.
pub fn hosts(topology: &Topology) -> String {
    let mut text = "# The hosts of an emulated network.\n127.0.0.1 localhost\n".to_owned();
    for h in &topology.hosts {
        text += &format!("{} {}\n", host_ip(topology, h.id), topology.host_name(h.id));
    }
    text
}

/// `/etc/hosts` of a node that is no host: it finds itself, too.
pub fn hosts_of(node: &str, hosts: &str) -> String {
    let is_host = hosts.lines().any(|l| l.split_once(' ').is_some_and(|(_, name)| name == node));
    if is_host { hosts.to_owned() } else { format!("{hosts}127.0.0.1 {node}\n") }
}

/// `/etc/resolv.conf`: there is no name server, and nothing waits for one.
pub const RESOLVER: &str =
    "# An emulated network has no way out, and no name server.\noptions timeout:1 attempts:1\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;

    #[test]
    fn every_host_has_its_address_and_a_switch_finds_itself() {
        let t = Topology::uniform("t", 2, 2, BitRate(8), BitRate(8), vec![]);
        let all = hosts(&t);
        assert!(
            all.contains("\n10.0.0.2 h0-0\n10.0.0.3 h0-1\n10.1.0.2 h1-0\n")
                && all.contains("127.0.0.1 localhost\n"),
            "{all}"
        );
        assert_eq!(hosts_of("h1-1", &all), all);
        assert_eq!(hosts_of("tor1", &all), format!("{all}127.0.0.1 tor1\n"));
    }
}
