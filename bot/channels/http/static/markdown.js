// A small, safe part of CommonMark as nodes: paragraphs, headings, quotes, lists, fences, emphasis, code, links.
// Everything else, markup included, stays the text it is.

import { h, link, safeAddress, shown } from "./dom.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?: +(.*)|)$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}>\s?(.*)$/;
const DEEPEST = 6;

/** Markdown text as a fragment. */
export function markdown(text) {
  const whole = document.createDocumentFragment();
  whole.append(...blocks(text.replace(/\r\n?/g, "\n").split("\n"), 0));
  return whole;
}

function blocks(lines, depth) {
  const made = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    let found;
    if (!line.trim()) at += 1;
    else if ((found = FENCE.exec(line))) {
      const code = [];
      const closing = new RegExp(`^ {0,3}\\${found[1][0]}{${found[1].length},}\\s*$`);
      for (at += 1; at < lines.length && !closing.test(lines[at]); at += 1) code.push(lines[at]);
      at += 1;
      made.push(h("pre", { tabindex: 0 }, h("code", {}, shown(code.join("\n")))));
    } else if ((found = HEADING.exec(line))) {
      made.push(h("p", { class: "heading", role: "heading", "aria-level": Math.min(found[1].length + 2, 6) }, inline(found[2])));
      at += 1;
    } else if (RULE.test(line)) {
      made.push(h("hr"));
      at += 1;
    } else if (QUOTE.test(line)) {
      const inside = [];
      for (; at < lines.length && QUOTE.test(lines[at]); at += 1) inside.push(QUOTE.exec(lines[at])[1]);
      made.push(h("blockquote", {}, depth < DEEPEST ? blocks(inside, depth + 1) : inside.join("\n")));
    } else if (ITEM.test(line)) {
      const end = listEnd(lines, at);
      made.push(list(lines.slice(at, end), depth));
      at = end;
    } else {
      const said = [];
      for (; at < lines.length && lines[at].trim() && !(said.length && starts(lines[at])); at += 1) said.push(lines[at]);
      made.push(h("p", {}, inline(said.map((each) => each.trimStart()).join("\n"))));
    }
  }
  return made;
}

const starts = (line) => FENCE.test(line) || HEADING.test(line) || QUOTE.test(line) || ITEM.test(line);

function listEnd(lines, from) {
  const [, margin, first] = ITEM.exec(lines[from]);
  const kind = (mark) => mark.at(-1);
  let at = from + 1;
  for (; at < lines.length; at += 1) {
    const blank = !lines[at].trim();
    const item = ITEM.exec(lines[at]);
    if (item && item[1].length <= margin.length + 1 && kind(item[2]) !== kind(first)) break;
    if (blank && !(at + 1 < lines.length && (ITEM.test(lines[at + 1]) || /^ {2,}\S/.test(lines[at + 1])))) break;
    if (!blank && !ITEM.test(lines[at]) && !/^ {2,}/.test(lines[at]) && !lines[at - 1].trim()) break;
    if (!blank && !ITEM.test(lines[at]) && starts(lines[at]) && !/^ {2,}/.test(lines[at])) break;
  }
  return at;
}

function list(lines, depth) {
  const first = ITEM.exec(lines[0]);
  const indent = first[1].length;
  const ordered = /\d/.test(first[2]);
  const items = [];
  for (const line of lines) {
    const found = ITEM.exec(line);
    if (found && found[1].length <= indent + 1) items.push([found[3] ?? ""]);
    else items.at(-1).push(line.slice(Math.min(line.search(/\S|$/), indent + 2)));
  }
  const start = ordered ? parseInt(first[2], 10) : 1;
  return h(
    ordered ? "ol" : "ul",
    { start: start === 1 ? undefined : start },
    items.map((item) => {
      const inside = depth < DEEPEST ? blocks(item, depth + 1) : [item.join("\n")];
      const tight = inside[0]?.tagName === "P" ? [...inside[0].childNodes, ...inside.slice(1)] : inside;
      return h("li", {}, tight);
    }),
  );
}

const ADDRESS = /^https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}*_]/i;

/** Emphasis, code and links of one run of text. One pass, left to right. */
function inline(text, depth = 0) {
  const made = document.createDocumentFragment();
  let plain = "";
  const flush = () => {
    if (plain) made.append(shown(plain));
    plain = "";
  };
  const add = (node, length) => {
    flush();
    made.append(node);
    at += length;
  };
  let at = 0;
  while (at < text.length) {
    const rest = text.slice(at, at + 5000);
    const here = text[at];
    let found = null;
    if (here === "\\" && /^\\[!-/:-@[-`{-~]/.test(rest)) {
      plain += text[at + 1];
      at += 2;
      continue;
    }
    if (here === "\n") {
      const hard = plain.endsWith("  ");
      plain = plain.trimEnd();
      if (hard || plain.endsWith("\\")) add(h("br"), 1);
      else {
        plain += "\n";
        at += 1;
      }
      continue;
    }
    if (here === "`" && (found = code(rest))) {
      add(h("code", {}, shown(found.text)), found.length);
      continue;
    }
    if (depth < DEEPEST && (here === "*" || here === "_") && (found = emphasis(text, at))) {
      add(h(found.tag, {}, inline(found.text, depth + 1)), found.length);
      continue;
    }
    if (depth < DEEPEST && here === "[" && (found = bracketed(rest))) {
      add(link(found.address, inline(found.text, DEEPEST)), found.length);
      continue;
    }
    if (depth !== DEEPEST && here === "<" && (found = /^<(https?:\/\/[^\s<>]+)>/i.exec(rest)) && safeAddress(found[1])) {
      add(link(safeAddress(found[1]), shown(found[1])), found[0].length);
      continue;
    }
    if (depth !== DEEPEST && (here === "h" || here === "H") && !/\w/.test(text[at - 1] ?? "")) {
      found = ADDRESS.exec(rest);
      if (found && safeAddress(found[0])) {
        add(link(safeAddress(found[0]), shown(found[0])), found[0].length);
        continue;
      }
    }
    plain += here;
    at += 1;
  }
  flush();
  return made;
}

function code(rest) {
  const fence = /^`+/.exec(rest)[0];
  let end = rest.indexOf(fence, fence.length);
  while (end !== -1 && (rest[end + fence.length] === "`" || rest[end - 1] === "`")) end = rest.indexOf(fence, end + 1);
  if (end === -1) return null;
  const inside = rest.slice(fence.length, end).replaceAll("\n", " ");
  const padded = /^ .*[^ ].* $|^ [^ ] $/.test(inside);
  return { text: padded ? inside.slice(1, -1) : inside, length: end + fence.length };
}

function emphasis(text, at) {
  const mark = text[at];
  const double = text[at + 1] === mark;
  const fence = double ? mark + mark : mark;
  const word = (character) => character !== undefined && /[\p{L}\p{N}]/u.test(character);
  if (mark === "_" && word(text[at - 1])) return null;
  if (/\s|^$/.test(text[at + fence.length] ?? "")) return null;
  const limit = Math.min(text.length, at + 5000);
  for (let end = text.indexOf(fence, at + fence.length); end !== -1 && end < limit; end = text.indexOf(fence, end + 1)) {
    const run = /^[*_]+/.exec(text.slice(end, end + 4))[0].length;
    if (/\s/.test(text[end - 1]) || text[end - 1] === "\\") continue;
    if (!double && text[end + 1] === mark && run !== 3) {
      end += 1;
      continue;
    }
    if (mark === "_" && word(text[end + fence.length])) continue;
    if (end === at + fence.length) return null;
    const close = double && run === 3 ? end + 1 : end;
    return { tag: double ? "strong" : "em", text: text.slice(at + fence.length, close), length: close + fence.length - at };
  }
  return null;
}

function bracketed(rest) {
  const found = /^\[((?:[^[\]\\\n]|\\.){1,500})\]\(\s*<?([^\s()<>]{1,2000}(?:\([^\s()<>]*\)[^\s()<>]*)*)>?(?:\s+"[^"\n]*")?\s*\)/.exec(rest);
  const address = found && safeAddress(found[2]);
  return address ? { text: found[1], address, length: found[0].length } : null;
}
