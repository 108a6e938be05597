//! Links from document to document.

use super::{documents, file, text};

/// The targets of the links of a text, with their line numbers.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (k, line) in text.lines().enumerate() {
        let rests = line.split("](").skip(1);
        found.extend(rests.filter_map(|rest| rest.split_once(')')).map(|(link, _)| (k + 1, link)));
    }
    found
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
}

fn has_anchor(text: &str, wanted: &str) -> bool {
    let headings =
        text.lines().filter_map(|l| l.strip_prefix('#')).map(|l| l.trim_start_matches('#'));
    headings.map(anchor).any(|a| a == wanted)
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut broken = Vec::new();
    for document in documents() {
        let own = text(&document);
        let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (line, link) in links(&own).into_iter().filter(|(_, l)| !l.contains("://")) {
            let (path, heading) = link.split_once('#').map_or((link, None), |(p, h)| (p, Some(h)));
            let target =
                if path.is_empty() { document.clone() } else { format!("{folder}/{path}") };
            let target = target.trim_start_matches('/');
            let found =
                file(target).exists() && heading.is_none_or(|h| has_anchor(&text(target), h));
            if !found {
                broken.push(format!("{document}:{line}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn the_index_lists_every_document() {
    let (index, labs) = (text("docs/README.md"), text("docs/labs/README.md"));
    let own = links(&index).into_iter().map(|(_, l)| l.to_owned());
    let listed: Vec<String> =
        own.chain(links(&labs).into_iter().map(|(_, l)| format!("labs/{l}"))).collect();
    for document in documents() {
        let link =
            document.strip_prefix("docs/").map_or_else(|| format!("../{document}"), Into::into);
        assert!(
            link == "README.md" || listed.contains(&link),
            "docs/README.md does not list {document}"
        );
    }
}
