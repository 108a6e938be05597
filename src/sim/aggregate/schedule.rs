//! What every event asks of all coflows, by index in their order. It is stored apart because
//! coflows are large.

use super::coflow::AggregateCoflow;
use super::residual::Residual;
use crate::units::Time;

/// By index in the order in which coflows are served.
#[derive(Default)]
pub struct Schedule {
    /// Whether the coflow's rate is above zero.
    moves: Vec<bool>,
    /// When its first sender or receiver is done, and when it leaves its queue; [`Time::MAX`]:
    /// never.
    through: Vec<Time>,
    turns: Vec<Time>,
    /// By side and word of 64 hosts: which of these hosts are not done.
    live: [Vec<Vec<u64>>; 2],
    /// Buffers that are kept.
    found: [Vec<u64>; 2],
}

impl Schedule {
    /// Coflows in a new order, all rates zero. O(coflows x hosts / 64).
    pub fn reset(&mut self, coflows: &[AggregateCoflow]) {
        self.moves = vec![false; coflows.len()];
        self.through = vec![Time::MAX; coflows.len()];
        self.turns = vec![Time::MAX; coflows.len()];
        for (side, columns) in self.live.iter_mut().enumerate() {
            columns.resize(coflows.first().map_or(0, |c| c.live()[side].len()), Vec::new());
            for (k, column) in columns.iter_mut().enumerate() {
                column.clear();
                column.extend(coflows.iter().map(|c| c.live()[side][k]));
            }
        }
    }

    /// The rates of one coflow have changed: its first host is done at `through`, and it leaves its
    /// queue at `turn`.
    pub fn set(&mut self, place: usize, c: &AggregateCoflow, through: Time, turn: Time) {
        (self.moves[place], self.through[place], self.turns[place]) = (c.moves(), through, turn);
    }

    /// Some hosts of a coflow are done. O(hosts / 64).
    pub fn leave(&mut self, place: usize, c: &AggregateCoflow) {
        for (columns, live) in self.live.iter_mut().zip(c.live()) {
            columns.iter_mut().zip(live).for_each(|(column, &word)| column[place] = word);
        }
    }

    /// When the first host is done, and when the first coflow leaves its queue, if ever.
    /// O(coflows).
    pub fn next(&self) -> [Option<Time>; 2] {
        [&self.through, &self.turns]
            .map(|list| list.iter().copied().min().filter(|&t| t < Time::MAX))
    }

    /// Coflows with a host that is done by now.
    pub fn through(&self, now: Time) -> Vec<usize> {
        due(&self.through, now)
    }

    /// Coflows that leave their queue by now.
    pub fn turns(&self, now: Time) -> Vec<usize> {
        due(&self.turns, now)
    }

    /// Whether the rate of any coflow is above zero.
    pub fn any_moves(&self) -> bool {
        self.moves.contains(&true)
    }

    /// Coflows with bandwidth for a sender and a receiver, in order. O(coflows x words of hosts
    /// with room).
    pub fn with_room(&mut self, room: &Residual) -> Vec<usize> {
        for (side, found) in self.found.iter_mut().enumerate() {
            found.clear();
            found.resize(self.moves.len(), 0);
            for (k, open) in room.open(side) {
                found
                    .iter_mut()
                    .zip(&self.live[side][k])
                    .for_each(|(found, live)| *found |= live & open);
            }
        }
        let [up, down] = &self.found;
        let both = up.iter().zip(down).enumerate();
        both.filter(|(_, (up, down))| **up != 0 && **down != 0).map(|(place, _)| place).collect()
    }
}

fn due(list: &[Time], now: Time) -> Vec<usize> {
    list.iter()
        .enumerate()
        .filter(|&(_, &t)| t <= now && t < Time::MAX)
        .map(|(place, _)| place)
        .collect()
}
