// The picture of the fabric: the EPS above, or the graph of its switches; racks with their uplinks; and below them every optical plane as
// a crossbar, sending ports at its upper edge and receiving ports at its lower one.
"use strict";
(() => {
  const H = (globalThis.Heliostat ??= {});
  const LEAST = 26; // pixels of a rack
  const LEFT = 104;
  const RIGHT = 12;
  const EPS = { top: 8, height: 34 };
  // Below the EPS.
  const LINK = { top: 4, height: 44 };
  const RACK = { top: 52, height: 30 };
  const FIRST_PLANE = 98;

  class Fabric {
    constructor(box, store, onPick) {
      [this.box, this.store, this.onPick] = [box, store, onPick];
      this.lines = new Map();
      box.addEventListener("keydown", (e) => this.key(e));
    }

    // Lays the fixed parts out again: at the start, for another network, and when the width changes.
    layout() {
      const { topology } = this.store;
      const racks = this.store.shown;
      this.place = new Map(racks.map((r, k) => [r, k]));
      // Where racks have no room, the picture is wider than its box.
      this.width = Math.max(this.box.clientWidth, topology.graph ? 640 : Math.min(640, LEFT + RIGHT + LEAST * racks.length));
      H.byId("sideways").hidden = this.width <= this.box.clientWidth;
      this.cell = (this.width - LEFT - RIGHT) / racks.length;
      this.graph = topology.graph ? new H.Graph(this.store, this.item.bind(this)) : null;
      this.below = this.graph ? this.graph.height : EPS.top + EPS.height;
      const planeHeight = topology.planes.length > 2 ? 96 : this.width > 1500 ? 170 : 132;
      this.planes = topology.planes.map((p, k) => ({ ...p, top: this.below + FIRST_PLANE + k * (planeHeight + 34), height: planeHeight }));
      const height = this.below + FIRST_PLANE + this.planes.length * (planeHeight + 34) - 10;
      this.root = H.svg("svg", { viewBox: `0 0 ${this.width} ${height}`, width: this.width, height, role: "group", "aria-label": this.summary() });
      this.lines.clear();
      this.drawn = null;
      this.drawEps(topology);
      this.racks = new Map(racks.map((r) => [r, this.drawRack(topology.racks[r])]));
      this.ports = this.planes.map((p) => this.drawPlane(p, racks));
      this.circuits = this.planes.map((p) => H.svg("g", { class: "circuits", "data-plane": p.id }));
      // Above all lines.
      this.labels = H.svg("g", { "aria-hidden": "true" });
      this.root.append(...this.circuits, this.labels);
      const focused = this.box.contains(document.activeElement) ? document.activeElement.dataset?.key : null;
      this.box.replaceChildren(this.root);
      const stop = this.find(focused) ?? this.root.querySelector("[data-key]");
      stop?.setAttribute("tabindex", "0");
      if (focused) stop?.focus();
    }

    // The element of an item that is drawn.
    find(key) {
      return key ? this.root.querySelector(`[data-key="${CSS.escape(key)}"]`) : null;
    }

    summary() {
      const t = this.store.topology;
      const planes = t.planes.map((p) => `plane ${p.id} with circuits of ${H.rate(p.rate_bps)} and a dark time of ${H.span(p.delta_ns)}`);
      const eps = t.graph ? `${t.graph.switches.length} packet switches` : "an electrical packet switch";
      return `${t.racks.length} racks on ${eps}, and ${planes.join(", ") || "no optical plane"}`;
    }

    x(rack) {
      return LEFT + (this.place.get(rack) + 0.5) * this.cell;
    }

    side(y, lines) {
      lines.forEach((text, k) => this.root.append(H.svg("text", { x: 4, y: y + 15 * k, class: k ? "note" : "name" }, text)));
    }

    drawEps(topology) {
      const edges = [LEFT, this.width - RIGHT];
      this.side(this.below + RACK.top + 19, ["Racks"]);
      if (this.graph) return this.graph.draw(this.root, this.side.bind(this), (r) => this.x(r), this.below + LINK.top, edges);
      const rates = new Set(topology.racks.map((r) => r.uplink_bps));
      this.side(EPS.top + 16, ["EPS", rates.size === 1 ? `${H.rate([...rates][0])} links` : "uplinks differ"]);
      this.root.append(H.svg("rect", { x: LEFT, y: EPS.top, width: edges[1] - LEFT, height: EPS.height, rx: 6, class: "eps" }));
      this.epsText = H.svg("text", { x: (LEFT + edges[1]) / 2, y: EPS.top + 22, class: "on-eps" });
      this.root.append(this.epsText);
    }

    item(key, label, attributes, ...children) {
      const g = H.svg("g", { ...attributes, "data-key": key, role: "button", tabindex: "-1", "aria-label": label }, children);
      g.addEventListener("click", () => this.onPick(key));
      return g;
    }

    // A rack's box and two gauges: what it sends to the EPS, and what it receives.
    drawRack(rack) {
      const x = this.x(rack.id);
      const bar = Math.min(9, Math.max(3, this.cell * 0.14));
      const gap = Math.min(6, this.cell * 0.1);
      const gauge = (left, name) => {
        const track = H.svg("rect", { x: left, y: this.below + LINK.top, width: bar, height: LINK.height, rx: 1, class: "track" });
        const level = H.svg("rect", { x: left, y: this.below + LINK.top, width: bar, height: 0, rx: 1, class: `level ${name}` });
        return { parts: [track, level], level };
      };
      const [up, down] = [gauge(x - gap / 2 - bar, "up"), gauge(x + gap / 2, "down")];
      const wide = Math.min(76, this.cell * 0.82);
      const box = H.svg("rect", { x: x - wide / 2, y: this.below + RACK.top, width: wide, height: RACK.height, rx: Math.min(5, wide / 5), class: "rack" });
      // In a narrow box the name stands upright.
      const middle = this.below + RACK.top + RACK.height / 2;
      const upright = this.cell < 26 ? { y: middle + 3.5, class: "rack-name small", transform: `rotate(-90 ${x} ${middle})` } : { y: middle + 5, class: "rack-name" };
      const text = H.svg("text", { x, ...upright }, `r${rack.id}`);
      const title = H.svg("title", {});
      const g = this.item(`rack/${rack.id}`, `Rack r${rack.id}`, { class: "rack-item" }, title, ...up.parts, ...down.parts, box, text);
      this.root.append(g);
      return { g, title, up: up.level, down: down.level };
    }

    drawPlane(plane, racks) {
      this.side(plane.top + plane.height / 2 - 14, [`OCS plane ${plane.id}`, H.rate(plane.rate_bps), `dark ${H.span(plane.delta_ns)}`, plane.all_stop ? "all stop" : ""].filter(Boolean));
      const band = { x: LEFT, y: plane.top, width: this.width - LEFT - RIGHT, height: plane.height, rx: 6, class: "plane" };
      this.root.append(H.svg("rect", band));
      const small = this.cell < 26;
      const every = Math.ceil(24 / this.cell); // of the names, where not all have room
      const made = new Map();
      for (const [k, r] of racks.entries()) {
        const x = this.x(r);
        const size = Math.min(5, this.cell * 0.2);
        const input = H.svg("circle", { cx: x, cy: plane.top, r: size, class: "port" });
        const output = H.svg("circle", { cx: x, cy: plane.top + plane.height, r: size, class: "port" });
        const d = size * 1.4;
        const cross = H.svg("path", { d: `M${x - d} ${plane.top - d}l${2 * d} ${2 * d}m0 ${-2 * d}l${-2 * d} ${2 * d}`, class: "cross" });
        const label = H.svg("text", { x, y: plane.top + plane.height + 18, class: small ? "port-name small" : "port-name" }, k % every ? "" : `r${r}`);
        const hit = H.svg("rect", { x: x - this.cell / 2, y: plane.top - 9, width: this.cell, height: 18, class: "hit" });
        const title = H.svg("title", {});
        const g = this.item(`port/${plane.id}/${r}`, `Port of r${r} on plane ${plane.id}`, { class: "port-item" }, title, hit, input, cross);
        this.root.append(g, output, label);
        made.set(r, { g, title, input, output });
      }
      return made;
    }

    // Everything that changes, as it was at an instant.
    update(at, sample) {
      if (!this.store.topology || !this.root) return;
      this.updateRates(sample);
      this.updatePorts();
      this.updateCircuits(at, sample);
    }

    updateRates(sample) {
      const { topology } = this.store;
      if (this.graph) this.graph.update(sample);
      else H.text(this.epsText, `${this.width > 700 ? "electrical packet switch" : ""}${sample ? ` · ${H.rate(sample.eps)} · circuits ${H.rate(sample.ocs)}${this.width > 700 ? " in the last second" : ""}` : ""}`.replace(/^ · /, ""));
      if (!sample || sample === this.drawn) return;
      this.drawn = sample;
      this.racks.forEach((rack, k) => {
        const r = topology.racks[k];
        const share = (bps) => Math.min(1, bps / r.uplink_bps);
        const [up, down] = [share(sample.up[k]), share(sample.down[k])];
        const { g, title, up: u, down: d } = rack;
        u.setAttribute("y", this.below + LINK.top + LINK.height * (1 - up));
        u.setAttribute("height", LINK.height * up);
        d.setAttribute("height", LINK.height * down);
        const text = `Rack r${k}: sends ${H.rate(sample.up[k])} to the EPS (${H.percent(up)}), receives ${H.rate(sample.down[k])} (${H.percent(down)})`;
        H.text(title, text);
        g.setAttribute("aria-label", text);
      });
    }

    updatePorts() {
      for (const p of this.store.ports) {
        const port = this.ports[p.plane]?.get(p.rack);
        if (!port) continue;
        const faulty = p.faulty !== null && p.faulty !== undefined;
        if (port.faulty !== faulty) port.g.classList.toggle("faulty", faulty);
        port.faulty = faulty;
        const text = `Port of r${p.rack} on plane ${p.plane}${faulty ? `: faulty, ${p.faulty}` : ""}`;
        H.text(port.title, text);
        port.g.setAttribute("aria-label", text);
      }
    }

    updateCircuits(at, sample) {
      const found = this.store.circuitsAt(at);
      const seen = new Set();
      // Labels fit where circuits are few.
      const labels = this.cell > 60;
      for (const c of found) {
        const key = `circuit/${c.plane}/${c.input}/${c.up}`;
        if (!this.circuits[c.plane] || !this.place.has(c.input) || !this.place.has(c.output)) continue;
        seen.add(key);
        let line = this.lines.get(key);
        if (!line) this.lines.set(key, (line = this.drawCircuit(c, key)));
        const state = this.store.stateOf(c, at);
        const rate = state === "up" ? (this.store.litRate(sample, c.plane, c.input) ?? 0) : 0;
        const kind = `circuit ${state}${c.manual ? " manual" : ""}`;
        if (line.kind !== kind) line.g.setAttribute("class", (line.kind = kind));
        const share = Math.min(1, rate / this.planes[c.plane].rate_bps);
        const width = state === "up" ? (this.cell < 26 ? 1 + 2 * share : 1.6 + 4.4 * share) : 1.4;
        if (line.width !== width) line.path.setAttribute("stroke-width", (line.width = width));
        H.text(line.text, labels && state === "up" && share > 0.005 ? H.rate(rate) : "");
        if (line.told !== kind + rate) {
          line.told = kind + rate;
          const what = state === "up" ? `its port had light for ${H.percent(this.store.litShare(sample, c.plane, c.input))} of the last second, and carried ${H.rate(rate)} while it had` : state === "dark" ? "dark, being set up" : "promised";
          const text = `Circuit on plane ${c.plane} from r${c.input} to r${c.output}: ${what}${c.manual ? "; set by hand" : ""}`;
          line.g.setAttribute("aria-label", text);
          H.text(line.title, text);
        }
      }
      for (const [key, line] of this.lines) {
        if (seen.has(key)) continue;
        // The focus goes to the rack, not to the top of the page.
        if (line.g === document.activeElement) this.racks.get(line.input)?.g.focus();
        line.g.remove();
        line.text.remove();
        this.lines.delete(key);
      }
    }

    drawCircuit(c, key) {
      const plane = this.planes[c.plane];
      const [x0, x1, y0, y1] = [this.x(c.input), this.x(c.output), plane.top, plane.top + plane.height];
      const bend = plane.height * 0.45;
      const d = `M${x0} ${y0 + 6}C${x0} ${y0 + bend} ${x1} ${y1 - bend} ${x1} ${y1 - 6}`;
      const path = H.svg("path", { d, class: "line" });
      const hit = H.svg("path", { d, class: "hit-line" });
      // Where the label of a circuit stands depends on its sender, so that those of neighbours do not cover each other.
      const t = 0.22 + 0.14 * (c.input % 5);
      const at = (a, b, e, f) => (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t ** 2 * e + t ** 3 * f;
      const text = H.svg("text", { x: at(x0, x0, x1, x1), y: at(y0 + 6, y0 + bend, y1 - bend, y1 - 6) + 4, class: "circuit-rate" });
      const title = H.svg("title", {});
      const g = this.item(key, "", { class: "circuit" }, title, path, hit);
      this.labels.append(text);
      this.circuits[c.plane].append(g);
      return { g, path, text, title, input: c.input };
    }

    // One stop of the tab key for the whole picture; arrows go from item to item.
    key(e) {
      const item = e.target.closest?.("[data-key]");
      if (!item) return;
      if (e.key === "Enter" || e.key === " ") {
        e.preventDefault();
        e.stopPropagation();
        this.onPick(item.dataset.key);
        return;
      }
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.racks.size, ArrowUp: -this.racks.size }[e.key];
      if (!step) return;
      e.preventDefault();
      e.stopPropagation();
      const all = [...this.root.querySelectorAll("[data-key]")];
      const next = all[Math.max(0, Math.min(all.length - 1, all.indexOf(item) + step))];
      item.setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
    }
  }

  H.Fabric = Fabric;
})();
