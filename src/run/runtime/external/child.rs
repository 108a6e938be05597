//! A program that Heliostat starts: a child process that reads questions from its standard input and writes answers to its standard
//! output, a line of JSON each.
//!
//! A thread of its own writes to the child and another one reads from it, so that a child that does neither cannot hold up the control
//! loop. An answer that comes after its time is dropped when the next one is waited for. A program that has ended is not started again.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, TrySendError};
use std::time::{Duration, Instant};

use super::{LONGEST, Link, spawn};
use crate::circuits::external::NoAnswer;
use crate::kernel::sys;

/// The longest time between the end of a program's output and its own, on a busy machine.
const ENDING: Duration = Duration::from_secs(1);
/// Time between two looks whether it has ended.
const LOOK: Duration = Duration::from_millis(1);

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
    /// Starts a program with its arguments in a directory, or where this process is. A program with a relative path is looked for there.
    ///
    /// # Errors
    /// Why it cannot be started, for people.
    pub fn start(command: &[String], directory: Option<&Path>) -> Result<Self, String> {
        let (program, arguments) = command.split_first().ok_or("the command is empty")?;
        let there = directory.filter(|_| program.contains('/')).map(|d| d.join(program));
        let mut command = Command::new(there.unwrap_or_else(|| program.into()));
        if let Some(directory) = directory {
            command.current_dir(directory);
        }
        // In a process group of its own Ctrl-C does not reach it: it ends with the run.
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        // It decides about circuits, and has no business with the API.
        command.env_remove("HELIOSTAT_TOKEN");
        let mut process = command.spawn().map_err(|e| format!("cannot be started: {e}"))?;
        let pipes = (process.stdin.take(), process.stdout.take());
        // One question waits while another one is written.
        let (questions, to_write) = mpsc::sync_channel(1);
        // A program that writes more than it is asked waits: what it has written is not kept.
        let (read, answers) = mpsc::sync_channel(4);
        let it = Self { process, stopped: false, questions, answers, ended: None };
        let (Some(input), Some(output)) = pipes else { return Err("no pipes".into()) };
        let threads = spawn("ask", move || write(input, &to_write)).and_then(|()| spawn("advice", move || self::read(output, &read)));
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
        let why = match ended.and_then(|ended| if ended { self.stop().map(Some) } else { Ok(None) }) {
            Ok(Some(status)) => format!("has ended ({status})"),
            Ok(None) => "has closed its output".into(),
            Err(e) => e.to_string(),
        };
        self.ended.insert(why).clone()
    }

    /// Ends the program and the processes that it has started, unless they left its group, and gives its status.
    fn stop(&mut self) -> io::Result<ExitStatus> {
        if !self.stopped {
            // The group is there as long as its leader has not been waited for.
            let _ = sys::kill_group(self.process.id());
            self.stopped = true;
        }
        self.process.wait()
    }
}

impl Link for Child {
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

    /// Whether a process runs; one that has ended and was not waited for does not.
    fn runs(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).is_some_and(|state| !"ZX".contains(state))
    }

    fn shell(script: &str) -> Child {
        Child::start(&["sh".into(), "-c".into(), script.into()], None).expect("it starts")
    }

    /// A program behind a shell, which writes the number of what it has started to `file`; that number.
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
