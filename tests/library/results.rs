//! The tables of `docs/` that show evaluations are those of the files in `docs/results/`:
//! `scripts/experiments` measures the files, `INSTA_UPDATE=always cargo test --test library
//! results` writes the tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Documents with tables, between `<!-- KIND FILE -->` and `<!-- end -->`.
const DOCUMENTS: [&str; 7] = [
    "docs/experiments.md",
    "docs/experiments/co-scheduler.md",
    "docs/experiments/corral.md",
    "docs/experiments/hit.md",
    "docs/experiments/jobpacker.md",
    "docs/experiments/pushbox.md",
    "docs/fidelity.md",
];
/// The most words of one of them, without the tables that are made here.
const MOST_WORDS: usize = 1500;
/// Verdicts in the order of the counts, and how they are called there.
const VERDICTS: [&str; 11] = [
    "as in the paper",
    "near",
    "same direction",
    "far less",
    "opposite",
    "unclear",
    "differs",
    "cannot tell: beyond the bound",
    "cannot tell",
    "calibrated",
    "not run",
];

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
        .unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// A file of results: what its first lines say, and its rows by column.
struct Results {
    facts: Vec<String>,
    rows: Vec<BTreeMap<String, String>>,
}

impl Results {
    fn of(file: &str) -> Self {
        let text = read(&format!("docs/results/{file}"));
        let facts = text.lines().filter_map(|l| l.strip_prefix("# ")).map(str::to_owned).collect();
        let mut lines = text.lines().filter(|l| !l.starts_with('#')).map(cells);
        let header = lines.next().expect("a header");
        let rows = lines.map(|l| header.iter().cloned().zip(l).collect()).collect();
        Self { facts, rows }
    }

    /// Rows about numbers of the paper.
    fn numbers(&self) -> impl Iterator<Item = &BTreeMap<String, String>> {
        self.rows.iter().filter(|r| !["floor", "least", "part"].contains(&&*r["verdict"]))
    }

    /// How many of the paper's numbers have a verdict.
    fn count(&self, verdict: &str) -> usize {
        self.numbers().filter(|r| r["verdict"] == verdict).count()
    }

    /// A table of all numbers that the paper prints, and how many came out how.
    fn table(&self) -> String {
        let mut out =
            "| setting | figure | paper | ours | 95 % interval | runs | verdict | source |\n|---|---|---|---|---|---|---|---|\n".to_owned();
        for r in self.numbers().filter(|r| !r["paper"].is_empty()) {
            let unit = r["unit"].replace("GB", "GB x switches");
            let (mean, half) = (shown(&r["mean"]), shown(&r["half_interval"]));
            let interval = match (&*r["half_interval"], &*r["runs"]) {
                ("", _) => "-".into(),
                ("0", _) => "same in all runs".into(),
                _ => format!("± {half}"),
            };
            let ours = if mean.is_empty() { "-".into() } else { format!("{mean} {unit}") };
            let (setting, figure, paper, runs) =
                (&r["setting"], &r["figure"], &r["paper"], &r["runs"]);
            let (verdict, source) = (&r["verdict"], &r["source"]);
            writeln!(out, "| {setting} | {figure} | {paper} {unit} | {ours} | {interval} | {runs} | {verdict} | {source} |").unwrap();
        }
        let counts: Vec<String> = VERDICTS
            .iter()
            .map(|v| (v, self.count(v)))
            .filter(|c| c.1 > 0)
            .map(|(v, n)| format!("{n} {v}"))
            .collect();
        out + &format!("\n{}.\n", counts.join("; "))
    }

    /// What no scheduler can be below: a row a setting, of each measure the floor, the least that
    /// was measured, and what that leaves.
    fn floors(&self) -> String {
        let measures = [
            "makespan",
            "mean JCT",
            "median JCT",
            "95th percentile of the JCT",
            "99th percentile of the JCT",
        ];
        let mut out =
            "| setting | makespan | mean JCT | median | 95th percentile | 99th percentile |\n|---|---|---|---|---|---|\n".to_owned();
        let mut settings: Vec<&String> =
            self.rows.iter().filter(|r| r["verdict"] == "floor").map(|r| &r["setting"]).collect();
        settings.dedup();
        for setting in settings {
            let value = |kind: &str, m: &str| {
                let row = self
                    .rows
                    .iter()
                    .find(|r| r["setting"] == *setting && r["figure"] == format!("{kind} {m}"))?;
                row["mean"].parse::<f64>().ok()
            };
            let cell = |m: &&str| match (value("floor", m), value("least", m)) {
                (Some(floor), Some(least)) => format!(
                    "{floor:.1} of {least:.1} s: {:.0} %",
                    100.0 * (1.0 - floor / least.max(1e-9))
                ),
                _ => "-".into(),
            };
            writeln!(
                out,
                "| {setting} | {} |",
                measures.iter().map(cell).collect::<Vec<_>>().join(" | ")
            )
            .unwrap();
        }
        out
    }
}

/// The verdicts of comparisons that are not as their paper has them.
const NOT_AS_PRINTED: [&str; 3] = ["same direction", "far less", "opposite"];

/// The two systems of a comparison, each after its setting.
fn sides<'a>(setting: &'a str, systems: &'a str) -> Option<[(&'a str, &'a str); 2]> {
    let (of, against) = systems.split_once(" vs ")?;
    let (against, there) = match against.strip_suffix(')').and_then(|a| a.rsplit_once(" (")) {
        Some((against, there)) => (against, there),
        None => (against, setting),
    };
    Some([(setting, of), (there, against)])
}

impl Results {
    /// Where the mean completion time goes on both sides of the comparisons of times that are not
    /// as in the paper, and the part in which they differ most: a row a pair of systems.
    fn parts(&self) -> String {
        let of = |(setting, system): (&str, &str)| -> Vec<(&str, f64)> {
            let parts = self.rows.iter().filter(|r| {
                r["verdict"] == "part" && r["setting"] == setting && r["source"] == system
            });
            parts.map(|r| (&r["figure"][5..], r["mean"].parse().expect("a number"))).collect()
        };
        let mut pairs: Vec<((&str, &str), Vec<String>)> = Vec::new();
        for r in self.numbers().filter(|r| NOT_AS_PRINTED.contains(&&*r["verdict"])) {
            let Some((what, systems)) = r["figure"].split_once(" less, ") else { continue };
            if !["JCT", "makespan"].iter().any(|w| what.contains(w)) {
                continue;
            }
            let (pair, row) = ((&*r["setting"], systems), format!("{what}: {}", r["verdict"]));
            match pairs.iter_mut().find(|p| p.0 == pair) {
                Some(p) => p.1.push(row),
                None => pairs.push((pair, vec![row])),
            }
        }
        let mut out = String::new();
        for ((setting, systems), rows) in pairs {
            let Some([a, b]) = sides(setting, systems) else { continue };
            let both: Vec<_> = of(a).into_iter().zip(of(b)).collect();
            let Some(most) = both.iter().max_by(|x, y| {
                let gap = |p: &((&str, f64), (&str, f64))| (p.0.1 - p.1.1).abs();
                gap(x).total_cmp(&gap(y))
            }) else {
                continue;
            };
            if out.is_empty() {
                let names: Vec<&str> = both.iter().map(|p| p.0.0).collect();
                out = format!(
                    "| setting | systems | rows | {} | differ most |\n|---|---|---|{}---|\n",
                    names.join(" | "),
                    "---|".repeat(names.len())
                );
            }
            let cells: Vec<String> =
                both.iter().map(|p| format!("{:.1} / {:.1}", p.0.1, p.1.1)).collect();
            let (rows, cells) = (rows.join("; "), cells.join(" | "));
            writeln!(out, "| {setting} | {systems} | {rows} | {cells} | {} |", most.0.0).unwrap();
        }
        out
    }
}

/// The cells of a line, of which those with a comma or a quote stand in quotes.
fn cells(line: &str) -> Vec<String> {
    let (mut all, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(String::new()),
            _ => all.last_mut().expect("a cell").push(c),
        }
    }
    all
}

/// A number for people: a place after the point, two where it is small.
fn shown(number: &str) -> String {
    match number.parse::<f64>() {
        Ok(v) if v.abs() < 1.0 => format!("{v:.2}"),
        Ok(v) => format!("{v:.1}"),
        Err(_) => String::new(),
    }
}

/// How many numbers of each of the papers came out how.
fn counts(files: &[&str]) -> String {
    let all: Vec<Results> = files.iter().map(|f| Results::of(f)).collect();
    let names: Vec<String> =
        all.iter().map(|r| r.facts[0].split(':').next().unwrap_or_default().to_owned()).collect();
    let mut out =
        format!("| verdict | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(all.len()));
    for verdict in VERDICTS {
        let of: Vec<String> = all.iter().map(|r| r.count(verdict).to_string()).collect();
        if of.iter().any(|n| n != "0") {
            writeln!(out, "| {verdict} | {} |", of.join(" | ")).unwrap();
        }
    }
    out
}

/// What a block of a document shows.
fn block(kind: &str, files: &[&str]) -> String {
    match kind {
        "numbers" => Results::of(files[0]).table(),
        "floors" => Results::of(files[0]).floors(),
        "parts" => Results::of(files[0]).parts(),
        "counts" => counts(files),
        "runs" => {
            Results::of(files[0])
                .facts
                .iter()
                .map(|f| format!("# {f}\n"))
                .fold("```text\n".to_owned(), |all, l| all + &l)
                + "```\n"
        }
        _ => panic!("`{kind}`; allowed: numbers, floors, parts, counts, runs"),
    }
}

/// A document with the tables of today.
fn drawn(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("<!-- results ") {
        let (what, after) = after.split_once(" -->\n").expect("the sign of a table");
        let (_, behind) = after.split_once("<!-- end -->\n").expect("the end of a table");
        let mut words = what.split(' ');
        let kind = words.next().expect("a kind of table");
        let table = block(kind, &words.collect::<Vec<_>>());
        write!(out, "{before}<!-- results {what} -->\n{table}\n<!-- end -->\n").unwrap();
        rest = behind;
    }
    out + rest
}

/// The words of a document, without the tables that are made here, blocks of code, and names in
/// backticks.
fn words_written(text: &str) -> usize {
    let (mut inside, mut words) = (false, 0);
    for line in text.lines() {
        let (begins, ends) = (line.starts_with("<!-- results "), line == "<!-- end -->");
        if begins || ends || line.starts_with("```") {
            inside = !inside;
        } else if !inside {
            let is_word = |w: &&str| w.contains(char::is_alphanumeric);
            let prose = line.split('`').step_by(2).flat_map(str::split_whitespace);
            words += prose.filter(is_word).count();
        }
    }
    words
}

#[test]
fn tables_are_those_of_the_results() {
    let mut shown = 0;
    for path in DOCUMENTS {
        let text = read(path);
        shown += text.matches("<!-- results ").count();
        let words = words_written(&text);
        assert!(words <= MOST_WORDS, "{path}: {words} words, {MOST_WORDS} are allowed");
        let now = drawn(&text);
        if std::env::var("INSTA_UPDATE").is_ok_and(|v| v == "always") {
            fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(path), &now)
                .expect("it can be written");
        } else {
            assert!(
                text == now,
                "{path}: a table is not that of its file; INSTA_UPDATE=always cargo test --test library results"
            );
        }
    }
    assert!(shown >= 8, "{shown} tables");
}

#[test]
fn every_file_of_results_says_commit_machine_and_command() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/results");
    let (mut files, mut missing) = (0, vec![]);
    for entry in fs::read_dir(folder).expect("a folder") {
        let file = entry.expect("an entry").file_name().into_string().expect("a name in UTF-8");
        let facts = Results::of(&file).facts;
        let says = |sign: &str| facts.iter().any(|f| f.starts_with(sign) && f.len() > sign.len());
        files += 1;
        for signs in
            [&["machine: "][..], &["command: "], &["recorded by commit: ", "printed until commit "]]
        {
            if !signs.iter().any(|sign| says(sign)) {
                missing.push(format!("docs/results/{file}: no line `# {}...`", signs[0]));
            }
        }
    }
    assert!(files > 20 && missing.is_empty(), "{files} files\n{}", missing.join("\n"));
}

#[test]
fn results_say_how_they_were_measured() {
    for paper in ["jobpacker", "co-scheduler", "corral", "hit", "pushbox"] {
        let r = Results::of(&format!("experiment-{paper}.csv"));
        for fact in ["machine: ", "command: heliostat experiment ", "recorded by commit: "] {
            assert!(
                r.facts.iter().any(|f| f.starts_with(fact) && f.len() > fact.len()),
                "{paper}: {fact}"
            );
        }
        assert!(
            r.numbers().all(|n| VERDICTS.contains(&&*n["verdict"]) || n["verdict"] == "-"),
            "{paper}: verdicts"
        );
        assert!(r.numbers().count() > 20, "{paper}");
        // A setting's numbers rest on one number of runs.
        assert!(
            r.numbers().all(|n| n["runs"] != "0" || n["verdict"] == "not run"),
            "{paper}: runs"
        );
    }
}

#[test]
fn both_systems_of_a_comparison_are_found() {
    let of = |systems| sides("batch", systems);
    assert_eq!(
        of("JobPacker, B = 1 vs F-EPS"),
        Some([("batch", "JobPacker, B = 1"), ("batch", "F-EPS")])
    );
    assert_eq!(of("Hit vs Hit (VL2)"), Some([("batch", "Hit"), ("VL2", "Hit")]));
    assert_eq!(of("JobPacker"), None);
}

#[test]
fn cells_with_commas_are_read() {
    assert_eq!(cells("a,\"b, c\",,d"), ["a", "b, c", "", "d"]);
    assert_eq!(["12.345", "0.456", "", "-3"].map(shown), ["12.3", "0.46", "", "-3.0"]);
}
