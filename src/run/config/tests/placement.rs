//! What a policy file says of placement.

use super::*;
use crate::placement::coscheduler::executor::CoSchedulerOptions;
use crate::placement::jobpacker::executor::JobPackerOptions;
use crate::placement::{Kind, Policy};

/// Options are checked by their policy's own type; what is wrong is shown where it is.
#[test]
fn options_that_make_no_sense_are_shown_where_they_stand() {
    let first = |placement: &str| {
        let text = format!("{POLICY}placement:\n{placement}");
        let e = read_policy(&text, "p.yaml").unwrap_err();
        e.to_string().lines().next().unwrap().to_owned() + " # " + &e.problems[0].allowed
    };
    let all = [
        "  sir: 100\n  policy: fair\n",
        "  sir: 0\n  policy: co-scheduler\n",
        "  policy: corral\n  imbalance: -1\n",
        "  policy: corral\n  imbalance: [1]\n",
        "  policy: corral\n  elephant: 0B\n",
        "  policy: corral\n  elephant: 3Mb\n",
        "  policy: corral\n  colour: red\n",
        "  policy: co-scheduler\n  strict: 7\n",
        "  policy: co-scheduler\n  sir: 5\n  sir: 6\n",
        "  seed: 1\n",
        "  policy: nobody\n",
        "  fair\n",
    ];
    // A new policy shall not change this list.
    let policies = Kind::ALL.map(|k| format!("`{}`", k.name())).join(", ");
    insta::assert_snapshot!(
        all.map(first).join("\n").replace(&policies, "<every placement policy>")
    );
}

/// The schema has each policy with its options, and no others.
#[test]
fn the_schema_says_which_options_each_policy_has() {
    let schema = schema_policy();
    let placement = &schema["$defs"]["RawPlacement"];
    assert_eq!(placement["unevaluatedProperties"], false);
    for (kind, one) in Kind::ALL.iter().zip(placement["oneOf"].as_array().unwrap()) {
        assert_eq!(one["properties"]["policy"]["const"], kind.name());
        assert_eq!(one["properties"].as_object().unwrap().len(), kind.schema().len() + 1);
    }
    let has = |kind: Kind, key: &str| kind.schema().contains_key(key);
    assert!(
        has(Kind::Corral, "imbalance")
            && has(Kind::LocalShuffle, "imbalance")
            && !has(Kind::Jobpacker, "imbalance")
    );
    assert!(has(Kind::CoDecided, "sir") && !has(Kind::Fair, "sir"));
    assert_eq!(Kind::Jobpacker.schema()["sub_batches"]["maximum"], 1000);
}

#[test]
fn options_of_the_planners_are_read_and_written() {
    let text =
        |policy: &str, options: &str| format!("{POLICY}placement:\n  policy: {policy}\n{options}");
    let read = |text: &str| read_policy(text, "p.yaml").unwrap();
    let options = "  objective: online\n  sub_batches: 7\n  over_provisioning: 150\n  shuffle_model: figure\n  elephant: 2MB\n  \
                   exact_tasks: true\n  aggregate: whole\n";
    let p = read(&text("jobpacker", options));
    let want = JobPackerOptions {
        objective: Some(crate::placement::corral::Scenario::Online),
        sub_batches: 7,
        over_provisioning: 150,
        shuffle_model: crate::placement::latency::hybrid::ShuffleModel::Figure,
        elephant: Some(Bytes(2_000_000)),
        exact_tasks: true,
        aggregate: crate::placement::jobpacker::aggregate::Aggregate::Whole,
        ..JobPackerOptions::default()
    };
    assert_eq!(p.jobs.as_ref().unwrap().placement.policy, Policy::Jobpacker(want));
    let other = read(&text("co-scheduler", "  sir: 250\n  wavelengths: 4\n  strict: true\n"));
    let want = CoSchedulerOptions {
        sir: 250,
        wavelengths: Some(4),
        strict: true,
        ..CoSchedulerOptions::default()
    };
    assert_eq!(other.jobs.as_ref().unwrap().placement.policy, Policy::CoScheduler(want));
    for given in [p, other, read(&text("corral", "  imbalance: 0\n  provisioning: best\n"))] {
        let written = serde_json::to_string(&policy::RawPolicy::from(&given)).unwrap();
        assert_eq!(read(&written), given, "{written}");
    }
}

#[test]
fn queues_may_have_orders_of_their_own() {
    use crate::placement::policy::JobOrder::{Capacity, Fair, Fifo};
    let read = |order: &str| {
        read_policy(&format!("{POLICY}placement:\n  policy: fair\n  order: {order}\n"), "p.yaml")
    };
    let settings = |order: &str| read(order).unwrap().jobs.unwrap().settings;
    let of = |order: &str| (settings(order).order, settings(order).orders);
    assert_eq!(
        (of("fifo"), of("[fifo, fair]"), of("[capacity]")),
        ((Fifo, vec![]), (Fair, vec![Fifo, Fair]), (Capacity, vec![Capacity]))
    );
    for (order, why) in [
        ("[]", "orders of no queue"),
        ("[fifo, lifo]", "unknown value `lifo`"),
        ("7", "fifo, fair, capacity or srpt"),
    ] {
        let error = read(order).unwrap_err().to_string();
        assert!(error.contains(why), "{order}: {error}");
    }
    // What is written is read again.
    let plan = read("[fifo, fair]").unwrap();
    let again = serde_json::to_string(&policy::RawPolicy::from(&plan)).unwrap();
    assert!(again.contains(r#""order":["fifo","fair"]"#), "{again}");
    assert_eq!(read_policy(&again, "j").unwrap(), plan);
}
