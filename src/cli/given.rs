//! The command line as it is parsed, and which of its options a result depends on.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, CommandFactory as _, FromArgMatches as _};

use super::changes::KeyChanges;
use super::workload::CoflowMix;
use super::{Cli, CliError, Command};
use crate::config::shipped::Shelf;

/// Options that change no number of a result, or that it holds in another place.
const APART: [&str; 34] = [
    "allow-fallback",
    "attach",
    "baseline",
    "bucket",
    "detach",
    "detached",
    "events",
    "explain",
    "force",
    "jobs",
    "journal",
    "json",
    "listen",
    "log",
    "mechanism",
    "name",
    "output",
    "place-by-seed",
    "policy",
    "read-token-file",
    "record",
    "repeat",
    "rows",
    "schedule",
    "seed",
    "set",
    "summary",
    "threads",
    "timeline",
    "timing",
    "token",
    "token-file",
    "watch",
    "workload",
];

impl Cli {
    /// The arguments of this process. Prints help, or the version, and ends it where they ask for
    /// that.
    ///
    /// # Errors
    /// Where they make no sense.
    pub fn read() -> Result<Self, CliError> {
        Self::try_read_from(std::env::args_os()).map_err(|e| {
            // What asks for help, or for nothing, has no such beginning.
            let text = e.to_string();
            text.strip_prefix("error: ")
                .map_or_else(|| e.exit(), |why| CliError::Usage(why.trim_end().into()))
        })
    }

    /// Arguments, the first of which is the program.
    ///
    /// # Errors
    /// Where they make no sense.
    pub fn try_read_from(
        arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let mut command = with_short_help(with_negatives(Self::command()));
        let mut matches = command.try_get_matches_from_mut(arguments).map_err(in_plain_words)?;
        let read =
            Self::from_arg_matches_mut(&mut matches.clone()).map_err(|e| e.format(&mut command))?;
        Ok(read.noted(&mut matches))
    }

    fn noted(mut self, matches: &mut ArgMatches) -> Self {
        let Some((name, matches)) = matches.remove_subcommand() else { return self };
        match &mut self.command {
            Command::Simulate(args) => {
                args.given = with_changes(shaping(&name, &matches), &args.changes)
            }
            Command::Run(args) => {
                args.given = with_changes(shaping(&name, &matches), &args.changes)
            }
            Command::Schedule(args) => args.given = shaping(&name, &matches),
            _ => {}
        }
        self
    }
}

/// Options whose values may begin with a minus sign, so that a negative number is refused as a
/// number and not as an option.
fn with_negatives(command: clap::Command) -> clap::Command {
    let number = |a: clap::Arg| {
        if a.is_positional() || !a.get_action().takes_values() {
            a
        } else {
            a.allow_negative_numbers(true)
        }
    };
    command.mut_args(number).mut_subcommands(with_negatives)
}

/// A command with more options than this prints the short help by --help, too, and all that there
/// is to say by --help-all.
const MANY: usize = 20;
/// Headings whose options short help leaves out.
const LEFT_OUT: [&str; 2] = ["Model of tasks", "Errors of foresight (jobs)"];

/// Help that fits three screens.
fn with_short_help(command: clap::Command) -> clap::Command {
    let flag = |name, action| clap::Arg::new(name).long(name).action(action);
    let is_left_out = |a: &clap::Arg| a.get_help_heading().is_some_and(|h| LEFT_OUT.contains(&h));
    let short = |c: clap::Command| {
        if c.get_arguments().count() <= MANY {
            return c;
        }
        let headings = if c.get_arguments().any(is_left_out) {
            format!(", and options: {}", LEFT_OUT.join(", ").to_lowercase())
        } else {
            String::new()
        };
        c.mut_args(|a| if is_left_out(&a) { a.hide_short_help(true) } else { a })
            .disable_help_flag(true)
            .arg(flag("help", ArgAction::HelpShort).short('h').help("Print help"))
            .arg(flag("help-all", ArgAction::HelpLong).help("Print all help"))
            .after_help(format!("--help-all and the man pages (heliostat man DIR) have more about each option{headings}."))
    };
    command.mut_subcommands(short)
}

/// What is wrong with the arguments, where the parser says it in words of Rust or does not see what
/// was meant. A name that stands where no option is could be a policy's or a workload's.
fn in_plain_words(mut e: clap::Error) -> clap::Error {
    if let Some(number) = e.source().and_then(|why| why.downcast_ref::<ParseIntError>()) {
        let large = matches!(number.kind(), IntErrorKind::PosOverflow);
        let wanted =
            if large { "this number is too large" } else { "a whole number is wanted, 0 or more" };
        let of = |kind| e.get(kind).map(ToString::to_string).unwrap_or_default();
        let (value, option) = (of(ContextKind::InvalidValue), of(ContextKind::InvalidArg));
        return clap::Error::raw(
            e.kind(),
            format!("invalid value '{value}' for '{option}': {wanted}\n"),
        );
    }
    let Some(ContextValue::String(word)) = e.get(ContextKind::InvalidArg) else { return e };
    let usage = e.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    if e.kind() == ErrorKind::UnknownArgument
        && !word.starts_with('-')
        && ["run", "simulate"].iter().any(|c| usage.contains(c))
    {
        let is_policy = Shelf::Policies.find(word).is_some();
        let is_workload = Shelf::Workloads.find(word).is_some()
            || CoflowMix::described().iter().any(|(mix, _)| mix == word);
        let tip = match (is_policy, is_workload) {
            (true, false) => format!("a policy is named by '--policy {word}'"),
            (false, true) => format!("a workload is named by '--workload {word}'"),
            _ => {
                format!("a policy is named by '--policy {word}', a workload by '--workload {word}'")
            }
        };
        e.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    } else if e.kind() == ErrorKind::UnknownArgument
        && e.get(ContextKind::Suggested).is_none_or(|tip| tip.to_string().contains("use '-- "))
    {
        // No value of ours begins with a minus sign.
        let tip = elsewhere(word, &usage).map(|own| format!("here it is '{own}'").into());
        e.insert(ContextKind::Suggested, ContextValue::StyledStrs(tip.into_iter().collect()));
    }
    e
}

/// What a command has for an option that others call otherwise.
fn elsewhere(word: &str, usage: &str) -> Option<&'static str> {
    let alike: &[(&str, &str)] = match word {
        "--json" => &[("output", "-o json"), ("to", "--to FILE")],
        "--csv" => &[("output", "-o csv")],
        "-o" | "--output" | "--out" => &[("to", "--to FILE"), ("out", "--out DIR")],
        "--to" => &[("out", "--out DIR"), ("json", "--json FILE")],
        _ => return None,
    };
    let command = Cli::command();
    let own = command.get_subcommands().find(|c| usage.split(' ').any(|w| w == c.get_name()))?;
    let has = |long: &str| own.get_arguments().any(|a| a.get_long() == Some(long));
    alike.iter().find(|(long, _)| has(long)).map(|a| a.1)
}

/// Each changed key counts as an option of its own.
fn with_changes(
    mut given: BTreeMap<String, String>,
    changes: &KeyChanges,
) -> BTreeMap<String, String> {
    given.extend(changes.all.iter().map(|c| (c.key.clone(), c.text.clone())));
    given
}

/// The options of a subcommand that were given and that its result depends on, with their values.
fn shaping(name: &str, matches: &ArgMatches) -> BTreeMap<String, String> {
    let command = Cli::command();
    let known = command.find_subcommand(name).into_iter().flat_map(clap::Command::get_arguments);
    let shaping = known.filter_map(|a| {
        Some((a.get_long().filter(|long| !APART.contains(long))?, a.get_id().as_str()))
    });
    let given = shaping.filter(|(_, id)| matches.try_contains_id(id).is_ok_and(|there| there));
    let given = given.filter(|(_, id)| matches.value_source(id) == Some(ValueSource::CommandLine));
    let text = |id: &str| {
        let raw = matches.get_raw(id).into_iter().flatten();
        raw.map(|v| v.to_string_lossy().into_owned()).collect::<Vec<_>>().join(",")
    };
    given.map(|(long, id)| (long.to_owned(), text(id))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::simulate;

    fn given(text: &str) -> Vec<(String, String)> {
        let cli = Cli::try_read_from(text.split(' ')).unwrap();
        let (Command::Simulate(simulate::Args { given, .. })
        | Command::Run(crate::cli::run::Args { given, .. })) = cli.command
        else {
            panic!("{text}")
        };
        given.into_iter().collect()
    }

    #[test]
    fn help_fits_three_screens_and_all_of_it_can_be_had() {
        let help = |c: &str, option: &str| {
            Cli::try_read_from(["heliostat", c, option]).unwrap_err().to_string()
        };
        for c in Cli::command().get_subcommands().map(clap::Command::get_name) {
            let lines = help(c, "--help").lines().count();
            assert!(lines < 120, "{c}: {lines} lines");
        }
        let (short, all) = (help("simulate", "--help"), help("simulate", "--help-all"));
        assert!(
            !short.contains("--map-rate")
                && short.contains("--help-all and the man pages")
                && short == help("simulate", "-h")
        );
        assert!(all.contains("--map-rate") && all.lines().count() > short.lines().count());
    }

    #[test]
    fn what_is_no_option_is_refused_with_a_way_on() {
        let why = |text: &str| Cli::try_read_from(text.split(' ')).unwrap_err().to_string();
        for command in ["simulate", "run"] {
            let said = |word| why(&format!("heliostat {command} hybrid-8x2 {word}"));
            assert!(said("mine").contains("'--policy mine', a workload by '--workload mine'"));
            for (word, tip) in [
                ("c-through facebook", "tip: a policy is named by '--policy c-through'\n"),
                ("facebook", "tip: a workload is named by '--workload facebook'\n"),
                ("shuffle-4", "tip: a workload is named by '--workload shuffle-4'\n"),
            ] {
                assert!(said(word).contains(tip), "{}", said(word));
            }
        }
        for (option, value) in [("--coflows", "-5"), ("--seed", "-1"), ("--scale", "-2")] {
            let said =
                why(&format!("heliostat simulate net --policy a --workload w {option} {value}"));
            assert!(said.contains(&format!("invalid value '{value}' for '{option}")), "{said}");
            assert!(said.contains("a whole number is wanted"), "{said}");
        }
        for (text, tip) in [
            ("sweep --to x g", "tip: here it is '--out DIR'"),
            ("list --json", "tip: here it is '-o json'"),
            ("doctor --json", "tip: here it is '-o json'"),
            ("plot -o x y", "tip: here it is '--to FILE'"),
            ("list --nothing", "'--nothing' found"),
        ] {
            let said = why(&format!("heliostat {text}"));
            assert!(said.contains(tip) && !said.contains("use '-- "), "{said}");
        }
        let said = why("heliostat simulate net --policy a --polcy b");
        assert!(
            said.contains("similar argument exists: '--policy'") && !said.contains("a workload by"),
            "{said}"
        );
    }

    #[test]
    fn options_that_shape_a_result_are_kept_with_their_values() {
        let of = |all: &[(&str, &str)]| {
            all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<Vec<_>>()
        };
        let plain = "heliostat simulate net --policy a --workload w";
        assert_eq!(given(plain), of(&[]));
        let neutral = format!(
            "{plain} --seed 3 --json x.json -o csv --threads 2 --timing --allow-fallback --bucket 1s"
        );
        assert_eq!(given(&neutral), of(&[]));
        let shaped = format!(
            "{plain} --scale 10 --coflows 5 --fold --fault r0.tor=down@1s --fault r1.tor=down@2s --until 4s"
        );
        let want = [
            ("coflows", "5"),
            ("fault", "r0.tor=down@1s,r1.tor=down@2s"),
            ("fold", "true"),
            ("scale", "10"),
            ("until", "4s"),
        ];
        assert_eq!(given(&shaped), of(&want));
        assert_eq!(
            given("heliostat run net --workload w --scale 4 --listen 127.0.0.1:0 --force"),
            of(&[("scale", "4")])
        );
        let jobs = "heliostat simulate net --policy a --jobs j --first 3 --model corral";
        assert_eq!(given(jobs), of(&[("first", "3"), ("model", "corral")]));
    }

    #[test]
    fn what_is_left_apart_is_an_option() {
        let command = Cli::command();
        let all: Vec<&str> = ["run", "simulate", "schedule"]
            .into_iter()
            .flat_map(|c| command.find_subcommand(c).unwrap().get_opts())
            .filter_map(|o| o.get_long())
            .collect();
        let gone: Vec<&&str> = APART.iter().filter(|a| **a != "log" && !all.contains(a)).collect();
        assert!(gone.is_empty(), "{gone:?}");
    }
}
