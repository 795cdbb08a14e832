// The team of a conversation: how each teammate stands, and the cards of what they ask for.

import { Card } from "./card.js";
import { h, icon, shown } from "./dom.js";
import { all, listen } from "./proposals.js";

const SIGNS = { working: ["clock", "waiting"], done: ["check", "good"], failed: ["warning", "bad"], stopped: ["minus", "quiet"] };

export class Team {
  /** `drawn()` is called when it grew. */
  constructor(element, drawn) {
    Object.assign(this, { element, drawn, conversation: null, cards: new Map() });
    this.list = h("ul", { class: "team-list" });
    this.title = h("h2", { class: "team-title" });
    this.slot = h("div", { class: "cards" });
    element.replaceChildren(this.title, this.list, this.slot);
    listen((p) => this.take(p));
    this.reset(null);
  }

  reset(conversation) {
    this.conversation = conversation;
    this.cards.forEach((card) => card.stop());
    this.cards.clear();
    this.slot.replaceChildren();
    this.element.hidden = true;
  }

  draw(team) {
    this.element.hidden = !team.teammates.length;
    this.title.replaceChildren(shown(team.title));
    this.list.replaceChildren(...team.teammates.map(row));
    all().forEach((p) => this.take(p));
    this.drawn();
  }

  take(p) {
    if (!p.teammate || p.conversation_id !== this.conversation || this.cards.has(p.id)) return;
    const card = new Card(p.id, { own: true });
    this.cards.set(p.id, card);
    this.slot.append(card.element);
    this.drawn();
  }
}

function row(each) {
  const [sign, tone] = SIGNS[each.standing] ?? ["clock", "quiet"];
  const plan = each.plan ? `; ${each.plan}` : "";
  const said = each.about ? h("p", { class: "team-said", dir: "auto" }, shown(each.about)) : null;
  return h("li", {}, h("p", {}, h("span", { class: `state ${tone}` }, icon(sign), shown(each.state)), " ",
    h("b", {}, shown(each.name)), h("span", { class: "muted" }, ` ${each.role}`, shown(plan))), said);
}
