//! Names of types that mean one thing each.

use std::collections::BTreeMap;

use super::{Source, crate_sources, is_word};

/// By name: the places in which `src` defines a type of this name, if they are two or more.
///
/// Counted: `struct`, `enum`, `trait`, `union` and `type` of a module, an inline module or a
/// test. Not counted: what is inside functions, traits and impls; `Args` of a command and `Error`
/// of a crate; and one type in `src/http/api/wire` of the name of a type elsewhere, since it is
/// the JSON form of that type.
fn shared(sources: &[Source]) -> BTreeMap<String, Vec<String>> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for s in sources.iter().filter(|s| s.path.starts_with("src/")) {
        for (n, name) in definitions(s) {
            places.entry(name).or_default().push(format!("{}:{n}", s.path));
        }
    }
    places.retain(|name, at| {
        let wire = at.iter().filter(|p| p.contains("/api/wire")).count();
        let forms = usize::from(wire > 0 && wire < at.len());
        at.len() - forms > 1 && !["Args", "Error"].contains(&name.as_str())
    });
    places
}

/// The types that a file defines at the level of a module: line and name.
fn definitions(s: &Source) -> Vec<(usize, String)> {
    let (mut found, mut depth) = (vec![], 0);
    for (n, code) in s.all_code() {
        let item = code.trim();
        let indent = (code.len() - code.trim_start().len()) / 4;
        if depth > 0 && indent == depth - 1 && item == "}" {
            depth -= 1;
        } else if indent == depth {
            let public = item.strip_prefix("pub").unwrap_or(item);
            let shown = public.strip_prefix('(').and_then(|i| i.split_once(')'));
            let mut words = shown.map_or(public, |s| s.1).split_whitespace();
            match words.find(|w| *w != "unsafe") {
                Some("mod") if item.ends_with('{') => depth += 1,
                Some("struct" | "enum" | "trait" | "union" | "type") => {
                    let name = words.next().unwrap_or("").chars();
                    found.push((n, name.take_while(|c| is_word(*c)).collect()));
                }
                _ => {}
            }
        }
    }
    found
}

#[test]
fn names_of_types_mean_one_thing() {
    let shared = shared(&crate_sources());
    let list: Vec<String> =
        shared.iter().map(|(name, at)| format!("{name}: {}", at.join(", "))).collect();
    assert!(
        list.is_empty(),
        "names that are defined in two or more places; give a type a name that says which it \
         is:\n{}",
        list.join("\n")
    );
}

#[test]
fn the_count_of_names_follows_its_rules() {
    let text = "struct A;\npub(in super::b) enum A {}\nmod m {\n    pub type B<T> = T;\n}\n\
                impl C for A {\n    type D = u8;\n}\nfn f() {\n    struct E;\n}\nstruct Error;";
    let here = Source::new("src/sim/a.rs", text);
    let there = Source::new(
        "src/http/api/wire/b.rs",
        "union B {}\nunsafe trait C {}\ntype D = u8;\nstruct E;\nenum Error {}",
    );
    let test =
        Source::new("src/sim/c.rs", "#[cfg(test)]\nmod tests {\n    struct C;\n    struct C;\n}");
    let tests = Source::new("tests/a.rs", "struct D;\nstruct D;");
    let found = shared(&[here, there, test, tests]);
    let places = [
        ("A", vec!["src/sim/a.rs:1", "src/sim/a.rs:2"]),
        ("C", vec!["src/http/api/wire/b.rs:2", "src/sim/c.rs:3", "src/sim/c.rs:4"]),
    ];
    let places = places.map(|(n, at)| (n.to_owned(), at.into_iter().map(str::to_owned).collect()));
    assert_eq!(found, places.into());
}
