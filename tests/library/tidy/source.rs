//! A source file as the rules see it: its text without comments and literals, and what it uses of
//! the crate.

/// A source file as the rules see it.
pub struct Source {
    /// From the root of the crate: `src/seam/plan/mod.rs`.
    pub path: String,
    /// From `src`, without `.rs`, `/mod` and `/lib`: `seam/plan`; empty in a test.
    pub place: String,
    pub lines: Vec<Line>,
}

pub struct Line {
    /// As it is in the file.
    pub raw: String,
    /// Without comments and with empty literals.
    pub code: String,
    /// Whether it belongs to a `#[cfg(test)]` item.
    pub in_test: bool,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        let inner = path.strip_prefix("src/").unwrap_or("");
        let place = inner
            .trim_end_matches(".rs")
            .trim_end_matches("/mod")
            .trim_end_matches("/lib")
            .to_owned();
        let tests_only = !path.starts_with("src/") || place.ends_with("/tests") || place == "tests";
        let codes = strip(text);
        let in_test = test_lines(&codes);
        let lines = text.lines().zip(codes).zip(in_test);
        let lines = lines
            .map(|((raw, code), t)| Line { raw: raw.into(), code, in_test: t || tests_only })
            .collect();
        Self { path: path.into(), place, lines }
    }

    pub fn stands_in(&self, places: &[&str]) -> bool {
        places.iter().any(|p| {
            self.place == *p || self.place.strip_prefix(p).is_some_and(|rest| rest.starts_with('/'))
        })
    }

    /// Lines of code outside tests, with their numbers from 1.
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines
            .iter()
            .enumerate()
            .filter(|(_, l)| !l.in_test)
            .map(|(n, l)| (n + 1, l.code.as_str()))
    }

    pub fn all_code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines.iter().enumerate().map(|(n, l)| (n + 1, l.code.as_str()))
    }
}

/// Each line without comments, and with the insides of text and character literals left out.
fn strip(text: &str) -> Vec<String> {
    #[derive(PartialEq)]
    enum In {
        Code,
        Block(usize),
        Text,
        Raw(usize),
    }
    let mut state = In::Code;
    let mut out = vec![];
    for line in text.lines() {
        let chars: Vec<char> = line.chars().collect();
        let (mut code, mut i) = (String::new(), 0);
        while i < chars.len() {
            let rest = &chars[i..];
            let begins = |s: &str| s.chars().enumerate().all(|(k, c)| rest.get(k) == Some(&c));
            let hashes = |from: usize| rest.iter().skip(from).take_while(|c| **c == '#').count();
            match state {
                In::Block(depth) if begins("*/") => {
                    state = if depth == 1 { In::Code } else { In::Block(depth - 1) };
                    i += 2;
                }
                In::Block(depth) if begins("/*") => (state, i) = (In::Block(depth + 1), i + 2),
                In::Text if rest[0] == '\\' => i += 2,
                In::Text if rest[0] == '"' => (state, i) = (In::Code, i + 1),
                In::Raw(n) if rest[0] == '"' && hashes(1) >= n => {
                    (state, i) = (In::Code, i + 1 + n)
                }
                In::Block(_) | In::Text | In::Raw(_) => i += 1,
                In::Code if begins("//") => break,
                In::Code if begins("/*") => (state, i) = (In::Block(1), i + 2),
                In::Code if rest[0] == '"' => (state, i) = (In::Text, i + 1),
                In::Code
                    if rest[0] == 'r'
                        && !code.ends_with(is_word)
                        && rest.get(1 + hashes(1)) == Some(&'"') =>
                {
                    i += 2 + hashes(1);
                    state = In::Raw(hashes(1));
                }
                // A character literal, not a lifetime.
                In::Code if rest[0] == '\'' && rest.get(1) == Some(&'\\') => {
                    i += 3 + rest.iter().skip(3).position(|c| *c == '\'').unwrap_or(0) + 1;
                }
                In::Code if rest[0] == '\'' && rest.get(2) == Some(&'\'') => i += 3,
                In::Code => {
                    code.push(rest[0]);
                    i += 1;
                }
            }
        }
        out.push(code);
    }
    out
}

pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// For each line, whether it belongs to an item under `#[cfg(test)]`: from there to the matching
/// brace or the semicolon.
fn test_lines(codes: &[String]) -> Vec<bool> {
    let mut marked = vec![false; codes.len()];
    let mut n = 0;
    while n < codes.len() {
        if !codes[n].contains("#[cfg(test)]") && !codes[n].contains("#[cfg(all(test") {
            n += 1;
            continue;
        }
        let (mut depth, mut opened, mut first) = (0i64, false, true);
        while n < codes.len() {
            marked[n] = true;
            let text = if first { codes[n].rsplit("]").next().unwrap_or("") } else { &codes[n] };
            depth += text.matches('{').count() as i64 - text.matches('}').count() as i64;
            opened |= text.contains('{');
            let ended = if opened { depth <= 0 } else { text.trim_end().ends_with(';') };
            (first, n) = (false, n + 1);
            if ended {
                break;
            }
        }
    }
    marked
}

/// Whether `word` is in `code`, not as a part of a longer word.
pub fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        !code[..at].ends_with(is_word) && !code[at + word.len()..].starts_with(is_word)
    })
}

/// The names after each `prefix`, those in braces too (on one line or several): (line, name).
pub fn uses_after(source: &Source, prefix: &str) -> Vec<(usize, String)> {
    let mut text = String::new();
    let mut starts = vec![];
    for (n, code) in source.code() {
        starts.push((text.len(), n));
        text.push_str(code);
        text.push('\n');
    }
    let line_of = |at: usize| starts[starts.partition_point(|s| s.0 <= at) - 1].1;
    let mut found = vec![];
    for (at, _) in text
        .match_indices(prefix)
        .filter(|(at, _)| !text[..*at].ends_with(|c| is_word(c) || c == '$' || c == ':'))
    {
        let from = at + prefix.len();
        if !text[from..].starts_with('{') {
            let name: String = text[from..].chars().take_while(|c| is_word(*c)).collect();
            found.push((line_of(at), name));
            continue;
        }
        let (mut depth, mut expect) = (0, true);
        for (k, c) in text[from..].char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => expect = true,
                c if depth == 1 && expect && is_word(c) => {
                    let name: String =
                        text[from + k..].chars().take_while(|c| is_word(*c)).collect();
                    found.push((line_of(from + k), name));
                    expect = false;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    found
}

#[test]
fn comments_and_literals_are_not_code() {
    let text = "a /* b /* c */ d */ e // f\n\"g \\\" h\" i r#\"j\" k\"# l '\\'' m '\"' n 'o: p\n\"q\nr\" s";
    assert_eq!(strip(text), ["a  e ", " i  l  m  n 'o: p", "", " s"]);
}
