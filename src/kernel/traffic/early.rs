//! Priorities that were given before their coflow was entered: the controller knows a coflow before
//! its traffic does.

use std::collections::VecDeque;

use crate::coflows::priority::{PriorityChange, Said};
use crate::ids::CoflowId;

/// Coflows of which something is kept.
const KEPT: usize = 1024;

/// What was said of coflows that were not entered yet, the last of these coflows at the back, at
/// most [`KEPT`].
#[derive(Default)]
pub struct Early(VecDeque<(CoflowId, Said)>);

impl Early {
    /// Keeps the priorities of a coflow until it is entered. O([`KEPT`]).
    pub fn say(&mut self, coflow: CoflowId, change: &PriorityChange) {
        let mut said = self.take(coflow).unwrap_or_default();
        said.change(change);
        self.0.push_back((coflow, said));
        if self.0.len() > KEPT {
            self.0.pop_front();
        }
    }

    /// What was said of a coflow. O([`KEPT`]).
    pub fn take(&mut self, coflow: CoflowId) -> Option<Said> {
        let at = self.0.iter().position(|e| e.0 == coflow)?;
        self.0.remove(at).map(|e| e.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_the_last_coflows_are_kept() {
        let mut early = Early::default();
        let one = PriorityChange { all: Some(1), flows: vec![] };
        (0..=KEPT as u32).for_each(|id| early.say(CoflowId(id), &one));
        assert_eq!(
            (early.take(CoflowId(0)).is_none(), early.take(CoflowId(1)).map(|s| s.whole())),
            (true, Some(one))
        );
        assert!(early.take(CoflowId(1)).is_none(), "it is taken");
    }
}
