//! Where data goes: three homes for each job, so that its maps have a choice of racks with room.

use crate::ids::RackId;
use crate::placement::replicas::ReplicaSets;

/// By rack: map work, in slot time, that has a home there and is not done.
#[derive(Clone, Debug, Default)]
pub struct Homes {
    work: Vec<u64>,
}

impl Homes {
    /// Of racks without work.
    pub fn new(racks: usize) -> Self {
        Self { work: vec![0; racks] }
    }

    /// Three homes for `tasks` tasks of `work` in all: each is of as few racks as have `slots` for
    /// all tasks (by rack; none: not usable), but of `width` at least, those with the least work;
    /// no rack twice while there are others. `None` where no rack is usable. O(R log R).
    pub fn choose(
        &mut self,
        tasks: u32,
        work: u64,
        slots: &[u32],
        width: usize,
    ) -> Option<ReplicaSets> {
        let mut order: Vec<usize> = (0..slots.len()).filter(|&r| slots[r] > 0).collect();
        order.sort_by_key(|&r| (self.work[r] / u64::from(slots[r]), r));
        let all = order.len();
        let mut walk = order.into_iter().cycle();
        let mut home = || {
            let (mut set, mut room) = (Vec::new(), 0u64);
            while (room < u64::from(tasks) || set.len() < width) && set.len() < all {
                let r = walk.next()?;
                room += u64::from(slots[r]);
                set.push(RackId::from(r));
            }
            set.sort_unstable();
            (!set.is_empty()).then_some(set)
        };
        let sets = [home()?, home()?, home()?];
        let racks: usize = sets.iter().map(Vec::len).sum();
        let sets = ReplicaSets { disjoint: racks <= all, sets };
        self.add(&sets, work, true);
        Some(sets)
    }

    /// Its maps are done.
    pub fn leave(&mut self, sets: &ReplicaSets, work: u64) {
        self.add(sets, work, false);
    }

    fn add(&mut self, sets: &ReplicaSets, work: u64, more: bool) {
        for set in &sets.sets {
            let part = work / 3 / set.len() as u64;
            for r in set {
                let w = &mut self.work[r.index()];
                *w = if more { w.saturating_add(part) } else { w.saturating_sub(part) };
            }
        }
    }
}
