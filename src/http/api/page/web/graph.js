// The packet switches above the racks, where the EPS is more than one: rows by their distance from the racks, links as wide as their load.
"use strict";
(() => {
  const H = (globalThis.Heliostat ??= {});
  const ROW = 74; // from one row of switches to the next
  const BOX = 22; // height of a switch
  const TOP = 8;
  const WORDS = { core: "core", aggregation: "aggregation", access: "access", server: "servers" };

  // Rows of switches from the racks upwards: [{switches: [number], name}]. Servers that relay are the racks themselves, and in no row.
  function rowsOf({ switches, links, racks }) {
    const near = switches.map(() => []);
    for (const { from, to } of links) [near[from].push(to), near[to].push(from)];
    const relay = racks.every((s) => switches[s].tier === "server");
    const height = switches.map(() => -1);
    let edge = [...new Set(racks)];
    for (let h = 0; edge.length; h += 1) {
      for (const s of edge) height[s] = h;
      edge = [...new Set(edge.flatMap((s) => near[s]))].filter((s) => height[s] < 0);
    }
    // Of servers that are joined by several levels of switches, each level is a row.
    const level = (s) => {
      const server = near[s].find((n) => switches[n].tier === "server");
      return server === undefined ? 0 : near[server].filter((n) => n < s).length;
    };
    const rows = new Map();
    switches.forEach((s, k) => {
      if (relay && s.tier === "server") return;
      const key = height[k] + (relay ? level(k) : 0);
      if (!rows.has(key)) rows.set(key, []);
      rows.get(key).push(k);
    });
    return [...rows.entries()].sort((a, b) => a[0] - b[0]).map(([, all], k) => ({ switches: all, name: relay ? `level ${k}` : (WORDS[switches[all[0]].tier] ?? "") }));
  }

  // Places a row's switches evenly, in the order of the mean place of what each joins below.
  function place(row, y, graph, at, [left, right]) {
    const below = new Map(row.switches.map((s) => [s, []]));
    const join = (s, x) => below.get(s)?.push(x);
    graph.racks.forEach((s, r) => join(s, graph.rackX(r)));
    for (const { from, to } of graph.links) {
      if (at.has(from)) join(to, at.get(from).x);
      if (at.has(to)) join(from, at.get(to).x);
    }
    const mean = (s) => below.get(s).reduce((a, b) => a + b, 0) / Math.max(1, below.get(s).length);
    const order = [...row.switches].sort((a, b) => mean(a) - mean(b) || a - b);
    order.forEach((s, k) => at.set(s, { x: left + ((right - left) * (k + 0.5)) / order.length, y }));
    return (right - left) / order.length;
  }

  // The picture of the switches, in the picture of the fabric.
  class Graph {
    constructor(store, item) {
      [this.store, this.item] = [store, item];
      this.rows = rowsOf(store.topology.graph);
      this.height = TOP + this.rows.length * ROW;
    }

    // Draws it; `rackX` tells where racks are, and `rackY` how high their links begin.
    draw(root, side, rackX, rackY, [left, right]) {
      const graph = { ...this.store.topology.graph, rackX };
      const at = new Map();
      if (this.rows.length === 0 || graph.racks.every((s) => graph.switches[s].tier === "server")) graph.racks.forEach((s, r) => at.set(s, { x: rackX(r), y: rackY - BOX / 2 }));
      const cells = this.rows.map((row, k) => {
        const y = this.height - ROW * (k + 1) + BOX / 2;
        side(y - 2, [row.name, `${row.switches.length} switch${row.switches.length === 1 ? "" : "es"}`]);
        return place(row, y, graph, at, [left, right]);
      });
      const lines = H.svg("g", { class: "cables" });
      root.append(lines);
      // A rack's own link to its switch: its load is beside it, so it is only drawn.
      graph.racks.forEach((s, r) => {
        const to = at.get(s);
        if (to && to.y < rackY - BOX) lines.append(H.svg("path", { d: `M${rackX(r)} ${rackY}L${to.x} ${to.y + BOX / 2}`, class: "stem" }));
      });
      this.links = graph.links.map((link, k) => this.drawLink(lines, k, at.get(link.from), at.get(link.to), link, graph));
      this.switches = [];
      this.rows.forEach((row, k) => row.switches.forEach((s) => (this.switches[s] = this.drawSwitch(root, s, at.get(s), cells[k], graph.switches[s]))));
    }

    drawLink(lines, k, a, b, link, graph) {
      const [low, high] = a.y >= b.y ? [a, b] : [b, a];
      const level = low.y === high.y;
      const d = level ? `M${low.x} ${low.y + BOX / 2}Q${(low.x + high.x) / 2} ${low.y + BOX + 16} ${high.x} ${high.y + BOX / 2}` : `M${low.x} ${low.y - BOX / 2}L${high.x} ${high.y + BOX / 2}`;
      const [mx, my] = [(low.x + high.x) / 2, (low.y + high.y) / 2];
      const path = H.svg("path", { d, class: "cable-line" });
      const hit = H.svg("path", { d, class: "hit-line" });
      const cross = H.svg("path", { d: `M${mx - 6} ${my - 6}l12 12m0 -12l-12 12`, class: "cross" });
      const title = H.svg("title", {});
      const names = `${graph.switches[link.from].name} – ${graph.switches[link.to].name}`;
      const g = this.item(`link/${k}`, `Link ${names}`, { class: "cable" }, title, path, hit, cross);
      lines.append(g);
      return { g, path, title, names };
    }

    drawSwitch(root, s, { x, y }, cell, { name }) {
      const wide = Math.max(6, Math.min(cell - 4, Math.max(34, name.length * 7.6 + 12)));
      const box = H.svg("rect", { x: x - wide / 2, y: y - BOX / 2, width: wide, height: BOX, rx: Math.min(5, wide / 4), class: "switch" });
      const fits = wide >= name.length * 6.4 + 4;
      const text = fits ? [H.svg("text", { x, y: y + 4, class: "switch-name" }, name)] : [];
      const title = H.svg("title", {}, name);
      const g = this.item(`switch/${s}`, `Switch ${name}`, { class: "switch-item" }, title, box, ...text);
      root.append(g);
      return { g, title };
    }

    // Loads as they were in a sample; which links are down is known of now only.
    update(sample) {
      const { store } = this;
      const down = new Set(store.linksDown.map((pair) => [...pair].sort().join("\n")));
      if (sample === this.drawn && store.linksDown === this.told) return;
      [this.drawn, this.told] = [sample, store.linksDown];
      const { graph } = store.topology;
      graph.links.forEach((link, k) => {
        const { g, path, title, names } = this.links[k];
        const [there, back] = store.linkRates(sample, k);
        const share = Math.min(1, Math.max(there, back) / link.rate_bps);
        const ends = [graph.switches[link.from].name, graph.switches[link.to].name].sort().join("\n");
        const isDown = down.has(ends);
        g.setAttribute("class", `cable${isDown ? " faulty" : share > 0 ? " busy" : ""}`);
        path.setAttribute("stroke-width", (1.2 + 5 * share).toFixed(1));
        path.setAttribute("stroke-opacity", isDown ? "1" : (0.35 + 0.65 * share).toFixed(2));
        const text = isDown ? `Link ${names}: down` : `Link ${names} of ${H.rate(link.rate_bps)}: ${H.rate(there)} one way, ${H.rate(back)} the other, ${H.percent(share)}`;
        H.text(title, text);
        g.setAttribute("aria-label", text);
      });
      graph.switches.forEach((s, k) => {
        const drawn = this.switches[k];
        if (!drawn) return;
        const text = `Switch ${s.name}: ${H.rate(store.switchRate(sample, k))} through it${s.capacity_bps ? ` of ${H.rate(s.capacity_bps)}` : ""}`;
        H.text(drawn.title, text);
        drawn.g.setAttribute("aria-label", text);
      });
    }
  }

  H.Graph = Graph;
})();
