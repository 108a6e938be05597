//! `heliostat copy`: a shipped file as the beginning of one's own.

use std::path::{Path, PathBuf};

use super::files::write_new;
use super::log::say;
use super::{CliError, print};
use crate::config::nearest::did_you_mean;
use crate::config::shipped::{self, Shelf};

/// Copies a shipped topology, policy or workload into a file, to be changed; or
/// heliostat_external.py, with which a scheduler is written in Python
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Which, as `heliostat list` names it
    name: String,
    /// Where to; - is stdout. A file that is there stays as it is [default: NAME.yaml, or
    /// heliostat_external.py]
    to: Option<PathBuf>,
}

/// The file of the Python package that a program of one's own needs, where the package is not.
pub(super) const EXTERNAL: &str = "heliostat_external.py";

/// Runs the subcommand.
///
/// # Errors
/// No such name, and a file that is there already or cannot be written.
pub fn run(args: &Args) -> Result<(), CliError> {
    let (text, to) = if args.name == EXTERNAL {
        (include_str!("../../python/heliostat/external.py"), EXTERNAL.into())
    } else {
        let file = shipped::find(&args.name).ok_or_else(|| unknown(&args.name))?;
        (file.text, format!("{}.yaml", file.name))
    };
    let to = args.to.clone().unwrap_or_else(|| to.into());
    if to == Path::new("-") {
        return print(text);
    }
    write_new(&to, text)?;
    say!("wrote {}", to.display());
    Ok(())
}

fn unknown(name: &str) -> CliError {
    let shipped = Shelf::ALL.into_iter().flat_map(Shelf::files).map(|f| f.name);
    let names: Vec<&str> = shipped.chain([EXTERNAL]).collect();
    CliError::Usage(format!(
        "nothing of the name {name} is shipped{}\n   `heliostat list` says what is",
        did_you_mean(name, names)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_whole_and_never_replaces_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("mine.yaml");
        let copy = |name: &str| run(&Args { name: name.into(), to: Some(to.clone()) });
        copy("varys").unwrap();
        assert_eq!(
            std::fs::read_to_string(&to).unwrap(),
            include_str!("../../policies/varys.yaml")
        );
        assert!(copy("aalo").unwrap_err().to_string().contains("already"));
        let python = dir.path().join(EXTERNAL);
        run(&Args { name: EXTERNAL.into(), to: Some(python.clone()) }).unwrap();
        let text = std::fs::read_to_string(python).unwrap();
        assert!(text.contains("\ndef serve(") && text.contains("import heliostat_external"));
        let said = copy("heliostat_externl.py").unwrap_err().to_string();
        assert!(said.contains("did you mean `heliostat_external.py`?"), "{said}");
        assert!(copy("hybrid-8x3").unwrap_err().to_string().contains("did you mean `hybrid-8x2`?"));
    }
}
