//! `heliostat report`: results of runs as one web page that needs nothing else: no network, no
//! server, no other file.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::apart::{Pool, differences};
use super::log::say;
use super::plot::{input, labels};
use super::{CliError, read_result, results, rows, write_text};
use crate::api::page;
use crate::runtime::report::form;
use crate::runtime::statistics::MeanEstimate;
use crate::runtime::study::{Figure, FigureUnit, RunAccount};

/// Writes results of runs as one HTML file: tables, completion times, timelines
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Results (run --json, simulate --json, schedule --json, -o json), directories that `heliostat
    /// sweep` filled, and event logs (run --events, simulate --events). Several runs of one policy
    /// in a file are shown by their means. An event log is shown with the result of the run that
    /// its first line names, or, if it has none, of the same name
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
    #[command(flatten)]
    pool: Pool,
}

/// A result, an event log, or both of one run; or the results of several runs under one policy.
struct ReportedRun {
    input: input::PlotInput,
    /// The results as they were written.
    values: Vec<Value>,
}

/// Runs the subcommand.
///
/// # Errors
/// Files that cannot be read, hold nothing that is shown, or cannot be written.
pub fn run(a: &Args) -> Result<(), CliError> {
    let mut runs: Vec<ReportedRun> = vec![];
    for file in &a.files {
        if file.is_dir() {
            take_all(&mut runs, file, results_of(file)?, &a.pool)?;
        } else {
            take(&mut runs, file, &read_result(file)?, &a.pool)?;
        }
    }
    a.pool.check(runs.iter().map(|r| &r.input.keys))?;
    let runs = input::paired(runs, |r| &mut r.input);
    let inputs: Vec<input::PlotInput> = runs.iter().map(|r| r.input.clone()).collect();
    let labels = labels(&inputs, &a.label)?;
    let named: Vec<_> = labels.iter().cloned().zip(inputs.iter().map(|i| &i.keys)).collect();
    let differs: Vec<Value> = differences(&named)
        .into_iter()
        .map(|(key, of)| json!([key, of.into_iter().map(|v| v.1).collect::<Vec<_>>()]))
        .collect();
    let all: Vec<Value> =
        runs.iter().zip(labels).map(|(r, label)| of_run(r, &label)).collect::<Result<_, _>>()?;
    let data = json!({"title": a.title, "version": env!("CARGO_PKG_VERSION"), "runs": all, "differs": differs});
    write_text(&a.to, &html(&data))?;
    say!("wrote {}", a.to.display());
    Ok(())
}

/// The results in a directory that a sweep filled.
fn results_of(directory: &Path) -> Result<Vec<Value>, CliError> {
    let files = results::files_in(directory)?;
    let all = files
        .iter()
        .map(|f| value_of(&rows::text(f)?).ok_or_else(|| no_result(f, "something else")))
        .collect::<Result<Vec<_>, _>>()?;
    if all.is_empty() {
        Err(CliError::Invalid(format!(
            "{}: no results (*.json) in this directory",
            directory.display()
        )))
    } else {
        Ok(all)
    }
}

/// A text as a result or a list of them. Event logs are many lines, and no JSON as a whole.
fn value_of(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().and_then(|v| form::current(v).ok())
}

fn no_result(file: &Path, holds: &str) -> CliError {
    CliError::Invalid(format!(
        "{}: neither a result nor an event log; it has: {holds}",
        file.display()
    ))
}

/// Adds a file to the runs.
fn take(runs: &mut Vec<ReportedRun>, file: &Path, text: &str, pool: &Pool) -> Result<(), CliError> {
    let value = match value_of(text) {
        Some(Value::Array(all)) => return take_all(runs, file, all, pool),
        value => value.filter(|v| v.get("summary").is_some()),
    };
    for input in input::read(text, &file.display().to_string(), pool).map_err(CliError::Invalid)? {
        if value.is_none() && input.circuits.is_none() && input.demand.is_none() {
            return Err(no_result(file, &input.holds()));
        }
        runs.push(ReportedRun { input, values: value.iter().cloned().collect() });
    }
    Ok(())
}

/// Adds results of one file or directory: a run each, or where several differ in their seed alone,
/// these as one.
fn take_all(
    runs: &mut Vec<ReportedRun>,
    file: &Path,
    all: Vec<Value>,
    pool: &Pool,
) -> Result<(), CliError> {
    let begin = runs.len();
    for value in all {
        let mut one = vec![];
        take(&mut one, file, &value.to_string(), pool)?;
        for ReportedRun { input, values } in one {
            let input = input::pooled(vec![input], pool).remove(0);
            match runs[begin..].iter_mut().find(|r| r.input.is_like(&input)) {
                Some(run) => {
                    run.input.take(input);
                    run.values.extend(values);
                }
                None => runs.push(ReportedRun { input, values }),
            }
        }
    }
    if runs.len() > begin { Ok(()) } else { Err(no_result(file, "an empty list")) }
}

/// Means over several runs with halves of their 95 % intervals, by the names that results have;
/// times are nanoseconds.
fn means(values: &[Value]) -> Result<Value, CliError> {
    let text = |v: &Value| results::parse(&v.to_string(), Path::new("result"));
    let accounts = values
        .iter()
        .map(|v| Ok(text(v)?.iter().map(RunAccount::from).collect::<Vec<_>>()))
        .collect::<Result<Vec<_>, CliError>>()?;
    let accounts = accounts.concat();
    let figures = accounts.first().map_or(&[][..], |a| a.figures());
    let mean = |(k, f): (usize, &Figure)| {
        let factor =
            if matches!(f.unit, FigureUnit::Seconds | FigureUnit::Gigabytes) { 1e9 } else { 1.0 };
        let e = MeanEstimate::of(
            &accounts.iter().map(|a| a.figures()[k].value * factor).collect::<Vec<f64>>(),
        );
        (f.key.to_owned(), json!({"mean": e.mean, "half": e.half}))
    };
    Ok(figures.iter().enumerate().map(mean).collect::<serde_json::Map<_, _>>().into())
}

/// What the page shows of a run. Times and spans are nanoseconds.
fn of_run(run: &ReportedRun, label: &str) -> Result<Value, CliError> {
    let none = Value::Null;
    let value = run.values.first().unwrap_or(&none);
    let many = run.values.len() > 1;
    let mut about: serde_json::Map<String, Value> =
        ["policy", "placement", "topology", "workload", "mechanism", "end"]
            .iter()
            .map(|k| ((*k).into(), value[k].clone()))
            .collect();
    if many {
        // What single runs differ in is none of the row's.
        about
            .iter_mut()
            .filter(|(k, _)| *k != "end")
            .for_each(|(k, v)| *v = run.input.keys.get(k).into());
    }
    let caveats: Vec<String> = run.input.caveats().iter().map(ToString::to_string).collect();
    // A run of jobs has the network's counters apart.
    let stats = [&value["network"]["stats"], &value["summary"]["stats"]]
        .into_iter()
        .find(|s| !s.is_null())
        .unwrap_or(&none);
    let keep = |list: &str, keys: &[&str]| -> Option<Vec<Value>> {
        let item = |x: &Value| {
            keys.iter()
                .map(|k| ((*k).to_owned(), x[k].clone()))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let all: Vec<&Vec<Value>> = run.values.iter().filter_map(|v| v[list].as_array()).collect();
        (!all.is_empty()).then(|| all.into_iter().flatten().map(item).collect())
    };
    // What is drawn over time, and where a result comes from, is that of one run.
    let of_one = |v: &Value| if many { Value::Null } else { v.clone() };
    let circuits = run.input.circuits.as_ref();
    let bars = circuits.map(|c| c.bars.iter().map(bar).collect::<Vec<Value>>());
    let demand = run
        .input
        .demand
        .as_ref()
        .map(|d| d.iter().map(|(t, v)| json!([t.0, v])).collect::<Vec<Value>>());
    let (sums, network) = (&value["summary"], &value["network"]);
    let ended = [&sums["ended_ns"], &network["ended_ns"], &sums["makespan_ns"]]
        .into_iter()
        .find_map(Value::as_u64);
    Ok(json!({
        "label": label,
        "about": about,
        "caveats": caveats,
        "options": run.input.keys.options(),
        "runs": run.values.len(),
        "means": if many { means(&run.values)? } else { Value::Null },
        "origin": of_one(&value["origin"]),
        "summary": of_one(sums),
        "stats": of_one(stats),
        "ended_ns": ended.max(circuits.map(|c| c.end.0)).unwrap_or(0),
        "coflows": keep("coflows", &["name", "bytes", "ocs_share", "arrival_ns", "finished_ns", "cct_ns", "bound_ns"]),
        "jobs": keep("jobs", &["id", "name", "tasks", "shuffle_bytes", "jct_ns"]),
        "timeline": keep("timeline", &["job", "stage", "task", "host", "slot", "started_ns", "computes_ns", "ended_ns"]).filter(|_| !many),
        "utilisation": of_one(&value["utilisation"]),
        "circuits": bars,
        "demand": demand,
    }))
}

fn bar(b: &input::CircuitBar) -> Value {
    json!({"plane": b.plane, "input": b.input, "output": b.output, "setup": b.setup_at.0, "up": b.up_from.0, "until": b.until.0, "demand": b.demand})
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
        let text = html(
            &json!({"title": "</script><script>alert(1)</script>", "version": "1", "runs": []}),
        );
        for place in ["style", "data", "echarts", "units", "charts", "report"] {
            assert!(
                page::REPORT_PAGE.contains(&format!("{{{{{place}}}}}"))
                    && !text.contains(&format!("{{{{{place}}}}}")),
                "{place}"
            );
        }
        for part in [page::ECHARTS, page::STYLE, page::UNITS, page::CHARTS, page::REPORT] {
            assert!(text.contains(part.text), "{} is missing", part.name);
            assert!(
                !part.text.contains("</script") && !part.text.contains("</style"),
                "{} ends its element",
                part.name
            );
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
            files.iter().for_each(|(name, text)| {
                take(&mut runs, Path::new(name), text, &Pool::default()).unwrap()
            });
            input::paired(runs, |r| &mut r.input)
                .iter()
                .map(|r| of_run(r, "x").unwrap())
                .collect::<Vec<Value>>()
        };
        let both = read(&[("a.json", result), ("a.jsonl", log)]);
        assert_eq!(both, read(&[("a.jsonl", log), ("a.json", result)]));
        assert_eq!(both.len(), 1);
        assert_eq!(
            both[0]["circuits"],
            json!([{"plane": 0, "input": 1, "output": 2, "setup": 1, "up": 2, "until": 7, "demand": null}])
        );
        assert_eq!(both[0]["coflows"][0]["name"], "c");
        assert_eq!(
            (both[0]["ended_ns"].as_u64(), both[0]["demand"].clone()),
            (Some(9), json!([[8, 5.0]]))
        );
        assert_eq!(read(&[("a.json", result), ("b.jsonl", log)]).len(), 2);
        assert!(
            read(&[("a.json", result), ("a.json", result)]).iter().all(|r| !r["summary"].is_null()),
            "one file twice"
        );
        assert!(
            ["{}", "[]", "[{}]"].iter().all(|no| take(
                &mut vec![],
                Path::new("x.json"),
                no,
                &Pool::default()
            )
            .is_err())
        );
        // A log that says of which run it is needs no name; that of a live run is known by the
        // result's clock.
        let head = |policy| {
            format!(
                r#"{{"event_log":1,"version":"0","clock":"live","mechanism":"m","topology":"t","policy":"{policy}"}}"#
            ) + "\n"
        };
        let live = result.replacen('{', r#"{"zero_ns": 1, "#, 1);
        let found = read(&[("a.json", &live), ("b.jsonl", &(head("p") + log))]);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0]["circuits"],
            json!([{"plane": 0, "input": 1, "output": 2, "setup": 0, "up": 1, "until": 6, "demand": null}])
        );
        assert_eq!(found[0]["demand"], json!([[7, 5.0]]));
        assert_eq!(
            read(&[("a.json", &live), ("a.jsonl", &(head("other") + log))]).len(),
            2,
            "another run's log"
        );
    }

    #[test]
    fn runs_of_one_policy_are_one_with_means_and_intervals() {
        let text = crate::testing::shipped("tests/results/jobs-1.json");
        let one = value_of(&text).unwrap();
        let with = |policy: &str, jct: u64| {
            let mut v = one.clone();
            v["policy"] = policy.into();
            v["summary"]["average_jct_ns"] = jct.into();
            v
        };
        let list =
            json!([with("a", 2_000_000_000), with("b", 7), with("a", 4_000_000_000)]).to_string();
        let mut runs = vec![];
        take(&mut runs, Path::new("study.json"), &list, &Pool::default()).unwrap();
        let found: Vec<Value> = runs.iter().map(|r| of_run(r, "x").unwrap()).collect();
        assert_eq!(found.iter().map(|r| r["runs"].as_u64().unwrap()).collect::<Vec<_>>(), [2, 1]);
        let e = &found[0]["means"]["average_jct_ns"];
        assert_eq!(e["mean"], 3e9);
        // Student's t for one degree of freedom is 12.706; the standard error of 2 s and 4 s is 1
        // s.
        assert!((e["half"].as_f64().unwrap() - 12.706e9).abs() < 1e7, "{e}");
        let jobs = one["jobs"].as_array().unwrap().len();
        assert_eq!(
            found.iter().map(|r| r["jobs"].as_array().unwrap().len()).collect::<Vec<_>>(),
            [2 * jobs, jobs]
        );
        assert!(
            found[0]["timeline"].is_null()
                && found[0]["summary"].is_null()
                && found[1]["timeline"].is_array()
        );
        assert_eq!(
            (&found[1]["means"], found[1]["summary"]["average_jct_ns"].as_u64()),
            (&Value::Null, Some(7))
        );
    }
}
