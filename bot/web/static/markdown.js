// Markdown as nodes. markdown-it reads it; what it found becomes elements here, one by one, and all else stays text:
// markup, images, entities and the definitions of references, so that nothing that was written is hidden.

import { h, link, safeAddress, shown } from "./dom.js";
import { highlight } from "./highlight.js";
import MarkdownIt from "./vendor/markdown-it/markdown-it.js";

const reader = new MarkdownIt({ html: false, linkify: true }).disable(["entity", "image", "reference"]);
reader.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
reader.validateLink = (address) => safeAddress(address) !== null;
reader.normalizeLink = (address) => address;
reader.normalizeLinkText = (text) => text;

const FIRST_LEVEL = 3; // of headings: below the page's title and who said it
const LAST_LEVEL = 6;
const COPIED = 1500; // milliseconds for which the button says so
const TASK = /^\[([ xX])\] /;
const ALIGNED = { "text-align:right": "right", "text-align:center": "middle" };
const ADDRESS = /(?:https?:\/\/|www\.)\S+|(?:[\w-]+\.)+(?:com|org|net|io|dev|app|gov|edu|info|ai|co|eu|uk|de)(?![\w.-])/gi; // as in channels/markdown.py
const PLAIN = new Set(["p", "blockquote", "ul", "li", "thead", "tbody", "tr", "em", "strong", "s"]);

/** What someone wrote, as a fragment whose code no translation changes. */
export function spoken(text) {
  const made = markdown(text);
  for (const code of made.querySelectorAll("code")) code.setAttribute("translate", "no");
  return made;
}

/** Markdown text as a fragment. */
export function markdown(text) {
  const made = document.createDocumentFragment();
  const outline = [];
  build(made, reader.parse(text, {}), outline);
  return made;
}

const host = (address) => address.replace(/^[^/]*:\/\//, "").split(/[/?#\\]/)[0].replace(/^.*@/, "").toLowerCase().replace(/^www\./, "").replace(/[.,;:!]+$/, "");

/** A link whose words name another host than the one it leads to becomes text that shows where it leads. */
function unmasked(tokens) {
  tokens.forEach((token, at) => {
    if (token.type !== "link_open") return;
    const end = tokens.slice(at).find((each) => each.type === "link_close");
    const words = tokens.slice(at + 1, tokens.indexOf(end)).map((each) => each.content).join("");
    const address = token.attrGet("href");
    if (!(words.match(ADDRESS) ?? []).some((each) => host(each) !== host(address))) return;
    token.tag = "span";
    end.meta = { leads: address };
  });
  return tokens;
}

/** Append what the tokens say; an element is open between its `nesting` 1 and -1. */
function build(root, tokens, outline) {
  const open = [root];
  tokens.forEach((token, at) => {
    if (token.hidden) return; // the paragraphs of a tight list
    if (token.nesting === -1) {
      const ended = open.pop();
      if (token.meta?.leads) ended.append(" (", shown(token.meta.leads), ")");
      return;
    }
    const into = open.at(-1);
    if (token.nesting === 1) {
      const { outer, inner } = element(token, outline);
      if (token.type === "list_item_open") tick(inner, tokens[at + 2]);
      into.append(outer);
      open.push(inner);
    } else if (token.type === "inline") build(into, unmasked(token.children), outline);
    else into.append(leaf(token));
  });
}

function element(token, outline) {
  const made = opened(token, outline);
  // what is wider than the page scrolls by itself, also for the keyboard
  const outer = token.tag === "table" ? h("div", { class: "table", role: "group", "aria-label": "Table", tabindex: 0 }, made) : made;
  return { outer, inner: made };
}

function opened(token, outline) {
  const { tag } = token;
  if (PLAIN.has(tag)) return h(tag);
  if (tag === "ol") return h("ol", { start: token.attrGet("start") });
  if (tag === "table") return h("table");
  if (tag === "th" || tag === "td") return h(tag, { class: ALIGNED[token.attrGet("style")] });
  if (tag === "a") return link(safeAddress(token.attrGet("href")));
  if (/^h[1-6]$/.test(tag)) return h("p", { class: "heading", role: "heading", "aria-level": level(Number(tag[1]), outline) });
  return h("span");
}

/** The level of a heading among those before it in the same text: no level is left out. */
function level(depth, outline) {
  while (outline.length && outline.at(-1) >= depth) outline.pop();
  outline.push(depth);
  return Math.min(FIRST_LEVEL + outline.length - 1, LAST_LEVEL);
}

function leaf(token) {
  switch (token.type) {
    case "softbreak":
      return "\n";
    case "hardbreak":
      return h("br");
    case "hr":
      return h("hr");
    case "code_inline":
      return h("code", {}, shown(token.content));
    case "fence":
    case "code_block":
      return codeBlock(token.content.replace(/\n$/, ""), token.info);
    default:
      return shown(token.content);
  }
}

function codeBlock(text, info) {
  const code = h("code", {}, shown(text));
  highlight(code, text, info);
  return h("div", { class: "code-block" }, h("pre", { tabindex: 0 }, code), copier(text));
}

/** Where the browser lets a page do that: on this machine, or over HTTPS. */
function copier(text) {
  if (!navigator.clipboard) return null;
  const copy = async () => {
    await navigator.clipboard.writeText(text).then(() => (button.textContent = "Copied"), () => (button.textContent = "Not allowed"));
    setTimeout(() => (button.textContent = "Copy"), COPIED);
  };
  const button = h("button", { type: "button", class: "copy-code", "aria-live": "polite", onclick: copy }, "Copy");
  return button;
}

/** An entry of a task list begins with its box instead of the brackets. */
function tick(item, inline) {
  const first = inline?.type === "inline" ? inline.children[0] : null;
  const found = first?.type === "text" && TASK.exec(first.content);
  if (!found) return;
  first.content = first.content.slice(found[0].length);
  const done = found[1] !== " ";
  item.className = "task";
  item.append(h("span", { class: "task-box", role: "img", "aria-label": done ? "done" : "to do" }, done ? "☑" : "☐"), " ");
}
