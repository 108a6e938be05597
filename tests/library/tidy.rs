//! The rules of the house as an ordinary test. Every broken rule is one line: `file:line: what is
//! wrong; what to do`.
//!
//! Cargo guards the walls between crates. This reads the text of `src` and `tests`, without parsing
//! Rust. Tests inside a source file (`#[cfg(test)]`) are free of the rules about clocks and maps.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

mod names;
mod source;

pub use source::Source;
use source::{has_word, is_word, uses_after};

/// No source file is longer, tests in it included.
const MAX_LINES: usize = 750;
/// As in rustfmt.toml, for comments. Tables, examples and addresses may be wider.
const MAX_COLUMNS: usize = 100;
/// rustfmt leaves the inside of macros alone, and lines with a long literal or address.
const MAX_CODE_COLUMNS: usize = 140;

/// Rooms that decide and must give the same answer every time: no maps whose order is random.
const DECIDING: &[&str] =
    &["circuits", "jobs/placement", "jobs/scheduler", "seam/plan", "base/paths", "control"];
/// Where a clock may be read and randomness made.
const CLOCK_ROOMS: &[&str] = &["run/runtime", "kernel", "http", "experiment", "cli", "main"];
/// Beside the rooms that decide, where the use of floating point is listed.
const FLOATS_TOO: &str = "sim";
/// Functions of floating point whose last digit differs between machines.
const INEXACT: &[&str] = &[
    "acos", "asin", "atan", "atan2", "cbrt", "cos", "exp", "exp2", "exp_m1", "hypot", "ln",
    "ln_1p", "log", "log10", "log2", "powf", "powi", "sin", "tan",
];
/// Files side by side that use each other; no more of them.
const CIRCLES: &[(&str, &str)] = &[
    ("circuits/matching/bipartite", "circuits/matching/edmonds"),
    ("cli/workload/reading", "cli/workload/synth"),
    ("run/config/error", "run/config/yaml"),
    ("kernel/detach", "kernel/network"),
    ("kernel/detach", "kernel/ownership"),
    ("kernel/network", "kernel/ownership"),
    ("sim/engine", "sim/ledger"),
    ("jobs/placement/advisor", "jobs/placement/coscheduler"),
    ("jobs/workload/coflow_benchmark", "jobs/workload/htsim"),
];
/// Rooms that read and write files which people name, and their one file that opens them.
const FILE_ROOMS: &[&str] = &["cli", "run"];
const OPENER: &str = "run/runtime/open";
/// Files of theirs that read what the kernel tells, below /proc and /sys.
const OF_THE_KERNEL: &[&str] =
    &["cli/doctor/machine", "cli/machine", "cli/memory", "cli/origin", "run/runtime/measure"];

type Rule = fn(&Source) -> Vec<(usize, String)>;

const RULES: &[(&str, Rule)] = &[
    ("length", length),
    ("leftovers", leftovers),
    ("prints", prints),
    ("sleep in tests", sleep_in_tests),
    ("clock", clock),
    ("hash maps", hash_maps),
    ("module docs", module_docs),
    ("workplace", workplace),
    ("alone", alone),
    ("files", opened_files),
];

fn length(s: &Source) -> Vec<(usize, String)> {
    let mut found = vec![];
    if s.path.starts_with("src/") && s.lines.len() > MAX_LINES {
        found.push((
            s.lines.len(),
            format!("the file has more than {MAX_LINES} lines; split it by what its parts do"),
        ));
    }
    let mut fenced = false;
    for (n, line) in s.lines.iter().enumerate() {
        let comment = line.raw.trim_start().strip_prefix("//");
        let text = comment.map_or("", |c| c.trim_start_matches(['/', '!']));
        fenced ^= text.trim_start().starts_with("```");
        let most = if comment.is_some() { MAX_COLUMNS } else { MAX_CODE_COLUMNS };
        let as_it_is = fenced || text.starts_with("   ") || text.starts_with(" |");
        let breakable = !line.raw.contains(['"', '─']) && !line.raw.contains("://") && !as_it_is;
        if line.raw.chars().count() > most && breakable {
            found.push((n + 1, format!("the line has more than {most} columns; break it")));
        }
    }
    found
}

fn leftovers(s: &Source) -> Vec<(usize, String)> {
    let macros = ["todo!", "unimplemented!", "dbg!"];
    let code = s.all_code().filter_map(|(n, c)| {
        let word = macros
            .iter()
            .find(|w| c.match_indices(**w).any(|(at, _)| !c[..at].ends_with(is_word)))?;
        Some((n, format!("`{word}` is unfinished work; finish it or return an error")))
    });
    let notes = ["FIXME".to_owned(), "X".repeat(3)];
    let comments = s.lines.iter().enumerate().filter_map(|(n, l)| {
        let word = notes.iter().find(|w| has_word(&l.raw, w))?;
        (!s.path.ends_with("tidy.rs"))
            .then(|| (n + 1, format!("a `{word}` note; mend it, or write down the limit as one")))
    });
    code.chain(comments).collect()
}

/// The macros of the standard library panic where stdout or stderr cannot be written. Only commands
/// print.
fn prints(s: &Source) -> Vec<(usize, String)> {
    if !s.stands_in(&["cli", "main"]) {
        return vec![];
    }
    let macros = ["eprintln!", "eprint!", "println!", "print!"];
    let found = s.code().filter_map(|(n, c)| {
        let word = macros.iter().find(|w| c.match_indices(**w).any(|(at, _)| !c[..at].ends_with(is_word)))?;
        Some((n, format!("`{word}` panics without a reader; `cli::print` writes to stdout, `say!` of `cli::log` to stderr")))
    });
    found.collect()
}

fn sleep_in_tests(s: &Source) -> Vec<(usize, String)> {
    let found =
        s.lines.iter().enumerate().filter(|(_, l)| l.in_test && l.code.contains("thread::sleep"));
    found
        .map(|(n, _)| (n + 1, "a test sleeps; wait for the event itself, with a deadline".into()))
        .collect()
}

fn clock(s: &Source) -> Vec<(usize, String)> {
    if !s.path.starts_with("src/") || s.stands_in(CLOCK_ROOMS) {
        return vec![];
    }
    let banned = ["Instant", "SystemTime", "thread_rng", "OsRng", "from_os_rng", "from_entropy"];
    let named = |c: &str| {
        banned
            .iter()
            .find(|w| has_word(c, w))
            .copied()
            .or_else(|| c.contains("rand::rng(").then_some("rand::rng"))
    };
    let found = s.code().filter_map(|(n, c)| Some((n, named(c)?)));
    found
        .map(|(n, w)| {
            (n, format!("`{w}` in a room that must repeat; take `now` or a seed as an argument"))
        })
        .collect()
}

/// A file that is named by people may be a pipe, a device, endless or no text.
fn opened_files(s: &Source) -> Vec<(usize, String)> {
    let free = s.stands_in(&[OPENER])
        || s.stands_in(OF_THE_KERNEL)
        || s.path.contains("/tests/")
        || s.path.ends_with("/build.rs");
    if !s.stands_in(FILE_ROOMS) || free {
        return vec![];
    }
    let ways = [
        "fs::read_to_string",
        "fs::read(",
        "fs::write(",
        "File::open",
        "File::create(",
        "File::options",
        "OpenOptions",
    ];
    let is = |c: &str, way: &str| {
        let named = c.match_indices(way).any(|(at, _)| !c[..at].ends_with(is_word));
        named || way.starts_with("fs::read_to") && c.contains("use std::fs::read")
    };
    let found = s.code().filter_map(|(n, c)| Some((n, ways.iter().find(|w| is(c, w))?)));
    found
        .map(|(n, w)| {
            (n, format!("`{w}` outside src/{OPENER}.rs; open what people name by its functions"))
        })
        .collect()
}

fn hash_maps(s: &Source) -> Vec<(usize, String)> {
    if !s.stands_in(DECIDING) {
        return vec![];
    }
    let found = s.code().filter_map(|(n, c)| {
        Some((n, ["HashMap", "HashSet"].into_iter().find(|w| has_word(c, w))?))
    });
    found
        .map(|(n, w)| {
            (n, format!("`{w}` has no order; use a BTreeMap, an IndexMap or a vector by id"))
        })
        .collect()
}

/// The table of the crate doc, section "Where floating point is used": what each file uses it for.
fn float_files(lib: &Source) -> BTreeMap<String, String> {
    let row = |raw: &str| {
        let (file, what) = raw.strip_prefix("//! | `")?.split_once("` | ")?;
        Some((file.to_owned(), what.split(':').next()?.to_owned()))
    };
    lib.lines.iter().filter_map(|l| row(&l.raw)).collect()
}

/// Floating point where something is decided: only in the files of that table, and where it is no
/// mere report, without functions that differ between machines.
fn floats(s: &Source, listed: &BTreeMap<String, String>) -> Vec<(usize, String)> {
    let own = listed.get(s.path.trim_start_matches("src/")).map(String::as_str);
    let uses = || s.code().filter(|(_, c)| has_word(c, "f64") || has_word(c, "f32"));
    match own {
        None if s.stands_in(DECIDING) || s.stands_in(&[FLOATS_TOO]) => {
            let say = "floating point where something is decided; use integers, or list the file and the reason in src/lib.rs";
            uses().map(|(n, _)| (n, say.to_owned())).collect()
        }
        None => vec![],
        Some(_) if uses().next().is_none() => {
            vec![(1, "src/lib.rs lists the file as one with floating point; it has none".into())]
        }
        Some("report") => vec![],
        Some(_) => {
            let called = |c: &str| INEXACT.iter().find(|f| c.contains(&format!(".{f}("))).copied();
            let found = s.code().filter_map(|(n, c)| Some((n, called(c)?)));
            found
                .map(|(n, f)| {
                    (
                        n,
                        format!(
                            "`{f}` differs between machines in its last digit; decide without it"
                        ),
                    )
                })
                .collect()
        }
    }
}

fn module_docs(s: &Source) -> Vec<(usize, String)> {
    let needs = s.path.starts_with("src/") && !s.place.ends_with("tests");
    let first = s.lines.iter().map(|l| l.raw.trim()).find(|l| !l.is_empty()).unwrap_or("");
    let missing = needs && !first.starts_with("//!");
    missing
        .then(|| (1, "the file does not begin with `//!`; say what it is for".to_owned()))
        .into_iter()
        .collect()
}

/// `scripts/test` runs tests of facts beside each other, few of modules `quiet` at a time, and
/// those of modules `alone` one by one.
fn alone(s: &Source) -> Vec<(usize, String)> {
    if !s.path.starts_with("tests/system/")
        || ["tries.rs", "support.rs"].iter().any(|f| s.path.ends_with(f))
    {
        return vec![];
    }
    let (mut room, mut found) = ("", vec![]);
    for (n, code) in s.all_code() {
        if ["mod alone {", "mod quiet {", "}"].contains(&code) {
            room = code;
        }
        let calls = |words: &[&str]| words.iter().any(|w| has_word(code, w));
        let alone = calls(&["each_mechanism_alone"]) || code.contains("= alone()");
        let quiet = calls(&["each_mechanism_quiet"]) || code.trim_start().starts_with("tries(");
        if !code.trim_start().starts_with("use ")
            && (alone && room != "mod alone {" || quiet && !room.starts_with("mod "))
        {
            found.push((n, "a test that measures stands in `mod alone`, one that looks at times there or in `mod quiet`".to_owned()));
        }
    }
    found
}

/// Nothing in the product speaks of the place where it was made.
fn workplace(s: &Source) -> Vec<(usize, String)> {
    if s.path.ends_with("tests/library/tidy.rs") {
        return vec![];
    }
    let phrases = ["session of the", "this session", "worktree", "/work/", "/tmp/common", "farm-"];
    let found = s
        .lines
        .iter()
        .enumerate()
        .filter_map(|(n, l)| Some((n, phrases.iter().find(|p| l.raw.contains(**p))?)));
    found
        .map(|(n, p)| {
            (
                n + 1,
                format!("`{p}` speaks of the workplace; a reader of the product does not know it"),
            )
        })
        .collect()
}

/// The Rust files in a directory and below it, in the order of their names.
pub fn rust_files(dir: &Path, into: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(dir)
        .expect("a directory of the crate")
        .map(|e| e.expect("an entry").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

fn crate_sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![];
    for dir in ["src", "tests", "benches"] {
        if root.join(dir).is_dir() {
            rust_files(&root.join(dir), &mut files);
        }
    }
    let read = |p: &PathBuf| {
        let name = p.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
        Source::new(&name, &fs::read_to_string(p).expect("a readable source file"))
    };
    files.iter().map(read).collect()
}

#[test]
fn the_house_is_tidy() {
    let sources = crate_sources();
    let mut broken = vec![];
    for s in &sources {
        for (_, rule) in RULES {
            broken.extend(rule(s).into_iter().map(|(n, what)| format!("{}:{n}: {what}", s.path)));
        }
    }
    assert!(broken.is_empty(), "{} broken rules:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn floating_point_decides_only_where_the_crate_doc_says() {
    let sources = crate_sources();
    let listed = float_files(sources.iter().find(|s| s.path == "src/lib.rs").expect("src/lib.rs"));
    assert!(
        listed.len() > 5
            && listed.values().all(|w| ["score", "exact", "model", "report"].contains(&w.as_str())),
        "{listed:?}"
    );
    let gone =
        listed.keys().filter(|f| !sources.iter().any(|s| s.path.strip_prefix("src/") == Some(f)));
    let gone = gone.map(|f| format!("src/lib.rs lists {f}, which is not there"));
    let broken = sources.iter().flat_map(|s| {
        floats(s, &listed).into_iter().map(|(n, what)| format!("{}:{n}: {what}", s.path))
    });
    let all: Vec<String> = gone.chain(broken).collect();
    assert!(all.is_empty(), "{}", all.join("\n"));

    let lib = Source::new(
        "src/lib.rs",
        "//! | `seam/plan/a.rs` | exact: rates\n//! | `seam/plan/b.rs` | report: means",
    );
    let found = |path: &str, text: &str| {
        floats(&Source::new(path, text), &float_files(&lib)).iter().map(|f| f.0).collect::<Vec<_>>()
    };
    assert_eq!(found("src/seam/plan/mod.rs", "//! D\nfn f(x: f64) {}"), [2]);
    assert_eq!(found("src/sim/lib.rs", "//! D\nlet x = 1f64; let y: f32 = 0;"), [2]);
    assert_eq!(found("src/seam/plan/a.rs", "//! D\nfn f(x: f64) { x.ln() }"), [2]);
    assert_eq!(found("src/seam/plan/a.rs", "//! D\nfn f(x: u64) {}"), [1]);
    for (path, text) in [
        ("src/seam/plan/a.rs", "//! D\nfn f(x: f64) { x.sqrt() } // f64::ln"),
        ("src/seam/plan/b.rs", "//! D\nfn f(x: f64) { x.ln() }"),
        ("src/seam/plan/mod.rs", "//! D\n#[cfg(test)]\nfn f(x: f64) {}"),
        ("src/cli/mod.rs", "//! D\nfn f(x: f64) {}"),
    ] {
        assert_eq!(found(path, text), [] as [usize; 0], "{path}: {text}");
    }
}

/// Files or folders side by side that use each other, or of which files below do: (the one, the
/// other), below `src`.
fn sibling_circles(sources: &[Source]) -> Vec<(String, String)> {
    let product: Vec<&Source> = sources
        .iter()
        .filter(|s| s.path.starts_with("src/") && !s.path.contains("/tests"))
        .collect();
    // A folder is a place, too, where its module is one level up.
    let ends = |p: &str| {
        p.match_indices('/')
            .map(|(k, _)| p[..k].to_owned())
            .chain([p.to_owned()])
            .collect::<Vec<_>>()
    };
    let places: BTreeSet<String> = product.iter().flat_map(|s| ends(&s.place)).collect();
    let mut edges = BTreeSet::new();
    for s in product {
        let parts: Vec<&str> = s.place.split('/').collect();
        for depth in 1..parts.len() {
            let (parent, own) = (parts[..depth].join("/"), parts[..=depth].join("/"));
            // The first step is the crate, but for the one at the top.
            let inside =
                if s.place.starts_with("cli/") { &parts[..depth] } else { &parts[1..depth] };
            let full =
                ["crate"].iter().chain(inside).map(|step| format!("{step}::")).collect::<String>();
            let up = "super::".repeat(parts.len() - depth);
            for (_, name) in uses_after(s, &up).into_iter().chain(uses_after(s, &full)) {
                let other = format!("{parent}/{name}");
                if places.contains(&other) && other != own {
                    edges.insert((own.clone(), other));
                }
            }
        }
    }
    edges
        .iter()
        .filter(|(a, b)| a < b && edges.contains(&(b.clone(), a.clone())))
        .cloned()
        .collect()
}

#[test]
fn siblings_do_not_use_each_other_but_for_those_listed() {
    let known: Vec<(String, String)> =
        CIRCLES.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
    let found = sibling_circles(&crate_sources());
    let new: Vec<String> = found
        .iter()
        .filter(|c| !known.contains(c))
        .map(|(a, b)| format!("src/{a} and src/{b} use each other"))
        .collect();
    assert!(new.is_empty(), "{}; move what both need into a file of its own", new.join("\n"));
    let gone: Vec<_> = known.iter().filter(|c| !found.contains(c)).collect();
    assert!(gone.is_empty(), "{gone:?} do not use each other any more; take them off the list");

    let small = [
        Source::new("src/seam/plan/a.rs", "//! D\nuse super::{x::Y, b::B};"),
        Source::new("src/seam/plan/b.rs", "//! D\nfn f() { crate::plan::a::g() }"),
        Source::new("src/seam/plan/c.rs", "//! D\nuse super::a;\n#[cfg(test)]\nuse super::d;"),
        Source::new("src/seam/plan/d/mod.rs", "//! D\nuse super::c;"),
    ];
    assert_eq!(sibling_circles(&small), [("seam/plan/a".to_owned(), "seam/plan/b".to_owned())]);
    let deep = [
        Source::new("src/seam/plan/a/x.rs", "//! D\nuse super::super::b::B;\nuse super::y;"),
        Source::new("src/seam/plan/a/y.rs", "//! D\nuse crate::plan::a::x;"),
        Source::new("src/seam/plan/b/mod.rs", "//! D\nuse super::c;"),
        Source::new("src/seam/plan/b/z/w.rs", "//! D\nuse crate::plan::a::{x, y};"),
        Source::new("src/seam/plan/a/tests.rs", "//! D\nuse crate::plan::c;"),
        Source::new("src/seam/plan/c.rs", "//! D\nuse super::a::x;"),
    ];
    let found = sibling_circles(&deep);
    assert_eq!(
        found,
        [("seam/plan/a", "seam/plan/b"), ("seam/plan/a/x", "seam/plan/a/y")]
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
    );
}

/// Every room and file that the rules name exists.
#[test]
fn every_place_that_a_rule_names_exists() {
    let sources = crate_sources();
    for place in [DECIDING, CLOCK_ROOMS, FILE_ROOMS, OF_THE_KERNEL, &[FLOATS_TOO, OPENER]].concat()
    {
        assert!(
            sources.iter().any(|s| s.path.starts_with("src/") && s.stands_in(&[place])),
            "src/{place} is not there"
        );
    }
}

/// Each rule, one text that breaks it and where, and one that does not.
#[test]
fn every_rule_finds_what_it_is_for() {
    let long = format!("//! D\n{}", "// x\n".repeat(MAX_LINES));
    let wide = format!("//! D\n// {}", "x".repeat(MAX_COLUMNS));
    let note = format!("//! D\n// {}: later", "X".repeat(3));
    let cases: &[(&str, &str, &str, usize, &str)] = &[
        ("length", "src/seam/plan/mod.rs", &long, MAX_LINES + 1, "//! D"),
        ("length", "src/seam/plan/mod.rs", &wide, 2, "//! D"),
        (
            "leftovers",
            "src/seam/plan/mod.rs",
            "//! D\nfn f() { todo!() }",
            2,
            "fn f() { \"todo!\"; } // todo! is a word",
        ),
        ("leftovers", "src/seam/plan/mod.rs", &note, 2, "// all is well"),
        (
            "prints",
            "src/cli/show.rs",
            "fn f() { eprintln!() }",
            1,
            "#[cfg(test)]\nfn f() { println!() }\n",
        ),
        (
            "sleep in tests",
            "tests/a.rs",
            "\nfn t() { std::thread::sleep(d); }",
            2,
            "fn t() { wait(); }",
        ),
        (
            "clock",
            "src/control/lib.rs",
            "let t = std::time::Instant::now();",
            1,
            "#[cfg(test)]\nfn f() { Instant::now(); }\n",
        ),
        (
            "clock",
            "src/jobs/workload/synth.rs",
            "let r = rand::rng();",
            1,
            "let r = ChaCha8Rng::seed_from_u64(seed);",
        ),
        (
            "hash maps",
            "src/circuits/demand/mod.rs",
            "use std::collections::HashMap;",
            1,
            "use std::collections::BTreeMap;",
        ),
        ("module docs", "src/base/ids.rs", "use std::fmt;", 1, "//! Names."),
        ("workplace", "src/base/ids.rs", "// see /work/shared", 1, "// see the paper, section 2"),
        (
            "alone",
            "tests/system/a.rs",
            "mod quiet {\n    let _turn = alone();\n}",
            2,
            "mod quiet {\n    fn t() {\n        tries(1);\n    }\n}",
        ),
        (
            "alone",
            "tests/system/a.rs",
            "\nlet _turn = alone();",
            2,
            "mod alone {\n    fn t() {\n        tries(1);\n    }\n}",
        ),
        (
            "files",
            "src/cli/a.rs",
            "\nlet f = std::fs::File::open(p);",
            2,
            "let f = open::to_read(p); File::create_new(p);",
        ),
        (
            "files",
            "src/run/runtime/a.rs",
            "use std::fs::read_to_string;",
            1,
            "#[cfg(test)]\nfn f() { std::fs::read(p); }\n",
        ),
        ("files", "src/run/config/mod.rs", "std::fs::write(p, t)", 1, "// File::open"),
    ];
    for (name, path, bad, line, good) in cases {
        let rule = RULES.iter().find(|r| r.0 == *name).expect("a rule of that name").1;
        let found: Vec<usize> = rule(&Source::new(path, bad)).into_iter().map(|f| f.0).collect();
        assert_eq!(found, [*line], "{name} on {bad:.80}");
        assert_eq!(rule(&Source::new(path, good)), [], "{name} on {good:.80}");
    }
}

/// The table of crates in docs/architecture.md says what each manifest says.
#[test]
fn the_crates_use_what_the_architecture_shows() {
    let read = |name: &str| {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect(name)
    };
    let document = read("docs/architecture.md");
    let table = document.split("| crate | uses | holds |").nth(1).expect("a table of crates");
    let rows = table.lines().skip(2).map_while(|l| l.strip_prefix("| `")?.split_once("` | "));
    let shown: BTreeMap<&str, BTreeSet<&str>> = rows
        .map(|(name, rest)| {
            (name, rest.split(" | ").next().unwrap_or("").split('`').skip(1).step_by(2).collect())
        })
        .collect();
    let uses = |manifest: &str| -> BTreeSet<String> {
        let section = manifest
            .split("\n[dependencies]\n")
            .nth(1)
            .expect("dependencies")
            .split("\n[")
            .next()
            .unwrap_or("")
            .to_owned();
        section
            .lines()
            .filter_map(|l| {
                Some(l.strip_prefix("heliostat-")?.split(['.', ' ']).next()?.to_owned())
            })
            .collect()
    };
    let members = uses(&read("Cargo.toml"));
    let strings =
        |set: &BTreeSet<&str>| set.iter().map(|s| (*s).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(
        shown
            .keys()
            .copied()
            .filter(|k| *k != "heliostat")
            .map(str::to_owned)
            .collect::<BTreeSet<_>>(),
        members
    );
    for member in members {
        assert_eq!(
            strings(&shown[member.as_str()]),
            uses(&read(&format!("src/{member}/Cargo.toml"))),
            "what `{member}` uses"
        );
    }
}

/// What people cite is the version that they run.
#[test]
fn the_version_is_the_same_everywhere() {
    let read = |name: &str| {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect(name)
    };
    let version = env!("CARGO_PKG_VERSION");
    assert!(
        read("CITATION.cff").lines().any(|l| l == format!("version: {version}")),
        "CITATION.cff has another version than {version}"
    );
    let meta: serde_json::Value =
        serde_json::from_str(&read("codemeta.json")).expect("codemeta.json is JSON");
    assert_eq!(meta["version"], version, "codemeta.json");
    let in_python = format!("__version__ = \"{}\"", version.replace("-rc.", "rc"));
    assert!(read("python/heliostat/__init__.py").lines().any(|l| l == in_python), "{in_python}");
    let notes = format!("\n## [{version}] - 20");
    assert!(read("CHANGELOG.md").contains(&notes), "CHANGELOG.md has no{notes}");
    let program = <heliostat::cli::Cli as clap::CommandFactory>::command();
    assert_eq!(program.get_version(), Some(version), "--version");
    assert_eq!(heliostat::api::openapi::base().info.version, version, "openapi.json");
}

/// Cargo reads the files of every target that the manifest names, whichever one is built: without
/// them an image cannot be built.
#[test]
fn the_image_is_given_what_the_manifest_names() {
    let read =
        |name| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect(name);
    let (manifest, image, context) =
        (read("Cargo.toml"), read("Dockerfile"), read(".dockerignore"));
    let by_table = [
        ("[[bench]]", "benches"),
        ("[[example]]", "examples"),
        ("[[test]]", "tests"),
        ("[package]", "src"),
    ];
    let wanted =
        by_table.into_iter().filter(|(table, _)| manifest.contains(table)).map(|(_, dir)| dir);
    // The shipped files are in the program.
    for dir in wanted.chain(["topologies", "policies", "workloads", "python/heliostat"]) {
        assert!(
            image.lines().any(|l| l == format!("COPY {dir} {dir}")),
            "the build needs {dir}, which the Dockerfile does not copy"
        );
        assert!(context.lines().any(|l| l == format!("!{dir}")), ".dockerignore leaves {dir} out");
    }
}
