// The small forms that go with a decision: why not, and what may run without asking from now on.

import { DATA, h, shown } from "./dom.js";
import { sendOnEnter } from "./keys.js";

const LASTING = {
  conversation: "as long as this conversation",
  "1h": "one hour",
  "8h": "eight hours",
  "24h": "one day",
};
let made = 0;

function form(label, fields, submit, cancel, no = "Cancel") {
  return h("form", { class: "card-form", "aria-label": label }, fields,
    h("div", { class: "buttons" }, submit, h("button", { type: "button", class: "button", data: { part: "no" }, onclick: cancel }, no)));
}

/** Asks once more before what can't be undone, and names it: "Delete issue #5?", Delete or Keep. So do Undo and Retry. */
export function sureForm({ label, sure }, { send, cancel }) {
  const submit = h("button", { type: "submit", class: `button primary ${label.startsWith("Undo") ? "" : "danger"}` }, sure.yes);
  const element = form(label, [h("p", { class: "label", ...DATA }, shown(sure.question)), h("p", { class: "help", ...DATA }, shown(sure.more))],
    submit, cancel, sure.no);
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    send({});
  });
  return { element, submit, focus: () => element.querySelector("[data-part=no]").focus() };
}

/** Asks for the words that go with a press, as its button says; `send(body)` or `cancel()`. */
export function wordsForm({ label: title, needs, question, hint }, { send, cancel }) {
  const needed = needs === "words";
  const label = `${question}${needed ? "" : " (optional)"} ${hint}`;
  const more = needed ? { required: true } : {};
  const id = `reason-${(made += 1)}`;
  const field = h("textarea", { rows: 2, maxlength: 1000, id, enterkeyhint: "send", ...more });
  const submit = h("button", { type: "submit", class: "button primary" }, title);
  const element = form(title, [h("label", { class: "label", for: id }, label), field], submit, cancel);
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    send(field.value.trim() ? { reason: field.value.trim() } : {});
  });
  sendOnEnter(field, element);
  return { element, submit, focus: () => field.focus() };
}

/** Asks how far and how long calls like this one may run without asking, narrowest first. */
export function similarForm({ ladder, reaches, lasting }, { send, cancel }) {
  const group = `rung-${(made += 1)}`;
  const choices = ladder.map(({ rung, words }, at) => {
    const radio = h("input", { type: "radio", name: group, value: rung });
    radio.checked = at === 0;
    return h("label", {}, radio, h("span", { ...DATA }, shown(words)));
  });
  const time = h("select", { id: `${group}-time` }, lasting.map((each) => h("option", { value: each }, LASTING[each] ?? each)));
  const whose = h("select", { id: `${group}-whose` }, reaches.map(({ reach, words }) => h("option", { value: reach, translate: "no" }, shown(words))));
  const submit = h("button", { type: "submit", class: "button primary" }, "Approve and allow");
  const element = form("Approve similar", [
    h("fieldset", { class: "rungs" }, h("legend", { class: "label" }, "What may run without asking"), choices),
    h("label", { class: "label", for: whose.id }, "Whose requests, and where"), whose,
    h("label", { class: "label", for: time.id }, "For how long"), time,
    h("p", { class: "help" }, "This approves the change now. Matching calls will then run without asking until this expires or someone revokes it."),
  ], submit, cancel);
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    send({ rung: element.querySelector("input:checked").value, reach: whose.value, lasting: time.value });
  });
  return { element, submit, focus: () => element.querySelector("input").focus() };
}

/** Says what approving a plan with its steps allows. */
export function stepsForm(plan, { send, cancel }) {
  const names = [...new Set((plan.tool_arguments.steps ?? []).flatMap((step) => step.tools ?? []))];
  const submit = h("button", { type: "submit", class: "button primary" }, "Approve and allow");
  const words = names.length ? `Until it ends, ${plan.teammate} may then use these without asking:` : "Its steps name no tools.";
  const element = form("Approve plan and its steps", [
    h("p", { ...DATA }, shown(words)),
    h("ul", {}, names.map((name) => h("li", {}, h("code", { ...DATA }, shown(name))))),
    h("p", { class: "help" }, "What cannot be undone still asks."),
  ], submit, cancel);
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    send({});
  });
  return { element, submit, focus: () => submit.focus() };
}
