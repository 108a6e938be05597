//! What killed fabrics left. `clean` removes it, and so does the next start of the same name.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::link::LinkAttribute;

use super::locks::{has_lock, is_held, lock, remove_directory, turn};
use super::{FabricNote, HIDDEN, PREFIX, directories, read_note};
use crate::nl::Netlink;
use crate::{detach, msg, netns, sys};

/// What [`clean`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// What was removed.
    pub gone: Vec<String>,
    /// What could not be, and why.
    pub left: Vec<String>,
}

/// Removes what killed fabrics left: namespaces that carry our mark and whose fabric is not
/// running, what is marked in nodes of Mininet's, and stale notes. It is that of all of them, or of
/// the fabric of the name `only`. What another process removes meanwhile is gone.
pub fn clean(base: &Path, only: Option<&str>) -> Cleaned {
    let _turn = turn(base);
    // Asked for each mark that is found: its fabric may have been started a moment ago.
    let dead =
        |fabric: &str| only.is_none_or(|name| name == fabric) && !is_held(&base.join(fabric));
    // A fabric that ends while this goes on keeps its note: not all of it has been removed.
    let stale: Vec<PathBuf> = directories(base)
        .filter(|d| d.file_name().and_then(|n| n.to_str()).is_some_and(dead))
        .collect();
    let mut done = Cleaned { gone: detach::clean(dead), left: vec![] };
    // What lies under a mount shows no mark: the note says whose it is.
    let noted: Vec<String> =
        stale.iter().filter_map(|d| read_note(d)).flat_map(|n| names_in(&n)).collect();
    for (name, fabric) in marked(base, &only.map_or_else(String::new, |name| format!("{name}-"))) {
        if dead(&fabric) {
            match take_dead(base, &name, &fabric) {
                Ok(()) => done.gone.push(format!("namespace {name}")),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => done.left.push(format!("namespace {name}: {e}")),
            }
        }
    }
    let hidden = netns::hidden().into_iter().map(|h| h.0).filter(|name| noted.contains(name));
    done.left.extend(hidden.map(|name| format!("namespace {name}: {HIDDEN}")));
    if !done.left.is_empty() {
        return done;
    }
    for d in stale {
        if let Ok(held) = lock(&d)
            && has_lock(&d, &held)
        {
            match remove_directory(&d) {
                Ok(()) => done.gone.push(d.display().to_string()),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => done.left.push(format!("{}: {e}", d.display())),
            }
            drop(held);
        }
    }
    done
}

/// The names that a fabric's namespaces were given.
fn names_in(note: &FabricNote) -> impl Iterator<Item = String> + use<> {
    let fabric = note.fabric.clone();
    note.nodes.clone().into_keys().map(move |node| format!("{fabric}-{node}"))
}

/// Takes a name of a dead fabric away, however often its namespace is mounted there.
fn take_dead(base: &Path, name: &str, fabric: &str) -> io::Result<()> {
    netns::unpublish(name, |path| fabric_of(path, base).as_deref() == Some(fabric))
}

/// Namespaces whose names begin so and that carry a mark of a fabric that keeps its note in `base`,
/// and that fabric. Names that lead nowhere count, too: their process was killed while it gave or
/// took them.
fn marked(base: &Path, begin: &str) -> Vec<(String, String)> {
    let names = fs::read_dir(netns::NAMES).into_iter().flatten().flatten();
    let mut found: Vec<_> = names
        .filter_map(|e| {
            let name = e.file_name().into_string().ok().filter(|n| n.starts_with(begin))?;
            let empty = || {
                netns::mark_of(&e.path()).and_then(|mark| marked_by(&mark, base).map(str::to_owned))
            };
            let fabric = fabric_of(&e.path(), base).or_else(empty)?;
            Some((name, fabric))
        })
        .collect();
    found.sort();
    found
}

/// The names of one fabric's namespaces. Others are not opened, however many there are on the
/// machine.
fn names_of(base: &Path, fabric: &str) -> impl Iterator<Item = String> {
    marked(base, &format!("{fabric}-")).into_iter().filter(move |m| m.1 == fabric).map(|m| m.0)
}

/// The fabric of `base` whose mark a namespace carries, if any.
pub fn fabric_of(path: &Path, base: &Path) -> Option<String> {
    let ns = sys::open_ns(path).ok()?;
    let mut netlink = Netlink::open(ns.as_fd()).ok()?;
    let mut fabric = None;
    netlink
        .dump(msg::link_dump(), |m| {
            if let Message::NewLink(l) = m
                && l.header.index == 1
            {
                let alias = l
                    .attributes
                    .iter()
                    .find_map(|a| if let LinkAttribute::IfAlias(t) = a { Some(t) } else { None });
                fabric = alias.and_then(|t| marked_by(t, base)).map(str::to_owned);
            }
        })
        .ok()?;
    fabric
}

/// The fabric in a mark, if it keeps its note in `base`.
pub(super) fn marked_by<'a>(alias: &'a str, base: &Path) -> Option<&'a str> {
    let (fabric, place) = alias.strip_prefix(PREFIX)?.split_once(':')?;
    (Path::new(place) == base).then_some(fabric)
}

/// Takes the names of a fabric's namespaces and its notes away while it runs, for a process that
/// ends at once: the rest goes with the process. Gives what it could not remove.
pub fn abandon(base: &Path, fabric: &str) -> Vec<String> {
    let names = || names_of(base, fabric);
    // The fabric may be removing them itself at the same time.
    names().for_each(|n| drop(take_dead(base, &n, fabric)));
    let mut left: Vec<String> = names().map(|n| format!("namespace {n}")).collect();
    let directory = base.join(fabric);
    if let Err(e) = remove_directory(&directory)
        && e.kind() != io::ErrorKind::NotFound
    {
        left.push(format!("{}: {e}", directory.display()));
    }
    left
}

/// What a fabric of this name left when it was killed. The caller holds its lock.
pub(super) fn remove_leftovers(base: &Path, fabric: &str) {
    let mut removed = 0;
    for name in names_of(base, fabric) {
        match take_dead(base, &name, fabric) {
            Ok(()) => removed += 1,
            Err(e) => {
                tracing::warn!("namespace {name}, which a killed run of {fabric} had left: {e}")
            }
        }
    }
    if removed > 0 {
        tracing::info!("removed {removed} namespaces that a killed run of {fabric} had left");
    }
}
