//! From YAML to checked types, once: text -> raw shapes -> [`Topology`], [`RunPlan`],
//! [`Workload`](crate::workload::Workload) and [`JobList`]; and from the formats of others to the
//! same types.
//!
//! `yaml` is the only file that calls the YAML library. Every error carries the file, line and
//! column, the path of the key, and what is allowed there; errors of meaning (a duplicate id, an
//! impossible value) are all reported at once.

use crate::paths::types::possible;
use crate::runtime::settings::RunPlan;
use crate::topology::Topology;
use crate::workload::job_model::JobModel;
use crate::workload::jobs::JobList;

mod bare;
pub mod error;
pub mod faults;
mod fit;
mod formats;
pub mod jobs;
pub mod json;
pub mod matrix;
pub mod nearest;
pub mod placement;
pub mod policy;
mod seen;
pub mod shipped;
pub mod sweep;
pub mod topology;
mod words;
pub mod workload;
pub mod yaml;

pub use error::{ConfigError, FileProblem, Flaw, PathStep};
pub use fit::{SimulationLoad, advice, fit, memory, model, unfit};
pub use formats::{
    Format, JobsReading, Select, check_workload_form, format_of, of_no_format, read_any_jobs,
    read_workload,
};
pub use sweep::read_grid;
pub use yaml::MAX_BYTES;

/// Reads a topology file's text; `file` is the name that errors show.
///
/// # Errors
/// What is wrong with the text, where, and what is allowed.
pub fn read_topology(text: &str, file: &str) -> Result<Topology, ConfigError> {
    yaml::read_checked(text, file, topology::RawTopology::check)
}

pub use policy::settings;

/// Reads a policy file's text; `file` is the name that errors show.
///
/// # Errors
/// What is wrong with the text, where, and what is allowed.
pub fn read_policy(text: &str, file: &str) -> Result<RunPlan, ConfigError> {
    yaml::read_checked(text, file, policy::RawPolicy::check)
}

/// The keys and values of a YAML text, as they are.
///
/// # Errors
/// What is no YAML, or holds what JSON cannot.
pub fn as_json(text: &str) -> Result<serde_json::Value, String> {
    yaml::read(text, "").map_err(|e| e.to_string())
}

/// Reads a jobs file's text; `file` is the name that errors show.
///
/// # Errors
/// What is wrong with the text, where, and what is allowed.
pub fn read_jobs(text: &str, file: &str) -> Result<JobList, ConfigError> {
    yaml::read_checked(text, file, jobs::RawJobs::check)
}

/// Whether some two hosts of `topology` have lists of the types that the jobs of a file ask for;
/// `text` is that of the file.
///
/// # Errors
/// The types that none have, where they stand, and what there is.
pub fn check_types(
    list: &JobList,
    topology: &Topology,
    text: &str,
    file: &str,
) -> Result<(), ConfigError> {
    let mut wrong = std::collections::BTreeMap::new();
    for types in list.jobs.iter().flat_map(|j| j.edges.iter().map(|e| &e.types)) {
        if let (false, Err(why)) = (wrong.contains_key(types), possible(topology, types)) {
            wrong.insert(types.clone(), why);
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    yaml::read_checked(text, file, |raw: jobs::RawJobs| Err(raw.types_among(&wrong)))
}

/// Reads a file with the parameters of the model that turns rows into jobs; what it leaves out
/// keeps the default.
///
/// # Errors
/// What is wrong with the text, where, and what is allowed.
pub fn read_job_model(text: &str, file: &str) -> Result<JobModel, ConfigError> {
    yaml::read_checked(text, file, |m: JobModel| {
        let flaw = |(key, message): (&str, String)| {
            vec![Flaw { path: vec![key.into()], message, allowed: String::new() }]
        };
        m.check().map(|()| m).map_err(flaw)
    })
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

/// Whether a name has at most `longest` letters and can be a part of a namespace's name:
/// `^[a-z][a-z0-9-]*$`.
fn is_name(s: &str, longest: usize) -> bool {
    let b = s.as_bytes();
    (1..=longest).contains(&b.len())
        && b[0].is_ascii_lowercase()
        && b.iter().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == b'-')
}

/// What [`is_name`] wants, in words.
fn name_rule(longest: usize) -> String {
    format!("1 to {longest} of a-z, 0-9 and -, beginning with a letter")
}

#[cfg(test)]
mod tests;
