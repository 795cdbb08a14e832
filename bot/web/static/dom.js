// Building the page from nodes. Text is only ever set as text; nothing here parses markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element. Strings among the children become text; `on*` properties become listeners. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name === "value") element.value = value;
    else if (name === "data") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const PATHS = {
  check: "m4 10.5 4 4 8-9",
  cross: "m5 5 10 10M15 5 5 15",
  clock: "M10 5.5V10l3 2M10 2.5a7.5 7.5 0 1 0 0 15 7.5 7.5 0 0 0 0-15Z",
  warning: "M10 3 2.5 16.5h15L10 3Zm0 5.5v3.7m0 2.2v.1",
  menu: "M3 5.5h14M3 10h14M3 14.5h14",
  inbox: "M3 11.5 5 4.5h10l2 7v4H3v-4Zm0 0h4l1 2h4l1-2h4",
  search: "M9 3.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11Zm4 9.5 4 4",
  minus: "M5 10h10",
  plus: "M10 4v12M4 10h12",
  shield: "M10 2.5 4 5v4.5c0 4 2.6 6.6 6 8 3.4-1.4 6-4 6-8V5l-6-2.5Z",
  key: "M12.5 3a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9ZM9.3 10.7 3 17m2.5-2.5L8 17",
  tool: "M12.5 3.2a4.3 4.3 0 0 0-3.7 6.2L3 15.2 4.8 17l5.8-5.8a4.3 4.3 0 0 0 5.7-5.3l-2.7 2.7-2.2-2.2 2.7-2.7a4.3 4.3 0 0 0-1.6-.5Z",
  bars: "M4 16.5V9.5m4 7v-13m4 13V7m4 9.5v-5",
  chart: "M3.5 3.5v13h13m-10.5-4 3-4 3 2.5 4-6",
  scroll: "M5 3.5h8.5v13H7a2 2 0 0 1-2-2v-11Zm2.5 4h3.5m-3.5 3h3.5",
  person: "M10 3a3.2 3.2 0 1 0 0 6.5A3.2 3.2 0 0 0 10 3ZM3.8 17c.6-3 3-4.8 6.2-4.8s5.6 1.8 6.2 4.8",
  people: "M7.5 3.5a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6ZM2 16.5c.5-2.8 2.7-4.4 5.5-4.4s5 1.6 5.5 4.4m-.3-12.6a2.8 2.8 0 0 1 0 4.9m2 3.8c1.8.6 3 1.9 3.3 3.9",
  bookmark: "M5.5 3h9v14L10 13.5 5.5 17V3Z",
  file: "M5 2.5h6.5L15 6v11.5H5v-15Zm6.5 0V6H15",
  clip: "m16 9.5-6 6a3.6 3.6 0 0 1-5.1-5.1l6.6-6.6a2.4 2.4 0 0 1 3.4 3.4l-6.5 6.5a1.2 1.2 0 0 1-1.7-1.7l5.7-5.7",
  microphone: "M10 2.5a2.5 2.5 0 0 0-2.5 2.5v5a2.5 2.5 0 0 0 5 0V5A2.5 2.5 0 0 0 10 2.5ZM4.5 9.5a5.5 5.5 0 0 0 11 0M10 15v2.5",
  square: "M5.5 5.5h9v9h-9Z",
  list: "M7.5 5.5h9m-9 4.5h9m-9 4.5h9M3.5 5.5h.1m-.1 4.5h.1m-.1 4.5h.1",
  chip: "M5.5 5.5h9v9h-9v-9ZM8 2.5v3m4-3v3m-4 9v3m4-3v3m-9.5-9.5h3m-3 4h3m9-4h3m-3 4h3",
  gear: "M4 6h7m4 0h1M4 14h1m4 0h7M13 4v4M7 12v4",
  arrow: "M3.5 10h13m-4.5-4.5 4.5 4.5-4.5 4.5",
};

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

// Characters that are invisible or turn the reading direction: a person must not approve what they hide.
// As in bot/domain/text.py, where the reasons are. A test holds them together.
const HIDDEN = "0-8 b-1f 7f-9f ad 34f 61c 115f-1160 17b4-17b5 180b-180f 200b-200f 2028-202e 2060-206f 2800 3164 d800-dfff fdd0-fdef fe00-fe0f feff ffa0 fff0-fffc fffe-ffff 13430-1343f 13441-13442 16fe4 1bca0-1bca3 1d159 1d173-1d17a 1fffe-1ffff 2fffe-2ffff 3fffe-3ffff 4fffe-4ffff 5fffe-5ffff 6fffe-6ffff 7fffe-7ffff 8fffe-8ffff 9fffe-9ffff afffe-affff bfffe-bffff cfffe-cffff dfffe-e0fff efffe-effff ffffe-fffff 10fffe-10ffff";
const WRITTEN = String.raw`(?:<1f3f4><e0067><e0062>(?:<e0065><e006e><e0067>|<e0073><e0063><e0074>|<e0077><e006c><e0073>)<e007f>|\p{Extended_Pictographic}[<fe0e><fe0f>]?\p{Emoji_Modifier}?(?:<200d>\p{Extended_Pictographic}[<fe0e><fe0f>]?\p{Emoji_Modifier}?){0,8}|[#*0-9]<fe0f><20e3>|[<94d><9cd><a4d><acd><b4d><bcd><c4d><ccd><d4d><dca><1039><17d2>][<200c><200d>]|(?<=[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Nko}\p{Script=Mongolian}][\p{Mn}]{0,3})[<200c><200d>](?=[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Nko}\p{Script=Mongolian}]))`;
const hidden = HIDDEN.replace(/[0-9a-f]+/g, "\\u{$&}").replaceAll(" ", "");
const UNSEEN = new RegExp(`${WRITTEN.replace(/<([0-9a-f]+)>/g, "\\u{$1}")}|([${hidden}])`, "gu");

/** Whether a person would not see all of a text. */
export const hasUnseen = (text) => [...text.matchAll(UNSEEN)].some((found) => found[1]);

/** Text as nodes, with unseen characters made visible as their code. */
export function shown(text) {
  const parts = document.createDocumentFragment();
  let from = 0;
  for (const found of text.matchAll(UNSEEN)) {
    if (!found[1] || (found[0] === "\r" && text[found.index + 1] === "\n")) continue;
    const code = found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    parts.append(text.slice(from, found.index), h("span", { class: "unseen" }, `U+${code}`));
    from = found.index + found[0].length;
  }
  parts.append(text.slice(from));
  return parts;
}

/** What an element has whose text is data: no translation changes it, and it is read in its own direction. */
export const DATA = { translate: "no", dir: "auto" };

/** Data within a sentence: an argument, a name, a command, what people or tools wrote. */
export const data = (text) => h("bdi", { translate: "no" }, shown(text));

/** Words of the server: what they quote is read in its own direction, and no translation changes what they say. */
export function worded(text) {
  const parts = document.createDocumentFragment();
  for (const part of text.split(/(“[^”\n]*”)/)) {
    const quoted = part.startsWith("“") && part.endsWith("”") && part.length > 1;
    parts.append(...(quoted ? ["“", data(part.slice(1, -1)), "”"] : [shown(part)]));
  }
  return parts;
}

/** A link's address if it is safe to follow, else null. */
export function safeAddress(address, { relative = false } = {}) {
  try {
    const url = new URL(address, document.baseURI);
    const absolute = /^https?:\/\//i.test(address);
    const path = relative && /^\/(?![/\\])/.test(address) && url.origin === location.origin;
    return (absolute || path) && /^https?:$/.test(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

export function link(address, ...children) {
  return h("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, ...children);
}

const NAMES = ["id", "data-verb", "data-part", "href", "aria-label"]; // what an element is known by when it is drawn again

/** Finds what stands for an element within `root` after that was drawn again: of its name, else of its kind and place. */
function finder(root, element) {
  const name = NAMES.find((each) => element.hasAttribute(each));
  if (name) {
    const selector = `${element.localName}[${name}="${CSS.escape(element.getAttribute(name))}"]`;
    const at = [...root.querySelectorAll(selector)].indexOf(element);
    return () => (element.isConnected ? element : root.querySelectorAll(selector)[at]);
  }
  let holder = element.parentElement;
  while (holder !== root && !NAMES.some((each) => holder.hasAttribute(each))) holder = holder.parentElement;
  const within = holder === root ? () => root : finder(root, holder);
  const at = [...holder.querySelectorAll(element.localName)].indexOf(element);
  return () => (element.isConnected ? element : within()?.querySelectorAll(element.localName)[at]);
}

const LOOKS = "a[href], summary, button[aria-expanded]"; // what only looks; a decision counts for what was pressed alone
let held = null; // the element on which the mouse is down, and whether it was drawn again since

document.addEventListener("pointerdown", (event) => (held = { element: event.target.closest(LOOKS), again: false }), true);
document.addEventListener("pointercancel", () => (held = null), true);
document.addEventListener("pointerup", (event) => {
  // a browser sends no click where the element that was pressed is gone
  if (held?.again && held.element?.contains(event.target)) held.element.click();
  held = null;
}, true);

/** Draw a part of the page again, and leave who is at it where they are: what has the focus, is unfolded, is scrolled, is pressed. */
export function keeping(root, draw) {
  const pressed = held?.element && root.contains(held.element) ? finder(root, held.element) : null;
  const kept = (found) => [...found].map((element) => ({ again: finder(root, element), top: element.scrollTop, left: element.scrollLeft }));
  const active = document.activeElement;
  const focused = active !== root && root.contains(active) ? finder(root, active) : null;
  const unfolded = kept(root.querySelectorAll("details[open]"));
  const grown = kept(root.querySelectorAll(".grow[aria-expanded=true]"));
  const scrolled = kept([...root.querySelectorAll("[tabindex='0']")].filter((each) => each.scrollTop || each.scrollLeft));
  draw();
  if (pressed && !held.element.isConnected) held = { element: pressed(), again: true };
  for (const { again } of unfolded) {
    const details = again();
    if (!details || details.open) continue;
    details.open = true;
    details.dispatchEvent(new Event("toggle")); // the browser's own comes later, and what is within is needed now
  }
  for (const { again } of grown) if (again()?.matches(".grow[aria-expanded=false]")) again().click();
  for (const { again, top, left } of scrolled) again()?.scrollTo({ top, left, behavior: "instant" });
  if (!focused || document.activeElement === active) return;
  for (const each of [focused(), root.closest("[tabindex]"), root.querySelector("a[href]")]) {
    each?.focus({ preventScroll: true });
    if (each && document.activeElement === each) return;
  }
}

/** Put these into an element in place of what is there. */
export function redraw(element, ...children) {
  keeping(element, () => element.replaceChildren(...children));
}

/** Let an element have these children in this order; those that stay where they are, are not touched. */
export function settle(element, children) {
  const wanted = new Set(children);
  keeping(element, () => {
    for (const child of [...element.children]) if (!wanted.has(child)) child.remove();
    children.forEach((child, at) => element.children[at] === child || element.insertBefore(child, element.children[at] ?? null));
  });
}

/** Say it to a screen reader, after what it is saying now. */
export function announce(text) {
  const said = h("p", {}, text);
  document.getElementById("announcer").append(said);
  setTimeout(() => said.remove(), 20_000);
}

/** Keep a word for this tab, or `always` for this browser; an empty one is forgotten. */
export function remember(key, value, always = false) {
  try {
    const kept = always ? localStorage : sessionStorage;
    if (value) kept.setItem(key, value);
    else kept.removeItem(key);
  } catch {
    // private windows may forbid it; then nothing outlives a reload
  }
}

export function recall(key, always = false) {
  try {
    return (always ? localStorage : sessionStorage).getItem(key) ?? "";
  } catch {
    return "";
  }
}
