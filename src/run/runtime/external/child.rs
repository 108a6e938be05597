//! A program that Heliostat starts: a child process that reads questions from its standard input
//! and writes answers to its standard output, a line of JSON each.
//!
//! A thread of its own writes to the child and another one reads from it, so that a child that does
//! neither cannot hold up the control loop. An answer that comes after its time is dropped when the
//! next one is waited for. A program that has ended is not started again.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, TrySendError};
use std::time::{Duration, Instant};

use super::{LONGEST, ProgramLink, spawn};
use crate::circuits::external::{NoAnswer, Privileges};
use crate::kernel::sys;
use crate::runtime::settings::ProgramSpec;

/// The longest time between the end of a program's output and its own, on a busy machine.
const ENDING: Duration = Duration::from_secs(1);
/// Time between two looks whether it has ended.
const LOOK: Duration = Duration::from_millis(1);

/// What every program is given of this process's environment, and what begins with LC_.
const PLAIN: [&str; 7] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR"];

/// A child process. Dropping it ends the process and those that it has started.
pub struct Child {
    process: std::process::Child,
    /// Whether it has been ended and waited for.
    stopped: bool,
    questions: mpsc::SyncSender<String>,
    answers: mpsc::Receiver<io::Result<String>>,
    /// Why it answers no more.
    ended: Option<String>,
}

impl Child {
    /// Starts a program with its arguments in the policy's directory, or where this process is. A
    /// program with a relative path is looked for there.
    ///
    /// # Errors
    /// Why it cannot be started, for people.
    pub fn start(command: &[String], spec: &ProgramSpec) -> Result<Self, String> {
        let (program, arguments) = command.split_first().ok_or("the command is empty")?;
        let directory = spec.directory.as_deref();
        let there = directory.filter(|_| program.contains('/')).map(|d| d.join(program));
        let mut command = Command::new(there.unwrap_or_else(|| program.into()));
        if let Some(directory) = directory {
            command.current_dir(directory);
        }
        // In a process group of its own Ctrl-C does not reach it: it ends with the run.
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        command.env_clear().envs(environment(&spec.environment)?);
        if spec.privileges == Privileges::Drop {
            as_a_user(&mut command);
        }
        let mut process = command.spawn().map_err(|e| format!("cannot be started: {e}"))?;
        let pipes = (process.stdin.take(), process.stdout.take());
        // One question waits while another one is written.
        let (questions, to_write) = mpsc::sync_channel(1);
        // A program that writes more than it is asked waits: what it has written is not kept.
        let (read, answers) = mpsc::sync_channel(4);
        let it = Self { process, stopped: false, questions, answers, ended: None };
        let (Some(input), Some(output)) = pipes else { return Err("no pipes".into()) };
        let threads = spawn("ask", move || write(input, &to_write))
            .and_then(|()| spawn("advice", move || self::read(output, &read)));
        threads.map_err(|e| e.to_string())?;
        Ok(it)
    }

    /// Why it answers no more, with its exit status if it ends before `until`.
    fn end(&mut self, until: Instant) -> String {
        if let Some(why) = &self.ended {
            return why.clone();
        }
        // A pipe closes a moment before its process has ended.
        let until = until.min(Instant::now() + ENDING);
        let mut ended = sys::child_has_ended(self.process.id());
        while matches!(ended, Ok(false)) && Instant::now() < until {
            std::thread::sleep(LOOK);
            ended = sys::child_has_ended(self.process.id());
        }
        let why = match ended.and_then(|ended| if ended { self.stop().map(Some) } else { Ok(None) })
        {
            Ok(Some(status)) => format!("has ended ({status})"),
            Ok(None) => "has closed its output".into(),
            Err(e) => e.to_string(),
        };
        self.ended.insert(why).clone()
    }

    /// Ends the program and the processes that it has started, unless they left its group, and
    /// gives its status.
    fn stop(&mut self) -> io::Result<ExitStatus> {
        if !self.stopped {
            // The group is there as long as its leader has not been waited for.
            let _ = sys::kill_group(self.process.id());
            self.stopped = true;
        }
        self.process.wait()
    }
}

impl ProgramLink for Child {
    fn send(&mut self, question: String, until: Instant) -> Result<(), NoAnswer> {
        if let Some(why) = &self.ended {
            return Err(why.clone().into());
        }
        match self.questions.try_send(question + "\n") {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => Err(NoAnswer::late("has not read the questions before")),
            Err(TrySendError::Disconnected(_)) => Err(self.end(until).into()),
        }
    }

    fn answer(&mut self, until: Instant) -> Result<Option<String>, String> {
        match self.answers.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Ok(line)) => Ok(Some(line)),
            Ok(Err(e)) => Err(self.ended.insert(e.to_string()).clone()),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.end(until)),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both threads end with the processes, whose pipes then close.
        let _ = self.stop();
    }
}

/// The plain variables that are set, and those that a policy names.
fn environment(named: &[String]) -> Result<Vec<(OsString, OsString)>, String> {
    let plain =
        |name: &OsString| name.to_str().is_some_and(|n| PLAIN.contains(&n) || n.starts_with("LC_"));
    let mut all: Vec<_> = std::env::vars_os().filter(|(name, _)| plain(name)).collect();
    for name in named {
        let value = std::env::var_os(name)
            .ok_or_else(|| format!("`{name}`, which `environment` names, is not set"))?;
        all.push((name.into(), value));
    }
    Ok(all)
}

/// Has a command run without capabilities, and under sudo as the user who called it, whose files it
/// can read then.
fn as_a_user(command: &mut Command) {
    let id = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok().filter(|&id| id != 0);
    if sys::is_root()
        && let (Some(user), Some(group)) = (id("SUDO_UID"), id("SUDO_GID"))
    {
        command.uid(user).gid(group).env_remove("HOME");
        if let Some(name) = std::env::var_os("SUDO_USER") {
            command.env("USER", &name).env("LOGNAME", &name);
        }
    }
    sys::without_capabilities(command);
}

fn write(mut to: ChildStdin, lines: &mpsc::Receiver<String>) {
    while let Ok(line) = lines.recv() {
        if to.write_all(line.as_bytes()).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}

fn read(from: ChildStdout, to: &mpsc::SyncSender<io::Result<String>>) {
    let mut from = BufReader::new(from);
    loop {
        let mut line = String::new();
        let read = from.by_ref().take(LONGEST).read_line(&mut line);
        let said = match read {
            Ok(0) => return,
            Ok(n) if n as u64 == LONGEST => Err(io::Error::other("an answer of more than 16 MiB")),
            Ok(_) => Ok(line),
            Err(e) => Err(e),
        };
        let is_over = said.is_err();
        if to.send(said).is_err() || is_over {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuits::external::ProgramAt;
    use crate::units::Span;

    /// Whether a process runs; one that has ended and was not waited for does not.
    fn runs(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')')
            .next()
            .and_then(|rest| rest.split_whitespace().next())
            .is_some_and(|state| !"ZX".contains(state))
    }

    fn with(environment: &[&str], privileges: Privileges) -> ProgramSpec {
        ProgramSpec {
            at: ProgramAt::Command(vec![]),
            within: Span::secs(1),
            environment: environment.iter().map(|&n| n.into()).collect(),
            privileges,
            directory: None,
        }
    }

    fn shell_with(spec: &ProgramSpec, script: &str) -> Child {
        Child::start(&["sh".into(), "-c".into(), script.into()], spec).expect("it starts")
    }

    fn shell(script: &str) -> Child {
        shell_with(&with(&[], Privileges::Drop), script)
    }

    fn says(mut program: Child) -> String {
        let said = program.answer(Instant::now() + Duration::from_secs(10)).expect("it speaks");
        said.expect("a line").trim().into()
    }

    #[test]
    fn a_program_has_no_capabilities_unless_the_policy_keeps_them() {
        let caps = "echo $(grep -E '^(CapEff|CapPrm|CapInh|CapAmb):' /proc/self/status | cut -f 2)";
        assert_eq!(says(shell(caps)), ["0000000000000000"; 4].join(" "));
        assert_eq!(says(shell("echo $(grep NoNewPrivs /proc/self/status | cut -f 2)")), "1");
        let own = std::fs::read_to_string("/proc/self/status").unwrap();
        let effective = |status: &str| {
            status.lines().find_map(|l| l.strip_prefix("CapEff:")).unwrap().trim().to_owned()
        };
        let kept = says(shell_with(&with(&[], Privileges::Keep), "grep CapEff: /proc/self/status"));
        assert_eq!(effective(&kept), effective(&own));
    }

    #[test]
    fn a_program_gets_the_plain_variables_and_those_that_it_is_given() {
        // Whatever this process has beside the plain ones, but for what a shell sets itself.
        let own = ["PWD", "OLDPWD", "SHLVL", "_", "PS1", "PS2", "PS4", "IFS", "OPTIND", "PPID"];
        let is_name = |n: &str| n.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
        let other = |n: &String| {
            is_name(n)
                && !PLAIN.contains(&n.as_str())
                && !n.starts_with("LC_")
                && !own.contains(&n.as_str())
        };
        let mut others =
            std::env::vars().filter(|(n, v)| other(n) && !v.contains('\n')).map(|(n, _)| n);
        let (Some(there), Some(other)) = (others.next(), others.next()) else {
            return eprintln!(
                "SKIP a_program_gets_the_plain_variables_and_those_that_it_is_given: no other variables here"
            );
        };
        let (there, other) = (there.as_str(), other.as_str());
        let script = format!("echo \"$PATH|${{{there}-no}}|${{{other}-no}}\"");
        let said = says(shell_with(&with(&[there], Privileges::Drop), &script));
        let [path, given] =
            ["PATH", there].map(|n| std::env::var(n).unwrap_or_else(|_| "no".into()));
        assert_eq!(said, format!("{path}|{given}|no"));
        let why =
            Child::start(&["true".into()], &with(&["NOT_SET_ANYWHERE"], Privileges::Drop)).err();
        assert_eq!(
            why.as_deref(),
            Some("`NOT_SET_ANYWHERE`, which `environment` names, is not set")
        );
    }

    /// A program behind a shell, which writes the number of what it has started to `file`; that
    /// number.
    fn wrapped(file: &std::path::Path, then: &str) -> (Child, String) {
        let script = format!("sleep 1000 & echo $! > {}; echo started; {then}", file.display());
        let mut program = shell(&script);
        let said = program.answer(Instant::now() + Duration::from_secs(10)).expect("it speaks");
        assert_eq!(said.as_deref(), Some("started\n"));
        (program, std::fs::read_to_string(file).expect("a number").trim().into())
    }

    fn waits_for_the_end_of(pid: &str) {
        let until = Instant::now() + Duration::from_secs(10);
        while runs(pid) {
            assert!(Instant::now() < until, "process {pid} lives on");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_program_that_ends_a_while_after_its_output_is_told_with_its_status() {
        let mut program = shell("exec >&-; sleep 0.1; exit 3");
        let why = program.answer(Instant::now() + Duration::from_secs(10));
        assert_eq!(why, Err("has ended (exit status: 3)".into()));
    }

    #[test]
    fn a_program_that_stays_without_its_output_holds_no_one_up() {
        let (mut program, begun) = (shell("exec >&-; sleep 1000"), Instant::now());
        let mut answer = Ok(None);
        while answer == Ok(None) && begun.elapsed() < Duration::from_secs(10) {
            answer = program.answer(Instant::now() + Duration::from_millis(50));
        }
        assert_eq!(answer, Err("has closed its output".into()));
    }

    #[test]
    fn what_a_program_has_started_ends_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let (program, started) = wrapped(&dir.path().join("pid"), "wait");
        assert!(runs(&started));
        drop(program);
        waits_for_the_end_of(&started);
    }

    #[test]
    fn what_a_program_leaves_behind_ends_when_it_is_found_to_have_ended() {
        let dir = tempfile::tempdir().unwrap();
        let (mut program, started) = wrapped(&dir.path().join("pid"), "exec >&- ; kill -9 $$");
        // The sleeper holds the pipe, so that only the end of the shell can tell.
        let until = Instant::now() + Duration::from_secs(10);
        while !sys::child_has_ended(program.process.id()).unwrap() {
            assert!(Instant::now() < until, "the shell lives on");
        }
        assert!(runs(&started));
        assert!(program.end(until).contains("has ended (signal: 9"), "{:?}", program.ended);
        waits_for_the_end_of(&started);
    }
}
