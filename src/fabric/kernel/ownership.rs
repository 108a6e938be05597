//! What is ours: a lock for every running fabric, a note of its nodes, and a mark on every object.
//!
//! The mark is the alias of each namespace's loopback link (`heliostat:NAME:WHERE`, the fabric's name and where it keeps its
//! note), so that it goes with the object and never points at an object of others. Only what carries a mark of ours, kept at the same
//! place, whose fabric is not running is ever removed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::link::LinkAttribute;
use serde::{Deserialize, Serialize};

use super::network::Network;
use super::nl::Netlink;
use super::{detach, msg, netns, rights, sys};

/// How every mark begins.
pub const PREFIX: &str = "heliostat:";

/// The mark of a fabric's objects; `base` is where it keeps its note.
pub fn mark(base: &Path, fabric: &str) -> String {
    format!("{PREFIX}{fabric}:{}", base.display())
}

/// The mark of a fabric's links in nodes that others made.
pub fn link_mark(fabric: &str) -> String {
    format!("{PREFIX}{fabric}")
}

/// Where fabrics keep their notes: `/run/heliostat` for root and who has the capabilities for it, else below the user's own runtime
/// directory.
pub fn base() -> PathBuf {
    if rights::are_of_the_machine() {
        return rights::NOTES.into();
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(d) if Path::new(&d).is_dir() => Path::new(&d).join("heliostat"),
        _ => PathBuf::from(format!("/tmp/heliostat-{}", sys::uid_gid().0)),
    }
}

/// What a running fabric writes down about itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Note {
    /// The daemon's process.
    pub pid: u32,
    /// The fabric's name.
    pub fabric: String,
    /// `timed` or `netlink`; `starting` until it is known.
    pub mechanism: String,
    /// Where its API listens.
    pub api: Option<String>,
    /// The descriptor in the daemon of every node's namespace.
    pub nodes: BTreeMap<String, i32>,
    /// When it was started: milliseconds since 1970.
    #[serde(default)]
    pub started_ms: u64,
}

impl Note {
    /// Of a fabric that this process begins to build now.
    pub fn starting(fabric: &str) -> Self {
        let (pid, started_ms) = (std::process::id(), now_ms());
        Self { pid, fabric: fabric.into(), mechanism: "starting".into(), api: None, nodes: BTreeMap::new(), started_ms }
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// A fabric's name, held until it is dropped; then nothing of it is left.
#[derive(Debug)]
pub struct Owned {
    name: String,
    directory: PathBuf,
    published: Vec<Name>,
    /// Its lock says that the fabric is running.
    _lock: File,
}

/// A name that `ip netns` shows, and the identity of the namespace that it was given to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub name: String,
    inode: u64,
}

impl Name {
    /// Whether the name still leads to its namespace.
    pub fn stands(&self) -> bool {
        netns::identity(&Path::new(netns::NAMES).join(&self.name)).is_ok_and(|i| i == self.inode)
    }
}

/// Why a name cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    /// Another process holds it.
    #[error("the fabric `{name}` is running already (process {pid}); stop it, or choose another name with --name")]
    Running {
        /// The name.
        name: String,
        /// Id of the process that holds it, as far as is known.
        pid: String,
    },
    /// A namespace of this name is there and does not carry our mark.
    #[error("the namespace `{0}` is there and is not ours; remove it yourself, or choose another name with --name")]
    Taken(String),
    /// The system said no.
    #[error("{0}: {1}")]
    Io(String, io::Error),
}

fn io_error(what: impl std::fmt::Display) -> impl FnOnce(io::Error) -> OwnError {
    let what = what.to_string();
    move |e| OwnError::Io(what, e)
}

impl Owned {
    /// Says whether a name could be had now; [`Owned::take`] has the last word.
    ///
    /// # Errors
    /// When it is running.
    pub fn free(base: &Path, name: &str) -> Result<(), OwnError> {
        let directory = base.join(name);
        if is_held(&directory) { Err(running_already(name, &directory)) } else { Ok(()) }
    }

    /// Takes a name. What a fabric of this name left behind when it was killed is removed first.
    ///
    /// # Errors
    /// When it is running, or the notes cannot be kept.
    pub fn take(base: &Path, name: &str) -> Result<Self, OwnError> {
        let directory = base.join(name);
        make_base(base).map_err(io_error(base.display()))?;
        let lock = make_lock(&directory).map_err(|e| match e.kind() {
            io::ErrorKind::WouldBlock => running_already(name, &directory),
            _ => OwnError::Io(directory.join("lock").display().to_string(), e),
        })?;
        remove_leftovers(base, name);
        let owned = Self { name: name.into(), directory, published: vec![], _lock: lock };
        // Another process that wants the name meanwhile is told which one has it.
        owned.put(&Note::starting(name)).map_err(io_error(owned.directory.display()))?;
        Ok(owned)
    }

    /// Gives every node of a network a name that `ip netns` shows: `NAME-h3-1`.
    ///
    /// # Errors
    /// When a name is taken by another process.
    pub fn publish(&mut self, net: &Network) -> Result<(), OwnError> {
        let mark = self.directory.parent().map(|base| mark(base, &self.name)).unwrap_or_default();
        for node in net.nodes() {
            let name = format!("{}-{}", self.name, node.name);
            match netns::publish(node.ns.as_fd(), &name, &mark) {
                Ok(inode) => self.published.push(Name { name, inode }),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(OwnError::Taken(name)),
                Err(e) => return Err(OwnError::Io(format!("name the namespace {name}"), e)),
            }
        }
        Ok(())
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names that its namespaces were given.
    pub fn names(&self) -> &[Name] {
        &self.published
    }

    /// Where the API's unix socket goes.
    pub fn socket(&self) -> PathBuf {
        self.directory.join("api.sock")
    }

    /// Writes the network's nodes and its mechanism into the note.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn built(&self, net: &Network, mechanism: &str) -> io::Result<()> {
        self.amend(|note| {
            note.mechanism = mechanism.into();
            note.nodes = net.nodes().map(|n| (n.name.clone(), n.ns.as_raw_fd())).collect();
        })
    }

    /// Changes the note, in one step.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn amend(&self, change: impl FnOnce(&mut Note)) -> io::Result<()> {
        let mut note = read_note(&self.directory).ok_or_else(|| io::Error::other("the fabric has no note"))?;
        change(&mut note);
        self.put(&note)
    }

    fn put(&self, note: &Note) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(note).map_err(io::Error::other)?;
        let fresh = self.directory.join("state.json.new");
        File::create(&fresh)?.write_all(&text)?;
        fs::rename(fresh, self.directory.join("state.json"))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // A name that leads elsewhere by now is not ours any more.
        for Name { name, .. } in self.published.iter().filter(|n| n.stands()) {
            if let Err(e) = netns::unpublish(name) {
                tracing::debug!("namespace {name}: {e}");
            }
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn running_already(name: &str, directory: &Path) -> OwnError {
    OwnError::Running { name: name.into(), pid: read_note(directory).map_or_else(|| "unknown".into(), |n| n.pid.to_string()) }
}

/// Makes the directory of all notes: that of the machine must be root's. One that lies where all users may write must be ours, and no other
/// user may write into it.
///
/// # Errors
/// It cannot be made, or another user can write into it.
pub fn make_base(base: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    if base == Path::new(rights::NOTES) {
        return sys::make_shared(base);
    }
    fs::create_dir_all(base)?;
    let meta = fs::symlink_metadata(base)?;
    let elsewhere = meta.uid() != sys::uid_gid().0 || meta.mode() & 0o022 != 0;
    if elsewhere && base.starts_with("/tmp") {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "somebody else can write there; remove it, or set XDG_RUNTIME_DIR"));
    }
    Ok(())
}

/// How long a command that only looks may hold a lock.
const LOOK: Duration = Duration::from_millis(200);

/// Makes a fabric's directory and locks it. Its last owner may take it away meanwhile: a lock on what is gone counts nothing.
fn make_lock(directory: &Path) -> io::Result<File> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let begun = Instant::now();
    loop {
        fs::create_dir_all(directory)?;
        // What others cannot enter they can neither lock nor read.
        if fs::metadata(directory)?.mode() & 0o7777 != 0o700 {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
        }
        match lock(directory) {
            Ok(held) => {
                let there = fs::metadata(directory.join("lock")).map(|m| m.ino());
                if there.is_ok_and(|i| held.metadata().is_ok_and(|m| m.ino() == i)) {
                    return Ok(held);
                }
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && begun.elapsed() < LOOK => std::thread::sleep(LOOK / 20),
            Err(e) => return Err(e),
        }
    }
}

/// Where the output goes of a fabric of this name that runs without a terminal.
pub fn log_file(base: &Path, fabric: &str) -> PathBuf {
    base.join(format!("{fabric}.log"))
}

fn lock(directory: &Path) -> io::Result<File> {
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
    // A file that others can open they can lock as well.
    let file = File::options().create(true).truncate(false).write(true).mode(0o600).open(directory.join("lock"))?;
    if file.metadata()?.mode() & 0o7777 != 0o600 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    sys::try_lock(&file)?;
    Ok(file)
}

/// Whether a process holds the lock of a fabric's directory. Many may look at the same time.
fn is_held(directory: &Path) -> bool {
    File::open(directory.join("lock")).is_ok_and(|f| sys::try_share(&f).is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock))
}

/// Users who run a fabric of this name without root, by number: those whose directories are where such users keep them. What these say is
/// not read: it is theirs.
pub fn users_of(fabric: &str) -> Vec<u32> {
    let users = fs::read_dir("/run/user").into_iter().flatten().flatten().map(|e| e.path().join("heliostat"));
    let temporary = fs::read_dir("/tmp").into_iter().flatten().flatten().map(|e| e.path());
    let temporary = temporary.filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("heliostat-")));
    let mut found: Vec<u32> = users.chain(temporary).filter_map(|base| held_by(&base.join(fabric))).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The owner of a fabric's directory, if a process holds its lock. The lock may be any file, set there by anyone: it is not waited for.
fn held_by(directory: &Path) -> Option<u32> {
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(directory.join("lock")).ok()?;
    let held = sys::try_share(&file).is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock);
    Some(file.metadata().ok()?.uid()).filter(|_| held)
}

fn read_note(directory: &Path) -> Option<Note> {
    serde_json::from_slice(&fs::read(directory.join("state.json")).ok()?).ok()
}

/// The names that are held, by fabrics that run or are being built.
pub fn held(base: &Path) -> Vec<String> {
    let mut names: Vec<String> = held_directories(base).filter_map(|d| Some(d.file_name()?.to_string_lossy().into_owned())).collect();
    names.sort();
    names
}

/// The notes of all running fabrics, by name.
pub fn running(base: &Path) -> Vec<Note> {
    let mut notes: Vec<Note> = held_directories(base).filter_map(|d| read_note(&d)).collect();
    notes.sort_by(|a, b| a.fabric.cmp(&b.fabric));
    notes
}

fn held_directories(base: &Path) -> impl Iterator<Item = PathBuf> {
    directories(base).filter(|d| is_held(d))
}

fn directories(base: &Path) -> impl Iterator<Item = PathBuf> {
    let is_fabric = |p: &PathBuf| p.is_dir() && p.file_name().is_some_and(|n| n != "attach");
    fs::read_dir(base).into_iter().flatten().flatten().map(|e| e.path()).filter(is_fabric)
}

/// Removes what killed fabrics left: namespaces that carry our mark and whose fabric is not running, what is marked in nodes
/// of Mininet's, and stale notes; of all of them, or of the fabric of that name `only`. Returns what was removed.
pub fn clean(base: &Path, only: Option<&str>) -> Vec<String> {
    let alive = held(base);
    let meant = |fabric: &str| only.is_none_or(|name| name == fabric);
    let dead = |fabric: &str| meant(fabric) && !alive.iter().any(|a| a == fabric);
    let mut gone = detach::clean(dead);
    for (name, fabric) in marked(base, &only.map_or_else(String::new, |name| format!("{name}-"))) {
        if dead(&fabric) && netns::unpublish(&name).is_ok() {
            gone.push(format!("namespace {name}"));
        }
    }
    for d in directories(base).filter(|d| d.file_name().and_then(|n| n.to_str()).is_some_and(meant)) {
        if let Ok(held) = lock(&d) {
            if fs::remove_dir_all(&d).is_ok() {
                gone.push(d.display().to_string());
            }
            drop(held);
        }
    }
    gone
}

/// Namespaces whose names begin so and that carry a mark of a fabric that keeps its note in `base`, and that fabric; also names that lead
/// nowhere, since their process was killed while it gave or took them.
fn marked(base: &Path, begin: &str) -> Vec<(String, String)> {
    let names = fs::read_dir(netns::NAMES).into_iter().flatten().flatten();
    let mut found: Vec<_> = names
        .filter_map(|e| {
            let name = e.file_name().into_string().ok().filter(|n| n.starts_with(begin))?;
            let empty = || netns::mark_of(&e.path()).and_then(|mark| marked_by(&mark, base).map(str::to_owned));
            let fabric = fabric_of(&e.path(), base).or_else(empty)?;
            Some((name, fabric))
        })
        .collect();
    found.sort();
    found
}

/// The names of one fabric's namespaces. Others are not opened, however many there are on the machine.
fn names_of(base: &Path, fabric: &str) -> impl Iterator<Item = String> {
    marked(base, &format!("{fabric}-")).into_iter().filter(move |m| m.1 == fabric).map(|m| m.0)
}

/// The fabric of `base` whose mark a namespace carries, if any.
fn fabric_of(path: &Path, base: &Path) -> Option<String> {
    let ns = sys::open_ns(path).ok()?;
    let mut netlink = Netlink::open(ns.as_fd()).ok()?;
    let mut fabric = None;
    netlink
        .dump(msg::link_dump(), |m| {
            if let Message::NewLink(l) = m
                && l.header.index == 1
            {
                let alias = l.attributes.iter().find_map(|a| if let LinkAttribute::IfAlias(t) = a { Some(t) } else { None });
                fabric = alias.and_then(|t| marked_by(t, base)).map(str::to_owned);
            }
        })
        .ok()?;
    fabric
}

/// The fabric in a mark, if it keeps its note in `base`.
fn marked_by<'a>(alias: &'a str, base: &Path) -> Option<&'a str> {
    let (fabric, place) = alias.strip_prefix(PREFIX)?.split_once(':')?;
    (Path::new(place) == base).then_some(fabric)
}

/// Takes the names of a fabric's namespaces and its notes away while it runs, for a process that ends at once: the rest goes with the
/// process. Gives what it could not remove.
pub fn abandon(base: &Path, fabric: &str) -> Vec<String> {
    let names = || names_of(base, fabric);
    // The fabric may be removing them itself at the same time.
    names().for_each(|n| drop(netns::unpublish(&n)));
    let mut left: Vec<String> = names().map(|n| format!("namespace {n}")).collect();
    let directory = base.join(fabric);
    if fs::remove_dir_all(&directory).is_err() && directory.exists() {
        left.push(directory.display().to_string());
    }
    left
}

/// What a fabric of this name left when it was killed. The caller holds its lock.
fn remove_leftovers(base: &Path, fabric: &str) {
    let mut removed = 0;
    for name in names_of(base, fabric) {
        removed += usize::from(netns::unpublish(&name).is_ok());
    }
    if removed > 0 {
        tracing::info!("removed {removed} namespaces that a killed run of {fabric} had left");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_known_where_it_was_made_and_nowhere_else() {
        let (here, there) = (Path::new("/run/heliostat"), Path::new("/tmp/other"));
        let m = mark(here, "lab");
        assert_eq!(marked_by(&m, here), Some("lab"));
        assert_eq!(marked_by(&m, there), None);
        for stranger in ["", "lab", "heliostat", "heliostat:lab", "heliostats:lab:/run/heliostat", "mininet:lab:/run/heliostat"] {
            assert_eq!(marked_by(stranger, here), None, "{stranger}");
        }
    }

    #[test]
    fn a_name_is_had_once_and_again_after_it_was_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("notes");
        let held = Owned::take(&base, "twice").expect("free");
        assert!(matches!(Owned::take(&base, "twice"), Err(OwnError::Running { .. })));
        assert_eq!(self::held(&base), ["twice"]);
        drop(held);
        assert!(!base.join("twice").exists());
        drop(Owned::take(&base, "twice").expect("free again"));
    }

    #[test]
    fn who_only_looks_is_in_the_way_of_no_fabric() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("notes");
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    while !over.load(std::sync::atomic::Ordering::Relaxed) {
                        assert!(running(&base).len() <= 1)
                    }
                });
            }
            let taken: Vec<_> = (0..100).map(|_| Owned::take(&base, "seen").map(drop).map_err(|e| e.to_string())).collect();
            over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(taken.into_iter().find(Result::is_err), None);
        });
    }
}
