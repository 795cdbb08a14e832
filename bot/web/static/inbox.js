// Everything that is to be decided or was, across channels: a list, and what is chosen in it in full.
// What is decided stays in its place until the next look, so that nothing moves under a finger.

import { Newest } from "./api.js";
import { Batch } from "./batch.js";
import { Card } from "./card.js";
import * as channels from "./channels.js";
import { isSubscribed } from "./devices.js";
import { announce, DATA, data, h, icon, recall, redraw, remember, settle, shown, worded } from "./dom.js";
import { onKey } from "./keys.js";
import { find, list, listen, me, press, refresh } from "./proposals.js";
import { ago, expiry } from "./times.js";

const WAIT = 250; // milliseconds after a key before the list is asked for
const ARMED = 5000; // milliseconds in which a second key approves
const COPIED = 4000; // milliseconds for which the page says so
const NOTIFY = "nod.notify";
const REST = 1000; // milliseconds without keys after one that meant nothing here, and after a move to another card
const TABS = {
  decide: ["For you", "mine=decide"],
  waiting: ["Waiting", "state=proposed"],
  asked: ["You asked", "mine=asked"],
  decided: ["Decided", ["approved", "executing", "succeeded", "failed", "declined", "expired", "cancelled"].map((each) => `state=${each}`).join("&")],
};
const NOTHING = {
  decide: ["You're all caught up", "When Nod wants to change something that you may decide, it shows up here, whichever channel it was asked in."],
  waiting: ["Nothing is waiting", "Every proposal you may see has been decided."],
  asked: ["You haven't asked for anything yet", "What you ask Nod to change shows up here, with how it ended."],
  decided: ["Nothing has been decided yet", "What was approved, declined or expired shows up here."],
};
const KEYS = { j: "next", k: "previous", x: "select or clear", a: "approve: a or Enter within five seconds sends it", d: "decline", e: "edit", "/": "search", "?": "these keys" };
const DECIDING = { a: "approve", d: "decline", e: "edit" };
const BUSY = "a.button, button, input, textarea, select, summary, dialog, .card-form"; // what takes keys itself
const ORDERS = { expires: "Expires first", changed: "Newest change" };
const SIGNS = { proposed: "clock", approved: "clock", executing: "clock", succeeded: "check", failed: "warning", declined: "cross", expired: "clock", cancelled: "minus" };

/** The orders of the server's lists, of rows by when each was changed or expires, as it was placed. */
const orders = {
  changed: (one, other) => ((one.at === other.at ? one.id < other.id : one.at < other.at) ? 1 : -1),
  expires: (one, other) => ((one.due === other.due ? one.id > other.id : one.due > other.due) ? 1 : -1),
};

/** A choice that is not there yet. */
function offer(select, value, words) {
  if (![...select.options].some((each) => each.value === value)) select.append(h("option", { value, translate: "no" }, words));
}

export class Inbox {
  constructor(element) {
    this.element = element;
    this.tab = "decide";
    this.rows = new Map(); // by id, as they stand in the list: the element, and what orders it as it was placed
    this.cards = new Map();
    this.chosen = new Set();
    this.listed = false; // whether the list was answered since the page is shown: before, its first is not known
    this.current = null;
    this.next = null;
    this.armed = null; // what a second key approves: its id and round
    this.quiet = 0; // until then no key acts
    this.newest = new Newest();
    this.build();
    listen((p) => this.shown && this.heard(p));
    onKey(document, (event) => this.key(event));
  }

  build() {
    this.tabs = h("div", { class: "tabs", role: "group", "aria-label": "Which proposals" }, Object.entries(TABS).map(([tab, [label]]) =>
      h("button", { type: "button", class: "tab", data: { tab }, onclick: () => this.turn(tab) }, label)));
    this.search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search proposals", autocomplete: "off" });
    this.tool = h("select", { "aria-label": "Tool" }, h("option", { value: "" }, "Any tool"));
    this.place = h("select", { "aria-label": "Place" }, h("option", { value: "" }, "Any place"));
    this.search.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.turn(), WAIT);
    });
    this.person = h("select", { "aria-label": "Person" }, h("option", { value: "" }, "Any person"));
    this.order = h("select", { "aria-label": "Order" }, Object.entries(ORDERS).map(([value, words]) => h("option", { value }, words)));
    this.order.value = recall("nod.order", true) || "expires";
    this.order.addEventListener("change", () => remember("nod.order", this.order.value, true));
    for (const each of [this.tool, this.place, this.person, this.order]) each.addEventListener("change", () => this.turn());
    this.every = h("input", { type: "checkbox", data: { part: "every" } });
    this.every.addEventListener("change", () => this.chooseAll(this.every.checked));
    this.everyLine = h("label", { class: "every" }, this.every, "Select all");
    this.list = h("ul", { class: "rows", "aria-label": "Proposals" });
    this.nothing = h("div", { class: "nothing-here", hidden: true });
    this.more = h("button", { type: "button", class: "button small", hidden: true, onclick: () => this.load(this.next) }, "Show more");
    this.bell = h("button", { type: "button", class: "link-button", onclick: () => this.notify() });
    this.many = h("div", { class: "many", role: "group", "aria-label": "What is selected", hidden: true });
    this.word = h("p", { class: "notice-word", role: "status", ...DATA, hidden: true });
    this.detail = h("div", { class: "cards" });
    this.back = h("a", { class: "back", href: "#/inbox", onclick: () => this.open(false) }, "All proposals");
    this.review = h("button", { type: "button", class: "button primary review", onclick: () => this.open(true) });
    this.copy = h("button", { type: "button", class: "link-button", onclick: () => this.send() }, "Copy link");
    this.keys = h("input", { type: "checkbox" });
    this.keys.checked = recall("nod.keys", true) !== "off";
    this.keys.addEventListener("change", () => remember("nod.keys", this.keys.checked ? "" : "off", true));
    this.help = h("dialog", { class: "keys", "aria-label": "Keys" }, h("h2", {}, "Keys"),
      h("label", { class: "every" }, this.keys, "Use these keys in this browser"),
      h("dl", { class: "facts" }, Object.entries(KEYS).map(([key, words]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, words)))),
      h("form", { method: "dialog" }, h("button", { class: "button" }, "Close")));
    this.element.append(
      h("div", { class: "pane list-pane" }, h("h2", { class: "hidden" }, "Proposals"), this.tabs, h("div", { class: "sieve" }, this.search, this.tool, this.place, this.person, this.order),
        this.nothing, this.everyLine, this.list, this.more, this.review,
        h("p", { class: "pane-foot" }, h("button", { type: "button", class: "link-button", onclick: () => this.help.showModal() }, "Keys"), this.bell)),
      h("div", { class: "pane detail-pane", id: "inbox-detail", tabindex: -1 },
        h("h2", { class: "hidden" }, "What it changes"), h("div", { class: "detail-head" }, this.back, this.copy), this.many, this.word, this.detail),
      this.help);
    this.drawBell();
    addEventListener("storage", ({ key }) => key === NOTIFY && this.drawBell()); // turned on or off in another tab
  }

  /** `id`: the proposal of the address, if it names one. */
  show(id) {
    const first = !this.shown;
    this.shown = true;
    this.asked = id || null;
    this.open(Boolean(id));
    if (first) this.load();
    else if (id) this.pick(id);
    else this.pickOne();
  }

  /** The tab was away: what was decided since is taken out of the list. */
  lookAgain() {
    if (!this.cards.get(this.current)?.form) this.load();
  }

  /** Where there is no place for both: what is chosen instead of the list. */
  open(one) {
    this.element.classList.toggle("one", one);
  }

  hide() {
    this.shown = false;
    this.asked = null;
    this.newest.overtake();
    this.forget();
    this.chosen.clear();
    this.listed = false;
    this.current = null;
    this.rows.clear();
    this.list.replaceChildren();
    this.drawDetail();
  }

  /** Another list was asked for: the address no longer says what stands next to it. */
  turn(tab = this.tab) {
    if (tab !== this.tab) this.chosen.clear();
    this.tab = tab;
    this.asked = null;
    if (location.hash !== "#/inbox") location.hash = "#/inbox";
    this.load();
  }

  /** What waits can be ordered by what expires first. */
  ordered() {
    return this.tab === "decide" || this.tab === "waiting" ? this.order.value : "changed";
  }

  sifted() {
    return Boolean(this.search.value.trim() || this.tool.value || this.place.value || this.person.value);
  }

  path(before) {
    const [, sought] = TABS[this.tab];
    const more = { q: this.search.value.trim(), tool: this.tool.value, channel: this.place.value, requester: this.person.value, before, limit: 30, order: this.ordered() };
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
      this.listed = true;
      this.pickOne();
      if (error.status !== 401) this.say(error.message, true);
      return;
    }
    if (!page) return;
    const keeps = this.listed;
    this.listed = true;
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
    if (before) return;
    if (this.asked) await this.pick(this.asked);
    else if (keeps && this.rows.has(this.current)) this.drawDetail();
    else this.pickFirst();
  }

  /** What is shown where nothing is yet, once that is known. */
  pickOne() {
    if (this.listed && !this.current && !this.asked) this.pickFirst();
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
    this.rows.get(this.current)?.element.scrollIntoView({ block: "nearest" });
    if (fault) this.say(fault, true);
  }

  /** Whether it belongs in the list, whatever the server's answer said before. */
  wants(p) {
    return p.state === "proposed" && !this.sifted() && ((this.tab === "decide" && p.may_decide) || this.tab === "waiting");
  }

  /** The row that stands for a batch: the first of it that came. */
  standsFor(p) {
    return p.batch ? [...this.rows.keys()].find((id) => find(id)?.batch?.id === p.batch.id) : undefined;
  }

  heard(p) {
    const first = this.standsFor(p);
    if (first && first !== p.id) this.draw(find(first));
    else if (this.rows.has(p.id)) this.draw(p);
    else if (this.wants(p)) this.add([p]);
    this.arrange();
    this.pickOne();
    this.drawMany();
  }

  /** Rows for these, where they belong by their last change; what changes later stays in its place. */
  add(proposals) {
    const batches = new Map();
    proposals = proposals.filter((p) => {
      if (!p.batch) return true;
      const first = this.standsFor(p) ?? batches.get(p.batch.id) ?? p.id;
      batches.set(p.batch.id, first);
      return first === p.id;
    });
    for (const p of proposals) {
      const element = this.rows.get(p.id)?.element ?? h("li", { class: "row" });
      this.rows.set(p.id, { id: p.id, at: p.updated_at, due: p.expires_at, element });
      offer(this.place, p.channel, channels.titled(p.channel));
      offer(this.tool, p.tool_name, p.tool_name);
      offer(this.person, p.requester_account, p.requester);
    }
    this.rows = new Map([...this.rows.values()].sort(orders[this.ordered()]).map((row) => [row.id, row]));
    settle(this.list, [...this.rows.values()].map((row) => row.element));
    proposals.forEach((p) => this.draw(p));
  }

  draw(p) {
    const row = this.rows.get(p.id).element;
    const open = p.state === "proposed";
    const box = h("input", { type: "checkbox", data: { part: "select" }, "aria-label": `Select: ${p.description}` });
    box.checked = this.chosen.has(p.id);
    box.disabled = !open || !p.may_decide || Boolean(p.batch);
    box.addEventListener("change", () => this.choose(p.id, box.checked));
    const tone = open ? "waiting" : p.state === "succeeded" && !p.ended_badly ? "good" : p.state === "failed" ? "bad" : p.ended_badly ? "warned" : "quiet";
    const when = open ? [expiry(p.expires_at, "expires")] : [data(p.outcome.replace(/\.$/, "")), p.decided_at ? [" · ", ago(p.decided_at)] : ""];
    const place = p.channel && p.channel !== "http" ? ` in ${channels.called(p.channel)}` : "";
    const link = h("a", { class: "row-link", href: `#/inbox/${encodeURIComponent(p.id)}` },
      h("span", { class: "row-title", ...DATA }, worded(p.headline)),
      h("span", { class: "row-small" }, p.batch ? `One of ${p.batch.size} changes, ` : null, open ? (p.kind === "suggestion" ? "Suggested, " : [data(p.requester), place, ", "]) : null, when));
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
    this.order.hidden = this.tab !== "decide" && this.tab !== "waiting";
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

  /** Those of the list that may be decided. */
  selectable() {
    return [...this.rows.keys()].filter((id) => find(id)?.state === "proposed" && find(id).may_decide && !find(id).batch);
  }

  chooseAll(on) {
    for (const id of this.selectable()) {
      if (on) this.chosen.add(id);
      else this.chosen.delete(id);
    }
    for (const id of this.rows.keys()) this.draw(find(id));
    this.drawDetail();
  }

  forget() {
    this.cards.forEach((card) => card.stop());
    this.cards.clear();
  }

  /** One in full, or all that are selected, so that what is approved together is seen together. */
  drawDetail() {
    const ids = this.chosen.size ? [...this.chosen] : this.current ? [this.current] : [];
    if (ids.length !== 1 || ids[0] !== this.armed?.id) this.disarm();
    for (const [id, card] of this.cards) {
      if (ids.includes(id)) continue;
      card.stop();
      this.cards.delete(id);
    }
    for (const id of ids) {
      if (this.cards.has(id)) continue;
      const batch = find(id)?.batch?.id;
      const told = { origin: true, further: () => this.further(id) };
      this.cards.set(id, batch ? new Batch(batch, told) : new Card(id, told));
    }
    const about = ids.join();
    if (about !== this.about) this.say(""); // it was about another
    this.about = about;
    settle(this.detail, ids.map((id) => this.cards.get(id).element));
    this.copy.hidden = ids.length !== 1;
    for (const id of this.rows.keys()) this.mark(id);
    this.drawMany();
  }

  drawMany() {
    const open = [...this.chosen].map(find).filter((p) => p?.state === "proposed" && p.may_decide);
    const fit = open.filter((p) => p.risk !== "destructive");
    const elsewhere = [...this.chosen].filter((id) => !this.rows.has(id)).length;
    const act = (words, verb, kind, which) => (which.length ? h("button", { type: "button", class: `button ${kind}`, data: { verb }, onclick: () => this.all(verb, which) }, words) : null);
    const words = [`${this.chosen.size} selected${elsewhere ? `, ${elsewhere} not in this list` : ""}.`];
    if (fit.length < open.length) words.push(`${open.length - fit.length} can't be undone: approve on the card.`);
    const free = this.selectable();
    this.everyLine.hidden = free.length < 2;
    this.every.checked = free.length > 0 && free.every((id) => this.chosen.has(id));
    this.every.indeterminate = !this.every.checked && free.some((id) => this.chosen.has(id));
    this.many.hidden = this.review.hidden = !this.chosen.size;
    this.review.textContent = `Review ${this.chosen.size} selected`;
    redraw(this.many, h("p", {}, words.join(" ")),
      h("div", { class: "buttons" }, act(`Approve ${fit.length}`, "approve", "primary", fit), act(`Decline ${open.length}`, "decline", "", open),
        h("button", { type: "button", class: "button seldom", data: { verb: "clear" }, onclick: () => this.clear() }, "Clear")));
  }

  clear() {
    this.chosen.clear();
    for (const id of this.rows.keys()) this.draw(find(id));
    this.drawDetail();
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
    const address = `${location.origin}${location.pathname}#/inbox/${encodeURIComponent([...this.chosen][0] ?? this.current)}`;
    try {
      await navigator.clipboard.writeText(address);
      const said = "Copied. Only people who may see it can open it.";
      this.say(said);
      setTimeout(() => this.word.textContent === said && this.say(""), COPIED);
    } catch {
      this.say(address);
    }
  }

  // Keys

  /** The card that keys decide on: one of the list, and only while it is there to be seen. */
  target() {
    const id = this.chosen.size === 1 ? [...this.chosen][0] : this.current;
    const card = this.rows.has(id) && this.chosen.size < 2 ? this.cards.get(id) : null;
    return card?.element.checkVisibility() ? card : null;
  }

  key(event) {
    const armed = this.armed;
    if (!this.shown || event.key === "Shift") return;
    this.disarm();
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !this.keys.checked || event.target.closest(BUSY)) return;
    const sends = event.key === "Enter" && armed;
    const known = sends || event.key in KEYS;
    if (!known && !/^\p{L}$/u.test(event.key)) return;
    if (known) event.preventDefault();
    // what is typed for a field that is not there is no command
    if (Date.now() < this.quiet || !known || (event.repeat && (sends || event.key in DECIDING))) this.quiet = Date.now() + REST;
    else if (!this.act(sends ? "a" : event.key, armed)) {
      this.quiet = Date.now() + REST;
      announce("That key does nothing here.");
    }
  }

  /** Whether it did anything. */
  act(key, armed) {
    if (key === "?") this.help.showModal();
    else if (key === "/") this.search.focus();
    else if (key === "j" || key === "k") return this.step(key === "j" ? 1 : -1);
    else if (key === "x") return this.toggle(this.current);
    else return this.decide(DECIDING[key], armed);
    return true;
  }

  step(by) {
    const ids = [...this.rows.keys()];
    const at = ids.indexOf(this.current);
    return ids.length > 0 && this.go(ids[Math.min(ids.length - 1, Math.max(0, at + by))]);
  }

  go(id) {
    location.hash = `#/inbox/${encodeURIComponent(id)}`;
    this.rows.get(id).element.scrollIntoView({ block: "nearest" });
    return true;
  }

  toggle(id) {
    const box = this.rows.get(id)?.element.querySelector("input");
    if (!box || box.disabled) return false;
    this.choose(id, !this.chosen.has(id));
    return true;
  }

  /** No single key approves: the first arms it, and a second one sends what the first was pressed on. */
  decide(verb, armed) {
    const card = this.target();
    if (!card?.offers(verb)) return false;
    const { id, round, risk } = card.proposal;
    if (verb !== "approve" || risk === "destructive") card.pressed(verb, true);
    else if (armed?.id === id && armed.round === round) card.pressed(verb, true);
    else {
      card.say("Press a or Enter within five seconds to approve.");
      this.armed = { id, round, card, over: setTimeout(() => this.disarm(), ARMED) };
    }
    return true;
  }

  disarm() {
    if (!this.armed) return;
    clearTimeout(this.armed.over);
    this.armed.card.say("");
    this.armed = null;
  }

  /** After a decision by a key: the next one that waits for this person. */
  further(id) {
    if (id !== this.current || this.chosen.size) return;
    const ids = [...this.rows.keys()];
    const at = ids.indexOf(id);
    const next = [...ids.slice(at + 1), ...ids.slice(0, at)].find((each) => this.selectable().includes(each));
    if (!next) return;
    this.quiet = Date.now() + REST;
    this.rows.get(next).element.querySelector("a").focus();
    this.go(next);
  }

  // Notifications of the browser

  drawBell() {
    if (me.push) {
      this.bell.textContent = "Notifications";
      return;
    }
    this.bell.hidden = !("Notification" in globalThis) || Notification.permission === "denied";
    this.bell.textContent = isNotifying() ? "Turn notifications off" : "Notify me in this browser";
  }

  async notify() {
    if (me.push) location.hash = "#/you";
    else if (isNotifying()) remember(NOTIFY, "", true);
    else if ((await Notification.requestPermission()) === "granted") remember(NOTIFY, "on", true);
    this.drawBell();
  }
}

/** Whether the person turned notifications on in this browser. */
export const isNotifying = () => "Notification" in globalThis && !isSubscribed(me.account) && Notification.permission === "granted" && recall(NOTIFY, true) === "on";

/** Tell of what waits for the person, where they turned that on and look elsewhere. */
export function notifyOf(p) {
  if (!document.hidden || !isNotifying() || p.state !== "proposed" || !p.may_decide) return;
  const said = new Notification(p.description, { body: p.requester, tag: p.id, icon: "static/icon.svg" });
  said.addEventListener("click", () => {
    focus();
    location.hash = `#/inbox/${encodeURIComponent(p.id)}`;
    said.close();
  });
}
