//! What a paper claims, and how it compares with what we measured.

use serde::{Deserialize, Serialize};

use super::runs::{Measure, Outcomes};
use crate::runtime::statistics::Estimate;

/// One system on one setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// The setting.
    pub setting: &'static str,
    /// The system.
    pub system: &'static str,
}

/// A setting, and a system on it.
pub type Place = (&'static str, &'static str);

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
    pub of: Side,
    /// It is a reduction against this (a gain, where more is better), in per cent of this; else the measure itself.
    pub against: Option<Side>,
    /// What the paper prints; `None`: nothing, we only measure.
    pub printed: Option<Printed>,
    /// Where it is printed.
    pub source: &'static str,
    /// A free number was chosen by it: it is no prediction.
    pub calibrated: bool,
}

/// How our mean compares with what the paper prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Within what is printed; of a single number, at most five points off.
    Same,
    /// At most fifteen points off, and in the same direction.
    Near,
    /// The same system is better, by more than fifteen points more or less.
    SameDirection,
    /// The other system is better.
    Opposite,
    /// The 95 % interval of a reduction holds zero, and what is printed does not: we cannot tell which system is better, wherever
    /// the mean is.
    Unclear,
    /// A figure that compares nothing, more than fifteen points off.
    Differs,
    /// A number that the paper leaves out was chosen so that this one is met: no prediction, no agreement.
    Calibrated,
    /// The paper prints nothing.
    Ours,
    /// Nothing was run.
    NotRun,
}

impl Verdict {
    /// Whether it is about a number that the paper prints and that we predicted: neither chosen, nor ours alone, nor left out.
    pub fn is_prediction(self) -> bool {
        !matches!(self, Self::Calibrated | Self::Ours | Self::NotRun)
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Same => "as in the paper",
            Self::Near => "near (15 points)",
            Self::SameDirection => "same direction",
            Self::Opposite => "opposite",
            Self::Unclear => "unclear",
            Self::Differs => "differs",
            Self::Calibrated => "calibrated",
            Self::Ours => "-",
            Self::NotRun => "not run",
        }
    }
}

impl Printed {
    /// How far a value is from what is printed: negative below, zero within. A single number is met by its five points.
    pub fn off(self, v: f64) -> f64 {
        let (low, high) = match self {
            Self::About(p) => (p, p),
            Self::Between(a, b) => (a, b),
            Self::AtLeast(a) => (a, f64::INFINITY),
            Self::AtMost(b) => (f64::NEG_INFINITY, b),
        };
        if v < low { v - low } else { (v - high).max(0.0) }
    }

    /// Whether a value, `off` points off, is within what is printed. More than zero is not zero.
    fn is_met(self, v: f64, off: f64) -> bool {
        match self {
            Self::About(_) => off <= 5.0,
            Self::Between(..) => off == 0.0,
            Self::AtLeast(bound) | Self::AtMost(bound) => off == 0.0 && v != bound,
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

impl Claim {
    /// A measure of one system on one setting.
    pub fn of(measure: Measure, (setting, system): Place, printed: impl Into<Option<Printed>>, source: &'static str) -> Self {
        Self { measure, of: Side { setting, system }, against: None, printed: printed.into(), source, calibrated: false }
    }

    /// By how many per cent a system has less than `base` on the same setting, or more where more is better.
    pub fn less(measure: Measure, of: Place, base: &'static str, printed: impl Into<Option<Printed>>, source: &'static str) -> Self {
        Self { against: Some(Side { setting: of.0, system: base }), ..Self::of(measure, of, printed, source) }
    }

    /// The figure by repetition: a reduction is taken within each, since both sides ran the same jobs.
    pub fn values(&self, outcomes: &Outcomes) -> Vec<f64> {
        let of = |s: Side| outcomes.of(s.setting, s.system).iter().map(|o| o.as_ref()?.get(&self.measure).copied());
        match self.against {
            None => of(self.of).flatten().collect(),
            Some(base) => {
                let both = of(self.of).zip(of(base)).filter_map(|(a, b)| a.zip(b)).filter(|v| v.1 > 0.0);
                let sign = if self.measure.more_is_better() { -1.0 } else { 1.0 };
                both.map(|(a, b)| sign * 100.0 * (1.0 - a / b)).collect()
            }
        }
    }

    /// The unit of the figure.
    pub fn unit(&self) -> &'static str {
        use Measure::{Crossing, Far, Gap, OcsShare, Overrun, ReadShare, RouteLength, ShuffleShare, Utilisation, Waiting};
        let shares = matches!(self.measure, OcsShare | Crossing | Waiting | Far | Gap | Overrun | ShuffleShare | ReadShare | Utilisation);
        match self.measure {
            _ if self.against.is_some() || shares => " %",
            RouteLength => " hops",
            _ => " s",
        }
    }

    /// How a mean with half its interval compares with what is printed.
    pub fn verdict(&self, mean: f64, half: Option<f64>) -> Verdict {
        let Some(printed) = self.printed else { return Verdict::Ours };
        if self.calibrated {
            return Verdict::Calibrated;
        }
        let sign = if self.against.is_some() { printed.sign() } else { 0.0 };
        // Of a time or a length, points are per cent of what is printed.
        let point = if let (" s" | " hops", Printed::About(p)) = (self.unit(), printed) { p / 100.0 } else { 1.0 };
        let off = printed.off(mean).abs() / point;
        let near = off <= 15.0;
        match () {
            // First of all: a mean that its interval does not tell from zero neither agrees with the paper nor contradicts it.
            () if sign != 0.0 && Estimate { mean, half }.is_unclear() => Verdict::Unclear,
            () if printed.is_met(mean, off) => Verdict::Same,
            () if sign != 0.0 && mean * sign < 0.0 => Verdict::Opposite,
            () if near => Verdict::Near,
            () if sign != 0.0 => Verdict::SameDirection,
            () => Verdict::Differs,
        }
    }
}
