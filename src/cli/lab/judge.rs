//! Whether an answer is right. What is right is not said, only what helps.

use std::path::Path;

use serde_json::Value;

use super::spec::{Condition, LabQuestion, LabResults, Truth, number, results};
use crate::cli::files;
use crate::units::{Bytes, Span};

/// What an answer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabVerdict {
    /// As it should be.
    Right,
    /// Not as it should be, and what helps.
    NotYet(String),
    /// Not there.
    Missing,
}

/// Judges the answer to a question; `directory` is where files that it names are.
pub fn judge(q: &LabQuestion, answer: &Value, facts: &LabResults, directory: &Path) -> LabVerdict {
    if answer.is_null() {
        return LabVerdict::Missing;
    }
    let judged = match &q.is {
        Truth::Number(right) => near(answer, *right, q.within),
        Truth::Figure(f) => facts
            .figure(f)
            .ok_or_else(|| format!("no figure {} in the runs of this lab", f.at))
            .and_then(|right| near(answer, right, q.within)),
        Truth::Words(right) => same_words(answer, right),
        Truth::File { file } => met(answer, file, facts, directory),
    };
    match judged {
        Ok(()) => LabVerdict::Right,
        Err(why) if q.hint.is_empty() => LabVerdict::NotYet(why),
        Err(why) => LabVerdict::NotYet(format!("{why}. {}", q.hint)),
    }
}

/// A number of an answer: seconds, a share, or MB, which may have their units.
fn measured(answer: &Value) -> Option<f64> {
    let Value::String(text) = answer else { return answer.as_f64() };
    let text = text.replace(' ', "");
    let percent = || text.strip_suffix('%')?.parse::<f64>().ok().map(|p| p / 100.0);
    let span = || text.parse::<Span>().ok().map(Span::as_secs_f64);
    let bytes = || text.parse::<Bytes>().ok().map(|b| b.0 as f64 / 1e6);
    text.parse().ok().or_else(percent).or_else(span).or_else(bytes)
}

fn near(answer: &Value, right: f64, within: f64) -> Result<(), String> {
    let said = said(answer);
    let Some(number) = measured(answer).filter(|n| n.is_finite()) else {
        return Err(format!("`{said}` is no number; write one as 0.69, 690ms, 50% or 19MB"));
    };
    // A thousandth is what a figure of three digits may be off by where what is right is 0.
    let room = (right.abs() * within).max(1e-3);
    match number - right {
        off if off.abs() <= room => Ok(()),
        off if off > 0.0 => Err(format!("{said} is too large")),
        _ => Err(format!("{said} is too small")),
    }
}

/// What an answer says, as it is written.
fn said(answer: &Value) -> String {
    answer.as_str().map_or_else(|| answer.to_string(), str::to_owned)
}

fn same_words(answer: &Value, right: &[String]) -> Result<(), String> {
    let one = |v: &Value| match v {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        v => said(v).trim().to_lowercase(),
    };
    let mut words = match answer {
        Value::Array(all) => all.iter().map(one).collect(),
        v => one(v)
            .split([',', ' '])
            .filter(|w| !w.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>(),
    };
    let mut wanted: Vec<String> = right.iter().map(|w| w.to_lowercase()).collect();
    words.sort();
    wanted.sort();
    if words == wanted { Ok(()) } else { Err(format!("not `{}`", words.join(", "))) }
}

/// Whether a file is as all conditions say.
fn met(
    answer: &Value,
    conditions: &[Condition],
    facts: &LabResults,
    directory: &Path,
) -> Result<(), String> {
    let name = answer.as_str().ok_or("write the name of a file")?;
    let text = files::read_result(&directory.join(name)).map_err(|e| e.to_string())?;
    let all = results(&text).map_err(|why| format!("{name}: {why}"))?;
    let result = all.last().ok_or_else(|| format!("{name}: there is no result in it"))?;
    conditions
        .iter()
        .find(|c| !holds(c, result, facts))
        .map_or(Ok(()), |c| Err(format!("{name}: {}", c.says)))
}

fn holds(c: &Condition, result: &Value, facts: &LabResults) -> bool {
    let (there, figure) = (result.pointer(&c.at).unwrap_or(&Value::Null), || number(result, &c.at));
    let of = |run: &String| facts.0.get(run).and_then(|all| number(all.last()?, &c.at));
    c.is.as_ref().is_none_or(|v| there == v)
        && c.not.as_ref().is_none_or(|v| !there.is_null() && there != v)
        && c.between
            .is_none_or(|[least, most]| figure().is_some_and(|f| (least..=most).contains(&f)))
        && c.below
            .as_ref()
            .is_none_or(|run| figure().zip(of(run)).is_some_and(|(f, most)| f < most))
        && c.near.as_ref().is_none_or(|(run, within)| {
            figure().zip(of(run)).is_some_and(|(f, at)| (f - at).abs() <= at * within)
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_may_have_their_units_and_be_a_little_off() {
        for (answer, right) in [
            (json!(0.69), 0.699),
            (json!("690 ms"), 0.699),
            (json!("50%"), 0.5),
            (json!("19MB"), 19.0),
            (json!(0), 0.0),
        ] {
            assert_eq!(near(&answer, right, 0.02), Ok(()), "{answer}");
        }
        assert_eq!(near(&json!(0.72), 0.699, 0.02), Err("0.72 is too large".into()));
        assert_eq!(near(&json!("1s"), 2.0, 0.02), Err("1s is too small".into()));
        for odd in [json!("many"), json!([1]), json!("inf"), json!("NaN")] {
            assert!(near(&odd, 1.0, 0.02).unwrap_err().contains("is no number"), "{odd}");
        }
    }

    #[test]
    fn words_are_compared_without_their_order_and_case() {
        let right = ["copy-1".to_owned(), "sort-1".to_owned()];
        for yes in [json!(["sort-1", "copy-1"]), json!("Copy-1, sort-1"), json!("sort-1 copy-1")] {
            assert_eq!(same_words(&yes, &right), Ok(()));
        }
        for no in [json!("copy-1"), json!(["copy-1", "sort-1", "join-1"]), json!(3)] {
            assert!(same_words(&no, &right).is_err(), "{no}");
        }
        assert!(
            same_words(&json!(false), &["no".into()]).is_ok()
                && same_words(&json!(true), &["no".into()]).is_err()
        );
    }

    #[test]
    fn a_file_meets_all_conditions_or_the_first_that_it_does_not_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let facts =
            LabResults([("sim".to_owned(), vec![json!({"cct_ns": 2_000_000_000_u64})])].into());
        let conditions: Vec<Condition> = serde_json::from_value(json!([
            {"at": "/mechanism", "not": "sim", "says": "simulated"},
            {"at": "/policy", "is": "own", "says": "another policy"},
            {"at": "/cct_ns", "below": "sim", "says": "slow"},
            {"at": "/cct_ns", "near": ["sim", 0.5], "says": "far"},
            {"at": "/share", "between": [0.2, 0.9], "says": "share"},
        ]))
        .unwrap();
        let told = |result: Value| {
            std::fs::write(dir.path().join("r.json"), result.to_string()).unwrap();
            met(&json!("r.json"), &conditions, &facts, dir.path())
        };
        let good = json!({"mechanism": "timed", "policy": "own", "cct_ns": 1_500_000_000_u64, "share": 0.5});
        assert_eq!(told(good.clone()), Ok(()));
        assert_eq!(told(json!([7, good])), Ok(()), "the last of a list counts");
        for (key, value, says) in [
            ("mechanism", json!("sim"), "simulated"),
            ("mechanism", Value::Null, "simulated"),
            ("policy", json!("x"), "another policy"),
            ("cct_ns", json!(2_000_000_000_u64), "slow"),
            ("cct_ns", json!(500_000_000), "far"),
            ("share", json!(0.1), "share"),
        ] {
            let mut bad = good.clone();
            bad[key] = value;
            assert_eq!(told(bad), Err(format!("r.json: {says}")));
        }
        assert!(
            met(&json!("none.json"), &conditions, &facts, dir.path())
                .unwrap_err()
                .contains("none.json")
        );
        assert!(told(json!([])).unwrap_err().contains("no result"));
        assert!(
            met(&json!(3), &conditions, &facts, dir.path()).unwrap_err().contains("name of a file")
        );
    }
}
