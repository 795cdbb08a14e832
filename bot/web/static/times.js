// Times in words that stay true: every `time` element made here is redrawn as time passes.

import { h } from "./dom.js";

const WORDS = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const WHOLE = new Intl.DateTimeFormat("en", { dateStyle: "full", timeStyle: "long" });
const CLOCK = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hour12: false });
const DAY = new Intl.DateTimeFormat("en", { day: "numeric", month: "short" });
const STEPS = [
  ["day", 86400, 36 * 3600],
  ["hour", 3600, 90 * 60],
  ["minute", 60, 90],
  ["second", 1, 0],
];

function relative(at) {
  const seconds = (at - Date.now()) / 1000;
  const [unit, size] = STEPS.find(([, , from]) => Math.abs(seconds) >= from);
  return WORDS.format(Math.round(seconds / size), unit);
}

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
  const element = h("time", { datetime: iso, title: WHOLE.format(new Date(iso)), data: { told: kind, ...data } });
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
  const text = today ? CLOCK.format(at) : `${DAY.format(at)}, ${CLOCK.format(at)}`;
  return h("time", { datetime: iso, title: WHOLE.format(at) }, text);
}

setInterval(() => {
  for (const element of document.querySelectorAll("time[data-told]")) {
    const text = words(element);
    if (written.get(element) !== text) write(element, text); // not what a translation made of it
  }
}, 1000);
