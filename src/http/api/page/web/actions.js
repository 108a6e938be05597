// What a viewer can do: circuits by hand, repair, the policy, coflows. Every change is one request of the API, and its answer is shown.
"use strict";
(() => {
  const H = (globalThis.Heliostat ??= {});

  const MOST_LOSERS = 20;
  const field = (name, label, attributes) => H.el("label", {}, label, H.el("input", { name, ...attributes }));
  // A choice of things that are numbered from 0, by their names.
  const choice = (name, label, value, names) => H.el("label", {}, label, H.el("select", { name }, names.map((text, k) => H.el("option", { value: k, selected: k === value }, text))));

  class Actions {
    constructor(store, feed, done) {
      [this.store, this.feed, this.done] = [store, feed, done];
      [this.dialog, this.title, this.body] = [H.byId("dialog"), H.byId("dialog-h"), H.byId("dialog-body")];
      H.byId("dialog-close").addEventListener("click", () => this.dialog.close());
    }

    // A dialog with a form; `submit(form, button)` gives what is shown as the answer, or throws a Problem.
    ask(title, parts, buttons, submit) {
      H.text(this.title, title);
      const answer = H.el("div", { class: "answer", role: "status", tabindex: "-1" });
      const row = H.el("div", { class: "row" }, buttons.map(([value, text], k) => H.el("button", { type: "submit", value, class: k ? null : "first" }, text)));
      const form = H.el("form", {}, parts, row, answer);
      form.addEventListener("submit", async (e) => {
        e.preventDefault();
        answer.classList.remove("bad");
        answer.replaceChildren("…");
        try {
          const shown = await submit(form, e.submitter?.value);
          if (shown === undefined) this.dialog.close();
          else answer.replaceChildren(...[shown].flat());
        } catch (problem) {
          answer.classList.add("bad");
          const where = problem.pointer ? ` (at ${problem.pointer})` : "";
          answer.replaceChildren(`${problem.status ? `Refused, ${problem.status}` : "Not sent"}: ${problem.message}${where}`);
        }
        this.done();
      });
      this.body.replaceChildren(form);
      if (!this.dialog.open) this.dialog.showModal();
      form.querySelector("input, textarea, select")?.focus();
      return form;
    }

    token() {
      const parts = [H.el("p", {}, "This daemon was started with a token (--token, HELIOSTAT_TOKEN). It is kept until the tab is closed."), field("token", "Token", { type: "password", required: true, minlength: 16, autocomplete: "off" })];
      this.ask("Token", parts, [["ok", "Connect"]], async (form) => this.feed.setToken(form.elements.token.value));
    }

    circuit(plane = 0, input = 0, output = null) {
      const { topology } = this.store;
      if (!topology?.planes.length) return this.tell("Set circuit", "This network has no optical plane.");
      const racks = topology.racks.map((r) => `r${r.id}`);
      const parts = [
        H.el("p", {}, "The port is held for this circuit until it is released, whatever the policy."),
        H.el("div", { class: "row" }, choice("plane", "Plane", plane, topology.planes.map((p) => String(p.id))), choice("input", "Sending rack", input, racks), choice("output", "Receiving rack", output ?? (input + 1) % racks.length, racks)),
      ];
      this.ask("Set circuit", parts, [["set", "Set"], ["release", "Release"]], async (form, what) => {
        const [p, i, o] = ["plane", "input", "output"].map((k) => Number(form.elements[k].value));
        if (what === "release") await this.feed.call("DELETE", `circuits/${p}/${i}`);
        else await this.feed.call("PUT", `circuits/${p}/${i}`, { output: o });
        return what === "release" ? `The port of r${i} on plane ${p} is the policy's again.` : `r${i} is joined with r${o} on plane ${p} with the next decision.`;
      });
    }

    tell(title, text) {
      this.ask(title, [H.el("p", {}, text)], [["ok", "Close"]], async () => undefined);
    }

    // One request without a form; what is refused is shown in a dialog.
    async plain(title, run) {
      try {
        await run();
      } catch (e) {
        this.tell(title, `${e.message}`);
      }
      this.done();
    }

    release(plane, rack) {
      return this.plain("Release", () => this.feed.call("DELETE", `circuits/${plane}/${rack}`));
    }

    repair(plane, rack) {
      return this.plain("Repair", () => this.feed.call("DELETE", `ports/${plane}/${rack}/fault`));
    }

    cancel(id) {
      return this.plain("Cancel", () => this.feed.call("DELETE", `coflows/${id}`));
    }

    confirm(id) {
      return this.plain("Confirm", () => this.feed.call("POST", `coflows/${id}/confirm`, { send: true }));
    }

    async policy() {
      let policy;
      try {
        policy = await this.feed.fetchPolicy();
      } catch (e) {
        return this.tell("Policy", e.message);
      }
      const text = H.el("textarea", { name: "policy", spellcheck: "false", "aria-label": "Policy as JSON" });
      text.value = JSON.stringify(policy.value, null, 2);
      const parts = [H.el("p", {}, "The policy in force, in the shape of a policy file. It is replaced as a whole, from the next cycle on, unless another viewer has replaced it meanwhile."), text];
      this.ask("Policy", parts, [["put", "Replace"], ["reload", "Load again"]], async (form, what) => {
        if (what === "reload") {
          policy = await this.feed.fetchPolicy();
          text.value = JSON.stringify(policy.value, null, 2);
          return `Loaded: ${policy.value.name}.`;
        }
        let value;
        try {
          value = JSON.parse(text.value);
        } catch (e) {
          throw new Error(`this is not JSON: ${e.message}`);
        }
        await this.feed.call("PUT", "policy", value, { "If-Match": policy.etag });
        policy = await this.feed.fetchPolicy();
        return `In force from the next cycle on: ${policy.value.name}.`;
      });
    }

    coflow() {
      const { topology } = this.store;
      if (!topology) return;
      const racks = topology.racks.length - 1;
      const text = H.el("textarea", { name: "json", spellcheck: "false", "aria-label": "Coflow as JSON" });
      const kind = H.el("select", { name: "kind" }, H.el("option", { value: "pairs" }, "bytes between racks"), H.el("option", { value: "place" }, "a shuffle whose reduce tasks are to be placed"));
      // More slots than tasks, so that there is a choice.
      const slots = topology.racks.slice(2, 6).map((r) => ({ rack: r.id, free: 2 }));
      const tasks = Math.max(1, Math.min(4, 2 * slots.length - 2));
      const examples = {
        pairs: { name: "by-hand", send: true, pairs: [{ from: 0, to: Math.min(1, racks), bytes: 20_000_000 }] },
        place: { name: "what-if", place: { maps: [{ rack: 0, bytes: 30_000_000 }, { rack: Math.min(1, racks), bytes: 30_000_000 }], tasks, at_most: 2, slots } },
      };
      const show = () => (text.value = JSON.stringify(examples[kind.value], null, 1).replace(/\n\s+("(from|to|bytes|rack|free)")/g, " $1").replace(/(\d)\n\s+}/g, "$1 }"));
      kind.addEventListener("change", show);
      show();
      const parts = [H.el("label", {}, "What", kind), text, H.el("p", { class: "when" }, "With send, Heliostat sends the bytes itself. A dry run changes nothing: it says what would be proposed, and why other placements lose.")];
      this.ask("New coflow", parts, [["dry", "Dry run"], ["post", "Post"]], async (form, what) => {
        let body;
        try {
          body = JSON.parse(text.value);
        } catch (e) {
          throw new Error(`this is not JSON: ${e.message}`);
        }
        const key = crypto.randomUUID?.() ?? String(Math.random());
        const made = await this.feed.call("POST", `coflows${what === "dry" ? "?dryRun=true" : ""}`, body, what === "dry" ? {} : { "Idempotency-Key": key });
        const box = H.el("div");
        if (what === "dry") this.proposal(box, made);
        else {
          box.append(H.el("p", {}, `Coflow ${made.id}, ${made.name}: ${made.state}.`));
          if (made.proposal) {
            const part = H.el("div");
            this.proposal(part, made.proposal);
            box.append(part);
            const row = H.el("div", { class: "row" });
            row.append(H.el("button", { type: "button", onclick: () => this.confirm(made.id) }, "Confirm and send"));
            box.append(row);
          }
        }
        return box;
      });
    }

    // A proposal: where its tasks go, how long it takes, its circuits, and what lost.
    proposal(box, p) {
      const of = p.chosen ?? p;
      const told = JSON.stringify(p);
      if (box.told === told) return;
      box.told = told;
      const racks = (x) => x.racks.map((r) => `r${r.rack} × ${r.tasks}`).join(", ") || "as given";
      const parts = [];
      if (of.racks) {
        const rows = [["placement", racks(of)], ["estimated CCT", H.span(of.cct_ns)], ["lower bound", H.span(of.bound_ns)], ["starts", H.clock(of.start_ns, 2)], ["found by", of.found_by]];
        parts.push(H.el("h3", {}, "Chosen"), H.el("dl", {}, rows.flatMap(([k, v]) => [H.el("dt", {}, k), H.el("dd", {}, v)])));
      }
      const table = (heads, rows) => H.el("table", {}, H.el("thead", {}, H.el("tr", {}, heads.map((h) => H.el("th", { scope: "col" }, h)))), H.el("tbody", {}, rows.map((r) => H.el("tr", {}, r.map((x) => H.el("td", {}, x))))));
      if (p.pairs?.length) parts.push(H.el("h3", {}, "Pairs of racks"), table(["pair", "bytes", "way"], p.pairs.slice(0, 40).map((x) => [`r${x.from} → r${x.to}`, H.bytes(x.bytes), (x.way ?? "–").toUpperCase()])));
      if (p.circuits?.length) parts.push(H.el("h3", {}, "Circuits"), table(["circuit", "plane", "light from", "until"], p.circuits.slice(0, 40).map((x) => [`r${x.input} → r${x.output}`, String(x.plane), H.clock(x.up_from_ns, 2), H.clock(x.until_ns, 2)])));
      // Those that were estimated, then those that a bound on their score ruled out.
      const lost = [...(p.losers ?? []), ...(p.excluded ?? [])];
      if (lost.length) parts.push(H.el("h3", {}, "What lost, and why"), table(["placement", "CCT", "why"], lost.slice(0, MOST_LOSERS).map((x) => [racks(x), x.cct_ns === undefined ? "–" : H.span(x.cct_ns), x.why ?? ""])));
      if (lost.length > MOST_LOSERS) parts.push(H.el("p", { class: "when" }, `${lost.length - MOST_LOSERS} more lost.`));
      box.replaceChildren(...parts);
    }
  }

  H.Actions = Actions;
})();
