// The edit form of a proposal, made from the fields that the server describes. What is not touched is sent back
// as it came; a default that no one touched stays a default.

import { h } from "./dom.js";
import { input } from "./fields.js";
import { fill, valuesOf } from "./typed.js";

let made = 0;

/** JSON in the browser rounds large whole numbers; such arguments must not go back changed. */
export function exact(value) {
  if (typeof value === "number") return !Number.isInteger(value) || Number.isSafeInteger(value);
  if (value && typeof value === "object") return Object.values(value).every(exact);
  return true;
}

export class EditForm {
  /** `save(arguments)` and, where one may, `approve(arguments)` are called with all arguments; `cancel()` when the person leaves. */
  constructor(proposal, { save, approve, cancel }) {
    const question = proposal.kind === "question";
    this.given = proposal.tool_arguments ?? {};
    this.fields = new Map();
    this.prefix = `edit-${(made += 1)}`;
    this.rows = h("div", { class: "form-rows" });
    this.more = h("div", { class: "form-more" });
    this.fault = h("p", { class: "fault", role: "alert", hidden: true });
    const approves = approve && !question;
    this.submit = h("button", { type: "submit", class: "button primary" }, question ? "Save" : approves ? "Approve as edited" : "Ask again");
    const again = approves ? h("button", { type: "button", class: "button", onclick: () => this.give(save) }, "Ask again") : null;
    this.element = h(
      "form",
      { class: "card-form", "aria-label": `Edit: ${proposal.description}`, novalidate: true },
      this.rows,
      this.more,
      this.fault,
      h("div", { class: "buttons" }, this.submit, again, h("button", { type: "button", class: "button", onclick: cancel }, "Cancel")),
      h("p", { class: "hint" }, question ? "Nothing is sent yet." : approves ? "Ask again shows the card with these values, and approves nothing." : "The card asks again with these values. Nothing is approved yet."),
    );
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      this.give(approves ? approve : save);
    });
    const fields = proposal.fields ?? [];
    for (const asked of fields) this.take(asked);
    if (!fields.length) this.rows.append(h("p", {}, "This tool takes no arguments."));
    this.offer();
  }

  give(send) {
    const values = this.read();
    if (values) send(values);
  }

  take(asked) {
    const optional = asked.nullable || !asked.required;
    const field = { name: asked.name, asked, optional, row: null };
    this.fields.set(asked.name, field);
    const held = asked.value !== undefined && asked.value !== null;
    if (held || !optional) this.include(field, asked.value);
  }

  include(field, value) {
    const { asked } = field;
    const id = `${this.prefix}-${field.name.replace(/\W/g, "_")}`;
    const made = input(id, asked, value);
    const help = [asked.description, made.help, asked.default ? "This is the default." : ""].filter(Boolean).join(" ");
    const fault = h("p", { class: "fault", id: `${id}-error`, hidden: true });
    const label = made.group
      ? h("span", { class: "label", translate: "no", id: `${id}-label` }, asked.label)
      : h("label", { class: "label", translate: "no", for: id }, asked.label);
    if (made.group) made.element.setAttribute("aria-labelledby", `${id}-label`);
    const remove = field.optional && !asked.default
      ? h("button", { type: "button", class: "link-button", "aria-label": `Leave ${asked.label} out`, onclick: () => this.exclude(field) }, "Leave out")
      : null;
    field.row = h("div", { class: "form-row" }, h("div", { class: "form-label" }, label, remove), made.element,
      h("p", { class: "help", translate: "no", id: `${id}-help` }, help), fault);
    Object.assign(field, { read: made.read, control: made.control, fault });
    field.before = this.snapshot(field);
    field.added = value === undefined || value === null;
    const later = [...this.fields.values()];
    const next = later.slice(later.indexOf(field) + 1).find((other) => other.row);
    this.rows.insertBefore(field.row, next?.row ?? null);
  }

  exclude(field) {
    field.row.remove();
    field.row = null;
    this.offer();
    this.more.querySelector("button")?.focus();
  }

  /** Buttons for the optional arguments that are not in the form. */
  offer() {
    const left = [...this.fields.values()].filter((field) => !field.row);
    const add = (field) => {
      this.include(field, undefined);
      this.offer();
      field.control.focus();
    };
    this.more.replaceChildren(
      ...(left.length ? [h("span", { class: "help" }, "Also set:")] : []),
      ...left.map((field) => h("button", { type: "button", class: "button small", translate: "no", title: field.asked.description, onclick: () => add(field) }, field.asked.label)),
    );
  }

  snapshot(field) {
    try {
      return JSON.stringify(field.read());
    } catch {
      return null;
    }
  }

  /** All arguments, or null after showing what is wrong with them. */
  read() {
    // more arguments than the form has fields for stay as they came
    const values = Object.fromEntries(Object.entries(this.given).filter(([name]) => !this.fields.has(name)));
    const faults = {};
    for (const [name, field] of this.fields) {
      if (!field.row) {
        // null as it came means "not given"; a value that was left out is gone
        if (this.given[name] === null) values[name] = null;
        continue;
      }
      try {
        const value = field.read();
        const touched = field.added || JSON.stringify(value) !== field.before;
        if (touched || !field.asked.default) values[name] = touched ? value : this.given[name];
      } catch (error) {
        faults[name] = error.message;
      }
    }
    this.show(faults);
    return Object.keys(faults).length ? null : values;
  }

  /** Show faults by name; `words` for what belongs to no field. */
  show(faults, words = "") {
    const left = [];
    const byName = {};
    for (const [path, text] of Object.entries(faults)) {
      const name = this.fields.get(path)?.row ? path : path.replace(/^arguments\./, "").split(/[.[]/)[0];
      if (this.fields.get(name)?.row) (byName[name] ??= []).push(text);
      else left.push(`${path}: ${text}`);
    }
    let first = null;
    for (const [name, field] of this.fields) {
      if (!field.row) continue;
      const text = (byName[name] ?? []).join(" ");
      field.fault.textContent = text;
      field.fault.hidden = !text;
      field.control.setAttribute("aria-invalid", String(Boolean(text)));
      if (text) first ??= field.control;
    }
    const rest = left.join(" ") || (first ? "" : words);
    this.fault.textContent = rest;
    this.fault.hidden = !rest;
    first?.focus();
  }

  /** What is written in the fields, by name; a secret is not among it. */
  written() {
    return Object.fromEntries([...this.fields].filter(([, field]) => field.row).map(([name, field]) => [name, valuesOf(field.row)]));
  }

  /** Put back what `written` gave. */
  rewrite(values) {
    for (const [name, written] of Object.entries(values)) {
      const field = this.fields.get(name);
      if (!field) continue;
      if (!field.row) this.include(field, undefined);
      const lists = field.row.querySelector(".list-rows");
      while (lists && lists.childElementCount < written.length) lists.nextElementSibling.click();
      fill(field.row, written);
    }
    this.offer();
  }

  focus() {
    (this.rows.querySelector("input, textarea, select") ?? this.submit).focus();
  }
}
