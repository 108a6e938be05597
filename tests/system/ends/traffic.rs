//! Traffic between hosts of a running network, as its command tells of it.

use serde_json::Value;

use crate::support::*;

/// `heliostat traffic` and its JSON.
fn traffic(d: &Daemon, args: &[&str]) -> Value {
    let o = output(heliostat().arg("traffic").args(args).args([
        "-o",
        "json",
        "--controller",
        &d.api(),
    ]));
    assert!(o.status.success(), "{}", said(&o));
    serde_json::from_slice(&o.stdout).expect("JSON")
}

#[test]
fn bulk_and_requests_are_told_by_pair_and_as_a_run() {
    let test = "bulk_and_requests_are_told_by_pair_and_as_a_run";
    if !root(test) {
        return;
    }
    let _turn = together();
    let (name, scratch) = (unique("traffic"), Scratch::new("traffic"));
    let d = Daemon::start(
        &name,
        &["--policy", file("policies/c-through.yaml").to_str().expect("text")],
    );
    let json = scratch.0.join("bulk.json");
    let to = json.to_str().expect("text");
    let bulk = traffic(
        &d,
        &["bulk", "h0-0:h2-0", "h1-0:h1-1", "--bytes", "30MB", "--flows", "2", "--json", to],
    );
    let rows = bulk["traffic"].as_array().expect("rows");
    assert_eq!(
        rows.iter().map(|r| (r["finished"].as_u64(), r["bytes"].as_u64())).collect::<Vec<_>>(),
        [(Some(1), Some(30_000_000)); 2]
    );
    let number = |r: &Value, key: &str| r[key].as_u64().expect("a number");
    for r in rows {
        assert_eq!(number(r, "p50_ns"), number(r, "max_ns"));
        assert_eq!(
            number(r, "rate_bps"),
            (30_000_000.0 * 8e9 / number(r, "max_ns") as f64) as u64,
            "{r}"
        );
        // No interface carries more than a gigabit of payload a second.
        assert!((10_000_000..1_000_000_000).contains(&number(r, "rate_bps")), "{r}");
    }
    assert_eq!(
        (&bulk["summary"]["received_bytes"], &bulk["coflows"][0]["flows"]),
        (&60_000_000.into(), &2.into())
    );
    assert!(rows[1]["ocs_share"] == 0.0 && bulk["origin"]["started_at"].is_string(), "{bulk}");

    let r = traffic(
        &d,
        &["requests", "h0-1:h3-1", "--count", "20", "--open", "2", "--response", "20kB"],
    );
    let row = &r["traffic"][0];
    assert_eq!(
        (&row["finished"], &row["bytes"], &r["summary"]["finished"]),
        (&20.into(), &(20 * 21_000).into(), &40.into())
    );
    let times = ["p50_ns", "p90_ns", "p99_ns", "max_ns"].map(|key| number(row, key));
    assert!(times.is_sorted() && times[0] > 0, "{row}");
    // What is written is a result like any other.
    let o = output(heliostat().arg("compare").args([&json, &json]));
    assert!(o.status.success(), "{}", said(&o));

    for (pair, why) in [
        ("h0-0", "no `:`"),
        ("h0-0:h9-9", "has no host h9-9"),
        ("h0-0:h0-0", "two hosts are needed"),
    ] {
        let o = output(heliostat().args(["traffic", "bulk", pair, "--controller", &d.api()]));
        assert!(o.status.code() == Some(2) && said(&o).contains(why), "{}", said(&o));
    }
}
