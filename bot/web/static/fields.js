// One argument of a tool as an input, made from the field that the server describes, read back as JSON.

import { h } from "./dom.js";

export const HIDDEN = "••••••";
const LONG = 80;

/**
 * An input for one field: `{element, control, read()}`; `read` raises an Error with words for the person.
 * `asked` is what the server says of it (bot/domain/forms.py): shape, options, multiline, secret.
 */
export function input(id, asked, value) {
  const described = `${id}-help ${id}-error`;
  const make = MAKERS[asked.shape] ?? MAKERS.data;
  return make({ asked, value, common: { id, "aria-describedby": described } });
}

const said = (option) => (typeof option === "string" ? option.replaceAll("_", " ") : JSON.stringify(option));

const MAKERS = {
  text({ asked, value, common }) {
    const text = value ?? "";
    const hidden = asked.secret || text === HIDDEN;
    const long = !hidden && (text.length > LONG || /[\n\r]/.test(text) || asked.multiline);
    const control = long
      ? h("textarea", { ...common, rows: Math.min(12, Math.max(3, text.split("\n").length + 1)), value: text })
      : h("input", { ...common, type: hidden ? "password" : "text", autocomplete: hidden ? "new-password" : "off", value: text });
    const help = hidden ? "Secret. Leave it as it is to keep it." : "";
    return { element: control, control, help, read: () => control.value };
  },
  date({ value, common }) {
    const control = h("input", { ...common, type: "date", value: value ?? "" });
    return { element: control, control, read: () => control.value };
  },
  user: (given) => MAKERS.text(given),
  integer: (given) => number(given, /^[+-]?\d+$/, "numeric", "Give a whole number."),
  number: (given) => number(given, /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i, "decimal", "Give a number."),
  flag({ value, common }) {
    const control = h("input", { ...common, type: "checkbox", class: "switch" });
    control.checked = value === true;
    return { element: h("span", { class: "flag" }, control, h("span", { "aria-hidden": "true" }, "Yes")), control, read: () => control.checked };
  },
  choice({ asked, value, common }) {
    const choices = asked.options;
    const control = h("select", common, choices.map((choice, at) => h("option", { value: String(at), translate: "no" }, said(choice))));
    control.value = String(Math.max(0, choices.findIndex((choice) => JSON.stringify(choice) === JSON.stringify(value))));
    return { element: control, control, read: () => choices[Number(control.value)] };
  },
  choices({ asked, value, common }) {
    const boxes = asked.options.map((choice) => {
      const box = h("input", { type: "checkbox", value: choice });
      box.checked = (value ?? []).includes(choice);
      return box;
    });
    const element = h("div", { ...common, role: "group", class: "choices", tabindex: -1 }, boxes.map((box) => h("label", { translate: "no" }, box, said(box.value))));
    return { element, control: element, group: true, read: () => boxes.filter((box) => box.checked).map((box) => box.value) };
  },
  lines({ value, common }) {
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
