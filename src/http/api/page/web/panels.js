// The panels around the fabric: key figures, time, matrices, links, coflows, the control loop, events.
"use strict";
(() => {
  const H = (globalThis.Heliostat ??= {});
  const MOST_BARS = 4000;
  const MOST_POINTS = 1500;
  const DEMAND = "demand (right axis)";
  const LANE = 15; // height of a coflow, in pixels

  // A list of things by key, whose elements are made once and then only changed.
  class Keyed {
    constructor(parent, make) {
      [this.parent, this.make, this.made] = [parent, make, new Map()];
    }

    show(items) {
      const keep = new Set(items.map((i) => i.key));
      for (const [key, element] of this.made) {
        if (keep.has(key)) continue;
        element.remove();
        this.made.delete(key);
      }
      items.forEach((item, k) => {
        let element = this.made.get(item.key);
        if (!element) this.made.set(item.key, (element = this.make(item)));
        element.show(item);
        if (this.parent.children[k] !== element) this.parent.insertBefore(element, this.parent.children[k] ?? null);
      });
    }
  }

  H.Keyed = Keyed;

  class Panels {
    constructor(store, onPick) {
      [this.store, this.onPick] = [store, onPick];
      this.tiles = new Keyed(H.byId("tiles"), () => {
        const [name, value, sub] = [H.el("dt"), H.el("dd"), H.el("div", { class: "sub" })];
        const tile = H.el("dl", { class: "tile" }, name, value, sub);
        tile.show = (t) => {
          tile.className = `tile ${t.kind ?? ""}`;
          [H.text(name, t.name), H.text(value, t.value), H.text(sub, t.sub ?? "")];
          tile.title = t.title ?? "";
        };
        return tile;
      });
      this.rows = new Keyed(H.byId("coflow-rows"), (c) => this.coflowRow(c));
      this.loop = new Keyed(H.byId("loop-rows"), () => {
        const cells = [H.el("th", { scope: "row" }), ...[0, 1, 2].map(() => H.el("td", { class: "n" }))];
        const row = H.el("tr", {}, cells);
        row.show = (r) => r.cells.forEach((text, k) => H.text(cells[k], text));
        return row;
      });
      this.log = new Keyed(H.byId("log-rows"), (e) => {
        const text = H.el("span", { class: e.bad ? "bad" : null });
        const row = H.el("li", {}, H.el("time", {}, H.clock(e.record.at_ns, 2)), text);
        row.at = e.record.at_ns;
        row.show = (x) => H.text(text, x.text);
        return row;
      });
    }

    // What changes once a second.
    update(at) {
      const { store } = this;
      if (!store.topology || !store.stats) return;
      const sample = store.sampleAt(at);
      this.showTiles(at, sample);
      const seen = (id, show) => H.isSeen(H.byId(id)) && show();
      seen("matrix", () => this.showMatrix(sample));
      seen("utilisation", () => this.showLinks(at));
      seen("ops", () => this.showOps(at));
      seen("course", () => this.showCourse(at));
      this.showCoflows(at);
      this.showLoop();
      this.showLog(at);
    }

    showTiles(at, sample) {
      const { store } = this;
      const { stats, topology } = store;
      const found = store.circuitsAt(at);
      const count = (state) => found.filter((c) => store.stateOf(c, at) === state).length;
      const lit = sample?.lit.reduce((a, x) => a + x, 0);
      const ports = topology.racks.length * topology.planes.length;
      const past = at < store.now() - 2e9;
      const seen = [...store.coflows.values()].filter((c) => c.arrival_ns <= at).map((c) => store.coflowAt(c, at));
      const open = seen.filter((c) => c.state === "active").length;
      // The loop's counters are those of now.
      const now = past ? "now: " : "";
      const faulty = store.ports.filter((p) => p.faulty).length;
      const all = sample ? sample.eps + sample.ocs : 0;
      const waiting = sample ? sample.backlog.reduce((a, b) => a + b, 0) : 0;
      const tiles = [
        { name: "Over circuits", kind: "ocs", value: sample ? H.rate(sample.ocs) : "–", sub: all > 0 ? `${H.percent(sample.ocs / all, 1)} of bytes` : "nothing is sent" },
        { name: "Over the EPS", kind: "eps", value: sample ? H.rate(sample.eps) : "–", sub: all > 0 ? `${H.percent(sample.eps / all, 1)} of bytes` : "nothing is sent" },
        { name: "Circuits lit", kind: "ocs", value: `${sample ? lit.toFixed(1) : count("up")} of ${ports}`, sub: sample ? "mean of a second" : "now", title: `now: ${count("up")} lit, ${count("dark")} dark, ${count("promised")} promised` },
        { name: "Backlog", value: H.bytes(waiting), sub: sample ? `demand ${H.bytes(sample.demand.reduce((a, b) => a + b, 0))}` : "" },
        { name: "Open coflows", value: String(open), sub: `${now}${stats.coflows_finished} finished${stats.coflows_cancelled ? `, ${stats.coflows_cancelled} cancelled` : ""}` },
        { name: "Cycle p99", value: stats.cycle.count ? H.span(stats.cycle.p99_ns) : "–", sub: `${now}${H.many(stats.cycles, "cycle")}` },
        { name: "Late cycles", kind: stats.missed_cycles ? "bad" : "", value: stats.cycles ? H.percent(stats.late_cycles / stats.cycles, 2) : "–", sub: `${now}${stats.late_cycles} late, ${stats.missed_cycles} missed` },
        { name: "Faulty ports", kind: faulty ? "bad" : "", value: faulty ? `✕ ${faulty}` : "0", sub: `${now}${stats.failures.length ? H.many(stats.failures.length, "operation is retried", "operations are retried") : "no failures"}` },
      ];
      // A network without an optical plane has no circuits to tell of.
      const shown = tiles.filter((t) => ports > 0 || t.kind !== "ocs");
      H.byId("tiles").style.setProperty("--tiles", shown.length);
      this.tiles.show(shown.map((t) => ({ key: t.name, ...t })));
    }

    showMatrix(sample) {
      if (!sample) return;
      const kind = H.byId("matrix-kind").value;
      const racks = this.store.topology.racks.length;
      const values = sample[kind];
      const names = this.store.shown.map((r) => `r${r}`);
      const place = new Map(this.store.shown.map((r, k) => [r, k]));
      const format = kind === "sent" || kind === "over" ? H.rate : H.bytes;
      const cells = [];
      let most = 0;
      for (let k = 0; k < values.length; k += 1) {
        const [i, j] = [Math.floor(k / racks), k % racks];
        if (i !== j && place.has(i) && place.has(j)) cells.push([place.get(j), place.get(i), values[k]]);
        most = Math.max(most, values[k]);
      }
      const tip = ([j, i, v]) => `${names[i]} → ${names[j]}: ${format(v)}`;
      H.heatMap(H.chartOf(H.byId("matrix")), { rows: names, columns: names, cells, most, format, rowName: "from rack", columnName: "to rack", tip });
      this.describe("matrix", cells, ([j, i, v]) => `${names[i]} to ${names[j]} ${format(v)}`, H.byId("matrix-kind").selectedOptions[0].text);
    }

    // The largest values in words, for those who hear the page.
    describe(id, cells, say, what) {
      const top = cells.filter((x) => x[2] > 0).sort((a, b) => b[2] - a[2]).slice(0, 5).map(say);
      H.byId(id).setAttribute("aria-label", `${what}: ${top.length ? `largest are ${top.join("; ")}` : "all zero"}`);
    }

    // A row for every rack, a cell for every poll, as wide as the time between: what its link carried of what it can.
    showLinks(at) {
      const { store } = this;
      const { topology } = store;
      const kind = H.byId("link-kind");
      if (kind.options.length !== topology.planes.length + 2) {
        const option = (value, text) => H.el("option", { value }, text);
        kind.replaceChildren(...topology.planes.map((p) => option(String(p.id), `OCS plane ${p.id}, sending ports`)), option("up", "EPS, rack sends"), option("down", "EPS, rack receives"));
      }
      const plane = topology.planes[kind.value];
      const share = (s, r) => (plane ? store.portRate(s, plane.id, r) / plane.rate_bps : s[kind.value][r] / topology.racks[r].uplink_bps);
      const full = (r) => (plane ? plane.rate_bps : topology.racks[r].uplink_bps);
      const last = store.samples.filter((s) => s.at <= at && s.at > at - 120e9);
      const from = Math.max(0, Math.min(last[0]?.from ?? at, at - 10e9));
      const cells = last.flatMap((s) => store.shown.map((r, y) => [s.from / 1e6, s.at / 1e6, y, share(s, r)]));
      const tip = ([a, b, y, v]) => `r${store.shown[y]} from ${H.clock(a * 1e6)} to ${H.clock(b * 1e6)}: ${H.rate(v * full(store.shown[y]))}, ${H.percent(v)}`;
      H.timeHeat(H.chartOf(H.byId("utilisation")), { rows: store.shown.map((r) => `r${r}`), cells, from: from / 1e6, to: Math.max(at, 10e9) / 1e6, most: 1, format: (v) => H.percent(v), rowName: "rack", tip });
      const now = cells.slice(-store.shown.length).map(([, , y, v]) => [0, y, v]);
      this.describe("utilisation", now, ([, y, v]) => `r${store.shown[y]} ${H.percent(v)}`, `Utilisation now of ${kind.selectedOptions[0].text}`);
    }

    coflowRow() {
      const cells = ["", "", "n", "", "n", "n", "n"].map((kind) => H.el("td", { class: kind || null }));
      const name = H.el("button", { type: "button", class: "link" });
      const bar = H.el("progress", { max: 1, value: 0 });
      const share = H.el("span");
      cells[0].append(name);
      cells[3].append(bar, " ", share);
      const row = H.el("tr", { class: "pick" }, cells);
      row.show = (c) => {
        row.onclick = () => this.onPick(`coflow/${c.coflow.id}`);
        H.text(name, c.cells[0]);
        row.classList.toggle("ended", c.ended);
        [1, 2, 4, 5, 6].forEach((k) => H.text(cells[k], c.cells[k]));
        if (bar.value !== c.done) bar.value = c.done;
        bar.setAttribute("aria-label", `${c.cells[0]}: received`);
        H.text(share, H.percent(c.done));
      };
      return row;
    }

    showCoflows(at) {
      const { store } = this;
      const rows = store.coflowRows(at).slice(0, 60).map((c) => {
        const ended = c.finished_ns !== null && c.finished_ns <= at;
        const age = c.cct_ns ?? Math.max(0, at - c.arrival_ns);
        const over = c.state === "cancelled" || c.state === "expired";
        const share = c.received_bytes > 0 ? H.percent(Math.min(1, c.over_ocs_bytes / c.received_bytes)) : "–";
        const cells = [c.name, c.state, H.bytes(c.asked_bytes), "", share, over ? "–" : H.span(age), c.bound_ns && !over && c.cct_ns ? H.ratio(c.cct_ns / c.bound_ns) : "–"];
        return { key: c.id, coflow: c, cells, ended: ended || over, done: c.asked_bytes ? c.received_bytes / c.asked_bytes : 0 };
      });
      this.rows.show(rows);
      H.text(H.byId("coflows-sum"), `${H.bytes(store.stats.coflows_received_bytes)} received`);
    }

    showLoop() {
      const { stats } = this.store;
      const row = (name, q) => ({ key: name, cells: [name, ...(q.count ? [q.p50_ns, q.p99_ns, q.max_ns].map(H.span) : ["–", "–", "–"])] });
      this.loop.show([row("observe", stats.poll), row("decide", stats.decide), row("apply", stats.apply), row("cycle", stats.cycle), row("dark time asked", stats.dark_asked), row("dark time achieved", stats.dark_achieved)]);
      const wrong = stats.probes_wrong + stats.probes_lost;
      H.text(H.byId("loop-sum"), `${H.many(stats.circuits_set, "circuit")} set${wrong ? `, ${H.many(wrong, "probe")} astray` : ""}`);
      const since = ({ from_ns, until_ns, found, what }) => `another process changed the network from ${H.clock(from_ns)} until ${H.clock(until_ns)} (found ${H.many(found, "time")}, first ${what}): what was measured meanwhile may not be what it says`;
      const notes = [stats.tampered && since(stats.tampered), stats.fallbacks && `the external scheduler gave no answer in time, or a wrong one, in ${H.many(stats.fallbacks, "cycle")}: the fallback decided`];
      const told = notes.filter(Boolean).map((text) => H.el("p", { class: "bad" }, text));
      const failed = stats.failures.map((f) => H.el("p", { class: "bad" }, `${f.what}: ${f.why} (${H.many(f.attempts, "attempt")})`));
      const lines = [...told, ...failed];
      const box = H.byId("failures");
      if (box.textContent !== lines.map((l) => l.textContent).join("")) box.replaceChildren(...lines);
    }

    // What the cycles of the last minute asked for.
    showOps(at) {
      const from = at - 60e9;
      const cycles = this.store.cycles.filter((x) => x.at >= from && x.at <= at);
      const step = Math.max(1, Math.ceil(cycles.length / 300));
      // Of neighbours that share a point, the one with the most operations.
      const data = [];
      for (let k = 0; k < cycles.length; k += step) {
        const part = cycles.slice(k, k + step);
        data.push([part[0].at / 1e6, Math.max(...part.map((x) => x.ops))]);
      }
      const time = (v) => H.clock(v * 1e6, 0);
      H.lines(H.chartOf(H.byId("ops")), { legend: false, series: [{ name: "operations", colour: H.colour("eps"), step: "end", width: 1.2, data }], x: { min: Math.max(0, from) / 1e6, max: Math.max(at, 6e9) / 1e6, format: time, tip: (p) => `cycle at ${H.clock(p[0].value[0] * 1e6, 2)}: ${H.many(p[0].value[1], "operation")}` }, y: { format: String, name: "operations", whole: true, splits: 2 } });
    }

    // How long the parts of a cycle took by then, and which share of the cycles of each second was late.
    showCourse(at) {
      const from = Math.max(0, at - 120e9);
      const list = this.store.course.filter((x) => x.at >= from && x.at <= at);
      const ms = (x) => x.at / 1e6;
      const line = (name, colour, dash) => ({ name, colour: H.colour(colour), dash, width: 1.6, step: "end", data: list.map((x) => [ms(x), x[name]]) });
      const longest = Math.max(1e6, ...list.map((x) => x.cycle));
      const power = 10 ** Math.floor(Math.log10(longest));
      const most = power * ([1, 2, 4, 6, 8, 10].find((n) => n * power >= longest) ?? 20);
      const tip = (p) => [H.clock(p[0].value[0] * 1e6), ...p.map((q) => `${q.seriesName}: ${q.seriesName === "late" ? H.percent(q.value[1] / most, 1) : H.span(q.value[1])}`)].join("\n");
      // All of the axis' height is all of the cycles.
      const late = { name: "late", colour: H.colour("fault"), dash: "solid", width: 1, area: true, step: "end", data: list.map((x) => [ms(x), x.late * most]) };
      H.lines(H.chartOf(H.byId("course")), { series: [line("cycle", "text", "solid"), line("decide", "eps", [6, 3]), line("apply", "ocs", [2, 2]), late], x: { min: from / 1e6, max: Math.max(at, 6e9) / 1e6, format: (v) => H.clock(v * 1e6, 0), tip }, y: { format: H.span, max: most, splits: 2 } });
    }

    showLog(at) {
      const name = (id) => this.store.spans.get(id)?.name ?? this.store.coflows.get(id)?.name ?? `coflow ${id}`;
      const say = {
        "coflow-arrived": (r) => `${name(r.id)} arrived, ${H.bytes(r.asked_bytes)}`,
        "coflow-finished": (r) => `${name(r.id)} finished, CCT ${H.span(r.cct_ns)}`,
        "coflow-proposed": (r) => `${name(r.id)} proposed, held until ${H.clock(r.expires_ns)}`,
        "coflow-prioritised": (r) => `${name(r.id)} has other priorities${r.priority === null ? "" : `: ${r.priority}`}`,
        "coflow-cancelled": (r) => `${name(r.id)} cancelled${r.why ? `: ${r.why}` : ""}`,
        "port-faulty": (r) => `port of r${r.rack} on plane ${r.plane} is faulty: ${r.why}`,
        "port-repaired": (r) => `port of r${r.rack} on plane ${r.plane} is used again`,
        "types-unmet": (r) => `${name(r.id)} crosses other tiers than its types between ${H.many(r.pairs, "pair")} of hosts`,
        failed: (r) => `${r.what}: ${r.why}`,
        recovered: (r) => r.what,
        fault: (r) => `${r.what}${r.over ? ": well again" : ""}`,
        "policy-changed": (r) => `policy ${r.name} is in force`,
      };
      const bad = new Set(["port-faulty", "failed", "fault", "coflow-cancelled", "types-unmet"]);
      const last = this.store.events.filter((r) => r.at_ns <= at && say[r.event]).slice(-80).reverse();
      this.log.show(last.map((r) => ({ key: r.seq, record: r, text: say[r.event](r), bad: bad.has(r.event) && !r.over })));
    }

    // Demand, rates and circuits between two instants on one axis.
    showTimeline(from, to, at) {
      const { store } = this;
      const chart = H.chartOf(H.byId("timeline"));
      const { c } = chart;
      const { topology } = store;
      const lanes = Math.max(1, topology.planes.length);
      const ms = (ns) => ns / 1e6;
      const bars = this.bars(from, to, lanes);
      const thin = (list) => {
        const inside = list.filter((x) => x.at >= from - 2e9 && x.at <= to);
        const step = Math.ceil(inside.length / MOST_POINTS);
        return step > 1 ? inside.filter((_, k) => k % step === 0) : inside;
      };
      const cycles = thin(store.cycles);
      // Means between two polls, as steps; before the page was opened, those that the daemon keeps.
      const opened = store.samples[0]?.from ?? Infinity;
      const samples = thin([...store.past.filter((x) => x.at <= opened), ...store.samples]);
      const steps = (key) => (samples.length ? [...samples.map((x) => [ms(x.from), x[key]]), [ms(samples.at(-1).at), samples.at(-1)[key]]] : []);
      const line = (name, data, colour, more = {}) => ({ name, type: "line", xAxisIndex: 0, yAxisIndex: 0, showSymbol: false, symbol: "none", data, lineStyle: { color: colour, width: 1.8, ...more.lineStyle }, itemStyle: { color: colour }, ...more });
      const wide = chart.box.clientWidth;
      const grid = H.timeGrid(wide);
      const top = wide < 560 ? 52 : 30; // below the legend
      const open = this.coflowBars(from, to);
      const laneHigh = open.rows.length * LANE;
      const time = (show) => H.axis(c, { type: "value", min: ms(from), max: ms(to), axisLabel: { show, formatter: (v) => H.clock(v * 1e6, to - from < 1e10 ? 1 : 0), showMinLabel: false, showMaxLabel: false }, splitNumber: Math.max(2, Math.min(8, Math.floor(wide / 110))) });
      const row = Math.max(5, Math.min(30, 340 / store.shown.length));
      const circuits = topology.planes.length > 0;
      const high = circuits ? Math.round(row * store.shown.length) : 0;
      if (chart.high !== high + laneHigh) {
        chart.high = high + laneHigh;
        chart.box.style.height = `${high + top + 186 + laneHigh}px`;
        chart.chart.resize();
      }
      const late = store.cycles.filter((x) => x.late && x.at >= from && x.at <= to).slice(-400);
      chart.set({
        ...H.base(c),
        grid: [{ ...grid, top, height: 110 }, { ...grid, top: top + 122, height: laneHigh }, { ...grid, top: top + 134 + laneHigh, height: high }],
        tooltip: H.tooltip(c, { trigger: "item", formatter: (p) => this.barTip(p, lanes, open.say) }),
        xAxis: [{ ...time(false), gridIndex: 0 }, { ...time(!circuits), gridIndex: 1 }, { ...time(circuits), gridIndex: 2 }],
        yAxis: [
          H.axis(c, { type: "value", gridIndex: 0, min: 0, max: (v) => (v.max > 0 ? null : 1.5e6), splitNumber: 3, axisLabel: { formatter: H.rate, fontSize: 11 } }),
          H.axis(c, { type: "value", gridIndex: 0, min: 0, max: (v) => (v.max > 0 ? null : 1.5e6), splitNumber: 3, position: "right", splitLine: { show: false }, axisLabel: { formatter: H.bytes, fontSize: 11 } }),
          H.axis(c, { type: "category", gridIndex: 1, inverse: true, data: open.rows, splitLine: { show: false }, axisTick: { show: false }, axisLabel: { interval: 0, fontSize: 11 } }),
          H.axis(c, { type: "category", gridIndex: 2, inverse: true, data: circuits ? store.shown.map((r) => `r${r}`) : [], splitLine: { show: row > 9, lineStyle: { color: c.line } }, axisLabel: { interval: row < 13 ? Math.ceil(13 / row) - 1 : 0 } }),
        ],
        legend: { top: 0, left: grid.left - 22, itemWidth: 26, itemHeight: 10, itemStyle: { opacity: 0 }, textStyle: { color: c.text }, data: [...(circuits ? ["over circuits"] : []), "over the EPS", DEMAND, { name: "late cycle", icon: "path://M0 10L6 0L12 10Z", itemStyle: { opacity: 1 } }] },
        series: [
          line("over circuits", circuits ? steps("ocs") : [], c.ocs, { step: "end", areaStyle: { opacity: 0.15 } }),
          line("over the EPS", steps("eps"), c.eps, { step: "end", areaStyle: { opacity: 0.15 } }),
          line(DEMAND, cycles.map((x) => [ms(x.at), x.demand]), c.muted, { yAxisIndex: 1, step: "end", lineStyle: { width: 1, color: c.muted, type: [3, 2] } }),
          { name: "late cycle", type: "scatter", xAxisIndex: 0, yAxisIndex: 1, symbol: "triangle", symbolSize: 9, itemStyle: { color: c.fault }, data: late.map((x) => [ms(x.at), 0]), tooltip: { formatter: (p) => `late cycle at ${H.clock(p.value[0] * 1e6, 2)}` } },
          { ...H.namedBars(chart, open.bars, open.say, c.muted), name: "coflows", xAxisIndex: 1, yAxisIndex: 2 },
          { ...H.circuitBars(chart, bars, lanes), xAxisIndex: 2, yAxisIndex: 3, markLine: at < to - 1e6 ? { symbol: "none", silent: true, lineStyle: { color: c.text, width: 1.5, type: "solid" }, label: { show: false }, data: [{ xAxis: ms(at) }] } : { data: [] } },
        ],
      });
    }

    // The coflows that were open in a range, each on a lane; those beyond the lanes are counted on a row of their own.
    coflowBars(from, to) {
      const { placed, more } = this.store.coflowLanes();
      const inside = (x) => x.from < to && x.to > from;
      const end = (x) => Math.min(to, x.to) / 1e6;
      const shown = placed.filter(inside);
      const rest = more.filter(inside);
      // Lanes that are empty in the range have no row.
      const lanes = shown.reduce((a, x) => Math.max(a, x.lane + 1), 0);
      const bars = [...shown.map((x, k) => [x.lane, x.from / 1e6, end(x), k]), ...rest.map((x, k) => [Math.max(3, lanes), x.from / 1e6, end(x), -1 - k])];
      const rows = Array.from({ length: Math.max(3, lanes) }, (_, k) => (k ? " ".repeat(k) : "coflows"));
      if (rest.length) rows.push("more");
      return { rows, bars, say: (k) => (k < 0 ? `${rest[-1 - k].many} more` : shown[k].name) };
    }

    barTip(p, lanes, say) {
      if (p.seriesName === "coflows") return `${say(p.value[3])}\nfrom ${H.clock(p.value[1] * 1e6, 2)} for ${H.span((p.value[2] - p.value[1]) * 1e6)}`;
      if (p.seriesName !== "circuits") return `${p.seriesName} at ${H.clock(p.value[0] * 1e6, 1)}: ${p.seriesName.startsWith("demand") ? H.bytes(p.value[1]) : H.rate(p.value[1])}`;
      const [lane, setup, up, until, output, , open, demand] = p.value;
      const row = this.store.shown[Math.floor(lane / lanes)];
      if (output < 0) return `r${row}, plane ${lane % lanes}: many circuits`;
      const end = open ? "open" : `until ${H.clock(until * 1e6, 2)}`;
      const asked = demand >= 0 ? `\ndecided for a demand of ${H.bytes(demand)}` : "";
      return `r${row} → r${output}, plane ${lane % lanes}${asked}\ndark ${H.span((up - setup) * 1e6)}, light from ${H.clock(up * 1e6, 2)} ${end}`;
    }

    // Bars of the circuits in a range. Where there are more than can be seen, those of a pixel become one.
    bars(from, to, lanes) {
      const { store } = this;
      const place = new Map(store.shown.map((r, k) => [r, k]));
      const byLane = new Map();
      let n = 0;
      for (const x of store.circuits.values()) {
        if (x.until <= from || x.setup >= to || !place.has(x.input)) continue;
        const lane = place.get(x.input) * lanes + x.plane;
        if (!byLane.has(lane)) byLane.set(lane, []);
        byLane.get(lane).push(x);
        n += 1;
      }
      const least = n > MOST_BARS ? (to - from) / 600 : (to - from) / 3000;
      const now = store.now();
      const bars = [];
      for (const [lane, list] of byLane) {
        let last = null;
        for (const x of list) {
          const [setup, until] = [x.setup / 1e6, Math.min(x.until, Math.max(now, x.up)) / 1e6];
          if (last && (until - setup) * 1e6 < least && setup - last[3] < least / 1e6 && (last[3] - last[1]) * 1e6 < 4 * least) {
            if (last[4] !== x.output) last[4] = -1;
            last[3] = Math.max(last[3], until);
          } else bars.push((last = [lane, setup, x.up / 1e6, until, x.output, x.plane, x.until === Infinity ? 1 : 0, x.demand ?? -1]));
        }
      }
      return bars;
    }
  }

  H.Panels = Panels;
})();
