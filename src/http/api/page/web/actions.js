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
      const text = H.el("textarea", { name: "policy", spellcheck: "false", "aria-label": "Policy as JSON or YAML" });
      const show = (content) => {
        text.value = content;
        text.setSelectionRange(0, 0);
        text.scrollTop = 0;
      };
      const inForce = () => show(JSON.stringify(policy.value, null, 2));
      inForce();
      const shipped = await this.feed.shipped();
      const about = H.el("p", { class: "when" }, "");
      const options = [H.el("option", { value: "" }, `in force: ${policy.value.name}`), ...shipped.map(([name]) => H.el("option", { value: name }, name))];
      const of = H.el("select", { name: "shipped" }, options);
      const field = (key, label) => H.el("label", {}, label, H.el("input", { type: "text", name: key, placeholder: "10ms", autocomplete: "off" }));
      const inputs = [field("interval", "Interval of the cycles"), field("lead", "Lead of a decision")];
      // Keys of the text, as JSON or as the lines of a file.
      const parsed = () => {
        try {
          return JSON.parse(text.value);
        } catch {
          return null;
        }
      };
      const line = (name) => new RegExp(`^(${name}: *)([^\\s#]+)`, "m");
      const read = () => {
        const json = parsed();
        for (const { lastChild: input } of inputs) input.value = json?.[input.name] ?? line(input.name).exec(text.value)?.[2] ?? "";
      };
      of.addEventListener("change", () => {
        const chosen = shipped.find(([name]) => name === of.value);
        if (chosen) show(chosen[2]);
        else inForce();
        H.text(about, chosen ? `${chosen[1]}.` : "");
        read();
      });
      // A field writes its key into the text, which is what is sent.
      for (const { lastChild: input } of inputs) {
        input.addEventListener("input", () => {
          const value = input.value.trim();
          if (!value) return;
          const json = parsed();
          if (json) text.value = JSON.stringify({ ...json, [input.name]: value }, null, 2);
          else if (line(input.name).test(text.value)) text.value = text.value.replace(line(input.name), (_, before) => before + value);
          else text.value = `${text.value.trimEnd()}\n${input.name}: ${value}\n`;
        });
      }
      text.addEventListener("input", read);
      read();
      const parts = [H.el("p", {}, "A policy is replaced as a whole, from the next cycle on, unless another viewer has replaced it meanwhile. What was fixed when the run started stays."), H.el("div", { class: "row" }, H.el("label", {}, "Policy", of), ...inputs), about, text];
      this.ask("Policy", parts, [["put", "Replace"], ["reload", "Load again"]], async (form, what) => {
        if (what === "put") {
          const json = text.value.trim().startsWith("{");
          let value = text.value;
          try {
            if (json) value = JSON.parse(value);
          } catch (e) {
            throw new Error(`this is not JSON: ${e.message}`);
          }
          await this.feed.call("PUT", "policy", value, { "If-Match": policy.etag, ...(json ? {} : { "Content-Type": "application/yaml" }) });
        }
        policy = await this.feed.fetchPolicy();
        [of.value, of.options[0].textContent] = ["", `in force: ${policy.value.name}`];
        inForce();
        read();
        return what === "put" ? `In force from the next cycle on: ${policy.value.name}.` : `Loaded: ${policy.value.name}.`;
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
      const names = topology.racks.map((r) => `r${r.id}`);
      const rows = H.el("div");
      const input = (name, label, value) => H.el("label", {}, label, H.el("input", { type: "text", name, value, autocomplete: "off" }));
      const pair = (from, to, bytes) => {
        const row = H.el("div", { class: "row pair" }, choice("from", "From", from, names), choice("to", "To", to, names), input("bytes", "Bytes", bytes));
        row.append(H.el("button", { type: "button", "aria-label": "Leave this pair out", onclick: () => (row.remove(), show()) }, "✕"));
        return row;
      };
      const more = H.el("button", { type: "button", onclick: () => (rows.append(pair(0, Math.min(1, racks), "20MB")), show()) }, "One more pair");
      const name = input("name", "Name", "by-hand");
      const send = H.el("input", { type: "checkbox", name: "send", checked: true });
      const between = H.el("div", {}, rows, H.el("div", { class: "row" }, more));
      // What is sent is the text; the fields write it.
      const given = () => [...rows.children].map((row) => ({ from: `r${row.querySelector("[name=from]").value}`, to: `r${row.querySelector("[name=to]").value}`, bytes: row.querySelector("[name=bytes]").value.trim() }));
      const bodies = {
        pairs: () => ({ name: name.lastChild.value, send: send.checked, pairs: given() }),
        place: () => ({ name: name.lastChild.value, place: { maps: [{ rack: 0, bytes: 30_000_000 }, { rack: Math.min(1, racks), bytes: 30_000_000 }], tasks, at_most: 2, slots } }),
      };
      const json = H.el("details", {}, H.el("summary", {}, "As JSON"), text);
      const show = () => {
        between.hidden = kind.value !== "pairs";
        if (between.hidden) json.open = true;
        text.value = JSON.stringify(bodies[kind.value](), null, 1).replace(/\n\s+("(from|to|bytes|rack|free)")/g, " $1").replace(/(["\d])\n\s+}/g, "$1 }");
      };
      rows.append(pair(0, Math.min(1, racks), "20MB"));
      // Each kind has a name of its own, unless another was given.
      const usual = { pairs: "by-hand", place: "what-if" };
      kind.addEventListener("change", () => Object.values(usual).includes(name.lastChild.value) && (name.lastChild.value = usual[kind.value]));
      for (const part of [kind, name, between, send]) for (const when of ["change", "input"]) part.addEventListener(when, show);
      show();
      const parts = [
        H.el("div", { class: "row" }, name, H.el("label", {}, "What", kind), H.el("label", { class: "check" }, send, "Heliostat sends the bytes")),
        between,
        json,
        H.el("p", { class: "when" }, "A dry run changes nothing: it says what would be proposed, and why other placements lose."),
      ];
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
