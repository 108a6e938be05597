//! What the pictures say: that they can be read, count everything, and do not mislead.

use serde_json::{Value, json};

use super::browser::Browser;
use super::views::{can_run, daemon, page};
use crate::support::{Daemon, together, unique};

fn post(d: &Daemon, name: &str, from: u64, to: u64, bytes: u64) {
    let body =
        json!({"name": name, "send": true, "pairs": [{"from": from, "to": to, "bytes": bytes}]});
    assert_eq!(
        ureq::post(format!("{}/api/v1/coflows", d.api())).send_json(&body).expect("taken").status(),
        201
    );
}

/// Puts a circuit by hand and waits until it has light.
fn circuit(d: &Daemon, b: &Browser, input: u64, output: u64) {
    d.call("PUT", &format!("/api/v1/circuits/0/{input}"), Some(&json!({ "output": output })));
    b.until(&format!(
        "document.querySelector('#fabric-picture [data-key^=\"circuit/0/{input}/\"].up')"
    ));
}

#[test]
fn a_phone_shows_all_and_a_pressed_button_can_be_read() {
    let test = "a_phone_shows_all_and_a_pressed_button_can_be_read";
    if !can_run(test) {
        return;
    }
    let _turn = together();
    let d = daemon(&unique("pagephone"), "manual", &[]);
    let b = Browser::phone(&d.api(), 390, 844);
    b.until("document.querySelector('#state').dataset.state === 'live' && document.querySelectorAll('#tiles .tile').length === 8");
    assert_eq!(b.value("[innerWidth, document.documentElement.scrollWidth]"), json!([390, 390]));
    let cut = "[...document.querySelectorAll('#tiles dt, #tiles dd, #tiles .sub')].filter((e) => e.scrollWidth > e.clientWidth)";
    assert_eq!(b.value(&format!("{cut}.map((e) => e.textContent)")), json!([]));
    assert_eq!(b.value("document.querySelector('#act-coflow').getClientRects().length"), 0);
    b.click("#act-menu");
    b.click("#act-policy");
    b.until("document.querySelector('#dialog').open");
    b.click("#dialog-close");
    for theme in ["light", "dark"] {
        b.until(&format!("document.documentElement.dataset.theme === '{theme}' || document.querySelector('#act-theme').click()"));
        b.click("#pause");
        b.until_says("#pause", "Go live");
        let colours = "(({ color, backgroundColor }) => [color, backgroundColor])(getComputedStyle(document.querySelector('#pause')))";
        let colours = b.value(colours);
        assert_ne!(colours[0], colours[1], "{theme}");
        b.click("#pause");
        b.until_says("#pause", "Pause");
    }
    assert_eq!(b.errors(), Vec::<String>::new());
}

#[test]
fn time_is_linear_rates_are_steps_from_the_start_and_all_coflows_are_counted() {
    let test = "time_is_linear_rates_are_steps_from_the_start_and_all_coflows_are_counted";
    if !can_run(test) {
        return;
    }
    let _turn = together();
    let d = daemon(&unique("pagesteps"), "manual", &[]);
    post(&d, "before", 0, 1, 3_000_000);
    crate::support::until("a coflow ended before the page is opened", || {
        d.show("stats")["coflows_finished"] == 1
    });
    let b = page(&d);
    circuit(&d, &b, 0, 2);
    for k in 0..13 {
        post(&d, &format!("many-{k}"), 0, 2, 200_000_000);
    }
    // Ten have lanes; three are counted.
    b.until("Heliostat.page.store.coflowLanes().more.some((x) => x.many === 3)");
    b.until("Heliostat.page.store.coflowLanes().placed.length >= 11");
    let option = "Heliostat.chartOf(document.querySelector('#timeline')).chart.getOption()";
    b.until(&format!("{option}.yAxis[2].data.at(-1) === 'more'"));
    b.value(
        "(() => { for (let k = 0; k < 9; k += 1) document.querySelector('#zoom-out').click() })()",
    );
    // Rates begin with the run; each is a step from one look to the next, and demand has an axis in
    // bytes.
    let eps = format!("{option}.series.find((s) => s.name === 'over the EPS')");
    b.until(&format!("{eps}.data[0][0] === 0 && {eps}.data.some((p) => p[1] > 0 && p[0] < Heliostat.page.store.samples[0].from / 1e6)"));
    assert_eq!(b.value(&format!("{eps}.step")), "end");
    assert_eq!(
        b.value(&format!(
            "[{option}.yAxis[1].show, {option}.yAxis[1].axisLabel.formatter(2e6).endsWith('MB')]"
        )),
        json!([true, true])
    );
    // A cell of the heat map is as wide as its time.
    let heat = "Heliostat.chartOf(document.querySelector('#utilisation')).chart.getOption()";
    b.until(&format!("{heat}.series?.[0]?.data?.length >= 12"));
    assert_eq!(b.value(&format!("{heat}.xAxis[0].type")), "value");
    let meets = format!(
        "((cells) => cells.every((c, k) => k < 4 || c[0] === cells[k - 4][1]))({heat}.series[0].data)"
    );
    assert_eq!(b.value(&meets), true);
    // A circuit that always has light carries what its port does; it does not flicker in the tile.
    b.until("Heliostat.page.store.samples.some((s) => s.lit[0] === 1 && s.port[0] > 1e8)");
    b.until("/Circuits lit1\\.0 of 4/.test(document.querySelector('#tiles').textContent)");
    b.until("document.querySelector('#fabric-picture .circuit.up title').textContent.includes('100\\u202f% of the last second')");
    // One that has light for a part of a second carries more while it has.
    let half = "(({ store }) => { const s = { ...store.samples.at(-1), lit: new Float32Array([0.25, 0, 0, 0]), port: [1e8, 0, 0, 0] }; \
                return [store.litRate(s, 0, 0), store.litRate(s, 0, 1)]; })(Heliostat.page)";
    assert_eq!(b.value(half), json!([400_000_000, null]));
    // Racks without traffic are left out on demand.
    b.click("#hide-idle");
    b.until("document.querySelectorAll('#fabric-picture .rack-item').length === 2");
    assert_eq!(
        b.value(
            "[...document.querySelectorAll('#fabric-picture .rack-name')].map((t) => t.textContent)"
        ),
        json!(["r0", "r2"])
    );
    b.until(&format!("{option}.yAxis[3].data.join() === 'r0,r2'"));
    b.click("#hide-idle");
    b.until("document.querySelectorAll('#fabric-picture .rack-item').length === 4");
    assert_eq!(b.errors(), Vec::<String>::new());
}

#[test]
fn a_range_is_chosen_linked_to_saved_and_printed() {
    let test = "a_range_is_chosen_linked_to_saved_and_printed";
    if !can_run(test) {
        return;
    }
    let _turn = together();
    let d = daemon(&unique("pagerange"), "round-robin", &[]);
    let b = page(&d);
    post(&d, "quoted, \"name\"", 0, 2, 3_000_000);
    b.until("[...document.querySelectorAll('#coflow-rows tr')].some((r) => /finished/.test(r.textContent))");
    b.until("Heliostat.page.store.samples.length > 4 && Heliostat.page.store.circuits.size > 20");
    // A drag over the chart chooses a range, and the picture stands still.
    b.value(
        "(() => { const chart = document.querySelector('#timeline');
           const box = chart.getBoundingClientRect();
           const at = (type, x, buttons) => chart.dispatchEvent(
             new PointerEvent(type, { clientX: box.left + x, clientY: box.top + 60, buttons, bubbles: true }));
           [at('pointerdown', 900, 1), at('pointermove', 1000, 1), at('pointerup', 1000, 0)]; })()",
    );
    b.until("Heliostat.page.view.paused");
    let range = b.value("Heliostat.page.view.window");
    let span = b.value("Heliostat.page.view.span").as_f64().expect("a number");
    let (from, to) = (range[0].as_f64().expect("a number"), range[1].as_f64().expect("a number"));
    assert!((to - from - span).abs() < 1.0 && span < 2e9, "{from} to {to}, {span}");
    // A link to it opens there, as long as the daemon is the same.
    let link = b.value("Heliostat.page.link()");
    let at = b.value("Heliostat.page.view.at").as_f64().expect("a number");
    let open = |hash: &str| {
        let there = Browser::open(&format!("{}/{hash}", d.api()), 1280, 900);
        there.until("document.querySelector('#state').dataset.state !== 'connecting'");
        there
    };
    let hash = link.as_str().and_then(|l| l.split_once('#')).expect("a hash").1;
    let there = open(&format!("#{hash}"));
    there.until("Heliostat.page.view.paused");
    let shown = there.value("Heliostat.page.view.at").as_f64().expect("a number");
    assert!((shown - at).abs() < 1e6, "{shown}, not {at}");
    let other = open("#run=2001-01-01T00%3A00%3A00Z&at=1&span=1");
    other.until_says("#notice", "another run");
    assert_eq!(other.value("Heliostat.page.view.paused"), false);
    drop((there, other));
    // Pictures are PNG, tables are CSV with as many columns in every row.
    let files: Value = b.value(
        "Promise.all(Object.entries(Heliostat.panelFiles).filter(([id]) => id !== 'jobs')
           .map(async ([id, [png, csv]]) => [id, png && (await png()).slice(0, 22), csv()]))",
    );
    for file in files.as_array().expect("a list") {
        let (png, csv) = (&file[1], file[2].as_str().expect("text"));
        assert!(png.is_null() || png == "data:image/png;base64,", "{file}");
        let rows: Vec<&str> = csv.lines().collect();
        assert!(rows.len() > 1, "{file}");
        if !csv.contains('"') {
            assert!(
                rows.iter().all(|r| r.matches(',').count() == rows[0].matches(',').count()),
                "{file}"
            );
        }
    }
    assert!(files.to_string().contains("\\\"quoted, \\\"\\\"name\\\"\\\"\\\""), "{files}");
    assert_eq!(b.value("document.querySelectorAll('#fabric [data-save]').length"), 2);
    // On paper no chart is empty.
    b.value("dispatchEvent(new Event('beforeprint'))");
    let charts = "['timeline', 'matrix', 'utilisation', 'course', 'ops'] \
                  .map((id) => Heliostat.chartOf(document.getElementById(id)).chart.getOption()?.series?.length > 0)";
    assert_eq!(b.value(charts), json!([true, true, true, true, true]));
    assert_eq!(b.errors(), Vec::<String>::new());
}
