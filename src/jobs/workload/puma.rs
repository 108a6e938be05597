//! The benchmarks of PUMA as Hit-scheduler's evaluation mixes them: heavy, medium and light
//! shuffles.
//!
//! Shares of the jobs are table 1's (Yang, Rang and Cheng, ICPP 2018, section 7.1). Sizes and what
//! a class shuffles are ours: 10 GB of input, of which heavy jobs shuffle all, medium ones 35 and
//! light ones 5 per cent.

/// How much of their input jobs shuffle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShuffleClass {
    /// Jobs that shuffle as much as they read.
    Heavy,
    /// Jobs that shuffle about a third of it.
    Medium,
    /// Jobs that shuffle a twentieth of it.
    Light,
}

impl ShuffleClass {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Heavy => "a shuffle-heavy job",
            Self::Medium => "a job of a medium shuffle",
            Self::Light => "a job of a light shuffle",
        }
    }

    /// Shuffle in per cent of the input.
    pub fn percent(self) -> u64 {
        match self {
            Self::Heavy => 100,
            Self::Medium => 35,
            Self::Light => 5,
        }
    }
}

/// What every job reads.
pub const INPUT: u64 = 10_000_000_000;

/// The benchmarks, each with its jobs of 20 and its class.
pub const BENCHMARKS: [(&str, u32, ShuffleClass); 11] = [
    ("terasort", 1, ShuffleClass::Heavy),
    ("index", 2, ShuffleClass::Heavy),
    ("join", 2, ShuffleClass::Heavy),
    ("sequence-count", 2, ShuffleClass::Heavy),
    ("adjacency", 1, ShuffleClass::Heavy),
    ("inverted-index", 2, ShuffleClass::Medium),
    ("term-vector", 2, ShuffleClass::Medium),
    ("grep", 3, ShuffleClass::Light),
    ("wordcount", 2, ShuffleClass::Light),
    ("classification", 1, ShuffleClass::Light),
    ("histogram", 2, ShuffleClass::Light),
];

/// The benchmark at `u / 2^32` of the jobs.
pub fn at(u: u32) -> (&'static str, ShuffleClass) {
    let mut place = (u64::from(u) * 20) >> 32;
    for (name, share, class) in BENCHMARKS {
        if place < u64::from(share) {
            return (name, class);
        }
        place -= u64::from(share);
    }
    unreachable!("the shares of 20 jobs add up to 20")
}

/// The class of a job by its name.
pub fn class_of(name: &str) -> Option<ShuffleClass> {
    let stem = name.rsplit_once('-').map_or(name, |n| n.0);
    BENCHMARKS.iter().find(|b| b.0 == stem).map(|b| b.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_are_table_1s() {
        assert_eq!(BENCHMARKS.iter().map(|b| b.1).sum::<u32>(), 20);
        let of = |c| BENCHMARKS.iter().filter(|b| b.2 == c).map(|b| b.1).sum::<u32>();
        assert_eq!(
            [ShuffleClass::Heavy, ShuffleClass::Medium, ShuffleClass::Light].map(of),
            [8, 4, 8]
        );
        let drawn = |k: u64| at(((k << 32) / 20 + 7) as u32).0;
        assert_eq!(
            (drawn(0), drawn(1), drawn(19), at(u32::MAX).0),
            ("terasort", "index", "histogram", "histogram")
        );
        assert_eq!(
            (class_of("sequence-count-7"), class_of("grep-0"), class_of("job-1")),
            (Some(ShuffleClass::Heavy), Some(ShuffleClass::Light), None)
        );
    }
}
