// Several calls of one tool in one answer: a table with a checkbox for each row that may be approved with others.

import { get, Newest, post } from "./api.js";
import { annotations, Card, contextOf, fold } from "./card.js";
import { changes } from "./diff.js";
import { sureForm, wordsForm } from "./decisions.js";
import { announce, DATA, data, h, icon, keeping, shown } from "./dom.js";
import { onEscape } from "./keys.js";
import { listen, press, put } from "./proposals.js";
import { expiry } from "./times.js";
import { fill, keep, kept, valuesOf } from "./typed.js";

const CALM = 150; // milliseconds: changes within them are shown together
const SIGNS = { proposed: "clock", approved: "clock", executing: "clock", succeeded: "check", failed: "warning", declined: "cross", expired: "clock", cancelled: "minus" };
const TONES = { proposed: "waiting", approved: "waiting", executing: "waiting", succeeded: "good", failed: "bad" };
const WORDS = { proposed: "Waiting", approved: "Waiting to run", executing: "Running", succeeded: "Done", failed: "Failed", declined: "Declined", expired: "Expired", cancelled: "Withdrawn" };

export class Batch {
  /** `id` is the batch's; the rest as for a `Card`. */
  constructor(id, { own = false, origin = false, further = () => {} } = {}) {
    Object.assign(this, { id, own, origin, further, left: new Set(), seen: new Map(), cards: new Map(), busy: false, form: null, newest: new Newest() });
    this.content = h("div", { class: "card-content" });
    this.word = h("p", { class: "card-word", ...DATA, hidden: true });
    this.slot = h("div", { class: "card-slot" });
    this.buttons = h("div", { class: "buttons" });
    this.element = h("article", { class: "card batch waiting proposed", tabindex: -1, data: { batch: id } },
      this.content, this.word, this.slot, h("div", { class: "card-foot" }, h("div", { class: "card-buttons" }, this.buttons)));
    onEscape(this.element, () => this.form, () => this.close());
    this.typed = `batch ${id}`;
    this.deaf = listen((p) => p.batch?.id === id && this.soon());
    this.load();
  }

  stop() {
    this.deaf();
    clearTimeout(this.timer);
    this.cards.forEach((card) => card.stop());
  }

  /** The form that was open with words in it when the person had to sign in. */
  reopen() {
    const values = kept(this.typed);
    const open = this.data.batch.rows.filter((row) => this.open(row) && row.may_decide);
    if (!values || this.form || !open.length) return;
    this.decline(open);
    fill(this.form.element, values);
  }

  crown() {} // its buttons stand on it

  /** What keys decide about: all that is ticked. */
  get proposal() {
    return { id: this.id, round: this.data?.batch.round, risk: "write", state: this.data?.batch.state };
  }

  soon() {
    this.behind = this.loading;
    if (this.timer || this.loading) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      this.load();
    }, CALM);
  }

  async load() {
    this.loading = true;
    try {
      const answer = await this.newest.of(() => get(`api/batches/${encodeURIComponent(this.id)}`));
      if (answer) this.draw(answer);
      if (answer) this.reopen();
    } catch (error) {
      this.say(error.message, true);
    } finally {
      this.loading = false;
      if (this.behind) this.soon();
    }
  }

  draw(data) {
    data.proposals.forEach((p) => put(p));
    const { batch, proposals } = data;
    const print = proposals.map((p) => `${p.id} ${p.version}`).join();
    if (print !== this.print) this.say("");
    this.print = print;
    this.data = data;
    this.states = new Map(proposals.map((p) => [p.id, p]));
    for (const row of batch.rows) {
      const before = this.seen.get(row.id);
      if (before && before !== row.seen && this.open(row)) {
        this.left.add(row.id); // what changed under someone's eyes is not ticked
        this.say(`“${row.about}” just changed, so it is not ticked. Look at it as it is now.`, true);
      }
      this.seen.set(row.id, row.seen);
    }
    const open = batch.state === "proposed";
    this.element.className = `card batch ${open || batch.state === "executing" ? "waiting" : "good"} ${batch.state}`;
    this.element.setAttribute("aria-label", `Batch: ${batch.title}`);
    keeping(this.element, () => {
      this.content.replaceChildren(...this.parts(batch, open).filter(Boolean));
      this.drawButtons();
    });
  }

  parts(batch, open) {
    const why = this.states.get(batch.rows[0].id)?.why;
    return [
      h("div", { class: "card-head" }, h("h3", { class: "card-title", ...DATA }, shown(batch.title))),
      open && why && batch.rows.every((row) => this.states.get(row.id).why === why) ? h("p", { class: "why" }, h("b", {}, "Why: "), data(why)) : null,
      open && batch.warning ? h("p", { class: "note", ...DATA }, shown(batch.warning)) : null,
      ...annotations(batch),
      ...batch.notes.filter((note) => note !== batch.outcome).map((note) => h("p", { class: "note", ...DATA }, shown(note))),
      batch.open < batch.size ? h("p", { class: "outcome", role: "status" }, data(batch.outcome)) : null,
      batch.same.length ? changes(batch.same) : null,
      h("div", { class: "table-box", tabindex: 0, role: "group", "aria-label": "The rows" }, this.table(batch)),
      open ? h("p", { class: "byline" }, batch.undo ? h("span", { ...DATA }, shown(batch.undo)) : null, h("span", {}, expiry(batch.expires_at, "Expires")), h("span", {}, "Can decide: ", data(batch.deciders)), batch.acts_as ? h("span", {}, data(batch.acts_as)) : null) : null,
      this.origin && batch.rows.some((row) => row.may_decide) ? fold("context", "What led to it", () => contextOf(this, batch.rows[0].id)) : null,
    ];
  }

  table(batch) {
    const free = this.free();
    const all = h("input", { type: "checkbox", data: { part: "every" }, "aria-label": "Tick all" });
    all.checked = free.length > 0 && free.every((row) => !this.left.has(row.id));
    all.indeterminate = !all.checked && free.some((row) => !this.left.has(row.id));
    all.disabled = !free.length;
    all.addEventListener("change", () => this.tick(free, all.checked));
    const names = [...new Set(batch.rows.flatMap((row) => row.changes.map((each) => each.field)))];
    const flat = names.length <= 4 && batch.rows.every((row) => row.changes.every((each) => [each.old_value, each.new_value].every((value) => !value || (value.length <= 64 && !/[\n\r]/.test(value)))));
    const heads = flat ? names : [];
    return h("table", {},
      h("thead", {}, h("tr", {}, h("th", {}, all), h("th", { scope: "col" }, "What"), heads.map((name) => h("th", { scope: "col", ...DATA }, shown(name))), h("th", { scope: "col" }, "How it stands"))),
      h("tbody", {}, batch.rows.map((row, at) => this.row(row, at + 1, heads, flat)).flat()));
  }

  /** What is too long for columns stands below its row, over the full width: of files that is their joint diff. */
  row(row, number, names, flat) {
    const p = this.states.get(row.id);
    const box = h("input", { type: "checkbox", data: { part: "select" }, "aria-label": `Approve ${number}: ${row.about}` });
    box.checked = this.ticks(row);
    box.disabled = !this.mayTick(row);
    box.addEventListener("change", () => this.tick([row], box.checked));
    const cell = (each) => (each ? values(each) : null);
    const cells = names.map((name) => h("td", {}, cell(row.changes.find((each) => each.field === name))));
    const opened = this.opened === row.id;
    const look = h("button", { type: "button", class: "link-button", "aria-expanded": String(opened), data: { part: `look-${row.id}` }, onclick: () => this.look(row.id) }, opened ? "Fold" : "Look");
    const tone = p.state === "succeeded" && p.ended_badly ? "warned" : TONES[p.state] ?? "quiet";
    const line = h("tr", { class: row.alone ? "alone" : "" }, h("td", {}, box),
      h("td", {}, `${number}. `, data(row.about), row.notes.map((note) => h("span", { class: "muted" }, " ", data(note)))), cells,
      h("td", {}, h("span", { class: `state ${tone}` }, icon(row.alone ? "warning" : SIGNS[p.state]), row.alone ? "Can't be undone" : WORDS[p.state]),
        row.fault ? h("span", { class: "muted" }, " ", data(row.fault.replace(`${WORDS[p.state]} `, ""))) : null, " ", look));
    const wide = (kind, ...inside) => h("tr", { class: kind }, h("td", { colspan: 3 + names.length }, ...inside));
    if (!opened) return flat || !row.changes.length ? [line] : [line, wide("below", changes(row.changes))];
    if (!this.cards.has(row.id)) this.cards.set(row.id, new Card(row.id, { own: this.own, origin: this.origin }));
    return [line, wide("opened", this.cards.get(row.id).element)];
  }

  /** Open one row by itself, with its own buttons. */
  look(id) {
    this.opened = this.opened === id ? null : id;
    this.draw(this.data);
  }

  open(row) {
    return this.states.get(row.id)?.state === "proposed";
  }

  mayTick(row) {
    return this.open(row) && row.may_decide && !row.alone && !this.busy;
  }

  /** The rows that may be approved together. */
  free() {
    return this.data.batch.rows.filter((row) => this.mayTick(row));
  }

  ticks(row) {
    return this.open(row) && row.may_decide && !row.alone && !this.left.has(row.id);
  }

  tick(rows, on) {
    for (const row of rows) {
      if (on) this.left.delete(row.id);
      else this.left.add(row.id);
    }
    this.draw(this.data);
  }

  drawButtons() {
    const { batch } = this.data;
    const rows = this.free();
    const yes = rows.filter((row) => !this.left.has(row.id));
    const no = rows.filter((row) => this.left.has(row.id));
    const open = batch.rows.filter((row) => this.open(row) && row.may_decide);
    const act = (words, verb, kind, does) => h("button", { type: "button", class: `button ${kind}`, data: { verb }, "aria-disabled": this.busy ? "true" : undefined, onclick: does }, words);
    const found = [];
    if (!this.form && yes.length) found.push(act(`Approve ${yes.length}`, "approve", "primary", () => this.decide(yes, [])));
    if (!this.form && yes.length && no.length) found.push(act(`Approve ${yes.length}, decline ${no.length}`, "split", "", () => this.decide(yes, no)));
    if (!this.form && open.length) found.push(act(`Decline all ${open.length}`, "decline", "", () => this.decline(open)));
    for (const { verb, label, sure } of batch.buttons) {
      if (!this.form && verb === "stop_all") found.push(act(label, verb, "danger", () => this.all(verb)));
      if (!this.form && verb === "undo_all") found.push(act(label, verb, "", () => this.ask((answers) => sureForm({ label, sure }, answers), () => this.all(verb))));
    }
    this.buttons.replaceChildren(...found);
    this.element.setAttribute("aria-busy", String(this.busy));
  }

  /** Whether there is a button for it that can be pressed now. */
  offers(verb) {
    return !this.busy && Boolean(this.buttons.querySelector(`[data-verb="${verb}"]`));
  }

  pressed(verb) {
    this.buttons.querySelector(`[data-verb="${verb}"]`)?.click();
  }

  decline(rows) {
    const made = { label: `Decline all ${rows.length}`, needs: "reason", question: "Why not?", hint: "Nod tells the agent, so that it can do better." };
    this.ask((answers) => wordsForm(made, answers), (body) => this.decide([], rows, body));
  }

  /** Asks by a form before it does something. */
  ask(form, does) {
    const close = () => {
      keep(this.typed, null);
      this.form = null;
      this.slot.replaceChildren();
      this.drawButtons();
      this.element.focus({ preventScroll: true });
    };
    const send = (body) => {
      close();
      does(body);
    };
    this.close = close;
    this.form = form({ send, cancel: close });
    this.form.element.addEventListener("input", () => keep(this.typed, valuesOf(this.form.element)));
    this.slot.replaceChildren(this.form.element);
    this.drawButtons();
    this.form.focus();
  }

  /** Decide these rows as they are on the screen. */
  decide(yes, no, body = {}) {
    const seen = (rows) => rows.map((row) => ({ id: row.id, seen: row.seen }));
    return this.act(async () => {
      const answer = await post(`api/batches/${encodeURIComponent(this.id)}/decide`, { approve: seen(yes), decline: seen(no), ...body });
      this.newest.overtake();
      this.draw(answer);
      return answer.text;
    });
  }

  all(verb) {
    return this.act(async () => (await press(this.id, verb, { round: this.data.batch.round })).text);
  }

  async act(does) {
    if (this.busy) return;
    this.busy = true;
    this.drawButtons();
    try {
      const words = await does();
      await this.load();
      this.say(words);
      if (!this.data.batch.open) this.further();
    } catch (error) {
      await this.load();
      this.say(error.message, true);
    } finally {
      this.busy = false;
      this.drawButtons();
    }
  }

  say(text, bad = false) {
    this.word.textContent = text;
    this.word.hidden = !text;
    this.word.classList.toggle("bad", bad);
    if (text) announce(text);
  }
}

/** A change in one line of a table. */
function values({ old_value: before, new_value: after }) {
  const come = after === null ? h("span", { class: "nothing" }, "removed") : h("ins", { class: "value new", ...DATA }, shown(after));
  if (before === null || before === after) return come;
  return h("span", { class: "values" }, h("del", { class: "value old", ...DATA }, shown(before)), h("span", { class: "arrow" }, icon("arrow"), h("span", { class: "hidden" }, "becomes")), come);
}
