//! How near to its data a task runs.

/// How near to its block a task runs; the nearest first.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Locality {
    /// On a host that holds it. Tasks without a block are at home everywhere.
    Host,
    /// In a rack that holds it.
    Rack,
    /// Elsewhere.
    Remote,
}
