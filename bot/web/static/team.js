// The team of a conversation: how each teammate stands, and the cards of what they ask for.

import { Card } from "./card.js";
import { DATA, data, h, icon, shown } from "./dom.js";
import { all, listen } from "./proposals.js";

const SIGNS = { working: ["clock", "waiting"], done: ["check", "good"], failed: ["warning", "bad"], stopped: ["minus", "quiet"] };

export class Team {
  /** `drawn()` is called when it grew. */
  constructor(element, drawn) {
    Object.assign(this, { element, drawn, conversation: null, cards: new Map() });
    this.list = h("ul", { class: "team-list" });
    this.title = h("h2", { class: "team-title" });
    this.slot = h("div", { class: "cards" });
    this.count = h("summary");
    this.fold = h("details", { class: "team-cards" }, this.count, this.slot);
    element.replaceChildren(this.title, this.list, this.fold);
    listen((p) => this.take(p));
    this.reset(null);
  }

  reset(conversation) {
    this.conversation = conversation;
    this.cards.forEach((card) => card.stop());
    this.cards.clear();
    this.slot.replaceChildren();
    this.atWork = 0;
    this.rests = null;
    this.element.hidden = true;
  }

  draw(team) {
    this.element.hidden = !team.teammates.length;
    this.title.replaceChildren(data(team.title));
    this.list.replaceChildren(...team.teammates.map(row));
    this.atWork = team.at_work;
    all().forEach((p) => this.take(p));
    this.rest();
    this.drawn();
  }

  /** Cards of a team that has ended are folded once, so that the last word above them is seen. */
  rest() {
    const waits = all().some((p) => this.cards.has(p.id) && p.state === "proposed");
    const rests = !this.atWork && !waits;
    this.fold.hidden = !this.cards.size;
    this.count.textContent = this.cards.size === 1 ? "1 card" : `${this.cards.size} cards`;
    if (rests === this.rests) return;
    if (rests && this.slot.contains(document.activeElement)) this.count.focus({ preventScroll: true });
    this.rests = rests;
    this.fold.open = !rests;
  }

  take(p) {
    if (!p.teammate || p.conversation_id !== this.conversation) return;
    if (this.cards.has(p.id)) {
      this.rest();
      return;
    }
    const card = new Card(p.id, { own: true });
    this.cards.set(p.id, card);
    this.slot.append(card.element);
    this.rest();
    this.drawn();
  }
}

function row(each) {
  const [sign, tone] = SIGNS[each.standing] ?? ["clock", "quiet"];
  const plan = each.plan ? `; ${each.plan}` : "";
  const said = each.about ? h("p", { class: "team-said", ...DATA }, shown(each.about)) : null;
  return h("li", {}, h("p", {}, h("span", { class: `state ${tone}` }, icon(sign), data(each.state)), " ",
    h("b", { ...DATA }, shown(each.name)), h("span", { class: "muted" }, " ", data(each.role), data(plan))), said);
}
