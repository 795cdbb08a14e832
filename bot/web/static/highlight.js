// Colours for code. A worker finds them, and is ended where it takes too long: text from outside may be made for that.

import { h, shown } from "./dom.js";

const LANGUAGES = new Set([
  "bash", "c", "cpp", "csharp", "css", "diff", "dockerfile", "go", "ini", "java", "javascript", "json", "kotlin",
  "makefile", "php", "python", "ruby", "rust", "sql", "swift", "typescript", "xml", "yaml",
]);
const ALSO = {
  "c#": "csharp", "c++": "cpp", console: "bash", cs: "csharp", docker: "dockerfile", golang: "go", html: "xml", js: "javascript",
  jsx: "javascript", kt: "kotlin", make: "makefile", patch: "diff", postgresql: "sql", py: "python", rb: "ruby", rs: "rust",
  sh: "bash", shell: "bash", svg: "xml", toml: "ini", ts: "typescript", tsx: "typescript", yml: "yaml", zsh: "bash",
};
const LONGEST = 20000; // characters
const PATIENCE = 1500; // milliseconds
const KEPT = 100; // texts, of which the page draws most again and again

const found = new Map(); // how a text is coloured, by language and text
const waiting = new Map(); // what is asked, by its number
let worker = null;
let number = 0;
let clock = null;

/** Colour the text of a `code` element, now or soon; `info` is what follows the fence. */
export function highlight(code, text, info) {
  const name = info.trim().split(/\s/)[0].toLowerCase();
  const language = LANGUAGES.has(name) ? name : Object.hasOwn(ALSO, name) ? ALSO[name] : null;
  if (!language || text.length > LONGEST) return;
  const key = `${language} ${text}`;
  const known = found.get(key);
  if (known !== undefined) paint(code, text, known);
  else ask({ code, text, language, key });
}

function ask(asked) {
  number += 1;
  waiting.set(number, asked);
  worker ??= begun();
  worker.postMessage({ number, text: asked.text, language: asked.language });
  clock ??= setTimeout(giveUp, PATIENCE);
}

function begun() {
  const made = new Worker(new URL("highlighter.js", import.meta.url), { type: "module" });
  made.addEventListener("message", ({ data }) => {
    const asked = waiting.get(data.number);
    waiting.delete(data.number);
    clearTimeout(clock);
    clock = waiting.size ? setTimeout(giveUp, PATIENCE) : null;
    if (asked) settle(asked, data.pieces);
  });
  made.addEventListener("error", giveUp);
  return made;
}

/** The one that it is at took too long, and stays as it is; the others are asked again. */
function giveUp() {
  clearTimeout(clock);
  worker?.terminate();
  worker = clock = null;
  const [stuck, ...others] = waiting.values();
  waiting.clear();
  if (stuck) settle(stuck, []);
  others.forEach(ask);
}

function settle({ code, text, key }, pieces) {
  if (found.size >= KEPT) found.delete(found.keys().next().value);
  found.set(key, pieces);
  paint(code, text, pieces);
}

function paint(code, text, pieces) {
  if (pieces.map(([said]) => said).join("") !== text) return; // it stays as it was written
  code.replaceChildren(...pieces.map(([said, name]) => (name ? h("span", { class: name }, shown(said)) : shown(said))));
}
