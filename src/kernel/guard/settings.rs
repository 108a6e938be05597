//! Settings of a link that belong to the network: its MAC address, its MTU, its longest segments,
//! its offloads.

use std::io;

use crate::nl::Netlink;
use crate::wire::attribute;
use crate::{msg, sys};

/// Settings of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkSettings {
    mac: Vec<u8>,
    mtu: u32,
    segments: u32,
    /// What `ethtool -K` sets, in words of 32 bits; empty if the kernel does not tell.
    offloads: Vec<u32>,
}

impl LinkSettings {
    /// Reads a link's settings from its attributes, without the offloads ([`LinkSettings::ask`]).
    pub fn of(attributes: &[u8]) -> Self {
        const ADDRESS: u16 = 1;
        const MTU: u16 = 4;
        const SEGMENTS: u16 = 41;
        let word = |kind| attribute(attributes, kind).try_into().map_or(0, u32::from_ne_bytes);
        Self {
            mac: attribute(attributes, ADDRESS).to_vec(),
            mtu: word(MTU),
            segments: word(SEGMENTS),
            offloads: vec![],
        }
    }

    /// Asks for the offloads of the link with this name.
    pub fn ask(&mut self, nl: &Netlink, name: &str) {
        self.offloads = sys::offloads(nl.socket(), name).unwrap_or_default();
    }

    /// What differs from another link's settings, in words; `None` if nothing does.
    pub fn differ(&self, other: &Self) -> Option<String> {
        let parts = [
            (self.mac == other.mac, "MAC address"),
            (self.mtu == other.mtu, "MTU"),
            (self.segments == other.segments, "longest segment"),
            (self.offloads == other.offloads, "offloads"),
        ];
        let names: Vec<&str> = parts.into_iter().filter(|p| !p.0).map(|p| p.1).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// Writes the settings that differ from `now` to a link.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn restore(&self, nl: &mut Netlink, link: u32, name: &str, now: &Self) -> io::Result<()> {
        let parts = [
            (self.mac != now.mac).then(|| msg::mac(link, &self.mac)),
            (self.mtu != now.mtu).then(|| msg::mtu(link, self.mtu)),
            (self.segments != now.segments).then(|| msg::gso_max(link, self.segments)),
        ];
        let refused = nl.send_each(parts.into_iter().flatten().map(|m| (m, 0)).collect())?;
        if self.offloads != now.offloads {
            sys::set_offloads(nl.socket(), name, &self.offloads, &now.offloads)?;
        }
        refused.into_iter().next().map_or(Ok(()), |(_, why)| Err(why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_different_is_named() {
        let s = LinkSettings {
            mac: vec![2, 0, 0, 0, 0, 1],
            mtu: 1500,
            segments: 65536,
            offloads: vec![1, 2],
        };
        assert_eq!(s.differ(&s.clone()), None);
        let other = LinkSettings { mtu: 576, offloads: vec![1, 3], ..s.clone() };
        assert_eq!(s.differ(&other).as_deref(), Some("MTU, offloads"));
        let other = LinkSettings { mac: vec![2, 0, 0, 0, 0, 2], segments: 0, ..s.clone() };
        assert_eq!(s.differ(&other).as_deref(), Some("MAC address, longest segment"));
    }
}
