// What will change, field by field: old → new on one line where it fits, line by line where it does not.

import { h, icon, shown } from "./dom.js";

const SHORT = 64; // characters beyond which a value gets lines of its own
const MOST_LINES = 1200; // beyond that, comparing costs more than it tells
const CONTEXT = 3;

/** The list of changes of one proposal. */
export function changes(fields, all = fields) {
  // where everything comes, or everything goes, one value of each tells it
  const one = (name) => all.length > 1 && all.every((each) => each[name] === null);
  const fresh = one("old_value") ? "come" : one("new_value") ? "gone" : "";
  const patches = fields.filter(isPatch);
  const rest = fields.filter((each) => !isPatch(each));
  // where the texts themselves are compared, a patch would say the same again
  const folded = rest.some((each) => /[\n\r]/.test(`${each.old_value}${each.new_value}`));
  return h("dl", { class: "changes" },
    rest.map((each) => h("div", { class: "change" }, change(each, fresh))),
    patches.map((each) => h("div", { class: "change" }, h("dt", { dir: "auto" }, shown(each.field)), h("dd", {}, patch(each.new_value, folded)))));
}

const isPatch = ({ old_value: before, new_value: after }) => before === null && /^--- .*\n\+\+\+ .*\n@@ /.test(after ?? "");

function patch(text, folded) {
  const [from, to, ...hunks] = split(text, true);
  const marked = (line) => (/^[ +-]/.test(line) ? row(line[0], line.slice(1)) : row(" ", line));
  const rows = [row(" ", from), row(" ", to), ...hunks.map(marked)];
  return h("details", { class: "fold-out", open: !folded }, h("summary", {}, "As a patch"), h("div", { class: "lines open" }, rows));
}

function change({ field, old_value: before, new_value: after }, fresh) {
  const short = [before, after].every((value) => value === null || (value.length <= SHORT && !/[\n\r]/.test(value)));
  return [h("dt", { dir: "auto" }, shown(field)), h("dd", {}, short ? inline(before, after, fresh) : lines(before, after))];
}

function inline(before, after, fresh) {
  if (before !== null && before === after) return h("span", { class: "values", dir: "auto" }, shown(after), h("span", { class: "muted" }, " (unchanged)"));
  const gone = value(before, "old", "old value");
  const come = value(after, "new", "new value");
  if (fresh) return h("span", { class: "values" }, fresh === "come" ? come : gone);
  return h("span", { class: "values" }, gone, h("span", { class: "arrow" }, icon("arrow"), h("span", { class: "hidden" }, "becomes")), come);
}

function value(text, kind, label) {
  const heard = h("span", { class: "hidden" }, `${label}: `);
  if (text === null) return h("span", { class: "nothing" }, heard, "nothing");
  if (text === "") return h("span", { class: "nothing" }, heard, "empty text");
  return h(kind === "old" ? "del" : "ins", { class: `value ${kind}`, dir: "auto" }, heard, shown(text));
}

function lines(before, after) {
  // the end of a last line is no line, except where only one of the two texts has it
  const ended = [before, after].every((text) => !text || /[\n\r]$/.test(text));
  const compared = compare(split(before, ended), split(after, ended));
  const rows = compared.map(([sign, text]) => row(sign, text));
  const box = h("div", { class: "lines", tabindex: 0, role: "group", "aria-label": "the change, line by line" });
  box.append(...folded(compared, rows));
  const count = (sign) => compared.filter(([each]) => each === sign).length;
  const told = compared.length > 6 ? h("p", { class: "help" }, `${count("-")} lines removed, ${count("+")} added`) : null;
  return h("div", { class: "block" }, box, h("div", { class: "block-foot" }, told, growing(box)));
}

function row(sign, text) {
  const said = { "+": "added: ", "-": "removed: ", " ": "" }[sign];
  const kind = { "+": "added", "-": "removed", " ": "kept" }[sign];
  const heard = said ? h("span", { class: "hidden" }, said) : null;
  return h("div", { class: `line ${kind}` }, h("span", { class: "sign", "aria-hidden": "true" }, sign), heard,
    h("span", { class: "text", dir: "auto" }, shown(text)));
}

/** Long stretches that stay the same wait behind a button. */
function folded(compared, rows) {
  const made = [];
  for (let at = 0; at < rows.length; ) {
    let end = at;
    while (end < rows.length && compared[end][0] === " ") end += 1;
    const from = at === 0 ? 0 : at + CONTEXT;
    const to = end === rows.length ? end : end - CONTEXT;
    if (to - from > CONTEXT) {
      const hidden = rows.slice(from, to);
      const more = h("button", { type: "button", class: "fold", onclick: () => more.replaceWith(...hidden) }, `${hidden.length} lines stay the same`);
      made.push(...rows.slice(at, from), more, ...rows.slice(to, end));
    } else made.push(...rows.slice(at, end));
    at = end;
    for (; at < rows.length && compared[at][0] !== " "; at += 1) made.push(rows[at]);
  }
  return made;
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

function split(text, ended) {
  if (text === null || text === "") return [];
  const cut = text.split(/\r\n|\n|\r/);
  return ended ? cut.slice(0, -1) : cut;
}

/** Lines as `[sign, text]`, by their longest common subsequence. */
export function compare(before, after) {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < Math.min(before.length, after.length) - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const a = before.slice(head, before.length - tail);
  const b = after.slice(head, after.length - tail);
  const same = (text) => [" ", text];
  const middle = Math.max(a.length, b.length) > MOST_LINES
    ? [...a.map((text) => ["-", text]), ...b.map((text) => ["+", text])]
    : walk(a, b);
  return [...before.slice(0, head).map(same), ...middle, ...before.slice(before.length - tail).map(same)];
}

function walk(a, b) {
  const width = b.length + 1;
  const length = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      length[i * width + j] = a[i] === b[j]
        ? length[(i + 1) * width + j + 1] + 1
        : Math.max(length[(i + 1) * width + j], length[i * width + j + 1]);
    }
  }
  const made = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      made.push([" ", a[i]]);
      i += 1;
      j += 1;
    } else if (i < a.length && (j === b.length || length[(i + 1) * width + j] >= length[i * width + j + 1])) {
      made.push(["-", a[i]]);
      i += 1;
    } else {
      made.push(["+", b[j]]);
      j += 1;
    }
  }
  return made;
}
