//! The program behind the scheduler or the placement policy `external`: it is asked, and answers, in JSON.
//!
//! Heliostat starts it (`child`), or it runs already and has an address (`http`). Either side first says the version of the protocol.

use std::io;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::settings::ProgramSpec;
use crate::circuits::external::{Advice, NoAnswer, ProgramAt, Question};
use crate::control::meter::Meter;
use crate::control::record::Quantiles;
use crate::placement::external::ProgramOptions;
use crate::placement::offers;
use crate::units::Span;

mod child;
mod http;

/// What a run says that has no program to ask.
pub const MISSING: &str = "the run was started without a program";
/// The version of the protocol, which both sides say first.
pub const PROTOCOL: u32 = 1;
/// Time for a program to start and to say its version.
const START: Duration = Duration::from_secs(10);
/// Time for its version if it was waited for until then.
const LAST: Duration = Duration::from_secs(1);
/// Time for an answer in virtual time, where only a program that hangs takes longer.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The longest answer, in bytes.
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

impl ProgramSpec {
    /// The program of a placement policy.
    ///
    /// # Errors
    /// When a policy that no file was read for names none.
    pub fn of(options: &ProgramOptions) -> Result<Self, String> {
        let at = options.at().map_err(|(message, allowed)| format!("{message}; allowed: {allowed}"))?;
        Ok(Self { at, within: options.within, directory: options.directory.clone() })
    }
}

/// How questions reach a program. Errors are for people, and do not name the program.
trait Link: Send {
    /// Sends a question, whose answer is not wanted any more after `until`.
    ///
    /// # Errors
    /// Why it cannot be sent.
    fn send(&mut self, question: String, until: Instant) -> Result<(), NoAnswer>;

    /// The next thing that the program says; `None` if there is nothing by then.
    ///
    /// # Errors
    /// Why there will be none.
    fn answer(&mut self, until: Instant) -> Result<Option<String>, String>;
}

/// A running program. One that was started here ends when this is dropped.
pub struct Program {
    name: String,
    link: Box<dyn Link>,
    within: Duration,
    /// How long its answers took.
    cost: Meter,
}

impl Drop for Program {
    /// Tells what the program cost.
    fn drop(&mut self) {
        let Quantiles { count, p50, p99, max } = self.cost.quantiles();
        if count > 0 {
            let [p50, p99, max] = [p50, p99, max].map(Span::std);
            tracing::info!("{}: {count} answers, each in {p50:.1?} (median), {p99:.1?} (p99), {max:.1?} (longest)", self.name);
        }
    }
}

impl Program {
    /// Starts a program, unless it runs already, and waits until it is ready; `within` is its time for an answer.
    ///
    /// # Errors
    /// Why it cannot be started or reached, or what it said instead of its version, for people.
    pub fn start(spec: &ProgramSpec, within: Duration) -> Result<Self, String> {
        let until = Instant::now() + START;
        let (name, link) = match &spec.at {
            ProgramAt::Command(command) => {
                (command.join(" "), child::Child::start(command, spec.directory.as_deref()).map(|c| Box::new(c) as Box<dyn Link>))
            }
            ProgramAt::Url(url) => (url.clone(), http::Http::new(url, until).map(|h| Box::new(h) as _)),
        };
        let link = link.map_err(|e| format!("{name}: {e}"))?;
        let mut it = Self { name, link, within, cost: Meter::default() };
        it.greet(until.max(Instant::now() + LAST)).map_err(|e| format!("{}: {e}", it.name))?;
        Ok(it)
    }

    fn greet(&mut self, until: Instant) -> Result<(), String> {
        let hello = Hello { protocol: PROTOCOL };
        self.send(&hello, until).map_err(|e| e.to_string())?;
        let said = self.link.answer(until)?.ok_or_else(|| format!("says nothing for {START:?}"))?;
        match serde_json::from_str::<Hello>(&said) {
            Ok(version) if version == hello => Ok(()),
            _ => Err(format!("said `{}` first, where {{\"protocol\":{PROTOCOL}}} is wanted", short(&said))),
        }
    }

    /// Asks a question and waits for its answer.
    ///
    /// # Errors
    /// Why there is none, for people.
    pub fn ask<A: Answers>(&mut self, question: &A::Question) -> Result<A, NoAnswer> {
        self.answer(question).map_err(|e| e.of(&self.name))
    }

    fn answer<A: Answers>(&mut self, question: &A::Question) -> Result<A, NoAnswer> {
        let begun = Instant::now();
        let until = begun + self.within;
        self.send(question, until)?;
        while let Some(said) = self.link.answer(until)? {
            let answer: A = serde_json::from_str(&said).map_err(|e| format!("`{}`: {e}", short(&said)))?;
            if answer.answers(question) {
                self.cost.add(begun.elapsed().into());
                return Ok(answer);
            }
        }
        Err(NoAnswer::late(format!("no answer within {:?}", self.within)))
    }

    fn send(&mut self, message: &impl Serialize, until: Instant) -> Result<(), NoAnswer> {
        let question = serde_json::to_string(message).map_err(|e| e.to_string())?;
        self.link.send(question, until)
    }
}

fn spawn(name: &str, f: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.into()).spawn(f).map(drop)
}

/// The beginning of what a program said, for errors.
fn short(said: &str) -> String {
    said.trim_end().chars().take(80).collect()
}
