//! The program behind the scheduler or the placement policy `external`: it is asked, and answers,
//! in JSON.
//!
//! Heliostat starts it (`child`), or it runs already and has an address (`http`). Either side first
//! says the version of the protocol.

use std::io;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::settings::ProgramSpec;
use crate::circuits::external::{Advice, NoAnswer, ProgramAt, Question};
use crate::control::meter::DurationMeter;
use crate::control::record::Quantiles;
use crate::placement::external::ProgramOptions;
use crate::placement::offers;
use crate::text;
use crate::units::Span;

mod child;
mod http;

/// What a run says that has no program to ask.
pub const MISSING: &str = "the run was started without a program";
/// The version of the protocol, which both sides say first.
pub const PROTOCOL: u32 = 1;
/// Time for a program to start and to say its version.
const START: Duration = Duration::from_secs(60);
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

impl Answers for offers::OfferAnswer {
    type Question = offers::OfferQuestion;

    fn answers(&self, question: &offers::OfferQuestion) -> bool {
        self.offer == question.offer
    }
}

impl ProgramSpec {
    /// The program of a placement policy.
    ///
    /// # Errors
    /// When a policy that no file was read for names none.
    pub fn of(options: &ProgramOptions) -> Result<Self, String> {
        let at =
            options.at().map_err(|(message, allowed)| format!("{message}; allowed: {allowed}"))?;
        let ProgramOptions { within, environment, privileges, directory, .. } = options.clone();
        Ok(Self { at, within, environment, privileges, directory })
    }
}

/// How questions reach a program. Errors are for people, and do not name the program.
trait ProgramLink: Send {
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
pub struct ExternalProgram {
    name: String,
    link: Box<dyn ProgramLink>,
    within: Duration,
    /// How long its answers took.
    cost: DurationMeter,
    /// What was wrong with its last answer, without what it said, and in which words that was
    /// reported.
    wrong: Option<(String, String)>,
}

impl Drop for ExternalProgram {
    /// Tells what the program cost.
    fn drop(&mut self) {
        let Quantiles { count, p50, p99, max } = self.cost.quantiles();
        if count > 0 {
            let [p50, p99, max] = [p50, p99, max].map(Span::std);
            tracing::info!(
                "{}: {count} answers, each in {p50:.1?} (median), {p99:.1?} (p99), {max:.1?} (longest)",
                self.name
            );
        }
    }
}

impl ExternalProgram {
    /// Starts a program, unless it runs already, and waits until it is ready; `within` is its time
    /// for an answer.
    ///
    /// # Errors
    /// Why it cannot be started or reached, or what it said instead of its version, for people.
    pub fn start(spec: &ProgramSpec, within: Duration) -> Result<Self, String> {
        let until = Instant::now() + START;
        let (name, link) = match &spec.at {
            ProgramAt::Command(command) => (
                command.join(" "),
                child::Child::start(command, spec).map(|c| Box::new(c) as Box<dyn ProgramLink>),
            ),
            ProgramAt::Url(url) => {
                (url.clone(), http::Http::new(url, until).map(|h| Box::new(h) as _))
            }
        };
        let link = link.map_err(|e| format!("{name}: {e}"))?;
        let mut it = Self { name, link, within, cost: DurationMeter::default(), wrong: None };
        it.greet(until.max(Instant::now() + LAST)).map_err(|e| format!("{}: {e}", it.name))?;
        Ok(it)
    }

    fn greet(&mut self, until: Instant) -> Result<(), String> {
        let hello = Hello { protocol: PROTOCOL };
        self.send(&hello, until).map_err(|e| e.to_string())?;
        let said = self.link.answer(until)?.ok_or_else(|| format!("says nothing for {START:?}"))?;
        match serde_json::from_str::<Hello>(&said) {
            Ok(version) if version == hello => Ok(()),
            _ => Err(format!(
                "said `{}` first, where {{\"protocol\":{PROTOCOL}}} is wanted",
                short(&said)
            )),
        }
    }

    /// Asks a question and waits for its answer. What is wrong with one answer after the other in
    /// the same way is reported in the same words, although each of them says something else.
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
            let answer: A = serde_json::from_str(&said).map_err(|e| self.words(&said, &e))?;
            if answer.answers(question) {
                self.cost.add(begun.elapsed().into());
                self.wrong = None;
                return Ok(answer);
            }
        }
        Err(NoAnswer::late(format!("no answer within {:?}", self.within)))
    }

    /// Why an answer makes no sense.
    fn words(&mut self, said: &str, e: &serde_json::Error) -> String {
        // Numbers in it may be those of the cycle, and the place depends on how many digits they
        // have.
        let way: String = e.to_string().chars().filter(|c| !c.is_ascii_digit()).collect();
        if let Some((_, words)) = self.wrong.as_ref().filter(|w| w.0 == way) {
            return words.clone();
        }
        let words = format!("`{}`: {}", short(said), text::told(&e.to_string()));
        self.wrong.insert((way, words)).1.clone()
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
    text::shown(said.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct CycleAnswer {
        cycle: u64,
    }

    impl Answers for CycleAnswer {
        type Question = u64;

        fn answers(&self, question: &u64) -> bool {
            self.cycle == *question
        }
    }

    /// Answers with what a function makes of the number of the cycle.
    struct SaysByCycle(u64, fn(u64) -> String);

    impl ProgramLink for SaysByCycle {
        fn send(&mut self, question: String, _: Instant) -> Result<(), NoAnswer> {
            self.0 = question.parse().expect("a number");
            Ok(())
        }

        fn answer(&mut self, _: Instant) -> Result<Option<String>, String> {
            Ok(Some((self.1)(self.0)))
        }
    }

    #[test]
    fn what_is_wrong_in_one_way_is_told_in_one_way() {
        let ways: [fn(u64) -> String; 4] = [
            |n| format!("{{\"cycle\": {n}, \"circuits\": NaN}}"),
            |n| format!("{{\"cycle\": {n}, \"unknown\": {n}}}"),
            |n| format!("{{\"cycle\": \"{n}\"}}"),
            |n| format!("cycle {n}"),
        ];
        let mut told = std::collections::BTreeSet::new();
        for way in ways {
            let link = Box::new(SaysByCycle(0, way));
            let mut p = ExternalProgram {
                name: "p".into(),
                link,
                within: Duration::from_secs(1),
                cost: DurationMeter::default(),
                wrong: None,
            };
            told.extend((8..120).map(|n| p.ask::<CycleAnswer>(&n).unwrap_err().to_string()));
        }
        assert_eq!(told.len(), ways.len(), "{told:#?}");
        // After a good answer a wrong one is reported again.
        let link = Box::new(SaysByCycle(0, |n| {
            if n == 9 { "{\"cycle\": 9}".into() } else { format!("cycle {n}") }
        }));
        let mut p = ExternalProgram {
            name: "p".into(),
            link,
            within: Duration::from_secs(1),
            cost: DurationMeter::default(),
            wrong: None,
        };
        let told = [8, 9, 10].map(|n| p.ask::<CycleAnswer>(&n).map(|a| a.cycle));
        assert!(told[1] == Ok(9) && told[0] != told[2], "{told:?}");
    }
}
