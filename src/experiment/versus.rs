//! `joint` beside the best of the others, draw by draw, and beside itself without one of its parts.

use serde::Serialize;

use super::joint::{JOINT, PUBLISHED, WITHOUT};
use super::measure::Measure;
use super::runs::{FLOOR, Outcomes};
use super::setting::ExperimentSetting;
use crate::runtime::statistics::{MeanEstimate, Paired, mean};

/// What is compared.
pub const MEASURES: [Measure; 9] = [
    Measure::Makespan,
    Measure::MeanJct,
    Measure::MedianJct,
    Measure::P95Jct,
    Measure::P99Jct,
    Measure::MeanCct,
    Measure::ShuffleCost,
    Measure::Jain,
    Measure::SlowestUser,
];

/// One measure of `joint` on one setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Versus {
    /// The setting.
    pub setting: &'static str,
    /// What is measured.
    pub measure: Measure,
    /// What no scheduler can be below, in the mean over draws, where there is a bound.
    pub floor: Option<f64>,
    /// What `joint` has, in the mean over draws.
    pub joint: f64,
    /// Against the published system that is best in the mean.
    pub published: Option<OtherSystem>,
    /// Against the best of these with the least remaining work first and late reduces.
    pub strong: Option<OtherSystem>,
    /// `joint` without one of its parts, by how much that has more than all of it.
    pub without: Vec<OtherSystem>,
}

/// Another system.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OtherSystem {
    /// Which.
    pub system: &'static str,
    /// What it has, in the mean over draws.
    pub mean: f64,
    /// By how many per cent the one has more than the other: the mean of the ratios of the draws,
    /// and half of its 95 % interval.
    pub percent: Option<MeanEstimate>,
}

/// All that is to be said of a setting. A draw counts where both sides were run.
pub fn of(s: &ExperimentSetting, outcomes: &Outcomes) -> Vec<Versus> {
    MEASURES.into_iter().filter_map(|m| one(s.name, m, outcomes)).collect()
}

fn one(setting: &'static str, measure: Measure, outcomes: &Outcomes) -> Option<Versus> {
    let values = |system: &str| outcomes.values(setting, system, measure);
    let some = |system| Some(values(system)).filter(|v| !v.is_empty());
    let joint = some(JOINT)?;
    let pairs = |over: &str, under: &str| -> Vec<(f64, f64)> {
        let both = outcomes.of(setting, over).iter().zip(outcomes.of(setting, under));
        both.filter_map(|(a, b)| Some((*a.as_ref()?.get(&measure)?, *b.as_ref()?.get(&measure)?)))
            .collect()
    };
    let better =
        |a: f64, b: f64| if measure.more_is_better() { b.total_cmp(&a) } else { a.total_cmp(&b) };
    let best = |names: &mut dyn Iterator<Item = &'static str>| {
        let all = names.filter_map(|y| Some((y, mean(&some(y)?))));
        let (system, mean) = all.min_by(|a, b| better(a.1, b.1))?;
        Some(OtherSystem { system, mean, percent: Paired::of(&pairs(JOINT, system)).percent })
    };
    let without = WITHOUT.iter().filter_map(|w| {
        Some(OtherSystem {
            system: w.0,
            mean: mean(&some(w.0)?),
            percent: Paired::of(&pairs(w.0, JOINT)).percent,
        })
    });
    Some(Versus {
        setting,
        measure,
        floor: some(FLOOR).map(|v| mean(&v)),
        joint: mean(&joint),
        published: best(&mut PUBLISHED.iter().map(|p| p.0)),
        strong: best(&mut PUBLISHED.iter().map(|p| p.1)),
        without: without.collect(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{Paper, Size};

    #[test]
    fn the_best_in_the_mean_is_compared_draw_by_draw() {
        let size =
            Size { seed: 21, repeats: 2, jobs_percent: 1, thin: true, free: Default::default() };
        let setting = Paper::Joint.experiment(size).settings.remove(0);
        let runs = |system, values: [Option<f64>; 2]| {
            values.into_iter().map(move |v| {
                (("JobPacker batch", system), v.map(|v| BTreeMap::from([(Measure::Makespan, v)])))
            })
        };
        let all = runs(JOINT, [Some(90.0), Some(300.0)])
            .chain(runs("JobPacker", [Some(100.0), Some(400.0)]))
            .chain(runs("Corral", [Some(50.0), Some(600.0)]))
            .chain(runs("Corral, SRPT", [Some(45.0), None]))
            .chain(runs(FLOOR, [Some(40.0), Some(200.0)]))
            .chain(runs(WITHOUT[0].0, [Some(99.0), Some(300.0)]));
        let found = of(&setting, &Outcomes::new(size, all));
        let [v] = &found[..] else { panic!("{found:?}") };
        assert_eq!((v.measure, v.floor, v.joint), (Measure::Makespan, Some(120.0), 195.0));
        let (published, strong) = (v.published.unwrap(), v.strong.unwrap());
        // -10 and -25 %.
        assert_eq!((published.system, published.mean), ("JobPacker", 250.0));
        assert!(
            (published.percent.unwrap().mean + 17.5).abs() < 1e-9
                && published.percent.unwrap().half.is_some()
        );
        assert!(
            strong.system == "Corral, SRPT" && (strong.percent.unwrap().mean - 100.0).abs() < 1e-9
        );
        assert!((v.without[0].percent.unwrap().mean - 5.0).abs() < 1e-9 && v.without.len() == 1);
    }
}
