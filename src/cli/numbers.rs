//! Whole numbers of the command line, with errors in plain words; numbers of things.

/// A whole number.
///
/// # Errors
/// What is wanted.
pub fn whole(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("a whole number is wanted, 0 to {}, such as 7", u64::MAX))
}

/// A whole number above zero.
///
/// # Errors
/// What is wanted.
pub fn positive(text: &str) -> Result<u64, String> {
    whole(text).ok().filter(|n| *n > 0).ok_or_else(|| "a whole number is wanted, 1 or more".to_owned())
}

/// A number of things: 1 coflow, 2 coflows, 3 switches.
pub fn several(n: usize, what: &str) -> String {
    let ending = match what {
        _ if n == 1 => "",
        _ if what.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{n} {what}{ending}")
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::several;
    use crate::cli::Cli;

    #[test]
    fn numbers_are_refused_in_plain_words() {
        let run = ["heliostat", "simulate", "hybrid-4x2", "--policy", "varys", "--workload", "facebook"];
        let said = |option: [&str; 2]| Cli::try_parse_from(run.into_iter().chain(option)).map(drop).map_err(|e| e.to_string());
        assert_eq!(said(["--seed", "7"]), Ok(()));
        for wrong in ["x", "1.5", ""] {
            assert!(said(["--seed", wrong]).unwrap_err().contains("a whole number is wanted, 0 to"), "{wrong}");
        }
        assert!(said(["--scale", "0"]).unwrap_err().contains("a whole number is wanted, 1 or more"));
    }

    #[test]
    fn one_thing_is_no_many() {
        let told = [(0, "coflow"), (1, "coflow"), (2, "coflow"), (1, "switch"), (3, "switch")].map(|(n, what)| several(n, what));
        assert_eq!(told, ["0 coflows", "1 coflow", "2 coflows", "1 switch", "3 switches"]);
    }
}
