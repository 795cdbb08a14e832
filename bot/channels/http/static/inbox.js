// Everything that waits for a decision, across channels. What is decided stays in its place until the next visit,
// so that no card moves under a finger.

import { Card } from "./card.js";
import { h } from "./dom.js";
import { find, listen, waiting } from "./proposals.js";

export class Inbox {
  constructor(element) {
    this.element = element;
    this.cards = new Map();
    this.mine = h("div", { class: "cards" });
    this.others = h("div", { class: "cards" });
    this.mineTitle = h("h2", { class: "section" }, "Waiting for you");
    this.othersTitle = h("h2", { class: "section" }, "Waiting for someone else");
    this.nothing = h("div", { class: "nothing-here" }, h("h2", {}, "You're all caught up"),
      h("p", { class: "muted" }, "When Nod wants to change something that you may decide, it shows up here, whichever channel it was asked in."));
    element.append(this.nothing, this.mineTitle, this.mine, this.othersTitle, this.others);
    listen((p) => this.shown && p.state === "proposed" && this.add(p));
  }

  show() {
    this.hide();
    this.shown = true;
    waiting().sort((a, b) => (a.created_at < b.created_at ? -1 : 1)).forEach((p) => this.add(p));
    this.arrange();
  }

  hide() {
    this.shown = false;
    this.cards.forEach((card) => card.stop());
    this.cards.clear();
    this.mine.replaceChildren();
    this.others.replaceChildren();
  }

  add(p) {
    if (!this.cards.has(p.id)) {
      const card = new Card(p.id, { origin: true });
      this.cards.set(p.id, card);
      (find(p.id).may_decide ? this.mine : this.others).append(card.element);
    }
    this.arrange();
  }

  arrange() {
    this.nothing.hidden = this.mine.childElementCount > 0;
    this.mineTitle.hidden = !this.nothing.hidden;
    this.othersTitle.hidden = this.others.childElementCount === 0;
  }
}
