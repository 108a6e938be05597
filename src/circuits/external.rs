//! A circuit scheduler outside of Heliostat: what a program is asked, and what it answers, as JSON.
//!
//! The controller asks with [`Question`] and takes [`Advice`]; how they reach the program is the
//! runtime's business. Times are nanoseconds of the run's clock, rates bits a second, racks and
//! planes numbers from zero.

use http::Uri;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::timetable::Reservation;
use super::{Ask, Decision, Matching, PlaneDecision, Scheduler, SetBy, Slot};
use crate::ids::{CoflowId, PlaneId, RackId};
use crate::topology::{Plane, StopMode};
use crate::units::{Span, Time};

/// Where a program is that decides for Heliostat.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum ProgramAt {
    /// Heliostat starts it with these words: the program and its arguments.
    Command(Vec<String>),
    /// It runs already, and takes questions by HTTP at this address.
    Url(String),
}

impl ProgramAt {
    /// From what a policy file says of both, of which it must name one.
    ///
    /// # Errors
    /// What is wrong, and what is allowed.
    pub fn new(
        command: Option<&[String]>,
        url: Option<&str>,
    ) -> Result<Self, (String, &'static str)> {
        match (command, url) {
            (Some(command), None) if is_command(command) => Ok(Self::Command(command.to_vec())),
            (None, Some(url)) if is_address(url) => Ok(Self::Url(url.into())),
            (None, Some(url)) => Err((
                format!("`{url}` is no address of a program"),
                "`http://host:port/path`, without TLS and password",
            )),
            (Some(_), Some(_)) => {
                Err(("a program cannot have both `command` and `url`".into(), "one of them"))
            }
            (_, None) => Err((
                "no program".into(),
                "`command`: a program and its arguments, such as [python3, decide.py]; or `url`: its address",
            )),
        }
    }
}

fn is_command(words: &[String]) -> bool {
    words.first().is_some_and(|w| !w.is_empty()) && words.iter().all(|w| !w.contains('\0'))
}

fn is_address(url: &str) -> bool {
    let parsed = url.parse::<Uri>().ok().filter(|u| u.scheme_str() == Some("http"));
    parsed
        .and_then(|u| u.into_parts().authority)
        .is_some_and(|a| !a.host().is_empty() && !a.as_str().contains('@'))
}

/// What a program that Heliostat starts may do on the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Privileges {
    /// What a user without any capabilities may; under sudo it runs as the user who called sudo.
    #[default]
    Drop,
    /// What Heliostat itself may.
    Keep,
}

impl Privileges {
    /// Whether they are what is usual.
    pub fn are_dropped(&self) -> bool {
        *self == Self::Drop
    }
}

/// Whether a policy file may name these variables of the environment.
///
/// # Errors
/// What is wrong, and what is allowed.
pub fn check_environment(names: &[String]) -> Result<(), (String, &'static str)> {
    match names.iter().find(|n| n.is_empty() || n.contains(['=', '\0'])) {
        Some(name) => Err((
            format!("`{name}` is no name of a variable"),
            "names of variables, such as CUDA_VISIBLE_DEVICES",
        )),
        None => Ok(()),
    }
}

/// Why a program did not decide. A text is also what recordings of older versions have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(untagged))]
pub enum NoAnswer {
    /// It has ended, cannot be reached, or said what is no answer.
    #[error("{0}")]
    Broken(String),
    /// It runs, and its time was over.
    #[error("{late}")]
    Late {
        /// How.
        late: String,
    },
}

impl From<String> for NoAnswer {
    fn from(why: String) -> Self {
        Self::Broken(why)
    }
}

impl NoAnswer {
    /// The time for an answer was over.
    pub fn late(why: impl Into<String>) -> Self {
        Self::Late { late: why.into() }
    }

    /// Whether it only came too late.
    pub fn is_late(&self) -> bool {
        matches!(self, Self::Late { .. })
    }

    /// Counts it among all answers that are missing, and among those that were only late. The
    /// first reason is kept; but a program that ends is late for an answer before, so a late
    /// answer gives way to another reason.
    pub fn count(&self, all: &mut u64, late: &mut u64, first: &mut Option<String>) {
        if first.is_none() || !self.is_late() && all == late {
            *first = Some(self.to_string());
        }
        *all += 1;
        *late += u64::from(self.is_late());
    }

    /// The same with a program's name before the reason.
    #[must_use]
    pub fn of(self, program: &str) -> Self {
        match self {
            Self::Broken(why) => Self::Broken(format!("{program}: {why}")),
            Self::Late { late } => Self::Late { late: format!("{program}: {late}") },
        }
    }
}

/// The scheduler `external` as long as no program answers: it sets no circuits.
pub struct External;

impl Scheduler for External {
    fn decide(&mut self, ask: &Ask) -> Decision {
        Decision::hold(ask.planes.iter().map(|_| Matching::empty(ask.demand.racks())))
    }
    fn rests(&self) -> bool {
        false
    }
    fn set_by(&self) -> SetBy {
        SetBy::Program
    }
}

/// All that a program may decide by: an [`Ask`] as JSON. Only pairs with demand are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Question {
    /// Number of the cycle, from zero; the answer repeats it.
    pub cycle: u64,
    /// When the decision takes effect.
    pub at_ns: Time,
    /// Until the next decision.
    pub interval_ns: Span,
    /// Number of racks, R.
    pub racks: usize,
    /// The slowest rack's rate on the electrical network; zero if there is none.
    pub eps_bps: u64,
    /// Demand: from rack, to rack, bytes.
    pub demand: Vec<(RackId, RackId, u64)>,
    /// The planes.
    pub planes: Vec<PlaneState>,
    /// Open coflows by id, where demand is what coflows declare.
    pub coflows: Vec<CoflowState>,
}

/// A plane as a program sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct PlaneState {
    /// Rate of a circuit.
    pub rate_bps: u64,
    /// Dark time of a change.
    pub delta_ns: Span,
    /// Circuits come in pairs: i to j needs j to i.
    pub duplex: bool,
    /// All circuits are dark while one changes.
    pub all_stop: bool,
    /// Circuits that are up, or being set up, when the decision takes effect: from rack, to rack.
    pub current: Vec<(RackId, RackId)>,
    /// Racks whose input ports may not be used: faulty, or held by hand.
    pub unusable_inputs: Vec<RackId>,
    /// Racks whose output ports may not be used.
    pub unusable_outputs: Vec<RackId>,
}

/// An open coflow as a program sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct CoflowState {
    /// Its number.
    pub id: CoflowId,
    /// When it came.
    pub arrival_ns: Time,
    /// Its weight among the others, 1 at least.
    pub weight: u32,
    /// Bytes that it has sent.
    pub sent: u64,
    /// What it has still to send: from rack, to rack, bytes.
    pub rest: Vec<(RackId, RackId, u64)>,
}

impl From<&Ask<'_>> for Question {
    fn from(ask: &Ask) -> Self {
        let unusable =
            |ports: &[bool]| (0..ports.len()).filter(|&r| !ports[r]).map(RackId::from).collect();
        let plane = |(p, plane): (usize, &Plane)| PlaneState {
            rate_bps: plane.rate.0,
            delta_ns: plane.delta,
            duplex: plane.duplex,
            all_stop: plane.stop == StopMode::AllStop,
            current: ask.current.get(p).map_or(vec![], |m| m.pairs().collect()),
            unusable_inputs: unusable(&ask.usable[p].input),
            unusable_outputs: unusable(&ask.usable[p].output),
        };
        let coflow = |c: &super::OpenCoflow| CoflowState {
            id: c.id,
            arrival_ns: c.arrival,
            weight: c.weight,
            sent: c.sent,
            rest: c.rest.clone(),
        };
        Self {
            cycle: ask.cycle,
            at_ns: ask.at,
            interval_ns: ask.interval,
            racks: ask.demand.racks(),
            eps_bps: ask.eps.0,
            demand: ask.demand.entries().collect(),
            planes: ask.planes.iter().enumerate().map(plane).collect(),
            coflows: ask.coflows.iter().map(coflow).collect(),
        }
    }
}

/// A program's decision: configurations plane by plane, or circuits with times of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Advice {
    /// The cycle of the question.
    pub cycle: u64,
    /// By plane: its configurations, one after another from [`Question::at_ns`] on.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub planes: Option<Vec<Vec<Configuration>>>,
    /// Circuits with times of their own.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub circuits: Option<Vec<Circuit>>,
}

/// The circuits of a plane for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Configuration {
    /// From rack, to rack; each rack once on either side.
    pub pairs: Vec<(RackId, RackId)>,
    /// Time with light, without the dark time before it; left out: until further notice (only in
    /// the last configuration).
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub hold_ns: Option<Span>,
}

/// A circuit with times of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Circuit {
    /// The plane.
    pub plane: PlaneId,
    /// Sending rack.
    pub input: RackId,
    /// Receiving rack.
    pub output: RackId,
    /// When its ports go dark for it; left out: the plane's delta before its light.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub setup_at_ns: Option<Time>,
    /// When its light begins.
    pub up_from_ns: Time,
    /// When it ends; left out: until further notice.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub until_ns: Option<Time>,
}

impl Advice {
    /// The decision that it is, for `racks` racks on these planes, from `at` on. O(circuits R).
    ///
    /// # Errors
    /// What is wrong with it, and what is allowed.
    pub fn decision(&self, planes: &[Plane], racks: usize, at: Time) -> Result<Decision, String> {
        match (&self.planes, &self.circuits) {
            (Some(all), None) if all.len() == planes.len() => {
                let slots = planes
                    .iter()
                    .zip(all)
                    .map(|(plane, configurations)| sequence(plane, configurations, racks));
                Ok(Decision::sequences(slots.collect::<Result<Vec<_>, _>>()?))
            }
            (Some(all), None) => {
                Err(format!("configurations for {} planes: there are {}", all.len(), planes.len()))
            }
            (None, Some(list)) => {
                let all = list
                    .iter()
                    .map(|c| c.reservation(planes, racks, at))
                    .collect::<Result<Vec<_>, _>>()?;
                let of =
                    |plane: &Plane| all.iter().filter(|r| r.plane == plane.id).copied().collect();
                // Planes that do not take these circuits are dark.
                let dark = || PlaneDecision::hold(Matching::empty(racks));
                Ok(Decision(
                    planes
                        .iter()
                        .map(|p| {
                            if p.ports_turn_alone() {
                                PlaneDecision::Reservations(of(p))
                            } else {
                                dark()
                            }
                        })
                        .collect(),
                ))
            }
            _ => Err("either `planes` or `circuits` must be in an answer".into()),
        }
    }
}

/// The configurations of a plane; it is dark where there are none, and after the last one if that
/// has an end.
fn sequence(
    plane: &Plane,
    configurations: &[Configuration],
    racks: usize,
) -> Result<Vec<Slot>, String> {
    let last = configurations.len().saturating_sub(1);
    let slot = |(k, c): (usize, &Configuration)| {
        let of = |why: String| format!("plane {}, configuration {k}: {why}", plane.id.0);
        if c.hold_ns.is_none() && k < last {
            return Err(of(
                "`hold_ns` is missing: only the last configuration lasts until further notice"
                    .into(),
            ));
        }
        if c.hold_ns == Some(Span::ZERO) {
            return Err(of("`hold_ns` must be above zero".into()));
        }
        Ok(Slot { matching: matching(&c.pairs, plane.duplex, racks).map_err(of)?, hold: c.hold_ns })
    };
    let mut slots = configurations.iter().enumerate().map(slot).collect::<Result<Vec<_>, _>>()?;
    if slots.last().is_none_or(|s| s.hold.is_some()) {
        slots.push(Slot { matching: Matching::empty(racks), hold: None });
    }
    Ok(slots)
}

fn matching(pairs: &[(RackId, RackId)], duplex: bool, racks: usize) -> Result<Matching, String> {
    let mut m = Matching::empty(racks);
    for &(i, j) in pairs {
        exists(i, racks).and_then(|()| exists(j, racks))?;
        if !m.connect(i, j) {
            return Err(format!(
                "{i} to {j}: each port may be used once, and no rack is joined to itself"
            ));
        }
    }
    match pairs.iter().find(|&&(i, j)| duplex && m.output(j) != Some(i)) {
        Some((i, j)) => {
            Err(format!("{i} to {j} without {j} to {i}: circuits of a duplex plane come in pairs"))
        }
        None => Ok(m),
    }
}

fn exists(rack: RackId, racks: usize) -> Result<(), String> {
    if rack.index() < racks {
        Ok(())
    } else {
        Err(format!("no rack {}: they are 0 to {}", rack.0, racks.saturating_sub(1)))
    }
}

impl Circuit {
    fn reservation(&self, planes: &[Plane], racks: usize, at: Time) -> Result<Reservation, String> {
        let Self { plane, input, output, setup_at_ns, up_from_ns, until_ns } = *self;
        let of = |why: String| {
            format!("the circuit from {input} to {output} on plane {}: {why}", plane.0)
        };
        let p = planes
            .get(plane.index())
            .ok_or_else(|| of(format!("no such plane: there are {}", planes.len())))?;
        if !p.ports_turn_alone() {
            return Err(of("a duplex or all-stop plane takes `planes`, not `circuits`".into()));
        }
        exists(input, racks).and_then(|()| exists(output, racks)).map_err(of)?;
        let (up_from, until) = (up_from_ns.max(at), until_ns.unwrap_or(Time::MAX));
        if input == output || until <= up_from {
            return Err(of(format!("it must join two racks, and end after {} ns", up_from.0)));
        }
        // One that is up already goes on; another one must leave time for its dark time, which the
        // timetable's check tells.
        let setup_at = setup_at_ns.unwrap_or(up_from.saturating_sub(p.delta)).max(at);
        Ok(Reservation { plane, input, output, setup_at, up_from, until })
    }
}

#[cfg(test)]
mod tests;
