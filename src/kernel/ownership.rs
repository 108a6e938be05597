//! What is ours: a lock for every running fabric, a note of its nodes, and a mark on every object.
//!
//! The mark is the alias of each namespace's loopback link (`heliostat:NAME:WHERE`, the fabric's
//! name and where it keeps its note), so that it goes with the object and never points at an object
//! of others. Only what carries a mark of ours, kept at the same place, whose fabric is not running
//! is ever removed.

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
use super::{detach, msg, names, netns, rights, sys};

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

/// Where fabrics keep their notes: `/run/heliostat` for root and who has the capabilities for it,
/// else below the user's own runtime directory.
pub fn base() -> PathBuf {
    if rights::are_of_the_machine() {
        return rights::NOTES.into();
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(d) if Path::new(&d).is_dir() => Path::new(&d).join("heliostat"),
        _ => PathBuf::from(format!("/tmp/heliostat-{}", sys::user_outside())),
    }
}

/// The API's unix socket in a fabric's directory.
const SOCKET: &str = "api.sock";

/// The API's unix socket of a fabric that keeps its note in `base`.
pub fn socket(base: &Path, note: &Note) -> PathBuf {
    base.join(&note.fabric).join(SOCKET)
}

/// What a running fabric writes down about itself.
#[derive(Clone, Debug, Serialize, Deserialize, Default)]
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
    /// `starting`, `running` or `stopping`.
    #[serde(default)]
    pub state: String,
    /// The policy that it was started with.
    #[serde(default)]
    pub policy: String,
    /// The workload or the jobs that it carries, if any.
    #[serde(default)]
    pub workload: String,
    /// The number of the user who started it, by sudo or not.
    #[serde(default)]
    pub user: Option<u32>,
}

impl Note {
    /// Of a fabric that this process begins to build now.
    pub fn starting(fabric: &str) -> Self {
        let (mechanism, state) = ("starting".into(), "starting".into());
        let (pid, started_ms, user) = (std::process::id(), now_ms(), Some(sys::caller()));
        Self { pid, fabric: fabric.into(), mechanism, started_ms, state, user, ..Self::default() }
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
    /// Where its names are, once it has any.
    names: Option<netns::Directory>,
    published: Vec<Name>,
    /// All that could be taken away has been.
    released: bool,
    /// Its lock says that the fabric is running.
    lock: File,
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

/// The files of a running fabric's note.
#[derive(Clone, Debug)]
pub struct NoteFiles {
    directory: PathBuf,
    /// Identity of the lock's file.
    lock: Option<u64>,
}

impl NoteFiles {
    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether the directory still has this fabric's lock.
    fn are_ours(&self) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        self.lock.is_some()
            && fs::metadata(self.directory.join("lock")).map(|m| m.ino()).ok() == self.lock
    }

    /// Whether other commands still find the fabric by them.
    pub fn stand(&self) -> bool {
        self.are_ours() && self.directory.join("state.json").exists()
    }
}

/// Why a name cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    /// Another process holds it.
    #[error(
        "the fabric `{name}` is running already (process {pid}); stop it, or choose another name with --name"
    )]
    Running {
        /// The name.
        name: String,
        /// Id of the process that holds it, as far as is known.
        pid: String,
    },
    /// A namespace of this name is there and does not carry our mark.
    #[error(
        "the namespace `{0}` is there and is not ours; remove it yourself, or choose another name with --name"
    )]
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
        let owned = Self {
            name: name.into(),
            directory,
            names: None,
            published: vec![],
            released: false,
            lock,
        };
        // Another process that wants the name meanwhile is told which one has it.
        owned.put(&Note::starting(name)).map_err(io_error(owned.directory.display()))?;
        Ok(owned)
    }

    /// Gives every node of a network a name that `ip netns` shows: `NAME-h3-1`.
    ///
    /// # Errors
    /// When a name is taken by another process.
    pub fn publish(&mut self, net: &Network) -> Result<(), OwnError> {
        let mark = self.mark();
        if self.names.is_none() {
            let opened = netns::Directory::open().map_err(io_error(netns::NAMES))?;
            self.names = Some(opened);
        }
        for node in net.nodes() {
            let name = format!("{}-{}", self.name, node.name);
            match netns::publish(node.ns.as_fd(), &name, &mark) {
                Ok(inode) => self.published.push(Name { name, inode }),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(OwnError::Taken(name));
                }
                Err(e) => return Err(OwnError::Io(format!("name the namespace {name}"), e)),
            }
        }
        Ok(())
    }

    /// The mark of its objects.
    fn mark(&self) -> String {
        self.directory.parent().map(|base| mark(base, &self.name)).unwrap_or_default()
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The files by which other commands find it.
    pub fn note_files(&self) -> NoteFiles {
        use std::os::unix::fs::MetadataExt as _;
        NoteFiles {
            directory: self.directory.clone(),
            lock: self.lock.metadata().map(|m| m.ino()).ok(),
        }
    }

    /// Takes its names and its note away. Gives what is left, and why.
    pub fn release(&mut self) -> Vec<String> {
        let (mark, mut left) = (self.mark(), vec![]);
        if std::mem::replace(&mut self.released, true) {
            return left;
        }
        let published = std::mem::take(&mut self.published);
        if let Some(names) = self.names.take() {
            for Name { name, inode } in &published {
                if let Err(e) = names.take_away(name, *inode, &mark) {
                    left.push(format!("namespace {name}: {e}"));
                }
            }
        }
        let hidden = if published.is_empty() { vec![] } else { netns::hidden() };
        let ours = hidden
            .into_iter()
            .filter(|(name, inode)| published.iter().any(|n| (&n.name, n.inode) == (name, *inode)));
        left.extend(ours.map(|(name, _)| format!("namespace {name}: {HIDDEN}")));
        // The note tells `clean` whose it is. A directory with another lock belongs to a fabric
        // that took the name when this one's note had been removed.
        if left.is_empty()
            && self.note_files().are_ours()
            && let Err(e) = remove_directory(&self.directory)
        {
            left.push(format!("{}: {e}", self.directory.display()));
        }
        left
    }

    /// The names that its namespaces were given.
    pub fn names(&self) -> &[Name] {
        &self.published
    }

    /// Where the API's unix socket goes.
    pub fn socket(&self) -> PathBuf {
        self.directory.join(SOCKET)
    }

    /// Writes into the note what it does: `running`, `stopping`. Who cannot write it has told that
    /// already.
    pub fn says(&self, state: &str) {
        let _ = self.amend(|note| note.state = state.into());
    }

    /// Writes the network's nodes, its mechanism and its policy into the note.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn built(&self, net: &Network, (mechanism, policy): (&str, &str)) -> io::Result<()> {
        fs::write(self.directory.join(HOSTS), names::hosts(&net.topology))?;
        self.amend(|note| {
            (note.mechanism, note.policy, note.state) =
                (mechanism.into(), policy.into(), "running".into());
            note.nodes = net.nodes().map(|n| (n.name.clone(), n.ns.as_raw_fd())).collect();
        })
    }

    /// Changes the note, in one step.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn amend(&self, change: impl FnOnce(&mut Note)) -> io::Result<()> {
        let mut note =
            read_note(&self.directory).ok_or_else(|| io::Error::other("the fabric has no note"))?;
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
        self.release().iter().for_each(|what| tracing::warn!("left behind: {what}"));
    }
}

/// Why a namespace's name cannot be taken away where something lies over it.
const HIDDEN: &str =
    "another program has mounted something over its name; unmount that, then `heliostat clean`";

/// The file of a fabric's note with the names of its hosts.
const HOSTS: &str = "hosts";

/// Writes the files that a program in a node is to see; gives them, and where.
///
/// # Errors
/// They cannot be read or written.
pub fn name_files(
    base: &Path,
    note: &Note,
    node: &str,
) -> io::Result<[(PathBuf, &'static str); 2]> {
    let directory = base.join(&note.fabric);
    let (hosts, resolver) =
        (directory.join(format!("{HOSTS}.{node}")), directory.join("resolv.conf"));
    for (file, text) in [
        (&hosts, names::hosts_of(node, &fs::read_to_string(directory.join(HOSTS))?)),
        (&resolver, names::RESOLVER.into()),
    ] {
        // A file that lies over one of the machine's is laid over only as long as it is not
        // replaced.
        if fs::read_to_string(file).is_ok_and(|there| there == text) {
            continue;
        }
        // Many may begin at the same time: what one sees is whole.
        let fresh = file.with_extension(format!("{}.new", std::process::id()));
        fs::write(&fresh, text)?;
        fs::rename(fresh, file)?;
    }
    Ok([(hosts, "/etc/hosts"), (resolver, "/etc/resolv.conf")])
}

fn running_already(name: &str, directory: &Path) -> OwnError {
    OwnError::Running {
        name: name.into(),
        pid: read_note(directory).map_or_else(|| "unknown".into(), |n| n.pid.to_string()),
    }
}

/// Makes the directory of all notes: that of the machine must be root's. One that lies where all
/// users may write must be ours, and no other user may write into it.
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
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "somebody else can write there; remove it, or set XDG_RUNTIME_DIR",
        ));
    }
    Ok(())
}

/// How long a command that only looks may hold a lock.
const LOOK: Duration = Duration::from_millis(200);

/// Makes a fabric's directory and locks it. Its last owner may take it away meanwhile: a lock on
/// what is gone counts nothing.
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
            Ok(held) if has_lock(directory, &held) => return Ok(held),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && begun.elapsed() < LOOK => {
                std::thread::sleep(LOOK / 20)
            }
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
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(directory.join("lock"))?;
    if file.metadata()?.mode() & 0o7777 != 0o600 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    file.try_lock()?;
    Ok(file)
}

/// Whether this open file is the lock of a fabric's directory, and not one that has been removed.
fn has_lock(directory: &Path, lock: &File) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let there = fs::metadata(directory.join("lock")).map(|m| m.ino());
    there.is_ok_and(|i| lock.metadata().is_ok_and(|m| m.ino() == i))
}

/// Removes a fabric's directory; the caller holds its lock. The lock goes last: from then on the
/// directory, if it is still there, is that of the next process that locks it.
fn remove_directory(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)?.flatten().filter(|e| e.file_name() != "lock") {
        let path = entry.path();
        let gone = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        gone.or_else(unless_gone)?;
    }
    fs::remove_file(directory.join("lock")).or_else(unless_gone)?;
    match fs::remove_dir(directory) {
        Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        done => done.or_else(unless_gone),
    }
}

fn unless_gone(e: io::Error) -> io::Result<()> {
    if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) }
}

/// Whether a process holds the lock of a fabric's directory. Many may look at the same time.
fn is_held(directory: &Path) -> bool {
    File::open(directory.join("lock"))
        .is_ok_and(|f| matches!(f.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
}

/// Users who run a fabric of this name without root, by number: those whose directories are where
/// such users keep them. What these say is not read: it is theirs.
pub fn users_of(fabric: &str) -> Vec<u32> {
    let users = fs::read_dir("/run/user")
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path().join("heliostat"));
    let temporary = fs::read_dir("/tmp").into_iter().flatten().flatten().map(|e| e.path());
    let temporary = temporary
        .filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("heliostat-")));
    let mut found: Vec<u32> =
        users.chain(temporary).filter_map(|base| held_by(&base.join(fabric))).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The owner of a fabric's directory, if a process holds its lock. The lock may be any file, set
/// there by anyone: it is not waited for.
fn held_by(directory: &Path) -> Option<u32> {
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
        .open(directory.join("lock"))
        .ok()?;
    let held = matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock));
    Some(file.metadata().ok()?.uid()).filter(|_| held)
}

fn read_note(directory: &Path) -> Option<Note> {
    serde_json::from_slice(&fs::read(directory.join("state.json")).ok()?).ok()
}

/// The names that are held, by fabrics that run or are being built.
pub fn held(base: &Path) -> Vec<String> {
    let mut names: Vec<String> = held_directories(base)
        .filter_map(|d| Some(d.file_name()?.to_string_lossy().into_owned()))
        .collect();
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

/// What [`clean`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// What was removed.
    pub gone: Vec<String>,
    /// What could not be, and why.
    pub left: Vec<String>,
}

/// Removes what killed fabrics left: namespaces that carry our mark and whose fabric is not
/// running, what is marked in nodes of Mininet's, and stale notes; of all of them, or of the fabric
/// of that name `only`. What another process removes meanwhile is gone.
pub fn clean(base: &Path, only: Option<&str>) -> Cleaned {
    // Asked for each mark that is found: its fabric may have been started a moment ago.
    let dead =
        |fabric: &str| only.is_none_or(|name| name == fabric) && !is_held(&base.join(fabric));
    let mut done = Cleaned { gone: detach::clean(dead), left: vec![] };
    let stale: Vec<PathBuf> = directories(base)
        .filter(|d| d.file_name().and_then(|n| n.to_str()).is_some_and(dead))
        .collect();
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
fn names_in(note: &Note) -> impl Iterator<Item = String> + use<> {
    let fabric = note.fabric.clone();
    note.nodes.clone().into_keys().map(move |node| format!("{fabric}-{node}"))
}

/// Takes a name of a dead fabric away, however often its namespace is mounted there.
fn take_dead(base: &Path, name: &str, fabric: &str) -> io::Result<()> {
    netns::unpublish(name, |path| fabric_of(path, base).as_deref() == Some(fabric))
}

/// Namespaces whose names begin so and that carry a mark of a fabric that keeps its note in `base`,
/// and that fabric; also names that lead nowhere, since their process was killed while it gave or
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
pub(super) fn fabric_of(path: &Path, base: &Path) -> Option<String> {
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
fn marked_by<'a>(alias: &'a str, base: &Path) -> Option<&'a str> {
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
fn remove_leftovers(base: &Path, fabric: &str) {
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

#[cfg(test)]
mod tests;
