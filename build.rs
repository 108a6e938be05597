//! Puts files where the sources include them: Apache ECharts for `src/api/page`, and the shipped files for `src/config/shipped.rs`.
//!
//! ECharts draws the charts of the web page and of reports.
//! The crate `charming` carries the file as its project releases it, and cargo pins that crate by its checksum; so a build needs neither
//! Node.js nor a copy of the library in this repository. Cargo says where the crate's sources are.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The file in the sources of `charming`.
const ECHARTS: &str = "src/asset/echarts-5.5.1.min.js";

/// The directories of the shipped files.
const SHIPPED: [&str; 3] = ["topologies", "policies", "workloads"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=Cargo.lock");
    println!("cargo::rerun-if-env-changed=HELIOSTAT_REVISION");
    if let Some(revision) = revision() {
        println!("cargo::rustc-env=HELIOSTAT_REVISION={revision}");
    }
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo names the output directory"));
    write(&out.join("shipped.rs"), shipped().as_bytes());
    let from = sources_of("charming").join(ECHARTS);
    let text = fs::read(&from).unwrap_or_else(|e| panic!("{}: {e}; another version of charming? Correct build.rs", from.display()));
    write(&out.join("echarts.js"), &text);
}

/// The git revision of a release build, as results of live runs tell it: what the environment says, or what git does. Other builds have
/// none, so that a commit does not compile them again.
fn revision() -> Option<String> {
    if let Ok(given) = env::var("HELIOSTAT_REVISION") {
        return Some(given).filter(|r| !r.is_empty());
    }
    if env::var("PROFILE").as_deref() != Ok("release") {
        return None;
    }
    let root = env::var("CARGO_MANIFEST_DIR").ok()?;
    let git = |words: &[&str]| {
        let told = Command::new("git").arg("-C").arg(&root).args(words).output().ok().filter(|o| o.status.success())?;
        String::from_utf8(told.stdout).ok().map(|text| text.trim().to_owned())
    };
    // Sources of a package, or inside of another repository, have none of their own.
    let top = git(&["rev-parse", "--show-toplevel"]).filter(|top| Path::new(top) == Path::new(&root))?;
    println!("cargo::rerun-if-changed={top}/src");
    for name in ["HEAD", "index"] {
        let file = git(&["rev-parse", "--path-format=absolute", "--git-path", name])?;
        println!("cargo::rerun-if-changed={file}");
    }
    git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
}

fn write(to: &Path, text: &[u8]) {
    fs::write(to, text).unwrap_or_else(|e| panic!("{}: {e}", to.display()));
}

/// A constant for each directory of shipped files: their names without `.yaml`, sorted, and their texts.
fn shipped() -> String {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo names the package's directory"));
    let mut text = String::new();
    for directory in SHIPPED {
        println!("cargo::rerun-if-changed={directory}");
        let list = fs::read_dir(root.join(directory)).unwrap_or_else(|e| panic!("{directory}: {e}"));
        let mut files: Vec<PathBuf> = list.map(|f| f.expect("a directory that can be read").path()).collect();
        files.retain(|f| f.extension().is_some_and(|e| e == "yaml"));
        files.sort();
        let _ = writeln!(text, "const {}: &[(&str, &str)] = &[", directory.to_uppercase());
        for file in files {
            let (name, inside) = (file.file_stem().expect("a name"), file.strip_prefix(&root).expect("a file in the package"));
            // The package's directory is found by the compiler: a target directory may be shared by copies of the package.
            let _ = writeln!(text, "    ({name:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/\", {inside:?}))),");
        }
        text.push_str("];\n");
    }
    text
}

/// The directory of a dependency's sources, by `cargo metadata`.
fn sources_of(package: &str) -> PathBuf {
    let var = |name: &str| env::var(name).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut cargo = Command::new(var("CARGO"));
    cargo.args(["metadata", "--format-version=1", "--locked", "--filter-platform", &var("TARGET"), "--manifest-path"]);
    let out = cargo.arg(Path::new(&var("CARGO_MANIFEST_DIR")).join("Cargo.toml")).output().expect("cargo starts");
    assert!(out.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&out.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&out.stdout).expect("cargo metadata is JSON");
    let all = metadata["packages"].as_array().expect("a list of packages");
    let found = all.iter().find(|p| p["name"] == package).and_then(|p| p["manifest_path"].as_str());
    let manifest = found.unwrap_or_else(|| panic!("cargo metadata does not list {package}"));
    Path::new(manifest).parent().expect("a manifest stands in a directory").into()
}
