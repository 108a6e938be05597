//! The documentation holds: its shell blocks run, its tables of results are complete, and its links
//! lead somewhere.

mod blocks;
mod labs;
mod links;
mod output;
mod yaml;

use std::path::{Path, PathBuf};

/// A file of the repository.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn text(path: &str) -> String {
    std::fs::read_to_string(file(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Every document, from the root of the repository.
fn documents() -> Vec<String> {
    let in_folder = |folder: &str| {
        let entries = std::fs::read_dir(file(folder))
            .expect("a folder")
            .map(|e| e.expect("an entry").file_name());
        let names = entries
            .map(|n| n.into_string().expect("a name in UTF-8"))
            .filter(|n| n.ends_with(".md"));
        names.map(|n| format!("{folder}{n}")).collect::<Vec<_>>()
    };
    let mut all = ["", "docs/", "docs/experiments/", "docs/labs/"]
        .into_iter()
        .flat_map(in_folder)
        .collect::<Vec<_>>();
    all.sort();
    all
}
