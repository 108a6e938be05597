// Keeps a store fed: the event stream, which resumes, and once a second what no event tells. What events tell too is asked for only after
// one of them, and now and then in case that one was missed. Tells its listeners how it goes.
"use strict";
(() => {
  const H = (globalThis.Heliostat ??= {});
  const POLL = 1000;
  const LONGEST_WAIT = 5000;
  const MOST_FLOWS = 200; // of a coflow whose flows are asked for before one looks at it
  const ALL_EVERY = 5; // polls from one that asks for everything to the next

  class Problem extends Error {
    constructor(status, body) {
      super(body?.detail ?? body?.title ?? `HTTP status ${status}`);
      this.status = status;
      this.pointer = body?.pointer;
      this.body = body;
    }
  }

  class Feed {
    constructor(store, listener) {
      this.store = store;
      this.listener = listener; // {state(name, why), changed(), restarted(), needsToken()}
      this.token = sessionStorage.getItem("heliostat-token");
      this.wait = 250;
    }

    setToken(token) {
      this.token = token;
      sessionStorage.setItem("heliostat-token", token);
      this.wake?.();
    }

    // One request; the answer's JSON, or a Problem.
    async call(method, path, body, headers = {}) {
      const response = await fetch(`/api/v1/${path}`, {
        method,
        headers: { ...this.headers(), ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers },
        body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
        cache: "no-store",
      });
      const text = await response.text();
      let json = null;
      try {
        json = text ? JSON.parse(text) : null;
      } catch {
        json = { detail: text.slice(0, 200) };
      }
      if (!response.ok) throw new Problem(response.status, json);
      return json;
    }

    get(path) {
      return this.call("GET", path);
    }

    headers() {
      return this.token ? { Authorization: `Bearer ${this.token}` } : {};
    }

    // Connects for as long as the page is open.
    async run() {
      for (;;) {
        let why = "the stream has ended";
        try {
          await this.once();
        } catch (e) {
          why = e.message;
          if (e.status === 401) {
            this.listener.state("locked", "a token is needed");
            this.listener.needsToken();
            await new Promise((resolve) => (this.wake = resolve));
            continue;
          }
        }
        this.listener.state(this.store.endedAt === null ? "lost" : "ended", why);
        await new Promise((resolve) => setTimeout(resolve, this.wait));
        this.wait = Math.min(LONGEST_WAIT, this.wait * 2);
      }
    }

    // From one connection to its end.
    async once() {
      const stopped = new AbortController();
      try {
        const topology = await this.get("topology");
        const stats = await this.get("stats?ranges=true");
        this.noticeRestart(topology, stats);
        this.store.endedAt = null;
        this.store.setTopology(topology);
        const after = this.store.lastSeq ?? 0;
        const response = await fetch("/api/v1/events", { headers: { ...this.headers(), "Last-Event-ID": String(after) }, signal: stopped.signal, cache: "no-store" });
        if (!response.ok) throw new Problem(response.status, await response.json().catch(() => null));
        if (!this.store.past.length) this.store.setPast(await this.get("utilisation"));
        await this.poll(true);
        this.wait = 250;
        this.listener.state("live");
        const polling = this.keepPolling(stopped.signal);
        await Promise.race([this.read(response.body.getReader()), polling]);
      } finally {
        stopped.abort();
      }
    }

    // A daemon's clock begins with it: another beginning is another daemon.
    noticeRestart(topology, stats) {
      const begun = Date.now() - stats.now_ns / 1e6;
      const other = this.begun !== undefined && (Math.abs(begun - this.begun) > 2000 || stats.now_ns + 1e9 < this.store.lastNow);
      this.begun = begun;
      if (other) {
        this.store.clear();
        this.listener.restarted(topology);
      }
    }

    async read(reader) {
      const decoder = new TextDecoder();
      let text = "";
      const begun = performance.now();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        text += decoder.decode(value, { stream: true });
        const end = text.lastIndexOf("\n\n");
        if (end < 0) continue;
        for (const block of text.slice(0, end).split("\n\n")) this.block(block, performance.now() - begun > 1500);
        text = text.slice(end + 2);
        this.listener.changed();
      }
    }

    block(block, fresh) {
      let [name, data] = ["", ""];
      for (const line of block.split("\n")) {
        if (line.startsWith("event: ")) name = line.slice(7);
        else if (line.startsWith("data: ")) data += line.slice(6);
      }
      if (!data) return;
      const value = JSON.parse(data);
      if (name === "gap") this.store.gap(value.missed);
      else if (name === "end") this.store.end(value.at_ns);
      else this.store.event(value, fresh);
    }

    async keepPolling(signal) {
      while (!signal.aborted) {
        await new Promise((resolve) => setTimeout(resolve, POLL));
        if (signal.aborted) return;
        if (!document.hidden) await this.poll(false, (this.polls = (this.polls ?? 0) + 1) % ALL_EVERY === 0);
      }
    }

    // Circuits, jobs and coflows are asked for if `all` are wanted, or if there is something that changes.
    async poll(first, all = true) {
      const ended = this.store.ended;
      const open = [...this.store.coflows.values()].some((c) => c.state === "active" || c.state === "proposed");
      // The answer to a question right after an event may be of before it.
      const proposals = [...this.store.coflows.values()].some((c) => c.state === "proposed") || this.store.told > 0;
      const coflowsToo = first || all || open || this.store.told > 0;
      this.store.told = Math.max(0, (this.store.told ?? 0) - 1);
      const lists = first ? [this.get(`coflows?flows=${MOST_FLOWS}`)] : !coflowsToo ? [] : [this.get(`coflows?state=active&flows=${MOST_FLOWS}`), this.get(`coflows?endedAfter=${ended}&flows=${MOST_FLOWS}`), ...(proposals ? [this.get("coflows?state=proposed")] : [])];
      const paths = this.store.topology?.graph ? this.get("paths?pairs=false") : null;
      const jobs = !coflowsToo && this.store.jobs.byId.size === 0 ? null : this.get(`jobs?after=${this.store.jobs.samples.at(-1)?.at_ns ?? 0}`);
      const [stats, demand, ports, circuits, links, told, ...coflows] = await Promise.all([this.get("stats?ranges=true"), this.get("demand"), this.get("ports"), all ? this.get("circuits") : null, paths, jobs, ...lists]);
      this.store.setStats(stats);
      if (circuits) this.store.setCircuits(circuits);
      this.store.sample(demand, ports, links);
      // Of another run there are samples from before the last one of this run, too.
      const other = told && this.store.jobs.samples.length && told.run !== this.store.jobs.run;
      if (told) this.store.setJobs(other ? await this.get("jobs") : told);
      if (first) this.store.setCoflows(coflows[0], true);
      else if (coflowsToo) {
        const listed = { ...coflows[0], coflows: [...coflows[0].coflows, ...(coflows[2]?.coflows ?? [])] };
        this.store.setCoflows(listed, true);
        this.store.setCoflows(coflows[1], false);
      }
      if (first || this.store.policyChanged) await this.fetchPolicy();
      this.listener.changed(true);
    }

    // The policies that are part of the program: [name, what it is, its file].
    async shipped() {
      const response = await fetch("/page/policies.json");
      if (!response.ok) throw new Problem(response.status, null);
      return response.json();
    }

    async fetchPolicy() {
      const response = await fetch("/api/v1/policy", { headers: this.headers(), cache: "no-store" });
      if (!response.ok) throw new Problem(response.status, await response.json().catch(() => null));
      this.store.policy = { value: await response.json(), etag: response.headers.get("etag") };
      this.store.policyChanged = false;
      return this.store.policy;
    }
  }

  H.Feed = Feed;
  H.Problem = Problem;
  H.Store.prototype.on_coflow_proposed = function () {
    this.told = 2;
  };
  for (const name of ["on_coflow_arrived", "on_coflow_finished", "on_coflow_cancelled"]) {
    H.Store.prototype[name] = function (r) {
      this.told = 2;
      if (name !== "on_coflow_arrived") this.endSpan(r.id, r.at_ns);
      if (name === "on_coflow_finished") this.finishCoflow(r);
    };
  }
  H.Store.prototype.on_policy_changed = function () {
    this.policyChanged = true;
  };
})();
