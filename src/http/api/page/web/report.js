// A report of runs that are over: tables, distributions and timelines, from the data that the file carries.
"use strict";
(() => {
  const H = globalThis.Heliostat;
  const { title, version, runs, differs } = JSON.parse(document.getElementById("data").textContent);
  const MOST_ROWS = 60; // of a timeline
  const MOST_LINES = 300; // of the table
  const DASHES = ["solid", [8, 4], [2, 3], [12, 4, 2, 4]]; // of lines in one chart
  const draws = []; // run again after a change of colours or axes

  const colour = (k) => H.palette()[k % 8];
  // Of many lines no two have the same colour and dashes: there are 32 pairs.
  const dash = (k) => DASHES[(k + Math.floor(k / 8)) % 4];
  const FEW = 8; // runs side by side; of more, what is over time is folded
  const ms = (ns) => ns / 1e6;
  // All panels over time have one axis, of all runs that stand alone, and one left edge.
  const LAST = Math.max(0, ...runs.filter((r) => !r.means).map((r) => Math.max(r.ended_ns ?? 0, r.utilisation?.until_ns ?? 0)));
  const LEFT = 110;
  // On a linear axis, times that differ by more lie on each other.
  const WIDE = 20;
  const times = runs.flatMap((r) => [...(r.coflows ?? []).map((c) => c.cct_ns), ...(r.jobs ?? []).map((j) => j.jct_ns)]).filter((t) => t > 0);
  const [least, most] = times.reduce(([a, b], t) => [Math.min(a, t), Math.max(b, t)], [Infinity, 0]);
  const view = { log: most > WIDE * least };

  let into = H.byId("parts");

  function panel(name, wide, note) {
    const body = H.el("div", { class: "body" });
    const heading = H.el("div", { class: "head" }, H.el("h2", {}, name), note ? H.el("p", { class: "when" }, note) : null);
    into.append(H.el("section", { class: `panel ${wide ? "wide" : "half"}` }, heading, body));
    return body;
  }

  function chart(body, high, label, draw) {
    const box = H.el("div", { class: "chart", role: "img", "aria-label": label });
    box.style.height = `${high}px`;
    box.style.flex = "none";
    body.append(box);
    // What is folded away is drawn once it is opened.
    box.show = () => box.closest("details:not([open])") || draw(H.chartOf(box));
    draws.push(box.show);
  }

  // The names of lines above their chart, which takes its place below them however many they are.
  function legend(body, lines) {
    body.append(H.el("p", { class: "legend" }, lines.map(({ name, colour: of, dash: dashes }) => {
      const line = H.svg("line", { x1: 0, y1: 5, x2: 30, y2: 5, "stroke-width": 2.5, "stroke-dasharray": dashes === "solid" ? "none" : dashes.join(" ") });
      draws.push(() => line.setAttribute("stroke", of()));
      const sample = H.svg("svg", { width: 30, height: 10, "aria-hidden": "true" });
      sample.append(line);
      return H.el("span", {}, sample, name);
    })));
  }

  // The beginning of a hash, and all of it where one points at it.
  const hash = (hex) => H.el("code", { title: hex }, `${hex.slice(0, 12)}…`);

  // A number of a run, or of several its mean with half of its 95 % interval.
  const sum = (...keys) => (r) => keys.map((key) => r.means?.[key] ?? r.summary?.[key]).find((v) => v !== undefined && v !== null);
  const mean = (v) => v?.mean ?? v;
  const told = (v, format) => (typeof v !== "object" || v.mean === undefined ? format(v) : `${format(v.mean)}${v.half === null ? "" : ` ± ${format(v.half)}`}`);
  const count = (x) => (Number.isInteger(x) ? String(x) : x.toFixed(1));
  // Without circuits in any run, rows of circuits say nothing.
  const lit = runs.some((r) => mean(sum("ocs_share")(r)) > 0 || mean(r.means?.circuits_set ?? r.stats?.circuits_set) > 0);
  // What is known of a run, by the names of its result.
  const rows = [
    ["policy", (r) => r.about.policy],
    ["placement", (r) => r.about.placement],
    ["topology", (r) => r.about.topology],
    ["workload", (r) => r.about.workload],
    ["mechanism", (r) => r.about.mechanism],
    ["(!) not what its name says", (r) => r.caveats?.join("; ")],
    ["options", (r) => Object.entries(r.options ?? {}).map(([k, v]) => `${k} ${v}`).join(", ")],
    ...(differs ?? []).map(([key, values]) => [`policy: ${key}`, (r) => values[runs.indexOf(r)]]),
    ["end of the run", (r) => (r.about.end === "finished" ? null : r.about.end)],
    ["runs", (r) => (runs.some((x) => x.runs > 1) ? r.runs || 1 : null), String],
    ["finished", sum("finished", "jobs_finished", "coflows_finished"), count],
    ["unfinished", (r) => (mean(sum("unfinished", "jobs_unfinished", "coflows_unfinished")(r)) ? sum("unfinished", "jobs_unfinished", "coflows_unfinished")(r) : null), count],
    ["makespan", sum("makespan_ns"), H.span, true],
    ["average JCT", sum("average_jct_ns"), H.span, true],
    ["median JCT", sum("median_jct_ns"), H.span, true],
    ["p95 JCT", sum("p95_jct_ns"), H.span, true],
    ["average CCT", sum("average_cct_ns"), H.span, true],
    ["median CCT", sum("median_cct_ns"), H.span, true],
    ["p95 CCT", sum("p95_cct_ns"), H.span, true],
    ["OCS share", (r) => (lit ? sum("ocs_share")(r) : null), (x) => H.percent(x, 1)],
    ["bytes received", (r) => r.summary?.received_bytes, H.bytes],
    ["bytes sent again", (r) => r.summary?.sent_again_bytes, H.bytes],
    ["circuits set", (r) => r.means?.circuits_set ?? r.stats?.circuits_set, count],
    ["dark time achieved, p50, p99", (r) => (r.stats?.dark_achieved?.count ? r.stats.dark_achieved : null), (q) => `${H.span(q.p50_ns)}, ${H.span(q.p99_ns)}`],
    ["control cycle, p50, p99", (r) => (r.stats?.cycle?.max_ns ? r.stats.cycle : null), (q) => `${H.span(q.p50_ns)}, ${H.span(q.p99_ns)}`],
    ["late cycles", (r) => r.stats?.late_cycles || null, String],
    ["packets late, misdelivered", (r) => (r.summary?.late_packets || r.summary?.misdelivered ? r.summary : null), (s) => `${s.late_packets}, ${s.misdelivered}`],
    ["seed", (r) => r.origin?.seed, String],
    ["Heliostat's version", (r) => r.origin?.version],
    ["machine", (r) => r.origin?.host],
    ["begun", (r) => r.origin?.started_at],
    ...["topology", "policy", "workload"].map((what) => [`SHA-256 of the ${what}`, (r) => r.origin?.[`${what}_sha256`], hash]),
  ];

  // What a run carried: times of unlike loads have no ratio.
  const load = (r) => JSON.stringify((r.jobs?.map((j) => [j.name, j.tasks, j.shuffle_bytes]) ?? r.coflows?.map((c) => [c.name, c.bytes]) ?? [r.about.workload]).sort());
  const loads = runs.map(load);
  const others = runs.filter((_, k) => loads[k] !== loads[0]).map((r) => r.label);
  const multiples = [
    others.length + 1 < runs.length && `times in brackets are against ${runs[0].label}: multiples of its own`,
    others.length && `no multiples for ${others.length > 3 ? `${others.length} runs` : others.join(", ")}: other jobs or coflows`,
  ];

  function summary() {
    const body = panel("Runs", true, [...multiples, runs.some((r) => r.means) && "of several runs: means ± half of a 95 % interval, and ratios of these means"].filter(Boolean).join("; "));
    const head = H.el("tr", {}, H.el("th"), runs.map((r, k) => {
      const mark = H.el("span", { class: "swatch" });
      draws.push(() => (mark.style.background = colour(k)));
      return H.el("th", { scope: "col" }, mark, ` ${r.label}`);
    }));
    const many = runs.length > FEW;
    const lines = rows.filter(([, of]) => runs.some((r) => of(r) !== undefined && of(r) !== null && of(r) !== "")).map(([name, of, format = String, compared]) => {
      const first = mean(of(runs[0]));
      // Of many runs, what all have in common is said once.
      const same = many && !compared && runs.every((r) => JSON.stringify(of(r)) === JSON.stringify(of(runs[0])));
      if (same) return H.el("tr", {}, H.el("th", { scope: "row" }, name), H.el("td", { colspan: runs.length }, H.el("span", { class: "stays" }, told(of(runs[0]), format), H.el("span", { class: "when" }, " in all runs"))));
      const cell = (r, k) => {
        const v = of(r);
        if (v === undefined || v === null || v === "") return H.el("td", {}, "–");
        return H.el("td", {}, told(v, format), compared && k && first && loads[k] === loads[0] ? H.el("span", { class: "when" }, ` (${H.ratio(mean(v) / first)})`) : null);
      };
      return H.el("tr", {}, H.el("th", { scope: "row" }, name), runs.map(cell));
    });
    body.append(H.el("div", { class: "scroll free" }, H.el("table", { class: "even", style: `--runs: ${runs.length}` }, H.el("thead", {}, head), H.el("tbody", {}, lines))));
  }

  function distribution(name, list, key) {
    const having = runs.map((r, k) => ({ r, k, values: r[list]?.map((x) => x[key]) })).filter((x) => x.values?.length);
    if (!having.length) return;
    const unit = list === "jobs" ? "jobs" : "coflows";
    const body = panel(name, having.length && !(runs.some((r) => r.jobs?.length) && runs.some((r) => r.coflows?.length)), `share of the ${unit} that finished within a time`);
    legend(body, having.map(({ r, k }) => ({ name: r.label, colour: () => colour(k), dash: dash(k) })));
    chart(body, 340, `${name} of ${having.map((x) => x.r.label).join(", ")}`, (c) => {
      const series = having.map(({ r, k, values }) => ({ name: r.label, colour: colour(k), step: "end", dash: dash(k), data: H.cdf(values).map(([x, y]) => [ms(x), y]) }));
      const all = having.flatMap((x) => x.values.filter((v) => v));
      const start = view.log ? 10 ** Math.floor(Math.log10(ms(all.reduce((a, b) => Math.min(a, b), Infinity)))) : 0;
      H.lines(c, { legend: false, series, x: { log: view.log, min: start, name: list === "jobs" ? "job completion time" : "coflow completion time", format: (v) => H.span(v * 1e6), tip: (p) => [H.span(p[0].value[0] * 1e6), ...p.map((q) => `${q.seriesName}: ${H.percent(q.value[1], 1)}`)].join("\n") }, y: { max: 1, interval: 0.25, name: `share of ${unit}`, format: (v) => H.percent(v) }, left: 76 });
    });
  }

  // A timeline: rows of bars [row, dark from, from, until, number].
  function timeline(name, note, names, bars, tip, labelled = "") {
    const row = Math.max(3, Math.min(22, 900 / Math.max(1, names.length)));
    const body = panel(name, true, note);
    chart(body, Math.max(90, row * names.length + 50), name, (c) => {
      const of = c.c;
      c.set({
        ...H.base(of),
        grid: { left: LEFT, right: 18, top: 8, bottom: 30 },
        tooltip: H.tooltip(of, { formatter: (p) => tip(p.value) }),
        dataZoom: [{ type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseMove: true, filterMode: "weakFilter" }],
        xAxis: H.axis(of, { type: "value", min: 0, max: ms(LAST), axisLabel: { formatter: (v) => H.clock(v * 1e6, 0), hideOverlap: true } }),
        yAxis: H.axis(of, { type: "category", data: names, inverse: true, splitLine: { show: false }, axisLabel: { interval: row < 12 ? Math.ceil(12 / row) - 1 : 0, width: 100, overflow: "truncate" } }),
        series: [H.circuitBars(c, bars, 1, labelled)],
      });
    });
  }

  function coflowTimeline(r) {
    if (!r.coflows?.length || r.means) return;
    const shown = [...r.coflows].sort((a, b) => a.arrival_ns - b.arrival_ns).slice(0, MOST_ROWS);
    const bars = shown.map((c, k) => [k, ms(c.arrival_ns), ms(c.arrival_ns), ms(c.finished_ns ?? r.ended_ns), -1]); // no colour: those are of racks
    const note = r.coflows.length > MOST_ROWS ? `the first ${MOST_ROWS} of ${r.coflows.length}, from arrival to finish` : "from arrival to finish";
    timeline(`Coflows: ${r.label}`, note, shown.map((c) => c.name), bars, ([k, , from, to]) => `${shown[k].name}: ${H.bytes(shown[k].bytes)}, from ${H.clock(from * 1e6, 2)} for ${H.span((to - from) * 1e6)}`, null);
  }

  function circuitTimeline(r) {
    if (!r.circuits?.length) return;
    const lanes = [...new Set(r.circuits.map((c) => c.plane))].sort((a, b) => a - b);
    const racks = 1 + Math.max(...r.circuits.map((c) => Math.max(c.input, c.output)));
    const names = lanes.flatMap((p) => Array.from({ length: racks }, (_, k) => (lanes.length > 1 ? `plane ${p} r${k}` : `r${k}`)));
    const bars = r.circuits.map((c) => [lanes.indexOf(c.plane) * racks + c.input, ms(c.setup), ms(c.up), ms(c.until), c.output, c.demand ?? -1]);
    timeline(`Circuits: ${r.label}`, "a row for every sending rack; name and colour are the receiving rack, grey is dark time", names, bars, ([k, setup, up, until, output, demand]) => `${names[k]} → r${output}${demand >= 0 ? `\ndecided for a demand of ${H.bytes(demand)}` : ""}\ndark ${H.span((up - setup) * 1e6)}, light from ${H.clock(up * 1e6, 2)} for ${H.span((until - up) * 1e6)}`, "r");
  }

  function taskTimeline(r) {
    if (!r.timeline?.length) return;
    const key = (t) => `${t.host}, slot ${t.slot}`;
    const names = [...new Set(r.timeline.map(key))].sort(new Intl.Collator("en", { numeric: true }).compare);
    const place = new Map(names.map((name, k) => [name, k]));
    const bars = r.timeline.map((t) => [place.get(key(t)), ms(t.started_ns), ms(t.computes_ns ?? t.ended_ns), ms(t.ended_ns), t.job, t.stage, t.task]);
    const job = (k) => r.jobs?.find((j) => j.id === k)?.name ?? `job ${k}`;
    timeline(`Tasks on slots: ${r.label}`, "number and colour are the job; grey is waiting for input", names, bars, ([k, from, computes, to, j, stage, task]) => `${job(j)}, stage ${stage}, task ${task}\n${names[k]}: waited ${H.span((computes - from) * 1e6)}, computed ${H.span((to - computes) * 1e6)}`);
  }

  // Sums over links of a kind, as shares of what they can carry.
  function utilisation(r) {
    if (r.utilisation?.links?.length) {
      const u = r.utilisation;
      const body = panel(`Utilisation: ${r.label}`, true, "what links carried of what they can carry");
      const kinds = [["all uplinks, sending", (n) => n.endsWith(".up")], ["all uplinks, receiving", (n) => n.endsWith(".down")], ...[...new Set(u.links.filter((l) => l.name.startsWith("ocs") && l.bytes.some((b) => b > 0)).map((l) => l.name))].map((n) => [n, (x) => x === n])];
      const tint = (k) => (k < 2 ? H.colour(k ? "good" : "eps") : H.colour("ocs"));
      legend(body, kinds.map(([name], k) => ({ name, colour: () => tint(k), dash: DASHES[k % 4] })));
      chart(body, 220, `Utilisation of ${r.label}`, (c) => {
        const series = kinds.map(([name, of], k) => {
          const links = u.links.filter((l) => of(l.name));
          const rate = links.reduce((a, l) => a + l.rate_bps, 0) / 8e9;
          // A mean holds for its bucket; the last one is shorter than the others.
          const data = links[0].bytes.map((_, b) => {
            const [from, to] = [b * u.bucket_ns, Math.min(u.until_ns, (b + 1) * u.bucket_ns)];
            return [ms(from), links.reduce((a, l) => a + (l.bytes[b] ?? 0), 0) / (rate * Math.max(1, to - from))];
          });
          if (data.length) data.push([ms(u.until_ns), data.at(-1)[1]]);
          return { name, data, step: "end", colour: tint(k), dash: DASHES[k % 4], width: 1.6 };
        });
        H.lines(c, { legend: false, series, x: { min: 0, max: ms(LAST), format: (v) => H.clock(v * 1e6, 0), tip: (p) => [H.clock(p[0].value[0] * 1e6), ...p.map((q) => `${q.seriesName}: ${H.percent(q.value[1], 1)}`)].join("\n") }, y: { format: (v) => H.percent(v), interval: 0.25, max: 1 }, left: LEFT });
      });
    }
  }

  function demand(r) {
    if (r.demand?.length) {
      const body = panel(`Demand: ${r.label}`, true, "what the decisions saw");
      chart(body, 220, `Demand of ${r.label}`, (c) => H.lines(c, { legend: false, series: [{ name: "demand", colour: H.colour("eps"), step: "end", area: true, data: r.demand.map(([t, v]) => [ms(t), v]) }], x: { min: 0, max: ms(LAST), format: (v) => H.clock(v * 1e6, 0) }, y: { format: H.bytes }, left: LEFT }));
    }
  }

  // A row for every coflow or job of the first run, the slowest first; `parts` are its own columns, `of` what each run has of it.
  function table(name, list, time, parts, of) {
    const having = runs.filter((r) => r[list]?.length && !r.means);
    if (!having.length) return;
    const named = having.map((r) => new Map(r[list].map((x) => [x.name, x])));
    const first = [...having[0][list]].sort((a, b) => (b[time] ?? Infinity) - (a[time] ?? Infinity));
    const shown = first.slice(0, MOST_LINES);
    const body = panel(name, true, first.length > MOST_LINES ? `the ${MOST_LINES} slowest of ${first.length}` : "the slowest first");
    const head = [...parts.map((p) => p[0]), ...having.flatMap((r) => of.map(([title]) => title || `${time === "jct_ns" ? "JCT" : "CCT"} ${r.label}`))];
    const cell = (text, k) => H.el("td", { class: k ? "n" : null }, text);
    const line = (x) => H.el("tr", {}, [...parts.map((p) => p[1](x)), ...named.flatMap((m) => of.map((o) => (m.has(x.name) ? o[1](m.get(x.name)) : "–")))].map(cell));
    body.append(H.el("div", { class: "scroll", tabindex: "0", "aria-label": name }, H.el("table", {}, H.el("thead", {}, H.el("tr", {}, head.map((h, k) => H.el("th", { scope: "col", class: k ? "n" : null }, h)))), H.el("tbody", {}, shown.map(line)))));
  }

  const spanOf = (key) => (x) => (x[key] === undefined || x[key] === null ? "–" : H.span(x[key]));

  function redraw() {
    H.restartCharts();
    for (const draw of draws) draw();
  }

  function theme(name) {
    document.documentElement.dataset.theme = name;
    H.byId("theme").setAttribute("aria-pressed", String(name === "dark"));
    redraw();
  }

  H.byId("title").append(title);
  document.title = title;
  H.byId("made").textContent = `Made by Heliostat ${version}. Bytes and rates are decimal. Hold Ctrl and turn the wheel over a timeline to zoom, drag to move.`;
  summary();
  distribution("Coflow completion times", "coflows", "cct_ns");
  distribution("Job completion times", "jobs", "jct_ns");
  for (const r of runs) {
    const fold = runs.length > FEW && !r.means ? H.el("details", { class: "wide" }, H.el("summary", {}, `Over time: ${r.label}`)) : null;
    if (fold) {
      into.append(fold);
      fold.addEventListener("toggle", () => fold.querySelectorAll(".chart").forEach((box) => box.show()));
    }
    into = fold ?? into;
    for (const draw of [utilisation, demand, coflowTimeline, circuitTimeline, taskTimeline]) draw(r);
    into = H.byId("parts");
  }
  if (view.log) H.byId("log").setAttribute("aria-pressed", "true");
  table("Coflow by coflow", "coflows", "cct_ns", [["coflow", (c) => c.name], ["bytes", (c) => H.bytes(c.bytes)], ["bound", spanOf("bound_ns")]], [["", spanOf("cct_ns")], ["OCS share", (c) => H.percent(c.ocs_share)]]);
  table("Job by job", "jobs", "jct_ns", [["job", (j) => j.name], ["tasks", (j) => String(j.tasks)], ["shuffled", (j) => H.bytes(j.shuffle_bytes)]], [["", spanOf("jct_ns")]]);
  H.byId("log").addEventListener("click", (e) => {
    view.log = !view.log;
    e.target.setAttribute("aria-pressed", String(view.log));
    redraw();
  });
  addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details")) fold.open = true;
    redraw();
  });
  H.byId("theme").addEventListener("click", () => theme(H.isDark() ? "light" : "dark"));
  theme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
})();
