// What was typed and not sent yet. It is kept in this tab for the person who typed it: across signing in again and
// loading again, until it is sent or they sign out.

import { recall, remember } from "./dom.js";

const KEY = "nod.typed";
const WHOSE = "nod.typed.by";

let typed = {};

/** The person is known now, by their accounts: what another typed is forgotten. Gives whether it is the same person. */
export function begin(account, accounts) {
  const by = recall(WHOSE);
  const same = by === account || accounts.includes(by);
  typed = same ? parsed(recall(KEY)) : {};
  remember(WHOSE, account);
  store();
  return same;
}

const parsed = (text) => {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
};

function store() {
  remember(KEY, Object.keys(typed).length ? JSON.stringify(typed) : "");
}

/** What is kept under a name; undefined where that is nothing. */
export const kept = (name) => (Object.hasOwn(typed, name) ? typed[name] : undefined);

export function keep(name, value) {
  if (value) typed[name] = value;
  else delete typed[name];
  store();
}

/** Forget all of it: the person signed out. */
export function forget() {
  typed = {};
  remember(KEY, "");
  remember(WHOSE, "");
}

/** Let a field begin with what was typed in it, and keep what is typed. */
export function keepField(field, name) {
  const before = kept(name);
  if (before !== undefined) field.value = before;
  field.addEventListener("input", () => keep(name, field.value));
}

const fieldsOf = (form) => [...form.querySelectorAll("input:not([type=password]), textarea, select")];

/** What a form's fields hold; a secret is not kept. */
export const valuesOf = (form) => fieldsOf(form).map((field) => (["checkbox", "radio"].includes(field.type) ? field.checked : field.value));

/** Put into a form what `valuesOf` gave, where it has the same fields. */
export function fill(form, values) {
  const fields = fieldsOf(form);
  if (values.length !== fields.length) return;
  fields.forEach((field, at) => {
    if (typeof values[at] === "boolean") field.checked = values[at];
    else field.value = values[at];
  });
}
