// Requests to the bot, with the token of this browser tab if there is one.

import { recall, remember } from "./dom.js";

const TOKEN = "nod.token";
const PATIENCE = 30_000; // milliseconds an ordinary answer may take

/** The bot said no (`status` 4xx, 5xx) or did not answer at all (`status` 0). */
export class Fault extends Error {
  constructor(status, body) {
    super(body?.error || (status ? `The server answered ${status}.` : "Can't reach Nod. Is the server running?"));
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
    });
  } catch (error) {
    if (signal?.aborted && signal.reason?.name !== "TimeoutError") throw error;
    throw new Fault(0);
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => null);
  if (response.status === 401) lockedOut();
  if (account && problem?.account) replaced();
  throw new Fault(response.status, problem);
}

async function json(method, path, body, patience = PATIENCE) {
  const response = await ask(method, path, { body, signal: AbortSignal.timeout(patience) });
  try {
    return await response.json();
  } catch {
    throw new Fault(0);
  }
}

/** Save what the server has as a file. */
export async function download(path, name) {
  const response = await ask("GET", path, { headers: { Accept: "*/*" }, signal: AbortSignal.timeout(PATIENCE) });
  const address = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}

export const get = (path, patience) => json("GET", path, undefined, patience);
export const post = (path, body = {}) => json("POST", path, body);
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
export function open(method, path, { body, headers, signal } = {}) {
  return ask(method, path, { body, headers: { ...headers, Accept: "text/event-stream" }, signal });
}
