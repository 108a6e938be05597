//! Racks over time: a row a rack, as high as its slots; a job is a colour.

use crate::draw::gantt::{self, GanttChart};
use crate::draw::many;

/// Slots of a rack that one job holds for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotsBar {
    /// Which rack.
    pub rack: usize,
    /// How many of its slots.
    pub slots: u32,
    /// In nanoseconds.
    pub from: u64,
    /// In nanoseconds.
    pub until: u64,
    /// The job's number, which is its colour.
    pub job: u32,
    /// Text that is shown where the reader points at it.
    pub title: String,
}

/// Consecutive slots of a bar.
struct Piece<'a> {
    bar: &'a SlotsBar,
    first: usize,
    count: usize,
}

/// Gives bars slots of their racks, first free slots first: bars that never hold more slots than
/// there are always find them.
fn pieces(bars: &[SlotsBar], racks: usize, slots: u32) -> Vec<Piece<'_>> {
    let mut free = vec![vec![0u64; slots as usize]; racks];
    let mut out = vec![];
    for bar in bars {
        let mut left = bar.slots;
        for (k, slot) in free[bar.rack].iter_mut().enumerate() {
            if left == 0 || *slot > bar.from {
                continue;
            }
            (*slot, left) = (bar.until, left - 1);
            match out.last_mut() {
                Some(Piece { bar: last, first, count })
                    if std::ptr::eq(*last, bar) && *first + *count == k =>
                {
                    *count += 1
                }
                _ => out.push(Piece { bar, first: k, count: 1 }),
            }
        }
    }
    out
}

/// The chart of `racks` racks of `slots` slots; jobs' `names` are by their numbers.
pub fn chart(names: &[String], mut bars: Vec<SlotsBar>, racks: usize, slots: u32) -> GanttChart {
    bars.sort_by_key(|b| (b.from, b.rack));
    let end = bars.iter().map(|b| b.until).max().unwrap_or(0);
    let slots = slots.max(1);
    let bar = |Piece { bar, first, count }: Piece<'_>| gantt::GanttBar {
        row: bar.rack as f64 + first as f64 / f64::from(slots),
        height: count as f64 / f64::from(slots),
        from: bar.from,
        until: bar.until,
        fill: many(bar.job as usize),
        label: names.get(bar.job as usize).cloned().unwrap_or_default(),
        title: bar.title.clone(),
    };
    let bars = pieces(&bars, racks, slots).into_iter().map(bar).collect();
    GanttChart {
        names: (0..racks).map(|r| format!("r{r}")).collect(),
        bars,
        end,
        keys: gantt::legend(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_gets_all_its_slots_and_none_twice() {
        let bar = |slots, from, until, job| SlotsBar {
            rack: 0,
            slots,
            from,
            until,
            job,
            title: "a<b".into(),
        };
        let bars = [bar(2, 0, 10, 0), bar(1, 0, 5, 1), bar(2, 5, 9, 2), bar(4, 10, 12, 3)];
        let p = pieces(&bars, 1, 4);
        let of = |job| {
            p.iter().filter(|p| p.bar.job == job).map(|p| (p.first, p.count)).collect::<Vec<_>>()
        };
        assert_eq!(
            (of(0), of(1), of(2), of(3)),
            (vec![(0, 2)], vec![(2, 1)], vec![(2, 2)], vec![(0, 4)])
        );
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        let drawn = chart(&names, bars.to_vec(), 1, 4);
        let places: Vec<_> =
            drawn.bars.iter().map(|b| (b.label.as_str(), b.row, b.height, b.until)).collect();
        assert_eq!(
            places,
            [("a", 0.0, 0.5, 10), ("b", 0.5, 0.25, 5), ("c", 0.5, 0.5, 9), ("d", 0.0, 1.0, 12)]
        );
        assert_eq!((drawn.keys.len(), drawn.end), (4, 12));
    }
}
