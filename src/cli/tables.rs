//! The tables that several subcommands print: rows of text once, then as a table or as CSV.

use std::fmt::Write as _;

use comfy_table::{Attribute, Cell, CellAlignment, LineStyle, Table, presets};
use serde::Serialize;

use super::DocumentOutput;
use super::log::no_color;
use crate::coflows::CoflowRecord;
use crate::runtime::report::form::Document;
use crate::text;
use crate::units::{Bytes, Span};

/// Columns whose cells are text in JSON, even those that look like numbers: coflows of traces are
/// called so.
const WORDS: &[&str] = &[
    "id",
    "kind",
    "name",
    "about",
    "coflow",
    "job",
    "topology",
    "policy",
    "placement",
    "workload",
    "jobs",
    "class",
    "state",
    "error",
];

/// A table: a header and rows of as many cells. The first column is aligned to the left, the others
/// to the right.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TextTable {
    /// Names of the columns.
    pub header: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

/// Tables of many columns are not wider, where that can be.
pub const WIDEST: usize = 100;

/// Columns of the widest line.
fn width(text: &str) -> usize {
    text.lines().map(|l| l.chars().count()).max().unwrap_or(0)
}

/// A paragraph in lines of at most [`WIDEST`] columns, those after the first indented by `indent`.
pub fn wrapped(text: &str, indent: usize) -> String {
    let begin = text.len() - text.trim_start().len();
    let mut lines = vec![" ".repeat(begin)];
    for word in text.split_whitespace() {
        let long = |line: &String| {
            !line.trim().is_empty() && line.chars().count() + 1 + word.chars().count() > WIDEST
        };
        if lines.last().is_some_and(long) {
            lines.push(" ".repeat(indent));
        }
        let Some(line) = lines.last_mut() else { continue };
        if !line.trim().is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.join("\n")
}

impl TextTable {
    /// No rows yet.
    pub fn new<S: AsRef<str>>(header: &[S]) -> Self {
        Self { header: header.iter().map(|h| h.as_ref().to_owned()).collect(), rows: Vec::new() }
    }

    /// For people, without a line break at the end.
    pub fn table(&self) -> String {
        let mut t = Table::new();
        if no_color() {
            t.force_no_tty();
        }
        t.load_style(presets::NOTHING.header_separator(LineStyle::none().fill('─').junction('─')));
        // A cell is on one line, whatever a file or a request calls its coflow.
        t.set_header(
            self.header.iter().map(|h| Cell::new(text::escaped(h)).add_attribute(Attribute::Bold)),
        );
        t.add_rows(
            self.rows
                .iter()
                .map(|row| row.iter().map(|cell| text::escaped(cell)).collect::<Vec<_>>()),
        );
        for column in t.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        t.trim_fmt()
    }

    /// As tables one below another, none wider than [`WIDEST`] if that can be. Each begins with the
    /// first columns, of which there are `first`, and has as many of the others as fit. Columns
    /// stay together in groups of `step`.
    pub fn folded(&self, first: usize, step: usize) -> String {
        let (mut tables, mut from) = (vec![], first);
        while from < self.header.len() || tables.is_empty() {
            let part = |to: usize| self.part(first, from..to.min(self.header.len())).table();
            let mut to = from + step;
            while to < self.header.len() && width(&part(to + step)) <= WIDEST {
                to += step;
            }
            tables.push(part(to));
            from = to;
        }
        tables.join("\n\n")
    }

    /// The first columns, and those of a range.
    fn part(&self, first: usize, others: std::ops::Range<usize>) -> Self {
        let of =
            |row: &Vec<String>| row[..first].iter().chain(&row[others.clone()]).cloned().collect();
        Self { header: of(&self.header), rows: self.rows.iter().map(of).collect() }
    }

    /// As a table of Markdown, without a line break at the end.
    pub fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
        let plain = |cell: &String| text::escaped(cell).replace('|', "\\|");
        let header = line(self.header.clone());
        let rule = format!("|{}", "---|".repeat(self.header.len()));
        let rows = self.rows.iter().map(|r| line(r.iter().map(plain).collect()));
        [header, rule].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
    }

    /// As a table of LaTeX, without a line break at the end.
    pub fn latex(&self) -> String {
        let sign = |c: char| match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => format!("\\{c}"),
            '\\' => "\\textbackslash{}".into(),
            '~' => "\\textasciitilde{}".into(),
            '^' => "\\textasciicircum{}".into(),
            '±' => "$\\pm$".into(),
            c => c.to_string(),
        };
        let plain = |cell: &String| text::escaped(cell).chars().map(sign).collect::<String>();
        let line = |cells: &Vec<String>| {
            format!("{} \\\\\n", cells.iter().map(plain).collect::<Vec<_>>().join(" & "))
        };
        let columns = "r".repeat(self.header.len().saturating_sub(1));
        let rows: String = self.rows.iter().map(line).collect();
        format!(
            "\\begin{{tabular}}{{l{columns}}}\n\\hline\n{}\\hline\n{rows}\\hline\n\\end{{tabular}}",
            line(&self.header)
        )
    }

    /// As a table of a document, or for people: [`Self::folded`] by the first columns and steps of
    /// others.
    pub fn drawn(&self, output: DocumentOutput, first: usize, step: usize) -> String {
        match output {
            DocumentOutput::Markdown => self.markdown(),
            DocumentOutput::Latex => self.latex(),
            _ => self.folded(first, step),
        }
    }

    /// As a list of JSON objects by column; a cell that is a number is one.
    pub fn json(&self) -> String {
        let all: Vec<String> = self.rows.iter().map(|r| format!("  {}", self.object(r))).collect();
        format!("[\n{}\n]\n", all.join(",\n"))
    }

    /// As JSON lines, one object a row; a cell that is a number is one, and an empty one is null.
    pub fn json_lines(&self) -> String {
        self.rows.iter().map(|r| self.object(r) + "\n").collect()
    }

    fn object(&self, row: &[String]) -> String {
        let text = |s: &str| serde_json::Value::from(s).to_string();
        let value = |column: &str, cell: &str| match cell {
            "" => "null".into(),
            _ if !WORDS.contains(&column) && cell.parse::<serde_json::Number>().is_ok() => {
                cell.to_owned()
            }
            _ => text(cell),
        };
        let pairs: Vec<String> = self
            .header
            .iter()
            .zip(row)
            .map(|(h, c)| format!("{}: {}", text(h), value(h, c)))
            .collect();
        format!("{{{}}}", pairs.join(", "))
    }

    /// RFC 4180, with a line break after every row.
    pub fn csv(&self) -> String {
        let quote = |cell: &str| {
            let plain = !cell.contains([',', '"', '\n', '\r']);
            if plain { cell.to_owned() } else { format!("\"{}\"", cell.replace('"', "\"\"")) }
        };
        let mut out = self.header.join(",") + "\n";
        for row in &self.rows {
            let _ = writeln!(out, "{}", row.iter().map(|c| quote(c)).collect::<Vec<_>>().join(","));
        }
        out
    }
}

/// What is printed with tables in it: in LaTeX, all lines that are not of a table are comments.
pub fn document(text: String, output: DocumentOutput) -> String {
    if output != DocumentOutput::Latex {
        return text;
    }
    let mut within = false;
    let mut line = |l: &str| {
        within |= l.starts_with("\\begin{tabular}");
        let kept = within || l.is_empty();
        within &= !l.starts_with("\\end{tabular}");
        if kept { format!("{l}\n") } else { format!("% {l}\n") }
    };
    text.lines().map(&mut line).collect()
}

/// The coflows of a run in base units.
pub fn coflows_exact(coflows: &[CoflowRecord]) -> TextTable {
    let mut rows = TextTable::new(&[
        "coflow",
        "flows",
        "bytes",
        "ocs_share",
        "arrival_ns",
        "cct_ns",
        "bound_ns",
        "cct_over_bound",
    ]);
    for c in coflows {
        let r = c.cct.and_then(|cct| ratio(cct, c.bound));
        rows.rows.push(vec![
            c.name.clone(),
            c.flows.to_string(),
            c.bytes.0.to_string(),
            format!("{:.6}", c.ocs_share),
            c.arrival.0.to_string(),
            c.cct.map_or(String::new(), |s| s.0.to_string()),
            c.bound.0.to_string(),
            r.map_or(String::new(), |r| format!("{r:.6}")),
        ]);
    }
    rows
}

/// `part / whole` in a report; nothing if there is no whole.
pub fn ratio(part: Span, whole: Span) -> Option<f64> {
    (whole > Span::ZERO).then(|| part.0 as f64 / whole.0 as f64)
}

/// A share as a percentage with one decimal.
pub fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// The word that files have for one of a set of choices.
pub fn word(choice: &impl Serialize) -> String {
    serde_json::to_value(choice)
        .ok()
        .and_then(|v| v.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// An object as JSON for people: indented, with the number of its form before all else, and a line
/// break at its end.
pub fn json(object: &impl Serialize) -> String {
    text::json_escaped(
        serde_json::to_string_pretty(&Document::of(object)).expect("what is printed is plain data")
            + "\n",
    )
}

/// Several objects as a list, each as [`json`] writes it.
pub fn json_list(all: &[impl Serialize]) -> String {
    let each: Vec<String> = all.iter().map(|o| json(o).trim_end().to_owned()).collect();
    format!("[{}]\n", each.join(",\n"))
}

/// A length of time for people, or in nanoseconds.
pub fn length(exact: bool, ns: u64) -> String {
    if exact { ns.to_string() } else { span(Span(ns)) }
}

/// Four digits are enough for people.
pub fn span(s: Span) -> String {
    let (value, unit) = match s.0 {
        0..1_000 => return s.to_string(),
        1_000..1_000_000 => (s.as_micros_f64(), "us"),
        1_000_000..1_000_000_000 => (s.as_millis_f64(), "ms"),
        _ => (s.as_secs_f64(), "s"),
    };
    four_digits(value, unit)
}

/// Four digits are enough for people.
pub fn bytes(b: Bytes) -> String {
    let scale =
        [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    let unit = scale.iter().find(|s| b.0 >= s.0);
    unit.map_or_else(|| b.to_string(), |&(k, unit)| four_digits(b.0 as f64 / k as f64, unit))
}

fn four_digits(value: f64, unit: &str) -> String {
    let decimals = if value >= 1000.0 { 0 } else { 3 - (value.max(1.0).log10() as usize).min(3) };
    let text = format!("{value:.decimals$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_short() {
        let spans = [
            (0, "0ns"),
            (999, "999ns"),
            (1_234_567, "1.235ms"),
            (10_000_000, "10ms"),
            (12_345_678_901, "12.35s"),
        ];
        for (ns, text) in spans {
            assert_eq!(span(Span(ns)), text);
        }
        assert_eq!(
            (bytes(Bytes(25_000_000)), bytes(Bytes(123_456)), bytes(Bytes(7))),
            ("25MB".into(), "123.5kB".into(), "7B".into())
        );
        assert_eq!(span(Span::secs(4321)), "4321s");
        assert_eq!(
            (percent(0.123_45), ratio(Span(3), Span(2)), ratio(Span(3), Span(0))),
            ("12.3%".into(), Some(1.5), None)
        );
    }

    #[test]
    fn json_has_numbers_where_a_column_counts() {
        let rows = TextTable {
            header: ["coflow", "cct_ns"].map(Into::into).to_vec(),
            rows: vec![vec!["7".into(), "12".into()], vec!["x\"".into(), String::new()]],
        };
        assert_eq!(
            rows.json_lines(),
            "{\"coflow\": \"7\", \"cct_ns\": 12}\n{\"coflow\": \"x\\\"\", \"cct_ns\": null}\n"
        );
        let all: serde_json::Value = serde_json::from_str(&rows.json()).unwrap();
        assert_eq!(all.as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn wide_tables_are_folded_and_lose_nothing() {
        let header: Vec<String> = ["policy".into()]
            .into_iter()
            .chain((0..9).map(|k| format!("a column of number {k}")))
            .collect();
        let row: Vec<String> = (0..10).map(|k| format!("cell {k}")).collect();
        let rows = TextTable { header, rows: vec![row] };
        let folded = rows.folded(1, 2);
        assert!(width(&rows.table()) > WIDEST && width(&folded) <= WIDEST, "{folded}");
        assert_eq!(folded.matches("policy").count(), folded.matches("cell 0").count());
        assert!((1..10).all(|k| folded.matches(&format!("cell {k}")).count() == 1), "{folded}");
        let narrow = TextTable {
            header: vec!["a".into(), "b".into()],
            rows: vec![vec!["1".into(), "2".into()]],
        };
        assert_eq!(narrow.folded(1, 1), narrow.table());
        assert_eq!(
            TextTable::new(&["a"]).folded(1, 1),
            TextTable::new(&["a"]).table(),
            "no other columns"
        );
        // The longest text alone is wider: it stays whole.
        let wide = TextTable {
            header: vec!["a".into(), "x".repeat(120)],
            rows: vec![vec!["1".into(), "2".into()]],
        };
        assert!(wide.folded(1, 1).contains(&"x".repeat(120)));
    }

    #[test]
    fn paragraphs_are_wrapped_between_words() {
        let text = "word ".repeat(60);
        let told = wrapped(text.trim(), 2);
        assert!(
            width(&told) <= WIDEST && told.lines().skip(1).all(|l| l.starts_with("  word")),
            "{told}"
        );
        assert_eq!(told.split_whitespace().count(), 60);
        assert_eq!(
            (wrapped("short", 2), wrapped(&"x".repeat(130), 2)),
            ("short".into(), "x".repeat(130))
        );
    }

    #[test]
    fn no_name_tears_a_table_or_reaches_the_terminal_as_a_command() {
        let names =
            ["line\nbreak\rX", "evil\u{1b}[31mRED\u{1b}]0;owned\u{7}", "turned\u{202e}", "=cmd"];
        let rows = TextTable {
            header: vec!["coflow".into(), "x".into()],
            rows: names.map(|n| vec![n.into(), "1".into()]).to_vec(),
        };
        for text in [rows.table(), rows.markdown()] {
            assert_eq!(text.lines().count(), 2 + names.len(), "{text}");
            assert!(
                !text.contains(['\r', '\u{1b}', '\u{7}', '\u{202e}'])
                    && text.contains("evil\\u{1b}[31mRED"),
                "{text:?}"
            );
        }
        // What is printed passes another door; names stay as they are for programs.
        assert!(rows.csv().contains("\n=cmd,1\n"));
        assert!(!text::printed(&rows.csv()).contains(['\u{1b}', '\u{202e}']));
        let printed = json(&serde_json::json!({"name": "a\u{9b}\u{202e}\u{1b}"}));
        assert!(printed.contains("a\\u009b\\u202e\\u001b"), "{printed}");
    }

    #[test]
    fn csv_quotes_what_needs_it() {
        let rows = TextTable {
            header: vec!["a".into(), "b".into()],
            rows: vec![vec!["x,\"y\"".into(), "1".into()]],
        };
        assert_eq!(rows.csv(), "a,b\n\"x,\"\"y\"\"\",1\n");
        let piped = TextTable {
            header: vec!["a".into(), "b".into()],
            rows: vec![vec!["x|y".into(), "1".into()]],
        };
        assert_eq!(piped.markdown(), "| a | b |\n|---|---|\n| x\\|y | 1 |");
    }

    #[test]
    fn latex_has_tables_and_comments_alone() {
        let rows = TextTable {
            header: vec!["a_b".into(), "c".into()],
            rows: vec![vec!["50% & \\x".into(), "1 ± 2".into()]],
        };
        let table = "\\begin{tabular}{lr}\n\\hline\na\\_b & c \\\\\n\\hline\n50\\% \\& \\textbackslash{}x & 1 $\\pm$ 2 \\\\\n\
                     \\hline\n\\end{tabular}";
        assert_eq!(rows.latex(), table);
        let text = format!("caption\n\n{}\nremark\n", rows.drawn(DocumentOutput::Latex, 1, 1));
        assert_eq!(
            document(text.clone(), DocumentOutput::Latex),
            format!("% caption\n\n{table}\n% remark\n")
        );
        assert_eq!(document(text.clone(), DocumentOutput::Markdown), text);
        assert_eq!(
            (rows.drawn(DocumentOutput::Markdown, 1, 1), rows.drawn(DocumentOutput::Table, 1, 1)),
            (rows.markdown(), rows.table())
        );
    }
}
