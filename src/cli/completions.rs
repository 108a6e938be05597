//! `heliostat completions`: a shell's function that asks this program for what fits: commands,
//! options, files, and names, which change.

use clap::CommandFactory;
use clap_complete::engine::ArgValueCompleter;
use clap_complete::env::{CompleteEnv, Shells};

use super::{Cli, CliError, print};

mod names;

/// Prints the completions of a shell, of words and of names that change, such as running networks
/// and their hosts
///
/// Switched on in bash by `source <(heliostat completions bash)`, in zsh by `source <(heliostat
/// completions zsh)`, in fish by `heliostat completions fish | source`; put the line into
/// ~/.bashrc, ~/.zshrc or ~/.config/fish/config.fish. The Debian package does so for all users.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The shell
    shell: clap_complete::Shell,
}

/// By this variable of the environment the shell's function asks this program.
const ASKED: &str = "HELIOSTAT_COMPLETE";

/// In a directory of zsh's functions the file itself is the function: its first call defines the
/// other one, and shall complete, too.
const AUTOLOADED: &str = r#"
if [ "$funcstack[1]" = "_heliostat" ]; then
    _clap_dynamic_completer_heliostat "$@"
fi
"#;

/// Runs the subcommand.
///
/// # Errors
/// When stdout cannot be written.
pub fn run(args: &Args) -> Result<(), CliError> {
    let (shells, mut out) = (Shells::builtins(), Vec::new());
    let shell = shells
        .completer(&args.shell.to_string())
        .ok_or_else(|| CliError::Usage(format!("no completions for {}", args.shell)))?;
    let written = shell.write_registration(ASKED, "heliostat", "heliostat", &program(), &mut out);
    written.map_err(|e| CliError::Failed(e.to_string()))?;
    if args.shell == clap_complete::Shell::Zsh {
        out.extend_from_slice(AUTOLOADED.as_bytes());
    }
    print(&String::from_utf8_lossy(&out))
}

/// Answers the function of a shell, if it is that which asks, and ends the program.
pub fn answer() {
    CompleteEnv::with_factory(|| with_names(Cli::command(), "")).var(ASKED).complete();
}

/// As this program was called: by its name, or by its place in the file system.
fn program() -> String {
    let called = std::env::args_os().next().unwrap_or_else(|| "heliostat".into());
    let path = std::path::PathBuf::from(&called);
    let place = if path.components().count() > 1 {
        std::path::absolute(&path).unwrap_or(path)
    } else {
        path
    };
    place.to_string_lossy().into_owned()
}

/// The command and those below it, with the names that their arguments take.
fn with_names(command: clap::Command, above: &str) -> clap::Command {
    let place = if above.is_empty() {
        command.get_name().to_owned()
    } else {
        format!("{above} {}", command.get_name())
    };
    let names = |argument: clap::Arg| match names::of(&place, argument.get_id().as_str()) {
        Some(kind) => argument.add(ArgValueCompleter::new(kind)),
        None => argument,
    };
    command.mut_args(names).mut_subcommands(|c| with_names(c, &place))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What fits a word of a command line.
    fn fits(line: &str) -> Vec<String> {
        let words: Vec<std::ffi::OsString> = line.split(' ').map(Into::into).collect();
        let last = words.len() - 1;
        let found =
            clap_complete::engine::complete(&mut with_names(Cli::command(), ""), words, last, None)
                .unwrap();
        found.iter().map(|c| c.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn shipped_names_complete_where_files_do() {
        assert_eq!(fits("heliostat run t.yaml --policy var"), ["varys"]);
        assert_eq!(fits("heliostat run hybrid-8"), ["hybrid-8x2"]);
        assert_eq!(fits("heliostat set policy c-thr"), ["c-through"]);
        assert_eq!(fits("heliostat simulate t --workload facebo"), ["facebook", "facebook-jobs"]);
        assert_eq!(fits("heliostat copy shuffle-8"), ["shuffle-8"]);
        assert!(fits("heliostat plan corral jobs-").contains(&"jobs-8".into()));
        assert!(fits("heliostat check hybrid").contains(&"hybrid-4x2".into()));
        assert!(fits("heliostat simulate t --jobs jobs-2").contains(&"jobs-20".into()));
        // A file of the directory in which the tests run.
        assert!(fits("heliostat check Carg").contains(&"Cargo.toml".into()));
    }

    #[test]
    fn words_that_never_change_complete_as_before() {
        assert_eq!(fits("heliostat exp"), ["experiment"]);
        assert_eq!(fits("heliostat show circ"), ["circuits"]);
        assert!(fits("heliostat traffic bulk --fl").contains(&"--flows".into()));
    }
}
