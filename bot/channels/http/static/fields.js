// One argument of a tool as an input: made from its JSON schema, read back as JSON.

import { h } from "./dom.js";

export const HIDDEN = "••••••";
const LONG = 80;

/** Follow local references and take "or null" apart. */
export function resolve(schema, root, depth = 0) {
  let flat = { ...schema };
  let nullable = false;
  if (depth > 8) return { flat, nullable };
  const take = (inner, but) => {
    const found = resolve(inner ?? {}, root, depth + 1);
    const beside = Object.fromEntries(Object.entries(flat).filter(([key]) => key !== but));
    flat = { ...found.flat, ...beside };
    nullable ||= found.nullable;
  };
  if (typeof flat.$ref === "string" && flat.$ref.startsWith("#/")) {
    take(flat.$ref.slice(2).split("/").reduce((node, step) => node?.[step], root), "$ref");
  }
  for (const word of ["anyOf", "oneOf", "allOf"]) {
    if (!Array.isArray(flat[word])) continue;
    const rest = flat[word].filter((part) => part?.type !== "null");
    if (word !== "allOf" && rest.length < flat[word].length) nullable = true;
    if (rest.length === 1) take(rest[0], word);
  }
  if (Array.isArray(flat.type)) {
    nullable ||= flat.type.includes("null");
    const kinds = flat.type.filter((kind) => kind !== "null");
    flat.type = kinds.length === 1 ? kinds[0] : kinds;
  }
  if (Array.isArray(flat.enum) && flat.enum.includes(null)) {
    flat.enum = flat.enum.filter((choice) => choice !== null);
    nullable = true;
  }
  return { flat, nullable };
}

function kindOf(schema, value, root) {
  if ("const" in schema) return "choice";
  if (Array.isArray(schema.enum) && schema.enum.length) return "choice";
  const strings = (list) => Array.isArray(list) && list.every((item) => typeof item === "string");
  const guess = { string: "string", boolean: "boolean", number: Number.isInteger(value) ? "integer" : "number" };
  switch (schema.type ?? guess[typeof value]) {
    case "string": return value === undefined || value === null || typeof value === "string" ? "text" : "data";
    case "integer": return "integer";
    case "number": return "number";
    case "boolean": return "flag";
    case "array": {
      const items = resolve(schema.items ?? {}, root).flat;
      if (value !== undefined && value !== null && !strings(value)) return "data";
      if (Array.isArray(items.enum) && items.enum.every((item) => typeof item === "string")) return "choices";
      return items.type === "string" ? "list" : "data";
    }
    default: return "data";
  }
}

/** An input for one argument: `{element, control, read()}`; `read` raises an Error with words for the person. */
export function input(id, schema, value, root) {
  const kind = kindOf(schema, value, root);
  const described = `${id}-help ${id}-error`;
  return MAKERS[kind]({ id, schema, value, root, common: { id, "aria-describedby": described } });
}

const secret = (schema) => schema.writeOnly === true || schema.format === "password";

const MAKERS = {
  text({ schema, value, common }) {
    const text = value ?? "";
    const hidden = secret(schema) || text === HIDDEN;
    const long = !hidden && (text.length > LONG || /[\n\r]/.test(text) || schema.format === "multiline" || (schema.maxLength ?? 0) > 400);
    const control = long
      ? h("textarea", { ...common, rows: Math.min(12, Math.max(3, text.split("\n").length + 1)), value: text })
      : h("input", { ...common, type: hidden ? "password" : "text", autocomplete: hidden ? "new-password" : "off", value: text });
    const help = hidden ? "Secret. Left as it is, it stays." : "";
    return { element: control, control, help, read: () => control.value };
  },
  integer: (asked) => number(asked, /^[+-]?\d+$/, "numeric", "Give a whole number."),
  number: (asked) => number(asked, /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i, "decimal", "Give a number."),
  flag({ value, common }) {
    const control = h("input", { ...common, type: "checkbox", class: "switch" });
    control.checked = value === true;
    return { element: h("span", { class: "flag" }, control, h("span", { "aria-hidden": "true" }, "Yes")), control, read: () => control.checked };
  },
  choice({ schema, value, common }) {
    const choices = "const" in schema ? [schema.const] : schema.enum;
    const texts = choices.map((choice) => (typeof choice === "string" ? choice : JSON.stringify(choice)));
    const control = h("select", common, texts.map((text, at) => h("option", { value: String(at) }, text)));
    control.value = String(Math.max(0, choices.findIndex((choice) => JSON.stringify(choice) === JSON.stringify(value))));
    return { element: control, control, read: () => choices[Number(control.value)] };
  },
  choices({ schema, value, root, common }) {
    const boxes = resolve(schema.items, root).flat.enum.map((choice) => {
      const box = h("input", { type: "checkbox", value: choice });
      box.checked = (value ?? []).includes(choice);
      return box;
    });
    const element = h("div", { ...common, role: "group", class: "choices", tabindex: -1 }, boxes.map((box) => h("label", {}, box, box.value)));
    return { element, control: element, group: true, read: () => boxes.filter((box) => box.checked).map((box) => box.value) };
  },
  list({ value, common }) {
    const rows = h("div", { class: "list-rows" });
    const entries = () => [...rows.querySelectorAll("input, textarea")];
    const add = (text) => {
      const control = /[\n\r]/.test(text)
        ? h("textarea", { rows: 3, value: text })
        : h("input", { type: "text", autocomplete: "off", value: text });
      control.setAttribute("aria-label", `Entry ${entries().length + 1}`);
      const remove = () => {
        row.remove();
        more.focus();
      };
      const row = h("div", { class: "list-row" }, control, h("button", { type: "button", class: "button small", "aria-label": "Remove this entry", onclick: remove }, "Remove"));
      rows.append(row);
      return control;
    };
    (value ?? []).forEach(add);
    const more = h("button", { type: "button", class: "button small", onclick: () => add("").focus() }, "Add an entry");
    const element = h("div", { ...common, role: "group", class: "list", tabindex: -1 }, rows, more);
    return { element, control: element, group: true, read: () => entries().map((entry) => entry.value) };
  },
  data({ value, common }) {
    const text = value === undefined ? "" : JSON.stringify(value, null, 2);
    const control = h("textarea", { ...common, class: "data", spellcheck: "false", rows: Math.min(14, text.split("\n").length + 1), value: text });
    const read = () => {
      try {
        return JSON.parse(control.value);
      } catch {
        throw new Error("This is not valid JSON.");
      }
    };
    return { element: control, control, help: "Written as JSON.", read };
  },
};

function number({ value, common }, pattern, mode, fault) {
  const control = h("input", { ...common, type: "text", inputmode: mode, autocomplete: "off", class: "number", value: value ?? "" });
  const read = () => {
    const text = control.value.trim();
    const given = Number(text);
    if (!pattern.test(text) || !Number.isFinite(given)) throw new Error(fault);
    if (Number.isInteger(given) && !Number.isSafeInteger(given)) throw new Error("This number is too large to be edited here.");
    return given;
  };
  return { element: control, control, read };
}
