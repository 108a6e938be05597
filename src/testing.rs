//! What unit tests of all crates share: each crate has this file as its module `testing`.
#![allow(dead_code, reason = "no crate needs all of it")]

use std::path::PathBuf;

use proptest::test_runner::{Config, FileFailurePersistence};

/// `cases` cases where proptest itself draws 256, its default. `PROPTEST_CASES` changes both in the
/// same ratio: `scripts/test` draws a quarter, a night's run ten times as many. What failed once
/// stands beside the test, in a file `.seeds`.
pub fn drawn(cases: u32) -> Config {
    let of_256 = Config::default();
    let cases = (u64::from(cases) * u64::from(of_256.cases)).div_ceil(256);
    let seeds = FileFailurePersistence::WithSource("seeds");
    Config {
        cases: u32::try_from(cases).unwrap_or(u32::MAX),
        failure_persistence: Some(Box::new(seeds)),
        ..of_256
    }
}

/// A file or folder of the repository.
pub fn repository(path: &str) -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    // A crate in src, or the one at the top.
    if !root.join("topologies").is_dir() {
        root = root.join("../..");
    }
    root.join(path)
}

/// The text of a file of the repository.
pub fn shipped(path: &str) -> String {
    std::fs::read_to_string(repository(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// A folder of real traces, which are not shipped; says that its test is skipped where there is
/// none.
pub fn traces(folder: &str) -> Option<PathBuf> {
    let dir = std::env::var_os("HELIOSTAT_TRACES")
        .map_or_else(|| repository("../shared/traces"), Into::into)
        .join(folder);
    if !dir.is_dir() {
        eprintln!("SKIP {}: no {}", std::thread::current().name().unwrap_or("test"), dir.display());
        return None;
    }
    Some(dir)
}
