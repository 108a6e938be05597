//! CoflowSim's custom traces: classes of coflows and a seed, from which it draws the very trace
//! that CoflowSim draws.
//!
//! ```text
//! CUSTOM <classes> {<min width> <max width> <min MB> <max MB>} a class {<share>} a class <racks> <coflows> <seed>
//! ```
//!
//! This is the end of CoflowSim's command line (<https://github.com/coflow/coflowsim>), white space
//! between words; a word before `CUSTOM` (the algorithm) is skipped. A coflow has between the two
//! widths of mappers, and as many reducers, each in another rack; every flow into a reducer has the
//! same size, drawn once a reducer in megabytes of 2^20 bytes. All coflows arrive at time zero.
//! CoflowSim draws from `java.util.Random`, whose sequence the Java documentation defines; so do
//! we.

use super::coflow_benchmark::{Trace, TraceCoflow};
use super::words::Words;
use super::{TraceError, lines};
use crate::units::Bytes;

/// A megabyte of CoflowSim.
const MIB: u64 = 1_048_576;
/// The most racks.
const MAX_RACKS: u64 = 100_000;
/// The most flows of one trace.
const MAX_FLOWS: u64 = 50_000_000;

/// A class of coflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoflowClass {
    /// Least and greatest number of mappers, and of reducers.
    pub width: (u64, u64),
    /// Least and greatest size of a flow, in megabytes of 2^20 bytes.
    pub megabytes: (u64, u64),
    /// Share of the coflows; the shares need no particular sum.
    pub share: u64,
}

/// What CoflowSim is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Custom {
    /// The classes, in the order in which they are drawn.
    pub classes: Vec<CoflowClass>,
    /// Number of racks, each with a mapper and a reducer of one coflow at most.
    pub racks: u64,
    /// Number of coflows; a class has its share of them, rounded down.
    pub coflows: u64,
    /// Seed of `java.util.Random`.
    pub seed: i64,
}

impl Custom {
    /// The classes that CoflowSim has without arguments, the mix of a Facebook cluster: 41 % short
    /// and narrow, 29 % long and narrow, 9 % short and wide, 21 % long and wide.
    pub fn facebook(racks: u64, coflows: u64, seed: i64) -> Self {
        let class = |width, megabytes, share| CoflowClass { width, megabytes, share };
        let (narrow, wide) = ((1, 5.min(racks)), (5.min(racks), racks));
        let classes = vec![
            class(narrow, (1, 10), 41),
            class(narrow, (10, 1000), 29),
            class(wide, (1, 10), 9),
            class(wide, (10, 1000), 21),
        ];
        Self { classes, racks, coflows, seed }
    }
}

/// What speaks against this format, by a text's first words.
///
/// # Errors
/// In words.
pub fn fits(text: &str) -> Result<(), String> {
    let mut words = lines(text).flat_map(|l| l.1.split_ascii_whitespace()).take(2);
    let is = words.any(|w| w.eq_ignore_ascii_case("custom"));
    if is { Ok(()) } else { Err("its first or second word is CUSTOM".into()) }
}

/// Reads the arguments; line breaks count as blanks.
///
/// # Errors
/// The first fault, with line and column, and what is allowed there.
pub fn parse(text: &str) -> Result<Custom, TraceError> {
    let mut args = Args { words: args_of(text), at: 0 };
    if !args.next_is_custom() && !args.next_is_custom() {
        return Err(TraceError {
            line: 1,
            column: 1,
            why: "the word CUSTOM must be here, or after one other word".into(),
        });
    }
    let n = args.integer("the number of classes", 1, 1000)?;
    let mut classes = Vec::new();
    for _ in 0..n {
        let low = args.integer("the least width of a class", 1, MAX_RACKS)?;
        let high = args.integer("the greatest width of a class", low, MAX_RACKS)?;
        let least = args.integer("the least megabytes of a class", 1, 1_000_000)?;
        let most = args.integer("the greatest megabytes of a class", least, 1_000_000)?;
        classes.push(CoflowClass { width: (low, high), megabytes: (least, most), share: 0 });
    }
    for c in &mut classes {
        c.share = args.integer("the share of a class", 0, 1_000_000)?;
    }
    let widest = classes.iter().map(|c| c.width.1).max().unwrap_or(1);
    let racks =
        args.integer("the number of racks, not less than the greatest width", widest, MAX_RACKS)?;
    // Whatever is drawn must fit into memory.
    let coflows = args.integer("the number of coflows", 0, MAX_FLOWS / (widest * widest))?;
    let seed = args.integer("the seed", 0, i32::MAX as u64)? as i64;
    args.end()?;
    Ok(Custom { classes, racks, coflows, seed })
}

fn args_of(text: &str) -> Vec<Words<'_>> {
    let all: Vec<Words> = lines(text).map(|(n, l)| Words::new(n, l)).collect();
    if all.is_empty() { vec![Words::new(1, "")] } else { all }
}

/// The words of several lines.
struct Args<'a> {
    words: Vec<Words<'a>>,
    at: usize,
}

impl Args<'_> {
    /// Moves on to a line that has a word left; the last line if none has.
    fn seek(&mut self) {
        while self.at + 1 < self.words.len() && self.words[self.at].is_done() {
            self.at += 1;
        }
    }
    fn next_is_custom(&mut self) -> bool {
        self.seek();
        self.words.get_mut(self.at).is_some_and(|w| w.next().1.eq_ignore_ascii_case("custom"))
    }
    fn integer(&mut self, what: &str, min: u64, max: u64) -> Result<u64, TraceError> {
        self.seek();
        self.words[self.at].integer(what, min, max)
    }
    fn end(&mut self) -> Result<(), TraceError> {
        self.seek();
        self.words[self.at].end()
    }
}

/// The trace that CoflowSim draws, in the terms of the coflow-benchmark. O(flows), and O(racks^2) a
/// coflow as wide as the network.
pub fn draw(ask: &Custom) -> Trace {
    let mut rng = JavaRandom::new(ask.seed);
    let all: u64 = ask.classes.iter().map(|c| c.share).sum::<u64>().max(1);
    let mut trace = Trace { ports: ask.racks.max(1), coflows: Vec::new() };
    for class in &ask.classes {
        for _ in 0..ask.coflows * class.share / all {
            let mappers = rng.between(class.width);
            let mut taken = vec![false; trace.ports as usize];
            let mappers: Vec<u64> = (0..mappers).map(|_| rack(&mut rng, &mut taken)).collect();
            let reducers = rng.between(class.width);
            let mut taken = vec![false; trace.ports as usize];
            let mut reducer = |_| {
                let bytes = rng.between(class.megabytes) * MIB * mappers.len() as u64;
                (rack(&mut rng, &mut taken), Bytes(bytes))
            };
            let reducers = (0..reducers).map(&mut reducer).collect();
            trace.coflows.push(TraceCoflow {
                id: trace.coflows.len() as u64,
                arrival_ms: 0,
                mappers,
                reducers,
            });
        }
    }
    trace
}

/// A rack that is not taken yet, which then is.
fn rack(rng: &mut JavaRandom, taken: &mut [bool]) -> u64 {
    loop {
        let k = rng.below(taken.len() as u64) as usize;
        if !std::mem::replace(&mut taken[k], true) {
            return k as u64;
        }
    }
}

/// `java.util.Random`: a linear congruential generator of 48 bits, as its documentation defines it.
struct JavaRandom(u64);

impl JavaRandom {
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;

    fn new(seed: i64) -> Self {
        Self((seed as u64 ^ Self::MULTIPLIER) & Self::MASK)
    }

    /// `next(31)`.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(Self::MULTIPLIER).wrapping_add(0xB) & Self::MASK;
        self.0 >> 17
    }

    /// `nextInt(bound)`, for bounds of 1 to 2^31 - 1.
    fn below(&mut self, bound: u64) -> u64 {
        if bound.is_power_of_two() {
            return (bound * self.next()) >> 31;
        }
        loop {
            let bits = self.next();
            let value = bits % bound;
            if bits - value + (bound - 1) < 1 << 31 {
                return value;
            }
        }
    }

    /// A number drawn evenly between two numbers, both included.
    fn between(&mut self, (low, high): (u64, u64)) -> u64 {
        low + self.below(high - low + 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn random_is_javas() {
        // As OpenJDK 17 prints them: new Random(42), nextInt(100) six times; the same again,
        // nextInt(16).
        let mut r = JavaRandom::new(42);
        assert_eq!((0..6).map(|_| r.below(100)).collect::<Vec<_>>(), [30, 63, 48, 84, 70, 25]);
        let mut r = JavaRandom::new(42);
        assert_eq!((0..6).map(|_| r.below(16)).collect::<Vec<_>>(), [11, 0, 10, 0, 4, 15]);
    }

    #[test]
    fn arguments_are_read_and_faults_placed() {
        let c = parse("SEBF custom 2\n1 5 1 10\n 2 6 10 100 70 30\n 8 10 13\n").unwrap();
        assert_eq!(
            (c.racks, c.coflows, c.seed, c.classes[1]),
            (8, 10, 13, CoflowClass { width: (2, 6), megabytes: (10, 100), share: 30 })
        );
        for (text, at, says) in [
            ("", (1, 1), "CUSTOM"),
            ("a b custom", (1, 1), "CUSTOM"),
            ("CUSTOM 1 5 2", (1, 12), "greatest width of a class (5 to"),
            ("CUSTOM 1 1 5\n1 2 100\n4 1 1", (3, 1), "not less than the greatest width (5 to"),
            ("CUSTOM 1 1 5\n1 2 100\n5 1", (3, 4), "the seed"),
            ("CUSTOM 1 1 5 1 2 100 5 1 7 8", (1, 28), "end of the line"),
            // One such coflow may have 10^10 flows.
            ("CUSTOM 1 1 100000 1 1 1 100000 1 1", (1, 32), "the number of coflows (0 to 0)"),
        ] {
            let e = parse(text).unwrap_err();
            assert_eq!((e.line, e.column), at, "{text:?}: {e}");
            assert!(e.why.contains(says), "{e}");
        }
    }

    #[test]
    fn the_trace_is_coflowsims() {
        // Printed by the same draws with java.util.Random of OpenJDK 17: mappers, their racks,
        // reducers, rack:megabytes a flow.
        let golden = "2 4 5 2 2:1 4:4\n2 5 3 3 1:5 2:10 4:5\n2 4 6 4 2:165 5:808 6:217 0:346\n6 3 1 0 5 2 4 3 5:63 6:842 1:380\n\
                      7 2 0 5 4 6 3 1 5 6:741 2:831 5:916 4:876 0:26\n7 0 3 5 4 1 2 6 5 1:42 4:784 0:566 5:321 6:467\n";
        let t = draw(&parse("CUSTOM 2 1 3 1 10 2 7 10 1000 1 2 7 6 13").unwrap());
        let words = |v: Vec<String>| v.join(" ");
        let mut got = String::new();
        for c in &t.coflows {
            let mappers = words(c.mappers.iter().map(u64::to_string).collect());
            let flow = |b: Bytes| b.0 / MIB / c.mappers.len() as u64;
            let reducers =
                words(c.reducers.iter().map(|(p, b)| format!("{p}:{}", flow(*b))).collect());
            got += &format!("{} {mappers} {} {reducers}\n", c.mappers.len(), c.reducers.len());
        }
        assert_eq!(got, golden);
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn never_panics(s in "(CUSTOM|[0-9]{1,2}|[ \n]){0,30}\\PC{0,9}") {
            if let Ok(c) = parse(&s) {
                let t = draw(&c);
                prop_assert!(t.coflows.len() as u64 <= c.coflows);
            }
        }

        #[test]
        fn shapes_are_kept(racks in 5u64..40, coflows in 0u64..60, seed in 0i64..1000) {
            let ask = Custom::facebook(racks, coflows, seed);
            let t = draw(&ask);
            prop_assert_eq!(super::super::coflow_benchmark::parse(&t.write()), Ok(t.clone()));
            for c in &t.coflows {
                let mut m = c.mappers.clone();
                m.sort_unstable();
                m.dedup();
                prop_assert_eq!(m.len(), c.mappers.len());
                prop_assert!(c.reducers.iter().all(|r| r.1.0 % (MIB * m.len() as u64) == 0 && r.1.0 / MIB / m.len() as u64 <= 1000));
            }
        }
    }
}
