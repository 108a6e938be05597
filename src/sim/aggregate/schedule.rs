//! What is asked of all coflows at every event, by place in their order. It lies together in memory: coflows are large.

use super::coflow::Coflow;
use super::residual::Residual;
use crate::units::Time;

/// By place in the order in which coflows are served.
#[derive(Default)]
pub struct Schedule {
    /// Whether it moves.
    moves: Vec<bool>,
    /// When the first of its senders and receivers is through, and when it leaves its queue; [`Time::MAX`]: never.
    through: Vec<Time>,
    turns: Vec<Time>,
    /// By side and word of 64 hosts: which of these hosts have something left.
    live: [Vec<Vec<u64>>; 2],
    /// Kept for their memory.
    found: [Vec<u64>; 2],
}

impl Schedule {
    /// Coflows in a new order, at rest. O(coflows x hosts / 64).
    pub fn reset(&mut self, coflows: &[Coflow]) {
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

    /// One has other rates: the first of its sums is through, and it leaves its queue, at these instants.
    pub fn set(&mut self, place: usize, c: &Coflow, through: Time, turn: Time) {
        (self.moves[place], self.through[place], self.turns[place]) = (c.moves(), through, turn);
    }

    /// Some of its hosts have nothing left any more. O(hosts / 64).
    pub fn leave(&mut self, place: usize, c: &Coflow) {
        for (columns, live) in self.live.iter_mut().zip(c.live()) {
            columns.iter_mut().zip(live).for_each(|(column, &word)| column[place] = word);
        }
    }

    /// When the first sum is through, and the first coflow leaves its queue, if ever. O(coflows).
    pub fn next(&self) -> [Option<Time>; 2] {
        [&self.through, &self.turns].map(|list| list.iter().copied().min().filter(|&t| t < Time::MAX))
    }

    /// Coflows of which a sum is through by now.
    pub fn through(&self, now: Time) -> Vec<usize> {
        due(&self.through, now)
    }

    /// Coflows that leave their queue by now.
    pub fn turns(&self, now: Time) -> Vec<usize> {
        due(&self.turns, now)
    }

    /// Whether any moves.
    pub fn any_moves(&self) -> bool {
        self.moves.contains(&true)
    }

    /// Those of which a sender and a receiver have room, in order. O(coflows x words of hosts with room).
    pub fn with_room(&mut self, room: &Residual) -> Vec<usize> {
        for (side, found) in self.found.iter_mut().enumerate() {
            found.clear();
            found.resize(self.moves.len(), 0);
            for (k, open) in room.open(side) {
                found.iter_mut().zip(&self.live[side][k]).for_each(|(found, live)| *found |= live & open);
            }
        }
        let [up, down] = &self.found;
        let both = up.iter().zip(down).enumerate();
        both.filter(|(_, (up, down))| **up != 0 && **down != 0).map(|(place, _)| place).collect()
    }
}

fn due(list: &[Time], now: Time) -> Vec<usize> {
    list.iter().enumerate().filter(|&(_, &t)| t <= now && t < Time::MAX).map(|(place, _)| place).collect()
}
