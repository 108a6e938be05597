// The drawer on the right: the numbers and the history of what was picked.
"use strict";
(() => {
  const H = (globalThis.Heliostat ??= {});

  class Details {
    constructor(store, actions, feed) {
      [this.store, this.actions, this.feed] = [store, actions, feed];
      [this.box, this.title, this.body] = [H.byId("details"), H.byId("details-h"), H.byId("details-body")];
      H.byId("details-close").addEventListener("click", () => this.close());
    }

    open(key) {
      this.opener ??= document.activeElement;
      this.key = key;
      [this.full, this.asked] = [null, 0];
      this.chart?.dispose();
      this.chart = null;
      this.box.hidden = false;
      document.body.classList.add("with-details");
      this.body.replaceChildren();
      this.parts = {};
      this.update(this.at ?? this.store.now());
      this.title.focus();
    }

    close() {
      if (this.box.hidden) return;
      this.box.hidden = true;
      document.body.classList.remove("with-details");
      this.chart?.dispose();
      this.chart = null;
      this.key = null;
      // The picture may have been drawn again meanwhile.
      const key = this.opener?.dataset?.key;
      const opener = this.opener?.isConnected ? this.opener : key && document.querySelector(`[data-key="${CSS.escape(key)}"]`);
      opener?.focus?.();
      this.opener = null;
    }

    update(at) {
      this.at = at;
      if (!this.key || !this.store.topology) return;
      const [kind, ...ids] = this.key.split("/");
      this[kind]?.(at, ...ids.map(Number));
    }

    // A part of the drawer, made when it is first needed.
    part(name, make) {
      if (!this.parts[name]) {
        this.parts[name] = make();
        this.body.append(this.parts[name]);
      }
      return this.parts[name];
    }

    facts(name, rows) {
      const list = this.part(name, () => H.el("dl"));
      const text = JSON.stringify(rows);
      if (list.told === text) return;
      list.told = text;
      list.replaceChildren(...rows.flatMap(([k, v]) => [H.el("dt", {}, k), H.el("dd", {}, v)]));
    }

    heading(name, text) {
      this.part(`h-${name}`, () => H.el("h3", {}, text));
    }

    // Rows are made once and then only changed: a button that is being pressed, or has the focus, stays where it is.
    table(name, heads, rows) {
      const table = this.part(name, () => H.el("table", { class: "tight" }, H.el("thead", {}, H.el("tr", {}, heads.map((h) => H.el("th", { scope: "col" }, h)))), H.el("tbody")));
      table.rowsByKey ??= new H.Keyed(table.tBodies[0], (r) => this.row(r));
      table.rowsByKey.show(rows.map(({ key, cells }, k) => ({ key: key ?? k, leads: key, cells })));
    }

    row({ leads, cells }) {
      const texts = cells.map((_, k) => (k === 0 && leads ? H.el("button", { type: "button", class: "link" }) : H.el("span")));
      const row = H.el("tr", leads ? { class: "pick", onclick: () => this.open(leads) } : {}, texts.map((t) => H.el("td", {}, t)));
      row.show = (r) => r.cells.forEach((text, k) => H.text(texts[k], text));
      return row;
    }

    // Of the last two minutes; of something that began earlier and has a history of its own, since then.
    lines(series, format, begin = Infinity) {
      const box = this.part("chart", () => H.el("div", { class: "chart", role: "img", "aria-label": "History" }));
      this.chart ??= H.chartOf(box);
      const now = this.store.now() / 1e6;
      H.lines(this.chart, { series, x: { min: Math.max(0, Math.min(now - 120e3, begin / 1e6)), max: now, format: (v) => H.clock(v * 1e6, 0) }, y: { format, rest: 8e5 } });
    }

    // The samples of the last two minutes as points.
    history(value) {
      const from = this.store.now() - 120e9;
      return this.store.samples.filter((s) => s.at >= from).map((s) => [s.at / 1e6, value(s)]);
    }

    rack(at, r) {
      const { store } = this;
      const { topology } = store;
      const sample = store.sampleAt(at);
      const hosts = topology.hosts.filter((h) => h.rack === r);
      H.text(this.title, `Rack r${r}`);
      const up = store.uplink(r);
      const sum = (matrix, pick) => (matrix ? matrix.reduce((a, v, k) => a + (pick(k) ? v : 0), 0) : 0);
      const n = topology.racks.length;
      this.facts("facts", [
        ["hosts", `${hosts[0]?.name ?? "–"}${hosts.length > 1 ? ` to ${hosts.at(-1).name}` : ""}`],
        ["network interface, each", hosts[0] ? H.rate(hosts[0].nic_bps) : "–"],
        ["slots", String(hosts.reduce((a, h) => a + h.slots, 0))],
        ["uplink", H.rate(up)],
        ["sends to the EPS", sample ? `${H.rate(sample.up[r])}, ${H.percent(sample.up[r] / up)}` : "–"],
        ["receives from the EPS", sample ? `${H.rate(sample.down[r])}, ${H.percent(sample.down[r] / up)}` : "–"],
        ["waits here to be sent", sample ? H.bytes(sum(sample.backlog, (k) => Math.floor(k / n) === r)) : "–"],
      ]);
      this.lines(
        [
          { name: "to the EPS", colour: H.colour("eps"), data: this.history((s) => s.up[r]) },
          { name: "over circuits", colour: H.colour("ocs"), data: this.history((s) => topology.planes.reduce((a, p) => a + store.portRate(s, p.id, r), 0)) },
        ],
        H.rate,
      );
      this.heading("ports", "Ports");
      const rate = (p) => H.rate(store.portRate(sample, p.id, r));
      this.table("ports", ["plane", "sends to", "receives from", "rate"], topology.planes.map((p) => {
        const port = store.portOf(p.id, r);
        const to = (x) => (x === null || x === undefined ? "–" : `r${x}`);
        return { key: `port/${p.id}/${r}`, cells: [`OCS ${p.id}`, port?.faulty ? "faulty" : to(port?.sends_to), to(port?.receives_from), rate(p)] };
      }));
      this.recent(at, (c) => c.input === r || c.output === r);
    }

    // The last circuits of a kind, the newest first.
    recent(at, of) {
      this.heading("recent", "Last circuits");
      const found = [...this.store.circuits.values()].filter((c) => of(c) && c.setup <= at).slice(-12).reverse();
      this.table("recent", ["circuit", "plane", "light from", "for"], found.map((c) => ({
        key: `circuit/${c.plane}/${c.input}/${c.up}`,
        cells: [`r${c.input} → r${c.output}`, String(c.plane), H.clock(c.up, 2), c.until > at ? this.store.stateOf(c, at) : H.span(c.until - c.up)],
      })));
    }

    // A packet switch: what left by its ports.
    switch(at, k) {
      const { store } = this;
      const { graph } = store.topology;
      const sample = store.sampleAt(at);
      const s = store.switches?.[k];
      H.text(this.title, `Switch ${graph.switches[k].name}`);
      if (!s) return;
      this.facts("facts", [
        ["place", s.tier],
        ["carries at most", s.capacity_bps === null ? "all that comes" : H.rate(s.capacity_bps)],
        ["left it", H.rate(store.switchRate(sample, k))],
        ["pairs of hosts that cross it", String(s.pairs)],
        ["packets without a list, dropped", String(s.strays)],
      ]);
      this.lines([{ name: "left it", colour: H.colour("eps"), data: this.history((x) => store.switchRate(x, k)) }], H.rate);
      this.heading("ports", "Ports");
      const row = (p) => ({ key: p.link === null ? null : `link/${p.link}`, cells: [p.to, H.rate(p.sent_bps), H.percent(p.sent_bps / p.rate_bps), H.bytes(p.bytes), String(p.drops), H.bytes(p.backlog_bytes)] });
      this.table("ports", ["to", "rate", "of it", "in all", "drops", "queue"], s.ports.map(row));
    }

    // A link between two switches, both ways.
    link(at, k) {
      const { store } = this;
      const { graph } = store.topology;
      const { from, to, rate_bps } = graph.links[k];
      const names = [graph.switches[from].name, graph.switches[to].name];
      const sample = store.sampleAt(at);
      const rates = store.linkRates(sample, k);
      const isDown = store.linksDown.some((pair) => [...pair].sort().join() === [...names].sort().join());
      H.text(this.title, `Link ${names.join(" – ")}`);
      const way = (a, b, rate) => [`${a} → ${b}`, `${H.rate(rate)}, ${H.percent(rate / rate_bps)}`];
      this.facts("facts", [["rate, each way", H.rate(rate_bps)], ["state", isDown ? "down" : "up"], way(names[0], names[1], rates[0]), way(names[1], names[0], rates[1])]);
      const series = (n, colour) => ({ name: `${names[n]} → ${names[1 - n]}`, colour: H.colour(colour), data: this.history((s) => store.linkRates(s, k)[n]) });
      this.lines([series(0, "eps"), series(1, "ocs")], H.rate);
      this.heading("ports", "Its ports");
      const port = (s) => store.switches?.[s]?.ports.find((p) => p.link === k);
      const row = (s) => ({ key: `switch/${s}`, cells: [graph.switches[s].name, ...(port(s) ? [H.bytes(port(s).bytes), String(port(s).packets), String(port(s).drops), H.bytes(port(s).backlog_bytes)] : ["–", "–", "–", "–"])] });
      this.table("ports", ["out of", "in all", "packets", "drops", "queue"], [row(from), row(to)]);
    }

    port(at, plane, rack) {
      const { store } = this;
      const sample = store.sampleAt(at);
      const p = store.portOf(plane, rack);
      H.text(this.title, `Port of r${rack} on plane ${plane}`);
      if (!p) return;
      const of = store.topology.planes[plane];
      const to = (x) => (x === null || x === undefined ? "dark" : `r${x}`);
      const [rate, lit] = [store.portRate(sample, plane, rack), store.litRate(sample, plane, rack)];
      this.facts("facts", [
        ["sends to", to(p.sends_to)],
        ["receives from", to(p.receives_from)],
        ["rate while lit", lit === null ? "–" : H.rate(lit)],
        ["lit, of the last second", H.percent(store.litShare(sample, plane, rack))],
        ["mean of the last second", `${H.rate(rate)}, ${H.percent(rate / of.rate_bps)} of ${H.rate(of.rate_bps)}`],
        ["fault", p.faulty ?? "none"],
        ["crossed to the right rack", `${p.crossed_packets} packets, ${H.bytes(p.crossed_bytes)}`],
        ["came late, in the dark", `${p.late_packets} packets`],
        ["for a wrong rack, dropped", `${p.misdelivered_packets} packets`],
        ["dark time of a change", H.span(of.delta_ns)],
      ]);
      const byHand = [...store.circuits.values()].find((c) => c.plane === plane && c.input === rack && c.manual && c.until > at);
      const row = this.part("actions", () => H.el("div", { class: "row" }));
      const state = `${Boolean(p.faulty)}/${Boolean(byHand)}`;
      if (row.told !== state) {
        row.told = state;
        const button = (text, run) => H.el("button", { type: "button", onclick: run }, text);
        row.replaceChildren(
          button("Set circuit…", () => this.actions.circuit(plane, rack)),
          ...(byHand ? [button("Release", () => this.actions.release(plane, rack))] : []),
          ...(p.faulty ? [button("Say it is repaired", () => this.actions.repair(plane, rack))] : []),
        );
      }
      this.lines([{ name: "rate", colour: H.colour("ocs"), data: this.history((s) => store.portRate(s, plane, rack)) }], H.rate);
      this.recent(at, (c) => c.plane === plane && (c.input === rack || c.output === rack));
    }

    circuit(at, plane, input, up) {
      const { store } = this;
      const c = store.circuits.get(`${plane}/${input}/${up}`);
      H.text(this.title, c ? `Circuit r${input} → r${c.output}` : "Circuit");
      if (!c) return;
      const state = store.stateOf(c, at);
      const sample = store.sampleAt(at);
      this.facts("facts", [
        ["plane", String(plane)],
        ["demand when it was decided", c.demand === null ? "not known" : H.bytes(c.demand)],
        ["state", state === "dark" ? "dark, being set up" : state === "up" ? "carries" : state],
        ["set by", c.manual ? "hand" : "the policy"],
        ["dark from", H.clock(c.setup, 3)],
        ["light from", `${H.clock(c.up, 3)}, after ${H.span(c.up - c.setup)}`],
        ["until", c.until === Infinity ? "open" : `${H.clock(c.until, 3)}, after ${H.span(c.until - c.up)}`],
        ["its port, while lit", state === "up" && store.litRate(sample, plane, input) !== null ? H.rate(store.litRate(sample, plane, input)) : "–"],
        ["lit, of the last second", sample ? H.percent(store.litShare(sample, plane, input)) : "–"],
      ]);
      this.part("actions", () => {
        const button = (text, run) => H.el("button", { type: "button", onclick: run }, text);
        return H.el("div", { class: "row" }, button("Its port", () => this.open(`port/${plane}/${input}`)), button("Hold or move by hand…", () => this.actions.circuit(plane, input, c.output)));
      });
      this.lines([{ name: "rate of its port", colour: H.colour("ocs"), data: this.history((s) => store.portRate(s, plane, input)) }], H.rate);
      this.recent(at, (x) => x.plane === plane && x.input === input);
    }

    // Asks for a coflow with all its flows, not more than once a second, while something of it is shown.
    askFor(id) {
      if (this.asked > performance.now() - 1000) return;
      this.asked = performance.now();
      const key = this.key;
      const take = (full) => {
        if (this.key !== key) return;
        this.full = full;
        if (full.flows) this.store.noteFlows(full, this.store.now());
      };
      this.feed.get(`coflows/${id}`).then(take).catch(() => {});
    }

    coflow(at, id) {
      const { store } = this;
      const c = store.coflows.get(id) ?? this.full;
      H.text(this.title, c ? c.name : `Coflow ${id}`);
      if (!c) return;
      this.askFor(id);
      const newest = this.full?.id === id ? this.full : c;
      const show = store.coflowAt(newest, at);
      const share = show.received_bytes ? H.percent(Math.min(1, show.over_ocs_bytes / show.received_bytes), 1) : "–";
      this.facts("facts", [
        ["number", String(id)],
        ["state", show.state],
        ...(show.why && show.state === "cancelled" ? [["why", show.why]] : []),
        ["arrived", H.clock(show.arrival_ns, 2)],
        ["asked", H.bytes(show.asked_bytes)],
        ["received", `${H.bytes(show.received_bytes)}, ${H.percent(show.asked_bytes ? show.received_bytes / show.asked_bytes : 0)}`],
        ["over circuits", share],
        ["CCT", show.cct_ns === null ? "–" : H.span(show.cct_ns)],
        ["lower bound", H.span(show.bound_ns)],
      ]);
      this.lines([{ name: "received", colour: H.colour("good"), data: store.receivedBy(newest, at) }], H.bytes, newest.arrival_ns);
      if (show.state === "proposed" || show.state === "active") {
        const row = this.part("actions", () => H.el("div", { class: "row" }));
        if (row.told !== show.state) {
          row.told = show.state;
          const button = (text, run) => H.el("button", { type: "button", onclick: run }, text);
          row.replaceChildren(...(show.state === "proposed" ? [button("Confirm", () => this.actions.confirm(id))] : []), button(show.state === "proposed" ? "Take back" : "Cancel coflow", () => this.actions.cancel(id)));
        }
      } else if (this.parts.actions) this.parts.actions.replaceChildren();
      this.heading("pairs", show.flows ? "Flows" : "Pairs of racks");
      const host = (h) => store.topology.hosts[h]?.name ?? h;
      if (show.flows) this.table("flows", ["flow", "bytes", "received", "finished"], show.flows.slice(0, 60).map((_, k) => [store.flowAt(show, k, at), k]).map(([f, k]) => ({ key: `flow/${id}/${k}`, cells: [`${host(f.from)} → ${host(f.to)}`, H.bytes(f.bytes), H.percent(f.bytes ? f.received_bytes / f.bytes : 1), f.finished_ns === null ? "–" : H.clock(f.finished_ns, 2)] })));
      else this.table("pairs", ["pair", "bytes"], show.pairs.slice(0, 60).map((p) => ({ cells: [`r${p.from} → r${p.to}`, H.bytes(p.bytes)] })));
      if (show.proposal) this.actions.proposal(this.part("proposal", () => H.el("div")), show.proposal);
    }

    flow(at, id, k) {
      this.askFor(id);
      const c = this.full?.id === id ? this.full : this.store.coflows.get(id);
      const f = c?.flows?.[k] && this.store.flowAt(c, k, at);
      H.text(this.title, `Flow ${k} of ${c?.name ?? `coflow ${id}`}`);
      this.part("back", () => H.el("div", { class: "row" }, H.el("button", { type: "button", onclick: () => this.open(`coflow/${id}`) }, "Its coflow")));
      if (!f) return;
      const host = (h) => this.store.topology.hosts[h];
      this.facts("facts", [
        ["from", `${host(f.from).name} in r${host(f.from).rack}`],
        ["to", `${host(f.to).name} in r${host(f.to).rack}`],
        ["bytes", H.bytes(f.bytes)],
        ["received", `${H.bytes(f.received_bytes)}, ${H.percent(f.bytes ? f.received_bytes / f.bytes : 1)}`],
        ["finished", f.finished_ns === null ? "–" : `${H.clock(f.finished_ns, 2)}, after ${H.span(f.finished_ns - c.arrival_ns)}`],
      ]);
      this.lines([{ name: "received", colour: H.colour("good"), data: this.store.flowReceivedBy(c, k, at) }], H.bytes, c.arrival_ns);
    }
  }

  H.Details = Details;
})();
