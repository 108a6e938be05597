//! Notices that a link of ours was removed under us.
//!
//! Counters do not tell: a dump over a link that is gone is empty, not an error. So every node has a socket that hears of
//! changes to links; when one speaks, that node's links are compared with those that should be there. The comparison is the
//! truth, the news only say when to make it.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;

use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use super::network::{Network, Node};
use super::packet::PacketSwitch;
use super::{msg, netns};

/// The multicast group of changes to links.
const RTNLGRP_LINK: u32 = 1;

/// The links that should be there, node by node, in the order of [`Network::nodes`].
pub struct Watch {
    nodes: Vec<Watched>,
}

struct Watched {
    news: Socket,
    /// Index and name.
    links: Vec<(u32, String)>,
    /// Of those, the names of the ones that are gone.
    gone: Vec<String>,
    /// News came since the links were last compared.
    stale: bool,
}

impl Watch {
    /// Begins to listen; every link of the network must be there.
    ///
    /// # Errors
    /// When no socket can be had.
    pub fn start(net: &mut Network) -> io::Result<Self> {
        let links = expected(net);
        let nodes = net.nodes().zip(links).map(|(n, links)| Ok(Watched { news: listen(n)?, links, gone: vec![], stale: false }));
        Ok(Self { nodes: nodes.collect::<io::Result<_>>()? })
    }

    /// What is gone, if anything: `link ocs0 of tor3`. One system call a node while nothing happens.
    ///
    /// # Errors
    /// When a node's links cannot be listed.
    pub fn missing(&mut self, net: &mut Network) -> io::Result<Option<String>> {
        for (w, node) in self.nodes.iter_mut().zip(net.nodes_mut()) {
            w.stale |= w.heard();
            if w.stale {
                w.compare(node)?;
                w.stale = false;
            }
        }
        let names: Vec<&str> = net.nodes().map(|n| n.name.as_str()).collect();
        let all: Vec<String> =
            self.nodes.iter().zip(names).flat_map(|(w, n)| w.gone.iter().map(move |l| format!("link {l} of {n}"))).collect();
        Ok((!all.is_empty()).then(|| summary(&all)))
    }
}

impl Watched {
    /// Reads all news. An overrun queue is news too.
    fn heard(&self) -> bool {
        let mut any = false;
        let mut nowhere = vec![0; 8 << 10];
        loop {
            match self.news.recv(&mut &mut nowhere[..], libc::MSG_DONTWAIT) {
                Ok(_) => any = true,
                Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => any = true,
                Err(_) => return any,
            }
        }
    }

    fn compare(&mut self, node: &mut Node) -> io::Result<()> {
        let mut there = BTreeSet::new();
        node.netlink.dump(msg::link_dump(), |m| {
            if let Message::NewLink(l) = m {
                there.insert(l.header.index);
            }
        })?;
        self.gone = self.links.iter().filter(|(i, _)| !there.contains(i)).map(|(_, name)| name.clone()).collect();
        Ok(())
    }
}

/// The first few, and how many more.
fn summary(all: &[String]) -> String {
    const FIRST: usize = 4;
    let shown = all.iter().take(FIRST).map(String::as_str).collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(FIRST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn listen(node: &Node) -> io::Result<Socket> {
    netns::within(node.ns.as_fd(), || {
        let mut s = Socket::new(NETLINK_ROUTE)?;
        s.bind(&SocketAddr::new(0, 0))?;
        s.add_membership(RTNLGRP_LINK)?;
        Ok(s)
    })
}

/// By node, its links' indexes and names.
fn expected(net: &Network) -> Vec<Vec<(u32, String)>> {
    let core = |ports: &[u32]| ports.iter().enumerate().map(|(r, &i)| (i, format!("tor{r}"))).collect();
    let mut all: Vec<Vec<(u32, String)>> = net.eps.iter().map(PacketSwitch::named_links).collect();
    all.extend(net.ocs.iter().map(|o| core(&o.ports)));
    for tor in &net.tors {
        let named = |prefix: &str, links: &[u32]| links.iter().enumerate().map(|(k, &i)| (i, format!("{prefix}{k}"))).collect::<Vec<_>>();
        all.push([named("eps", &[tor.eps]), named("ocs", &tor.ocs), named("host", &tor.hosts)].concat());
    }
    all.extend(net.hosts.iter().map(|h| vec![(h.eth, "eth0".to_owned())]));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_losses_make_a_short_line() {
        let all = |n: usize| (0..n).map(|k| format!("l{k}")).collect::<Vec<_>>();
        assert_eq!(summary(&all(2)), "l0, l1");
        assert_eq!(summary(&all(6)), "l0, l1, l2, l3 and 2 more");
    }
}
