// What Nod remembers: of the person who looks, of chats, of teams. Each fact can be edited and forgotten.

import { get, patch, remove } from "./api.js";
import { DATA, data, h, shown } from "./dom.js";
import { nothing, Page } from "./pages.js";
import { ago } from "./times.js";
import { keep, keepField, kept } from "./typed.js";

const LONGEST = 500;

export class Memory extends Page {
  head() {
    return [h("p", { class: "muted" }, "What people approved Nod to remember. Only you can see your private facts. To add a fact, ask Nod to remember it.")];
  }

  load() {
    return get("api/memory");
  }

  draw({ facts }) {
    if (!facts.length) {
      this.body.replaceChildren(nothing("Nothing is remembered", "Ask Nod to remember something. You approve it on a card first."));
      return;
    }
    const save = () => this.save("api/memory", "memory.json");
    const groups = new Map();
    for (const each of facts) groups.set(each.whose, [...(groups.get(each.whose) ?? []), each]);
    this.body.replaceChildren(h("div", { class: "buttons" }, h("button", { type: "button", class: "button small", onclick: save }, "Export JSON")), ...[...groups].flatMap(([whose, found]) => [
      h("h2", { class: "section", ...DATA }, shown(`For ${whose}`)), ...found.map((each) => this.fact(each))]));
  }

  fact(each) {
    const { id, fact, about, asked_name: asked, said_at: at, until, oldest } = each;
    const facts = [[about === "person" ? "Said " : ["Said by ", data(asked), " "], ago(at)], until ? ["Until ", new Date(Date.parse(until) - 1000).toLocaleDateString("en", { day: "numeric", month: "short", year: "numeric" })] : null].filter(Boolean);
    const place = h("div", { class: "buttons" });
    const body = h("p", { ...DATA }, shown(fact));
    const card = h("article", { class: "card person", "aria-label": `Fact ${id}` }, body,
      h("p", { class: "help" }, facts.flatMap((part, index) => (index ? [" · ", part] : [part]))),
      oldest ? h("p", { class: "help" }, h("span", { class: "state waiting" }, "Forget first"), " There is little room left, and this is the oldest.") : null, place);
    this.offer(place, body, each);
    return card;
  }

  offer(place, body, each) {
    if (!each.may_change) return;
    const button = (words, onclick, more = "") => h("button", { type: "button", class: `button small ${more}`, "aria-label": `${words} fact ${each.id}`, onclick }, words);
    const name = `fact ${each.id}`;
    const change = async (fact) => {
      const answer = await patch(`api/memory/${each.id}`, { fact });
      keep(name, "");
      return answer;
    };
    const cancel = () => {
      keep(name, "");
      body.replaceChildren(shown(each.fact));
      this.offer(place, body, each);
      place.firstElementChild.focus();
    };
    const edit = () => {
      const field = h("textarea", { "aria-label": `Fact ${each.id}`, maxlength: LONGEST, rows: 3, class: "memory-words" });
      field.value = each.fact;
      keepField(field, name);
      body.replaceChildren(field);
      place.replaceChildren(button("Save", () => this.doing(() => change(field.value)), "primary"), button("Cancel", cancel));
      field.focus();
    };
    const forget = () => {
      const sure = button("Forget", () => this.doing(() => remove(`api/memory/${each.id}`)), "danger");
      place.replaceChildren(h("p", { class: "help" }, "It can't be restored."), sure, button("Keep", cancel));
      sure.focus();
    };
    place.replaceChildren(button("Edit", edit), button("Forget", forget));
    if (kept(name) !== undefined) edit();
  }
}
