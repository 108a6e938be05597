//! Coflows from the first question to their end by the page's buttons, and what the drawer tells of
//! flows, circuits and the control loop.

use serde_json::{Value, json};

use super::browser::Browser;
use super::views::{can_run, circuits, daemon, page};
use crate::support::{Daemon, together, unique};

/// Presses the button in a part of the page that says this.
fn press(b: &Browser, within: &str, text: &str) {
    let all = format!("[...document.querySelectorAll('{within} button')]");
    b.until(&format!("{all}.some((x) => x.textContent === {text:?})"));
    b.value(&format!("{all}.find((x) => x.textContent === {text:?}).click()"));
}

/// Opens the drawer of a coflow by its row.
fn open_coflow(b: &Browser, name: &str) {
    press(b, "#coflow-rows", name);
    b.until(&format!("document.querySelector('#details-h').textContent === {name:?}"));
}

fn row_says(b: &Browser, words: &str) {
    b.until(&format!("[...document.querySelectorAll('#coflow-rows tr')].some((r) => /{words}/.test(r.textContent))"));
}

/// Looks back with the slider to an instant, an expression in nanoseconds.
fn look_back(b: &Browser, at: &str) {
    b.value(&format!(
        "(() => {{ const {{ store }} = Heliostat.page; const s = document.querySelector('#scrub');
           s.value = String((({at}) - store.now()) / 1e9); s.dispatchEvent(new Event('input')); }})()"
    ));
    b.until_says("#scrub-at", "ago");
}

/// The shuffle of the page's form, small, under a name. It is held for as long as a step of a test
/// may take on a busy machine.
fn shuffle(name: &str) -> Value {
    let maps = json!([{"rack": 0, "bytes": 4_000_000}, {"rack": 1, "bytes": 4_000_000}]);
    let slots = json!([{"rack": 2, "free": 2}, {"rack": 3, "free": 2}]);
    let hold = 60_000_000_000_u64;
    let place = json!({"maps": maps, "tasks": 2, "at_most": 2, "slots": slots, "hold_ns": hold});
    json!({"name": name, "place": place})
}

fn propose(b: &Browser, name: &str) {
    b.click("#act-coflow");
    b.fill("#dialog [name=kind]", "place");
    b.fill("#dialog textarea", &shuffle(name).to_string());
    b.click("#dialog button[value=post]");
    b.until_says("#dialog .answer", &format!("{name}: proposed"));
}

#[test]
fn a_shuffle_is_placed_what_lost_is_told_and_it_is_confirmed_or_taken_back() {
    let test = "a_shuffle_is_placed_what_lost_is_told_and_it_is_confirmed_or_taken_back";
    if !can_run(test) {
        return;
    }
    let _turn = together();
    let d = daemon(&unique("pagewhatif"), "sunflow", &[]);
    let b = page(&d);
    // The form's own example, asked about only.
    b.click("#act-coflow");
    b.fill("#dialog [name=kind]", "place");
    b.until("document.querySelector('#dialog textarea').value.includes('what-if')");
    let asked = b.value("JSON.parse(document.querySelector('#dialog textarea').value)");
    b.click("#dialog button[value=dry]");
    b.until_says("#dialog .answer", "Chosen");
    // The page says what the API answers: where tasks go, and each loser with its reason.
    let (status, told) = d.call("POST", "/api/v1/coflows?dryRun=true", Some(&asked));
    assert_eq!(status, 200, "{told}");
    let answer = b.text("#dialog .answer");
    for r in told["chosen"]["racks"].as_array().expect("a placement") {
        assert!(answer.contains(&format!("r{} × {}", r["rack"], r["tasks"])), "{r}: {answer}");
    }
    let lost: Vec<&Value> =
        ["losers", "excluded"].iter().flat_map(|k| told[*k].as_array().expect("a list")).collect();
    assert!(!lost.is_empty() && answer.contains("What lost, and why"), "{told}");
    for l in lost {
        let racks = l["racks"]
            .as_array()
            .expect("a placement")
            .iter()
            .map(|r| format!("r{} × {}", r["rack"], r["tasks"]));
        let (racks, why) =
            (racks.collect::<Vec<_>>().join(", "), l["why"].as_str().expect("a reason"));
        let why = why.split(':').next().expect("a part");
        assert!(answer.contains(&racks) && answer.contains(why), "{racks}, {why}: {answer}");
    }
    assert_eq!(d.show("coflows")["coflows"], json!([]), "a question makes nothing");
    b.click("#dialog-close");
    // Confirmed at once.
    propose(&b, "at-once");
    press(&b, "#dialog .answer", "Confirm and send");
    b.click("#dialog-close");
    row_says(&b, "at-once.*finished.*100");
    // Confirmed later, from the drawer.
    propose(&b, "later");
    b.click("#dialog-close");
    open_coflow(&b, "later");
    b.until_says("#details-body", "What lost, and why");
    press(&b, "#details", "Confirm");
    row_says(&b, "later.*finished.*100");
    b.until("![...document.querySelectorAll('#details button')].some((x) => x.textContent === 'Confirm')");
    // Taken back.
    propose(&b, "never");
    b.click("#dialog-close");
    open_coflow(&b, "never");
    press(&b, "#details", "Take back");
    b.until("![...document.querySelectorAll('#coflow-rows tr')].some((r) => /never.*proposed/.test(r.textContent))");
    let names: Vec<Value> = d.show("coflows")["coflows"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|c| c["name"].clone())
        .collect();
    assert_eq!(names, ["at-once", "later"]);
    assert_eq!(b.errors(), Vec::<String>::new());
}

/// Circuits of the first plane by hand, and the port given back in the dialog.
fn set_and_release(b: &Browser, d: &Daemon) {
    b.click("#act-circuit");
    b.fill("#dialog [name=input]", "3");
    b.fill("#dialog [name=output]", "1");
    b.click("#dialog button[value=set]");
    b.until_says("#dialog .answer", "r3 is joined with r1 on plane 0");
    b.until("Heliostat.page.store.circuitsAt(Heliostat.page.store.now()).some((c) => c.manual && c.input === 3)");
    assert!(circuits(d).contains(&(3, 1, true)));
    b.click("#dialog button[value=release]");
    b.until_says("#dialog .answer", "The port of r3 on plane 0 is the policy's again");
    assert!(!circuits(d).iter().any(|c| c.2));
    // A second time there is nothing to release, and the page says so.
    b.click("#dialog button[value=release]");
    b.until_says("#dialog .answer.bad", "404");
    b.click("#dialog-close");
}

#[test]
fn flows_have_a_past_circuits_the_demand_that_asked_for_them_and_coflows_an_end_by_hand() {
    let test =
        "flows_have_a_past_circuits_the_demand_that_asked_for_them_and_coflows_an_end_by_hand";
    if !can_run(test) {
        return;
    }
    let _turn = together();
    let d = daemon(&unique("pageflows"), "c-through", &[]);
    let b = page(&d);
    // Where few seconds have been seen, the axis of the links' chart says which.
    b.value("document.querySelector('#utilisation').scrollIntoView()");
    let labels = "Heliostat.chartOf(document.querySelector('#utilisation')).chart.getModel().getComponent('xAxis').axis.getViewLabels()";
    b.until(&format!("{labels}.some((l) => /:/.test(l.formattedLabel))"));
    b.value("scrollTo(0, 0)");
    assert!(b.value("Heliostat.page.store.samples.length").as_u64().expect("a number") < 60);
    set_and_release(&b, &d);
    let id = d.post(&[(0, 4, 300_000_000), (1, 5, 100_000_000)]);
    b.until(&format!("Heliostat.page.store.flowSteps.get({id})?.length >= 3"));
    // A circuit tells the demand of its pair that the decision saw, which the event log has too.
    // It is clicked as soon as it is found, since it may be gone a moment later.
    b.until(
        "[...Heliostat.page.store.circuits.values()].some((c) => {
           const line = document.querySelector(`#fabric-picture [data-key=\"circuit/${c.plane}/0/${c.up}\"]`);
           if (!(c.input === 0 && c.output === 2 && c.demand > 0 && line)) return false;
           line.dispatchEvent(new MouseEvent('click'));
           window.clicked = c;
           return true; })",
    );
    let decided = b.value("window.clicked");
    let said = b.value(&format!("Heliostat.bytes({})", decided["demand"]));
    b.until_says(
        "#details-body",
        &format!("demand when it was decided{}", said.as_str().expect("text")),
    );
    // A flow's history began before its drawer was opened.
    let name = format!("coflow-{id}");
    open_coflow(&b, &name);
    b.until("document.querySelectorAll('#details table tbody tr.pick').length === 2");
    b.click("#details table button");
    b.until_says("#details-h", "Flow 0 of");
    let points = "Heliostat.chartOf(document.querySelector('#details .chart')).chart.getOption().series[0].data";
    b.until(&format!("{points}.length >= 4"));
    row_says(&b, &format!("{name}.*finished.*100"));
    b.until_says("#details-body", "100\u{202f}%");
    // Looking back, the flow is as it was then, and so is its line.
    let seen = format!(
        "Heliostat.page.store.flowSteps.get({id}).find((s) => s.received[0] > 0 && s.received[0] < 3e8)"
    );
    look_back(&b, &format!("{seen}.at + 1e8"));
    let part = b.value(&format!("Heliostat.bytes({seen}.received[0])"));
    b.until_says("#details-body", &format!("received{}", part.as_str().expect("text")));
    b.until(&format!("{points}.at(-1)[0] <= Heliostat.page.view.at / 1e6 + 60"));
    b.keys("body", " ");
    press(&b, "#details", "Its coflow");
    b.until_says("#details-h", &name);
    // One that is too long is ended.
    let long = d.post(&[(2, 6, 4_000_000_000)]);
    open_coflow(&b, &format!("coflow-{long}"));
    press(&b, "#details", "Cancel coflow");
    row_says(&b, &format!("coflow-{long}.*cancelled"));
    assert_eq!(d.outcome(long)["state"], "cancelled");
    b.until("![...document.querySelectorAll('#details button')].some((x) => x.textContent === 'Cancel coflow')");
    assert_eq!(b.errors(), Vec::<String>::new());
}

#[test]
fn ten_slow_cycles_after_many_are_seen_in_the_control_loop() {
    let test = "ten_slow_cycles_after_many_are_seen_in_the_control_loop";
    if !can_run(test) {
        return;
    }
    let _turn = together();
    let d = daemon(&unique("pageloop"), "c-through", &[]);
    let b = page(&d);
    b.until("Heliostat.page.store.course.length > 1");
    // What the daemon counts, with ten slow cycles in a second more: the percentile since the start
    // does not move.
    let (before, spike) = {
        let course = b.value(
            "(() => { const s = new Heliostat.Store(); const of = Heliostat.page.store.stats;
               const many = (n, slow) => of.ranges.bounds_ns.map((x) => (x === 1e6 ? n : x === 1e8 ? slow : 0)).concat(0);
               const at = (t, n, slow) => { const r = many(n, slow); return { ...of, now_ns: t * 1e9, cycles: n + slow,
                 ranges: { ...of.ranges, cycle: r, decide: r, apply: r } } };
               [at(1, 0, 0), at(2, 10000, 0), at(3, 10010, 0), at(4, 10010, 10), at(5, 10010, 10)].forEach((x) => s.setStats(x));
               return s.course.map((x) => x.cycle); })()",
        );
        let all: Vec<f64> = course
            .as_array()
            .expect("a list")
            .iter()
            .map(|x| x.as_f64().expect("a number"))
            .collect();
        assert_eq!(all.len(), 3, "a second without a cycle tells nothing: {all:?}");
        (all[1], all[2])
    };
    assert!(before <= 1e6 && spike > 5e7, "{before} {spike}");
    let quantile = |share: &str| {
        b.value(&format!("Heliostat.quantile([10, 20], [5, 10, 0], {share})"))
            .as_f64()
            .expect("a number")
    };
    // Two thirds of the durations are in the second range, the median a quarter into it.
    assert!((quantile("0.5") - 12.5).abs() < 1e-9 && (quantile("1") - 20.0).abs() < 1e-9);
    assert_eq!(b.errors(), Vec::<String>::new());
}

#[test]
fn forms_write_what_is_sent_and_shipped_policies_are_a_choice() {
    let test = "forms_write_what_is_sent_and_shipped_policies_are_a_choice";
    if !can_run(test) {
        return;
    }
    let _turn = together();
    let d = daemon(&unique("pageforms"), "manual", &[]);
    let b = page(&d);
    b.click("#act-coflow");
    for (field, value) in [("name", "typed"), ("to", "3"), ("bytes", "2MB")] {
        b.fill(&format!("#dialog [name={field}]"), value);
    }
    press(&b, "#dialog", "One more pair");
    b.fill("#dialog .pair:nth-child(2) [name=from]", "2");
    press(&b, "#dialog .pair:nth-child(2)", "✕");
    let text = b.value("JSON.parse(document.querySelector('#dialog textarea').value)");
    assert_eq!(
        text,
        json!({"name": "typed", "send": true, "pairs": [{"from": "r0", "to": "r3", "bytes": "2MB"}]})
    );
    b.click("#dialog button[value=post]");
    b.until_says("#dialog .answer", "typed");
    b.click("#dialog-close");
    row_says(&b, "typed.*2.00.MB");
    // A shipped policy with another interval: its file, comments included, is what is sent.
    b.click("#act-policy");
    b.until("[...document.querySelectorAll('#dialog [name=shipped] option')].some((o) => o.value === 'round-robin')");
    assert_eq!(b.value("[...document.querySelectorAll('#dialog [name=shipped] option')].some((o) => o.value === 'delay')"), false);
    b.fill("#dialog [name=shipped]", "round-robin");
    b.until("document.querySelector('#dialog textarea').value.startsWith('#')");
    b.fill("#dialog [name=interval]", "150ms");
    b.click("#dialog button[value=put]");
    b.until_says("#dialog .answer", "In force from the next cycle on: round-robin");
    let (_, policy) = d.call("GET", "/api/v1/policy", None);
    assert_eq!((&policy["name"], &policy["interval"]), (&json!("round-robin"), &json!("150ms")));
    // The same of the policy in force, as JSON.
    b.until("document.querySelector('#dialog [name=interval]').value === '150ms'");
    b.fill("#dialog [name=interval]", "120ms");
    b.click("#dialog button[value=put]");
    // It is shown when the answer is there, and then it is what the daemon has.
    b.until("JSON.parse(document.querySelector('#dialog textarea').value).interval === '120ms'");
    b.until("!document.querySelector('#dialog .answer').textContent.includes('…')");
    assert_eq!(d.call("GET", "/api/v1/policy", None).1["interval"], "120ms");
    assert_eq!(b.errors(), Vec::<String>::new());
}
