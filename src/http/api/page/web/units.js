// Numbers with their units, as people read them. Amounts of data and rates are decimal; times come in nanoseconds.
"use strict";
(() => {
  const H = (globalThis.Heliostat ??= {});

  // Three significant digits, no exponent.
  const digits = (x) => (x >= 99.95 ? x.toFixed(0) : x >= 9.995 ? x.toFixed(1) : x.toFixed(2));
  const scaled = (x, units) => {
    let k = 0;
    while (x >= 999.5 && k + 1 < units.length) [x, k] = [x / 1000, k + 1];
    const text = k === 0 ? String(Math.round(x)) : digits(x);
    return `${text}\u202f${units[k]}`;
  };

  H.bytes = (n) => scaled(n, ["B", "kB", "MB", "GB", "TB", "PB"]);
  H.rate = (bps) => scaled(bps, ["b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s"]);
  H.percent = (share, places = 0) => `${(100 * share).toFixed(places)}\u202f%`;
  H.ratio = (x) => `${digits(x)}×`;

  // A duration in one unit: 97 µs, 10.1 ms, 2.23 s, 3 min 20 s.
  H.span = (ns) => {
    if (ns === 0) return "0\u202fs";
    if (ns < 999.5) return `${Math.round(ns)}\u202fns`;
    if (ns < 999_500) return `${digits(ns / 1e3)}\u202fµs`;
    if (ns < 999_500_000) return `${digits(ns / 1e6)}\u202fms`;
    const s = ns / 1e9;
    if (s < 120) return `${digits(s)}\u202fs`;
    if (s < 7200) return `${Math.floor(s / 60)}\u202fmin ${Math.floor(s % 60)}\u202fs`;
    return `${Math.floor(s / 3600)}\u202fh ${Math.floor((s % 3600) / 60)}\u202fmin`;
  };

  // A number of things, in the singular where it is one.
  H.many = (n, one, more = `${one}s`) => `${n} ${n === 1 ? one : more}`;

  // An instant since the start: 1:02:03.4.
  H.clock = (ns, places = 1) => {
    const s = Math.max(0, ns) / 1e9;
    const [h, m] = [Math.floor(s / 3600), Math.floor((s % 3600) / 60)];
    const rest = (s % 60).toFixed(places).padStart(places ? places + 3 : 2, "0");
    return h ? `${h}:${String(m).padStart(2, "0")}:${rest}` : `${m}:${rest}`;
  };

  // An element with attributes and children; text is never read as HTML.
  H.el = (name, attributes = {}, ...children) => H.fill(document.createElement(name), attributes, children);
  H.svg = (name, attributes = {}, ...children) => H.fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
  H.fill = (element, attributes, children) => {
    for (const [key, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children.flat().filter((c) => c !== null && c !== undefined));
    return element;
  };
  H.byId = (id) => document.getElementById(id);
  // Writes only what has changed: a screen reader is not told the same again, and the browser lays nothing out again.
  H.text = (element, text) => {
    if (element.textContent !== text) element.textContent = text;
  };
})();
