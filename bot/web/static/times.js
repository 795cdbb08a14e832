// Times in words that stay true: every `time` element made here is redrawn as time passes.

import { h } from "./dom.js";

const IN_FULL = { dateStyle: "full", timeStyle: "long" };
const STEPS = [
  ["day", 86400, 36 * 3600],
  ["hour", 3600, 90 * 60],
  ["minute", 60, 90],
  ["second", 1, 0],
];

// English words, not the browser's formatters: the first of those costs a tab a tenth of its start.

function relative(at) {
  const seconds = (at - Date.now()) / 1000;
  const [unit, size] = STEPS.find(([, , from]) => Math.abs(seconds) >= from);
  const count = Math.round(Math.abs(seconds) / size);
  if (count === 0) return "now";
  const length = `${count} ${unit}${count === 1 ? "" : "s"}`;
  return seconds > 0 ? `in ${length}` : `${length} ago`;
}

const clock = (at) => at.toTimeString().slice(0, 5);
const day = (at) => `${at.getDate()} ${at.toDateString().slice(4, 7)}`;

/** `8 s`, `2 min 5 s`, `1 h 20 min`: how long something has been running. */
export function lasted(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

// what is said of a time before and after it; an open card is past its own while everything is paused
const PAST = { Expires: "Was due to expire", expires: "was due to expire", ends: "ended", "": "due" };

function words(element) {
  const at = Date.parse(element.dateTime);
  const { told, before } = element.dataset;
  if (told === "elapsed") return lasted(Date.now() - at);
  if (told === "expiry") return `${at > Date.now() ? before : PAST[before]} ${relative(at)}`.trim();
  return Math.abs(at - Date.now()) < 90_000 ? "just now" : relative(at);
}

const written = new WeakMap(); // what stands in each, in these words

function write(element, text) {
  written.set(element, text);
  element.textContent = text;
}

function told(kind, iso, data = {}) {
  const element = h("time", { datetime: iso, data: { told: kind, ...data } });
  write(element, words(element));
  return element;
}

export const ago = (iso) => told("ago", iso);
/** `before`: the word before a time that is still to come, one of `PAST`. */
export const expiry = (iso, before = "") => told("expiry", iso, { before });
export const elapsed = (iso) => told("elapsed", iso);

/** When something was said: the hour today, the day as well before. */
export function stamp(iso) {
  const at = new Date(iso);
  const today = at.toDateString() === new Date().toDateString();
  const text = today ? clock(at) : `${day(at)}, ${clock(at)}`;
  return h("time", { datetime: iso }, text);
}

setInterval(() => {
  for (const element of document.querySelectorAll("time[data-told]")) {
    const text = words(element);
    if (written.get(element) !== text) write(element, text); // not what a translation made of it
  }
}, 1000);

// The time in full, with its zone, for who points at it.
document.addEventListener("mouseover", ({ target }) => {
  const element = target.closest?.("time[datetime]:not([title])");
  if (element) element.title = new Date(element.dateTime).toLocaleString("en", IN_FULL);
});
