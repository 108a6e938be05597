//! One node that is kept as it was built: it is compared with what was first read, and mended.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use netlink_packet_route::RouteNetlinkMessage as Message;

use super::build_log::{BuildLog, LinkPart, NodePart};
use crate::fabric::{Cut, Damage};
use crate::ids::{PlaneId, RackId};
use crate::inventory::{self, Inventory, Mutable};
use crate::nl::{NEW, Netlink, NetlinkRequest, REPLACE};
use crate::node::Node;
use crate::switcher::SwitcherHandle;
use crate::tc;

/// A link that must be there and up, and what fails without it.
#[derive(Clone, Debug)]
pub struct RequiredLink {
    /// Its index.
    pub link: u32,
    /// Its name.
    pub name: String,
    /// The port of an OCS at one of its ends.
    pub port: Option<(PlaneId, RackId)>,
    /// What loses its connection without it.
    pub cut: Option<Cut>,
    /// If it is one end of a cable of the EPS graph: the cable's number.
    pub cable: Option<u32>,
}

/// A node, and what must be there.
pub struct WatchedNode {
    name: String,
    ns: OwnedFd,
    log: BuildLog,
    parts: Vec<NodePart>,
    required: Vec<RequiredLink>,
    mutable: Mutable,
    /// What was first read.
    right: Inventory,
    /// Required links that were down at the last comparison.
    down: BTreeSet<u32>,
}

/// Result of a comparison.
#[derive(Debug, Default)]
pub struct KernelDiff {
    /// What is wrong.
    pub standing: Vec<Damage>,
    /// What was wrong and has been mended.
    pub mended: Vec<Damage>,
}

impl WatchedNode {
    /// Takes the node's log, and reads what is there.
    ///
    /// # Errors
    /// When the node cannot be read.
    pub fn new(node: &mut Node, ties: Vec<RequiredLink>, mutable: Mutable) -> io::Result<Self> {
        let log = node.log.take();
        let parts: Vec<NodePart> = log.parts().collect();
        let right = inventory::read(&mut node.netlink, &parts, mutable)?;
        Ok(Self {
            name: node.name.clone(),
            ns: node.ns.try_clone()?,
            log,
            parts,
            required: ties,
            mutable,
            right,
            down: BTreeSet::new(),
        })
    }

    /// Compares the node with what it should be, and writes what differs again.
    pub fn compare(&mut self, switcher: Option<&SwitcherHandle>) -> KernelDiff {
        let mut seen = KernelDiff::default();
        if let Err(e) = self.look(switcher, &mut seen) {
            seen.standing.push(Damage {
                what: format!("node {} cannot be compared: {e}", self.name),
                ..Damage::default()
            });
        }
        seen
    }

    fn look(&mut self, switcher: Option<&SwitcherHandle>, seen: &mut KernelDiff) -> io::Result<()> {
        let mut nl = Netlink::open(self.ns.as_fd())?;
        let began = switcher.map(SwitcherHandle::changes);
        let mut found = inventory::read(&mut nl, &self.parts, self.mutable)?;
        let (mut down, mut again) = (BTreeSet::new(), BTreeSet::new());
        for tie in &self.required {
            let up = found.links.get(&tie.link).map(|l| l.up);
            if up != Some(true) {
                down.insert(tie.link);
                let state = match up {
                    Some(_) => "down",
                    None if found.links.values().any(|l| l.name == tie.name) => {
                        "gone; another one has its name, and carries nothing; only a restart repairs \
                         it"
                    }
                    None => "gone; only a restart of the network repairs it",
                };
                let what = format!("link {} of {} is {state}", tie.name, self.name);
                seen.standing.push(Damage {
                    what,
                    port: tie.port,
                    cut: tie.cut.filter(|_| up.is_none()),
                    cable: tie.cable,
                });
            } else if self.down.contains(&tie.link) {
                again.extend(tie.port);
            }
        }
        self.down = down;
        // First the links: with another MAC address, the kernel has forgotten the link's
        // neighbours.
        if self.mend_links(&mut nl, &found, seen)? {
            found = inventory::read(&mut nl, &self.parts, self.mutable)?;
        }
        let wrong: Vec<NodePart> = self
            .parts
            .iter()
            .copied()
            .filter(|p| self.is_there(p, &found) && self.differs(p, &found))
            .collect();
        for part in wrong {
            self.mend(&mut nl, part, &found, seen, &mut again)?;
        }
        if let Some(t) = switcher {
            self.look_at_circuits((t, began), &found, seen, &mut again);
            again.into_iter().for_each(|place| t.again(place));
        }
        Ok(())
    }

    /// Restores the settings of our links that are there. True if any had changed.
    fn mend_links(
        &self,
        nl: &mut Netlink,
        found: &Inventory,
        seen: &mut KernelDiff,
    ) -> io::Result<bool> {
        let both = |t: &RequiredLink, now: &Inventory| {
            let (right, there) = (self.right.links.get(&t.link)?, now.links.get(&t.link)?);
            right
                .settings
                .differ(&there.settings)
                .map(|what| (what, right.settings.clone(), there.settings.clone()))
        };
        let wrong: Vec<_> =
            self.required.iter().filter_map(|t| Some((t, both(t, found)?))).collect();
        if wrong.is_empty() {
            return Ok(false);
        }
        let refused: Vec<_> = wrong
            .iter()
            .map(|(t, (_, right, there))| right.restore(nl, t.link, &t.name, there).err())
            .collect();
        let now = inventory::read(nl, &[], Mutable::Nothing)?;
        for ((tie, (what, ..)), refused) in wrong.iter().zip(refused) {
            let link = format!("the settings of link {} of {} ({what})", tie.name, self.name);
            let damage = |what: String| Damage { what, ..Damage::default() };
            if both(tie, &now).is_some() {
                let why = refused.map_or_else(String::new, |e| format!(": {e}"));
                // Its port may be deaf.
                let damage = damage(format!("{link} {CHANGED} and cannot be written again{why}"));
                seen.standing.push(Damage { port: tie.port, ..damage });
            } else {
                seen.mended.push(damage(format!("{link} {MENDED}")));
            }
        }
        Ok(true)
    }

    /// Whether a part's link is there and up: what was written for a link disappears and comes back
    /// with it.
    fn is_there(&self, part: &NodePart, found: &Inventory) -> bool {
        part.link == 0 || found.links.get(&part.link).is_some_and(|l| l.up)
    }

    fn differs(&self, part: &NodePart, found: &Inventory) -> bool {
        let (right, there) = (of(&self.right, part), of(found, part));
        match part.side {
            // Other processes may add routes of their own.
            LinkPart::Ways => !contains(there, right),
            LinkPart::Queues | LinkPart::Filters => there != right,
        }
    }

    /// Writes a part again as a whole. What another process added stays, and is reported, if all of
    /// ours is there.
    fn mend(
        &self,
        nl: &mut Netlink,
        part: NodePart,
        found: &Inventory,
        seen: &mut KernelDiff,
        again: &mut BTreeSet<(PlaneId, RackId)>,
    ) -> io::Result<()> {
        let (right, there) = (of(&self.right, &part), of(found, &part));
        if contains(there, right) {
            let more = there.len() - right.len();
            let damage = self.damage(
                part,
                &format!("have {more} more than were written: another process added them"),
            );
            // Probes find out what that does.
            seen.standing.push(Damage { port: None, ..damage });
            return Ok(());
        }
        let refused = nl.send_each(self.messages(part))?;
        let now = inventory::read(nl, &self.parts, self.mutable)?;
        let port = self.tie(part.link).and_then(|t| t.port);
        again.extend(port);
        if self.differs(&part, &now) {
            let why = refused
                .iter()
                .map(|r| &r.1)
                .find(|e| !is_expected(e))
                .map_or_else(String::new, |e| format!(": {e}"));
            seen.standing
                .push(self.damage(part, &format!("{CHANGED} and cannot be written again{why}")));
        } else {
            seen.mended.push(self.damage(part, MENDED));
        }
        Ok(())
    }

    /// Finds lit circuits whose filter or route is gone.
    fn look_at_circuits(
        &self,
        (switcher, began): (&SwitcherHandle, Option<u64>),
        found: &Inventory,
        seen: &mut KernelDiff,
        again: &mut BTreeSet<(PlaneId, RackId)>,
    ) {
        let held: BTreeSet<u32> = match self.mutable {
            Mutable::Nothing => return,
            Mutable::Crossbar => found.circuits.iter().copied().collect(),
            Mutable::Admission => found.admitted.iter().copied().collect(),
        };
        for tie in
            self.required.iter().filter(|t| !self.down.contains(&t.link) && !held.contains(&t.link))
        {
            let Some(place) = tie.port else { continue };
            let wanted = if self.mutable == Mutable::Admission {
                switcher.admits(place)
            } else {
                switcher.lit(place)
            };
            // Asked last: nothing has changed since before the kernel was read.
            if wanted && began.is_some_and(|b| b % 2 == 0 && b == switcher.changes()) {
                let side = if self.mutable == Mutable::Admission {
                    LinkPart::Ways
                } else {
                    LinkPart::Filters
                };
                let part = NodePart { link: tie.link, side };
                seen.mended.push(self.damage(part, &format!("{CHANGED}, and are written again")));
                again.insert(place);
            }
        }
    }

    fn tie(&self, link: u32) -> Option<&RequiredLink> {
        self.required.iter().find(|t| t.link == link)
    }

    fn damage(&self, part: NodePart, what: &str) -> Damage {
        let tie = self.tie(part.link);
        let name = tie
            .map(|t| t.name.as_str())
            .or_else(|| self.right.links.get(&part.link).map(|l| l.name.as_str()));
        let of = name.map_or_else(
            || format!("the rules of {}", self.name),
            |n| format!("{} of link {n} of {}", part.side, self.name),
        );
        Damage { what: format!("{of} {what}"), port: tie.and_then(|t| t.port), ..Damage::default() }
    }

    /// Messages that restore a part: they remove what is left of it, and write all of it again.
    fn messages(&self, part: NodePart) -> Vec<NetlinkRequest> {
        let mut v = match part.side {
            LinkPart::Queues => vec![(tc::remove_root(part.link), 0)],
            LinkPart::Filters => vec![(tc::remove_clsact(part.link), 0)],
            LinkPart::Ways => vec![],
        };
        let replaces = |m: &Message| matches!(m, Message::NewRoute(_) | Message::NewNeighbour(_));
        v.extend(
            self.log
                .of(part)
                .iter()
                .map(|(m, _)| (m.clone(), if replaces(m) { REPLACE } else { NEW })),
        );
        v
    }
}

const CHANGED: &str = "were changed by another process";
const MENDED: &str = "were changed by another process, and have been written again";

/// The object was there already, or was gone already.
fn is_expected(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound)
}

/// The objects of a part, in order.
fn of<'a>(inventory: &'a Inventory, part: &NodePart) -> &'a [u64] {
    inventory.parts.get(part).map_or(&[], Vec::as_slice)
}

/// Whether one sorted list contains another, duplicates too.
fn contains(all: &[u64], some: &[u64]) -> bool {
    let mut left: BTreeMap<u64, usize> = BTreeMap::new();
    all.iter().for_each(|p| *left.entry(*p).or_default() += 1);
    some.iter().all(|p| left.get_mut(p).filter(|n| **n > 0).map(|n| *n -= 1).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_contains_another_if_it_has_all_of_it_as_often() {
        for (all, some, has) in [
            (vec![1, 2, 2], vec![2, 2], true),
            (vec![1, 2], vec![2, 2], false),
            (vec![], vec![], true),
            (vec![3], vec![4], false),
        ] {
            assert_eq!(contains(&all, &some), has, "{all:?} {some:?}");
        }
    }
}
