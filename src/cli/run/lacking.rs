//! What a topology asks for and this kernel lacks.

use std::path::Path;

use crate::cli::{CliError, files};
use crate::config::shipped::Shelf;
use crate::config::{ConfigError, Flaw, PathStep, yaml};
use crate::kernel::missing::{self, MissingFeature};
use crate::topology::Topology;

/// Says before anything is built which links the kernel cannot make, and where the file asks for
/// them.
///
/// # Errors
/// There are links like this.
pub fn check_links(file: &Path, topology: &Topology) -> Result<(), CliError> {
    let missing = missing::lacks(topology)
        .map_err(|e| CliError::Failed(format!("try what links need: {e}")))?;
    if missing.is_empty() {
        return Ok(());
    }
    let text = files::read_shipped(Shelf::Topologies, file, &[])?;
    Err(CliError::Failed(at_their_keys(&text, &file.display().to_string(), &missing).to_string()))
}

/// An error at every key of the file that asks for it.
pub fn at_their_keys(text: &str, file: &str, missing: &[MissingFeature]) -> ConfigError {
    let flaw = |lack: &MissingFeature| {
        let path = |kind: &str| ["links", kind, lack.key].map(PathStep::from).to_vec();
        let own = Some(path(lack.kind)).filter(|p| yaml::locate(text, p).is_some());
        let allowed = "links without this key, or `heliostat simulate`";
        Flaw {
            path: own.unwrap_or_else(|| path("graph")),
            message: lack.to_string(),
            allowed: allowed.into(),
        }
    };
    let mut flaws: Vec<Flaw> = missing.iter().map(flaw).collect();
    // Several tiers may have a key by `graph`.
    flaws.dedup();
    yaml::placed(text, file, flaws)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::kernel::missing::Module;

    #[test]
    fn what_the_kernel_lacks_is_told_at_the_key_that_asks_for_it() {
        let lack = |kind, key, module| MissingFeature {
            kind,
            key,
            module,
            said: "No such file or directory".into(),
        };
        let missing = [
            lack("access", "delay", Module::Netem),
            lack("aggregation", "delay", Module::Netem),
            lack("core", "delay", Module::Netem),
            lack("core", "ecn", Module::Red),
        ];
        let e = at_their_keys(
            "links:\n  graph: {delay: 1ms}\n  core: {delay: 2ms, ecn: 30kB}\n",
            "f.yaml",
            &missing,
        );
        let told: Vec<_> =
            e.problems.iter().map(|p| (p.line, config::error::show_path(&p.path))).collect();
        assert_eq!(
            told,
            [
                (2, "links.graph.delay".into()),
                (3, "links.core.delay".into()),
                (3, "links.core.ecn".into())
            ]
        );
        assert!(
            e.to_string().contains("no netem (No such file or directory); links with `delay` or `loss` need it: modprobe sch_netem"),
            "{e}"
        );
    }
}
