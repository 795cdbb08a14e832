// Schedules: what comes back by itself, in whose name, and pausing, running or deleting it.

import { get, post, remove } from "./api.js";
import { data, h } from "./dom.js";
import { nothing, Page } from "./pages.js";
import { ago, expiry } from "./times.js";

const STATES = { paused: "Paused", done: "Done", ended: "Ended" };

export class Schedules extends Page {
  load() {
    return get("api/schedules");
  }

  draw({ everyone, schedules }) {
    if (!schedules.length) {
      this.body.replaceChildren(nothing("Nothing is scheduled", "Ask in a conversation, such as “every weekday at 9 list what is overdue”."));
      return;
    }
    const whose = everyone ? "Everyone's schedules are listed." : "These are yours.";
    this.body.replaceChildren(
      h("p", { class: "muted" }, "Each run is a turn of its conversation, in the name of who asked for it. What it changes asks as always. ", whose),
      ...schedules.map((each) => this.schedule(each)));
  }

  schedule(each) {
    const { id, task, words, person, state, due_at: due, next: at, last_at: last, runs, why } = each;
    const next = state === "active" && due ? [words.startsWith(at) ? "Next " : `Next ${at}, `, expiry(due)] : [];
    const ended = why ? [data(why)] : [];
    const when = [data(words[0].toUpperCase() + words.slice(1))];
    const ran = last ? ["Ran ", ago(last), `, ${runs} ${runs === 1 ? "time" : "times"} in all`] : [];
    const facts = [when, ended, next, ran, ["For ", data(person)]].filter((fact) => fact.length);
    const buttons = h("div", { class: "buttons" });
    this.offer(buttons, each);
    return h("article", { class: "card ruling", "aria-label": `Schedule ${id.slice(0, 8)}` },
      h("div", {}, h("p", {}, STATES[state] ? h("span", { class: "state quiet" }, STATES[state]) : null, STATES[state] ? " " : "", data(task)),
        h("p", { class: "help" }, facts.flatMap((fact, at) => [at ? " · " : "", ...fact]), " · ",
          h("a", { href: `#/inbox/${encodeURIComponent(id)}` }, "The decision"))),
      buttons);
  }

  offer(place, each) {
    const { id, state } = each;
    const button = (text, work) => h("button", { type: "button", class: "button small", "aria-label": `${text} schedule ${id.slice(0, 8)}`, onclick: work }, text);
    const change = (text, what) => button(text, () => this.doing(() => post(`api/schedules/${id}`, { do: what })));
    place.replaceChildren(...(state === "paused" ? [change("Resume", "resume")] : [change("Run now", "run"), state === "active" ? change("Pause", "pause") : null].filter(Boolean)),
      button("Delete", () => this.confirm(place, each)));
  }

  confirm(place, each) {
    const sure = h("button", { type: "button", class: "button small danger", onclick: () => this.doing(() => remove(`api/schedules/${each.id}`)) }, "Delete");
    place.replaceChildren(h("p", { class: "help" }, "It can't be undone."), sure, h("button", { type: "button", class: "button small", onclick: () => this.offer(place, each) }, "Keep"));
    sure.focus();
  }
}
