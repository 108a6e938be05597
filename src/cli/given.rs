//! The command line as it is parsed, and which of its options a result depends on.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

use super::{Cli, Command};

/// Options that change no number of a result, or that it holds in another place.
const APART: [&str; 33] = [
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
    /// The arguments of this process. Ends it where they make no sense.
    pub fn read() -> Self {
        let mut matches = Self::command().get_matches();
        let read = Self::from_arg_matches_mut(&mut matches.clone());
        read.map_or_else(|e| e.exit(), |cli| cli.noted(&mut matches))
    }

    /// Arguments, the first of which is the program.
    ///
    /// # Errors
    /// Where they make no sense.
    pub fn try_read_from(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Self, clap::Error> {
        let mut matches = Self::command().try_get_matches_from(arguments)?;
        Ok(Self::from_arg_matches_mut(&mut matches.clone())?.noted(&mut matches))
    }

    fn noted(mut self, matches: &mut ArgMatches) -> Self {
        let Some((name, matches)) = matches.remove_subcommand() else { return self };
        match &mut self.command {
            Command::Simulate(args) => args.given = shaping(&name, &matches),
            Command::Run(args) => args.given = shaping(&name, &matches),
            Command::Schedule(args) => args.given = shaping(&name, &matches),
            _ => {}
        }
        self
    }
}

/// The options of a subcommand that were given and that its result depends on, with their values.
fn shaping(name: &str, matches: &ArgMatches) -> BTreeMap<String, String> {
    let command = Cli::command();
    let known = command.find_subcommand(name).into_iter().flat_map(clap::Command::get_arguments);
    let shaping = known.filter_map(|a| Some((a.get_long().filter(|long| !APART.contains(long))?, a.get_id().as_str())));
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
        let (Command::Simulate(simulate::Args { given, .. }) | Command::Run(crate::cli::run::Args { given, .. })) = cli.command else {
            panic!("{text}")
        };
        given.into_iter().collect()
    }

    #[test]
    fn options_that_shape_a_result_are_kept_with_their_values() {
        let of = |all: &[(&str, &str)]| all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<Vec<_>>();
        let plain = "heliostat simulate net --policy a --workload w";
        assert_eq!(given(plain), of(&[]));
        let neutral = format!("{plain} --seed 3 --json x.json -o csv --threads 2 --timing --allow-fallback --bucket 1s");
        assert_eq!(given(&neutral), of(&[]));
        let shaped = format!("{plain} --scale 10 --coflows 5 --fold --fault r0.tor=down@1s --fault r1.tor=down@2s --until 4s");
        let want = [("coflows", "5"), ("fault", "r0.tor=down@1s,r1.tor=down@2s"), ("fold", "true"), ("scale", "10"), ("until", "4s")];
        assert_eq!(given(&shaped), of(&want));
        assert_eq!(given("heliostat run net --workload w --scale 4 --listen 127.0.0.1:0 --force"), of(&[("scale", "4")]));
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
