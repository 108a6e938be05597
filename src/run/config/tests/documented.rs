//! What the tables of circuit schedulers, placement policies and shapes want beside the code: rows
//! of documents, and policy files. All of it is looked for here, so that it can be counted. The
//! numbers of files in docs/extending.md are proved by its own examples.

use std::collections::{BTreeMap, BTreeSet};

use super::names_of;
use crate::circuits::SchedulerKind;
use crate::coflows::network::NetworkKind;
use crate::config::topology;
use crate::control::policy::{Estimator, PathPolicy};
use crate::placement::Kind;

/// The files of the project, some of them changed.
#[derive(Clone, Default)]
struct Tree(BTreeMap<String, String>);

impl Tree {
    fn find(&self, path: &str) -> Option<String> {
        let stored = || std::fs::read_to_string(crate::testing::repository(path)).ok();
        self.0.get(path).cloned().or_else(stored)
    }

    fn text(&self, path: &str) -> String {
        self.find(path).unwrap_or_else(|| panic!("{path} is missing"))
    }
}

/// The names in the tables of the code.
#[derive(Clone)]
struct DocumentedNames {
    schedulers: BTreeSet<String>,
    policies: BTreeSet<String>,
    shapes: BTreeSet<String>,
}

impl DocumentedNames {
    fn of_the_code() -> Self {
        Self {
            schedulers: SchedulerKind::ALL.iter().map(|k| k.name().to_owned()).collect(),
            policies: Kind::ALL.iter().map(|k| k.name().to_owned()).collect(),
            shapes: topology::shapes().iter().map(|&s| s.to_owned()).collect(),
        }
    }
}

/// The rows of the tables whose head begins with this cell, each as its cells.
fn rows(text: &str, head: &str) -> Vec<Vec<String>> {
    let tables = text.split("\n\n").filter(|p| p.starts_with(&format!("| {head} |")));
    let rows = tables.flat_map(|t| t.lines().skip(2).filter(|l| l.starts_with('|')));
    rows.map(|l| l.trim_matches('|').split('|').map(|c| c.trim().to_owned()).collect()).collect()
}

/// What stands in backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn has_verdict(cells: &[String]) -> bool {
    let text = cells.join("|").to_lowercase();
    text.contains("*ours*")
        || text.contains("*faithful*")
        || text.split_once("*differs*: ").is_some_and(|(_, how)| how.len() > 20)
}

/// Names of one key of policy files: each has a verdict against its paper in one place, the row of
/// `page` or that of docs/fidelity.md.
fn verdicts(
    tree: &Tree,
    key: &str,
    names: &BTreeSet<String>,
    page: &[Vec<String>],
    wrong: &mut Vec<String>,
) {
    let fidelity = tree.text("docs/fidelity.md");
    let of_key = |s: &&str| s.lines().next().is_some_and(|l| l.ends_with(&format!("`{key}`")));
    let section = fidelity.split("\n## ").find(of_key).expect("a section of its own");
    let mut judged = BTreeMap::new();
    for cells in rows(section, "name") {
        let [_, _, places, verdict, how, _] = &*cells else {
            wrong.push(format!("docs/fidelity.md: not six cells: {cells:?}"));
            continue;
        };
        if !["faithful", "differs", "ours"].contains(&&**verdict)
            || (verdict == "differs" && how.len() <= 20)
        {
            wrong.push(format!("docs/fidelity.md: no verdict, or not how it differs: {cells:?}"));
        }
        let places = quoted(places);
        if places.is_empty()
            || places.iter().any(|place| tree.find(&format!("src/{place}")).is_none())
        {
            wrong.push(format!(
                "docs/fidelity.md: no file of src, or one that is not there: {places:?}"
            ));
        }
        quoted(&cells[0]).into_iter().for_each(|name| *judged.entry(name).or_insert(0) += 1);
    }
    for cells in page.iter().filter(|cells| has_verdict(cells)) {
        quoted(&cells[0]).into_iter().for_each(|name| *judged.entry(name).or_insert(0) += 1);
    }
    for name in names.iter().filter(|n| judged.get(*n) != Some(&1)) {
        wrong.push(format!(
            "{key}: {} verdicts against its paper on `{name}`",
            judged.get(name).unwrap_or(&0)
        ));
    }
    wrong.extend(
        judged
            .keys()
            .filter(|n| !names.contains(*n))
            .map(|n| format!("docs/fidelity.md: `{n}` is no {key}")),
    );
}

/// The tests that docs/fidelity-examples.md names are there.
fn examples(tree: &Tree, wrong: &mut Vec<String>) {
    let document = tree.text("docs/fidelity-examples.md");
    let named: Vec<String> =
        rows(&document, "paper").iter().flat_map(|cells| quoted(&cells[2])).collect();
    assert!(named.len() > 40 && named.len().is_multiple_of(2), "files and names: {named:?}");
    for pair in named.chunks(2) {
        let test = tree
            .find(&format!("src/{}", pair[0]))
            .is_some_and(|text| text.contains(&format!("fn {}(", pair[1])));
        if !test {
            wrong.push(format!("docs/fidelity-examples.md: no test {pair:?}"));
        }
    }
}

/// Every shipped policy file without jobs has its row in docs/fidelity.md, with the `scheduler`,
/// `demand` and `network` of the file. One with jobs has the name of its placement policy, which
/// has a row.
fn shipped(tree: &Tree, wrong: &mut Vec<String>) {
    let fidelity = tree.text("docs/fidelity.md");
    let section = fidelity
        .split("\n## ")
        .find(|s| s.starts_with("Shipped policies"))
        .expect("a section of its own");
    let mut said: BTreeMap<String, Vec<String>> =
        rows(section, "policy").into_iter().map(|c| (quoted(&c[0]).concat(), c)).collect();
    for file in std::fs::read_dir(crate::testing::repository("policies")).expect("a directory") {
        let path = file.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let plan =
            crate::config::read_policy(&tree.text(&format!("policies/{name}.yaml")), "p.yaml")
                .expect("a policy");
        let word = |v: serde_json::Value| v.as_str().expect("a word").to_owned();
        let parts = [
            word(serde_json::to_value(plan.policy.scheduler).expect("it serialises")),
            word(serde_json::to_value(plan.policy.demand).expect("it serialises")),
            word(serde_json::to_value(plan.run.network.kind).expect("it serialises")),
        ];
        if plan.jobs.is_some_and(|j| j.placement.kind().name() == name) {
            continue;
        }
        let found = said
            .remove(&name)
            .map(|cells| cells[1..4].iter().map(|c| quoted(c).concat()).collect::<Vec<_>>());
        if found.as_deref() != Some(&parts[..]) {
            wrong.push(format!("docs/fidelity.md: `{name}` is {parts:?}, and not {found:?}"));
        }
    }
    wrong.extend(said.keys().map(|n| format!("docs/fidelity.md: `{n}` is no shipped policy")));
}

/// Compares the rows of a document with the names of a table.
fn same(document: &str, rows: &[Vec<String>], names: &BTreeSet<String>, wrong: &mut Vec<String>) {
    let found: Vec<String> =
        rows.iter().filter_map(|cells| quoted(&cells[0]).into_iter().next()).collect();
    for name in names.iter().filter(|n| found.iter().filter(|f| f == n).count() != 1) {
        wrong.push(format!("{document}: not one row of `{name}`"));
    }
    wrong.extend(
        found
            .iter()
            .filter(|f| !names.contains(*f))
            .map(|f| format!("{document}: a row of `{f}`, which is none")),
    );
}

/// All that is wanted beside the code, and is not there.
fn missing(tree: &Tree, names: &DocumentedNames) -> Vec<String> {
    let mut wrong = vec![];
    let schedulers = rows(&tree.text("docs/circuits.md"), "`scheduler`");
    same("docs/circuits.md", &schedulers, &names.schedulers, &mut wrong);
    verdicts(tree, "scheduler", &names.schedulers, &schedulers, &mut wrong);
    let manual = tree.text("docs/scheduler.md");
    let policies = rows(&manual, "`policy`");
    same("docs/scheduler.md", &policies, &names.policies, &mut wrong);
    verdicts(tree, "placement.policy", &names.policies, &policies, &mut wrong);
    for name in &names.policies {
        // A program of the user's is none that is shipped with the policies.
        let file = if name == "external" {
            "python/fair.yaml".into()
        } else {
            format!("policies/{name}.yaml")
        };
        if !tree.find(&file).is_some_and(|text| text.contains(&format!("policy: {name}\n"))) {
            wrong.push(format!("{file}: does not show `{name}`"));
        }
    }
    let (document, mininet) = (tree.text("docs/topology.md"), tree.text("mininet/shapes.py"));
    same("docs/topology.md", &rows(&document, "shape"), &names.shapes, &mut wrong);
    let known = mininet
        .split("\nSHAPES = {")
        .nth(1)
        .and_then(|s| s.split('}').next())
        .expect("the table of mininet/shapes.py");
    wrong.extend(
        names
            .shapes
            .iter()
            .filter(|s| !known.contains(&format!("\"{s}\":")))
            .map(|s| format!("mininet/shapes.py: no `{s}`")),
    );
    wrong
}

#[test]
fn every_name_is_documented_and_held_against_its_paper() {
    let tree = Tree::default();
    let mut wrong = missing(&tree, &DocumentedNames::of_the_code());
    let mut demand = names_of::<Estimator>();
    demand.insert("sockets".into());
    verdicts(&tree, "demand", &demand, &[], &mut wrong);
    verdicts(
        &tree,
        "network",
        &names_of::<NetworkKind>(),
        &rows(&tree.text("docs/policy.md"), "`network`"),
        &mut wrong,
    );
    verdicts(&tree, "paths", &names_of::<PathPolicy>(), &[], &mut wrong);
    shipped(&tree, &mut wrong);
    examples(&tree, &mut wrong);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_option_of_a_policy_is_documented() {
    let options = rows(&Tree::default().text("docs/scheduler.md"), "key");
    let rows: BTreeSet<String> = options.iter().flat_map(|cells| quoted(&cells[0])).collect();
    for kind in Kind::ALL {
        let keys: Vec<String> =
            kind.schema().keys().filter(|k| !rows.contains(*k)).cloned().collect();
        assert!(
            keys.is_empty(),
            "docs/scheduler.md: no rows of {keys:?}, options of {}",
            kind.name()
        );
    }
}

/// A section of docs/extending.md: the number of files in its heading, and each file with the lines
/// that the example adds to it.
struct Worked {
    said: String,
    files: Vec<(String, Vec<String>)>,
}

fn worked(manual: &str, title: &str) -> Worked {
    let section = manual.split("\n## ").find(|s| s.starts_with(title)).expect("a section");
    let said = section
        .lines()
        .next()
        .and_then(|l| l.split(": ").nth(1))
        .expect("a number of files")
        .to_owned();
    let mut files: Vec<(String, Vec<String>)> = vec![];
    let mut within = false;
    for line in section.lines().take_while(|l| !l.starts_with("```")) {
        let item = line.split_once(". ").filter(|(n, _)| n.parse::<usize>().is_ok());
        match (item, files.last_mut()) {
            (Some((_, item)), _) => files.push((quoted(item)[0].clone(), vec![])),
            (None, Some(_)) if line.starts_with("   ```") => within = !within,
            (None, Some(file)) if within => file.1.push(line[3..].to_owned()),
            (None, _) => {}
        }
    }
    Worked { said, files }
}

/// Adds a file of the example to a copy of the tree: rows to the first table with this head, or a
/// file of its own.
fn add(tree: &mut Tree, path: &str, head: &str, lines: &[String]) {
    let text = match tree.find(path) {
        None => lines.join("\n") + "\n",
        Some(old) => {
            let at = old.find(&format!("\n\n| {head} |")).expect("the table") + 2;
            let end = old[at..].find("\n\n").map_or(old.len(), |n| at + n);
            format!("{}\n{}{}", &old[..end], lines.join("\n"), &old[end..])
        }
    };
    tree.0.insert(path.to_owned(), text);
}

/// The name of the example, from its line for the table.
fn name(of: &Worked) -> String {
    let lines = of.files.iter().flat_map(|f| &f.1).filter(|l| l.contains(" => "));
    lines.flat_map(|l| l.split('"').nth(1)).next().expect("a line of the table").to_owned()
}

const NUMBERS: [(&str, usize); 3] = [("three files", 3), ("four files", 4), ("five files", 5)];

#[test]
fn an_addition_takes_the_files_that_the_documentation_says_and_no_other() {
    let real = Tree::default();
    let manual = real.text("docs/extending.md");
    let sections = [
        ("A circuit scheduler", "`scheduler`"),
        ("A placement policy", "`policy`"),
        ("A shape of switches", "shape"),
    ];
    for (title, head) in sections {
        let example = worked(&manual, title);
        let number = NUMBERS.iter().find(|n| n.0 == example.said).expect("a number of files").1;
        let paths: Vec<&str> = example.files.iter().map(|f| &*f.0).collect();
        assert_eq!(
            (example.files.len(), paths.iter().collect::<BTreeSet<_>>().len()),
            (number, number),
            "{title}: {paths:?}"
        );
        let (mut names, name) = (DocumentedNames::of_the_code(), name(&example));
        match head {
            "`scheduler`" => names.schedulers.insert(name),
            "`policy`" => names.policies.insert(name),
            _ => names.shapes.insert(name),
        };
        assert!(!missing(&real, &names).is_empty(), "{title}: its name alone is not enough");
        let wanted: Vec<_> = example.files.iter().filter(|f| !f.0.starts_with("src/")).collect();
        let with = |left_out: &str| {
            let mut tree = real.clone();
            for (path, lines) in wanted.iter().filter(|f| f.0 != left_out) {
                match path.ends_with(".py") {
                    true => drop(
                        tree.0.insert(
                            path.clone(),
                            real.text(path)
                                .replace("\nSHAPES = {", &format!("\nSHAPES = {{{} ", lines[0])),
                        ),
                    ),
                    false => add(&mut tree, path, head, lines),
                }
            }
            missing(&tree, &names)
        };
        assert_eq!(with(""), [""; 0], "{title}: another file is wanted");
        for (path, _) in &wanted {
            assert!(!with(path).is_empty(), "{title}: {path} is not wanted");
        }
    }
}

#[test]
fn the_policy_file_of_the_example_is_one_but_for_its_name() {
    let example = worked(&Tree::default().text("docs/extending.md"), "A placement policy");
    let file =
        example.files.iter().find(|f| f.0.ends_with(".yaml")).expect("a policy file").1.join("\n")
            + "\n";
    assert!(
        file.starts_with("# ")
            && file.lines().next().is_some_and(|l| l.len() > 22 && !l.ends_with('.')),
        "it says what it is: {file}"
    );
    let known = file
        .replace("policy: sticky\n", "policy: fair\n")
        .lines()
        .filter(|l| !l.contains("most:"))
        .collect::<Vec<_>>()
        .join("\n");
    crate::config::read_policy(&known, "sticky.yaml").expect("a policy");
}

/// What ties the tables to documents stands here, where it is counted: no other test reads both.
#[test]
fn no_other_test_wants_a_document_for_a_name() {
    fn sources(directory: std::path::PathBuf, into: &mut Vec<std::path::PathBuf>) {
        for entry in
            std::fs::read_dir(directory).expect("a directory").map(|e| e.expect("an entry").path())
        {
            match entry.is_dir() {
                true => sources(entry, into),
                false if entry.extension().is_some_and(|e| e == "rs") => into.push(entry),
                false => {}
            }
        }
    }
    let root = crate::testing::repository(".");
    let mut all = vec![];
    ["src", "tests"].into_iter().for_each(|d| sources(root.join(d), &mut all));
    for path in all.iter().filter(|p| !p.ends_with("config/tests/documented.rs")) {
        let text = std::fs::read_to_string(path).expect("a text");
        let code = || text.lines().filter(|l| !l.trim_start().starts_with("//"));
        let names = ["Kind::ALL", "Kind::value_variants", "topology::shapes"];
        let both = code().any(|l| names.iter().any(|n| l.contains(n)))
            && code().any(|l| l.contains("\"docs/") || l.contains("\"/docs/"));
        assert!(
            !both,
            "{}: what names want of documents is looked for in src/run/config/tests/documented.rs",
            path.display()
        );
    }
}

#[test]
fn the_numbers_of_files_are_the_same_everywhere() {
    let tree = Tree::default();
    let of =
        |title: &str| worked(&tree.text("docs/extending.md"), title).said.replace(" files", "");
    let (circuit, placement, shape) =
        (of("A circuit scheduler"), of("A placement policy"), of("A shape of switches"));
    for (path, said) in [
        (
            "CONTRIBUTING.md",
            format!(
                "A circuit scheduler is {circuit} files, a placement policy {placement}, a shape of switches {shape}: "
            ),
        ),
        (
            "README.md",
            format!(
                "a circuit scheduler in {circuit} files, a placement policy in {placement}, a shape of switches in {shape} "
            ),
        ),
    ] {
        let text = tree.text(path).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains(said.trim()),
            "{path} says another number than docs/extending.md: {said}"
        );
    }
}
