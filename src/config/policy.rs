//! Policy files: the raw shape, and its check. The same shape as JSON is the body of `PUT /api/v1/policy`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::error::{Flaw, Flaws};
use super::placement::RawPlacement;
use super::{NAME_RULE, is_name};
use crate::control::policy::{Admit, Elephants, Estimator, Policy, SchedulerKind};
use crate::units::{Bytes, Span};

/// The shortest interval.
pub const MIN_INTERVAL: Span = Span::micros(10);
/// The longest interval.
pub const MAX_INTERVAL: Span = Span::secs(3600);
/// The lead of a policy that gives none, unless half its interval is shorter.
pub const DEFAULT_LEAD: Span = Span::millis(5);
/// The largest factor by which a workload is scaled down.
pub const MAX_SCALE: u64 = 1_000_000_000;

/// How the controller decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Heliostat policy")]
pub struct RawPolicy {
    /// Its name in results: 1 to 12 of a-z, 0-9 and -, beginning with a letter.
    #[schemars(regex(pattern = "^[a-z][a-z0-9-]{0,11}$"))]
    name: String,
    /// Reconfiguration interval: one decision each; 10 us to 1 h.
    #[serde(serialize_with = "exact")]
    interval: Span,
    /// From the beginning of a cycle to the instant at which its decision takes effect; shorter than the interval. 5 ms
    /// or half the interval, the shorter of the two, if left out.
    #[serde(default, serialize_with = "exact_or_null", skip_serializing_if = "Option::is_none")]
    lead: Option<Span>,
    /// Which traffic may use circuits.
    #[serde(default)]
    elephants: RawElephants,
    /// Where demand comes from.
    demand: Estimator,
    /// The circuit scheduler.
    scheduler: SchedulerKind,
    /// Sizes and rates of the workload are divided by this, times stay; 1 if left out.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    scale: u64,
    /// TCP congestion control of the generated traffic, by its name in the kernel; cubic if left out.
    #[serde(default = "cubic")]
    #[schemars(regex(pattern = "^[a-z0-9_]{1,15}$"))]
    congestion: String,
    /// Whether newly connected circuits are probed with a frame; true if left out.
    #[serde(default = "yes")]
    probes: bool,
    /// How jobs are scheduled; needed for runs of jobs only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    placement: Option<RawPlacement>,
}

/// Which traffic may use circuits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawElephants {
    /// Which packets a ToR admits to a circuit; marked if left out.
    #[serde(default)]
    admit: Admit,
    /// A rack-to-rack aggregate of one coflow below this is never marked, and demand below it never gets a circuit; 0 if
    /// left out.
    #[serde(default, serialize_with = "exact")]
    threshold: Bytes,
}

fn one() -> u64 {
    1
}
fn cubic() -> String {
    "cubic".into()
}
fn yes() -> bool {
    true
}

/// Writes a quantity with its unit where that is exact, and as an integer in its base unit otherwise.
pub(super) fn exact<T, S>(value: &T, s: S) -> Result<S::Ok, S::Error>
where
    T: std::fmt::Display + std::str::FromStr + PartialEq + Serialize,
    S: Serializer,
{
    let text = value.to_string();
    if text.parse::<T>().ok().as_ref() == Some(value) { s.serialize_str(&text) } else { value.serialize(s) }
}

fn exact_or_null<S: Serializer>(value: &Option<Span>, s: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(v) => exact(v, s),
        None => s.serialize_none(),
    }
}

impl From<&Policy> for RawPolicy {
    fn from(p: &Policy) -> Self {
        Self {
            name: p.name.clone(),
            interval: p.interval,
            lead: Some(p.lead),
            elephants: RawElephants { admit: p.elephants.admit, threshold: p.elephants.threshold },
            demand: p.demand,
            scheduler: p.scheduler,
            scale: p.scale,
            congestion: p.congestion.clone(),
            probes: p.probes,
            placement: p.placement.as_ref().map(RawPlacement::from),
        }
    }
}

impl RawPolicy {
    /// The checked policy.
    ///
    /// # Errors
    /// Every value that makes no sense.
    pub fn check(self) -> Result<Policy, Vec<Flaw>> {
        let mut flaws = Flaws::default();
        flaws.unless(is_name(&self.name), vec!["name".into()], format!("`{}` is not a name", self.name), NAME_RULE);
        let fits = (MIN_INTERVAL..=MAX_INTERVAL).contains(&self.interval);
        let range = format!("{MIN_INTERVAL} to 1h");
        flaws.unless(fits, vec!["interval".into()], format!("an interval of {}", self.interval), range);
        let lead = self.lead.unwrap_or(DEFAULT_LEAD.min(Span(self.interval.0 / 2)));
        if fits && lead >= self.interval {
            let message = format!("a lead of {lead} does not fit in an interval of {}", self.interval);
            flaws.add(vec!["lead".into()], message, "less than `interval`");
        }
        let scales = (1..=MAX_SCALE).contains(&self.scale);
        flaws.unless(scales, vec!["scale".into()], format!("a scale of {}", self.scale), format!("1 to {MAX_SCALE}"));
        let c = self.congestion.as_bytes();
        let named = (1..=15).contains(&c.len()) && c.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'_');
        let message = format!("`{}` is not the name of a congestion control", self.congestion);
        flaws.unless(named, vec!["congestion".into()], message, "1 to 15 of a-z, 0-9 and _, such as cubic, reno or dctcp");
        let placement = self.placement.as_ref().map(|p| p.check(&mut flaws));
        flaws.done(|| Policy {
            name: self.name,
            interval: self.interval,
            lead,
            elephants: Elephants { admit: self.elephants.admit, threshold: self.elephants.threshold },
            demand: self.demand,
            scheduler: self.scheduler,
            scale: self.scale,
            congestion: self.congestion,
            probes: self.probes,
            placement,
        })
    }
}
