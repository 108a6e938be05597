//! `heliostat man`: manual pages, made from the same words as `--help`.

use std::path::PathBuf;

use clap::CommandFactory;

use super::{Cli, CliError};

/// Writes the manual pages, one a subcommand, into a directory: heliostat man
/// /usr/local/share/man/man1
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The directory; it is made if it is not there
    directory: PathBuf,
}

/// Runs the subcommand.
///
/// # Errors
/// A directory that cannot be written.
pub fn run(args: &Args) -> Result<(), CliError> {
    let written = std::fs::create_dir_all(&args.directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), &args.directory));
    written.map_err(|e| CliError::Failed(format!("{}: {e}", args.directory.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subcommand_has_its_page() {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().join("man1");
        run(&Args { directory: directory.clone() }).unwrap();
        let command = Cli::command();
        for s in command.get_subcommands().filter(|s| !s.is_hide_set()) {
            let page =
                std::fs::read_to_string(directory.join(format!("heliostat-{}.1", s.get_name())))
                    .unwrap();
            assert!(
                page.contains(".SH SYNOPSIS") && page.contains(".SH OPTIONS"),
                "{}",
                s.get_name()
            );
        }
        assert!(
            std::fs::read_to_string(directory.join("heliostat.1"))
                .unwrap()
                .contains("heliostat\\-capture(1)")
        );
        assert!(
            run(&Args { directory: "/dev/null/man".into() })
                .unwrap_err()
                .to_string()
                .contains("/dev/null/man")
        );
    }
}
