//! Lists of switches as wanted and observed state: what a flow between two hosts crosses, if a
//! decision gave it something else than the default way.
//!
//! [`Lists`] holds the decisions of a fabric. A flow that it does not name takes the way of its
//! pair of hosts. A pair that it does not name takes the default way of its racks
//! ([`crate::topology::graph::Routes::way`]). [`Steer`] changes one of either, [`apply`] is the one
//! definition of what that does, and [`diff`] gives the changes between two states.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::HostId;
use crate::paths::{List, ListError, Switches};
use crate::units::Time;

/// The TCP or UDP ports of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ports {
    /// That of the sender.
    pub from: u16,
    /// That of the receiver.
    pub to: u16,
}

/// What has a list of its own: all that goes from one host to another, or one flow between them.
/// One direction; the other has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathEnds {
    /// Where it begins.
    pub from: HostId,
    /// Where it ends.
    pub to: HostId,
    /// The flow; `None`: all that has no list as a flow.
    pub ports: Option<Ports>,
}

impl PathEnds {
    /// All from one host to another.
    pub fn pair(from: HostId, to: HostId) -> Self {
        Self { from, to, ports: None }
    }

    /// The hosts, from and to.
    pub fn hosts(self) -> (HostId, HostId) {
        (self.from, self.to)
    }
}

impl From<(HostId, HostId)> for PathEnds {
    fn from((from, to): (HostId, HostId)) -> Self {
        Self::pair(from, to)
    }
}

/// By pair of hosts or flow: the list that was decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Steer>", into = "Vec<Steer>")]
pub struct Lists(pub BTreeMap<PathEnds, List>);

impl Lists {
    /// The list of a pair; `None`: the default way.
    pub fn of(&self, from: HostId, to: HostId) -> Option<&List> {
        self.at(PathEnds::pair(from, to))
    }

    /// The list of a pair or a flow, if it has one of its own.
    pub fn at(&self, ends: PathEnds) -> Option<&List> {
        self.0.get(&ends)
    }

    /// Takes over what a change that was made leaves; returns whether it changed anything. O(log
    /// pairs).
    pub fn follow(&mut self, made: &Steer) -> bool {
        match &made.list {
            None => self.0.remove(&made.ends()).is_some(),
            Some(list) => self.0.insert(made.ends(), list.clone()).as_ref() != Some(list),
        }
    }
}

impl From<Vec<Steer>> for Lists {
    fn from(v: Vec<Steer>) -> Self {
        Self(v.into_iter().filter_map(|s| Some((s.ends(), s.list?))).collect())
    }
}

impl From<Lists> for Vec<Steer> {
    fn from(lists: Lists) -> Self {
        lists.0.into_iter().map(|(ends, list)| Steer::new(ends, Some(list))).collect()
    }
}

/// All that goes from one host to another, or one flow of it, takes this list from now on. Packets
/// that are on their way stay on the list that they began; none is lost. Names the state that it
/// wants: doing it twice is doing it once.
///
/// Refused, with the state as it was, as [`PathError`] says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steer {
    /// Where the flows begin.
    pub from: HostId,
    /// Where they end.
    pub to: HostId,
    /// The flow; `None`: all that has no list as a flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<Ports>,
    /// The switches that they cross; `None`: a pair goes back to the default way, a flow to the way
    /// of its pair.
    pub list: Option<List>,
}

impl Steer {
    /// A change of what these ends have.
    pub fn new(PathEnds { from, to, ports }: PathEnds, list: Option<List>) -> Self {
        Self { from, to, ports, list }
    }

    /// Whose list changes.
    pub fn ends(&self) -> PathEnds {
        PathEnds { from: self.from, to: self.to, ports: self.ports }
    }
}

/// What became of one change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SteerResult {
    /// The change.
    pub op: Steer,
    /// When the fabric held it, or why it was refused.
    pub outcome: Result<Time, PathError>,
}

/// Why a pair of hosts cannot have a list; the state is then as before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathError {
    /// A number that no host has.
    #[error("there is no host {number}: they are 0 to {last}")]
    NoHost {
        /// The number.
        number: u32,
        /// The highest number of a host.
        last: u32,
    },
    /// Both ends are one host.
    #[error("{0} reaches itself over no switch: a list joins two hosts")]
    OneHost(String),
    /// The list does not hold together, or does not join the hosts.
    #[error(transparent)]
    List(#[from] ListError),
    /// A list of more switches than packets can carry through this fabric; relaying servers and
    /// both ends count.
    #[error("a list of {length} switches; this fabric carries packets over at most {most}")]
    TooLong {
        /// Switches that packets would cross.
        length: usize,
        /// The most.
        most: usize,
    },
    /// Everything by which switches tell lists apart is in use: numbers of paths, or tables of
    /// flows. The same change succeeds once the packets on older lists have arrived.
    #[error("all {0} lists that this fabric holds at once are in use")]
    Full(usize),
    /// More flows between two hosts than can have lists of their own.
    #[error("{0} flows between these two hosts have lists of their own already; more cannot")]
    ManyFlows(usize),
    /// More pairs of hosts than can have flows with lists of their own.
    #[error(
        "flows of {0} pairs of hosts have lists of their own already; those of more pairs cannot"
    )]
    ManyPairs(usize),
    /// This fabric carries no lists, or none of single flows. No such change ever succeeds.
    #[error("this fabric has no lists of switches: {0}")]
    NotHere(String),
    /// The kernel did not do it.
    #[error("{0}")]
    Refused(String),
}

/// Whether a change may be made at all: its hosts exist and differ, and its list joins them.
/// O(length x degree).
///
/// # Errors
/// The first thing that is wrong.
pub fn check(op: &Steer, net: &Switches) -> Result<(), PathError> {
    for number in [op.from.0, op.to.0] {
        if number as usize >= net.hosts() {
            return Err(PathError::NoHost { number, last: (net.hosts() as u32).saturating_sub(1) });
        }
    }
    if op.from == op.to {
        return Err(PathError::OneHost(net.host_name(op.from).to_owned()));
    }
    op.list.as_ref().map_or(Ok(()), |list| Ok(net.check(list, (op.from, op.to))?))
}

/// Carries out one change; returns whether it changed anything. O(log pairs + length x degree).
///
/// # Errors
/// Why it cannot be done; `state` is then as it was.
pub fn apply(state: &mut Lists, op: &Steer, net: &Switches) -> Result<bool, PathError> {
    check(op, net)?;
    Ok(state.follow(op))
}

/// The changes that bring `observed` to `wanted`, by pair; none if they are alike. O(pairs).
pub fn diff(wanted: &Lists, observed: &Lists) -> Vec<Steer> {
    let back = observed
        .0
        .keys()
        .filter(|&p| !wanted.0.contains_key(p))
        .map(|&ends| Steer::new(ends, None));
    let news = wanted.0.iter().filter(|&(p, list)| observed.0.get(p) != Some(list));
    let mut all: Vec<Steer> =
        back.chain(news.map(|(&ends, list)| Steer::new(ends, Some(list.clone())))).collect();
    all.sort_by_key(Steer::ends);
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::paths::{PathEnd, Units};
    use crate::topology::graph::Graph;
    use crate::topology::{Core, Topology};
    use crate::units::BitRate;

    /// Two hosts at each of four leaves (0 to 3) below two spines (4, 5).
    fn net() -> Switches {
        let mut t = Topology::uniform("t", 4, 2, BitRate(100), BitRate(100), vec![]);
        t.eps.core = Core::Graph(Box::new(Graph::leaf_spine(4, 2, BitRate(100), None)));
        Switches::new(&t, Units::default())
    }

    fn steer(from: u32, to: u32, list: Option<&[u32]>) -> Steer {
        Steer::new(PathEnds::pair(HostId(from), HostId(to)), list.map(|l| List(l.to_vec())))
    }

    #[test]
    fn every_mistake_has_its_refusal_and_changes_nothing() {
        let wrong_end = ListError::WrongEnd {
            side: PathEnd::Last,
            given: "leaf2".into(),
            host: "h3-1".into(),
            expected: "leaf3".into(),
        };
        let cases = [
            (steer(0, 8, None), PathError::NoHost { number: 8, last: 7 }),
            (steer(3, 3, None), PathError::OneHost("h1-1".into())),
            (steer(0, 7, Some(&[0, 4, 9])), ListError::Unknown { number: 9, last: 5 }.into()),
            (steer(0, 7, Some(&[0, 4, 2])), wrong_end.into()),
            (steer(0, 7, Some(&[0, 3])), ListError::NoLink("leaf0".into(), "leaf3".into()).into()),
            (steer(0, 1, Some(&[0, 4, 0])), ListError::Loop("leaf0".into()).into()),
            (steer(0, 7, Some(&[0, 4, 1, 5, 3])), ListError::Valley("spine1".into()).into()),
        ];
        let before = Lists([(PathEnds::pair(HostId(0), HostId(7)), List(vec![0, 5, 3]))].into());
        for (op, why) in cases {
            let mut state = before.clone();
            assert_eq!(apply(&mut state, &op, &net()), Err(why));
            assert_eq!(state, before);
        }
    }

    #[test]
    fn lists_are_written_as_what_would_make_them() {
        let lists = Lists([(PathEnds::pair(HostId(0), HostId(7)), List(vec![0, 5, 3]))].into());
        let text = serde_json::to_string(&lists).unwrap();
        assert_eq!(text, r#"[{"from":0,"to":7,"list":[0,5,3]}]"#);
        assert_eq!(serde_json::from_str::<Lists>(&text).unwrap(), lists);
        let flow = PathEnds {
            ports: Some(Ports { from: 40_000, to: 5201 }),
            ..PathEnds::pair(HostId(0), HostId(7))
        };
        let text = serde_json::to_string(&Steer::new(flow, None)).unwrap();
        assert_eq!(text, r#"{"from":0,"to":7,"ports":{"from":40000,"to":5201},"list":null}"#);
    }

    /// Any change of a pair of racks apart or of a flow of theirs, over either spine or back; some
    /// are impossible.
    fn op() -> impl Strategy<Value = Steer> {
        (0..9u32, 0..9u32, 3..7u32, 0..4u16).prop_map(|(from, to, spine, port)| {
            let list = (spine > 3).then(|| List(vec![from / 2, spine, to / 2]));
            let ports = (port > 1).then_some(Ports { from: port, to: 5201 });
            Steer { from: HostId(from), to: HostId(to), ports, list }
        })
    }

    fn after(state: &Lists, ops: &[Steer], net: &Switches) -> Lists {
        let mut state = state.clone();
        ops.iter().for_each(|op| drop(apply(&mut state, op, net)));
        state
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn differences_lead_from_any_state_to_any_other(a in prop::collection::vec(op(), 0..30), b in prop::collection::vec(op(), 0..30)) {
            let net = net();
            let (observed, wanted) = (after(&Lists::default(), &a, &net), after(&Lists::default(), &b, &net));
            let ops = diff(&wanted, &observed);
            let mut state = observed.clone();
            for op in &ops {
                prop_assert_eq!(apply(&mut state, op, &net), Ok(true), "every change is needed and allowed");
            }
            prop_assert_eq!(&state, &wanted);
            prop_assert_eq!(diff(&wanted, &state), vec![]);
            prop_assert_eq!(after(&state, &diff(&observed, &wanted), &net), observed.clone(), "and back");
            let mut other = ops.clone();
            other.reverse();
            prop_assert_eq!(after(&observed, &other, &net), wanted, "their order does not matter: each is of its own pair");
        }

        #[test]
        fn a_change_done_twice_is_done_once(ops in prop::collection::vec(op(), 0..20), last in op()) {
            let net = net();
            let mut state = after(&Lists::default(), &ops, &net);
            let before = state.clone();
            match apply(&mut state, &last, &net) {
                Err(_) => prop_assert_eq!(state, before),
                Ok(changed) => {
                    prop_assert_eq!(changed, state != before);
                    prop_assert_eq!(state.at(last.ends()), last.list.as_ref());
                    let once = state.clone();
                    prop_assert_eq!(apply(&mut state, &last, &net), Ok(false));
                    prop_assert_eq!(state, once);
                }
            }
        }
    }
}
