//! The networks that run on this machine, for the commands that speak to one.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use super::CliError;
use crate::kernel::ownership::{self, FabricNote};
use crate::kernel::{rights, sys};

/// What is said where nothing runs.
pub const NONE: &str = "no network is running; start one with `heliostat run TOPOLOGY`";

/// The running network that was meant: the only one, or the one of that name; of several without a
/// name, the one whose API is at [`controller`].
///
/// # Errors
/// None runs, several do and nothing says which, or none has that name.
pub fn choose(name: Option<&str>) -> Result<FabricNote, CliError> {
    let chosen = one_of(ownership::running(&ownership::base()), name, controller().as_deref());
    chosen.map_err(|e| name.and_then(|name| theirs(name, &ownership::users_of(name))).unwrap_or(e))
}

/// The same for a command that changes something: a network that another user started, such as
/// root's service, is changed only where it is named.
///
/// # Errors
/// As [`choose`], and a network of another user without a name.
pub fn choose_to_change(name: Option<&str>) -> Result<FabricNote, CliError> {
    let note = choose(name)?;
    named_if_anothers(&note, name, sys::caller())?;
    Ok(note)
}

/// Whether a command without an address means a network of this user, or else what listens at the
/// default address: root's notes cannot be read by others.
///
/// # Errors
/// As [`choose`].
pub fn is_own(name: Option<&str>) -> Result<bool, CliError> {
    let base = ownership::base();
    let own = ownership::running(&base);
    let is_meant = |n: &FabricNote| name.is_none_or(|name| name == n.fabric);
    match name {
        _ if own.iter().any(is_meant) => Ok(true),
        Some(name) if base == Path::new(rights::NOTES) => choose(Some(name)).map(|_| true),
        Some(name) => theirs(name, &ownership::users_of(name)).map_or(Ok(false), Err),
        None => Ok(false),
    }
}

/// Who started a network, if that was another user.
pub fn owner(note: &FabricNote) -> Option<String> {
    let user = note.user.filter(|&user| user != sys::caller())?;
    Some(user_in_words(user))
}

fn user_in_words(user: u32) -> String {
    if user == 0 { "root".into() } else { format!("user {user}") }
}

fn named_if_anothers(note: &FabricNote, name: Option<&str>, own: u32) -> Result<(), CliError> {
    match note.user.filter(|&user| name.is_none() && user != own) {
        Some(user) => {
            let (fabric, who) = (&note.fabric, user_in_words(user));
            let why = format!("the only network that runs, {fabric}, was started by {who}");
            Err(CliError::Usage(format!("{why}; if you mean it, give its name")))
        }
        None => Ok(()),
    }
}

/// A network of that name that other users run without root. Its files are theirs, so not even root
/// goes by what they say.
fn theirs(name: &str, users: &[(u32, PathBuf)]) -> Option<CliError> {
    let own = sys::user_outside();
    let (user, at) = users.iter().find(|u| u.0 != own || rights::are_of_the_machine())?;
    let why =
        format!("the network {name} is run without root by user {user}, in a namespace of its own");
    // sudo leaves this variable out.
    let place = match at.to_str() {
        Some("/tmp") | None => String::new(),
        Some(at) => format!("env XDG_RUNTIME_DIR={at} "),
    };
    Some(CliError::Invalid(format!(
        "{why}; speak to it as that user: sudo -u '#{user}' {place}heliostat ..."
    )))
}

/// The daemon's address that the environment names.
pub fn controller() -> Option<String> {
    std::env::var("HELIOSTAT_CONTROLLER").ok().filter(|url| !url.is_empty())
}

/// All networks of which this user may know.
pub fn everywhere() -> Vec<FabricNote> {
    let bases = std::collections::BTreeSet::from([ownership::base(), PathBuf::from(rights::NOTES)]);
    bases.iter().flat_map(|b| ownership::running(b)).collect()
}

/// The only one of these notes, the one of that name, or the one whose API is there.
fn one_of(
    running: Vec<FabricNote>,
    name: Option<&str>,
    controller: Option<&str>,
) -> Result<FabricNote, CliError> {
    let names: Vec<String> = running.iter().map(|n| n.fabric.clone()).collect();
    let is_there = |n: &FabricNote| {
        n.api.as_deref().zip(controller).is_some_and(|(api, url)| api == url.trim_end_matches('/'))
    };
    let by_url = name.is_none() && running.len() > 1 && running.iter().any(is_there);
    let mut fit = running
        .into_iter()
        .filter(|n| if by_url { is_there(n) } else { name.is_none_or(|w| w == n.fabric) });
    match (fit.next(), fit.next()) {
        (Some(one), None) => Ok(one),
        (None, _) if names.is_empty() => Err(CliError::Unreachable(NONE.into())),
        (None, _) => Err(CliError::Usage(format!(
            "no network {} is running (running: {})",
            name.unwrap_or(""),
            names.join(", ")
        ))),
        (Some(_), Some(_)) => Err(CliError::Usage(format!(
            "several networks are running ({}); choose one with --name",
            names.join(", ")
        ))),
    }
}

/// Where the network's API listens.
///
/// # Errors
/// It is still being built.
pub fn api(note: &FabricNote) -> Result<&str, CliError> {
    note.api.as_deref().ok_or_else(|| still_built(note))
}

/// The unix socket of a network's API: within a host of the network, 127.0.0.1 is the host's own.
pub fn socket(note: &FabricNote) -> PathBuf {
    ownership::socket(&ownership::base(), note)
}

/// Moves this thread into the network namespace of a node.
///
/// # Errors
/// No such node, or a namespace that cannot be entered.
pub fn enter(note: &FabricNote, node: &str) -> Result<(), CliError> {
    if note.nodes.is_empty() {
        return Err(still_built(note));
    }
    let fd = note.nodes.get(node).ok_or_else(|| {
        let some: Vec<&str> = note.nodes.keys().map(String::as_str).take(8).collect();
        CliError::Invalid(format!(
            "no node {node} in {} (nodes: {} ...)",
            note.fabric,
            some.join(", ")
        ))
    })?;
    let enter = || -> io::Result<()> {
        let process = PathBuf::from(format!("/proc/{}", note.pid));
        let ns = sys::open_ns(&process.join(format!("fd/{fd}")))?;
        if !rights::suffice() {
            sys::setns(sys::open_ns(&process.join("ns/user"))?.as_fd(), sys::Kind::User)?;
        }
        sys::setns(ns.as_fd(), sys::Kind::Network)
    };
    enter().map_err(|e| CliError::Failed(format!("enter {node} of {}: {e}", note.fabric)))
}

/// Lays the network's own `/etc/hosts` and `/etc/resolv.conf` over the machine's, for this process
/// and what it starts.
///
/// # Errors
/// They cannot be written or laid.
pub fn name_hosts(note: &FabricNote, node: &str) -> io::Result<()> {
    let files = ownership::name_files(&ownership::base(), note, node)?;
    sys::own_files(&files.map(|(file, place)| (file, Path::new(place))))
}

fn still_built(note: &FabricNote) -> CliError {
    CliError::Failed(format!("the network {} is still being built; try again", note.fabric))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(names: &[&str]) -> Vec<FabricNote> {
        names.iter().map(|n| FabricNote::starting(n)).collect()
    }

    #[test]
    fn the_only_network_needs_no_name_and_of_several_one_is_named() {
        let chosen = |names: &[&str], name| {
            one_of(notes(names), name, None).map(|n| n.fabric).map_err(|e| e.to_string())
        };
        assert_eq!(chosen(&["a"], None), Ok("a".into()));
        assert_eq!(chosen(&["a", "b"], Some("b")), Ok("b".into()));
        assert_eq!(
            chosen(&["a", "b"], None),
            Err("several networks are running (a, b); choose one with --name".into())
        );
        assert_eq!(
            chosen(&["a", "b"], Some("c")),
            Err("no network c is running (running: a, b)".into())
        );
        assert_eq!(
            chosen(&[], Some("c")),
            Err("no network is running; start one with `heliostat run TOPOLOGY`".into())
        );
    }

    #[test]
    fn a_network_of_another_user_is_changed_only_by_its_name() {
        let mut note = FabricNote::starting("theirs");
        assert_eq!(note.user, Some(sys::caller()));
        note.user = Some(1001);
        let told = named_if_anothers(&note, None, 1000).unwrap_err();
        assert!(
            told.code() == 2
                && told.to_string().contains("started by user 1001")
                && told.to_string().contains("runs, theirs,")
        );
        assert!(
            named_if_anothers(&note, Some("theirs"), 1000).is_ok()
                && named_if_anothers(&note, None, 1001).is_ok()
        );
        note.user = Some(0);
        let told = named_if_anothers(&note, None, 1000).unwrap_err();
        assert!(told.code() == 2 && told.to_string().contains("started by root;"), "{told}");
        assert!(
            named_if_anothers(&note, Some("theirs"), 1000).is_ok()
                && named_if_anothers(&note, None, 0).is_ok()
        );
        note.user = None;
        assert!(
            named_if_anothers(&note, None, 1000).is_ok(),
            "of a version that did not note the user"
        );
    }

    #[test]
    fn a_network_that_another_user_runs_without_root_is_told_as_theirs() {
        let other = sys::uid_gid().0 + 1;
        let told = |at: &str| theirs("x", &[(other, at.into())]).expect("an error").to_string();
        assert!(told("/tmp").contains(&format!("by user {other}")), "{}", told("/tmp"));
        assert!(told("/tmp").ends_with(&format!("sudo -u '#{other}' heliostat ...")));
        let run = format!("/run/user/{other}");
        let env = format!("sudo -u '#{other}' env XDG_RUNTIME_DIR={run} heliostat ...");
        assert!(told(&run).ends_with(&env), "{}", told(&run));
        assert_eq!(theirs("x", &[]), None);
    }

    #[test]
    fn the_environment_tells_which_of_several_is_meant() {
        let running = || {
            let with = |(mut note, api): (FabricNote, &str)| {
                note.api = Some(api.into());
                note
            };
            notes(&["a", "b"])
                .into_iter()
                .zip(["http://127.0.0.1:1", "http://127.0.0.1:2"])
                .map(with)
                .collect::<Vec<_>>()
        };
        let chosen = |name, url| one_of(running(), name, Some(url)).map(|n| n.fabric).ok();
        assert_eq!(chosen(None, "http://127.0.0.1:2/").as_deref(), Some("b"));
        assert_eq!(
            chosen(Some("a"), "http://127.0.0.1:2").as_deref(),
            Some("a"),
            "a name goes before it"
        );
        assert_eq!(
            chosen(None, "http://127.0.0.1:3"),
            None,
            "a daemon elsewhere says nothing of this machine"
        );
    }
}
