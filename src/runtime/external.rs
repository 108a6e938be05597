//! The program behind the scheduler or the placement policy `external`: a child process that reads questions and writes answers, a line
//! of JSON each.
//!
//! A thread of its own writes to the child and another one reads from it, so that a child that does neither cannot hold up the control
//! loop. An answer that comes after its time is dropped when the next one is waited for. A program that has ended is not started again.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, TrySendError};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::settings::ProgramSpec;
use crate::circuits::external::{Advice, Question};
use crate::fabric::kernel::sys;
use crate::placement::external::ProgramOptions;
use crate::placement::offers;

/// What a run says that has no program to ask.
pub const MISSING: &str = "the run was started without a program";
/// The version of the protocol, which both sides say first.
pub const PROTOCOL: u32 = 1;
/// Time for a program to start and to say its version.
const START: Duration = Duration::from_secs(10);
/// Time for an answer in virtual time, where only a program that hangs takes longer.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Time between the end of a program's output and its own.
const ENDING: Duration = Duration::from_millis(20);
/// The longest answer.
const LONGEST: u64 = 16 << 20;

/// The first line of either side.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Hello {
    protocol: u32,
}

/// What a program answers.
pub trait Answers: DeserializeOwned {
    /// What it is asked.
    type Question: Serialize;

    /// Whether this is the answer to that question, and not to an earlier one.
    fn answers(&self, question: &Self::Question) -> bool;
}

impl Answers for Advice {
    type Question = Question;

    fn answers(&self, question: &Question) -> bool {
        self.cycle == question.cycle
    }
}

impl Answers for offers::Answer {
    type Question = offers::Question;

    fn answers(&self, question: &offers::Question) -> bool {
        self.offer == question.offer
    }
}

impl From<&ProgramOptions> for ProgramSpec {
    fn from(p: &ProgramOptions) -> Self {
        Self { command: p.command.clone(), within: p.within }
    }
}

/// A running program. Dropping it ends the process and those that it has started.
pub struct Program {
    name: String,
    child: Child,
    /// Whether it has been ended and waited for.
    stopped: bool,
    questions: mpsc::SyncSender<String>,
    answers: mpsc::Receiver<io::Result<String>>,
    within: Duration,
    /// Why it answers no more.
    ended: Option<String>,
}

impl Program {
    /// Starts a program and waits until it is ready; `within` is its time for an answer.
    ///
    /// # Errors
    /// Why it cannot be started, or what it said instead of its version, for people.
    pub fn start(spec: &ProgramSpec, within: Duration) -> Result<Self, String> {
        let name = spec.command.join(" ");
        let (program, arguments) = spec.command.split_first().ok_or("`external.command` is empty")?;
        let mut command = Command::new(program);
        // In a process group of its own Ctrl-C does not reach it: it ends with the run.
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(|e| format!("{name}: cannot be started: {e}"))?;
        let pipes = (child.stdin.take(), child.stdout.take());
        // One question waits while another one is written.
        let (questions, to_write) = mpsc::sync_channel(1);
        // A program that writes more than it is asked waits: what it has written is not kept.
        let (read, answers) = mpsc::sync_channel(4);
        let mut it = Self { name, child, stopped: false, questions, answers, within, ended: None };
        let (Some(input), Some(output)) = pipes else { return Err(format!("{}: no pipes", it.name)) };
        let threads = spawn("ask", move || write(input, &to_write)).and_then(|()| spawn("advice", move || self::read(output, &read)));
        threads.map_err(|e| format!("{}: {e}", it.name))?;
        it.greet()?;
        Ok(it)
    }

    fn greet(&mut self) -> Result<(), String> {
        let hello = Hello { protocol: PROTOCOL };
        self.send(&hello)?;
        let line = self.line(Instant::now() + START)?.ok_or_else(|| format!("{}: says nothing for {START:?}", self.name))?;
        match serde_json::from_str::<Hello>(&line) {
            Ok(said) if said == hello => Ok(()),
            _ => Err(format!("{}: said `{}` first, where {{\"protocol\":{PROTOCOL}}} is wanted", self.name, short(&line))),
        }
    }

    /// Asks a question and waits for its answer.
    ///
    /// # Errors
    /// Why there is none, for people.
    pub fn ask<A: Answers>(&mut self, question: &A::Question) -> Result<A, String> {
        if let Some(why) = &self.ended {
            return Err(why.clone());
        }
        let until = Instant::now() + self.within;
        self.send(question)?;
        while let Some(line) = self.line(until)? {
            let answer: A = serde_json::from_str(&line).map_err(|e| format!("{}: `{}`: {e}", self.name, short(&line)))?;
            if answer.answers(question) {
                return Ok(answer);
            }
        }
        Err(format!("{}: no answer within {:?}", self.name, self.within))
    }

    fn send(&mut self, message: &impl Serialize) -> Result<(), String> {
        let mut line = serde_json::to_string(message).map_err(|e| e.to_string())?;
        line.push('\n');
        match self.questions.try_send(line) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => Err(format!("{}: has not read the questions before", self.name)),
            Err(TrySendError::Disconnected(_)) => Err(self.end()),
        }
    }

    /// The next line; `None` if none comes by then.
    fn line(&mut self, until: Instant) -> Result<Option<String>, String> {
        match self.answers.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Ok(line)) => Ok(Some(line)),
            Ok(Err(e)) => Err(self.ended.insert(format!("{}: {e}", self.name)).clone()),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.end()),
        }
    }

    /// Why it answers no more, with its exit status if it has ended.
    fn end(&mut self) -> String {
        if let Some(why) = &self.ended {
            return why.clone();
        }
        // A pipe closes a moment before its process has ended.
        let until = Instant::now() + ENDING;
        let mut ended = sys::child_has_ended(self.child.id());
        while matches!(ended, Ok(false)) && Instant::now() < until {
            std::thread::yield_now();
            ended = sys::child_has_ended(self.child.id());
        }
        let why = match ended.and_then(|ended| if ended { self.stop().map(Some) } else { Ok(None) }) {
            Ok(Some(status)) => format!("{}: has ended ({status})", self.name),
            Ok(None) => format!("{}: has closed its output", self.name),
            Err(e) => format!("{}: {e}", self.name),
        };
        self.ended.insert(why).clone()
    }

    /// Ends the program and the processes that it has started, unless they left its group, and gives its status.
    fn stop(&mut self) -> io::Result<ExitStatus> {
        if !self.stopped {
            // The group is there as long as its leader has not been waited for.
            let _ = sys::kill_group(self.child.id());
            self.stopped = true;
        }
        self.child.wait()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both threads end with the processes, whose pipes then close.
        let _ = self.stop();
    }
}

fn spawn(name: &str, f: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.into()).spawn(f).map(drop)
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

/// The beginning of a line, for errors.
fn short(line: &str) -> String {
    line.trim_end().chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;

    /// Whether a process runs; one that has ended and was not waited for does not.
    fn runs(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).is_some_and(|state| !"ZX".contains(state))
    }

    /// A program behind a shell, which writes the number of what it has started to `file`.
    fn wrapped(file: &std::path::Path, then: &str) -> Program {
        let script = format!("sleep 1000 & echo $! > {}; echo '{{\"protocol\":1}}'; {then}", file.display());
        let spec = ProgramSpec { command: vec!["sh".into(), "-c".into(), script], within: Span::secs(10) };
        Program::start(&spec, PATIENCE).expect("it starts")
    }

    fn waits_for_the_end_of(pid: &str) {
        let until = Instant::now() + Duration::from_secs(10);
        while runs(pid) {
            assert!(Instant::now() < until, "process {pid} lives on");
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_a_program_has_started_ends_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let program = wrapped(&file, "wait");
        let started = std::fs::read_to_string(&file).unwrap();
        assert!(runs(started.trim()));
        drop(program);
        waits_for_the_end_of(started.trim());
    }

    #[test]
    fn what_a_program_leaves_behind_ends_when_it_is_found_to_have_ended() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let mut program = wrapped(&file, "exec >&- ; kill -9 $$");
        let started = std::fs::read_to_string(&file).unwrap();
        // The sleeper holds the pipe, so that only the end of the shell can tell.
        let until = Instant::now() + Duration::from_secs(10);
        while !sys::child_has_ended(program.child.id()).unwrap() {
            assert!(Instant::now() < until, "the shell lives on");
        }
        assert!(runs(started.trim()));
        assert!(program.end().contains("has ended (signal: 9"), "{:?}", program.ended);
        waits_for_the_end_of(started.trim());
    }
}
