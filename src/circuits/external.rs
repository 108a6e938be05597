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
mod tests {
    use super::*;
    use crate::SchedulerKind;
    use crate::demand::DemandMatrix;
    use crate::layout::lay_out;
    use crate::timetable::Timetable;
    use crate::units::BitRate;
    use crate::{Usable, laws};
    use proptest::prelude::*;

    const AT: Time = Time(1000);

    fn planes(duplex: bool, stop: StopMode) -> Vec<Plane> {
        let plane =
            |p| Plane { id: PlaneId(p), rate: BitRate::mbit(100), delta: Span(10), stop, duplex };
        vec![plane(0), plane(1)]
    }

    fn decision(json: &str, planes: &[Plane]) -> Result<Decision, String> {
        serde_json::from_str::<Advice>(json).map_err(|e| e.to_string())?.decision(planes, 3, AT)
    }

    #[test]
    fn an_answer_becomes_a_decision() {
        let simplex = planes(false, StopMode::NotAllStop);
        let Ok(Decision(by_plane)) = decision(
            r#"{"cycle":1,"planes":[[{"pairs":[[0,1],[1,2]],"hold_ns":50},{"pairs":[[2,0]]}],[]]}"#,
            &simplex,
        ) else {
            panic!("configurations")
        };
        let (first, second) =
            (Matching::from_pairs(3, [(0, 1), (1, 2)]), Matching::from_pairs(3, [(2, 0)]));
        let slots = vec![
            Slot { matching: first, hold: Some(Span(50)) },
            Slot { matching: second, hold: None },
        ];
        assert_eq!(by_plane[0], PlaneDecision::Sequence(slots));
        assert_eq!(
            by_plane[1],
            PlaneDecision::hold(Matching::empty(3)),
            "no configuration is darkness"
        );
        let circuits = r#"{"cycle":1,"circuits":[{"plane":1,"input":0,"output":2,"up_from_ns":1010,"until_ns":1500},
            {"plane":0,"input":1,"output":0,"up_from_ns":7}]}"#;
        let (plane, input, output) = (PlaneId(1), RackId(0), RackId(2));
        let first = Reservation {
            plane,
            input,
            output,
            setup_at: AT,
            up_from: Time(1010),
            until: Time(1500),
        };
        let (plane, input, output) = (PlaneId(0), RackId(1), RackId(0));
        let goes_on =
            Reservation { plane, input, output, setup_at: AT, up_from: AT, until: Time::MAX };
        assert_eq!(
            decision(circuits, &simplex),
            Ok(Decision(vec![
                PlaneDecision::Reservations(vec![goes_on]),
                PlaneDecision::Reservations(vec![first])
            ]))
        );
    }

    #[test]
    fn what_is_wrong_with_an_answer_is_told() {
        let refused = |json: &str, planes: &[Plane], says: &str| {
            let why = decision(json, planes).expect_err(json);
            assert!(why.contains(says), "{json}: {why}");
        };
        let simplex = planes(false, StopMode::NotAllStop);
        for (json, says) in [
            (r#"{"cycle":1}"#, "either `planes` or `circuits`"),
            (r#"{"cycle":1,"planes":[[]],"circuits":[]}"#, "either `planes` or `circuits`"),
            (r#"{"cycle":1,"planes":[[]]}"#, "configurations for 1 planes: there are 2"),
            (r#"{"cycle":1,"plane":[]}"#, "unknown field `plane`"),
            (
                r#"{"cycle":1,"planes":[[{"pairs":[]},{"pairs":[]}],[]]}"#,
                "plane 0, configuration 0: `hold_ns` is missing",
            ),
            (
                r#"{"cycle":1,"planes":[[],[{"pairs":[],"hold_ns":0}]]}"#,
                "plane 1, configuration 0: `hold_ns` must be above zero",
            ),
            (r#"{"cycle":1,"planes":[[{"pairs":[[0,3]]}],[]]}"#, "no rack 3: they are 0 to 2"),
            (
                r#"{"cycle":1,"planes":[[{"pairs":[[0,1],[2,1]]}],[]]}"#,
                "each port may be used once",
            ),
            (r#"{"cycle":1,"planes":[[{"pairs":[[1,1]]}],[]]}"#, "no rack is joined to itself"),
            (
                r#"{"cycle":1,"circuits":[{"plane":2,"input":0,"output":1,"up_from_ns":9}]}"#,
                "no such plane: there are 2",
            ),
            (
                r#"{"cycle":1,"circuits":[{"plane":0,"input":0,"output":9,"up_from_ns":9}]}"#,
                "no rack 9",
            ),
            (
                r#"{"cycle":1,"circuits":[{"plane":0,"input":1,"output":1,"up_from_ns":9}]}"#,
                "it must join two racks",
            ),
            (
                r#"{"cycle":1,"circuits":[{"plane":0,"input":1,"output":0,"up_from_ns":9,"until_ns":1000}]}"#,
                "end after 1000 ns",
            ),
        ] {
            refused(json, &simplex, says);
        }
        let one = r#"{"cycle":1,"circuits":[{"plane":0,"input":1,"output":0,"up_from_ns":2000}]}"#;
        refused(one, &planes(false, StopMode::AllStop), "takes `planes`");
        refused(
            r#"{"cycle":1,"planes":[[{"pairs":[[0,1]]}],[]]}"#,
            &planes(true, StopMode::NotAllStop),
            "come in pairs",
        );
    }

    fn instant() -> impl Strategy<Value = u64> {
        prop_oneof![0..3000u64, Just(u64::MAX)]
    }

    /// A decision as a program would write it: configurations for all planes, or circuits for those
    /// that take them.
    fn written(decision: &Decision) -> Advice {
        let configuration =
            |s: &Slot| Configuration { pairs: s.matching.pairs().collect(), hold_ns: s.hold };
        let circuit = |r: &Reservation| Circuit {
            plane: r.plane,
            input: r.input,
            output: r.output,
            setup_at_ns: Some(r.setup_at),
            up_from_ns: r.up_from,
            until_ns: (r.until < Time::MAX).then_some(r.until),
        };
        let (mut planes, mut circuits, mut timed) = (vec![], vec![], false);
        for decided in &decision.0 {
            match decided {
                PlaneDecision::Sequence(slots) => {
                    planes.push(slots.iter().map(configuration).collect())
                }
                PlaneDecision::Reservations(list) => {
                    timed = true;
                    circuits.extend(list.iter().map(circuit));
                }
            }
        }
        Advice { cycle: 0, planes: (!timed).then_some(planes), circuits: timed.then_some(circuits) }
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        /// Every scheduler could be a program: a question and an answer lose nothing on their way
        /// through JSON.
        #[test]
        fn every_scheduler_can_be_written_as_answers(w in laws::any_world()) {
            let ask = w.ask();
            let question = Question::from(&ask);
            let read: Question = serde_json::from_str(&serde_json::to_string(&question).unwrap()).unwrap();
            prop_assert_eq!(&read, &question);
            let demand = read.demand.iter().fold(DemandMatrix::zero(read.racks), |mut m, &(i, j, b)| { m.set(i, j, b); m });
            prop_assert_eq!(&demand, ask.demand);
            for kind in SchedulerKind::ALL {
                let mut decision = kind.build().decide(&ask);
                // Beside circuits with times of their own the other planes are dark.
                if decision.0.iter().any(|c| matches!(c, PlaneDecision::Reservations(_))) {
                    let others = decision.0.iter_mut().filter(|c| matches!(c, PlaneDecision::Sequence(_)));
                    others.for_each(|c| *c = PlaneDecision::hold(Matching::empty(read.racks)));
                }
                let advice: Advice = serde_json::from_str(&serde_json::to_string(&written(&decision)).unwrap()).unwrap();
                let again = advice.decision(ask.planes, read.racks, ask.at);
                prop_assert_eq!(again.as_ref(), Ok(&decision), "{}", kind.name());
            }
        }

        /// No answer of the right shape panics, and what is accepted can be laid out.
        #[test]
        fn any_answer_is_taken_or_refused(
            slots in prop::collection::vec(prop::collection::vec((prop::collection::vec((0..4u32, 0..4u32), 0..4), 0..3u64), 0..3), 0..3),
            circuits in prop::collection::vec((0..3u32, 0..4u32, 0..4u32, instant(), prop::option::of(0..u64::MAX)), 0..4),
            duplex: bool, all_stop: bool, timed: bool,
        ) {
            let planes = planes(duplex, if all_stop { StopMode::AllStop } else { StopMode::NotAllStop });
            let pair = |(i, j)| (RackId(i), RackId(j));
            let configuration = |(pairs, hold): (Vec<(u32, u32)>, u64)| Configuration {
                pairs: pairs.into_iter().map(pair).collect(),
                hold_ns: [None, Some(Span::ZERO), Some(Span::MAX)][hold as usize],
            };
            let circuit = |(p, i, j, from, until): (u32, u32, u32, u64, Option<u64>)| Circuit {
                plane: PlaneId(p),
                input: RackId(i),
                output: RackId(j),
                setup_at_ns: None,
                up_from_ns: Time(from),
                until_ns: until.map(Time),
            };
            let sequence = slots.into_iter().map(|p| p.into_iter().map(configuration).collect()).collect();
            let list = circuits.into_iter().map(circuit).collect();
            let advice = Advice { cycle: 0, planes: (!timed).then_some(sequence), circuits: timed.then_some(list) };
            if let Ok(decision) = advice.decision(&planes, 3, AT) {
                let table = lay_out(&Timetable::default(), &decision, &planes, 3, AT);
                prop_assert!(timed || table.check(&planes, 3).is_ok(), "{:?}", advice);
            }
        }
    }

    #[test]
    fn ports_that_must_not_be_used_are_named() {
        let planes = planes(false, StopMode::NotAllStop);
        let mut usable = vec![Usable::all(3), Usable::all(3)];
        (usable[1].input[2], usable[0].output[0]) = (false, false);
        let ask = Ask {
            demand: &DemandMatrix::zero(3),
            current: &[],
            planes: &planes,
            usable: &usable,
            at: AT,
            interval: Span(5),
            cycle: 4,
            eps: BitRate(7),
            coflows: &[],
        };
        let q = Question::from(&ask);
        assert_eq!((q.cycle, q.eps_bps, q.racks, q.demand.len()), (4, 7, 3, 0));
        assert_eq!(
            (&q.planes[1].unusable_inputs[..], &q.planes[0].unusable_outputs[..]),
            (&[RackId(2)][..], &[RackId(0)][..])
        );
    }
}
