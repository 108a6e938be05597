// Jobs of a task scheduler: their slots over time, computing and waiting told apart, and a list of them.
"use strict";
(() => {
  const H = (globalThis.Heliostat ??= {});
  const MOST_LINES = 7; // jobs with a colour of their own; the others share one
  const MOST_ROWS = 60;

  class Jobs {
    constructor(store) {
      this.store = store;
      this.panel = H.byId("jobs");
      this.rows = new H.Keyed(H.byId("job-rows"), () => {
        const cells = ["", "", "", "n", "n", "n", "n"].map((kind) => H.el("td", { class: kind || null }));
        const [swatch, name, bar, share] = [H.el("span", { class: "swatch", "aria-hidden": "true" }), H.el("span"), H.el("progress", { max: 1, value: 0 }), H.el("span")];
        cells[0].append(swatch, " ", name);
        cells[2].append(bar, " ", share);
        const row = H.el("tr", {}, cells);
        row.show = (j) => {
          row.classList.toggle("ended", j.ended);
          swatch.style.background = j.colour;
          [H.text(name, j.name), H.text(cells[1], j.state), H.text(share, j.share)];
          if (bar.value !== j.done) bar.value = j.done;
          bar.setAttribute("aria-label", `${j.name}: tasks finished`);
          j.cells.forEach((text, k) => H.text(cells[3 + k], text));
        };
        return row;
      });
    }

    update(at) {
      const { jobs } = this.store;
      this.panel.hidden = !jobs.workload;
      if (this.panel.hidden) return;
      this.colours = this.pick();
      this.showRows(at);
      if (H.isSeen(H.byId("slots"))) this.showSlots(at);
    }

    // The jobs that have held slots the longest get colours of their own, in the order of their numbers.
    pick() {
      const sums = new Map();
      for (const s of this.store.jobs.samples) for (const h of s.held) sums.set(h.job, (sums.get(h.job) ?? 0) + h.computing + h.waiting);
      const most = [...sums.entries()].sort((a, b) => b[1] - a[1]).slice(0, MOST_LINES).map((x) => x[0]);
      return new Map(most.sort((a, b) => a - b).map((job, k) => [job, H.palette()[k]]));
    }

    state(j, at) {
      if (j.arrival_ns > at) return "to come";
      if (j.finished_ns !== null && j.finished_ns <= at) return "finished";
      if (j.started_ns === null || j.started_ns > at) return "waits for slots";
      return j.computing ? (j.waiting ? "computes and waits" : "computes") : j.waiting ? "waits for input" : "waits for slots";
    }

    showRows(at) {
      const { jobs } = this.store;
      const all = [...jobs.byId.values()].filter((j) => j.arrival_ns <= at).map((j) => this.store.jobAt(j, at));
      const ended = (j) => j.finished_ns !== null;
      all.sort((a, b) => ended(a) - ended(b) || (ended(a) ? b.finished_ns - a.finished_ns : a.id - b.id));
      const row = (j) => {
        const [over, done] = [ended(j), j.tasks ? j.tasks_finished / j.tasks : 1];
        const cells = [over ? "–" : String(j.computing), over ? "–" : String(j.waiting), `${j.tasks_finished} of ${j.tasks}`, H.span((over ? j.finished_ns : at) - j.arrival_ns)];
        return { key: j.id, name: j.name, state: this.state(j, at), ended: over, done, share: H.percent(done), colour: this.colours.get(j.id) ?? H.colour("muted"), cells };
      };
      this.rows.show(all.slice(0, MOST_ROWS).map(row));
      const open = all.filter((j) => !ended(j)).length;
      const sum = (kind) => all.reduce((a, j) => a + j[kind], 0);
      H.text(H.byId("jobs-sum"), `${jobs.workload}, ${jobs.policy}: ${open} open, ${all.length - open} finished; of ${jobs.slots} slots ${sum("computing")} compute, ${sum("waiting")} wait`);
    }

    // A band a job and kind, one on the other: computing full, waiting pale, up to all slots.
    showSlots(at) {
      const { jobs } = this.store;
      const chart = H.chartOf(H.byId("slots"));
      const { c } = chart;
      const samples = jobs.samples.filter((s) => s.at_ns <= at);
      const from = samples.length ? Math.max(samples[0].at_ns, at - H.HISTORY) : 0;
      const inside = samples.filter((s) => s.at_ns >= from);
      const value = (s, job, kind) => s.held.reduce((a, h) => a + ((job === null ? !this.colours.has(h.job) : h.job === job) ? h[kind] : 0), 0);
      const bands = [...this.colours.entries()].map(([job, colour]) => ({ job, colour, name: jobs.byId.get(job)?.name ?? `job ${job}` }));
      if (jobs.byId.size > bands.length) bands.push({ job: null, colour: c.muted, name: "other jobs" });
      const band = (b, kind) => ({
        name: b.name,
        id: `${b.job}/${kind}`,
        type: "line",
        stack: "slots",
        step: "end",
        showSymbol: false,
        symbol: "none",
        lineStyle: { width: 0 },
        itemStyle: { color: b.colour },
        areaStyle: { color: b.colour, opacity: kind === "computing" ? 0.9 : 0.32 },
        data: inside.map((s) => [s.at_ns / 1e6, value(s, b.job, kind)]),
      });
      const tip = (p) => {
        const s = inside[p[0]?.dataIndex];
        if (!s) return "";
        const line = (h) => `${jobs.byId.get(h.job)?.name ?? h.job}: ${h.computing} compute, ${h.waiting} wait`;
        return [H.clock(s.at_ns), ...s.held.slice(0, 12).map(line), ...(s.held.length > 12 ? [`and ${s.held.length - 12} more`] : [])].join("\n");
      };
      // Bands of jobs that are gone must not stay, so that nothing of before is kept.
      chart.chart.setOption(
        {
          ...H.base(c),
          grid: { left: 56, right: 18, top: 34, bottom: 26 },
          legend: { top: 0, left: 50, type: "scroll", textStyle: { color: c.text }, itemWidth: 14, itemHeight: 10, icon: "roundRect" },
          tooltip: H.tooltip(c, { trigger: "axis", formatter: tip }),
          // Bands are laid on each other by time; on an axis of plain values they would be by their values.
          xAxis: H.axis(c, { type: "time", min: from / 1e6, max: Math.max(at, from + 1e9) / 1e6, axisLabel: { formatter: (v) => H.clock(v * 1e6, 0), hideOverlap: true, showMinLabel: false } }),
          yAxis: H.axis(c, { type: "value", min: 0, max: jobs.slots || null, interval: Math.max(1, Math.ceil(jobs.slots / 4)), name: "slots", nameLocation: "middle", nameGap: 36 }),
          series: bands.flatMap((b) => [band(b, "computing"), band(b, "waiting")]),
        },
        { notMerge: true, lazyUpdate: true },
      );
      const words = bands.map((b) => `${b.name} ${inside.length ? value(inside.at(-1), b.job, "computing") + value(inside.at(-1), b.job, "waiting") : 0}`);
      H.byId("slots").setAttribute("aria-label", `Slots now by job: ${words.join(", ") || "none"}`);
    }
  }

  H.Jobs = Jobs;
})();
