//! The public items of `heliostat-circuits` and `heliostat-base`, which others use as libraries, as
//! a snapshot.
//!
//! A line that goes or changes asks for a new version of the crate (semver). `INSTA_UPDATE=always`
//! takes what was meant.

use std::path::Path;

use super::tidy::{Source, rust_files};

/// Public items in a folder: their places and signatures, sorted.
fn public_items(folder: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![];
    rust_files(&root.join(folder), &mut files);
    let mut items = vec![];
    for file in files {
        let name = file.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
        let source = Source::new(&name, &std::fs::read_to_string(&file).expect("a source"));
        let code: Vec<&str> = source.code().map(|(_, line)| line.trim()).collect();
        for (n, line) in code.iter().enumerate().filter(|(_, line)| line.starts_with("pub ")) {
            // A function's signature may take several lines.
            let ends = |l: &&str| !line.contains("fn ") || l.contains('{') || l.ends_with(';');
            let last = code[n..].iter().position(ends).unwrap_or(0);
            let whole = code[n..=n + last].join(" ");
            // However rustfmt breaks the lines.
            let whole = whole.replace("( ", "(").replace(", )", ")");
            let signature =
                whole.split(" {").next().unwrap_or("").trim_end_matches([';', ',', ' ', '[', '=']);
            items.push(format!("{}: {signature}", source.place));
        }
    }
    items.sort();
    items.join("\n")
}

#[test]
fn the_public_items_of_the_circuits_are_as_they_were() {
    insta::assert_snapshot!(public_items("src/circuits"));
}

#[test]
fn the_public_items_of_the_base_are_as_they_were() {
    insta::assert_snapshot!(public_items("src/base"));
}
