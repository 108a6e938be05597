//! From YAML to checked types, once: text -> raw shapes -> [`Topology`], [`Policy`], [`Workload`] and [`JobList`].
//!
//! `yaml` is the only file that calls the YAML library. Every error carries the file, line and column, the path of the
//! key, and what is allowed there; errors of meaning (a duplicate id, an impossible value) are all reported at once.

use crate::control::policy::Policy;
use crate::topology::Topology;
use crate::workload::jobs::JobList;
use crate::workload::{Workload, coflow_benchmark};

pub mod error;
mod fit;
pub mod jobs;
pub mod matrix;
pub mod policy;
pub mod topology;
pub mod workload;
pub mod yaml;

pub use error::{ConfigError, Flaw, Problem, Step};
pub use fit::{advice, fit, unfit};

/// Reads a topology file's text; `file` is the name that errors show.
///
/// # Errors
/// What is wrong with the text, where, and what is allowed.
pub fn read_topology(text: &str, file: &str) -> Result<Topology, ConfigError> {
    yaml::read_checked(text, file, topology::RawTopology::check)
}

/// Reads a policy file's text; `file` is the name that errors show.
///
/// # Errors
/// What is wrong with the text, where, and what is allowed.
pub fn read_policy(text: &str, file: &str) -> Result<Policy, ConfigError> {
    yaml::read_checked(text, file, policy::RawPolicy::check)
}

/// Reads a workload of either format: a text that begins with two integers is a trace of the coflow-benchmark, whose ports become
/// hosts by `mapping`; any other is YAML. `file` is the name that errors show, and the name of a trace.
///
/// # Errors
/// What is wrong with the text, where, and what is allowed.
pub fn read_workload(text: &str, file: &str, topology: &Topology, mapping: &coflow_benchmark::Mapping) -> Result<Workload, ConfigError> {
    if !coflow_benchmark::looks_like(text) {
        return yaml::read_checked(text, file, |raw: workload::RawWorkload| raw.check(topology));
    }
    let name = file.rsplit('/').next().unwrap_or(file);
    let trace = coflow_benchmark::parse(text).and_then(|t| t.to_workload(name, topology, mapping));
    trace.map_err(|e| ConfigError::at(text, file, (e.line, e.column), e.why, ""))
}

/// Checks the form of a workload without a topology: whether its places exist stays open.
///
/// # Errors
/// What is wrong with the text, where, and what is allowed.
pub fn check_workload_form(text: &str, file: &str) -> Result<(), ConfigError> {
    if !coflow_benchmark::looks_like(text) {
        return yaml::read::<workload::RawWorkload>(text, file).map(drop);
    }
    coflow_benchmark::parse(text).map(drop).map_err(|e| ConfigError::at(text, file, (e.line, e.column), e.why, ""))
}

/// Reads a jobs file's text; `file` is the name that errors show.
///
/// # Errors
/// What is wrong with the text, where, and what is allowed.
pub fn read_jobs(text: &str, file: &str) -> Result<JobList, ConfigError> {
    yaml::read_checked(text, file, jobs::RawJobs::check)
}

/// The JSON Schema of jobs files, for editors.
pub fn schema_jobs() -> serde_json::Value {
    schemars::schema_for!(jobs::RawJobs).to_value()
}

/// The JSON Schema of workload files, for editors.
pub fn schema_workload() -> serde_json::Value {
    schemars::schema_for!(workload::RawWorkload).to_value()
}

/// The JSON Schema of topology files, for editors.
pub fn schema_topology() -> serde_json::Value {
    schemars::schema_for!(topology::RawTopology).to_value()
}

/// The JSON Schema of policy files, for editors.
pub fn schema_policy() -> serde_json::Value {
    schemars::schema_for!(policy::RawPolicy).to_value()
}

/// A name that can stand in a namespace's name: `^[a-z][a-z0-9-]{0,11}$`.
fn is_name(s: &str) -> bool {
    let b = s.as_bytes();
    (1..=12).contains(&b.len()) && b[0].is_ascii_lowercase() && b.iter().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == b'-')
}

/// What [`is_name`] wants, in words.
const NAME_RULE: &str = "1 to 12 of a-z, 0-9 and -, beginning with a letter";

#[cfg(test)]
mod tests;
