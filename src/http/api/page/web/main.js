// Joins the parts: what is fed is drawn, not more often than it can be seen.
"use strict";
(() => {
  const H = globalThis.Heliostat;
  const FAST = 100; // circuits, ms
  const SLOW = 1000; // figures, tables and charts, ms
  const RANGES = [1, 2, 5, 10, 30, 60, 120, 300, 600];

  const root = document.documentElement;
  const store = new H.Store();
  const view = { paused: false, at: 0, span: 10e9, slow: 0, fast: 0, dirty: true };

  const listener = {
    state(name, why) {
      view.state = name;
      showState();
      const text = name === "lost" ? `No connection to the daemon: ${why}. What is shown is what was last seen; it is tried again.` : "";
      notice(text);
    },
    changed(sampled) {
      view.dirty = true;
      if (sampled) view.sampled = true;
    },
    restarted(topology) {
      view.paused = false;
      fabric.root = null;
      details.close();
      H.restartCharts();
      view.restarted = true;
      log(`The daemon was started again: ${topology.name}.`);
    },
    needsToken: () => actions.token(),
  };

  const feed = new H.Feed(store, listener);
  const actions = new H.Actions(store, feed, () => feed.poll(false).catch(() => {}));
  const details = new H.Details(store, actions, feed);
  const pick = (key) => details.open(key);
  const fabric = new H.Fabric(H.byId("fabric-picture"), store, pick);
  const panels = new H.Panels(store, pick);
  const jobs = new H.Jobs(store);

  function log(text) {
    H.text(H.byId("notice"), text);
    H.byId("notice").hidden = false;
    setTimeout(() => notice(""), 8000);
  }

  function notice(text) {
    H.byId("notice").hidden = !text;
    if (text) H.text(H.byId("notice"), text);
  }

  function showState() {
    const pill = H.byId("state");
    const shown = view.state === "live" && view.paused ? "paused" : view.state;
    const words = { connecting: "connecting", live: "live", paused: "paused", lost: "no connection", locked: "token needed" };
    pill.dataset.state = shown;
    H.text(pill, words[shown] ?? shown);
  }

  // The instant that is shown.
  const shownAt = () => (view.paused ? view.at : store.now());

  function pause(on, at = store.now()) {
    view.paused = on;
    view.at = at;
    const button = H.byId("pause");
    button.setAttribute("aria-pressed", String(on));
    H.text(button, on ? "Go live" : "Pause");
    showState();
    view.dirty = true;
    view.slow = 0;
  }

  // Looks back by so much, from what is shown now.
  function back(ns) {
    const at = Math.max(store.now() - H.HISTORY, 0, Math.min(store.now(), shownAt() + ns));
    if (store.now() - at < 2e8) pause(false);
    else pause(true, at);
  }

  function zoom(step) {
    const k = RANGES.findIndex((s) => s * 1e9 >= view.span);
    view.span = RANGES[Math.max(0, Math.min(RANGES.length - 1, k + step))] * 1e9;
    view.slow = 0;
    view.dirty = true;
  }

  function header() {
    const { topology, stats, policy } = store;
    if (!topology || !stats) return;
    H.text(H.byId("network"), topology.name);
    const words = [`${topology.racks.length} racks, ${topology.hosts.length} hosts`, `policy ${policy?.value.name ?? "…"}`, `mechanism ${stats.mechanism}`, `up ${H.clock(store.now(), 0)}`];
    H.text(H.byId("about"), words.join(" · "));
    document.title = `${topology.name} · Heliostat`;
  }

  function range() {
    // The right edge is the instant shown; looking back, what came after is there too, up to a fifth of the range.
    const at = shownAt();
    const to = view.paused ? Math.min(store.now(), at + view.span / 5) : at;
    return [Math.max(0, to - view.span), Math.max(to, view.span / 10)];
  }

  function draw(time) {
    requestAnimationFrame(draw);
    if (document.hidden || !store.topology || !store.stats) return;
    const width = H.byId("fabric-picture").clientWidth;
    if (!fabric.root || Math.abs(width - view.width) > 4) {
      if (!view.width) performance.mark("first picture");
      view.width = width;
      fabric.layout();
      legend();
      view.slow = 0;
    }
    const at = shownAt();
    if (time - view.fast >= FAST && (view.dirty || !view.paused)) {
      view.fast = time;
      fabric.update(at, store.sampleAt(at));
    }
    if (time - view.slow >= SLOW || (view.sampled && time - view.slow > SLOW / 2)) {
      view.slow = time;
      view.sampled = false;
      slow(at);
    }
  }

  function slow(at) {
    header();
    panels.update(at);
    jobs.update(at);
    const [from, to] = range();
    if (H.isSeen(H.byId("timeline"))) panels.showTimeline(from, to, at);
    details.update(at);
    H.text(H.byId("range"), H.span(view.span));
    const ago = (store.now() - at) / 1e9;
    const scrub = H.byId("scrub");
    const oldest = -Math.min(H.HISTORY, store.now()) / 1e9;
    scrub.min = String(oldest.toFixed(1));
    if (document.activeElement !== scrub || !view.paused) scrub.value = String(-ago);
    const words = view.paused ? `${H.clock(at)} (${H.span(ago * 1e9)} ago)` : "now";
    H.text(H.byId("scrub-at"), words);
    scrub.setAttribute("aria-valuetext", words);
    H.text(H.byId("fabric-time"), `at ${H.clock(at)}`);
    if (store.gaps) H.text(H.byId("fabric-time"), `at ${H.clock(at)} · ${store.gaps} events were missed`);
  }

  function legend() {
    const line = (kind) => {
      const path = H.svg("path", { d: "M1 6H29", class: "line", "stroke-width": kind === "up" ? 4 : 1.6 });
      return H.svg("svg", { width: 30, height: 12, "aria-hidden": "true" }, H.svg("g", { class: `circuit ${kind}` }, path));
    };
    const cross = H.svg("svg", { width: 14, height: 12, "aria-hidden": "true" }, H.svg("g", { class: "faulty" }, H.svg("path", { d: "M2 1l10 10m0 -10l-10 10", class: "cross" })));
    const entry = (mark, text) => H.el("span", {}, mark, text);
    const { planes, graph } = store.topology;
    const circuits = [entry(line("up"), "light, thicker with its rate"), entry(line("dark"), "dark, being set up"), entry(line("promised"), "promised"), entry(line("up manual"), "set by hand")];
    const faults = [planes.length && "faulty port", graph && "link that is down"].filter(Boolean).join(", ");
    H.byId("fabric-legend").replaceChildren(...(planes.length ? circuits : []), entry(cross, faults || "fault"));
    const bars = planes.length ? "Bars: light from a sending rack; name and colour are the receiving rack; grey is dark time" : "Bars: coflows";
    H.byId("time-legend").replaceChildren(bars);
    H.byId("act-circuit").hidden = planes.length === 0;
    H.byId("timeline").setAttribute("aria-label", planes.length ? "Circuits by sending rack over time" : "Coflows and rates over time");
  }

  function theme(name) {
    root.dataset.theme = name;
    H.byId("act-theme").setAttribute("aria-pressed", String(name === "dark"));
    H.restartCharts();
    view.slow = 0;
  }

  // From a place on the time axis to an instant.
  function instant(e) {
    const box = H.byId("timeline").getBoundingClientRect();
    const [from, to] = range();
    return from + ((e.clientX - box.left - 82) / (box.width - 100)) * (to - from);
  }

  function wire() {
    H.byId("pause").addEventListener("click", () => pause(!view.paused));
    H.byId("zoom-in").addEventListener("click", () => zoom(-1));
    H.byId("zoom-out").addEventListener("click", () => zoom(1));
    H.byId("scrub").addEventListener("input", (e) => {
      const ago = -Number(e.target.value) * 1e9;
      if (ago < 2e8) pause(false);
      else pause(true, store.now() - ago);
    });
    for (const id of ["matrix-kind", "link-kind"]) H.byId(id).addEventListener("change", () => (view.slow = 0));
    H.byId("act-theme").addEventListener("click", () => {
      const next = H.isDark() ? "light" : "dark";
      localStorage.setItem("heliostat-theme", next);
      theme(next);
    });
    H.byId("act-coflow").addEventListener("click", () => actions.coflow());
    H.byId("act-circuit").addEventListener("click", () => actions.circuit());
    H.byId("act-policy").addEventListener("click", () => actions.policy());
    const chart = H.byId("timeline");
    chart.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && !e.shiftKey) return;
      e.preventDefault();
      zoom(e.deltaY > 0 ? 1 : -1);
    }, { passive: false });
    let down = null;
    chart.addEventListener("pointerdown", (e) => (down = { x: e.clientX, at: shownAt(), moved: false }));
    chart.addEventListener("pointermove", (e) => {
      if (!down || e.buttons !== 1 || Math.abs(e.clientX - down.x) < 4) return;
      down.moved = true;
      const per = view.span / (chart.clientWidth - 100);
      pause(true, Math.max(0, Math.min(store.now(), down.at - (e.clientX - down.x) * per)));
    });
    addEventListener("pointerup", () => setTimeout(() => (down = null)));
    chart.addEventListener("click", (e) => {
      if (down?.moved) return;
      const at = instant(e);
      if (at > 0 && at < store.now()) pause(true, at);
    });
    document.addEventListener("keydown", keys);
    document.addEventListener("visibilitychange", () => (view.slow = 0));
  }

  function keys(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "Escape") return details.close();
    if (H.byId("dialog").open || e.target.closest?.("input, textarea, select")) return;
    const onButton = e.target.closest?.("button, a");
    const run = { "+": () => zoom(-1), "=": () => zoom(-1), "-": () => zoom(1), ArrowLeft: () => back(-view.span / 10), ArrowRight: () => back(view.span / 10), d: () => H.byId("act-theme").click(), " ": () => !onButton && (e.preventDefault(), pause(!view.paused)) }[e.key];
    if (run && !(e.key.startsWith("Arrow") && e.target.closest?.(".scroll"))) run();
  }

  const dark = matchMedia("(prefers-color-scheme: dark)");
  theme(localStorage.getItem("heliostat-theme") ?? (dark.matches ? "dark" : "light"));
  dark.addEventListener("change", (e) => localStorage.getItem("heliostat-theme") ?? theme(e.matches ? "dark" : "light"));
  H.onSeen = () => (view.slow = 0);
  wire();
  showState();
  feed.run();
  requestAnimationFrame(draw);
  // For tests: what the page knows.
  H.page = { store, view, feed, details };
})();
