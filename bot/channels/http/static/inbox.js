// Everything that is to be decided or was, across channels: a list, and what is chosen in it in full.
// What is decided stays in its place until the next look, so that nothing moves under a finger.

import { Newest } from "./api.js";
import { Card } from "./card.js";
import * as channels from "./channels.js";
import { announce, h, icon, recall, redraw, remember, settle, shown } from "./dom.js";
import { find, list, listen, press, refresh } from "./proposals.js";
import { ago, expiry } from "./times.js";

const WAIT = 250; // milliseconds after a key before the list is asked for
const TABS = {
  decide: ["For you", "mine=decide"],
  waiting: ["Waiting", "state=proposed"],
  asked: ["You asked", "mine=asked"],
  decided: ["Decided", ["approved", "executing", "succeeded", "failed", "declined", "expired", "cancelled"].map((each) => `state=${each}`).join("&")],
};
const NOTHING = {
  decide: ["You're all caught up", "When Nod wants to change something that you may decide, it shows up here, whichever channel it was asked in."],
  waiting: ["Nothing waits", "Every proposal you may see has been decided."],
  asked: ["You asked for nothing yet", "What you ask Nod to change shows up here, with how it ended."],
  decided: ["Nothing was decided yet", "What was approved, declined or expired shows up here."],
};
const KEYS = { j: "next", k: "previous", x: "select or clear", a: "approve", d: "decline", e: "edit", "/": "search", "?": "these keys" };
const SIGNS = { proposed: "clock", approved: "clock", executing: "clock", succeeded: "check", failed: "warning", declined: "cross", expired: "clock", cancelled: "minus" };

/** The order of the server's lists: the newest change first. */
const order = (one, other) => ((one.at === other.at ? one.id < other.id : one.at < other.at) ? 1 : -1);

/** A choice that is not there yet. */
function offer(select, value, words) {
  if (![...select.options].some((each) => each.value === value)) select.append(h("option", { value }, words));
}

export class Inbox {
  constructor(element) {
    this.element = element;
    this.tab = "decide";
    this.rows = new Map(); // by id, as they stand in the list: the element, and when it was changed as it was placed
    this.cards = new Map();
    this.chosen = new Set();
    this.current = null;
    this.next = null;
    this.newest = new Newest();
    this.build();
    listen((p) => this.shown && this.heard(p));
    document.addEventListener("keydown", (event) => this.key(event));
  }

  build() {
    this.tabs = h("div", { class: "tabs", role: "group", "aria-label": "Which proposals" }, Object.entries(TABS).map(([tab, [label]]) =>
      h("button", { type: "button", class: "tab", data: { tab }, onclick: () => this.open(tab) }, label)));
    this.search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search proposals", autocomplete: "off" });
    this.tool = h("select", { "aria-label": "Tool" }, h("option", { value: "" }, "Any tool"));
    this.place = h("select", { "aria-label": "Place" }, h("option", { value: "" }, "Any place"));
    this.search.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.load(), WAIT);
    });
    this.person = h("select", { "aria-label": "Person" }, h("option", { value: "" }, "Any person"));
    for (const each of [this.tool, this.place, this.person]) each.addEventListener("change", () => this.load());
    this.list = h("ul", { class: "rows", "aria-label": "Proposals" });
    this.nothing = h("div", { class: "nothing-here", hidden: true });
    this.more = h("button", { type: "button", class: "button small", hidden: true, onclick: () => this.load(this.next) }, "Show more");
    this.bell = h("button", { type: "button", class: "link-button", onclick: () => this.notify() });
    this.many = h("div", { class: "many", role: "group", "aria-label": "What is selected", hidden: true });
    this.word = h("p", { class: "notice-word", role: "status", hidden: true });
    this.detail = h("div", { class: "cards" });
    this.back = h("a", { class: "back only-narrow", href: "#/inbox" }, "All proposals");
    this.copy = h("button", { type: "button", class: "link-button", onclick: () => this.send() }, "Copy link");
    this.help = h("dialog", { class: "keys", "aria-label": "Keys" }, h("h2", {}, "Keys"),
      h("dl", { class: "facts" }, Object.entries(KEYS).map(([key, words]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, words)))),
      h("form", { method: "dialog" }, h("button", { class: "button" }, "Close")));
    this.element.append(
      h("div", { class: "pane list-pane" }, h("h2", { class: "hidden" }, "Proposals"), this.tabs, h("div", { class: "sieve" }, this.search, this.tool, this.place, this.person),
        this.nothing, this.list, this.more,
        h("p", { class: "pane-foot" }, h("button", { type: "button", class: "link-button", onclick: () => this.help.showModal() }, "Keys"), this.bell)),
      h("div", { class: "pane detail-pane", id: "inbox-detail", tabindex: -1 },
        h("h2", { class: "hidden" }, "What it changes"), h("div", { class: "detail-head" }, this.back, this.copy), this.many, this.word, this.detail),
      this.help);
    this.drawBell();
  }

  /** `id`: the proposal of the address, if it names one. */
  show(id) {
    const first = !this.shown;
    this.shown = true;
    this.asked = id || null;
    this.element.classList.toggle("one", Boolean(id));
    if (first) this.load();
    else if (id) this.pick(id);
    else if (!this.current) this.pickFirst();
  }

  hide() {
    this.shown = false;
    this.asked = null;
    this.newest.overtake();
    this.forget();
    this.chosen.clear();
    this.current = null;
    this.rows.clear();
    this.list.replaceChildren();
    this.drawDetail();
  }

  open(tab) {
    this.tab = tab;
    this.chosen.clear();
    this.load();
  }

  sifted() {
    return Boolean(this.search.value.trim() || this.tool.value || this.place.value || this.person.value);
  }

  path(before) {
    const [, sought] = TABS[this.tab];
    const more = { q: this.search.value.trim(), tool: this.tool.value, channel: this.place.value, requester: this.person.value, before, limit: 30 };
    const pairs = Object.entries(more).filter(([, value]) => value);
    return `api/proposals?${sought}&${new URLSearchParams(pairs)}`;
  }

  /** Ask for the list again, or for what comes below it. */
  async load(before = null) {
    for (const each of this.tabs.children) each.setAttribute("aria-pressed", String(each.dataset.tab === this.tab));
    let page;
    try {
      page = await this.newest.of(() => list(this.path(before)));
    } catch (error) {
      if (error.status !== 401) this.say(error.message, true);
      return;
    }
    if (!page) return;
    this.say("");
    const found = [...page.proposals, ...page.told.filter((p) => this.wants(p))];
    if (!before) {
      const ids = new Set(found.map((p) => p.id));
      for (const id of [...this.rows.keys()]) if (!ids.has(id)) this.rows.delete(id);
    }
    this.add(found);
    this.next = page.next;
    this.more.hidden = !page.next;
    this.arrange();
    for (const id of [...this.chosen]) if (!this.rows.has(id)) this.chosen.delete(id);
    if (before) return;
    if (this.asked) await this.pick(this.asked);
    else if (this.rows.has(this.current)) this.drawDetail();
    else this.pickFirst();
  }

  pickFirst() {
    const [first] = this.rows.keys();
    this.current = first ?? null;
    this.drawDetail();
  }

  async pick(id) {
    let fault = "";
    try {
      if (!find(id)) await refresh(id);
    } catch (error) {
      fault = error.status === 404 ? "That proposal doesn't exist, or isn't for you to see." : error.message;
    }
    if (id !== this.asked) return; // another was opened since
    this.current = fault ? null : id;
    this.drawDetail();
    if (fault) this.say(fault, true);
  }

  /** Whether it belongs in the list, whatever the server's answer said before. */
  wants(p) {
    return p.state === "proposed" && !this.sifted() && ((this.tab === "decide" && p.may_decide) || this.tab === "waiting");
  }

  heard(p) {
    if (this.rows.has(p.id)) this.draw(p);
    else if (this.wants(p)) this.add([p]);
    this.arrange();
    if (!this.current && !this.asked) this.pickFirst();
    else if (this.chosen.has(p.id)) this.drawMany();
  }

  /** Rows for these, where they belong by their last change; what changes later stays in its place. */
  add(proposals) {
    for (const p of proposals) {
      const element = this.rows.get(p.id)?.element ?? h("li", { class: "row" });
      this.rows.set(p.id, { id: p.id, at: p.updated_at, element });
      offer(this.place, p.channel, channels.titled(p.channel));
      offer(this.tool, p.tool_name, p.tool_name);
      offer(this.person, p.requester_account, p.requester);
    }
    this.rows = new Map([...this.rows.values()].sort(order).map((row) => [row.id, row]));
    settle(this.list, [...this.rows.values()].map((row) => row.element));
    proposals.forEach((p) => this.draw(p));
  }

  draw(p) {
    const row = this.rows.get(p.id).element;
    const open = p.state === "proposed";
    const box = h("input", { type: "checkbox", data: { part: "select" }, "aria-label": `Select: ${p.description}` });
    box.checked = this.chosen.has(p.id);
    box.disabled = !open || !p.may_decide;
    box.addEventListener("change", () => this.choose(p.id, box.checked));
    const tone = open ? "waiting" : p.state === "succeeded" && !p.ended_badly ? "good" : p.state === "failed" ? "bad" : p.ended_badly ? "warned" : "quiet";
    const when = open ? ["expires ", expiry(p.expires_at)] : [shown(p.outcome.replace(/\.$/, "")), p.decided_at ? [" · ", ago(p.decided_at)] : ""];
    const place = p.channel && p.channel !== "http" ? ` in ${channels.called(p.channel)}` : "";
    const link = h("a", { class: "row-link", href: `#/inbox/${encodeURIComponent(p.id)}` },
      h("span", { class: "row-title", dir: "auto" }, shown(p.headline)),
      h("span", { class: "row-small" }, open ? [shown(p.requester), place, ", "] : null, when));
    row.className = `row ${tone} ${p.risk}`;
    redraw(row, box, h("span", { class: `row-sign ${tone}` }, icon(p.risk === "destructive" && open ? "warning" : SIGNS[p.state])), link);
    this.mark(p.id);
  }

  mark(id) {
    const link = this.rows.get(id)?.element.querySelector("a");
    if (!link) return;
    if (id === this.current) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }

  arrange() {
    const [title, words] = NOTHING[this.tab];
    this.nothing.hidden = this.rows.size > 0;
    const sifted = this.sifted();
    this.nothing.replaceChildren(h("h2", {}, sifted ? "Nothing matches" : title), h("p", { class: "muted" }, sifted ? "Try fewer words, or any tool, place and person." : words));
  }

  // What is chosen

  choose(id, on) {
    if (on) this.chosen.add(id);
    else this.chosen.delete(id);
    const box = this.rows.get(id)?.element.querySelector("input");
    if (box) box.checked = on;
    this.drawDetail();
  }

  forget() {
    this.cards.forEach((card) => card.stop());
    this.cards.clear();
  }

  /** One in full, or all that are selected, so that what is approved together is seen together. */
  drawDetail() {
    const ids = this.chosen.size ? [...this.rows.keys()].filter((id) => this.chosen.has(id)) : this.current ? [this.current] : [];
    for (const [id, card] of this.cards) {
      if (ids.includes(id)) continue;
      card.stop();
      this.cards.delete(id);
    }
    for (const id of ids) if (!this.cards.has(id)) this.cards.set(id, new Card(id, { origin: true }));
    settle(this.detail, ids.map((id) => this.cards.get(id).element));
    this.copy.hidden = ids.length !== 1;
    for (const id of this.rows.keys()) this.mark(id);
    this.drawMany();
  }

  drawMany() {
    const open = [...this.chosen].map(find).filter((p) => p?.state === "proposed" && p.may_decide);
    const harm = open.filter((p) => p.risk === "destructive").length;
    const act = (words, verb, kind) => h("button", { type: "button", class: `button ${kind}`, data: { verb }, onclick: () => this.all(verb, open) }, words);
    this.many.hidden = !this.chosen.size;
    redraw(this.many, h("p", {}, `${this.chosen.size} selected${harm ? `, ${harm} can't be undone` : ""}.`),
      h("div", { class: "buttons" }, open.length ? [act(`Approve ${open.length}`, "approve", "primary"), act(`Decline ${open.length}`, "decline", "")] : null,
        h("button", { type: "button", class: "button seldom", data: { verb: "clear" }, onclick: () => this.clear() }, "Clear")));
  }

  clear() {
    for (const id of [...this.chosen]) this.choose(id, false);
  }

  /** One press for each, one after another, each for what is on the screen. */
  async all(verb, chosen) {
    if (this.busy) return;
    this.busy = true;
    const faults = [];
    for (const p of chosen) {
      try {
        await press(p.id, verb, { round: p.round });
        this.chosen.delete(p.id);
      } catch (error) {
        faults.push(`${p.description}: ${error.message}`);
      }
    }
    this.busy = false;
    const done = chosen.length - faults.length;
    const words = `${verb === "approve" ? "Approved" : "Declined"} ${done} of ${chosen.length}.`;
    this.drawDetail();
    this.say([words, ...faults].join(" "), faults.length > 0);
  }

  say(text, bad = false) {
    this.word.hidden = !text;
    this.word.classList.toggle("bad", bad);
    this.word.replaceChildren(shown(text));
    if (text) announce(text);
  }

  async send() {
    const address = `${location.origin}${location.pathname}#/inbox/${encodeURIComponent(this.current ?? [...this.chosen][0])}`;
    try {
      await navigator.clipboard.writeText(address);
      this.say("Copied. Only people who may see it can open it.");
    } catch {
      this.say(address);
    }
  }

  // Keys

  key(event) {
    if (!this.shown || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !(event.key in KEYS)) return;
    if (event.target.closest("input:not([type=checkbox]), textarea, select, dialog, .card-form")) return;
    event.preventDefault();
    if (event.key === "?") this.help.showModal();
    else if (event.key === "/") this.search.focus();
    else if (event.key === "j" || event.key === "k") this.step(event.key === "j" ? 1 : -1);
    else if (event.key === "x" && this.current) this.toggle(this.current);
    else this.decide({ a: "approve", d: "decline", e: "edit" }[event.key]);
  }

  step(by) {
    const ids = [...this.rows.keys()];
    const at = ids.indexOf(this.current);
    const id = ids[Math.min(ids.length - 1, Math.max(0, at + by))];
    if (!id) return;
    if (location.hash === `#/inbox/${id}`) return;
    location.hash = `#/inbox/${encodeURIComponent(id)}`;
    this.rows.get(id).element.scrollIntoView({ block: "nearest" });
  }

  toggle(id) {
    const box = this.rows.get(id)?.element.querySelector("input");
    if (box && !box.disabled) this.choose(id, !this.chosen.has(id));
  }

  /** What can't be undone takes a second key: the first only goes to its button. */
  decide(verb) {
    if (!verb) return;
    if (this.chosen.size > 1) {
      this.many.querySelector(`[data-verb="${verb}"]`)?.focus();
      return;
    }
    const card = this.cards.get(this.current ?? [...this.chosen][0]);
    const button = card?.element.querySelector(`.card-buttons [data-verb="${verb}"]`);
    if (!button) return;
    if (verb === "approve" && card.proposal.risk === "destructive") {
      button.focus();
      announce("This can't be undone. Press Enter to approve it.");
    } else card.pressed(verb);
  }

  // Notifications of the browser

  drawBell() {
    const able = "Notification" in globalThis && Notification.permission !== "denied";
    const on = able && Notification.permission === "granted" && recall("nod.notify", true) === "on";
    this.bell.hidden = !able;
    this.bell.textContent = on ? "Turn notifications off" : "Notify me in this browser";
    this.notifying = on;
  }

  async notify() {
    if (this.notifying) remember("nod.notify", "", true);
    else if ((await Notification.requestPermission()) === "granted") remember("nod.notify", "on", true);
    this.drawBell();
  }
}

/** Tell of what waits for the person, where they turned that on and look elsewhere. */
export function notifyOf(p, inbox) {
  if (!inbox.notifying || !document.hidden || p.state !== "proposed" || !p.may_decide) return;
  const said = new Notification(p.description, { body: p.requester, tag: p.id, icon: "static/icon.svg" });
  said.addEventListener("click", () => {
    focus();
    location.hash = `#/inbox/${encodeURIComponent(p.id)}`;
    said.close();
  });
}
