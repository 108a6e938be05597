//! The YAML blocks of the reference pages are read by the program's own readers: whole files as
//! they are, parts within a file that says nothing else.

use heliostat::config::{self, ConfigError};
use heliostat::workload::coflow_benchmark::PortMapping;

use super::text;

const RACKS: &str = "hosts_per_rack: 2\nnic: 1Gb/s\nocs: [{rate: 1Gb/s, delta: 10ms, stop: not-all-stop, duplex: false}]\n";
const POLICY: &str = "name: p\ninterval: 100ms\ndemand: backlog\nscheduler: edmonds\n";
const FAT_TREE: &str = "eps: {uplink: 2Gb/s, graph: {fat-tree: {k: 4, rate: 1Gb/s}}}\n";

/// The YAML blocks of a document, each with its first line's number.
fn blocks(document: &str) -> Vec<(usize, String)> {
    let (text, mut found, mut open) = (text(document), vec![], None);
    for (n, line) in text.lines().enumerate() {
        match (&mut open, line) {
            (None, "```yaml") => open = Some((n + 2, String::new())),
            (Some(_), "```") => found.extend(open.take()),
            (Some((_, block)), line) => *block += &format!("{line}\n"),
            (None, _) => {}
        }
    }
    found
}

/// Reads a block by what it begins with.
fn read(block: &str, place: &str) -> Result<(), ConfigError> {
    let topology = |text: String| config::read_topology(&text, place).map(drop);
    let eight =
        config::read_topology(&text("topologies/hybrid-8x2.yaml"), "topologies/hybrid-8x2.yaml")?;
    let whole = |key: &str| block.lines().any(|l| l.starts_with(key));
    match block.split(':').next().unwrap_or_default() {
        "name" if whole("racks:") => topology(block.into()),
        "name" if whole("jobs:") => config::read_jobs(block, place).map(drop),
        "name" if whole("coflows:") => {
            config::read_workload(block, place, &eight, &PortMapping::default()).map(drop)
        }
        "name" => config::read_policy(block, place).map(drop),
        "eps" => topology(format!("name: n\nracks: 8\n{RACKS}{block}")),
        "  graph" => topology(format!("name: n\nracks: 4\n{RACKS}eps:\n  uplink: 1Gb/s\n{block}")),
        "links" => topology(format!("name: n\nracks: 8\n{RACKS}{FAT_TREE}{block}")),
        "placement" => config::read_policy(&format!("{POLICY}{block}"), place).map(drop),
        other => panic!("{place}: a YAML block begins with `{other}`, which this test cannot read"),
    }
}

#[test]
fn yaml_blocks_of_the_reference_pages_are_read_by_the_program() {
    let documents =
        [("topology", 3), ("links", 1), ("policy", 1), ("workloads", 2), ("scheduler", 1)];
    for (document, least) in documents.map(|(page, least)| (format!("docs/{page}.md"), least)) {
        let found = blocks(&document);
        assert!(found.len() >= least, "{document} has {} YAML blocks", found.len());
        for (line, block) in found {
            read(&block, &format!("{document}:{line}")).unwrap_or_else(|e| panic!("{e}"));
        }
    }
    assert!(read("name: n\nracks: 8\nhost: 2\n", "wrong").is_err());
}
