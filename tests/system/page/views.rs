//! What a viewer sees and does.

use std::process::Command;

use serde_json::{Value, json};

use super::browser::{Browser, missing};
use crate::support::{
    Daemon, assert_nothing_left, file, heliostat, root, together, topology, unique, until,
};

/// Whether a test with a network and a browser can run; else says that it is skipped.
pub fn can_run(test: &str) -> bool {
    if let Some(why) = missing() {
        println!("SKIP {test}: {why}");
    }
    missing().is_none() && root(test)
}

/// A daemon on the smallest network under one of the shipped policies.
pub fn daemon(name: &str, policy: &str, more: &[&str]) -> Daemon {
    let policy = file(&format!("policies/{policy}.yaml"));
    let mut all = vec!["--policy", policy.to_str().expect("UTF-8")];
    all.extend(more);
    Daemon::start(name, &all)
}

/// The page on a daemon, once it follows it.
pub fn page(d: &Daemon) -> Browser {
    let b = Browser::open(&d.api(), 1280, 900);
    b.until("document.querySelector('#state').dataset.state === 'live'");
    b
}

pub fn circuits(d: &Daemon) -> Vec<(u64, u64, bool)> {
    let all = d.show("circuits");
    let of = |c: &Value| {
        (c["input"].as_u64().unwrap_or(99), c["output"].as_u64().unwrap_or(99), c["manual"] == true)
    };
    all["circuits"].as_array().unwrap_or(&vec![]).iter().map(of).collect()
}

#[test]
fn a_viewer_sets_a_circuit_and_sees_it_carry() {
    let test = "a_viewer_sets_a_circuit_and_sees_it_carry";
    if !can_run(test) {
        return;
    }
    let _turn = together();
    let d = daemon(&unique("page"), "manual", &[]);
    let b = page(&d);
    b.until_says("#network", "hybrid-4x2");
    assert_eq!(b.value("document.querySelectorAll('#fabric-picture .rack-item').length"), 4);
    // A circuit from rack 0 to rack 2.
    b.click("#act-circuit");
    for (field, value) in [("plane", "0"), ("input", "0"), ("output", "2")] {
        b.fill(&format!("#dialog [name={field}]"), value);
    }
    b.click("#dialog button[value=set]");
    b.until_says("#dialog .answer", "r0 is joined with r2");
    b.click("#dialog-close");
    b.until("document.querySelector('#fabric-picture [data-key^=\"circuit/0/0/\"].up.manual')");
    assert_eq!(circuits(&d), [(0, 2, true)]);
    // A coflow over it, first only asked about.
    b.click("#act-coflow");
    b.fill("#dialog textarea", &json!({"name": "seen", "send": true, "pairs": [{"from": 0, "to": 2, "bytes": 40_000_000}]}).to_string());
    b.click("#dialog button[value=dry]");
    b.until("document.querySelector('#dialog .answer').childElementCount && !document.querySelector('#dialog .answer.bad')");
    assert_eq!(d.show("coflows")["coflows"], json!([]));
    b.click("#dialog button[value=post]");
    b.until_says("#dialog .answer", "seen");
    b.click("#dialog-close");
    b.until("[...document.querySelectorAll('#coflow-rows tr')].some((r) => /seen.*finished.*100/.test(r.textContent))");
    b.until_says("#log-rows", "seen finished, CCT");
    b.until("Heliostat.page.store.samples.some((s) => s.ocs > 1e6)");
    // What was picked has its numbers: the circuit, its port, its rack, the coflow.
    b.value("document.querySelector('#fabric-picture [data-key^=\"circuit/0/0/\"]').dispatchEvent(new MouseEvent('click'))");
    b.until_says("#details-body", "hand");
    b.click("#details-close");
    b.click("#coflow-rows button");
    b.until_says("#details-body", "lower bound");
    b.until("document.querySelector('#details-body canvas')");
    b.value("document.querySelector('#fabric-picture [data-key=\"port/0/0\"]').dispatchEvent(new MouseEvent('click'))");
    b.until_says("#details-body", "r2");
    b.click("#details .row button:nth-child(2)");
    until("the port is the policy's again", || circuits(&d).is_empty());
    b.until("!document.querySelector('#fabric-picture .circuit.up')");
    assert_eq!(b.errors(), Vec::<String>::new());
}

#[test]
fn the_drawer_leads_on_nothing_is_wider_than_the_page_and_little_is_asked_at_rest() {
    let test = "the_drawer_leads_on_nothing_is_wider_than_the_page_and_little_is_asked_at_rest";
    if !can_run(test) {
        return;
    }
    let _turn = together();
    let d = daemon(&unique("pagedrawer"), "manual", &[]);
    let narrow = "document.documentElement.scrollWidth <= innerWidth";
    let b = Browser::open(&d.api(), 1024, 900);
    b.until_says("#loop-rows", "decide");
    assert_eq!(b.value(narrow), true, "1024 pixels");
    drop(b);
    let b = page(&d);
    b.click("#act-circuit");
    for (field, value) in [("plane", "0"), ("input", "0"), ("output", "2")] {
        b.fill(&format!("#dialog [name={field}]"), value);
    }
    b.click("#dialog button[value=set]");
    b.until_says("#dialog .answer", "r0 is joined with r2");
    b.click("#dialog-close");
    b.until("document.querySelector('#fabric-picture [data-key^=\"circuit/0/0/\"].up.manual')");
    b.value("document.querySelector('#fabric-picture [data-key^=\"circuit/0/0/\"]').dispatchEvent(new MouseEvent('click'))");
    let press = |text: &str| {
        b.until(&format!("[...document.querySelectorAll('#details button')].some((x) => x.textContent.startsWith('{text}'))"));
        b.value(&format!("[...document.querySelectorAll('#details button')].find((x) => x.textContent.startsWith('{text}')).click()"));
    };
    for (button, heading) in
        [("Hold or move by hand", "ircuit"), ("Its port", ""), ("Set circuit", "ircuit")]
    {
        press(button);
        if heading.is_empty() {
            b.until_says("#details-h", "Port of r0 on plane 0");
        } else {
            b.until_says("#dialog-h", heading);
            b.click("#dialog-close");
        }
    }
    // With the drawer, nothing in the page is below it or beyond.
    b.until("document.body.classList.contains('with-details')");
    assert_eq!(b.value(narrow), true, "1280 pixels");
    let right = "document.querySelector('main').getBoundingClientRect().right";
    let beyond = format!(
        "[...document.querySelectorAll('main select, main table.tight')].every((x) => x.getBoundingClientRect().right <= {right})"
    );
    assert_eq!(b.value(&beyond), true);
    // An axis of nothing has its labels: 0 and more.
    b.until("Heliostat.chartOf(document.querySelector('#details .chart')).chart.getModel().getComponent('yAxis').axis.getTicksCoords().length > 2");
    b.click("#details-close");
    let span = b.value("Heliostat.page.view.span").as_f64().expect("a number");
    b.click("#zoom-in");
    assert!(b.value("Heliostat.page.view.span").as_f64().expect("a number") < span);
    // The control loop over time, and why a coflow ended.
    b.until("Heliostat.page.store.course.length > 2 && Heliostat.page.store.course.every((x) => x.cycle >= x.decide)");
    let id = d.post(&[(0, 1, 4_000_000_000)]);
    b.until("[...document.querySelectorAll('#coflow-rows tr')].some((r) => /active/.test(r.textContent))");
    d.call("DELETE", &format!("/api/v1/coflows/{id}"), None);
    b.until_says("#log-rows", "cancelled");
    b.until("![...document.querySelectorAll('#coflow-rows tr')].some((r) => /active/.test(r.textContent))");
    // What events tell is asked for in one poll of five.
    let asked = |what: &str| {
        format!(
            "performance.getEntriesByType('resource').filter((x) => x.name.includes('/api/v1/{what}')).length"
        )
    };
    b.until("Heliostat.page.store.told === 0 && (performance.clearResourceTimings(), true)");
    b.until(&format!("{} >= 10", asked("stats")));
    for what in ["circuits", "coflows?state", "coflows?ended", "jobs"] {
        let both = b.value(&format!("[{}, {}]", asked("stats"), asked(what)));
        let [polls, times] = [0, 1].map(|i| both[i].as_u64().expect("a number"));
        // One may be of a poll that was under way, and one of the polls after the last five.
        assert!((1..=polls / 5 + 2).contains(&times), "{what}: {times} times in {polls} polls");
    }
    assert_eq!(b.errors(), Vec::<String>::new());
}

#[test]
fn the_page_survives_a_restart_of_the_daemon() {
    let test = "the_page_survives_a_restart_of_the_daemon";
    if !can_run(test) {
        return;
    }
    let _turn = together();
    let name = unique("pagerestart");
    let mut d = daemon(&name, "manual", &[]);
    let address = d.api();
    let b = page(&d);
    b.until("Heliostat.page.store.stats.cycles > 3");
    d.signal("INT");
    assert_eq!(d.ended(), Some(0));
    b.until_says("#state", "ended");
    b.until_says("#notice", "The run ended at 0:");
    assert_eq!(b.value("document.querySelector('#notice').hidden"), false);
    // Another one, with another policy, at the same address.
    let listen = address.strip_prefix("http://").expect("an address");
    let mut again = heliostat();
    again
        .arg("run")
        .arg(topology())
        .args(["--name", &name, "--listen", listen, "--policy"])
        .arg(file("policies/round-robin.yaml"));
    let next = Daemon::spawn(&name, &mut again);
    next.until_says("is up");
    b.until("document.querySelector('#state').dataset.state === 'live'");
    b.until_says("#about", "round-robin");
    b.until("document.querySelectorAll('#fabric-picture .circuit.up').length");
    // Nothing of the first one's time is left.
    let ahead = b
        .value("Heliostat.page.store.cycles.at(-1).at - Heliostat.page.store.stats.now_ns")
        .as_f64()
        .expect("a number");
    assert!(ahead < 5e9, "a cycle of the first daemon is still shown, {ahead} ns ahead");
    assert_eq!(b.errors(), Vec::<String>::new());
    drop(next);
    assert_nothing_left(&name);
}

#[test]
fn time_stops_and_is_looked_back_at_and_keys_do_what_they_say() {
    let test = "time_stops_and_is_looked_back_at_and_keys_do_what_they_say";
    if !can_run(test) {
        return;
    }
    let _turn = together();
    let d = daemon(&unique("pagetime"), "round-robin", &[]);
    let b = page(&d);
    let body = json!({"name": "past", "send": true, "flows": [{"from": 0, "to": 2, "bytes": 300_000_000}]});
    assert_eq!(
        ureq::post(format!("{}/api/v1/coflows", d.api())).send_json(&body).expect("taken").status(),
        201
    );
    let row = |wanted: &str| {
        format!(
            "[...document.querySelectorAll('#coflow-rows tr')].some((r) => /{wanted}/.test(r.textContent))"
        )
    };
    // Two polls saw it on its way.
    b.until("[...Heliostat.page.store.coflowSteps.values()].some((steps) => steps.length >= 3)");
    b.until(&row("past.*finished.*100"));
    b.until("Heliostat.page.store.circuits.size > 20");
    b.click("#pause");
    b.until_says("#state", "paused");
    // The instant at which it was stopped is drawn with the next picture.
    b.until("document.querySelector('#fabric-time').textContent.startsWith(`at ${Heliostat.clock(Heliostat.page.view.at)}`)");
    let shown = b.text("#fabric-time");
    let cycles = b.value("Heliostat.page.store.cycles.length").as_u64().expect("a number");
    b.until(&format!("Heliostat.page.store.cycles.length > {}", cycles + 10));
    assert_eq!(b.text("#fabric-time"), shown, "time goes on although it is stopped");
    // What is drawn for an instant is what was true then, by the log.
    b.value(
        "(() => { const { store } = Heliostat.page;
           const s = document.querySelector('#scrub');
           // The slider has steps and ends: what it says must lie in the light of the circuit.
           [...store.circuits.values()].filter((x) => x.until < store.now() - 1e9).find((c) => {
             s.value = String(((c.up + c.until) / 2 - store.now()) / 1e9);
             const at = store.now() + Number(s.value) * 1e9;
             return at > c.up + 1e7 && at < c.until - 1e7;
           });
           s.dispatchEvent(new Event('input')); })()",
    );
    b.until_says("#scrub-at", "ago");
    b.until(
        "(() => { const { store, view } = Heliostat.page;
           const lit = [...store.circuits.values()].filter((c) => c.up <= view.at && c.until > view.at);
           const wanted = lit.map((c) => `circuit/${c.plane}/${c.input}/${c.up}`).sort();
           const drawn = [...document.querySelectorAll('#fabric-picture .circuit.up')].map((g) => g.dataset.key).sort();
           return wanted.length > 0 && wanted.join() === drawn.join(); })()",
    );
    // A coflow that has finished since was on its way then.
    b.value(
        "(() => { const { store } = Heliostat.page;
           const [c] = [...store.coflows.values()];
           const seen = store.coflowSteps.get(c.id).filter((s) => s.at < c.finished_ns - 2e8).at(-1);
           const s = document.querySelector('#scrub');
           s.value = String((seen.at - store.now()) / 1e9);
           s.dispatchEvent(new Event('input')); })()",
    );
    b.until(&row("past.*active"));
    b.until("/Open coflows\\s*1/.test(document.querySelector('#tiles').textContent)");
    assert_eq!(b.value(&row("past.*100 ?%")), json!(false), "not all of it had been received");
    b.keys("body", " ");
    b.until_says("#state", "live");
    b.until(&row("past.*finished.*100"));
    let range = b.text("#range");
    b.keys("body", "+");
    b.until(&format!("document.querySelector('#range').textContent !== {range:?}"));
    b.click("#zoom-out");
    b.until(&format!("document.querySelector('#range').textContent === {range:?}"));
    let theme = b.value("document.documentElement.dataset.theme");
    b.keys("body", "d");
    b.until(&format!("document.documentElement.dataset.theme !== {theme}"));
    b.click("#act-theme");
    b.until(&format!("document.documentElement.dataset.theme === {theme}"));
    // One stop of the tab key for the picture; arrows go from rack to rack, Enter opens.
    b.value("document.querySelector('#fabric-picture [tabindex=\"0\"]').focus()");
    b.keys("#fabric-picture [data-key='rack/0']", "\u{e014}");
    b.until("document.activeElement.dataset.key === 'rack/1'");
    b.keys("#fabric-picture [data-key='rack/1']", "\u{e007}");
    b.until_says("#details-h", "Rack r1");
    b.keys("#details-h", "\u{e00c}");
    b.until("document.querySelector('#details').hidden && document.activeElement.dataset.key === 'rack/1'");
    for (select, kinds) in [
        ("#matrix-kind", &["backlog", "sent", "over", "demand"][..]),
        ("#link-kind", &["up", "down", "0"]),
    ] {
        for kind in kinds {
            b.fill(select, kind);
            b.until(&format!("document.querySelector({select:?}).value === {kind:?}"));
        }
    }
    assert_eq!(b.errors(), Vec::<String>::new());
}

#[test]
fn a_policy_is_replaced_only_if_nobody_else_has_replaced_it() {
    let test = "a_policy_is_replaced_only_if_nobody_else_has_replaced_it";
    if !can_run(test) {
        return;
    }
    let _turn = together();
    let d = daemon(&unique("pagepolicy"), "c-through", &[]);
    let b = page(&d);
    b.click("#act-policy");
    b.until("document.querySelector('#dialog textarea').value.includes('c-through')");
    let policy = |name: &str| {
        let text = b.value("document.querySelector('#dialog textarea').value");
        let mut policy: Value = serde_json::from_str(text.as_str().expect("text")).expect("JSON");
        policy["name"] = name.into();
        policy
    };
    b.fill("#dialog textarea", &policy("mine").to_string());
    b.click("#dialog button[value=put]");
    b.until_says("#dialog .answer", "In force from the next cycle on: mine");
    b.until_says("#about", "policy mine");
    // Somebody else is faster.
    let other = policy("theirs");
    let put = ureq::put(format!("{}/api/v1/policy", d.api()))
        .header("if-match", "*")
        .send_json(&other)
        .expect("taken");
    assert_eq!(put.status(), 200);
    b.fill("#dialog textarea", &policy("late").to_string());
    b.click("#dialog button[value=put]");
    b.until_says("#dialog .answer.bad", "412");
    b.fill("#dialog textarea", "{");
    b.click("#dialog button[value=put]");
    b.until_says("#dialog .answer.bad", "not JSON");
    b.click("#dialog button[value=reload]");
    b.until("document.querySelector('#dialog textarea').value.includes('theirs')");
    let mut unfit = policy("theirs");
    unfit["scheduler"] = "no such".into();
    b.fill("#dialog textarea", &unfit.to_string());
    b.click("#dialog button[value=put]");
    b.until_says("#dialog .answer.bad", "422");
    assert_eq!(d.show("stats")["failures"], json!([]));
    assert_eq!(b.errors(), Vec::<String>::new());
}

#[test]
fn a_faulty_port_is_seen_and_repaired() {
    let test = "a_faulty_port_is_seen_and_repaired";
    if !can_run(test) {
        return;
    }
    let _turn = together();
    let name = unique("pagefault");
    let d = daemon(&name, "round-robin", &[]);
    let b = page(&d);
    let link = |state: &str| {
        let done = Command::new("ip")
            .args(["-n", &format!("{name}-ocs0"), "link", "set", "tor1", state])
            .status()
            .expect("iproute2");
        assert!(done.success(), "ip link set tor1 {state}");
    };
    link("down");
    b.until("document.querySelector('#fabric-picture .faulty[data-key=\"port/0/1\"]')");
    // On a busy machine late cycles are a bad tile, too.
    b.until(
        "[...document.querySelectorAll('#tiles .bad')].some((x) => x.textContent.includes('✕'))",
    );
    b.until_says("#log-rows", "port of r1 on plane 0 is faulty");
    // With its reason, below the header.
    b.until_says("#trouble", "The port of r1 on plane 0 is faulty: ");
    assert_eq!(b.value("document.querySelector('#trouble').getClientRects().length"), 1);
    b.value("document.querySelector('#fabric-picture [data-key=\"port/0/1\"]').dispatchEvent(new MouseEvent('click'))");
    b.until("[...document.querySelectorAll('#details button')].some((x) => x.textContent.includes('repaired'))");
    link("up");
    // The next probe may find it well before the click does.
    b.value("[...document.querySelectorAll('#details button')].find((x) => x.textContent.includes('repaired'))?.click()");
    b.until_says("#log-rows", "port of r1 on plane 0 is used again");
    b.until("!document.querySelector('#fabric-picture .faulty[data-key=\"port/0/1\"]')");
    b.until("document.querySelector('#trouble').hidden");
    // What failed is told with its reason, and one is one.
    let failed = "(({ store, view }) => {
        const failure = { what: 'cannot write the journal', why: 'no space left on device', attempts: 1, retry_at_ns: 9e9 };
        store.setStats = () => (store.stats.failures = [failure]);
        store.setStats();
        view.slow = 0; })(Heliostat.page)";
    b.value(failed);
    b.until_says(
        "#trouble",
        "Cannot write the journal: no space left on device. 1 attempt, the next at 0:09",
    );
    b.until_says("#tiles", "1 operation is retried");
    assert_eq!(b.errors(), Vec::<String>::new());
}

#[test]
fn the_page_asks_for_the_token_and_nothing_else_is_open() {
    let test = "the_page_asks_for_the_token_and_nothing_else_is_open";
    if !can_run(test) {
        return;
    }
    let _turn = together();
    let token = "a token of many characters";
    let d = daemon(&unique("pagetoken"), "manual", &["--token", token]);
    let b = Browser::open(&d.api(), 1280, 900);
    b.until_says("#dialog-h", "Token");
    let status = |path: &str| {
        b.value(&format!("(() => {{ const x = new XMLHttpRequest(); x.open('GET', {path:?}, false); x.send(); return x.status; }})()"))
    };
    for path in ["/api/v1/topology", "/openapi.json", "/docs/", "/metrics"] {
        assert_eq!(status(path), 401, "{path}");
    }
    b.fill("#dialog [name=token]", "one that is not right");
    b.click("#dialog button[value=ok]");
    b.until("document.querySelector('#dialog').open && document.querySelector('#dialog [name=token]').value === ''");
    b.fill("#dialog [name=token]", token);
    b.click("#dialog button[value=ok]");
    b.until("document.querySelector('#state').dataset.state === 'live' && !document.querySelector('#dialog').open");
    b.until_says("#network", "hybrid-4x2");
    assert_eq!(b.errors(), Vec::<String>::new());
}
