// The pages that only show: tools, usage, the audit log, and who one is. Each asks again when it is opened.

import { agentCard } from "./agent.js";
import { download, follow, get, Newest, post, remove, signedIn } from "./api.js";
import { Devices } from "./devices.js";
import { announce, DATA, data, h, keeping, shown } from "./dom.js";
import { stamp } from "./times.js";

const number = (count) => count.toLocaleString("en");
const GROUPS = { fs: "Files", runtime: "Commands and containers", web: "Web pages" };
const RISKS = { read: ["Reads", "quiet"], write: ["Changes", "waiting"], destructive: ["Can't be undone", "bad"] };

/** A page: `load()` gives what to show, `draw(found)` shows it in `this.body`. */
export class Page {
  constructor(element) {
    this.element = element;
    this.newest = new Newest();
    this.word = h("p", { class: "notice-word", role: "status", ...DATA, hidden: true });
    this.body = h("div", { class: "page" });
    element.append(this.word, ...this.head(), this.body);
  }

  head() {
    return [];
  }

  async show() {
    this.shown = true;
    try {
      const found = await this.newest.of(() => this.load());
      if (!found) return;
      this.say("");
      keeping(this.body, () => this.draw(found));
    } catch (error) {
      this.refused();
      if (error.status !== 401) this.say(error.message, true);
    }
  }

  /** The tab was away: show what is so now, unless someone is writing here. */
  lookAgain() {
    if (!this.body.querySelector("textarea")) this.show();
  }

  /** What was asked for could not be had. */
  refused() {}

  hide() {
    this.shown = false;
    this.say("");
  }

  say(text, bad = false) {
    this.word.hidden = !text;
    this.word.classList.toggle("bad", bad);
    this.word.replaceChildren(shown(text));
    if (text) announce(text);
  }

  /** Save a file of the server's. */
  save(path, name, progress) {
    this.say("");
    return download(path, name, progress).catch((error) => this.say(error.message, true));
  }

  async doing(work) {
    this.say("");
    try {
      const { text } = await work();
      await this.show();
      if (text) this.say(text);
    } catch (error) {
      this.say(error.message, true);
    }
  }
}

export const nothing = (title, words) => h("div", { class: "nothing-here" }, h("h2", {}, title), h("p", { class: "muted" }, words));

export function table(label, heads, rows) {
  return h("div", { class: "table-box", tabindex: 0, role: "region", "aria-label": label }, h("table", {},
    h("thead", {}, h("tr", {}, heads.map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => h("td", { dir: "auto", class: typeof cell === "number" ? "right" : undefined }, typeof cell === "number" ? number(cell) : cell)))))));
}

/** A picture of the server, with its numbers as a table below it. */
export function plot(title, svg, ...numbers) {
  return h("div", { class: "plot" }, h("h2", { class: "section" }, title),
    h("div", { class: "table-box", tabindex: 0, role: "region", "aria-label": `${title}, drawn` },
      h("img", { src: `data:image/svg+xml,${encodeURIComponent(svg)}`, alt: `${title}: the table below has the numbers.` })),
    numbers.length ? h("details", {}, h("summary", { "aria-label": `As a table: ${title}` }, "As a table"), numbers) : null);
}

export class Tools extends Page {
  async load() {
    const [{ tools }, { channels }] = await Promise.all([get("api/tools"), get("healthz").catch(() => ({ channels: [] }))]);
    return { tools, channels };
  }

  draw({ tools, channels }) {
    const groups = new Map();
    for (const each of tools) groups.set(each.group, [...(groups.get(each.group) ?? []), each]);
    const health = channels.map(({ name, heard_seconds_ago: heard, fault }) => [data(name), fault ? h("span", { class: "state bad" }, data(fault)) : h("span", { class: "state good" }, "Working"),
      heard === null ? "nothing heard yet" : `heard ${heard} s ago`]);
    this.body.replaceChildren(...[
      health.length ? [h("h2", { class: "section" }, "Channels"), table("Channels", ["Channel", "State", "Last word"], health)] : null,
      [...groups].map(([group, found]) => [h("h2", { class: "section" }, GROUPS[group] ?? (group ? data(group.replace(/^./, (first) => first.toUpperCase())) : "Other tools")), h("div", { class: "tools" }, found.map(tool))]),
    ].flat(3).filter(Boolean));
  }
}

function tool({ name, description, risk, offered, parameters }) {
  const [words, tone] = RISKS[risk] ?? ["By its use", "waiting"];
  const fields = Object.entries(parameters.properties ?? {});
  return h("details", { class: "tool-row" },
    h("summary", {}, h("code", { ...DATA }, shown(name)), h("span", { class: "tool-about" }, data(description.split("\n")[0])), h("span", { class: `state ${tone}` }, words)),
    h("p", { class: "plain", ...DATA }, shown(description)),
    offered ? null : h("p", { class: "help" }, "No model is told of it. Only a person or a script may ask for it."),
    h("dl", { class: "facts" }, fields.map(([field, each]) => h("div", {}, h("dt", {}, data(field)), h("dd", {}, data(each.description ?? each.type ?? "any value"))))));
}

const kilo = (size) => (size < 1000 ? `${size} B` : size < 1e6 ? `${Math.round(size / 1000)} kB` : `${(size / 1e6).toFixed(1)} MB`);

export class Files extends Page {
  load() {
    return get("api/files");
  }

  draw({ files }) {
    const name = (each) => h("button", { type: "button", class: "link-button", onclick: () => this.fetch(each) }, data(each.name));
    const from = (each) => h("a", { href: `#/c/${encodeURIComponent(each.conversation_id)}` }, each.title ? data(each.title) : "Untitled");
    const rows = files.map((each) => [name(each), h("span", { class: "nowrap" }, kilo(each.size)), h("span", { class: "nowrap" }, stamp(each.made_at)), from(each)]);
    this.body.replaceChildren(rows.length
      ? h("p", { class: "muted" }, "What tools made in your conversations here, and output too long to show. Press a name to save it.")
      : nothing("No files yet", "What tools make in your conversations here is listed until it expires, and so is output too long to show."),
    ...(rows.length ? [table("Files", ["Name", "Size", "Made", "Conversation"], rows)] : []));
  }

  fetch({ id, name, conversation_id }) {
    this.save(`api/conversations/${encodeURIComponent(conversation_id)}/files/${encodeURIComponent(id)}`, name);
  }
}

const BY = { day: "Day", person: "Person", place: "Place", model: "Model", conversation: "Conversation", order: "Request" };

export class Usage extends Page {
  head() {
    this.by = "day";
    this.tabs = h("div", { class: "tabs", role: "group", "aria-label": "By" }, Object.entries(BY).map(([by, words]) =>
      h("button", { type: "button", class: "tab", data: { tab: by }, onclick: () => this.turn(by) }, words)));
    return [this.tabs];
  }

  turn(by) {
    this.by = by;
    this.show();
  }

  load() {
    for (const each of this.tabs.children) each.setAttribute("aria-pressed", String(each.dataset.tab === this.by));
    return get(`api/usage?by=${this.by}`);
  }

  budget({ rule, words, limit, spent, until }) {
    const extend = () => post("api/commands", { name: "approvals", text: `budget extend ${rule}` }).then(async ({ text }) => {
      await this.show();
      this.say(text);
    }, (error) => this.say(error.message, true));
    return h("p", { class: "budget" },
      h("meter", { min: 0, max: limit, high: 0.8 * limit, optimum: 0, value: Math.min(spent, limit), "aria-label": `Rule ${rule}` }), " ", data(words), `, until ${new Date(until).toLocaleDateString("en", { day: "numeric", month: "long" })} `,
      this.everyone ? h("button", { type: "button", class: "button small", onclick: extend }, "Extend") : null);
  }

  draw({ everyone, currency, total, parts, plots, budgets }) {
    this.everyone = everyone;
    const all = Math.max(1, total.prompt_tokens + total.completion_tokens);
    const bar = (each) => {
      const part = Math.round((100 * (each.prompt_tokens + each.completion_tokens)) / all);
      return h("span", { class: "nowrap" }, h("meter", { min: 0, max: 100, value: part, "aria-label": "Share of all tokens" }), ` ${part} %`);
    };
    const money = (cost) => (cost === null ? "no price" : cost.toLocaleString("en", { maximumFractionDigits: cost < 1 ? 4 : 2 }));
    const rows = parts.map((each) => [data(String(each.name || each.key)), each.turns, each.model_calls, each.prompt_tokens, each.completion_tokens, money(each.cost), bar(each)]);
    this.body.replaceChildren(
      h("p", { class: "muted" }, `The last 30 days of ${everyone ? "everyone's" : "your"} conversations: `,
        `${number(total.model_calls)} calls of the model, ${number(total.prompt_tokens)} tokens in, ${number(total.completion_tokens)} out`,
        total.cost === null ? ". The model has no price." : `, ${money(total.cost)} ${currency}.`),
      ...(budgets.length ? [h("h2", { class: "section" }, "Budgets"), ...budgets.map((each) => this.budget(each))] : []),
      ...(rows.length ? [total.cost === null ? plot("Tokens", plots.tokens) : plot("Cost", plots.cost)] : []),
      rows.length ? table("Usage", [BY[this.by], "Turns", "Calls", "Tokens in", "Tokens out", `Cost in ${currency}`, "Share"], rows) : nothing("Nothing has been used yet", "Each turn of a conversation is counted here."));
  }
}

const VERBS = {
  propose: "Proposed", approve: "Approved", decline: "Declined", edit: "Edited", cancel: "Withdrawn", execute: "Started", succeeded: "Done", failed: "Failed",
  expire: "Expired", expired: "Expired", extend: "Extended", retry: "Retried", similar: "Approved, and calls like it", revise: "Asked for changes", ask: "Asked about it", stop: "Stopped", undo: "Undo pressed", undone: "Undone", read: "Read",
  link: "Linked", unlink: "Unlinked", issue: "Made", revoke: "Revoked", give: "Given", set: "Set", drop: "Dropped", pause: "Paused", resume: "Resumed", "sign in": "Signed in", "sign out": "Signed out",
};

export class Audit extends Page {
  head() {
    const field = (name, label, more = {}) => [h("label", { class: "hidden", for: `audit-${name}` }, label), (this[name] = h("input", { type: "text", id: `audit-${name}`, placeholder: label, autocomplete: "off", spellcheck: "false", ...more }))];
    const verify = h("button", { type: "button", class: "button small", onclick: () => this.verify() }, "Verify");
    const saves = ["csv", "jsonl"].map((form) => h("button", { type: "button", class: "button small", onclick: () => this.export(form) }, `Export ${form.toUpperCase()}`));
    const sieve = h("form", { class: "sieve" }, field("who", "Who: a name or an account"), field("tool", "Tool"), field("proposal", "Proposal"), h("button", { class: "button small" }, "Filter"));
    sieve.addEventListener("submit", (event) => {
      event.preventDefault();
      this.show();
    });
    return [sieve, h("div", { class: "buttons" }, verify, saves)];
  }

  query(more = {}) {
    const pairs = { who: this.who.value.trim(), tool: this.tool.value.trim(), proposal: this.proposal.value.trim(), ...more };
    return new URLSearchParams(Object.entries(pairs).filter(([, value]) => value));
  }

  /** A name stands for the one account that has it. */
  async named() {
    const name = this.who.value.trim().toLowerCase();
    if (!name || name.includes(":")) return;
    const { people } = await get("api/people");
    const all = people.flatMap(({ accounts }) => accounts.map((each) => [each.account, each.name]));
    const seen = [...(this.rows?.querySelectorAll("[data-account]") ?? [])].map((each) => [each.dataset.account, ""]);
    const found = [...all, ...seen].filter(([account, called]) => [called, account.slice(account.indexOf(":") + 1)].some((each) => each?.toLowerCase() === name));
    const accounts = [...new Set(found.map(([account]) => account))];
    const one = people.some((each) => accounts.every((account) => each.accounts.some((other) => other.account === account)));
    if (this.who.value.trim().toLowerCase() !== name) return; // something else was asked for since
    if (accounts.length === 1 || (accounts.length && one)) this.who.value = accounts[0];
    else throw new Error(accounts.length ? `Several have that name: ${accounts.join(", ")}.` : "No one here is called that. Write an account, such as slack:T1/U7.");
  }

  async load() {
    await this.named();
    return get(`api/audit?${this.query({ limit: 50 })}`);
  }

  refused() {
    this.body.replaceChildren(); // those rows are not what was asked for
  }

  draw({ rows, next }, below = false) {
    if (!below) {
      this.rows = h("tbody", {});
      this.further = h("button", { type: "button", class: "button small" }, "Show more");
      this.body.replaceChildren(h("div", { class: "table-box", tabindex: 0, role: "region", "aria-label": "Audit log" },
        h("table", {}, h("thead", {}, h("tr", {}, ["When", "Who", "What", "About"].map((each) => h("th", { scope: "col" }, each)))), this.rows)), this.further);
      if (!rows.length) this.body.replaceChildren(nothing("Nothing here", "No row of the audit log matches."));
    }
    this.rows.append(...rows.map((row) => this.row(row)));
    this.further.hidden = next === null;
    this.further.onclick = () => this.newest.of(() => get(`api/audit?${this.query({ limit: 50, before: next })}`)).then((page) => page && this.draw(page, true), (error) => this.say(error.message, true));
  }

  row({ at, actor, verb, proposal_id: id, thing, key, reason, tool_name: tool, description }) {
    const read = thing === "context" ? key : null; // someone read what led to that proposal
    const about = id || read ? h("a", { href: `#/inbox/${encodeURIComponent(id || read)}` }, read ? `What led to ${read.slice(0, 8)}` : data(description || tool || id.slice(0, 8))) : data([thing, key].filter(Boolean).join(" "));
    const why = reason ? h("p", { class: "help", ...DATA }, shown(reason)) : null;
    return h("tr", {}, [stamp(at), h("span", { data: { account: actor } }, data(actor)), VERBS[verb] ?? data(verb), [about, why]]
      .map((cell) => h("td", { dir: "auto" }, cell)));
  }

  async verify() {
    await this.doing(async () => {
      const { intact, faults, anchor } = await follow("api/audit/verify", ({ done, total }) => this.goOn("Verifying the audit log", done, total));
      if (!intact) throw new Error(`The audit log was changed: ${faults.join(" ")}`);
      return { text: anchor ? `Audit log verified: nothing missing or altered. Keep this anchor elsewhere: ${anchor}` : "The audit log is empty." };
    });
  }

  async export(form) {
    let at = 0;
    let rest = "";
    await this.save(`api/audit/export?${this.query({ format: form })}`, `audit.${form}`, (text, headers) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop();
      for (const line of lines) at = Math.max(at, Number(/^(?:\{"id": |")(\d+)[",]/.exec(line)?.[1] ?? 0));
      this.goOn("Exporting the audit log", at, Number(headers.get("Nod-Last-Row")));
    });
    if (this.bar) this.say("");
  }

  /** Show how far it is, without reading each step out. */
  goOn(what, done, total) {
    this.bar ??= h("progress", { "aria-label": what });
    Object.assign(this.bar, { max: Math.max(total, 1), value: Math.min(done, total) });
    this.word.hidden = false;
    this.word.classList.remove("bad");
    this.far ??= h("span", { "aria-live": "off" });
    this.far.textContent = `${number(Math.min(done, total))} of ${number(total)} rows`;
    if (this.word.contains(this.bar)) return;
    this.word.replaceChildren(`${what} `, this.bar, " ", this.far);
  }

  say(text, bad = false) {
    this.bar = this.far = null;
    super.say(text, bad);
  }
}

export class You extends Page {
  /** `leave()` is called once the person is signed out. */
  constructor(element, leave) {
    super(element);
    this.leave = leave;
    this.devices = new Devices(this);
    element.append(this.devices.element);
  }

  async load() {
    const [me, { agents }] = await Promise.all([get("api/me"), get("api/agents")]);
    return { ...me, agents: agents.filter((each) => each.mine), devices: await this.devices.load(me) };
  }

  draw({ name, account, accounts, roles, model, demo, admin, session, agents, devices }) {
    const out = (path) => async () => {
      try {
        if (session) await remove(path);
        await this.leave();
      } catch (error) {
        this.say(error.message, true);
      }
    };
    const leave = (words, path) => h("button", { type: "button", class: "button", onclick: out(path) }, words);
    const row = (label, ...value) => h("div", {}, h("dt", {}, label), h("dd", { dir: "auto" }, ...value));
    const others = accounts.filter((each) => each !== account);
    this.body.replaceChildren(h("div", { class: "card" }, h("dl", { class: "facts" },
      row("Name", data(name)), row("This account", h("code", { ...DATA }, shown(account))),
      row("Linked accounts", others.length ? [...others.map((each) => h("p", {}, h("code", { ...DATA }, shown(each)))), h("a", { href: "#/people" }, "Who is who")] : "none. Write /nod link in a chat to make one person of your accounts."),
      row("Roles", roles.length ? roles.join(", ") : "none"), row("Admin of all", admin ? "yes" : "no"),
      row("Model", data(model), demo ? " (demo)" : "")),
    signedIn() || session ? h("div", { class: "card-buttons" }, h("div", { class: "buttons" }, leave("Sign out", "api/session"),
      session ? leave("Sign out everywhere", "api/session?everywhere=true") : null)) : h("p", { class: "help" }, "You are on this machine, so no sign-in is needed.")),
    ...(agents.length ? [h("h2", { class: "section" }, "What calls tools for you"), ...agents.map((each) => agentCard(this, each))] : []));
    this.devices.draw({ account, admin }, devices);
  }
}
