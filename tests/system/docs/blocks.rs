//! The shell blocks of the documents, as readers run them.
//!
//! A block that begins with three backticks and `sh` runs; further words say what it needs (`root`,
//! or a program), or that it `stays`: it has a terminal of its own, and Ctrl-C comes at the end of
//! its section. `sh no-run: why` does not run. The blocks of one document run in order in one fresh
//! directory. What follows a block that `prints` is a `text` block: what it prints in a directory
//! of its own, in which a line `...` is any lines. One that `prints here` runs in order with the
//! others as well.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use heliostat::kernel::sys;

use super::{documents, file, text};
use crate::skip::skip;

/// How long all blocks of a document may take on a busy machine.
const DEADLINE: &str = "600";
/// The folders of the repository that the blocks use.
const AT_HAND: &[&str] = &["topologies", "policies", "workloads", "mininet", "python", "spark"];

/// Networks, ports and notes for a document alone: nothing else on the machine is in its way, and
/// it leaves nothing behind.
const ALONE: &[&str] = &["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];

/// The programs that a block may need; where one is missing its document is skipped.
const PROGRAMS: &[&str] = &["curl", "iperf3", "mn", "ping", "python3"];

/// A shell block.
pub(super) struct Block {
    /// The line of its first backticks.
    line: usize,
    /// The number of headings above it.
    section: usize,
    /// The words after `sh`.
    words: String,
    pub(super) commands: String,
    /// The text block behind one that `prints`.
    output: Option<String>,
}

impl Block {
    fn why_not(&self) -> Option<&str> {
        self.words.strip_prefix("no-run:").map(str::trim)
    }

    fn needs(&self, word: &str) -> bool {
        self.words.split(' ').any(|w| w == word)
    }

    /// Programs that it needs.
    fn programs(&self) -> impl Iterator<Item = &str> {
        self.words.split_whitespace().filter(|w| !["root", "stays", "prints", "here"].contains(w))
    }

    fn file_name(&self) -> String {
        format!("{}{}", self.line, if self.needs("stays") { ".stays" } else { "" })
    }
}

pub(super) fn blocks(document: &str) -> Vec<Block> {
    let (mut found, mut section) = (Vec::new(), 0);
    let mut open: Option<Option<Block>> = None;
    let mut printed: Option<String> = None;
    for (k, line) in text(document).lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut open, fence) {
            (None, Some(info)) => {
                let shell = info == "sh" || info.starts_with("sh ");
                let block = || Block {
                    line: k + 1,
                    section,
                    words: info[2..].trim().into(),
                    commands: String::new(),
                    output: None,
                };
                open = Some(shell.then(block));
                let wanted =
                    found.last().is_some_and(|b: &Block| b.needs("prints") && b.output.is_none());
                printed = (info == "text" && wanted).then(String::new);
            }
            (Some(_), Some(_)) => {
                if let (Some(text), Some(block)) = (printed.take(), found.last_mut()) {
                    block.output = Some(text);
                }
                found.extend(open.take().flatten());
            }
            (Some(Some(block)), None) => {
                let _ = writeln!(block.commands, "{line}");
            }
            (None, None) => section += usize::from(line.starts_with('#')),
            (Some(None), None) => {
                if let Some(text) = &mut printed {
                    let _ = writeln!(text, "{line}");
                }
            }
        }
    }
    found
}

/// What run.sh is to do: the blocks, and an `end` after each section with one that stays.
fn steps(blocks: &[&Block]) -> Vec<String> {
    let ends =
        |section: &[&Block]| section.iter().any(|b| b.needs("stays")).then(|| "end".to_owned());
    let of_section = |section: &[&Block]| {
        section.iter().map(|b| b.file_name()).chain(ends(section)).collect::<Vec<_>>()
    };
    blocks.chunk_by(|a, b| a.section == b.section).flat_map(of_section).collect()
}

/// Whether a program is in the search path.
pub(super) fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// A directory with the shipped files, the built binary, and a `sudo` for those who are root
/// already.
pub(super) fn prepare(at: &Path, blocks: &[&Block]) {
    for folder in AT_HAND {
        symlink(file(folder), at.join(folder)).expect("a link");
    }
    let (bin, own) = (at.join(".bin"), at.join(".blocks"));
    fs::create_dir(&bin).and_then(|()| fs::create_dir(&own)).expect("a directory");
    symlink(env!("CARGO_BIN_EXE_heliostat"), bin.join("heliostat")).expect("a link");
    fs::write(bin.join("sudo"), "#!/bin/sh\nexec \"$@\"\n").expect("a file");
    fs::set_permissions(bin.join("sudo"), fs::Permissions::from_mode(0o755)).expect("a mode");
    for b in blocks {
        fs::write(own.join(b.file_name()), &b.commands).expect("a file");
    }
}

/// Runs the blocks of a document.
fn run(document: &str) {
    let all = blocks(document);
    // Those that print tables have a test of their own.
    let runs = |b: &&Block| b.why_not().is_none() && (!b.needs("prints") || b.needs("here"));
    let chosen: Vec<&Block> = all.iter().filter(runs).collect();
    let root = chosen.iter().any(|b| b.needs("root"));
    if root && !(sys::is_root() && sys::in_first_user_namespace()) {
        return skip(document, "its blocks need root");
    }
    if root && !Command::new("unshare").args(ALONE).arg("true").status().is_ok_and(|s| s.success())
    {
        return skip(document, "its blocks need namespaces of their own");
    }
    if let Some(program) = chosen.iter().flat_map(|b| b.programs()).find(|p| !is_there(p)) {
        return println!("SKIP {document}: {program} is not installed");
    }
    let scratch = tempfile::tempdir().expect("a directory");
    prepare(scratch.path(), &chosen);
    let path = format!(
        "{}:{}",
        scratch.path().join(".bin").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut c = Command::new("timeout");
    c.args(["--kill-after=5", DEADLINE]);
    if root {
        c.arg("unshare").args(ALONE);
    }
    c.arg("bash").arg(file("tests/system/docs/run.sh")).args(steps(&chosen));
    c.current_dir(scratch.path())
        .env("PATH", path)
        .env("ALONE", if root { "1" } else { "0" })
        .stdin(Stdio::null());
    c.env_remove("HELIOSTAT_LOG").env_remove("HELIOSTAT_CONTROLLER").env_remove("HELIOSTAT_TOKEN");
    let o = c.output().expect("bash and timeout");
    let said =
        format!("{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr));
    assert!(
        o.status.success(),
        "{document}: {} (124 is after {DEADLINE} s) in the last block of these, by line:\n{said}",
        o.status
    );
}

/// Whether a text is what is expected, where a line `...` stands for any lines.
fn is_printed(text: &str, expected: &str) -> bool {
    let marked = format!("\n{expected}");
    let mut parts = marked.split("\n...\n").peekable();
    let whole = format!("\n{text}");
    let Some(mut rest) = parts.next().and_then(|first| whole.strip_prefix(first)) else {
        return false;
    };
    let mut open = false;
    while let Some(part) = parts.next() {
        open = part.is_empty() && parts.peek().is_none();
        // What follows begins a line.
        let part = if part.is_empty() { String::new() } else { format!("\n{part}") };
        let Some(at) = rest.find(&part) else { return false };
        rest = &rest[at + part.len()..];
    }
    open || rest.trim_end().is_empty()
}

/// The tables of the documents that are the same on every machine: those of simulations.
#[test]
fn printed_tables_are_what_the_program_prints() {
    let (mut seen, mut wrong) = (0, String::new());
    for document in documents() {
        for b in blocks(&document).iter().filter(|b| b.needs("prints")) {
            let expected = b.output.as_ref().unwrap_or_else(|| {
                panic!("{document}:{}: no text block behind one that prints", b.line)
            });
            let scratch = tempfile::tempdir().expect("a directory");
            prepare(scratch.path(), &[b]);
            let path = format!(
                "{}:{}",
                scratch.path().join(".bin").display(),
                std::env::var("PATH").unwrap_or_default()
            );
            let mut c = Command::new("bash");
            c.args(["-euo", "pipefail", "-c", &b.commands])
                .current_dir(scratch.path())
                .env("PATH", path)
                .stdin(Stdio::null());
            let o = c.output().expect("bash");
            let (out, err) =
                (String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr));
            assert!(o.status.success(), "{document}:{}: {err}", b.line);
            seen += 1;
            if !is_printed(&out, expected) {
                let _ = writeln!(wrong, "{document}:{} prints:\n{out}", b.line);
            }
        }
    }
    assert!(wrong.is_empty() && seen > 0, "{wrong}");
}

#[test]
fn dots_stand_for_any_lines() {
    let yes = [
        ("a\nb\n", "a\nb\n"),
        ("a\nx\ny\nb\n", "a\n...\nb\n"),
        ("a\nb\n", "a\n...\n"),
        ("x\na\n", "...\na\n"),
        ("a\nb\n", "a\n...\nb\n"),
    ];
    let no = [
        ("a\nb\n", "a\n"),
        ("a\nb\n", "b\n"),
        ("a\nc\n", "a\n...\nb\n"),
        ("a\nbc\n", "a\n...\nb\n"),
        ("", "a\n"),
    ];
    assert!(yes.iter().all(|(text, expected)| is_printed(text, expected)));
    assert!(no.iter().all(|(text, expected)| !is_printed(text, expected)));
}

/// One test a document, so that they run at once.
macro_rules! documents_with_blocks {
    ($($name:ident => $path:literal),* $(,)?) => {
        $(#[test] fn $name() { run($path); })*
        const LISTED: &[&str] = &[$($path),*];
    };
}

documents_with_blocks! {
    artifact => "ARTIFACT.md",
    readme => "README.md",
    alerts => "docs/alerts.md",
    api => "docs/api.md",
    capture => "docs/capture.md",
    circuits => "docs/circuits.md",
    class => "docs/class.md",
    co_decided => "docs/co-decided.md",
    commands => "docs/commands.md",
    experiments => "docs/experiments.md",
    external => "docs/external.md",
    faq => "docs/faq.md",
    faults => "docs/faults.md",
    first_circuit => "docs/first-circuit.md",
    hit => "docs/hit.md",
    joint => "docs/joint.md",
    lab_1 => "docs/labs/1-circuits.md",
    lab_8 => "docs/labs/8-decide.md",
    lab_9 => "docs/labs/9-mirror.md",
    mininet => "docs/mininet.md",
    page => "docs/page.md",
    placement => "docs/placement.md",
    plots => "docs/plots.md",
    post_coflows => "docs/post-coflows.md",
    pushbox => "docs/pushbox.md",
    recording => "docs/recording.md",
    scheduler => "docs/scheduler.md",
    simulation => "docs/simulation.md",
    spark => "docs/spark.md",
    study => "docs/study.md",
    sweeps => "docs/sweeps.md",
    switches => "docs/switches.md",
    tutorial => "docs/tutorial.md",
    workloads => "docs/workloads.md",
}

#[test]
fn every_document_with_blocks_is_run() {
    let runs = |d: &String| blocks(d).iter().any(|b| b.why_not().is_none() && !b.needs("prints"));
    let with_blocks: Vec<String> = documents().into_iter().filter(runs).collect();
    let mut listed: Vec<&str> = LISTED.to_vec();
    listed.sort_unstable();
    assert_eq!(with_blocks, listed, "documents with blocks that run, and the list above");
}

#[test]
fn blocks_that_do_not_run_say_why() {
    for d in documents() {
        for b in blocks(&d) {
            assert!(b.why_not() != Some(""), "{d}:{}: no-run without a reason", b.line);
            let odd = b.words.contains("no-run") && b.why_not().is_none();
            assert!(!odd, "{d}:{}: write `sh no-run: why`", b.line);
            let unknown = b.programs().find(|p| b.why_not().is_none() && !PROGRAMS.contains(p));
            assert_eq!(unknown, None, "{d}:{}: a word that is no program of {PROGRAMS:?}", b.line);
        }
    }
}
