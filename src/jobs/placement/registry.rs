//! Placement policies by name: the macro behind the table at the end of `placement/mod.rs`, and a
//! policy with all its parameters.

use serde::{Deserialize, Serialize};

use super::policy::Placement;
use super::spec::Common;
use super::{Kind, Policy};
use crate::topology::Topology;
use crate::units::Bytes;

/// Lists the placement policies: what each does, its variant of [`Kind`] and [`Policy`], its name
/// in policy files, and the type of its options.
macro_rules! policies {
    ($($(#[$doc:meta])* $kind:ident = $name:literal => $options:ty),* $(,)?) => {
        /// The policies by name.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema
        )]
        #[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
        pub enum Kind {
            $($(#[$doc])* #[serde(rename = $name)] #[cfg_attr(feature = "clap", value(name = $name))] $kind),*
        }

        impl Kind {
            /// Every kind, in the order of the table.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$kind),*];

            /// Its name in policy files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name),*
                }
            }

            /// The slowstart of a file that gives none, in per cent.
            pub fn slowstart(self) -> u32 {
                match self {
                    $(Self::$kind => <$options>::SLOWSTART),*
                }
            }

            /// The order of jobs of a file that gives none.
            pub fn order(self) -> JobOrder {
                match self {
                    $(Self::$kind => <$options>::ORDER),*
                }
            }

            /// When reduce tasks get slots, in a file that does not say it.
            pub fn reduces(self) -> ReduceStart {
                match self {
                    $(Self::$kind => <$options>::REDUCES),*
                }
            }

            /// Whose flows there are, in a file that does not say it.
            pub fn flows(self) -> FlowGranularity {
                match self {
                    $(Self::$kind => <$options>::FLOWS),*
                }
            }

            /// Whether delay scheduling may count offers under it.
            pub fn counts_offers(self) -> bool {
                match self {
                    $(Self::$kind => <$options>::COUNTS_OFFERS),*
                }
            }

            /// The offers that it counts in a file that says nothing of waits.
            pub fn missed(self) -> Option<u32> {
                match self {
                    $(Self::$kind => <$options>::MISSED),*
                }
            }

            /// Whether it thinks of hosts, so that flows between racks as wholes say nothing of it.
            pub fn is_by_host(self) -> bool {
                match self {
                    $(Self::$kind => <$options>::BY_HOST),*
                }
            }

            /// The keys of its options, each with its JSON Schema.
            pub fn schema(self) -> Map<String, Value> {
                match self {
                    $(Self::$kind => spec::schema::<$options>()),*
                }
            }
        }

        /// A policy with its options.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "policy")]
        pub enum Policy {
            $($(#[$doc])* #[serde(rename = $name)] $kind($options)),*
        }

        impl Policy {
            /// Options of a kind, as usual.
            pub fn usual(kind: Kind) -> Self {
                match kind {
                    $(Kind::$kind => Self::$kind(<$options>::default())),*
                }
            }

            /// Options of a kind, from the values of their keys.
            ///
            /// # Errors
            /// A key that the options do not have, or values that make no sense.
            pub fn read(kind: Kind, values: Map<String, Value>) -> Result<Self, Vec<BadOption>> {
                match kind {
                    $(Kind::$kind => spec::read(values).map(Self::$kind)),*
                }
            }

            /// The keys of options that are not as usual, with their values.
            pub fn written(&self) -> Map<String, Value> {
                match self {
                    $(Self::$kind(options) => spec::written(options)),*
                }
            }

            /// The kind of policy that they are for.
            pub fn kind(&self) -> Kind {
                match self {
                    $(Self::$kind(_) => Kind::$kind),*
                }
            }

            /// The network that it is meant for.
            pub fn network(&self, topology: &Topology) -> Topology {
                match self {
                    $(Self::$kind(options) => options.network(topology)),*
                }
            }

            /// What it takes a byte to cost at the switches that it crosses.
            pub fn units(&self) -> Units {
                match self {
                    $(Self::$kind(options) => options.units()),*
                }
            }

            /// The policy itself; `elephant` is the threshold T_e of the circuits' policy.
            pub fn build(&self, common: &Common, elephant: Bytes) -> Box<dyn Placement> {
                match self {
                    $(Self::$kind(options) => options.build(common, elephant)),*
                }
            }
        }
    };
}

pub(super) use policies;

/// A placement policy and all its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Which, with its own options.
    pub policy: Policy,
    /// What every policy is given.
    pub common: Common,
}

impl Spec {
    /// A policy of a kind, with its usual parameters.
    pub fn new(kind: Kind) -> Self {
        Self {
            policy: Policy::usual(kind),
            common: Common {
                slowstart: kind.slowstart(),
                missed: kind.missed(),
                ..Common::default()
            },
        }
    }

    /// The kind of policy.
    pub fn kind(&self) -> Kind {
        self.policy.kind()
    }

    /// The policy. `elephant` is the threshold T_e, unless the policy's options have one.
    pub fn build(&self, elephant: Bytes) -> Box<dyn Placement> {
        self.policy.build(&self.common, elephant)
    }

    /// The network that the policy is meant for.
    pub fn network(&self, topology: &Topology) -> Topology {
        self.policy.network(topology)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_is_made_by_its_name_and_its_options_survive_a_file() {
        for kind in Kind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
            #[cfg(feature = "clap")]
            assert_eq!(clap::ValueEnum::to_possible_value(&kind).unwrap().get_name(), kind.name());
            let usual = Spec::new(kind);
            assert_eq!((usual.kind(), usual.build(Bytes(1)).name()), (kind, kind.name()));
            assert!(usual.policy.written().is_empty(), "{kind:?}");
            assert_eq!(Policy::read(kind, usual.policy.written()).unwrap(), usual.policy);
            let stranger =
                [("no-such-key".to_owned(), serde_json::Value::from(1))].into_iter().collect();
            assert!(
                Policy::read(kind, stranger).unwrap_err()[0].message.contains("unknown field"),
                "{kind:?}"
            );
        }
    }
}
