//! Discretised coflow-aware least-attained service: Aalo's queues.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Span, Time};

/// Aalo's queues: the first holds coflows that have sent less than `first`, each later one `factor`
/// times as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Aalo {
    /// How many queues, one at least.
    pub queues: u32,
    /// What a coflow may send before it leaves the first queue.
    pub first: Bytes,
    /// How much further each later queue reaches.
    pub factor: u64,
    /// How the queues share the links.
    pub sharing: Sharing,
    /// Interval at which the coordinator reads what coflows have sent and moves them to their
    /// queues; zero: at once.
    #[cfg_attr(feature = "serde", serde(default))]
    pub interval: Span,
}

/// How Aalo's queues share links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Sharing {
    /// A queue takes what it can use, and leaves the rest to the next. So has Aalo's prototype.
    Strict,
    /// The queue k of K (from zero) has the weight K - k among those that hold coflows; what one
    /// does not use goes to the others in order.
    #[default]
    Weighted,
}

impl Default for Aalo {
    fn default() -> Self {
        let interval = Span::millis(10);
        Self {
            queues: 10,
            first: Bytes(10_000_000),
            factor: 10,
            sharing: Sharing::default(),
            interval,
        }
    }
}

impl Aalo {
    /// What a coflow of `queue` may send before it moves on; `None` from the last one.
    pub fn limit(&self, queue: u32) -> Option<Bytes> {
        let grown = (0..queue).fold(self.first.0, |limit, _| limit.saturating_mul(self.factor));
        (queue + 1 < self.queues).then_some(Bytes(grown))
    }

    /// Whether the coordinator looks at this instant.
    pub fn looks_at(&self, now: Time) -> bool {
        now.0.checked_rem(self.interval.0).unwrap_or(0) == 0
    }

    /// The first instant from `t` on at which the coordinator looks.
    pub fn looks_from(&self, t: Time) -> Time {
        t.0.checked_next_multiple_of(self.interval.0.max(1)).map_or(Time::MAX, Time)
    }
}

/// The queue, from zero, of a coflow that has sent `sent` bytes. O(queues).
///
/// Source: Chowdhury and Stoica, *Efficient coflow scheduling without prior knowledge*, SIGCOMM
/// 2015, section 4.2. Within a queue the earlier coflow goes first.
pub fn queue(sent: Bytes, aalo: &Aalo) -> u32 {
    (0..aalo.queues).find(|&q| aalo.limit(q).is_none_or(|limit| sent < limit)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_reach_ten_times_as_far_each() {
        let a = Aalo { queues: 3, ..Aalo::default() };
        let at = [0, 9_999_999, 10_000_000, 99_999_999, 100_000_000, u64::MAX]
            .map(|b| queue(Bytes(b), &a));
        assert_eq!(at, [0, 0, 1, 1, 2, 2]);
        assert_eq!((a.limit(1), a.limit(2)), (Some(Bytes(100_000_000)), None));
        let one = Aalo { queues: 1, ..a };
        assert_eq!(queue(Bytes(u64::MAX), &one), 0);
        let far = Aalo { queues: 64, first: Bytes(1 << 60), ..a };
        assert_eq!(
            queue(Bytes(u64::MAX), &far),
            63,
            "limits that do not fit in 64 bits are never reached, and no panic"
        );
    }
}
