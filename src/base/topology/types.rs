//! Which tiers the switches of a flow's list must have.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::graph::Tier;

/// The tiers that the switches of a flow's list must have, in their order; empty: any.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Types(pub Vec<Tier>);

/// The most types of a list: no list of an emulation is longer.
pub const MAX_TYPES: usize = 16;

impl Types {
    /// Whether a list may have any switches.
    pub fn are_free(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether their number makes sense.
    ///
    /// # Errors
    /// What is wrong, and what is allowed.
    pub fn check(&self) -> Result<(), (String, String)> {
        let n = self.0.len();
        if n <= MAX_TYPES {
            Ok(())
        } else {
            Err((format!("{n} types"), format!("at most {MAX_TYPES}")))
        }
    }
}

impl std::fmt::Display for Types {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.iter().map(|t| t.name()).collect::<Vec<_>>().join(", "))
    }
}
