// Charts of the standard kinds, drawn by Apache ECharts in the colours of the style sheet.
"use strict";
(() => {
  const H = (globalThis.Heliostat ??= {});

  // Eight colours that people with any kind of colour vision tell apart (Okabe and Ito), for light and for dark grounds.
  const LIGHT = ["#0072b2", "#c26a00", "#00765a", "#a8477f", "#5b6bb5", "#8a6d00", "#c0330c", "#3d4a57"];
  const DARK = ["#56b4e9", "#f5b400", "#3fc99b", "#e29cc4", "#a9b4f0", "#d8cf5a", "#ff7c4d", "#c3ccd6"];
  // From little to much: one hue after the other grows in lightness, so that it reads in grey too.
  const RAMP_LIGHT = ["#f3f6f9", "#cfe3ee", "#8fc3da", "#3f96bd", "#14638f", "#0a2f52"];
  const RAMP_DARK = ["#1b232b", "#243f52", "#2b6886", "#4b99b4", "#9cc9a8", "#f7e6a1"];

  H.isDark = () => document.documentElement.dataset.theme === "dark";
  H.palette = () => (H.isDark() ? DARK : LIGHT);
  H.colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  const colours = () => {
    const of = {};
    for (const name of ["text", "muted", "line", "panel", "eps", "ocs", "dark", "fault", "track", "good"]) of[name] = H.colour(name);
    return of;
  };

  // Charts that are drawn, to be drawn again in other colours or another size.
  const charts = new Map();
  const watcher = new ResizeObserver((entries) => {
    for (const { target } of entries) charts.get(target)?.chart.resize();
  });

  const UNSEEN = 3000; // ms between pictures of a chart that is not seen
  // Which boxes can be seen: what cannot is not drawn.
  const seen = new Map();
  const looks = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const before = seen.get(target);
      seen.set(target, isIntersecting);
      if (isIntersecting && before === false) H.onSeen?.();
    }
  });
  // All boxes count as seen, for printing; and what is not seen is drawn now and then, so that no chart is ever empty.
  H.seeAll = false;
  H.drawNow = () => charts.forEach((c) => c.chart.resize());
  const drawn = new Map();
  H.isSeen = (box) => {
    if (H.seeAll || !(performance.now() - drawn.get(box) < UNSEEN)) {
      drawn.set(box, performance.now());
      return true;
    }

    if (!seen.has(box)) {
      seen.set(box, true);
      looks.observe(box);
    }
    return seen.get(box);
  };

  class Chart {
    constructor(box) {
      this.box = box;
      this.c = colours();
      this.chart = echarts.init(box, null, { renderer: "canvas" });
      charts.set(box, this);
      watcher.observe(box);
    }

    set(option, lazy = true) {
      this.chart.setOption(option, { lazyUpdate: lazy });
    }

    // Everything is forgotten but the place; the caller draws again.
    restart() {
      this.c = colours();
      this.chart.clear();
    }

    dispose() {
      watcher.unobserve(this.box);
      charts.delete(this.box);
      this.chart.dispose();
    }
  }

  H.chartOf = (box) => charts.get(box) ?? new Chart(box);
  H.restartCharts = () => charts.forEach((c) => c.restart());

  const font = '"DejaVu Sans", system-ui, sans-serif';
  const axisText = (c, more = {}) => ({ color: c.muted, fontSize: 12, fontFamily: font, ...more });
  H.axis = (c, more = {}) => ({
    axisLine: { lineStyle: { color: c.line } },
    axisTick: { lineStyle: { color: c.line } },
    splitLine: { lineStyle: { color: c.line, opacity: 0.6 } },
    nameTextStyle: axisText(c),
    ...more,
    axisLabel: axisText(c, more.axisLabel),
  });
  // Drawn on the canvas: HTML with styles of its own is what the page's policy forbids.
  H.tooltip = (c, more = {}) => ({
    renderMode: "richText",
    confine: true,
    backgroundColor: c.panel,
    borderColor: c.muted,
    padding: [6, 10],
    textStyle: { color: c.text, fontSize: 13, fontFamily: font },
    transitionDuration: 0,
    ...more,
  });
  H.base = (c) => ({ animation: false, textStyle: { fontFamily: font, color: c.text }, aria: { enabled: false } });

  // Rows x columns of numbers as colours; zero stays empty.
  H.heatMap = (chart, { rows, columns, cells, most, format, rowName, columnName, tip, inverse = true, columnsTop = true, columnText }) => {
    const { c } = chart;
    const every = (n) => (n > 40 ? 3 : n > 20 ? 1 : 0);
    chart.set({
      ...H.base(c),
      grid: { left: 54, right: 12, top: columnsTop ? 48 : 12, bottom: columnsTop ? 48 : 84 },
      tooltip: H.tooltip(c, { formatter: (p) => tip(p.value) }),
      xAxis: H.axis(c, { type: "category", data: columns, name: columnName, nameLocation: "middle", nameGap: 26, position: columnsTop ? "top" : "bottom", splitLine: { show: false }, axisTick: { show: columnsTop }, axisLabel: columnText ?? { interval: every(columns.length) } }),
      yAxis: H.axis(c, { type: "category", data: rows, name: rowName, nameLocation: "middle", nameGap: 36, inverse, splitLine: { show: false }, axisLabel: { interval: every(rows.length) } }),
      visualMap: { type: "continuous", dimension: 2, min: 0, max: most || 1, calculable: false, orient: "horizontal", left: "center", bottom: 4, itemWidth: 12, itemHeight: 180, text: [format(most || 1), format(0)], textStyle: axisText(c), inRange: { color: H.isDark() ? RAMP_DARK : RAMP_LIGHT }, formatter: format },
      series: [{ type: "heatmap", data: cells, itemStyle: { borderColor: c.panel, borderWidth: cells.length > 2000 ? 0 : 1 }, emphasis: { itemStyle: { borderColor: c.text, borderWidth: 2 } }, progressive: 0 }],
    });
  };

  // Lines over time or another axis: [{name, colour, area, step, data: [[x, y]]}]. The legend shows the lines with their dashes, and no dots. An axis of
  // values that are all zero goes to `rest`.
  H.lines = (chart, { series, x, y, legend = true, left = 64 }) => {
    const { c } = chart;
    chart.set({
      ...H.base(c),
      grid: { left, right: 18, top: legend ? 34 : 14, bottom: x.name ? 44 : 26 },
      legend: legend ? { top: 0, left: 60, textStyle: { color: c.text, fontFamily: font }, itemWidth: 30, itemHeight: 8, itemStyle: { opacity: 0 } } : undefined,
      tooltip: H.tooltip(c, { trigger: "axis", ...(x.tip ? { formatter: x.tip } : { valueFormatter: y.format }) }),
      xAxis: H.axis(c, { type: x.log ? "log" : "value", min: x.min, max: x.max, name: x.name, nameLocation: "middle", nameGap: 28, axisLabel: { formatter: x.format, hideOverlap: true } }),
      yAxis: H.axis(c, { type: "value", min: 0, max: y.max ?? ((v) => (v.max > 0 ? null : (y.rest ?? 1))), name: y.name, nameLocation: "middle", nameGap: left - 14, splitNumber: y.splits ?? 4, interval: y.interval, minInterval: y.whole ? 1 : 0, axisLabel: { formatter: y.format } }),
      series: series.map((s, k) => ({
        type: "line",
        name: s.name,
        data: s.data,
        step: s.step,
        showSymbol: false,
        symbol: "none",
        lineStyle: { width: s.width ?? 2, color: s.colour ?? H.palette()[k % 8], type: s.dash ?? "solid" },
        itemStyle: { color: s.colour ?? H.palette()[k % 8] },
        areaStyle: s.area ? { opacity: 0.18 } : undefined,
        stack: s.stack,
        sampling: "lttb",
      })),
    });
  };

  // Bars of circuits on rows of racks, one lane a plane: what is too narrow to be seen alone becomes one bar.
  // A bar is [lane, setup, up, until, output, ...] in milliseconds; it says `prefix` and the output where there is room, nothing without.
  H.circuitBars = (chart, bars, lanes, prefix = "r") => {
    const { c } = chart;
    const palette = H.palette();
    const label = H.isDark() ? "#10161c" : "#ffffff";
    return {
      type: "custom",
      name: "circuits",
      data: bars,
      clip: true,
      encode: { x: [1, 3], y: 0 },
      renderItem: (params, api) => {
        const row = Math.floor(api.value(0) / lanes);
        const lane = api.value(0) % lanes;
        const height = api.size([0, 1])[1];
        const high = Math.max(1, (height * 0.84) / lanes);
        const at = (k) => api.coord([api.value(k), row]);
        const [x0, y] = at(1);
        const [x1, x2] = [at(2)[0], at(3)[0]];
        const top = y - height * 0.42 + lane * high;
        const rect = (from, to, style) => {
          const shape = echarts.graphic.clipRectByRect({ x: from, y: top, width: Math.max(0.6, to - from), height: Math.max(1, high - (high > 4 ? 1 : 0)) }, params.coordSys);
          return shape && { type: "rect", shape, style };
        };
        const output = api.value(4);
        const children = [];
        if (x1 - x0 > 0.4) children.push(rect(x0, x1, { fill: c.dark, opacity: 0.75 }));
        const light = rect(Math.max(x0, x1), x2, { fill: output < 0 ? c.muted : palette[output % palette.length] });
        if (prefix !== null && light) {
          // A bar that is drawn again keeps its text, so that one without room gets an empty one.
          const room = output >= 0 && light.shape.width > 24 && high > 9;
          light.textContent = { type: "text", style: { text: room ? `${prefix}${output}` : "", fill: label, fontSize: Math.min(12, high), fontWeight: 600 } };
          light.textConfig = { position: "inside" };
        }
        children.push(light);
        return { type: "group", children: children.filter(Boolean) };
      },
    };
  };

  // Rows of numbers over time as colours: a cell is [from, until, row, value], times in milliseconds.
  H.timeHeat = (chart, { rows, cells, from, to, most, format, rowName, tip }) => {
    const { c } = chart;
    chart.set({
      ...H.base(c),
      grid: { left: 54, right: 18, top: 12, bottom: 66 },
      tooltip: H.tooltip(c, { formatter: (p) => tip(p.value) }),
      xAxis: H.axis(c, { type: "value", min: from, max: to, splitLine: { show: false }, axisLabel: { formatter: (v) => H.clock(v * 1e6, to - from < 1e4 ? 1 : 0), hideOverlap: true, showMinLabel: false, showMaxLabel: false } }),
      yAxis: H.axis(c, { type: "category", data: rows, name: rowName, nameLocation: "middle", nameGap: 36, inverse: true, splitLine: { show: false } }),
      visualMap: { type: "continuous", dimension: 3, min: 0, max: most || 1, calculable: false, orient: "horizontal", left: "center", bottom: 4, itemWidth: 12, itemHeight: 180, text: [format(most || 1), format(0)], textStyle: axisText(c), inRange: { color: H.isDark() ? RAMP_DARK : RAMP_LIGHT }, formatter: format },
      series: [{
        type: "custom",
        data: cells,
        clip: true,
        encode: { x: [0, 1], y: 2 },
        renderItem: (params, api) => {
          const [a, y] = api.coord([api.value(0), api.value(2)]);
          const b = api.coord([api.value(1), 0])[0];
          const high = api.size([0, 1])[1];
          const gap = high > 6 ? 1 : 0;
          const shape = echarts.graphic.clipRectByRect({ x: a, y: y - high / 2, width: Math.max(0.6, b - a - (b - a > 6 ? 1 : 0)), height: high - gap }, params.coordSys);
          return shape && { type: "rect", shape, style: { fill: api.visual("color") } };
        },
        progressive: 0,
      }],
    });
  };

  // Bars with their names inside, where there is room: [row, from, to, number], times in milliseconds. `say(number)` is the name.
  H.namedBars = (chart, bars, say, fill) => {
    const text = chart.c.panel;
    return {
      type: "custom",
      data: bars,
      clip: true,
      encode: { x: [1, 2], y: 0 },
      renderItem: (params, api) => {
        const [a, y] = api.coord([api.value(1), api.value(0)]);
        const b = api.coord([api.value(2), api.value(0)])[0];
        const high = api.size([0, 1])[1];
        const shape = echarts.graphic.clipRectByRect({ x: a, y: y - high / 2 + 1, width: Math.max(0.8, b - a - 1), height: high - 2 }, params.coordSys);
        if (!shape) return null;
        const bar = { type: "rect", shape, style: { fill } };
        const name = say(api.value(3));
        const room = shape.width > 6.5 * name.length + 6 && high > 10;
        bar.textContent = { type: "text", style: { text: room ? name : "", fill: text, fontSize: Math.min(11, high - 2) } };
        bar.textConfig = { position: "insideLeft", distance: 3 };
        return bar;
      },
    };
  };

  // Where the plot of the time chart begins and ends, for its axes left and right.
  H.timeGrid = (width) => (width < 560 ? { left: 62, right: 58 } : { left: 82, right: 70 });

  // Shares of values that are at most x: [[x, share]] as a staircase; null values never come.
  H.cdf = (values) => {
    const all = values.filter((v) => v !== null && v !== undefined).sort((a, b) => a - b);
    const points = all.length ? [[all[0], 0]] : [];
    all.forEach((v, k) => points.push([v, (k + 1) / values.length]));
    return points;
  };
})();
