//! Text of others: names and excerpts of files, requests and other programs, as messages may show
//! them.
//!
//! Such text may be long, may hold what moves a terminal's cursor or changes its title, and may
//! turn the direction of what stands beside it. Messages show at most [`SHOWN`] characters of it,
//! and what cannot be seen as a code such as `\u{1b}`.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Characters of foreign text that a message shows at most.
pub const SHOWN: usize = 60;
/// Characters of a message as a whole, if it holds foreign text that is not quoted well.
const MESSAGE: usize = 1500;

/// Whether a character is not seen as itself: it controls the terminal, turns the direction of
/// text, breaks a line, or has no width.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// What is wrong with a name that holds a hidden character.
pub fn flaw_of_name(name: &str) -> Option<String> {
    let c = name.chars().find(|&c| is_hidden(c))?;
    let what =
        if c.is_control() { "a control character" } else { "a character that cannot be seen" };
    Some(format!("{what}, U+{:04X}, in `{}`", u32::from(c), shown(name)))
}

/// What is allowed instead.
pub const VISIBLE: &str = "characters that can be seen, and blanks: none that control a terminal, turn the direction of text or break lines";

fn with_codes(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    let coded = |c: char| is_hidden(c) && !keep(c);
    if !text.contains(coded) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' if coded(c) => out.extend(c.escape_default()),
            c if coded(c) => drop(write!(out, "\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.into()
}

/// A text on one line, with codes for what cannot be seen.
pub fn escaped(text: &str) -> Cow<'_, str> {
    with_codes(text, |_| false)
}

/// The same, where line breaks and tabs are the message's own.
pub fn lines_escaped(text: &str) -> Cow<'_, str> {
    with_codes(text, |c| matches!(c, '\n' | '\t'))
}

/// The same of text that is printed, where what is bold stays bold on a terminal.
pub fn printed(text: &str) -> Cow<'_, str> {
    const BOLD: [&str; 2] = ["\u{1b}[1m", "\u{1b}[0m"];
    if !text.contains('\u{1b}') {
        return lines_escaped(text);
    }
    let mut parts = text.split('\u{1b}');
    let mut out = lines_escaped(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        let own = BOLD.iter().find_map(|b| part.strip_prefix(&b[1..]).map(|rest| (b, rest)));
        let (code, rest) = own.map_or(("\\u{1b}", part), |(b, rest)| (*b, rest));
        out += code;
        out += &lines_escaped(rest);
    }
    out.into()
}

/// JSON with codes for what its writer leaves as it is and terminals obey; it says the same.
pub fn json_escaped(json: String) -> String {
    let coded = |c: char| !c.is_ascii() && is_hidden(c) || c == '\u{7f}';
    if !json.contains(coded) {
        return json;
    }
    json.chars().fold(String::with_capacity(json.len() + 16), |mut out, c| {
        match c {
            // All of them are in the first plane.
            c if coded(c) => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
        out
    })
}

fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}..", &text[..end]).into(),
        None => text.into(),
    }
}

/// Foreign text in a message: its beginning, on one line.
pub fn shown(text: &str) -> String {
    escaped(&cut(text, SHOWN)).into_owned()
}

/// A message that may quote foreign text, such as a library's: what stands in quotes is cut, and
/// all of it is on the lines that it has.
pub fn told(message: &str) -> String {
    let (mut out, mut rest) = (String::new(), message);
    while let Some(open) = rest.find(['`', '"']) {
        let quote = if rest[open..].starts_with('`') { '`' } else { '"' };
        let (before, inner) = (&rest[..open], &rest[open + 1..]);
        let Some(close) = closing(inner, quote) else { break };
        let _ = write!(out, "{before}{quote}{}{quote}", cut(&inner[..close], SHOWN));
        rest = &inner[close + 1..];
    }
    out += rest;
    let out = lines_escaped(&out);
    match (out.char_indices().nth(MESSAGE), out.char_indices().nth_back(MESSAGE / 4)) {
        (Some(_), Some((tail, _))) => format!("{} {}", cut(&out, MESSAGE / 2), &out[tail..]),
        _ => out.into_owned(),
    }
}

/// Where a quotation ends; a backslash takes the next character with it in one of double quotes.
fn closing(inner: &str, quote: char) -> Option<usize> {
    let mut taken = false;
    inner.char_indices().find_map(|(at, c)| {
        let ends = c == quote && !taken;
        taken = quote == '"' && c == '\\' && !taken;
        ends.then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_has_a_code() {
        assert_eq!(
            escaped("a\u{1b}[2Jb\nc\td\u{9b}\u{202e}"),
            "a\\u{1b}[2Jb\\nc\\td\\u{9b}\\u{202e}"
        );
        assert_eq!(lines_escaped("a\r\n\tb\u{7}"), "a\\r\n\tb\\u{7}");
        assert_eq!(escaped("chunk é 测试 🚀 שלום"), "chunk é 测试 🚀 שלום");
        assert_eq!(
            printed("\u{1b}[1ma\u{1b}[0m\u{1b}[31mb\u{7}\n"),
            "\u{1b}[1ma\u{1b}[0m\\u{1b}[31mb\\u{7}\n"
        );
        assert_eq!(json_escaped("\"a\u{9b}\u{2028}é\"".into()), "\"a\\u009b\\u2028é\"");
        for (name, code) in [
            ("a\u{1b}", "a control character, U+001B"),
            ("x\u{202e}y", "cannot be seen, U+202E"),
            ("\u{feff}", "U+FEFF"),
        ] {
            assert!(
                flaw_of_name(name).is_some_and(|f| f.contains(code)),
                "{name:?}: {:?}",
                flaw_of_name(name)
            );
        }
        assert_eq!(flaw_of_name("a b-ç"), None);
    }

    #[test]
    fn foreign_text_is_cut_where_a_message_quotes_it() {
        let long = "x".repeat(3000);
        assert_eq!(shown(&long), format!("{}..", "x".repeat(SHOWN)));
        assert_eq!(shown("short"), "short");
        let cut = format!("{}..", "x".repeat(SHOWN));
        assert_eq!(
            told(&format!("invalid type: string \"{long}\", expected a map")),
            format!("invalid type: string \"{cut}\", expected a map")
        );
        assert_eq!(
            told(&format!("unknown key `{long}`; allowed: `a`, `b`")),
            format!("unknown key `{cut}`; allowed: `a`, `b`")
        );
        assert_eq!(told(r#"string "a\"b", expected"#), r#"string "a\"b", expected"#);
        for hostile in [
            format!("unknown key `a`{long} {long}`, allowed"),
            format!("string \"{long}"),
            long.clone(),
            "`".repeat(9999),
        ] {
            assert!(told(&hostile).chars().count() < MESSAGE, "{}", told(&hostile));
        }
    }

    proptest::proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn no_text_panics_and_none_stays_hidden(text in "(\\PC|[`\"\\\\\n\u{1b}\u{202e}]){0,200}") {
            let _ = (shown(&text), flaw_of_name(&text), json_escaped(text.clone()));
            let told = told(&text);
            proptest::prop_assert!(!told.chars().any(|c| is_hidden(c) && c != '\n' && c != '\t'), "{told:?}");
        }
    }
}
