//! What links do beside their rates: queues of a given length, marks, delay and loss.

use std::fmt;
use std::str::FromStr;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::graph::{Cable, Graph, Tier};
use crate::units::{Bytes, Span};

/// What a kind of link does beside its rate, at both of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct LinkSpec {
    /// Bytes that a queue of its ports holds; `None`: what its rate asks for.
    pub buffer: Option<Bytes>,
    /// Bytes in a queue from which on packets are marked as having met congestion; `None`: never.
    pub ecn: Option<Bytes>,
    /// How long a packet is on its way, each direction.
    pub delay: Span,
    /// How many of its packets are lost at random, each direction.
    pub loss: Loss,
}

/// The links of a network by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct LinkSpecs {
    /// Between hosts and their ToRs.
    pub nic: LinkSpec,
    /// Between ToRs and the EPS, or the first switch of a graph.
    pub uplink: LinkSpec,
    /// Between switches of a graph, by the tier of the higher end, the lowest tier first.
    pub cables: [LinkSpec; 4],
    /// Between ToRs and optical planes; these have a buffer and nothing else.
    pub ocs: LinkSpec,
}

impl LinkSpecs {
    /// Whether links have their rates and nothing else.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// All kinds.
    pub fn all(&self) -> impl Iterator<Item = &LinkSpec> {
        [&self.nic, &self.uplink, &self.ocs].into_iter().chain(&self.cables)
    }

    /// What a link between two switches does.
    pub fn cable(&self, graph: &Graph, cable: &Cable) -> LinkSpec {
        let tier = |s: u32| graph.switches[s as usize].tier;
        self.cables[index(tier(cable.ends.0).max(tier(cable.ends.1)))]
    }
}

/// A tier's place in [`LinkSpecs::cables`].
pub fn index(tier: Tier) -> usize {
    match tier {
        Tier::Server => 0,
        Tier::Access => 1,
        Tier::Aggregation => 2,
        Tier::Core => 3,
    }
}

/// A share of packets, in millionths; written `0.1%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Loss(pub u32);

/// Millionths in one per cent.
const PERCENT: u32 = 10_000;

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0 / PERCENT)?;
        let rest = self.0 % PERCENT;
        if rest > 0 {
            write!(f, ".{}", format!("{rest:04}").trim_end_matches('0'))?;
        }
        f.write_str("%")
    }
}

impl FromStr for Loss {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let wrong = || {
            format!("`{s}` is not a share such as 0.1%, of at most four digits behind the point")
        };
        let number = s.trim().strip_suffix('%').ok_or_else(wrong)?.trim_end();
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let digits =
            |t: &str| !t.is_empty() && t.len() <= 4 && t.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(part) {
            return Err(wrong());
        }
        let number = |t: &str| t.parse::<u32>().map_err(|_| wrong());
        Ok(Self(number(whole)? * PERCENT + number(&format!("{part:0<4}"))?))
    }
}

#[cfg(feature = "serde")]
impl Serialize for Loss {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl serde::de::Visitor<'_> for V {
            type Value = Loss;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a share such as 0.1%")
            }
            fn visit_str<E: serde::de::Error>(self, v: &str) -> Result<Loss, E> {
                v.parse().map_err(E::custom)
            }
        }
        d.deserialize_str(V)
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Loss {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Loss".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"description": "a share such as \"0.1%\"", "type": "string", "pattern": "^[0-9]{1,4}(\\.[0-9]{1,4})?%$"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;

    #[test]
    fn a_share_reads_as_it_is_written() {
        for (text, millionths) in [
            ("0.1%", 1000),
            ("1%", 10_000),
            ("0.0001%", 1),
            ("50%", 500_000),
            ("2.5%", 25_000),
            ("0%", 0),
        ] {
            assert_eq!(
                (text.parse(), Loss(millionths).to_string()),
                (Ok(Loss(millionths)), text.to_owned())
            );
        }
        for text in ["", "1", "%", ".5%", "1.%", "0.00001%", "-1%", "1e1%", "99999%"] {
            assert!(text.parse::<Loss>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_cable_is_of_the_tier_of_its_higher_end() {
        let graph = Graph::fat_tree(4, BitRate(1), None);
        let mut links = LinkSpecs::default();
        links.cables[index(Tier::Aggregation)].delay = Span(2);
        links.cables[index(Tier::Core)].delay = Span(3);
        let delays: Vec<u64> =
            graph.cables.iter().map(|c| links.cable(&graph, c).delay.0).collect();
        assert_eq!((&delays[..16], &delays[16..]), (&[2; 16][..], &[3; 16][..]));
        assert!(!links.is_plain() && LinkSpecs::default().is_plain());
    }
}
