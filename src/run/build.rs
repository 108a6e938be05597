//! Puts the shipped files where `config/shipped.rs` includes them: all of `topologies`, `policies`
//! and `workloads`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

/// The directories of the shipped files.
const SHIPPED: [&str; 3] = ["topologies", "policies", "workloads"];

/// Where they are, from this crate.
const ROOT: &str = "../..";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo names the output directory"))
        .join("shipped.rs");
    fs::write(&out, shipped()).unwrap_or_else(|e| panic!("{}: {e}", out.display()));
}

/// A constant for each directory of shipped files: their names without `.yaml`, sorted, and their
/// texts.
fn shipped() -> String {
    let root =
        PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo names the package's directory"))
            .join(ROOT);
    let mut text = String::new();
    for directory in SHIPPED {
        println!("cargo::rerun-if-changed={ROOT}/{directory}");
        let list =
            fs::read_dir(root.join(directory)).unwrap_or_else(|e| panic!("{directory}: {e}"));
        let mut files: Vec<PathBuf> =
            list.map(|f| f.expect("a directory that can be read").path()).collect();
        files.retain(|f| f.extension().is_some_and(|e| e == "yaml"));
        files.sort();
        let _ = writeln!(text, "const {}: &[(&str, &str)] = &[", directory.to_uppercase());
        for file in files {
            let (name, inside) = (
                file.file_stem().expect("a name"),
                file.strip_prefix(&root).expect("a file in the repository"),
            );
            // The crate's directory is found by the compiler: a target directory may be shared by
            // copies of the repository.
            let _ = writeln!(
                text,
                "    ({name:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/{ROOT}/\", {inside:?}))),"
            );
        }
        text.push_str("];\n");
    }
    text
}
