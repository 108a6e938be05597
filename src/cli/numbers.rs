//! Whole numbers and addresses of the command line, with errors in plain words; numbers of things.

use std::net::SocketAddr;

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
    whole(text)
        .ok()
        .filter(|n| *n > 0)
        .ok_or_else(|| "a whole number is wanted, 1 or more".to_owned())
}

/// An address and a port to listen on.
///
/// # Errors
/// What is wanted, and for what is nearly one, which it would be.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let rest = text.trim_start_matches("http://").trim_end_matches('/');
    let (host, port) = rest.rsplit_once(':').unwrap_or(("", rest));
    let host = if matches!(host, "" | "localhost" | "*") { "127.0.0.1" } else { host };
    let meant: Option<SocketAddr> = format!("{host}:{port}").parse().ok();
    let hint = meant.map_or(String::new(), |m| format!("; did you mean {m}?"));
    Err(format!(
        "an address and a port are wanted, such as 127.0.0.1:7447 or [::1]:7447: numbers, no name{hint}"
    ))
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
    fn an_address_that_is_none_is_told_what_it_would_be() {
        let listen = |text| {
            Cli::try_parse_from(["heliostat", "run", "hybrid-4x2", "--listen", text])
                .map(drop)
                .map_err(|e| e.to_string())
        };
        for (text, meant) in [
            ("7807", "127.0.0.1:7807"),
            (":7807", "127.0.0.1:7807"),
            ("localhost:7807", "127.0.0.1:7807"),
            ("http://127.0.0.1:7807/", "127.0.0.1:7807"),
        ] {
            let told = listen(text).unwrap_err();
            assert!(
                told.contains("such as 127.0.0.1:7447")
                    && told.contains(&format!("did you mean {meant}?")),
                "{told}"
            );
        }
        assert!(
            listen("here:x").is_err_and(
                |told| told.contains("numbers, no name") && !told.contains("did you mean")
            )
        );
        assert!(
            ["127.0.0.1:0", "[::1]:7447", "0.0.0.0:1"].into_iter().all(|text| listen(text).is_ok())
        );
    }

    #[test]
    fn numbers_are_refused_in_plain_words() {
        let run =
            ["heliostat", "simulate", "hybrid-4x2", "--policy", "varys", "--workload", "facebook"];
        let said = |option: [&str; 2]| {
            Cli::try_parse_from(run.into_iter().chain(option)).map(drop).map_err(|e| e.to_string())
        };
        assert_eq!(said(["--seed", "7"]), Ok(()));
        for wrong in ["x", "1.5", ""] {
            assert!(
                said(["--seed", wrong]).unwrap_err().contains("a whole number is wanted, 0 to"),
                "{wrong}"
            );
        }
        assert!(
            said(["--scale", "0"]).unwrap_err().contains("a whole number is wanted, 1 or more")
        );
    }

    #[test]
    fn one_thing_is_no_many() {
        let told = [(0, "coflow"), (1, "coflow"), (2, "coflow"), (1, "switch"), (3, "switch")]
            .map(|(n, what)| several(n, what));
        assert_eq!(told, ["0 coflows", "1 coflow", "2 coflows", "1 switch", "3 switches"]);
    }
}
