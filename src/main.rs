//! The binary: parse arguments, start the log, call the library, turn an error into an exit code.

use std::process::ExitCode;

use heliostat::cli::{Cli, completions, log};

fn main() -> ExitCode {
    completions::answer();
    let ended = Cli::read().and_then(|cli| {
        log::start(cli.log.as_deref(), cli.command.is_in_the_background())?;
        cli.command.run()
    });
    let code = ended.map_or_else(
        |why| {
            log::end(&why);
            ExitCode::from(why.code())
        },
        |()| ExitCode::SUCCESS,
    );
    log::flush();
    code
}
