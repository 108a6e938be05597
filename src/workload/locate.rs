//! Where in a YAML text a key stands: for faults that show only after the text has been read.

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// One step into a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A key of a mapping.
    Key(&'static str),
    /// A place in a list, from zero.
    Item(usize),
}

/// A path as people write it: `coflows[3].flows[0].to`.
pub fn show(path: &[Step]) -> String {
    let mut s = String::new();
    for step in path {
        match step {
            Step::Key(k) if s.is_empty() => s.push_str(k),
            Step::Key(k) => s.extend([".", k]),
            Step::Item(i) => s.push_str(&format!("[{i}]")),
        }
    }
    s
}

/// Line and column, from one, of the value at `path`; of the document's beginning if it is not there. O(length of the text):
/// it reads the text once more and refuses the value there, so that the reader says where it was.
pub fn locate(text: &str, path: &[Step]) -> (usize, usize) {
    let refused = Seek(path).deserialize(serde_yaml::Deserializer::from_str(text)).err();
    refused.and_then(|e| e.location()).map_or((1, 1), |l| (l.line(), l.column()))
}

#[derive(Clone, Copy)]
struct Seek<'p>(&'p [Step]);

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seek<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("the value sought")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Some((Step::Item(i), rest)) = self.0.split_first() else { return Err(de::Error::custom("here")) };
        for _ in 0..*i {
            seq.next_element::<IgnoredAny>()?;
        }
        seq.next_element_seed(Seek(rest))?;
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some((Step::Key(k), rest)) = self.0.split_first() else { return Err(de::Error::custom("here")) };
        while let Some(key) = map.next_key::<String>()? {
            if key == *k {
                map.next_value_seed(Seek(rest))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_scalars_lists_and_maps() {
        let text = "a: 1\nb:\n  - x: one\n    y: 2\n  - {x: two, y: 3}\n";
        use Step::{Item, Key};
        assert_eq!(locate(text, &[Key("b"), Item(0), Key("x")]), (3, 8));
        assert_eq!(locate(text, &[Key("b"), Item(1), Key("x")]), (5, 9));
        assert_eq!(locate(text, &[Key("b"), Item(1)]), (5, 5));
        assert_eq!(locate(text, &[Key("nowhere")]), (1, 1));
        assert_eq!(show(&[Key("b"), Item(1), Key("x")]), "b[1].x");
    }
}
