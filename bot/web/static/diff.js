// What will change, field by field: old → new on one line where it fits, line by line where it does not.

import { DATA, data, h, icon, shown } from "./dom.js";

const SHORT = 64; // characters beyond which a value gets lines of its own

/** The list of changes of one proposal. */
export function changes(fields, all = fields) {
  // where everything goes, the old value of each tells it
  const allGone = all.length > 1 && all.every((each) => each.new_value === null);
  return h("dl", { class: "changes" }, fields.map((each) => h("div", { class: "change" }, change(each, allGone))));
}

function change({ field, old_value: before, new_value: after, diff }, allGone) {
  const short = [before, after].every((value) => value === null || (value.length <= SHORT && !/[\n\r]/.test(value)));
  return [h("dt", { ...DATA }, shown(field)), h("dd", {}, diff ? compared(diff) : short ? inline(before, after, allGone) : full(before, after))];
}

function inline(before, after, allGone) {
  if (before !== null && before === after) return h("span", { class: "values" }, data(after), h("span", { class: "muted" }, " (unchanged)"));
  const gone = value(before, "old", "old value");
  const come = value(after, "new", "new value");
  if (allGone) return h("span", { class: "values" }, gone);
  if (before === null) return h("span", { class: "values" }, come);
  return h("span", { class: "values" }, gone, h("span", { class: "arrow" }, icon("arrow"), h("span", { class: "hidden" }, "becomes")), come);
}

function value(text, kind, label) {
  const heard = h("span", { class: "hidden" }, `${label}: `);
  if (text === null) return h("span", { class: "nothing" }, heard, "removed");
  if (text === "") return h("span", { class: "nothing" }, heard, "empty text");
  return h(kind === "old" ? "del" : "ins", { class: `value ${kind}` }, heard, data(text));
}

/** Long values: what goes above what comes. */
function full(before, after) {
  const same = before === after;
  const each = (sign, text) => (text ?? "").replace(/(\r\n|\n|\r)$/, "").split(/\r\n|\n|\r/).map((line) => row(sign, line));
  const rows = [same || before === null ? [] : each("-", before), after === null ? [] : each(same || before === null ? " " : "+", after)].flat();
  return boxed(rows, same ? "(unchanged)" : after === null ? "(removed)" : "");
}

/** The diff as the server made it: changed lines, and a few around them. */
function compared(diff) {
  const lines = diff.split("\n");
  const rows = lines.map((line) => (line.startsWith("…") ? h("div", { class: "line kept muted", ...DATA }, line) : row(line[0], line.slice(2))));
  const count = (sign) => lines.filter((line) => line[0] === sign).length;
  const told = [["-", "removed"], ["+", "added"]].filter(([sign]) => count(sign)).map(([sign, word]) => `${count(sign)} ${count(sign) === 1 ? "line" : "lines"} ${word}`);
  return boxed(rows, rows.length > 6 ? told.join(", ") : "");
}

function boxed(rows, told) {
  const box = h("div", { class: "lines", tabindex: 0, role: "group", "aria-label": "the change, line by line" }, rows);
  return h("div", { class: "block" }, box, h("div", { class: "block-foot" }, told ? h("p", { class: "help" }, told) : null, growing(box)));
}

function row(sign, text) {
  const said = { "+": "added: ", "-": "removed: ", " ": "" }[sign];
  const kind = { "+": "added", "-": "removed", " ": "kept" }[sign];
  const heard = said ? h("span", { class: "hidden" }, said) : null;
  return h("div", { class: `line ${kind}` }, h("span", { class: "sign", "aria-hidden": "true" }, sign), heard,
    h("span", { class: "text", ...DATA }, shown(text)));
}

/** A button that opens a box which has more than it shows. */
export function growing(box) {
  const button = h("button", { type: "button", class: "link-button grow", hidden: true, "aria-expanded": "false" }, "Show all of it");
  button.addEventListener("click", () => {
    const open = box.classList.toggle("open");
    button.textContent = open ? "Show less" : "Show all of it";
    button.setAttribute("aria-expanded", String(open));
  });
  new ResizeObserver(() => {
    button.hidden = !box.classList.contains("open") && box.scrollHeight <= box.clientHeight + 2;
  }).observe(box);
  return button;
}
