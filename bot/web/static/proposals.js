// Every proposal this page knows, newest version each. Cards and the inbox listen here.

import { get, Newest, post } from "./api.js";

/** Who looks at the page; the frame fills it in. */
export const me = { admin: false, account: "", push: false };

let clock = 0; // counts what is asked for and what is told
const known = new Map(); // by id: the proposal, and when it was told or asked for
const listeners = new Set();
const returns = new Set();
const behind = new Map(); // by id, of those that are asked for again: the timer, and when their group changed

/** Call `listener(proposal)` at every change; gives the function that ends it. */
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Call `listener()` whenever the feed of changes is open again; gives the function that ends it. */
export function whenBack(listener) {
  returns.add(listener);
  return () => returns.delete(listener);
}

/** The server is there again: take in what changed without it. */
export function back() {
  for (const listener of [...returns]) listener();
  return refreshWaiting();
}

const asked = new Map(); // by id: what was asked about the proposal

function askedAbout(id) {
  if (!asked.has(id)) asked.set(id, { told: [], newest: new Newest() });
  return asked.get(id);
}

/** What was asked about a proposal within a day: `{asker, question, answer}`, where the answer may not be there yet. */
export const questions = (id) => asked.get(id)?.told ?? [];

/** Take in what was asked about a proposal, and its answers. */
export function putQuestions(id, told) {
  const about = askedAbout(id);
  about.told = told;
  about.newest.overtake();
  const p = find(id);
  if (p) for (const listener of [...listeners]) listener(p, p);
}

export async function refreshQuestions(id) {
  const answer = await askedAbout(id).newest.of(() => get(`api/proposals/${encodeURIComponent(id)}/questions`));
  if (answer) putQuestions(id, answer.questions);
}

export const find = (id) => known.get(id)?.proposal ?? null;
export const all = () => [...known.values()].map(({ proposal }) => proposal);
export const waiting = () => all().filter((p) => p.state === "proposed");
export const siblings = (p) => all().filter((other) => other.message_id === p.message_id && p.message_id);

/** Take in what the server said, asked for at `at`: not an older version than the known one, nor the same from before. */
export function put(proposal, at = (clock += 1)) {
  if (!proposal) return;
  const { proposal: before, at: then } = known.get(proposal.id) ?? {};
  if (before && (before.version > proposal.version || (before.version === proposal.version && then > at))) return;
  known.set(proposal.id, { proposal, at });
  for (const listener of [...listeners]) listener(proposal, before ?? null);
  if (!before || before.version !== proposal.version) catchUp(proposal, at);
}

/** The card that carries its group's buttons tells of the others, so it is asked for again if it was told of before. */
function catchUp(changed, at) {
  for (const p of siblings(changed)) {
    if (p.id === changed.id || !p.group) continue;
    const { timer, since } = behind.get(p.id) ?? { since: 0 };
    clearTimeout(timer);
    const last = Math.max(since, at);
    behind.set(p.id, { since: last, timer: setTimeout(() => known.get(p.id).at < last && refresh(p.id).catch(() => {}), 120) });
  }
}

export async function refresh(id) {
  const at = (clock += 1);
  put((await get(`api/proposals/${encodeURIComponent(id)}`)).proposal, at);
}

/** A list of the server's, each proposal as it is known by now; `told`: those told of while the list was on its way. */
export async function list(path) {
  const at = (clock += 1);
  const page = await get(path);
  const told = [...known.values()].filter((each) => each.at > at).map(({ proposal }) => proposal);
  page.proposals.forEach((p) => put(p, at));
  return { ...page, proposals: page.proposals.map(({ id }) => find(id)), told };
}

/** What approving similar calls may allow: `{ladder: [{rung, words}], reaches: [{reach, words}], lasting: [...]}`. */
export const ladder = (id) => get(`api/proposals/${encodeURIComponent(id)}/ladder`);

/** Everything that waits, across channels; what waited before and is not among it is asked for. */
export async function refreshWaiting() {
  const { proposals } = await list("api/proposals?state=proposed");
  const ids = new Set(proposals.map((p) => p.id));
  const gone = all().filter((p) => ["proposed", "approved", "executing"].includes(p.state) && !ids.has(p.id));
  await Promise.all(gone.map((p) => refresh(p.id).catch(() => {})));
}

/** One press. Gives the server's answer; raises `Fault` with what it says now already taken in. */
export async function press(id, verb, body) {
  try {
    const answer = await post(`api/proposals/${encodeURIComponent(id)}/${verb}`, body);
    put(answer.proposal);
    return answer;
  } catch (error) {
    put(error.proposal);
    throw error;
  }
}
