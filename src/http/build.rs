//! Puts Apache ECharts where `api/page` includes it. It draws the charts of the web page and of
//! reports.
//!
//! The crate `charming` carries the file as its project releases it, and cargo pins that crate by
//! its checksum; so a build needs neither Node.js nor a copy of the library in this repository.
//! Cargo says where the crate's sources are.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The file in the sources of `charming`.
const ECHARTS: &str = "src/asset/echarts-5.5.1.min.js";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    let from = sources_of("charming").join(ECHARTS);
    let to = PathBuf::from(env::var("OUT_DIR").expect("cargo names the output directory"))
        .join("echarts.js");
    fs::copy(&from, &to).unwrap_or_else(|e| {
        panic!("{}: {e}; another version of charming? Correct build.rs", from.display())
    });
}

/// The directory of a dependency's sources, by `cargo metadata`.
fn sources_of(package: &str) -> PathBuf {
    let var = |name: &str| env::var(name).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut cargo = Command::new(var("CARGO"));
    cargo.args([
        "metadata",
        "--format-version=1",
        "--locked",
        "--filter-platform",
        &var("TARGET"),
        "--manifest-path",
    ]);
    let out = cargo
        .arg(Path::new(&var("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .output()
        .expect("cargo starts");
    assert!(out.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&out.stderr));
    let metadata: serde_json::Value =
        serde_json::from_slice(&out.stdout).expect("cargo metadata is JSON");
    let all = metadata["packages"].as_array().expect("a list of packages");
    let found = all.iter().find(|p| p["name"] == package).and_then(|p| p["manifest_path"].as_str());
    let manifest = found.unwrap_or_else(|| panic!("cargo metadata does not list {package}"));
    Path::new(manifest).parent().expect("a manifest stands in a directory").into()
}
