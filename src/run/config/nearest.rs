//! The known name that was meant by one that is not known.

/// The candidate most like `name`, if one is like it: most of its letters are the same, or it
/// begins with it.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let likeness = |c: &str| {
        let letters = strsim::normalized_damerau_levenshtein(&name, &c.to_lowercase());
        let begins = name.len() >= 3 && c.to_lowercase().starts_with(&name);
        if begins { letters.max(ENOUGH) } else { letters }
    };
    let of = candidates.into_iter().map(|c| (likeness(c), c)).filter(|(l, _)| *l >= ENOUGH);
    // The first of equals, so that the answer does not depend on anything else.
    of.fold(
        None,
        |best: Option<(f64, &str)>, at| {
            if best.is_some_and(|b| b.0 >= at.0) { best } else { Some(at) }
        },
    )
    .map(|b| b.1)
}

/// From this likeness on a candidate is offered, of 1 for the same name.
const ENOUGH: f64 = 0.6;

/// "; did you mean `x`?" if a candidate is like `name`, else nothing.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, candidates).map_or(String::new(), |c| format!("; did you mean `{c}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let policies = ["aalo", "varys", "c-through", "round-robin", "sunflow"];
        for (slip, meant) in [
            ("varis", "varys"),
            ("Varys", "varys"),
            ("cthrough", "c-through"),
            ("roundrobin", "round-robin"),
            ("sun", "sunflow"),
        ] {
            assert_eq!(nearest(slip, policies), Some(meant), "{slip}");
        }
        for stranger in ["", "x", "kubernetes", "sn"] {
            assert_eq!(nearest(stranger, policies), None, "{stranger}");
        }
        assert_eq!(did_you_mean("aallo", policies), "; did you mean `aalo`?");
    }
}
