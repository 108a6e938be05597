//! Tells the program its git revision.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=HELIOSTAT_REVISION");
    if let Some(revision) = revision() {
        println!("cargo::rustc-env=HELIOSTAT_REVISION={revision}");
    }
}

/// The git revision of a release build, as results of live runs tell it: what the environment says,
/// or what git does. Other builds have none, so that a commit does not compile them again.
fn revision() -> Option<String> {
    if let Ok(given) = env::var("HELIOSTAT_REVISION") {
        return Some(given).filter(|r| !r.is_empty());
    }
    if env::var("PROFILE").as_deref() != Ok("release") {
        return None;
    }
    let root = env::var("CARGO_MANIFEST_DIR").ok()?;
    let git = |words: &[&str]| {
        let told = Command::new("git")
            .arg("-C")
            .arg(&root)
            .args(words)
            .output()
            .ok()
            .filter(|o| o.status.success())?;
        String::from_utf8(told.stdout).ok().map(|text| text.trim().to_owned())
    };
    // Sources of a package, or inside of another repository, have none of their own.
    let top =
        git(&["rev-parse", "--show-toplevel"]).filter(|top| Path::new(top) == Path::new(&root))?;
    println!("cargo::rerun-if-changed={top}/src");
    for name in ["HEAD", "index"] {
        let file = git(&["rev-parse", "--path-format=absolute", "--git-path", name])?;
        println!("cargo::rerun-if-changed={file}");
    }
    git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
}
