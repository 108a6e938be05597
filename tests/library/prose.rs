//! Plain English: the documents and the comments of shipped files have short sentences, and none of
//! the turns that CONTRIBUTING.md lists.

use std::fs;
use std::path::{Path, PathBuf};

/// The most words of a sentence.
const MOST_WORDS: usize = 35;
/// The most lines of README.md: for whom, why and how, in a minute.
const README_LINES: usize = 110;
/// The most words of a page of `docs`, beside its code blocks and tables.
const PAGE_WORDS: usize = 1500;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// A run of prose and the line at which it begins: a paragraph, an item of a list, or a cell of a
/// table.
type Run = (usize, String);

/// What follows the sign of an item in a list.
fn item(line: &str) -> Option<&str> {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = (digits.len() < line.len()).then(|| digits.strip_prefix(". ")).flatten();
    line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).or(numbered)
}

/// The prose of Markdown, without code blocks, headings and HTML tags that stand alone.
fn markdown(text: &str) -> Vec<Run> {
    let (mut runs, mut open, mut fenced): (Vec<Run>, Option<Run>, bool) = (vec![], None, false);
    for (k, line) in text.lines().enumerate() {
        let line = line.trim();
        let begins = |text: &str| Some((k + 1, text.to_owned()));
        if line.starts_with("```") {
            fenced = !fenced;
            runs.extend(open.take());
        }
        if fenced || line.starts_with("```") {
            continue;
        }
        if line.is_empty() || line.starts_with(['#', '<', '|']) {
            runs.extend(open.take());
            let cells =
                line.strip_prefix('|').map(|row| row.replace("\\|", "/")).unwrap_or_default();
            runs.extend(cells.split('|').filter(|c| !c.trim().is_empty()).filter_map(begins));
        } else if let Some(rest) = item(line) {
            runs.extend(open.take());
            open = begins(rest);
        } else if let Some((_, so_far)) = &mut open {
            so_far.push(' ');
            so_far.push_str(line);
        } else {
            open = begins(line);
        }
    }
    runs.extend(open);
    runs
}

/// The comments of YAML, as far as they have lines of their own.
fn comments(text: &str) -> Vec<Run> {
    let lines = text.lines().map(|l| l.trim().strip_prefix('#').map_or("", str::trim));
    markdown(&lines.collect::<Vec<_>>().join("\n"))
}

/// A run without what stands between two signs, for which a word stands.
fn without(run: &str, open: &str, close: &str, word: &str) -> String {
    let mut rest = run;
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once(open) {
        let Some((_, behind)) = after.split_once(close) else { break };
        kept.push_str(before);
        kept.push_str(word);
        rest = behind;
    }
    kept + rest
}

/// The sentences of a run; code is one word, and the targets of links are none.
fn sentences(run: &str) -> Vec<String> {
    let run = without(&without(&without(run, "`", "`", "X"), "](", ")", "]"), "<http", ">", "X");
    let (mut found, mut words) = (vec![], vec![]);
    let mut all = run.split_whitespace().peekable();
    while let Some(word) = all.next() {
        words.push(word);
        let ends = word.trim_end_matches(['"', ')', '*', ']']).ends_with(['.', '!', '?']);
        let begins = all.peek().is_none_or(|next| {
            next.starts_with(|c: char| {
                c.is_uppercase() || c.is_ascii_digit() || "\"(*[".contains(c)
            })
        });
        if ends && begins {
            found.push(std::mem::take(&mut words).join(" "));
        }
    }
    found.extend((!words.is_empty()).then(|| words.join(" ")));
    found
}

fn words(sentence: &str) -> usize {
    sentence.split(' ').filter(|w| w.chars().any(char::is_alphanumeric)).count()
}

/// Whether the words of a turn stand in a sentence, one behind the other; `...` stands for up to
/// eight words.
fn has_turn(sentence: &str, turn: &str) -> bool {
    let plain = |w: &str| w.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let said: Vec<String> = sentence.split(' ').map(plain).collect();
    let stands = |parts: &[&str], at: usize| {
        parts.iter().enumerate().all(|(k, p)| said.get(at + k).is_some_and(|w| w == p))
    };
    let as_follows = |at: usize| said.get(at + 1).is_some_and(|w| w == "as");
    let (first, second) = turn.split_once(" ... ").unwrap_or((turn, ""));
    let (first, second): (Vec<&str>, Vec<&str>) =
        (first.split(' ').collect(), second.split_whitespace().collect());
    let behind = |at: usize| (at + first.len()..=at + first.len() + 8).any(|k| stands(&second, k));
    (0..said.len()).any(|at| {
        stands(&first, at)
            && (second.is_empty() || behind(at))
            && !(turn == "such" && as_follows(at))
    })
}

/// The turns that the table in CONTRIBUTING.md lists.
fn turns() -> Vec<String> {
    let document = text("CONTRIBUTING.md");
    let table = document.split("| not | but |").nth(1).expect("a table of turns");
    let rows = table.lines().skip(2).map_while(|l| l.strip_prefix("| ")?.split(" | ").next());
    rows.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// The files with an ending in a folder and below it.
fn files(folder: &str, ending: &str, into: &mut Vec<String>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(root().join(folder))
        .expect("a folder")
        .map(|e| e.expect("an entry").path())
        .collect();
    entries.sort();
    for path in entries {
        let name =
            path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
        if path.is_dir() && !folder.is_empty() {
            files(&name, ending, into);
        } else if name.ends_with(ending) {
            into.push(name);
        }
    }
}

fn faults(path: &str, runs: Vec<Run>, turns: &[String]) -> Vec<String> {
    let mut found = vec![];
    for (line, sentence) in
        runs.iter().flat_map(|(line, run)| sentences(run).into_iter().map(move |s| (line, s)))
    {
        let count = words(&sentence);
        if count > MOST_WORDS {
            found.push(format!("{path}:{line}: a sentence of {count} words, {MOST_WORDS} are allowed: {sentence:.80}..."));
        }
        let said = turns.iter().filter(|t| has_turn(&sentence, t));
        found
            .extend(said.map(|t| format!("{path}:{line}: `{t}`, see CONTRIBUTING.md: {sentence}")));
    }
    found
}

#[test]
fn documents_and_shipped_files_are_in_plain_english() {
    let turns = turns();
    assert!(turns.len() > 20, "{turns:?}");
    let (mut documents, mut shipped) = (vec![], vec![]);
    ["", "docs", ".github", "src/circuits"]
        .into_iter()
        .filter(|f| root().join(f).is_dir())
        .for_each(|f| files(f, ".md", &mut documents));
    ["topologies", "policies", "workloads"]
        .into_iter()
        .for_each(|f| files(f, ".yaml", &mut shipped));
    let prose = documents
        .iter()
        .map(|d| (d, markdown(&text(d))))
        .chain(shipped.iter().map(|s| (s, comments(&text(s)))));
    let all: Vec<String> = prose.flat_map(|(path, runs)| faults(path, runs, &turns)).collect();
    assert!(all.is_empty(), "{} faults:\n{}", all.len(), all.join("\n"));
}

/// What `--help` says of a command, its options and their values, and of the commands below it.
fn help(command: &clap::Command) -> Vec<(String, String)> {
    let name = command.get_name().to_owned();
    let texts = |short: Option<&clap::builder::StyledStr>,
                 long: Option<&clap::builder::StyledStr>| {
        [short, long].into_iter().flatten().map(ToString::to_string).collect::<Vec<_>>()
    };
    let mut all = texts(command.get_about(), command.get_long_about());
    for arg in command.get_arguments() {
        all.extend(texts(arg.get_help(), arg.get_long_help()));
        let values = arg.get_possible_values();
        all.extend(values.iter().flat_map(|v| texts(v.get_help(), None)));
    }
    let own = all.into_iter().map(|text| (name.clone(), text));
    let below = command.get_subcommands().flat_map(help);
    own.chain(below.map(|(below, text)| (format!("{name} {below}"), text))).collect()
}

/// The texts between quotes in a file, without those of its tests.
fn literals(code: &str) -> Vec<String> {
    let code = code.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().map(|l| if l.trim_start().starts_with("//") { "" } else { l });
    let code = lines.collect::<Vec<_>>().join("\n").replace("'\"'", "").replace(r"\\", "");
    let code = code.replace("\\\"", "'");
    code.split('"')
        .skip(1)
        .step_by(2)
        .map(|text| without(&text.replace("\\n", " "), "{", "}", "X"))
        .collect()
}

#[test]
fn help_and_messages_have_none_of_the_turns() {
    use clap::CommandFactory;
    let turns = turns();
    let mut all = vec![];
    for (command, text) in help(&heliostat::cli::Cli::command()) {
        all.extend(faults(&format!("{command} --help"), markdown(&text), &turns));
    }
    let mut sources = vec![];
    files("src", ".rs", &mut sources);
    for path in sources.iter().filter(|p| !p.contains("tests")) {
        // `no such file` is what every program says.
        let said =
            literals(&text(path)).into_iter().map(|t| t.to_lowercase().replace("no such", "no"));
        let said: Vec<Run> = said.filter(|t| t.contains(' ')).map(|t| (1, t)).collect();
        let turned = |s: &String| turns.iter().any(|t| has_turn(s, t));
        let sentences = said.iter().flat_map(|(_, run)| sentences(run)).filter(turned);
        all.extend(sentences.map(|s| format!("{path}: {s}")));
    }
    assert!(all.is_empty(), "{} faults:\n{}", all.len(), all.join("\n"));
}

#[test]
fn texts_in_a_file_are_found() {
    let code = "// \"not this\"\nlet a = \"one \\\"two\\\"\"; b('\"', \"three\\nfour\");\n#[cfg(test)]\nmod tests { \"nor this\" }";
    assert_eq!(literals(code), ["one 'two'", "three four"]);
}

#[test]
fn the_readme_is_read_in_a_minute() {
    let lines = text("README.md").lines().count();
    assert!(
        lines <= README_LINES,
        "README.md has {lines} lines, {README_LINES} are allowed; move details to docs"
    );
}

/// The words of a page beside its code blocks and tables.
fn page_words(text: &str) -> usize {
    let mut fenced = false;
    let prose = text.lines().map(str::trim).filter(|line| {
        let fence = line.starts_with("```");
        fenced ^= fence;
        !(fenced || fence || line.starts_with('|'))
    });
    prose.flat_map(str::split_whitespace).count()
}

#[test]
fn a_page_of_the_documents_is_read_in_one_sitting() {
    let mut pages = vec![];
    files("docs", ".md", &mut pages);
    let long: Vec<String> = pages
        .iter()
        .map(|page| (page, page_words(&text(page))))
        .filter(|(_, words)| *words > PAGE_WORDS)
        .map(|(page, words)| format!("{page}: {words} words"))
        .collect();
    assert!(
        pages.len() > 50 && long.is_empty(),
        "{PAGE_WORDS} words are allowed beside code blocks and tables; make two pages of one, or say \
         less: {long:?}"
    );
}

#[test]
fn words_of_a_page_are_those_of_its_prose() {
    let page = "# A page\n\nTwo words.\n\n| not | these |\n|---|---|\n\n```sh\nnor these\n```\n- one `more`\n";
    assert_eq!(page_words(page), 8);
}

#[test]
fn sentences_and_turns_are_found() {
    let turns: Vec<String> =
        ["anew", "hold ... against", "such", "as of"].map(str::to_owned).to_vec();
    let found = |text: &str| {
        faults("a.md", markdown(text), &turns)
            .into_iter()
            .map(|f| f[..7].to_owned())
            .collect::<Vec<_>>()
    };
    let long = format!("{}word", "word ".repeat(MOST_WORDS));
    assert_eq!(found(&format!("# T\n\nA b.\n{long}. C.")), ["a.md:3:"]);
    assert_eq!(found(&format!("| {long} | `x\\|y` |")), ["a.md:1:"]);
    assert_eq!(found("It is made\nanew. We hold one thing\nagainst another."), ["a.md:1:"; 2]);
    assert_eq!(found("1. As\n   of now, and\n- such a thing."), ["a.md:1:", "a.md:3:"]);
    let fine = [
        format!("```text\nanew {long}\n```\n# anew {long}\n"),
        format!("`anew {long}` and [a link](anew-as-of.md), such as this: as a rule of it."),
        format!("{}end. {}end.", "word ".repeat(MOST_WORDS - 1), "Word ".repeat(MOST_WORDS - 1)),
        "Hold it. That stands against it.".to_owned(),
    ];
    for text in fine {
        assert_eq!(found(&text), [] as [String; 0], "{text}");
    }
    assert_eq!(
        comments("# One\n# run.\nkey: value # anew\n# Two.\n"),
        [(1, "One run.".to_owned()), (4, "Two.".to_owned())]
    );
}
