//! What a paper claims, and how it compares with what we measured.

use serde::{Deserialize, Serialize};

use super::runs::{FLOOR, Measure, Outcomes};
use crate::runtime::statistics::{MeanEstimate, mean};

/// One system on one setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ClaimSide {
    /// The setting.
    pub setting: &'static str,
    /// The system.
    pub system: &'static str,
}

/// A setting, and a system on it.
pub type SettingAndSystem = (&'static str, &'static str);

/// What the paper prints.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Printed {
    /// One number.
    About(f64),
    /// From the one to the other.
    Between(f64, f64),
    /// More than that.
    AtLeast(f64),
    /// Less than that.
    AtMost(f64),
}

/// One number of a paper.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// Of what.
    pub measure: Measure,
    /// Whose.
    pub of: ClaimSide,
    /// It is a reduction against this (a gain, where more is better), in per cent of this; else the
    /// measure itself.
    pub against: Option<ClaimSide>,
    /// It is how far the reduction goes beyond that of one side against another, in points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beyond: Option<(ClaimSide, ClaimSide)>,
    /// What the paper prints; `None`: nothing, we only measure.
    pub printed: Option<Printed>,
    /// Where it is printed.
    pub source: &'static str,
    /// A free number was chosen by it: it is no prediction.
    pub calibrated: bool,
    /// Why no model here can tell, if so.
    pub untold: Option<&'static str>,
}

/// How our mean compares with what the paper prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    /// Within what is printed; of a single number, at most a tenth of it off.
    Same,
    /// At most a third of what is printed off.
    Near,
    /// The same system is better, by more than a third more or less than is printed.
    SameDirection,
    /// The same system is better, by less than a third of what is printed.
    FarLess,
    /// The other system is better.
    Opposite,
    /// The 95 % interval does not tell: that of a reduction holds zero and what is printed does
    /// not; or it is wider than what is printed; or it reaches what is printed, though the mean is
    /// far from it.
    Unclear,
    /// A figure that compares nothing, more than a third off.
    Differs,
    /// What is printed is beyond what any scheduler can reach on these jobs
    /// ([`floor`](super::floor)).
    BeyondBound,
    /// Something decides it that the paper leaves open and that cannot be calibrated: see
    /// [`Claim::untold`].
    CannotTell,
    /// A number that the paper leaves out was chosen so that this one is met: no prediction, no
    /// agreement.
    Calibrated,
    /// The paper prints nothing.
    Ours,
    /// Nothing was run.
    NotRun,
}

impl ClaimVerdict {
    /// Whether it is about a number that the paper prints and that we predicted: neither chosen,
    /// nor open, nor ours alone, nor left out.
    pub fn is_prediction(self) -> bool {
        !matches!(
            self,
            Self::Calibrated | Self::BeyondBound | Self::CannotTell | Self::Ours | Self::NotRun
        )
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Same => "as in the paper",
            Self::Near => "near",
            Self::SameDirection => "same direction",
            Self::FarLess => "far less",
            Self::Opposite => "opposite",
            Self::Unclear => "unclear",
            Self::Differs => "differs",
            Self::BeyondBound => "cannot tell: beyond the bound",
            Self::CannotTell => "cannot tell",
            Self::Calibrated => "calibrated",
            Self::Ours => "-",
            Self::NotRun => "not run",
        }
    }
}

impl Printed {
    fn ends(self) -> (f64, f64) {
        match self {
            Self::About(p) => (p, p),
            Self::Between(a, b) => (a, b),
            Self::AtLeast(a) => (a, f64::INFINITY),
            Self::AtMost(b) => (f64::NEG_INFINITY, b),
        }
    }

    /// How far a value is from what is printed: negative below, zero within.
    pub fn off(self, v: f64) -> f64 {
        let (low, high) = self.ends();
        if v < low { v - low } else { (v - high).max(0.0) }
    }

    /// How large what is printed is, at the end that is nearest to a value.
    fn size(self, v: f64) -> f64 {
        let (low, high) = self.ends();
        if (v < low || !high.is_finite()) && low.is_finite() { low.abs() } else { high.abs() }
    }

    /// Whether a value is within what is printed, or of a single number at most `slack` off. More
    /// than zero is not zero.
    fn is_met(self, v: f64, slack: f64) -> bool {
        match self {
            Self::About(p) => (v - p).abs() <= slack,
            Self::Between(..) => self.off(v) == 0.0,
            Self::AtLeast(bound) | Self::AtMost(bound) => self.off(v) == 0.0 && v != bound,
        }
    }

    /// The sign of what is printed: a gain, a loss, or neither.
    fn sign(self) -> f64 {
        match self {
            Self::About(p) => p.signum(),
            Self::Between(a, b) if a * b > 0.0 => a.signum(),
            Self::AtLeast(a) if a >= 0.0 => 1.0,
            Self::AtMost(b) if b <= 0.0 => -1.0,
            _ => 0.0,
        }
    }

    /// For people.
    pub fn words(self, unit: &str) -> String {
        match self {
            Self::About(p) => format!("{p}{unit}"),
            Self::Between(a, b) => format!("{a} to {b}{unit}"),
            Self::AtLeast(a) => format!("> {a}{unit}"),
            Self::AtMost(b) => format!("< {b}{unit}"),
        }
    }
}

/// What no scheduler goes beyond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    /// The floor of the measure.
    pub floor: f64,
    /// Of a comparison, the most per cent that can be saved of what the other side has.
    pub most: Option<f64>,
}

/// A difference below this is shown as 0.0 %.
const SHOWN: f64 = 0.05;

fn average(values: impl Iterator<Item = f64>) -> Option<f64> {
    let all: Vec<f64> = values.collect();
    (!all.is_empty()).then(|| mean(&all))
}

impl Claim {
    /// A measure of one system on one setting.
    pub fn of(
        measure: Measure,
        (setting, system): SettingAndSystem,
        printed: impl Into<Option<Printed>>,
        source: &'static str,
    ) -> Self {
        let (of, printed) = (ClaimSide { setting, system }, printed.into());
        Self {
            measure,
            of,
            against: None,
            beyond: None,
            printed,
            source,
            calibrated: false,
            untold: None,
        }
    }

    /// By how many per cent a system has less than `base` on the same setting, or more where more
    /// is better.
    pub fn less(
        measure: Measure,
        of: SettingAndSystem,
        base: &'static str,
        printed: impl Into<Option<Printed>>,
        source: &'static str,
    ) -> Self {
        Self {
            against: Some(ClaimSide { setting: of.0, system: base }),
            ..Self::of(measure, of, printed, source)
        }
    }

    /// The same figure, compared with what it is on another setting: a claim of order between two
    /// gains.
    #[must_use]
    pub fn beyond(self, setting: &'static str) -> Self {
        let there = |s: ClaimSide| ClaimSide { setting, ..s };
        Self { beyond: self.against.map(|base| (there(self.of), there(base))), ..self }
    }

    /// The figure by repetition: a reduction is taken within each, since both sides ran the same
    /// jobs.
    pub fn values(&self, outcomes: &Outcomes) -> Vec<f64> {
        let Some(base) = self.against else {
            return self.of_each(self.of, outcomes).flatten().collect();
        };
        let own = self.gains((self.of, base), outcomes);
        let other = self.beyond.map(|sides| self.gains(sides, outcomes));
        match other {
            None => own.into_iter().flatten().collect(),
            Some(other) => own.into_iter().zip(other).filter_map(|(a, b)| Some(a? - b?)).collect(),
        }
    }

    /// What no scheduler goes beyond, as a mean over the repetitions; `None` where there is no
    /// floor.
    pub fn reach(&self, outcomes: &Outcomes) -> Option<Reach> {
        let floors: Vec<Option<f64>> =
            self.of_each(ClaimSide { system: FLOOR, ..self.of }, outcomes).collect();
        let floor = average(floors.iter().flatten().copied())?;
        let Some(base) =
            self.against.filter(|b| b.setting == self.of.setting && self.beyond.is_none())
        else {
            return self.against.is_none().then_some(Reach { floor, most: None });
        };
        let saved = floors
            .iter()
            .zip(self.of_each(base, outcomes))
            .filter_map(|(f, b)| Some(100.0 * (1.0 - (*f)? / b.filter(|b| *b > 0.0)?)));
        Some(Reach { floor, most: Some(average(saved)?) })
    }

    /// Whether what is printed is beyond that.
    pub fn is_beyond(&self, reach: Reach) -> bool {
        self.printed.is_some_and(|p| match (p.ends(), reach.most) {
            ((low, _), Some(most)) => low > most,
            ((_, high), None) => high < reach.floor,
        })
    }

    fn of_each<'a>(
        &'a self,
        s: ClaimSide,
        outcomes: &'a Outcomes,
    ) -> impl Iterator<Item = Option<f64>> + 'a {
        outcomes.of(s.setting, s.system).iter().map(|o| o.as_ref()?.get(&self.measure).copied())
    }

    /// By repetition, by how many per cent one side has less than the other, or more where more is
    /// better.
    fn gains(&self, (of, base): (ClaimSide, ClaimSide), outcomes: &Outcomes) -> Vec<Option<f64>> {
        let sign = if self.measure.more_is_better() { -1.0 } else { 1.0 };
        let both = self
            .of_each(of, outcomes)
            .zip(self.of_each(base, outcomes))
            .map(|(a, b)| a.zip(b).filter(|v| v.1 > 0.0));
        both.map(|v| v.map(|(a, b)| sign * 100.0 * (1.0 - a / b))).collect()
    }

    /// The unit of the figure.
    pub fn unit(&self) -> &'static str {
        use Measure::{DataSpread, Decision, FlowDelay, Gap, Overrun, RouteLength, ShuffleCost};
        let percent = self.measure.is_share() || matches!(self.measure, DataSpread | Gap | Overrun);
        match self.measure {
            _ if self.against.is_some() || percent => " %",
            RouteLength => " hops",
            Decision | FlowDelay => " us",
            ShuffleCost => " GB",
            _ => " s",
        }
    }

    /// How a mean with half its interval compares with what is printed.
    pub fn verdict(&self, mean: f64, half: Option<f64>) -> ClaimVerdict {
        let Some(printed) = self.printed else { return ClaimVerdict::Ours };
        match () {
            () if self.calibrated => ClaimVerdict::Calibrated,
            () if self.untold.is_some() => ClaimVerdict::CannotTell,
            () => self.compared(printed, MeanEstimate { mean, half }),
        }
    }

    fn compared(&self, printed: Printed, ours: MeanEstimate) -> ClaimVerdict {
        let (mean, sign) = (ours.mean, if self.against.is_some() { printed.sign() } else { 0.0 });
        // Of a share of a whole, a point or two are nothing, however small what is printed.
        let least =
            if self.against.is_none() && self.measure.is_share() { (2.0, 5.0) } else { (0.0, 0.0) };
        let size = printed.size(mean);
        let (slack, near) = ((size / 10.0).max(least.0), (size / 3.0).max(least.1));
        let (off, half) = (printed.off(mean).abs(), ours.half.unwrap_or(0.0));
        let met = printed.is_met(mean, slack);
        // An interval that is wider than what is printed tells nothing, wherever its mean is.
        let wide = sign != 0.0 && size > 0.0 && 2.0 * half > size;
        match () {
            () if sign != 0.0 && (ours.is_unclear() || mean.abs() < SHOWN) => ClaimVerdict::Unclear,
            () if sign != 0.0 && mean * sign < 0.0 => ClaimVerdict::Opposite,
            () if wide && off <= half => ClaimVerdict::Unclear,
            () if met => ClaimVerdict::Same,
            () if off <= near => ClaimVerdict::Near,
            () if off <= half => ClaimVerdict::Unclear,
            () if sign != 0.0 && mean.abs() < size / 3.0 => ClaimVerdict::FarLess,
            () if sign != 0.0 => ClaimVerdict::SameDirection,
            () => ClaimVerdict::Differs,
        }
    }
}
