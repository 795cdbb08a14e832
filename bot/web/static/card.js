// A proposal as a card: what will change, who may decide, and the buttons. It shows only what the server said.

import { download, get, post } from "./api.js";
import { announce, DATA, data, h, icon, keeping, link, redraw, safeAddress, shown, worded } from "./dom.js";
import * as channels from "./channels.js";
import { changes, growing } from "./diff.js";
import { similarForm, stepsForm, sureForm, wordsForm } from "./decisions.js";
import { EditForm, exact } from "./form.js";
import { foldsAway, onEscape } from "./keys.js";
import { spoken } from "./markdown.js";
import { find, ladder, listen, me, press, questions, refresh, refreshQuestions, siblings, whenBack } from "./proposals.js";
import { ago, elapsed, expiry } from "./times.js";
import { fill, keep, kept, valuesOf } from "./typed.js";

const LOOK = 1200; // milliseconds without buttons after the content changed under someone's finger
const STATES = {
  proposed: ["Waiting", "clock", "waiting"],
  approved: ["Approved", "clock", "waiting"],
  executing: ["Running", "clock", "waiting"],
  succeeded: ["Done", "check", "good"],
  failed: ["Failed", "warning", "bad"],
  declined: ["Declined", "cross", "quiet"],
  expired: ["Expired", "clock", "quiet"],
  cancelled: ["Withdrawn", "minus", "quiet"],
};
const WORDS = { revise: "Sent back", superseded: "Replaced" };
const ENDS = { outcome_unknown: "Outcome unknown", stopped: "Stopped", undeliverable: "Not delivered", tool_changed: "Not run", disconnected: "Not run", unasked: "Withdrawn" };
const RISKS = { read: "Only reads", destructive: "Can't be undone" };
const SENT = { question: "Answered", request: "Approved", plan: "Approved" };
const KINDS = { question: "Question", request: "Request" };


/** Fit to read: JSON with line breaks, anything else as it is. */
export function pretty(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && exact(value) ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}

/** What the tool answered, and a button that saves it whole. */
function result(p) {
  const path = `api/proposals/${encodeURIComponent(p.id)}/result`;
  const save = () => download(path, `${p.tool_name}-${p.id}.txt`).catch((error) => announce(error.message));
  const fields = p.result_fields ?? [];
  const row = ({ label, value }) => h("div", {}, h("dt", { ...DATA }, shown(label)), h("dd", { class: "plain", ...DATA }, shown(value)));
  const said = fields.length ? h("dl", { class: "facts result" }, fields.map(row)) : boxed(pretty(p.result));
  return h("div", {}, said, h("button", { type: "button", class: "button small", onclick: save }, "Save as a file"));
}

/** Whether what is there after the run is not what was approved. */
const misread = (p) => p.read_again.some((each) => !each.agrees);

export class Card {
  /** `own`: the person looks at their own conversation; `origin` tells where it was asked; `further()` is called after a decision by a key. */
  constructor(id, { own = false, origin = false, further = () => {} } = {}) {
    Object.assign(this, { id, own, origin, further, byKey: false, busy: null, form: null, seen: null, resting: null });
    this.typed = `proposal ${id}`; // what its form is kept under
    this.content = h("div", { class: "card-content" });
    this.word = h("p", { class: "card-word", ...DATA, hidden: true });
    this.slot = h("div", { class: "card-slot" });
    this.buttons = h("div", { class: "card-buttons" });
    this.small = h("div", { class: "byline" });
    this.told = h("div", { class: "answers", "aria-live": "polite" });
    this.element = h("article", { class: "card", tabindex: -1, data: { proposal: id } },
      this.content, this.word, this.slot, h("div", { class: "card-foot" }, this.buttons, this.small), this.told);
    onEscape(this.element, () => this.form, () => this.close(true));
    const deaf = listen((p) => p.id === this.id && this.draw(p));
    const forgotten = whenBack(() => {
      if (this.unreached) this.say("");
      this.ask();
    });
    this.stop = () => {
      deaf();
      forgotten();
    };
    const known = find(id);
    if (known) this.draw(known);
  }

  draw(p) {
    const before = this.proposal;
    this.answer(p);
    this.reconsider(p);
    if (before && JSON.stringify(before) === JSON.stringify(p)) return;
    this.proposal = p;
    if (before && before.round !== p.round && p.state === "proposed" && this.busy !== "edit") this.changed();
    if (p.state !== before?.state && before) this.close(false);
    if (before && (before.state !== p.state || before.undone !== p.undone)) this.say("");
    const { label, tone } = this.standing();
    this.element.className = `card ${tone} ${p.state} ${p.risk}`;
    this.element.setAttribute("aria-label", `Proposal, ${label}: ${p.description}`);
    keeping(this.element, () => {
      this.content.replaceChildren(...this.parts(p).filter(Boolean));
      this.small.replaceChildren(...this.byline(p).filter(Boolean));
      this.drawButtons();
    });
    if (p.version !== before?.version) this.ask();
    if (!before) this.reopen();
  }

  /** The form that was open with words in it when the person had to sign in, or to load the page again. */
  reopen() {
    const { verb, round, values } = kept(this.typed) ?? {};
    const said = verb && this.said(verb);
    if (!said || this.proposal.state !== "proposed" || !this.offers(verb)) return;
    if (!said.question && round !== this.proposal.round) return; // it was about what the card said then
    const active = document.activeElement;
    this.pressed(verb);
    if (this.form?.rewrite) this.form.rewrite(values);
    else if (this.form) fill(this.form.element, values);
    active?.focus({ preventScroll: true });
  }

  /** What was asked about it; in its own conversation that stands there already. */
  ask() {
    if (this.origin && this.proposal?.state === "proposed") refreshQuestions(this.id).catch(() => {});
  }

  answer(p) {
    const told = this.origin && p.state === "proposed" ? questions(p.id) : [];
    const print = JSON.stringify(told);
    if (print === this.answered) return;
    this.answered = print;
    redraw(this.told, ...told.map((each) => h("div", { class: "answer" },
      h("p", { class: "byline plain" }, h("span", {}, data(each.asker), ": “", data(each.question), "”")),
      h("div", { class: "said", dir: "auto" }, each.answer ? spoken(each.answer) : h("p", { class: "muted" }, "The agent is answering…")))));
  }

  standing() {
    const p = this.proposal;
    const [word, sign, tone] = STATES[p.state] ?? [p.state, "clock", "quiet"];
    if (p.undone) return { label: "Undone", sign: "minus", tone: "quiet" };
    if (misread(p)) return { label: "Not as approved", sign: "warning", tone: "warned" };
    if (p.state === "succeeded" && p.ended_badly) return { label: data(p.ended_badly), sign: "warning", tone: "warned" };
    const label = (p.state === "succeeded" && SENT[p.kind]) || word;
    return { label: ENDS[p.cause] ?? WORDS[p.cause] ?? label, sign: ENDS[p.cause] ? "warning" : sign, tone: p.cause === "undeliverable" ? "bad" : tone };
  }

  /** The content moved while the card was on screen: say so, and keep a finger that is on its way from pressing. */
  changed() {
    if (this.form && !this.formVerb.startsWith("decline")) this.close(false);
    this.say("The content of this card just changed. Look at it as it is now.", true);
    clearTimeout(this.resting);
    this.resting = setTimeout(() => {
      this.resting = null;
      this.drawButtons();
    }, LOOK);
  }

  parts(p) {
    return this.unfolded(p) ? this.full(p) : this.folded(p);
  }

  /** How it ended is one line where it went as expected; what went wrong stays open. */
  unfolded(p) {
    return p.state === "proposed" || p.state === "failed" || (p.kind === "plan" && p.state === "succeeded") || Boolean(p.ended_badly) || (misread(p) && !p.undone);
  }

  full(p) {
    const open = p.state === "proposed";
    const parts = [h("div", { class: "card-head" }, this.title(p), open ? this.risk(p) : this.chip())];
    if (open && p.why) parts.push(h("p", { class: "why" }, h("b", {}, "Why: "), data(p.why)));
    if (p.kind === "plan" && p.state === "succeeded") parts.push(outline(p.outline));
    if (open && p.kind === "question" && p.risk_reason) parts.push(h("p", { class: "note", ...DATA }, shown(p.risk_reason)));
    const warning = [p.undo, `${RISKS[p.risk]}.`].reduce((words, said) => (said && words.startsWith(said) ? words.slice(said.length).trim() : words), p.warning); // the badge says it
    if (open && warning) parts.push(h("p", { class: "note", ...DATA }, shown(warning)));
    parts.push(...annotations(p));
    parts.push(...p.notes.map((note) => h("p", { class: "note", ...DATA }, worded(note))));
    if (!open) parts.push(this.outcome(p));
    if (p.again) parts.push(this.again(p));
    if (open || p.state === "failed") parts.push(difference(p, p.preview.filter((each) => !each.in_title)));
    if (open) parts.push(this.facts(p));
    return parts;
  }

  again(p) {
    return h("p", { class: "byline again", ...DATA }, shown(p.again));
  }

  folded(p) {
    const running = p.state === "executing" ? elapsed(p.updated_at) : null;
    const ended = p.state === "expired" && !p.decided_by ? p.expires_at : p.decided_at;
    const when = running ?? (ended ? ago(ended) : null);
    const address = p.result_url && safeAddress(p.result_url, { relative: true });
    return [
      h("div", { class: "card-line" }, h("div", { class: "card-top" }, this.chip(), this.title(p)),
        h("span", { class: "ending", ...DATA }, worded(running ? p.outcome : p.outcome.replace(/\.$/, "")), when ? [running ? " " : " · ", when] : null),
        address ? link(address, "Open the result") : null,
        this.revoker(p), this.conversation(p),
        this.fold("all", "Details", () => [
          h("p", { class: "byline" }, this.asked(p)), p.reason ? h("p", { class: "why" }, h("b", {}, "Why: "), data(p.reason)) : null,
          difference(p), p.result ? result(p) : null, everything(p)]),
        p.again ? this.again(p) : null),
      p.printed ? boxed(p.printed) : null,
      p.choices && p.result ? h("p", { class: "answered", ...DATA }, shown(p.result)) : null,
      ...annotations(p),
      ...p.notes.map((note) => h("p", { class: "note", ...DATA }, worded(note))),
    ];
  }

  title(p) {
    return h("h3", { class: "card-title", ...DATA }, worded(p.headline));
  }

  chip() {
    const { label, sign, tone } = this.standing();
    return h("span", { class: `state ${tone}` }, icon(sign), label);
  }

  /** For admins, where a grant let it run: a button that ends the grant. */
  revoker(p) {
    if (!p.grant || !me.admin) return null;
    const revoke = async () => {
      try {
        const { text } = await post("api/commands", { name: "approvals", text: `revoke ${p.grant}` });
        await refresh(this.id).catch(() => {});
        this.say(text, false, { holds: (now) => now.version <= this.proposal.version });
      } catch (error) {
        this.say(error.message, true, { unreached: error.status === 0 });
      }
    };
    return h("button", { type: "button", class: "link-button", onclick: revoke }, `Revoke ${p.grant}`);
  }

  /** A chip where it is more than an ordinary change. */
  risk(p) {
    const words = KINDS[p.kind] ?? (p.warning.startsWith(p.undo || " ") ? p.undo.replace(/\.$/, "") : RISKS[p.risk]);
    if (!words) return null;
    return h("span", { class: `risk ${p.risk}`, title: p.risk_reason }, p.risk === "destructive" ? icon("warning") : null, words);
  }

  asked(p) {
    if (p.kind === "suggestion") return h("span", {}, "Suggested by Nod, ", ago(p.created_at));
    const by = p.kind === "question" && (!p.choices || p.asker_decides) ? "Asked of " : p.kind === "plan" ? "Plan by " : "Asked by ";
    const parts = [by, data(p.requester)];
    if (p.kind === "request" && p.state === "proposed") parts.push(", whose script carries it out");
    else if (this.origin || p.channel !== "http") parts.push(` in ${channels.called(p.channel)}`);
    return h("span", {}, parts, ", ", ago(p.created_at));
  }

  /** Only who asked there may read all of it; who may decide reads the turn that led to this. */
  conversation(p) {
    if (!this.origin) return null;
    if (p.channel === "http" && p.conversation_id && p.requester_account === me.account) return h("a", { href: `#/c/${encodeURIComponent(p.conversation_id)}` }, "Open conversation");
    return p.may_decide && p.call_id && ["call", "plan"].includes(p.kind) && !p.undoes ? this.fold("context", "What led to it", () => contextOf(this, p.id)) : null;
  }

  /** The small print of a card that is open: who asked, unless it is the person at their own words. */
  byline(p) {
    if (!this.unfolded(p)) return [];
    const open = p.state === "proposed";
    const asked = !this.own || p.teammate || p.kind === "question" ? this.asked(p) : null;
    return [asked, open && p.undo && p.risk !== "destructive" ? h("span", { ...DATA }, shown(p.undo.replace(/\.$/, "").replace(/^Can be undone/, "Can undo"))) : null,
      open ? h("span", {}, expiry(p.expires_at, "Expires")) : null, this.conversation(p),
      this.fold("all", "Details", () => [
        this.own ? h("p", {}, this.asked(p)) : null,
        p.reason && !(open && p.why) ? h("p", { class: "why" }, h("b", {}, "Why: "), data(p.reason)) : null, everything(p)])];
  }

  outcome(p) {
    const address = p.result_url && safeAddress(p.result_url, { relative: true });
    return h("div", { class: `outcome ${this.standing().tone}` },
      h("p", { ...DATA }, worded(p.outcome), p.decided_at ? [" ", h("span", { class: "muted" }, ago(p.decided_at))] : null),
      p.error ? boxed(p.error) : null,
      p.ended_badly && p.result ? result(p) : null,
      address ? h("p", {}, link(address, "Open the result")) : null,
      this.revoker(p));
  }

  facts(p) {
    const row = (name, ...value) => h("div", {}, h("dt", {}, name), h("dd", {}, ...value));
    const rows = p.asker_decides ? [] : [row("Who can decide", data(p.deciders))];
    if (p.connection) rows.push(row("In whose name", data(p.connection.words)));
    if (p.quorum > 1) {
      const given = p.votes.filter((vote) => /: approve\b/.test(vote)).length;
      rows.push(row("Approvals", `${given} of ${p.quorum} needed`));
    }
    if (p.votes.length && p.quorum > 1) rows.push(row("Votes", h("ul", { class: "votes" }, p.votes.map((vote) => h("li", { ...DATA }, shown(vote))))));
    return rows.length ? h("dl", { class: "facts" }, rows) : null;
  }

  fold(part, title, body) {
    const details = fold(part, title, body);
    if (part === "all" && me.insights && this.proposal.state === "proposed") details.addEventListener("toggle", () => details.open && noteOpened(this.id, part), { once: true });
    return details;
  }

  drawButtons() {
    const p = this.proposal;
    const over = p.undo_until && new Date(p.undo_until) <= new Date(); // its card is drawn again a little later
    const may = p.may_decide ? p.verbs.filter((verb) => this.said(verb) && !(over && verb === "undo")) : [];
    const one = may.filter((verb) => !verb.endsWith("_all"));
    const group = may.filter((verb) => verb.endsWith("_all"));
    if (this.own && !p.may_decide) one.push(...p.verbs.filter((verb) => ["ask", "stop"].includes(verb)), ...(p.state === "proposed" ? ["cancel"] : []));
    const rows = [];
    const rare = one.filter((verb) => this.said(verb).rare);
    const often = one.filter((verb) => !rare.includes(verb));
    if (one.length && !this.form) rows.push(h("div", { class: "buttons" }, often.map((verb) => this.button(verb)), this.menu(rare)));
    if (!p.may_decide && p.state === "proposed") rows.push(h("p", { class: "muted" }, "You may not decide this. It waits for ", data(p.deciders), "."));
    const bar = group.length && p.group && !this.form ? [this.groupBar(p, group)] : [];
    if (this.above) redraw(this.above, ...bar);
    else if (!this.origin) rows.push(...bar);
    redraw(this.buttons, ...rows);
    this.element.setAttribute("aria-busy", String(Boolean(this.busy)));
  }

  /** What is rarely wanted waits behind ⋯. */
  menu(verbs) {
    if (!verbs.length) return null;
    if (verbs.length === 1 && verbs[0] === "cancel") return this.button("cancel");
    const details = h("details", { class: "menu", data: { part: "menu" } }, h("summary", { class: "button" }, h("span", { "aria-hidden": "true" }, "⋯"), h("span", { class: "hidden" }, "More")),
      h("div", { class: "menu-list" }, verbs.map((verb) => this.button(verb))));
    details.addEventListener("toggle", () => details.open && details.lastElementChild.scrollIntoView({ block: "nearest" }));
    foldsAway(details);
    return details;
  }

  /** The buttons for the whole group stand there: above its first card. */
  crown(slot) {
    if (this.above === slot || !this.proposal?.group) return;
    this.above = slot;
    this.drawButtons();
  }

  groupBar(p, verbs) {
    const harm = siblings(p).filter((each) => each.state === "proposed" && each.risk === "destructive").length;
    const { open: left, size } = p.group;
    const words = `${left === size ? `${size} changes in this answer` : `${left} of ${size} changes in this answer are open`}.${harm ? ` ${harm} can't be undone: approve on the card.` : ""}`;
    return h("div", { class: "group" }, h("p", {}, words), h("div", { class: "buttons" }, verbs.map((verb) => this.button(verb))));
  }

  /** What the server says of the button for a verb. */
  said(verb) {
    return this.proposal.buttons.find((each) => each.verb === verb);
  }

  button(verb) {
    const p = this.proposal;
    const { label, doing, look, rare } = this.said(verb);
    const words = this.busy === verb ? doing : label;
    const whole = verb.endsWith("_all");
    const kind = verb === "approve" ? (look === "danger" ? "primary danger" : "primary") : rare ? "seldom" : "";
    const off = Boolean(this.busy || this.resting);
    return h("button", {
      type: "button",
      class: `button ${kind}`,
      data: { verb },
      "aria-disabled": off ? "true" : undefined,
      "aria-label": whole ? undefined : `${words}: ${p.description}`,
      onclick: () => this.pressed(verb),
    }, words);
  }

  /** Whether there is a button for it that can be pressed now. */
  offers(verb) {
    return !this.busy && !this.resting && Boolean(this.buttons.querySelector(`[data-verb="${verb}"]`));
  }

  pressed(verb, byKey = false) {
    if (this.busy || this.resting) return;
    this.byKey = byKey;
    const menu = this.buttons.querySelector(".menu[open]");
    if (menu) {
      menu.open = false;
      this.refocus(verb);
    }
    if (verb === "edit") this.edit();
    else if (verb === "similar") this.similar();
    else if (this.said(verb).question) this.open(wordsForm(this.said(verb), this.answers(verb)), verb);
    else if (this.said(verb).sure) this.open(sureForm(this.said(verb), this.answers(verb)), verb);
    else if (verb === "approve_steps") this.open(stepsForm(this.proposal, this.answers(verb)), verb);
    else this.send(verb);
  }

  edit() {
    if (!exact(this.proposal.tool_arguments)) {
      this.say("A number in here is too large to be edited in a browser without being rounded. Use the API for this one.", true);
      return;
    }
    this.open(new EditForm(this.proposal, {
      save: (values) => this.send("edit", { arguments: values }),
      approve: this.offers("approve") && !this.said("approve").sure ? (values) => this.send("approve", { arguments: values }) : null,
      cancel: () => this.close(true),
    }), "edit");
  }

  async similar() {
    const round = this.proposal.round;
    try {
      const offered = await ladder(this.id);
      if (this.form || round !== this.proposal.round || this.proposal.state !== "proposed") return;
      if (offered.ladder.length) this.open(similarForm(offered, this.answers("similar")), "similar");
      else this.say("You can't allow similar calls here.");
    } catch (error) {
      this.say(error.message, true);
    }
  }

  answers(verb) {
    return { send: (body) => this.send(verb, body), cancel: () => this.close(true) };
  }

  open(form, verb) {
    this.say("");
    this.form = form;
    this.formVerb = verb;
    const round = this.proposal.round;
    form.element.addEventListener("input", () => keep(this.typed, { verb, round, values: form.written?.() ?? valuesOf(form.element) }));
    this.slot.replaceChildren(form.element);
    this.drawButtons();
    form.focus();
    form.element.scrollIntoView({ block: "nearest" });
  }

  close(refocus) {
    if (!this.form) return;
    const inside = this.slot.contains(document.activeElement);
    keep(this.typed, null);
    this.form = null;
    this.slot.replaceChildren();
    this.drawButtons();
    if (refocus || inside) this.refocus(this.formVerb);
  }

  refocus(verb) {
    if (this.byKey) {
      this.element.focus({ preventScroll: true }); // where keys act
      return;
    }
    const button = verb && this.buttons.querySelector(`[data-verb="${verb}"]`);
    const menu = button && button.closest(".menu:not([open])");
    (menu?.firstElementChild || button || this.element).focus({ preventScroll: true });
  }

  /**
   * `holds(proposal)`: whether what is said is still so; then it goes, or is not said at all. `unreached`: it is so
   * only until the server can be reached again.
   */
  say(text, bad = false, { unreached = false, holds = () => true } = {}) {
    if (!holds(this.proposal)) text = "";
    Object.assign(this, { unreached, holds });
    this.word.textContent = text;
    this.word.hidden = !text;
    this.word.classList.toggle("bad", bad);
    if (text) announce(text);
  }

  /** Remove what was said where it is no longer so. */
  reconsider(p) {
    if (!this.word.hidden && this.holds && !this.holds(p)) this.say("");
  }

  /** What holds of a word about a press: until the proposal changes again, and of a question until it is answered. */
  lasting(verb, version) {
    const asked = questions(this.id).length;
    return (p) => p.version <= version() && !(verb === "ask" && questions(this.id).length > asked && questions(this.id).at(-1).answer);
  }

  async send(verb, body = {}) {
    if (this.busy || this.resting) return;
    const p = this.proposal;
    const whole = verb.endsWith("_all");
    let version = p.version;
    const holds = this.lasting(verb, () => version);
    this.busy = verb;
    this.say("");
    this.lock(true);
    this.drawButtons();
    try {
      const answer = await press(this.id, verb, { round: whole ? p.group?.round : p.round, ...body });
      version = Math.max(answer.proposal.version, p.version);
      this.close(true);
      if (verb === "edit" || answer.answer !== "accepted" || this.proposal.state === p.state) this.say(answer.text, false, { holds });
      else announce(answer.text);
      if (this.byKey && this.proposal.state !== "proposed") this.further();
    } catch (error) {
      if (error.status) version = this.proposal.version;
      if (this.form?.show && error.status === 422) this.form.show(error.fields, error.message);
      else this.say(error.message, true, { unreached: error.status === 0, holds });
      if (error.status === 409) this.close(true);
      if (error.status === 0) refresh(this.id).catch(() => {});
    } finally {
      this.busy = null;
      this.lock(false);
      this.drawButtons();
      if (whole) siblings(p).forEach((each) => refresh(each.id).catch(() => {}));
    }
  }

  lock(on) {
    const submit = this.form?.submit;
    if (submit) submit.setAttribute("aria-disabled", String(on));
  }
}

/** The lines that parts of Nod add under a name; no address in one is a link. */
export function annotations(drawn) {
  return drawn.annotations.map((each) => h("p", { class: "why annotation", ...DATA }, each.name ? h("b", {}, data(each.name), ": ") : null, data(each.text)));
}

let keepsOpened = true; // until Nod says that it doesn't

/** Say that a part of a card was opened, where that is kept. */
async function noteOpened(proposal, part) {
  if (!keepsOpened) return;
  const answer = await post("api/insights/opened", { proposal, part }).catch(() => ({ kept: true }));
  keepsOpened = answer.kept;
}

/** What is drawn once it is unfolded. */
export function fold(part, title, body) {
  const details = h("details", { class: "fold-out", data: { part } }, h("summary", {}, title));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(...[body()].flat().filter(Boolean));
  });
  return details;
}

/** The turn that a proposal came from: the order, what was read, what the agent said. `holder` keeps it. */
export function contextOf(holder, id) {
  const box = h("div", { class: "context" }, h("p", { class: "muted" }, "One moment…"));
  const read = (call) => h("div", {}, h("p", { class: "muted" }, "Read: ", data(call.summary || call.tool_name)), boxed(pretty(call.result)));
  const said = (line) => h("div", {}, h("p", {}, h("b", {}, line.role === "user" ? data(line.name) : line.role === "note" ? "Nod to the agent" : "The agent")),
    line.role === "assistant" ? h("div", { class: "said", ...DATA }, spoken(line.text)) : h("p", { class: "plain", ...DATA }, shown(line.text)), line.calls.map(read));
  holder.context ??= get(`api/proposals/${encodeURIComponent(id)}/context`);
  holder.context.then(({ messages }) => box.replaceChildren(...(messages.length ? messages.map(said) : [h("p", { class: "muted" }, "What led to it is no longer kept.")])), (error) => {
    holder.context = null;
    box.replaceChildren(h("p", { class: "bad" }, error.message));
  });
  return box;
}

/** What it changes; without a preview, the arguments are what people decide about. */
function difference(p, fields = p.preview) {
  if (p.outline.length) return outline(p.outline);
  if ((p.preview.length || p.choices) && !fields.length) return null;
  return fields.length ? changes(fields, p.preview) : boxed(JSON.stringify(p.tool_arguments, null, 2));
}

/** A plan: its summary, its steps by number with the tools of each, and what stands around them. */
function outline(lines) {
  const mark = ({ mark: word }) => (word ? h("span", { class: word.startsWith("was: ") ? "muted" : "tag" }, word.startsWith("was: ") ? [" (", data(word), ")"] : data(word)) : null);
  const step = (each) => h("li", { ...DATA }, shown(each.text), each.tools.map((name) => h("code", { class: "tool", ...DATA }, shown(name))), mark(each));
  const part = (each) => h("p", {}, each.label ? h("b", {}, `${each.label}: `) : null, data(each.text), mark(each));
  const steps = lines.filter((each) => each.number);
  const others = lines.filter((each) => !each.number);
  const head = others.filter((each) => !each.label);
  return h("div", { class: "outline" }, head.map(part), h("ol", {}, steps.map(step)), others.filter((each) => each.label).map(part));
}

function boxed(text) {
  const box = h("pre", { class: "boxed", tabindex: 0, ...DATA }, shown(text));
  return h("div", { class: "block" }, box, growing(box));
}

/** The whole payload, nothing left out. */
function everything(p) {
  const row = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, h("code", { ...DATA }, shown(String(value)))));
  return h("div", {},
    boxed(JSON.stringify(p.tool_arguments, null, 2)),
    h("dl", { class: "facts" }, row("Tool", p.tool_name), row("Risk", [p.risk, p.risk_reason].filter(Boolean).join(", ")), row("Who can decide", p.deciders), p.connection ? row("In whose name", p.connection.words) : null, row("Proposal", p.id), row("Digest", p.digest),
      row("Round, version", `${p.round}, ${p.version}`), row("Idempotency key", p.idempotency_key)));
}
