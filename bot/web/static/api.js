// Requests to the bot, with the token of this browser tab if there is one.

import { recall, remember } from "./dom.js";

const TOKEN = "nod.token";
const PATIENCE = 30_000; // milliseconds an ordinary answer may take

const SIGN_IN_THERE = "The sign-in in front of Nod answered in its place. Reload this page to sign in there. Your text is kept.";
export const LOST = "Nod's answer was lost on its way. It may be done: look, then try again.";

/** The words for what a proxy answers in place of Nod, by its status. */
function wordsOfProxy(status) {
  if (status === 401 || status === 407 || status < 400) return SIGN_IN_THERE;
  if (status === 403) return "The proxy in front of Nod refused this (403). Reload this page, or ask an admin.";
  if (status === 408 || status === 504) return "The proxy in front of Nod stopped waiting. It may be done: look, then try again.";
  if (status === 413) return "The proxy in front of Nod lets nothing of this size through. Send less, or ask an admin to raise its limit.";
  if (status === 429) return "The proxy in front of Nod lets no more through for now. Wait a minute, then try again.";
  if (status === 404 || status >= 500) return `The proxy in front of Nod can't reach it (${status}). Try again in a minute.`;
  return `The proxy in front of Nod refused this (${status}). Tell an admin.`;
}

/** Nod said no (`status` 4xx, 5xx), or did not answer: not at all, or a proxy did in its place (`status` 0). */
export class Fault extends Error {
  constructor(status, body, words = "Can't reach Nod. Is the server running?") {
    super(body?.error || words);
    this.status = status;
    this.fields = body?.fields ?? {};
    this.proposal = body?.proposal ?? null;
  }
}

export const token = () => recall(TOKEN);
export const signedIn = () => token() !== "";
export const signIn = (token) => remember(TOKEN, token.trim());
export const signOut = () => remember(TOKEN, "");

let lockedOut = () => {};
let replaced = () => {};
let account = "";

/** Call `listener` when the bot asks for a token. */
export function whenLockedOut(listener) {
  lockedOut = listener;
}

/** From now on this page is of one account; `listener` is called when the browser has become another's. */
export function only(theAccount, listener) {
  account = encodeURIComponent(theAccount);
  replaced = listener;
}

async function ask(method, path, { body, headers = {}, signal } = {}) {
  const sent = { Accept: "application/json", ...headers };
  if (account) sent["Nod-Account"] = account;
  if (signedIn()) sent.Authorization = `Bearer ${token()}`;
  const form = body instanceof FormData; // the browser names its boundary
  if (body !== undefined && !form) sent["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(new URL(path, document.baseURI), {
      method,
      headers: sent,
      body: body === undefined || form ? body : JSON.stringify(body),
      signal,
      cache: "no-store",
      credentials: "same-origin",
      redirect: "manual", // Nod redirects no request of this page: it would lead to someone's sign-in
    });
  } catch (error) {
    if (signal?.aborted && signal.reason?.name !== "TimeoutError") throw error;
    throw new Fault(0);
  }
  if (response.ok && !(isPage(response) && !response.headers.has("Content-Disposition"))) return response;
  const problem = await response.json().catch(() => null);
  if (typeof problem?.error !== "string") throw new Fault(0, null, wordsOfProxy(response.status));
  if (response.status === 401) lockedOut();
  if (account && problem?.account) replaced();
  throw new Fault(response.status, problem);
}

const isPage = (response) => (response.headers.get("Content-Type") ?? "").startsWith("text/html");

async function json(method, path, body, patience = PATIENCE) {
  const response = await ask(method, path, { body, signal: AbortSignal.timeout(patience) });
  try {
    return await response.json();
  } catch {
    throw new Fault(0, null, LOST);
  }
}

/** The body of an answer, piece by piece; `heard()` is called at each. */
async function* pieces(response, heard) {
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      heard();
      if (done) return;
      yield value;
    }
  } catch {
    throw new Fault(0, null, "The answer was cut off. Try again.");
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** A signal that aborts once nothing was heard for as long as an answer may take, and what says that something was. */
function silence() {
  const stop = new AbortController();
  let timer = null;
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => stop.abort(new DOMException("", "TimeoutError")), PATIENCE);
  };
  heard();
  return { signal: stop.signal, heard, end: () => clearTimeout(timer) };
}

/** Save what the server has as a file. `progress(text, headers)` gets each piece of it. */
export async function download(path, name, progress = () => {}) {
  const { signal, heard, end } = silence();
  const parts = [];
  try {
    const response = await ask("GET", path, { headers: { Accept: "*/*" }, signal });
    const decoder = new TextDecoder();
    for await (const piece of pieces(response, heard)) {
      parts.push(new Blob([piece])); // a browser keeps a large one on disk
      progress(decoder.decode(piece, { stream: true }), response.headers);
    }
  } finally {
    end();
  }
  const address = URL.createObjectURL(new Blob(parts));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}

/** Ask for what takes long: `progress({ done, total })` is called as it comes, then the answer is given. */
export async function follow(path, progress) {
  const { signal, heard, end } = silence();
  let rest = "";
  try {
    const response = await ask("GET", path, { headers: { Accept: "application/x-ndjson" }, signal });
    const decoder = new TextDecoder();
    for await (const piece of pieces(response, heard)) {
      const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
      rest = lines.pop();
      for (const line of lines.map((each) => JSON.parse(each))) {
        if (!("total" in line)) return line;
        progress(line);
      }
    }
  } finally {
    end();
  }
  throw new Fault(0, null, LOST);
}

export const get = (path, patience) => json("GET", path, undefined, patience);
export const post = (path, body = {}) => json("POST", path, body);
export const put = (path, body) => json("PUT", path, body);
export const patch = (path, body) => json("PATCH", path, body);
export const remove = (path) => json("DELETE", path);

/** Of the answers to what was asked again and again only the last counts, and none that is behind what was told since. */
export class Newest {
  /** What `question()` gives; null, and no fault either, where it no longer counts. */
  async of(question) {
    const mine = (this.last = {});
    try {
      const answer = await question();
      return this.last === mine ? answer : null;
    } catch (error) {
      if (this.last === mine) throw error;
      return null;
    }
  }

  /** What was asked before no longer counts. */
  overtake() {
    this.last = null;
  }
}

/** A response whose body is an event stream. */
export async function open(method, path, { body, headers, signal } = {}) {
  const response = await ask(method, path, { body, headers: { ...headers, Accept: "text/event-stream" }, signal });
  if ((response.headers.get("Content-Type") ?? "").startsWith("text/event-stream")) return response;
  response.body?.cancel().catch(() => {});
  throw new Fault(0, null, LOST);
}
