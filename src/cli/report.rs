//! `heliostat report`: results of runs as one web page that needs nothing else: no network, no server, no other file.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::plot::{input, labels};
use super::{CliError, read_result, write_text};
use crate::api::page;
use crate::runtime::report::form;

/// Writes results of runs as one HTML file: tables, completion times, timelines
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Results (run --json, simulate --json, schedule --json, -o json) and event logs (run --events, simulate --events); an event log is
    /// shown with the result of the run that its first line names, or, if it has none, of the same name
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Where to
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    to: PathBuf,
    /// Names of the runs, in their order [default: what tells them apart]
    #[arg(long, value_name = "TEXT")]
    label: Vec<String>,
    /// Title
    #[arg(long, default_value = "Heliostat report")]
    title: String,
}

/// A result, an event log, or both of one run.
struct Run {
    input: input::Input,
    /// The result as it was written.
    value: Option<Value>,
}

/// Runs the subcommand.
///
/// # Errors
/// Files that cannot be read, hold nothing that is shown, or cannot be written.
pub fn run(a: &Args) -> Result<(), CliError> {
    let mut runs: Vec<Run> = vec![];
    for file in &a.files {
        take(&mut runs, file, &read_result(file)?)?;
    }
    let runs = input::paired(runs, |r| &mut r.input);
    let inputs: Vec<input::Input> = runs.iter().map(|r| r.input.clone()).collect();
    let labels = labels(&inputs, &a.label)?;
    let all: Vec<Value> = runs.iter().zip(labels).map(|(r, label)| of_run(r, &label)).collect();
    let data = json!({"title": a.title, "version": env!("CARGO_PKG_VERSION"), "runs": all});
    write_text(&a.to, &html(&data))
}

/// Adds a file to the runs.
fn take(runs: &mut Vec<Run>, file: &Path, text: &str) -> Result<(), CliError> {
    let name = file.display().to_string();
    let Ok([input]) = <[input::Input; 1]>::try_from(input::read(text, &name).map_err(CliError::Invalid)?) else {
        return Err(CliError::Invalid(format!("{name}: results of several policies; a report shows one run a file")));
    };
    // Event logs are many lines, and no JSON as a whole.
    let value = serde_json::from_str(text).ok().and_then(|v| form::current(v).ok()).filter(|v| v.get("summary").is_some());
    if value.is_none() && input.circuits.is_none() && input.demand.is_none() {
        return Err(CliError::Invalid(format!("{name}: neither a result nor an event log; it has: {}", input.holds())));
    }
    runs.push(Run { input, value });
    Ok(())
}

/// What the page shows of a run. Times and spans are nanoseconds.
fn of_run(run: &Run, label: &str) -> Value {
    let none = Value::Null;
    let value = run.value.as_ref().unwrap_or(&none);
    let about: serde_json::Map<String, Value> =
        ["policy", "placement", "topology", "workload", "mechanism", "end"].iter().map(|k| ((*k).into(), value[k].clone())).collect();
    // A run of jobs has the network's counters apart.
    let stats = [&value["network"]["stats"], &value["summary"]["stats"]].into_iter().find(|s| !s.is_null()).unwrap_or(&none);
    let keep = |list: &str, keys: &[&str]| -> Option<Vec<Value>> {
        let item = |x: &Value| keys.iter().map(|k| ((*k).to_owned(), x[k].clone())).collect::<serde_json::Map<_, _>>().into();
        Some(value[list].as_array()?.iter().map(item).collect())
    };
    let circuits = run.input.circuits.as_ref();
    let bars = circuits.map(|c| c.bars.iter().map(bar).collect::<Vec<Value>>());
    let demand = run.input.demand.as_ref().map(|d| d.iter().map(|(t, v)| json!([t.0, v])).collect::<Vec<Value>>());
    let (sums, network) = (&value["summary"], &value["network"]);
    let ended = [&sums["ended_ns"], &network["ended_ns"], &sums["makespan_ns"]].into_iter().find_map(Value::as_u64);
    json!({
        "label": label,
        "about": about,
        "origin": value["origin"],
        "summary": value["summary"],
        "stats": stats,
        "ended_ns": ended.max(circuits.map(|c| c.end.0)).unwrap_or(0),
        "coflows": keep("coflows", &["name", "bytes", "ocs_share", "arrival_ns", "finished_ns", "cct_ns", "bound_ns"]),
        "jobs": keep("jobs", &["id", "name", "jct_ns"]),
        "timeline": keep("timeline", &["job", "stage", "task", "host", "slot", "started_ns", "computes_ns", "ended_ns"]),
        "utilisation": value["utilisation"],
        "circuits": bars,
        "demand": demand,
    })
}

fn bar(b: &input::Bar) -> Value {
    json!({"plane": b.plane, "input": b.input, "output": b.output, "setup": b.setup_at.0, "up": b.up_from.0, "until": b.until.0})
}

/// The page around its data. Nothing in the data can end the element that it is in.
fn html(data: &Value) -> String {
    let data = data.to_string().replace('<', "\\u003c");
    let mut out = String::with_capacity(page::ECHARTS.text.len() + data.len() + (1 << 17));
    let mut rest = page::REPORT_PAGE;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        out += before;
        out += match name {
            "style" => page::STYLE.text,
            "data" => &data,
            "echarts" => page::ECHARTS.text,
            "units" => page::UNITS.text,
            "charts" => page::CHARTS.text,
            _ => page::REPORT.text,
        };
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_all_its_parts_and_no_name_ends_the_data() {
        let text = html(&json!({"title": "</script><script>alert(1)</script>", "version": "1", "runs": []}));
        for place in ["style", "data", "echarts", "units", "charts", "report"] {
            assert!(page::REPORT_PAGE.contains(&format!("{{{{{place}}}}}")) && !text.contains(&format!("{{{{{place}}}}}")), "{place}");
        }
        for part in [page::ECHARTS, page::STYLE, page::UNITS, page::CHARTS, page::REPORT] {
            assert!(text.contains(part.text), "{} is missing", part.name);
            assert!(!part.text.contains("</script") && !part.text.contains("</style"), "{} ends its element", part.name);
        }
        // Its own five scripts, none of the title's.
        assert_eq!(text.matches("</script>").count(), 5);
        let (_, data) = text.split_once("id=\"data\">").unwrap();
        let data: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
        assert_eq!(data["title"], "</script><script>alert(1)</script>");
    }

    #[test]
    fn an_event_log_goes_with_the_result_of_its_name() {
        let result = r#"{"policy": "p", "summary": {"ended": 9}, "coflows": [{"name": "c", "cct": 3, "bytes": 1}]}"#;
        let log = concat!(
            r#"{"seq":0,"at":0,"event":"circuit-set","plane":0,"input":1,"output":2,"setup_at":1,"up_from":2,"until":7}"#,
            "\n",
            r#"{"seq":1,"at":8,"event":"cycle","cycle":1,"demand":5,"ops":0,"late":false}"#
        );
        let read = |files: &[(&str, &str)]| {
            let mut runs = vec![];
            files.iter().for_each(|(name, text)| take(&mut runs, Path::new(name), text).unwrap());
            input::paired(runs, |r| &mut r.input).iter().map(|r| of_run(r, "x")).collect::<Vec<Value>>()
        };
        let both = read(&[("a.json", result), ("a.jsonl", log)]);
        assert_eq!(both, read(&[("a.jsonl", log), ("a.json", result)]));
        assert_eq!(both.len(), 1);
        assert_eq!(both[0]["circuits"], json!([{"plane": 0, "input": 1, "output": 2, "setup": 1, "up": 2, "until": 7}]));
        assert_eq!(both[0]["coflows"][0]["name"], "c");
        assert_eq!((both[0]["ended_ns"].as_u64(), both[0]["demand"].clone()), (Some(9), json!([[8, 5.0]])));
        assert_eq!(read(&[("a.json", result), ("b.jsonl", log)]).len(), 2);
        assert!(read(&[("a.json", result), ("a.json", result)]).iter().all(|r| !r["summary"].is_null()), "one file twice");
        assert!(take(&mut vec![], Path::new("x.json"), "{}").is_err());
        // A log that says of which run it is needs no name; of a live run, it is told by the result's clock.
        let head =
            |policy| format!(r#"{{"event_log":1,"version":"0","clock":"live","mechanism":"m","topology":"t","policy":"{policy}"}}"#) + "\n";
        let live = result.replacen('{', r#"{"zero_ns": 1, "#, 1);
        let found = read(&[("a.json", &live), ("b.jsonl", &(head("p") + log))]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0]["circuits"], json!([{"plane": 0, "input": 1, "output": 2, "setup": 0, "up": 1, "until": 6}]));
        assert_eq!(found[0]["demand"], json!([[7, 5.0]]));
        assert_eq!(read(&[("a.json", &live), ("a.jsonl", &(head("other") + log))]).len(), 2, "another run's log");
    }
}
