// One conversation: its stored lines, the turn that is being written now, and the cards between them.
// Rows are the truth: whatever was streamed is replaced by them when a turn ends or a connection comes back.

import { download, Fault, get, LOST, Newest, open, post } from "./api.js";
import { Batch } from "./batch.js";
import { Card } from "./card.js";
import { announce, h, keeping, shown } from "./dom.js";
import { assistantLine, callLine, line, notice, thoughts, toldOnly, userLine } from "./line.js";
import { spoken } from "./markdown.js";
import { find, list, put } from "./proposals.js";
import { isSpoken } from "./record.js";
import { events } from "./stream.js";
import { Team } from "./team.js";

const RECENT = 60_000; // milliseconds in which an unanswered message looks as if it were being answered
const EARLY = 1000; // events of a conversation that are kept until it is known to be this one
const DRAW = 50;

function freshKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function formOf(said, files) {
  const form = new FormData();
  Object.entries(said).forEach(([name, value]) => form.append(name, value));
  files.forEach((file) => form.append(isSpoken(file) ? "recordings" : "files", file, file.name));
  return form;
}

const remark = (words) => h("p", { class: "aside remark" }, words);

export class Thread {
  /**
   * `tell` gets what the page around has to know: begun(id), turned(), working(on), missing(), shown(). `feed()` has
   * `live`: whether `receive` is told what happens; else the answer to a message brings it.
   */
  constructor(element, tell, feed) {
    Object.assign(this, { element, tell, feed, id: null, rowsAsked: new Newest(), teamAsked: new Newest() });
    this.team = new Team(document.getElementById("team"), () => this.tell.shown());
    this.reset();
  }

  reset() {
    clearTimeout(this.patience);
    clearTimeout(this.again);
    this.rowsAsked.overtake();
    this.cards?.forEach((card) => card.stop());
    this.visit = new AbortController();
    this.early = null;
    this.rows = new Map();
    this.cards = new Map();
    this.segments = [];
    this.current = null;
    this.posting = false;
    this.sending = Promise.resolve();
    this.quiet = null;
    this.setWorking(false);
    this.element.replaceChildren();
    this.team.reset(this.id);
  }

  async show(id) {
    this.visit?.abort();
    this.id = id;
    this.reset();
    if (!this.feed().started) await this.feed().begun;
    if (id && id === this.id) await this.load();
  }

  get empty() {
    return !this.element.childElementCount;
  }

  path(tail) {
    return `api/conversations/${encodeURIComponent(this.id)}/${tail}`;
  }

  /** What happens in a conversation of this person. */
  receive(conversation, event) {
    if (!this.id && this.early) {
      const kept = this.early.get(conversation) ?? [];
      if (kept.length < EARLY) this.early.set(conversation, [...kept, event]);
    } else if (conversation === this.id && (!this.posting || event.proposal || event.team)) this.take(event);
  }

  /** Something may have been missed: the rows have it. */
  missed() {
    if (!this.id || this.posting) return;
    this.endSegments();
    this.load();
  }

  /** Read the rows; what had been streamed before gives way to them. */
  async load() {
    clearTimeout(this.again);
    const ended = this.segments.filter((segment) => segment.ended);
    let answer;
    try {
      answer = await this.rowsAsked.of(() => Promise.all([
        get(this.path("messages")), this.teamAsked.of(() => get(this.path("team"))), list(this.path("proposals"))]));
    } catch (error) {
      if (error.status === 404) this.tell.missing();
      else if (error.status !== 401) this.again = setTimeout(() => this.load(), 3000);
      return;
    }
    if (!answer) return;
    const [{ messages }, board] = answer;
    if (board) this.team.draw(board.team);
    this.segments = this.segments.filter((segment) => !ended.includes(segment));
    keeping(this.element, () => {
      this.arrange(messages);
      ended.forEach((segment) => segment.element.remove());
    });
    const last = messages.at(-1);
    const young = last && Date.now() - Date.parse(last.created_at) < RECENT;
    if (!this.segments.length && !this.posting) this.setWorking(Boolean(young && last.id !== this.quiet?.id && ["user", "note"].includes(last.role) && !toldOnly(last)));
    this.tell.shown();
  }

  arrange(messages) {
    let place = null;
    const wanted = new Set(messages.map((message) => message.id));
    for (const [id, row] of this.rows) {
      if (wanted.has(id) || !row.print) continue; // a message that was accepted since they were asked for stays
      row.element.remove();
      this.rows.delete(id);
    }
    place = this.element.firstElementChild;
    for (const message of messages) {
      const print = JSON.stringify(message);
      let row = this.rows.get(message.id);
      if (row?.print !== print) {
        const element = line(message, (text) => this.send(text), (file) => this.save(file));
        if (row?.element === place) place = row.element.nextElementSibling;
        row?.element.replaceWith(element);
        row = { element, print };
        this.rows.set(message.id, row);
      }
      if (message.id === this.quiet?.id && !row.element.querySelector(".remark")) row.element.append(remark(this.quiet.words));
      if (row.element !== place) this.element.insertBefore(row.element, place);
      else place = place.nextElementSibling;
      const cards = row.element.querySelector(".cards");
      [...new Set(message.proposals.map((id) => this.card(id)))].forEach((card, at) => {
        if (cards.children[at] !== card.element) cards.insertBefore(card.element, cards.children[at] ?? null);
        card.crown(row.element.querySelector(".crown"));
      });
    }
  }

  /** The card of a proposal, or the table of its batch. */
  card(proposal) {
    const batch = find(proposal)?.batch?.id;
    const id = batch ?? proposal;
    if (!this.cards.has(id)) this.cards.set(id, batch ? new Batch(id, { own: true }) : new Card(id, { own: true }));
    return this.cards.get(id);
  }

  // The turn that is being written now

  take(event) {
    switch (event.type) {
      case "delta":
        if (event.text === "\n\n" && !this.segment((s) => !s.calls.size && !s.cards).text) break; // a new paragraph is one already
        this.segment((s) => !s.calls.size && !s.cards).text += event.text;
        this.current.plain ??= /^\s/.test(event.text);
        this.paint();
        break;
      case "thought":
        this.segment((s) => !s.calls.size && !s.cards);
        this.current.thought ??= thoughts(this.current.element);
        this.current.thought(event.text);
        break;
      case "restart":
        if (this.current) this.current.text = "";
        this.paint();
        break;
      case "tool_call_start": {
        const segment = this.segment((s) => !s.cards);
        const call = callLine(event);
        segment.calls.set(event.call_id, call);
        segment.element.querySelector(".calls").append(call.element);
        break;
      }
      case "tool_call_progress":
        this.segments.map((s) => s.calls.get(event.call_id)).find(Boolean)?.progress(event.text);
        break;
      case "tool_call_result":
        this.segments.map((s) => s.calls.get(event.call_id)).find(Boolean)?.finish(event.ok, event.result);
        break;
      case "proposal_opened": {
        if (!event.proposal) break;
        put(event.proposal);
        const segment = this.segment(() => true);
        segment.cards += 1;
        segment.element.querySelector(".cards").append(this.card(event.proposal.id).element);
        break;
      }
      case "proposal_update":
        put(event.proposal);
        // what no answer of the agent brought stands in a row of its own
        if ((event.proposal?.undoes || ["question", "request"].includes(event.proposal?.kind)) && !event.proposal.teammate && !this.cards.has(event.proposal.id)) this.load();
        return;
      case "team_update":
        this.teamAsked.overtake();
        this.team.draw(event.team);
        return;
      case "error":
        this.endTurn(event.error);
        this.segments.push({ element: this.element.appendChild(notice(event.error)), calls: new Map(), ended: true });
        break;
      case "done":
        if (event.ending === "stopped") this.remark("You stopped this answer.");
        this.endTurn(event.ending === "stopped" ? "Stopped." : "");
        break;
      default:
        return;
    }
    this.setWorking(!["done", "error"].includes(event.type));
    this.tell.shown();
  }

  segment(fits) {
    if (!this.current || !fits(this.current)) {
      this.current = { element: assistantLine(), text: "", calls: new Map(), cards: 0, ended: false };
      this.current.element.classList.add("live");
      this.segments.push(this.current);
      this.element.append(this.current.element);
    }
    return this.current;
  }

  paint() {
    const segment = this.current;
    if (!segment || segment.timer) return;
    segment.timer = setTimeout(() => {
      segment.timer = null;
      const text = segment.plain ? `… ${segment.text}` : segment.text; // joined in the middle of an answer
      segment.element.querySelector(".said").replaceChildren(spoken(text));
      this.tell.shown();
    }, DRAW);
  }

  endSegments() {
    this.segments.forEach((segment) => (segment.ended = true));
    this.current = null;
  }

  endTurn(words) {
    const said = this.segments.filter((s) => !s.ended);
    const cards = said.reduce((sum, s) => sum + (s.cards ?? 0), 0);
    const asks = cards ? ` ${cards} ${cards === 1 ? "proposal waits" : "proposals wait"} for a decision.` : "";
    announce(`Nod: ${said.map((s) => s.text).join(" ").slice(0, 600)} ${words}${asks}`);
    this.endSegments();
    this.tell.turned();
    if (this.id) this.load();
  }

  /** A word that is no row, with the last one; no one is working on an answer to that one now. */
  remark(words) {
    const [id, row] = [...this.rows].at(-1) ?? [];
    this.quiet = { id, words };
    row?.element.append(remark(words));
  }

  setWorking(on) {
    clearTimeout(this.patience);
    if (on) this.patience = setTimeout(() => this.load().then(() => this.setWorking(false)), RECENT);
    this.tell.working(on);
  }

  // Sending

  send(text, files = []) {
    const element = userLine(text, "", files);
    this.heard = text;
    element.classList.add("sending");
    this.element.append(element);
    this.tell.shown(true);
    const message = { text, files, element, key: freshKey(), visit: this.visit };
    this.sending = this.sending.then(() => this.deliver(message));
  }

  /** Resolves when the bot has taken the message in, or said no; the answer is still being read after that. */
  deliver(message) {
    const { element, visit } = message;
    element.querySelector(".not-sent")?.remove();
    element.classList.add("sending");
    if (visit === this.visit) this.setWorking(true);
    return new Promise((accepted) => {
      this.converse(message, accepted)
        .catch((error) => {
          if (visit !== this.visit || error.name === "AbortError") return;
          this.setWorking(false);
          element.classList.remove("sending");
          if (error.status === 409) {
            element.remove(); // it arrived the first time, and its row is there
            this.load();
          } else if (error.status !== undefined) this.failed(message, error);
          else throw error;
        })
        .finally(accepted);
    });
  }

  failed(message, error) {
    const again = h("button", { type: "button", class: "button small", onclick: () => (this.sending = this.sending.then(() => this.deliver(message))) }, "Send again");
    message.element.append(h("p", { class: "not-sent", role: "alert" }, `Not sent: ${error.message} `, again));
    this.tell.shown(true);
  }

  save({ id, name }) {
    download(this.path(`files/${encodeURIComponent(id)}`), name).catch((error) => announce(error.message));
  }

  async converse({ text, files, element, key, visit }, accepted) {
    const stop = new AbortController();
    if (!this.id && visit === this.visit) this.early ??= new Map();
    const said = this.id && visit === this.visit ? { message: text, conversation_id: this.id } : { message: text };
    const body = files.length ? formOf(said, files) : said;
    const response = await open("POST", "api/chat", { body, headers: { "Idempotency-Key": key }, signal: stop.signal });
    let feeding = false;
    let taken = false;
    try {
      for await (const { data } of events(response, () => stop.abort())) {
        if (visit !== this.visit) return stop.abort();
        if (!data) continue;
        if (data.type === "accepted") {
          taken = true;
          this.accept(data, element);
          accepted();
          // what is heard tells it, unless nothing is heard now
          if (this.feed().live || this.posting) return stop.abort();
          feeding = this.posting = true;
        } else {
          if (data.type === "done" || data.type === "error") this.posting = feeding = false;
          this.take(data);
          if (data.type === "done" || data.type === "error") break;
        }
      }
    } catch (error) {
      if (error.status !== undefined || visit !== this.visit) throw error;
    } finally {
      stop.abort();
      this.early = null;
      if (visit === this.visit) {
        if (feeding) {
          this.posting = false;
          this.endSegments();
        }
      }
    }
    if (!taken && visit === this.visit) throw new Fault(0, null, LOST);
  }

  accept({ conversation_id: conversation, message_id: id }, element) {
    element.classList.remove("sending");
    element.dataset.message = id;
    this.rows.set(id, { element, print: "" });
    if (this.id === conversation) return;
    this.id = conversation;
    this.team.reset(conversation);
    this.tell.begun(conversation);
    const early = this.early?.get(conversation) ?? [];
    this.early = null;
    if (this.feed().live) early.forEach((event) => this.receive(conversation, event));
  }

  async stop() {
    if (this.id) await post(this.path("stop"));
  }
}
