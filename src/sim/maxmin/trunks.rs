//! Users, grouped by the links that they share.

use std::collections::HashMap;

use super::NOWHERE;
use crate::coflows::rates::Path;

/// Users that share all links but the first two, their sender's and their receiver's interface. So
/// when one of the others is full, it limits all of them that still grow.
#[derive(Debug)]
pub struct Trunk {
    /// The links that they share.
    pub links: Path,
    /// Flows that still grow, or that grew until the trunk was limited.
    pub growing: u64,
    /// The users' interfaces.
    pub ports: Vec<TrunkPort>,
    /// The link that limits it.
    pub held_by: u32,
    /// The same at the last filling.
    pub told: u32,
}

/// An interface with users of a trunk.
#[derive(Debug)]
pub struct TrunkPort {
    /// The interface.
    pub link: u32,
    /// Flows over it that count in [`Trunk::growing`].
    pub growing: u64,
    /// In no order.
    pub users: Vec<u32>,
}

impl Trunk {
    /// Its users; most come twice, once for each interface.
    pub fn users(&self) -> impl Iterator<Item = u32> + '_ {
        self.ports.iter().flat_map(|p| &p.users).copied()
    }
}

/// All trunks. They stay when their users have gone.
#[derive(Debug, Default)]
pub struct Trunks {
    list: Vec<Trunk>,
    /// For look-ups only; it is never iterated.
    by_links: HashMap<Path, u32>,
    /// Ports by trunk and interface; for look-ups only, too.
    ports: HashMap<(u32, u32), u32>,
}

impl Trunks {
    /// A trunk.
    pub fn at(&self, trunk: u32) -> &Trunk {
        &self.list[trunk as usize]
    }

    /// A trunk.
    pub fn at_mut(&mut self, trunk: u32) -> &mut Trunk {
        &mut self.list[trunk as usize]
    }

    /// The trunk over these links. If it is new, `tell` is called for each of them.
    pub fn over(&mut self, links: &[u32], mut tell: impl FnMut(u32, u32)) -> u32 {
        let (path, new) = (Path::new(links), self.list.len() as u32);
        let trunk = *self.by_links.entry(path).or_insert(new);
        if trunk == new {
            links.iter().for_each(|&l| tell(l, new));
            self.list.push(Trunk {
                links: path,
                growing: 0,
                ports: Vec::new(),
                held_by: NOWHERE,
                told: NOWHERE,
            });
        }
        trunk
    }

    /// The port of a trunk at an interface; if it is new, `tell` is called.
    pub fn port(&mut self, trunk: u32, link: u32, tell: impl FnOnce(u32)) -> u32 {
        let ports = &mut self.list[trunk as usize].ports;
        let new = ports.len() as u32;
        let port = *self.ports.entry((trunk, link)).or_insert(new);
        if port == new {
            tell(new);
            ports.push(TrunkPort { link, growing: 0, users: Vec::new() });
        }
        port
    }
}
