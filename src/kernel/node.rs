//! A node of the emulated network: a namespace and a socket to speak to its kernel.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::link::LinkAttribute;

use super::build_log::BuildLog;
use super::msg;
use super::nl::{Netlink, NetlinkRequest};

/// A node: its namespace and a netlink socket in it.
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its network namespace.
    pub ns: OwnedFd,
    /// A socket in it.
    pub netlink: Netlink,
    /// The messages that built it.
    pub log: BuildLog,
}

impl Node {
    /// A namespace by its name.
    ///
    /// # Errors
    /// When no socket can be had.
    pub fn new(name: String, ns: OwnedFd) -> io::Result<Self> {
        let netlink = Netlink::open(ns.as_fd())?;
        Ok(Self { name, ns, netlink, log: BuildLog::default() })
    }

    /// Sends messages; an error names this node.
    ///
    /// # Errors
    /// The first refusal.
    pub fn send(&mut self, messages: Vec<NetlinkRequest>) -> io::Result<()> {
        self.log.note(&messages);
        self.netlink
            .send(messages)
            .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", self.name)))
    }

    /// The indexes of its links of these names, in their order.
    ///
    /// # Errors
    /// `NotFound` for a link that is not there; else what the kernel refused.
    pub fn find_links(&mut self, names: &[String]) -> io::Result<Vec<u32>> {
        let mut found = vec![0; names.len()];
        self.netlink.dump(msg::link_dump(), |m| {
            if let Message::NewLink(l) = m {
                let own = l
                    .attributes
                    .iter()
                    .find_map(|a| if let LinkAttribute::IfName(n) = a { Some(n) } else { None });
                if let Some(k) = own.and_then(|n| names.iter().position(|wanted| wanted == n)) {
                    found[k] = l.header.index;
                }
            }
        })?;
        match found.iter().position(|&i| i == 0) {
            Some(k) => Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("node {} has no link {}", self.name, names[k]),
            )),
            None => Ok(found),
        }
    }
}
