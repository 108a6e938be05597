// What the page knows: the last snapshot, the events since, and a history of both. No part of the document is touched here.
"use strict";
(() => {
  const H = (globalThis.Heliostat ??= {});

  // How far back a viewer can look, in nanoseconds, and how much is kept for that at most.
  const HISTORY = 600e9;
  const MOST_CIRCUITS = 40_000;
  const MOST_CYCLES = 60_000;
  const MOST_CELLS = 3_000_000; // of matrices, all samples together
  const MOST_EVENTS = 300;
  const MOST_COFLOWS = 400;
  const MOST_SPANS = 20_000; // coflows of which begin and end are known
  const LANES = 10; // of coflows
  const MOST_SLOTS = 2400; // samples of jobs
  const MOST_STEPS = 600; // of what is known of one coflow or job over time
  const MOST_FLOW_CELLS = 2_000_000; // of flows over time, all coflows together
  const LATE = 50e6; // time by which an answer may be ahead of the page's clock, in nanoseconds

  // What was seen of something over time, kept where it changed: a list of {at, ...}. Of a long list every second step is dropped.
  const note = (tracks, id, step, same, most = MOST_STEPS) => {
    let list = tracks.get(id) ?? [];
    const last = list.at(-1);
    if (last && (same(last) || last.at >= step.at)) return;
    if (list.length >= most) list = list.filter((_, k) => k % 2 === 0);
    list.push(step);
    tracks.set(id, list);
  };
  // The value below which a share of durations lies, from how many of them each range has; within a range they count as evenly spread.
  H.quantile = (bounds, counts, share) => {
    let left = share * counts.reduce((a, b) => a + b, 0);
    for (let k = 0; k < counts.length; k += 1) {
      const low = k ? bounds[k - 1] : 0;
      if (left <= counts[k] && counts[k] > 0) return low + ((bounds[k] ?? low) - low) * (left / counts[k]);
      left -= counts[k];
    }
    return 0;
  };
  // The last step at an instant or before it.
  const stepAt = (list, at) => list?.findLast((s) => s.at <= at + LATE);

  const total = (list) => list.reduce((a, b) => a + b, 0);

class Store {
    constructor() {
      this.clear();
    }

    // Forgets everything, as after a restart of the daemon.
    clear() {
      this.topology = null;
      this.stats = null;
      this.ports = [];
      this.policy = null;
      this.circuits = new Map(); // by plane/input/up_from, in the order of arrival
      this.cycles = []; // {at, demand, ops, late}
      this.samples = []; // one a poll
      this.past = []; // rates of before the page was opened: {from, at, eps, ocs}
      this.endedAt = null; // when the daemon said that it ends
      this.spans = new Map(); // by coflow, in the order of arrival as far as known: {id, name, from, to}
      this.course = []; // {at, cycle, decide, apply, late}: of the control loop, one a poll
      this.coflows = new Map();
      this.coflowSteps = new Map(); // by coflow: {at, state, received, over}
      this.flowSteps = new Map(); // by coflow that is sent here: {at, received}, a number a flow
      this.flowCells = 0; // numbers in it, at most
      this.jobSteps = new Map(); // by job: {at, finished, computing, waiting}
      this.ended = 0;
      this.events = [];
      this.lastSeq = null;
      this.lastNow = 0;
      this.raw = {};
      this.gaps = 0;
      this.linksDown = []; // pairs of switches, by name
      this.jobs = { run: 0, workload: "", policy: "", slots: 0, byId: new Map(), samples: [] };
      this.lead = null;
    }

    setTopology(t) {
      this.topology = t;
      const racks = t.racks.length;
      this.most = Math.max(30, Math.min(600, Math.floor(MOST_CELLS / (4 * racks * racks))));
    }

    // The daemon's clock now: what it said last, and the time since then; the event that came fastest counts. Where nothing comes any more
    // the clock stops, rather than that things go on that nobody has seen.
    now() {
      if (this.lead === null) return this.lastNow;
      return Math.min(this.lastNow + 1.5e9, Math.max(this.lastNow, this.lead + performance.now() * 1e6));
    }

    // The daemon's last word: its clock stands still from now on.
    end(at) {
      this.sawTime(at, false);
      [this.endedAt, this.lead] = [at, null];
      for (const c of this.circuits.values()) c.until = Math.min(c.until, at);
      for (const x of this.spans.values()) x.to = Math.min(x.to, at);
    }

    // What the links to the EPS and the planes carried, in buckets that are counted from their first look; the last look was at `looked`.
    setPast({ from_ns: zero, bucket_ns, until_ns, links }) {
      const sum = (of) => links.filter((l) => of(l.name)).reduce((a, l) => l.bytes.map((b, k) => b + (a[k] ?? 0)), []);
      const [eps, ocs] = [sum((n) => n.endsWith(".up")), sum((n) => n.startsWith("ocs"))];
      const bucket = (k) => [k * bucket_ns, Math.min(until_ns, (k + 1) * bucket_ns)].map((t) => zero + t);
      const past = eps.map((b, k) => [b, ocs[k] ?? 0, ...bucket(k)]).filter(([, , from, at]) => at > from);
      this.past = [{ from: 0, at: zero, eps: 0, ocs: 0 }, ...past.map(([e, o, from, at]) => ({ from, at, eps: (8e9 * e) / (at - from), ocs: (8e9 * o) / (at - from) }))];
    }

    sawTime(ns, fresh) {
      this.lastNow = Math.max(this.lastNow, ns);
      if (!fresh) return;
      const lead = ns - performance.now() * 1e6;
      // A slow drift downwards, so that one odd value does not stay for ever.
      this.lead = this.lead === null ? lead : Math.max(lead, this.lead - 1e5);
    }

    // One line of the event log; `fresh` if it has just happened.
    event(record, fresh) {
      this.lastSeq = record.seq;
      this.sawTime(record.at_ns, fresh);
      const handler = this[`on_${record.event.replaceAll("-", "_")}`];
      if (handler) handler.call(this, record);
      if (record.event !== "cycle" && record.event !== "circuit-set" && record.event !== "circuit-end" && record.event !== "flow-finished") {
        this.events.push(record);
        if (this.events.length > MOST_EVENTS) this.events.shift();
      }
    }

    // Events that the daemon has forgotten; at the beginning those are the ones before the page was opened.
    gap(missed) {
      if (this.lastSeq !== null) this.gaps += missed;
    }

    on_cycle(r) {
      this.cycles.push({ at: r.at_ns, demand: r.demand_bytes, ops: r.ops, late: r.late });
      if (this.cycles.length > MOST_CYCLES) this.cycles.splice(0, MOST_CYCLES / 10);
    }

    on_circuit_set(r) {
      this.putCircuit(r, r.at_ns);
    }

    on_circuit_end(r) {
      const key = `${r.plane}/${r.input}/${r.up_from_ns}`;
      const c = this.circuits.get(key);
      if (!c) return;
      // An end that is not after the beginning takes it back.
      if (r.until_ns <= r.up_from_ns) this.circuits.delete(key);
      else [c.until, c.seen] = [r.until_ns, r.at_ns];
    }

    putCircuit(c, seen) {
      const key = `${c.plane}/${c.input}/${c.up_from_ns}`;
      const old = this.circuits.get(key);
      const until = c.until_ns ?? Infinity;
      const value = { plane: c.plane, input: c.input, output: c.output, setup: c.setup_at_ns, up: c.up_from_ns, until, manual: c.manual ?? old?.manual ?? false, demand: c.demand_bytes ?? old?.demand ?? null, seen, since: old?.since ?? seen };
      if (old) Object.assign(old, value);
      else this.circuits.set(key, value);
      if (this.circuits.size > MOST_CIRCUITS) this.forgetCircuits(MOST_CIRCUITS / 10);
    }

    forgetCircuits(many) {
      const before = this.now() - HISTORY;
      let n = 0;
      for (const [key, c] of this.circuits) {
        if (n >= many && c.until > before) break;
        if (c.until < this.now()) this.circuits.delete(key);
        n += 1;
      }
    }

    // The list of circuits as the API has it. What it does not have, although it was set before, has ended.
    setCircuits(list) {
      this.sawTime(list.now_ns, true);
      const there = new Set();
      for (const c of list.circuits) {
        const key = `${c.plane}/${c.input}/${c.up_from_ns}`;
        there.add(key);
        // An event may have been faster than the list.
        const known = this.circuits.get(key);
        if (!known || known.seen <= list.now_ns) this.putCircuit(c, list.now_ns);
        else known.manual = c.manual;
      }
      for (const [key, c] of this.circuits) {
        if (c.until > list.now_ns && c.seen < list.now_ns && !there.has(key)) {
          if (c.up < list.now_ns) c.until = list.now_ns;
          else this.circuits.delete(key);
        }
      }
    }

    // Circuits that are dark, lit or promised at an instant, by port.
    circuitsAt(at) {
      const found = [];
      for (const c of this.circuits.values()) {
        // Before it was decided it was not even promised; one of before the page was opened is known by its dark time only.
        if (c.until > at && Math.min(c.since, c.setup) <= at) found.push(c);
      }
      return found;
    }

    stateOf(c, at) {
      return at < c.setup ? "promised" : at < c.up ? "dark" : at < c.until ? "up" : "ended";
    }

    // Matrices and port counters of one poll become a sample with rates; `paths` has what links between switches carried.
    sample(demand, ports, paths) {
      this.sawTime(demand.now_ns, true);
      this.ports = ports.ports;
      const flat = (rows) => Float64Array.from(rows.flat());
      const raw = { at: demand.now_ns, sent: flat(demand.sent_bytes), over: flat(demand.over_ocs_bytes), portsAt: ports.now_ns, crossed: ports.ports.map((p) => p.crossed_bytes) };
      // Counted behind the queues of the links, and so never more than they carry.
      Object.assign(raw, { linksAt: ports.uplinks_at_ns, up: ports.uplinks.map((l) => l.up_bytes), down: ports.uplinks.map((l) => l.down_bytes) });
      const old = this.raw;
      this.raw = raw;
      if (old.at === undefined || raw.at <= old.at || raw.portsAt <= old.portsAt || raw.linksAt <= old.linksAt) return;
      const per = 8e9 / (raw.at - old.at);
      const rate = (now, then, by) => now.map((v, k) => Math.max(0, v - then[k]) * by);
      const s = { from: old.at, at: raw.at, demand: Float32Array.from(flat(demand.demand_bytes)), backlog: Float32Array.from(flat(demand.backlog_bytes)) };
      s.sent = Float32Array.from(rate(raw.sent, old.sent, per));
      s.over = Float32Array.from(rate(raw.over, old.over, per));
      s.port = rate(raw.crossed, old.crossed, 8e9 / (raw.portsAt - old.portsAt));
      s.lit = this.litShares(old.portsAt, raw.portsAt);
      const perLook = 8e9 / (raw.linksAt - old.linksAt);
      [s.up, s.down] = [rate(raw.up, old.up, perLook), rate(raw.down, old.down, perLook)];
      [s.eps, s.ocs] = [total(s.up), total(s.over)];
      if (paths) s.links = this.linkSample(paths);
      this.samples.push(s);
      if (this.samples.length > this.most) this.samples.shift();
    }

    // By link between two switches: what went there and back, in bits a second; and what left every switch.
    linkSample(paths) {
      const { graph } = this.topology;
      this.switches = paths.switches;
      if (JSON.stringify(paths.links_down) !== JSON.stringify(this.linksDown)) this.linksDown = paths.links_down;
      const rates = new Float32Array(2 * graph.links.length);
      const through = new Float32Array(graph.switches.length);
      paths.switches.forEach((s, k) => {
        for (const p of s.ports) {
          through[k] += p.sent_bps;
          if (p.link !== null) rates[2 * p.link + (graph.links[p.link].from === k ? 0 : 1)] = p.sent_bps;
        }
      });
      return { rates, through };
    }

    // The share of a time in which each sending port had light.
    litShares(from, to) {
      const racks = this.topology.racks.length;
      const lit = new Float32Array(racks * this.topology.planes.length);
      for (const c of this.circuits.values()) {
        const both = Math.min(to, c.until) - Math.max(from, c.up);
        if (both > 0) lit[c.plane * racks + c.input] += both / (to - from);
      }
      return lit.map((x) => Math.min(1, x));
    }

    // What a port carried in a sample while it had light, in bits a second; null if it had none.
    litRate(sample, plane, rack) {
      const lit = this.litShare(sample, plane, rack);
      return lit > 0 ? this.portRate(sample, plane, rack) / lit : null;
    }

    litShare(sample, plane, rack) {
      return sample?.lit[plane * this.topology.racks.length + rack] ?? 0;
    }

    // The racks that sent, received, waited to send or had a circuit within a minute; all racks if none did.
    racksInUse(at) {
      const since = at - 60e9;
      const used = new Set();
      for (const c of this.circuits.values()) if (c.setup <= at && c.until > since) [c.input, c.output].forEach((r) => used.add(r));
      const n = this.topology.racks.length;
      for (const s of this.samples) {
        if (s.at <= since || s.from > at) continue;
        for (let r = 0; r < n; r += 1) if (s.up[r] > 1e4 || s.down[r] > 1e4) used.add(r);
        s.backlog.forEach((b, k) => b > 0 && used.add(Math.floor(k / n)).add(k % n));
      }
      const all = this.topology.racks.map((r) => r.id);
      return used.size ? all.filter((r) => used.has(r)) : all;
    }

    // Each coflow on the lowest lane that is free when it arrives, and those that find none, as spans with how many there are.
    coflowLanes() {
      const free = new Array(LANES).fill(-Infinity);
      const [placed, others] = [[], []];
      for (const x of [...this.spans.values()].sort((a, b) => a.from - b.from)) {
        const lane = free.findIndex((end) => end <= x.from);
        if (lane < 0) others.push(x);
        else {
          free[lane] = x.to;
          placed.push({ ...x, lane });
        }
      }
      const turns = others.flatMap((x) => [[x.from, 1], [x.to, -1]]).sort((a, b) => a[0] - b[0]);
      const more = [];
      let many = 0;
      turns.forEach(([at, step], k) => {
        many += step;
        const to = turns[k + 1]?.[0];
        if (many > 0 && to > at) more.push({ from: at, to, many });
      });
      return { placed, more, lanes: 1 + placed.reduce((a, x) => Math.max(a, x.lane), -1) };
    }

    linkRates(sample, link) {
      return sample?.links ? [sample.links.rates[2 * link], sample.links.rates[2 * link + 1]] : [0, 0];
    }

    switchRate(sample, k) {
      return sample?.links?.through[k] ?? 0;
    }

    // What a task scheduler said of its jobs; samples come in pieces.
    setJobs(answer) {
      if (answer.run !== this.jobs.run) [this.jobs, this.jobSteps] = [{ samples: [] }, new Map()];
      const { run, workload, policy, slots } = answer;
      const samples = [...this.jobs.samples, ...answer.samples].slice(-MOST_SLOTS);
      this.jobs = { run, workload, policy, slots, samples, byId: new Map(answer.jobs.map((j) => [j.id, j])) };
      const now = samples.at(-1)?.at_ns ?? this.lastNow;
      for (const j of answer.jobs) {
        const step = { at: now, finished: j.tasks_finished, computing: j.computing, waiting: j.waiting };
        note(this.jobSteps, j.id, step, (s) => s.finished === step.finished && s.computing === step.computing && s.waiting === step.waiting);
      }
    }

    // The last sample that was taken at or before an instant.
    sampleAt(at) {
      for (let k = this.samples.length - 1; k >= 0; k -= 1) if (this.samples[k].at <= at + 1e6) return this.samples[k];
      return null;
    }

    setStats(stats) {
      this.sawTime(stats.now_ns, true);
      const old = this.stats;
      this.stats = stats;
      if (!old || stats.now_ns <= old.now_ns) return;
      const [late, cycles] = [stats.late_cycles - old.late_cycles, stats.cycles - old.cycles];
      // A poll without a cycle has nothing to tell.
      if (!stats.ranges || !old.ranges || cycles <= 0) return;
      const between = (part) => H.quantile(stats.ranges.bounds_ns, stats.ranges[part].map((n, k) => n - old.ranges[part][k]), 0.99);
      this.course.push({ at: stats.now_ns, cycle: between("cycle"), decide: between("decide"), apply: between("apply"), late: late / cycles });
      if (this.course.length > HISTORY / 1e9) this.course.shift();
    }

    setCoflows(list, whole) {
      this.ended = Math.max(this.ended, list.ended);
      const listed = new Set(list.coflows.map((c) => c.id));
      // What is not open any more comes with its end in another list.
      if (whole) for (const c of [...this.coflows.values()]) if ((c.state === "active" || c.state === "proposed") && !listed.has(c.id)) {
        this.coflows.delete(c.id);
        this.endSpan(c.id, list.now_ns);
      }
      for (const c of list.coflows) {
        this.coflows.delete(c.id);
        this.coflows.set(c.id, c);
        const known = this.spans.get(c.id)?.to ?? Infinity;
        const to = c.finished_ns ?? (c.state === "active" ? Infinity : Math.min(known, list.now_ns));
        if (c.state !== "proposed") this.spans.set(c.id, { id: c.id, name: c.name, from: c.arrival_ns, to });
        const step = { at: list.now_ns, state: c.state, received: c.received_bytes, over: c.over_ocs_bytes };
        note(this.coflowSteps, c.id, step, (s) => s.state === step.state && s.received === step.received && s.over === step.over);
        if (c.flows) this.noteFlows(c, list.now_ns);
      }
      for (const [id, c] of this.coflows) {
        if (this.coflows.size <= MOST_COFLOWS) break;
        if (c.state !== "active") this.coflows.delete(id);
      }
      if (this.spans.size > MOST_SPANS) for (const id of [...this.spans.keys()].slice(0, MOST_SPANS / 10)) this.spans.delete(id);
      // One that is in no list just now may come with its end in the next.
      if (this.coflowSteps.size > 2 * MOST_COFLOWS) for (const id of this.coflowSteps.keys()) if (!this.coflows.has(id)) this.coflowSteps.delete(id);
    }

    // A coflow that an event says is finished, before the next poll: there may be none.
    finishCoflow({ id, at_ns, cct_ns }) {
      const c = this.coflows.get(id);
      if (c?.state === "active") Object.assign(c, { state: "finished", finished_ns: c.arrival_ns + cct_ns, cct_ns, received_bytes: c.asked_bytes });
      if (this.stats && at_ns > this.stats.now_ns) this.stats.coflows_finished += 1;
    }

    endSpan(id, at) {
      const x = this.spans.get(id);
      if (x) x.to = Math.min(x.to, at);
    }

    // How far the flows of a coflow are. Where all that is kept is too much, the coflow that was seen first is forgotten.
    noteFlows(c, at) {
      const received = Float64Array.from(c.flows, (f) => f.received_bytes);
      const before = this.flowSteps.get(c.id)?.length ?? 0;
      note(this.flowSteps, c.id, { at, received }, (s) => s.received.every((v, k) => v === received[k]), MOST_STEPS / 4);
      this.flowCells += ((this.flowSteps.get(c.id)?.length ?? 0) - before) * received.length;
      while (this.flowCells > MOST_FLOW_CELLS && this.flowSteps.size > 1) {
        const [id, steps] = this.flowSteps.entries().next().value;
        this.flowSteps.delete(id);
        this.flowCells -= steps.length * (steps[0]?.received.length ?? 0);
      }
    }

    // A flow of a coflow as it was at an instant, as far as it was seen then.
    flowAt(c, k, at) {
      const f = c.flows[k];
      if (f.finished_ns !== null && f.finished_ns <= at) return f;
      return { ...f, received_bytes: stepAt(this.flowSteps.get(c.id), at)?.received[k] ?? 0, finished_ns: null };
    }

    // What a flow had received over time, up to an instant: points of a chart.
    flowReceivedBy(c, k, at) {
      const f = c.flows[k];
      const seen = (this.flowSteps.get(c.id) ?? []).filter((s) => s.at <= at + LATE && s.at > c.arrival_ns && (f.finished_ns === null || s.at < f.finished_ns));
      const end = f.finished_ns !== null && f.finished_ns <= at ? [[f.finished_ns / 1e6, f.received_bytes]] : [];
      return [[c.arrival_ns / 1e6, 0], ...seen.map((s) => [s.at / 1e6, s.received[k]]), ...end];
    }

    // A coflow as it was at an instant, as far as it was seen then.
    coflowAt(c, at) {
      if (c.finished_ns !== null && c.finished_ns <= at) return c;
      const step = stepAt(this.coflowSteps.get(c.id), at) ?? { state: c.state === "proposed" ? "proposed" : "active", received: 0, over: 0 };
      return { ...c, state: step.state, received_bytes: step.received, over_ocs_bytes: step.over, finished_ns: null, cct_ns: null };
    }

    // What a coflow had received over time, up to an instant: points of a chart.
    receivedBy(c, at) {
      const seen = (this.coflowSteps.get(c.id) ?? []).filter((s) => s.at <= at + LATE && (c.finished_ns === null || s.at < c.finished_ns));
      const end = c.finished_ns !== null && c.finished_ns <= at ? [[c.finished_ns / 1e6, c.received_bytes]] : [];
      return [[c.arrival_ns / 1e6, 0], ...seen.filter((s) => s.at > c.arrival_ns).map((s) => [s.at / 1e6, s.received]), ...end];
    }

    // A job as it was at an instant, as far as it was seen then.
    jobAt(j, at) {
      if (j.finished_ns !== null && j.finished_ns <= at) return j;
      const step = stepAt(this.jobSteps.get(j.id), at) ?? { finished: 0, computing: 0, waiting: 0 };
      return { ...j, tasks_finished: step.finished, computing: step.computing, waiting: step.waiting, finished_ns: null };
    }

    // Open coflows first, the newest of them at the top; then those that ended, the last first.
    coflowRows(at) {
      const born = (c) => c.arrival_ns <= at;
      const open = (c) => c.state === "active" || c.state === "proposed";
      const rows = [...this.coflows.values()].filter(born).map((c) => this.coflowAt(c, at));
      return rows.sort((a, b) => open(b) - open(a) || (b.finished_ns ?? b.arrival_ns) - (a.finished_ns ?? a.arrival_ns));
    }

    uplink(rack) {
      return this.topology.racks[rack].uplink_bps;
    }

    portOf(plane, rack) {
      return this.ports.find((p) => p.plane === plane && p.rack === rack);
    }

    // What a port carried in a sample, in bits a second.
    portRate(sample, plane, rack) {
      return sample?.port[plane * this.topology.racks.length + rack] ?? 0;
    }
  }

  H.Store = Store;
  H.HISTORY = HISTORY;
})();
