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
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use leftovers::remove_leftovers;
use locks::{held_by, is_held, lock_inode, make_lock, remove_directory, stays_held};

use super::network::EmulatedNetwork;
use super::{names, netns, rights, sys};

mod leftovers;
mod locks;

pub(crate) use leftovers::fabric_of;
pub use leftovers::{Cleaned, abandon, clean};
pub use locks::turn;

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
pub fn socket(base: &Path, note: &FabricNote) -> PathBuf {
    base.join(&note.fabric).join(SOCKET)
}

/// What a running fabric writes down about itself.
#[derive(Clone, Debug, Serialize, Deserialize, Default)]
pub struct FabricNote {
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

impl FabricNote {
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
    published: Vec<NamespaceName>,
    /// All that could be taken away has been.
    released: bool,
    /// Its lock says that the fabric is running.
    lock: File,
}

/// A name that `ip netns` shows, and the identity of the namespace that it was given to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceName {
    /// The name.
    pub name: String,
    inode: u64,
}

impl NamespaceName {
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
        self.lock.is_some() && lock_inode(&self.directory) == self.lock
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
        if stays_held(&directory) { Err(running_already(name, &directory)) } else { Ok(()) }
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
        // Another process that wants the name meanwhile can say which one has it.
        owned.put(&FabricNote::starting(name)).map_err(io_error(owned.directory.display()))?;
        Ok(owned)
    }

    /// Gives every node of a network a name that `ip netns` shows: `NAME-h3-1`.
    ///
    /// # Errors
    /// When a name is taken by another process.
    pub fn publish(&mut self, net: &EmulatedNetwork) -> Result<(), OwnError> {
        let mark = self.mark();
        if self.names.is_none() {
            let opened = netns::Directory::open().map_err(io_error(netns::NAMES))?;
            self.names = Some(opened);
        }
        for node in net.nodes() {
            let name = format!("{}-{}", self.name, node.name);
            match netns::publish(node.ns.as_fd(), &name, &mark) {
                Ok(inode) => self.published.push(NamespaceName { name, inode }),
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
            for NamespaceName { name, inode } in &published {
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
    pub fn names(&self) -> &[NamespaceName] {
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
    pub fn built(
        &self,
        net: &EmulatedNetwork,
        (mechanism, policy): (&str, &str),
    ) -> io::Result<()> {
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
    pub fn amend(&self, change: impl FnOnce(&mut FabricNote)) -> io::Result<()> {
        let mut note =
            read_note(&self.directory).ok_or_else(|| io::Error::other("the fabric has no note"))?;
        change(&mut note);
        self.put(&note)
    }

    fn put(&self, note: &FabricNote) -> io::Result<()> {
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
    note: &FabricNote,
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

/// Where the output goes of a fabric of this name that runs without a terminal.
pub fn log_file(base: &Path, fabric: &str) -> PathBuf {
    base.join(format!("{fabric}.log"))
}

/// Users who run a fabric of this name without root, by number, and the directory that each of them
/// has for running programs (`XDG_RUNTIME_DIR`), or `/tmp`. Files of these users are not read.
pub fn users_of(fabric: &str) -> Vec<(u32, PathBuf)> {
    let users = fs::read_dir("/run/user")
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path().join("heliostat"));
    let temporary = fs::read_dir("/tmp").into_iter().flatten().flatten().map(|e| e.path());
    let temporary = temporary
        .filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("heliostat-")));
    let user = |base: PathBuf| Some((held_by(&base.join(fabric))?, base.parent()?.to_owned()));
    let mut found: Vec<(u32, PathBuf)> = users.chain(temporary).filter_map(user).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn read_note(directory: &Path) -> Option<FabricNote> {
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
pub fn running(base: &Path) -> Vec<FabricNote> {
    let mut notes: Vec<FabricNote> = held_directories(base).filter_map(|d| read_note(&d)).collect();
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

#[cfg(test)]
mod tests;
