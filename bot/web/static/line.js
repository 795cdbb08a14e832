// The lines of a conversation as elements: what people and Nod said, and the quiet lines of what Nod looked up.

import { chips } from "./attach.js";
import { DATA, data, h, hasUnseen, icon, shown } from "./dom.js";
import { spoken } from "./markdown.js";
import { pretty } from "./card.js";
import { growing } from "./diff.js";
import { elapsed, stamp } from "./times.js";

const TOLD = [["What you proposed earlier", "Nod was told how earlier proposals ended"], ["Question from", "What Nod was asked"], ["Undone by", "Nod was told what was undone"], ["Schedule ", "What a schedule had Nod do"]];
const SUGGESTION = /^(?:- )?→ (\S.{0,199})$/; // as text or as an item of a list

/** What an answer says, and the sentences to send that it ends with. Commands are no sentences to offer. */
export function suggestionsOf(text) {
  const lines = text.trimEnd().split("\n");
  const sentences = [];
  while (lines.length) {
    const last = lines.at(-1).trim();
    const sentence = SUGGESTION.exec(last)?.[1];
    if (last && (!sentence || sentence.startsWith("/") || hasUnseen(sentence))) break;
    if (sentence) sentences.unshift(sentence);
    lines.pop();
  }
  return { said: lines.join("\n"), sentences };
}

/** Whether a note only tells the agent something, which answers nothing to it. */
export const toldOnly = ({ role, text }) => role === "note" && text.startsWith("[Nod] Undone by");

/** One stored message, without its cards; `send(text)` is what a suggestion in it does, `save(file)` saves one. */
export function line(message, send, save) {
  if (message.role === "note") {
    const text = message.text.replace(/^\[Nod\]\s*/, "");
    const about = TOLD.find(([begins]) => text.startsWith(begins))?.[1] ?? "Update from a teammate";
    return h("details", { class: "aside fold-out" }, h("summary", {}, about), h("p", { class: "plain", ...DATA }, shown(text)));
  }
  if (message.role === "notice" && message.text.startsWith("Question from")) return h("div", { class: "aside" }, spoken(message.text));
  if (message.role === "notice" && !message.proposals.length) return notice(message.text, send);
  const element = message.role === "user" ? userLine(message.text, message.name, message.files, save) : assistantLine();
  element.querySelector(".line-head").append(stamp(message.created_at));
  if (message.role === "notice") element.querySelector(".said").append(data(message.text));
  if (message.role === "assistant") {
    const { said, sentences } = suggestionsOf(message.text);
    if (said.trim()) element.querySelector(".said").append(spoken(said));
    if (sentences.length) element.querySelector(".said").after(suggestions(sentences, send));
    message.calls.forEach((call) => element.querySelector(".calls").append(callLine(call).element));
  }
  return element;
}

function suggestions(sentences, send) {
  return h("div", { class: "suggestions", role: "group", "aria-label": "Suggestions" },
    sentences.map((each) => h("button", { type: "button", class: "suggestion", ...DATA, onclick: () => send(each) }, data(each))));
}

/** Why a turn ended early; where the words say what to send, a button sends it, given `send`. */
export function notice(text, send) {
  const said = h("p", { class: "aside notice" }, icon("warning"), h("span", { ...DATA }, shown(text)));
  return send && text.includes("Send “continue”") ? h("div", {}, said, suggestions(["Continue"], send)) : said;
}

export function userLine(text, name, files = [], save = null) {
  const label = !name || name === "you" ? "You" : name;
  const tail = (file) => (save ? [h("button", { type: "button", class: "link-button", "aria-label": `Save ${file.name}`, onclick: () => save(file) }, "Save")] : []);
  return h("article", { class: "line-block user", "aria-label": `${label} said` },
    h("header", { class: "line-head" }, h("h2", { ...DATA }, shown(label))), h("div", { class: "said plain", ...DATA }, shown(text)),
    ...(files.length ? [chips(files, tail)] : []));
}

export function assistantLine() {
  return h("article", { class: "line-block assistant", "aria-label": "Nod said" },
    h("header", { class: "line-head" }, h("h2", {}, "Nod")), h("div", { class: "said", dir: "auto" }), h("div", { class: "calls" }), h("div", { class: "crown" }), h("div", { class: "cards" }));
}

/** What the model thinks before it answers, folded away; gives a function that adds to it. */
export function thoughts(element) {
  const said = h("p", { class: "plain muted", ...DATA });
  element.querySelector(".said").before(h("details", { class: "thoughts fold-out" }, h("summary", {}, "Thinking"), said));
  return (text) => said.append(shown(text));
}

/** A read: one quiet line, its result behind it. `finish` when the result comes. */
export function callLine(call) {
  const sign = h("span", { class: "call-sign" }, icon("search"));
  const state = h("span", { class: "muted" });
  const far = h("span", { class: "muted", ...DATA });
  const body = h("div", { class: "call-body" });
  const element = h("details", { class: "call", data: { part: call.call_id } }, h("summary", {}, sign, h("span", { ...DATA }, shown(call.summary || call.tool_name)), far, state), body);
  const finish = (ok, result) => {
    element.classList.remove("running");
    far.remove();
    state.textContent = ok ? "" : "failed";
    if (!ok) sign.replaceChildren(icon("warning"));
    const box = h("pre", { class: "boxed", tabindex: 0, ...DATA }, shown(pretty(String(result ?? ""))));
    body.replaceChildren(h("p", { class: "muted" }, h("code", { ...DATA }, shown(call.tool_name)), " answered:"), box, growing(box));
  };
  if (call.result === undefined) {
    element.classList.add("running");
    state.replaceChildren(elapsed(new Date().toISOString()));
    body.append(h("p", { class: "muted" }, h("code", { ...DATA }, shown(call.tool_name)), " is running."));
  } else finish(call.ok, call.result);
  const progress = (text) => far.replaceChildren(shown(text), " ");
  return { element, finish, progress };
}
