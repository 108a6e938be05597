//! What links do beside their rates.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::topology::links::{LinkSpec, LinkSpecs, Loss};
use crate::units::{Bytes, Span};

/// What links do beside their rates, by kind; a kind that does nothing else is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Links {
    /// Between hosts and their ToRs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nic: Option<LinkBehaviour>,
    /// Between ToRs and the EPS, or the first switch of a graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink: Option<LinkBehaviour>,
    /// Between relaying servers of a graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<LinkBehaviour>,
    /// Between switches of a graph of which the higher one is of the tier of access.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<LinkBehaviour>,
    /// The same, of aggregation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregation: Option<LinkBehaviour>,
    /// The same, of the core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core: Option<LinkBehaviour>,
    /// Between ToRs and optical planes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ocs: Option<LinkBehaviour>,
}

/// What a kind of link does beside its rate, at both of its ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Link)]
pub struct LinkBehaviour {
    /// Bytes that a queue of its ports holds; left out: what its rate asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_bytes: Option<u64>,
    /// Bytes in a queue from which on packets are marked as having met congestion; left out: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn_bytes: Option<u64>,
    /// How long a packet is on its way, each direction.
    #[serde(default)]
    pub delay_ns: u64,
    /// How many of a million packets are lost at random, each direction.
    #[serde(default)]
    pub loss_per_million: u32,
}

impl Links {
    /// Those of a network; `None` if its links have rates only.
    pub fn of(specs: &LinkSpecs) -> Option<Self> {
        let link = |s: &LinkSpec| (*s != LinkSpec::default()).then(|| LinkBehaviour::from(*s));
        let [server, access, aggregation, core] = specs.cables.each_ref().map(link);
        let all = Self {
            nic: link(&specs.nic),
            uplink: link(&specs.uplink),
            server,
            access,
            aggregation,
            core,
            ocs: link(&specs.ocs),
        };
        (!specs.is_plain()).then_some(all)
    }

    /// Back from the wire.
    pub fn read(&self) -> LinkSpecs {
        let spec = |l: Option<LinkBehaviour>| l.map(LinkSpec::from).unwrap_or_default();
        let cables = [self.server, self.access, self.aggregation, self.core].map(spec);
        LinkSpecs { nic: spec(self.nic), uplink: spec(self.uplink), cables, ocs: spec(self.ocs) }
    }
}

impl From<LinkSpec> for LinkBehaviour {
    fn from(s: LinkSpec) -> Self {
        let LinkSpec { buffer, ecn, delay, loss } = s;
        Self {
            buffer_bytes: buffer.map(|b| b.0),
            ecn_bytes: ecn.map(|b| b.0),
            delay_ns: delay.0,
            loss_per_million: loss.0,
        }
    }
}

impl From<LinkBehaviour> for LinkSpec {
    fn from(l: LinkBehaviour) -> Self {
        Self {
            buffer: l.buffer_bytes.map(Bytes),
            ecn: l.ecn_bytes.map(Bytes),
            delay: Span(l.delay_ns),
            loss: Loss(l.loss_per_million),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_survive_the_way_over_the_wire() {
        assert_eq!(Links::of(&LinkSpecs::default()), None);
        let nic = LinkSpec {
            buffer: Some(Bytes(30_000)),
            ecn: Some(Bytes(9000)),
            delay: Span::millis(2),
            loss: "0.25%".parse().unwrap(),
        };
        let mut specs = LinkSpecs { nic, ..LinkSpecs::default() };
        specs.cables[3].delay = Span::millis(5);
        let wire = Links::of(&specs).unwrap();
        let text = serde_json::to_string(&wire).unwrap();
        assert_eq!(
            text,
            r#"{"nic":{"buffer_bytes":30000,"ecn_bytes":9000,"delay_ns":2000000,"loss_per_million":2500},"core":{"delay_ns":5000000,"loss_per_million":0}}"#
        );
        assert_eq!(serde_json::from_str::<Links>(&text).unwrap().read(), specs);
    }
}
