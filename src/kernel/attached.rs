//! Nodes that Mininet made: the processes whose namespaces they are.
//!
//! `mininet/hybrid.py` writes a file for every network that is up. A process is believed to be a
//! node only while it is the shell that Mininet started for it. Its namespace is never the one that
//! we run in: that one's `eth0` is the machine's.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{netns, sys};

/// Where the networks that are up are announced: a file `NAME.json` each.
pub const DIRECTORY: &str = "/run/heliostat/attach";

/// The process of every node, by the node's name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Processes {
    nodes: BTreeMap<String, u32>,
}

impl Processes {
    /// Reads a file's content: `{"nodes": {"tor0": 4711, ...}}`; other keys are ignored.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|e| e.to_string())
    }

    /// Whether it names this node.
    pub fn names(&self, node: &str) -> bool {
        self.nodes.contains_key(node)
    }

    /// Opens a node's namespace.
    ///
    /// # Errors
    /// `NotFound` when there is no such node any more; else what the kernel refused.
    pub fn open(&self, node: &str) -> io::Result<OwnedFd> {
        let gone = |why: String| io::Error::new(io::ErrorKind::NotFound, why);
        let pid = *self.nodes.get(node).ok_or_else(|| gone(format!("no node {node}")))?;
        let path = PathBuf::from(format!("/proc/{pid}/ns/net"));
        let ns = sys::open_ns(&path)?;
        // After opening: the number may have gone to another process before.
        if !is_shell_of(node, pid) {
            return Err(gone(format!("process {pid} is not Mininet's node {node}")));
        }
        if netns::identity(&path)? == netns::identity(Path::new("/proc/self/ns/net"))? {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("node {node} has no network namespace of its own"),
            ));
        }
        Ok(ns)
    }

    /// The first node that is gone, and its process.
    pub fn lost(&self) -> Option<(&str, u32)> {
        self.nodes
            .iter()
            .find(|(name, pid)| !is_shell_of(name, **pid))
            .map(|(name, pid)| (name.as_str(), *pid))
    }

    /// The nodes' names.
    pub fn node_names(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(String::as_str)
    }
}

/// Whether a process is the shell of the node: Mininet gives it the name as its last argument.
fn is_shell_of(node: &str, pid: u32) -> bool {
    let name = format!("mininet:{node}");
    std::fs::read(format!("/proc/{pid}/cmdline"))
        .is_ok_and(|line| line.split(|&b| b == 0).any(|word| word == name.as_bytes()))
}

/// The networks that are announced, by name. Files that cannot be read are left out.
pub fn announced() -> BTreeMap<String, Processes> {
    let files = std::fs::read_dir(DIRECTORY).into_iter().flatten().flatten();
    let read = |e: std::fs::DirEntry| {
        let name = e.file_name().into_string().ok()?.strip_suffix(".json")?.to_owned();
        Some((name, Processes::parse(&std::fs::read_to_string(e.path()).ok()?).ok()?))
    };
    files.filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_file_names_processes() {
        let text = r#"{"topology": "/t.yaml", "name": "t", "mark": "mininet", "nodes": {"eps": 1, "h0-0": 2}}"#;
        let p = Processes::parse(text).expect("valid");
        assert_eq!(p.node_names().collect::<Vec<_>>(), ["eps", "h0-0"]);
        assert!(p.names("eps") && !p.names("tor0"));
    }

    #[test]
    fn only_mininets_shell_is_a_node() {
        let text = format!(r#"{{"nodes": {{"eps": {}}}}}"#, std::process::id());
        let p = Processes::parse(&text).expect("valid");
        assert_eq!(p.lost(), Some(("eps", std::process::id())));
        let e = p.open("eps").expect_err("a test is no node");
        assert!(e.to_string().contains("is not Mininet's node eps"), "{e}");
        assert_eq!(p.open("tor0").expect_err("not named").kind(), io::ErrorKind::NotFound);
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn no_text_panics(text in ".{0,200}") {
            let _ = Processes::parse(&text);
            let _ = Processes::parse(&format!("{{\"nodes\": {{\"eps\": {text}}}}}"));
        }
    }
}
