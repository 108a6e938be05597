//! The `links` of a topology file: what links do beside their rates.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Flaws, PathStep};
use crate::topology::graph::Tier;
use crate::topology::links::{LinkSpec, LinkSpecs, Loss, index};
use crate::units::{Bytes, Span};

/// The shortest queue: two full frames.
const MIN_BUFFER: Bytes = Bytes(2 * 1514);
/// The longest queue.
const MAX_BUFFER: Bytes = Bytes(1_000_000_000);
/// The longest delay of a link.
const MAX_DELAY: Span = Span::secs(1);
/// The most that a link loses: half.
const MAX_LOSS: Loss = Loss(500_000);

/// What links do beside their rates, by kind.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RawLinks {
    /// Between hosts and their ToRs.
    nic: RawLink,
    /// Between ToRs and the EPS, or the first switch of a graph.
    uplink: RawLink,
    /// Between switches of a graph, all of them.
    graph: RawLink,
    /// Those links of a graph whose higher end is an access switch; what it leaves out is as in
    /// `graph`, here and below.
    access: RawLink,
    /// Those links of a graph whose higher end is an aggregation switch.
    aggregation: RawLink,
    /// Those links of a graph whose higher end is a core switch.
    core: RawLink,
    /// Between ToRs and optical planes.
    ocs: RawCircuit,
}

/// A kind of link.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct RawLink {
    /// Bytes that a queue of its ports holds; what its rate asks for if left out.
    buffer: Option<Bytes>,
    /// Bytes in a queue from which on packets are marked (ECN), and packets that cannot be marked
    /// still wait; never if left out.
    ecn: Option<Bytes>,
    /// How long a packet is on its way, each direction; up to 1 s.
    delay: Option<Span>,
    /// How many of its packets are lost at random, each direction, such as 0.1%; up to 50%.
    loss: Option<Loss>,
}

/// The links of optical planes.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct RawCircuit {
    /// Bytes that a ToR's queue for a circuit holds; what its rate asks for if left out.
    buffer: Option<Bytes>,
}

impl RawLinks {
    /// All kinds of links, as far as the network has them.
    pub fn check(&self, graph: bool, planes: bool, flaws: &mut Flaws) -> LinkSpecs {
        let tiers = [&self.access, &self.aggregation, &self.core];
        let named = ["access", "aggregation", "core"].into_iter().zip(tiers);
        let alone = RawLink::default();
        for (key, raw) in [("nic", &self.nic), ("uplink", &self.uplink), ("graph", &self.graph)] {
            raw.check(key, &alone, flaws);
        }
        for (key, raw) in named.clone() {
            raw.check(key, &self.graph, flaws);
        }
        for (key, raw) in std::iter::once(("graph", &self.graph)).chain(named) {
            let rule = "`nic`, `uplink` and `ocs`, or a topology with `eps.graph`";
            flaws.unless(
                graph || raw.is_empty(),
                at(&[key]),
                "this network has no graph of switches",
                rule,
            );
        }
        buffer(self.ocs.buffer, at(&["ocs", "buffer"]), flaws);
        flaws.unless(
            planes || self.ocs.buffer.is_none(),
            at(&["ocs"]),
            "this network has no OCS plane",
            "a topology with `ocs`",
        );
        let mut links =
            LinkSpecs { nic: self.nic.spec(), uplink: self.uplink.spec(), ..LinkSpecs::default() };
        links.ocs.buffer = self.ocs.buffer;
        links.cables = [self.graph.spec(); 4];
        for (tier, raw) in [Tier::Access, Tier::Aggregation, Tier::Core].into_iter().zip(tiers) {
            links.cables[index(tier)] = raw.over(&self.graph).spec();
        }
        links
    }
}

impl RawLink {
    fn is_empty(&self) -> bool {
        self.buffer.is_none() && self.ecn.is_none() && self.delay.is_none() && self.loss.is_none()
    }

    /// These keys, and where there is none, those of `base`.
    fn over(&self, base: &Self) -> Self {
        Self {
            buffer: self.buffer.or(base.buffer),
            ecn: self.ecn.or(base.ecn),
            delay: self.delay.or(base.delay),
            loss: self.loss.or(base.loss),
        }
    }

    fn spec(&self) -> LinkSpec {
        LinkSpec {
            buffer: self.buffer,
            ecn: self.ecn,
            delay: self.delay.unwrap_or_default(),
            loss: self.loss.unwrap_or_default(),
        }
    }

    /// Checks these keys, beside those of `base` that hold where one is missing.
    fn check(&self, kind: &str, base: &Self, flaws: &mut Flaws) {
        let path = |key: &str| at(&[kind, key]);
        buffer(self.buffer, path("buffer"), flaws);
        let Self { buffer, ecn, .. } = self.over(base);
        if let Some(ecn) = ecn.filter(|_| self.ecn.is_some() || self.buffer.is_some()) {
            let most = buffer.unwrap_or(MAX_BUFFER);
            let key = if self.ecn.is_some() { "ecn" } else { "buffer" };
            let rule = format!("marks from {MIN_BUFFER} on, and below the buffer");
            flaws.unless(
                (MIN_BUFFER..most).contains(&ecn),
                path(key),
                format!("marks from {ecn} on, a buffer of {most}"),
                rule,
            );
        }
        let (delay, loss) = (self.delay.unwrap_or_default(), self.loss.unwrap_or_default());
        flaws.unless(
            delay <= MAX_DELAY,
            path("delay"),
            format!("a delay of {delay}"),
            format!("at most {MAX_DELAY}"),
        );
        flaws.unless(
            loss <= MAX_LOSS,
            path("loss"),
            format!("a loss of {loss}"),
            format!("at most {MAX_LOSS}"),
        );
    }
}

fn buffer(bytes: Option<Bytes>, path: Vec<PathStep>, flaws: &mut Flaws) {
    let good = bytes.is_none_or(|b| (MIN_BUFFER..=MAX_BUFFER).contains(&b));
    flaws.unless(
        good,
        path,
        format!("a buffer of {}", bytes.unwrap_or_default()),
        format!("{MIN_BUFFER} to {MAX_BUFFER}"),
    );
}

fn at(keys: &[&str]) -> Vec<PathStep> {
    std::iter::once("links").chain(keys.iter().copied()).map(PathStep::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::read_topology;

    fn text(links: &str) -> String {
        format!(
            "name: net\nracks: 8\nhosts_per_rack: 2\nnic: 1Gb/s\nocs: [{{rate: 1Gb/s, delta: 1ms}}]\n\
             eps: {{uplink: 2Gb/s, graph: {{fat-tree: {{k: 4, rate: 1Gb/s}}}}}}\nlinks: {links}\n"
        )
    }

    #[test]
    fn a_tier_goes_before_the_graph_key_by_key() {
        let links = "{nic: {delay: 20us}, graph: {buffer: 100kB, ecn: 30kB}, core: {buffer: 50kB, loss: 0.1%}, ocs: {buffer: 64kB}}";
        let links = read_topology(&text(links), "t").unwrap_or_else(|e| panic!("{e}")).links;
        let graph = LinkSpec {
            buffer: Some(Bytes(100_000)),
            ecn: Some(Bytes(30_000)),
            ..LinkSpec::default()
        };
        let core = LinkSpec { buffer: Some(Bytes(50_000)), loss: Loss(1000), ..graph };
        assert_eq!(links.cables, [graph, graph, graph, core]);
        assert_eq!(
            (links.nic.delay, links.uplink, links.ocs.buffer),
            (Span::micros(20), LinkSpec::default(), Some(Bytes(64_000)))
        );
        assert!(read_topology(&text("{}"), "t").unwrap().links.is_plain());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (links, place, what) in [
            ("{nic: {buffer: 3kB}}", "3kB", "a buffer of 3kB"),
            ("{nic: {buffer: 2GB}}", "2GB", "a buffer of 2GB"),
            ("{graph: {buffer: 10kB, ecn: 10kB}}", "10kB}}", "marks from 10kB on"),
            ("{core: {delay: 2s}}", "2s", "a delay of 2s"),
            ("{core: {delay: 2}}", "2}", "2 without a unit is not a length of time"),
            ("{core: {loss: 51%}}", "51%", "a loss of 51%"),
            ("{core: {loss: 1}}", "1}", "`1` is not a share such as 0.1%"),
            ("{ocs: {buffer: 1B}}", "1B", "a buffer of 1B"),
            ("{ocs: {delay: 1us}}", "delay", "unknown key `delay`"),
            ("{nics: {}}", "nics", "unknown key `nics`, did you mean `nic`"),
        ] {
            let e = read_topology(&text(links), "f.yaml").unwrap_err();
            let p = &e.problems[0];
            assert!(e.problems.len() == 1 && p.message.contains(what), "{links}: {e}");
            assert!(
                p.line == 7
                    && text(links).lines().nth(6).unwrap()[p.column - 1..].starts_with(place),
                "{links}: {e}"
            );
        }
        let flat = "name: n\nracks: 2\nhosts_per_rack: 1\nnic: 1Gb/s\neps: {uplink: 1Gb/s}\nlinks: {core: {delay: 1us}, ocs: {buffer: 10kB}}\n";
        let e = read_topology(flat, "f").unwrap_err().to_string();
        assert!(e.contains("no graph of switches") && e.contains("no OCS plane"), "{e}");
    }
}
