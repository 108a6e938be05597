// Panels as files: the picture as PNG, the numbers as CSV (times in nanoseconds since the start of the daemon).
"use strict";
(() => {
  const H = (globalThis.Heliostat ??= {});
  // What the style sheet gives to parts of an SVG; a picture by itself has no style sheet.
  const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity", "display", "font-family", "font-size", "font-weight", "text-anchor", "paint-order"];

  const download = (name, url) => H.el("a", { download: name, href: url }).click();
  const quoted = (v) => (/[",\n]/.test(v) ? `"${v.replaceAll('"', '""')}"` : v);
  H.csv = (heads, rows) => [heads, ...rows].map((r) => r.map((v) => quoted(String(v ?? ""))).join(",")).join("\n") + "\n";

  // The pixels of an SVG as PNG, on the panel's ground.
  H.pngOf = async (svg) => {
    const copy = svg.cloneNode(true);
    const [from, to] = [svg, copy].map((s) => [s, ...s.querySelectorAll("*")]);
    from.forEach((e, k) => {
      const style = getComputedStyle(e);
      for (const name of STYLES) to[k].setAttribute(name, style.getPropertyValue(name));
    });
    const image = new Image();
    image.src = `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
    await image.decode();
    const canvas = H.el("canvas", { width: 2 * image.width, height: 2 * image.height });
    const context = canvas.getContext("2d");
    context.fillStyle = H.colour("panel");
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas.toDataURL("image/png");
  };

  // Gives every panel its buttons.
  H.save = (store, view, range) => {
    const chart = (id) => async () => H.chartOf(H.byId(id)).chart.getDataURL({ pixelRatio: 2, backgroundColor: H.colour("panel") });
    const ns = (x) => (Number.isFinite(x) ? Math.round(x) : "");
    const inRange = (list) => {
      const [from, to] = range();
      return list.filter((x) => x.from < to && (x.at ?? x.to) > from);
    };
    const circuits = () => {
      const [from, to] = range();
      const all = [...store.circuits.values()].filter((c) => c.setup < to && c.until > from);
      return H.csv(["plane", "input", "output", "setup_ns", "up_ns", "until_ns", "by_hand", "demand_bytes"], all.map((c) => [c.plane, c.input, c.output, ns(c.setup), ns(c.up), ns(c.until), c.manual, c.demand]));
    };
    const rates = () => {
      const opened = store.samples[0]?.from ?? Infinity;
      const all = inRange([...store.past.filter((x) => x.at <= opened), ...store.samples]);
      return H.csv(["from_ns", "until_ns", "ocs_bps", "eps_bps"], all.map((s) => [ns(s.from), ns(s.at), ns(s.ocs), ns(s.eps)]));
    };
    const matrix = () => {
      const n = store.topology.racks.length;
      const kind = H.byId("matrix-kind").value;
      const unit = kind === "sent" || kind === "over" ? "bps" : "bytes";
      const sample = store.sampleAt(view.paused ? view.at : store.now());
      return H.csv(["from", "to", `${kind}_${unit}`], [...(sample?.[kind] ?? [])].map((v, k) => [Math.floor(k / n), k % n, Math.round(v)]).filter(([a, b]) => a !== b));
    };
    const links = () => {
      const heads = ["from_ns", "until_ns", "rack", "eps_up_bps", "eps_down_bps", ...store.topology.planes.map((p) => `ocs${p.id}_bps`)];
      const row = (s, r) => [ns(s.from), ns(s.at), r, ns(s.up[r]), ns(s.down[r]), ...store.topology.planes.map((p) => ns(store.portRate(s, p.id, r)))];
      return H.csv(heads, store.samples.flatMap((s) => store.topology.racks.map((_, r) => row(s, r))));
    };
    const coflows = () => H.csv(["id", "name", "state", "arrival_ns", "finished_ns", "asked_bytes", "received_bytes", "over_ocs_bytes", "bound_ns"], [...store.coflows.values()].map((c) => [c.id, c.name, c.state, c.arrival_ns, c.finished_ns, c.asked_bytes, c.received_bytes, c.over_ocs_bytes, c.bound_ns]));
    const jobs = () => H.csv(["at_ns", "job", "computing", "waiting"], store.jobs.samples.flatMap((s) => s.held.map((h) => [s.at_ns, store.jobs.byId.get(h.job)?.name ?? h.job, h.computing, h.waiting])));
    const loop = () => H.csv(["at_ns", "cycle_p99_ns", "decide_p99_ns", "apply_p99_ns", "late_share"], store.course.map((x) => [ns(x.at), ns(x.cycle), ns(x.decide), ns(x.apply), x.late]));
    const events = () => H.csv(["at_ns", "event"], [...H.byId("log-rows").children].map((row) => [row.at, row.lastChild.textContent]));
    const panels = {
      fabric: [() => H.pngOf(document.querySelector("#fabric-picture svg")), circuits],
      time: [chart("timeline"), rates],
      jobs: [chart("slots"), jobs],
      demand: [chart("matrix"), matrix],
      links: [chart("utilisation"), links],
      coflows: [null, coflows],
      loop: [chart("course"), loop],
      log: [null, events],
    };
    for (const [id, [png, csv]] of Object.entries(panels)) {
      const panel = H.byId(id);
      const name = (end) => `${store.topology.name}-${id}.${end}`;
      const what = panel.querySelector("h2").textContent;
      const button = (end, run) => H.el("button", { type: "button", "data-save": end, "aria-label": `${what} as ${end.toUpperCase()}`, onclick: run }, end.toUpperCase());
      const save = async () => download(name("png"), await png());
      const write = () => {
        const url = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
        download(name("csv"), url);
        setTimeout(() => URL.revokeObjectURL(url), 60_000);
      };
      panel.querySelector(".head").append(H.el("div", { class: "save" }, png ? button("png", save) : null, button("csv", write)));
    }
    H.panelFiles = panels; // for tests
  };
})();
