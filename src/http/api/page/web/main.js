// Joins the parts: what is fed is drawn, not more often than it can be seen.
"use strict";
(() => {
  const H = globalThis.Heliostat;
  const FAST = 100; // circuits, ms
  const SLOW = 1000; // figures, tables and charts, ms
  const RECENT = 5e9; // ns for which what was found counts as now
  const MOST_TROUBLE = 4; // lines below the header
  const RANGES = [1, 2, 5, 10, 30, 60, 120, 300, 600];

  const root = document.documentElement;
  const store = new H.Store();
  const view = { paused: false, at: 0, span: 10e9, slow: 0, fast: 0, dirty: true, window: null, hideIdle: false };

  const listener = {
    state(name, why) {
      view.state = name;
      showState();
      const text = { lost: `No connection to the daemon: ${why}. What is shown is what was last seen; it is tried again.`, ended: `The run ended at ${H.clock(store.endedAt ?? 0)}. What is shown is what was last seen.` }[name] ?? "";
      notice(text);
      if (name === "live") follow();
    },
    changed(sampled) {
      view.dirty = true;
      if (sampled) view.sampled = true;
    },
    restarted(topology) {
      [view.paused, view.window] = [false, null];
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
    const words = { connecting: "connecting", live: "live", paused: "paused", lost: "no connection", ended: "ended", locked: "token needed" };
    pill.dataset.state = shown;
    H.text(pill, words[shown] ?? shown);
  }

  // The instant that is shown.
  const shownAt = () => (view.paused ? view.at : store.now());

  function pause(on, at = store.now()) {
    if (!on) view.window = null;
    else if (!view.window) view.window = live();
    view.paused = on;
    view.at = at;
    if (on && (at < view.window[0] || at > view.window[1])) centre();
    const button = H.byId("pause");
    button.setAttribute("aria-pressed", String(on));
    H.text(button, on ? "Go live" : "Pause");
    showState();
    view.dirty = true;
    view.slow = 0;
  }

  // The range that ends now.
  function live() {
    const to = store.now();
    return [Math.max(0, to - view.span), Math.max(to, view.span / 10)];
  }

  // The range around the instant that is looked back at: what came after is there too, up to a fifth of it.
  function centre() {
    const to = Math.min(store.now(), view.at + view.span / 5);
    view.window = [Math.max(0, to - view.span), Math.max(to, view.span / 10)];
  }

  // Shows a range that ends when its last instant is shown.
  function zoomTo(from, to) {
    const [a, b] = [Math.max(0, from), Math.min(store.now(), to)];
    if (b - a < 1e6) return;
    view.window = [a, b];
    view.span = b - a;
    pause(true, b);
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
    if (view.paused) centre();
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

  const range = () => (view.paused ? view.window : live());

  // The instant and range of a link, `#run=...&at=...&span=...` in seconds, once what the daemon remembers is there.
  function follow() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    history.replaceState(null, "", location.pathname + location.search);
    if (!wanted.has("at")) return;
    const [at, span] = [Number(wanted.get("at")) * 1e9, Number(wanted.get("span")) * 1e9];
    if (!(at >= 0) || !(span > 0)) return log("The link names no instant: #run=...&at=SECONDS&span=SECONDS.");
    if (wanted.get("run") !== store.stats.started_at) return log("The link is to another run: this daemon was started later or earlier.");
    if (at > store.now()) return log(`The link is to ${H.clock(at)}, which is yet to come.`);
    view.span = Math.min(span, H.HISTORY);
    pause(true, at);
    centre();
  }

  async function link() {
    const hash = new URLSearchParams({ run: store.stats.started_at, at: (shownAt() / 1e9).toFixed(3), span: (view.span / 1e9).toFixed(3) });
    const address = `${location.origin}${location.pathname}#${hash}`;
    try {
      await navigator.clipboard.writeText(address);
      log("A link to this instant was copied. It works as long as the daemon or an open page remembers the instant.");
    } catch {
      log(address);
    }
    return address;
  }

  function draw(time) {
    requestAnimationFrame(draw);
    if (document.hidden || !store.topology || !store.stats) return;
    const width = H.byId("fabric-picture").clientWidth;
    const shown = view.hideIdle ? store.racksInUse(shownAt()) : store.topology.racks.map((r) => r.id);
    if (String(shown) !== String(store.shown)) {
      store.shown = shown;
      fabric.root = null;
    }
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
    trouble();
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
    if (store.gaps) H.text(H.byId("fabric-time"), `at ${H.clock(at)} · ${H.many(store.gaps, "event was missed", "events were missed")}`);
  }

  // What is wrong now, with its reason, below the header.
  function trouble() {
    const { failures, tampered } = store.stats;
    const all = [
      ...failures.map((f) => `${f.what[0].toUpperCase()}${f.what.slice(1)}: ${f.why}. ${H.many(f.attempts, "attempt")}, the next at ${H.clock(f.retry_at_ns, 0)}.`),
      ...store.ports.filter((p) => p.faulty).map((p) => `The port of r${p.rack} on plane ${p.plane} is faulty: ${p.faulty}.`),
      ...store.linksDown.map((pair) => `The link ${pair.join(" – ")} is down.`),
      // That it was so stays with the control loop.
      ...(tampered && tampered.until_ns > store.now() - RECENT ? [`Another process changed the network from ${H.clock(tampered.from_ns)} until ${H.clock(tampered.until_ns)}: ${tampered.what}.`] : []),
    ];
    const lines = all.length > MOST_TROUBLE ? [...all.slice(0, MOST_TROUBLE), `${all.length - MOST_TROUBLE} more.`] : all;
    const box = H.byId("trouble");
    box.hidden = lines.length === 0;
    const told = lines.join("\n");
    if (box.told !== told) box.replaceChildren(...lines.map((text) => H.el("p", {}, text)));
    box.told = told;
  }

  function legend() {
    const line = (kind) => {
      const path = H.svg("path", { d: "M1 6H29", class: "line", "stroke-width": kind === "up" ? 4 : 1.6 });
      return H.svg("svg", { width: 30, height: 12, "aria-hidden": "true" }, H.svg("g", { class: `circuit ${kind}` }, path));
    };
    const cross = H.svg("svg", { width: 14, height: 12, "aria-hidden": "true" }, H.svg("g", { class: "faulty" }, H.svg("path", { d: "M2 1l10 10m0 -10l-10 10", class: "cross" })));
    const entry = (mark, text) => H.el("span", {}, mark, text);
    const { planes, graph } = store.topology;
    const circuits = [entry(line("up"), "light, thicker with its rate while lit"), entry(line("dark"), "dark, being set up"), entry(line("promised"), "promised"), entry(line("up manual"), "set by hand")];
    const faults = [planes.length && "faulty port", graph && "link that is down"].filter(Boolean).join(", ");
    H.byId("fabric-legend").replaceChildren(...(planes.length ? circuits : []), entry(cross, faults || "fault"));
    const bars = planes.length ? "Circuits: name and colour are the receiving rack, grey is dark time" : "";
    H.byId("time-legend").replaceChildren(bars);
    H.byId("act-circuit").hidden = planes.length === 0;
    H.byId("idle-choice").hidden = Boolean(graph);
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
    const { left, right } = H.timeGrid(box.width);
    return from + Math.max(0, Math.min(1, (e.clientX - box.left - left) / (box.width - left - right))) * (to - from);
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
    // A drag chooses a range; with Shift it moves the one that is shown.
    let down = null;
    const selection = H.byId("selection");
    chart.addEventListener("pointerdown", (e) => e.pointerType !== "touch" && (down = { x: e.clientX, at: instant(e), range: range(), moved: false }));
    addEventListener("pointermove", (e) => {
      if (!down || e.buttons !== 1 || (!down.moved && Math.abs(e.clientX - down.x) < 4)) return;
      down.moved = true;
      const box = chart.getBoundingClientRect();
      if (e.shiftKey) {
        const { left, right } = H.timeGrid(box.width);
        const by = Math.max(-down.range[0], Math.min(store.now() - down.range[1], ((down.x - e.clientX) * (down.range[1] - down.range[0])) / (box.width - left - right)));
        view.window = down.range.map((t) => t + by);
        return pause(true, view.window[1]);
      }
      const [a, b] = [Math.min(down.x, e.clientX), Math.max(down.x, e.clientX)];
      selection.hidden = false;
      [selection.style.left, selection.style.width] = [`${a - box.left}px`, `${b - a}px`];
    });
    addEventListener("pointerup", (e) => {
      if (down?.moved && !selection.hidden) zoomTo(...[down.at, instant(e)].sort((a, b) => a - b));
      selection.hidden = true;
      setTimeout(() => (down = null));
    });
    chart.addEventListener("click", (e) => {
      if (down?.moved) return;
      const at = instant(e);
      if (at > 0 && at < store.now()) pause(true, at);
    });
    H.byId("link").addEventListener("click", link);
    H.byId("hide-idle").addEventListener("change", (e) => {
      view.hideIdle = e.target.checked;
      view.dirty = true;
    });
    const menu = H.byId("act-menu");
    menu.addEventListener("click", () => menu.setAttribute("aria-expanded", String(menu.parentElement.classList.toggle("open"))));
    // On paper everything is seen.
    addEventListener("beforeprint", () => {
      H.seeAll = true;
      if (store.stats) slow(shownAt());
      H.drawNow();
    });
    addEventListener("afterprint", () => (H.seeAll = false));
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
  H.page = { store, view, feed, details, link };
  H.save(store, view, range);
})();
