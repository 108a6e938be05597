//! Identities as types: a rack is never mistaken for a host. Each is a dense index from zero, so
//! that it can index a vector, and orders by its number, which is how every tie in Heliostat
//! breaks.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// Ids by their names, such as `r3`, for `#[serde(serialize_with = ..)]` in what people and other
/// programs read.
#[cfg(feature = "serde")]
pub mod by_name {
    use std::fmt::Display;

    use serde::{Serialize, Serializer};

    struct DisplayedId<'a, T>(&'a T);

    impl<T: Display> Serialize for DisplayedId<'_, T> {
        fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
            s.collect_str(self.0)
        }
    }

    /// One id.
    pub fn one<T: Display, S: Serializer>(id: &T, s: S) -> Result<S::Ok, S::Error> {
        DisplayedId(id).serialize(s)
    }

    /// Several ids.
    pub fn list<T: Display, S: Serializer>(ids: &[T], s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(ids.iter().map(DisplayedId))
    }

    /// Several lists of ids.
    pub fn lists<T: Display, S: Serializer>(all: &[Vec<T>], s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(all.iter().map(|ids| ids.iter().map(DisplayedId).collect::<Vec<_>>()))
    }

    /// Ids, each with a value.
    pub fn pairs<T: Display, V: Serialize, S: Serializer>(
        all: &[(T, V)],
        s: S,
    ) -> Result<S::Ok, S::Error> {
        s.collect_seq(all.iter().map(|(id, value)| (DisplayedId(id), value)))
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $t:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "serde", serde(transparent))]
        pub struct $t(pub u32);

        impl $t {
            /// The number as an index.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
        impl From<usize> for $t {
            fn from(i: usize) -> Self {
                Self(u32::try_from(i).expect("fewer than 2^32 objects of a kind"))
            }
        }
        impl std::fmt::Display for $t {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&format!("{}{}", $prefix, self.0))
            }
        }
        impl std::fmt::Debug for $t {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}

id!(/** A rack, and its top-of-rack switch, which has one port on the EPS and one on every OCS plane. */ RackId, "r");
id!(/** A server, numbered over the whole network, rack by rack. */ HostId, "h");
id!(/** A packet switch of the electrical network. */ SwitchId, "s");
id!(/** An optical plane: one OCS with an input and an output port for every rack. */ PlaneId, "p");
id!(/** A flow: bytes from one host to another, part of one coflow. */ FlowId, "f");
id!(/** A coflow: flows that are finished only together. */ CoflowId, "c");
id!(/** A job of the task scheduler. */ JobId, "j");
id!(/** A task of a job. */ TaskId, "t");
